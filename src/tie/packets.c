// SPDX-License-Identifier: BSD-2-Clause
/* See packets.h. */
#include "tie/packets.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"

/* ---- neighbours ---- */

#define ETHERTYPE_ARP 0x0806u
#define ARP_REQUEST   1u
#define ARP_REPLY     2u

/* An ARP frame for Ethernet and IPv4. */
struct arp_frame {
	uint8_t dst[6];
	uint8_t src[6];
	uint8_t ethertype[2];
	uint8_t hardware[2];
	uint8_t protocol[2];
	uint8_t hardware_bytes;
	uint8_t protocol_bytes;
	uint8_t operation[2];
	uint8_t sender_mac[6];
	uint8_t sender_ip[4];
	uint8_t target_mac[6];
	uint8_t target_ip[4];
};

static_assert(sizeof(struct arp_frame) == ARP_FRAME_BYTES, "it is laid out as on the cable");

static void neighbours_init(struct neighbours *n, const struct subnet *subnet, uint32_t row)
{
	*n = (struct neighbours){.subnet = subnet, .row = row};
	pthread_mutex_init(&n->lock, NULL);
}

static void neighbours_release(struct neighbours *n)
{
	pthread_mutex_destroy(&n->lock);
}

/* Returns the row that the address has or would have. */
static struct neighbour *neighbour_row(struct neighbours *n, const union ib_gid *gid)
{
	uint64_t h = (gid->half[0] ^ gid->half[1]) * 0x9e3779b97f4a7c15ull;

	return &n->entry[(h >> 32) % NEIGHBOUR_ROWS];
}

static struct neighbour *neighbour_take(struct neighbours *n, const union ib_gid *gid)
{
	struct neighbour *e = neighbour_row(n, gid);

	if (!e->used || memcmp(&e->gid, gid, sizeof(*gid)) != 0)
		*e = (struct neighbour){.gid = *gid, .used = true};
	return e;
}

static const uint8_t *port_mac(const struct neighbours *n)
{
	return n->subnet->ports[n->row].mac;
}

/* Gives the station with that address; false: nobody knows it now. */
static bool neighbour_find(struct neighbours *n, const union ib_gid *gid, uint8_t mac[6])
{
	const struct neighbour *e;
	bool known;

	pthread_mutex_lock(&n->lock);
	e = neighbour_row(n, gid);
	known = e->known && !memcmp(&e->gid, gid, sizeof(*gid));
	if (known)
		memcpy(mac, e->mac, 6);
	pthread_mutex_unlock(&n->lock);
	return known || ib_gid_link_local_mac(gid, mac);
}

/* Learns from a packet that has come from there. */
static void neighbour_learn(struct neighbours *n, const union ib_gid *gid, const uint8_t mac[6])
{
	struct neighbour *e;

	pthread_mutex_lock(&n->lock);
	e = neighbour_take(n, gid);
	memcpy(e->mac, mac, 6);
	e->known = true;
	pthread_mutex_unlock(&n->lock);
}

/* ---- ARP ---- */

static void arp_make(const struct neighbours *n, uint32_t operation, const uint8_t *own_ip,
		     const uint8_t *target_mac, const uint8_t *target_ip,
		     uint8_t out[ARP_FRAME_BYTES])
{
	struct arp_frame *a = (struct arp_frame *)out;

	*a = (struct arp_frame){
		.ethertype = {ETHERTYPE_ARP >> 8, ETHERTYPE_ARP & 0xff},
		.hardware = {0, 1},
		.protocol = {0x08, 0x00},
		.hardware_bytes = 6,
		.protocol_bytes = 4,
		.operation = {0, (uint8_t)operation},
	};
	memset(a->dst, 0xff, 6);
	if (operation == ARP_REPLY) {
		memcpy(a->dst, target_mac, 6);
		memcpy(a->target_mac, target_mac, 6);
	}
	memcpy(a->src, port_mac(n), 6);
	memcpy(a->sender_mac, port_mac(n), 6);
	memcpy(a->sender_ip, own_ip, 4);
	memcpy(a->target_ip, target_ip, 4);
}

/* Returns true if the caller has to send an ARP request, because nobody has asked for some time. */
static bool neighbour_asks(struct neighbours *n, const union ib_gid *sgid, const union ib_gid *gid,
			   uint64_t now_ns, uint8_t arp[ARP_FRAME_BYTES])
{
	struct neighbour *e;
	bool due;

	if (!ib_gid_is_ipv4(gid))
		return false;
	pthread_mutex_lock(&n->lock);
	e = neighbour_take(n, gid);
	due = !e->known && (!e->asked_ns || now_ns - e->asked_ns >= NEIGHBOUR_ASK_NS);
	if (due)
		e->asked_ns = now_ns;
	pthread_mutex_unlock(&n->lock);
	if (due)
		arp_make(n, ARP_REQUEST, sgid->raw + 12, NULL, gid->raw + 12, arp);
	return due;
}

