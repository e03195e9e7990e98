"""prefixd as an operator meets it: start, log, limits, memory, vanishing callers, drain."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import raw_http2
from harness import BIN_DIR, LIMIT_SECONDS, Server, grpc, server_environment, wait_until

from grpc.health.v1 import health_pb2, health_pb2_grpc
from prefixd.v1 import admin_pb2, admin_pb2_grpc, primitives_pb2, primitives_pb2_grpc, types_pb2
from foreign_client_test import chunk, reason, scan_request


def requests_in_flight(channel):
    return admin_pb2_grpc.AdminServiceStub(channel).GetServerInfo(admin_pb2.GetServerInfoRequest()).requests.used


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

    def test_one_log_line_a_request(self):
        with Server("--log-format", "json") as server:
            with grpc.insecure_channel(server.address) as channel:
                stub = primitives_pb2_grpc.PrefixServiceStub(channel)
                request = scan_request(np.ones(4, np.float32))
                request.request_id = "mine"
                stub.Scan(request)
                stub.Scan(scan_request(np.ones(4, np.float32), out_dtype=types_pb2.DTYPE_F64))
                with self.assertRaises(grpc.RpcError):
                    stub.Scan(chunk(np.ones(4, np.float32)))
                with self.assertRaises(grpc.RpcError):  # Invalid UTF-8: protobuf logs it, and the log stays JSON.
                    channel.unary_unary("/prefixd.v1.PrefixService/Scan")(b"\x12\x01\xff")
            wait_until(lambda: server.log().count('"message":"request"') == 4)  # A line comes when its call is done.
            server.stop()
            lines = [json.loads(line) for line in server.log().splitlines()]
        requests = [line for line in lines if line["message"] == "request"]
        self.assertEqual(len(requests), 4)
        wide = next(line for line in requests if "out_dtype" in line)
        self.assertEqual((wide["dtype"], wide["out_dtype"], wide["bytes_out"]), ("f32", "f64", 32))
        requests.remove(wide)
        by_reason = {line.get("reason"): line for line in requests}  # Lines come as calls end, in any order.
        good, bad, malformed = by_reason[None], by_reason["SPEC_MISSING"], by_reason["MALFORMED"]
        self.assertEqual((good["id"], good["method"], good["dtype"], good["op"], good["items"], good["status"]),
                         ("mine", "Scan", "f32", "sum", 4, "OK"))
        self.assertEqual((good["bytes_in"], good["bytes_out"]), (16, 16))
        self.assertIn("kernel_us", good)
        self.assertIn("127.0.0.1", good["caller"])
        self.assertEqual((bad["status"], malformed["status"]), ("INVALID_ARGUMENT", "INVALID_ARGUMENT"))

    def test_a_caller_writes_no_lines_of_its_own(self):
        forged = "info request id=\"forged\""
        for log_format in ("text", "json"):
            with self.subTest(log_format), Server("--log-format", log_format) as server:
                # gRPC logs a timeout that it can't read, as it stands.
                raw_http2.call(server.address, "/prefixd.v1.PrefixService/Scan",
                               metadata=[("grpc-timeout", f"1\n2026-01-01T00:00:00.000Z {forged}\x1b[2J\x7f")])
                with grpc.insecure_channel(server.address) as channel:
                    stub = primitives_pb2_grpc.PrefixServiceStub(channel)
                    request = scan_request(np.ones(4, np.float32))
                    request.request_id = f"a\n{forged}"
                    with self.assertRaises(grpc.RpcError):
                        stub.Scan(request)
                wait_until(lambda: "REQUEST_ID" in server.log())
                server.stop()
                log = pathlib.Path(server.log_path).read_bytes()
                self.assertEqual(set(log) - set(range(0x20, 0x7f)), {0x0a})
                self.assertFalse([line for line in log.decode().splitlines() if line.startswith("2026-01-01")])

    def test_lines_of_a_kind_are_limited_and_counted(self):
        with Server("--log-lines-per-second", "5") as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            for _ in range(50):
                with self.assertRaises(grpc.RpcError):
                    stub.Scan(chunk(np.ones(4, np.float32)))
            server.stop()
            written = server.log().count("SPEC_MISSING\" error")
            dropped = sum(int(line.split()[2]) for line in server.log().splitlines() if "'request SPEC_MISSING'" in line)
            self.assertLess(written, 50)
            self.assertEqual(written + dropped, 50, server.log())

    def test_a_message_above_the_limit_is_no_end_of_the_stream(self):
        with Server("--max-message-bytes", str(2 << 20)) as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            large = np.ones(1 << 20, np.int32)
            for requests in ([scan_request(large)], [scan_request(large[:100]), chunk(large)]):
                with self.assertRaises(grpc.RpcError) as caught:
                    list(stub.StreamScan(iter(requests)))
                self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            wait_until(lambda: server.log().count("method=") == 2)
            self.assertEqual(server.log().count("--max-message-bytes"), 2)

    def test_reflection_takes_a_few_threads_at_most(self):
        with Server() as server, grpc.insecure_channel(server.address) as channel:
            def threads():
                return len(os.listdir(f"/proc/{server.process.pid}/task"))
            before, end = threads(), threading.Event()
            method = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
            calls = [method(iter(end.wait, True)) for _ in range(60)]
            wait_until(lambda: sum(call.done() for call in calls) >= 60 - 16)  # Those that find no thread are refused.
            self.assertLess(threads(), before + 30)
            refused = next(call for call in calls if call.done())
            self.assertEqual(refused.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            end.set()
            for call in calls:
                call.cancel()

    def test_requests_over_the_budget_are_refused_and_then_taken(self):
        with Server("--max-requests", "2", "--caller-share-percent", "100") as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            end = threading.Event()

            def requests():
                yield scan_request(np.ones(1, np.int32))
                end.wait(LIMIT_SECONDS)

            streams = [stub.StreamScan(requests()) for _ in range(2)]
            for stream in streams:
                next(stream)
            with self.assertRaises(grpc.RpcError) as caught:
                stub.Scan(scan_request(np.ones(1, np.int32)))
            self.assertEqual(reason(caught.exception), "REQUEST_BUDGET")
            end.set()
            for stream in streams:
                list(stream)
            wait_until(lambda: requests_in_flight(channel) == 0)
            stub.Scan(scan_request(np.ones(1, np.int32)))

    def test_a_caller_that_was_answered_is_not_in_its_own_way(self):
        with Server("--max-requests", "1", "--caller-share-percent", "100") as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            for _ in range(300):
                stub.Scan(scan_request(np.ones(1024, np.float32)))
                list(stub.StreamScan(iter([scan_request(np.ones(1024, np.float32))])))

    def test_streams_pass_through_in_bounded_memory(self):
        """Sends 1 GiB through one stream whose reader falls behind. The server's memory stays in its share."""
        chunks, items = 1024, 1 << 18
        ones = np.ones(items, np.int32)
        with Server() as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            # Once through, so that what is allocated once is.
            list(stub.StreamScan(iter([scan_request(ones)] + [chunk(ones)] * 8)))
            before = server.memory_kib()
            requests = (scan_request(ones) if i == 0 else chunk(ones) for i in range(chunks))
            total, most = 0, 0
            for i, reply in enumerate(stub.StreamScan(requests)):
                total += len(reply.values.inline.data)
                if i == 10:
                    time.sleep(0.5)  # A reader that pauses, for what would pile up meanwhile.
                if i % 50 == 0:
                    most = max(most, server.memory_kib())
            self.assertEqual(total, chunks * items * 4)
            # A stream's share is 16 MiB; the rest is gRPC's own windows and the allocator's habits.
            self.assertLess(most - before, 200 << 10)

    def test_readers_that_do_not_read_hold_their_share_and_no_more(self):
        streams, items = 12, 1 << 20
        with Server() as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            end = threading.Event()

            def requests():
                request = primitives_pb2.CompactRequest()
                request.spec.dtype = types_pb2.DTYPE_I32
                request.spec.predicate.comparison = primitives_pb2.COMPARISON_IS_FINITE
                request.spec.return_indices = True
                request.values.inline.data = np.ones(items - 1024, np.int32).tobytes()
                yield request
                request.ClearField("spec")
                while not end.is_set():
                    yield request

            def takes_no_more():
                earlier = server.memory_kib()
                time.sleep(2)  # In which a server without bounds would take on.
                now = server.memory_kib()
                self.assertLess(now - before, streams * 80 << 10)  # A second brings in 1 GiB and more.
                return now - earlier < streams << 10

            before = server.memory_kib()
            calls = [stub.StreamCompact(requests()) for _ in range(streams)]
            for call in calls:
                next(call)
            # They stop reading; the server takes what it may hold, and gRPC what its windows allow.
            try:
                wait_until(takes_no_more)
            finally:
                end.set()
                for call in calls:
                    call.cancel()

    def test_a_log_that_nobody_reads_stops_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            port_file = pathlib.Path(folder) / "port"
            process = subprocess.Popen([BIN_DIR / "prefixd", "--device", "cpu", "--listen", "127.0.0.1:0", "--port-file",
                                        port_file], stderr=subprocess.PIPE, env=server_environment())
            wait_until(port_file.exists)
            with grpc.insecure_channel(f"127.0.0.1:{port_file.read_text().strip()}") as channel:
                stub = primitives_pb2_grpc.PrefixServiceStub(channel)
                for _ in range(1000):  # Several times what a pipe holds.
                    stub.Scan(scan_request(np.ones(1, np.int32)), timeout=LIMIT_SECONDS)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(LIMIT_SECONDS), 0)
            process.stderr.close()

    def test_a_header_that_can_not_be_sent_back_is_survived(self):
        def field(name, value):  # HPACK: literal, never indexed, not Huffman coded.
            return b"\x10" + bytes([len(name)]) + name + bytes([len(value)]) + value

        def frame(kind, flags, stream, payload):
            return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

        with Server() as server:
            host, port = server.address.split(":")
            for value in (b"nul\0x", b"line\nfeed", b"\x80"):
                headers = (field(b":method", b"POST") + field(b":scheme", b"http") + field(b":authority", b"x") +
                           field(b":path", b"/prefixd.v1.PrefixService/Scan") + field(b"te", b"trailers") +
                           field(b"content-type", b"application/grpc") + field(b"traceparent", value))
                with socket.create_connection((host, int(port))) as connection:
                    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") +
                                       frame(1, 4, 1, headers) + frame(0, 1, 1, b"\0\0\0\0\0"))
                    connection.settimeout(1)
                    try:
                        while connection.recv(4096):
                            pass
                    except TimeoutError:
                        pass
            with grpc.insecure_channel(server.address) as channel:
                stub = primitives_pb2_grpc.PrefixServiceStub(channel)
                stub.Scan(scan_request(np.ones(1, np.int32)))

    def test_a_caller_that_is_killed_in_mid_stream_leaves_nothing_behind(self):
        script = """
import sys
sys.path[:0] = [{folder!r}]
import numpy as np
from harness import grpc
from prefixd.v1 import primitives_pb2_grpc
from foreign_client_test import chunk, scan_request
def requests():
    yield scan_request(np.ones(1 << 18, np.int32))
    print("sent", flush=True)
    while True:
        yield chunk(np.ones(1 << 18, np.int32))
for reply in primitives_pb2_grpc.PrefixServiceStub(grpc.insecure_channel({address!r})).StreamScan(requests()):
    pass
"""
        with Server("--lanes", "1") as server, grpc.insecure_channel(server.address) as channel:
            folder = str(pathlib.Path(__file__).parent)
            process = subprocess.Popen([sys.executable, "-c", script.format(folder=folder, address=server.address)],
                                       stdout=subprocess.PIPE)
            process.stdout.readline()
            wait_until(lambda: requests_in_flight(channel) == 1)
            process.kill()
            process.wait()
            process.stdout.close()
            wait_until(lambda: requests_in_flight(channel) == 0)
            wait_until(lambda: "method=" in server.log())
            self.assertIn('status="CANCELLED"', server.log())
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            stub.Scan(scan_request(np.ones(1, np.int32)))

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

    def test_sighup_reads_the_log_level_again_and_ends_nothing(self):
        with tempfile.TemporaryDirectory(prefix="prefixd_e2e_") as folder:
            level = pathlib.Path(folder) / "level"
            level.write_text("info\n")
            with Server("--log-level-file", level) as server, grpc.insecure_channel(server.address) as channel:
                stub = primitives_pb2_grpc.PrefixServiceStub(channel)

                def hang_up():
                    server.process.send_signal(signal.SIGHUP)

                def is_logged():
                    before = server.log().count("method")
                    stub.Scan(scan_request(np.ones(4, np.int32)), timeout=10)
                    time.sleep(0.3)  # For a line that may come.
                    return server.log().count("method") > before

                self.assertTrue(is_logged())
                level.write_text("error")
                self.assertTrue(is_logged())  # Nothing was asked for yet.
                hang_up()
                wait_until(lambda: not is_logged())
                level.write_text("louder")
                hang_up()
                wait_until(lambda: "the log level stays: --log-level-file" in server.log())
                self.assertFalse(is_logged())
                level.write_text(" debug\n")
                hang_up()
                wait_until(is_logged)
                for _ in range(100):
                    hang_up()
                self.assertTrue(is_logged())
            level.write_text("loud")
            with self.assertRaisesRegex(RuntimeError, "expected one of trace, debug"):
                Server("--log-level-file", level).stop()

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
            wait_until(lambda: "draining" in server.log())
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
            wait_until(lambda: "draining" in server.log())
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(LIMIT_SECONDS), 0)
            end.set()
            with self.assertRaises(grpc.RpcError):
                list(stream)
        server.__exit__(None)


if __name__ == "__main__":
    unittest.main()
