/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors that are no single request's: what the library or the driver refuses at once, objects in
 * use, a completion queue that overruns, the error state itself.
 */
#include <errno.h>
#include <string.h>

#include "errors.h"

static bool refuses_long_inline(struct error_pair *s)
{
	static uint8_t data[4096];
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_send_wr *rejected = NULL;
	struct ibv_sge sge = {.addr = (uintptr_t)data};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE};

	/* The driver may have granted more than was asked for. */
	if (ibv_query_qp(s->roles[0].qp, &attr, IBV_QP_CAP, &init))
		device_die("ibv_query_qp: %m");
	sge.length = init.cap.max_inline_data + 1;
	if (sge.length > sizeof(data))
		return bad("max_inline_data is %u", init.cap.max_inline_data);
	return ibv_post_send(s->roles[0].qp, &wr, &rejected) && rejected == &wr ? true
										: bad("accepted");
}

static bool refuses_many_sges(struct error_pair *s)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_send_wr *rejected = NULL;
	struct ibv_sge sges[64];
	struct ibv_send_wr wr = {.sg_list = sges, .opcode = IBV_WR_SEND};

	if (ibv_query_qp(s->roles[0].qp, &attr, IBV_QP_CAP, &init))
		device_die("ibv_query_qp: %m");
	if (init.cap.max_send_sge >= 64)
		return bad("max_send_sge is %u", init.cap.max_send_sge);
	for (int i = 0; i < 64; i++)
		sges[i] = (struct ibv_sge){error_pair_range(&s->roles[0], KEY_GOOD, 1, 0), 1,
					   s->roles[0].keys[KEY_GOOD]};
	wr.num_sge = (int)init.cap.max_send_sge + 1;
	return ibv_post_send(s->roles[0].qp, &wr, &rejected) && rejected == &wr ? true
										: bad("accepted");
}

static bool refuses_transitions(struct error_pair *s)
{
	static const enum ibv_qp_state to[] = {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};
	struct ibv_qp *qp = s->roles[0].qp;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		return bad("to RESET: refused");
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		attr.qp_state = to[i];
		if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) != EINVAL)
			return bad("RESET to %d: not EINVAL", to[i]);
	}
	attr.qp_state = IBV_QPS_INIT;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) != EINVAL)
		return bad("RESET to INIT without the required attributes: not EINVAL");
	return true;
}

static bool flushes_in_error_state(struct error_pair *s)
{
	struct role *r = &s->roles[0];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_sge sge = {error_pair_range(r, KEY_GOOD, 8, 0), 8, r->keys[KEY_GOOD]};
	struct ibv_send_wr *rejected_send;
	struct ibv_recv_wr *rejected_recv;
	struct ibv_send_wr send = {.wr_id = FIRST,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr recv = {.wr_id = RECV | FIRST, .sg_list = &sge, .num_sge = 1};

	if (ibv_post_recv(r->qp, &recv, &rejected_recv))
		return bad("ibv_post_recv refused");
	if (ibv_modify_qp(r->qp, &attr, IBV_QP_STATE))
		return bad("to ERR: refused");
	if (!expect_completion(r, "posted before", RECV | FIRST, IBV_WC_WR_FLUSH_ERR,
			       IBV_WC_WR_FLUSH_ERR))
		return false;
	/* Whether posting in the error state is refused is the library's choice; if not, it
	 * flushes. */
	if (!ibv_post_recv(r->qp, &recv, &rejected_recv) &&
	    !expect_completion(r, "receive posted after", RECV | FIRST, IBV_WC_WR_FLUSH_ERR,
			       IBV_WC_WR_FLUSH_ERR))
		return false;
	return ibv_post_send(r->qp, &send, &rejected_send) ||
	       expect_completion(r, "send posted after", FIRST, IBV_WC_WR_FLUSH_ERR,
				 IBV_WC_WR_FLUSH_ERR);
}

static bool recovers_through_reset(struct error_pair *s)
{
	struct device_address address[2];
	struct ibv_send_wr *rejected;
	struct ibv_wc wc;
	static const struct error_case one_send = {.opcode = IBV_WR_SEND, .length = 64};

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 2; i++) {
			struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

			if (ibv_modify_qp(s->roles[i].qp, &attr, IBV_QP_STATE))
				return bad("to RESET: refused");
			address[i] = device_address(&s->port, s->roles[i].qp, 7);
			while (ibv_poll_cq(s->roles[i].cq, 1, &wc) > 0)
				;
		}
		for (int i = 0; i < 2; i++) {
			device_qp_init(s->roles[i].qp, &device_default_connection);
			device_qp_connect(&s->port, s->roles[i].qp, &device_default_connection,
					  &address[!i], 7);
		}
		struct role *r = &s->roles[0];
		struct ibv_sge sge = {error_pair_range(r, KEY_GOOD, 64, 0), 64, r->keys[KEY_GOOD]};
		struct ibv_send_wr wr = {.wr_id = FIRST,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};

		error_pair_post_receives(s, &one_send);
		if (ibv_post_send(r->qp, &wr, &rejected))
			return bad("ibv_post_send refused");
		if (!expect_completion(r, "requester", FIRST, IBV_WC_SUCCESS, IBV_WC_SUCCESS) ||
		    !expect_completion(&s->roles[1], "responder", RECV | FIRST, IBV_WC_SUCCESS,
				       IBV_WC_SUCCESS))
			return false;
	}
	return true;
}

