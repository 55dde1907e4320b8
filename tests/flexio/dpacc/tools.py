# SPDX-License-Identifier: BSD-2-Clause
"""The tools that build scripts call besides."""
import re

from bench import on_bench, on_library_bench
from harness import expect
from objects import TWICE
from programs import sum_of


def extraction(place):
    """The image comes out of what it was put into, also if that is stripped or has two."""
    for name in ("left", "right"):
        sum_of(place, name)
        place.dpacc(f"{name}.c", "-o", f"{name}.a", f"--app-name={name}_app", "--keep-dir", f"kept.{name}")
    wanted = {name: (place.directory / f"kept.{name}/device_exec").read_bytes() for name in ("left", "right")}
    tool = place.build / "dpacc-extract"

    def gives(name, *words):
        (place.directory / "image").unlink(missing_ok=True)
        place.good(tool, *words)
        expect((place.directory / "image").read_bytes() == wanted[name], f"another image with {words}")

    gives("left", "left.a", "-o", "image")
    place.host("left_host.c", "left.a", flags=("-O2", "-Wl,--gc-sections"))
    place.good("strip", "host")
    gives("left", "host", "-o=image", "-mcpu=nv-dpa-bf3")
    place.good("gcc", "-shared", "-o", "libboth.so", "-Wl,--whole-archive", "left.a", "right.a",
               "-Wl,--no-whole-archive")
    gives("right", "libboth.so", "--output-file", "image", "--app-name=right_app")
    gives("left", "-app-name", "left_app", "libboth.so", "--output-file=image")
    place.bad(tool, "libboth.so", "-o", "image", said=["left_app", "right_app", "--app-name"])
    place.bad(tool, "left.a", "-o", "image", "--app-name=none", said=["no application none"])
    place.bad(tool, "left.c", "-o", "image", said=["no application"])
    place.bad(tool, "nowhere", "-o", "image", said=["nowhere: No such file"])
    place.bad(tool, "left.a", said=["-o"])
    place.bad(tool, "left.a", "-o", "image", "--fast", said=["--fast: no such option"])
    expect("Usage" in place.good(tool, "--help").out, "no help")
    expect(len(re.findall(r"version \d", place.good(tool, "--version").out)) == 1, "no version")


def tools(place):
    """Each does what the tool of that name does, and takes the target of NVIDIA's."""
    place.write("twice.c", TWICE)
    place.good(place.build / "dpa-clang", "-g", "-c", "twice.c", "-o", "twice.o")
    place.good(place.build / "dpa-ar", "rc", "libtwice.a", "twice.o")
    place.good(place.build / "dpa-ranlib", "libtwice.a")
    expect("twice in twice.o" in place.good("nm", "-s", "libtwice.a").out, "no index")
    expect(re.search(r" [Tt] twice$", place.good(place.build / "dpa-nm", "libtwice.a").out, re.M), "no symbol")
    text = place.good(place.build / "dpa-objdump", "-sSdxl", "--mcpu=nv-dpa-bf3", "twice.o").out
    expect("<twice>:" in text and "twice.c:3" in text, text)
    place.good(place.build / "dpa-strip", "--strip-debug", "twice.o")
    expect(".debug_info" not in place.good("objdump", "-h", "twice.o").out, "not stripped")
    place.bad(place.build / "dpa-nm", "nowhere.o", said=["nowhere.o"])
    # without LLVM's, binutils'
    alone = place.write("alone", "#!/bin/sh\necho llvm-nothing\n")
    alone.chmod(0o755)
    out = place.good(place.build / "dpa-nm", "libtwice.a", env={"DPACC_CLANG": str(alone)}).out
    expect(re.search(r" [Tt] twice$", out, re.M), out)


def cases():
    yield "dpacc dpacc-extract", on_library_bench(extraction)
    yield "dpacc tools", on_bench(tools)
