// SPDX-License-Identifier: BSD-2-Clause
/* Tables of attribute names and the parser of their paths; and attributes of a port as the kernel
 * prints them in sysfs. */
#include "fabric/attr.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- attributes of a port as the kernel prints them in sysfs ---- */

#define ETHERNET_CAP_MASK 0x00010000u /* IsCommunicationManagementSupported */
#define LANES_UNSAID	  4u

static const char *const state_text[] = {
	[IB_PORT_NOP] = "0: NOP",     [IB_PORT_DOWN] = "1: DOWN",     [IB_PORT_INIT] = "2: INIT",
	[IB_PORT_ARMED] = "3: ARMED", [IB_PORT_ACTIVE] = "4: ACTIVE",
};

/* PortPhysicalState (IBTA 14.2.5.6), in the kernel's words. */
static const char *const phys_text[] = {
	"0: <unknown>",
	"1: Sleep",
	"2: Polling",
	"3: Disabled",
	"4: PortConfigurationTraining",
	"5: LinkUp",
	"6: LinkErrorRecovery",
	"7: Phy Test",
};

static uint32_t port_load(const _Atomic(uint32_t) *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

static int rate_text(const struct subnet_port *p, char *buf, size_t size)
{
	const struct subnet_speed *speed = subnet_speed_of(port_load(&p->speed));
	uint32_t width = subnet_width_lanes(port_load(&p->width));
	uint32_t lanes = width ? width : LANES_UNSAID, tenths = speed->tenths * lanes;

	return snprintf(buf, size, "%u%s Gb/sec (%uX %s)\n", tenths / 10, tenths % 10 ? ".5" : "",
			lanes, speed->name);
}

static int phys_state_text(const struct subnet_port *p, char *buf, size_t size)
{
	uint32_t state = port_load(&p->state), phys = port_load(&p->phys_state);

	if (p->ethernet)
		phys = state <= IB_PORT_DOWN ? 2 : 5;
	return snprintf(buf, size, "%s\n", phys_text[phys < array_size(phys_text) ? phys : 0]);
}

int port_attr_text(const struct subnet_port *p, enum port_attr attr, char *buf, size_t size)
{
	uint32_t state = port_load(&p->state);

	switch (attr) {
	case ATTR_LID:
		return snprintf(buf, size, "0x%x\n", port_load(&p->lid));
	case ATTR_LID_MASK_COUNT:
		return snprintf(buf, size, "%u\n", port_load(&p->lmc));
	case ATTR_SM_LID:
		return snprintf(buf, size, "0x%x\n", port_load(&p->sm_lid));
	case ATTR_SM_SL:
		return snprintf(buf, size, "%u\n", port_load(&p->sm_sl));
	case ATTR_STATE:
		return snprintf(buf, size, "%s\n",
				state_text[state < array_size(state_text) ? state : IB_PORT_NOP]);
	case ATTR_PHYS_STATE:
		return phys_state_text(p, buf, size);
	case ATTR_RATE:
		return rate_text(p, buf, size);
	case ATTR_CAP_MASK:
		return snprintf(buf, size, "0x%08x\n",
				p->ethernet ? ETHERNET_CAP_MASK : port_load(&p->cap_mask));
	case ATTR_LINK_LAYER:
		return snprintf(buf, size, "%s\n", p->ethernet ? "Ethernet" : "InfiniBand");
	case PORT_ATTRS:
		break;
	}
	return -ENOENT;
}

/* ---- tables of attribute names and the parser of their paths ---- */

const char *const port_attr_name[PORT_ATTRS] = {
	[ATTR_LID] = "lid",
	[ATTR_LID_MASK_COUNT] = "lid_mask_count",
	[ATTR_SM_LID] = "sm_lid",
	[ATTR_SM_SL] = "sm_sl",
	[ATTR_STATE] = "state",
	[ATTR_PHYS_STATE] = "phys_state",
	[ATTR_RATE] = "rate",
	[ATTR_CAP_MASK] = "cap_mask",
	[ATTR_LINK_LAYER] = "link_layer",
};

#define NODE_PORTS_MAX 254u

#define LIVE(name, counter)      \
	{                        \
		name, counter, 0 \
	}
#define FIXED(name, value)                 \
	{                                  \
		name, COUNTER_FIXED, value \
	}

/* Names of PortCounters and PortCountersExtended (IBTA 16.1.3, 16.1.4) as the kernel spells
 * them. */
const struct counter_attr counter_attrs[] = {
	LIVE("port_xmit_data", PORT_XMIT_DATA),
	LIVE("port_rcv_data", PORT_RCV_DATA),
	LIVE("port_xmit_packets", PORT_XMIT_PACKETS),
	LIVE("port_rcv_packets", PORT_RCV_PACKETS),
	LIVE("unicast_xmit_packets", PORT_UNICAST_XMIT_PACKETS),
	LIVE("unicast_rcv_packets", PORT_UNICAST_RCV_PACKETS),
	LIVE("multicast_xmit_packets", PORT_MULTICAST_XMIT_PACKETS),
	LIVE("multicast_rcv_packets", PORT_MULTICAST_RCV_PACKETS),
	LIVE("port_xmit_discards", PORT_XMIT_DISCARDS),
	LIVE("port_rcv_errors", PORT_RCV_ERRORS),
	FIXED("symbol_error", 0),
	FIXED("link_error_recovery", 0),
	LIVE("link_downed", PORT_LINK_DOWNED),
	FIXED("port_rcv_remote_physical_errors", 0),
	FIXED("port_rcv_switch_relay_errors", 0),
	FIXED("port_xmit_constraint_errors", 0),
	FIXED("port_rcv_constraint_errors", 0),
	FIXED("local_link_integrity_errors", 0),
	FIXED("excessive_buffer_overrun_errors", 0),
	FIXED("VL15_dropped", 0),
	FIXED("port_xmit_wait", 0),
};
const uint32_t ncounter_attrs = array_size(counter_attrs);

/* Names of mlx5's hw_counters.  lifespan is the driver's refresh period in milliseconds. */
const struct counter_attr hw_counter_attrs[] = {
	LIVE("duplicate_request", HW_DUPLICATE_REQUEST),
	LIVE("implied_nak_seq_err", HW_IMPLIED_NAK_SEQ_ERR),
	FIXED("lifespan", 10),
	LIVE("local_ack_timeout_err", HW_LOCAL_ACK_TIMEOUT_ERR),
	LIVE("np_cnp_sent", HW_NP_CNP_SENT),
	LIVE("np_ecn_marked_roce_packets", HW_NP_ECN_MARKED),
	LIVE("out_of_buffer", HW_OUT_OF_BUFFER),
	LIVE("out_of_sequence", HW_OUT_OF_SEQUENCE),
	LIVE("packet_seq_err", HW_PACKET_SEQ_ERR),
	LIVE("req_cqe_error", HW_REQ_CQE_ERROR),
	LIVE("req_cqe_flush_error", HW_REQ_CQE_FLUSH_ERROR),
	LIVE("req_remote_access_errors", HW_REQ_REMOTE_ACCESS_ERRORS),
	LIVE("req_remote_invalid_request", HW_REQ_REMOTE_INVALID_REQUEST),
	LIVE("req_rnr_retries_exceeded", HW_REQ_RNR_RETRIES_EXCEEDED),
	LIVE("req_transport_retries_exceeded", HW_REQ_TRANSPORT_RETRIES_EXCEEDED),
	LIVE("resp_cqe_error", HW_RESP_CQE_ERROR),
	LIVE("resp_cqe_flush_error", HW_RESP_CQE_FLUSH_ERROR),
	LIVE("resp_local_length_error", HW_RESP_LOCAL_LENGTH_ERROR),
	FIXED("resp_remote_access_errors", 0), /* as measured on cards (docs/fidelity.md) */
	LIVE("rnr_nak_retry_err", HW_RNR_NAK_RETRY_ERR),
	LIVE("roce_adp_retrans", HW_ROCE_ADP_RETRANS),
	FIXED("roce_adp_retrans_to", 0),
	FIXED("roce_slow_restart", 0),
	FIXED("roce_slow_restart_cnps", 0),
	FIXED("roce_slow_restart_trans", 0),
	LIVE("rp_cnp_handled", HW_RP_CNP_HANDLED),
	FIXED("rp_cnp_ignored", 0),
	LIVE("rx_atomic_requests", HW_RX_ATOMIC_REQUESTS),
	LIVE("rx_icrc_encapsulated", HW_RX_ICRC_ENCAPSULATED),
	LIVE("rx_read_requests", HW_RX_READ_REQUESTS),
	LIVE("rx_write_requests", HW_RX_WRITE_REQUESTS),
};
const uint32_t nhw_counter_attrs = array_size(hw_counter_attrs);

const struct counter_attr violation_attrs[] = {
	LIVE("bad_pkey_cntr", PORT_PKEY_VIOLATIONS),
	LIVE("qkey_viol_cntr", PORT_QKEY_VIOLATIONS),
};
const uint32_t nviolation_attrs = array_size(violation_attrs);

static bool counter_find(const struct counter_attr *table, uint32_t n, const char *name,
			 uint32_t *index)
{
	for (*index = 0; *index < n; ++*index)
		if (!strcmp(table[*index].name, name))
			return true;
	return false;
}

/* Reads a table index as the kernel names its files: decimal, without a leading zero. */
static bool index_parse(const char *s, uint32_t limit, uint32_t *index)
{
	*index = 0;
	if (!*s || (s[0] == '0' && s[1]))
		return false;
	for (; *s; s++) {
		if (!isdigit((unsigned char)*s))
			return false;
		*index = *index * 10 + (uint32_t)(*s - '0');
		if (*index >= limit)
			return false;
	}
	return true;
}

static bool attr_prefix(const char **s, const char *with)
{
	size_t n = strlen(with);

	if (strncmp(*s, with, n) != 0)
		return false;
	*s += n;
	return true;
}

/* Reads "<port>/", up to what NodeInfo can count (IBTA 14.2.5.3); 0 is a switch's own port. */
static bool port_parse(const char **s, uint32_t *port)
{
	const char *slash = strchr(*s, '/');
	char text[4];
	size_t n;

	if (!slash)
		return false;
	n = (size_t)(slash - *s);
	if (n >= sizeof(text))
		return false;
	memcpy(text, *s, n);
	text[n] = '\0';
	*s = slash + 1;
	return index_parse(text, NODE_PORTS_MAX + 1, port);
}

bool attr_parse(const char *path, struct attr *out)
{
	static const char dir[] = "/infiniband/";
	const char *p = NULL;
	const char *end;

	for (const char *q = path; (q = strstr(q, dir)); q++)
		p = q;
	if (!p)
		return false;
	p += strlen(dir);
	end = strchr(p, '/');
	if (!end || (size_t)(end - p) >= sizeof(out->hca) || end == p)
		return false;
	memset(out->hca, 0, sizeof(out->hca));
	memcpy(out->hca, p, (size_t)(end - p));
	p = end;
	if (!strcmp(p, "/" ATTR_DESCRIPTION)) {
		out->group = GROUP_DEVICE;
		out->port = out->index = 0;
		return true;
	}
	if (!attr_prefix(&p, "/ports/") || !port_parse(&p, &out->port))
		return false;
	if (attr_prefix(&p, "counters/")) {
		out->group = GROUP_COUNTERS;
		return counter_find(counter_attrs, ncounter_attrs, p, &out->index);
	}
	if (attr_prefix(&p, "hw_counters/")) {
		out->group = GROUP_HW_COUNTERS;
		return counter_find(hw_counter_attrs, nhw_counter_attrs, p, &out->index);
	}
	if (attr_prefix(&p, "gids/")) {
		out->group = GROUP_GIDS;
		return index_parse(p, SUBNET_ETHERNET_GIDS, &out->index);
	}
	if (attr_prefix(&p, "gid_attrs/types/")) {
		out->group = GROUP_GID_TYPES;
		return index_parse(p, SUBNET_ETHERNET_GIDS, &out->index);
	}
	if (attr_prefix(&p, "gid_attrs/ndevs/")) {
		out->group = GROUP_GID_NDEVS;
		return index_parse(p, SUBNET_ETHERNET_GIDS, &out->index);
	}
	if (attr_prefix(&p, "pkeys/")) {
		out->group = GROUP_PKEYS;
		return index_parse(p, SUBNET_MAX_PKEYS, &out->index);
	}
	out->group = GROUP_PORT;
	for (out->index = 0; out->index < PORT_ATTRS; out->index++)
		if (!strcmp(port_attr_name[out->index], p))
			return true;
	return false;
}
