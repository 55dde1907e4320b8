// SPDX-License-Identifier: BSD-2-Clause
/* What performance management, congestion control and Mellanox' class answer. */
#include <string.h>

#include "check.h"
#include "fabric/daemon/pma/pma.h"
#include "prm/pma.h"
#include "test_mad.h"

#define TID    0x0011223344556677ull
#define PASSED 0x10000u /* beside statuses */
#define SILENT 0x20000u
#define OK     MAD_STATUS_OK
#define NONE   MAD_STATUS_BAD_METHOD_ATTRIBUTE
#define BAD    MAD_STATUS_BAD_VALUE

static struct test_mad m;
static struct pma pma;
static uint8_t mad[MAD_BYTES]; /* the last one */
static uint8_t *const data = mad + MAD_GMP_DATA;
static uint64_t cc_key;

static struct net *net(void)
{
	return &m.t.net;
}

/* Sends 'mad' with this header to a node. */
static unsigned gmp(struct port_agent *agent, unsigned class, uint32_t row, unsigned method,
		    unsigned attribute, uint32_t modifier)
{
	struct mad_packet p = {.row = row, .arriving = true};

	memset(mad, 0, MAD_HEADER_BYTES);
	mad[MAD_AT_BASE_VERSION] = 1;
	mad[MAD_AT_CLASS] = (uint8_t) class;
	mad[MAD_AT_CLASS_VERSION] = class == MAD_CLASS_CONGESTION ? 2 : 1;
	mad[MAD_AT_METHOD] = (uint8_t)method;
	mad_put64(mad, MAD_AT_TID, TID);
	mad_put16(mad, MAD_AT_ATTRIBUTE, attribute);
	mad_put32(mad, MAD_AT_MODIFIER, modifier);
	if (class == MAD_CLASS_CONGESTION)
		mad_put64(mad, MAD_AT_CC_KEY, cc_key);
	memcpy(p.mad, mad, sizeof(mad));
	switch (agent->handle(agent, row, &p)) {
	case MAD_PASSED:
		return PASSED;
	case MAD_SILENT:
		return SILENT;
	default:
		break;
	}
	memcpy(mad, p.mad, sizeof(mad));
	CHECK(mad[MAD_AT_METHOD] == MAD_GET_RESP && mad[MAD_AT_CLASS] == class);
	CHECK(mad_get64(mad, MAD_AT_TID) == TID);
	CHECK(mad_get16(mad, MAD_AT_ATTRIBUTE) == attribute);
	CHECK(mad_get32(mad, MAD_AT_MODIFIER) == modifier);
	return mad_get16(mad, MAD_AT_STATUS);
}

static unsigned perf(uint32_t row, unsigned method, unsigned attribute, unsigned port)
{
	prm_set(data, PC_PORT_SELECT, port);
	return gmp(&pma.agent, MAD_CLASS_PERF, row, method, attribute, 0);
}

static void fresh(void)
{
	memset(mad, 0, sizeof(mad));
}

static uint64_t counted(uint32_t row, unsigned attribute, unsigned port, struct prm_field f)
{
	fresh();
	CHECK(perf(row, MAD_GET, attribute, port) == OK);
	CHECK(prm_get(data, PC_PORT_SELECT) == port);
	return prm_get(data, f);
}

#define BASIC_DATA  PRM_FIELD(192, 32)
#define BASIC_DOWN  PRM_FIELD(56, 8)
#define EXT_DATA    PRM_FIELD(64, 64)
#define EXT_UNICAST PRM_FIELD(320, 64)

