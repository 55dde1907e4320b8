// SPDX-License-Identifier: BSD-2-Clause
/*
 * RDMA WRITEs and READs at a peer of another process: two hosts of a fabric in one process, the
 * target's memory in its arena.  The initiator executes them alone; what is out of the ordinary
 * goes by packets with the outcome that it always has, and so does every message.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapter/bypass/bypass_peer.h"
#include "adapter/bypass/remote_memory.h"
#include "adapter/memory/mkey_indirect.h"
#include "adapter/transport/responder.h"
#include "adapter_device.h"
#include "base/rcu.h"
#include "base/rseq.h"
#include "check.h"
#include "test_fault.h"
#include "prm/umr.h"
#include "test_subnet.h"
#include "exposure/expose.h"
#include "wire/tap.h"

#define CHANNEL_BYTES (1u << 20)
#define ARENA_OFFSET  8192u
#define LID	      7u
#define PORTS	      2u
#define DEEP	      16u
#define RIGHTS	      (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

/* How the initiator comes to the data. */
static enum key_way way;

/* The target; its data lies in its arena. */
struct exposed {
	struct device_qp qp;
	uint8_t data[4096];
};

struct side {
	struct test_device device;
	struct fabric *fabric;
	uint16_t slot;
};

struct fabric {
	struct registry *registry;
	struct subnet subnet;
	struct slot *slots;
	int channel;
	uint32_t next_chunk;
	struct side a, b; /* a reaches into b */
	struct device_qp from;
	struct exposed *to;
	uint8_t source[4096];
	uint32_t source_key, target_key;
	struct mkey *mr[2];
	pthread_t thread; /* that the kernel way addresses */
	_Atomic(uint32_t) lives;
};

static int64_t chunk(void *user, enum number_kind kind)
{
	struct side *s = user;
	uint32_t c = ++s->fabric->next_chunk;

	if (kind == NUMBER_QPN)
		atomic_store(&s->fabric->registry->qpn_slot_plus_1[c], (uint16_t)(s->slot + 1));
	return (int64_t)c << REGISTRY_CHUNK_SHIFT;
}

static int open_channel(void *user, uint16_t peer, int *fd, size_t *bytes, int *side)
{
	struct side *s = user;

	*fd = dup(s->fabric->channel);
	*bytes = CHANNEL_BYTES;
	*side = s->slot > peer;
	return 0;
}

static void side_up(struct fabric *f, struct side *s, uint16_t slot)
{
	const struct wire_process_attr attr = {
		.registry = f->registry,
		.subnet = &f->subnet,
		.slots = f->slots,
		.slot = slot,
		.open_channel = open_channel,
		.expose = true,
		.user = s,
	};
	struct adapter_attr a = {.number_chunk = chunk, .user = s};

	s->fabric = f;
	s->slot = slot;
	s->device = (struct test_device){
		.registry = f->registry, .subnet = &f->subnet, .slots = f->slots};
	f->slots[slot].pid = getpid();
	atomic_store(&f->slots[slot].alive, 1);
	CHECK(!wire_process_create(&attr, &s->device.host));
	CHECK(!wire_create(s->device.host, slot, &s->device.wire[0]));
	a.wire = s->device.wire[0];
	CHECK(!adapter_create(&a, &s->device.adapter[0]));
}

static void side_down(struct side *s)
{
	adapter_destroy(s->device.adapter[0]);
	wire_destroy(s->device.wire[0]);
	wire_process_destroy(s->device.host);
}

static void connect_half(struct fabric *f, struct device_qp *q, struct device_qp *peer,
			 uint16_t peer_slot)
{
	static const uint32_t masks[] = {
		[IB_QPS_INIT] = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
		[IB_QPS_RTR] = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			       IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
		[IB_QPS_RTS] = IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			       IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC,
	};
	struct qp_attr attr;

	device_attr(&f->a.device, 0, peer, &attr);
	attr.ah.dlid = (uint16_t)(LID + peer_slot);
	attr.timeout = 0;
	for (enum ib_qp_state s = IB_QPS_INIT; s <= IB_QPS_RTS; s++) {
		attr.state = s;
		CHECK(!qp_modify(q->qp, &attr, masks[s]));
	}
}

static struct qp_block *block_of(struct fabric *f)
{
	uint32_t qpn = qp_number(f->to->qp.qp);

	return &wire_expose(f->b.device.wire[0])->mem->qps[qpn % EXPOSE_BLOCKS];
}

static uint64_t arena_offset(struct fabric *f, const void *p)
{
	return ARENA_OFFSET + (uint64_t)((const uint8_t *)p - (const uint8_t *)f->to);
}

static void data_expose(struct fabric *f, struct mkey *key)
{
	const struct key_place place = {
		.way = way,
		.addr = (uintptr_t)f->to->data,
		.segment = wire_expose(f->b.device.wire[0])->arena,
		.offset = arena_offset(f, f->to->data),
	};

	mkey_expose(f->b.device.adapter[0], key, &place);
}

