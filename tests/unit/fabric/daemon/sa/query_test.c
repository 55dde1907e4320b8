// SPDX-License-Identifier: BSD-2-Clause
/* The SA by MADs: what it answers to queries, changes and mistakes. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "check.h"
#include "fabric/daemon/sm/sm.h"
#include "mad_client.h"

#define SECOND_MS 1000u

struct test_sa {
	struct test_mad m;
	struct sm sm;
	struct mad_client client; /* at H2, LID 2 */
	uint8_t mad[MAD_BYTES];
	uint8_t *record;
};

static struct test_sa sa;

static const uint8_t *answer(void)
{
	return sa.client.answer + SA_AT_DATA;
}

static void sa_start(void)
{
	test_mad_open(&sa.m);
	CHECK(!sm_open(&sa.sm, &sa.m.mad, SM_BUILT_IN));
	mad_client_open(&sa.client, &sa.m, sa.m.t.h2, MAD_CLASS_SA, SA_CLASS_VERSION, 0);
	sa.record = sa.mad + SA_AT_DATA;
}

static void sa_end(void)
{
	mad_client_close(&sa.client);
	sm_close(&sa.sm);
	test_mad_close(&sa.m);
}

static void sa_new(unsigned attribute, uint64_t mask)
{
	memset(sa.mad, 0, sizeof(sa.mad));
	mad_put16(sa.mad, MAD_AT_ATTRIBUTE, attribute);
	mad_put64(sa.mad, SA_AT_MASK, mask);
}

/* The status of the answer. */
static unsigned sa_ask(unsigned method)
{
	uint32_t before = sa.client.answers;

	mad_client_send(&sa.client, 1, method, sa.mad);
	test_mad_run(&sa.m, 3 * SECOND_MS);
	CHECK(sa.client.answers == before + 1);
	CHECK(sa.client.answer[MAD_AT_METHOD] ==
	      (method == MAD_SET ? MAD_GET_RESP : method | MAD_RESPONSE));
	CHECK(!mad_get64(sa.client.answer, SA_AT_SM_KEY));
	return mad_get16(sa.client.answer, MAD_AT_STATUS);
}

static void put_gid(uint8_t *at, uint32_t row)
{
	union ib_gid gid;

	sa_port_gid(&sa.m.t.net, row, &gid);
	memcpy(at, &gid, sizeof(gid));
}

static bool same_gid(const uint8_t *at, uint32_t row)
{
	union ib_gid gid;

	sa_port_gid(&sa.m.t.net, row, &gid);
	return !memcmp(at, &gid, sizeof(gid));
}

/* How many records the table has that came. */
static uint32_t sa_records(void)
{
	uint32_t each = mad_get16(sa.client.answer, SA_AT_OFFSET) * 8u;

	CHECK((sa.client.length - SA_AT_DATA) % each == 0);
	return (sa.client.length - SA_AT_DATA) / each;
}

/* ---- queries ---- */

static void test_one_record(void)
{
	sa_new(SA_NODE_RECORD, 1);
	mad_put16(sa.record, 0, 3);
	CHECK(!sa_ask(MAD_GET));
	CHECK(mad_get16(answer(), 0) == 3 && answer()[6] == SMP_NODE_SWITCH);
	CHECK(!strcmp((const char *)answer() + 44, "S1"));
	CHECK(mad_get16(sa.client.answer, SA_AT_OFFSET) == 14);
	mad_put16(sa.record, 0, 99);
	CHECK(sa_ask(MAD_GET) == SA_NO_RECORDS);
	sa_new(SA_NODE_RECORD, 0);
	CHECK(sa_ask(MAD_GET) == SA_TOO_MANY);
	sa_new(SA_CLASS_PORT_INFO, 0);
	CHECK(!sa_ask(MAD_GET) && answer()[1] == SA_CLASS_VERSION);
}

