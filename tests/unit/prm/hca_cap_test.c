// SPDX-License-Identifier: BSD-2-Clause
/* The capability pages: what depends on the device, what does not, and pages that are not there. */
#include <string.h>

#include "check.h"
#include "prm/field.h"
#include "prm/hca_cap.h"

#define NUM_PORTS	PRM_FIELD(0x1b8, 8)
#define PORT_TYPE	PRM_FIELD(0x1b6, 2)
#define GID_TABLE_SIZE	PRM_FIELD(0x170, 16)
#define PKEY_TABLE_SIZE PRM_FIELD(0x190, 16)
#define ROCE		PRM_FIELD(0x21d, 1)
#define LOG_MAX_QP	PRM_FIELD(0x09b, 5)
#define RC		PRM_FIELD(0x23f, 1)
#define APM		PRM_FIELD(0x22e, 1)
#define ROCE_APM	PRM_FIELD(0x000, 1) /* of the RoCE page */

#define FREQUENCY_KHZ PRM_FIELD(0x4e0, 32)
#define WAIT_ON_TIME  PRM_FIELD(0x68c, 1)
#define DMA_MMO_SQ    PRM_FIELD(0x153, 1)

static const struct model plain = {.clock_khz = 78125};
static const struct hca_cap_values infiniband = {
	.ports = 1, .gids = 8, .pkeys = 128, .model = &plain};
static const struct hca_cap_values ethernet = {
	.ethernet = true, .ports = 1, .gids = 256, .pkeys = 1, .model = &plain};

static uint8_t page[HCA_CAP_PAGE_BYTES];

static uint32_t general_cap(const struct hca_cap_values *v, struct prm_field field)
{
	memset(page, 0xff, sizeof(page)); /* all of it is written */
	CHECK(hca_cap_page(HCA_CAP_GENERAL, v, page));
	return prm_get32(page, field);
}

/* Tables are coded as powers of two above the smallest. */
static void test_of_the_device(void)
{
	struct hca_cap_values two = infiniband;

	CHECK(!general_cap(&infiniband, PORT_TYPE) && general_cap(&ethernet, PORT_TYPE) == 1);
	CHECK(!general_cap(&infiniband, ROCE) && general_cap(&ethernet, ROCE) == 1);
	CHECK(general_cap(&infiniband, GID_TABLE_SIZE) == 0 &&
	      general_cap(&ethernet, GID_TABLE_SIZE) == 5);
	CHECK(general_cap(&infiniband, PKEY_TABLE_SIZE) == 0);
	CHECK(general_cap(&ethernet, PKEY_TABLE_SIZE) == 0);
	two.pkeys = 512;
	CHECK(general_cap(&two, PKEY_TABLE_SIZE) == 2);
	CHECK(general_cap(&infiniband, NUM_PORTS) == 1);
	two.ports = 2;
	CHECK(general_cap(&two, NUM_PORTS) == 2);
}

static void test_of_all(void)
{
	CHECK(general_cap(&infiniband, RC) == 1 && general_cap(&ethernet, RC) == 1);
	CHECK(general_cap(&infiniband, APM) == 1 && general_cap(&ethernet, APM) == 1);
	CHECK(hca_cap_page(HCA_CAP_ROCE, &ethernet, page) && prm_get(page, ROCE_APM));
	CHECK(hca_cap_page(HCA_CAP_ROCE, &infiniband, page) && !prm_get(page, ROCE_APM));
	CHECK(general_cap(&infiniband, LOG_MAX_QP) == 18);
	/* a feature that is not there: the beginning of the page is a row of them */
	CHECK(!general_cap(&infiniband, PRM_FIELD(0, 32)));
}

/* What a card does not have is not offered. */
static void test_of_the_model(void)
{
	struct hca_cap_values all = infiniband;

	all.model = model_at(MODEL_DEFAULT);
	CHECK(!general_cap(&infiniband, WAIT_ON_TIME) && general_cap(&all, WAIT_ON_TIME));
	CHECK(!general_cap(&infiniband, DMA_MMO_SQ) && general_cap(&all, DMA_MMO_SQ));
	CHECK(general_cap(&infiniband, FREQUENCY_KHZ) == 78125);
	CHECK(general_cap(&all, FREQUENCY_KHZ) == 1000000);
}

/* What is asked for and not there is refused, and the page left alone; what is there and empty is
 * zero. */
static void test_types(void)
{
	static const uint16_t there[] = {HCA_CAP_GENERAL,	 HCA_CAP_ODP,
					 HCA_CAP_ATOMIC,	 HCA_CAP_GENERAL_2,
					 HCA_CAP_ROCE,		 HCA_CAP_DEVICE_MEMORY,
					 HCA_CAP_NIC_FLOW_TABLE, HCA_CAP_ESW_FLOW_TABLE};

	for (unsigned type = 0; type < 64; type++) {
		bool wanted = false;

		for (size_t i = 0; i < array_size(there); i++)
			wanted |= there[i] == type;
		memset(page, 0xff, sizeof(page));
		CHECK(hca_cap_page((enum hca_cap_type)type, &ethernet, page) == wanted);
		CHECK(page[HCA_CAP_PAGE_BYTES - 1] == (wanted ? 0 : 0xff));
	}
	CHECK(hca_cap_page(HCA_CAP_ROCE, &infiniband, page));
	for (size_t i = 0; i < sizeof(page); i++)
		CHECK(!page[i]);
}

