// SPDX-License-Identifier: BSD-2-Clause
/*
 * Trace events: what the records of well-behaved programs become, and that no record, however it
 * lies, makes a file that is not JSON or in which something begins and does not end.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tool/capture.h"
#include "tool/trace_events.h"

static struct view view;
static struct trace_events *events;
static struct traced_program *program;
static FILE *out;
static char *text;
static size_t bytes;
static uint64_t now = 1000;

/* Of capture.c, which this test leaves out. */
void capture_port_text(struct view *v, uint32_t row, char name[CAPTURE_PORT_TEXT])
{
	(void)v;
	snprintf(name, CAPTURE_PORT_TEXT, "port %u", row);
}

static void begin(void)
{
	const struct msg_capture_ring ring = {.pid = 1, .slot = 0};

	out = open_memstream(&text, &bytes);
	CHECK(out);
	events = trace_events_open(out, &view, now);
	CHECK(events);
	program = trace_events_program(events, &ring);
	CHECK(program);
}

/* ---- JSON, as far as it is written ---- */

static const char *json_value(const char *s);

static const char *json_text(const char *s)
{
	CHECK(*s++ == '"');
	for (; *s != '"'; s++) {
		CHECK((unsigned char)*s >= 0x20);
		if (*s == '\\')
			CHECK(*++s);
	}
	return s + 1;
}

static const char *blanks(const char *s)
{
	return s + strspn(s, " \n");
}

static const char *json_members(const char *s, char end, bool keys)
{
	s = blanks(s);
	if (*s == end)
		return s + 1;
	for (;; s = blanks(s + 1)) {
		if (keys) {
			s = blanks(json_text(s));
			CHECK(*s++ == ':');
		}
		s = blanks(json_value(blanks(s)));
		if (*s == end)
			return s + 1;
		CHECK(*s == ',');
	}
}

static const char *json_value(const char *s)
{
	size_t n;

	if (*s == '{')
		return json_members(s + 1, '}', true);
	if (*s == '[')
		return json_members(s + 1, ']', false);
	if (*s == '"')
		return json_text(s);
	n = strspn(s, "0123456789.");
	CHECK_SAY(n && (s[0] != '0' || n == 1 || s[1] == '.'), "%.40s", s);
	return s + n;
}

static unsigned count(const char *what)
{
	unsigned n = 0;

	for (const char *s = text; (s = strstr(s, what)); s++)
		n++;
	return n;
}

/* Ends the file and checks it; what was written stays in 'text'. */
static struct trace_counts end(void)
{
	struct trace_counts c;

	trace_events_end(events);
	c = trace_events_counts(events);
	CHECK(!fflush(out));
	CHECK(*blanks(json_value(text)) == '\0');
	CHECK(count("\"ph\": \"b\"") == count("\"ph\": \"e\"") &&
	      count("\"ph\": \"b\"") == c.sends + c.receives);
	CHECK(count("\"ph\": \"s\"") == count("\"ph\": \"f\""));
	trace_events_free(events);
	CHECK(!fclose(out));
	return c;
}

/* ---- records ---- */

static struct capture_head *record_of(const char *line, size_t n)
{
	struct capture_head *head = calloc(1, sizeof(*head) + n + 1);

	CHECK(head);
	*head = (struct capture_head){
		.ns = now++, .row = SUBNET_NONE, .kind = CAPTURE_TRACE, .bytes = (uint32_t)n};
	memcpy(head + 1, line, n);
	return head;
}

static bool tell_bytes(const char *line, size_t n)
{
	struct capture_head *head = record_of(line, n);
	uint64_t room[TRACE_EVENT_BYTES / 8];
	uint32_t took = trace_events_take(events, head, (uint32_t)(sizeof(*head) + n), room);

	CHECK(took <= TRACE_EVENT_BYTES);
	if (took)
		trace_events_write(events, program, head, room, took);
	free(head);
	return took;
}

static void tell(const char *line)
{
	CHECK(tell_bytes(line, strlen(line)));
}

static void queue_begins(void)
{
	tell("qp.state qpn=0x400 from=RESET to=INIT why=modify");
}

