"""A caller who does as he should, in a process of his own: what a drill does to him is its verdict.

    with Honest(address) as caller:
        ...
    caller.calls, caller.failures, caller.p99_ms
"""

import json
import pathlib
import subprocess
import sys
import time


class Honest:
    """Scans a small array, or with StreamScan four chunks of 256 KiB, again and again on one connection, from entering,
    when it was answered once, to leaving."""

    def __init__(self, address, method="Scan"):
        self._process = subprocess.Popen([sys.executable, __file__, address, method], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        if self._process.stdout.readline() != "ready\n":
            raise AssertionError("an honest caller was not answered")
        return self

    def __exit__(self, *_):
        said, _ = self._process.communicate("stop\n", timeout=60)
        result = json.loads(said)
        self.calls, self.failures, self.p99_ms = result["calls"], result["failures"], result["p99_ms"]
        self.errors = result["errors"]
        self.queue_p99_ms = result["queue_p99_ms"]  # The part in front of the server's lanes.


def main():
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
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
    with grpc.insecure_channel(sys.argv[1]) as channel:
        stub = primitives_pb2_grpc.PrefixServiceStub(channel)
        began = time.monotonic()
        call(timeout=30)
        print("ready", flush=True)
        seconds, queue_ns, errors = [time.monotonic() - began], [], []
        while not select.select([sys.stdin], [], [], 0.002)[0]:  # Some hundred calls a second leave room for others.
            began = time.monotonic()
            try:
                queue_ns.append(call(timeout=10).timing.queue_ns)
            except grpc.RpcError as error:
                errors.append(f"{error.code().name}: {error.details()}")
            seconds.append(time.monotonic() - began)
    print(json.dumps({"calls": len(seconds), "failures": len(errors), "errors": sorted(set(errors))[:5],
                      "p99_ms": 1000 * float(np.quantile(seconds, 0.99)),
                      "queue_p99_ms": float(np.quantile(queue_ns or [0], 0.99)) / 1e6}))


if __name__ == "__main__":
    main()
