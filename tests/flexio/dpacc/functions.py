# SPDX-License-Identifier: BSD-2-Clause
"""Functions that the host calls: what is generated for each, and what carries its arguments."""
import re

from bench import on_library_bench
from harness import Skip, expect

DEVICE = """
#include <stdint.h>
#include <stdbool.h>
typedef uint32_t number_t;
typedef const volatile number_t odd_t;
enum colour { RED, GREEN = 7, BLUE = -3 };
struct inner { float a; double b; };
typedef struct { uint8_t bytes[20]; struct inner in[2]; unsigned low : 3, high : 9; } big_t;
typedef union { uint64_t whole; uint16_t parts[4]; } both_t;
struct node { struct node *next; long value; };

__dpa_rpc__ uint64_t none(void) { return 17; }
__dpa_rpc__ uint64_t bare() { return 18; }
__dpa_rpc__ uint64_t one(uint64_t a) { return a + 1; }
__dpa_rpc__ uint64_t two(uint64_t a, uint64_t b) { return a - b; }
__dpa_rpc__ uint64_t eight(uint8_t a, int8_t b, uint16_t c, int16_t d, uint32_t e, int32_t f,
			   uint64_t g, int64_t h)
{
	return a == 200 && b == -100 && c == 60000 && d == -30000 && e == 4000000000u &&
	       f == -2000000000 && g == 0x8000000000000001u && h == -5 ? 88 : 0;
}
__dpa_rpc__ uint64_t typedefs(odd_t a, enum colour b, bool c, const char *d, uint64_t (*e)(void))
{
	return a == 5 && b == BLUE && c && (uintptr_t)d == 0x1234567890 && (uintptr_t)e == 9 ? 99 : 0;
}
__dpa_rpc__ uint64_t floats(float a, double b, long double c) { return a == 1.5f && b == -2.25 && c == 8 ? 1 : 0; }
__dpa_rpc__ double quotient(double a, float b) { return a / b; }
__dpa_rpc__ int below(int a) { return a - 10; }
__dpa_rpc__ bool truth(int a) { return a == 3; }
__dpa_rpc__ void *address(void *a) { return (char *)a + 1; }
__dpa_global__ void nothing(uint64_t a) { (void)a; }
__dpa_rpc__ uint64_t by_value(big_t a, struct inner b, both_t c, struct node d)
{
	for (int i = 0; i < 20; i++)
		if (a.bytes[i] != i + 1)
			return i;
	return a.in[1].a == 3 && a.in[1].b == 4 && a.low == 5 && a.high == 300 && b.a == 6 &&
	       b.b == 7 && c.parts[3] == 0xabcd && d.next == (void *)8 && d.value == -9 ? 77 : 50;
}
"""

HOST = """
#include <stdio.h>
#include <string.h>
#include "registry.h"
extern struct flexio_app *functions;
extern flexio_func_t none, bare, one, two, eight, typedefs, floats, quotient, below, truth, address,
	nothing, by_value;
enum colour { RED, GREEN = 7, BLUE = -3 };
struct inner { float a; double b; };
typedef struct { uint8_t bytes[20]; struct inner in[2]; unsigned low : 3, high : 9; } big_t;
typedef union { uint64_t whole; uint16_t parts[4]; } both_t;
struct node { struct node *next; long value; };
#define CALL(...) printf("%s\\n", #__VA_ARGS__), \\
	printf("= %lld\\n", (long long)registry_call(functions, __VA_ARGS__))
int main(void)
{
	big_t big;
	struct inner in = {6, 7};
	both_t both = {0};
	struct node node = {(void *)8, -9};
	uint64_t bits;
	double real;

	memset(&big, 0, sizeof(big));
	for (int i = 0; i < 20; i++)
		big.bytes[i] = i + 1;
	big.in[1].a = 3;
	big.in[1].b = 4;
	big.low = 5;
	big.high = 300;
	both.parts[3] = 0xabcd;
	CALL(none);
	CALL(bare);
	CALL(one, (uint64_t)-1);
	CALL(two, (uint64_t)3, (uint64_t)5);
	CALL(eight, 200, -100, 60000, -30000, 4000000000u, -2000000000, 0x8000000000000001, (int64_t)-5);
	CALL(typedefs, 5u, BLUE, 2, (uint64_t)0x1234567890, (void *)9);
	CALL(floats, 1.5f, -2.25, (long double)8);
	bits = registry_call(functions, quotient, 1.0, 4.0f);
	memcpy(&real, &bits, 8);
	printf("quotient %g\\n", real);
	CALL(below, 3);
	CALL(truth, 3);
	CALL(address, (uint64_t)41);
	CALL(nothing, (uint64_t)1);
	CALL(by_value, big, in, both, node);
	return 0;
}
"""

