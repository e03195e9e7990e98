"""A client in another language: Python with grpcio, stubs made from the proto, and every bad request made by hand."""

import os
import threading
import unittest

import numpy as np

from harness import LIMIT_SECONDS, E2ETest, grpc, wait_until

from google.rpc import error_details_pb2, status_pb2
from google.protobuf import descriptor_pb2, descriptor_pool
from grpc.health.v1 import health_pb2, health_pb2_grpc
from grpc.reflection.v1 import reflection_pb2
from prefixd.v1 import admin_pb2, admin_pb2_grpc, primitives_pb2, primitives_pb2_grpc, types_pb2

DTYPES = {np.int8: types_pb2.DTYPE_I8, np.uint8: types_pb2.DTYPE_U8, np.int16: types_pb2.DTYPE_I16,
          np.uint16: types_pb2.DTYPE_U16,
          np.int32: types_pb2.DTYPE_I32, np.uint32: types_pb2.DTYPE_U32, np.int64: types_pb2.DTYPE_I64,
          np.uint64: types_pb2.DTYPE_U64, np.float16: types_pb2.DTYPE_F16, np.float32: types_pb2.DTYPE_F32,
          np.float64: types_pb2.DTYPE_F64}
FLOATS = (np.float16, np.float32, np.float64)


def sums(x, dtype):
    """Running sums of integers in a type; of f16 they are made in f32, and rounded once."""
    return np.cumsum(x, dtype=np.float32 if dtype == np.float16 else dtype).astype(dtype)


def scan_request(x, op=types_pb2.OP_SUM, **spec):
    request = primitives_pb2.ScanRequest()
    request.spec.dtype = DTYPES[x.dtype.type]
    request.spec.op = op
    for name, value in spec.items():
        setattr(request.spec, name, value)
    request.values.inline.data = x.tobytes()
    return request


def chunk(x, first_item=None):
    request = primitives_pb2.ScanRequest()
    request.values.inline.data = x.tobytes()
    if first_item is not None:
        request.values.inline.first_item = first_item
    return request


def reason(error):
    """The reason in the error's google.rpc.ErrorInfo; None if the error has no details."""
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            status = status_pb2.Status.FromString(value)
            assert status.code == error.code().value[0]
            info = error_details_pb2.ErrorInfo()
            assert status.details[0].Unpack(info) and info.domain == "prefixd"
            return info.reason
    return None


