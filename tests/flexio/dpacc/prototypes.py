# SPDX-License-Identifier: BSD-2-Clause
"""Functions with parameters of random types: what the host passes is what the device gets.

A header that both sides include has the types, and for each what fills a value with random members and what
makes a number of all of them.  The device returns that number; the host makes it too.
"""
import math
import random
import re

from bench import on_library_bench
from functions import PROCESS
from harness import Skip, expect

# Seeds of the check; others by hand (docs/testing.md).
SEEDS = (1, 2)

# What a call carries.
CALL_BYTES = 2048
SCALARS = ("uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t", "int64_t", "char",
           "_Bool", "float", "double", "void *", "enum colour", "number_t")
WIDE = ("long double", "__int128", "unsigned __int128", "float _Complex", "double _Complex",
        "long double _Complex", "__float128")
ODD = ("u16_1", "u32_1", "u32_2", "u64_4", "u8_16", "u32_32")
FIELDS = {"uint8_t": 8, "int8_t": 8, "uint16_t": 16, "int16_t": 16, "uint32_t": 32, "int32_t": 32,
          "uint64_t": 64, "int64_t": 64, "_Bool": 1}

HEAD = """#include <stdint.h>
typedef uint32_t number_t;
typedef uint16_t u16_1 __attribute__((aligned(1)));
typedef uint32_t u32_1 __attribute__((aligned(1)));
typedef uint32_t u32_2 __attribute__((aligned(2)));
typedef uint64_t u64_4 __attribute__((aligned(4)));
typedef uint8_t u8_16 __attribute__((aligned(16)));
typedef uint32_t u32_32 __attribute__((aligned(32)));
enum colour { RED, GREEN = 7, BLUE = -3 };
static inline uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}
static inline uint64_t bits32(float v) { uint32_t b; __builtin_memcpy(&b, &v, 4); return b; }
static inline uint64_t bits64(double v) { uint64_t b; __builtin_memcpy(&b, &v, 8); return b; }
"""


def digest(kind, value):
    """C that mixes a scalar into h."""
    if kind == "float":
        return f"h = mix(h, bits32({value}));"
    if kind == "double":
        return f"h = mix(h, bits64({value}));"
    if kind == "long double":
        return f"h = mix(h, (uint64_t)(int64_t){value});"
    if kind == "__float128":
        return f"{{ __float128 x = {value}; uint64_t b[2]; __builtin_memcpy(b, &x, 16); h = mix(mix(h, b[0]), b[1]); }}"
    if kind.endswith("_Complex"):
        return f"h = mix(h, bits64((double)__real__ {value})); h = mix(h, bits64((double)__imag__ {value}));"
    if kind.endswith("__int128"):
        return f"h = mix(h, (uint64_t){value}); h = mix(h, (uint64_t)({value} >> 64));"
    if kind == "void *":
        return f"h = mix(h, (uint64_t)(uintptr_t){value});"
    if kind == "char":
        return f"h = mix(h, (unsigned char){value});"
    return f"h = mix(h, (uint64_t){value});"


def fill(kind, value):
    """C that stores something random."""
    if kind in ("float", "double"):
        return f"{value} = ({kind})(int32_t)rnd() / 16;"
    if kind in ("long double", "__float128"):
        return f"{value} = ({kind})(int64_t)rnd();"
    if kind.endswith("_Complex"):
        return f"__real__ {value} = (float)(int16_t)rnd(); __imag__ {value} = (float)(int16_t)rnd() / 2;"
    if kind.endswith("__int128"):
        return f"{value} = ({kind})rnd() << 64 | rnd();"
    if kind == "void *":
        return f"{value} = (void *)(uintptr_t)rnd();"
    if kind == "_Bool":
        return f"{value} = rnd() & 1;"
    return f"{value} = ({kind})rnd();"


