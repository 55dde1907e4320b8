// SPDX-License-Identifier: BSD-2-Clause
/* See host.h.  Its own context of the same device: to the device it is another program. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host.h"
#include "mac_rule.h"

#define PATIENT_S 60
/* Places for frames: to send, and to receive. */
#define PLACE	 2048u
#define SENDS	 RAW_WINDOW
#define RECEIVES 32u
/* Seconds until a frame of a flow is lost. */
#define LOST_S 0.01

/* A frame that has come while we waited for something else. */
struct heard {
	uint32_t place, bytes;
};

struct raw_peer {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_flow *flow;
	struct heard heard[RECEIVES];
	unsigned first, nheard;
	uint8_t memory[(SENDS + RECEIVES) * PLACE];
};

static uint8_t *peer_place(struct raw_peer *p, uint32_t place)
{
	return p->memory + (SENDS + place) * PLACE;
}

static void peer_post(struct raw_peer *p, uint32_t place)
{
	struct ibv_sge sge = {(uintptr_t)peer_place(p, place), PLACE, p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = place, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(p->qp, &wr, &bad));
}

static void peer_up(struct raw_peer *p)
{
	struct ibv_qp_init_attr init = {.cap = {SENDS, RECEIVES, 1, 1},
					.qp_type = IBV_QPT_RAW_PACKET};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	p->ctx = ethernet_open();
	p->pd = ibv_alloc_pd(p->ctx);
	p->cq = ibv_create_cq(p->ctx, SENDS + RECEIVES, NULL, NULL, 0);
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
}

struct raw_peer *raw_peer_make(void)
{
	struct raw_peer *p = calloc(1, sizeof(*p));

	CHECK(p);
	peer_up(p);
	p->flow = mac_rule(p->qp, (const uint8_t *)PEER_MAC);
	CHECK(p->flow);
	peer_post(p, 0);
	return p;
}

struct raw_peer *raw_peer_of_all(void)
{
	struct raw_peer *p = calloc(1, sizeof(*p));
	struct ibv_flow_attr all = {
		.type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(all), .port = 1};

	CHECK(p);
	peer_up(p);
	for (uint32_t i = 0; i < RECEIVES; i++)
		peer_post(p, i);
	p->flow = ibv_create_flow(p->qp, &all);
	CHECK(p->flow);
	return p;
}

/* The next completion. */
static void peer_next(struct raw_peer *p, struct ibv_wc *wc)
{
	time_t end = time(NULL) + PATIENT_S;
	int n;

	while (!(n = ibv_poll_cq(p->cq, 1, wc)) && time(NULL) < end)
		;
	CHECK(n == 1);
	CHECK_SAY(wc->status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc->status));
}

/* The next frame: one that came while we sent, or one that comes now. */
static struct heard peer_hear(struct raw_peer *p)
{
	struct ibv_wc wc;

	if (p->nheard) {
		p->nheard--;
		return p->heard[p->first++ % RECEIVES];
	}
	peer_next(p, &wc);
	CHECK(wc.opcode == IBV_WC_RECV);
	return (struct heard){(uint32_t)wc.wr_id, wc.byte_len};
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

	CHECK(!ibv_post_send(p->qp, &wr, &bad));
	for (;;) {
		peer_next(p, &wc);
		if (wc.opcode == IBV_WC_SEND)
			return;
		/* The answer was faster. */
		p->heard[(p->first + p->nheard++) % RECEIVES] =
			(struct heard){(uint32_t)wc.wr_id, wc.byte_len};
	}
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
	const struct heard h = peer_hear(p);
	uint8_t frame[PLACE];

	raw_frame(frame, PEER_MAC, DPA_MAC, bytes, kind);
	frame[bytes - 1] = last;
	CHECK(h.bytes == bytes && !memcmp(peer_place(p, h.place), frame, bytes));
	memset(peer_place(p, h.place), 0, PLACE);
	peer_post(p, h.place);
}

uint32_t raw_peer_hear(struct raw_peer *p, uint8_t *frame, uint32_t room)
{
	const struct heard h = peer_hear(p);

	CHECK_SAY(h.bytes <= room, "%u bytes", h.bytes);
	memcpy(frame, peer_place(p, h.place), h.bytes);
	peer_post(p, h.place);
	return h.bytes;
}

/* ---- frames that flow both ways ---- */

static double flow_now(void)
{
	struct timespec t;

	CHECK(!clock_gettime(CLOCK_MONOTONIC, &t));
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t flow_bytes(const struct raw_flow *f, unsigned n)
{
	return f->bytes[n % RAW_SIZES];
}

static void flow_send(struct raw_peer *p, struct raw_flow *f)
{
	uint8_t *frame = p->memory + f->sent % SENDS * PLACE;
	uint32_t bytes = flow_bytes(f, f->sent);
	struct ibv_sge sge = {(uintptr_t)frame, bytes, p->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	raw_frame(frame, DPA_MAC, PEER_MAC, bytes, (uint8_t)f->sent);
	CHECK(!ibv_post_send(p->qp, &wr, &bad));
	f->sent++;
	f->sending++;
	f->under_way++;
}

static void flow_take(struct raw_peer *p, struct raw_flow *f, const struct ibv_wc *wc)
{
	const uint8_t *got = peer_place(p, (uint32_t)wc->wr_id);
	uint8_t frame[PLACE], kind;
	uint32_t bytes = wc->byte_len;

	CHECK_SAY(wc->status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc->status));
	if (wc->opcode == IBV_WC_SEND) {
		f->sending--;
		return;
	}
	kind = f->whole ? (uint8_t)f->back : got[bytes - 1];
	CHECK_SAY(bytes == flow_bytes(f, f->whole ? f->back : kind), "frame %u: %u bytes", f->back,
		  bytes);
	raw_frame(frame, PEER_MAC, DPA_MAC, bytes, kind);
	CHECK_SAY(!memcmp(got, frame, bytes), "frame %u", f->back);
	f->back++;
	f->under_way -= !!f->under_way;
	f->heard = flow_now();
	peer_post(p, (uint32_t)wc->wr_id);
}

void raw_peer_flow(struct raw_peer *p, struct raw_flow *f)
{
	struct ibv_wc wc;
	int n;

	/* one is posted */
	for (uint32_t i = 1; !f->begun && i < RECEIVES; i++)
		peer_post(p, i);
	if (!f->begun)
		f->heard = flow_now();
	f->begun = true;
	while ((n = ibv_poll_cq(p->cq, 1, &wc)) == 1)
		flow_take(p, f, &wc);
	CHECK(!n);
	if (f->under_way == f->window && flow_now() - f->heard > (f->whole ? PATIENT_S : LOST_S)) {
		CHECK_SAY(!f->whole, "%u of %u frames have come back", f->back, f->sent);
		f->under_way = 0;
		f->heard = flow_now();
	}
	while (f->under_way < f->window && f->sending < f->window &&
	       (!f->count || f->sent < f->count))
		flow_send(p, f);
}

void raw_peer_free(struct raw_peer *p)
{
	CHECK(!ibv_destroy_flow(p->flow) && !ibv_destroy_qp(p->qp));
	CHECK(!ibv_dereg_mr(p->mr) && !ibv_destroy_cq(p->cq) && !ibv_dealloc_pd(p->pd));
	CHECK(!ibv_close_device(p->ctx));
	free(p);
}
