/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of programs on H1's port, by their sockets: what is written becomes MADs of an agent, what
 * comes is there to be read, and everything has its bound and its end.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "umad_program.h"

static uint32_t page_counts(const struct program *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < UMAD_IN_FLIGHT; i++)
		n += p->page->in_flight[i];
	return n;
}

/* H1's program asks, H2's answers. */
static void test_exchange(void)
{
	struct program a = program_open(mad.t.h1), b = program_open(mad.t.h2);
	uint32_t ida, idb;
	struct plain m, r;

	CHECK(umad.nfiles == 2);
	CHECK(!program_register(&a, VENDOR_CLASS, 0, &ida) && ida == 0);
	CHECK(a.page->header_bytes == UMAD_HEADER_NEW);
	CHECK(a.page->agents[0] == (UMAD_AGENT_THERE | UMAD_AGENT_QP1 | UMAD_AGENT_RMPP));
	CHECK(!program_register(&b, VENDOR_CLASS, 1 << MAD_GET, &idb) && idb == 0);
	m = request_to(ida, 4, VENDOR_CLASS, 77);
	program_send(&a, &m, sizeof(m));
	CHECK(a.page->sends == 1 && page_counts(&a) == 1);
	test_mad_run(&mad, 0);
	CHECK(program_read(&b, &r) == sizeof(r));
	CHECK(r.header.id == idb && !r.header.status && r.header.length == sizeof(r));
	CHECK(be16toh(r.header.lid) == 1 && be32toh(r.header.qpn) == 1 && !r.header.grh_present);
	CHECK(mad_get32(r.mad, MAD_AT_TID + 4) == 77 && mad_get32(r.mad, MAD_AT_TID) != 0xdeadbeef);
	r.mad[MAD_AT_METHOD] = MAD_GET_RESP;
	r.header.timeout_ms = 0;
	program_send(&b, &r, sizeof(r));
	test_mad_run(&mad, 0);
	CHECK(program_read(&a, &r) == sizeof(r) && r.header.id == ida && !r.header.status);
	CHECK(mad_get32(r.mad, MAD_AT_TID + 4) == 77 && be16toh(r.header.lid) == 4);
	CHECK(!a.page->sends && !page_counts(&a) && !b.page->sends && !page_counts(&b));
	CHECK(program_read(&a, &r) < 0 && errno == EAGAIN);
	program_close(&a);
	program_close(&b);
	CHECK(!umad.nfiles && !umad.waiting);
}

static void test_timeout(void)
{
	struct program a = program_open(mad.t.h1);
	struct plain m, r;
	uint32_t id;

	CHECK(!program_register(&a, VENDOR_CLASS, 0, &id));
	m = request_to(id, 0x99, VENDOR_CLASS, 5); /* a LID that leads nowhere */
	m.header.retries = 2;
	m.header.length = 4711;
	program_send(&a, &m, sizeof(m));
	test_mad_run(&mad, 290);
	CHECK(program_read(&a, &r) < 0 && errno == EAGAIN && page_counts(&a) == 1);
	test_mad_run(&mad, 30);
	CHECK(program_read(&a, &r) == UMAD_HEADER_NEW + MAD_HEADER_BYTES);
	CHECK(r.header.status == ETIMEDOUT && r.header.length == 4711 && r.header.retries == 2);
	CHECK(r.header.lid == m.header.lid && mad_get32(r.mad, MAD_AT_TID + 4) == 5);
	CHECK(mad_get32(r.mad, MAD_AT_TID) != 0xdeadbeef && !page_counts(&a) && !a.page->sends);
	program_close(&a);
}

