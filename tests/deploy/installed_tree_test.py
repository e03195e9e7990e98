"""The installed tree: it holds all that it needs, it runs after a move, and other projects can build against it.

Environment: PREFIXD_BUILD_DIR, the build folder to install; and those of tests/e2e/harness.py except PREFIXD_BIN_DIR.
"""

import os
import pathlib
import platform
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
import unittest

BUILD_DIR = pathlib.Path(os.environ["PREFIXD_BUILD_DIR"])
SOURCE_DIR = pathlib.Path(__file__).resolve().parents[2]
MAX_PACKED_BYTES = 64 << 20
# What a bare Ubuntu 24.04 has, and the tree does not bring: glibc and the C++ run time.
BASE = re.compile(r"ld-linux[\w-]*\.so\.\d|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s)\.so\.\d+")


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def dynamic_entries(file, kind):
    """The values of one kind (NEEDED, RPATH, RUNPATH) in an ELF file's dynamic section."""
    return re.findall(rf"\({kind}\).*\[(.*)\]", run("readelf", "--dynamic", "--wide", file))


def setUpModule():
    global folder, tree
    folder = tempfile.TemporaryDirectory(prefix="prefixd_tree_")
    installed = pathlib.Path(folder.name) / "installed"
    run("cmake", "--install", BUILD_DIR, "--prefix", installed)
    tree = pathlib.Path(folder.name) / "moved" / "to a place with spaces"
    tree.parent.mkdir()
    installed.rename(tree)


def tearDownModule():
    folder.cleanup()


