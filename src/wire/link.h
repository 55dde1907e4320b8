/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link carries the packets of this process's ports to where a route leads (wire/route.h).  The
 * route names the owner of the packet's port and number, by a number that is not 0.  Each owner is
 * at the far end of one link, which wire_process_add_link assigns to it.
 */
#pragma once

#include "wire/record.h"
#include "wire/wire.h"

/* Any link carries a packet of this size, which is more than the largest MTU. */
#define LINK_MIN_PAYLOAD (8u * 1024u)
#define LINK_PATH_MTU	 0u
/* Stands in for an owner: all owners to which the link leads. */
#define LINK_ALL 0u

struct channel;
struct link;

/* An operation that may be NULL is NULL where the link has nothing to do. */
struct link_ops {
	bool immediate; /* xmit delivers */
	/* Makes ready to send to one owner, so that the first packet need not wait.  May be NULL. */
	void (*connect)(struct link *l, uint32_t to);
	/* As wire_xmit, to one owner. */
	enum wire_verdict (*xmit)(struct link *l, uint32_t to, const struct pkt *p);
	/* At least LINK_MIN_PAYLOAD; or LINK_PATH_MTU, if the far end takes no larger packets. */
	uint32_t (*max_payload)(struct link *l, uint32_t to, bool by_reference_ok);
	/* False: xmit would say WIRE_BUSY for this unreliable packet; drain tells when there is
	 * room again. */
	bool (*has_room)(struct link *l, uint32_t to, const struct pkt *p);
	/* Holds the channel to one owner for sending, until channel_release; NULL: not now.  May be
	 * NULL: the link has no channels. */
	struct channel *(*hold)(struct link *l, uint32_t to);
	/* As wire_peer_is_behind.  May be NULL: no peer ever is. */
	bool (*behind)(struct link *l, uint32_t to, uint64_t *up_to);
	/* As wire_peer_is_unheard.  May be NULL: no peer ever is. */
	bool (*unheard)(struct link *l, uint32_t to);
	/* As wire_room_soon.  May be NULL: there never is room soon. */
	bool (*room_soon)(struct link *l, uint32_t to);
	/* As wire_withdraw_key, for what went to one owner or to LINK_ALL.  May be NULL; a link
	 * that has it drains as well. */
	bool (*withdraw)(struct link *l, uint32_t to, const struct record_refs *refs,
			 void (*lost)(void *user, uint32_t sqpn), void *user);
	/* As wire_process_progress.  May be NULL. */
	bool (*drain)(struct link *l);
	/* As wire_catch_up.  May be NULL: nothing is ever under way. */
	void (*catch_up)(struct link *l);
};

struct link {
	const struct link_ops *ops;
	struct wire_process *process; /* what arrives goes to wire_process_deliver */
	/*
	 * Readable while there is something to drain; it wakes the process's engine.  The link
	 * hides it from the program (base/descriptor.h).  -1: nothing comes any more, or the sender
	 * raises the slot's inbox instead.  A link that is to be heard has its descriptor before
	 * the process adds it.
	 */
	int fd;
};

/* The link that leads nowhere. */
extern const struct link_ops link_none_ops;
/* The link to ports of this process: it delivers within xmit. */
extern const struct link_ops link_local_ops;
