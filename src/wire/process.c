/* SPDX-License-Identifier: BSD-2-Clause */
/* A process on the wire: its channels, and what arrives through them.  See process.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rcu.h"
#include "base/trace.h"
#include "wire/process.h"
#include "wire/inbox.h"

/* A process that could not be reached is not asked for with every packet. */
#define OPEN_RETRY_NS 10000000u

int wire_process_create(const struct wire_process_attr *attr, struct wire_process **out)
{
	struct wire_process *h;

	if (attr->slot >= REGISTRY_SLOTS || !attr->registry || !attr->subnet || !attr->slots)
		return -EINVAL;
	h = aligned_alloc(64, align_up(sizeof(*h), 64));
	if (!h)
		return -ENOMEM;
	*h = (struct wire_process){.attr = *attr, .slot = &attr->slots[attr->slot]};
	pthread_mutex_init(&h->control, NULL);
	/* Under Yama's restricted mode (ptrace_scope 1) only descendants may be read otherwise.
	 * Fails where there is no Yama, which is just as well. */
	if (attr->open_channel)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	if (attr->expose && expose_open(&h->expose, attr->slots, attr->slot) < 0)
		log_info("nothing is exposed to peers: %m");
	*out = h;
	return 0;
}

static void free_list(struct channel *ch)
{
	while (ch) {
		struct channel *next = ch->next;

		channel_detach(ch);
		free(ch);
		ch = next;
	}
}

/* Under control. */
static void remote_drop(struct wire_process *h, uint16_t peer)
{
	struct remote *f = atomic_exchange(&h->remotes[peer], NULL);

	if (f) {
		f->next = h->dead_remotes;
		h->dead_remotes = f;
	}
}

static void remotes_free(struct remote *f)
{
	while (f) {
		struct remote *next = f->next;

		remote_close(f);
		f = next;
	}
}

void wire_process_destroy(struct wire_process *h)
{
	for (unsigned i = 0; i < REGISTRY_SLOTS; i++)
		free_list(atomic_load(&h->channels[i]));
	free_list(h->dying);
	free_list(h->spare);
	for (unsigned i = 0; i < REGISTRY_SLOTS; i++)
		remote_drop(h, (uint16_t)i);
	remotes_free(h->dead_remotes);
	expose_close(&h->expose);
	pthread_mutex_destroy(&h->control);
	free(h);
}

/* ---- channels: open, add, drop ---- */

static struct channel *take_spare(struct wire_process *h)
{
	struct channel *ch = h->spare;

	if (ch) {
		h->spare = ch->next;
		return ch;
	}
	ch = aligned_alloc(64, align_up(sizeof(*ch), 64));
	if (ch)
		*ch = (struct channel){0};
	return ch;
}

static int add_locked(struct wire_process *h, uint16_t peer, int fd, size_t bytes, int side)
{
	struct channel *ch;
	int rc;

	if (atomic_load_explicit(&h->channels[peer], memory_order_relaxed))
		return -EEXIST;
	ch = take_spare(h);
	if (!ch)
		return -ENOMEM;
	rc = channel_attach(ch, peer, fd, bytes, side);
	if (rc) {
		ch->next = h->spare;
		h->spare = ch;
		return rc;
	}
	atomic_store_explicit(&h->channels[peer], ch, memory_order_release);
	return 0;
}

int wire_process_add_channel(struct wire_process *h, uint16_t peer, int fd, size_t bytes, int side)
{
	int rc = -EINVAL;

	if (peer < REGISTRY_SLOTS && peer != h->attr.slot) {
		pthread_mutex_lock(&h->control);
		rc = add_locked(h, peer, fd, bytes, side);
		pthread_mutex_unlock(&h->control);
	}
	close(fd);
	if (rc == -EEXIST)
		return 0;
	if (rc) {
		trace(channel, refused, peer, trace_errno(rc), "attach");
		log_warn("no channel to process slot %u: error %d", peer, -rc);
		return rc;
	}
	trace(channel, open, peer, bytes);
	/* What it sent before we had the channel, and its question whether we can read it. */
	inbox_raise(h->slot, peer);
	inbox_raise(&h->attr.slots[peer], h->attr.slot);
	return 0;
}

/*
 * Teardown is left to whoever holds the receive lock next: it may be held now by a thread that
 * waits for our caller (see process.h).
 */
