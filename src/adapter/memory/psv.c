// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/memory/psv.h"

#include <errno.h>
#include <stdlib.h>

#include "adapter/sig/sig.h"
#include "base/hazard.h"

struct psv {
	uint32_t number;
	uint32_t pdn;
	_Atomic(uint32_t) arms;
	struct sig_psv sig;
};

int psv_create(struct adapter *a, uint32_t pdn, struct psv **out)
{
	struct psv *p = calloc(1, sizeof(*p));
	int64_t number;

	if (!p)
		return -ENOMEM;
	number = number_take(&a->psvs, &a->attr, NUMBER_PSV);
	if (number < 0) {
		free(p);
		return (int)number;
	}
	p->number = (uint32_t)number;
	p->pdn = pdn;
	sig_psv_arm(&p->sig, 0);
	number_publish(&a->psvs, p->number, p);
	*out = p;
	return 0;
}

uint32_t psv_number(const struct psv *p)
{
	return p->number;
}

void psv_destroy(struct adapter *a, struct psv *p)
{
	number_publish(&a->psvs, p->number, NULL);
	hazard_wait(p, 1);
	number_give(&a->psvs, p->number);
	free(p);
}

void psv_query(const struct psv *p, uint64_t *transient, bool *error)
{
	*transient = atomic_load_explicit(&p->sig.transient, memory_order_relaxed);
	*error = atomic_load_explicit(&p->sig.state, memory_order_relaxed) == SIG_PSV_REPORTED;
}

uint32_t psv_arms(struct adapter *a, uint32_t number)
{
	const struct psv *p = number_find(&a->psvs, number);

	return p ? atomic_load_explicit(&p->arms, memory_order_relaxed) : 0;
}

bool psv_note_error(struct adapter *a, uint32_t number)
{
	struct psv *p = number_find(&a->psvs, number);

	if (!p)
		return false;
	/* the key says whether this error is its first one */
	(void)!sig_psv_raise(&p->sig);
	return true;
}

uint64_t psv_value(struct adapter *a, uint32_t number)
{
	const struct psv *p = number_find(&a->psvs, number);

	return p ? atomic_load_explicit(&p->sig.transient, memory_order_relaxed) : 0;
}

void psv_carry(struct adapter *a, uint32_t number, uint64_t value)
{
	struct psv *p = number_find(&a->psvs, number);

	if (p)
		atomic_store_explicit(&p->sig.transient, value, memory_order_relaxed);
}

static struct psv *find_of(struct adapter *a, uint32_t number, uint32_t pdn)
{
	struct psv *p = number_find(&a->psvs, number);

	return p && p->pdn == pdn ? p : NULL;
}

bool psv_exists(struct adapter *a, uint32_t number, uint32_t pdn)
{
	return find_of(a, number, pdn);
}

bool psv_set(struct adapter *a, uint32_t number, uint32_t pdn, uint64_t transient)
{
	struct psv *p = find_of(a, number, pdn);

	if (!p)
		return false;
	sig_psv_arm(&p->sig, transient);
	atomic_fetch_add_explicit(&p->arms, 1, memory_order_relaxed);
	return true;
}
