// SPDX-License-Identifier: BSD-2-Clause
/*
 * The states of a connection (IBTA volume 1, 12.9), as Linux keeps them: who sends what when a program
 * asks, when a message comes, and when none comes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/cm/id.h"

#define MRA_TIMEOUT_CODE 24u /* the time that a side asks for whose program has not decided yet */
#define CM_RETRIES	 15u
#define NS_OF(code)	 ((1000000ull << (code)) >> 8) /* as Linux takes 4.096 us << n */

static uint64_t guid_of(const struct cm_id *id)
{
	return subnet_node_of(cm_subnet(id->cm), id->row)->guid;
}

/* ---- messages that are repeated ---- */

void cm_repeat_stop(struct cm_id *id)
{
	loop_timer_cancel(id->cm->mad->loop, &id->timer);
}

static void connection_timer(struct loop *l, struct loop_timer *t);

static void timer_arm(struct cm_id *id, uint64_t ns)
{
	struct loop *l = id->cm->mad->loop;

	id->timer.fire = connection_timer;
	loop_timer_arm(l, &id->timer, loop_now(l) + ns);
}

/* Sends the id's message, and again until something stops that. */
static void repeat_begin(struct cm_id *id)
{
	id->repeat_ns = 2 * NS_OF(id->path.life) + NS_OF(CM_RESPONSE_TIMEOUT);
	id->repeats = CM_RETRIES;
	cm_message_send(id, id->message);
	timer_arm(id, id->repeat_ns);
}

/* For how long a number is not used again. */
static void time_wait_begin(struct cm_id *id)
{
	cm_repeat_stop(id);
	id->connection = CONN_TIME_WAIT;
	timer_arm(id, 2 * NS_OF(id->path.life + 1u));
}

/* Nobody has answered. */
static void repeats_are_over(struct cm_id *id)
{
	switch (id->connection) {
	case CONN_REQ_SENT:
	case CONN_REQ_WAITS:
	case CONN_REP_SENT:
	case CONN_REP_WAITS:
		id->connection = CONN_NONE;
		id->state = CM_DISCONNECT;
		cm_event_tell(id, CM_UNREACHABLE, -ETIMEDOUT);
		return;
	case CONN_DREQ_SENT:
		time_wait_begin(id);
		cm_event_tell(id, CM_DISCONNECTED, -ETIMEDOUT);
		return;
	default:
		return;
	}
}

static void connection_timer(struct loop *l, struct loop_timer *t)
{
	struct cm_id *id = container_of(t, struct cm_id, timer);

	(void)l;
	if (id->connection == CONN_TIME_WAIT) {
		id->connection = CONN_NONE;
		cm_event_tell(id, CM_TIMEWAIT_EXIT, 0);
	} else if (id->repeats) {
		id->repeats--;
		cm_message_send(id, id->message);
		timer_arm(id, id->repeat_ns);
	} else {
		repeats_are_over(id);
	}
}

/* ---- what programs ask for ---- */

static void req_path_put(const struct cm_id *id, uint8_t *mad)
{
	const struct cm_path *path = &id->path;
	const bool ethernet = cm_subnet(id->cm)->ports[id->row].ethernet;

	prm_set(mad, REQ_PKEY, path->pkey);
	prm_set(mad, REQ_MTU, path->mtu);
	prm_set(mad, REQ_LOCAL_LID, ethernet ? 0xffff : path->slid);
	prm_set(mad, REQ_REMOTE_LID, ethernet ? 0xffff : path->dlid);
	memcpy(mad + REQ_AT_LOCAL_GID, &path->sgid, 16);
	memcpy(mad + REQ_AT_REMOTE_GID, &path->dgid, 16);
	prm_set(mad, REQ_FLOW_LABEL, path->flow_label);
	prm_set(mad, REQ_RATE, path->rate);
	prm_set(mad, REQ_CLASS, path->traffic_class);
	prm_set(mad, REQ_HOP_LIMIT, path->hop_limit);
	prm_set(mad, REQ_SL, path->sl);
	prm_set(mad, REQ_SUBNET_LOCAL, !ethernet);
	prm_set(mad, REQ_ACK_TIMEOUT, path->life + 1u);
}

