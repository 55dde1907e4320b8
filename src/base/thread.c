// SPDX-License-Identifier: BSD-2-Clause
#include "base/thread.h"

#include <link.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000u /* the shortest slice that the kernel has */

/* The kernel keeps 15 characters of a name. */
static const char *const own_thread_names[OWN_THREADS] = {
	[OWN_THREAD_ENGINE] = "softhca-engine", [OWN_THREAD_CONTROL] = "softhca-control",
	[OWN_THREAD_KEEPER] = "softhca-keep",	[OWN_THREAD_FEEDER] = "softhca-feeder",
	[OWN_THREAD_DPA] = "softhca-dpa",
};

/* The C library takes thread-local storage out of each thread's stack, as much as there was when the
 * program started.  A program may have megabytes of it. */
static size_t tls_bytes;

static int tls_add(struct dl_phdr_info *object, size_t size, void *arg)
{
	(void)size;
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &object->dlpi_phdr[i];

		if (h->p_type == PT_TLS)
			*(size_t *)arg += h->p_memsz + h->p_align;
	}
	return 0;
}

/* At the start, because later another thread may have the lock that this takes. */
static __attribute__((constructor)) void tls_init(void)
{
	(void)dl_iterate_phdr(tls_add, &tls_bytes);
}

static void own_thread_sigmask(sigset_t *mask, bool faults)
{
	static const int open[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};

	sigfillset(mask);
	for (size_t i = 0; faults && i < array_size(open); i++)
		sigdelset(mask, open[i]);
}

int own_thread_start(pthread_t *thread, const struct own_thread_attr *attr, void *(*main)(void *),
		     void *arg)
{
	pthread_attr_t how;
	sigset_t mask, saved;
	int ret = pthread_attr_init(&how);

	if (ret)
		return -ret;
	own_thread_sigmask(&mask, attr->faults);
	ret = pthread_attr_setstacksize(&how, attr->stack_bytes + tls_bytes);
	if (!ret)
		ret = pthread_sigmask(SIG_SETMASK, &mask, &saved);
	if (!ret) {
		ret = pthread_create(thread, &how, main, arg);
		pthread_sigmask(SIG_SETMASK, &saved, NULL);
	}
	pthread_attr_destroy(&how);
	if (!ret)
		pthread_setname_np(*thread, own_thread_names[attr->name]);
	return -ret;
}

void own_thread_short_slices(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {0}; /* checkers of memory do not know that the kernel fills it */

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) ||
	    (attr.policy != SCHED_OTHER && attr.policy != SCHED_BATCH))
		return;
	attr.size = sizeof(attr);
	attr.runtime = SLICE_NS;
	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}
