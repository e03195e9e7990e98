"""What bars.py makes of the benchmarks' lines."""

import unittest

import bars

FIGURES = """\
# NVIDIA H200, CUB 300001
what                                                    items         us      GB/s   share
scan inclusive f32 sum                              268435456     520.50    4126.0   0.981
scan f32, 1 to 536                                  268435456     600.00    3579.1   0.851
scan f32, reversed                                  268435456     650.00    3303.8   0.786     0.801
# left out: torch cummax f32: CUDA out of memory: tried to allocate 2 GiB
"""
MATRIX = """\
NVIDIA H200, 2^28 elements, as a share of the copy; 1: along the rows, 0: down the columns

f32: copy 511.0 us, scan of one array 0.981
        rows      columns   scan 1   scan 0 reduce 1 reduce 0   diff 1   diff 0
     1048576          256    0.896        -    0.859    0.900    1.008        -
       16384        16384    0.925    0.868    0.905    1.057    1.009    0.934
"""


class Complete(bars.Output):
    """Has every figure."""

    def __init__(self):
        pass

    def __getitem__(self, key):
        return bars.Figure(us=1, share=0.9, ratio=0.9)

    def forms(self):
        return bars.FORMS


class ReadsOutput(unittest.TestCase):
    def test_figures(self):
        output = bars.Output("a_bench", FIGURES)
        self.assertEqual(output["scan inclusive f32 sum", 1 << 28], bars.Figure(520.5, 0.981))
        self.assertEqual(output["scan f32, 1 to 536", 1 << 28], bars.Figure(600, 0.851))
        self.assertEqual(output["scan f32, reversed", 1 << 28], bars.Figure(650, 0.786, 0.801))
        self.assertEqual(output.forms(), ["scan f32, reversed"])

    def test_matrix(self):
        output = bars.Output("matrix_bench", MATRIX)
        self.assertEqual({what: figure.share for (what, _), figure in output.figures.items()},
                         {"f32 along rows, 1048576 x 256": 0.896, "f32 along rows, 16384 x 16384": 0.925,
                          "f32 along columns, 16384 x 16384": 0.868})

    def test_what_is_missing_or_no_figure_ends_the_program(self):
        with self.assertRaisesRegex(SystemExit, "no figure of scan f64"):
            bars.Output("a_bench", FIGURES)["scan f64", 1 << 28]
        with self.assertRaisesRegex(SystemExit, "what is no figure: scan f64  nan"):
            bars.Output("a_bench", FIGURES + "scan f64  nan\n")
        with self.assertRaisesRegex(SystemExit, "two figures"):
            bars.Output("a_bench", FIGURES + FIGURES)


class Table(unittest.TestCase):
    def test_cells(self):
        outputs = bars.Outputs(kernels_bench=bars.Output("kernels_bench", FIGURES))
        seen = bars.kernels("scan inclusive f32 sum")
        for row, expected in (
            (bars.Row("a", 0.975, seen, torch=bars.torch("b")), ["a", "0.975", "0.981", "-", "not run", "yes"]),
            (bars.Row("a", 0.99, seen, cub=bars.one), ["a", "0.99", "0.981", "1.000", "-", "no"]),
            (bars.Row("a", 0.99, seen, at_most=True), ["a", "<= 0.99", "0.981", "-", "-", "yes"]),
            (bars.Row("a", 0.9, bars.kernels("torch cummax f32")), ["a", "0.9", "failed", "-", "-", "-"]),
        ):
            self.assertEqual(bars.cells(row, outputs), expected)

    def test_has_every_row(self):
        outputs = bars.Outputs(dict.fromkeys([*bars.BENCHMARKS, "torch_peer"], Complete()))
        lines = list(bars.table(outputs))
        self.assertEqual(len(lines), 1 + len(list(bars.rows())))
        self.assertEqual(len(set(map(len, lines))), 1, "aligned")
        self.assertTrue(all(line.endswith(("yes", "no")) for line in lines[1:]))

    def test_a_form_without_a_row_ends_the_program(self):
        with self.assertRaisesRegex(SystemExit, "forms that the table lacks"):
            list(bars.table(bars.Outputs(forms_bench=bars.Output("forms_bench", FIGURES.replace(", rev", ", unrev")))))


if __name__ == "__main__":
    unittest.main()
