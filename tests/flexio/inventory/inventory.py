# SPDX-License-Identifier: BSD-2-Clause
"""The public headers against manual.tsv, which was made from the manual and not from them."""
import pathlib
import re
import tempfile

from harness import Skip, expect

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
INCLUDE = SOURCE / "include"
TABLE = HERE / "manual.tsv"
LATER_TABLE = HERE / "later.tsv"
GENERATIONS = ((24, 10), (25, 1), (25, 7), (25, 10), (26, 1), (26, 4))

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# mlx5dv.h, which flexio.h includes, calls htobe32(3) and its like, which <endian.h> has with _DEFAULT_SOURCE.
HOST_C = ["gcc", "-std=c11", "-D_DEFAULT_SOURCE", *STRICT, f"-I{INCLUDE}"]
HOST_CXX = ["g++", "-x", "c++", "-std=c++17", *STRICT, "-Wno-invalid-offsetof", f"-I{INCLUDE}"]
# What NVIDIA's build_flexio_device.sh passes, and what depends on the processor.
DEVICE = [*STRICT, "-O0", "-g", "-DE_MODE_LE", "-ffreestanding", "-nostdlib", "-Wdouble-promotion",
          "-funsigned-char", "-nostdinc", f"-I{INCLUDE}", f"-I{INCLUDE}/libflexio-libc"]
TARGETS = {
    "native": [],
    "riscv64": ["--target=riscv64-unknown-elf", "-march=rv64imac", "-mabi=lp64", "-mno-relax",
                "-mcmodel=medany"],
    "aarch64": ["--target=aarch64-unknown-elf"],
    "x86-64": ["--target=x86_64-unknown-elf"],
}
LATER = {"host": "-DFLEXIO_VER_USED=FLEXIO_VER(25,7,0)",
         "device": "-DFLEXIO_DEV_VER_USED=FLEXIO_DEV_VER(25,7,0)"}
# The manual's shapes and no others, as a program that says nothing gets the later ones too.
EXACT = "-DFLEXIO_DEV_VER_USED=FLEXIO_DEV_VER(24,1,0)"
HOST_HEADERS = ["libflexio/flexio.h", "libflexio/flexio_ver.h"]
# Headers that another one includes for the programs.
PARTS = {"libflexio": "libflexio/flexio.h",
         "libflexio-dev/flexio_dev_2410.h": "libflexio-dev/flexio_dev.h",
         "libflexio-dev/flexio_dev_2501.h": "libflexio-dev/flexio_dev.h",
         "libflexio-dev/flexio_dev_queue_2501.h": "libflexio-dev/flexio_dev_queue_access.h",
         "libflexio-dev/flexio_dev_queue_2410.h": "libflexio-dev/flexio_dev_queue_access.h"}


def device_compiler(session):
    """clang with its own headers and no others."""
    found = session.call("sh", "-c", "clang -print-resource-dir")
    if found.status != 0:
        raise Skip("no clang")
    return ["clang", "-isystem", f"{found.out.strip()}/include", *DEVICE]


def compiles(session, command, text, what):
    """The complaints about a source; none if it compiles."""
    with tempfile.TemporaryDirectory(prefix="flexio.") as folder:
        source = pathlib.Path(folder) / "source.c"
        source.write_text(text)
        result = session.call(*command, "-fsyntax-only", str(source))
    expect(result.status == 0, f"{what}: {result.text()}")


def rows(side):
    """The rows of one side: line, kind, name, what it is."""
    for number, line in enumerate(TABLE.read_text().splitlines(), 1):
        fields = line.split("\t")
        if fields[0] == side:
            yield (number, *fields[1:4])


def check_c(kind, name, what):
    """One row as something that C code checks when it is compiled."""
    def same(expression, kind):
        return f"_Static_assert(__builtin_types_compatible_p({expression}, {kind}), \"\");"
    if kind == "function":
        return same(f"__typeof__(&{name})", what)
    if kind == "variable":
        return same(f"__typeof__({name})", what)
    if kind == "typedef":
        return same(name, what)
    if kind == "size":
        return f"_Static_assert(sizeof({name}) == {what}, \"\");"
    if kind == "enumerator":
        return f"_Static_assert((int)({name}) == {what}, \"\");"
    if kind == "macro":
        return f"_Static_assert({name} == {what} && PREPROCESSED_{name}, \"\");"
    if kind == "statement":
        return f"void use_{name}(void);\nvoid use_{name}(void)\n{{ {what}; }}"
    expect(kind == "field", f"a row of kind {kind}")
    owner, field = name.split(".", 1)
    kind, place = what.rsplit("@", 1)
    check = f"_Static_assert(__builtin_offsetof({owner}, {field}) == {place}, \"\");"
    return check + (same(f"__typeof__((({owner} *)0)->{field})", kind) if kind.strip() else "")