/* Takes what a program says of its end. */
static void parameters_take(struct cm_id *id, const struct rdma_ucm_conn_param *p)
{
	id->qpn = p->qp_num & IB_QPN_MASK;
	id->srq = p->srq != 0;
	id->responder_resources = p->responder_resources;
	id->initiator_depth = p->initiator_depth;
	id->flow_control = p->flow_control;
	id->retries = p->retry_count < 7 ? p->retry_count : 7;
	id->rnr_retries = p->rnr_retry_count < 7 ? p->rnr_retry_count : 7;
}

int cm_request_send(struct cm_id *id, size_t at, uint32_t room, const struct rdma_ucm_conn_param *p)
{
	const uint32_t head = cm_head_bytes(id);
	int ret;

	cm_head_put(id, id->message + at);
	ret = cm_private_put(id->message + at + head, room - head, p->private_data,
			     p->private_data_len);
	if (ret)
		return ret;
	id->state = CM_CONNECT;
	id->connection = CONN_REQ_SENT;
	repeat_begin(id);
	return 0;
}

int cm_connect(struct cm_id *id, const struct rdma_ucm_conn_param *p)
{
	uint8_t *mad = id->message;

	if (id->state != CM_ROUTE_IS_RESOLVED)
		return -EINVAL;
	if (id->qp_type == IB_QPT_UD)
		return cm_sidr_connect(id, p);
	parameters_take(id, p);
	id->psn = cm_random(id->cm) & 0xffffff;
	cm_message_begin(id, mad, CM_REQ);
	mad_put32(mad, MAD_AT_MODIFIER, id->ece.attr_mod);
	prm_set(mad, REQ_VENDOR_ID, id->ece.vendor_id & 0xffffff);
	prm_set(mad, REQ_SERVICE_ID, cm_service_of(id, id->dst.port));
	prm_set(mad, REQ_CA_GUID, guid_of(id));
	prm_set(mad, REQ_QPN, id->qpn);
	prm_set(mad, REQ_RESPONDER, id->responder_resources);
	prm_set(mad, REQ_INITIATOR, id->initiator_depth);
	prm_set(mad, REQ_REMOTE_TIMEOUT, CM_RESPONSE_TIMEOUT);
	prm_set(mad, REQ_TRANSPORT, id->qp_type == IB_QPT_UC);
	prm_set(mad, REQ_FLOW_CONTROL, id->flow_control != 0);
	prm_set(mad, REQ_PSN, id->psn);
	prm_set(mad, REQ_LOCAL_TIMEOUT, CM_RESPONSE_TIMEOUT);
	prm_set(mad, REQ_RETRIES, id->retries);
	prm_set(mad, REQ_RNR_RETRIES, id->rnr_retries);
	prm_set(mad, REQ_CM_RETRIES, CM_RETRIES);
	prm_set(mad, REQ_SRQ, id->srq);
	req_path_put(id, mad);
	return cm_request_send(id, REQ_AT_PRIVATE, REQ_PRIVATE_BYTES, p);
}

/* The answer of a program to a request: a REP. */
static int request_accept(struct cm_id *id, const struct rdma_ucm_conn_param *p)
{
	uint8_t *mad = id->message;
	int ret;

	if (id->connection != CONN_REQ_RECEIVED)
		return -EINVAL;
	if (id->qp_type == IB_QPT_UD)
		return cm_sidr_answer(id, CM_SIDR_SUCCESS, p);
	parameters_take(id, p);
	cm_message_begin(id, mad, CM_REP);
	mad_put32(mad, MAD_AT_MODIFIER, id->ece.attr_mod);
	prm_set(mad, REP_VENDOR_ID_HIGH, id->ece.vendor_id >> 16 & 0xff);
	prm_set(mad, REP_VENDOR_ID_MID, id->ece.vendor_id >> 8 & 0xff);
	prm_set(mad, REP_VENDOR_ID_LOW, id->ece.vendor_id & 0xff);
	prm_set(mad, REP_QPN, id->qpn);
	prm_set(mad, REP_PSN, id->psn);
	prm_set(mad, REP_RESPONDER, id->responder_resources);
	prm_set(mad, REP_INITIATOR, id->initiator_depth);
	prm_set(mad, REP_ACK_DELAY, 15);
	prm_set(mad, REP_FAILOVER, 1);
	prm_set(mad, REP_FLOW_CONTROL, id->flow_control != 0);
	prm_set(mad, REP_RNR_RETRIES, id->rnr_retries);
	prm_set(mad, REP_SRQ, id->srq);
	prm_set(mad, REP_CA_GUID, guid_of(id));
	ret = cm_private_put(mad + REP_AT_PRIVATE, REP_PRIVATE_BYTES, p->private_data,
			     p->private_data_len);
	if (ret)
		return ret;
	id->connection = CONN_REP_SENT;
	repeat_begin(id);
	return 0;
}