static void test_every(void)
{
	static const struct {
		unsigned attribute, ca, at_switch;
	} t[] = {
		{GMP_CLASS_PORT_INFO, OK, OK},
		{PMA_SAMPLES_CONTROL, OK, OK},
		{PMA_SAMPLES_RESULT, OK, OK},
		{PMA_PORT_COUNTERS, OK, OK},
		{PMA_RCV_ERROR_DETAILS, OK, OK},
		{PMA_XMIT_DISCARD_DETAILS, OK, OK},
		{PMA_OP_RCV_COUNTERS, NONE, NONE},
		{PMA_FLOW_CTL_COUNTERS, OK, OK},
		{PMA_VL_OP_PACKETS, NONE, NONE},
		{PMA_VL_OP_DATA, NONE, NONE},
		{PMA_VL_FLOW_CTL_ERRORS, OK, OK},
		{PMA_VL_XMIT_WAIT, OK, OK},
		{PMA_PORT_COUNTERS_EXTENDED, OK, OK},
		{PMA_EXTENDED_SPEEDS, OK, OK},
		{PMA_SWITCH_VL_CONGESTION, NONE, OK},
		{PMA_RCV_CONGESTION, OK, OK},
		{PMA_SL_RCV_FECN, OK, OK},
		{PMA_SL_RCV_BECN, OK, OK},
		{PMA_XMIT_CONGESTION, OK, OK},
		{PMA_VL_XMIT_CONGESTION, OK, OK},
		{PMA_XMIT_DATA_SL, OK, OK},
		{PMA_RCV_DATA_SL, OK, OK},
		{0x7f, NONE, NONE},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		fresh();
		CHECK_SAY(perf(m.t.h1, MAD_GET, t[i].attribute, 1) == t[i].ca, "0x%x",
			  t[i].attribute);
		fresh();
		CHECK_SAY(perf(m.t.s1, MAD_GET, t[i].attribute, 3) == t[i].at_switch, "0x%x",
			  t[i].attribute);
	}
	fresh();
	CHECK(perf(m.t.h1, MAD_SET, GMP_CLASS_PORT_INFO, 1) == NONE);
	CHECK(perf(m.t.h1, MAD_GET_TABLE, PMA_PORT_COUNTERS, 1) == PASSED);
	CHECK(gmp(&pma.agent, MAD_CLASS_PERF, m.t.h1, MAD_GET, PMA_PORT_COUNTERS, 1) == BAD);
}

static void test_class_port_info(void)
{
	fresh();
	CHECK(perf(m.t.h1, MAD_GET, GMP_CLASS_PORT_INFO, 0) == OK);
	CHECK(prm_get(data, CPI_CAP_MASK) == (PMA_CAP_EXTENDED | PMA_CAP_XMIT_WAIT));
	CHECK(prm_get(data, CPI_BASE_VERSION) == 1 && prm_get(data, CPI_CLASS_VERSION) == 1);
	CHECK(perf(m.t.s1, MAD_GET, GMP_CLASS_PORT_INFO, 0) == OK);
	CHECK(prm_get(data, CPI_CAP_MASK) ==
	      (PMA_CAP_EXTENDED | PMA_CAP_XMIT_WAIT | PMA_CAP_ALL_PORTS));
}

static void test_ports(void)
{
	uint32_t s = m.t.s1;

	for (unsigned port = 0; port < 256; port++) {
		fresh();
		CHECK(perf(m.t.h1, MAD_GET, PMA_PORT_COUNTERS, port) == (port == 1 ? OK : BAD));
		fresh();
		CHECK(perf(s, MAD_GET, PMA_PORT_COUNTERS, port) ==
		      (port <= 8 || port == PMA_PORTS_ALL ? OK : BAD));
	}
	fresh();
	CHECK(perf(s, MAD_GET, PMA_SAMPLES_CONTROL, PMA_PORTS_ALL) == BAD);
	net_count(net(), s + 2, NET_XMIT_DATA, 100);
	net_count(net(), s + 3, NET_XMIT_DATA, 11);
	net_count(net(), s, NET_XMIT_DATA, 5);
	CHECK(counted(s, PMA_PORT_COUNTERS, 2, BASIC_DATA) == 100);
	CHECK(counted(s + 1, PMA_PORT_COUNTERS, 3, BASIC_DATA) == 11);
	CHECK(counted(s, PMA_PORT_COUNTERS, PMA_PORTS_ALL, BASIC_DATA) == 111);
	CHECK(counted(s, PMA_PORT_COUNTERS_EXTENDED, PMA_PORTS_ALL, EXT_DATA) == 111);
	CHECK(counted(s, PMA_XMIT_DATA_SL, PMA_PORTS_ALL, PRM_FIELD(32, 32)) == 111);
	/* All are cleared together. */
	fresh();
	prm_set(data, PC_COUNTER_SELECT, 0xffff);
	CHECK(perf(s, MAD_SET, PMA_PORT_COUNTERS, PMA_PORTS_ALL) == OK);
	CHECK(!prm_get(data, BASIC_DATA));
	CHECK(!counted(s, PMA_PORT_COUNTERS, 2, BASIC_DATA));
	CHECK(counted(s, PMA_PORT_COUNTERS_EXTENDED, 2, EXT_DATA) == 100);
}