/* A request on another connection sees what was written before. */
static void test_order(void)
{
	struct program a = program_open(mad.t.h1);
	struct msg_umad_in_flight ask = {.token = a.token, .lid = 0x99};
	struct plain m;
	uint32_t id;

	CHECK(!program_register(&a, VENDOR_CLASS, 0, &id));
	m = request_to(id, 0x99, VENDOR_CLASS, 5);
	memcpy(ask.header, m.mad, sizeof(ask.header));
	CHECK(!umad_file_in_flight(a.file, &ask));
	program_send(&a, &m, sizeof(m));
	CHECK(umad_file_in_flight(a.file, &ask) == -EINVAL);
	ask.agent = 3;
	CHECK(umad_file_in_flight(a.file, &ask) == -EIO);
	/* a duplicate all the same is dropped, and no longer counted */
	program_send(&a, &m, sizeof(m));
	CHECK(!umad_file_unregister(a.file, id, false));
	CHECK(!page_counts(&a) && !a.page->sends && !a.page->agents[0]);
	CHECK(umad_file_unregister(a.file, id, false) == -EINVAL);
	CHECK(umad_file_unregister(a.file, 32, false) == -EINVAL);
	program_close(&a);
}

static void test_layout(void)
{
	struct program a = program_open(mad.t.h1);
	struct msg_umad_register r = {.qpn = 1};
	uint32_t id, last = 0;

	CHECK(a.page->header_bytes == UMAD_HEADER_OLD);
	/* a failed registration is no use of the file */
	CHECK(program_register(&a, 0x82, 0, &id) == -EINVAL);
	CHECK(!umad_file_pkey(a.file) && !umad_file_pkey(a.file));
	CHECK(a.page->header_bytes == UMAD_HEADER_NEW);
	CHECK(!umad_file_register(a.file, &r, &id) && umad_file_pkey(a.file) == -EINVAL);
	program_close(&a);

	a = program_open(mad.t.h1);
	CHECK(!umad_file_register(a.file, &r, &id));
	r.second = 1;
	CHECK(!umad_file_register(a.file, &r, &id) && id == 1);
	CHECK(a.page->header_bytes == UMAD_HEADER_OLD && umad_file_pkey(a.file) == -EINVAL);
	while (last < UMAD_AGENTS - 1)
		CHECK(!umad_file_register(a.file, &r, &last));
	CHECK(umad_file_register(a.file, &r, &last) == -ENOMEM);
	CHECK(!umad_file_unregister(a.file, 7, false));
	CHECK(!umad_file_register(a.file, &r, &last) && last == 7);
	program_close(&a);

	/* the program's address for the id was bad */
	a = program_open(mad.t.h1);
	CHECK(!umad_file_register(a.file, &r, &id) && a.page->header_bytes == UMAD_HEADER_NEW);
	CHECK(!umad_file_unregister(a.file, id, true) && a.page->header_bytes == UMAD_HEADER_OLD);
	CHECK(!umad_file_pkey(a.file));
	program_close(&a);
}

/* What no driver of ours writes ends the file; what is only refused does not. */
static void test_bad_messages(void)
{
	static const struct {
		size_t n;
		uint32_t id;
	} bad[] = {{1, 0},
		   {UMAD_HEADER_OLD + MAD_RMPP_BYTES - 1, 0},
		   {16, UMAD_MAGIC},
		   {40, UMAD_MAGIC}};
	struct umad_marker marker = {UMAD_MAGIC, 0, 400};
	struct plain m = {.header.id = 31};
	struct program a;
	uint32_t id;

	for (size_t i = 0; i < array_size(bad); i++) {
		a = program_open(mad.t.h1);
		m.header.id = bad[i].id;
		CHECK(send(a.fd, &m, bad[i].n, 0) == (ssize_t)bad[i].n);
		test_mad_run(&mad, 0);
		CHECK(!umad_file_find(&umad, a.token) && recv(a.fd, &m, sizeof(m), 0) <= 0);
		program_close(&a);
	}
	/* a file that is none */
	a = program_open(mad.t.h1);
	CHECK(send(a.fd, &marker, sizeof(marker), 0) == sizeof(marker));
	test_mad_run(&mad, 0);
	program_close(&a);

	a = program_open(mad.t.h1);
	CHECK(!program_register(&a, VENDOR_CLASS, 0, &id));
	m = request_to(31, 4, VENDOR_CLASS, 1);
	program_send(&a, &m, sizeof(m));
	m = request_to(id, 4, VENDOR_CLASS, 1);
	m.header.sl = 16;
	program_send(&a, &m, sizeof(m));
	m.header.sl = 0;
	m.header.grh_present = 1;
	m.header.gid_index = 200;
	program_send(&a, &m, sizeof(m));
	test_mad_run(&mad, 0);
	CHECK(umad_file_find(&umad, a.token) && !page_counts(&a) && !a.page->sends);
	/* less than nothing cannot be under way */
	CHECK(send(a.fd, &m, sizeof(m), 0) == sizeof(m));
	test_mad_run(&mad, 0);
	CHECK(!page_counts(&a) && !a.page->sends);
	program_close(&a);
}

