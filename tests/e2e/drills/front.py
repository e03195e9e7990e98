"""What callers reach the server through in the drills: nothing, or what PREFIXD_DRILLS_FRONT names, such as a proxy. It is
a command that gets addresses of servers as its last arguments, unix:PATH, prints the address that it serves, and ends on
SIGTERM."""

import contextlib
import os
import shlex
import subprocess
import tempfile

from harness import Server, grpc_version, memory_kib

COMMAND = shlex.split(os.environ.get("PREFIXD_DRILLS_FRONT", ""))
OLDEST_SAFE_GRPC = (1, 60)


# Callers are told apart by their addresses: those who mean harm come from another host.
HOSTILE_HOST = "127.0.0.66"


class Place:
    """A server, the address for its callers, and the processes between them and it by name."""

    def __init__(self, server, address, processes):
        self.server, self.address = server, address
        self._processes = processes

    def memory_kib(self, peak=False):
        return {name: memory_kib(process.pid, peak) for name, process in self._processes.items()}


@contextlib.contextmanager
def server_for_front(*flags, **options):
    """A prefixd, and the address at which what is in front reaches it: a trusted Unix socket, if it is a proxy."""
    if not COMMAND:
        with Server(*flags, **options) as server:
            yield server, server.address
        return
    with tempfile.TemporaryDirectory(prefix="prefixd_front_") as folder:
        socket = f"unix:{folder}/prefixd.sock"
        with Server("--listen", socket, "--trusted-proxy", "unix", *flags, **options) as server:
            yield server, socket


@contextlib.contextmanager
def front(*addresses):
    """What COMMAND starts in front of servers at these addresses: the address for callers, and the process."""
    with subprocess.Popen([*COMMAND, *addresses], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.terminate()


@contextlib.contextmanager
def served(*flags, **options):
    """A prefixd behind what is in front, if anything is."""
    with server_for_front(*flags, **options) as (server, inner_address):
        if not COMMAND:
            yield Place(server, inner_address, {"server": server.process})
            return
        with front(inner_address) as (address, process):
            yield Place(server, address, {"server": server.process, "front": process})


def why_http2_is_not_promised():
    """None where the server is safe from attacks on HTTP/2 itself: by its own gRPC, or by what is in front of it."""
    if COMMAND or grpc_version() >= OLDEST_SAFE_GRPC:
        return None
    version = ".".join(map(str, grpc_version()))
    return f"gRPC {version} does not withstand this without a proxy in front: docs/operations.md, Networks"
