"""prefixctl array against a real prefixd: arrays that stay on the device, compared with NumPy."""

import hashlib
import random
import re
import subprocess
import unittest

import numpy as np

from harness import BIN_DIR, LIMIT_SECONDS, E2ETest, Server, server_environment, wait_until

NUMPY = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
         "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f16": np.float16,
         "f32": np.float32, "f64": np.float64}
ELSEWHERE = "arrays/0123456789abcdef-0123456789abcdef0123456789abcdef"


def numbers(dtype, count, seed):
    """All values of an integer type, and floats of either sign."""
    generator = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.floating):
        return generator.normal(size=count).astype(dtype)
    info = np.iinfo(dtype)
    return generator.integers(info.min, info.max, count, dtype=dtype, endpoint=True)


class ArrayCliTest(E2ETest):
    SERVER_FLAGS = ("--log-lines-per-second", "0")

    def setUp(self):
        super().setUp()
        self.seed = random.SystemRandom().getrandbits(32)
        print(f"{self.id()}: seed {self.seed}")

    def create(self, dtype, shape, *flags, **options):
        name = self.ctl("array", "create", "--type", dtype, "--shape", shape, *flags, **options).stdout.decode().strip()
        self.assertRegex(name, r"^arrays/[0-9a-f]{16}-[0-9a-f]{32}$")
        return name

    def read(self, name, dtype, *flags):
        self.ctl("array", "read", *flags, name, self.folder / "read.bin")
        return np.fromfile(self.folder / "read.bin", NUMPY[dtype])

    def test_every_type_and_format(self):
        for dtype, numpy in NUMPY.items():
            with self.subTest(dtype=dtype):
                x = numbers(numpy, 10007, self.seed)
                np.save(self.folder / "x.npy", x)
                x.tofile(self.folder / "x.bin")
                (self.folder / "x.txt").write_text("".join(f"{value!r}\n" for value in x.tolist()))
                for suffix in ("npy", "bin", "txt"):
                    name = self.create(dtype, len(x))
                    np.testing.assert_array_equal(self.read(name, dtype), np.zeros_like(x))
                    self.ctl("array", "write", name, self.folder / f"x.{suffix}")
                    np.testing.assert_array_equal(self.read(name, dtype), x)
                    self.ctl("array", "read", name, self.folder / "y.npy")
                    y = np.load(self.folder / "y.npy")
                    self.assertEqual(y.dtype, x.dtype)
                    np.testing.assert_array_equal(y, x)
                    text = self.ctl("array", "read", name).stdout.decode().split()
                    np.testing.assert_array_equal(np.array([float(word) if dtype[0] == "f" else int(word)
                                                            for word in text], numpy), x)
                    self.ctl("array", "delete", name)

    def test_fills(self):
        for dtype, numpy in NUMPY.items():
            with self.subTest(dtype=dtype):
                zero, seven, iota, one, again, other = (
                    self.read(self.create(dtype, 1003, "--fill", fill), dtype)
                    for fill in ("zero", "7", "iota", "random:1", "random:1", "random:2"))
                np.testing.assert_array_equal(zero, np.zeros(1003, numpy))
                np.testing.assert_array_equal(seven, np.full(1003, 7, numpy))
                np.testing.assert_array_equal(iota, np.arange(1003).astype(numpy))
                np.testing.assert_array_equal(one, again)
                self.assertFalse(np.array_equal(one, other))
                self.assertGreater(len(np.unique(one)), 100)
                if dtype[0] == "f":
                    self.assertTrue(((one >= 0) & (one < 1)).all())

    def test_ranges(self):
        name = self.create("i32", 1000, "--fill", "iota")
        expected = np.arange(1000, dtype=np.int32)
        self.ctl("array", "write", "--first", "990", name, "-", stdin=b"-1\n-2\n-3\n")
        expected[990:993] = [-1, -2, -3]
        np.testing.assert_array_equal(self.read(name, "i32"), expected)
        np.testing.assert_array_equal(self.read(name, "i32", "--first", "989", "--count", "5"), expected[989:994])
        np.testing.assert_array_equal(self.read(name, "i32", "--first", "998"), expected[998:])
        np.testing.assert_array_equal(self.read(name, "i32", "--count", "1"), expected[:1])
        np.testing.assert_array_equal(self.read(name, "i32", "--first", "1000"), expected[:0])
        np.testing.assert_array_equal(self.read(name, "i32", "--count", "0"), expected[:0])
        self.ctl("array", "write", "--first", "1000", name, "-", stdin=b"")
        np.testing.assert_array_equal(self.read(name, "i32"), expected)

    def test_empty_arrays(self):
        name = self.create("f64", 0)
        self.assertEqual(self.ctl_json("array", "stat", name)["num_items"], 0)
        self.assertEqual(len(self.read(name, "f64")), 0)
        self.ctl("array", "write", name, "-", stdin=b"")

    def connections_of(self, method):
        lines = [line for line in self.server.log().splitlines() if f'method="{method}"' in line]
        return {re.search('connection="([^"]*)"', line)[1] for line in lines}

    def test_large_arrays_take_several_connections(self):
        x = numbers(np.int32, (40 << 20) // 4 + 12_345, self.seed)
        x.tofile(self.folder / "x.bin")
        name = self.create("i32", len(x) + 1)
        self.ctl("array", "write", "--first", "1", name, self.folder / "x.bin")
        np.testing.assert_array_equal(self.read(name, "i32", "--first", "1"), x)
        for method in ("WriteArray", "ReadArray"):
            wait_until(lambda: len(self.connections_of(method)) >= 5)

    def test_arrays_longer_than_a_window(self):
        x = numbers(np.uint8, (64 << 20) + 4_000_037, self.seed)
        x.tofile(self.folder / "x.bin")
        name = self.create("u8", len(x))
        with open(self.folder / "x.bin", "rb") as file:
            self.ctl("array", "write", "--format", "raw", name, "-", stdin=file.read())
        np.testing.assert_array_equal(self.read(name, "u8"), x)
        wrote = self.ctl_json("array", "write", name, self.folder / "x.bin")
        self.assertEqual((wrote["name"], wrote["first_item"], wrote["count"]), (name, 0, len(x)))

    def test_what_an_array_is(self):
        made = self.ctl_json("array", "create", "--dtype", "f32", "--shape", "30x20", "--ttl", "90m", "--renew-on-use")
        self.assertEqual({key: made[key] for key in ("type", "shape", "num_items", "ttl_seconds", "renew_on_use")},
                         {"type": "f32", "shape": [30, 20], "num_items": 600, "ttl_seconds": 5400, "renew_on_use": True})
        self.assertGreaterEqual(made["num_bytes"], 2400)
        self.assertLess(made["create_time"], made["expire_time"])
        self.assertEqual(self.ctl_json("array", "stat", made["name"])["name"], made["name"])
        lines = self.ctl("array", "stat", made["name"]).stdout.decode().splitlines()
        rows = dict(re.split("  +", line, maxsplit=1) for line in lines)
        self.assertEqual((rows["name"], rows["type"], rows["shape"]), (made["name"], "f32", "30x20"))
        self.assertIn("in 1h", rows["expires"])
        self.assertEqual(rows["lives for"], "1h30m from its last use on")

    def test_lists_are_for_callers_with_names(self):
        self.assert_fails("array", "list", says="LIST_NEEDS_NAME")
        lines = []
        for caller in ("alice", "bob"):
            token = self.folder / caller
            token.write_text(caller)
            token.chmod(0o600)
            lines.append(f"{caller} {hashlib.sha256(caller.encode()).hexdigest()}\n")
        (self.folder / "tokens").write_text("".join(lines))
        socket = f"unix:{self.folder}/prefixd.sock"
        with Server("--token-file", self.folder / "tokens", "--listen", socket):
            self.check_lists({"server": socket}, ("--token-file", self.folder / "alice"),
                             ("--token-file", self.folder / "bob"))

    def check_lists(self, options, alice, bob):
        self.assertEqual(self.ctl_json(*alice, "array", "list", **options)["arrays"], [])
        names = sorted(self.ctl_json(*alice, "array", "create", "--type", "u8", "--shape", shape, **options)["name"]
                       for shape in ("1", "100000x10", "3"))
        self.ctl(*bob, "array", "create", "--type", "u8", "--shape", "5", **options)
        listed = self.ctl_json(*alice, "array", "list", **options)["arrays"]
        self.assertEqual([array["name"] for array in listed], names)
        head, *rows = self.ctl(*alice, "array", "list", **options).stdout.decode().splitlines()
        self.assertEqual(head.split(), ["name", "type", "shape", "size", "expires"])
        self.assertEqual([row.split()[0] for row in rows], names)
        for column in ("type", "shape", "size", "expires"):
            at = head.index(column)
            for row in rows:
                self.assertEqual((row[at - 1], row[at] != " "), (" ", True), f"{column} of {row!r}")
        # To others they do not exist.
        self.assert_fails(*bob, "array", "stat", names[0], says="ARRAY_UNKNOWN", **options)
        self.ctl(*alice, "array", "delete", *names, **options)
        self.assertEqual(self.ctl_json(*alice, "array", "list", **options)["arrays"], [])

    def test_deletes_what_it_can(self):
        first, gone, last = (self.create("u8", 3) for _ in range(3))
        self.ctl("array", "delete", gone)
        self.assert_fails("array", "delete", first, gone, last, says="ARRAY_EXPIRED")
        for name in (first, last):
            self.assert_fails("array", "stat", name, says="ARRAY_EXPIRED")
        self.assertEqual(self.ctl_json("array", "delete", self.create("u8", 1), self.create("u8", 1)), {"deleted": 2})

    def test_handles_that_lead_nowhere(self):
        name = self.create("i32", 4)
        unknown = name[:-32] + "0" * 32
        short_lived = self.create("i32", 4, "--ttl", "1ms")
        wait_until(lambda: subprocess.run(
            [BIN_DIR / "prefixctl", "--server", self.server.address, "array", "stat", short_lived],
            env=server_environment(), capture_output=True, timeout=LIMIT_SECONDS).returncode == 1)
        for bad, reason in ((unknown, "ARRAY_UNKNOWN"), (ELSEWHERE, "ARRAY_ELSEWHERE"), ("nonsense", "ARRAY_NAME"),
                            (short_lived, "ARRAY_EXPIRED")):
            with self.subTest(bad):
                self.assert_fails("array", "stat", bad, says=("array stat", reason))
                self.assert_fails("array", "read", bad, self.folder / "y.npy", says=("array read", reason))
                self.assert_fails("array", "write", bad, "-", stdin=b"1\n", says=("array write", reason))
                self.assert_fails("array", "delete", bad, says=("array delete", reason))
                self.assertFalse((self.folder / "y.npy").exists())

    def test_ranges_past_the_end_change_nothing(self):
        name = self.create("i32", 10, "--fill", "iota")
        np.save(self.folder / "x.npy", np.ones(4, np.int32))
        for first in ("7", "10", "11", str(2**64 - 1)):
            with self.subTest(first=first):
                self.assert_fails("array", "write", "--first", first, name, self.folder / "x.npy",
                                  says=("10 elements", "4 from " + first))
                self.assert_fails("array", "read", "--first", first, "--count", "4", name, self.folder / "y.npy",
                                  says=("10 elements", "4 from " + first))
        self.assert_fails("array", "read", "--first", "11", name, self.folder / "y.npy", says="from 11 on")
        self.assert_fails("array", "read", "--first", "1", "--count", 2**64 - 1, name, self.folder / "y.npy",
                          says="10 elements")
        self.assertFalse((self.folder / "y.npy").exists())
        # How long a pipe is shows at its end.
        self.assert_fails("array", "write", "--first", "7", name, "-", stdin=b"1\n" * 4, says="10 elements")
        np.testing.assert_array_equal(self.read(name, "i32"), np.arange(10))

    def test_files_of_another_type_or_without_end(self):
        name = self.create("i32", 10)
        np.save(self.folder / "x.npy", np.ones(4))
        self.assert_fails("array", "write", name, self.folder / "x.npy", says=("it holds f64, not i32"))
        self.assert_fails("array", "write", name, "-", stdin=b"1\n1.5\n", says=("1.5"))
        (self.folder / "x.bin").write_bytes(b"123")
        self.assert_fails("array", "write", name, self.folder / "x.bin", says="no multiple of the 4")
        self.assert_fails("array", "write", name, self.folder / "none.npy", says="none.npy")
        np.testing.assert_array_equal(self.read(name, "i32"), np.zeros(10))

    def test_wrong_usage(self):
        for arguments, says in (
                (("array",), "subcommand"),
                (("array", "create", "--type", "f32"), "--shape"),
                (("array", "create", "--shape", "3"), "--type"),
                (("array", "create", "--type", "f99", "--shape", "3"), "f99"),
                (("array", "create", "--type", "f32", "--shape", "3x"), ("--shape", "'3x'")),
                (("array", "create", "--type", "f32", "--shape", "-3"), "--shape"),
                (("array", "create", "--type", "u8", "--shape", "3", "--fill", "256"), ("--fill", "256")),
                (("array", "create", "--type", "u8", "--shape", "3", "--fill", "random:"), ("--fill", "seed")),
                (("array", "create", "--type", "u8", "--shape", "3", "--fill", "ones"), ("--fill", "ones", "iota")),
                (("array", "create", "--type", "u8", "--shape", "3", "--ttl", "0s"), "--ttl"),
                (("array", "stat"), "NAME"),
                (("array", "delete"), "NAME"),
                (("array", "write", "x"), "INPUT"),
                (("array", "read", "--first", "-1", "x"), "--first"),
                (("--json", "array", "read", "x"), "--json")):
            with self.subTest(arguments):
                message = self.assert_fails(*arguments, code=2, says=says)
                self.assertIn(f"Run prefixctl array{'' if len(arguments) == 1 else ' '}", message)
        # What the server alone can tell.
        self.assert_fails("array", "create", "--type", "u8", "--shape", "3x3x3", says="SHAPE")
        self.assert_fails("array", "create", "--type", "u8", "--shape", "3", "--ttl", "100000h", says="LIFETIME")
        self.assert_fails("array", "create", "--type", "f64", "--shape", 2**61 + 1, says="INVALID_ARGUMENT")

    def test_an_array_of_another_server(self):
        name = self.create("i32", 3)
        with Server() as other:
            self.assert_fails("array", "stat", name, says="ARRAY_ELSEWHERE", server=other.address)
            # The right one of several servers is found.
            both = f"{other.address},{self.server.address}"
            for _ in range(3):
                self.assertEqual(self.ctl_json("array", "stat", name, server=both)["name"], name)
            self.ctl("array", "delete", name, server=both)

    def test_an_output_that_can_not_be_written(self):
        name = self.create("i32", 3)
        self.assert_fails("array", "read", name, "/dev/full", says="/dev/full")
        self.assert_fails("array", "read", name, self.folder / "none" / "y.npy", says="none")

    def test_the_example_of_resident_arrays(self):
        done = subprocess.run([BIN_DIR / "prefixd_resident", self.server.address], capture_output=True, text=True,
                              timeout=LIMIT_SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, "positive: 3\nsum: 9\ntotals: 3 5 9\n" * 2), done.stderr)
        done = subprocess.run([BIN_DIR / "prefixd_resident", "127.0.0.1:1"], capture_output=True, text=True,
                              timeout=LIMIT_SECONDS)
        self.assertEqual(done.returncode, 1)
        self.assertIn("UNAVAILABLE", done.stderr)

    def large_file(self, *arguments, address=None):
        return subprocess.run([BIN_DIR / "prefixd_large_file", *map(str, arguments), address or self.server.address],
                              capture_output=True, text=True, timeout=LIMIT_SECONDS)

    def test_the_example_of_a_large_file(self):
        x, y = self.folder / "x.bin", self.folder / "y.bin"
        for count in (1, 1001, 1 << 18, 1_000_003):  # Parts have 2^18 values.
            with self.subTest(count):
                numbers(np.float32, count, self.seed).tofile(x)
                self.ctl("scan", "--type", "f32", x, self.folder / "whole.bin")
                done = self.large_file(x, y, 1)
                self.assertEqual(done.returncode, 0, done.stderr)
                bits, whole = (np.fromfile(path, np.uint32) for path in (y, self.folder / "whole.bin"))
                np.testing.assert_array_equal(bits, whole)
                self.assertEqual(done.stderr.splitlines(), [f"{min(first + (1 << 18), count)} of {count} values"
                                                            for first in range(0, count, 1 << 18)])
                total, rates = done.stdout.splitlines()
                self.assertEqual(np.float32(total.removeprefix("total: ")), np.fromfile(y, np.float32)[-1])
                self.assertRegex(rates, r"^MB/s: all \S+ download \S+ read \S+ scan \S+ upload \S+ write \S+$")

    def test_what_the_example_of_a_large_file_refuses(self):
        x, y, cut, empty = (self.folder / name for name in ("x.bin", "y.bin", "cut.bin", "empty.bin"))
        np.ones(1000, np.float32).tofile(x)
        cut.write_bytes(bytes(4003))
        empty.write_bytes(b"")
        for arguments, says in (
                ((cut, y, 1), ("cut.bin", "4003 bytes")), ((empty, y, 1), ("empty.bin", "0 bytes")),
                ((self.folder / "none", y, 1), ("can't read", "none", "No such file")),
                ((self.folder, y, 1), ("can't read", str(self.folder), "directory")),
                ((x, "/dev/full", 1), ("can't write /dev/full", "No space left")),
                ((x, self.folder / "none" / "y", 1), ("can't write", "none/y", "No such file")),
                ((x, x, 1), ("x.bin is the input",))):
            with self.subTest(arguments):
                done = self.large_file(*arguments)
                self.assertEqual(done.returncode, 1, done)
                for word in says:
                    self.assertIn(word, done.stderr)
        self.assertIn("UNAVAILABLE", self.large_file(x, y, 1, address="127.0.0.1:1").stderr)
        self.assertEqual((x.read_bytes(), y.exists()), (np.ones(1000, np.float32).tobytes(), False))
        self.assertEqual(self.large_file(x, y, 0).returncode, 2)


if __name__ == "__main__":
    unittest.main()
