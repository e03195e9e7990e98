"""prefixd as an operator meets it: start, signals, drain, a lost device."""

import os
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import numpy as np

from harness import BIN_DIR, LIMIT_SECONDS, Server, grpc, server_environment

from grpc.health.v1 import health_pb2, health_pb2_grpc
from prefixd.v1 import primitives_pb2_grpc
from admin_test import REFLECTION
from foreign_client_test import chunk, reason, scan_request


class LifecycleTest(unittest.TestCase):
    def run_prefixd(self, *flags, env=None):
        return subprocess.run([BIN_DIR / "prefixd", *flags], capture_output=True, timeout=LIMIT_SECONDS,
                              env=server_environment(env))

    def test_wrong_flags_exit_with_two(self):
        for flags in (["--lanes", "0"], ["--lane-poll-us", "-1"], ["--device", "tpu"], ["--nonsense"],
                      ["--log-format", "xml"]):
            with self.subTest(flags=flags):
                done = self.run_prefixd(*flags)
                self.assertEqual(done.returncode, 2)
                self.assertIn(flags[0].encode(), done.stderr)
                self.assertIn(b"Usage: prefixd", done.stderr)
        self.assertEqual(self.run_prefixd(env={"PREFIXD_LANES": "0"}).returncode, 2)

    def test_a_variable_that_is_none_of_ours_exits_with_two(self):
        done = self.run_prefixd(env={"PREFIXD_LANEZ": "8"})
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"no PREFIXD_LANEZ in the environment: did you mean PREFIXD_LANES?", done.stderr)

    def test_what_can_not_start_exits_with_one(self):
        done = self.run_prefixd("--device", "cuda:99")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cuda:99", done.stderr)
        with Server() as server:
            done = self.run_prefixd("--device", "cpu", "--listen", server.address)
            self.assertEqual(done.returncode, 1)
            self.assertIn(server.address.encode(), done.stderr)

    def test_unix_sockets_and_several_addresses(self):
        with tempfile.TemporaryDirectory() as folder:
            address = f"unix:{folder}/prefixd.sock"
            with Server("--listen", address) as server:
                for target in (address, server.address):
                    with grpc.insecure_channel(target) as channel:
                        stub = primitives_pb2_grpc.PrefixServiceStub(channel)
                        self.assertEqual(stub.Scan(scan_request(np.ones(4, np.int32))).timing.num_items, 4)
            self.assertEqual(os.listdir(folder), [])

    def test_sigterm_finishes_what_is_in_flight(self):
        server = Server()
        with grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            go_on = threading.Event()

            def requests():
                yield scan_request(np.ones(2, np.int32))
                go_on.wait(LIMIT_SECONDS)
                yield chunk(np.ones(2, np.int32))

            stream = stub.StreamScan(requests())
            next(stream)
            watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVING)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.NOT_SERVING)
            go_on.set()
            np.testing.assert_array_equal(np.frombuffer(next(stream).values.inline.data, np.int32), [3, 4])
            self.assertTrue(next(stream).HasField("timing"))
        began = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - began, 8)  # gRPC's own pause would be ten seconds.
        server.__exit__(None)

    def test_a_drain_does_not_wait_for_who_asks_nothing(self):
        with Server() as server, grpc.insecure_channel(server.address) as channel:
            end = threading.Event()
            self.addCleanup(end.set)

            def questions(*first):
                yield from first
                end.wait()
            asked, silent = (channel.stream_stream(REFLECTION)(questions(*first)) for first in ([b"\x3a\x00"], []))
            next(asked)
            began = time.monotonic()
            self.assertEqual(server.stop(), 0)
            self.assertLess(time.monotonic() - began, 10)  # It is 30 s that --drain-timeout-seconds gives requests.
            for call in (asked, silent):
                with self.assertRaises(grpc.RpcError) as raised:
                    next(call)
                self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)
                self.assertEqual(reason(raised.exception), "DRAINING")

    def test_a_lost_device_ends_the_process_with_its_own_code(self):
        server = Server(program="failing_prefixd")
        with grpc.insecure_channel(server.address) as channel:
            with self.assertRaises(grpc.RpcError) as caught:
                primitives_pb2_grpc.PrefixServiceStub(channel).Scan(scan_request(np.ones(1, np.int32)))
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertEqual(reason(caught.exception), "DEVICE_LOST")
        self.assertEqual(server.process.wait(LIMIT_SECONDS), 3)
        self.assertIn("the card is gone", server.log())
        with self.assertRaises(AssertionError):  # The harness takes 0 alone for a good end.
            server.__exit__(None)

    def test_sighup_does_not_hurry_a_drain(self):
        with Server() as server, grpc.insecure_channel(server.address) as channel:
            go_on = threading.Event()

            def chunks():
                yield scan_request(np.ones(4, np.int32))
                go_on.wait(LIMIT_SECONDS)
                yield chunk(np.ones(4, np.int32))

            replies = primitives_pb2_grpc.PrefixServiceStub(channel).StreamScan(chunks(), timeout=LIMIT_SECONDS)
            next(replies)
            server.process.send_signal(signal.SIGTERM)
            server.wait_for_log("draining")
            server.process.send_signal(signal.SIGHUP)
            time.sleep(0.5)  # In which it could be cut off.
            go_on.set()
            self.assertEqual(len(list(replies)), 2)

    def test_a_second_signal_stops_at_once(self):
        server = Server("--drain-timeout-seconds", "600")
        with grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            end = threading.Event()

            def requests():
                yield scan_request(np.ones(2, np.int32))
                end.wait(LIMIT_SECONDS)

            stream = stub.StreamScan(requests())
            next(stream)
            server.process.send_signal(signal.SIGTERM)
            server.wait_for_log("draining")
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(LIMIT_SECONDS), 0)
            end.set()
            with self.assertRaises(grpc.RpcError):
                list(stream)
        server.__exit__(None)


if __name__ == "__main__":
    unittest.main()
