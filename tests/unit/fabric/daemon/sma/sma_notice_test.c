// SPDX-License-Identifier: BSD-2-Clause
/* Traps on their way to a subnet manager, and M_Keys that keep strangers out. */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "fabric/daemon/sma/sma.h"
#include "test_mad.h"

#define KEY    0x1122334455667788ull
#define SILENT 0xffffu

static struct test_mad m;
static struct sma sma;
static struct mad_agent manager; /* at H1 */
static struct mad_scope scope;

/* What the manager has got. */
static unsigned ntraps;
static uint8_t trap[MAD_BYTES];
static struct mad_message trap_message;

static struct net *net(void)
{
	return &m.t.net;
}

static void manager_receive(struct mad_agent *a, struct mad_message *message)
{
	(void)a;
	CHECK(message->length == MAD_BYTES);
	memcpy(trap, message->data, sizeof(trap));
	trap_message = *message;
	trap_message.data = trap;
	ntraps++;
}

static void manager_sent(struct mad_agent *a, const uint8_t note[64], const uint8_t *header,
			 int status)
{
	(void)a;
	(void)note;
	(void)header;
	CHECK(status != -ETIMEDOUT);
}

static const struct mad_agent_ops manager_ops = {manager_receive, manager_sent};

static void manager_open(void)
{
	struct mad_agent_attr attr = {
		.row = m.t.h1,
		.class = MAD_CLASS_SMP_LID,
		.class_version = 1,
		.methods = {1ull << MAD_TRAP},
	};

	CHECK(!mad_agent_register(&m.mad, &manager, &attr, &manager_ops, &scope));
}

static void manager_repress(void)
{
	uint8_t mad[MAD_BYTES];

	memcpy(mad, trap, sizeof(mad));
	mad[MAD_AT_METHOD] = MAD_TRAP_REPRESS;
	mad_put64(mad, MAD_AT_SMP_MKEY, KEY);
	CHECK(!mad_agent_reply(&manager, &trap_message, mad, sizeof(mad)));
	test_mad_run(&m, 0);
}

/* How many traps come within so long. */
static unsigned traps_in(uint32_t ms)
{
	ntraps = 0;
	test_mad_run(&m, ms);
	return ntraps;
}

static unsigned trap_number(void)
{
	return mad_get16(trap + MAD_SMP_DATA, 4);
}

static void link_of(uint32_t row, bool up)
{
	net_pull(net(), row, !up);
}

/* ---- traps ---- */

static void test_link_state(void)
{
	uint64_t tid;

	net_info_set(net(), m.t.s2, PI_SUBNET_TIMEOUT, 18); /* 1.07 s */
	CHECK(!traps_in(0));
	link_of(m.t.s2 + 1, false);
	CHECK(traps_in(0) == 1 && trap_number() == NOTICE_LINK_STATE);
	CHECK(trap[MAD_AT_METHOD] == MAD_TRAP && trap[MAD_AT_CLASS] == MAD_CLASS_SMP_LID);
	CHECK(mad_get16(trap, MAD_AT_ATTRIBUTE) == SMP_NOTICE);
	CHECK(trap[MAD_SMP_DATA] == 0x81); /* generic, urgent */
	CHECK(trap[MAD_SMP_DATA + 3] == SMP_NODE_SWITCH);
	CHECK(mad_get16(trap + MAD_SMP_DATA, 6) == 3);	/* issuer */
	CHECK(mad_get16(trap + MAD_SMP_DATA, 10) == 3); /* the switch */
	CHECK(trap_message.from.lid == 3 && trap_message.from.qpn == 0);
	tid = mad_get64(trap, MAD_AT_TID);
	/* Again, the same, each time later. */
	CHECK(traps_in(1200) == 1 && mad_get64(trap, MAD_AT_TID) == tid);
	CHECK(!traps_in(1000) && traps_in(1200) == 1);
	/* What happens meanwhile comes after this one. */
	link_of(m.t.s2 + 1, true);
	CHECK(!traps_in(0));
	ntraps = 0;
	manager_repress();
	CHECK(ntraps == 1 && mad_get64(trap, MAD_AT_TID) != tid);
	/* Of another trap: not heard. */
	tid = mad_get64(trap, MAD_AT_TID);
	mad_put64(trap, MAD_AT_TID, tid + 1);
	manager_repress();
	CHECK(traps_in(1200) == 1);
	manager_repress();
	CHECK(!traps_in(100000));
}