void wire_process_drop_channel(struct wire_process *h, uint16_t peer)
{
	struct channel *ch;

	if (peer >= REGISTRY_SLOTS)
		return;
	pthread_mutex_lock(&h->control);
	remote_drop(h, peer);
	ch = atomic_exchange(&h->channels[peer], NULL);
	if (ch) {
		ch->next = h->dying;
		h->dying = ch;
		atomic_store_explicit(&h->any_dying, true, memory_order_release);
	}
	pthread_mutex_unlock(&h->control);
	if (ch) {
		trace(channel, gone, peer);
		inbox_raise(h->slot, peer);
	}
}

static struct channel *open_channel(struct wire_process *h, uint16_t peer,
				    enum wire_verdict *verdict)
{
	no_cancellation();
	const struct wire_process_attr *attr = &h->attr;
	struct channel *ch;
	size_t bytes;
	int fd, side, rc;

	*verdict = WIRE_LOST;
	if (!attr->open_channel ||
	    !atomic_load_explicit(&attr->slots[peer].alive, memory_order_acquire) ||
	    clock_ns() < atomic_load_explicit(&h->retry_at[peer], memory_order_relaxed))
		return NULL;
	if (atomic_exchange(&h->opening[peer], true)) {
		*verdict = WIRE_BUSY;
		return NULL;
	}
	ch = atomic_load_explicit(&h->channels[peer], memory_order_acquire);
	if (!ch) {
		rc = attr->open_channel(attr->user, peer, &fd, &bytes, &side);
		if (rc)
			trace(channel, refused, peer, trace_errno(rc), "daemon");
		else
			rc = wire_process_add_channel(h, peer, fd, bytes, side);
		if (rc)
			atomic_store_explicit(&h->retry_at[peer], clock_ns() + OPEN_RETRY_NS,
					      memory_order_relaxed);
		ch = atomic_load_explicit(&h->channels[peer], memory_order_acquire);
	}
	atomic_store(&h->opening[peer], false);
	return ch;
}

enum wire_verdict wire_process_send(struct wire_process *h, uint16_t peer, const struct pkt *p)
{
	struct channel *ch = atomic_load_explicit(&h->channels[peer], memory_order_acquire);
	enum wire_verdict verdict;

	if (unlikely(!ch)) {
		ch = open_channel(h, peer, &verdict);
		if (!ch)
			return verdict;
	}
	if (channel_send(ch, peer, p, &verdict))
		inbox_raise(&h->attr.slots[peer], h->attr.slot);
	return verdict;
}

bool wire_process_has_room(struct wire_process *h, uint16_t peer, const struct pkt *p)
{
	struct channel *ch = atomic_load_explicit(&h->channels[peer], memory_order_acquire);
	enum wire_verdict verdict;

	if (unlikely(!ch)) {
		ch = open_channel(h, peer, &verdict);
		if (!ch)
			return verdict != WIRE_BUSY;
	}
	return channel_has_room(ch, peer, p);
}

void wire_process_withdraw(struct wire_process *h, uint16_t peer, const struct record_refs *refs,
			   void (*lost)(void *user, uint32_t sqpn), void *user)
{
	struct channel *ch = atomic_load_explicit(&h->channels[peer], memory_order_acquire);

	if (ch)
		channel_withdraw(ch, peer, refs, lost, user);
}

/* ---- receiving ---- */

static void deliver(void *user, const struct pkt *p)
{
	struct wire_process *h = user;
	struct wire *w;

	rcu_enter();
	if (unlikely(p->dqpn == IB_MULTICAST_QPN)) {
		multicast_deliver(h, p);
	} else {
		w = wire_process_wire(h, p->path->dst_port);
		if (w)
			wire_deliver(w, p);
	}
	rcu_leave();
}

static bool drain(struct wire_process *h, uint16_t peer)
{
	struct channel *ch = atomic_load_explicit(&h->channels[peer], memory_order_acquire);
	unsigned news;

	if (!ch)
		return false;
	news = channel_drain(ch, false, deliver, h);
	if (news & CHANNEL_MORE)
		inbox_raise(h->slot, peer);
	if (news & CHANNEL_TELL_PEER)
		inbox_raise(&h->attr.slots[peer], h->attr.slot);
	return news & (CHANNEL_DELIVERED | CHANNEL_ROOM);
}

/* True if there was one: its packets were delivered, and who waited for room learns that it is
 * gone. */
static bool reap(struct wire_process *h)
{
	struct channel *ch, *last = NULL;

	if (likely(!atomic_load_explicit(&h->any_dying, memory_order_acquire)))
		return false;
	pthread_mutex_lock(&h->control);
	ch = h->dying;
	h->dying = NULL;
	atomic_store(&h->any_dying, false);
	pthread_mutex_unlock(&h->control);

	for (struct channel *c = ch; c; c = c->next) {
		channel_drain(c, true, deliver, h);
		channel_detach(c);
		last = c;
	}
	if (last) {
		pthread_mutex_lock(&h->control);
		last->next = h->spare;
		h->spare = ch;
		pthread_mutex_unlock(&h->control);
	}
	return last;
}

