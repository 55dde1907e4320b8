// SPDX-License-Identifier: BSD-2-Clause
/*
 * Packets with many receivers: datagrams to a multicast group, and Ethernet frames, whose receivers
 * are chosen by rules that only the receiving processes know.
 *
 * Each process publishes in its slot a filter of what it listens to, one bit for several groups.  A
 * sender copies the packet into the channel of each process whose filter has the bit; that process
 * then makes the exact choice.  The registry names the slots in use, so that the sender does not
 * touch the others.
 */
#include "base/hazard.h"
#include "base/trace.h"
#include "wire/process.h"
#include "wire/counter_shard.h"
#include "wire/pkt.h"
#include "wire/traffic.h"

#include <string.h>

static_assert(WIRE_GROUP_BITS == SLOT_GROUP_WORDS * 64, "one user count per bit");

unsigned wire_group(const union ib_gid *gid)
{
	uint64_t h = (gid->half[0] ^ gid->half[1]) * 0x9e3779b97f4a7c15ull;

	return 1 + (unsigned)((h >> 32) % (WIRE_GROUP_BITS - 1));
}

void wire_listen(struct wire *w, unsigned group)
{
	struct wire_process *h = w->process;

	pthread_mutex_lock(&h->control);
	if (!h->group_users[group]++)
		atomic_fetch_or(&h->slot->groups[group / 64], UINT64_C(1) << group % 64);
	pthread_mutex_unlock(&h->control);
}

void wire_unlisten(struct wire *w, unsigned group)
{
	struct wire_process *h = w->process;

	pthread_mutex_lock(&h->control);
	if (!--h->group_users[group])
		atomic_fetch_and(&h->slot->groups[group / 64], ~(UINT64_C(1) << group % 64));
	pthread_mutex_unlock(&h->control);
}

static void group_tell(struct wire *w, const union ib_gid *gid, bool joins)
{
	const struct wire_process_attr *attr = &w->process->attr;

	if (w->ethernet && attr->group)
		attr->group(attr->user, w->port_row, gid, joins);
}

void wire_join(struct wire *w, const union ib_gid *gid)
{
	wire_listen(w, wire_group(gid));
	group_tell(w, gid, true);
}

void wire_leave(struct wire *w, const union ib_gid *gid)
{
	wire_unlisten(w, wire_group(gid));
	group_tell(w, gid, false);
}

/* True if the packet goes to a single station. */
static bool is_unicast(const struct pkt *p)
{
	return pkt_is_frame(p) && !(p->path->dgid.raw[0] & 1);
}

static uint64_t multicast_octets(const struct pkt *p, bool ethernet)
{
	return pkt_is_frame(p) ? p->payload_len + ETHERNET_FCS : pkt_wire_octets(p, ethernet);
}

static unsigned group_of(const struct pkt *p)
{
	return pkt_is_frame(p) ? WIRE_GROUP_FRAMES : wire_group(&p->path->dgid);
}

static bool multicast_listens(const struct slot *s, unsigned group)
{
	return atomic_load_explicit(&s->groups[group / 64], memory_order_acquire) >> group % 64 & 1;
}

/* ---- receiving ---- */

/* True if the tables of switches lead the packet to that port. */
static bool group_comes_to(const struct wire *w, const struct pkt *p)
{
	const struct subnet_packet packet = {p->path->dlid, p->pkey, ib_mtu_for(p->payload_len)};

	return w->ethernet || subnet_group_reaches(w->process->attr.subnet, p->path->src_port,
						   &packet, w->port_row);
}

/* True if the cable of the sending port leads to this port. */
static bool ethernet_comes_to(const struct wire *w, uint32_t from)
{
	return !w->ethernet || subnet_ethernet_reaches(w->process->attr.subnet, from, w->port_row);
}

bool multicast_pass(struct wire *w, const struct pkt *p)
{
	const struct wire_client *client = atomic_load_explicit(&w->client, memory_order_acquire);

	if (!client || !client->receive_group ||
	    !subnet_port_active(w->process->attr.subnet, w->port_row))
		return false;
	/* A switch keeps from a port what nobody there wants, so the packet does not count. */
	if (!client->receive_group(client->user, p))
		return false;
	if (slot_observed(w->process->slot))
		tap_packet(w, TAP_DELIVERED, 0, p);
	shard_count(w->counters, PORT_RCV_DATA, multicast_octets(p, w->ethernet) / 4);
	shard_count(w->counters, PORT_RCV_PACKETS, 1);
	if (!is_unicast(p))
		shard_count(w->counters, PORT_MULTICAST_RCV_PACKETS, 1);
	return true;
}

