"""The bars and what a card reaches, in one table, with CUB and torch beside.

    bars.py BIN_DIR

Runs torch_peer.py if torch is installed, and those benchmarks of the kernels that are in BIN_DIR, one after the other.
What they print goes to stderr as it comes, the table to stdout. Figures are shares of a device-to-device copy that
moves as many bytes, from the same run, unless they say over what they are. A program that prints less than its figures,
or, but for the matrices, something else, ends this one.
"""

import dataclasses
import datetime
import functools
import importlib.util
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

HERE = pathlib.Path(__file__).resolve().parent
BENCHMARKS = {"kernels_bench": [], "segments_bench": [], "matrix_bench": ["cuda:0", "28", "f32"], "forms_bench": []}
ITEMS = 1 << 28
LEFT_OUT = "# left out: "
DTYPES = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "f16", "bf16")
FORM_TYPES = ("f32", "i16", "u8", "f64")
SHIFTS = ("in + 1, out + 1", "in + 1", "out + 1", "in + 1, out + 2")
FORMS = [
    *(f"{what} {t}, {how}" for t in FORM_TYPES for what in ("scan", "difference") for how in (*SHIFTS, "reversed")),
    *(f"reduce {how}" for t in FORM_TYPES for how in (f"sum {t}, in + 1", f"min {t}", f"max {t}")),
    *(f"compact by predicate {t}, {how}" for t in FORM_TYPES for how in (*SHIFTS, "indices u32", "indices u64")),
    *(f"compact by byte mask {t}, in + 1, out + 1, mask + 1" for t in FORM_TYPES),
    *(f"compact by bit mask {t}" for t in FORM_TYPES),
    *(f"compact by {how} {t}, beside f32" for how in ("predicate", "byte mask") for t in ("i16", "u8", "f16")),
]

FIGURE = re.compile(
    r"(?P<what>\S.*?) +(?P<items>\d+) +(?P<us>\d+\.\d\d) +\d+\.\d +(?P<share>\d+\.\d{3})( +(?P<ratio>\d+\.\d{3}))?")
HEAD = re.compile(r"#.*|what +items +us +GB/s +share")
MATRIX_TYPE = re.compile(r"(\w+): copy .* us, scan of one array .*")
MATRIX_ROW = re.compile(r" *(\d+) +(\d+) +([\d.]+) +([\d.]+|-)( +([\d.]+|-)){4}")


@dataclasses.dataclass
class Figure:
    us: float = 0
    share: float = 0
    ratio: float | None = None  # A form's share over the plain one's.


class Missing(Exception):
    """There is no such figure, and that is no mistake. The message is what its cell says."""


class Output:
    """What a program printed, as figures."""

    def __init__(self, program, text):
        self.program = program
        self.head = text.split("\n")[0].removeprefix("# ")
        self.left_out = []
        self.figures = {}
        (self.read_matrix if program == "matrix_bench" else self.read_figures)(text.splitlines())

    def add(self, key, figure):
        if key in self.figures:
            sys.exit(f"bars: {self.program} has two figures of {key}")
        self.figures[key] = figure

    def read_figures(self, lines):
        for line in lines:
            if line.startswith(LEFT_OUT):
                self.left_out.append(line.removeprefix(LEFT_OUT).split(":")[0])
            elif found := FIGURE.fullmatch(line):
                self.add((found["what"], int(found["items"])),
                         Figure(float(found["us"]), float(found["share"]), found["ratio"] and float(found["ratio"])))
            elif not HEAD.fullmatch(line):
                sys.exit(f"bars: {self.program} printed what is no figure: {line}")

    def read_matrix(self, lines):
        """Keeps the scans of matrices, and nothing else."""
        dtype = None
        for line in lines:
            if found := MATRIX_TYPE.fullmatch(line):
                dtype = found[1]
            elif found := MATRIX_ROW.fullmatch(line):
                for axis, text in (("rows", found[3]), ("columns", found[4])):
                    if text != "-":
                        self.add((f"{dtype} along {axis}, {found[1]} x {found[2]}", ITEMS), Figure(share=float(text)))

    def __getitem__(self, key):
        if key[0] in self.left_out:
            raise Missing("failed")
        if key not in self.figures:
            sys.exit(f"bars: {self.program} has no figure of {key[0]}, {key[1]} items")
        return self.figures[key]

    def forms(self):
        return [what for (what, _), figure in self.figures.items() if figure.ratio is not None]


class Outputs(dict):
    """By programs' names."""

    def __missing__(self, program):
        raise Missing("not run")


def share(program, what, items=ITEMS):
    return lambda outputs: outputs[program][what, items].share


kernels = functools.partial(share, "kernels_bench")
segments = functools.partial(share, "segments_bench")
matrix = functools.partial(share, "matrix_bench")
torch = functools.partial(share, "torch_peer")


def over(program, what, other_program, other, items=ITEMS):
    """The time of one over that of the other."""
    return lambda outputs: outputs[program][what, items].us / outputs[other_program][other, items].us


@dataclasses.dataclass
class Row:
    figure: str
    bar: float
    seen: Callable
    cub: Callable | None = None
    torch: Callable | None = None
    at_most: bool = False


def one(_):
    """What is over itself."""
    return 1.0


