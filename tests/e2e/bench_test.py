"""prefixctl bench, and RunBenchmark from Python, against a real prefixd."""

import csv
import fcntl
import io
import json
import os
import pty
import select
import signal
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from harness import BIN_DIR, E2ETest, INTERRUPTIBLE, LIMIT_SECONDS, Server, wait_until  # First: it makes the stubs known.

import grpc
from google.rpc import error_details_pb2, status_pb2
from prefixd.v1 import admin_pb2 as pb, admin_pb2_grpc, types_pb2 as t

QUICK = ("--repetitions", "2", "--sizes", "2^10..2^14")
# Goes on for minutes where nobody ends it, and has a row every few seconds even on a slow and busy machine.
LONG_ROWS = 4001
LONG = ("scan", "--repetitions", "200", "--sizes", ",".join(["2^12"] + ["2^20"] * (LONG_ROWS - 1)))
SVG = "{http://www.w3.org/2000/svg}"


def reason_and_field(error):
    """The reason and the field that the details of a gRPC error name; empty if they name none."""
    reason, field = "", ""
    for packed in status_pb2.Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"]).details:
        info, request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if packed.Unpack(info):
            reason = info.reason
        elif packed.Unpack(request):
            field = request.field_violations[0].field
    return reason, field


class BenchTest(E2ETest):
    SERVER_FLAGS = ("--max-benchmark-bytes", str(1 << 23))

    def start(self, *arguments, stderr=subprocess.PIPE):
        process = subprocess.Popen(
            [*INTERRUPTIBLE, BIN_DIR / "prefixctl", "--server", self.server.address, "bench", *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
            env={**os.environ, "TERM": "xterm"})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def wait_until_none_runs(self):
        wait_until(lambda: self.ctl_json("info")["requests"]["used"] == 0)

    def test_the_table_has_a_row_for_each_size(self):
        lines = self.ctl("bench", *QUICK).stdout.decode().splitlines()
        titles = [line for line in lines if line.startswith("primitive")]
        self.assertEqual(titles[0].split(), "primitive type op algorithm elements time, us GB/s copy share".split())
        rows = [line.split() for line in lines if line.endswith("%")]
        self.assertEqual([(row[0], row[4]) for row in rows],
                         [(primitive, size) for primitive in ("scan", "reduce", "compact", "difference")
                          for size in ("2^10", "2^12", "2^14")])
        for row in rows:
            for number in (*row[5:8], row[8].rstrip("%")):
                self.assertGreaterEqual(float(number), 0)
        self.assertEqual(len({len(line) for line in lines if line.endswith("%")}), 1)

    def test_a_recurrence_is_measured_with_a_coefficient_for_each_element(self):
        measured = self.ctl_json("bench", "scan", "--types", "f32,f64", "--ops", "linear_recurrence",
                                 *QUICK)["measurements"]
        self.assertEqual([(m["type"], m["num_items"], m["num_bytes"]) for m in measured],
                         [(dtype, size, 3 * size * item_bytes) for dtype, item_bytes in (("f32", 4), ("f64", 8))
                          for size in (1024, 4096, 16384)])

    def test_forms_of_scans_and_reduces(self):
        def bytes_of(*arguments):
            measured = self.ctl_json("bench", *arguments, "--sizes", "2^12", "--repetitions", "2")["measurements"]
            return [m.get("num_bytes") for m in measured]

        self.assertEqual(bytes_of("scan,reduce,difference", "--axis", "1", "--row-items", "64"),
                         [2 * 4 * 4096, 4 * (4096 + 64), 2 * 4 * 4096])
        self.assertEqual(bytes_of("scan,reduce", "--axis", "0", "--row-items", "64", "--types", "u8"),
                         [2 * 4096, 4096 + 64])
        self.assertEqual(bytes_of("scan", "--precision", "wide", "--types", "f32,f64"), [8 * 4096, 16 * 4096])
        # An index each; how often the device moves what it has read is its own.
        narrow, wide = bytes_of("scan", "--indices", "--ops", "max", "--types", "u8,f64")
        self.assertGreaterEqual(narrow, (1 + 1 + 8) * 4096)
        self.assertGreaterEqual(wide, (8 + 8 + 8) * 4096)
        sum_, max_ = bytes_of("scan", "--indices", "--ops", "sum,max")  # Sums have none.
        self.assertIsNone(sum_)
        self.assertIsNotNone(max_)
        self.assert_fails("bench", "compact", "--axis", "1", "--row-items", "64", says="compact has no axis")
        self.assert_fails("bench", "reduce", "--indices", says="reduce has no indices")
        self.assert_fails("bench", "scan", "--axis", "1", code=2, says="--row-items")

    def test_json_tells_what_was_measured(self):
        bench = self.ctl_json("bench", "scan,reduce", "--types", "i32,f64", "--ops", "max,sum", *QUICK)
        info = self.ctl_json("info")
        for key in ("device", "version", "numerics_version"):
            self.assertEqual(bench[key], info[key])
        self.assertRegex(bench["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
        measured = bench["measurements"]
        self.assertEqual([(m["primitive"], m["type"], m["op"], m["num_items"]) for m in measured],
                         [(primitive, dtype, op, size) for primitive in ("scan", "reduce") for dtype in ("i32", "f64")
                          for op in ("max", "sum") for size in (1024, 4096, 16384)])
        for m in measured:
            item_bytes = {"i32": 4, "f64": 8}[m["type"]]
            self.assertEqual(m["num_bytes"], m["num_items"] * item_bytes * {"scan": 2, "reduce": 1}[m["primitive"]])
            self.assertEqual(m["repetitions"], 2)
            self.assertLessEqual(m["p10_ns"], m["median_ns"])
            self.assertLessEqual(m["median_ns"], m["p90_ns"])
            self.assertAlmostEqual(m["gb_per_s"], m["num_bytes"] / m["median_ns"])
            self.assertAlmostEqual(m["share_of_copy"], m["copy_ns"] / m["median_ns"])

    def test_csv_reads_back(self):
        text = self.ctl("bench", "compact", "--csv", "--algorithms", "default,tree_interleaved", *QUICK).stdout.decode()
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(rows), 6)
        device = self.ctl_json("info")["device"]
        for row in rows:
            self.assertNotIn(None, row)  # As many cells as columns.
            self.assertNotIn(None, row.values())
            self.assertEqual((row["primitive"], row["op"], row["device"]), ("compact", "", device))
        for row in rows[:3]:
            self.assertEqual(row["skipped"], "")
            self.assertGreater(int(row["median_ns"]), 0)
        for row in rows[3:]:
            self.assertIn("tree_interleaved", row["skipped"])
            self.assertEqual((row["median_ns"], row["gb_per_s"]), ("", ""))

    def test_the_plot_is_svg_that_says_what_it_shows(self):
        path = self.folder / "plot.svg"
        self.ctl("bench", "scan,compact", "--ops", "sum,max", "--plot", path, *QUICK)
        svg = ElementTree.parse(path).getroot()
        self.assertEqual(svg.tag, SVG + "svg")
        device = self.ctl_json("info")["device"]
        self.assertEqual(svg.find(SVG + "title").text, f"prefixd on {device}")
        text = ["".join(element.itertext()) for element in svg.iter(SVG + "text")]
        for word in (f"prefixd on {device}", "scan f32", "compact f32", "sum", "max", "GB/s", "n, elements", "210",
                     "214"):
            self.assertIn(word, text)
        self.assertEqual(text.count("copy"), 2)
        self.assertEqual(len(list(svg.iter(SVG + "circle"))), 9)
        yardsticks = [path for path in svg.iter(SVG + "path") if path.get("class") == "yardstick"]
        self.assertEqual(len(yardsticks), 2)

    def test_what_the_server_does_not_serve_is_skipped_with_its_reason(self):
        done = self.ctl("bench", "scan", "--algorithms", "tree_interleaved,default", *QUICK)
        skipped = [line for line in done.stdout.decode().splitlines() if "skipped" in line]
        self.assertEqual(len(skipped), 1)
        self.assertRegex(skipped[0], r"^scan +f32 +sum +tree_interleaved +2\^10  skipped: .*tree_interleaved")
        self.assert_fails("bench", "scan", "--algorithms", "tree_interleaved", "--plot", self.folder / "x.svg", *QUICK,
                          says="nothing was measured")
        self.assertFalse((self.folder / "x.svg").exists())

    def test_all_is_all_that_the_server_lists(self):
        listed = {(c["primitive"], c["type"], c["op"], c["algorithm"]) for c in self.ctl_json("info")["capabilities"]
                  if c["primitive"] == "scan"}
        bench = self.ctl_json("bench", "scan", "--types", "all", "--ops", "all", "--algorithms", "all", "--sizes",
                              "1000", "--repetitions", "1")
        self.assertEqual({(m["primitive"], m["type"], m["op"], m["algorithm"]) for m in bench["measurements"]}, listed)

    def test_algorithms_by_name_and_all_of_them(self):
        names = [(m["primitive"], m["algorithm"]) for m in self.ctl_json(
            "bench", "--algorithms", "all", "--sizes", "1000", "--repetitions", "1")["measurements"]]
        rows = {(row["primitive"], row["algorithm"]) for row in self.ctl_json("algorithms")["algorithms"]}
        self.assertTrue(rows <= {(primitive, "/".join(name.split("/")[:2])) for primitive, name in names})
        table = self.ctl("bench", "scan", "--algorithms", "sequential,naive", "--sizes", "2^10,2^16,2^18",
                         "--repetitions", "1").stdout.decode()
        skipped = [line for line in table.splitlines() if "skipped" in line]
        self.assertEqual(len(skipped), 1, table)  # Once for both sizes above the limit.
        self.assertRegex(skipped[0], r"naive +2\^16  skipped: .*at most 16384 elements")

    def test_arrays_above_the_limit_are_skipped(self):
        fits = (1 << 23) // 8
        first, second = self.ctl_json("bench", "scan", "--repetitions", "1", "--sizes",
                                      f"{fits},{fits + 1}")["measurements"]
        self.assertNotIn("skipped", first)
        self.assertIn("--max-benchmark-bytes", second["skipped"])

    def test_wrong_usage_is_said_before_a_server_is_asked(self):
        nobody = "127.0.0.1:1"
        for arguments, word in [
            (("--sizes", "0"), "'0' is no size"), (("--sizes", "-5"), "'-5' is no size"),
            (("--sizes", ""), "'' is no size"), (("--types", "f32,f99"), "'f99' is none of"),
            (("--ops", "plus"), "'plus' is none of"), (("--algorithms", "fast"), "'fast' is the name of no algorithm"),
            (("sort",), "'sort' is none of"), (("--repetitions", "0"), "--repetitions"),
            (("--csv", "--json"), "--csv and --json"), (("--plot", "-"), "--plot needs"),
        ]:
            with self.subTest(arguments):
                self.assert_fails("bench", *arguments, code=2, says=word, server=nobody)

    def test_the_server_refuses_too_much(self):
        self.assert_fails("bench", "--sizes", ",".join(["1"] * 5000),
                          says=("INVALID_ARGUMENT (BENCHMARK_SPEC)", "4096"))

    def test_a_plot_that_cannot_be_written_is_known_before_the_work(self):
        done = self.ctl("bench", "--plot", self.folder / "no" / "folder.svg", expect=1)
        self.assertIn(b"folder.svg", done.stderr)
        self.assertEqual(done.stdout, b"")

    def test_there_is_one_at_a_time(self):
        first = self.start(*LONG)
        self.read_first_row(first)
        self.assert_fails("bench", *QUICK, says="RESOURCE_EXHAUSTED (BENCHMARK_RUNNING)")
        first.kill()
        first.wait()
        self.wait_until_none_runs()
        self.ctl("bench", *QUICK)

    def read_first_row(self, process):
        for line in process.stdout:
            if line.startswith(b"scan"):
                return line
        self.fail(f"no row came: {process.stderr.read().decode()}")

    def test_ctrl_c_keeps_what_came(self):
        path = self.folder / "plot.svg"
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                process = self.start(*LONG, "--plot", path)
                self.assertIn(b"2^12", self.read_first_row(process))
                process.send_signal(number)
                _, errors = process.communicate(timeout=LIMIT_SECONDS)
                self.assertEqual(process.returncode, 1)
                self.assertRegex(errors.decode(), rf"^prefixctl: bench: interrupted when \d+ of {LONG_ROWS} were measured\n$")
                self.assertGreaterEqual(len(list(ElementTree.parse(path).getroot().iter(SVG + "circle"))), 1)
                path.unlink()
                self.wait_until_none_runs()

    def start_on_a_terminal(self, *arguments):
        """Starts with standard error on a terminal. Also returns a function that reads from it until a word comes."""
        screen, terminal = pty.openpty()
        self.addCleanup(os.close, screen)
        process = self.start(*arguments, stderr=terminal)
        os.close(terminal)
        shown = bytearray()

        def read_until(word):
            while word not in shown:
                self.assertTrue(select.select([screen], [], [], LIMIT_SECONDS)[0], f"{word} did not come: {shown}")
                shown.extend(os.read(screen, 1000))
            return shown

        return process, read_until

    def test_progress_on_a_terminal_and_ctrl_c_that_ends_json_with_what_came(self):
        process, read_until = self.start_on_a_terminal(*LONG, "--json")
        self.assertIn(b"measured 0 of %d" % LONG_ROWS, read_until(b"measured 1 of %d" % LONG_ROWS))
        process.send_signal(signal.SIGINT)
        bench = json.loads(process.stdout.read())
        read_until(b"interrupted when")
        self.assertEqual(process.wait(LIMIT_SECONDS), 1)
        self.assertGreaterEqual(len(bench["measurements"]), 1)
        self.assertLess(len(bench["measurements"]), LONG_ROWS)
        self.wait_until_none_runs()

    def test_a_second_ctrl_c_ends_it_even_where_nobody_reads(self):
        process, read_until = self.start_on_a_terminal("scan", "--json", "--repetitions", "1", "--sizes",
                                                       ",".join(["1"] * 4000))
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        read_until(b"measured 50 of")  # More than that pipe holds.
        process.send_signal(signal.SIGINT)
        self.wait_until_none_runs()
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(LIMIT_SECONDS), -signal.SIGINT)

    def test_a_reader_that_stops_early_ends_it(self):
        script = f"'{BIN_DIR}/prefixctl' --server {self.server.address} bench {' '.join(LONG)} | head -n 1"
        done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=LIMIT_SECONDS)
        self.assertEqual((done.stdout.count(b"\n"), done.stderr), (1, b""))
        self.wait_until_none_runs()

    def test_a_timeout_ends_it(self):
        process = self.start(*LONG, "--timeout", "1s")
        out, errors = process.communicate(timeout=LIMIT_SECONDS)
        self.assertEqual(process.returncode, 1)
        self.assertIn("DEADLINE_EXCEEDED", errors.decode())
        self.assertIn("(--timeout 1s)", errors.decode())
        self.wait_until_none_runs()

    # ---- From Python ----
    def stub(self):
        channel = grpc.insecure_channel(self.server.address)
        self.addCleanup(channel.close)
        return admin_pb2_grpc.AdminServiceStub(channel)

    def test_cancelling_frees_the_place(self):
        request = pb.RunBenchmarkRequest(primitives=[pb.PRIMITIVE_SCAN], dtypes=[t.DTYPE_F32],
                                         num_items=[1 << 20] * 100, repetitions=1000)
        call = self.stub().RunBenchmark(request)
        wait_until(lambda: self.ctl_json("info")["requests"]["used"] == 1)
        with self.assertRaises(grpc.RpcError) as refused:
            next(self.stub().RunBenchmark(request))
        self.assertEqual(refused.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(reason_and_field(refused.exception), ("BENCHMARK_RUNNING", ""))
        call.cancel()
        self.wait_until_none_runs()

    def test_bad_requests_name_their_field(self):
        def request(**fields):
            good = {"primitives": [pb.PRIMITIVE_SCAN], "dtypes": [t.DTYPE_F32], "num_items": [1], "repetitions": 1}
            return pb.RunBenchmarkRequest(**{**good, **fields})

        for fields, why in [
            ({"primitives": []}, "BENCHMARK_SPEC"), ({"dtypes": []}, "BENCHMARK_SPEC"),
            ({"num_items": []}, "BENCHMARK_SPEC"), ({"num_items": [1, 0]}, "BENCHMARK_SPEC"),
            ({"num_items": [1] * 4097}, "BENCHMARK_SPEC"), ({"repetitions": 1001}, "BENCHMARK_SPEC"),
            ({"ops": [99]}, "UNKNOWN_ENUM"), ({"ops": [0]}, "UNKNOWN_ENUM"), ({"dtypes": [-1]}, "UNKNOWN_ENUM"),
            ({"request_id": "a b"}, "REQUEST_ID"), ({"precision": 7}, "UNKNOWN_ENUM"),
        ]:
            with self.subTest(fields=str(fields)[:60]):
                with self.assertRaises(grpc.RpcError) as refused:
                    next(self.stub().RunBenchmark(request(**fields)))
                self.assertEqual(refused.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
                self.assertEqual(reason_and_field(refused.exception), (why, next(iter(fields))))

    def test_what_is_not_served_is_skipped(self):
        request = pb.RunBenchmarkRequest(primitives=[pb.PRIMITIVE_SCAN], dtypes=[t.DTYPE_F16, t.DTYPE_BF16, t.DTYPE_U8],
                                         ops=[t.OP_AND], num_items=[1])
        responses = list(self.stub().RunBenchmark(request))
        self.assertEqual([r.WhichOneof("outcome") for r in responses], ["skipped", "skipped", "measurement"])
        self.assertIn("and of f16", responses[0].skipped)


# The large size comes first: after a small one that took long, it would be skipped for its time.
class MemoryTest(E2ETest):
    def test_arrays_in_host_memory_go_back_at_once(self):
        kib = 256 << 10  # For both arrays.
        with Server(device="cpu") as server:
            before = server.memory_kib()
            self.ctl("bench", "scan", "--types", "f64", "--sizes", "2^24,2^10", "--repetitions", "1",
                     server=server.address)
            self.assertGreater(server.memory_kib(peak=True), before + kib)
            self.assertLess(server.memory_kib(), before + kib // 8)

    def test_arrays_that_the_budget_has_no_room_for_are_skipped(self):
        with Server("--max-request-bytes", str(256 << 20), device="cpu") as server:
            before = server.memory_kib()
            rows = self.ctl("bench", "scan", "--types", "f64", "--sizes", "2^25,2^10", server=server.address)
            self.assertIn(b"(--max-request-bytes)", rows.stdout + rows.stderr)
            self.assertLess(server.memory_kib(peak=True), before + (64 << 10))


class DefaultAlgorithmsTest(E2ETest):
    SERVER_FLAGS = ("--algorithms", "default")

    def test_others_are_refused_skipped_and_not_listed(self):
        path = self.folder / "x.txt"
        path.write_text("3\n1\n2\n")
        self.assertEqual(self.ctl("scan", path).stdout.split(), [b"3", b"4", b"6"])
        self.assert_fails("scan", "--algorithm", "sequential", path,
                          says=("PERMISSION_DENIED (ALGORITHM_OFF)", "--algorithms default"))
        rows = self.ctl("bench", "scan", "--algorithms", "default,sequential", *QUICK)
        self.assertIn(b"--algorithms default", rows.stdout + rows.stderr)
        self.assertNotIn(b"sequential", self.ctl("algorithms").stdout)


class NoBenchmarkTest(E2ETest):
    SERVER_FLAGS = ("--no-benchmark",)

    def test_benchmarks_are_off_where_other_hosts_can_connect(self):
        for flags, served in (["--listen", "0.0.0.0:0"], False), (["--listen", "0.0.0.0:0", "--benchmark"], True):
            with self.subTest(flags), Server(*flags) as server:
                if served:
                    self.ctl("bench", *QUICK, server=server.address)
                else:
                    self.assert_fails("bench", *QUICK, server=server.address, says=("BENCHMARK_OFF", "--benchmark"))

    def test_it_can_be_switched_off(self):
        self.assert_fails("bench", *QUICK, says=("PERMISSION_DENIED (BENCHMARK_OFF)", "--no-benchmark"))


if __name__ == "__main__":
    unittest.main()
