"""What prefixd logs, what callers can't write into it, and a log that nobody reads."""

import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np

import raw_http2
from harness import BIN_DIR, LIMIT_SECONDS, Server, grpc, server_environment, wait_until

from prefixd.v1 import primitives_pb2_grpc, types_pb2
from foreign_client_test import chunk, scan_request


class LogTest(unittest.TestCase):
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
                server.wait_for_log("REQUEST_ID")
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
                server.wait_for_log("the log level stays: --log-level-file")
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


if __name__ == "__main__":
    unittest.main()