def rows():
    for shape, axis, bar in (("16384 x 16384", "rows", 0.93), ("16384 x 16384", "columns", 0.93),
                             ("1048576 x 256", "rows", 0.93), ("67108864 x 4", "rows", 0.85)):
        what = f"f32 along {axis}, {shape}"
        yield Row(f"scan {what}", bar, matrix(what), torch=torch(f"torch cumsum {what}"))
    for shape in ("1 to 536", "2^27, then 128"):
        what = f"f32, {shape}"
        yield Row(f"segmented scan {what}", 0.85, segments(f"scan {what}"))
        yield Row(f"scan by keys {what}, speed over CUB's", 1.3,
                  over("segments_bench", f"cub scan by key {what}", "segments_bench", f"scan by keys {what}"), cub=one)
        yield Row(f"segmented reduce {what}", 0.90, segments(f"reduce {what}"),
                  segments(f"cub segmented reduce {what}"),
                  torch(f"torch segment_reduce {what}") if shape == "1 to 536" else None)
    for t in ("f32", "f64"):
        yield Row(f"linear recurrence {t}", 0.93, kernels(f"scan inclusive {t} linear_recurrence"))
    for t in ("f16", "bf16"):
        yield Row(f"scan {t} sum", 0.93, kernels(f"scan inclusive {t} sum"), torch=torch(f"torch cumsum {t}"))
        yield Row(f"scan {t} to f32 sum", 0.93, kernels(f"scan inclusive {t} to f32 sum"),
                  torch=torch(f"torch cumsum {t} to f32"))
    for t in ("f32", "f64"):
        yield Row(f"scan {t} wide sum, speed over the plain sum's", 0.95,
                  over("kernels_bench", f"scan inclusive plain sum {t}",
                       "kernels_bench", f"scan inclusive wide sum {t}"))
    yield Row("cummax f32, index u32", 0.88, kernels("cummax first index u32 f32"), torch=torch("torch cummax f32"))
    yield Row("cummax f32, index u64, speed over torch's", 100,
              over("torch_peer", "torch cummax f32", "kernels_bench", "cummax first index u64 f32"), torch=one)
    for t in DTYPES:
        for op in ("min", "max"):
            by_cub = None if t in ("f16", "bf16") else kernels(f"cub scan inclusive {t} {op}")
            yield Row(f"scan {t} {op}", 0.93, kernels(f"scan inclusive {t} {op}"), by_cub)
    yield Row("scan f32 sum", 0.975, kernels("scan inclusive f32 sum"), kernels("cub scan inclusive f32 sum"),
              torch("torch cumsum f32"))
    for log2_items, bar in ((18, 0.70), (20, 0.78)):
        yield Row(f"scan f32 sum, 2^{log2_items}, time over CUB's", bar,
                  over("kernels_bench", "scan inclusive f32 sum", "kernels_bench", "cub scan inclusive f32 sum",
                       1 << log2_items), cub=one, at_most=True)
    yield Row("scan f32 log_add_exp", 0.60, kernels("scan inclusive log_add_exp f32"),
              torch=torch("torch logcumsumexp f32"))
    for form in FORMS:
        yield Row(f"{form}, over the plain form", 0.85,
                  lambda outputs, form=form: outputs["forms_bench"][form, ITEMS].ratio)


def cells(row, outputs):
    """The row's cells, as text."""
    values = []
    for cell in (row.seen, row.cub, row.torch):
        try:
            values.append(cell(outputs) if cell else "-")
        except Missing as reason:
            values.append(str(reason))
    seen = values[0]
    reached = "-" if isinstance(seen, str) else "yes" if (seen <= row.bar if row.at_most else seen >= row.bar) else "no"
    bar = f"{'<= ' if row.at_most else ''}{row.bar:g}"
    return [row.figure, bar, *(v if isinstance(v, str) else f"{v:.3f}" for v in values), reached]


def table(outputs):
    forms = outputs["forms_bench"].forms() if "forms_bench" in outputs else []
    if unknown := set(forms) - set(FORMS):
        sys.exit(f"bars: forms_bench has forms that the table lacks: {sorted(unknown)}")
    lines = [["figure", "bar", "seen", "CUB", "torch", "reached"], *(cells(row, outputs) for row in rows())]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for first, *others in lines:
        yield "  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])])


def run(program, *command):
    print(f"# {program}", file=sys.stderr)
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            sys.stderr.write(line)
            lines.append(line)
    if process.returncode != 0:
        sys.exit(f"bars: {program} exited with {process.returncode}")
    return Output(program, "".join(lines))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    bin_dir = pathlib.Path(sys.argv[1])
    query = ["nvidia-smi", "--id=0", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    card, driver = subprocess.run(query, check=True, capture_output=True, text=True).stdout.strip().split(", ")
    outputs = Outputs()
    if importlib.util.find_spec("torch"):
        outputs["torch_peer"] = run("torch_peer", sys.executable, HERE / "torch_peer.py")
    else:
        print("# torch is not installed", file=sys.stderr)
    for program, arguments in BENCHMARKS.items():
        if (bin_dir / program).is_file():
            outputs[program] = run(program, bin_dir / program, *arguments)
        else:
            print(f"# {bin_dir} has no {program}", file=sys.stderr)
    if not outputs.keys() & BENCHMARKS.keys():
        sys.exit(f"bars: {bin_dir} has no benchmark: build the target benchmarks, and give its bin")
    peers = re.findall(r"(?:CUB|torch) [\w.+]+", ", ".join(output.head for output in outputs.values()))
    print("# " + ", ".join([card, f"driver {driver}", *dict.fromkeys(peers), f"{datetime.date.today()}"]))
    print(*table(outputs), sep="\n")


if __name__ == "__main__":
    main()