def check_cxx(kind, name, what):
    """The same in C++; None where the language has nothing to say about it."""
    def same(expression, kind):
        return f"static_assert(std::is_same<{expression}, {kind}>::value, \"\");"
    if kind == "function":
        return same(f"decltype(&{name})", what)
    if kind == "typedef":
        return same(name, what)
    if kind == "field":
        owner, field = name.split(".", 1)
        kind, place = what.rsplit("@", 1)
        return (f"static_assert(offsetof({owner}, {field}) == {place}, \"\");" +
                same(f"decltype(std::declval<{owner}>().{field})", kind))
    return check_c(kind, name, what).replace("_Static_assert", "static_assert")


def preprocessed(side):
    """Constants that the preprocessor knows are 1 if it sees the right value."""
    text = ""
    for _, kind, name, what in rows(side):
        if kind == "macro":
            text += f"#if {name} == {what}\n#define PREPROCESSED_{name} 1\n#endif\n"
    return text


def whole_table(session, side, command, headers, check):
    """Compiles all rows of a side; a wrong row is reported by its line of the table."""
    text = "".join(f"#include <{header}>\n" for header in headers) + preprocessed(side)
    text += "extern struct spinlock_s lock;\nstruct spinlock_s lock;\n" if side == "device" else ""
    count = 0
    for number, kind, name, what in rows(side):
        text += f'#line {number} "{TABLE.name}"\n{check(kind, name, what)}\n'
        count += 1
    expect(count > 200, f"{count} rows of the {side}")
    compiles(session, command, text, f"{side}: {count} rows")


def later_rows(side, generation):
    """The rows that a program of that generation has; None: one that names none."""
    for number, line in enumerate(LATER_TABLE.read_text().splitlines(), 1):
        fields = line.split("\t")
        if fields[0] != side:
            continue
        since = tuple(int(part) for part in fields[4].split("."))
        expect(fields[5] in ("yes", "no"), line)
        if generation >= since if generation else fields[5] == "yes":
            yield number, *fields[1:4]


def later_table(session, side, command, headers, generation):
    """Compiles the rows for one generation."""
    macro = {"host": "FLEXIO", "device": "FLEXIO_DEV"}[side]
    flags = [f"-D{macro}_VER_USED={macro}_VER({generation[0]},{generation[1]},0)"] if generation else []
    text = "".join(f"#include <{header}>\n" for header in headers)
    found = list(later_rows(side, generation))
    for number, kind, name, what in found:
        text += f'#line {number} "{LATER_TABLE.name}"\n{check_c(kind, name, what)}\n'
    compiles(session, [*command, *flags], text, f"{side}, generation {generation}: {len(found)} rows")
    return len(found)


def generations(session):
    """Each generation has its names, and those of the generations before."""
    counts = {}
    for generation in (None, *GENERATIONS):
        for target, flags in TARGETS.items():
            counts[generation] = later_table(session, "device", [*device_compiler(session), *flags], [
                "libflexio-dev/flexio_dev.h", "libflexio-dev/flexio_dev_queue_access.h",
                "libflexio-dev/flexio_dev_debug.h"], generation)
        later_table(session, "host", HOST_C, ["libflexio/flexio.h"], generation)
    expect(counts[(25, 1)] > 70 and counts[(24, 10)] < counts[(25, 1)] < counts[(26, 1)], counts)


def host_c(session):
    whole_table(session, "host", HOST_C, ["libflexio/flexio.h"], check_c)


def host_cxx(session):
    whole_table(session, "host", HOST_CXX, ["cstddef", "type_traits", "utility",
                                            "libflexio/flexio.h"], check_cxx)


def device(session):
    for target, flags in TARGETS.items():
        whole_table(session, "device", [*device_compiler(session), *flags, EXACT],
                    ["libflexio-dev/flexio_dev.h", "libflexio-dev/flexio_dev_err.h",
                     "libflexio-dev/flexio_dev_queue_access.h",
                     "libflexio-dev/flexio_dev_tracer.h"], check_c)


