"""Compacts of segments and by keys: what is kept is what is kept without them, and how many of each is counted."""

import unittest

import numpy as np

import keys_test
import segments_test
from arrays_test import refusal, usage
from foreign_client_test import DTYPES
from harness import grpc
from keys_test import offsets_of
from programs_test import program
from resident import ResidentTest, operand, place
from prefixd.v1 import primitives_pb2, programs_pb2_grpc, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
BYTES, BITS = primitives_pb2.MASK_KIND_BYTES, primitives_pb2.MASK_KIND_BITS
GREATER = primitives_pb2.COMPARISON_GREATER


def compact_request(x, mask=None, kind=BYTES, offsets=None, keys=None, **spec):
    """Keeps what is above 0 where there is no mask."""
    request = primitives_pb2.CompactRequest(values=operand(x.tobytes()))
    request.spec.dtype = DTYPES[x.dtype.type]
    if mask is None:
        request.spec.predicate.comparison = GREATER
        request.spec.predicate.value.int64_value = 0
    else:
        request.spec.mask = kind
        packed = np.packbits(mask != 0, bitorder="little") if kind == BITS else mask
        request.mask.CopyFrom(operand(packed.tobytes()))
    if offsets is not None:
        request.segment_offsets.CopyFrom(operand(np.asarray(offsets, np.uint64).tobytes()))
    if keys is not None:
        request.keys.CopyFrom(operand(keys.tobytes()))
        request.spec.key_dtype = DTYPES[keys.dtype.type]
    for name, value in spec.items():
        setattr(request.spec, name, value)
    return request


def counts_of(kept, offsets):
    before = np.concatenate([[0], np.cumsum(kept)])
    return np.diff(before[np.asarray(offsets, np.int64)]).astype(np.uint64)


