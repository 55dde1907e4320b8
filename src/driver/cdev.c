// SPDX-License-Identifier: BSD-2-Clause
/*
 * The descriptor table: which numbers of this process are device files, and whose.  Looked at for
 * every ioctl, close and dup of the program and from the data path, so a look is one load from an
 * array; files are freed after a grace period.
 */
#include "driver/cdev.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/rcu.h"
#include "driver/file/attr_file.h"
#include "driver/file/cdev_file.h"
#include "driver/doorbell/doorbell.h"
#include "driver/uverbs/core/event.h"
#include "driver/uverbs/core/file.h"

_Atomic(struct cdev_file *) cdev_table[CDEV_MAX_FDS];
static _Atomic(unsigned) table_end; /* nothing has ever been at this place or beyond */

/* Device names below /dev/infiniband, by prefix. */
static const struct {
	const char *prefix;
	int (*open)(const char *name, int flags);
} openers[] = {
	{"uverbs", uverbs_file_open},
};

static int to_errno(long ret)
{
	if (ret >= 0)
		return (int)ret;
	errno = (int)-ret;
	return -1;
}

void cdev_file_init(struct cdev_file *f, const struct cdev_ops *ops)
{
	f->ops = ops;
	atomic_init(&f->descriptors, 0);
	atomic_init(&f->refs, 1);
	atomic_init(&f->foreign, false);
}

void cdev_hold(struct cdev_file *f)
{
	atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
}

void cdev_put(struct cdev_file *f)
{
	if (atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1)
		return;
	rcu_wait();
	f->ops->release(f);
}

/* A reader that found f may come after its last reference went: then it found nothing. */
static bool hold_unless_dead(struct cdev_file *f)
{
	unsigned refs = atomic_load_explicit(&f->refs, memory_order_relaxed);

	do {
		if (!refs)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&f->refs, &refs, refs + 1, memory_order_acquire, memory_order_relaxed));
	return true;
}

struct cdev_file *cdev_get(int fd)
{
	struct cdev_file *f;

	rcu_enter();
	f = cdev_table_load(fd);
	if (f && !hold_unless_dead(f))
		f = NULL;
	rcu_leave();
	return f;
}

static void descriptor_put(struct cdev_file *f)
{
	if (atomic_fetch_sub_explicit(&f->descriptors, 1, memory_order_acq_rel) != 1)
		return;
	/* In a forked child the objects are the parent's: nothing of them is touched, and the
	 * memory stays, since locks in it may be held by threads that do not exist here. */
	if (atomic_load_explicit(&f->foreign, memory_order_relaxed))
		return;
	f->ops->last_close(f);
	cdev_put(f);
}

/* Publishes f under fd, dropping what a close that we did not see left there. */
static void table_store(int fd, struct cdev_file *f)
{
	unsigned end = atomic_load_explicit(&table_end, memory_order_relaxed);
	struct cdev_file *old;

	while (end <= (unsigned)fd &&
	       !atomic_compare_exchange_weak_explicit(&table_end, &end, (unsigned)fd + 1,
						      memory_order_relaxed, memory_order_relaxed))
		;
	atomic_fetch_add_explicit(&f->descriptors, 1, memory_order_relaxed);
	old = atomic_exchange_explicit(&cdev_table[fd], f, memory_order_acq_rel);
	if (old)
		descriptor_put(old);
}

int cdev_install(int fd, struct cdev_file *f)
{
	if (fd < 0 || (unsigned)fd >= CDEV_MAX_FDS)
		return -EMFILE;
	table_store(fd, f);
	return 0;
}

int cdev_open(const char *name, int flags)
{
	for (size_t i = 0; i < array_size(openers); i++)
		if (!strncmp(name, openers[i].prefix, strlen(openers[i].prefix)))
			return to_errno(openers[i].open(name, flags));
	return to_errno(-ENOENT);
}

bool cdev_is_ours(int fd)
{
	return cdev_table_load(fd) != NULL;
}

