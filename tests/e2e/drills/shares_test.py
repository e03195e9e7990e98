"""Callers who hold on to what they got: nobody else is refused, and what they hold comes back."""

import collections
import contextlib
import pathlib
import sys
import threading
import time
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import raw_http2  # noqa: E402
from drills.honest import Honest  # noqa: E402
from foreign_client_test import scan_request  # noqa: E402
from harness import Server, grpc, wait_until  # noqa: E402
from prefixd.v1 import admin_pb2, admin_pb2_grpc, primitives_pb2, primitives_pb2_grpc  # noqa: E402

# A peer that never opens its windows: SETTINGS_INITIAL_WINDOW_SIZE 0.
NO_WINDOW = b"\x00\x04\x00\x00\x00\x00"
TIMEOUT_SECONDS = 3
TIMEOUTS = ("--first-message-timeout-seconds", str(TIMEOUT_SECONDS), "--message-timeout-seconds", str(TIMEOUT_SECONDS),
            "--reply-timeout-seconds", str(TIMEOUT_SECONDS))


class RawCalls:
    """Calls on one connection that sends as much as it may, and takes nothing."""

    def __init__(self, address):
        self.connection = raw_http2.connect(address, NO_WINDOW)
        self.next_stream = 1
        self.windows = collections.defaultdict(lambda: 65535)  # By stream; 0 is the connection's.
        self.opened = threading.Condition()
        threading.Thread(target=self._take_windows, daemon=True).start()

    def _take_windows(self):
        try:
            for kind, _, stream, payload in raw_http2.read_frames(self.connection):
                if kind == raw_http2.WINDOW_UPDATE:
                    with self.opened:
                        self.windows[stream] += int.from_bytes(payload, "big")
                        self.opened.notify_all()
        except OSError:
            pass

    def open(self, path, payload=None, ends=True):
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        self.connection.sendall(raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, stream,
                                                raw_http2.headers(path)))
        rest = b"" if payload is None else raw_http2.message(payload)
        while rest:
            with self.opened:
                size = lambda: min(len(rest), 16384, self.windows[0], self.windows[stream])  # noqa: E731
                if not self.opened.wait_for(lambda: size() > 0, timeout=20):
                    raise AssertionError("the server takes nothing any more")
                part, rest = rest[:size()], rest[size():]
                self.windows[0] -= len(part)
                self.windows[stream] -= len(part)
            flags = raw_http2.END_STREAM if ends and not rest else 0
            self.connection.sendall(raw_http2.frame(raw_http2.DATA, flags, stream, part))

    def close(self):
        self.connection.close()


