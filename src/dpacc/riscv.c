// SPDX-License-Identifier: BSD-2-Clause
/*
 * RISC-V instructions of inline assembly, as LLVM's instructions: rv64imac with Zba, Zbb and Zbs,
 * most of the drafts Zbp and Zbr, and those of NVIDIA's own whose names are public.
 * Registers that a statement names are variables of the statement, and it jumps to labels of its own
 * only.
 */
#include "dpacc/riscv.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"

/* As many as .insn has. */
#define ARGS_MAX 6

/* One instruction. */
struct line {
	char *text;
	char *name;
	char *args[ARGS_MAX];
	size_t count;
};

static void block_refuse(struct riscv_block *block, const struct line *line, const char *why)
{
	if (!block->refused)
		block->refused = text_of("%s: %s", line->text, why);
}

/* ---- operands ---- */

static const char *const register_names[RISCV_REGISTERS] = {
	"zero", "ra", "sp", "gp", "tp",	 "t0",	"t1", "t2", "s0", "s1", "a0",
	"a1",	"a2", "a3", "a4", "a5",	 "a6",	"a7", "s2", "s3", "s4", "s5",
	"s6",	"s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
};

/* Returns the number of a register, or -1. */
static int register_number(const char *name)
{
	char *end;
	long number;

	for (int i = 0; i < (int)array_size(register_names); i++)
		if (!strcmp(name, register_names[i]))
			return i;
	if (!strcmp(name, "fp"))
		return 8;
	if (name[0] != 'x' || !isdigit((unsigned char)name[1]))
		return -1;
	number = strtol(name + 1, &end, 10);
	return *end || number >= (int)array_size(register_names) ? -1 : (int)number;
}

bool riscv_is_register(const char *name)
{
	return register_number(name) >= 0;
}

/* Returns the operand that $0 or ${0:z} means, or NULL. */
static struct riscv_operand *operand_of(const struct riscv_block *block, const char *text)
{
	char *end;
	unsigned long number;

	if (text[0] != '$' || !isdigit((unsigned char)text[1 + (text[1] == '{')]))
		return NULL;
	number = strtoul(text + 1 + (text[1] == '{'), &end, 10);
	if (text[1] == '{')
		end += *end == ':' ? strcspn(end, "}") + 1 : 1;
	return *end || number >= block->count ? NULL : &block->operands[number];
}

/* Returns a number of the text as decimal digits, or NULL. */
static char *number_of(const char *text)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 0);
	if (errno == ERANGE) {
		errno = 0;
		value = (long)strtoul(text, &end, 0);
	}
	return end == text || *end || errno ? NULL : text_of("%ld", value);
}

static char *pointer_type(const struct ir *ir, int bits)
{
	return ir->typed_pointers ? text_of("i%d*", bits) : text_of("ptr");
}

/* Returns the value, which a function has in a variable. */
static const char *slot_load(struct riscv_block *block, const char *value)
{
	if (!block->is_function)
		return value;
	return ir_value(block->ir, "load i64, %s %s", pointer_type(block->ir, 64), value);
}

/* Returns the value of a register or number; refuses what is neither. */
static const char *operand_get(struct riscv_block *block, const struct line *line, size_t i)
{
	const char *text = i < line->count ? line->args[i] : "";
	struct riscv_operand *operand = operand_of(block, text);
	int number = register_number(text);
	char *constant = number_of(text);

	if (operand && !operand->is_memory)
		return operand->value ? slot_load(block, operand->value) : "0";
	if (number == 0)
		return "0";
	if (number > 0 && block->registers[number])
		return slot_load(block, block->registers[number]);
	if (constant)
		return constant;
	if (number > 0)
		block_refuse(block, line,
			     text_of("register %s has no value here that the statement has set",
				     text));
	else
		block_refuse(block, line, text_of("'%s' is no operand of it", text));
	return "0";
}

/* Sets a value.  A function has a variable for it; one of a register gets its name by the first
 * value. */
static void slot_store(struct riscv_block *block, char **slot, char *value)
{
	if (!block->is_function) {
		*slot = value;
		return;
	}
	if (!*slot)
		*slot = text_of("%%r%d", (int)(slot - block->registers));
	ir_write(block->ir, "store i64 %s, %s %s", value, pointer_type(block->ir, 64), *slot);
}

static void operand_set(struct riscv_block *block, const struct line *line, size_t i, char *value)
{
	const char *text = i < line->count ? line->args[i] : "";
	struct riscv_operand *operand = operand_of(block, text);
	int number = register_number(text);

	if (operand && operand->is_output && !operand->is_memory)
		slot_store(block, &operand->value, value);
	else if (number > 0)
		slot_store(block, &block->registers[number], value);
	else if (number < 0)
		block_refuse(block, line, text_of("'%s' is no result that it can have", text));
}

/* Whether the instruction has that many operands. */
static bool line_has(struct riscv_block *block, const struct line *line, size_t count)
{
	if (line->count != count)
		block_refuse(block, line, "wrong number of operands");
	return line->count == count;
}

/* ---- arithmetic ---- */

/* Extends the low bits of a value to 64. */
static char *value_extended(struct ir *ir, const char *how, int bits, const char *value)
{
	return ir_value(ir, "%s i%d %s to i64", how, bits,
			ir_value(ir, "trunc i64 %s to i%d", value, bits));
}

static char *value_flag(struct ir *ir, const char *bit)
{
	return ir_value(ir, "zext i1 %s to i64", bit);
}

enum {
	WORD = 1,    /* of 32 bits, whose result is extended by its sign */
	SHIFT = 2,   /* the second operand counts modulo the size */
	NOT_B = 4,   /* takes the second operand's complement */
	NOT = 8,     /* the result is the complement */
	BIT = 16,    /* the second operand is the number of a bit */
	UW = 32,     /* takes the first operand's low half without a sign */
	DIVIDE = 64, /* a division */
	SELECT = 128,
	COMPARE = 256,
	ROTATE = 512,
	HIGH = 1024, /* upper half of a product */
	ONE = 2048,  /* the lowest bit of the result */
};

