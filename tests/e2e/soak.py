"""Checks that prefixd's memory stays flat under mixed traffic with random cancellations. No test: it runs by the clock.

    PREFIXD_BIN_DIR=build/release/bin PREFIXD_STUBS_DIR=build/release/tests/e2e/stubs \\
        python3 soak.py [SECONDS [CSV [SVG]]]       600 s by default; from tests/e2e

Three kinds of callers run at once: prefixctl load, which calls MIX, unary and streamed; callers that cancel 1,000 calls
a second at random moments; and four readers that stop reading for a minute, vanish, and come back. Four times a second
the program reads the server's resident memory and its gauges. It prints a row every half minute, writes all rows to CSV
as they come, and plots them to SVG, which needs Matplotlib. From the second third on, memory must not grow. At the end
the server must have given back all memory except what tcmalloc may keep.
"""

import csv
import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time

import numpy as np

from harness import BIN_DIR, Server, grpc, wait_until  # First: it makes the stubs known.
from faults import CHUNK, RELEASED_KIB_PER_SECOND, Requests
from foreign_client_test import chunk, scan_request

from prefixd.v1 import admin_pb2, admin_pb2_grpc, primitives_pb2_grpc

MIX = ("scan:f32:1024=400,reduce:i32:5000=200,compact:f64:20000=100,scan:u8:100001=100,"
       "scan:f32:2^22=4,compact:i16:2^22=4,reduce:f64:2^21=4,scan:f64:2^24=1")
CANCELLATIONS_PER_SECOND = 1000
STALLED_READERS = 4
STALL_SECONDS = 60
ROWS_PER_SECOND = 4
KEPT_MIB = 96  # By tcmalloc in small pieces, 32 of them for its threads, and by the threads that gRPC started.
GROWTH = 1.05  # From the second third to the last, at most.
COLUMNS = ("seconds", "resident_mib", "requests", "request_mib", "staging_mib", "cancelled")


def connect(address):
    channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
    return channel, primitives_pb2_grpc.PrefixServiceStub(channel)


def cancel(address, cancelled, stop, seed, per_second):
    """Starts per_second calls a second, half of them streams, and cancels each within 20 ms unless it has ended."""
    rng = random.Random(seed)
    channel, stub = connect(address)
    small, large = scan_request(CHUNK[:1000]), scan_request(CHUNK)
    under_way = []  # (when, call)
    start, count = time.monotonic(), 0
    while not stop.is_set():
        now = time.monotonic()
        if count < (now - start) * per_second:
            call = stub.Scan.future(small) if rng.random() < 0.5 else stub.StreamScan(iter([large, chunk(CHUNK)]))
            under_way.append((now + rng.random() * 0.02, call))
            count += 1
        elif under_way and min(under_way, key=lambda entry: entry[0])[0] > now:
            time.sleep(0.0005)  # Ahead of both clocks.
        for entry in [entry for entry in under_way if entry[0] <= now]:
            under_way.remove(entry)
            if entry[1].cancel():  # False where it has been answered.
                with cancelled.get_lock():
                    cancelled.value += 1
    channel.close()


def stall(address, stop, failures):
    """Sends all it may, stops reading after the first reply, and vanishes a minute later; again and again."""
    while not stop.is_set():
        channel, stub = connect(address)
        requests = Requests()
        for request in [scan_request(CHUNK)] + [chunk(CHUNK)] * 64:
            requests.put(request)
        requests.end()
        call = stub.StreamScan(iter(requests))
        try:
            next(call)
        except grpc.RpcError as error:
            failures.append(error)
        stop.wait(STALL_SECONDS)
        channel.close()


def sample(server, admin):
    info = admin.GetServerInfo(admin_pb2.GetServerInfoRequest(), timeout=60)
    return {"resident_mib": server.memory_kib() / 1024, "requests": info.requests.used,
            "request_mib": info.request_bytes.used / 2**20, "staging_mib": info.staging_bytes.used / 2**20}


