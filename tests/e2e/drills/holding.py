"""What the drills with callers who hold on to what they got have in common."""

import collections
import os
import threading
import time

import raw_http2
from drills.front import COMMAND, HOSTILE_HOST, channel, connect
from drills.honest import Drill, Honest
from harness import wait_until
from prefixd.v1 import admin_pb2, admin_pb2_grpc

TIMEOUT_SECONDS = 3
TIMEOUTS = ("--first-message-timeout-seconds", str(TIMEOUT_SECONDS), "--message-timeout-seconds", str(TIMEOUT_SECONDS),
            "--reply-timeout-seconds", str(TIMEOUT_SECONDS))
# For HAProxy, which holds small replies. Above the server's, as in its configuration: who ends a call first says why.
os.environ["PROXY_UNREAD_SECONDS"] = str(2 * TIMEOUT_SECONDS)


class RawCalls:
    """Calls on one connection that sends as much as it may, and takes nothing. It may have 512: gRPC 1.51 ends one that
    opens more, 1.83 refuses what is above. A proxy resets the calls that it does not let through: nothing more is sent of
    those."""

    def __init__(self, address, from_host=HOSTILE_HOST):
        self.connection = connect(address, raw_http2.NO_WINDOW, from_host)
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
                if not self.opened.wait_for(lambda: size() > 0 or stream in self.reset, timeout=1 if COMMAND else 20):
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


class HoldingDrill(Drill):
    def info(self, place):
        with channel(place.server.address) as connection:
            admin = admin_pb2_grpc.AdminServiceStub(connection)
            return admin.GetServerInfo(admin_pb2.GetServerInfoRequest(), timeout=10)

    def assert_others_are_served(self, place, hold, least_bytes=None, **limits):
        """While `hold` holds, for which more than least_bytes are charged, and while the server ends what it holds: an
        honest caller on the same address, and one who comes later."""
        with self.unharmed(place, **limits):
            held = hold()
            if least_bytes is not None and not COMMAND:  # A proxy lets a hundred calls of a connection through.
                wait_until(lambda: self.info(place).request_bytes.used > least_bytes)  # Before they are ended.
            with Honest(place.address) as late:
                time.sleep(1 + TIMEOUT_SECONDS)  # While both call, and the server ends what is held.
        self.assertEqual(late.failures, 0, late.errors)
        self.assertGreater(late.calls, 0)
        return held

    def assert_all_comes_back(self, place):
        """Nobody closes anything: the server ends what is silent, and says why."""
        wait_until(lambda: self.info(place).requests.used == 0 and self.info(place).request_bytes.used < 1 << 20)
