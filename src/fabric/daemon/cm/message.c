// SPDX-License-Identifier: BSD-2-Clause
/* Messages on their way to the peer's port. */
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
