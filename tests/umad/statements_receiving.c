// SPDX-License-Identifier: BSD-2-Clause
/* Statements 14 to 31: what is read, and when. */
#include "checklist.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>

#define LONG_MESSAGE 5000u

static void s14_mads_are_read(void)
{
	int fd = port_file(1);
	struct letter question = letter_to_self(port_agent(fd, agent_of(CLASS_DIRECTED)), 0x51);
	size_t all = port_header(fd) + MAD_BYTES;
	uint8_t bytes[NEW_HEADER + MAD_BYTES];

	letter_is_sent(fd, &question);
	must(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, WAIT_MS) == 1, "poll");
	must(read(fd, bytes, all) == (ssize_t)all, "read: %s", strerror(errno));
	must(bytes[port_header(fd) + 3] == METHOD_GET_RESP, "method");
	must(bytes[port_header(fd) + 17] == ATTRIBUTE_NODE, "attribute");
}

static void s15_many_packets_are_one_read(void)
{
	struct pair p = pair_open(1);
	struct letter sent = letter_with_data(p.server_lid, 0x51, LONG_MESSAGE), got;

	sent.id = p.client_id;
	letter_is_sent(p.client, &sent);
	must(port_receive(p.server, &got, sent.bytes) == 0, "receive");
	must(letter_has_data(&got, LONG_MESSAGE), "%zu bytes", got.bytes);
	must(!port_waits(p.server), "there is more");
	pair_close(&p);
}

/* An answer of the port itself, with room for that much. */
static struct letter plain_answer(size_t room)
{
	int fd = port_file(1);
	struct letter question = letter_to_self(port_agent(fd, agent_of(CLASS_DIRECTED)), 0x51),
		      got;

	letter_is_sent(fd, &question);
	must(port_receive(fd, &got, room) == 0, "receive");
	must(got.length == port_header(fd) + MAD_BYTES, "length %u", got.length);
	return got;
}

static void s16_256_bytes_are_room_for_one(void)
{
	must(plain_answer(MAD_BYTES).mad[17] == ATTRIBUTE_NODE, "attribute");
}

static void s17_exactly_256_are_returned(void)
{
	must(plain_answer(MAD_BYTES).bytes == MAD_BYTES, "with room for as many");
	must(plain_answer((size_t)4 * MAD_BYTES).bytes == MAD_BYTES, "with room for more");
}

/* A long message waits at the server of the pair. */
static struct pair long_message_waits(void)
{
	struct pair p = pair_open(1);
	struct letter sent = letter_with_data(p.server_lid, 0x51, LONG_MESSAGE);

	sent.id = p.client_id;
	letter_is_sent(p.client, &sent);
	letter_free(&sent);
	return p;
}

static void s18_too_little_room_is_enospc(void)
{
	struct pair p = long_message_waits();
	struct letter got;

	must(port_receive(p.server, &got, MAD_BYTES) == -ENOSPC, "room for 256 bytes");
	must(got.mad[1] == CLASS_VENDOR && got.mad[3] == METHOD_SEND, "its first bytes");
	must(port_receive(p.server, &got, VENDOR_DATA + LONG_MESSAGE - 1) == -ENOSPC,
	     "room for all but one");
	must(port_receive(p.server, &got, MAD_BYTES - 1) == -EINVAL, "room for no MAD");
}

static void s19_the_length_is_told(void)
{
	struct pair p = long_message_waits();
	struct letter got;

	must(port_receive(p.server, &got, MAD_BYTES) == -ENOSPC, "room for 256 bytes");
	must(got.length == port_header(p.server) + VENDOR_DATA + LONG_MESSAGE, "length %u",
	     got.length);
}

static void s20_a_second_read_gets_it(void)
{
	struct pair p = long_message_waits();
	struct letter got;

	must(port_receive(p.server, &got, MAD_BYTES) == -ENOSPC, "room for 256 bytes");
	must(port_waits(p.server), "poll after ENOSPC");
	must(port_receive(p.server, &got, got.length - port_header(p.server)) == 0, "the second");
	must(letter_has_data(&got, LONG_MESSAGE), "%zu bytes", got.bytes);
	must(!port_waits(p.server), "it is there a third time");
}

static void s21_header_and_length_are_enough(void)
{
	struct pair p = long_message_waits();
	struct letter got;

	must(port_receive(p.server, &got, MAD_BYTES) == -ENOSPC, "room for 256 bytes");
	must(port_receive(p.server, &got, got.length) == 0, "the second");
	must(letter_has_data(&got, LONG_MESSAGE), "%zu bytes", got.bytes);
}

static void s22_the_first_read_may_get_it(void)
{
	struct pair p = long_message_waits();
	struct letter got;

	must(port_receive(p.server, &got, 65536) == 0, "the first");
	must(letter_has_data(&got, LONG_MESSAGE), "%zu bytes", got.bytes);
}

/* Port 1 writes to port 2 by that address; what port 2 reads. */
static struct letter letter_across(struct pair *p, bool grh)
{
	struct letter sent = letter_to(p->server_lid, CLASS_VENDOR, METHOD_SEND, 0, 0x51);

	sent.id = p->client_id;
	sent.sl = 3;
	if (grh) {
		sent.grh = true;
		gid_of(2, sent.gid);
		sent.hop_limit = 9;
		sent.traffic_class = 0x21;
		sent.flow_label = 0x12345;
	}
	letter_is_sent(p->client, &sent);
	letter_free(&sent);
	return letter_received(p->server);
}

static void s23_the_header_tells_of_the_sender(void)
{
	struct pair p = pair_open(0);
	struct letter got = letter_across(&p, false);

	must(got.id == p.server_id && got.lid != 0 && got.qpn == 1, "id %u, LID %u, QP %u", got.id,
	     got.lid, got.qpn);
}

