"""Sums in more precision than their elements', and sums of exponentials: two things that floats are summed for."""

import itertools
import math
import unittest

import numpy as np

from arrays_test import refusal
from foreign_client_test import DTYPES, scan_request
from harness import grpc
from programs_test import program
from resident import ResidentTest, operand, place
from prefixd.v1 import primitives_pb2, programs_pb2_grpc, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
WIDE = types_pb2.PRECISION_WIDE
LOG_ADD_EXP = types_pb2.OP_LOG_ADD_EXP
FLOATS = (np.float32, np.float64)


def wide(x, **spec):
    return scan_request(x, precision=WIDE, **spec)



class WideSumsTest(ResidentTest):
    def some(self, dtype, num_items):
        """Their sum is small beside what rounding to their type would lose."""
        x = self.numbers.standard_normal(num_items) * np.exp2(self.numbers.integers(-20, 20, num_items))
        x[num_items // 2:2 * (num_items // 2)] = -x[:num_items // 2] * (1 + 2e-7)
        return x.astype(dtype)

    def assert_sum(self, got, x):
        """That `got` is the sum of x as kernels/NUMERICS.md promises it: half an ulp off, and k roundings more."""
        off = abs(math.fsum(np.append(x, -got).astype(np.float64)))  # Exact, and rounded once.
        lost = (21 + math.ceil(x.size / 131_072)) * 2.0**-53
        magnitudes = math.fsum(np.abs(x).astype(np.float64))
        half_ulp = float(np.spacing(np.abs(got))) / 2
        self.assertLessEqual(off, half_ulp * (1 + 2.0**-20) + magnitudes * (lost if x.dtype == np.float32 else lost**2))

    def scanned(self, request, dtype):
        return np.frombuffer(self.stub.Scan(request, timeout=60).values.inline.data, dtype)

    def streamed(self, requests, dtype):
        replies = list(self.stub.StreamScan(iter(requests), timeout=60))
        return np.frombuffer(b"".join(reply.values.inline.data for reply in replies), dtype), replies[-1].carry_out

    def reduce_request(self, x, **spec):
        request = primitives_pb2.ReduceRequest(values=operand(x.tobytes()))
        request.spec.CopyFrom(primitives_pb2.ReduceSpec(dtype=DTYPES[x.dtype.type], op=types_pb2.OP_SUM, **spec))
        return request

    def test_next_to_the_exact_sum(self):
        for dtype, num_items in itertools.product(FLOATS, (0, 1, 2, 100, 5001, 100_003)):
            with self.subTest(dtype=dtype, num_items=num_items, seed=self.seed):
                x = self.some(dtype, num_items)
                self.assert_sum(dtype(self.stub.Reduce(self.reduce_request(x, precision=WIDE)).value.double_value), x)
                if num_items > 0:
                    got = self.scanned(wide(x), dtype)
                    for i in (0, num_items // 3, num_items - 1):
                        self.assert_sum(got[i], x[:i + 1])
                    self.assert_sum(self.scanned(wide(x, reverse=True), dtype)[0], x)

    def test_cuts_do_not_show(self):
        for dtype in FLOATS:
            x = self.some(dtype, 300_001)
            cuts = np.sort(np.concatenate([[0, x.size], self.numbers.integers(0, x.size + 1, 5)]))
            with self.subTest(dtype=dtype, cuts=cuts, seed=self.seed):
                whole, _ = self.streamed([wide(x[:131_072])] + self.rest(x, [131_072, 262_144, x.size]), dtype)
                self.assert_sum(whole[-1], x)
                got, _ = self.streamed([wide(x[:cuts[1]])] + self.rest(x, cuts[1:]), dtype)
                self.assertEqual(got.tobytes(), whole.tobytes())
                # In parts, whose carry is what the sums are made in.
                parts, carry = b"", None
                for first, end in itertools.pairwise(cuts):
                    request = wide(x[first:end])
                    request.return_carry = True
                    if carry is not None:
                        request.carry_in.CopyFrom(carry)
                    part, carry = self.streamed([request], dtype)
                    parts += part.tobytes()
                self.assertEqual(parts, whole.tobytes())
                native = scan_request(x[:1])
                native.carry_in.CopyFrom(carry)
                self.assertEqual(refusal(self.stub.Scan, native)[:2], (INVALID, "CARRY"))

    def rest(self, x, cuts):
        requests = []
        for first, end in itertools.pairwise(cuts):
            request = scan_request(x[first:end])
            request.ClearField("spec")
            requests.append(request)
        return requests

    def test_initial_values_rows_and_segments(self):
        for dtype in FLOATS:
            x = self.some(dtype, 6000)
            with self.subTest(dtype=dtype, seed=self.seed):
                request = wide(x, axis=1, row_items=300)
                request.spec.init.double_value = 2.0**-30
                got = self.scanned(request, dtype)
                sums = self.reduce_request(x, precision=WIDE)
                sums.segment_offsets.CopyFrom(operand(np.array([0, 10, 10, 4000, 6000], np.uint64).tobytes()))
                reply = self.stub.Reduce(sums, timeout=60)
                for value, part in zip(np.frombuffer(reply.values.inline.data, dtype),
                                       (x[:10], x[:0], x[10:4000], x[4000:]), strict=True):
                    self.assert_sum(value, part)
                for row in range(20):
                    part = x[300 * row:300 * (row + 1)]
                    self.assert_sum(got[300 * row + 299], np.append(part, dtype(2.0**-30)))

    def test_columns_have_the_bits_of_arrays(self):
        for dtype, (rows, columns) in itertools.product(FLOATS, ((300, 20), (5000, 3), (1, 7), (6, 1))):
            x = self.some(dtype, rows * columns).reshape(rows, columns)
            with self.subTest(dtype=dtype, rows=rows, columns=columns, seed=self.seed):
                reverse = bool(self.numbers.random() < 0.5)
                request = wide(x, axis=0, row_items=columns, reverse=reverse)
                request.spec.init.double_value = 2.0**-30
                got = self.scanned(request, dtype).reshape(rows, columns)
                sums = self.reduce_request(x, precision=WIDE, axis=0, row_items=columns)
                values = np.frombuffer(self.stub.Reduce(sums, timeout=60).values.inline.data, dtype)
                for column in range(columns):
                    alone = np.ascontiguousarray(x[:, column])
                    request = wide(alone, reverse=reverse)
                    request.spec.init.double_value = 2.0**-30
                    self.assertEqual(got[:, column].tobytes(), self.scanned(request, dtype).tobytes(), column)
                    self.assert_sum(values[column], alone)

    def test_initial_values_in_front(self):
        for dtype, num_items, reverse in itertools.product(FLOATS, (0, 1, 5000), (False, True)):
            with self.subTest(dtype=dtype, num_items=num_items, reverse=reverse, seed=self.seed):
                x = self.some(dtype, num_items)
                request = wide(x, include_initial=True, reverse=reverse)
                request.spec.init.double_value = 2.0**-30
                got = self.scanned(request, dtype)
                request.spec.include_initial, request.spec.kind = False, types_pb2.SCAN_KIND_EXCLUSIVE
                exclusive = self.scanned(request, dtype)
                first, rest = (got[-1], got[:-1]) if not reverse else (got[0], got[1:])
                self.assertEqual(rest.tobytes(), exclusive.tobytes())
                self.assert_sum(first, np.append(x, dtype(2.0**-30)))

    def test_resident_arrays_and_programs(self):
        x = self.some(np.float64, 1_000_003)
        name = place(self.arrays.upload(x))
        request = wide(x[:0])
        request.values.CopyFrom(operand(name))
        request.sink.new_array.SetInParent()
        made = self.stub.Scan(request, timeout=60).values.new_array
        self.assert_sum(self.arrays.read(place(made.name))[-1], x)
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        spec = {"op": "OP_SUM", "dtype": "DTYPE_F64", "precision": "PRECISION_WIDE"}
        steps = [{"scan": {"spec": spec, "values": "x", "out": "sums"}},
                 {"reduce": {"spec": spec, "values": "x", "out": "sum"}}]
        part = place(name.name, 0, 100_000)
        sums, value = (np.frombuffer(output.values.inline.data, np.float64) for output in stub.Run(
            program({"x": part}, steps, ["sums", "sum"]), timeout=60).outputs)
        self.assert_sum(sums[-1], x[:100_000])
        self.assertEqual(value.tolist(), [sums[-1]])
        steps[1]["reduce"]["spec"] = dict(spec, op="OP_PROD")
        self.assertEqual(refusal(stub.Run, program({"x": name}, steps, ["sum"]))[1], "UNSUPPORTED_COMBINATION")

    def test_what_is_refused(self):
        x = np.arange(10, dtype=np.float32)
        for request, reason in ((wide(x.astype(np.int32)), "UNSUPPORTED_COMBINATION"),
                                (wide(x, op=types_pb2.OP_MAX), "UNSUPPORTED_COMBINATION"),
                                (wide(x, out_dtype=types_pb2.DTYPE_F64), "UNSUPPORTED_COMBINATION")):
            self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, reason))

    def test_files(self):
        x = np.array([1e16, 1, -1e16, 2.0**-60], np.float64)
        source, result = self.folder / "x.npy", self.folder / "y.npy"
        np.save(source, x)
        self.ctl("scan", "--precision", "wide", source, result)
        self.assertEqual(np.load(result).tolist(), [1e16, 1e16, 1, 1])
        self.assertEqual(self.ctl("reduce", "--precision", "wide", source).stdout.strip(), b"1")
        np.save(source, np.stack([x, x], axis=1))
        self.ctl("scan", "--precision", "wide", "--axis", 0, source, result)
        self.assertEqual(np.load(result).T.tolist(), [[1e16, 1e16, 1, 1]] * 2)
        self.ctl("reduce", "--precision", "wide", "--axis", 0, source, result)
        self.assertEqual(np.load(result).tolist(), [1, 1])
        np.save(source, x)
        self.assert_fails("reduce", "--precision", "wide", "--op", "max", source, says="sums of f32 and f64")


