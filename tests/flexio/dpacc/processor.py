# SPDX-License-Identifier: BSD-2-Clause
"""What the DPA's processor makes of device code: divisions that have no result elsewhere, inline assembly, macros."""
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


def calls_on_device(place, device, calls, mode, pause=0.0):
    """Compiles device code, and returns what its function `pick' says to each list of arguments, with a pause
    of seconds behind each call."""
    if not (place.build / "src/flexio/libflexio.so").exists():
        raise Skip("libflexio is not built")
    place.write("picks.c", device)
    numbers = ", ".join("{" + ", ".join(f"{a & ONES}u" for a in call) + "}" for call in calls)
    place.write("host.c", PROCESS + f"""
        #include <unistd.h>
        extern struct flexio_app *functions;
        extern flexio_func_t pick;
        static const uint64_t calls[][3] = {{ {numbers} }};
        int main(void)
        {{
            for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {{
                printf("= %llu\\n", (unsigned long long)registry_call(functions, pick, calls[i][0], calls[i][1], calls[i][2]));
                usleep({int(pause * 1e6)});
            }}
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


# ---- assembly ----

def rotated(value, by, bits):
    value &= 2 ** bits - 1
    by %= bits
    return (value << by | value >> (bits - by)) & (2 ** bits - 1)


def word(value):
    return signed(value, 32)


def low(value):
    return value & (2 ** 32 - 1)


def zeros(bits, value, trailing):
    text = f"{value & (2 ** bits - 1):0{bits}b}"
    return len(text) - len(text.rstrip("0") if trailing else text.lstrip("0"))


def division(a, b, remainder, bits, is_signed):
    cut = (lambda v: signed(v, bits)) if is_signed else (lambda v: v & (2 ** bits - 1))
    return signed(divided(cut(a), cut(b), remainder), bits)


def crc(value, bits):
    for _ in range(bits):
        value = value >> 1 ^ (value & 1) * 0xedb88320
    return value


def exchanged(value, by, bits, keeps):
    """Each bit goes to the place whose number differs in the bits of `by'."""
    places = range(bits)
    if keeps:
        return sum(any(value >> p & 1 for p in places if (p ^ q) & ~by == 0) << q for q in places)
    return sum((value >> (q ^ by) & 1) << q for q in places)


BINARY = {
    "pack": lambda a, b: low(a) | low(b) << 32, "packu": lambda a, b: a >> 32 | b >> 32 << 32,
    "packh": lambda a, b: a & 255 | (b & 255) << 8, "packw": lambda a, b: word(a & 65535 | b << 16),
    "packuw": lambda a, b: word(a >> 16 & 65535 | low(b) >> 16 << 16),
    "grev": lambda a, b: exchanged(a, b % 64, 64, False), "gorc": lambda a, b: exchanged(a, b % 64, 64, True),
    "grevw": lambda a, b: word(exchanged(a, b % 32, 32, False)), "gorcw": lambda a, b: word(exchanged(a, b % 32, 32, True)),
    "add": lambda a, b: a + b, "addw": lambda a, b: word(a + b), "sub": lambda a, b: a - b,
    "subw": lambda a, b: word(a - b), "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "sll": lambda a, b: a << b % 64, "sllw": lambda a, b: word(a << b % 32), "srl": lambda a, b: a >> b % 64,
    "srlw": lambda a, b: word(low(a) >> b % 32), "sra": lambda a, b: signed(a) >> b % 64,
    "sraw": lambda a, b: word(a) >> b % 32, "slt": lambda a, b: signed(a) < signed(b), "sltu": lambda a, b: a < b,
    "mul": lambda a, b: a * b, "mulw": lambda a, b: word(a * b), "mulh": lambda a, b: signed(a) * signed(b) >> 64,
    "mulhu": lambda a, b: a * b >> 64, "mulhsu": lambda a, b: signed(a) * b >> 64,
    "div": lambda a, b: division(a, b, False, 64, True), "divu": lambda a, b: division(a, b, False, 64, False),
    "divw": lambda a, b: division(a, b, False, 32, True), "divuw": lambda a, b: division(a, b, False, 32, False),
    "rem": lambda a, b: division(a, b, True, 64, True), "remu": lambda a, b: division(a, b, True, 64, False),
    "remw": lambda a, b: division(a, b, True, 32, True), "remuw": lambda a, b: division(a, b, True, 32, False),
    "add.uw": lambda a, b: low(a) + b, "sh1add": lambda a, b: (a << 1) + b, "sh2add": lambda a, b: (a << 2) + b,
    "sh3add": lambda a, b: (a << 3) + b, "sh1add.uw": lambda a, b: (low(a) << 1) + b,
    "sh2add.uw": lambda a, b: (low(a) << 2) + b, "sh3add.uw": lambda a, b: (low(a) << 3) + b,
    "andn": lambda a, b: a & ~b, "orn": lambda a, b: a | ~b, "xnor": lambda a, b: ~(a ^ b),
    "max": lambda a, b: max(signed(a), signed(b)), "maxu": max, "minu": min,
    "min": lambda a, b: min(signed(a), signed(b)), "rol": lambda a, b: rotated(a, b, 64),
    "rolw": lambda a, b: word(rotated(a, b, 32)), "ror": lambda a, b: rotated(a, -b, 64),
    "rorw": lambda a, b: word(rotated(a, -b, 32)), "bclr": lambda a, b: a & ~(1 << b % 64),
    "bext": lambda a, b: a >> b % 64 & 1, "binv": lambda a, b: a ^ 1 << b % 64, "bset": lambda a, b: a | 1 << b % 64,
}
IMMEDIATE = {"addi": "add", "addiw": "addw", "andi": "and", "ori": "or", "xori": "xor", "slli": "sll",
             "slliw": "sllw", "srli": "srl", "srliw": "srlw", "srai": "sra", "sraiw": "sraw", "slti": "slt",
             "sltiu": "sltu", "rori": "ror", "roriw": "rorw", "bclri": "bclr", "bexti": "bext", "binvi": "binv",
             "bseti": "bset", "grevi": "grev", "greviw": "grevw", "gorci": "gorc", "gorciw": "gorcw"}
UNARY = {
    "mv": lambda a: a, "not": lambda a: ~a, "neg": lambda a: -a, "negw": lambda a: word(-a),
    "sext.b": lambda a: signed(a, 8), "sext.h": lambda a: signed(a, 16), "sext.w": word, "zext.b": lambda a: a & 255,
    "zext.h": lambda a: a & 65535, "zext.w": low, "seqz": lambda a: not a, "snez": lambda a: a != 0,
    "sltz": lambda a: signed(a) < 0, "sgtz": lambda a: signed(a) > 0, "clz": lambda a: zeros(64, a, False),
    "clzw": lambda a: zeros(32, a, False), "ctz": lambda a: zeros(64, a, True), "ctzw": lambda a: zeros(32, a, True),
    "cpop": lambda a: bin(a).count("1"), "cpopw": lambda a: bin(low(a)).count("1"),
    "rev8": lambda a: int.from_bytes(a.to_bytes(8, "little"), "big"),
    "orc.b": lambda a: int.from_bytes(bytes(255 if byte else 0 for byte in a.to_bytes(8, "little")), "little"),
}
# C with assembly in it, and what it returns.
WHOLE = [
    # a counter that grows, fences in all their forms, and other instructions without a result
    ("""__asm__ volatile("fence\\n\\tfence rw, rw; fence iorw,iorw\\nfence r,rw # a comment\\nfence w, w; fence.i; "
        "fence.tso; nop; pause\\n.word 0x0100000f; .insn i 0x0F, 0, x0, x0, 0x010; .option push; .option pop" ::: "memory");
        r = a;""", lambda a, b: a),
    *((f"""uint64_t s, t; __asm__ volatile("{i} %0" : "=r"(s)); do __asm__ volatile("{i} %0" : "=r"(t)); while (t == s);
        r = t > s;""", lambda a, b: 1)
      for i in ("rdcycle", "rdtime", "rdinstret")),
    *((f"""uint64_t s, t; __asm__ volatile("csrr %0, {n}" : "=r"(s)); __asm__ volatile("csrrs %0, {n}, zero" : "=r"(t));
        r = s != 0 && t >= s;""", lambda a, b: 1) for n in ("cycle", "time", "instret", "0xc00", "0xC01", "0xc02")),
    # registers of its own, constants, memory of all sizes, a result that is read before it is written
    ("""__asm__("li t0, 0x10\\n add t1, t0, %1\\n addi %0, t1, %2" : "=r"(r) : "r"(a), "i"(-3));""",
     lambda a, b: a + 13),
    ("""__asm__("lui t0, 0x80000\\n mv %0, t0" : "=r"(r));""", lambda a, b: -2 ** 31),
    ("""__asm__("add %0, %0, %1" : "+r"(r) : "r"(a));""", lambda a, b: a),
    ("""uint64_t m[2] = {a, b}; __asm__ volatile("ld %0, 8(%1)\\n sd %0, (%1)\\n sb zero, 0(%1)" : "=&r"(r) : "r"(m) : "memory");
        r = m[0];""", lambda a, b: b & ~255),
    ("""uint64_t m = a; __asm__ volatile("lhu %0, %1\\n sw %z2, %1" : "=&r"(r), "+m"(m) : "r"(b)); r ^= m;""",
     lambda a, b: (a & 65535) ^ (a >> 32 << 32 | low(b))),
    ("""int8_t m = (int8_t)a; __asm__ volatile("lb %0, 0(%1)" : "=r"(r) : "r"(&m));""", lambda a, b: signed(a, 8)),
    ("""uint32_t old; uint32_t m = (uint32_t)a; __asm__ volatile("amoadd.w.aqrl %0, %2, (%1)" : "=r"(old) : "r"(&m), "r"(b) : "memory");
        r = old + (uint64_t)m;""", lambda a, b: low(a) + low(a + b)),
    ("""uint64_t m = a; __asm__ volatile("amoswap.d %0, %1, 0(%2)" : "=r"(r) : "r"(b), "r"(&m) : "memory"); r -= m;""",
     lambda a, b: a - b),
    # several results, and smaller ones
    ("""uint64_t x; uint32_t y; int8_t z; __asm__("add %0, %3, %4\\n sub %1, %3, %4\\n mv %2, %3" : "=r"(x), "=r"(y), "=r"(z) : "r"(a), "r"(b));
        r = x + y + z;""", lambda a, b: (a + b & ONES) + low(a - b) + signed(a, 8)),
    ("""int32_t x = (int32_t)a; __asm__("srl %0, %1, 4" : "=r"(r) : "r"(x));""", lambda a, b: (word(a) & ONES) >> 4),
    ("""double x = 1.0; uint64_t *p = &r; __asm__("mv %0, %1" : "=r"(r) : "r"(x)); __asm__("mv %0, %1" : "=r"(p) : "r"(p)); r += *p;""",
     lambda a, b: 0x3ff0000000000000 * 2),
    # jumps to labels of the statement, before and behind, by number and by name, and each kind of branch
    ("""uint64_t i = a % 100 + 1; __asm__ volatile("li %0, 0\\n1:\\tadd %0, %0, %1\\n\\taddi %1, %1, -1\\n\\tbnez %1, 1b" : "=&r"(r), "+r"(i));""",
     lambda a, b: sum(range(a % 100 + 2))),
    ("""__asm__ volatile("beqz %1, 1f; li %0, 1; j 2f; 1: li %0, 2; 2: beqz %1, 1f; addi %0, %0, 10\\n1: addi %0, %0, 100"
        : "=&r"(r) : "r"(b & 1));""", lambda a, b: 111 if b & 1 else 102),
    ("""__asm__ volatile("mv t0, %1 /* a comment; of C */\\n.Lagain%=: // and another\\n  blt t0, %2, .Lout%=\\n"
        "sub t0, t0, %2; jal zero, .Lagain%=; .Lout%=: mv %0, t0" : "=r"(r) : "r"(a >> 32), "r"((b >> 40) + 1) : "t0");""",
     lambda a, b: (a >> 32) % ((b >> 40) + 1)),
    ("""uint64_t x = a, y = b; __asm__ volatile("li %0, 0; " """ + " ".join(
        f'"{name} {operands}, 1f; bseti %0, %0, {i}; 1: "'
        for i, (name, operands) in enumerate((
            ("beq", "%1, %2"), ("bne", "%1, %2"), ("blt", "%1, %2"), ("bge", "%1, %2"), ("bltu", "%1, %2"),
            ("bgeu", "%1, %2"), ("bgt", "%1, %2"), ("ble", "%1, %2"), ("bgtu", "%1, %2"), ("bleu", "%1, %2"),
            ("beqz", "%1"), ("bnez", "%1"), ("bltz", "%1"), ("bgez", "%1"), ("bgtz", "%1"), ("blez", "%1")))) +
     """ : "=&r"(r) : "r"(x), "r"(y));""",
     lambda a, b: sum((not jumps) << i for i, jumps in enumerate((
         a == b, a != b, signed(a) < signed(b), signed(a) >= signed(b), a < b, a >= b, signed(a) > signed(b),
         signed(a) <= signed(b), a > b, a <= b, a == 0, a != 0, signed(a) < 0, signed(a) >= 0, signed(a) > 0,
         signed(a) <= 0)))),
    # a function that is inlined twice, around branches of C
    ("""for (int i = 0; i < 3 && (i || a); i++) { uint64_t n = (uint64_t)i + 1; __asm__ volatile("1: addi %0, %0, 2\\naddi %1, %1, -1\\n"
        "bnez %1, 1b" : "+r"(r), "+r"(n)); r += a ? b & 1 : 0; }""", lambda a, b: 12 + 3 * (b & 1)),
    # reservations: of both sizes; broken by another address, another size, a use, or a change; of separate statements
    ("""uint64_t m = a, old, t; __asm__ volatile("1: lr.d.aqrl %0, (%2)\\n add t1, %0, %3\\n sc.d.rl %1, t1, (%2)\\n bnez %1, 1b"
        : "=&r"(old), "=&r"(t) : "r"(&m), "r"(b) : "t1", "memory"); r = m + old * 3 + t;""", lambda a, b: a + b + a * 3),
    ("""int32_t m = (int32_t)a, old; long t; __asm__ volatile("0: lr.w %0, %1\\n bne %0, %z3, 1f\\n sc.w.rl %2, %z4, %1\\n bnez %2, 0b\\n1:"
        : "=&r"(old), "+A"(m), "=&r"(t) : "rJ"((int32_t)a), "rJ"((int32_t)b) : "memory"); r = (uint64_t)m + (uint64_t)(int64_t)old * 2;""",
     lambda a, b: word(b) + word(a) * 2),
    ("""uint64_t m[2] = {a, b}, f[6]; __asm__ volatile("lr.d t0, (%6); sc.d %0, t0, (%7)\\n"      /* another address */
        "lr.d t0, (%6); sc.w %1, t0, (%6)\\n"                                                    /* another size */
        "lr.d t0, (%6); sc.d %2, t0, (%6); sc.d %3, t0, (%6)\\n"                                 /* once */
        "lr.d t0, (%6); addi t1, t0, 1; sd t1, (%6); sc.d %4, t0, (%6)\\n"                       /* a store between */
        "lr.d t0, (%6); lr.d t0, (%7); addi t0, t0, 5; sc.d %5, t0, (%7)"                        /* the last one counts */
        : "=&r"(f[0]), "=&r"(f[1]), "=&r"(f[2]), "=&r"(f[3]), "=&r"(f[4]), "=&r"(f[5]) : "r"(&m[0]), "r"(&m[1]) : "t0", "t1", "memory");
        r = f[0] | f[1] << 1 | f[2] << 2 | f[3] << 3 | f[4] << 4 | f[5] << 5; r += (m[0] - a) * 100 + (m[1] - b) * 1000;""",
     lambda a, b: 0b011011 + 100 + 5000),
    ("""uint64_t m = a, old, no; __asm__ volatile("lr.d %0, (%1)" : "=r"(old) : "r"(&m) : "memory");
        __asm__ volatile("sc.d %0, %1, (%2)" : "=r"(no) : "r"(old + b), "r"(&m) : "memory"); r = m + no;""", lambda a, b: a + b),
    # NVIDIA's own: fences, a hint, fixed-point numbers, a compare-and-swap
    ("""r = a; __asm__ volatile("fence.heap rw, rw; fence.heap r, w; flush.l1; cinva %0" :: "r"(&r) : "memory");""", lambda a, b: a),
    ("""long x = 3l << 16, y; uint32_t z; __asm__("fxprcp %0, %2; fxppw2 %1, %2" : "=&r"(y), "=&r"(z) : "r"(x)); r = (uint64_t)y + z;
        __asm__("fxplog2 %0, %1" : "=r"(y) : "r"(1l << 13)); r += (uint64_t)y;""", lambda a, b: 65536 // 3 + (8 << 16) - (3 << 16)),
    ("""uint32_t m = (uint32_t)a; uint64_t n = b; long x = (int32_t)a, y = x; uint64_t z = ~b; __asm__ volatile(
        "amocas.w %0, %3, (%5); amocas.w.aqrl %1, %3, (%5); amocas.d %2, %4, (%6)" : "+&r"(x), "+&r"(y), "+&r"(z) : "r"(b), "r"(a), "r"(&m), "r"(&n) : "memory");
        r = (uint64_t)x + (uint64_t)y * 3 + z * 5 + m * 7ul + n * 9;""", lambda a, b: word(a) + word(b) * 3 + b * 5 + low(b) * 7 + b * 9),
    # checksums: of nine digits, whose CRCs are known
    ("""static const char t[] = "123456789"; uint64_t c = 0xffffffff, d = c, v; for (int i = 0; i < 9; i++) {
        v = (c ^ (uint8_t)t[i]); __asm__("crc32.b %0, %0" : "+r"(v)); c = v; v = (d ^ (uint8_t)t[i]); __asm__("crc32c.b %0, %0" : "+r"(v)); d = v; }
        r = (c ^ 0xffffffff) << 32 | (d ^ 0xffffffff);""", lambda a, b: 0xcbf43926 << 32 | 0xe3069283),
    ("""uint64_t v, w; __asm__("crc32.w %0, %2; crc32.h %1, %2; crc32.h %1, %1; sub %0, %0, %1; crc32.d %1, %2; add %0, %0, %1"
        : "=&r"(v), "=&r"(w) : "r"(a)); r = v;""", lambda a, b: crc(a, 64)),
    # what is said to the compiler in RISC-V's words: registers, an address, constants
    ("""uint64_t m = a; __asm__("ld %0, %1\\n li a5, 7\\n li x31, 8\\n addi %0, %0, %2\\n add %0, %0, a5"
        : "=&r"(r) : "A"(m), "I"(-2048) : "a5", "x31", "s11", "ra", "cc"); (void)"A:A"; (void)'"';""", lambda a, b: a - 2041),
    # nothing but text
    ("""__asm__ volatile("" ::: "memory"); __asm__ volatile("# only a comment" : "+r"(a)); r = a;""", lambda a, b: a),
]
NUMBERS = (0, 1, 0x80, 63, 0x7fffffff, 0x80000000, 0xfedcba9876543210, 2 ** 63, ONES)


def assembly_code():
    cases = [f'__asm__("{name} %0, %1, %2" : "=r"(r) : "r"(a), "r"(b));' for name in BINARY]
    cases += [f'__asm__("{name} %0, %1, %2" : "=r"(r) : "r"(a), "i"(5));' for name in IMMEDIATE]
    cases += [f'__asm__("{name} %0, %1" : "=r"(r) : "r"(a));' for name in UNARY]
    cases += [text for text, _ in WHOLE]
    return """
#include <stdint.h>
__dpa_rpc__ uint64_t pick(uint64_t which, uint64_t a, uint64_t b)
{
	uint64_t r = 0;

	switch (which) {
""" + "\n".join(f"case {i}: {{ {text} }} break;" for i, text in enumerate(cases)) + "\n\t}\n\treturn r;\n}\n"


def assembly_calls():
    which = itertools.count()
    for model in BINARY.values():
        number = next(which)
        for a, b in itertools.product(NUMBERS, NUMBERS):
            yield (number, a, b), model(a, b)
    for name in IMMEDIATE.values():
        number = next(which)
        for a in NUMBERS:
            yield (number, a, 0), BINARY[name](a, 5)
    for model in UNARY.values():
        number = next(which)
        for a in NUMBERS:
            yield (number, a, 0), model(a)
    for _, model in WHOLE:
        number = next(which)
        for a, b in ((0x1234567890abcdef, 0xf1e2d3c4b5a69788), (5, 3)):
            yield (number, a, b), model(a, b)


def assembly(place):
    """Instructions of RISC-V give what they give there, with and without optimization."""
    wanted = list(assembly_calls())
    code = assembly_code()
    cases = re.findall(r"^case \d+: (.*)", code, re.M)
    for mode in MODES:
        got = calls_on_device(place, code, [call for call, _ in wanted], mode)
        for (call, answer), value in zip(wanted, got):
            expect(answer & ONES == value, f"{cases[call[0]]} with {call[1]:#x}, {call[2]:#x} is {value:#x} and "
                                           f"not {answer & ONES:#x} with {mode}")
        expect(len(got) == len(wanted), got)


COUNTERS = """
#include <dpaintrin.h>
__dpa_rpc__ uint64_t pick(uint64_t which, uint64_t a, uint64_t b)
{
	(void)b;
	for (uint64_t end = __dpa_thread_cycles() + a; __dpa_thread_cycles() < end;)
		;
	return which ? __dpa_thread_inst_ret() : __dpa_thread_cycles();
}
"""


def instructions(place):
    """While the thread waits for the next call, cycles go on and instructions do not."""
    work, pause = 18_000_000, 0.2
    got = calls_on_device(place, COUNTERS, [(0, 0, 0), (1, 0, 0), (1, work, 0), (0, 0, 0), (1, 0, 0)], MODES[0],
                          pause=pause)
    cycles, done, more = got[3] - got[0], got[4] - got[1], got[2] - got[1]
    # It spins for a moment before it sleeps, and the work itself may be interrupted.
    expect(cycles > 3 * pause * 1.8e9, f"{cycles} cycles in {3 * pause} s")
    expect(0 < more <= done < cycles / 4, f"{done} instructions in {cycles} cycles, {more} of them in {work}")


def assembly_checked(place):
    """A load of assembly is checked as any other."""
    place.write("load.c", '__dpa_rpc__ unsigned long load(unsigned long a)\n{\n\tunsigned long r;\n\n'
                '\t__asm__ volatile("ld %0, (%1)" : "=r"(r) : "r"(a));\n\treturn r;\n}\n')
    place.good(place.build / "dpa-clang", "-c", "load.c")
    expect("__asan_load" in place.good("nm", "load.o").out, "no check")
    place.good(place.build / "dpa-clang", "--unchecked", "-c", "load.c")
    expect("__asan" not in place.good("nm", "load.o").out, "a check")


CONTENDED = """
#include <stdint.h>
#define NODES 6
static struct node { struct node *next; uint64_t popped; } nodes[NODES];
static struct node *head;
static uint64_t lock, locked, sum;
static uint32_t words[2];
static struct node *pop(void)
{
	struct node *node, *next;
	uint64_t failed;

	__asm__ volatile("1: lr.d %0, %3; beqz %0, 2f; ld %1, 0(%0); sc.d %2, %1, %3; bnez %2, 1b; 2:"
			 : "=&r"(node), "=&r"(next), "=&r"(failed), "+A"(head) : : "memory");
	return node;
}
static void push(struct node *node)
{
	__asm__ volatile("1: lr.d t0, (%0); sd t0, 0(%1); sc.d t1, %1, (%0); bnez t1, 1b" : : "r"(&head), "r"(node) : "t0", "t1", "memory");
}
uint64_t __dpa_reservation_take(uint64_t addr, uint64_t bytes);
/* As if a call had been stopped within sc. */
__dpa_rpc__ uint64_t stop(void)
{
	struct node *node;

	__asm__ volatile("lr.d %0, %1" : "=r"(node), "+A"(head));
	return __dpa_reservation_take((uint64_t)&head, sizeof(head));
}
__dpa_rpc__ uint64_t prepare(void)
{
	for (int i = 0; i < NODES; i++)
		push(&nodes[i]);
	return NODES;
}
/* The words are neighbours. */
__dpa_rpc__ uint64_t work(uint64_t rounds, uint64_t which)
{
	for (uint64_t i = 0; i < rounds; i++) {
		struct node *a = pop(), *b = pop();

		if (a && __atomic_fetch_add(&a->popped, 1, __ATOMIC_RELAXED))
			return 1;
		if (b && __atomic_fetch_add(&b->popped, 1, __ATOMIC_RELAXED))
			return 2;
		if (a) {
			__atomic_fetch_sub(&a->popped, 1, __ATOMIC_RELAXED);
			push(a);
		}
		if (b) {
			__atomic_fetch_sub(&b->popped, 1, __ATOMIC_RELAXED);
			push(b);
		}
		__asm__ volatile("1: lr.w t0, (%0); addi t0, t0, 1; sc.w t0, t0, (%0); bnez t0, 1b" : : "r"(&words[which & 1]) : "t0", "memory");
		__asm__ volatile("li t0, 1; 1: lr.d.aq t1, (%0); bnez t1, 1b; sc.d t1, t0, (%0); bnez t1, 1b" : : "r"(&lock) : "t0", "t1", "memory");
		sum = sum + 1;
		__asm__ volatile("fence rw, w; sd zero, (%0)" : : "r"(&lock) : "memory");
	}
	return 0;
}
__dpa_rpc__ uint64_t outcome(uint64_t what)
{
	uint64_t count = 0;

	if (what == 0)
		return sum;
	if (what < 3)
		return words[what - 1];
	while (count <= NODES && pop())
		count++;
	return count;
}
"""
WORKERS, ROUNDS = 4, 20000
CONTENDING_HOST = PROCESS + f"""
#include <pthread.h>
extern flexio_func_t prepare, work, outcome, stop;
static void *run(void *which)
{{
	uint64_t result = 9;

	if (flexio_process_call(process, work, &result, {ROUNDS}ul, (uint64_t)which) != FLEXIO_STATUS_SUCCESS)
		exit(6);
	return (void *)result;
}}
int main(int argc, char **argv)
{{
	pthread_t threads[{WORKERS}];

	(void)argv;
	if (argc > 1 && !registry_call(functions, stop))
		exit(7);
	registry_call(functions, prepare);
	for (uint64_t i = 0; i < {WORKERS}; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	for (int i = 0; i < {WORKERS}; i++) {{
		void *result;

		pthread_join(threads[i], &result);
		printf("= %d\\n", (int)(uint64_t)result);
	}}
	for (uint64_t i = 0; i < 4; i++)
		printf("= %d\\n", (int)registry_call(functions, outcome, i));
	return 0;
}}
"""


def reservations(place):
    """Threads that contend by lr and sc lose nothing: counters, a lock, and a stack whose nodes are used again."""
    if not (place.build / "src/flexio/libflexio.so").exists():
        raise Skip("libflexio is not built")
    library = place.build / "src/flexio"
    place.write("contended.c", CONTENDED)
    place.write("host.c", CONTENDING_HOST)
    for mode in (*MODES, ("--devicecc-options=-O2,-fsanitize=thread",)):
        place.dpacc("contended.c", "-o", "contended.a", "--app-name=functions", *mode)
        place.good("gcc", *place.host_flags, "host.c", "contended.a", f"-L{library}", f"-Wl,-rpath,{library}", "-lflexio",
                   "-libverbs", "-lmlx5", "-pthread", "-o", "host")
        # Others wait for a thread that was stopped within sc, but not for ever.
        result = place.session.run_ok(str(place.directory / "host"), *(("stopped",) if mode == MODES[1] else ()))
        half = WORKERS // 2 * ROUNDS
        expect([int(n) for n in re.findall(r"^= (\d+)$", result.out, re.M)] ==
               [0] * WORKERS + [2 * half, half, half, 6], result.text())
        expect("DPA race" not in result.text(), result.text())


REFUSED = [
    ('"ecall"', "ecall"),
    ('"rdcycel %0" : "=r"(r)', "rdcycel $0"),
    ('"nop\\n\\tcsrw mtvec, %0" :: "r"(r)', "csrw mtvec, $0"),
    ('"csrr %0, mhartid" : "=r"(r)', "csrr $0, mhartid"),
    ('"1: bnez %0, 1f" :: "r"(r)', "bnez $0, 1f: '1f' is no label of this statement"),
    ('"j 1b; 1: nop"', "j 1b: '1b' is no label of this statement"),
    ('"bnez %0, away" :: "r"(r)', "bnez $0, away: 'away' is no label of this statement"),
    ('"again: nop; again: nop"', "again: nop: the label is there twice"),
    ('"call f"', "call f"),
    ('"ret"', "ret"),
    ('"jalr %0" :: "r"(r)', "jalr $0"),
    ('"beq %0, 1f; 1:" :: "r"(r)', "beq $0, 1f: wrong number of operands"),
    ('"lr.h %0, (%1)" : "=r"(r) : "r"(p)', "lr.h $0, ($1)"),
    ('"sc.d %0, (%1)" : "=r"(r) : "r"(p)', "sc.d $0, ($1): wrong number of operands"),
    ('"mv %0, sp" : "=r"(r)', "register sp"),
    ('"add %0, %0" : "+r"(r)', "wrong number of operands"),
    ('"ld %0, %1" : "=r"(r) : "r"(p)', "'$1' is no address"),
    ('"fence x, rw"', "fence x, rw"),
    ('"vadd.vv v1, v2, v3"', "vadd.vv"),
    ('"movq %0, %%rax" :: "r"(r)', "movq"),
]


def assembly_refused(place):
    """What is not translated is named with its line, all of it in one run, and nothing is left."""
    place.write("header.h", "static inline void inside(void)\n{\n\t__asm__ volatile(\"wfi\");\n}\n")
    place.write("wrong.c", "#include \"header.h\"\n__dpa_rpc__ unsigned long f(unsigned long *p)\n{\n"
                "\tunsigned long r = *p;\n\tinside();\n" +
                "".join(f"\t__asm__ volatile({text});\n" for text, _ in REFUSED) +
                "\t__asm__ volatile goto(\"bnez %0, %l1\" :: \"r\"(r) : \"t0\" : out);\nout:\n\treturn r;\n}\n")
    for compiler, words in (("dpacc", ("-o", "wrong.a")), ("dpa-clang", ("-c",))):
        result = place.bad(place.build / compiler, "wrong.c", *words)
        lines = result.err.splitlines()
        expect(any(re.match(r"(\./)?header\.h:3: error: .*wfi", line) for line in lines), result.text())
        for number, (_, said) in enumerate((*REFUSED, (None, "asm goto is not translated")), 6):
            expect(any(line.startswith(f"wrong.c:{number}: error: ") and said in line for line in lines),
                   f"line {number}: {said}\n{result.text()}")
    expect(not list(place.directory.glob("wrong.[ao]")), "an output is there")


def assembly_outside(place):
    """Outside of functions data and names are taken; instructions would be the host's, and are refused."""
    place.write("data.c", "#include <libflexio-dev/flexio_dev.h>\n"
                "__asm__(\".pushsection .data\\n.globl seven\\n.balign 8\\nseven: .quad 7 # data\\n.popsection\");\n"
                "extern uint64_t seven;\n__dpa_rpc__ uint64_t f(uint64_t a)\n{\n\treturn a + seven;\n}\n")
    place.good(place.build / "dpacc", "data.c", "-o", "data.a", "-hostcc=gcc", "--app-name=data")
    for text, said in (("g: ret", "ret"), (".globl g\\n g: li a0,7\\n ret", "li a0,7"), (".word 7", ".word 7")):
        place.write("wrong.c", f"__asm__(\"{text}\");\n__dpa_rpc__ unsigned long f(unsigned long a)\n{{\n\treturn a;\n}}\n")
        result = place.bad(place.build / "dpacc", "wrong.c", "-o", "wrong.a", "-hostcc=gcc", "--app-name=wrong")
        expect(f"wrong.c: error: assembly outside of functions: not translated: {said}\n" in result.err, result.text())
    expect(not list(place.directory.glob("wrong.[ao]")), "an output is there")


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
    for name, test in (("division", divisions), ("assembly", assembly)):
        yield f"dpacc processor {name}", on_library_bench(test)
    yield "dpacc processor instructions", on_library_bench(instructions)
    yield "dpacc processor reservations", on_library_bench(reservations)
    yield "dpacc processor assembly-checked", on_bench(assembly_checked)
    yield "dpacc processor assembly-refused", on_bench(assembly_refused)
    yield "dpacc processor assembly-outside", on_bench(assembly_outside)
    yield "dpacc annotations", on_library_bench(annotations)
    yield "dpacc dpa-clang passes", on_bench(passes)
