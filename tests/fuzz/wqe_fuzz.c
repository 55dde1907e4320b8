// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a program writes into rings and doorbell records: any bytes.  Two connected queue pairs and
 * a third one connected with itself, of any types, in RTS with some registered memory and windows.
 * The input posts work requests that are almost right, writes raw bytes over rings and records,
 * rings bells, modifies, takes memory away.  Whatever happens, the device stays inside registered
 * memory and inside the rings, and each request completes as the program may expect (cqe_check.h).
 */
#include <errno.h>
#include <string.h>

#include "cqe_check.h"
#include "prm/bsf.h"
#include "prm/wqe.h"
#include "test_subnet.h"
#include "wqe_input.h"
#include "wqe_life.h"

static struct fuzz_device device;
static struct cqe_check check[FUZZ_QPS];

void target_init(void)
{
	fuzz_device_init(&device);
}

/* ---- posting ---- */

struct wqe {
	uint8_t bytes[WQE_MAX_BYTES];
	uint32_t at;
};

static void put_part(struct wqe *w, const void *part, size_t n)
{
	if (range_inside(w->at, n, sizeof(w->bytes))) {
		memcpy(w->bytes + w->at, part, n);
		w->at += (uint32_t)n;
	}
}

static uint64_t read_place(struct input *in, uint8_t which, uint32_t *key)
{
	uint32_t off = in_u16(in);

	*key = fuzz_device_key(&device, PLACE_REGION(which) + PLACE_KEY_ON(which));
	if (which & PLACE_FROM_END)
		off = fuzz_device_bytes(&device, PLACE_REGION(which)) - off;
	return fuzz_device_addr(&device, PLACE_REGION(which), off);
}

/* An odd one may be long. */
static struct wqe_data data_segment(struct input *in)
{
	uint8_t which = in_u8(in);
	uint32_t key;
	uint64_t addr = read_place(in, which, &key);
	uint32_t len = which & PLACE_ODD ? in_u32(in) : in_u16(in);

	return (struct wqe_data){be32_of(len), be32_of(key), be64_of(addr)};
}

static void put_inline(struct wqe *w, struct input *in)
{
	uint16_t len = in_u16(in);
	be32 head = be32_of(WQE_DATA_INLINE | (len & WQE_DATA_INLINE_LEN));
	uint8_t data[WQE_DATA_INLINE_LEN];

	in_bytes(in, data, len & 63);
	put_part(w, &head, sizeof(head));
	put_part(w, data, len & WQE_DATA_INLINE_LEN);
	w->at = (uint32_t)align_up(w->at, WQE_UNIT);
}

static void put_headers(struct wqe *w, uint8_t parts, struct input *in)
{
	if (parts & (PART_AV | PART_AV_SHORT)) {
		uint8_t dest = in_u8(in);
		struct wqe_av av = {
			.dc_key_or_qkey = be64_of(FUZZ_DC_KEY),
			.dqp_dct =
				be32_of((dest & 0x40 ? IB_MULTICAST_QPN
						     : qp_number(device.qp[dest % FUZZ_QPS].qp)) |
					(parts & PART_AV ? WQE_AV_EXTENDED : 0)),
			.rlid = be16_of(dest & 0x40 ? 0xc001 : 7),
			.hop_limit = 1,
			.grh_gid_fl = be32_of(dest & 0x80 ? WQE_AV_GRH | in_u32(in) : 0),
		};

		memcpy(av.rgid, test_subnet_gid_of(device.device.subnet, device.dev).raw, 16);
		if (dest & 0x40)
			memcpy(av.rgid, life_group_gid(dest >> 4 & 3).raw, 16);
		put_part(w, &av, parts & PART_AV ? sizeof(av) : 16);
	}
	if (parts & PART_RADDR) {
		uint8_t which = in_u8(in);
		uint32_t key;
		uint64_t va = read_place(in, which, &key);
		struct wqe_raddr r = {
			.va = be64_of(va),
			.rkey = be32_of(key + (which >> 7)),
		};

		put_part(w, &r, sizeof(r));
	}
	if (parts & PART_ATOMIC) {
		struct wqe_atomic x = {be64_of(in_u16(in)), be64_of(in_u16(in))};

		put_part(w, &x, sizeof(x));
	}
}