def wrong_rows(session):
    """A row that is wrong fails: each kind of row, spoiled, is found."""
    headers = "".join(f"#include <{h}>\n" for h in (
        "libflexio-dev/flexio_dev_queue_access.h", "libflexio-dev/flexio_dev_tracer.h"))
    for kind, name, what in (
            ("function", "flexio_dev_puts", "int (*)(struct flexio_dev_thread_ctx *, int)"),
            ("function", "flexio_dev_nothing", "void (*)(void)"),
            ("variable", "g_dev_p_tracer_ctx", "int"),
            ("typedef", "flexio_uintptr_t", "uint32_t"), ("size", "struct flexio_dev_eqe", "60"),
            ("enumerator", "CC_DB_NEXT_ACT_FW", "3"), ("macro", "LOG_SQE_NUM_SEGS", "3"),
            ("field", "struct flexio_dev_eqe.type", "uint8_t@2"),
            ("field", "struct flexio_dev_eqe.type", "uint16_t@1")):
        text = f"{headers}#define PREPROCESSED_{name} 1\n{check_c(kind, name, what)}\n"
        with tempfile.TemporaryDirectory(prefix="flexio.") as folder:
            source = pathlib.Path(folder) / "source.c"
            source.write_text(text)
            result = session.call(*device_compiler(session), "-fsyntax-only", str(source))
        expect(result.status != 0, f"{kind} {name} {what} is taken")


def alone(header):
    """What a program writes to get a header, and nothing else."""
    return f"#include <{header}>\n#include <{header}>\nextern int nothing_else;\n"


def host_alone(session):
    for header in HOST_HEADERS:
        for command in (HOST_C, HOST_CXX):
            for flags in ([], [LATER["host"]]):
                compiles(session, [*command, *flags], alone(header), header)


def device_headers():
    for path in sorted(INCLUDE.rglob("*.h")):
        name = str(path.relative_to(INCLUDE))
        if not name.startswith("libflexio/") and name not in PARTS:
            yield name


def device_alone(session):
    compiler, found = device_compiler(session), list(device_headers())
    expect(len(found) > 10, f"{found}")
    together = "".join(alone(header).replace("nothing_else", f"nothing_{n}")
                       for n, header in enumerate(found))
    for header in found:
        compiles(session, compiler, alone(header), header)
    for flags in (*TARGETS.values(), [LATER["device"]], ["-DSPINLOCK_DEBUG"],
                  ["-x", "c++", "-std=c++17"]):
        compiles(session, [*compiler, *flags], together, " ".join(flags))


def shapes(session):
    for name in ("shapes.c", "later.c"):
        text = (HERE / name).read_text()
        for command in (HOST_C, HOST_CXX):
            compiles(session, command, text, name)
    either = (HERE / "either.c").read_text()
    compiles(session, device_compiler(session), either, "either.c")
    between = (HERE / "between.c").read_text()
    for year, month in ((24, 1), (24, 4), (24, 7)):
        flag = f"-DFLEXIO_DEV_VER_USED=FLEXIO_DEV_VER({year},{month},0)"
        compiles(session, [*device_compiler(session), flag], between, f"between.c as {year}.{month}")
    compiles(session, device_compiler(session), between, "between.c without a generation")
    # The second half alone by the host's macro, as samples of 26.4 write it.
    later = ("#include <libflexio/flexio_ver.h>\n#define FLEXIO_DEV_VER_USED FLEXIO_VER(26, 4, 0)\n" +
             re.sub(r"(?ms)^flexio_dev_status_t earlier.*?^}\n", "", either))
    compiles(session, device_compiler(session), later.replace(".err_syndrome", ".err_synd"),
             "either.c as 26.4")


def inline_half(session):
    """What the inline functions store and read, at both ends of optimisation, in each generation."""
    with tempfile.TemporaryDirectory(prefix="flexio.") as folder:
        for flags in (["-O0"], ["-O2"], ["-O2", "-DSPINLOCK_DEBUG"], ["-O2", LATER["device"]]):
            command = [*device_compiler(session), *flags]
            command.remove("-nostdlib")
            program = f"{folder}/access"
            built = session.call(*command, str(HERE / "access.c"), "-o", program)
            expect(built.status == 0, f"{flags}: {built.text()}")
            result = session.call(program)
            expect(result.status == 0, f"{flags}: status {result.status}: {result.text()}")


