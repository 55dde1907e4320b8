// SPDX-License-Identifier: BSD-2-Clause
/* Messages of several packets between agents, over a net that loses some, and their ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fabric/daemon/mad/rmpp.h"
#include "test_mad.h"

static struct test_mad m;

struct user {
	struct mad_agent agent;
	struct mad_scope scope;
	uint32_t received, sent, length;
	int status;
	uint8_t *message;
	struct mad_address from;
	const uint8_t *answer; /* what requests are answered with; NULL: nothing */
	uint32_t answer_length;
};

static void user_receive(struct mad_agent *a, struct mad_message *msg)
{
	struct user *u = container_of(a, struct user, agent);
	uint8_t *answer;

	free(u->message);
	u->message = msg->owned;
	msg->owned = NULL;
	u->length = msg->length;
	u->from = msg->from;
	u->received++;
	if (!u->answer)
		return;
	answer = malloc(u->answer_length);
	CHECK(answer);
	memcpy(answer, u->answer, u->answer_length);
	memcpy(answer + MAD_AT_TID, msg->data + MAD_AT_TID, 8);
	CHECK(!mad_agent_reply(a, msg, answer, u->answer_length));
	free(answer);
}

static void user_sent(struct mad_agent *a, const uint8_t note[64], const uint8_t *header,
		      int status)
{
	struct user *u = container_of(a, struct user, agent);

	(void)note, (void)header;
	u->status = status;
	u->sent++;
}

static const struct mad_agent_ops ops = {user_receive, user_sent};
static struct user asker, server;

static void user_open(struct user *u, uint32_t row, uint64_t method)
{
	const struct mad_agent_attr attr = {.row = row,
					    .qpn = 1,
					    .class = MAD_CLASS_SA,
					    .class_version = 2,
					    .rmpp_version = 1,
					    .methods = {1ull << method}};

	memset(u, 0, sizeof(*u));
	CHECK(!mad_agent_register(&m.mad, &u->agent, &attr, &ops, &u->scope));
}

static void open_net(void)
{
	test_mad_open(&m);
	test_net_raise(&m.t);
	user_open(&asker, m.t.h1, MAD_REPORT);
	user_open(&server, m.t.h2, MAD_GET_TABLE);
}

static void close_net(void)
{
	mad_agent_unregister(&asker.agent);
	mad_agent_unregister(&server.agent);
	free(asker.message);
	free(server.message);
	CHECK(!m.loop.ntimers && !m.mad.receive_bytes && !m.mad.nsends);
	test_mad_close(&m);
}

static uint8_t *message_of(uint32_t length, unsigned method, bool active)
{
	uint8_t *message = malloc(length);

	CHECK(message);
	for (uint32_t i = 0; i < length; i++)
		message[i] = (uint8_t)rand();
	message[MAD_AT_BASE_VERSION] = 1;
	message[MAD_AT_CLASS] = MAD_CLASS_SA;
	message[MAD_AT_CLASS_VERSION] = 2;
	message[MAD_AT_METHOD] = (uint8_t)method;
	memset(message + MAD_AT_RMPP_VERSION, 0, 12);
	message[MAD_AT_RMPP_FLAGS] = active ? MAD_RMPP_ACTIVE : 0;
	return message;
}

static int ask(const uint8_t *message, uint32_t length, uint32_t timeout_ms, uint32_t retries)
{
	const struct mad_send_attr s = {.to = {.lid = 4, .qpn = 1},
					.mad = message,
					.length = length,
					.timeout_ms = timeout_ms,
					.retries = retries};

	return mad_agent_send(&asker.agent, &s);
}

static void check_same(const struct user *u, const uint8_t *message, uint32_t length)
{
	CHECK(u->message && u->length == length);
	CHECK(!memcmp(u->message + 36, message + 36, length - 36));
}

