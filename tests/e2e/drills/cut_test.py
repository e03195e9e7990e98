"""A stream that is cut, between two messages or inside one: no result of what came."""

import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import raw_http2  # noqa: E402
from drills.front import served  # noqa: E402
from foreign_client_test import chunk, reason, scan_request  # noqa: E402
from harness import grpc, wait_until  # noqa: E402
from prefixd.v1 import primitives_pb2_grpc  # noqa: E402

ITEMS = np.ones(1000, np.int32)


def first_message():
    request = scan_request(ITEMS)
    request.announces_end = True
    return request


class CutDrill(unittest.TestCase):
    def test_between_two_messages(self):
        with served() as place, grpc.insecure_channel(place.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            with self.assertRaises(grpc.RpcError) as caught:
                list(stub.StreamScan(iter([first_message(), chunk(ITEMS)])))
            self.assertEqual((caught.exception.code(), reason(caught.exception)),
                             (grpc.StatusCode.INVALID_ARGUMENT, "INCOMPLETE"))
            last = chunk(ITEMS)
            last.end = True
            replies = list(stub.StreamScan(iter([first_message(), last])))
            self.assertEqual(replies[-1].timing.num_items, 2 * len(ITEMS))

    def test_inside_a_message(self):
        with served() as place, raw_http2.connect(place.address) as connection:
            path = "/prefixd.v1.PrefixService/StreamScan"
            second = raw_http2.message(chunk(ITEMS).SerializeToString())
            connection.sendall(
                raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 1, raw_http2.headers(path)) +
                raw_http2.frame(raw_http2.DATA, 0, 1, raw_http2.message(first_message().SerializeToString())) +
                raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, 1, second[:len(second) // 2]))
            for kind, flags, stream, _ in raw_http2.read_frames(connection):
                if stream == 1 and flags & raw_http2.END_STREAM or kind == raw_http2.RST_STREAM:
                    break
            wait_until(lambda: "request id=" in place.server.log())
            self.assertNotIn('status="OK"', place.server.log())


if __name__ == "__main__":
    unittest.main()
