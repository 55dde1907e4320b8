// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread blocks in read(2) of the userfaultfd.
 *
 * Its descriptor table is a copy of its own with nothing else in it: a program may close every
 * descriptor that it does not know and open files in their places, and what the thread reads must
 * never be one of those.  In the program's table the descriptor serves to protect pages; if it goes
 * there, that fails, and nothing worse.
 *
 * The thread is told to leave by a store to a page that stays protected for this purpose.
 */
#include "driver/uffd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE	    4096u
#define STACK_BYTES (128u << 10)
#define MESSAGES    8u

struct uffd {
	int fd;
	void (*touched)(void *user, uintptr_t addr);
	void *user;
	pthread_t thread;
	sem_t started;
	bool failed; /* before started */
	/* A store to this page ends the thread. */
	void *end;
};

/* The system call, for ioctl() is the preload library's. */
static int control(const struct uffd *u, unsigned long request, void *arg)
{
	return syscall(SYS_ioctl, u->fd, request, arg) < 0 ? -errno : 0;
}

int uffd_add(struct uffd *u, uintptr_t addr, size_t len)
{
	struct uffdio_register reg = {
		.range = {addr, len},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return control(u, UFFDIO_REGISTER, &reg);
}

int uffd_protect(struct uffd *u, uintptr_t addr, size_t len, bool on)
{
	struct uffdio_writeprotect wp = {
		.range = {addr, len},
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};
	int ret;

	/* EAGAIN: the address space is being changed by another thread. */
	do {
		ret = control(u, UFFDIO_WRITEPROTECT, &wp);
	} while (ret == -EAGAIN);
	return ret;
}

/* Where there is no mapping any more, the store is to fail as it should. */
static void let_go(struct uffd *u, uintptr_t addr)
{
	struct uffdio_range range = {addr, PAGE};

	if (uffd_protect(u, addr, PAGE, false) < 0)
		(void)control(u, UFFDIO_WAKE, &range);
}

/* False: it was the store that ends us. */
static bool handle(struct uffd *u, const struct uffd_msg *msg)
{
	uintptr_t addr = (uintptr_t)msg->arg.pagefault.address & ~(uintptr_t)(PAGE - 1);

	if (msg->event != UFFD_EVENT_PAGEFAULT)
		return true;
	let_go(u, addr);
	if (addr == (uintptr_t)u->end)
		return false;
	u->touched(u->user, addr);
	return true;
}

static int close_all_but(int fd)
{
	if (syscall(SYS_close_range, (unsigned)fd + 1, ~0u, CLOSE_RANGE_UNSHARE) < 0)
		return -errno;
	if (fd > 0)
		(void)syscall(SYS_close_range, 0, (unsigned)fd - 1, 0);
	return 0;
}

static void *uffd_main(void *arg)
{
	struct uffd *u = arg;
	struct uffd_msg msgs[MESSAGES];
	bool end = false;

	u->failed = close_all_but(u->fd) < 0;
	end = u->failed;
	sem_post(&u->started);
	while (!end) {
		ssize_t n = syscall(SYS_read, u->fd, msgs, sizeof(msgs));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		for (size_t i = 0; i < (size_t)n / sizeof(msgs[0]); i++)
			end |= !handle(u, &msgs[i]);
	}
	return NULL;
}

static int spawn(struct uffd *u)
{
	pthread_attr_t attr;
	sigset_t all, saved;
	int ret = pthread_attr_init(&attr);

	if (ret)
		return -ret;
	sigfillset(&all);
	ret = pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (!ret)
		ret = pthread_sigmask(SIG_SETMASK, &all, &saved);
	if (!ret) {
		ret = pthread_create(&u->thread, &attr, uffd_main, u);
		pthread_sigmask(SIG_SETMASK, &saved, NULL);
	}
	pthread_attr_destroy(&attr);
	if (ret)
		return -ret;
	pthread_setname_np(u->thread, "softhca-watch");
	while (sem_wait(&u->started) < 0)
		;
	if (!u->failed)
		return 0;
	pthread_join(u->thread, NULL);
	return -ENOSYS;
}

static int open_fd(struct uffd *u)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};

	u->fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	return u->fd < 0 ? -errno : control(u, UFFDIO_API, &api);
}

static void touch(void *page)
{
	atomic_store_explicit((_Atomic(uint32_t) *)page, 1, memory_order_relaxed);
}

static int make_end(struct uffd *u)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (page == MAP_FAILED)
		return -errno;
	u->end = page;
	/* An anonymous page must be there to be protected. */
	touch(page);
	ret = uffd_add(u, (uintptr_t)page, PAGE);
	return ret < 0 ? ret : uffd_protect(u, (uintptr_t)page, PAGE, true);
}

static void release(struct uffd *u)
{
	if (u->end)
		munmap(u->end, PAGE);
	sem_destroy(&u->started);
	free(u);
}

int uffd_open(void (*touched)(void *user, uintptr_t addr), void *user, struct uffd **out)
{
	struct uffd *u = calloc(1, sizeof(*u));
	int ret;

	if (!u)
		return -ENOMEM;
	u->touched = touched;
	u->user = user;
	sem_init(&u->started, 0, 0);
	ret = open_fd(u);
	if (ret == 0)
		ret = make_end(u);
	if (ret == 0)
		ret = spawn(u);
	if (ret == 0) {
		*out = u;
		return 0;
	}
	if (u->fd >= 0)
		close(u->fd);
	release(u);
	return ret;
}

/* Is the number still ours? Every other kind of file refuses the request. */
static void close_fd(const struct uffd *u)
{
	struct uffdio_range nothing = {0};

	if (control(u, UFFDIO_WAKE, &nothing) == -EINVAL)
		syscall(SYS_close, u->fd);
}

void uffd_close(struct uffd *u)
{
	/* Blocks until the thread has seen it. */
	touch(u->end);
	pthread_join(u->thread, NULL);
	close_fd(u);
	release(u);
}

void uffd_fork_child(struct uffd *u)
{
	close_fd(u);
}
