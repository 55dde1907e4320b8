// SPDX-License-Identifier: BSD-2-Clause
/* mlx5dv_create_mkey(3), and what a device says about itself. */
#include <errno.h>
#include <string.h>

#include "conform.h"

#define INDIRECT       MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT
#define SIGNATURES_TOO (INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE)

static void test_entries(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	pair_open(&s, NULL);
	for (unsigned n = 1; n <= 1024; n = n * 3 / 2 + 1) {
		key_create(&s.local, 0, n % 2 ? INDIRECT : SIGNATURES_TOO, (uint16_t)n);
		EXPECT(s.local.key[0].entries >= n);
		SAME(key_destroy(&s.local, 0), 0);
	}
	pair_close(&s);
}

static void creation_fails(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	pair_open(&s, NULL);
	SAME(try_key_create(&s.local, 0, 0, 4), EOPNOTSUPP);
	SAME(try_key_create(&s.local, 0, INDIRECT | 1u << 20, 4), EOPNOTSUPP);
	key_create(&s.local, 0, SIGNATURES_TOO, 4);
	SAME(key_destroy(&s.local, 0), 0);
	pair_close(&s);
}

/* Destroyed keys make room, and are of no use any more. */
static void test_destroyed(const struct test *t)
{
	struct key_conf c = signature_conf(
		NULL, &(struct domain){CRC32, MLX5DV_BLOCK_SIZE_512, false, 0, 0, 0}, 512, 0xff);
	struct request q = {
		.opcode = IBV_WR_RDMA_READ,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{ORDER_WHOLE, REMOTE_AT, 516}},
	};
	struct connected_pair s;

	(void)t;
	pair_open(&s, NULL);
	for (int i = 0; i < 200; i++) {
		signature_key(&s, 0);
		configure(&s.local, 0, &c);
		if (i < 199)
			SAME(key_destroy(&s.local, 0), 0);
	}
	q.rkey = s.local.key[0].rkey;
	post(&s.remote, &q);
	success(&s.remote, SENDS);
	SAME(key_destroy(&s.local, 0), 0);
	post(&s.remote, &q);
	SAME(completion(&s.remote, SENDS).status, IBV_WC_REM_ACCESS_ERR);
	pair_close(&s);
}

/* The low byte of the key is the program's; only the key with the last one is good. */
static void updated_tag(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, NULL, 64, 0);
	struct request q = {
		.opcode = IBV_WR_RDMA_READ,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{ORDER_WHOLE, REMOTE_AT, 64}},
	};
	struct connected_pair s;
	struct endpoint *d;
	int err;

	(void)t;
	c.set_signature = false;
	pair_open(&s, NULL);
	err = try_key_create(&s.local, 0, INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG, 4);
	if (err == EOPNOTSUPP || err == EPROTONOSUPPORT)
		skip("not supported here");
	SAME(err, 0);
	d = s.local.endpoint;
	for (uint32_t tag = 1; tag < 256; tag += 51) {
		d->key[0]->lkey = (d->key[0]->lkey & ~0xffu) | tag;
		d->key[0]->rkey = d->key[0]->lkey;
		configure(&s.local, 0, &c);
		q.rkey = d->key[0]->rkey;
		post(&s.remote, &q);
		success(&s.remote, SENDS);
	}
	q.rkey ^= 1;
	post(&s.remote, &q);
	SAME(completion(&s.remote, SENDS).status, IBV_WC_REM_ACCESS_ERR);
	pair_close(&s);
}

/* By a message of the peer, if the key allows it. */
static void remote_invalidate(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, NULL, 64, 0);
	struct request inv = {
		.opcode = IBV_WR_SEND_WITH_INV,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{ORDER_WHOLE, REMOTE_AT, 0}},
	};
	struct request read = {
		.opcode = IBV_WR_RDMA_READ,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{ORDER_WHOLE, REMOTE_AT, 64}},
	};
	struct connected_pair s;
	struct ibv_wc wc;

	c.set_signature = false;
	pair_open(&s, NULL);
	key_create(&s.local, 0,
		   INDIRECT | (t->arg ? MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE : 0), 4);
	configure(&s.local, 0, &c);
	inv.rkey = read.rkey = s.local.key[0].rkey;
	post(&s.remote, &read);
	success(&s.remote, SENDS);
	receive(&s.local, 9, (struct slice){ORDER_WHOLE, 0, 0});
	post(&s.remote, &inv);
	if (!t->arg) {
		/* The sender hears nothing (IBTA 9.9.6.3, class J), and runs out of retries later. */
		SAME(completion(&s.local, RECEIVES).status != IBV_WC_SUCCESS, 1);
		pair_close(&s);
		return;
	}
	success(&s.remote, SENDS);
	wc = success(&s.local, RECEIVES);
	EXPECT(wc.wc_flags & IBV_WC_WITH_INV);
	SAME(wc.invalidated_rkey, inv.rkey);
	post(&s.remote, &read);
	SAME(completion(&s.remote, SENDS).status, IBV_WC_REM_ACCESS_ERR);
	pair_close(&s);
}

