// SPDX-License-Identifier: BSD-2-Clause
/*
 * Packets of a message that travel as one, and each by itself: the same happens at the same time.  What happens is told
 * by the seed: messages of any length at once, links that lose and delay, cables and tables and partitions that change,
 * agents of all kinds that come and go, packets that say anything.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fabric/daemon/mad/impair.h"
#include "fabric/daemon/mad/rmpp_source.h"
#include "test_mad.h"

#define USERS	 8u
#define OPS	 60u
#define SEEDS	 CHECK_TIMES(400u)
#define RECORDS	 400000u
#define START_MS 1000u /* of both, so that timers have the same order */

struct user {
	struct mad_agent agent;
	struct mad_scope scope;
	bool there;
};

static struct test_mad m;
static struct user users[USERS];
static uint64_t *records, random_state;
static uint32_t nrecords;

/* ---- what happens ---- */

static void record(uint64_t what)
{
	CHECK(nrecords < RECORDS);
	records[nrecords++] = what;
}

static uint64_t hash_of(uint64_t hash, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3ull;
	return hash;
}

static uint32_t draw(uint32_t limit)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((random_state >> 33) % limit);
}

static uint64_t message_hash(const struct mad_message *msg)
{
	const struct rmpp_message *lent = msg->lent ? &msg->lent->message : NULL;
	uint64_t hash;

	if (!lent)
		return hash_of(1, msg->data, msg->length);
	CHECK(lent->length == msg->length);
	hash = hash_of(1, msg->data, lent->data_at);
	return hash_of(hash, lent->bytes + lent->data_at, msg->length - lent->data_at);
}

static uint8_t *message_of(uint32_t length, unsigned class, unsigned method, uint32_t tid)
{
	uint8_t *message = malloc(length < MAD_BYTES ? MAD_BYTES : length);

	CHECK(message);
	for (uint32_t i = 0; i < length; i++)
		message[i] = (uint8_t)(i * 7 + i / 251 + tid);
	message[MAD_AT_BASE_VERSION] = 1;
	message[MAD_AT_CLASS] = (uint8_t) class;
	message[MAD_AT_CLASS_VERSION] = class == MAD_CLASS_SA ? 2 : 1;
	message[MAD_AT_METHOD] = (uint8_t)method;
	mad_put64(message, MAD_AT_TID, tid);
	memset(message + MAD_AT_RMPP_VERSION, 0, 12);
	message[MAD_AT_RMPP_FLAGS] = MAD_RMPP_ACTIVE;
	memset(message + MAD_AT_OUI, 0, 3);
	return message;
}

/* A request that has come whole is answered by as many bytes as its length says. */
static void user_answer(struct mad_agent *a, const struct mad_message *msg)
{
	uint32_t length = 64 + msg->length * 7 % 40000;
	uint8_t *answer = message_of(length, msg->data[MAD_AT_CLASS],
				     msg->data[MAD_AT_METHOD] | MAD_RESPONSE, 0);

	memcpy(answer + MAD_AT_TID, msg->data + MAD_AT_TID, 8);
	record((uint64_t)mad_agent_reply(a, msg, answer, length, true));
	free(answer);
}

static void user_receive(struct mad_agent *a, struct mad_message *msg)
{
	struct user *u = container_of(a, struct user, agent);

	record((uint64_t)(u - users) << 32 | msg->length);
	record(m.loop.still_ns);
	record(message_hash(msg));
	record((uint64_t)msg->from.lid << 32 | msg->from.pkey_index << 16 | msg->from.path_bits);
	if (!mad_is_response(msg->data) && msg->length > MAD_BYTES && msg->length % 3)
		user_answer(a, msg);
}

static void user_sent(struct mad_agent *a, const uint8_t note[64], const uint8_t *header,
		      int status)
{
	struct user *u = container_of(a, struct user, agent);

	(void)note;
	record((uint64_t)(u - users) << 32 | (uint32_t)-status);
	record(m.loop.still_ns);
	record(mad_get64(header, MAD_AT_TID));
}

static const struct mad_agent_ops ops = {user_receive, user_sent, false};
static const struct mad_agent_ops borrowing = {user_receive, user_sent, true};

