// SPDX-License-Identifier: BSD-2-Clause
/* Compressed completions: a reader of each layout finds what was completed, in order, whatever came
 * between, around the ring many times. */
#include <stdlib.h>
#include <string.h>

#include "adapter/queue/cq.h"
#include "adapter_device.h"
#include "check.h"

#define ENTRIES 32u

/* A queue with its reader, who owns the places of what is compressed, as programs do. */
struct reader {
	struct test_device device;
	struct cq *cq;
	struct cqe64 ring[ENTRIES];
	be32 dbrec[2];
	bool enhanced;
	uint8_t format;
	uint32_t ci;
	uint32_t left, taken; /* of a session */
	uint16_t counter;
	struct cqe64 title;
	struct cqe_mini mini[CQE_MINIS];
	uint32_t sessions; /* that there have been */
};

static void reader_up(struct reader *r, uint8_t compression, uint8_t format, uint32_t entries)
{
	struct cq_attr attr = {
		.buf = r->ring,
		.entries = entries,
		.cqe_bytes = CQE_BYTES,
		.dbrec = r->dbrec,
		.compression = compression,
		.mini_format = format,
	};

	memset(r, 0, sizeof(*r));
	for (unsigned i = 0; i < ENTRIES; i++) {
		r->ring[i].op_own = CQE_OP_INVALID << 4 | 1;
		r->ring[i].signature = 0xff;
	}
	r->enhanced = compression == CQ_COMPRESSED_ENHANCED;
	r->format = format;
	device_up(&r->device);
	CHECK(!cq_create(r->device.adapter[0], &attr, &r->cq));
}

static void reader_down(struct reader *r)
{
	CHECK(!cq_destroy(r->cq));
	device_down(&r->device);
}

/* As at the end of the device's calls. */
static void settle(struct reader *r)
{
	adapter_progress(r->device.adapter[0], NULL);
}

/* A completion of a receive, or of a request, with everything that is told of it. */
static struct cqe64 completion(bool request, uint16_t counter, uint32_t bytes, uint32_t peer)
{
	return (struct cqe64){
		.rss_hash_result = be32_of(bytes * 3),
		.rss_hash_type = 4,
		.checksum = be16_of((uint16_t)(bytes * 5)),
		.l4_hdr_type_etc = request ? 0 : 0x20,
		.flags_rqpn = be32_of(peer),
		.srqn_uidx = be32_of(77),
		.byte_cnt = be32_of(bytes),
		.sop_drop_qpn = be32_of((request ? (0x08u + counter % 3) << 24 : 0) | 0x1234),
		.wqe_counter = be16_of(counter),
		.op_own = (request ? CQE_OP_REQ : CQE_OP_RESP_SEND) << 4,
	};
}

static void push(struct reader *r, const struct cqe64 *cqe)
{
	struct cqe64 copy = *cqe;

	cq_push(r->cq, &copy, false);
}

static struct cqe64 *place(struct reader *r, uint32_t index)
{
	return &r->ring[index % ENTRIES];
}

/* Is there something new at the reader's place? */
static bool is_new(struct reader *r)
{
	const struct cqe64 *cqe = place(r, r->ci);

	if (r->enhanced)
		return cqe->signature == (uint8_t)(r->ci / ENTRIES);
	return cqe->op_own >> 4 != CQE_OP_INVALID && (cqe->op_own & 1) == (r->ci / ENTRIES & 1);
}

/* The next of a session, made of its title. */
static void expand(struct reader *r, struct cqe64 *out)
{
	const struct cqe_mini *m;

	if (!r->enhanced && r->taken && r->taken % CQE_MINIS == 0)
		memcpy(r->mini, place(r, r->ci), sizeof(r->mini));
	m = &r->mini[r->taken % CQE_MINIS];
	*out = r->title;
	out->byte_cnt = m->byte_cnt;
	if (out->op_own >> 4 == CQE_OP_REQ) {
		out->wqe_counter = m->wqe_counter;
		out->sop_drop_qpn = be32_of((be32_get(out->sop_drop_qpn) & 0xffffff) |
					    (uint32_t)m->opcode << 24);
	} else {
		out->wqe_counter = be16_of(r->counter++);
		if (r->format == CQE_MINI_HASH)
			out->rss_hash_result = m->hash;
		else if (r->format != CQE_MINI_L3L4)
			out->checksum = m->checksum;
		if (r->format >= CQE_MINI_CSUM_STRIDX)
			CHECK(be16_get(m->stride_index) == be16_get(out->wqe_counter));
	}
	/* nobody else marks the places of what stands in an array */
	place(r, r->ci)->op_own = (uint8_t)(CQE_OP_INVALID << 4 | (r->ci / ENTRIES & 1));
	place(r, r->ci)->signature = (uint8_t)(r->ci / ENTRIES);
	r->taken++;
	r->left--;
}

static bool next(struct reader *r, struct cqe64 *out)
{
	const struct cqe64 *cqe = place(r, r->ci);

	if (!r->left) {
		if (!is_new(r))
			return false;
		if ((cqe->op_own & CQE_FORMAT_COMPRESSED) != CQE_FORMAT_COMPRESSED) {
			r->title = *out = *cqe;
			r->counter = (uint16_t)(be16_get(cqe->wqe_counter) + 1);
			r->dbrec[DBREC_CQ_CI] = be32_of(++r->ci & 0xffffff);
			return true;
		}
		r->sessions++;
		r->taken = 0;
		if (r->enhanced) {
			r->left = (cqe->op_own >> 4) + 1u;
			/* by which UCX knows the others of the group */
			CHECK(cqe->signature == r->title.signature);
			memcpy(r->mini, cqe, sizeof(r->mini));
		} else {
			r->title = *cqe;
			r->counter = be16_get(cqe->wqe_counter);
			r->left = be32_get(cqe->byte_cnt);
			memcpy(r->mini, place(r, r->ci + 1), sizeof(r->mini));
		}
	}
	expand(r, out);
	r->dbrec[DBREC_CQ_CI] = be32_of(++r->ci & 0xffffff);
	return true;
}

