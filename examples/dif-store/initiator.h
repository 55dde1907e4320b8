/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's side of a connection.  Each request under way is a flight with memory and a
 * signature key of its own, through which the adapter here checks what the target sends, or makes
 * and checks what the target fetches.  Functions that fail complain on stderr.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "endpoint.h"
#include "key.h"
#include "protocol.h"

struct initiator_options {
	const char *host;
	unsigned tcp_port;
	const char *device;
	int port, gid_index;
	bool pipelined;
	uint32_t depth, max_blocks;
	enum key_memory memory;
};

enum flight_state { FLIGHT_FREE, FLIGHT_UNDER_WAY, FLIGHT_DONE };

struct flight {
	enum flight_state state;
	bool sent, answered;
	struct proto_request request;
	uint64_t block;
	uint32_t blocks;
	uint64_t since_ns, took_ns;
	uint8_t *units; /* memory of max_blocks blocks */
	struct mlx5dv_mkey *key;
	struct key_use use; /* of the key, for this request */
	/* the outcome */
	struct proto_response response;
	struct dif_error here; /* what the adapter on this side found */
};

struct initiator {
	struct initiator_options options;
	int tcp;
	struct endpoint e;
	struct proto_welcome target;
	struct flight *flights; /* options.depth of them */
	uint8_t *units;
	struct ibv_mr *units_mr;
	uint8_t *messages;
	struct ibv_mr *messages_mr;
	uint32_t done[PROTO_DEPTH_MAX], done_first, done_count;
	uint32_t under_way;
};

bool initiator_open(struct initiator *i, const struct initiator_options *o);
void initiator_close(struct initiator *i);

/* Bytes that a block takes in the memory of a flight. */
uint32_t initiator_unit(const struct initiator *i);
/* NULL if all are in use. */
struct flight *initiator_free_flight(struct initiator *i);
/* Sends a request; for a write, f->units holds the data.  operation may be any number. */
bool initiator_submit(struct initiator *i, struct flight *f, uint8_t operation, uint64_t offset,
		      uint32_t length);
/* Waits for an outcome; NULL on failure.  The flight is the caller's until initiator_release. */
struct flight *initiator_reap(struct initiator *i);
void initiator_release(struct flight *f);