class LogAddExpTest(ResidentTest):
    def test_as_numpy(self):
        for dtype, num_items in itertools.product(FLOATS, (1, 5, 129, 5000)):
            x = (self.numbers.standard_normal(num_items) * 30).astype(dtype)
            x[num_items // 2:num_items // 2 + 1] = -np.inf
            want = np.logaddexp.accumulate(x.astype(np.float64))
            tolerance = 64 * np.finfo(dtype).eps * (1 + np.abs(want))
            with self.subTest(dtype=dtype, num_items=num_items, seed=self.seed):
                got = np.frombuffer(self.stub.Scan(scan_request(x, LOG_ADD_EXP)).values.inline.data, dtype)
                self.assertTrue((np.abs(got - want) <= tolerance)[want > -np.inf].all())
                self.assertAlmostEqual(got[0], x[0], delta=tolerance[0])
                request = primitives_pb2.ReduceRequest(values=operand(x.tobytes()))
                request.spec.dtype, request.spec.op = DTYPES[dtype], LOG_ADD_EXP
                self.assertEqual(self.stub.Reduce(request).value.double_value, got[-1])
                request.values.inline.data = b""
                self.assertEqual(self.stub.Reduce(request).value.double_value, -np.inf)

    def test_files(self):
        source = self.folder / "x.npy"
        np.save(source, np.array([1000, 1000, -np.inf], np.float64))
        got = float(self.ctl("reduce", "--op", "log_add_exp", source).stdout)
        self.assertAlmostEqual(got, 1000 + math.log(2), delta=1e-12)


if __name__ == "__main__":
    unittest.main()
