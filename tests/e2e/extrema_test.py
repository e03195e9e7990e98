"""Scans by min and max that also say where each extremum stands."""

import concurrent.futures
import itertools
import unittest

import numpy as np

from arrays_test import refusal
from foreign_client_test import DTYPES, FLOATS, chunk, scan_request
from harness import grpc
from programs_test import program
from resident import ResidentTest, operand, place
from prefixd.v1 import primitives_pb2, programs_pb2_grpc, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
OPS = {types_pb2.OP_MIN: np.minimum, types_pb2.OP_MAX: np.maximum}
INDEX_TYPES = {np.uint32: types_pb2.DTYPE_U32, np.uint64: types_pb2.DTYPE_UNSPECIFIED}


def extrema(x, op, reverse=False, last_index=False):
    """The running extrema of an array, and where each stands: of equal ones the first, or the last."""
    if reverse:
        values, indices = extrema(x[::-1], op, last_index=not last_index)
        return values[::-1], x.size - 1 - indices[::-1]
    values = OPS[op].accumulate(x)
    if last_index:
        stands = (x == values) | (np.isnan(x) & np.isnan(values))
    else:
        stands = np.ones(x.size, bool)
        stands[1:] = (values[1:] != values[:-1]) & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    return values, np.maximum.accumulate(np.where(stands, np.arange(x.size), 0))


def request_of(x, op, index_type=np.uint64, **spec):
    return scan_request(x, op, return_indices=True, index_dtype=INDEX_TYPES[index_type], **spec)