static const struct binary {
	const char *name, *op;
	unsigned int flags, scale;
} binaries[] = {
	{"add", "add", 0, 0},
	{"addi", "add", 0, 0},
	{"addw", "add", WORD, 0},
	{"addiw", "add", WORD, 0},
	{"sub", "sub", 0, 0},
	{"subw", "sub", WORD, 0},
	{"and", "and", 0, 0},
	{"andi", "and", 0, 0},
	{"or", "or", 0, 0},
	{"ori", "or", 0, 0},
	{"xor", "xor", 0, 0},
	{"xori", "xor", 0, 0},
	{"sll", "shl", SHIFT, 0},
	{"slli", "shl", SHIFT, 0},
	{"sllw", "shl", SHIFT | WORD, 0},
	{"slliw", "shl", SHIFT | WORD, 0},
	{"srl", "lshr", SHIFT, 0},
	{"srli", "lshr", SHIFT, 0},
	{"srlw", "lshr", SHIFT | WORD, 0},
	{"srliw", "lshr", SHIFT | WORD, 0},
	{"sra", "ashr", SHIFT, 0},
	{"srai", "ashr", SHIFT, 0},
	{"sraw", "ashr", SHIFT | WORD, 0},
	{"sraiw", "ashr", SHIFT | WORD, 0},
	{"slt", "icmp slt", COMPARE, 0},
	{"slti", "icmp slt", COMPARE, 0},
	{"sltu", "icmp ult", COMPARE, 0},
	{"sltiu", "icmp ult", COMPARE, 0},
	{"mul", "mul", 0, 0},
	{"mulw", "mul", WORD, 0},
	{"mulh", "sext sext", HIGH, 0},
	{"mulhu", "zext zext", HIGH, 0},
	{"mulhsu", "sext zext", HIGH, 0},
	{"div", "sdiv", DIVIDE, 0},
	{"divu", "udiv", DIVIDE, 0},
	{"divw", "sdiv", DIVIDE | WORD, 0},
	{"divuw", "udiv", DIVIDE | WORD, 0},
	{"rem", "srem", DIVIDE, 0},
	{"remu", "urem", DIVIDE, 0},
	{"remw", "srem", DIVIDE | WORD, 0},
	{"remuw", "urem", DIVIDE | WORD, 0},
	/* Zba */
	{"add.uw", "add", UW, 0},
	{"sh1add", "add", 0, 1},
	{"sh2add", "add", 0, 2},
	{"sh3add", "add", 0, 3},
	{"sh1add.uw", "add", UW, 1},
	{"sh2add.uw", "add", UW, 2},
	{"sh3add.uw", "add", UW, 3},
	{"slli.uw", "shl", UW | SHIFT, 0},
	/* Zbb */
	{"andn", "and", NOT_B, 0},
	{"orn", "or", NOT_B, 0},
	{"xnor", "xor", NOT, 0},
	{"max", "icmp sgt", SELECT, 0},
	{"maxu", "icmp ugt", SELECT, 0},
	{"min", "icmp slt", SELECT, 0},
	{"minu", "icmp ult", SELECT, 0},
	{"rol", "fshl", ROTATE, 0},
	{"rolw", "fshl", ROTATE | WORD, 0},
	{"ror", "fshr", ROTATE, 0},
	{"rori", "fshr", ROTATE, 0},
	{"rorw", "fshr", ROTATE | WORD, 0},
	{"roriw", "fshr", ROTATE | WORD, 0},
	/* Zbs */
	{"bclr", "and", BIT | NOT_B, 0},
	{"bclri", "and", BIT | NOT_B, 0},
	{"bext", "lshr", SHIFT | ONE, 0},
	{"bexti", "lshr", SHIFT | ONE, 0},
	{"binv", "xor", BIT, 0},
	{"binvi", "xor", BIT, 0},
	{"bset", "or", BIT, 0},
	{"bseti", "or", BIT, 0},
};

static char *high_half(struct ir *ir, const struct binary *m, const char *a, const char *b)
{
	char *left = ir_value(ir, "%.4s i64 %s to i128", m->op, a);
	char *right = ir_value(ir, "%s i64 %s to i128", m->op + 5, b);
	char *product = ir_value(ir, "mul i128 %s, %s", left, right);

	return ir_value(ir, "trunc i128 %s to i64", ir_value(ir, "lshr i128 %s, 64", product));
}

/* Computes with operands of one size, which are already as the instruction wants them. */
static char *binary_result(struct ir *ir, const struct binary *m, int bits, const char *a,
			   const char *b)
{
	char *type = text_of("i%d", bits);

	if (m->flags & DIVIDE)
		return ir_divide(ir, m->op, type, a, b, NULL);
	if (m->flags & ROTATE)
		return ir_call(ir,
			       text_of("%s @llvm.%s.%s(%s, %s, %s)", type, m->op, type, type, type,
				       type),
			       text_of("%s %s, %s %s, %s %s", type, a, type, a, type, b));
	return ir_value(ir, "%s %s %s, %s", m->op, type, a, b);
}

static const char *binary_first(struct ir *ir, const struct binary *m, const char *a)
{
	if (m->flags & UW)
		a = ir_value(ir, "and i64 %s, 4294967295", a);
	if (m->scale)
		a = ir_value(ir, "shl i64 %s, %u", a, m->scale);
	if (m->flags & WORD)
		a = ir_value(ir, "trunc i64 %s to i32", a);
	return a;
}

static const char *binary_second(struct ir *ir, const struct binary *m, int bits, const char *b)
{
	if (m->flags & BIT)
		b = ir_value(ir, "shl i64 1, %s", ir_value(ir, "and i64 %s, 63", b));
	if (m->flags & NOT_B)
		b = ir_value(ir, "xor i64 %s, -1", b);
	if (m->flags & WORD)
		b = ir_value(ir, "trunc i64 %s to i32", b);
	if (m->flags & SHIFT)
		b = ir_value(ir, "and i%d %s, %d", bits, b, bits - 1);
	return b;
}

