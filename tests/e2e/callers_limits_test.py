"""What callers may have by their names: --caller-limits, and limits in the token file."""

import contextlib
import queue
import signal
import time
import unittest

import numpy as np
from admin_test import CALLS
from callers_test import bearer, line
from foreign_client_test import scan_request
from google.rpc import error_details_pb2, status_pb2
from harness import Server, grpc, temporary_folder, wait_until
from prefixd.v1 import admin_pb2, admin_pb2_grpc, primitives_pb2_grpc

REQUEST = scan_request(np.ones(4, np.int32))
LESS_THAN_A_STREAM_BYTES = 3 * (4 << 20)


def proxied(name):
    return (("x-prefixd-caller", name),)


def scan(channel, name=None, metadata=()):
    return primitives_pb2_grpc.PrefixServiceStub(channel).Scan(REQUEST, timeout=10,
                                                               metadata=proxied(name) if name else metadata)


class Stream:
    """A stream of one request that stays open until the context ends."""

    def __init__(self, channel, name):
        self._messages = queue.Queue()
        self._messages.put(REQUEST)
        stub = primitives_pb2_grpc.PrefixServiceStub(channel)
        self._call = stub.StreamScan(iter(self._messages.get, None), timeout=60, metadata=proxied(name))

    def __enter__(self):
        next(self._call)  # It was let in.
        return self

    def __exit__(self, *_):
        self._messages.put(None)
        for _ in self._call:
            pass


