/* SPDX-License-Identifier: BSD-2-Clause */
/* The payload of a packet, wherever it lies: in this process, in another one, or yet to be made. */
#pragma once

#include "base/compiler.h"
#include "wire/pkt.h"

/* Copies all of it.  If its sender has taken it back (pkt_withdrawn), does not store the last
 * bytes. */
bool payload_pull(const struct run *dst, uint32_t ndst, const struct pkt *p) must_check;
/* The same of a part of it: of these runs, which lie where the packet's own do. */
bool payload_pull_runs(const struct run *dst, uint32_t ndst, const struct pkt *p,
		       const struct run *src, uint32_t nsrc) must_check;
/*
 * A frame lies in one piece, in memory of softhca's own or in a channel.  No touch of it can fault, so
 * memcpy may copy it, which knows the widest moves; a short one gains nothing by them.
 */
#define PAYLOAD_FRAME_MIN 256u

static inline bool payload_is_long_frame(const struct pkt *p)
{
	return pkt_transport(p) == BTH_RAW && p->payload_len >= PAYLOAD_FRAME_MIN &&
	       p->nruns == 1 && !p->foreign && !p->source;
}

/*
 * Puts bytes [off, off + the runs' sum) of the answer to a READ of another process where the request
 * wants them, unless it was taken back.  False: not all of them, and packets have to bring them.
 */
bool payload_put(const struct pkt *request, uint64_t off, const struct run *src,
		 uint32_t nsrc) must_check;
/*
 * Did payload_pull fail though the sender's memory may be there: because the system does not let us
 * read it any more (a filter of system calls, a sender that has made itself undumpable), or because
 * we were kept from it?  The sender then hears that it has to put payloads into the channel.
 */
bool payload_refused(const struct pkt *p) must_check;
/* Did payload_pull fail because the sender's memory has gone?  Slow. */
bool payload_gone(const struct pkt *p) must_check;