class InstalledTreeTest(unittest.TestCase):
    def elf_files(self):
        files = [*(tree / "bin").iterdir(), *(tree / "lib").glob("*.so*")]
        self.assertIn(tree / "bin" / "prefixd", files)
        self.assertIn(tree / "bin" / "prefixctl", files)
        return files

    def test_every_library_needed_is_in_the_tree_or_in_the_base_system(self):
        for file in self.elf_files():
            for needed in dynamic_entries(file, "NEEDED"):
                if not BASE.fullmatch(needed):
                    self.assertTrue((tree / "lib" / needed).exists(), f"{file.name} needs {needed}")

    def test_the_loader_finds_all_libraries_in_the_tree(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
        for program in (tree / "bin").iterdir():
            loaded = run(program, env={**environment, "LD_TRACE_LOADED_OBJECTS": "1"})
            for name, place in re.findall(r"(\S+) => (.+?)(?: \(0x.*\))?$", loaded, re.MULTILINE):
                if not BASE.fullmatch(name):
                    self.assertEqual(pathlib.Path(place).resolve().parent, tree / "lib", f"{program.name}: {name}")

    def test_nothing_points_out_of_the_tree(self):
        for file in self.elf_files():
            # It switches off the program's RPATH. Newer Abseil's names the folder that it is in, which is as good.
            self.assertIn(dynamic_entries(file, "RUNPATH"), ([], ["$ORIGIN"]), file.name)
            if file.parent.name == "bin":
                self.assertEqual(dynamic_entries(file, "RPATH"), ["$ORIGIN/../lib"])
        for file in tree.rglob("*"):
            if file.is_symlink():
                self.assertFalse(os.path.isabs(os.readlink(file)), file)
            elif file.is_file():
                content = file.read_bytes()
                for place in (folder.name, str(BUILD_DIR), str(SOURCE_DIR)):
                    self.assertNotIn(os.fsencode(place), content, file)

    def test_every_bundled_package_has_its_licence(self):
        documents = tree / "share" / "doc" / "prefixd"
        packages = re.findall(r"^(\S+) \d\S*:", (documents / "bundled.txt").read_text(), re.MULTILINE)
        self.assertGreater(len(packages), 5)
        for package in packages:
            self.assertGreater((documents / "licenses" / package).stat().st_size, 0)
        self.assertNotIn("(of no package)", (documents / "bundled.txt").read_text())
        listed = (documents / "bundled.txt").read_text().split()
        for library in (tree / "lib").glob("*.so*"):
            names = {file.name for file in (tree / "lib").glob("*.so*") if file.resolve() == library.resolve()}
            self.assertTrue(names & set(listed), f"{library.name} is in no package of bundled.txt")
        common = documents / "licenses" / "common-licenses"
        self.assertTrue((common / "Apache-2.0").exists())
        for package in packages:
            text = (documents / "licenses" / package).read_text(errors="replace")
            for name in re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", text):
                if pathlib.Path("/usr/share/common-licenses", name).exists():
                    self.assertTrue((common / name).exists(), f"{package} refers to {name}")
        self.assertTrue((documents / "LICENSE").exists())
        if "CUB" in (documents / "bundled.txt").read_text():
            self.assertIn("Redistributions in binary form", (documents / "licenses" / "cub").read_text())

    def test_the_readme_finds_its_documents(self):
        documents = tree / "share" / "doc" / "prefixd"
        links = re.findall(r"\]\(((?:docs/|[A-Z]+\.md)[^)#]*)", (documents / "README.md").read_text())
        self.assertGreater(len(links), 8)
        for link in links:
            if link != "CONTRIBUTING.md":  # For those who have the source.
                self.assertTrue((documents / link).exists(), link)

    def test_the_image_is_built_from_what_is_installed(self):
        allowed = (SOURCE_DIR / ".dockerignore").read_text().split()
        copied = re.findall(r"^COPY (?!--)(.*) \S+$", (SOURCE_DIR / "Dockerfile").read_text(), re.MULTILINE)
        for line in re.findall(r"^install\((?:FILES|DIRECTORY) (.*?) DESTINATION",
                               (SOURCE_DIR / "deploy/install.cmake").read_text(), re.MULTILINE):
            for path in line.split():
                if (SOURCE_DIR / path).exists():
                    top = path.split("/")[0]
                    self.assertIn("!" + top, allowed, path)
                    self.assertIn(top, " ".join(copied).split(), path)

    def test_it_is_small_enough_to_carry(self):
        packed = pathlib.Path(folder.name) / "tree.tar.gz"
        with tarfile.open(packed, "w:gz", compresslevel=6) as archive:
            archive.add(tree, "prefixd")
        print(f"packed: {packed.stat().st_size / (1 << 20):.1f} MiB", flush=True)
        self.assertLessEqual(packed.stat().st_size, MAX_PACKED_BYTES)

    def test_it_serves_and_others_build_against_it(self):
        os.environ["PREFIXD_BIN_DIR"] = str(tree / "bin")
        from harness import Server

        project = pathlib.Path(folder.name) / "example"
        run("cmake", "-G", "Ninja", "-S", tree / "share" / "prefixd" / "example", "-B", project, f"-DCMAKE_PREFIX_PATH={tree}")
        run("cmake", "--build", project)
        with Server() as server:
            self.assertIn("longest: 4 at 3", run(project / "prefixd_example", server.address))
            self.assertIn("totals: 3 5 9", run(project / "prefixd_resident", server.address))
            (project / "x.bin").write_bytes(struct.pack("<3f", 3, 1, 2))
            scanned = run(project / "prefixd_large_file", project / "x.bin", project / "y.bin", "1", server.address)
            self.assertIn("total: 6", scanned)
            scanned = run(tree / "bin" / "prefixctl", "--server", server.address, "scan", "--type", "i64", "-",
                          input="3\n1\n2\n")
            self.assertEqual(scanned.split(), ["3", "4", "6"])

    def test_it_runs_on_a_cpu_without_avx(self):
        qemu = shutil.which("qemu-x86_64")
        if platform.machine() not in ("x86_64", "AMD64") or qemu is None:
            self.skipTest("needs an x86-64 and qemu-x86_64 (deploy/install_deps.sh test)")
        os.environ["PREFIXD_BIN_DIR"] = str(tree / "bin")
        from harness import Server

        under = (qemu, "-cpu", "Nehalem")
        with Server(under=under, device="cpu") as server:
            ctl = (*under, tree / "bin" / "prefixctl", "--server", server.address)
            self.assertIn("sse2", run(*ctl, "info"))
            scanned = run(*ctl, "scan", "--type", "f32", "-", input="1\n" * 10_000)
            self.assertEqual([float(line) for line in scanned.split()], list(range(1, 10_001)))

    def test_the_headers_are_below_prefixd_and_each_compiles_by_itself(self):
        include = tree / "include"
        self.assertEqual([folder.name for folder in include.iterdir()], ["prefixd"])
        headers = sorted(str(file.relative_to(include)) for file in include.rglob("*") if file.is_file())
        for public in ("prefixd/client.h", "prefixd/scan.h", "prefixd/kernels/types.h", "prefixd/base/status.h"):
            self.assertIn(public, headers)
        for name in headers:
            text = (include / name).read_text()
            for included in re.findall(r'#include "([^"]*)"', text):
                self.assertTrue(included in headers or included.startswith("absl/"), f"{name} includes {included}")
            run("c++", "-std=c++20", "-fsyntax-only", f"-I{include}", "-x", "c++", "-", input=f"#include <{name}>\n")

    def test_the_systems_own_folders_are_refused(self):
        for prefix in ("/", "/usr", "/usr/local/"):
            with self.assertRaisesRegex(AssertionError, "is the system's"):
                run("cmake", "--install", BUILD_DIR, "--prefix", prefix, env={**os.environ, "DESTDIR": folder.name + "/root"})
        self.assertFalse(pathlib.Path(folder.name, "root").exists())

    def test_the_protos_are_whole(self):
        protos = tree / "share" / "prefixd" / "proto"
        names = sorted(str(file.relative_to(protos)) for file in protos.rglob("*.proto"))
        self.assertEqual(names, sorted(str(file.relative_to(SOURCE_DIR / "proto"))
                                       for file in (SOURCE_DIR / "proto").rglob("*.proto")))
        run("protoc", f"-I{protos}", "--descriptor_set_out=/dev/null", *names)


if __name__ == "__main__":
    unittest.main()
