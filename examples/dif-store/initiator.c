/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and their outcomes on the client's side; see initiator.h. */
#include "initiator.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "complain.h"
#include "spin.h"
#include "tcp.h"

#define POLL_BATCH	16
#define ANSWER_LIMIT_MS 10000
#define SPARE_CQES	8u

enum work { WORK_KEY, WORK_REQUEST, WORK_RECEIVE };

static uint64_t work_id(enum work kind, uint32_t index)
{
	return (uint64_t)kind << 32 | index;
}

uint32_t initiator_unit(const struct initiator *i)
{
	const struct dif_format *f = &i->target.format;

	return i->options.memory == KEY_PROTECTED ? dif_unit(f) : f->block_size;
}

/* ---- set-up ---- */

static bool post_receive(struct initiator *i, uint32_t buffer)
{
	struct ibv_sge sge = {.addr = (uintptr_t)(i->messages + buffer * PROTO_RESPONSE_BYTES),
			      .length = PROTO_RESPONSE_BYTES,
			      .lkey = i->messages_mr->lkey};
	struct ibv_recv_wr wr = {
		.wr_id = work_id(WORK_RECEIVE, buffer), .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	int error = ibv_post_recv(i->e.qp, &wr, &bad);

	if (error)
		complain("cannot post a receive: %s", strerror(error));
	return !error;
}

static bool create_messages(struct initiator *i)
{
	uint32_t n = i->options.depth;

	i->messages = calloc(n, PROTO_RESPONSE_BYTES);
	if (i->messages)
		i->messages_mr = ibv_reg_mr(i->e.pd, i->messages, n * PROTO_RESPONSE_BYTES,
					    IBV_ACCESS_LOCAL_WRITE);
	if (!i->messages_mr) {
		complain("no memory for responses");
		return false;
	}
	for (uint32_t b = 0; b < n; b++)
		if (!post_receive(i, b))
			return false;
	return true;
}

static bool create_flights(struct initiator *i)
{
	size_t bytes = (size_t)i->options.max_blocks * initiator_unit(i);
	size_t all = i->options.depth * bytes;

	i->flights = calloc(i->options.depth, sizeof(*i->flights));
	i->units = calloc(i->options.depth, bytes);
	if (i->units)
		/* The keys carry the rights of the target. */
		i->units_mr = ibv_reg_mr(i->e.pd, i->units, all, IBV_ACCESS_LOCAL_WRITE);
	if (!i->flights || !i->units_mr) {
		complain("cannot register %zu bytes: %m; try less --depth or --request", all);
		return false;
	}
	for (uint32_t n = 0; n < i->options.depth; n++) {
		i->flights[n].units = i->units + n * bytes;
		i->flights[n].key = key_create(&i->e);
		if (!i->flights[n].key)
			return false;
	}
	return true;
}

static bool greet(struct initiator *i)
{
	struct proto_hello hello = {
		.pipelined = i->options.pipelined,
		.depth = i->options.depth,
		.max_blocks = i->options.max_blocks,
		.address = i->e.address,
	};
	uint8_t there[PROTO_HELLO_BYTES], back[PROTO_WELCOME_BYTES];

	proto_put_hello(there, &hello);
	if (!tcp_send(i->tcp, there, sizeof(there)) || !tcp_receive(i->tcp, back, sizeof(back))) {
		complain("no welcome from the target: %m");
		return false;
	}
	if (!proto_get_welcome(back, &i->target)) {
		complain("that is not a dif-store-target of this version");
		return false;
	}
	if (!i->target.accepted)
		complain("the target sent us away: %s", i->target.reason);
	return i->target.accepted;
}

static bool set_up(struct initiator *i)
{
	const struct initiator_options *o = &i->options;
	const struct endpoint_options options = {
		.device = o->device,
		.port = o->port,
		.gid_index = o->gid_index,
		/* What the other side does to our memory stops no queue of ours. */
		.pipelining = false,
		.send_wrs = o->depth * (KEY_CONFIGURE_WRS + 1),
		.receive_wrs = o->depth,
		/* Request, response, signature error. */
		.cqes = o->depth * 3 + SPARE_CQES,
	};

	if (!endpoint_open(&i->e, &options) || !create_messages(i))
		return false;
	i->tcp = tcp_connect(o->host, o->tcp_port);
	return i->tcp >= 0 && greet(i) && create_flights(i) &&
	       endpoint_connect(&i->e, &i->target.address);
}

bool initiator_open(struct initiator *i, const struct initiator_options *o)
{
	*i = (struct initiator){.options = *o, .tcp = -1};
	if (set_up(i))
		return true;
	initiator_close(i);
	return false;
}

void initiator_close(struct initiator *i)
{
	/* The queue pair first: nothing may arrive in memory that is no longer there. */
	if (i->e.qp && ibv_destroy_qp(i->e.qp) == 0)
		i->e.qp = NULL;
	for (uint32_t n = 0; i->flights && n < i->options.depth; n++)
		key_destroy(i->flights[n].key);
	if (i->units_mr)
		ibv_dereg_mr(i->units_mr);
	if (i->messages_mr)
		ibv_dereg_mr(i->messages_mr);
	endpoint_close(&i->e);
	free(i->messages);
	free(i->units);
	free(i->flights);
	if (i->tcp >= 0)
		close(i->tcp);
}

/* ---- requests ---- */

struct flight *initiator_free_flight(struct initiator *i)
{
	for (uint32_t n = 0; n < i->options.depth; n++)
		if (i->flights[n].state == FLIGHT_FREE)
			return &i->flights[n];
	return NULL;
}

void initiator_release(struct flight *f)
{
	f->state = FLIGHT_FREE;
}

bool initiator_submit(struct initiator *i, struct flight *f, uint8_t operation, uint64_t offset,
		      uint32_t length)
{
	uint32_t index = (uint32_t)(f - i->flights);
	uint32_t block_size = i->target.format.block_size;
	uint8_t message[PROTO_REQUEST_BYTES];

	f->request = (struct proto_request){
		.operation = operation,
		.tag = index,
		.offset = offset,
		.length = length,
		.rkey = f->key->rkey,
	};
	f->block = offset / block_size;
	f->blocks = length / block_size;
	f->sent = f->answered = false;
	/* No more than there is memory for, whatever is asked: the target shall refuse the rest. */
	uint32_t mapped =
		f->blocks && f->blocks <= i->options.max_blocks ? f->blocks : i->options.max_blocks;
	f->use = (struct key_use){
		.format = &i->target.format,
		.memory = i->options.memory,
		.place = {.addr = (uintptr_t)f->units,
			  .length = mapped * initiator_unit(i),
			  .lkey = i->units_mr->lkey},
		.block = f->block,
		/* A read is an RDMA WRITE of the target's, and the other way round. */
		.remote =
			operation == PROTO_WRITE ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE,
	};

	proto_put_request(message, &f->request);
	f->since_ns = now_ns();
	endpoint_begin(&i->e);
	key_configure(&i->e, f->key, &f->use, work_id(WORK_KEY, index));
	i->e.wr->wr_id = work_id(WORK_REQUEST, index);
	i->e.wr->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(i->e.wr);
	ibv_wr_set_inline_data(i->e.wr, message, sizeof(message));
	if (!endpoint_commit(&i->e))
		return false;
	f->state = FLIGHT_UNDER_WAY;
	i->under_way++;
	return true;
}

/* ---- outcomes ---- */

/* Over when the response is here and the adapter has done with the request itself. */
static void look_whether_done(struct initiator *i, struct flight *f)
{
	if (f->state != FLIGHT_UNDER_WAY || !f->sent || !f->answered)
		return;
	f->state = FLIGHT_DONE;
	i->under_way--;
	i->done[(i->done_first + i->done_count++) % PROTO_DEPTH_MAX] = (uint32_t)(f - i->flights);
}

static bool answered(struct initiator *i, uint32_t buffer, uint32_t bytes)
{
	struct proto_response r;
	struct flight *f;

	if (bytes != PROTO_RESPONSE_BYTES ||
	    !proto_get_response(i->messages + buffer * PROTO_RESPONSE_BYTES, &r) ||
	    r.tag >= i->options.depth || i->flights[r.tag].state != FLIGHT_UNDER_WAY ||
	    i->flights[r.tag].answered) {
		complain("the target sent what is no response to a request");
		return false;
	}
	f = &i->flights[r.tag];
	f->took_ns = now_ns() - f->since_ns;
	f->response = r;
	f->answered = true;
	if (!key_check(f->key, &f->use, &f->here))
		return false;
	look_whether_done(i, f);
	return post_receive(i, buffer);
}

static bool completed(struct initiator *i, const struct ibv_wc *wc)
{
	enum work kind = (enum work)(wc->wr_id >> 32);
	uint32_t index = (uint32_t)wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS) {
		complain("connection lost: %s", ibv_wc_status_str(wc->status));
		return false;
	}
	if (kind == WORK_RECEIVE)
		return answered(i, index, wc->byte_len);
	i->flights[index].sent = true;
	look_whether_done(i, &i->flights[index]);
	return true;
}