/* A switch keeps from a port what is addressed to another one, so no link of the port carries it. */
static bool is_for_port(const struct wire *w, const struct pkt *p)
{
	return !is_unicast(p) ||
	       !memcmp(p->path->dgid.raw, w->process->attr.subnet->ports[w->port_row].mac, 6);
}

/* Delivers to one port; false: nobody there wants the packet. */
static bool multicast_deliver_one(struct wire *w, const struct pkt *p)
{
	if (!ethernet_comes_to(w, p->path->src_port) || !group_comes_to(w, p))
		return false;
	/* A carrier is no end of a packet's way, and has no timer for late ones. */
	if (fault_awaits(w->process->slot, &w->faults) && !w->process->attr.carries &&
	    is_for_port(w, p) && fault_takes(w, p))
		return true;
	return multicast_pass(w, p);
}

bool multicast_deliver(struct wire_process *h, const struct pkt *p)
{
	const struct subnet *s = h->attr.subnet;
	uint32_t from = p->path->src_port;
	bool wanted = false;

	/* the packet comes from outside the fabric */
	if (from >= s->nports)
		return false;
	for (unsigned i = 0; i < WIRE_PROCESS_WIRES; i++) {
		struct wire *w = atomic_load_explicit(&h->wires[i], memory_order_acquire);

		if (w && w->ethernet == !!s->ports[from].ethernet)
			wanted |= multicast_deliver_one(w, p);
	}
	return wanted;
}

/* ---- sending ---- */

/* The other processes that listen to a group. */
struct listeners {
	uint32_t n;
	uint16_t slot[REGISTRY_SLOTS];
};

/*
 * True if the process of a slot may want what the port sends.  A carrier has no use for what other
 * ports send.  Of what a tied port sends, only the port's own host and the host at the other end of
 * the tie have any use: the other processes need not take it only to drop it.
 */
static bool peer_concerned(const struct wire_process *h, uint16_t peer, uint32_t from)
{
	const struct subnet *s = h->attr.subnet;
	uint32_t carries =
		atomic_load_explicit(&h->attr.slots[peer].carries_plus_1, memory_order_relaxed);
	uint32_t tie, host;

	if (unlikely(carries))
		return carries == from + 1;
	tie = atomic_load_explicit(&s->ports[from].tie_plus_1, memory_order_acquire);
	if (likely(!tie) || tie > s->nports)
		return true;
	host = atomic_load_explicit(&h->attr.registry->slot_host_plus_1[peer],
				    memory_order_relaxed);
	return host == subnet_node_of(s, from)->host + 1 ||
	       host == subnet_node_of(s, tie - 1)->host + 1;
}

/* Finds the listeners to what the port sends. */
static void listeners_find(struct wire_process *h, unsigned group, uint32_t from,
			   struct listeners *out)
{
	out->n = 0;
	for (unsigned word = 0; word < REGISTRY_SLOTS / 64; word++) {
		uint64_t used = atomic_load_explicit(&h->attr.registry->slots_used[word],
						     memory_order_acquire);

		for (; used; used &= used - 1) {
			uint16_t peer = (uint16_t)(word * 64 + (unsigned)__builtin_ctzll(used));

			if (peer != h->attr.slot &&
			    multicast_listens(&h->attr.slots[peer], group) &&
			    peer_concerned(h, peer, from))
				out->slot[out->n++] = peer;
		}
	}
}

static bool listeners_have_room(struct wire_process *h, const struct listeners *to,
				const struct pkt *p)
{
	for (uint32_t i = 0; i < to->n; i++) {
		struct link *l = h->link_to[to->slot[i] + 1u];

		if (!l->ops->has_room(l, to->slot[i] + 1u, p))
			return false;
	}
	return true;
}

/* Explains that nobody in this process wants a packet that it has sent itself, and that no other
 * process listens. */
static __attribute__((cold)) void explain_unheard(struct wire *w, const struct pkt *p)
{
	struct wire_process *h = w->process;
	const char *why = "nobody gets it: no flow rule of any process takes it (ibv_create_flow)";

	if (!pkt_is_frame(p))
		why = p->path->grh ? "nobody gets it: no QP of the fabric is attached to the group "
				     "(ibv_attach_mcast)"
				   : "nobody gets it: a multicast datagram needs a GRH "
				     "(ah_attr.is_global)";
	packet_explain_group(h->attr.subnet, w->port_row, p, why);
}

