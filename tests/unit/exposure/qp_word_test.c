// SPDX-License-Identifier: BSD-2-Clause
/*
 * The word that a responder shares with its peer: what each step does to the other side's next one,
 * and then both at random, with somebody who revokes at any moment:
 *
 *     initiator   executes by itself and commits, else sends a packet
 *     owner       executes packets, looks, closes for a moment, revokes
 *
 * Against the plain model that a request moves the numbers once.
 */
#include <pthread.h>
#include <sched.h>

#include "check.h"
#include "exposure/qp_word.h"

#define START	 0xffff00u /* soon to wrap */
#define REQUESTS 200000u

static _Atomic(uint64_t) word;

static uint64_t opened_word(uint32_t epsn, uint32_t msn)
{
	CHECK(qp_word_open(&word, qp_word_close(&word), epsn, msn));
	return qp_word_load(&word);
}

static void test_commit(void)
{
	uint64_t w = opened_word(0xffffff, 0xffffff);

	CHECK(qp_word_is_open(w) && qp_word_epsn(w) == 0xffffff && qp_word_msn(w) == 0xffffff);
	/* the numbers wrap each by itself */
	CHECK(qp_word_commit(&word, w, 3, 1));
	w = qp_word_load(&word);
	CHECK(qp_word_is_open(w) && qp_word_epsn(w) == 2 && qp_word_msn(w) == 0);
	CHECK(qp_word_close(&word) == (w & ~QP_WORD_OPEN) && !qp_word_is_open(qp_word_load(&word)));
}

static void test_close(void)
{
	uint64_t w = opened_word(5, 6);

	/* the owner looked, and nothing came in between */
	CHECK(opened_word(5, 6) == w && qp_word_commit(&word, w, 1, 1));
	/* a packet came in between */
	w = qp_word_load(&word);
	(void)opened_word(7, 8);
	CHECK(!qp_word_commit(&word, w, 1, 1) && qp_word_epsn(qp_word_load(&word)) == 7);
	/* closed, and stays so: nobody waits for ever */
	w = qp_word_load(&word);
	(void)qp_word_close(&word);
	CHECK(!qp_word_commit(&word, w, 1, 1) && qp_word_epsn(qp_word_load(&word)) == 7);
}

static void test_revoke(void)
{
	uint64_t w = opened_word(5, 6), closed;

	qp_word_revoke(&word);
	CHECK(!qp_word_is_open(qp_word_load(&word)) && !qp_word_commit(&word, w, 1, 1));
	/* the numbers are still there for the owner */
	CHECK(qp_word_epsn(qp_word_close(&word)) == 5 && qp_word_msn(qp_word_close(&word)) == 6);
	/* the same numbers again, but what began before does not count */
	CHECK(opened_word(5, 6) != w && !qp_word_commit(&word, w, 1, 1));
	/* a revocation after the owner has looked whether it may open */
	closed = qp_word_close(&word);
	qp_word_revoke(&word);
	CHECK(!qp_word_open(&word, closed, 5, 6) && !qp_word_is_open(qp_word_load(&word)));
	/* epochs wrap without touching the rest */
	for (uint32_t i = 0; i < 1u << 15; i++)
		qp_word_revoke(&word);
	CHECK(qp_word_epsn(qp_word_load(&word)) == 5 && qp_word_msn(qp_word_load(&word)) == 6);
}

/* ---- at random ---- */

/* A packet on its way: its PSN and length, 0: none. */
static _Atomic(uint64_t) packet;
static _Atomic(bool) over;

static void pause_at_random(struct rng *rng)
{
	uint64_t n = rng_below(rng, 64);

	if (!n)
		sched_yield();
	while (n-- > 32)
		cpu_relax();
}

static bool execute_alone(struct rng *rng, uint32_t psn, uint32_t npkts)
{
	uint64_t w = qp_word_load(&word);

	if (!qp_word_is_open(w) || qp_word_epsn(w) != psn)
		return false;
	pause_at_random(rng);
	return qp_word_commit(&word, w, npkts, 1);
}

