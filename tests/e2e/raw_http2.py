"""HTTP/2 frames by hand, for what no client library would send."""

import contextlib
import select
import socket
import ssl
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW_SIZE = 4
NO_WINDOW = struct.pack(">HI", INITIAL_WINDOW_SIZE, 0)  # The settings of one that takes no data.
MAX_FRAME = 16384  # Unless the other side allows more.


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header_frames(stream, block):
    """A header block, in as many frames as it needs."""
    parts = [block[i:i + MAX_FRAME] for i in range(0, len(block), MAX_FRAME)]
    kinds = [HEADERS] + [CONTINUATION] * (len(parts) - 1)
    return b"".join(frame(kind, END_HEADERS if i + 1 == len(parts) else 0, stream, part)
                    for i, (kind, part) in enumerate(zip(kinds, parts)))


def _string(text):
    """A literal of HPACK, not Huffman-coded."""
    raw = text.encode("latin-1")
    if len(raw) < 127:
        return bytes([len(raw)]) + raw
    rest, length = len(raw) - 127, [127]
    while rest >= 128:
        length.append(rest % 128 + 128)
        rest //= 128
    return bytes([*length, rest]) + raw


def headers(path, metadata=(), authority="localhost"):
    """A header block that starts a gRPC call: literals, none of which are indexed."""
    fields = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", authority), ("te", "trailers"),
              ("content-type", "application/grpc"), *metadata]
    return b"".join(b"\x00" + _string(name) + _string(value) for name, value in fields)


def settings(payload):
    """What a SETTINGS frame says, by identifier."""
    return dict(struct.iter_unpack(">HI", payload))


def message(payload):
    """A gRPC message with its five bytes in front."""
    return struct.pack(">BI", 0, len(payload)) + payload


class TlsConnection:
    """An ssl.SSLSocket of which one thread may read while others send: OpenSSL takes one at a time."""

    def __init__(self, connection):
        self._connection = connection
        self.settimeout(connection.gettimeout())
        connection.setblocking(False)
        self._inside, self._sending = threading.Lock(), threading.Lock()

    def settimeout(self, seconds):
        self._timeout = seconds

    def recv(self, size):
        while True:
            with self._inside, contextlib.suppress(ssl.SSLWantReadError):
                return self._connection.recv(size)
            self._wait([self._connection], [])

    def sendall(self, data):
        with self._sending:  # What could not be sent must be tried again before anything else.
            rest = memoryview(data)
            while rest:
                with self._inside, contextlib.suppress(ssl.SSLWantWriteError):
                    rest = rest[self._connection.send(rest):]
                    continue
                self._wait([], [self._connection])

    def _wait(self, readable, writable):
        if not any(select.select(readable, writable, [], self._timeout)):
            raise TimeoutError("the other side is silent")

    def close(self):
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def connect(address, settings=b"", from_host=None, wrap=lambda connection: connection):
    """A connection that has said hello. `address` is HOST:PORT; `wrap` may put TLS around what is sent."""
    host, port = address.rsplit(":", 1)
    source = from_host and (from_host, 0)
    connection = wrap(socket.create_connection((host, int(port)), timeout=60, source_address=source))
    connection.sendall(PREFACE + frame(SETTINGS, payload=settings))
    return connection


def read_frames(connection):
    """Frames as (kind, flags, stream, payload), until the other side closes. Acknowledges settings and pings."""
    held = b""
    while True:
        while len(held) < 9 or len(held) < 9 + int.from_bytes(held[:3], "big"):
            try:
                more = connection.recv(1 << 16)
            except ConnectionResetError:
                return
            if not more:
                return
            held += more
        length = int.from_bytes(held[:3], "big")
        kind, flags, stream = struct.unpack(">BBI", held[3:9])
        payload, held = held[9:9 + length], held[9 + length:]
        if kind in (SETTINGS, PING) and not flags & ACK:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # What had come is read all the same.
                connection.sendall(frame(kind, ACK, payload=payload if kind == PING else b""))
        yield kind, flags, stream, payload


def call(address, path, payload=b"", metadata=()):
    """One call; returns when the server has answered or closed."""
    with connect(address) as connection:
        connection.sendall(frame(HEADERS, END_HEADERS, 1, headers(path, metadata)) +
                           frame(DATA, END_STREAM, 1, message(payload)))
        for kind, flags, stream, _ in read_frames(connection):
            if (kind in (HEADERS, DATA) and stream == 1 and flags & END_STREAM) or kind in (RST_STREAM, GOAWAY):
                return