static void test_tables(void)
{
	static const struct {
		unsigned attribute;
		uint32_t records;
	} all[] = {
		{SA_NODE_RECORD, 4},	    {SA_PORT_INFO_RECORD, 20},
		{SA_SWITCH_INFO_RECORD, 2}, {SA_LINEAR_TABLE_RECORD, 2},
		{SA_SM_INFO_RECORD, 1},	    {SA_LINK_RECORD, 6},
		{SA_PATH_RECORD, 16},	    {SA_MC_MEMBER_RECORD, 1},
		{SA_SERVICE_RECORD, 0},	    {SA_INFORM_INFO_RECORD, 0},
		{SA_GUID_INFO_RECORD, 4},   {SA_SL_TO_VL_RECORD, 2 + 2 * 81},
	};

	for (uint32_t i = 0; i < array_size(all); i++) {
		sa_new(all[i].attribute, 0);
		CHECK(!sa_ask(MAD_GET_TABLE));
		CHECK_SAY(sa_records() == all[i].records, "attribute 0x%x: %u", all[i].attribute,
			  sa_records());
	}
	/* For those only whom the SA trusts. */
	sa_new(SA_PKEY_TABLE_RECORD, 1);
	mad_put16(sa.record, 0, 2);
	CHECK(sa_ask(MAD_GET_TABLE) == SA_INVALID);
	mad_put64(sa.mad, SA_AT_SM_KEY, SA_SM_KEY);
	CHECK(!sa_ask(MAD_GET_TABLE));
	CHECK(sa_records() == SUBNET_IB_PKEYS / 32 &&
	      mad_get16(answer(), 8) == SUBNET_PKEY_DEFAULT);
}

static void test_port_info(void)
{
	/* Ports whose CapabilityMask has IsSM: the bits of the mask, not all of it. */
	sa_new(SA_PORT_INFO_RECORD, 1 << 7);
	mad_put32(sa.mad, MAD_AT_MODIFIER, 1u << 31);
	mad_put32(sa.record, 24, CAP_IS_SM);
	CHECK(!sa_ask(MAD_GET_TABLE) && sa_records() == 1 && mad_get16(answer(), 0) == 1);
	mad_put32(sa.mad, MAD_AT_MODIFIER, 0);
	CHECK(!sa_ask(MAD_GET_TABLE) && sa_records() == 0);
	/* One port of a switch. */
	sa_new(SA_PORT_INFO_RECORD, 3);
	mad_put16(sa.record, 0, 4);
	sa.record[2] = 8;
	CHECK(!sa_ask(MAD_GET) && answer()[2] == 8);
}

static void test_paths(void)
{
	sa_new(SA_PATH_RECORD, 1 << PR_COMP_DGID | 1 << PR_COMP_SGID);
	put_gid(sa.record + PR_AT_DGID, sa.m.t.h1);
	put_gid(sa.record + PR_AT_SGID, sa.m.t.h2);
	CHECK(!sa_ask(MAD_GET));
	CHECK(prm_get(answer(), PR_DLID) == 1 && prm_get(answer(), PR_SLID) == 2);
	CHECK(prm_get(answer(), PR_MTU_SEL) == SA_EXACTLY && prm_get(answer(), PR_MTU));
	CHECK(prm_get(answer(), PR_PKEY) == SUBNET_PKEY_DEFAULT);
	sa.record[PR_AT_DGID + 15] ^= 0xff;
	CHECK(sa_ask(MAD_GET) == SA_INVALID_GID);
	/* From one to all, itself included. */
	sa_new(SA_PATH_RECORD, 1 << PR_COMP_SGID);
	put_gid(sa.record + PR_AT_SGID, sa.m.t.h2);
	CHECK(!sa_ask(MAD_GET_TABLE) && sa_records() == 4);
	for (uint32_t i = 0; i < 4; i++)
		CHECK(same_gid(answer() + i * PR_BYTES + PR_AT_SGID, sa.m.t.h2));
	/* Faster than there is. */
	sa_new(SA_PATH_RECORD,
	       1 << PR_COMP_SLID | 1 << PR_COMP_DLID | 1 << PR_COMP_MTU_SEL | 1 << PR_COMP_MTU);
	prm_set(sa.record, PR_SLID, 2);
	prm_set(sa.record, PR_DLID, 1);
	prm_set(sa.record, PR_MTU_SEL, SA_GREATER);
	prm_set(sa.record, PR_MTU, IB_MTU_4096);
	CHECK(sa_ask(MAD_GET) == SA_NO_RECORDS);
	prm_set(sa.record, PR_MTU, 7);
	CHECK(sa_ask(MAD_GET) == SA_INVALID);
	/* A way that is cut is no path. */
	net_pull(&sa.m.t.net, sa.m.t.s1 + 8, true);
	sa_new(SA_PATH_RECORD, 1 << PR_COMP_SLID | 1 << PR_COMP_DLID);
	prm_set(sa.record, PR_SLID, 2);
	prm_set(sa.record, PR_DLID, 1);
	mad_client_close(&sa.client);
	mad_client_open(&sa.client, &sa.m, sa.m.t.h1, MAD_CLASS_SA, SA_CLASS_VERSION, 0);
	CHECK(sa_ask(MAD_GET) == SA_NO_RECORDS);
}

