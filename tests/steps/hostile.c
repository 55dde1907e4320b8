// SPDX-License-Identifier: BSD-2-Clause
/*
 * hostile DEVICE LIVES SEED: a process that writes nonsense into what it shares with its peers
 * harms itself alone.  It is started LIVES times.
 *
 *     tracer ---- orders ---- honest ---- third      these two always make progress
 *                                |
 *                             hostile                what becomes of this does not matter
 *
 * The honest one writes, reads and sends in both directions, takes memory and queue pairs away,
 * asks and polls.  It does not crash or hang, and no byte changes that the hostile one has no key
 * for.  Most is learnt from a build with sanitizers.
 */
#include "steps.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "crew.h"
#include "spoil.h"

#define SECRET_BYTES (1u << 20)
#define HOSTILE	     0u /* the honest one's link to it */
#define THIRD	     1u
#define ROUNDS	     40u /* of a life */
#define OUTSTANDING  24u
#define POLLS	     200u

static const char *device;
static uint64_t seed;
static uint32_t life;
static struct spoil_lures lures;
static struct process honest, other, enemy;
static uint64_t words; /* that were spoilt, as far as is known */

static struct device_port port;
static struct ibv_pd *pd;
static struct end links[2];
static uint8_t *secret; /* no key leads there */

/* ---- all three ---- */

static void open_device(void)
{
	device_port_open(&port, device, -1);
	pd = ibv_alloc_pd(port.ctx);
	secret = mmap(NULL, SECRET_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (!pd || secret == MAP_FAILED)
		device_die("no PD or memory: %m");
	memset(secret, BYTE_POISON, SECRET_BYTES);
}

static void poll_end(struct end *e)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(e->cq, 16, wc);

	if (n < 0)
		device_die("ibv_poll_cq fails");
	for (int i = 0; i < n; i++)
		end_completed(e, &wc[i]);
}

static void check_secret(struct answer *a)
{
	if (!all_are(secret, SECRET_BYTES, BYTE_POISON))
		complain(a, "memory without a key changed");
}

/* ---- the honest one and the third ---- */

static void with_third(struct answer *a)
{
	struct end *e = &links[THIRD];

	e->sent = STEPS_RECEIVES; /* its receives are not counted here */
	end_post_all(e, 1);
	while (e->done < e->posted)
		poll_end(e);
	if (e->failed)
		complain(a, "requests between honest processes: %s", ibv_wc_status_str(e->status));
	if (!all_are(e->mem, STEPS_BYTES, BYTE_OLD) ||
	    !all_are(e->own, 2ul * STEPS_BYTES, BYTE_OLD))
		complain(a, "memory of honest processes has other bytes than were written");
}

static void with_hostile(unsigned round, struct answer *a)
{
	struct end *e = &links[HOSTILE];

	if (qp_state_of(e->qp, a) == IBV_QPS_RTS && e->posted - e->done < OUTSTANDING)
		end_post_all(e, 1);
	for (unsigned i = 0; i < POLLS; i++)
		poll_end(e);
	if (round % 8 == 7) {
		int access = round % 16 == 7 ? IBV_ACCESS_LOCAL_WRITE
					     : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_READ;

		if (ibv_rereg_mr(e->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access))
			complain(a, "ibv_rereg_mr: %m");
	}
	if (!all_are(e->own, STEPS_BYTES, BYTE_OLD))
		complain(a, "what a request took from changed");
}

static void leave_hostile(struct answer *a)
{
	struct end *e = &links[HOSTILE];

	if (ibv_dereg_mr(e->mr))
		complain(a, "ibv_dereg_mr: %m");
	memset(e->mem, BYTE_POISON, STEPS_BYTES);
	with_third(a);
	if (!all_are(e->mem, STEPS_BYTES, BYTE_POISON))
		complain(a, "memory changed after its key had gone");
	qp_to_state(e->qp, IBV_QPS_ERR, a);
	while (e->done < e->posted || e->received < e->receives)
		poll_end(e);
	if (ibv_destroy_qp(e->qp) || ibv_dereg_mr(e->own_mr) || ibv_destroy_cq(e->cq))
		complain(a, "something cannot be destroyed: %m");
	munmap(e->mem, STEPS_BYTES);
	munmap(e->own, 2ul * STEPS_BYTES);
	check_secret(a);
}