class SharesDrill(unittest.TestCase):
    def info(self, server):
        with grpc.insecure_channel(server.address) as channel:
            return admin_pb2_grpc.AdminServiceStub(channel).GetServerInfo(admin_pb2.GetServerInfoRequest(), timeout=10)

    def assert_others_are_served(self, server, hold):
        """While `hold` holds, and after: an honest caller on the same address, and one who comes later."""
        with Honest(server.address) as early:
            held = hold()
            with Honest(server.address) as late:
                time.sleep(1)
        for caller in (early, late):
            self.assertEqual(caller.failures, 0, caller.errors)
            self.assertGreater(caller.calls, 0)
        return held

    def assert_all_comes_back(self, server):
        """Nobody closes anything: the server ends what is silent, and says why."""
        wait_until(lambda: self.info(server).requests.used == 0 and self.info(server).request_bytes.used < 1 << 20)

    def test_echoes_that_are_not_read(self):
        payload = bytes(1 << 18)
        with Server(*TIMEOUTS) as server:
            def hold():
                calls = [RawCalls(server.address) for _ in range(2)]
                for i in range(600):
                    calls[i % 2].open("/prefixd.v1.DiagnosticsService/Echo", payload)
                return calls
            calls = self.assert_others_are_served(server, hold)
            self.assert_all_comes_back(server)
            self.assertIn("REPLY_TIMEOUT", server.log())
            for call in calls:
                call.close()

    def test_a_connection_that_breaks_inside_an_echo(self):
        with Server() as server:
            for _ in range(20):
                with raw_http2.connect(server.address) as connection:
                    connection.sendall(raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 1,
                                                       raw_http2.headers("/prefixd.v1.DiagnosticsService/Echo")) +
                                       raw_http2.frame(raw_http2.DATA, 0, 1, raw_http2.message(bytes(1000))[:500]))
                with (contextlib.suppress(OSError), raw_http2.connect(server.address) as connection):
                    # A frame above the size that is allowed.
                    connection.sendall(raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 1,
                                                       raw_http2.headers("/prefixd.v1.DiagnosticsService/Echo")) +
                                       raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, 1, bytes(1 << 15)))
                    for _ in raw_http2.read_frames(connection):
                        pass
            with Honest(server.address) as after:
                pass
            self.assertEqual(after.failures, 0, after.errors)
            self.assertIsNone(server.process.poll(), server.log())

    def test_infos_that_are_not_read(self):
        with Server(*TIMEOUTS) as server:
            idle = server.memory_kib()

            def hold():
                calls = [RawCalls(server.address) for _ in range(8)]
                for i in range(8000):
                    calls[i % 8].open("/prefixd.v1.AdminService/GetServerInfo", b"")
                return calls
            calls = self.assert_others_are_served(server, hold)
            self.assertLess(server.memory_kib() - idle, 512 * 1024)
            self.assert_all_comes_back(server)
            for call in calls:
                call.close()

    def test_streams_that_send_only_a_spec(self):
        spec = scan_request(np.empty(0, np.int32)).SerializeToString()
        with Server(*TIMEOUTS) as server:
            def hold():
                calls = RawCalls(server.address)
                for _ in range(200):
                    calls.open("/prefixd.v1.PrefixService/StreamScan", spec, ends=False)
                return calls
            calls = self.assert_others_are_served(server, hold)
            wait_until(lambda: "MESSAGE_TIMEOUT" in server.log())
            self.assert_all_comes_back(server)
            calls.close()

    def test_streams_that_never_send(self):
        with Server(*TIMEOUTS) as server:
            def hold():
                calls = [RawCalls(server.address) for _ in range(10)]
                for i in range(10_000):
                    calls[i % 10].open("/prefixd.v1.PrefixService/StreamScan")
                return calls
            calls = self.assert_others_are_served(server, hold)
            wait_until(lambda: "FIRST_MESSAGE_TIMEOUT" in server.log())
            self.assert_all_comes_back(server)
            for call in calls:
                call.close()

    def test_more_streams_than_there_are_bytes_for_all_come_to_their_end(self):
        """They wait for each other's bytes; none is refused in its middle, and nothing stands still."""
        values = np.arange(1 << 19, dtype=np.int32)
        with Server("--max-request-bytes", str(64 << 20)) as server:
            def run(results, i):
                request = scan_request(values)

                def requests():
                    yield request
                    for _ in range(4):
                        chunk = primitives_pb2.ScanRequest()
                        chunk.values.inline.data = values.tobytes()
                        yield chunk
                with grpc.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
                    stub = primitives_pb2_grpc.PrefixServiceStub(channel)
                    for _ in range(100):
                        try:
                            replies = list(stub.StreamScan(requests(), timeout=60))
                            results[i] = sum(len(reply.values.inline.data) for reply in replies)
                            return
                        except grpc.RpcError as error:
                            refused_at_first = "the request needs" in error.details()
                            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED or not refused_at_first:
                                raise
                            time.sleep(0.1)
            results = [None] * 16
            threads = [threading.Thread(target=run, args=(results, i)) for i in range(len(results))]
            with Honest(server.address) as honest:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assertEqual(results, [5 * values.nbytes] * len(results))
            self.assertEqual(honest.failures, 0, honest.errors)


if __name__ == "__main__":
    unittest.main()
