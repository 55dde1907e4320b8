// SPDX-License-Identifier: BSD-2-Clause
/*
 * Masked atomics of 4 and 8 bytes at a peer of another process, against a model that goes bit by
 * bit: what the memory becomes, and what the requester is answered.
 */
#include <endian.h>
#include <string.h>

#include "check.h"
#include "exposed_pair.h"

#define ROUNDS 120u
#define WORDS  4u /* of 8 bytes, which operations hit by chance */

struct masked {
	bool swap;
	uint32_t bytes, at; /* of the operand, and where in the target's data */
	uint64_t operand[4];
};

static uint64_t seed = 1;

static uint64_t draw(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed ^ seed >> 29) * 0x9e3779b97f4a7c15u >> 3;
}

/* Masks and boundaries with all bits, none, and some. */
static uint64_t draw_mask(void)
{
	uint64_t mask;

	switch (draw() % 4) {
	case 0:
		return UINT64_MAX;
	case 1:
		return 0;
	case 2:
		mask = draw();
		mask &= draw();
		return mask & draw();
	default:
		return draw();
	}
}

static bool bit(uint64_t v, unsigned n)
{
	return v >> n & 1;
}

static uint64_t model(const struct masked *m, uint64_t word)
{
	const uint64_t *o = m->operand;
	bool carry = false, equal = true;
	uint64_t out = 0;

	for (unsigned n = 0; n < m->bytes * 8; n++)
		equal &= !bit(o[3], n) || bit(word, n) == bit(o[1], n);
	for (unsigned n = 0; n < m->bytes * 8; n++) {
		unsigned sum = bit(word, n) + bit(o[0], n) + carry;

		if (m->swap)
			sum = equal && bit(o[2], n) ? bit(o[0], n) : bit(word, n);
		out |= (uint64_t)(sum & 1) << n;
		carry = !m->swap && sum > 1 && !bit(o[1], n);
	}
	return out;
}

static void post(struct exposed_pair *p, const struct masked *m, uint32_t answer_bytes)
{
	uint32_t opmod = m->bytes == 4 ? WQE_OPMOD_ATOMIC_4 : WQE_OPMOD_ATOMIC_8;
	unsigned n = m->swap ? 4 : 2;
	struct device_wqe w;

	device_wqe_begin(&p->from, &w, m->swap ? WQE_OP_ATOMIC_MASKED_CS : WQE_OP_ATOMIC_MASKED_FA,
			 WQE_CTRL_CE_ALWAYS, 0);
	w.bytes[0] = (uint8_t)opmod;
	device_wqe_raddr(&w, (uintptr_t)p->to->data + m->at, p->target_key);
	for (unsigned i = 0; i < n; i++) {
		be32 word = be32_of((uint32_t)m->operand[i]);
		be64 wide = be64_of(m->operand[i]);

		memcpy(w.bytes + w.at + i * m->bytes, m->bytes == 4 ? (void *)&word : (void *)&wide,
		       m->bytes);
	}
	w.at += (uint32_t)align_up(n * (uint64_t)m->bytes, WQE_UNIT);
	device_wqe_data(&w, p->source, answer_bytes, p->source_key);
	device_wqe_end(&w);
	exposed_pair_progress(p);
}

static struct masked draw_request(void)
{
	struct masked m = {.swap = draw() & 1, .bytes = draw() & 1 ? 4 : 8};

	m.at = (uint32_t)(draw() % (WORDS * 8) / m.bytes * m.bytes);
	m.operand[0] = draw();
	m.operand[1] = m.swap ? draw() : draw_mask();
	m.operand[2] = draw_mask();
	m.operand[3] = draw_mask();
	if (m.bytes == 4)
		for (unsigned i = 0; i < 4; i++)
			m.operand[i] &= UINT32_MAX;
	return m;
}

static void test_model(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	uint8_t want[WORDS * 8 + 8];

	for (uint32_t i = 0; i < sizeof(want); i++)
		want[i] = p->to->data[i] = (uint8_t)draw();
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct masked m = draw_request();
		uint64_t word = 0, after, answer = 0;

		memcpy(&word, want + m.at, m.bytes);
		if (m.swap && draw() & 1)
			m.operand[1] = word; /* so that it swaps */
		after = model(&m, word);
		memcpy(want + m.at, &after, m.bytes);
		memset(p->source, 0xee, 16);
		post(p, &m, 8);
		exposed_pair_sent(p, CQE_OP_REQ);
		CHECK_SAY(!memcmp(p->to->data, want, sizeof(want)), "%s of %u bytes, round %u",
			  m.swap ? "swap" : "add", m.bytes, i);
		memcpy(&answer, p->source, m.bytes);
		CHECK((m.bytes == 4 ? be32toh((uint32_t)answer) : answer) == word);
		for (uint32_t b = m.bytes; b < 16; b++)
			CHECK(p->source[b] == 0xee);
	}
	exposed_pair_down(p);
}

/* Alignment of its own size, and other sizes. */
static void test_refused(void)
{
	for (unsigned what = 0; what < 4; what++) {
		struct exposed_pair *p = exposed_pair_up(KEY_PACKETS);
		struct masked m = {.bytes = what == 1 ? 8 : 4, .at = what == 0 ? 2 : 4};

		p->to->data[4] = 9;
		m.operand[0] = 1;
		if (what == 2) /* fits into the last 4 bytes */
			m.at = EXPOSED_PAIR_BYTES - 4;
		if (what == 3) /* and not behind them */
			m.at = EXPOSED_PAIR_BYTES;
		post(p, &m, 4);
		exposed_pair_sent(p, what == 2 ? CQE_OP_REQ : CQE_OP_REQ_ERR);
		CHECK(p->to->data[4] == 9);
		exposed_pair_down(p);
	}
}

int main(void)
{
	test_model(KEY_PACKETS);
	test_model(KEY_MAPPED);
	test_refused();
	return 0;
}
