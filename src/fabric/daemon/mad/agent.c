// SPDX-License-Identifier: BSD-2-Clause
/* Finds the agent that an arrived MAD belongs to, and gives it what it is due; see agent.h. */
#include <string.h>

#include "fabric/daemon/mad/rmpp_glue.h"
#include "fabric/daemon/mad/send.h"

/* ---- finding the agent ---- */

/* A host numbers its TIDs across its ports, so an answer finds its agent at any of them. */
static bool same_host(const struct subnet *s, uint32_t a, uint32_t b)
{
	const struct subnet_node *na = subnet_node_of(s, a), *nb = subnet_node_of(s, b);

	return na == nb || (na->host != SUBNET_NONE && na->host == nb->host);
}

static bool agent_does_rmpp_of(const struct mad_agent *a, const struct mad_packet *p)
{
	return a->attr.rmpp_version && !a->attr.user_rmpp && mad_rmpp_is_active(p->mad);
}

/*
 * Tells whether this is a further packet of an answer whose first packet has closed the request:
 * the program does RMPP itself.
 */
static bool packet_is_users_rmpp(const struct mad_agent *a, const struct mad_packet *p)
{
	return (!a->attr.rmpp_version || a->attr.user_rmpp) && mad_rmpp_is_active(p->mad);
}

static struct mad_agent *response_find(struct mad_fabric *f, const struct mad_packet *p,
				       struct mad_send **send)
{
	struct mad_agent *a = agent_by_tid(f, mad_get32(p->mad, MAD_AT_TID));

	if (!a || !same_host(f->net->subnet, a->attr.row, p->row))
		return NULL;
	/* If the packet never left, its request is over. */
	if (p->local || agent_does_rmpp_of(a, p))
		return a;
	*send = send_find(a, p);
	return *send || packet_is_users_rmpp(a, p) ? a : NULL;
}

static bool agent_wants(const struct mad_agent *a, const uint8_t *mad)
{
	unsigned method = mad[MAD_AT_METHOD] & ~(unsigned)MAD_RESPONSE;

	return a->attr.class == mad[MAD_AT_CLASS] &&
	       a->attr.class_version == mad[MAD_AT_CLASS_VERSION] &&
	       a->attr.methods[method / 64] >> method % 64 & 1 &&
	       (!mad_class_is_vendor2(a->attr.class) ||
		!memcmp(a->attr.oui, &mad[MAD_AT_OUI], sizeof(a->attr.oui)));
}

struct mad_agent *agent_find(struct mad_fabric *f, const struct mad_packet *p,
			     struct mad_send **send)
{
	struct mad_agent *a;

	if (mad_is_response(p->mad))
		return response_find(f, p, send);
	a = f->of_port[net_end_port(f->net, p->row)];
	while (a && !agent_wants(a, p->mad))
		a = a->next_of_port;
	return a;
}

/* ---- giving it to the agent ---- */

/* The entry of the port's table by which an answer goes back as the packet has come. */
static uint8_t own_gid_index(const struct subnet *s, uint32_t row, const struct mad_packet *p)
{
	bool ethernet = s->ports[row].ethernet;
	struct subnet_gid_entry own;

	for (uint32_t i = 0; i < subnet_port_gids(&s->ports[row]); i++)
		if (subnet_gid(s, row, i, &own) && !memcmp(&own.gid, &p->dgid, sizeof(own.gid)) &&
		    (!ethernet || p->roce_v1 == (own.type == GID_IB_ROCE_V1)))
			return (uint8_t)i;
	return 0;
}

struct mad_address agent_address_of(const struct mad_fabric *f, const struct mad_packet *p)
{
	const struct subnet *s = f->net->subnet;
	uint32_t row = net_end_port(f->net, p->row);
	uint32_t lmc = atomic_load_explicit(&s->ports[row].lmc, memory_order_relaxed);
	struct mad_address from = {
		.qpn = p->sqpn, .lid = p->slid, .pkey_index = p->pkey_index, .sl = p->sl};

	if (p->dlid < MAD_LID_MULTICAST)
		from.path_bits = (uint8_t)(p->dlid & ((1u << lmc) - 1));
	if (!p->grh)
		return from;
	from.grh = true;
	from.gid_index = own_gid_index(s, row, p);
	from.hop_limit = p->hop_limit;
	from.traffic_class = p->traffic_class;
	from.flow_label = p->flow_label;
	from.gid = p->sgid;
	return from;
}

void agent_take(struct mad_agent *a, struct mad_send *send, const struct mad_packet *p)
{
	struct mad_message m = {.length = MAD_BYTES, .data = p->mad};

	if (agent_does_rmpp_of(a, p)) {
		rmpp_receive(a, p);
		return;
	}
	m.from = agent_address_of(a->fabric, p);
	/* The request ends with its answer, so that its timer cannot fire in between. */
	if (send)
		send_detach(send);
	a->ops->receive(a, &m);
	if (send)
		send_report(send, 0);
}