static void test_saturation(void)
{
	uint32_t h = m.t.h2;

	net_count(net(), h, NET_XMIT_DATA, 0xfffffff0ull);
	CHECK(counted(h, PMA_PORT_COUNTERS, 1, BASIC_DATA) == 0xfffffff0u);
	net_count(net(), h, NET_XMIT_DATA, 0x20);
	CHECK(counted(h, PMA_PORT_COUNTERS, 1, BASIC_DATA) == 0xffffffffu);
	CHECK(counted(h, PMA_PORT_COUNTERS_EXTENDED, 1, EXT_DATA) == 0x100000010ull);
	net_count(net(), h, NET_LINK_DOWNED, 300);
	CHECK(counted(h, PMA_PORT_COUNTERS, 1, BASIC_DOWN) == 255);
	CHECK(pma_count(net(), h, NET_LINK_DOWNED) == 300);
}

/* Only what is selected is set, to what is given, and it counts on from there. */
static void test_clearing(void)
{
	uint32_t h = m.t.h2;

	fresh();
	prm_set(data, PC_COUNTER_SELECT, 1u << 2);
	CHECK(perf(h, MAD_SET, PMA_PORT_COUNTERS, 1) == OK && !prm_get(data, BASIC_DOWN));
	CHECK(counted(h, PMA_PORT_COUNTERS, 1, BASIC_DATA) == 0xffffffffu);
	CHECK(!pma_count(net(), h, NET_LINK_DOWNED));
	fresh();
	prm_set(data, PC_COUNTER_SELECT, 1u << 12);
	prm_set(data, BASIC_DATA, 7);
	CHECK(perf(h, MAD_SET, PMA_PORT_COUNTERS, 1) == OK && prm_get(data, BASIC_DATA) == 7);
	net_count(net(), h, NET_XMIT_DATA, 3);
	CHECK(counted(h, PMA_PORT_COUNTERS, 1, BASIC_DATA) == 10);
	CHECK(pma_count(net(), h, NET_XMIT_DATA) == 0x100000013ull);
	pma_clear(net(), h, NET_XMIT_DATA);
	CHECK(!pma_count(net(), h, NET_XMIT_DATA));
	CHECK(!counted(h, PMA_PORT_COUNTERS_EXTENDED, 1, EXT_DATA));
	net_count(net(), h, NET_XMIT_PACKETS, 9);
	net_count(net(), h, NET_MULTICAST_XMIT_PACKETS, 4);
	CHECK(counted(h, PMA_PORT_COUNTERS_EXTENDED, 1, EXT_UNICAST) == 5);
	fresh();
	prm_set(data, PC_COUNTER_SELECT, 1u << 4);
	CHECK(perf(h, MAD_SET, PMA_PORT_COUNTERS_EXTENDED, 1) == OK);
	CHECK(!counted(h, PMA_PORT_COUNTERS_EXTENDED, 1, EXT_UNICAST));
	CHECK(prm_get(data, PRM_FIELD(192, 64)) == 9);
	/* What never counts cannot be set either. */
	fresh();
	prm_set(data, PC_COUNTER_SELECT, 0xffff);
	memset(data + 4, 0x55, MAD_GMP_BYTES - 4);
	CHECK(perf(h, MAD_SET, PMA_VL_XMIT_WAIT, 1) == OK);
	CHECK(!counted(h, PMA_VL_XMIT_WAIT, 1, PRM_FIELD(32, 64)));
}

