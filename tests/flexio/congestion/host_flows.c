// SPDX-License-Identifier: BSD-2-Clause
/* Several flows beside each other, flows of other kinds, and where the table's numbers end. */
#include <stdio.h>
#include <string.h>

#include "host.h"

#define PIECE	  4096u
#define UNDER_WAY 8u
#define RING	  1024u
#define PATIENT_S 60u
#define NS	  1000000000u

/* The number of the line's flow, which has this rate from now on and tells nothing more. */
static uint64_t line_rated(struct bench *b, struct line *l, uint64_t rate)
{
	uint64_t n = get(b, events), ccq;

	line_write(l, 1, 100);
	await(get(b, events) == n + 1 && get(b, qpn) == l->from->qp_num);
	ccq = get(b, ccq);
	CHECK(!call(b->p, &ring, ccq, rate, 0, NEXT_NONE));
	return ccq;
}

/* ---- two flows at a time ---- */

struct sender {
	struct line line;
	double megabytes;
	unsigned under_way;
	uint64_t done, done_before; /* bytes, and at the beginning of the present window */
	bool fast;		    /* there was a window in which it was as fast as it has to be */
};

/* Keeps some writes under way, and counts those that are done. */
static void sender_go_on(struct sender *s)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(s->line.cq, 1, &wc)) == 1) {
		CHECK_SAY(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
		s->under_way--;
		s->done += PIECE;
	}
	CHECK(!n);
	for (; s->under_way < UNDER_WAY; s->under_way++)
		line_post(&s->line, IBV_WR_RDMA_WRITE, PIECE);
}

/* Never more than the rate allows, whatever holds us up.  What is in the bucket is more than that. */
static void sender_not_faster(const struct sender *s, uint64_t ns)
{
	double most = s->megabytes * ((double)ns / 1000 + 1000) + 2 * PIECE;

	CHECK_SAY((double)s->done <= most, "%g MB/s: %lu bytes in %lu ns", s->megabytes,
		  (unsigned long)s->done, (unsigned long)ns);
}

/* A window in which nothing held us up shows the rate of each, or 0.6 of it: the faster one does not reach that at
 * the rate of the slower one. */
static bool window_over(struct sender *s, uint64_t ns)
{
	bool all = true;

	for (unsigned i = 0; i < 2; i++) {
		s[i].fast |= (double)(s[i].done - s[i].done_before) >
			     0.6 * s[i].megabytes * (double)ns / 1000;
		s[i].done_before = s[i].done;
		all &= s[i].fast;
	}
	return all;
}

#define WINDOW_NS 5000000u

static void senders_run(struct sender *s)
{
	uint64_t begin = device_now_ns(), window = begin, now = begin;
	bool all = false;

	while (!all || now - begin < NS / 4) {
		for (unsigned i = 0; i < 2; i++)
			sender_go_on(&s[i]);
		now = device_now_ns();
		for (unsigned i = 0; i < 2; i++)
			sender_not_faster(&s[i], now - begin);
		if (now - window >= WINDOW_NS) {
			all |= window_over(s, now - window);
			window = now;
		}
		CHECK_SAY(now - begin < (uint64_t)PATIENT_S * NS, "%d %d", s[0].fast, s[1].fast);
	}
}

/* One at 10 and one at 40 MB/s; then one that all but stands, beside which the other one goes on. */
static void two_rates(void)
{
	static const double megabytes[2] = {10, 40};
	struct sender s[2] = {0};
	uint64_t ccq[2];
	struct bench b;

	bench_up(&b, 0, 0, 0);
	for (unsigned i = 0; i < 2; i++) {
		s[i].megabytes = megabytes[i];
		line_up(&s[i].line, &b.port);
		ccq[i] = line_rated(&b, &s[i].line, rate_of(megabytes[i]));
	}
	CHECK(ccq[0] != ccq[1]);
	senders_run(s);
	for (unsigned i = 0; i < 2; i++) {
		line_await(&s[i].line, s[i].under_way);
		CHECK(call(b.p, &rate_of_flow, ccq[i], 0, 0, 0) == rate_of(megabytes[i]));
	}
	CHECK(!call(b.p, &ring, ccq[0], 1, 0, NEXT_NONE));
	line_post(&s[0].line, IBV_WR_RDMA_WRITE, ROOM);
	/* At the other one's rate this would take 85 s. */
	CHECK(line_write(&s[1].line, 16, ROOM / 4) < 60ull * NS);
	CHECK(!call(b.p, &ring, ccq[0], RATE_MAX, 0, NEXT_NONE));
	line_await(&s[0].line, 1);
	for (unsigned i = 0; i < 2; i++)
		line_down(&s[i].line);
	bench_down(&b);
}

