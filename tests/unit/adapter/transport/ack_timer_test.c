// SPDX-License-Identifier: BSD-2-Clause
/*
 * A queue pair whose timeout is set to 0 while a request is outstanding waits for ever, although its timer
 * runs: it neither sends again nor gives up.
 */
#include <unistd.h>

#include "adapter_device.h"
#include "check.h"

static struct test_device device;
static struct device_qp a, b;
static unsigned sent;

enum wire_verdict __wrap_wire_xmit(struct wire *w, const struct pkt *p);

/* Every packet is lost. */
enum wire_verdict __wrap_wire_xmit(struct wire *w, const struct pkt *p)
{
	(void)w, (void)p;
	sent++;
	return WIRE_SENT;
}

static void modify(uint32_t mask, struct qp_attr attr)
{
	CHECK(!qp_modify(a.qp, &attr, mask));
}

static void wait_30_ms(void)
{
	for (unsigned i = 0; i < 30; i++) {
		usleep(1000);
		/* who polls looks at the clock once in so many times */
		for (unsigned k = 0; k < 32; k++)
			(void)adapter_progress(device.adapter[0], NULL);
	}
}

int main(void)
{
	struct device_wqe w;

	alarm(60);
	device_up(&device);
	device_qp_up(&device, 0, &a, IB_QPT_RC);
	device_qp_up(&device, 0, &b, IB_QPT_RC);
	device_connect(&device, 0, &a, &b); /* with a timeout of 1 ms and two retries */
	device_wqe_begin(&a, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_end(&w);
	CHECK(sent == 1);
	modify(IB_QP_STATE, (struct qp_attr){.state = IB_QPS_SQD});
	modify(IB_QP_TIMEOUT, (struct qp_attr){.timeout = 0});
	modify(IB_QP_STATE, (struct qp_attr){.state = IB_QPS_RTS});
	wait_30_ms();
	CHECK_SAY(sent == 1 && !device_cq_poll(&a.cq), "sent %u times", sent);
	device_qp_down(&a);
	device_qp_down(&b);
	device_down(&device);
	return 0;
}
