"""f16 and bf16: what comes out is what f32 gives for the same numbers, rounded once, wherever they go in and however
they are cut. Arrays are of their bits here, for NumPy has no bf16."""

import collections
import itertools
import unittest

import numpy as np

from arrays_test import refusal
from harness import grpc
from programs_test import program
from resident import ResidentTest, operand, place
from prefixd.v1 import arrays_pb2, primitives_pb2, programs_pb2_grpc, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
SUM, F32, NAN = types_pb2.OP_SUM, types_pb2.DTYPE_F32, float("nan")
OPS = (SUM, types_pb2.OP_PROD, types_pb2.OP_MIN, types_pb2.OP_MAX, types_pb2.OP_LOG_ADD_EXP)
SCAN, REDUCE, COMPACT = primitives_pb2.ScanRequest, primitives_pb2.ReduceRequest, primitives_pb2.CompactRequest
EXCLUSIVE = types_pb2.SCAN_KIND_EXCLUSIVE


def f16_of(x):
    with np.errstate(over="ignore"):
        return np.where(np.isnan(x), np.uint16(0x7e00), x.astype(np.float16).view(np.uint16))


def bf16_of(x):
    """The upper half of each, rounded to nearest, ties to even."""
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), 0x7fc0, rounded).astype(np.uint16)


Half = collections.namedtuple("Half", "name dtype rounded widened")
HALVES = (Half("f16", types_pb2.DTYPE_F16, f16_of, lambda bits: bits.view(np.float16).astype(np.float32)),
          Half("bf16", types_pb2.DTYPE_BF16, bf16_of, lambda bits: (bits.astype(np.uint32) << 16).view(np.float32)))


def request_of(message, dtype, x, **fields):
    """x: bits, or f32. Fields that a spec does not have are the request's own, of which arrays are operands."""
    request = message(values=operand(x.tobytes()))
    request.spec.dtype = dtype
    if message in (SCAN, REDUCE):
        request.spec.op = fields.pop("op", SUM)
    init = fields.pop("init", None)
    if init is not None:
        request.spec.init.double_value = init
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            getattr(request, name).CopyFrom(operand(value.tobytes()))
        else:
            setattr(request.spec, name, value)
    return request


def near(half, *numbers):
    """The nearest values that there are."""
    values = half.widened(half.rounded(np.array(numbers, np.float32)))
    return values if len(numbers) > 1 else float(values[0])


