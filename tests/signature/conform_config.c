// SPDX-License-Identifier: BSD-2-Clause
/* mlx5dv_wr_mkey_configure(3): what a configuration sets, keeps and clears. */
#include <string.h>

#include "conform.h"

static const struct domain crc = {CRC32, MLX5DV_BLOCK_SIZE_512, true, 0, 0, 0};
static const struct domain dif = {DIF_CRC, MLX5DV_BLOCK_SIZE_512, false, 3, 9, 0};

static uint8_t data[ROOM];
static uint8_t framed[ROOM];

static void open_with_data(struct connected_pair *s)
{
	pair_open_signed(s, NULL);
	fill_random(data, sizeof(data), options.seed + 11);
}

/* What local memory at this place looks like on the wire through the key. */
static void expect_sent(struct connected_pair *s, uint32_t at, const struct domain *wire,
			uint32_t bytes)
{
	uint32_t n = (uint32_t)reference_length(wire, bytes);

	memcpy(s->local.memory + at, data, bytes);
	fill_canary(&s->remote);
	transfer(s, ROUTE_SEND, 0, n);
	reference_stream(wire, data, bytes, framed);
	expect_only(&s->remote, REMOTE_AT, framed, n);
}

static const struct domain none = {NO_SIGNATURE, MLX5DV_BLOCK_SIZE_512, false, 0, 0, 0};

static struct key_conf only_wire(void)
{
	return (struct key_conf){.wr_id = 300};
}

static struct key_conf only_layout(uint32_t at, uint32_t bytes)
{
	struct key_conf c = signature_conf(NULL, NULL, bytes, 0);

	c.set_access = false;
	c.set_signature = false;
	c.piece[0].at = at;
	return c;
}

static struct key_conf only_access(uint32_t access)
{
	struct key_conf c = only_wire();

	c.set_access = true;
	c.access = access;
	return c;
}

/* The status of an operation of the peer on the key, which may fail. */
static enum ibv_wc_status peer_does(struct connected_pair *s, enum ibv_wr_opcode opcode,
				    uint32_t bytes)
{
	struct request q = {
		.opcode = opcode,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{ORDER_WHOLE, REMOTE_AT, bytes}},
		.rkey = s->local.key[0].rkey,
	};

	post(&s->remote, &q);
	return completion(&s->remote, SENDS).status;
}

/* The status of a send from the key. */
static enum ibv_wc_status send_status(struct connected_pair *s, uint32_t bytes)
{
	struct request q = {
		.opcode = IBV_WR_SEND,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{0, 0, bytes}},
	};

	receive(&s->remote, 1, (struct slice){ORDER_WHOLE, REMOTE_AT, bytes});
	post(&s->local, &q);
	return completion(&s->local, SENDS).status;
}

/* The signature setter may be left out: the key is as one without signatures. */
static void without_signature(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, NULL, 2048, 0);
	struct connected_pair s;

	(void)t;
	open_with_data(&s);
	c.set_signature = false;
	configure(&s.local, 0, &c);
	expect_sent(&s, LOCAL_AT, &none, 2048);
	memcpy(s.remote.memory + REMOTE_AT, data, 2048);
	fill_canary(&s.local);
	transfer(&s, ROUTE_RECEIVE, 0, 2048);
	expect_only(&s.local, LOCAL_AT, data, 2048);
	pair_close(&s);
}

static void no_setters(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, &crc, 1024, 0xff);
	struct connected_pair s;

	(void)t;
	open_with_data(&s);
	configure(&s.local, 0, &c);
	expect_sent(&s, LOCAL_AT, &crc, 1024);
	/* Nothing at all changes nothing. */
	c = only_wire();
	configure(&s.local, 0, &c);
	expect_sent(&s, LOCAL_AT, &crc, 1024);
	/* The attribute alone. */
	c.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR;
	configure(&s.local, 0, &c);
	expect_sent(&s, LOCAL_AT, &none, 1024);
	pair_close(&s);
}

