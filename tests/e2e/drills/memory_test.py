"""Less memory than the default budgets would take: more streams than fit are refused, and the process stays."""

import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from drills.front import COMMAND, served  # noqa: E402
from drills.holding import HoldingDrill, RawCalls  # noqa: E402
from foreign_client_test import scan_request  # noqa: E402
from harness import Server  # noqa: E402

ADDRESS_SPACE = 900_000 * 1024
STREAMS = 200


class MemoryDrill(HoldingDrill):
    def test_budgets_fit_into_the_address_space(self):
        with served(under=["prlimit", f"--as={ADDRESS_SPACE}"]) as place:
            self.assertLess(self.info(place).request_bytes.limit, ADDRESS_SPACE // 3)
            # Each sends what it may and reads nothing. They come from many addresses, for one alone has half at most.
            message = scan_request(np.ones((1 << 19) - 64, np.int64)).SerializeToString()

            def hold():
                calls = [RawCalls(place.address, f"127.0.0.{66 + i}") for i in range(8)]
                for i in range(STREAMS):
                    calls[i % len(calls)].open("/prefixd.v1.PrefixService/StreamScan", message, ends=False)
                return calls
            calls = self.assert_others_are_served(place, hold)
            if not COMMAND:  # Which takes no more from a connection than it can pass on: they wait there.
                place.server.wait_for_log('status="RESOURCE_EXHAUSTED"')
            self.assertIsNone(place.server.process.poll(), place.server.log())
            for call in calls:
                call.close()

    def test_a_budget_that_does_not_fit_is_refused_at_start(self):
        with self.assertRaisesRegex(RuntimeError, "--max-request-bytes"):
            Server("--max-request-bytes", str(1 << 30), under=["prlimit", f"--as={ADDRESS_SPACE}"]).stop()


if __name__ == "__main__":
    unittest.main()