static bool refuses_dealloc_in_use(struct error_pair *s)
{
	int pd = ibv_dealloc_pd(s->roles[0].pd);
	int cq = ibv_destroy_cq(s->roles[0].cq);

	return pd == EBUSY && cq == EBUSY ? true : bad("PD: %d, CQ: %d, expected EBUSY", pd, cq);
}

static bool refuses_destroying_srq_in_use(struct error_pair *s)
{
	struct role *r = &s->roles[0];
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(r->pd, &srq_init);
	struct ibv_qp_init_attr init = {.send_cq = r->cq,
					.recv_cq = r->cq,
					.srq = srq,
					.cap = {.max_send_wr = 1, .max_send_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp;
	int in_use, freed;

	if (!srq)
		device_die("ibv_create_srq: %m");
	qp = ibv_create_qp(r->pd, &init);
	if (!qp)
		device_die("ibv_create_qp: %m");
	in_use = ibv_destroy_srq(srq);
	if (ibv_destroy_qp(qp))
		device_die("ibv_destroy_qp: %m");
	freed = ibv_destroy_srq(srq);
	return in_use == EBUSY && !freed ? true : bad("in use: %d, then: %d", in_use, freed);
}

/* A request of the requester to 8 bytes at 'remote'; true if it ends with this status. */
static bool ends_with(struct error_pair *s, const char *who, enum ibv_wr_opcode opcode,
		      struct ibv_sge *sges, int n, uint64_t remote, uint32_t rkey,
		      enum ibv_wc_status status)
{
	struct ibv_send_wr *rejected, wr = {.wr_id = FIRST,
					    .sg_list = sges,
					    .num_sge = n,
					    .opcode = opcode,
					    .send_flags = IBV_SEND_SIGNALED};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	}
	if (ibv_post_send(s->roles[0].qp, &wr, &rejected))
		return bad("%s: refused", who);
	return expect_completion(&s->roles[0], who, FIRST, status, status);
}

/* The right to bind is not looked at, nor does a window hold its region. */
static bool lets_memory_of_window_go(struct error_pair *s)
{
	struct role *r = &s->roles[1];
	uint64_t at = error_pair_range(&s->roles[0], KEY_GOOD, 8, 0);
	struct ibv_sge sge = {at, 8, s->roles[0].keys[KEY_GOOD]};
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->memory, ERROR_PAIR_PAGE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mw *mw = ibv_alloc_mw(r->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.wr_id = FIRST,
				   .send_flags = IBV_SEND_SIGNALED,
				   .bind_info = {.mr = mr,
						 .addr = (uintptr_t)r->memory,
						 .length = 2 * (uint64_t)ERROR_PAIR_PAGE,
						 .mw_access_flags = IBV_ACCESS_REMOTE_READ}};
	uint64_t start = (uintptr_t)r->memory;
	bool good;

	if (!mr || !mw)
		device_die("registration with a window: %m");
	if (ibv_bind_mw(r->qp, mw, &bind))
		return bad("ibv_bind_mw refused");
	good = expect_completion(r, "bind", FIRST, IBV_WC_SUCCESS, IBV_WC_SUCCESS) &&
	       ends_with(s, "within the region", IBV_WR_RDMA_READ, &sge, 1, start, mw->rkey,
			 IBV_WC_SUCCESS);
	if (ibv_dereg_mr(mr))
		return bad("ibv_dereg_mr refused");
	good = good && ends_with(s, "region gone", IBV_WR_RDMA_READ, &sge, 1, start, mw->rkey,
				 IBV_WC_REM_ACCESS_ERR);
	if (ibv_dealloc_mw(mw))
		device_die("ibv_dealloc_mw: %m");
	return good;
}

static bool checks_range_of_window_late(struct error_pair *s)
{
	struct role *r = &s->roles[1];
	uint64_t at = error_pair_range(&s->roles[0], KEY_GOOD, 8, 0);
	struct ibv_sge sge = {at, 8, s->roles[0].keys[KEY_GOOD]};
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->memory, ERROR_PAIR_PAGE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mw *mw = ibv_alloc_mw(r->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr *rejected;
	struct ibv_send_wr bind = {
		.wr_id = FIRST,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.mw = mw,
			    .rkey = mw ? ibv_inc_rkey(mw->rkey) : 0,
			    .bind_info = {.mr = mr,
					  .addr = (uintptr_t)r->memory,
					  .length = 2 * ERROR_PAIR_PAGE,
					  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}}};
	uint32_t rkey = bind.bind_mw.rkey;
	bool good;

	if (!mr || !mw)
		device_die("registration with a window: %m");
	if (ibv_post_send(r->qp, &bind, &rejected))
		return bad("IBV_WR_BIND_MW refused");
	good = expect_completion(r, "bind", FIRST, IBV_WC_SUCCESS, IBV_WC_SUCCESS) &&
	       ends_with(s, "within the region", IBV_WR_RDMA_WRITE, &sge, 1,
			 (uintptr_t)r->memory + ERROR_PAIR_PAGE - 8, rkey, IBV_WC_SUCCESS) &&
	       ends_with(s, "behind the region", IBV_WR_RDMA_WRITE, &sge, 1,
			 (uintptr_t)r->memory + ERROR_PAIR_PAGE - 7, rkey, IBV_WC_REM_ACCESS_ERR);
	if (ibv_dealloc_mw(mw) || ibv_dereg_mr(mr))
		device_die("ibv_dealloc_mw: %m");
	return good;
}

/* The kernel's mlx5_ib looks at the flag for device memory only. */
static bool ignores_zero_based(struct error_pair *s)
{
	struct role *r = &s->roles[1];
	uint64_t at = error_pair_range(&s->roles[0], KEY_GOOD, 8, 0);
	struct ibv_sge sge = {at, 8, s->roles[0].keys[KEY_GOOD]};
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->memory, ERROR_PAIR_PAGE,
				       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED);
	bool good;

	if (!mr)
		device_die("ibv_reg_mr: %m");
	good = ends_with(s, "by address", IBV_WR_RDMA_READ, &sge, 1, (uintptr_t)r->memory, mr->rkey,
			 IBV_WC_SUCCESS) &&
	       ends_with(s, "by offset", IBV_WR_RDMA_READ, &sge, 1, 0, mr->rkey,
			 IBV_WC_REM_ACCESS_ERR);
	if (ibv_dereg_mr(mr))
		device_die("ibv_dereg_mr: %m");
	return good;
}