static void honest_obey(const struct order *o, enum what what, struct answer *a)
{
	struct end *e = &links[o->link & 1];

	(void)what;
	switch (o->code) {
	case MAKE:
		end_make(e, OVER_RC, &port, pd, NULL, &a->place);
		a->value[0] = (uintptr_t)secret;
		break;
	case CONNECT:
		end_connect(e, &o->place);
		if (o->link == HOSTILE)
			end_receive(e, STEPS_RECEIVES);
		break;
	case PROBE:
		with_hostile(o->arg, a);
		with_third(a);
		break;
	case CHECK:
		check_secret(a);
		break;
	case DROP:
		leave_hostile(a);
		break;
	default:
		exit(0);
	}
}

static void honest_body(int sock)
{
	open_device();
	orders_serve(sock, honest_obey, 0, NULL);
}

/* ---- the hostile one ---- */

static void hostile_obey(const struct order *o, enum what what, struct answer *a)
{
	struct end *e = &links[0];

	(void)what;
	switch (o->code) {
	case MAKE:
		end_make(e, OVER_RC, &port, pd, NULL, &a->place);
		/* Also before anybody has looked at it. */
		if (life % 4 == 3)
			spoil_start(seed + life, false, &lures);
		break;
	case CONNECT:
		end_connect(e, &o->place);
		end_receive(e, STEPS_RECEIVES);
		if (life % 4 != 3)
			spoil_start(seed + life, life % 2, &lures);
		break;
	case PROBE:
		if (device_qp_state(e->qp) == IBV_QPS_RTS && e->posted - e->done < OUTSTANDING)
			end_post_all(e, 1);
		poll_end(e);
		a->value[0] = spoil_words();
		break;
	default:
		_exit(0);
	}
}

static void hostile_body(int sock)
{
	open_device();
	orders_serve(sock, hostile_obey, 0, NULL);
}

/* ---- who orders ---- */

/* The hostile one may be dead, or hang: then it is over with it, and no complaint. */
static bool enemy_meets(void)
{
	struct order make = {.code = MAKE}, connect = {.code = CONNECT};
	struct answer a;

	connect.place = process_ask(&honest, MAKE, HOSTILE, 0).place;
	if (!process_try(&enemy, &make, &a))
		return false;
	process_connect(&honest, HOSTILE, &a.place);
	return process_try(&enemy, &connect, &a);
}

static void one_life(void)
{
	struct order probe = {.code = PROBE};
	struct answer a = {0};
	bool lives;

	snprintf(story, sizeof(story), "life %u, seed %llu", life, (unsigned long long)seed);
	process_spawn(&enemy, "hostile", hostile_body);
	lives = enemy_meets();
	for (unsigned round = 0; round < ROUNDS; round++) {
		if (lives)
			lives = process_try(&enemy, &probe, &a);
		process_ask(&honest, PROBE, HOSTILE, round);
		process_ask(&other, PROBE, HOSTILE, round);
	}
	words += a.value[0];
	if (life % 3)
		process_end(&enemy, true);
	process_ask(&honest, DROP, HOSTILE, 0);
	process_ask(&other, CHECK, HOSTILE, 0);
	if (life % 3 == 0)
		process_end(&enemy, true);
}

static void other_obey(const struct order *o, enum what what, struct answer *a)
{
	(void)what;
	switch (o->code) {
	case MAKE:
		end_make(&links[THIRD], OVER_RC, &port, pd, NULL, &a->place);
		a->value[0] = (uintptr_t)secret;
		break;
	case CONNECT:
		end_connect(&links[THIRD], &o->place);
		break;
	case PROBE:
		with_third(a);
		break;
	case CHECK:
		check_secret(a);
		break;
	default:
		exit(0);
	}
}

static void other_body(int sock)
{
	open_device();
	orders_serve(sock, other_obey, 0, NULL);
}

int main(int argc, char **argv)
{
	struct answer here, there;
	unsigned lives;

	if (argc != 4)
		device_die("usage: hostile DEVICE LIVES SEED");
	device = argv[1];
	lives = (unsigned)strtoul(argv[2], NULL, 10);
	seed = strtoull(argv[3], NULL, 10);
	process_spawn(&honest, "honest", honest_body);
	process_spawn(&other, "third", other_body);
	here = process_ask(&honest, MAKE, THIRD, 0);
	there = process_ask(&other, MAKE, THIRD, 0);
	process_connect(&honest, THIRD, &there.place);
	process_connect(&other, THIRD, &here.place);
	lures = (struct spoil_lures){{honest.pid, other.pid, getpid()},
				     {here.value[0], there.value[0], here.place.addr}};
	for (life = 0; life < lives; life++)
		one_life();
	process_end(&honest, false);
	process_end(&other, false);
	if (!words)
		fail("nothing was spoilt");
	printf("%u lives, %llu words spoilt\n", lives, (unsigned long long)words);
	return 0;
}
