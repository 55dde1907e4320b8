// SPDX-License-Identifier: BSD-2-Clause
/*
 * Guards: published check values and those that devices are known to give; every kernel that this
 * processor can run against bits, for every length, alignment and cut; and no byte is touched that
 * is not data.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapter/sig/checksum.h"
#include "adapter/sig/crc64_xp10.h"
#include "check.h"
#include "sig_model.h"

enum { LONGEST = 1400 };

/* Data: text, or so many bytes of one value with another one in front, or counting up. */
struct data {
	const char *text;
	uint32_t n;
	int fill;
	int first;
};

enum { COUNTING = -1, SAME = -1 };

static const struct data nine = {.text = "123456789", .n = 9};
static const struct data zeros = {.n = 512, .fill = 0x00, .first = SAME};
static const struct data ones = {.n = 512, .fill = 0x01, .first = SAME};
static const struct data letters = {.n = 512, .fill = 'c', .first = SAME};
static const struct data a5 = {.n = 512, .fill = 0xa5, .first = SAME};
static const struct data damaged = {.n = 512, .fill = 0xa5, .first = 0x5a};
static const struct data counting = {.n = 512, .fill = COUNTING, .first = SAME};
static const struct data long_zeros = {.n = 4096, .fill = 0x00, .first = SAME};

static const struct vector {
	enum sig_type type;
	const struct data *data;
	uint64_t zero; /* seed zero, as a number */
	uint64_t one;  /* seed ones */
} vectors[] = {
	{SIG_T10DIF_CRC, &nine, 0xd0db, 0x8e3c},
	{SIG_T10DIF_CRC, &zeros, 0x0000, 0x72bb},
	{SIG_T10DIF_CRC, &ones, 0x0688, 0x7433},
	{SIG_T10DIF_CRC, &letters, 0xf32f, 0x8194},
	{SIG_T10DIF_CRC, &a5, 0x9ec6, 0xec7d},
	{SIG_T10DIF_CRC, &damaged, 0xebad, 0x9916},
	{SIG_T10DIF_CRC, &counting, 0x4f10, 0x3dab},
	{SIG_T10DIF_CRC, &long_zeros, 0x0000, 0xe7e2},
	{SIG_T10DIF_CSUM, &zeros, 0xffff, 0x0000},
	{SIG_T10DIF_CSUM, &ones, 0xfefe, 0xfefe},
	{SIG_T10DIF_CSUM, &letters, 0x9c9c, 0x9c9c},
	{SIG_T10DIF_CSUM, &a5, 0x5a5a, 0x5a5a},
	{SIG_T10DIF_CSUM, &damaged, 0xa55a, 0xa55a},
	{SIG_T10DIF_CSUM, &counting, 0x7f80, 0x7f80},
	{SIG_T10DIF_CSUM, &long_zeros, 0xffff, 0x0000},
	{SIG_CRC32, &nine, 0x765e7680, 0xfc891918},
	{SIG_CRC32, &zeros, 0xffffffff, 0x1eae554d},
	{SIG_CRC32, &ones, 0x15d286f7, 0xf4832c45},
	{SIG_CRC32, &letters, 0x8ddcecb5, 0x6c8d4607},
	{SIG_CRC32, &a5, 0x699aca21, 0x88cb6093},
	{SIG_CRC32, &damaged, 0xe33cb35a, 0x026d19e8},
	{SIG_CRC32, &counting, 0xce232f94, 0x2f728526},
	{SIG_CRC32, &long_zeros, 0xffffffff, 0x880038e3},
	{SIG_CRC32C, &nine, 0xa71c05df, 0xe3069283},
	{SIG_CRC32C, &zeros, 0xffffffff, 0x30fcedc0},
	{SIG_CRC32C, &ones, 0x3038a38a, 0xff3bb1b5},
	{SIG_CRC32C, &letters, 0x3a537a3b, 0xf5506804},
	{SIG_CRC32C, &a5, 0xb4e60742, 0x7be5157d},
	{SIG_CRC32C, &damaged, 0x189417e0, 0xd79705df},
	{SIG_CRC32C, &counting, 0x6113fc65, 0xae10ee5a},
	{SIG_CRC32C, &long_zeros, 0xffffffff, 0x98f94189},
	{SIG_CRC64_XP10, &nine, 0x87ff3f9b2b57c87b, 0xae8b14860a799888},
	{SIG_CRC64_XP10, &zeros, 0xffffffffffffffff, 0x1de60e2868a782e9},
	{SIG_CRC64_XP10, &ones, 0xdd45b64f67c1b8d2, 0x3f5c4798f099c5c4},
	{SIG_CRC64_XP10, &letters, 0x209ef29fa1915df7, 0xc287034836c920e1},
	{SIG_CRC64_XP10, &a5, 0xaa85ce0c45db8a8c, 0x489c3fdbd283f79a},
	{SIG_CRC64_XP10, &damaged, 0x2b8975cb2f9aef3a, 0xc990841cb8c2922c},
	{SIG_CRC64_XP10, &counting, 0x87ed77e59e126611, 0x65f48632094a1b07},
	{SIG_CRC64_XP10, &long_zeros, 0xffffffffffffffff, 0x6482d367eb22b64e},
};

