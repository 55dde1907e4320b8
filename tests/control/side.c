// SPDX-License-Identifier: BSD-2-Clause
/* The data of a connection; see side.h. */
#include "side.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 8u

/* How a message begins; the rest of it follows from the number. */
struct head {
	uint64_t number;
	uint32_t bytes;
};

_Atomic(uint64_t) side_progress;

uint32_t side_random(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33) % below;
}

static uint8_t *slot_at(const struct control_side *s, unsigned n)
{
	return s->mem + (size_t)n * SLOT_BYTES;
}

/* ---- set up and down ---- */

static void make_queues(struct control_side *s)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = SLOTS, .max_sge = 1}};
	struct ibv_qp_init_attr qp = {
		.cap = {.max_send_wr = SLOTS,
			.max_recv_wr = SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = s->kind->type,
	};

	for (unsigned i = 0; i < 2; i++) {
		if (s->kind->events && !(s->channel[i] = ibv_create_comp_channel(s->port.ctx)))
			device_die("no completion channel: %m");
		s->cq[i] = ibv_create_cq(s->port.ctx, SLOTS, NULL, s->channel[i], 0);
		if (!s->cq[i])
			device_die("no CQ: %m");
	}
	if (s->kind->srq && !(s->srq = ibv_create_srq(s->pd, &srq)))
		device_die("no SRQ: %m");
	qp.send_cq = s->cq[0];
	qp.recv_cq = s->cq[1];
	qp.srq = s->srq;
	s->qp = ibv_create_qp(s->pd, &qp);
	if (!s->qp)
		device_die("no QP: %m");
}

void side_open(struct control_side *s, const char *device)
{
	device_port_open(&s->port, device, -1);
	s->mem = aligned_alloc(4096, (size_t)SIDE_ALL * SLOT_BYTES);
	s->pd = ibv_alloc_pd(s->port.ctx);
	if (!s->mem || !s->pd)
		device_die("no memory or PD: %m");
	memset(s->mem, 0, (size_t)SIDE_ALL * SLOT_BYTES);
	s->mr = ibv_reg_mr(s->pd, s->mem, (size_t)SIDE_ALL * SLOT_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	if (!s->mr)
		device_die("no MR: %m");
	make_queues(s);
	device_qp_init(s->qp, &device_default_connection);
}

static void post_receive(struct control_side *s, unsigned n)
{
	struct ibv_sge sge = {(uintptr_t)slot_at(s, SIDE_RECV + n), SLOT_BYTES, s->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1};
	int err = s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) : ibv_post_recv(s->qp, &wr, &bad);

	if (err)
		device_die("posting a receive: %s", strerror(err));
}

static void swap_hello(struct control_side *s)
{
	struct side_hello mine = {device_address(&s->port, s->qp, 100), (uintptr_t)s->mem,
				  s->mr->rkey};

	if (write(s->sock, &mine, sizeof(mine)) != sizeof(mine) ||
	    read(s->sock, &s->peer, sizeof(s->peer)) != sizeof(s->peer))
		device_die("the other side has gone");
}

void side_connect(struct control_side *s)
{
	struct ibv_ah_attr ah;

	swap_hello(s);
	device_qp_connect(&s->port, s->qp, &device_default_connection, &s->peer.address, 100);
	ah = device_ah_attr(&s->port, &s->peer.address);
	if (s->kind->type == IBV_QPT_UD && !(s->ah = ibv_create_ah(s->pd, &ah)))
		device_die("no AH: %m");
	for (unsigned i = 0; i < SLOTS; i++)
		post_receive(s, i);
	/* Both stand before either sends. */
	swap_hello(s);
}

void side_close(struct control_side *s)
{
	if ((s->ah && ibv_destroy_ah(s->ah)) || ibv_destroy_qp(s->qp) ||
	    (s->srq && ibv_destroy_srq(s->srq)))
		device_die("a queue cannot be destroyed: %m");
	for (unsigned i = 0; i < 2; i++)
		if (ibv_destroy_cq(s->cq[i]) ||
		    (s->channel[i] && ibv_destroy_comp_channel(s->channel[i])))
			device_die("a CQ or channel cannot be destroyed: %m");
	if (ibv_dereg_mr(s->mr) || ibv_dealloc_pd(s->pd))
		device_die("MR or PD cannot be destroyed: %m");
	device_port_close(&s->port);
	free(s->mem);
}

/* ---- completions ---- */

static bool poll_completion(struct control_side *s, unsigned which, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(s->cq[which], 1, wc);

	if (n < 0)
		device_die("ibv_poll_cq: %d", n);
	if (n && wc->status != IBV_WC_SUCCESS)
		device_die("a %s failed: %s", which ? "receive" : "send",
			   ibv_wc_status_str(wc->status));
	if (n)
		atomic_fetch_add(&side_progress, 1);
	return n;
}

/* Only to look at stop now and then. */
#define EVENT_PATIENCE_MS 100