/* Posts, requests with and without a completion, polls. */
static void requests_have_their_ids(void)
{
	struct trace_counts c;

	begin();
	queue_begins();
	tell("post.send qpn=0x400 wr_id=0xa1");
	tell("post.send qpn=0x400 wr_id=0xa2");
	tell("wqe.taken qpn=0x400 wqe=0 opcode=SEND bytes=5");
	tell("wqe.taken qpn=0x400 wqe=1 opcode=SEND bytes=6");
	tell("wqe.done qpn=0x400 wqe=0 status=SUCCESS");
	tell("cqe.written cqn=0x80 qpn=0x400 wqe=1 queue=SQ opcode=SEND status=SUCCESS");
	tell("post.recv qpn=0x400 wr_id=0xb1");
	tell("cqe.written cqn=0x80 qpn=0x400 wqe=0 queue=RQ opcode=RECV status=SUCCESS");
	c = end();
	CHECK(c.sends == 2 && c.receives == 1);
	CHECK(count("\"wr_id\": \"0xa1\", \"wqe\": 0") == 1);
	CHECK(count("\"wr_id\": \"0xa2\", \"wqe\": 1") == 1);
	CHECK(count("\"opcode\": \"RECV\", \"status\": \"SUCCESS\", \"wr_id\": \"0xb1\"") == 1);
	free(text);
}

/* Requests that the program has built itself have the ID of the poll. */
static void polls_tell_ids(void)
{
	begin();
	queue_begins();
	tell("post.built qpn=0x400");
	tell("wqe.taken qpn=0x400 wqe=7 opcode=RDMA_WRITE bytes=8");
	tell("cqe.written cqn=0x80 qpn=0x400 wqe=7 queue=SQ opcode=RDMA_WRITE status=SUCCESS");
	tell("cq.polled qpn=0x400 wr_id=0xc1 queue=RQ status=0");
	tell("cq.polled qpn=0x400 wr_id=0xc2 queue=SQ status=0");
	CHECK(end().sends == 1);
	CHECK(count("\"status\": \"SUCCESS\", \"wr_id\": \"0xc2\", \"wqe\": 7") == 1);
	free(text);
}

/* What was not seen from its beginning has no IDs, rather than those of others. */
static void late_trace_guesses_nothing(void)
{
	begin();
	tell("post.send qpn=0x400 wr_id=0xa1");
	tell("wqe.taken qpn=0x400 wqe=0 opcode=SEND bytes=5");
	tell("cqe.written cqn=0x80 qpn=0x400 wqe=0 queue=SQ opcode=SEND status=WR_FLUSH");
	tell("post.recv qpn=0x400 wr_id=0xb1");
	tell("cqe.written cqn=0x80 qpn=0x400 wqe=0 queue=RQ opcode=RECV status=SUCCESS");
	CHECK(end().sends == 1 && !count("\"qpn\": \"0x400\", \"opcode\": \"RECV\""));
	CHECK(!count("\"status\": \"WR_FLUSH\", \"wr_id\""));
	free(text);
}

/* Posts that the library has refused, a reset, the end of the program. */
static void everything_ends(void)
{
	struct trace_counts c;

	begin();
	queue_begins();
	for (unsigned i = 0; i < 3; i++)
		tell("post.send qpn=0x400 wr_id=0xa1");
	tell("post.refused qpn=0x400 queue=SQ requests=2");
	tell("wqe.taken qpn=0x400 wqe=0 opcode=SEND bytes=5");
	tell("wqe.taken qpn=0x400 wqe=1 opcode=SEND bytes=5");
	tell("qp.state qpn=0x400 from=RTS to=RESET why=modify");
	tell("post.recv qpn=0x400 wr_id=0xb1");
	tell("dpa.enter thread=3 function=0x1000");
	c = end();
	CHECK(c.sends == 2 && c.receives == 1);
	CHECK(count("\"status\": \"reset\"") == 2 && count("\"status\": \"outstanding\"") == 1);
	CHECK(count("\"outcome\": \"runs\"") == 1);
	free(text);
}

/* ---- lies ---- */

