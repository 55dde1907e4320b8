// SPDX-License-Identifier: BSD-2-Clause
/* Walks through subnet and registry; see route.h. */
#include "wire/route.h"

#include "wire/process.h"

uint32_t route_number_owner_plus_1(const struct registry *r, uint32_t qpn)
{
	uint32_t owner = atomic_load_explicit(
		&r->qpn_slot_plus_1[(qpn & IB_QPN_MASK) >> REGISTRY_CHUNK_SHIFT],
		memory_order_acquire);

	return owner <= REGISTRY_SLOTS ? owner : 0;
}

static bool owner_is_at(const struct wire_process *h, uint32_t owner, uint32_t port_row)
{
	return atomic_load_explicit(&h->attr.registry->slot_host_plus_1[owner - 1],
				    memory_order_acquire) ==
	       subnet_node_of(h->attr.subnet, port_row)->host + 1;
}

static enum subnet_verdict path_way(const struct wire *w, const struct path *path)
{
	const struct subnet_packet p = {path->dlid, path->pkey, path->mtu};

	return subnet_route_packet(w->process->attr.subnet, w->port_row, &p, path->dst_port);
}

/* The process that carries what the port sends out of the fabric, plus one; 0: there is none. */
static uint32_t carrier_of(const struct wire_process *h, uint32_t row)
{
	for (uint32_t word = 0; word < REGISTRY_SLOTS / 64; word++) {
		uint64_t used = atomic_load_explicit(&h->attr.registry->slots_used[word],
						     memory_order_acquire);

		for (; used; used &= used - 1) {
			uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(used);

			if (atomic_load_explicit(&h->attr.slots[slot].carries_plus_1,
						 memory_order_relaxed) == row + 1 &&
			    owner_is_at(h, slot + 1, row))
				return slot + 1;
		}
	}
	return 0;
}

bool route_leads_out(const struct wire *w, const struct path *path)
{
	return unlikely(subnet_ethernet_leads_out(w->process->attr.subnet, w->port_row)) &&
	       path->dst_port != w->port_row;
}

uint32_t route_carrier(const struct wire *w)
{
	return carrier_of(w->process, w->port_row);
}

uint32_t route_walk(const struct wire *w, const struct path *path, uint32_t dqpn)
{
	const struct wire_process *h = w->process;
	uint32_t owner;

	if (route_leads_out(w, path))
		return subnet_port_active(h->attr.subnet, w->port_row) ? carrier_of(h, w->port_row)
								       : 0;
	if (path_way(w, path) != SUBNET_ARRIVES)
		return 0;
	owner = route_number_owner_plus_1(h->attr.registry, dqpn);
	return owner && owner_is_at(h, owner, path->dst_port) ? owner : 0;
}

uint32_t route_owner_at(const struct wire *w, uint32_t dqpn)
{
	uint32_t owner = route_number_owner_plus_1(w->process->attr.registry, dqpn);

	return owner && owner_is_at(w->process, owner, w->port_row) ? owner : 0;
}

uint32_t route_owner_plus_1(const struct wire *w, const struct path *path, uint32_t dqpn)
{
	/* Read the epoch before the walk, see subnet.h. */
	uint64_t epoch = subnet_epoch(w->process->attr.subnet);
	uint32_t owner = route_known(path, epoch, dqpn);

	if (likely(owner))
		return owner;
	owner = route_walk(w, path, dqpn);
	if (path->route && owner)
		atomic_store_explicit(&path->route->word, route_key(epoch, dqpn) | owner,
				      memory_order_relaxed);
	return owner;
}

bool route_here(const struct wire *w, const struct path *path, uint32_t dqpn)
{
	/* Read the epoch before the walk, see subnet.h. */
	uint64_t epoch = subnet_epoch(w->process->attr.subnet);

	uint32_t owner = route_owner_plus_1(w, path, dqpn);
	bool here = owner == w->process->attr.slot + 1u;

	if (path->route && owner)
		atomic_store_explicit(here ? &path->route->here : &path->route->away, epoch,
				      memory_order_relaxed);
	return here;
}

bool route_is_refused(const struct wire *w, const struct path *path)
{
	return path_way(w, path) == SUBNET_PARTITION;
}

/* Why an address leads to no port that could take the packet. */
static const char *port_missing(const struct wire *w, const struct path *path)
{
	const struct subnet *s = w->process->attr.subnet;
	bool ethernet = s->ports[w->port_row].ethernet;
	uint32_t row = path->grh ? subnet_port_by_gid(s, &path->dgid) : SUBNET_NONE;

	if (row < s->nports && s->ports[row].ethernet != ethernet)
		return "other-link-type";
	return ethernet || path->dlid ? "peer-port-down" : "lid-0";
}

/* Why the subnet has no way there; NULL: it has one. */
static const char *subnet_missing(const struct wire *w, const struct path *path)
{
	const struct subnet *s = w->process->attr.subnet;

	switch (path_way(w, path)) {
	case SUBNET_ARRIVES:
		return NULL;
	case SUBNET_DOWN:
		return subnet_port_active(s, w->port_row) ? port_missing(w, path) : "port-down";
	case SUBNET_LINK_DOWN:
		return "link-down";
	case SUBNET_LOOP:
		return "route-loop";
	case SUBNET_PARTITION:
		return "partition-of-a-link";
	case SUBNET_MTU:
		return "mtu-of-a-link";
	case SUBNET_NO_ROUTE:
	case SUBNET_ELSEWHERE:
		break;
	}
	return "no-route";
}

/* Why a packet to QP 0 or QP 1 of a port is lost in this process.  Where the port is, the daemon
 * finds. */
static const char *gsi_missing(const struct wire *w, uint32_t dqpn)
{
	if (!subnet_port_active(w->process->attr.subnet, w->port_row))
		return "port-down";
	return dqpn == IB_GSI_QPN ? "not-to-gsi" : "not-to-smi";
}

const char *route_missing(const struct wire *w, const struct path *path, uint32_t dqpn)
{
	const struct wire_process *h = w->process;
	uint32_t owner = route_number_owner_plus_1(h->attr.registry, dqpn);
	const char *why;

	if (route_leads_out(w, path))
		return subnet_port_active(h->attr.subnet, w->port_row) ? "carrier" : "port-down";
	if (dqpn <= IB_GSI_QPN)
		return gsi_missing(w, dqpn);
	why = subnet_missing(w, path);
	if (why)
		return why;
	if (!owner)
		return "no-owner-of-number";
	if (!owner_is_at(h, owner, path->dst_port))
		return "number-of-another-host";
	if (owner == h->attr.slot + 1u)
		return "no-device-at-port";
	return atomic_load(&h->attr.slots[owner - 1].alive) ? "channel" : "process-gone";
}