static void *live(void *arg)
{
	struct fabric *f = arg;
	struct expose *e = wire_expose(f->b.device.wire[0]);

	expose_alive_begin(e);
	atomic_store(&f->lives, 1);
	while (atomic_load(&f->lives))
		usleep(1000);
	expose_alive_end(e);
	return NULL;
}

static void life_begin(struct fabric *f)
{
	CHECK(!pthread_create(&f->thread, NULL, live, f));
	while (!atomic_load(&f->lives))
		usleep(1000);
}

static void life_end(struct fabric *f)
{
	atomic_store(&f->lives, 0);
	CHECK(!pthread_join(f->thread, NULL));
}

static struct fabric *fabric_up(void)
{
	struct fabric *f = aligned_alloc(64, align_up(sizeof(*f), 64));

	CHECK(f);
	memset(f, 0, sizeof(*f));
	f->registry = calloc(1, sizeof(*f->registry));
	f->slots = aligned_alloc(64, sizeof(struct slot) * REGISTRY_SLOTS);
	CHECK(f->registry && f->slots);
	memset(f->slots, 0, sizeof(struct slot) * REGISTRY_SLOTS);
	test_subnet_open(&f->subnet, PORTS);
	for (unsigned i = 0; i < PORTS; i++) {
		test_subnet_port(&f->subnet, i, 0, false);
		test_subnet_lid(&f->subnet, i, (uint16_t)(LID + i));
		atomic_store(&f->registry->slot_host_plus_1[i], i + 1);
	}
	f->channel = memfd_create("channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(f->channel >= 0 && !ftruncate(f->channel, CHANNEL_BYTES));
	side_up(f, &f->a, 0);
	side_up(f, &f->b, 1);

	f->to = mmap(NULL, sizeof(*f->to), PROT_READ | PROT_WRITE, MAP_SHARED,
		     expose_arena_file(wire_expose(f->b.device.wire[0]))->fd, ARENA_OFFSET);
	CHECK(f->to != MAP_FAILED);
	device_qp_up(&f->a.device, 0, &f->from, IB_QPT_RC);
	device_qp_up(&f->b.device, 0, &f->to->qp, IB_QPT_RC);
	f->source_key = device_mr(&f->a.device, 0, f->from.pdn, f->source, sizeof(f->source),
				  RIGHTS, &f->mr[0]);
	f->target_key = device_mr(&f->b.device, 0, f->to->qp.pdn, f->to->data, sizeof(f->to->data),
				  RIGHTS, &f->mr[1]);
	connect_half(f, &f->from, &f->to->qp, 1);
	connect_half(f, &f->to->qp, &f->from, 0);
	data_expose(f, f->mr[1]);
	life_begin(f);
	for (unsigned i = 0; i < sizeof(f->source); i++)
		f->source[i] = (uint8_t)(i * 7 + 1);
	return f;
}

static void fabric_down(struct fabric *f)
{
	life_end(f);
	device_qp_down(&f->from);
	device_qp_down(&f->to->qp);
	mkey_destroy(f->a.device.adapter[0], f->mr[0]);
	mkey_destroy(f->b.device.adapter[0], f->mr[1]);
	munmap(f->to, sizeof(*f->to));
	side_down(&f->a);
	side_down(&f->b);
	close(f->channel);
	test_subnet_close(&f->subnet);
	free(f->registry);
	free(f->slots);
	free(f);
}

static void post(struct fabric *f, uint8_t opcode, uint32_t imm, uint32_t len)
{
	struct device_wqe w;

	device_wqe_begin(&f->from, &w, opcode, WQE_CTRL_CE_ALWAYS, imm);
	if (opcode == WQE_OP_RDMA_WRITE || opcode == WQE_OP_RDMA_READ)
		device_wqe_raddr(&w, (uintptr_t)f->to->data, f->target_key);
	device_wqe_data(&w, f->source, len, f->source_key);
	device_wqe_end(&w);
}

/* The packets' way. */
static void progress(struct fabric *f)
{
	for (unsigned i = 0; i < 200; i++) {
		uint64_t never = UINT64_MAX;

		(void)adapter_progress(f->a.device.adapter[0], &never);
		(void)adapter_progress(f->b.device.adapter[0], &never);
		(void)wire_process_progress(f->a.device.host);
		(void)wire_process_progress(f->b.device.host);
		usleep(10);
	}
}

static void sent(struct fabric *f, uint8_t op)
{
	const struct cqe64 *cqe = device_cq_poll(&f->from.cq);

	CHECK(cqe && cqe->op_own >> 4 == op);
}

static const struct cqe64 *received(struct fabric *f, uint8_t op, uint32_t bytes)
{
	const struct cqe64 *cqe = device_cq_poll(&f->to->qp.cq);

	CHECK(cqe && cqe->op_own >> 4 == op);
	if (op != CQE_OP_RESP_ERR)
		CHECK(be32_get(cqe->byte_cnt) == bytes &&
		      (be32_get(cqe->flags_rqpn) & IB_QPN_MASK) == qp_number(f->from.qp) &&
		      (be32_get(cqe->sop_drop_qpn) & IB_QPN_MASK) == qp_number(f->to->qp.qp));
	return cqe;
}

static uint64_t counted(const struct side *s, enum port_counter c)
{
	uint64_t n = 0;

	for (unsigned shard = 0; shard < SLOT_SHARDS; shard++)
		n += atomic_load(&s->fabric->slots[s->slot].counters[shard][0][c]);
	return n;
}

static void ignore_packet(struct tap *t, enum tap_point at, uint32_t port_row, const struct pkt *p)
{
	(void)t;
	(void)at;
	(void)port_row;
	(void)p;
}

/* At the initiator and at the target: what is counted while a request goes this way or by
 * packets. */
static void count_one(struct fabric *f, bool observed, uint8_t opcode, uint64_t got[8])
{
	static const enum port_counter c[] = {PORT_XMIT_DATA, PORT_XMIT_PACKETS, PORT_RCV_DATA,
					      PORT_RCV_PACKETS};
	struct tap tap = {.packet = ignore_packet};
	uint64_t before[8];

	for (unsigned i = 0; i < 8; i++)
		before[i] = counted(i < 4 ? &f->a : &f->b, c[i % 4]);
	if (observed)
		wire_tap_attach(f->a.device.host, &tap);
	post(f, opcode, 1, 2500);
	if (observed) {
		CHECK(!device_cq_poll(&f->from.cq));
		progress(f);
		wire_tap_detach(f->a.device.host, &tap);
	}
	sent(f, CQE_OP_REQ);
	for (unsigned i = 0; i < 8; i++)
		got[i] = counted(i < 4 ? &f->a : &f->b, c[i % 4]) - before[i];
}

/* The counters cannot tell which way a request went. */
static void test_counters(void)
{
	static const uint8_t opcode[] = {WQE_OP_RDMA_WRITE, WQE_OP_RDMA_READ};

	for (unsigned i = 0; i < array_size(opcode); i++) {
		struct fabric *f = fabric_up();
		uint64_t by_initiator[8], by_packets[8];

		count_one(f, false, opcode[i], by_initiator);
		count_one(f, true, opcode[i], by_packets);
		CHECK(!memcmp(by_initiator, by_packets, sizeof(by_initiator)));
		fabric_down(f);
	}
}

/* Nothing of the target runs: what it finds, the initiator has put there. */
static void test_initiator_alone(void)
{
	struct fabric *f = fabric_up();
	struct qp_attr attr;
	uint32_t psn;

	for (unsigned i = 0; i < 3 * DEVICE_CQES; i++) {
		uint32_t len = 1 + i * 37 % 2500;

		memset(f->to->data, 0, sizeof(f->to->data));
		f->source[len - 1] = (uint8_t)(i | 1);
		post(f, WQE_OP_RDMA_WRITE, 0, len);
		sent(f, CQE_OP_REQ);
		CHECK(!memcmp(f->to->data, f->source, len) && !f->to->data[len]);
		f->to->data[len / 2] ^= 0xff;
		post(f, WQE_OP_RDMA_READ, 0, len);
		sent(f, CQE_OP_REQ);
		CHECK(!memcmp(f->to->data, f->source, len));
	}
	CHECK(!device_cq_poll(&f->to->qp.cq) && !device_cq_poll(&f->from.cq));
	/* both ends count as if packets had gone */
	qp_query(f->to->qp.qp, &attr);
	psn = attr.rq_psn;
	qp_query(f->from.qp, &attr);
	CHECK(psn != 0xfffff0 && attr.sq_psn == psn);
	CHECK(counted(&f->a, PORT_XMIT_PACKETS) == counted(&f->b, PORT_RCV_PACKETS));
	CHECK(counted(&f->a, PORT_XMIT_DATA) == counted(&f->b, PORT_RCV_DATA));
	CHECK(counted(&f->b, PORT_XMIT_PACKETS) == counted(&f->a, PORT_RCV_PACKETS));
	fabric_down(f);
}

/* A message is executed by its receiver, and requests go on past the packets behind it. */
static void test_message_by_packets(void)
{
	struct fabric *f = fabric_up();

	for (unsigned i = 0; i < 3; i++) {
		device_recv(&f->to->qp, f->to->data, sizeof(f->to->data), f->target_key);
		post(f, i % 2 ? WQE_OP_SEND_IMM : WQE_OP_SEND, i, 100 + i);
		CHECK(!device_cq_poll(&f->from.cq) && !device_cq_poll(&f->to->qp.cq));
		progress(f);
		received(f, i % 2 ? CQE_OP_RESP_SEND_IMM : CQE_OP_RESP_SEND, 100 + i);
		sent(f, CQE_OP_REQ);
		post(f, WQE_OP_RDMA_WRITE, 0, 8);
		sent(f, CQE_OP_REQ);
	}
	fabric_down(f);
}

/* Does the path lead from the initiator to the target's memory? */
static bool is_reached(struct fabric *f, struct path path)
{
	bool reached;

	rcu_enter();
	reached = wire_remote(f->a.device.wire[0], &path, qp_number(f->to->qp.qp));
	rcu_leave();
	return reached;
}

/* A responder that says it is at another port is not the one that the path leads to. */
static void test_other_port(void)
{
	struct fabric *f = fabric_up();
	struct qp_block *b = block_of(f);

	CHECK(b->view.port == 1 && b->view.dest_port == 0);
	b->view.port = 0;
	post(f, WQE_OP_RDMA_WRITE, 0, 100);
	CHECK(!device_cq_poll(&f->from.cq) && !f->to->data[1]); /* packets go by the path */
	b->view.port = 1;
	progress(f);
	sent(f, CQE_OP_REQ);
	CHECK(!memcmp(f->to->data, f->source, 100));
	fabric_down(f);
}

/* With the address of its own host a queue pair reaches no peer of another, in no way, though that
 * peer would take it for its own. */
static void test_wrong_address(void)
{
	struct fabric *f = fabric_up();
	struct qp_block *b = block_of(f);

	device_qp_down(&f->from);
	device_qp_up(&f->a.device, 0, &f->from, IB_QPT_RC);
	mkey_destroy(f->a.device.adapter[0], f->mr[0]);
	f->source_key = device_mr(&f->a.device, 0, f->from.pdn, f->source, sizeof(f->source),
				  RIGHTS, &f->mr[0]);
	connect_half(f, &f->from, &f->to->qp, 0);
	b->view.dest_qpn = qp_number(f->from.qp);
	CHECK(!is_reached(f, (struct path){.src_port = 0, .dst_port = 0}));
	post(f, WQE_OP_RDMA_WRITE, 0, 100);
	progress(f);
	CHECK(!device_cq_poll(&f->from.cq) && !f->to->data[1]);
	CHECK(counted(&f->a, PORT_XMIT_DISCARDS) && !counted(&f->a, PORT_XMIT_PACKETS));
	fabric_down(f);
}

/* The bypass heeds the state of both ports, and works again when they are up. */
static void test_port_down(void)
{
	struct fabric *f = fabric_up();

	for (uint32_t row = 0; row < PORTS; row++) {
		post(f, WQE_OP_RDMA_WRITE, 0, 100);
		sent(f, CQE_OP_REQ);
		subnet_set_state(&f->subnet, row, IB_PORT_DOWN);
		CHECK(!is_reached(f, (struct path){.src_port = 0, .dst_port = 1}));
		subnet_set_state(&f->subnet, row, IB_PORT_ACTIVE);
	}
	fabric_down(f);
}

/* A key that is not in the arena is reached by packets; a key of another domain by nobody. */
static void test_other_keys(void)
{
	struct fabric *f = fabric_up();
	struct mkey *elsewhere, *foreign;

	f->target_key =
		device_mr(&f->b.device, 0, f->to->qp.pdn, f->to->data, 256, RIGHTS, &elsewhere);
	post(f, WQE_OP_RDMA_WRITE, 0, 100);
	CHECK(!device_cq_poll(&f->from.cq) && !f->to->data[1]);
	progress(f);
	sent(f, CQE_OP_REQ);
	CHECK(!memcmp(f->to->data, f->source, 100));

	memset(f->to->data, 0, 100);
	f->target_key = device_mr(&f->b.device, 0, pd_alloc(f->b.device.adapter[0]), f->to->data,
				  256, RIGHTS, &foreign);
	data_expose(f, foreign);
	post(f, WQE_OP_RDMA_WRITE, 0, 100);
	progress(f);
	sent(f, CQE_OP_REQ_ERR);
	CHECK(!f->to->data[1]);
	mkey_destroy(f->b.device.adapter[0], elsewhere);
	mkey_destroy(f->b.device.adapter[0], foreign);
	fabric_down(f);
}

static void modify(struct device_qp *q, uint32_t mask, struct qp_attr attr)
{
	CHECK(!qp_modify(q->qp, &attr, mask));
}

/* Changes the target while a request is under way; says whether the request counts then. */
static bool counts_after(uint32_t mask, struct qp_attr attr, bool *open)
{
	static const struct message_sizes one = {
		.kind = MESSAGE_WRITE, .messages = 1, .packets = 1, .payload = 8};
	struct fabric *f = fabric_up();
	struct qp *from = f->from.qp;
	struct bypass_peer r;
	struct qp_attr seen;
	bool counts;

	rcu_enter();
	CHECK(bypass_peer_enter(from, IB_ACCESS_REMOTE_WRITE, &r) && r.remote);
	qp_query(f->to->qp.qp, &seen);
	CHECK(seen.rq_psn == from->req.psn);
	if (mask)
		modify(&f->to->qp, mask, attr);
	else
		qp_fail(f->to->qp.qp, "test");
	*open = qp_word_is_open(qp_word_load(&block_of(f)->word));
	counts = bypass_peer_leave(from, &r, &one);
	qp_query(f->to->qp.qp, &seen);
	CHECK(seen.state == IB_QPS_RESET || seen.rq_psn == psn_add(from->req.psn, counts));
	rcu_leave();
	fabric_down(f);
	return counts;
}

/* What the target's program does while a request is under way: only what stops the responder from
 * taking the request keeps it from counting. */
static void test_under_way(void)
{
	const uint32_t access = IB_QP_STATE | IB_QP_ACCESS_FLAGS;
	const struct qp_attr more = {.state = IB_QPS_RTS, .access = DEVICE_ALL_ACCESS},
			     less = {.state = IB_QPS_RTS, .access = IB_ACCESS_REMOTE_WRITE};
	bool open;

	CHECK(counts_after(IB_QP_STATE, (struct qp_attr){.state = IB_QPS_RTS}, &open) && open);
	CHECK(counts_after(access, more, &open) && open);
	CHECK(counts_after(IB_QP_STATE, (struct qp_attr){.state = IB_QPS_SQD}, &open) && open);
	CHECK(counts_after(access, less, &open) && open);
	CHECK(counts_after(access, (struct qp_attr){.state = IB_QPS_RTS}, &open) && open);
	CHECK(!counts_after(IB_QP_STATE, (struct qp_attr){.state = IB_QPS_ERR}, &open) && !open);
	CHECK(!counts_after(IB_QP_STATE, (struct qp_attr){.state = IB_QPS_RESET}, &open) && !open);
	CHECK(!counts_after(0, (struct qp_attr){.state = IB_QPS_ERR}, &open) && !open);
}

static void stray(struct fabric *f, int32_t ahead)
{
	struct qp *to = f->to->qp.qp;
	const struct path path = {.src_port = to->path.dst_port, .dst_port = to->path.src_port};
	const struct pkt pkt = {
		.opcode = BTH_RC | BTH_WRITE_ONLY,
		.psn = psn_add(f->from.qp->req.psn, (uint32_t)ahead),
		.npkts = 1,
		.sqpn = qp_number(f->from.qp),
		.dqpn = qp_number(to),
		.pkey = to->pkey,
		.path = &path,
		.ack_req = true,
	};

	responder_receive(to, &pkt);
}

/* A packet that the target does not execute, of an earlier connection say, does not make it execute
 * twice what the peer has under way. */
static void test_stray(void)
{
	static const struct message_sizes one = {
		.kind = MESSAGE_WRITE, .messages = 1, .packets = 1, .payload = 8};

	for (int ahead = -2; ahead <= 3; ahead++) {
		struct fabric *f = fabric_up();
		struct qp *from = f->from.qp;
		struct bypass_peer r;

		if (ahead == 0) /* it is executed, and the peer hears so */
			goto next;
		rcu_enter();
		CHECK(bypass_peer_enter(from, IB_ACCESS_REMOTE_WRITE, &r) && r.remote);
		stray(f, ahead);
		stray(f, ahead);
		CHECK(bypass_peer_leave(from, &r, &one));
		rcu_leave();
		from->req.psn = psn_add(from->req.psn, 1);
		atomic_store(&from->comp.acked_psn, from->req.psn);
		progress(f);
		post(f, WQE_OP_RDMA_WRITE, 0, 100);
		sent(f, CQE_OP_REQ);
		CHECK(!memcmp(f->to->data, f->source, 100));
	next:
		fabric_down(f);
	}
}

/* The right goes between the look at the responder and the access: nothing is accessed, and packets
 * hear why. */
static void test_right_goes(void)
{
	const struct qp_attr less = {.state = IB_QPS_RTS, .access = IB_ACCESS_REMOTE_READ};
	struct fabric *f = fabric_up();
	struct run local = {f->source, 64};
	const struct remote_range range = {
		.rkey = f->target_key, .va = (uintptr_t)f->to->data, .len = 64};
	struct remote_move m = {.right = IB_ACCESS_REMOTE_WRITE,
				.ranges = &range,
				.n = 1,
				.local = &local,
				.nlocal = 1};
	struct bypass_peer r;

	rcu_enter();
	CHECK(bypass_peer_enter(f->from.qp, IB_ACCESS_REMOTE_WRITE, &r) && r.remote);
	modify(&f->to->qp, IB_QP_STATE | IB_QP_ACCESS_FLAGS, less);
	remote_move(&r, &m);
	CHECK(!m.done && !f->to->data[1] && !bypass_peer_leave(f->from.qp, &r, NULL));
	rcu_leave();
	post(f, WQE_OP_RDMA_WRITE, 0, 64);
	progress(f);
	sent(f, CQE_OP_REQ_ERR);
	fabric_down(f);
}

/* A request that comes by packets, and one that comes again, leave the word as open as it was. */
static void test_packets_between(void)
{
	struct fabric *f = fabric_up();
	uint64_t before = qp_word_load(&block_of(f)->word), now;
	struct tap tap = {.packet = ignore_packet};

	CHECK(qp_word_is_open(before));
	wire_tap_attach(f->a.device.host, &tap);
	post(f, WQE_OP_RDMA_WRITE, 0, 100);
	progress(f);
	sent(f, CQE_OP_REQ);
	now = qp_word_load(&block_of(f)->word);
	CHECK(now == qp_word_with(before, qp_word_epsn(before) + 1, qp_word_msn(before) + 1));
	wire_tap_detach(f->a.device.host, &tap);
	post(f, WQE_OP_RDMA_WRITE, 0, 100);
	sent(f, CQE_OP_REQ);
	CHECK(qp_word_msn(qp_word_load(&block_of(f)->word)) == 2);
	fabric_down(f);
}

/* In error the target takes nothing any more. */
static void test_error(void)
{
	struct fabric *f = fabric_up();
	struct qp_attr attr = {.state = IB_QPS_ERR};

	CHECK(!qp_modify(f->to->qp.qp, &attr, IB_QP_STATE));
	post(f, WQE_OP_RDMA_WRITE, 0, 8);
	progress(f);
	CHECK(!device_cq_poll(&f->from.cq) && !f->to->data[1]);
	fabric_down(f);
}

/* A thread of a peer that keeps a slot of b, and runs. */
static pid_t slot_keeper(struct fabric *f)
{
	struct access_table *table = &wire_expose(f->b.device.wire[0])->mem->access;
	struct access *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	_Atomic(uint32_t) *claimed = (_Atomic(uint32_t) *)(void *)shared;
	pid_t pid;

	CHECK(shared != MAP_FAILED);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		struct access a;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		access_fork_child();
		CHECK(access_claim(table, &a));
		atomic_store(claimed, 1);
		for (;;)
			;
	}
	for (int ms = 0; !atomic_load(claimed); ms++) {
		CHECK(ms < 60000);
		usleep(1000);
	}
	munmap(shared, sizeof(*shared));
	return pid;
}