/* ---- the ends of numbers ---- */

/* 0 counts as 1, and what is above 2^20 as 2^20. */
static void rate_ends(void)
{
	struct bench b;
	struct line l;
	uint64_t ccq, begin;

	bench_up(&b, 0, 0, 0);
	line_up(&l, &b.port);
	ccq = line_rated(&b, &l, 0);
	CHECK(call(b.p, &rate_of_flow, ccq, 0, 0, 0) == 1);
	begin = device_now_ns();
	line_write(&l, 1, 40000);
	/* 47684 bytes a second, and 4096 at once. */
	CHECK(device_now_ns() - begin > NS / 2);
	CHECK(!call(b.p, &ring, ccq, RATE_MAX + 1, 0, NEXT_NONE));
	CHECK(call(b.p, &rate_of_flow, ccq, 0, 0, 0) == RATE_MAX);
	CHECK(!call(b.p, &ring, ccq, UINT32_MAX, 0, NEXT_NONE));
	CHECK(call(b.p, &rate_of_flow, ccq, 0, 0, 0) == RATE_MAX);
	/* At the rate of 1 this would take 85 s. */
	CHECK(line_write(&l, 4, ROOM) < 60ull * NS);
	line_down(&l);
	bench_down(&b);
}

/* What one event tells of: counts of 16 bits end, and those behind them do not. */
static void counts_end(void)
{
	const uint64_t writes = 70, packets = writes * (ROOM / MTU);
	struct bench b;
	struct line l;

	bench_up(&b, 0, 0, 0);
	line_up(&l, &b.port);
	line_write(&l, 1, 100);
	await(get(&b, events) == 1);
	line_write(&l, writes, ROOM);
	CHECK(!call(b.p, &ring, get(&b, ccq), RATE_MAX, 0, NEXT_SINGLE));
	await(get(&b, events) == 2);
	CHECK_SAY(get(&b, last_packets) == packets, "%lu packets",
		  (unsigned long)get(&b, last_packets));
	CHECK(get(&b, last_bytes) > writes * ROOM);
	CHECK(get(&b, last_32bytes) == 0xffff && get(&b, last_16_bits_packets) == 0xffff);
	line_down(&l);
	bench_down(&b);
}

/* While the ring is full, what happens is added up. */
static void ring_full(void)
{
	struct bench b;
	struct line l;
	uint64_t packets = 1, begin;

	bench_up(&b, 0, 0, 0);
	line_up(&l, &b.port);
	line_write(&l, 1, 100);
	await(get(&b, events) == 1);
	set(&b, holds, 1);
	begin = device_now_ns();
	CHECK(!call(b.p, &ring, get(&b, ccq), RATE_MAX, 0, NEXT_MULTIPLE));
	for (; call(b.p, &events_waiting, 0, 0, 0, 0) < RING; packets++) {
		/* One event tells of what was sent while nobody looked, so this may be many. */
		CHECK(device_now_ns() - begin < (uint64_t)PATIENT_S * NS);
		line_write(&l, 1, 100);
	}
	for (unsigned i = 0; i < 100; i++, packets++)
		line_write(&l, 1, 100);
	CHECK(call(b.p, &events_waiting, 0, 0, 0, 0) == RING && get(&b, events) == 1);
	set(&b, holds, 0);
	/* The next one wakes the handler, and there is room again. */
	for (unsigned n = 0; get(&b, packets) < packets || !n; n++, packets++) {
		CHECK_SAY(n < 1000, "%lu of %lu packets in %lu events, %lu waiting",
			  (unsigned long)get(&b, packets), (unsigned long)packets,
			  (unsigned long)get(&b, events),
			  (unsigned long)call(b.p, &events_waiting, 0, 0, 0, 0));
		line_write(&l, 1, 100);
		usleep(1000);
	}
	await(get(&b, packets) == packets);
	CHECK(get(&b, events) > RING && get(&b, last_packets));
	line_down(&l);
	bench_down(&b);
}

