/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link carries the packets of this process's ports to where a route leads (wire/route.h).  The
 * route names the owner of the packet's port and number, a number that is not 0; each owner is at
 * the far end of one link, which it gets by wire_process_add_link.
 */
#pragma once

#include "wire/record.h"
#include "wire/wire.h"

/* A packet of this size is carried by any link: more than the largest MTU. */
#define LINK_MIN_PAYLOAD (8u * 1024u)
#define LINK_PATH_MTU	 0u
/* In the place of an owner: all that the link leads to. */
#define LINK_ALL 0u

struct channel;
struct link;

/* Those that may be NULL have nothing to do. */
struct link_ops {
	bool immediate; /* xmit delivers */
	/* As wire_xmit, to one owner. */
	enum wire_verdict (*xmit)(struct link *l, uint32_t to, const struct pkt *p);
	/* At least LINK_MIN_PAYLOAD; or LINK_PATH_MTU, if the far end takes no larger packets. */
	uint32_t (*max_payload)(struct link *l, uint32_t to, bool by_reference_ok);
	/* False: xmit would say WIRE_BUSY of this unreliable packet, and drain will tell when no
	 * longer. */
	bool (*has_room)(struct link *l, uint32_t to, const struct pkt *p);
	/* The channel to one owner, held for sending until channel_release; NULL: not now.  May be
	 * NULL: there is none. */
	struct channel *(*hold)(struct link *l, uint32_t to);
	/* As wire_peer_is_behind.  May be NULL: never. */
	bool (*behind)(struct link *l, uint32_t to);
	/* As wire_room_soon.  May be NULL: never. */
	bool (*room_soon)(struct link *l, uint32_t to);
	/* As wire_withdraw_key, of what went to one owner or LINK_ALL.  May be NULL; a link that
	 * has it drains as well. */
	bool (*withdraw)(struct link *l, uint32_t to, const struct record_refs *refs,
			 void (*lost)(void *user, uint32_t sqpn), void *user);
	/* As wire_process_progress.  May be NULL. */
	bool (*drain)(struct link *l);
};

struct link {
	const struct link_ops *ops;
	struct wire_process *process; /* what arrives goes to wire_process_deliver */
	/*
	 * Readable when there is something to drain, and not any more when that is drained; it wakes
	 * the process's engine.  The link hides it from the program (base/hidden.h).  -1: nothing
	 * comes any more, or whoever sends raises the slot's inbox.  A link that is to be heard has
	 * its descriptor when it is added.
	 */
	int fd;
};

/* Leads nowhere. */
extern const struct link_ops link_none_ops;
/* To ports of this process: delivers within xmit. */
extern const struct link_ops link_local_ops;
