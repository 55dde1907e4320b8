// SPDX-License-Identifier: BSD-2-Clause
/* Several queue pairs that receive from one pool. */
#include <string.h>

#include "host.h"

#define RINGS	 ((16u << LOG_DEPTH) + (64u << LOG_DEPTH))
#define MESSAGES 12u

/* Two queue pairs of one process, each with a peer of its own. */
struct pool {
	struct end e[2];
	struct peer p[2];
	struct flexio_rmp *rmp;
};

static void pool_open(struct pool *o)
{
	struct flexio_wq_attr list = {.log_wq_depth = LOG_DEPTH,
				      .rq.wq_type = FLEXIO_WQ_TYPE_LINKED_LIST};
	struct end *e = o->e;

	end_open(e, false, FLEXIO_QPC_ST_RC);
	list.wq_ring_qmem.daddr = end_heap(e, 32u << LOG_DEPTH, 0);
	list.wq_dbr_qmem.daddr = end_heap(e, 8, 0);
	OK(flexio_rmp_create(e->p, NULL, &list, &o->rmp));
	e->made.rq_type = FLEXIO_QP_QPC_RQ_TYPE_SRQ_RMP_XRC_SRQ_XRQ;
	e->made.rmpqn = flexio_rmp_get_wq_num(o->rmp);
	o->e[1] = *e;
	o->e[1].made.qp_wq_buff_qmem.daddr = end_heap(e, RINGS, 0);
	o->e[1].made.qp_wq_dbr_qmem.daddr = end_heap(e, 8, 0);
	for (unsigned i = 0; i < 2; i++) {
		end_make(&o->e[i]);
		peer_up(&o->p[i], false, "rc", NULL);
		end_meet(&o->e[i], &o->p[i]);
	}
	e->posts.ring = list.wq_ring_qmem.daddr;
	e->posts.record = list.wq_dbr_qmem.daddr;
	e->posts.list = 1;
}

static void pool(void)
{
	struct pool o;
	struct end *e = o.e;

	memset(&o, 0, sizeof(o));
	pool_open(&o);
	/* in turns, round the list several times; each entry has its own memory */
	for (unsigned round = 0; round < 6; round++) {
		end_receive(e, MESSAGES, e->data, 4096);
		for (unsigned i = 0; i < MESSAGES; i++) {
			unsigned who = (i ^ round) & 1;

			peer_do(&o.p[who], "fill 0 %u %u", 100 + i, i);
			peer_do(&o.p[who], "post %d 0 %u", IBV_WR_SEND, 100 + i);
			CHECK(!peer_wait(&o.p[who]).status);
			CHECK(end_take(e, &e->received) == DONE_SEND);
			CHECK(e->last.bytes == 100 + i && e->last.qpn == o.e[who].qpn);
			CHECK(e->last.counter == (round * MESSAGES + i) % DEPTH);
			CHECK(end_call(e, &same, e->data + 4096ull * i, 100 + i, i) == 100 + i);
		}
	}
	/* it is empty: a sender waits */
	peer_do(&o.p[0], "post %d 0 8", IBV_WR_SEND);
	CHECK(end_quiet(e, &e->received));
	end_receive(e, 1, e->data, 4096);
	CHECK(end_take(e, &e->received) == DONE_SEND);
	FAILS(flexio_rmp_destroy(o.rmp));
	for (unsigned i = 0; i < 2; i++)
		peer_down(&o.p[i]);
	OK(flexio_qp_destroy(o.e[1].qp));
	OK(flexio_qp_destroy(e->qp));
	e->qp = NULL;
	OK(flexio_rmp_destroy(o.rmp));
	end_close(e);
}

const struct host_case pool_cases[] = {
	{"pool", pool},
	{NULL, NULL},
};
