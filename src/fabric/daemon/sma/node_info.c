// SPDX-License-Identifier: BSD-2-Clause
/* NodeInfo and NodeDescription. */
#include <string.h>

#include "fabric/daemon/sma/sma.h"

unsigned sma_node_description(struct smp_request *r)
{
	const struct net_node *node = net_node_of(r->net, r->row);

	_Static_assert(sizeof(node->description) == MAD_ATTRIBUTE_BYTES, "it fills the attribute");
	memcpy(r->data, node->description, MAD_ATTRIBUTE_BYTES);
	return MAD_STATUS_OK;
}

unsigned sma_node_info(struct smp_request *r)
{
	const struct net_node *node = net_node_of(r->net, r->row);
	const struct net_port *in = &r->net->ports[r->row];

	memset(r->data, 0, MAD_ATTRIBUTE_BYTES);
	prm_set(r->data, NI_BASE_VERSION, 1);
	prm_set(r->data, NI_CLASS_VERSION, 1);
	prm_set(r->data, NI_TYPE, node->type);
	prm_set(r->data, NI_PORTS, node->nports);
	prm_set(r->data, NI_SYSTEM_GUID, node->system_guid);
	prm_set(r->data, NI_NODE_GUID, node->guid);
	/* All ports of a switch have the same GUID. */
	prm_set(r->data, NI_PORT_GUID, node->type == SMP_NODE_SWITCH ? node->guid : in->guid);
	prm_set(r->data, NI_PARTITION_CAP, node->partition_cap);
	prm_set(r->data, NI_DEVICE, node->device_id);
	prm_set(r->data, NI_REVISION, node->revision);
	prm_set(r->data, NI_LOCAL_PORT, in->number);
	prm_set(r->data, NI_VENDOR, node->vendor_id);
	return MAD_STATUS_OK;
}
