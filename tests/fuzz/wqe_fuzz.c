// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a program writes into rings and doorbell records: any bytes.  Two connected queue pairs and
 * a third one connected with itself, of any types, in RTS with some registered memory.  The input
 * posts work requests that are almost right, writes raw bytes over rings and records, rings bells,
 * modifies, takes memory away.  Whatever happens, the device stays inside registered memory and
 * inside the rings.
 */
#include <string.h>

#include "device.h"

enum op {
	OP_SEND, /* a work request from parts */
	OP_RECV,
	OP_SRQ_RECV,
	OP_RAW, /* bytes into a ring or record */
	OP_BELL,
	OP_PROGRESS,
	OP_MODIFY,
	OP_QUERY,
	OP_CONSUME, /* the CQ's consumer index and arm record */
	OP_CLOSE_MEMORY,
	OP_REREGISTER,
	OP_COUNT,
};

static struct fuzz_device device;

void target_init(void)
{
	device_init(&device);
}

/* ---- posting ---- */

struct wqe {
	uint8_t bytes[WQE_MAX_BYTES];
	uint32_t at;
};

static void put(struct wqe *w, const void *part, size_t n)
{
	if (range_inside(w->at, n, sizeof(w->bytes))) {
		memcpy(w->bytes + w->at, part, n);
		w->at += (uint32_t)n;
	}
}

/* A data segment; which byte of which region, whose key, and sometimes none of ours. */
static struct wqe_data data_segment(struct input *in)
{
	uint8_t which = in_u8(in);
	uint16_t off = in_u16(in);
	uint32_t len = in_u16(in);

	if (which & 0x80)
		len = in_u32(in);
	return (struct wqe_data){
		.byte_count = be32_of(len),
		.lkey = be32_of(device_key(&device, which >> 3) + (which >> 6 & 1)),
		.addr = be64_of(device_addr(&device, which, off)),
	};
}

static void put_inline(struct wqe *w, struct input *in)
{
	uint16_t len = in_u16(in);
	be32 head = be32_of(WQE_DATA_INLINE | (len & WQE_DATA_INLINE_LEN));
	uint8_t data[WQE_DATA_INLINE_LEN];

	in_bytes(in, data, len & 63);
	put(w, &head, sizeof(head));
	put(w, data, len & WQE_DATA_INLINE_LEN);
	w->at = (uint32_t)align_up(w->at, WQE_UNIT);
}

/* parts: bits say what stands between control segment and data. */
enum part { PART_AV = 1, PART_AV_SHORT = 2, PART_RADDR = 4, PART_ATOMIC = 8, PART_INLINE = 16 };

static void put_headers(struct wqe *w, uint8_t parts, struct input *in)
{
	if (parts & (PART_AV | PART_AV_SHORT)) {
		uint8_t dest = in_u8(in);
		struct wqe_av av = {
			.dc_key_or_qkey = be64_of(0x1111111100000000ull),
			.dqp_dct = be32_of(qp_number(device.qp[dest % FUZZ_QPS].qp) |
					   (parts & PART_AV ? WQE_AV_EXTENDED : 0)),
			.rlid = be16_of(7),
			.hop_limit = 1,
			.grh_gid_fl = be32_of(dest & 0x80 ? WQE_AV_GRH | in_u32(in) : 0),
		};

		memcpy(av.rgid, device.rig.registry->ports[device.dev].gids[0].gid.raw, 16);
		put(w, &av, parts & PART_AV ? sizeof(av) : 16);
	}
	if (parts & PART_RADDR) {
		uint8_t which = in_u8(in);
		struct wqe_raddr r = {
			.va = be64_of(device_addr(&device, which, in_u16(in))),
			.rkey = be32_of(device_key(&device, which >> 3) + (which >> 6 & 1)),
		};

		put(w, &r, sizeof(r));
	}
	if (parts & PART_ATOMIC) {
		struct wqe_atomic x = {be64_of(in_u16(in)), be64_of(in_u16(in))};

		put(w, &x, sizeof(x));
	}
}

static void post_send(struct fuzz_qp *q, struct input *in)
{
	uint8_t opcode = in_u8(in), flags = in_u8(in), parts = in_u8(in);
	struct wqe_ctrl c = {
		.opmod_idx_opcode = be32_of((uint32_t)q->sq_pi << 8 | opcode),
		.fm_ce_se = flags,
		.imm = be32_of(device_key(&device, parts)),
	};
	struct wqe w = {.at = 0};
	uint32_t ds, blocks;

	put(&w, &c, sizeof(c));
	put_headers(&w, parts, in);
	for (unsigned n = parts >> 5; n; n--) {
		struct wqe_data d = data_segment(in);

		put(&w, &d, sizeof(d));
	}
	if (parts & PART_INLINE)
		put_inline(&w, in);
	ds = min_u32(w.at / WQE_UNIT, 63);
	blocks = div_round_up(w.at, WQE_BLOCK);
	memcpy(w.bytes + 4, &(be32){be32_of(qp_number(q->qp) << 8 | ds).raw}, sizeof(be32));
	for (uint32_t i = 0; i < blocks; i++)
		memcpy(q->sq + (size_t)((q->sq_pi + i) % FUZZ_BLOCKS) * WQE_BLOCK,
		       w.bytes + (size_t)i * WQE_BLOCK, WQE_BLOCK);
	q->sq_pi = (uint16_t)(q->sq_pi + blocks);
	q->dbrec[DBREC_SEND] = be32_of(q->sq_pi);
}

