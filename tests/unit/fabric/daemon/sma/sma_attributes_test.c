// SPDX-License-Identifier: BSD-2-Clause
/* What nodes answer about themselves, and what they let be set. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fabric/daemon/sma/sma.h"
#include "test_mad.h"

#define TID	0x0011223344556677ull
#define PASSED	0x10000u /* beside statuses */
#define SILENT	0x20000u
#define EXT	(1u << 31)
#define S1_PORT 8u

static struct test_mad m;
static struct sma sma;
static uint8_t data[MAD_ATTRIBUTE_BYTES]; /* of the last SMP */

static struct net *net(void)
{
	return &m.t.net;
}

/* An SMP with 'data' comes in by 'row'. */
static unsigned smp_of_class(unsigned class, uint32_t row, unsigned method, unsigned attribute,
			     uint32_t modifier)
{
	struct mad_packet p = {.row = row, .arriving = true};
	uint16_t status;

	p.mad[MAD_AT_BASE_VERSION] = 1;
	p.mad[MAD_AT_CLASS] = (uint8_t) class;
	p.mad[MAD_AT_CLASS_VERSION] = 1;
	p.mad[MAD_AT_METHOD] = (uint8_t)method;
	mad_put64(p.mad, MAD_AT_TID, TID);
	mad_put16(p.mad, MAD_AT_ATTRIBUTE, attribute);
	mad_put32(p.mad, MAD_AT_MODIFIER, modifier);
	memcpy(p.mad + MAD_SMP_DATA, data, sizeof(data));
	switch (sma.agent.handle(&sma.agent, row, &p)) {
	case MAD_PASSED:
		return PASSED;
	case MAD_SILENT:
		return SILENT;
	default:
		break;
	}
	CHECK(p.mad[MAD_AT_METHOD] == MAD_GET_RESP && p.mad[MAD_AT_CLASS] == class);
	CHECK(mad_get64(p.mad, MAD_AT_TID) == TID);
	CHECK(mad_get16(p.mad, MAD_AT_ATTRIBUTE) == attribute);
	CHECK(mad_get32(p.mad, MAD_AT_MODIFIER) == modifier);
	memcpy(data, p.mad + MAD_SMP_DATA, sizeof(data));
	status = mad_get16(p.mad, MAD_AT_STATUS);
	if (class == MAD_CLASS_SMP_DIRECTED)
		CHECK(status & MAD_STATUS_DIRECTION);
	return status & ~(unsigned)MAD_STATUS_DIRECTION;
}

static unsigned smp(uint32_t row, unsigned method, unsigned attribute, uint32_t modifier)
{
	return smp_of_class(MAD_CLASS_SMP_DIRECTED, row, method, attribute, modifier);
}

static uint64_t asked(uint32_t row, unsigned attribute, uint32_t modifier, struct prm_field f)
{
	memset(data, 0, sizeof(data));
	CHECK(!smp(row, MAD_GET, attribute, modifier));
	return prm_get(data, f);
}

/* PortInfo as it is, for a Set that changes one thing: enabled widths and speeds stay. */
static void port_info(uint32_t row, uint32_t number)
{
	memset(data, 0, sizeof(data));
	CHECK(!smp(row, MAD_GET, SMP_PORT_INFO, number));
	prm_set(data, PI_STATE, 0);
	prm_set(data, PI_PHYS_STATE, 0);
	prm_set(data, PI_WIDTH_ENABLED, 0);
	prm_set(data, PI_SPEED_ENABLED, 0);
	prm_set(data, PI_EXT_SPEED_ENABLED, 0);
	if (!prm_get(data, PI_LID))
		prm_set(data, PI_LID, 0x1234);
	if (!prm_get(data, PI_SM_LID))
		prm_set(data, PI_SM_LID, 0x1234);
}

static unsigned port_info_with(uint32_t row, uint32_t number, struct prm_field f, uint64_t v)
{
	port_info(row, number);
	prm_set(data, f, v);
	return smp(row, MAD_SET, SMP_PORT_INFO, number);
}

/* ---- every attribute, every kind of node ---- */