static void fill_data(uint8_t *out, const struct data *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		out[i] = (uint8_t)(d->text ? d->text[i] : d->fill == COUNTING ? (int)i : d->fill);
	if (!d->text && d->first != SAME)
		out[0] = (uint8_t)d->first;
}

/* From the order in the stream to the number. */
static uint64_t guard_number(enum sig_type t, uint64_t word)
{
	switch (t) {
	case SIG_CRC32:
		return word >> 32;
	case SIG_CRC32C:
		return __builtin_bswap32((uint32_t)(word >> 32));
	case SIG_CRC64_XP10:
		return __builtin_bswap64(word);
	default:
		return word >> 48;
	}
}

static void known_values(void)
{
	uint8_t data[4096];
	uint8_t copy[4096];

	for (size_t i = 0; i < array_size(vectors); i++) {
		const struct vector *v = &vectors[i];
		const struct sig_guard *g;
		size_t n = v->data->n;

		fill_data(data, v->data);
		for (unsigned k = 0; (g = sig_guard_variant(v->type, k)); k++) {
			CHECK(guard_number(v->type, g->seal(g->update(g->start[0], data, n))) ==
			      v->zero);
			CHECK(guard_number(v->type, g->seal(g->update(g->start[1], data, n))) ==
			      v->one);
			memset(copy, 0x77, sizeof(copy));
			CHECK(guard_number(v->type, g->seal(g->copy(g->start[1], copy, data, n))) ==
			      v->one);
			CHECK(!memcmp(copy, data, n) && (n == sizeof(copy) || copy[n] == 0x77));
		}
		CHECK(sig_guard(v->type) == sig_guard_variant(v->type, 0) && sig_guard(v->type));
	}
}

static uint64_t model_word(enum sig_type t, bool ones_seed, const uint8_t *data, size_t n)
{
	struct sig_domain d = {.type = t, .block = (uint32_t)n, .seed_ones = ones_seed};
	uint8_t field[8];
	uint64_t word = 0;

	model_signature(&d, 0, data, n, field);
	for (int i = 0; i < 8; i++)
		word = word << 8 | field[i];
	return word;
}

