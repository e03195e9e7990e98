"""Checks whether the documents are true, where a program can tell: files, links, flags, the length of the README.

Environment: PREFIXD_BIN_DIR, the folder with prefixd and prefixctl.

The lists of CONTRIBUTING.md are fenced blocks that open with ```files. Each line is a path and a comment after #. A
line that opens with + is a new file. NAME in its path stands for the name of the new type, operator or primitive. A
file with an earlier name in that place (EARLIER_NAMES) must exist.
"""

import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN_DIR = pathlib.Path(os.environ["PREFIXD_BIN_DIR"])
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "kernels/NUMERICS.md"])
MAX_README_LINES = 200
EARLIER_NAMES = ("scan", "reduce", "compact", "int16", "float")

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def anchors(document):
    """The anchors that GitHub makes of a document's headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def help_of(program, *command):
    return subprocess.run([BIN_DIR / program, *command, "--help"], check=True, capture_output=True, text=True).stdout


def commands(*command):
    """All of prefixctl, or of one of its commands that has some."""
    _, *listed = re.split("subcommands:", help_of("prefixctl", *command), flags=re.IGNORECASE)
    return re.findall(r"^  (\w+) ", listed[0], re.MULTILINE) if listed else []


def flags_of_the_programs():
    texts = [help_of("prefixd"), help_of("prefixctl")]
    for command in commands():
        texts.append(help_of("prefixctl", command))
        texts += [help_of("prefixctl", command, inner) for inner in commands(command)]
    return set(FLAG.findall("\n".join(texts)))


class Contributing(unittest.TestCase):
    def lists(self):
        blocks = [body for kind, body in FENCE.findall((ROOT / "CONTRIBUTING.md").read_text()) if kind == "files"]
        self.assertEqual(len(blocks), 3, "a type, an operator, a primitive")
        return [[line.split("#")[0].strip() for line in body.splitlines() if line.strip()] for body in blocks]

    def test_files_that_change_exist(self):
        for paths in self.lists():
            for path in paths:
                if not path.startswith("+"):
                    with self.subTest(path):
                        self.assertTrue((ROOT / path).is_file())

    def test_new_files_have_an_earlier_one_beside_them(self):
        for paths in self.lists():
            for path in paths:
                if path.startswith("+"):
                    with self.subTest(path):
                        self.assertIn("NAME", path)
                        pattern = path.removeprefix("+").strip()
                        self.assertTrue(any((ROOT / pattern.replace("NAME", name)).is_file() for name in EARLIER_NAMES))

    def test_few_files_change(self):
        a_type, _, a_primitive = ([path for path in paths if not path.startswith(("+", "tests/"))] for paths in self.lists())
        self.assertLessEqual(len(a_type), 8)
        self.assertLessEqual(len(a_primitive), 12)


class Documents(unittest.TestCase):
    def test_readme_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text().splitlines()), MAX_README_LINES)

    def test_links_lead_somewhere(self):
        count = 0
        for document in DOCUMENTS:
            for link in LINK.findall(without_code(document.read_text())):
                if re.match(r"[a-z]+:", link):
                    continue
                count += 1
                path, _, anchor = link.partition("#")
                target = document.parent / path if path else document
                with self.subTest(document=document.relative_to(ROOT), link=link):
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target))
        self.assertGreater(count, 50)  # Else they were not found.

    def test_decisions_are_short_and_listed(self):
        index = (ROOT / "docs/decisions/README.md").read_text()
        for page in (ROOT / "docs/decisions").glob("*.md"):
            if page.name != "README.md":
                with self.subTest(page.name):
                    text = page.read_text()
                    self.assertLessEqual(len(text.splitlines()), 40)
                    self.assertRegex(text, r"(?m)^Date: \d{4}-\d{2}-\d{2}\.")
                    self.assertIn(f"({page.name})", index)


class Reference(unittest.TestCase):
    def test_names_every_flag_and_no_other(self):
        there_are = flags_of_the_programs()
        self.assertLessEqual({"--listen", "--server", "--where", "--mix"}, there_are)  # Else they were not found.
        named = set(FLAG.findall((ROOT / "docs/reference.md").read_text()))
        self.assertEqual(there_are - named, set(), "not in docs/reference.md")
        self.assertEqual(named - there_are, set(), "in docs/reference.md, and no flag")

    def test_names_every_command(self):
        reference = (ROOT / "docs/reference.md").read_text()
        for command in commands():
            with self.subTest(command):
                self.assertIn(f"`{command}`", reference)
            for inner in commands(command):
                with self.subTest(f"{command} {inner}"):
                    self.assertIn(f"`{command} {inner}`", reference)


if __name__ == "__main__":
    unittest.main()
