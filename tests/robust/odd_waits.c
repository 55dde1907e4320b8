// SPDX-License-Identifier: BSD-2-Clause
/* odd_waits DEVICE: calls that fail, and such as wait in vain, say of a completion channel what they say of a pipe. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "verbs_device.h"

#define SHORT_MS 3
#define MANY	 100u

static int set_of(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		device_die("epoll: %m");
	return set;
}

struct odd {
	int fd, set, negative;
	struct epoll_event *no_events; /* memory that is not there */
	struct pollfd *no_fds;
};

static int odd_poll(int fd, short events, short *revents, int ms)
{
	struct pollfd fds[] = {{.fd = fd, .events = events}, {.fd = -1, .events = POLLIN}};
	int n = poll(fds, 2, ms);

	*revents = (short)(fds[0].revents | fds[1].revents);
	return n;
}

static int odd_ppoll(int fd, const struct timespec *time)
{
	return ppoll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, time, NULL);
}

static int odd_select(int n, int fd, int other, struct timeval *time, short *left)
{
	fd_set r;
	int ret;

	FD_ZERO(&r);
	FD_SET(fd, &r);
	FD_SET(other, &r);
	ret = select(n ? n : fd + 1, &r, NULL, NULL, time);
	*left = (short)FD_ISSET(fd, &r);
	return ret;
}

/* As many as the program may have files. */
static int odd_most(int fd)
{
	struct rlimit files, few = {.rlim_cur = MANY};
	struct pollfd fds[MANY];
	int n, saved_errno;

	for (unsigned i = 0; i < MANY; i++)
		fds[i] = (struct pollfd){.fd = i ? -1 : fd, .events = POLLIN};
	getrlimit(RLIMIT_NOFILE, &files);
	few.rlim_max = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
	n = poll(fds, MANY, SHORT_MS);
	saved_errno = errno;
	setrlimit(RLIMIT_NOFILE, &files);
	errno = saved_errno;
	return n;
}

static int odd_number(const struct odd *o, unsigned which, short *revents)
{
	struct epoll_event events[2];
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	switch (which) {
	case 0:
		return odd_poll(o->fd, POLLIN, revents, SHORT_MS);
	case 1:
		return odd_poll(o->fd, 0, revents, SHORT_MS);
	case 2:
		return odd_poll(o->fd, POLLIN | POLLPRI | POLLRDNORM, revents, 0);
	case 3:
		return odd_poll(12345, POLLIN, revents, -1);
	case 4:
		return poll(o->no_fds, 1, SHORT_MS);
	case 5:
		return poll(&(struct pollfd){.fd = o->fd}, files.rlim_cur + 1, SHORT_MS);
	case 6:
		return odd_ppoll(o->fd, &(struct timespec){0, -1});
	case 7:
		return odd_ppoll(o->fd, &(struct timespec){0, 1000000000});
	case 8:
		return odd_ppoll(o->fd, &(struct timespec){-1, 0});
	case 9:
		return odd_ppoll(o->fd, &(struct timespec){0, 1});
	case 10:
		return odd_poll(o->set, POLLIN, revents, SHORT_MS);
	case 11:
		return epoll_wait(o->set, events, 2, SHORT_MS);
	case 12:
		return epoll_wait(o->set, events, 0, SHORT_MS);
	case 13:
		return epoll_wait(o->set, events, o->negative, SHORT_MS);
	case 14:
		return epoll_wait(o->set, o->no_events, 1, SHORT_MS);
	case 15:
		return epoll_wait(o->fd, events, 2, SHORT_MS);
	case 16:
		return epoll_wait(12345, events, 2, SHORT_MS);
	case 17:
		return epoll_pwait(o->set, events, 2, SHORT_MS, (const sigset_t *)o->no_events);
	case 18:
		return epoll_ctl(o->set, EPOLL_CTL_ADD, o->fd, &(struct epoll_event){0});
	case 19:
		return poll(NULL, 0, SHORT_MS);
	case 20:
		return odd_select(0, o->fd, 0, &(struct timeval){0, SHORT_MS * 1000}, revents);
	case 21:
		return odd_select(-1, o->fd, o->fd, &(struct timeval){0, SHORT_MS}, revents);
	case 22:
		return odd_select(1000, o->fd, 900, NULL, revents);
	case 23:
		return odd_select(0, o->fd, o->fd, &(struct timeval){0, -1}, revents);
	case 24:
		return odd_select(0, o->fd, o->fd, &(struct timeval){-1, 0}, revents);
	case 25:
		return select(o->fd + 1, (fd_set *)o->no_fds, NULL, NULL,
			      &(struct timeval){0, SHORT_MS});
	case 26:
		return pselect(o->fd + 1, NULL, NULL, NULL, &(struct timespec){0, 1}, NULL);
	case 27:
		return odd_most(o->fd);
	default:
		return -2;
	}
}

int main(int argc, char **argv)
{
	struct device_port port = {0};
	struct ibv_comp_channel *channel;
	struct odd o[2];
	int ends[2];
	unsigned i;

	if (argc != 2)
		device_die("usage: odd_waits DEVICE");
	device_port_open(&port, argv[1], 0);
	channel = ibv_create_comp_channel(port.ctx);
	if (!channel || pipe(ends))
		device_die("a channel: %m");
	o[0] = (struct odd){channel->fd, set_of(channel->fd), -1, (void *)8, (void *)8};
	o[1] = (struct odd){ends[0], set_of(ends[0]), -1, (void *)8, (void *)8};
	for (i = 0;; i++) {
		int ret[2], err[2];
		short revents[2] = {0, 0};

		for (int k = 0; k < 2; k++) {
			errno = 0;
			ret[k] = odd_number(&o[k], i, &revents[k]);
			err[k] = errno;
		}
		if (ret[0] == -2)
			break;
		if (ret[0] != ret[1] || err[0] != err[1] || revents[0] != revents[1])
			device_die("call %u: %d, %s, %#x; of a pipe %d, %s, %#x", i, ret[0],
				   strerror(err[0]), revents[0], ret[1], strerror(err[1]),
				   revents[1]);
	}
	printf("%u calls\n", i);
	return 0;
}
