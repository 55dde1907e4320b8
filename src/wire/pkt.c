// SPDX-License-Identifier: BSD-2-Clause
/* Packets: their names for traces, their size, and what is said of those that the wire drops. */
#include "wire/pkt.h"

#include "base/compiler.h"
#include "prm/mad.h"

#include <arpa/inet.h>
#include <stdio.h>

/* ---- names for traces ---- */

static const char *const op_names[BTH_OP_COUNT] = {
	[BTH_SEND_FIRST] = "SEND_FIRST",
	[BTH_SEND_MIDDLE] = "SEND_MIDDLE",
	[BTH_SEND_LAST] = "SEND_LAST",
	[BTH_SEND_LAST_IMM] = "SEND_LAST_IMM",
	[BTH_SEND_ONLY] = "SEND_ONLY",
	[BTH_SEND_ONLY_IMM] = "SEND_ONLY_IMM",
	[BTH_WRITE_FIRST] = "WRITE_FIRST",
	[BTH_WRITE_MIDDLE] = "WRITE_MIDDLE",
	[BTH_WRITE_LAST] = "WRITE_LAST",
	[BTH_WRITE_LAST_IMM] = "WRITE_LAST_IMM",
	[BTH_WRITE_ONLY] = "WRITE_ONLY",
	[BTH_WRITE_ONLY_IMM] = "WRITE_ONLY_IMM",
	[BTH_READ_REQUEST] = "READ_REQUEST",
	[BTH_READ_RESP_FIRST] = "READ_RESP_FIRST",
	[BTH_READ_RESP_MIDDLE] = "READ_RESP_MIDDLE",
	[BTH_READ_RESP_LAST] = "READ_RESP_LAST",
	[BTH_READ_RESP_ONLY] = "READ_RESP_ONLY",
	[BTH_ACK] = "ACK",
	[BTH_ATOMIC_ACK] = "ATOMIC_ACK",
	[BTH_COMPARE_SWAP] = "COMPARE_SWAP",
	[BTH_FETCH_ADD] = "FETCH_ADD",
	[BTH_MASKED_COMPARE_SWAP] = "MASKED_COMPARE_SWAP",
	[BTH_MASKED_FETCH_ADD] = "MASKED_FETCH_ADD",
	[BTH_SEND_LAST_INV] = "SEND_LAST_INV",
	[BTH_SEND_ONLY_INV] = "SEND_ONLY_INV",
};

const char *bth_op_name(uint8_t opcode)
{
	const char *name = op_names[opcode & (BTH_OP_COUNT - 1)];

	return name ? name : "RESERVED";
}

const char *aeth_nak_name(uint8_t syndrome)
{
	static const char *const names[AETH_VALUE_MASK + 1] = {
		[NAK_PSN_SEQUENCE] = "PSN_SEQUENCE",
		[NAK_INVALID_REQUEST] = "INVALID_REQUEST",
		[NAK_REMOTE_ACCESS] = "REMOTE_ACCESS",
		[NAK_REMOTE_OPERATIONAL] = "REMOTE_OPERATIONAL",
		[NAK_INVALID_RD_REQUEST] = "INVALID_RD_REQUEST",
		[NAK_SENDER_FAULT] = "SENDER_FAULT",
	};
	const char *name = names[syndrome & AETH_VALUE_MASK];

	return name ? name : "RESERVED";
}

uint32_t path_routing_octets(const struct path *path, bool ethernet)
{
	if (!ethernet)
		return LRH_OCTETS + (path->grh ? GRH_OCTETS : 0);
	if (path->roce_v1)
		return ETHERNET_OCTETS + GRH_OCTETS + ETHERNET_FCS;
	return ETHERNET_OCTETS + (ib_gid_is_ipv4(&path->sgid) ? IPV4_OCTETS : IPV6_OCTETS) +
	       UDP_OCTETS + ETHERNET_FCS;
}

