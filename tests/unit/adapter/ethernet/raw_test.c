/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw packet QPs on one device: frames by rules, segmentation, checksums, VLAN tags, RSS,
 * errors. */
#include <errno.h>
#include <string.h>

#include "adapter_device.h"
#include "adapter/frame/frame.h"
#include "adapter/steering.h"
#include "base/explain.h"
#include "base/trace.h"
#include "captured.h"
#include "check.h"
#include "plain_tunnel.h"
#include "prm/wqe.h"

#define ETHERNET 1u
#define RECV	 4096u

static struct test_device device;
static struct device_qp tx, rx;
static uint8_t out[65536], in[16 * RECV];
static struct mkey *tx_mr, *rx_mr;

static void qp_to_state(struct device_qp *q, enum ib_qp_state state, uint32_t mask)
{
	struct qp_attr attr = {.state = state, .port_num = 1};

	CHECK(!qp_modify(q->qp, &attr, IB_QP_STATE | mask));
}

static void to_rts(struct device_qp *q)
{
	struct qp_attr attr = {.state = IB_QPS_INIT, .port_num = 1};

	CHECK(qp_modify(q->qp, &attr, IB_QP_STATE) == -EINVAL);
	qp_to_state(q, IB_QPS_INIT, IB_QP_PORT);
	qp_to_state(q, IB_QPS_RTR, 0);
	qp_to_state(q, IB_QPS_RTS, 0);
}

static void post_receives(struct device_qp *q, unsigned n, uint32_t bytes)
{
	for (unsigned i = 0; i < n; i++)
		device_recv(q, in + i * RECV, bytes, mkey_key(rx_mr));
}

/* An IPv4 TCP frame with n payload bytes; returns the size of its headers. */
static uint32_t tcp_frame(uint32_t n)
{
	uint32_t total = 40 + n;

	memset(out, 0, 54);
	memcpy(out, "\x01\x50\x56\x19\x20\xa7\x24\x8a\x07\xa5\x28\xc8\x08\x00", 14);
	out[14] = 0x45;
	out[16] = (uint8_t)(total >> 8);
	out[17] = (uint8_t)total;
	out[22] = 64;
	out[23] = 6;
	memcpy(out + 26, "\x0a\x00\x00\x01\x0a\x00\x00\x02\x12\x34\x56\x78", 12);
	out[46] = 0x50;
	for (uint32_t i = 0; i < n; i++)
		out[54 + i] = (uint8_t)(i * 13);
	return 54;
}

static void begin_frame(struct device_wqe *w, uint8_t opcode, uint8_t cs_flags, uint16_t mss,
			const uint8_t *header, uint32_t header_len)
{
	struct wqe_eth e = {.cs_flags = cs_flags,
			    .mss = be16_of(mss),
			    .inline_hdr_sz = be16_of((uint16_t)header_len)};

	device_wqe_begin(&tx, w, opcode, WQE_CTRL_CE_ALWAYS, 0);
	memcpy(w->bytes + w->at, &e, sizeof(e));
	if (header_len)
		memcpy(w->bytes + w->at + offsetof(struct wqe_eth, inline_hdr_start), header,
		       header_len);
	w->at += (uint32_t)align_up(offsetof(struct wqe_eth, inline_hdr_start) + header_len, 16);
}

static void send_frame(uint32_t bytes, uint8_t cs_flags)
{
	struct device_wqe w;

	begin_frame(&w, WQE_OP_SEND, cs_flags, 0, NULL, 0);
	device_wqe_data(&w, out, bytes, mkey_key(tx_mr));
	device_wqe_end(&w);
}

static void expect_sent(void)
{
	const struct cqe64 *cqe = device_cq_poll(&tx.cq);

	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ);
}

static struct flow *counting_rule(struct qp *qp, uint32_t priority, struct flow_counter *counter)
{
	struct flow_attr attr = {
		.priority = priority,
		.value.dst_mac = {0x01, 0x50, 0x56, 0x19, 0x20, 0xa7},
		.mask.dst_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		.qp = qp,
		.counter = counter,
	};
	struct flow *flow;

	CHECK(!flow_create(device.adapter[ETHERNET], &attr, &flow));
	return flow;
}