#define OK   MAD_STATUS_OK
#define NONE MAD_STATUS_BAD_METHOD_ATTRIBUTE
#define BAD  MAD_STATUS_BAD_VALUE

static const struct row {
	unsigned attribute;
	uint32_t modifier;
	unsigned ca, at_switch; /* answers to a Get */
	bool set;		/* what was got can be set */
} rows[] = {
	{SMP_NODE_DESCRIPTION, 0, OK, OK, false},
	{SMP_NODE_DESCRIPTION, 1, BAD, BAD, false},
	{SMP_NODE_INFO, 0, OK, OK, false},
	{SMP_NODE_INFO, 1, BAD, BAD, false},
	{SMP_SWITCH_INFO, 0, NONE, OK, true},
	{SMP_SWITCH_INFO, 1, NONE, BAD, true},
	{SMP_GUID_INFO, 0, OK, OK, true},
	{SMP_GUID_INFO, 32, BAD, BAD, true},
	{SMP_PORT_INFO, 0, OK, OK, true},
	{SMP_PORT_INFO, 1, OK, OK, true},
	{SMP_PORT_INFO, 2, BAD, OK, true},
	{SMP_PORT_INFO, EXT | 1, OK, OK, true},
	{SMP_PORT_INFO, 9, BAD, BAD, true},
	{SMP_PORT_INFO, 0x101, BAD, BAD, true},
	{SMP_PKEY_TABLE, 0, OK, OK, true},
	{SMP_PKEY_TABLE, 1 << 16, OK, OK, true},
	{SMP_PKEY_TABLE, 9 << 16, OK, BAD, true},
	{SMP_PKEY_TABLE, 1000, BAD, BAD, true},
	{SMP_SL_TO_VL, 0, OK, OK, true},
	{SMP_SL_TO_VL, 0x0201, OK, OK, true},
	{SMP_SL_TO_VL, 0x0901, OK, BAD, true},
	{SMP_SL_TO_VL, 0x0109, OK, BAD, true},
	{SMP_VL_ARBITRATION, 0, BAD, BAD, true},
	{SMP_VL_ARBITRATION, 1 << 16 | 1, OK, OK, true},
	{SMP_VL_ARBITRATION, 3 << 16 | 1, OK, OK, true},
	{SMP_VL_ARBITRATION, 5 << 16 | 1, BAD, BAD, true},
	{SMP_VL_ARBITRATION, 1 << 16 | 9, OK, BAD, true},
	{SMP_LINEAR_TABLE, 0, NONE, OK, true},
	{SMP_LINEAR_TABLE, 767, NONE, OK, true},
	{SMP_LINEAR_TABLE, 768, NONE, BAD, true},
	{SMP_MULTICAST_TABLE, 0, NONE, OK, true},
	{SMP_MULTICAST_TABLE, 31, NONE, OK, true},
	{SMP_MULTICAST_TABLE, 32, NONE, BAD, true},
	{SMP_MULTICAST_TABLE, 1u << 28, NONE, BAD, true},
	{SMP_RANDOM_TABLE, 0, NONE, NONE, false},
	{SMP_NOTICE, 0, NONE, NONE, false},
	{SMP_VENDOR_DIAG, 0, NONE, NONE, false},
	{SMP_LED_INFO, 0, NONE, NONE, false},
	{SMP_PORT_INFO_EXTENDED, 1, NONE, NONE, false},
	{SMP_MELLANOX_EXTENDED_PORT_INFO, 1, NONE, NONE, false},
	{SMP_SM_INFO, 0, PASSED, PASSED, false},
	{0xffff, 0, NONE, NONE, false},
};

/* A Set of a bad modifier is refused as a Get is; of an attribute that cannot be set, as a pair. */
static unsigned set_answer(const struct row *t, unsigned get)
{
	return t->set || get == PASSED ? get : NONE;
}

