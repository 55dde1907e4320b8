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

#define PATH_MTU 1024u

char complaint[COMPLAINT_BYTES];

bool bad(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!complaint[0])
		vsnprintf(complaint, sizeof(complaint), format, args);
	va_end(args);
	return false;
}

static uint8_t role_byte(const struct role *r, uint32_t i)
{
	return (uint8_t)((uintptr_t)r->qp + i * 7 + (i >> 8) * 31);
}

uint64_t error_pair_range(const struct role *r, enum key key, uint32_t length, uint32_t over)
{
	const uint8_t *memory = key == KEY_UNMAPPED ? r->vanished : r->memory;
	const uint8_t *start =
		memory + ERROR_PAIR_MR_AT + (over ? ERROR_PAIR_MR_LEN - length + over : 512);

	return (uintptr_t)start;
}

void error_pair_post_receives(struct error_pair *s, const struct error_case *c)
{
	struct role *r = &s->roles[1];
	uint32_t grh = c->type == IBV_QPT_UD ? 40 : 0;

	for (unsigned i = FIRST; i <= SECOND; i++) {
		struct ibv_recv_wr *rejected;
		uint32_t length = (c->receive_length ? c->receive_length : c->length) + grh;
		struct ibv_sge sge = {error_pair_range(r, c->receive, length, 0), length,
				      r->keys[c->receive]};
		struct ibv_recv_wr wr = {.wr_id = RECV | i, .sg_list = &sge, .num_sge = 1};
		int err = ibv_post_recv(r->qp, &wr, &rejected);

		if (err)
			device_die("ibv_post_recv: %s", strerror(err));
	}
}

/* The request under test, and an innocent one behind it. */
static void post_requests(struct error_pair *s, const struct error_case *c)
{
	struct role *r = &s->roles[0];
	struct role *peer = &s->roles[1];
	struct ibv_send_wr *rejected;
	struct ibv_sge sge = {error_pair_range(r, c->local, c->length, c->local_over), c->length,
			      r->keys[c->local]};
	struct ibv_sge good = {error_pair_range(r, KEY_GOOD, 8, 0), 8, r->keys[KEY_GOOD]};
	struct ibv_send_wr behind = {.wr_id = SECOND,
				     .sg_list = &good,
				     .num_sge = 1,
				     .opcode = IBV_WR_SEND,
				     .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr wr = {.wr_id = FIRST,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = c->opcode,
				 .send_flags =
					 IBV_SEND_SIGNALED | (c->inlined ? IBV_SEND_INLINE : 0)};
	uint64_t remote =
		error_pair_range(peer, c->remote, c->length, c->remote_over) + c->remote_shift;
	int err;

	/* The end of the range is the start of the address space. */
	if (c->local_wraps)
		sge.addr = -(uint64_t)c->length / 2;
	if (c->remote_wraps)
		remote = -(uint64_t)c->length / 2;
	if (!c->length)
		wr.num_sge = 0;

	if (c->requester != IBV_WC_SUCCESS)
		wr.next = &behind;
	switch (c->opcode) {
	case IBV_WR_SEND_WITH_INV:
		wr.invalidate_rkey = peer->keys[c->remote];
		break;
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
		wr.wr.ud.remote_qkey = DEVICE_QKEY + c->wrong_qkey;
		break;
	default:
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = peer->keys[c->remote];
	}
	if (c->no_peer) {
		err = ibv_destroy_qp(peer->qp);
		peer->qp = NULL;
		if (err)
			device_die("ibv_destroy_qp: %s", strerror(err));
	}
	err = ibv_post_send(r->qp, &wr, &rejected);
	if (err)
		device_die("ibv_post_send: %s", strerror(err));
}

bool expect_completion(struct role *r, const char *who, uint64_t wr_id, enum ibv_wc_status status,
		       enum ibv_wc_status or_status)
{
	struct ibv_wc wc;

	if (!error_pair_completion(r, &wc))
		return bad("%s: no completion %lu", who, wr_id);
	if (wc.wr_id != wr_id)
		return bad("%s: completion %lu, expected %lu", who, wc.wr_id, wr_id);
	if (wc.status != status && wc.status != or_status)
		return bad("%s: '%s', expected '%s'", who, ibv_wc_status_str(wc.status),
			   ibv_wc_status_str(status));
	return true;
}

static bool check_requester(struct error_pair *s, const struct error_case *c)
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
	if (device_qp_state(r->qp) != c->states[0])
		return bad("requester in state %d, expected %d", device_qp_state(r->qp),
			   c->states[0]);
	return true;
}

static bool check_responder(struct error_pair *s, const struct error_case *c)
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
	if (r->qp && device_qp_state(r->qp) != c->states[1])
		return bad("responder in state %d, expected %d", device_qp_state(r->qp),
			   c->states[1]);
	return true;
}

/* What the responder's consumer is told besides (IBTA 11.6.3.3); -1: nothing. */
static int expected_event(const struct error_case *c)
{
	if (c->responder != IBV_WC_WR_FLUSH_ERR && c->responder != IBV_WC_LOC_ACCESS_ERR)
		return -1;
	return c->requester == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR
						     : IBV_EVENT_QP_REQ_ERR;
}