/* A bit of flow_table_fields_supported, by its place in the PRM. */
static bool has_field(uint32_t table, uint32_t place)
{
	return prm_get32(page, PRM_FIELD(table + 0x100 + place, 1));
}

/* What rules match on, and what the device's own tables can. */
static void test_flow_tables(void)
{
	enum { RX = 0x200, SNIFFER_RX = 0x600, TX = 0x800, FDB = 0x200 };
	enum {
		OUTER_IP_VERSION = 0x03,
		OUTER_FRAGMENT = 0x0e,
		OUTER_TCP_FLAGS = 0x16,
		GRE_KEY = 0x18,
		VXLAN_VNI = 0x19,
		GENEVE_VNI = 0x1a,
		INNER_DMAC = 0x20,
		INNER_TCP_PORT = 0x35,
		MPLS_OVER_UDP = 0x45,
		OUTER_MPLS_TTL = 0x54,
		ESP_SPI = 0x57,
		BTH_QPN = 0x5a,
		MASKS = 0x80,
	};
	static const uint8_t yes[] = {OUTER_IP_VERSION, GRE_KEY,       VXLAN_VNI,      INNER_DMAC,
				      INNER_TCP_PORT,	MPLS_OVER_UDP, OUTER_MPLS_TTL, ESP_SPI};
	static const uint8_t no[] = {OUTER_FRAGMENT, OUTER_TCP_FLAGS, GENEVE_VNI, BTH_QPN};

	CHECK(hca_cap_page(HCA_CAP_NIC_FLOW_TABLE, &ethernet, page));
	CHECK(prm_get32(page, PRM_FIELD(0x002, 1)) && !prm_get32(page, PRM_FIELD(SNIFFER_RX, 1)));
	for (uint32_t table = RX; table <= TX; table += TX - RX) {
		CHECK(prm_get32(page, PRM_FIELD(table + 0x03, 1)) == 1); /* flow_modify_en */
		CHECK(prm_get32(page, PRM_FIELD(table + 0x22, 6)) == 0); /* log_max_ft_size */
		CHECK(prm_get32(page, PRM_FIELD(table + 0x98, 8)) == 5); /* log_max_destination */
		for (size_t i = 0; i < array_size(yes); i++)
			CHECK(has_field(table, yes[i]));
		for (size_t i = 0; i < array_size(no); i++)
			CHECK(!has_field(table, no[i]) && !has_field(table, MASKS + no[i]));
		CHECK(!has_field(table, MASKS + OUTER_IP_VERSION) &&
		      has_field(table, MASKS + VXLAN_VNI));
	}
	CHECK(hca_cap_page(HCA_CAP_ESW_FLOW_TABLE, &ethernet, page));
	CHECK(has_field(FDB, OUTER_IP_VERSION) && !has_field(FDB, VXLAN_VNI) &&
	      !has_field(FDB, INNER_DMAC) && !has_field(FDB, ESP_SPI));
	CHECK(hca_cap_page(HCA_CAP_NIC_FLOW_TABLE, &infiniband, page));
	for (size_t i = 0; i < sizeof(page); i++)
		CHECK(!page[i]);
}

/* Programs own tables only where entries have a format that they know, and there is Ethernet. */
static void test_steering(void)
{
	struct hca_cap_values v = ethernet;

	CHECK(hca_cap_page(HCA_CAP_NIC_FLOW_TABLE, &v, page) &&
	      !prm_get32(page, PRM_FIELD(0x21e, 1)) && prm_get32(page, PRM_FIELD(0x200, 1)));
	v.icm = (struct hca_cap_icm){.format = 2, .drop = 0x8123456789, .log_steering = 20};
	CHECK(hca_cap_page(HCA_CAP_NIC_FLOW_TABLE, &v, page) &&
	      prm_get32(page, PRM_FIELD(0x21e, 1)) &&
	      prm_get(page, PRM_FIELD(0x2000, 64)) == 0x8123456789);
	CHECK(general_cap(&v, PRM_FIELD(0x444, 4)) == 2);
	CHECK(hca_cap_page(HCA_CAP_DEVICE_MEMORY, &v, page) &&
	      prm_get32(page, PRM_FIELD(0x118, 8)) == 20);
	v.ethernet = false;
	CHECK(hca_cap_page(HCA_CAP_NIC_FLOW_TABLE, &v, page));
	for (size_t i = 0; i < sizeof(page); i++)
		CHECK(!page[i]);
}

int main(void)
{
	test_of_the_device();
	test_of_all();
	test_of_the_model();
	test_types();
	test_flow_tables();
	test_steering();
	return 0;
}
