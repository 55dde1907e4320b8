// SPDX-License-Identifier: BSD-2-Clause
/*
 * What another process may write into a channel.  The input plays the peer: it fills its ring with
 * records that are almost right or with any bytes, sets the cursors, and raises the inbox; the
 * device's queue pairs are connected with queue pairs of that peer.  They also send, so that
 * acknowledgements and answers have something to answer.
 *
 *      this process, slot 0: QPs ---- channel ---- slot 1: the input
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapter/transport/dc.h"
#include "base/hazard.h"
#include "fuzz_device.h"
#include "packet_ops.h"
#include "signed_key.h"
#include "test_life.h"
#include "wire/short_send.h"
#include "wire/channel.h"
#include "exposure/expose.h"
#include "wire/inbox.h"
#include "wire/record.h"

#define PEER	      1u
#define PEER_QPN      (512u << REGISTRY_CHUNK_SHIFT)
#define CHANNEL_BYTES (sizeof(struct channel_mem) + 2 * RING_MIN_BYTES)
#define OUR_SIDE      0
#define PEER_SIDE     1

static struct fuzz_device device;
static struct fuzz_signed signed_key;
static struct channel_mem *channel;
static struct ring peer_tx, peer_rx;
/* The peer's memory is this process's. */
static struct expose peer_exposure;
static struct test_life peer_life;
static struct pkt_foreign sender;
/* The peer has overwritten what we sent, or our cursor, and now finds there what it wrote. */
static bool scribbled;

void target_init(void)
{
	struct registry *r;

	fuzz_device_init(&device);
	r = device.device.registry;
	atomic_store(&r->slot_host_plus_1[PEER], 1);
	atomic_store(&r->qpn_slot_plus_1[PEER_QPN >> REGISTRY_CHUNK_SHIFT], PEER + 1);
	atomic_store(&device.device.slots[PEER].alive, 1);
	device.device.slots[PEER].pid = getpid();
	MUST(!expose_open(&peer_exposure, device.device.slots, PEER, false));
	test_life_begin(&peer_life, &peer_exposure.mem->alive);
	/* No futex calls for a peer that is not there. */
	atomic_store(&device.device.slots[PEER].driver, SLOT_ENGINE);
}

