"""What callers reach the server through in the drills: nothing, or what PREFIXD_DRILLS_FRONT names, such as a proxy. It is
a command that gets the server's address as its last argument, prints the address that it serves, and ends on SIGTERM."""

import contextlib
import os
import shlex
import subprocess

from harness import grpc_version

COMMAND = shlex.split(os.environ.get("PREFIXD_DRILLS_FRONT", ""))
OLDEST_SAFE_GRPC = (1, 60)


@contextlib.contextmanager
def front(address):
    """The address for callers of the server that is at `address`."""
    if not COMMAND:
        yield address
        return
    with subprocess.Popen([*COMMAND, address], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def why_http2_is_not_promised():
    """None where the server is safe from attacks on HTTP/2 itself: by its own gRPC, or by what is in front of it."""
    if COMMAND or grpc_version() >= OLDEST_SAFE_GRPC:
        return None
    version = ".".join(map(str, grpc_version()))
    return f"gRPC {version} withstands none of these without a proxy in front: docs/operations.md, Networks"
