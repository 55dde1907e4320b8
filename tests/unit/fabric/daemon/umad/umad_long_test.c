/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that are too long for the sockets: the sender's file, the packets between two programs, the reader's file. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "umad_program.h"

#define LENGTH	 70000u
#define ALL	 (UMAD_HEADER_NEW + LENGTH)
#define HEADERS	 (UMAD_HEADER_NEW + 40u) /* the MAD's are of a vendor's class */
#define SEALS	 (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define MESSAGES 300u
#define ROUNDS	 40u

static struct program from, to;
static uint32_t from_id, to_id;

static void programs_meet(void)
{
	programs_begin();
	from = program_open(mad.t.h1);
	to = program_open(mad.t.h2);
	CHECK(!program_register(&from, VENDOR_CLASS, 0, &from_id));
	CHECK(!program_register(&to, VENDOR_CLASS, 1ull << MAD_SEND, &to_id));
}

static void programs_part(void)
{
	program_close(&from);
	program_close(&to);
	CHECK(!umad.waiting && !mad.mad.receive_bytes);
	programs_end();
}

static uint8_t byte_at(uint32_t at, uint32_t tid)
{
	return (uint8_t)(at * 7 + at / 251 + tid);
}

static void marker_send(struct program *p, const struct umad_marker *m, const uint8_t *more,
			size_t n, int file)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov[] = {{(void *)(uintptr_t)m, sizeof(*m)}, {(void *)(uintptr_t)more, n}};
	struct msghdr mh = {.msg_iov = iov,
			    .msg_iovlen = 2,
			    .msg_control = control.buf,
			    .msg_controllen = sizeof(control.buf)};

	control.align = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.align), &file, sizeof(file));
	CHECK(sendmsg(p->fd, &mh, 0) == (ssize_t)(sizeof(*m) + n));
}

/* A file with a message. */
static int message_file(uint32_t tid, int seals)
{
	struct plain head = request_to(from_id, 4, VENDOR_CLASS, tid);
	uint8_t *bytes = malloc(ALL);
	int file = memfd_create("message", MFD_ALLOW_SEALING);

	CHECK(bytes && file >= 0);
	for (uint32_t i = 0; i < ALL; i++)
		bytes[i] = byte_at(i, tid);
	head.header.timeout_ms = 0;
	head.mad[MAD_AT_METHOD] = MAD_SEND;
	head.mad[MAD_AT_RMPP_FLAGS] = MAD_RMPP_ACTIVE;
	memcpy(bytes, &head, HEADERS);
	CHECK(write(file, bytes, ALL) == ALL && !fcntl(file, F_ADD_SEALS, seals));
	free(bytes);
	return file;
}

/* As the driver does it. */
static void message_send(uint32_t tid, int seals)
{
	const struct umad_marker marker = {.magic = UMAD_MAGIC, .length = ALL};
	int file = message_file(tid, seals);

	marker_send(&from, &marker, NULL, 0, file);
	close(file);
	test_mad_run(&mad, 0);
}

/* The file that the reader gets, after a check of its contents. */
static int message_fetch(uint32_t tid)
{
	struct msg_umad_fetch_reply reply;
	struct umad_marker marker;
	struct msg_umad_fetch r = {.token = to.token, .room = ALL};
	uint8_t *got = malloc(ALL);
	int file = -1;

	CHECK(got && recv(to.fd, &marker, sizeof(marker), MSG_DONTWAIT) == sizeof(marker));
	CHECK(marker.magic == UMAD_MAGIC && marker.length == ALL);
	r.id = marker.id;
	CHECK(!umad_file_fetch(to.file, &r, &reply, &file) && reply.length == ALL && !reply.kept);
	CHECK(pread(file, got, ALL, 0) == (ssize_t)ALL);
	CHECK(mad_get32(got + UMAD_HEADER_NEW, MAD_AT_TID + 4) == tid);
	CHECK(got[UMAD_HEADER_NEW + MAD_AT_RMPP_TYPE] == MAD_RMPP_DATA);
	for (uint32_t i = HEADERS; i < ALL; i++)
		CHECK(got[i] == byte_at(i, tid));
	free(got);
	return file;
}

