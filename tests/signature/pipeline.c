// SPDX-License-Identifier: BSD-2-Clause
/* See pipeline.h. */
#include "pipeline.h"

#include <string.h>

static const struct domain crc = {CRC32, MLX5DV_BLOCK_SIZE_512, false, 0, 0, 0};

static uint8_t *block_of(struct connected_pair *s, int key)
{
	return s->local.memory + LOCAL_AT + (uint32_t)key * PIPELINE_UNIT;
}

static struct key_conf conf_of(int key)
{
	struct key_conf c = signature_conf(&crc, NULL, PIPELINE_UNIT, 0xff);

	c.piece[0].at = LOCAL_AT + (uint32_t)key * PIPELINE_UNIT;
	return c;
}

void pipeline_open(struct connected_pair *s, bool pipelining, int keys)
{
	struct setup setup = {.pipelining = pipelining, .max_send_wr = 64, .own_cqs = true};

	pair_open(s, &setup);
	for (int k = 0; k < keys; k++) {
		struct key_conf c = conf_of(k);

		signature_key(s, k);
		configure(&s->local, k, &c);
		pipeline_fill(s, k, true);
	}
}

void pipeline_fill(struct connected_pair *s, int key, bool good)
{
	uint8_t *block = block_of(s, key);

	fill_random(block, PIPELINE_BLOCK, (uint64_t)key + 1);
	reference_signature(&crc, 0, block, block + PIPELINE_BLOCK);
	block[17] ^= good ? 0 : 0x40;
}

void pipeline_arm(struct connected_pair *s, int key)
{
	struct key_conf c = conf_of(key);

	c.unsignaled = true;
	SAME(try_configure(&s->local, key, &c), 0);
}

struct request pipeline_write(struct connected_pair *s, int key, uint64_t id, unsigned flags)
{
	return (struct request){
		.opcode = IBV_WR_RDMA_WRITE,
		.id = id,
		.flags = flags,
		.slices = 1,
		.slice = {{key, 0, PIPELINE_BLOCK}},
		.rkey = s->remote.address.rkey,
		.raddr = s->remote.address.base + REMOTE_AT + (uint32_t)key * PIPELINE_BLOCK,
	};
}

struct request pipeline_response(struct connected_pair *s, uint64_t id, unsigned flags)
{
	(void)s;
	return (struct request){
		.opcode = IBV_WR_SEND,
		.id = id,
		.flags = flags,
		.slices = 1,
		.slice = {{ORDER_WHOLE, 64, 16}},
	};
}

void pipeline_expect_receive(struct connected_pair *s, uint64_t id)
{
	receive(&s->remote, id, (struct slice){ORDER_WHOLE, 64, 16});
}

unsigned pipeline_drained(struct connected_pair *s, struct ibv_wc *wc, unsigned max)
{
	unsigned n;

	expect_drained(&s->local);
	SAME(state_of(&s->local), IBV_QPS_SQD);
	n = completions(&s->local, SENDS, wc, max, 0);
	return n;
}

void pipeline_resume(struct connected_pair *s)
{
	SAME(change_state(&s->local, IBV_QPS_RTS, true), 0);
}

void pipeline_open_stopped(struct connected_pair *s)
{
	struct ibv_wc wc[4];
	struct request w;

	pipeline_open(s, true, 1);
	pipeline_fill(s, 0, false);
	w = pipeline_write(s, 0, 1, 0);
	post(&s->local, &w);
	SAME(pipeline_drained(s, wc, 4), 0);
}
