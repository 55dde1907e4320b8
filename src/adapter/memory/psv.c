// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/memory/psv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/transport/qp.h"
#include "adapter/sig/sig.h"
#include "base/log.h"
#include "base/rcu.h"

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
	rcu_wait();
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
	/* whether it is the first is for the key to say */
	(void)!sig_psv_raise(&p->sig);
	return true;
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

uint8_t psv_execute(struct qp *qp, const struct send_wqe *w)
{
	struct wqe_set_psv set;
	uint32_t number;

	if (wqe_ds(&w->ctrl) * WQE_UNIT != sizeof(w->ctrl) + sizeof(set)) {
		log_info("QP 0x%x: SET_PSV of one PSV has ds 2, not %u", qp->qpn, wqe_ds(&w->ctrl));
		return CQE_SYN_LOCAL_QP_OP;
	}
	memcpy(&set, w->bytes + sizeof(w->ctrl), sizeof(set));
	number = be32_get(set.psv_index) & PSV_INDEX_MASK;
	if (psv_set(qp->adapter, number, qp->create.pdn, be64_get(set.transient_signature)))
		return 0;
	log_info("QP 0x%x: SET_PSV: no PSV 0x%x in its protection domain", qp->qpn, number);
	return CQE_SYN_LOCAL_PROT;
}
