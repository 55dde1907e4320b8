// SPDX-License-Identifier: BSD-2-Clause
/*
 * Keys whose lists lead nowhere, to themselves, or to memory that is not the program's to touch;
 * keys that change and go while they are in use.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "conform.h"

enum bad_entry {
	UNKNOWN,
	FOREIGN,
	GONE,
	PAST_END,
	BEFORE,
	UNMAPPED,
	READ_ONLY,
	ITSELF,
	EACH_OTHER
};

enum { BLOCK = 512, UNIT = 520, BLOCKS = 4 };

static const struct domain dif = {DIF_CRC, MLX5DV_BLOCK_SIZE_512, true, 1, 2, 0};

static struct ibv_mr *register_region(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, at, bytes, access);

	if (!mr)
		device_die("ibv_reg_mr: %m");
	return mr;
}

/* What the second of three pieces is. */
static struct ibv_sge bad_piece(struct connected_pair *s, enum bad_entry kind)
{
	struct endpoint *d = s->local.endpoint;
	struct ibv_sge sge = endpoint_sge(d, ORDER_WHOLE, 100000, BLOCK * 2);
	struct ibv_pd *pd = ibv_alloc_pd(d->port.ctx);
	struct ibv_mr *mr;
	uint8_t *hole;

	EXPECT(pd);
	switch (kind) {
	case UNKNOWN:
		sge.lkey = 0xfffffe00;
		break;
	case FOREIGN:
		sge.lkey =
			register_region(pd, s->local.memory, ORDER_MEMORY, IBV_ACCESS_LOCAL_WRITE)
				->lkey;
		break;
	case GONE:
		mr = register_region(d->pd, s->local.memory, ORDER_MEMORY, IBV_ACCESS_LOCAL_WRITE);
		sge.lkey = mr->lkey;
		SAME(ibv_dereg_mr(mr), 0);
		break;
	case PAST_END:
		sge.addr = endpoint_sge(d, ORDER_WHOLE, ORDER_MEMORY - BLOCK * 2 + 1, 0).addr;
		break;
	case BEFORE:
		sge.addr = endpoint_sge(d, ORDER_WHOLE, 0, 0).addr - 1;
		break;
	case UNMAPPED:
		hole = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		EXPECT(hole != MAP_FAILED);
		sge.addr = (uint64_t)(uintptr_t)hole;
		sge.lkey = register_region(d->pd, hole, 4096, IBV_ACCESS_LOCAL_WRITE)->lkey;
		/* Takes its place at once: a thread of somebody's may map memory at any time. */
		EXPECT(mmap(hole, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			    0) == hole);
		break;
	case READ_ONLY:
		sge.lkey = register_region(d->pd, s->local.memory, ORDER_MEMORY, 0)->lkey;
		break;
	case ITSELF:
		sge.addr = 0;
		sge.lkey = d->key[0]->lkey;
		break;
	case EACH_OTHER:
		sge.addr = 0;
		sge.lkey = d->key[1]->lkey;
		break;
	}
	return sge;
}

/* A key of three pieces, the one in the middle bad. */
static void configure_bad(struct connected_pair *s, int key, struct ibv_sge middle)
{
	struct endpoint *d = s->local.endpoint;
	struct ibv_sge list[] = {
		endpoint_sge(d, ORDER_WHOLE, LOCAL_AT, BLOCK),
		middle,
		endpoint_sge(d, ORDER_WHOLE, LOCAL_AT + BLOCK, BLOCK),
	};
	struct mlx5dv_sig_t10dif t10 = {
		.bg_type = MLX5DV_SIG_T10DIF_CRC, .bg = 0xffff, .app_tag = 1, .ref_tag = 2};
	struct mlx5dv_sig_block_domain wire = {
		.sig_type = MLX5DV_SIG_TYPE_T10DIF,
		.sig.dif = &t10,
		.block_size = MLX5DV_BLOCK_SIZE_512,
	};
	struct mlx5dv_sig_block_attr attr = {.wire = &wire, .check_mask = 0xff};
	struct mlx5dv_mkey_conf_attr conf = {0};

	ibv_wr_start(d->qpx);
	d->qpx->wr_id = 1;
	d->qpx->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	mlx5dv_wr_mkey_configure(d->mqpx, d->key[key], 3, &conf);
	mlx5dv_wr_set_mkey_access_flags(d->mqpx, ALL_ACCESS);
	mlx5dv_wr_set_mkey_layout_list(d->mqpx, 3, list);
	mlx5dv_wr_set_mkey_sig_block(d->mqpx, &attr);
	SAME(ibv_wr_complete(d->qpx), 0);
	SAME(success(&s->local, SENDS).opcode, IBV_WC_DRIVER1);
}

