// SPDX-License-Identifier: BSD-2-Clause
/*
 * Transaction signatures: a CRC32C over all data of a key, or of a chain of keys that share a PSV.
 * No library makes their BSF (SPDK writes it into the ring), so the keys are configured as usual, and
 * a work request of our own then replaces the signature.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "conform.h"

enum {
	BSF_AT = 128, /* in a UMR without list */
	UMR_BYTES = BSF_AT + 64,
	PSV_BYTES = 32,
	LISTED_BSF_AT = 192, /* in the library's UMR */
	CRC = 4,
	CHAIN = 3,
	ALL = 4096,
};

/* Flags of the BSF's extension, for the wire; those of the memory are four bits lower. */
#define T_INIT	    (1u << 29)
#define T_CHECK_GEN (1u << 28)
#define MEMORY_BITS 4

struct transaction {
	struct connected_pair s;
	bool in_memory; /* the signature is there and not on the wire */
	bool ones;
	uint32_t psv;
};

static void put_be32(uint8_t *at, uint32_t value)
{
	uint32_t be = htobe32(value);

	memcpy(at, &be, sizeof(be));
}

/* Status of the completion of such a request. */
static enum ibv_wc_status post_raw(struct transaction *x, uint8_t *wqe)
{
	struct endpoint *d = x->s.local.endpoint;
	struct ibv_wc wc;

	put_be32(wqe + 4, d->qp->qp_num << 8 | wqe[7]);
	wqe[11] |= MLX5_WQE_CTRL_CQ_UPDATE;
	ibv_wr_start(d->qpx);
	d->qpx->wr_id = 0x7a77;
	d->qpx->wr_flags = IBV_SEND_SIGNALED;
	mlx5dv_wr_raw_wqe(d->mqpx, wqe);
	SAME(ibv_wr_complete(d->qpx), 0);
	wc = completion(&x->s.local, SENDS);
	SAME(wc.wr_id, 0x7a77);
	return wc.status;
}

/* The PSV that the library wrote into the first request. */
static uint32_t psv_of_first(struct transaction *x)
{
	struct mlx5dv_qp dv = {0};
	struct mlx5dv_obj obj = {.qp = {.in = x->s.local.endpoint->qp, .out = &dv}};
	uint32_t word;

	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP))
		fail("mlx5dv_init_obj fails");
	memcpy(&word, (uint8_t *)dv.sq.buf + LISTED_BSF_AT + (x->in_memory ? 12 : 8), sizeof(word));
	return be32toh(word) & 0xffffff;
}

static void key_bsf(struct transaction *x, int key, uint32_t bytes, uint32_t flags, uint8_t *wqe)
{
	uint8_t *bsf = wqe + BSF_AT;

	memset(wqe, 0, UMR_BYTES);
	wqe[3] = MLX5_OPCODE_UMR;
	wqe[7] = UMR_BYTES / 16;
	put_be32(wqe + 12, x->s.local.key[key].lkey);
	wqe[16] = MLX5_WQE_UMR_CTRL_FLAG_INLINE;
	wqe[23] = 4; /* 16 bytes each */
	put_be32(wqe + 28, MLX5_WQE_UMR_CTRL_MKEY_MASK_SIG_ERR);
	bsf[0] = 1 << 6;
	bsf[1] = 0xff;
	put_be32(bsf + 4, bytes);
	put_be32(bsf + 16, flags >> (x->in_memory ? MEMORY_BITS : 0));
	put_be32(bsf + (x->in_memory ? 28 : 24), (x->ones ? 0x40u : 0x41u) << 24 | x->psv);
}