static bool translate_binary(struct riscv_block *block, const struct line *line)
{
	const struct binary *m = binaries;
	struct ir *ir = block->ir;
	const char *a, *b;
	char *result;
	int bits;

	while (m < binaries + array_size(binaries) && strcmp(m->name, line->name) != 0)
		m++;
	if (m == binaries + array_size(binaries))
		return false;
	if (!line_has(block, line, 3))
		return true;
	a = operand_get(block, line, 1);
	b = operand_get(block, line, 2);
	bits = m->flags & WORD ? 32 : 64;
	if (m->flags & HIGH) {
		operand_set(block, line, 0, high_half(ir, m, a, b));
		return true;
	}
	a = binary_first(ir, m, a);
	b = binary_second(ir, m, bits, b);
	result = binary_result(ir, m, bits, a, b);
	if (m->flags & SELECT)
		result = ir_value(ir, "select i1 %s, i64 %s, i64 %s", result, a, b);
	if (m->flags & COMPARE)
		result = value_flag(ir, result);
	if (m->flags & ONE)
		result = ir_value(ir, "and i64 %s, 1", result);
	if (m->flags & NOT)
		result = ir_value(ir, "xor i64 %s, -1", result);
	if (m->flags & WORD)
		result = ir_value(ir, "sext i32 %s to i64", result);
	operand_set(block, line, 0, result);
	return true;
}

/* Fills each byte that is not 0 with ones. */
static char *bytes_or(struct ir *ir, const char *a)
{
	const char *low = "9187201950435737471"; /* 0x7f in each byte */
	char *sum = ir_value(ir, "and i64 %s, %s", a, low);

	sum = ir_value(ir, "add i64 %s, %s", sum, low);
	sum = ir_value(ir, "or i64 %s, %s", sum, a);
	sum = ir_value(ir, "lshr i64 %s, 7", sum);
	sum = ir_value(ir, "and i64 %s, 72340172838076673", sum); /* 0x01 in each byte */
	return ir_value(ir, "mul i64 %s, 255", sum);
}

/* Counts bits by one of LLVM's functions; word: of the low half. */
static char *count_bits(struct ir *ir, const char *function, bool word, const char *a)
{
	const char *type = word ? "i32" : "i64";
	bool has_flag = strcmp(function, "ctpop") != 0;
	char *count;

	if (word)
		a = ir_value(ir, "trunc i64 %s to i32", a);
	count = ir_call(ir,
			text_of("%s @llvm.%s.%s(%s%s)", type, function, type, type,
				has_flag ? ", i1" : ""),
			text_of("%s %s%s", type, a, has_flag ? ", i1 false" : ""));
	return word ? ir_value(ir, "zext i32 %s to i64", count) : count;
}

/* Returns the result, or NULL if there is no such instruction. */
static char *unary_result(struct ir *ir, const char *name, const char *a)
{
	static const struct {
		const char *name, *how;
		int bits;
	} extensions[] = {
		{"sext.b", "sext", 8}, {"sext.h", "sext", 16}, {"sext.w", "sext", 32},
		{"zext.b", "zext", 8}, {"zext.h", "zext", 16}, {"zext.w", "zext", 32},
	};
	static const struct {
		const char *name, *op;
	} tests[] = {{"seqz", "icmp eq"},
		     {"snez", "icmp ne"},
		     {"sltz", "icmp slt"},
		     {"sgtz", "icmp sgt"}};
	static const struct {
		const char *name, *function;
		bool word;
	} counts[] = {
		{"clz", "ctlz", false}, {"clzw", "ctlz", true},	  {"ctz", "cttz", false},
		{"ctzw", "cttz", true}, {"cpop", "ctpop", false}, {"cpopw", "ctpop", true},
	};

	for (size_t i = 0; i < array_size(extensions); i++)
		if (!strcmp(name, extensions[i].name))
			return value_extended(ir, extensions[i].how, extensions[i].bits, a);
	for (size_t i = 0; i < array_size(tests); i++)
		if (!strcmp(name, tests[i].name))
			return value_flag(ir, ir_value(ir, "%s i64 %s, 0", tests[i].op, a));
	for (size_t i = 0; i < array_size(counts); i++)
		if (!strcmp(name, counts[i].name))
			return count_bits(ir, counts[i].function, counts[i].word, a);
	if (!strcmp(name, "mv") || !strcmp(name, "li"))
		return text_of("%s", a);
	if (!strcmp(name, "not"))
		return ir_value(ir, "xor i64 %s, -1", a);
	if (!strcmp(name, "neg"))
		return ir_value(ir, "sub i64 0, %s", a);
	if (!strcmp(name, "negw"))
		return value_extended(ir, "sext", 32, ir_value(ir, "sub i64 0, %s", a));
	if (!strcmp(name, "lui"))
		return value_extended(ir, "sext", 32, ir_value(ir, "shl i64 %s, 12", a));
	if (!strcmp(name, "rev8"))
		return ir_call(ir, "i64 @llvm.bswap.i64(i64)", text_of("i64 %s", a));
	if (!strcmp(name, "orc.b"))
		return bytes_or(ir, a);
	return NULL;
}

static bool translate_unary(struct riscv_block *block, const struct line *line)
{
	struct riscv_block look = *block;
	char *result;

	/* Looks first without a complaint whether it is one. */
	if (line->count != 2)
		return false;
	result = unary_result(block->ir, line->name, operand_get(&look, line, 1));
	if (!result)
		return false;
	operand_get(block, line, 1);
	operand_set(block, line, 0, result);
	return true;
}

/* ---- bits, as the drafts Zbp and Zbr have them ---- */

