// SPDX-License-Identifier: BSD-2-Clause
/* A target and packets of initiators that are not there: what it makes of connections. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "adapter/core/device.h"
#include "adapter/qp/path.h"
#include "adapter/qp/qp.h"
#include "adapter/transport/dc.h"
#include "check.h"
#include "dc_pair.h"

#define STRANGER 0x812345u
/* Slots of their processes, of whose generations this is the first. */
#define STRANGERS 5u
#define OTHERS	  6u
#define BORN	  1u
#define PLACES	  (1u << ADAPTER_LOG_MAX_DCT_PEERS)

static void strangers_up(struct dc_pair *t)
{
	dc_pair_up(t, 0, -1);
	atomic_store(&t->device.slots[STRANGERS].alive, BORN);
	atomic_store(&t->device.slots[OTHERS].alive, BORN);
}

/* What the daemon does; alive: 0, or the generation of the slot's next owner. */
static void end_process(struct dc_pair *t, uint32_t alive)
{
	atomic_store(&t->device.slots[STRANGERS].alive, alive);
	atomic_fetch_add(&t->device.registry->ends, 1);
}

static void packet_of(struct dc_pair *t, struct pkt_dc dc, uint32_t sqpn, uint8_t op, uint32_t psn,
		      uint32_t bytes)
{
	const struct run run = {t->src, bytes};
	const struct ib_ah ah = {.dlid = 7, .port_num = 1};
	struct path path;
	struct pkt p = {
		.opcode = BTH_DC | op,
		.pkey = 0xffff,
		.dqpn = qp_number(t->dct[0].qp),
		.sqpn = sqpn,
		.psn = psn,
		.npkts = 1,
		.dc = &dc,
		.path = &path,
		.payload_len = bytes,
		.nruns = bytes ? 1 : 0,
		.runs = &run,
	};

	path_from_ah(t->device.adapter[0], &ah, &path);
	(void)wire_xmit(t->device.wire[0], &p);
}

static void packet_from(struct dc_pair *t, uint32_t process, uint32_t sqpn, uint8_t op,
			uint64_t connection, uint32_t psn, uint32_t oldest, uint32_t bytes)
{
	const struct pkt_dc dc = {
		.key = DC_KEY, .connection = connection, .psn = oldest, .process = process};

	packet_of(t, dc, sqpn, op, psn, bytes);
}

static void send_packet(struct dc_pair *t, uint32_t sqpn, uint8_t op, uint64_t connection,
			uint32_t psn, uint32_t oldest, uint32_t bytes)
{
	packet_from(t, dc_process_name(STRANGERS, BORN), sqpn, op, connection, psn, oldest, bytes);
}

/* A message of a new connection. */
static void message_from(struct dc_pair *t, uint32_t process, uint32_t sqpn)
{
	packet_from(t, process, sqpn, BTH_SEND_ONLY, 5, 100, 100, 10);
}

static void expect_message(struct dc_pair *t, uint32_t bytes)
{
	const struct cqe64 *cqe = device_cq_poll(&t->dct[0].q.cq);

	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_RESP_SEND && be32_get(cqe->byte_cnt) == bytes);
}

/* A message that its initiator gives up; what comes too late; what has no header. */
static void test_connections(void)
{
	const struct cqe64_err *err;
	struct dc_pair t;

	strangers_up(&t);
	for (unsigned i = 0; i < 4; i++)
		device_srq_post(&t.dct[0].q, DC_BYTES);
	send_packet(&t, STRANGER, BTH_SEND_FIRST, 10, 100, 100, 1024);
	send_packet(&t, STRANGER, BTH_SEND_ONLY, 12, 101, 101, 10);
	err = (const struct cqe64_err *)device_cq_poll(&t.dct[0].q.cq);
	CHECK(err && err->op_own >> 4 == CQE_OP_RESP_ERR && err->syndrome == CQE_SYN_REM_ABORTED);
	expect_message(&t, 10);
	send_packet(&t, STRANGER, BTH_SEND_LAST, 10, 101, 100, 10);
	send_packet(&t, STRANGER, BTH_SEND_ONLY, 11, 102, 102, 10);
	/* of the second connection, and its first packet was lost */
	send_packet(&t, STRANGER + 1, BTH_SEND_ONLY, 1, 501, 500, 10);
	CHECK(!device_cq_poll(&t.dct[0].q.cq));
	send_packet(&t, STRANGER + 1, BTH_SEND_ONLY, 1, 500, 500, 20);
	expect_message(&t, 20);
	/* one in the midst of a message when the target ends */
	send_packet(&t, STRANGER + 2, BTH_SEND_FIRST, 1, 1, 1, 1024);
	qp_destroy(t.dct[0].qp);
	t.dct[0].qp = NULL;
	err = (const struct cqe64_err *)device_cq_poll(&t.dct[0].q.cq);
	CHECK(err && err->op_own >> 4 == CQE_OP_RESP_ERR && err->syndrome == CQE_SYN_WR_FLUSH);
	dc_pair_down(&t);
}

