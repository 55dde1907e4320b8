// SPDX-License-Identifier: BSD-2-Clause
/* The way of a packet: one hop of it, and its end; see mad.h. */
#include "fabric/daemon/mad/impair.h"
#include "fabric/daemon/mad/send.h"
#include "fabric/smi.h"

/* ---- a packet at its end: the port's own agent gets it, or a program's, or nobody ---- */

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

	if (mad[MAD_AT_CLASS] == MAD_CLASS_CM)
		return method == MAD_SEND;
	return method == MAD_GET || method == MAD_SET ||
	       (method == MAD_TRAP_REPRESS && mad_is_smp(mad));
}

static struct port_agent *port_agent_of(const struct mad_fabric *f, const struct mad_packet *p)
{
	/* A port of Ethernet has the communication manager alone. */
	if (!method_is_port_agents(p->mad) ||
	    (f->net->subnet->ports[p->row].ethernet && p->mad[MAD_AT_CLASS] != MAD_CLASS_CM))
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

/* ---- one hop of a packet: links, linear tables, directed routes ---- */

#define WORDS_OF_MAD 72u /* counted as ibsim counts: with all headers but the GRH */
#define WORDS_OF_GRH 10u
/* Of frames: Ethernet with its check sequence, BTH, DETH, the MAD and the ICRC. */
#define WORDS_OF_ROCE ((14 + 4 + 12 + 8 + MAD_BYTES + 4) / 4)
#define WORDS_OF_UDP  2u
#define WORDS_OF_IPV4 5u
/* A group has no more copies than ports, unless its tables lead in circles. */
#define OTHER_PACKETS 1024u
#define NO_PORT	      UINT32_MAX

static enum ib_port_state link_state(const struct net *n, uint32_t row)
{
	return (enum ib_port_state)atomic_load_explicit(&n->subnet->ports[row].state,
							memory_order_relaxed);
}

static bool lid_is_of(const struct net *n, uint32_t row, uint16_t lid)
{
	const struct subnet_port *p = &n->subnet->ports[row];
	uint32_t base = atomic_load_explicit(&p->lid, memory_order_relaxed);
	uint32_t lmc = atomic_load_explicit(&p->lmc, memory_order_relaxed);

	return base && lid >= base && lid < base + (1u << lmc);
}

static bool packet_is_multicast(const struct mad_packet *p)
{
	return p->dqpn && p->dlid >= MAD_LID_MULTICAST && p->dlid != MAD_LID_PERMISSIVE;
}

/* ---- inside of a node ---- */

static bool packet_arrives(struct mad_packet *p, uint32_t row)
{
	p->row = row;
	p->arriving = true;
	return true;
}

/* Moves the packet to the port of that number of the node. */
static bool packet_leaves(struct mad_fabric *f, struct mad_packet *p, const struct net_node *node,
			  uint32_t number)
{
	p->row = net_port_row(f->net, node, number);
	p->arriving = false;
	return p->row != SUBNET_NONE && number;
}

/* The switch finds the port for the packet's LID.  'row' is where it came in, or port 0. */
static bool switch_forward(struct mad_fabric *f, struct mad_packet *p, uint32_t row)
{
	const struct net_node *node = net_node_of(f->net, row);
	uint32_t out;

	if (lid_is_of(f->net, node->first_port, p->dlid))
		return packet_arrives(p, row);
	out = node->sw ? net_lft(node->sw, p->dlid) : NET_DROP;
	if (!out)
		return packet_arrives(p, row);
	if (out == NET_DROP || out > node->nports) {
		net_count(f->net, row, NET_RCV_SWITCH_RELAY_ERRORS, 1);
		return false;
	}
	return packet_leaves(f, p, node, out);
}

/* A packet with a LID has reached a node. */
static bool packet_by_lid(struct mad_fabric *f, struct mad_packet *p, uint32_t row)
{
	if (p->dlid == MAD_LID_PERMISSIVE)
		return !p->dqpn && packet_arrives(p, row);
	if (net_is_switch(f->net, row))
		return switch_forward(f, p, row);
	return lid_is_of(f->net, row, p->dlid) && packet_arrives(p, row);
}

/* Makes a copy that goes on by itself. */
static void packet_copy(struct mad_fabric *f, const struct mad_packet *p, enum mad_stage stage)
{
	uint32_t most = f->net->nports + OTHER_PACKETS;
	struct mad_packet *copy = f->queued < most ? mad_packet_get(f) : NULL;

	if (!copy) {
		f->dropped++;
		return;
	}
	*copy = *p;
	copy->send = NULL;
	copy->stage = stage;
	mad_requeue(f, copy);
}

/* Sends the packet to one of the ports that a switch's multicast table names; port 0 is itself. */
static bool packet_to_member(struct mad_fabric *f, struct mad_packet *p,
			     const struct net_node *node, uint32_t row, uint32_t number)
{
	return number ? packet_leaves(f, p, node, number) : packet_arrives(p, row);
}

/* Sends a packet for a group to all ports of the table but the one that it came in by. */
static bool packet_by_group(struct mad_fabric *f, struct mad_packet *p, uint32_t row)
{
	const struct net_node *node = net_node_of(f->net, row);
	uint32_t ingress = f->net->ports[row].number, next = NO_PORT;

	if (!p->grh)
		return false;
	if (!node->sw)
		return packet_arrives(p, row);
	for (uint32_t number = 0; number <= node->nports; number++) {
		if (number == ingress || !net_mft(node->sw, p->dlid, number))
			continue;
		if (next != NO_PORT && packet_to_member(f, p, node, row, next))
			packet_copy(f, p, MAD_LEAVES);
		next = number;
	}
	return next != NO_PORT && packet_to_member(f, p, node, row, next);
}

/* After the directed part the LIDs decide: of a request the target's, of an answer the asker's. */
static bool packet_after_route(struct mad_fabric *f, struct mad_packet *p, uint32_t row)
{
	bool back = mad_get16(p->mad, MAD_AT_STATUS) & MAD_STATUS_DIRECTION;

	p->slid = (uint16_t)atomic_load_explicit(
		&f->net->subnet->ports[net_end_port(f->net, row)].lid, memory_order_relaxed);
	p->dlid = mad_get16(p->mad, back ? MAD_AT_DR_SLID : MAD_AT_DR_DLID);
	return packet_by_lid(f, p, row);
}

/* Handles a directed SMP at a node that its route, not its LID, leads to. */
static bool packet_by_route(struct mad_fabric *f, struct mad_packet *p, uint32_t row)
{
	const struct net_node *node = net_node_of(f->net, row);
	uint8_t port;

	switch (smi_receive(p->mad, node->type == SMP_NODE_SWITCH, f->net->ports[row].number,
			    node->nports, &port)) {
	case SMI_LOCAL:
		return packet_arrives(p, row);
	case SMI_OUT:
		p->slid = p->dlid = MAD_LID_PERMISSIVE;
		return packet_leaves(f, p, node, port);
	case SMI_BY_LID:
		return packet_after_route(f, p, row);
	case SMI_DISCARD:
		break;
	}
	return false;
}

/* ---- the hop ---- */

/* The length of a frame of RoCE with its frame check sequence. */
static uint64_t frame_words(const struct mad_packet *p)
{
	if (p->roce_v1)
		return WORDS_OF_ROCE + WORDS_OF_GRH;
	return WORDS_OF_ROCE + WORDS_OF_UDP +
	       (ib_gid_is_ipv4(&p->sgid) ? WORDS_OF_IPV4 : WORDS_OF_GRH);
}

static void hop_count(struct mad_fabric *f, const struct mad_packet *p, uint32_t from, uint32_t to)
{
	uint64_t words = f->net->subnet->ports[from].ethernet
				 ? frame_words(p)
				 : WORDS_OF_MAD + (p->grh ? WORDS_OF_GRH : 0);

	net_count(f->net, from, NET_XMIT_PACKETS, 1);
	net_count(f->net, from, NET_XMIT_DATA, words);
	net_count(f->net, to, NET_RCV_PACKETS, 1);
	net_count(f->net, to, NET_RCV_DATA, words);
	if (!packet_is_multicast(p))
		return;
	net_count(f->net, from, NET_MULTICAST_XMIT_PACKETS, 1);
	net_count(f->net, to, NET_MULTICAST_RCV_PACKETS, 1);
}

/* Ports of switches may enforce partitions (IBTA 10.9.2), to which SMPs do not belong. */
static bool port_admits(struct mad_fabric *f, const struct mad_packet *p, uint32_t row,
			uint8_t direction)
{
	if (likely(subnet_port_lets_pass(&f->net->subnet->ports[row], p->pkey, direction)))
		return true;
	net_count(f->net, row,
		  direction == SUBNET_ENFORCES_OUT ? NET_XMIT_CONSTRAINT_ERRORS
						   : NET_RCV_CONSTRAINT_ERRORS,
		  1);
	if (f->pkey_enforced)
		f->pkey_enforced(f->key_user, p, row);
	return false;
}

static void packet_crossed(struct mad_fabric *f, const struct mad_packet *p, uint32_t from,
			   uint32_t to)
{
	if (f->crossed)
		f->crossed(f->crossed_user, p, from, to);
}

/* Crosses the link: returns the port at its other end, or SUBNET_NONE.  SMPs have their own lane,
 * VL15, which works as soon as the link is up and is not counted. */
static uint32_t link_cross(struct mad_fabric *f, const struct mad_packet *p)
{
	bool smp = !p->dqpn;
	uint32_t to = net_peer(f->net, p->row, smp ? IB_PORT_INIT : IB_PORT_ACTIVE);

	if (to == SUBNET_NONE) {
		if (!smp)
			net_count(f->net, p->row, NET_XMIT_DISCARDS, 1);
		return SUBNET_NONE;
	}
	if (link_state(f->net, to) < (smp ? IB_PORT_INIT : IB_PORT_ARMED))
		return SUBNET_NONE;
	if (smp) {
		packet_crossed(f, p, p->row, to);
		return to;
	}
	if (!port_admits(f, p, p->row, SUBNET_ENFORCES_OUT))
		return SUBNET_NONE;
	hop_count(f, p, p->row, to);
	packet_crossed(f, p, p->row, to);
	return port_admits(f, p, to, SUBNET_ENFORCES_IN) ? to : SUBNET_NONE;
}

/* Applies the link's faults.  False: the packet is lost. */
static bool packet_impair(struct mad_fabric *f, struct mad_packet *p, uint32_t from)
{
	uint64_t delay_ns;
	uint32_t copies = impair_decide(f->impair, from, &delay_ns);

	p->stage = MAD_ENTERS;
	if (copies > 1)
		packet_copy(f, p, MAD_ENTERS);
	if (!copies || !delay_ns)
		return copies;
	if (!impair_hold(f, p, delay_ns))
		return false;
	return true;
}

bool forward_enter(struct mad_fabric *f, struct mad_packet *p)
{
	uint32_t row = p->row;

	p->stage = MAD_LEAVES;
	if (packet_is_multicast(p))
		return packet_by_group(f, p, row);
	/* The LID of a directed SMP, if it has one, leads to where its route begins or ends. */
	if (mad_is_directed(p->mad) && !p->dqpn &&
	    (p->dlid == MAD_LID_PERMISSIVE ||
	     lid_is_of(f->net, net_end_port(f->net, row), p->dlid)))
		return packet_by_route(f, p, row);
	return packet_by_lid(f, p, row);
}

bool forward_step(struct mad_fabric *f, struct mad_packet *p)
{
	uint32_t from = p->row, to = link_cross(f, p);

	if (to == SUBNET_NONE)
		return false;
	p->row = to;
	if (f->impair && !packet_impair(f, p, from))
		return false;
	return p->stage == MAD_HELD || forward_enter(f, p);
}

/* ---- the start ---- */

static bool start_directed(struct mad_fabric *f, struct mad_packet *p)
{
	const struct net_node *node = net_node_of(f->net, p->row);
	bool is_switch = node->type == SMP_NODE_SWITCH;
	uint8_t port;

	switch (smi_send(p->mad, is_switch, f->net->ports[p->row].number, &port)) {
	case SMI_LOCAL:
		p->local = true;
		p->slid = p->dlid = MAD_LID_PERMISSIVE;
		p->sqpn = p->dqpn = 0;
		p->sl = 0;
		p->grh = false;
		return packet_arrives(p, p->row);
	case SMI_OUT:
		p->slid = p->dlid = MAD_LID_PERMISSIVE;
		return packet_leaves(f, p, node, port);
	case SMI_BY_LID:
		if (is_switch)
			return switch_forward(f, p, p->row);
		return true;
	case SMI_DISCARD:
		break;
	}
	return false;
}

static void outside_count(struct mad_fabric *f, const struct mad_packet *p, bool out)
{
	net_count(f->net, p->row, out ? NET_XMIT_PACKETS : NET_RCV_PACKETS, 1);
	net_count(f->net, p->row, out ? NET_XMIT_DATA : NET_RCV_DATA, frame_words(p));
}

/* The port's cable leads out of the fabric.  False: nobody carries the packet there. */
static bool leave_fabric(struct mad_fabric *f, struct mad_packet *p)
{
	if (!f->to_outside || !f->to_outside(f->queue_pair_user, p)) {
		net_count(f->net, p->row, NET_XMIT_DISCARDS, 1);
		return false;
	}
	outside_count(f, p, true);
	packet_crossed(f, p, p->row, SUBNET_NONE);
	p->stage = MAD_OUTSIDE;
	return true;
}

void forward_arrive(struct mad_fabric *f, struct mad_packet *p)
{
	p->slid = p->dlid = 0;
	outside_count(f, p, false);
	packet_crossed(f, p, SUBNET_NONE, p->row);
	p->arriving = true;
}

/* Ethernet has no LIDs, so this finds the port that has the GID. */
static bool start_ethernet(struct mad_fabric *f, struct mad_packet *p)
{
	uint32_t to = p->grh ? subnet_port_by_gid(f->net->subnet, &p->dgid) : SUBNET_NONE;

	if (!subnet_port_active(f->net->subnet, p->row))
		return false;
	p->slid = p->dlid = 0;
	if (p->grh && to != p->row && subnet_ethernet_leads_out(f->net->subnet, p->row))
		return leave_fabric(f, p);
	if (to == SUBNET_NONE || !f->net->subnet->ports[to].ethernet ||
	    !subnet_ethernet_reaches(f->net->subnet, p->row, to) ||
	    !subnet_port_active(f->net->subnet, to))
		return false;
	hop_count(f, p, p->row, to);
	packet_crossed(f, p, p->row, to);
	return packet_arrives(p, to);
}

bool forward_start(struct mad_fabric *f, struct mad_packet *p)
{
	p->arriving = false;
	p->local = false;
	if (f->net->subnet->ports[p->row].ethernet)
		return start_ethernet(f, p);
	if (mad_is_directed(p->mad) && !p->dqpn)
		return start_directed(f, p);
	if (packet_is_multicast(p))
		return !net_is_switch(f->net, p->row) || packet_by_group(f, p, p->row);
	if (net_is_switch(f->net, p->row))
		return p->dlid != MAD_LID_PERMISSIVE && switch_forward(f, p, p->row);
	if (lid_is_of(f->net, p->row, p->dlid))
		return packet_arrives(p, p->row);
	return true;
}