/* Exchanges neighbours of 1, 2, 4 bits and so on, for each bit of b that is set; is_or: and keeps
 * what was there, too. */
static const char *bits_exchange(struct ir *ir, const char *a, const char *b, int bits, bool is_or)
{
	for (unsigned int size = 1; size < (unsigned int)bits; size *= 2) {
		uint64_t even = UINT64_MAX / ((1ull << size) + 1);
		char *up = ir_value(ir, "shl i64 %s, %u",
				    ir_value(ir, "and i64 %s, %" PRIu64, a, even), size);
		char *down = ir_value(ir, "and i64 %s, %" PRIu64,
				      ir_value(ir, "lshr i64 %s, %u", a, size), even);
		char *other = ir_value(ir, "or i64 %s, %s", up, down);
		char *flag =
			ir_value(ir, "icmp ne i64 %s, 0", ir_value(ir, "and i64 %s, %u", b, size));

		if (is_or)
			other = ir_value(ir, "or i64 %s, %s", other, a);
		a = ir_value(ir, "select i1 %s, i64 %s, i64 %s", flag, other, a);
	}
	return a;
}

/* Puts halves of the operands together: the low ones, or the high ones. */
static const char *halves_pack(struct ir *ir, const char *a, const char *b, int half, bool is_high)
{
	const char *low = text_of("%" PRIu64, (UINT64_C(1) << half) - 1);

	if (is_high) {
		a = ir_value(ir, "lshr i64 %s, %d", a, half);
		b = ir_value(ir, "lshr i64 %s, %d", b, half);
	}
	a = ir_value(ir, "and i64 %s, %s", a, low);
	b = ir_value(ir, "and i64 %s, %s", b, low);
	return ir_value(ir, "or i64 %s, %s", a, ir_value(ir, "shl i64 %s, %d", b, half));
}

static bool translate_bits(struct riscv_block *block, const struct line *line)
{
	static const struct {
		const char *name;
		int half; /* of pack; 0: of the others */
		int bits;
		bool flag; /* of the high halves; and keeps what was there */
	} all[] = {
		{"pack", 32, 64, false},  {"packu", 32, 64, true},  {"packh", 8, 64, false},
		{"packw", 16, 32, false}, {"packuw", 16, 32, true}, {"grev", 0, 64, false},
		{"grevi", 0, 64, false},  {"grevw", 0, 32, false},  {"greviw", 0, 32, false},
		{"gorc", 0, 64, true},	  {"gorci", 0, 64, true},   {"gorcw", 0, 32, true},
		{"gorciw", 0, 32, true},
	};

	for (size_t i = 0; i < array_size(all); i++) {
		const char *a, *b, *result;

		if (strcmp(line->name, all[i].name) != 0)
			continue;
		if (!line_has(block, line, 3))
			return true;
		a = operand_get(block, line, 1);
		b = operand_get(block, line, 2);
		result = all[i].half ? halves_pack(block->ir, a, b, all[i].half, all[i].flag)
				     : bits_exchange(block->ir, a, b, all[i].bits, all[i].flag);
		operand_set(block, line, 0,
			    all[i].bits == 32 ? value_extended(block->ir, "sext", 32, result)
					      : text_of("%s", result));
		return true;
	}
	return false;
}

/* "crc32c.w rd, rs": goes on with the bits of a value for each of its bits. */
static bool translate_crc(struct riscv_block *block, const struct line *line)
{
	static const struct {
		const char *name;
		unsigned int polynomial; /* with its lowest bit first */
	} all[] = {{"crc32.", 0xedb88320}, {"crc32c.", 0x82f63b78}};
	static const char sizes[] = "bhwd";

	for (size_t i = 0; i < array_size(all); i++) {
		const char *size = line->name + strlen(all[i].name);
		const char *found;

		if (!text_begins(line->name, all[i].name))
			continue;
		found = *size && !size[1] ? strchr(sizes, *size) : NULL;
		if (!found)
			return false;
		if (line_has(block, line, 2))
			operand_set(block, line, 0,
				    ir_call(block->ir, "i64 @__dpa_crc32(i64, i64, i64)",
					    text_of("i64 %s, i64 %d, i64 %u",
						    operand_get(block, line, 1),
						    8 << (found - sizes), all[i].polynomial)));
		return true;
	}
	return false;
}

/* ---- memory ---- */

/* Returns a pointer to what "8($1)", "($1)" or an operand m means; NULL: refused. */
static char *operand_address(struct riscv_block *block, const struct line *line, size_t i, int bits)
{
	const char *text = i < line->count ? line->args[i] : "";
	const struct riscv_operand *operand = operand_of(block, text);
	const char *open = strchr(text, '('), *value, *offset = "0";
	struct line parts = {.text = line->text, .count = 2};

	if (operand && operand->is_memory) {
		value = operand->value;
	} else if (open && text_ends(text, ")")) {
		parts.args[0] = ir_piece(text, open);
		parts.args[1] = ir_piece(open + 1, text + strlen(text) - 1);
		value = operand_get(block, &parts, 1);
		offset = open == text ? "0" : operand_get(block, &parts, 0);
	} else {
		block_refuse(block, line, text_of("'%s' is no address", text));
		return NULL;
	}
	if (strcmp(offset, "0") != 0)
		value = ir_value(block->ir, "add i64 %s, %s", value, offset);
	return ir_value(block->ir,
			block->ir->typed_pointers ? "inttoptr i64 %s to i%d*"
						  : "inttoptr i64 %s to ptr",
			value, bits);
}