static void test_local_changes(void)
{
	uint32_t cap = CAP_IS_TRAP | CAP_IS_CAP_NOTICE | CAP_IS_OTHER_NOTICE;
	const uint8_t *details = trap + MAD_SMP_DATA + 10;

	net_info_set(net(), m.t.h2, PI_CAP_MASK, CAP_IS_TRAP);
	net_hold_issm(net(), m.t.h2, 1);
	CHECK(!traps_in(0)); /* it does not do that */
	net_info_set(net(), m.t.h2, PI_CAP_MASK, cap | CAP_IS_SM);
	net_hold_issm(net(), m.t.h2, -1);
	CHECK(traps_in(0) == 1 && trap_number() == NOTICE_LOCAL_CHANGES);
	CHECK(trap[MAD_SMP_DATA] == 0x84 && trap[MAD_SMP_DATA + 3] == SMP_NODE_CA);
	CHECK(mad_get16(details, 2) == 4 && !details[5] && !mad_get16(details, 10));
	CHECK(mad_get32(details, 6) == cap);
	/* The bit is there and gone again: what comes next tells how it is in the end. */
	net_hold_issm(net(), m.t.h2, 1);
	net_hold_issm(net(), m.t.h2, -1);
	ntraps = 0;
	manager_repress();
	CHECK(ntraps == 1 && mad_get32(details, 6) == cap);
	manager_repress();
	CHECK(!net_set_description(net(), m.t.h2, "another"));
	CHECK(traps_in(0) == 1 && details[5] == 1);
	CHECK(mad_get16(details, 10) == NOTICE_CHANGED_DESCRIPTION);
	/* Both the description and what comes after it are told of. */
	CHECK(!net_set_description(net(), m.t.h2, "a third"));
	net_hold_issm(net(), m.t.h2, 1);
	ntraps = 0;
	manager_repress();
	CHECK(ntraps == 1 && details[5] == 1 && mad_get32(details, 6) == (cap | CAP_IS_SM));
	CHECK(mad_get16(details, 10) == NOTICE_CHANGED_DESCRIPTION);
	manager_repress();
	/* It is not told of twice. */
	net_hold_issm(net(), m.t.h2, -1);
	CHECK(traps_in(0) == 1 && !details[5] && !mad_get16(details, 10));
	manager_repress();
	CHECK(!traps_in(100000));
	net_info_set(net(), m.t.h2, PI_CAP_MASK, CAP_IS_TRAP | CAP_IS_CAP_NOTICE);
	CHECK(!net_set_description(net(), m.t.h2, "as with ibsim") && traps_in(0) == 1);
	manager_repress();
}

/* Nobody to tell, or nothing to tell it from. */
static void test_no_way(void)
{
	uint32_t lid = net_info(net(), m.t.s2, PI_SM_LID);

	net_set_sm(net(), m.t.s2, 0, 0);
	link_of(m.t.s2 + 1, false);
	CHECK(!traps_in(100000));
	net_set_sm(net(), m.t.s2, lid, 0);
	CHECK(!traps_in(100000));
	link_of(m.t.s2 + 1, true);
	CHECK(traps_in(0) == 1);
	/* It is given up when the manager has gone. */
	net_set_sm(net(), m.t.s2, 0, 0);
	CHECK(!traps_in(100000));
	net_set_sm(net(), m.t.s2, lid, 0);
	CHECK(!traps_in(100000) && !m.loop.ntimers);
}

/* ---- M_Keys ---- */

static unsigned smp(uint32_t row, unsigned method, uint64_t key, uint8_t *data)
{
	struct mad_packet p = {.row = row, .arriving = true, .slid = 1};

	p.mad[MAD_AT_BASE_VERSION] = 1;
	p.mad[MAD_AT_CLASS] = MAD_CLASS_SMP_LID;
	p.mad[MAD_AT_CLASS_VERSION] = 1;
	p.mad[MAD_AT_METHOD] = (uint8_t)method;
	mad_put64(p.mad, MAD_AT_SMP_MKEY, key);
	mad_put16(p.mad, MAD_AT_ATTRIBUTE, SMP_PORT_INFO);
	memcpy(p.mad + MAD_SMP_DATA, data, MAD_ATTRIBUTE_BYTES);
	if (sma.agent.handle(&sma.agent, row, &p) == MAD_SILENT)
		return SILENT;
	memcpy(data, p.mad + MAD_SMP_DATA, MAD_ATTRIBUTE_BYTES);
	return mad_get16(p.mad, MAD_AT_STATUS);
}

