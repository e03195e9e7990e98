"""Many callers stop, crawl, vanish, cancel or lie at once. The server serves the others, and frees all it held."""

import socket
import threading
import time
import unittest

import numpy as np

import faults
from crawling_proxy import CrawlingProxy
from faults import CHUNK, HELD_BACK_KIB, MIB, Requests
from foreign_client_test import chunk, reason, scan_request
from grpc.health.v1 import health_pb2, health_pb2_grpc
from harness import Server, grpc, grpc_version, temporary_folder, wait_until

from prefixd.v1 import primitives_pb2, primitives_pb2_grpc, types_pb2


class MisbehavingCallersTest(faults.FaultsTest):
    # What a reader holds who never reads, for as long as the tests take; and a message that crawls has not come.
    SERVER_FLAGS = ("--reply-timeout-seconds", "0", "--first-message-timeout-seconds", "0")

    def stall(self, num_callers):
        """Starts streams that send as long as they may and read nothing. Returns the calls, for the test to end."""
        calls = []
        for _ in range(num_callers):
            requests = Requests()
            requests.put(scan_request(CHUNK))
            for _ in range(64):
                requests.put(chunk(CHUNK))
            requests.end()
            call = self.connect().StreamScan(iter(requests))
            calls.append(call)
        return calls

    def test_a_minute_of_readers_that_stop_and_writers_that_crawl(self):
        idle = self.server.memory_kib()
        # They fill up what they may have, some of the 64 MiB that each sends, and not a byte more.
        stalled = self.stall(10)
        wait_until(lambda: self.info().requests.used == len(stalled))
        # A hundred requests that stop in the middle of their array: one byte a second from there on.
        with CrawlingProxy(self.server.address, fast=1000) as proxy:
            crawling = [self.connect(proxy.address).Scan.future(scan_request(CHUNK[:1000])) for _ in range(100)]
            for _ in range(5):
                time.sleep(1)  # Until what they may have has come; and for others, what they need again and again.
                self.assert_serves()
            memory, end = [], time.monotonic() + 60
            while time.monotonic() < end:
                time.sleep(1)  # In which a server without bounds would take on.
                self.assert_serves()
                memory.append(self.server.memory_kib())
            # What the others need comes and goes, so the least counts; what one of the readers wants to send is 64 MiB.
            self.assertLess(min(memory[-20:]) - min(memory[:20]), 32 * 1024 + HELD_BACK_KIB)
            self.assertLess(max(memory) - idle, len(stalled) * 20 * 1024)
            self.assertLessEqual(self.info().staging_bytes.used - self.idle_staging_bytes, len(stalled) * 4 * MIB)
            self.assertFalse(any(call.done() for call in crawling))
            proxy.hurry()
            for call in crawling:
                data = call.result(timeout=60).values.inline.data
                np.testing.assert_array_equal(np.frombuffer(data, np.int32), np.cumsum(CHUNK[:1000]))
        # One of the readers reads on, and gets all of it.
        data = b"".join(reply.values.inline.data for reply in stalled[0])
        np.testing.assert_array_equal(np.frombuffer(data, np.int32), np.cumsum(np.tile(CHUNK, 65), dtype=np.int32))
        for call in stalled[1:]:
            call.cancel()
        self.assert_all_is_freed()

    def test_messages_that_come_in_part_are_bounded_too(self):
        """The server charges nobody for a message that is not whole: it does not know yet what the message is."""
        items = np.ones(1_000_000, np.int32)
        request = primitives_pb2.ReduceRequest()
        request.spec.dtype, request.spec.op = types_pb2.DTYPE_I32, types_pb2.OP_SUM
        request.values.inline.data = items.tobytes()
        with (Server("--max-request-bytes", str(32 * MIB)) as server, grpc.insecure_channel(server.address) as channel,
              CrawlingProxy(server.address, fast=3_900_000) as proxy):
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            idle = server.memory_kib()
            halves = [self.connect(proxy.address).Reduce.future(request) for _ in range(100)]
            # With 64 MiB of them gRPC has begun to end calls.
            wait_until(lambda: sum(call.done() for call in halves) > 50)
            self.assertLess(server.memory_kib() - idle, 200 * 1024 + HELD_BACK_KIB)  # 390 MiB were sent.
            proxy.hurry()
            for call in halves:
                error = call.exception(timeout=60)
                if error is not None:  # The call was ended, or the connection.
                    self.assertIn(error.code(), (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE))
            # Newer gRPC has closed idle connections, and lets new ones in once it has memory again.
            answer = stub.Reduce(request, timeout=60, wait_for_ready=True)
            self.assertEqual(answer.value.int64_value, len(items))

    def test_questions_whose_messages_never_come_whole_are_bounded(self):
        """Nobody is charged for such a message, and a question about the server has no place among the requests."""
        question = health_pb2.HealthCheckRequest(service="x" * 4_000_000)
        elsewhere = f"unix:{temporary_folder(self.addCleanup)}/prefixd.sock"
        with (Server("--max-request-bytes", str(256 * MIB), "--first-message-timeout-seconds", "7", "--listen",
                     elsewhere) as server,
              CrawlingProxy(server.address, fast=3_900_000) as proxy):
            idle = server.memory_kib()
            channels = [grpc.insecure_channel(proxy.address, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(100)]
            halves = [health_pb2_grpc.HealthStub(channel).Check.future(question) for channel in channels]
            # Their address has three quarters of 128 MiB, for 24 of them. The others are ended after a second.
            wait_until(lambda: sum(half.done() for half in halves) >= 70)
            self.assertEqual({half.code() for half in halves if half.done()}, {grpc.StatusCode.RESOURCE_EXHAUSTED})
            # gRPC had a window of each, 64 KiB at first; newer gRPC's windows are as large as messages.
            if grpc_version() < (1, 60):
                self.assertLess(server.memory_kib() - idle, 200 * 1024 + HELD_BACK_KIB)
            with grpc.insecure_channel(elsewhere) as channel:  # Another's question is answered.
                health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)
            for half, channel in zip(halves, channels):
                half.cancel()
                channel.close()

    def test_compressed_messages_are_refused(self):
        """gRPC would unpack them, to a thousand times their size, before anybody checks the size."""
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.Scan(scan_request(np.zeros(1000, np.int32)), compression=grpc.Compression.Gzip, timeout=60)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assert_serves()

    def test_idle_streams_hold_nothing_that_replies_are_sent_from(self):
        starving = [Requests() for _ in range(20)]
        stub = self.connect()
        calls = [stub.StreamScan(iter(requests)) for requests in starving]
        for requests, call in zip(starving, calls):
            requests.put(scan_request(CHUNK))
            self.assertEqual(len(next(call).values.inline.data), MIB)
        wait_until(lambda: self.info().staging_bytes.used == self.idle_staging_bytes)
        self.assertEqual(self.info().requests.used, len(calls))
        for requests in starving:
            requests.end()
        for call in calls:
            self.assertEqual([len(reply.values.inline.data) for reply in call], [0])
        self.assert_all_is_freed()

    def test_a_hundred_streams_of_an_item_a_second(self):
        crawlers = [Requests() for _ in range(100)]
        stub = self.connect()
        calls = [stub.StreamScan(iter(requests)) for requests in crawlers]
        for requests in crawlers:
            requests.put(scan_request(CHUNK[:1]))
        for second in range(3):
            time.sleep(1)  # The crawling itself.
            for requests in crawlers:
                requests.put(chunk(CHUNK[:1]))
            self.assert_serves()
        for requests in crawlers:
            requests.end()
        for call in calls:
            self.assertEqual(sum(len(reply.values.inline.data) for reply in call), 4 * 4)
        self.assert_all_is_freed()

    def test_callers_that_vanish(self):
        for call in self.stall(8):
            next(call)  # It is in full flow.
        for channel in self.channels[1:]:
            channel.close()
        self.assert_serves()
        self.assert_all_is_freed()

    def test_a_thousand_cancellations_a_second(self):
        stop = time.monotonic() + 3
        cancelled = [0] * 4

        def cancel(i):
            stub = primitives_pb2_grpc.PrefixServiceStub(channels[i])
            while time.monotonic() < stop or sum(cancelled) <= 100:
                stub.Scan.future(scan_request(CHUNK[: 1000 * (1 + i)])).cancel()
                stub.StreamScan(iter([scan_request(CHUNK), chunk(CHUNK)])).cancel()
                cancelled[i] += 2

        for _ in cancelled:
            self.connect()
        channels = self.channels[-len(cancelled):]
        threads = [threading.Thread(target=cancel, args=(i,)) for i in range(len(cancelled))]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            self.assert_serves()
        for thread in threads:
            thread.join()
        self.assert_all_is_freed()

    def test_a_header_that_can_not_be_sent_back_is_survived(self):
        def field(name, value):  # HPACK: literal, never indexed, not Huffman coded.
            return b"\x10" + bytes([len(name)]) + name + bytes([len(value)]) + value

        def frame(kind, flags, stream, payload):
            return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

        with Server() as server:
            host, port = server.address.split(":")
            for value in (b"nul\0x", b"line\nfeed", b"\x80"):
                headers = (field(b":method", b"POST") + field(b":scheme", b"http") + field(b":authority", b"x") +
                           field(b":path", b"/prefixd.v1.PrefixService/Scan") + field(b"te", b"trailers") +
                           field(b"content-type", b"application/grpc") + field(b"traceparent", value))
                with socket.create_connection((host, int(port))) as connection:
                    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") +
                                       frame(1, 4, 1, headers) + frame(0, 1, 1, b"\0\0\0\0\0"))
                    connection.settimeout(1)
                    try:
                        while connection.recv(4096):
                            pass
                    except TimeoutError:
                        pass
            with grpc.insecure_channel(server.address) as channel:
                stub = primitives_pb2_grpc.PrefixServiceStub(channel)
                stub.Scan(scan_request(np.ones(1, np.int32)))

    def test_lengths_that_can_not_be(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.Scan(scan_request(CHUNK[:4], num_items=1 << 63))
        self.assertEqual((caught.exception.code(), reason(caught.exception)),
                         (grpc.StatusCode.INVALID_ARGUMENT, "COUNT_MISMATCH"))
        scan = self.channels[-1].unary_unary("/prefixd.v1.PrefixService/Scan")
        # Field 100, of 2^63 bytes, of 2^31, and of one more than there are.
        for length in (b"\x80" * 9 + b"\x01", b"\x80\x80\x80\x80\x08", b"\x05"):
            with self.subTest(length=length), self.assertRaises(grpc.RpcError) as caught:
                scan(b"\xa2\x06" + length + b"1234")
            self.assertEqual((caught.exception.code(), reason(caught.exception)),
                             (grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED"))
        self.assert_serves()


if __name__ == "__main__":
    unittest.main()
