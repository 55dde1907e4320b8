// SPDX-License-Identifier: BSD-2-Clause
/* The functions make system calls directly for signals and children, because libc's functions are
 * interposed, or a thread can be cancelled in them. */
#include "base/memory_file.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define XFSZ_BIT    (1ull << (SIGXFSZ - 1))
#define STACK_BYTES 8192u

static bool xfsz_pending(void)
{
	uint64_t pending = 0;

	syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	return pending & XFSZ_BIT;
}

/* Takes the signal away.  The kernel has sent it to the thread that asked for too much, which
 * blocks it. */
static void xfsz_take(void)
{
	const uint64_t set = XFSZ_BIT;
	const struct timespec now = {0};

	syscall(SYS_rt_sigtimedwait, &set, NULL, &now, sizeof(set));
}

struct change {
	int fd;
	const char *text; /* NULL: only the size changes */
	uint64_t bytes;
	uint64_t at;
	int ret;
};

/* Stores in a loop: a limit lets the part of a text through that is below it, and a bad address
 * what stands in front of it. */
static int change_store(const struct change *c)
{
	uint64_t done = 0;

	while (done < c->bytes) {
		ssize_t n = pwrite(c->fd, c->text + done, c->bytes - done, (off_t)(c->at + done));

		if (n <= 0)
			return n < 0 ? -errno : -EFBIG;
		done += (uint64_t)n;
	}
	return 0;
}

static int change_make(const struct change *c)
{
	int ret = c->text ? change_store(c) : 0;

	if (ret)
		return ret;
	return ftruncate(c->fd, (off_t)(c->at + c->bytes)) ? -errno : 0;
}

/* A process of its own has limits of its own: any process may raise the soft limit to the hard one,
 * and some may raise the hard one. */
static int change_unlimited(void *arg)
{
	struct change *c = arg;
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	if (syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, &limit, NULL) &&
	    !syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, &limit, NULL);
	}
	c->ret = change_make(c);
	return 0;
}

/*
 * The child shares all memory and descriptors, we wait for its end, and no signal tells of it.  So
 * neither the program nor its fork() handlers hear of the child.
 */
static int change_in_child(struct change *c)
{
	char stack[STACK_BYTES] __attribute__((aligned(16)));
	int pid = clone(change_unlimited, stack + sizeof(stack),
			CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_FS, c);

	if (pid < 0)
		return -EFBIG;
	while (syscall(SYS_wait4, pid, NULL, __WCLONE, NULL) < 0 && errno == EINTR)
		;
	return c->ret;
}

static int change_file(struct change *c)
{
	const uint64_t all = ~0ull;
	uint64_t saved = 0;
	bool pending;

	/* Block all signals: the program's handlers must not run in the child. */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &saved, sizeof(all));
	pending = xfsz_pending();
	c->ret = change_make(c);
	if (c->ret == -EFBIG) {
		if (!pending)
			xfsz_take();
		c->ret = change_in_child(c);
	}
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved, NULL, sizeof(saved));
	if (c->ret == -EFBIG)
		log_error("RLIMIT_FSIZE allows no file of %lu bytes, not even in memory",
			  (unsigned long)(c->at + c->bytes));
	return c->ret;
}

int memory_file_resize(int fd, uint64_t bytes)
{
	return change_file(&(struct change){.fd = fd, .bytes = bytes});
}

int memory_file_store(int fd, const char *text, size_t n)
{
	return change_file(&(struct change){.fd = fd, .text = text, .bytes = n});
}

int memory_file_message(const char *name, const void *bytes, size_t n)
{
	return memory_file_pieces(name, NULL, 0, bytes, n);
}

int memory_file_pieces(const char *name, const void *head, size_t nhead, const void *bytes,
		       size_t n)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int ret = 0;

	if (fd < 0)
		return -ENOMEM;
	if (nhead)
		ret = memory_file_store(fd, head, nhead);
	if (!ret)
		ret = change_file(
			&(struct change){.fd = fd, .text = bytes, .bytes = n, .at = nhead});
	if (!ret && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		return fd;
	close(fd);
	return ret == -EFAULT ? ret : -ENOMEM;
}

#define PAGE 4096u

/* Maps one page and grows it, because the limit of locked memory counts new mappings.  A page may
 * grow after it is unlocked. */
static void *sparse_grow(size_t bytes, int flags, int fd, uint64_t offset)
{
	void *page = mmap(NULL, PAGE, PROT_NONE, flags, fd, (off_t)offset);
	long grown;

	if (page == MAP_FAILED)
		return page;
	(void)munlock(page, PAGE);
	/* Calls the kernel and not the program's mremap, because nobody else should hear of this
	 * mapping. */
	grown = syscall(SYS_mremap, page, (size_t)PAGE, bytes, MREMAP_MAYMOVE, NULL);
	if (grown == -1) {
		munmap(page, PAGE);
		return MAP_FAILED;
	}
	return (void *)grown;
}

/* Maps without rights at first, because then locking cannot fill the mapping. */
void *sparse_map(size_t bytes, int prot, int fd, uint64_t offset)
{
	int flags = (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | MAP_NORESERVE;
	void *p = mmap(NULL, bytes, PROT_NONE, flags, fd, (off_t)offset);

	if (p == MAP_FAILED && errno == EAGAIN)
		p = sparse_grow(bytes, flags, fd, offset);
	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, bytes, MADV_DONTDUMP);
	(void)munlock(p, bytes);
	if (prot != PROT_NONE && mprotect(p, bytes, prot)) {
		int error = errno;

		munmap(p, bytes);
		errno = error;
		return NULL;
	}
	return p;
}
