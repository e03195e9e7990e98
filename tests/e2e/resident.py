"""Resident arrays for tests: numpy arrays up and down, and places of operands and results."""

import random

import numpy as np

from foreign_client_test import DTYPES
from harness import E2ETest, grpc
from prefixd.v1 import arrays_pb2, arrays_pb2_grpc, primitives_pb2_grpc, types_pb2

TYPES = {number: np.dtype(dtype) for dtype, number in DTYPES.items()}
TYPES[types_pb2.DTYPE_BF16] = np.dtype(np.uint16)  # NumPy has none: its bits.
MESSAGE_BYTES = 1 << 20


def place(name, first_item=0, num_items=None):
    return arrays_pb2.ArraySlice(name=name, first_item=first_item, num_items=num_items)


def operand(slice_or_bytes):
    if isinstance(slice_or_bytes, bytes):
        return arrays_pb2.Operand(inline=arrays_pb2.InlineChunk(data=slice_or_bytes))
    return arrays_pb2.Operand(array=slice_or_bytes)


class Arrays:
    """The services of a server, at an address."""

    def __init__(self, address, metadata=()):
        self.channel = grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)])
        self.stub = arrays_pb2_grpc.ArrayServiceStub(self.channel)
        self.primitives = primitives_pb2_grpc.PrefixServiceStub(self.channel)
        self.metadata = metadata

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def call(self, method, request):
        return getattr(self.stub, method)(request, timeout=60, metadata=self.metadata)

    def create(self, dtype, *shape, **fields):
        request = arrays_pb2.CreateArrayRequest(dtype=DTYPES[np.dtype(dtype).type], shape=shape, **fields)
        return self.call("CreateArray", request).array

    def write(self, target, x):
        data = x.tobytes()

        def requests():
            for first in range(0, max(len(data), 1), MESSAGE_BYTES):
                request = arrays_pb2.WriteArrayRequest(values=operand(data[first:first + MESSAGE_BYTES]))
                if first == 0:
                    request.array.CopyFrom(target)
                    request.announces_end = True
                request.end = first + MESSAGE_BYTES >= len(data)
                yield request

        return self.call("WriteArray", requests())

    def upload(self, x):
        array = self.create(x.dtype, *x.shape)
        self.write(place(array.name), x)
        return array.name

    def read(self, source):
        dtype = TYPES[self.get(source.name).dtype]
        replies = list(self.call("ReadArray", arrays_pb2.ReadArrayRequest(array=source)))
        assert max((len(reply.values.inline.data) for reply in replies), default=0) <= MESSAGE_BYTES
        return np.frombuffer(b"".join(reply.values.inline.data for reply in replies), dtype)

    def get(self, name):
        return self.call("GetArray", arrays_pb2.GetArrayRequest(name=name)).array

    def delete(self, name):
        self.call("DeleteArray", arrays_pb2.DeleteArrayRequest(name=name))


class ResidentTest(E2ETest):
    """Has the services of the server, and random numbers with a seed for messages."""

    def setUp(self):
        super().setUp()
        self.arrays = Arrays(self.server.address)
        self.addCleanup(self.arrays.channel.close)
        self.stub = self.arrays.primitives
        self.seed = random.randrange(1 << 32)
        self.numbers = np.random.default_rng(self.seed)
