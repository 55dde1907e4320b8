// SPDX-License-Identifier: BSD-2-Clause
/*
 * Knows only the stores that compilers and hand-written code use for registers of devices: moves
 * from a general or vector register, or of a constant, to memory, also non-temporal ones.
 * Encodings:
 * Intel SDM volume 2, chapter 2 (prefixes, ModRM, VEX, EVEX) and the pages of the instructions.
 */
#include "driver/doorbell/store.h"

#if defined(__x86_64__)

#include <asm/sigcontext.h>
#include <cpuid.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

#include "prm/uar.h"
#include "usermem/usermem.h"

/* Vector registers 16 to 31, of 64 bytes each, which glibc's memcpy copies with (evex): a component of
 * the saved state with a place of its own. */
#define UPPER_VECTORS	     16u
#define UPPER_VECTOR_BYTES   64u
#define XSTATE_UPPER_VECTORS 7u

/* Bits of the opcode tables: in which encodings the opcode is such a store. */
enum {
	PLAIN = 1 << 0,	 /* without a prefix that selects a column */
	P66 = 1 << 1,	 /* with 0x66 */
	PF3 = 1 << 2,	 /* with 0xf3 */
	PF2 = 1 << 3,	 /* with 0xf2 */
	VECTOR = 1 << 4, /* and with VEX or EVEX instead of prefixes */
	IMM8 = 1 << 5,	 /* a constant follows */
	IMM32 = 1 << 6,	 /* likewise; 2 bytes with 0x66 */
	/* where the first 8 bytes come from, if it stores as many */
	OF_VECTOR = 1 << 7,
	OF_WIDE_VECTOR = 1 << 8, /* only with REX.W */
	OF_GENERAL = 1 << 9,	 /* likewise */
	F3_LESS = 1 << 10,	 /* with 0xf3 it stores less */
	OF_MEMORY = 1 << 11, /* the address is that of the source; a register has the target's */
};

static const uint16_t one_byte[256] = {
	[0x88] = PLAIN,			   /* MOV r/m8, r8 */
	[0x89] = PLAIN | P66 | OF_GENERAL, /* MOV r/m, r */
	[0xc6] = PLAIN | IMM8,		   /* MOV r/m8, imm8: only /0 */
	[0xc7] = PLAIN | P66 | IMM32,	   /* MOV r/m, imm: only /0 */
};

/* Opcodes behind 0x0f. */
static const uint16_t two_bytes[256] = {
	/* MOVUPS, MOVUPD, MOVSS, MOVSD */
	[0x11] = PLAIN | P66 | PF3 | PF2 | VECTOR | OF_VECTOR | F3_LESS,
	[0x13] = PLAIN | P66 | VECTOR | OF_VECTOR, /* MOVLPS, MOVLPD */
	[0x17] = PLAIN | P66 | VECTOR,		   /* MOVHPS, MOVHPD */
	[0x29] = PLAIN | P66 | VECTOR | OF_VECTOR, /* MOVAPS, MOVAPD */
	[0x2b] = PLAIN | P66 | VECTOR | OF_VECTOR, /* MOVNTPS, MOVNTPD */
	[0x7e] = P66 | VECTOR | OF_WIDE_VECTOR,	   /* MOVD, MOVQ */
	[0x7f] = P66 | PF3 | VECTOR | OF_VECTOR,   /* MOVDQA, MOVDQU */
	[0xc3] = PLAIN | OF_GENERAL,		   /* MOVNTI */
	[0xd6] = P66 | VECTOR | OF_VECTOR,	   /* MOVQ */
	[0xe7] = P66 | VECTOR | OF_VECTOR,	   /* MOVNTDQ */
};

/* Opcodes behind 0x0f 0x38. */
static const uint16_t three_bytes[256] = {
	[0xf8] = P66 | OF_MEMORY,    /* MOVDIR64B */
	[0xf9] = PLAIN | OF_GENERAL, /* MOVDIRI */
};

