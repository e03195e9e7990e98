"""Scans and reduces of segments: each has the values that it has alone, empty ones included, and wrong offsets are an
error."""

import functools
import unittest

import numpy as np

from arrays_test import refusal
from foreign_client_test import DTYPES, FLOATS, scan_request
from harness import grpc
from programs_test import program
from resident import ResidentTest, operand, place
from prefixd.v1 import primitives_pb2, programs_pb2_grpc, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
SUM, MAX = types_pb2.OP_SUM, types_pb2.OP_MAX


def reduce_request(x, offsets, **spec):
    return segments_request(primitives_pb2.ReduceRequest, x, offsets, **spec)


def segments_request(message, x, offsets, **spec):
    request = message(values=operand(x.tobytes()))
    if offsets is not None:
        request.segment_offsets.CopyFrom(operand(np.asarray(offsets, np.uint64).tobytes()))
    request.spec.dtype = DTYPES[x.dtype.type]
    if "op" in request.spec.DESCRIPTOR.fields_by_name:
        request.spec.op = spec.pop("op", SUM)
    for name, value in spec.items():
        setattr(request.spec, name, value)
    return request


class SegmentsTest(ResidentTest):
    def segments(self, num_items, num_segments):
        """Random offsets, many of them equal."""
        cuts = self.numbers.integers(0, num_items + 1, num_segments - 1)
        cuts[::3] = cuts[0] if cuts.size else 0
        return np.concatenate([[0], np.sort(cuts), [num_items]]).astype(np.uint64)

    def reduced(self, request, dtype):
        return np.frombuffer(self.stub.Reduce(request, timeout=60).values.inline.data, dtype)

    def test_every_type_as_alone(self):
        for dtype in DTYPES:
            for num_items, num_segments in ((1, 1), (1000, 1), (5000, 7), (20_000, 900), (100, 3000)):
                with self.subTest(dtype=dtype, num_items=num_items, num_segments=num_segments, seed=self.seed):
                    x = (self.numbers.standard_normal(num_items) * 100).astype(dtype)
                    offsets = self.segments(num_items, num_segments)
                    got = self.reduced(reduce_request(x, offsets), dtype)
                    self.assertEqual(got.size, num_segments)
                    parts = np.split(x, offsets[1:-1].astype(np.int64))
                    if dtype not in FLOATS:
                        np.testing.assert_array_equal(got, [part.sum(dtype=dtype) for part in parts])
                        continue
                    for part, value in list(zip(parts, got))[:50]:
                        scan = self.stub.Scan(scan_request(part)).values.inline.data
                        alone = np.frombuffer(scan, dtype)[-1] if part.size else dtype(0)
                        self.assertEqual(value.tobytes(), alone.tobytes())

    def scanned(self, x, offsets, **spec):
        request = segments_request(primitives_pb2.ScanRequest, x, offsets, **spec)
        return np.frombuffer(self.stub.Scan(request, timeout=60).values.inline.data, x.dtype)

    def test_scans_of_every_type_as_alone(self):
        for dtype in DTYPES:
            for num_items, num_segments in ((1, 1), (1000, 1), (5000, 7), (20_000, 50), (100, 3000)):
                for spec in ({}, {"kind": types_pb2.SCAN_KIND_EXCLUSIVE}, {"reverse": True}):
                    with self.subTest(dtype=dtype, num_items=num_items, spec=spec, seed=self.seed):
                        x = (self.numbers.standard_normal(num_items) * 100).astype(dtype)
                        offsets = self.segments(num_items, num_segments)
                        want = b""
                        for part in np.split(x, offsets[1:-1].astype(np.int64)):
                            if part.size:
                                alone = segments_request(primitives_pb2.ScanRequest, part, None, **spec)
                                want += self.stub.Scan(alone).values.inline.data
                        self.assertEqual(self.scanned(x, offsets, **spec).tobytes(), want)
        empty = np.zeros(0, np.int32)
        self.assertEqual(self.scanned(empty, [0] * 1001).size, 0)
        self.assertEqual(self.scanned(empty, [0]).size, 0)

    def test_differences_of_every_type_as_alone(self):
        for dtype in DTYPES:
            for num_items, num_segments in ((1, 1), (5000, 7), (20_000, 900), (100, 3000)):
                for spec in ({}, {"reverse": True}):
                    with self.subTest(dtype=dtype, num_items=num_items, spec=spec, seed=self.seed):
                        x = (self.numbers.standard_normal(num_items) * 100).astype(dtype)
                        offsets = self.segments(num_items, num_segments)
                        request = segments_request(primitives_pb2.DifferenceRequest, x, offsets, **spec)
                        got = self.stub.Difference(request, timeout=60).values.inline.data
                        want = x.copy()
                        for begin, end in zip(offsets[:-1].astype(int), offsets[1:].astype(int)):
                            part, of_part = x[begin:end], want[begin:end]
                            if spec:
                                of_part[:-1] -= part[1:]
                            else:
                                of_part[1:] -= part[:-1]
                        np.testing.assert_array_equal(np.frombuffer(got, dtype), want)

    def test_a_difference_undoes_a_scan(self):
        """Of resident arrays of more than a message, by offsets and by keys, by calls and as steps."""
        x = self.numbers.integers(-1000, 1000, 1_000_003).astype(np.int32)
        offsets = self.segments(x.size, 50_000)
        keys = np.repeat(np.arange(offsets.size - 1), np.diff(offsets.astype(np.int64))).astype(np.uint32)
        name, cuts, runs = self.arrays.upload(x), self.arrays.upload(offsets), self.arrays.upload(keys)
        for by in ("segment_offsets", "keys"):
            for message, call in ((primitives_pb2.ScanRequest, self.stub.Scan),
                                  (primitives_pb2.DifferenceRequest, self.stub.Difference)):
                request = segments_request(message, x[:0], None)
                request.spec.init.int64_value = 7
                request.values.CopyFrom(operand(place(name)))
                if by == "keys":
                    request.spec.key_dtype = types_pb2.DTYPE_U32
                getattr(request, by).CopyFrom(operand(place(runs if by == "keys" else cuts)))
                request.sink.new_array.SetInParent()
                made = call(request, timeout=60).values.new_array
                name = made.name
            np.testing.assert_array_equal(self.arrays.read(place(name)), x, by)
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        spec = {"dtype": "DTYPE_I32"}
        steps = [{"scan": {"spec": {**spec, "op": "OP_SUM"}, "values": "x", "segment_offsets": "cuts", "out": "sums"}},
                 {"difference": {"spec": spec, "values": "sums", "segment_offsets": "cuts", "out": "same"}},
                 {"difference": {"spec": spec, "values": "sums", "keys": "runs", "out": "as_same"}}]
        x = x[:1000]
        offsets = self.segments(x.size, 30)
        keys = np.repeat(np.arange(30), np.diff(offsets.astype(np.int64))).astype(np.int8)
        inputs = {"x": place(self.arrays.upload(x)), "cuts": place(self.arrays.upload(offsets)),
                  "runs": place(self.arrays.upload(keys))}
        response = stub.Run(program(inputs, steps, ["same", "as_same"]), timeout=60)
        for output in response.outputs:
            np.testing.assert_array_equal(np.frombuffer(output.values.inline.data, np.int32), x)

    def test_scans_of_resident_arrays(self):
        x = self.numbers.integers(-1000, 1000, 1_000_003).astype(np.int32)  # More than a message.
        offsets = self.segments(x.size, 50_000)
        want = np.concatenate([np.cumsum(part, dtype=np.int32) for part in np.split(x, offsets[1:-1].astype(np.int64))])
        name, cuts = self.arrays.upload(x), self.arrays.upload(offsets)
        request = segments_request(primitives_pb2.ScanRequest, x[:0], None)
        request.values.CopyFrom(operand(place(name)))
        request.segment_offsets.CopyFrom(operand(place(cuts)))
        self.assertEqual(refusal(self.stub.Scan, request)[1], "REPLY_TOO_LARGE")
        request.sink.new_array.SetInParent()
        made = self.stub.Scan(request, timeout=60).values.new_array
        np.testing.assert_array_equal(self.arrays.read(place(made.name)), want)
        for wrong, says in self.wrong(x.size):  # What was to be written is as it was.
            request.segment_offsets.CopyFrom(operand(place(self.arrays.upload(np.asarray(wrong, np.uint64)))))
            request.sink.array.CopyFrom(place(name))
            code, reason, message = refusal(self.stub.Scan, request)
            self.assertEqual((code, reason), (INVALID, "SEGMENT_OFFSETS"), message)
            self.assertIn(says, message)
        np.testing.assert_array_equal(self.arrays.read(place(name)), x)
        request.segment_offsets.CopyFrom(operand(place(cuts)))
        self.stub.Scan(request, timeout=60)  # In place.
        np.testing.assert_array_equal(self.arrays.read(place(name)), want)

    def test_a_scan_as_a_step_of_a_program(self):
        x = self.numbers.integers(-1000, 1000, 10_007).astype(np.int32)
        offsets = self.segments(x.size, 300)
        want = np.concatenate([np.cumsum(part, dtype=np.int64) for part in np.split(x, offsets[1:-1].astype(np.int64))])
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        step = {"scan": {"spec": {"op": "OP_SUM", "dtype": "DTYPE_I32", "out_dtype": "DTYPE_I64"}, "values": "x",
                         "segment_offsets": "cuts", "out": "sums"}}
        inputs = {"x": place(self.arrays.upload(x)), "cuts": place(self.arrays.upload(offsets))}
        response = stub.Run(program(inputs, [step], ["sums"]), timeout=60)
        np.testing.assert_array_equal(np.frombuffer(response.outputs[0].values.inline.data, np.int64), want)
        for wrong, says in self.wrong(x.size):
            inputs["cuts"] = np.asarray(wrong, np.uint64)
            code, reason, message = refusal(stub.Run, program(inputs, [step], ["sums"]))
            self.assertEqual((code, reason), (INVALID, "SEGMENT_OFFSETS"), message)
            self.assertIn(says, message)

    def test_an_empty_segment_has_init_or_the_identity(self):
        x = np.array([5, -7, 9], np.int32)
        offsets = [0, 0, 2, 2, 3, 3]
        self.assertEqual(self.reduced(reduce_request(x, offsets), np.int32).tolist(), [0, -2, 0, 9, 0])
        lowest = np.iinfo(np.int32).min
        self.assertEqual(self.reduced(reduce_request(x, offsets, op=MAX), np.int32).tolist(),
                         [lowest, 5, lowest, 9, lowest])
        request = reduce_request(x, offsets, out_dtype=types_pb2.DTYPE_I64)
        request.spec.init.int64_value = 1 << 40
        self.assertEqual((self.reduced(request, np.int64) - (1 << 40)).tolist(), [0, -2, 0, 9, 0])
        # Up to a message of elements, whatever the type of the values.
        bytes_of = np.ones(1 << 20, np.uint8)
        wide = reduce_request(bytes_of, [0, 5, bytes_of.size], out_dtype=types_pb2.DTYPE_U64)
        self.assertEqual(self.reduced(wide, np.uint64).tolist(), [5, bytes_of.size - 5])
        # No elements at all, and no segments at all.
        empty = x[:0]
        self.assertEqual(self.reduced(reduce_request(empty, [0] * 1001), np.int32).tolist(), [0] * 1000)
        self.assertEqual(self.reduced(reduce_request(empty, [0]), np.int32).size, 0)
        response = self.stub.Reduce(reduce_request(x, offsets))
        self.assertFalse(response.HasField("value"))
        self.assertEqual(response.count, 3)

    def test_offsets_of_nothing_are_checked_too(self):
        request = reduce_request(np.zeros(0, np.int32), [5])
        self.assertEqual(refusal(self.stub.Reduce, request)[:2], (INVALID, "SEGMENT_OFFSETS"))
        request.segment_offsets.CopyFrom(operand(place(self.arrays.upload(np.array([5], np.uint64)))))
        self.assertEqual(refusal(self.stub.Reduce, request)[:2], (INVALID, "SEGMENT_OFFSETS"))

    def test_very_many_empty_segments_at_one_place(self):
        x = self.numbers.integers(-1000, 1000, 5000).astype(np.int32)
        for first in (0, 1234, x.size):
            offsets = np.sort(np.concatenate([[0], np.full(200_000, first), [700, 4321, x.size]])).astype(np.uint64)
            want = np.array([part.sum(dtype=np.int32) for part in np.split(x, offsets[1:-1].astype(np.int64))])
            request = reduce_request(x, None)
            request.segment_offsets.CopyFrom(operand(place(self.arrays.upload(offsets))))
            np.testing.assert_array_equal(self.reduced(request, np.int32), want)
            scan = segments_request(primitives_pb2.ScanRequest, x, None)
            scan.segment_offsets.CopyFrom(request.segment_offsets)
            parts = [np.cumsum(part, dtype=np.int32) for part in np.split(x, np.unique(offsets)[1:-1].astype(np.int64))]
            got = np.frombuffer(self.stub.Scan(scan, timeout=60).values.inline.data, np.int32)
            np.testing.assert_array_equal(got, np.concatenate(parts))

    def test_what_comes_too_late_or_from_elsewhere_is_refused(self):
        x = np.arange(10, dtype=np.int32)
        first = segments_request(primitives_pb2.ScanRequest, x, None)
        for field in ("segment_offsets", "keys"):
            late = primitives_pb2.ScanRequest(values=operand(x.tobytes()))
            getattr(late, field).CopyFrom(operand(np.array([0, 10], np.uint64).tobytes()))
            code, reason, _ = refusal(lambda _: list(self.stub.StreamScan(iter([first, late]))), None)
            self.assertEqual((code, reason), (INVALID, "FIELD_CONFLICT"))
        moved = segments_request(primitives_pb2.ScanRequest, x, [0, 10])
        moved.segment_offsets.inline.first_item = 1
        self.assertEqual(refusal(self.stub.Scan, moved)[:2], (INVALID, "CHUNK_OUT_OF_ORDER"))

    def test_resident_arrays(self):
        x = self.numbers.integers(-1000, 1000, 1_000_003).astype(np.int32)  # More than a message.
        offsets = self.segments(x.size, 50_000)
        want = np.array([part.sum(dtype=np.int32) for part in np.split(x, offsets[1:-1].astype(np.int64))])
        name, cuts = self.arrays.upload(x), self.arrays.upload(offsets)
        for inline in (False, True):
            request = reduce_request(x[:0], offsets if inline else None)
            request.values.CopyFrom(operand(place(name)))
            if not inline:
                request.segment_offsets.CopyFrom(operand(place(cuts)))
            np.testing.assert_array_equal(self.reduced(request, np.int32), want)
            request.sink.new_array.SetInParent()
            made = self.stub.Reduce(request, timeout=60).values.new_array
            self.assertEqual(made.shape, [want.size])
            np.testing.assert_array_equal(self.arrays.read(place(made.name)), want)
            if not inline:  # Nothing is staged, so it may be a stream too.
                request.end = True
                made = self.stub.StreamReduce(iter([request]), timeout=60).values.new_array
                np.testing.assert_array_equal(self.arrays.read(place(made.name)), want)
        to = self.arrays.create(np.int32, 49_999).name
        request.sink.array.CopyFrom(place(to))
        self.assertEqual(refusal(self.stub.Reduce, request)[:2],
                         (grpc.StatusCode.OUT_OF_RANGE, "SINK_TOO_SMALL"))
        # Wrong ones in an array: what was to be written is as it was.
        before = self.arrays.read(place(to)).tobytes()
        request = reduce_request(x[:0], None)
        request.values.CopyFrom(operand(place(name)))
        for wrong, says in self.wrong(x.size):
            request.segment_offsets.CopyFrom(operand(place(self.arrays.upload(np.asarray(wrong, np.uint64)))))
            request.sink.array.CopyFrom(place(to))
            code, reason, message = refusal(self.stub.Reduce, request)
            self.assertEqual((code, reason), (INVALID, "SEGMENT_OFFSETS"), message)
            self.assertIn(says, message)
        self.assertEqual(self.arrays.read(place(to)).tobytes(), before)
        request.sink.new_array.SetInParent()
        late = np.linspace(0, x.size, 1_500_000).astype(np.uint64)  # More than are looked at at once.
        late[1_400_000] = late[1_399_999] - 1
        request.segment_offsets.CopyFrom(operand(place(self.arrays.upload(late))))
        self.assertIn("offset 1400000 is below", refusal(self.stub.Reduce, request)[2])
        request.segment_offsets.CopyFrom(operand(place(name)))  # Elements of another type.
        self.assertEqual(refusal(self.stub.Reduce, request)[:2], (INVALID, "ARRAY_TYPE"))

    def test_a_step_of_a_program(self):
        x = self.numbers.integers(-1000, 1000, 10_007).astype(np.int32)
        offsets = self.segments(x.size, 300)
        sums = np.array([part.sum(dtype=np.int64) for part in np.split(x, offsets[1:-1].astype(np.int64))])
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        step = {"reduce": {"spec": {"op": "OP_SUM", "dtype": "DTYPE_I32", "out_dtype": "DTYPE_I64"}, "values": "x",
                           "segment_offsets": "cuts", "out": "sums"}}
        most = {"reduce": {"spec": {"op": "OP_MAX", "dtype": "DTYPE_I64"}, "values": "sums", "out": "most",
                           "index_out": "where"}}
        # A scalar of an earlier step waits while the offsets are looked at.
        all_of_it = {"reduce": {"spec": {"op": "OP_SUM", "dtype": "DTYPE_I32"}, "values": "x", "out": "all"}}
        inputs = {"x": place(self.arrays.upload(x)), "cuts": place(self.arrays.upload(offsets))}
        response = stub.Run(program(inputs, [all_of_it, step, most], ["sums", "most", "where", "all"]), timeout=60)
        got = [output.values.inline.data for output in response.outputs]
        np.testing.assert_array_equal(np.frombuffer(got[0], np.int64), sums)
        self.assertEqual(np.frombuffer(got[1], np.int64), sums.max())
        self.assertEqual(np.frombuffer(got[2], np.uint64), sums.argmax())
        self.assertEqual(np.frombuffer(got[3], np.int32), x.sum(dtype=np.int32))
        for wrong, says in self.wrong(x.size):
            inputs["cuts"] = np.asarray(wrong, np.uint64)
            code, reason, message = refusal(stub.Run, program(inputs, [step], ["sums"]))
            self.assertEqual((code, reason), (INVALID, "SEGMENT_OFFSETS"), message)
            self.assertIn(says, message)
        kept = {"compact": {"spec": {"dtype": "DTYPE_U64", "predicate": {
            "comparison": "COMPARISON_GREATER", "value": {"uint64_value": 3}}}, "values": "cuts", "out": "kept"}}
        step["reduce"]["segment_offsets"] = "kept"
        self.assertEqual(refusal(stub.Run, program(inputs, [kept, step], ["sums"]))[:2], (INVALID, "PROGRAM_LENGTH"))
        step["reduce"]["segment_offsets"] = "x"
        del inputs["cuts"]
        self.assertEqual(refusal(stub.Run, program(inputs, [step], ["sums"]))[:2], (INVALID, "PROGRAM_TYPE"))

    def test_offsets_are_no_place_for_the_result(self):
        x, cuts = self.arrays.upload(np.arange(9, dtype=np.uint64)), self.arrays.upload(np.array([0, 4, 9], np.uint64))
        request = reduce_request(np.zeros(0, np.uint64), None)
        request.values.CopyFrom(operand(place(x)))
        request.segment_offsets.CopyFrom(operand(place(cuts)))
        request.sink.array.CopyFrom(place(cuts))
        self.assertEqual(refusal(self.stub.Reduce, request)[:2], (INVALID, "OVERLAP"))
        scan = segments_request(primitives_pb2.ScanRequest, np.zeros(0, np.uint64), None)
        scan.values.CopyFrom(operand(place(cuts)))  # In place would be fine, but for the offsets.
        scan.segment_offsets.CopyFrom(operand(place(cuts)))
        scan.sink.array.CopyFrom(place(cuts))
        self.assertEqual(refusal(self.stub.Scan, scan)[:2], (INVALID, "OVERLAP"))
        self.assertEqual(self.arrays.read(place(cuts)).tolist(), [0, 4, 9])
        # A program makes a copy where a result takes the place of what a step reads.
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        step = {"reduce": {"spec": {"op": "OP_SUM", "dtype": "DTYPE_U64"}, "values": "x", "segment_offsets": "cuts",
                           "out": "sums"}}
        stub.Run(program({"x": place(x), "cuts": place(cuts)}, [step], {"sums": {"array": {"name": cuts}}}), timeout=60)
        self.assertEqual(self.arrays.read(place(cuts)).tolist(), [6, 30, 9])

    @staticmethod
    def wrong(n):
        return (([0, 5, 3, n], "offset 2 is below offset 1"), ([1, n], "offset 0 is 1"), ([0, n - 1], "is 11" if n == 12
                else "the last, is"), ([0, n + 1], "the last, is"), ([5], "offset 0 is 5"),
                ([0, (1 << 64) - 1, n], "offset 2 is below offset 1"))

    def test_wrong_offsets_in_a_message(self):
        x = np.arange(12, dtype=np.int32)
        for wrong, says in (*self.wrong(12), ([], "there are no offsets"), ([0], "the last, is 0")):
            with self.subTest(wrong=wrong):
                code, reason, message = refusal(self.stub.Reduce, reduce_request(x, wrong))
                self.assertEqual((code, reason), (INVALID, "SEGMENT_OFFSETS"), message)
                self.assertIn(says, message)
        request = reduce_request(x, [0, 12])
        request.segment_offsets.inline.data += b"\0"
        self.assertIn("no whole number of u64", refusal(self.stub.Reduce, request)[2])
        request = reduce_request(x[:0], [0] * (1 << 17) + [0])
        self.assertIn("put them into an array", refusal(self.stub.Reduce, request)[2])
        request = reduce_request(x, [0, 12], axis=1, row_items=3)
        self.assertEqual(refusal(self.stub.Reduce, request)[:2], (INVALID, "FIELD_CONFLICT"))
        code, reason, _ = refusal(self.stub.StreamReduce, iter([reduce_request(x, [0, 12])]))
        self.assertEqual((code, reason), (grpc.StatusCode.FAILED_PRECONDITION, "SEGMENTS_ON_STREAM"))
        scan = functools.partial(segments_request, primitives_pb2.ScanRequest)
        for wrong, says in (*self.wrong(12), ([], "there are no offsets"), ([0], "the last, is 0")):
            code, reason, message = refusal(self.stub.Scan, scan(x, wrong))
            self.assertEqual((code, reason), (INVALID, "SEGMENT_OFFSETS"), message)
            self.assertIn(says, message)
        request = scan(x[:0], [0, 5])  # No elements either.
        self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "SEGMENT_OFFSETS"))
        request = scan(x, [0, 12], axis=1, row_items=3)
        self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "FIELD_CONFLICT"))
        request = scan(x, [0, 12])
        request.return_carry = True
        self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "FIELD_CONFLICT"))
        code, reason, _ = refusal(lambda requests: list(self.stub.StreamScan(requests)), iter([scan(x, [0, 12])]))
        self.assertEqual((code, reason), (grpc.StatusCode.FAILED_PRECONDITION, "SEGMENTS_ON_STREAM"))
        difference = functools.partial(segments_request, primitives_pb2.DifferenceRequest)
        for wrong, says in self.wrong(12):
            code, reason, message = refusal(self.stub.Difference, difference(x, wrong))
            self.assertEqual((code, reason), (INVALID, "SEGMENT_OFFSETS"), message)
            self.assertIn(says, message)
        request = difference(x, [0, 12], axis=1, row_items=3)
        self.assertEqual(refusal(self.stub.Difference, request)[:2], (INVALID, "FIELD_CONFLICT"))
        request = difference(x, [0, 12], key_dtype=types_pb2.DTYPE_I8)
        self.assertEqual(refusal(self.stub.Difference, request)[:2], (INVALID, "FIELD_CONFLICT"))
        stream = lambda requests: list(self.stub.StreamDifference(requests))
        code, reason, _ = refusal(stream, iter([difference(x, [0, 12])]))
        self.assertEqual((code, reason), (grpc.StatusCode.FAILED_PRECONDITION, "SEGMENTS_ON_STREAM"))


if __name__ == "__main__":
    unittest.main()
