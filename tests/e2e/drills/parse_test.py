"""Messages that are cheap to send and dear to parse: millions of tiny fields. None costs the server much more than an
array of as many bytes, and each is refused with a reason."""

import concurrent.futures
import contextlib
import itertools
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from drills.front import channel, served  # noqa: E402
from drills.honest import Drill, for_a_while  # noqa: E402
from foreign_client_test import reason  # noqa: E402
from harness import grpc  # noqa: E402
from prefixd.v1 import primitives_pb2, primitives_pb2_grpc, types_pb2  # noqa: E402

MESSAGE_BYTES = (4 << 20) - 4096  # The server takes 4 MiB.
MESSAGES = 10
CALLERS = 4


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def hostile_messages():
    """By what they are made of."""
    tiny = b"\x78\x01" * (MESSAGE_BYTES // 2)  # Field 15, which no message has.
    return {
        "unknown fields": tiny,
        "unknown fields in an array": field(100, tiny[:-16]),
        "unknown fields in an array's chunk": field(100, field(100, tiny[:-32])),
        "an array that comes a million times": field(100, b"") * (MESSAGE_BYTES // 3),
        "groups": b"\x7b\x7c" * (MESSAGE_BYTES // 2),
        "groups in groups": b"\x7b" * MESSAGE_BYTES,
        "unknown fields behind an array that comes twice": field(100, b"") * 2 + tiny[:-6],
        "one unknown field": field(15, b"x" * (MESSAGE_BYTES - 16)),
    }


def calls(connection):
    """By method."""
    return {method: connection.unary_unary(f"/prefixd.v1.PrefixService/{method}")
            for method in ("Scan", "Reduce", "Compact", "Difference")}


class ParseDrill(Drill):
    def assert_refused(self, call, message):
        with self.assertRaises(grpc.RpcError) as caught:
            call(message)
        self.assertEqual(reason(caught.exception), "MALFORMED")

    def cost(self, server, send):
        """CPU seconds of the server for a message."""
        before = server.cpu_seconds()
        for _ in range(MESSAGES):
            send()
        return (server.cpu_seconds() - before) / MESSAGES

    def test_no_message_is_dearer_than_an_array(self):
        """Nobody else calls: it is the server's time that is measured."""
        with served() as place, channel(place.address) as connection:
            stub = primitives_pb2_grpc.PrefixServiceStub(connection)
            array = primitives_pb2.ReduceRequest()
            array.spec.op, array.spec.dtype = types_pb2.OP_SUM, types_pb2.DTYPE_I64
            array.values.inline.data = bytes(MESSAGE_BYTES // 8 * 8 - 64)
            honest = max(self.cost(place.server, lambda: stub.Reduce(array)) for _ in range(3))
            for method, call in calls(connection).items():
                for name, message in hostile_messages().items():
                    with self.subTest(method=method, message=name):
                        # An array costs a copy and a sum beside what gRPC does for any message.
                        self.assertLess(self.cost(place.server, lambda: self.assert_refused(call, message)),
                                        2 * honest + 0.005)

    def test_nobody_waits_for_those_who_send_them(self):
        with served() as place, self.unharmed(place), contextlib.ExitStack() as stack:
            callers = [calls(stack.enter_context(channel(place.address))) for _ in range(CALLERS)]
            messages = itertools.cycle(hostile_messages().values())
            with concurrent.futures.ThreadPoolExecutor(CALLERS) as threads:
                for _ in for_a_while():
                    message = next(messages)
                    for method in callers[0]:
                        list(threads.map(lambda own: self.assert_refused(own[method], message), callers))


if __name__ == "__main__":
    unittest.main()
