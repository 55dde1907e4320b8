// SPDX-License-Identifier: BSD-2-Clause
/* See link_shm.h; link_shm_receive.c takes what arrives. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trace.h"
#include "reach/proc.h"
#include "wire/link_shm.h"
#include "wire/tap.h"

/* If a process could not be reached, we ask for it again only after this time, not with every
 * packet. */
#define OPEN_RETRY_NS 10000000u

static void free_list(struct channel *ch)
{
	while (ch) {
		struct channel *next = ch->next;

		channel_detach(ch);
		free(ch);
		ch = next;
	}
}

/* Called under the control lock. */
static void remote_drop(struct link_shm *l, uint16_t peer)
{
	struct remote *f = atomic_exchange(&l->remotes[peer], NULL);

	if (f) {
		f->next = l->dead_remotes;
		l->dead_remotes = f;
	}
}

void link_shm_free_remotes(struct remote *f)
{
	while (f) {
		struct remote *next = f->next;

		remote_close(f);
		f = next;
	}
}

/* ---- channels: open, add, drop ---- */

static struct channel *take_spare(struct link_shm *l)
{
	struct channel *ch = l->spare;

	if (ch) {
		l->spare = ch->next;
		return ch;
	}
	ch = aligned_alloc(64, align_up(sizeof(*ch), 64));
	if (ch)
		*ch = (struct channel){0};
	return ch;
}

/*
 * alive: the generation of the slot's owner to which the channel leads; 0: no later owner can be
 * there.  The daemon tells of an owner's end after the slot shows it, and link_shm_drop waits for
 * our lock.  So a channel that passes here is dropped when its peer ends.
 */
static int add_locked(struct link_shm *l, uint16_t peer, uint32_t alive, int fd, size_t bytes,
		      int side)
{
	struct channel *ch;
	int rc;

	if (alive && atomic_load(&l->attr->slots[peer].alive) != alive)
		return -ESTALE;
	if (atomic_load_explicit(&l->channels[peer], memory_order_relaxed))
		return -EEXIST;
	ch = take_spare(l);
	if (!ch)
		return -ENOMEM;
	rc = channel_attach(ch, peer, fd, bytes, side);
	if (rc) {
		ch->next = l->spare;
		l->spare = ch;
		return rc;
	}
	atomic_store_explicit(&l->channels[peer], ch, memory_order_release);
	return 0;
}

static int add_channel(struct link_shm *l, uint16_t peer, uint32_t alive, int fd, size_t bytes,
		       int side)
{
	int rc = -EINVAL;

	if (peer < REGISTRY_SLOTS && peer != l->attr->slot) {
		pthread_mutex_lock(&l->control);
		rc = add_locked(l, peer, alive, fd, bytes, side);
		pthread_mutex_unlock(&l->control);
	}
	close(fd);
	if (rc == -EEXIST)
		return 0;
	if (rc) {
		trace(channel, refused, peer, trace_errno(rc), "attach");
		if (rc != -ESTALE)
			log_warn("no channel to process slot %u: error %d", peer, -rc);
		return rc;
	}
	trace(channel, open, peer, bytes);
	/* We look for what the peer sent before we had the channel, and for its question whether we
	 * can read it; the peer looks, too. */
	inbox_raise(l->slot, peer);
	inbox_raise(&l->attr->slots[peer], l->attr->slot);
	return 0;
}

int link_shm_add(struct link_shm *l, uint16_t peer, int fd, size_t bytes, int side)
{
	return add_channel(l, peer, 0, fd, bytes, side);
}

/* The thread that holds the receive lock next tears the channel down: now a thread may hold the
 * lock that waits for our caller (see link_shm.h). */
void link_shm_drop(struct link_shm *l, uint16_t peer)
{
	struct channel *ch;

	if (peer >= REGISTRY_SLOTS)
		return;
	pthread_mutex_lock(&l->control);
	remote_drop(l, peer);
	ch = atomic_exchange(&l->channels[peer], NULL);
	if (ch) {
		ch->next = l->dying;
		l->dying = ch;
		atomic_store_explicit(&l->any_dying, true, memory_order_release);
	}
	pthread_mutex_unlock(&l->control);
	if (ch) {
		trace(channel, gone, peer);
		inbox_raise(l->slot, peer);
	}
}

static struct channel *open_channel(struct link_shm *l, uint16_t peer, enum wire_verdict *verdict)
{
	no_cancellation();
	const struct wire_process_attr *attr = l->attr;
	uint32_t alive = atomic_load_explicit(&attr->slots[peer].alive, memory_order_acquire);
	struct channel *ch;
	size_t bytes;
	int fd, side, rc;

	*verdict = WIRE_LOST;
	if (!attr->open_channel || !alive ||
	    clock_ns() < atomic_load_explicit(&l->retry_at[peer], memory_order_relaxed))
		return NULL;
	if (atomic_exchange(&l->opening[peer], true)) {
		*verdict = WIRE_BUSY;
		return NULL;
	}
	ch = atomic_load_explicit(&l->channels[peer], memory_order_acquire);
	if (!ch) {
		rc = attr->open_channel(attr->user, peer, &fd, &bytes, &side);
		if (rc)
			trace(channel, refused, peer, trace_errno(rc), "daemon");
		else
			rc = add_channel(l, peer, alive, fd, bytes, side);
		if (rc && rc != -ESTALE)
			atomic_store_explicit(&l->retry_at[peer], clock_ns() + OPEN_RETRY_NS,
					      memory_order_relaxed);
		ch = atomic_load_explicit(&l->channels[peer], memory_order_acquire);
	}
	atomic_store(&l->opening[peer], false);
	return ch;
}

