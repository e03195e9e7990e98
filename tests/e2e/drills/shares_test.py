"""Callers who hold on to what they got, and read nothing: nobody else is refused, and what they hold comes back."""

import contextlib
import pathlib
import sys
import threading
import time
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from drills.front import COMMAND, channel, served  # noqa: E402
from drills.holding import TIMEOUTS, HoldingDrill, RawCalls  # noqa: E402
from foreign_client_test import scan_request  # noqa: E402
from harness import grpc, temporary_folder  # noqa: E402
from prefixd.v1 import primitives_pb2, primitives_pb2_grpc  # noqa: E402


class SharesDrill(HoldingDrill):
    def test_echoes_that_are_not_read(self):
        payload = bytes(1 << 18)
        with served(*TIMEOUTS) as place:
            def hold():
                calls = [RawCalls(place.address) for _ in range(2)]
                for i in range(600):
                    calls[i % len(calls)].open("/prefixd.v1.DiagnosticsService/Echo", payload)
                return calls
            calls = self.assert_others_are_served(place, hold)
            self.assert_all_comes_back(place)
            place.server.wait_for_log("REPLY_TIMEOUT")
            for call in calls:
                call.close()

    def test_infos_that_are_not_read(self):
        with served(*TIMEOUTS) as place:
            def hold():
                calls = [RawCalls(place.address) for _ in range(16)]
                for i in range(8000):
                    calls[i % len(calls)].open("/prefixd.v1.AdminService/GetServerInfo", b"")
                return calls
            calls = self.assert_others_are_served(place, hold, max_growth_kib=256 * 1024)
            self.assert_all_comes_back(place)
            for call in calls:
                call.close()

    def test_streams_that_send_only_a_spec(self):
        spec = scan_request(np.empty(0, np.int32)).SerializeToString()
        with served(*TIMEOUTS) as place:
            def hold():
                calls = RawCalls(place.address)
                for _ in range(200):
                    calls.open("/prefixd.v1.PrefixService/StreamScan", spec, ends=False)
                return calls
            calls = self.assert_others_are_served(place, hold)
            place.server.wait_for_log("MESSAGE_TIMEOUT")
            self.assert_all_comes_back(place)
            calls.close()

    def test_more_streams_than_there_are_bytes_for_all_come_to_their_end(self):
        """They wait for each other's bytes; none is refused in its middle, and nothing stands still. They keep all cores
        busy, with TLS above all, and cores are not shared by caller: it is the wait for a lane that counts."""
        values = np.arange(1 << 19, dtype=np.int32)
        # Behind a proxy the streams and an honest caller there had one address, and were one caller.
        elsewhere = f"unix:{temporary_folder(self.addCleanup)}/prefixd.sock"
        with served("--listen", elsewhere, "--max-request-bytes", str(64 << 20)) as place:
            def run(results, i):
                request = scan_request(values)

                def requests():
                    yield request
                    for _ in range(4):
                        chunk = primitives_pb2.ScanRequest()
                        chunk.values.inline.data = values.tobytes()
                        yield chunk
                with channel(place.address) as connection:
                    stub = primitives_pb2_grpc.PrefixServiceStub(connection)
                    for _ in range(100):
                        try:
                            replies = list(stub.StreamScan(requests(), timeout=60))
                            results[i] = sum(len(reply.values.inline.data) for reply in replies)
                            return
                        except grpc.RpcError as error:
                            if COMMAND and (error.code() == grpc.StatusCode.CANCELLED or
                                            error.details() == "Stream removed"):
                                continue  # What HAProxy 2.6 makes of a refusal: docs/operations.md, Behind a proxy.
                            refused_at_first = "the request needs" in error.details()
                            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED or not refused_at_first:
                                raise
                            time.sleep(0.1)  # Until it tries again.

            results = [None] * 16
            threads = [threading.Thread(target=run, args=(results, i)) for i in range(len(results))]
            with self.unharmed(place, (elsewhere,), what="queue_p99_ms"):
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assertEqual(results, [5 * values.nbytes] * len(results))

    def test_unknown_methods_are_answered_at_once(self):
        with served() as place:
            def hold():
                calls = RawCalls(place.address)
                with contextlib.suppress(OSError):  # The server has ended it: it is slow to read what is refused.
                    for _ in range(5000):
                        calls.open("/no.such.Service/Method")
                return calls
            calls = self.assert_others_are_served(place, hold)
            self.assert_all_comes_back(place)
            calls.close()


if __name__ == "__main__":
    unittest.main()
