// SPDX-License-Identifier: BSD-2-Clause
#include "wire/packet_explain.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "prm/mad.h"

/* Says to whom a packet with many receivers goes. */
static const char *group_text(const struct pkt *p, char text[INET6_ADDRSTRLEN])
{
	const uint8_t *b = p->path->dgid.raw;

	if (pkt_transport(p) == BTH_RAW)
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
		     subnet_port_text(s, row, port),
		     pkt_transport(p) == BTH_RAW ? "frame" : "datagram", p->sqpn,
		     group_text(p, group), why);
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
