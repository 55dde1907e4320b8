/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all processes of a fabric see of each other without asking, in two shared segments.  (A
 * third holds the ports and their addresses: subnet/subnet.h.)
 *
 * struct registry: only the daemon writes it, and clients map it read-only.  It says which process
 * slot is on which host, and which slot owns which range of QP numbers.
 *
 * struct slot: one per client process, mapped read-write by all: how to wake it, who has sent it
 * something, and its port counters (the daemon adds up the counters of all slots, so that processes
 * do not fight for a cache line on the data path).
 *
 * struct traffic: one per client process, behind all slots, mapped by that process alone.  It says
 * what the process's ports have sent, by destination; from that the daemon knows what switches on
 * the way have carried.
 *
 * Readers load single fields with acquire order; writers store them with release order.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "prm/ib.h"
#include "registry/fault.h"

#define REGISTRY_MAGIC	 0x73686361u /* "shca" */
#define REGISTRY_VERSION 28u

#define REGISTRY_CHUNK_SHIFT 10 /* the daemon hands numbers out 1024 at a time */
#define REGISTRY_CHUNKS	     (1u << (24 - REGISTRY_CHUNK_SHIFT))
#define REGISTRY_SLOTS	     1024u

struct registry {
	uint32_t magic;
	uint32_t version;
	uint32_t model; /* of all devices, see prm/model.h */
	/* Number of processes that have ended; rises after their slots show it. */
	_Atomic(uint32_t) ends;
	_Atomic(uint64_t) slots_used[REGISTRY_SLOTS / 64]; /* bit s%64 of word s/64: slot s */
	/* The host on which the slot's process runs. */
	_Atomic(uint32_t) slot_host_plus_1[REGISTRY_SLOTS];
	_Atomic(uint16_t) qpn_slot_plus_1[REGISTRY_CHUNKS];
	struct fault_rules faults;
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
	PORT_PKEY_VIOLATIONS, /* as in PortInfo: packets of another partition */
	PORT_QKEY_VIOLATIONS,
	PORT_LINK_DOWNED, /* only the daemon counts it, in no slot */
	HW_DUPLICATE_REQUEST,
	HW_IMPLIED_NAK_SEQ_ERR,
	HW_LOCAL_ACK_TIMEOUT_ERR,
	HW_NP_CNP_SENT,
	HW_NP_ECN_MARKED,
	HW_OUT_OF_BUFFER,
	HW_OUT_OF_SEQUENCE,
	HW_PACKET_SEQ_ERR,
	HW_REQ_CQE_ERROR,
	HW_REQ_CQE_FLUSH_ERROR,
	HW_REQ_REMOTE_ACCESS_ERRORS,
	HW_REQ_REMOTE_INVALID_REQUEST,
	HW_REQ_RNR_RETRIES_EXCEEDED,
	HW_REQ_TRANSPORT_RETRIES_EXCEEDED,
	HW_RESP_CQE_ERROR,
	HW_RESP_CQE_FLUSH_ERROR,
	HW_RESP_LOCAL_LENGTH_ERROR,
	HW_RNR_NAK_RETRY_ERR,
	HW_ROCE_ADP_RETRANS,
	HW_RP_CNP_HANDLED,
	HW_RX_ATOMIC_REQUESTS,
	HW_RX_ICRC_ENCAPSULATED,
	HW_RX_READ_REQUESTS,
	HW_RX_WRITE_REQUESTS,
	PORT_COUNTERS, /* the number of stored counters */
	/* the daemon derives these: all packets that are not multicast */
	PORT_UNICAST_XMIT_PACKETS,
	PORT_UNICAST_RCV_PACKETS,
};

#define SLOT_PORTS	   4u /* of one host */
#define SLOT_THREAD_SHARDS 8u /* one per counting thread, the first shared by the rest */
#define SLOT_REMOTE_SHARDS 8u /* for threads of peers that do our part of a request as well */
#define SLOT_SHARDS	   (SLOT_THREAD_SHARDS + SLOT_REMOTE_SHARDS)
/* Threads of a process that may be between sending a packet and showing it. */
#define SLOT_SENDING	 32u
#define SLOT_GROUP_WORDS 4u
#define SLOT_FLOWS	 256u

