"""The limits in deploy/haproxy.cfg, and callers who don't take what they are sent."""

import contextlib
import pathlib
import sys
import time
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import raw_http2  # noqa: E402
from drills import haproxy_test  # noqa: E402
from drills.haproxy_test import ITEMS, REFUSED, UNARY, code_of, haproxy, scan  # noqa: E402
from foreign_client_test import scan_request  # noqa: E402
from harness import grpc, wait_until  # noqa: E402
from prefixd.v1 import admin_pb2, admin_pb2_grpc  # noqa: E402
from raw_http2 import DATA, END_HEADERS, END_STREAM, HEADERS, frame, headers  # noqa: E402


class HaproxyLimitsTest(haproxy_test.HaproxyCase):
    def test_calls_above_the_rate_are_refused_with_a_status_of_grpc(self):
        with self.server(), haproxy(self.socket, PROXY_CALLS_PER_SECOND="20") as address:
            with grpc.insecure_channel(address) as channel:
                codes = [code_of(scan, channel) for _ in range(40)]
                self.assertEqual(codes[:15], [grpc.StatusCode.OK] * 15)
                self.assertEqual(codes[30:], [REFUSED] * 10)
                # Asking without a pause would itself be above the rate.
                wait_until(lambda: code_of(scan, channel) == grpc.StatusCode.OK or time.sleep(0.3))

    def test_abuse_shuts_its_source_out_for_a_while_and_nobody_else(self):
        with self.server(), haproxy(self.socket, PROXY_ABUSE_PER_SECOND="50") as address:
            with grpc.insecure_channel(address) as channel:
                scan(channel)
                with raw_http2.connect(address, from_host="127.0.0.66") as connection:
                    connection.settimeout(10)
                    for stream in range(1, 200, 2):
                        with contextlib.suppress(OSError):
                            connection.sendall(frame(HEADERS, END_HEADERS, stream, headers(UNARY)))
                    for _ in raw_http2.read_frames(connection):  # Until it is closed.
                        pass
                began = time.monotonic()
                self.assertFalse(self.is_let_in(address))
                self.assertEqual(code_of(scan, channel), grpc.StatusCode.OK)
                # Asking without a pause would be abuse again.
                wait_until(lambda: self.is_let_in(address) or time.sleep(0.5))
                self.assertGreater(time.monotonic() - began, 5)

    def is_let_in(self, address):
        try:
            with raw_http2.connect(address, from_host="127.0.0.66") as connection:
                return next(raw_http2.read_frames(connection), None) is not None
        except OSError:
            return False

    def test_a_caller_who_does_not_read_holds_up_nobody_else(self):
        large = raw_http2.message(scan_request(np.ones(4000, np.int32)).SerializeToString())
        with self.server(), haproxy(self.socket) as address, grpc.insecure_channel(address) as channel:
            scan(channel)
            with raw_http2.connect(address, raw_http2.NO_WINDOW) as connection:
                for stream in range(1, 100, 2):
                    connection.sendall(frame(HEADERS, END_HEADERS, stream, headers(UNARY)) +
                                       frame(DATA, END_STREAM, stream, large[:16384]))
                for _ in range(50):
                    scan(channel)

    def test_large_replies_that_are_not_read_are_given_up(self):
        """By prefixd, for no more than a window of each fits between it and the caller. From 3.1 on HAProxy holds megabytes,
        and then gives them up itself."""
        with self.server("--reply-timeout-seconds", "3") as server, \
                haproxy(self.socket, PROXY_UNREAD_SECONDS="8") as address:
            with raw_http2.connect(address, raw_http2.NO_WINDOW) as connection:
                request = raw_http2.message(scan_request(np.ones(1, np.int32)).SerializeToString())
                path = "/prefixd.v1.PrefixService/StreamScan"
                connection.sendall(frame(HEADERS, END_HEADERS, 1, headers(path)) + frame(DATA, 0, 1, request))
                large = raw_http2.message(haproxy_test.chunk(np.ones(1 << 14, np.int32)).SerializeToString())
                self.send_as_allowed(connection, 1, large * 300)
                server.wait_for_log("REPLY_TIMEOUT")

    def test_small_replies_that_are_not_read_are_given_up(self):
        """By HAProxy, which holds them: prefixd charges the caller until then."""
        with self.server("--reply-timeout-seconds", "1") as server, \
                haproxy(self.socket, PROXY_UNREAD_SECONDS="3") as address, \
                contextlib.ExitStack() as stack, grpc.insecure_channel(server.address) as channel:
            admin = admin_pb2_grpc.AdminServiceStub(channel)

            def used():
                return admin.GetServerInfo(admin_pb2.GetServerInfoRequest()).request_bytes.used

            for _ in range(8):
                connection = stack.enter_context(raw_http2.connect(address, raw_http2.NO_WINDOW))
                for stream in range(1, 200, 2):
                    connection.sendall(frame(HEADERS, END_HEADERS, stream,
                                             headers("/prefixd.v1.AdminService/GetServerInfo")) +
                                       frame(DATA, END_STREAM, stream, raw_http2.message(b"")))
            wait_until(lambda: used() > 1 << 20)
            wait_until(lambda: used() < 1 << 18)

    def send_as_allowed(self, connection, stream, rest):
        """As much of it as the other side lets in, until it ends the stream."""
        room = {0: 65535, stream: 65535}
        frames = raw_http2.read_frames(connection)
        connection.settimeout(15)
        while rest:
            size = min(len(rest), raw_http2.MAX_FRAME, *room.values())
            if size > 0:
                connection.sendall(frame(DATA, 0, stream, rest[:size]))
                rest = rest[size:]
                room = {key: left - size for key, left in room.items()}
                continue
            kind, _, where, payload = next(frames, (raw_http2.GOAWAY, 0, 0, b""))
            if kind == raw_http2.WINDOW_UPDATE:
                room[where] = room.get(where, 0) + int.from_bytes(payload, "big")
            if kind in (raw_http2.RST_STREAM, raw_http2.GOAWAY):
                return


if __name__ == "__main__":
    unittest.main()
