"""Callers who hold on to what they got: nobody else is refused, and what they hold comes back."""

import collections
import contextlib
import os
import pathlib
import signal
import sys
import threading
import time
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import raw_http2  # noqa: E402
from drills.front import COMMAND, HOSTILE_HOST, served  # noqa: E402
from drills.honest import Honest  # noqa: E402
from foreign_client_test import scan_request  # noqa: E402
from harness import grpc, wait_until  # noqa: E402
from grpc.health.v1 import health_pb2, health_pb2_grpc  # noqa: E402
from prefixd.v1 import admin_pb2, admin_pb2_grpc, primitives_pb2, primitives_pb2_grpc  # noqa: E402

# A peer that never opens its windows: SETTINGS_INITIAL_WINDOW_SIZE 0.
NO_WINDOW = b"\x00\x04\x00\x00\x00\x00"
TIMEOUT_SECONDS = 3
TIMEOUTS = ("--first-message-timeout-seconds", str(TIMEOUT_SECONDS), "--message-timeout-seconds", str(TIMEOUT_SECONDS),
            "--reply-timeout-seconds", str(TIMEOUT_SECONDS))
os.environ["PROXY_UNREAD_SECONDS"] = str(TIMEOUT_SECONDS)  # For HAProxy, which holds small replies.


class RawCalls:
    """Calls on one connection that sends as much as it may, and takes nothing. A proxy resets the calls that it does
    not let through: nothing more is sent of those."""

    def __init__(self, address):
        self.connection = raw_http2.connect(address, NO_WINDOW, HOSTILE_HOST)
        self.next_stream = 1
        self.initial_window = 65535
        self.windows = collections.defaultdict(lambda: self.initial_window)  # By stream; 0 is the connection's.
        self.reset = set()
        self.is_full = False
        self.opened = threading.Condition()
        threading.Thread(target=self._take_windows, daemon=True).start()

    def _take_windows(self):
        try:
            for kind, _, stream, payload in raw_http2.read_frames(self.connection):
                with self.opened:
                    if kind == raw_http2.SETTINGS:
                        self._take_initial_window(raw_http2.settings(payload).get(raw_http2.INITIAL_WINDOW_SIZE))
                    elif kind == raw_http2.WINDOW_UPDATE:
                        self.windows[stream] += int.from_bytes(payload, "big")
                    elif kind == raw_http2.RST_STREAM:
                        self.reset.add(stream)
                    self.opened.notify_all()
        except OSError:
            pass

    def _take_initial_window(self, size):
        """Of all streams, those too that are there. gRPC 1.83 says so what 1.51 says with updates of windows."""
        if size is None:
            return
        for stream in self.windows:
            if stream != 0:
                self.windows[stream] += size - self.initial_window
        self.windows.setdefault(0, 65535)
        self.initial_window = size

    def open(self, path, payload=None, ends=True):
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        self.connection.sendall(raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, stream,
                                                raw_http2.headers(path)))
        rest = b"" if payload is None or self.is_full else raw_http2.message(payload)
        while rest:
            with self.opened:
                size = lambda: min(len(rest), 16384, self.windows[0], self.windows[stream])  # noqa: E731
                if not self.opened.wait_for(lambda: size() > 0 or stream in self.reset, timeout=2 if COMMAND else 20):
                    if not COMMAND:
                        raise AssertionError("the server takes nothing any more")
                    self.is_full = True  # A proxy takes no more from a connection than it can pass on.
                if self.is_full or stream in self.reset:
                    return
                part, rest = rest[:size()], rest[size():]
                self.windows[0] -= len(part)
                self.windows[stream] -= len(part)
            flags = raw_http2.END_STREAM if ends and not rest else 0
            self.connection.sendall(raw_http2.frame(raw_http2.DATA, flags, stream, part))

    def close(self):
        self.connection.close()