/* Each of the three parts alone; the others stay. */
static void overrides_only(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, &crc, 1024, 0xff);
	struct connected_pair s;

	(void)t;
	open_with_data(&s);
	configure(&s.local, 0, &c);
	c = only_layout(50000, 1536);
	configure(&s.local, 0, &c);
	expect_sent(&s, 50000, &crc, 1536);
	SAME(peer_does(&s, IBV_WR_RDMA_READ, 1548), IBV_WC_SUCCESS);
	c = only_access(IBV_ACCESS_REMOTE_READ);
	configure(&s.local, 0, &c);
	expect_sent(&s, 50000, &crc, 1536);
	c = only_wire();
	c.set_signature = true;
	c.wire = dif;
	configure(&s.local, 0, &c);
	expect_sent(&s, 50000, &dif, 1536);
	SAME(peer_does(&s, IBV_WR_RDMA_READ, 1560), IBV_WC_SUCCESS);
	pair_close(&s);
}

static void signature_kept(const struct test *t)
{
	struct key_conf c = signature_conf(&crc, &dif, 1032, 0xff);
	struct connected_pair s;

	(void)t;
	open_with_data(&s);
	configure(&s.local, 0, &c);
	for (int i = 0; i < 3; i++) {
		uint8_t *in = s.local.memory + 8000 + 2000 * i;

		c = only_layout(8000 + 2000 * (uint32_t)i, 1032);
		configure(&s.local, 0, &c);
		reference_stream(&crc, data, 1024, in);
		fill_canary(&s.remote);
		transfer(&s, ROUTE_SEND, 0, 1040);
		reference_stream(&dif, data, 1024, framed);
		expect_only(&s.remote, REMOTE_AT, framed, 1040);
		expect_no_error(&s.local, 0);
		/* Checks stay, and come back after an error. */
		in[515] ^= 4;
		transfer(&s, ROUTE_SEND, 0, 1040);
		SAME(check(&s.local, 0).err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
	}
	pair_close(&s);
}

static void signature_reset(const struct test *t)
{
	struct key_conf c = signature_conf(&crc, NULL, 1032, 0xff);
	struct connected_pair s;

	(void)t;
	open_with_data(&s);
	configure(&s.local, 0, &c);
	reference_stream(&crc, data, 1024, s.local.memory + LOCAL_AT);
	transfer(&s, ROUTE_SEND, 0, 1024);
	expect_only(&s.remote, REMOTE_AT, data, 1024);
	c = only_wire();
	c.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR;
	configure(&s.local, 0, &c);
	/* The key still serves, memory as it is; nothing is checked. */
	s.local.memory[LOCAL_AT] ^= 1;
	fill_canary(&s.remote);
	transfer(&s, ROUTE_SEND, 0, 1032);
	expect_only(&s.remote, REMOTE_AT, s.local.memory + LOCAL_AT, 1032);
	expect_no_error(&s.local, 0);
	pair_close(&s);
}

static void signature_replaced(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	open_with_data(&s);
	for (int i = 0; i < 4; i++) {
		for (enum signature type = DIF_CRC; type < SIGNATURES; type++) {
			struct domain d = {type, MLX5DV_BLOCK_SIZE_512, i & 1, 1, 2, 0};
			struct key_conf c = signature_conf(NULL, &d, 2048, 0xff);

			configure(&s.local, 0, &c);
			expect_sent(&s, LOCAL_AT, &d, 2048);
		}
	}
	pair_close(&s);
}

/* After it the key names nothing; a new configuration brings it back. */
static void test_invalidated(const struct test *t)
{
	struct key_conf c = only_layout(LOCAL_AT, 1024);
	struct request q = {.opcode = IBV_WR_LOCAL_INV, .flags = IBV_SEND_SIGNALED, .id = 4};
	struct connected_pair s;

	open_with_data(&s);
	c.set_access = true;
	c.access = ALL_ACCESS;
	c.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR;
	configure(&s.local, 0, &c);
	expect_sent(&s, LOCAL_AT, &none, 1024);
	q.rkey = s.local.key[0].lkey;
	if (t->arg) {
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_LOCAL_INV,
			.send_flags = IBV_SEND_SIGNALED,
			.invalidate_rkey = q.rkey,
		};
		struct ibv_send_wr *bad;

		SAME(ibv_post_send(s.local.endpoint->qp, &wr, &bad), 0);
	} else {
		post(&s.local, &q);
	}
	SAME(success(&s.local, SENDS).opcode, IBV_WC_LOCAL_INV);
	configure(&s.local, 0, &c);
	expect_sent(&s, LOCAL_AT, &none, 1024);
	if (!t->arg) {
		post(&s.local, &q);
		success(&s.local, SENDS);
		SAME(send_status(&s, 8), IBV_WC_LOC_PROT_ERR);
	} else {
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_LOCAL_INV,
			.send_flags = IBV_SEND_SIGNALED,
			.invalidate_rkey = q.rkey,
		};
		struct ibv_send_wr *bad;

		SAME(ibv_post_send(s.local.endpoint->qp, &wr, &bad), 0);
		success(&s.local, SENDS);
		SAME(peer_does(&s, IBV_WR_RDMA_READ, 8), IBV_WC_REM_ACCESS_ERR);
	}
	pair_close(&s);
}

