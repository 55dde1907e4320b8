// SPDX-License-Identifier: BSD-2-Clause
/* The ports of a device, as requests name them: by numbers from 1. */
#include <errno.h>

#include "check.h"
#include "driver/uverbs/core/file.h"
#include "test_subnet.h"

static bool rules_refuse(const struct ufile *f, struct qp_attr attr, uint32_t mask)
{
	int ret = ufile_check_qp_attr(f, &attr, mask);

	CHECK(!ret || ret == -EINVAL);
	return ret;
}

/* Queue pairs stand at the first port, however many there are. */
static void test_qp_ports(const struct ufile *f)
{
	CHECK(!rules_refuse(f, (struct qp_attr){.port_num = 1}, IB_QP_PORT));
	CHECK(rules_refuse(f, (struct qp_attr){.port_num = 0}, IB_QP_PORT));
	CHECK(rules_refuse(f, (struct qp_attr){.port_num = 2}, IB_QP_PORT));
	CHECK(rules_refuse(f, (struct qp_attr){.port_num = 3}, IB_QP_PORT));
	CHECK(!rules_refuse(f, (struct qp_attr){.port_num = 2}, 0));
	CHECK(!rules_refuse(f, (struct qp_attr){.alt_port_num = 1}, IB_QP_ALT_PATH));
	CHECK(rules_refuse(f, (struct qp_attr){.alt_port_num = 2}, IB_QP_ALT_PATH));
}

int main(void)
{
	static struct process process;
	static struct ufile file;
	struct subnet s;
	static struct hca two, one;

	test_subnet_open(&s, 4);
	test_subnet_port(&s, 0, 0, false); /* so that rows are not numbers */
	test_subnet_hca(&s, 1, 0, 2, false);
	test_subnet_hca(&s, 1, 1, 1, true);
	process.subnet = &s;
	two = (struct hca){.node = subnet_node_of(&s, 1), .port_row = 1, .port = &s.ports[1]};
	one = (struct hca){.node = subnet_node_of(&s, 3), .port_row = 3, .port = &s.ports[3]};
	file.process = &process;

	file.hca = &two;
	CHECK(!ufile_has_port(&file, 0) && ufile_has_port(&file, 1) && ufile_has_port(&file, 2));
	CHECK(!ufile_has_port(&file, 3) && !ufile_has_port(&file, UINT64_MAX));
	CHECK(!ufile_has_port(&file, (1ull << 32) + 1));
	CHECK(ufile_port_row(&file, 1) == 1 && ufile_port_row(&file, 2) == 2);
	CHECK(ufile_port(&file) == &s.ports[1]);
	test_qp_ports(&file);
	subnet_set_state(&s, 2, IB_PORT_DOWN);
	CHECK(ufile_port_state(&file, 1) == IB_PORT_ACTIVE);
	CHECK(ufile_port_state(&file, 2) == IB_PORT_DOWN);

	file.hca = &one;
	test_qp_ports(&file);
	CHECK(ufile_has_port(&file, 1) && !ufile_has_port(&file, 2));
	CHECK(ufile_port_row(&file, 1) == 3 && ufile_port_state(&file, 1) == IB_PORT_ACTIVE);
	/* Without the daemon nothing is routed. */
	atomic_store(&process.lost, true);
	CHECK(ufile_port_state(&file, 1) == IB_PORT_DOWN);
	test_subnet_close(&s);
	return 0;
}
