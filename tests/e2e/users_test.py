"""Who calls on a Unix socket: the user, whatever else happens to connections."""

import collections
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

import raw_http2
from foreign_client_test import reason, scan_request
from harness import Server, grpc, wait_until
from prefixd.v1 import primitives_pb2_grpc

# Nobody on most hosts. The last ones come when there are too many.
USERS = range(4100, 4118)
MAX_USERS = 16
LAST = 1 << 32  # A user's last call.
REQUEST = scan_request(np.ones(4, np.int32))


def call_as(user, address, *arguments):
    """A process that becomes this user and runs `main`."""
    return subprocess.Popen([sys.executable, __file__, str(user), address, *map(str, arguments)],
                            stdout=subprocess.PIPE, text=True)


class UsersTest(unittest.TestCase):
    FLAGS = ("--socket-mode", "0666", "--log-format", "json", "--log-lines-per-second", "0")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="prefixd_users_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o755)
        self.path = f"{self.folder}/prefixd.sock"
        self.socket = f"unix:{self.path}"

    def serve(self, *flags, **options):
        return Server("--listen", self.socket, *self.FLAGS, *flags, **options)

    def requests(self, server):
        """What the log says of requests that have ended."""
        lines = [json.loads(line) for line in server.log().split("\n")[:-1]]
        return [line for line in lines if line["message"] == "request"]

    def call(self, address=None):
        with grpc.insecure_channel(address or self.socket) as channel:
            return primitives_pb2_grpc.PrefixServiceStub(channel).Scan(REQUEST, timeout=30)

    def test_a_caller_is_the_user_who_connected(self):
        with self.serve() as server:
            self.call()
            wait_until(lambda: len(self.requests(server)) == 1)
            self.call(server.address)
            wait_until(lambda: len(self.requests(server)) == 2)
            by_socket, by_tcp = self.requests(server)
        self.assertEqual(by_socket["caller"], f"uid:{os.geteuid()}")
        self.assertRegex(by_socket["connection"], "^unix:[0-9a-f]+$")
        self.assertEqual(by_tcp["caller"], "127.0.0.1")

    def test_users_have_limits_by_name_and_errors_name_them(self):
        limits = self.folder / "limits"
        limits.write_text(f"uid:{os.geteuid()} requests_per_second=1\n")
        with self.serve("--caller-limits", limits):
            with self.assertRaises(grpc.RpcError) as raised:
                for _ in range(20):
                    self.call()
            self.assertEqual(reason(raised.exception), "CALLER_RATE")
            self.assertIn(f"caller uid:{os.geteuid()}", raised.exception.details())

    def test_what_a_connection_calls_itself_is_not_believed(self):
        """A caller may bind his end to any name, and gRPC reports it."""
        with self.serve() as server, socket.socket(socket.AF_UNIX) as ours:
            ours.bind(f"{self.folder}/ipv4:10.0.0.1:1")
            ours.connect(self.path)
            ours.settimeout(30)
            ours.sendall(raw_http2.PREFACE + raw_http2.frame(raw_http2.SETTINGS) +
                         raw_http2.header_frames(1, raw_http2.headers("/prefixd.v1.PrefixService/Scan")) +
                         raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, 1))
            server.wait_for_log('"method":"Scan"')
            self.assertEqual([line["caller"] for line in self.requests(server)], [f"uid:{os.geteuid()}"])

    def test_users_of_an_address_for_administrators(self):
        admin = f"unix:{self.folder}/admin.sock"
        with self.serve("--admin-listen", admin) as server:
            self.call()
            with self.assertRaises(grpc.RpcError) as raised:
                self.call(admin)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
            wait_until(lambda: self.requests(server))

    def test_a_drain_tells_users_to_go_and_waits_for_what_is_in_flight(self):
        with self.serve() as server:
            with grpc.insecure_channel(self.socket) as channel, socket.socket(socket.AF_UNIX) as silent:
                stub = primitives_pb2_grpc.PrefixServiceStub(channel)
                silent.connect(self.path)

                def requests():
                    yield REQUEST
                    # A stream's end comes when the server has begun to drain, and refuses new calls.
                    wait_until(lambda: not os.path.exists(self.path))
                    time.sleep(0.5)
                replies = stub.StreamScan(requests(), timeout=60)
                next(replies)
                began = time.monotonic()
                server.process.terminate()
                self.assertEqual(len(list(replies)), 1)  # The result.
                self.assertEqual(server.process.wait(60), 0)
                self.assertLess(time.monotonic() - began, 20)  # And not --drain-timeout-seconds.

    def test_connections_that_say_nothing_are_closed(self):
        with self.serve() as server:
            self.call()  # The user has a server, so that the number of files is what it will be.
            files = f"/proc/{server.process.pid}/fd"
            wait_until(lambda: self.requests(server))
            before = len(os.listdir(files))
            silent = [socket.socket(socket.AF_UNIX) for _ in range(4)]
            for i, connection in enumerate(silent):
                connection.connect(self.path)
                connection.settimeout(60)
                if i % 2 == 0:
                    connection.sendall(raw_http2.PREFACE)
            for connection in silent:
                with connection:
                    while connection.recv(1 << 16):  # What the server says for its part.
                        pass
            wait_until(lambda: len(os.listdir(files)) <= before)

    def test_a_drain_sends_goaway(self):
        with self.serve() as server, socket.socket(socket.AF_UNIX) as ours:
            ours.connect(self.path)
            ours.settimeout(30)
            ours.sendall(raw_http2.PREFACE + raw_http2.frame(raw_http2.SETTINGS))
            frames = raw_http2.read_frames(ours)
            self.assertEqual(next(frames)[0], raw_http2.SETTINGS)
            server.process.terminate()
            self.assertIn(raw_http2.GOAWAY, [kind for kind, *_ in frames])

    def calls_by_user(self, server):
        """How many calls the log has of each (user, as he says in his trace; caller, as the server says), and under
        LAST of those that were their user's last."""
        calls = collections.Counter()
        for line in self.requests(server):
            _, user, number, _ = line["traceparent"].split("-")
            calls[int(user, 16), line["caller"]] += 1
            calls[LAST] += int(number, 16) == LAST
        return calls

    @unittest.skipIf(os.geteuid() != 0, "only root can call as somebody else")
    def test_names_hold_while_descriptors_are_used_again(self):
        """Two users take turns, each with connections that end at once or in the middle of calls."""
        seed = random.randrange(1 << 32)
        print(f"seed {seed}", file=sys.stderr)
        with self.serve() as server:
            callers = [call_as(user, self.socket, 60, seed + user) for user in USERS[:2]]
            for caller in callers:
                self.assertEqual(caller.communicate(timeout=120)[0], "done\n")
            wait_until(lambda: self.calls_by_user(server)[LAST] == len(callers))
            files = len(os.listdir(f"/proc/{server.process.pid}/fd"))
            calls = self.calls_by_user(server)
        self.assertLess(files, 100)  # So that numbers were used again.
        del calls[LAST]
        self.assertEqual({caller for _, caller in calls}, {f"uid:{user}" for user in USERS[:2]})
        for (user, caller), count in calls.items():
            self.assertEqual(caller, f"uid:{user}")
            self.assertGreater(count, 60)

    @unittest.skipIf(os.geteuid() != 0, "only root can call as somebody else")
    def test_users_beyond_the_most_that_have_servers_are_served_too(self):
        with self.serve() as server:
            for user in USERS[:MAX_USERS + 2]:
                self.assertEqual(call_as(user, self.socket, 1, 0).communicate(timeout=60)[0], "done\n")
            wait_until(lambda: self.calls_by_user(server)[LAST] == MAX_USERS + 2)
            calls, log = self.calls_by_user(server), server.log()
        for i, user in enumerate(USERS[:MAX_USERS + 2]):
            self.assertIn((user, f"uid:{user}" if i < MAX_USERS else "unix"), calls)
        self.assertEqual(len(calls), MAX_USERS + 3)
        self.assertRegex(log, re.escape(f"uid:{USERS[MAX_USERS]} has no server of his own"))


def main():
    """Calls on connections of its own, some of which it leaves without waiting."""
    user, address, num_connections, seed = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    choose = random.Random(seed)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)

    def scan(channel, number):
        # Read with the headers, so the log has it also of calls that are cut off before their message.
        trace = f"00-{user:032x}-{number:016x}-01"
        return primitives_pb2_grpc.PrefixServiceStub(channel).Scan.future(REQUEST, timeout=30,
                                                                          metadata=(("traceparent", trace),))

    for _ in range(num_connections):
        with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            calls = [scan(channel, 1) for _ in range(choose.randrange(1, 8))]
            for call in calls if choose.random() < 0.5 else calls[:1]:  # The others are cut off.
                call.result()
    with grpc.insecure_channel(address) as channel:
        scan(channel, LAST).result()
    print("done")


if __name__ == "__main__":
    main()