class HalfFloatsTest(ResidentTest):
    def some(self, half, num_items, special=False):
        x = half.rounded(self.numbers.standard_normal(num_items).astype(np.float32))
        if special and num_items > 0:
            x[self.numbers.integers(0, num_items, 1 + num_items // 100)] = self.numbers.choice(
                half.rounded(np.array([np.inf, -np.inf, NAN, -0.0, 6e-8, 1e-40], np.float32)))
        return x

    def scanned(self, request, dtype=np.uint16):
        return np.frombuffer(self.stub.Scan(request, timeout=60).values.inline.data, dtype)

    def streamed(self, requests):
        replies = list(self.stub.StreamScan(iter(requests), timeout=60))
        return b"".join(reply.values.inline.data for reply in replies), replies[-1].carry_out

    def values(self, request, dtype=np.uint16):
        return np.frombuffer(self.stub.Reduce(request, timeout=60).values.inline.data, dtype)

    def assert_same(self, half, got, want):
        """got: bits; want: f32, to be rounded."""
        np.testing.assert_array_equal(got, half.rounded(want))

    def test_the_oracle_rounds_to_nearest(self):
        for half, ulp in zip(HALVES, (2.0**-10, 2.0**-7)):
            x = np.array([1, 1 + ulp / 2, 1 + 0.51 * ulp, 1 + 1.5 * ulp, -1 - 0.49 * ulp, 1e38, NAN], np.float32)
            back = half.widened(half.rounded(x)).tolist()
            self.assertEqual(back[:5], [1, 1, 1 + ulp, 1 + 2 * ulp, -1])
            self.assertEqual(np.isinf(back[5]), half.name == "f16")
            self.assertTrue(np.isnan(back[6]))

    def test_scans_are_those_of_f32_rounded_once(self):
        forms = ({}, {"kind": EXCLUSIVE}, {"reverse": True}, {"include_initial": True})
        for half, op, num_items in itertools.product(HALVES, OPS, (0, 1, 5, 4097, 100_003)):
            with self.subTest(half=half.name, op=op, num_items=num_items, seed=self.seed):
                for form, init in itertools.product(forms, (None, 0.1)):
                    x = self.some(half, num_items, special=num_items % 2)
                    spec = dict(form, op=op)
                    # An init is one of the output type first.
                    for out, start in (({}, init and near(half, init)), ({"out_dtype": F32}, init)):
                        got = self.scanned(request_of(SCAN, half.dtype, x, init=init, **spec, **out),
                                           np.float32 if out else np.uint16)
                        want = self.scanned(request_of(SCAN, F32, half.widened(x), init=start, **spec), np.float32)
                        if out:
                            self.assertEqual(got.tobytes(), want.tobytes())
                        else:
                            self.assert_same(half, got, want)

    def test_reduces_are_those_of_f32_rounded_once(self):
        for half, op, num_items in itertools.product(HALVES, OPS, (0, 1, 5, 4097, 100_003)):
            with self.subTest(half=half.name, op=op, num_items=num_items, seed=self.seed):
                x = self.some(half, num_items)
                got = self.stub.Reduce(request_of(REDUCE, half.dtype, x, op=op))
                as_f32 = self.stub.Reduce(request_of(REDUCE, half.dtype, x, op=op, out_dtype=F32))
                want = self.stub.Reduce(request_of(REDUCE, F32, half.widened(x), op=op))
                self.assertEqual((as_f32.value, as_f32.index), (want.value, want.index))
                self.assertEqual(got.index, want.index)
                self.assertEqual(got.value.double_value, near(half, want.value.double_value))

    def test_what_a_result_cannot_hold_is_not_lost(self):
        """Added one by one in their own type, ones would never sum up to more than 2048, or 256."""
        for half, num_items in itertools.product(HALVES, (4096, 300_000)):
            with self.subTest(half=half.name, num_items=num_items, seed=self.seed):
                ones = half.rounded(np.ones(num_items, np.float32))
                request = request_of(REDUCE, half.dtype, ones)
                total = near(half, num_items)
                self.assertEqual(self.stub.Reduce(request).value.double_value, total)
                requests = [request_of(REDUCE, half.dtype, part) for part in np.array_split(ones, 7)]
                for request in requests[1:]:
                    request.ClearField("spec")
                self.assertEqual(self.stub.StreamReduce(iter(requests)).value.double_value, total)
                requests[0].spec.out_dtype = F32
                self.assertEqual(self.stub.StreamReduce(iter(requests)).value.double_value, num_items)

    def test_cuts_do_not_show(self):
        for half, op, out in itertools.product(HALVES, (SUM, types_pb2.OP_LOG_ADD_EXP), ({}, {"out_dtype": F32})):
            with self.subTest(half=half.name, op=op, out=out, seed=self.seed):
                x = self.some(half, 250_001)
                spec = dict(out, op=op, init=0.1)
                whole = self.stub.Scan(request_of(SCAN, half.dtype, x, **spec)).values.inline.data
                cuts = np.sort(np.concatenate([[0, x.size], self.numbers.integers(0, x.size + 1, 9)]))
                requests = [request_of(SCAN, half.dtype, x[first:end], **spec)
                            for first, end in itertools.pairwise(cuts)]
                parts, carry = b"", None
                for i, request in enumerate(requests):  # Each a call of its own, that goes on where the last one ended.
                    request.return_carry = True
                    if carry is not None:
                        request.carry_in.CopyFrom(carry)
                    if i % 2 == 0:
                        part, carry = self.streamed([request])
                    else:
                        reply = self.stub.Scan(request, timeout=60)
                        part, carry = reply.values.inline.data, reply.carry_out
                    parts += part
                self.assertEqual(parts, whole)
                for request in requests[1:]:
                    request.ClearField("spec")
                    request.ClearField("carry_in")
                    request.ClearField("return_carry")
                requests[0].return_carry = False
                self.assertEqual(self.streamed(requests)[0], whole)

    def test_rows_columns_segments_and_keys(self):
        for half, axis in itertools.product(HALVES, (0, 1)):
            with self.subTest(half=half.name, axis=axis, seed=self.seed):
                x = self.some(half, 6000, special=True)
                wide, spec = half.widened(x), {"axis": axis, "row_items": 40}
                self.assert_same(half, self.scanned(request_of(SCAN, half.dtype, x, **spec)),
                                 self.scanned(request_of(SCAN, F32, wide, **spec), np.float32))
                self.assert_same(half, self.values(request_of(REDUCE, half.dtype, x, **spec)),
                                 self.values(request_of(REDUCE, F32, wide, **spec), np.float32))
        for half, op in itertools.product(HALVES, OPS):
            with self.subTest(half=half.name, op=op, seed=self.seed):
                x = self.some(half, 6000, special=True)
                wide, keys = half.widened(x), np.sort(self.numbers.integers(0, 50, 6000)).astype(np.uint8)
                for by in ({"segment_offsets": np.array([0, 10, 10, 4000, 6000], np.uint64)},
                           {"keys": keys, "key_dtype": types_pb2.DTYPE_U8}):
                    for init in (None, 2):
                        spec = dict(by, op=op, init=init)
                        self.assert_same(half, self.scanned(request_of(SCAN, half.dtype, x, **spec)),
                                         self.scanned(request_of(SCAN, F32, wide, **spec), np.float32))
                        want = self.values(request_of(REDUCE, F32, wide, **spec), np.float32)
                        self.assert_same(half, self.values(request_of(REDUCE, half.dtype, x, **spec)), want)
                        got = self.values(request_of(REDUCE, half.dtype, x, out_dtype=F32, **spec), np.float32)
                        self.assertEqual(got.tobytes(), want.tobytes())

    def test_keys_are_compared_by_their_values(self):
        for half in HALVES:
            with self.subTest(half=half.name, seed=self.seed):
                keys = half.rounded(np.array([0.0, -0.0, 1, NAN, NAN, 1, 1], np.float32))
                request = request_of(REDUCE, types_pb2.DTYPE_I32, np.ones(7, np.int32), keys=keys, key_dtype=half.dtype,
                                     return_keys=True)
                got = self.stub.Reduce(request)
                self.assertEqual(np.frombuffer(got.values.inline.data, np.int32).tolist(), [2, 1, 1, 1, 2])
                self.assertEqual(got.keys.inline.data, keys[[0, 2, 3, 4, 5]].tobytes())

    def test_compacts_and_differences(self):
        for half, num_items in itertools.product(HALVES, (0, 1, 5001)):
            with self.subTest(half=half.name, num_items=num_items, seed=self.seed):
                x = self.some(half, num_items, special=True)
                wide = half.widened(x)
                request = request_of(COMPACT, half.dtype, x, return_indices=True)
                request.spec.predicate.comparison = primitives_pb2.COMPARISON_LESS
                request.spec.predicate.value.double_value = 0.1
                kept = wide < near(half, 0.1)
                got = self.stub.Compact(request)
                self.assertEqual(got.values.inline.data, x[kept].tobytes())
                np.testing.assert_array_equal(np.frombuffer(got.indices.inline.data, np.uint64), np.flatnonzero(kept))
                request.spec.predicate.comparison = primitives_pb2.COMPARISON_IS_NAN
                request.spec.predicate.ClearField("value")
                self.assertEqual(self.stub.Compact(request).values.inline.data, x[np.isnan(wide)].tobytes())
                request = request_of(primitives_pb2.DifferenceRequest, half.dtype, x)
                got = np.frombuffer(self.stub.Difference(request).values.inline.data, np.uint16)
                with np.errstate(invalid="ignore"):
                    self.assert_same(half, got, np.diff(wide, prepend=np.float32(0)))

    # ---- Arrays that stay on the device

    def create(self, half, num_items):
        return place(self.arrays.call("CreateArray", arrays_pb2.CreateArrayRequest(
            dtype=half.dtype, shape=[num_items])).array.name)

    def upload(self, half, x):
        array = self.create(half, x.size)
        self.arrays.write(array, x)
        return array

    def read(self, name):
        return self.arrays.read(place(name)).view(np.uint16)

    def test_resident_arrays(self):
        for half in HALVES:
            with self.subTest(half=half.name, seed=self.seed):
                x = self.some(half, 1_000_003)  # More than a message.
                array = self.upload(half, x)
                self.assertEqual(self.read(array.name).tobytes(), x.tobytes())
                wide = self.arrays.upload(half.widened(x))
                made = []
                for dtype, values in ((half.dtype, array), (F32, place(wide))):
                    request = request_of(SCAN, dtype, x[:0])
                    request.values.CopyFrom(operand(values))
                    request.sink.new_array.SetInParent()
                    made.append(self.stub.Scan(request, timeout=60).values.new_array.name)
                self.assert_same(half, self.read(made[0]), self.arrays.read(place(made[1])))
                request.spec.dtype = half.dtype
                request.values.CopyFrom(operand(array))
                request.sink.array.CopyFrom(array)  # In place.
                self.stub.Scan(request, timeout=60)
                self.assertEqual(self.read(array.name).tobytes(), self.read(made[0]).tobytes())

    def test_fills(self):
        for half, num_items in itertools.product(HALVES, (1, 70_001)):
            with self.subTest(half=half.name, num_items=num_items, seed=self.seed):
                array = self.create(half, num_items)

                def filled(target=array, **content):
                    fill = arrays_pb2.Fill(**content)
                    self.arrays.call("FillArray", arrays_pb2.FillArrayRequest(array=target, fill=fill))
                    return self.arrays.read(target)

                i = np.arange(num_items, dtype=np.float32)
                self.assert_same(half, filled(value={"double_value": 0.1}).view(np.uint16), np.full_like(i, 0.1))
                self.assert_same(half, filled(value={"double_value": -NAN}).view(np.uint16), np.full_like(i, NAN))
                start, step = near(half, 3.7, 0.3)
                got = filled(iota={"start": {"double_value": 3.7}, "step": {"double_value": 0.3}}).view(np.uint16)
                self.assert_same(half, got, start + i * step)
                stream = {"seed": 17, "first": 5}
                integers = filled(place(self.arrays.create(np.uint16, num_items).name), random=stream)
                bits = 11 if half.name == "f16" else 8
                want = (integers >> (16 - bits)).astype(np.float32) / np.float32(1 << bits)
                self.assert_same(half, filled(random=stream).view(np.uint16), want)
                self.assertEqual(half.widened(half.rounded(want)).tobytes(), want.tobytes())

    def test_a_program(self):
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        for half, num_items in itertools.product(HALVES, (1, 1000, 70_001)):
            with self.subTest(half=half.name, num_items=num_items, seed=self.seed):
                name = types_pb2.DType.Name(half.dtype)
                x, y = self.some(half, num_items), self.some(half, num_items, special=True)
                double = self.numbers.standard_normal(num_items) * 100
                double[::2] = 1 + 2.0**-11 + 2.0**-40  # Two roundings would make f16's 1 of it.
                spec = {"dtype": name, "op": "OP_SUM"}
                glue = ("add", "subtract", "multiply", "divide", "minimum", "maximum")
                steps = [{kind: {"left": "x", "right": "y", "out": kind}} for kind in glue]
                steps += [{"affine": {"values": "x", "a": {"double_value": 3.1}, "b": {"double_value": 0.7},
                                      "out": "affine"}},
                          {"abs": {"values": "y", "out": "abs"}},
                          {"cast": {"values": "d", "dtype": name, "out": "narrow"}},
                          {"cast": {"values": "y", "dtype": "DTYPE_F32", "out": "wide"}},
                          {"cast": {"values": "y", "dtype": "DTYPE_I16", "out": "whole"}},
                          {"compare_arrays": {"left": "x", "comparison": "COMPARISON_LESS", "right": "y",
                                              "out": "less"}},
                          {"scan": {"spec": spec, "values": "x", "out": "sums"}},
                          {"reduce": {"spec": dict(spec, out_dtype="DTYPE_F32"), "values": "x", "out": "sum"}}]
                names = [*glue, "affine", "abs", "narrow", "wide", "whole", "less", "sums", "sum"]
                inputs = {"x": self.upload(half, x), "y": self.upload(half, y),
                          "d": place(self.arrays.upload(double))}
                response = stub.Run(program(inputs, steps, {name: {"new_array": {}} for name in names}), timeout=60)
                got = {output.name: self.arrays.read(place(output.values.new_array.name))
                       for output in response.outputs}
                a, b = half.widened(x), half.widened(y)
                factor, term = near(half, 3.1, 0.7)
                with np.errstate(all="ignore"):
                    want = {"add": a + b, "subtract": a - b, "multiply": a * b, "divide": a / b,
                            "minimum": np.minimum(a, b), "maximum": np.maximum(a, b), "affine": a * factor + term,
                            "abs": np.abs(b)}
                    whole = np.where(np.isnan(b), 0, np.clip(np.trunc(b), -32768, 32767)).astype(np.int16)
                want["sums"] = self.scanned(request_of(SCAN, F32, a), np.float32)
                for key, value in want.items():
                    bits = got[key].view(np.uint16)
                    if key in ("minimum", "maximum"):  # NumPy takes either of two zeros, so here they become +0.
                        bits, value = half.rounded(half.widened(bits) + np.float32(0)), value + np.float32(0)
                    self.assert_same(half, bits, value)
                self.assertEqual(got["wide"].tobytes(), np.where(np.isnan(b), np.float32(NAN), b).tobytes())
                self.assertEqual(got["whole"].tolist(), whole.tolist())
                self.assertEqual(got["less"].tolist(), (a < b).tolist())
                narrow = half.widened(got["narrow"].view(np.uint16))
                self.assertEqual(narrow[0], 1 + 2.0**-10 if half.name == "f16" else 1)
                self.assertEqual(got["sum"][0], want["sums"][-1])

    def test_what_is_refused(self):
        for half in HALVES:
            with self.subTest(half=half.name, seed=self.seed):
                x = self.some(half, 10)
                for fields in ({"precision": types_pb2.PRECISION_WIDE}, {"out_dtype": types_pb2.DTYPE_F64},
                               {"out_dtype": types_pb2.DTYPE_I16}, {"op": types_pb2.OP_XOR},
                               {"op": types_pb2.OP_LINEAR_RECURRENCE}):
                    self.assertEqual(refusal(self.stub.Scan, request_of(SCAN, half.dtype, x, **fields))[:2],
                                     (INVALID, "UNSUPPORTED_COMBINATION"))
                request = request_of(SCAN, half.dtype, x)
                request.values.inline.data += b"x"
                self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "LENGTH_NOT_MULTIPLE"))

    # ---- Files

    def test_files_of_numpy(self):
        x = self.numbers.standard_normal(5001).astype(np.float16)
        source, result = self.folder / "x.npy", self.folder / "y.npy"
        np.save(source, x)
        self.ctl("scan", "--init", "1.5", source, result)
        got = np.load(result)
        self.assertEqual(got.dtype, np.float16)
        wide = x.astype(np.float32)
        want = self.scanned(request_of(SCAN, F32, wide, init=1.5), np.float32)
        self.assert_same(HALVES[0], got.view(np.uint16), want)
        self.ctl("scan", "--out-type", "f32", "--init", "1.5", source, result)
        self.assertEqual(np.load(result).tobytes(), want.tobytes())
        said = float(self.ctl("reduce", source).stdout)
        total = self.stub.Reduce(request_of(REDUCE, F32, wide)).value.double_value
        self.assertEqual(np.float16(said), np.float16(total))

    def test_text_and_raw_files(self):
        for half in HALVES:
            with self.subTest(half=half.name, seed=self.seed):
                text = self.ctl("scan", "--type", half.name, "-", "-",
                                stdin=b"0.1\n0.2\n1e-3\nnan\n").stdout.decode().split()
                self.assertEqual(text[3], "nan")
                want = half.widened(half.rounded(np.array([0.1, 0.2, 1e-3], np.float32))).cumsum(dtype=np.float32)
                self.assert_same(half, half.rounded(np.array(text[:3], np.float32)), want)
                self.assertEqual(text[0], "0.1")  # As short as it may be.
                source, result = self.folder / "x.bin", self.folder / "y.bin"
                x = self.some(half, 3001)
                source.write_bytes(x.tobytes())
                self.ctl("scan", "--type", half.name, source, result)
                self.assertEqual(result.read_bytes(), self.scanned(request_of(SCAN, half.dtype, x)).tobytes())
        self.assert_fails("scan", "--type", "bf16", source, self.folder / "y.npy", says=("bf16", "--out-type f32"))
        self.ctl("scan", "--type", "bf16", "--out-type", "f32", source, self.folder / "y.npy")
        want = self.scanned(request_of(SCAN, F32, HALVES[1].widened(x)), np.float32)
        self.assertEqual(np.load(self.folder / "y.npy").tobytes(), want.tobytes())


if __name__ == "__main__":
    unittest.main()