static void set_key(uint64_t key, unsigned protect, unsigned lease)
{
	uint8_t data[MAD_ATTRIBUTE_BYTES] = {0};

	CHECK(!smp(m.t.h2, MAD_GET, KEY, data));
	prm_set(data, PI_STATE, 0);
	prm_set(data, PI_PHYS_STATE, 0);
	prm_set(data, PI_MKEY, key);
	prm_set(data, PI_MKEY_PROTECT, protect);
	prm_set(data, PI_MKEY_LEASE, lease);
	prm_set(data, PI_MKEY_VIOLATIONS, 0);
	CHECK(!smp(m.t.h2, MAD_SET, KEY, data));
}

static void test_protection(void)
{
	static const bool get[4] = {true, true, false, false};
	static const bool shown[4] = {true, false, false, false};
	uint8_t data[MAD_ATTRIBUTE_BYTES];

	for (unsigned protect = 0; protect < 4; protect++) {
		set_key(KEY, protect, 0);
		memset(data, 0, sizeof(data));
		CHECK((smp(m.t.h2, MAD_GET, 1, data) != SILENT) == get[protect]);
		CHECK((prm_get(data, PI_MKEY) == KEY) == shown[protect]);
		CHECK(net_info(net(), m.t.h2, PI_MKEY_VIOLATIONS) == !get[protect]);
		CHECK(smp(m.t.h2, MAD_SET, 1, data) == SILENT);
		CHECK(smp(m.t.h2, MAD_TRAP_REPRESS, 1, data) == SILENT);
		CHECK(net_info(net(), m.t.h2, PI_MKEY_VIOLATIONS) == 2u + !get[protect]);
		CHECK(!smp(m.t.h2, MAD_GET, KEY, data) && prm_get(data, PI_MKEY) == KEY);
	}
	set_key(0, 0, 0);
	CHECK(!smp(m.t.h2, MAD_GET, 5, data));
	/* Who sets the key reads it in the answer. */
	prm_set(data, PI_STATE, 0);
	prm_set(data, PI_PHYS_STATE, 0);
	prm_set(data, PI_MKEY, KEY);
	prm_set(data, PI_MKEY_PROTECT, 2);
	CHECK(!smp(m.t.h2, MAD_SET, 0, data) && prm_get(data, PI_MKEY) == KEY);
	set_key(0, 0, 0);
}

static void test_key_trap(void)
{
	const uint8_t *details = trap + MAD_SMP_DATA + 10;
	uint8_t data[MAD_ATTRIBUTE_BYTES] = {0};

	traps_in(0);
	manager_repress();
	manager_repress();
	CHECK(!traps_in(100000));
	set_key(KEY, 0, 0);
	CHECK(smp(m.t.h2, MAD_SET, 5, data) == SILENT);
	CHECK(traps_in(0) == 1 && trap_number() == NOTICE_BAD_MKEY);
	CHECK(trap[MAD_SMP_DATA] == 0x82);
	CHECK(mad_get16(details, 2) == 1 && details[6] == MAD_SET);
	CHECK(mad_get16(details, 8) == SMP_PORT_INFO && mad_get64(details, 14) == 5);
	CHECK(!details[23]);
	manager_repress();
	CHECK(!traps_in(100000));
	set_key(0, 0, 0);
}

static void test_lease(void)
{
	uint8_t data[MAD_ATTRIBUTE_BYTES] = {0};

	set_key(KEY, 3, 2);
	test_mad_run(&m, 10000);
	CHECK(net_info(net(), m.t.h2, PI_MKEY_PROTECT) == 3);
	/* It begins with a wrong key and ends with the right one. */
	CHECK(smp(m.t.h2, MAD_GET, 5, data) == SILENT);
	test_mad_run(&m, 1000);
	CHECK(!smp(m.t.h2, MAD_GET, KEY, data));
	test_mad_run(&m, 10000);
	CHECK(net_info(net(), m.t.h2, PI_MKEY_PROTECT) == 3);
	/* Others do not prolong it. */
	CHECK(smp(m.t.h2, MAD_GET, 5, data) == SILENT);
	test_mad_run(&m, 1500);
	CHECK(smp(m.t.h2, MAD_GET, 5, data) == SILENT);
	test_mad_run(&m, 1000);
	CHECK(!net_info(net(), m.t.h2, PI_MKEY_PROTECT));
	CHECK(!smp(m.t.h2, MAD_GET, 5, data) && prm_get(data, PI_MKEY) == KEY);
	set_key(0, 0, 0);
}

