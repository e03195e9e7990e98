"""Callers who begin thousands of calls and then say nothing, or whose calls last: nobody else is refused, and what they
hold comes back."""

import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from drills.front import channel, served  # noqa: E402
from drills.holding import TIMEOUTS, HoldingDrill, RawCalls  # noqa: E402
from harness import grpc  # noqa: E402
from grpc.health.v1 import health_pb2, health_pb2_grpc  # noqa: E402


class SilenceDrill(HoldingDrill):
    def test_streams_that_never_send(self):
        with served(*TIMEOUTS) as place:
            def hold():
                calls = [RawCalls(place.address) for _ in range(20)]
                for i in range(10_000):
                    calls[i % len(calls)].open("/prefixd.v1.PrefixService/StreamScan")
                return calls
            calls = self.assert_others_are_served(place, hold)
            place.server.wait_for_log("FIRST_MESSAGE_TIMEOUT")
            self.assert_all_comes_back(place)
            for call in calls:
                call.close()

    def test_calls_of_one_message_that_never_send(self):
        methods = ("prefixd.v1.PrefixService/Scan", "prefixd.v1.PrefixService/Difference",
                   "prefixd.v1.DiagnosticsService/Echo", "prefixd.v1.AdminService/GetServerInfo",
                   "grpc.health.v1.Health/Check", "grpc.health.v1.Health/Watch",
                   "grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        with served(*TIMEOUTS) as place:
            def hold():
                calls = [RawCalls(place.address) for _ in range(14)]
                for i in range(7000):
                    calls[i % len(calls)].open("/" + methods[i // len(calls) % 7])
                return calls
            # Those of the four methods that are no requests are ended after a second, but for what fits their caller's
            # share. What is left is charged: 20 KiB each, half of the requests' places and some hundred questions.
            calls = self.assert_others_are_served(place, hold, least_bytes=400 * 20 * 1024, max_growth_kib=256 * 1024)
            self.assert_all_comes_back(place)
            place.server.wait_for_log("FIRST_MESSAGE_TIMEOUT")
            for call in calls:
                call.close()

    def test_watches_that_are_not_read(self):
        """And one that is, which says nothing for longer than any limit: that is what a watch is for."""
        with served(*TIMEOUTS) as place, channel(place.address) as connection:
            watch = health_pb2_grpc.HealthStub(connection).Watch(health_pb2.HealthCheckRequest())
            self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVING)

            def hold():
                calls = [RawCalls(place.address) for _ in range(8)]
                for i in range(4000):
                    calls[i % len(calls)].open("/grpc.health.v1.Health/Watch", b"")
                return calls
            calls = self.assert_others_are_served(place, hold, least_bytes=3000 * 20 * 1024)
            self.assert_all_comes_back(place)
            for call in calls:
                call.close()
            began = time.monotonic()
            place.server.process.send_signal(signal.SIGTERM)
            self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.NOT_SERVING)
            with self.assertRaises(grpc.RpcError) as raised:
                next(watch)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertEqual(place.server.stop(), 0)
            self.assertLess(time.monotonic() - began, 10)  # It could have drained for 30 s.

    def test_questions_leave_room_for_others(self):
        """They have no place among the requests, and yet a share that they can't exceed."""
        with served(*TIMEOUTS, "--max-request-bytes", str(64 << 20)) as place:
            def hold():
                calls = [RawCalls(place.address) for _ in range(10)]
                for i in range(5000):
                    calls[i % len(calls)].open("/grpc.health.v1.Health/Watch")
                return calls
            calls = self.assert_others_are_served(place, hold)
            self.assert_all_comes_back(place)
            for call in calls:
                call.close()


if __name__ == "__main__":
    unittest.main()
