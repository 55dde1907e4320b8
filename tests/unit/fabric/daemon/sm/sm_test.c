// SPDX-License-Identifier: BSD-2-Clause
/* The built-in SM: what it makes of a subnet, how it answers, how it stands back and comes back. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "check.h"
#include "fabric/daemon/sm/sm.h"
#include "mad_client.h"

#define WALKS	   50u
#define WALK_STEPS 60u

struct test_sm {
	struct test_mad m;
	struct sm sm;
	struct mad_client client;
};

static void test_sm_open(struct test_sm *t, enum sm_mode mode)
{
	test_mad_open(&t->m);
	CHECK(!sm_open(&t->sm, &t->m.mad, mode));
}

static void test_sm_close(struct test_sm *t)
{
	sm_close(&t->sm);
	test_mad_close(&t->m);
}

static uint32_t state_of(const struct test_sm *t, uint32_t row)
{
	return net_info(&t->m.t.net, row, PI_STATE);
}

static uint32_t lid_of(const struct test_sm *t, uint32_t row)
{
	return net_info(&t->m.t.net, row, PI_LID);
}

static bool is_sm(const struct test_sm *t, uint32_t row)
{
	return net_info(&t->m.t.net, row, PI_CAP_MASK) & CAP_IS_SM;
}

/* Asks LID 1 for SMInfo.  Was there an answer, and was it the SM's? */
static bool sm_answers(struct test_sm *t)
{
	uint8_t mad[MAD_BYTES] = {0};
	struct mad_client *c = &t->client;
	uint32_t before = c->answers;

	mad_put16(mad, MAD_AT_ATTRIBUTE, SMP_SM_INFO);
	mad_client_send(c, 1, MAD_GET, mad);
	test_mad_run(&t->m, 2000);
	return c->answers == before + 1 && !mad_get16(c->answer, MAD_AT_STATUS);
}

static void test_start(void)
{
	struct test_sm t;

	test_sm_open(&t, SM_BUILT_IN);
	CHECK(lid_of(&t, t.m.t.h1) == 1 && lid_of(&t, t.m.t.h2) == 2);
	CHECK(lid_of(&t, t.m.t.s1) == 3 && lid_of(&t, t.m.t.s2) == 4);
	CHECK(state_of(&t, t.m.t.h1) == IB_PORT_ACTIVE && state_of(&t, t.m.t.h2) == IB_PORT_ACTIVE);
	CHECK(is_sm(&t, t.m.t.h1) && !is_sm(&t, t.m.t.h2));
	CHECK(net_info(&t.m.t.net, t.m.t.h2, PI_SM_LID) == 1);
	CHECK(!net_node_of(&t.m.t.net, t.m.t.s1)->sw->port_change);
	test_sm_close(&t);
}

static void test_external(void)
{
	struct test_sm t;

	test_sm_open(&t, SM_EXTERNAL);
	test_mad_run(&t.m, 5000);
	CHECK(state_of(&t, t.m.t.h1) == IB_PORT_INIT && !lid_of(&t, t.m.t.h1));
	CHECK(!is_sm(&t, t.m.t.h1));
	sm_program_began(&t.sm);
	sm_program_ended(&t.sm);
	test_mad_run(&t.m, 5000);
	CHECK(state_of(&t, t.m.t.h1) == IB_PORT_INIT && !is_sm(&t, t.m.t.h1));
	test_sm_close(&t);
}

static void test_info(void)
{
	struct test_sm t;
	uint8_t mad[MAD_BYTES] = {0};
	const uint8_t *data = t.client.answer + MAD_SMP_DATA;

	test_sm_open(&t, SM_BUILT_IN);
	mad_client_open(&t.client, &t.m, t.m.t.h2, MAD_CLASS_SMP_LID, 1, 0);
	CHECK(sm_answers(&t));
	CHECK(mad_get64(data, 0) == t.m.t.net.ports[t.m.t.h1].guid);
	CHECK(data[20] == SM_MASTER); /* priority 0 */
	/* Nobody takes the subnet from it by a Set. */
	mad_put16(mad, MAD_AT_ATTRIBUTE, SMP_SM_INFO);
	mad_put32(mad, MAD_AT_MODIFIER, 1);
	mad_client_send(&t.client, 1, MAD_SET, mad);
	test_mad_run(&t.m, 2000);
	CHECK(mad_get16(t.client.answer, MAD_AT_STATUS) == MAD_STATUS_BAD_VALUE);
	mad_client_close(&t.client);
	test_sm_close(&t);
}

