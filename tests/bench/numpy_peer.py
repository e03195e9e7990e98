"""What whoever has an array does without a server: NumPy's sum and cumsum of i32 on one core.

    numpy_peer.py ITEMS     prints the milliseconds of the sum and of the cumsum, each the median of three
"""

import statistics
import sys
import time

import numpy as np


def milliseconds(call):
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


values = np.ones(int(sys.argv[1]), np.int32)
for call in (lambda: values.sum(dtype=np.int32), lambda: np.cumsum(values, dtype=np.int32)):
    print(f"{statistics.median(milliseconds(call) for _ in range(3)):.1f}")
