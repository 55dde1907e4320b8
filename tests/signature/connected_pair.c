// SPDX-License-Identifier: BSD-2-Clause
/* See connected_pair.h. */
#include "connected_pair.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool option_take(int letter, const char *arg)
{
	switch (letter) {
	case 'd':
		options.device = arg;
		return true;
	case 'g':
		options.gid_index = atoi(arg);
		return true;
	case '2':
		options.two_processes = true;
		return true;
	case 'r':
		options.reports = *arg == 'h' ? REPORTS_HARDWARE : REPORTS_MANUAL;
		return !strcmp(arg, "manual") || !strcmp(arg, "hardware");
	case 's':
		options.seed = strtoull(arg, NULL, 0);
		return true;
	default:
		return false;
	}
}

void pair_begin(struct connected_pair *s)
{
	proxy_begin(&s->local, "local", false);
	proxy_begin(&s->remote, "remote", options.two_processes);
}

void pair_open(struct connected_pair *s, const struct setup *setup)
{
	pair_begin(s);
	pair_connect(s, setup);
}

void pair_connect(struct connected_pair *s, const struct setup *setup)
{
	static const struct setup usual = {0};
	struct open_order how = {.gid_index = options.gid_index};
	struct endpoint_proxy *proxy[] = {&s->local, &s->remote};

	setup = setup ? setup : &usual;
	if (options.device)
		strncpy(how.device, options.device, sizeof(how.device) - 1);
	how.mtu = setup->mtu ? setup->mtu : IBV_MTU_1024;
	how.pipelining = setup->pipelining;
	how.own_cqs = setup->own_cqs;
	how.max_send_wr = setup->max_send_wr ? setup->max_send_wr : 256;
	how.cqe_bytes = setup->cqe_bytes;
	how.inline_bytes = setup->inline_bytes ? setup->inline_bytes : 512;
	how.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC;
	for (int i = 0; i < 2; i++) {
		int err = proxy_open(proxy[i], &how);

		if (err == EOPNOTSUPP)
			skip("such queue pairs are not supported");
		if (err)
			fail("%s: mlx5dv_create_qp: %s", proxy[i]->name, strerror(err));
		fill_canary(proxy[i]);
	}
	proxy_connect(&s->local, &s->remote);
	proxy_connect(&s->remote, &s->local);
}

void pair_close(struct connected_pair *s)
{
	proxy_end(&s->local);
	proxy_end(&s->remote);
}

const char *route_name(enum route r)
{
	static const char *const names[] = {
		"SEND", "WRITE", "READ by the peer", "RECEIVE", "WRITE by the peer", "READ"};

	return names[r];
}

/* By a message the local side learns that the peer has finished (mlx5dv_mkey_check(3), NOTES). */
static void remote_does(struct connected_pair *s, const struct request *r)
{
	struct request done = {
		.opcode = IBV_WR_SEND,
		.flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
		.id = 101,
		.slices = 1,
		.slice = {{ORDER_WHOLE, 0, 8}},
	};

	receive(&s->local, 200, (struct slice){ORDER_WHOLE, ORDER_MEMORY - 8, 8});
	post(&s->remote, r);
	post(&s->remote, &done);
	SAME(success(&s->local, RECEIVES).wr_id, 200);
	SAME(success(&s->remote, SENDS).wr_id, 100);
	SAME(success(&s->remote, SENDS).wr_id, 101);
	memset(s->local.memory + ORDER_MEMORY - 8, CANARY, 8);
}

void transfer_at(struct connected_pair *s, enum route r, int key, uint64_t offset, uint32_t bytes)
{
	static const enum ibv_wr_opcode opcode[] = {
		[ROUTE_SEND] = IBV_WR_SEND,	     [ROUTE_WRITE] = IBV_WR_RDMA_WRITE,
		[ROUTE_READ_BY] = IBV_WR_RDMA_READ,  [ROUTE_RECEIVE] = IBV_WR_SEND,
		[ROUTE_WRITTEN] = IBV_WR_RDMA_WRITE, [ROUTE_READ] = IBV_WR_RDMA_READ,
	};
	struct slice local = {key, offset, bytes};
	struct slice remote = {ORDER_WHOLE, REMOTE_AT, bytes};
	bool by_remote = r == ROUTE_READ_BY || r == ROUTE_RECEIVE || r == ROUTE_WRITTEN;
	struct request q = {
		.opcode = opcode[r],
		.flags = IBV_SEND_SIGNALED,
		.id = 100,
		.slices = 1,
		.slice = {by_remote ? remote : local},
		.rkey = by_remote ? s->local.key[key].rkey : s->remote.address.rkey,
		.raddr = by_remote ? offset : s->remote.address.base + REMOTE_AT,
	};

	switch (r) {
	case ROUTE_SEND:
		receive(&s->remote, 200, remote);
		post(&s->local, &q);
		SAME(success(&s->local, SENDS).wr_id, 100);
		SAME(success(&s->remote, RECEIVES).byte_len, bytes);
		break;
	case ROUTE_RECEIVE:
		receive(&s->local, 200, local);
		post(&s->remote, &q);
		SAME(success(&s->local, RECEIVES).byte_len, bytes);
		SAME(success(&s->remote, SENDS).wr_id, 100);
		break;
	case ROUTE_WRITE:
	case ROUTE_READ:
		post(&s->local, &q);
		SAME(success(&s->local, SENDS).wr_id, 100);
		break;
	default:
		remote_does(s, &q);
	}
}