static unsigned sm_is_told(struct test_sm *t, uint32_t modifier, enum sm_state sender)
{
	uint8_t mad[MAD_BYTES] = {0};

	mad_put16(mad, MAD_AT_ATTRIBUTE, SMP_SM_INFO);
	mad_put32(mad, MAD_AT_MODIFIER, modifier);
	mad[MAD_SMP_DATA + 20] = (uint8_t)sender;
	mad_client_send(&t->client, 1, MAD_SET, mad);
	test_mad_run(&t->m, 10);
	return mad_get16(t->client.answer, MAD_AT_STATUS);
}

/* In every state each of the five is admitted or refused as the protocol says. */
static void test_states(void)
{
	static const struct {
		enum sm_state state;
		uint32_t legal;
	} states[] = {
		{SM_NOT_ACTIVE, 1u << 4},
		{SM_STANDBY, 1u << 1 | 1u << 3 | 1u << 5},
		{SM_MASTER, 1u << 1 | 1u << 2 | 1u << 5},
	};
	struct test_sm t;

	test_sm_open(&t, SM_BUILT_IN);
	sm_negotiate(&t.sm, 5, NULL);
	mad_client_open(&t.client, &t.m, t.m.t.h2, MAD_CLASS_SMP_LID, 1, 0);
	for (uint32_t i = 0; i < array_size(states); i++)
		for (uint32_t modifier = 1; modifier < 8; modifier++) {
			bool legal = states[i].legal >> modifier & 1;

			t.sm.state = states[i].state;
			CHECK(!sm_is_told(&t, modifier, SM_MASTER) == legal);
			/* Who is no master has nothing to hand over. */
			t.sm.state = states[i].state;
			CHECK(!sm_is_told(&t, modifier, SM_STANDBY) == (legal && modifier != 1));
		}
	CHECK(sm_answers(&t) && t.client.answer[MAD_SMP_DATA + 20] >> 4 == 5);
	mad_client_close(&t.client);
	test_sm_close(&t);
}

/* Programs at other ports do not drive it away; nobody is there behind the bit, and so it goes on. */
static void test_stays(void)
{
	struct test_sm t;

	test_sm_open(&t, SM_BUILT_IN);
	CHECK(sm_minds(&t.sm, t.m.t.h2));
	sm_negotiate(&t.sm, 5, NULL);
	CHECK(!sm_minds(&t.sm, t.m.t.h2) && sm_minds(&t.sm, t.m.t.h1));
	net_hold_issm(&t.m.t.net, t.m.t.h2, 1);
	test_mad_run(&t.m, 10000);
	CHECK(is_sm(&t, t.m.t.h1) && t.sm.state == SM_MASTER);
	/* One that has left its own port to a program finds the other, and that it does not answer. */
	sm_program_began(&t.sm);
	CHECK(!is_sm(&t, t.m.t.h1));
	sm_program_ended(&t.sm);
	test_mad_run(&t.m, SM_TAKE_BACK_MS + 10);
	CHECK(is_sm(&t, t.m.t.h1) && t.sm.state == SM_STANDBY && !t.sm.master);
	test_mad_run(&t.m, 10000);
	CHECK(t.sm.state == SM_MASTER && t.sm.master);
	net_hold_issm(&t.m.t.net, t.m.t.h2, -1);
	test_sm_close(&t);
}

/* A trap is answered with its TID, data unchanged. */
static void test_trap(void)
{
	struct test_sm t;
	uint8_t mad[MAD_BYTES] = {0};

	test_sm_open(&t, SM_BUILT_IN);
	mad_client_open(&t.client, &t.m, t.m.t.h2, MAD_CLASS_SMP_LID, 1, 0);
	mad_put16(mad, MAD_AT_ATTRIBUTE, SMP_NOTICE);
	mad[MAD_SMP_DATA] = 0x84;
	mad[MAD_SMP_DATA + 5] = 144;
	mad_client_send(&t.client, 1, MAD_TRAP, mad);
	test_mad_run(&t.m, 2000);
	CHECK(t.client.answers == 1 && !t.client.timeouts);
	CHECK(t.client.answer[MAD_AT_METHOD] == MAD_TRAP_REPRESS);
	CHECK(t.client.answer[MAD_SMP_DATA + 5] == 144);
	mad_client_close(&t.client);
	test_sm_close(&t);
}

static void test_link(void)
{
	struct test_sm t;

	test_sm_open(&t, SM_BUILT_IN);
	net_pull(&t.m.t.net, t.m.t.h2, true);
	test_mad_run(&t.m, 0);
	CHECK(state_of(&t, t.m.t.h2) == IB_PORT_DOWN && lid_of(&t, t.m.t.h2) == 2);
	net_pull(&t.m.t.net, t.m.t.h2, false);
	CHECK(state_of(&t, t.m.t.h2) == IB_PORT_INIT);
	test_mad_run(&t.m, 0);
	CHECK(state_of(&t, t.m.t.h2) == IB_PORT_ACTIVE && lid_of(&t, t.m.t.h2) == 2);
	test_sm_close(&t);
}