static void test_several_paths(void)
{
	const uint64_t mask = 1 << MPR_COMP_SGID_COUNT | 1 << MPR_COMP_DGID_COUNT;

	sa_new(SA_MULTI_PATH_RECORD, mask);
	prm_set(sa.record, MPR_SGID_COUNT, 1);
	prm_set(sa.record, MPR_DGID_COUNT, 2);
	put_gid(sa.record + MPR_AT_GIDS, sa.m.t.h2);
	put_gid(sa.record + MPR_AT_GIDS + 16, sa.m.t.h1);
	put_gid(sa.record + MPR_AT_GIDS + 32, sa.m.t.s1);
	CHECK(!sa_ask(MAD_GET_MULTI) && sa_records() == 2);
	CHECK(mad_get16(sa.client.answer, MAD_AT_ATTRIBUTE) == SA_PATH_RECORD);
	CHECK(prm_get(answer(), PR_DLID) == 1 && prm_get(answer() + PR_BYTES, PR_DLID) == 3);
	prm_set(sa.record, MPR_SGID_COUNT, 40);
	CHECK(sa_ask(MAD_GET_MULTI) == SA_INVALID);
	sa_new(SA_MULTI_PATH_RECORD, 0);
	CHECK(sa_ask(MAD_GET_MULTI) == SA_INSUFFICIENT);
}