static void s24_lid_is_the_senders(void)
{
	struct pair p = pair_open(0);
	struct letter got = letter_across(&p, false);

	must(got.lid == p.client_lid, "LID %u, not %u", got.lid, p.client_lid);
}

static void s25_so_are_the_other_fields(void)
{
	struct pair p = pair_open(0);
	struct letter got = letter_across(&p, false);
	uint8_t gid[16], zero[16] = {0};

	gid_of(1, gid);
	must(got.qpn == 1 && got.sl == 3 && got.path_bits == 0 && got.pkey_index == 0,
	     "QP %u, SL %u", got.qpn, got.sl);
	must(!got.grh && memcmp(got.gid, zero, 16) == 0 && !got.hop_limit && !got.flow_label,
	     "GRH");
	must(!got.timeout_ms && !got.retries, "times");
	got = letter_across(&p, true);
	must(got.grh && memcmp(got.gid, gid, 16) == 0, "the sender's GID");
	must(got.gid_index == 0 && got.traffic_class == 0x21 && got.flow_label == 0x12345,
	     "GID %u, class %#x, label %#x", got.gid_index, got.traffic_class, got.flow_label);
	must(got.hop_limit == 9, "hop limit %u", got.hop_limit);
}

/* What is read after a send that nobody answers. */
static struct letter unanswered(uint64_t tid)
{
	int fd = port_file(1);
	struct letter sent = letter_to(NO_SUCH_LID, CLASS_PERF, METHOD_GET, 1, tid), got;
	uint32_t id = port_agent(fd, agent_of(CLASS_PERF));

	sent.id = id;
	sent.timeout_ms = 10;
	sent.retries = 1;
	letter_is_sent(fd, &sent);
	got = letter_received(fd);
	must(!port_waits(fd), "more than one");
	return got;
}

static void s26_a_timeout_is_received(void)
{
	struct letter got = unanswered(0x1234567);

	must(got.bytes == 24, "%zu bytes", got.bytes);
	must(got.id == 0 && got.lid == NO_SUCH_LID && got.qpn == 1 && got.timeout_ms == 10 &&
		     got.retries == 1,
	     "header: LID %#x, QP %u", got.lid, got.qpn);
	must((uint32_t)letter_tid(&got) == 0x1234567 && got.mad[3] == METHOD_GET, "the request");
}

static void s27_its_status_is_etimedout(void)
{
	must(unanswered(0x51).status == ETIMEDOUT, "status");
}

static void s28_a_mads_status_is_0(void)
{
	must(plain_answer(MAD_BYTES).status == 0, "status");
}

struct later {
	int fd;
	struct letter question;
};

static void *question_later(void *argument)
{
	struct later *l = argument;

	letter_is_sent(l->fd, &l->question);
	return NULL;
}

/* Sends from another thread while this one waits. */
static pthread_t later_begin(struct later *l)
{
	pthread_t thread;

	l->fd = port_file(1);
	l->question = letter_to_self(port_agent(l->fd, agent_of(CLASS_DIRECTED)), 0x51);
	must(pthread_create(&thread, NULL, question_later, l) == 0, "thread");
	return thread;
}

static void s29_poll_waits(void)
{
	struct later l;
	pthread_t thread = later_begin(&l);
	struct pollfd p = {.fd = l.fd, .events = POLLIN};

	must(poll(&p, 1, WAIT_MS) == 1 && p.revents & POLLIN, "poll: %#x", (unsigned)p.revents);
	pthread_join(thread, NULL);
	letter_received(l.fd);
}

static void s30_select_waits(void)
{
	struct later l;
	pthread_t thread = later_begin(&l);
	struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(l.fd, &set);
	must(select(l.fd + 1, &set, NULL, NULL, &limit) == 1 && FD_ISSET(l.fd, &set), "select");
	pthread_join(thread, NULL);
	letter_received(l.fd);
}

static bool select_readable(int fd)
{
	struct timeval now = {0};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &now) == 1;
}

static void s31_neither_while_nothing_waits(void)
{
	int fd = port_file(1);
	struct letter question;
	uint8_t bytes[NEW_HEADER + MAD_BYTES];

	must(!port_waits(fd) && !select_readable(fd), "before an agent");
	question = letter_to_self(port_agent(fd, agent_of(CLASS_DIRECTED)), 0x51);
	must(!port_waits(fd) && !select_readable(fd), "before a question");
	must(read(fd, bytes, sizeof(bytes)) == -1 && errno == EAGAIN, "read: %s", strerror(errno));
	letter_is_sent(fd, &question);
	letter_received(fd);
	must(!port_waits(fd) && !select_readable(fd), "after the answer");
}

const struct statement statements_of_receiving[] = {
	{14, s14_mads_are_read},
	{15, s15_many_packets_are_one_read},
	{16, s16_256_bytes_are_room_for_one},
	{17, s17_exactly_256_are_returned},
	{18, s18_too_little_room_is_enospc},
	{19, s19_the_length_is_told},
	{20, s20_a_second_read_gets_it},
	{21, s21_header_and_length_are_enough},
	{22, s22_the_first_read_may_get_it},
	{23, s23_the_header_tells_of_the_sender},
	{24, s24_lid_is_the_senders},
	{25, s25_so_are_the_other_fields},
	{26, s26_a_timeout_is_received},
	{27, s27_its_status_is_etimedout},
	{28, s28_a_mads_status_is_0},
	{29, s29_poll_waits},
	{30, s30_select_waits},
	{31, s31_neither_while_nothing_waits},
	{0, NULL},
};