/* ---- more initiators than there are places ---- */

static void expect_nothing(struct dc_pair *t)
{
	CHECK(!device_cq_poll(&t->dct[0].q.cq));
}

static void serve_connection(struct dc_pair *t, uint32_t process, uint32_t sqpn)
{
	device_srq_post(&t->dct[0].q, DC_BYTES);
	message_from(t, process, sqpn);
	expect_message(t, 10);
}

/* Initiators of a living process take all the places: none loses its own, and none is executed
 * without one. */
static void test_places_taken(void)
{
	const uint32_t process = dc_process_name(STRANGERS, BORN);
	const struct dc_to to = {0, DC_KEY, 0};
	struct dc_pair t;

	strangers_up(&t);
	for (uint32_t i = 0; i < PLACES; i++)
		serve_connection(&t, process, STRANGER + i);
	device_srq_post(&t.dct[0].q, DC_BYTES);
	message_from(&t, process, STRANGER + PLACES);
	expect_nothing(&t);
	/* Each sends again what has been executed already, the first of them the next message
	 * too. */
	for (uint32_t i = 0; i < PLACES; i++)
		message_from(&t, process, STRANGER + i);
	expect_nothing(&t);
	send_packet(&t, STRANGER, BTH_SEND_ONLY, 5, 101, 100, 20);
	expect_message(&t, 20);
	/* a real one hears that the target is not ready */
	device_srq_post(&t.dct[0].q, DC_BYTES);
	dc_send(&t, 0, to, 0, 30);
	dc_expect_failed(&t, 0, CQE_SYN_RNR_RETRY_EXC);
	expect_nothing(&t);
	/* Nobody searches all places as long as no end is told of; the end of their process makes
	 * room. */
	atomic_store(&t.device.slots[STRANGERS].alive, 0);
	message_from(&t, dc_process_name(OTHERS, BORN), STRANGER + PLACES);
	expect_nothing(&t);
	end_process(&t, 0);
	dc_send(&t, 1, to, 0, 30);
	dc_expect_sent(&t, 1, WQE_OP_SEND_IMM);
	dc_expect_received(&t, 0, 1, 0, 30);
	dc_pair_down(&t);
}

/* The places of a process that has ended go to others; what comes late of it opens nothing. */
static void test_ended_process(void)
{
	const uint32_t before = dc_process_name(STRANGERS, BORN);
	const uint32_t after = dc_process_name(STRANGERS, BORN + 1);
	const uint32_t others = dc_process_name(OTHERS, BORN);
	const struct cqe64_err *err;
	struct dc_pair t;

	strangers_up(&t);
	serve_connection(&t, others, STRANGER - 1);
	for (uint32_t i = 0; i < PLACES - 1; i++)
		serve_connection(&t, before, STRANGER + i);
	/* one of them in the midst of a message */
	device_srq_post(&t.dct[0].q, DC_BYTES);
	send_packet(&t, STRANGER, BTH_SEND_FIRST, 5, 101, 100, 1024);
	end_process(&t, BORN + 1);
	device_srq_post(&t.dct[0].q, DC_BYTES);
	message_from(&t, others, STRANGER + PLACES);
	err = (const struct cqe64_err *)device_cq_poll(&t.dct[0].q.cq);
	CHECK(err && err->op_own >> 4 == CQE_OP_RESP_ERR && err->syndrome == CQE_SYN_REM_ABORTED);
	expect_message(&t, 10);
	device_srq_post(&t.dct[0].q, DC_BYTES);
	message_from(&t, before, STRANGER + 1);
	/* nor where the initiator still has a place, which these two have */
	packet_from(&t, before, STRANGER + PLACES, BTH_SEND_ONLY, 6, 100, 100, 10);
	message_from(&t, others, STRANGER - 1);
	expect_nothing(&t);
	/* a later owner of the slot and of the number */
	message_from(&t, after, STRANGER + 1);
	expect_message(&t, 10);
	dc_pair_down(&t);
}

