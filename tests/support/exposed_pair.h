/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes' devices, on two hosts of a fabric in this process, and an RC connection between
 * them.  The target's memory lies open to the initiator, which executes RDMA by itself; what it does
 * not, goes by packets.
 */
#pragma once

#include "adapter_device.h"
#include "exposure/expose.h"
#include "test_life.h"
#include "wire/tap.h"

#define EXPOSED_PAIR_BYTES 4096u
#define EXPOSED_PAIR_PORTS 2u
/* Of the target's file, whose first chunk alone has pages. */
#define EXPOSED_PAIR_FILE_BYTES (2ull << SEGMENT_CHUNK_SHIFT)
#define EXPOSED_PAIR_RIGHTS                                                       \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
	 IB_ACCESS_REMOTE_ATOMIC)

struct exposed_side {
	struct test_device device;
	struct exposed_pair *pair;
	uint16_t slot;
};

/* The target's queue pair and data, in a file that it lays open. */
struct exposed_target {
	struct device_qp qp;
	uint8_t data[EXPOSED_PAIR_BYTES];
};

struct exposed_pair {
	enum key_way way; /* how the initiator comes to the data */
	struct registry *registry;
	struct subnet subnet;
	struct slot *slots;
	int channel;
	uint32_t next_chunk;
	uint8_t takes_reads; /* so many at once, who is connected from now on */
	struct exposed_side initiator, target;
	struct device_qp from;
	struct segment_ref file; /* that holds 'to' */
	struct exposed_target *to;
	uint8_t source[EXPOSED_PAIR_BYTES];
	uint32_t source_key, target_key;
	struct mkey *mr[2];
	struct test_life life; /* the target's thread that the kernel way addresses */
};

/* Of RC, or of that type. */
struct exposed_pair *exposed_pair_up(enum key_way way);
struct exposed_pair *exposed_pair_up_of(enum key_way way, enum ib_qp_type type);
void exposed_pair_down(struct exposed_pair *p);

/* From RESET to RTS, to the peer at the port of that slot. */
void exposed_pair_connect(struct exposed_pair *p, struct device_qp *q, struct device_qp *peer,
			  uint16_t peer_slot);
/* Lays open the target's data under a key. */
void exposed_pair_data(struct exposed_pair *p, struct mkey *key);
struct expose *exposed_pair_expose(struct exposed_pair *p);
/* Maps a part of the target's file. */
void *exposed_pair_map(struct exposed_pair *p, uint64_t offset, size_t bytes);
/* What the target's responder says of itself, and how many messages it has executed. */
struct qp_block *exposed_pair_block(struct exposed_pair *p);
uint32_t exposed_pair_msn(struct exposed_pair *p);

/* A thread of the target holds the word that says that it lives, until it is told not to. */
void exposed_pair_live(struct exposed_pair *p);
void exposed_pair_die(struct exposed_pair *p);

/* A request of the initiator between source and data, from the beginning of both; signaled. */
void exposed_pair_post(struct exposed_pair *p, uint8_t opcode, uint32_t imm, uint32_t len);
/* Packets go both ways, for a while. */
void exposed_pair_progress(struct exposed_pair *p);
/* Takes the next completion of the initiator, or of the target, which is of that kind. */
void exposed_pair_sent(struct exposed_pair *p, uint8_t op);
void exposed_pair_received(struct exposed_pair *p, uint8_t op, uint32_t bytes);
uint64_t exposed_pair_counted(const struct exposed_side *s, enum port_counter c);

/* Of both sides' ports data and packets sent and received, then WRITEs and READs that the target has taken: what
 * has been added since 'got' was filled the last time. */
#define EXPOSED_PAIR_COUNTS 10u
void exposed_pair_count(const struct exposed_pair *p, uint64_t got[EXPOSED_PAIR_COUNTS]);

/* A look at packets that sees nothing: while there is one, the initiator does nothing alone. */
void exposed_pair_ignore(struct tap *t, enum tap_point at, uint64_t ns, uint32_t port_row,
			 const struct pkt *p);