static bool check_events(struct error_pair *s, const struct error_case *c)
{
	struct ibv_async_event event;
	int expected = expected_event(c);
	bool good = true;

	/* Reported before the requester could learn of it. */
	while (error_pair_event(s, &event)) {
		if ((int)event.event_type != expected || event.element.qp != s->roles[1].qp)
			good = bad("event '%s' was not expected",
				   ibv_event_type_str(event.event_type));
		expected = -1;
		ibv_ack_async_event(&event);
	}
	if (good && expected >= 0)
		good = bad("no event '%s'", ibv_event_type_str((enum ibv_event_type)expected));
	return good;
}

static uint32_t qkey_violations(struct error_pair *s)
{
	struct ibv_port_attr attr;
	int err = ibv_query_port(s->roles[1].qp->context, DEVICE_PORT, &attr);

	if (err)
		device_die("ibv_query_port: %s", strerror(err));
	return attr.qkey_viol_cntr;
}

/* The port counts what it drops for its key, and nothing else there. */
static bool check_violations(struct error_pair *s, const struct error_case *c, uint32_t before)
{
	uint32_t n = s->roles[1].qp ? qkey_violations(s) - before : 0;

	return n == c->wrong_qkey || bad("%u violations of Q_Keys counted", n);
}

/* A fetch-and-add of 1 has been executed; the word becomes what it was. */
static bool expect_word(struct error_pair *s, const struct error_case *c, const uint8_t *before)
{
	uint8_t *at = (uint8_t *)(uintptr_t)error_pair_range(&s->roles[1], c->remote, c->length, 0);
	const uint8_t *was = before + (at - s->roles[1].memory);
	uint64_t now, then;

	memcpy(&now, at, sizeof(now));
	memcpy(&then, was, sizeof(then));
	memcpy(at, was, sizeof(then));
	return now == then + 1 || bad("the atomic was not executed");
}

/* A range that sticks out of a region: what the packets in front of the first that sticks out have
 * written is there; the memory becomes what it was. */
static bool expect_packets(struct error_pair *s, const struct error_case *c, const uint8_t *before)
{
	uint32_t placed = (c->length - c->local_over - c->remote_over) / PATH_MTU * PATH_MTU;
	const uint8_t *from = (const uint8_t *)(uintptr_t)error_pair_range(
		&s->roles[0], c->local, c->length, c->local_over);
	uint8_t *to = (uint8_t *)(uintptr_t)error_pair_range(&s->roles[1], c->remote, c->length,
							     c->remote_over);
	bool same = !memcmp(to, from, placed);

	memcpy(to, before + (to - s->roles[1].memory), placed);
	return same || bad("the first %u bytes were not written", placed);
}

static bool run_case(const struct error_case *c, const char *device, int gid_index)
{
	struct error_pair s;
	uint8_t *before[2];
	uint32_t violations;
	bool good;

	error_pair_open(&s, device, gid_index, c);
	for (int i = 0; i < 2; i++) {
		struct role *r = &s.roles[i];

		before[i] = malloc(ERROR_PAIR_BYTES);
		if (!before[i])
			device_die("out of memory");
		for (uint32_t b = 0; b < ERROR_PAIR_BYTES; b++)
			before[i][b] = r->memory[b] = role_byte(r, b);
	}
	if (!c->no_receive)
		error_pair_post_receives(&s, c);
	violations = qkey_violations(&s);
	post_requests(&s, c);
	good = check_requester(&s, c) && check_responder(&s, c);
	good &= check_events(&s, c);
	good = good && check_violations(&s, c, violations);
	/*
	 * No byte may have changed on either side, except where the specification leaves a buffer
	 * undefined: by a message whose receive failed, and by the packets that a requester sent
	 * before it came to the fault in its own memory.  A WRITE comes as far as the memory of
	 * both sides reaches.  An atomic is executed before its answer finds no place.
	 */
	for (int i = 0; i < 2; i++) {
		bool received = c->responder != STATUS_NONE &&
				c->responder != IBV_WC_WR_FLUSH_ERR &&
				c->responder != IBV_WC_LOC_ACCESS_ERR;
		bool placed = c->opcode == IBV_WR_RDMA_WRITE && (c->local_over || c->remote_over);
		bool begun = c->requester == IBV_WC_LOC_PROT_ERR && c->length > PATH_MTU && !placed;
		bool undefined = i == 1 && (received || begun);

		if (good && i == 1 && placed)
			good = expect_packets(&s, c, before[1]);

		if (good && i == 1 && c->executed)
			good = expect_word(&s, c, before[1]);

		if (good && !undefined &&
		    memcmp(before[i], s.roles[i].memory, ERROR_PAIR_BYTES) != 0)
			good = bad("memory of the %s changed", i ? "responder" : "requester");
		free(before[i]);
	}
	error_pair_close(&s);
	return good;
}

static unsigned report_row(const char *name, bool good)
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
		failed += report_row(error_cases[i].name,
				     run_case(&error_cases[i], device, gid_index));
	for (size_t i = 0; i < special_case_count; i++) {
		struct error_pair s;
		bool good;

		error_pair_open(&s, device, gid_index, &plain);
		good = special_cases[i].run(&s);
		error_pair_close(&s);
		failed += report_row(special_cases[i].name, good);
	}
	return failed ? 1 : 0;
}
