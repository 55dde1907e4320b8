// SPDX-License-Identifier: BSD-2-Clause
/* A packet at its end: the port's own agent gets it, or a program's, or nobody; see mad.h. */
#include "fabric/daemon/mad/send.h"

/* Tells whether a MAD of this class has arrived where it has to. */
static bool packet_is_sound(const struct mad_packet *p)
{
	if (p->mad[MAD_AT_BASE_VERSION] != 1)
		return false;
	return p->dqpn == (mad_is_smp(p->mad) ? 0 : IB_GSI_QPN);
}

/* Queue pair 1 of every port has this Q_Key, and no queue pair may use another one towards it. */
static bool packet_qkey(const struct mad_fabric *f, const struct mad_packet *p)
{
	if (!p->dqpn || p->qkey == MAD_QKEY_WELL_KNOWN)
		return true;
	if (f->qkey_violated)
		f->qkey_violated(f->key_user, p);
	return false;
}

/* Finds the entry of the port's table that lets the packet in. */
static bool packet_pkey_find(const struct mad_fabric *f, struct mad_packet *p)
{
	const struct subnet_port *port = &f->net->subnet->ports[net_end_port(f->net, p->row)];

	if (!p->dqpn)
		return true;
	for (uint32_t i = 0; i < subnet_port_pkeys(port); i++)
		if (pkey_match(subnet_pkey(port, i), p->pkey)) {
			p->pkey_index = (uint16_t)i;
			return true;
		}
	return false;
}

static bool packet_pkey(const struct mad_fabric *f, struct mad_packet *p)
{
	if (packet_pkey_find(f, p))
		return true;
	if (f->pkey_violated)
		f->pkey_violated(f->key_user, p);
	return false;
}

static bool method_is_port_agents(const uint8_t *mad)
{
	unsigned method = mad[MAD_AT_METHOD];

	return method == MAD_GET || method == MAD_SET ||
	       (method == MAD_TRAP_REPRESS && mad_is_smp(mad));
}

static struct port_agent *port_agent_of(const struct mad_fabric *f, const struct mad_packet *p)
{
	if (!method_is_port_agents(p->mad) || f->net->subnet->ports[p->row].ethernet)
		return NULL;
	return f->port_agents[p->mad[MAD_AT_CLASS]];
}

static enum mad_verdict port_agent_ask(struct mad_fabric *f, struct mad_packet *p)
{
	struct port_agent *a = port_agent_of(f, p);

	return a ? a->handle(a, p->row, p) : MAD_PASSED;
}

/* Answers a question that nobody takes, unless it never left its asker. */
static bool packet_refuse(struct mad_packet *p)
{
	unsigned method = p->mad[MAD_AT_METHOD];

	if (p->local || mad_is_response(p->mad) || (method != MAD_GET && method != MAD_SET))
		return false;
	mad_answer(p->mad, MAD_GET_RESP, MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	return true;
}

static void packet_reply(struct mad_fabric *f, struct mad_packet *p)
{
	mad_turn(f, p);
	mad_emit(f, p);
}

/* Finds who takes the packet.  True: p has become the answer. */
static bool packet_give(struct mad_fabric *f, struct mad_packet *p)
{
	struct mad_send *send = NULL;
	struct mad_agent *agent;

	switch (port_agent_ask(f, p)) {
	case MAD_ANSWERED:
		return true;
	case MAD_SILENT:
		return false;
	case MAD_PASSED:
		break;
	}
	agent = agent_find(f, p, &send);
	if (agent) {
		agent_take(agent, send, p);
		return false;
	}
	return packet_refuse(p);
}

/* The packet is for a queue pair of a process, which checks its keys itself. */
static void queue_pair_give(const struct mad_fabric *f, const struct mad_packet *p)
{
	if (p->sqpn == IB_GSI_QPN && f->to_queue_pair)
		f->to_queue_pair(f->queue_pair_user, p);
}

void mad_deliver(struct mad_fabric *f, struct mad_packet *p)
{
	if (p->dqpn > IB_GSI_QPN) {
		queue_pair_give(f, p);
	} else if (packet_is_sound(p) && packet_pkey(f, p) && packet_qkey(f, p) &&
		   packet_give(f, p)) {
		packet_reply(f, p);
		return;
	}
	mad_packet_put(f, p);
}
