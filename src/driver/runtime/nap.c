// SPDX-License-Identifier: BSD-2-Clause
/* See nap.h. */
#include "driver/runtime/nap.h"

#include "base/compiler.h"
#include "base/futex.h"

#define NAP_MIN_NS 100000u

static void nap_wake(struct nap *n)
{
	futex_wake_all(&n->state, FUTEX_OF_PROCESS);
}

void nap_allow(struct nap *n)
{
	atomic_store(&n->state, NAP_ON);
}

void nap_start(struct nap *n)
{
	n->ns = NAP_MIN_NS;
	n->longest_ns = NAP_MAX_NS;
	n->took_ns = 0;
}

void nap_may_be_long(struct nap *n)
{
	n->longest_ns = NAP_IN_TURNS_NS;
	n->ns = min_u64(max_u64(n->ns, 2 * n->took_ns), n->longest_ns);
}

void nap_keep_short(struct nap *n)
{
	n->longest_ns = NAP_MAX_NS;
}

void nap_announce(struct nap *n)
{
	atomic_store(&n->is_long, n->ns > NAP_MAX_NS);
}

void nap_take(struct nap *n)
{
	const uint64_t ns = min_u64(n->ns, n->longest_ns);
	uint32_t shorter = NAP_SHORTER;

	futex_wait_for(&n->state, NAP_ON, (uint32_t)ns, FUTEX_OF_PROCESS);
	if (atomic_compare_exchange_strong(&n->state, &shorter, NAP_ON))
		nap_keep_short(n);
	n->took_ns = ns;
	n->ns = min_u64(2 * ns, n->longest_ns);
}

bool nap_was_long(const struct nap *n)
{
	return n->took_ns > NAP_MAX_NS;
}

bool nap_is_over(const struct nap *n)
{
	return atomic_load(&n->state) == NAP_OVER;
}

void nap_end(struct nap *n)
{
	atomic_store(&n->state, NAP_OVER);
	nap_wake(n);
}

void nap_shorten(struct nap *n)
{
	uint32_t on = NAP_ON;

	if (atomic_load(&n->is_long) && atomic_compare_exchange_strong(&n->state, &on, NAP_SHORTER))
		nap_wake(n);
}
