// SPDX-License-Identifier: BSD-2-Clause
/* What programs ask of an id: addresses, paths, attributes of its queue pair. */
#include <errno.h>
#include <string.h>

#include "base/endian.h"
#include "fabric/daemon/cm/id.h"

static const struct subnet_port *port_of(const struct cm_id *id)
{
	return id->row == SUBNET_NONE ? NULL : &id->cm->mad->net->subnet->ports[id->row];
}

static const struct subnet_node *device_of(const struct cm_id *id)
{
	return id->row == SUBNET_NONE ? NULL : subnet_node_of(id->cm->mad->net->subnet, id->row);
}

/* ---- addresses ---- */

/* An end as GID and service, whatever the program's addresses are. */
static uint16_t gid_write(const struct cm_id *id, const union ib_gid *gid,
			  const struct cm_address *of, uint8_t out[CM_SOCKADDR_BYTES])
{
	struct cm_address a = {
		.family = CM_AF_IB,
		.port = of->port,
		.pkey = id->path.there ? id->path.pkey : SUBNET_PKEY_DEFAULT,
		.sid = (uint64_t)(id->space ? id->space : id->ps) << 16,
		.sid_mask = UINT64_MAX,
	};

	memcpy(a.ip, gid, sizeof(a.ip));
	return cm_address_write(&a, out);
}

/* Fills in what both forms say of the device. */
static void device_write(const struct cm_id *id, struct rdma_ucm_query_addr_resp *r)
{
	const struct subnet_node *device = device_of(id);

	if (!device)
		return;
	r->ibdev_index = device->device;
	r->node_guid = htobe64(device->guid);
	r->port_num = (uint8_t)port_of(id)->number;
	r->pkey = htobe16(id->path.there ? id->path.pkey : SUBNET_PKEY_DEFAULT);
}

static int query_addresses(struct cm_id *id, bool gids, struct msg_cm_call_reply *reply)
{
	struct rdma_ucm_query_addr_resp r = {0};

	device_write(id, &r);
	if (gids) {
		union ib_gid sgid = id->path.sgid;

		if (!id->path.there && device_of(id))
			sgid = cm_port_gid(id);
		r.src_size = gid_write(id, &sgid, &id->src, (void *)&r.src_addr);
		r.dst_size = gid_write(id, &id->path.dgid, &id->dst, (void *)&r.dst_addr);
	} else {
		r.src_size = cm_address_write(&id->src, (void *)&r.src_addr);
		r.dst_size = cm_address_write(&id->dst, (void *)&r.dst_addr);
	}
	memcpy(reply->bytes, &r, sizeof(r));
	reply->length = sizeof(r);
	return 0;
}

/* ---- paths ---- */

static int query_path(struct cm_id *id, uint32_t room, struct msg_cm_call_reply *reply)
{
	struct rdma_ucm_query_path_resp head = {.num_paths = id->path.there};
	struct ib_path_rec_data data = {.flags = CM_PATH_FLAGS};

	memcpy(reply->bytes, &head, sizeof(head));
	reply->length = sizeof(head);
	if (!id->path.there || room < sizeof(head) + sizeof(data))
		return 0;
	cm_path_write(id, (void *)data.path_rec);
	memcpy(reply->bytes + sizeof(head), &data, sizeof(data));
	reply->length += (uint32_t)sizeof(data);
	return 0;
}

int cm_query(struct cm_id *id, uint32_t option, uint32_t room, struct msg_cm_call_reply *reply)
{
	const uint32_t least = offsetof(struct rdma_ucm_query_addr_resp, ibdev_index);

	switch (option) {
	case RDMA_USER_CM_QUERY_ADDR:
	case RDMA_USER_CM_QUERY_GID:
		return room < least ? -ENOSPC
				    : query_addresses(id, option == RDMA_USER_CM_QUERY_GID, reply);
	case RDMA_USER_CM_QUERY_PATH:
		return room < sizeof(struct rdma_ucm_query_path_resp) ? -ENOSPC
								      : query_path(id, room, reply);
	default:
		return -ENOSYS;
	}
}

static void user_path_write(const struct cm_id *id, struct ib_user_path_rec *out)
{
	const struct cm_path *p = &id->path;

	memcpy(out->dgid, &p->dgid, 16);
	memcpy(out->sgid, &p->sgid, 16);
	out->dlid = htobe16(p->dlid);
	out->slid = htobe16(p->slid);
	out->flow_label = htobe32(p->flow_label);
	out->reversible = 1;
	out->mtu = p->mtu;
	out->pkey = htobe16(p->pkey);
	out->hop_limit = p->hop_limit;
	out->traffic_class = p->traffic_class;
	out->numb_path = 1;
	out->sl = p->sl;
	out->mtu_selector = out->rate_selector = out->packet_life_time_selector = SA_EXACTLY;
	out->rate = p->rate;
	out->packet_life_time = p->life;
}

int cm_query_route(struct cm_id *id, uint32_t room, struct msg_cm_call_reply *reply)
{
	struct rdma_ucm_query_route_resp r = {0};
	const struct subnet_node *device = device_of(id);
	uint8_t address[CM_SOCKADDR_BYTES];

	if (room < offsetof(struct rdma_ucm_query_route_resp, ibdev_index))
		return -ENOSPC;
	(void)cm_address_write(&id->src, address);
	memcpy(&r.src_addr, address, sizeof(r.src_addr));
	(void)cm_address_write(&id->dst, address);
	memcpy(&r.dst_addr, address, sizeof(r.dst_addr));
	if (device) {
		r.ibdev_index = device->device;
		r.node_guid = htobe64(device->guid);
		r.port_num = (uint8_t)port_of(id)->number;
		r.num_paths = id->path.there;
		if (id->path.there)
			user_path_write(id, &r.ib_route[0]);
	}
	memcpy(reply->bytes, &r, sizeof(r));
	reply->length = sizeof(r);
	return 0;
}

