// SPDX-License-Identifier: BSD-2-Clause
/* Several queue pairs that receive from one pool. */
#include <dlfcn.h>
#include <infiniband/mlx5dv.h>
#include <poll.h>
#include <string.h>

#include "host.h"
#include "prm/cmd_cq_eq.h"
#include "prm/cmd_qp.h"
#include "prm/eqe.h"

#define RINGS	      ((16u << LOG_DEPTH) + (64u << LOG_DEPTH))
#define COMMAND_BYTES 4096u /* of the longest that makes an object */
#define MESSAGES      12u
#define COOKIE	      0x1234567890ull
#define PATIENT_MS    60000

/* Two queue pairs of one process, each with a peer of its own. */
struct pool {
	struct end e[2];
	struct peer p[2];
	struct flexio_rmp *rmp;
	struct mlx5dv_devx_obj *object; /* the same, for commands */
};

#define OPCODES 0x1000u

struct mlx5dv_devx_obj *created;
static struct mlx5dv_devx_obj *created_last[OPCODES];
void (*creation_change)(uint8_t *in);

struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *ctx, const void *in,
					       size_t inlen, void *out, size_t outlen)
{
	__typeof__(&mlx5dv_devx_obj_create) next;
	uint8_t changed[COMMAND_BYTES];

	*(void **)&next = dlsym(RTLD_NEXT, "mlx5dv_devx_obj_create");
	CHECK(next);
	if (creation_change) {
		CHECK(inlen <= sizeof(changed));
		memcpy(changed, in, inlen);
		creation_change(changed);
		in = changed;
	}
	created = next(ctx, in, inlen, out, outlen);
	created_last[prm_get(in, CMD_IN_OPCODE) % OPCODES] = created;
	return created;
}

struct mlx5dv_devx_obj *created_by(unsigned opcode)
{
	CHECK(created_last[opcode]);
	return created_last[opcode];
}

static void pool_open(struct pool *o)
{
	struct flexio_wq_attr list = {.log_wq_depth = LOG_DEPTH,
				      .rq.wq_type = FLEXIO_WQ_TYPE_LINKED_LIST};
	struct end *e = o->e;

	end_open(e, false, FLEXIO_QPC_ST_RC);
	list.wq_ring_qmem.daddr = end_heap(e, 32u << LOG_DEPTH, 0);
	list.wq_dbr_qmem.daddr = end_heap(e, 8, 0);
	OK(flexio_rmp_create(e->p, NULL, &list, &o->rmp));
	o->object = created;
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

static void pool_close(struct pool *o)
{
	for (unsigned i = 0; i < 2; i++)
		peer_down(&o->p[i]);
	OK(flexio_qp_destroy(o->e[1].qp));
	OK(flexio_qp_destroy(o->e[0].qp));
	o->e[0].qp = NULL;
	OK(flexio_rmp_destroy(o->rmp));
	end_close(o->e);
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
	pool_close(&o);
}

/* ---- its limit ---- */

/* Where such events go. */
struct listener {
	struct mlx5dv_devx_event_channel *channel;
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_eq *eq;
	unsigned seen; /* entries of the queue */
};

static void listener_up(struct listener *l, struct ibv_context *ctx, struct mlx5dv_devx_obj *rmp)
{
	uint8_t in[CREATE_EQ_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};
	uint16_t type = EQE_SRQ_RQ_LIMIT;

	*l = (struct listener){.channel = mlx5dv_devx_create_event_channel(ctx, 0),
			       .uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC)};
	CHECK(l->channel && l->uar);
	CHECK(!mlx5dv_devx_subscribe_devx_event(l->channel, rmp, sizeof(type), &type, COOKIE));
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_EQ);
	prm_set(in + CREATE_EQ_CONTEXT, EQC_LOG_SIZE, 3);
	prm_set(in + CREATE_EQ_CONTEXT, EQC_UAR_PAGE, l->uar->page_id);
	prm_set(in + CREATE_EQ_EVENTS, PRM_FIELD(0, 64), 1ull << EQE_SRQ_RQ_LIMIT);
	l->eq = mlx5dv_devx_create_eq(ctx, in, sizeof(in), out, sizeof(out));
	CHECK(l->eq);
}