/* A number that has gone to another process keeps its place for as long as that lives. */
static void test_number_changes_hands(void)
{
	const uint32_t before = dc_process_name(STRANGERS, BORN);
	const uint32_t others = dc_process_name(OTHERS, BORN);
	struct dc_pair t;

	strangers_up(&t);
	serve_connection(&t, before, STRANGER);
	device_srq_post(&t.dct[0].q, DC_BYTES);
	packet_from(&t, others, STRANGER, BTH_SEND_ONLY, 6, 100, 100, 10);
	expect_message(&t, 10);
	for (uint32_t i = 1; i < PLACES; i++)
		serve_connection(&t, before, STRANGER + i);
	end_process(&t, 0);
	serve_connection(&t, others, STRANGER + PLACES);
	device_srq_post(&t.dct[0].q, DC_BYTES);
	packet_from(&t, others, STRANGER, BTH_SEND_ONLY, 6, 100, 100, 10);
	expect_nothing(&t);
	dc_pair_down(&t);
}

/* Requests with a wrong key, of which the first is lost: the answer to the second would say that
 * the first had been executed. */
static void test_key_refused_in_order(void)
{
	const uint32_t psn = 0xfffff0; /* see device_attr */
	const struct dc_to to = {0, DC_KEY, 0};
	struct dc_pair t;

	strangers_up(&t);
	/* It takes nothing for a while. */
	atomic_store(&t.dct[0].qp->state, (uint32_t)IB_QPS_INIT);
	dc_send(&t, 0, to, 0, 10);
	dc_send(&t, 0, to, 0, 10);
	atomic_store(&t.dct[0].qp->state, (uint32_t)IB_QPS_RTR);
	packet_of(&t, (struct pkt_dc){.key = DC_KEY + 1, .connection = 5, .psn = psn},
		  qp_number(t.dci[0].qp), BTH_SEND_ONLY, psn + 1, 10);
	CHECK(!device_cq_poll(&t.dci[0].cq));
	packet_of(&t, (struct pkt_dc){.key = DC_KEY + 1, .connection = 5, .psn = psn},
		  qp_number(t.dci[0].qp), BTH_SEND_ONLY, psn, 10);
	dc_expect_failed(&t, 0, CQE_SYN_REM_ACCESS);
	dc_pair_down(&t);
}

/* ---- numbers that have changed hands, used while the places of dead initiators are freed ---- */

#ifdef __SANITIZE_THREAD__
#define SLOWER 10u /* times, at least, with this sanitizer */
#else
#define SLOWER 1u
#endif
#define SWEEPS	     (600u / SLOWER)
#define NEW_OWNERS   64u
#define BY_TURNS     STRANGER
#define FIRST_SEARCH (STRANGER + PLACES)
/* So many that a search is due at the next one, if at most the new owners live; see dct.c. */
#define TAKEN (1024u + 2 * NEW_OWNERS)

struct searcher {
	struct dc_pair *pair;
	uint32_t process, sqpn;
	uint32_t after; /* turns of a loop */
	_Atomic(bool) start;
	pthread_t thread;
};

/* A first packet that is not the oldest takes a place and is not executed. */
static void take_place_only(struct dc_pair *t, uint32_t process, uint32_t sqpn)
{
	packet_from(t, process, sqpn, BTH_SEND_ONLY, 1, 501, 500, 10);
}

