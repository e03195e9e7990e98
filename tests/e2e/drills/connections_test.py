"""More connections than the server may have descriptors, none of which says a word."""

import contextlib
import ctypes
import os
import pathlib
import resource
import socket
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from drills.front import COMMAND, HOSTILE_HOST, served  # noqa: E402
from drills.honest import Drill, Honest  # noqa: E402
from harness import LIMIT_SECONDS, Server  # noqa: E402

DESCRIPTORS = 1024
IDLE = 1100


def listening_sockets(pid):
    """Another process's sockets that listen, as our own."""
    get_descriptor = 438  # pidfd_getfd
    process = os.pidfd_open(pid)
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            try:
                if not os.readlink(f"/proc/{pid}/fd/{number}").startswith("socket:"):
                    continue
            except FileNotFoundError:  # Closed meanwhile.
                continue
            descriptor = ctypes.CDLL(None, use_errno=True).syscall(get_descriptor, process, int(number), 0)
            if descriptor < 0:
                raise unittest.SkipTest(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
            ours = socket.socket(fileno=descriptor)
            if ours.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield ours
            else:
                ours.close()
    finally:
        os.close(process)


class ConnectionsDrill(Drill):
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, IDLE + 200), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        folder = tempfile.TemporaryDirectory(prefix="prefixd_drill_")
        self.addCleanup(folder.cleanup)
        self.socket = f"unix:{folder.name}/prefixd.sock"

    def test_idle_connections_of_one_address_shut_nobody_else_out(self):
        with served("--listen", self.socket, under=["prlimit", f"--nofile={DESCRIPTORS}"]) as place:
            server, (host, port) = place.server, place.address.split(":")
            source = HOSTILE_HOST and (HOSTILE_HOST, 0)
            with self.unharmed(place, (place.address,), (self.socket,)):
                idle = []
                for _ in range(IDLE):
                    with contextlib.suppress(ConnectionResetError):  # It was refused before connect had returned.
                        idle.append(socket.create_connection((host, int(port)), source_address=source))
                if not COMMAND:  # Which refuses them before they get to the server.
                    server.wait_for_log("was refused")
                with Honest(self.socket) as late:
                    time.sleep(1)  # For callers to be served meanwhile.
                self.assertLess(len(os.listdir(f"/proc/{server.process.pid}/fd")), DESCRIPTORS)
                for connection in idle:
                    connection.close()
                closed = time.monotonic()
                with Honest(place.address) as after:
                    self.assertLess(time.monotonic() - closed, 3)
            for caller in (late, after):
                self.assertEqual(caller.failures, 0, caller.errors)

    @unittest.skipIf(COMMAND, "a proxy's connections have one address")
    def test_two_addresses_that_take_all_they_get_shut_nobody_else_out(self):
        with served("--max-connections", "64") as place, contextlib.ExitStack() as held:
            host, port = place.address.split(":")
            for source in ("127.0.0.66", "127.0.0.67"):
                for _ in range(64):
                    with contextlib.suppress(ConnectionResetError):  # It was refused before connect had returned.
                        held.enter_context(socket.create_connection((host, int(port)), source_address=(source, 0)))
            place.server.wait_for_log("a connection of 127.0.0.67 was refused")
            with Honest(place.address) as late:
                time.sleep(0.2)  # For it to be served meanwhile.
            self.assertEqual(late.failures, 0, late.errors)
            self.assertGreater(late.calls, 0)
            self.assertIn("half of what other addresses leave of 64", place.server.log())

    def test_a_server_that_can_not_accept_ends_with_a_code_of_its_own(self):
        server = Server()
        for listener in list(listening_sockets(server.process.pid)):  # The first ends the server.
            with listener:
                listener.shutdown(socket.SHUT_RDWR)  # Accepting fails from now on.
        self.assertEqual(server.process.wait(LIMIT_SECONDS), 4)
        self.assertIn("can't accept connections", server.log())
        with self.assertRaisesRegex(AssertionError, "exited with 4"):
            server.__exit__(None)  # Which looks for 0.

    def test_a_limit_that_is_too_low_is_refused_at_start(self):
        with self.assertRaisesRegex(RuntimeError, "limit of open files"):
            Server(under=["prlimit", "--nofile=60"]).stop()


if __name__ == "__main__":
    unittest.main()
