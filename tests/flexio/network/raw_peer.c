// SPDX-License-Identifier: BSD-2-Clause
/* See host.h.  Its own context of the same device: to the device it is another program. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host.h"
#include "mac_rule.h"

#define PATIENT_S 60
#define BYTES	  4096u
/* Of a flow: frames under way, places, and seconds until a frame is lost. */
#define WINDOW	 4u
#define RECEIVES 8u
#define PLACE	 256u
#define FRAME	 64u
#define LOST_S	 0.01

struct raw_peer {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_flow *flow;
	bool answered;
	uint8_t memory[2 * BYTES]; /* to send, to receive */
};

static void peer_rule(struct raw_peer *p)
{
	p->flow = mac_rule(p->qp, (const uint8_t *)PEER_MAC);
	CHECK(p->flow);
}

static void peer_post(struct raw_peer *p)
{
	struct ibv_sge sge = {(uintptr_t)p->memory + BYTES, BYTES, p->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(p->qp, &wr, &bad));
}

struct raw_peer *raw_peer_make(void)
{
	struct raw_peer *p = calloc(1, sizeof(*p));
	struct ibv_qp_init_attr init = {.cap = {8, 8, 1, 1}, .qp_type = IBV_QPT_RAW_PACKET};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	CHECK(p);
	p->ctx = ethernet_open();
	p->pd = ibv_alloc_pd(p->ctx);
	p->cq = ibv_create_cq(p->ctx, 16, NULL, NULL, 0);
	CHECK(p->pd && p->cq);
	p->mr = ibv_reg_mr(p->pd, p->memory, sizeof(p->memory), IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = p->cq;
	p->qp = ibv_create_qp(p->pd, &init);
	CHECK(p->mr && p->qp);
	CHECK(!ibv_modify_qp(p->qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(p->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(p->qp, &attr, IBV_QP_STATE));
	peer_rule(p);
	peer_post(p);
	return p;
}

static void peer_wait(struct raw_peer *p, enum ibv_wc_opcode opcode, uint32_t *bytes)
{
	time_t end = time(NULL) + PATIENT_S;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(p->cq, 1, &wc)) && time(NULL) < end)
		;
	CHECK(n == 1);
	CHECK_SAY(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	CHECK(wc.opcode == opcode);
	*bytes = wc.byte_len;
}

void raw_frame(uint8_t *frame, const char *to, const char *from, uint32_t bytes, uint8_t kind)
{
	memset(frame, kind, bytes);
	memcpy(frame, to, 6);
	memcpy(frame + 6, from, 6);
	/* an IPv4 datagram whose length is right, with addresses of that kind */
	memcpy(frame + 12, "\x08\x00\x45", 3);
	frame[16] = (uint8_t)((bytes - 14) >> 8);
	frame[17] = (uint8_t)(bytes - 14);
}

static void peer_send(struct raw_peer *p, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)p->memory, bytes, p->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;
	time_t end = time(NULL) + PATIENT_S;

	CHECK(!ibv_post_send(p->qp, &wr, &bad));
	do {
		CHECK(time(NULL) < end);
	} while (!ibv_poll_cq(p->cq, 1, &wc));
	CHECK(wc.status == IBV_WC_SUCCESS);
	if (wc.opcode == IBV_WC_SEND)
		return;
	/* The answer was faster. */
	p->answered = true;
	peer_wait(p, IBV_WC_SEND, &bytes);
}

void raw_peer_send(struct raw_peer *p, uint32_t bytes, uint8_t kind)
{
	raw_frame(p->memory, DPA_MAC, PEER_MAC, bytes, kind);
	peer_send(p, bytes);
}

void raw_peer_send_frame(struct raw_peer *p, const uint8_t *frame, uint32_t bytes)
{
	memcpy(p->memory, frame, bytes);
	peer_send(p, bytes);
}

void raw_peer_expect(struct raw_peer *p, uint32_t bytes, uint8_t kind)
{
	raw_peer_expect_edited(p, bytes, kind, kind);
}

void raw_peer_expect_edited(struct raw_peer *p, uint32_t bytes, uint8_t kind, uint8_t last)
{
	uint8_t frame[BYTES];
	uint32_t got = bytes;

	if (!p->answered)
		peer_wait(p, IBV_WC_RECV, &got);
	p->answered = false;
	raw_frame(frame, PEER_MAC, DPA_MAC, bytes, kind);
	frame[bytes - 1] = last;
	CHECK(got == bytes && !memcmp(p->memory + BYTES, frame, bytes));
	memset(p->memory + BYTES, 0, BYTES);
	peer_post(p);
}

/* ---- frames that flow both ways ---- */

static double flow_now(void)
{
	struct timespec t;

	CHECK(!clock_gettime(CLOCK_MONOTONIC, &t));
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void flow_receive(struct raw_peer *p, unsigned place)
{
	struct ibv_sge sge = {(uintptr_t)p->memory + BYTES + place * PLACE, PLACE, p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = place, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(p->qp, &wr, &bad));
}

static void flow_send(struct raw_peer *p, struct raw_flow *f)
{
	uint8_t *frame = p->memory + f->sent % WINDOW * PLACE;
	struct ibv_sge sge = {(uintptr_t)frame, FRAME, p->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	raw_frame(frame, DPA_MAC, PEER_MAC, FRAME, (uint8_t)f->sent);
	CHECK(!ibv_post_send(p->qp, &wr, &bad));
	f->sent++;
	f->sending++;
	f->under_way++;
}

static void flow_take(struct raw_peer *p, struct raw_flow *f, const struct ibv_wc *wc)
{
	const uint8_t *got = p->memory + BYTES + wc->wr_id * PLACE;
	uint8_t frame[FRAME];

	CHECK_SAY(wc->status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc->status));
	if (wc->opcode == IBV_WC_SEND) {
		f->sending--;
		return;
	}
	raw_frame(frame, PEER_MAC, DPA_MAC, FRAME, got[FRAME - 1]);
	CHECK(wc->byte_len == FRAME && !memcmp(got, frame, FRAME));
	f->back++;
	f->under_way -= !!f->under_way;
	f->heard = flow_now();
	flow_receive(p, (unsigned)wc->wr_id);
}

void raw_peer_flow(struct raw_peer *p, struct raw_flow *f)
{
	struct ibv_wc wc;
	int n;

	/* one is posted */
	for (unsigned i = 1; !f->begun && i < RECEIVES; i++)
		flow_receive(p, i);
	f->begun = true;
	while ((n = ibv_poll_cq(p->cq, 1, &wc)) == 1)
		flow_take(p, f, &wc);
	CHECK(!n);
	if (f->under_way == WINDOW && flow_now() - f->heard > LOST_S) {
		f->under_way = 0;
		f->heard = flow_now();
	}
	while (f->under_way < WINDOW && f->sending < WINDOW)
		flow_send(p, f);
}

void raw_peer_free(struct raw_peer *p)
{
	CHECK(!ibv_destroy_flow(p->flow) && !ibv_destroy_qp(p->qp));
	CHECK(!ibv_dereg_mr(p->mr) && !ibv_destroy_cq(p->cq) && !ibv_dealloc_pd(p->pd));
	CHECK(!ibv_close_device(p->ctx));
	free(p);
}
