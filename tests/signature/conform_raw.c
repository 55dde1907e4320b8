// SPDX-License-Identifier: BSD-2-Clause
/*
 * Work requests that no library makes: a key's configuration as libmlx5 wrote it into the ring,
 * with one thing spoilt.  The completion has an error, the queue pair is in its error state, and
 * not a byte of memory has changed.
 */
#include <endian.h>
#include <string.h>

#include "conform.h"

/* Where things stand in the request that raw_open makes. */
enum {
	AT_OPCODE = 3,
	AT_KEY = 12,
	AT_FLAGS = 16,
	AT_ENTRIES = 20,
	AT_BSF_UNITS = 22,
	AT_MASK = 24,
	AT_CONTEXT = 64,
	AT_LIST = 128,
	AT_BSF = 192,
	UMR_BYTES = 256,
	PSV_BYTES = 32,
	BSF_BLOCK_WIRE = 2,
	BSF_BLOCK_MEMORY = 3,
	BSF_WIRE = 8,
	BSF_MEMORY = 12,
	BSF_EXTENSION = 16,
	BSF_WIRE_DIF = 32,
};

struct raw {
	struct connected_pair s;
	uint8_t umr[UMR_BYTES];
	uint8_t psv[PSV_BYTES];
};

/* The local side's first two requests, as the library wrote them. */
static void copy_requests(struct raw *r)
{
	struct mlx5dv_qp dv = {0};
	struct mlx5dv_obj obj = {.qp = {.in = r->s.local.endpoint->qp, .out = &dv}};
	const uint8_t *ring;

	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP))
		fail("mlx5dv_init_obj fails");
	ring = dv.sq.buf;
	memcpy(r->umr, ring, UMR_BYTES);
	memcpy(r->psv, ring + UMR_BYTES, PSV_BYTES);
	SAME(r->umr[AT_OPCODE], MLX5_OPCODE_UMR);
	SAME(r->umr[7], UMR_BYTES / 16);
	SAME(r->psv[AT_OPCODE], MLX5_OPCODE_SET_PSV);
}

static void raw_open(struct raw *r)
{
	static const struct domain wire = {DIF_CRC, MLX5DV_BLOCK_SIZE_512,	     true, 0xabcd,
					   77,	    MLX5DV_SIG_T10DIF_FLAG_REF_REMAP};
	struct key_conf c = signature_conf(NULL, &wire, 2048, 0xff);

	pair_open(&r->s, NULL);
	key_create(&r->s.local, 0,
		   MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
			   MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
		   4);
	key_create(&r->s.local, 1, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, 4);
	configure(&r->s.local, 0, &c);
	copy_requests(r);
}

/* Status of the completion of such a request. */
static enum ibv_wc_status post_status(struct raw *r, const uint8_t *bytes, size_t room)
{
	struct endpoint *d = r->s.local.endpoint;
	uint8_t wqe[1024] = {0};
	struct ibv_wc wc;

	memcpy(wqe, bytes, room);
	wqe[11] |= MLX5_WQE_CTRL_CQ_UPDATE;
	ibv_wr_start(d->qpx);
	d->qpx->wr_id = 0x7a77;
	d->qpx->wr_flags = IBV_SEND_SIGNALED;
	mlx5dv_wr_raw_wqe(d->mqpx, wqe);
	SAME(ibv_wr_complete(d->qpx), 0);
	wc = completion(&r->s.local, SENDS);
	SAME(wc.wr_id, 0x7a77);
	return wc.status;
}

static void put_be32(uint8_t *at, uint32_t value)
{
	uint32_t be = htobe32(value);

	memcpy(at, &be, sizeof(be));
}

static void put_be64(uint8_t *at, uint64_t value)
{
	uint64_t be = htobe64(value);

	memcpy(at, &be, sizeof(be));
}

static void unknown_key(struct raw *r)
{
	put_be32(r->umr + AT_KEY, 0xfffffe00);
}

static void key_of_a_region(struct raw *r)
{
	put_be32(r->umr + AT_KEY, r->s.local.endpoint->mr->lkey);
}

static void too_many_entries(struct raw *r)
{
	r->umr[AT_ENTRIES + 1] = 8; /* the key has room for 4; the BSF becomes a part of the list */
	r->umr[AT_BSF_UNITS + 1] = 0;
}

static void entries_past_the_end(struct raw *r)
{
	r->umr[AT_ENTRIES] = 0xff;
	r->umr[AT_ENTRIES + 1] = 0xfc;
}

static void bsf_too_large(struct raw *r)
{
	r->umr[AT_BSF_UNITS + 1] = 8;
	r->umr[7] += 4;
}

static void bsf_past_the_end(struct raw *r)
{
	r->umr[7] -= 4;
}

static void bsf_without_room(struct raw *r)
{
	put_be32(r->umr + AT_KEY, r->s.local.key[1].lkey);
}

