/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target's side of one client's connection, from its hello to its end.  A session has an
 * adapter context of its own, so that asynchronous events need no sorting, and belongs to one
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "endpoint.h"
#include "key.h"
#include "protocol.h"
#include "store.h"

/* What all sessions share. */
struct target {
	struct store store;
	const char *device;
	int port, gid_index;
	bool read_only;
	bool plain;  /* pipelining for nobody */
	int stop_fd; /* readable: everybody shall end */
};

enum slot_state {
	SLOT_FREE,
	SLOT_TRANSFER,	/* data are under way; the response waits until they are checked */
	SLOT_SENDING,	/* pipelined: data and, behind a fence, the good response are posted */
	SLOT_CANCELLED, /* pipelined: the good response has become a NOP, the bad one comes next */
	SLOT_ANSWERED,	/* nothing but the final response is outstanding */
};

/* Room for one request: staging buffer and key are its own. */
struct slot {
	enum slot_state state;
	struct proto_request request;
	uint64_t block; /* of the request */
	uint32_t blocks;
	struct proto_response response;
	uint8_t *units;
	struct mlx5dv_mkey *key;
	struct key_use use; /* of the key, for this request */
};

/* The kinds of work requests, in the upper half of wr_id; slot or receive buffer in the lower.
 * Cancelling takes all work requests of one wr_id, so a response has one that nothing else has. */
enum work { WORK_KEY, WORK_TRANSFER, WORK_RESPONSE, WORK_BAD_RESPONSE, WORK_RECEIVE };

static inline uint64_t work_id(enum work kind, uint32_t index)
{
	return (uint64_t)kind << 32 | index;
}

struct session {
	struct target *target;
	unsigned number; /* for messages */
	int tcp;
	bool over;
	struct endpoint e;
	struct proto_hello wishes;

	struct slot *slots; /* wishes.depth of them */
	uint8_t *units;	    /* all slots' buffers */
	struct ibv_mr *units_mr;

	/* Twice the depth: a client may send the next request before the adapter here has reported
	 * that the previous response arrived.  Requests that find no slot wait in their buffers. */
	uint8_t *messages;
	struct ibv_mr *messages_mr;
	uint32_t waiting[2 * PROTO_DEPTH_MAX], waiting_first, waiting_count;

	struct {
		uint64_t reads, writes, bad, refused, drains;
	} counts;
};

/* Serves a client until it goes; closes tcp. */
void session_run(struct target *target, int tcp, unsigned number);

/* A line about this client on stdout; the second also ends the session. */
void session_say(const struct session *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void session_give_up(struct session *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Handles completions until there are none; whether there were any. */
bool session_poll(struct session *s);
/* A slot has become free. */
void session_next(struct session *s);

bool slots_create(struct session *s);
void slots_destroy(struct session *s);
struct slot *slot_find_free(struct session *s);
void slot_begin(struct session *s, struct slot *slot, const struct proto_request *request);
void slot_completed(struct session *s, struct slot *slot, enum work kind);
/* Notes the outcome of a key's check and says so. */
void slot_spoil(struct session *s, struct slot *slot, const struct dif_error *error);
/* Posts slot->response. */
void slot_answer(struct session *s, struct slot *slot, enum work kind);

/* The queue pair has stopped at a signature error (IBV_EVENT_SQ_DRAINED). */
void drain_handle(struct session *s);
