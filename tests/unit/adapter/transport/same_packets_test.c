// SPDX-License-Identifier: BSD-2-Clause
/*
 * A queue pair whose doorbells say the index, as those of a DPA, sends the same packets as one with a
 * doorbell record, as those of verbs: each field and each byte, but for the number of the queue pair.
 */
#include <stdlib.h>
#include <string.h>

#include "adapter_device.h"
#include "check.h"
#include "wire/bth.h"
#include "wire/payload.h"
#include "wire/tap.h"

#define REGION	7u
#define BYTES	16384u
#define PACKETS 256u
#define QKEY	0x11111111u

/* A packet as it is on the wire, without whose it is: one word a field. */
struct seen {
	uint64_t header[15];
	uint64_t path[16];
	uint64_t payload; /* where it begins in the record */
};

struct record {
	struct tap tap;
	uint32_t qpn, rkey;
	uint32_t packets, bytes;
	struct seen seen[PACKETS];
	uint8_t payload[8 * BYTES];
};

static struct test_device device;
static struct device_qp q;
static _Alignas(8) uint8_t src[BYTES], dst[BYTES];

/* What there is of them in a packet of that operation; other fields say nothing. */
static void see_headers(const struct record *r, const struct pkt *p, uint64_t *header)
{
	const struct bth_props *props = pkt_props(p);
	const uint64_t seen[] = {
		p->opcode,
		p->solicited,
		p->ack_req,
		p->pkey,
		p->psn,
		p->npkts,
		p->payload_len,
		bth_transport_props_of(p->opcode)->deth ? p->qkey : 0,
		props->reth || props->atomic_eth ? p->va : 0,
		props->reth ? p->dma_len : 0,
		props->atomic_eth ? p->swap_add : 0,
		props->atomic_eth ? p->compare : 0,
		props->aeth ? p->aeth | (uint64_t)p->msn << 8 : 0,
		props->atomic_ack ? p->atomic_orig : 0,
		props->imm || props->ieth ? p->imm : 0,
	};

	_Static_assert(sizeof(seen) == sizeof(((struct seen *)0)->header), "one word a field");
	if (props->reth || props->atomic_eth)
		CHECK(p->rkey == r->rkey);
	memcpy(header, seen, sizeof(seen));
}

static void see_path(const struct path *p, uint64_t *path)
{
	const uint64_t seen[] = {
		p->src_port,	 p->dst_port,
		p->slid,	 p->dlid,
		p->pkey,	 p->mtu,
		p->sl,		 p->path_bits,
		p->hop_limit,	 p->traffic_class,
		p->flow_label,	 p->grh | (uint64_t)p->roce_v1 << 1,
		p->sgid.half[0], p->sgid.half[1],
		p->dgid.half[0], p->dgid.half[1],
	};

	_Static_assert(sizeof(seen) == sizeof(((struct seen *)0)->path), "one word a field");
	memcpy(path, seen, sizeof(seen));
}

static void record_packet(struct tap *t, enum tap_point at, uint64_t ns, uint32_t port_row,
			  const struct pkt *p)
{
	struct record *r = container_of(t, struct record, tap);
	struct seen *s = &r->seen[r->packets];
	struct run run = {r->payload + r->bytes, p->payload_len};

	(void)ns, (void)port_row;
	if (at != TAP_SENT)
		return;
	CHECK(r->packets++ < PACKETS && r->bytes + p->payload_len <= sizeof(r->payload));
	CHECK(p->sqpn == r->qpn && p->dqpn == r->qpn);
	see_headers(r, p, s->header);
	see_path(p->path, s->path);
	s->payload = r->bytes;
	if (p->payload_len)
		CHECK(payload_pull(&run, 1, p));
	r->bytes += p->payload_len;
}

struct request {
	uint8_t opcode;
	uint32_t bytes;
	bool inlined, solicited;
};

static const struct request requests[] = {
	{WQE_OP_SEND, 1},
	{WQE_OP_SEND, 3000, .solicited = true},
	{WQE_OP_SEND, 0},
	{WQE_OP_SEND_IMM, 1024},
	{WQE_OP_SEND, 28, .inlined = true},
	{WQE_OP_RDMA_WRITE, 8},
	{WQE_OP_RDMA_WRITE, 5000},
	{WQE_OP_RDMA_WRITE, 40, .inlined = true},
	{WQE_OP_RDMA_WRITE_IMM, 1025, .solicited = true},
	{WQE_OP_RDMA_READ, 4097},
	{WQE_OP_ATOMIC_CS, 8},
	{WQE_OP_ATOMIC_FA, 8},
	{WQE_OP_NOP, 0},
};

static bool is_send(const struct request *r)
{
	return r->opcode == WQE_OP_SEND || r->opcode == WQE_OP_SEND_IMM;
}

static bool is_carried(enum ib_qp_type type, const struct request *r)
{
	if (type == IB_QPT_RC || r->opcode == WQE_OP_NOP || is_send(r))
		return type != IB_QPT_UD || r->bytes <= 1024;
	return type == IB_QPT_UC &&
	       (r->opcode == WQE_OP_RDMA_WRITE || r->opcode == WQE_OP_RDMA_WRITE_IMM);
}