static void only_control(struct raw *r)
{
	r->umr[7] = 1;
}

static void half_a_context(struct raw *r)
{
	r->umr[7] = 6;
}

static void must_be_free(struct raw *r)
{
	r->umr[AT_FLAGS] |= 0x20; /* it is configured */
}

static void offset_past_the_list(struct raw *r)
{
	r->umr[AT_FLAGS] |= 0x10;
	r->umr[AT_BSF_UNITS] = 0x40;
}

static void bsf_unknown_crc(struct raw *r)
{
	r->umr[AT_BSF + BSF_WIRE] = 0x73;
	r->umr[AT_BSF + BSF_WIRE_DIF] = 0;
}

static void bsf_unknown_block(struct raw *r)
{
	r->umr[AT_BSF + BSF_BLOCK_WIRE] = 0x3e;
}

static void bsf_unknown_guard(struct raw *r)
{
	r->umr[AT_BSF + BSF_WIRE_DIF + 8] = 3;
}

static void bsf_crypto(struct raw *r)
{
	r->umr[AT_BSF] |= 1;
}

static void bsf_transaction(struct raw *r)
{
	put_be32(r->umr + AT_BSF + BSF_EXTENSION, 0x20000000);
	put_be32(r->umr + AT_BSF + BSF_EXTENSION + 8, 0x40000000);
}

static void bsf_same_structure(struct raw *r)
{
	r->umr[AT_BSF] |= 0x10; /* but memory has none */
}

static void psv_of_nobody(struct raw *r)
{
	put_be32(r->psv + 16, 0xfffffe);
}

static void psv_cut_short(struct raw *r)
{
	r->psv[7] = 1;
}

static void unknown_opcode(struct raw *r)
{
	r->umr[AT_OPCODE] = 0x3f;
}

static void list_elsewhere(struct raw *r)
{
	/* Not inline: a pointer to the list, with a key of nobody. */
	r->umr[AT_FLAGS] &= 0x7f;
	r->umr[AT_BSF_UNITS + 1] = 0;
	r->umr[7] = 9;
	put_be32(r->umr + AT_LIST, 64);
	put_be32(r->umr + AT_LIST + 4, 0xfffffe00);
	put_be64(r->umr + AT_LIST + 8, 0x1000);
}

struct spoilt {
	void (*spoil)(struct raw *r);
	enum ibv_wc_status status;
	bool psv;
};

enum {
	S_NOTHING,
	S_UNKNOWN_KEY,
	S_REGION,
	S_ENTRIES,
	S_ENTRIES_END,
	S_BSF_LARGE,
	S_BSF_END,
	S_BSF_ROOM,
	S_CONTROL,
	S_CONTEXT,
	S_FREE,
	S_OFFSET,
	S_CRC,
	S_BLOCK,
	S_GUARD,
	S_CRYPTO,
	S_TRANSACTION,
	S_STRUCTURE,
	S_PSV,
	S_PSV_SHORT,
	S_OPCODE,
	S_POINTER,
};

/* Refused by the rules of the architecture: the memory management error.  Not to be made sense of:
 * the local QP operation error.  What the request names is not the queue pair's: protection. */
static const struct spoilt spoilts[] = {
	[S_NOTHING] = {NULL, IBV_WC_SUCCESS, false},
	[S_UNKNOWN_KEY] = {unknown_key, IBV_WC_MW_BIND_ERR, false},
	[S_REGION] = {key_of_a_region, IBV_WC_MW_BIND_ERR, false},
	[S_ENTRIES] = {too_many_entries, IBV_WC_MW_BIND_ERR, false},
	[S_ENTRIES_END] = {entries_past_the_end, IBV_WC_LOC_QP_OP_ERR, false},
	[S_BSF_LARGE] = {bsf_too_large, IBV_WC_MW_BIND_ERR, false},
	[S_BSF_END] = {bsf_past_the_end, IBV_WC_LOC_QP_OP_ERR, false},
	[S_BSF_ROOM] = {bsf_without_room, IBV_WC_MW_BIND_ERR, false},
	[S_CONTROL] = {only_control, IBV_WC_LOC_QP_OP_ERR, false},
	[S_CONTEXT] = {half_a_context, IBV_WC_LOC_QP_OP_ERR, false},
	[S_FREE] = {must_be_free, IBV_WC_MW_BIND_ERR, false},
	[S_OFFSET] = {offset_past_the_list, IBV_WC_MW_BIND_ERR, false},
	[S_CRC] = {bsf_unknown_crc, IBV_WC_LOC_QP_OP_ERR, false},
	[S_BLOCK] = {bsf_unknown_block, IBV_WC_LOC_QP_OP_ERR, false},
	[S_GUARD] = {bsf_unknown_guard, IBV_WC_LOC_QP_OP_ERR, false},
	[S_CRYPTO] = {bsf_crypto, IBV_WC_LOC_QP_OP_ERR, false},
	[S_TRANSACTION] = {bsf_transaction, IBV_WC_LOC_QP_OP_ERR, false},
	[S_STRUCTURE] = {bsf_same_structure, IBV_WC_LOC_QP_OP_ERR, false},
	[S_PSV] = {psv_of_nobody, IBV_WC_LOC_PROT_ERR, true},
	[S_PSV_SHORT] = {psv_cut_short, IBV_WC_LOC_QP_OP_ERR, true},
	[S_OPCODE] = {unknown_opcode, IBV_WC_LOC_QP_OP_ERR, false},
	[S_POINTER] = {list_elsewhere, IBV_WC_LOC_PROT_ERR, false},
};

