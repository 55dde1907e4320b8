// SPDX-License-Identifier: BSD-2-Clause
/* Frames in and out, and what goes wrong with them. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host.h"
#include "prm/cmd_cq_eq.h"
#include "prm/eqe.h"

#define SEND_ERROR    13u
#define RECEIVE_ERROR 14u
#define LENGTH	      0x01u
#define PROTECTION    0x04u
#define FLUSHED	      0x05u
#define ROUNDS	      (10 * DEPTH)
#define MANY	      10000u
#define TAG_BYTES     4u
#define UDP	      17u
#define UDP_BYTES     100u
#define PATIENT_S     60

static void reflect_all(struct bench *b)
{
	struct raw_peer *peer = raw_peer_make();
	struct completion c;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t bytes = 60 + i * 17 % 1400;

		raw_peer_send(peer, bytes, (uint8_t)i);
		raw_peer_expect(peer, bytes, (uint8_t)i);
		network_await(b, frames, i + 1);
		CHECK(network_get(b, last_bytes) == bytes && network_get(b, last_counter) == i &&
		      network_get(b, last_user) == USER_INDEX);
	}
	/* sends without errors complete silently */
	CHECK(!cq_look(b, &b->out, &c) && !network_get(b, errors));
	raw_peer_free(peer);
}

static void reflects(void)
{
	struct bench b;

	bench_up(&b);
	reflector_up(&b);
	reflect_all(&b);
	bench_down(&b);
}

/* As the SDK's packet processor does it, with a rule for what comes and none for what goes: frames of
 * 65 bytes come back with another last byte, fewer of them than the rings have room for. */
static void processor(void)
{
	struct raw_peer *peer;
	struct bench b;
	uint64_t ret;

	bench_up(&b);
	reflector_make(&b);
	OK(flexio_process_call(b.p, &poke, &ret, b.n + offsetof(struct network, edits), 65ul));
	OK(flexio_event_handler_run(b.eh, b.n));
	peer = raw_peer_make();
	for (unsigned i = 0; i < 20; i++) {
		raw_peer_send(peer, 65, (uint8_t)i);
		raw_peer_expect_edited(peer, 65, (uint8_t)i, EDITED);
	}
	raw_peer_send(peer, 66, 1);
	raw_peer_expect(peer, 66, 1);
	CHECK(network_get(&b, frames) == 21);
	raw_peer_free(peer);
	bench_down(&b);
}

/* Many more frames than the rings have room for. */
static void many(void)
{
	struct raw_peer *peer;
	struct bench b;

	bench_up(&b);
	reflector_up(&b);
	peer = raw_peer_make();
	for (unsigned i = 0; i < MANY; i++) {
		raw_peer_send(peer, 64, (uint8_t)i);
		raw_peer_expect(peer, 64, (uint8_t)i);
	}
	network_await(&b, frames, MANY);
	CHECK(!network_get(&b, errors));
	raw_peer_free(peer);
	bench_down(&b);
}

/* What comes between the rule and the handler's start waits for it. */
static void early(void)
{
	struct raw_peer *peer;
	struct bench b;

	bench_up(&b);
	reflector_make(&b);
	peer = raw_peer_make();
	for (unsigned i = 0; i < 5; i++)
		raw_peer_send(peer, 100, (uint8_t)i);
	CHECK(!network_get(&b, frames));
	OK(flexio_event_handler_run(b.eh, b.n));
	network_await(&b, frames, 5);
	/* the peer had room for one */
	raw_peer_expect(peer, 100, 0);
	raw_peer_send(peer, 100, 9);
	raw_peer_expect(peer, 100, 9);
	raw_peer_free(peer);
	bench_down(&b);
}

static void own_domain(void)
{
	struct ibv_pd *pd;
	struct bench b;

	bench_up(&b);
	pd = ibv_alloc_pd(b.ctx);
	CHECK(pd);
	b.pd = b.rq_attr.pd = b.sq_attr.pd = pd;
	reflector_up(&b);
	reflect_all(&b);
	rule_down(&b.rule);
	ring_down(&b, &b.in);
	ring_down(&b, &b.out);
	b.in.cq = b.out.cq = NULL;
	/* before the process goes */
	CHECK(!ibv_dealloc_pd(pd));
	bench_down(&b);
}

/* A request to the peer's address. */
static struct request request_up(struct bench *b, struct ring *r, uint32_t bytes)
{
	uint8_t frame[SLOT_BYTES];