class ExtremaTest(ResidentTest):
    def some(self, dtype, num_items):
        """Most of them are there several times, and of floats some are NaN towards the end."""
        x = self.numbers.integers(0, max(num_items // 3, 2), num_items).astype(dtype)
        if dtype in FLOATS and num_items > 1000 and self.numbers.integers(2):
            x[self.numbers.integers(num_items // 2, num_items, 3)] = np.nan
        return x

    def got(self, reply, x, index_type=np.uint64):
        return (np.frombuffer(reply.values.inline.data, x.dtype), np.frombuffer(reply.indices.inline.data, index_type))

    def assert_extrema(self, got, want):
        np.testing.assert_array_equal(got[0], want[0])
        np.testing.assert_array_equal(got[1], want[1])

    def test_every_type(self):
        for dtype, op, index_type in itertools.product(DTYPES, OPS, INDEX_TYPES):
            for num_items in (0, 1, 2, 3, 500, 4099, 60_001):
                how = {"reverse": bool(self.numbers.integers(2)), "last_index": bool(self.numbers.integers(2))}
                with self.subTest(dtype=dtype, op=op, num_items=num_items, **how, seed=self.seed):
                    x = self.some(dtype, num_items)
                    reply = self.stub.Scan(request_of(x, op, index_type, **how), timeout=60)
                    self.assert_extrema(self.got(reply, x, index_type), extrema(x, op, **how))

    def test_many_at_once(self):
        """Requests that share a launch have indices of their own."""
        arrays = [self.some(np.int32, 50) for _ in range(300)]
        with concurrent.futures.ThreadPoolExecutor(16) as threads:
            replies = list(threads.map(lambda x: self.stub.Scan(request_of(x, types_pb2.OP_MAX), timeout=60), arrays))
        for x, reply in zip(arrays, replies):
            self.assert_extrema(self.got(reply, x), extrema(x, types_pb2.OP_MAX))

    def test_rows_and_columns_have_indices_of_their_own(self):
        for axis, last_index in itertools.product((0, 1), (False, True)):
            with self.subTest(axis=axis, last_index=last_index, seed=self.seed):
                x = self.some(np.float32, 300 * 70).reshape(300, 70)
                request = request_of(x, types_pb2.OP_MIN, axis=axis, row_items=70, last_index=last_index)
                values, indices = self.got(self.stub.Scan(request, timeout=60), x)
                lines = x if axis == 1 else x.T
                want = [extrema(line, types_pb2.OP_MIN, last_index=last_index) for line in lines]
                values, indices = values.reshape(x.shape), indices.reshape(x.shape)
                if axis == 0:
                    values, indices = values.T, indices.T
                self.assert_extrema((values, indices), ([v for v, _ in want], [i for _, i in want]))

    def test_segments_and_keys_have_those_of_the_array(self):
        for last_index in (False, True):
            x = self.some(np.int64, 5000)
            keys = np.sort(self.numbers.integers(0, 200, x.size)).astype(np.int32)
            cuts = np.flatnonzero(np.diff(keys)) + 1
            want = [extrema(part, types_pb2.OP_MAX, last_index=last_index) for part in np.split(x, cuts)]
            first = np.repeat(np.append(0, cuts), [part.size for part, _ in want])
            want = np.concatenate([v for v, _ in want]), np.concatenate([i for _, i in want]) + first
            request = request_of(x, types_pb2.OP_MAX, last_index=last_index)
            request.spec.key_dtype = types_pb2.DTYPE_I32
            request.keys.CopyFrom(operand(keys.tobytes()))
            self.assert_extrema(self.got(self.stub.Scan(request, timeout=60), x), want)
            request = request_of(x, types_pb2.OP_MAX, last_index=last_index)
            offsets = np.concatenate([[0, 0], cuts, [x.size, x.size]]).astype(np.uint64)
            request.segment_offsets.CopyFrom(operand(offsets.tobytes()))
            self.assert_extrema(self.got(self.stub.Scan(request, timeout=60), x), want)

    def streamed(self, x, cuts, request):
        requests = [request] + [chunk(part) for part in np.split(x, cuts)]
        replies = list(self.stub.StreamScan(iter(requests), timeout=60))
        data = [b"".join(getattr(reply, name).inline.data for reply in replies) for name in ("values", "indices")]
        return data, replies[-1]

    def test_streams_and_their_parts(self):
        for dtype, last_index in itertools.product((np.uint8, np.float16, np.int32, np.float64), (False, True)):
            with self.subTest(dtype=dtype, last_index=last_index, seed=self.seed):
                x = self.some(dtype, 400_001)
                want = extrema(x, types_pb2.OP_MAX, last_index=last_index)
                cuts = np.sort(self.numbers.integers(0, x.size, 9))
                request = request_of(x[:0], types_pb2.OP_MAX, last_index=last_index)
                data, _ = self.streamed(x, np.unique(np.append(cuts, [100_000, 200_000, 300_000])), request)
                self.assert_extrema((np.frombuffer(data[0], dtype), np.frombuffer(data[1], np.uint64)), want)
                # In parts, by calls of their own.
                cut = int(cuts[4]) + 1
                request.return_carry = True
                first, last_reply = self.streamed(x[:cut], [cut // 2], request)
                request.carry_in.CopyFrom(last_reply.carry_out)
                behind, _ = self.streamed(x[cut:], [], request)
                self.assertTrue(first[0] + behind[0] == data[0])
                self.assertTrue(first[1] + behind[1] == data[1])

    def test_resident_arrays(self):
        x = self.some(np.float32, 1_000_003)
        name = self.arrays.upload(x)
        want = extrema(x, types_pb2.OP_MIN)
        request = request_of(x[:0], types_pb2.OP_MIN, np.uint32)
        request.values.CopyFrom(operand(place(name)))
        data, _ = self.streamed(x[:0], [], request)
        self.assert_extrema((np.frombuffer(data[0], np.float32), np.frombuffer(data[1], np.uint32)), want)
        self.assertEqual(refusal(self.stub.Scan, request)[1], "REPLY_TOO_LARGE")
        request.sink.new_array.SetInParent()
        request.indices_sink.new_array.SetInParent()
        reply = self.stub.Scan(request, timeout=60)
        self.assert_extrema([self.arrays.read(place(part.new_array.name)) for part in (reply.values, reply.indices)], want)
        # Only the indices stay there; and nothing goes in place.
        request.sink.Clear()
        data, last_reply = self.streamed(x[:0], [], request)
        np.testing.assert_array_equal(np.frombuffer(data[0], np.float32), want[0])
        np.testing.assert_array_equal(self.arrays.read(place(last_reply.indices.new_array.name)), want[1])
        request.sink.array.CopyFrom(place(name))
        self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "OVERLAP"))

    def test_a_step_of_a_program(self):
        x = self.some(np.int16, 10_000)
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        scan = {"scan": {"spec": {"op": "OP_MAX", "dtype": "DTYPE_I16", "last_index": True}, "values": "x",
                         "out": "maxima", "indices_out": "indices"}}
        gather = {"gather": {"values": "x", "indices": "indices", "out": "again"}}
        inputs = {"x": place(self.arrays.upload(x))}
        outputs = stub.Run(program(inputs, [scan, gather], ["maxima", "indices", "again"]), timeout=60).outputs
        values, indices, again = (np.frombuffer(output.values.inline.data, dtype)
                                  for output, dtype in zip(outputs, (np.int16, np.uint64, np.int16)))
        self.assert_extrema((values, indices), extrema(x, types_pb2.OP_MAX, last_index=True))
        np.testing.assert_array_equal(again, values)
        scan["scan"]["spec"]["op"] = "OP_SUM"
        self.assertEqual(refusal(stub.Run, program(inputs, [scan], ["maxima", "indices"]))[:2],
                         (INVALID, "UNSUPPORTED_COMBINATION"))
        scan["scan"].update(spec={"op": "OP_MAX", "dtype": "DTYPE_I16", "return_indices": True}, indices_out="")
        self.assertEqual(refusal(stub.Run, program(inputs, [scan], ["maxima"]))[:2], (INVALID, "FIELD_CONFLICT"))

    def test_files(self):
        x = self.some(np.int32, 300_000)
        source, result, places = (self.folder / name for name in ("x.npy", "y.npy", "at.npy"))
        np.save(source, x)
        # In a stream; through arrays of the server; and what is small at once.
        for num_items, flags, how in ((x.size, [], {}), (x.size, ["--reverse"], {"reverse": True}),
                                      (900, ["--reverse", "--last-index"], {"reverse": True, "last_index": True})):
            np.save(source, x[:num_items])
            self.ctl("scan", "--op", "max", "--indices", places, *flags, source, result)
            self.assert_extrema((np.load(result), np.load(places)), extrema(x[:num_items], types_pb2.OP_MAX, **how))
        np.save(source, x.reshape(-1, 600))
        self.ctl("scan", "--op", "min", "--axis", "1", "--indices", places, source, result)
        want = [extrema(row, types_pb2.OP_MIN) for row in x.reshape(-1, 600)]
        self.assert_extrema((np.load(result), np.load(places)), ([v for v, _ in want], [i for _, i in want]))
        self.assert_fails("scan", "--op", "max", "--indices", result, source, result, code=2, says="are the same")
        self.assert_fails("scan", "--op", "max", "--last-index", source, result, code=2, says="--indices")
        np.save(source, x)
        self.assert_fails("scan", "--indices", places, source, result, says="only min and max")

    def test_what_is_refused(self):
        x = np.arange(10, dtype=np.int32)
        for spec, field in (({"kind": types_pb2.SCAN_KIND_EXCLUSIVE}, "spec.kind"),
                            ({"include_initial": True}, "spec.include_initial"),
                            ({"last_index": True, "return_indices": False}, "spec.last_index")):
            request = request_of(x, types_pb2.OP_MAX)
            for name, value in spec.items():
                setattr(request.spec, name, value)
            code, reason, message = refusal(self.stub.Scan, request)[:3]
            self.assertEqual((code, reason), (INVALID, "FIELD_CONFLICT"), message)
        request = request_of(x, types_pb2.OP_MAX)
        request.spec.init.int64_value = 3
        self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "FIELD_CONFLICT"))
        for spec in ({"op": types_pb2.OP_SUM}, {"op": types_pb2.OP_MAX, "out_dtype": types_pb2.DTYPE_I64},
                     {"op": types_pb2.OP_MAX, "index_dtype": types_pb2.DTYPE_I64}):
            request = request_of(x, types_pb2.OP_MAX)
            for name, value in spec.items():
                setattr(request.spec, name, value)
            self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "UNSUPPORTED_COMBINATION"))
        request = scan_request(x, types_pb2.OP_MAX)
        request.indices_sink.new_array.SetInParent()
        self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "FIELD_CONFLICT"))
        # A carry without indices is none of a scan with them, and the other way round.
        plain = scan_request(x, types_pb2.OP_MAX)
        plain.return_carry = True
        request = request_of(x, types_pb2.OP_MAX)
        request.return_carry = True
        carries = [self.stub.Scan(one).carry_out for one in (plain, request)]
        for one, carry in ((request, carries[0]), (plain, carries[1])):
            one.carry_in.CopyFrom(carry)
            self.assertEqual(refusal(self.stub.Scan, one)[:2], (INVALID, "CARRY"))


if __name__ == "__main__":
    unittest.main()
