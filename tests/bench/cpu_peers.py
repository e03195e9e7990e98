"""What Python's libraries take for the cases of cpu_bench, on the same data: numpy, and pyarrow and numba if installed.

    cpu_peers.py --csv PATH [--log2-items N,...] [--rounds N] [--seed N] [--filter REGEX]

Prints a line for each case. The file is for `cpu_bench --peers PATH`. Each time is the median of the rounds, in which
all cases take turns, and every sample has cold caches. All work on one thread. Before anything is timed, the results
of pyarrow and numba are compared with numpy's.
"""

import argparse
import csv
import dataclasses
import re
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

FLUSH_BYTES = 64 << 20
DTYPES = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
    "i64": np.int64, "u64": np.uint64, "f32": np.float32, "f64": np.float64,
}
SCANS = ("f32", "f64", "i32", "i64", "u8", "i16")
WIDENING_SCANS = (("u8", "u64"), ("i16", "i32"), ("i32", "i64"), ("f32", "f64"))
WIDENING_REDUCES = (("u8", "u64"), ("f32", "f64"))
ACCUMULATIONS = (("f32", "min"), ("f64", "min"), ("u8", "min"), ("i32", "max"), ("i32", "prod"), ("u8", "xor"))
UFUNCS = {"min": np.minimum, "max": np.maximum, "prod": np.multiply, "xor": np.bitwise_xor}
BESTS = ("f32", "i32", "u8", "f64")
COMPACTS = ("f32", "u8", "i16", "i64")
DIFFERENCES = ("f32", "i32", "u8", "i64")
KEPT = {"": 0.5, " 1%": 0.01, " 99%": 0.99}