/* A plain question, an answer of many packets. */
static void test_answer(uint32_t length)
{
	uint8_t *question = message_of(MAD_BYTES, MAD_GET_TABLE, false);
	uint8_t *answer = message_of(length, MAD_GET_TABLE | MAD_RESPONSE, true);

	open_net();
	server.answer = answer;
	server.answer_length = length;
	CHECK(!ask(question, MAD_BYTES, 1000, 0));
	test_mad_run(&m, 0);
	CHECK(asker.received == 1 && asker.sent == 1 && !asker.status);
	check_same(&asker, answer, length);
	CHECK(asker.from.lid == 4);
	CHECK(server.sent == 1 && !server.status);
	test_mad_run(&m, RMPP_LINGER_MS + 1000);
	CHECK(asker.received == 1 && server.sent == 1 && !m.loop.ntimers);
	free(question);
	free(answer);
	close_net();
}

/* Both of many packets. */
static void test_both(void)
{
	uint8_t *question = message_of(100000, MAD_GET_TABLE, true);
	uint8_t *answer = message_of(30000, MAD_GET_TABLE | MAD_RESPONSE, true);

	open_net();
	server.answer = answer;
	server.answer_length = 30000;
	CHECK(!ask(question, 100000, 500, 0));
	test_mad_run(&m, 0);
	check_same(&server, question, 100000);
	check_same(&asker, answer, 30000);
	CHECK(asker.sent == 1 && !asker.status && server.sent == 1 && !server.status);
	free(question);
	free(answer);
	close_net();
}

/* Nobody answers a question that has arrived: one timeout, without repeating it. */
static void test_no_answer(void)
{
	uint8_t *question = message_of(1000, MAD_GET_TABLE, true);

	open_net();
	CHECK(!ask(question, 1000, 500, 3));
	test_mad_run(&m, 499);
	CHECK(server.received == 1 && !asker.sent);
	test_mad_run(&m, 2);
	CHECK(server.received == 1 && asker.sent == 1 && asker.status == -ETIMEDOUT);
	/* The same number within 10 s is taken for a repetition, and all of it acknowledged. */
	CHECK(!ask(question, 1000, 0, 3));
	test_mad_run(&m, 0);
	CHECK(server.received == 1 && asker.sent == 2 && asker.status == -EPROTO);
	/* No answer is due: over with the last acknowledgement. */
	question[MAD_AT_TID + 7]++;
	CHECK(!ask(question, 1000, 0, 3));
	test_mad_run(&m, 0);
	CHECK(server.received == 2 && asker.sent == 3 && !asker.status);
	free(question);
	close_net();
}

/* Nobody acknowledges: so many repetitions of the first packet, then a timeout. */
static void test_no_acknowledgement(void)
{
	uint8_t *question = message_of(1000, MAD_GET_TABLE, true);

	open_net();
	mad_agent_unregister(&server.agent);
	CHECK(!ask(question, 1000, 100, 2));
	test_mad_run(&m, 299);
	CHECK(!asker.sent && net_total(&m.t.net, m.t.h1, NET_XMIT_PACKETS) == 3);
	test_mad_run(&m, 2);
	CHECK(asker.sent == 1 && asker.status == -ETIMEDOUT);
	/* Above 2 s, and with none at all, an acknowledgement has 2 s. */
	CHECK(!ask(question, 1000, 5000, 0));
	test_mad_run(&m, 2001);
	CHECK(asker.sent == 2 && asker.status == -ETIMEDOUT);
	CHECK(!ask(question, 1000, 0, 1));
	test_mad_run(&m, 3999);
	CHECK(asker.sent == 2);
	test_mad_run(&m, 2);
	CHECK(asker.sent == 3 && asker.status == -ETIMEDOUT);
	free(question);
	close_net();
}