static struct flow *add_rule(struct qp *qp, uint32_t priority)
{
	return counting_rule(qp, priority, NULL);
}

static void test_plain(void)
{
	struct flow *flow, *drop;
	const struct cqe64 *cqe;
	uint32_t n = tcp_frame(200) + 200;

	/* no rule: sent, and nobody gets it */
	send_frame(n, 0);
	expect_sent();
	CHECK(!device_cq_poll(&rx.cq));
	flow = add_rule(rx.qp, 1);
	send_frame(n, 0);
	expect_sent();
	cqe = device_cq_poll(&rx.cq);
	CHECK(cqe && be32_get(cqe->byte_cnt) == n && !memcmp(in, out, n));
	CHECK(!(cqe->hds_ip_ext & CQE_ETH_L3_OK) &&
	      (cqe->l4_hdr_type_etc >> CQE_ETH_L3_SHIFT & 3) == CQE_ETH_L3_IPV4);
	send_frame(n, WQE_ETH_L3_CSUM | WQE_ETH_L4_CSUM);
	expect_sent();
	cqe = device_cq_poll(&rx.cq);
	CHECK(cqe && cqe->hds_ip_ext == (CQE_ETH_L2_OK | CQE_ETH_L3_OK | CQE_ETH_L4_OK));
	/* a rule that drops, and comes first */
	drop = add_rule(NULL, 0);
	send_frame(n, 0);
	expect_sent();
	CHECK(!device_cq_poll(&rx.cq));
	flow_destroy(drop);
	flow_destroy(flow);
	CHECK(!atomic_load(&device.slots[0].groups[0]));
}

/* A sniffer sees what others take, what a rule drops and what nobody wants. */
static void test_sniffer(void)
{
	const struct flow_attr attr = {.domain = FLOW_SNIFFER, .qp = rx.qp};
	const struct flow_attr bad = {.domain = FLOW_SNIFFER};
	uint32_t n = tcp_frame(100) + 100;
	const struct slot *slot = &device.slots[0];
	struct flow *sniffer, *rule;
	const struct cqe64 *cqe;

	CHECK(flow_create(device.adapter[ETHERNET], &bad, &sniffer) == -EINVAL);
	CHECK(!flow_create(device.adapter[ETHERNET], &attr, &sniffer));
	CHECK(atomic_load(&slot->sniffs) && atomic_load(&slot->groups[0]));
	send_frame(n, 0);
	expect_sent();
	cqe = device_cq_poll(&rx.cq);
	CHECK(cqe && be32_get(cqe->byte_cnt) == n && !device_cq_poll(&rx.cq));
	rule = add_rule(NULL, 0);
	send_frame(n, 0);
	expect_sent();
	CHECK(device_cq_poll(&rx.cq) && !device_cq_poll(&rx.cq));
	flow_destroy(rule);
	rule = add_rule(rx.qp, 0);
	send_frame(n, 0);
	expect_sent();
	CHECK(device_cq_poll(&rx.cq) && device_cq_poll(&rx.cq) && !device_cq_poll(&rx.cq));
	flow_destroy(rule);
	flow_destroy(sniffer);
	CHECK(!atomic_load(&slot->sniffs) && !atomic_load(&slot->groups[0]));
	send_frame(n, 0);
	expect_sent();
	CHECK(!device_cq_poll(&rx.cq));
}

/* Frames that are delivered, and those that are dropped, by the rule that took them. */
static void test_counters(void)
{
	uint32_t n = tcp_frame(200) + 200;
	struct flow_counter *delivered, *dropped;
	struct flow *flow, *drop;
	uint64_t packets, bytes;

	CHECK(!flow_counter_create(&delivered) && !flow_counter_create(&dropped));
	flow = counting_rule(rx.qp, 1, delivered);
	for (unsigned i = 0; i < 3; i++) {
		send_frame(n, 0);
		expect_sent();
		CHECK(device_cq_poll(&rx.cq));
	}
	drop = counting_rule(NULL, 0, dropped);
	send_frame(n, 0);
	expect_sent();
	flow_destroy(drop);
	flow_destroy(flow);
	send_frame(n, 0);
	expect_sent();
	flow_counter_read(delivered, &packets, &bytes);
	CHECK(packets == 3 && bytes == 3 * n);
	flow_counter_read(dropped, &packets, &bytes);
	CHECK(packets == 1 && bytes == n);
	flow_counter_destroy(delivered);
	flow_counter_destroy(dropped);
}

