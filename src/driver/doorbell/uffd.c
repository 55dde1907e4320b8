// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program may close every descriptor that it does not know and open files in their places; with
 * the last descriptor the protection would go, unnoticed.  So a thread that does nothing else keeps
 * one: it has its own copy of the descriptor table, with nothing else in it.  In the program's
 * table, the descriptor serves to protect pages.  If the program closes it there, protecting fails,
 * and the thread's end lifts all protection.
 */
#include "driver/doorbell/uffd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/thread.h"
#include "base/checkers.h"

#define STACK_BYTES (128u << 10)

struct uffd {
	struct hidden file;
	pthread_t thread;
	sem_t started;
	bool failed; /* before started */
	sem_t end;
};

/* A plain system call, because ioctl() is the preload library's. */
static int uffd_control(const struct uffd *u, unsigned long request, void *arg)
{
	if (!hidden_ours(&u->file))
		return -EBADF;
	return syscall(SYS_ioctl, u->file.fd, request, arg) < 0 ? -errno : 0;
}

int uffd_add(struct uffd *u, uintptr_t addr, size_t len)
{
	struct uffdio_register reg = {
		.range = {addr, len},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return uffd_control(u, UFFDIO_REGISTER, &reg);
}

int uffd_protect(struct uffd *u, uintptr_t addr, size_t len, bool on)
{
	struct uffdio_writeprotect wp = {
		.range = {addr, len},
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};
	int ret;

	/* EAGAIN: another thread is changing the address space. */
	do {
		ret = uffd_control(u, UFFDIO_WRITEPROTECT, &wp);
	} while (ret == -EAGAIN);
	return ret;
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
	int fd = u->file.fd;

	if (close_all_but(fd) < 0) {
		u->failed = true;
		sem_post(&u->started);
		return NULL;
	}
	sem_post(&u->started);
	while (sem_wait(&u->end) < 0)
		;
	/* A thread counts as ended before the kernel drops its descriptors.  The pages would still be
	 * registered, and the next one to protect them would be refused (EBUSY). */
	syscall(SYS_close, fd);
	return NULL;
}

static int uffd_spawn(struct uffd *u)
{
	const struct own_thread_attr attr = {
		.name = OWN_THREAD_KEEPER,
		.stack_bytes = STACK_BYTES,
	};
	int ret = own_thread_start(&u->thread, &attr, uffd_main, u);

	if (ret)
		return ret;
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
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
			    UFFD_FEATURE_SIGBUS,
	};

	/* Valgrind does not know the call, and would tell its user to report that. */
	if (runs_in_valgrind())
		return -ENOSYS;
	u->file = hidden_keep((int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
	return u->file.fd < 0 ? -errno : uffd_control(u, UFFDIO_API, &api);
}

static void uffd_release(struct uffd *u)
{
	sem_destroy(&u->end);
	sem_destroy(&u->started);
	free(u);
}

int uffd_open(struct uffd **out)
{
	struct uffd *u = calloc(1, sizeof(*u));
	int ret;

	if (!u)
		return -ENOMEM;
	sem_init(&u->started, 0, 0);
	sem_init(&u->end, 0, 0);
	ret = open_fd(u);
	if (ret == 0)
		ret = uffd_spawn(u);
	if (ret == 0) {
		*out = u;
		return 0;
	}
	hidden_close(&u->file);
	uffd_release(u);
	return ret;
}

void uffd_close(struct uffd *u)
{
	sem_post(&u->end);
	pthread_join(u->thread, NULL);
	hidden_close(&u->file);
	uffd_release(u);
}

void uffd_abandon(struct uffd *u)
{
	sem_post(&u->end);
}

void uffd_fork_child(struct uffd *u)
{
	hidden_close(&u->file);
}