/* The target fails by itself.  Its program hears of that when peers have left its memory; the
 * thread that would tell it does other things meanwhile. */
static void test_error_waits(void)
{
	struct fabric *f = fabric_up();
	const struct cqe64 *failed = NULL;
	uint64_t never = UINT64_MAX;
	pid_t keeper = slot_keeper(f);

	device_recv(&f->to->qp, f->to->data, sizeof(f->to->data), f->target_key);
	f->target_key++;
	post(f, WQE_OP_RDMA_WRITE, 0, 8);
	for (int i = 0; !failed; i++) {
		CHECK(i < 100000);
		(void)adapter_progress(f->b.device.adapter[0], &never);
		(void)wire_process_progress(f->b.device.host);
		(void)adapter_progress(f->a.device.adapter[0], &never);
		(void)wire_process_progress(f->a.device.host);
		failed = device_cq_poll(&f->from.cq);
	}
	CHECK(failed->op_own >> 4 == CQE_OP_REQ_ERR);
	(void)adapter_progress(f->b.device.adapter[0], &never);
	CHECK(!device_cq_poll(&f->to->qp.cq));
	CHECK(!kill(keeper, SIGKILL) && waitpid(keeper, NULL, 0) == keeper);
	progress(f);
	(void)received(f, CQE_OP_RESP_ERR, 0);
	fabric_down(f);
}

