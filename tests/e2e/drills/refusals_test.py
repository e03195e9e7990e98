"""Callers whose calls are refused, and who never read it: an answer that can't leave takes what a call takes, and nobody
is charged for it. Beside them those who are refused as often, and read it. A proxy reads them itself: behind one it is
not tried."""

import collections
import contextlib
import pathlib
import socket
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import raw_http2  # noqa: E402
from drills.front import HOSTILE_HOST, channel, over_tls, server_flags  # noqa: E402
from drills.honest import Honest  # noqa: E402
from harness import wait_until  # noqa: E402
from metrics_test import MeteredServer  # noqa: E402
from prefixd.v1 import admin_pb2, admin_pb2_grpc  # noqa: E402

CONNECTIONS = 40
CALLS = 500  # On each, at once: less than a connection may have.
MORE_CALLS = 250  # On each, again and again, until so many answers are held that connections are ended.
MAX_CALLS = 20_000  # Then it is given up: the kernel lets the sockets have them all.
# Calls at once, on one connection, whose refusals are read. gRPC 1.83 counts those too that have just ended, and refuses
# what comes above 512: twice as many fit.
READERS = 250
TURN = 500  # Refusals that are read meanwhile: the server has looked at what was sent before them.
# An address may hold 2,048 calls, 47 MiB. All that do not fit into the sockets took 500 MiB and more, for a minute.
MAX_HELD_BYTES = 80 << 20
MAX_GROWTH_KIB = 192 * 1024  # With what comes at once: a socket has to be full for a quarter of a second.
PATH = "/prefixd.v1.AdminService/RunBenchmark"


def silent_connection(address, from_host):
    """One that has sent CALLS, and takes so little that their answers can't leave where the server's buffer is small."""
    if address.startswith("unix:"):
        connection, place = socket.socket(socket.AF_UNIX), address.removeprefix("unix:")
    else:
        connection, place = socket.socket(), (address.split(":")[0], int(address.split(":")[1]))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)  # The server's buffer is as small.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        if from_host:
            connection.bind((from_host, 0))
    connection.settimeout(10)
    connection.connect(place)
    connection = over_tls(connection, address)
    send(connection, raw_http2.PREFACE + raw_http2.frame(raw_http2.SETTINGS))
    send_calls(connection, range(CALLS))
    return connection


def send(connection, data):
    try:
        connection.sendall(data)
    except OSError:  # The server has ended it.
        connection.close()


def send_calls(connection, calls):
    send(connection, b"".join(
        raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 2 * call + 1, raw_http2.headers(PATH))
        for call in calls))


class Readers:
    """READERS calls at once, each begun again when its refusal was read, from entering to leaving. Counts how they
    ended."""

    def __init__(self, address):
        self._channel = channel(address)
        self._start = admin_pb2_grpc.AdminServiceStub(self._channel).RunBenchmark
        self._stopping = False
        self.ends = collections.Counter()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run, args=(READERS // 10,)) for _ in range(10)]

    def _run(self, count):
        while not self._stopping:
            calls = [self._start(admin_pb2.RunBenchmarkRequest(), timeout=30) for _ in range(count)]
            codes = [call.code() for call in calls]  # Waits.
            with self._lock:
                self.ends.update(code.name for code in codes)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stopping = True
        for thread in self._threads:
            thread.join()
        self._channel.close()


class RefusalsDrill(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="prefixd_drill_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.hostile_host = HOSTILE_HOST

    def assert_bounded(self, server, address, refusal):
        """Those who read go on, on a connection that lives, and hear of the refusal and nothing else."""
        with Readers(server.address) as readers, contextlib.ExitStack() as held:
            def wait_for_readers(calls):
                read = readers.ends.total()
                wait_until(lambda: readers.ends.total() >= read + calls)
            wait_for_readers(2 * TURN)
            rest_kib, rest_bytes = server.memory_kib(), server.value("prefixd_memory_in_use_bytes")
            silent = []
            for _ in range(CONNECTIONS):
                silent.append(held.enter_context(silent_connection(address, self.hostile_host)))
                wait_for_readers(TURN)  # What the server has not looked at yet is not held.
            wait_for_readers(4 * TURN)
            # How many answers fit into a socket is the kernel's affair, and changes with what it saw of the network.
            num_calls = CALLS
            while server.value("prefixd_connections_ended_total") == 0:
                self.assertLess(num_calls, MAX_CALLS, "so many calls on each connection, and none is ended")
                for connection in silent:
                    send_calls(connection, range(num_calls, num_calls + MORE_CALLS))
                    wait_for_readers(TURN)
                num_calls += MORE_CALLS
            wait_until(lambda: server.value("prefixd_memory_in_use_bytes") - rest_bytes < MAX_HELD_BYTES)
            peak_kib = server.memory_kib(peak=True)
        print(f"\n    {CONNECTIONS} x {num_calls} calls: {rest_kib // 1024} + {(peak_kib - rest_kib) // 1024} MiB; "
              f"{server.value('prefixd_connections_ended_total'):.0f} connections ended; readers {dict(readers.ends)}",
              end=" ", flush=True)
        self.assertLess(peak_kib - rest_kib, MAX_GROWTH_KIB)
        self.assertGreater(server.value("prefixd_connections_ended_total"), 0)
        server.wait_for_log("calls were refused, and it does not read it")
        self.assertEqual(set(readers.ends), {refusal})

    def test_refusals_that_another_address_does_not_read(self):
        with MeteredServer(*server_flags(), "--no-benchmark") as server, Honest(server.address) as honest:
            self.assert_bounded(server, server.address, "PERMISSION_DENIED")
        self.assertEqual(honest.failures, 0, honest.errors)

    def test_refusals_for_want_of_a_token_that_somebody_at_the_same_address_does_not_read(self):
        tokens = self.folder / "tokens"
        tokens.write_text(f"alice {'0' * 64}\n")
        self.hostile_host = None
        # Another address of the server, not of its callers: what the kernel gives a socket to send from depends on what
        # it saw between two addresses, and between 127.0.0.1 and itself all other tests have been.
        with socket.create_server(("127.0.0.74", 0)) as free:
            elsewhere = f"127.0.0.74:{free.getsockname()[1]}"
        with MeteredServer(*server_flags(), "--token-file", tokens, "--listen", elsewhere) as server:
            self.assert_bounded(server, elsewhere, "UNAUTHENTICATED")
            self.assertNotIn('caller="127.0.0.74"', server.log())

    def test_refusals_that_are_not_read_from_a_unix_socket(self):
        socket_address = f"unix:{self.folder}/prefixd.sock"
        with MeteredServer(*server_flags(), "--no-benchmark", "--listen", socket_address) as server:
            with Honest(server.address) as honest, Honest(socket_address) as neighbour:
                self.assert_bounded(server, socket_address, "PERMISSION_DENIED")
            for caller in (honest, neighbour):
                self.assertEqual(caller.failures, 0, caller.errors)


if __name__ == "__main__":
    unittest.main()
