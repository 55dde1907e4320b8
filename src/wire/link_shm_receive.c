// SPDX-License-Identifier: BSD-2-Clause
/* Delivers what other processes have sent. */
#include "base/hazard.h"
#include "base/trace.h"
#include "wire/short_send.h"
#include "wire/process.h"
#include "wire/link_shm.h"
#include "wire/pkt.h"
#include "wire/route.h"
#include "wire/tap.h"

/* A visit that waits for a frame looks so often, which takes some 10 ns each time.  After so many
 * visits in vain a visit looks once again. */
#define FRAME_LOOKS    8u
#define FRAME_PATIENCE 64u

/* The process whose packets we take out of a channel. */
struct sender {
	struct link_shm *link;
	uint16_t peer;
};

/* No process may speak for another one: the number must be the sender's own, or of a process that
 * has ended, and the port must be one of the sender's host. */
static bool sender_has(const struct sender *s, uint32_t src_port, uint32_t sqpn)
{
	const struct wire_process_attr *attr = s->link->attr;
	uint32_t owner = route_number_owner_plus_1(attr->registry, sqpn);

	return (!owner || owner == s->peer + 1u) && src_port < attr->subnet->nports &&
	       atomic_load_explicit(&attr->registry->slot_host_plus_1[s->peer],
				    memory_order_relaxed) ==
		       subnet_node_of(attr->subnet, src_port)->host + 1;
}

/* A carrier speaks for senders outside of the fabric, to programs of its own port. */
static bool sender_carries(const struct sender *s, uint32_t dst_port)
{
	const struct wire_process_attr *attr = s->link->attr;

	return dst_port < attr->subnet->nports &&
	       atomic_load_explicit(&attr->slots[s->peer].carries_plus_1, memory_order_relaxed) ==
		       dst_port + 1 &&
	       subnet_ethernet_leads_out(attr->subnet, dst_port) &&
	       atomic_load_explicit(&attr->registry->slot_host_plus_1[s->peer],
				    memory_order_relaxed) ==
		       subnet_node_of(attr->subnet, dst_port)->host + 1;
}

static bool sender_may(const struct sender *s, const struct pkt *p)
{
	/* A copy for a sniffer claims no port, and its sender may have ended meanwhile. */
	return likely(sender_has(s, p->path->src_port, p->sqpn)) ||
	       sender_carries(s, p->path->dst_port) || sniffer_is_copy(p);
}

static void link_shm_deliver(void *user, const struct pkt *p)
{
	const struct sender *s = user;

	if (likely(sender_may(s, p))) {
		(void)wire_process_deliver(s->link->link.process, p);
		return;
	}
	trace(packet, dropped, p->dqpn, bth_op_name(p->opcode), p->psn, p->sqpn, "not-its-sender");
	if (explaining())
		packet_explain_sender(s->link->attr->subnet, p);
}

static uint32_t link_shm_deliver_short_sends(void *user, uint32_t dst_port,
					     const struct short_send *b)
{
	const struct sender *s = user;

	/* link_shm_deliver drops it as a packet */
	if (unlikely(!sender_has(s, b->src_port, b->sqpn)))
		return 0;
	return short_send_deliver(s->link->link.process, dst_port, b);
}

static struct channel_sink link_shm_sink(struct sender *s)
{
	return (struct channel_sink){link_shm_deliver, link_shm_deliver_short_sends, s};
}

static bool link_shm_drain_one(struct link_shm *l, uint16_t peer)
{
	struct channel *ch = atomic_load_explicit(&l->channels[peer], memory_order_acquire);
	struct sender sender = {l, peer};
	const struct channel_sink sink = link_shm_sink(&sender);
	struct remote *f;
	unsigned news;

	if (!ch)
		return false;
	/* We map the peer's memory before its first packet, which may make it the peer of a
	 * connection. */
	if (unlikely(!ch->met) && !l->attr->carries)
		remote_find(l, peer);
	hazard_enter();
	/* A carrier gets packets whole, because it would have to give back a payload by
	 * reference. */
	f = l->attr->carries ? NULL : remote_at(l, peer);
	news = channel_drain(ch, f ? &f->reach : NULL, false, &sink);
	hazard_leave();
	if (news & CHANNEL_MORE)
		inbox_raise(l->slot, peer);
	if (news & CHANNEL_TELL_PEER)
		inbox_raise(&l->attr->slots[peer], l->attr->slot);
	return news & (CHANNEL_DELIVERED | CHANNEL_ROOM);
}

/* Tears down channels of peers that have gone.  True if there was one: it has delivered the
 * packets, and senders that waited for room learn that the peer is gone. */
static bool link_shm_reap(struct link_shm *l)
{
	struct channel *ch, *last = NULL;

	if (likely(!atomic_load_explicit(&l->any_dying, memory_order_acquire)))
		return false;
	pthread_mutex_lock(&l->control);
	ch = l->dying;
	l->dying = NULL;
	atomic_store(&l->any_dying, false);
	pthread_mutex_unlock(&l->control);

	for (struct channel *c = ch; c; c = c->next) {
		struct sender sender = {l, c->peer};
		const struct channel_sink sink = link_shm_sink(&sender);

		channel_drain(c, NULL, true, &sink);
		channel_detach(c);
		last = c;
	}
	if (last) {
		pthread_mutex_lock(&l->control);
		last->next = l->spare;
		l->spare = ch;
		pthread_mutex_unlock(&l->control);
	}
	return last;
}

/* ---- hot channels; under rx_lock ---- */

/* The peer's bit in the inbox was set as long as the channel was hot, and a mark that somebody made
 * meanwhile is cleared with it.  So this looks for what there may be: packets of the peer, or of one
 * that has gone. */
