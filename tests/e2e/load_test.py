"""prefixctl load and wire, and DiagnosticsService from Python, against a real prefixd."""

import csv
import io
import json
import signal
import subprocess
import threading
import time
import unittest
import xml.etree.ElementTree as ElementTree

from harness import BIN_DIR, E2ETest, INTERRUPTIBLE, LIMIT_SECONDS, Server, wait_until  # First: it makes the stubs known.

import grpc
from google.rpc import error_details_pb2, status_pb2
from prefixd.v1 import diagnostics_pb2 as pb, diagnostics_pb2_grpc

QUICK = ("--warmup-seconds", "0.1", "--seconds", "1")
# Goes on for hours where nobody ends it.
LONG = ("--callers", "2,2", "--seconds", "3600")
MIX = "scan:f32:1000=4,reduce:f64:300=2,compact:i8:100"
SVG = "{http://www.w3.org/2000/svg}"


def reason(error):
    for packed in status_pb2.Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"]).details:
        info = error_details_pb2.ErrorInfo()
        if packed.Unpack(info):
            return info.reason


class LoadTestCase(E2ETest):
    def stub(self, server=None):
        channel = grpc.insecure_channel((server or self.server).address)
        self.addCleanup(channel.close)
        return diagnostics_pb2_grpc.DiagnosticsServiceStub(channel)

    def start(self, *arguments, server=None):
        process = subprocess.Popen(
            [*INTERRUPTIBLE, BIN_DIR / "prefixctl", "--server", (server or self.server).address, *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def requests_in_flight(self):
        return self.ctl_json("info")["requests"]["used"]

    def assert_consistent(self, row):
        self.assertEqual(row["failed"], 0, row)
        self.assertGreater(row["requests"], 0, row)
        self.assertGreater(row["requests_per_second"], 0)
        times = [row[name] for name in ("p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns")]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[0], 0)


class LoadTest(LoadTestCase):
    def test_a_closed_loop_of_a_mix(self):
        result = self.ctl_json("load", "--callers", "1,3", "--mix", MIX, "--seed", "7", *QUICK)
        self.assertEqual((result["target"], result["seed"]), ("device", 7))
        self.assertEqual([m["weight"] for m in result["mix"]], [4, 2, 1])
        self.assertEqual([load["callers"] for load in result["loads"]], [1, 3])
        for load in result["loads"]:
            self.assertEqual(load["windows"], 3)
            self.assertGreaterEqual(load["seconds"], 1)
            self.assertEqual(load["errors"], [])
            self.assertEqual([row["operation"] for row in load["operations"]],
                             ["scan:f32:1000", "reduce:f64:300", "compact:i8:100"])
            for row in [load["total"], *load["operations"]]:
                self.assert_consistent(row)
                # The server's time is a part of the client's.
                self.assertLess(row["server_total_ns"], row["mean_ns"])
                self.assertIn("server_kernel_ns", row)
            for count in ("requests", "late", "unsent"):
                self.assertEqual(load["total"][count], sum(row[count] for row in load["operations"]))
            self.assertGreater(load["operations"][0]["requests"], load["operations"][2]["requests"])

    def test_an_open_loop_keeps_its_rate(self):
        result = self.ctl_json("load", "--rate-per-second", "50", "--callers", "8", "--warmup-seconds", "0",
                               "--seconds", "1")
        load, = result["loads"]
        self.assertEqual((load["arrivals_per_second"], load["callers"]), (50, 8))
        total = load["total"]
        self.assert_consistent(total)
        arrived = int(load["seconds"] * 50)
        self.assertGreaterEqual(total["requests"] + total["late"] + total["unsent"], arrived)
        self.assertLessEqual(total["requests"] + total["late"] + total["unsent"], arrived + 9)

    def test_what_an_open_loop_cannot_send_is_told(self):
        load, = self.ctl_json("load", "--rate-per-second", "100000", "--callers", "1", "--mix", "scan:f64:2^17",
                              "--seconds", "3", "--warmup-seconds", "0.1")["loads"]
        self.assertGreater(load["total"]["unsent"], 0)
        self.assertFalse(load["stable"])
        table = self.ctl("load", "--rate-per-second", "100000", "--callers", "1", *QUICK).stdout.decode()
        self.assertRegex(table, r"\n *arrivals/s .* unsent +stable\n")
        self.assertRegex(table, r"\n *100000  scan:f32:2\^10 .* [1-9]\d* +no\n")

    def test_a_table_and_a_plot_of_a_sweep(self):
        path = self.folder / "load.svg"
        out = self.ctl("load", "--callers", "1,2,4", "--channels", "2", "--mix", MIX, "--plot", path,
                       *QUICK).stdout.decode()
        self.assertRegex(out.splitlines()[0], r"prefixd \S+: closed loop, 2 channels, 1 s measured after 0\.1 s, seed \d+\.")
        rows = [line.split() for line in out.split("\n\n")[1].splitlines()]
        self.assertEqual(rows[0], "callers operation requests/s MB/s p50 p90 p99 p99.9 max failed stable".split())
        self.assertEqual([row[0] for row in rows[1::4]], ["1", "2", "4"])
        self.assertEqual([row[1] for row in rows[1::4]], ["all"] * 3)
        for row in rows[1::4]:
            self.assertIn(row[-1], ("yes", "no"))
            self.assertEqual(len(row), 11)
        stages = [line.split() for line in out.split("\n\n")[3].splitlines()]
        self.assertEqual(" ".join(stages[0]), "callers operation client server queue host copy to device kernel from device")
        self.assertEqual(len(stages), 1 + 3 * 4)
        svg = ElementTree.parse(path).getroot()
        self.assertEqual(len(list(svg.iter(SVG + "circle"))), 4 * 4 * 3)  # Panels, percentiles, loads.

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(
            self.ctl("load", "--callers", "1,2", "--mix", MIX, "--csv", *QUICK).stdout.decode())))
        self.assertEqual([(row["callers"], row["operation"]) for row in rows],
                         [(n, op) for n in "12" for op in ("all", "scan:f32:1000", "reduce:f64:300", "compact:i8:100")])
        self.assertGreater(float(rows[0]["requests_per_second"]), 0)

    def test_long_arrays_are_streamed(self):
        for command, method in (("load", "StreamScan"), ("wire", "StreamEcho")):
            with self.subTest(command):
                load, = self.ctl_json(command, "--callers", "1", "--mix", "scan:f32:400000", "--seconds", "0.5",
                                      "--warmup-seconds", "0")["loads"]
                total = load["total"]
                self.assert_consistent(total)
                self.assertAlmostEqual(total["bytes_per_second"] * load["seconds"] / total["requests"], 2 * 4 * 400000)
                self.server.wait_for_log(f'method="{method}"')

    def test_wire_sends_the_same_to_the_echo(self):
        result = self.ctl_json("wire", "--callers", "2", "--mix", MIX, *QUICK)
        self.assertEqual(result["target"], "echo")
        load, = result["loads"]
        for row, num_bytes in zip(load["operations"], (4 * 1000, 8 * 300, 100)):
            self.assert_consistent(row)
            self.assertAlmostEqual(row["bytes_per_second"] * load["seconds"] / row["requests"], 2 * num_bytes)
            self.assertNotIn("server_total_ns", row)
        out = self.ctl("wire", "--callers", "2", *QUICK).stdout.decode()
        self.assertRegex(out, "^echo of prefixd ")
        self.assertNotIn("Means", out)

    def test_until_stable_measures_on(self):
        load, = self.ctl_json("load", "--callers", "1", "--stable", *QUICK)["loads"]
        self.assertIn(load["windows"], range(3, 11))
        if not load["stable"]:
            self.assertEqual(load["windows"], 10)

    def test_wrong_usage_is_said_before_a_server_is_asked(self):
        nobody = "127.0.0.1:1"
        for arguments, word in [
            (("--callers", "0"), "'0' is no number from 1 to 1024"), (("--callers", "x"), "'x' is no number"),
            (("--callers", "1025"), "'1025'"), (("--rate-per-second", "0"), "'0' is no number from 1 to 100000"),
            (("--rate-per-second", "5", "--callers", "1,2"), "one number of --callers"),
            (("--mix", "sort:f32:4"), "'sort:f32:4' is no operation"), (("--mix", "scan:f32:4=0"), "'scan:f32:4=0'"),
            (("--mix", ""), "'' is no operation"), (("--channels", "0"), "--channels"), (("--channels", "65"), "--channels"),
            (("--seconds", "0"), "--seconds"), (("--seconds", "3601"), "--seconds"),
            (("--seconds", "nan"), "--seconds: 'nan' is no number from 0.1 to 3600"),
            (("--warmup-seconds", "-1"), "--warmup-seconds"), (("--warmup-seconds", "-nan"), "no number from 0 to 600"),
            (("--warmup-seconds", "1s"), "'1s'"), (("--seed", "x"), "--seed: 'x' is no number"),
            (("--seed", "-1"), "'-1' is no number from 0 to 18446744073709551615"), (("--seed", ""), "--seed: ''"),
            (("--seed", "18446744073709551616"), "is no number from 0 to 18446744073709551615"),
            (("--csv", "--json"), "--csv and --json"), (("--plot", "-"), "--plot needs"), (("now",), "now"),
        ]:
            for command in ("load", "wire"):
                with self.subTest(command=command, arguments=arguments):
                    self.assert_fails(command, *arguments, code=2, says=word, server=nobody)

    def test_a_plot_that_cannot_be_written_is_known_before_the_work(self):
        done = self.ctl("load", "--plot", self.folder / "no" / "folder.svg", expect=1)
        self.assertIn(b"folder.svg", done.stderr)
        self.assertEqual(done.stdout, b"")

    def test_no_server(self):
        self.assert_fails("load", says=("UNAVAILABLE", "no prefixd answers"), server="127.0.0.1:1")

    def test_ctrl_c_keeps_what_came(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                path = self.folder / "load.svg"
                process = self.start("--json", "load", *LONG, "--warmup-seconds", "0", "--plot", path)
                wait_until(lambda: self.requests_in_flight() > 0)
                process.send_signal(number)
                out, errors = process.communicate(timeout=LIMIT_SECONDS)
                self.assertEqual(process.returncode, 1)
                self.assertEqual(errors.decode(), "prefixctl: load: interrupted when 0 of 2 loads were measured\n")
                load, = json.loads(out)["loads"]
                self.assertEqual((load["windows"], load["stable"], load["errors"]), (1, False, []))
                self.assertEqual(path.exists(), sum(load["total"][n] for n in ("requests", "late", "interrupted")) > 0)
                wait_until(lambda: self.requests_in_flight() == 0)

    def test_ctrl_c_in_the_warm_up_leaves_nothing(self):
        process = self.start("--json", "load", *LONG, "--warmup-seconds", "600")
        wait_until(lambda: self.requests_in_flight() > 0)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual((process.returncode, json.loads(out)["loads"]), (1, []))

    def test_ctrl_c_tells_what_hung(self):
        with Server() as server:
            process = self.start("--json", "load", "--callers", "3", "--seconds", "3600", "--warmup-seconds", "0",
                                 server=server)
            server.wait_for_log('method="Scan"')
            server.process.send_signal(signal.SIGSTOP)
            try:
                time.sleep(1)  # So long it hangs.
                process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=LIMIT_SECONDS)
            finally:
                server.process.send_signal(signal.SIGCONT)
        total = json.loads(out)["loads"][0]["total"]
        self.assertEqual(total["interrupted"], 3)
        self.assertGreater(total["max_ns"], 0.5e9)

    def test_a_server_that_goes_away_ends_it(self):
        with Server() as server:
            process = self.start("load", "--callers", "2,4", "--seconds", "3", server=server)
            server.wait_for_log('method="Scan"')
            self.assertEqual(server.stop(), 0)
            out, errors = process.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(errors.decode(), "^prefixctl: load: UNAVAILABLE")
        self.assertRegex(out.decode(), r"\n  \d+ failed: UNAVAILABLE")

    # ---- From Python ----
    def test_the_echo_is_byte_for_byte(self):
        stub = self.stub()
        for data in (b"", b"x", bytes(range(256)) * 4096):
            self.assertEqual(stub.Echo(pb.EchoRequest(data=data)).data, data)
        # Whatever the bytes are, they come back.
        raw = grpc.insecure_channel(self.server.address)
        self.addCleanup(raw.close)
        for junk in (b"\xff\xff\xff", b"no message"):
            self.assertEqual(raw.unary_unary("/prefixd.v1.DiagnosticsService/Echo")(junk), junk)

    def test_a_stream_comes_back_in_order(self):
        messages = [bytes([i % 256]) * (i * 997) for i in range(200)] + [b""]
        replies = self.stub().StreamEcho(pb.EchoRequest(data=data) for data in messages)
        self.assertEqual([reply.data for reply in replies], messages)
        self.assertEqual(list(self.stub().StreamEcho(iter([]))), [])

    def test_one_message_comes_back_before_the_next(self):
        gate = threading.Semaphore()

        def requests():
            for i in range(5):
                gate.acquire()
                yield pb.EchoRequest(data=bytes([i]))

        got = []
        for reply in self.stub().StreamEcho(requests()):
            got.append(reply.data)
            gate.release()
        self.assertEqual(got, [bytes([i]) for i in range(5)])

    def test_a_stream_whose_replies_are_not_read_is_held_up(self):
        sent = 0

        def requests():
            nonlocal sent
            for _ in range(1000):
                sent += 1
                yield pb.EchoRequest(data=bytes(1 << 20))

        before = self.server.memory_kib()
        call = self.stub().StreamEcho(requests())
        wait_until(lambda: self.requests_in_flight() == 1)
        last = -1
        while sent != last:  # Until it stands still.
            last = sent
            threading.Event().wait(0.5)
        self.assertLess(sent, 100)
        self.assertLess(self.server.memory_kib() - before, 64 << 10)
        call.cancel()
        wait_until(lambda: self.requests_in_flight() == 0)
        wait_until(lambda: 'method="StreamEcho" items=0' in self.server.log() and 'status="CANCELLED"' in self.server.log())

    def test_a_deadline_ends_a_stream(self):
        call = self.stub().StreamEcho(iter_forever(), timeout=0.2)
        with self.assertRaises(grpc.RpcError) as late:
            for _ in call:
                pass
        self.assertEqual(late.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        wait_until(lambda: self.requests_in_flight() == 0)


def iter_forever():
    yield pb.EchoRequest(data=b"x")
    threading.Event().wait(2)


class BusyTest(LoadTestCase):
    SERVER_FLAGS = ("--max-requests", "1", "--caller-share-percent", "100")

    def setUp(self):
        super().setUp()
        wait_until(lambda: self.requests_in_flight() == 0)  # The last test's requests.
        self.gate = threading.Event()
        self.addCleanup(self.gate.set)

    def hold_the_only_place(self):
        def requests():
            yield pb.EchoRequest(data=b"x")
            self.gate.wait(LIMIT_SECONDS)

        call = self.stub().StreamEcho(requests())
        next(call)
        return call

    def test_refusals_are_counted_by_code(self):
        # Streams, for they hold their place long enough to be in each other's way.
        flags = ("--callers", "8", "--mix", "scan:f32:2^20", "--seconds", "1", "--warmup-seconds", "0")
        load, = self.ctl_json("load", *flags)["loads"]
        error, = load["errors"]
        self.assertEqual(error["code"], "RESOURCE_EXHAUSTED (REQUEST_BUDGET)")
        self.assertIn("--max-requests", error["first"])
        self.assertEqual(error["count"], load["total"]["failed"])
        self.assertGreater(load["total"]["requests"], 0)
        table = self.ctl("wire", *flags).stdout.decode()
        self.assertRegex(table, r"\n  \d+ failed: RESOURCE_EXHAUSTED \(REQUEST_BUDGET\): the server has 1")

    def test_where_all_are_refused_it_ends(self):
        call = self.hold_the_only_place()
        for command in ("load", "wire"):
            with self.subTest(command):
                done = self.ctl(command, "--callers", "1,2", "--seconds", "90", "--warmup-seconds", "0.3", expect=1)
                self.assertRegex(done.stderr.decode(), rf"^prefixctl: {command}: RESOURCE_EXHAUSTED \(REQUEST_BUDGET\)")
                self.assertRegex(done.stdout.decode(), r"\n +1  scan:f32:2\^10 .* - +- .*no\n  \d+ failed: RESOURCE")
        call.cancel()

    def test_the_echo_takes_its_place_in_the_budget(self):
        call = self.hold_the_only_place()
        for refused in (lambda: self.stub().Echo(pb.EchoRequest(data=b"x")),
                        lambda: list(self.stub().StreamEcho(iter([pb.EchoRequest()])))):
            with self.assertRaises(grpc.RpcError) as error:
                refused()
            self.assertEqual(error.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            self.assertEqual(reason(error.exception), "REQUEST_BUDGET")
        self.gate.set()
        self.assertEqual(list(call), [])
        wait_until(lambda: self.requests_in_flight() == 0)
        self.assertEqual(self.stub().Echo(pb.EchoRequest(data=b"x")).data, b"x")


class DrainTest(LoadTestCase):
    def test_a_stream_is_finished_and_a_new_one_refused(self):
        gate = threading.Event()
        self.addCleanup(gate.set)

        def requests():
            yield pb.EchoRequest(data=b"first")
            gate.wait(LIMIT_SECONDS)
            yield pb.EchoRequest(data=b"last")

        with Server() as server:
            stub = self.stub(server)
            call = stub.StreamEcho(requests())
            self.assertEqual(next(call).data, b"first")
            server.process.send_signal(signal.SIGTERM)

            def refused(method):
                try:
                    method()
                except grpc.RpcError as error:
                    return error.code() == grpc.StatusCode.UNAVAILABLE
                return False

            wait_until(lambda: refused(lambda: stub.Echo(pb.EchoRequest())))
            self.assertTrue(refused(lambda: list(stub.StreamEcho(iter([pb.EchoRequest()])))))
            gate.set()
            self.assertEqual([reply.data for reply in call], [b"last"])
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