static void multicast_lost(const struct pkt *p, const char *why)
{
	trace(packet, lost, p->sqpn, p->dqpn, bth_op_name(p->opcode), p->psn, why);
}

static enum wire_verdict xmit_copy(struct wire_process *h, uint16_t peer, const struct pkt *p)
{
	struct link *l = h->link_to[peer + 1u];

	return l->ops->xmit(l, peer + 1u, p);
}

/* Counts and explains a copy that was not sent.  A listener that cannot be reached, or takes
 * nothing, does not concern the sender. */
static void copy_sent(struct wire *w, enum wire_verdict v, const struct pkt *p)
{
	if (likely(v == WIRE_SENT))
		return;
	multicast_lost(p, v == WIRE_BUSY ? "no-room" : "unreachable");
	shard_count(w->counters, PORT_XMIT_DISCARDS, 1);
	if (explaining())
		packet_explain_group(w->process->attr.subnet, p->path->src_port, p,
				     v == WIRE_BUSY
					     ? "the copy for a listener is lost: its process "
					       "takes no more packets now"
					     : "the copy for a listener is lost: its process "
					       "cannot be reached");
}

static void multicast_count(struct wire *w, const struct pkt *p)
{
	traffic_sent(w->traffic, w->counters, p->path, multicast_octets(p, w->ethernet) / 4, 1);
	if (!is_unicast(p))
		shard_count(w->counters, PORT_MULTICAST_XMIT_PACKETS, 1);
}

/* Sends all copies or none, because a sender that tries again must not send a second copy to those
 * who had room.  False: none. */
static bool send_copies(struct wire *w, const struct listeners *to, const struct pkt *p)
{
	struct wire_process *h = w->process;
	enum wire_verdict v;

	/* A single listener's link says itself whether it has room. */
	if (likely(to->n == 1 && !slot_observed(h->slot))) {
		v = xmit_copy(h, to->slot[0], p);
		if (v == WIRE_BUSY)
			return false;
		multicast_count(w, p);
		copy_sent(w, v, p);
		return true;
	}
	if (!listeners_have_room(h, to, p))
		return false;
	multicast_count(w, p);
	if (slot_observed(h->slot))
		tap_packet(w, TAP_SENT, 0, p);
	for (uint32_t i = 0; i < to->n; i++)
		copy_sent(w, xmit_copy(h, to->slot[i], p), p);
	return true;
}

enum wire_verdict multicast_xmit(struct wire *w, const struct pkt *p)
{
	struct wire_process *h = w->process;
	const struct subnet *s = h->attr.subnet;
	unsigned group = group_of(p);
	struct listeners to;
	bool wanted = false;

	/* A connection has one peer (IBTA 9.6.1.2.1), so none of its packets is for a group. */
	if ((pkt_transport(p) != BTH_UD && !pkt_is_frame(p)) ||
	    !subnet_port_active(s, w->port_row)) {
		multicast_lost(p, subnet_port_active(s, w->port_row) ? "connected" : "port-down");
		shard_count(w->counters, PORT_XMIT_DISCARDS, pkt_wire_packets(p));
		return WIRE_LOST;
	}
	listeners_find(h, group, w->port_row, &to);
	if (!send_copies(w, &to, p))
		return WIRE_BUSY;
	if (multicast_listens(h->slot, group)) {
		hazard_enter();
		wanted = multicast_deliver(h, p);
		hazard_leave();
	}
	if (!wanted && !to.n && explaining())
		explain_unheard(w, p);
	return WIRE_SENT;
}

/* ---- from outside ---- */

enum wire_verdict wire_arrive(struct wire *w, const struct pkt *p)
{
	struct wire_process *h = w->process;
	struct listeners to;

	if (!subnet_port_active(h->attr.subnet, w->port_row))
		return WIRE_LOST;
	listeners_find(h, group_of(p), w->port_row, &to);
	if (!to.n)
		return WIRE_LOST;
	if (!listeners_have_room(h, &to, p))
		return WIRE_BUSY;
	for (uint32_t i = 0; i < to.n; i++)
		if (xmit_copy(h, to.slot[i], p) != WIRE_SENT)
			atomic_fetch_add_explicit(&h->slot->carried[CARRIED_IN_DROPPED], 1,
						  memory_order_relaxed);
	return WIRE_SENT;
}
