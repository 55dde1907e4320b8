// SPDX-License-Identifier: BSD-2-Clause
/* See tap.h. */
#include "wire/tap.h"

#include "base/hazard.h"
#include "wire/process.h"

void wire_tap_attach(struct wire_process *h, struct tap *t)
{
	pthread_mutex_lock(&h->control);
	atomic_store_explicit(&t->next, atomic_load_explicit(&h->taps, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&h->taps, t, memory_order_release);
	atomic_fetch_add(&h->slot->observers, 1);
	pthread_mutex_unlock(&h->control);
	/* Requests are executed in readers' sections. */
	hazard_wait_all();
}

void wire_tap_detach(struct wire_process *h, struct tap *t)
{
	_Atomic(struct tap *) *at = &h->taps;
	struct tap *i;

	pthread_mutex_lock(&h->control);
	while ((i = atomic_load_explicit(at, memory_order_relaxed)) && i != t)
		at = &i->next;
	if (i) {
		atomic_store_explicit(at, atomic_load_explicit(&t->next, memory_order_relaxed),
				      memory_order_release);
		atomic_fetch_sub(&h->slot->observers, 1);
	}
	pthread_mutex_unlock(&h->control);
	hazard_wait_all();
}

void tap_packet(struct wire *w, enum tap_point at, const struct pkt *p)
{
	struct tap *t;

	hazard_enter();
	for (t = atomic_load_explicit(&w->host->taps, memory_order_acquire); t;
	     t = atomic_load_explicit(&t->next, memory_order_acquire))
		t->packet(t, at, w->port_row, p);
	/* Only the sender knows the whole path of a packet of a connection. */
	if (at == TAP_SENT)
		sniffer_packet(w, p);
	hazard_leave();
}
