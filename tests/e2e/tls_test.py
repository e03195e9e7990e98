"""TLS: who gets in, with which files a server starts, and files that change while it serves."""

import os
import shutil
import signal
import socket
import ssl
import threading
import time
import unittest

import numpy as np
from certificates import Authority, Pair, openssl
from foreign_client_test import scan_request
from harness import LIMIT_SECONDS, Server, grpc, temporary_folder, wait_until
from prefixd.v1 import primitives_pb2_grpc

REQUEST = scan_request(np.ones(256, np.int32))


def scan(channel, timeout=10):
    return primitives_pb2_grpc.PrefixServiceStub(channel).Scan(REQUEST, timeout=timeout)


def host_and_port(server):
    host, port = server.address.split(":")
    return host, int(port)


def shown_certificate(server):
    return ssl.get_server_certificate(host_and_port(server), timeout=LIMIT_SECONDS)


class TlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = temporary_folder(cls.addClassCleanup)
        cls.authority, cls.stranger = Authority(cls.folder), Authority(cls.folder, "stranger")
        cls.pair, cls.caller = cls.authority.sign("server"), cls.authority.sign("caller")
        cls.strange_caller = cls.stranger.sign("strange_caller")

    def assert_unavailable(self, channel):
        with channel, self.assertRaises(grpc.RpcError) as raised:
            scan(channel)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)

    # ---- Who gets in ----
    def test_callers_need_a_certificate_of_the_right_authority(self):
        socket_address = f"unix:{self.folder}/prefixd.sock"
        with Server(*self.pair.server_flags(self.authority), "--listen", socket_address) as server:
            with self.authority.channel(server.address, self.caller) as channel:
                self.assertEqual(len(scan(channel).values.inline.data), 1024)
            self.assert_unavailable(self.authority.channel(server.address))
            self.assert_unavailable(self.authority.channel(server.address, self.strange_caller))
            self.assert_unavailable(self.stranger.channel(server.address, self.caller))
            self.assert_unavailable(grpc.insecure_channel(server.address))
            with grpc.insecure_channel(socket_address) as channel:
                scan(channel)

    def test_without_an_authority_of_callers_anybody_gets_in_over_tls(self):
        with Server(*self.pair.server_flags()) as server:
            with self.authority.channel(server.address) as channel:
                scan(channel)
            self.assert_unavailable(grpc.insecure_channel(server.address))

    def test_only_tls_from_1_2_on(self):
        with Server(*self.pair.server_flags()) as server:
            for version, is_spoken in ((ssl.TLSVersion.TLSv1, False), (ssl.TLSVersion.TLSv1_1, False),
                                       (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)):
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.load_verify_locations(self.authority.certificate)
                context.set_ciphers("ALL:@SECLEVEL=0")  # Or this side would not speak the old ones.
                context.set_alpn_protocols(["h2"])
                context.minimum_version = context.maximum_version = version
                with self.subTest(version=version.name), socket.create_connection(host_and_port(server)) as plain:
                    if is_spoken:
                        with context.wrap_socket(plain, server_hostname="localhost") as connection:
                            self.assertEqual(connection.version(), version.name.replace("_", "."))
                    else:
                        with self.assertRaises(OSError):
                            context.wrap_socket(plain, server_hostname="localhost")

    def test_a_thousand_connections_that_say_nothing_keep_nobody_out(self):
        with Server(*self.pair.server_flags()) as server:
            silent = [socket.create_connection(host_and_port(server)) for _ in range(1000)]
            with self.authority.channel(server.address) as channel:
                for _ in range(20):
                    scan(channel)
            for connection in silent:
                connection.close()

    def test_what_is_not_encrypted_or_whoever_calls_is_told(self):
        for flags, said in (([], "nothing is encrypted"), (self.pair.server_flags(), "callers are not authenticated"),
                            (self.pair.server_flags(self.authority), None)):
            with self.subTest(said=said), Server("--listen", "0.0.0.0:0", *flags) as server:
                server.stop()
                if said:
                    self.assertIn(said, server.log())
                else:
                    self.assertNotIn("authenticated", server.log())

    # ---- Files at the start ----
    def assert_refused(self, flags, *words):
        with self.assertRaises(RuntimeError) as raised:
            Server(*flags).stop()
        for word in words:
            self.assertIn(word, str(raised.exception))

    def test_wrong_files_are_refused_with_what_is_wrong(self):
        def path(name, content):
            (self.folder / name).write_bytes(content)
            return self.folder / name

        pair, certificate, key = self.pair, self.pair.certificate.read_bytes(), self.pair.key.read_bytes()
        locked, weak, expired = Pair(self.folder, "locked"), None, self.authority.sign("expired", days=-1)
        weak = self.authority.sign("weak", new_key=("rsa:512",))
        openssl("ec", "-aes128", "-passout", "pass:secret", "-in", pair.key, "-out", locked.key)
        cases = [
            (self.folder / "none", pair.key, "--tls-certificate", "No such file"),
            (self.folder, pair.key, "--tls-certificate", "is no ordinary file"),
            (pair.certificate, self.folder / "none", "--tls-key", "No such file"),
            ("/dev/zero", pair.key, "--tls-certificate", "is no ordinary file"),
            (path("empty", b""), pair.key, "--tls-certificate", "no certificate in PEM"),
            (path("noise", os.urandom(4096)), pair.key, "--tls-certificate", "no certificate in PEM"),
            (path("cut", certificate[:200]), pair.key, "--tls-certificate", "can't be read"),
            (path("half", certificate + certificate[:200]), pair.key, "--tls-certificate", "can't be read"),
            (pair.key, pair.key, "--tls-certificate", "no certificate in PEM"),
            (pair.certificate, pair.certificate, "--tls-key", "no private key"),
            (pair.certificate, path("cut_key", key[:100]), "--tls-key", "no private key"),
            (pair.certificate, locked.key, "--tls-key", "is encrypted"),
            (pair.certificate, self.caller.key, "--tls-key", "is not the key of the certificate"),
            (expired.certificate, expired.key, "--tls-certificate", "expired at 20"),
            (weak.certificate, weak.key, "--tls-certificate", "too small"),
        ]
        for certificate_path, key_path, *words in cases:
            with self.subTest(words=words, certificate=certificate_path, key=key_path):
                self.assert_refused(["--tls-certificate", certificate_path, "--tls-key", key_path],
                                    "can't start", *words)
        self.assert_refused([*pair.server_flags(), "--tls-client-ca", pair.key], "--tls-client-ca", "no certificate")
        self.assert_refused([*pair.server_flags(), "--tls-client-ca", self.folder / "none"], "--tls-client-ca",
                            "No such file")

    def test_flags_that_need_others_are_wrong_alone(self):
        for flags in (["--tls-certificate", self.pair.certificate], ["--tls-key", self.pair.key],
                      ["--tls-client-ca", self.authority.certificate]):
            self.assert_refused(flags, "Usage", "requires")