/* The answer to a REP: the connection stands. */
static void rtu_send(struct cm_id *id)
{
	cm_message_begin(id, id->message, CM_RTU);
	cm_message_send(id, id->message);
}

int cm_accept(struct cm_id *id, const struct rdma_ucm_conn_param *p)
{
	if (p)
		return request_accept(id, p);
	if (id->connection != CONN_REP_RECEIVED)
		return -EINVAL;
	id->connection = CONN_ESTABLISHED;
	rtu_send(id);
	return 0;
}

static void rej_make(struct cm_id *id, uint8_t *mad, uint16_t reason)
{
	cm_message_begin(id, mad, CM_REJ);
	prm_set(mad, REJ_WHAT,
		id->connection == CONN_REQ_RECEIVED   ? CM_ANSWERS_REQ
		: id->connection == CONN_REP_RECEIVED ? CM_ANSWERS_REP
						      : CM_ANSWERS_OTHER);
	prm_set(mad, REJ_REASON, reason);
}

int cm_reject(struct cm_id *id, const uint8_t *data, uint8_t length, uint16_t reason)
{
	uint8_t mad[MAD_BYTES];

	switch (id->connection) {
	case CONN_REQ_RECEIVED:
	case CONN_REP_RECEIVED:
	case CONN_REP_SENT:
	case CONN_REP_WAITS:
		break;
	default:
		return -EINVAL;
	}
	if (id->qp_type == IB_QPT_UD) {
		struct rdma_ucm_conn_param p = {.private_data_len = length};

		if (length)
			memcpy(p.private_data, data, length);
		return cm_sidr_answer(id, CM_SIDR_REJECT, &p);
	}
	rej_make(id, mad, reason);
	if (cm_private_put(mad + REJ_AT_PRIVATE, REJ_PRIVATE_BYTES, data, length))
		return -EINVAL;
	cm_repeat_stop(id);
	id->connection = CONN_NONE;
	cm_message_send(id, mad);
	return 0;
}

void cm_request_refuse(struct cm_id *id)
{
	const int ret = cm_reject(id, NULL, 0, CM_REJECT_CONSUMER);

	(void)ret;
}

static void drep_send(struct cm_id *id)
{
	uint8_t mad[MAD_BYTES];

	cm_message_begin(id, mad, CM_DREP);
	cm_message_send(id, mad);
}

static void dreq_send(struct cm_id *id)
{
	cm_message_begin(id, id->message, CM_DREQ);
	prm_set(id->message, DREQ_QPN, id->remote_qpn);
	id->connection = CONN_DREQ_SENT;
	repeat_begin(id);
}

int cm_disconnect(struct cm_id *id)
{
	if (id->qp_type == IB_QPT_UD)
		return -EINVAL;
	switch (id->connection) {
	case CONN_ESTABLISHED:
		id->state = CM_DISCONNECT;
		dreq_send(id);
		return 0;
	case CONN_DREQ_RECEIVED:
		drep_send(id);
		time_wait_begin(id);
		return 0;
	case CONN_DREQ_SENT:
	case CONN_TIME_WAIT:
		return 0;
	default:
		return -EINVAL;
	}
}

int cm_notify(struct cm_id *id, uint32_t event)
{
	if (event != IB_EVENT_COMM_EST)
		return -EINVAL;
	if (id->connection == CONN_ESTABLISHED)
		return 0;
	if (id->connection != CONN_REP_SENT && id->connection != CONN_REP_WAITS)
		return -EINVAL;
	cm_repeat_stop(id);
	id->connection = CONN_ESTABLISHED;
	cm_event_tell(id, CM_ESTABLISHED, 0);
	return 0;
}