struct watcher {
	struct tap tap;
	unsigned packets;
};

static void packet(struct tap *t, enum tap_point at, uint32_t port_row, const struct pkt *p)
{
	struct watcher *w = container_of(t, struct watcher, tap);

	(void)at;
	(void)port_row;
	if (pkt_props(p)->write) {
		CHECK(p->npkts == 1 && psn_diff(p->psn, 0xfffff0) == 1 + (int32_t)w->packets);
		w->packets++;
	}
}

/* While either of the two processes is observed, nothing goes past who looks. */
static void test_observed(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct fabric *f = fabric_up();
		struct wire_process *host = i ? f->b.device.host : f->a.device.host;
		struct watcher w = {.tap.packet = packet};

		post(f, WQE_OP_RDMA_WRITE, 0, 8);
		sent(f, CQE_OP_REQ);
		wire_tap_attach(host, &w.tap);
		post(f, WQE_OP_RDMA_WRITE, 0, 3500);
		CHECK(!device_cq_poll(&f->from.cq));
		progress(f);
		sent(f, CQE_OP_REQ);
		CHECK(w.packets == 4);
		wire_tap_detach(host, &w.tap);
		post(f, WQE_OP_RDMA_WRITE, 0, 8);
		sent(f, CQE_OP_REQ);
		CHECK(w.packets == 4);
		fabric_down(f);
	}
}