static void test_table(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *t = &rows[i];
		uint32_t at[] = {m.t.h1, m.t.s1 + S1_PORT, m.t.s1};

		for (unsigned k = 0; k < 3; k++) {
			unsigned want = k ? t->at_switch : t->ca, got;

			memset(data, 0, sizeof(data));
			got = smp(at[k], MAD_GET, t->attribute, t->modifier);
			CHECK_SAY(got == want, "Get 0x%x 0x%x: 0x%x", t->attribute, t->modifier,
				  got);
			if (t->attribute == SMP_PORT_INFO && !want)
				port_info(at[k], t->modifier);
			got = smp(at[k], MAD_SET, t->attribute, t->modifier);
			CHECK_SAY(got == set_answer(t, want), "Set 0x%x 0x%x: 0x%x", t->attribute,
				  t->modifier, got);
		}
	}
}

static void test_methods(void)
{
	struct mad_packet p = {0};

	CHECK(smp(m.t.h1, MAD_TRAP, SMP_NOTICE, 0) == PASSED);
	CHECK(smp(m.t.h1, MAD_SEND, SMP_NODE_INFO, 0) == PASSED);
	CHECK(smp(m.t.h1, MAD_TRAP_REPRESS, SMP_NOTICE, 0) == SILENT);
	CHECK(smp_of_class(MAD_CLASS_SMP_LID, m.t.h1, MAD_GET, SMP_NODE_INFO, 0) == OK);
	p.mad[MAD_AT_CLASS] = MAD_CLASS_SMP_LID;
	p.mad[MAD_AT_CLASS_VERSION] = 2;
	p.mad[MAD_AT_METHOD] = MAD_GET;
	mad_put16(p.mad, MAD_AT_ATTRIBUTE, SMP_NODE_INFO);
	CHECK(sma.agent.handle(&sma.agent, m.t.h1, &p) == MAD_ANSWERED);
	CHECK(mad_get16(p.mad, MAD_AT_STATUS) == MAD_STATUS_BAD_VERSION);
}

/* ---- what is in them ---- */

static void test_node_info(void)
{
	uint32_t s = m.t.s1, h = m.t.h1;
	const struct net_node *node = net_node_of(net(), s);

	CHECK(asked(h, SMP_NODE_INFO, 0, NI_TYPE) == SMP_NODE_CA);
	CHECK(prm_get(data, NI_LOCAL_PORT) == 1 && prm_get(data, NI_PORTS) == 1);
	CHECK(prm_get(data, NI_PORT_GUID) == net()->ports[h].guid);
	CHECK(prm_get(data, NI_BASE_VERSION) == 1 && prm_get(data, NI_CLASS_VERSION) == 1);
	/* A switch says by which port it was asked. */
	for (uint32_t i = 0; i <= 8; i++) {
		CHECK(asked(s + i, SMP_NODE_INFO, 0, NI_LOCAL_PORT) == i);
		CHECK(prm_get(data, NI_TYPE) == SMP_NODE_SWITCH && prm_get(data, NI_PORTS) == 8);
		CHECK(prm_get(data, NI_NODE_GUID) == node->guid);
		CHECK(prm_get(data, NI_PORT_GUID) == node->guid);
		CHECK(prm_get(data, NI_SYSTEM_GUID) == node->system_guid);
		CHECK(prm_get(data, NI_PARTITION_CAP) == node->partition_cap);
		CHECK(asked(s + i, SMP_PORT_INFO, 3, PI_LOCAL_PORT) == i);
	}
	memset(data, 0xff, sizeof(data));
	CHECK(!smp(s + 1, MAD_GET, SMP_NODE_DESCRIPTION, 0));
	CHECK(!memcmp(data, node->description, sizeof(data)));
}