/* Number of completions, or -1. */
static int poll_once(struct initiator *i)
{
	struct ibv_wc wcs[POLL_BATCH];
	int n = ibv_poll_cq(i->e.cq, POLL_BATCH, wcs);

	if (n < 0)
		complain("the completion queue has failed");
	for (int k = 0; k < n; k++)
		if (!completed(i, &wcs[k]))
			return -1;
	return n;
}

static bool adapter_works(struct initiator *i)
{
	struct ibv_async_event event;
	bool works = true;

	while (ibv_get_async_event(i->e.ctx, &event) == 0) {
		enum ibv_event_type type = event.event_type;

		ibv_ack_async_event(&event);
		if (type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_ACCESS_ERR ||
		    type == IBV_EVENT_QP_REQ_ERR || type == IBV_EVENT_CQ_ERR ||
		    type == IBV_EVENT_DEVICE_FATAL) {
			complain("connection lost: %s", ibv_event_type_str(type));
			works = false;
		}
	}
	return works;
}

static bool rest(struct initiator *i)
{
	const int fds[2] = {i->tcp, -1};
	unsigned ready;
	int n;

	if (ibv_req_notify_cq(i->e.cq, 0)) {
		complain("cannot wait for completions");
		return false;
	}
	n = poll_once(i);
	if (n)
		return n > 0;
	ready = endpoint_sleep(&i->e, fds, ANSWER_LIMIT_MS);
	if (ready & ENDPOINT_LATE)
		complain("no answer from the target for %d s", ANSWER_LIMIT_MS / 1000);
	if (ready & ENDPOINT_CALLER)
		complain("the target has ended");
	if (!ready || ready & (ENDPOINT_LATE | ENDPOINT_CALLER))
		return false;
	return !(ready & ENDPOINT_ASYNC) || adapter_works(i);
}

struct flight *initiator_reap(struct initiator *i)
{
	struct spin spin = {};

	while (i->done_count == 0) {
		int n = poll_once(i);

		if (n < 0)
			return NULL;
		if (n > 0)
			spin_again(&spin);
		else if (spin_is_over(&spin, ENDPOINT_SPIN_US) && !rest(i))
			return NULL;
	}
	struct flight *f = &i->flights[i->done[i->done_first]];

	i->done_first = (i->done_first + 1) % PROTO_DEPTH_MAX;
	i->done_count--;
	return f;
}