/* Binds a window to a part of region 0, or frees a key. */
static void put_umr(const struct fuzz_qp *q, struct wqe *w, struct input *in)
{
	uint8_t flags = in_u8(in), type = in_u8(in);
	uint8_t which = in_u8(in);
	uint32_t key;
	uint64_t addr = read_place(in, which, &key);
	uint16_t len = in_u16(in);
	struct umr_ctrl ctrl = {
		.flags = flags,
		.klm_octowords = be16_of(4),
		.mkey_mask =
			be64_of(UMR_MASK_LEN | UMR_MASK_START_ADDR | UMR_MASK_MKEY |
				UMR_MASK_ACCESS_LOCAL_WRITE | UMR_MASK_ACCESS_REMOTE_READ |
				UMR_MASK_ACCESS_REMOTE_WRITE | UMR_MASK_ACCESS_ATOMIC |
				(type & 1 ? UMR_MASK_QPN : 0) | (type & 2 ? UMR_MASK_FREE : 0)),
	};
	struct umr_mkey_context context = {
		.free = type & 4 ? MKEY_CTX_FREE : 0,
		.access = in_u8(in),
		.qpn_mkey = be32_of(qp_number(q->qp) << 8 | FUZZ_WINDOW_VARIANT),
		.start_addr = be64_of(addr),
		.len = be64_of(len),
	};
	struct umr_klm klm[4] = {{be32_of(len), be32_of(key), be64_of(addr)}};

	put_part(w, &ctrl, sizeof(ctrl));
	put_part(w, &context, sizeof(context));
	put_part(w, klm, sizeof(klm));
}

static struct umr_klm list_header(struct input *in, uint16_t entries)
{
	uint32_t bytes = in_u16(in), repeat = in_u32(in);
	const struct umr_stride_header h = {.byte_count = be32_of(bytes),
					    .op = be32_of(UMR_STRIDED),
					    .repeat_count = be32_of(repeat),
					    .entries = be16_of(entries)};
	struct umr_klm out;

	memcpy(&out, &h, sizeof(out));
	return out;
}

static void put_list(struct wqe *w, uint8_t shape, uint32_t n, struct input *in)
{
	uint32_t at = w->at;

	if (shape & LIST_STRIDED) {
		struct umr_klm h = list_header(in, (uint16_t)(n - 1));

		put_part(w, &h, sizeof(h));
	}
	for (uint32_t i = shape & LIST_STRIDED ? 1 : 0; i < n; i++) {
		/* of a strided list the count is stride and bytes */
		struct wqe_data d = data_segment(in);

		if (shape & LIST_STRIDED)
			d.byte_count = be32_of(be32_get(d.byte_count) | (uint32_t)in_u8(in) << 16);
		put_part(w, &d, sizeof(d));
	}
	if (!(shape & LIST_POINTER))
		w->at = at + (uint32_t)align_up(w->at - at, WQE_BLOCK);
}

/* T10-DIF on the wire, CRC32C in memory, and what the input makes of that. */
static void put_bsf(struct wqe *w, struct input *in)
{
	uint8_t bsf[BSF_BYTES] = {0};

	bsf_set(bsf, BSF_SIZE, BSF_SIZE_INLINE);
	bsf_set(bsf, BSF_CHECK_MASK, 0xff);
	bsf_set(bsf, BSF_WIRE_BLOCK, BSF_BLOCK_512);
	bsf_set(bsf, BSF_MEMORY_BLOCK, BSF_BLOCK_512);
	bsf_set(bsf, BSF_RAW_DATA_BYTES, UINT32_MAX);
	bsf_domain_set(bsf, BSF_WIRE, BSF_PSV, psv_number(device.psv[0]));
	bsf_domain_set(bsf, BSF_WIRE, BSF_INL_VALID, 1);
	bsf_domain_set(bsf, BSF_WIRE, BSF_INL_REFRESH, 1);
	bsf_domain_set(bsf, BSF_WIRE, BSF_INL_GUARD, BSF_GUARD_CRC);
	bsf_domain_set(bsf, BSF_WIRE, BSF_INL_REPEAT, 1);
	bsf_domain_set(bsf, BSF_MEMORY, BSF_PSV, psv_number(device.psv[1]));
	bsf_domain_set(bsf, BSF_MEMORY, BSF_FORMAT, BSF_FORMAT_CRC32C | BSF_FORMAT_REPEAT);
	for (unsigned changes = in_u8(in) % 8; changes; changes--) {
		uint8_t at = in_u8(in) % BSF_BYTES;

		bsf[at] ^= in_u8(in);
	}
	put_part(w, bsf, sizeof(bsf));
}

