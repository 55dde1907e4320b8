// SPDX-License-Identifier: BSD-2-Clause
/*
 * Translation lists against a slow reading of them, byte by byte.
 */
#include <string.h>

#include "adapter/memory/klm_list.h"
#include "check.h"

#define ROOM 64u

static struct umr_klm klm_entry(uint32_t bytes, uint32_t key, uint64_t va)
{
	return (struct umr_klm){be32_of(bytes), be32_of(key), be64_of(va)};
}

static struct umr_klm klm_header(uint32_t bytes, uint32_t repeat, uint16_t entries)
{
	const struct umr_stride_header h = {.byte_count = be32_of(bytes),
					    .op = be32_of(UMR_STRIDED),
					    .repeat_count = be32_of(repeat),
					    .entries = be16_of(entries)};
	struct umr_klm k;

	memcpy(&k, &h, sizeof(k));
	return k;
}

static struct umr_klm klm_stride(uint16_t step, uint16_t bytes, uint32_t key, uint64_t va)
{
	const struct umr_stride s = {be16_of(step), be16_of(bytes), be32_of(key), be64_of(va)};
	struct umr_klm k;

	memcpy(&k, &s, sizeof(k));
	return k;
}

/* Key and address of one byte, by walking from the first. */
static struct klm_piece slow_lookup(const struct umr_klm *e, uint32_t n, uint64_t off)
{
	if (n && be32_get(e->mkey) == UMR_STRIDED) {
		struct umr_stride_header h;
		uint64_t cycle, round;

		memcpy(&h, e, sizeof(h));
		cycle = be32_get(h.byte_count);
		round = off / cycle;
		off %= cycle;
		for (uint32_t i = 1;; i++) {
			struct umr_stride s;

			memcpy(&s, &e[i], sizeof(s));
			if (off < be16_get(s.byte_count))
				return (struct klm_piece){
					be32_get(s.mkey),
					be64_get(s.va) + round * be16_get(s.stride) + off, 1};
			off -= be16_get(s.byte_count);
		}
	}
	for (;; e++) {
		if (off < be32_get(e->byte_count))
			return (struct klm_piece){be32_get(e->mkey), be64_get(e->va) + off, 1};
		off -= be32_get(e->byte_count);
	}
}

static void compare_lookup(const struct klm_list *l, const struct umr_klm *e, uint32_t n,
			   uint64_t off, uint64_t len, uint32_t max)
{
	struct klm_piece piece[ROOM];

	while (len) {
		uint32_t got = klm_list_pieces(l, off, len, piece, max);

		CHECK(got && got <= max);
		for (uint32_t i = 0; i < got; i++) {
			CHECK(piece[i].len && piece[i].len <= len);
			for (uint64_t b = 0; b < piece[i].len; b++) {
				struct klm_piece p = slow_lookup(e, n, off + b);

				CHECK(p.key == piece[i].key && p.va == piece[i].va + b);
			}
			off += piece[i].len;
			len -= piece[i].len;
		}
	}
}

static void random_lists(void)
{
	struct rng rng = {17};

	for (unsigned round = 0; round < 3000; round++) {
		uint32_t n = (uint32_t)(1 + rng_below(&rng, 20));
		bool strided = rng_next(&rng) & 1;
		struct umr_klm e[ROOM];
		struct klm_list l;
		uint64_t off;

		CHECK(!klm_list_init(&l, MKEY_LIST_KLM, 0, ROOM));
		if (strided) {
			uint32_t sum = 0;

			for (uint32_t i = 1; i <= n; i++) {
				uint16_t bytes =
					(uint16_t)(rng_below(&rng, 3) ? rng_below(&rng, 30) : 0);

				e[i] = klm_stride((uint16_t)rng_below(&rng, 100), bytes,
						  (uint32_t)rng_next(&rng), rng_next(&rng));
				sum += bytes;
			}
			e[0] = klm_header(sum, (uint32_t)rng_below(&rng, 50), (uint16_t)n);
			n++;
		} else {
			for (uint32_t i = 0; i < n; i++)
				e[i] = klm_entry((uint32_t)rng_below(&rng, 40),
						 (uint32_t)(rng_next(&rng) | 1), rng_next(&rng));
		}
		klm_list_put(&l, 0, e, n);
		CHECK(!klm_list_settle(&l));
		if (!strided && n > 4) {
			/* a part of it anew, once more and longer than before */
			uint32_t at = (uint32_t)rng_below(&rng, n), more = 6;

			for (uint32_t i = at; i < at + more; i++)
				e[i] = klm_entry((uint32_t)rng_below(&rng, 40),
						 (uint32_t)(rng_next(&rng) | 1), rng_next(&rng));
			if (at + more > n)
				n = at + more;
			klm_list_put(&l, at, e + at, more);
			CHECK(!klm_list_settle(&l));
		}
		CHECK(l.bytes < 10000000);
		off = rng_below(&rng, l.bytes + 1);
		compare_lookup(&l, e, n, off, rng_below(&rng, l.bytes - off + 1),
			       (uint32_t)(1 + rng_below(&rng, 16)));
		klm_list_release(&l);
	}
}