static void *search_loop(void *arg)
{
	struct searcher *s = arg;

	while (!atomic_load(&s->start))
		cpu_relax();
	for (uint32_t i = 0; i < s->after; i++)
		cpu_relax();
	take_place_only(s->pair, s->process, s->sqpn);
	return NULL;
}

static void serve_anew(struct dc_pair *t, uint32_t process, uint32_t sqpn, uint64_t connection)
{
	device_srq_post(&t->dct[0].q, DC_BYTES);
	packet_from(t, process, sqpn, BTH_SEND_ONLY, connection, 100, 100, 10);
	expect_message(t, 10);
}

/* The new owner of a number is executed at once, whether the search has met its place or not.  The
 * search begins with the place that was made last, and so do the new owners. */
static void test_search_meets_new_owners(void)
{
	static struct searcher s;
	static struct dc_pair t;

	strangers_up(&t);
	s.pair = &t;
	take_place_only(&t, dc_process_name(STRANGERS, BORN), FIRST_SEARCH);
	for (uint32_t turn = 1; turn <= SWEEPS; turn++) {
		uint32_t before = dc_process_name(STRANGERS, BORN + turn - 1);
		uint32_t after = dc_process_name(STRANGERS, BORN + turn);

		for (uint32_t i = 0; i < TAKEN; i++)
			serve_anew(&t, before, BY_TURNS + i, 2 * turn);
		s.process = after;
		s.sqpn = FIRST_SEARCH + turn;
		s.after = turn * 37 % 400;
		atomic_store(&s.start, false);
		CHECK(!pthread_create(&s.thread, NULL, search_loop, &s));
		end_process(&t, BORN + turn);
		atomic_store(&s.start, true);
		for (uint32_t i = 0; i < NEW_OWNERS; i++)
			serve_anew(&t, after, BY_TURNS + TAKEN - 1 - i, 2 * turn + 1);
		CHECK(!pthread_join(s.thread, NULL));
	}
	dc_pair_down(&t);
}

/* ---- a connection that opens while the last one is being flushed ---- */

#define REOPENINGS (60000u / SLOWER)

struct flusher {
	struct adapter *adapter;
	_Atomic(bool) over;
	pthread_t thread;
};

static void *flush_loop(void *arg)
{
	struct flusher *f = arg;

	while (!atomic_load(&f->over))
		adapter_progress(f->adapter, NULL);
	return NULL;
}

/* The flush is the old connection's: it takes nothing of the new one. */
static void test_flush_and_reopen(void)
{
	static struct dc_pair t;
	static struct flusher f;

	strangers_up(&t);
	f.adapter = t.device.adapter[0];
	CHECK(!pthread_create(&f.thread, NULL, flush_loop, &f));
	for (uint32_t i = 0; i < REOPENINGS; i++) {
		uint64_t old = 1 + 2 * (uint64_t)i, new = old + 1;
		const struct cqe64 *cqe;

		device_srq_post(&t.dct[0].q, DC_BYTES);
		device_srq_post(&t.dct[0].q, DC_BYTES);
		send_packet(&t, STRANGER, BTH_SEND_FIRST, old, 1, 1, 1024);
		/* out of place: the connection is in error, which the other thread hears of */
		send_packet(&t, STRANGER, BTH_WRITE_MIDDLE, old, 2, 1, 1024);
		/* by and by at each point of the other thread's way */
		for (uint32_t n = 0; n < i % 128; n++)
			cpu_relax();
		send_packet(&t, STRANGER, BTH_SEND_FIRST, new, 1, 1, 1024);
		send_packet(&t, STRANGER, BTH_SEND_LAST, new, 2, 1, 10);
		cqe = device_cq_poll(&t.dct[0].q.cq);
		CHECK(cqe && cqe->op_own >> 4 == CQE_OP_RESP_ERR);
		expect_message(&t, 1034);
		CHECK(!device_cq_poll(&t.dct[0].q.cq));
	}
	atomic_store(&f.over, true);
	CHECK(!pthread_join(f.thread, NULL));
	dc_pair_down(&t);
}

int main(void)
{
	test_connections();
	test_places_taken();
	test_ended_process();
	test_number_changes_hands();
	test_key_refused_in_order();
	test_search_meets_new_owners();
	test_flush_and_reopen();
	return 0;
}
