/* SPDX-License-Identifier: BSD-2-Clause */
/* Hello, requests, end; see session.h. */
#include "session.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "complain.h"
#include "spin.h"
#include "tcp.h"

#define POLL_BATCH     16
#define HELLO_LIMIT_MS 10000
#define SPARE_CQES     8u

static void say(const struct session *s, const char *format, va_list args)
{
	char line[256];

	vsnprintf(line, sizeof(line), format, args);
	printf("client %u: %s\n", s->number, line);
}

void session_say(const struct session *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(s, format, args);
	va_end(args);
}

void session_give_up(struct session *s, const char *format, ...)
{
	va_list args;

	s->over = true;
	va_start(args, format);
	say(s, format, args);
	va_end(args);
}

/* ---- requests ---- */

static uint8_t *message(const struct session *s, uint32_t buffer)
{
	return s->messages + buffer * PROTO_REQUEST_BYTES;
}

static void post_receive(struct session *s, uint32_t buffer)
{
	struct ibv_sge sge = {.addr = (uintptr_t)message(s, buffer),
			      .length = PROTO_REQUEST_BYTES,
			      .lkey = s->messages_mr->lkey};
	struct ibv_recv_wr wr = {
		.wr_id = work_id(WORK_RECEIVE, buffer), .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	int error = ibv_post_recv(s->e.qp, &wr, &bad);

	if (error)
		session_give_up(s, "cannot post a receive: %s", strerror(error));
}

void session_next(struct session *s)
{
	while (s->waiting_count > 0 && !s->over) {
		struct slot *slot = slot_find_free(s);
		struct proto_request request;

		if (!slot)
			return;
		uint32_t buffer = s->waiting[s->waiting_first];

		s->waiting_first = (s->waiting_first + 1) % (2 * PROTO_DEPTH_MAX);
		s->waiting_count--;
		proto_get_request(message(s, buffer), &request);
		post_receive(s, buffer);
		slot_begin(s, slot, &request);
	}
}

static void received(struct session *s, uint32_t buffer, uint32_t bytes)
{
	if (bytes != PROTO_REQUEST_BYTES) {
		session_give_up(s, "sent %u bytes, which is no request", bytes);
		return;
	}
	/* Not full: there are as many places as receive buffers. */
	s->waiting[(s->waiting_first + s->waiting_count++) % (2 * PROTO_DEPTH_MAX)] = buffer;
	session_next(s);
}

static void completed(struct session *s, const struct ibv_wc *wc)
{
	enum work kind = (enum work)(wc->wr_id >> 32);
	uint32_t index = (uint32_t)wc->wr_id;

	if (s->over)
		return;
	if (wc->status != IBV_WC_SUCCESS)
		session_give_up(s, "connection lost: %s", ibv_wc_status_str(wc->status));
	else if (kind == WORK_RECEIVE)
		received(s, index, wc->byte_len);
	else
		slot_completed(s, &s->slots[index], kind);
}

bool session_poll(struct session *s)
{
	struct ibv_wc wcs[POLL_BATCH];
	bool any = false;
	int n;

	do {
		n = ibv_poll_cq(s->e.cq, POLL_BATCH, wcs);
		if (n < 0)
			session_give_up(s, "the completion queue has failed");
		for (int i = 0; i < n; i++)
			completed(s, &wcs[i]);
		any |= n > 0;
	} while (n > 0 && !s->over);
	return any;
}

/* ---- the loop ---- */

static void async_events(struct session *s)
{
	struct ibv_async_event event;

	while (!s->over && ibv_get_async_event(s->e.ctx, &event) == 0) {
		bool drained = event.event_type == IBV_EVENT_SQ_DRAINED;

		/* Before it is handled: the next may come as soon as the queue runs again. */
		ibv_ack_async_event(&event);
		if (drained)
			drain_handle(s);
		else if (event.event_type == IBV_EVENT_QP_FATAL ||
			 event.event_type == IBV_EVENT_QP_ACCESS_ERR ||
			 event.event_type == IBV_EVENT_QP_REQ_ERR ||
			 event.event_type == IBV_EVENT_CQ_ERR ||
			 event.event_type == IBV_EVENT_DEVICE_FATAL)
			session_give_up(s, "connection lost: %s",
					ibv_event_type_str(event.event_type));
	}
}

/* Nothing to do for a while.  Arms the CQ and looks once more, as something may have come
 * between. */
static void rest(struct session *s)
{
	const int fds[2] = {s->tcp, s->target->stop_fd};
	unsigned ready;

	if (ibv_req_notify_cq(s->e.cq, 0)) {
		session_give_up(s, "cannot wait for completions");
		return;
	}
	if (session_poll(s))
		return;
	ready = endpoint_sleep(&s->e, fds, -1);
	if (!ready)
		session_give_up(s, "cannot wait for work");
	if (ready & ENDPOINT_ASYNC)
		async_events(s);
	/* The client says nothing over TCP after its hello: it has gone, or all shall end. */
	if (ready & ENDPOINT_CALLER)
		s->over = true;
}

static void serve(struct session *s)
{
	struct spin spin = {};

	while (!s->over) {
		if (session_poll(s))
			spin_again(&spin);
		else if (spin_is_over(&spin, ENDPOINT_SPIN_US))
			rest(s);
	}
}

/* ---- from hello to welcome ---- */

static bool await_hello(struct session *s)
{
	struct pollfd watched[] = {{.fd = s->tcp, .events = POLLIN},
				   {.fd = s->target->stop_fd, .events = POLLIN}};
	uint8_t bytes[PROTO_HELLO_BYTES];

	if (poll(watched, 2, HELLO_LIMIT_MS) <= 0 || watched[1].revents)
		return false;
	if (!tcp_receive(s->tcp, bytes, sizeof(bytes))) {
		session_say(s, "no hello: %s", strerror(errno));
		return false;
	}
	if (!proto_get_hello(bytes, &s->wishes)) {
		session_say(s, "not a dif-store-client of this version");
		return false;
	}
	return true;
}

static bool create_messages(struct session *s)
{
	uint32_t buffers = 2 * s->wishes.depth;

	s->messages = calloc(buffers, PROTO_REQUEST_BYTES);
	if (s->messages)
		s->messages_mr = ibv_reg_mr(s->e.pd, s->messages, buffers * PROTO_REQUEST_BYTES,
					    IBV_ACCESS_LOCAL_WRITE);
	if (!s->messages_mr) {
		complain("no memory for requests");
		return false;
	}
	for (uint32_t i = 0; i < buffers; i++)
		post_receive(s, i);
	return !s->over;
}

static bool set_up(struct session *s)
{
	const struct target *t = s->target;
	uint32_t depth = s->wishes.depth;
	const struct endpoint_options options = {
		.device = t->device,
		.port = t->port,
		.gid_index = t->gid_index,
		.pipelining = s->wishes.pipelined && !t->plain,
		/* Key, transfer, response; and one in reserve: a cancelled response keeps its place
		 * in the ring until the queue has run past it. */
		.send_wrs = depth * (KEY_CONFIGURE_WRS + 3),
		.receive_wrs = 2 * depth,
		/* Transfer or response, bad response, signature error, received requests. */
		.cqes = depth * 5 + SPARE_CQES,
	};

	return endpoint_open(&s->e, &options) && slots_create(s) && create_messages(s) &&
	       endpoint_connect(&s->e, &s->wishes.address);
}

static bool welcome(struct session *s, bool accepted)
{
	const struct store *store = &s->target->store;
	struct proto_welcome w = {
		.accepted = accepted,
		.pipelined = s->e.pipelining,
		.blocks = store->blocks,
		.format = store->format,
		.address = s->e.address,
	};
	uint8_t bytes[PROTO_WELCOME_BYTES];

	if (!accepted)
		snprintf(w.reason, sizeof(w.reason),
			 "it could not set up its side; its output says why");
	proto_put_welcome(bytes, &w);
	return tcp_send(s->tcp, bytes, sizeof(bytes));
}

void session_run(struct target *target, int tcp, unsigned number)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s) {
		close(tcp);
		return;
	}
	s->target = target;
	s->tcp = tcp;
	s->number = number;
	if (await_hello(s)) {
		bool ready = set_up(s);

		if (ready)
			session_say(s, "connected on %s, %s, %u requests of up to %u blocks",
				    ibv_get_device_name(s->e.ctx->device),
				    s->e.pipelining ? "pipelined" : "plain", s->wishes.depth,
				    s->wishes.max_blocks);
		if (welcome(s, ready) && ready) {
			serve(s);
			session_say(s,
				    "gone after %" PRIu64 " reads, %" PRIu64 " writes; %" PRIu64
				    " bad, %" PRIu64 " refused, queue stopped %" PRIu64 " times",
				    s->counts.reads, s->counts.writes, s->counts.bad,
				    s->counts.refused, s->counts.drains);
		}
	}
	/* The queue pair first: nothing may arrive in memory that is no longer there. */
	if (s->e.qp && ibv_destroy_qp(s->e.qp) == 0)
		s->e.qp = NULL;
	slots_destroy(s);
	if (s->messages_mr)
		ibv_dereg_mr(s->messages_mr);
	free(s->messages);
	endpoint_close(&s->e);
	close(tcp);
	free(s);
}
