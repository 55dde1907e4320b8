// SPDX-License-Identifier: BSD-2-Clause
/* Requests of performance management: ClassPortInfo, and which port the others are about. */
#include "fabric/daemon/pma/pma.h"

#include "prm/model.h"
#include "prm/pma.h"

#include <string.h>

/* ---- class 0x0a of Mellanox' nodes: what the node says of its hardware and firmware ---- */

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

static enum mad_verdict pma_vendor(struct port_agent *a, uint32_t row, struct mad_packet *p)
{
	const struct pma *pma = container_of(a, struct pma, vendor);
	const struct net_node *node = net_node_of(pma->fabric->net, row);
	unsigned method = p->mad[MAD_AT_METHOD];

	if (node->vendor_id != MELLANOX_VENDOR || (method != MAD_GET && method != MAD_SET))
		return MAD_PASSED;
	mad_answer(p->mad, MAD_GET_RESP, vendor_perform(pma, node, p->mad));
	return MAD_ANSWERED;
}

#define PMA_CLASS_VERSION 1u
#define PMA_RESP_TIME	  8u /* 4.096 us times 2^8: a millisecond */

static unsigned pma_class_port_info(const struct pma_request *r)
{
	unsigned cap = PMA_CAP_EXTENDED | PMA_CAP_XMIT_WAIT;

	if (r->set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (net_is_switch(r->net, r->node_row))
		cap |= PMA_CAP_ALL_PORTS;
	memset(r->data, 0, MAD_GMP_BYTES);
	prm_set(r->data, CPI_BASE_VERSION, 1);
	prm_set(r->data, CPI_CLASS_VERSION, PMA_CLASS_VERSION);
	prm_set(r->data, CPI_CAP_MASK, cap);
	prm_set(r->data, CPI_CAP_MASK2, PMA_CAP2_EXTENDED_ERRORS);
	prm_set(r->data, CPI_RESP_TIME, PMA_RESP_TIME);
	return MAD_STATUS_OK;
}

/* A switch tells of all its ports, another node only of the port that is asked. */
static bool pma_select_port(struct pma_request *r, bool all_allowed)
{
	const struct net_node *node = net_node_of(r->net, r->node_row);
	uint32_t number = prm_get32(r->data, PC_PORT_SELECT);

	if (node->type != SMP_NODE_SWITCH) {
		r->row = r->node_row;
		return number == r->net->ports[r->row].number;
	}
	if (number == PMA_PORTS_ALL && all_allowed) {
		r->row = SUBNET_NONE;
		return true;
	}
	r->row = net_port_row(r->net, node, number);
	return r->row != SUBNET_NONE;
}

static unsigned pma_perform(struct pma_request *r, const uint8_t *mad)
{
	unsigned attribute = mad_get16(mad, MAD_AT_ATTRIBUTE);
	bool samples = attribute == PMA_SAMPLES_CONTROL;

	if (mad[MAD_AT_CLASS_VERSION] != PMA_CLASS_VERSION)
		return MAD_STATUS_BAD_VERSION;
	if (mad_get32(mad, MAD_AT_MODIFIER))
		return MAD_STATUS_BAD_VALUE;
	if (attribute == GMP_CLASS_PORT_INFO)
		return pma_class_port_info(r);
	if (attribute == PMA_SAMPLES_RESULT)
		return pma_samples_result(r);
	if (!pma_select_port(r, !samples))
		return MAD_STATUS_BAD_VALUE;
	return samples ? pma_samples_control(r) : pma_attribute(r, attribute);
}

static enum mad_verdict pma_handle(struct port_agent *agent, uint32_t row, struct mad_packet *p)
{
	struct pma *pma = container_of(agent, struct pma, agent);
	unsigned method = p->mad[MAD_AT_METHOD];
	struct pma_request r = {
		.pma = pma,
		.net = pma->fabric->net,
		.node_row = row,
		.row = row,
		.set = method == MAD_SET,
		.data = p->mad + MAD_GMP_DATA,
	};

	if (method != MAD_GET && method != MAD_SET)
		return MAD_PASSED;
	mad_answer(p->mad, MAD_GET_RESP, pma_perform(&r, p->mad));
	return MAD_ANSWERED;
}

int pma_open(struct pma *p, struct mad_fabric *f)
{
	*p = (struct pma){
		.agent.handle = pma_handle,
		.vendor.handle = pma_vendor,
		.congestion.handle = pma_congestion,
		.fabric = f,
		.opened_ns = loop_now(f->loop),
	};
	mad_port_agent(f, MAD_CLASS_PERF, &p->agent);
	mad_port_agent(f, MAD_CLASS_VENDOR_MELLANOX, &p->vendor);
	mad_port_agent(f, MAD_CLASS_CONGESTION, &p->congestion);
	return 0;
}

void pma_close(struct pma *p)
{
	pma_samples_close(p);
	pma_congestion_close(p);
}
