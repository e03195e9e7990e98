"""Rows that come in streams, cut anywhere: the bits of the unary call, of an array of the server, and of each row alone."""

import itertools
import threading
import unittest

import numpy as np

from arrays_test import refusal
from google.protobuf import json_format
from harness import BIN_DIR, Server, grpc, wait_until
from resident import MESSAGE_BYTES, TYPES, ResidentTest, operand, place
from prefixd.v1 import admin_pb2, admin_pb2_grpc, primitives_pb2, types_pb2

INVALID, FAILED = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION
RANGE = grpc.StatusCode.OUT_OF_RANGE
F32, F64, I32 = types_pb2.DTYPE_F32, types_pb2.DTYPE_F64, types_pb2.DTYPE_I32
SUM, MIN, RECURRENCE = types_pb2.OP_SUM, types_pb2.OP_MIN, types_pb2.OP_LINEAR_RECURRENCE
GROUP = 131_072
REQUESTS = {"Scan": primitives_pb2.ScanRequest, "Reduce": primitives_pb2.ReduceRequest,
            "Difference": primitives_pb2.DifferenceRequest}


class RowStreamsTest(ResidentTest):
    def items(self, dtype, num_items):
        """Packed elements of the contract's type: floats whose sums round at every step, integers of all bits."""
        if dtype in (types_pb2.DTYPE_F16, types_pb2.DTYPE_BF16, F32, F64):
            x = self.numbers.uniform(-1.2, 1.2, num_items)
            if dtype == types_pb2.DTYPE_BF16:
                return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
            return x.astype(TYPES[dtype]).tobytes()
        return self.numbers.bytes(num_items * TYPES[dtype].itemsize)

    def cuts(self, num_items, most=None):
        """Ends of chunks: single elements, a few, around a group, whole messages and more."""
        ends, end = [], 0
        while end < num_items:
            cut = int(self.numbers.integers(1, 1 + self.numbers.choice([1, 50, 5_000, GROUP, 2 * GROUP])))
            if self.numbers.integers(8) == 0:
                cut = GROUP - int(self.numbers.integers(2))
            end = min(num_items, end + min(cut, most or cut))
            ends.append(end)
        return ends

    def requests(self, method, spec, data, ends=None, declares=False, coefficients=None):
        """The messages of a stream whose chunks end so, or one message."""
        kind = REQUESTS[method]
        item_bytes = TYPES[spec["dtype"]].itemsize
        first = kind()
        json_format.ParseDict(spec, first.spec)
        if declares:
            first.spec.num_items = len(data) // item_bytes
        begin = 0
        for end in ends or [len(data) // item_bytes]:
            request = first if begin == 0 else kind()
            request.values.inline.data = data[begin * item_bytes:end * item_bytes]
            if isinstance(coefficients, str):  # An array's name.
                first.coefficients.CopyFrom(operand(place(coefficients)))
            elif coefficients is not None:
                request.coefficients.inline.data = coefficients[begin * item_bytes:end * item_bytes]
            yield request
            begin = end

    def streamed(self, method, *arguments, **fields):
        """The bytes of values and indices."""
        replies = getattr(self.stub, "Stream" + method)(self.requests(method, *arguments, **fields), timeout=120)
        replies = [replies] if method == "Reduce" else list(replies)
        for reply in replies:
            self.assertLessEqual(len(reply.values.inline.data), MESSAGE_BYTES)
        indices = b"".join(reply.indices.inline.data for reply in replies) if method == "Scan" else b""
        return b"".join(reply.values.inline.data for reply in replies), indices

    def unary(self, method, *arguments, **fields):
        reply = getattr(self.stub, method)(next(self.requests(method, *arguments, **fields)), timeout=120)
        return reply.values.inline.data, reply.indices.inline.data if method == "Scan" else b""

    def resident(self, method, spec, data):
        """The same by an array of the server, whole."""
        request = next(self.requests(method, spec, b""))
        request.values.CopyFrom(operand(place(self.arrays.upload(np.frombuffer(data, TYPES[spec["dtype"]])))))
        request.sink.new_array.SetInParent()
        made = getattr(self.stub, method)(request, timeout=120).values.new_array
        return self.arrays.read(place(made.name)).tobytes()

    def test_every_type_and_operator(self):
        admin = admin_pb2_grpc.AdminServiceStub(self.arrays.channel)
        listed = {(c.primitive, c.dtype, c.out_dtype, c.op)
                  for c in admin.GetServerInfo(admin_pb2.GetServerInfoRequest()).capabilities}
        names = {admin_pb2.PRIMITIVE_SCAN: "Scan", admin_pb2.PRIMITIVE_REDUCE: "Reduce",
                 admin_pb2.PRIMITIVE_DIFFERENCE: "Difference"}
        served = set()
        for primitive, dtype, out_dtype, op in sorted(listed):
            if primitive not in names or op == RECURRENCE:
                continue
            method = names[primitive]
            served.add((method, dtype))
            spec = {"dtype": dtype, "axis": 1, "row_items": int(self.numbers.choice([1, 2, 7, 100, 129, 1300, 5000]))}
            if method != "Difference":
                spec.update(out_dtype=out_dtype, op=op)
            if self.numbers.integers(2):
                spec["init"] = {"int64_value": 3}
            if method == "Scan" and self.numbers.integers(2):
                spec["kind"] = types_pb2.SCAN_KIND_EXCLUSIVE
            num_items = spec["row_items"] * max(1, int(self.numbers.integers(1, 12_000)) // spec["row_items"])
            with self.subTest(method=method, **spec, num_items=num_items, seed=self.seed):
                data = self.items(dtype, num_items)
                declares = bool(self.numbers.integers(2))
                want = self.unary(method, spec, data)
                self.assertGreater(len(want[0]), 0)
                got = self.streamed(method, spec, data, self.cuts(num_items, 700), declares)
                self.assertTrue(got == want)
        self.assertEqual(len(served), 36)

    def test_rows_of_any_length(self):
        """Shorter than a message, longer than one, than a piece, than a group; in chunks of all lengths."""
        for dtype, row_items in itertools.product((F32, F64, I32), (1, 3, 1000, GROUP - 1, GROUP, 2 * GROUP + 1, 500_000)):
            num_items = row_items * max(1, 1_000_000 // row_items)
            data = self.items(dtype, num_items)
            for method in REQUESTS:
                spec = {"dtype": dtype, "axis": 1, "row_items": row_items}
                if method != "Difference":
                    spec["op"] = SUM
                if method == "Reduce" and row_items < 10:
                    continue  # More values than a reply has room for.
                with self.subTest(method=method, **spec, seed=self.seed):
                    want = self.resident(method, spec, data)
                    ends = self.cuts(num_items)
                    self.assertTrue(self.streamed(method, spec, data, ends, bool(self.numbers.integers(2)))[0] == want)

    def test_rows_are_cut_one_element_at_a_time(self):
        for method, row_items in itertools.product(REQUESTS, (1, 2, 7, 300)):
            spec = {"dtype": F32, "axis": 1, "row_items": row_items}
            if method != "Difference":
                spec["op"] = SUM
            data = self.items(F32, 600 // row_items * row_items)
            ends = range(1, len(data) // 4 + 1)
            with self.subTest(method=method, row_items=row_items, seed=self.seed):
                self.assertTrue(self.streamed(method, spec, data, ends) == self.unary(method, spec, data))

    def test_recurrences_wide_sums_and_indices(self):
        for dtype, row_items in itertools.product((F32, F64), (5, 4_000, GROUP + 3)):
            rows = max(2, 100_000 // row_items)
            data, ends = self.items(dtype, rows * row_items), self.cuts(rows * row_items)
            spec = {"dtype": dtype, "axis": 1, "row_items": row_items}
            with self.subTest(**spec, seed=self.seed):
                wide = {**spec, "op": SUM, "precision": types_pb2.PRECISION_WIDE}
                for method in ("Scan", "Reduce"):
                    self.assertTrue(self.streamed(method, wide, data, ends)[0] == self.resident(method, wide, data))
                coefficients = (self.numbers.uniform(-1, 1, rows * row_items)).astype(TYPES[dtype]).tobytes()
                steps = {**spec, "op": RECURRENCE}
                got = self.streamed("Scan", steps, data, ends, coefficients=coefficients)[0]
                name = self.arrays.upload(np.frombuffer(coefficients, TYPES[dtype]))
                self.assertTrue(self.streamed("Scan", steps, data, ends, coefficients=name)[0] == got)
                row_bytes = row_items * TYPES[dtype].itemsize
                alone = {"dtype": dtype, "op": RECURRENCE}
                for row in range(min(rows, 8)):
                    part = slice(row * row_bytes, (row + 1) * row_bytes)
                    want = self.streamed("Scan", alone, data[part], [row_items], coefficients=coefficients[part])[0]
                    self.assertTrue(got[part] == want)
                extrema = {**spec, "op": MIN, "return_indices": True}
                values, indices = self.streamed("Scan", extrema, data, ends)
                x = np.frombuffer(data, TYPES[dtype]).reshape(rows, row_items)
                self.assertTrue(np.array_equal(np.frombuffer(values, x.dtype), np.minimum.accumulate(x, axis=1).ravel()))
                indices = np.frombuffer(indices, np.uint64).reshape(x.shape).astype(np.int64)
                self.assertTrue(np.array_equal(np.take_along_axis(x, indices, 1).ravel(), np.frombuffer(values, x.dtype)))

    def test_results_go_into_arrays(self):
        """Those of streams, and of one message that is longer than a piece. Of arrays they come back as a stream."""
        row_items, rows = 1003, 700
        for dtype, (method, op) in itertools.product((F32, I32), (("Scan", SUM), ("Reduce", SUM), ("Difference", None))):
            spec = {"dtype": dtype, "axis": 1, "row_items": row_items, **({"op": op} if op else {})}
            data = self.items(dtype, rows * row_items)
            with self.subTest(method=method, **spec, seed=self.seed):
                want = self.resident(method, spec, data)
                for ends in (self.cuts(rows * row_items), [rows * row_items]):
                    messages = list(self.requests(method, spec, data, ends, declares=True))
                    messages[0].sink.new_array.SetInParent()
                    call = getattr(self.stub, ("Stream" if len(ends) > 1 else "") + method)
                    reply = call(iter(messages) if len(ends) > 1 else messages[0], timeout=120)
                    made = (list(reply)[-1] if len(ends) > 1 and method != "Reduce" else reply).values.new_array
                    self.assertTrue(self.arrays.read(place(made.name)).tobytes() == want)
                into = self.arrays.create(TYPES[dtype], len(want) // 4 + 5).name
                messages = list(self.requests(method, spec, data, self.cuts(rows * row_items)))
                messages[0].sink.array.CopyFrom(place(into, 5))
                reply = getattr(self.stub, "Stream" + method)(iter(messages), timeout=120)
                reply = reply if method == "Reduce" else list(reply)[-1]
                self.assertEqual(reply.values.array.num_items, len(want) // 4)
                self.assertTrue(self.arrays.read(place(into, 5)).tobytes() == want)
                request = next(self.requests(method, spec, b""))
                request.values.CopyFrom(operand(place(self.arrays.upload(np.frombuffer(data, TYPES[dtype])))))
                reply = getattr(self.stub, "Stream" + method)(iter([request]), timeout=120)
                replies = [reply] if method == "Reduce" else list(reply)
                self.assertTrue(b"".join(one.values.inline.data for one in replies) == want)

    def test_the_values_of_a_reduce_are_one_reply(self):
        """However its rows come, it has up to a MiB of them; more go into an array."""
        most = MESSAGE_BYTES // 8
        spec = {"dtype": types_pb2.DTYPE_U8, "out_dtype": types_pb2.DTYPE_U64, "op": SUM, "axis": 1, "row_items": 2}
        data = self.items(spec["dtype"], 2 * most)
        want = np.frombuffer(data, np.uint8).reshape(-1, 2).sum(axis=1, dtype=np.uint64)
        ends = self.cuts(2 * most)
        self.assertTrue(self.streamed("Reduce", spec, data, ends)[0] == want.tobytes())
        more = data + b"\1\2"
        call = lambda: self.streamed("Reduce", spec, more, [*ends, 2 * most + 2])
        code, reason, message = refusal(call)
        self.assertEqual((code, reason), (RANGE, "REPLY_TOO_LARGE"), message)
        self.assertIn("let the result go into an array", message)
        messages = list(self.requests("Reduce", spec, more, [*ends, 2 * most + 2], declares=True))
        messages[0].sink.new_array.SetInParent()
        made = self.stub.StreamReduce(iter(messages), timeout=60).values.new_array
        self.assertTrue(np.array_equal(self.arrays.read(place(made.name)), np.append(want, np.uint64(3))))

    def test_each_chunk_has_its_results_at_once(self):
        """A caller who waits for them before he sends more is never left waiting."""
        x = self.numbers.standard_normal((4, 10)).astype(np.float32)
        spec = {"dtype": F32, "op": SUM, "axis": 1, "row_items": 10}
        pending, had = threading.Semaphore(0), 0

        def requests():
            for request in self.requests("Scan", spec, x.tobytes(), [3, 10, 14, 15, 34, 40]):
                yield request
                self.assertTrue(pending.acquire(timeout=60))

        ends = [3, 10, 14, 15, 34, 40]
        for reply in self.stub.StreamScan(requests(), timeout=60):
            had += len(reply.values.inline.data) // 4
            if had == ends[0]:
                ends.pop(0)
                pending.release()
            if not ends:
                break
        self.assertEqual(had, 40)

    def test_empty_matrices(self):
        for method in REQUESTS:
            spec = {"dtype": I32, "axis": 1, "row_items": 7, **({} if method == "Difference" else {"op": SUM})}
            self.assertEqual(self.streamed(method, spec, b"", [0]), (b"", b""))

    def test_what_is_refused(self):
        x = np.arange(12, dtype=np.int32).tobytes()
        for method, ends in itertools.product(REQUESTS, ([12], [4, 8, 12], [1, 12])):
            op = {} if method == "Difference" else {"op": SUM}

            def streamed(data=x, ends=ends, declares=False, **spec):
                spec = {"dtype": I32, **op, **spec}
                return refusal(self.streamed, method, spec, data, ends, declares)

            def assert_invalid(reason, text, **fields):
                code, got, message = streamed(**fields)
                self.assertEqual((code, got), (INVALID, reason), message)
                self.assertIn(text, message)

            with self.subTest(method=method, ends=ends):
                assert_invalid("SHAPE", "end within row 2, of which 2 came, and 5 are expected", axis=1, row_items=5)
                assert_invalid("SHAPE", "end within row 0, of which 12 came", axis=1, row_items=13)
                assert_invalid("SHAPE", f"{(1 << 64) - 1} are expected", axis=1, row_items=(1 << 64) - 1)
                assert_invalid("SHAPE", "12 elements are no whole number of rows of 5", axis=1, row_items=5, declares=True)
                assert_invalid("SHAPE", "a row has no elements", axis=1, row_items=0)
                assert_invalid("SHAPE", "a row has no elements", axis=1, row_items=0, declares=True)
                assert_invalid("COUNT_MISMATCH", "declared 9 elements", axis=1, row_items=3, num_items=9)
                assert_invalid("COUNT_MISMATCH", "declared 15 elements", axis=1, row_items=3, num_items=15)
                code, reason, message = streamed(axis=0, row_items=3)
                self.assertEqual((code, reason), (FAILED, "AXIS_ON_STREAM"), message)
                self.assertIn("or a resident array with a sink", message)
                if method != "Reduce":
                    self.assertEqual(streamed(axis=1, row_items=3, reverse=True)[:2], (FAILED, "REVERSE_ON_STREAM"))
        request = next(self.requests("Scan", {"dtype": I32, "op": SUM, "axis": 1, "row_items": 3}, x))
        request.return_carry = True
        self.assertEqual(refusal(lambda: list(self.stub.StreamScan(iter([request]))))[:2], (INVALID, "FIELD_CONFLICT"))
        # A limit of the algorithm is one of each row.
        quadratic = {"dtype": I32, "op": SUM, "axis": 1, "algorithm": {"strategy": types_pb2.STRATEGY_NAIVE}}
        zeros, ends = bytes(3 << 20), [1 << 18, 2 << 18, 3 << 18]
        code, reason, _ = refusal(self.streamed, "Scan", {**quadratic, "row_items": 3 << 18}, zeros, ends)
        self.assertEqual((code, reason), (INVALID, "ALGORITHM_LIMIT"))

    def test_a_stream_that_is_cancelled_leaves_nothing(self):
        admin = admin_pb2_grpc.AdminServiceStub(self.arrays.channel)
        info = lambda: admin.GetServerInfo(admin_pb2.GetServerInfoRequest())
        used = info().request_bytes.used
        hold = threading.Event()
        self.addCleanup(hold.set)

        def requests(method):
            spec = {"dtype": F32, "axis": 1, "row_items": 1000, "op": SUM}
            yield from self.requests(method, spec, self.items(F32, 1500), [999, 1500])
            hold.wait()

        scan = self.stub.StreamScan(requests("Scan"), timeout=60)
        next(scan)
        scan.cancel()
        reduce = self.stub.StreamReduce.future(requests("Reduce"), timeout=60)
        wait_until(lambda: info().request_bytes.used > used)
        reduce.cancel()
        wait_until(lambda: info().request_bytes.used == used and info().requests.used == 0)

    def test_files(self):
        """They go through in streams, however long: to a server that holds no arrays."""
        rows, row_items = 300_000, 4
        x = self.numbers.integers(-1000, 1000, (rows, row_items)).astype(np.int16)
        source, raw, result, beside = (self.folder / name for name in ("x.npy", "x.raw", "y.npy", "i.npy"))
        np.save(source, x)
        raw.write_bytes(x.tobytes())
        shape = ("--axis", 1, "--row-items", row_items, "--type", "i16", "--format", "raw")
        with Server("--max-arrays", "0") as server:
            def assert_makes(want, *arguments):
                self.ctl(*arguments, source, result, server=server.address)
                got = np.load(result)
                self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
                self.assertTrue(np.array_equal(got, want))

            assert_makes(np.cumsum(x, axis=1, dtype=np.int64), "scan", "--axis", 1, "--out-type", "i64")
            assert_makes(np.diff(x, axis=1, prepend=np.int16(5)), "difference", "--init", 5, "--axis", 1)
            # More values than a reply has room for: of more than two calls.
            assert_makes(x.sum(axis=1, dtype=np.int64), "reduce", "--axis", 1, "--out-type", "i64")
            piped = self.ctl("reduce", *shape, "--op", "max", "-", stdin=x.tobytes(), server=server.address).stdout
            self.assertTrue(piped == x.max(axis=1).tobytes())
            report = self.ctl_json("reduce", "--axis", 1, "--out-type", "i64", source, result, server=server.address)
            self.assertEqual((report["count"], report["timing"]["num_items"]), (x.size, x.size))
            piped = self.ctl("scan", *shape, "-", stdin=x.tobytes(), server=server.address).stdout
            self.assertTrue(piped == np.cumsum(x, axis=1, dtype=np.int16).tobytes())
            self.ctl("scan", "--op", "min", "--axis", 1, "--indices", beside, source, result, server=server.address)
            self.assertTrue(np.array_equal(np.load(result), np.minimum.accumulate(x, axis=1)))
            indices = np.load(beside)
            self.assertEqual(indices.shape, x.shape)
            self.assertTrue(np.array_equal(np.take_along_axis(x, indices.astype(np.int64), 1), np.load(result)))
            want = np.append(np.int16(0), np.cumsum(x, dtype=np.int16))
            self.ctl("scan", "--include-initial", "--type", "i16", raw, result, server=server.address)
            self.assertTrue(np.array_equal(np.load(result), want))
            for command in ("scan", "reduce", "difference"):
                self.assert_fails(command, *shape, "-", stdin=x.tobytes() + b"12", server=server.address,
                                  says="of which 1 came, and 4 are expected")
            self.assert_fails("scan", "--axis", 0, source, result, server=server.address, says="--max-arrays 0")
            self.assert_fails("scan", "--axis", 0, "--row-items", 4, "--type", "i16", "--format", "raw", "-",
                              stdin=x.tobytes(), server=server.address, says="AXIS_ON_STREAM")

    def test_memory_is_bounded(self):
        """However long a row is, and however many there are."""
        chunk = bytes(MESSAGE_BYTES)
        with Server("--max-request-bytes", str(64 << 20), "--max-message-bytes", str(4 << 20)) as server:
            with grpc.insecure_channel(server.address) as channel:
                stub = type(self.stub)(channel)

                def run(method, row_items, num_chunks):
                    spec = {"dtype": types_pb2.DTYPE_F32, "op": SUM, "axis": 1, "row_items": row_items}

                    def requests():
                        yield next(self.requests(method, spec, chunk))
                        for _ in range(num_chunks - 1):
                            yield REQUESTS[method](values=operand(chunk))

                    reply = getattr(stub, "Stream" + method)(requests(), timeout=120)
                    if method == "Reduce":
                        return len(reply.values.inline.data)
                    return sum(len(one.values.inline.data) for one in reply)

                run("Scan", 1000 << 8, 125)
                run("Reduce", 400, 100)
                before = server.memory_kib(peak=True)
                self.assertEqual(run("Scan", 400 << 18, 400), 400 << 20)
                self.assertEqual(run("Scan", 10, 400), 400 << 20)
                self.assertEqual(run("Reduce", 400 << 18, 400), 4)
                self.assertEqual(run("Reduce", 400, 400), (400 << 18) // 400 * 4)
                self.assertLess(server.memory_kib(peak=True) - before, 100 << 10)


if __name__ == "__main__":
    unittest.main()