static void deliver_long(struct program *p, uint32_t length)
{
	struct mad_message m = {.length = length};
	uint8_t *bytes = malloc(length);

	for (uint32_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(i * 7);
	m.data = bytes;
	umad_file_receive(p->file, 0, &m);
	free(bytes);
}

static int fetch(struct program *p, uint32_t id, uint64_t room, struct msg_umad_fetch_reply *reply)
{
	const struct msg_umad_fetch r = {.token = p->token, .id = id, .room = room};
	int fd = -1, ret = umad_file_fetch(p->file, &r, reply, &fd);

	return ret ? ret : fd;
}

static void test_long(void)
{
	struct program a = program_open(mad.t.h1);
	const uint32_t length = 100000, all = length + UMAD_HEADER_OLD;
	struct msg_umad_fetch_reply reply;
	struct umad_marker marker;
	uint8_t *copy = malloc(all);
	struct ib_user_mad_hdr h;
	int fd;

	deliver_long(&a, length);
	CHECK(recv(a.fd, &marker, sizeof(marker), MSG_PEEK) == sizeof(marker));
	CHECK(marker.magic == UMAD_MAGIC && marker.length == all && a.page->longs == 1);
	fd = fetch(&a, marker.id, all - 1, &reply);
	CHECK(fd >= 0 && reply.kept && reply.length == all);
	CHECK(pread(fd, copy, all, 0) == UMAD_HEADER_OLD + MAD_BYTES);
	close(fd);
	memcpy(&h, copy, UMAD_HEADER_OLD);
	CHECK(h.length == all && copy[UMAD_HEADER_OLD + 1] == 7);
	fd = fetch(&a, marker.id, all, &reply);
	CHECK(fd >= 0 && !reply.kept && reply.length == all &&
	      pread(fd, copy, all, 0) == (ssize_t)all);
	CHECK(copy[all - 1] == (uint8_t)((length - 1) * 7));
	CHECK(fetch(&a, marker.id, all, &reply) == -ENOENT && !umad.waiting);
	CHECK(!a.page->longs);
	/* the reader could not use it, and gives the file back: another marker comes */
	marker = (struct umad_marker){UMAD_MAGIC, UMAD_RETURNED, all};
	{
		union {
			struct cmsghdr align;
			char buf[CMSG_SPACE(sizeof(int))];
		} control = {0};
		struct iovec iov = {&marker, sizeof(marker)};
		struct msghdr mh = {.msg_iov = &iov,
				    .msg_iovlen = 1,
				    .msg_control = control.buf,
				    .msg_controllen = sizeof(control.buf)};

		control.align = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
		CHECK(sendmsg(a.fd, &mh, 0) == sizeof(marker));
	}
	close(fd);
	CHECK(recv(a.fd, &marker, sizeof(marker), 0) == sizeof(marker)); /* the old one */
	test_mad_run(&mad, 0);
	CHECK(recv(a.fd, &marker, sizeof(marker), MSG_DONTWAIT) == sizeof(marker));
	fd = fetch(&a, marker.id, all, &reply);
	CHECK(fd >= 0 && pread(fd, copy, all, 0) == (ssize_t)all);
	CHECK(copy[all - 1] == (uint8_t)((length - 1) * 7));
	close(fd);
	free(copy);
	deliver_long(&a, length); /* unread */
	program_close(&a);
	CHECK(!umad.waiting);
}

/* A plain message that was taken by mistake comes again. */
static void test_returned(void)
{
	struct program a = program_open(mad.t.h1);
	struct {
		struct umad_marker marker;
		uint8_t bytes[UMAD_HEADER_OLD + MAD_BYTES];
	} back = {{UMAD_MAGIC, UMAD_RETURNED, sizeof(back.bytes)}, {0}};
	uint8_t again[sizeof(back.bytes)];

	for (size_t i = 0; i < sizeof(back.bytes); i++)
		back.bytes[i] = (uint8_t)i;
	CHECK(send(a.fd, &back, sizeof(back), 0) == sizeof(back));
	test_mad_run(&mad, 0);
	CHECK(recv(a.fd, again, sizeof(again), MSG_DONTWAIT) == sizeof(again));
	CHECK(!memcmp(again, back.bytes, sizeof(again)));
	program_close(&a);
}

/* Long messages that some programs leave unread do not take from others what they need. */
static void test_never_fetches(void)
{
	struct program deaf = program_open(mad.t.h1), good = program_open(mad.t.h1);
	const uint64_t others = UMAD_MOST_WAITING;
	struct umad_marker marker;

	umad.waiting += others;
	deliver_long(&good, UMAD_SURE_OF_A_FILE / 2);
	CHECK(recv(good.fd, &marker, sizeof(marker), MSG_DONTWAIT) == sizeof(marker));
	CHECK(marker.length == UMAD_SURE_OF_A_FILE / 2 + UMAD_HEADER_OLD && !good.page->dropped);
	deliver_long(&good, UMAD_SURE_OF_A_FILE);
	CHECK(good.page->dropped == 1);
	umad.waiting -= others;
	deliver_long(&good, UMAD_SURE_OF_A_FILE);
	CHECK(good.page->dropped == 1);

	umad_waiting_add(deaf.file, UMAD_MOST_OF_A_FILE - 1000);
	deliver_long(&deaf, 1001);
	CHECK(deaf.page->dropped == 1);
	deliver_long(&deaf, 500);
	CHECK(deaf.page->dropped == 1);
	umad_waiting_add(deaf.file, -(int64_t)(UMAD_MOST_OF_A_FILE - 1000));
	program_close(&good);
	program_close(&deaf);
	CHECK(!umad.waiting);
}

/* A program that lets its sends time out and reads no report is told to stop. */
static void test_reports_are_bounded(void)
{
	struct program a = program_open(mad.t.h1);
	uint8_t header[MAD_HEADER_BYTES] = {0}, note[64] = {0};
	struct plain m, r;
	uint32_t id, reports = 0;

	CHECK(!program_register(&a, VENDOR_CLASS, 0, &id));
	while (a.page->sends < UMAD_MOST_SENDS) {
		umad_file_report(a.file, id, note, header);
		CHECK(++reports < 2 * UMAD_MOST_SENDS);
	}
	m = request_to(id, 0x99, VENDOR_CLASS, 5);
	program_send(&a, &m, sizeof(m));
	test_mad_run(&mad, 200);
	CHECK(!page_counts(&a) && !a.file->sends);
	while (program_read(&a, &r) > 0) {
		reports--;
		test_mad_run(&mad, 0);
	}
	CHECK(!reports && !a.page->sends && !umad.waiting);
	program_close(&a);
}

/* Who never reads costs a bounded queue, and hears of every timeout. */
static void test_never_reads(void)
{
	struct program a = program_open(mad.t.h1), b = program_open(mad.t.h1);
	struct mad_message m = {.length = MAD_BYTES};
	uint8_t bytes[MAD_BYTES] = {0}, note[64] = {0};
	struct plain r;
	uint32_t got = 0, reports = 0;

	m.data = bytes;
	for (uint32_t i = 0; i < UMAD_MOST_RECEIVED + 10000; i++)
		umad_file_receive(a.file, 0, &m);
	test_mad_run(&mad, 0);
	CHECK(a.page->dropped > 0 && umad.waiting < UMAD_MOST_WAITING);
	for (uint32_t i = 0; i < 100; i++)
		umad_file_report(a.file, 0, note, bytes);
	/* others go on */
	umad_file_receive(b.file, 0, &m);
	test_mad_run(&mad, 0);
	CHECK(program_read(&b, &r) == UMAD_HEADER_OLD + MAD_BYTES);
	for (ssize_t n; (n = program_read(&a, &r)) > 0; test_mad_run(&mad, 0)) {
		got += n == UMAD_HEADER_OLD + MAD_BYTES;
		reports += r.header.status == ETIMEDOUT;
	}
	CHECK(got + a.page->dropped == UMAD_MOST_RECEIVED + 10000 && reports == 100);
	CHECK(got >= UMAD_MOST_RECEIVED && !umad.waiting);
	program_close(&a);
	program_close(&b);
}

/* What was written before the close still goes. */
static void test_written_then_closed(void)
{
	struct program a = program_open(mad.t.h1), b = program_open(mad.t.h2);
	struct mad_message unread = {.length = MAD_BYTES};
	uint8_t bytes[MAD_BYTES] = {0};
	struct plain m, r;
	uint32_t id;

	CHECK(!program_register(&a, VENDOR_CLASS, 0, &id));
	CHECK(!program_register(&b, VENDOR_CLASS, 1 << MAD_GET, &id));
	unread.data = bytes;
	umad_file_receive(a.file, 0, &unread); /* the daemon's end of the socket says ECONNRESET */
	test_mad_run(&mad, 0);
	m = request_to(0, 4, VENDOR_CLASS, 9);
	m.header.timeout_ms = 0;
	program_send(&a, &m, sizeof(m));
	program_close(&a);
	CHECK(program_read(&b, &r) == sizeof(r) && mad_get32(r.mad, MAD_AT_TID + 4) == 9);
	program_close(&b);
}

/* The subnet manager of the fabric hears of each agent that could be one's. */
static void test_managers(void)
{
	static const struct {
		unsigned class;
		uint64_t methods;
		bool manages;
	} cases[] = {
		{MAD_CLASS_SMP_DIRECTED, 0, false},
		{MAD_CLASS_SMP_DIRECTED, 1 << MAD_GET, true},
		{MAD_CLASS_SMP_LID, 1 << MAD_TRAP | 1 << MAD_SEND, true},
		{MAD_CLASS_SMP_LID, 1 << MAD_SEND, false},
		{VENDOR_CLASS, 1 << MAD_GET, false},
	};
	struct program a;
	uint32_t id;

	for (size_t i = 0; i < array_size(cases); i++) {
		a = program_open(mad.t.h1);
		CHECK(!program_register(&a, cases[i].class, cases[i].methods, &id));
		CHECK(sm.programs == cases[i].manages);
		/* refused: somebody has the methods */
		CHECK(program_register(&a, cases[i].class, cases[i].methods, &id) ==
			      (cases[i].methods ? -EINVAL : 0) &&
		      sm.programs == cases[i].manages);
		if (i % 2)
			CHECK(!umad_file_unregister(a.file, 0, false) && !sm.programs);
		program_close(&a);
		CHECK(!sm.programs);
	}
}

int main(void)
{
	programs_begin();
	test_managers();
	test_exchange();
	test_timeout();
	test_order();
	test_layout();
	test_bad_messages();
	test_long();
	test_returned();
	test_never_reads();
	test_never_fetches();
	test_reports_are_bounded();
	test_written_then_closed();
	programs_end();
	return 0;
}