/* What happens to a flow whose congestion is controlled, numbered as the DPA's programs number
 * it. */
enum flow_event {
	FLOW_CNP = 2, /* the receiver has heard of congestion, and tells us */
	FLOW_TX = 3,
	FLOW_NACK = 5,
	FLOW_RTT = 6, /* a probe has come back */
};
enum flow_nack { FLOW_NACK_RNR = 1, FLOW_NACK_SEQUENCE = 2 };

/* A rate is a fraction of the port's speed, with this many bits. */
#define FLOW_RATE_BITS 20u
/* What a flow has sent is one number, so that a reader takes the packets together with their bytes:
 * this many low bits count bytes, the bits above count packets. */
#define FLOW_SENT_BITS 40u

static inline uint64_t flow_sent_bytes(uint64_t sent)
{
	return sent & ((1ull << FLOW_SENT_BITS) - 1);
}

static inline uint32_t flow_sent_packets(uint64_t sent)
{
	return (uint32_t)(sent >> FLOW_SENT_BITS);
}

/*
 * A flow, which is a queue pair that sends.  Its process has the row and adds up what happens; the
 * process that controls the port takes that and sets the rate.  Both do so without a lock: the
 * second takes a number by exchanging it for 0.
 */
struct slot_flow {
	cacheline_aligned _Atomic(uint32_t) qpn; /* 0: the row is free */
	_Atomic(uint32_t) port;			 /* a port of the slot's host, from 0 */
	_Atomic(uint32_t) begun;		 /* number of flows that have had the row */
	_Atomic(uint32_t) happened;		 /* a bit for each enum flow_event */
	_Atomic(uint32_t) cnps, nacks, nack_kind;
	_Atomic(uint64_t) sent; /* see FLOW_SENT_BITS */
	/* The controlling process sets these two. */
	_Atomic(uint32_t) rate;	  /* 0: as fast as the port */
	_Atomic(uint32_t) probes; /* number of probes that it has asked for */
	_Atomic(uint32_t) entry_plus_1;
	_Atomic(uint64_t) first_ns; /* when the first of the things in 'happened' did */
	_Atomic(uint64_t) probe_sent_ns, probe_received_ns, probe_answered_ns, probe_back_ns;
};

/*
 * Who drives the device of a slot's process (docs/design/progress.md), and so what a sender does after
 * it has stored a packet and set its inbox bit, behind a full fence:
 *   SLOT_NOBODY   changes the word and wakes the engine by the futex, in one call: to SLOT_ENGINE, or, if
 *                 a thread is registered in 'waiter', to SLOT_PROGRAM, and then wakes that thread, too
 *   SLOT_PROGRAM  wakes the thread that is registered in 'waiter', if one is (waiter_wake); a thread
 *                 that polls finds the packet itself
 *   SLOT_ENGINE   nothing
 *
 * The engine stores SLOT_NOBODY, then (after a full fence) looks at the inbox once more before it
 * sleeps.  A thread stores 'waiter', then does the same.
 */
enum slot_driver { SLOT_ENGINE, SLOT_PROGRAM, SLOT_NOBODY };

/* How the registered thread sleeps: at the slot's FIFO, or at 'waiter' itself, a futex.  The other bits
 * are the thread's number. */
#define SLOT_WAITS_AT_FIFO 0x40000000u
#define SLOT_WAITS_AT_WORD 0x80000000u

/* In slot.observers: there are faults that do not concern objects alone (registry/fault.h).  The daemon
 * sets it. */
#define SLOT_HAS_FAULTS 0x80000000u