static bool link_shm_cool(struct link_shm *l, uint32_t i)
{
	uint32_t last = atomic_load_explicit(&l->nhot, memory_order_relaxed) - 1;
	uint16_t peer = l->hot[i];

	inbox_unkeep(l->slot, &l->kept, peer);
	l->hot[i] = l->hot[last];
	l->hot_idle[i] = l->hot_idle[last];
	atomic_store_explicit(&l->nhot, last, memory_order_relaxed);
	return link_shm_reap(l) | link_shm_drain_one(l, peer);
}

/* Makes the channel hot, because it has just delivered something. */
static void link_shm_warm(struct link_shm *l, uint16_t peer)
{
	uint32_t n = atomic_load_explicit(&l->nhot, memory_order_relaxed);

	for (uint32_t i = 0; n == LINK_SHM_HOT && i < n; i++) {
		if (l->hot_idle[i] < LINK_SHM_HOT_PATIENCE)
			continue;
		link_shm_cool(l, i);
		n--;
	}
	if (n == LINK_SHM_HOT)
		return;
	l->hot[n] = peer;
	l->hot_idle[n] = 0;
	inbox_keep(l->slot, &l->kept, peer);
	atomic_store_explicit(&l->nhot, n + 1, memory_order_relaxed);
}

/*
 * A program that waits for frames, one after the other, comes back in turns, and most of the time
 * of a turn is not this look.  So a visit looks several times, unless nothing has come for long, or
 * there are other channels to look at.
 */
static bool hot_has_news(const struct link_shm *l, const struct channel *ch, uint32_t i)
{
	bool news = channel_has_news(ch);

	if (news || !ch->frames || l->hot_idle[i] >= FRAME_PATIENCE ||
	    atomic_load_explicit(&l->nhot, memory_order_relaxed) != 1)
		return news;
	for (unsigned looks = 1; !news && looks < FRAME_LOOKS; looks++) {
		cpu_relax();
		news = channel_has_news(ch);
	}
	return news;
}

static bool drain_hot(struct link_shm *l)
{
	bool did = false;

	for (uint32_t i = 0; i < atomic_load_explicit(&l->nhot, memory_order_relaxed);) {
		struct channel *ch =
			atomic_load_explicit(&l->channels[l->hot[i]], memory_order_acquire);

		if (unlikely(!ch)) {
			uint16_t gone = l->hot[i];

			/* The slot may have a new owner, whose bit in the inbox cooling clears: so
			 * we look there. */
			link_shm_cool(l, i);
			did |= link_shm_drain_one(l, gone);
			continue;
		}
		if (hot_has_news(l, ch, i)) {
			did |= link_shm_drain_one(l, l->hot[i]);
			l->hot_idle[i] = 0;
		} else {
			l->hot_idle[i]++;
		}
		i++;
	}
	return did;
}

static bool drain_cold(struct link_shm *l, uint16_t peer)
{
	bool did = link_shm_drain_one(l, peer);

	if (did)
		link_shm_warm(l, peer);
	return did;
}

/* Out of line, because a program that polls mostly finds nothing.  Under rx_lock. */
static __attribute__((noinline)) bool drain_arrived(struct link_shm *l)
{
	uint64_t words[INBOX_WORDS], filled;
	/*
	 * We reap before the drains, because a new channel of the same peer may be there: what was
	 * sent first has to arrive first.  We reap again after the inbox, which is how a drop tells
	 * us, unless the channel is hot (link_shm_cool).
	 */
	bool did = link_shm_reap(l) | drain_hot(l);

	filled = inbox_collect(l->slot, &l->kept, words);
	if (likely(!filled))
		return did;
	did |= link_shm_reap(l);
	for (; filled; filled &= filled - 1) {
		unsigned w = (unsigned)__builtin_ctzll(filled);

		for (; words[w]; words[w] &= words[w] - 1)
			did |= drain_cold(l,
					  (uint16_t)(w * 64 + (unsigned)__builtin_ctzll(words[w])));
	}
	return did;
}

bool link_shm_unheard(struct link *link, uint32_t to)
{
	struct link_shm *l = container_of(link, struct link_shm, link);
	struct channel *ch;
	bool unheard;

	/* Whoever has the lock takes what is there. */
	if (!spin_try(&l->rx_lock))
		return true;
	ch = atomic_load_explicit(&l->channels[to - 1], memory_order_acquire);
	unheard = ch && channel_has_news(ch);
	spin_unlock(&l->rx_lock);
	return unheard;
}

bool link_shm_drain(struct link *link)
{
	struct link_shm *l = container_of(link, struct link_shm, link);
	bool did;

	if ((inbox_empty(l->slot) && !atomic_load_explicit(&l->nhot, memory_order_relaxed)) ||
	    !spin_try(&l->rx_lock))
		return false;
	did = drain_arrived(l);
	spin_unlock(&l->rx_lock);
	return did;
}

/* A peer that goes on sending does not keep us: we take as much as can be there now. */
static void link_shm_catch_up_one(struct link_shm *l, uint16_t peer)
{
	const struct channel *ch = atomic_load_explicit(&l->channels[peer], memory_order_acquire);
	uint64_t end = ch ? channel_come_up_to(ch) : 0;

	while (ch && channel_taken_up_to(ch) < end && link_shm_drain_one(l, peer))
		;
}

void link_shm_catch_up(struct link *link)
{
	struct link_shm *l = container_of(link, struct link_shm, link);

	/* Whoever has the lock may have begun before something came, so we wait for it. */
	spin_lock(&l->rx_lock);
	(void)link_shm_reap(l);
	for (unsigned peer = 0; peer < REGISTRY_SLOTS; peer++)
		link_shm_catch_up_one(l, (uint16_t)peer);
	spin_unlock(&l->rx_lock);
}