/* A datagram to oneself. */
static void put_address(struct device_wqe *w, unsigned dev)
{
	struct qp_attr attr;
	struct wqe_av av = {
		.dc_key_or_qkey = be64_of((uint64_t)QKEY << 32),
		.dqp_dct = be32_of(WQE_AV_EXTENDED | qp_number(q.qp)),
		.hop_limit = 64,
	};

	device_attr(&device, dev, &q, &attr);
	av.rlid = be16_of((uint16_t)attr.ah.dlid);
	if (dev) {
		av.grh_gid_fl = be32_of(WQE_AV_GRH | (uint32_t)attr.ah.sgid_index << 20);
		memcpy(av.rgid, &attr.ah.dgid, sizeof(av.rgid));
	}
	memcpy(w->bytes + w->at, &av, sizeof(av));
	w->at += sizeof(av);
}

static void post_request(unsigned dev, enum ib_qp_type type, const struct request *r, uint32_t lkey,
			 uint32_t rkey)
{
	struct device_wqe w;

	if (is_send(r) || r->opcode == WQE_OP_RDMA_WRITE_IMM)
		device_recv(&q, dst + BYTES / 2, BYTES / 2, rkey);
	device_wqe_begin(
		&q, &w, r->opcode, WQE_CTRL_CE_ALWAYS | (r->solicited ? WQE_CTRL_SOLICITED : 0),
		r->opcode == WQE_OP_SEND_IMM || r->opcode == WQE_OP_RDMA_WRITE_IMM ? 0x1234 : 0);
	if (type == IB_QPT_UD && is_send(r))
		put_address(&w, dev);
	if (!is_send(r) && r->opcode != WQE_OP_NOP)
		device_wqe_raddr(&w, (uintptr_t)dst, rkey);
	if (r->opcode == WQE_OP_ATOMIC_CS || r->opcode == WQE_OP_ATOMIC_FA)
		device_wqe_atomic(&w, 0x1122334455667788, 5);
	if (r->inlined)
		device_wqe_inline(&w, src, r->bytes);
	else if (r->bytes)
		device_wqe_data(&w, src, r->bytes, lkey);
	device_wqe_end(&w);
}

static void run_requests(unsigned dev, enum ib_qp_type type, uint32_t region, struct record *out)
{
	struct mkey *ms, *md;
	const struct cqe64 *cqe;
	uint32_t lkey, rkey;

	memset(out, 0, sizeof(*out));
	out->tap.packet = record_packet;
	device_up(&device);
	device.region = region;
	device_qp_up(&device, dev, &q, type);
	device_connect(&device, dev, &q, &q);
	for (unsigned i = 0; i < BYTES; i++) {
		src[i] = (uint8_t)(i * 7 + i / 256);
		dst[i] = 0;
	}
	/* the same key for both: receives go there, too */
	lkey = device_mr(&device, dev, q.pdn, src, BYTES, DEVICE_ALL_ACCESS, &ms);
	rkey = device_mr(&device, dev, q.pdn, dst, BYTES, DEVICE_ALL_ACCESS, &md);
	out->qpn = qp_number(q.qp);
	out->rkey = rkey;
	wire_tap_attach(device.host, &out->tap);
	for (unsigned i = 0; i < array_size(requests); i++) {
		if (!is_carried(type, &requests[i]))
			continue;
		post_request(dev, type, &requests[i], lkey, rkey);
		while ((cqe = device_cq_poll(&q.cq)))
			CHECK_SAY(cqe->op_own >> 4 <= CQE_OP_RESP_SEND_INV, "request %u: opcode %u",
				  i, cqe->op_own >> 4);
	}
	wire_tap_detach(device.host, &out->tap);
	device_qp_down(&q);
	mkey_destroy(device.adapter[dev], ms);
	mkey_destroy(device.adapter[dev], md);
	device_down(&device);
	device.region = 0;
}

static void test_same(unsigned dev, enum ib_qp_type type, uint32_t least)
{
	static struct record by_record, by_value;

	run_requests(dev, type, 0, &by_record);
	run_requests(dev, type, REGION, &by_value);
	CHECK_SAY(by_record.packets >= least, "%u packets", by_record.packets);
	CHECK(by_record.packets == by_value.packets && by_record.bytes == by_value.bytes);
	for (uint32_t i = 0; i < by_record.packets; i++)
		CHECK_SAY(!memcmp(&by_record.seen[i], &by_value.seen[i], sizeof(struct seen)),
			  "packet %u, operation 0x%x", i, (unsigned)by_value.seen[i].header[0]);
	CHECK(!memcmp(by_record.payload, by_value.payload, by_record.bytes));
}

int main(void)
{
	for (unsigned dev = 0; dev < 2; dev++) {
		test_same(dev, IB_QPT_RC, 25);
		test_same(dev, IB_QPT_UC, 12);
		test_same(dev, IB_QPT_UD, 4);
	}
	return 0;
}
