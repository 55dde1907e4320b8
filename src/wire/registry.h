/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all processes of a fabric see of it without asking, in two shared segments.
 *
 * struct registry: written by the daemon alone, mapped read-only by clients.  Ports, their
 * addresses and states, and which process slot owns which range of QP numbers.
 *
 * struct slot: one per client process, mapped read-write by all: how to wake it, who has sent it
 * something, and its port counters (the daemon adds up the counters of all slots, so that no
 * cache line is fought for on the data path).
 *
 * Single fields are read with acquire order and written with release order.  A row is filled before
 * its index is published.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "prm/ib.h"

#define REGISTRY_MAGIC	 0x73686361u /* "shca" */
#define REGISTRY_VERSION 5u

#define REGISTRY_CHUNK_SHIFT 10 /* numbers are handed out 1024 at a time */
#define REGISTRY_CHUNKS	     (1u << (24 - REGISTRY_CHUNK_SHIFT))
#define REGISTRY_GIDS	     32u
#define REGISTRY_PKEYS	     32u
#define REGISTRY_LIDS	     0xc000u /* unicast LIDs */
#define REGISTRY_GID_HASH    65536u  /* open addressing, power of two */
#define REGISTRY_SLOTS	     1024u
#define REGISTRY_NO_PORT     0xffffffffu

enum gid_type { GID_IB_ROCE_V1, GID_ROCE_V2 };

struct registry_gid {
	union ib_gid gid;
	uint8_t type; /* enum gid_type */
	uint8_t valid;
	uint8_t reserved[6];
};

/* One HCA port of one host. */
struct registry_port {
	uint32_t host; /* index of the host in the topology */
	uint32_t ethernet;
	_Atomic(uint32_t) state; /* enum ib_port_state */
	_Atomic(uint32_t) lid;
	uint32_t lmc;
	uint32_t sm_lid;
	uint64_t node_guid;
	uint64_t port_guid;
	uint8_t mac[6];
	uint8_t reserved[2];
	char hca[16];	 /* "mlx5_0" */
	char netdev[16]; /* Ethernet: the interface of this machine, or empty */
	uint16_t pkeys[REGISTRY_PKEYS];
	struct registry_gid gids[REGISTRY_GIDS];
};

struct registry_gid_slot {
	union ib_gid gid;
	_Atomic(uint32_t) port_plus_1;
	uint32_t reserved;
};

struct registry {
	uint32_t magic;
	uint32_t version;
	uint32_t nports;
	uint32_t model;					   /* of all devices, see prm/model.h */
	_Atomic(uint64_t) slots_used[REGISTRY_SLOTS / 64]; /* bit s%64 of word s/64: slot s */
	_Atomic(uint16_t) qpn_slot_plus_1[REGISTRY_CHUNKS];
	_Atomic(uint16_t) lid_port_plus_1[REGISTRY_LIDS];
	struct registry_gid_slot gid_hash[REGISTRY_GID_HASH];
	struct registry_port ports[];
};

/* Counters of one port, as sysfs counters and hw_counters name them. */
enum port_counter {
	PORT_XMIT_DATA, /* 4-byte words, as in PortCounters */
	PORT_RCV_DATA,
	PORT_XMIT_PACKETS,
	PORT_RCV_PACKETS,
	PORT_MULTICAST_XMIT_PACKETS,
	PORT_MULTICAST_RCV_PACKETS,
	PORT_XMIT_DISCARDS,
	PORT_RCV_ERRORS,
	PORT_LINK_DOWNED, /* the daemon counts it, in no slot */
	HW_DUPLICATE_REQUEST,
	HW_IMPLIED_NAK_SEQ_ERR,
	HW_LOCAL_ACK_TIMEOUT_ERR,
	HW_OUT_OF_BUFFER,
	HW_OUT_OF_SEQUENCE,
	HW_PACKET_SEQ_ERR,
	HW_REQ_CQE_ERROR,
	HW_REQ_CQE_FLUSH_ERROR,
	HW_REQ_REMOTE_ACCESS_ERRORS,
	HW_REQ_REMOTE_INVALID_REQUEST,
	HW_RESP_CQE_ERROR,
	HW_RESP_CQE_FLUSH_ERROR,
	HW_RESP_LOCAL_LENGTH_ERROR,
	HW_RESP_REMOTE_ACCESS_ERRORS,
	HW_RNR_NAK_RETRY_ERR,
	HW_RX_ATOMIC_REQUESTS,
	HW_RX_READ_REQUESTS,
	HW_RX_WRITE_REQUESTS,
	PORT_COUNTERS, /* those that are stored */
	/* derived by the daemon: not multicast */
	PORT_UNICAST_XMIT_PACKETS,
	PORT_UNICAST_RCV_PACKETS,
};

