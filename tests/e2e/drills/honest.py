"""Callers who do as they should, in processes of their own: what a drill does to them is its verdict.

    class SomeDrill(Drill):
        def test_something(self):
            with served() as place, self.unharmed(place):
                ...  # Harm.
"""

import contextlib
import functools
import json
import os
import pathlib
import subprocess
import sys
import time
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from drills import front  # noqa: E402

MAX_SLOWER = 10  # Times the p99 of the same callers without the harm.
LEAST_MS = 5  # Below, a p99 is the machine's own: threads wait for a core.
IS_P99_JUDGED = os.environ.get("PREFIXD_DRILLS_P99") != "0"
LEAST_CALLS = 20
MAX_MS = 10_000  # For the slowest call: a p99 does not tell of one that nobody looks after.
LOST_SECONDS = 60  # A call that is not answered by then has failed.
ALONE_SECONDS = 1  # Some hundred calls.


def for_a_while(seconds=2):
    """Again and again, long enough for the p99 of those beside it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield


class Honest:
    """Scans a small array, or with StreamScan four chunks of 256 KiB, again and again on one connection, from entering,
    when it was answered once, to leaving. Then it has `calls`, `failures`, `errors`, `p99_ms`, `slowest_ms`, and
    `queue_p99_ms`, the part in front of the server's lanes."""

    def __init__(self, address, method="Scan"):
        authority = front.authority_for(address) or ""
        self._process = subprocess.Popen([sys.executable, __file__, address, method, authority],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        if self._process.stdout.readline() != "ready\n":
            raise AssertionError("an honest caller was not answered")
        return self

    def next_phase(self):
        """What it would have now if it were left, and begins anew."""
        self._process.stdin.write("next\n")
        self._process.stdin.flush()
        return types.SimpleNamespace(**json.loads(self._process.stdout.readline()))

    def __exit__(self, *_):
        said, _ = self._process.communicate("stop\n", timeout=LOST_SECONDS + 30)
        self.__dict__.update(json.loads(said))


class Figures:
    """What a drill did: how much memory grew by, and the p99 of the slowest honest caller, before and beside."""

    def __init__(self, growth_kib, slowest_ms, failures):
        self.growth_kib, self.slowest_ms, self.failures = growth_kib, slowest_ms, failures

    def line(self, name):
        memory = ", ".join(f"{process} {grown / 1024:+.0f} MiB" for process, grown in self.growth_kib.items())
        before, beside = self.slowest_ms
        return (f"DRILL {name} ({front.WAY}) | memory {memory.removeprefix('server ') or '-'} | "
                f"p99 {before:.1f} -> {beside:.1f} ms | failures {self.failures}")


def worst(figures):
    processes = figures[0].growth_kib
    return Figures({process: max(one.growth_kib[process] for one in figures) for process in processes},
                   max((one.slowest_ms for one in figures), key=slowdown), sum(one.failures for one in figures))


def slowdown(pair_ms, least_ms=LEAST_MS):
    before, beside = pair_ms
    return beside / max(before, least_ms)


def growth_kib(place, rest_kib):
    """At most, since it was at rest."""
    return {name: peak - rest_kib[name] for name, peak in place.memory_kib(peak=True).items()}


class Worse(AssertionError):
    """Honest callers became slower, one of them waited longer, or memory grew more than may be."""


def once_more_if_worse(test):
    """Others use the machine too: a slow call, or what is held while nobody gets a core, counts if it comes twice. A call
    that failed does at once."""
    @functools.wraps(test)
    def run(self):
        try:
            test(self)
        except Worse as worse:
            print(f"once more: {worse}", flush=True)
            self.doCleanups()
            self.setUp()
            test(self)
    return run


class Drill(unittest.TestCase):
    """Each verdict is a line of figures, and so is the worst of them: `DRILL name (way) | memory | p99 | failures`."""

    def __init_subclass__(cls):
        for name, test in list(vars(cls).items()):
            if name.startswith("test_"):
                setattr(cls, name, once_more_if_worse(test))

    @classmethod
    def setUpClass(cls):
        cls._figures = []
        cls.addClassCleanup(cls._sum_up)

    @classmethod
    def _sum_up(cls):
        if cls._figures:
            print("\n" + worst(cls._figures).line(cls.__module__.split(".")[-1]), flush=True)

    @contextlib.contextmanager
    def unharmed(self, place, *callers, alone=contextlib.nullcontext(), alone_seconds=ALONE_SECONDS, **limits):
        """Honest callers, by address and method, or one at the place: for a while alone, or beside what `alone` does,
        then beside the body. At its end judge() judges."""
        with contextlib.ExitStack() as stack:
            starting = [Honest(*caller) for caller in callers or [(place.address,)]]  # All at once.
            honest = [stack.enter_context(caller) for caller in starting]
            with alone:
                time.sleep(alone_seconds)  # While they call.
                before = [caller.next_phase() for caller in honest]
            rest_kib = place.memory_kib()
            for caller in honest:
                caller.next_phase()
            yield
        self.judge(before, honest, growth_kib(place, rest_kib), **limits)

    def judge(self, before, beside, growth_kib, what="p99_ms", max_slower=MAX_SLOWER, least_ms=LEAST_MS,
              max_growth_kib=None):
        """The verdict: no honest call failed, none of the callers became slower than that, and memory grew no more."""
        pairs = [(getattr(first, what), getattr(then, what)) for first, then in zip(before, beside)]
        figures = Figures(growth_kib, max(pairs, key=slowdown), sum(caller.failures for caller in beside))
        self._figures.append(figures)
        line = figures.line(self.id().removeprefix("drills.").replace(f"{type(self).__name__}.test_", ""))
        print("\n" + line, flush=True)
        for caller in (*before, *beside):
            self.assertEqual(caller.failures, 0, f"{line} {caller.errors}")
            self.assertGreaterEqual(caller.calls, LEAST_CALLS, line)
        if IS_P99_JUDGED and any(slowdown(pair, least_ms) > max_slower for pair in pairs):
            raise Worse(f"{line}: more than {max_slower} times as slow")
        slowest_ms = max(caller.slowest_ms for caller in beside)
        if IS_P99_JUDGED and slowest_ms > MAX_MS:
            raise Worse(f"{line}: the slowest call took {slowest_ms:.0f} ms, more than {MAX_MS} ms")
        if max_growth_kib is not None and max(growth_kib.values()) > max_growth_kib:
            raise Worse(f"{line}: more than {max_growth_kib} KiB")


def main():
    import select

    import numpy as np
    from foreign_client_test import scan_request
    from harness import grpc
    from prefixd.v1 import primitives_pb2_grpc

    def scan(timeout):
        return stub.Scan(request, timeout=timeout)

    def stream_scan(timeout):
        return list(stub.StreamScan(iter(chunks), timeout=timeout))[-1]

    request = scan_request(np.ones(256, np.int32))
    chunks = [scan_request(np.ones(1 << 16, np.int32)) for _ in range(4)]
    for chunk in chunks[1:]:
        chunk.ClearField("spec")
    call = stream_scan if sys.argv[2] == "StreamScan" else scan
    with front.channel(sys.argv[1], authority=sys.argv[3]) as channel:
        stub = primitives_pb2_grpc.PrefixServiceStub(channel)
        call(timeout=30)
        print("ready", flush=True)
        line = None
        while line != "stop\n":
            seconds, queue_ns, errors = [], [], []
            while not select.select([sys.stdin], [], [], 0.002)[0]:  # Some hundred calls a second leave room.
                began = time.monotonic()
                try:
                    queue_ns.append(call(timeout=LOST_SECONDS).timing.queue_ns)
                except grpc.RpcError as error:
                    errors.append(f"{error.code().name}: {error.details()}")
                seconds.append(time.monotonic() - began)
            line = sys.stdin.readline()
            print(json.dumps({"calls": len(seconds), "failures": len(errors), "errors": sorted(set(errors))[:5],
                              "p99_ms": 1000 * float(np.quantile(seconds or [0], 0.99)),
                              "slowest_ms": 1000 * max(seconds, default=0),
                              "queue_p99_ms": float(np.quantile(queue_ns or [0], 0.99)) / 1e6}), flush=True)


if __name__ == "__main__":
    main()