/* Configurations and transfers in one row, nobody waits: each transfer sees its configuration. */
static void used_right_behind(const struct test *t)
{
	enum { ROUNDS = 100 };
	struct request q = {
		.opcode = IBV_WR_RDMA_WRITE,
		.slices = 1,
		.slice = {{0, 0, 1032}},
	};
	struct connected_pair s;

	(void)t;
	open_with_data(&s);
	q.rkey = s.remote.address.rkey;
	memcpy(s.local.memory, data, ORDER_MEMORY / 2);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct key_conf c = signature_conf(NULL, &crc, 1024, 0xff);

		c.wire.ones = i & 1;
		c.piece[0].at = 700 * i;
		c.unsignaled = true;
		SAME(try_configure(&s.local, 0, &c), 0);
		q.raddr = s.remote.address.base + 1032 * i;
		q.id = i;
		q.flags = i % 16 == 15 || i == ROUNDS - 1 ? IBV_SEND_SIGNALED : 0;
		post(&s.local, &q);
		if (q.flags)
			SAME(success(&s.local, SENDS).wr_id, i);
	}
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct domain d = crc;

		d.ones = i & 1;
		reference_stream(&d, data + 700 * i, 1024, framed + 1032 * i);
	}
	expect_only(&s.remote, 0, framed, 1032 * ROUNDS);
	pair_close(&s);
}

static void completion_opcode(const struct test *t)
{
	struct key_conf c = signature_conf(&crc, &dif, 516, 0xff);
	struct ibv_wc wc;
	struct connected_pair s;

	(void)t;
	open_with_data(&s);
	c.wr_id = 0x1234567890abcdef;
	SAME(try_configure(&s.local, 0, &c), 0);
	wc = success(&s.local, SENDS);
	SAME(wc.opcode, IBV_WC_DRIVER1);
	SAME(wc.opcode, MLX5DV_WC_UMR);
	SAME(wc.wr_id, c.wr_id);
	/* One, though memory and wire have a signature; and none if none is asked for. */
	expect_no_completion(&s.local, SENDS);
	c.unsignaled = true;
	SAME(try_configure(&s.local, 0, &c), 0);
	transfer(&s, ROUTE_WRITE, 0, 0);
	expect_no_completion(&s.local, SENDS);
	pair_close(&s);
}

