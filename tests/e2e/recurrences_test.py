"""Scans by a linear recurrence: whole, in chunks, in parts, of resident arrays, in programs and from files."""

import itertools
import unittest

import numpy as np

from arrays_test import refusal
from foreign_client_test import DTYPES
from harness import Server, grpc
from programs_test import program
from resident import ResidentTest, operand, place
from prefixd.v1 import primitives_pb2, programs_pb2_grpc, types_pb2

INVALID, UNIMPLEMENTED = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED
EXCLUSIVE = types_pb2.SCAN_KIND_EXCLUSIVE
GROUP = 131_072


def request_of(values, coefficients=None, coefficient=None, init=None, **spec):
    """values and coefficients: numpy arrays, or places of resident ones of spec's dtype."""
    dtype = spec.pop("dtype", None) or DTYPES[values.dtype.type]
    request = primitives_pb2.ScanRequest(
        spec=primitives_pb2.ScanSpec(dtype=dtype, op=types_pb2.OP_LINEAR_RECURRENCE, **spec))
    for field, items in ((request.values, values), (request.coefficients, coefficients)):
        if items is not None:
            field.CopyFrom(operand(items.tobytes() if isinstance(items, np.ndarray) else items))
    for field, number in (("coefficient", coefficient), ("init", init)):
        if number is not None:
            getattr(request.spec, field).double_value = number
    return request


def recurrence(coefficients, values, init, exclusive=False, reverse=False):
    """By a loop, in f64."""
    if reverse:
        return recurrence(coefficients[::-1], values[::-1], init, exclusive)[::-1]
    y, out = init, []
    for a, b in zip(coefficients.astype(np.float64), values.astype(np.float64)):
        before, y = y, a * y + b
        out.append(before if exclusive else y)
    return np.array(out)


