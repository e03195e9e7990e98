"""Programs: what comes out is what the same operations give one by one, and nothing is left of one that fails."""

import random
import unittest

import numpy as np

from arrays_test import refusal, usage
from foreign_client_test import DTYPES, FLOATS
from google.protobuf import json_format
from harness import E2ETest, Server, grpc, wait_until
from resident import TYPES, Arrays, operand, place
from prefixd.v1 import primitives_pb2, programs_pb2, programs_pb2_grpc, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def program(inputs, steps, outputs):
    """inputs: {name: slice or array}; steps: as in JSON; outputs: names, or {name: sink}."""
    request = programs_pb2.RunRequest()
    for name, value in inputs.items():
        entry = request.inputs.add(name=name)
        if isinstance(value, np.ndarray):
            entry.dtype = DTYPES[value.dtype.type]
            value = value.tobytes()
        entry.values.CopyFrom(operand(value))
    for step in steps:
        json_format.ParseDict(step, request.steps.add())
    for name in outputs:
        output = request.outputs.add(name=name)
        if isinstance(outputs, dict) and outputs[name] is not None:
            json_format.ParseDict(outputs[name], output.sink)
    return request


def dtype_name(dtype):
    return types_pb2.DType.Name(DTYPES[np.dtype(dtype).type])