class ForeignClientTest(E2ETest):
    def setUp(self):
        super().setUp()
        self.channel = grpc.insecure_channel(self.server.address)
        self.addCleanup(self.channel.close)
        self.stub = primitives_pb2_grpc.PrefixServiceStub(self.channel)

    def assert_refused(self, call, code, expected_reason):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        self.assertEqual((caught.exception.code(), reason(caught.exception)), (code, expected_reason),
                         caught.exception.details())

    def assert_idle(self):
        admin = admin_pb2_grpc.AdminServiceStub(self.channel)
        wait_until(lambda: admin.GetServerInfo(admin_pb2.GetServerInfoRequest()).requests.used == 0)

    def test_unary_calls(self):
        for dtype in DTYPES:
            x = (np.arange(1000) % 100).astype(dtype)
            with self.subTest(dtype=dtype):
                reply = self.stub.Scan(scan_request(x))
                np.testing.assert_array_equal(np.frombuffer(reply.values.inline.data, dtype), sums(x, dtype))
                self.assertEqual(reply.timing.num_items, 1000)
                self.assertTrue(reply.timing.HasField("kernel_ns"))

    def test_output_types_are_what_the_server_lists(self):
        admin = admin_pb2_grpc.AdminServiceStub(self.channel)
        info = admin.GetServerInfo(admin_pb2.GetServerInfoRequest())
        listed = {(c.dtype, c.out_dtype) for c in info.capabilities if c.primitive == admin_pb2.PRIMITIVE_SCAN}
        self.assertEqual(len(listed), 25)
        for dtype, number in DTYPES.items():
            x = np.array([100, 100, 100, 7], dtype)
            for out, out_number in DTYPES.items():
                with self.subTest(dtype=dtype, out=out):
                    request = scan_request(x, out_dtype=out_number)
                    if (number, out_number) in listed:
                        data = self.stub.Scan(request).values.inline.data
                        np.testing.assert_array_equal(np.frombuffer(data, out), sums(x, out))
                    else:
                        self.assert_refused(lambda r=request: self.stub.Scan(r), grpc.StatusCode.INVALID_ARGUMENT,
                                            "UNSUPPORTED_COMBINATION")

    def test_a_stream_with_a_wider_output(self):
        x = np.random.default_rng().integers(-128, 128, 1_000_003).astype(np.int8)
        requests = [chunk(part) for part in np.array_split(x, 3)]
        requests[0].spec.CopyFrom(scan_request(x[:0], out_dtype=types_pb2.DTYPE_I64).spec)
        replies = [reply.values.inline.data for reply in self.stub.StreamScan(iter(requests))]
        self.assertLessEqual(max(map(len, replies)), 1 << 20)
        np.testing.assert_array_equal(np.frombuffer(b"".join(replies), np.int64), np.cumsum(x, dtype=np.int64))

    def test_a_stream_of_any_cut(self):
        x = np.random.default_rng().integers(-1000, 1000, 1_000_003).astype(np.int64)
        cuts = np.sort(np.random.default_rng().integers(0, len(x), 20))
        parts = np.split(x, cuts)

        def requests():
            first = 0
            for i, part in enumerate(parts):
                request = chunk(part, first)
                if i == 0:
                    request.spec.CopyFrom(scan_request(x[:0], num_items=len(x)).spec)
                first += len(part)
                yield request

        out, last = b"", None
        for reply in self.stub.StreamScan(requests()):
            self.assertLessEqual(len(reply.values.inline.data), 1 << 20)
            out += reply.values.inline.data
            last = reply
        np.testing.assert_array_equal(np.frombuffer(out, np.int64), np.cumsum(x))
        self.assertEqual(last.timing.num_items, len(x))

    def test_cuts_do_not_show_in_the_bits(self):
        rng = np.random.default_rng()
        x = rng.standard_normal(400_003).astype(np.float32)
        spec = scan_request(x[:0]).spec

        def scanned(parts):
            requests = [chunk(part) for part in parts]
            requests[0].spec.CopyFrom(spec)
            return b"".join(reply.values.inline.data for reply in self.stub.StreamScan(iter(requests)))

        whole = scanned(np.split(x, [1 << 17, 2 << 17, 3 << 17]))
        head = self.stub.Scan(scan_request(x[: 1 << 18])).values.inline.data
        self.assertEqual(whole[: len(head)], head)
        for _ in range(3):
            cuts = np.sort(rng.integers(0, len(x), 30))
            singles = np.arange(cuts[5], min(cuts[5] + 20, len(x)))
            self.assertEqual(scanned(np.split(x, np.unique(np.concatenate([cuts, singles])))), whole)

    def test_compact_by_bit_mask(self):
        x = np.arange(1001, dtype=np.float32)
        keep = np.random.default_rng().random(len(x)) < 0.3
        request = primitives_pb2.CompactRequest()
        request.spec.dtype = types_pb2.DTYPE_F32
        request.spec.mask = primitives_pb2.MASK_KIND_BITS
        request.spec.return_indices = True
        request.mask.inline.data = np.packbits(keep, bitorder="little").tobytes()
        request.values.inline.data = x.tobytes()
        reply = self.stub.Compact(request)
        np.testing.assert_array_equal(np.frombuffer(reply.values.inline.data, np.float32), x[keep])
        np.testing.assert_array_equal(np.frombuffer(reply.indices.inline.data, np.uint64), np.flatnonzero(keep))
        self.assertEqual(reply.count, keep.sum())

    def test_bad_requests(self):
        invalid, code = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode
        x = np.arange(8, dtype=np.int32)
        good = scan_request(x)
        f32 = x.astype(np.float32)
        odd = scan_request(x)
        odd.values.inline.data += b"1"
        unknown = scan_request(x)
        unknown.spec.op = 99
        missing = scan_request(x)
        missing.spec.op = 0
        resident = scan_request(x)
        resident.values.array.name = "arrays/1"
        cases = [
            ("no spec", chunk(x), invalid, "SPEC_MISSING"),
            ("op on floats", scan_request(f32, types_pb2.OP_XOR), invalid, "UNSUPPORTED_COMBINATION"),
            ("odd length", odd, invalid, "LENGTH_NOT_MULTIPLE"),
            ("count too large", scan_request(x, num_items=9), invalid, "COUNT_MISMATCH"),
            ("count too small", scan_request(x, num_items=7), invalid, "COUNT_MISMATCH"),
            ("unknown op", unknown, invalid, "UNKNOWN_ENUM"),
            ("no op", missing, invalid, "UNKNOWN_ENUM"),
            ("wide", scan_request(x, precision=types_pb2.PRECISION_WIDE), invalid, "UNSUPPORTED_COMBINATION"),
            ("log_add_exp", scan_request(x, types_pb2.OP_LOG_ADD_EXP), invalid, "UNSUPPORTED_COMBINATION"),
            ("narrower", scan_request(x, out_dtype=types_pb2.DTYPE_I16), invalid, "UNSUPPORTED_COMBINATION"),
            ("other sign", scan_request(x, out_dtype=types_pb2.DTYPE_U64), invalid, "UNSUPPORTED_COMBINATION"),
            ("unknown out dtype", scan_request(x, out_dtype=99), invalid, "UNKNOWN_ENUM"),
            ("f16 as bf16", scan_request(f32.astype(np.float16), out_dtype=types_pb2.DTYPE_BF16), invalid,
             "UNSUPPORTED_COMBINATION"),
            ("no array's name", resident, invalid, "ARRAY_NAME"),
            ("reply", scan_request(np.ones(1 << 19, dtype=np.int32)), code.OUT_OF_RANGE, "REPLY_TOO_LARGE"),
            ("wider reply", scan_request(np.ones((1 << 17) + 1, np.uint8), out_dtype=types_pb2.DTYPE_U64),
             code.OUT_OF_RANGE, "REPLY_TOO_LARGE"),
        ]
        for name, request, status_code, expected in cases:
            with self.subTest(name):
                self.assert_refused(lambda r=request: self.stub.Scan(r), status_code, expected)
        streams = [
            ("no message", [], invalid, "SPEC_MISSING"),
            ("no spec", [chunk(x)], invalid, "SPEC_MISSING"),
            ("two specs", [good, good], invalid, "SPEC_REPEATED"),
            ("order", [good, chunk(x, 16)], invalid, "CHUNK_OUT_OF_ORDER"),
            ("repeated chunk", [good, chunk(x, 0)], invalid, "CHUNK_OUT_OF_ORDER"),
            ("count", [scan_request(x, num_items=20), chunk(x)], invalid, "COUNT_MISMATCH"),
            ("reverse", [scan_request(x, reverse=True)], code.FAILED_PRECONDITION, "REVERSE_ON_STREAM"),
        ]
        for name, requests, status_code, expected in streams:
            with self.subTest(stream=name):
                self.assert_refused(lambda r=requests: list(self.stub.StreamScan(iter(r))), status_code, expected)
        self.assert_idle()

    def test_a_message_over_the_limit(self):
        request = scan_request(np.ones(2 << 20, dtype=np.int32))
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.Scan(request)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

        requests = [scan_request(np.ones(4, np.int32)), chunk(np.ones(2 << 20, dtype=np.int32))]
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.stub.StreamScan(iter(requests)))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assert_idle()

    def test_a_mask_that_is_too_short_in_mid_stream(self):
        def request(mask_bytes, first):
            message = primitives_pb2.CompactRequest()
            if first:
                message.spec.dtype = types_pb2.DTYPE_I32
                message.spec.mask = primitives_pb2.MASK_KIND_BYTES
            message.values.inline.data = np.ones(8, np.int32).tobytes()
            message.mask.inline.data = b"\1" * mask_bytes
            return message

        requests = [request(8, True), request(7, False)]
        self.assert_refused(lambda: list(self.stub.StreamCompact(iter(requests))), grpc.StatusCode.INVALID_ARGUMENT,
                            "MASK_LENGTH")

    def test_garbage_instead_of_a_message(self):
        call = self.channel.unary_unary("/prefixd.v1.PrefixService/Scan")
        for _ in range(200):
            with self.assertRaises(grpc.RpcError):
                call(os.urandom(1 + os.urandom(1)[0]))
        self.assert_refused(lambda: call(b"\xff\xff"), grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED")
        good = scan_request(np.ones(3, np.int32)).SerializeToString()
        stream = self.channel.stream_stream("/prefixd.v1.PrefixService/StreamScan")
        self.assert_refused(lambda: list(stream(iter([good, b"\xff\xff", good]))), grpc.StatusCode.INVALID_ARGUMENT,
                            "MALFORMED")
        self.assertEqual(len(self.stub.Scan(scan_request(np.ones(3, np.int32))).values.inline.data), 12)
        self.assert_idle()

    def test_a_deadline_in_mid_stream(self):
        ended = threading.Event()
        self.addCleanup(ended.set)

        def requests():
            yield scan_request(np.ones(10, np.int32))
            ended.wait(LIMIT_SECONDS)  # The stream stays open; nothing more comes.

        with self.assertRaises(grpc.RpcError) as caught:
            list(self.stub.StreamScan(requests(), timeout=0.5))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assert_idle()

    def test_reflection(self):
        def ask(version="v1", **question):
            call = self.channel.stream_stream(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo")
            request = reflection_pb2.ServerReflectionRequest(**question)
            return reflection_pb2.ServerReflectionResponse.FromString(
                next(call(iter([request.SerializeToString()]), timeout=LIMIT_SECONDS)))
        for version in ("v1", "v1alpha"):
            names = {service.name for service in ask(version, list_services="").list_services_response.service}
            self.assertEqual(names, {"prefixd.v1.PrefixService", "prefixd.v1.ArrayService",
                                     "prefixd.v1.ProgramService", "prefixd.v1.AdminService",
                                     "prefixd.v1.DiagnosticsService", "grpc.health.v1.Health",
                                     "grpc.reflection.v1.ServerReflection"})
        # What comes is enough to make every message of it, and every method that it names is served.
        pool = descriptor_pool.DescriptorPool()
        for service in names:
            files = ask(file_containing_symbol=service).file_descriptor_response.file_descriptor_proto
            for file in reversed(files):
                pool.Add(descriptor_pb2.FileDescriptorProto.FromString(file))
            for method in pool.FindServiceByName(service).methods:
                call = self.channel.stream_stream(f"/{service}/{method.name}")(iter([b"\xff"]), timeout=LIMIT_SECONDS)
                if method.name in ("Echo", "StreamEcho", "GetServerInfo"):  # They don't look into it.
                    list(call)
                    continue
                with self.assertRaises(grpc.RpcError) as raised:
                    list(call)
                self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT, method.name)
        by_name = ask(file_by_filename="prefixd/v1/types.proto").file_descriptor_response.file_descriptor_proto
        self.assertEqual(descriptor_pb2.FileDescriptorProto.FromString(by_name[0]).package, "prefixd.v1")
        for unknown in ({"file_by_filename": "no.proto"}, {"file_containing_symbol": "no.Symbol"},
                        {"all_extension_numbers_of_type": "prefixd.v1.ScanRequest"}):
            self.assertEqual(ask(**unknown).error_response.error_code, grpc.StatusCode.NOT_FOUND.value[0])
        self.assertEqual(ask().error_response.error_code, grpc.StatusCode.INVALID_ARGUMENT.value[0])

    def test_an_unknown_method_is_named(self):
        with self.assertRaises(grpc.RpcError) as raised:
            self.channel.unary_unary("/prefixd.v1.PrefixService/Sort")(b"")
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertIn("/prefixd.v1.PrefixService/Sort", raised.exception.details())

    def test_health(self):
        health = health_pb2_grpc.HealthStub(self.channel)
        serving = health_pb2.HealthCheckResponse.SERVING
        self.assertEqual(health.Check(health_pb2.HealthCheckRequest()).status, serving)
        self.assertEqual(next(health.Watch(health_pb2.HealthCheckRequest())).status, serving)
        known = health_pb2.HealthCheckRequest(service="prefixd.v1.PrefixService")
        self.assertEqual(health.Check(known).status, serving)
        unknown = health_pb2.HealthCheckRequest(service="prefixd.v1.NoService")
        with self.assertRaises(grpc.RpcError) as raised:
            health.Check(unknown)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertEqual(next(health.Watch(unknown)).status, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)


if __name__ == "__main__":
    unittest.main()
