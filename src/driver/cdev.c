// SPDX-License-Identifier: BSD-2-Clause
/*
 * The doors of the driver: they turn system calls on a descriptor into operations of the file that
 * it names.  A thread is not cancelled inside them.
 */
#include "driver/cdev.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/explain.h"
#include "base/hazard.h"
#include "base/descriptor.h"
#include "dpa/debugger.h"
#include "driver/doorbell/doorbell.h"
#include "driver/emulation/function.h"
#include "driver/file/cdev_file.h"
#include "driver/hooks/hooks.h"
#include "driver/runtime/drive.h"
#include "driver/runtime/fault.h"
#include "driver/runtime/lock_all.h"
#include "driver/runtime/process.h"
#include "driver/runtime/userfault.h"
#include "driver/ucma/ucma.h"
#include "driver/umad/umad.h"
#include "driver/uverbs/core/event.h"
#include "driver/uverbs/core/inject.h"
#include "driver/uverbs/objects/objects.h"
#include "driver/uverbs/uverbs.h"

/* Device names below /dev/infiniband, by prefix. */
static const struct {
	const char *prefix;
	int (*open)(const char *name, int flags);
	bool waits; /* waits for other programs; its open says when it may be cancelled */
} openers[] = {
	{"uverbs", uverbs_file_open, false}, {"umad", umad_device_open, false},
	{"issm", issm_device_open, true},    {"uio", uio_file_open, false},
	{"rdma_cm", ucma_file_open, false},
};

static int to_errno(long ret)
{
	if (ret >= 0)
		return (int)ret;
	errno = (int)-ret;
	return -1;
}

static ssize_t to_size(ssize_t ret)
{
	return ret >= 0 ? ret : to_errno(ret);
}

static void cancelled_put(void *f)
{
	cdev_put(f);
}

int cdev_ensure_tree(void)
{
	return to_errno(process_ensure_fabric());
}

bool cdev_keeps_signal(int signum)
{
	return fault_is_ours(signum);
}

int cdev_sigaction(int signum, const struct sigaction *act, struct sigaction *oldact)
{
	return fault_sigaction(signum, act, oldact);
}

void cdev_signal_stack(size_t bytes)
{
	fault_signal_stack(bytes);
}

int cdev_open(const char *name, int flags)
{
	no_cancellation();

	for (size_t i = 0; i < array_size(openers); i++) {
		if (strncmp(name, openers[i].prefix, strlen(openers[i].prefix)) != 0)
			continue;
		if (openers[i].waits)
			cancel_restore(&cancel_state_);
		return to_errno(openers[i].open(name, flags));
	}
	return to_errno(-ENOENT);
}

bool cdev_is_ours(int fd)
{
	return cdev_table_is_true(fd);
}

bool cdev_is_listed(int fd)
{
	return cdev_table_load(fd) != NULL;
}

bool cdev_adopt(int fd, unsigned long request)
{
	return umad_device_adopt(fd, request);
}

ssize_t cdev_write_failed(int fd)
{
	no_cancellation();

	return to_size(ucma_is_foreign(fd) ? -EACCES : -EBADF);
}

/* Requests that the kernel answers before it asks a driver. */
static bool is_of_all_files(unsigned long request)
{
	switch ((uint32_t)request) {
	case FIOCLEX:
	case FIONCLEX:
	case FIONBIO:
	case FIOASYNC:
		return true;
	default:
		return false;
	}
}

