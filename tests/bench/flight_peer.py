"""A peer that one could write in an afternoon instead of prefixd: a scan by CuPy behind Arrow Flight, in Python.

    flight_peer.py STREAMS [PROCESSES]     prints how many GB of f32 a second all streams send together, over loopback

Each stream exchanges 2^26 elements in record batches of 4 MiB. Results come back while batches still go in. The median
of three transfers counts. The callers' streams are threads of PROCESSES processes (default: one for each stream).
Needs pyarrow with Flight, and CuPy with a card.
"""

import multiprocessing
import statistics
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

ITEMS = 1 << 26
BATCH_ITEMS = 1 << 20
TURNS = 3
SCHEMA = pa.schema([("values", pa.float32())])


def serve(port):
    """Serves Flight until the process is ended. Puts the port into the queue `port`."""
    import cupy

    class ScanServer(flight.FlightServerBase):
        def do_exchange(self, context, descriptor, reader, writer):
            writer.begin(SCHEMA)
            carry = np.float32(0)
            for batch in reader:
                values = cupy.asarray(batch.data.column(0).to_numpy(zero_copy_only=True))
                scanned = (cupy.cumsum(values) + carry).get()
                carry = scanned[-1]
                writer.write_batch(pa.record_batch([pa.array(scanned)], schema=SCHEMA))

    cupy.cumsum(cupy.ones(BATCH_ITEMS, cupy.float32)).get()  # Compiles what is compiled at first use.
    server = ScanServer("grpc://127.0.0.1:0")
    port.put(server.port)
    server.serve()


def exchange(client, values):
    """Sends one stream, receives its scan, and returns the last sum."""
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"scan"))

    def send():
        writer.begin(SCHEMA)
        for begin in range(0, ITEMS, BATCH_ITEMS):
            writer.write_batch(pa.record_batch([values.slice(begin, BATCH_ITEMS)], schema=SCHEMA))
        writer.done_writing()

    sender = threading.Thread(target=send)
    sender.start()
    received = 0
    while received < ITEMS:
        data = reader.read_chunk().data
        received += data.num_rows
    sender.join()
    writer.close()
    return data.column(0)[-1].as_py()


def call(port, begin, end):
    """Runs all turns of one stream, and checks the last sum: float32 sums these integers exactly."""
    values = np.random.default_rng().integers(-1, 2, ITEMS).astype(np.float32)
    client = flight.connect(f"grpc://127.0.0.1:{port}")
    array = pa.array(values)
    total = values.sum(dtype=np.float64)
    exchange(client, array)  # The warm-up.
    for _ in range(TURNS):
        begin.wait()
        last = exchange(client, array)
        if last != total:
            end.abort()
            raise ValueError(f"the last sum is {last}, not {total}")
        end.wait()


def call_many(port, begin, end, num_streams):
    threads = [threading.Thread(target=call, args=(port, begin, end)) for _ in range(num_streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    num_streams = int(sys.argv[1])
    num_processes = int(sys.argv[2]) if len(sys.argv) > 2 else num_streams
    processes = multiprocessing.get_context("spawn")
    port = processes.Queue()
    server = processes.Process(target=serve, args=(port,), daemon=True)
    server.start()
    begin, end = processes.Barrier(num_streams + 1), processes.Barrier(num_streams + 1)
    number = port.get(timeout=120)
    callers = [processes.Process(target=call_many, args=(number, begin, end, num_streams // num_processes),
                                 daemon=True) for _ in range(num_processes)]
    for caller in callers:
        caller.start()
    rates = []
    for _ in range(TURNS):
        begin.wait(timeout=120)
        start = time.monotonic()
        end.wait(timeout=120)  # Broken, so that this fails, where a stream was wrong.
        rates.append(num_streams * ITEMS * 4 / 1e9 / (time.monotonic() - start))
    for caller in callers:
        caller.join()
    server.terminate()
    print(f"{statistics.median(rates):.3f}")


if __name__ == "__main__":
    main()