class RecurrencesTest(ResidentTest):
    def some(self, dtype, num_items):
        """Coefficients and values."""
        return (self.numbers.uniform(-1, 1, num_items).astype(dtype),
                self.numbers.standard_normal(num_items).astype(dtype))

    def scanned(self, request):
        dtype = np.float32 if request.spec.dtype == types_pb2.DTYPE_F32 else np.float64
        return np.frombuffer(self.stub.Scan(request, timeout=60).values.inline.data, dtype)

    def streamed(self, requests):
        return b"".join(reply.values.inline.data for reply in self.stub.StreamScan(iter(requests), timeout=60))

    def test_what_a_loop_makes(self):
        for dtype, has_one, exclusive, reverse in itertools.product((np.float32, np.float64), *[(False, True)] * 3):
            for num_items in (0, 1, 5, 129, 5000):
                with self.subTest(dtype=dtype, has_one=has_one, exclusive=exclusive, reverse=reverse, n=num_items,
                                  seed=self.seed):
                    a, b = self.some(dtype, num_items)
                    if has_one:
                        a[:] = 0.75
                    given = {"coefficient": 0.75} if has_one else {"coefficients": a}
                    kind = EXCLUSIVE if exclusive else types_pb2.SCAN_KIND_INCLUSIVE
                    got = self.scanned(request_of(b, **given, init=2, kind=kind, reverse=reverse))
                    np.testing.assert_allclose(got, recurrence(a, b, 2, exclusive, reverse), rtol=0,
                                               atol=1e-4 if dtype == np.float32 else 1e-12)

    def test_without_a_state_the_first_coefficient_does_not_count(self):
        a, b = np.array([np.nan, 0.5, 2], np.float64), np.array([1, 2, -0.0])
        self.assertEqual(self.scanned(request_of(b, a)).tolist(), [1, 2.5, 5])
        self.assertEqual(self.scanned(request_of(b, np.array([np.inf, 0.5, 2]))).tolist(), [1, 2.5, 5])
        exclusive = self.scanned(request_of(b, np.array([3., 0.5, 2]), kind=EXCLUSIVE))
        self.assertEqual(exclusive.tolist(), [0, 1, 2.5])
        self.assertTrue(np.isnan(self.scanned(request_of(b, a, init=1))).all())

    def test_rows_are_on_their_own(self):
        a, b = self.some(np.float64, 6000)
        got = self.scanned(request_of(b, a, init=1, axis=1, row_items=300))
        for row in range(20):
            part = slice(300 * row, 300 * (row + 1))
            self.assertEqual(got[part].tobytes(), self.scanned(request_of(b[part], a[part], init=1)).tobytes())

    def test_columns_are_on_their_own(self):
        for dtype, (rows, columns) in itertools.product((np.float32, np.float64), ((300, 20), (5000, 3), (1, 7), (6, 1))):
            a, b = self.some(dtype, rows * columns)
            with self.subTest(dtype=dtype, rows=rows, columns=columns, seed=self.seed):
                spec = {"kind": EXCLUSIVE if self.numbers.random() < 0.5 else types_pb2.SCAN_KIND_INCLUSIVE,
                        "reverse": bool(self.numbers.random() < 0.5), "init": 1}
                for given in ({"coefficients": a}, {"coefficient": 0.75}):
                    got = self.scanned(request_of(b, **given, axis=0, row_items=columns, **spec)).reshape(rows, columns)
                    for column in range(columns):
                        if "coefficients" in given:
                            given = {"coefficients": np.ascontiguousarray(a.reshape(rows, columns)[:, column])}
                        part = np.ascontiguousarray(b.reshape(rows, columns)[:, column])
                        want = self.scanned(request_of(part, **given, **spec))
                        self.assertEqual(got[:, column].tobytes(), want.tobytes(), column)

    def some_segments(self, num_items):
        """Offsets of segments, some without elements; and keys of those that have some."""
        cuts = self.numbers.integers(0, num_items + 1, 20)
        offsets = np.sort(np.concatenate([[0, 0, num_items], cuts, cuts[:5]])).astype(np.uint64)
        return offsets, np.repeat(np.arange(offsets.size - 1, dtype=np.int32), np.diff(offsets.astype(np.int64)))

    def test_segments_are_on_their_own(self):
        for dtype, num_items in itertools.product((np.float32, np.float64), (0, 3, 6000, 50_000)):
            a, b = self.some(dtype, num_items)
            offsets, keys = self.some_segments(num_items)
            spec = {"kind": EXCLUSIVE if self.numbers.random() < 0.5 else types_pb2.SCAN_KIND_INCLUSIVE,
                    "reverse": bool(self.numbers.random() < 0.5), "init": 1}
            for has_one, resident in itertools.product((False, True), (False, True)):
                with self.subTest(dtype=dtype, n=num_items, has_one=has_one, resident=resident, spec=spec,
                                  seed=self.seed):
                    given = {"coefficient": 0.75} if has_one else {"coefficients": a}
                    want = b"".join(
                        self.scanned(request_of(b[first:end], **({} if has_one else {"coefficients": a[first:end]}),
                                                **({"coefficient": 0.75} if has_one else {}), **spec)).tobytes()
                        for first, end in itertools.pairwise(offsets.tolist()))
                    values = b
                    if resident:
                        values = place(self.arrays.upload(b))
                        if not has_one:
                            given = {"coefficients": place(self.arrays.upload(a))}
                    for field, items in (("segment_offsets", offsets), ("keys", keys)):
                        request = request_of(values, **given, **spec, dtype=DTYPES[dtype])
                        # Offsets may be inline beside what is resident.
                        in_array = resident and (field == "keys" or self.numbers.random() < 0.5)
                        getattr(request, field).CopyFrom(
                            operand(place(self.arrays.upload(items)) if in_array else items.tobytes()))
                        if field == "keys":
                            request.spec.key_dtype = types_pb2.DTYPE_I32
                        self.assertEqual(self.scanned(request).tobytes(), want, field)

    def test_steps_by_columns_and_segments(self):
        a, b = self.some(np.float64, 10_000)
        offsets, keys = self.some_segments(b.size)
        by_offsets, by_keys = request_of(b, a), request_of(b, a, key_dtype="DTYPE_I32")
        by_offsets.segment_offsets.CopyFrom(operand(offsets.tobytes()))
        by_keys.keys.CopyFrom(operand(keys.tobytes()))
        want = [self.scanned(request).tobytes()
                for request in (by_offsets, by_keys, request_of(b, a, axis=0, row_items=10))]
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        spec = {"op": "OP_LINEAR_RECURRENCE", "dtype": "DTYPE_F64"}
        step = {"values": "b", "coefficients": "a"}
        steps = [{"scan": {**step, "spec": spec, "segment_offsets": "offsets", "out": "by_offsets"}},
                 {"scan": {**step, "spec": {**spec, "key_dtype": "DTYPE_I32"}, "keys": "keys", "out": "by_keys"}},
                 {"scan": {**step, "spec": {**spec, "axis": 0, "row_items": 10}, "out": "by_columns"}}]
        inputs = {name: place(self.arrays.upload(items))
                  for name, items in (("a", a), ("b", b), ("offsets", offsets), ("keys", keys))}
        response = stub.Run(program(inputs, steps, ["by_offsets", "by_keys", "by_columns"]), timeout=60)
        self.assertEqual([output.values.inline.data for output in response.outputs], want)

    def cut(self, num_items):
        return np.sort(np.concatenate([[0, num_items], self.numbers.integers(0, num_items + 1, 5)]))

    def test_a_stream_has_the_bits_of_one_message(self):
        for dtype, has_one in itertools.product((np.float32, np.float64), (False, True)):
            num_items = int(self.numbers.integers(1, 180_000))
            a, b = self.some(dtype, num_items)
            given = {"coefficient": 0.99} if has_one else {"coefficients": a}
            whole = self.streamed([request_of(b, **given, init=-3)])
            cuts = self.cut(num_items)
            with self.subTest(dtype=dtype, has_one=has_one, cuts=cuts, seed=self.seed):
                requests = []
                for first, end in itertools.pairwise(cuts):
                    given = {"coefficient": 0.99} if has_one else {"coefficients": a[first:end]}
                    requests.append(request_of(b[first:end], **given, init=-3))
                for request in requests[1:]:
                    request.ClearField("spec")
                self.assertEqual(self.streamed(requests), whole)
                # Coefficients that are resident, for values that are not.
                if not has_one:
                    name = place(self.arrays.upload(a))
                    for i, request in enumerate(requests):
                        request.ClearField("coefficients")
                        if i == 0:
                            request.coefficients.CopyFrom(operand(name))
                    self.assertEqual(self.streamed(requests), whole)

    def test_parts_have_the_bits_of_the_whole(self):
        for dtype, has_one in itertools.product((np.float32, np.float64), (False, True)):
            num_items = int(self.numbers.integers(GROUP, 180_000))
            a, b = self.some(dtype, num_items)
            whole = self.streamed([request_of(b, **({"coefficient": 0.99} if has_one else {"coefficients": a}))])
            got, carry = b"", None
            cuts = self.cut(num_items)
            for first, end in itertools.pairwise(cuts):
                part, of_part = b[first:end], a[first:end]
                if self.numbers.random() < 0.5:
                    part, of_part = place(self.arrays.upload(part)), place(self.arrays.upload(of_part))
                given = {"coefficient": 0.99} if has_one else {"coefficients": of_part}
                request = request_of(part, **given, dtype=DTYPES[dtype])
                request.return_carry = True
                if carry is not None:
                    request.carry_in.CopyFrom(carry)
                replies = list(self.stub.StreamScan(iter([request]), timeout=60))
                got += b"".join(reply.values.inline.data for reply in replies)
                carry = replies[-1].carry_out
            with self.subTest(dtype=dtype, has_one=has_one, cuts=cuts, seed=self.seed):
                self.assertEqual(got, whole)
                # A carry is of its coefficients too.
                other = request_of(b[:5], coefficient=0.5)
                other.carry_in.CopyFrom(carry)
                self.assertEqual(refusal(self.stub.Scan, other)[:2], (INVALID, "CARRY"))

    def test_resident_arrays(self):
        a, b = self.some(np.float32, 700_001)  # More than a message.
        names = [place(self.arrays.upload(items)) for items in (b, a)]
        request = request_of(*names, dtype=types_pb2.DTYPE_F32)
        request.end = True
        whole = self.streamed([request])
        np.testing.assert_allclose(np.frombuffer(whole, np.float32), recurrence(a, b, 0), rtol=0, atol=1e-4)
        request.sink.new_array.SetInParent()
        made = self.stub.Scan(request, timeout=60).values.new_array
        self.assertEqual(self.arrays.read(place(made.name)).tobytes(), whole)
        request.sink.array.CopyFrom(names[1])  # What would be read after it is written.
        self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "OVERLAP"))
        request.sink.array.CopyFrom(names[0])
        self.stub.Scan(request, timeout=60)
        self.assertEqual(self.arrays.read(names[0]).tobytes(), whole)
        self.assertEqual(self.arrays.read(names[1]).tobytes(), a.tobytes())

    def test_a_step_of_a_program(self):
        a, b = self.some(np.float64, 10_007)
        want = self.scanned(request_of(b, a)).tobytes()
        smooth = self.scanned(request_of(b, coefficient=0.9)).tobytes()
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        spec = {"op": "OP_LINEAR_RECURRENCE", "dtype": "DTYPE_F64"}
        steps = [{"scan": {"spec": spec, "values": "b", "coefficients": "a", "out": "y"}},
                 {"scan": {"spec": {**spec, "coefficient": {"double_value": 0.9}}, "values": "b", "out": "smooth"}}]
        inputs = {"a": place(self.arrays.upload(a)), "b": place(self.arrays.upload(b))}
        response = stub.Run(program(inputs, steps, ["y", "smooth"]), timeout=60)
        self.assertEqual([output.values.inline.data for output in response.outputs], [want, smooth])
        inputs["a"] = place(self.arrays.upload(a[1:]))
        self.assertEqual(refusal(stub.Run, program(inputs, steps, ["y", "smooth"]))[:2], (INVALID, "PROGRAM_LENGTH"))
        inputs["a"] = place(self.arrays.upload(a.astype(np.float32)))
        self.assertEqual(refusal(stub.Run, program(inputs, steps, ["y", "smooth"]))[:2], (INVALID, "PROGRAM_TYPE"))
        inputs["a"] = inputs["b"]
        del steps[1]["scan"]["spec"]["coefficient"]
        self.assertEqual(refusal(stub.Run, program(inputs, steps, ["y", "smooth"]))[:2], (INVALID, "FIELD_CONFLICT"))

    def test_what_is_refused(self):
        a, b = self.some(np.float64, 100)

        def assert_refused(request, code, reason, *words, method=None):
            found = refusal(method or self.stub.Scan, request)
            self.assertEqual(found[:2], (code, reason), found)
            for word in words:
                self.assertIn(word, found[2])

        conflict = (INVALID, "FIELD_CONFLICT")
        assert_refused(request_of(b), *conflict, "needs coefficients")
        assert_refused(request_of(b, a, coefficient=1), *conflict, "leave one of them out")
        for given in ({"coefficients": a}, {"coefficient": 1}):
            request = request_of(b, **given)
            request.spec.op = types_pb2.OP_SUM
            assert_refused(request, *conflict, "sum has no coefficients")
        for wrong in (a[1:], np.append(a, 1), a[:0]):
            assert_refused(request_of(b, wrong), INVALID, "COEFFICIENTS_LENGTH", str(wrong.nbytes), "800")
            resident = request_of(b, place(self.arrays.upload(wrong)))
            assert_refused(resident, INVALID, "COEFFICIENTS_LENGTH", f"{wrong.size} coefficients for")
        assert_refused(request_of(b, place(self.arrays.upload(a.astype(np.float32)))), INVALID, "ARRAY_TYPE")
        values = place(self.arrays.upload(b))
        assert_refused(request_of(values, a, dtype=types_pb2.DTYPE_F64), *conflict, "values are resident")
        assert_refused(request_of(values, place(self.arrays.upload(a[1:])), dtype=types_pb2.DTYPE_F64), INVALID,
                       "COEFFICIENTS_LENGTH")
        assert_refused(request_of(b.astype(np.int32), coefficient=1), INVALID, "UNSUPPORTED_COMBINATION", "i32")
        assert_refused(request_of(b, coefficient=1, algorithm={"strategy": "STRATEGY_NAIVE"}), UNIMPLEMENTED,
                       "NOT_IMPLEMENTED", "leave the algorithm out")
        request = request_of(b, a[1:])
        request.segment_offsets.CopyFrom(operand(np.array([0, 100], np.uint64).tobytes()))
        assert_refused(request, INVALID, "COEFFICIENTS_LENGTH", "792")
        request.spec.axis, request.spec.row_items = 0, 10
        assert_refused(request, *conflict)

        def stream(*requests):
            for request in requests[1:]:
                request.ClearField("spec")
            return lambda _: list(self.stub.StreamScan(iter(requests), timeout=60))

        late = primitives_pb2.ScanRequest(values=operand(b.tobytes()))
        assert_refused(None, INVALID, "COEFFICIENTS_LENGTH", method=stream(request_of(b, a), late))
        assert_refused(None, *conflict, "first message has no", method=stream(request_of(b, coefficient=1),
                                                                              request_of(b, a)))
        assert_refused(None, *conflict, "first message says where",
                       method=stream(request_of(b[:50], place(self.arrays.upload(a))), request_of(b[50:], a[50:])))
        assert_refused(None, INVALID, "COEFFICIENTS_LENGTH",
                       method=stream(request_of(b[:50], place(self.arrays.upload(a)))))

    def test_coefficients_of_other_values_are_refused(self):
        request = request_of(np.ones(5), np.ones(5))
        request.values.inline.first_item = 0
        request.coefficients.inline.first_item = 5
        self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "CHUNK_OUT_OF_ORDER"))

    def test_large_files_on_one_of_several_servers(self):
        """Their arrays are made on one server, whichever that is."""
        a, b = self.some(np.float64, 200_003)  # More than a message.
        source, other, result = (self.folder / name for name in ("b.npy", "a.npy", "y.npy"))
        np.save(source, b)
        np.save(other, a)
        with Server() as second:
            for _ in range(4):
                self.ctl("scan", "--reverse", "--op", "linear_recurrence", "--coefficients", other, source, result,
                         server=f"{self.server.address},{second.address}")
                np.testing.assert_allclose(np.load(result), recurrence(a, b, 0, reverse=True), rtol=0, atol=1e-9)
        np.save(other, a[1:])
        self.assert_fails("scan", "--reverse", "--op", "linear_recurrence", "--coefficients", other, source, result,
                          says="200002 coefficients for 200003 elements")
        rows = b[:200_000].reshape(-1, 50)
        np.save(source, rows)
        np.save(other, a[:200_000].reshape(-1, 50))
        self.ctl("scan", "--axis", 1, "--op", "linear_recurrence", "--coefficients", other, source, result)
        want = [recurrence(x, y, 0) for x, y in zip(np.load(other)[:20], rows)]
        np.testing.assert_allclose(np.load(result)[:20], want, rtol=0, atol=1e-9)
        self.ctl("scan", "--axis", 0, "--op", "linear_recurrence", "--coefficients", other, source, result)
        want = [recurrence(x, y, 0) for x, y in zip(np.load(other).T, rows.T)]
        np.testing.assert_allclose(np.load(result).T, want, rtol=0, atol=1e-9)

    def test_files_of_segments(self):
        a, b = self.some(np.float64, 1000)
        offsets, keys = self.some_segments(b.size)
        files = {name: self.folder / f"{name}.npy" for name in ("a", "b", "offsets", "keys", "y")}
        for name, items in (("a", a), ("b", b), ("offsets", offsets), ("keys", keys)):
            np.save(files[name], items)
        want = np.concatenate([recurrence(a[first:end], b[first:end], 2)
                               for first, end in itertools.pairwise(offsets.tolist()) if end > first])
        for flag in (("--segments", files["offsets"]), ("--keys", files["keys"])):
            self.ctl("scan", "--op", "linear_recurrence", "--coefficients", files["a"], "--init", "2", *flag,
                     files["b"], files["y"])
            np.testing.assert_allclose(np.load(files["y"]), want, rtol=0, atol=1e-12)

    def test_files(self):
        a, b = self.some(np.float64, 300_001)  # More than a message.
        files = {name: self.folder / f"{name}.npy" for name in ("a", "b", "y", "short")}
        np.save(files["a"], a)
        np.save(files["b"], b)
        np.save(files["short"], a[1:])
        scan = ("scan", "--op", "linear_recurrence")
        self.ctl(*scan, "--coefficients", files["a"], "--init", "2", files["b"], files["y"])
        np.testing.assert_allclose(np.load(files["y"]), recurrence(a, b, 2), rtol=0, atol=1e-12)
        self.ctl(*scan, "--coefficient", "0.5", files["b"], files["y"])
        np.testing.assert_allclose(np.load(files["y"]), recurrence(np.full_like(a, 0.5), b, 0), rtol=0, atol=1e-12)
        done = self.ctl(*scan, "--coefficient", "0.5", "--type", "f32", "--format", "text", "-", stdin=b"1\n1\n1\n")
        self.assertEqual(done.stdout.split(), [b"1", b"1.5", b"1.75"])
        self.ctl(*scan, "--reverse", "--coefficients", files["a"], files["b"], files["y"])
        np.testing.assert_allclose(np.load(files["y"]), recurrence(a, b, 0, reverse=True), rtol=0, atol=1e-12)
        self.assert_fails(*scan, "--reverse", "--coefficients", files["short"], files["b"], files["y"],
                          says=("short.npy", "300000 coefficients for 300001 elements"))
        self.assert_fails(*scan, "--coefficients", files["short"], files["b"], files["y"],
                          says=("short.npy", "300000 coefficients for 300001 elements"))
        for arguments, says in (((), "--coefficient"), (("--coefficients", "-"), "standard input"),
                                (("--coefficient", "x"), "--coefficient")):
            self.assert_fails(*scan, *arguments, "-", stdin=b"", code=2, says=says)
        self.assert_fails("scan", "--coefficient", "1", files["b"], code=2, says="sum has no coefficients")
        self.assert_fails(*scan, "--coefficient", "1", "--coefficients", files["a"], files["b"], code=2, says="excludes")


if __name__ == "__main__":
    unittest.main()
