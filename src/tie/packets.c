// SPDX-License-Identifier: BSD-2-Clause
/* See packets.h. */
#include "tie/packets.h"

#include <string.h>

#include "base/clock.h"

void packets_init(struct packets *p, const struct subnet *subnet, uint32_t row)
{
	p->subnet = subnet;
	p->row = row;
	neighbours_init(&p->neighbours, subnet, row);
}

void packets_release(struct packets *p)
{
	neighbours_release(&p->neighbours);
}

/* ---- out ---- */

static bool mac_is_known(const uint8_t mac[6])
{
	static const uint8_t nobody[6];

	return memcmp(mac, nobody, sizeof(nobody)) != 0;
}

/* Returns the station that the packet names, or the one that has its address. */
static bool packet_station(struct packets *p, const struct path *path, uint8_t mac[6])
{
	if (mac_is_known(path->dmac)) {
		memcpy(mac, path->dmac, 6);
		return true;
	}
	return neighbour_find(&p->neighbours, &path->dgid, mac);
}

void packets_put(struct packets *p, const struct pkt *pkt, struct packets_out *out)
{
	const struct path *path = pkt->path;
	uint8_t mac[6];

	out->bytes = 0;
	out->asks = false;
	if (packet_station(p, path, mac))
		out->bytes = roce_encode(pkt, p->subnet->ports[p->row].mac, mac, out->frame,
					 sizeof(out->frame));
	else
		out->asks = neighbour_asks(&p->neighbours, &path->sgid, &path->dgid, clock_ns(),
					   out->arp);
}

/* ---- in ---- */

/* Tells whether it is for the port.  A switch that does not learn gives everybody everything. */
static bool packet_is_ours(const struct packets *p, const struct roce_packet *packet)
{
	return !memcmp(packet->dmac, p->subnet->ports[p->row].mac, 6) &&
	       subnet_port_by_gid(p->subnet, &packet->path.dgid) == p->row;
}

enum packets_verdict packets_take(struct packets *p, const uint8_t *frame, uint32_t bytes,
				  struct roce_packet *out)
{
	enum roce_verdict v = roce_decode(frame, bytes, out);

	if (v == ROCE_NONE || !packet_is_ours(p, out))
		return PACKETS_NONE;
	if (v != ROCE_TAKEN)
		return PACKETS_BAD;
	neighbour_learn(&p->neighbours, &out->path.sgid, out->smac);
	/* A fabric with the same plan may have a port with that address; then its programs take the
	 * packet for that port's. */
	out->path.src_port = subnet_port_by_gid(p->subnet, &out->path.sgid);
	out->path.dst_port = p->row;
	return PACKETS_PACKET;
}
