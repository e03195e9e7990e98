"""Metrics of a real server: they are clean, they tell what was called, and no scraper holds up another."""

import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import numpy as np

from drills.honest import Honest
from foreign_client_test import chunk, reason, scan_request
from harness import LIMIT_SECONDS, Server, grpc, wait_until
from prefixd.v1 import diagnostics_pb2, diagnostics_pb2_grpc, primitives_pb2_grpc, types_pb2

ALERTS = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "prometheus_alerts.yaml"
# One line of the text format: a name, labels, a value.
LINE = re.compile(r'(\w+)(?:\{(.*)\})? (\S+)$')
# As in server/metrics/endpoint.h.
MAX_SCRAPERS = 16
SCRAPER_SECONDS = 5


class MeteredServer(Server):
    """A server with metrics, and what they say."""

    def __init__(self, *flags, listen="0"):
        super().__init__("--metrics-listen", listen, *flags)
        pattern = re.compile(r"metrics on (\S+):\d+ \(port (\d+)\)")
        wait_until(lambda: pattern.search(self.log()))
        host, port = pattern.search(self.log()).groups()
        self.scraped = (host.strip("[]"), int(port))

    def request(self, method="GET", path="/metrics"):
        with contextlib.closing(http.client.HTTPConnection(*self.scraped, timeout=LIMIT_SECONDS)) as connection:
            connection.request(method, path)
            response = connection.getresponse()
            return response, response.read().decode()

    def page(self):
        response, text = self.request()
        assert response.status == 200, response.status
        assert response.getheader("Content-Type").startswith("text/plain; version=0.0.4"), response.getheaders()
        return text

    def metrics(self):
        """The series by name, each a dictionary from its labels' values, without the empty ones, to its value."""
        series = collections.defaultdict(dict)
        for line in self.page().splitlines():
            if not line.startswith("#"):
                name, labels, value = LINE.match(line).groups()
                values = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")
                series[name][tuple(value for _, value in sorted(values) if value)] = float(value)
        return series

    def value(self, name, *labels):
        return self.metrics()[name].get(labels, 0)


def then_wait(request, future):
    yield request
    future.result(LIMIT_SECONDS)


