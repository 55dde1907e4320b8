// SPDX-License-Identifier: BSD-2-Clause
/*
 * The process that must not notice what becomes of a walker, and the third with which it has other
 * business meanwhile; see steps.h.
 *
 * Its ends of links with odd numbers share the CQ of the queue pair to the third.
 */
#include "steps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROBE_MOST    24u /* requests outstanding */
#define SETTLE_NAP_US 1000u

static struct device_port port;
static struct ibv_pd *pd;
static struct ibv_cq *shared_cq;
static struct end links[STEPS_MOST];
static struct end to_third, fresh;
static uint64_t number;		      /* the last that was written */
static enum transport link_transport; /* of links to walkers */

static bool end_has(const struct end *e, uint32_t qpn)
{
	return (e->qp && e->qp->qp_num == qpn) || (e->target && e->target->qp_num == qpn);
}

static struct end *end_of(uint32_t qpn)
{
	if (end_has(&to_third, qpn))
		return &to_third;
	if (end_has(&fresh, qpn))
		return &fresh;
	for (unsigned i = 0; i < STEPS_MOST; i++)
		if (end_has(&links[i], qpn))
			return &links[i];
	/* A message stays in the CQ of a shared receive queue when its target has gone. */
	for (unsigned i = 0; i < STEPS_MOST; i++)
		if (links[i].srq && links[i].target_qpn == qpn)
			return &links[i];
	return NULL;
}

static void poll_cq(struct ibv_cq *cq)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, 16, wc);

	if (n < 0)
		device_die("ibv_poll_cq fails");
	for (int i = 0; i < n; i++) {
		struct end *e = end_of(wc[i].qp_num);

		if (!e)
			device_die("a completion of queue pair %#x, which has gone", wc[i].qp_num);
		end_completed(e, &wc[i]);
	}
}

static void poll_end(struct end *e)
{
	poll_cq(e->cq);
	poll_cq(shared_cq);
}

static void wait_requests(struct end *e)
{
	while (e->done < e->posted)
		poll_end(e);
}

static void warm_up(struct end *e, struct answer *a)
{
	end_post_all(e, 0);
	wait_requests(e);
	if (e->failed)
		complain(a, "first requests: %s", ibv_wc_status_str(e->status));
}

/* ---- while the walker stands still or is dead ---- */

/* Memory is registered and a queue pair made, connected to the walker's process, used and taken
 * down.  The walker's end listens to another one and does not answer. */
static void come_and_go(const struct end *e, struct answer *a)
{
	struct place here;

	end_make(&fresh, OVER_RC, e->port, e->pd, NULL, &here);
	end_connect(&fresh, &e->peer);
	end_post_all(&fresh, 1);
	qp_to_state(fresh.qp, IBV_QPS_ERR, a);
	while (fresh.done < fresh.posted)
		poll_end(&fresh);
	if (fresh.good_ids)
		complain(a, "a request succeeds that nobody listens to");
	if (queues_destroy(&fresh) || ibv_dereg_mr(fresh.mr) || ibv_dereg_mr(fresh.own_mr) ||
	    ibv_destroy_cq(fresh.cq))
		complain(a, "something cannot be destroyed: %m");
	munmap(fresh.mem, STEPS_BYTES);
	munmap(fresh.own, 2ul * STEPS_BYTES);
}

static void look_at(struct end *e, struct answer *a)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .min_rnr_timer = 11};
	int mask = IBV_QP_STATE | (e->transport == OVER_XRC ? 0 : IBV_QP_MIN_RNR_TIMER);
	enum ibv_qp_state state = e->qp ? qp_state_of(e->qp, a) : IBV_QPS_RESET;

	if (e->target)
		(void)qp_state_of(e->target, a);
	poll_end(e);
	if (state == IBV_QPS_RTS) {
		/* Dead peers may bring it into the error state at any time. */
		int err = ibv_modify_qp(e->qp, &attr, mask);

		if (err && qp_state_of(e->qp, a) == IBV_QPS_RTS)
			complain(a, "ibv_modify_qp: %s", strerror(err));
	}
	end_receive(&to_third, 1);
	to_third.sent = 0;
	end_post_all(&to_third, 1);
	wait_requests(&to_third);
	if (to_third.failed)
		complain(a, "requests to the third: %s", ibv_wc_status_str(to_third.status));
	come_and_go(e, a);
}

