"""--admin-listen: what is for administrators has an address of its own."""

import unittest

import numpy as np
from foreign_client_test import scan_request
from harness import Server, grpc, temporary_folder
from grpc.health.v1 import health_pb2, health_pb2_grpc
from prefixd.v1 import admin_pb2, admin_pb2_grpc, diagnostics_pb2, diagnostics_pb2_grpc, primitives_pb2_grpc

REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


def raw_stream(channel, method, message=b""):
    return list(channel.stream_stream(method)(iter([message]), timeout=10))


CALLS = {
    "scan": lambda channel: primitives_pb2_grpc.PrefixServiceStub(channel).Scan(
        scan_request(np.ones(4, np.int32)), timeout=10),
    "info": lambda channel: admin_pb2_grpc.AdminServiceStub(channel).GetServerInfo(
        admin_pb2.GetServerInfoRequest(), timeout=10),
    "benchmark": lambda channel: list(admin_pb2_grpc.AdminServiceStub(channel).RunBenchmark(
        admin_pb2.RunBenchmarkRequest(num_items=[1024], primitives=[1], dtypes=[1], ops=[1], repetitions=1),
        timeout=60)),
    "echo": lambda channel: diagnostics_pb2_grpc.DiagnosticsServiceStub(channel).Echo(
        diagnostics_pb2.EchoRequest(), timeout=10),
    "reflection": lambda channel: raw_stream(channel, REFLECTION, b"\x3a\x00"),  # list_services
    "health": lambda channel: health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10),
}


class AdminListenTest(unittest.TestCase):
    def setUp(self):
        self.admin = f"unix:{temporary_folder(self.addCleanup)}/admin.sock"

    def served(self, address):
        """The names of those calls that are."""
        names = set()
        with grpc.insecure_channel(address) as channel:
            for name, call in CALLS.items():
                try:
                    call(channel)
                    names.add(name)
                except grpc.RpcError as error:
                    self.assertEqual(error.code(), grpc.StatusCode.UNIMPLEMENTED, f"{name}: {error.details()}")
        return names

    def test_each_address_serves_its_own(self):
        with Server("--admin-listen", self.admin) as server:
            self.assertEqual(self.served(server.address), {"scan", "health"})
            self.assertEqual(self.served(self.admin), set(CALLS) - {"scan"})

    def test_without_it_all_is_served_everywhere(self):
        with Server("--listen", self.admin) as server:
            self.assertEqual(self.served(server.address), set(CALLS))
            self.assertEqual(self.served(self.admin), set(CALLS))

    def test_benchmarks_are_on_where_only_their_own_address_is_of_this_host(self):
        with Server("--listen", "0.0.0.0:0", "--admin-listen", self.admin):
            self.assertIn("benchmark", self.served(self.admin))
        with Server("--admin-listen", "0.0.0.0:0", "--admin-listen", self.admin):
            with grpc.insecure_channel(self.admin) as channel, self.assertRaises(grpc.RpcError) as raised:
                CALLS["benchmark"](channel)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.PERMISSION_DENIED)

    def test_connections_of_both_count_together(self):
        with Server("--admin-listen", self.admin, "--max-connections", "3") as server:
            channels = [grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)])
                        for address in (server.address, server.address, self.admin)]
            for channel in channels:
                CALLS["health"](channel)
            with grpc.insecure_channel(self.admin, [("grpc.use_local_subchannel_pool", 1)]) as fourth:
                with self.assertRaises(grpc.RpcError):
                    CALLS["health"](fourth)
            for channel in channels:
                channel.close()


if __name__ == "__main__":
    unittest.main()
