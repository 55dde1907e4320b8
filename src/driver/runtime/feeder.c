// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/feeder.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/thread.h"
#include "wire/wire.h"

#define STACK_BYTES (128u << 10)
/* A program may close our descriptors behind the C library's back.  The thread looks at intervals
 * whether that has happened, and then ends. */
#define LOOK_MS 1000

struct feeder {
	struct wire_process *wire_process;
	void (*kick)(void *user);
	void *user;
	struct hidden epoll;
	struct hidden end; /* readable from the start, armed at the end */
	_Atomic(bool) ends;
	pthread_t thread;
};

/* Watches the descriptor for one report. */
static int feeder_watch(struct feeder *f, int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};

	if (!hidden_ours(&f->epoll))
		return -EBADF;
	if (!epoll_ctl(f->epoll.fd, EPOLL_CTL_MOD, fd, &event) ||
	    (errno == ENOENT && !epoll_ctl(f->epoll.fd, EPOLL_CTL_ADD, fd, &event)))
		return 0;
	return -errno;
}

bool feeder_arm(struct feeder *f)
{
	int fds[WIRE_PROCESS_LINKS];
	bool armed = true;
	unsigned n;

	if (!f)
		return true;
	n = wire_process_fds(f->wire_process, fds);
	for (unsigned i = 0; i < n; i++)
		armed &= !feeder_watch(f, fds[i]);
	return armed;
}

static void *feeder_main(void *arg)
{
	struct feeder *f = arg;
	struct epoll_event event;

	while (!atomic_load(&f->ends) && hidden_ours(&f->epoll))
		if (epoll_wait(f->epoll.fd, &event, 1, LOOK_MS) > 0)
			f->kick(f->user);
	return NULL;
}

static void feeder_free(struct feeder *f)
{
	hidden_close(&f->epoll);
	hidden_close(&f->end);
	free(f);
}

static int feeder_open(struct feeder *f)
{
	f->epoll = hidden_keep(epoll_create1(EPOLL_CLOEXEC));
	if (f->epoll.fd < 0)
		return -errno;
	f->end = hidden_keep(eventfd(1, EFD_CLOEXEC));
	return f->end.fd < 0 ? -errno : 0;
}

int feeder_start(struct wire_process *h, void (*kick)(void *user), void *user, struct feeder **out)
{
	const struct own_thread_attr attr = {
		.name = OWN_THREAD_FEEDER,
		.stack_bytes = STACK_BYTES,
	};
	int fds[WIRE_PROCESS_LINKS], ret;
	struct feeder *f;

	*out = NULL;
	if (!wire_process_fds(h, fds))
		return 0;
	f = malloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	*f = (struct feeder){
		.wire_process = h,
		.kick = kick,
		.user = user,
		.epoll = HIDDEN_NONE,
		.end = HIDDEN_NONE,
	};
	ret = feeder_open(f);
	if (!ret)
		ret = own_thread_start(&f->thread, &attr, feeder_main, f);
	if (ret)
		feeder_free(f);
	else
		*out = f;
	return ret;
}

void feeder_stop(struct feeder *f)
{
	if (!f)
		return;
	atomic_store(&f->ends, true);
	if (hidden_ours(&f->end))
		(void)feeder_watch(f, f->end.fd);
	pthread_join(f->thread, NULL);
	feeder_free(f);
}