/* Changes a key that is a list. */
static void put_list_umr(struct wqe *w, struct input *in)
{
	uint8_t shape = in_u8(in), n = in_u8(in);
	uint32_t entries = n % 16;
	struct umr_ctrl ctrl = {
		.flags = in_u8(in),
		.klm_octowords = be16_of((uint16_t)(n & 0x80 ? n : align_up(entries, 4))),
		.bsf_octowords = be16_of(in_u16(in)),
		.mkey_mask = be64_of(in_u64(in)),
	};
	struct umr_mkey_context context = {
		.free = in_u8(in),
		.access = in_u8(in),
		.qpn_mkey = be32_of((0xffffff00u | FUZZ_WINDOW_VARIANT) ^ in_u8(in)),
		.flags_pd = be32_of(in_u32(in) ^ device.pdn),
		.start_addr = be64_of(in_u32(in)),
		.len = be64_of(in_u32(in)),
	};

	if (shape & LIST_STRIDED && !entries)
		entries = 1;
	put_part(w, &ctrl, sizeof(ctrl));
	put_part(w, &context, sizeof(context));
	put_list(w, shape, entries, in);
	if (shape & LIST_BSF)
		put_bsf(w, in);
}

static void put_set_psv(struct wqe *w, struct input *in)
{
	uint8_t which = in_u8(in);
	const struct wqe_set_psv p = {
		.psv_index = be32_of(psv_number(device.psv[which % FUZZ_PSVS]) ^ which >> 1),
		.transient_signature = be64_of(in_u16(in)),
	};

	put_part(w, &p, sizeof(p));
}

/* A copy within memory, unless the input says otherwise. */
static void put_mmo(struct wqe *w, struct input *in)
{
	struct wqe_mmo mmo = {0};

	w->bytes[0] = WQE_OPMOD_MMO_DMA ^ in_u8(in);
	put_part(w, &mmo, sizeof(mmo));
}

/* The shape of a matrix; with 64 bytes of data, by default, of eight by eight. */
static void put_local_mmo(struct wqe *w, struct input *in)
{
	struct wqe_transpose shape = {.element_bytes = in_u8(in)};
	uint8_t sides = in_u8(in);

	if (!shape.element_bytes) {
		put_mmo(w, in);
		return;
	}
	shape.rows = sides >> 4 ^ 8;
	shape.columns = (sides & 0xf) ^ 8;
	put_part(w, &shape, sizeof(shape));
}

/* Of the three queue pairs and their completion queues, or a word of memory. */
static void put_wait(struct wqe *w, uint8_t opcode, struct input *in)
{
	uint8_t what = in_u8(in), which;
	const struct fuzz_qp *to = &device.qp[what >> 4 & 1];
	struct wqe_wait s = {.operation = be32_of(in_u8(in) & 0x1f)};
	struct wqe_sync sync;
	uint32_t key;

	w->bytes[0] = what & 3;
	if (opcode != WQE_OP_WAIT || w->bytes[0] == WQE_OPMOD_WAIT_INDEX) {
		sync = (struct wqe_sync){.index = be32_of(in_u8(in)),
					 .number = be32_of(opcode == WQE_OP_WAIT
								   ? 0x80u + in_u8(in)
								   : qp_number(to->qp))};
		put_part(w, &sync, sizeof(sync));
		return;
	}
	which = in_u8(in);
	s.addr = be64_of(read_place(in, which, &key));
	s.lkey = be32_of(key);
	s.value = be64_of(in_u16(in));
	s.mask = be64_of(which & PLACE_ODD ? in_u16(in) : ~0ull);
	put_part(w, &s, sizeof(s));
}

