# SPDX-License-Identifier: BSD-2-Clause
"""Archives: how build scripts make them, and what programs are linked with them."""
import re
import shutil
import subprocess

from bench import ROOT, on_library_bench
from harness import expect

SUM = """
#include <stdint.h>
uint64_t {name}(uint64_t a, uint64_t b);
__dpa_rpc__ uint64_t {name}(uint64_t a, uint64_t b) {{ return a + b; }}
"""
HOST = """
#include <stdio.h>
#include "registry.h"
extern struct flexio_app *{app};
extern flexio_func_t {name};
int main(void)
{{
	printf("= %d\\n", (int)registry_call({app}, &{name}, (uint64_t)2, (uint64_t)3));
	return 0;
}}
"""
# What no processor does by one instruction; a compiler calls functions of its runtime.
WIDE = """
#include <stdint.h>
uint64_t rpc(uint64_t a, uint64_t b);
__dpa_rpc__ uint64_t rpc(uint64_t a, uint64_t b)
{
	volatile unsigned __int128 y = ((unsigned __int128)a << 64) + b, x = y * 5 + 7;
	volatile __int128 z = -(__int128)x;
	volatile double d = (double)y;

	return x / y == 5 && x % y == 7 && z / (__int128)y == -5 && z % (__int128)y == -7 &&
	       (unsigned __int128)d == (unsigned __int128)a << 64 ? a + b : 0;
}
"""
# The argument lists of the SDK's scripts.
DEVICE_OPTIONS = ("-Wall,-Wextra,-Wpedantic,-Werror,-O0,-g,-DE_MODE_LE,-ffreestanding,-mabi=lp64,-mno-relax,"
                  "-mcmodel=medany,-nostdlib,-Wdouble-promotion,-I/opt/mellanox/flexio/include")


def sum_of(place, name, app=None):
    place.write(f"{name}.c", SUM.format(name=name))
    place.write(f"{name}_host.c", HOST.format(name=name, app=app or f"{name}_app"))


def sums(place, *program):
    expect(place.good(*(program or ("./host",))).out.startswith("= 5\n"), "the sum is wrong")


def sdk_script(place):
    """build_flexio_device.sh: one source, everything in one list."""
    sum_of(place, "rpc")
    (place.directory / "out").mkdir()
    place.dpacc("rpc.c", "-o", "out/rpc.a", "-hostcc=gcc",
                "-hostcc-options=-Wno-deprecated-declarations", f"--devicecc-options={DEVICE_OPTIONS}",
                "--app-name=rpc_app")
    place.host("rpc_host.c", "out/rpc.a")
    sums(place)


def samples_script(place):
    """doca_build_dpacc.sh: empty options, doubled and trailing commas, spaces before commas."""
    sum_of(place, "rpc")
    place.dpacc("rpc.c", "-o", f"{place.directory}/rpc.a", "-hostcc=gcc",
                "--devicecc-options=-I.,,-Wall, -Wextra,,-flto,-mcpu=nv-dpa-bf3,", "--devicelink-options=",
                "--device-libs=", "-hostcc-options=-fPIC ,-Wall -Wl,-z,defs -Wp,-D_FORTIFY_SOURCE=2,-DX",
                "--devicelink-options=-Wl,--no-gc-sections,-Map=rpc.map -nostdlib",
                "--app-name=rpc_app", "--unchecked")
    expect("Linker script and memory map" in (place.directory / "rpc.map").read_text(), "no map")
    place.host("rpc_host.c", "rpc.a")
    sums(place)


def wide(place):
    """Numbers of 128 bits, in both variants of the library."""
    sum_of(place, "rpc")
    place.write("rpc.c", WIDE)
    for options in (), ("--unchecked",):
        place.dpacc("rpc.c", "-o", "rpc.a", "-hostcc=gcc", "--app-name=rpc_app", *options)
        place.host("rpc_host.c", "rpc.a")
        sums(place)


