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


SAMPLE = """# of a sample
---
Feature_list:
  Generating_Empty_CQE: true
  Device_Emulation: Yes   # emulated devices
  Programmable_Congestion_Control: off
"""

WRONG_TEXTS = (
    ("Other: true\n", "1: error: Other"),
    ("", "1: error: no Feature_list"),
    ("  Device_Emulation: true\n", "1: error: Device_Emulation is in no Feature_list"),
    ("Feature_list:\n  Device_Emulation: 1\n", "2: error: Device_Emulation: neither true nor false, but '1'"),
    ("Feature_list:\n  Device_Emulation:\n", "2: error: Device_Emulation: neither"),
    ("Feature_list:\n  Device_Emulation: true\n  Device_Emulation: true\n", "3: error: Device_Emulation: a second"),
    ("Feature_list:\n  Device_Emulation\n", "2: error: not 'NAME: VALUE'"),
    ("Feature_list: true\n", "1: error: features are named"),
    ("Feature_list:\nFeature_list:\n", "2: error: Feature_list: there is one"),
)


def attributes(place):
    """As scripts of NVIDIA's samples call it; there and back; mistakes by line."""
    tool = place.build / "dpa-app-attributes2blob"
    place.write("sample.yaml", SAMPLE)
    sum_of(place, "rpc")
    # the steps of such a script
    place.good(tool, "sample.yaml", "sample.blob")
    place.dpacc("rpc.c", "-o", "rpc.a", "-mcpu=nv-dpa-bf3,nv-dpa-cx7", "-hostcc=gcc", "-hostcc-options=-Wall -Wextra",
                "--devicecc-options=-MMD -MT rpc.a -Werror -Wall", "-device-libs=-L.", "--app-name=rpc_app", "-I.",
                "-flto", "-disable-asm-checks", "--keep-dir", "kept", "--dpa-proc-attr=sample.blob")
    place.host("rpc_host.c", "rpc.a")
    expect((place.directory / "sample.blob").read_bytes() == bytes([3] + 7 * [0]), "another blob")
    place.good(tool, "--bin2yaml", "sample.blob", "back.yaml")
    back = (place.directory / "back.yaml").read_text()
    expect(re.findall(r"^  (\w+: \w+)$", back, re.M) ==
           ["Generating_Empty_CQE: true", "Device_Emulation: true", "Programmable_Congestion_Control: false",
            "Congestion_Control_Flow_Context_Access: false"], back)
    place.good(tool, "--yaml2bin", "--blob-size", "16", "back.yaml", "long.blob")
    expect((place.directory / "long.blob").read_bytes() == bytes([3] + 15 * [0]), "another blob")
    # one that needs nothing, and a name that is not known
    place.write("none.yaml", "Feature_list:\n# nothing\n")
    place.good(tool, "none.yaml", "none.blob")
    expect((place.directory / "none.blob").read_bytes() == bytes(8), "attributes of nothing")
    place.write("more.yaml", "Feature_list:\n  Newer_Feature: true\n")
    err = place.good(tool, "more.yaml", "more.blob").err
    expect("more.yaml:2: warning: Newer_Feature" in err, err)
    for text, said in WRONG_TEXTS:
        place.write("wrong.yaml", text)
        place.bad(tool, "wrong.yaml", "wrong.blob", said=[f"wrong.yaml:{said}"])
        expect(not (place.directory / "wrong.blob").exists(), "a blob is there")
    (place.directory / "odd.blob").write_bytes(bytes([1, 0, 0, 128]))
    place.bad(tool, "--bin2yaml", "odd.blob", "odd.yaml", said=["bit 31 has no meaning"])
    expect("warning: bit 31" in place.good(tool, "--bin2yaml", "--notification", "odd.blob", "odd.yaml").err, "no warning")
    for size in ("0", "6", "1024", "-8", "x"):
        place.bad(tool, "--blob-size", size, "none.yaml", "none.blob", said=[f"--blob-size {size}"])
    (place.directory / "short.blob").write_bytes(b"123")
    place.bad(tool, "--bin2yaml", "short.blob", "odd.yaml", said=["not a blob"])
    place.bad(tool, "nowhere.yaml", "none.blob", said=["nowhere.yaml: No such file"])
    place.bad(tool, "none.yaml", "nowhere/none.blob", said=["nowhere/none.blob: No such file"])
    place.bad(tool, "none.yaml", said=["two files"])
    expect("Usage" in place.good(tool, "--help").out, "no help")
    place.refused("rpc.c", "-o", "rpc.a", "--dpa-proc-attr=nowhere", said=["--dpa-proc-attr=nowhere: No such file"])
    place.refused("rpc.c", "-o", "rpc.a", "--dpa-proc-attr=short.blob", said=["short.blob: no blob"])


def cases():
    yield "dpacc attributes", on_library_bench(attributes)
    yield "dpacc dpacc-extract", on_library_bench(extraction)
    yield "dpacc tools", on_bench(tools)
