// SPDX-License-Identifier: BSD-2-Clause
#include "preload/program_memory.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/checkers.h"

/* The smallest page: whether a byte can be read is the same for all bytes of a page. */
#define PROGRAM_PAGE 4096u
#define NO_SUCH_HOW  (-1)

bool program_read(void *to, const void *from, size_t n)
{
	struct iovec ours = {to, n}, theirs = {(void *)(uintptr_t)from, n};
	int saved_errno = errno;
	/* Not of the process: its main thread may have ended. */
	ssize_t moved = process_vm_readv(gettid(), &ours, 1, &theirs, 1, 0);
	bool forbidden = moved < 0 && errno != EFAULT;

	errno = saved_errno;
	if (forbidden)
		memcpy(to, from, n);
	return forbidden || moved == (ssize_t)n;
}

/*
 * The kernel reads the mask of rt_sigprocmask before it looks at the first argument, which is none
 * here, so nothing else happens.  Filters of seccomp let that call pass; some kill a program that
 * calls process_vm_readv.
 */
static bool word_can_be_read(const void *at)
{
	const void *word = (const void *)((uintptr_t)at & ~(uintptr_t)(sizeof(uint64_t) - 1));
	int saved_errno = errno;
	/* NULL stands for no mask. */
	bool read =
		word && (!syscall(SYS_rt_sigprocmask, NO_SUCH_HOW, word, NULL, sizeof(uint64_t)) ||
			 errno != EFAULT);

	errno = saved_errno;
	return read;
}

/*
 * Asked once, as another thread of the program may be changing the environment later; when this
 * library begins, or at the first question, which the constructor of another library may have.
 */
static bool in_valgrind(void)
{
	static atomic_int known;
	int answer = atomic_load_explicit(&known, memory_order_relaxed);

	if (!answer) {
		answer = runs_in_valgrind() ? 1 : -1;
		atomic_store_explicit(&known, answer, memory_order_relaxed);
	}
	return answer > 0;
}

static __attribute__((constructor)) void ask_for_valgrind(void)
{
	(void)in_valgrind();
}

/* Valgrind would complain about bytes beside this one that the program has never written. */
bool program_byte_can_be_read(const void *at)
{
	char byte;

	return in_valgrind() ? program_read(&byte, at, 1) : word_can_be_read(at);
}

bool program_word_read(uint64_t *to, const void *from)
{
	const char *first = from;

	if (!program_byte_can_be_read(first) || !program_byte_can_be_read(first + sizeof(*to) - 1))
		return false;
	memcpy(to, from, sizeof(*to));
	return true;
}

bool program_path_is_valid(const char *path)
{
	size_t len = 0;

	while (len < PATH_MAX) {
		size_t in_page = PROGRAM_PAGE - ((uintptr_t)path + len) % PROGRAM_PAGE, n;

		if (!program_byte_can_be_read(path + len))
			return false;
		n = strnlen(path + len, in_page);
		len += n;
		if (n < in_page)
			return len < PATH_MAX;
	}
	return false;
}