/* Sends n frames in one batch, and takes their completions. */
static void batch_of(unsigned n)
{
	uint32_t bytes = tcp_frame(100) + 100;

	adapter_batch_end(device.adapter[ETHERNET]);
	for (unsigned i = 0; i < n; i++) {
		send_frame(bytes, 0);
		expect_sent();
		CHECK(device_cq_poll(&rx.cq));
	}
}

/* A batch of many frames that leaves too few receives for another one is told once; rx has none. */
static void test_few_receives(void)
{
	struct flow *flow = add_rule(rx.qp, 0);
	struct adapter *a = device.adapter[ETHERNET];

	(void)adapter_few_receives(a); /* of the frames before */
	for (unsigned i = 0; i < DEVICE_RECVS; i++)
		device_recv(&rx, in, RECV, mkey_key(rx_mr));
	/* As many as half of the ring are left when the last one comes. */
	batch_of(32);
	CHECK(!adapter_few_receives(a));
	/* Few are left, but these are no many frames. */
	batch_of(20);
	CHECK(!adapter_few_receives(a));
	for (unsigned i = 0; i < 32; i++)
		device_recv(&rx, in, RECV, mkey_key(rx_mr));
	batch_of(31);
	CHECK(!adapter_few_receives(a));
	for (unsigned i = 0; i < 31; i++)
		device_recv(&rx, in, RECV, mkey_key(rx_mr));
	batch_of(32);
	CHECK(adapter_few_receives(a) && !adapter_few_receives(a));
	batch_of(12);
	CHECK(!adapter_few_receives(a));
	flow_destroy(flow);
}

static void test_segments(void)
{
	struct flow *flow = add_rule(rx.qp, 0);
	const uint32_t total = 10000, mss = 1460;
	uint32_t header = tcp_frame(total), off = 0, i = 2;
	struct device_wqe w;

	begin_frame(&w, WQE_OP_TSO, WQE_ETH_L3_CSUM | WQE_ETH_L4_CSUM, (uint16_t)mss, out, header);
	device_wqe_data(&w, out + header, total, mkey_key(tx_mr));
	device_wqe_end(&w);
	expect_sent();
	while (off < total) {
		const struct cqe64 *cqe = device_cq_poll(&rx.cq);
		const uint8_t *f = in + i++ * RECV;
		uint32_t n = min_u32(mss, total - off);

		CHECK(cqe && be32_get(cqe->byte_cnt) == header + n);
		CHECK(cqe->hds_ip_ext == (CQE_ETH_L2_OK | CQE_ETH_L3_OK | CQE_ETH_L4_OK));
		CHECK((uint32_t)(f[40] << 8 | f[41]) == off && !memcmp(f + 54, out + 54 + off, n));
		off += n;
	}
	CHECK(!device_cq_poll(&rx.cq));
	flow_destroy(flow);
}

static void expect_frame(const uint8_t *expected, uint32_t n)
{
	const struct cqe64 *cqe = device_cq_poll(&rx.cq);

	CHECK(cqe && be32_get(cqe->byte_cnt) == n);
	CHECK(!memcmp(in + be16_get(cqe->wqe_counter) % 16 * RECV, expected, n));
}

static void test_tunnels(void)
{
	static const uint8_t protos[] = {17, 47, 4};
	static uint8_t frame[256], expected[512];
	struct flow *flow;

	flow = add_rule(rx.qp, 0);
	for (unsigned i = 0; i < array_size(protos); i++)
		for (uint32_t flags = 0x10; flags <= WQE_ETH_CSUM; flags += 0x10) {
			uint32_t plain = tcp_frame(101) + 101, inner, n;

			memcpy(frame, out, plain);
			n = tunnelled(frame, plain, protos[i], out, &inner);

			memcpy(expected, out, n);
			if (flags & WQE_ETH_L4_INNER_CSUM)
				plain_fill_l4(expected + inner);
			if (flags & WQE_ETH_L3_INNER_CSUM)
				plain_fill_l3(expected + inner);
			if (flags & WQE_ETH_L3_CSUM)
				plain_fill_l3(expected + 14);
			if (flags & WQE_ETH_L4_CSUM && protos[i] == 17)
				plain_fill_l4(expected + 14);
			device_recv(&rx, in + rx.rq_pi % 16 * RECV, RECV, mkey_key(rx_mr));
			send_frame(n, (uint8_t)flags);
			expect_sent();
			expect_frame(expected, n);
		}
	/* where there is no tunnel there is nothing to fill in */
	device_recv(&rx, in + rx.rq_pi % 16 * RECV, RECV, mkey_key(rx_mr));
	CHECK(tcp_frame(100) == 54);
	send_frame(154, WQE_ETH_L3_INNER_CSUM | WQE_ETH_L4_INNER_CSUM);
	expect_sent();
	expect_frame(out, 154);
	flow_destroy(flow);
}