void cm_connection_end(struct cm_id *id)
{
	uint8_t mad[MAD_BYTES];

	cm_repeat_stop(id);
	if (id->qp_type == IB_QPT_UD) {
		if (id->connection == CONN_REQ_RECEIVED && cm_sidr_answer(id, CM_SIDR_REJECT, NULL))
			return;
		id->connection = CONN_NONE;
		return;
	}
	switch (id->connection) {
	case CONN_REQ_SENT:
	case CONN_REQ_WAITS: {
		const uint64_t guid = htobe64(guid_of(id));

		rej_make(id, mad, CM_REJECT_TIMEOUT);
		prm_set(mad, REJ_INFO_LENGTH, sizeof(guid));
		memcpy(mad + REJ_AT_INFO, &guid, sizeof(guid));
		cm_message_send(id, mad);
		break;
	}
	case CONN_REQ_RECEIVED:
	case CONN_REP_SENT:
	case CONN_REP_WAITS:
	case CONN_REP_RECEIVED:
		rej_make(id, mad, CM_REJECT_CONSUMER);
		cm_message_send(id, mad);
		break;
	case CONN_ESTABLISHED:
		/* Nobody is left to wait for the answer. */
		cm_message_begin(id, mad, CM_DREQ);
		prm_set(mad, DREQ_QPN, id->remote_qpn);
		cm_message_send(id, mad);
		break;
	case CONN_DREQ_RECEIVED:
		drep_send(id);
		break;
	default:
		break;
	}
	id->connection = CONN_NONE;
}

/* ---- what comes ---- */

/* The id that a message names as its receiver's; NULL: there is none. */
static struct cm_id *id_of(const struct cm *c, const struct mad_packet *p)
{
	const uint32_t named = prm_get32(p->mad, CM_REMOTE_ID);
	struct cm_id *id = cm_id_of_message(c, named);

	return id && id->connection != CONN_NONE && id->row == net_end_port(c->mad->net, p->row)
		       ? id
		       : NULL;
}

/* Refuses a message that no id takes. */
static void message_refuse(struct cm *c, const struct mad_packet *p, uint16_t reason)
{
	const bool req = mad_get16(p->mad, MAD_AT_ATTRIBUTE) == CM_REQ;
	uint8_t mad[MAD_BYTES] = {0};

	memcpy(mad, p->mad, MAD_HEADER_BYTES);
	mad_put16(mad, MAD_AT_ATTRIBUTE, CM_REJ);
	if (!req)
		prm_set(mad, CM_LOCAL_ID, prm_get32(p->mad, CM_REMOTE_ID));
	prm_set(mad, CM_REMOTE_ID, prm_get32(p->mad, CM_LOCAL_ID));
	prm_set(mad, REJ_WHAT, req ? CM_ANSWERS_REQ : CM_ANSWERS_REP);
	prm_set(mad, REJ_REASON, reason);
	cm_message_answer(c, p, mad);
}