def forms(place):
    """One dash or two, '=' or the next word, options of a file: the same archive."""
    sum_of(place, "rpc")
    place.write("inc/rpc.h", "#define IT 1\n")
    place.write("rpc.c", "#include \"rpc.h\"\n#if !IT || !ONE || !TWO\n#error options\n#endif\n" +
                SUM.format(name="rpc"))
    place.write("options", "-D ONE=1 --unchecked\n\"-DTWO=1\" -I 'inc'\n")
    place.write("attributes", "12345678")
    lists = (
        ("-o", "rpc.a", "-hostcc", "gcc", "-hostcc-options", "-Wall", "-devicecc-options", "-O2 -DONE=1",
         "-app-name", "rpc_app", "-mcpu=nv-dpa-bf3,nv-dpa-cx7,nv-dpa-cx8", "-DTWO", "-Iinc", "-flto", "-g",
         "-disable-asm-checks", "-ldpa", "-unchecked"),
        ("--output-file", "rpc.a", "--hostcc=gcc", "--hostcc-options=-Wall", "--mcpu", "nv-dpa-cx8",
         "--devicecc-options", "-DONE=1", "--devicecc-options=-DTWO=1", "--app-name", "rpc_app", "--flto",
         "--common-include-path", "inc", "--ldoca_dpa", "--dpa-proc-attr", "attributes", "-O3", "--unchecked"),
        ("-o=rpc.a", "--app-name=rpc_app", "-optf", "options", "-l", "dpa", "-O", "2", "-Wall", "-std=gnu11"),
        ("--options-file=options", "-o", "rpc.a", "--app-name", "rpc_app", "-v"),
    )
    for words in lists:
        (place.directory / "rpc.a").unlink(missing_ok=True)
        place.dpacc("rpc.c", *words)
        expect((place.directory / "rpc.a").exists(), f"no archive with {words}")
    place.host("rpc_host.c", "rpc.a")
    sums(place)


def values(place):
    """Options whose value is the next word keep it, also one that looks like an option of the linker."""
    sum_of(place, "rpc")
    place.write("inc/one.h", "#define ONE 1\n")
    place.write("rpc.c", "#if !ONE || !TWO\n#error options\n#endif\n" + SUM.format(name="rpc"))
    place.dpacc("rpc.c", "-o", "rpc.a", "--app-name=rpc_app", "--unchecked",
                "--devicecc-options=-O1 -mllvm -lto-embed-bitcode=optimized -isystem inc "
                "-include one.h -D TWO -mcmodel=medany")
    place.host("rpc_host.c", "rpc.a")
    sums(place)


def default_name(place):
    sum_of(place, "rpc", "__dpa_a_out")
    place.dpacc("rpc.c", "-o", "rpc.a", "--unchecked")
    place.host("rpc_host.c", "rpc.a")
    sums(place)


def dry_run(place):
    """The commands are printed; nothing is created."""
    sum_of(place, "rpc")
    before = sorted(str(p) for p in place.directory.rglob("*"))
    for form in ("-dryrun", "--dryrun"):
        out = place.dpacc("rpc.c", "-o", "rpc.a", form, "--keep-dir=kept", "--app-name=rpc_app").out
        for step in ("clang", "rpc.dpa.device.c", "rpc.dpa.host.c", "ld -static", "rpc_app.meta.c", "ar cr"):
            expect(step in out, f"'{step}' is not printed\n{out}")
    expect(sorted(str(p) for p in place.directory.rglob("*")) == before, "files appeared")


