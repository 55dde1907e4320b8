// SPDX-License-Identifier: BSD-2-Clause
#include "lone_responder.h"

#include <string.h>
#include <unistd.h>

#include "adapter/core/device.h"
#include "check.h"

#define LID 7u

static int64_t lone_chunk(void *user, enum number_kind kind)
{
	struct test_device *d = user;

	if (kind == NUMBER_QPN)
		return test_fabric_qpn(0);
	return (int64_t)++d->next_chunk << REGISTRY_CHUNK_SHIFT;
}

static void lone_connect(struct lone_responder *l, const struct lone_attr *how)
{
	static const uint32_t masks[] = {
		[IB_QPS_INIT] = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
		[IB_QPS_RTR] = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			       IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
	};
	struct qp_attr attr;

	device_attr(&l->device, 0, &l->qp, &attr);
	attr.ah.dlid = LID + 1;
	attr.dest_qpn = LONE_PEER;
	attr.rq_psn = how->psn;
	if (how->reads)
		attr.max_dest_rd_atomic = how->reads;
	for (enum ib_qp_state s = IB_QPS_INIT; s <= IB_QPS_RTR; s++) {
		attr.state = s;
		CHECK(!qp_modify(l->qp.qp, &attr, masks[s]));
	}
}

void lone_responder_up(struct lone_responder *l, const struct lone_attr *how)
{
	struct adapter_attr attr = {.number_chunk = lone_chunk, .user = &l->device};

	memset(l, 0, sizeof(*l));
	l->fabric = test_fabric_create();
	for (uint16_t s = 0; s < TEST_FABRIC_PORTS; s++) {
		test_subnet_lid(&l->fabric->subnet, s, (uint16_t)(LID + s));
		test_process_up(&l->st[s], l->fabric, s, how->receive, how->user);
	}
	attr.wire = l->st[0].wire;
	l->device = (struct test_device){
		.subnet = &l->fabric->subnet, .silent = true, .region = how->region};
	CHECK(!adapter_create(&attr, &l->device.adapter[0]));
	device_qp_up(&l->device, 0, &l->qp, IB_QPT_RC);
	(void)device_mr(&l->device, 0, l->qp.pdn, how->memory.addr, how->memory.len,
			DEVICE_ALL_ACCESS, &l->mr);
	lone_connect(l, how);
	test_process_add_channel(&l->st[0]);
}

void lone_responder_down(struct lone_responder *l)
{
	device_qp_down(&l->qp);
	mkey_destroy(l->device.adapter[0], l->mr);
	adapter_destroy(l->device.adapter[0]);
	for (unsigned s = 0; s < TEST_FABRIC_PORTS; s++)
		test_process_down(&l->st[s]);
	close(l->fabric->channel_fd);
}

void lone_responder_ask(struct lone_responder *l, struct pkt *p)
{
	p->pkey = 0xffff;
	p->sqpn = LONE_PEER;
	p->dqpn = qp_number(l->qp.qp);
	p->path = &l->st[1].path;
	CHECK(wire_xmit(l->st[1].wire, p) == WIRE_SENT);
}

void lone_responder_progress(struct lone_responder *l)
{
	uint64_t never = UINT64_MAX;

	(void)wire_process_progress(l->st[0].host);
	(void)adapter_progress(l->device.adapter[0], &never);
}
