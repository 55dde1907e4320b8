/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request from its arrival to its response.
 *
 *	READ, pipelined   key, RDMA WRITE, good response: posted together           SENDING
 *	READ, plain       key, RDMA WRITE; check; response                          TRANSFER
 *	WRITE, always     key, RDMA READ; check; file; response                     TRANSFER
 *
 * A WRITE cannot be pipelined here: its response promises that the data are in the file, and only
 * software puts them there.
 */
#include "session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"

/* ---- set-up ---- */

bool slots_create(struct session *s)
{
	size_t bytes = (size_t)s->wishes.max_blocks * dif_unit(&s->target->store.format);

	s->slots = calloc(s->wishes.depth, sizeof(*s->slots));
	s->units = malloc(s->wishes.depth * bytes);
	if (!s->slots || !s->units) {
		complain("no memory for %u requests of %zu bytes", s->wishes.depth, bytes);
		return false;
	}
	s->units_mr =
		ibv_reg_mr(s->e.pd, s->units, s->wishes.depth * bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!s->units_mr) {
		complain("cannot register %zu bytes: %m; is the limit of locked memory (ulimit -l) "
			 "too low?",
			 s->wishes.depth * bytes);
		return false;
	}
	for (uint32_t i = 0; i < s->wishes.depth; i++) {
		s->slots[i].units = s->units + i * bytes;
		s->slots[i].key = key_create(&s->e);
		if (!s->slots[i].key)
			return false;
	}
	return true;
}

void slots_destroy(struct session *s)
{
	for (uint32_t i = 0; s->slots && i < s->wishes.depth; i++)
		key_destroy(s->slots[i].key);
	if (s->units_mr)
		ibv_dereg_mr(s->units_mr);
	free(s->units);
	free(s->slots);
}

struct slot *slot_find_free(struct session *s)
{
	for (uint32_t i = 0; i < s->wishes.depth; i++)
		if (s->slots[i].state == SLOT_FREE)
			return &s->slots[i];
	return NULL;
}

static uint32_t slot_index(const struct session *s, const struct slot *slot)
{
	return (uint32_t)(slot - s->slots);
}

static uint32_t wire_bytes(const struct session *s, const struct slot *slot)
{
	return slot->blocks * dif_unit(&s->target->store.format);
}

/* ---- posting ---- */

static void add_response(struct session *s, struct slot *slot, enum work kind, unsigned flags)
{
	uint8_t message[PROTO_RESPONSE_BYTES];

	proto_put_response(message, &slot->response);
	s->e.wr->wr_id = work_id(kind, slot_index(s, slot));
	s->e.wr->wr_flags = IBV_SEND_SIGNALED | flags;
	ibv_wr_send(s->e.wr);
	ibv_wr_set_inline_data(s->e.wr, message, sizeof(message));
}

static void add_key(struct session *s, struct slot *slot)
{
	slot->use = (struct key_use){
		.format = &s->target->store.format,
		.memory = KEY_PROTECTED,
		.place = {.addr = (uintptr_t)slot->units,
			  .length = wire_bytes(s, slot),
			  .lkey = s->units_mr->lkey},
		.block = slot->block,
	};
	key_configure(&s->e, slot->key, &slot->use, work_id(WORK_KEY, slot_index(s, slot)));
}

static void commit(struct session *s)
{
	if (!endpoint_commit(&s->e))
		session_give_up(s, "work requests could not be posted");
}

void slot_answer(struct session *s, struct slot *slot, enum work kind)
{
	slot->state = SLOT_ANSWERED;
	endpoint_begin(&s->e);
	add_response(s, slot, kind, 0);
	commit(s);
}

static void refuse(struct session *s, struct slot *slot, enum proto_status status)
{
	slot->response.status = status;
	s->counts.refused++;
	session_say(s, "request for offset %" PRIu64 ", %u bytes refused: %s", slot->request.offset,
		    slot->request.length, proto_status_name(status));
	slot_answer(s, slot, WORK_RESPONSE);
}