uint32_t pkt_wire_packets(const struct pkt *p)
{
	return pkt_props(p)->payload && p->npkts ? p->npkts : 1;
}

uint64_t pkt_wire_octets(const struct pkt *p, bool ethernet)
{
	const struct bth_props *props = pkt_props(p);
	uint32_t n = pkt_wire_packets(p);
	uint64_t each = routing_octets(p->path, ethernet) + BTH_OCTETS +
			bth_transport_octets(p->opcode) + ICRC_OCTETS;

	return n * each + (n > 1 ? bth_ext_octets_of_many(props) : bth_ext_octets(props)) +
	       align_up(p->payload_len, 4);
}

uint32_t pkt_parts_mtu(const struct pkt *p)
{
	uint32_t mtu = 256;

	if (!pkt_props(p)->payload || !p->npkts || p->nruns != 1)
		return 0;
	/* Only one of the MTUs, each twice as large as the one before, makes so many packets. */
	while (mtu < 4096 && (uint64_t)mtu * p->npkts < p->payload_len)
		mtu *= 2;
	return div_round_up(p->payload_len, mtu) == p->npkts ? mtu : 0;
}

void pkt_part(const struct pkt *p, uint32_t mtu, uint32_t i, struct pkt *part, struct run *run)
{
	bool ends = i + 1 == p->npkts;
	uint32_t off = i * mtu;

	*part = *p;
	part->opcode = bth_op_part(p->opcode, !i, ends);
	part->psn = psn_add(p->psn, i);
	part->npkts = 1;
	part->ack_req = p->ack_req && ends;
	part->solicited = p->solicited && ends;
	part->payload_len = ends ? p->payload_len - off : mtu;
	*run = (struct run){(uint8_t *)p->runs[0].addr + off, part->payload_len};
	part->runs = run;
}

/* Says to whom a packet with many receivers goes. */
static const char *group_text(const struct pkt *p, char text[INET6_ADDRSTRLEN])
{
	const uint8_t *b = p->path->dgid.raw;

	if (pkt_is_frame(p))
		(void)snprintf(text, INET6_ADDRSTRLEN, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1],
			       b[2], b[3], b[4], b[5]);
	else if (!inet_ntop(AF_INET6, b, text, INET6_ADDRSTRLEN))
		*text = '\0';
	return text;
}

void packet_explain_group(const struct subnet *s, uint32_t row, const struct pkt *p,
			  const char *why)
{
	char port[SUBNET_PORT_TEXT], group[INET6_ADDRSTRLEN];

	explain_line((uintptr_t)why ^ p->sqpn, "%s %s of QP 0x%x to %s: %s",
		     subnet_port_text(s, row, port), pkt_is_frame(p) ? "frame" : "datagram",
		     p->sqpn, group_text(p, group), why);
}

void packet_explain_gsi_key(const struct subnet *s, uint32_t row, const struct pkt *p)
{
	char port[SUBNET_PORT_TEXT];

	explain_line((uint64_t)p->qkey << 24 ^ p->sqpn,
		     "%s datagram of QP 0x%x to QP 1: dropped where it arrives: Q_Key mismatch: "
		     "the datagram has 0x%x, and QP 1 of every port 0x%x",
		     subnet_port_text(s, row, port), p->sqpn, p->qkey, MAD_QKEY_WELL_KNOWN);
}

void packet_explain_sender(const struct subnet *s, const struct pkt *p)
{
	char here[SUBNET_PORT_TEXT], there[SUBNET_PORT_TEXT];

	explain_line(p->dqpn ^ (uint64_t)p->sqpn << 24,
		     "%s QP 0x%x %s psn 0x%x: dropped: it says that it comes from %s QP 0x%x, and "
		     "the process that has sent it has not got that port and number",
		     subnet_port_text(s, p->path->dst_port, here), p->dqpn, bth_op_name(p->opcode),
		     p->psn, subnet_port_text(s, p->path->src_port, there), p->sqpn);
}