static void channel_up(void)
{
	int fd = memfd_create("channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *p;

	MUST(fd >= 0 && !ftruncate(fd, CHANNEL_BYTES));
	p = mmap(NULL, CHANNEL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(p != MAP_FAILED);
	channel = p;
	scribbled = false;
	atomic_store(&channel->side[PEER_SIDE].readable, READABLE_YES);
	atomic_store(&channel->side[PEER_SIDE].abi, CHANNEL_ABI);
	MUST(!ring_open_producer(&peer_tx, &channel->ring[PEER_SIDE],
				 channel->data + PEER_SIDE * RING_MIN_BYTES, RING_MIN_BYTES));
	MUST(!ring_open_consumer(&peer_rx, &channel->ring[OUR_SIDE],
				 channel->data + OUR_SIDE * RING_MIN_BYTES, RING_MIN_BYTES));
	MUST(!wire_process_add_channel(device.device.host, PEER, fd, CHANNEL_BYTES, OUR_SIDE));
}

static void channel_down(void)
{
	wire_process_drop_channel(device.device.host, PEER);
	(void)wire_process_progress(device.device.host);
	munmap(channel, CHANNEL_BYTES);
}

/* ---- the peer ---- */

/* The same place under the key with signatures, if it is that. */
static void name_signed(uint8_t which, uint64_t *va, uint32_t *key)
{
	if (!signed_key.mkey || !(which & WHICH_SIGNED))
		return;
	*va -= fuzz_device_addr(&device, which & 7, 0);
	*key = mkey_key(signed_key.mkey);
}

static void send_packet(struct fuzz_qp *q, struct input *in)
{
	uint8_t opcode = in_u8(in), flags = in_u8(in), which = in_u8(in);
	struct run runs[3];
	struct path path = {
		.src_port = device.dev,
		.dst_port = device.dev,
		.grh = flags & 1,
		.dlid = flags & 2 ? 7 : 0,
	};
	struct pkt p = {
		.opcode = opcode,
		.solicited = flags & 4,
		.ack_req = flags & 8,
		.aeth = in_u8(in),
		.dqpn = qp_number(q->qp),
		.sqpn = PEER_QPN,
		.qkey = 0x11111111,
		/* near what is expected */
		.psn = (0xfffff0 + (uint32_t)(int8_t)in_u8(in)) & IB_PSN_MASK,
		.npkts = flags & 16 ? in_u32(in) : 1u + in_u8(in),
		.imm = in_u8(in),
		.srqn = device.qp[1].srq ? srq_number(device.qp[1].srq) : 0,
		.va = which & 0x40
			      ? fuzz_device_addr(&device, which & 7,
						 fuzz_device_bytes(&device, which & 7) - in_u16(in))
			      : fuzz_device_addr(&device, which & 7, in_u16(in)),
		.rkey = fuzz_device_key(&device, (which & 7u) + (which >> 3 & 7u)) + (which >> 7),
		.dma_len = flags & 32 ? in_u32(in) : in_u16(in),
		.swap_add = in_u8(in),
		.compare = in_u8(in),
		.path = &path,
		.payload_len = in_u16(in),
		.runs = runs,
	};
	struct pkt_dc dc = {.key = FUZZ_DC_KEY, .process = dc_process_name(PEER, 1)};
	bool by_reference = flags & 64;
	/* A READ names the places of its answer. */
	uint32_t first = pkt_props(&p)->read && pkt_props(&p)->request ? p.dma_len : p.payload_len;
	uint32_t bytes;
	void *record, *payload;

	name_signed(which, &p.va, &p.rkey);
	for (p.nruns = 0; by_reference && p.nruns < array_size(runs); p.nruns++)
		runs[p.nruns] =
			(struct run){(void *)(uintptr_t)fuzz_device_addr(&device, 0, in_u16(in)),
				     p.nruns ? in_u8(in) : first};
	if (pkt_has_dc(&p)) {
		dc.connection = in_u8(in);
		dc.psn = (0xfffff0 + (uint32_t)(int8_t)in_u8(in)) & IB_PSN_MASK;
		p.sqpn += in_u8(in) & 3;
		p.dc = &dc;
	}
	bytes = record_bytes(&p, by_reference);
	if (!bytes || ring_reserve(&peer_tx, bytes, &record))
		return;
	payload = record_pack(record, &p, by_reference);
	if (!by_reference)
		memset(payload, flags, p.payload_len);
	ring_commit(&peer_tx, bytes);
	/* Of the length, too, which the ring has just written. */
	for (unsigned changes = in_u8(in) % 4; changes; changes--) {
		size_t at = in_u16(in) % bytes;

		((uint8_t *)record)[at] = in_u8(in);
	}
}

static void write_raw(struct input *in)
{
	size_t off = in_u32(in) % CHANNEL_BYTES;
	size_t n = min_u64(in_u8(in), CHANNEL_BYTES - off);
	size_t ours = offsetof(struct channel_mem, ring[OUR_SIDE]);
	size_t data = offsetof(struct channel_mem, data) + OUR_SIDE * RING_MIN_BYTES;

	scribbled |= (off < ours + sizeof(struct ring_shared) && ours < off + n) ||
		     (off < data + RING_MIN_BYTES && data < off + n);
	in_bytes(in, (uint8_t *)channel + off, n);
}

/* Where the next record of a ring begins. */
static void say_length(const struct ring *r, uint32_t length)
{
	memcpy(r->data + r->off, &length, sizeof(length));
}

static void set_cursor(struct input *in)
{
	uint8_t which = in_u8(in);
	struct ring_shared *r = &channel->ring[which & 1];

	scribbled |= (which & 3) == (2 | OUR_SIDE);
	if (which & 2)
		say_length(which & 1 ? &peer_tx : &peer_rx, (uint32_t)in_u64(in));
	else
		atomic_store(&r->tail, in_u64(in));
	atomic_store(&r->want_room, which >> 2);
}

static void deliver_packets(void)
{
	inbox_raise(&device.device.slots[0], PEER);
	(void)wire_process_progress(device.device.host);
}

/* What we send must be well formed, whatever the peer said, as long as it leaves it alone. */
static void take_records(void)
{
	static struct record_pkt out;
	const void *record;
	uint32_t bytes;
	bool wakes;

	/* What it has scribbled may lead round and round. */
	for (unsigned n = RING_MIN_BYTES / RING_ALIGN;
	     n && ring_peek(&peer_rx, &record, &bytes) > 0; n--) {
		uint32_t part = 0;
		int rc;

		do {
			rc = record_unpack_part(record, bytes, part, &sender, &out);
			MUST(scribbled || (!rc && out.pkt.npkts && out.pkt.dqpn <= IB_QPN_MASK));
		} while (!rc && ++part < out.parts);
		ring_next(&peer_rx, bytes);
	}
	/* Whether the producer wants to be woken: the device is driven here without that. */
	wakes = ring_give_back(&peer_rx);
	(void)wakes;
}

/* ---- the parsers alone, where the sanitizer sees every byte too far ---- */

/* What the runs make up: the payload, or the places of an answer, if we can write there. */
static uint64_t run_bytes_expected(const struct pkt *p)
{
	if (p->placed)
		return 0;
	if (!pkt_props(p)->read || !pkt_props(p)->request)
		return p->payload_len;
	return p->foreign ? p->dma_len : p->nruns ? p->payload_len : 0;
}

static void read_short_send(const uint8_t *record, size_t bytes)
{
	struct short_send b;
	uint32_t port;

	if (!short_send_read(record, (uint32_t)bytes, &b, &port))
		return;
	MUST(b.n && b.n <= SHORT_SEND_MAX);
	MUST(range_inside((size_t)(b.payload - record),
			  (size_t)(b.n - 1) * short_send_stride(&b) + b.payload_len, bytes));
}

static void unpack_record(struct input *in)
{
	static struct record_pkt out;
	size_t bytes = RING_ALIGN * (1u + in_u8(in) % 6);
	uint8_t *record = malloc(bytes);
	struct pkt_foreign *from = in_u8(in) & 1 ? &sender : NULL;

	MUST(record);
	in_bytes(in, record, bytes);
	read_short_send(record, bytes);
	for (uint32_t part = 0; !record_unpack_part(record, (uint32_t)bytes, part, from, &out);
	     part++) {
		uint64_t sum = 0;

		MUST(out.pkt.nruns <= RUNS_MAX);
		for (uint32_t i = 0; i < out.pkt.nruns; i++) {
			size_t at = (size_t)((uint8_t *)out.runs[i].addr - record);

			sum += out.runs[i].len;
			MUST(out.pkt.foreign || range_inside(at, out.runs[i].len, bytes));
		}
		MUST(sum == run_bytes_expected(&out.pkt) && (from || !out.pkt.foreign));
	}
	free(record);
}

static void peek_record(struct input *in)
{
	struct ring_shared shared;
	uint8_t *data = malloc(RING_MIN_BYTES);
	struct ring ring;
	const void *record;
	uint32_t bytes;

	MUST(data);
	memset(&shared, 0, sizeof(shared));
	memset(data, 0, RING_MIN_BYTES);
	atomic_store(&shared.tail, (uint64_t)in_u16(in) * RING_ALIGN);
	atomic_store(&shared.head, atomic_load(&shared.tail));
	MUST(!ring_open_consumer(&ring, &shared, data, RING_MIN_BYTES));
	/* Lengths where records might begin. */
	for (unsigned n = in_u8(in) % 16, at = ring.off; n; n--) {
		uint32_t len = in_u32(in);

		memcpy(data + at, &len, sizeof(len));
		at = (unsigned)(align_up(at + (uint64_t)len, RING_ALIGN) % RING_MIN_BYTES);
	}
	for (unsigned n = 0; n < 64 && ring_peek(&ring, &record, &bytes) > 0; n++) {
		MUST(bytes &&
		     range_inside((size_t)((const uint8_t *)record - data), bytes, RING_MIN_BYTES));
		ring_next(&ring, bytes);
	}
	free(data);
}

/* ---- our own requests ---- */

static void post_send(struct fuzz_qp *q, struct input *in)
{
	static const uint8_t opcodes[] = {
		WQE_OP_SEND,	  WQE_OP_RDMA_WRITE, WQE_OP_RDMA_READ, WQE_OP_ATOMIC_FA,
		WQE_OP_ATOMIC_CS, WQE_OP_SEND_IMM,   WQE_OP_NOP,
	};
	uint8_t opcode = opcodes[in_u8(in) % array_size(opcodes)];
	bool remote = opcode != WQE_OP_SEND && opcode != WQE_OP_SEND_IMM;
	bool atomic = opcode == WQE_OP_ATOMIC_FA || opcode == WQE_OP_ATOMIC_CS;
	uint8_t which = in_u8(in);
	struct {
		struct wqe_ctrl ctrl;
		uint8_t rest[48];
	} wqe = {.ctrl = {.opmod_idx_opcode = be32_of((uint32_t)q->sq_pi << 8 | opcode),
			  .fm_ce_se = in_u8(in)}};
	struct wqe_raddr raddr = {.va = be64_of(0x1000), .rkey = be32_of(0x200)};
	struct wqe_data data = {.byte_count = be32_of(atomic ? 8 : in_u16(in))};
	uint32_t lkey = fuzz_device_key(&device, which & 7);
	uint64_t addr = fuzz_device_addr(&device, which & 7, in_u16(in));
	size_t at = 0;

	name_signed(which, &addr, &lkey);
	data.lkey = be32_of(lkey);
	data.addr = be64_of(addr);

	if (remote)
		memcpy(wqe.rest, &raddr, sizeof(raddr));
	at = remote ? sizeof(raddr) : 0;
	if (atomic)
		at += sizeof(struct wqe_atomic);
	memcpy(wqe.rest + at, &data, sizeof(data));
	at += sizeof(data) + sizeof(wqe.ctrl);
	wqe.ctrl.qpn_ds = be32_of(qp_number(q->qp) << 8 | (uint32_t)(at / WQE_UNIT));
	if (q->type == IB_QPT_XRC_TGT || q->type == IB_QPT_DCT)
		return;
	memcpy(q->sq + (size_t)(q->sq_pi % FUZZ_BLOCKS) * WQE_BLOCK, &wqe, sizeof(wqe));
	q->dbrec[DBREC_SEND] = be32_of(++q->sq_pi);
	hazard_enter();
	qp_doorbell(q->qp);
	hazard_leave();
}

static void post_recv(struct fuzz_qp *q, struct input *in)
{
	uint8_t which = in_u8(in);
	uint32_t len = in_u16(in), lkey = fuzz_device_key(&device, which & 7);
	uint64_t addr = fuzz_device_addr(&device, which & 7, in_u16(in));
	struct wqe_data d[2] = {{.byte_count = be32_of(len)}, {.lkey = be32_of(WQE_DATA_LKEY_END)}};

	name_signed(which, &addr, &lkey);
	d[0].lkey = be32_of(lkey);
	d[0].addr = be64_of(addr);

	memcpy(q->rq + (size_t)(q->rq_pi % FUZZ_RECVS) * FUZZ_RQ_BYTES, d, sizeof(d));
	q->dbrec[DBREC_RECV] = be32_of(++q->rq_pi);
	qp_recv_posted(q->qp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint8_t kinds = in_u8(&in);

	fuzz_device_begin(&device, kinds >> 7);
	if (kinds & KINDS_SIGNED)
		signed_begin(&signed_key, &device, in_u8(&in));
	channel_up();
	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		static const uint8_t of_index[FUZZ_QPS] = {FUZZ_RC, FUZZ_UC, FUZZ_UD};
		uint8_t kind = of_index[i];

		/* XRC: a target in the place of the UC one */
		if (kinds & 1 && i == 1)
			kind = FUZZ_XRC;
		if (kinds & 2 && i == 2)
			kind = FUZZ_RAW;
		if (kinds & 4 && i == 1)
			kind = FUZZ_DC;
		fuzz_device_qp_create(&device, i,
				      kind | (kinds & (FUZZ_ALL_SIGNALED | FUZZ_LARGE_CQES)));
		fuzz_device_qp_connect(&device, i, PEER_QPN, device.dev, &in);
	}
	while (in.left) {
		uint8_t op = in_u8(&in);
		struct fuzz_qp *q = &device.qp[op / OP_COUNT % FUZZ_QPS];

		switch ((enum op)(op % OP_COUNT)) {
		case OP_PACKET:
			send_packet(q, &in);
			break;
		case OP_RAW:
			write_raw(&in);
			break;
		case OP_DELIVER:
			deliver_packets();
			break;
		case OP_SEND:
			post_send(q, &in);
			break;
		case OP_RECV:
			post_recv(q, &in);
			break;
		case OP_PROGRESS:
			(void)adapter_progress(device.device.adapter[device.dev], NULL);
			break;
		case OP_TAKE:
			take_records();
			break;
		case OP_CURSOR:
			set_cursor(&in);
			break;
		case OP_UNPACK:
			unpack_record(&in);
			break;
		case OP_PEEK:
			peek_record(&in);
			break;
		case OP_COUNT:
			break;
		}
	}
	deliver_packets();
	(void)adapter_progress(device.device.adapter[device.dev], NULL);
	channel_down();
	signed_end(&signed_key, &device);
	fuzz_device_end(&device);
	return 0;
}