/* The entries for an atomic's answer may have any lengths; libmlx5 makes 8 of each.  Without one the
 * answer goes nowhere. */
static bool takes_any_list_of_atomic(struct error_pair *s)
{
	struct role *r = &s->roles[0], *peer = &s->roles[1];
	uint8_t *at = (uint8_t *)(uintptr_t)error_pair_range(r, KEY_GOOD, 64, 0);
	uint8_t *word = (uint8_t *)(uintptr_t)error_pair_range(peer, KEY_GOOD, 8, 0);
	static const uint32_t lengths[][2] = {{9, 0}, {4, 4}, {7, 0}, {0, 0}};
	uint64_t was = 0x1122334455667788;

	memcpy(word, &was, sizeof(was));
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t first = lengths[i][0], second = lengths[i][1];
		struct ibv_sge sges[] = {{(uintptr_t)at, first, r->keys[KEY_GOOD]},
					 {(uintptr_t)at + 64, second, r->keys[KEY_GOOD]}};
		uint8_t want[128];

		memset(at, 0xee, sizeof(want));
		memset(want, 0xee, sizeof(want));
		if (first)
			memcpy(want, &was, sizeof(was));
		if (!ends_with(s, "atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, sges, second ? 2 : !!first,
			       (uintptr_t)word, peer->keys[KEY_GOOD], IBV_WC_SUCCESS))
			return false;
		was++;
		if (memcmp(word, &was, sizeof(was)) != 0)
			return bad("%u and %u bytes: not executed", first, second);
		if (memcmp(at, want, sizeof(want)) != 0)
			return bad("%u and %u bytes: not in place", first, second);
	}
	return true;
}