static bool translate_access(struct riscv_block *block, const struct line *line)
{
	static const struct {
		const char *name, *how;
		int bits;
	} loads[] = {
		{"lb", "sext", 8},  {"lbu", "zext", 8},	 {"lh", "sext", 16}, {"lhu", "zext", 16},
		{"lw", "sext", 32}, {"lwu", "zext", 32}, {"ld", NULL, 64},
	};
	static const struct {
		const char *name;
		int bits;
	} stores[] = {{"sb", 8}, {"sh", 16}, {"sw", 32}, {"sd", 64}};
	struct ir *ir = block->ir;

	for (size_t i = 0; i < array_size(loads); i++) {
		int bits = loads[i].bits;
		char *pointer, *value;

		if (strcmp(line->name, loads[i].name) != 0)
			continue;
		pointer = operand_address(block, line, 1, bits);
		if (!pointer)
			return true;
		value = ir_value(ir, "load volatile i%d, %s %s, align 1", bits,
				 pointer_type(ir, bits), pointer);
		if (loads[i].how)
			value = ir_value(ir, "%s i%d %s to i64", loads[i].how, bits, value);
		operand_set(block, line, 0, value);
		return true;
	}
	for (size_t i = 0; i < array_size(stores); i++) {
		int bits = stores[i].bits;
		const char *value;
		char *pointer;

		if (strcmp(line->name, stores[i].name) != 0)
			continue;
		value = operand_get(block, line, 0);
		pointer = operand_address(block, line, 1, bits);
		if (!pointer)
			return true;
		if (bits < 64)
			value = ir_value(ir, "trunc i64 %s to i%d", value, bits);
		ir_write(ir, "store volatile i%d %s, %s %s, align 1", bits, value,
			 pointer_type(ir, bits), pointer);
		return true;
	}
	return false;
}

/* "amoadd.w.aqrl rd, rs2, (rs1)": all are as ordered as can be. */
static bool translate_atomic(struct riscv_block *block, const struct line *line)
{
	static const struct {
		const char *name, *op;
	} ops[] = {
		{"amoswap", "xchg"}, {"amoadd", "add"},	  {"amoand", "and"},
		{"amoor", "or"},     {"amoxor", "xor"},	  {"amomax", "max"},
		{"amomin", "min"},   {"amomaxu", "umax"}, {"amominu", "umin"},
	};
	size_t length = strcspn(line->name, ".");
	const char *size = line->name + length;
	int bits = text_begins(size, ".w") ? 32 : text_begins(size, ".d") ? 64 : 0;
	struct ir *ir = block->ir;

	for (size_t i = 0; i < array_size(ops); i++) {
		const char *value;
		char *pointer, *old;

		if (!bits || strlen(ops[i].name) != length ||
		    strncmp(ops[i].name, line->name, length) != 0)
			continue;
		if (!line_has(block, line, 3))
			return true;
		value = operand_get(block, line, 1);
		pointer = operand_address(block, line, 2, bits);
		if (!pointer)
			return true;
		if (bits < 64)
			value = ir_value(ir, "trunc i64 %s to i%d", value, bits);
		old = ir_value(ir, "atomicrmw volatile %s %s %s, i%d %s seq_cst", ops[i].op,
			       pointer_type(ir, bits), pointer, bits, value);
		if (bits < 64)
			old = ir_value(ir, "sext i%d %s to i64", bits, old);
		operand_set(block, line, 0, old);
		return true;
	}
	return false;
}

static char *value_sized(struct ir *ir, const char *value, int bits)
{
	return bits < 64 ? ir_value(ir, "trunc i64 %s to i%d", value, bits) : text_of("%s", value);
}

/* "amocas.w rd, rs2, (rs1)": stores rs2 if rd is there, and returns what was there. */
static void compare_swap(struct riscv_block *block, const struct line *line, int bits)
{
	struct ir *ir = block->ir;
	const char *wanted, *value;
	char *pointer, *old;

	if (!line_has(block, line, 3))
		return;
	wanted = value_sized(ir, operand_get(block, line, 0), bits);
	value = value_sized(ir, operand_get(block, line, 1), bits);
	pointer = operand_address(block, line, 2, bits);
	if (!pointer)
		return;
	old = ir_value(ir, "cmpxchg volatile %s %s, i%d %s, i%d %s seq_cst seq_cst",
		       pointer_type(ir, bits), pointer, bits, wanted, bits, value);
	old = ir_value(ir, "extractvalue { i%d, i1 } %s, 0", bits, old);
	if (bits < 64)
		old = ir_value(ir, "sext i%d %s to i64", bits, old);
	operand_set(block, line, 0, old);
}

/* Returns the bits of an instruction that begins with this name: "lr.w.aq" has 32; 0: it does not. */
static int reservation_bits(const struct line *line, const char *name)
{
	const char *size = line->name + strlen(name);
	int bits;

	if (!text_begins(line->name, name))
		return 0;
	bits = text_begins(size, "w") ? 32 : text_begins(size, "d") ? 64 : 0;
	return bits && (!size[1] || !strcmp(size + 1, ".aq") || !strcmp(size + 1, ".rl") ||
			!strcmp(size + 1, ".aqrl"))
		       ? bits
		       : 0;
}

/* lr: the device library remembers the address, and the value that was there. */
static void reservation_make(struct riscv_block *block, const struct line *line, int bits)
{
	struct ir *ir = block->ir;
	char *pointer, *value;

	if (!line_has(block, line, 2))
		return;
	pointer = operand_address(block, line, 1, bits);
	if (!pointer)
		return;
	ir_call(ir, "void @__dpa_reserve(i64, i64)",
		text_of("i64 %s, i64 %d",
			ir_value(ir, "ptrtoint %s %s to i64", pointer_type(ir, bits), pointer),
			bits / 8));
	value = ir_value(ir, "load atomic volatile i%d, %s %s seq_cst, align %d", bits,
			 pointer_type(ir, bits), pointer, bits / 8);
	if (bits < 64)
		value = ir_value(ir, "sext i%d %s to i64", bits, value);
	ir_call(ir, "void @__dpa_reserved(i64)", text_of("i64 %s", value));
	operand_set(block, line, 0, value);
}

