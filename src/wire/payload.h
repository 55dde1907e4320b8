/* SPDX-License-Identifier: BSD-2-Clause */
/* The payload of a packet, which lies in this process or in another one, or which a source has yet
 * to make. */
#pragma once

#include "base/compiler.h"
#include "wire/pkt.h"

/* Copies the whole payload.  Does not store the last bytes if the sender has taken the payload back
 * (pkt_withdrawn). */
bool payload_pull(const struct run *dst, uint32_t ndst, const struct pkt *p) must_check;
/* Copies a part of the payload: the runs src, which lie where the packet's own runs do. */
bool payload_pull_runs(const struct run *dst, uint32_t ndst, const struct pkt *p,
		       const struct run *src, uint32_t nsrc) must_check;
/*
 * A frame lies in one piece, in memory of softhca's own or in a channel.  No touch of it can fault,
 * so memcpy may copy it with its widest moves.  A frame shorter than this gains nothing by them.
 */
#define PAYLOAD_FRAME_MIN 256u

static inline bool payload_is_long_frame(const struct pkt *p)
{
	return pkt_is_frame(p) && p->payload_len >= PAYLOAD_FRAME_MIN && p->nruns == 1 &&
	       !p->foreign && !p->source;
}

/*
 * Writes bytes [off, off + the runs' sum) of the answer to a READ of another process to the places
 * that the request names, unless the requester has taken them back.  False: some bytes are missing
 * there, and packets have to bring them.
 */
bool payload_put(const struct pkt *request, uint64_t off, const struct run *src,
		 uint32_t nsrc) must_check;
/*
 * True if payload_pull failed although the sender's memory may exist: the system no longer lets us
 * read it (a filter of system calls, a sender that has made itself undumpable), or something kept
 * us from it.  The sender then hears that it has to put payloads into the channel.
 */
bool payload_refused(const struct pkt *p) must_check;
/* True if payload_pull failed because the sender's memory no longer exists.  Slow. */
bool payload_gone(const struct pkt *p) must_check;