class ReloadTest(unittest.TestCase):
    """A server whose files are replaced while calls run, none of which may fail."""

    def setUp(self):
        self.folder = temporary_folder(self.addCleanup)
        self.authority = Authority(self.folder)
        self.first, self.second = self.authority.sign("first"), self.authority.sign("second")
        self.live = Pair(self.folder, "live")
        self.put(self.first)
        self.failures, self.calls, self.stop = [], 0, threading.Event()

    def put(self, pair):
        for new, live in ((pair.certificate, self.live.certificate), (pair.key, self.live.key)):
            part = live.with_suffix(".part")
            shutil.copy(new, part)
            part.rename(live)

    def call_on_new_connections(self, server):
        while not self.stop.is_set():
            try:
                with self.authority.channel(server.address) as channel:
                    scan(channel)
                self.calls += 1
            except grpc.RpcError as error:
                self.failures.append(f"{error.code()}: {error.details()}")

    def call_on_one_connection(self, server):
        with self.authority.channel(server.address) as channel:
            while not self.stop.is_set():
                try:
                    scan(channel)
                except grpc.RpcError as error:
                    self.failures.append(f"{error.code()}: {error.details()}")

    def test_new_files_are_taken_and_wrong_ones_are_not_while_no_call_fails(self):
        with Server(*self.live.server_flags()) as server:
            callers = [threading.Thread(target=call, args=(server,))
                       for call in (self.call_on_new_connections, self.call_on_one_connection)]
            for caller in callers:
                caller.start()
            try:
                first, second = self.first.certificate.read_text(), self.second.certificate.read_text()
                self.assertEqual(shown_certificate(server), first)
                self.put(self.second)  # By itself,
                wait_until(lambda: shown_certificate(server) == second)
                self.put(self.first)  # and when it is told to.
                server.process.send_signal(signal.SIGHUP)
                wait_until(lambda: shown_certificate(server) == first)
                for content, word in ((self.second.key.read_bytes(), "is not the key"), (b"no PEM", "has no private")):
                    self.live.key.write_bytes(content)
                    wait_until(lambda: f"TLS goes on with the files that it has: --tls-key {self.live.key}: {word}"
                               in server.log())
                self.live.key.unlink()
                self.live.key.mkdir()
                server.wait_for_log("is no ordinary file")
                self.live.key.rmdir()
                time.sleep(1.5)  # For gRPC to look, which it does once a second.
                self.assertEqual(shown_certificate(server), first)
                self.put(self.second)
                wait_until(lambda: shown_certificate(server) == second)
                # Again and again, in the same seconds in which gRPC looks.
                for pair in (self.first, self.second) * 20:
                    self.put(pair)
                    server.process.send_signal(signal.SIGHUP)
                    time.sleep(0.05)  # So that all take two seconds.
                self.put(self.first)
                wait_until(lambda: shown_certificate(server) == first)
            finally:
                self.stop.set()
                for caller in callers:
                    caller.join()
            self.assertEqual(self.failures, [])
            self.assertGreater(self.calls, 50)

    def test_another_authority_of_callers_is_taken(self):
        other = Authority(self.folder, "other")
        old_caller, new_caller = self.authority.sign("old_caller"), other.sign("new_caller")
        authorities = Pair(self.folder, "authorities")
        shutil.copy(self.authority.certificate, authorities.certificate)

        def is_served(caller):
            try:
                with self.authority.channel(server.address, caller) as channel:
                    scan(channel)
                return True
            except grpc.RpcError:
                return False

        with Server(*self.live.server_flags(authorities)) as server:
            self.assertTrue(is_served(old_caller))
            self.assertFalse(is_served(new_caller))
            shutil.copy(other.certificate, authorities.certificate)
            wait_until(lambda: is_served(new_caller))
            self.assertFalse(is_served(old_caller))


if __name__ == "__main__":
    unittest.main()