/* ---- memory that ends ---- */

/* More requests than one call takes; only the last is signaled. */
static void test_list(void)
{
	struct fabric *f = fabric_up();

	for (unsigned i = 0; i < WAY_REQUESTS + 5; i++) {
		struct device_wqe w;

		device_wqe_begin(&f->from, &w, WQE_OP_RDMA_WRITE,
				 i == WAY_REQUESTS + 4 ? WQE_CTRL_CE_ALWAYS : 0, 0);
		device_wqe_raddr(&w, (uintptr_t)f->to->data + 32 * i, f->target_key);
		device_wqe_data(&w, f->source + 32 * i, 1 + i, f->source_key);
		device_wqe_put(&w);
	}
	device_ring(&f->from);
	sent(f, CQE_OP_REQ);
	for (unsigned i = 0; i < WAY_REQUESTS + 5; i++)
		CHECK(!memcmp(f->to->data + 32 * i, f->source + 32 * i, 1 + i) &&
		      !f->to->data[32 * i + 1 + i]);
	CHECK(qp_word_msn(qp_word_load(&block_of(f)->word)) == WAY_REQUESTS + 5);
	fabric_down(f);
}

/* A deep queue of requests of this length to that key's memory. */
static void post_deep(struct fabric *f, uint8_t opcode, uint32_t key, uint64_t va, uint32_t len)
{
	for (unsigned i = 0; i < DEEP; i++) {
		struct device_wqe w;

		device_wqe_begin(&f->from, &w, opcode, i == DEEP - 1 ? WQE_CTRL_CE_ALWAYS : 0, 0);
		device_wqe_raddr(&w, va, key);
		device_wqe_data(&w, f->source, len, f->source_key);
		device_wqe_put(&w);
	}
	device_ring(&f->from);
}