/* A counter's sum of what one does to it, in any order. */
static void test_random(void)
{
	static const struct {
		unsigned attribute, bit;
		struct prm_field field;
		enum net_counter c;
	} t[] = {
		{PMA_PORT_COUNTERS, 12, BASIC_DATA, NET_XMIT_DATA},
		{PMA_PORT_COUNTERS, 15, PRM_FIELD(288, 32), NET_RCV_PACKETS},
		{PMA_PORT_COUNTERS_EXTENDED, 0, EXT_DATA, NET_XMIT_DATA},
		{PMA_PORT_COUNTERS_EXTENDED, 3, PRM_FIELD(256, 64), NET_RCV_PACKETS},
		{PMA_XMIT_DATA_SL, 0, PRM_FIELD(32, 32), NET_XMIT_DATA},
	};
	uint64_t want[5];
	struct rng rng = {42};

	for (unsigned i = 0; i < 5; i++)
		want[i] = counted(m.t.s2, t[i].attribute, 4, t[i].field);
	for (unsigned step = 0; step < 5000; step++) {
		unsigned i = (unsigned)rng_below(&rng, 5);

		if (rng_next(&rng) & 1) {
			uint64_t add = rng_below(&rng, 1000);

			net_count(net(), m.t.s2 + 4, t[i].c, add);
			for (unsigned k = 0; k < 5; k++)
				want[k] += t[k].c == t[i].c ? add : 0;
		} else {
			fresh();
			prm_set(data, PC_COUNTER_SELECT, 1u << t[i].bit);
			want[i] = rng_below(&rng, 100000);
			prm_set(data, t[i].field, want[i]);
			CHECK(perf(m.t.s2, MAD_SET, t[i].attribute, 4) == OK);
		}
		for (unsigned k = 0; k < 5; k++)
			CHECK(counted(m.t.s2, t[k].attribute, 4, t[k].field) == want[k]);
	}
}

/* ---- samples ---- */

static void let_go_ns(uint64_t ns)
{
	m.loop.still_ns += ns;
	CHECK(loop_round(&m.loop, 0) >= 0);
}

static void test_samples(void)
{
	uint32_t s = m.t.s1;

	fresh();
	prm_set(data, PSC_START, 20000);
	prm_set(data, PSC_INTERVAL, 30000);
	prm_set(data, PSC_TAG, 0xbeef);
	prm_set(data, PSC_SELECT(0), PSC_XMIT_DATA);
	prm_set(data, PSC_SELECT(1), PSC_RCV_PACKETS);
	prm_set(data, PSC_SELECT(2), PSC_XMIT_WAIT);
	CHECK(perf(s, MAD_SET, PMA_SAMPLES_CONTROL, 2) == OK);
	CHECK(prm_get(data, PSC_STATUS) == PSC_STARTING && prm_get(data, PSC_TAG) == 0xbeef);
	CHECK(prm_get(data, PSC_COUNTER_WIDTH) == 4 && prm_get(data, PSC_TICK) == 100);
	net_count(net(), s + 2, NET_XMIT_DATA, 1000);
	let_go_ns(21000000);
	fresh();
	CHECK(perf(s, MAD_GET, PMA_SAMPLES_RESULT, 0) == OK);
	CHECK(prm_get(data, PSR_STATUS) == PSC_RUNNING && prm_get(data, PSR_TAG) == 0xbeef);
	/* It is busy: another's Set is not heard. */
	fresh();
	prm_set(data, PSC_TAG, 1);
	CHECK(perf(s, MAD_SET, PMA_SAMPLES_CONTROL, 2) == OK && prm_get(data, PSC_TAG) == 0xbeef);
	net_count(net(), s + 2, NET_XMIT_DATA, 50);
	net_count(net(), s + 2, NET_RCV_PACKETS, 6);
	net_count(net(), s + 3, NET_XMIT_DATA, 77);
	let_go_ns(32000000);
	net_count(net(), s + 2, NET_XMIT_DATA, 9);
	fresh();
	CHECK(perf(s, MAD_GET, PMA_SAMPLES_RESULT, 0) == OK);
	CHECK(prm_get(data, PSR_STATUS) == PSC_DONE);
	CHECK(prm_get(data, PSR_COUNTER(0)) == 50 && prm_get(data, PSR_COUNTER(1)) == 6);
	CHECK(!prm_get(data, PSR_COUNTER(2)) && !prm_get(data, PSR_COUNTER(3)));
	fresh();
	prm_set(data, PSC_TAG, 1);
	CHECK(perf(s, MAD_SET, PMA_SAMPLES_CONTROL, 3) == OK && prm_get(data, PSC_TAG) == 1);
}

