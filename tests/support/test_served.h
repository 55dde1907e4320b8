/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory whose faults a thread of the test serves (userfaultfd), after a look of its own. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

struct test_served {
	uint8_t *at;
	size_t bytes;
	/* Called at each fault, before it is served. */
	void (*look)(void *user);
	void *user;
	_Atomic(uint32_t) faults;
	int fd, end; /* an eventfd that tells the thread to end */
	pthread_t thread;
};

static inline void *test_served_serve(void *arg)
{
	struct test_served *s = arg;
	struct pollfd wait[] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->end, .events = POLLIN}};
	struct uffd_msg msg;

	while (poll(wait, 2, -1) > 0 && !wait[1].revents) {
		struct uffdio_zeropage page = {0};

		if (read(s->fd, &msg, sizeof(msg)) != (ssize_t)sizeof(msg))
			continue;
		page.range = (struct uffdio_range){msg.arg.pagefault.address & ~4095ull, 4096};
		atomic_fetch_add(&s->faults, 1);
		s->look(s->user);
		CHECK(!ioctl(s->fd, UFFDIO_ZEROPAGE, &page) || errno == EEXIST);
	}
	return NULL;
}

/* False: the system does not allow it, also for faults of system calls. */
static inline bool test_served_map(struct test_served *s, size_t bytes, void (*look)(void *user),
				   void *user)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	*s = (struct test_served){.bytes = bytes, .look = look, .user = user};
	s->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (s->fd < 0)
		return false;
	s->at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(s->at != MAP_FAILED && !ioctl(s->fd, UFFDIO_API, &api));
	range.range = (struct uffdio_range){(uintptr_t)s->at, bytes};
	CHECK(!ioctl(s->fd, UFFDIO_REGISTER, &range));
	s->end = eventfd(0, EFD_CLOEXEC);
	CHECK(s->end >= 0 && !pthread_create(&s->thread, NULL, test_served_serve, s));
	return true;
}

/* All of it is gone again. */
static inline void test_served_empty(struct test_served *s)
{
	CHECK(!madvise(s->at, s->bytes, MADV_DONTNEED));
	atomic_store(&s->faults, 0);
}

/* Ends the thread, and the memory with it. */
static inline void test_served_unmap(struct test_served *s)
{
	CHECK(!eventfd_write(s->end, 1) && !pthread_join(s->thread, NULL));
	CHECK(!munmap(s->at, s->bytes));
	close(s->fd);
	close(s->end);
}