/* A file of the target's that holds its data at an offset. */
struct late {
	struct hidden file;
	uint8_t *data; /* as the target has mapped it */
	struct segment_ref ref;
	struct mkey *key;
	uint32_t number;
};

static void late_up(struct fabric *f, struct late *l, struct hidden file,
		    const struct segment_ref *row, uint64_t offset)
{
	struct key_place place = {.way = KEY_MAPPED, .offset = offset};

	l->data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, (off_t)offset);
	CHECK(l->data != MAP_FAILED);
	if (row)
		l->ref = *row;
	else
		CHECK(!segment_table_add(&wire_expose(f->b.device.wire[0])->segments, file,
					 offset + 4096, &l->ref));
	place.segment = l->ref;
	l->number = device_mr(&f->b.device, 0, f->to->qp.pdn, l->data, 4096, RIGHTS, &l->key);
	mkey_expose(f->b.device.adapter[0], l->key, &place);
}

static void late_down(struct fabric *f, struct late *l)
{
	mkey_destroy(f->b.device.adapter[0], l->key);
	munmap(l->data, 4096);
}

/* All of the queue is executed by the initiator alone, from its first request on. */
static void deep_alone(struct fabric *f, const struct late *l)
{
	static const uint32_t len[] = {100, 2500};

	for (unsigned i = 0; i < array_size(len); i++) {
		uint32_t before = qp_word_msn(qp_word_load(&block_of(f)->word));

		memset(l->data, 0, 4096);
		post_deep(f, WQE_OP_RDMA_WRITE, l->number, (uintptr_t)l->data, len[i]);
		sent(f, CQE_OP_REQ);
		CHECK(!memcmp(l->data, f->source, len[i]) && !l->data[len[i]]);
		CHECK(qp_word_msn(qp_word_load(&block_of(f)->word)) == before + DEEP);
	}
}