/* Data that ends where memory ends, and a destination that does: a touch beyond is a crash. */
static void every_length(struct rng *r)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *memory =
		mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *from = memory + page;
	uint8_t *to = memory + 3 * page;

	CHECK(memory != MAP_FAILED && page >= LONGEST);
	CHECK(!mprotect(from, page, PROT_NONE) && !mprotect(to, page, PROT_NONE));
	for (size_t i = 0; i < page; i++)
		memory[i] = (uint8_t)rng_next(r);
	for (enum sig_type t = SIG_T10DIF_CRC; t < SIG_TYPES; t++)
		for (size_t n = 0; n <= LONGEST; n++) {
			const uint8_t *data = from - n;
			bool seed = rng_below(r, 2);
			uint64_t want = model_word(t, seed, data, n);
			const struct sig_guard *g;

			for (unsigned k = 0; (g = sig_guard_variant(t, k)); k++) {
				size_t first = n ? rng_below(r, n + 1) : 0;
				uint64_t reg = g->update(g->start[seed], data, first);

				reg = g->update(reg, data + first, n - first);
				CHECK(g->seal(reg) == want);
				reg = g->copy(g->start[seed], to - n, data, first);
				reg = g->copy(reg, to - n + first, data + first, n - first);
				CHECK(g->seal(reg) == want && !memcmp(to - n, data, n));
				to[-1 - (ptrdiff_t)n] = 0;
			}
		}
	munmap(memory, 4 * page);
}

static void every_cut(struct rng *r)
{
	uint8_t data[200];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)rng_next(r);
	for (enum sig_type t = SIG_T10DIF_CRC; t < SIG_TYPES; t++) {
		const struct sig_guard *g;

		for (unsigned k = 0; (g = sig_guard_variant(t, k)); k++) {
			uint64_t want = g->seal(g->update(g->start[1], data, sizeof(data)));

			for (size_t a = 0; a <= sizeof(data); a++)
				for (size_t b = a; b <= sizeof(data); b++) {
					uint64_t reg = g->update(g->start[1], data, a);

					reg = g->update(reg, data + a, b - a);
					reg = g->update(reg, data + b, sizeof(data) - b);
					CHECK(g->seal(reg) == want);
				}
		}
	}
}

/* Longer than a slice, and than all unrolled loops. */
static void long_data(struct rng *r)
{
	size_t n = 3 * SIG_SLICE + 77;
	uint8_t *data = malloc(n);
	uint8_t *copy = malloc(n);

	CHECK(data && copy);
	for (size_t i = 0; i < n; i++)
		data[i] = (uint8_t)rng_next(r);
	for (enum sig_type t = SIG_T10DIF_CRC; t < SIG_TYPES; t++) {
		uint64_t want = model_word(t, true, data, n);
		const struct sig_guard *g;

		for (unsigned k = 0; (g = sig_guard_variant(t, k)); k++) {
			memset(copy, 0, n);
			CHECK(g->seal(g->update(g->start[1], data, n)) == want);
			CHECK(g->seal(g->copy(g->start[1], copy, data, n)) == want);
			CHECK(!memcmp(copy, data, n));
		}
	}
	free(data);
	free(copy);
}

/* The table is what its comment says. */
static void test_table(void)
{
	for (unsigned i = 0; i < 16; i++)
		for (uint64_t nibble = 0; nibble < 16; nibble++) {
			uint64_t reg = nibble << 4 * i;

			for (int bit = 0; bit < 64; bit++)
				reg = reg >> 1 ^ (reg & 1 ? CRC64_XP10_REFLECTED : 0);
			CHECK(crc64_xp10_nibbles[i][nibble] == reg);
		}
}

/* One's-complement zero has two forms: a sum that is not zero stays that. */
static void checksum_zero(void)
{
	uint8_t all_ones[64];
	uint8_t zero[64] = {0};

	memset(all_ones, 0xff, sizeof(all_ones));
	CHECK(checksum_seal(checksum_update(0, all_ones, sizeof(all_ones))) == 0);
	CHECK(checksum_seal(checksum_update(0, zero, sizeof(zero))) == 0xffff);
	CHECK(checksum_seal(checksum_update(0xffff, zero, sizeof(zero))) == 0);
}

int main(void)
{
	struct rng r = {0x67756172};

	known_values();
	test_table();
	checksum_zero();
	every_cut(&r);
	every_length(&r);
	long_data(&r);
	return 0;
}