static void begin_read(struct session *s, struct slot *slot)
{
	bool pipelined = s->e.pipelining;

	s->counts.reads++;
	if (store_read(&s->target->store, slot->block, slot->blocks, slot->units)) {
		refuse(s, slot, PROTO_MEDIUM_ERROR);
		return;
	}
	slot->state = pipelined ? SLOT_SENDING : SLOT_TRANSFER;
	endpoint_begin(&s->e);
	add_key(s, slot);
	s->e.wr->wr_id = work_id(WORK_TRANSFER, slot_index(s, slot));
	s->e.wr->wr_flags = pipelined ? 0 : IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(s->e.wr, slot->request.rkey, 0);
	ibv_wr_set_sge(s->e.wr, slot->key->lkey, 0, wire_bytes(s, slot));
	/* The fence is what the queue stops at, at the latest, if the data are bad. */
	if (pipelined)
		add_response(s, slot, WORK_RESPONSE, IBV_SEND_FENCE);
	commit(s);
}

static void begin_write(struct session *s, struct slot *slot)
{
	s->counts.writes++;
	slot->state = SLOT_TRANSFER;
	endpoint_begin(&s->e);
	add_key(s, slot);
	s->e.wr->wr_id = work_id(WORK_TRANSFER, slot_index(s, slot));
	s->e.wr->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_read(s->e.wr, slot->request.rkey, 0);
	ibv_wr_set_sge(s->e.wr, slot->key->lkey, 0, wire_bytes(s, slot));
	commit(s);
}

/* ---- a request's life ---- */

static enum proto_status judge(const struct session *s, const struct proto_request *r)
{
	const struct store *store = &s->target->store;
	uint32_t block_size = store->format.block_size;
	uint64_t size = store->blocks * block_size;

	if (r->operation != PROTO_READ && r->operation != PROTO_WRITE)
		return PROTO_UNKNOWN_OPERATION;
	if (r->operation == PROTO_WRITE && s->target->read_only)
		return PROTO_READ_ONLY;
	if (r->length == 0 || r->length % block_size || r->offset % block_size)
		return PROTO_UNALIGNED;
	if (r->length / block_size > s->wishes.max_blocks)
		return PROTO_TOO_LONG;
	if (r->offset > size || r->length > size - r->offset)
		return PROTO_OUT_OF_RANGE;
	return PROTO_OK;
}

void slot_begin(struct session *s, struct slot *slot, const struct proto_request *request)
{
	uint32_t block_size = s->target->store.format.block_size;
	enum proto_status status = judge(s, request);

	slot->request = *request;
	slot->response = (struct proto_response){.tag = request->tag, .status = PROTO_OK};
	slot->block = request->offset / block_size;
	slot->blocks = request->length / block_size;
	if (status != PROTO_OK)
		refuse(s, slot, status);
	else if (request->operation == PROTO_READ)
		begin_read(s, slot);
	else
		begin_write(s, slot);
}

void slot_spoil(struct session *s, struct slot *slot, const struct dif_error *error)
{
	bool read = slot->request.operation == PROTO_READ;

	slot->response.status = PROTO_BAD_BLOCK;
	slot->response.error = *error;
	s->counts.bad++;
	session_say(s,
		    "%s of blocks %" PRIu64 " to %" PRIu64 ": block %" PRIu64 " has a bad %s, "
		    "expected %04" PRIx64 ", actual %04" PRIx64 "%s",
		    read ? "read" : "write", slot->block, slot->block + slot->blocks - 1,
		    error->block, dif_part_name(error->part), error->expected, error->actual,
		    read ? "" : "; nothing written");
}

/* The data of a request whose response has not been posted are here, or there. */
static void transfer_done(struct session *s, struct slot *slot)
{
	struct dif_error error;

	if (!key_check(slot->key, &slot->use, &error)) {
		session_give_up(s, "a key could not be checked");
		return;
	}
	if (error.part != DIF_NO_ERROR) {
		slot_spoil(s, slot, &error);
	} else if (slot->request.operation == PROTO_WRITE &&
		   store_write(&s->target->store, slot->block, slot->blocks, slot->units)) {
		refuse(s, slot, PROTO_MEDIUM_ERROR);
		return;
	}
	slot_answer(s, slot, WORK_RESPONSE);
}

void slot_completed(struct session *s, struct slot *slot, enum work kind)
{
	switch (kind) {
	case WORK_TRANSFER:
		transfer_done(s, slot);
		break;
	case WORK_RESPONSE:
		/* Pipelined and bad: this was the NOP that the good response has become. */
		if (slot->response.status == PROTO_BAD_BLOCK && s->e.pipelining &&
		    slot->request.operation == PROTO_READ)
			break;
		slot->state = SLOT_FREE;
		session_next(s);
		break;
	case WORK_BAD_RESPONSE:
		slot->state = SLOT_FREE;
		session_next(s);
		break;
	default: /* nothing else asks for a completion */
		break;
	}
}