WANTED = [17, 18, 0, -2, 88, 99, 1, -7, 1, 42, 0, 77]


def arguments(place):
    """Whatever a parameter is, it arrives."""
    place.write("functions.c", DEVICE)
    place.write("host.c", HOST)
    for mode in ("-O0", "-O2"):
        place.dpacc("functions.c", "-o", "functions.a", "--app-name=functions", "--unchecked",
                    f"--devicecc-options={mode},-Wno-strict-prototypes", "-hostcc=gcc",
                    "-hostcc-options=-Wall -Wextra -Werror -pedantic")
        place.host("host.c", "functions.a")
        out = place.good("./host").out
        expect([int(n) for n in re.findall(r"^= (-?\d+)$", out, re.M)] == WANTED, out)
        expect("quotient 0.25\n" in out, out)
        expect(out.endswith("destroyed functions\n"), out)


# The same calls by way of libflexio and the device.
PROCESS = """
#include <stdio.h>
#include <stdlib.h>
#include <libflexio/flexio.h>
static struct flexio_process *process;
#define registry_call(app, f, ...) ({ uint64_t result_ = 0; \\
	if (flexio_process_call(process, f, &result_, ##__VA_ARGS__) != FLEXIO_STATUS_SUCCESS) exit(4); \\
	result_; })
extern struct flexio_app *functions;
static void __attribute__((constructor)) begin(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!context || !functions ||
	    flexio_process_create(context, functions, NULL, &process) != FLEXIO_STATUS_SUCCESS)
		exit(5);
}
static void __attribute__((destructor)) end(void)
{
	if (process)
		puts(flexio_process_destroy(process) == FLEXIO_STATUS_SUCCESS ? "destroyed" : "stays");
}
"""


def on_device(place):
    """From the program to the device and back: the archive's application is there before constructors run."""
    if not (place.build / "src/flexio/libflexio.so").exists():
        raise Skip("libflexio is not built")
    place.write("functions.c", DEVICE)
    place.write("host.c", HOST.replace("#include \"registry.h\"", PROCESS))
    library = place.build / "src/flexio"
    for mode in ((), ("--unchecked", "-O2")):
        place.dpacc("functions.c", "-o", "functions.a", "--app-name=functions", *mode,
                    "--devicecc-options=-Wno-strict-prototypes")
        for link in ((f"-L{library}", f"-Wl,-rpath,{library}", "-lflexio"), (library / "libflexio.a",)):
            place.good("gcc", *place.host_flags, "host.c", "functions.a", *link, "-libverbs", "-lmlx5",
                       "-o", "host")
            result = place.session.run_ok(str(place.directory / "host"))
            expect([int(n) for n in re.findall(r"^= (-?\d+)$", result.out, re.M)] == WANTED, result.text())
            expect("quotient 0.25\n" in result.out and result.out.endswith("destroyed\n"), result.text())


def names(place):
    """255 and 256 characters are names, 257 are not, and the error says where."""
    longest = ["n" * 255, "m" * 256, "o" * 243, "p" * 244]
    place.write("names.c", "".join(
        f"__dpa_rpc__ unsigned long {n}(unsigned long a);\n"
        f"__dpa_rpc__ unsigned long {n}(unsigned long a) {{ return a + {i}; }}\n"
        for i, n in enumerate(longest)))
    place.dpacc("names.c", "-o", "names.a", "--app-name=" + "a" * 256, "--unchecked")
    place.write("host.c", "#include <stdio.h>\n#include \"registry.h\"\n"
                f"extern struct flexio_app *{'a' * 256};\n" +
                "".join(f"extern flexio_func_t {n};\n" for n in longest) + "int main(void) {" +
                "".join(f"printf(\"%d\\n\", (int)registry_call({'a' * 256}, {n}, 10ul));\n"
                        f"puts(registry_text({'a' * 256}, {n}));" for n in longest) +
                "return 0; }\n")
    place.host("host.c", "names.a")
    out = place.good("./host").out.splitlines()
    expect(out[0:8:2] == ["10", "11", "12", "13"], out)
    for name, line in zip(longest, out[1:8:2]):
        device, unpack, size = line.split()
        expect(device == name and len(unpack) <= 256 and size == "8", line)
    place.write("long.c", "\n\n__dpa_rpc__ unsigned long\n" + "q" * 257 + "(void) { return 0; }\n")
    place.refused("long.c", "-o", "long.a", said=["long.c:4: error: qqq", "FLEXIO_MAX_NAME_LEN"])
    expect(not (place.directory / "long.a").exists(), "an archive is there")