class SharesDrill(unittest.TestCase):
    def info(self, place):
        with grpc.insecure_channel(place.server.address) as channel:
            return admin_pb2_grpc.AdminServiceStub(channel).GetServerInfo(admin_pb2.GetServerInfoRequest(), timeout=10)

    def assert_others_are_served(self, place, hold):
        """While `hold` holds, and after: an honest caller on the same address, and one who comes later."""
        with Honest(place.address) as early:
            held = hold()
            with Honest(place.address) as late:
                time.sleep(1)  # While both call.
        for caller in (early, late):
            self.assertEqual(caller.failures, 0, caller.errors)
            self.assertGreater(caller.calls, 0)
        return held

    def assert_all_comes_back(self, place):
        """Nobody closes anything: the server ends what is silent, and says why."""
        wait_until(lambda: self.info(place).requests.used == 0 and self.info(place).request_bytes.used < 1 << 20)

    def test_echoes_that_are_not_read(self):
        payload = bytes(1 << 18)
        with served(*TIMEOUTS) as place:
            def hold():
                calls = [RawCalls(place.address) for _ in range(2)]
                for i in range(600):
                    calls[i % 2].open("/prefixd.v1.DiagnosticsService/Echo", payload)
                return calls
            calls = self.assert_others_are_served(place, hold)
            self.assert_all_comes_back(place)
            self.assertIn("REPLY_TIMEOUT", place.server.log())
            for call in calls:
                call.close()

    def test_a_connection_that_breaks_inside_an_echo(self):
        with served() as place:
            for _ in range(20):
                with raw_http2.connect(place.address) as connection:
                    connection.sendall(raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 1,
                                                       raw_http2.headers("/prefixd.v1.DiagnosticsService/Echo")) +
                                       raw_http2.frame(raw_http2.DATA, 0, 1, raw_http2.message(bytes(1000))[:500]))
                with (contextlib.suppress(OSError), raw_http2.connect(place.address) as connection):
                    # A frame above the size that is allowed.
                    connection.sendall(raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 1,
                                                       raw_http2.headers("/prefixd.v1.DiagnosticsService/Echo")) +
                                       raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, 1, bytes(1 << 15)))
                    for kind, flags, stream, _ in raw_http2.read_frames(connection):
                        if stream == 1 and (kind == raw_http2.RST_STREAM or flags & raw_http2.END_STREAM):
                            break  # A proxy may allow so large a frame.
            with Honest(place.address) as after:
                pass
            self.assertEqual(after.failures, 0, after.errors)
            self.assertIsNone(place.server.process.poll(), place.server.log())

    def test_infos_that_are_not_read(self):
        with served(*TIMEOUTS) as place:
            idle = sum(place.memory_kib().values())

            def hold():
                calls = [RawCalls(place.address) for _ in range(8)]
                for i in range(8000):
                    calls[i % 8].open("/prefixd.v1.AdminService/GetServerInfo", b"")
                return calls
            calls = self.assert_others_are_served(place, hold)
            self.assertLess(sum(place.memory_kib().values()) - idle, 512 * 1024)
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
            wait_until(lambda: "MESSAGE_TIMEOUT" in place.server.log())
            self.assert_all_comes_back(place)
            calls.close()

    def test_streams_that_never_send(self):
        with served(*TIMEOUTS) as place:
            def hold():
                calls = [RawCalls(place.address) for _ in range(10)]
                for i in range(10_000):
                    calls[i % 10].open("/prefixd.v1.PrefixService/StreamScan")
                return calls
            calls = self.assert_others_are_served(place, hold)
            wait_until(lambda: "FIRST_MESSAGE_TIMEOUT" in place.server.log())
            self.assert_all_comes_back(place)
            for call in calls:
                call.close()

    def test_calls_of_one_message_that_never_send(self):
        methods = ("prefixd.v1.PrefixService/Scan", "prefixd.v1.PrefixService/Difference",
                   "prefixd.v1.DiagnosticsService/Echo", "prefixd.v1.AdminService/GetServerInfo",
                   "grpc.health.v1.Health/Check", "grpc.health.v1.Health/Watch",
                   "grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        with served(*TIMEOUTS) as place:
            idle = sum(place.memory_kib().values())

            def hold():
                calls = [RawCalls(place.address) for _ in range(7)]
                for i in range(7000):
                    calls[i % 7].open("/" + methods[i // 7 % 7])
                return calls
            calls = self.assert_others_are_served(place, hold)
            # At least those of the four methods that are no requests: 4,000 calls of 20 KiB.
            if not COMMAND:  # Which lets a hundred calls of a connection through.
                self.assertGreater(self.info(place).request_bytes.used, 3000 * 20 * 1024)
            self.assertLess(sum(place.memory_kib().values()) - idle, 256 * 1024)
            self.assert_all_comes_back(place)
            wait_until(lambda: "FIRST_MESSAGE_TIMEOUT" in place.server.log())
            for call in calls:
                call.close()

    def test_watches_that_are_not_read(self):
        """And one that is, which says nothing for longer than any limit: that is what a watch is for."""
        with served(*TIMEOUTS) as place, grpc.insecure_channel(place.address) as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVING)

            def hold():
                calls = [RawCalls(place.address) for _ in range(4)]
                for i in range(4000):
                    calls[i % 4].open("/grpc.health.v1.Health/Watch", b"")
                return calls
            calls = self.assert_others_are_served(place, hold)
            if not COMMAND:  # Which lets a hundred calls of a connection through.
                self.assertGreater(self.info(place).request_bytes.used, 3000 * 20 * 1024)
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
                calls = [RawCalls(place.address) for _ in range(8)]
                for i in range(5000):
                    calls[i % 8].open("/grpc.health.v1.Health/Watch")
                return calls
            calls = self.assert_others_are_served(place, hold)
            self.assert_all_comes_back(place)
            for call in calls:
                call.close()

    def test_unknown_methods_are_answered_at_once(self):
        with served() as place:
            def hold():
                calls = RawCalls(place.address)
                for _ in range(5000):
                    calls.open("/no.such.Service/Method")
                return calls
            calls = self.assert_others_are_served(place, hold)
            self.assert_all_comes_back(place)
            calls.close()

    def test_more_streams_than_there_are_bytes_for_all_come_to_their_end(self):
        """They wait for each other's bytes; none is refused in its middle, and nothing stands still."""
        values = np.arange(1 << 19, dtype=np.int32)
        with served("--max-request-bytes", str(64 << 20)) as place:
            def run(results, i):
                request = scan_request(values)

                def requests():
                    yield request
                    for _ in range(4):
                        chunk = primitives_pb2.ScanRequest()
                        chunk.values.inline.data = values.tobytes()
                        yield chunk
                with grpc.insecure_channel(place.address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
                    stub = primitives_pb2_grpc.PrefixServiceStub(channel)
                    for _ in range(100):
                        try:
                            replies = list(stub.StreamScan(requests(), timeout=60))
                            results[i] = sum(len(reply.values.inline.data) for reply in replies)
                            return
                        except grpc.RpcError as error:
                            if COMMAND and error.code() == grpc.StatusCode.CANCELLED:
                                continue  # What HAProxy 2.6 makes of a refusal: docs/operations.md, Behind a proxy.
                            refused_at_first = "the request needs" in error.details()
                            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED or not refused_at_first:
                                raise
                            time.sleep(0.1)  # Until it tries again.
            results = [None] * 16
            threads = [threading.Thread(target=run, args=(results, i)) for i in range(len(results))]
            with Honest(place.address) as honest:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assertEqual(results, [5 * values.nbytes] * len(results))
            if not COMMAND:  # Behind a proxy the streams and he have one address, and are one caller.
                self.assertEqual(honest.failures, 0, honest.errors)


if __name__ == "__main__":
    unittest.main()