/* ---- Mellanox' class ---- */

static unsigned vendor(uint32_t row, unsigned method, unsigned attribute)
{
	fresh();
	return gmp(&pma.vendor, MAD_CLASS_VENDOR_MELLANOX, row, method, attribute, 0);
}

static void test_vendor(void)
{
	struct net_node *node = net_node_of(net(), m.t.h1);
	const uint8_t *info = mad + MAD_VENDOR_DATA;

	node->vendor_id = 0;
	CHECK(vendor(m.t.h1, MAD_GET, VENDOR_GENERAL_INFO) == PASSED);
	node->vendor_id = 0x2c9;
	node->device_id = 0x1017;
	CHECK(vendor(m.t.h1, MAD_GET, GMP_CLASS_PORT_INFO) == OK);
	CHECK(vendor(m.t.h1, MAD_SET, VENDOR_GENERAL_INFO) == NONE);
	CHECK(vendor(m.t.h1, MAD_GET, 0x50) == NONE);
	CHECK(vendor(m.t.h1, MAD_GET, VENDOR_GENERAL_INFO) == OK);
	CHECK(prm_get(info, VGI_DEVICE) == 0x1017 && prm_get(info, VGI_FW_MAJOR) == 16);
	CHECK(prm_get(info, VGI_LONG_MAJOR) == 16 && prm_get(info, VGI_LONG_SUBMINOR) == 1000);
	CHECK(!strcmp((const char *)info + VGI_AT_PSID, "MT_0000000011"));
	node->device_id = 1;
	CHECK(vendor(m.t.h1, MAD_GET, VENDOR_GENERAL_INFO) == OK);
	CHECK(prm_get(info, VGI_DEVICE) == 1 && !prm_get(info, VGI_FW_MAJOR));
}

/* ---- congestion control ---- */

static unsigned cc(uint32_t row, unsigned method, unsigned attribute, uint32_t modifier)
{
	return gmp(&pma.congestion, MAD_CLASS_CONGESTION, row, method, attribute, modifier);
}

static void test_cc_every(void)
{
	static const struct {
		unsigned attribute;
		uint32_t modifier;
		unsigned ca, at_switch;
	} t[] = {
		{GMP_CLASS_PORT_INFO, 0, OK, OK},
		{CC_INFO, 0, OK, OK},
		{CC_KEY_INFO, 0, OK, OK},
		{CC_KEY_INFO, 1, BAD, BAD},
		{CC_LOG, 0, OK, OK},
		{CC_SWITCH_SETTING, 0, NONE, OK},
		{CC_SWITCH_PORT_SETTING, 0, NONE, OK},
		{CC_SWITCH_PORT_SETTING, 1, NONE, BAD},
		{CC_CA_SETTING, 0, OK, NONE},
		{CC_TABLE, 1, OK, NONE},
		{CC_TABLE, 2, BAD, NONE},
		{CC_TIMESTAMP, 0, OK, OK},
		{0x30, 0, NONE, NONE},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		fresh();
		CHECK(cc(m.t.h1, MAD_GET, t[i].attribute, t[i].modifier) == t[i].ca);
		fresh();
		CHECK(cc(m.t.s1, MAD_GET, t[i].attribute, t[i].modifier) == t[i].at_switch);
	}
	fresh();
	CHECK(cc(m.t.h1, MAD_GET, CC_LOG, 0) == OK);
	CHECK(prm_get(mad + MAD_CC_LOG_DATA, CC_LOG_TYPE) == CC_LOG_CA);
	CHECK(cc(m.t.s1, MAD_GET, CC_LOG, 0) == OK);
	CHECK(prm_get(mad + MAD_CC_LOG_DATA, CC_LOG_TYPE) == CC_LOG_SWITCH);
	CHECK(cc(m.t.s1, MAD_SET, CC_LOG, 0) == NONE && cc(m.t.s1, MAD_SET, CC_INFO, 0) == NONE);
}

