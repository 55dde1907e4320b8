/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that must fail, and exactly how: the completion status on both sides, the states of both
 * queue pairs, the flushing of what was posted behind, and memory that must not have changed.
 * Prints a line for each case: PASS or FAIL, name, reason.  A program of libibverbs alone.
 */
#include "errors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FIRST  1u /* wr_id of the request under test, and of the receive that it would use */
#define SECOND 2u
#define RECV   0x100u

static char complaint[256];

/* Keeps the first complaint of a case. */
static bool bad(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool bad(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!complaint[0])
		vsnprintf(complaint, sizeof(complaint), format, args);
	va_end(args);
	return false;
}

static uint8_t pattern(const struct role *r, uint32_t i)
{
	return (uint8_t)((uintptr_t)r->qp + i * 7 + (i >> 8) * 31);
}

/* The start of a range of this length that sticks out of the registration by 'over'. */
static uint64_t range(const struct role *r, enum key key, uint32_t length, uint32_t over)
{
	const uint8_t *memory = key == KEY_UNMAPPED ? r->vanished : r->memory;
	const uint8_t *start = memory + SCENE_MR_AT + (over ? SCENE_MR_LEN - length + over : 512);

	return (uintptr_t)start;
}

static void post_receives(struct scene *s, const struct error_case *c)
{
	struct role *r = &s->roles[1];
	uint32_t grh = c->type == IBV_QPT_UD ? 40 : 0;

	for (unsigned i = FIRST; i <= SECOND; i++) {
		struct ibv_recv_wr *rejected;
		uint32_t length = (c->receive_length ? c->receive_length : c->length) + grh;
		struct ibv_sge sge = {range(r, c->receive, length, 0), length, r->keys[c->receive]};
		struct ibv_recv_wr wr = {.wr_id = RECV | i, .sg_list = &sge, .num_sge = 1};
		int err = ibv_post_recv(r->qp, &wr, &rejected);

		if (err)
			rig_die("ibv_post_recv: %s", strerror(err));
	}
}