/* The segment of an Ethernet frame, with headers of TCP over IPv4 as far as the input says. */
static void put_eth(struct wqe *w, struct input *in)
{
	static const uint8_t frame[54] = {
		0x01,	  0x50,	       0x56,	    0x19,	 0x20,	    0xa7,     0x24,
		0x8a,	  0x07,	       0xa5,	    0x28,	 0xc8,	    0x08,     0x00,
		0x45,	  [17] = 140,  [22] = 64,   [23] = 6,	 [26] = 10, [29] = 1, [30] = 10,
		[33] = 2, [34] = 0x12, [35] = 0x34, [46] = 0x50,
	};
	uint8_t len = in_u8(in);
	struct wqe_eth e = {
		.cs_flags = in_u8(in),
		.mss = be16_of(in_u16(in)),
		.inline_hdr_sz = be16_of(len),
	};
	uint8_t header[256];

	memset(header, 0, sizeof(header));
	memcpy(header, frame, sizeof(frame));
	for (unsigned changes = in_u8(in) % 8; changes; changes--) {
		uint8_t at = in_u8(in);

		header[at] = in_u8(in);
	}
	put_part(w, &e, offsetof(struct wqe_eth, inline_hdr_start));
	put_part(w, header, len);
	w->at = (uint32_t)align_up(w->at, WQE_UNIT);
}

static void put_xrc(struct wqe *w, struct input *in)
{
	struct srq *srq = device.qp[1].srq;
	struct wqe_xrc x = {.xrc_srqn = be32_of((srq ? srq_number(srq) : 0) + in_u8(in))};

	put_part(w, &x, sizeof(x));
}

static void post_send(struct fuzz_qp *q, struct input *in)
{
	uint8_t opcode = in_u8(in), flags = in_u8(in), parts = in_u8(in), key = in_u8(in);
	struct wqe_ctrl c = {
		.opmod_idx_opcode = be32_of((uint32_t)q->sq_pi << 8 | opcode),
		.fm_ce_se = flags,
		.imm = be32_of(fuzz_device_key(&device, key)),
	};
	struct wqe w = {.at = 0};
	uint32_t ds, blocks;

	if (q->type == IB_QPT_XRC_TGT || q->type == IB_QPT_DCT)
		return;
	c.dci_stream_lo = key >> 4 & 3;
	put_part(&w, &c, sizeof(c));
	if (q->type == IB_QPT_XRC_INI)
		put_xrc(&w, in);
	if (q->type == IB_QPT_RAW_PACKET)
		put_eth(&w, in);
	if (opcode == WQE_OP_UMR && key % FUZZ_KEYS >= FUZZ_MRS + FUZZ_WINDOWS)
		put_list_umr(&w, in);
	else if (opcode == WQE_OP_UMR)
		put_umr(q, &w, in);
	if (opcode == WQE_OP_SET_PSV)
		put_set_psv(&w, in);
	if (opcode == WQE_OP_MMO)
		put_mmo(&w, in);
	if (opcode == WQE_OP_LOCAL_MMO)
		put_local_mmo(&w, in);
	if (opcode == WQE_OP_WAIT || opcode == WQE_OP_SEND_EN || opcode == WQE_OP_RECEIVE_EN)
		put_wait(&w, opcode, in);
	put_headers(&w, parts, in);
	for (unsigned n = parts >> 5; n; n--) {
		struct wqe_data d = data_segment(in);

		put_part(&w, &d, sizeof(d));
	}
	if (parts & PART_INLINE)
		put_inline(&w, in);
	ds = min_u32(w.at / WQE_UNIT, 63);
	blocks = div_round_up(w.at, WQE_BLOCK);
	memcpy(w.bytes + 4, &(be32){be32_of(qp_number(q->qp) << 8 | ds).raw}, sizeof(be32));
	for (uint32_t i = 0; i < blocks; i++)
		memcpy(q->sq + (size_t)((q->sq_pi + i) % FUZZ_BLOCKS) * WQE_BLOCK,
		       w.bytes + (size_t)i * WQE_BLOCK, WQE_BLOCK);
	cqe_check_posted(&check[q - device.qp], q, opcode, flags, blocks);
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
	cqe_check_received(&check[q - device.qp]);
	q->dbrec[DBREC_RECV] = be32_of(++q->rq_pi);
}