static void test_cc_settings(void)
{
	uint32_t s = m.t.s1, h = m.t.h1;

	/* Parts that the map does not name stay. */
	fresh();
	mad_put32(data, 0, 0x10);
	mad_put16(data, 74, 33);
	data[4] = 0xaa;
	CHECK(cc(s, MAD_SET, CC_SWITCH_SETTING, 0) == OK && !data[4]);
	fresh();
	mad_put32(data, 0, 0x1);
	data[4] = 0xaa;
	CHECK(cc(s + 3, MAD_SET, CC_SWITCH_SETTING, 0) == OK);
	fresh();
	CHECK(cc(s, MAD_GET, CC_SWITCH_SETTING, 0) == OK);
	CHECK(data[4] == 0xaa && mad_get16(data, 74) == 33);
	fresh();
	data[8] = 0x85;
	data[12] = 0x05; /* not valid */
	CHECK(cc(s, MAD_SET, CC_SWITCH_PORT_SETTING, 0) == OK);
	CHECK(data[8] == 0x85 && !data[12]);
	fresh();
	mad_put16(data, 2, 1u << 3);
	data[4 + 3 * 8] = 9;
	data[4 + 4 * 8] = 9;
	CHECK(cc(h, MAD_SET, CC_CA_SETTING, 0) == OK && data[28] == 9 && !data[36]);
	fresh();
	mad_put16(data, 0, 100);
	mad_put16(data, 4, 0x4001);
	CHECK(cc(h, MAD_SET, CC_TABLE, 1) == OK);
	fresh();
	CHECK(cc(h, MAD_GET, CC_TABLE, 0) == OK);
	CHECK(mad_get16(data, 0) == 100 && !mad_get16(data, 4));
	CHECK(cc(h, MAD_GET, CC_TABLE, 1) == OK && mad_get16(data, 4) == 0x4001);
	mad_put16(data, 0, 128);
	CHECK(cc(h, MAD_SET, CC_TABLE, 0) == BAD);
	fresh();
	CHECK(cc(m.t.h2, MAD_GET, CC_TABLE, 0) == OK && !mad_get16(data, 0));
}

static void test_cc_keys(void)
{
	uint32_t h = m.t.h1;

	fresh();
	prm_set(data, CC_KEY_INFO_KEY, 0x1234);
	CHECK(cc(h, MAD_SET, CC_KEY_INFO, 0) == OK);
	CHECK(cc(h, MAD_GET, CC_INFO, 0) == OK);
	fresh();
	CHECK(cc(h, MAD_SET, CC_CA_SETTING, 0) == SILENT);
	cc_key = 0x1234;
	CHECK(cc(h, MAD_SET, CC_CA_SETTING, 0) == OK);
	fresh();
	CHECK(cc(h, MAD_GET, CC_KEY_INFO, 0) == OK && prm_get(data, CC_KEY_INFO_VIOLATIONS) == 1);
	prm_set(data, CC_KEY_INFO_PROTECT, 1);
	CHECK(cc(h, MAD_SET, CC_KEY_INFO, 0) == OK && prm_get(data, CC_KEY_INFO_VIOLATIONS) == 1);
	cc_key = 1;
	CHECK(cc(h, MAD_GET, CC_INFO, 0) == SILENT);
	CHECK(cc(m.t.h2, MAD_GET, CC_INFO, 0) == OK);
	cc_key = 0x1234;
	fresh();
	CHECK(cc(h, MAD_GET, CC_KEY_INFO, 0) == OK && prm_get(data, CC_KEY_INFO_VIOLATIONS) == 2);
	fresh();
	CHECK(cc(h, MAD_SET, CC_KEY_INFO, 0) == OK && !prm_get(data, CC_KEY_INFO_VIOLATIONS));
	cc_key = 0;
	CHECK(cc(h, MAD_SET, CC_CA_SETTING, 0) == OK);
}

int main(void)
{
	test_mad_open(&m);
	CHECK(!pma_open(&pma, &m.mad));
	test_every();
	test_class_port_info();
	test_ports();
	test_saturation();
	test_clearing();
	test_random();
	test_samples();
	test_vendor();
	test_cc_every();
	test_cc_settings();
	test_cc_keys();
	pma_close(&pma);
	test_mad_close(&m);
	return 0;
}
