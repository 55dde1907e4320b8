// SPDX-License-Identifier: BSD-2-Clause
/* What XRC and dynamically connected targets lay open besides a responder. */
#include "exposure/expose.h"

bool expose_srq(struct expose *e, uint32_t srqn, uint32_t xrcdn, uint32_t pdn)
{
	uint64_t none = 0, word = srq_word_make(srqn, xrcdn, pdn);

	return e->keys && word &&
	       atomic_compare_exchange_strong(&e->mem->xrc_srqs[srqn % EXPOSE_BLOCKS], &none, word);
}

void expose_srq_end(struct expose *e, uint32_t srqn)
{
	atomic_store(&e->mem->xrc_srqs[srqn % EXPOSE_BLOCKS], 0);
}

struct qp_block *expose_dc(struct expose *e, uint32_t dctn, uint32_t dcin)
{
	struct qp_block *b;
	uint32_t none = 0;

	if (!e->keys)
		return NULL;
	b = &e->mem->dcs[expose_dc_place(dctn, dcin)];
	if (!atomic_compare_exchange_strong(&b->qpn, &none, dctn))
		return NULL;
	atomic_store_explicit(&b->type, (uint32_t)IB_QPT_DCT, memory_order_relaxed);
	return b;
}
