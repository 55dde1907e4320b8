// SPDX-License-Identifier: BSD-2-Clause
/* Statements 32 to 43: what is written, and transaction IDs. */
#include "checklist.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/ib_user_mad.h>
#include <string.h>
#include <unistd.h>

/* A question of our own port as write() takes it.  How many bytes it has. */
static size_t question_bytes(int fd, uint32_t id, uint8_t bytes[NEW_HEADER + MAD_BYTES])
{
	struct letter question = letter_to_self(id, 0x51);
	struct ib_user_mad_hdr_old *h = (struct ib_user_mad_hdr_old *)bytes;

	memset(bytes, 0, NEW_HEADER + MAD_BYTES);
	h->id = id;
	h->timeout_ms = WAIT_MS;
	h->lid = htons(question.lid);
	memcpy(bytes + port_header(fd), question.mad, MAD_BYTES);
	letter_free(&question);
	return port_header(fd) + MAD_BYTES;
}

static void s32_mads_are_written(void)
{
	int fd = port_file(1);
	uint8_t bytes[NEW_HEADER + MAD_BYTES];
	size_t n = question_bytes(fd, port_agent(fd, agent_of(CLASS_DIRECTED)), bytes);

	must(write(fd, bytes, n) == (ssize_t)n, "%s", strerror(errno));
	must(letter_received(fd).mad[3] == METHOD_GET_RESP, "the answer");
}

static void s33_id_picks_the_agent(void)
{
	int fd = port_file(1);
	uint32_t first = port_agent(fd, agent_of(CLASS_DIRECTED));
	uint32_t second = port_agent(fd, agent_of(CLASS_DIRECTED));
	struct letter question = letter_to_self(second, 0x51), from_second, from_first;

	letter_is_sent(fd, &question);
	from_second = letter_received(fd);
	question.id = first;
	letter_is_sent(fd, &question);
	from_first = letter_received(fd);
	must(from_second.id == second && from_first.id == first, "answers to %u and %u",
	     from_second.id, from_first.id);
	must(letter_tid(&from_first) >> 32 != letter_tid(&from_second) >> 32,
	     "their transaction IDs");
}

static void s34_lid_is_the_destination(void)
{
	struct pair p = pair_open(0);
	struct letter l = letter_to(p.server_lid, CLASS_VENDOR, METHOD_SEND, 0x77, 0x51), got;

	l.id = p.client_id;
	letter_is_sent(p.client, &l);
	got = letter_received(p.server);
	must(got.lid == p.client_lid && got.mad[17] == 0x77, "from LID %u", got.lid);
	/* There is nothing at the LID whose bytes are the other way round. */
	l.lid = htons(p.server_lid);
	l.timeout_ms = 10;
	letter_is_sent(p.client, &l);
	must(letter_received(p.client).status == ETIMEDOUT, "bytes the other way round");
}

static void s35_the_other_fields_count(void)
{
	struct pair p = pair_open(0);
	struct letter l = letter_to(p.server_lid, CLASS_VENDOR, METHOD_SEND, 0, 0x51), got;
	uint8_t gid[16];

	l.id = p.client_id;
	l.sl = 7;
	letter_is_sent(p.client, &l);
	must(letter_received(p.server).sl == 7, "service level");
	l.grh = true;
	gid_of(2, l.gid);
	gid_of(1, gid);
	letter_is_sent(p.client, &l);
	got = letter_received(p.server);
	must(got.grh && memcmp(got.gid, gid, sizeof(gid)) == 0, "global route");
	l.gid_index = 255;
	must(port_send(p.client, &l) == -EINVAL, "an index past the table of GIDs");
	l.grh = false;
	l.gid_index = 0;
	l.qpn = 0; /* where a vendor's class is not taken */
	l.timeout_ms = 10;
	letter_is_sent(p.client, &l);
	must(letter_received(p.client).status == ETIMEDOUT, "QP 0");
}

static void s36_any_length_is_sent(void)
{
	static const size_t lengths[] = {1, 100, 216, 217, 432, 433, 13999, 65600, 1u << 20};
	struct pair p = pair_open(1);

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct letter sent = letter_with_data(p.server_lid, 0x51 + i, lengths[i]), got;

		sent.id = p.client_id;
		letter_is_sent(p.client, &sent);
		must(port_receive(p.server, &got, lengths[i] + MAD_BYTES) == 0, "%zu", lengths[i]);
		must(letter_has_data(&got, lengths[i]), "%zu: %zu bytes", lengths[i], got.bytes);
		letter_free(&sent);
		letter_free(&got);
	}
}