/* Of a transfer that cannot succeed: what both sides see. */
static void transfer_fails(struct connected_pair *s, enum route r)
{
	bool by_remote = r == ROUTE_READ_BY || r == ROUTE_RECEIVE || r == ROUTE_WRITTEN;
	uint32_t bytes = BLOCKS * UNIT;
	struct request q = {
		.opcode = r == ROUTE_WRITE || r == ROUTE_WRITTEN  ? IBV_WR_RDMA_WRITE
			  : r == ROUTE_READ || r == ROUTE_READ_BY ? IBV_WR_RDMA_READ
								  : IBV_WR_SEND,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {by_remote ? (struct slice){ORDER_WHOLE, REMOTE_AT, bytes}
				    : (struct slice){0, 0, bytes}},
		.rkey = by_remote ? s->local.key[0].rkey : s->remote.address.rkey,
		.raddr = by_remote ? 0 : s->remote.address.base + REMOTE_AT,
	};
	enum ibv_wc_status status;

	if (r == ROUTE_SEND)
		receive(&s->remote, 1, (struct slice){ORDER_WHOLE, REMOTE_AT, bytes});
	if (r == ROUTE_RECEIVE)
		receive(&s->local, 1, (struct slice){0, 0, bytes});
	post(by_remote ? &s->remote : &s->local, &q);
	status = completion(by_remote ? &s->remote : &s->local, SENDS).status;
	if (!by_remote)
		SAME(status, IBV_WC_LOC_PROT_ERR);
	else if (status != IBV_WC_REM_OP_ERR && status != IBV_WC_REM_ACCESS_ERR)
		fail("%s: the peer sees \"%s\"", route_name(r), ibv_wc_status_str(status));
	if (r == ROUTE_RECEIVE)
		SAME(completion(&s->local, RECEIVES).status, IBV_WC_LOC_PROT_ERR);
	SAME(state_of(by_remote ? &s->remote : &s->local), IBV_QPS_ERR);
}

static void bad_list(const struct test *t)
{
	enum bad_entry kind = (enum bad_entry)t->arg;

	for (enum route r = 0; r < ROUTES; r++) {
		struct ibv_sge middle;
		struct connected_pair s;

		if (kind == READ_ONLY && route_gathers(r))
			continue;
		pair_open_signed(&s, &(struct setup){.own_cqs = true});
		signature_key(&s, 1);
		middle = bad_piece(&s, kind);
		configure_bad(&s, 0, middle);
		if (kind == EACH_OTHER) {
			middle.lkey = s.local.endpoint->key[0]->lkey;
			configure_bad(&s, 1, middle);
		}
		transfer_fails(&s, r);
		/* What lay before the bad piece may have been written, nothing else. */
		memset(s.local.memory + LOCAL_AT, CANARY, BLOCK);
		memset(s.remote.memory + REMOTE_AT, CANARY, BLOCKS * UNIT);
		expect_only(&s.local, 0, NULL, 0);
		expect_only(&s.remote, 0, NULL, 0);
		/* Regions of this side's own making end with the process. */
	}
}

static void test_atomics(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, &dif, BLOCK, 0xff);
	struct request q = {
		.opcode = t->arg ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{ORDER_WHOLE, REMOTE_AT, 8}},
		.operand = {1, 1},
	};
	struct connected_pair s;

	pair_open_signed(&s, NULL);
	c.access |= IBV_ACCESS_REMOTE_ATOMIC;
	configure(&s.local, 0, &c);
	q.rkey = s.local.key[0].rkey;
	post(&s.remote, &q);
	SAME(completion(&s.remote, SENDS).status, IBV_WC_REM_ACCESS_ERR);
	expect_only(&s.local, 0, NULL, 0);
	expect_only(&s.remote, 0, NULL, 0);
	pair_close(&s);
}

