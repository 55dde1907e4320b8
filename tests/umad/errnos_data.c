// SPDX-License-Identifier: BSD-2-Clause
/* write and read, and what else is done with the files. */
#include "errnos.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* One byte of a question that is otherwise right. */
static const struct {
	const char *what;
	size_t at;
	uint8_t value;
	int error;
} bytes_wrong[] = {
	{"nothing", 0, 0, 0},
	{"id 32", 0, 32, EINVAL},
	{"id 31, of no agent", 0, 31, EIO},
	{"id 256", 1, 1, EINVAL},
	{"status", 4, 1, 0},
	{"length", 16, 1, 0},
	{"service level 16", 30, 16, EINVAL},
	{"hop count 64", NEW_HEADER + 7, 64, EINVAL},
	{"hop pointer 2 of no hops", NEW_HEADER + 6, 2, EINVAL},
	{"a route that begins at port 2", NEW_HEADER + 7, 1, EINVAL},
};

static void errnos_of_bytes(void)
{
	int fd = umad_file(0);
	uint32_t id = umad_agent(fd, 0, 0x81, 0);

	for (size_t i = 0; i < sizeof(bytes_wrong) / sizeof(bytes_wrong[0]); i++) {
		struct question q = question_of(id, (uint32_t)i + 1);

		if (bytes_wrong[i].at)
			q.bytes[bytes_wrong[i].at] = bytes_wrong[i].value;
		else
			q.bytes[0] = (uint8_t)(id | bytes_wrong[i].value);
		q.bytes[NEW_HEADER + 128 + 1] = 2;
		call_gave(bytes_wrong[i].what, write(fd, q.bytes, sizeof(q.bytes)),
			  bytes_wrong[i].error);
		if (!bytes_wrong[i].error) {
			call_gave("an answer", question_answered(fd) ? 0 : -1, 0);
			call_gave("reading it", read(fd, q.bytes, sizeof(q.bytes)), 0);
		}
	}
	call_gave("nothing else was sent",
		  poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) ? -1 : 0, 0);
	close(fd);
}

/* A question to a LID, as the class wants it. */
static struct question question_to(uint32_t id, unsigned class, uint32_t tid)
{
	struct question q = question_of(id, tid);
	struct ib_user_mad_hdr *h = (struct ib_user_mad_hdr *)q.bytes;

	h->lid = htons(0xb000);
	h->qpn = htonl(1);
	q.bytes[NEW_HEADER + 1] = (uint8_t) class;
	q.bytes[NEW_HEADER + 3] = 3;
	memset(q.bytes + NEW_HEADER + 32, 0, 4);
	q.bytes[NEW_HEADER + 38] = OUR_OUI >> 8 & 0xff;
	q.bytes[NEW_HEADER + 39] = OUR_OUI & 0xff;
	return q;
}

static void errnos_of_lengths(void)
{
	int fd = umad_file(0);
	uint32_t plain = umad_agent(fd, 1, 0x31, 0), rmpp = umad_agent(fd, 1, 0x31, 1);
	struct question q = question_to(plain, 0x31, 1);
	uint8_t *more = calloc(1, NEW_HEADER + (64 << 20));

	if (!more)
		return;
	call_gave("36 bytes less one", write(fd, q.bytes, NEW_HEADER + 35), EINVAL);
	call_gave("no bytes", write(fd, q.bytes, 0), EINVAL);
	call_gave("from nowhere", write(fd, nowhere, sizeof(q.bytes)), EFAULT);
	memcpy(nowhere - NEW_HEADER, q.bytes, NEW_HEADER);
	call_gave("a header before nowhere", write(fd, nowhere - NEW_HEADER, sizeof(q.bytes)),
		  EFAULT);
	memcpy(nowhere - NEW_HEADER - 100, q.bytes, NEW_HEADER + 100);
	call_gave("a MAD that ends nowhere", write(fd, nowhere - NEW_HEADER - 100, sizeof(q.bytes)),
		  EFAULT);
	memcpy(more, q.bytes, sizeof(q.bytes));
	call_gave("257 bytes without RMPP", write(fd, more, NEW_HEADER + 257), EINVAL);
	more[NEW_HEADER + 24] = 1;
	more[NEW_HEADER + 25] = 1;
	more[NEW_HEADER + 26] = 1;
	call_gave("257 bytes, an agent without RMPP", write(fd, more, NEW_HEADER + 257), EINVAL);
	more[0] = (uint8_t)rmpp;
	call_gave("257 bytes by RMPP", write(fd, more, NEW_HEADER + 257), 0);
	call_gave("64 MiB by RMPP", write(fd, more, NEW_HEADER + (64 << 20)), ENOMEM);
	more[NEW_HEADER + 15]++;
	call_gave("257 bytes by RMPP behind these", write(fd, more, NEW_HEADER + 257), 0);
	more[NEW_HEADER + 26] = 0;
	call_gave("257 bytes, RMPP not active", write(fd, more, NEW_HEADER + 257), EINVAL);
	more[NEW_HEADER + 1] = 0x0c;
	call_gave("a class without RMPP", write(fd, more, NEW_HEADER + MAD_BYTES), EINVAL);
	free(more);
	close(fd);
}

