// SPDX-License-Identifier: BSD-2-Clause
#include "reach/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/spin.h"

/* The descriptor of /proc, and a second one of it: we close the second for a moment when the
 * program has no other number left. */
static struct hidden proc = HIDDEN_NONE, spare = HIDDEN_NONE;
static unsigned users;
static struct spin lock; /* protects the three */

static struct hidden hidden_read(const struct hidden *h)
{
	struct hidden now;

	spin_lock(&lock);
	now = *h;
	spin_unlock(&lock);
	return now;
}

static struct hidden hidden_replace(struct hidden *h, struct hidden with)
{
	struct hidden before;

	spin_lock(&lock);
	before = *h;
	*h = with;
	spin_unlock(&lock);
	return before;
}

static struct hidden open_proc(void)
{
	return hidden_keep(
		(int)syscall(SYS_openat, AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

void proc_file_keep(void)
{
	bool first;

	spin_lock(&lock);
	first = !users++;
	spin_unlock(&lock);
	if (!first)
		return;
	(void)hidden_replace(&proc, open_proc());
	(void)hidden_replace(&spare, open_proc());
}

void proc_file_drop(void)
{
	struct hidden a = HIDDEN_NONE, b = HIDDEN_NONE;

	spin_lock(&lock);
	if (users && !--users) {
		a = proc;
		b = spare;
		proc = spare = HIDDEN_NONE;
	}
	spin_unlock(&lock);
	hidden_close(&a);
	hidden_close(&b);
}

void proc_file_fork_child(void)
{
	lock = (struct spin){0};
	proc = spare = HIDDEN_NONE;
	users = 0;
}

static int proc_file_open_bare(const char *name)
{
	char path[96];
	long fd;

	snprintf(path, sizeof(path), "/proc/%s", name);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

static int proc_file_open(const char *name)
{
	const struct hidden dir = hidden_read(&proc);
	long fd;

	if (!hidden_ours(&dir))
		return proc_file_open_bare(name);
	fd = syscall(SYS_openat, dir.fd, name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

static ssize_t read_whole(int fd, char *text, size_t size)
{
	ssize_t n = syscall(SYS_read, fd, text, size - 1);

	if (n < 0)
		n = -errno;
	syscall(SYS_close, fd);
	text[n < 0 ? 0 : n] = '\0';
	return n;
}

/* If another thread of the program takes the number meanwhile, the spare is lost, and no later call
 * can read this way. */
static ssize_t read_by_spare(const char *name, char *text, size_t size)
{
	struct hidden mine = hidden_replace(&spare, HIDDEN_NONE);
	const struct hidden dir = hidden_read(&proc);
	ssize_t n = -EMFILE;
	int fd;

	if (!hidden_ours(&mine))
		return n;
	hidden_close(&mine);
	fd = proc_file_open(name);
	n = fd < 0 ? fd : read_whole(fd, text, size);
	if (hidden_ours(&dir))
		mine = hidden_keep((int)syscall(SYS_fcntl, dir.fd, F_DUPFD_CLOEXEC, 0));
	(void)hidden_replace(&spare, mine);
	return n;
}

ssize_t proc_file_read(const char *name, char *text, size_t size)
{
	int fd = proc_file_open(name);

	text[0] = '\0';
	if (fd >= 0)
		return read_whole(fd, text, size);
	return fd == -EMFILE || fd == -ENFILE ? read_by_spare(name, text, size) : fd;
}

ssize_t proc_file_read_bare(const char *name, char *text, size_t size)
{
	int fd = proc_file_open_bare(name);

	text[0] = '\0';
	return fd < 0 ? fd : read_whole(fd, text, size);
}
