// SPDX-License-Identifier: BSD-2-Clause
/*
 * Paths to peers.  On InfiniBand the subnet administration says them; on Ethernet they follow from the two
 * addresses.  A program may also bring its own.
 */
#include <errno.h>
#include <string.h>

#include "fabric/daemon/cm/id.h"

#define LIFE_ROCE 18u /* of 4.096 us << n, as Linux 6.1 takes it */
#define HOPS_ROCE 64u

static uint8_t rate_of(const struct subnet_port *p)
{
	/* Rates of PathRecord in 0.1 Gb/s, by their codes. */
	static const struct {
		uint8_t code;
		uint32_t tenths;
	} rates[] = {{2, 25},	 {5, 50},    {3, 100},	 {6, 200},   {4, 300},	 {7, 400},
		     {8, 600},	 {9, 800},   {10, 1200}, {11, 140},  {12, 560},	 {13, 1120},
		     {14, 1680}, {15, 250},  {16, 1000}, {17, 2000}, {18, 3000}, {19, 280},
		     {20, 500},	 {21, 4000}, {22, 6000}};
	const uint64_t tenths = subnet_port_bytes_per_second(p) * 8 / 100000000u;
	uint8_t code = 2;

	for (size_t i = 0, best = 0; i < array_size(rates); i++)
		if (rates[i].tenths <= tenths && rates[i].tenths >= best) {
			best = rates[i].tenths;
			code = rates[i].code;
		}
	return code;
}

static uint8_t mtu_of(const struct subnet_port *p)
{
	const uint32_t mtu = atomic_load_explicit(&p->mtu, memory_order_relaxed);

	return (uint8_t)(mtu ? mtu : IB_MTU_4096);
}

/* ---- path records ---- */

void cm_path_write(const struct cm_id *id, uint8_t record[PR_BYTES])
{
	const struct cm_path *p = &id->path;

	memset(record, 0, PR_BYTES);
	prm_set(record, PR_SERVICE_ID, cm_service_of(id, id->dst.port));
	memcpy(record + PR_AT_DGID, &p->dgid, 16);
	memcpy(record + PR_AT_SGID, &p->sgid, 16);
	prm_set(record, PR_DLID, p->dlid);
	prm_set(record, PR_SLID, p->slid);
	prm_set(record, PR_FLOW, p->flow_label);
	prm_set(record, PR_HOP_LIMIT, p->hop_limit);
	prm_set(record, PR_CLASS, p->traffic_class);
	prm_set(record, PR_REVERSIBLE, 1);
	prm_set(record, PR_NUMBER, 1);
	prm_set(record, PR_PKEY, p->pkey);
	prm_set(record, PR_SL, p->sl);
	prm_set(record, PR_MTU_SEL, SA_EXACTLY);
	prm_set(record, PR_MTU, p->mtu);
	prm_set(record, PR_RATE_SEL, SA_EXACTLY);
	prm_set(record, PR_RATE, p->rate);
	prm_set(record, PR_LIFE_SEL, SA_EXACTLY);
	prm_set(record, PR_LIFE, p->life);
}

static void path_read(struct cm_id *id, const uint8_t *record)
{
	struct cm_path *p = &id->path;

	*p = (struct cm_path){
		.there = true,
		.slid = (uint16_t)prm_get(record, PR_SLID),
		.dlid = (uint16_t)prm_get(record, PR_DLID),
		.pkey = (uint16_t)prm_get(record, PR_PKEY),
		.mtu = (uint8_t)prm_get(record, PR_MTU),
		.rate = (uint8_t)prm_get(record, PR_RATE),
		.life = (uint8_t)prm_get(record, PR_LIFE),
		.sl = (uint8_t)prm_get(record, PR_SL),
		.hop_limit = (uint8_t)prm_get(record, PR_HOP_LIMIT),
		.traffic_class = (uint8_t)prm_get(record, PR_CLASS),
		.flow_label = prm_get32(record, PR_FLOW),
	};
	memcpy(&p->sgid, record + PR_AT_SGID, 16);
	memcpy(&p->dgid, record + PR_AT_DGID, 16);
}

int cm_path_set(struct cm_id *id, const uint8_t *record)
{
	if (id->state != CM_ADDR_IS_RESOLVED)
		return -EINVAL;
	path_read(id, record);
	id->state = CM_ROUTE_IS_RESOLVED;
	cm_event_tell(id, CM_ROUTE_RESOLVED, 0);
	return 0;
}

/* ---- InfiniBand ---- */