/* The library knows the key as one with a CRC32C there, so it can report errors of it. */
static void key_make(struct transaction *x, int key, uint32_t at, uint32_t bytes, uint32_t flags)
{
	const struct domain crc = {.type = CRC32C, .size = MLX5DV_BLOCK_SIZE_512, .ones = x->ones};
	uint32_t memory = bytes + (x->in_memory && flags & T_CHECK_GEN ? CRC : 0);
	struct key_conf c = signature_conf(x->in_memory ? &crc : NULL, x->in_memory ? NULL : &crc,
					   memory, 0xff);
	uint8_t wqe[1024] = {0};

	signature_key(&x->s, key);
	/* in two pieces, if there are so many bytes */
	c.piece[0].at = LOCAL_AT + at;
	if (memory > 100) {
		c.pieces = 2;
		c.piece[1] = c.piece[0];
		c.piece[0].bytes = 100;
		c.piece[1].at += 100;
		c.piece[1].bytes -= 100;
	}
	configure(&x->s.local, key, &c);
	if (!key)
		x->psv = psv_of_first(x);
	key_bsf(x, key, bytes, flags, wqe);
	SAME(post_raw(x, wqe), IBV_WC_SUCCESS);
}

static void set_psv(struct transaction *x, uint32_t value)
{
	uint8_t wqe[1024] = {0};

	wqe[3] = MLX5_OPCODE_SET_PSV;
	wqe[7] = PSV_BYTES / 16;
	put_be32(wqe + 16, x->psv);
	put_be32(wqe + 24, value);
	SAME(post_raw(x, wqe), IBV_WC_SUCCESS);
}

static void put_crc(uint8_t *to, uint32_t crc)
{
	for (int i = 0; i < CRC; i++)
		to[i] = (uint8_t)(crc >> 8 * i);
}

/* What the test's argument says. */
static void transaction_open(struct transaction *x, uintptr_t arg)
{
	*x = (struct transaction){.in_memory = arg & 1, .ones = arg & 2};
	pair_open(&x->s, NULL);
}

/*
 * Moves so many bytes of data that were not moved yet through a key, and the signature with the last
 * of them, and compares them and what is around them.
 */
static void move(struct transaction *x, enum route r, int key, const uint8_t *data, uint32_t at,
		 uint32_t bytes, const uint8_t *crc)
{
	uint8_t stream[ALL + CRC];
	uint32_t wire = bytes + (crc && !x->in_memory ? CRC : 0);
	uint32_t memory = bytes + (crc && x->in_memory ? CRC : 0);

	memcpy(stream, data + at, bytes);
	if (crc)
		memcpy(stream + bytes, crc, CRC);
	fill_canary(&x->s.local);
	fill_canary(&x->s.remote);
	if (route_gathers(r))
		memcpy(x->s.local.memory + LOCAL_AT + at, stream, memory);
	else
		memcpy(x->s.remote.memory + REMOTE_AT, stream, wire);
	transfer(&x->s, r, key, wire);
	expect_only(&x->s.local, LOCAL_AT + at, stream, memory);
	expect_only(&x->s.remote, REMOTE_AT, stream, wire);
}

static void one_key(const struct test *t)
{
	static const uint32_t sizes[] = {1, 512, 1023, ALL};

	for (enum route r = 0; r < ROUTES; r++) {
		struct transaction x;

		transaction_open(&x, t->arg);
		for (int i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++) {
			uint8_t data[ALL], crc[CRC];

			fill_random(data, sizes[i], options.seed + (unsigned)i);
			put_crc(crc, (uint32_t)reference_number(CRC32C, x.ones, data, sizes[i]));
			key_make(&x, i, 0, sizes[i], T_INIT | T_CHECK_GEN);
			/* twice: the second transfer begins anew */
			move(&x, r, i, data, 0, sizes[i], crc);
			move(&x, r, i, data, 0, sizes[i], crc);
			expect_no_error(&x.s.local, i);
		}
		pair_close(&x.s);
	}
}