/* The bytes of an instruction that are read; past their end there are only zeros. */
struct cursor {
	const uint8_t *code;
	size_t len, at;
	struct store_target to;
	uint8_t selects;    /* the column of the tables that the prefixes choose */
	bool wide;	    /* REX.W, or what stands for it */
	bool partial;	    /* a mask selects what is stored */
	uint8_t high;	    /* 16: the register is one of the upper 16 vectors */
	uint8_t extend;	    /* REX.R, REX.X and REX.B, or what stands for them: bits 2 to 0 */
	uint8_t compressed; /* one-byte displacements count in this unit; 0: not known */
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

/* The columns that pp of VEX and EVEX selects. */
static const uint8_t by_pp[] = {PLAIN, P66, PF3, PF2};

static void take_prefixes(struct cursor *c)
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
		case 0x64: /* segments and the size of addresses do not change which store it is */
		case 0x65:
		case 0x67:
			c->to.known = false;
			continue;
		case 0x2e: /* these do not even change where it goes */
		case 0x36:
		case 0x3e:
		case 0x26:
			continue;
		default:
			break;
		}
		break;
	}
	c->selects = repeat ? repeat : word ? P66 : PLAIN;
	if (cursor_peek(c) >> 4 == 4) { /* REX */
		c->wide = cursor_peek(c) & 8;
		c->extend = cursor_next(c) & 7;
	}
}

static int32_t take_displacement(struct cursor *c, unsigned bytes)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint32_t)cursor_next(c) << 8 * i;
	return bytes == 1 ? (int8_t)value : (int32_t)value;
}

/* Reads ModRM, SIB and displacement, which say where the store goes; false: to a register. */
static bool take_address(struct cursor *c, uint8_t *reg)
{
	uint8_t modrm = cursor_next(c), mod = modrm >> 6, rm = modrm & 7, base = rm;
	struct store_target *to = &c->to;
	bool near = mod == 0 && rm == 5; /* counts from the next instruction */

	*reg = (uint8_t)((modrm >> 3 & 7) | (c->extend & 4) << 1);
	if (mod == 3)
		return false;
	if (rm == 4) {
		uint8_t sib = cursor_next(c),
			index = (uint8_t)((sib >> 3 & 7) | (c->extend & 2) << 2);

		base = sib & 7;
		if (index != 4) /* 4 means no index */
			to->index = index;
		to->scale = sib >> 6;
	}
	if (mod != 0 || base != 5)
		to->base = (uint8_t)(base | (c->extend & 1) << 3);
	to->known &= !near;
	if (mod == 1) {
		to->offset = take_displacement(c, 1) * c->compressed;
		to->known &= c->compressed != 0;
	} else if (mod == 2 || base == 5) {
		to->offset = take_displacement(c, 4);
	}
	return true;
}

/*
 * EVEX counts one-byte displacements in units of what the instruction stores (Intel SDM volume 2,
 * 2.7.5): the length of the vector, if it stores all of it.
 */
static uint8_t evex_unit(uint8_t opcode, uint8_t pp, uint8_t last)
{
	bool whole = opcode == 0x7f || opcode == 0xe7 ||
		     ((opcode == 0x11 || opcode == 0x29 || opcode == 0x2b) && pp < 2);

	return whole ? (uint8_t)(16 << (last >> 5 & 3)) : 0;
}

/*
 * Reads a VEX prefix of two or three bytes, or EVEX; all come only with opcodes behind 0x0f.
 * Returns the opcode's row, or 0.
 */