class Aggregate:
    """A structure or union of random members."""
    def __init__(self, rng, name, others):
        self.rng, self.others = rng, others
        self.kind = "union" if rng.random() < 0.2 else "struct"
        self.name = f"{self.kind} {name}"
        self.lines, self.fills, self.digests = [], [], []
        self.most = 32  # bytes
        self.wide = False  # it has an alignment of more than 8
        for i in range(rng.randint(1, 6)):
            self.member(f"m{i}")
        # A packed structure whose members have such alignments may look as if it were not packed: dpacc(1).
        self.attributes = ["packed"] if rng.random() < 0.35 and not self.wide else []
        if rng.random() < 0.15:
            align = rng.choice((2, 4, 8, 16, 32))
            self.attributes.append(f"aligned({align})")
            self.wide = self.wide or align > 8
        if self.kind == "union":  # one of them has the value
            one = rng.randrange(len(self.fills))
            self.fills, self.digests = [self.fills[one]], [self.digests[one]]

    def member(self, name):
        choice = self.rng.random()
        if choice < 0.25 and self.kind == "struct":
            self.field(name)
        elif choice < 0.4 and self.others:
            self.nested(self.rng.choice(self.others[:6]), name)
        elif choice < 0.5:
            self.anonymous(name)
        else:
            kind = self.rng.choice(self.rng.choice((SCALARS, SCALARS, WIDE, ODD)))
            self.scalar(kind, name)

    def field(self, name):
        kind = self.rng.choice(list(FIELDS))
        # As wide as its type it is no bit field to clang's debug information, which then says too little.
        bits = self.rng.randint(1, max(1, FIELDS[kind] - 1))
        if self.rng.random() < 0.3:
            self.lines.append(f"{kind} : {self.rng.choice((0, bits))};")
        self.lines.append(f"{kind} {name} : {bits};")
        self.most += 16
        self.value(kind, name)

    def nested(self, other, name):
        self.lines.append(f"{other.name} {name};")
        self.most += other.most
        self.wide = self.wide or other.wide
        # by way of a copy: in a packed structure it may lie where its type does not
        self.fills.append(f"{{ {other.name} x; fill_{other.tag}(&x); v->{name} = x; }}")
        self.digests.append(f"{{ {other.name} x = v->{name}; h = digest_{other.tag}(h, &x); }}")

    def anonymous(self, name):
        kinds = [self.rng.choice(SCALARS) for _ in range(2)]
        self.most += 64
        inner = " ".join(f"{k} {name}{c};" for k, c in zip(kinds, "ab"))
        self.lines.append(f"struct {{ {inner} }};")
        self.fills.append(" ".join(fill(k, f"v->{name}{c}") for k, c in zip(kinds, "ab")))
        self.digests.append(" ".join(digest(k, f"v->{name}{c}") for k, c in zip(kinds, "ab")))

    def scalar(self, kind, name):
        sizes = [self.rng.randint(1, 4) for _ in range(self.rng.choice((0, 0, 0, 1, 2)))]
        if kind in ODD:
            sizes = []  # elements of an array are aligned to their size
        align = self.rng.choice((2, 4, 8, 16, 32)) if self.rng.random() < 0.15 and kind not in ODD else 0
        attribute = f" __attribute__((aligned({align})))" if align else ""
        self.wide = self.wide or kind in WIDE or kind in ("u8_16", "u32_32") or align > 8
        dimensions = "".join(f"[{n}]" for n in sizes)
        self.lines.append(f"{kind} {name}{dimensions}{attribute};")
        self.most += 32 * (1 + math.prod(sizes))
        places = [""]
        for size in sizes:
            places = [f"{p}[{i}]" for p in places for i in range(size)]
        self.fills.append(" ".join(fill(kind, f"v->{name}{p}") for p in places))
        self.digests.append(" ".join(digest(kind, f"v->{name}{p}") for p in places))

    def value(self, kind, name):
        self.fills.append(fill(kind, f"v->{name}"))
        self.digests.append(digest(kind, f"v->{name}"))

    @property
    def tag(self):
        return self.name.split()[1]

    def text(self):
        words = self.attributes
        attribute = f" __attribute__(({', '.join(words)}))" if words else ""
        members = "\n\t".join(self.lines)
        return (f"{self.name} {{\n\t{members}\n}}{attribute};\n"
                f"static inline uint64_t digest_{self.tag}(uint64_t h, const {self.name} *v)\n"
                f"{{\n\t{' '.join(self.digests)}\n\treturn h;\n}}\n"
                f"FILL(fill_{self.tag}, {self.name}, {' '.join(self.fills)})\n")


def made(seed, types=14, functions=20):
    """The header, the device's source, and the host's calls."""
    rng = random.Random(seed)
    aggregates = []
    for i in range(types):
        aggregates.append(Aggregate(rng, f"t{i}", aggregates))
    header = HEAD + "".join(a.text() for a in aggregates)
    device, calls = "", ""
    for i in range(functions):
        parameters = [rng.choice(aggregates) if rng.random() < 0.4 else
                      rng.choice(rng.choice((SCALARS, SCALARS, WIDE))) for _ in range(rng.randint(0, 12))]
        while sum(p.most if isinstance(p, Aggregate) else 32 for p in parameters) > CALL_BYTES:
            parameters.pop()
        device += device_function(f"f{i}", parameters)
        calls += host_call(f"f{i}", parameters)
    externs = "extern flexio_func_t " + ", ".join(f"f{i}" for i in range(functions)) + ";\n"
    return header, device, externs, calls


def device_function(name, parameters):
    texts = [f"{p.name if isinstance(p, Aggregate) else p} a{i}" for i, p in enumerate(parameters)]
    body = " ".join(f"h = digest_{p.tag}(h, &a{i});" if isinstance(p, Aggregate) else digest(p, f"a{i}")
                    for i, p in enumerate(parameters))
    return (f"__dpa_rpc__ uint64_t {name}({', '.join(texts) or 'void'})\n"
            f"{{\n\tuint64_t h = {len(parameters)};\n\t{body}\n\treturn h;\n}}\n")