/* by_psv: no key begins with the seed, but SET_PSV says what to begin with. */
static void run_chain(const struct test *t, bool by_psv)
{
	static const uint32_t sizes[CHAIN] = {1000, 77, 2500};

	for (enum route r = 0; r < ROUTES; r++) {
		uint8_t data[ALL], crc[CRC];
		struct transaction x;

		transaction_open(&x, t->arg);
		fill_random(data, ALL, options.seed + r);
		for (uint32_t i = 0, at = 0; i < CHAIN; at += sizes[i++])
			key_make(&x, (int)i, at, sizes[i],
				 (!i && !by_psv ? T_INIT : 0) | (i == CHAIN - 1 ? T_CHECK_GEN : 0));
		put_crc(crc, (uint32_t)reference_number(CRC32C, x.ones, data,
							sizes[0] + sizes[1] + sizes[2]));
		/* a key that begins with its seed does so whatever the PSV holds */
		set_psv(&x, by_psv && x.ones ? UINT32_MAX : by_psv ? 0 : 0xdeadbeef);
		for (uint32_t i = 0, at = 0; i < CHAIN; at += sizes[i++])
			move(&x, r, (int)i, data, at, sizes[i], i == CHAIN - 1 ? crc : NULL);
		for (int i = 0; i < CHAIN; i++)
			expect_no_error(&x.s.local, i);
		pair_close(&x.s);
	}
}

static void chain(const struct test *t)
{
	run_chain(t, false);
}

static void chain_by_psv(const struct test *t)
{
	run_chain(t, true);
}

/* The signature on the wire by a request of its own. */
static void crc_alone(const struct test *t)
{
	static const enum route routes[] = {ROUTE_SEND, ROUTE_WRITE, ROUTE_READ_BY};

	for (unsigned i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		uint8_t data[ALL], crc[CRC];
		struct transaction x;

		transaction_open(&x, t->arg);
		fill_random(data, ALL, options.seed);
		put_crc(crc, (uint32_t)reference_number(CRC32C, x.ones, data, ALL));
		key_make(&x, 0, 0, ALL, T_INIT | T_CHECK_GEN);
		move(&x, routes[i], 0, data, 0, ALL, NULL);
		/* once behind the data, once without it */
		for (int k = 0; k < 2; k++) {
			fill_canary(&x.s.remote);
			transfer_at(&x.s, routes[i], 0, ALL, CRC);
			expect_only(&x.s.remote, REMOTE_AT, crc, CRC);
		}
		pair_close(&x.s);
	}
}

/* What the CQE of a signature error says (the PRM's name: sig_err). */
static void expect_error_cqe(struct transaction *x, uint32_t calculated, uint32_t found,
			     uint32_t unit)
{
	bool manual = options.reports == REPORTS_MANUAL;
	struct mlx5dv_cq dv = {0};
	struct mlx5dv_obj obj = {.cq = {.in = x->s.local.endpoint->send_cq, .out = &dv}};
	const struct mlx5_sigerr_cqe {
		uint8_t reserved[16];
		uint32_t expected, actual;
		uint32_t reference_tags[2];
		uint16_t syndrome;
		uint8_t type, domain;
		uint32_t mkey;
		uint64_t offset;
		uint8_t rest[15];
		uint8_t op_own;
	} *cqe = NULL;

	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ))
		fail("mlx5dv_init_obj fails");
	for (uint32_t i = 0; i < dv.cqe_cnt; i++) {
		const struct mlx5_sigerr_cqe *at =
			(const void *)((uint8_t *)dv.buf + (size_t)i * 64);

		if (at->op_own >> 4 == MLX5_CQE_SIG_ERR) {
			EXPECT(!cqe);
			cqe = at;
		}
	}
	EXPECT(cqe && dv.cqe_size == 64);
	SAME(be16toh(cqe->syndrome), 1 << 13);
	SAME(cqe->type, 1);
	SAME(cqe->domain, x->in_memory);
	SAME(be32toh(cqe->mkey), x->s.local.key[0].lkey);
	SAME(be32toh(cqe->actual), manual ? calculated : found);
	SAME(be32toh(cqe->expected), manual ? found : calculated);
	SAME(be64toh(cqe->offset), manual ? 0 : unit - 1);
}