static void reap_completions(void)
{
	while (to_third.received < to_third.receives)
		poll_end(&to_third);
}

static void probe_walker(struct end *e)
{
	poll_end(e);
	if (e->posted - e->done > PROBE_MOST)
		return;
	number++;
	for (size_t i = 0; i < STEPS_BYTES; i += sizeof(number))
		memcpy(e->own + i, &number, sizeof(number));
	end_post_all(e, number);
}

/* Without the error it takes the seconds of all retries, in which others have work for the processor. */
static void settle_requests(struct end *e, bool error, struct answer *a)
{
	if (error)
		qp_to_state(e->qp, IBV_QPS_ERR, a);
	while (e->done < e->posted) {
		poll_end(e);
		if (!error)
			usleep(SETTLE_NAP_US);
	}
	a->value[0] = e->failed;
	a->value[1] = e->last_good;
}

/* ---- the target's side of a request of the walker ---- */

static uint64_t old_number(void)
{
	uint64_t old;

	memset(&old, BYTE_OLD, sizeof(old));
	return old;
}

/* The parts of the walker's request that have arrived. */
static uint64_t parts_arrived(const struct end *e, enum what what)
{
	uint64_t parts = 0, now;

	switch (what) {
	case WRITE_8:
		return all_are(e->mem, 8, BYTE_NEW);
	case WRITE_64K:
		return all_are(e->mem, STEPS_BYTES, BYTE_NEW);
	case LIST_16:
		for (unsigned i = 0; i < STEPS_PARTS; i++) {
			const uint8_t *at = e->mem + (size_t)i * (STEPS_BYTES / STEPS_PARTS);

			if (all_are(at, STEPS_PART, BYTE_NEW))
				parts |= 1ull << i;
		}
		return parts;
	case SEND: /* two messages came before it */
		return all_are(e->mem + 2ul * (STEPS_BYTES / STEPS_RECEIVES), STEPS_MESSAGE,
			       BYTE_NEW);
	case FETCH_ADD:
		memcpy(&now, e->mem, sizeof(now));
		return now == old_number() + 1;
	default:
		return ~0ull;
	}
}

static void take_back(struct end *e, enum what what, enum revoke how, struct answer *a)
{
	int err = 0;

	switch (how) {
	case BY_NOTHING:
	case REVOKES:
		return;
	case BY_DEREG:
		err = ibv_dereg_mr(e->mr);
		e->mr = NULL;
		break;
	case BY_REREG:
		err = ibv_rereg_mr(e->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0);
		break;
	case BY_ERROR:
		qp_to_state(e->target, IBV_QPS_ERR, a);
		break;
	case BY_RESET:
		qp_to_state(e->target, IBV_QPS_RESET, a);
		break;
	case BY_DESTROY:
		err = end_destroy_target(e);
		break;
	}
	if (err)
		complain(a, "the access cannot be taken back: %s", strerror(err));
	a->value[0] = parts_arrived(e, what);
	memset(e->mem, BYTE_POISON, STEPS_BYTES);
}

static void verify_parts(struct end *e, enum what what, struct answer *a)
{
	uint64_t want = what == LIST_16 ? (1ull << STEPS_PARTS) - 1 : 1;
	uint32_t messages = what == SEND ? 3 : 2;

	poll_end(e);
	if ((parts_arrived(e, what) & want) != want)
		complain(a, "the request succeeded, but parts %#llx of %#llx arrived",
			 (unsigned long long)parts_arrived(e, what), (unsigned long long)want);
	if (e->received != messages || e->status)
		complain(a, "%u receives completed instead of %u, first error: %s", e->received,
			 messages, ibv_wc_status_str(e->status));
}