/* What a carrier counts: frames. */
enum carried {
	CARRIED_IN,
	CARRIED_OUT,
	CARRIED_IN_DROPPED,
	CARRIED_OUT_DROPPED,
	CARRIED_IN_BAD,	     /* RoCE frames with wrong headers or a wrong CRC; dropped too */
	CARRIED_IN_CHECKSUM, /* those of them that have a wrong CRC */
	CARRIED_IN_FOREIGN,  /* from addresses that are no peers of the tie; dropped too */
	CARRIED_COUNTS,
};

struct slot {
	_Atomic(uint32_t) driver; /* enum slot_driver; futex */
	_Atomic(uint32_t) waiter; /* 0: no thread is registered */
	_Atomic(uint32_t) alive;  /* generation; 0 while the slot is free */
	int32_t pid;
	/* Number of those who see its packets (wire/tap.h), and SLOT_HAS_FAULTS. */
	_Atomic(uint32_t) observers;
	/* The FIFO into which peers write (wire/wakeup_fifo.h), plus 1; 0: none. */
	_Atomic(int32_t) wakeup_fd_plus_1;
	_Atomic(uint64_t) wakeup_id;	  /* of the file that must be there */
	_Atomic(uint32_t) wakeups_failed; /* a peer could not write, so nobody relies on the FIFO */
	/* The descriptor of what the process lays open (exposure/expose.h), plus 1; 0: none. */
	_Atomic(int32_t) expose_fd_plus_1;
	_Atomic(uint64_t) expose_id; /* of the file that must be there (base/descriptor.h) */
	/* How often peers have taken back files that the process may have mapped. */
	_Atomic(uint32_t) files_ended;
	/* The peer that counts in each remote shard (exposure/expose.c); 0: the shard is free. */
	_Atomic(uint32_t) remote_shard[SLOT_REMOTE_SHARDS];
	/* Bit s%64 of word s/64: slot s has put something into its channel to us.  Bit w of the
	 * summary: word w may be non-zero. */
	cacheline_aligned _Atomic(uint64_t) inbox_summary;
	_Atomic(uint64_t) inbox[REGISTRY_SLOTS / 64];
	/* What the process listens to besides packets for its queue pairs, see wire/multicast.c. */
	cacheline_aligned _Atomic(uint64_t) groups[SLOT_GROUP_WORDS];
	/* Not 0: the process is no program, but carries the frames of the port of this row plus 1
	 * (tie/carrier.h). */
	_Atomic(uint32_t) carries_plus_1;
	_Atomic(uint32_t) carried_all; /* all frames that will ever come in have come */
	_Atomic(uint64_t) carried[CARRIED_COUNTS];
	/* The descriptor of what a carrier knows of other machines (registry/tied_peers.h), plus 1; 0:
	 * none. */
	_Atomic(int32_t) peers_fd_plus_1;
	_Atomic(uint64_t) peers_id; /* of the file that must be there (base/descriptor.h) */
	/* See wire/counter_shard.h.  Unicast packets are those that are not multicast. */
	cacheline_aligned _Atomic(uint64_t) counters[SLOT_SHARDS][SLOT_PORTS][PORT_COUNTERS];
	/*
	 * Control of congestion, see wire/flow_control.h.  flows_by: the process that controls the
	 * flows of each of our ports (its generation, how often it began to control, and its slot);
	 * 0: nobody does.  flows_controlled: the ports of our host that we control, for all its
	 * processes.
	 */
	cacheline_aligned _Atomic(uint64_t) flows_by[SLOT_PORTS];
	_Atomic(uint32_t) flows_controlled;
	/* See wire/tap.h.  sniffs: the ports of our host whose packets we want to see.
	 * sniffers: the slots of processes that may want to see ours. */
	_Atomic(uint32_t) sniffs;
	_Atomic(uint64_t) sniffers[REGISTRY_SLOTS / 64];
	/* Rows that the controlling process has to look at. */
	_Atomic(uint64_t) flows_happened[SLOT_FLOWS / 64];
	/* Slots that we have to look at if we control. */
	_Atomic(uint64_t) flow_inbox[REGISTRY_SLOTS / 64];
	struct slot_flow flows[SLOT_FLOWS];
	struct fault_counts faults[FAULT_RULES];
	/* When threads began to send a packet that taps have not seen yet (CLOCK_REALTIME), while the
	 * process is observed; 0: nothing.  See wire/tap.h. */
	cacheline_aligned _Atomic(uint64_t) sending_since[SLOT_SENDING];
};