void transfer(struct connected_pair *s, enum route r, int key, uint32_t bytes)
{
	transfer_at(s, r, key, 0, bytes);
}

void signature_key(struct connected_pair *s, int key)
{
	int err = try_key_create(&s->local, key,
				 MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
					 MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
				 ORDER_PIECES);

	if (err == EOPNOTSUPP || err == EPROTONOSUPPORT)
		skip("no keys with block signatures here");
	if (err)
		fail("mlx5dv_create_mkey with block signatures: %s", strerror(err));
}

void pair_open_signed(struct connected_pair *s, const struct setup *setup)
{
	pair_open(s, setup);
	signature_key(s, 0);
}

struct key_conf signature_conf(const struct domain *mem, const struct domain *wire,
			       uint32_t memory_bytes, uint8_t check_mask)
{
	struct key_conf c = {
		.set_access = true,
		.access = ALL_ACCESS,
		.layout = LAYOUT_LIST,
		.pieces = 1,
		.piece = {{.at = LOCAL_AT, .bytes = memory_bytes, .key = ORDER_WHOLE}},
		.set_signature = true,
		.check_mask = check_mask,
		.wr_id = 300,
	};

	if (mem)
		c.mem = *mem;
	if (wire)
		c.wire = *wire;
	return c;
}

void fill_canary(struct endpoint_proxy *p)
{
	memset(p->memory, CANARY, ORDER_MEMORY);
}

void fill_random(uint8_t *at, size_t bytes, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u | 1;

	for (size_t i = 0; i < bytes; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		at[i] = (uint8_t)(x >> 32);
	}
}

static bool is_untouched(const uint8_t *at, size_t bytes)
{
	return !bytes || (*at == CANARY && !memcmp(at, at + 1, bytes - 1));
}

void expect_only(struct endpoint_proxy *p, uint32_t at, const void *want, size_t bytes)
{
	const uint8_t *good = want;

	if (is_untouched(p->memory, at) && (!bytes || !memcmp(p->memory + at, good, bytes)) &&
	    is_untouched(p->memory + at + bytes, ORDER_MEMORY - at - bytes))
		return;
	for (size_t i = 0; i < ORDER_MEMORY; i++) {
		uint8_t w = i >= at && i - at < bytes ? good[i - at] : CANARY;

		if (p->memory[i] != w)
			fail("%s: byte %zd of %zu (memory offset %zu) is %02x and not %02x",
			     p->name, (ssize_t)i - (ssize_t)at, bytes, i, p->memory[i], w);
	}
}

void expect_error(struct endpoint_proxy *p, int key, struct expected_error want)
{
	bool manual = options.reports == REPORTS_MANUAL;
	uint64_t actual = manual ? want.calculated : want.found;
	uint64_t expected = manual ? want.found : want.calculated;
	uint64_t offset = manual ? (uint64_t)want.block * want.unit
				 : (uint64_t)(want.block + 1) * want.unit - 1;
	struct mlx5dv_mkey_err e = check(p, key);

	if (e.err_type != want.type)
		fail("%s: error type %d and not %d", p->name, e.err_type, want.type);
	if (e.err.sig.actual_value != actual || e.err.sig.expected_value != expected ||
	    e.err.sig.offset != offset)
		fail("%s: error type %d with actual %#" PRIx64 ", expected %#" PRIx64
		     ", offset %" PRIu64 " instead of %#" PRIx64 ", %#" PRIx64 ", %" PRIu64,
		     p->name, e.err_type, e.err.sig.actual_value, e.err.sig.expected_value,
		     e.err.sig.offset, actual, expected, offset);
}
