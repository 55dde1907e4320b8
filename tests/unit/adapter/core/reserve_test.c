// SPDX-License-Identifier: BSD-2-Clause
/* Ranges of QP numbers without queue pairs: each once, whole, and apart from those of queue
 * pairs. */
#include "adapter_device.h"
#include "check.h"

#define RANGE  (1u << ADAPTER_LOG_RESERVED_QPNS)
#define RANGES (3 * NUMBER_CHUNK / RANGE)

int main(void)
{
	static uint32_t first[RANGES];
	struct device_qp q[2];
	struct test_device r;

	device_up(&r);
	device_qp_up(&r, 0, &q[0], IB_QPT_RC);
	for (unsigned i = 0; i < RANGES; i++) {
		int64_t qpn = qpn_reserve(r.adapter[0]);

		CHECK(qpn > 0 && qpn % RANGE == 0);
		first[i] = (uint32_t)qpn;
		for (unsigned k = 0; k < i; k++)
			CHECK(first[k] != first[i]);
		CHECK(qp_number(q[0].qp) - first[i] >= RANGE);
	}
	device_qp_up(&r, 0, &q[1], IB_QPT_RC);
	for (unsigned i = 0; i < RANGES; i++)
		CHECK(qp_number(q[1].qp) - first[i] >= RANGE);
	/* one that is given back is the next to be had */
	qpn_unreserve(r.adapter[0], first[5]);
	CHECK(qpn_reserve(r.adapter[0]) == first[5]);
	device_qp_down(&q[0]);
	device_qp_down(&q[1]);
	device_down(&r);
	return 0;
}
