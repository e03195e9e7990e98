"""Scans with their initial value: one result more than there are elements."""

import itertools
import unittest

import numpy as np

from arrays_test import refusal
from foreign_client_test import DTYPES, scan_request
from harness import grpc
from programs_test import program
from resident import MESSAGE_BYTES, ResidentTest, operand, place
from prefixd.v1 import primitives_pb2, programs_pb2_grpc, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
OPS = (types_pb2.OP_SUM, types_pb2.OP_PROD, types_pb2.OP_MIN, types_pb2.OP_MAX)


def with_initial(x, **spec):
    return scan_request(x, include_initial=True, **spec)


class InitialTest(ResidentTest):
    def scanned(self, request, dtype):
        return np.frombuffer(self.stub.Scan(request, timeout=60).values.inline.data, dtype)

    def test_every_type_and_operator(self):
        """Its results are those of the exclusive scan, and the reduction behind them."""
        for dtype in DTYPES:
            for op in OPS:
                for num_items in (0, 1, 5, 4097, 100_003 if op == types_pb2.OP_SUM else 129):
                    for init in (None, 3):
                        with self.subTest(dtype=dtype, op=op, num_items=num_items, init=init, seed=self.seed):
                            x = (self.numbers.standard_normal(num_items) * 9).astype(dtype)
                            request = with_initial(x, op=op)
                            reduce = primitives_pb2.ReduceRequest(values=operand(x.tobytes()))
                            reduce.spec.dtype, reduce.spec.op = DTYPES[dtype], op
                            if init is not None:
                                request.spec.init.int64_value = reduce.spec.init.int64_value = init
                            value = self.stub.Reduce(reduce).value
                            last = dtype(getattr(value, value.WhichOneof("value")))
                            got = self.scanned(request, dtype)
                            request.spec.kind = types_pb2.SCAN_KIND_EXCLUSIVE
                            self.assertEqual(self.scanned(request, dtype).tobytes(), got.tobytes())
                            request.spec.include_initial = False
                            self.assertEqual(got[:-1].tobytes(), self.scanned(request, dtype).tobytes())
                            if last == last + 0:
                                self.assertEqual(got[-1], last)
                            request.spec.reverse = request.spec.include_initial = True
                            request.values.inline.data = x[::-1].tobytes()
                            self.assertEqual(self.scanned(request, dtype)[::-1].tobytes(), got.tobytes())

    def test_offsets_of_lengths(self):
        lengths = np.array([3, 0, 5, 2], np.int32)
        self.assertEqual(self.scanned(with_initial(lengths), np.int32).tolist(), [0, 3, 3, 8, 10])
        wide = with_initial(lengths, out_dtype=types_pb2.DTYPE_I64)
        self.assertEqual(self.scanned(wide, np.int64).tolist(), [0, 3, 3, 8, 10])

    def test_a_recurrence(self):
        request = with_initial(np.array([1., 2, 3]), op=types_pb2.OP_LINEAR_RECURRENCE)
        request.spec.coefficient.double_value, request.spec.init.double_value = 0.5, 4
        self.assertEqual(self.scanned(request, np.float64).tolist(), [4, 3, 3.5, 4.75])

    def test_resident_arrays(self):
        x = self.numbers.integers(-1000, 1000, 1_000_003).astype(np.int32)  # More than a message.
        name = self.arrays.upload(x)
        want = np.concatenate([[0], np.cumsum(x, dtype=np.int32)])
        request = with_initial(x[:0])
        request.values.CopyFrom(operand(place(name)))
        self.assertEqual(refusal(self.stub.Scan, request)[1], "REPLY_TOO_LARGE")
        request.sink.new_array.SetInParent()
        made = self.stub.Scan(request, timeout=60).values.new_array
        self.assertEqual(made.shape, [x.size + 1])
        np.testing.assert_array_equal(self.arrays.read(place(made.name)), want)
        # A stream of nothing inline, with an end of its own.
        request.announces_end = True
        end = primitives_pb2.ScanRequest(end=True)
        made = list(self.stub.StreamScan(iter([request, end]), timeout=60))[-1].values.new_array
        np.testing.assert_array_equal(self.arrays.read(place(made.name)), want)
        request.announces_end = False
        to = self.arrays.create(np.int32, x.size).name
        request.sink.array.CopyFrom(place(to))
        self.assertEqual(refusal(self.stub.Scan, request)[1], "SINK_TOO_SMALL")
        longer = self.arrays.upload(np.append(x, [7, 7]).astype(np.int32))  # Its own values can't take it.
        request.values.CopyFrom(operand(place(longer, 0, x.size)))
        request.sink.array.CopyFrom(place(longer, 0, x.size + 1))
        self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "OVERLAP"))
        request.values.CopyFrom(operand(place(name)))
        self.stub.Scan(request, timeout=60)
        np.testing.assert_array_equal(self.arrays.read(place(longer)), np.append(want, 7))

    def streamed(self, x, request, ends, announces_end=False):
        """The results of a stream whose chunks end so, as bytes."""
        def requests():
            for i, (begin, end) in enumerate(zip([0, *ends], ends)):
                message = request if i == 0 else primitives_pb2.ScanRequest()
                message.values.inline.data = x[begin:end].tobytes()
                yield message
            if announces_end:
                yield primitives_pb2.ScanRequest(end=True)

        request.announces_end = announces_end
        replies = list(self.stub.StreamScan(requests(), timeout=60))
        for reply in replies:
            self.assertLessEqual(len(reply.values.inline.data), MESSAGE_BYTES)
        return b"".join(reply.values.inline.data for reply in replies)

    def test_streams_cut_anywhere(self):
        """The bits of the unary call, and of an array of the server where that has no room for them."""
        for dtype in DTYPES:
            for op in OPS:
                for num_items in (1, 2, 4097, 600_001 if op == types_pb2.OP_SUM else 129):
                    x = (self.numbers.standard_normal(num_items) * 9).astype(dtype)
                    init = 3 if self.numbers.integers(2) else None
                    most = self.numbers.choice([1 if num_items < 5000 else 20_000, 5_000, 300_000])
                    ends = np.minimum(np.cumsum(self.numbers.integers(1, most + 1, num_items)), num_items)
                    ends = np.unique(np.append(ends, num_items)).tolist()
                    if self.numbers.integers(4) == 0 and x.nbytes < 4_000_000:
                        ends = [num_items]
                    with self.subTest(dtype=dtype, op=op, num_items=num_items, init=init, chunks=len(ends), seed=self.seed):
                        def request(values):
                            made = with_initial(values, op=op)
                            if init is not None:
                                made.spec.init.int64_value = init
                            return made

                        whole = request(x[:0])
                        whole.values.CopyFrom(operand(place(self.arrays.upload(x))))
                        whole.sink.new_array.SetInParent()
                        want = self.arrays.read(place(self.stub.Scan(whole).values.new_array.name)).tobytes()
                        if num_items < 100_000:
                            self.assertTrue(want == self.stub.Scan(request(x)).values.inline.data)
                        declared = request(x[:0])
                        if self.numbers.integers(2):
                            declared.spec.num_items = num_items
                        got = self.streamed(x, declared, ends, bool(self.numbers.integers(2)))
                        self.assertTrue(got == want)

    def test_streams_around_a_message(self):
        """As many elements as fit a message have one result too many for a reply; one less have not."""
        most = MESSAGE_BYTES // 4
        for num_items, declares in itertools.product((most - 1, most, most + 1), (False, True)):
            x = self.numbers.integers(-1000, 1000, num_items).astype(np.int32)
            request = with_initial(x[:0])
            if declares:
                request.spec.num_items = num_items
            want = np.append(np.int32(0), np.cumsum(x, dtype=np.int32)).tobytes()
            self.assertTrue(self.streamed(x, request, [num_items]) == want)

    def test_streams_without_elements(self):
        none = np.zeros(0, np.float32)
        for ends, announces_end, num_items in itertools.product(([0], [0, 0, 0]), (False, True), (None, 0)):
            request = with_initial(none)
            request.spec.init.double_value = 2.5
            if num_items is not None:
                request.spec.num_items = num_items
            got = self.streamed(none, request, ends, announces_end)
            self.assertEqual(np.frombuffer(got, np.float32).tolist(), [2.5])
        got = self.streamed(np.float32([1, 2]), with_initial(none), [0, 0, 1, 1, 2, 2])
        self.assertEqual(np.frombuffer(got, np.float32).tolist(), [0, 1, 3])

    def test_a_stream_of_a_recurrence(self):
        x = self.numbers.standard_normal(400_000)
        request = with_initial(x[:0], op=types_pb2.OP_LINEAR_RECURRENCE)
        request.spec.coefficient.double_value, request.spec.init.double_value = 0.5, 4
        got = self.streamed(x, request, [7, 131_000, 131_080, 400_000])
        request.spec.include_initial = False
        self.assertTrue(got == np.float64(4).tobytes() + self.streamed(x, request, [400_000]))

    def test_streams_into_arrays(self):
        for dtype in (np.int32, np.float32):
            x = (self.numbers.standard_normal(500_000) * 100).astype(dtype)
            want = self.streamed(x, with_initial(x[:0]), [x.size])
            request = with_initial(x[:0], num_items=x.size)
            request.sink.new_array.SetInParent()
            requests = [request, *(primitives_pb2.ScanRequest(values=operand(part.tobytes()))
                                   for part in np.split(x, [5, 70_000, 250_000]))]
            made = list(self.stub.StreamScan(iter(requests), timeout=60))[-1].values.new_array
            self.assertTrue(self.arrays.read(place(made.name)).tobytes() == want)
            # One message of several pieces.
            message = with_initial(x)
            message.sink.new_array.SetInParent()
            made = self.stub.Scan(message, timeout=60).values.new_array
            self.assertTrue(self.arrays.read(place(made.name)).tobytes() == want)
            # An array of the server, whose results come back.
            request = with_initial(x[:0])
            request.values.CopyFrom(operand(place(self.arrays.upload(x))))
            replies = self.stub.StreamScan(iter([request]), timeout=60)
            self.assertTrue(b"".join(reply.values.inline.data for reply in replies) == want)
            room = self.arrays.create(dtype, x.size).name  # One too few.
            request = with_initial(x[:0])
            request.sink.array.CopyFrom(place(room))
            requests = [request, *(primitives_pb2.ScanRequest(values=operand(part.tobytes())) for part in np.split(x, 4))]
            self.assertEqual(refusal(lambda: list(self.stub.StreamScan(iter(requests), timeout=60)))[1], "SINK_TOO_SMALL")

    def test_a_step_of_a_program(self):
        lengths = self.numbers.integers(0, 9, 1000).astype(np.uint64)
        values = self.numbers.integers(-9, 9, int(lengths.sum())).astype(np.int32)
        stub = programs_pb2_grpc.ProgramServiceStub(self.arrays.channel)
        offsets = {"scan": {"spec": {"op": "OP_SUM", "dtype": "DTYPE_U64", "include_initial": True}, "values": "lengths",
                            "out": "offsets"}}
        sums = {"reduce": {"spec": {"op": "OP_SUM", "dtype": "DTYPE_I32"}, "values": "x", "segment_offsets": "offsets",
                           "out": "sums"}}
        inputs = {"lengths": place(self.arrays.upload(lengths)), "x": place(self.arrays.upload(values))}
        response = stub.Run(program(inputs, [offsets, sums], ["sums"]), timeout=60)
        parts = np.split(values, np.cumsum(lengths)[:-1].astype(np.int64))
        np.testing.assert_array_equal(np.frombuffer(response.outputs[0].values.inline.data, np.int32),
                                      [part.sum(dtype=np.int32) for part in parts])
        # An array without elements leaves the initial value.
        first = {"scan": {"spec": {"dtype": "DTYPE_I64", "op": "OP_SUM", "include_initial": True,
                                   "init": {"int64_value": 77}}, "values": "none", "out": "first"}}
        response = stub.Run(program({"none": np.zeros(0, np.int64)}, [first], ["first"]), timeout=60)
        self.assertEqual(np.frombuffer(response.outputs[0].values.inline.data, np.int64).tolist(), [77])
        kept = {"compact": {"spec": {"dtype": "DTYPE_U64", "predicate": {"comparison": "COMPARISON_GREATER",
                                                                         "value": {"uint64_value": 3}}},
                            "values": "lengths", "out": "long"}}
        offsets["scan"]["values"] = "long"
        del inputs["x"]
        self.assertEqual(refusal(stub.Run, program(inputs, [kept, offsets], ["offsets"]))[:2],
                         (INVALID, "PROGRAM_LENGTH"))

    def test_what_is_refused(self):
        x = np.arange(10, dtype=np.int32)
        failed = grpc.StatusCode.FAILED_PRECONDITION
        backwards = iter([with_initial(x, reverse=True)])
        self.assertEqual(refusal(lambda: list(self.stub.StreamScan(backwards)))[:2], (failed, "REVERSE_ON_STREAM"))
        self.assertEqual(refusal(self.stub.Scan, with_initial(x, axis=1, row_items=5))[:2], (INVALID, "FIELD_CONFLICT"))
        request = with_initial(x)
        request.segment_offsets.CopyFrom(operand(np.array([0, 10], np.uint64).tobytes()))
        self.assertEqual(refusal(self.stub.Scan, request)[:2], (INVALID, "FIELD_CONFLICT"))
        carried = with_initial(x)
        carried.return_carry = True
        self.assertEqual(refusal(self.stub.Scan, carried)[:2], (INVALID, "FIELD_CONFLICT"))
        self.assertEqual(refusal(lambda: list(self.stub.StreamScan(iter([carried]))))[:2], (INVALID, "FIELD_CONFLICT"))
        full = np.zeros(1 << 18, np.int32)  # A message's worth of elements has one result too many for it.
        self.assertEqual(refusal(self.stub.Scan, with_initial(full))[1], "REPLY_TOO_LARGE")
        self.assertEqual(self.scanned(with_initial(full[:-1]), np.int32).size, full.size)

    def test_files(self):
        source, result = self.folder / "x.npy", self.folder / "y.npy"
        np.save(source, np.arange(1, 5, dtype=np.int32))
        self.ctl("scan", "--include-initial", source, result)
        self.assertEqual(np.load(result).tolist(), [0, 1, 3, 6, 10])
        self.ctl("scan", "--include-initial", "--reverse", "--init", "1", source, result)
        self.assertEqual(np.load(result).tolist(), [11, 10, 8, 5, 1])
        summed = self.ctl("scan", "--include-initial", "--init", "5", "-", stdin=b"1\n" * 300_000).stdout.split()
        self.assertTrue(list(map(float, summed)) == [5 + i for i in range(300_001)])
        self.assertEqual(self.ctl("scan", "--include-initial", "--init", "5", "-", stdin=b"").stdout, b"5\n")


if __name__ == "__main__":
    unittest.main()