/*
 * Memory that was registered after the connection was made, in a part of the arena where nothing
 * was before, or in a file of its own: the first request already goes the right way.
 */
static void test_not_mapped_yet(void)
{
	struct fabric *f = fabric_up();
	struct expose *e = wire_expose(f->b.device.wire[0]);
	int fd = memfd_create("late", MFD_CLOEXEC);
	struct late arena, file;

	late_up(f, &arena, *expose_arena_file(e), &e->arena, 5ull << SEGMENT_CHUNK_SHIFT);
	deep_alone(f, &arena);
	late_down(f, &arena);

	CHECK(fd >= 0 && !ftruncate(fd, 8192));
	late_up(f, &file, hidden_keep(fd), NULL, 4096);
	memset(file.data, 0x5a, 4096);
	post_deep(f, WQE_OP_RDMA_READ, file.number, (uintptr_t)file.data, 2500);
	sent(f, CQE_OP_REQ);
	CHECK(f->source[0] == 0x5a && f->source[2499] == 0x5a && f->source[2500] != 0x5a);
	deep_alone(f, &file);
	late_down(f, &file);
	fabric_down(f);
}

/* A request whose local side is this list of so many places; executed by the initiator alone. */
static void listed(struct fabric *f, uint8_t opcode, uint64_t va, uint32_t key, uint32_t len)
{
	struct device_wqe w;

	device_wqe_begin(&f->from, &w, opcode, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, va, f->target_key);
	device_wqe_data(&w, NULL, len, key);
	device_wqe_end(&w);
}

/* More places than one access describes: the message is made on the way, both ways. */
static void test_many_places(void)
{
	enum { PLACES = 2 * RUNS_MAX, LEN = PLACES * 16 };
	struct fabric *f = fabric_up();
	struct umr_klm e[PLACES];
	const struct mkey_indirect_attr attr = {
		.pdn = f->from.pdn,
		.access = RIGHTS,
		.local_read = true,
		.qpn = MKEY_ANY_QPN,
		.length = LEN,
		.max_entries = PLACES,
		.entries = PLACES,
		.entry = e,
	};
	struct mkey *list;
	uint32_t key;

	/* backwards */
	for (unsigned i = 0; i < PLACES; i++) {
		const uint8_t *at = f->source + (PLACES - 1 - i) * 16;

		e[i] = (struct umr_klm){be32_of(16), be32_of(f->source_key),
					be64_of((uintptr_t)at)};
	}
	CHECK(!mkey_create_indirect(f->a.device.adapter[0], &attr, &list));
	key = mkey_key(list);
	listed(f, WQE_OP_RDMA_WRITE, (uintptr_t)f->to->data + 1, key, LEN);
	sent(f, CQE_OP_REQ);
	for (unsigned i = 0; i < PLACES; i++)
		CHECK(!memcmp(f->to->data + 1 + i * 16, f->source + (PLACES - 1 - i) * 16, 16));
	CHECK(!f->to->data[0] && !f->to->data[1 + LEN]);
	memset(f->source, 0, LEN);
	listed(f, WQE_OP_RDMA_READ, (uintptr_t)f->to->data + 1, key, LEN);
	sent(f, CQE_OP_REQ);
	for (unsigned i = 0; i < PLACES; i++)
		CHECK(!memcmp(f->to->data + 1 + i * 16, f->source + (PLACES - 1 - i) * 16, 16));
	/* what the key refuses is not begun */
	memset(f->to->data, 0, sizeof(f->to->data));
	listed(f, WQE_OP_RDMA_WRITE, (uintptr_t)f->to->data + sizeof(f->to->data) - LEN + 1, key,
	       LEN);
	CHECK(!device_cq_poll(&f->from.cq));
	progress(f);
	sent(f, CQE_OP_REQ_ERR);
	for (unsigned i = 0; i < sizeof(f->to->data); i++)
		CHECK(!f->to->data[i]);
	mkey_destroy(f->a.device.adapter[0], list);
	fabric_down(f);
}