# Target, fence, what its assembly has and has not.
FENCES = (("x86-64", "__DPA_W, __DPA_R", r"mfence|lock", None),
          ("x86-64", "__DPA_RW, __DPA_RW", r"mfence|lock", None),
          ("x86-64", "__DPA_W, __DPA_W", None, r"mfence|lock"),
          ("x86-64", "__DPA_R, __DPA_R", None, r"mfence|lock"),
          ("aarch64", "__DPA_W, __DPA_R", r"dmb\s+ish$", None),
          ("aarch64", "__DPA_W, __DPA_W", r"dmb\s+ish", None),
          ("aarch64", "__DPA_R, __DPA_R", r"dmb\s+ish", None),
          ("riscv64", "__DPA_W, __DPA_R", r"fence\s+rw, rw", None),
          ("riscv64", "__DPA_R, __DPA_W", r"fence\s+r, rw", None))


def fences(session):
    """A fence is an instruction where the processor needs one, and each keeps the compiler's order."""
    for target, fence, there, absent in FENCES:
        text = (f"#include <dpaintrin.h>\nextern int a;\nint f(void);\nint f(void)\n{{ a = 1; "
                f"__dpa_thread_fence(__DPA_MEMORY, {fence}); int x = a; a = 2; return x; }}\n")
        with tempfile.TemporaryDirectory(prefix="flexio.") as folder:
            source = pathlib.Path(folder) / "source.c"
            source.write_text(text)
            result = session.call(*device_compiler(session), *TARGETS[target], "-O2", "-g0", "-S",
                                  str(source), "-o", "-")
        expect(result.status == 0, result.text())
        expect(not there or re.search(there, result.out, re.M), f"{target} {fence}: {result.out}")
        expect(not absent or not re.search(absent, result.out), f"{target} {fence}: {result.out}")
        # Both stores are there: the first is not merged with the second.
        stores = re.findall(r"^\s+(?:mov[lq]?\s+\$[12]|str\s|sw\s)", result.out, re.M)
        expect(len(stores) == 2, f"{target} {fence}: {len(stores)} stores\n{result.out}")


# A comment that says what a function does, and its declaration or definition up to the parameters.
DECLARATION = re.compile(r"(?:/\*\*((?:(?!\*/).)*)\*/\n)?"
                         r"^((?:static inline |__attribute__\(\([^\n]*\)\)\s)*"
                         r"(?:const )?(?:enum |struct |union )?\w+[ \n]\**)(\w+)\(([^;{]*)\)"
                         r"(?:;|\n\{)", re.M | re.S)
INTERNAL = ("__flexio_dev_own", "__flexio_dev_kind")


def declarations():
    """Header, comment, name and parameters of every function, but those of the C standard."""
    for path in sorted(INCLUDE.rglob("*.h")):
        text = re.sub(r"#define (?:[^\n]*\\\n)*[^\n]*\n", "", path.read_text())
        for comment, result, name, parameters in DECLARATION.findall(text):
            if (path.parent.name != "libflexio-libc" and not result.startswith("typedef")
                    and not name.startswith(INTERNAL)):
                yield path.name, comment, name, parameters


def documented(session):
    """Every function has a comment that names it and its parameters, or another function that has."""
    count = 0
    for header, comment, name, parameters in declarations():
        count += 1
        expect(comment, f"{header}: {name}() has no comment")
        others = set(re.findall(r"(\w+)\(\)", comment)) - {name}
        expect(name in comment or others,
               f"{header}: the comment of {name}() is another's")
        for parameter in parameters.split(","):
            word = parameter.split()[-1].strip("*").split("[")[0]
            expect(word == "void" or f"@{word}" in comment or others,
                   f"{header}: {name}() does not say what {word} is")
    expect(count > 170, f"{count} functions were found")


def exported(session):
    """The library exports the functions of the manual; the device library defines its own."""
    library = session.build / "src/flexio/libflexio.so"
    if not library.exists():
        raise Skip("libflexio.so was not built")
    symbols = session.call("nm", "-D", "--defined-only", "--format=posix", str(library)).out
    found = {line.split()[0].split("@")[0] for line in symbols.splitlines()}
    wanted = {name for _, kind, name, _ in rows("host") if kind == "function"}
    expect(len(wanted) == 87, f"{len(wanted)} functions")
    wanted |= {name for _, kind, name, _ in later_rows("host", GENERATIONS[-1]) if kind == "function"}
    expect(wanted <= found, f"not exported: {sorted(wanted - found)}")
    more = {name for name in found - wanted if not re.match(r"(lib)?flexio_|LIBFLEXIO|FLEXIO", name,
                                                           re.I)}
    expect(not more, f"exported as well: {sorted(more)}")
    dynamic = session.call("readelf", "-d", str(library)).out
    needed = set(re.findall(r"NEEDED.*\[(\w+)", dynamic))
    expect(needed <= {"libibverbs", "libmlx5", "libc", "ld"}, f"it needs {sorted(needed)}")