static void s37_the_count_is_returned(void)
{
	int fd = port_file(1);
	uint8_t bytes[NEW_HEADER + MAD_BYTES];
	size_t n = question_bytes(fd, port_agent(fd, agent_of(CLASS_DIRECTED)), bytes);

	must(write(fd, bytes, n) == (ssize_t)n, "%s", strerror(errno));
	letter_received(fd);
	/* What is missing at the end is zero: a directed route of no hops needs none of it. */
	bytes[port_header(fd) + 15]++;
	must(write(fd, bytes, n - 64) == (ssize_t)n - 64, "a shorter one: %s", strerror(errno));
	must(letter_received(fd).mad[3] == METHOD_GET_RESP, "the answer");
}

static void write_fails(int fd, const void *bytes, size_t n, int wanted, const char *what)
{
	errno = 0;
	must(write(fd, bytes, n) == -1 && errno == wanted, "%s: %s", what, strerror(errno));
}

static void s38_else_errno_says_why(void)
{
	int fd = port_file(1);
	uint8_t bytes[NEW_HEADER + MAD_BYTES];
	size_t n = question_bytes(fd, port_agent(fd, agent_of(CLASS_DIRECTED)), bytes);

	write_fails(fd, bytes, port_header(fd) + 35, EINVAL, "too short");
	write_fails(fd, NULL, n, EFAULT, "no message");
	bytes[0] = 32;
	write_fails(fd, bytes, n, EINVAL, "id 32");
	bytes[0] = 0;
	bytes[30] = 16;
	write_fails(fd, bytes, n, EINVAL, "service level 16");
	must(!port_waits(fd), "something was sent");
}

#define TID_OF_OURS 0xfedcba9812345678ull

/* What is asked and what the server and, answered, the client see. */
static void tid_travels(struct letter *at_server, struct letter *at_client)
{
	struct pair p = pair_open(0);
	struct letter l = letter_to(p.server_lid, CLASS_VENDOR, METHOD_GET, 0, TID_OF_OURS);

	l.id = p.client_id;
	l.timeout_ms = WAIT_MS;
	letter_is_sent(p.client, &l);
	*at_server = letter_received(p.server);
	pair_answer(&p, at_server);
	*at_client = letter_received(p.client);
	must(at_client->status == 0, "status %u", at_client->status);
}

static void s39_the_low_half_is_the_callers(void)
{
	int fd = port_file(1);
	uint32_t id = port_agent(fd, agent_of(CLASS_DIRECTED));

	for (unsigned i = 0; i < 32; i++) {
		struct letter question = letter_to_self(id, 1ull << i), answer;

		letter_is_sent(fd, &question);
		answer = letter_received(fd);
		must((uint32_t)letter_tid(&answer) == 1u << i, "bit %u", i);
	}
}

static void s40_it_travels_unchanged(void)
{
	struct letter at_server, at_client;

	tid_travels(&at_server, &at_client);
	must((uint32_t)letter_tid(&at_server) == (uint32_t)TID_OF_OURS, "at the server");
	must((uint32_t)letter_tid(&at_client) == (uint32_t)TID_OF_OURS, "in the answer");
}

static void s41_it_pairs_questions_and_answers(void)
{
	struct pair p = pair_open(0);
	struct letter questions[4];

	for (unsigned i = 0; i < 4; i++) {
		struct letter l = letter_to(p.server_lid, CLASS_VENDOR, METHOD_GET,
					    (uint16_t)(0x70 + i), 0x100 + i);

		l.id = p.client_id;
		l.timeout_ms = WAIT_MS;
		letter_is_sent(p.client, &l);
		questions[i] = letter_received(p.server);
	}
	for (unsigned i = 4; i-- > 0;) {
		struct letter answer;

		pair_answer(&p, &questions[i]);
		answer = letter_received(p.client);
		must((uint32_t)letter_tid(&answer) == 0x100 + i && answer.mad[17] == 0x70 + i,
		     "answer %u", i);
	}
}

static void s42_the_high_half_is_the_layers(void)
{
	struct letter at_server, at_client;

	tid_travels(&at_server, &at_client);
	must(letter_tid(&at_server) == letter_tid(&at_client), "on the way and in the answer");
	must(letter_tid(&at_server) >> 56 == 0 && letter_tid(&at_server) >> 32 != 0, "%#llx",
	     (unsigned long long)letter_tid(&at_server));
}

static void s43_it_is_overwritten(void)
{
	struct letter at_server, at_client;

	tid_travels(&at_server, &at_client);
	must(letter_tid(&at_server) >> 32 != TID_OF_OURS >> 32, "the caller's is still there");
}

const struct statement statements_of_sending[] = {
	{32, s32_mads_are_written},
	{33, s33_id_picks_the_agent},
	{34, s34_lid_is_the_destination},
	{35, s35_the_other_fields_count},
	{36, s36_any_length_is_sent},
	{37, s37_the_count_is_returned},
	{38, s38_else_errno_says_why},
	{39, s39_the_low_half_is_the_callers},
	{40, s40_it_travels_unchanged},
	{41, s41_it_pairs_questions_and_answers},
	{42, s42_the_high_half_is_the_layers},
	{43, s43_it_is_overwritten},
	{0, NULL},
};