class ProgramsTest(E2ETest):
    def setUp(self):
        super().setUp()
        self.arrays = Arrays(self.server.address)
        self.addCleanup(self.arrays.channel.close)
        self.stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        self.seed = random.randrange(1 << 32)
        self.dice = random.Random(self.seed)
        self.numbers = np.random.default_rng(self.seed)

    def run_program(self, *parts):
        return self.stub.Run(program(*parts), timeout=60)

    def results(self, response):
        """By name: what came inline, and what is in arrays."""
        found = {}
        for output in response.outputs:
            if output.values.HasField("new_array"):
                found[output.name] = self.arrays.read(place(output.values.new_array.name))
                self.assertEqual(len(found[output.name]), output.num_items)
            elif output.values.HasField("array"):
                found[output.name] = self.arrays.read(output.values.array)
            else:
                found[output.name] = np.frombuffer(output.values.inline.data, TYPES[output.dtype])
        return found

    def some(self, dtype, n):
        if dtype in FLOATS:
            return self.numbers.standard_normal(n).astype(dtype)
        limits = np.iinfo(dtype)
        return self.numbers.integers(limits.min, limits.max, n, dtype, endpoint=True)

    def test_compact_scan_reduce_is_what_three_calls_give(self):
        x = self.some(np.float32, 300_001)
        name = self.arrays.upload(x)
        predicate = {"comparison": "COMPARISON_GREATER", "value": {"double_value": 0}}
        response = self.run_program(
            {"x": place(name)},
            [{"compact": {"spec": {"dtype": "DTYPE_F32", "predicate": predicate},
                          "values": "x", "out": "positive", "count_out": "count"}},
             {"scan": {"spec": {"dtype": "DTYPE_F32", "op": "OP_SUM"}, "values": "positive", "out": "running"}},
             {"reduce": {"spec": {"dtype": "DTYPE_F32", "out_dtype": "DTYPE_F64", "op": "OP_SUM"},
                         "values": "positive", "out": "total"}}],
            {"count": None, "total": None, "running": {"new_array": {}}})
        compact = primitives_pb2.CompactRequest(values=operand(place(name)))
        json_format.ParseDict({"dtype": "DTYPE_F32", "predicate": predicate}, compact.spec)
        compact.values_sink.new_array.SetInParent()
        kept = self.arrays.primitives.Compact(compact)
        scan = primitives_pb2.ScanRequest(values=operand(place(kept.values.new_array.name)))
        scan.spec.dtype, scan.spec.op = types_pb2.DTYPE_F32, types_pb2.OP_SUM
        scan.sink.new_array.SetInParent()
        reduce = primitives_pb2.ReduceRequest(values=scan.values)
        reduce.spec.dtype, reduce.spec.op, reduce.spec.out_dtype = types_pb2.DTYPE_F32, types_pb2.OP_SUM, types_pb2.DTYPE_F64
        got = self.results(response)
        self.assertEqual(got["count"][0], kept.count)
        self.assertEqual(got["total"][0], self.arrays.primitives.Reduce(reduce).value.double_value)
        running = self.arrays.read(place(self.arrays.primitives.Scan(scan).values.new_array.name))
        self.assertEqual(got["running"].tobytes(), running.tobytes())
        self.assertEqual([(step.launches, step.num_items) for step in response.steps],
                         [(1, len(x)), (1, kept.count), (1, kept.count)])
        self.assertGreater(response.peak_bytes, 2 * x.nbytes)

    def test_glue_of_every_type_is_what_numpy_has(self):
        for dtype in DTYPES:
            n = self.dice.choice([0, 1, 1000, 70_001])
            x, y = self.some(dtype, n), self.some(dtype, n)
            y[y == 0] = 1
            indices = self.numbers.permutation(n).astype(np.uint32)
            rows = self.dice.choice([d for d in range(1, n + 1) if n % d == 0]) if n else 1
            steps = [{kind: {"left": "x", "right": "y", "out": kind}}
                     for kind in ("add", "subtract", "multiply", "minimum", "maximum")]
            steps += [{"abs": {"values": "x", "out": "abs"}}, {"copy": {"values": "x", "out": "copied"}},
                      {"affine": {"values": "x", "a": {"int64_value": 3}, "b": {"int64_value": 7}, "out": "affine"}},
                      {"cast": {"values": "x", "dtype": "DTYPE_F64", "out": "cast"}},
                      {"compare": {"values": "x", "out": "large", "predicate": {
                          "comparison": "COMPARISON_GREATER", "value": {"int64_value": 1}}}},
                      {"compare_arrays": {"left": "x", "comparison": "COMPARISON_LESS", "right": "y", "out": "less"}},
                      {"gather": {"values": "x", "indices": "order", "out": "gathered"}},
                      {"fill": {"dtype": dtype_name(dtype), "like": "x", "out": "zeros",
                                "content": {"value": {"int64_value": 0}}}},
                      {"scatter": {"values": "x", "indices": "order", "into": "zeros", "out": "scattered"}},
                      {"transpose": {"values": "x", "num_rows": rows, "num_columns": n // rows, "out": "turned"}}]
            names = ["add", "subtract", "multiply", "minimum", "maximum", "abs", "copied", "affine", "cast", "large", "less",
                     "gathered", "scattered", "turned"]
            response = self.run_program(
                {"x": place(self.arrays.upload(x)), "y": place(self.arrays.upload(y)),
                 "order": place(self.arrays.upload(indices))}, steps, {name: {"new_array": {}} for name in names})
            got = self.results(response)
            made_in = np.float32 if dtype == np.float16 else dtype
            scattered = np.zeros_like(x)
            scattered[indices] = x
            with np.errstate(all="ignore"):
                expected = {"add": x + y, "subtract": x - y, "multiply": x * y, "minimum": np.minimum(x, y),
                            "maximum": np.maximum(x, y), "abs": np.abs(x), "copied": x,
                            "affine": (x.astype(made_in) * made_in(3) + made_in(7)).astype(dtype), "cast": x.astype(np.float64),
                            "large": (x > 1).astype(np.uint8), "less": (x < y).astype(np.uint8), "gathered": x[indices],
                            "scattered": scattered, "turned": x.reshape(rows, -1).T.ravel() if n else x}
            for name in names:
                with self.subTest(dtype=dtype, name=name, n=n, seed=self.seed):
                    np.testing.assert_array_equal(got[name], expected[name])
            for output in response.outputs:
                self.arrays.delete(output.values.new_array.name)

    def test_what_is_selected_by_one_mask_goes_together(self):
        x, y = self.some(np.int64, 5000), self.some(np.int64, 5000)
        mask = self.numbers.integers(0, 2, 5000).astype(np.uint8)
        by_mask = {"dtype": "DTYPE_I64", "mask": "MASK_KIND_BYTES"}
        got = self.results(self.run_program(
            {"x": place(self.arrays.upload(x)), "y": place(self.arrays.upload(y)), "m": mask},
            [{"compact": {"spec": by_mask, "values": "x", "mask": "m", "out": "a", "indices_out": "where"}},
             {"compact": {"spec": by_mask, "values": "y", "mask": "m", "out": "b"}},
             {"add": {"left": "a", "right": "b", "out": "sums"}},
             {"reduce": {"spec": {"dtype": "DTYPE_I64", "op": "OP_MAX"}, "values": "sums", "out": "most",
                         "index_out": "at"}}], ["sums", "where", "most", "at"]))
        kept = mask.astype(bool)
        sums = (x + y)[kept]
        np.testing.assert_array_equal(got["sums"], sums)
        np.testing.assert_array_equal(got["where"], np.flatnonzero(kept))
        self.assertEqual((got["most"][0], got["at"][0]), (sums.max(), sums.argmax()))

    def test_outputs_go_into_slices_also_in_the_place_of_an_input(self):
        x = np.arange(100, dtype=np.int32)
        name, other = self.arrays.upload(x), self.arrays.create(np.int32, 200).name
        scan = {"scan": {"spec": {"dtype": "DTYPE_I32", "op": "OP_SUM"}, "values": "x", "out": "sums"}}
        double = {"affine": {"values": "x", "a": {"int64_value": 2}, "out": "double"}}
        response = self.run_program({"x": place(name)}, [scan, double],
                                    {"double": {"array": {"name": name}},
                                     "sums": {"array": {"name": other, "first_item": 50}}})
        got = self.results(response)
        np.testing.assert_array_equal(got["sums"], np.cumsum(x))
        np.testing.assert_array_equal(self.arrays.read(place(name)), 2 * x)
        whole = self.arrays.read(place(other))
        self.assertEqual((whole[:50].any(), whole[150:].any()), (False, False))
        compact = {"compact": {"spec": {"dtype": "DTYPE_I32", "predicate": {
            "comparison": "COMPARISON_LESS", "value": {"int64_value": 100}}}, "values": "x", "out": "small"}}
        got = self.results(self.run_program({"x": place(name)}, [compact], {"small": {"array": {"name": name}}}))
        np.testing.assert_array_equal(got["small"], 2 * x[:50])
        self.assertEqual(refusal(self.run_program, {"x": place(other)}, [compact], {"small": {"array": {
            "name": other, "num_items": 3}}})[1], "OVERLAP")
        small = self.arrays.create(np.int32, 3).name
        self.assertEqual(refusal(self.run_program, {"x": place(other)}, [compact],
                                 {"small": {"array": {"name": small}}})[1], "SINK_TOO_SMALL")

    def test_indices_that_are_too_large_are_counted(self):
        response = self.run_program({"x": np.array([10, 20, 30], np.int16), "at": np.array([2, 0, 7], np.uint64)},
                                    [{"gather": {"values": "x", "indices": "at", "out": "y"}}], ["y"])
        np.testing.assert_array_equal(self.results(response)["y"], [30, 10, 0])
        self.assertEqual(response.steps[0].num_bad_indices, 1)

    def test_a_program_that_is_wrong_is_refused_as_a_whole(self):
        x = self.arrays.upload(np.arange(10, dtype=np.int32))
        f = self.arrays.upload(np.ones(10, np.float32))

        def add(left, right, out):
            return {"add": {"left": left, "right": right, "out": out}}

        def copy(values, out):
            return {"copy": {"values": values, "out": out}}

        one = {"x": place(x)}
        for inputs, steps, outputs, expected in (
                (one, [], ["x"], "PROGRAM_SIZE"),
                (one, [copy("x", f"a{i}") for i in range(65)], ["a1"], "PROGRAM_SIZE"),
                (one, [add("a", "b", "b"), add("b", "x", "a")], ["a"], "PROGRAM_NOT_WRITTEN"),  # A cycle.
                (one, [copy("y", "a")], ["a"], "PROGRAM_NOT_WRITTEN"),
                (one, [copy("x", "a"), copy("x", "a")], ["a"], "PROGRAM_WRITTEN_TWICE"),
                (one, [copy("x", "x")], ["x"], "PROGRAM_WRITTEN_TWICE"),
                (one, [copy("x", "a"), copy("x", "b")], ["a"], "PROGRAM_NOT_READ"),
                (one, [copy("x", "A")], ["A"], "PROGRAM_NAME"),
                ({"x": place(x), "f": place(f)}, [add("x", "f", "a")], ["a"], "PROGRAM_TYPE"),
                ({"x": place(x), "s": place(x, 0, 9)}, [add("x", "s", "a")], ["a"], "PROGRAM_LENGTH"),
                (one, [{"fill": {"dtype": "DTYPE_F64", "num_items": 2**62, "out": "a",
                                 "content": {"value": {"int64_value": 0}}}}], {"a": {"new_array": {}}}, "PROGRAM_SIZE"),
                (one, [{"scan": {"spec": {"dtype": "DTYPE_F32", "op": "OP_SUM"}, "values": "x", "out": "a"}}], ["a"],
                 "PROGRAM_TYPE"),
                ({"x": place(x, 5, 6)}, [copy("x", "a")], ["a"], "ARRAY_RANGE"),
                ({"x": place("arrays/x")}, [copy("x", "a")], ["a"], "ARRAY_NAME")):
            with self.subTest(steps=steps[:2]):
                code, why, text = refusal(self.run_program, inputs, steps, outputs)
                self.assertEqual((code, why), (INVALID, expected), text)
        request = program(one, [copy("x", "a")], ["a"])
        request.inputs[0].values.inline.data = bytes(70_000)
        self.assertEqual(refusal(self.stub.Run, request)[:2], (INVALID, "MALFORMED"))

    def test_a_peak_above_the_budget_is_refused_before_anything_runs(self):
        with Server("--max-array-bytes", str(24 << 20)) as server, Arrays(server.address) as arrays:
            stub = programs_pb2_grpc.ProgramServiceStub(arrays.channel)

            def fill(n):
                return program({}, [{"fill": {"dtype": "DTYPE_F32", "num_items": n, "out": "a",
                                              "content": {"random": {"seed": 1}}}},
                                    {"affine": {"values": "a", "a": {"double_value": 2}, "out": "b"}},
                                    {"reduce": {"spec": {"dtype": "DTYPE_F32", "op": "OP_MAX"}, "values": "b",
                                                "out": "most"}}], ["most"])

            response = stub.Run(fill(1 << 20), timeout=60)
            self.assertEqual(response.peak_bytes // (1 << 20), 8)  # Two arrays at once.
            self.assertTrue(1.99 < np.frombuffer(response.outputs[0].values.inline.data, np.float32)[0] < 2)
            self.assertEqual(refusal(stub.Run, fill(3 << 20))[:2], (grpc.StatusCode.RESOURCE_EXHAUSTED, "ARRAY_BUDGET"))
            wait_until(lambda: usage(server) == (0, 0))


if __name__ == "__main__":
    unittest.main()
