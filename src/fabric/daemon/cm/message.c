// SPDX-License-Identifier: BSD-2-Clause
/* What messages of all kinds have, and their way to the peer's port. */
#include <errno.h>
#include <string.h>

#include "fabric/daemon/cm/id.h"

void cm_message_begin(struct cm_id *id, uint8_t mad[MAD_BYTES], enum cm_attribute attribute)
{
	memset(mad, 0, MAD_BYTES);
	mad[MAD_AT_BASE_VERSION] = 1;
	mad[MAD_AT_CLASS] = MAD_CLASS_CM;
	mad[MAD_AT_CLASS_VERSION] = CM_CLASS_VERSION;
	mad[MAD_AT_METHOD] = MAD_SEND;
	mad_put64(mad, MAD_AT_TID, ++id->cm->next_tid);
	mad_put16(mad, MAD_AT_ATTRIBUTE, attribute);
	prm_set(mad, CM_LOCAL_ID, id->local_id);
	if (attribute != CM_REQ)
		prm_set(mad, CM_REMOTE_ID, id->remote_id);
}

void cm_message_send(const struct cm_id *id, const uint8_t mad[MAD_BYTES])
{
	struct mad_fabric *m = id->cm->mad;
	struct mad_packet *p = mad_packet_get(m);
	const struct cm_path *path = &id->path;

	if (!p)
		return;
	p->row = id->row;
	p->sqpn = p->dqpn = IB_GSI_QPN;
	p->qkey = MAD_QKEY_WELL_KNOWN;
	p->slid = path->slid;
	p->dlid = path->dlid;
	p->pkey = path->pkey;
	p->sl = path->sl;
	p->grh = m->net->subnet->ports[id->row].ethernet;
	p->hop_limit = path->hop_limit;
	p->traffic_class = path->traffic_class;
	p->flow_label = path->flow_label;
	p->sgid = path->sgid;
	p->dgid = path->dgid;
	memcpy(p->mad, mad, MAD_BYTES);
	mad_emit(m, p);
}

void cm_message_answer(struct cm *c, const struct mad_packet *to, const uint8_t mad[MAD_BYTES])
{
	struct mad_packet *p = mad_packet_get(c->mad);

	if (!p)
		return;
	*p = *to;
	p->next = NULL;
	p->send = NULL;
	memcpy(p->mad, mad, MAD_BYTES);
	mad_turn(c->mad, p);
	mad_emit(c->mad, p);
}

/* ---- private data ---- */

int cm_private_put(uint8_t *at, uint32_t room, const uint8_t *data, uint32_t length)
{
	if (length > room)
		return -EINVAL;
	if (length)
		memcpy(at, data, length);
	return 0;
}

uint64_t cm_service_of(const struct cm_id *id, uint16_t port)
{
	return (uint64_t)id->space << 16 | port;
}

uint32_t cm_head_bytes(const struct cm_id *id)
{
	return id->src.family == CM_AF_IB ? 0 : IP_CM_BYTES;
}

void cm_head_put(const struct cm_id *id, uint8_t *at)
{
	if (!cm_head_bytes(id))
		return;
	prm_set(at, IP_CM_IP_VERSION, id->src.family == AF_INET ? 4 : 6);
	prm_set(at, IP_CM_PORT, id->src.port);
	memcpy(at + IP_CM_AT_SOURCE, id->src.ip, 16);
	memcpy(at + IP_CM_AT_TARGET, id->dst.ip, 16);
}

bool cm_head_read(const uint8_t *at, uint16_t port, struct cm_address *src, struct cm_address *dst)
{
	const uint32_t version = prm_get32(at, IP_CM_IP_VERSION);

	if (prm_get(at, IP_CM_VERSION) || (version != 4 && version != 6))
		return false;
	*src = *dst = (struct cm_address){.family = version == 4 ? AF_INET : AF_INET6};
	src->port = (uint16_t)prm_get(at, IP_CM_PORT);
	dst->port = port;
	memcpy(src->ip, at + IP_CM_AT_SOURCE, 16);
	memcpy(dst->ip, at + IP_CM_AT_TARGET, 16);
	return true;
}