bool link_shm_connect(struct link_shm *l, uint16_t peer)
{
	enum wire_verdict verdict;

	return atomic_load_explicit(&l->channels[peer], memory_order_acquire) ||
	       (l->attr->open_channel && open_channel(l, peer, &verdict));
}

/* ---- the link ---- */

static struct link_shm *shm_of(struct link *link)
{
	return container_of(link, struct link_shm, link);
}

static void shm_connect(struct link *link, uint32_t to)
{
	(void)link_shm_connect(shm_of(link), (uint16_t)(to - 1));
}

static struct channel *shm_channel(struct link_shm *l, uint16_t peer)
{
	return atomic_load_explicit(&l->channels[peer], memory_order_acquire);
}

static enum wire_verdict shm_xmit(struct link *link, uint32_t to, const struct pkt *p)
{
	struct link_shm *l = shm_of(link);
	uint16_t peer = (uint16_t)(to - 1);
	struct channel *ch = shm_channel(l, peer);
	enum wire_verdict verdict;

	if (unlikely(!ch)) {
		ch = open_channel(l, peer, &verdict);
		if (!ch)
			return verdict;
	}
	if (channel_send(ch, peer, p, &verdict))
		inbox_raise(&l->attr->slots[peer], l->attr->slot);
	return verdict;
}

static struct channel *shm_hold(struct link *link, uint32_t to)
{
	uint16_t peer = (uint16_t)(to - 1);
	struct channel *ch = shm_channel(shm_of(link), peer);

	return ch && channel_hold(ch, peer) ? ch : NULL;
}

/* True for a carrier that nothing else observes. */
static bool carries_only(const struct slot *s)
{
	return atomic_load_explicit(&s->observers, memory_order_relaxed) == 1 &&
	       atomic_load_explicit(&s->carries_plus_1, memory_order_relaxed);
}

static uint32_t shm_max_payload(struct link *link, uint32_t to, bool by_reference_ok)
{
	struct link_shm *l = shm_of(link);
	const struct slot *slot = &l->attr->slots[to - 1];
	struct channel *ch = shm_channel(l, (uint16_t)(to - 1));

	/* A carrier, which is observed, takes the packets apart (tie/carrier.h). */
	if (slot_observed(slot) && !carries_only(slot))
		return LINK_PATH_MTU;
	return ch ? channel_max_payload(ch, by_reference_ok) : LINK_MIN_PAYLOAD;
}

static bool shm_has_room(struct link *link, uint32_t to, const struct pkt *p)
{
	struct link_shm *l = shm_of(link);
	uint16_t peer = (uint16_t)(to - 1);
	struct channel *ch = shm_channel(l, peer);
	enum wire_verdict verdict;

	if (unlikely(!ch)) {
		ch = open_channel(l, peer, &verdict);
		if (!ch)
			return verdict != WIRE_BUSY;
	}
	return channel_has_room(ch, peer, p);
}

static bool shm_behind(struct link *link, uint32_t to, uint64_t *up_to)
{
	no_cancellation();
	struct link_shm *l = shm_of(link);
	uint16_t peer = (uint16_t)(to - 1);
	struct channel *ch = shm_channel(l, peer);

	if (!ch || !channel_unread(ch, peer, up_to) || !task_goes_on(l->attr->slots[peer].pid))
		return false;
	/* The peer was told already; telling it again costs nothing. */
	inbox_raise(&l->attr->slots[peer], l->attr->slot);
	return true;
}

static bool shm_room_soon(struct link *link, uint32_t to)
{
	struct channel *ch = shm_channel(shm_of(link), (uint16_t)(to - 1));

	return ch && channel_room_soon(ch, (uint16_t)(to - 1));
}

static bool shm_withdraw(struct link *link, uint32_t to, const struct record_refs *refs,
			 void (*lost)(void *user, uint32_t sqpn), void *user)
{
	uint32_t first = to == LINK_ALL ? 0 : to - 1;
	uint32_t end = to == LINK_ALL ? REGISTRY_SLOTS : to;
	bool any = false;

	for (uint32_t peer = first; peer < end; peer++) {
		struct channel *ch = shm_channel(shm_of(link), (uint16_t)peer);

		if (ch)
			any |= channel_withdraw(ch, (uint16_t)peer, refs, lost, user);
	}
	return any;
}

static const struct link_ops link_shm_ops = {
	.connect = shm_connect,
	.xmit = shm_xmit,
	.max_payload = shm_max_payload,
	.has_room = shm_has_room,
	.hold = shm_hold,
	.behind = shm_behind,
	.unheard = link_shm_unheard,
	.room_soon = shm_room_soon,
	.withdraw = shm_withdraw,
	.drain = link_shm_drain,
	.catch_up = link_shm_catch_up,
};

void link_shm_open(struct link_shm *l, const struct wire_process_attr *attr)
{
	l->link = (struct link){.ops = &link_shm_ops, .fd = -1};
	l->attr = attr;
	l->slot = &attr->slots[attr->slot];
	pthread_mutex_init(&l->control, NULL);
}

void link_shm_close(struct link_shm *l)
{
	for (unsigned i = 0; i < REGISTRY_SLOTS; i++)
		free_list(atomic_load(&l->channels[i]));
	free_list(l->dying);
	free_list(l->spare);
	for (unsigned i = 0; i < REGISTRY_SLOTS; i++)
		remote_drop(l, (uint16_t)i);
	link_shm_free_remotes(l->dead_remotes);
	pthread_mutex_destroy(&l->control);
}
