"""What torch takes for the scans of the bars: a line for each figure, as the benchmarks of the kernels print them.

    torch_peer.py

2^28 elements. Each time is the median of 7 by events, the L2 cache flushed before each by copying 128 MiB. "share" is
the time of a device-to-device copy that moves as many bytes, from the same run, over the figure's. A figure that fails
has a line that says why. Segments of 2^27 are left out: torch gives each to one thread.
"""

import functools
import statistics

import torch

ITEMS = 1 << 28
SAMPLES = 7
FLUSH_BYTES = 128 << 20
LEFT_OUT = "# left out: "


def median_us(work):
    flush = torch.zeros(2, FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    times = []
    for _ in range(SAMPLES + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush[0].copy_(flush[1])
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times[1:])


@functools.cache
def copy_us(num_bytes):
    source, target = torch.zeros(2, num_bytes // 2, dtype=torch.uint8, device="cuda")
    return median_us(lambda: target.copy_(source))


def scan(function, dtype, *shape, dim=-1):
    """Of random numbers: what to time, and the bytes that it must move."""
    x = torch.rand(shape or ITEMS, device="cuda").sub_(0.5).to(dtype)
    results = function(x, dim)
    results = results if isinstance(results, tuple) else (results,)
    num_bytes = sum(array.numel() * array.element_size() for array in (x, *results))
    return lambda: function(x, dim), num_bytes


def segment_reduce():
    lengths = torch.randint(1, 537, (ITEMS // 200,), device="cuda")
    ends = lengths.cumsum(0).clamp_(max=ITEMS)
    lengths = ends.diff(prepend=ends.new_zeros(1))
    lengths = lengths[lengths > 0]
    x = torch.rand(ITEMS, device="cuda")
    return lambda: torch.segment_reduce(x, "sum", lengths=lengths, unsafe=True), 4 * ITEMS


CUMSUM_TO_F32 = functools.partial(torch.cumsum, dtype=torch.float32)
FIGURES = {
    "torch cumsum f32": lambda: scan(torch.cumsum, torch.float32),
    "torch cumsum f64": lambda: scan(torch.cumsum, torch.float64),
    "torch cumsum f16": lambda: scan(torch.cumsum, torch.float16),
    "torch cumsum bf16": lambda: scan(torch.cumsum, torch.bfloat16),
    "torch cumsum f16 to f32": lambda: scan(CUMSUM_TO_F32, torch.float16),
    "torch cumsum bf16 to f32": lambda: scan(CUMSUM_TO_F32, torch.bfloat16),
    "torch cumsum f32 along rows, 16384 x 16384": lambda: scan(torch.cumsum, torch.float32, 1 << 14, 1 << 14),
    "torch cumsum f32 along columns, 16384 x 16384": lambda: scan(torch.cumsum, torch.float32, 1 << 14, 1 << 14, dim=0),
    "torch cumsum f32 along rows, 1048576 x 256": lambda: scan(torch.cumsum, torch.float32, 1 << 20, 1 << 8),
    "torch cumsum f32 along rows, 67108864 x 4": lambda: scan(torch.cumsum, torch.float32, 1 << 26, 1 << 2),
    "torch cummax f32": lambda: scan(torch.cummax, torch.float32),
    "torch logcumsumexp f32": lambda: scan(torch.logcumsumexp, torch.float32),
    "torch segment_reduce f32, 1 to 536": segment_reduce,
}


def main():
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(f"{'what':48} {'items':>12} {'us':>10} {'GB/s':>9} {'share':>7}")
    for what, prepare in FIGURES.items():
        try:
            work, num_bytes = prepare()
            us = median_us(work)
            share = copy_us(num_bytes) / us
        except (AttributeError, RuntimeError) as error:  # Torch lacks it, or memory.
            print(f"{LEFT_OUT}{what}: {' '.join(str(error).split())}", flush=True)
        else:
            print(f"{what:48} {ITEMS:12} {us:10.2f} {num_bytes / us / 1e3:9.1f} {share:7.3f}", flush=True)
        work = None  # Gives its arrays back.
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
