"""Scans and reduces by keys: elements next to each other with equal keys are a segment, with the bits that it has where
its offsets are sent."""

import unittest

import numpy as np

from arrays_test import refusal, usage
from foreign_client_test import DTYPES
from harness import grpc
from programs_test import program
from resident import ResidentTest, operand, place
from segments_test import segments_request
from prefixd.v1 import primitives_pb2, programs_pb2_grpc, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
SCAN, REDUCE = primitives_pb2.ScanRequest, primitives_pb2.ReduceRequest
NAN = float("nan")


def keys_request(message, x, keys, **spec):
    request = segments_request(message, x, None, **spec)
    request.keys.CopyFrom(operand(keys.tobytes()))
    request.spec.key_dtype = DTYPES[keys.dtype.type]
    return request


def offsets_of(keys):
    changes = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    return np.concatenate([[0], changes, [keys.size]] if keys.size else [[0]]).astype(np.uint64)


class KeysTest(ResidentTest):
    def keys(self, dtype, num_items, num_runs):
        cuts = np.sort(self.numbers.integers(0, num_items + 1, num_runs - 1))
        runs = self.numbers.integers(0, 3, num_runs)
        return np.repeat(runs, np.diff(np.concatenate([[0], cuts, [num_items]]))).astype(dtype)

    def test_every_type_of_keys_as_by_offsets(self):
        for dtype in DTYPES:
            for num_items, num_runs in ((0, 1), (1, 1), (1000, 1), (5003, 7), (20_001, 900), (3000, 9000)):
                with self.subTest(dtype=dtype, num_items=num_items, num_runs=num_runs, seed=self.seed):
                    x = (self.numbers.standard_normal(num_items) * 100).astype(np.float32)
                    keys = self.keys(dtype, num_items, num_runs)
                    offsets = offsets_of(keys)
                    for spec in ({}, {"op": types_pb2.OP_MAX}, {"reverse": True}):
                        want = self.stub.Scan(segments_request(SCAN, x, offsets, **spec)).values.inline.data
                        got = self.stub.Scan(keys_request(SCAN, x, keys, **spec), timeout=60).values.inline.data
                        self.assertEqual(got, want)
                    want = self.stub.Reduce(segments_request(REDUCE, x, offsets)).values.inline.data
                    got = self.stub.Reduce(keys_request(REDUCE, x, keys, return_keys=True), timeout=60)
                    self.assertEqual(got.values.inline.data, want)
                    self.assertEqual(got.count, num_items)
                    runs = np.frombuffer(got.keys.inline.data, dtype)
                    np.testing.assert_array_equal(runs, keys[offsets[:-1].astype(np.int64)])
                    self.assertFalse(self.stub.Reduce(keys_request(REDUCE, x, keys)).keys.inline.data)

    def test_every_type_of_values(self):
        for dtype in DTYPES:
            with self.subTest(dtype=dtype, seed=self.seed):
                x = (self.numbers.standard_normal(9001) * 100).astype(dtype)
                keys = self.keys(np.int16, x.size, 300)
                for message, call in ((SCAN, self.stub.Scan), (REDUCE, self.stub.Reduce)):
                    want = call(segments_request(message, x, offsets_of(keys))).values.inline.data
                    self.assertEqual(call(keys_request(message, x, keys)).values.inline.data, want)

    def test_equal_is_what_ieee_says(self):
        keys = np.array([0.0, -0.0, 1, NAN, NAN, 1, 1], np.float64)
        got = self.stub.Reduce(keys_request(REDUCE, np.ones(7, np.int32), keys, return_keys=True))
        np.testing.assert_array_equal(np.frombuffer(got.values.inline.data, np.int32), [2, 1, 1, 1, 2])
        runs = np.frombuffer(got.keys.inline.data, np.float64)
        np.testing.assert_array_equal(runs, [0, 1, NAN, NAN, 1])

    def test_resident_arrays(self):
        x = self.numbers.integers(-1000, 1000, 1_000_003).astype(np.int32)  # More than a message.
        keys = self.keys(np.uint16, x.size, 50_000)
        offsets = offsets_of(keys)
        cuts = offsets[1:-1].astype(np.int64)
        values, names = place(self.arrays.upload(x)), place(self.arrays.upload(keys))

        def resident(message, **spec):
            request = segments_request(message, x[:0], None, **spec)
            request.values.CopyFrom(operand(values))
            request.keys.CopyFrom(operand(names))
            request.spec.key_dtype = types_pb2.DTYPE_U16
            return request

        reduce = resident(REDUCE, return_keys=True)
        self.assertEqual(refusal(self.stub.Reduce, reduce)[1], "REPLY_TOO_LARGE")
        reduce.sink.new_array.SetInParent()
        reduce.keys_sink.new_array.SetInParent()
        made = self.stub.Reduce(reduce, timeout=60)
        sums = np.add.reduceat(x, offsets[:-1].astype(np.int64), dtype=np.int32)
        np.testing.assert_array_equal(self.arrays.read(place(made.values.new_array.name)), sums)
        np.testing.assert_array_equal(self.arrays.read(place(made.keys.new_array.name)), keys[offsets[:-1].astype(int)])
        # A slice with more room keeps the rest; one with less is not enough.
        room = np.full(sums.size + 5, 7, np.int32)
        name = self.arrays.upload(room)
        reduce = resident(REDUCE)
        reduce.sink.array.CopyFrom(place(name))
        written = self.stub.Reduce(reduce, timeout=60).values.array
        self.assertEqual(written.num_items, sums.size)
        room[: sums.size] = sums
        np.testing.assert_array_equal(self.arrays.read(place(name)), room)
        reduce.sink.array.num_items = sums.size - 1
        code, reason, message = refusal(self.stub.Reduce, reduce)
        self.assertEqual((code, reason), (grpc.StatusCode.OUT_OF_RANGE, "SINK_TOO_SMALL"), message)

        scan = resident(SCAN)
        scan.sink.array.CopyFrom(values)  # In place.
        self.stub.Scan(scan, timeout=60)
        want = np.concatenate([np.cumsum(part, dtype=np.int32) for part in np.split(x, cuts)])
        np.testing.assert_array_equal(self.arrays.read(values), want)

    def test_steps_of_a_program(self):
        x = self.numbers.integers(-1000, 1000, 10_007).astype(np.int32)
        keys = self.keys(np.int64, x.size, 300)
        offsets = offsets_of(keys)
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        spec = {"op": "OP_SUM", "dtype": "DTYPE_I32", "out_dtype": "DTYPE_I64"}
        steps = [
            {"scan": {"spec": spec, "values": "x", "keys": "k", "out": "sums"}},
            {"reduce": {"spec": spec, "values": "x", "keys": "k", "out": "totals", "keys_out": "runs"}},
            {"add": {"left": "totals", "right": "runs", "out": "both"}},  # As long as each other.
            {"reduce": {"spec": dict(spec, dtype="DTYPE_I64"), "values": "both", "out": "all"}},
        ]
        inputs = {"x": place(self.arrays.upload(x)), "k": place(self.arrays.upload(keys))}
        response = stub.Run(program(inputs, steps, ["sums", "totals", "runs", "all"]), timeout=60)
        got = [np.frombuffer(output.values.inline.data, np.int64) for output in response.outputs]
        parts = np.split(x, offsets[1:-1].astype(np.int64))
        runs = keys[offsets[:-1].astype(np.int64)]
        totals = np.array([part.sum(dtype=np.int64) for part in parts])
        np.testing.assert_array_equal(got[0], np.concatenate([np.cumsum(part, dtype=np.int64) for part in parts]))
        np.testing.assert_array_equal(got[1], totals)
        np.testing.assert_array_equal(got[2], runs)
        np.testing.assert_array_equal(got[3], [(totals + runs).sum()])
        wrong = dict(steps[0]["scan"], segment_offsets="k")
        self.assertEqual(refusal(stub.Run, program(inputs, [{"scan": wrong}], ["sums"]))[1], "FIELD_CONFLICT")
        inputs["k"] = place(self.arrays.upload(keys[1:]))
        self.assertEqual(refusal(stub.Run, program(inputs, steps[:1], ["sums"]))[1], "PROGRAM_LENGTH")

    def test_files(self):
        """Through arrays of the server, which are deleted."""
        source, other, result, runs = (self.folder / name for name in ("x.npy", "k.npy", "y.npy", "runs.npy"))
        before = usage(self.server)
        for num_items in (10, 400_003):
            x = self.numbers.integers(-1000, 1000, num_items).astype(np.int32)
            keys = self.keys(np.int16, num_items, 1 + num_items // 50)
            offsets = offsets_of(keys)
            starts = offsets[:-1].astype(np.int64)
            parts = np.split(x, starts[1:])
            np.save(source, x)
            sums = np.add.reduceat(x, starts, dtype=np.int64)
            for what, cuts in (("--keys", keys), ("--segments", offsets)):
                np.save(other, cuts)
                self.ctl("scan", what, other, source, result)
                np.testing.assert_array_equal(np.load(result),
                                              np.concatenate([np.cumsum(part, dtype=np.int32) for part in parts]))
                self.ctl("difference", what, other, result, runs)
                np.testing.assert_array_equal(np.load(runs), x)
                self.ctl("reduce", "--out-type", "i64", what, other, source, result)
                np.testing.assert_array_equal(np.load(result), sums)
            np.save(other, keys)
            self.ctl("reduce", "--keys", other, "--keys-output", runs, source, result)
            np.testing.assert_array_equal(np.load(runs), keys[starts])
        text = self.folder / "k.txt"
        text.write_text("7\n7\n9\n")
        done = self.ctl("reduce", "--type", "i32", "--keys", text, "--key-type", "u8", "--keys-output", runs, "-",
                        stdin=b"1\n2\n3\n")
        self.assertEqual(done.stdout, b"3\n3\n")
        self.assertEqual(np.load(runs).tolist(), [7, 9])
        text.write_text("0\n2\n2\n3\n")
        done = self.ctl("reduce", "--type", "i32", "--segments", text, "--init", "10", "-", stdin=b"1\n2\n3\n")
        self.assertEqual(done.stdout, b"13\n10\n13\n")
        self.assertEqual(usage(self.server), before)
        self.assert_fails("scan", "--keys", other, "--segments", text, source, code=2, says="excludes")
        self.assert_fails("scan", "--key-type", "u8", source, code=2, says="there are none")
        self.assert_fails("scan", "--keys", "-", "--type", "i32", "-", code=2, says="can't both be standard input")
        self.assert_fails("reduce", "--keys-output", runs, source, code=2, says="there are no --keys")
        self.assert_fails("reduce", "--keys", other, "--keys-output", result, source, result, code=2, says="are the same")
        self.assert_fails("--json", "reduce", "--keys", other, "--keys-output", "-", source, result, code=2, says="--json")
        self.assert_fails("scan", "--segments", text, "--axis", 1, "--row-items", 1, source, code=2, says="leave one out")
        np.save(other, keys[1:])
        self.assert_fails("scan", "--keys", other, source, result, says="400002 keys for 400003 elements")
        self.assert_fails("scan", "--segments", text, source, result, says="the last, is 3")
        self.assert_fails("difference", "--segments", text, source, result, says="the last, is 3")
        self.assert_fails("scan", "--keys", self.folder / "none.npy", source, says="none.npy")

    def test_wrong_ones_are_an_error(self):
        x, keys = np.arange(10, dtype=np.float32), np.zeros(10, np.int32)

        def refused(change, message=REDUCE, **spec):
            request = keys_request(message, x, keys, **spec)
            change(request)
            call = self.stub.Scan if message is SCAN else self.stub.Reduce
            return refusal(call, request)[:2]

        for change, reason in (
            (lambda r: r.keys.CopyFrom(operand(keys[1:].tobytes())), "KEYS_LENGTH"),
            (lambda r: r.keys.CopyFrom(operand(b"1234567")), "KEYS_LENGTH"),
            (lambda r: r.keys.CopyFrom(operand(place(self.arrays.upload(keys[1:])))), "KEYS_LENGTH"),
            (lambda r: r.keys.CopyFrom(operand(place(self.arrays.upload(x)))), "ARRAY_TYPE"),
            (lambda r: r.values.CopyFrom(operand(place(self.arrays.upload(x)))), "FIELD_CONFLICT"),
            (lambda r: setattr(r.spec, "key_dtype", 0), "UNKNOWN_ENUM"),
            (lambda r: r.ClearField("keys"), "FIELD_CONFLICT"),
            (lambda r: r.segment_offsets.CopyFrom(operand(np.array([0, 10], np.uint64).tobytes())), "FIELD_CONFLICT"),
            (lambda r: (setattr(r.spec, "axis", 1), setattr(r.spec, "row_items", 10)), "FIELD_CONFLICT"),
        ):
            self.assertEqual(refused(change), (INVALID, reason))
            self.assertEqual(refused(change, SCAN), (INVALID, reason))
        self.assertEqual(refused(lambda r: r.keys_sink.new_array.SetInParent()), (INVALID, "FIELD_CONFLICT"))
        self.assertEqual(refused(lambda r: setattr(r, "return_carry", True), SCAN), (INVALID, "FIELD_CONFLICT"))
        for stream, message in ((self.stub.StreamScan, SCAN), (self.stub.StreamReduce, REDUCE)):
            with self.assertRaises(grpc.RpcError) as caught:
                list(stream(iter([keys_request(message, x, keys)])))
            self.assertEqual(caught.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
        many = np.zeros(200_000, np.uint8)
        request = keys_request(SCAN, many, np.zeros(many.size, np.int64))
        self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "KEYS_LENGTH"))


if __name__ == "__main__":
    unittest.main()
