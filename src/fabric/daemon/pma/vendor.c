// SPDX-License-Identifier: BSD-2-Clause
/* Class 0x0a of Mellanox' nodes: what the node says of its hardware and firmware. */
#include <string.h>

#include "fabric/daemon/pma/pma.h"
#include "prm/model.h"
#include "prm/pma.h"

#define MELLANOX_VENDOR 0x2c9u
#define VENDOR_VERSION	1u
#define VENDOR_BYTES	(MAD_BYTES - MAD_VENDOR_DATA)

static const struct model *vendor_model(const struct net_node *node)
{
	for (size_t i = 0; i < models_count; i++)
		if (models[i].device == node->device_id)
			return &models[i];
	return NULL;
}

/* The short numbers have room only for the low bits. */
static void vendor_firmware(uint8_t *data, const struct model *model)
{
	prm_set(data, VGI_FW_MAJOR, model->fw_major);
	prm_set(data, VGI_FW_MINOR, MODEL_FW_MINOR);
	prm_set(data, VGI_FW_SUBMINOR, MODEL_FW_SUBMINOR);
	prm_set(data, VGI_LONG_MAJOR, model->fw_major);
	prm_set(data, VGI_LONG_MINOR, MODEL_FW_MINOR);
	prm_set(data, VGI_LONG_SUBMINOR, MODEL_FW_SUBMINOR);
	memcpy(data + VGI_AT_PSID, model->board, strnlen(model->board, VGI_PSID_BYTES - 1));
}

static void vendor_general_info(const struct pma *p, const struct net_node *node, uint8_t *data)
{
	const struct model *model = vendor_model(node);
	uint64_t up = loop_now(p->fabric->loop) - p->opened_ns;

	memset(data, 0, VENDOR_BYTES);
	prm_set(data, VGI_HW_REVISION, node->revision);
	prm_set(data, VGI_DEVICE, node->device_id);
	prm_set(data, VGI_UPTIME, up / 1000000000u);
	if (model)
		vendor_firmware(data, model);
}

static unsigned vendor_perform(const struct pma *p, const struct net_node *node, uint8_t *mad)
{
	uint8_t *data = mad + MAD_VENDOR_DATA;

	if (mad[MAD_AT_CLASS_VERSION] != VENDOR_VERSION)
		return MAD_STATUS_BAD_VERSION;
	if (mad[MAD_AT_METHOD] != MAD_GET)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	switch (mad_get16(mad, MAD_AT_ATTRIBUTE)) {
	case GMP_CLASS_PORT_INFO:
		memset(data, 0, VENDOR_BYTES);
		prm_set(data, CPI_BASE_VERSION, 1);
		prm_set(data, CPI_CLASS_VERSION, VENDOR_VERSION);
		return MAD_STATUS_OK;
	case VENDOR_GENERAL_INFO:
		vendor_general_info(p, node, data);
		return MAD_STATUS_OK;
	default:
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	}
}

enum mad_verdict pma_vendor(struct port_agent *a, uint32_t row, struct mad_packet *p)
{
	const struct pma *pma = container_of(a, struct pma, vendor);
	const struct net_node *node = net_node_of(pma->fabric->net, row);
	unsigned method = p->mad[MAD_AT_METHOD];

	if (node->vendor_id != MELLANOX_VENDOR || (method != MAD_GET && method != MAD_SET))
		return MAD_PASSED;
	mad_answer(p->mad, MAD_GET_RESP, vendor_perform(pma, node, p->mad));
	return MAD_ANSWERED;
}