class CompactSegmentsTest(ResidentTest):
    segments, keys = segments_test.SegmentsTest.segments, keys_test.KeysTest.keys

    def counts(self, response):
        return np.frombuffer(response.segment_counts.inline.data, np.uint64)

    def test_every_type_and_selector(self):
        for dtype in DTYPES:
            for num_items, num_segments in ((0, 3), (1, 1), (1000, 1), (5003, 7), (20_001, 900), (100, 3000)):
                x = (self.numbers.standard_normal(num_items) * 100).astype(dtype)
                mask = self.numbers.integers(0, 3, num_items).astype(np.uint8)
                keys = self.keys(np.int16, num_items, num_segments)
                for select, kept in ((None, x > 0), (BYTES, mask != 0), (BITS, mask != 0)):
                    for spec in ({}, {"invert": True}, {"return_indices": True}, {"omit_values": True},
                                 {"return_indices": True, "index_dtype": types_pb2.DTYPE_U32}):
                        with self.subTest(dtype=dtype, num_items=num_items, num_segments=num_segments, select=select,
                                          spec=spec, seed=self.seed):
                            offsets = self.segments(num_items, num_segments)
                            chosen = ~kept if "invert" in spec else kept
                            by = (x,) if select is None else (x, mask, select)
                            got = self.stub.Compact(compact_request(*by, offsets=offsets, **spec), timeout=60)
                            np.testing.assert_array_equal(self.counts(got), counts_of(chosen, offsets))
                            alone = self.stub.Compact(compact_request(*by, **spec), timeout=60)
                            self.assertEqual(got.values, alone.values)
                            self.assertEqual(got.indices, alone.indices)
                            self.assertEqual(got.count, chosen.sum())
                            got = self.stub.Compact(compact_request(*by, keys=keys, **spec), timeout=60)
                            np.testing.assert_array_equal(self.counts(got), counts_of(chosen, offsets_of(keys)))
                            self.assertEqual(got.values, alone.values)

    def resident_request(self, x, mask=None, **names):
        request = compact_request(x[:0], None if mask is None else mask[:0])
        request.values.CopyFrom(operand(place(self.arrays.upload(x))))
        if mask is not None:
            request.mask.CopyFrom(operand(place(self.arrays.upload(mask))))
        for name, array in names.items():
            getattr(request, name).CopyFrom(operand(place(self.arrays.upload(array))))
        return request

    def test_resident_arrays(self):
        x = self.numbers.integers(-1000, 1000, 1_000_003).astype(np.int32)  # More than a message.
        mask = self.numbers.integers(0, 2, x.size).astype(np.uint8)
        offsets = self.segments(x.size, 200_000)
        keys = self.keys(np.uint16, x.size, 200_000)
        for names, cuts in (({"segment_offsets": offsets}, offsets), ({"keys": keys}, offsets_of(keys))):
            for by in (None, mask):
                with self.subTest(names=list(names), has_mask=by is not None, seed=self.seed):
                    kept = x > 0 if by is None else mask != 0
                    request = self.resident_request(x, by, **names)
                    if "keys" in names:
                        request.spec.key_dtype = types_pb2.DTYPE_U16
                    self.assertEqual(refusal(self.stub.Compact, request)[1], "REPLY_TOO_LARGE")
                    for sink in (request.values_sink, request.counts_sink):
                        sink.new_array.SetInParent()
                    made = self.stub.Compact(request, timeout=60)
                    np.testing.assert_array_equal(self.arrays.read(place(made.values.new_array.name)), x[kept])
                    want = counts_of(kept, cuts)
                    np.testing.assert_array_equal(self.arrays.read(place(made.segment_counts.new_array.name)), want)
                    room = self.arrays.create(np.uint64, want.size + 3).name
                    request.counts_sink.array.CopyFrom(place(room))
                    written = self.stub.Compact(request, timeout=60).segment_counts.array
                    self.assertEqual(written.num_items, want.size)
                    np.testing.assert_array_equal(self.arrays.read(place(room))[: want.size], want)
                    request.counts_sink.array.num_items = want.size - 1
                    self.assertEqual(refusal(self.stub.Compact, request)[:2],
                                     (grpc.StatusCode.OUT_OF_RANGE, "SINK_TOO_SMALL"))
        few = self.resident_request(x, segment_offsets=np.array([0, 7, x.size], np.uint64))
        few.values_sink.new_array.SetInParent()  # Only the counts come here.
        np.testing.assert_array_equal(self.counts(self.stub.Compact(few, timeout=60)), counts_of(x > 0, [0, 7, x.size]))

    def test_steps_of_a_program(self):
        x = self.numbers.integers(-1000, 1000, 10_007).astype(np.int32)
        keys = self.keys(np.int64, x.size, 300)
        cuts = self.segments(x.size, 400)
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        spec = {"dtype": "DTYPE_I32", "predicate": {"comparison": "COMPARISON_GREATER", "value": {"int64_value": 0}}}
        lengths = {"dtype": "DTYPE_U64", "op": "OP_SUM", "include_initial": True}
        steps = [
            {"compact": {"spec": spec, "values": "x", "segment_offsets": "cuts", "out": "kept", "counts_out": "counts"}},
            {"scan": {"spec": lengths, "values": "counts", "out": "new_cuts"}},  # The segments of what was kept.
            {"reduce": {"spec": {"dtype": "DTYPE_I32", "op": "OP_SUM"}, "values": "kept", "segment_offsets": "new_cuts",
                        "out": "sums"}},
            {"compact": {"spec": spec, "values": "x", "keys": "k", "counts_out": "runs"}},
        ]
        inputs = {"x": place(self.arrays.upload(x)), "cuts": place(self.arrays.upload(cuts)),
                  "k": place(self.arrays.upload(keys))}
        response = stub.Run(program(inputs, steps, ["counts", "sums", "runs"]), timeout=60)
        got = [output.values.inline.data for output in response.outputs]
        np.testing.assert_array_equal(np.frombuffer(got[0], np.uint64), counts_of(x > 0, cuts))
        parts = np.split(x, cuts[1:-1].astype(np.int64))
        np.testing.assert_array_equal(np.frombuffer(got[1], np.int32), [part[part > 0].sum() for part in parts])
        np.testing.assert_array_equal(np.frombuffer(got[2], np.uint64), counts_of(x > 0, offsets_of(keys)))
        # What only a compact decides is read by the next step.
        steps = [
            {"compact": {"spec": spec, "values": "x", "keys": "k", "out": "kept", "count_out": "count", "counts_out": "runs"}},
            {"scan": {"spec": {"dtype": "DTYPE_I32", "op": "OP_SUM"}, "values": "kept", "out": "sums"}},
            {"affine": {"values": "count", "b": {"int64_value": 1}, "out": "more"}},
        ]
        del inputs["cuts"]
        response = stub.Run(program(inputs, steps, ["sums", "more", "runs"]), timeout=60)
        got = [output.values.inline.data for output in response.outputs]
        np.testing.assert_array_equal(np.frombuffer(got[0], np.int32), np.cumsum(x[x > 0], dtype=np.int32))
        self.assertEqual(np.frombuffer(got[1], np.uint64).tolist(), [(x > 0).sum() + 1])
        uncounted = dict(steps[0]["compact"])
        del uncounted["counts_out"]
        self.assertEqual(refusal(stub.Run, program(inputs, [{"compact": uncounted}], ["kept", "count"]))[1],
                         "FIELD_CONFLICT")
        plain = {"compact": {"spec": spec, "values": "x", "counts_out": "runs"}}
        self.assertEqual(refusal(stub.Run, program(inputs, [plain], ["runs"]))[1], "FIELD_CONFLICT")

    def test_files(self):
        names = ("x.npy", "cuts.npy", "y.npy", "counts.npy", "indices.npy")
        source, other, result, counts, indices = (self.folder / name for name in names)
        before = usage(self.server)
        for num_items in (10, 400_003):
            x = self.numbers.integers(-1000, 1000, num_items).astype(np.int32)
            keys = self.keys(np.int16, num_items, 1 + num_items // 50)
            mask = self.numbers.integers(0, 2, num_items).astype(bool)
            np.save(source, x)
            np.save(self.folder / "mask.npy", mask)
            for what, cuts in (("--keys", keys), ("--segments", offsets_of(keys))):
                np.save(other, cuts)
                self.ctl("compact", "--where", "> 0", what, other, "--counts", counts, "--indices", indices, source, result)
                np.testing.assert_array_equal(np.load(result), x[x > 0])
                np.testing.assert_array_equal(np.load(indices), np.flatnonzero(x > 0))
                np.testing.assert_array_equal(np.load(counts), counts_of(x > 0, offsets_of(keys)))
                self.ctl("compact", "--mask", self.folder / "mask.npy", what, other, "--counts", counts, source, result)
                np.testing.assert_array_equal(np.load(result), x[mask])
                np.testing.assert_array_equal(np.load(counts), counts_of(mask, offsets_of(keys)))
        self.assertEqual(usage(self.server), before)
        self.assert_fails("compact", "--where", "> 0", "--keys", other, source, result, code=2, says="--counts")
        self.assert_fails("compact", "--where", "> 0", "--counts", counts, source, result, code=2, says="--segments")
        self.assert_fails("compact", "--where", "> 0", "--keys", other, "--counts", result, source, result, code=2,
                          says="OUTPUT and --counts are the same")
        self.assert_fails("compact", "--mask", "-", "--keys", "-", "--counts", counts, source, result, code=2,
                          says="can't both be standard input")

    def test_wrong_ones_are_an_error(self):
        x = np.arange(10, dtype=np.float32)
        for request, reason in (
            (compact_request(x, offsets=[0, 11]), "SEGMENT_OFFSETS"),
            (compact_request(x, offsets=[0, 7, 3, 10]), "SEGMENT_OFFSETS"),
            (compact_request(x, keys=np.zeros(9, np.uint8)), "KEYS_LENGTH"),
            (compact_request(x, keys=np.zeros(10, np.uint8), offsets=[0, 10]), "FIELD_CONFLICT"),
        ):
            self.assertEqual(refusal(self.stub.Compact, request)[:2], (INVALID, reason))
        request = compact_request(x)
        request.counts_sink.new_array.SetInParent()
        self.assertEqual(refusal(self.stub.Compact, request)[:2], (INVALID, "FIELD_CONFLICT"))
        call = lambda request: list(self.stub.StreamCompact(iter([request])))
        on_stream = (grpc.StatusCode.FAILED_PRECONDITION, "SEGMENTS_ON_STREAM")
        self.assertEqual(refusal(call, compact_request(x, offsets=[0, 10]))[:2], on_stream)
        # Nothing inline but the counts, which are more than a message holds: neither is there a place for them.
        offsets = np.repeat(np.array([0, 10], np.uint64), [200_000, 1])
        many = self.resident_request(np.zeros(10, np.float32), segment_offsets=offsets)
        many.values_sink.new_array.SetInParent()
        self.assertEqual(refusal(call, many)[:2], on_stream)
        self.assertEqual(refusal(self.stub.Compact, many)[1], "REPLY_TOO_LARGE")
        many.counts_sink.new_array.SetInParent()
        made = call(many)[-1].segment_counts.new_array
        self.assertEqual(self.arrays.read(place(made.name)).tolist(), [0] * 200_000)
        keyed = primitives_pb2.CompactRequest(keys=operand(np.zeros(10, np.uint8).tobytes()))
        self.assertEqual(refusal(lambda _: list(self.stub.StreamCompact(iter([many, keyed]))), None)[:2],
                         (INVALID, "FIELD_CONFLICT"))


if __name__ == "__main__":
    unittest.main()
