"""Streams that are cut, between two messages or inside one or inside a frame: no result of
what came, and nobody else is harmed."""

import contextlib
import pathlib
import re
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import raw_http2  # noqa: E402
from drills.front import HOSTILE_HOST, channel, connect, served  # noqa: E402
from drills.honest import Drill, for_a_while  # noqa: E402
from foreign_client_test import chunk, reason, scan_request  # noqa: E402
from harness import grpc, wait_until  # noqa: E402
from prefixd.v1 import primitives_pb2_grpc  # noqa: E402

ITEMS = np.ones(1000, np.int32)
IN_THE_LOG = re.compile(r'method="StreamScan".* status="(\w+)"')


def first_message():
    request = scan_request(ITEMS)
    request.announces_end = True
    return request


class CutDrill(Drill):
    def test_between_two_messages(self):
        with served() as place, self.unharmed(place), channel(place.address) as connection:
            stub = primitives_pb2_grpc.PrefixServiceStub(connection)
            for _ in for_a_while():
                with self.assertRaises(grpc.RpcError) as caught:
                    list(stub.StreamScan(iter([first_message(), chunk(ITEMS)])))
                self.assertEqual((caught.exception.code(), reason(caught.exception)),
                                 (grpc.StatusCode.INVALID_ARGUMENT, "INCOMPLETE"))
            last = chunk(ITEMS)
            last.end = True
            replies = list(stub.StreamScan(iter([first_message(), last])))
            self.assertEqual(replies[-1].timing.num_items, 2 * len(ITEMS))

    def test_inside_a_message(self):
        second = raw_http2.message(chunk(ITEMS).SerializeToString())
        cut = (raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 1,
                               raw_http2.headers("/prefixd.v1.PrefixService/StreamScan")) +
               raw_http2.frame(raw_http2.DATA, 0, 1, raw_http2.message(first_message().SerializeToString())) +
               raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, 1, second[:len(second) // 2]))
        with served("--log-lines-per-second", "0") as place:
            num_cut = 0
            with self.unharmed(place):
                for _ in for_a_while():
                    with connect(place.address, from_host=HOSTILE_HOST) as connection:
                        connection.sendall(cut)
                        for kind, flags, stream, _ in raw_http2.read_frames(connection):
                            if stream == 1 and flags & raw_http2.END_STREAM or kind == raw_http2.RST_STREAM:
                                break
                    num_cut += 1
            wait_until(lambda: len(IN_THE_LOG.findall(place.server.log())) == num_cut)
            self.assertNotIn("OK", IN_THE_LOG.findall(place.server.log()))

    def test_inside_a_frame(self):
        with served() as place, self.unharmed(place):
            for _ in for_a_while():
                # On a fast machine that is more than an address may cancel.
                with contextlib.suppress(OSError), connect(place.address, from_host=HOSTILE_HOST) as connection:
                    connection.sendall(raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 1,
                                                       raw_http2.headers("/prefixd.v1.DiagnosticsService/Echo")) +
                                       raw_http2.frame(raw_http2.DATA, 0, 1, raw_http2.message(bytes(1000))[:500]))
                with contextlib.suppress(OSError), connect(place.address, from_host=HOSTILE_HOST) as connection:
                    # A frame above the size that is allowed.
                    connection.sendall(raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 1,
                                                       raw_http2.headers("/prefixd.v1.DiagnosticsService/Echo")) +
                                       raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, 1, bytes(1 << 15)))
                    for kind, flags, stream, _ in raw_http2.read_frames(connection):
                        if stream == 1 and (kind == raw_http2.RST_STREAM or flags & raw_http2.END_STREAM):
                            break  # A proxy may allow so large a frame.


if __name__ == "__main__":
    unittest.main()
