"""What deploy/haproxy.cfg promises besides what the drills ask of any front: names, limits, and calls that are let be."""

import contextlib
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import raw_http2  # noqa: E402
from certificates import Authority  # noqa: E402
from drills.haproxy_front import CONFIGURATION  # noqa: E402
from foreign_client_test import chunk, scan_request  # noqa: E402
from harness import Server, grpc, server_environment, wait_until  # noqa: E402
from prefixd.v1 import primitives_pb2_grpc  # noqa: E402
from raw_http2 import (DATA, END_STREAM, GOAWAY, RST_STREAM, frame,  # noqa: E402
                       header_frames, headers)

FRONT = [sys.executable, str(pathlib.Path(__file__).with_name("haproxy_front.py"))]
UNARY = "/prefixd.v1.PrefixService/Scan"
ITEMS = np.ones(100, np.int32)
IDLE_SECONDS = 12  # Longer than all time limits of the configuration that are not of an hour.
MAX_METADATA = 8000
REFUSED = grpc.StatusCode.RESOURCE_EXHAUSTED
IN_THE_LOG = re.compile(r'caller="(.*?)" connection="[^"]*" method="Scan"')


@contextlib.contextmanager
def haproxy(*arguments, **environment):
    with subprocess.Popen([*FRONT, *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **environment}) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def scan(channel, metadata=()):
    return primitives_pb2_grpc.PrefixServiceStub(channel).Scan(scan_request(ITEMS), timeout=10, metadata=metadata)


def code_of(call, *arguments):
    try:
        call(*arguments)
        return grpc.StatusCode.OK
    except grpc.RpcError as error:
        return error.code()


@unittest.skipUnless(shutil.which("haproxy"), "needs haproxy: deploy/install_deps.sh test")
class HaproxyCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="prefixd_haproxy_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.socket = f"unix:{self.folder}/prefixd.sock"

    def server(self, *flags):
        return Server("--listen", self.socket, "--trusted-proxy", "unix", *flags)


