"""What loopback TCP carries with nothing on top: messages of 1 MiB sent to a server that sends them back.

    tcp_peer.py STREAMS     prints how many GB a second the streams carry in each direction: the median of three turns

Each stream is two processes, a caller and a server. Each has a thread for each direction and never looks at the bytes.
"""

import multiprocessing
import os
import socket
import statistics
import sys
import threading
import time

MESSAGE_BYTES = 1 << 20
MESSAGES = 512
TURNS = 3


def receive(connection, message):
    """Receives bytes until the message is full."""
    count = 0
    while count < MESSAGE_BYTES:
        received = connection.recv_into(message[count:])
        if received == 0:
            raise EOFError("the other end is gone")
        count += received


def serve(port, held):
    """Sends every message back while the next one comes in. It holds at most `held` messages."""
    listener = socket.create_server(("127.0.0.1", 0))
    port.put(listener.getsockname()[1])
    connection, _ = listener.accept()
    messages = [memoryview(bytearray(MESSAGE_BYTES)) for _ in range(held)]
    received, sent = threading.Semaphore(0), threading.Semaphore(held)

    def send():
        for i in range(TURNS * MESSAGES):
            received.acquire()
            connection.sendall(messages[i % held])
            sent.release()

    sender = threading.Thread(target=send)
    sender.start()
    for i in range(TURNS * MESSAGES):
        sent.acquire()
        receive(connection, messages[i % held])
        received.release()
    sender.join()


def call(port, begin, end):
    connection = socket.create_connection(("127.0.0.1", port))
    message, reply = os.urandom(MESSAGE_BYTES), memoryview(bytearray(MESSAGE_BYTES))
    for _ in range(TURNS):
        begin.wait()
        sender = threading.Thread(target=lambda: [connection.sendall(message) for _ in range(MESSAGES)])
        sender.start()
        for _ in range(MESSAGES):
            receive(connection, reply)
        sender.join()
        end.wait()


def main():
    num_streams = int(sys.argv[1])
    processes = multiprocessing.get_context("spawn")
    port = processes.Queue()
    begin, end = processes.Barrier(num_streams + 1), processes.Barrier(num_streams + 1)
    for _ in range(num_streams):
        processes.Process(target=serve, args=(port, 4), daemon=True).start()
        processes.Process(target=call, args=(port.get(timeout=60), begin, end), daemon=True).start()
    rates = []
    for _ in range(TURNS):
        begin.wait(timeout=120)
        start = time.monotonic()
        end.wait(timeout=120)
        rates.append(num_streams * MESSAGES * MESSAGE_BYTES / 1e9 / (time.monotonic() - start))
    print(f"{statistics.median(rates):.3f}")


if __name__ == "__main__":
    main()