static void post_srq_recv(struct fuzz_qp *q, struct input *in)
{
	uint8_t *at = q->srq_ring + (size_t)(q->srq_pi % FUZZ_SRQ_WQES) * 128;
	struct wqe_srq_next next = {.next_wqe_index =
					    be16_of((uint16_t)(q->srq_pi + 1 + in_u16(in)))};

	memcpy(at, &next, sizeof(next));
	put_scatter(at + sizeof(next), 128 - sizeof(next), in);
	*q->srq_dbrec = be32_of(++q->srq_pi);
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

	cqe_check_overwritten(&check[q - device.qp]);
	in_bytes(in, (uint8_t *)to[where % array_size(to)].at + off, n);
}

/* ---- the rest of a program's life ---- */

/* What a doorbell of device code says: the index, another one, or a queue of another region. */
static void bell_by_value(struct fuzz_qp *q, struct input *in)
{
	uint8_t how = in_u8(in);
	uint16_t pi = how & 1 ? (uint16_t)in_u32(in) : q->sq_pi;
	uint32_t region = how & 2 ? in_u32(in) : FUZZ_REGION;

	if (how & 1)
		cqe_check_overwritten(&check[q - device.qp]);
	MUST(qp_bell(device.device.adapter[device.dev], region, qp_number(q->qp), pi) ==
	     (region == FUZZ_REGION));
}

static void perform_step(uint8_t op, struct fuzz_qp *q, struct input *in)
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
		if (q->by_value)
			bell_by_value(q, in);
		adapter_doorbell(device.device.adapter[device.dev], qp_number(q->qp), q->sq_pi);
		qp_recv_posted(q->qp);
		break;
	case OP_PROGRESS: {
		uint64_t deadline = UINT64_MAX;

		adapter_batch_end(device.device.adapter[device.dev]);
		(void)adapter_progress(device.device.adapter[device.dev], &deadline);
		break;
	}
	case OP_MODIFY:
		if (fuzz_device_qp_modify(&device, (unsigned)(q - device.qp), in))
			cqe_check_begin(&check[q - device.qp], q);
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

		fuzz_device_mr_close(&device, which, which & 0x80);
		break;
	}
	case OP_REREGISTER:
		life_reregister(&device, in);
		break;
	case OP_GROUP:
		life_group(q, in);
		break;
	case OP_FLOW:
		life_flow(&device, q, in);
		break;
	case OP_MODERATE: {
		uint8_t count = in_u8(in);

		cq_moderate(q->cq, count, in_u8(in));
		break;
	}
	case OP_COUNT:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint8_t kinds = in_u8(&in), kind_of_third = in_u8(&in);
	uint32_t qpn[FUZZ_QPS];

	fuzz_device_begin(&device, kinds >> 7);
	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		fuzz_device_qp_create(&device, i, i < 2 ? kinds & ~FUZZ_COMPRESSED : kind_of_third);
		qpn[i] = qp_number(device.qp[i].qp);
		cqe_check_begin(&check[i], &device.qp[i]);
	}
	for (unsigned i = 0; i < FUZZ_QPS; i++)
		fuzz_device_qp_connect(&device, i, qpn[i < 2 ? !i : i], device.dev, &in);
	while (in.left) {
		uint8_t op = in_u8(&in);

		perform_step(op % OP_COUNT, &device.qp[op / OP_COUNT % FUZZ_QPS], &in);
		for (unsigned i = 0; i < FUZZ_QPS; i++)
			cqe_check_look(&check[i], &device.qp[i]);
	}
	cqe_check_end(check, &device);
	fuzz_device_end(&device);
	return 0;
}