/* Whatever became of the peer: each request and each receive of a queue pair's own completes, and all can be
 * taken down. */
static void drop_end(struct end *e, struct answer *a)
{
	enum ibv_qp_state state = e->qp ? qp_state_of(e->qp, a) : IBV_QPS_RESET;

	if (state != IBV_QPS_RESET) {
		qp_to_state(e->qp, IBV_QPS_ERR, a);
		while ((!e->srq && e->received < e->receives) || e->done < e->posted)
			poll_end(e);
	}
	if (queues_destroy(e))
		complain(a, "the queue pair cannot be destroyed: %m");
	if (e->mr && ibv_dereg_mr(e->mr))
		complain(a, "ibv_dereg_mr: %m");
	if (ibv_dereg_mr(e->own_mr))
		complain(a, "ibv_dereg_mr: %m");
	if (e->cq != shared_cq && ibv_destroy_cq(e->cq))
		complain(a, "ibv_destroy_cq: %m");
	e->cq = shared_cq;
}

/* ---- orders ---- */

/* The link whose traffic goes on until the next order. */
static struct end *busy;

static bool traffic_goes_on(void)
{
	if (busy)
		probe_walker(busy);
	return busy;
}

static void witness_obey(const struct order *o, enum what what, struct answer *a)
{
	struct end *e = o->link < STEPS_MOST ? &links[o->link] : &to_third;

	busy = NULL;
	switch (o->code) {
	case MAKE:
		end_make(e, e == &to_third ? OVER_RC : link_transport, &port, pd,
			 o->arg ? shared_cq : NULL, &a->place);
		break;
	case CONNECT:
		end_connect(e, &o->place);
		if (e != &to_third)
			end_receive(e, STEPS_RECEIVES);
		break;
	case WARM_UP:
		warm_up(e, a);
		break;
	case FILL:
		memset(e->mem, BYTE_OLD, STEPS_BYTES);
		break;
	case LOOK:
		look_at(e, a);
		break;
	case REAP:
		reap_completions();
		break;
	case REVOKE:
		take_back(e, what, (enum revoke)o->arg, a);
		break;
	case VERIFY:
		verify_parts(e, what, a);
		break;
	case PROBE:
		probe_walker(e);
		break;
	case TRAFFIC:
		busy = e;
		break;
	case SETTLE:
		settle_requests(e, o->arg, a);
		break;
	case CHECK:
		if (!all_are(e->mem, STEPS_BYTES, BYTE_POISON))
			complain(a, "memory changed after the peer's access was taken back");
		break;
	case DROP:
		drop_end(e, a);
		break;
	case QUIT:
		_exit(0);
	default:
		complain(a, "order %u is unknown", o->code);
		break;
	}
}

static void open_device(const char *device)
{
	device_port_open(&port, device, -1);
	pd = ibv_alloc_pd(port.ctx);
	shared_cq = ibv_create_cq(port.ctx, STEPS_MOST * STEPS_RECEIVES * 2, NULL, NULL, 0);
	if (!pd || !shared_cq)
		device_die("no PD or CQ: %m");
}

void witness(int sock, const char *device, enum what what, enum transport transport)
{
	link_transport = transport;
	open_device(device);
	orders_serve(sock, witness_obey, what, traffic_goes_on);
}

/* ---- the third ---- */

static void third_obey(const struct order *o, enum what what, struct answer *a)
{
	struct end *e = &to_third;

	(void)what;
	switch (o->code) {
	case MAKE:
		end_make(e, OVER_RC, &port, pd, shared_cq, &a->place);
		break;
	case CONNECT:
		end_connect(e, &o->place);
		break;
	case RECEIVE:
		poll_end(e);
		end_receive(e, 1);
		break;
	case TALK:
		e->sent = 0;
		end_post_all(e, 1);
		wait_requests(e);
		if (e->failed)
			complain(a, "the third's requests: %s", ibv_wc_status_str(e->status));
		break;
	default:
		_exit(0);
	}
}

void third(int sock, const char *device)
{
	open_device(device);
	orders_serve(sock, third_obey, 0, NULL);
}