#define SLOT_HCAS	   4u /* devices of one host with counters */
#define SLOT_THREAD_SHARDS 8u /* one per counting thread, the first shared by the rest */
#define SLOT_REMOTE_SHARDS 4u /* of peers that do our part of a request as well */
#define SLOT_SHARDS	   (SLOT_THREAD_SHARDS + SLOT_REMOTE_SHARDS)
#define SLOT_GROUP_WORDS   4u

/*
 * Wake-up protocol of a slot (its engine thread and whoever polls in that process):
 *   SLOT_AWAKE   the engine is looking; a sender does nothing more
 *   SLOT_POLLED  a thread of the program polls; the engine naps and checks on it
 *   SLOT_ASLEEP  a sender changes the word to SLOT_AWAKE and wakes the futex
 * A sender stores its packet, sets its inbox bit, then (after a full fence) reads the word; the
 * engine stores ASLEEP, then (after a full fence) looks at the inbox once more before it waits.
 */
enum slot_wake { SLOT_AWAKE, SLOT_POLLED, SLOT_ASLEEP };

struct slot {
	_Atomic(uint32_t) wake;	 /* enum slot_wake; futex */
	_Atomic(uint32_t) alive; /* generation, 0 while the slot is free */
	int32_t pid;
	uint32_t reserved;
	/* Descriptors of the process's shared segments, see wire/expose.h; 0: none. */
	_Atomic(int32_t) expose_fd_plus_1;
	_Atomic(int32_t) arena_fd_plus_1;
	/* The slot + 1 of the peer that counts in that far shard, 0: free. */
	_Atomic(uint32_t) remote_shard[SLOT_REMOTE_SHARDS];
	/* Bit s%64 of word s/64: slot s has put something into its channel to us.  Summary: word w
	 * may be non-zero. */
	cacheline_aligned _Atomic(uint64_t) inbox_summary;
	_Atomic(uint64_t) inbox[REGISTRY_SLOTS / 64];
	/* What the process listens to beside packets for its queue pairs, see wire/multicast.c. */
	cacheline_aligned _Atomic(uint64_t) groups[SLOT_GROUP_WORDS];
	/* See wire/counter_shard.h; unicast packets are what is not multicast. */
	cacheline_aligned _Atomic(uint64_t) counters[SLOT_SHARDS][SLOT_HCAS][PORT_COUNTERS];
};

static_assert(REGISTRY_SLOTS / 64 <= 64, "one summary word");

static inline uint32_t registry_gid_hash(const union ib_gid *gid)
{
	uint64_t h =
		(gid->half[0] ^ (gid->half[1] * 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;

	return (uint32_t)(h >> 40) & (REGISTRY_GID_HASH - 1);
}

/* The port that owns a GID, or REGISTRY_NO_PORT. */
static inline uint32_t registry_port_by_gid(const struct registry *r, const union ib_gid *gid)
{
	for (uint32_t i = registry_gid_hash(gid), n = 0; n < REGISTRY_GID_HASH;
	     i = (i + 1) & (REGISTRY_GID_HASH - 1), n++) {
		uint32_t p =
			atomic_load_explicit(&r->gid_hash[i].port_plus_1, memory_order_acquire);

		if (!p)
			break;
		if (r->gid_hash[i].gid.half[0] == gid->half[0] &&
		    r->gid_hash[i].gid.half[1] == gid->half[1])
			return p - 1;
	}
	return REGISTRY_NO_PORT;
}

static inline uint32_t registry_port_by_lid(const struct registry *r, uint16_t lid)
{
	if (lid >= REGISTRY_LIDS)
		return REGISTRY_NO_PORT;
	/* 0 (no port) becomes REGISTRY_NO_PORT */
	return (uint32_t)atomic_load_explicit(&r->lid_port_plus_1[lid], memory_order_acquire) - 1;
}
