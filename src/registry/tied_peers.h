/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machines that a port tied to a UDP socket exchanges packets with.  The carrier writes this
 * memory, and it alone; 'softhca fabric status' and programs that explain a failure read it
 * (wire/tied_peers.h).  A row never moves, and belongs to its address for as long as the tie lasts.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "prm/ib.h"

#define TIED_PEERS 16384u

/* Counts of packets, and of their octets from the IP header on. */
enum tied_peer_count {
	PEER_IN,
	PEER_IN_BYTES,
	PEER_OUT,
	PEER_OUT_BYTES,
	PEER_IN_DROPPED,  /* taken by no queue pair here */
	PEER_IN_CHECKSUM, /* with a wrong CRC; none of the others */
	PEER_IN_REPEATED, /* requests of a number that has come before */
	PEER_OUT_REPEATED,
	PEER_IN_MISSED, /* how often this side said that packets are missing (NAK PSN sequence) */
	PEER_OUT_MISSED,
	PEER_UNREACHABLE, /* messages of ICMP that ours do not arrive */
	PEER_COUNTS,
};

struct tied_peer {
	union ib_gid gid;
	_Atomic(uint64_t) count[PEER_COUNTS];
	/* When these happened last (CLOCK_MONOTONIC); 0: never. */
	_Atomic(uint64_t) heard_ns, checksum_ns, unreachable_ns;
	/* From a request to its answer; 0: none was measured. */
	_Atomic(uint64_t) rtt_ns; /* recent ones count more */
	_Atomic(uint64_t) rtt_least_ns;
	_Atomic(uint32_t) unreachable_errno; /* of the last message of ICMP */
};

struct tied_peers {
	_Atomic(uint32_t) n;
	_Atomic(uint64_t) unlisted; /* packets of addresses for which no row was left */
	struct tied_peer peer[TIED_PEERS];
};