/* Nothing but the event ends the wait, lest a lost one go unnoticed.  False: stop says so. */
static bool wait_for_event(struct control_side *s, unsigned which,
			   bool (*stop)(struct control_side *))
{
	struct pollfd ready = {.fd = s->channel[which]->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	while (poll(&ready, 1, EVENT_PATIENCE_MS) != 1)
		if (stop(s))
			return false;
	if (ibv_get_cq_event(s->channel[which], &cq, &context))
		device_die("ibv_get_cq_event: %m");
	ibv_ack_cq_events(cq, 1);
	return true;
}

bool side_completion(struct control_side *s, unsigned which, struct ibv_wc *wc,
		     bool (*stop)(struct control_side *))
{
	for (;;) {
		if (poll_completion(s, which, wc))
			return true;
		if (stop(s))
			return false;
		if (!s->kind->events) {
			sched_yield();
			continue;
		}
		if (ibv_req_notify_cq(s->cq[which], 0))
			device_die("ibv_req_notify_cq: %m");
		if (poll_completion(s, which, wc))
			return true;
		if (!wait_for_event(s, which, stop))
			return false;
	}
}

static bool never_stops(struct control_side *s)
{
	(void)s;
	return false;
}

/* ---- sending ---- */

static uint32_t bytes_of(const struct control_side *s, uint64_t number)
{
	uint64_t state = number * 77 + 5;
	uint32_t most = s->kind->type == IBV_QPT_UD ? 1024 : SLOT_BYTES;

	return (uint32_t)sizeof(struct head) + side_random(&state, most - sizeof(struct head));
}

static void fill_bytes(uint8_t *at, uint64_t number, uint32_t bytes)
{
	const struct head h = {number, bytes};

	for (uint32_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(number * 31 + i * 7);
	memcpy(at, &h, sizeof(h));
}

static void post_request(struct control_side *s, struct ibv_send_wr *wr, unsigned from,
			 uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)slot_at(s, from), bytes, s->mr->lkey};
	struct ibv_send_wr *bad;
	int err;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_SIGNALED;
	if (s->ah) {
		wr->wr.ud.ah = s->ah;
		wr->wr.ud.remote_qpn = s->peer.address.qpn;
		wr->wr.ud.remote_qkey = DEVICE_QKEY;
	}
	err = ibv_post_send(s->qp, wr, &bad);
	if (err)
		device_die("ibv_post_send: %s", strerror(err));
}

static void expect_sent(struct control_side *s, uint64_t id)
{
	struct ibv_wc wc;

	(void)side_completion(s, 0, &wc, never_stops);
	if (wc.wr_id != id)
		device_die("send %llu completed, expected %llu", (unsigned long long)wc.wr_id,
			   (unsigned long long)id);
}

static void send_batch(struct control_side *s, uint64_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t number = first + i;
		unsigned from = SIDE_SEND + (unsigned)(number % SLOTS);
		uint32_t bytes = bytes_of(s, number);
		struct ibv_send_wr wr = {.wr_id = number, .opcode = IBV_WR_SEND};

		fill_bytes(slot_at(s, from), number, bytes);
		post_request(s, &wr, from, bytes);
	}
	for (unsigned i = 0; i < n; i++)
		expect_sent(s, first + i);
}

/* What was written comes back. */
static void write_and_read(struct control_side *s, uint64_t number)
{
	uint64_t remote = s->peer.addr + (uint64_t)SIDE_WRITTEN * SLOT_BYTES;
	struct ibv_send_wr write = {
		.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {remote, s->peer.rkey}};
	struct ibv_send_wr read = {
		.wr_id = 2, .opcode = IBV_WR_RDMA_READ, .wr.rdma = {remote, s->peer.rkey}};

	fill_bytes(slot_at(s, SIDE_SEND), number, SLOT_BYTES);
	post_request(s, &write, SIDE_SEND, SLOT_BYTES);
	post_request(s, &read, SIDE_READ, SLOT_BYTES);
	expect_sent(s, 1);
	expect_sent(s, 2);
	if (memcmp(slot_at(s, SIDE_SEND), slot_at(s, SIDE_READ), SLOT_BYTES) != 0)
		device_die("what was read back differs from what was written");
}

void *side_send(void *side)
{
	struct control_side *s = side;
	uint64_t random = s->seed * 2 + 1;

	while (s->sent < s->messages || s->done < s->controls) {
		unsigned n = 1 + side_random(&random, BATCH);

		send_batch(s, s->sent, n);
		s->sent += n;
		if (s->kind->type == IBV_QPT_RC && !side_random(&random, 4))
			write_and_read(s, s->sent);
	}
	atomic_store(&s->all_sent, true);
	return NULL;
}

/* ---- receiving ---- */

static bool all_received(struct control_side *s)
{
	uint64_t expected = atomic_load(&s->expected);

	/* Unreliable ones may have been lost. */
	return expected != UINT64_MAX &&
	       (s->kind->type != IBV_QPT_RC || atomic_load(&s->received) >= expected);
}

static void check_message(struct control_side *s, const struct ibv_wc *wc, uint64_t *next)
{
	uint32_t skip = s->kind->type == IBV_QPT_UD ? UD_GRH : 0;
	const uint8_t *at = slot_at(s, SIDE_RECV + (unsigned)wc->wr_id) + skip;
	uint8_t want[SLOT_BYTES];
	struct head h;

	memcpy(&h, at, sizeof(h));
	if (h.number < *next || (s->kind->type == IBV_QPT_RC && h.number != *next))
		device_die("message %llu, expected %llu", (unsigned long long)h.number,
			   (unsigned long long)*next);
	if (h.bytes != bytes_of(s, h.number) || wc->byte_len != h.bytes + skip)
		device_die("message %llu has the wrong length", (unsigned long long)h.number);
	fill_bytes(want, h.number, h.bytes);
	if (memcmp(at, want, h.bytes) != 0)
		device_die("message %llu has wrong bytes", (unsigned long long)h.number);
	*next = h.number + 1;
}

void *side_receive(void *side)
{
	struct control_side *s = side;
	uint64_t next = 0;
	struct ibv_wc wc;

	while (side_completion(s, 1, &wc, all_received)) {
		check_message(s, &wc, &next);
		post_receive(s, (unsigned)wc.wr_id);
		atomic_fetch_add(&s->received, 1);
	}
	return NULL;
}
