// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs stand at the first port of their adapter; whoever names another is refused, and
 * nothing of the modification is taken over. */
#include <errno.h>

#include "adapter/qp/qp.h"
#include "adapter_device.h"
#include "check.h"

static struct test_device device;
static struct device_qp q;

static void expect_state(enum ib_qp_state state, uint8_t port)
{
	struct qp_attr now;

	qp_query(q.qp, &now);
	CHECK(now.state == state && now.port_num == port);
}

static void test_init(void)
{
	static const uint8_t wrong[] = {0, 2, 3, 255};
	struct qp_attr attr;

	for (size_t i = 0; i < array_size(wrong); i++) {
		device_attr(&device, 0, &q, &attr);
		attr.state = IB_QPS_INIT;
		attr.port_num = wrong[i];
		CHECK(qp_modify(q.qp, &attr,
				IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS) ==
		      -EINVAL);
		expect_state(IB_QPS_RESET, 1);
	}
	attr.port_num = 1;
	CHECK(!qp_modify(q.qp, &attr,
			 IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS));
	expect_state(IB_QPS_INIT, 1);
}

static void test_address(void)
{
	const uint32_t to_rtr = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
				IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	struct qp_attr attr;

	device_attr(&device, 0, &q, &attr);
	attr.state = IB_QPS_RTR;
	attr.ah.port_num = 2;
	CHECK(qp_modify(q.qp, &attr, to_rtr) == -EINVAL);
	expect_state(IB_QPS_INIT, 1);
	attr.ah.port_num = 1;
	CHECK(!qp_modify(q.qp, &attr, to_rtr));
	expect_state(IB_QPS_RTR, 1);
}

int main(void)
{
	device_up(&device);
	device_qp_up(&device, 0, &q, IB_QPT_RC);
	test_init();
	test_address();
	device_qp_down(&q);
	device_down(&device);
	return 0;
}