#define ASKS 10u /* within the time that the program gives */

static void path_answered(struct cm_sa_request *r, int status, const uint8_t *record)
{
	struct cm_id *id = container_of(r, struct cm_id, path_request);

	if (status) {
		id->state = CM_ADDR_IS_RESOLVED;
		cm_event_tell(id, CM_ROUTE_ERROR, status);
		return;
	}
	path_read(id, record);
	id->state = CM_ROUTE_IS_RESOLVED;
	cm_event_tell(id, CM_ROUTE_RESOLVED, 0);
}

static int path_ask(struct cm_id *id, uint32_t timeout_ms)
{
	const struct subnet *s = cm_subnet(id->cm);
	const union ib_gid sgid = cm_port_gid(id);
	uint8_t record[PR_BYTES] = {0};
	struct subnet_gid_entry to = {0};
	const bool ipv4 = id->dst.family == AF_INET;
	const struct cm_sa_ask ask = {
		.method = MAD_GET,
		.attribute = SA_PATH_RECORD,
		.mask = 3u << PR_COMP_SERVICE_ID | 1u << PR_COMP_DGID | 1u << PR_COMP_SGID |
			1u << PR_COMP_REVERSIBLE | 1u << PR_COMP_NUMBER | 1u << PR_COMP_PKEY |
			1u << (ipv4 ? PR_COMP_QOS_CLASS : PR_COMP_CLASS),
		.record = record,
		.bytes = PR_BYTES,
		.timeout_ms = timeout_ms / ASKS,
		.retries = ASKS - 1,
	};
	int ret;

	prm_set(record, PR_SERVICE_ID, cm_service_of(id, id->dst.port));
	memcpy(record + PR_AT_SGID, &sgid, 16);
	if (id->dst.family == CM_AF_IB)
		memcpy(record + PR_AT_DGID, id->dst.ip, 16);
	else if (id->peer_row != SUBNET_NONE && subnet_gid(s, id->peer_row, 0, &to))
		memcpy(record + PR_AT_DGID, &to.gid, 16);
	prm_set(record, ipv4 ? PR_QOS_CLASS : PR_CLASS, id->tos);
	prm_set(record, PR_REVERSIBLE, 1);
	prm_set(record, PR_NUMBER, 1);
	prm_set(record, PR_PKEY, id->src.pkey ? id->src.pkey : SUBNET_PKEY_DEFAULT);
	ret = cm_sa_send(id->cm, &id->path_request, id->row, &ask);
	if (ret)
		return ret;
	id->path_request.done = path_answered;
	id->state = CM_ROUTE_QUERY;
	return 0;
}

/* ---- Ethernet ---- */

static int path_of_ethernet(struct cm_id *id)
{
	const struct subnet *s = cm_subnet(id->cm);
	const struct subnet_port *from = &s->ports[id->row], *to = from;
	const bool outside = id->peer_row == SUBNET_NONE && subnet_ethernet_leads_out(s, id->row) &&
			     !cm_address_is_multicast(&id->dst);

	if (!subnet_port_active(s, id->row) || (!outside && !subnet_port_active(s, id->peer_row)))
		return -ETIMEDOUT;
	/* Of a port outside nothing is known but its address, which is its GID. */
	if (!outside)
		to = &s->ports[id->peer_row];
	id->path = (struct cm_path){
		.there = true,
		.pkey = SUBNET_PKEY_DEFAULT,
		.mtu = mtu_of(from) < mtu_of(to) ? mtu_of(from) : mtu_of(to),
		.rate = rate_of(from),
		.life = LIFE_ROCE,
		.traffic_class = id->tos,
		.sgid = cm_port_gid(id),
		.hop_limit = HOPS_ROCE,
	};
	id->path.dgid = outside ? cm_gid_outside(&id->dst)
				: cm_gid_of_peer(id->cm, id->peer_row, &id->dst, &id->path.sgid);
	return 0;
}

int cm_route_resolve(struct cm_id *id, uint32_t timeout_ms)
{
	int status;

	if (id->state != CM_ADDR_IS_RESOLVED)
		return -EINVAL;
	if (!cm_subnet(id->cm)->ports[id->row].ethernet)
		return path_ask(id, timeout_ms);
	status = path_of_ethernet(id);
	if (!status)
		id->state = CM_ROUTE_IS_RESOLVED;
	cm_event_tell(id, status ? CM_ROUTE_ERROR : CM_ROUTE_RESOLVED, status);
	return 0;
}