def kept(place):
    """Intermediate files stay, and a script that compiles the host's part again gets the same."""
    sum_of(place, "rpc")
    place.dpacc("rpc.c", "-o", "rpc.a", "--keep-dir", "kept/deep", "--app-name=rpc_app", "--unchecked")
    folder = place.directory / "kept/deep"
    names = {p.name for p in folder.iterdir()}
    wanted = {"rpc.dpa.device.c", "rpc.dpa.host.c", "rpc.stub.inc", "rpc.dpa.o", "device_exec",
              "device_exec.stub.inc", "rpc_app.meta.c"}
    expect(wanted <= names, f"missing: {wanted - names}")
    inc = ("-I", folder, *place.host_flags[1:], "-fPIC")
    place.good("gcc", *inc, "-D__DPA_OBJ_STUB_FILE__=\"rpc.stub.inc\"", "-c", folder / "rpc.dpa.host.c",
               "-o", "rpc.o")
    expect(".dpa_obj" in place.good("objdump", "-h", "rpc.o").out, "no section for the device's object")
    place.good("objcopy", "--remove-section=.dpa_obj", "rpc.o")
    place.good("gcc", "-r", *inc, "-nostdlib", "-D__DPA_EXEC_STUB_FILE__=\"device_exec.stub.inc\"",
               folder / "rpc_app.meta.c", "rpc.o", "-o", "all.o")
    place.good("ar", "cr", "again.a", "all.o")
    place.host("rpc_host.c", "again.a")
    sums(place)


def libraries(place):
    """A device library has annotated functions that only the host names, and others."""
    place.write("lib.c", """
unsigned long helper(unsigned long a);
unsigned long helper(unsigned long a) { return a * 10; }
__dpa_rpc__ unsigned long from_library(unsigned long a) { return a + 7; }
""")
    place.write("app.c", """
unsigned long helper(unsigned long a);
__dpa_rpc__ unsigned long from_app(unsigned long a) { return helper(a); }
""")
    place.write("app_host.c", """
#include <stdio.h>
#include "registry.h"
extern struct flexio_app *app;
extern flexio_func_t from_app, from_library;
int main(void)
{
	printf("%u %d", registry_count(app), (int)registry_call(app, from_app, 2ul));
	printf(" %d\\n", (int)registry_call(app, from_library, 2ul));
	return 0;
}
""")
    place.write("half_host.c", """
#include <stdio.h>
#include "registry.h"
extern struct flexio_app *app;
int main(void) { printf("%u\\n", registry_count(app)); return 0; }
""")
    (place.directory / "lib").mkdir()
    place.dpacc("lib.c", "--gen-libs", "--devicecc-options=-O2", "-hostcc=gcc", "-o", "lib/libmine",
                "-hostcc-options=-fPIC ", "--unchecked")
    expect({p.name for p in (place.directory / "lib").iterdir()} == {"libmine_device.a", "libmine_host.a"},
           "not two libraries")
    (place.directory / "lib/libmine_device.a").rename(place.directory / "lib/libmine.a")
    for words in (("--devicelink-options=-lmine,", "--device-libs=-Llib,"), ("-device-libs=-Llib -lmine",),
                  ("--device-libs", "lib/libmine.a"),
                  ("--device-libs=-L/nowhere -lflexio_dev -lflexio-libc", "-device-libs=-Llib -lmine")):
        place.dpacc("app.c", "-o", "app.a", "--app-name=app", "--unchecked", *words)
        place.host("app_host.c", "app.a", "lib/libmine_host.a")
        expect(place.good("./host").out.startswith("2 20 9\n"), "the library's function is not called")
    # without the library's host part its function is not the host's to call
    place.host("half_host.c", "app.a")
    expect(place.good("./host").out.startswith("1\n"), "not one function")


def link_errors(place):
    """What a device has not is missed when the image is linked, with the line."""
    for name, prototype, call in (("open", "int open(const char *, int, ...);", "open(\"x\", 0)"),
                                  ("malloc", "void *malloc(unsigned long);", "malloc(1) != 0"),
                                  ("pthread_self", "unsigned long pthread_self(void);", "pthread_self()"),
                                  ("mine", "int mine(void);", "mine()")):
        place.write("uses.c", f"{prototype}\n__dpa_rpc__ unsigned long f(void)\n{{\n\treturn {call};\n}}\n")
        place.refused("uses.c", "-o", "uses.a", said=["uses.c:4", f"undefined reference to `{name}'"])
    place.write("uses.c", "static _Thread_local int x;\n"
                "__dpa_rpc__ unsigned long f(void) { return x++; }\n")
    place.refused("uses.c", "-o", "uses.a", said=["thread-local"])
    place.write("uses.c", "\n\n__dpa_rpc__ unsigned long f(void) { return 1 }\n")
    place.refused("uses.c", "-o", "uses.a", said=["uses.c:3:", "expected ';'"])
    place.write("uses.c", "__dpa_rpc__ unsigned long f(void) { return 1; }\n")
    place.refused("uses.c", "-o", "uses.a", "--app-name=f", said=["a function that the host calls"])
    expect(not (place.directory / "uses.a").exists(), "an archive is there")


