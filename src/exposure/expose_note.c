// SPDX-License-Identifier: BSD-2-Clause
/* The lists of keys and queue pairs that peers reach by packets alone. */
#include "exposure/expose.h"

/* If two numbers collide, the list has the first one. */
static bool note_take(struct expose_note *n, uint32_t number)
{
	uint32_t none = 0;

	return atomic_compare_exchange_strong(&n->number, &none, number) || none == number;
}

static void note_end(struct expose_note *n, uint32_t number)
{
	atomic_compare_exchange_strong(&n->number, &number, 0);
}

void expose_note_key(struct expose *e, const struct key_block *k)
{
	struct expose_note *n;

	if (!e->mem)
		return;
	n = &e->mem->other_keys[(k->key >> 8) % EXPOSE_BLOCKS];
	if (!note_take(n, k->key))
		return;
	atomic_store_explicit(&n->kind, k->place.why, memory_order_relaxed);
	atomic_store_explicit(&n->pdn, k->pdn, memory_order_relaxed);
	atomic_store_explicit(&n->access, k->access, memory_order_relaxed);
	atomic_store_explicit(&n->iova, k->iova, memory_order_relaxed);
	atomic_store_explicit(&n->length, k->length, memory_order_relaxed);
}

void expose_note_key_end(struct expose *e, uint32_t key)
{
	if (e->mem)
		note_end(&e->mem->other_keys[(key >> 8) % EXPOSE_BLOCKS], key);
}

void expose_note_qp(struct expose *e, uint32_t qpn, enum ib_qp_type type, uint32_t peer)
{
	struct expose_note *n;

	if (!e->mem)
		return;
	n = &e->mem->other_qps[qpn % EXPOSE_BLOCKS];
	if (!note_take(n, qpn))
		return;
	atomic_store_explicit(&n->kind, type, memory_order_relaxed);
	atomic_store_explicit(&n->peer, peer, memory_order_relaxed);
}

void expose_note_qp_end(struct expose *e, uint32_t qpn)
{
	if (e->mem)
		note_end(&e->mem->other_qps[qpn % EXPOSE_BLOCKS], qpn);
}