static void put_scatter(uint8_t *at, size_t bytes, struct input *in)
{
	unsigned n = in_u8(in) % 8;

	for (; n && bytes >= sizeof(struct wqe_data); n--) {
		struct wqe_data d = data_segment(in);

		memcpy(at, &d, sizeof(d));
		at += sizeof(d);
		bytes -= sizeof(d);
	}
	if (bytes >= sizeof(struct wqe_data)) {
		struct wqe_data end = {.lkey = be32_of(WQE_DATA_LKEY_END)};

		memcpy(at, &end, sizeof(end));
	}
}

static void post_recv(struct fuzz_qp *q, struct input *in)
{
	put_scatter(q->rq + (size_t)(q->rq_pi % FUZZ_RECVS) * FUZZ_RQ_BYTES, FUZZ_RQ_BYTES, in);
	q->dbrec[DBREC_RECV] = be32_of(++q->rq_pi);
}

static void post_srq_recv(struct fuzz_qp *q, struct input *in)
{
	uint8_t *at = q->srq_ring + (size_t)(q->rq_pi % FUZZ_SRQ_WQES) * 128;
	struct wqe_srq_next next = {.next_wqe_index = be16_of(in_u16(in))};

	memcpy(at, &next, sizeof(next));
	put_scatter(at + sizeof(next), 128 - sizeof(next), in);
	*q->srq_dbrec = be32_of(++q->rq_pi);
}

static void write_raw(struct fuzz_qp *q, struct input *in)
{
	uint8_t where = in_u8(in);
	struct {
		void *at;
		size_t bytes;
	} const to[] = {
		{q->sq, (size_t)FUZZ_BLOCKS * WQE_BLOCK},
		{q->rq, (size_t)FUZZ_RECVS * FUZZ_RQ_BYTES},
		{q->srq_ring, (size_t)FUZZ_SRQ_WQES * 128},
		{q->dbrec, 8},
		{q->cq_dbrec, 8},
		{q->srq_dbrec, 4},
	};
	size_t bytes = to[where % array_size(to)].bytes;
	size_t off = in_u16(in) % bytes;
	size_t n = min_u64(in_u8(in), bytes - off);

	in_bytes(in, (uint8_t *)to[where % array_size(to)].at + off, n);
}

/* ---- the rest of a program's life ---- */

static void reregister(struct input *in)
{
	struct fuzz_mr *m = &device.mr[in_u8(in) % FUZZ_MRS];
	size_t less = in_u16(in) % m->len;
	struct mkey_attr attr = {
		.pdn = device.pdn + (less & 1),
		.access = m->access,
		.iova = (uintptr_t)(m->area + m->off),
		.length = m->len - less,
		.addr = m->area + m->off,
	};

	MUST(!mkey_modify(device.rig.adapter[device.dev], m->mkey, &attr));
}

static void perform(uint8_t op, struct fuzz_qp *q, struct input *in)
{
	switch ((enum op)op) {
	case OP_SEND:
		post_send(q, in);
		break;
	case OP_RECV:
		post_recv(q, in);
		break;
	case OP_SRQ_RECV:
		post_srq_recv(q, in);
		break;
	case OP_RAW:
		write_raw(q, in);
		break;
	case OP_BELL:
		qp_doorbell(q->qp);
		qp_recv_posted(q->qp);
		break;
	case OP_PROGRESS: {
		uint64_t deadline = UINT64_MAX;

		(void)adapter_progress(device.rig.adapter[device.dev], &deadline);
		break;
	}
	case OP_MODIFY:
		device_qp_modify(&device, (unsigned)(q - device.qp), in);
		break;
	case OP_QUERY: {
		struct qp_attr attr;

		qp_query(q->qp, &attr);
		MUST((unsigned)attr.state < IB_QPS_COUNT);
		break;
	}
	case OP_CONSUME:
		q->cq_dbrec[DBREC_CQ_CI] = be32_of(in_u32(in));
		q->cq_dbrec[DBREC_CQ_ARM] = be32_of(in_u32(in));
		cq_doorbell(q->cq);
		break;
	case OP_CLOSE_MEMORY: {
		uint8_t which = in_u8(in);

		device_mr_close(&device, which, which & 0x80);
		break;
	}
	case OP_REREGISTER:
		reregister(in);
		break;
	case OP_COUNT:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint8_t kinds = in_u8(&in), kind_of_third = in_u8(&in);
	uint32_t qpn[FUZZ_QPS];

	device_begin(&device, kinds >> 7);
	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		device_qp_create(&device, i, i < 2 ? kinds : kind_of_third);
		qpn[i] = qp_number(device.qp[i].qp);
	}
	for (unsigned i = 0; i < FUZZ_QPS; i++)
		device_qp_connect(&device, i, qpn[i < 2 ? !i : i], device.dev, &in);
	while (in.left) {
		uint8_t op = in_u8(&in);

		perform(op % OP_COUNT, &device.qp[op / OP_COUNT % FUZZ_QPS], &in);
	}
	device_end(&device);
	return 0;
}

