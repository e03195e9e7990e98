"""Callers who want more than their share of the lanes, by a slow algorithm or by many large scans, and honest ones."""

import contextlib
import pathlib
import sys
import time
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from drills.honest import Honest  # noqa: E402
from foreign_client_test import scan_request  # noqa: E402
from harness import Server, grpc, temporary_folder  # noqa: E402
from prefixd.v1 import primitives_pb2_grpc, types_pb2  # noqa: E402

SECONDS = 4  # Time for a p99.
WORST = 3  # Times the p99 of the same callers without the others.
LEAST_MS = 5  # Below, a p99 is the machine's own: threads wait for a core,
LEAST_QUEUE_MS = 20  # four times for a stream of four pieces. Among 64 others each piece would wait for 64.


class Greedy:
    """So many calls of Scan at a time over so many connections, each followed by the next, until it is left."""

    def __init__(self, address, num_calls, num_connections, request):
        self.answered = 0
        self.errors = []
        self._request = request
        self._on = True
        self._channels = [grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
                          for _ in range(num_connections)]
        self._stubs = [primitives_pb2_grpc.PrefixServiceStub(self._channels[i % num_connections])
                       for i in range(num_calls)]

    def _call(self, stub):
        call = stub.Scan.future(self._request)
        call.add_done_callback(lambda done: self._next(stub, done))

    def _next(self, stub, done):
        if not self._on:
            return
        if done.code() != grpc.StatusCode.OK:
            self.errors.append(done.code())
            return
        self.answered += 1
        self._call(stub)

    def __enter__(self):
        for stub in self._stubs:
            self._call(stub)
        return self

    def __exit__(self, *_):
        self._on = False
        for channel in self._channels:
            channel.close()


class FairnessDrill(unittest.TestCase):
    def setUp(self):
        self.socket = f"unix:{temporary_folder(self.addCleanup)}/prefixd.sock"

    def watch(self, *callers):
        """Leaves them alone for a while, and returns them."""
        with contextlib.ExitStack() as stack:
            for caller in callers:
                stack.enter_context(caller)
            time.sleep(SECONDS)  # While they call.
        for caller in callers:
            self.assertEqual(caller.failures, 0, caller.errors)
            self.assertGreater(caller.calls, 20)
        return callers

    def assert_stay(self, what, before, during, least_ms):
        before_ms, during_ms = ([round(getattr(c, what), 1) for c in callers] for callers in (before, during))
        print(f"{what} of small scans and of streams: {before_ms}, then {during_ms}")
        for first, then in zip(before_ms, during_ms):
            self.assertLess(then, WORST * max(first, least_ms))

    def assert_was_served(self, greedy):
        self.assertEqual(greedy.errors, [])
        self.assertGreater(greedy.answered, 0)

    def test_naive_scans_are_below_all_others(self):
        naive = scan_request(np.ones(1 << 14, np.int32))
        naive.spec.algorithm.strategy = types_pb2.STRATEGY_NAIVE
        with Server("--listen", self.socket) as server:
            def others():
                return [Honest(self.socket), Honest(server.address, "StreamScan")]

            before = self.watch(*others())
            with Greedy(server.address, 64, 4, naive) as greedy:
                during = self.watch(*others())
            self.assert_was_served(greedy)
            self.assert_stay("p99_ms", before, during, LEAST_MS)

    # A few calls keep the lane for large tasks busy, and cores too. Many more must not get more of it. They do get more
    # of the wire, which is not shared by caller, so it is the wait for a lane that counts.
    def test_many_large_scans_get_no_more_than_a_few(self):
        large = scan_request(np.ones(1 << 18, np.int32))
        with Server("--listen", self.socket, "--lanes", "2") as server:
            def others():
                return [Honest(self.socket), Honest(self.socket, "StreamScan")]

            with Greedy(server.address, 4, 4, large):
                before = self.watch(*others())
            with Greedy(server.address, 64, 8, large) as greedy:
                during = self.watch(*others())
            self.assert_was_served(greedy)
            self.assert_stay("queue_p99_ms", before, during, LEAST_QUEUE_MS)


if __name__ == "__main__":
    unittest.main()
