"""Operations along an axis: what comes out is what NumPy gives, and for floats, what each row or column gives alone."""

import signal
import subprocess
import unittest

import numpy as np

from arrays_test import refusal, usage
from foreign_client_test import DTYPES, FLOATS, scan_request
from google.protobuf import json_format
from harness import BIN_DIR, INTERRUPTIBLE, Server, grpc, wait_until
from programs_test import dtype_name, program
from resident import ResidentTest, operand, place
from prefixd.v1 import primitives_pb2, programs_pb2_grpc, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
SUM, MAX = types_pb2.OP_SUM, types_pb2.OP_MAX


def difference_request(x, **spec):
    request = primitives_pb2.DifferenceRequest(values=operand(x.tobytes()))
    request.spec.dtype = DTYPES[x.dtype.type]
    for name, value in spec.items():
        setattr(request.spec, name, value)
    return request


class MatrixTest(ResidentTest):
    def matrix(self, dtype, rows, columns):
        return (self.numbers.standard_normal((rows, columns)) * 100).astype(dtype)

    def scanned(self, x, **spec):
        data = self.stub.Scan(scan_request(x, **spec), timeout=60).values.inline.data
        return np.frombuffer(data, x.dtype).reshape(x.shape)

    def reduce_request(self, x, **spec):
        request = primitives_pb2.ReduceRequest(values=operand(x.tobytes()))
        request.spec.dtype, request.spec.op = DTYPES[x.dtype.type], spec.pop("op", SUM)
        for name, value in spec.items():
            setattr(request.spec, name, value)
        return request

    def reduced(self, x, **spec):
        return np.frombuffer(self.stub.Reduce(self.reduce_request(x, **spec), timeout=60).values.inline.data, x.dtype)

    def test_scans_of_every_type_are_numpys(self):
        for dtype in DTYPES:
            for rows, columns in ((1, 1), (1, 300), (300, 1), (7, 129), (129, 7), (500, 37)):
                x = self.matrix(dtype, rows, columns)
                for axis in (0, 1):
                    with self.subTest(dtype=dtype, rows=rows, columns=columns, axis=axis, seed=self.seed):
                        got = self.scanned(x, op=MAX, axis=axis, row_items=columns)
                        np.testing.assert_array_equal(got, np.maximum.accumulate(x, axis=axis))
                        got = self.scanned(x, axis=axis, row_items=columns)
                        if dtype in FLOATS:
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

    def test_reduces_of_every_type_are_numpys(self):
        for dtype in DTYPES:
            for rows, columns in ((1, 1), (1, 300), (300, 1), (7, 129), (129, 7), (500, 37), (5000, 9), (3, 5000)):
                x = self.matrix(dtype, rows, columns)
                for axis in (0, 1):
                    with self.subTest(dtype=dtype, rows=rows, columns=columns, axis=axis, seed=self.seed):
                        got = self.reduced(x, op=MAX, axis=axis, row_items=columns)
                        np.testing.assert_array_equal(got, x.max(axis))
                        got = self.reduced(x, axis=axis, row_items=columns)
                        if dtype in FLOATS:
                            alone = x if axis == 1 else x.T
                            for one, value in list(zip(alone, got))[:40]:
                                self.assertEqual(self.scanned(np.ascontiguousarray(one))[-1], value)
                        else:
                            np.testing.assert_array_equal(got, x.sum(axis, dtype=dtype))

    def test_a_reduce_may_widen_and_begin_with_a_value(self):
        x = self.numbers.integers(-128, 128, (300, 77)).astype(np.int8)
        request = self.reduce_request(x, axis=0, row_items=77, out_dtype=types_pb2.DTYPE_I64)
        request.spec.init.int64_value = 1 << 40
        response = self.stub.Reduce(request)
        np.testing.assert_array_equal(np.frombuffer(response.values.inline.data, np.int64),
                                      x.sum(0, dtype=np.int64) + (1 << 40))
        self.assertFalse(response.HasField("value"))
        self.assertFalse(response.HasField("index"))
        self.assertEqual((response.count, response.timing.launches), (x.size, 1))

    def test_reduces_of_resident_matrices(self):
        x = self.numbers.integers(-1000, 1000, (700, 4_001)).astype(np.int32)
        name = self.arrays.upload(x)
        for axis in (0, 1):
            want = x.sum(axis, dtype=np.int32)
            request = self.reduce_request(x[:0], axis=axis, row_items=4_001)
            request.values.CopyFrom(operand(place(name)))
            got = self.stub.Reduce(request, timeout=60)  # What comes back is short, though the matrix is not.
            np.testing.assert_array_equal(np.frombuffer(got.values.inline.data, np.int32), want)
            self.assertEqual(got.count, x.size)
            request.sink.new_array.SetInParent()
            made = self.stub.Reduce(request, timeout=60).values.new_array
            self.assertEqual(made.shape, [want.size])
            np.testing.assert_array_equal(self.arrays.read(place(made.name)), want)
            # Into a part of an array that has room to spare: no more than the values are written.
            to = self.arrays.upload(np.full(5_000, -7, np.int32))
            request.sink.array.CopyFrom(place(to, 100))
            written = self.stub.Reduce(request, timeout=60).values.array
            self.assertEqual((written.first_item, written.num_items), (100, want.size))
            after = self.arrays.read(place(to))
            np.testing.assert_array_equal(after[100:100 + want.size], want)
            self.assertTrue((np.delete(after, np.s_[100:100 + want.size]) == -7).all())
            request.sink.array.CopyFrom(place(to, 4_900))
            code, reason, message = refusal(self.stub.Reduce, request)
            self.assertEqual((code, reason), (grpc.StatusCode.OUT_OF_RANGE, "SINK_TOO_SMALL"), message)
            request.sink.array.CopyFrom(place(name, 0, want.size))
            self.assertEqual(refusal(self.stub.Reduce, request)[:2], (INVALID, "OVERLAP"))
        wide = self.arrays.create(np.uint8, (1 << 20) + 1, 2).name  # Its sums have no room in a message.
        request = self.reduce_request(np.zeros(0, np.uint8), axis=1, row_items=2)
        request.values.CopyFrom(operand(place(wide)))
        code, reason, message = refusal(self.stub.Reduce, request)
        self.assertEqual((code, reason), (grpc.StatusCode.OUT_OF_RANGE, "REPLY_TOO_LARGE"), message)
        self.assertIn("let the result go into an array", message)

    def test_means_and_deviations_are_a_program(self):
        x = self.numbers.standard_normal((300, 64))
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        spec = {"op": "OP_SUM", "dtype": "DTYPE_F64", "row_items": 64, "axis": 0}
        response = stub.Run(program(
            {"x": place(self.arrays.upload(x))},
            [{"multiply": {"left": "x", "right": "x", "out": "squares"}},
             {"reduce": {"spec": spec, "values": "x", "out": "sums"}},
             {"reduce": {"spec": spec, "values": "squares", "out": "square_sums"}},
             {"reduce": {"spec": {"op": "OP_MAX", "dtype": "DTYPE_F64"}, "values": "sums", "out": "most"}}],
            ["sums", "square_sums", "most"]), timeout=60)
        sums, squares, most = (np.frombuffer(output.values.inline.data, np.float64) for output in response.outputs)
        np.testing.assert_allclose(sums, x.sum(0), rtol=0, atol=1e-12)  # They may cancel out.
        np.testing.assert_allclose(squares, (x * x).sum(0), rtol=1e-12)
        self.assertEqual(most, sums.max())
        refused = program({"x": place(self.arrays.upload(x))},
                          [{"reduce": {"spec": {**spec, "op": "OP_MAX"}, "values": "x", "out": "most",
                                       "index_out": "where"}}], ["most"])
        self.assertEqual(refusal(stub.Run, refused)[:2], (INVALID, "FIELD_CONFLICT"))

    def test_columns_without_rows_have_no_values(self):
        empty = np.zeros(0, np.int32)
        self.assertEqual(self.reduced(empty, axis=1, row_items=7).size, 0)
        code, reason, message = refusal(self.stub.Reduce, self.reduce_request(empty, axis=0, row_items=7))
        self.assertEqual((code, reason), (INVALID, "SHAPE"))
        self.assertIn("the matrix has no rows", message)

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

    def test_columns_are_not_streamed(self):
        x = np.arange(12, dtype=np.int32)
        request = scan_request(x, axis=0, row_items=3)
        code, reason, _ = refusal(lambda: list(self.stub.StreamScan(iter([request]))))
        self.assertEqual((code, reason), (grpc.StatusCode.FAILED_PRECONDITION, "AXIS_ON_STREAM"))
        request = self.reduce_request(x, axis=0, row_items=3)
        code, reason, _ = refusal(self.stub.StreamReduce, iter([request]))
        self.assertEqual((code, reason), (grpc.StatusCode.FAILED_PRECONDITION, "AXIS_ON_STREAM"))
        # What is above a piece is cut as a stream is.
        large = self.numbers.integers(-1000, 1000, (1 << 18) + 2).astype(np.int32)
        code, reason, _ = refusal(self.stub.Reduce, self.reduce_request(large, axis=0, row_items=2))
        self.assertEqual((code, reason), (grpc.StatusCode.FAILED_PRECONDITION, "AXIS_ON_STREAM"))
        np.testing.assert_array_equal(self.reduced(large, axis=1, row_items=2), large[::2] + large[1::2])
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

    def test_files_of_any_size(self):
        """What needs its whole array goes through arrays of the server, which are deleted."""
        rows, row_items = 700, 1001  # More than a message.
        x = self.numbers.integers(-1000, 1000, (rows, row_items)).astype(np.int32)
        source, result = self.folder / "x.npy", self.folder / "y.npy"
        np.save(source, x.ravel())
        raw = self.folder / "x.raw"
        raw.write_bytes(x.tobytes())
        before = usage(self.server)

        def assert_makes(want, *arguments, file=source):
            self.ctl(*arguments, file, result)
            got = np.load(result)
            self.assertEqual(got.dtype, want.dtype)
            np.testing.assert_array_equal(got, want.ravel())

        for axis in (0, 1):
            shape = ("--axis", axis, "--row-items", row_items)
            assert_makes(np.cumsum(x, axis=axis, dtype=np.int32), "scan", *shape)
            assert_makes(np.cumsum(x, axis=axis, dtype=np.int64), "scan", *shape, "--out-type", "i64")
            assert_makes(x.max(axis=axis), "reduce", "--op", "max", *shape)
            assert_makes(np.diff(x, axis=axis, prepend=np.int32(5)), "difference", "--init", "5", *shape)
            assert_makes(np.cumsum(x, axis=axis, dtype=np.int32), "scan", *shape, "--type", "i32", file=raw)
        matrix = self.folder / "matrix.npy"  # Says how long its rows are, and so does what comes out.
        np.save(matrix, x)
        for axis in (0, 1):
            self.ctl("scan", "--axis", axis, matrix, result)
            np.testing.assert_array_equal(np.load(result), np.cumsum(x, axis=axis, dtype=np.int32))
            self.ctl("difference", "--axis", axis, "--row-items", row_items, result, result)
            np.testing.assert_array_equal(np.load(result), x)
            self.ctl("reduce", "--op", "min", "--axis", axis, matrix, result)
            np.testing.assert_array_equal(np.load(result), x.min(axis=axis))
        for command in ("scan", "reduce", "difference"):
            self.assert_fails(command, matrix, says="along which --axis")
        self.assert_fails("scan", "--axis", 0, "--row-items", 7, matrix, code=2, says="has rows of 1001")
        self.assert_fails("scan", "--axis", 0, source, code=2, says="--axis needs --row-items")
        self.assert_fails("compact", "--where", "> 0", matrix, says="2 dimensions, expected one:")
        for shape, says in (((3, 2, 1), "3 dimensions, expected one or two"), ((5, 0), "a row has no elements")):
            np.save(matrix, np.zeros(shape, np.int32))
            self.assert_fails("scan", "--axis", 1, matrix, result, says=says)
        np.save(matrix, np.zeros((0, 5), np.int32))
        self.ctl("scan", "--axis", 1, matrix, result)
        self.assertEqual(np.load(result).shape, (0, 5))
        np.save(matrix, x[:3, :4])  # Small enough for a message.
        self.ctl("scan", "--axis", 0, matrix, result)
        np.testing.assert_array_equal(np.load(result), np.cumsum(x[:3, :4], axis=0, dtype=np.int32))
        back = np.cumsum(x.ravel()[::-1], dtype=np.int32)[::-1]
        assert_makes(back, "scan", "--reverse")
        assert_makes(np.append(np.int32(0), np.cumsum(x, dtype=np.int32)), "scan", "--include-initial")
        np.save(source, back)
        assert_makes(x, "difference", "--reverse")
        report = self.ctl_json("scan", "--reverse", source, result)
        self.assertEqual((report["count"], report["timing"]["num_items"]), (x.size, x.size))
        self.assertEqual(usage(self.server), before)
        self.assert_fails("scan", "--axis", 0, "--row-items", 1000, source, result, says="no whole number of rows of 1000")
        self.assert_fails("scan", "--reverse", "-", stdin=b"1\n" * 300_000, says="REVERSE_ON_STREAM")
        with Server("--max-arrays", "0") as server:
            self.assert_fails("scan", "--reverse", source, result, server=server.address, says="--max-arrays 0")
            np.save(source, back[: 1 << 18])  # A message holds it.
            self.ctl("scan", "--reverse", source, result, server=server.address)

    def test_an_interrupted_run_leaves_no_arrays(self):
        source, result = self.folder / "x.raw", self.folder / "y.raw"
        with source.open("wb") as file:
            file.truncate(1 << 30)
        before = usage(self.server)
        process = subprocess.Popen(
            [*INTERRUPTIBLE, BIN_DIR / "prefixctl", "--server", self.server.address, "scan", "--reverse", "--type", "f32",
             source, result], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(lambda: usage(self.server) != before)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 1)
        wait_until(lambda: usage(self.server) == before)  # What was on its way comes to an end first.
        self.assertEqual(list(self.folder.iterdir()), [source])


if __name__ == "__main__":
    unittest.main()
