"""Callers who want more than their share of the lanes, by a slow algorithm or by many large scans, and honest ones.

What it asks for is about lanes. TLS and a proxy take cores beside them, which no lane shares out: with either it is not
tried every day.
"""

import pathlib
import sys
import time
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from drills.front import channel, served  # noqa: E402
from drills.honest import LEAST_MS, Drill  # noqa: E402
from foreign_client_test import scan_request  # noqa: E402
from harness import grpc, temporary_folder  # noqa: E402
from prefixd.v1 import primitives_pb2_grpc, types_pb2  # noqa: E402

SECONDS = 4  # Time for a p99.
MAX_SLOWER = 3  # Lanes are shared more strictly than all else.
LEAST_QUEUE_MS = 4 * LEAST_MS  # A stream of four pieces waits four times. Among 64 others each would wait for 64.


class Greedy:
    """So many calls of Scan at a time over so many connections, each followed by the next, until it is left."""

    def __init__(self, address, num_calls, num_connections, request):
        self.answered = 0
        self.errors = []
        self._request = request
        self._on = True
        self._channels = [channel(address) for _ in range(num_connections)]
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
        for connection in self._channels:
            connection.close()


class FairnessDrill(Drill):
    def setUp(self):
        self.socket = f"unix:{temporary_folder(self.addCleanup)}/prefixd.sock"

    def assert_was_served(self, greedy):
        self.assertEqual(greedy.errors, [])
        self.assertGreater(greedy.answered, 0)

    def test_naive_scans_are_below_all_others(self):
        naive = scan_request(np.ones(1 << 14, np.int32))
        naive.spec.algorithm.strategy = types_pb2.STRATEGY_NAIVE
        with served("--listen", self.socket) as place:
            with self.unharmed(place, (self.socket,), (place.address, "StreamScan"), alone_seconds=SECONDS,
                               max_slower=MAX_SLOWER):
                with Greedy(place.address, 64, 4, naive) as greedy:
                    time.sleep(SECONDS)  # While all call.
            self.assert_was_served(greedy)

    # A few calls keep the lane for large tasks busy, and cores too. Many more must not get more of it. They do get more
    # of the wire, which is not shared by caller, so it is the wait for a lane that counts.
    def test_many_large_scans_get_no_more_than_a_few(self):
        large = scan_request(np.ones(1 << 18, np.int32))
        with served("--listen", self.socket, "--lanes", "2") as place:
            with self.unharmed(place, (self.socket,), (self.socket, "StreamScan"), alone_seconds=SECONDS,
                               alone=Greedy(place.address, 4, 4, large), what="queue_p99_ms", max_slower=MAX_SLOWER,
                               least_ms=LEAST_QUEUE_MS):
                with Greedy(place.address, 64, 8, large) as greedy:
                    time.sleep(SECONDS)  # While all call.
            self.assert_was_served(greedy)


if __name__ == "__main__":
    unittest.main()
