// SPDX-License-Identifier: BSD-2-Clause
#include "base/descriptor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINK_BYTES 40

static void link_write(char link[static LINK_BYTES], pid_t pid, int fd)
{
	if (pid)
		snprintf(link, LINK_BYTES, "/proc/%d/fd/%d", (int)pid, fd);
	else if (fd == AT_FDCWD)
		snprintf(link, LINK_BYTES, "/proc/thread-self/cwd");
	else
		snprintf(link, LINK_BYTES, "/proc/thread-self/fd/%d", fd);
}

int descriptor_reopen(pid_t pid, int fd, int flags)
{
	char link[LINK_BYTES];

	link_write(link, pid, fd);
	return (int)syscall(SYS_openat, AT_FDCWD, link, flags | O_CLOEXEC);
}

ssize_t descriptor_name(int fd, char *buf, size_t size)
{
	char link[LINK_BYTES];

	link_write(link, 0, fd);
	return syscall(SYS_readlinkat, AT_FDCWD, link, buf, size);
}

/* This file makes system calls directly: the process's close() and fstat() are interposed, and some
 * callers hold locks that a cancelled thread would keep. */

/* Hidden numbers begin no higher than necessary, because the kernel's table of descriptors is as
 * long as the highest number. */
#define HIDDEN_HIGHEST_BASE 3072u

/* The file's id by descriptor; 0: not hidden. */
_Atomic(uint64_t) hidden_ids[HIDDEN_MAX_FDS];
static _Atomic(int64_t) hidden_eventfds[HIDDEN_MAX_FDS];
static _Atomic(unsigned) hidden_end; /* no descriptor from this number on was ever hidden */

uint64_t hidden_file_id(uint64_t device, uint64_t inode)
{
	uint64_t id = device * 0x9e3779b97f4a7c15u ^ inode;

	return id ? id : 1;
}

uint64_t hidden_id(int fd)
{
	struct stat st;

	if (fd < 0 || syscall(SYS_fstat, fd, &st) < 0)
		return 0;
	return hidden_file_id(st.st_dev, st.st_ino);
}

#define NO_EVENTFD	(-1) /* another file */
#define EVENTFD_UNKNOWN (-2) /* we could not find out */

/* Reads the number of an eventfd from fdinfo. */
static int64_t eventfd_number(int fd)
{
	static const char key[] = "eventfd-id:";
	char path[40], text[512];
	const char *at;
	long file, n;

	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", fd);
	file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return EVENTFD_UNKNOWN;
	n = syscall(SYS_read, file, text, sizeof(text) - 1);
	syscall(SYS_close, file);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, key);
	return at ? atoll(at + sizeof(key) - 1) : NO_EVENTFD;
}

/* Tells eventfds apart, because all files without a name of their own (eventfd, epoll, timerfd,
 * ...) share one inode. */
static bool is_same_eventfd(int fd, int64_t kept)
{
	int64_t now = kept < 0 ? EVENTFD_UNKNOWN : eventfd_number(fd);

	return now == EVENTFD_UNKNOWN || now == kept;
}

static unsigned hidden_base(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur / 4 * 3 > HIDDEN_HIGHEST_BASE)
		return HIDDEN_HIGHEST_BASE;
	return (unsigned)(lim.rlim_cur / 4 * 3);
}

static void hidden_mark(const struct hidden *h)
{
	int fd = h->fd;
	unsigned end = atomic_load(&hidden_end);

	if ((unsigned)fd >= HIDDEN_MAX_FDS)
		return;
	while (end <= (unsigned)fd &&
	       !atomic_compare_exchange_weak(&hidden_end, &end, (unsigned)fd + 1))
		;
	atomic_store(&hidden_eventfds[fd], h->eventfd);
	atomic_store(&hidden_ids[fd], h->id);
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
	hidden_mark(&h);
	return h;
}

bool hidden_ours(const struct hidden *h)
{
	return h->id && hidden_id(h->fd) == h->id && is_same_eventfd(h->fd, h->eventfd);
}

void hidden_close(struct hidden *h)
{
	uint64_t id = h->id;

	if (h->fd < 0)
		return;
	/* The mark goes last: until then nobody else closes the number, so no other file can get
	 * it.  If another hidden descriptor has the number by then, its mark stays. */
	if (hidden_ours(h))
		syscall(SYS_close, h->fd);
	if ((unsigned)h->fd < HIDDEN_MAX_FDS && atomic_load(&hidden_eventfds[h->fd]) == h->eventfd)
		atomic_compare_exchange_strong(&hidden_ids[h->fd], &id, 0);
	*h = HIDDEN_NONE;
}

/* Clears the mark if the file behind it is closed. */
bool hidden_is_slow(int fd)
{
	uint64_t id = atomic_load(&hidden_ids[fd]);

	if (id && hidden_id(fd) == id && is_same_eventfd(fd, atomic_load(&hidden_eventfds[fd])))
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