static union ib_gid gid_of_ipv4(const uint8_t ip[4])
{
	union ib_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	memcpy(gid.raw + 12, ip, 4);
	return gid;
}

bool neighbour_answers(struct neighbours *n, const uint8_t *frame, uint32_t bytes,
		       uint8_t arp[ARP_FRAME_BYTES])
{
	static const uint8_t form[] = {
		ETHERTYPE_ARP >> 8, ETHERTYPE_ARP & 0xff, 0, 1, 0x08, 0, 6, 4, 0};
	const struct arp_frame *a = (const struct arp_frame *)frame;
	union ib_gid sender, target;

	if (bytes < ARP_FRAME_BYTES || memcmp(a->ethertype, form, sizeof(form)) != 0)
		return false;
	if (a->operation[1] != ARP_REQUEST && a->operation[1] != ARP_REPLY)
		return false;
	sender = gid_of_ipv4(a->sender_ip);
	target = gid_of_ipv4(a->target_ip);
	/* Learns only what is said to the port: a switch tells everybody what others ask. */
	if (subnet_port_by_gid(n->subnet, &target) != n->row)
		return false;
	/* The sender of a probe has no address yet (RFC 5227). */
	if (memcmp(a->sender_ip, "\0\0\0", 4) != 0)
		neighbour_learn(n, &sender, a->sender_mac);
	if (a->operation[1] != ARP_REQUEST)
		return false;
	arp_make(n, ARP_REPLY, a->target_ip, a->sender_mac, a->sender_ip, arp);
	return true;
}

/* ---- packets ---- */

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
		return v == ROCE_CRC ? PACKETS_CHECKSUM : PACKETS_BAD;
	neighbour_learn(&p->neighbours, &out->path.sgid, out->smac);
	return PACKETS_PACKET;
}

void packets_locate(const struct packets *p, struct roce_packet *packet)
{
	/* A fabric with the same plan may have a port with that address; then its programs take the
	 * packet for that port's. */
	packet->path.src_port = subnet_port_by_gid(p->subnet, &packet->path.sgid);
	packet->path.dst_port = p->row;
}

void packets_join_begin(struct packets_joined *j, const struct roce_packet *packet, uint32_t most)
{
	j->packet = *packet;
	j->packet.pkt.path = &j->packet.path;
	j->packet.pkt.runs = j->runs;
	j->runs[0] = packet->run;
	j->n = 1;
	j->most = most;
}

/* True if the second packet is the next one of a message. */
static bool pkt_follows(const struct pkt *p, const struct pkt *next)
{
	const struct bth_props *was = pkt_props(p), *is = pkt_props(next);

	return is->payload && !was->last && !is->first && was->request == is->request &&
	       was->send == is->send && was->write == is->write && was->read == is->read &&
	       pkt_transport(p) == pkt_transport(next) && p->dqpn == next->dqpn &&
	       p->pkey == next->pkey && p->srqn == next->srqn &&
	       p->migreq_clear == next->migreq_clear && next->psn == psn_add(p->psn, p->npkts);
}

bool packets_join(struct packets_joined *j, const struct roce_packet *packet)
{
	struct pkt *p = &j->packet.pkt;
	const struct pkt *next = &packet->pkt;

	/* All but the last one are as long as the first, and ask for no answer of their own. */
	if (!j->n || j->n == PACKETS_JOINED_MAX || p->ack_req || p->solicited ||
	    next->payload_len > j->runs[0].len || j->runs[j->n - 1].len != j->runs[0].len ||
	    p->payload_len + next->payload_len > j->most || !next->payload_len ||
	    !pkt_follows(p, next) || j->packet.path.traffic_class != packet->path.traffic_class)
		return false;
	p->opcode = bth_op_join(p->opcode, next->opcode);
	p->ack_req = next->ack_req;
	p->solicited = next->solicited;
	if (pkt_props(next)->last)
		p->imm = next->imm;
	p->npkts++;
	p->payload_len += next->payload_len;
	j->runs[j->n++] = packet->run;
	p->nruns = j->n;
	return true;
}

bool packets_mad(const struct roce_packet *packet, struct gsi_datagram *out)
{
	const struct path *path = &packet->path;
	const struct pkt *p = &packet->pkt;

	/* Queue pair 0 is InfiniBand's. */
	if (p->dqpn != IB_GSI_QPN || pkt_transport(p) != BTH_UD || p->payload_len != MAD_BYTES)
		return false;
	*out = (struct gsi_datagram){
		.row = path->dst_port,
		.qpn = p->sqpn,
		.qkey = p->qkey,
		.flow_label = path->flow_label,
		.pkey = p->pkey,
		.grh = true,
		.hop_limit = path->hop_limit,
		.traffic_class = path->traffic_class,
		.roce_v1 = path->roce_v1,
		.sgid = path->sgid,
		.dgid = path->dgid,
	};
	memcpy(out->mad, packet->run.addr, sizeof(out->mad));
	return true;
}
