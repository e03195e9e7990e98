"""When something goes wrong, prefixctl names it, exits with the right code, and leaves nothing behind."""

import contextlib
import os
import pathlib
import signal
import subprocess
import time
import unittest

import numpy as np

from harness import BIN_DIR, LIMIT_SECONDS, E2ETest, wait_until


def has_open(pid, path):
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # It has closed that one since.
            if os.path.samefile(link, path):
                return True
    return False


class BadInputTest(E2ETest):
    def save(self, name, array):
        np.save(self.folder / name, array)
        return self.folder / name

    def assert_left_behind(self, *names):
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(names))

    def test_files_that_are_no_good(self):
        good = np.arange(6, dtype=np.float32)
        cases = {
            "big_endian.npy": (good.astype(">f4"), "big-endian"),
            "fortran.npy": (np.asfortranarray(good.reshape(2, 3)), "Fortran"),
            "complex.npy": (good.astype(np.complex64), "c8"),
            "text.npy": (np.array(["a"]), "U1"),
            "matrix.npy": (good.reshape(2, 3), "dimension"),
        }
        for name, (array, word) in cases.items():
            with self.subTest(name):
                path = self.save(name, array)
                self.assert_fails("scan", path, self.folder / "y.npy", says=(name, word))
                path.unlink()
                self.assert_left_behind()

    def test_truncated_and_overlong_npy(self):
        path = self.save("x.npy", np.arange(1000, dtype=np.int32))
        whole = path.read_bytes()
        for cut in (3, 9, 40, len(whole) - 1, len(whole) - 400):
            with self.subTest(cut=cut):
                path.write_bytes(whole[:cut])
                self.assert_fails("scan", path, self.folder / "y.npy", says="x.npy")
                self.assert_left_behind("x.npy")
        path.write_bytes(whole + b"1234")
        self.assert_fails("scan", path, self.folder / "y.npy", says="x.npy")
        self.assert_left_behind("x.npy")

    def test_large_truncated_file_leaves_no_half_result(self):
        path = self.save("x.npy", np.arange(3_000_000, dtype=np.int64))
        path.write_bytes(path.read_bytes()[:-8])
        self.assert_fails("scan", path, self.folder / "y.npy", says="x.npy")
        self.assert_left_behind("x.npy")

    def test_a_word_that_is_no_number_is_found_by_line(self):
        (self.folder / "x.txt").write_text("1\n2\nthree\n4\n")
        self.assert_fails("scan", self.folder / "x.txt", self.folder / "y.txt", says=("x.txt", "3", "three"))
        self.assert_left_behind("x.txt")
        (self.folder / "x.txt").write_text("1\n4294967296\n")
        self.assert_fails("reduce", "--type", "i32", self.folder / "x.txt", says=("x.txt", "2", "4294967296"))

    def test_files_that_can_not_be_read(self):
        self.assert_fails("scan", self.folder / "none.npy", says="none.npy")
        self.assert_fails("reduce", "--type", "i32", self.folder, says=str(self.folder))
        (self.folder / "x.bin").write_bytes(b"12345")
        self.assert_fails("reduce", "--type", "i32", self.folder / "x.bin", says="x.bin")
        self.assert_fails("scan", self.save("x.npy", np.arange(3)), self.folder / "no" / "y.npy", says="y.npy")

    def test_masks_of_the_wrong_length(self):
        for count in (10, 2_000_000):
            path = self.save("x.npy", np.arange(count, dtype=np.int32))
            for wrong in (0, count - 1, count + 1):
                with self.subTest(count=count, wrong=wrong):
                    mask = self.save("m.npy", np.ones(wrong, dtype=bool))
                    self.assert_fails("compact", "--mask", mask, path, self.folder / "y.npy", says="mask")
                    self.assert_left_behind("x.npy", "m.npy")

    def test_wrong_usage_exits_with_two(self):
        path = self.save("x.npy", np.arange(3, dtype=np.int32))
        for arguments in (["scan"], ["scan", "--op", "foo", path], ["scan", "--type", "i33", path],
                          ["--timeout", "soon", "scan", path], ["compact", path], ["nonsense"], [],
                          ["compact", "--where", "about 3", path], ["compact", "--where", "> 1", "--mask", path, path],
                          ["reduce", self.folder / "x.raw"], ["scan", "--kind", "sideways", path]):
            with self.subTest(arguments=arguments):
                self.ctl(*arguments, expect=2)

    def test_the_servers_own_errors_come_through(self):
        path = self.save("x.npy", np.arange(3, dtype=np.float32))
        self.assert_fails("scan", "--op", "and", path, says=("INVALID_ARGUMENT", "UNSUPPORTED_COMBINATION"))
        self.assert_fails("scan", "--algorithm", "two_pass", path, says=("UNIMPLEMENTED", "two_pass"))
        for algorithm, field_says in (("sequential/blelloch", "takes no tile scan"),
                                      ("three_phase/kogge_stone/padded", "takes no padding"),
                                      ("three_phase/blelloch/4", "takes no items_per_thread"),
                                      ("three_phase/brent_kung/5", "expected a power of two up to 16")):
            with self.subTest(algorithm):
                self.assert_fails("scan", "--algorithm", algorithm, path, says=("ALGORITHM_CHOICE", field_says))
        for algorithm in ("", "fast", "three_phase/", "three_phase/brent_kung/04", "blelloch"):
            with self.subTest(algorithm):
                self.assert_fails("scan", "--algorithm", algorithm, path, code=2, says="is the name of no algorithm")
        self.assert_fails("scan", "--reverse", "-", stdin=b"1\n" * 300_000, says="REVERSE_ON_STREAM")

    def test_no_server_says_how_to_start_one(self):
        path = self.save("x.npy", np.arange(3, dtype=np.int32))
        began = time.monotonic()
        for arguments in (["scan", path], ["info"], ["health"]):
            self.assert_fails(*arguments, server="127.0.0.1:1", says=("127.0.0.1:1", "prefixd --listen"))
        self.assertLess(time.monotonic() - began, 30)

    def has_opened_output(self, process):
        """Whether it has a file of our folder open that is no pipe; it need not have a name."""
        for descriptor in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
            try:
                if os.readlink(descriptor).startswith(str(self.folder)) and descriptor.is_file():
                    return True
            except FileNotFoundError:
                pass  # Closed meanwhile.
        return False

    def test_an_interrupted_run_leaves_nothing_behind(self):
        source = self.folder / "pipe"
        os.mkfifo(source)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number):
                process = subprocess.Popen(
                    [BIN_DIR / "prefixctl", "--server", self.server.address, "scan", "--type", "i32", "--format", "raw",
                     source, self.folder / "y.bin"], stderr=subprocess.DEVNULL)
                with open(source, "wb") as pipe:
                    pipe.write(np.ones(3 << 20, dtype=np.int32).tobytes())
                    pipe.flush()
                    wait_until(lambda: self.has_opened_output(process))
                    process.send_signal(number)
                    self.assertEqual(process.wait(60), -number)
                self.assert_left_behind("pipe")

    def test_a_reader_that_stops_early_is_no_mistake(self):
        path = self.save("x.npy", np.ones(2_000_000, dtype=np.int32))
        script = f"'{BIN_DIR}/prefixctl' --server {self.server.address} scan '{path}' | head -n 1"
        done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60)
        self.assertEqual((done.stdout, done.stderr), (b"1\n", b""))

    def test_standard_input_that_is_closed_is_named(self):
        script = f"'{BIN_DIR}/prefixctl' --server {self.server.address} reduce - <&-"
        done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard input", done.stderr)

    def test_names_that_can_not_be_meant_are_wrong_usage(self):
        path = self.save("x.npy", np.arange(3, dtype=np.int32))
        self.assertIn(b"frobnicate", self.ctl("frobnicate", expect=2).stderr)
        self.ctl("--server", "", "scan", path, expect=2)
        self.ctl("scan", path, "", expect=2)
        out = self.folder / "y.npy"
        self.ctl("compact", "--where", "> 0", "--indices", f"{self.folder}/./y.npy", path, out, expect=2)

    def test_a_full_disk_is_an_error(self):
        path = self.save("x.npy", np.ones(1_000_000, dtype=np.int32))
        self.assert_fails("scan", path, "/dev/full", "--format", "npy", says="/dev/full")

    def test_a_deadline_is_kept(self):
        source = self.folder / "pipe"
        os.mkfifo(source)
        process = subprocess.Popen(
            [BIN_DIR / "prefixctl", "--server", self.server.address, "--timeout", "500ms", "reduce", "--type", "i32",
             "--format", "raw", source], stderr=subprocess.PIPE)
        # On a busy machine the deadline may pass before all of it is read.
        with contextlib.suppress(BrokenPipeError), open(source, "wb") as pipe:
            pipe.write(np.ones(3 << 20, dtype=np.int32).tobytes())
            pipe.flush()
            time.sleep(1)  # Longer than the deadline; the array has not ended yet.
        self.assertIn(b"DEADLINE_EXCEEDED", process.stderr.read())
        process.stderr.close()
        self.assertEqual(process.wait(60), 1)

    def test_a_deadline_is_kept_where_nobody_writes_or_reads(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        path = self.save("x.npy", np.ones(1_000_000, dtype=np.int32))
        for arguments in (["reduce", "--format", "text", pipe], ["reduce", "--format", "npy", pipe],
                          ["compact", "--mask", pipe, path, self.folder / "y.npy"],
                          ["scan", path, pipe], ["scan", path, "-"]):
            with self.subTest(arguments=arguments):
                with subprocess.Popen(
                        [BIN_DIR / "prefixctl", "--server", self.server.address, "--timeout", "500ms", *arguments],
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                    try:
                        self.assertEqual(process.wait(LIMIT_SECONDS), 1)  # Its output is not read until then.
                    finally:
                        process.kill()
                    message = process.stderr.read()
                self.assertIn(b"DEADLINE_EXCEEDED", message)
                self.assertIn(b"(--timeout 500ms)", message)
                self.assert_left_behind("pipe", "x.npy")

    def test_an_input_that_nobody_has_opened_yet_is_not_empty(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for text in (b"1\n2\n", b""):
            process = subprocess.Popen(
                [BIN_DIR / "prefixctl", "--server", self.server.address, "--timeout", f"{LIMIT_SECONDS}s", "reduce",
                 "--format", "text", pipe], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            with process.stdout:
                wait_until(lambda: has_open(process.pid, pipe))
                time.sleep(0.1)  # For it to look before anything is there.
                with open(pipe, "r+b", buffering=0) as writer:  # Opens even if nobody reads any more.
                    time.sleep(0.1)  # For it to look while there is a writer, but nothing written.
                    writer.write(text)
                self.assertEqual(process.stdout.read(), b"3\n" if text else b"0\n")
            self.assertEqual(process.wait(LIMIT_SECONDS), 0)


if __name__ == "__main__":
    unittest.main()