int cdev_ioctl(int fd, unsigned long request, void *arg)
{
	struct cdev_file *f = cdev_get(fd);
	int ret;

	if (!f)
		return to_errno(-EBADF);
	if (!f->ops->ioctl) {
		/* The system call, because ioctl() would come back to us. */
		ret = (int)syscall(SYS_ioctl, fd, request, arg);
		cdev_put(f);
		return ret;
	}
	if (!atomic_load(&f->foreign))
		ret = f->ops->ioctl(f, request, arg);
	else
		ret = f->ops->ioctl_inherited ? f->ops->ioctl_inherited(f, request, arg) : -EIO;
	cdev_put(f);
	return to_errno(ret);
}

ssize_t cdev_write(int fd, const void *buf, size_t count)
{
	struct cdev_file *f = cdev_get(fd);
	ssize_t ret;

	if (!f)
		return to_errno(-EBADF);
	if (!f->ops->write) {
		/* As in cdev_ioctl; an event channel is a pipe's end that cannot be written to. */
		ret = syscall(SYS_write, fd, buf, count);
		cdev_put(f);
		return ret;
	}
	ret = atomic_load(&f->foreign) ? -EIO : f->ops->write(f, buf, count);
	cdev_put(f);
	return to_errno(ret);
}

void cdev_fstat(int fd, struct stat *st)
{
	struct cdev_file *f = cdev_get(fd);

	if (!f)
		return;
	if (f->ops->fstat)
		f->ops->fstat(f, st);
	cdev_put(f);
}

void cdev_before_read(int fd, off_t position)
{
	struct cdev_file *f = cdev_get(fd);
	int saved_errno = errno;

	if (!f)
		return;
	if (f->ops->before_read)
		f->ops->before_read(f, fd, position);
	cdev_put(f);
	errno = saved_errno;
}

void cdev_mapped(int fd, void *addr, size_t len, off_t offset)
{
	struct cdev_file *f = cdev_get(fd);

	if (!f)
		return;
	if (f->ops->mapped && !atomic_load(&f->foreign))
		f->ops->mapped(f, (uintptr_t)addr, len, offset);
	cdev_put(f);
}

void cdev_unmapping(void *addr, size_t len)
{
	doorbell_unmapping((uintptr_t)addr, len);
}

void cdev_moved(void *from, size_t len, void *to)
{
	doorbell_moved((uintptr_t)from, len, (uintptr_t)to);
}

void cdev_close(int fd)
{
	struct cdev_file *old;

	if (!cdev_table_load(fd))
		return;
	old = atomic_exchange_explicit(&cdev_table[fd], NULL, memory_order_acq_rel);
	if (old)
		descriptor_put(old);
}

void cdev_dup(int fd, int newfd)
{
	struct cdev_file *f;

	if (fd == newfd)
		return;
	f = cdev_get(fd);
	if (!f) {
		/* newfd, if it was a device file, is one no longer. */
		cdev_close(newfd);
		return;
	}
	if (newfd >= 0 && (unsigned)newfd < CDEV_MAX_FDS)
		table_store(newfd, f);
	cdev_put(f);
}

int cdev_open_attr(const char *path, int flags, bool tracked)
{
	return to_errno(attr_file_open(path, flags, tracked));
}

void cdev_fork_prepare(void)
{
	uverbs_event_fork_lock();
	urcu_bp_before_fork();
}

void cdev_fork_parent(void)
{
	urcu_bp_after_fork_parent();
	uverbs_event_fork_unlock();
}

void cdev_fork_child(void)
{
	urcu_bp_after_fork_child();
	uverbs_event_fork_child();
	for (unsigned fd = 0; fd < atomic_load_explicit(&table_end, memory_order_relaxed); fd++) {
		struct cdev_file *f = atomic_load_explicit(&cdev_table[fd], memory_order_relaxed);

		if (f)
			atomic_store_explicit(&f->foreign, true, memory_order_relaxed);
	}
}