static void test_switch_info(void)
{
	uint32_t s = m.t.s1;
	struct net_switch *sw = net_node_of(net(), s)->sw;

	CHECK(asked(s, SMP_SWITCH_INFO, 0, SI_LINEAR_CAP) == NET_LINEAR_CAP);
	CHECK(prm_get(data, SI_MULTICAST_CAP) == NET_MULTICAST_CAP);
	CHECK(!prm_get(data, SI_RANDOM_CAP));
	sw->port_change = true;
	prm_set(data, SI_LINEAR_TOP, 77);
	prm_set(data, SI_LIFE_TIME, 18);
	prm_set(data, SI_STATE_CHANGE, 0);
	CHECK(!smp(s + 2, MAD_SET, SMP_SWITCH_INFO, 0));
	CHECK(prm_get(data, SI_STATE_CHANGE) && sw->port_change && sw->linear_top == 77);
	CHECK(asked(s, SMP_SWITCH_INFO, 0, SI_LIFE_TIME) == 18);
	CHECK(prm_get(data, SI_STATE_CHANGE));
	CHECK(!smp(s, MAD_SET, SMP_SWITCH_INFO, 0));
	CHECK(!prm_get(data, SI_STATE_CHANGE) && !sw->port_change);
	prm_set(data, SI_LINEAR_TOP, NET_LINEAR_CAP);
	CHECK(smp(s, MAD_SET, SMP_SWITCH_INFO, 0) == BAD && sw->linear_top == 77);
	CHECK(!asked(s, SMP_SWITCH_INFO, 0, SI_DEFAULT_PORT));
	prm_set(data, SI_DEFAULT_PORT, 9);
	CHECK(smp(s, MAD_SET, SMP_SWITCH_INFO, 0) == BAD);
}

/* What one Set has written is what Gets read, and its answer too. */
static void table_kept(uint32_t row, unsigned attribute, uint32_t modifier, unsigned bytes,
		       uint8_t mask)
{
	uint8_t want[MAD_ATTRIBUTE_BYTES] = {0};

	for (unsigned i = 0; i < bytes; i++)
		want[i] = (uint8_t)(i * 7 + modifier) & mask;
	memcpy(data, want, sizeof(data));
	CHECK(!smp(row, MAD_SET, attribute, modifier));
	CHECK(!memcmp(data, want, sizeof(data)));
	memset(data, 0, sizeof(data));
	CHECK(!smp(row, MAD_GET, attribute, modifier));
	CHECK(!memcmp(data, want, sizeof(data)));
}

static void test_tables(void)
{
	uint32_t s = m.t.s1;
	struct net_switch *sw = net_node_of(net(), s)->sw;
	uint64_t guid = net()->ports[m.t.h1].guid, map;

	map = asked(s, SMP_SL_TO_VL, 0x0302, PRM_FIELD(0, 64));
	sw->linear_top = NET_LINEAR_CAP - 1;
	table_kept(s + 1, SMP_LINEAR_TABLE, 2, 64, 0xff);
	CHECK(net_lft(sw, 128 + 3) == (3 * 7 + 2));
	table_kept(s + 1, SMP_MULTICAST_TABLE, 1, 64, 0xff);
	table_kept(s + 1, SMP_PKEY_TABLE, 3 << 16, 64, 0xff);
	table_kept(s, SMP_SL_TO_VL, 0x0203, 8, 0x77);
	table_kept(m.t.h1, SMP_SL_TO_VL, 0, 8, 0x77);
	table_kept(s, SMP_VL_ARBITRATION, 1 << 16 | 4, 64, 0x07);
	table_kept(m.t.h1, SMP_VL_ARBITRATION, 3 << 16 | 1, 64, 0x07);
	/* Others did not change. */
	CHECK(asked(s, SMP_SL_TO_VL, 0x0302, PRM_FIELD(0, 64)) == map);
	/* The port's own GUID stays. */
	CHECK(asked(m.t.h1, SMP_GUID_INFO, 0, PRM_FIELD(0, 64)) == guid);
	prm_set(data, PRM_FIELD(0, 64), 0xdead);
	prm_set(data, PRM_FIELD(64, 64), 0xbeef);
	CHECK(!smp(m.t.h1, MAD_SET, SMP_GUID_INFO, 0));
	CHECK(prm_get(data, PRM_FIELD(0, 64)) == guid);
	CHECK(asked(m.t.h1, SMP_GUID_INFO, 0, PRM_FIELD(64, 64)) == 0xbeef);
}

/* ---- Sets of PortInfo ---- */