/* A key with signatures as a piece of another key: what comes out has the signature or is an error,
 * never the data as if there were none. */
static void signed_piece(const struct test *t)
{
	static const struct domain crc = {CRC32, MLX5DV_BLOCK_SIZE_512, true, 0, 0, 0};
	struct key_conf inner = signature_conf(NULL, &crc, BLOCK, 0xff);
	struct key_conf outer = signature_conf(NULL, NULL, 516, 0);
	struct request q = {
		.opcode = IBV_WR_RDMA_WRITE,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{1, 0, 516}},
	};
	enum ibv_wc_status status;
	uint8_t want[516];
	struct connected_pair s;

	pair_open_signed(&s, NULL);
	signature_key(&s, 1);
	configure(&s.local, 0, &inner);
	outer.piece[0] = (struct piece){.at = 0, .bytes = 516, .key = 0};
	if (t->arg) {
		outer.wire = dif;
		outer.wire.size = MLX5DV_BLOCK_SIZE_520;
	} else {
		outer.set_signature = false;
	}
	configure(&s.local, 1, &outer);
	q.rkey = s.remote.address.rkey;
	q.raddr = s.remote.address.base + REMOTE_AT;
	fill_random(s.local.memory + LOCAL_AT, BLOCK, 4);
	post(&s.local, &q);
	status = completion(&s.local, SENDS).status;
	if (status == IBV_WC_SUCCESS) {
		reference_stream(&crc, s.local.memory + LOCAL_AT, BLOCK, want);
		expect_only(&s.remote, REMOTE_AT, want, sizeof(want));
	} else {
		SAME(status, IBV_WC_LOC_PROT_ERR);
		expect_only(&s.remote, 0, NULL, 0);
	}
	pair_close(&s);
}

/* Keys of keys of keys ...: either it goes through or it ends with an error, but it ends. */
static void deep_keys(const struct test *t)
{
	struct request q = {
		.opcode = IBV_WR_RDMA_WRITE,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{ORDER_KEYS - 1, 0, 64}},
	};
	enum ibv_wc_status status;
	struct connected_pair s;

	(void)t;
	pair_open(&s, NULL);
	for (int k = 0; k < ORDER_KEYS; k++) {
		struct key_conf c = signature_conf(NULL, NULL, 64, 0);

		c.set_signature = false;
		if (k)
			c.piece[0] = (struct piece){.at = 0, .bytes = 64, .key = (int16_t)(k - 1)};
		key_create(&s.local, k, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, 4);
		configure(&s.local, k, &c);
	}
	q.rkey = s.remote.address.rkey;
	q.raddr = s.remote.address.base + REMOTE_AT;
	memset(s.local.memory + LOCAL_AT, 'd', 64);
	post(&s.local, &q);
	status = completion(&s.local, SENDS).status;
	if (status == IBV_WC_SUCCESS)
		expect_only(&s.remote, REMOTE_AT, s.local.memory + LOCAL_AT, 64);
	else
		SAME(status, IBV_WC_LOC_PROT_ERR);
	pair_close(&s);
}

/* The remote side reads and writes through the key, one after the other, until it fails or is
 * told. */
struct worker {
	struct connected_pair *s;
	_Atomic bool stop;
	_Atomic unsigned done;
	enum ibv_wc_status status;
};

static void *use_the_key(void *argument)
{
	struct worker *w = argument;
	struct request q = {
		.opcode = IBV_WR_RDMA_READ,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{ORDER_WHOLE, REMOTE_AT, BLOCKS * UNIT}},
		.rkey = w->s->local.key[0].rkey,
	};

	while (!w->stop && w->status == IBV_WC_SUCCESS) {
		q.opcode = w->done % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
		post(&w->s->remote, &q);
		w->status = completion(&w->s->remote, SENDS).status;
		w->done++;
	}
	return NULL;
}

/* What an access sees of a key that changes under it is not said: the old key, the new one or an
 * error.  That it touches nothing else is. */