/* Fills an id from a request. */
static void request_take(struct cm_id *id, const struct mad_packet *p, struct cm_id *listener)
{
	const uint8_t *mad = p->mad;
	const struct subnet *s = cm_subnet(id->cm);

	cm_requested_begin(id, p, listener, prm_get(mad, REQ_CA_GUID));
	if (prm_get(mad, REQ_TRANSPORT) == 1)
		id->qp_type = IB_QPT_UC;
	id->tos = listener->tos;
	id->remote_qpn = prm_get32(mad, REQ_QPN);
	cm_id_key(id, CM_BY_REMOTE_QPN, id->remote_qpn);
	id->remote_psn = prm_get32(mad, REQ_PSN);
	id->psn = cm_random(id->cm) & 0xffffff;
	id->retries = (uint8_t)prm_get(mad, REQ_RETRIES);
	id->rnr_retries = (uint8_t)prm_get(mad, REQ_RNR_RETRIES);
	/* What the peer may have open of ours is what we may have open of it, and the other way round. */
	id->responder_resources = (uint8_t)prm_get(mad, REQ_INITIATOR);
	id->initiator_depth = (uint8_t)prm_get(mad, REQ_RESPONDER);
	id->path = (struct cm_path){
		.there = true,
		.slid = p->dlid,
		.dlid = p->slid,
		.pkey = (uint16_t)prm_get(mad, REQ_PKEY),
		.mtu = (uint8_t)prm_get(mad, REQ_MTU),
		.rate = (uint8_t)prm_get(mad, REQ_RATE),
		.life = (uint8_t)(prm_get(mad, REQ_ACK_TIMEOUT) ? prm_get(mad, REQ_ACK_TIMEOUT) - 1
								: 0),
		.sl = (uint8_t)prm_get(mad, REQ_SL),
		.hop_limit = (uint8_t)prm_get(mad, REQ_HOP_LIMIT),
		.traffic_class = (uint8_t)prm_get(mad, REQ_CLASS),
		.flow_label = prm_get32(mad, REQ_FLOW_LABEL),
	};
	memcpy(&id->path.dgid, mad + REQ_AT_LOCAL_GID, 16);
	memcpy(&id->path.sgid, mad + REQ_AT_REMOTE_GID, 16);
	if (s->ports[id->row].ethernet) {
		id->path.slid = id->path.dlid = 0;
		id->path.hop_limit = id->path.hop_limit ? id->path.hop_limit : 64;
	}
}

static void connect_request_tell(struct cm_id *listener, struct cm_id *id, const uint8_t *mad)
{
	struct cm_event *e = cm_event_make(listener, CM_CONNECT_REQUEST, 0);
	struct rdma_ucm_conn_param *conn;

	if (!e) {
		cm_id_free(id);
		return;
	}
	conn = &e->body.param.conn;
	conn->qp_num = id->remote_qpn;
	conn->responder_resources = id->responder_resources;
	conn->initiator_depth = id->initiator_depth;
	conn->flow_control = (uint8_t)prm_get(mad, REQ_FLOW_CONTROL);
	conn->retry_count = id->retries;
	conn->rnr_retry_count = id->rnr_retries;
	conn->srq = (uint8_t)prm_get(mad, REQ_SRQ);
	conn->private_data_len = (uint8_t)(REQ_PRIVATE_BYTES - cm_head_bytes(listener));
	e->body.ece.vendor_id = prm_get32(mad, REQ_VENDOR_ID);
	e->body.ece.attr_mod = mad_get32(mad, MAD_AT_MODIFIER);
	memcpy(conn->private_data, mad + REQ_AT_PRIVATE + cm_head_bytes(listener),
	       conn->private_data_len);
	cm_request_tell(e, listener, id);
}

static void mra_send(struct cm_id *id, enum cm_answered what)
{
	uint8_t mad[MAD_BYTES];

	cm_message_begin(id, mad, CM_MRA);
	prm_set(mad, MRA_WHAT, what);
	prm_set(mad, MRA_TIMEOUT, MRA_TIMEOUT_CODE);
	cm_message_send(id, mad);
}

/* The peer has made another connection with a queue pair that one of ours still is with: both are refused. */
static bool message_is_stale(struct cm *c, const struct mad_packet *p, uint64_t guid, uint32_t qpn)
{
	struct cm_id *id = cm_id_stale(c, net_end_port(c->mad->net, p->row), guid, qpn);

	if (!id)
		return false;
	message_refuse(c, p, CM_REJECT_STALE);
	if (id->connection == CONN_ESTABLISHED)
		dreq_send(id);
	return true;
}

void cm_take_req(struct cm *c, const struct mad_packet *p, bool early)
{
	const uint64_t service = prm_get(p->mad, REQ_SERVICE_ID);
	struct cm_id *id, *listener;
	struct cm_address src, dst;
	bool served;

	id = cm_id_of_request(c, prm_get(p->mad, REQ_CA_GUID), prm_get32(p->mad, CM_LOCAL_ID));
	if (id) {
		/* The peer has not seen that we have it. */
		if (id->connection == CONN_REQ_RECEIVED)
			mra_send(id, CM_ANSWERS_REQ);
		return;
	}
	if (message_is_stale(c, p, prm_get(p->mad, REQ_CA_GUID), prm_get32(p->mad, REQ_QPN)))
		return;
	if (!cm_head_read(p->mad + REQ_AT_PRIVATE, (uint16_t)(service & CM_PORT_MASK), &src, &dst))
		src = dst = (struct cm_address){0};
	listener = cm_listener_find(c, p, service, &dst, &served);
	if (!served && early && cm_early_keep(c, p))
		return;
	if (!listener) {
		message_refuse(c, p, served ? CM_REJECT_CONSUMER : CM_REJECT_NO_SERVICE);
		return;
	}
	/* The peer asks again, and then there may be room. */
	id = listener->backlog > 0 ? cm_id_make(listener->file) : NULL;
	if (!id)
		return;
	request_take(id, p, listener);
	cm_ends_set(id, listener, &dst, &src);
	connect_request_tell(listener, id, p->mad);
}