static void test_lids(void)
{
	uint32_t h = m.t.h1, s = m.t.s1;

	CHECK(!port_info_with(h, 1, PI_LID, 7) && prm_get(data, PI_LID) == 7);
	CHECK(subnet_port_by_lid(&m.t.subnet, 7) == h);
	CHECK(!port_info_with(h, 1, PI_LMC, 0) && asked(h, SMP_PORT_INFO, 1, PI_LID) == 7);
	CHECK(port_info_with(h, 1, PI_LID, 0) == BAD);
	CHECK(port_info_with(h, 1, PI_LID, 0xc000) == BAD);
	CHECK(port_info_with(h, 1, PI_LMC, 2) == BAD); /* 7 is no multiple of 4 */
	CHECK(port_info_with(h, 1, PI_SM_LID, 0) == BAD);
	CHECK(asked(h, SMP_PORT_INFO, 1, PI_LID) == 7 && !prm_get(data, PI_LMC));
	CHECK(!port_info_with(s + 1, 0, PI_LID, 9));
	CHECK(subnet_port_by_lid(&m.t.subnet, 9) == s);
	/* External ports have none, whatever is written. */
	CHECK(!port_info_with(s + 1, 1, PI_LID, 10) && !prm_get(data, PI_LID));
	CHECK(subnet_port_by_lid(&m.t.subnet, 10) == SUBNET_NONE);
	/* A CA's port sets no other. */
	CHECK(!port_info_with(h, 1, PI_GID_PREFIX, 0xfec0000000000001ull));
	CHECK(asked(h, SMP_PORT_INFO, 1, PI_GID_PREFIX) == 0xfec0000000000001ull);
	CHECK(!port_info_with(h, 1, PI_SM_SL, 5) && asked(h, SMP_PORT_INFO, 1, PI_SM_SL) == 5);
}

static void test_plain(void)
{
	static const struct {
		struct prm_field field;
		uint64_t v;
		bool ca, zero, external;
	} t[] = {
		{PI_MKEY_LEASE, 15, true, true, false},
		{PI_SUBNET_TIMEOUT, 18, true, true, false},
		{PI_INIT_TYPE_REPLY, 3, true, true, false},
		{PI_VL_HIGH_LIMIT, 9, true, false, true},
		{PI_LOCAL_PHYS_ERRORS, 8, true, false, true},
		{PI_OVERRUN_ERRORS, 8, true, false, true},
		{PI_NEIGHBOR_MTU, 2, true, false, true},
		{PI_OPER_VLS, 2, true, false, true},
		{PI_HOQ_LIFE, 18, false, false, true},
		{PI_VL_STALL, 5, false, false, true},
		{PI_PARTITION_FLAGS, 12, false, false, true},
	};
	uint32_t h = m.t.h1, s = m.t.s1;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct prm_field f = t[i].field;
		uint64_t was_ca = asked(h, SMP_PORT_INFO, 1, f),
			 was = asked(s, SMP_PORT_INFO, 0, f);
		uint64_t was_external = asked(s, SMP_PORT_INFO, 2, f);

		CHECK(!port_info_with(h, 1, f, t[i].v));
		CHECK(asked(h, SMP_PORT_INFO, 1, f) == (t[i].ca ? t[i].v : was_ca));
		CHECK(!port_info_with(s, 0, f, t[i].v));
		CHECK(asked(s, SMP_PORT_INFO, 0, f) == (t[i].zero ? t[i].v : was));
		CHECK(!port_info_with(s, 2, f, t[i].v));
		CHECK(asked(s, SMP_PORT_INFO, 2, f) == (t[i].external ? t[i].v : was_external));
	}
	CHECK(port_info_with(h, 1, PI_NEIGHBOR_MTU, 0) == BAD);
	CHECK(port_info_with(h, 1, PI_NEIGHBOR_MTU, 6) == BAD);
	CHECK(port_info_with(h, 1, PI_OPER_VLS, 15) == BAD);
	CHECK(port_info_with(h, 1, PI_DOWN_DEFAULT, 3) == BAD);
	/* A bad field keeps the good ones out. */
	port_info(h, 1);
	prm_set(data, PI_SUBNET_TIMEOUT, 7);
	prm_set(data, PI_NEIGHBOR_MTU, 15);
	CHECK(smp(h, MAD_SET, SMP_PORT_INFO, 1) == BAD);
	CHECK(asked(h, SMP_PORT_INFO, 1, PI_SUBNET_TIMEOUT) == 18);
	/* Violations are reset by 0 alone. */
	net_info_set(net(), h, PI_PKEY_VIOLATIONS, 3);
	CHECK(!port_info_with(h, 1, PI_PKEY_VIOLATIONS, 1) &&
	      prm_get(data, PI_PKEY_VIOLATIONS) == 3);
	CHECK(!port_info_with(h, 1, PI_PKEY_VIOLATIONS, 0) && !prm_get(data, PI_PKEY_VIOLATIONS));
}

