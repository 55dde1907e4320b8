/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that a program's socket brings and takes several at a time: order, bounds, the end. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "umad_program.h"

#define EACH_ROUND 64u /* MADs that a round takes of a file */

/* A program that writes as fast as it is read. */
static bool endless;

int __real_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *within);
int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *within);
int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *within)
{
	const struct plain refused = {.header.id = 31};

	if (!endless)
		return __real_recvmmsg(fd, m, n, flags, within);
	for (unsigned i = 0; i < n; i++) {
		memcpy(m[i].msg_hdr.msg_iov->iov_base, &refused, sizeof(refused));
		m[i].msg_hdr.msg_controllen = 0;
		m[i].msg_len = sizeof(refused);
	}
	return (int)n;
}

/* All that a program writes at once is answered in one round, in its order, and nothing is left to do. */
static void test_many_at_once(void)
{
	struct program a = program_open(mad.t.h1);
	const uint32_t count = 40;
	struct plain m, r;
	uint32_t id;

	CHECK(!program_register(&a, VENDOR_CLASS, 0, &id));
	for (uint32_t tid = 0; tid < count; tid++) {
		m = request_to(id, 4, VENDOR_CLASS, tid);
		program_send(&a, &m, sizeof(m));
	}
	CHECK(loop_round(&mad.loop, 0) >= 0 && !mad.loop.work);
	for (uint32_t tid = 0; tid < count; tid++) {
		CHECK(program_read(&a, &r) == sizeof(r) && r.mad[MAD_AT_METHOD] == MAD_GET_RESP);
		CHECK(mad_get32(r.mad, MAD_AT_TID + 4) == tid);
	}
	CHECK(!a.page->sends && program_read(&a, &r) < 0 && errno == EAGAIN);
	program_close(&a);
}

/* Many programs write more than a round takes of each: who writes little is not behind all of that. */
static void test_fair(void)
{
	struct program floods[8], polite;
	uint32_t ids[array_size(floods)], id, count;
	struct plain m, r;

	for (size_t i = 0; i < array_size(floods); i++) {
		floods[i] = program_open(mad.t.h1);
		CHECK(!program_register(&floods[i], VENDOR_CLASS, 0, &ids[i]));
		for (uint32_t tid = 0; tid < 2 * EACH_ROUND; tid++) {
			m = request_to(ids[i], 4, VENDOR_CLASS, tid);
			program_send(&floods[i], &m, sizeof(m));
		}
	}
	polite = program_open(mad.t.h1);
	CHECK(!program_register(&polite, VENDOR_CLASS, 0, &id));
	m = request_to(id, 4, VENDOR_CLASS, 7);
	program_send(&polite, &m, sizeof(m));
	CHECK(loop_round(&mad.loop, 0) >= 0 && !mad.mad.queued);
	CHECK(program_read(&polite, &r) == sizeof(r) && mad_get32(r.mad, MAD_AT_TID + 4) == 7);
	for (size_t i = 0; i < array_size(floods); i++) {
		for (count = 0; program_read(&floods[i], &r) == sizeof(r);)
			count++;
		CHECK(count == EACH_ROUND);
	}
	for (int round = 0; round < 2; round++) /* the other half, and that there is no more */
		test_mad_run(&mad, 0);
	for (size_t i = 0; i < array_size(floods); i++)
		program_close(&floods[i]);
	program_close(&polite);
}

/* A request to the daemon takes what the program has written before, and comes to an end although the
 * program goes on writing. */
static void test_written_for_ever(void)
{
	struct program a = program_open(mad.t.h1);

	endless = true;
	CHECK(!umad_file_pkey(a.file));
	endless = false;
	program_close(&a);
}

/* The socket takes a part of what comes at once; the rest waits, in its order. */
static void test_part_of_many(void)
{
	struct program a = program_open(mad.t.h1);
	struct mad_message m = {.length = MAD_BYTES};
	uint8_t bytes[MAD_BYTES] = {0};
	uint32_t count = 0, seen = 0;
	struct plain r;

	m.data = bytes;
	while (a.file->received < UMAD_BATCH / 2) {
		for (uint32_t i = 0; i < UMAD_BATCH; i++) {
			mad_put32(bytes, MAD_AT_TID, count++);
			umad_file_receive(a.file, 0, &m);
		}
		test_mad_run(&mad, 0);
	}
	mad_put32(bytes, MAD_AT_TID, count++);
	umad_file_receive(a.file, 0, &m); /* behind them */
	for (; program_read(&a, &r) == UMAD_HEADER_OLD + MAD_BYTES; test_mad_run(&mad, 0)) {
		const uint8_t *bytes_read = (const uint8_t *)&r + UMAD_HEADER_OLD;

		CHECK(mad_get32(bytes_read, MAD_AT_TID) == seen++);
	}
	CHECK(seen == count && !a.page->dropped && !a.file->queue);
	program_close(&a);
}

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* A bad message among others ends the file; what was attached to those behind it is closed. */
static void test_bad_among_many(void)
{
	int before = descriptors(), file = memfd_create("attached", MFD_CLOEXEC);
	struct program a = program_open(mad.t.h1);
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct umad_marker marker = {UMAD_MAGIC, 0, 0};
	struct iovec iov = {&marker, sizeof(marker)};
	struct msghdr mh = {.msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.buf,
			    .msg_controllen = sizeof(control.buf)};

	control.align = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.align), &file, sizeof(file));
	CHECK(send(a.fd, "bad", 3, 0) == 3);
	for (int i = 0; i < 3; i++)
		CHECK(sendmsg(a.fd, &mh, 0) == sizeof(marker));
	close(file);
	test_mad_run(&mad, 0);
	CHECK(!umad_file_find(&umad, a.token) && !umad.nfiles);
	program_close(&a);
	CHECK(descriptors() == before);
}

int main(void)
{
	programs_begin();
	test_many_at_once();
	test_fair();
	test_written_for_ever();
	test_part_of_many();
	test_bad_among_many();
	programs_end();
	return 0;
}
