// SPDX-License-Identifier: BSD-2-Clause
/*
 * The daemon among strangers who talk nonsense, are slow, or use up what it has.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "check.h"
#include "test_daemon.h"

static void test_malformed(void)
{
	struct rng rng = {0x5eed};
	struct fabric_client *c;
	struct msg m = {0};
	struct client_told t;
	int fds[MSG_MAX_FDS];
	int sock;

	c = test_client_open(&t);
	for (int i = 0; i < 2000; i++) {
		uint8_t junk[sizeof(struct msg) + 64];
		size_t n = 1 + rng_below(&rng, sizeof(junk));

		for (size_t k = 0; k < sizeof(junk); k++)
			junk[k] = (uint8_t)rng_next(&rng);
		/* Half of them get past the first check. */
		if (i & 1) {
			msg_prepare(&m, (enum msg_type)rng_below(&rng, MSG_STAY), MSG_REQUEST, 7,
				    0);
			m.head.length += (uint32_t)rng_below(&rng, 3);
			memcpy(junk, &m.head, sizeof(m.head));
			n = m.head.length + (rng_below(&rng, 2) ? 0 : 8);
		}
		sock = stranger_connect();
		CHECK(send(sock, junk, n, MSG_NOSIGNAL) == (ssize_t)n);
		if (i & 1)
			close(sock);
		else
			stranger_is_cut(sock);
	}
	/* Another version is told so. */
	sock = stranger_connect();
	msg_prepare(&m, MSG_LEASE, MSG_REQUEST, 1, 0);
	m.head.version++;
	CHECK(send(sock, &m, m.head.length, 0) > 0);
	CHECK(msg_recv(sock, &m, fds, 1u << MSG_REPLY, 0) == 0 && m.head.status == -EPROTO);
	stranger_is_cut(sock);
	/* The others have not noticed. */
	CHECK(t.lost == 0 && fabric_number_chunk(c, 0) > 0);
	fabric_client_close(c);
	test_daemon_await_end();
}

#define FULL_DAEMON 64

