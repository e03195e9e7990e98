"""What callers reach the server through in the drills: nothing, TLS of its own with PREFIXD_DRILLS_TLS=1, or what
PREFIXD_DRILLS_FRONT names, such as a proxy. That is a command that gets addresses of servers as its last arguments,
unix:PATH, prints the address that it serves, and ends on SIGTERM."""

import contextlib
import functools
import os
import pathlib
import shlex
import ssl
import subprocess
import tempfile
import unittest

import raw_http2
from certificates import Authority
from harness import Server, grpc, grpc_version, memory_kib

COMMAND = shlex.split(os.environ.get("PREFIXD_DRILLS_FRONT", ""))
TLS = os.environ.get("PREFIXD_DRILLS_TLS") == "1"
assert not (TLS and COMMAND), "TLS is the server's own: behind a proxy it is not tried"
WAY = "proxy" if COMMAND else "TLS" if TLS else "plain"
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


@functools.cache
def certificates():
    """The folder of this process's own, and its authority."""
    folder = tempfile.TemporaryDirectory(prefix="prefixd_drills_")
    unittest.addModuleCleanup(folder.cleanup)
    return folder, Authority(folder.name)


@functools.cache
def server_flags():
    return certificates()[1].sign("server").server_flags() if TLS else []


def authority_for(address):
    """The file of the authority that callers trust there; None where they speak plain text."""
    return str(certificates()[1].certificate) if TLS and not address.startswith("unix:") else None


def channel(address, options=(), authority=None):
    """A connection of its own. In another process than the test's `authority` is that of the test's."""
    options = [("grpc.use_local_subchannel_pool", 1), *options]
    authority = authority or authority_for(address)
    if not authority:
        return grpc.insecure_channel(address, options)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(pathlib.Path(authority).read_bytes()), options)


@functools.cache
def _tls_context(authority):
    context = ssl.create_default_context(cafile=authority)
    context.set_alpn_protocols(["h2"])
    return context


def over_tls(connection, address):
    """A socket that is connected to that address, so that what is sent goes over TLS where callers speak it."""
    authority = authority_for(address)
    return _tls_context(authority).wrap_socket(connection, server_hostname="localhost") if authority else connection


def connect(address, settings=b"", from_host=None):
    """raw_http2.connect, over TLS where callers speak it. There too one thread may read while another one sends."""
    def wrap(connection):
        return raw_http2.TlsConnection(over_tls(connection, address)) if authority_for(address) else connection
    return raw_http2.connect(address, settings, from_host, wrap)


@contextlib.contextmanager
def server_for_front(*flags, **options):
    """A prefixd, and the address at which what is in front reaches it: a trusted Unix socket, if it is a proxy."""
    if not COMMAND:
        with Server(*server_flags(), *flags, **options) as server:
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
