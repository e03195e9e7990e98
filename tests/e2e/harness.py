"""Real processes for the end-to-end tests: a prefixd, and runs of prefixctl.

Environment: PREFIXD_BIN_DIR, the folder with both programs; PREFIXD_STUBS_DIR, the Python stubs made from the proto;
PREFIXD_E2E_DEVICE, the --device to serve with (default auto).
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN_DIR = pathlib.Path(os.environ["PREFIXD_BIN_DIR"])
STUBS_DIR = os.environ["PREFIXD_STUBS_DIR"]
DEVICE = os.environ.get("PREFIXD_E2E_DEVICE", "auto")
# Begins a command that obeys SIGINT: a shell makes background jobs ignore it, and children inherit that from the test.
# A preexec_fn would do the same in a fork of the test, whose gRPC threads let that hang now and then.
INTERRUPTIBLE = ("env", "--default-signal=INT")
LIMIT_SECONDS = 120  # For anything that is waited for: a hang fails instead.

sys.path.insert(0, STUBS_DIR)
import grpc  # noqa: E402

# The stubs of grpc/health/v1 live in a package of the same name as the library.
grpc.__path__.append(os.path.join(STUBS_DIR, "grpc"))


def server_environment(env=None):
    """Ours without the tests' own settings, which prefixd would not know, and with these variables."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith("PREFIXD_")}, **(env or {})}


def grpc_version():
    """Of the gRPC that prefixd is built with: (1, 51)."""
    said = subprocess.run([BIN_DIR / "prefixd", "--version"], capture_output=True, check=True, text=True).stdout
    return tuple(map(int, re.search(r"gRPC (\d+)\.(\d+)", said).groups()))


def memory_kib(pid, peak=False):
    """What a process has of physical memory, or had at most."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:" if peak else "VmRSS:")[1].split()[0])


class Server:
    """A prefixd on a free port of loopback. Use as a context manager; leaving it checks that it drains and exits 0.
    `under` is the command that runs the program, if it does not run by itself."""

    def __init__(self, *flags, env=None, program="prefixd", under=(), device=DEVICE):
        self._folder = tempfile.TemporaryDirectory(prefix="prefixd_e2e_")
        folder = pathlib.Path(self._folder.name)
        self.log_path = folder / "log"
        port_file = folder / "port"
        self._log = open(self.log_path, "wb")
        self.process = subprocess.Popen(
            [*under, BIN_DIR / program, "--device", device, "--listen", "127.0.0.1:0", "--port-file", port_file,
             *flags],
            stderr=self._log, env=server_environment(env))
        wait_until(lambda: port_file.exists() or self.process.poll() is not None)
        if not port_file.exists():
            log = self.log()
            self._log.close()
            self._folder.cleanup()
            raise RuntimeError(f"prefixd did not start: {log}")
        self.address = f"127.0.0.1:{port_file.read_text().strip()}"

    def log(self):
        """What is written so far. A thread of the server writes it, so it can be behind what a caller has seen; all of
        it is there once the server has stopped."""
        return self.log_path.read_text()

    def wait_for_log(self, text):
        wait_until(lambda: text in self.log(), f"{text!r} in the log")

    def memory_kib(self, peak=False):
        return memory_kib(self.process.pid, peak)

    def cpu_seconds(self):
        times = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """Sends SIGTERM and returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def __enter__(self):
        return self

    def __exit__(self, exc_type, *_):
        code = self.stop()
        self._log.close()
        log = self.log()
        self._folder.cleanup()
        if exc_type is None and code != 0:
            raise AssertionError(f"prefixd exited with {code}:\n{log}")


def wait_until(condition, what="what was waited for"):
    end = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: it did not happen in {LIMIT_SECONDS} s")
        time.sleep(0.01)  # Until the next look: another process tells nobody.


def temporary_folder(add_cleanup):
    """A folder, until the cleanups of a test, or of its class."""
    folder = tempfile.TemporaryDirectory(prefix="prefixd_e2e_")
    add_cleanup(folder.cleanup)
    return pathlib.Path(folder.name)


class E2ETest(unittest.TestCase):
    """One server for all tests of a class, and a fresh folder for each test."""

    SERVER_FLAGS = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.SERVER_FLAGS)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None)

    def setUp(self):
        self.folder = temporary_folder(self.addCleanup)

    def ctl(self, *arguments, stdin=None, expect=0, server=None, env=None):
        """Runs prefixctl; stdin and stdout are bytes. Checks the exit code and returns the finished process."""
        done = subprocess.run(
            [BIN_DIR / "prefixctl", *map(str, arguments)], input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True, timeout=LIMIT_SECONDS,
            env={**os.environ, "PREFIXD_SERVER": server or self.server.address, **(env or {})})
        self.assertEqual(done.returncode, expect, f"{arguments}: {done.stderr.decode()}")
        return done

    def ctl_json(self, *arguments, **options):
        return json.loads(self.ctl("--json", *arguments, **options).stdout)

    def assert_fails(self, *arguments, code=1, says=(), **options):
        """Checks that the command fails with this exit code, and that its message has all of these words."""
        message = self.ctl(*arguments, expect=code, **options).stderr.decode()
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, message)
        return message
