// SPDX-License-Identifier: BSD-2-Clause
#include "reach/alive.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/rseq.h"
#include "base/checkers.h"
#include "reach/proc.h"

/* A number in private memory, at the same address for as long as the program runs.  It is drawn
 * once, because the process may have laid itself open several times. */
static uint64_t cookie;

/* The number of a namespace; 0: unknown, or the system has no such namespaces. */
static uint64_t namespace_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

static int alive_mutex_init(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;
	int ret = pthread_mutexattr_init(&attr);

	if (ret)
		return ret;
	ret = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!ret)
		ret = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (!ret)
		ret = pthread_mutex_init(m, &attr);
	pthread_mutexattr_destroy(&attr);
	return ret;
}

void alive_place(struct alive *a)
{
	a->pid_namespace = namespace_of("/proc/thread-self/ns/pid");
	a->time_namespace = namespace_of("/proc/thread-self/ns/time");
}

bool alive_is_near(const struct alive *a)
{
	return a->pid_namespace && a->pid_namespace == namespace_of("/proc/thread-self/ns/pid") &&
	       a->time_namespace == namespace_of("/proc/thread-self/ns/time");
}

int alive_begin(struct alive *a)
{
	int ret;

	if (gettid() == getpid())
		return -EINVAL;
	if (!cookie && getrandom(&cookie, sizeof(cookie), GRND_NONBLOCK) != sizeof(cookie))
		return -EAGAIN;
	a->cookie = cookie;
	a->cookie_at = (uint64_t)(uintptr_t)&cookie;
	alive_place(a);
	ret = alive_mutex_init(&a->held);
	if (!ret)
		ret = pthread_mutex_trylock(&a->held);
	return -ret;
}

/*
 * Frees the word only.  Peers can write the rest of the mutex, and pthread_mutex_unlock would
 * follow what they wrote.  The kernel checks what it follows when the thread ends, and leaves a
 * word alone that is not the thread's.
 */
void alive_end(struct alive *a)
{
	_Atomic(uint32_t) *word = (_Atomic(uint32_t) *)(void *)&a->held;
	uint32_t mine = (uint32_t)gettid();

	if (atomic_compare_exchange_strong(word, &mine, 0))
		tsan_unlocked(&a->held);
}

/* Every process that maps the word can write it, and would so make us reach into any process it
 * likes. */
static bool thread_is_of(pid_t tid, pid_t pid)
{
	return !syscall(SYS_tgkill, pid, tid, 0) || errno != ESRCH;
}

uint32_t alive_probe(const struct alive *a, pid_t pid)
{
	uint32_t tid = alive_now(a);
	uint64_t expected = a->cookie, seen = 0;
	struct iovec here = {&seen, sizeof(seen)};
	struct iovec there = {(void *)(uintptr_t)a->cookie_at, sizeof(seen)};

	if (!rseq_available() || !tid || (pid_t)tid == pid || !alive_is_near(a) ||
	    !thread_is_of((pid_t)tid, pid) || !rights_cover_ours(pid))
		return 0;
	if (process_vm_readv((pid_t)tid, &here, 1, &there, 1, 0) != sizeof(seen) ||
	    seen != expected)
		return 0;
	/* The word still names the thread that we asked. */
	return atomic_load(alive_word(a)) == tid ? tid : 0;
}