def parallel(place):
    """Builds at the same time in one directory, of one archive too."""
    jobs = []
    for i in range(6):
        sum_of(place, f"rpc{i}")
        jobs.append((f"rpc{i}.c", "-o", f"rpc{i}.a", f"--app-name=rpc{i}_app"))
    jobs += [jobs[0]] * 2
    started = [subprocess.Popen([place.build / "dpacc", *job, "--unchecked"], cwd=place.directory,
                                env=place.env, stderr=subprocess.PIPE, text=True) for job in jobs]
    for job, process in zip(jobs, started):
        err = process.communicate()[1]
        expect(process.returncode == 0, f"{job}: {err}")
    for i in range(6):
        place.host(f"rpc{i}_host.c", f"rpc{i}.a")
        sums(place)
    expect(len(list(place.directory.glob("*.a*"))) == 6, "files are left")


def hosts(place):
    """gcc and g++; programs that move and do not, shared objects; with LTO and without."""
    sum_of(place, "rpc")
    place.dpacc("rpc.c", "-o", "rpc.a", "--app-name=rpc_app", "--unchecked", "-hostcc-options=-O2 -flto")
    text = (place.directory / "rpc_host.c").read_text()
    place.write("rpc_host.cc", text.replace("extern ", "extern \"C\" "))
    for compiler, source in (("gcc", "rpc_host.c"), ("g++", "rpc_host.cc")):
        for flags in (("-fPIE", "-pie"), ("-fno-pie", "-no-pie"), ("-O2", "-flto")):
            place.host(source, "rpc.a", compiler=compiler, flags=flags)
            sums(place)
    place.write("plugin.c", text.replace("int main(void)", "int plugin(void)"))
    place.host("plugin.c", "rpc.a", output="libplugin.so", flags=("-shared", "-fPIC", "-Wl,-z,defs"))
    place.write("opens.c", """
#include <dlfcn.h>
int main(void)
{
	void *so = dlopen("./libplugin.so", RTLD_NOW);
	int (*plugin)(void) = so ? (int (*)(void))dlsym(so, "plugin") : 0;
	return plugin ? plugin() : 9;
}
""")
    place.good("gcc", "opens.c", "-o", "opens")
    sums(place, "./opens")


def two_apps(place):
    """Two applications in one program; constructors of the program find them made."""
    for name in ("left", "right"):
        place.write(f"{name}.c", f"static unsigned long n = 1;\n"
                    f"__dpa_rpc__ unsigned long {name}(unsigned long a) {{ n += a; return n; }}\n")
        place.dpacc(f"{name}.c", "-o", f"{name}.a", f"--app-name={name}_app", "--unchecked")
    place.write("both.cc", """
#include <cstdio>
#include "registry.h"
extern "C" struct flexio_app *left_app, *right_app;
extern "C" flexio_func_t left, right;
struct early {
	unsigned int count;
	early() : count(registry_count(left_app) + registry_count(right_app)) {}
} early;
int main()
{
	std::printf("%u %d", early.count, (int)registry_call(left_app, left, 4ul));
	std::printf(" %d\\n", (int)registry_call(right_app, right, 9ul));
	return registry_call(left_app, left, 1ul) != 6;
}
""")
    for files in (("left.a", "right.a"), ("-Wl,--whole-archive", "left.a", "right.a",
                                          "-Wl,--no-whole-archive")):
        place.host("both.cc", *files, compiler="g++")
        expect(place.good("./host").out.startswith("2 5 10\n"), "the applications are mixed up")


