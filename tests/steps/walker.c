// SPDX-License-Identifier: BSD-2-Clause
/* The process that is taken through a call; see steps.h. */
#include "steps.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "walk.h"

#define EPILOGUE_ID 32u

static struct end me;
static struct device_port port;

static void poll_once(void)
{
	struct ibv_wc wc[8];
	int n = ibv_poll_cq(me.cq, 8, wc);

	if (n < 0)
		device_die("ibv_poll_cq fails");
	for (int i = 0; i < n; i++)
		end_completed(&me, &wc[i]);
}

static void wait_all(void)
{
	while (me.done < me.posted)
		poll_once();
}

/* ---- the calls ---- */

static void post_list(void)
{
	struct request parts[STEPS_PARTS];

	for (unsigned i = 0; i < STEPS_PARTS; i++) {
		size_t at = (size_t)i * (STEPS_BYTES / STEPS_PARTS);

		parts[i] = (struct request){IBV_WR_RDMA_WRITE, i, at, at, STEPS_PART};
	}
	walk_begin();
	end_post(&me, parts, STEPS_PARTS);
	walk_end();
}

static void post_one(enum ibv_wr_opcode opcode, size_t local, uint32_t bytes)
{
	const struct request r = {opcode, 0, local, 0, bytes};

	walk_begin();
	end_post(&me, &r, 1);
	walk_end();
}

static void rereg_region(struct answer *a)
{
	int err;

	walk_begin();
	/* Not the local right either: receives point there, and a SEND may be under way. */
	err = ibv_rereg_mr(me.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0);
	walk_end();
	if (err)
		complain(a, "ibv_rereg_mr: %d", err);
}

static void dereg_region(struct answer *a)
{
	int err;

	walk_begin();
	err = ibv_dereg_mr(me.mr);
	walk_end();
	if (err)
		complain(a, "ibv_dereg_mr: %s", strerror(err));
}

static void destroy_queue(struct answer *a)
{
	int err;

	walk_begin();
	err = end_destroy_target(&me);
	walk_end();
	if (err)
		complain(a, "ibv_destroy_qp: %s", strerror(err));
}

static void to_state(enum ibv_qp_state state, struct answer *a)
{
	walk_begin();
	qp_to_state(me.target, state, a);
	walk_end();
}

static void query_qp(struct answer *a)
{
	enum ibv_qp_state state;

	walk_begin();
	state = qp_state_of(me.target, a);
	walk_end();
	if (state != end_ready_state(&me))
		complain(a, "the queue pair is in state %d", (int)state);
}

static void poll_walked(void)
{
	walk_begin();
	poll_once();
	walk_end();
}

static void step_call(enum what what, struct answer *a)
{
	switch (what) {
	case WRITE_8:
		post_one(IBV_WR_RDMA_WRITE, 0, 8);
		break;
	case WRITE_64K:
		post_one(IBV_WR_RDMA_WRITE, 0, STEPS_BYTES);
		break;
	case READ_64K:
		post_one(IBV_WR_RDMA_READ, STEPS_BYTES, STEPS_BYTES);
		break;
	case LIST_16:
		post_list();
		break;
	case SEND:
		post_one(IBV_WR_SEND, 0, STEPS_MESSAGE);
		break;
	case FETCH_ADD:
		post_one(IBV_WR_ATOMIC_FETCH_AND_ADD, STEPS_BYTES, 8);
		break;
	case DEREG:
		dereg_region(a);
		break;
	case REREG:
		rereg_region(a);
		break;
	case TO_ERROR:
		to_state(IBV_QPS_ERR, a);
		break;
	case TO_RESET:
		to_state(IBV_QPS_RESET, a);
		break;
	case DESTROY:
		destroy_queue(a);
		break;
	case QUERY:
		query_qp(a);
		break;
	case POLL:
	case WHATS:
		poll_walked();
		break;
	}
	/* The first thing after the call: what was there when it returned, then what must stay. */
	if (what_revokes(what)) {
		memcpy(&a->value[0], me.mem, sizeof(a->value[0]));
		memset(me.mem, BYTE_POISON, STEPS_BYTES);
	}
}

/* ---- orders ---- */

static void warm_up(struct answer *a)
{
	end_post_all(&me, 0);
	end_post_all(&me, 0);
	wait_all();
	if (me.failed)
		complain(a, "first requests: %s", ibv_wc_status_str(me.status));
	me.good_ids = 0;
}

static void finish_call(enum what what, bool error, struct answer *a)
{
	if (error)
		qp_to_state(me.qp, IBV_QPS_ERR, a);
	wait_all();
	a->value[0] = me.good_ids;
	a->value[1] = me.status;
	if (what == READ_64K && me.good_ids & 1 &&
	    !all_are(me.own + STEPS_BYTES, STEPS_BYTES, BYTE_OLD))
		complain(a, "a READ that succeeded brought other bytes than were there");
}

static void write_after(struct answer *a)
{
	memset(me.own, BYTE_NEW, STEPS_BYTES);
	end_post_all(&me, EPILOGUE_ID);
	wait_all();
	if (me.failed)
		complain(a, "requests after the walk: %s", ibv_wc_status_str(me.status));
	if (!all_are(me.own + STEPS_BYTES, STEPS_BYTES, BYTE_NEW))
		complain(a, "a READ does not bring what a WRITE before it wrote");
}

static void walker_obey(const struct order *o, enum what what, struct answer *a)
{
	switch (o->code) {
	case CONNECT:
		end_connect(&me, &o->place);
		end_receive(&me, STEPS_RECEIVES);
		break;
	case WARM_UP:
		warm_up(a);
		break;
	case STEP:
		memset(me.own, BYTE_NEW, STEPS_BYTES);
		step_call(what, a);
		break;
	case FINISH:
		finish_call(what, o->arg, a);
		break;
	case EPILOGUE:
		write_after(a);
		break;
	case CHECK:
		if (!all_are(me.mem, STEPS_BYTES, BYTE_POISON))
			complain(a, "memory changed after the peer's access was taken back");
		break;
	default:
		_exit(0);
	}
}

void walker(int sock, const char *device, enum what what, enum transport transport)
{
	struct answer made = {0};
	struct ibv_pd *pd;

	device_port_open(&port, device, -1);
	pd = ibv_alloc_pd(port.ctx);
	if (!pd)
		device_die("no PD: %m");
	end_make(&me, transport, &port, pd, NULL, &made.place);
	answer_send(sock, &made);
	orders_serve(sock, walker_obey, what, NULL);
}