/* What the format keeps. */
static void expect(struct reader *r, const struct cqe64 *want)
{
	struct cqe64 got;

	CHECK(next(r, &got));
	CHECK(got.op_own >> 4 == want->op_own >> 4);
	CHECK(be32_get(got.byte_cnt) == be32_get(want->byte_cnt));
	CHECK(be16_get(got.wqe_counter) == be16_get(want->wqe_counter));
	CHECK(be32_get(got.sop_drop_qpn) == be32_get(want->sop_drop_qpn));
	CHECK(be32_get(got.flags_rqpn) == be32_get(want->flags_rqpn));
	CHECK(be32_get(got.srqn_uidx) == be32_get(want->srqn_uidx));
	CHECK(got.l4_hdr_type_etc == want->l4_hdr_type_etc);
	if (want->op_own >> 4 == CQE_OP_REQ || got.op_own >> 4 == CQE_OP_REQ)
		return;
	if (r->format == CQE_MINI_HASH)
		CHECK(be32_get(got.rss_hash_result) == be32_get(want->rss_hash_result));
	if (r->format == CQE_MINI_CSUM || r->format == CQE_MINI_CSUM_STRIDX)
		CHECK(be16_get(got.checksum) == be16_get(want->checksum));
}

/* Batches of all sizes, of one peer and of others in between. */
static void test_batches(uint8_t compression, uint8_t format)
{
	static struct reader r;
	struct cqe64 sent[ENTRIES];
	uint16_t counter = 0xfff0;

	reader_up(&r, compression, format, ENTRIES);
	srand(7);
	for (unsigned round = 0; round < 2000; round++) {
		unsigned n = 1 + (unsigned)rand() % ENTRIES, other = (unsigned)rand() % 40;
		bool request = rand() % 2;

		for (unsigned i = 0; i < n; i++) {
			sent[i] =
				completion(request, counter++, round * 64 + i, i == other ? 9 : 5);
			/* a receive out of order */
			if (other == 30 + i % 10)
				counter += 3;
			push(&r, &sent[i]);
		}
		settle(&r);
		for (unsigned i = 0; i < n; i++)
			expect(&r, &sent[i]);
		CHECK(!is_new(&r) && !r.left);
	}
	CHECK(r.sessions > 1000);
	reader_down(&r);
}

/* One at a time is written as it is. */
static void test_single(uint8_t compression)
{
	static struct reader r;

	reader_up(&r, compression, CQE_MINI_HASH, ENTRIES);
	for (uint16_t i = 0; i < 100; i++) {
		struct cqe64 cqe = completion(false, i, i, 5);

		push(&r, &cqe);
		settle(&r);
		expect(&r, &cqe);
	}
	CHECK(!r.sessions);
	reader_down(&r);
}

/* An error comes behind what was before it, and is never compressed. */
static void test_error(uint8_t compression)
{
	struct cqe64 error = {.op_own = CQE_OP_REQ_ERR << 4}, cqe, got;
	static struct reader r;

	reader_up(&r, compression, CQE_MINI_HASH, ENTRIES);
	for (uint16_t i = 0; i < 6; i++) {
		cqe = completion(true, i, i, 5);
		push(&r, i == 4 ? &error : &cqe);
	}
	settle(&r);
	for (uint16_t i = 0; i < 4; i++) {
		cqe = completion(true, i, i, 5);
		expect(&r, &cqe);
	}
	CHECK(next(&r, &got) && got.op_own >> 4 == CQE_OP_REQ_ERR);
	cqe = completion(true, 5, 5, 5);
	expect(&r, &cqe);
	reader_down(&r);
}

/* No more than there is room for, and all of that. */
static void test_overrun(uint8_t compression)
{
	struct cq_counters counters;
	static struct reader r;
	struct cqe64 cqe;

	reader_up(&r, compression, CQE_MINI_HASH, ENTRIES);
	for (uint16_t i = 0; i < ENTRIES + 1; i++) {
		cqe = completion(false, i, i, 5);
		push(&r, &cqe);
	}
	settle(&r);
	cq_query(r.cq, &counters);
	CHECK(counters.overrun && counters.producer == ENTRIES);
	for (uint16_t i = 0; i < ENTRIES; i++) {
		cqe = completion(false, i, i, 5);
		expect(&r, &cqe);
	}
	CHECK(!is_new(&r));
	reader_down(&r);
}

int main(void)
{
	static const uint8_t formats[] = {CQE_MINI_HASH, CQE_MINI_CSUM, CQE_MINI_CSUM_STRIDX,
					  CQE_MINI_L3L4};
	static const uint8_t layouts[] = {CQ_COMPRESSED_BASIC, CQ_COMPRESSED_ENHANCED};

	for (unsigned l = 0; l < array_size(layouts); l++) {
		uint8_t c = layouts[l];

		for (unsigned i = 0; i < array_size(formats); i++)
			test_batches(c, formats[i]);
		test_single(c);
		test_error(c);
		test_overrun(c);
	}
	return 0;
}
