/* SPDX-License-Identifier: BSD-2-Clause */
/* Long messages that are not copied on their way: the reader gets the file that the sender has made, as long as its size
 * cannot change and there are not too many of them. */
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
#define MESSAGES 300u /* more than files are kept of */
#define ROUNDS	 40u
#define ROOM	 4321u /* of a file, in front of the message */

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
	CHECK(!umad.waiting && !mad.mad.lent_bytes && !mad.mad.receive_bytes);
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

/* A file that ends with a message. */
static int message_file(uint32_t tid, int seals, uint32_t room)
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
	CHECK(pwrite(file, bytes, ALL, room) == ALL && !fcntl(file, F_ADD_SEALS, seals));
	free(bytes);
	return file;
}

/* As the driver does it; the number of its file, so that it is known again. */
static ino_t message_send(uint32_t tid, int seals, uint32_t room)
{
	const struct umad_marker marker = {.magic = UMAD_MAGIC, .length = ALL};
	int file = message_file(tid, seals, room);
	struct stat st;

	CHECK(!fstat(file, &st));
	marker_send(&from, &marker, NULL, 0, file);
	close(file);
	test_mad_run(&mad, 0);
	return st.st_ino;
}

/* What the reader puts together, checked.  His file. */
static int message_fetch(uint32_t tid, struct msg_umad_fetch_reply *reply)
{
	struct umad_marker marker;
	struct msg_umad_fetch r = {.token = to.token, .room = ALL};
	uint8_t *got = malloc(ALL);
	int file = -1;

	CHECK(got && recv(to.fd, &marker, sizeof(marker), MSG_DONTWAIT) == sizeof(marker));
	CHECK(marker.magic == UMAD_MAGIC && marker.length == ALL);
	r.id = marker.id;
	CHECK(!umad_file_fetch(to.file, &r, reply, &file) && reply->length == ALL && !reply->kept);
	memcpy(got, reply->head, reply->nhead);
	CHECK(pread(file, got + reply->nhead, ALL - reply->nhead, (off_t)reply->at) ==
	      (ssize_t)(ALL - reply->nhead));
	CHECK(mad_get32(got + UMAD_HEADER_NEW, MAD_AT_TID + 4) == tid);
	CHECK(got[UMAD_HEADER_NEW + MAD_AT_RMPP_TYPE] == MAD_RMPP_DATA);
	for (uint32_t i = HEADERS; i < ALL; i++)
		CHECK(got[i] == byte_at(i, tid));
	free(got);
	return file;
}

static ino_t file_number(int file)
{
	struct stat st;

	CHECK(!fstat(file, &st));
	return st.st_ino;
}

/* Of fixed size, it is the sender's own file; else a copy. */
static void test_one(int seals, uint32_t room, bool lent)
{
	struct msg_umad_fetch_reply reply;
	ino_t sent;
	int file;

	programs_meet();
	sent = message_send(7, seals, room);
	file = message_fetch(7, &reply);
	CHECK((file_number(file) == sent) == lent && reply.nhead == (lent ? HEADERS : 0u));
	close(file);
	programs_part();
}

/* The reader's memory was not there: the beginning comes back with the file, and all of it comes again. */
static void test_returned(void)
{
	const struct umad_marker marker = {UMAD_MAGIC, UMAD_RETURNED, ALL};
	struct msg_umad_fetch_reply reply;
	int file;

	programs_meet();
	message_send(9, SEALS, 0);
	file = message_fetch(9, &reply);
	CHECK(reply.nhead == HEADERS);
	marker_send(&to, &marker, reply.head, reply.nhead, file);
	close(file);
	test_mad_run(&mad, 0);
	file = message_fetch(9, &reply);
	close(file);
	programs_part();
}

/* The sender goes, and then the receiver, with messages under way and unread. */
static void test_ends(void)
{
	struct msg_umad_fetch_reply reply;
	int file;

	programs_meet();
	message_send(1, SEALS, 0);
	message_send(2, SEALS, ROOM);
	program_close(&from);
	file = message_fetch(1, &reply);
	CHECK(reply.nhead == HEADERS);
	close(file);
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

static void test_many(void)
{
	struct msg_umad_fetch_reply reply;
	uint32_t before, held = 0;

	programs_meet();
	before = descriptors();
	for (uint32_t tid = 0; tid < MESSAGES; tid++)
		message_send(tid, SEALS, 0);
	CHECK(descriptors() - before < MESSAGES);
	for (uint32_t tid = 0; tid < MESSAGES; tid++) {
		int file = message_fetch(tid, &reply);

		held += reply.nhead != 0;
		close(file);
	}
	CHECK(held && held < MESSAGES && descriptors() == before);
	programs_part();
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

/* Its sender writes to the file that he has sent: what comes of it is his affair, and nobody else's. */
static void test_spoilt(void)
{
	const struct umad_marker marker = {.magic = UMAD_MAGIC, .length = ALL};
	struct umad_marker there;

	programs_meet();
	for (uint32_t tid = 0; tid < ROUNDS; tid++) {
		int file = message_file(tid, F_SEAL_SHRINK | F_SEAL_GROW, 0);
		pthread_t other;

		mad.mad.no_runs = tid % 2;
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
	test_one(SEALS, 0, true);
	test_one(SEALS, ROOM, true);
	test_one(F_SEAL_SHRINK | F_SEAL_GROW, 0, true);
	test_one(F_SEAL_SHRINK | F_SEAL_GROW, ROOM, true);
	test_one(F_SEAL_SHRINK | F_SEAL_WRITE, ROOM, false);
	test_one(F_SEAL_SHRINK, 0, false);
	test_one(F_SEAL_GROW, ROOM, false);
	test_one(F_SEAL_WRITE, 0, false);
	test_one(0, ROOM, false);
	test_spoilt();
	test_returned();
	test_ends();
	test_many();
	return 0;
}