static void test_distribute(void)
{
	static struct device_cq cq[2];
	static _Alignas(64) uint8_t ring[2][8 * 16];
	static be32 dbrec[2][2];
	struct wq *wq[2], *table[4];
	struct rss_attr rss = {.fields = RSS_SRC_IPV4 | RSS_DST_IPV4, .log_size = 2, .wqs = table};
	struct qp_create_attr attr = {.type = IB_QPT_RAW_PACKET, .rss = &rss};
	unsigned got[2] = {0};
	struct flow *flow;
	struct qp *qp;

	for (unsigned i = 0; i < 2; i++) {
		struct wq_attr wa = {.pdn = rx.pdn,
				     .uidx = i,
				     .buf = ring[i],
				     .wqes = 8,
				     .wqe_bytes = 16,
				     .dbrec = dbrec[i],
				     .strip_vlan = true};

		device_cq_up(&device, ETHERNET, &cq[i]);
		wa.cq = cq[i].cq;
		CHECK(!wq_create(device.adapter[ETHERNET], &wa, &wq[i]));
		CHECK(wq_modify(wq[i], IB_WQS_ERR, IB_WQS_RDY) == -EINVAL);
		CHECK(!wq_modify(wq[i], IB_WQS_RESET, IB_WQS_RDY));
		for (unsigned n = 0; n < 8; n++) {
			struct wqe_data d = {be32_of(1500), be32_of(mkey_key(rx_mr)),
					     be64_of((uintptr_t)in)};

			memcpy(ring[i] + n * 16, &d, sizeof(d));
		}
		dbrec[i][DBREC_RECV] = be32_of(8);
		table[i] = table[i + 2] = wq[i];
	}
	memset(rss.key, 0x5a, sizeof(rss.key));
	rss.key[3] = 0x77;
	CHECK(!qp_create(device.adapter[ETHERNET], &attr, &qp));
	CHECK(qp_modify(qp, &(struct qp_attr){.state = IB_QPS_INIT}, IB_QP_STATE) == -ENOSYS);
	flow = add_rule(qp, 0);
	for (unsigned i = 0; i < 12; i++) {
		tcp_frame(100);
		/* a tag between addresses and type */
		memmove(out + 16, out + 12, 142);
		memcpy(out + 12, "\x81\x00\x20\x05", 4);
		out[29 + 4] = (uint8_t)i;
		send_frame(158, 0);
		expect_sent();
	}
	for (unsigned i = 0; i < 2; i++) {
		const struct cqe64 *cqe;

		while ((cqe = device_cq_poll(&cq[i]))) {
			CHECK(be32_get(cqe->srqn_uidx) == i && be32_get(cqe->byte_cnt) == 154);
			CHECK(cqe->l4_hdr_type_etc & CQE_ETH_CVLAN_STRIPPED);
			CHECK(be16_get(cqe->vlan_info) == 0x2005);
			CHECK((be32_get(cqe->rss_hash_result) & 1) == i && cqe->rss_hash_type);
			got[i]++;
		}
	}
	CHECK(got[0] && got[1] && got[0] + got[1] == 12);
	CHECK(!memcmp(in + 12, "\x08\x00\x45", 3));
	/* a frame that does not fit ends the queue, with the rest flushed */
	tcp_frame(1600);
	send_frame(1654, 0);
	expect_sent();
	for (unsigned i = 0; i < 2; i++) {
		const struct cqe64_err *err = (const void *)device_cq_poll(&cq[i]);

		CHECK(!err == (wq_state(wq[i]) == IB_WQS_RDY));
		if (!err)
			continue;
		CHECK(err->op_own >> 4 == CQE_OP_RESP_ERR && err->syndrome == CQE_SYN_LOCAL_LENGTH);
		for (got[i]++; got[i] < 8; got[i]++) {
			err = (const void *)device_cq_poll(&cq[i]);
			CHECK(err && err->syndrome == CQE_SYN_WR_FLUSH);
		}
	}
	/* what is posted later is flushed in error, and stays in other states */
	for (unsigned i = 0; i < 2; i++) {
		bool failed = wq_state(wq[i]) == IB_WQS_ERR;
		const struct cqe64_err *err;

		dbrec[i][DBREC_RECV] = be32_of(be32_get(dbrec[i][DBREC_RECV]) + failed);
		wq_recv_posted(wq[i]);
		err = (const void *)device_cq_poll(&cq[i]);
		CHECK(!err == !failed && (!err || err->syndrome == CQE_SYN_WR_FLUSH));
		CHECK(!device_cq_poll(&cq[i]));
	}
	flow_destroy(flow);
	qp_destroy(qp);
	for (unsigned i = 0; i < 2; i++) {
		wq_destroy(wq[i]);
		CHECK(!cq_destroy(cq[i].cq));
	}
}