static void listener_down(struct listener *l)
{
	CHECK(!mlx5dv_devx_destroy_eq(l->eq));
	mlx5dv_devx_free_uar(l->uar);
	mlx5dv_devx_destroy_event_channel(l->channel);
}

/* One event of that pool, at both, or none.  The queue's first round has owner 0. */
static void listener_hears(struct listener *l, bool one, uint32_t number)
{
	struct pollfd p = {.fd = l->channel->fd, .events = POLLIN};
	const uint8_t *eqe = (const uint8_t *)l->eq->vaddr + (size_t)l->seen * EQE_BYTES;
	struct {
		struct mlx5dv_devx_async_event_hdr hdr;
		uint8_t eqe[EQE_BYTES];
	} event;

	CHECK(poll(&p, 1, one ? PATIENT_MS : 0) == one);
	CHECK(one != (__atomic_load_n(eqe + EQE_BYTES - 1, __ATOMIC_ACQUIRE) & 1));
	if (!one)
		return;
	l->seen++;
	CHECK(mlx5dv_devx_get_event(l->channel, &event.hdr, sizeof(event)) == sizeof(event));
	CHECK(event.hdr.cookie == COOKIE);
	CHECK(prm_get(event.eqe, EQE_TYPE) == EQE_SRQ_RQ_LIMIT);
	CHECK(prm_get(event.eqe, EQE_QUEUE_NR) == number);
	CHECK(prm_get(eqe, EQE_TYPE) == EQE_SRQ_RQ_LIMIT && prm_get(eqe, EQE_QUEUE_NR) == number);
}

static void limit_set(struct mlx5dv_devx_obj *rmp, uint32_t number, uint32_t limit)
{
	uint8_t in[MODIFY_RMP_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};

	prm_set(in, CMD_IN_OPCODE, PRM_OP_MODIFY_RMP);
	prm_set(in, CMD_IN_NUMBER, number);
	prm_set(in, MODIFY_RMP_STATE, RMPC_STATE_RDY);
	prm_set(in, MODIFY_RMP_BITMASK, MODIFY_RMP_LWM);
	prm_set(in + MODIFY_RMP_CONTEXT + RMPC_WQ, WQ_LWM, limit);
	CHECK(!mlx5dv_devx_obj_modify(rmp, in, sizeof(in), out, sizeof(out)));
}

static uint32_t limit_of(struct mlx5dv_devx_obj *rmp, uint32_t number)
{
	uint8_t in[CMD_IN_BYTES] = {0}, out[QUERY_RMP_OUT_BYTES] = {0};

	prm_set(in, CMD_IN_OPCODE, PRM_OP_QUERY_RMP);
	prm_set(in, CMD_IN_NUMBER, number);
	CHECK(!mlx5dv_devx_obj_query(rmp, in, sizeof(in), out, sizeof(out)));
	return prm_get32(out + QUERY_RMP_CONTEXT + RMPC_WQ, WQ_LWM);
}

static void take_one(struct pool *o)
{
	peer_do(&o->p[0], "post %d 0 8", IBV_WR_SEND);
	CHECK(!peer_wait(&o->p[0]).status);
	CHECK(end_take(o->e, &o->e->received) == DONE_SEND);
}

/* The limit tells once when fewer than that are left, and has to be set again. */
static void pool_limit(void)
{
	struct pool o;
	struct listener l;
	uint32_t number;

	memset(&o, 0, sizeof(o));
	pool_open(&o);
	number = flexio_rmp_get_wq_num(o.rmp);
	listener_up(&l, o.e->ctx, o.object);
	end_receive(o.e, 8, o.e->data, 64);
	for (unsigned round = 0; round < 2; round++) {
		limit_set(o.object, number, 6);
		CHECK(limit_of(o.object, number) == 6);
		take_one(&o);
		take_one(&o);
		listener_hears(&l, false, number);
		take_one(&o);
		listener_hears(&l, true, number);
		CHECK(!limit_of(o.object, number));
		take_one(&o);
		listener_hears(&l, false, number);
		end_receive(o.e, 4, o.e->data, 64);
	}
	/* one that is above what there is tells at once */
	limit_set(o.object, number, 9);
	listener_hears(&l, true, number);
	listener_down(&l);
	pool_close(&o);
}

const struct host_case pool_cases[] = {
	{"pool", pool},
	{"pool_limit", pool_limit},
	{NULL, NULL},
};