/* A damaged byte of the data: an error is reported, the data is there, and the request succeeds. */
static void bad_crc(const struct test *t)
{
	for (enum route r = 0; r < ROUTES; r++) {
		uint8_t data[ALL], crc[CRC];
		uint32_t calculated, found;
		struct mlx5dv_mkey_err e;
		struct transaction x;

		transaction_open(&x, t->arg);
		fill_random(data, 3000, options.seed);
		found = (uint32_t)reference_number(CRC32C, x.ones, data, 3000);
		data[1234] ^= 0x10;
		calculated = (uint32_t)reference_number(CRC32C, x.ones, data, 3000);
		key_make(&x, 0, 0, 3000, T_INIT | T_CHECK_GEN);
		if (route_gathers(r) == x.in_memory) {
			put_crc(crc, found);
			move(&x, r, 0, data, 0, 3000, crc);
			expect_error_cqe(&x, calculated, found, 3000 + CRC);
			/* libmlx5 knows errors of blocks alone (verbs.c) */
			SAME(try_check(&x.s.local, 0, &e), EINVAL);
		} else {
			/* it is made here, not checked */
			put_crc(crc, calculated);
			move(&x, r, 0, data, 0, 3000, crc);
			expect_no_error(&x.s.local, 0);
		}
		pair_close(&x.s);
	}
}

/* What a work request may not say; the completion has an error, and no byte of memory changed. */
static void refused(const struct test *t)
{
	static const struct {
		uint8_t at, byte;
		enum ibv_wc_status status;
	} wrong[] = {
		{24, 0x60, IBV_WC_LOC_QP_OP_ERR}, /* the format */
		{24, 0x42, IBV_WC_LOC_QP_OP_ERR}, /* one that repeats */
		{24, 0, IBV_WC_LOC_QP_OP_ERR},	  /* none */
		{16, 0xb0, IBV_WC_LOC_QP_OP_ERR}, /* an unknown flag */
		{19, 4, IBV_WC_LOC_QP_OP_ERR},	  /* a prologue */
		{23, 4, IBV_WC_LOC_QP_OP_ERR},	  /* an epilogue */
		{28, 0x20, IBV_WC_LOC_QP_OP_ERR}, /* the format in memory */
		{6, 0, IBV_WC_LOC_QP_OP_ERR},	  /* no data */
		{2, 1, IBV_WC_LOC_QP_OP_ERR},	  /* a block size */
		{0, 0x50, IBV_WC_LOC_QP_OP_ERR},  /* the same structure */
		{25, 0xff, IBV_WC_MW_BIND_ERR},	  /* a PSV of nobody */
	};

	(void)t;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint8_t wqe[1024] = {0};
		struct transaction x;

		transaction_open(&x, 2);
		key_make(&x, 0, 0, 512, T_INIT | T_CHECK_GEN);
		key_bsf(&x, 0, 512, T_INIT | T_CHECK_GEN, wqe);
		wqe[BSF_AT + wrong[i].at] = wrong[i].byte;
		SAME(post_raw(&x, wqe), wrong[i].status);
		SAME(state_of(&x.s.local), IBV_QPS_ERR);
		expect_only(&x.s.local, 0, NULL, 0);
		pair_close(&x.s);
	}
}

const struct test transaction_tests[] = {
	{"transaction-CRC-of-zero-seed-on-the-wire", one_key, {0}, 0},
	{"transaction-CRC-of-zero-seed-in-memory", one_key, {0}, 1},
	{"transaction-CRC-on-the-wire", one_key, {0}, 2},
	{"transaction-CRC-in-memory", one_key, {0}, 3},
	{"transaction-of-three-keys-on-the-wire", chain, {0}, 2},
	{"transaction-of-three-keys-in-memory", chain, {0}, 3},
	{"transaction-begun-by-SET_PSV-on-the-wire", chain_by_psv, {0}, 2},
	{"transaction-begun-by-SET_PSV-in-memory", chain_by_psv, {0}, 1},
	{"transaction-CRC-alone", crc_alone, {0}, 2},
	{"transaction-with-a-bad-CRC-on-the-wire", bad_crc, {0}, 2},
	{"transaction-with-a-bad-CRC-in-memory", bad_crc, {0}, 3},
	{"transaction-refused", refused, {0}},
	{0},
};
