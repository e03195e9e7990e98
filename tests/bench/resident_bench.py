"""What calls on resident arrays take: beside a bare echo, the kernels inside them, and NumPy on one core, in one run.

    PREFIXD_BIN_DIR=build/release/bin PREFIXD_STUBS_DIR=build/release/tests/e2e/stubs \\
        python3 tests/bench/resident_bench.py [NUM_ITEMS] [ROUNDS]

NUM_ITEMS: of the large arrays, 2^28 by default. ROUNDS: creations and deletions, 20,000 by default.
PREFIXD_E2E_DEVICE: the --device. Medians, in microseconds; "rest" is the call less its kernels and the echo.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
import numpy as np  # noqa: E402
from arrays_test import usage  # noqa: E402
from harness import Server  # noqa: E402
from programs_test import program  # noqa: E402
from resident import Arrays, operand, place  # noqa: E402
from prefixd.v1 import arrays_pb2, diagnostics_pb2, diagnostics_pb2_grpc, primitives_pb2, programs_pb2_grpc, types_pb2  # noqa: E402,E501

LARGE = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 28
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000


def median(call, repetitions):
    """Microseconds, and what the median call returned."""
    runs = []
    for _ in range(repetitions):
        began = time.perf_counter()
        result = call()
        runs.append(((time.perf_counter() - began) * 1e6, result))
    return sorted(runs, key=lambda run: run[0])[repetitions // 2]


def row(name, micros, timing, kernels, echo):
    print(f"{name:<42}{micros:>10.1f}{timing.server_total_ns / 1e3:>10.1f}{kernels:>10.1f}{micros - kernels - echo:>10.1f}",
          flush=True)


def request_of(kind, dtype, source, target=None):
    request = kind(values=operand(place(source)))
    request.spec.dtype, request.spec.op = dtype, types_pb2.OP_SUM
    if target:
        request.sink.array.name = target
    return request


def main():
    with Server("--log-level", "warn", "--caller-share-percent", "100") as server, Arrays(server.address) as arrays:
        echo = diagnostics_pb2_grpc.DiagnosticsServiceStub(arrays.channel).Echo
        for _ in range(300):
            echo(diagnostics_pb2.EchoRequest())
        bare = median(lambda: echo(diagnostics_pb2.EchoRequest()), 1000)[0]
        random = arrays_pb2.Fill(random=arrays_pb2.RandomStream(seed=1))
        x, y = (arrays.create(np.float32, LARGE, fill=random).name for _ in range(2))
        print(f"{'':<42}{'call':>10}{'server':>10}{'kernels':>10}{'rest':>10}\n{'bare echo':<42}{bare:>10.1f}")
        scan = request_of(primitives_pb2.ScanRequest, types_pb2.DTYPE_F32, x, y)
        arrays.primitives.Scan(scan)
        micros, reply = median(lambda: arrays.primitives.Scan(scan), 60)
        row(f"scan of {LARGE} f32 into another", micros, reply.timing, reply.timing.kernel_ns / 1e3, bare)
        reduce = request_of(primitives_pb2.ReduceRequest, types_pb2.DTYPE_F32, x)
        micros, reply = median(lambda: arrays.primitives.Reduce(reduce), 60)
        row(f"reduce of {LARGE} f32", micros, reply.timing, reply.timing.kernel_ns / 1e3, bare)
        steps = [{"compact": {"spec": {"dtype": "DTYPE_F32", "predicate": {
                      "comparison": "COMPARISON_GREATER", "value": {"double_value": 0.5}}}, "values": "x", "out": "kept"}},
                 {"scan": {"spec": {"dtype": "DTYPE_F32", "op": "OP_SUM"}, "values": "kept", "out": "sums"}},
                 {"reduce": {"spec": {"dtype": "DTYPE_F32", "op": "OP_SUM"}, "values": "kept", "out": "total"}}]
        run = program({"x": place(x)}, steps, {"total": None, "sums": {"array": {"name": y}}})
        stub = programs_pb2_grpc.ProgramServiceStub(arrays.channel)
        stub.Run(run)
        micros, reply = median(lambda: stub.Run(run), 30)
        row("program compact, scan, reduce on it", micros, reply.timing, sum(s.kernel_ns for s in reply.steps) / 1e3, bare)
        small, out = arrays.create(np.float32, 1024).name, arrays.create(np.float32, 1024).name
        scan = request_of(primitives_pb2.ScanRequest, types_pb2.DTYPE_F32, small, out)
        for _ in range(300):
            arrays.primitives.Scan(scan)
        micros, reply = median(lambda: arrays.primitives.Scan(scan), 2000)
        row("scan of 1024 f32 into another", micros, reply.timing, reply.timing.kernel_ns / 1e3, bare)
        arrays.delete(x)
        arrays.delete(y)

        values = np.ones(LARGE, np.int32)
        began = time.perf_counter()
        values.sum(dtype=np.int32)
        summed = time.perf_counter()
        np.cumsum(values, dtype=np.int32)
        print(f"NumPy, {LARGE} i32: sum {(summed - began) * 1e3:.0f} ms, cumsum {(time.perf_counter() - summed) * 1e3:.0f} ms")
        ones = arrays_pb2.Fill(value=types_pb2.Scalar(int64_value=1))
        z = arrays.create(np.int32, LARGE, fill=ones).name
        reduce = request_of(primitives_pb2.ReduceRequest, types_pb2.DTYPE_I32, z)
        micros, reply = median(lambda: arrays.primitives.Reduce(reduce), 40)
        row(f"reduce of {LARGE} i32", micros, reply.timing, reply.timing.kernel_ns / 1e3, bare)
        scan = request_of(primitives_pb2.ScanRequest, types_pb2.DTYPE_I32, z, z)
        micros, reply = median(lambda: arrays.primitives.Scan(scan), 40)
        row(f"scan of {LARGE} i32 in place", micros, reply.timing, reply.timing.kernel_ns / 1e3, bare)

        before, host = usage(server), server.memory_kib()
        began = time.perf_counter()
        for i in range(ROUNDS):
            arrays.delete(arrays.create(np.int32, 1000 + i % 100_000).name)
        each = (time.perf_counter() - began) / ROUNDS * 1e6
        print(f"{ROUNDS} creations and deletions: {each:.0f} us each; arrays and bytes {before} -> {usage(server)}, "
              f"host memory {host >> 10} -> {server.memory_kib() >> 10} MiB")


if __name__ == "__main__":
    main()
