# SPDX-License-Identifier: BSD-2-Clause
"""What the DPA's processor makes of device code: divisions that have no result elsewhere, macros."""
import itertools
import re

from bench import on_bench, on_library_bench
from functions import PROCESS
from harness import Skip, expect

ONES = 2 ** 64 - 1
MODES = (("--devicecc-options=-O0",), ("--devicecc-options=-O2",), ("--unchecked", "--devicecc-options=-O2"))


def signed(value, bits=64):
    value &= 2 ** bits - 1
    return value - 2 ** bits if value >> (bits - 1) else value


def divided(a, b, remainder):
    """RISC-V's quotient or remainder of two whole numbers, of any size."""
    if not b:
        return a if remainder else -1
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a - quotient * b if remainder else quotient


def calls_on_device(place, device, calls, mode):
    """Compiles device code, and returns what its function `pick' says to each list of arguments."""
    if not (place.build / "src/flexio/libflexio.so").exists():
        raise Skip("libflexio is not built")
    place.write("picks.c", device)
    numbers = ", ".join("{" + ", ".join(f"{a & ONES}u" for a in call) + "}" for call in calls)
    place.write("host.c", PROCESS + f"""
        extern struct flexio_app *functions;
        extern flexio_func_t pick;
        static const uint64_t calls[][3] = {{ {numbers} }};
        int main(void)
        {{
            for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
                printf("= %llu\\n", (unsigned long long)registry_call(functions, pick, calls[i][0], calls[i][1], calls[i][2]));
            return 0;
        }}""")
    place.dpacc("picks.c", "-o", "picks.a", "--app-name=functions", *mode)
    library = place.build / "src/flexio"
    place.good("gcc", *place.host_flags, "host.c", "picks.a", f"-L{library}", f"-Wl,-rpath,{library}", "-lflexio",
               "-libverbs", "-lmlx5", "-o", "host")
    out = place.session.run_ok(str(place.directory / "host")).out
    return [int(n) for n in re.findall(r"^= (\d+)$", out, re.M)]


# ---- divisions ----

TYPES = [(f"{sign}{bits}", bits, sign == "int") for bits in (8, 16, 32, 64, 128) for sign in ("int", "uint")]

# The optimizer knows more of these; {0} is a result of which the DPA's answer is known.
FOLDED = {
    "quotient_of_zero": ("a / zero()", lambda a: ONES),
    "remainder_of_zero": ("a % zero()", lambda a: a),
    "literal": ("a / 0", lambda a: ONES),
    "literal_remainder": ("a % 0u", lambda a: a),
    "literals": ("(uint64_t)(1000 / 0)", lambda a: ONES),
    "constant": ("1000 / nothing", lambda a: ONES),
    "least": ("(uint64_t)(INT64_MIN / minus())", lambda a: 2 ** 63),
    "least_remainder": ("(uint64_t)(INT64_MIN % minus())", lambda a: 0),
    "tested": ("tested(a, zero())", lambda a: 7),
    "assigned": ("assigned(a, zero())", lambda a: ONES),
    "vector": ("vector(a, zero())", lambda a: ONES),
}


def division_code():
    cases = []
    for name, bits, is_signed in TYPES:
        for op in "/%":
            kind = f"{'' if is_signed else 'unsigned '}__int128" if bits == 128 else f"{name}_t"
            # both halves of a result of 128 bits count
            fold = "r ^ (uint64_t)((unsigned __int128)r >> 64) * 3" if bits == 128 else "r"
            wide = f"({kind})a << 64 | a" if bits == 128 else "a"
            cases.append(f"case {len(cases)}: {{ {kind} x = ({kind})({wide}), y = ({kind})(int64_t)b; "
                         f"{kind} r = x {op} y; return (uint64_t)({fold}); }}")
    for text, _ in FOLDED.values():
        cases.append(f"case {len(cases)}: return {text};")
    return """
#include <stdint.h>
#pragma clang diagnostic ignored "-Wdivision-by-zero"
typedef uint32_t pair __attribute__((vector_size(8)));
static const uint64_t nothing = 0;
static uint64_t zero(void) { return 0; }
static int64_t minus(void) { return -1; }
static uint64_t tested(uint64_t a, uint64_t b) { uint64_t q = a / b; return b ? q : 7; }
static uint64_t assigned(uint64_t a, uint64_t b) { a /= b; return a; }
static uint64_t vector(uint64_t a, uint32_t b) { pair x = {a, a}, y = {b, b}; x = x / y; return (uint64_t)x[0] << 32 | x[1]; }
__dpa_rpc__ uint64_t pick(uint64_t which, uint64_t a, uint64_t b)
{
	switch (which) {
""" + "\n".join(cases) + "\n\t}\n\treturn 0;\n}\n"


def division_calls():
    """Each call with the DPA's answer."""
    which = 0
    for (_, bits, is_signed), op in itertools.product(TYPES, "/%"):
        for a, b in itertools.product((1000, 7, 0, -1, 1 << (min(bits, 64) - 1)), (0, -1, 7, -3)):
            if bits == 128:
                x, y = ((signed(a) << 64) | (a & ONES)), b
            else:
                x, y = a, b
            # Before C divides, it makes an int of what is smaller.
            size = max(bits, 32)
            cut = (lambda v: signed(v, bits)) if is_signed else (lambda v: v & (2 ** bits - 1))
            x, y = cut(x), cut(y)
            r = divided(x, y, op == "%")
            if not is_signed and size > bits and not y and op == "/":
                r = 2 ** bits - 1
            r = cut(r)
            if bits == 128:
                r = (r & ONES) ^ ((r & (2 ** 128 - 1)) >> 64) * 3
            yield (which, a, b), r & ONES
        which += 1
    for _, answer in FOLDED.values():
        yield (which, 1000, 0), answer(1000)
        which += 1