/* The request under test, and an innocent one behind it. */
static void post_requests(struct scene *s, const struct error_case *c)
{
	struct role *r = &s->roles[0];
	struct role *peer = &s->roles[1];
	struct ibv_send_wr *rejected;
	struct ibv_sge sge = {range(r, c->local, c->length, c->local_over), c->length,
			      r->keys[c->local]};
	struct ibv_sge good = {range(r, KEY_GOOD, 8, 0), 8, r->keys[KEY_GOOD]};
	struct ibv_send_wr behind = {.wr_id = SECOND,
				     .sg_list = &good,
				     .num_sge = 1,
				     .opcode = IBV_WR_SEND,
				     .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr wr = {.wr_id = FIRST,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = c->opcode,
				 .send_flags = IBV_SEND_SIGNALED};
	uint64_t remote = range(peer, c->remote, c->length, c->remote_over) + c->remote_shift;
	int err;

	if (c->type != IBV_QPT_UD && c->type != IBV_QPT_UC)
		wr.next = &behind;
	switch (c->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = peer->keys[c->remote];
		wr.wr.atomic.compare_add = 1;
		break;
	case IBV_WR_SEND:
		if (!s->ah)
			break;
		wr.wr.ud.ah = s->ah;
		wr.wr.ud.remote_qpn = peer->qp->qp_num;
		wr.wr.ud.remote_qkey = RIG_QKEY + c->wrong_qkey;
		break;
	default:
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = peer->keys[c->remote];
	}
	if (c->no_peer) {
		err = ibv_destroy_qp(peer->qp);
		peer->qp = NULL;
		if (err)
			rig_die("ibv_destroy_qp: %s", strerror(err));
	}
	err = ibv_post_send(r->qp, &wr, &rejected);
	if (err)
		rig_die("ibv_post_send: %s", strerror(err));
}

static bool expect_completion(struct role *r, const char *who, uint64_t wr_id,
			      enum ibv_wc_status status, enum ibv_wc_status or_status)
{
	struct ibv_wc wc;

	if (!scene_completion(r, &wc))
		return bad("%s: no completion %lu", who, wr_id);
	if (wc.wr_id != wr_id)
		return bad("%s: completion %lu, expected %lu", who, wc.wr_id, wr_id);
	if (wc.status != status && wc.status != or_status)
		return bad("%s: '%s', expected '%s'", who, ibv_wc_status_str(wc.status),
			   ibv_wc_status_str(status));
	return true;
}

static bool check_requester(struct scene *s, const struct error_case *c)
{
	struct role *r = &s->roles[0];
	/* 0 is SUCCESS: an alternative only where the table names one. */
	enum ibv_wc_status or_status = c->requester_or ? c->requester_or : c->requester;

	if (!expect_completion(r, "requester", FIRST, c->requester, or_status))
		return false;
	if (c->requester != IBV_WC_SUCCESS &&
	    !expect_completion(r, "requester, behind", SECOND, IBV_WC_WR_FLUSH_ERR,
			       IBV_WC_WR_FLUSH_ERR))
		return false;
	if (rig_qp_state(r->qp) != c->states[0])
		return bad("requester in state %d, expected %d", rig_qp_state(r->qp), c->states[0]);
	return true;
}

static bool check_responder(struct scene *s, const struct error_case *c)
{
	struct role *r = &s->roles[1];
	struct ibv_wc wc;

	if (c->responder != STATUS_NONE && !c->no_receive) {
		enum ibv_wc_status status = (enum ibv_wc_status)c->responder;

		if (!expect_completion(r, "responder", RECV | FIRST, status, status) ||
		    !expect_completion(r, "responder, behind", RECV | SECOND, IBV_WC_WR_FLUSH_ERR,
				       IBV_WC_WR_FLUSH_ERR))
			return false;
	} else {
		/* What has not come by now is not on its way: the requester is done. */
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
		if (ibv_poll_cq(r->cq, 1, &wc))
			return bad("responder: completion %lu, '%s'; expected none", wc.wr_id,
				   ibv_wc_status_str(wc.status));
	}
	if (r->qp && rig_qp_state(r->qp) != c->states[1])
		return bad("responder in state %d, expected %d", rig_qp_state(r->qp), c->states[1]);
	return true;
}

static bool run_case(const struct error_case *c, const char *device, int gid_index)
{
	struct scene s;
	uint8_t *before[2];
	bool good;

	scene_open(&s, device, gid_index, c);
	for (int i = 0; i < 2; i++) {
		struct role *r = &s.roles[i];

		before[i] = malloc(SCENE_BYTES);
		if (!before[i])
			rig_die("out of memory");
		for (uint32_t b = 0; b < SCENE_BYTES; b++)
			before[i][b] = r->memory[b] = pattern(r, b);
	}
	if (!c->no_receive)
		post_receives(&s, c);
	post_requests(&s, c);
	good = check_requester(&s, c) && check_responder(&s, c);
	/*
	 * No byte may have changed on either side, except where the specification leaves a buffer
	 * undefined: by a message whose receive failed, and by the packets that a requester sent
	 * before it came to the fault in its own memory.
	 */
	for (int i = 0; i < 2; i++) {
		bool received = c->responder != STATUS_NONE && c->responder != IBV_WC_WR_FLUSH_ERR;
		bool begun = c->requester == IBV_WC_LOC_PROT_ERR && c->length > 1024;
		bool undefined = i == 1 && (received || begun);

		if (good && !undefined && memcmp(before[i], s.roles[i].memory, SCENE_BYTES))
			good = bad("memory of the %s changed", i ? "responder" : "requester");
		free(before[i]);
	}
	scene_close(&s);
	return good;
}

/* ---- requests that the library or the driver refuses at once ---- */

static bool refuses_long_inline(struct scene *s)
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
		rig_die("ibv_query_qp: %m");
	sge.length = init.cap.max_inline_data + 1;
	if (sge.length > sizeof(data))
		return bad("max_inline_data is %u", init.cap.max_inline_data);
	return ibv_post_send(s->roles[0].qp, &wr, &rejected) && rejected == &wr ? true
										: bad("accepted");
}