static void take_rep(struct cm_id *id, const struct mad_packet *p)
{
	const uint8_t *mad = p->mad;
	struct rdma_ucm_conn_param *conn;
	struct cm_event *e;

	if (id->connection == CONN_ESTABLISHED && !id->requested) {
		/* Our answer was lost. */
		rtu_send(id);
		return;
	}
	if (id->connection == CONN_REP_RECEIVED)
		mra_send(id, CM_ANSWERS_REP);
	if (id->connection != CONN_REQ_SENT && id->connection != CONN_REQ_WAITS)
		return;
	if (message_is_stale(id->cm, p, prm_get(mad, REP_CA_GUID), prm_get32(mad, REP_QPN)))
		return;
	cm_repeat_stop(id);
	id->remote_id = prm_get32(mad, CM_LOCAL_ID);
	id->remote_guid = prm_get(mad, REP_CA_GUID);
	id->remote_qpn = prm_get32(mad, REP_QPN);
	cm_id_key(id, CM_BY_REMOTE_QPN, id->remote_qpn);
	id->remote_psn = prm_get32(mad, REP_PSN);
	id->initiator_depth = (uint8_t)prm_get(mad, REP_RESPONDER);
	id->responder_resources = (uint8_t)prm_get(mad, REP_INITIATOR);
	id->rnr_retries = (uint8_t)prm_get(mad, REP_RNR_RETRIES);
	id->connection = CONN_REP_RECEIVED;
	e = cm_event_make(id, CM_CONNECT_RESPONSE, 0);
	if (!e)
		return;
	conn = &e->body.param.conn;
	conn->qp_num = id->remote_qpn;
	conn->responder_resources = id->responder_resources;
	conn->initiator_depth = id->initiator_depth;
	conn->flow_control = (uint8_t)prm_get(mad, REP_FLOW_CONTROL);
	conn->rnr_retry_count = id->rnr_retries;
	conn->srq = (uint8_t)prm_get(mad, REP_SRQ);
	conn->private_data_len = REP_PRIVATE_BYTES;
	e->body.ece.vendor_id = prm_get32(mad, REP_VENDOR_ID_HIGH) << 16 |
				prm_get32(mad, REP_VENDOR_ID_MID) << 8 |
				prm_get32(mad, REP_VENDOR_ID_LOW);
	e->body.ece.attr_mod = mad_get32(mad, MAD_AT_MODIFIER);
	memcpy(conn->private_data, mad + REP_AT_PRIVATE, REP_PRIVATE_BYTES);
	cm_event_queue(e);
}

static void take_rtu(struct cm_id *id)
{
	if (id->connection != CONN_REP_SENT && id->connection != CONN_REP_WAITS)
		return;
	cm_repeat_stop(id);
	id->connection = CONN_ESTABLISHED;
	cm_event_tell(id, CM_ESTABLISHED, 0);
}

/* The peer asks for time. */
static void take_mra(struct cm_id *id, const struct mad_packet *p)
{
	switch (id->connection) {
	case CONN_REQ_SENT:
		id->connection = CONN_REQ_WAITS;
		id->remote_id = prm_get32(p->mad, CM_LOCAL_ID);
		break;
	case CONN_REP_SENT:
		id->connection = CONN_REP_WAITS;
		break;
	case CONN_REQ_WAITS:
	case CONN_REP_WAITS:
		break;
	default:
		return;
	}
	timer_arm(id, NS_OF(prm_get(p->mad, MRA_TIMEOUT)) + 2 * NS_OF(id->path.life));
}