	raw_frame(frame, DPA_MAC, PEER_MAC, bytes, 7);
	OK(flexio_host2dev_memcpy(b->p, frame, bytes, r->data));
	return (struct request){
		.sqn = r->number,
		.ring = r->ring,
		.ce = 2,
		.data = r->data,
		.bytes = bytes,
		.key = flexio_mkey_get_id(r->key),
	};
}

static void shared_queue(void)
{
	struct ring in;
	struct completion c;
	struct request r;
	struct bench b;
	unsigned sent = 0, received = 0;

	bench_up(&b);
	ring_memory(&b, &b.out, false);
	sq_up(&b, &b.out);
	ring_memory(&b, &in, false);
	OK(flexio_cq_destroy(in.cq));
	in.cq = b.out.cq;
	in.cqn = b.out.cqn;
	rq_up(&b, &in);
	rule_up(&b, &b.rule, flexio_rq_get_tir(in.rq));
	r = request_up(&b, &b.out, 100);
	requests(&b, &r, 2);
	for (unsigned i = 0; i < 4; i++) {
		cq_next(&b, &b.out, &c);
		sent += c.opcode == 0 && c.user_index == USER_INDEX + 1;
		received += c.opcode == 2 && c.user_index == USER_INDEX && c.bytes == 100;
	}
	CHECK(sent == 2 && received == 2);
	rule_down(&b.rule);
	OK(flexio_rq_destroy(in.rq));
	OK(flexio_device_mkey_destroy(in.key));
	bench_down(&b);
}

static void completions(void)
{
	struct ibv_cq *cq;
	struct completion c;
	struct mlx5dv_cq out = {0};
	struct mlx5dv_obj obj;
	struct request r;
	struct ring host;
	struct bench b;
	uint32_t pi = 0;

	bench_up(&b);
	ring_memory(&b, &b.out, false);
	sq_up(&b, &b.out);
	r = request_up(&b, &b.out, 64);
	requests(&b, &r, 5);
	for (unsigned i = 0; i < 5; i++) {
		cq_next(&b, &b.out, &c);
		CHECK(c.opcode == 0 && c.counter == i && c.qpn == b.out.number);
	}
	r.kind = REQUEST_NOP;
	requests(&b, &r, 1);
	cq_next(&b, &b.out, &c);
	CHECK(c.opcode == 0 && c.counter == 5);
	r.ce = 0;
	requests(&b, &r, 1);
	r.kind = REQUEST_SEND;
	requests(&b, &r, 3);
	CHECK(!cq_look(&b, &b.out, &c));
	pi = (uint32_t)r.pi;
	/* a CQ of the host's */
	cq = ibv_create_cq(b.ctx, 16, NULL, NULL, 0);
	CHECK(cq);
	obj = (struct mlx5dv_obj){.cq = {.in = cq, .out = &out}};
	CHECK(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ));
	ring_memory(&b, &host, false);
	b.sq_attr.wq_ring_qmem.daddr = host.ring;
	OK(flexio_sq_create(b.p, NULL, out.cqn, &b.sq_attr, &host.sq));
	host.number = flexio_sq_get_wq_num(host.sq);
	CHECK(host.number != b.out.number);
	r = request_up(&b, &host, 64);
	requests(&b, &r, 1);
	CHECK((((struct mlx5_cqe64 *)out.buf)->op_own >> 4) == 0 &&
	      be16toh(((struct mlx5_cqe64 *)out.buf)->wqe_counter) == 0);
	ring_down(&b, &host);
	CHECK(!ibv_destroy_cq(cq) && pi == 10);
	bench_down(&b);
}

/* One bell for three times what the ring has room for, then one that comes late. */
static void outrun(void)
{
	struct completion c;
	struct request r;
	struct bench b;

	bench_up(&b);
	ring_memory(&b, &b.out, false);
	sq_up(&b, &b.out);
	r = request_up(&b, &b.out, 64);
	r.ce = 0;
	requests(&b, &r, 3 * DEPTH);
	r.ce = 2;
	requests(&b, &r, 1);
	cq_next(&b, &b.out, &c);
	CHECK(c.opcode == 0 && c.counter == 3 * DEPTH);
	r.pi -= 2;
	requests(&b, &r, 0);
	r.pi += 2;
	requests(&b, &r, 1);
	cq_next(&b, &b.out, &c);
	CHECK(c.opcode == 0 && c.counter == 3 * DEPTH + 1);
	CHECK(!cq_look(&b, &b.out, &c));
	bench_down(&b);
}