/* ---- seeds ---- */

static void put_op(struct seed *s, unsigned qp, enum op op)
{
	put_u8(s, qp * OP_COUNT + op);
}

static void put_data(struct seed *s, unsigned mr, uint32_t off, uint32_t len)
{
	/* region and key of the same MR */
	put_u8(s, mr | mr << 3);
	put_u16(s, off);
	put_u16(s, len);
}

static void put_begin(struct seed *s, uint32_t kinds)
{
	put_u8(s, kinds);
	put_u8(s, 2);
	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		put_u8(s, 0x44); /* reads and atomics at a time */
		put_u8(s, 0x0f);
		put_u8(s, i);
		put_u8(s, 0);
	}
}

static void put_request(struct seed *s, uint8_t opcode, uint8_t parts, uint32_t len)
{
	put_op(s, 1, OP_RECV);
	put_u8(s, 2);
	put_data(s, 0, 4096, 300);
	put_data(s, 0, 8192, 4096);
	put_op(s, 1, OP_SRQ_RECV);
	put_u16(s, 1);
	put_u8(s, 1);
	put_data(s, 0, 4096, 4096);

	put_op(s, 0, OP_SEND);
	put_u8(s, opcode);
	put_u8(s, WQE_CTRL_CE_ALWAYS);
	put_u8(s, parts | 1 << 5);
	if (parts & (PART_AV | PART_AV_SHORT))
		put_u8(s, 1);
	if (parts & PART_RADDR) {
		put_u8(s, 0);
		put_u16(s, 4096);
	}
	if (parts & PART_ATOMIC) {
		put_u16(s, 1);
		put_u16(s, 2);
	}
	put_data(s, 0, 0, len);
	put_op(s, 0, OP_BELL);
	put_op(s, 0, OP_PROGRESS);
}

void target_seeds(struct seed *s)
{
	static const struct {
		uint8_t opcode, parts;
		uint16_t len;
	} requests[] = {
		{WQE_OP_SEND, 0, 100},
		{WQE_OP_SEND_IMM, 0, 4000},
		{WQE_OP_SEND_INVAL, 0, 10},
		{WQE_OP_RDMA_WRITE, PART_RADDR, 5000},
		{WQE_OP_RDMA_WRITE_IMM, PART_RADDR, 8},
		{WQE_OP_RDMA_READ, PART_RADDR, 5000},
		{WQE_OP_ATOMIC_FA, PART_RADDR | PART_ATOMIC, 8},
		{WQE_OP_ATOMIC_CS, PART_RADDR | PART_ATOMIC, 8},
		{WQE_OP_ATOMIC_MASKED_FA, PART_RADDR | PART_ATOMIC, 8},
		{WQE_OP_LOCAL_INVAL, 0, 0},
		{WQE_OP_UMR, 0, 64},
		{WQE_OP_NOP, 0, 0},
	};
	char name[32];

	for (unsigned dev = 0; dev < 2; dev++)
		for (unsigned kind = 0; kind < 8; kind++) {
			uint8_t av = (kind & 3) == 2 ? PART_AV : 0;

			put_begin(s, dev << 7 | kind);
			for (unsigned i = 0; i < array_size(requests); i++)
				put_request(s, requests[i].opcode, requests[i].parts | av,
					    requests[i].len);
			snprintf(name, sizeof(name), "requests-%u-%u", dev, kind);
			put_end(s, name);
		}

	/* Memory that goes away under a write, an error, and the flush of what stood behind. */
	put_begin(s, 0);
	put_op(s, 0, OP_CLOSE_MEMORY);
	put_u8(s, 0x80);
	put_request(s, WQE_OP_RDMA_WRITE, PART_RADDR, 64);
	put_op(s, 0, OP_RAW);
	put_u8(s, 3);
	put_u16(s, 0);
	put_u8(s, 8);
	put_u64(s, 0x0400000004000000ull);
	put_op(s, 0, OP_BELL);
	put_end(s, "gone");
}