static void spoilt_request(const struct test *t)
{
	const struct spoilt *p = &spoilts[t->arg];
	struct raw r;

	raw_open(&r);
	if (p->spoil)
		p->spoil(&r);
	SAME(p->psv ? post_status(&r, r.psv, PSV_BYTES) : post_status(&r, r.umr, UMR_BYTES),
	     p->status);
	SAME(state_of(&r.s.local), p->spoil ? IBV_QPS_ERR : IBV_QPS_RTS);
	expect_only(&r.s.local, 0, NULL, 0);
	expect_only(&r.s.remote, 0, NULL, 0);
	/* It was written as it should be: the request as it was does work, SET_PSV as well. */
	if (!p->spoil) {
		SAME(post_status(&r, r.psv, PSV_BYTES), IBV_WC_SUCCESS);
		transfer(&r.s, ROUTE_SEND, 0, 4 * 520);
		expect_no_error(&r.s.local, 0);
	}
	pair_close(&r.s);
}

/* Bits here and there of a good request: whatever the device makes of it, it must finish it and
 * touch nothing. */
static void random_bits(const struct test *t)
{
	struct ibv_wc wc[8];
	uint64_t x = options.seed * 0x9e3779b97f4a7c15u | 1;
	unsigned refused = 0;

	(void)t;
	for (int i = 0; i < 60; i++) {
		struct raw r;
		unsigned flips;

		raw_open(&r);
		x = x * 6364136223846793005u + 1442695040888963407u;
		flips = 1 + (x >> 60);
		for (unsigned k = 0; k < flips; k++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			/* The control segment's size and the queue pair are the library's. */
			r.umr[AT_KEY + (x >> 33) % (UMR_BYTES - AT_KEY)] ^= 1u << (x >> 61);
		}
		refused += post_status(&r, r.umr, UMR_BYTES) != IBV_WC_SUCCESS;
		expect_only(&r.s.local, 0, NULL, 0);
		expect_only(&r.s.remote, 0, NULL, 0);
		(void)completions(&r.s.local, SENDS, wc, 8, 0);
		pair_close(&r.s);
	}
	EXPECT(refused > 10);
}

const struct test raw_tests[] = {
	{"request-as-the-library-wrote-it", spoilt_request, {0}, S_NOTHING},
	{"unknown-key", spoilt_request, {0}, S_UNKNOWN_KEY},
	{"key-of-a-memory-region", spoilt_request, {0}, S_REGION},
	{"more-entries-than-room", spoilt_request, {0}, S_ENTRIES},
	{"entries-past-the-request", spoilt_request, {0}, S_ENTRIES_END},
	{"BSF-larger-than-room", spoilt_request, {0}, S_BSF_LARGE},
	{"BSF-past-the-request", spoilt_request, {0}, S_BSF_END},
	{"BSF-for-a-key-without", spoilt_request, {0}, S_BSF_ROOM},
	{"control-segment-alone", spoilt_request, {0}, S_CONTROL},
	{"half-of-the-key-context", spoilt_request, {0}, S_CONTEXT},
	{"key-that-must-be-free", spoilt_request, {0}, S_FREE},
	{"offset-past-the-list", spoilt_request, {0}, S_OFFSET},
	{"BSF-with-an-unknown-CRC", spoilt_request, {0}, S_CRC},
	{"BSF-with-an-unknown-block-size", spoilt_request, {0}, S_BLOCK},
	{"BSF-with-an-unknown-guard", spoilt_request, {0}, S_GUARD},
	{"BSF-with-encryption", spoilt_request, {0}, S_CRYPTO},
	{"BSF-with-block-and-transaction-signatures", spoilt_request, {0}, S_TRANSACTION},
	{"BSF-with-a-false-same-structure", spoilt_request, {0}, S_STRUCTURE},
	{"SET_PSV-of-nobody", spoilt_request, {0}, S_PSV},
	{"SET_PSV-cut-short", spoilt_request, {0}, S_PSV_SHORT},
	{"unknown-opcode", spoilt_request, {0}, S_OPCODE},
	{"list-behind-a-pointer-without-key", spoilt_request, {0}, S_POINTER},
	{"random-bits", random_bits, {0}},
	{0},
};
