"""The real prefixd on CPUs that QEMU makes up: it takes the widest instruction set that the CPU has, runs no
instruction beyond it, and gives the bits that it gives on this machine's own CPU."""

import contextlib
import pathlib
import platform
import random
import shutil
import subprocess
import unittest

import numpy as np

from harness import BIN_DIR, LIMIT_SECONDS, E2ETest, Server, server_environment

QEMU = shutil.which("qemu-x86_64")
PLAIN = "Opteron_G1"  # What every x86-64 has, and SSE3.
WITHOUT_AVX = "Nehalem"
WITH_AVX2 = "Haswell"
TYPES = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
         "i64": np.int64, "u64": np.uint64, "f32": np.float32, "f64": np.float64}


def setUpModule():
    if platform.machine() not in ("x86_64", "AMD64"):
        raise unittest.SkipTest("this machine is not x86-64")
    if QEMU is None:
        raise unittest.SkipTest("qemu-x86_64 is not installed (deploy/install_deps.sh test)")


def system_calls(process):
    """The system call that each thread of a process is in, if it runs."""
    if process.poll() is not None:
        return f"exited with {process.returncode}"
    threads = pathlib.Path(f"/proc/{process.pid}/task").iterdir()
    return "\n".join(f"thread {thread.name}: {(thread / 'syscall').read_text().strip()}" for thread in threads)


@contextlib.contextmanager
def server_on(cpu):
    """A prefixd on that CPU. What fails says what the server last wrote, for QEMU names the signal that ended it; or if
    it still runs, what its threads wait for."""
    with Server(under=(QEMU, "-cpu", cpu), device="cpu") as server:
        try:
            yield server
        except Exception as error:
            raise AssertionError(
                f"{error}\nThe server on {cpu} wrote:\n{server.log()}\n{system_calls(server.process)}") from error


class OldCpuTest(E2ETest):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(device="cpu")  # On this machine's own CPU.

    def setUp(self):
        super().setUp()
        self.seed = random.SystemRandom().getrandbits(32)
        print(f"{self.id()}: seed {self.seed}")

    def items(self, dtype, count):
        """A .npy file of all that the type has. Floats that are not finite come late: sums are NaN from there on."""
        generator = np.random.default_rng(self.seed)
        if np.issubdtype(dtype, np.floating):
            items = (generator.standard_normal(count) * 1000).astype(dtype)
            late = items[-(count // 8)::7]
            late[:] = generator.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], len(late))
        else:
            limits = np.iinfo(dtype)
            items = generator.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
        path = self.folder / f"{np.dtype(dtype)}_{count}.npy"
        np.save(path, items)
        return path

    def results(self, server, path):
        """What every primitive makes of the file, as bytes."""
        out, where = self.folder / "out.npy", self.folder / "where.npy"
        results = {}
        for name, command in {
            "scan": ("scan",),
            "scan max": ("scan", "--op", "max"),
            "exclusive scan": ("scan", "--kind", "exclusive", "--init", "7"),
            "compact": ("compact", "--where", "> 5", "--indices", where),
            "difference": ("difference",),
        }.items():
            self.ctl(*command, path, out, server=server.address)
            results[name] = out.read_bytes()
        results["indices"] = where.read_bytes()
        for op in ("sum", "prod", "min"):
            value = self.ctl_json("reduce", "--op", op, path, server=server.address)
            results[op] = (value["value"], value.get("index"), value["count"])
        return results

    def check_results(self, server):
        # The long ones are cut among threads.
        for name, count in [*((name, 5003) for name in TYPES), ("i32", 200_003), ("f32", 200_003)]:
            path = self.items(TYPES[name], count)
            want = self.results(self.server, path)
            got = self.results(server, path)
            for what in want:
                self.assertTrue(got[what] == want[what], f"{what} of {count} {name} differs")

    def device_name(self, server):
        return self.ctl_json("info", server=server.address)["device"]

    def test_cpus_without_avx(self):
        for cpu in (PLAIN, WITHOUT_AVX):
            with self.subTest(cpu=cpu), server_on(cpu) as server:
                name = self.device_name(server)
                self.assertIn("sse2", name)
                self.assertNotIn("avx", name)
                self.check_results(server)

    def test_a_cpu_with_avx2(self):
        with server_on(WITH_AVX2) as server:
            name = self.device_name(server)
            self.assertIn("avx2", name)
            self.check_results(server)

    def test_an_instruction_set_that_the_cpu_lacks_is_refused(self):
        for isa in ("avx2", "avx512"):
            done = subprocess.run(
                [QEMU, "-cpu", WITHOUT_AVX, BIN_DIR / "prefixd", "--device", "cpu", "--cpu-isa", isa, "--listen",
                 "127.0.0.1:0"],
                capture_output=True, timeout=LIMIT_SECONDS, env=server_environment())
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"no instruction set '{isa}'".encode(), done.stderr)
            self.assertIn(b"choose one of auto, sse2\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