static void forms_are_checked(void)
{
	static const char *const lies[] = {
		"",
		"qp.state",
		"qp.state ",
		"qp.state qpn",
		"qp.state qpn=",
		"qp.state =1",
		"qp.state qpn=1=2 to=\"",
		"qp.state qpn=\"1\"2",
		"qp.state q\"n=1",
		"QP.STATE qpn=1",
		"a b=1 c=2 d=3 e=4 f=5 g=6 h=7 i=8 j=9 k=10",
		"wqe.taken qpn=-1 wqe=99999999999999999999 opcode=\"},{\" bytes=00",
		"cqe.written cqn=x qpn=y wqe=z queue=\"\" opcode=\"\\\" status=\x01\x02\xff",
		"post.refused qpn=0x1 queue=SQ requests=18446744073709551615",
		"doorbell.noticed how=hook queue=SQ number=0xffffffffffffffff",
		"dpa.leave thread=1",
		"cq.polled",
	};

	begin();
	for (size_t i = 0; i < array_size(lies); i++)
		(void)tell_bytes(lies[i], strlen(lies[i]));
	(void)end();
	free(text);
}

static uint64_t random_next(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

/* Events in any order, of few queues, and bytes that are none. */
static void any_order_ends(void)
{
	static const char *const forms[] = {
		"post.send qpn=%u wr_id=0x1",
		"post.built qpn=%u",
		"post.recv qpn=%u wr_id=0x2",
		"post.refused qpn=%u queue=SQ requests=2",
		"wqe.taken qpn=%u wqe=%u opcode=SEND bytes=1",
		"wqe.done qpn=%u wqe=%u status=SUCCESS",
		"cqe.written qpn=%u wqe=%u cqn=0x80 queue=SQ opcode=SEND status=SUCCESS",
		"cqe.written qpn=%u wqe=%u cqn=0x80 queue=RQ opcode=RECV status=SUCCESS",
		"cq.polled qpn=%u wr_id=%u queue=SQ status=0",
		"cq.polled qpn=%u wr_id=%u queue=unknown status=5",
		"qp.state qpn=%u from=RESET to=%u why=x",
		"dpa.enter thread=%u function=0x%x",
		"dpa.leave thread=%u outcome=%u",
	};

	begin();
	for (unsigned i = 0; i < 50000; i++) {
		uint64_t r = random_next();
		char line[128];
		size_t n = (size_t)snprintf(line, sizeof(line), forms[r % array_size(forms)],
					    (unsigned)(r >> 16 & 3), (unsigned)(r >> 20 & 7));

		if (!(r >> 60))
			line[(r >> 32) % n] = (char)(r >> 40);
		(void)tell_bytes(line, n);
	}
	(void)end();
	free(text);
}

/* Records that are cut, too long, of no kind or of no port. */
static void records_are_checked(void)
{
	uint64_t room[TRACE_EVENT_BYTES / 8];
	struct capture_head *head;

	begin();
	head = record_of("qp.state qpn=0x1", 16);
	for (uint32_t n = sizeof(*head); n < sizeof(*head) + 16; n++)
		CHECK(!trace_events_take(events, head, n, room));
	head->bytes = 0;
	CHECK(!trace_events_take(events, head, sizeof(*head) + 16, room));
	head->bytes = UINT32_MAX;
	CHECK(!trace_events_take(events, head, sizeof(*head) + 16, room));
	for (unsigned kind = 0; kind < 256; kind++) {
		head->kind = (uint8_t)kind;
		head->bytes = 16;
		if (kind != CAPTURE_TRACE)
			CHECK(!trace_events_take(events, head, sizeof(*head) + 16, room));
	}
	free(head);
	head = calloc(1, sizeof(*head) + TRACE_EVENT_BYTES);
	CHECK(head);
	*head = (struct capture_head){.kind = CAPTURE_TRACE, .bytes = TRACE_EVENT_BYTES};
	CHECK(!trace_events_take(events, head, sizeof(*head) + TRACE_EVENT_BYTES, room));
	free(head);
	(void)end();
	free(text);
}

int main(void)
{
	requests_have_their_ids();
	polls_tell_ids();
	late_trace_guesses_nothing();
	everything_ends();
	forms_are_checked();
	any_order_ends();
	records_are_checked();
	return 0;
}