static void *initiator_loop(void *arg)
{
	struct rng rng = {99};
	uint32_t psn = START, *alone = arg;

	for (uint32_t i = 0; i < REQUESTS; i++) {
		uint32_t npkts = 1 + (uint32_t)rng_below(&rng, 4);

		if (execute_alone(&rng, psn, npkts)) {
			++*alone;
		} else {
			atomic_store(&packet, (uint64_t)psn << 8 | npkts);
			while (atomic_load(&packet))
				sched_yield();
		}
		psn = (psn + npkts) & QP_WORD_NUMBER;
	}
	atomic_store(&over, true);
	return (void *)(uintptr_t)psn;
}

static void *revoker_loop(void *arg)
{
	struct rng rng = {7};

	(void)arg;
	while (!atomic_load(&over)) {
		if (!rng_below(&rng, 32))
			qp_word_revoke(&word);
		sched_yield();
	}
	return NULL;
}

struct owner {
	uint32_t epsn, msn;
	bool published;
	uint32_t packets;
};

static void owner_look(struct owner *o)
{
	uint64_t w = qp_word_load(&word);

	if (!o->published)
		return;
	/* never back, and never by more than one message at a time in both */
	CHECK(((qp_word_epsn(w) - o->epsn) & QP_WORD_NUMBER) >=
	      ((qp_word_msn(w) - o->msn) & QP_WORD_NUMBER));
	CHECK(((qp_word_msn(w) - o->msn) & QP_WORD_NUMBER) <= REQUESTS);
	o->epsn = qp_word_epsn(w);
	o->msn = qp_word_msn(w);
}

static void owner_close(struct owner *o)
{
	uint64_t w;

	if (!o->published)
		return;
	w = qp_word_close(&word);
	o->epsn = qp_word_epsn(w);
	o->msn = qp_word_msn(w);
	o->published = false;
}

static void owner_open(struct owner *o)
{
	if (!o->published)
		o->published = qp_word_open(&word, qp_word_load(&word), o->epsn, o->msn);
}

static void owner_receive(struct owner *o)
{
	uint64_t p = atomic_load(&packet);

	if (!p)
		return;
	owner_close(o);
	/* neither executed before, nor behind something that is lost */
	CHECK(p >> 8 == o->epsn);
	o->epsn = (o->epsn + (uint32_t)(p & 0xff)) & QP_WORD_NUMBER;
	o->msn = (o->msn + 1) & QP_WORD_NUMBER;
	o->packets++;
	owner_open(o);
	atomic_store(&packet, 0);
}

static void test_random(void)
{
	struct owner o = {.epsn = START, .msn = START};
	struct rng rng = {3};
	pthread_t threads[2];
	uint32_t alone = 0;
	void *psn;

	(void)qp_word_close(&word);
	CHECK(!pthread_create(&threads[0], NULL, initiator_loop, &alone));
	CHECK(!pthread_create(&threads[1], NULL, revoker_loop, NULL));
	while (!atomic_load(&over)) {
		switch (rng_below(&rng, 8)) {
		case 0:
			owner_close(&o);
			break;
		case 1:
			/* closed again by somebody else: what it said stays */
			owner_close(&o);
			qp_word_revoke(&word);
			break;
		case 2:
			owner_look(&o);
			break;
		case 3:
			sched_yield();
			break;
		default:
			owner_open(&o);
		}
		pause_at_random(&rng);
		owner_receive(&o);
	}
	pthread_join(threads[0], &psn);
	pthread_join(threads[1], NULL);
	owner_close(&o);
	CHECK(o.epsn == (uint32_t)(uintptr_t)psn);
	CHECK(o.msn == ((START + REQUESTS) & QP_WORD_NUMBER));
	CHECK(alone + o.packets == REQUESTS);
	/* nothing was tried if all took one way */
	CHECK(alone && o.packets);
}

int main(void)
{
	test_commit();
	test_close();
	test_revoke();
	test_random();
	return 0;
}