static uint16_t take_vector(struct cursor *c)
{
	uint8_t kind = cursor_next(c), first = cursor_next(c), pp = first, last = 0, opcode;
	uint16_t row;

	c->extend = (uint8_t)(~first >> 5 & 4);
	if (kind != 0xc5) {
		if ((first & (kind == 0xc4 ? 0x1f : 0x0f)) != 1)
			return 0;
		c->extend = (uint8_t)(~first >> 5 & 7);
		pp = cursor_next(c);
		c->wide = pp & 0x80;
	}
	if (kind == 0x62) {
		last = cursor_next(c);
		c->partial = last & 7;
		c->high = first & 0x10 ? 0 : 16;
	}
	opcode = cursor_next(c);
	if (kind == 0x62)
		c->compressed = evex_unit(opcode, pp & 3, last);
	c->selects = by_pp[pp & 3];
	row = two_bytes[opcode];
	return row & VECTOR && row & c->selects ? row : 0;
}

/* Returns the opcode's row, if it is a store in this encoding, or 0. */
static uint16_t take_opcode(struct cursor *c)
{
	const uint16_t *table = one_byte;
	uint16_t row;

	if (cursor_peek(c) == 0x0f) {
		cursor_next(c);
		table = two_bytes;
		if (cursor_peek(c) == 0x38) {
			cursor_next(c);
			table = three_bytes;
		}
	}
	row = table[cursor_next(c)];
	return row & c->selects ? row : 0;
}

/* Where the first 8 bytes come from. */
static enum store_source source_of(const struct cursor *c, uint16_t row)
{
	if (row & OF_MEMORY)
		return STORE_OF_MEMORY;
	if (c->partial || (row & F3_LESS && c->selects == PF3))
		return STORE_OF_OTHER;
	if (row & OF_VECTOR || (row & OF_WIDE_VECTOR && c->wide))
		return STORE_OF_VECTOR;
	if (!c->wide)
		return STORE_OF_OTHER;
	return row & OF_GENERAL ? STORE_OF_GENERAL
	       : row & IMM32	? STORE_OF_CONSTANT
				: STORE_OF_OTHER;
}

static bool is_vector(uint8_t first)
{
	return first == 0xc4 || first == 0xc5 || first == 0x62;
}

size_t store_decode(const uint8_t *code, size_t len, struct store *out)
{
	struct cursor c = {
		.code = code,
		.len = len,
		.to = {.known = true, .base = STORE_NO_REGISTER, .index = STORE_NO_REGISTER},
		.compressed = 1,
	};
	uint16_t row;
	uint8_t reg;

	if (is_vector(cursor_peek(&c))) {
		row = take_vector(&c);
	} else {
		take_prefixes(&c);
		row = take_opcode(&c);
	}
	if (!row || !take_address(&c, &reg))
		return 0;
	/* with another register field these opcodes are no moves */
	if (row & (IMM8 | IMM32) && reg & 7)
		return 0;
	*out = (struct store){
		.to = c.to, .source = source_of(&c, row), .reg = (uint8_t)(reg | c.high)};
	if (row & OF_MEMORY) {
		out->from = c.to;
		out->to.known = false;
	}
	if (row & IMM8)
		c.at += 1;
	if (row & IMM32)
		out->constant = take_displacement(&c, c.selects == P66 && !c.wide ? 2 : 4);
	return c.at <= len ? c.at : 0;
}

/* Reads as many of the bytes as there are: the instruction may be the last of its page. */
static size_t read_code(const uint8_t *at, uint8_t *code)
{
	for (size_t n = STORE_CODE_MAX; n; n--)
		if (usermem_copy(code, at, n))
			return n;
	return 0;
}

/* The registers in the order in which instructions number them. */
static const int registers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
				REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
				REG_R12, REG_R13, REG_R14, REG_R15};

static uintptr_t register_value(const greg_t *regs, uint8_t number)
{
	return number == STORE_NO_REGISTER ? 0 : (uintptr_t)regs[registers[number]];
}

static uintptr_t address_of(const struct store_target *at, const greg_t *regs)
{
	return register_value(regs, at->base) + (register_value(regs, at->index) << at->scale) +
	       (uintptr_t)(intptr_t)at->offset;
}

static bool is_in_block(const struct store_target *to, const greg_t *regs, uintptr_t block)
{
	return to->known && address_of(to, regs) - block < STORE_BLOCK;
}