static void changed_in_use(const struct test *t)
{
	static const struct domain domains[] = {
		{DIF_CRC, MLX5DV_BLOCK_SIZE_512, true, 1, 2, 0},
		{DIF_CSUM, MLX5DV_BLOCK_SIZE_512, false, 3, 4, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP},
		{CRC64, MLX5DV_BLOCK_SIZE_512, true, 0, 0, 0},
	};
	unsigned done = 0;

	(void)t;
	for (int round = 0; round < 8; round++) {
		enum ibv_wc_status status = IBV_WC_SUCCESS;
		struct worker w = {0};
		struct connected_pair s;
		pthread_t thread;

		pair_open_signed(&s, NULL);
		w.s = &s;
		for (int i = 0; status == IBV_WC_SUCCESS && (i < 50 || w.done < 100); i++) {
			struct key_conf c =
				signature_conf(NULL, &domains[i % 3], BLOCKS * BLOCK, 0xff);

			c.piece[0].at = LOCAL_AT + (i % 2 ? 0 : 32768);
			status = configure_status(&s.local, 0, &c);
			if (!i && pthread_create(&thread, NULL, use_the_key, &w))
				device_die("pthread_create");
		}
		w.stop = true;
		pthread_join(thread, NULL);
		done += w.done;
		EXPECT(status == IBV_WC_SUCCESS || status == IBV_WC_WR_FLUSH_ERR);
		EXPECT(w.status == IBV_WC_SUCCESS || w.status == IBV_WC_REM_ACCESS_ERR ||
		       w.status == IBV_WC_REM_OP_ERR);
		memset(s.local.memory + LOCAL_AT, CANARY, BLOCKS * BLOCK);
		memset(s.local.memory + LOCAL_AT + 32768, CANARY, BLOCKS * BLOCK);
		expect_only(&s.local, 0, NULL, 0);
		memset(s.remote.memory + REMOTE_AT, CANARY, BLOCKS * UNIT);
		expect_only(&s.remote, 0, NULL, 0);
		pair_close(&s);
	}
	EXPECT(done >= 8);
}

static void destroyed_in_use(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, &dif, BLOCKS * BLOCK, 0xff);

	(void)t;
	for (int i = 0; i < 10; i++) {
		struct worker w = {0};
		struct connected_pair s;
		pthread_t thread;

		pair_open_signed(&s, NULL);
		configure(&s.local, 0, &c);
		w.s = &s;
		if (pthread_create(&thread, NULL, use_the_key, &w))
			device_die("pthread_create");
		poll(NULL, 0, i);
		SAME(key_destroy(&s.local, 0), 0);
		/* Not a byte after it has gone. */
		fill_canary(&s.local);
		pthread_join(thread, NULL);
		SAME(w.status, IBV_WC_REM_ACCESS_ERR);
		expect_only(&s.local, 0, NULL, 0);
		pair_close(&s);
	}
}

const struct test abuse_tests[] = {
	{"list-with-an-unknown-key", bad_list, {0}, UNKNOWN},
	{"list-with-a-key-of-a-foreign-PD", bad_list, {0}, FOREIGN},
	{"list-with-a-deregistered-key", bad_list, {0}, GONE},
	{"list-past-the-end-of-a-region", bad_list, {0}, PAST_END},
	{"list-before-the-beginning-of-a-region", bad_list, {0}, BEFORE},
	{"list-with-memory-that-has-gone", bad_list, {0}, UNMAPPED},
	{"list-with-read-only-memory", bad_list, {0}, READ_ONLY},
	{"list-with-the-key-itself", bad_list, {0}, ITSELF},
	{"two-keys-with-each-other", bad_list, {0}, EACH_OTHER},
	{"key-with-signatures-in-a-list", signed_piece, {0}, 0},
	{"key-with-signatures-under-another", signed_piece, {0}, 1},
	{"sixteen-keys-deep", deep_keys, {0}},
	{"fetch-and-add-to-a-key-with-signatures", test_atomics, {0}, 0},
	{"compare-and-swap-to-a-key-with-signatures", test_atomics, {0}, 1},
	{"key-configured-while-in-use", changed_in_use, {0}},
	{"key-destroyed-while-in-use", destroyed_in_use, {0}},
	{0},
};
