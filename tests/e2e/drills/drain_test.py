"""A server that is stopped behind a balancer of TCP connections, with a healthy neighbour: no call fails."""

import asyncio
import contextlib
import itertools
import pathlib
import signal
import sys
import threading
import time
import types
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from drills.front import COMMAND, channel, front, served, server_for_front  # noqa: E402
from drills.honest import Drill  # noqa: E402
from foreign_client_test import scan_request  # noqa: E402
from grpc.health.v1 import health_pb2, health_pb2_grpc  # noqa: E402
from harness import grpc  # noqa: E402
from prefixd.v1 import primitives_pb2_grpc  # noqa: E402
from proxy import Proxy, pass_on  # noqa: E402

CALLERS = 8
NO_RETRIES = [("grpc.enable_retries", 0)]


class Balancer(Proxy):
    """Gives each connection to the next server that says SERVING, and looks ten times a second."""

    def __init__(self, addresses):
        super().__init__()
        self._healthy = {address: True for address in addresses}
        self._next = 0
        self._ends = threading.Event()
        self._lookers = [threading.Thread(target=self._look_at, args=(address,)) for address in addresses]

    def __enter__(self):
        for looker in self._lookers:
            looker.start()
        return super().__enter__()

    def __exit__(self, *_):
        self._ends.set()
        for looker in self._lookers:
            looker.join()
        super().__exit__()

    def _look_at(self, address):
        with channel(address) as connection:
            while not self._ends.wait(0.1):
                try:
                    reply = health_pb2_grpc.HealthStub(connection).Check(health_pb2.HealthCheckRequest(), timeout=1)
                    self._healthy[address] = reply.status == health_pb2.HealthCheckResponse.SERVING
                except grpc.RpcError:
                    self._healthy[address] = False

    async def forward(self, reader, writer):
        healthy = [address for address, is_healthy in self._healthy.items() if is_healthy]
        self._next += 1
        try:
            server = await asyncio.open_connection(*healthy[self._next % len(healthy)].split(":"))
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._copy(reader, server[1]), self._copy(server[0], writer))

    @staticmethod
    async def _copy(reader, writer):
        with contextlib.suppress(OSError):
            await pass_on(reader, writer)
        writer.close()


class DrainDrill(Drill):
    def test_what_is_in_flight_comes_to_its_end(self):
        """Also the last reply of a connection, behind which it ends."""
        ends = threading.Event()

        def requests():
            yield scan_request(np.ones(100, np.int32))
            ends.wait()
        with served("--drain-delay-seconds", "1") as place, contextlib.ExitStack() as channels:
            streams = []
            for _ in range(4 * CALLERS):
                connection = channels.enter_context(channel(place.address, NO_RETRIES))
                streams.append(primitives_pb2_grpc.PrefixServiceStub(connection).StreamScan(requests()))
            for stream in streams:
                next(stream)
            place.server.process.send_signal(signal.SIGTERM)
            time.sleep(2)  # Until the delay is over.
            ends.set()
            errors = []
            for stream in streams:
                try:
                    self.assertEqual(len(list(stream)), 1)
                except grpc.RpcError as error:
                    errors.append(f"{error.code().name}: {error.details()}")
            place.server.process.wait(timeout=30)
            self.assertEqual(place.server.process.returncode, 0, place.server.log())
        self.assertEqual(errors, [])

    @contextlib.contextmanager
    def held_stream(self, server):
        ends = threading.Event()

        def requests():
            yield scan_request(np.ones(100, np.int32))
            ends.wait()
        with channel(server.address) as connection:
            replies = primitives_pb2_grpc.PrefixServiceStub(connection).StreamScan(requests())
            yield replies
            ends.set()
            self.assertEqual(len(list(replies)), 1)  # What is in flight comes to its end: the result.

    @contextlib.contextmanager
    def balancer(self, *addresses):
        if COMMAND:
            with front(*addresses) as (address, _):
                yield address
        else:
            with Balancer(addresses) as balancer:
                yield balancer.address

    def assert_calls_live_on_while_one_stops(self, *flags):
        """Those of callers who do not try again, and who are judged as one."""
        request = scan_request(np.ones(100, np.int32))
        errors, served_at, ends = [], [[] for _ in range(CALLERS)], threading.Event()

        def call(address, times):
            with channel(address, NO_RETRIES) as connection:
                stub = primitives_pb2_grpc.PrefixServiceStub(connection)
                while not ends.wait(0.005):
                    began = time.monotonic()
                    try:
                        stub.Scan(request, timeout=10, wait_for_ready=True)
                        times.append((began, time.monotonic()))
                    except grpc.RpcError as error:
                        errors.append(f"{error.code().name}: {error.details()}")

        with server_for_front(*flags) as (stopped, first), server_for_front() as (neighbour, second):
            with self.balancer(first, second) as address:
                callers = [threading.Thread(target=call, args=(address, times)) for times in served_at]
                for caller in callers:
                    caller.start()
                time.sleep(1)  # For calls before the drain,
                rest_kib = neighbour.memory_kib()
                with self.held_stream(stopped) as held:  # So that it takes a while to end.
                    next(held)
                    began = time.monotonic()
                    stopped.process.send_signal(signal.SIGTERM)
                    time.sleep(3)  # in it,
                stopped.process.wait(timeout=30)
                time.sleep(0.5)  # and after it.
                ends.set()
                for caller in callers:
                    caller.join()
            growth_kib = {"server": neighbour.memory_kib(peak=True) - rest_kib}
            self.assertEqual(stopped.process.returncode, 0, stopped.log())
        self.assertGreater(min(times[-1][0] for times in served_at), began, errors)  # Each was served after it too.
        seconds = {False: [], True: []}
        for first, last in itertools.chain(*served_at):
            seconds[last > began].append(last - first)
        before, beside = (types.SimpleNamespace(calls=len(some), p99_ms=1000 * np.quantile(some, 0.99),
                                                slowest_ms=1000 * max(some), failures=0, errors=[])
                          for some in seconds.values())
        beside.failures, beside.errors = len(errors), errors
        self.judge([before], [beside], growth_kib)

    def test_nothing_fails(self):
        """Pooled connections have moved when the delay is over, and a proxy that asks for health has heard in time."""
        self.assert_calls_live_on_while_one_stops("--drain-delay-seconds", "2")


if __name__ == "__main__":
    unittest.main()
