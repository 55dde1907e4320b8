// SPDX-License-Identifier: BSD-2-Clause
/*
 * The descriptor table: which numbers of this process are device files, and which file each is.
 * Every ioctl, close and dup of the program and the data path look at it, so a lookup is one load
 * from an array; files are freed when no reader holds them.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/hazard.h"
#include "driver/file/cdev_file.h"

cdev_entry cdev_table[CDEV_LOW_FDS];
_Atomic(cdev_entry *) cdev_high_tables[(1u << 31) / CDEV_LOW_FDS];
static _Atomic(unsigned) table_end; /* no entry at this place or beyond was ever used */

void cdev_file_init(struct cdev_file *f, const struct cdev_ops *ops)
{
	f->ops = ops;
	atomic_init(&f->descriptors, 0);
	atomic_init(&f->refs, 1);
	atomic_init(&f->foreign, false);
	f->id = 0;
}

void cdev_hold(struct cdev_file *f)
{
	atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
}

void cdev_put(struct cdev_file *f)
{
	if (atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1)
		return;
	hazard_wait(f, sizeof(*f));
	f->ops->release(f);
}

/* A reader may find f after its last reference went: then it counts as not found. */
static bool cdev_hold_unless_dead(struct cdev_file *f)
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

	hazard_enter();
	f = cdev_table_take(fd);
	if (f && !cdev_hold_unless_dead(f))
		f = NULL;
	hazard_leave();
	return f;
}

bool cdev_table_is_true(int fd)
{
	struct cdev_file *f;
	uint64_t id = 0;

	if (likely(!cdev_table_load(fd)))
		return false;
	hazard_enter();
	f = cdev_table_take(fd);
	if (f)
		id = f->id;
	hazard_leave();
	return f && (!id || hidden_id(fd) == id);
}

static void cdev_descriptor_put(struct cdev_file *f)
{
	if (atomic_fetch_sub_explicit(&f->descriptors, 1, memory_order_acq_rel) != 1)
		return;
	/* In a forked child the objects are the parent's: nothing of them is touched, and the
	 * memory stays, because threads that do not exist here may hold locks in it. */
	if (atomic_load_explicit(&f->foreign, memory_order_relaxed))
		return;
	if (f->ops->last_close)
		f->ops->last_close(f);
	cdev_put(f);
}

/* The entry of fd, which is made if there is none yet; NULL without memory. */
static cdev_entry *cdev_table_make(int fd)
{
	const size_t bytes = CDEV_LOW_FDS * sizeof(cdev_entry);
	cdev_entry *at = cdev_table_at(fd), *none = NULL;
	void *fresh;

	if (at || fd < 0)
		return at;
	fresh = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh == MAP_FAILED)
		return NULL;
	if (!atomic_compare_exchange_strong(&cdev_high_tables[(unsigned)fd / CDEV_LOW_FDS], &none,
					    fresh))
		syscall(SYS_munmap, fresh, bytes);
	return cdev_table_at(fd);
}

/* Publishes f at the entry of fd, dropping what a close that we did not see left there. */
static void cdev_table_store(cdev_entry *at, int fd, struct cdev_file *f)
{
	unsigned end = atomic_load_explicit(&table_end, memory_order_relaxed);
	struct cdev_file *old;

	while (end <= (unsigned)fd &&
	       !atomic_compare_exchange_weak_explicit(&table_end, &end, (unsigned)fd + 1,
						      memory_order_relaxed, memory_order_relaxed))
		;
	atomic_fetch_add_explicit(&f->descriptors, 1, memory_order_relaxed);
	old = atomic_exchange_explicit(at, f, memory_order_acq_rel);
	if (old)
		cdev_descriptor_put(old);
}

int cdev_install(int fd, struct cdev_file *f)
{
	cdev_entry *at = cdev_table_make(fd);

	if (!at)
		return fd < 0 ? -EBADF : -ENOMEM;
	f->id = hidden_id(fd);
	cdev_table_store(at, fd, f);
	return 0;
}

void cdev_table_clear(int fd)
{
	struct cdev_file *old;

	if (!cdev_table_load(fd))
		return;
	old = atomic_exchange_explicit(cdev_table_at(fd), NULL, memory_order_acq_rel);
	if (old)
		cdev_descriptor_put(old);
}

/* The first number from fd on that may have been used, or UINT_MAX.  Whole parts of the table were not: a program may
 * have a descriptor of any number. */
static unsigned cdev_table_from(unsigned fd)
{
	unsigned end = atomic_load_explicit(&table_end, memory_order_relaxed);

	while (fd < end && !cdev_table_at((int)fd))
		fd = (fd / CDEV_LOW_FDS + 1) * CDEV_LOW_FDS;
	return fd < end ? fd : UINT_MAX;
}

void cdev_table_clear_range(unsigned first, unsigned last)
{
	for (unsigned fd = cdev_table_from(first); fd < UINT_MAX && fd <= last;
	     fd = cdev_table_from(fd + 1))
		cdev_table_clear((int)fd);
}

void cdev_table_dup(int fd, int newfd)
{
	struct cdev_file *f;
	cdev_entry *at;

	if (fd == newfd)
		return;
	f = cdev_table_is_true(fd) ? cdev_get(fd) : NULL;
	if (!f) {
		/* newfd, if it was a device file, is none any longer. */
		cdev_table_clear(newfd);
		return;
	}
	at = cdev_table_make(newfd);
	if (at)
		cdev_table_store(at, newfd, f);
	cdev_put(f);
}

/*
 * The kernel copies descriptors before it copies memory.  So the table may have a descriptor that
 * another thread of the parent opened in between and that the child does not have; the next file
 * with that number would be taken for it.
 */
void cdev_table_fork_child(void)
{
	for (unsigned fd = cdev_table_from(0); fd < UINT_MAX; fd = cdev_table_from(fd + 1)) {
		struct cdev_file *f = cdev_table_load((int)fd);

		if (f && syscall(SYS_fcntl, fd, F_GETFD) < 0)
			atomic_store_explicit(cdev_table_at((int)fd), NULL, memory_order_relaxed);
		else if (f && !f->ops->shared)
			atomic_store_explicit(&f->foreign, true, memory_order_relaxed);
	}
}

/* A descriptor that came over a socket has a high number, which this replaces. */
int cdev_descriptor(int fd, int flags)
{
	int low = fcntl(fd, flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
	int ret = low < 0 ? -errno : low;

	close(fd);
	if (low >= 0 && flags & O_NONBLOCK)
		fcntl(low, F_SETFL, O_NONBLOCK);
	return ret;
}
