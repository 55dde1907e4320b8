// SPDX-License-Identifier: BSD-2-Clause
/*
 * Only what compilers and hand-written code use for registers of devices is known: moves from a
 * general or vector register, or of a constant, to memory, also non-temporal ones.  Encodings:
 * Intel SDM volume 2, chapter 2 (prefixes, ModRM, VEX, EVEX) and the pages of the instructions.
 */
#include "driver/doorbell/store.h"

#if defined(__x86_64__)

#include <ucontext.h>

#include "usermem/usermem.h"

/* Bits of the opcode tables: in which encodings the opcode is such a store. */
enum {
	PLAIN = 1 << 0,	 /* without a prefix that selects */
	P66 = 1 << 1,	 /* with 0x66 */
	PF3 = 1 << 2,	 /* with 0xf3 */
	PF2 = 1 << 3,	 /* with 0xf2 */
	VECTOR = 1 << 4, /* and with VEX or EVEX instead of prefixes */
	IMM8 = 1 << 5,	 /* a constant follows */
	IMM32 = 1 << 6,	 /* likewise; of 2 bytes with 0x66 */
};

static const uint8_t one_byte[256] = {
	[0x88] = PLAIN,		      /* MOV r/m8, r8 */
	[0x89] = PLAIN | P66,	      /* MOV r/m, r */
	[0xc6] = PLAIN | IMM8,	      /* MOV r/m8, imm8: only /0 */
	[0xc7] = PLAIN | P66 | IMM32, /* MOV r/m, imm: only /0 */
};

/* Behind 0x0f. */
static const uint8_t two_bytes[256] = {
	[0x11] = PLAIN | P66 | PF3 | PF2 | VECTOR, /* MOVUPS, MOVUPD, MOVSS, MOVSD */
	[0x13] = PLAIN | P66 | VECTOR,		   /* MOVLPS, MOVLPD */
	[0x17] = PLAIN | P66 | VECTOR,		   /* MOVHPS, MOVHPD */
	[0x29] = PLAIN | P66 | VECTOR,		   /* MOVAPS, MOVAPD */
	[0x2b] = PLAIN | P66 | VECTOR,		   /* MOVNTPS, MOVNTPD */
	[0x7e] = P66 | VECTOR,			   /* MOVD, MOVQ */
	[0x7f] = P66 | PF3 | VECTOR,		   /* MOVDQA, MOVDQU */
	[0xc3] = PLAIN,				   /* MOVNTI */
	[0xd6] = P66 | VECTOR,			   /* MOVQ */
	[0xe7] = P66 | VECTOR,			   /* MOVNTDQ */
};

/* Behind 0x0f 0x38. */
static const uint8_t three_bytes[256] = {
	[0xf8] = P66,	/* MOVDIR64B */
	[0xf9] = PLAIN, /* MOVDIRI */
};

/* What is read of an instruction; past its end there are only zeros. */
struct cursor {
	const uint8_t *code;
	size_t len, at;
};

static uint8_t cursor_next(struct cursor *c)
{
	size_t at = c->at++;

	return at < c->len ? c->code[at] : 0;
}

static uint8_t cursor_peek(const struct cursor *c)
{
	return c->at < c->len ? c->code[c->at] : 0;
}

/* pp of VEX and EVEX. */
static const uint8_t by_pp[] = {PLAIN, P66, PF3, PF2};

/* The prefixes; *selects: which column of the tables they choose. */
static void take_prefixes(struct cursor *c, uint8_t *selects)
{
	bool word = false;
	uint8_t repeat = 0;

	for (;; cursor_next(c)) {
		switch (cursor_peek(c)) {
		case 0x66:
			word = true;
			continue;
		case 0xf2:
			repeat = PF2;
			continue;
		case 0xf3:
			repeat = PF3;
			continue;
		case 0x2e: /* segments, and the size of addresses: they do not change what it is */
		case 0x36:
		case 0x3e:
		case 0x26:
		case 0x64:
		case 0x65:
		case 0x67:
			continue;
		default:
			break;
		}
		break;
	}
	*selects = repeat ? repeat : word ? P66 : PLAIN;
	if (cursor_peek(c) >> 4 == 4) /* REX */
		cursor_next(c);
}

/* ModRM, SIB and displacement, all that says where to; false: to a register. */
static bool take_address(struct cursor *c, uint8_t *reg)
{
	uint8_t modrm = cursor_next(c), mod = modrm >> 6, rm = modrm & 7, base = rm;

	*reg = modrm >> 3 & 7;
	if (mod == 3)
		return false;
	if (rm == 4)
		base = cursor_next(c) & 7;
	if (mod == 1)
		c->at += 1;
	else if (mod == 2 || base == 5)
		c->at += 4;
	return true;
}

/* VEX of two or three bytes, EVEX; all only with opcodes behind 0x0f.  The opcode's row, or 0. */
static uint8_t take_vector(struct cursor *c)
{
	uint8_t kind = cursor_next(c), first = cursor_next(c), pp = first, row;

	if (kind != 0xc5) {
		if ((first & (kind == 0xc4 ? 0x1f : 0x0f)) != 1)
			return 0;
		pp = cursor_next(c);
	}
	if (kind == 0x62)
		cursor_next(c);
	row = two_bytes[cursor_next(c)];
	return row & VECTOR && row & by_pp[pp & 3] ? row : 0;
}

/* The opcode's row, if it is a store in this encoding, or 0. */
static uint8_t take_opcode(struct cursor *c, uint8_t selects)
{
	const uint8_t *table = one_byte;
	uint8_t row;

	if (cursor_peek(c) == 0x0f) {
		cursor_next(c);
		table = two_bytes;
		if (cursor_peek(c) == 0x38) {
			cursor_next(c);
			table = three_bytes;
		}
	}
	row = table[cursor_next(c)];
	return row & selects ? row : 0;
}

static bool is_vector(uint8_t first)
{
	return first == 0xc4 || first == 0xc5 || first == 0x62;
}

size_t store_length(const uint8_t *code, size_t len)
{
	struct cursor c = {code, len, 0};
	uint8_t selects = 0, row, reg;

	if (is_vector(cursor_peek(&c))) {
		row = take_vector(&c);
	} else {
		take_prefixes(&c, &selects);
		row = take_opcode(&c, selects);
	}
	if (!row || !take_address(&c, &reg))
		return 0;
	/* with another register field these opcodes are no moves */
	if (row & (IMM8 | IMM32) && reg)
		return 0;
	if (row & IMM8)
		c.at += 1;
	if (row & IMM32)
		c.at += selects == P66 ? 2 : 4;
	return c.at <= len ? c.at : 0;
}

/* As many of the bytes as there are: the instruction may be the last of its page. */
static size_t read_code(const uint8_t *at, uint8_t *code)
{
	for (size_t n = STORE_INSN_MAX; n; n--)
		if (usermem_copy(code, at, n))
			return n;
	return 0;
}

bool store_skip(void *ucontext)
{
	greg_t *ip = &((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RIP];
	uint8_t code[STORE_INSN_MAX];
	size_t n = store_length(code, read_code((const uint8_t *)(uintptr_t)*ip, code));

	*ip += (greg_t)n;
	return n;
}

#else

size_t store_length(const uint8_t *code, size_t len)
{
	(void)code;
	(void)len;
	return 0;
}

bool store_skip(void *ucontext)
{
	(void)ucontext;
	return false;
}

#endif