static void record_net(void)
{
	for (uint32_t row = 0; row < m.t.net.nports; row++)
		for (uint32_t c = 0; c < NET_COUNTERS; c++)
			if (m.t.net.ports[row].counters && m.t.net.ports[row].counters[c])
				record((uint64_t)(row * NET_COUNTERS + c) << 40 |
				       m.t.net.ports[row].counters[c]);
	record(m.mad.delivered);
	record(m.mad.dropped);
	record(m.mad.queued);
	record(m.mad.receive_bytes);
}

static void violated(void *user, const struct mad_packet *p)
{
	(void)user;
	record(hash_of(p->row, p->mad, MAD_BYTES));
}

/* ---- what is done ---- */

static const uint8_t classes[] = {MAD_CLASS_SA, MAD_CLASS_DEV_MGMT, 0x31};

static uint32_t row_draw(void)
{
	const uint32_t rows[] = {m.t.h1, m.t.h2, m.t.h1, m.t.h2, m.t.s1};

	return rows[draw(array_size(rows))];
}

static void user_close(struct user *u)
{
	if (u->there)
		mad_agent_unregister(&u->agent);
	u->there = false;
}

static void user_open(struct user *u, uint32_t row)
{
	uint8_t class = classes[draw(array_size(classes))];
	uint32_t how = draw(8);
	struct mad_agent_attr attr = {.row = row,
				      .qpn = 1,
				      .class = class,
				      .class_version = class == MAD_CLASS_SA ? 2 : 1,
				      .rmpp_version = how != 0,
				      .user_rmpp = how == 1,
				      .methods = {1ull << MAD_GET_TABLE}};

	user_close(u);
	memset(u, 0, sizeof(*u));
	u->there = !mad_agent_register(&m.mad, &u->agent, &attr, how & 2 ? &borrowing : &ops,
				       &u->scope);
	record(u->there);
}

static uint16_t lid_draw(void)
{
	static const uint16_t lids[] = {1, 4, 1, 4, 1, 4, 2, 9, 0xc001};

	return lids[draw(array_size(lids))];
}

static void do_send(void)
{
	struct user *u = &users[draw(USERS)];
	uint32_t length = 64 + draw(draw(2) ? 60000 : 400000), tid = 1 + draw(6);
	unsigned method = MAD_GET_TABLE | (draw(6) ? 0 : MAD_RESPONSE);
	uint8_t *message = message_of(length, u->agent.attr.class, method, tid);
	struct mad_send_attr s = {.to = {.lid = lid_draw(), .qpn = 1, .grh = !draw(8)},
				  .mad = message,
				  .length = length,
				  .timeout_ms = draw(3) * draw(500),
				  .retries = draw(4)};

	s.to.pkey_index = (uint16_t)(draw(12) == 0);
	if (u->there)
		record((uint64_t)mad_agent_send(&u->agent, &s));
	free(message);
}

/* A packet of RMPP that nobody has sent, with a number of somebody's. */
static void do_emit(void)
{
	struct user *u = &users[draw(USERS)];
	struct mad_packet *p = mad_packet_get(&m.mad);
	uint8_t *mad = message_of(MAD_BYTES, classes[draw(array_size(classes))],
				  MAD_GET_TABLE | (draw(2) ? MAD_RESPONSE : 0), 1 + draw(6));

	CHECK(p);
	memcpy(p->mad, mad, MAD_BYTES);
	free(mad);
	p->mad[MAD_AT_RMPP_VERSION] = draw(20) != 0;
	p->mad[MAD_AT_RMPP_TYPE] = (uint8_t)draw(6);
	p->mad[MAD_AT_RMPP_STATUS] = (uint8_t)(draw(2) ? 0 : draw(2) ? 1 : 118 + draw(12));
	mad_put32(p->mad, MAD_AT_RMPP_SEGMENT, draw(200));
	mad_put32(p->mad, MAD_AT_RMPP_PAYLOAD, draw(4) ? draw(400) : 100000);
	if (u->there)
		mad_put32(p->mad, MAD_AT_TID, u->agent.tid);
	p->row = row_draw();
	p->sqpn = p->dqpn = 1;
	p->slid = (uint16_t)(p->row == m.t.h1 ? 1 : p->row == m.t.h2 ? 4 : 2);
	p->dlid = lid_draw();
	p->pkey = 0xffff;
	mad_emit(&m.mad, p);
}