/* ---- hot channels; under rx_lock ---- */

static void cool(struct wire_process *h, uint32_t i)
{
	uint32_t last = atomic_load_explicit(&h->nhot, memory_order_relaxed) - 1;

	inbox_unkeep(h->slot, &h->kept, h->hot[i]);
	h->hot[i] = h->hot[last];
	h->hot_idle[i] = h->hot_idle[last];
	atomic_store_explicit(&h->nhot, last, memory_order_relaxed);
}

/* It has just delivered something. */
static void warm(struct wire_process *h, uint16_t peer)
{
	uint32_t n = atomic_load_explicit(&h->nhot, memory_order_relaxed);

	for (uint32_t i = 0; n == WIRE_PROCESS_HOT && i < n; i++) {
		uint16_t idle_peer = h->hot[i];

		if (h->hot_idle[i] < WIRE_PROCESS_HOT_PATIENCE)
			continue;
		cool(h, i);
		drain(h, idle_peer);
		n--;
	}
	if (n == WIRE_PROCESS_HOT)
		return;
	h->hot[n] = peer;
	h->hot_idle[n] = 0;
	inbox_keep(h->slot, &h->kept, peer);
	atomic_store_explicit(&h->nhot, n + 1, memory_order_relaxed);
}

static bool drain_hot(struct wire_process *h)
{
	bool did = false;

	for (uint32_t i = 0; i < atomic_load_explicit(&h->nhot, memory_order_relaxed);) {
		struct channel *ch =
			atomic_load_explicit(&h->channels[h->hot[i]], memory_order_acquire);

		if (unlikely(!ch)) {
			cool(h, i);
			continue;
		}
		if (channel_has_news(ch)) {
			did |= drain(h, h->hot[i]);
			h->hot_idle[i] = 0;
		} else {
			h->hot_idle[i]++;
		}
		i++;
	}
	return did;
}

static bool drain_cold(struct wire_process *h, uint16_t peer)
{
	bool did = drain(h, peer);

	if (did)
		warm(h, peer);
	return did;
}

bool wire_process_progress(struct wire_process *h)
{
	uint64_t words[INBOX_WORDS];
	bool did;

	if ((inbox_empty(h->slot) && !atomic_load_explicit(&h->nhot, memory_order_relaxed)) ||
	    !spin_try(&h->rx_lock))
		return false;
	/* Before the drains, because a new channel of the same peer may be there: what was sent
	 * first arrives first.  And again after the inbox, which is how a drop tells us. */
	did = reap(h) | drain_hot(h);
	if (inbox_collect(h->slot, &h->kept, words)) {
		did |= reap(h);
		for (unsigned w = 0; w < INBOX_WORDS; w++)
			for (; words[w]; words[w] &= words[w] - 1)
				did |= drain_cold(h, (uint16_t)(w * 64 + (unsigned)__builtin_ctzll(
										 words[w])));
	}
	spin_unlock(&h->rx_lock);
	return did;
}

bool wire_process_connect(struct wire_process *h, uint16_t peer)
{
	enum wire_verdict verdict;

	return atomic_load_explicit(&h->channels[peer], memory_order_acquire) ||
	       (h->attr.open_channel && open_channel(h, peer, &verdict));
}

void wire_process_remote_connect(struct wire_process *h, uint16_t peer)
{
	no_cancellation();
	struct remote *f, *dead;

	if (!h->attr.expose) {
		trace(peer, exposed, peer, "switched-off");
		return;
	}
	/* The channel is how we hear of the peer's end. */
	if (atomic_load(&h->remotes[peer]) || !wire_process_connect(h, peer))
		return;
	f = remote_open(h->attr.slots, peer, h->attr.slot);
	trace(peer, exposed, peer, f ? "mapped" : "not-mapped");
	if (!f)
		return;
	pthread_mutex_lock(&h->control);
	dead = h->dead_remotes;
	h->dead_remotes = NULL;
	if (!atomic_load(&h->remotes[peer]) && atomic_load(&h->channels[peer])) {
		atomic_store_explicit(&h->remotes[peer], f, memory_order_release);
		f = NULL;
	}
	pthread_mutex_unlock(&h->control);
	if (f)
		remote_close(f);
	if (dead)
		rcu_wait();
	remotes_free(dead);
}
