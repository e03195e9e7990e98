"""Names for callers: tokens, certificates, and what a trusted proxy says."""

import hashlib
import re
import signal
import unittest

import numpy as np
from admin_test import CALLS
from certificates import Authority
from foreign_client_test import reason, scan_request
from harness import Server, grpc, temporary_folder, wait_until
from prefixd.v1 import primitives_pb2_grpc

REQUEST = scan_request(np.ones(4, np.int32))
TOKENS = {"alice": "alice-secret-1", "bob": "bob-secret-2"}


def bearer(token):
    return (("authorization", f"Bearer {token}"),)


def line(name, token):
    return f"{name} {hashlib.sha256(token.encode()).hexdigest()}\n"


class CallersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = temporary_folder(cls.addClassCleanup)
        cls.authority = Authority(cls.folder)
        cls.pair, cls.carol = cls.authority.sign("server"), cls.authority.sign("carol")
        cls.tokens = cls.folder / "tokens"
        cls.socket = f"unix:{cls.folder}/prefixd.sock"

    def setUp(self):
        self.tokens.write_text("# those who may\n\n" + "".join(line(*entry) for entry in TOKENS.items()))

    def scan(self, channel, metadata=()):
        return primitives_pb2_grpc.PrefixServiceStub(channel).Scan(REQUEST, timeout=10, metadata=metadata)

    def assert_refused(self, channel, expected, metadata=()):
        with self.assertRaises(grpc.RpcError) as raised:
            self.scan(channel, metadata)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
        self.assertEqual(reason(raised.exception), expected)

    def assert_logged(self, server, caller, times=1):
        line = re.compile(rf'caller="{re.escape(caller)}" connection="[^"]*" method="Scan"')
        wait_until(lambda: len(line.findall(server.log())) >= times)

    def test_a_token_names_the_caller_and_without_one_nobody_is_served(self):
        with Server("--token-file", self.tokens, "--listen", self.socket, *self.pair.server_flags()) as server:
            for channel in (self.authority.channel(server.address), grpc.insecure_channel(self.socket)):
                with channel:
                    for name, token in TOKENS.items():
                        self.scan(channel, bearer(token))
                    self.scan(channel, (("authorization", f"bearer {TOKENS['alice']}"),))
                    self.assert_refused(channel, "NO_TOKEN")
                    for wrong in ("", "x", TOKENS["alice"][:-1], TOKENS["alice"] + " ", "alice",
                                  hashlib.sha256(TOKENS["alice"].encode()).hexdigest()):
                        self.assert_refused(channel, "WRONG_TOKEN", bearer(wrong))
                    self.assert_refused(channel, "WRONG_TOKEN", (("authorization", f"Basic {TOKENS['alice']}"),))
                    self.assert_refused(channel, "WRONG_TOKEN", bearer(TOKENS["alice"]) + bearer(TOKENS["bob"]))
            self.assert_logged(server, "alice", 4)
            self.assert_logged(server, "bob", 2)
            for token in TOKENS.values():
                self.assertNotIn(token, server.log())

    def test_all_but_health_asks_for_a_token(self):
        with Server("--token-file", self.tokens, "--listen", self.socket):
            with grpc.insecure_channel(self.socket) as channel:
                CALLS["health"](channel)
                for name in set(CALLS) - {"health"}:
                    with self.subTest(name=name), self.assertRaises(grpc.RpcError) as raised:
                        CALLS[name](channel)
                    self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
                stream = primitives_pb2_grpc.PrefixServiceStub(channel).StreamScan(iter([REQUEST]), timeout=10)
                with self.assertRaises(grpc.RpcError) as raised:
                    list(stream)
                self.assertEqual(reason(raised.exception), "NO_TOKEN")

    def test_a_token_in_plain_text_is_refused(self):
        with Server("--token-file", self.tokens) as server, grpc.insecure_channel(server.address) as channel:
            self.assert_refused(channel, "TOKEN_IN_PLAIN_TEXT", bearer(TOKENS["alice"]))
            self.assert_refused(channel, "NO_TOKEN")
            self.assertNotIn(TOKENS["alice"], server.log())

    def test_tokens_are_read_again_on_sighup_and_wrong_ones_are_not(self):
        with Server("--token-file", self.tokens, "--listen", self.socket) as server:
            with grpc.insecure_channel(self.socket) as channel:
                def is_served(token):
                    try:
                        self.scan(channel, bearer(token))
                        return True
                    except grpc.RpcError:
                        return False

                self.tokens.write_text(line("alice", "new") + line("alice", TOKENS["alice"]))
                self.assertFalse(is_served("new"))  # Nothing was asked for yet.
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: is_served("new"))
                self.assertTrue(is_served(TOKENS["alice"]))
                self.assertFalse(is_served(TOKENS["bob"]))
                self.tokens.write_text("alice in-plain-text\n")
                server.process.send_signal(signal.SIGHUP)
                server.wait_for_log("the tokens stay as they are")
                self.assertNotIn("in-plain-text", server.log())
                self.assertTrue(is_served("new"))

    def test_wrong_token_files_are_refused_at_start(self):
        self.tokens.write_text("alice\n")
        for path, words in ((self.tokens, "line 1: expected a name"), (self.folder / "none", "No such file"),
                            (self.folder, "no ordinary file")):
            with self.assertRaisesRegex(RuntimeError, words):
                Server("--token-file", path).stop()

    def test_a_certificate_names_the_caller_and_a_token_goes_before_it(self):
        with Server("--token-file", self.tokens, *self.pair.server_flags(self.authority)) as server:
            with self.authority.channel(server.address, self.carol) as channel:
                self.scan(channel)
                wait_until(lambda: re.search(r'caller="[^"]*CN=carol[^"]*" connection="[^"]*" method="Scan"', server.log()))
                self.scan(channel, bearer(TOKENS["alice"]))
                self.assert_logged(server, "alice")
                self.assert_refused(channel, "WRONG_TOKEN", bearer("x"))

    def test_a_trusted_proxy_names_the_caller_and_nobody_else_does(self):
        dave = (("x-prefixd-caller", "CN=dave, O=tests"),)
        with Server("--trusted-proxy", "unix", "--trusted-proxy", "10.0.0.0/8", "--listen", self.socket) as server:
            with grpc.insecure_channel(self.socket) as channel:
                self.scan(channel, dave)
                self.assert_logged(server, "CN=dave, O=tests")
                self.scan(channel)
                for wrong in ("", "a" * 257):
                    self.assert_refused(channel, "CALLER_NAME", (("x-prefixd-caller", wrong),))
                self.assert_refused(channel, "CALLER_NAME", dave + dave)
            with grpc.insecure_channel(server.address) as channel:
                self.assert_refused(channel, "PROXY_NOT_TRUSTED", dave)
                self.scan(channel)
        with Server("--trusted-proxy", "127.0.0.0/8", "--token-file", self.tokens) as server:
            with grpc.insecure_channel(server.address) as channel:
                self.scan(channel, dave)
                self.assert_refused(channel, "NO_TOKEN")
                for address in ("10.0.0.1", "2001:db8::/64"):
                    self.assert_refused(channel, "NO_TOKEN", (("x-prefixd-caller", address),))
        with Server("--trusted-proxy", "127.0.0.0/8", "--token-file", self.tokens,
                    *self.pair.server_flags(self.authority)) as server:
            with self.authority.channel(server.address, self.carol) as channel:  # Carol is the proxy.
                self.scan(channel, dave)
                self.assert_logged(server, "CN=dave, O=tests")
                self.assert_refused(channel, "NO_TOKEN", (("x-prefixd-caller", "10.0.0.1"),))
                self.scan(channel, (("x-prefixd-caller", "10.0.0.1"),) + bearer(TOKENS["alice"]))
                self.scan(channel)
        with self.assertRaisesRegex(RuntimeError, "expected ADDRESS, ADDRESS/BITS or unix"):
            Server("--trusted-proxy", "10.0.0.0/33").stop()


if __name__ == "__main__":
    unittest.main()
