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

#include "adapter/transport/dc_process.h"
#include "base/rcu.h"
#include "fuzz_device.h"
#include "signed_key.h"
#include "test_life.h"
#include "wire/channel.h"
#include "exposure/expose.h"
#include "wire/inbox.h"

#define PEER	      1u
#define PEER_QPN      (512u << REGISTRY_CHUNK_SHIFT)
#define CHANNEL_BYTES (sizeof(struct channel_mem) + 2 * RING_MIN_BYTES)
#define OUR_SIDE      0
#define PEER_SIDE     1

enum op {
	OP_PACKET, /* a record made by record_pack, some bytes changed */
	OP_RAW,	   /* bytes into the channel's memory */
	OP_DELIVER,
	OP_SEND, /* our own request */
	OP_RECV,
	OP_PROGRESS,
	OP_TAKE, /* the peer consumes what we sent */
	OP_CURSOR,
	OP_UNPACK, /* a record, alone in a block of its own size */
	OP_PEEK,   /* a ring, likewise */
	OP_COUNT,
};

/* Of an input's first byte: there is a key with signatures, what the next byte says. */
#define KINDS_SIGNED 32u
/* Of what names a key: it is that. */
#define WHICH_SIGNED 32u

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
	atomic_store(&device.device.slots[PEER].wake, SLOT_AWAKE);
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
	(void)ring_give_back(&peer_rx);
}

/* ---- the parsers alone, where the sanitizer sees every byte too far ---- */