/* sc: stores if the reservation holds and the value is still there.  The result is 0 if it has. */
static void reservation_use(struct riscv_block *block, const struct line *line, int bits)
{
	struct ir *ir = block->ir;
	unsigned int number = block->jumps++;
	char *pointer, *wanted, *value, *pair;

	if (!line_has(block, line, 3))
		return;
	value = value_sized(ir, operand_get(block, line, 1), bits);
	pointer = operand_address(block, line, 2, bits);
	if (!pointer)
		return;
	pair = ir_call(
		ir, "i64 @__dpa_reservation_take(i64, i64)",
		text_of("i64 %s, i64 %d",
			ir_value(ir, "ptrtoint %s %s to i64", pointer_type(ir, bits), pointer),
			bits / 8));
	operand_set(block, line, 0, text_of("1"));
	ir_write(ir, "br i1 %s, label %%sc%u, label %%next%u",
		 ir_value(ir, "icmp ne i64 %s, 0", pair), number, number);
	fprintf(ir->out, "sc%u:\n", number);
	wanted = value_sized(ir, ir_call(ir, "i64 @__dpa_reservation_value()", ""), bits);
	pair = ir_value(ir, "cmpxchg volatile %s %s, i%d %s, i%d %s seq_cst seq_cst",
			pointer_type(ir, bits), pointer, bits, wanted, bits, value);
	value = value_flag(ir, ir_value(ir, "extractvalue { i%d, i1 } %s, 1", bits, pair));
	ir_call(ir, "void @__dpa_reservation_end(i64)", text_of("i64 %s", value));
	operand_set(block, line, 0, ir_value(ir, "xor i64 %s, 1", value));
	ir_write(ir, "br label %%next%u", number);
	fprintf(ir->out, "next%u:\n", number);
}

static bool translate_reservation(struct riscv_block *block, const struct line *line)
{
	int bits = reservation_bits(line, "lr.");

	if (bits) {
		reservation_make(block, line, bits);
		return true;
	}
	bits = reservation_bits(line, "sc.");
	if (bits) {
		reservation_use(block, line, bits);
		return true;
	}
	bits = reservation_bits(line, "amocas.");
	if (bits)
		compare_swap(block, line, bits);
	return bits;
}

/* ---- jumps ---- */

/* Returns the number of the label that an operand means, or -1.  "1b" is the last label 1 before the
 * place, "1f" the first one behind it. */
static int label_find(const struct riscv_block *block, const char *text)
{
	size_t digits = strspn(text, "0123456789");
	const struct words *labels = &block->labels;
	char *name = text_of("%.*s", (int)digits, text);

	if (digits && !strcmp(text + digits, "b")) {
		for (size_t i = block->passed; i-- > 0;)
			if (!strcmp(labels->words[i], name))
				return (int)i;
		return -1;
	}
	if (digits && !strcmp(text + digits, "f")) {
		for (size_t i = block->passed; i < labels->count; i++)
			if (!strcmp(labels->words[i], name))
				return (int)i;
		return -1;
	}
	for (size_t i = 0; !digits && i < labels->count; i++)
		if (!strcmp(labels->words[i], text))
			return (int)i;
	return -1;
}

static const struct {
	const char *name, *test;
	bool is_swapped, with_zero;
} branches[] = {
	{"beq", "eq", false, false},  {"bne", "ne", false, false},   {"blt", "slt", false, false},
	{"bge", "sge", false, false}, {"bltu", "ult", false, false}, {"bgeu", "uge", false, false},
	{"bgt", "slt", true, false},  {"ble", "sge", true, false},   {"bgtu", "ult", true, false},
	{"bleu", "uge", true, false}, {"beqz", "eq", false, true},   {"bnez", "ne", false, true},
	{"bltz", "slt", false, true}, {"bgez", "sge", false, true},  {"bgtz", "slt", true, true},
	{"blez", "sge", true, true},
};

/* Jumps to the label that the operand names; test: if this is true, NULL: always. */
static void jump_write(struct riscv_block *block, const struct line *line, size_t operand,
		       const char *test)
{
	int label = label_find(block, line->args[operand]);
	unsigned int number = block->jumps++;

	if (label < 0) {
		block_refuse(block, line,
			     text_of("'%s' is no label of this statement", line->args[operand]));
		return;
	}
	if (test)
		ir_write(block->ir, "br i1 %s, label %%label%d, label %%next%u", test, label,
			 number);
	else
		ir_write(block->ir, "br label %%label%d", label);
	fprintf(block->ir->out, "next%u:\n", number);
}

static bool translate_jump(struct riscv_block *block, const struct line *line)
{
	if (!strcmp(line->name, "j") && line_has(block, line, 1)) {
		jump_write(block, line, 0, NULL);
		return true;
	}
	if (!strcmp(line->name, "jal") && line->count == 2 && register_number(line->args[0]) == 0) {
		jump_write(block, line, 1, NULL);
		return true;
	}
	for (size_t i = 0; i < array_size(branches); i++) {
		const char *a, *b;

		if (strcmp(line->name, branches[i].name) != 0)
			continue;
		if (!line_has(block, line, branches[i].with_zero ? 2 : 3))
			return true;
		a = operand_get(block, line, 0);
		b = branches[i].with_zero ? "0" : operand_get(block, line, 1);
		jump_write(block, line, line->count - 1,
			   ir_value(block->ir, "icmp %s i64 %s, %s", branches[i].test,
				    branches[i].is_swapped ? b : a,
				    branches[i].is_swapped ? a : b));
		return true;
	}
	return false;
}

/* ---- fences, counters, and what has no operands ---- */

static bool is_set(const char *set, const char *of)
{
	return *set && strspn(set, of) == strlen(set);
}

/* Returns the weakest of LLVM's fences that is enough; input and output count as memory. */
static const char *fence_order(const char *before, const char *behind)
{
	if (is_set(before, "ri"))
		return "acquire";
	return is_set(behind, "wo") ? "release" : "seq_cst";
}

/* Input and output are memory of windows, and with r and w the fence is one of everything: of the
 * device library's spaces MMIO (2) and SYSTEM (3). */