/* The last setter counts, wholly. */
static void access_replaced(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, NULL, 1024, 0);
	struct connected_pair s;

	(void)t;
	for (int i = 0; i < 2; i++) {
		open_with_data(&s);
		c.set_signature = false;
		c.access = i ? IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE
			     : IBV_ACCESS_REMOTE_READ;
		configure(&s.local, 0, &c);
		SAME(peer_does(&s, i ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 64), IBV_WC_SUCCESS);
		c.access = i ? IBV_ACCESS_REMOTE_READ
			     : IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
		configure(&s.local, 0, &c);
		SAME(peer_does(&s, i ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 64), IBV_WC_SUCCESS);
		SAME(peer_does(&s, i ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, 64),
		     IBV_WC_REM_ACCESS_ERR);
		pair_close(&s);
	}
}

/* No rights: its owner may read it, nobody may do more. */
static void no_access(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, NULL, 1024, 0);
	struct request q = {
		.opcode = IBV_WR_RDMA_READ,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{0, 0, 64}},
	};
	struct connected_pair s;

	c.set_signature = false;
	c.access = 0;
	open_with_data(&s);
	configure(&s.local, 0, &c);
	expect_sent(&s, LOCAL_AT, &none, 1024);
	fill_canary(&s.local);
	switch (t->arg) {
	case 0:
		SAME(peer_does(&s, IBV_WR_RDMA_READ, 64), IBV_WC_REM_ACCESS_ERR);
		break;
	case 1:
		SAME(peer_does(&s, IBV_WR_RDMA_WRITE, 64), IBV_WC_REM_ACCESS_ERR);
		break;
	default:
		q.rkey = s.remote.address.rkey;
		q.raddr = s.remote.address.base;
		post(&s.local, &q);
		SAME(completion(&s.local, SENDS).status, IBV_WC_LOC_PROT_ERR);
	}
	expect_only(&s.local, 0, NULL, 0);
	pair_close(&s);
}

static void without_layout(const struct test *t)
{
	struct key_conf c = only_access(ALL_ACCESS);
	struct connected_pair s;

	open_with_data(&s);
	if (t->arg)
		configure(&s.local, 0, &c);
	SAME(send_status(&s, 8), IBV_WC_LOC_PROT_ERR);
	pair_close(&s);
}

/* The flag gives the queue pair its builders. */
static void test_builders(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	open_with_data(&s);
	EXPECT(s.local.endpoint->mqpx->wr_mkey_configure);
	EXPECT(s.local.endpoint->mqpx->wr_set_mkey_sig_block);
	EXPECT(s.local.endpoint->mqpx->wr_set_mkey_access_flags);
	EXPECT(s.local.endpoint->mqpx->wr_set_mkey_layout_list);
	EXPECT(s.local.endpoint->mqpx->wr_set_mkey_layout_interleaved);
	pair_close(&s);
}

const struct test config_tests[] = {
	{"builders-of-the-queue-pair", test_builders, {80}},
	{"without-the-signature-setter", without_signature, {9, 82}},
	{"no-setters", no_setters, {81, 88}},
	{"overrides-only-what-is-set", overrides_only, {83, 82, 101}},
	{"signature-kept-by-a-configuration", signature_kept, {89}},
	{"signature-reset", signature_reset, {88}},
	{"signature-replaced", signature_replaced, {101}},
	{"invalidated-by-ibv_wr_local_inv", test_invalidated, {84}, 0},
	{"invalidated-by-ibv_post_send", test_invalidated, {84}, 1},
	{"used-right-behind", used_right_behind, {86}},
	{"completion-of-a-configuration", completion_opcode, {87}},
	{"access-replaced-wholly", access_replaced, {91}},
	{"no-access-READ-of-the-peer", no_access, {92}, 0},
	{"no-access-WRITE-of-the-peer", no_access, {92}, 1},
	{"no-access-own-READ", no_access, {92}, 2},
	{"never-configured", without_layout, {93}, 0},
	{"without-a-layout", without_layout, {93}, 1},
	{0},
};
