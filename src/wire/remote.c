// SPDX-License-Identifier: BSD-2-Clause
/* Other processes' memory that lies open to this one: found by route, mapped when asked for. */
#include "base/thread.h"
#include "base/hazard.h"
#include "base/rseq.h"
#include "base/trace.h"
#include "wire/capture.h"
#include "wire/process.h"
#include "wire/route.h"

struct remote *remote_at(const struct link_shm *l, uint16_t peer)
{
	return remote_living(&l->remotes[peer]);
}

/* What the process of that slot lays open of its keys and responders.  The caller is a reader. */
static struct remote *remote_of(struct wire_process *h, uint32_t owner_plus_1)
{
	struct remote *f;

	if (!h->attr.expose || h->link_to[owner_plus_1] != &h->shm.link)
		return NULL;
	f = remote_at(&h->shm, (uint16_t)(owner_plus_1 - 1));
	return f && f->keys ? f : NULL;
}

struct remote *wire_remote(struct wire *w, const struct path *path, uint32_t dqpn)
{
	/* The connection remembers the owner as a rule, so there is no more to ask. */
	uint32_t owner = route_known(path, subnet_epoch(w->process->attr.subnet), dqpn);

	return remote_of(w->process, likely(owner) ? owner : route_owner_plus_1(w, path, dqpn));
}

const _Atomic(struct remote *) *wire_remotes(const struct wire *w)
{
	return w->process->attr.expose ? w->process->shm.remotes : NULL;
}

bool wire_owns(const struct wire *w, uint32_t qpn)
{
	return route_number_owner_plus_1(w->process->attr.registry, qpn) ==
	       w->process->attr.slot + 1u;
}

/* Takes out the maps of files that peers have taken back.  Under the control lock. */
static struct segment_map *remote_dead_maps(struct link_shm *l)
{
	struct segment_map *all = NULL;

	for (unsigned peer = 0; peer < REGISTRY_SLOTS; peer++) {
		struct remote *f = atomic_load(&l->remotes[peer]);
		struct segment_map *m = f ? segment_view_dead(&f->segments) : NULL;

		while (m) {
			struct segment_map *next = m->next;

			m->next = all;
			all = m;
			m = next;
		}
	}
	return all;
}

static enum peer_found remote_found(const struct remote *f)
{
	if (!f || !f->keys)
		return PEER_NOT_MAPPED;
	return rseq_available() ? PEER_MAPPED : PEER_NO_RSEQ;
}

/* Notes for people who ask what was found.  f NULL: nothing. */
static void remote_note(struct expose *own, uint16_t peer, struct remote *f)
{
	if (!own->mem)
		return;
	atomic_store(&own->mem->found[peer], remote_found(f));
	if (!f || !f->keys || !rseq_available())
		return;
	f->reach.note = &own->mem->found[peer];
	f->reach.note_open = PEER_MAPPED;
	f->reach.note_closed = PEER_NO_KERNEL;
}

/* Lets other threads find f.  False: f stays the caller's. */
static bool remote_publish(struct link_shm *l, uint16_t peer, struct remote *f)
{
	bool published;

	pthread_mutex_lock(&l->control);
	/* The slot may have a new owner, and then the channel belongs to that owner. */
	published = !atomic_load(&l->remotes[peer]) && atomic_load(&l->channels[peer]) &&
		    atomic_load(&l->attr->slots[peer].alive) == f->alive;
	if (published)
		atomic_store_explicit(&l->remotes[peer], f, memory_order_release);
	pthread_mutex_unlock(&l->control);
	return published;
}

void remote_find(struct link_shm *l, uint16_t peer)
{
	no_cancellation();
	struct remote *f;

	if (atomic_load(&l->remotes[peer]))
		return;
	f = remote_open(l->attr->slots, peer, l->attr->slot);
	trace(peer, exposed, peer, f ? (f->keys ? "mapped" : "payloads") : "not-mapped");
	if (l->attr->expose)
		remote_note(&l->link.process->expose, peer, f);
	if (f && !remote_publish(l, peer, f))
		remote_close(f);
}

/* Frees what nobody can find any more. */
static void remote_collect(struct link_shm *l)
{
	struct segment_map *dead_maps;
	struct remote *dead;

	pthread_mutex_lock(&l->control);
	dead_maps = remote_dead_maps(l);
	dead = l->dead_remotes;
	l->dead_remotes = NULL;
	pthread_mutex_unlock(&l->control);
	if (dead || dead_maps)
		hazard_wait_all();
	link_shm_free_remotes(dead);
	segment_maps_free(dead_maps);
}

void wire_process_files_ended(struct wire_process *h)
{
	/* A process without a channel to us has mapped none of our files. */
	for (unsigned peer = 0; peer < REGISTRY_SLOTS; peer++) {
		if (!atomic_load_explicit(&h->shm.channels[peer], memory_order_relaxed))
			continue;
		atomic_fetch_add(&h->attr.slots[peer].files_ended, 1);
		/* Its engine looks at the count before it sleeps. */
		inbox_raise(&h->attr.slots[peer], h->attr.slot);
	}
}

bool wire_process_let_go(struct wire_process *h)
{
	uint32_t ended = atomic_load_explicit(&h->slot->files_ended, memory_order_acquire);

	if (likely(ended == h->files_ended))
		return wire_captures_let_go(h);
	h->files_ended = ended;
	hazard_enter();
	for (unsigned peer = 0; peer < REGISTRY_SLOTS; peer++) {
		struct remote *f =
			atomic_load_explicit(&h->shm.remotes[peer], memory_order_acquire);

		if (f)
			segment_view_let_go(&f->segments);
	}
	hazard_leave();
	return true;
}

static void remote_connect(struct link_shm *l, uint16_t peer)
{
	remote_collect(l);
	if (!l->attr->expose) {
		trace(peer, exposed, peer, "switched-off");
		return;
	}
	/* The channel tells us when the peer ends. */
	if (link_shm_connect(l, peer))
		remote_find(l, peer);
}

void wire_remote_connect(struct wire *w, const struct path *path, uint32_t dqpn)
{
	uint32_t owner = route_walk(w, path, dqpn);
	struct remote *f;

	if (w->process->link_to[owner] != &w->process->shm.link)
		return;
	remote_connect(&w->process->shm, (uint16_t)(owner - 1));
	/* Map now what the peer has registered so far, so that the first request finds it. */
	hazard_enter();
	f = remote_of(w->process, owner);
	if (f)
		segment_view_begin(&f->segments);
	hazard_leave();
}