static void fence_of_windows(struct riscv_block *block, const char *before, const char *behind)
{
	int pred = (strchr(before, 'i') ? 1 : 0) + (strchr(before, 'o') ? 2 : 0);
	int succ = (strchr(behind, 'i') ? 1 : 0) + (strchr(behind, 'o') ? 2 : 0);

	if (pred && succ)
		(void)ir_call(block->ir, "void @__dpa_window_fence(i32, i32, i32)",
			      text_of("i32 %d, i32 %d, i32 %d", strpbrk(before, "rw") ? 3 : 2, pred,
				      succ));
}

static bool translate_fence(struct riscv_block *block, const struct line *line)
{
	const char *order = "seq_cst";

	/* The last two are NVIDIA's. */
	if (!strcmp(line->name, "fence.tso"))
		order = "acq_rel";
	else if (strcmp(line->name, "fence") != 0 && strcmp(line->name, "fence.i") != 0 &&
		 strcmp(line->name, "fence.heap") != 0 && strcmp(line->name, "flush.l1") != 0)
		return false;
	if (line->count == 2 && is_set(line->args[0], "iorw") && is_set(line->args[1], "iorw") &&
	    (!strcmp(line->name, "fence") ||
	     (!strcmp(line->name, "fence.heap") && is_set(line->args[0], "rw") &&
	      is_set(line->args[1], "rw"))))
		order = fence_order(line->args[0], line->args[1]);
	else if (line->count)
		block_refuse(block, line, "a fence orders two sets of i, o, r and w");
	ir_write(block->ir, "fence %s", order);
	if (!strcmp(line->name, "flush.l1"))
		fence_of_windows(block, "iorw", "iorw");
	else if (line->count == 2)
		fence_of_windows(block, line->args[0], line->args[1]);
	return true;
}

/* Fixed-point numbers, and a hint that a line of the cache is no longer needed: NVIDIA's own. */
static bool translate_own(struct riscv_block *block, const struct line *line)
{
	static const struct {
		const char *name, *function;
	} all[] = {
		{"fxprcp", "i32 @__dpa_fxp_rcp(i32)"},
		{"fxppw2", "i32 @__dpa_fxp_pow2(i32)"},
		{"fxplog2", "i32 @__dpa_fxp_log2(i32)"},
	};
	struct ir *ir = block->ir;

	if (!strcmp(line->name, "cinva")) {
		if (line_has(block, line, 1))
			operand_get(block, line, 0);
		return true;
	}
	for (size_t i = 0; i < array_size(all); i++) {
		char *value;

		if (strcmp(line->name, all[i].name) != 0)
			continue;
		if (!line_has(block, line, 2))
			return true;
		value = value_sized(ir, operand_get(block, line, 1), 32);
		value = ir_call(ir, all[i].function, text_of("i32 %s", value));
		operand_set(block, line, 0, ir_value(ir, "sext i32 %s to i64", value));
		return true;
	}
	return false;
}

static const struct {
	const char *read, *name, *number, *function;
} counters[] = {
	{"rdcycle", "cycle", "3072", "i64 @__dpa_thread_cycles()"},
	{"rdtime", "time", "3073", "i64 @__dpa_thread_time()"},
	{"rdinstret", "instret", "3074", "i64 @__dpa_thread_inst_ret()"},
};

static bool translate_counter(struct riscv_block *block, const struct line *line)
{
	bool reads = !strcmp(line->name, "csrr"), with_zero = !strcmp(line->name, "csrrs");
	const char *which = line->count > 1 ? line->args[1] : "", *number = number_of(which);

	for (size_t i = 0; i < array_size(counters); i++) {
		bool named = !strcmp(which, counters[i].name) ||
			     (number && !strcmp(number, counters[i].number));

		if (strcmp(line->name, counters[i].read) != 0 &&
		    !(named &&
		      ((reads && line->count == 2) ||
		       (with_zero && line->count == 3 && register_number(line->args[2]) == 0))))
			continue;
		operand_set(block, line, 0, ir_call(block->ir, counters[i].function, ""));
		return true;
	}
	if (!reads && !with_zero)
		return false;
	block_refuse(block, line, "of the control registers there are cycle, time and instret");
	return true;
}

/* Encodings that programs write as numbers, for assemblers that do not know the names. */
static bool is_pause(const struct line *line)
{
	static const char *const fields[] = {"i 0x0f", "0", "x0", "x0", "0x010"};
	char *number = line->count == 1 ? number_of(line->args[0]) : NULL;

	if (!strcmp(line->name, "pause"))
		return !line->count;
	if (!strcmp(line->name, ".insn") && line->count == array_size(fields)) {
		for (size_t i = 0; i < array_size(fields); i++)
			if (strcasecmp(line->args[i], fields[i]) != 0)
				return false;
		return true;
	}
	return number && !strcmp(number, "16777231") &&
	       (!strcmp(line->name, ".word") || !strcmp(line->name, ".4byte") ||
		!strcmp(line->name, ".long") || !strcmp(line->name, ".insn"));
}

static bool translate_bare(struct riscv_block *block, const struct line *line)
{
	if (is_pause(line))
#if defined(__x86_64__)
		ir_write(block->ir, "call void asm sideeffect \"pause\", \"\"()");
#else
		ir_write(block->ir, "call void asm sideeffect \"yield\", \"\"()");
#endif
	else if (!strcmp(line->name, "ebreak"))
		ir_call(block->ir, "void @llvm.debugtrap()", "");
	else if (!strcmp(line->name, "unimp"))
		ir_call(block->ir, "void @llvm.trap()", "");
	else if (strcmp(line->name, "nop") != 0 && strcmp(line->name, ".option") != 0 &&
		 strcmp(line->name, ".align") != 0 && strcmp(line->name, ".p2align") != 0)
		return false;
	return true;
}

/* ---- the text ---- */