/* The rest does not come: after 40 s the message is given up, and the sender told. */
static void test_total_time(void)
{
	uint8_t *question = message_of(100000, MAD_GET_TABLE, true);

	open_net();
	CHECK(!ask(question, 100000, 0, 0));
	/* Up to the first acknowledgement. */
	while (!m.mad.receive_bytes)
		CHECK(loop_round(&m.loop, 0) >= 0);
	net_pull(&m.t.net, m.t.h1, true);
	test_mad_run(&m, 3000);
	CHECK(asker.sent == 1 && asker.status == -ETIMEDOUT);
	test_mad_run(&m, 60000);
	CHECK(!server.received && !m.loop.ntimers);
	free(question);
	close_net();
}

/* The sending agent is gone in the middle; the receiving one. */
static void test_agent_ends(void)
{
	uint8_t *question = message_of(1 << 20, MAD_GET_TABLE, true);

	open_net();
	CHECK(!ask(question, 1 << 20, 500, 0));
	for (uint32_t i = 0; i < 3; i++)
		CHECK(loop_round(&m.loop, 0) >= 0);
	mad_agent_unregister(&asker.agent);
	CHECK(asker.sent == 1 && asker.status == -ECANCELED);
	test_mad_run(&m, 0);
	CHECK(!server.received && server.agent.recvs);
	mad_agent_unregister(&server.agent);
	CHECK(!m.mad.receive_bytes);
	free(question);
	close_net();
}

/* ---- with losses ---- */

/* Takes packets out of the queue, doubles some and lets others wait. */
static void queue_disturb(uint32_t loss, uint32_t doubling, uint32_t order)
{
	struct mad_packet *p = m.mad.queue, *next;
	struct mad_packet *late = NULL;

	m.mad.queue = NULL;
	m.mad.queue_end = &m.mad.queue;
	m.mad.queued = 0;
	for (; p; p = next) {
		next = p->next;
		if ((uint32_t)rand() % 100 < doubling) {
			struct mad_packet *twin = mad_packet_get(&m.mad);

			*twin = *p;
			twin->send = NULL;
			mad_emit(&m.mad, twin);
		}
		if ((uint32_t)rand() % 100 < loss && !p->send) {
			mad_packet_put(&m.mad, p);
		} else if ((uint32_t)rand() % 100 < order) {
			p->next = late;
			late = p;
		} else {
			mad_emit(&m.mad, p);
		}
	}
	for (; late; late = next) {
		next = late->next;
		mad_emit(&m.mad, late);
	}
}

static void test_losses(void)
{
	srand(3);
	for (uint32_t i = 0; i < 60; i++) {
		uint32_t length = 56 + (uint32_t)rand() % (i % 10 ? 20000 : 1 << 20);
		uint8_t *question = message_of(length, MAD_GET_TABLE, true);
		uint8_t *answer = message_of(length, MAD_GET_TABLE | MAD_RESPONSE, true);
		uint32_t loss = (uint32_t)rand() % 20;

		open_net();
		server.answer = answer;
		server.answer_length = length;
		CHECK(!ask(question, length, 2000, 40));
		while (!asker.sent || !server.sent) {
			queue_disturb(loss, 10, 10);
			CHECK(loop_round(&m.loop, 0) >= 0);
			if (!m.loop.work)
				test_mad_run(&m, 50);
		}
		check_same(&server, question, length);
		CHECK(server.received == 1);
		/* The answer may be given up if its question has had its time. */
		CHECK(asker.status == -ETIMEDOUT || !asker.status);
		if (asker.received)
			check_same(&asker, answer, length);
		free(question);
		free(answer);
		close_net();
	}
}

int main(void)
{
	static const uint32_t lengths[] = {56, 57, 255, 256, 257, 1000, 13056, 13057, 1 << 20};

	for (uint32_t i = 0; i < array_size(lengths); i++)
		test_answer(lengths[i]);
	test_both();
	test_no_answer();
	test_no_acknowledgement();
	test_total_time();
	test_agent_ends();
	test_losses();
	return 0;
}
