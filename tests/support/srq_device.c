// SPDX-License-Identifier: BSD-2-Clause
#include "srq_device.h"

#include <string.h>

#include "check.h"

void device_srq_up(struct test_device *r, unsigned dev, struct device_srq *s, uint32_t xrcdn,
		   uint32_t uidx)
{
	struct srq_attr attr;

	device_cq_up(r, dev, &s->cq);
	s->pdn = pd_alloc(r->adapter[dev]);
	s->key = device_mr(r, dev, s->pdn, s->mem, DEVICE_SRQ_BYTES, DEVICE_ALL_ACCESS, &s->mkey);
	attr = (struct srq_attr){
		.pdn = s->pdn,
		.buf = s->ring,
		.wqe_count = DEVICE_SRQ_WQES,
		.wqe_bytes = DEVICE_SRQ_WQE,
		.max_sge = 1,
		.dbrec = &s->dbrec,
		.uidx = uidx,
		.xrcdn = xrcdn,
		.cq = xrcdn ? s->cq.cq : NULL,
	};
	for (unsigned i = 0; i < DEVICE_SRQ_WQES; i++) {
		struct wqe_srq_next next = {.next_wqe_index =
						    be16_of((uint16_t)((i + 1) % DEVICE_SRQ_WQES))};

		memcpy(s->ring + i * DEVICE_SRQ_WQE, &next, sizeof(next));
	}
	CHECK(!srq_create(r->adapter[dev], &attr, &s->srq));
}

void device_srq_down(struct test_device *r, unsigned dev, struct device_srq *s)
{
	if (s->srq)
		CHECK(!srq_destroy(s->srq));
	CHECK(!cq_destroy(s->cq.cq));
	mkey_destroy(r->adapter[dev], s->mkey);
}

void device_srq_post(struct device_srq *s, uint32_t len)
{
	struct wqe_data d[2] = {{be32_of(len), be32_of(s->key), be64_of((uintptr_t)s->mem)},
				{.lkey = be32_of(WQE_DATA_LKEY_END)}};

	memcpy(s->ring + (s->posted % DEVICE_SRQ_WQES) * DEVICE_SRQ_WQE +
		       sizeof(struct wqe_srq_next),
	       d, sizeof(d));
	s->posted++;
	__atomic_store_n(&s->dbrec.raw, be32_of(s->posted).raw, __ATOMIC_RELEASE);
}