static char *piece_trimmed(const char *from, const char *to)
{
	while (from < to && isspace((unsigned char)*from))
		from++;
	while (to > from && isspace((unsigned char)to[-1]))
		to--;
	return ir_piece(from, to);
}

/* Splits an instruction into its name and operands; false: there is none. */
static bool line_read(struct line *line, const char *from, const char *to)
{
	const char *at;

	*line = (struct line){.text = piece_trimmed(from, to)};
	at = line->text + strcspn(line->text, " \t");
	line->name = ir_piece(line->text, at);
	at += strspn(at, " \t");
	while (*at && line->count < ARGS_MAX) {
		const char *end = at + strcspn(at, ",");

		line->args[line->count++] = piece_trimmed(at, end);
		at = *end ? end + 1 : end;
	}
	for (char *c = line->name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return *line->text;
}

/* Returns where the next statement begins, and in *end where this one ends without its comment. */
static const char *statement_end(const char *text, const char **end)
{
	while (*text && !strchr(";\n#", *text) && !text_begins(text, "//"))
		text++;
	*end = text;
	if (*text == '#' || *text == '/')
		text += strcspn(text, "\n");
	return *text ? text + 1 : text;
}

/* Goes past a label.  Returns NULL if the statement does not begin with one. */
static const char *label_end(const char *at, const char *end, char **name)
{
	const char *from;

	while (at < end && isspace((unsigned char)*at))
		at++;
	from = at;
	while (at < end && (isalnum((unsigned char)*at) || strchr("._$", *at)))
		at++;
	*name = ir_piece(from, at);
	while (at < end && isspace((unsigned char)*at))
		at++;
	return at < end && *at == ':' && **name ? at + 1 : NULL;
}

/* Returns the text with a number in the place of %=, and without comments of C. */
static char *text_plain(const char *text)
{
	static const char unique[] = "${:uid}";
	char *plain = text_of("%s", text), *out = plain;

	/* What comes in the place of either is not longer. */
	for (const char *at = text; *at;) {
		const char *end = text_begins(at, "/*") ? strstr(at + 2, "*/") : NULL;

		if (end) {
			*out++ = ' ';
			at = end + 2;
		} else if (text_begins(at, unique)) {
			out = stpcpy(out, "7919");
			at += strlen(unique);
		} else {
			*out++ = *at++;
		}
	}
	*out = 0;
	return plain;
}

bool riscv_has_code(const char *text)
{
	struct line line;
	const char *end;

	for (const char *at = text_plain(text), *next; *at; at = next) {
		next = statement_end(at, &end);
		if (line_read(&line, at, end))
			return true;
	}
	return false;
}

bool riscv_needs_function(const char *text)
{
	struct line line;
	const char *end;
	char *name;

	for (const char *at = text_plain(text), *next; *at; at = next) {
		next = statement_end(at, &end);
		if (label_end(at, end, &name) ||
		    (line_read(&line, at, end) &&
		     (text_begins(line.name, "lr.") || text_begins(line.name, "sc."))))
			return true;
	}
	return false;
}

static void labels_read(struct words *labels, const char *text)
{
	const char *end, *behind;
	char *name;

	for (const char *at = text, *next; *at; at = next) {
		next = statement_end(at, &end);
		while ((behind = label_end(at, end, &name))) {
			words_add(labels, name);
			at = behind;
		}
	}
}

/* Goes past a label, where a block begins. */
static const char *label_pass(struct riscv_block *block, const char *at, const char *end)
{
	const struct line line = {.text = piece_trimmed(at, end)};
	const struct words *labels = &block->labels;
	const char *behind;
	char *name;

	behind = label_end(at, end, &name);
	if (!behind)
		return NULL;
	for (size_t i = 0; i < block->passed; i++)
		if (!isdigit((unsigned char)name[0]) && !strcmp(labels->words[i], name))
			block_refuse(block, &line, "the label is there twice");
	ir_write(block->ir, "br label %%label%zu", block->passed);
	fprintf(block->ir->out, "label%zu:\n", block->passed);
	block->passed++;
	return behind;
}

static bool line_translate(struct riscv_block *block, const struct line *line)
{
	return translate_binary(block, line) || translate_bits(block, line) ||
	       translate_crc(block, line) || translate_own(block, line) ||
	       translate_access(block, line) || translate_atomic(block, line) ||
	       translate_reservation(block, line) || translate_jump(block, line) ||
	       translate_fence(block, line) || translate_counter(block, line) ||
	       translate_bare(block, line) || translate_unary(block, line);
}

void riscv_translate(struct riscv_block *block, const char *text)
{
	struct line line;
	const char *end, *behind;

	text = text_plain(text);
	labels_read(&block->labels, text);
	for (const char *at = text, *next; *at && !block->refused; at = next) {
		next = statement_end(at, &end);
		while ((behind = label_pass(block, at, end)))
			at = behind;
		if (line_read(&line, at, end) && !line_translate(block, &line))
			block_refuse(block, &line,
				     "no instruction of a DPA program that is translated");
	}
}

/* ---- functions ---- */

void riscv_function_begin(struct riscv_block *block)
{
	struct ir *ir = block->ir;

	block->is_function = true;
	for (int i = 1; i < RISCV_REGISTERS; i++)
		ir_write(ir, "%%r%d = alloca i64", i);
	for (size_t i = 0; i < block->count; i++) {
		struct riscv_operand *operand = &block->operands[i];

		operand->value = text_of("%%p%zu", i);
		if (operand->is_memory)
			continue;
		operand->value = text_of("%%o%zu", i);
		ir_write(ir, "%s = alloca i64", operand->value);
		ir_write(ir, "store i64 %%p%zu, %s %s", i, pointer_type(ir, 64), operand->value);
	}
}

void riscv_function_end(struct riscv_block *block)
{
	for (size_t i = 0; i < block->count; i++)
		if (!block->operands[i].is_memory)
			block->operands[i].value =
				text_of("%s", slot_load(block, block->operands[i].value));
}
