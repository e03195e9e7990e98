"""prefixctl against a real prefixd, compared with NumPy."""

import random
import unittest

import numpy as np

from harness import BIN_DIR, E2ETest

NUMPY = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
         "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f16": np.float16,
         "f32": np.float32, "f64": np.float64}
WIDER = {"i8": ("i32", "i64"), "u8": ("u32", "u64"), "i16": ("i32", "i64"), "u16": ("u32", "u64"), "i32": ("i64",),
         "u32": ("u64",), "f16": ("f32",), "f32": ("f64",)}
SCAN = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
        "or": np.bitwise_or, "xor": np.bitwise_xor}


def small_numbers(dtype, count, seed):
    """Small integers, so that floating-point sums are exact, of f16 in f32, and comparable bit for bit."""
    return np.random.default_rng(seed).integers(0, 10 if dtype == np.float16 else 50, count).astype(dtype)


def made_in(dtype):
    return np.float32 if dtype == np.float16 else dtype


class CliTest(E2ETest):
    def setUp(self):
        super().setUp()
        self.seed = random.SystemRandom().getrandbits(32)
        print(f"{self.id()}: seed {self.seed}")

    def test_scan_every_type_and_operator(self):
        for name, dtype in NUMPY.items():
            x = small_numbers(dtype, 10007, self.seed)
            np.save(self.folder / "x.npy", x)
            for op, ufunc in SCAN.items():
                if op in ("and", "or", "xor") and name[0] == "f":
                    continue
                values = x if op != "prod" else (x % 2 + 1).astype(dtype) if name[0] != "f" else np.ones_like(x)
                np.save(self.folder / "x.npy", values)
                with self.subTest(dtype=name, op=op):
                    self.ctl("scan", "--op", op, self.folder / "x.npy", self.folder / "y.npy")
                    want = ufunc.accumulate(values, dtype=made_in(dtype)).astype(dtype)
                    np.testing.assert_array_equal(np.load(self.folder / "y.npy"), want)
                    value = self.ctl_json("reduce", "--op", op, self.folder / "x.npy")
                    self.assertEqual(dtype(value["value"]), ufunc.reduce(values, dtype=made_in(dtype)).astype(dtype))
                    self.assertEqual(value["count"], len(values))

    def test_out_type(self):
        for name, dtype in NUMPY.items():
            x = small_numbers(dtype, 10007, self.seed)
            if name[0] == "i":
                x = (25 - x).astype(dtype)  # Negative ones too.
            np.save(self.folder / "x.npy", x)
            for out in (name, *WIDER.get(name, ())):
                with self.subTest(dtype=name, out=out):
                    self.ctl("scan", "--out-type", out, self.folder / "x.npy", self.folder / "y.npy")
                    got = np.load(self.folder / "y.npy")
                    self.assertEqual(got.dtype, NUMPY[out])
                    want = np.cumsum(x, dtype=made_in(NUMPY[out])).astype(NUMPY[out])
                    np.testing.assert_array_equal(got, want)
                    value = self.ctl_json("reduce", "--out-type", out, self.folder / "x.npy")["value"]
                    self.assertEqual(NUMPY[out](value), want[-1])
            for out in NUMPY:
                if out != name and out not in WIDER.get(name, ()):
                    offered = ", ".join((name, *WIDER.get(name, ())))
                    self.assert_fails("scan", "--out-type", out, self.folder / "x.npy", self.folder / "z.npy", code=2,
                                      says=("--out-type", name, out, "use one of " + offered))
        self.assertFalse((self.folder / "z.npy").exists())

    def test_out_type_of_text_init_and_large_files(self):
        done = self.ctl("scan", "--type", "u8", "--out-type", "u32", "--init", "4294967290", "-", stdin=b"5\n1\n255\n")
        self.assertEqual(done.stdout, b"4294967295\n0\n255\n")
        self.assertEqual(self.ctl("reduce", "--type", "f32", "--out-type", "f64", "-", stdin=b"1\n1e-12\n").stdout,
                         str(1 + float(np.float32(1e-12))).encode() + b"\n")
        self.assert_fails("reduce", "--type", "u8", "--init", "256", "-", code=2, says=("--init", "range of u8"),
                          stdin=b"1\n")
        self.assert_fails("reduce", "--out-type", "f99", "-", code=2, says=("--out-type", "'f99'"), stdin=b"1\n")
        x = np.random.default_rng(self.seed).integers(0, 256, 3_000_017).astype(np.uint8)
        (self.folder / "x.bin").write_bytes(x.tobytes())
        self.ctl("scan", "--type", "u8", "--out-type", "u64", self.folder / "x.bin", self.folder / "y.bin")
        np.testing.assert_array_equal(np.fromfile(self.folder / "y.bin", np.uint64), np.cumsum(x, dtype=np.uint64))

    def test_exclusive_init_and_reverse(self):
        x = small_numbers(np.int64, 1000, self.seed)
        np.save(self.folder / "x.npy", x)
        self.ctl("scan", "--kind", "exclusive", "--init", "100", self.folder / "x.npy", self.folder / "y.npy")
        np.testing.assert_array_equal(np.load(self.folder / "y.npy"), 100 + np.cumsum(x) - x)
        self.ctl("scan", "--reverse", self.folder / "x.npy", self.folder / "y.npy")
        np.testing.assert_array_equal(np.load(self.folder / "y.npy"), np.cumsum(x[::-1])[::-1])

    def test_rows_and_columns(self):
        x = small_numbers(np.int32, 12_000, self.seed)
        np.save(self.folder / "x.npy", x)
        for axis in (0, 1):
            flags = ("--axis", str(axis), "--row-items", "300")
            self.ctl("scan", *flags, self.folder / "x.npy", self.folder / "y.npy")
            sums = np.load(self.folder / "y.npy")
            np.testing.assert_array_equal(sums, np.cumsum(x.reshape(-1, 300), axis, np.int32).ravel())
            self.ctl("difference", *flags, self.folder / "y.npy", self.folder / "z.npy")
            np.testing.assert_array_equal(np.load(self.folder / "z.npy"), x)
            self.ctl("reduce", *flags, self.folder / "x.npy", self.folder / "sums.npy")
            sums = np.load(self.folder / "sums.npy")
            np.testing.assert_array_equal(sums, x.reshape(-1, 300).sum(axis, dtype=np.int32))
        self.assertEqual(self.ctl("reduce", "--axis", "1", "--row-items", "2", "--type", "i64", "-",
                                  stdin=b"1\n2\n30\n4\n").stdout, b"3\n34\n")
        self.assert_fails("reduce", self.folder / "x.npy", self.folder / "y.npy", code=2, says="OUTPUT")
        self.assertEqual(self.ctl("scan", "--axis", "0", "--row-items", "2", "--op", "max", "--type", "i64", "-",
                                  stdin=b"3\n1\n2\n5\n").stdout, b"3\n1\n3\n5\n")
        self.assert_fails("scan", "--axis", "1", "--row-items", "7", self.folder / "x.npy", self.folder / "y.npy",
                          says="12000 elements are no whole number of rows of 7")
        for wrong, flags in (("--axis", ("--axis", "1")), ("--row-items", ("--row-items", "3")),
                             ("--axis", ("--axis", "2", "--row-items", "3")),
                             ("--row-items", ("--axis", "1", "--row-items", "0"))):
            self.assert_fails("scan", *flags, self.folder / "x.npy", self.folder / "y.npy", code=2, says=wrong)

    def test_reverse_of_text_that_just_fits_a_message(self):
        count = (1 << 20) // 8
        text = self.folder / "x.txt"
        text.write_text("1\n" * count)
        self.ctl("scan", "--reverse", text, self.folder / "y.npy")
        np.testing.assert_array_equal(np.load(self.folder / "y.npy"), np.arange(count, 0, -1))
        self.ctl("scan", "--reverse", "--format", "raw", "--type", "f64", "-", self.folder / "y.bin",
                 stdin=np.ones(count).tobytes())
        np.testing.assert_array_equal(np.fromfile(self.folder / "y.bin"), np.arange(count, 0, -1))
        text.write_text("1\n" * (count + 1))
        self.assert_fails("scan", "--reverse", text, self.folder / "y.npy", says="REVERSE_ON_STREAM")

    def test_large_files_stream_through(self):
        x = small_numbers(np.float64, 5_000_011, self.seed)
        np.save(self.folder / "x.npy", x)
        self.ctl("scan", self.folder / "x.npy", self.folder / "y.npy")
        np.testing.assert_array_equal(np.load(self.folder / "y.npy"), np.cumsum(x))
        self.ctl("compact", "--where", "> 24", "--indices", self.folder / "i.npy", self.folder / "x.npy",
                 self.folder / "z.npy")
        np.testing.assert_array_equal(np.load(self.folder / "z.npy"), x[x > 24])
        np.testing.assert_array_equal(np.load(self.folder / "i.npy"), np.flatnonzero(x > 24))
        mask = np.random.default_rng(self.seed).random(len(x)) < 0.5
        np.save(self.folder / "m.npy", mask)
        for invert in (False, True):
            flags = ["--invert"] if invert else []
            self.ctl("compact", "--mask", self.folder / "m.npy", *flags, self.folder / "x.npy", self.folder / "z.npy")
            np.testing.assert_array_equal(np.load(self.folder / "z.npy"), x[mask ^ invert])
        least = self.ctl_json("reduce", "--op", "min", self.folder / "x.npy")
        self.assertEqual((least["value"], least["index"]), (x.min(), x.argmin()))

    def test_text_and_pipes(self):
        done = self.ctl("scan", "--type", "i32", "-", stdin=b"3\n1\n2\n4\n")
        self.assertEqual(done.stdout, b"3\n4\n6\n10\n")
        (self.folder / "x.csv").write_text("0.5\nnan\ninf\n-0.0\n")
        done = self.ctl("compact", "--where", "is-nan", "--invert", self.folder / "x.csv")
        self.assertEqual(done.stdout.split(), [b"0.5", b"inf", b"-0"])
        self.assertEqual(self.ctl_json("reduce", self.folder / "x.csv")["value"], "NaN")
        (self.folder / "x.csv").write_text("-inf\n1\n")
        self.assertEqual(self.ctl_json("reduce", self.folder / "x.csv")["value"], "-Infinity")

    def test_a_timeout_of_centuries_is_none(self):
        self.assertEqual(self.ctl("--timeout", "3000000h", "reduce", "-", stdin=b"1\n2\n").stdout, b"3\n")

    def test_every_comparison(self):
        x = np.array([1, 5, 3, 5, 9], dtype=np.int32)
        np.save(self.folder / "x.npy", x)
        for where, keep in {"< 5": x < 5, "<= 5": x <= 5, "> 5": x > 5, ">= 5": x >= 5, "== 5": x == 5,
                            "!= 5": x != 5, "is-finite": x == x, "[3, 9)": (3 <= x) & (x < 9)}.items():
            with self.subTest(where=where):
                self.ctl("compact", "--where", where, self.folder / "x.npy", self.folder / "y.npy")
                np.testing.assert_array_equal(np.load(self.folder / "y.npy"), x[keep])

    def test_format_is_the_inputs_and_suffixes_rule_the_output(self):
        (self.folder / "x.dat").write_text("1\n2\n3\n")
        self.ctl("scan", "--format", "text", "--type", "i32", self.folder / "x.dat", self.folder / "y.npy")
        np.testing.assert_array_equal(np.load(self.folder / "y.npy"), np.array([1, 3, 6], np.int32))

    def test_compact_of_narrow_types(self):
        for name in ("i8", "u8", "i16", "u16"):
            with self.subTest(dtype=name):
                x = np.random.default_rng(self.seed).integers(0, 1 << 16, 300_001).astype(NUMPY[name])
                np.save(self.folder / "x.npy", x)
                self.ctl("compact", "--where", "> 24", "--indices", self.folder / "i.npy", self.folder / "x.npy",
                         self.folder / "y.npy")
                np.testing.assert_array_equal(np.load(self.folder / "y.npy"), x[x > 24])
                np.testing.assert_array_equal(np.load(self.folder / "i.npy"), np.flatnonzero(x > 24))

    def test_raw_files(self):
        x = small_numbers(np.uint32, 777, self.seed)
        (self.folder / "x.bin").write_bytes(x.tobytes())
        self.ctl("scan", "--type", "u32", self.folder / "x.bin", self.folder / "y.bin")
        np.testing.assert_array_equal(np.fromfile(self.folder / "y.bin", np.uint32), np.cumsum(x, dtype=np.uint32))

    def test_empty_arrays(self):
        np.save(self.folder / "x.npy", np.array([], dtype=np.float32))
        self.ctl("scan", self.folder / "x.npy", self.folder / "y.npy")
        self.assertEqual(np.load(self.folder / "y.npy").shape, (0,))
        self.assertEqual(np.load(self.folder / "y.npy").dtype, np.float32)
        reduced = self.ctl_json("reduce", "--op", "min", self.folder / "x.npy")
        self.assertEqual((reduced["value"], reduced["count"]), ("Infinity", 0))
        self.assertNotIn("index", reduced)
        self.assertEqual(self.ctl_json("compact", "--where", "> 0", self.folder / "x.npy", self.folder / "y.npy")["count"], 0)

    def test_timing_is_reported(self):
        np.save(self.folder / "x.npy", np.arange(10, dtype=np.float32))
        timing = self.ctl_json("reduce", self.folder / "x.npy")["timing"]
        self.assertEqual(timing["num_items"], 10)
        self.assertGreaterEqual(timing["server_total_ns"], timing["kernel_ns"])
        for word in ("algorithm", "device", "launches", "numerics_version"):
            self.assertIn(word, timing)
        self.assertIn("10 f32", self.ctl("reduce", self.folder / "x.npy").stderr.decode())

    def test_every_algorithm_that_is_listed_runs_by_its_name(self):
        x = np.arange(1000, dtype=np.float32)
        np.save(self.folder / "x.npy", x)
        rows = self.ctl_json("algorithms")["algorithms"]
        self.assertIn("sequential", {row["algorithm"] for row in rows})
        head, blank, *table = self.ctl("algorithms").stdout.decode().splitlines()
        self.assertTrue(head.startswith("n: elements."), head)
        self.assertEqual(blank, "")
        self.assertEqual(table[0].split(), "primitive algorithm work depth traffic launches stable deterministic "
                                           "limit source".split())
        for row in rows:
            with self.subTest(row):
                self.assertTrue(any(line.split()[:1] == [row["primitive"]] and
                                    line.split()[1].split("[")[0] == row["algorithm"] for line in table if line))
                arguments = {"scan": ["scan"], "reduce": ["reduce"], "compact": ["compact", "--where", ">= 0"],
                             "difference": ["difference"]}
                output = [] if row["primitive"] == "reduce" else [self.folder / "y.npy"]
                reply = self.ctl_json(*arguments[row["primitive"]], "--algorithm", row["algorithm"],
                                      self.folder / "x.npy", *output)
                self.assertTrue(reply["timing"]["algorithm"].startswith(row["algorithm"]))
                self.assertGreaterEqual(reply["timing"]["launches"], 1)
                if row["primitive"] == "reduce":
                    self.assertEqual(reply["value"], 499500)
                else:
                    expected = {"scan": np.cumsum(x), "compact": x, "difference": np.diff(x, prepend=x[:1] * 0)}
                    result = np.load(self.folder / "y.npy")
                    np.testing.assert_array_equal(result if row["stable"] else np.sort(result),
                                                  expected[row["primitive"]])

    def test_the_limit_of_an_algorithm_holds_for_a_whole_stream(self):
        np.save(self.folder / "x.npy", np.ones(16384, dtype=np.float64))
        self.ctl("scan", "--algorithm", "naive", self.folder / "x.npy", self.folder / "y.npy")
        text = self.folder / "x.txt"
        text.write_text("1\n" * 3_000_000)  # The length is unknown, and there are several chunks.
        done = self.ctl("scan", "--algorithm", "naive", text, self.folder / "z.npy", expect=1)
        self.assertIn(b"ALGORITHM_LIMIT", done.stderr)
        self.assertFalse((self.folder / "z.npy").exists())

    def test_info_and_health(self):
        info = self.ctl_json("info")
        self.assertEqual(info["version"], self.ctl("--version").stdout.decode().split()[-1])
        self.assertIn("SERVING", self.ctl("health").stdout.decode())
        self.assertIn("lanes", self.ctl("info").stdout.decode())

    def test_output_may_replace_its_input(self):
        np.save(self.folder / "x.npy", np.ones(1000, dtype=np.int32))
        self.ctl("scan", self.folder / "x.npy", self.folder / "x.npy")
        np.testing.assert_array_equal(np.load(self.folder / "x.npy"), np.arange(1, 1001, dtype=np.int32))

    def test_programs_have_help(self):
        import subprocess
        for program in ("prefixd", "prefixctl"):
            done = subprocess.run([BIN_DIR / program, "--help"], capture_output=True, check=True)
            self.assertIn(program.encode() + b" [OPTIONS]", done.stdout)


if __name__ == "__main__":
    unittest.main()