def plot(rows, title, path):
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 3.6))
    minutes = [float(row["seconds"]) / 60 for row in rows]
    for name, label in (("resident_mib", "resident"), ("request_mib", "charged to requests in flight"),
                        ("staging_mib", "pinned memory in use")):
        values = [float(row[name]) for row in rows]
        axes.plot(minutes, values, linewidth=1.2)
        axes.annotate(label, (minutes[-1], np.median(values)), xytext=(4, 0), textcoords="offset points", va="center")
    axes.set(title=title, xlabel="minutes", ylabel="MiB", xlim=(0, minutes[-1]), ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def thirds(values):
    """The median of each third, as text."""
    third = max(1, len(values) // 3)
    return ", ".join(f"{np.median(part):.0f}" for part in (values[:third], values[third:-third], values[-third:]))


def soak(seconds, csv_path, svg_path):
    rows, failures = [], []
    with (Server("--log-level", "off") as server, grpc.insecure_channel(server.address) as channel,
          open(csv_path or os.devnull, "w", newline="", buffering=1) as csv_file):
        writer = csv.DictWriter(csv_file, COLUMNS)
        writer.writeheader()
        admin = admin_pb2_grpc.AdminServiceStub(channel)
        idle = sample(server, admin)
        info = admin.GetServerInfo(admin_pb2.GetServerInfoRequest())
        # Two, for one is too slow for a thousand calls a second.
        context = multiprocessing.get_context("spawn")
        cancelled, stop = context.Value("L", 0), context.Event()
        cancellers = [context.Process(target=cancel, args=(server.address, cancelled, stop, seed,
                                                           CANCELLATIONS_PER_SECOND / 2)) for seed in (1, 2)]
        stalled = [threading.Thread(target=stall, args=(server.address, stop, failures))
                   for _ in range(STALLED_READERS)]
        load = subprocess.Popen(
            [BIN_DIR / "prefixctl", "--server", server.address, "--json", "load", "--mix", MIX, "--callers", "8",
             "--channels", "4", "--seconds", str(seconds), "--warmup-seconds", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for worker in cancellers + stalled:
            worker.start()
        start = time.monotonic()
        print("".join(f"{name:>14}" for name in COLUMNS))
        try:
            while load.poll() is None:
                time.sleep(1 / ROWS_PER_SECOND)  # Until the next row.
                row = {"seconds": time.monotonic() - start, **sample(server, admin), "cancelled": cancelled.value}
                rows.append(row)
                writer.writerow({name: round(row[name], 3) for name in COLUMNS})
                if len(rows) % (30 * ROWS_PER_SECOND) == 0:
                    print("".join(f"{row[name]:14.0f}" for name in COLUMNS), flush=True)
        finally:  # Or a server that died would leave its callers waiting for ever.
            stop.set()
            load.terminate()
        measured = json.loads(load.communicate()[0])
        for worker in cancellers + stalled:
            worker.join()
        # One that is still counted here was never freed.
        wait_until(lambda: all(sample(server, admin)[name] == idle[name]
                               for name in ("requests", "request_mib", "staging_mib")))
        resident = [row["resident_mib"] for row in rows]
        # What is free is given back meanwhile.
        time.sleep((max(resident) - idle["resident_mib"]) * 1024 / RELEASED_KIB_PER_SECOND + 2)
        after = sample(server, admin)

    if svg_path:
        plot(rows, f"prefixd {info.version} on {info.device}: mixed traffic, random cancellations", svg_path)
    total = measured["loads"][0]["total"]
    print(f"{total['requests']} requests answered, {total['failed']} failed; "
          f"{rows[-1]['cancelled']} cancelled, {rows[-1]['cancelled'] / rows[-1]['seconds']:.0f} a second")
    print(f"resident MiB: {idle['resident_mib']:.0f} idle; medians of the three thirds {thirds(resident)}; at most "
          f"{max(resident):.0f}; {after['resident_mib']:.0f} when everything had ended")
    third = len(resident) // 3
    if seconds >= 180 and np.median(resident[-third:]) > GROWTH * np.median(resident[third:-third]):
        sys.exit("memory grows")
    if after["resident_mib"] > idle["resident_mib"] + KEPT_MIB:
        sys.exit("memory was not given back")
    if failures or total["failed"] > 0:
        sys.exit(f"calls failed: {failures[:1] or measured['loads'][0]['errors']}")


if __name__ == "__main__":
    arguments = sys.argv[1:] + [None] * 3
    soak(float(arguments[0] or 600), arguments[1], arguments[2])