/* ---- P_Keys ---- */

#define PKEY 0x8123u

static void asker_receive(struct mad_agent *a, struct mad_message *message)
{
	(void)a, (void)message;
}

static void asker_sent(struct mad_agent *a, const uint8_t note[64], const uint8_t *header,
		       int status)
{
	(void)a, (void)note, (void)header, (void)status;
}

static const struct mad_agent_ops asker_ops = {asker_receive, asker_sent};

static uint32_t pkey_violations(uint32_t row)
{
	uint8_t data[MAD_ATTRIBUTE_BYTES] = {0};

	CHECK(!smp(row, MAD_GET, 0, data));
	return prm_get32(data, (struct prm_field)PI_PKEY_VIOLATIONS);
}

/* Links that other tests have taken down and put back. */
static void link_activate(void)
{
	for (enum ib_port_state state = IB_PORT_ARMED; state <= IB_PORT_ACTIVE; state++)
		for (uint32_t row = 0; row < net()->nports; row++)
			if (net_info(net(), row, PI_STATE) == state - 1)
				CHECK(!net_set_state(net(), row, state));
}

/* A MAD of a partition that the port is not in is lost, counted, and told of, with both ends of it. */
static void test_pkey(void)
{
	const uint8_t *details = trap + MAD_SMP_DATA + 10;
	uint8_t keys[64] = {0xff, 0xff, PKEY >> 8, PKEY & 0xff}, mad[MAD_BYTES] = {0};
	struct mad_agent_attr attr = {.row = m.t.h1, .qpn = 1};
	struct mad_send_attr send = {.mad = mad, .length = MAD_BYTES};
	struct mad_agent asker;

	link_activate();
	CHECK(!net_pkeys_set(net(), m.t.h1, 0, keys));
	CHECK(!mad_agent_register(&m.mad, &asker, &attr, &asker_ops, &scope));
	mad[MAD_AT_BASE_VERSION] = 1;
	mad[MAD_AT_CLASS] = MAD_CLASS_PERF;
	mad[MAD_AT_CLASS_VERSION] = 1;
	mad[MAD_AT_METHOD] = MAD_SEND;
	send.to = (struct mad_address){.qpn = 1, .lid = 4, .pkey_index = 0};
	CHECK(!mad_agent_send(&asker, &send) && !traps_in(0) && !pkey_violations(m.t.h2));
	send.to.pkey_index = 1;
	for (uint32_t i = 1; i < 4; i++) {
		ntraps = 0;
		CHECK(!mad_agent_send(&asker, &send));
		test_mad_run(&m, 0);
		CHECK(pkey_violations(m.t.h2) == i && ntraps == (i == 1));
	}
	CHECK(trap_number() == NOTICE_BAD_PKEY && trap[MAD_SMP_DATA] == 0x82);
	CHECK(mad_get16(details, 2) == 1 && mad_get16(details, 4) == 4);
	CHECK(mad_get32(details, 6) == PKEY && mad_get32(details, 10) == 1);
	CHECK(mad_get32(details, 14) == 1);
	ntraps = 0;
	manager_repress();
	CHECK(ntraps == 1); /* of the others */
	manager_repress();
	CHECK(!traps_in(100000) && !pkey_violations(m.t.h1));
	mad_agent_unregister(&asker);
}

int main(void)
{
	test_mad_open(&m);
	CHECK(!sma_open(&sma, &m.mad));
	test_net_raise(&m.t);
	for (uint32_t row = 0; row < net()->nports; row++)
		net_info_set(net(), row, PI_CAP_MASK, CAP_IS_TRAP);
	manager_open();
	test_link_state();
	test_local_changes();
	test_no_way();
	test_protection();
	test_key_trap();
	test_lease();
	test_pkey();
	sma_close(&sma);
	mad_agent_unregister(&manager);
	test_mad_close(&m);
	return 0;
}
