# SPDX-License-Identifier: BSD-2-Clause
"""Objects instead of sources."""
from bench import HERE, ROOT, on_library_bench
from harness import expect
from programs import sum_of

TWICE = """
struct __attribute__((packed)) pair { char a; long b; };
__dpa_rpc__ unsigned long twice(struct pair p) { return (unsigned long)(p.a + 2 * p.b); }
"""
HOST = """
#include <stdio.h>
#include "registry.h"
struct __attribute__((packed)) pair { char a; long b; };
extern struct flexio_app *app;
extern flexio_func_t rpc, twice;
int main(void)
{
	struct pair p = {1, 20};
	printf("%u %d", registry_count(app), (int)registry_call(app, rpc, 2ul, 3ul));
	printf(" %d\\n", (int)registry_call(app, twice, p));
	return 0;
}
"""


def two(place):
    sum_of(place, "rpc", "app")
    place.write("twice.c", TWICE)
    place.write("both.c", HOST)


def both(place, *files):
    place.host("both.c", *files)
    expect(place.good("./host").out.startswith("2 5 41\n"), "wrong results")


def device_objects(place):
    """Objects of dpa-clang, alone and beside sources; in a library too."""
    two(place)
    for name in ("rpc", "twice"):
        place.good(place.build / "dpa-clang", "--unchecked", "-O1", "-c", f"{name}.c", "-o", f"{name}.o")
    for files in (("rpc.o", "twice.o"), ("rpc.c", "twice.o"), ("twice.o", "rpc.c")):
        place.dpacc(*files, "-o", "app.a", "--app-name=app", "--unchecked")
        both(place, "app.a")
    place.dpacc("twice.o", "--gen-libs", "-o", "libtwice", "--unchecked")
    place.dpacc("rpc.c", "-o", "app.a", "--app-name=app", "--unchecked", "--device-libs=libtwice_device.a")
    both(place, "app.a", "libtwice_host.a")
    place.write("wrong.c", "__dpa_rpc__ unsigned long f(int a, ...) { return a; }\n")
    place.good(place.build / "dpa-clang", "-c", "wrong.c", "-o", "wrong.o")
    place.refused("wrong.o", "-o", "wrong.a", said=["wrong.c:1: error: f: "])
    place.good("strip", "-g", "twice.o")
    place.refused("twice.o", "-o", "wrong.a", said=["no debug information about the function twice"])


def compiled_objects(place):
    """--compile makes an object of each source, which has both sides' stubs."""
    two(place)
    (place.directory / "src").mkdir()
    (place.directory / "twice.c").rename(place.directory / "src/twice.c")
    place.dpacc("-c", "rpc.c", "src/twice.c", "--unchecked", "-hostcc=gcc", "-hostcc-options=-Wall -Werror")
    kinds = place.good("objdump", "-h", "rpc.dpa.o", "twice.dpa.o").out
    expect(kinds.count(".dpa_obj") == 2, kinds)
    for files in (("rpc.dpa.o", "twice.dpa.o"), ("rpc.c", "twice.dpa.o")):
        place.dpacc(*files, "-o", "app.a", "--app-name=app", "--unchecked")
        both(place, "app.a")
        expect(".dpa_obj" not in place.good("objdump", "-h", "app.a").out, "the objects are still in")
    expect(".dpa_obj" in place.good("objdump", "-h", "twice.dpa.o").out, "the object was changed")
    place.dpacc("--compile", "src/twice.c", "-o", "src/second.o", "--unchecked")
    place.dpacc("rpc.dpa.o", "src/second.o", "-o", "app.a", "--app-name=app", "--unchecked")
    both(place, "app.a")
    place.refused("-c", "rpc.c", "src/twice.c", "-o", "one.o", said=["several sources"])
    place.refused("-c", "rpc.dpa.o", said=["no source"])
    place.refused("-c", "--gen-libs", "rpc.c", "-o", "x", said=["one or the other"])
    place.refused("rpc.dpa.o", "rpc.c", "-o", "x.a", said=["multiple definition"])


def shared(place):
    """--shared makes what a program loads; the archive's member has the name that scripts take out."""
    two(place)
    place.dpacc("rpc.c", "twice.c", "-o", "app.a", "--app-name=app", "--unchecked")
    expect(place.good("ar", "t", "app.a").out == "hostStubs.o\n", "the archive's member has another name")
    place.good("ar", "x", "app.a")
    both(place, "hostStubs.o")
    place.dpacc("rpc.c", "-c", "-o", "rpc.o", "--unchecked")
    place.dpacc("rpc.o", "twice.c", "-shared", "-o", "libapp.so", "--app-name=app", "--unchecked",
                "-device-libs= ")
    for name in ("rpc.o", "hostStubs.o", "app.a"):
        (place.directory / name).unlink()
    place.good("gcc", *place.host_flags, "-I", ROOT / "src", "-rdynamic", "both.c", HERE / "registry.c", "libapp.so",
               "-Wl,-rpath,.", "-o", "host")
    expect(place.good("./host").out.startswith("2 5 41\n"), "wrong results of the shared object")
    place.refused("rpc.c", "--shared", "--gen-libs", "-o", "x", said=["--shared"])
    place.refused("rpc.c", "--shared", "-c", said=["--shared"])


def cases():
    return [(f"dpacc {name}", on_library_bench(test)) for name, test in {
        "objects of the device": device_objects,
        "--compile": compiled_objects,
        "--shared": shared,
    }.items()]