static void errnos_of_duplicates(void)
{
	int fd = umad_file(0), other = umad_file(0);
	uint32_t id = umad_agent(fd, 1, 0x31, 0), again = umad_agent(fd, 1, 0x31, 0);
	struct question q = question_to(id, 0x31, 77);

	call_gave("a question", write(fd, q.bytes, sizeof(q.bytes)), 0);
	call_gave("the same", write(fd, q.bytes, sizeof(q.bytes)), EINVAL);
	q.bytes[NEW_HEADER + 15]++;
	call_gave("another TID", write(fd, q.bytes, sizeof(q.bytes)), 0);
	q.bytes[0] = (uint8_t)again; /* whose TIDs are others */
	call_gave("another agent", write(fd, q.bytes, sizeof(q.bytes)), 0);
	q.bytes[0] = (uint8_t)umad_agent(other, 1, 0x31, 0);
	call_gave("another file", write(other, q.bytes, sizeof(q.bytes)), 0);
	close(other);
	close(fd);
}

static void errnos_of_global_routes(void)
{
	int fd = umad_file(0);
	struct question q = question_to(umad_agent(fd, 1, 0x31, 0), 0x31, 5);
	struct ib_user_mad_hdr *h = (struct ib_user_mad_hdr *)q.bytes;

	h->gid_index = 255; /* does not count without a GRH */
	call_gave("no GRH, GID 255", write(fd, q.bytes, sizeof(q.bytes)), 0);
	h->grh_present = 1;
	call_gave("GID 255", write(fd, q.bytes, sizeof(q.bytes)), EINVAL);
	close(fd);
}

void errnos_of_write(void)
{
	errnos_of_bytes();
	errnos_of_lengths();
	errnos_of_duplicates();
	errnos_of_global_routes();
}

void errnos_of_read(void)
{
	int fd = umad_file(0);
	struct question q = question_of(umad_agent(fd, 0, 0x81, 0), 9);
	uint8_t bytes[NEW_HEADER + MAD_BYTES + 1];
	struct ib_user_mad_hdr *h = (struct ib_user_mad_hdr *)q.bytes;

	call_gave("nothing there", read(fd, bytes, sizeof(bytes)), EAGAIN);
	call_gave("nothing there, no room", read(fd, bytes, NEW_HEADER - 1), EINVAL);
	call_gave("a question", write(fd, q.bytes, sizeof(q.bytes)), 0);
	call_gave("an answer", question_answered(fd) ? 0 : -1, 0);
	call_gave("no room", read(fd, bytes, 0), EINVAL);
	call_gave("room for a header less one", read(fd, bytes, NEW_HEADER - 1), EINVAL);
	call_gave("room for a header", read(fd, bytes, NEW_HEADER), EINVAL);
	call_gave("room for all but one", read(fd, bytes, NEW_HEADER + MAD_BYTES - 1), EINVAL);
	call_gave("to nowhere", read(fd, nowhere, sizeof(bytes)), EFAULT);
	call_gave("to the edge", read(fd, nowhere - 100, sizeof(bytes)), EFAULT);
	call_gave("it is still there", read(fd, bytes, sizeof(bytes)), 0);
	call_gave("once", read(fd, bytes, sizeof(bytes)), EAGAIN);
	q = question_to(umad_agent(fd, 1, 0x31, 0), 0x31, 10);
	h->timeout_ms = 10;
	call_gave("a question to nobody", write(fd, q.bytes, sizeof(q.bytes)), 0);
	call_gave("its end", question_answered(fd) ? 0 : -1, 0);
	call_gave("room for 23 bytes", read(fd, bytes, NEW_HEADER + 23), EINVAL);
	call_gave("room for 24 bytes", read(fd, bytes, NEW_HEADER + 24), 0);
	close(fd);
}