static void test_mistakes(void)
{
	uint32_t before;

	sa_new(0x99, 0);
	CHECK(sa_ask(MAD_GET) == MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	sa_new(SA_NODE_RECORD, 0);
	CHECK(sa_ask(MAD_SET) == MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	CHECK(sa_ask(MAD_GET_MULTI) == MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	sa_new(SA_INFORM_INFO, 0);
	CHECK(sa_ask(MAD_GET) == MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	/* A wrong key hears nothing. */
	sa_new(SA_NODE_RECORD, 1);
	mad_put16(sa.record, 0, 1);
	mad_put64(sa.mad, SA_AT_SM_KEY, 0x1234);
	before = sa.client.answers;
	mad_client_send(&sa.client, 1, MAD_GET, sa.mad);
	test_mad_run(&sa.m, 3 * SECOND_MS);
	CHECK(sa.client.answers == before && sa.client.timeouts == 1);
	mad_put64(sa.mad, SA_AT_SM_KEY, SA_SM_KEY);
	CHECK(!sa_ask(MAD_GET));
}

/* A CA's port number is not looked at: its LID says which it is. */
static void test_port_numbers(void)
{
	sa_new(SA_VL_ARBITRATION_RECORD, 7);
	mad_put16(sa.record, 0, 2);
	sa.record[3] = 1;
	CHECK(!sa_ask(MAD_GET));
	mad_put16(sa.record, 0, 4);
	sa.record[2] = 77;
	CHECK(sa_ask(MAD_GET) == SA_NO_RECORDS);
	sa.record[2] = 8;
	CHECK(!sa_ask(MAD_GET) && answer()[2] == 8);
	sa_new(SA_SL_TO_VL_RECORD, 7);
	mad_put16(sa.record, 0, 2);
	sa.record[2] = 5;
	CHECK(!sa_ask(MAD_GET));
}

/* ---- groups ---- */

#define JOIN (1u << MCM_COMP_MGID | 1u << MCM_COMP_PORT_GID | 1u << MCM_COMP_JOIN_STATE)
#define CREATE                                                                     \
	(JOIN | 1u << MCM_COMP_QKEY | 1u << MCM_COMP_CLASS | 1u << MCM_COMP_PKEY | \
	 1u << MCM_COMP_FLOW | 1u << MCM_COMP_SL)

static void group_new(uint32_t mask, uint8_t last, uint32_t state)
{
	static const uint8_t mgid[16] = {0xff, 0x12, 0xa0, 0x1c, 0xfe, 0x80};

	sa_new(SA_MC_MEMBER_RECORD, mask);
	memcpy(sa.record, mgid, sizeof(mgid));
	sa.record[15] = last;
	put_gid(sa.record + MCM_AT_PORT_GID, sa.m.t.h2);
	prm_set(sa.record, MCM_PKEY, SUBNET_PKEY_DEFAULT);
	prm_set(sa.record, MCM_QKEY, 0x1234);
	prm_set(sa.record, MCM_JOIN_STATE, state);
}

static bool leads(uint32_t row, uint32_t mlid, uint32_t port)
{
	return net_mft(net_node_of(&sa.m.t.net, row)->sw, mlid, port);
}

static void test_groups(void)
{
	uint32_t mlid;

	group_new(JOIN, 1, SA_JOIN_FULL);
	CHECK(sa_ask(MAD_SET) == SA_INSUFFICIENT);
	group_new(CREATE, 1, SA_JOIN_NOT);
	CHECK(sa_ask(MAD_SET) == SA_INVALID);
	group_new(CREATE, 1, SA_JOIN_FULL);
	CHECK(!sa_ask(MAD_SET));
	mlid = (uint32_t)prm_get(answer(), MCM_MLID);
	CHECK(mlid > MAD_LID_MULTICAST && leads(sa.m.t.s2, mlid, 1));
	CHECK(!leads(sa.m.t.s2, mlid, 8));
	/* H1 joins by H2's request: the tree spans both switches. */
	group_new(JOIN, 1, SA_JOIN_NOT);
	put_gid(sa.record + MCM_AT_PORT_GID, sa.m.t.h1);
	CHECK(!sa_ask(MAD_SET) && prm_get(answer(), MCM_QKEY) == 0x1234);
	CHECK(leads(sa.m.t.s2, mlid, 8) && leads(sa.m.t.s1, mlid, 8) && leads(sa.m.t.s1, mlid, 1));
	sa_new(SA_MC_MEMBER_RECORD, 1 << MCM_COMP_MLID);
	prm_set(sa.record, MCM_MLID, mlid);
	CHECK(!sa_ask(MAD_GET_TABLE) && sa_records() == 1);
	mad_put64(sa.mad, SA_AT_SM_KEY, SA_SM_KEY);
	CHECK(!sa_ask(MAD_GET_TABLE) && sa_records() == 2);
	sa_new(SA_MULTICAST_TABLE_RECORD, 0);
	CHECK(!sa_ask(MAD_GET_TABLE) && sa_records() == 2);
	/* States add up, and go one by one. */
	group_new(JOIN, 1, SA_JOIN_SENDS);
	CHECK(!sa_ask(MAD_SET) &&
	      prm_get(answer(), MCM_JOIN_STATE) == (SA_JOIN_SENDS | SA_JOIN_FULL));
	group_new(JOIN, 1, SA_JOIN_NOT);
	CHECK(sa_ask(MAD_DELETE) == SA_INVALID);
	group_new(JOIN, 1, SA_JOIN_SENDS);
	CHECK(!sa_ask(MAD_DELETE) && prm_get(answer(), MCM_JOIN_STATE) == SA_JOIN_FULL);
	/* The last full member ends the group, though another is in it. */
	group_new(JOIN, 1, SA_JOIN_FULL);
	CHECK(!sa_ask(MAD_DELETE));
	CHECK(!leads(sa.m.t.s2, mlid, 1) && !leads(sa.m.t.s1, mlid, 1));
	group_new(JOIN, 1, SA_JOIN_NOT);
	CHECK(sa_ask(MAD_SET) != MAD_STATUS_OK);
}

static void test_group_names(void)
{
	/* Without a name it gets one. */
	group_new(CREATE, 0, SA_JOIN_FULL);
	memset(sa.record, 0, 16);
	CHECK(!sa_ask(MAD_SET) && answer()[0] == 0xff && mad_get16(answer(), 2) == 0xa01b);
	group_new(CREATE, 0, SA_JOIN_FULL);
	sa.record[0] = 0xfa;
	CHECK(sa_ask(MAD_SET) == SA_INVALID);
	group_new(CREATE, 0, SA_JOIN_FULL);
	sa.record[3] = 0x1b; /* the SA's own signature, link local */
	CHECK(sa_ask(MAD_SET) == SA_INVALID);
	/* More than the port can. */
	group_new(CREATE | 1u << MCM_COMP_MTU | 1u << MCM_COMP_MTU_SEL, 9, SA_JOIN_FULL);
	prm_set(sa.record, MCM_MTU_SEL, SA_GREATER);
	prm_set(sa.record, MCM_MTU, IB_MTU_4096);
	CHECK(sa_ask(MAD_SET) == SA_INVALID);
	/* A group of IPoIB must be as its broadcast group is. */
	group_new(CREATE, 9, SA_JOIN_FULL);
	mad_put32(sa.record, 0, 0xff12401b);
	mad_put16(sa.record, 4, SUBNET_PKEY_DEFAULT);
	memset(sa.record + 6, 0, 10);
	sa.record[15] = 1;
	CHECK(sa_ask(MAD_SET) == SA_INVALID);
	prm_set(sa.record, MCM_QKEY, 0x0b1b);
	CHECK(!sa_ask(MAD_SET));
}

/* ---- services ---- */

static void service_new(uint64_t mask, uint32_t id, uint32_t lease)
{
	sa_new(SA_SERVICE_RECORD, mask);
	prm_set(sa.record, SR_ID, id);
	put_gid(sa.record + SR_AT_GID, sa.m.t.h2);
	prm_set(sa.record, SR_LEASE, lease);
	memcpy(sa.record + SR_AT_NAME, "name", 4);
}

static void test_services(void)
{
	service_new(0x13, 7, 60);
	CHECK(!sa_ask(MAD_SET));
	service_new(0x07, 8, 0); /* for ever; by a GID without its prefix */
	prm_set(sa.record, SR_PKEY, SUBNET_PKEY_DEFAULT);
	memset(sa.record + SR_AT_GID, 0, 8);
	CHECK(!sa_ask(MAD_SET));
	CHECK(prm_get(answer(), SR_LEASE) == SR_LEASE_FOR_EVER);
	service_new(0x40, 0, 0); /* by name */
	CHECK(!sa_ask(MAD_GET_TABLE) && sa_records() == 2);
	service_new(0x01, 7, 0);
	CHECK(!sa_ask(MAD_GET));
	/* The same once more is an update.  Keys are not shown, but found by. */
	service_new(0x33, 7, 30);
	sa.record[SR_AT_KEY] = 9;
	CHECK(!sa_ask(MAD_SET) && !answer()[SR_AT_KEY]);
	service_new(0x01, 7, 0);
	CHECK(!sa_ask(MAD_GET) && !answer()[SR_AT_KEY]);
	service_new(0x21, 7, 0);
	sa.record[SR_AT_KEY] = 8;
	CHECK(sa_ask(MAD_GET) == SA_NO_RECORDS);
	sa.record[SR_AT_KEY] = 9;
	CHECK(!sa_ask(MAD_GET));
	test_mad_run(&sa.m, 15 * SECOND_MS);
	service_new(0x01, 7, 0);
	CHECK(!sa_ask(MAD_GET));
	test_mad_run(&sa.m, 15 * SECOND_MS);
	CHECK(sa_ask(MAD_GET) == SA_NO_RECORDS);
	service_new(0x03, 8, 0);
	memset(sa.record + SR_AT_GID, 0, 8);
	CHECK(!sa_ask(MAD_DELETE));
	CHECK(sa_ask(MAD_DELETE) == SA_NO_RECORDS);
	service_new(0x01, 8, 0);
	CHECK(sa_ask(MAD_GET) == SA_NO_RECORDS);
}

/* ---- reports ---- */

static void inform_new(uint32_t subscribe, uint32_t trap)
{
	sa_new(SA_INFORM_INFO, 0);
	prm_set(sa.record, II_LID_BEGIN, 0xffff);
	prm_set(sa.record, II_GENERIC, 1);
	prm_set(sa.record, II_SUBSCRIBE, subscribe);
	prm_set(sa.record, II_TYPE, 0xffff);
	prm_set(sa.record, II_TRAP, trap);
	prm_set(sa.record, II_PRODUCER, 0xffffff);
	prm_set(sa.record, II_QPN, 1);
}

static void test_reports(void)
{
	struct mad_client listener;
	uint32_t before;

	mad_client_open(&listener, &sa.m, sa.m.t.h2, MAD_CLASS_SA, SA_CLASS_VERSION,
			1ull << MAD_REPORT);
	inform_new(0, SA_TRAP_GROUP_CREATED);
	CHECK(sa_ask(MAD_SET) == SA_INVALID); /* there is no such subscription */
	inform_new(1, SA_TRAP_GROUP_CREATED);
	CHECK(!sa_ask(MAD_SET));
	sa_new(SA_INFORM_INFO_RECORD, 0);
	CHECK(!sa_ask(MAD_GET_TABLE) && sa_records() == 1 && same_gid(answer(), sa.m.t.h2));
	group_new(CREATE, 3, SA_JOIN_FULL);
	CHECK(!sa_ask(MAD_SET));
	CHECK(listener.requests > 0 && listener.answer[MAD_AT_METHOD] == MAD_REPORT);
	CHECK(prm_get(listener.answer + SA_AT_DATA, NOTICE_TRAP) == SA_TRAP_GROUP_CREATED);
	CHECK(!memcmp(listener.answer + SA_AT_DATA + 16, sa.record, 16));
	before = listener.requests;
	group_new(JOIN, 3, SA_JOIN_FULL);
	CHECK(!sa_ask(MAD_DELETE)); /* trap 67: not asked for */
	CHECK(listener.requests == before);
	inform_new(0, SA_TRAP_GROUP_CREATED);
	CHECK(!sa_ask(MAD_SET));
	group_new(CREATE, 3, SA_JOIN_FULL);
	CHECK(!sa_ask(MAD_SET) && listener.requests == before);
	/* Violations of keys are not for everybody. */
	inform_new(1, 257);
	CHECK(sa_ask(MAD_SET) == SA_INVALID);
	mad_put64(sa.mad, SA_AT_SM_KEY, SA_SM_KEY);
	CHECK(!sa_ask(MAD_SET));
	mad_client_close(&listener);
}

/* Told to a switch, whose port stays. */
static void test_ports_come_and_go(void)
{
	struct mad_client listener;

	mad_client_open(&listener, &sa.m, sa.m.t.s2, MAD_CLASS_SA, SA_CLASS_VERSION,
			1ull << MAD_REPORT);
	mad_client_close(&sa.client);
	mad_client_open(&sa.client, &sa.m, sa.m.t.s2, MAD_CLASS_SA, SA_CLASS_VERSION, 0);
	inform_new(1, 0xffff);
	CHECK(!sa_ask(MAD_SET));
	net_pull(&sa.m.t.net, sa.m.t.h2, true);
	test_mad_run(&sa.m, SECOND_MS);
	CHECK(prm_get(listener.answer + SA_AT_DATA, NOTICE_TRAP) == SA_TRAP_PORT_OUT);
	CHECK(same_gid(listener.answer + SA_AT_DATA + 16, sa.m.t.h2));
	net_pull(&sa.m.t.net, sa.m.t.h2, false);
	test_mad_run(&sa.m, SECOND_MS);
	CHECK(prm_get(listener.answer + SA_AT_DATA, NOTICE_TRAP) == SA_TRAP_PORT_IN);
	mad_client_close(&listener);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{"one record", test_one_record},
	{"tables of all attributes", test_tables},
	{"PortInfo by bits of masks", test_port_info},
	{"paths", test_paths},
	{"several paths", test_several_paths},
	{"mistakes", test_mistakes},
	{"numbers of ports", test_port_numbers},
	{"groups and their trees", test_groups},
	{"names of groups", test_group_names},
	{"services and their leases", test_services},
	{"reports", test_reports},
	{"ports come and go", test_ports_come_and_go},
};

int main(void)
{
	for (uint32_t i = 0; i < array_size(tests); i++) {
		sa_start();
		tests[i].run();
		sa_end();
		printf("%s\n", tests[i].name);
		fflush(stdout);
	}
	return 0;
}
