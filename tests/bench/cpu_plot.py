"""Draws what cpu_bench measured: bars for prefixd and its peers, as shares of the best copy.

    cpu_plot.py CSV SVG [--title TEXT]

All bars of a case are measured against one copy, the best with as many threads as prefixd had. So a bar of 1.0 moves as
many bytes a second as a copy of as many elements. The CSV file is of `cpu_bench --csv`, best with `--peers`, and of one
number of items.
"""

import argparse
import csv
import math
import sys
import xml.sax.saxutils

CASES = (
    "scan f32 sum", "scan f64 sum", "scan i32 sum", "scan i64 sum", "scan u8 sum", "scan i16 sum",
    "reduce f32 sum", "reduce i32 sum", "reduce u8 sum",
    "compact f32 predicate", "difference f32",
)
# Who, whether with all threads, and a colour that colour-blind readers can tell from the others (Okabe and Ito).
SERIES = (
    ("prefixd", True, "#0072b2"),
    ("oneTBB", True, "#e69f00"),
    ("std par", True, "#56b4e9"),
    ("loop", False, "#888888"),
    ("numpy", False, "#d55e00"),
)
NAMES = {"std par": "std::execution::par", "loop": "plain loop", "numpy": "NumPy"}

# In pixels.
MARGIN = 16
LEFT = 52
TOP = 104
AREA_HEIGHT = 260
BAR = 13
GAP = 22  # Between the groups.
BOTTOM = 50

STYLE = """<style>
text {font: 11px system-ui, 'Helvetica Neue', Arial, sans-serif; fill: #333333}
.head {font-size: 16px; font-weight: 600; fill: #111111} .x {text-anchor: middle} .y {text-anchor: end}
.value {font-size: 9px; text-anchor: start} .grid {stroke: #e4e4e4; fill: none}
.copy {stroke: #111111; stroke-dasharray: 5 4; fill: none} .strong {font-weight: 600}
</style>"""


def read(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or {"case", "who", "threads", "items", "gb_per_second", "share"} - rows[0].keys():
        sys.exit(f"cpu_plot: {path} is not of cpu_bench --csv")
    if len({row["items"] for row in rows}) > 1:
        sys.exit(f"cpu_plot: {path} has several numbers of items")
    return rows


def shares(rows, threads):
    """The bars: for each case a dictionary from who to the share."""
    rate = {(row["case"], row["who"], int(row["threads"])): float(row["gb_per_second"]) for row in rows}
    share = {(row["case"], row["who"], int(row["threads"])): row["share"] for row in rows}
    bars = {}
    for case in CASES:
        ours = (case, "prefixd", threads)
        if not share.get(ours):
            continue
        copy = rate[ours] / float(share[ours])
        keys = ((who, (case, who, threads if all_threads else 1)) for who, all_threads, _ in SERIES)
        bars[case] = {who: rate[key] / copy for who, key in keys if key in rate}
    return bars


def text(x, y, content, kind=""):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{xml.sax.saxutils.escape(content)}</text>'


def label(who, all_threads, threads):
    count = threads if all_threads else 1
    return f"{NAMES.get(who, who)}, {count} thread{'s' if count > 1 else ''}"


def legend(drawn, threads):
    x = LEFT
    for who, all_threads, color in SERIES:
        if who not in drawn:
            continue
        name = label(who, all_threads, threads)
        yield f'<rect x="{x}" y="{TOP - 46}" width="11" height="11" fill="{color}"/>'
        yield text(x + 16, TOP - 36, name)
        x += 36 + 6.2 * len(name)


def grid(top, width):
    step = 0.25 if top <= 2 else 0.5
    for i in range(round(top / step) + 1):
        y = TOP + AREA_HEIGHT * (1 - i * step / top)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{LEFT + width}"/>'
        yield text(LEFT - 6, y + 4, f"{i * step:g}", "y")


def group(case, bars, x, top):
    """The bars of a case, from x on, and its name."""
    colors = {who: color for who, _, color in SERIES}
    for i, (who, share) in enumerate(bars.items()):
        height = AREA_HEIGHT * share / top
        left, y = x + i * BAR, TOP + AREA_HEIGHT - height
        yield f'<rect x="{left:.1f}" y="{y:.1f}" width="{BAR - 2}" height="{height:.1f}" fill="{colors[who]}">'
        yield f"<title>{case}, {who}: {share:.2f} of the copy</title></rect>"
        kind = "value strong" if who == "prefixd" else "value"
        turn = f"translate({left + 8.5:.1f} {y - 3:.1f}) rotate(-90)"
        yield f'<g transform="{turn}">{text(0, 0, f"{share:.2f}", kind)}</g>'
    primitive, dtype, *rest = case.split(" ")
    middle = x + BAR * len(bars) / 2 - 1
    yield text(middle, TOP + AREA_HEIGHT + 17, f"{primitive} {dtype}", "x strong")
    yield text(middle, TOP + AREA_HEIGHT + 31, " ".join(rest), "x")


def draw(bars, threads, title, note):
    top = max(1.25, math.ceil(max(max(group.values()) for group in bars.values()) * 4 + 0.5) / 4)
    widths = {case: max(BAR * len(group), 74) + GAP for case, group in bars.items()}
    width = sum(widths.values())
    total_width, total_height = LEFT + width + 70 + MARGIN, TOP + AREA_HEIGHT + BOTTOM
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{total_width}" height="{total_height}" '
           f'viewBox="0 0 {total_width} {total_height}">')
    yield f"<title>{xml.sax.saxutils.escape(title)}</title>"
    yield STYLE
    yield '<rect width="100%" height="100%" fill="white"/>'
    yield text(MARGIN, 30, title, "head")
    yield text(MARGIN, 47, note)
    yield from legend({who for group in bars.values() for who in group}, threads)
    yield text(LEFT - 6, TOP - 10, "share", "y")
    yield from grid(top, width)
    x = LEFT
    for case, shares_of_case in bars.items():
        yield from group(case, shares_of_case, x + (widths[case] - BAR * len(shares_of_case)) / 2, top)
        x += widths[case]
    y = TOP + AREA_HEIGHT * (1 - 1 / top)
    yield f'<path class="copy" d="M{LEFT} {y:.1f}H{LEFT + width + 4}"/>'
    yield text(LEFT + width + 8, y + 4, "1.0 = copy", "strong")
    yield "</svg>"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", help="what cpu_bench --csv wrote")
    parser.add_argument("svg", help="the file to write")
    parser.add_argument("--title", default="The CPU device beside its peers", help="the first line of the plot")
    options = parser.parse_args()
    rows = read(options.csv)
    threads = max((int(row["threads"]) for row in rows if row["who"] == "prefixd"), default=0)
    bars = shares(rows, threads)
    if not bars:
        sys.exit(f"cpu_plot: {options.csv} has none of the cases that are drawn")
    items = int(rows[0]["items"]).bit_length() - 1
    note = (f"2^{items} elements. Share: the rate of the bytes that must move, read and written, over the rate of the "
            f"best copy with up to {threads} threads. Higher is faster.")
    with open(options.svg, "w") as file:
        file.write("\n".join(draw(bars, threads, options.title, note)) + "\n")


if __name__ == "__main__":
    main()