/* ---- other kinds ---- */

/* Unreliable connections are told of and held back as well. */
static void unreliable(void)
{
	struct bench b;
	struct line l;
	uint64_t ns;

	bench_up(&b, 0, 0, 0);
	line_up_of(&l, &b.port, IBV_QPT_UC);
	(void)line_rated(&b, &l, rate_of(5));
	CHECK(get(&b, packets) == 1);
	ns = line_write(&l, 5, 100000);
	/* But for a millisecond's worth; nothing answers, so the last packet may be on its way. */
	CHECK_SAY((double)ns * 5e-3 > 0.97 * (500000 - 5500 - PIECE), "%lu ns", (unsigned long)ns);
	line_down(&l);
	bench_down(&b);
}

/* Datagrams are no flow: they make no event, and wait for nothing. */
static void datagrams(void)
{
	struct ibv_recv_wr *bad_recv, recv = {.num_sge = 1};
	struct device_connection how = device_default_connection;
	struct ibv_send_wr *bad,
		wr = {.num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_qp_init_attr attr = {.cap = {16, 16, 1, 1, 0}, .qp_type = IBV_QPT_UD};
	struct device_address self;
	struct ibv_ah_attr ah;
	struct ibv_sge sge;
	struct bench b;
	struct line l;
	struct ibv_qp *qp;
	uint64_t begin;

	bench_up(&b, 1, 0, NEXT_MULTIPLE);
	line_up(&l, &b.port);
	attr.send_cq = attr.recv_cq = l.cq;
	qp = ibv_create_qp(l.pd, &attr);
	CHECK(qp);
	device_qp_init(qp, &how);
	device_qp_connect(&b.port, qp, &how, NULL, 1);
	self = device_address(&b.port, qp, 1);
	ah = device_ah_attr(&b.port, &self);
	sge = (struct ibv_sge){(uintptr_t)l.memory, MTU, l.mr->lkey};
	wr.sg_list = recv.sg_list = &sge;
	wr.wr.ud.ah = ibv_create_ah(l.pd, &ah);
	wr.wr.ud.remote_qpn = qp->qp_num;
	wr.wr.ud.remote_qkey = DEVICE_QKEY;
	CHECK(wr.wr.ud.ah);
	begin = device_now_ns();
	for (unsigned i = 0; i < 4000; i++) {
		sge.length = 2 * MTU;
		CHECK(!ibv_post_recv(qp, &recv, &bad_recv));
		sge.length = MTU;
		CHECK(!ibv_post_send(qp, &wr, &bad));
		line_await(&l, 2);
	}
	/* At the rate that flows would have this would take 85 s. */
	CHECK(device_now_ns() - begin < 100ull * NS);
	usleep(STILL_US);
	CHECK(!get(&b, events));
	CHECK(!ibv_destroy_ah(wr.wr.ud.ah) && !ibv_destroy_qp(qp));
	line_down(&l);
	bench_down(&b);
}

/* Whoever started us takes the link down and up again until the receiver misses packets, and says so. */
static void sequence(void)
{
	struct bench b;
	struct sender s = {0};

	bench_up(&b, rate_of(2), 0, NEXT_SINGLE);
	line_up(&s.line, &b.port);
	sender_go_on(&s);
	await(get(&b, packets) > 10);
	puts("flows");
	fflush(stdout);
	for (uint64_t begin = device_now_ns(); get(&b, nack_kind) != SEQUENCE_KIND;) {
		CHECK(device_now_ns() - begin < 120ull * NS);
		sender_go_on(&s);
	}
	CHECK(get(&b, nacks) >= 1);
	puts("missed");
	fflush(stdout);
	/* The link is up for good: all that was lost comes after all. */
	CHECK(getchar() == EOF);
	line_await(&s.line, s.under_way);
	line_down(&s.line);
	bench_down(&b);
}

const struct host_case flow_cases[] = {
	{"two_rates", two_rates},   {"rate_ends", rate_ends},
	{"counts_end", counts_end}, {"ring_full", ring_full},
	{"unreliable", unreliable}, {"datagrams", datagrams},
	{"sequence", sequence},	    {NULL, NULL},
};