def random_bits(seed, count):
    """The first items of the sequence that cpu_bench draws from: splitmix64."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


class Data:
    """The same numbers as in cpu_data.cc."""

    def __init__(self, count, seed):
        self.count = count
        self.bits = random_bits(seed, count)
        self.f64 = (2 * (self.bits >> np.uint64(55)).astype(np.float64) - 511) / 512
        self.f32 = self.f64.astype(np.float32)
        self.i32_factors = (self.bits.astype(np.uint32) | np.uint32(1)).view(np.int32)
        chance = random_bits(seed + 1, count).astype(np.uint32)
        self.masks = {name: chance < kept * 2**32 for name, kept in KEPT.items()}
        self.results = np.ones(count, np.uint64)

    def items(self, name):
        return getattr(self, name) if name in ("f32", "f64") else self.bits.view(DTYPES[name])[: self.count]

    def out(self, name):
        return self.results.view(DTYPES[name])[: self.count]

    @staticmethod
    def threshold(name, kept):
        """Items above it are kept."""
        if name.startswith("f"):
            return DTYPES[name]({"": -1, " 1%": 250, " 99%": -251}[kept] / 256)
        return DTYPES[name](127 if name == "u8" else 0)


@dataclasses.dataclass
class Row:
    case: str
    who: str
    work: Callable
    ms: list = dataclasses.field(default_factory=list)


def exclusive_sum(x, out):
    out[0] = 0
    np.cumsum(x[:-1], out=out[1:], dtype=out.dtype)
    return out


def best(x, op):
    at = x.argmin() if op == "min" else x.argmax()
    return x[at], at


def kept_with_indices(x, kept):
    indices = np.flatnonzero(kept)
    return x[indices], indices


def difference(x, out):
    out[0] = x[0]
    np.subtract(x[1:], x[:-1], out=out[1:])
    return out


def numpy_scans(data):
    for name in SCANS:
        x, out = data.items(name), data.out(name)
        yield f"scan {name} sum", lambda x=x, out=out: np.cumsum(x, out=out, dtype=out.dtype)
    for name in ("f32", "i32"):
        x, out = data.items(name), data.out(name)
        yield f"scan {name} sum exclusive", lambda x=x, out=out: exclusive_sum(x, out)
        yield f"scan {name} sum reverse", lambda x=x, out=out: np.cumsum(x[::-1], out=out[::-1], dtype=out.dtype)
    for name, op in ACCUMULATIONS:
        x, out = data.i32_factors if op == "prod" else data.items(name), data.out(name)
        yield f"scan {name} {op}", lambda x=x, out=out, op=op: UFUNCS[op].accumulate(x, out=out)
    for name, wide in WIDENING_SCANS:
        x, out = data.items(name), data.out(wide)
        yield f"scan {name} to {wide} sum", lambda x=x, out=out: np.cumsum(x, out=out, dtype=out.dtype)


def numpy_reduces(data):
    for name in DTYPES:
        x = data.items(name)
        yield f"reduce {name} sum", lambda x=x: x.sum(dtype=x.dtype)
    for name, wide in WIDENING_REDUCES:
        yield f"reduce {name} to {wide} sum", lambda x=data.items(name), wide=wide: x.sum(dtype=DTYPES[wide])
    for name in BESTS:
        for op in ("min", "max"):
            yield f"reduce {name} {op}", lambda x=data.items(name), op=op: best(x, op)


def numpy_compacts(data):
    for name in COMPACTS:
        x, t = data.items(name), data.threshold(name, "")
        yield f"compact {name} predicate", lambda x=x, t=t: x[x > t]
        yield f"compact {name} byte mask", lambda x=x: x[data.masks[""]]
    x, t, mask = data.f32, data.threshold("f32", ""), data.masks[""]
    yield "compact f32 predicate with indices", lambda: kept_with_indices(x, x > t)
    yield "compact f32 byte mask with indices", lambda: kept_with_indices(x, mask)
    yield "compact f32 predicate inverted", lambda: x[~(x > t)]
    yield "compact f32 byte mask inverted", lambda: x[~mask]
    for kept in (" 1%", " 99%"):
        yield f"compact f32 predicate{kept}", lambda t=data.threshold("f32", kept): x[x > t]
        yield f"compact f32 byte mask{kept}", lambda mask=data.masks[kept]: x[mask]


def numpy_rows(data):
    for cases in (numpy_scans, numpy_reduces, numpy_compacts):
        for case, work in cases(data):
            yield Row(case, "numpy", work)
    for name in BESTS:  # Less work than the case: there is no index.
        yield Row(f"reduce {name} min", "numpy no index", data.items(name).min)
    for name in DIFFERENCES:
        x, out = data.items(name), data.out(name)
        yield Row(f"difference {name}", "numpy", lambda x=x: np.diff(x))
        yield Row(f"difference {name}", "numpy out=", lambda x=x, out=out: difference(x, out))


def pyarrow_rows(data):
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in SCANS:
        yield Row(f"scan {name} sum", "pyarrow", lambda x=pa.array(data.items(name)): pc.cumulative_sum(x))
    for case, name in (("u8 to u64", "u8"), ("f32 to f64", "f32"), ("f64", "f64"), ("i64", "i64"), ("u64", "u64")):
        yield Row(f"reduce {case} sum", "pyarrow", lambda x=pa.array(data.items(name)): pc.sum(x).as_py())
    mask = pa.array(data.masks[""])  # Arrow's masks are of bits.
    for name in COMPACTS:
        x, t = pa.array(data.items(name)), pa.scalar(data.threshold(name, ""))
        yield Row(f"compact {name} predicate", "pyarrow", lambda x=x, t=t: x.filter(pc.greater(x, t)))
        yield Row(f"compact {name} bit mask", "pyarrow", lambda x=x: x.filter(mask))


def numba_loops():
    import numba

    @numba.njit
    def scan(x, out):
        total = x[0]
        out[0] = total
        for i in range(1, len(x)):
            total += x[i]
            out[i] = total
        return out

    @numba.njit
    def reduce(x):
        total = x[0]
        for i in range(1, len(x)):
            total += x[i]
        return total

    @numba.njit
    def compact(x, threshold, out):
        count = 0
        for i in range(len(x)):
            if x[i] > threshold:
                out[count] = x[i]
                count += 1
        return out[:count]

    @numba.njit
    def compact_by_mask(x, mask, out):
        count = 0
        for i in range(len(x)):
            if mask[i]:
                out[count] = x[i]
                count += 1
        return out[:count]

    @numba.njit
    def loop_difference(x, out):
        out[0] = x[0]
        for i in range(1, len(x)):
            out[i] = x[i] - x[i - 1]
        return out

    return scan, reduce, compact, compact_by_mask, loop_difference


def numba_rows(data):
    scan, reduce, compact, compact_by_mask, loop_difference = numba_loops()
    for name in SCANS:
        yield Row(f"scan {name} sum", "numba", lambda x=data.items(name), out=data.out(name): scan(x, out))
    for name in DTYPES:
        x = data.items(name)
        yield Row(f"reduce {name} sum", "numba", lambda x=x: np.asarray(reduce(x)).astype(x.dtype))
    for name in COMPACTS:
        x, out, t = data.items(name), data.out(name), data.threshold(name, "")
        yield Row(f"compact {name} predicate", "numba", lambda x=x, t=t, out=out: compact(x, t, out))
        yield Row(f"compact {name} byte mask", "numba", lambda x=x, out=out: compact_by_mask(x, data.masks[""], out))
    for name in DIFFERENCES:
        yield Row(f"difference {name}", "numba", lambda x=data.items(name), out=data.out(name): loop_difference(x, out))


def rows_of(data, wanted):
    rows = list(numpy_rows(data))
    for library in (pyarrow_rows, numba_rows):
        try:
            rows += library(data)
        except ImportError as error:
            print(f"# left out: {error}", file=sys.stderr)
    return [row for row in rows if wanted.search(row.case)]


def check(rows):
    """Ends the program if numba or pyarrow have another result than numpy has for the case."""
    for row in rows:
        expected = next((other for other in rows if other.case == row.case and other.who == "numpy"), None)
        if expected is None or row.who.startswith("numpy"):
            continue
        right = np.array(expected.work(), ndmin=1)
        if not np.array_equal(right, np.array(row.work(), ndmin=1)[-len(right) :]):  # np.diff lacks the first item.
            sys.exit(f"cpu_peers: {row.case}: {row.who} has another result than numpy")


def measure(rows, rounds):
    flush = np.ones(FLUSH_BYTES // 8)
    for i in range(-1, rounds):
        for row in rows:
            flush.sum()
            begin = time.perf_counter_ns()
            row.work()
            end = time.perf_counter_ns()
            if i >= 0:
                row.ms.append((end - begin) / 1e6)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", required=True, help="the file to write")
    parser.add_argument("--log2-items", default="24", help="the arrays' lengths: powers of two, by their exponents")
    parser.add_argument("--rounds", type=int, default=9, help="how often each row is timed")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the data, as of cpu_bench")
    parser.add_argument("--filter", type=re.compile, default=re.compile(""), help="only cases that this finds")
    options = parser.parse_args()
    with open(options.csv, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("case", "who", "threads", "items", "ms", "min_ms", "max_ms"))
        for log2_items in map(int, options.log2_items.split(",")):
            rows = rows_of(Data(1 << log2_items, options.seed), options.filter)
            check(rows)
            measure(rows, options.rounds)
            for row in rows:
                times = (statistics.median(row.ms), min(row.ms), max(row.ms))
                writer.writerow((row.case, row.who, 1, 1 << log2_items, *(f"{ms:.6g}" for ms in times)))
                print(f"2^{log2_items}  {row.case:36} {row.who:15}", "{:10.3f} ms  {:.3f} .. {:.3f}".format(*times))


if __name__ == "__main__":
    main()