/* The node that it is at is taken away: it goes on at the next one. */
static void test_home_removed(void)
{
	struct test_sm t;

	test_sm_open(&t, SM_BUILT_IN);
	net_remove(&t.m.t.net, t.m.t.net.ports[t.m.t.h1].node, true);
	test_mad_run(&t.m, 0);
	CHECK(is_sm(&t, t.m.t.h2) && net_info(&t.m.t.net, t.m.t.h2, PI_SM_LID) == 2);
	net_remove(&t.m.t.net, t.m.t.net.ports[t.m.t.h1].node, false);
	test_mad_run(&t.m, 0);
	CHECK(is_sm(&t, t.m.t.h1) && !is_sm(&t, t.m.t.h2));
	CHECK(state_of(&t, t.m.t.h1) == IB_PORT_ACTIVE);
	CHECK(net_info(&t.m.t.net, t.m.t.h2, PI_SM_LID) == 1);
	test_sm_close(&t);
}

static void test_yield(void)
{
	struct test_sm t;
	struct mad_client program;

	test_sm_open(&t, SM_BUILT_IN);
	mad_client_open(&t.client, &t.m, t.m.t.h2, MAD_CLASS_SMP_LID, 1, 0);
	sm_program_began(&t.sm);
	CHECK(!is_sm(&t, t.m.t.h1));
	/* A program may have all methods at the SM's port now. */
	mad_client_open(&program, &t.m, t.m.t.h1, MAD_CLASS_SMP_LID, 1, 1ull << MAD_GET);
	mad_client_close(&program);
	CHECK(!sm_answers(&t));
	/* Whatever becomes of links is the program's business. */
	net_pull(&t.m.t.net, t.m.t.h2, true);
	net_pull(&t.m.t.net, t.m.t.h2, false);
	test_mad_run(&t.m, SM_TAKE_BACK_MS * 3);
	CHECK(state_of(&t, t.m.t.h2) == IB_PORT_INIT);
	/* It gives LIDs of its own and ends. */
	CHECK(!net_set_lid(&t.m.t.net, t.m.t.h2, 40, 0));
	net_set_sm(&t.m.t.net, t.m.t.h2, 40, 0);
	sm_program_ended(&t.sm);
	test_mad_run(&t.m, SM_TAKE_BACK_MS / 2);
	CHECK(!is_sm(&t, t.m.t.h1));
	test_mad_run(&t.m, SM_TAKE_BACK_MS);
	CHECK(is_sm(&t, t.m.t.h1) && sm_answers(&t));
	CHECK(lid_of(&t, t.m.t.h2) == 40 && net_info(&t.m.t.net, t.m.t.h2, PI_SM_LID) == 1);
	CHECK(state_of(&t, t.m.t.h2) == IB_PORT_ACTIVE);
	mad_client_close(&t.client);
	test_sm_close(&t);
}

static uint32_t random_below(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 16) % below;
}

/* Programs come and go in any order, links too: we are the SM exactly if a time has passed without. */
static void walk(uint32_t seed)
{
	struct test_sm t;
	uint32_t programs = 0;
	bool master = true;

	test_sm_open(&t, SM_BUILT_IN);
	for (uint32_t i = 0; i < WALK_STEPS; i++) {
		switch (random_below(&seed, 5)) {
		case 0:
			sm_program_began(&t.sm);
			programs++;
			master = false;
			break;
		case 1:
			if (!programs)
				break;
			sm_program_ended(&t.sm);
			programs--;
			break;
		case 2:
			net_pull(&t.m.t.net, t.m.t.h2, random_below(&seed, 2));
			break;
		case 3:
			test_mad_run(&t.m, 0);
			break;
		case 4:
			test_mad_run(&t.m, SM_TAKE_BACK_MS + 2);
			master = !programs;
			break;
		}
		CHECK(is_sm(&t, t.m.t.h1) == master && t.sm.master == master);
	}
	test_sm_close(&t);
}

static void test_any_order(void)
{
	for (uint32_t seed = 0; seed < WALKS; seed++)
		walk(seed);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{"ports are active when it has opened", test_start},
	{"another's subnet is left alone", test_external},
	{"SMInfo", test_info},
	{"states of the protocol", test_states},
	{"with a priority it stays", test_stays},
	{"traps are repressed", test_trap},
	{"links come back", test_link},
	{"its node is taken away", test_home_removed},
	{"a program has the subnet, and gives it back", test_yield},
	{"programs come and go in any order", test_any_order},
};

int main(void)
{
	for (uint32_t i = 0; i < array_size(tests); i++) {
		tests[i].run();
		printf("%s\n", tests[i].name);
	}
	return 0;
}
