// SPDX-License-Identifier: BSD-2-Clause
/* Orders, and an end of a connected pair; see steps.h. */
#include "steps.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void order_wait(int sock, struct order *o)
{
	if (recv(sock, o, sizeof(*o), 0) != sizeof(*o))
		_exit(1);
}

static bool order_ready(int sock)
{
	struct pollfd fd = {.fd = sock, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

void answer_send(int sock, const struct answer *a)
{
	if (send(sock, a, sizeof(*a), MSG_NOSIGNAL) != sizeof(*a))
		_exit(1);
}

void orders_serve(int sock, obey_fn *obey, enum what what, bool (*idle)(void))
{
	for (;;) {
		struct answer a = {0};
		struct order o;

		while (idle && !order_ready(sock) && idle())
			;
		order_wait(sock, &o);
		obey(&o, what, &a);
		answer_send(sock, &a);
	}
}

void complain(struct answer *a, const char *format, ...)
{
	va_list args;

	if (a->complaint[0])
		return;
	va_start(args, format);
	vsnprintf(a->complaint, sizeof(a->complaint), format, args);
	va_end(args);
}

bool all_are(const uint8_t *mem, size_t bytes, uint8_t value)
{
	return !bytes || (mem[0] == value && !memcmp(mem, mem + 1, bytes - 1));
}

static uint8_t *map_pages(size_t bytes)
{
	uint8_t *p = device_memory(bytes);

	memset(p, BYTE_OLD, bytes);
	return p;
}

void end_make(struct end *e, enum transport transport, struct device_port *port, struct ibv_pd *pd,
	      struct ibv_cq *cq, struct place *where)
{
	*e = (struct end){.transport = transport, .port = port, .pd = pd};
	e->cq = cq ? cq : ibv_create_cq(port->ctx, 4 * STEPS_DEPTH, NULL, NULL, 0);
	e->mem = map_pages(STEPS_BYTES);
	e->own = map_pages(2ul * STEPS_BYTES);
	e->mr = ibv_reg_mr(pd, e->mem, STEPS_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	e->own_mr = ibv_reg_mr(pd, e->own, 2ul * STEPS_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!e->cq || !e->mr || !e->own_mr)
		device_die("no MR or CQ: %m");
	queues_make(e);
	e->target_qpn = e->target->qp_num;
	*where = (struct place){
		.address = device_address(port, e->target, STEPS_FIRST_PSN),
		.initiator = e->qp->qp_num,
		.addr = (uintptr_t)e->mem,
		.rkey = e->mr->rkey,
	};
	if (transport == OVER_XRC && ibv_get_srq_num(e->srq, &where->srqn))
		device_die("ibv_get_srq_num: %m");
}

void end_connect(struct end *e, const struct place *peer)
{
	e->peer = *peer;
	queues_connect(e);
}

/* Messages arrive in the memory that the peer may reach anyway: what revokes that revokes them. */
void end_receive(struct end *e, unsigned n)
{
	while (n--) {
		size_t at = e->receives++ % STEPS_RECEIVES * (STEPS_BYTES / STEPS_RECEIVES);
		struct ibv_sge sge = {(uintptr_t)e->mem + at, STEPS_MESSAGE, e->mr->lkey};
		struct ibv_recv_wr *bad,
			wr = {.wr_id = STEPS_RECV_ID, .sg_list = &sge, .num_sge = 1};

		if (e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) : ibv_post_recv(e->qp, &wr, &bad))
			device_die("a receive cannot be posted: %m");
	}
}

void end_post(struct end *e, const struct request *r, unsigned n)
{
	queues_post(e, r, n);
	e->posted += n;
}

void end_post_all(struct end *e, uint64_t id)
{
	const struct request all[] = {
		{IBV_WR_RDMA_WRITE, id, 0, 0, STEPS_BYTES},
		{IBV_WR_RDMA_WRITE, id, 0, 0, 8},
		{IBV_WR_RDMA_READ, id, STEPS_BYTES, 0, STEPS_BYTES},
		{IBV_WR_SEND, id, 0, 0, STEPS_MESSAGE},
	};

	for (unsigned i = 0; i < 3; i++)
		end_post(e, &all[i], 1);
	if (e->sent + 1 < STEPS_RECEIVES) {
		e->sent++;
		end_post(e, &all[3], 1);
	}
}

void end_completed(struct end *e, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS && !e->status)
		e->status = wc->status;
	if (wc->wr_id == STEPS_RECV_ID) {
		e->received++;
		return;
	}
	e->done++;
	if (wc->status != IBV_WC_SUCCESS) {
		e->failed++;
		return;
	}
	e->good_ids |= 1ull << (wc->wr_id & 63);
	if (wc->wr_id > e->last_good)
		e->last_good = wc->wr_id;
}

enum ibv_qp_state qp_state_of(struct ibv_qp *qp, struct answer *a)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int err = ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);

	if (err)
		complain(a, "ibv_query_qp: %s", strerror(err));
	return err ? IBV_QPS_UNKNOWN : attr.qp_state;
}

void qp_to_state(struct ibv_qp *qp, enum ibv_qp_state state, struct answer *a)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int err = ibv_modify_qp(qp, &attr, IBV_QP_STATE);

	if (err)
		complain(a, "ibv_modify_qp to state %d: %s", (int)state, strerror(err));
}

int end_destroy_target(struct end *e)
{
	int err = ibv_destroy_qp(e->target);

	if (e->qp == e->target)
		e->qp = NULL;
	e->target = NULL;
	return err;
}

enum ibv_qp_state end_ready_state(const struct end *e)
{
	return e->transport == OVER_RC ? IBV_QPS_RTS : IBV_QPS_RTR;
}