class CallersLimitsTest(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self.addCleanup)
        self.limits = self.folder / "limits"

    def serve(self, text, *flags):
        self.limits.write_text(text)
        return Server("--caller-limits", self.limits, "--trusted-proxy", "127.0.0.0/8", *flags)

    def channel(self, server):
        """A connection of its own."""
        return grpc.insecure_channel(server.address, [("grpc.use_local_subchannel_pool", 1)])

    def reload(self, server, text, says=None):
        self.limits.write_text(text)
        before = server.log().count(says or "SIGHUP")
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.log().count(says or "SIGHUP") > before)

    def refusal(self, call, reason, subject):
        """The call is refused like that; returns the seconds of its RetryInfo."""
        with self.assertRaises(grpc.RpcError) as raised:
            call()
        self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        details = status_pb2.Status.FromString(dict(raised.exception.trailing_metadata())["grpc-status-details-bin"])
        info, quota, retry = (kind() for kind in (error_details_pb2.ErrorInfo, error_details_pb2.QuotaFailure,
                                                  error_details_pb2.RetryInfo))
        for detail, message in zip(details.details, (info, quota, retry)):
            self.assertTrue(detail.Unpack(message))
        self.assertEqual((info.reason, quota.violations[0].subject), (reason, subject))
        self.assertIn(subject, quota.violations[0].description)
        return retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9

    def test_requests_and_connections_at_once_and_everybody_else(self):
        with self.serve('"CN=Alice A,O=Tests" requests=2\nbob connections=1\n* requests=1\n') as server:
            with self.channel(server) as channel, self.channel(server) as other, contextlib.ExitStack() as open_streams:
                for _ in range(2):
                    open_streams.enter_context(Stream(channel, "CN=Alice A,O=Tests"))
                self.refusal(lambda: scan(other, "CN=Alice A,O=Tests"), "CALLER_REQUESTS", "CN=Alice A,O=Tests")
                open_streams.enter_context(Stream(channel, "bob"))
                scan(channel, "bob")
                self.refusal(lambda: scan(other, "bob"), "CALLER_CONNECTIONS", "bob")
                open_streams.enter_context(Stream(channel, "carol"))
                self.refusal(lambda: scan(other, "carol"), "CALLER_REQUESTS", "carol")
                scan(other)  # The address 127.0.0.1 is another one of all others.
                # Whoever watches the server is answered, under whatever name.
                for _ in range(20):
                    admin_pb2_grpc.AdminServiceStub(other).GetServerInfo(admin_pb2.GetServerInfoRequest(), timeout=10,
                                                                        metadata=proxied("carol"))
                    CALLS["health"](other)
            with self.channel(server) as channel:
                scan(channel, "carol")
                scan(channel, "bob")

    def test_bytes_at_once(self):
        # 1.9 MB, and as a stream owed 2 MiB of replies, with 1 MiB of elements that wait for more.
        first = scan_request(np.ones(240_000))
        later = type(first)()
        later.CopyFrom(first)
        later.ClearField("spec")
        flags = ("--max-message-bytes", 2 << 20)  # So that a stream may hold 10 MiB at most.
        with self.serve(f"alice bytes={10 << 20}\n", *map(str, flags)) as server:
            with self.channel(server) as channel, self.channel(server) as other:
                def stream(on, name, messages):
                    return primitives_pb2_grpc.PrefixServiceStub(on).StreamScan(iter(messages), timeout=60,
                                                                                metadata=proxied(name))

                def error(name):
                    try:
                        list(stream(other, name, [first]))
                    except grpc.RpcError as error:
                        return error
                    return None

                unread = stream(channel, "alice", [first] + [later] * 9)
                # Until the stream that is not read holds what it may.
                self.refusal(lambda: wait_until(lambda: not list(stream(other, "alice", [first]))), "CALLER_BYTES",
                             "alice")
                self.assertIsNone(error("bob"))
                # What was let in waits, and comes to its end.
                self.assertGreaterEqual(len(list(unread)), 10)
                wait_until(lambda: error("alice") is None)

    def test_requests_of_a_second_and_waiting_as_long_as_was_said(self):
        with self.serve("alice requests_per_second=2\n") as server, self.channel(server) as channel:
            scan(channel, "alice")
            scan(channel, "alice")
            for _ in range(3):
                seconds = self.refusal(lambda: scan(channel, "alice"), "CALLER_RATE", "alice")
                self.assertGreater(seconds, 0)
                self.assertLessEqual(seconds, 0.5)
                time.sleep(seconds)  # The subject of the test.
                scan(channel, "alice")
            for _ in range(50):
                scan(channel, "bob")

    def test_limits_of_an_address(self):
        with self.serve("127.0.0.1 requests_per_second=1\n") as server, self.channel(server) as channel:
            scan(channel)
            self.refusal(lambda: scan(channel), "CALLER_RATE", "127.0.0.1")
            scan(channel, "alice")

    def test_the_file_is_read_again_and_a_wrong_one_is_not(self):
        with self.serve("") as server, self.channel(server) as channel, Stream(channel, "alice"):
            scan(channel, "alice")
            self.limits.write_text("alice requests=1\n")
            scan(channel, "alice")  # Nothing was asked for yet.
            self.reload(server, "alice requests=1\n")
            wait_until(lambda: self.is_refused(channel))
            self.refusal(lambda: scan(channel, "alice"), "CALLER_REQUESTS", "alice")
            says = "the callers' limits stay as they are: --caller-limits"
            self.reload(server, "bob requests=1\nalice requests=none\n", says)
            self.assertIn("line 2: expected a number", server.log())
            self.refusal(lambda: scan(channel, "alice"), "CALLER_REQUESTS", "alice")
            self.limits.unlink()
            server.process.send_signal(signal.SIGHUP)
            server.wait_for_log("No such file")
            self.refusal(lambda: scan(channel, "alice"), "CALLER_REQUESTS", "alice")
            self.reload(server, "alice requests=2\n")
            wait_until(lambda: not self.is_refused(channel))

    def is_refused(self, channel):
        try:
            scan(channel, "alice")
            return False
        except grpc.RpcError:
            return True

    def test_wrong_files_are_refused_at_start(self):
        for text, words in (("alice requests=1\nalice\n", "line 2: the name has a line already"),
                            ("\nalice request=1\n", "line 2: expected nothing but requests=N"),
                            ("* requests=1 requests=1\n", "line 1: has requests= twice"),
                            (f"alice bytes={LESS_THAN_A_STREAM_BYTES}", "line 1: expected a number from .* bytes="),
                            ('"alice requests=1\n', "line 1: expected a second double quote")):
            with self.subTest(text=text), self.assertRaisesRegex(RuntimeError, words):
                self.serve(text).stop()
        with self.assertRaisesRegex(RuntimeError, "--caller-limits .*No such file"):
            Server("--caller-limits", self.folder / "none").stop()

    def test_limits_of_a_token(self):
        tokens, socket = self.folder / "tokens", f"unix:{self.folder}/prefixd.sock"
        tokens.write_text(line("alice", "a").replace("\n", " requests_per_second=1\n") + line("bob", "b"))
        flags = ("--token-file", tokens, "--listen", socket)
        with self.serve("* requests_per_second=2\n", *flags) as server, grpc.insecure_channel(socket) as channel:
            scan(channel, metadata=bearer("a"))
            self.refusal(lambda: scan(channel, metadata=bearer("a")), "CALLER_RATE", "alice")
            for _ in range(2):
                scan(channel, metadata=bearer("b"))
            self.refusal(lambda: scan(channel, metadata=bearer("b")), "CALLER_RATE", "bob")
            tokens.write_text(line("alice", "a") + line("bob", "b"))
            self.reload(server, "")
            for _ in range(5):
                wait_until(lambda: self.passes(channel, "a"))
        tokens.write_text(line("alice", "a").replace("\n", " shares=1\n"))
        with self.assertRaisesRegex(RuntimeError, "--token-file .*line 1: expected nothing but requests=N"):
            Server(*flags).stop()

    def passes(self, channel, token):
        try:
            scan(channel, metadata=bearer(token))
            return True
        except grpc.RpcError:
            return False

    def test_a_share_of_its_own(self):
        with self.serve("alice share_percent=100\nbob share_percent=10\n", "--max-requests", "20") as server:
            with self.channel(server) as channel:
                for name, share in (("alice", 20), ("bob", 2), ("carol", 10)):
                    with self.subTest(name=name), contextlib.ExitStack() as open_streams:
                        for _ in range(share):
                            open_streams.enter_context(Stream(channel, name))
                        subject = "server" if name == "alice" else name
                        self.refusal(lambda: scan(channel, name), "REQUEST_BUDGET", subject)


if __name__ == "__main__":
    unittest.main()