def debugging(place):
    """The image knows the lines of its functions, whatever -g says; -g0 takes that out."""
    place.write("lines.c", "\n\n\n__dpa_rpc__ unsigned long here(unsigned long a)\n{\n\treturn a + 1;\n}\n")
    for options, known in ((), True), (("-g",), True), (("--devicecc-options=-gdwarf-4",), True), \
            (("-g0",), False):
        place.dpacc("lines.c", "-o", "lines.a", "--keep-dir=kept", "--unchecked", *options)
        symbols = place.good("nm", "kept/device_exec").out
        address = re.search(r"^([0-9a-f]+) T here$", symbols, re.M)
        expect(address, symbols)
        line = place.good("addr2line", "-e", "kept/device_exec", address[1]).out
        expect(("lines.c:5" in line) == known, f"{options}: {line}")
    place.good("gdb", "-batch", "-ex", "break here", "kept/device_exec")


def dependencies(place):
    """-MMD: a build system hears of the headers, and that the archive is made of them."""
    place.write("part.h", "#define PART 1\n")
    place.write("part.c", "#include \"part.h\"\n__dpa_rpc__ unsigned long f(void) { return PART; }\n")
    (place.directory / "out").mkdir()
    place.dpacc("part.c", "-o", "out/part.a", "--devicecc-options=-MMD", "--unchecked")
    text = (place.directory / "out/part.d").read_text()
    expect(text.startswith("out/part.a:") and "part.h" in text, text)
    place.dpacc("part.c", "-o", "out/part.a", "--devicecc-options=-MMD -MT it -MF it.d", "--unchecked")
    expect((place.directory / "it.d").read_text().startswith("it:"), "another file or target")


def places(place):
    """Installed, in NVIDIA's layout, or reached by a link: what dpacc needs lies beside it."""
    sum_of(place, "rpc")
    library = place.build / "src/dpa/device"
    for tool, include, lib in (("usr/bin", "usr/lib/softhca/dpa/include", "usr/lib/softhca/dpa"),
                               ("opt/doca/tools", "opt/flexio/include", "opt/flexio/lib")):
        for folder in (tool, include, lib):
            (place.directory / folder).mkdir(parents=True, exist_ok=True)
        for name in ("dpacc", "dpa-clang"):
            shutil.copy(place.build / name, place.directory / tool)
        here = place.directory / tool / "dpacc"
        words = ("rpc.c", "-o", "rpc.a", "--app-name=rpc_app", "--unchecked")
        place.bad(here, *words, said=["headers of the device are not installed"])
        (place.directory / include).rmdir()
        (place.directory / include).symlink_to(ROOT / "include")
        place.bad(here, *words, said=["device library is not installed"])
        for mode in ("checked", "unchecked"):
            (place.directory / lib / mode).symlink_to(library / mode)
        (place.directory / "link").symlink_to(here)
        place.good("./link", *words)
        (place.directory / "link").unlink()
        place.host("rpc_host.c", "rpc.a")
        sums(place)


def cases():
    return [(f"dpacc {name}", on_library_bench(test)) for name, test in {
        "Q295 the SDK's build script": sdk_script,
        "Q296 the samples' build script": samples_script,
        "Q296 options in all forms": forms,
        "Q296 options with values": values,
        "Q297 the default name": default_name,
        "Q299 -dryrun": dry_run,
        "Q300 --keep-dir": kept,
        "Q302 --gen-libs": libraries,
        "Q304 Q310 undefined symbols": link_errors,
        "numbers of 128 bits": wide,
        "Q305 parallel builds": parallel,
        "Q306 B42 host programs of all kinds": hosts,
        "B29 two applications": two_apps,
        "Q311 lines of device code": debugging,
        "dependencies": dependencies,
        "where it looks": places,
    }.items()]