class HaproxyTest(HaproxyCase):
    def make_certificates(self):
        """The files of the configuration. Returns the authority, and a caller's certificate."""
        authority = Authority(self.folder)
        pair = authority.sign("server")
        (self.folder / "server.pem").write_bytes(pair.certificate.read_bytes() + pair.key.read_bytes())
        shutil.copy(authority.certificate, self.folder / "callers.pem")
        return authority, authority.sign("carol")

    def assert_caller(self, server, name):
        wait_until(lambda: IN_THE_LOG.findall(server.log())[-1:] == [name])

    def test_the_configuration_has_no_faults(self):
        self.make_certificates()
        text = CONFIGURATION.read_text().replace("/etc/haproxy/prefixd", str(self.folder))
        checked = subprocess.run(["haproxy", "-c", "-f", "/dev/stdin"], input=text, text=True, capture_output=True,
                                 env=server_environment())
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertNotRegex(checked.stderr, "WARNING|ALERT")

    def test_a_caller_has_the_name_of_his_certificate_or_else_his_address(self):
        authority, carol = self.make_certificates()
        evil = (("x-prefixd-caller", "CN=evil"),)
        with self.server() as server, haproxy("--tls", self.folder, self.socket) as address:
            for metadata in ((), evil, evil + evil):
                with authority.channel(address) as channel:
                    scan(channel, metadata)
                self.assert_caller(server, "127.0.0.1")
                with authority.channel(address, carol) as channel:
                    scan(channel, metadata)
                self.assert_caller(server, "CN=carol,O=tests")
            (self.folder / "other").mkdir()
            other = Authority(self.folder / "other", "other").sign("carol")
            with authority.channel(address, other) as channel:
                self.assertEqual(code_of(scan, channel), grpc.StatusCode.UNAVAILABLE)
            with grpc.insecure_channel(address) as channel:  # It speaks TLS and nothing else.
                self.assertEqual(code_of(scan, channel), grpc.StatusCode.UNAVAILABLE)
            self.assertEqual(set(IN_THE_LOG.findall(server.log())), {"127.0.0.1", "CN=carol,O=tests"})
        with self.server(*authority.sign("direct").server_flags(authority)) as server:
            with authority.channel(server.address, carol) as channel:
                scan(channel)
            self.assert_caller(server, "CN=carol,O=tests")  # As without a proxy.

    def test_a_subject_is_written_as_without_a_proxy(self):
        """Or the limits of its caller would hold in one way and not in the other."""
        authority, _ = self.make_certificates()
        units = "".join(f"/OU={letter * 60}" for letter in "abc")
        callers = [authority.sign(f"caller{i}", subject=subject) for i, subject in enumerate(
            ("/O=tests/CN=Smith, Bob", "/O=tests/CN=a\\\\b \"c\"", "/O=tests/CN=Zoë", f"{units}/CN=long"))]
        names = []
        with self.server() as server, haproxy("--tls", self.folder, self.socket) as address:
            for caller in callers:
                with authority.channel(address, caller) as channel:
                    scan(channel)
                wait_until(lambda: len(IN_THE_LOG.findall(server.log())) == len(names) + 1)
                names.append(IN_THE_LOG.findall(server.log())[-1])
        self.assertEqual(len(set(names)), len(callers))
        self.assertGreater(len(names[-1]), 180)
        with self.server(*authority.sign("direct").server_flags(authority)) as server:
            for caller, name in zip(callers, names):
                with authority.channel(server.address, caller) as channel:
                    scan(channel)
                self.assert_caller(server, name)

    def test_metadata_spoils_no_call_of_others(self):
        """Sizes around the limit, more than any buffer holds, binary values of all kinds, and bytes at random."""
        seed = random.randrange(1 << 32)
        dice = random.Random(seed)
        small = raw_http2.message(scan_request(ITEMS).SerializeToString())
        printable = "".join(map(chr, range(33, 127)))

        def strange():
            name = "x" + "".join(dice.choices("abc-_.0123456789!#$%&'*+^`|~", k=dice.randrange(20)))
            letters = printable if dice.random() < 0.5 else "".join(map(chr, range(256)))
            return name + dice.choice(["", "-bin"]), "".join(dice.choices(letters, k=dice.randrange(200)))

        blocks = [[("x", "y" * size)] for size in (*range(7000, 9000, 50), 20_000, 60_000, 70_000, 200_000)]
        blocks += [[("x-bin", value)] for value in ("!!!!", "A", "AB", "AA,AA", "A===", "\x80\xff", "=", "AAAA" * 3000)]
        blocks += [[strange()] for _ in range(200)]
        blocks += [[(name, dice.choice(["", "x", "99999999999999", "\x80"]))]
                   for name in ("grpc-timeout", "grpc-encoding", "grpc-status", "te", "content-type", "host",
                                "content-length", "connection", "transfer-encoding", "grpc-tags-bin", "cookie")]
        with self.server() as server, haproxy(self.socket) as address, grpc.insecure_channel(address) as channel:
            def requests():
                yield first
                yield from iter(lambda: chunk(ITEMS) if next(steps) < len(blocks) else None, None)

            # The bystander's stream, which takes a step for each block.
            first, steps = scan_request(ITEMS), iter(range(len(blocks) + 1))
            replies = primitives_pb2_grpc.PrefixServiceStub(channel).StreamScan(requests(), timeout=60)
            next(replies)
            for block in blocks:
                with self.subTest(seed=seed, block=repr(block)[:100]), raw_http2.connect(address) as connection:
                    connection.settimeout(10)
                    with contextlib.suppress(OSError):
                        connection.sendall(header_frames(1, headers(UNARY, block)) +
                                           frame(DATA, END_STREAM, 1, small))
                    for kind, flags, stream, _ in raw_http2.read_frames(connection):
                        if kind in (RST_STREAM, GOAWAY) or stream == 1 and flags & END_STREAM:
                            break
                    next(replies)
            self.assertEqual(len(list(replies)), 1, seed)  # The end.
            self.assertIsNone(server.process.poll())
            for size, code in ((MAX_METADATA - 600, grpc.StatusCode.OK), (MAX_METADATA + 1, REFUSED), (9000, REFUSED)):
                self.assertEqual(code_of(scan, channel, (("x", "y" * size),)), code, size)
            self.assertEqual(code_of(scan, channel, (("x-bin", bytes(range(256))),)), grpc.StatusCode.OK)

    def test_long_streams_pass_and_idle_ones_live(self):
        """Both ways; beside one that is idle for longer than any short time limit of the configuration."""
        part = np.ones(1 << 18, np.int32)
        parts = 64

        def requests():
            yield scan_request(part)
            for _ in range(parts - 1):
                yield chunk(part)

        def seconds(address):
            options = [("grpc.use_local_subchannel_pool", 1)]
            began = time.monotonic()
            with grpc.insecure_channel(address, options) as channel:
                replies = primitives_pb2_grpc.PrefixServiceStub(channel).StreamScan(requests(), timeout=100)
                num_bytes = sum(len(reply.values.inline.data) for reply in replies)
            self.assertEqual(num_bytes, parts * part.nbytes)
            return time.monotonic() - began

        def slowly():
            yield scan_request(ITEMS)
            time.sleep(IDLE_SECONDS)  # The subject of the test.
            yield chunk(ITEMS)

        with self.server("--message-timeout-seconds", "0") as server, haproxy(self.socket) as address:
            with grpc.insecure_channel(address) as channel:
                idle = primitives_pb2_grpc.PrefixServiceStub(channel).StreamScan(slowly(), timeout=100)
                direct, proxied = (min(seconds(a) for _ in range(3)) for a in (server.address, address))
                print(f"\n    64 MiB both ways: direct {direct:.2f} s, by the proxy {proxied:.2f} s, "
                      f"{proxied / direct:.1f} times as long", end=" ", flush=True)
                self.assertEqual(sum(len(reply.values.inline.data) for reply in idle), 2 * ITEMS.nbytes)


if __name__ == "__main__":
    unittest.main()