static bool refuses_many_sges(struct scene *s)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_send_wr *rejected = NULL;
	struct ibv_sge sges[64];
	struct ibv_send_wr wr = {.sg_list = sges, .opcode = IBV_WR_SEND};

	if (ibv_query_qp(s->roles[0].qp, &attr, IBV_QP_CAP, &init))
		rig_die("ibv_query_qp: %m");
	if (init.cap.max_send_sge >= 64)
		return bad("max_send_sge is %u", init.cap.max_send_sge);
	for (int i = 0; i < 64; i++)
		sges[i] = (struct ibv_sge){range(&s->roles[0], KEY_GOOD, 1, 0), 1,
					   s->roles[0].keys[KEY_GOOD]};
	wr.num_sge = (int)init.cap.max_send_sge + 1;
	return ibv_post_send(s->roles[0].qp, &wr, &rejected) && rejected == &wr ? true
										: bad("accepted");
}

static bool refuses_transitions(struct scene *s)
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

static bool flushes_in_error_state(struct scene *s)
{
	struct role *r = &s->roles[0];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_sge sge = {range(r, KEY_GOOD, 8, 0), 8, r->keys[KEY_GOOD]};
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

static bool recovers_through_reset(struct scene *s)
{
	struct rig_address address[2];
	struct ibv_send_wr *rejected;
	struct ibv_wc wc;
	static const struct error_case one_send = {.opcode = IBV_WR_SEND, .length = 64};

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 2; i++) {
			struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

			if (ibv_modify_qp(s->roles[i].qp, &attr, IBV_QP_STATE))
				return bad("to RESET: refused");
			address[i] = rig_address(&s->port, s->roles[i].qp, 7);
			while (ibv_poll_cq(s->roles[i].cq, 1, &wc) > 0)
				;
		}
		for (int i = 0; i < 2; i++) {
			rig_qp_init(s->roles[i].qp, &rig_default_connection);
			rig_qp_connect(&s->port, s->roles[i].qp, &rig_default_connection,
				       &address[!i], 7);
		}
		struct role *r = &s->roles[0];
		struct ibv_sge sge = {range(r, KEY_GOOD, 64, 0), 64, r->keys[KEY_GOOD]};
		struct ibv_send_wr wr = {.wr_id = FIRST,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};

		post_receives(s, &one_send);
		if (ibv_post_send(r->qp, &wr, &rejected))
			return bad("ibv_post_send refused");
		if (!expect_completion(r, "requester", FIRST, IBV_WC_SUCCESS, IBV_WC_SUCCESS) ||
		    !expect_completion(&s->roles[1], "responder", RECV | FIRST, IBV_WC_SUCCESS,
				       IBV_WC_SUCCESS))
			return false;
	}
	return true;
}

static bool refuses_dealloc_in_use(struct scene *s)
{
	int pd = ibv_dealloc_pd(s->roles[0].pd);
	int cq = ibv_destroy_cq(s->roles[0].cq);

	return pd == EBUSY && cq == EBUSY ? true : bad("PD: %d, CQ: %d, expected EBUSY", pd, cq);
}

static const struct {
	const char *name;
	bool (*run)(struct scene *s);
} special_cases[] = {
	{"inline data one byte too long", refuses_long_inline},
	{"one entry too many", refuses_many_sges},
	{"forbidden state transitions", refuses_transitions},
	{"flush in the error state", flushes_in_error_state},
	{"reset and use again", recovers_through_reset},
	{"PD and CQ in use are not destroyed", refuses_dealloc_in_use},
};

static unsigned report(const char *name, bool good)
{
	printf("%s\t%s\t%s\n", good ? "PASS" : "FAIL", name, complaint);
	fflush(stdout);
	complaint[0] = 0;
	return !good;
}

int main(int argc, char **argv)
{
	static const struct error_case plain = {.name = "plain"};
	const char *device = argc > 1 ? argv[1] : NULL;
	int gid_index = argc > 2 ? atoi(argv[2]) : -1;
	unsigned failed = 0;

	if (argc > 3 || (argc > 1 && argv[1][0] == '-')) {
		fputs("Usage: errors [DEVICE [GID-INDEX]]\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < error_case_count; i++)
		failed += report(error_cases[i].name, run_case(&error_cases[i], device, gid_index));
	for (size_t i = 0; i < sizeof(special_cases) / sizeof(special_cases[0]); i++) {
		struct scene s;
		bool good;

		scene_open(&s, device, gid_index, &plain);
		good = special_cases[i].run(&s);
		scene_close(&s);
		failed += report(special_cases[i].name, good);
	}
	return failed ? 1 : 0;
}