/* A file that the initiator cannot map: packets, all the same. */
static void test_never_mapped(void)
{
	struct fabric *f = fabric_up();
	int fd = memfd_create("never", MFD_CLOEXEC);
	struct late l;

	CHECK(fd >= 0 && !ftruncate(fd, 8192));
	late_up(f, &l, hidden_keep(fd), NULL, 4096);
	atomic_store(&wire_expose(f->b.device.wire[0])->mem->segments[l.ref.row].fd, -1);
	post_deep(f, WQE_OP_RDMA_WRITE, l.number, (uintptr_t)l.data, 100);
	CHECK(!device_cq_poll(&f->from.cq));
	progress(f);
	sent(f, CQE_OP_REQ);
	CHECK(!memcmp(l.data, f->source, 100));
	late_down(f, &l);
	fabric_down(f);
}

/* What was deregistered, or modified, is found by nobody. */
static void test_key_ends(void)
{
	struct fabric *f = fabric_up();
	struct mkey_attr attr;

	CHECK(!mkey_query(f->b.device.adapter[0], f->target_key, &attr));
	attr.access = IB_ACCESS_LOCAL_WRITE;
	CHECK(!mkey_modify(f->b.device.adapter[0], f->mr[1], &attr));
	post(f, WQE_OP_RDMA_WRITE, 0, 100);
	progress(f);
	sent(f, CQE_OP_REQ_ERR);
	CHECK(!f->to->data[1]);
	fabric_down(f);
}

/* Memory that is not there: packets say so. */
static void test_memory_gone(void)
{
	struct fabric *f = fabric_up();
	uint8_t *gone =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct key_place place = {.way = KEY_KERNEL, .addr = (uintptr_t)gone};
	struct mkey *key;

	test_fault_catch();
	CHECK(gone != MAP_FAILED && !mprotect(gone + 4096, 4096, PROT_NONE));
	f->target_key = device_mr(&f->b.device, 0, f->to->qp.pdn, gone, 8192, RIGHTS, &key);
	mkey_expose(f->b.device.adapter[0], key, &place);
	for (unsigned i = 0; i < 2; i++) {
		struct device_wqe w;

		device_wqe_begin(&f->from, &w, WQE_OP_RDMA_WRITE, WQE_CTRL_CE_ALWAYS, 0);
		device_wqe_raddr(&w, (uintptr_t)gone + i * 4000, f->target_key);
		device_wqe_data(&w, f->source, 200, f->source_key);
		device_wqe_end(&w);
		if (i)
			progress(f);
		sent(f, i ? CQE_OP_REQ_ERR : CQE_OP_REQ);
	}
	CHECK(!memcmp(gone, f->source, 200));
	mkey_destroy(f->b.device.adapter[0], key);
	munmap(gone, 8192);
	fabric_down(f);
}

/* Nobody holds the word that says that the target lives. */
static void test_nobody_alive(void)
{
	struct fabric *f = fabric_up();
	bool kernel = way == KEY_KERNEL;

	life_end(f);
	post(f, WQE_OP_RDMA_WRITE, 0, 100);
	CHECK(!!device_cq_poll(&f->from.cq) == !kernel);
	if (kernel) {
		progress(f);
		sent(f, CQE_OP_REQ);
	}
	CHECK(!memcmp(f->to->data, f->source, 100));
	life_begin(f);
	fabric_down(f);
}

static void run_all(void)
{
	test_initiator_alone();
	test_counters();
	test_message_by_packets();
	test_other_port();
	test_wrong_address();
	test_port_down();
	test_other_keys();
	test_error();
	test_error_waits();
	test_under_way();
	test_stray();
	test_right_goes();
	test_packets_between();
	test_observed();
	test_list();
	test_key_ends();
	test_nobody_alive();
}

int main(void)
{
	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	way = KEY_MAPPED;
	run_all();
	test_many_places();
	test_not_mapped_yet();
	test_never_mapped();
	way = KEY_KERNEL;
	run_all();
	test_memory_gone();
	return 0;
}
