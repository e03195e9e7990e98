"""Resident arrays as callers meet them: what is in them, whose they are, how long they live, how many there may be."""

import concurrent.futures
import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np

from foreign_client_test import DTYPES, FLOATS, reason, scan_request
from harness import Server, grpc, temporary_folder, wait_until
from resident import Arrays, ResidentTest, operand, place
from prefixd.v1 import (admin_pb2, admin_pb2_grpc, arrays_pb2, primitives_pb2, programs_pb2, programs_pb2_grpc,
                        types_pb2)

TOKENS = {"alice": "alice-secret-1", "bob": "bob-secret-2"}


def refusal(call, *arguments, **fields):
    """The code, the reason and the text of the error that it ends with."""
    try:
        call(*arguments, **fields)
    except grpc.RpcError as error:
        return error.code(), reason(error), error.details()
    raise AssertionError("it was not refused")


def usage(server):
    with grpc.insecure_channel(server.address) as channel:
        info = admin_pb2_grpc.AdminServiceStub(channel).GetServerInfo(admin_pb2.GetServerInfoRequest(), timeout=10)
    return info.arrays.used, info.array_bytes.used


class ContentsTest(ResidentTest):
    def fill(self, target, **content):
        return self.arrays.call("FillArray", arrays_pb2.FillArrayRequest(
            array=target, fill=arrays_pb2.Fill(**content)))

    def test_a_new_array_is_zeros_whoever_had_the_memory(self):
        n = 300_001
        for _ in range(5):
            name = self.arrays.upload(np.full(n, -1, np.int64))
            self.arrays.delete(name)
            with Arrays(self.server.address) as others:
                fresh = others.create(np.int64, n)
                np.testing.assert_array_equal(others.read(place(fresh.name)), np.zeros(n))
                others.write(place(fresh.name, 5, 2), np.array([7, 8], np.int64))  # What is not written stays zero.
                got = others.read(place(fresh.name))
                self.assertEqual((got[:5].any(), list(got[5:7]), got[7:].any()), (False, [7, 8], False))
                others.delete(fresh.name)

    def test_every_type_is_filled_written_and_read_in_ranges(self):
        for dtype in DTYPES:
            with self.subTest(dtype=dtype, seed=self.seed):
                n = int(self.numbers.integers(1, 400_000))
                first, count = sorted(int(x) for x in self.numbers.integers(0, n + 1, 2))
                count -= first
                x = (self.numbers.standard_normal(n) * 100).astype(dtype)
                name = self.arrays.upload(x)
                np.testing.assert_array_equal(self.arrays.read(place(name)), x)
                np.testing.assert_array_equal(self.arrays.read(place(name, first, count)), x[first:first + count])
                self.fill(place(name, first, count), value=types_pb2.Scalar(int64_value=5))
                x[first:first + count] = 5
                np.testing.assert_array_equal(self.arrays.read(place(name)), x)
                self.fill(place(name), iota=arrays_pb2.Iota(start=types_pb2.Scalar(int64_value=3)))
                made_in = np.float32 if dtype == np.float16 else dtype if dtype in FLOATS else np.uint64
                expected = (np.arange(n, dtype=made_in) + made_in(3)).astype(dtype)
                np.testing.assert_array_equal(self.arrays.read(place(name)), expected)
                self.arrays.delete(name)

    def test_a_random_stream_is_of_its_seed_and_place_alone(self):
        n = 100_000
        whole = self.arrays.create(np.float32, n, fill=arrays_pb2.Fill(random=arrays_pb2.RandomStream(seed=9))).name
        parts = self.arrays.create(np.float32, n).name
        for first in range(0, n, 33_333):
            self.fill(place(parts, first, min(33_333, n - first)), random=arrays_pb2.RandomStream(seed=9, first=first))
        x = self.arrays.read(place(whole))
        np.testing.assert_array_equal(self.arrays.read(place(parts)), x)
        self.assertTrue(0 <= x.min() < 0.001 and 0.999 < x.max() < 1 and abs(x.mean() - 0.5) < 0.01)
        self.fill(place(parts), random=arrays_pb2.RandomStream(seed=10))
        self.assertGreater(np.count_nonzero(self.arrays.read(place(parts)) != x), n // 2)

    def test_copies_within_and_between_arrays(self):
        x = self.numbers.integers(0, 1000, 1001).astype(np.uint16)
        a, b = self.arrays.upload(x), self.arrays.create(np.uint16, 2000).name

        def copy(source, target):
            return self.arrays.call("CopyArray", arrays_pb2.CopyArrayRequest(**{"from": source}, to=target))

        copy(place(a), place(b, 999))
        np.testing.assert_array_equal(self.arrays.read(place(b, 999)), x)
        copy(place(b, 999, 500), place(b, 0, 500))
        np.testing.assert_array_equal(self.arrays.read(place(b, 0, 500)), x[:500])
        for source, target, expected in (
                (place(b, 0, 500), place(b, 499, 500), "OVERLAP"), (place(b, 0, 5), place(b, 0, 5), "OVERLAP"),
                (place(b, 0, 500), place(b, 1000, 501), "COUNT_MISMATCH"),
                (place(a), place(b, 1000), "SINK_TOO_SMALL"),
                (place(a), place(self.arrays.create(np.int16, 2000).name), "ARRAY_TYPE")):
            self.assertEqual(refusal(copy, source, target)[1], expected)

    def test_one_array_is_written_and_read_over_several_connections(self):
        x = self.numbers.integers(0, 1 << 60, 1_000_003).astype(np.uint64)
        name = self.arrays.create(np.uint64, len(x)).name
        cuts = [0, *sorted(int(c) for c in self.numbers.integers(0, len(x), 7)), len(x)]

        def part(i, method):
            with Arrays(self.server.address) as connection:
                target = place(name, cuts[i], cuts[i + 1] - cuts[i])
                if method == "write":
                    return connection.write(target, x[cuts[i]:cuts[i + 1]])
                return connection.read(target)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: part(i, "write"), range(8)))
            got = np.concatenate(list(pool.map(lambda i: part(i, "read"), range(8))))
        np.testing.assert_array_equal(got, x)

    def test_shapes(self):
        flat = self.arrays.create(np.int8, 7)
        self.assertEqual((list(flat.shape), flat.num_items, flat.num_bytes), ([7], 7, 256))
        matrix = self.arrays.create(np.float64, 30, 50)
        self.assertEqual((list(matrix.shape), matrix.num_items, matrix.num_bytes), ([30, 50], 1500, 12_032))
        self.assertEqual(self.arrays.get(matrix.name), matrix)
        empty = self.arrays.create(np.int8, 0)
        self.assertEqual(self.arrays.read(place(empty.name)).size, 0)
        for shape in ((), (1, 2, 3), (2**63, 4), (2**62,), (2**32, 2**32)):
            self.assertEqual(refusal(self.arrays.create, np.int64, *shape)[:2],
                             (grpc.StatusCode.INVALID_ARGUMENT, "SHAPE"), shape)
        self.assertEqual(refusal(self.arrays.create, np.int64, 5, device_index=1)[1], "NOT_IMPLEMENTED")

    def test_a_stream_that_breaks_off_is_no_write(self):
        name = self.arrays.create(np.int32, 10).name
        request = arrays_pb2.WriteArrayRequest(array=place(name), announces_end=True, values=operand(b"1234"))
        self.assertEqual(refusal(self.arrays.call, "WriteArray", iter([request]))[1], "INCOMPLETE")
        request = arrays_pb2.WriteArrayRequest(array=place(name, 0, 2), values=operand(b"1234"))
        self.assertEqual(refusal(self.arrays.call, "WriteArray", iter([request]))[1], "COUNT_MISMATCH")
        self.assertEqual(refusal(self.arrays.call, "WriteArray", iter([]))[1], "SPEC_MISSING")

    def test_a_range_that_is_written_is_nobody_elses_until_the_call_ends(self):
        name = self.arrays.create(np.int32, 1000).name
        go_on = threading.Event()
        began = threading.Event()

        def requests():
            yield arrays_pb2.WriteArrayRequest(array=place(name, 0, 500), values=operand(bytes(4 * 100)))
            began.set()
            go_on.wait(60)
            yield arrays_pb2.WriteArrayRequest(values=operand(bytes(4 * 400)))

        writing = self.arrays.stub.WriteArray.future(requests(), timeout=60)
        self.addCleanup(go_on.set)
        self.assertTrue(began.wait(60))
        scan = scan_request(np.ones(0, np.int32))

        def scanned(source):
            scan.values.CopyFrom(operand(source))
            return self.arrays.primitives.Scan(scan, timeout=60)

        wait_until(lambda: self.is_in_use(lambda: scanned(place(name, 499, 1))))
        for call in (lambda: scanned(place(name)), lambda: self.arrays.write(place(name, 0, 1), np.ones(1, np.int32)),
                     lambda: self.fill(place(name, 499, 2), value=types_pb2.Scalar(int64_value=1))):
            self.assertEqual(refusal(call)[:2], (grpc.StatusCode.ABORTED, "ARRAY_IN_USE"))
        scanned(place(name, 500))  # Beside it.
        self.arrays.delete(name)  # What uses it ends as if it were there.
        go_on.set()
        self.assertEqual(writing.result(60).timing.num_items, 500)
        self.assertEqual(refusal(self.arrays.get, name)[1], "ARRAY_EXPIRED")

    def is_in_use(self, call):
        try:
            call()
        except grpc.RpcError as error:
            return reason(error) == "ARRAY_IN_USE"
        return False

    def test_names_that_are_none(self):
        name = self.arrays.create(np.int32, 1).name
        instance, secret = name.removeprefix("arrays/").split("-")
        other = "0" * 16 if instance != "0" * 16 else "1" * 16
        for wrong, code, expected in (
                ("", grpc.StatusCode.INVALID_ARGUMENT, "ARRAY_NAME"),
                (name + "0", grpc.StatusCode.INVALID_ARGUMENT, "ARRAY_NAME"),
                (name.upper(), grpc.StatusCode.INVALID_ARGUMENT, "ARRAY_NAME"),
                (f"arrays/{instance}-{secret[::-1]}", grpc.StatusCode.NOT_FOUND, "ARRAY_UNKNOWN"),
                (f"arrays/{other}-{secret}", grpc.StatusCode.NOT_FOUND, "ARRAY_ELSEWHERE")):
            for call in (self.arrays.get, self.arrays.delete, lambda n: self.arrays.read(place(n)),
                         lambda n: self.fill(place(n)), lambda n: self.arrays.write(place(n), np.ones(1, np.int32))):
                self.assertEqual(refusal(call, wrong)[:2], (code, expected), wrong)
        self.assertEqual(len({self.arrays.create(np.int32, 1).name for _ in range(100)}), 100)


