/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast: groups of datagram QPs in one process, and the way between processes. */
#include <errno.h>
#include <string.h>

#include "adapter_device.h"
#include "base/explain.h"
#include "base/trace.h"
#include "captured.h"
#include "check.h"
#include "test_fabric.h"

/* ---- groups of one device ---- */

#define MEMBERS 3u
#define QKEY	0x11111111u

static struct test_device device;
static struct device_qp member[MEMBERS];
static uint8_t memory[4096];

static union ib_gid group_gid(uint8_t last)
{
	return (union ib_gid){.raw = {0xff, 0x12, [15] = last}};
}

static void send_to(unsigned dev, struct device_qp *q, const union ib_gid *gid, uint16_t mlid,
		    uint32_t qkey, const char *text)
{
	struct wqe_av av = {
		.dc_key_or_qkey = be64_of((uint64_t)qkey << 32),
		.dqp_dct = be32_of(WQE_AV_EXTENDED | IB_MULTICAST_QPN),
		.rlid = be16_of(dev ? 0 : mlid),
		.hop_limit = 1,
		.grh_gid_fl = be32_of(WQE_AV_GRH),
	};
	struct device_wqe w;

	memcpy(av.rgid, gid->raw, sizeof(av.rgid));
	device_wqe_begin(q, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
	memcpy(w.bytes + w.at, &av, sizeof(av));
	w.at += sizeof(av);
	device_wqe_inline(&w, text, (uint32_t)strlen(text));
	device_wqe_end(&w);
}

/* Consumes q's completions; how many messages came, all with that text. */
static unsigned count_received(struct device_qp *q, unsigned slot, const char *text)
{
	const struct cqe64 *cqe;
	unsigned n = 0;

	while ((cqe = device_cq_poll(&q->cq))) {
		if (cqe->op_own >> 4 == CQE_OP_REQ)
			continue;
		CHECK(cqe->op_own >> 4 == CQE_OP_RESP_SEND);
		CHECK(be32_get(cqe->byte_cnt) == IB_GRH_BYTES + strlen(text));
		CHECK(be32_get(cqe->flags_rqpn) & CQE_FLAGS_GRH);
		CHECK(!memcmp(memory + slot * 256 + IB_GRH_BYTES, text, strlen(text)));
		n++;
	}
	return n;
}

static void test_groups(unsigned dev)
{
	const union ib_gid a = group_gid(1), b = group_gid(2), unicast = {.raw = {0xfe, 0x80}};
	const union ib_gid v4 = {.raw = {[10] = 0xff, 0xff, 230, 0, 0, 1}};
	struct mkey *mr[MEMBERS];
	struct device_qp rc;

	for (unsigned i = 0; i < MEMBERS; i++) {
		struct qp_attr attr;

		device_qp_up(&device, dev, &member[i], IB_QPT_UD);
		device_connect(&device, dev, &member[i], &member[i]);
		device_attr(&device, dev, &member[i], &attr);
		for (unsigned n = 0; n < 16; n++)
			device_recv(&member[i], memory + i * 256, 256,
				    n ? mkey_key(mr[i])
				      : device_mr(&device, dev, member[i].pdn, memory,
						  sizeof(memory), IB_ACCESS_LOCAL_WRITE, &mr[i]));
	}
	device_qp_up(&device, dev, &rc, IB_QPT_RC);
	CHECK(qp_attach_mcast(rc.qp, &a, 0xc001) == -EINVAL);
	CHECK(qp_attach_mcast(member[0].qp, &unicast, 0xc001) == -EINVAL);
	CHECK(qp_attach_mcast(member[0].qp, &v4, 0xc001) == 1);
	CHECK(qp_detach_mcast(member[0].qp, &v4, 0xc002) == -EINVAL);
	CHECK(!qp_detach_mcast(member[0].qp, &v4, 0xc001));
	CHECK(qp_detach_mcast(member[0].qp, &v4, 0xc001) == -EINVAL);

	/* nobody there: sent all the same */
	send_to(dev, &member[0], &a, 0xc001, QKEY, "alone");
	CHECK(be32_get(device_cq_poll(&member[0].cq)->sop_drop_qpn) >> 24 == WQE_OP_SEND);
	CHECK(!device_cq_poll(&member[0].cq));

	CHECK(qp_attach_mcast(member[0].qp, &a, 0xc001) == 1);
	CHECK(qp_attach_mcast(member[0].qp, &a, 0xc001) == 0);
	CHECK(qp_attach_mcast(member[1].qp, &a, 0xc001) == 1);
	CHECK(qp_attach_mcast(member[1].qp, &b, 0xc002) == 1);
	CHECK(qp_attach_mcast(member[2].qp, &b, 0xc002) == 1);
	send_to(dev, &member[0], &a, 0xc001, QKEY, "to a");
	CHECK(count_received(&member[0], 0, "to a") == 1);
	CHECK(count_received(&member[1], 1, "to a") == 1);
	CHECK(count_received(&member[2], 2, "to a") == 0);
	send_to(dev, &member[0], &b, 0xc002, QKEY, "to b");
	CHECK(count_received(&member[0], 0, "") == 0);
	CHECK(count_received(&member[1], 1, "to b") == 1);
	CHECK(count_received(&member[2], 2, "to b") == 1);
	/* wrong key; and on InfiniBand another LID is another group */
	send_to(dev, &member[0], &b, 0xc002, QKEY + 1, "key");
	send_to(dev, &member[0], &b, 0xc003, QKEY, "lid");
	CHECK(count_received(&member[1], 1, "lid") == dev);
	CHECK(count_received(&member[2], 2, "lid") == dev);

	CHECK(!qp_detach_mcast(member[1].qp, &b, 0xc002));
	send_to(dev, &member[0], &b, 0xc002, QKEY, "left");
	CHECK(count_received(&member[1], 1, "") == 0 && count_received(&member[2], 2, "left") == 1);
	/* a member that goes leaves */
	device_qp_down(&member[1]);
	send_to(dev, &member[0], &a, 0xc001, QKEY, "gone");
	CHECK(count_received(&member[0], 0, "gone") == 1);
	CHECK(atomic_load(&wire_counters(device.wire[dev])[PORT_MULTICAST_XMIT_PACKETS]) +
		      atomic_load(&wire_counters(device.wire[dev])[PORT_MULTICAST_XMIT_PACKETS +
								   SLOT_PORTS * PORT_COUNTERS]) >=
	      6);
	device_qp_down(&member[0]);
	device_qp_down(&member[2]);
	device_qp_down(&rc);
	for (unsigned w = 0; w < SLOT_GROUP_WORDS; w++)
		CHECK(!atomic_load(&device.slots[0].groups[w]));
	for (unsigned i = 0; i < MEMBERS; i++)
		mkey_destroy(device.adapter[dev], mr[i]);
}

/* Nobody gets it, and both the trace and the explanation say why. */
static void expect_told(struct device_qp *q, const union ib_gid *gid, uint16_t mlid,
			const char *traced, const char *said)
{
	const char *text;

	capture_begin();
	send_to(0, q, gid, mlid, QKEY, "unheard");
	text = capture_end();
	CHECK(strstr(text, traced) && strstr(text, said) && count_received(q, 0, "") == 0);
}

static void blocked_self(void)
{
	const union ib_gid a = group_gid(9);
	struct device_qp q;
	struct mkey *mr;
	struct qp_create_attr attr = {
		.type = IB_QPT_UD,
		.sq_blocks = DEVICE_BLOCKS,
		.rq_wqes = DEVICE_RECVS,
		.rq_wqe_bytes = DEVICE_RQ_BYTES,
		.block_self_mcast = true,
	};

	device_qp_up(&device, 0, &q, IB_QPT_UD);
	device_qp_up(&device, 0, &member[0], IB_QPT_UD);
	qp_destroy(q.qp);
	attr.pdn = q.pdn;
	attr.send_cq = attr.recv_cq = q.cq.cq;
	attr.sq_buf = q.sq;
	attr.rq_buf = q.rq;
	attr.dbrec = q.dbrec;
	CHECK(!qp_create(device.adapter[0], &attr, &q.qp));
	device_connect(&device, 0, &q, &q);
	device_recv(&q, memory, 256,
		    device_mr(&device, 0, q.pdn, memory, sizeof(memory), IB_ACCESS_LOCAL_WRITE,
			      &mr));
	device_connect(&device, 0, &member[0], &member[0]);
	CHECK(qp_attach_mcast(q.qp, &a, 0xc001) == 1);
	trace_select("packet.dropped");
	explain_on = true;
	expect_told(&q, &a, 0xc001, "why=own-message", "dropped: the QP has sent it itself");
	expect_told(&q, &a, 0xc002, "why=no-member", "no QP of the fabric is attached");
	explain_on = false;
	trace_select("");
	send_to(0, &member[0], &a, 0xc001, QKEY, "other");
	CHECK(count_received(&q, 0, "other") == 1);
	device_qp_down(&q);
	device_qp_down(&member[0]);
	mkey_destroy(device.adapter[0], mr);
}

/* ---- between processes ---- */

struct listener {
	unsigned packets;
	bool wants;
};

static void unicast_receive(void *user, const struct pkt *p)
{
	(void)user;
	(void)p;
	CHECK(!"a group packet came as a unicast one");
}

static bool group_receive(void *user, const struct pkt *p)
{
	struct listener *l = user;

	CHECK(p->dqpn == IB_MULTICAST_QPN && p->payload_len == 1500);
	l->packets += l->wants;
	return l->wants;
}

static void expect_lost(struct test_process *st, const struct pkt *p, const char *why)
{
	trace_select("packet.lost");
	capture_begin();
	CHECK(wire_xmit(st->wire, p) == WIRE_LOST);
	CHECK(strstr(capture_end(), why));
	trace_select("");
}

static void between_processes(void)
{
	struct test_fabric *fabric = test_fabric_create();
	struct listener listener[2] = {{.wants = true}, {.wants = true}};
	struct test_process st[2];
	uint8_t payload[1500];
	struct run run = {payload, sizeof(payload)};
	struct path path = {.src_port = 0, .dst_port = SUBNET_NONE, .grh = true};
	struct pkt p = {
		.opcode = BTH_UD | BTH_SEND_ONLY,
		.dqpn = IB_MULTICAST_QPN,
		.npkts = 1,
		.path = &path,
		.payload_len = sizeof(payload),
		.nruns = 1,
		.runs = &run,
	};
	unsigned sent = 0;

	path.dgid = group_gid(1);
	atomic_store(&fabric->registry->slots_used[0], 3);
	for (uint16_t i = 0; i < 2; i++) {
		const struct wire_client client = {.receive = unicast_receive,
						   .receive_group = group_receive,
						   .user = &listener[i]};

		test_process_up(&st[i], fabric, i, unicast_receive, NULL);
		wire_attach(st[i].wire, &client);
	}
	subnet_set_state(&fabric->subnet, 0, IB_PORT_DOWN);
	expect_lost(&st[0], &p, "why=port-down");
	subnet_set_state(&fabric->subnet, 0, IB_PORT_ACTIVE);
	p.opcode = BTH_RC | BTH_SEND_ONLY;
	expect_lost(&st[0], &p, "why=connected");
	p.opcode = BTH_UD | BTH_SEND_ONLY;
	/* nobody listens: no channel is opened */
	CHECK(wire_xmit(st[0].wire, &p) == WIRE_SENT && !atomic_load(&fabric->opened));
	wire_listen(st[1].wire, wire_group(&path.dgid));
	wire_listen(st[1].wire, wire_group(&path.dgid));
	CHECK(wire_xmit(st[0].wire, &p) == WIRE_SENT);
	test_process_add_channel(&st[1]);
	while (wire_process_progress(st[1].host))
		;
	CHECK(listener[1].packets == 1 && !listener[0].packets);
	/* the sender listens too */
	wire_listen(st[0].wire, wire_group(&path.dgid));
	CHECK(wire_xmit(st[0].wire, &p) == WIRE_SENT);
	while (wire_process_progress(st[1].host))
		;
	CHECK(listener[1].packets == 2 && listener[0].packets == 1);
	/* no room at one receiver: no copy for the other either, and none is lost */
	while (wire_xmit(st[0].wire, &p) == WIRE_SENT)
		sent++;
	CHECK(sent > 10 && listener[0].packets == 1 + sent);
	while (wire_process_progress(st[1].host))
		;
	CHECK(listener[1].packets == 2 + sent);
	CHECK(wire_xmit(st[0].wire, &p) == WIRE_SENT);
	/* received, but nobody wanted it: does not count */
	listener[1].wants = false;
	while (wire_process_progress(st[1].host))
		;
	CHECK(test_process_counter(&st[1], PORT_MULTICAST_RCV_PACKETS) == 2 + sent);
	CHECK(test_process_counter(&st[0], PORT_MULTICAST_XMIT_PACKETS) == 4 + sent);
	wire_unlisten(st[1].wire, wire_group(&path.dgid));
	CHECK(atomic_load(&fabric->slots[1].groups[wire_group(&path.dgid) / 64]));
	wire_unlisten(st[1].wire, wire_group(&path.dgid));
	CHECK(!atomic_load(&fabric->slots[1].groups[wire_group(&path.dgid) / 64]));
	/* a link layer of another kind hears nothing */
	wire_listen(st[1].wire, wire_group(&path.dgid));
	listener[1] = (struct listener){.wants = true};
	fabric->subnet.ports[0].ethernet = 1;
	CHECK(wire_xmit(st[0].wire, &p) == WIRE_SENT);
	while (wire_process_progress(st[1].host))
		;
	CHECK(!listener[1].packets);
	for (unsigned i = 0; i < 2; i++)
		test_process_down(&st[i]);
}

int main(void)
{
	device_up(&device);
	test_groups(0);
	test_groups(1);
	blocked_self();
	device_down(&device);
	between_processes();
	return 0;
}
