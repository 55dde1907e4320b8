// SPDX-License-Identifier: BSD-2-Clause
/*
 * Who listens, and what is common to requests of all kinds: the ids that they make, and those that come
 * before anybody listens.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/cm/id.h"

/* Does the listener take requests to that address? */
static bool listener_takes(const struct cm_id *id, const struct cm_address *to)
{
	/* Its GID is that of the port, which is the right one. */
	if (id->src.family == CM_AF_IB)
		return true;
	if (to->family == AF_UNSPEC)
		return false;
	if (cm_address_is_any(&id->src))
		return !id->afonly || id->src.family == to->family;
	return cm_address_equal(&id->src, to);
}

struct cm_id *cm_listener_find(const struct cm *c, const struct mad_packet *p, uint64_t wanted,
			       const struct cm_address *to, bool *service)
{
	const uint32_t row = net_end_port(c->mad->net, p->row);
	const uint32_t host = subnet_node_of(cm_subnet(c), row)->host;

	*service = false;
	for (struct cm_id *id = cm_id_chain(c, CM_BY_PORT, wanted & CM_PORT_MASK); id;
	     id = id->chain[CM_BY_PORT].next) {
		if (!id->listens || id->file->host != host ||
		    cm_service_of(id, id->src.port) != wanted ||
		    (id->row != SUBNET_NONE && id->row != row))
			continue;
		*service = true;
		if (listener_takes(id, to))
			return id;
	}
	return NULL;
}

struct cm_id *cm_id_of_request(const struct cm *c, uint64_t guid, uint32_t remote_id)
{
	for (struct cm_id *id = cm_id_chain(c, CM_BY_REMOTE_ID, remote_id); id;
	     id = id->chain[CM_BY_REMOTE_ID].next)
		if (id->requested && id->connection != CONN_NONE && id->remote_guid == guid &&
		    id->remote_id == remote_id)
			return id;
	return NULL;
}

struct cm_id *cm_id_stale(const struct cm *c, uint32_t row, uint64_t guid, uint32_t qpn)
{
	const struct subnet *s = cm_subnet(c);
	const uint32_t host = subnet_node_of(s, row)->host;

	for (struct cm_id *id = cm_id_chain(c, CM_BY_REMOTE_QPN, qpn); id;
	     id = id->chain[CM_BY_REMOTE_QPN].next)
		if (id->connection >= CONN_REQ_RECEIVED && id->connection <= CONN_ESTABLISHED &&
		    id->qp_type != IB_QPT_UD && id->remote_qpn == qpn && id->remote_guid == guid &&
		    id->file->host == host)
			return id;
	return NULL;
}

void cm_ends_set(struct cm_id *id, const struct cm_id *listener, const struct cm_address *own,
		 const struct cm_address *peer)
{
	id->src = *own;
	id->dst = *peer;
	if (listener->src.family != CM_AF_IB)
		return;
	id->src = listener->src;
	id->dst = (struct cm_address){.family = CM_AF_IB};
	id->src.pkey = id->dst.pkey = id->path.pkey;
	memcpy(id->src.ip, &id->path.sgid, 16);
	memcpy(id->dst.ip, &id->path.dgid, 16);
}

void cm_requested_begin(struct cm_id *id, const struct mad_packet *p, const struct cm_id *listener,
			uint64_t guid)
{
	id->requested = true;
	id->ps = listener->ps;
	id->space = listener->space;
	id->qp_type = listener->qp_type;
	id->row = net_end_port(id->cm->mad->net, p->row);
	id->remote_id = prm_get32(p->mad, CM_LOCAL_ID);
	cm_id_key(id, CM_BY_REMOTE_ID, id->remote_id);
	id->remote_guid = guid;
	id->state = CM_CONNECT;
	id->connection = CONN_REQ_RECEIVED;
}

void cm_request_tell(struct cm_event *e, struct cm_id *listener, struct cm_id *id)
{
	e->fresh = id;
	e->body.id = id->number;
	listener->backlog--;
	id->listener = listener;
	cm_event_queue(e);
}

/* ---- requests that come before their service ---- */

/*
 * A server that is connected twice may stop listening and listen again in between (perftest does).  On
 * hardware its client meanwhile makes memory regions and queues, which takes milliseconds; here that
 * takes no time, and it would find nobody in half of the runs of `ib_send_bw -R`.  So a request is not
 * refused at once.
 */
#define EARLY_NS   50000000u
#define EARLY_MOST 1024u

struct cm_early {
	struct cm_early *next, **prev;
	struct cm *cm;
	struct loop_timer timer;
	struct mad_packet packet;
};

static void early_unlink(struct cm_early *e)
{
	loop_timer_cancel(e->cm->mad->loop, &e->timer);
	*e->prev = e->next;
	if (e->next)
		e->next->prev = e->prev;
	e->cm->nearly--;
}

static bool early_is_served(const struct cm_early *e)
{
	const struct cm_address nobody = {0};
	bool served;

	/* It has one place in both kinds of requests. */
	(void)cm_listener_find(e->cm, &e->packet, prm_get(e->packet.mad, REQ_SERVICE_ID), &nobody,
			       &served);
	return served;
}

/* The request is taken or refused. */
static void early_take(struct cm_early *e)
{
	early_unlink(e);
	if (mad_get16(e->packet.mad, MAD_AT_ATTRIBUTE) == CM_REQ)
		cm_take_req(e->cm, &e->packet, false);
	else
		cm_take_sidr_req(e->cm, &e->packet, false);
	free(e);
}

static void early_is_over(struct loop *l, struct loop_timer *t)
{
	(void)l;
	early_take(container_of(t, struct cm_early, timer));
}

bool cm_early_keep(struct cm *c, const struct mad_packet *p)
{
	struct cm_early *e = c->nearly < EARLY_MOST ? malloc(sizeof(*e)) : NULL;

	if (!e)
		return false;
	*e = (struct cm_early){.cm = c, .timer.fire = early_is_over, .packet = *p};
	e->next = c->early;
	e->prev = &c->early;
	if (e->next)
		e->next->prev = &e->next;
	c->early = e;
	c->nearly++;
	loop_timer_arm(c->mad->loop, &e->timer, loop_now(c->mad->loop) + EARLY_NS);
	return true;
}

void cm_early_retry(struct cm *c)
{
	struct cm_early *e = c->early, *next;

	for (; e; e = next) {
		next = e->next;
		if (early_is_served(e))
			early_take(e);
	}
}

void cm_early_drop(struct cm *c)
{
	struct cm_early *e = c->early, *next;

	for (; e; e = next) {
		next = e->next;
		loop_timer_cancel(c->mad->loop, &e->timer);
		free(e);
	}
	c->early = NULL;
	c->nearly = 0;
}