static uint64_t host_violations;

static uint64_t host_count(void *user, uint32_t row, enum port_counter c)
{
	(void)user;
	return row == m.t.h1 && c == PORT_PKEY_VIOLATIONS ? host_violations : 0;
}

/* What processes have counted since the last reset, and stop at the highest number. */
static void test_violations(void)
{
	uint32_t h = m.t.h1;

	net()->host_count = host_count;
	host_violations = 70000;
	CHECK(asked(h, SMP_PORT_INFO, 1, PI_PKEY_VIOLATIONS) == 0xffff);
	CHECK(!prm_get(data, PI_QKEY_VIOLATIONS));
	CHECK(!port_info_with(h, 1, PI_PKEY_VIOLATIONS, 1));
	CHECK(asked(h, SMP_PORT_INFO, 1, PI_PKEY_VIOLATIONS) == 0xffff);
	CHECK(!port_info_with(h, 1, PI_PKEY_VIOLATIONS, 0) && !prm_get(data, PI_PKEY_VIOLATIONS));
	host_violations += 5;
	CHECK(asked(h, SMP_PORT_INFO, 1, PI_PKEY_VIOLATIONS) == 5);
	net_info_set(net(), h, PI_PKEY_VIOLATIONS, 2);
	CHECK(asked(h, SMP_PORT_INFO, 1, PI_PKEY_VIOLATIONS) == 7);
	CHECK(!port_info_with(h, 1, PI_PKEY_VIOLATIONS, 0) && !prm_get(data, PI_PKEY_VIOLATIONS));
	CHECK(!asked(m.t.s1, SMP_PORT_INFO, 0, PI_PKEY_VIOLATIONS));
	net()->host_count = NULL;
	host_violations = 0;
	/* The tests that follow have no processes. */
	free(sma.violations);
	sma.violations = NULL;
}

static void test_enabled(void)
{
	uint32_t h = m.t.h1, width, speed;

	width = (uint32_t)asked(h, SMP_PORT_INFO, 1, PI_WIDTH_SUPPORTED);
	speed = (uint32_t)prm_get(data, PI_SPEED_SUPPORTED);
	CHECK(!port_info_with(h, 1, PI_WIDTH_ENABLED, 255));
	CHECK(prm_get(data, PI_WIDTH_ENABLED) == width);
	CHECK(!port_info_with(h, 1, PI_WIDTH_ENABLED, 0));
	CHECK(prm_get(data, PI_WIDTH_ENABLED) == width);
	CHECK(!port_info_with(h, 1, PI_WIDTH_ENABLED, 1) && prm_get(data, PI_WIDTH_ENABLED) == 1);
	CHECK(port_info_with(h, 1, PI_WIDTH_ENABLED, 0x40) == BAD);
	CHECK(!port_info_with(h, 1, PI_SPEED_ENABLED, 15));
	CHECK(prm_get(data, PI_SPEED_ENABLED) == speed);
	CHECK(!port_info_with(h, 1, PI_SPEED_ENABLED, 1) && prm_get(data, PI_SPEED_ENABLED) == 1);
	CHECK(port_info_with(h, 1, PI_SPEED_ENABLED, 8) == (speed & 8 ? OK : BAD));
	/* Extended ones are looked at if whoever asks knows of them. */
	net_info_set(net(), h, PI_EXT_SPEED_SUPPORTED, 3);
	CHECK(!port_info_with(h, 1, PI_EXT_SPEED_ENABLED, 4));
	CHECK(port_info_with(h, EXT | 1, PI_EXT_SPEED_ENABLED, 4) == BAD);
	CHECK(!port_info_with(h, EXT | 1, PI_EXT_SPEED_ENABLED, 2));
	CHECK(prm_get(data, PI_EXT_SPEED_ENABLED) == 2);
	CHECK(!port_info_with(h, EXT | 1, PI_EXT_SPEED_ENABLED, 31));
	CHECK(prm_get(data, PI_EXT_SPEED_ENABLED) == 3);
	CHECK(!port_info_with(h, EXT | 1, PI_EXT_SPEED_ENABLED, 30));
	CHECK(prm_get(data, PI_EXT_SPEED_ENABLED) == 30);
}

