"""Every primitive with its operands and results inline and in resident arrays, in any combination: the same bits."""

import os
import random
import unittest

import numpy as np

from foreign_client_test import DTYPES, FLOATS, reason
from harness import grpc
from resident import ResidentTest, operand, place
from prefixd.v1 import arrays_pb2, primitives_pb2, types_pb2

OUTPUTS = {np.int8: (np.int32, np.int64), np.uint8: (np.uint32, np.uint64), np.int16: (np.int32, np.int64),
           np.uint16: (np.uint32, np.uint64), np.int32: (np.int64,), np.uint32: (np.uint64,), np.float16: (np.float32,),
           np.float32: (np.float64,)}
ROUNDS = int(os.environ.get("PREFIXD_PLACES_ROUNDS", "120"))
GROUP = 131_072


class PlacesTest(ResidentTest):
    def setUp(self):
        super().setUp()
        self.dice = random.Random(self.seed)

    def some(self, dtype, n):
        if dtype in FLOATS:
            return self.numbers.standard_normal(n).astype(dtype)
        limits = np.iinfo(dtype)
        return self.numbers.integers(limits.min, limits.max, n, dtype, endpoint=True)

    def some_length(self):
        # With a byte of a mask for each, elements of 8 bytes fit a message, which takes 4 MiB.
        return self.dice.choice([0, 1, 7, 1000, self.dice.randrange(70_000), GROUP - 1, GROUP, 2 * GROUP,
                                 self.dice.randrange(3 * GROUP)])

    def resident(self, x):
        """The slice of a larger array that has x, with something else around it."""
        before, after = self.dice.randrange(50), self.dice.randrange(50)
        name = self.arrays.upload(np.concatenate([self.some(x.dtype.type, before), x, self.some(x.dtype.type, after)]))
        return place(name, before, len(x))

    # ---- Requests, whose operands are slices or bytes

    def some_request(self, dtype):
        """A request of any primitive without its operands, the method, the types of what comes out."""
        primitive = self.dice.choice(["Scan", "Reduce", "Compact", "Difference"])
        request = getattr(primitives_pb2, primitive + "Request")()
        request.spec.dtype = DTYPES[dtype]
        out = dtype
        if primitive in ("Scan", "Reduce"):
            ops = [types_pb2.OP_SUM, types_pb2.OP_SUM, types_pb2.OP_PROD, types_pb2.OP_MIN, types_pb2.OP_MAX]
            request.spec.op = self.dice.choice(ops if dtype in FLOATS else [*ops, types_pb2.OP_XOR])
            if dtype in OUTPUTS and request.spec.op in ops[:2] and self.dice.random() < 0.3:
                out = self.dice.choice(OUTPUTS[dtype])
                request.spec.out_dtype = DTYPES[out]
        if primitive == "Scan":
            request.spec.kind = self.dice.choice([types_pb2.SCAN_KIND_INCLUSIVE, types_pb2.SCAN_KIND_EXCLUSIVE])
        if primitive == "Compact":
            request.spec.invert = self.dice.random() < 0.3
            request.spec.return_indices = self.dice.random() < 0.5
            request.spec.omit_values = request.spec.return_indices and self.dice.random() < 0.3
            if self.dice.random() < 0.5:
                request.spec.index_dtype = types_pb2.DTYPE_U32
            if self.dice.random() < 0.5:
                request.spec.predicate.comparison = primitives_pb2.COMPARISON_GREATER
                request.spec.predicate.value.int64_value = 1
            else:
                request.spec.mask = self.dice.choice([primitives_pb2.MASK_KIND_BYTES, primitives_pb2.MASK_KIND_BITS])
        return primitive, request, np.dtype(out)

    def run_inline(self, primitive, request, x, mask):
        """What the stream gives that has everything inline: replies put together, and the last one."""
        kind = type(request)
        step = self.dice.choice([1000, 50_000, 100_000]) * 8
        bits = primitive == "Compact" and request.spec.mask == primitives_pb2.MASK_KIND_BITS

        def requests():
            for first in range(0, max(len(x), 1), step):
                message = kind()
                if first == 0:
                    message.CopyFrom(request)
                message.values.inline.data = x[first:first + step].tobytes()
                if mask is not None:
                    message.mask.inline.data = (mask[first // 8:(first + step) // 8] if bits else
                                                mask[first:first + step]).tobytes()
                yield message

        method = getattr(self.arrays.primitives, "Stream" + primitive)
        replies = method(requests(), timeout=60)
        return self.whole([replies] if primitive == "Reduce" else replies)

    def whole(self, replies):
        replies = list(replies)
        data = {field: b"".join(getattr(reply, field).inline.data for reply in replies)
                for field in ("values", "indices") if hasattr(replies[0], field)}
        return data, replies[-1]

    def run_in_places(self, primitive, request, x, mask, out):
        """The same request with each operand and result in a place of its own choosing, and what it was."""
        message, what = type(request)(), []
        message.CopyFrom(request)
        is_stream = self.dice.random() < 0.5
        values = self.resident(x) if self.dice.random() < 0.8 else x.tobytes()
        mask_at = None
        if mask is not None:
            mask_at = self.resident(mask) if self.dice.random() < 0.5 else mask.tobytes()
            if isinstance(mask_at, bytes) and isinstance(values, bytes):
                mask_at = self.resident(mask)
            message.mask.CopyFrom(operand(mask_at))
        message.values.CopyFrom(operand(values))
        n = len(x)
        sinks = {}
        length = 1 if primitive == "Reduce" else n
        fields = {"Scan": {"values": "sink"}, "Difference": {"values": "sink"}, "Reduce": {"values": "sink"},
                  "Compact": {"values": "values_sink", "indices": "indices_sink"}}[primitive]
        for result, field in fields.items():
            if primitive == "Compact" and (result == "values" and request.spec.omit_values or
                                           result == "indices" and not request.spec.return_indices):
                continue
            dtype = out
            if result == "indices":
                dtype = np.dtype(np.uint32 if request.spec.index_dtype == types_pb2.DTYPE_U32 else np.uint64)
            kind = self.dice.choice(["inline", "new", "slice", "in place"])
            if kind == "in place" and not (primitive == "Scan" and not isinstance(values, bytes) and
                                           dtype == x.dtype):
                kind = "slice"
            if kind == "new":
                getattr(message, field).new_array.SetInParent()
            elif kind == "slice":
                before, after = self.dice.randrange(9), self.dice.randrange(9)
                around = self.some(dtype.type, before + length + after)
                name = self.arrays.upload(around)
                num_items = self.dice.choice([length, length + after, None])
                getattr(message, field).array.CopyFrom(place(name, before, num_items))
                sinks[result] = (name, around, before)
            elif kind == "in place":
                getattr(message, field).array.CopyFrom(values)
            what.append(f"{result} {kind}")
        too_long = n * 16 > 1 << 20
        if too_long or is_stream:
            message.spec.num_items = n
        method = getattr(self.arrays.primitives, ("Stream" if is_stream or too_long else "") + primitive)
        what = f"{primitive} n {n} {method._method} values {type(values).__name__} {' '.join(what)} {request}"
        if too_long or is_stream:
            # An inline operand in one message, for it has at most 4 MiB here.
            replies = method(iter([message]), timeout=60)
            data, last = self.whole([replies] if primitive == "Reduce" else replies)
        else:
            data, last = self.whole([method(message, timeout=60)])
        for result in data:
            array = getattr(last, result)
            if array.HasField("new_array"):
                data[result] = self.arrays.read(place(array.new_array.name)).tobytes()
                self.arrays.delete(array.new_array.name)
            elif array.HasField("array"):
                data[result] = self.arrays.read(array.array).tobytes()
                if result in sinks:  # What is around the result stays as it was.
                    name, around, before = sinks[result]
                    items = array.array.num_items
                    now = self.arrays.read(place(name))
                    np.testing.assert_array_equal(now[:before], around[:before])
                    if primitive != "Compact":
                        np.testing.assert_array_equal(now[before + items:], around[before + items:])
        for at in (values, mask_at):
            if at is not None and not isinstance(at, bytes):
                self.arrays.delete(at.name)
        for name, _, _ in sinks.values():
            self.arrays.delete(name)
        return data, last, what

    def test_the_same_bits_in_every_place(self):
        for _ in range(ROUNDS):
            dtype = self.dice.choice(list(DTYPES))
            primitive, request, out = self.some_request(dtype)
            n = self.some_length()
            x = self.some(dtype, n)
            mask = None
            if primitive == "Compact" and request.spec.WhichOneof("selector") == "mask":
                bits = request.spec.mask == primitives_pb2.MASK_KIND_BITS
                mask = self.numbers.integers(0, 256 if bits else 2, -(-n // 8) if bits else n).astype(np.uint8)
            expected, last = self.run_inline(primitive, request, x, mask)
            got, result, what = self.run_in_places(primitive, request, x, mask, out)
            if primitive == "Reduce":  # The value comes in the reply in any case.
                value = getattr(last.value, last.value.WhichOneof("value"))
                expected["values"] = b"" if "values inline" in what else np.array([value], out).tobytes()
            with self.subTest(seed=self.seed, what=what):
                self.assertEqual({name: data.hex()[:200] for name, data in got.items()},
                                 {name: data.hex()[:200] for name, data in expected.items()})
                self.assertEqual(got, expected)
                self.assertEqual(result.timing.num_items, n)
                if primitive == "Compact":
                    self.assertEqual(result.count, last.count)
                if primitive == "Reduce":
                    self.assertEqual(result.value, last.value)
                    self.assertEqual(result.HasField("index"), last.HasField("index"))
                    self.assertEqual(result.index, last.index)
                if "values ArraySlice" in what and "inline" not in what and n > 0 and mask is None:
                    self.assertEqual(result.timing.launches, 1, what)

    def test_reverse_is_of_whole_arrays_only(self):
        for dtype, n in ((np.int64, 300_001), (np.float32, 700_001), (np.int32, 1000)):
            x = self.some(dtype, n) if dtype != np.float32 else self.numbers.integers(-9, 9, n).astype(dtype)
            name = self.arrays.upload(x)
            expected = np.cumsum(x[::-1], dtype=dtype)[::-1]
            for method in ("Scan", "StreamScan"):
                request = primitives_pb2.ScanRequest(values=operand(place(name)))
                request.spec.dtype, request.spec.op, request.spec.reverse = DTYPES[dtype], types_pb2.OP_SUM, True
                call = getattr(self.arrays.primitives, method)
                request.sink.new_array.SetInParent()
                reply = call(request) if method == "Scan" else list(call(iter([request])))[-1]
                np.testing.assert_array_equal(self.arrays.read(place(reply.values.new_array.name)), expected)
                request.sink.Clear()
                if method == "Scan" and x.nbytes <= 1 << 20:
                    np.testing.assert_array_equal(np.frombuffer(call(request).values.inline.data, dtype), expected)
                    continue
                with self.assertRaises(grpc.RpcError) as caught:
                    call(request) if method == "Scan" else list(call(iter([request])))
                self.assertEqual(reason(caught.exception), "REPLY_TOO_LARGE" if method == "Scan" else "REVERSE_ON_STREAM")
            request.values.CopyFrom(operand(x.tobytes()))
            request.sink.new_array.SetInParent()
            if x.nbytes <= 1 << 20:
                self.arrays.primitives.Scan(request)
            else:  # It comes in one message, and passes through in pieces.
                self.assert_refused(request, grpc.StatusCode.FAILED_PRECONDITION, "REVERSE_ON_STREAM")

    # ---- Scans that go on where others ended

    def test_a_scan_in_parts_has_the_bits_of_one(self):
        for _ in range(max(ROUNDS // 4, 1)):
            dtype = self.dice.choice([*FLOATS, *FLOATS, *DTYPES])
            spec = primitives_pb2.ScanSpec(dtype=DTYPES[dtype], op=self.dice.choice([types_pb2.OP_SUM, types_pb2.OP_PROD,
                                                                                    types_pb2.OP_MIN]))
            spec.kind = self.dice.choice([types_pb2.SCAN_KIND_INCLUSIVE, types_pb2.SCAN_KIND_EXCLUSIVE])
            if self.dice.random() < 0.5:
                spec.init.int64_value = 3
            # All of it fits a message, which takes 4 MiB.
            x = self.some(dtype, self.dice.choice([5, 1000, GROUP + 1, self.dice.randrange(3 * GROUP)]))
            if dtype in FLOATS and spec.op == types_pb2.OP_PROD:
                x = (1 + x / 1000).astype(dtype)
            expected, _ = self.run_inline("Scan", primitives_pb2.ScanRequest(spec=spec), x, None)
            cuts = sorted(self.dice.randrange(len(x) + 1) for _ in range(self.dice.randrange(5)))
            got, carry, what = b"", None, []
            for i, (first, end) in enumerate(zip([0, *cuts], [*cuts, len(x)])):
                part = x[first:end]
                goes_on = i < len(cuts) or self.dice.random() < 0.5
                request = primitives_pb2.ScanRequest(spec=spec, return_carry=goes_on)
                is_resident, is_sunk = self.dice.random() < 0.5, self.dice.random() < 0.5
                values = self.resident(part) if is_resident else part.tobytes()
                request.values.CopyFrom(operand(values))
                if is_sunk:
                    request.spec.num_items = len(part)
                    request.sink.new_array.SetInParent()
                if carry is not None:
                    request.carry_in.CopyFrom(carry)
                method = self.arrays.primitives.StreamScan
                if part.nbytes <= 1 << 20 and self.dice.random() < 0.5:
                    method = self.arrays.primitives.Scan
                what.append((first, end, is_resident, is_sunk, method._method))
                reply = method(request if method == self.arrays.primitives.Scan else iter([request]), timeout=60)
                data, last = self.whole([reply] if method == self.arrays.primitives.Scan else reply)
                got += self.arrays.read(place(last.values.new_array.name)).tobytes() if is_sunk else data["values"]
                self.assertEqual(last.HasField("carry_out"), request.return_carry)
                carry = last.carry_out
                for name in ([values.name] if is_resident else []) + ([last.values.new_array.name] if is_sunk else []):
                    self.arrays.delete(name)
            with self.subTest(seed=self.seed, dtype=dtype, spec=spec, what=what):
                self.assertEqual(got, expected["values"])

    def test_a_carry_is_of_one_spec(self):
        scan = self.scan(np.arange(5, dtype=np.int32).tobytes())
        scan.return_carry = True
        carry = self.arrays.primitives.Scan(scan).carry_out
        scan.carry_in.CopyFrom(carry)
        self.assertEqual(list(np.frombuffer(self.arrays.primitives.Scan(scan).values.inline.data, np.int32)),
                         [10, 11, 13, 16, 20])
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        for data in (b"", b"x", carry.inline.data[:-1], carry.inline.data + b"1234", bytes(100), bytes(2 << 20)):
            scan.carry_in.inline.data = data
            self.assert_refused(scan, invalid, "CARRY")
        scan.carry_in.CopyFrom(carry)
        scan.spec.op = types_pb2.OP_MAX
        self.assert_refused(scan, invalid, "CARRY")
        scan.spec.op, scan.spec.reverse = types_pb2.OP_SUM, True
        self.assert_refused(scan, invalid, "FIELD_CONFLICT")

    # ---- What is refused

    def assert_refused(self, request, code, expected_reason):
        primitive = type(request).__name__.removesuffix("Request")
        with self.assertRaises(grpc.RpcError) as caught:
            getattr(self.arrays.primitives, primitive)(request, timeout=60)
        self.assertEqual((caught.exception.code(), reason(caught.exception)), (code, expected_reason),
                         caught.exception.details())

    def scan(self, values, sink=None, **spec):
        spec = {"dtype": types_pb2.DTYPE_I32, "op": types_pb2.OP_SUM, **spec}
        request = primitives_pb2.ScanRequest(spec=primitives_pb2.ScanSpec(**spec), values=operand(values))
        if sink is not None:
            request.sink.array.CopyFrom(sink)
        return request

    def test_what_does_not_fit_is_refused(self):
        invalid, range_error = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE
        x = np.arange(100, dtype=np.int32)
        name = self.arrays.upload(x)
        other = self.arrays.create(np.int32, 10).name
        floats = self.arrays.create(np.float32, 100).name
        for request, code, expected in (
                (self.scan(place(floats)), invalid, "ARRAY_TYPE"),
                (self.scan(place(name), place(floats)), invalid, "ARRAY_TYPE"),
                (self.scan(place(name, 101)), invalid, "ARRAY_RANGE"),
                (self.scan(place(name, 100, 1)), invalid, "ARRAY_RANGE"),
                (self.scan(place(name, 1, 100)), invalid, "ARRAY_RANGE"),
                (self.scan(place(name, 2**64 - 1, 1)), invalid, "ARRAY_RANGE"),
                (self.scan(place(name, 50, 2**64 - 1)), invalid, "ARRAY_RANGE"),
                (self.scan(place(name), place(other)), range_error, "SINK_TOO_SMALL"),
                (self.scan(x.tobytes(), place(other)), range_error, "SINK_TOO_SMALL"),
                (self.scan(place(name, 0, 50), place(name, 49)), invalid, "OVERLAP"),
                (self.scan(place(name, 1, 50), place(name, 0)), invalid, "OVERLAP"),
                (self.scan(place(name), num_items=99), invalid, "COUNT_MISMATCH"),
                (self.scan(place(name), num_items=101), invalid, "COUNT_MISMATCH"),
                (self.scan(place("arrays/x")), invalid, "ARRAY_NAME"),
                (self.scan(place(name), place("")), invalid, "ARRAY_NAME"),
                (self.scan(place(name[:-1] + ("0" if name[-1] != "0" else "1"))), grpc.StatusCode.NOT_FOUND,
                 "ARRAY_UNKNOWN")):
            with self.subTest(request=request):
                self.assert_refused(request, code, expected)
        difference = primitives_pb2.DifferenceRequest(values=operand(place(name)))
        difference.spec.dtype = types_pb2.DTYPE_I32
        difference.sink.array.CopyFrom(place(name))
        self.assert_refused(difference, invalid, "OVERLAP")  # It has no place of its own to read from.
        reduce = primitives_pb2.ReduceRequest(values=operand(place(name)))
        reduce.spec.dtype, reduce.spec.op = types_pb2.DTYPE_I32, types_pb2.OP_SUM
        for sink, code, expected in ((place(floats), invalid, "ARRAY_TYPE"), (place(name, 99, 1), invalid, "OVERLAP"),
                                     (place(other, 10), range_error, "SINK_TOO_SMALL")):
            reduce.sink.array.CopyFrom(sink)
            self.assert_refused(reduce, code, expected)
        compact = primitives_pb2.CompactRequest(values=operand(place(name)))
        compact.spec.dtype = types_pb2.DTYPE_I32
        compact.spec.predicate.comparison = primitives_pb2.COMPARISON_LESS
        compact.spec.predicate.value.int64_value = 11
        compact.values_sink.array.CopyFrom(place(other))
        self.assert_refused(compact, range_error, "SINK_TOO_SMALL")
        compact.spec.predicate.value.int64_value = 10  # Less room than elements, and enough for those that are kept.
        self.assertEqual(self.arrays.primitives.Compact(compact).count, 10)
        np.testing.assert_array_equal(self.arrays.read(place(other)), x[:10])
        np.testing.assert_array_equal(self.arrays.read(place(name)), x)  # None of these has changed it.

    def test_a_stream_that_grows_into_an_array_ends_where_that_is_full(self):
        name = self.arrays.create(np.int32, 1500).name
        part = np.ones(1000, np.int32)
        first = self.scan(part.tobytes(), place(name))
        second = primitives_pb2.ScanRequest(values=operand(part.tobytes()))
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.arrays.primitives.StreamScan(iter([first, second]), timeout=60))
        self.assertEqual(reason(caught.exception), "SINK_TOO_SMALL")
        self.assertEqual(self.arrays.read(place(name)).shape, (1500,))  # It is nobody's any more.
        second.values.CopyFrom(operand(part[:500].tobytes()))
        replies = list(self.arrays.primitives.StreamScan(iter([first, second]), timeout=60))
        self.assertEqual([reply.values.array.num_items for reply in replies], [1500])
        np.testing.assert_array_equal(self.arrays.read(place(name)), np.arange(1, 1501))

    def test_a_later_message_names_no_array(self):
        name = self.arrays.create(np.int32, 10).name
        later = primitives_pb2.ScanRequest(values=operand(place(name)))
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.arrays.primitives.StreamScan(iter([self.scan(b"1234"), later]), timeout=60))
        self.assertEqual(reason(caught.exception), "FIELD_CONFLICT")


if __name__ == "__main__":
    unittest.main()