/* Where H1's LID, or H2's, leads nowhere: one direction works. */
static void do_table(void)
{
	bool second = draw(2);
	struct net_switch *sw = net_node_of(&m.t.net, second ? m.t.s2 : m.t.s1)->sw;
	uint8_t ports[64];

	net_lft_block_get(sw, 0, ports);
	ports[second ? 4 : 1] = draw(2) ? 1 : NET_DROP;
	net_lft_block_set(&m.t.net, sw, 0, ports);
}

static void do_partition(void)
{
	uint8_t block[64] = {0};

	mad_put16(block, 0, draw(2) ? 0xffff : 0x8005);
	CHECK(!net_pkeys_set(&m.t.net, draw(2) ? m.t.h1 : m.t.h2, 0, block));
}

static void do_impair(void)
{
	const struct impair_link how = {.loss_ppm = draw(3) * 20000u,
					.duplicate_ppm = draw(3) * 20000u,
					.delay_us = draw(3) * 700u,
					.jitter_us = draw(2) * 900u};

	if (!m.mad.impair)
		m.mad.impair = impair_open(draw(1000));
	CHECK(m.mad.impair && !impair_set(m.mad.impair, SUBNET_NONE, &how));
}

static void do_rounds(uint32_t n)
{
	while (n--)
		CHECK(loop_round(&m.loop, 0) >= 0);
}

/* While messages are under way. */
static void do_interrupt(void)
{
	do_send();
	do_send();
	do_rounds(1 + draw(3));
	if (draw(2))
		do_table();
	else
		net_pull(&m.t.net, m.t.s1 + 8, draw(2));
}

static void do_one(bool faults)
{
	uint32_t what = draw(20);

	if (what < 6)
		do_send();
	else if (what < 8)
		do_interrupt();
	else if (what < 13)
		do_rounds(draw(6));
	else if (what < 15)
		test_mad_run(&m, draw(4) ? draw(200) : draw(3000));
	else if (what == 15)
		do_emit();
	else if (what == 16)
		user_open(&users[draw(USERS)], row_draw());
	else if (what == 17)
		net_pull(&m.t.net, m.t.s1 + 8, draw(2));
	else if (what == 18)
		do_table();
	else if (faults && draw(2))
		do_impair();
	else
		do_partition();
}

/* All of it; how many records it has left. */
static uint32_t scenario(uint64_t seed, bool no_runs)
{
	nrecords = 0;
	random_state = seed * 0x9e3779b97f4a7c15ull + 1;
	test_mad_open(&m);
	m.loop.wheel_ms = START_MS;
	m.loop.still_ns = (START_MS + 1) * 1000000ull;
	test_net_raise(&m.t);
	m.mad.no_runs = no_runs;
	m.mad.pkey_violated = violated;
	for (uint32_t i = 0; i < USERS; i++)
		user_open(&users[i], row_draw());
	for (uint32_t i = 0; i < OPS; i++) {
		do_one(seed % 2);
		record(m.mad.queued);
		record(m.mad.delivered);
	}
	record_net();
	/* Of what is under way some comes to its end, and some is cut off. */
	test_mad_run(&m, seed % 3 * 30000);
	record_net();
	for (uint32_t i = 0; i < USERS; i++)
		user_close(&users[i]);
	CHECK(!m.mad.receive_bytes && !m.mad.lent_bytes && !m.mad.nsends);
	test_mad_close(&m);
	return nrecords;
}

static void test_seed(uint64_t seed)
{
	uint64_t *first = malloc(RECORDS * sizeof(*first)), *second = records;
	uint32_t n, same = 0;

	CHECK(first);
	records = first;
	n = scenario(seed, true);
	records = second;
	if (scenario(seed, false) < n)
		n = nrecords;
	while (same < n && first[same] == second[same])
		same++;
	if (same < n)
		fprintf(stderr, "seed %lu: record %u is %lx, and %lx in runs\n",
			(unsigned long)seed, same, (unsigned long)first[same],
			(unsigned long)second[same]);
	CHECK(same == n && n == nrecords);
	free(first);
}

int main(void)
{
	uint32_t messages = 0;

	records = malloc(RECORDS * sizeof(*records));
	CHECK(records);
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		test_seed(seed);
		messages += nrecords;
	}
	CHECK(messages > SEEDS * OPS * 3);
	free(records);
	return 0;
}
