/* SPDX-License-Identifier: BSD-2-Clause */
/* A rule that leads frames for an address to a raw packet queue, for tests and measurements. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>
#include <string.h>

#define MAC_RULE_PORT 1

/* As ibv_create_flow; 'mac' has six bytes. */
static inline struct ibv_flow *mac_rule(struct ibv_qp *qp, const uint8_t *mac)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL,
			 .size = sizeof(rule),
			 .num_of_specs = 1,
			 .port = MAC_RULE_PORT},
		.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
	};

	memcpy(rule.eth.val.dst_mac, mac, sizeof(rule.eth.val.dst_mac));
	memset(rule.eth.mask.dst_mac, 0xff, sizeof(rule.eth.mask.dst_mac));
	return ibv_create_flow(qp, &rule.attr);
}