class MetricsTest(unittest.TestCase):
    def test_they_tell_what_was_called(self):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        rng = random.Random(seed)
        with MeteredServer() as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            echo = diagnostics_pb2_grpc.DiagnosticsServiceStub(channel)
            calls, elements, received, sent = (collections.Counter() for _ in range(4))

            def note(method, code, why="", items=0, came=0, went=0):
                calls[tuple(word for word in (code, method, why) if word)] += 1
                elements[method] += items
                received[method] += came
                sent[method] += went

            for _ in range(200):
                x = np.ones(rng.randrange(1, 5000), rng.choice([np.int8, np.int32, np.float64]))
                kind = rng.randrange(5)
                if kind == 0:
                    stub.Scan(scan_request(x))
                    note("Scan", "OK", "", len(x), x.nbytes, x.nbytes)
                elif kind == 1:
                    list(stub.StreamScan(iter([scan_request(x), chunk(x)])))
                    note("StreamScan", "OK", "", 2 * len(x), 2 * x.nbytes, 2 * x.nbytes)
                elif kind == 2:
                    with self.assertRaises(grpc.RpcError) as caught:
                        stub.Scan(scan_request(x, op=types_pb2.OP_UNSPECIFIED))
                    note("Scan", caught.exception.code().name, reason(caught.exception))
                elif kind == 3:
                    with self.assertRaises(grpc.RpcError):
                        stub.Scan(chunk(x))  # Its spec is missing.
                    note("Scan", "INVALID_ARGUMENT", "SPEC_MISSING", 0, x.nbytes, 0)
                else:
                    message = diagnostics_pb2.EchoRequest(data=bytes(rng.randrange(100)))
                    echo.Echo(message)
                    size = message.ByteSize()
                    note("Echo", "OK", "", 0, size, size)
            wait_until(lambda: sum(server.metrics()["prefixd_requests_total"].values()) == 200)
            metrics = server.metrics()
            self.assertEqual(metrics["prefixd_requests_total"], calls)
            for name, counted in [("elements", elements), ("received_bytes", received), ("sent_bytes", sent)]:
                with self.subTest(name):
                    self.assertEqual({method: value for (method,), value in metrics[f"prefixd_{name}_total"].items()},
                                     counted)
            for method in received:
                timed = metrics["prefixd_request_duration_seconds_count"][(method,)]
                self.assertEqual(timed, sum(n for labels, n in calls.items() if labels[1] == method))
                self.assertGreater(metrics["prefixd_request_duration_seconds_sum"][(method,)], 0)

    def test_promtool_has_nothing_to_say(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("needs promtool (deploy/install_deps.sh test)")
        with MeteredServer() as server:
            for calls in range(2):  # Before the first call, too.
                done = subprocess.run([promtool, "check", "metrics"], input=server.page(), text=True,
                                      capture_output=True, timeout=LIMIT_SECONDS)
                self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
                with grpc.insecure_channel(server.address) as channel:
                    primitives_pb2_grpc.PrefixServiceStub(channel).Scan(scan_request(np.ones(3, np.int32)))
                wait_until(lambda: server.metrics()["prefixd_requests_total"])

    def test_alerts_fire_when_they_should(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("needs promtool (deploy/install_deps.sh test)")

        def requests(code, why, values):
            return {"series": f'prefixd_requests_total{{job="prefixd",instance="a",method="Scan",code="{code}",'
                              f'reason="{why}"}}', "values": values}

        started = {"series": 'process_start_time_seconds{job="prefixd",instance="a"}'}
        ok, steady = requests("OK", "", "0+1000x40"), {**started, "values": "7x40"}
        cases = [
            ([ok, steady], None),
            ([ok, steady, requests("INTERNAL", "", "0+1x40")], "PrefixdFails"),
            ([ok, steady, requests("UNAVAILABLE", "DEVICE_LOST", "0+1x40")], "PrefixdFails"),
            ([ok, steady, requests("UNAVAILABLE", "DRAINING", "0+1x40")], None),
            ([ok, steady, requests("INVALID_ARGUMENT", "MASK_LENGTH", "0+900x40")], None),
            ([ok, steady, requests("RESOURCE_EXHAUSTED", "BYTE_BUDGET", "0+5x40")], None),
            ([ok, steady, requests("RESOURCE_EXHAUSTED", "BYTE_BUDGET", "0+50x40")], "PrefixdRefuses"),
            ([ok, {**started, "values": "0+9x40"}], "PrefixdRestarts"),
        ]
        names = re.findall(r"alert: (\w+)", ALERTS.read_text())
        self.assertEqual(set(names), {fires for _, fires in cases if fires})
        with tempfile.TemporaryDirectory(prefix="prefixd_e2e_") as folder:
            for series, fires in cases:
                # Each alert of the others is expected not to fire; this one, to do so.
                rules = pathlib.Path(folder, "test.yaml")
                rules.write_text(json.dumps({
                    "rule_files": [str(ALERTS)],
                    "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": [
                        {"expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})', "eval_time": "30m",
                         "exp_samples": [{"labels": "{}", "value": 1}] if name == fires else []} for name in names]}]}))
                done = subprocess.run([promtool, "test", "rules", rules], text=True, capture_output=True,
                                      timeout=LIMIT_SECONDS)
                self.assertEqual(done.returncode, 0, (fires, series[-1], done.stdout, done.stderr))
        with MeteredServer() as server, Honest(server.address):
            wait_until(lambda: server.metrics()["prefixd_requests_total"])
            page = server.page()
            for name in re.findall(r"(?:prefixd|process)_\w+(?=\{)", ALERTS.read_text()):
                self.assertIn(f"# TYPE {name} ", page)

    def test_budgets_in_use_and_refusals(self):
        with MeteredServer("--max-requests", "2", "--caller-share-percent", "100") as server, grpc.insecure_channel(server.address) as channel:
            stub = primitives_pb2_grpc.PrefixServiceStub(channel)
            with contextlib.ExitStack() as streams:
                for _ in range(2):
                    held = concurrent.futures.Future()
                    call = stub.StreamScan(then_wait(scan_request(np.ones(3, np.int32)), held))
                    next(call)
                    streams.callback(list, call)
                    streams.callback(held.set_result, None)
                with self.assertRaises(grpc.RpcError):
                    stub.Scan(scan_request(np.ones(3, np.int32)))
                wait_until(lambda: server.value("prefixd_requests_total", "RESOURCE_EXHAUSTED", "Scan",
                                                "REQUEST_BUDGET") == 1)
                self.assertEqual(server.value("prefixd_requests_in_flight"), 2)
                self.assertEqual(server.value("prefixd_requests_in_flight_limit"), 2)
                self.assertGreaterEqual(server.value("prefixd_request_memory_bytes"), 2 * 20 * 1024)  # Two streams.
            wait_until(lambda: server.value("prefixd_requests_in_flight") == 0)

    def test_callers_are_named_only_where_that_is_asked_for(self):
        for flags in [(), ("--metrics-callers", "1")]:
            with MeteredServer(*flags) as server:
                with Honest(server.address) as caller:
                    pass
                num_calls = caller.calls + 1  # With the one that it begins with.
                wait_until(lambda: server.value("prefixd_requests_total", "OK", "Scan") == num_calls)
                callers = server.metrics()["prefixd_caller_requests_total"]
                if flags:
                    ((name, code), calls), = callers.items()
                    self.assertIn("127.0.0.1", name)
                    self.assertEqual((code, calls), ("OK", num_calls))
                else:
                    self.assertEqual(callers, {})
                    self.assertNotIn("127.0.0.1", server.page())

    def test_they_stay_while_the_server_drains(self):
        with MeteredServer() as server, grpc.insecure_channel(server.address) as channel:
            held = concurrent.futures.Future()
            request = scan_request(np.ones(3, np.int32))
            call = primitives_pb2_grpc.PrefixServiceStub(channel).StreamScan(then_wait(request, held))
            next(call)
            server.process.send_signal(signal.SIGTERM)
            server.wait_for_log("draining")
            self.assertEqual(server.value("prefixd_requests_in_flight"), 1)
            held.set_result(None)
            list(call)
            self.assertEqual(server.process.wait(LIMIT_SECONDS), 0)
            with self.assertRaises(ConnectionError):
                server.page()

    def test_connections(self):
        with MeteredServer("--max-connections", "6") as server:  # One address has half of them.
            host, port = server.address.split(":")
            connections = [socket.create_connection((host, int(port))) for _ in range(5)]
            wait_until(lambda: server.value("prefixd_connections_refused_total") == 2)
            self.assertEqual(server.value("prefixd_connections"), 3)
            self.assertEqual(server.value("prefixd_connections_limit"), 6)
            self.assertEqual(server.value("prefixd_connections_accepted_total"), 3)
            for connection in connections:
                connection.close()
            wait_until(lambda: server.value("prefixd_connections") == 0)

    def test_log_lines_that_were_dropped(self):
        with MeteredServer("--log-lines-per-second", "1") as server:
            with Honest(server.address):
                wait_until(lambda: server.value("prefixd_log_lines_dropped_total", "rate") > 10)

    def test_memory_and_build(self):
        with MeteredServer("--cpu-isa", "auto") as server:
            resident = server.value("process_resident_memory_bytes")
            self.assertGreater(resident, 8 << 20)
            self.assertLess(abs(resident - (server.memory_kib() << 10)), 64 << 20)
            self.assertGreater(server.value("prefixd_memory_in_use_bytes"), 1 << 20)
            (labels,) = server.metrics()["prefixd_build_info"]
            self.assertEqual(len(labels), 4)
            self.assertLess(abs(time.time() - server.value("process_start_time_seconds")), LIMIT_SECONDS)

    def test_only_the_page_is_served(self):
        with MeteredServer() as server:
            for method, path, status in [("GET", "/metrics?x=y", 200), ("HEAD", "/metrics", 200), ("GET", "/", 404),
                                         ("POST", "/metrics", 405), ("GET", "/" + "x" * 9000, 431)]:
                with self.subTest(method=method, path=path[:20]):
                    response, body = server.request(method, path)
                    self.assertEqual(response.status, status)
                    self.assertEqual(body == "", method == "HEAD")
            for garbage in [b"\r\n\r\n", b"GET /metrics\r\n\r\n", b"\x16\x03\x01" + bytes(200) + b"\r\n\r\n"]:
                with socket.create_connection(server.scraped) as connection:
                    connection.sendall(garbage)
                    self.assertTrue(connection.makefile("rb").read().startswith(b"HTTP/1.1 400 "))
            self.assertIn("prefixd_lanes ", server.page())

    def test_scrapers_who_say_nothing_or_do_not_read_keep_nobody_out(self):
        with MeteredServer() as server:
            descriptors = pathlib.Path(f"/proc/{server.process.pid}/fd")
            before = len(os.listdir(descriptors))
            with contextlib.ExitStack() as stack, Honest(server.address) as caller:
                hostile = []
                for i in range(100):
                    connection = stack.enter_context(socket.create_connection(server.scraped))
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
                    with contextlib.suppress(OSError):  # It may be closed already, for there are others.
                        connection.sendall([b"", b"GET /met", b"GET /metrics HTTP/1.1\r\n\r\n" * 20][i % 3])
                    hostile.append(connection)
                    if i % 10 == 9:
                        began = time.monotonic()
                        self.assertIn("prefixd_lanes ", server.page())
                        self.assertLess(time.monotonic() - began, SCRAPER_SECONDS)  # None is waited for.
                        # One each for the scrapers; the caller's connection, and what opens and closes meanwhile.
                        self.assertLess(len(os.listdir(descriptors)), before + MAX_SCRAPERS + 10)
                # Those that are left are let go after their time.
                for connection in hostile:
                    connection.settimeout(LIMIT_SECONDS)
                    with contextlib.suppress(ConnectionError):
                        while connection.recv(1 << 16):
                            pass
            self.assertEqual(caller.failures, 0, caller.errors)

    def test_a_scraper_that_drips_is_let_go(self):
        with MeteredServer() as server, socket.create_connection(server.scraped) as connection:
            end = time.monotonic() + LIMIT_SECONDS
            with self.assertRaises(ConnectionError):
                while time.monotonic() < end:
                    connection.sendall(b"x")
                    time.sleep(0.05)  # Slow on purpose.

    def test_an_address_in_use_is_refused_at_start(self):
        with MeteredServer() as first:
            address = f"127.0.0.1:{first.scraped[1]}"
            with self.assertRaisesRegex(RuntimeError, f"can't listen on {address}: Address already in use"):
                Server("--metrics-listen", address).stop()

    def test_ipv6_loopback(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("this host has no IPv6 loopback")
        with MeteredServer(listen="[::1]:0") as server:
            self.assertEqual(server.scraped[0], "::1")
            self.assertIn("prefixd_lanes ", server.page())
            server.stop()
            self.assertNotIn("not loopback", server.log())

    def test_another_address_than_loopback_is_warned_of(self):
        with MeteredServer(listen="0.0.0.0:0") as server:
            server.wait_for_log("not loopback: whoever connects reads them")

    def test_without_the_flag_there_are_none(self):
        with Server() as server:
            table = pathlib.Path(f"/proc/{server.process.pid}/net/tcp").read_text()
            inodes = {os.readlink(file) for file in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir()
                      if os.path.lexists(file)}
            listening = [line for line in table.splitlines()[1:]
                         if line.split()[3] == "0A" and f"socket:[{line.split()[9]}]" in inodes]
            self.assertEqual(len(listening), 1)
            server.stop()
            self.assertNotIn("metrics", server.log())


if __name__ == "__main__":
    unittest.main()