static void test_states(void)
{
	uint32_t h = m.t.h1, s = m.t.s1 + 1;

	CHECK(asked(h, SMP_PORT_INFO, 1, PI_STATE) == IB_PORT_INIT);
	CHECK(port_info_with(h, 1, PI_STATE, IB_PORT_ACTIVE) == BAD);
	CHECK(port_info_with(h, 1, PI_STATE, IB_PORT_INIT) == BAD);
	CHECK(port_info_with(h, 1, PI_STATE, 5) == BAD);
	CHECK(!port_info_with(h, 1, PI_STATE, IB_PORT_ARMED) &&
	      prm_get(data, PI_STATE) == IB_PORT_ARMED);
	CHECK(!port_info_with(s, 1, PI_STATE, IB_PORT_ARMED));
	CHECK(!port_info_with(h, 1, PI_STATE, IB_PORT_ACTIVE));
	CHECK(!port_info_with(s, 1, PI_STATE, IB_PORT_ACTIVE));
	CHECK(port_info_with(h, 1, PI_STATE, IB_PORT_ARMED) == BAD);
	CHECK(!port_info_with(h, 1, PI_STATE, IB_PORT_ACTIVE));
	CHECK(asked(s, SMP_PORT_INFO, 1, PI_STATE) == IB_PORT_ACTIVE);
	/* Down trains it again, at both ends. */
	CHECK(!port_info_with(s, 1, PI_STATE, IB_PORT_DOWN));
	CHECK(asked(h, SMP_PORT_INFO, 1, PI_STATE) == IB_PORT_INIT);
	CHECK(asked(s, SMP_PORT_INFO, 1, PI_STATE) == IB_PORT_INIT);
	CHECK(!port_info_with(s, 1, PI_PHYS_STATE, SMP_PHYS_DISABLED));
	CHECK(prm_get(data, PI_PHYS_STATE) == SMP_PHYS_DISABLED);
	CHECK(asked(h, SMP_PORT_INFO, 1, PI_STATE) == IB_PORT_DOWN);
	CHECK(!port_info_with(s, 1, PI_PHYS_STATE, SMP_PHYS_POLLING));
	CHECK(asked(h, SMP_PORT_INFO, 1, PI_STATE) == IB_PORT_INIT);
	CHECK(port_info_with(s, 1, PI_PHYS_STATE, SMP_PHYS_LINK_UP) == BAD);
	/* Port 0 is active and stays so. */
	CHECK(!port_info_with(s, 0, PI_STATE, IB_PORT_DOWN));
	CHECK(prm_get(data, PI_STATE) == IB_PORT_ACTIVE);
}