static_assert(REGISTRY_SLOTS / 64 <= 61, "one summary word, with room for other marks");

/* Names a process by its generation and its slot, for as long as the process lives. */
static inline uint64_t slot_word(struct slot *slots, uint32_t slot)
{
	return (uint64_t)atomic_load(&slots[slot].alive) << 32 | slot;
}

/* The process that such a word names, if that process lives; else NULL. */
static inline struct slot *slot_of_word(struct slot *slots, uint64_t word)
{
	struct slot *s = &slots[(uint32_t)word % REGISTRY_SLOTS];

	return word >> 32 && atomic_load_explicit(&s->alive, memory_order_acquire) == word >> 32
		       ? s
		       : NULL;
}

#define TRAFFIC_CELLS 2048u /* as many peers as there are slots, there and back */
#define TRAFFIC_INDEX (2 * TRAFFIC_CELLS)
#define TRAFFIC_TAKEN (UINT64_C(1) << 63)
#define TRAFFIC_ROWS  0xffffffu
#define TRAFFIC_ALIGN 4096u /* each process maps its own by itself */

struct traffic_count {
	_Atomic(uint64_t) words; /* in words of 4 octets */
	_Atomic(uint64_t) packets;
};

/*
 * A cell stands for a port, a LID that the port sends to and a service level; if a switch's port on
 * the way does not let the packets pass, also for their P_Key.  The process takes cells in their
 * order and never gives one back (wire/traffic.h); two cells may stand for the same.
 */
struct traffic {
	_Alignas(TRAFFIC_ALIGN) _Atomic(uint32_t) used; /* number of cells used */
	cacheline_aligned _Atomic(uint16_t)
		index[TRAFFIC_INDEX]; /* cell plus one, by hash of the key */
	/* TRAFFIC_TAKEN | SL << 56 | P_Key << 40 | row of the port << 16 | LID; 0: not stored
	 * yet. */
	cacheline_aligned _Atomic(uint64_t) key[TRAFFIC_CELLS];
	cacheline_aligned struct traffic_count count[SLOT_THREAD_SHARDS][TRAFFIC_CELLS];
	/* The daemon writes it: what it has already added to counters of ports, by cell. */
	struct traffic_count settled[TRAFFIC_CELLS];
};

/* Where a slot's traffic lies in the segment of the slots; for the slot past the last one, the
 * segment's size. */
static inline uint64_t registry_traffic_offset(uint32_t slot)
{
	uint64_t slots = (uint64_t)REGISTRY_SLOTS * sizeof(struct slot);

	return (slots + TRAFFIC_ALIGN - 1) / TRAFFIC_ALIGN * TRAFFIC_ALIGN +
	       (uint64_t)slot * sizeof(struct traffic);
}

/* pkey: 0, or the P_Key of packets that a switch does not let pass. */
static inline uint64_t traffic_key(uint32_t row, uint16_t dlid, uint8_t sl, uint16_t pkey)
{
	return TRAFFIC_TAKEN | (uint64_t)(sl & 15) << 56 | (uint64_t)pkey << 40 |
	       (uint64_t)(row & TRAFFIC_ROWS) << 16 | dlid;
}

static inline uint32_t traffic_key_row(uint64_t key)
{
	return key >> 16 & TRAFFIC_ROWS;
}

static inline uint16_t traffic_key_pkey(uint64_t key)
{
	return (uint16_t)(key >> 40);
}

static inline uint8_t traffic_key_sl(uint64_t key)
{
	return key >> 56 & 15;
}