/* With scatter to CQE off, short messages and reads go to where the key says. */
static void short_messages(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, NULL, 64, 0);
	uint8_t data[32];
	struct connected_pair s;

	(void)t;
	c.set_signature = false;
	pair_open(&s, NULL);
	key_create(&s.local, 0, INDIRECT, 4);
	configure(&s.local, 0, &c);
	fill_random(data, sizeof(data), 4);
	memcpy(s.remote.memory + REMOTE_AT, data, sizeof(data));
	for (uint32_t n = 1; n <= 32; n++) {
		fill_canary(&s.local);
		transfer(&s, ROUTE_RECEIVE, 0, n);
		expect_only(&s.local, LOCAL_AT, data, n);
		fill_canary(&s.local);
		transfer(&s, ROUTE_READ, 0, n);
		expect_only(&s.local, LOCAL_AT, data, n);
	}
	pair_close(&s);
}

/* Signatures are there: all that have no bit of their own, and all that the bits can say. */
static void test_capabilities(const struct test *t)
{
	const uint64_t sizes = MLX5DV_BLOCK_SIZE_CAP_512 | MLX5DV_BLOCK_SIZE_CAP_520 |
			       MLX5DV_BLOCK_SIZE_CAP_4096 | MLX5DV_BLOCK_SIZE_CAP_4160;
	const struct mlx5dv_sig_caps *caps;
	struct connected_pair s;

	(void)t;
	pair_open(&s, NULL);
	caps = &s.local.address.caps;
	if (!caps->block_prot)
		skip("no block signatures here");
	SAME(caps->block_prot, MLX5DV_SIG_PROT_CAP_T10DIF | MLX5DV_SIG_PROT_CAP_CRC);
	SAME(caps->t10dif_bg, MLX5DV_SIG_T10DIF_BG_CAP_CRC | MLX5DV_SIG_T10DIF_BG_CAP_CSUM);
	SAME(caps->crc_type & MLX5DV_SIG_CRC_TYPE_CAP_CRC32, MLX5DV_SIG_CRC_TYPE_CAP_CRC32);
	SAME(caps->block_size & sizes, sizes);
	if (caps->crc_type != 7 || caps->block_size != (sizes | MLX5DV_BLOCK_SIZE_CAP_4048))
		skip("CRC types %#x, block sizes %#x", caps->crc_type, (unsigned)caps->block_size);
	pair_close(&s);
}

/* A context that was not opened for DEVX: keys with signatures or a clean refusal. */
static void without_devx(const struct test *t)
{
	struct mlx5dv_mkey_init_attr attr = {.create_flags = SIGNATURES_TOO, .max_entries = 4};
	struct mlx5dv_mkey *key;
	struct device_port port;

	(void)t;
	device_port_open(&port, options.device, options.gid_index);
	attr.pd = ibv_alloc_pd(port.ctx);
	EXPECT(attr.pd);
	errno = 0;
	key = mlx5dv_create_mkey(&attr);
	if (key)
		SAME(mlx5dv_destroy_mkey(key), 0);
	else
		EXPECT(errno == EOPNOTSUPP || errno == EINVAL || errno == EPERM);
	SAME(ibv_dealloc_pd(attr.pd), 0);
	device_port_close(&port);
}

const struct test create_tests[] = {
	{"entries-of-a-key", test_entries, {102}},
	{"creation-fails-with-errno", creation_fails, {107, 50}},
	{"destroyed-keys", test_destroyed, {107}},
	{"keys-with-signatures", test_capabilities, {103}},
	{"tag-of-a-key", updated_tag, {104}},
	{"invalidated-by-the-peer", remote_invalidate, {105}, 1},
	{"not-invalidated-by-the-peer", remote_invalidate, {105}, 0},
	{"short-messages", short_messages, {106}},
	{"context-without-DEVX", without_devx, {50}},
	{0},
};
