// SPDX-License-Identifier: BSD-2-Clause
/* The lists of what peers reach by packets alone. */
#include "exposure/expose.h"

/* Numbers that collide: the first one is listed. */
static void note_put(struct expose_note *n, uint32_t number, uint32_t kind, uint32_t peer)
{
	uint32_t none = 0;

	if (!atomic_compare_exchange_strong(&n->number, &none, number) && none != number)
		return;
	atomic_store_explicit(&n->kind, kind, memory_order_relaxed);
	atomic_store_explicit(&n->peer, peer, memory_order_relaxed);
}

static void note_end(struct expose_note *n, uint32_t number)
{
	atomic_compare_exchange_strong(&n->number, &number, 0);
}

void expose_note_key(struct expose *e, uint32_t key, enum key_why why)
{
	if (e->mem)
		note_put(&e->mem->other_keys[(key >> 8) % EXPOSE_BLOCKS], key, why, 0);
}

void expose_note_key_end(struct expose *e, uint32_t key)
{
	if (e->mem)
		note_end(&e->mem->other_keys[(key >> 8) % EXPOSE_BLOCKS], key);
}

void expose_note_qp(struct expose *e, uint32_t qpn, enum ib_qp_type type, uint32_t peer)
{
	if (e->mem)
		note_put(&e->mem->other_qps[qpn % EXPOSE_BLOCKS], qpn, type, peer);
}

void expose_note_qp_end(struct expose *e, uint32_t qpn)
{
	if (e->mem)
		note_end(&e->mem->other_qps[qpn % EXPOSE_BLOCKS], qpn);
}