def refusals(place):
    """What cannot be called from the host: all of it, by line."""
    place.write("wrong.c", """
__dpa_rpc__ unsigned long variable(int a, ...) { return a; }
struct three { long a, b, c; };
__dpa_rpc__ struct three big(void) { struct three t = {0}; return t; }
__dpa_rpc__ static unsigned long mine(void) { return 0; }
typedef int four __attribute__((vector_size(16)));
__dpa_rpc__ unsigned long vector(long a,
	four b) { return a + b[0]; }
""")
    result = place.refused("wrong.c", "-o", "wrong.a", "--app-name=wrong", "--devicecc-options=-O2")
    for line, word in ((2, "variable arguments"), (4, "64 bits"), (5, "static"), (8, "parameter")):
        expect(re.search(rf"wrong\.c:{line}: error: .*{word}", result.err), result.text())


def declarations(place):
    """A prototype, annotated or not, is no function; the definition is one, wherever the annotation is."""
    place.write("declared.h", """
typedef unsigned long (rpc_t)(unsigned long);
rpc_t first;
__dpa_rpc__ unsigned long second(unsigned long a);
__dpa_rpc__ unsigned long elsewhere(unsigned long a);
""")
    place.write("declared.c", """
#include "declared.h"
__dpa_rpc__ unsigned long first(unsigned long a) { return a + 1; }
unsigned long second(unsigned long a) { return a + 2; }
unsigned long __dpa_rpc__ third(unsigned long a) { return a + 3; }
__dpa_global__ void fourth(unsigned long a) { (void)a; }
""")
    place.dpacc("declared.c", "-o", "declared.a", "--app-name=declared", "--unchecked")
    place.write("host.c", """
#include <stdio.h>
#include "registry.h"
extern struct flexio_app *declared;
extern flexio_func_t first, second, third, fourth;
int main(void)
{
	printf("%u %d %d %d\\n", registry_count(declared), (int)registry_call(declared, first, 1ul),
	       (int)registry_call(declared, second, 1ul), (int)registry_call(declared, third, 1ul));
	printf("%s\\n", registry_text(declared, fourth));
	return 0;
}
""")
    place.host("host.c", "declared.a")
    expect(place.good("./host").out.startswith("4 2 3 4\nfourth __dpa_unpack_fourth 8\n"),
           "not four functions")
    place.write("calls.c", "#include \"registry.h\"\nextern flexio_func_t elsewhere;\n"
                "int main(void) { return registry_count((void *)elsewhere); }\n")
    place.bad("gcc", *place.host_flags, "calls.c", "declared.a", place.registry, "-o", "calls",
              said=["calls.c", "elsewhere"])


def sources(place):
    """Several sources: each has its own statics, also those whose files have the same name."""
    for folder, add in (("a", 10), ("b", 20), ("c", 30)):
        place.write(f"{folder}/part.c", f"""
static unsigned long count = {add};
static unsigned long grow(void) {{ return ++count; }}
__dpa_rpc__ unsigned long grow_{folder}(void) {{ return grow(); }}
""")
    place.dpacc("a/part.c", "b/part.c", "c/part.c", "-o", "parts.a", "--app-name=parts", "--unchecked")
    place.write("host.c", """
#include <stdio.h>
#include "registry.h"
extern struct flexio_app *parts;
extern flexio_func_t grow_a, grow_b, grow_c;
int main(void)
{
	for (int i = 0; i < 2; i++)
		printf("%d %d %d\\n", (int)registry_call(parts, grow_a), (int)registry_call(parts, grow_b),
		       (int)registry_call(parts, grow_c));
	return 0;
}
""")
    place.host("host.c", "parts.a")
    expect(place.good("./host").out.startswith("11 21 31\n12 22 32\n"), "statics are shared")


def cases():
    return [(f"dpacc {name}", on_library_bench(test)) for name, test in {
        "Q307 Q309 parameters of all kinds": arguments,
        "Q307 B21 B42 parameters on the device": on_device,
        "Q308 names of 255, 256 and 257 characters": names,
        "functions that cannot be called": refusals,
        "declarations and definitions": declarations,
        "Q301 several sources, shared statics": sources,
    }.items()]