class LifeTest(unittest.TestCase):
    def lifetime(self, seconds, renew_on_use=False):
        lifetime = arrays_pb2.Lifetime(renew_on_use=renew_on_use)
        lifetime.ttl.FromMilliseconds(int(seconds * 1000))
        return lifetime

    def test_an_array_expires_and_says_so(self):
        with Server() as server, Arrays(server.address) as arrays:
            short = arrays.create(np.int32, 1000, lifetime=self.lifetime(0.2))
            self.assertAlmostEqual(short.expire_time.ToMilliseconds() - short.create_time.ToMilliseconds(), 200, delta=1)
            self.assertEqual(arrays.create(np.int32, 1).ttl.seconds, 600)
            wait_until(lambda: usage(server)[0] == 1)  # Nobody has asked for it.
            self.assertEqual(refusal(arrays.get, short.name)[:2], (grpc.StatusCode.NOT_FOUND, "ARRAY_EXPIRED"))
            for wrong in (0, -1, 86_401):
                self.assertEqual(refusal(arrays.create, np.int32, 1, lifetime=self.lifetime(wrong))[1], "LIFETIME")

    def test_use_or_a_call_begins_the_time_anew(self):
        with Server() as server, Arrays(server.address) as arrays:
            used = arrays.create(np.int32, 10, lifetime=self.lifetime(60, renew_on_use=True))
            left = arrays.create(np.int32, 10, lifetime=self.lifetime(60))
            for array in (used, left):
                arrays.read(place(array.name))
            self.assertGreater(arrays.get(used.name).expire_time.ToNanoseconds(), used.expire_time.ToNanoseconds())
            self.assertEqual(arrays.get(left.name).expire_time, left.expire_time)
            renewed = arrays.call("RenewArray", arrays_pb2.RenewArrayRequest(
                name=left.name, lifetime=self.lifetime(120))).array
            self.assertEqual(renewed.ttl.seconds, 120)
            self.assertGreater(renewed.expire_time.seconds, left.expire_time.seconds + 50)

    def test_there_are_budgets_and_nothing_is_taken_away_for_others(self):
        limit = 64 << 20
        with Server("--max-arrays", "20", "--max-array-bytes", str(limit)) as server, Arrays(server.address) as arrays:
            kept = [arrays.create(np.int8, 4 << 20).name for _ in range(7)]  # Half of it is a caller's.
            code, why, text = refusal(arrays.create, np.int8, limit // 2)
            self.assertEqual((code, why), (grpc.StatusCode.RESOURCE_EXHAUSTED, "ARRAY_BUDGET"))
            self.assertIn("--max-array-bytes", text)
            scan = scan_request(np.ones(0, np.int32))
            scan.sink.new_array.SetInParent()
            scan.values.CopyFrom(operand(np.ones(1 << 18, np.int32).tobytes()))
            small = []
            with self.assertRaises(grpc.RpcError) as caught:
                while True:
                    small.append(arrays.create(np.int8, 1).name)
            self.assertEqual(reason(caught.exception), "ARRAY_BUDGET")
            self.assertEqual(refusal(arrays.primitives.Scan, scan, timeout=60)[1], "ARRAY_BUDGET")
            for name in kept + small:
                arrays.get(name)
                arrays.delete(name)
            arrays.primitives.Scan(scan, timeout=60)
            wait_until(lambda: usage(server)[0] == 1)

    def test_none_are_held_where_the_operator_wants_none(self):
        with Server("--max-arrays", "0") as server, Arrays(server.address) as arrays:
            self.assertEqual(refusal(arrays.create, np.int8, 1)[:2], (grpc.StatusCode.UNIMPLEMENTED, "NOT_IMPLEMENTED"))
            scan = scan_request(np.ones(5, np.int32))
            scan.sink.new_array.SetInParent()
            self.assertEqual(refusal(arrays.primitives.Scan, scan)[1], "NOT_IMPLEMENTED")

    def test_an_array_is_its_callers_and_those_without_a_name_share_secrets(self):
        folder = temporary_folder(self.addCleanup)
        tokens = folder / "tokens"
        tokens.write_text("".join(f"{name} {hashlib.sha256(token.encode()).hexdigest()}\n"
                                  for name, token in TOKENS.items()))
        socket = f"unix:{folder}/prefixd.sock"
        with Server("--token-file", tokens, "--listen", socket) as server:
            alice, bob = (Arrays(socket, (("authorization", f"Bearer {TOKENS[name]}"),)) for name in ("alice", "bob"))
            with alice, bob:
                names = sorted(alice.create(np.int32, 4).name for _ in range(5))
                for call in (bob.get, bob.delete, lambda n: bob.read(place(n))):
                    self.assertEqual(refusal(call, names[0])[:2], (grpc.StatusCode.NOT_FOUND, "ARRAY_UNKNOWN"))

                def pages(arrays, size):
                    token = ""
                    while True:
                        page = arrays.call("ListArrays", arrays_pb2.ListArraysRequest(page_size=size, page_token=token))
                        yield [array.name for array in page.arrays]
                        token = page.next_page_token
                        if not token:
                            return

                self.assertEqual(list(pages(alice, 2)), [names[:2], names[2:4], names[4:]])
                self.assertEqual(list(pages(alice, 0)), [names])
                self.assertEqual(list(pages(bob, 0)), [[]])
                alice.delete(names[0])
                self.assertEqual(refusal(alice.get, names[0])[1], "ARRAY_EXPIRED")
                self.assertEqual(refusal(bob.get, names[0])[1], "ARRAY_UNKNOWN")
            server.wait_for_log('method="CreateArray"')
        with Server() as server, Arrays(server.address) as one, Arrays(server.address) as other:
            name = one.create(np.int32, 4).name
            self.assertEqual(other.read(place(name)).size, 4)
            self.assertEqual(refusal(one.call, "ListArrays", arrays_pb2.ListArraysRequest())[:2],
                             (grpc.StatusCode.PERMISSION_DENIED, "LIST_NEEDS_NAME"))

    def test_what_a_killed_caller_had_comes_back(self):
        with Server("--log-lines-per-second", "0") as server:
            rounds = int(os.environ.get("PREFIXD_KILLED_CALLERS", "3"))
            server.wait_for_log(", device ")
            # In one of them at least a program was under way, and not just between two. It takes some milliseconds.
            num_items = 1 << (18 if ", device cpu " in server.log() else 26)
            was_cut = r'method="Run" .*status="CANCELLED"'
            while rounds > 0 or not re.search(was_cut, server.log()):
                rounds -= 1
                self.assertGreater(rounds, -50, "no program was cut")
                caller = subprocess.Popen([sys.executable, __file__, server.address, str(num_items)],
                                          stdout=subprocess.PIPE, text=True)
                self.assertEqual(caller.stdout.readline(), "has 100\n")
                caller.send_signal(signal.SIGKILL)
                caller.wait()
                caller.stdout.close()
            wait_until(lambda: usage(server) == (0, 0))
            with Arrays(server.address) as arrays:
                x = np.arange(1000, dtype=np.int32)
                np.testing.assert_array_equal(arrays.read(place(arrays.upload(x))), x)

    def test_many_creations_and_deletions_leave_nothing(self):
        rounds = int(os.environ.get("PREFIXD_ARRAY_ROUNDS", "1000"))
        with Server() as server, Arrays(server.address) as arrays:
            def some(count):
                for _ in range(count):
                    arrays.delete(arrays.create(np.int32, 25_000).name)  # What is kept of these shows: 100 MB.
            some(rounds)
            before = server.memory_kib()
            some(rounds)
            self.assertLess(server.memory_kib() - before, 32 * 1024)
            wait_until(lambda: usage(server) == (0, 0))


def long_program(name):
    """As many steps as a program may have: scans, each of the one before, and a sum, so that little comes back."""
    program = programs_pb2.RunRequest()
    program.inputs.add(name="x0").values.CopyFrom(operand(place(name)))
    for i in range(63):
        scan = program.steps.add().scan
        scan.spec.dtype, scan.spec.op = types_pb2.DTYPE_I32, types_pb2.OP_SUM
        scan.values, scan.out = f"x{i}", f"x{i + 1}"
    total = program.steps.add().reduce
    total.spec.dtype, total.spec.op, total.values, total.out = types_pb2.DTYPE_I32, types_pb2.OP_SUM, "x63", "total"
    program.outputs.add(name="total")
    return program


def hold_a_hundred(address, num_items):
    """A caller who is killed: arrays, and calls under way that use them: programs on one of num_items, and a write. They
    have little time left, from when all is under way."""
    arrays = Arrays(address)
    names = [arrays.create(np.int32, 10_000).name for _ in range(99)]
    names.append(arrays.create(np.int32, num_items).name)
    run = programs_pb2_grpc.ProgramServiceStub(arrays.channel).Run
    one_ran = threading.Event()

    def run_programs():
        while True:
            run(long_program(names[-1]), timeout=60)
            one_ran.set()

    for _ in range(4):
        threading.Thread(target=run_programs, daemon=True).start()
    one_ran.wait(60)

    def requests():
        yield arrays_pb2.WriteArrayRequest(array=place(names[0]), values=operand(bytes(4)))
        lifetime = arrays_pb2.Lifetime()
        lifetime.ttl.FromMilliseconds(1500)
        for name in names:
            arrays.call("RenewArray", arrays_pb2.RenewArrayRequest(name=name, lifetime=lifetime))
        print("has 100", flush=True)
        time.sleep(60)  # It is killed meanwhile.

    arrays.call("WriteArray", requests())


if __name__ == "__main__":
    hold_a_hundred(sys.argv[1], int(sys.argv[2]))
