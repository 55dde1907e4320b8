// SPDX-License-Identifier: BSD-2-Clause
/* This file makes system calls directly: close() and fstat() of the process are interposed, and
 * some callers hold locks that a cancelled thread would keep. */
#include "base/hidden.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's table of descriptors is as long as the highest number, so this is no higher than
 * necessary. */
#define HIDDEN_HIGHEST_BASE 3072u

/* By number; 0: not hidden. */
_Atomic(uint64_t) hidden_ids[HIDDEN_MAX_FDS];
static _Atomic(unsigned) hidden_end; /* nothing was ever hidden at this number or beyond */

uint64_t hidden_id(int fd)
{
	struct stat st;
	uint64_t id;

	if (fd < 0 || syscall(SYS_fstat, fd, &st) < 0)
		return 0;
	id = (uint64_t)st.st_dev * 0x9e3779b97f4a7c15u ^ (uint64_t)st.st_ino;
	return id ? id : 1;
}

/* The number of an eventfd, from fdinfo; -1: none. */
static int64_t eventfd_number(int fd)
{
	static const char key[] = "eventfd-id:";
	char path[40], text[512];
	const char *at;
	long file, n;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -1;
	n = syscall(SYS_read, file, text, sizeof(text) - 1);
	syscall(SYS_close, file);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, key);
	return at ? atoll(at + sizeof(key) - 1) : -1;
}

static bool is_same_eventfd(const struct hidden *h)
{
	int64_t now = h->eventfd < 0 ? -1 : eventfd_number(h->fd);

	return now < 0 || now == h->eventfd;
}

static unsigned hidden_base(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur / 4 * 3 > HIDDEN_HIGHEST_BASE)
		return HIDDEN_HIGHEST_BASE;
	return (unsigned)(lim.rlim_cur / 4 * 3);
}

static void hidden_mark(int fd, uint64_t id)
{
	unsigned end = atomic_load(&hidden_end);

	if ((unsigned)fd >= HIDDEN_MAX_FDS)
		return;
	while (end <= (unsigned)fd &&
	       !atomic_compare_exchange_weak(&hidden_end, &end, (unsigned)fd + 1))
		;
	atomic_store(&hidden_ids[fd], id);
}

struct hidden hidden_keep(int fd)
{
	struct hidden h = HIDDEN_NONE;
	int high;

	if (fd < 0)
		return h;
	high = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, hidden_base());
	if (high >= 0)
		syscall(SYS_close, fd);
	else
		syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
	h.fd = high >= 0 ? high : fd;
	h.id = hidden_id(h.fd);
	h.eventfd = eventfd_number(h.fd);
	hidden_mark(h.fd, h.id);
	return h;
}

bool hidden_ours(const struct hidden *h)
{
	return h->id && hidden_id(h->fd) == h->id && is_same_eventfd(h);
}

void hidden_close(struct hidden *h)
{
	uint64_t id = h->id;

	if (h->fd < 0)
		return;
	/* Another hidden descriptor may have the number meanwhile. */
	if ((unsigned)h->fd < HIDDEN_MAX_FDS)
		atomic_compare_exchange_strong(&hidden_ids[h->fd], &id, 0);
	if (hidden_ours(h))
		syscall(SYS_close, h->fd);
	*h = HIDDEN_NONE;
}

/* The mark goes when the file has gone. */
bool hidden_is_slow(int fd)
{
	uint64_t id = atomic_load(&hidden_ids[fd]);

	if (id && hidden_id(fd) == id)
		return true;
	atomic_compare_exchange_strong(&hidden_ids[fd], &id, 0);
	return false;
}

int hidden_next(unsigned first, unsigned last)
{
	unsigned end = atomic_load(&hidden_end);

	for (unsigned fd = first; fd < end && fd <= last; fd++)
		if (hidden_is((int)fd))
			return (int)fd;
	return -1;
}

void hidden_fork_child(void)
{
	int fd = -1;

	while ((fd = hidden_next((unsigned)fd + 1, HIDDEN_MAX_FDS)) >= 0) {
		syscall(SYS_close, fd);
		atomic_store(&hidden_ids[fd], 0);
	}
}
