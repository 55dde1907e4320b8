/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into other people's programs: who waits for an event of a completion channel waits by poll,
 * or by epoll if POLLER_BY says so, as programs with a loop of events do, and reads it then.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <infiniband/verbs.h>

typedef int get_event_fn(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context);

/* Programs that measure wait in one thread, for one channel. */
static int epoll_of(int fd)
{
	static int set = -1;
	struct epoll_event event = {.events = EPOLLIN};

	if (set < 0) {
		set = epoll_create1(EPOLL_CLOEXEC);
		if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
			abort();
	}
	return set;
}

static void poller_wait(int fd)
{
	const char *by = getenv("POLLER_BY");
	struct pollfd one = {.fd = fd, .events = POLLIN};
	struct epoll_event event;
	int n;

	do
		n = by && !strcmp(by, "epoll") ? epoll_wait(epoll_of(fd), &event, 1, -1)
					       : poll(&one, 1, -1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		abort();
}

__attribute__((visibility("default"))) int ibv_get_cq_event(struct ibv_comp_channel *channel,
							    struct ibv_cq **cq, void **context)
{
	static get_event_fn *get_event;

	if (!get_event)
		*(void **)&get_event = dlsym(RTLD_NEXT, "ibv_get_cq_event");
	poller_wait(channel->fd);
	return get_event(channel, cq, context);
}