static void test_reregister(void)
{
	uint32_t h = m.t.h1, mask = net_info(net(), h, PI_CAP_MASK);
	uint32_t cap = mask & ~(CAP_IS_MCAST_PKEY_TRAP | CAP_IS_CLIENT_REREGISTER);

	net_info_set(net(), h, PI_CAP_MASK, cap);
	CHECK(!port_info_with(h, 1, PI_CLIENT_REREGISTER, 1));
	CHECK(prm_get(data, PI_CLIENT_REREGISTER) == 1);
	net_info_set(net(), h, PI_CAP_MASK, cap | CAP_IS_CLIENT_REREGISTER);
	CHECK(!port_info_with(h, 1, PI_CLIENT_REREGISTER, 1));
	CHECK(prm_get(data, PI_CLIENT_REREGISTER) == 1);
	CHECK(!asked(h, SMP_PORT_INFO, 1, PI_CLIENT_REREGISTER));
	/* So it is with what few ports have. */
	CHECK(!port_info_with(h, 1, PI_MCAST_PKEY_TRAP, 1) && !prm_get(data, PI_MCAST_PKEY_TRAP));
	net_info_set(net(), h, PI_CAP_MASK, cap | CAP_IS_MCAST_PKEY_TRAP);
	CHECK(!port_info_with(h, 1, PI_MCAST_PKEY_TRAP, 1));
	CHECK(asked(h, SMP_PORT_INFO, 1, PI_MCAST_PKEY_TRAP) == 1);
	net_info_set(net(), h, PI_CAP_MASK, mask);
}

static void test_mellanox(void)
{
	struct net_node *node = net_node_of(net(), m.t.h1);
	uint32_t was = node->vendor_id;

	node->vendor_id = 0x2c9;
	memset(data, 0xff, sizeof(data));
	CHECK(!smp(m.t.h1, MAD_GET, SMP_MELLANOX_EXTENDED_PORT_INFO, 1));
	for (unsigned i = 0; i < sizeof(data); i++)
		CHECK(!data[i]);
	CHECK(!smp(m.t.h1, MAD_SET, SMP_MELLANOX_EXTENDED_PORT_INFO, 1));
	CHECK(smp(m.t.h1, MAD_GET, SMP_MELLANOX_EXTENDED_PORT_INFO, 2) == BAD);
	node->vendor_id = was;
}

/* Whatever a Set answers is what the next Get reads, and a refused one changes nothing. */
static void test_random(void)
{
	struct rng rng = {0x5a5a1234};
	uint8_t before[MAD_ATTRIBUTE_BYTES], after[MAD_ATTRIBUTE_BYTES];
	unsigned taken = 0;

	for (unsigned i = 0; i < 20000; i++) {
		uint32_t row = (uint32_t)(rng_next(&rng) & 1 ? m.t.h1 : m.t.s1 + 1);
		uint32_t number = (uint32_t)rng_below(&rng, 9);

		if (row == m.t.h1)
			number = 1;
		port_info(row, number);
		for (unsigned k = (unsigned)rng_below(&rng, 4); k; k--)
			data[rng_below(&rng, sizeof(data))] ^= (uint8_t)(1u << rng_below(&rng, 8));
		prm_set(data, PI_MKEY, 0);
		memcpy(after, data, sizeof(after));
		memset(data, 0, sizeof(data));
		CHECK(!smp(row, MAD_GET, SMP_PORT_INFO, number));
		memcpy(before, data, sizeof(before));
		memcpy(data, after, sizeof(data));
		if (smp(row, MAD_SET, SMP_PORT_INFO, number)) {
			memcpy(after, before, sizeof(after));
		} else {
			prm_set(data, PI_CLIENT_REREGISTER, 0);
			memcpy(after, data, sizeof(after));
			taken++;
		}
		memset(data, 0, sizeof(data));
		CHECK(!smp(row, MAD_GET, SMP_PORT_INFO, number));
		CHECK_SAY(!memcmp(data, after, sizeof(data)), "step %u", i);
	}
	CHECK(taken > 1000 && taken < 19000);
}

int main(void)
{
	test_mad_open(&m);
	CHECK(!sma_open(&sma, &m.mad));
	for (uint32_t i = 0; i < net()->nnodes; i++)
		net()->nodes[i].vendor_id = 0;
	test_table();
	test_methods();
	test_node_info();
	test_switch_info();
	test_tables();
	test_lids();
	test_plain();
	test_violations();
	test_enabled();
	test_states();
	test_reregister();
	test_mellanox();
	test_random();
	sma_close(&sma);
	test_mad_close(&m);
	return 0;
}
