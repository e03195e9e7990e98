"""What the tests of callers that misbehave have in common."""

import os
import queue
import time

import numpy as np

from foreign_client_test import chunk, scan_request
from harness import E2ETest, grpc, wait_until

from prefixd.v1 import admin_pb2, admin_pb2_grpc, primitives_pb2_grpc

MIB = 1 << 20
CHUNK = np.arange(MIB // 4, dtype=np.int32)
# The server gives so much of the memory that is free back to the kernel. Under ASan it gives back all every ten seconds,
# and until then ASan keeps so much of what is freed: see CMakeLists.txt.
RELEASED_KIB_PER_SECOND = 8 * 1024
HELD_BACK_KIB = 16 * 1024 if "ASAN_OPTIONS" in os.environ else 0


class Requests:
    """An iterator of requests. A test feeds it, or lets it starve."""

    def __init__(self):
        self._queue = queue.Queue()

    def put(self, request):
        self._queue.put(request)

    def end(self):
        self._queue.put(None)

    def __iter__(self):
        return iter(self._queue.get, None)


class FaultsTest(E2ETest):
    """A server for callers that misbehave, and the checks that it serves the others and frees all it held."""

    def setUp(self):
        super().setUp()
        self.stub = self.connect()
        self.admin = admin_pb2_grpc.AdminServiceStub(self.channels[-1])

    def connect(self, address=None):
        """Returns a stub with a connection of its own."""
        channel = grpc.insecure_channel(address or self.server.address, options=[("grpc.use_local_subchannel_pool", 1)])
        self.addCleanup(channel.close)
        if not hasattr(self, "channels"):
            self.channels = []
        self.channels.append(channel)
        return primitives_pb2_grpc.PrefixServiceStub(channel)

    def info(self):
        return self.admin.GetServerInfo(admin_pb2.GetServerInfoRequest())

    def assert_serves(self):
        """Checks the answers to small and large requests. A server that is held up would exceed the time limit."""
        small = self.stub.Scan(scan_request(CHUNK[:100]), timeout=30)
        np.testing.assert_array_equal(np.frombuffer(small.values.inline.data, np.int32), np.cumsum(CHUNK[:100]))
        requests = [scan_request(CHUNK), chunk(CHUNK), chunk(CHUNK)]
        replies = b"".join(reply.values.inline.data for reply in self.stub.StreamScan(iter(requests), timeout=30))
        np.testing.assert_array_equal(np.frombuffer(replies, np.int32), np.cumsum(np.tile(CHUNK, 3), dtype=np.int32))

    def memory_at_rest_kib(self):
        """The server's memory once it gives no more of it back to the kernel."""
        seconds = 12 if "ASAN_OPTIONS" in os.environ else 2
        while True:
            earlier = self.server.memory_kib()
            time.sleep(seconds)  # In which it would give some back.
            now = self.server.memory_kib()
            if earlier - now < seconds * RELEASED_KIB_PER_SECOND / 16:
                return now

    def assert_all_is_freed(self):
        def is_idle():
            info = self.info()
            return info.requests.used == 0 and info.request_bytes.used == 0
        wait_until(is_idle)
        # What replies were sent from is back with the lanes' own blocks.
        wait_until(lambda: self.info().staging_bytes.used == self.idle_staging_bytes)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with grpc.insecure_channel(cls.server.address) as channel:
            admin = admin_pb2_grpc.AdminServiceStub(channel)
            cls.idle_staging_bytes = admin.GetServerInfo(admin_pb2.GetServerInfoRequest()).staging_bytes.used