static void send_error(void)
{
	struct completion c;
	struct request r;
	struct bench b;

	bench_up(&b);
	ring_memory(&b, &b.out, false);
	sq_up(&b, &b.out);
	r = request_up(&b, &b.out, 64);
	r.key ^= 0xff00;
	r.ce = 0;
	requests(&b, &r, 2);
	cq_next(&b, &b.out, &c);
	CHECK(c.opcode == SEND_ERROR && c.syndrome == PROTECTION && c.counter == 0);
	cq_next(&b, &b.out, &c);
	CHECK(c.opcode == SEND_ERROR && c.syndrome == FLUSHED && c.counter == 1);
	bench_down(&b);
}

/* An event queue that takes events of failing queues of that context; the first entry is that of this queue. */
static struct mlx5dv_devx_eq *failures_of(struct bench *b, struct mlx5dv_devx_uar *uar)
{
	uint8_t in[CREATE_EQ_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};
	struct mlx5dv_devx_eq *eq;

	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_EQ);
	prm_set(in + CREATE_EQ_CONTEXT, EQC_LOG_SIZE, 3);
	prm_set(in + CREATE_EQ_CONTEXT, EQC_UAR_PAGE, uar->page_id);
	prm_set(in + CREATE_EQ_EVENTS, PRM_FIELD(0, 64),
		1ull << EQE_WQ_CATAS_ERROR | 1ull << EQE_WQ_INVAL_REQ_ERROR |
			1ull << EQE_WQ_ACCESS_ERROR);
	eq = mlx5dv_devx_create_eq(b->ctx, in, sizeof(in), out, sizeof(out));
	CHECK(eq);
	return eq;
}

/* Its one event is that the queue of this number has failed. */
static void has_failed(const struct mlx5dv_devx_eq *eq, uint32_t number)
{
	const uint8_t *eqe = eq->vaddr;
	time_t end = time(NULL) + PATIENT_S;

	while (__atomic_load_n(eqe + EQE_BYTES - 1, __ATOMIC_ACQUIRE) & 1)
		CHECK(time(NULL) < end);
	CHECK(prm_get(eqe, EQE_TYPE) == EQE_WQ_CATAS_ERROR);
	CHECK(prm_get(eqe, EQE_QUEUE) == EQE_QUEUE_RQ && prm_get(eqe, EQE_QUEUE_NR) == number);
	CHECK(eqe[2 * EQE_BYTES - 1] & 1);
}

/* A receive queue whose receives have another length or key, and one frame to it. */
static void receive_one(uint32_t bytes, uint32_t wrong, uint32_t frame, uint32_t syndrome)
{
	struct mlx5_wqe_data_seg wqe;
	struct raw_peer *peer = raw_peer_make();
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_eq *eq;
	struct completion c;
	struct bench b;

	bench_up(&b);
	uar = mlx5dv_devx_alloc_uar(b.ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	CHECK(uar);
	eq = failures_of(&b, uar);
	ring_memory(&b, &b.in, false);
	rq_up(&b, &b.in);
	mlx5dv_set_data_seg(&wqe, bytes, flexio_mkey_get_id(b.in.key) ^ wrong, b.in.data);
	OK(flexio_host2dev_memcpy(b.p, &wqe, sizeof(wqe), b.in.ring));
	rule_up(&b, &b.rule, flexio_rq_get_tir(b.in.rq));
	raw_peer_send(peer, frame, 1);
	cq_next(&b, &b.in, &c);
	CHECK(c.opcode == RECEIVE_ERROR && c.syndrome == syndrome);
	for (unsigned i = 1; i < DEPTH; i++) {
		cq_next(&b, &b.in, &c);
		CHECK(c.opcode == RECEIVE_ERROR && c.syndrome == FLUSHED);
	}
	raw_peer_send(peer, frame, 1);
	CHECK(!cq_look(&b, &b.in, &c));
	has_failed(eq, b.in.number);
	raw_peer_free(peer);
	CHECK(!mlx5dv_devx_destroy_eq(eq));
	mlx5dv_devx_free_uar(uar);
	bench_down(&b);
}

static void receive_errors(void)
{
	receive_one(100, 0, 101, LENGTH);
	receive_one(100, 0xff00, 100, PROTECTION);
}

/* Frames of this port that found no receive. */
static unsigned long drops_counted(const struct bench *b)
{
	char path[128];
	unsigned long count;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/out_of_buffer",
		 ibv_get_device_name(b->ctx->device));
	f = fopen(path, "r");
	CHECK(f && fscanf(f, "%lu", &count) == 1);
	fclose(f);
	return count;
}

