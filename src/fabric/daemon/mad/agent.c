// SPDX-License-Identifier: BSD-2-Clause
/* Agents: how they come and go, which one an arrived MAD belongs to, and what it is due; see
 * agent.h. */
#include "fabric/daemon/mad/agent.h"

#include "fabric/daemon/mad/rmpp_transfer.h"
#include "fabric/daemon/mad/send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- agents come and go: what they may register for, and their numbers ---- */

#define CLASS_VERSIONS 0x83u
#define CLASSES	       0x50u /* without the directed SMPs' */
#define MOST_OUIS      8u    /* of a vendor's class and version at one port */
#define MOST_TID       0xffffffu
#define FIRST_TABLE    64u

/* ---- what may be asked ---- */

static bool attr_qpn_is_there(const struct mad_fabric *f, const struct mad_agent_attr *attr)
{
	return attr->qpn == 1 || !f->net->subnet->ports[attr->row].ethernet;
}

/* Checks the class of an agent that gets requests. */
static bool attr_class_is_sound(const struct mad_agent_attr *attr)
{
	bool smp = attr->class == MAD_CLASS_SMP_LID || attr->class == MAD_CLASS_SMP_DIRECTED;

	if (attr->class_version >= CLASS_VERSIONS)
		return false;
	if (attr->class >= CLASSES && attr->class != MAD_CLASS_SMP_DIRECTED)
		return false;
	if (mad_class_is_vendor2(attr->class) && !attr->oui[0] && !attr->oui[1] && !attr->oui[2])
		return false;
	if (attr->rmpp_version && !mad_class_has_rmpp(attr->class))
		return false;
	return smp == !attr->qpn;
}

static bool attr_same_class(const struct mad_agent_attr *a, const struct mad_agent_attr *b)
{
	return a->class == b->class && a->class_version == b->class_version;
}

static bool attr_same_oui(const struct mad_agent_attr *a, const struct mad_agent_attr *b)
{
	return !mad_class_is_vendor2(a->class) || !memcmp(a->oui, b->oui, sizeof(a->oui));
}

/* Tells whether another agent of the port has one of the methods. */
static bool attr_clashes(const struct mad_fabric *f, const struct mad_agent_attr *attr)
{
	for (struct mad_agent *a = f->of_port[attr->row]; a; a = a->next_of_port)
		if (attr_same_class(&a->attr, attr) && attr_same_oui(&a->attr, attr) &&
		    ((a->attr.methods[0] & attr->methods[0]) |
		     (a->attr.methods[1] & attr->methods[1])))
			return true;
	return false;
}

/* Tells whether it is the first agent of its class with this OUI. */
static bool agent_is_first_of_oui(const struct mad_fabric *f, const struct mad_agent *agent)
{
	struct mad_agent *a = f->of_port[agent->attr.row];

	while (!attr_same_class(&a->attr, &agent->attr) || !attr_same_oui(&a->attr, &agent->attr))
		a = a->next_of_port;
	return a == agent;
}

static bool attr_has_oui_room(const struct mad_fabric *f, const struct mad_agent_attr *attr)
{
	uint32_t others = 0;

	if (!mad_class_is_vendor2(attr->class))
		return true;
	for (struct mad_agent *a = f->of_port[attr->row]; a; a = a->next_of_port)
		if (attr_same_class(&a->attr, attr)) {
			if (attr_same_oui(&a->attr, attr))
				return true;
			others += agent_is_first_of_oui(f, a);
		}
	return others < MOST_OUIS;
}

static bool attr_wants_requests(const struct mad_agent_attr *attr)
{
	return attr->class && (attr->methods[0] | attr->methods[1]);
}

static int attr_check(const struct mad_fabric *f, const struct mad_agent_attr *attr)
{
	if (attr->qpn > 1)
		return -EINVAL;
	if (!attr_qpn_is_there(f, attr))
		return -EPROTONOSUPPORT;
	if (attr->rmpp_version > 1)
		return -EINVAL;
	if (!attr->class)
		return attr->user_rmpp ? -EINVAL : 0;
	if (!attr_class_is_sound(attr) || attr_clashes(f, attr))
		return -EINVAL;
	return !attr_wants_requests(attr) || attr_has_oui_room(f, attr) ? 0 : -ENOMEM;
}

/* ---- numbers ---- */

static struct mad_agent *agent_by_tid(const struct mad_fabric *f, uint32_t tid)
{
	struct mad_agent *a = f->by_tid ? f->by_tid[tid & f->by_tid_mask] : NULL;

	while (a && a->tid != tid)
		a = a->next_by_tid;
	return a;
}

static bool by_tid_grow(struct mad_fabric *f)
{
	uint32_t size = f->by_tid ? (f->by_tid_mask + 1) * 2 : FIRST_TABLE;
	struct mad_agent **table;

	if (f->by_tid && f->nagents <= f->by_tid_mask)
		return true;
	table = calloc(size, sizeof(struct mad_agent *));
	if (!table)
		return f->by_tid != NULL;
	for (uint32_t i = 0; f->by_tid && i <= f->by_tid_mask; i++)
		while (f->by_tid[i]) {
			struct mad_agent *a = f->by_tid[i];

			f->by_tid[i] = a->next_by_tid;
			a->next_by_tid = table[a->tid & (size - 1)];
			table[a->tid & (size - 1)] = a;
		}
	free(f->by_tid);
	f->by_tid = table;
	f->by_tid_mask = size - 1;
	return true;
}

/* Takes a number that no agent has, as late after its last use as possible. */
static void agent_number(struct mad_fabric *f, struct mad_agent *a)
{
	do {
		a->tid = f->next_tid;
		f->next_tid = f->next_tid == MOST_TID ? 1 : f->next_tid + 1;
	} while (agent_by_tid(f, a->tid));
	a->next_by_tid = f->by_tid[a->tid & f->by_tid_mask];
	f->by_tid[a->tid & f->by_tid_mask] = a;
	f->nagents++;
}

/* ---- the whole ---- */

int mad_agent_register(struct mad_fabric *f, struct mad_agent *a, const struct mad_agent_attr *attr,
		       const struct mad_agent_ops *ops, struct mad_scope *scope)
{
	struct mad_agent **end = &f->of_port[attr->row];
	int ret = attr_check(f, attr);

	if (ret)
		return ret;
	if (f->nagents == MOST_TID || !by_tid_grow(f))
		return -ENOMEM;
	*a = (struct mad_agent){.fabric = f, .ops = ops, .scope = scope, .attr = *attr};
	scope->fabric = f;
	agent_number(f, a);
	if (!attr_wants_requests(attr))
		return 0;
	while (*end)
		end = &(*end)->next_of_port;
	*end = a;
	return 0;
}

void mad_agent_unregister(struct mad_agent *a)
{
	struct mad_fabric *f = a->fabric;
	struct mad_agent **at;

	if (!f)
		return;
	for (at = &f->of_port[a->attr.row]; *at && *at != a;)
		at = &(*at)->next_of_port;
	if (*at)
		*at = a->next_of_port;
	for (at = &f->by_tid[a->tid & f->by_tid_mask]; *at != a;)
		at = &(*at)->next_by_tid;
	*at = a->next_by_tid;
	f->nagents--;
	while (a->sends) {
		struct mad_send *send = a->sends;

		send_detach(send);
		send_report(send, -ECANCELED);
	}
	rmpp_receives_end(a);
	a->fabric = NULL;
}

/* ---- finds the agent that an arrived MAD belongs to, and gives it what it is due ---- */

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