static void fixed_size(void)
{
	struct umr_klm e[3] = {klm_entry(0, 1, 0x1000), klm_entry(0, 2, 0x8000),
			       klm_entry(0, 3, 0)};
	struct klm_piece p[4];
	struct klm_list l;

	CHECK(!klm_list_init(&l, MKEY_LIST_KSM, 12, 3));
	klm_list_put(&l, 0, e, 3);
	CHECK(!klm_list_settle(&l) && l.bytes == 3 * 4096);
	CHECK(klm_list_pieces(&l, 4000, 4200, p, 4) == 3);
	CHECK(p[0].key == 1 && p[0].va == 0x1000 + 4000 && p[0].len == 96);
	CHECK(p[1].key == 2 && p[1].va == 0x8000 && p[1].len == 4096);
	CHECK(p[2].key == 3 && p[2].va == 0 && p[2].len == 8);
	klm_list_release(&l);
}

/* As many cycles as there can be: a place is computed, not looked for. */
static void test_huge(void)
{
	struct umr_klm e[4] = {klm_header(3, UINT32_MAX, 2), klm_stride(UINT16_MAX, 1, 5, 100),
			       klm_stride(0, 2, 6, 7)};
	struct klm_piece p[2];
	struct klm_list l;

	CHECK(!klm_list_init(&l, MKEY_LIST_KLM, 0, 4));
	klm_list_clear(&l);
	klm_list_put(&l, 0, e, 4);
	CHECK(!klm_list_settle(&l) && l.bytes == 3ull * UINT32_MAX);
	CHECK(klm_list_pieces(&l, l.bytes - 3, 3, p, 2) == 2);
	CHECK(p[0].key == 5 && p[0].va == 100 + (UINT32_MAX - 1ull) * UINT16_MAX && p[0].len == 1);
	CHECK(p[1].key == 6 && p[1].va == 7 && p[1].len == 2);

	/* none of them, or cycles of nothing */
	e[0] = klm_header(3, 0, 2);
	klm_list_clear(&l);
	klm_list_put(&l, 0, e, 4);
	CHECK(!klm_list_settle(&l) && !l.bytes && !klm_list_pieces(&l, 0, 0, p, 2));
	e[0] = klm_header(0, 5, 1);
	e[1] = klm_stride(1, 0, 5, 100);
	klm_list_clear(&l);
	klm_list_put(&l, 0, e, 4);
	CHECK(!klm_list_settle(&l) && !l.bytes && !klm_list_pieces(&l, 0, 0, p, 2));
	klm_list_release(&l);
}

static void test_senseless(void)
{
	struct umr_klm e[4] = {klm_header(3, 1, 4), klm_stride(1, 1, 5, 100),
			       klm_stride(1, 2, 6, 7)};
	struct klm_list l;

	CHECK(!klm_list_init(&l, MKEY_LIST_KLM, 0, 4));
	klm_list_clear(&l);
	klm_list_put(&l, 0, e, 4);
	CHECK(klm_list_settle(&l) && !l.bytes); /* more entries than there are */
	e[0] = klm_header(3, 1, 0);
	klm_list_clear(&l);
	klm_list_put(&l, 0, e, 4);
	CHECK(klm_list_settle(&l) && !l.bytes);
	e[0] = klm_header(4, 1, 2); /* not the sum */
	klm_list_clear(&l);
	klm_list_put(&l, 0, e, 4);
	CHECK(klm_list_settle(&l) && !l.bytes);
	e[0] = klm_header(3, 1, 2);
	klm_list_clear(&l);
	klm_list_put(&l, 0, e, 4);
	CHECK(!klm_list_settle(&l) && l.bytes == 3);
	/* and back to the other form by its first entry alone */
	e[0] = klm_entry(10, 5, 0);
	klm_list_clear(&l);
	klm_list_put(&l, 0, e, 1);
	CHECK(!klm_list_settle(&l) && l.bytes == 10);
	klm_list_release(&l);
}

int main(void)
{
	random_lists();
	fixed_size();
	test_huge();
	test_senseless();
	return 0;
}