static void test_one(int seals)
{
	programs_meet();
	message_send(7, seals);
	close(message_fetch(7));
	programs_part();
}

/* The reader's memory was not there: the file comes back, and all of it comes again. */
static void test_returned(void)
{
	const struct umad_marker marker = {UMAD_MAGIC, UMAD_RETURNED, ALL};
	int file;

	programs_meet();
	message_send(9, SEALS);
	file = message_fetch(9);
	marker_send(&to, &marker, NULL, 0, file);
	close(file);
	test_mad_run(&mad, 0);
	close(message_fetch(9));
	programs_part();
}

/* The sender goes, and then the receiver, with messages under way and unread. */
static void test_ends(void)
{
	programs_meet();
	message_send(1, SEALS);
	message_send(2, SEALS);
	program_close(&from);
	close(message_fetch(1));
	from = program_open(mad.t.h1);
	programs_part();
}

static uint32_t descriptors(void)
{
	uint32_t n = 0;

	for (int fd = 0; fd < 1000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* The daemon keeps no descriptors of messages that wait. */
static void test_many(void)
{
	uint32_t before;

	programs_meet();
	before = descriptors();
	for (uint32_t tid = 0; tid < MESSAGES; tid++)
		message_send(tid, SEALS);
	CHECK(descriptors() == before);
	for (uint32_t tid = 0; tid < MESSAGES; tid++)
		close(message_fetch(tid));
	programs_part();
}

/* A file that has not all of the message, and one that is not in memory, end the sender's file. */
static void test_bad_files(void)
{
	const struct umad_marker marker = {.magic = UMAD_MAGIC, .length = ALL};
	int files[] = {message_file(3, 0), open("/dev/zero", O_RDONLY), -1}, ends[2];

	CHECK(!ftruncate(files[0], ALL - 1) && files[1] >= 0 && !pipe(ends));
	files[2] = ends[0];
	for (size_t i = 0; i < array_size(files); i++) {
		programs_meet();
		marker_send(&from, &marker, NULL, 0, files[i]);
		close(files[i]);
		test_mad_run(&mad, 0);
		CHECK(!umad_file_find(&umad, from.token) && !mad.mad.queued);
		programs_part();
	}
	close(ends[1]);
}

static _Atomic(bool) spoilt;

/* Headers and data become something else all the time. */
static void *message_spoil(void *arg)
{
	const int *file = arg;
	struct rng r = {7};
	uint8_t noise[HEADERS];

	while (!atomic_load(&spoilt)) {
		for (uint32_t i = 0; i < sizeof(noise); i++)
			noise[i] = (uint8_t)rng_next(&r);
		CHECK(pwrite(*file, noise, 1 + rng_below(&r, sizeof(noise)),
			     (off_t)rng_below(&r, HEADERS)) > 0);
	}
	return NULL;
}

/* The sender writes to the file that it has sent: only its own message is spoilt. */
static void test_spoilt(void)
{
	const struct umad_marker marker = {.magic = UMAD_MAGIC, .length = ALL};
	struct umad_marker there;

	programs_meet();
	for (uint32_t tid = 0; tid < ROUNDS; tid++) {
		int file = message_file(tid, F_SEAL_SHRINK | F_SEAL_GROW);
		pthread_t other;

		atomic_store(&spoilt, false);
		CHECK(!pthread_create(&other, NULL, message_spoil, &file));
		marker_send(&from, &marker, NULL, 0, file);
		test_mad_run(&mad, 0);
		atomic_store(&spoilt, true);
		CHECK(!pthread_join(other, NULL));
		close(file);
		while (recv(to.fd, &there, sizeof(there), MSG_DONTWAIT) == sizeof(there)) {
			struct msg_umad_fetch r = {
				.token = to.token, .id = there.id, .room = UINT32_MAX};
			struct msg_umad_fetch_reply reply;

			CHECK(!umad_file_fetch(to.file, &r, &reply, &file) && !close(file));
		}
	}
	programs_part();
}

int main(void)
{
	test_one(SEALS);
	test_one(F_SEAL_SHRINK);
	test_one(0);
	test_bad_files();
	test_spoilt();
	test_returned();
	test_ends();
	test_many();
	return 0;
}
