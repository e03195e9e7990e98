"""Operations along an axis: what comes out is what NumPy gives, and for floats, what each row or column gives alone."""

import random
import unittest

import numpy as np

from arrays_test import refusal
from foreign_client_test import DTYPES, scan_request
from google.protobuf import json_format
from harness import E2ETest, grpc
from programs_test import dtype_name, program
from resident import Arrays, operand, place
from prefixd.v1 import primitives_pb2, programs_pb2_grpc, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
SUM, MAX = types_pb2.OP_SUM, types_pb2.OP_MAX


def difference_request(x, **spec):
    request = primitives_pb2.DifferenceRequest(values=operand(x.tobytes()))
    request.spec.dtype = DTYPES[x.dtype.type]
    for name, value in spec.items():
        setattr(request.spec, name, value)
    return request


class MatrixTest(E2ETest):
    def setUp(self):
        super().setUp()
        self.arrays = Arrays(self.server.address)
        self.addCleanup(self.arrays.channel.close)
        self.stub = self.arrays.primitives
        self.seed = random.randrange(1 << 32)
        self.numbers = np.random.default_rng(self.seed)

    def matrix(self, dtype, rows, columns):
        return (self.numbers.standard_normal((rows, columns)) * 100).astype(dtype)

    def scanned(self, x, **spec):
        data = self.stub.Scan(scan_request(x, **spec), timeout=60).values.inline.data
        return np.frombuffer(data, x.dtype).reshape(x.shape)

    def test_scans_of_every_type_are_numpys(self):
        for dtype in DTYPES:
            for rows, columns in ((1, 1), (1, 300), (300, 1), (7, 129), (129, 7), (500, 37)):
                x = self.matrix(dtype, rows, columns)
                for axis in (0, 1):
                    with self.subTest(dtype=dtype, rows=rows, columns=columns, axis=axis, seed=self.seed):
                        got = self.scanned(x, op=MAX, axis=axis, row_items=columns)
                        np.testing.assert_array_equal(got, np.maximum.accumulate(x, axis=axis))
                        got = self.scanned(x, axis=axis, row_items=columns)
                        if dtype in (np.float32, np.float64):
                            alone = x if axis == 1 else x.T
                            alone = np.stack([self.scanned(np.ascontiguousarray(one)) for one in alone[:40]])
                            got = (got if axis == 1 else got.T)[:40]
                            self.assertEqual(got.tobytes(), alone.tobytes())
                        else:
                            np.testing.assert_array_equal(got, np.cumsum(x, axis=axis, dtype=dtype))

    def test_differences_undo_scans(self):
        x = self.matrix(np.int32, 321, 123)
        for axis in (0, 1):
            for reverse in (False, True):
                fields = {"axis": axis, "row_items": 123, "reverse": reverse, "init": types_pb2.Scalar(int64_value=5)}
                init = fields.pop("init")
                request = scan_request(x, **fields)
                request.spec.init.CopyFrom(init)
                sums = self.stub.Scan(request).values.inline.data
                request = difference_request(np.frombuffer(sums, np.int32), **fields)
                request.spec.init.CopyFrom(init)
                back = self.stub.Difference(request).values.inline.data
                np.testing.assert_array_equal(np.frombuffer(back, np.int32).reshape(x.shape), x)

    def test_resident_matrices_of_any_size_stay_on_the_device(self):
        x = self.numbers.integers(-1000, 1000, (700, 4_001)).astype(np.int32)  # More than a message.
        name, to = self.arrays.upload(x), self.arrays.create(np.int32, *x.shape).name
        for axis in (0, 1):
            request = scan_request(x[:0], axis=axis, row_items=4_001)
            request.values.CopyFrom(operand(place(name)))
            request.sink.array.CopyFrom(place(to))
            self.stub.Scan(request, timeout=60)
            want = np.cumsum(x, axis=axis, dtype=np.int32)
            np.testing.assert_array_equal(self.arrays.read(place(to)).reshape(x.shape), want)
            request = difference_request(x[:0], axis=axis, row_items=4_001)
            request.values.CopyFrom(operand(place(to)))
            request.sink.new_array.SetInParent()
            made = self.stub.Difference(request, timeout=60).values.new_array
            np.testing.assert_array_equal(self.arrays.read(place(made.name)).reshape(x.shape), x)
        # In place, a part of it: the rows 100 to 199.
        request = scan_request(x[:0], axis=0, row_items=4_001)
        part = place(name, 100 * 4_001, 100 * 4_001)
        request.values.CopyFrom(operand(part))
        request.sink.array.CopyFrom(part)
        self.stub.Scan(request, timeout=60)
        x[100:200] = np.cumsum(x[100:200], axis=0, dtype=np.int32)
        np.testing.assert_array_equal(self.arrays.read(place(name)).reshape(x.shape), x)

    def test_a_summed_area_table_is_a_program_of_two_steps(self):
        x = self.numbers.integers(0, 256, (480, 640)).astype(np.uint8)
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        spec = {"op": "OP_SUM", "row_items": 640}
        wide = {**spec, "dtype": dtype_name(np.uint64)}
        response = stub.Run(program(
            {"pixels": place(self.arrays.upload(x))},
            [{"scan": {"spec": {**spec, "dtype": dtype_name(np.uint8), "out_dtype": dtype_name(np.uint64), "axis": 1},
                       "values": "pixels", "out": "rows"}},
             {"scan": {"spec": {**wide, "axis": 0}, "values": "rows", "out": "table"}},
             {"difference": {"spec": {"dtype": dtype_name(np.uint64), "axis": 0, "row_items": 640},
                             "values": "table", "out": "rows_again"}}],
            {"table": {"new_array": {}}, "rows_again": {"new_array": {}}}), timeout=60)
        got = {output.name: self.arrays.read(place(output.values.new_array.name)) for output in response.outputs}
        rows = x.cumsum(1, dtype=np.uint64)
        np.testing.assert_array_equal(got["rows_again"].reshape(x.shape), rows)
        np.testing.assert_array_equal(got["table"].reshape(x.shape), rows.cumsum(0, dtype=np.uint64))

    def test_an_empty_matrix_is_empty(self):
        for axis in (0, 1):
            self.assertEqual(self.stub.Scan(scan_request(np.zeros(0, np.int32), axis=axis, row_items=7)).values.inline.data,
                             b"")

    def test_what_is_no_matrix_is_refused(self):
        x = np.arange(12, dtype=np.int32)

        def scan(x=x, **spec):
            return refusal(self.stub.Scan, scan_request(x, **spec))

        for spec, text in (({"axis": 2, "row_items": 3}, "a matrix has no axis 2"),
                           ({"axis": 0}, "say how many elements a row has"),
                           ({"row_items": 3}, "there are row_items and no axis"),
                           ({"axis": 1, "row_items": 0}, "a row has no elements"),
                           ({"axis": 1, "row_items": 5}, "12 elements are no whole number of rows of 5"),
                           ({"axis": 0, "row_items": 24}, "12 elements are no whole number of rows of 24"),
                           ({"axis": 0, "row_items": 1 << 63}, "more than 2147483647"),
                           ({"axis": 0, "row_items": 5, "num_items": 12}, "no whole number of rows")):
            with self.subTest(spec=spec):
                code, reason, message = scan(**spec)
                self.assertEqual((code, reason), (INVALID, "SHAPE"), message)
                self.assertIn(text, message)
        code, reason, _ = refusal(self.stub.Difference, difference_request(x, axis=1, row_items=5))
        self.assertEqual((code, reason), (INVALID, "SHAPE"))
        request = scan_request(x, axis=1, row_items=3)
        request.return_carry = True
        self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "FIELD_CONFLICT"))

    def test_a_stream_has_no_axis(self):
        x = np.arange(12, dtype=np.int32)
        request = scan_request(x, axis=1, row_items=3)
        code, reason, _ = refusal(lambda: list(self.stub.StreamScan(iter([request]))))
        self.assertEqual((code, reason), (grpc.StatusCode.FAILED_PRECONDITION, "AXIS_ON_STREAM"))
        large = np.zeros(1 << 18, np.int32)  # As large as a reply may be: not a stream yet.
        self.assertEqual(len(self.stub.Scan(scan_request(large, axis=1, row_items=1 << 18)).values.inline.data), 1 << 20)

    def test_steps_need_a_length_that_is_known(self):
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        predicate = {"comparison": "COMPARISON_GREATER", "value": {"int64_value": 3}}
        kept = {"compact": {"spec": {"dtype": "DTYPE_I32", "predicate": predicate}, "values": "x", "out": "kept"}}

        def run(values, row_items, steps=()):
            scan = {"scan": {"spec": {"dtype": "DTYPE_I32", "op": "OP_SUM", "axis": 1, "row_items": row_items},
                             "values": values, "out": "sums"}}
            return refusal(stub.Run, program({"x": np.arange(12, dtype=np.int32)}, [*steps, scan], ["sums"]))

        code, reason, message = run("x", 5)
        self.assertEqual((code, reason), (INVALID, "SHAPE"), message)
        code, reason, message = run("kept", 2, [kept])
        self.assertEqual((code, reason), (INVALID, "PROGRAM_LENGTH"), message)


if __name__ == "__main__":
    unittest.main()