static void unpack_record(struct input *in)
{
	static struct record_pkt out;
	size_t bytes = RING_ALIGN * (1u + in_u8(in) % 6);
	uint8_t *record = malloc(bytes);
	struct pkt_foreign *from = in_u8(in) & 1 ? &sender : NULL;

	MUST(record);
	in_bytes(in, record, bytes);
	for (uint32_t part = 0; !record_unpack_part(record, (uint32_t)bytes, part, from, &out);
	     part++) {
		uint64_t sum = 0;

		MUST(out.pkt.nruns <= RUNS_MAX);
		for (uint32_t i = 0; i < out.pkt.nruns; i++) {
			size_t at = (size_t)((uint8_t *)out.runs[i].addr - record);

			sum += out.runs[i].len;
			MUST(out.pkt.foreign || range_inside(at, out.runs[i].len, bytes));
		}
		MUST(sum == out.pkt.payload_len && (from || !out.pkt.foreign));
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
	rcu_enter();
	qp_doorbell(q->qp);
	rcu_leave();
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

/* ---- seeds ---- */

static void put_op(struct seed *s, unsigned qp, enum op op)
{
	put_u8(s, qp * OP_COUNT + op);
}

/* Names the keys of what follows. */
static uint8_t seed_which;

static void put_begin(struct seed *s, uint32_t kinds)
{
	put_u8(s, kinds);
	if (kinds & KINDS_SIGNED)
		put_u8(s, kinds >> 8); /* signatures */
	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		put_u8(s, 0x44); /* reads and atomics at a time */
		put_u8(s, 0x0f);
		put_u8(s, 2);
		put_u8(s, 0);
	}
}

static void put_packet(struct seed *s, unsigned qp, uint8_t opcode, uint8_t flags, uint8_t psn,
		       uint16_t dma_len, uint16_t len)
{
	put_op(s, qp, OP_PACKET);
	put_u8(s, opcode);
	put_u8(s, flags | 8);
	put_u8(s, seed_which);
	put_u8(s, AETH_ACK | AETH_NO_CREDIT);
	put_u8(s, psn);
	put_u8(s, 0);
	put_u8(s, 0);
	put_u16(s, 64);
	put_u16(s, dma_len);
	put_u8(s, 1);
	put_u8(s, 2);
	put_u16(s, len);
	if (flags & 64) {
		put_u16(s, 0);
		put_u16(s, 0);
		put_u8(s, 0);
		put_u16(s, 0);
		put_u8(s, 0);
	}
	if (pkt_has_dc(&(struct pkt){.opcode = opcode})) {
		put_u8(s, 1);
		put_u8(s, psn);
		put_u8(s, 0);
	}
	put_u8(s, 0);
}

static void put_recv(struct seed *s, unsigned qp)
{
	put_op(s, qp, OP_RECV);
	put_u8(s, seed_which);
	put_u16(s, 4096);
	put_u16(s, 0);
}

static void put_send(struct seed *s, unsigned qp, unsigned kind, uint32_t len)
{
	put_op(s, qp, OP_SEND);
	put_u8(s, kind);
	put_u8(s, seed_which);
	put_u8(s, WQE_CTRL_CE_ALWAYS);
	if (kind != 3 && kind != 4)
		put_u16(s, len);
	put_u16(s, 0);
}

void target_seeds(struct seed *s)
{
	static const uint8_t requests[] = {
		BTH_SEND_ONLY,	  BTH_SEND_ONLY_IMM, BTH_WRITE_ONLY, BTH_WRITE_ONLY_IMM,
		BTH_READ_REQUEST, BTH_COMPARE_SWAP,  BTH_FETCH_ADD,  BTH_SEND_ONLY_INV,
	};
	static const uint8_t transports[] = {BTH_RC, BTH_UC, BTH_UD, BTH_DC};
	char name[32];

	for (unsigned dev = 0; dev < 2; dev++)
		for (unsigned t = 0; t < array_size(transports); t++) {
			bool dc = transports[t] == BTH_DC;
			unsigned qp = dc ? 1 : t;

			put_begin(s, dev << 7 | (dc ? 4 : 0));
			for (unsigned i = 0; i < array_size(requests); i++) {
				put_recv(s, qp);
				put_packet(s, qp, requests[i] | transports[t], 0, (uint8_t)i, 100,
					   requests[i] == BTH_READ_REQUEST ? 0 : 100);
				put_op(s, qp, OP_DELIVER);
				put_op(s, qp, OP_PROGRESS);
				put_op(s, qp, OP_TAKE);
			}
			snprintf(name, sizeof(name), "requests-%u-%u", dev, t);
			put_end(s, name);
		}

	/* Keys with signatures in all places. */
	seed_which = WHICH_SIGNED;
	for (unsigned what = 0; what < 256; what += 23) {
		put_begin(s, what << 8 | KINDS_SIGNED);
		put_recv(s, 0);
		put_packet(s, 0, BTH_SEND_FIRST, 64, 0, 0, 1024);
		put_packet(s, 0, BTH_SEND_LAST, 0, 1, 0, 500);
		put_packet(s, 0, BTH_WRITE_ONLY, 0, 2, 700, 700);
		put_packet(s, 0, BTH_READ_REQUEST, 0, 3, 900, 0);
		put_op(s, 0, OP_DELIVER);
		put_send(s, 0, 0, 600);
		put_send(s, 0, 1, 800);
		put_send(s, 0, 2, 1200);
		put_packet(s, 0, BTH_READ_RESP_FIRST, 0, 2, 0, 1024);
		put_packet(s, 0, BTH_READ_RESP_LAST, 0, 3, 0, 176);
		put_op(s, 0, OP_DELIVER);
		put_op(s, 0, OP_TAKE);
		snprintf(name, sizeof(name), "signed-%u", what);
		put_end(s, name);
	}
	seed_which = 0;

	/* A message in three packets, by reference. */
	put_begin(s, 0);
	put_packet(s, 0, BTH_WRITE_FIRST, 64, 0, 3072, 1024);
	put_packet(s, 0, BTH_WRITE_MIDDLE, 64, 1, 0, 1024);
	put_packet(s, 0, BTH_WRITE_LAST, 64, 2, 0, 1024);
	put_op(s, 0, OP_DELIVER);
	put_op(s, 0, OP_PROGRESS);
	put_end(s, "message");

	/* Our requests and their answers. */
	put_begin(s, 0);
	put_send(s, 0, 0, 100);
	put_send(s, 0, 2, 3000);
	put_send(s, 0, 3, 0);
	put_packet(s, 0, BTH_ACK, 0, 0, 0, 0);
	put_packet(s, 0, BTH_READ_RESP_FIRST, 0, 1, 0, 1024);
	put_packet(s, 0, BTH_READ_RESP_MIDDLE, 0, 2, 0, 1024);
	put_packet(s, 0, BTH_READ_RESP_LAST, 0, 3, 0, 952);
	put_packet(s, 0, BTH_ATOMIC_ACK, 0, 4, 0, 0);
	put_op(s, 0, OP_DELIVER);
	put_op(s, 0, OP_TAKE);
	put_end(s, "answers");

	put_begin(s, 0);
	put_op(s, 0, OP_UNPACK);
	put_u8(s, 1);
	put_u8(s, 0);
	put_u32(s, 128);
	for (unsigned i = 0; i < 7; i++)
		put_u32(s, 0);
	put_u32(s, 1); /* packets */
	for (unsigned i = 0; i < 5; i++)
		put_u32(s, 0);
	put_u32(s, 64); /* payload */
	for (unsigned i = 0; i < 19; i++)
		put_u32(s, 0x5a5a5a5a);
	put_op(s, 0, OP_PEEK);
	put_u16(s, RING_MIN_BYTES / RING_ALIGN - 3);
	put_u8(s, 3);
	put_u32(s, 128);
	put_u32(s, RING_TURN);
	put_u32(s, 256);
	put_end(s, "parsers");

	put_begin(s, 0);
	put_send(s, 1, 0, 100);
	put_packet(s, 1, BTH_SEND_ONLY | BTH_UC, 0, 0, 0, 100);
	put_op(s, 0, OP_CURSOR);
	put_u8(s, 3);
	put_u64(s, 1);
	put_op(s, 0, OP_DELIVER);
	put_end(s, "cursor");
}