def divisions(place):
    """By 0, and the least number by -1: what RISC-V answers, in all sizes, whatever the optimizer knows."""
    wanted = list(division_calls())
    for mode in MODES:
        got = calls_on_device(place, division_code(), [call for call, _ in wanted], mode)
        for (call, answer), value in zip(wanted, got):
            expect(answer == value, f"{call} is {value:#x} and not {answer:#x} with {mode}")
        expect(len(got) == len(wanted), got)


# ---- the compiler's look ----

ANNOTATED = """
#include <libflexio-dev/flexio_dev.h>
__dpa_global__ typedef uint64_t handle_t;
__dpa_global__ typedef enum { A, B } choice_t;
__dpa_global__ enum flags { F = 1 };
__dpa_global__ struct pair { uint64_t first; __dpa_global__ uint64_t second; };
__dpa_rpc__ union either { uint64_t whole; uint32_t part; };
__dpa_rpc__ typedef struct { int a; } plain_t;
struct __dpa_global__ behind { int a; };
__dpa_global__ struct ahead;
typedef __dpa_rpc__ uint64_t (*function_t)(uint64_t);
__dpa_global__ extern uint64_t elsewhere;
__dpa_global__ uint64_t counter = 3;
static __dpa_global__ const uint64_t table[2] = {1, 2};
__dpa_rpc__ uint64_t declared(uint64_t a);
__dpa_rpc__ uint64_t sum(__dpa_global__ uint64_t a)
{
	__dpa_global__ struct pair p = {a, table[1]};
	__dpa_rpc__ handle_t h = p.first + p.second;
	enum flags f = F;

	return h + A + f + counter;
}
uint64_t declared(uint64_t a) { return a; }
static inline uint64_t __dpa_rpc__ never(uint64_t a);
__attribute__((visibility("hidden"))) void __dpa_global__ handler(uint64_t a) { counter += a; }
"""


def annotations(place):
    """In front of what is no function, an annotation says nothing; functions are found wherever it stands."""
    place.write("annotated.c", ANNOTATED)
    for words in ((), ("--unchecked",)):
        place.dpacc("annotated.c", "-o", "annotated.a", "--app-name=annotated", *words, "--keep-dir=kept",
                    "--devicecc-options=-O2,-Wall,-Wextra,-Wpedantic,-Werror,-fvisibility=hidden,-ffunction-sections")
        place.write("host.c", "#include <stdio.h>\n#include \"registry.h\"\nextern struct flexio_app *annotated;\n"
                    "extern flexio_func_t sum, declared, handler;\nint main(void) {"
                    "if (0) registry_call(annotated, handler, 4ul);"
                    + ("printf(\"%d %d\\n\", (int)registry_call(annotated, sum, 5ul),"
                       "(int)registry_call(annotated, declared, 6ul));" if words else "") + "return 0; }\n")
        place.host("host.c", "annotated.a")
        expect(not words or "11 6" in place.good("./host").out, place.good("./host").text())
        sections = place.good("objdump", "-t", "kept/annotated.device.o").out
        for name, section in (("sum", ".dpa_rpc"), ("declared", ".dpa_rpc"), ("handler", ".dpa_global"),
                              ("counter", ".data")):
            expect(re.search(rf"^\S+ g .* {re.escape(section)}\S*\t\S+ (\.hidden )?{name}$", sections, re.M), sections)
    place.good("rm", "-r", "kept")


def passes(place):
    """dpa-clang makes what clang makes: objects by name, assembly, dependencies, and what has no object."""
    place.write("one.h", "#define ONE 1\n")
    place.write("one.c", '#include "one.h"\n__dpa_rpc__ unsigned long one(unsigned long a) { return ONE / a; }\n')
    place.write("two.c", "__dpa_rpc__ unsigned long two(unsigned long a) { return a % 2; }\n")
    tool = place.build / "dpa-clang"
    place.good(tool, "-c", "one.c", "two.c", "-MMD")
    expect((place.directory / "one.d").read_text().split() == ["one.o:", "one.c", "one.h"],
           (place.directory / "one.d").read_text())
    expect((place.directory / "two.o").exists() and (place.directory / "two.d").exists(), "no object of two.c")
    place.good(tool, "-c", "one.c", "-o", "out.obj", "-MD", "-MF", "deps", "-MT", "aim")
    expect((place.directory / "deps").read_text().startswith("aim: one.c one.h"), "no dependencies")
    for language in ("-xc",), ("-x", "c"):
        place.good(tool, *language, "-c", "one.c")
        expect(".dpa_rpc" in place.good("objdump", "-h", "one.o").out, f"no section with {language}")
    place.good(tool, "-S", "-O2", "-oone.s", "one.c")
    expect(".dpa_rpc" in (place.directory / "one.s").read_text(), "no assembly")
    expect("one(unsigned long a)" in place.good(tool, "-E", "one.c").out, "no preprocessing")
    expect("one.h" in place.good(tool, "-M", "one.c").out, "no list")
    place.good(tool, "-fsyntax-only", "-x", "c", "one.c")
    place.bad(tool, "-c", "one.c", "two.c", "-o", "both.o", said=["both.o"])
    place.write("wrong.c", "int f(void) { return x; }\n")
    place.bad(tool, "-c", "wrong.c", said=["wrong.c:1:22: error"])


def cases():
    yield "dpacc processor division", on_library_bench(divisions)
    yield "dpacc annotations", on_library_bench(annotations)
    yield "dpacc dpa-clang passes", on_bench(passes)
