// SPDX-License-Identifier: BSD-2-Clause
/* See devx/path.h. */
#include "driver/devx/path.h"

#include <errno.h>
#include <string.h>

#include "prm/cmd_qp.h"

int devx_path_port(const uint8_t *ads, uint8_t *port)
{
	uint32_t nr = prm_get32(ads, ADS_PORT);

	if (nr > ADAPTER_QP_PORTS)
		return -EINVAL;
	*port = ADAPTER_QP_PORTS;
	return 0;
}

int devx_path_decode(const struct ufile *f, const uint8_t *ads, struct ib_ah *out)
{
	const struct subnet_port *port = ufile_port(f);
	struct subnet_gid_entry sgid;

	*out = (struct ib_ah){
		.flow_label = prm_get32(ads, ADS_FLOW_LABEL),
		.dlid = (uint16_t)prm_get(ads, ADS_RLID),
		.sgid_index = (uint8_t)prm_get(ads, ADS_SRC_INDEX),
		.hop_limit = (uint8_t)prm_get(ads, ADS_HOP_LIMIT),
		.traffic_class = (uint8_t)prm_get(ads, ADS_TCLASS),
		.src_path_bits = (uint8_t)prm_get(ads, ADS_MLID),
		.static_rate = (uint8_t)prm_get(ads, ADS_STAT_RATE),
		.is_global = port->ethernet || prm_get(ads, ADS_GRH),
		.own_port = (uint8_t)prm_get(ads, ADS_LOOPBACK),
	};
	memcpy(out->dgid.raw, ads + ADS_RGID, sizeof(out->dgid.raw));
	if (port->ethernet) {
		uint64_t mac = prm_get(ads, ADS_RMAC);

		for (unsigned i = 0; i < sizeof(out->dmac); i++)
			out->dmac[i] = (uint8_t)(mac >> (40 - 8 * i));
		out->dlid = 0;
		out->sl = (uint8_t)prm_get(ads, ADS_ETH_PRIO);
	} else {
		out->sl = (uint8_t)prm_get(ads, ADS_SL);
	}
	if (out->is_global &&
	    !subnet_gid(f->process->subnet, f->hca->port_row, out->sgid_index, &sgid))
		return -EINVAL;
	return devx_path_port(ads, &out->port_num);
}

void devx_path_encode(const struct ufile *f, const struct ib_ah *ah, uint8_t *ads)
{
	prm_set(ads, ADS_FLOW_LABEL, ah->flow_label);
	prm_set(ads, ADS_SRC_INDEX, ah->sgid_index);
	prm_set(ads, ADS_HOP_LIMIT, ah->hop_limit);
	prm_set(ads, ADS_TCLASS, ah->traffic_class);
	prm_set(ads, ADS_STAT_RATE, ah->static_rate);
	prm_set(ads, ADS_GRH, ah->is_global);
	prm_set(ads, ADS_LOOPBACK, ah->own_port);
	prm_set(ads, ADS_PORT, ah->port_num);
	memcpy(ads + ADS_RGID, ah->dgid.raw, sizeof(ah->dgid.raw));
	if (ufile_port(f)->ethernet) {
		uint64_t mac = 0;

		for (unsigned i = 0; i < sizeof(ah->dmac); i++)
			mac = mac << 8 | ah->dmac[i];
		prm_set(ads, ADS_RMAC, mac);
		prm_set(ads, ADS_ETH_PRIO, ah->sl);
	} else {
		prm_set(ads, ADS_RLID, ah->dlid);
		prm_set(ads, ADS_MLID, ah->src_path_bits);
		prm_set(ads, ADS_SL, ah->sl);
	}
}
