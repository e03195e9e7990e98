"""Less memory than the default budgets would take: more streams than fit are refused, and the process stays."""

import pathlib
import sys
import threading
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from drills.honest import Honest  # noqa: E402
from foreign_client_test import scan_request  # noqa: E402
from harness import Server, grpc  # noqa: E402
from prefixd.v1 import admin_pb2, admin_pb2_grpc, primitives_pb2_grpc  # noqa: E402

ADDRESS_SPACE = 900_000 * 1024
STREAMS = 200


class MemoryDrill(unittest.TestCase):
    def test_budgets_fit_into_the_address_space(self):
        with Server(under=["prlimit", f"--as={ADDRESS_SPACE}"]) as server:
            with grpc.insecure_channel(server.address) as channel:
                info = admin_pb2_grpc.AdminServiceStub(channel).GetServerInfo(admin_pb2.GetServerInfoRequest())
                self.assertLess(info.request_bytes.limit, ADDRESS_SPACE // 3)
            # Each sends what it may and reads nothing.
            chunk = scan_request(np.ones(1 << 19, np.int64))
            end = threading.Event()

            def requests():
                yield chunk
                end.wait()

            channels = [grpc.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)])
                        for _ in range(8)]
            calls = [primitives_pb2_grpc.PrefixServiceStub(channels[i % 8]).StreamScan(requests())
                     for i in range(STREAMS)]
            refused = 0
            for call in calls:
                try:
                    next(call)
                except grpc.RpcError as error:
                    self.assertIn(error.code(), (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE))
                    refused += 1
            self.assertGreater(refused, 0)
            self.assertIsNone(server.process.poll(), server.log())
            end.set()
            for call in calls:
                call.cancel()
            for channel in channels:
                channel.close()
            with Honest(server.address) as after:
                pass
            self.assertEqual(after.failures, 0, after.errors)

    def test_a_budget_that_does_not_fit_is_refused_at_start(self):
        with self.assertRaisesRegex(RuntimeError, "--max-request-bytes"):
            Server("--max-request-bytes", str(1 << 30), under=["prlimit", f"--as={ADDRESS_SPACE}"]).stop()


if __name__ == "__main__":
    unittest.main()