/* The daemon takes in as many as it can and tells the next one that there is no room. */
static int fill_daemon(int *idle)
{
	const struct timeval limit = {.tv_sec = TEST_DAEMON_WAIT_MS / 1000};

	for (int n = 0; n < FULL_DAEMON; n++) {
		struct msg m = {0};
		int ret;

		idle[n] = stranger_connect();
		CHECK(!setsockopt(idle[n], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
		ret = stranger_call(idle[n], &m, MSG_LEASE);
		if (!ret)
			continue;
		CHECK(ret == -EMFILE);
		stranger_is_cut(idle[n]);
		return n;
	}
	CHECK(!"the daemon has a limit");
	return 0;
}

/* More than fits into the socket of one who does not read. */
static void tell_much(int sock, uint32_t row)
{
	for (uint32_t i = 0; i < 600; i++) {
		struct msg m = {.set_port = {row, i & 1 ? IB_PORT_ACTIVE : IB_PORT_DOWN}};

		CHECK(stranger_call(sock, &m, MSG_SET_PORT) == 0);
	}
}

/*
 * The daemon without a free descriptor: newcomers are told so, and one that is slow to read gets
 * its descriptors later like all else.
 */
static void test_full_daemon(void)
{
	int idle[FULL_DAEMON], fds[MSG_MAX_FDS], slow, peer, n, ret;
	struct fabric_client *c;
	uint32_t rows[SLOT_PORTS];
	uint16_t slow_slot, slot;
	struct rlimit saved;
	struct client_told t;
	struct msg m;

	c = test_client_open(&t);
	CHECK(fabric_host_ports(c, rows, SLOT_PORTS) == 2);
	slow = stranger_hello("", &slow_slot);
	peer = stranger_hello("host2", &slot);
	test_limit_descriptors(test_daemon_pid(), FULL_DAEMON, &saved);
	n = fill_daemon(idle);
	CHECK(n > 1);
	tell_much(idle[0], rows[0]);
	/* Room for the channel's memory, not for a second name of it. */
	close(idle[--n]);
	do {
		ret = stranger_channel(peer, slow_slot);
	} while (ret == -EMFILE);
	CHECK(ret == 0);
	do {
		CHECK(msg_recv(slow, &m, fds, 1u << MSG_NOTE, 0) == 0);
		msg_close_fds(fds);
	} while (m.head.type != MSG_CHANNEL);
	CHECK(m.channel.peer == slot);
	CHECK(fabric_number_chunk(c, 0) > 0 && t.lost == 0);
	while (n)
		close(idle[--n]);
	close(slow);
	close(peer);
	fabric_client_close(c);
	test_daemon_await_end();
}

/* One that is stopped acknowledges no ends of its peers; that must not use up the slots. */
static void test_slots_of_the_dead(void)
{
	uint16_t stopped_slot, slot;
	struct fabric_client *c;
	struct client_told t;
	int stopped;

	c = test_client_open(&t);
	stopped = stranger_hello("", &stopped_slot);
	for (uint32_t i = 0; i < REGISTRY_SLOTS + 10; i++) {
		int sock = stranger_hello("", &slot);
		int ret = stranger_channel(sock, stopped_slot);

		CHECK(ret == 0 || i > REGISTRY_SLOTS / 2);
		close(sock);
	}
	stranger_is_cut(stopped);
	CHECK(t.lost == 0 && fabric_number_chunk(c, 0) > 0);
	fabric_client_close(c);
	test_daemon_await_end();
}

#define DESCRIPTION "sys/class/infiniband/mlx5_0/node_desc"

static void description_expect(const char *want)
{
	struct msg m = {.attr = {"host1", DESCRIPTION}};
	int sock = stranger_connect();

	CHECK(stranger_call(sock, &m, MSG_ATTR) == 0);
	CHECK(m.attr_reply.length == strlen(want) &&
	      !memcmp(m.attr_reply.text, want, m.attr_reply.length));
	close(sock);
}

/* Each record is a description, wherever the stream stands and however soon it ends after that. */
static void test_description(void)
{
	struct msg m = {.attr = {"host1", DESCRIPTION}},
		   wrong = {.attr = {"host1", DESCRIPTION "2"}};
	struct client_told t;
	struct fabric_client *c = test_client_open(&t);
	int fds[MSG_MAX_FDS], sock = stranger_connect();
	char longest[80], text[80];
	ssize_t n;

	CHECK(stranger_call(sock, &wrong, MSG_DESCRIBE) == -ENOENT);
	for (unsigned i = 0; i < 100; i++) {
		m = (struct msg){.attr = {"host1", DESCRIPTION}};
		msg_prepare(&m, MSG_DESCRIBE, MSG_REQUEST, i + 1, 0);
		CHECK(!msg_send(sock, &m, NULL, 0, 0));
		CHECK(!msg_recv(sock, &m, fds, 1u << MSG_REPLY, 0) && !m.head.status);
		n = snprintf(text, sizeof(text), "number %u", i);
		CHECK(send(fds[0], "nothing", 7, 0) == 7 && !send(fds[0], "", 0, 0));
		CHECK(send(fds[0], text, (size_t)n, 0) == n);
		if (i & 1) { /* what it was before, and no more */
			char read_text[80];

			CHECK(recv(fds[0], read_text, sizeof(read_text), 0) > 0);
			CHECK(recv(fds[0], read_text, sizeof(read_text), 0) == 0);
		}
		if (i == 99) {
			memset(longest, 'x', sizeof(longest));
			CHECK(send(fds[0], longest, sizeof(longest), 0) == sizeof(longest));
		}
		close(fds[0]);
		snprintf(text, sizeof(text), "number %u\n", i);
		if (i < 99)
			description_expect(text);
	}
	memcpy(longest + 64, "\n", 2);
	description_expect(longest);
	close(sock);
	fabric_client_close(c);
	test_daemon_await_end();
}

/* Many rows in one reply: the same as row by row, and nothing beyond the last. */
static void test_sent(void)
{
	struct msg many = {.index.index = 0};
	struct client_told t;
	struct fabric_client *c = test_client_open(&t);
	int sock = stranger_connect();
	uint32_t row = 0;

	CHECK(stranger_call(sock, &many, MSG_SENT) == 0);
	for (; row < FABRIC_SENT_ROWS; row++) {
		struct msg one = {.index.index = row};

		if (stranger_call(sock, &one, MSG_COUNTERS))
			break;
		CHECK(many.sent_reply.bytes[row] == 4 * one.counters_reply.total[PORT_XMIT_DATA]);
	}
	for (uint32_t i = row; i < FABRIC_SENT_ROWS; i++)
		CHECK(!many.sent_reply.bytes[i]);
	many = (struct msg){.index.index = 1u << 24};
	CHECK(stranger_call(sock, &many, MSG_SENT) == -ENOENT);
	close(sock);
	fabric_client_close(c);
	test_daemon_await_end();
}

int main(int argc, char **argv)
{
	test_daemon_begin(argc, argv);
	test_description();
	test_sent();
	test_malformed();
	test_full_daemon();
	test_slots_of_the_dead();
	test_daemon_end();
	return 0;
}