int cdev_ioctl(int fd, unsigned long request, void *arg)
{
	no_cancellation();
	struct cdev_file *f = cdev_get(fd);
	int ret;

	if (!f)
		return to_errno(-EBADF);
	if (!f->ops->ioctl || is_of_all_files(request)) {
		/* A plain system call, because ioctl() would come back to us. */
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

/* A thread that is cancelled while it waits leaves the file as it was. */
static ssize_t shared_write(struct cdev_file *f, int fd, const void *buf, size_t count,
			    const int *cancel)
{
	ssize_t ret;

	pthread_cleanup_push(cancelled_put, f);
	cancel_restore(cancel);
	ret = f->ops->write(f, fd, buf, count);
	cancel_hold();
	pthread_cleanup_pop(0);
	return ret;
}

static ssize_t shared_read(struct cdev_file *f, int fd, void *buf, size_t count, const int *cancel)
{
	ssize_t ret;

	pthread_cleanup_push(cancelled_put, f);
	cancel_restore(cancel);
	ret = f->ops->read(f, fd, buf, count);
	cancel_hold();
	pthread_cleanup_pop(0);
	return ret;
}

ssize_t cdev_write(int fd, const void *buf, size_t count)
{
	no_cancellation();
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
	if (f->ops->shared)
		ret = shared_write(f, fd, buf, count, &cancel_state_);
	else
		ret = atomic_load(&f->foreign) ? -EIO : f->ops->write(f, fd, buf, count);
	cdev_put(f);
	return to_size(ret);
}

/* The program is about to read text at position; the read itself shows what went wrong. */
static void cdev_renew(struct cdev_file *f, int fd, off_t position)
{
	int saved_errno = errno;

	if (!f->ops->before_read)
		return;
	if (position == CDEV_WHERE_IT_STANDS)
		position = lseek(fd, 0, SEEK_CUR);
	f->ops->before_read(f, fd, position);
	errno = saved_errno;
}

/* Returns true if the read has failed. */
static bool cdev_wait(struct cdev_file *f, int fd, const int *cancel, ssize_t *done)
{
	int ret = f->ops->wait(f, fd, cancel);

	if (ret)
		*done = to_errno(ret);
	return ret;
}

bool cdev_read(int fd, void *buf, size_t count, ssize_t *done)
{
	no_cancellation();
	struct cdev_file *f = cdev_get(fd);
	bool ours;

	if (!f)
		return false;
	if (f->ops->wait && !atomic_load(&f->foreign))
		return cdev_wait(f, fd, &cancel_state_, done);
	ours = f->ops->read != NULL;
	if (ours)
		*done = to_size(shared_read(f, fd, buf, count, &cancel_state_));
	else
		cdev_renew(f, fd, CDEV_WHERE_IT_STANDS);
	cdev_put(f);
	return ours;
}

bool cdev_moves_bytes(int fd)
{
	no_cancellation();
	struct cdev_file *f = cdev_get(fd);
	bool moves;

	if (!f)
		return false;
	moves = f->ops->read != NULL;
	cdev_put(f);
	return moves;
}

void cdev_fstat(int fd, struct stat *st)
{
	no_cancellation();
	struct cdev_file *f = cdev_get(fd);

	if (!f)
		return;
	if (f->ops->fstat)
		f->ops->fstat(f, st);
	cdev_put(f);
}

void cdev_before_read(int fd, off_t position)
{
	no_cancellation();
	struct cdev_file *f = cdev_get(fd);

	if (!f)
		return;
	cdev_renew(f, fd, position);
	cdev_put(f);
}

int cdev_map(int fd, size_t len, off_t offset)
{
	no_cancellation();
	struct cdev_file *f = cdev_get(fd);
	int ret = fd;

	if (!f)
		return fd;
	if (f->ops->map)
		ret = atomic_load(&f->foreign) ? -EIO : f->ops->map(f, len, offset);
	cdev_put(f);
	return to_errno(ret);
}

void cdev_mapped(int fd, void *addr, size_t len, off_t offset)
{
	no_cancellation();
	struct cdev_file *f = cdev_get(fd);

	if (!f)
		return;
	if (f->ops->mapped && !atomic_load(&f->foreign))
		f->ops->mapped(f, (uintptr_t)addr, len, offset);
	cdev_put(f);
}

void cdev_unmapping(void *addr, size_t len)
{
	no_cancellation();
	int saved_errno = errno;

	if (unlikely(doorbell_unmapping((uintptr_t)addr, len)))
		function_unmapped();
	ushare_unmapping((uintptr_t)addr, len);
	errno = saved_errno;
}

void cdev_moved(void *from, size_t len, void *to)
{
	no_cancellation();
	int saved_errno = errno;

	doorbell_moved((uintptr_t)from, len, (uintptr_t)to);
	userfault_moved((uintptr_t)from, len, (uintptr_t)to);
	ushare_unmapping((uintptr_t)from, len);
	errno = saved_errno;
}

void cdev_cancelled(void)
{
	drive_cancelled();
}

bool cdev_any_channel(void)
{
	return unlikely(uchannel_any_completions());
}

bool cdev_is_channel(int fd)
{
	return cdev_is_listed(fd) && uchannel_has_completions(fd);
}

bool cdev_event_comes(int fd)
{
	/* Each read of the program comes here, of whatever file. */
	if (likely(!cdev_is_listed(fd)))
		return false;

	no_cancellation();

	return uchannel_event_comes(fd);
}

uint32_t cdev_completion_events(void)
{
	return drive_events(DRIVE_ALL_CHANNELS);
}

int cdev_wait_begin(uint32_t events)
{
	int fd = drive_wait_begin(events);

	return fd == DRIVE_ASK ? CDEV_WAIT_ASK : fd;
}

void cdev_wait_end(bool woken)
{
	drive_wait_end(woken);
}

int cdev_lock_all(int flags)
{
	no_cancellation();

	return lock_all(flags);
}

/* Reads the range as the kernel does: the program may have given no valid address.  If
 * process_vm_readv is forbidden, the range is all memory. */
static struct uffdio_range serving_range(const void *arg)
{
	struct uffdio_range range = {0, 0};
	struct iovec local = {&range, sizeof(range)},
		     remote = {(void *)(uintptr_t)arg, sizeof(range)};

	if (process_vm_readv(gettid(), &local, 1, &remote, 1, 0) < 0 && errno != EFAULT)
		return (struct uffdio_range){0, UINT64_MAX};
	return range;
}

void cdev_serving_begin(const void *arg)
{
	no_cancellation();
	int saved_errno = errno;
	struct uffdio_range range = serving_range(arg);

	ushare_serving_begin(range.start, range.len);
	errno = saved_errno;
}

void cdev_serving_end(void)
{
	ushare_serving_end();
}

void cdev_serving_fork_lock(void)
{
	ushare_fork_lock();
}

void cdev_serving_fork_unlock(void)
{
	ushare_fork_unlock();
}

void cdev_close(int fd)
{
	no_cancellation();

	cdev_table_clear(fd);
}

void cdev_close_range(unsigned first, unsigned last)
{
	no_cancellation();

	cdev_table_clear_range(first, last);
}

void cdev_dup(int fd, int newfd)
{
	no_cancellation();

	cdev_table_dup(fd, newfd);
}

int cdev_open_attr(const char *path, int flags, bool tracked, const struct stat *look)
{
	no_cancellation();

	return to_errno(attr_file_open(path, flags, tracked ? look : NULL));
}

int cdev_open_attr_for_writing(const char *path, int flags, bool tracked, const struct stat *look)
{
	no_cancellation();

	return to_errno(attr_file_create(path, flags, tracked ? look : NULL));
}

/* ---- fork(2): calls the parts that have something to do around it, in their order ---- */

void cdev_fork_prepare(void)
{
	no_cancellation();

	hooks_fork_prepare();
	process_fork_prepare();
	uverbs_event_fork_lock();
	dpa_debugger_fork_lock();
}

void cdev_fork_parent(void)
{
	no_cancellation();

	dpa_debugger_fork_unlock();
	uverbs_event_fork_unlock();
	process_fork_parent();
	hooks_fork_done();
}

void cdev_fork_child(void)
{
	no_cancellation();

	explain_fork_child();
	/* First, as a thread that is not here may have held its lock, which each mapping takes. */
	doorbell_fork_child();
	hazard_fork_child();
	dpa_debugger_fork_unlock();
	uverbs_event_fork_child();
	inject_fork_child();
	function_fork_child();
	cdev_table_fork_child();
	hidden_fork_child();
	process_fork_child();
	hooks_fork_done();
}
