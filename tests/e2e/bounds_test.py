"""What callers may hold of the server: places, memory, threads; and that it comes back."""

import itertools
import os
import pathlib
import subprocess
import sys
import threading
import time
import unittest

import numpy as np

import raw_http2
from harness import LIMIT_SECONDS, Server, grpc, wait_until

from grpc.health.v1 import health_pb2, health_pb2_grpc
from prefixd.v1 import admin_pb2, admin_pb2_grpc, primitives_pb2, primitives_pb2_grpc, types_pb2
from admin_test import REFLECTION
from foreign_client_test import chunk, reason, scan_request


def requests_in_flight(channel):
    return admin_pb2_grpc.AdminServiceStub(channel).GetServerInfo(admin_pb2.GetServerInfoRequest()).requests.used


class BoundsTest(unittest.TestCase):
    def test_requests_over_the_budget_are_refused_and_then_taken(self):
        with Server("--max-requests", "2", "--caller-share-percent", "100") as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            end = threading.Event()

            def requests():
                yield scan_request(np.ones(1, np.int32))
                end.wait(LIMIT_SECONDS)

            streams = [stub.StreamScan(requests()) for _ in range(2)]
            for stream in streams:
                next(stream)
            with self.assertRaises(grpc.RpcError) as caught:
                stub.Scan(scan_request(np.ones(1, np.int32)))
            self.assertEqual(reason(caught.exception), "REQUEST_BUDGET")
            end.set()
            for stream in streams:
                list(stream)
            wait_until(lambda: requests_in_flight(channel) == 0)
            stub.Scan(scan_request(np.ones(1, np.int32)))

    def test_a_caller_that_was_answered_is_not_in_its_own_way(self):
        with Server("--max-requests", "1", "--caller-share-percent", "100") as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            for _ in range(300):
                stub.Scan(scan_request(np.ones(1024, np.float32)))
                list(stub.StreamScan(iter([scan_request(np.ones(1024, np.float32))])))

    def test_questions_whose_answers_are_not_read_are_bounded(self):
        with Server() as server, grpc.insecure_channel(server.address) as channel:
            ask = admin_pb2_grpc.AdminServiceStub(channel).GetServerInfo

            def answered_and_refused(count):
                """Of so many on a connection that takes no data."""
                with raw_http2.connect(server.address, raw_http2.NO_WINDOW) as connection:
                    for stream in range(1, 2 * count, 2):
                        connection.sendall(raw_http2.frame(
                            raw_http2.HEADERS, raw_http2.END_HEADERS, stream,
                            raw_http2.headers("/prefixd.v1.AdminService/GetServerInfo")) + raw_http2.frame(
                            raw_http2.DATA, raw_http2.END_STREAM, stream, raw_http2.message(b"")))
                    headers = (flags for kind, flags, _, _ in raw_http2.read_frames(connection)
                               if kind == raw_http2.HEADERS)
                    refused = [bool(flags & raw_http2.END_STREAM) for flags in itertools.islice(headers, count)]
                    ask(admin_pb2.GetServerInfoRequest(), timeout=30)  # Others are answered.
                    return refused.count(False), refused.count(True)

            # A caller has half of 1,024, and a connection half of that.
            self.assertEqual(answered_and_refused(500), (256, 244))
            wait_until(lambda: ask(admin_pb2.GetServerInfoRequest()).request_bytes.used == 0)
            self.assertEqual(answered_and_refused(256), (256, 0))

    def test_a_message_above_the_limit_is_no_end_of_the_stream(self):
        with Server("--max-message-bytes", str(2 << 20)) as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            large = np.ones(1 << 20, np.int32)
            for requests in ([scan_request(large)], [scan_request(large[:100]), chunk(large)]):
                with self.assertRaises(grpc.RpcError) as caught:
                    list(stub.StreamScan(iter(requests)))
                self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            wait_until(lambda: server.log().count("method=") == 2)
            self.assertEqual(server.log().count("--max-message-bytes"), 2)

    def test_calls_that_wait_take_no_thread(self):
        with Server() as server, grpc.insecure_channel(server.address) as channel:
            def threads():
                return len(os.listdir(f"/proc/{server.process.pid}/task"))
            list(channel.stream_stream(REFLECTION)(iter([b"\x3a\x00"])))
            before, end = threads(), threading.Event()
            calls = [channel.stream_stream(REFLECTION)(iter(end.wait, True)) for _ in range(60)]
            watches = [health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest()) for _ in range(60)]
            for watch in watches:
                next(watch)
            self.assertLess(threads(), before + 8)
            end.set()
            for call in calls + watches:
                call.cancel()

    def test_streams_pass_through_in_bounded_memory(self):
        """Sends 1 GiB through one stream whose reader falls behind. The server's memory stays in its share."""
        chunks, items = 1024, 1 << 18
        ones = np.ones(items, np.int32)
        with Server() as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            # Once through, so that what is allocated once is.
            list(stub.StreamScan(iter([scan_request(ones)] + [chunk(ones)] * 8)))
            before = server.memory_kib()
            requests = (scan_request(ones) if i == 0 else chunk(ones) for i in range(chunks))
            total, most = 0, 0
            for i, reply in enumerate(stub.StreamScan(requests)):
                total += len(reply.values.inline.data)
                if i == 10:
                    time.sleep(0.5)  # A reader that pauses, for what would pile up meanwhile.
                if i % 50 == 0:
                    most = max(most, server.memory_kib())
            self.assertEqual(total, chunks * items * 4)
            # A stream's share is 16 MiB; the rest is gRPC's own windows and the allocator's habits.
            self.assertLess(most - before, 200 << 10)

    def test_readers_that_do_not_read_hold_their_share_and_no_more(self):
        streams, items = 12, 1 << 20
        with Server() as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            end = threading.Event()

            def requests():
                request = primitives_pb2.CompactRequest()
                request.spec.dtype = types_pb2.DTYPE_I32
                request.spec.predicate.comparison = primitives_pb2.COMPARISON_IS_FINITE
                request.spec.return_indices = True
                request.values.inline.data = np.ones(items - 1024, np.int32).tobytes()
                yield request
                request.ClearField("spec")
                while not end.is_set():
                    yield request

            def takes_no_more():
                earlier = server.memory_kib()
                time.sleep(2)  # In which a server without bounds would take on.
                now = server.memory_kib()
                self.assertLess(now - before, streams * 80 << 10)  # A second brings in 1 GiB and more.
                return now - earlier < streams << 10

            before = server.memory_kib()
            calls = [stub.StreamCompact(requests()) for _ in range(streams)]
            for call in calls:
                next(call)
            # They stop reading; the server takes what it may hold, and gRPC what its windows allow.
            try:
                wait_until(takes_no_more)
            finally:
                end.set()
                for call in calls:
                    call.cancel()

    def test_a_caller_that_is_killed_in_mid_stream_leaves_nothing_behind(self):
        script = """
import sys
sys.path[:0] = [{folder!r}]
import numpy as np
from harness import grpc
from prefixd.v1 import primitives_pb2_grpc
from foreign_client_test import chunk, scan_request
def requests():
    yield scan_request(np.ones(1 << 18, np.int32))
    print("sent", flush=True)
    while True:
        yield chunk(np.ones(1 << 18, np.int32))
for reply in primitives_pb2_grpc.PrefixServiceStub(grpc.insecure_channel({address!r})).StreamScan(requests()):
    pass
"""
        with Server("--lanes", "1") as server, grpc.insecure_channel(server.address) as channel:
            folder = str(pathlib.Path(__file__).parent)
            process = subprocess.Popen([sys.executable, "-c", script.format(folder=folder, address=server.address)],
                                       stdout=subprocess.PIPE)
            process.stdout.readline()
            wait_until(lambda: requests_in_flight(channel) == 1)
            process.kill()
            process.wait()
            process.stdout.close()
            wait_until(lambda: requests_in_flight(channel) == 0)
            server.wait_for_log("method=")
            self.assertIn('status="CANCELLED"', server.log())
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            stub.Scan(scan_request(np.ones(1, np.int32)))


if __name__ == "__main__":
    unittest.main()
