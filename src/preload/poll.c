// SPDX-License-Identifier: BSD-2-Clause
/* Interposes poll and ppoll, for a completion channel among other descriptors (preload/wait.h). */
#include "preload/libc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "driver/cdev.h"
#include "preload/signal_mask.h"
#include "preload/wait.h"

/* A thread that waits for more descriptors waits as it would without us; the list lies on the
 * stack. */
#define POLL_MAX 128u

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t room);

struct poll_call {
	struct wait_call call;
	struct pollfd *fds;
	nfds_t n;
	bool masked; /* ppoll */
	const sigset_t *mask;
};

static int poll_really(const struct poll_call *p, struct pollfd *fds, nfds_t n,
		       uint64_t deadline_ns)
{
	struct timespec left;

	if (p->masked || p->call.mask)
		return real(ppoll)(fds, n, wait_left(deadline_ns, &left),
				   p->mask ? p->mask : p->call.mask);
	return real(poll)(fds, n, wait_left_ms(deadline_ns));
}

static int poll_ask(struct wait_call *c)
{
	struct poll_call *p = container_of(c, struct poll_call, call);

	return poll_really(p, p->fds, p->n, 0);
}

static int poll_wait(struct wait_call *c, int fifo, bool *woken)
{
	struct poll_call *p = container_of(c, struct poll_call, call);
	struct pollfd all[POLL_MAX + 1];
	int saved_errno = errno, ret;

	if (fifo < 0)
		return poll_really(p, p->fds, p->n, c->deadline_ns);
	memcpy(all, p->fds, p->n * sizeof(*all));
	all[p->n] = (struct pollfd){.fd = fifo, .events = POLLIN};
	ret = poll_really(p, all, p->n + 1, c->deadline_ns);
	if (ret < 0 && errno == EINVAL) {
		/* The program's list is as long as the system allows, so there is no room for
		 * ours. */
		cdev_wait_end(false);
		errno = saved_errno;
		return poll_really(p, p->fds, p->n, c->deadline_ns);
	}
	if (ret <= 0)
		return ret;
	*woken = all[p->n].revents;
	ret -= *woken;
	for (nfds_t i = 0; ret && i < p->n; i++)
		p->fds[i].revents = all[i].revents;
	return ret;
}

static bool poll_leads_to_channel(const struct poll_call *p)
{
	for (nfds_t i = 0; i < p->n; i++)
		if (p->fds[i].events & (POLLIN | POLLRDNORM) && wait_leads_to_channel(p->fds[i].fd))
			return true;
	return false;
}

/* The kernel's first answer says whether the program's list is there. */
static int poll_in_place(struct poll_call *p)
{
	int n = wait_ask(&p->call);

	if (n)
		return n;
	return poll_leads_to_channel(p) ? wait_in_place(&p->call) : poll_wait(&p->call, -1, NULL);
}

exported int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct poll_call p = {.call = {.ask = poll_ask, .wait = poll_wait}, .fds = fds, .n = n};

	if (!timeout || n > POLL_MAX || !cdev_any_channel())
		return real(poll)(fds, n, timeout);
	p.call.deadline_ns = wait_until_ms(timeout);
	return poll_in_place(&p);
}

exported int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		   const sigset_t *mask)
{
	struct poll_call p = {
		.call = {.ask = poll_ask, .wait = poll_wait},
		.fds = fds,
		.n = n,
		.masked = true,
	};
	sigset_t room;

	p.mask = mask = signal_wait_mask(mask, &room);
	if (n > POLL_MAX || !cdev_any_channel() ||
	    (timeout && !timeout->tv_sec && !timeout->tv_nsec) ||
	    !wait_until(timeout, &p.call.deadline_ns))
		return real(ppoll)(fds, n, timeout, mask);
	return poll_in_place(&p);
}

/* If the list is shorter than n says, libc ends the program, as it would without us. */
exported int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room)
{
	return room / sizeof(*fds) < n ? real(__poll_chk)(fds, n, timeout, room)
				       : poll(fds, n, timeout);
}

exported int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
			 const sigset_t *mask, size_t room)
{
	return room / sizeof(*fds) < n ? real(__ppoll_chk)(fds, n, timeout, mask, room)
				       : ppoll(fds, n, timeout, mask);
}