/* Where the upper 16 vector registers lie in what the kernel saves; 0: the processor has none. */
static uint32_t upper_vectors_at(void)
{
	static _Atomic(uint32_t) known; /* CPUID is slow in a virtual machine; 1: there are none */
	uint32_t at = atomic_load_explicit(&known, memory_order_relaxed), size, ecx, edx;

	if (unlikely(!at)) {
		if (!__get_cpuid_count(0xd, XSTATE_UPPER_VECTORS, &size, &at, &ecx, &edx) || !at)
			at = 1;
		atomic_store_explicit(&known, at, memory_order_relaxed);
	}
	return at > 1 ? at : 0;
}

/* The low half of the low 16 bytes of a vector register (Intel SDM volume 1, 13.4: the format of
 * XSAVE; asm/sigcontext.h: what is in it). */
static bool vector_value(const ucontext_t *uc, uint8_t reg, uint64_t *value)
{
	const struct _xstate *saved = (const struct _xstate *)uc->uc_mcontext.fpregs;
	const uint64_t upper = UINT64_C(1) << XSTATE_UPPER_VECTORS;
	uint32_t at;

	if (!saved)
		return false;
	if (reg < UPPER_VECTORS) {
		memcpy(value, &uc->uc_mcontext.fpregs->_xmm[reg], sizeof(*value));
		return true;
	}
	at = upper_vectors_at();
	if (!at || saved->fpstate.sw_reserved.magic1 != FP_XSTATE_MAGIC1 ||
	    !(saved->fpstate.sw_reserved.xfeatures & upper))
		return false;
	*value = 0; /* registers that were never written to are not saved */
	if (saved->xstate_hdr.xfeatures & upper)
		memcpy(value,
		       (const uint8_t *)saved + at +
			       (size_t)(reg - UPPER_VECTORS) * UPPER_VECTOR_BYTES,
		       sizeof(*value));
	return true;
}

/* False: the instruction does not show it. */
static bool store_value(const struct store *s, const ucontext_t *uc, uint64_t *value)
{
	switch (s->source) {
	case STORE_OF_GENERAL:
		*value = register_value(uc->uc_mcontext.gregs, s->reg);
		return true;
	case STORE_OF_VECTOR:
		return vector_value(uc, s->reg, value);
	case STORE_OF_CONSTANT:
		*value = (uint64_t)(int64_t)s->constant;
		return true;
	case STORE_OF_MEMORY:
		return s->from.known &&
		       usermem_copy(value,
				    (const void *)address_of(&s->from, uc->uc_mcontext.gregs),
				    sizeof(*value));
	case STORE_OF_OTHER:
		break;
	}
	return false;
}

bool store_skip(void *ucontext, uintptr_t addr, uint64_t *value)
{
	greg_t *regs = ((ucontext_t *)ucontext)->uc_mcontext.gregs;
	uintptr_t block = addr & ~(uintptr_t)(STORE_BLOCK - 1);
	uint8_t code[STORE_CODE_MAX];
	size_t have = read_code((const uint8_t *)(uintptr_t)regs[REG_RIP], code), at, n;
	struct store s;

	at = store_decode(code, have, &s);
	if (!at || (value && !store_value(&s, ucontext, value)))
		return false;
	/* A block at the end of its page is none of a register's. */
	if (!((block + STORE_BLOCK) % UAR_BYTES))
		have = at;
	while ((n = store_decode(code + at, have - at, &s)) && is_in_block(&s.to, regs, block))
		at += n;
	regs[REG_RIP] += (greg_t)at;
	return true;
}

#else

size_t store_decode(const uint8_t *code, size_t len, struct store *out)
{
	(void)code;
	(void)len;
	(void)out;
	return 0;
}

bool store_skip(void *ucontext, uintptr_t addr, uint64_t *value)
{
	(void)ucontext;
	(void)addr;
	(void)value;
	return false;
}

#endif