/* Each element is an operation of its own. */
static void errnos_of_vectors(void)
{
	int fd = umad_file(0);
	uint32_t id = umad_agent(fd, 0, 0x81, 0);
	struct question a = question_of(id, 21), b = question_of(id, 22);
	struct iovec out[] = {{a.bytes, sizeof(a.bytes)}, {b.bytes, sizeof(b.bytes)}};
	struct iovec halves[] = {{a.bytes, NEW_HEADER}, {a.bytes + NEW_HEADER, MAD_BYTES}};
	ssize_t n;

	n = writev(fd, out, 2);
	call_gave("writev of two", n == (ssize_t)(2 * sizeof(a.bytes)) ? 0 : -1, 0);
	call_gave("writev of halves", writev(fd, halves, 2), EINVAL);
	for (int i = 0; i < 2; i++) {
		call_gave("an answer", question_answered(fd) ? 0 : -1, 0);
		n = readv(fd, out, 1);
		call_gave("readv", n == (ssize_t)sizeof(a.bytes) ? 0 : -1, 0);
	}
	call_gave("readv of nothing", readv(fd, out, 2), EAGAIN);
	close(fd);
}

static void errnos_of_forks(void)
{
	int fd = umad_file(0), status = 0, copy;
	struct question q = question_of(umad_agent(fd, 0, 0x81, 0), 31);
	pid_t child = fork();

	if (child == 0) {
		int ok = write(fd, q.bytes, sizeof(q.bytes)) > 0 && question_answered(fd) &&
			 read(fd, q.bytes, sizeof(q.bytes)) > 0;

		_exit(ok ? 0 : 1);
	}
	waitpid(child, &status, 0);
	call_gave("a child's question", status ? -1 : 0, 0);
	q = question_of(0, 32);
	call_gave("the parent's", write(fd, q.bytes, sizeof(q.bytes)), 0);
	copy = dup(fd);
	close(fd);
	call_gave("the answer at a copy", question_answered(copy) ? 0 : -1, 0);
	call_gave("read by the copy", read(copy, q.bytes, sizeof(q.bytes)), 0);
	q = question_of(0, 33);
	call_gave("a question by the copy", write(copy, q.bytes, sizeof(q.bytes)), 0);
	close(copy);
}

void errnos_of_files(void)
{
	int fd = umad_file(0), epoll = epoll_create1(0);
	struct epoll_event e = {.events = EPOLLIN};
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};

	call_gave("lseek", lseek(fd, 0, SEEK_SET), ESPIPE);
	call_gave("pread", pread(fd, nowhere - 512, 512, 0), ESPIPE);
	call_gave("pwrite", pwrite(fd, nowhere - 512, 512, 0), ESPIPE);
	call_gave("mmap", mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0,
		  ENODEV);
	call_gave("poll", poll(&p, 1, 0) == 1 && p.revents == POLLOUT ? 0 : -1, 0);
	call_gave("epoll", epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e), 0);
	call_gave("epoll of nothing", epoll_wait(epoll, &e, 1, 0) ? -1 : 0, 0);
	call_gave("O_NONBLOCK as it was opened", fcntl(fd, F_GETFL) & O_NONBLOCK ? 0 : -1, 0);
	call_gave("close-on-exec too", fcntl(fd, F_GETFD) & FD_CLOEXEC ? 0 : -1, 0);
	call_gave("a file that is not there", open("/dev/infiniband/umad9", O_RDWR), ENOENT);
	close(epoll);
	close(fd);
	errnos_of_vectors();
	errnos_of_forks();
}

void errnos_of_issm(void)
{
	int fd = open("/dev/infiniband/issm0", O_RDONLY | O_NONBLOCK);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char bytes[NEW_HEADER + MAD_BYTES] = {0};
	struct iovec v = {bytes, sizeof(bytes)};

	call_gave("open", fd, 0);
	call_gave("open again", open("/dev/infiniband/issm0", O_RDWR | O_NONBLOCK), EAGAIN);
	call_gave("read", read(fd, bytes, sizeof(bytes)), EINVAL);
	call_gave("write", write(fd, bytes, sizeof(bytes)), EINVAL);
	call_gave("readv", readv(fd, &v, 1), EINVAL);
	call_gave("writev", writev(fd, &v, 1), EINVAL);
	call_gave("ioctl", ioctl(fd, IB_USER_MAD_ENABLE_PKEY), ENOTTY);
	call_gave("lseek", lseek(fd, 0, SEEK_SET), ESPIPE);
	call_gave("mmap", mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0,
		  ENODEV);
	call_gave("poll", poll(&p, 1, 0) == 1 ? 0 : -1, 0);
	close(fd);
}
