// SPDX-License-Identifier: BSD-2-Clause
/*
 * served DEVICE listen|connect TCP-PORT before|after|unseen: the listener registers memory whose faults it
 * serves itself (userfaultfd), before it registers it with the device or afterwards.  It serves
 * none until it is told to.  The connecting side posts and polls meanwhile and is held up by
 * nothing; when the fault is served, the request ends with what the listener has supplied.
 *
 * unseen: it begins to serve by a bare system call, and never serves a fault, but ends.  That ends
 * the request, and what the connecting side does afterwards is held up by nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pair.h"

#define PAGE	    4096u
#define PAGES	    4u
#define BYTES	    (PAGES * PAGE)
#define SMALL	    64u
#define POLLS	    10000
#define STATUS_SKIP 77

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct place {
	uint64_t addr;
	uint32_t rkey;
};

static void tell_words(const struct pair *p, const void *what, size_t bytes)
{
	if (send(p->sock, what, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		device_die("the other side has gone");
}

static void hear_words(const struct pair *p, void *what, size_t bytes)
{
	if (recv(p->sock, what, bytes, MSG_WAITALL) != (ssize_t)bytes)
		device_die("the other side has gone");
}

/* ---- the connecting side ---- */

/* Nobody serves the fault before this side says that it has posted and polled. */
static void complete_when_served(struct pair *p, const char *what)
{
	struct ibv_wc wc;

	for (int i = 0; i < POLLS; i++)
		if (ibv_poll_cq(p->cq, 1, &wc))
			device_die("%s ends before its page is there", what);
	tell_words(p, "", 1);
	pair_complete(p, what);
}

/* How the request ends is left open: the listener's memory may have taken it. */
static void drive_into_the_unseen(struct pair *p)
{
	struct ibv_wc wc;

	pair_write(p, 0, 0, PAGE, SMALL);
	while (!ibv_poll_cq(p->cq, 1, &wc))
		;
	printf("a write to memory that nobody served: %s\n", ibv_wc_status_str(wc.status));
}

static int drive_traffic(struct pair *p, bool unseen)
{
	struct place served;

	/* Until whatever is faster than packets is in use, to memory like any other. */
	for (int i = 0; i < 200; i++) {
		pair_write(p, 0, 0, 0, SMALL);
		pair_complete(p, "a write to plain memory");
		usleep(1000);
	}
	tell_words(p, "", 1);
	hear_words(p, &served, sizeof(served));
	p->peer_addr = served.addr;
	p->peer_rkey = served.rkey;
	if (unseen) {
		drive_into_the_unseen(p);
		return 0;
	}
	memset(p->mem, 's', BYTES);
	pair_write(p, 0, 0, PAGE + SMALL, SMALL);
	complete_when_served(p, "a write");
	pair_read(p, 0, 0, 2 * PAGE, PAGE);
	complete_when_served(p, "a read");
	for (unsigned i = 0; i < PAGE; i++)
		if (p->mem[i] != 'h')
			device_die("byte %u is not the one that the listener supplied", i);
	tell_words(p, "", 1);
	printf("written and read when the pages were supplied\n");
	return 0;
}

/* ---- the listener ---- */

static int faults_open(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0 && errno == EPERM)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api)) {
		printf("userfaultfd: %s\n", strerror(errno));
		exit(STATUS_SKIP);
	}
	return fd;
}

static void faults_serve_in(int fd, void *at, bool unseen)
{
	struct uffdio_register range = {
		.range = {(uintptr_t)at, BYTES},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	if (unseen ? syscall(SYS_ioctl, fd, UFFDIO_REGISTER, &range)
		   : ioctl(fd, UFFDIO_REGISTER, &range))
		device_die("UFFDIO_REGISTER: %m");
}

static void supply_page(int fd, uint8_t *page, int value)
{
	uint8_t source[PAGE];
	struct uffdio_copy copy = {(uintptr_t)page, (uintptr_t)source, PAGE, 0, 0};

	memset(source, value, sizeof(source));
	if (ioctl(fd, UFFDIO_COPY, &copy))
		device_die("UFFDIO_COPY: %m");
}

/* When told to, supplies the page that somebody waits for, which must be this one. */
static void serve_when_told(const struct pair *p, int fd, uint8_t *page)
{
	struct uffd_msg msg;
	uint64_t at;
	char turn;

	hear_words(p, &turn, 1);
	do {
		if (read(fd, &msg, sizeof(msg)) != (ssize_t)sizeof(msg))
			device_die("reading faults: %m");
		at = msg.arg.pagefault.address & ~(uint64_t)(PAGE - 1);
		/* a second thread at a page that is there by now */
	} while (at < (uintptr_t)page);
	if (msg.event != UFFD_EVENT_PAGEFAULT || at != (uintptr_t)page)
		device_die("another fault than that of page %p: 0x%lx", (void *)page,
			   (unsigned long)at);
	supply_page(fd, page, 'h');
}

/* Somebody waits for a page; then this process is gone. */
static _Noreturn void serve_nobody(int fd)
{
	struct uffd_msg msg;

	if (read(fd, &msg, sizeof(msg)) != (ssize_t)sizeof(msg))
		device_die("reading faults: %m");
	_exit(0);
}

static int listen_to(struct pair *p, bool before, bool unseen)
{
	uint8_t *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = faults_open();
	struct ibv_mr *mr;
	struct place here;
	char turn;

	hear_words(p, &turn, 1);
	if (at == MAP_FAILED)
		device_die("mmap: %m");
	if (before)
		faults_serve_in(fd, at, false);
	for (unsigned i = 0; i < PAGES; i++) {
		if (before)
			supply_page(fd, at + (size_t)i * PAGE, 'o');
		else
			memset(at + (size_t)i * PAGE, 'o', PAGE);
	}
	mr = ibv_reg_mr(p->pd, at, BYTES, ACCESS);
	if (!mr)
		device_die("ibv_reg_mr: %m");
	if (!before)
		faults_serve_in(fd, at, unseen);
	if (madvise(at, BYTES, MADV_DONTNEED))
		device_die("MADV_DONTNEED: %m");
	here = (struct place){(uintptr_t)at, mr->rkey};
	tell_words(p, &here, sizeof(here));
	if (unseen)
		serve_nobody(fd);
	serve_when_told(p, fd, at + PAGE);
	serve_when_told(p, fd, at + (size_t)2 * PAGE);
	hear_words(p, &turn, 1);
	for (unsigned i = 0; i < PAGE; i++)
		if (at[PAGE + i] != (i >= SMALL && i < 2 * SMALL ? 's' : 'h'))
			device_die("byte %u is wrong", i);
	return ibv_dereg_mr(mr);
}

int main(int argc, char **argv)
{
	struct device_connection how = device_default_connection;
	bool listens = argc > 2 && !strcmp(argv[2], "listen");
	bool unseen = argc > 4 && !strcmp(argv[4], "unseen");
	struct pair p;
	int ret;

	if (argc != 5) {
		fputs("usage: served DEVICE listen|connect TCP-PORT before|after|unseen\n", stderr);
		return 2;
	}
	how.access = ACCESS;
	how.timeout = 20; /* four seconds: the listener may be slow to serve */
	pair_open(&p, argv[1], &how, BYTES);
	pair_meet(&p, &how, listens, pair_number(argv[3]));
	ret = listens ? listen_to(&p, !strcmp(argv[4], "before"), unseen)
		      : drive_traffic(&p, unseen);
	pair_close(&p);
	return ret;
}
