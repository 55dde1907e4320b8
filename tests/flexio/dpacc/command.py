# SPDX-License-Identifier: BSD-2-Clause
"""The command line: what it understands, and what it says of the rest."""
import re

from bench import ROOT, on_bench
from harness import expect


def version(place):
    """As the samples' checker of compatibility reads it: what stands behind the only "version "."""
    for tool in ("dpacc", "dpa-clang"):
        out = place.good(place.build / tool, "--version").out
        found = re.findall(r"version (\d+)\.(\d+)\.(\d+)", out)
        expect(len(found) == 1 and out.count("version") == 1, f"{tool} --version prints {out}")
        expect(tuple(map(int, found[0])) >= (1, 6, 0), f"{tool} is of version {found[0]}")
    for form in ("-version", "-V", "--V"):
        expect(place.dpacc(form).out == place.dpacc("--version").out, f"{form} prints other text")


def helps(place):
    text = place.dpacc("--help").out
    for form in ("-help", "-h", "--h"):
        expect(place.dpacc(form).out == text, f"{form} prints other text")
    for option in ("-mcpu", "--app-name", "--devicecc-options", "--keep-dir", "--gen-libs"):
        expect(option in text, f"{option} is not in the help")


def manual(place):
    """What the help lists, the manual page explains."""
    page = re.sub(r"\\.|[\"]", "", (ROOT / "man/dpacc.1").read_text()).replace("Fl Fl ", "Fl ")
    for option in re.findall(r"(?<![\w-])--?([A-Za-z][a-z-]*)(?![A-Z])", place.dpacc("--help").out):
        expect(re.search(rf"Fl {option}\b", page), f"{option} is not in man/dpacc.1")


def mistakes(place):
    """Each is named, and no file appears."""
    place.write("a.c", "int a;\n")
    before = sorted(p.name for p in place.directory.iterdir())
    place.refused(said=["no source"])
    place.refused("a.c", said=["-o is missing"])
    place.refused("a.c", "-o", said=["-o: its value is missing"])
    place.refused("a.c", "-o", "a.a", "--app-nmae=x", said=["--app-nmae=x: no such option"])
    place.refused("a.c", "-o", "a.a", "--gen-libs=yes", said=["this option has no value"])
    place.refused("a.c", "-o", "a.a", "--app-name=my-app", said=["my-app"])
    place.refused("a.c", "-o", "a.a", "--app-name=", said=["--app-name"])
    place.refused("a.c", "-o", "a.a", "--app-name=" + "n" * 257, said=["FLEXIO_MAX_NAME_LEN"])
    place.refused("a.c", "-o", "a.a", "-mcpu=rv64", said=["rv64"])
    place.refused("a.c", "host.cpp", "-o", "a.a", said=["host.cpp: device code is C"])
    place.refused("a.c", "-o", "a.a", "-optf", "none", said=["none: cannot be read"])
    expect(sorted(p.name for p in place.directory.iterdir()) == before, "files appeared")


def look(place):
    """Programs ask the compiler where they are."""
    place.write("look.c", """
#include <stdint.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdarg.h>
#include <limits.h>
#include <stdatomic.h>
#if defined(__x86_64__) || defined(__aarch64__) || defined(__linux__) || defined(__unix__)
#error a host
#endif
#if !defined(__riscv) || __riscv_xlen != 64 || !defined(__DPA__) || __STDC_HOSTED__
#error not the DPA
#endif
#if __NV_DPA != __NV_DPA_BF3 || __NV_DPA_CX7 >= __NV_DPA_BF3 || __NV_DPA_BF3 >= __NV_DPA_CX8
#error no target
#endif
#if __riscv_zbb != 1000000 || __riscv_zbp != 93000 || __riscv_zbr != 93000 || __riscv_zbs != 1000000 || defined(__riscv_zba)
#error other extensions
#endif
#if __riscv_xfenceheap != 1000000 || __riscv_xnvcc != 1000000 || __riscv_xrpfxp != 1000000 || defined(__riscv_xcas)
#error other extensions of NVIDIA
#endif
_Static_assert((char)-1 > 0 && CHAR_MIN == 0, "char");
uint64_t f(uint64_t x);
__dpa_rpc__ uint64_t f(uint64_t x) { return x; }
void g(uint64_t x);
__dpa_global__ void g(uint64_t x) { (void)x; }
""")
    flags = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-c", "look.c", "-o", "look.o")
    place.good(place.build / "dpa-clang", *flags)
    symbols = place.good("objdump", "-t", "look.o").out
    expect(re.search(r"F \.dpa_rpc\s.* f$", symbols, re.M), f"f is in no section\n{symbols}")
    expect(re.search(r"F \.dpa_global\s.* g$", symbols, re.M), f"g is in no section\n{symbols}")
    place.good(place.build / "dpa-clang", "-mcpu=nv-dpa-cx8", "-fsyntax-only", "-x", "c",
               place.write("cx8.c", "_Static_assert(__NV_DPA == __NV_DPA_CX8, \"\");\n"
                           "_Static_assert(__riscv_zba == 1000000 && __riscv_zihintpause == 2000000 && __riscv_xcas == 1000000 &&"
                           " __riscv_xblkop == 1000000 && __riscv_xflush == 1000000, \"\");\n"))


def checks(place):
    """Loads and stores are checked unless that is turned off."""
    place.write("load.c", "int f(int *p);\nint f(int *p) { return *p; }\n")
    for options, wanted in (((), True), (("--unchecked",), False), (("--checked",), True)):
        place.good(place.build / "dpa-clang", *options, "-O2", "-c", "load.c", "-o", "load.o")
        found = "__asan_load4_noabort" in place.good("nm", "-u", "load.o").out
        expect(found == wanted, f"checked with {options}: {found}")


def host_headers(place):
    """What is the host's alone is not found, at the line that asks for it."""
    place.write("host.c", "#include <stdint.h>\n#include <pthread.h>\n")
    place.bad(place.build / "dpa-clang", "-c", "host.c", said=["host.c:2:", "pthread.h"])


def cases():
    return [(f"dpacc {name}", on_bench(test)) for name, test in {
        "Q298 --version": version,
        "--help": helps,
        "--help and the manual page": manual,
        "Q296 mistakes in options": mistakes,
        "the device's look": look,
        "checked and unchecked": checks,
        "Q303 headers of the host": host_headers,
    }.items()]