static void take_rej(struct cm_id *id, const struct mad_packet *p)
{
	struct rdma_ucm_conn_param *conn;
	struct cm_event *e;

	switch (id->connection) {
	case CONN_REQ_SENT:
	case CONN_REQ_WAITS:
	case CONN_REQ_RECEIVED:
	case CONN_REP_SENT:
	case CONN_REP_WAITS:
	case CONN_REP_RECEIVED:
		break;
	default:
		return;
	}
	cm_repeat_stop(id);
	id->connection = CONN_NONE;
	id->state = CM_DISCONNECT;
	e = cm_event_make(id, CM_REJECTED, (int)prm_get(p->mad, REJ_REASON));
	if (!e)
		return;
	conn = &e->body.param.conn;
	conn->private_data_len = REJ_PRIVATE_BYTES;
	memcpy(conn->private_data, p->mad + REJ_AT_PRIVATE, REJ_PRIVATE_BYTES);
	cm_event_queue(e);
}

/* Answers a DREQ of which no id knows: the connection is over here. */
static void dreq_answer(struct cm *c, const struct mad_packet *p)
{
	uint8_t mad[MAD_BYTES] = {0};

	memcpy(mad, p->mad, MAD_HEADER_BYTES);
	mad_put16(mad, MAD_AT_ATTRIBUTE, CM_DREP);
	prm_set(mad, CM_LOCAL_ID, prm_get32(p->mad, CM_REMOTE_ID));
	prm_set(mad, CM_REMOTE_ID, prm_get32(p->mad, CM_LOCAL_ID));
	cm_message_answer(c, p, mad);
}

static void take_dreq(struct cm_id *id, const struct mad_packet *p)
{
	if (prm_get32(p->mad, DREQ_QPN) != id->qpn)
		return;
	switch (id->connection) {
	case CONN_REP_SENT:
	case CONN_REP_WAITS:
	case CONN_ESTABLISHED:
	case CONN_DREQ_SENT:
		cm_repeat_stop(id);
		id->connection = CONN_DREQ_RECEIVED;
		id->state = CM_DISCONNECT;
		cm_event_tell(id, CM_DISCONNECTED, 0);
		return;
	case CONN_TIME_WAIT:
		drep_send(id);
		return;
	default:
		return;
	}
}

static void take_drep(struct cm_id *id)
{
	if (id->connection != CONN_DREQ_SENT)
		return;
	time_wait_begin(id);
	cm_event_tell(id, CM_DISCONNECTED, 0);
}

void cm_take(struct cm *c, const struct mad_packet *p)
{
	const uint16_t attribute = mad_get16(p->mad, MAD_AT_ATTRIBUTE);
	struct cm_id *id;

	/* Those of queue pairs of programs are nobody's. */
	if (p->sqpn != IB_GSI_QPN || p->mad[MAD_AT_CLASS_VERSION] != CM_CLASS_VERSION)
		return;
	if (attribute == CM_REQ) {
		cm_take_req(c, p, true);
		return;
	}
	if (attribute == CM_SIDR_REQ || attribute == CM_SIDR_REP) {
		if (attribute == CM_SIDR_REQ)
			cm_take_sidr_req(c, p, true);
		else
			cm_take_sidr_rep(c, p);
		return;
	}
	/* Who has had no answer to its request knows no number of the other end, and names itself. */
	if (attribute == CM_REJ && prm_get(p->mad, REJ_REASON) == CM_REJECT_TIMEOUT)
		id = cm_id_of_request(c, mad_get64(p->mad, REJ_AT_INFO),
				      prm_get32(p->mad, CM_LOCAL_ID));
	else
		id = id_of(c, p);
	if (!id) {
		if (attribute == CM_DREQ)
			dreq_answer(c, p);
		return;
	}
	switch (attribute) {
	case CM_MRA:
		take_mra(id, p);
		break;
	case CM_REJ:
		take_rej(id, p);
		break;
	case CM_REP:
		take_rep(id, p);
		break;
	case CM_RTU:
		take_rtu(id);
		break;
	case CM_DREQ:
		take_dreq(id, p);
		break;
	case CM_DREP:
		take_drep(id);
		break;
	default:
		break;
	}
}