def host_call(name, parameters):
    lines = []
    for i, p in enumerate(parameters):
        if isinstance(p, Aggregate):
            lines.append(f"{p.name} a{i}; __builtin_memset(&a{i}, 0xa5, sizeof(a{i})); fill_{p.tag}(&a{i});")
            lines.append(f"h = digest_{p.tag}(h, &a{i});")
        else:
            lines.append(f"{p} a{i}; {fill(p, f'a{i}')} {digest(p, f'a{i}')}")
    arguments = "".join(f", a{i}" for i in range(len(parameters)))
    body = "\n\t\t".join(lines)
    return (f"\tfor (int i = 0; i < 3; i++) {{\n\t\tuint64_t h = {len(parameters)};\n\t\t{body}\n"
            f"\t\tcompare(\"{name}\", h, registry_call(app, {name}{arguments}));\n\t}}\n")


HOST = """
#include <stdio.h>
#include <stdlib.h>
%(calls_by)s
extern struct flexio_app *app;
static unsigned int compared;
static uint64_t state = 88172645463325252u;
static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}
#define FILL(name, type, ...) static inline void name(type *v) { __VA_ARGS__ }
#include "types.h"
%(externs)s
static void compare(const char *name, uint64_t wanted, uint64_t got)
{
	compared++;
	if (got == wanted)
		return;
	printf("%%s: the device got other arguments\\n", name);
	exit(1);
}
int main(void)
{
%(calls)s
	printf("compared %%u\\n", compared);
	return 0;
}
"""


def write(place, seed, calls_by, **how):
    header, device, externs, calls = made(seed, **how)
    place.write("types.h", header)
    place.write("device.c", f"#define FILL(...)\n#include \"types.h\"\n{device}")
    place.write("host.c", HOST % {"calls_by": calls_by, "externs": externs, "calls": calls})


def build(place, *flags):
    place.dpacc("device.c", "-o", "device.a", "--app-name=app", *flags)


def compares(result):
    found = re.search(r"^compared (\d+)$", result.out, re.M)
    expect(result.status == 0 and found and int(found[1]) >= 60, result.text())


def seed_compares(place, seed, *flags):
    """By hand: with another seed."""
    write(place, seed, "#include \"registry.h\"")
    build(place, *flags)
    place.host("host.c", "device.a", flags=("-w",))
    compares(place.good("./host"))


def random_prototypes(place):
    for seed, flags in zip(SEEDS, (("--unchecked", "-O2"), ("-O1", "--devicecc-options=-gdwarf-4"))):
        seed_compares(place, seed, *flags)


def device_library(place):
    library = place.build / "src/flexio"
    if not (library / "libflexio.so").exists():
        raise Skip("libflexio is not built")
    return (f"-L{library}", f"-Wl,-rpath,{library}", "-lflexio", "-libverbs", "-lmlx5")


def runs(place, *files):
    place.good("gcc", *place.host_flags, "-w", *files, *device_library(place), "-o", "host")
    return place.session.run_ok(str(place.directory / "host"))


def random_on_device(place):
    write(place, 3, PROCESS.replace("*functions;", "*app;").replace("functions", "app"))
    build(place)
    compares(runs(place, "host.c", "device.a"))


def limits(place):
    """2048 bytes of arguments are a call; one more is an error with its place."""
    words = ", ".join(f"uint64_t a{i}" for i in range(256))
    text = f"""#include <stdint.h>
struct big {{ uint8_t bytes[SIZE]; }};
__dpa_rpc__ uint64_t many({words} MORE)
{{
	return a0 + 2 * a128 + 3 * a255;
}}
__dpa_rpc__ uint64_t large(struct big a)
{{
	return a.bytes[0] + a.bytes[1000] * 256u + a.bytes[2047] * 65536u;
}}
"""
    process = PROCESS.replace("*functions;", "*app;").replace("functions", "app")
    values = ", ".join(f"(uint64_t){i}" for i in range(256))
    place.write("device.c", text.replace("SIZE", "2048").replace("MORE", ""))
    place.write("host.c", f"""{process}
struct big {{ uint8_t bytes[2048]; }};
extern flexio_func_t many, large;
int main(void)
{{
	struct big big = {{.bytes = {{[0] = 1, [1000] = 2, [2047] = 3}}}};
	printf("%d %d\\n", (int)registry_call(app, many, {values}), (int)registry_call(app, large, big));
	return 0;
}}
""")
    build(place)
    expect(runs(place, "host.c", "device.a").out.startswith(f"{2 * 128 + 3 * 255} {1 + 2 * 256 + 3 * 65536}\n"),
           "other sums")
    place.write("device.c", text.replace("SIZE", "2049").replace("MORE", ", char more"))
    result = place.refused("device.c", "-o", "more.a", "--app-name=app")
    for line, name in ((3, "many"), (7, "large")):
        expect(re.search(rf"device\.c:{line}: error: {name}: .*2048 bytes", result.err), result.text())


def cases():
    return [(f"dpacc {name}", on_library_bench(test)) for name, test in {
        "Q307 parameters of random types": random_prototypes,
        "Q307 parameters of random types on the device": random_on_device,
        "Q307 as many arguments as a call takes": limits,
    }.items()]
