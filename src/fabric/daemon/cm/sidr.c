// SPDX-License-Identifier: BSD-2-Clause
/* Services of datagrams: SIDR (IBTA volume 1, 12.11). */
#include <errno.h>
#include <string.h>

#include "fabric/daemon/cm/id.h"

int cm_sidr_connect(struct cm_id *id, const struct rdma_ucm_conn_param *p)
{
	uint8_t *mad = id->message;

	cm_message_begin(id, mad, CM_SIDR_REQ);
	prm_set(mad, CM_REMOTE_ID, 0);
	prm_set(mad, SIDR_REQ_PKEY, id->path.pkey);
	prm_set(mad, SIDR_REQ_SERVICE_ID, cm_service_of(id, id->dst.port));
	return cm_request_send(id, SIDR_REQ_AT_PRIVATE, SIDR_REQ_PRIVATE_BYTES, p);
}

int cm_sidr_answer(struct cm_id *id, enum cm_sidr_status status,
		   const struct rdma_ucm_conn_param *p)
{
	uint8_t mad[MAD_BYTES];

	cm_message_begin(id, mad, CM_SIDR_REP);
	prm_set(mad, CM_LOCAL_ID, id->remote_id);
	prm_set(mad, CM_REMOTE_ID, 0);
	prm_set(mad, SIDR_REP_STATUS, status);
	prm_set(mad, SIDR_REP_SERVICE_ID, cm_service_of(id, id->src.port));
	if (p && cm_private_put(mad + SIDR_REP_AT_PRIVATE, SIDR_REP_PRIVATE_BYTES, p->private_data,
				p->private_data_len))
		return -EINVAL;
	if (p && !status) {
		id->qpn = p->qp_num & IB_QPN_MASK;
		id->qkey = p->qkey ? p->qkey : CM_UDP_QKEY;
		prm_set(mad, SIDR_REP_QPN, id->qpn);
		prm_set(mad, SIDR_REP_QKEY, id->qkey);
	}
	/* It may ask again, if this is lost. */
	memcpy(id->message, mad, MAD_BYTES);
	id->connection = status ? CONN_NONE : CONN_ESTABLISHED;
	cm_message_send(id, mad);
	return 0;
}

/* The number of a port for what has no adapter's number. */
static uint64_t mad_gid_hash(const union ib_gid *gid)
{
	return gid->half[0] * 31 + gid->half[1];
}

static void sidr_refuse(struct cm *c, const struct mad_packet *p, enum cm_sidr_status status)
{
	uint8_t mad[MAD_BYTES] = {0};

	memcpy(mad, p->mad, MAD_HEADER_BYTES);
	mad_put16(mad, MAD_AT_ATTRIBUTE, CM_SIDR_REP);
	prm_set(mad, CM_LOCAL_ID, prm_get32(p->mad, CM_LOCAL_ID));
	prm_set(mad, SIDR_REP_STATUS, status);
	prm_set(mad, SIDR_REP_SERVICE_ID, prm_get(p->mad, SIDR_REQ_SERVICE_ID));
	cm_message_answer(c, p, mad);
}

/* Where the requester is, by its packet. */
static void sidr_path_take(struct cm_id *id, const struct mad_packet *p)
{
	const struct subnet_port *port = &cm_subnet(id->cm)->ports[id->row];

	id->path = (struct cm_path){
		.there = true,
		.slid = p->dlid,
		.dlid = p->slid,
		.pkey = (uint16_t)prm_get(p->mad, SIDR_REQ_PKEY),
		.mtu = IB_MTU_4096,
		.life = CM_RESPONSE_TIMEOUT - 2,
		.sl = p->sl,
		.hop_limit = p->grh ? 64 : 0,
		.traffic_class = p->traffic_class,
		.flow_label = p->flow_label,
		.sgid = p->dgid,
		.dgid = p->sgid,
	};
	if (port->ethernet)
		id->path.slid = id->path.dlid = 0;
}

void cm_take_sidr_req(struct cm *c, const struct mad_packet *p, bool early)
{
	const uint64_t service = prm_get(p->mad, SIDR_REQ_SERVICE_ID);
	const uint8_t *private = p->mad + SIDR_REQ_AT_PRIVATE;
	/* Requests name no adapter; their ports do as well. */
	const uint64_t guid = p->slid | mad_gid_hash(&p->sgid);
	struct cm_address src = {0}, dst = {0};
	struct cm_id *id, *listener;
	struct rdma_ucm_ud_param *ud;
	struct cm_event *e;
	bool served;

	id = cm_id_of_request(c, guid, prm_get32(p->mad, CM_LOCAL_ID));
	if (id) {
		if (id->connection == CONN_ESTABLISHED)
			cm_message_send(id, id->message);
		return;
	}
	if (!cm_head_read(private, (uint16_t)(service & CM_PORT_MASK), &src, &dst))
		src = dst = (struct cm_address){0};
	listener = cm_listener_find(c, p, service, &dst, &served);
	if (!served && early && cm_early_keep(c, p))
		return;
	if (!listener) {
		sidr_refuse(c, p, served ? CM_SIDR_REJECT : CM_SIDR_UNSUPPORTED);
		return;
	}
	id = listener->backlog > 0 ? cm_id_make(listener->file) : NULL;
	e = id ? cm_event_make(listener, CM_CONNECT_REQUEST, 0) : NULL;
	if (!e) {
		if (id)
			cm_id_free(id);
		return;
	}
	cm_requested_begin(id, p, listener, guid);
	sidr_path_take(id, p);
	cm_ends_set(id, listener, &dst, &src);
	ud = &e->body.param.ud;
	ud->private_data_len = (uint8_t)(SIDR_REQ_PRIVATE_BYTES - cm_head_bytes(listener));
	memcpy(ud->private_data, private + cm_head_bytes(listener), ud->private_data_len);
	cm_request_tell(e, listener, id);
}

void cm_take_sidr_rep(struct cm *c, const struct mad_packet *p)
{
	const uint32_t named = prm_get32(p->mad, CM_LOCAL_ID);
	struct cm_id *id = cm_id_of_message(c, named);
	const uint32_t status = prm_get32(p->mad, SIDR_REP_STATUS);
	struct rdma_ucm_ud_param *ud;
	struct cm_event *e;

	if (!id || id->connection != CONN_REQ_SENT || id->qp_type != IB_QPT_UD ||
	    id->row != net_end_port(c->mad->net, p->row))
		return;
	cm_repeat_stop(id);
	id->connection = CONN_NONE;
	e = cm_event_make(id, status ? CM_UNREACHABLE : CM_ESTABLISHED, (int)status);
	if (!e)
		return;
	id->remote_qpn = prm_get32(p->mad, SIDR_REP_QPN);
	ud = &e->body.param.ud;
	ud->qp_num = id->remote_qpn;
	ud->qkey = prm_get32(p->mad, SIDR_REP_QKEY);
	cm_ah_attr(id, &id->path, &ud->ah_attr);
	ud->private_data_len = SIDR_REP_PRIVATE_BYTES;
	memcpy(ud->private_data, p->mad + SIDR_REP_AT_PRIVATE, SIDR_REP_PRIVATE_BYTES);
	cm_event_queue(e);
}