/* Two queues of one context: what comes back follows what each queue asked for. */
static void own_context(void)
{
	struct device_qp a, b;
	struct qp_create_attr attr = {
		.type = IB_QPT_RAW_PACKET,
		.sq_blocks = DEVICE_BLOCKS,
		.rq_wqes = DEVICE_RECVS,
		.rq_wqe_bytes = DEVICE_RQ_BYTES,
		.domain = &device,
	};
	struct device_qp *const both[2] = {&a, &b};
	struct flow *flow[2];
	struct mkey *mr;
	struct device_wqe w;

	for (unsigned i = 0; i < 2; i++) {
		struct device_qp *q = both[i];

		device_qp_up(&device, ETHERNET, q, IB_QPT_RAW_PACKET);
		qp_destroy(q->qp);
		attr.pdn = rx.pdn;
		attr.send_cq = attr.recv_cq = q->cq.cq;
		attr.sq_buf = q->sq;
		attr.rq_buf = q->rq;
		attr.dbrec = q->dbrec;
		attr.loopback = i ? QP_LOOPBACK_MC : QP_LOOPBACK_UC;
		CHECK(!qp_create(device.adapter[ETHERNET], &attr, &q->qp));
		to_rts(q);
		post_receives(q, 4, RECV);
		flow[i] = add_rule(q->qp, 0);
	}
	device_mr(&device, ETHERNET, rx.pdn, out, sizeof(out), 0, &mr);
	tcp_frame(10);
	device_wqe_begin(&a, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
	w.at += sizeof(struct wqe_eth);
	device_wqe_data(&w, out, 64, mkey_key(mr));
	device_wqe_end(&w);
	CHECK(device_cq_poll(&a.cq)->op_own >> 4 == CQE_OP_REQ && !device_cq_poll(&a.cq));
	CHECK(device_cq_poll(&b.cq)->op_own >> 4 == CQE_OP_RESP_SEND && !device_cq_poll(&b.cq));
	/* of another context both get it */
	send_frame(64, 0);
	expect_sent();
	CHECK(device_cq_poll(&a.cq) && device_cq_poll(&b.cq));
	for (unsigned i = 0; i < 2; i++) {
		flow_destroy(flow[i]);
		device_qp_down(both[i]);
	}
	mkey_destroy(device.adapter[ETHERNET], mr);
}

static void expect_send_error(uint8_t syndrome)
{
	const struct cqe64_err *err = (const void *)device_cq_poll(&tx.cq);
	struct qp_attr attr;

	CHECK(err && err->op_own >> 4 == CQE_OP_REQ_ERR && err->syndrome == syndrome);
	qp_query(tx.qp, &attr);
	CHECK(attr.state == IB_QPS_SQE);
	qp_to_state(&tx, IB_QPS_RTS, 0);
}

static void test_errors(void)
{
	struct flow_attr bad = {.priority = ADAPTER_FLOW_PRIORITIES, .qp = rx.qp};
	struct flow *flow = add_rule(rx.qp, 0);
	const struct cqe64_err *err;
	struct qp_attr attr;
	struct device_wqe w;

	CHECK(flow_create(device.adapter[ETHERNET], &bad, &flow) == -EINVAL);
	tcp_frame(100);
	send_frame(13, 0);
	expect_send_error(CQE_SYN_LOCAL_LENGTH);
	send_frame(FRAME_MAX + 1, 0);
	expect_send_error(CQE_SYN_LOCAL_LENGTH);
	begin_frame(&w, WQE_OP_SEND, 0, 0, NULL, 0);
	device_wqe_data(&w, out, 100, mkey_key(tx_mr) + 1);
	device_wqe_end(&w);
	expect_send_error(CQE_SYN_LOCAL_PROT);
	/* no such operation on Ethernet; a header longer than the WQE; segments of no size */
	begin_frame(&w, WQE_OP_RDMA_WRITE, 0, 0, NULL, 0);
	device_wqe_end(&w);
	expect_send_error(CQE_SYN_LOCAL_QP_OP);
	begin_frame(&w, WQE_OP_SEND, 0, 0, NULL, 0);
	w.bytes[16 + 12] = 0xff;
	device_wqe_end(&w);
	expect_send_error(CQE_SYN_LOCAL_QP_OP);
	begin_frame(&w, WQE_OP_TSO, 0, 0, out, 54);
	device_wqe_end(&w);
	expect_send_error(CQE_SYN_LOCAL_QP_OP);
	begin_frame(&w, WQE_OP_TSO, 0, 100, out + 1, 54);
	device_wqe_end(&w);
	expect_send_error(CQE_SYN_LOCAL_QP_OP);

	/* the receiver's error: too short */
	qp_to_state(&rx, IB_QPS_RESET, 0);
	rx.rq_pi = 0;
	rx.dbrec[DBREC_RECV] = be32_of(0);
	to_rts(&rx);
	post_receives(&rx, 2, 64);
	send_frame(100, 0);
	expect_sent();
	err = (const void *)device_cq_poll(&rx.cq);
	CHECK(err && err->op_own >> 4 == CQE_OP_RESP_ERR && err->syndrome == CQE_SYN_LOCAL_LENGTH);
	err = (const void *)device_cq_poll(&rx.cq);
	CHECK(err && err->syndrome == CQE_SYN_WR_FLUSH);
	qp_query(rx.qp, &attr);
	CHECK(attr.state == IB_QPS_ERR);
	flow_destroy(flow);
}

static const char *told_of_frame(uint32_t bytes)
{
	capture_begin();
	send_frame(bytes, 0);
	expect_sent();
	return capture_end();
}

static void expect_told(uint32_t bytes, const char *why, const char *said)
{
	const char *text = told_of_frame(bytes);

	CHECK(captured_count(text, "packet.dropped") == 1 && strstr(text, why) &&
	      strstr(text, said));
}

/* A frame that nobody gets says why. */
static void drops_tell(void)
{
	uint32_t n = tcp_frame(200) + 200;
	struct flow *flow, *drop;

	trace_select("packet.dropped");
	explain_on = true;
	flow = add_rule(rx.qp, 1);
	qp_to_state(&rx, IB_QPS_RESET, 0);
	rx.rq_pi = 0;
	rx.dbrec[DBREC_RECV] = be32_of(0);
	expect_told(n, "why=state", "dropped: the queue is not ready");
	to_rts(&rx);
	expect_told(n, "why=no-receive", "dropped: no receive is posted");
	drop = add_rule(NULL, 0);
	expect_told(n, "why=by-rule", "dropped: a flow rule says so");
	flow_destroy(drop);
	out[5] ^= 1;
	expect_told(n, "why=no-rule", "no flow rule of any process takes it");
	out[5] ^= 1;
	post_receives(&rx, 1, RECV);
	CHECK(!*told_of_frame(n) && device_cq_poll(&rx.cq));
	flow_destroy(flow);
	explain_on = false;
	trace_select("");
}

/* ---- what is written to steering first ---- */

#define WRITTEN 0x77

/* Frames of either device arrive at the second, and find what was posted to a queue pair that writes its
 * entries, of which nobody has heard. */
static void test_written_before(void)
{
	static struct device_qp from[2], writer;
	static uint8_t source[8], entry[8];
	uint32_t n = tcp_frame(200) + 200;
	struct device_wqe w;
	struct mkey *mr[2];
	struct flow *flow;

	device_up_ethernet(&device);
	device_qp_up(&device, ETHERNET, &rx, IB_QPT_RAW_PACKET);
	to_rts(&rx);
	flow = add_rule(rx.qp, 1);
	device_qp_up(&device, ETHERNET, &writer, IB_QPT_RC);
	device_connect(&device, ETHERNET, &writer, &writer);
	qp_writes_icm(writer.qp);
	device_mr(&device, ETHERNET, writer.pdn, source, sizeof(source), 0, &mr[0]);
	device_mr(&device, ETHERNET, writer.pdn, entry, sizeof(entry), DEVICE_ALL_ACCESS, &mr[1]);
	memset(source, WRITTEN, sizeof(source));
	for (unsigned i = 0; i < 2; i++) {
		device_qp_up(&device, i, &from[i], IB_QPT_RAW_PACKET);
		to_rts(&from[i]);
	}
	for (unsigned i = 0; i < 4; i++) {
		struct device_qp *q = &from[i % 2];
		struct wqe_eth none = {0};
		struct mkey *mr_out;

		memset(entry, 0, sizeof(entry));
		device_wqe_begin(&writer, &w, WQE_OP_RDMA_WRITE, 0, 0);
		device_wqe_raddr(&w, (uintptr_t)entry, mkey_key(mr[1]));
		device_wqe_data(&w, source, sizeof(source), mkey_key(mr[0]));
		device_wqe_put(&w);
		writer.dbrec[DBREC_SEND] = be32_of(writer.sq_pi);

		device_mr(&device, i % 2, q->pdn, out, sizeof(out), 0, &mr_out);
		device_wqe_begin(q, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
		memcpy(w.bytes + w.at, &none, sizeof(none));
		w.at += sizeof(none);
		device_wqe_data(&w, out, n, mkey_key(mr_out));
		device_wqe_end(&w);
		CHECK(device_cq_poll(&q->cq));
		CHECK(entry[0] == WRITTEN);
		mkey_destroy(device.adapter[i % 2], mr_out);
	}
	flow_destroy(flow);
	mkey_destroy(device.adapter[ETHERNET], mr[0]);
	mkey_destroy(device.adapter[ETHERNET], mr[1]);
	for (unsigned i = 0; i < 2; i++)
		device_qp_down(&from[i]);
	device_qp_down(&writer);
	device_qp_down(&rx);
	device_down(&device);
}

int main(void)
{
	struct qp_create_attr attr = {.type = IB_QPT_RAW_PACKET};
	struct device_cq cq;
	struct qp *qp;

	device_up(&device);
	device_cq_up(&device, 0, &cq);
	attr.send_cq = attr.recv_cq = cq.cq;
	/* InfiniBand has no frames */
	CHECK(qp_create(device.adapter[0], &attr, &qp) == -EOPNOTSUPP);
	CHECK(!cq_destroy(cq.cq));

	device_qp_up(&device, ETHERNET, &tx, IB_QPT_RAW_PACKET);
	device_qp_up(&device, ETHERNET, &rx, IB_QPT_RAW_PACKET);
	device_mr(&device, ETHERNET, tx.pdn, out, sizeof(out), 0, &tx_mr);
	device_mr(&device, ETHERNET, rx.pdn, in, sizeof(in), IB_ACCESS_LOCAL_WRITE, &rx_mr);
	to_rts(&tx);
	to_rts(&rx);
	post_receives(&rx, 16, RECV);
	test_plain();
	test_segments();
	test_tunnels();
	test_distribute();
	own_context();
	test_counters();
	test_few_receives();
	post_receives(&rx, 4, RECV);
	test_sniffer();
	test_errors();
	drops_tell();
	mkey_destroy(device.adapter[ETHERNET], tx_mr);
	mkey_destroy(device.adapter[ETHERNET], rx_mr);
	device_qp_down(&tx);
	device_qp_down(&rx);
	device_down(&device);
	test_written_before();
	return 0;
}