/* IBTA 11.6.3.3, CQ error: the queue is lost, and with it those that complete to it. */
static bool reports_cq_overrun(struct error_pair *s)
{
	struct role *r = &s->roles[0], *peer = &s->roles[1];
	struct ibv_sge sge = {error_pair_range(r, KEY_GOOD, 8, 0), 8, r->keys[KEY_GOOD]};
	struct ibv_send_wr wr = {.wr_id = FIRST,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {error_pair_range(peer, KEY_GOOD, 8, 0),
					     peer->keys[KEY_GOOD]}};
	struct ibv_send_wr *rejected;
	struct ibv_async_event event;
	struct ibv_qp_init_attr init = {.cap = {.max_send_wr = 512, .max_send_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_cq *cq = ibv_create_cq(s->port.ctx, 1, NULL, NULL, 0);
	struct device_address there, here;
	struct ibv_qp *qp;
	bool good = false;

	if (!cq)
		device_die("ibv_create_cq: %m");
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(r->pd, &init);
	if (!qp)
		device_die("ibv_create_qp: %m");
	here = device_address(&s->port, qp, 7);
	there = device_address(&s->port, peer->qp, 7);
	if (ibv_modify_qp(peer->qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE))
		device_die("to RESET: %m");
	device_qp_init(peer->qp, &device_default_connection);
	device_qp_connect(&s->port, peer->qp, &device_default_connection, &here, 7);
	device_qp_init(qp, &device_default_connection);
	device_qp_connect(&s->port, qp, &device_default_connection, &there, 7);
	for (int i = 0; i < cq->cqe + 2; i++) {
		if (ibv_post_send(qp, &wr, &rejected))
			device_die("ibv_post_send refused");
	}
	while (error_pair_event_within(s, &event, 2000)) {
		if (event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq)
			good = true;
		ibv_ack_async_event(&event);
		if (good)
			break;
	}
	if (!good)
		bad("no event after %d completions in a queue of %d", cq->cqe + 2, cq->cqe);
	if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq))
		device_die("after the overrun: %m");
	return good;
}

const struct special_case special_cases[] = {
	{"inline data one byte too long", refuses_long_inline},
	{"one entry too many", refuses_many_sges},
	{"forbidden state transitions", refuses_transitions},
	{"flush in the error state", flushes_in_error_state},
	{"reset and use again", recovers_through_reset},
	{"PD and CQ in use are not destroyed", refuses_dealloc_in_use},
	{"SRQ in use is not destroyed", refuses_destroying_srq_in_use},
	{"memory under a window is deregistered", lets_memory_of_window_go},
	{"a window beyond its region", checks_range_of_window_late},
	{"zero-based region", ignores_zero_based},
	{"atomic into lists of other lengths", takes_any_list_of_atomic},
	{"completion queue overrun", reports_cq_overrun},
};

const size_t special_case_count = sizeof(special_cases) / sizeof(special_cases[0]);