/* ---- queue pairs ---- */

static uint8_t gid_index(const struct cm_id *id, const union ib_gid *sgid)
{
	const struct subnet *s = id->cm->mad->net->subnet;
	struct subnet_gid_entry e;

	for (uint32_t i = 0; i < subnet_port_gids(port_of(id)); i++)
		if (subnet_gid(s, id->row, i, &e) && !memcmp(e.gid.raw, sgid->raw, 16) &&
		    (e.type == GID_ROCE_V2 || !port_of(id)->ethernet))
			return (uint8_t)i;
	return 0;
}

void cm_ah_attr(const struct cm_id *id, const struct cm_path *p, struct ib_uverbs_ah_attr *out)
{
	out->port_num = (uint8_t)port_of(id)->number;
	out->sl = p->sl;
	out->dlid = p->dlid;
	out->static_rate = p->rate;
	out->is_global = port_of(id)->ethernet || p->hop_limit > 1 || p->group;
	if (!out->is_global)
		return;
	memcpy(out->grh.dgid, &p->dgid, 16);
	out->grh.flow_label = p->flow_label;
	out->grh.sgid_index = gid_index(id, &p->sgid);
	out->grh.hop_limit = p->hop_limit;
	out->grh.traffic_class = p->traffic_class;
}

uint16_t cm_pkey_index(const struct subnet_port *p, uint16_t pkey)
{
	for (uint32_t i = 0; i < subnet_port_pkeys(p); i++)
		if ((subnet_pkey(p, i) & 0x7fff) == (pkey & 0x7fff))
			return (uint16_t)i;
	return 0;
}

/* Does the id listen, or has it asked for a connection or been asked? */
static bool has_connection(const struct cm_id *id)
{
	return id->state == CM_CONNECT || id->state == CM_DISCONNECT || id->state == CM_LISTEN;
}

static void attr_init(const struct cm_id *id, struct ib_uverbs_qp_attr *out)
{
	out->qp_attr_mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT;
	out->port_num = (uint8_t)port_of(id)->number;
	out->pkey_index =
		cm_pkey_index(port_of(id), id->path.there ? id->path.pkey : SUBNET_PKEY_DEFAULT);
	if (id->qp_type == IB_QPT_UD) {
		out->qp_attr_mask |= IB_QP_QKEY;
		out->qkey = id->qkey ? id->qkey : CM_UDP_QKEY;
		return;
	}
	out->qp_attr_mask |= IB_QP_ACCESS_FLAGS;
	if (!has_connection(id))
		return;
	out->qp_access_flags = IB_ACCESS_REMOTE_WRITE;
	if (id->responder_resources)
		out->qp_access_flags |= IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC;
}

static void attr_rtr(const struct cm_id *id, struct ib_uverbs_qp_attr *out)
{
	out->qp_attr_mask = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
	cm_ah_attr(id, &id->path, &out->ah_attr);
	out->path_mtu = id->path.mtu;
	out->dest_qp_num = id->remote_qpn;
	/* The peer begins with the number that our own message has named. */
	out->rq_psn = id->psn;
	if (id->qp_type == IB_QPT_UC)
		return;
	out->qp_attr_mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	out->max_dest_rd_atomic = id->responder_resources;
}

static void attr_rts(const struct cm_id *id, struct ib_uverbs_qp_attr *out)
{
	out->qp_attr_mask = IB_QP_STATE | IB_QP_SQ_PSN;
	out->sq_psn = id->remote_psn;
	if (id->qp_type == IB_QPT_UC)
		return;
	out->qp_attr_mask |=
		IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_TIMEOUT;
	out->retry_cnt = id->retries;
	out->rnr_retry = id->rnr_retries;
	out->max_rd_atomic = id->initiator_depth;
	out->timeout = id->ack_timeout_given ? id->ack_timeout : (uint8_t)(id->path.life + 1);
}

int cm_qp_attr(struct cm_id *id, uint32_t state, struct ib_uverbs_qp_attr *out)
{
	*out = (struct ib_uverbs_qp_attr){.qp_state = state};
	if (id->row == SUBNET_NONE)
		return -EINVAL;
	/* Linux says the same of every state as long as there is no peer, or none is needed. */
	if (id->qp_type == IB_QPT_UD || !has_connection(id)) {
		attr_init(id, out);
		return 0;
	}
	if (id->connection < CONN_REQ_SENT || id->connection > CONN_ESTABLISHED ||
	    (state != IB_QPS_INIT && id->connection < CONN_REQ_RECEIVED))
		return -EINVAL;
	switch (state) {
	case IB_QPS_INIT:
		attr_init(id, out);
		return 0;
	case IB_QPS_RTR:
		attr_rtr(id, out);
		return 0;
	case IB_QPS_RTS:
		attr_rts(id, out);
		return 0;
	default:
		return -EINVAL;
	}
}

/* ---- what people ask of all ids ---- */

void cm_describe(const struct cm *c, uint32_t host, uint32_t number, struct msg_cm_id_reply *out)
{
	const struct cm_id *id = cm_id_next(c, host, number);

	*out = (struct msg_cm_id_reply){.number = CM_NO_ID};
	if (!id)
		return;
	*out = (struct msg_cm_id_reply){
		.number = id->number,
		.pid = id->file->pid,
		.host = id->file->host,
		.row = id->row,
		.qpn = id->qpn,
		.space = id->ps,
		.qp_type = id->qp_type,
		.state = (uint8_t)id->state,
	};
	(void)cm_address_write(&id->src, out->src);
	(void)cm_address_write(&id->dst, out->dst);
}