def device_library(session):
    libraries = sorted(session.build.glob("src/dpa/device/*checked/libflexio_dev.a"))
    if not libraries:
        raise Skip("libflexio_dev.a was not built")
    inline = set(re.findall(r"static inline [^;{]*?\b(\w+)\(",
                            "".join(path.read_text() for path in INCLUDE.rglob("*.h"))))
    wanted = {name for source in (rows("device"), later_rows("device", GENERATIONS[-1]))
              for _, kind, name, _ in source if kind == "function"} - inline
    wanted |= {f"__dpa_{name}" for name in ("fxp_rcp", "fxp_pow2", "fxp_log2", "thread_cycles",
                                            "thread_inst_ret", "thread_time", "spin_wait")}
    wanted |= {f"flexio_dev_multi_window_{name}" for name in (
        "config", "mkey_config", "ptr_acquire", "copy_from_host", "copy_to_host")}
    wanted.add("g_dev_p_tracer_ctx")
    expect(len(wanted) > 40, f"{len(wanted)} functions")
    for library in libraries:
        symbols = session.call("nm", "--defined-only", "--format=posix", str(library)).out
        found = {line.split()[0] for line in symbols.splitlines() if line.strip()}
        expect(wanted <= found, f"{library.parent.name}: not there: {sorted(wanted - found)}")


def installed(session):
    """A program finds the installed headers by pkg-config, and needs no others of ours."""
    with tempfile.TemporaryDirectory(prefix="flexio.") as folder:
        env = {**session.env, "DESTDIR": folder}
        result = session.call("meson", "install", "-C", str(session.build), "--no-rebuild", env=env)
        expect(result.status == 0, result.text())
        found = list(pathlib.Path(folder).rglob("libflexio.pc"))
        expect(found, "libflexio.pc is not installed")
        library = next(pathlib.Path(folder).rglob("libflexio.so")).parent
        places = {"/" + str(place.relative_to(folder)) for place in (found[0].parent, library)}
        if any(place.startswith("/usr/") for place in places):
            # where pkg-config and the loader look by themselves
            lookers = session.call("pkg-config", "--variable", "pc_path", "pkg-config").out.strip().split(":")
            lookers += re.findall(r"^(/[^:]+):", session.call("ldconfig", "-v", "-N", "-X").out, re.M)
            expect(places <= set(lookers), f"nobody looks in {sorted(places - set(lookers))}")
        env |= {"PKG_CONFIG_SYSROOT_DIR": folder, "PKG_CONFIG_PATH": str(found[0].parent)}
        flags = session.call("pkg-config", "--cflags", "libflexio", env=env)
        expect(flags.status == 0 and folder in flags.out, flags.text())
        link = session.call("pkg-config", "--libs", "libflexio", env=env).out.split()
        expect({"-lflexio", "-libverbs", "-lmlx5"} <= set(link), f"{link}")
        include = pathlib.Path(flags.out.split()[0].removeprefix("-I"))
        names = {str(p.relative_to(INCLUDE)) for p in INCLUDE.rglob("*.h")}
        there = {str(p.relative_to(include)) for p in include.rglob("*.h")}
        expect(names <= there, f"not installed: {sorted(names - there)}")
        source = pathlib.Path(folder) / "program.c"
        source.write_text(alone("libflexio/flexio.h"))
        result = session.call("gcc", *STRICT, *flags.out.split(), "-fsyntax-only", str(source))
        expect(result.status == 0, result.text())


def cases():
    return [(f"inventory: {name}", test) for name, test in {
        "a wrong row is found": wrong_rows,
        "the host's header in C A1-4 A11": host_c,
        "the host's header in C++ A1-4 A11": host_cxx,
        "the device's headers A12-15 A17 A18": device,
        "the host's headers compile alone A7": host_alone,
        "the device's headers compile alone A8": device_alone,
        "names of later generations": generations,
        "what programs write A3 A5 A6 A9-11 A19": shapes,
        "what is inline A13-16 A18 H150 I167 I179 J184-186 J190": inline_half,
        "fences are instructions P285": fences,
        "every function is documented": documented,
        "installed": installed,
        "the host's library": exported,
        "the device's library": device_library,
    }.items()]