static void no_receive(void)
{
	struct raw_peer *peer = raw_peer_make();
	unsigned long drops;
	uint32_t record[2] = {htobe32(DEPTH + 1), 0};
	struct completion c;
	struct bench b;

	bench_up(&b);
	ring_memory(&b, &b.in, false);
	rq_up(&b, &b.in);
	rule_up(&b, &b.rule, flexio_rq_get_tir(b.in.rq));
	drops = drops_counted(&b);
	for (unsigned i = 0; i < DEPTH + 3; i++)
		raw_peer_send(peer, 64, (uint8_t)i);
	CHECK_SAY(drops_counted(&b) == drops + 3, "%lu drops", drops_counted(&b) - drops);
	for (unsigned i = 0; i < DEPTH; i++)
		cq_next(&b, &b.in, &c);
	CHECK(!cq_look(&b, &b.in, &c));
	/* the next frame that finds one */
	OK(flexio_host2dev_memcpy(b.p, record, sizeof(record), b.in.record));
	raw_peer_send(peer, 99, 50);
	cq_next(&b, &b.in, &c);
	CHECK(c.opcode == 2 && c.bytes == 99 && c.counter == DEPTH);
	raw_peer_free(peer);
	bench_down(&b);
}

static void host_memory(void)
{
	struct raw_peer *peer = raw_peer_make();
	static uint8_t memory[SLOT_BYTES], frame[SLOT_BYTES];
	struct mlx5_wqe_data_seg wqe;
	struct completion c;
	struct ibv_mr *mr;
	struct bench b;

	bench_up(&b);
	mr = ibv_reg_mr(b.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	ring_memory(&b, &b.in, false);
	rq_up(&b, &b.in);
	mlx5dv_set_data_seg(&wqe, sizeof(memory), mr->lkey, (uintptr_t)memory);
	OK(flexio_host2dev_memcpy(b.p, &wqe, sizeof(wqe), b.in.ring));
	rule_up(&b, &b.rule, flexio_rq_get_tir(b.in.rq));
	raw_peer_send(peer, 333, 9);
	cq_next(&b, &b.in, &c);
	raw_frame(frame, DPA_MAC, PEER_MAC, 333, 9);
	CHECK(c.bytes == 333 && c.user_index == USER_INDEX && !memcmp(memory, frame, 333));
	raw_peer_free(peer);
	rule_down(&b.rule);
	ring_down(&b, &b.in);
	b.in.cq = NULL;
	CHECK(!ibv_dereg_mr(mr));
	bench_down(&b);
}

/* The sum of RFC 1071, over bytes and what else is in it; the bytes are even. */
static uint32_t sum_of(const uint8_t *at, unsigned bytes, uint32_t sum)
{
	for (unsigned i = 0; i < bytes; i += 2)
		sum += (uint32_t)at[i] << 8 | at[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* UDP over IPv4, with checksums that are right or one too large. */
static void udp_frame(uint8_t *frame, bool l3_wrong, bool l4_wrong)
{
	uint8_t *ip = frame + 14, *udp = ip + 20;

	raw_frame(frame, DPA_MAC, PEER_MAC, UDP_BYTES, UDP);
	memset(ip + 6, 0, 2); /* no fragment */
	put16(ip + 10, 0);
	put16(ip + 10, (~sum_of(ip, 20, 0) + l3_wrong) & 0xffff);
	put16(udp + 4, UDP_BYTES - 34);
	put16(udp + 6, 0);
	/* with the addresses and the length once more */
	put16(udp + 6,
	      (~sum_of(ip + 12, UDP_BYTES - 26, UDP + UDP_BYTES - 34) + l4_wrong) & 0xffff);
}

/* Bits for the layers 2 to 4. */
static void sound(void)
{
	struct raw_peer *peer = raw_peer_make();
	uint8_t frame[UDP_BYTES];
	struct bench b;

	bench_up(&b);
	reflector_up(&b);
	for (unsigned wrong = 0; wrong < 5; wrong++) {
		bool no_ip = wrong == 4;

		udp_frame(frame, wrong & 1, wrong & 2);
		if (no_ip)
			put16(frame + 12, 0x88b5);
		raw_peer_send_frame(peer, frame, UDP_BYTES);
		network_await(&b, frames, wrong + 1);
		CHECK_SAY(network_get(&b, last_sound) == (no_ip ? 1 : 7 & ~(wrong << 1)),
			  "%llu with %u wrong", (unsigned long long)network_get(&b, last_sound),
			  wrong);
	}
	raw_peer_free(peer);
	bench_down(&b);
}

/* The whole frame comes, without anything taken out of it. */
static void vlan_tag(void)
{
	struct raw_peer *peer = raw_peer_make();
	uint8_t frame[SLOT_BYTES];
	struct completion c;
	struct bench b;

	bench_up(&b);
	ring_memory(&b, &b.in, false);
	rq_up(&b, &b.in);
	rule_up(&b, &b.rule, flexio_rq_get_tir(b.in.rq));
	raw_frame(frame, DPA_MAC, PEER_MAC, 333, 9);
	memmove(frame + 12 + TAG_BYTES, frame + 12, 333 - 12);
	memcpy(frame + 12, "\x81\x00\x61\x23", TAG_BYTES);
	raw_peer_send_frame(peer, frame, 333 + TAG_BYTES);
	cq_next(&b, &b.in, &c);
	CHECK_SAY(c.bytes == 333 + TAG_BYTES, "%u bytes", c.bytes);
	for (unsigned at = 0; at < c.bytes / 8 * 8; at += 8) {
		uint64_t word = call1(b.p, &peek, b.in.data + at);

		CHECK_SAY(!memcmp(&word, frame + at, 8), "bytes from %u on", at);
	}
	raw_peer_free(peer);
	bench_down(&b);
}

static void error_state(void)
{
	struct raw_peer *peer = raw_peer_make();
	struct completion c;
	struct bench b;

	bench_up(&b);
	ring_memory(&b, &b.in, false);
	rq_up(&b, &b.in);
	rule_up(&b, &b.rule, flexio_rq_get_tir(b.in.rq));
	OK(flexio_rq_set_err_state(b.in.rq));
	for (unsigned i = 0; i < DEPTH; i++) {
		cq_next(&b, &b.in, &c);
		CHECK(c.opcode == RECEIVE_ERROR && c.syndrome == FLUSHED);
	}
	raw_peer_send(peer, 64, 1);
	CHECK(!cq_look(&b, &b.in, &c));
	OK(flexio_rq_set_err_state(b.in.rq));
	raw_peer_free(peer);
	bench_down(&b);
}

/* All queues are of another device than the process, and so are the bells. */
static void on_other_device(bool across)
{
	struct flexio_uar *uar;
	struct bench b;

	bench_up_on(&b, IBV_LINK_LAYER_INFINIBAND);
	b.other = ethernet_open();
	b.across = across;
	b.pd = ibv_alloc_pd(b.other);
	CHECK(b.pd);
	OK(flexio_uar_extend(flexio_process_get_uar(b.p), b.other, &uar));
	b.sq_attr.uar_id = flexio_uar_get_id(uar);
	b.rq_attr.pd = b.sq_attr.pd = b.pd;
	b.device = flexio_uar_get_extended_id(uar);
	reflector_up(&b);
	reflect_all(&b);
	rule_down(&b.rule);
	ring_down(&b, &b.in);
	ring_down(&b, &b.out);
	b.in.cq = b.out.cq = NULL;
	OK(flexio_uar_destroy(uar));
	CHECK(!ibv_dealloc_pd(b.pd) && !ibv_close_device(b.other));
	bench_down(&b);
}

static void other_device(void)
{
	on_other_device(false);
	on_other_device(true);
}

const struct host_case frame_cases[] = {
	{"reflects", reflects},
	{"processor", processor},
	{"many", many},
	{"early", early},
	{"shared_queue", shared_queue},
	{"completions", completions},
	{"outrun", outrun},
	{"send_error", send_error},
	{"receive_errors", receive_errors},
	{"no_receive", no_receive},
	{"host_memory", host_memory},
	{"vlan_tag", vlan_tag},
	{"sound", sound},
	{"error_state", error_state},
	{"own_domain", own_domain},
	{"other_device", other_device},
	{NULL, NULL},
};
