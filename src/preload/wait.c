// SPDX-License-Identifier: BSD-2-Clause
/*
 * Interposes poll, select and epoll, for a completion channel among other descriptors.  See wait.h.
 */
#include "preload/libc.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "driver/cdev.h"
#include "preload/program_memory.h"
#include "preload/tree.h"
#include "preload/wait.h"

/* ---- what the calls share ---- */

#define SECOND_NS 1000000000u
#define MS_NS	  1000000u
#define WAIT_FDS  65536u

/* By number of the descriptor: it is a set of epoll to which a channel was added. */
static _Atomic(uint64_t) channel_sets[WAIT_FDS / 64];

static bool set_is_known(int fd)
{
	return fd >= 0 && (unsigned)fd < WAIT_FDS &&
	       atomic_load_explicit(&channel_sets[fd / 64], memory_order_relaxed) >> (fd % 64) & 1;
}

/*
 * Does a thread that waits for this descriptor wait for a completion channel?  The descriptor is
 * one, or a set of epoll to which somebody added one.  We forget that of a set when the program
 * closes it, if we hear of that; a thread that waits in the engine's place needlessly loses
 * nothing.
 */
static must_check bool wait_leads_to_channel(int fd)
{
	return cdev_is_channel(fd) || set_is_known(fd);
}

static void wait_set_leads_to_channel(int set)
{
	if (set >= 0 && (unsigned)set < WAIT_FDS)
		atomic_fetch_or_explicit(&channel_sets[set / 64], UINT64_C(1) << (set % 64),
					 memory_order_relaxed);
}

void wait_closed(int fd)
{
	if (unlikely(set_is_known(fd)))
		atomic_fetch_and_explicit(&channel_sets[fd / 64], ~(UINT64_C(1) << (fd % 64)),
					  memory_order_relaxed);
}

/* Calls c->ask. */
static int wait_ask(struct wait_call *c)
{
	c->events = cdev_completion_events();
	return c->ask(c);
}

static int wait_on(struct wait_call *c)
{
	bool woken;
	int fifo, n;

	do {
		woken = false;
		/* A child of vfork is another process with our memory, so the device is not its
		 * own. */
		fifo = tree_device_owner() ? cdev_wait_begin(c->events) : -1;
		if (fifo != CDEV_WAIT_ASK) {
			n = c->wait(c, fifo, &woken);
			if (fifo < 0)
				return n;
			cdev_wait_end(woken);
			if (n || !woken)
				return n;
		}
		n = wait_ask(c);
	} while (!n);
	return n;
}

/* The kernel reads and writes the first word of a mask only. */
static int wait_in_place(struct wait_call *c)
{
	union {
		uint64_t word;
		sigset_t set;
	} mask;
	int n;

	signals_hold(&mask.word);
	c->mask = &mask.set;
	n = wait_on(c);
	signals_release(&mask.word);
	return n;
}

bool wait_until(const struct timespec *from_now, uint64_t *deadline_ns)
{
	uint64_t now;

	*deadline_ns = WAIT_FOR_EVER;
	if (!from_now)
		return true;
	if (from_now->tv_sec < 0 || from_now->tv_nsec < 0 || from_now->tv_nsec >= SECOND_NS)
		return false;
	now = clock_ns();
	if ((uint64_t)from_now->tv_sec < (INT64_MAX - now) / SECOND_NS - 1)
		*deadline_ns =
			now + (uint64_t)from_now->tv_sec * SECOND_NS + (uint64_t)from_now->tv_nsec;
	return true;
}

static uint64_t wait_until_ms(int ms)
{
	return ms < 0 ? WAIT_FOR_EVER : clock_ns() + (uint64_t)ms * MS_NS;
}

/* Returns the time that is left; NULL: it has no end. */
static const struct timespec *wait_left(uint64_t deadline_ns, struct timespec *left)
{
	uint64_t now;

	if (deadline_ns == WAIT_FOR_EVER)
		return NULL;
	now = deadline_ns ? clock_ns() : 0;
	deadline_ns = deadline_ns > now ? deadline_ns - now : 0;
	*left = (struct timespec){(time_t)(deadline_ns / SECOND_NS),
				  (long)(deadline_ns % SECOND_NS)};
	return left;
}

/* Does the same for calls that take milliseconds; it rounds up, so that no wait ends too early. */
static int wait_left_ms(uint64_t deadline_ns)
{
	uint64_t now, ms;

	if (deadline_ns == WAIT_FOR_EVER)
		return -1;
	now = deadline_ns ? clock_ns() : 0;
	ms = deadline_ns > now ? (deadline_ns - now + MS_NS - 1) / MS_NS : 0;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* ---- poll and ppoll ---- */

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

/* ---- select and pselect ---- */

/*
 * Interposes select and pselect, for a completion channel among other descriptors (preload/wait.h).
 *
 * The kernel writes its answer into the sets that the program asks with, so we copy these first.
 * The kernel makes the copy, because only it can say whether the sets are there.
 */

/* A thread that waits for higher numbers waits as it would without us; the sets lie on the
 * stack. */
#define SELECT_FDS  4096u
#define SELECT_SETS 3u
#define WORD_BITS   (8 * sizeof(long))

struct select_sets {
	long words[SELECT_SETS][SELECT_FDS / WORD_BITS];
};

struct select_call {
	struct wait_call call;
	int n;
	fd_set *program[SELECT_SETS]; /* to read, to write, exceptions; or NULL */
	struct select_sets asked;
	bool masked; /* pselect */
	const sigset_t *mask;
};

static size_t select_bytes(int n)
{
	return ((size_t)n + WORD_BITS - 1) / WORD_BITS * sizeof(long);
}

/* Has the kernel copy the program's sets into ours, or back. */
static bool select_move(const struct select_call *s, struct select_sets *sets, bool back)
{
	struct iovec ours[SELECT_SETS], theirs[SELECT_SETS];
	size_t bytes = select_bytes(s->n);
	unsigned n = 0;
	ssize_t moved;

	for (unsigned i = 0; i < SELECT_SETS; i++) {
		if (!s->program[i])
			continue;
		ours[n] = (struct iovec){sets->words[i], bytes};
		theirs[n++] = (struct iovec){s->program[i], bytes};
	}
	moved = back ? process_vm_writev(gettid(), ours, n, theirs, n, 0)
		     : process_vm_readv(gettid(), ours, n, theirs, n, 0);
	return moved == (ssize_t)(n * bytes);
}

static int select_really(const struct select_call *s, int n, struct select_sets *sets,
			 uint64_t deadline_ns)
{
	struct timespec left;
	struct timeval time, *t = NULL;
	fd_set *set[SELECT_SETS];

	for (unsigned i = 0; i < SELECT_SETS; i++)
		set[i] = s->program[i] || (!i && n > s->n) ? (fd_set *)sets->words[i] : NULL;
	if (s->masked || s->call.mask)
		return real(pselect)(n, set[0], set[1], set[2], wait_left(deadline_ns, &left),
				     s->mask ? s->mask : s->call.mask);
	/* Rounds up, so that no wait ends too early. */
	if (wait_left(deadline_ns, &left)) {
		time = (struct timeval){left.tv_sec, (left.tv_nsec + 999) / 1000};
		if (time.tv_usec == 1000000)
			time = (struct timeval){left.tv_sec + 1, 0};
		t = &time;
	}
	return real(select)(n, set[0], set[1], set[2], t);
}

/* Gives the answer to the program. */
static int select_tell(const struct select_call *s, struct select_sets *sets, int n)
{
	if (n < 0 || select_move(s, sets, true))
		return n;
	errno = EFAULT;
	return -1;
}

static int select_ask(struct wait_call *c)
{
	struct select_call *s = container_of(c, struct select_call, call);
	struct select_sets sets = s->asked;
	int n = select_really(s, s->n, &sets, 0);

	return n ? select_tell(s, &sets, n) : 0;
}

static int select_wait(struct wait_call *c, int fifo, bool *woken)
{
	struct select_call *s = container_of(c, struct select_call, call);
	struct select_sets sets = s->asked;
	int n, fds = s->n;
	long *word, bit;

	if (fifo >= (int)SELECT_FDS)
		cdev_wait_end(false);
	if (fifo < 0 || fifo >= (int)SELECT_FDS)
		return select_tell(s, &sets, select_really(s, fds, &sets, c->deadline_ns));
	word = &sets.words[0][(unsigned)fifo / WORD_BITS];
	bit = (long)(1ul << (unsigned)fifo % WORD_BITS);
	*word |= bit;
	fds = fifo >= fds ? fifo + 1 : fds;
	n = select_really(s, fds, &sets, c->deadline_ns);
	if (n < 0)
		return n;
	*woken = *word & bit;
	n -= *woken;
	*word &= ~bit;
	return n || !*woken ? select_tell(s, &sets, n) : 0;
}

static bool select_leads_to_channel(const struct select_call *s)
{
	const long *words = s->asked.words[0];

	for (int fd = 0; s->program[0] && fd < s->n; fd++)
		if ((unsigned long)words[(unsigned)fd / WORD_BITS] >> (unsigned)fd % WORD_BITS &
			    1 &&
		    wait_leads_to_channel(fd))
			return true;
	return false;
}

/* The program asks nothing of descriptors behind its last, even if ours is there: clears their
 * bits. */
static void select_cut(struct select_call *s)
{
	unsigned beyond = (unsigned)s->n % WORD_BITS;

	for (unsigned i = 0; beyond && i < SELECT_SETS; i++)
		s->asked.words[i][(unsigned)s->n / WORD_BITS] &= (long)((1ul << beyond) - 1);
}

/* False: the call has to go to the kernel as it would without us. */
static bool select_begins(struct select_call *s)
{
	int saved_errno = errno;
	bool begins = false;

	memset(&s->asked, 0, sizeof(s->asked));
	if (s->n > 0 && s->n <= (int)SELECT_FDS && s->program[0] &&
	    select_move(s, &s->asked, false)) {
		select_cut(s);
		begins = select_leads_to_channel(s);
	}
	errno = saved_errno;
	return begins;
}

static int select_in_place(struct select_call *s)
{
	int n = wait_ask(&s->call);

	return n ? n : wait_in_place(&s->call);
}

/* select, but not pselect, says on Linux what is left of the time. */
static void select_say_left(struct timeval *timeout, uint64_t deadline_ns)
{
	struct timespec left;

	if (wait_left(deadline_ns, &left))
		*timeout = (struct timeval){left.tv_sec, left.tv_nsec / 1000};
}

exported int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e,
		    struct timeval *restrict timeout)
{
	struct select_call s;
	struct timespec time;
	int ret;

	if (!cdev_any_channel() || (timeout && !timeout->tv_sec && !timeout->tv_usec))
		return real(select)(n, r, w, e, timeout);
	s.call = (struct wait_call){.ask = select_ask, .wait = select_wait};
	s.n = n;
	s.masked = false;
	s.mask = NULL;
	memcpy(s.program, (fd_set *[]){r, w, e}, sizeof(s.program));
	if (timeout)
		time = (struct timespec){timeout->tv_sec, timeout->tv_usec * 1000};
	/* The kernel carries excess microseconds over; programs that count on that wait without
	 * us. */
	if (!wait_until(timeout ? &time : NULL, &s.call.deadline_ns) || !select_begins(&s))
		return real(select)(n, r, w, e, timeout);
	ret = select_in_place(&s);
	if (timeout)
		select_say_left(timeout, s.call.deadline_ns);
	return ret;
}

exported int pselect(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict e,
		     const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
	struct select_call s;
	sigset_t room;

	mask = signal_wait_mask(mask, &room);
	if (!cdev_any_channel() || (timeout && !timeout->tv_sec && !timeout->tv_nsec))
		return real(pselect)(n, r, w, e, timeout, mask);
	s.call = (struct wait_call){.ask = select_ask, .wait = select_wait};
	s.n = n;
	s.masked = true;
	s.mask = mask;
	memcpy(s.program, (fd_set *[]){r, w, e}, sizeof(s.program));
	if (!wait_until(timeout, &s.call.deadline_ns) || !select_begins(&s))
		return real(pselect)(n, r, w, e, timeout, mask);
	return select_in_place(&s);
}

/* ---- epoll ---- */

/*
 * Interposes waiting for a set of epoll that has a completion channel among its members
 * (preload/wait.h).
 *
 * For the wait the FIFO into which peers write becomes a member, too, for one report
 * (EPOLLONESHOT).  So the kernel looks at the set once, as it would without us, and members that
 * report edges, or report once, behave as always.  Every thread takes that member out of what the
 * kernel reports, because several threads may wait for a set, and a child of fork as well.
 */

/* The member's name.  It is the same in all processes, because they may share a set; no program has
 * a number like this by chance. */
#define FIFO_MEMBER 0x9b1f6c03d4e7a285u

struct epoll_call {
	struct wait_call call;
	int set;
	struct epoll_event *events;
	int max;
	enum { EPOLL_WAIT, EPOLL_PWAIT, EPOLL_PWAIT2 } way;
	const sigset_t *mask;
};

/* Some set has, or has had, such a member. */
static _Atomic(bool) fifo_used;

/* ---- the member ---- */

static bool member_set(int set, int fifo, uint32_t events)
{
	struct epoll_event e = {.events = events | EPOLLONESHOT, .data.u64 = FIFO_MEMBER};
	int saved_errno = errno, ret;

	ret = real(epoll_ctl)(set, EPOLL_CTL_MOD, fifo, &e);
	if (ret && errno == ENOENT && events)
		ret = real(epoll_ctl)(set, EPOLL_CTL_ADD, fifo, &e);
	errno = saved_errno;
	return !ret;
}

/* Takes the member's report out, and returns how many reports are left. */
static int member_take_out(struct epoll_event *events, int n, bool *woken)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		if (events[i].data.u64 == FIFO_MEMBER)
			*woken = true;
		else if (kept++ != i)
			events[kept - 1] = events[i];
	}
	return n < 0 ? n : kept;
}

/* ---- asking and waiting ---- */

static int epoll_really(const struct epoll_call *p, uint64_t deadline_ns, bool *woken)
{
	int ms = wait_left_ms(deadline_ns), n;
	const sigset_t *mask = p->mask ? p->mask : p->call.mask;
	struct timespec left;

	if (p->way == EPOLL_WAIT && !mask)
		n = real(epoll_wait)(p->set, p->events, p->max, ms);
	else if (p->way != EPOLL_PWAIT2)
		n = real(epoll_pwait)(p->set, p->events, p->max, ms, mask);
	else
		n = real(epoll_pwait2)(p->set, p->events, p->max, wait_left(deadline_ns, &left),
				       mask);
	return member_take_out(p->events, n, woken);
}

static void wakeup_take(const struct epoll_call *p)
{
	uint64_t signals;

	if (!tree_device_owner())
		return;
	if (p->call.mask) {
		cdev_wait_end(true);
		return;
	}
	signals_hold(&signals);
	cdev_wait_end(true);
	signals_release(&signals);
}

/* Another thread may have made the descriptor a member.  Whichever thread hears of a wake-up takes
 * what has come. */
static int epoll_until(const struct epoll_call *p, uint64_t deadline_ns)
{
	bool woken;
	int n;

	do {
		woken = false;
		n = epoll_really(p, deadline_ns, &woken);
		if (woken)
			wakeup_take(p);
	} while (!n && woken);
	return n;
}

static int epoll_ask(struct wait_call *c)
{
	return epoll_until(container_of(c, struct epoll_call, call), 0);
}

static int epoll_wait_for(struct wait_call *c, int fifo, bool *woken)
{
	struct epoll_call *p = container_of(c, struct epoll_call, call);
	int n;

	if (fifo < 0)
		return epoll_until(p, c->deadline_ns);
	atomic_store_explicit(&fifo_used, true, memory_order_relaxed);
	if (!member_set(p->set, fifo, EPOLLIN)) {
		cdev_wait_end(false);
		return epoll_until(p, c->deadline_ns);
	}
	n = epoll_really(p, c->deadline_ns, woken);
	if (!*woken)
		(void)member_set(p->set, fifo, 0);
	return n;
}

static int epoll_in_place(struct epoll_call *p)
{
	int n;

	if (!p->call.deadline_ns || !cdev_any_channel() || !wait_leads_to_channel(p->set))
		return epoll_until(p, p->call.deadline_ns);
	/* Here the kernel says what is wrong with the call. */
	n = wait_ask(&p->call);
	return n ? n : wait_in_place(&p->call);
}

/* A child of fork has no channels, but it has the set, in which a thread of the parent may wait at
 * any time. */
static bool epoll_is_ours(int set)
{
	return unlikely(atomic_load_explicit(&fifo_used, memory_order_relaxed)) ||
	       wait_leads_to_channel(set);
}

exported int epoll_wait(int set, struct epoll_event *events, int max, int timeout)
{
	struct epoll_call p = {
		.call = {.ask = epoll_ask, .wait = epoll_wait_for},
		.set = set,
		.events = events,
		.max = max,
	};

	if (!epoll_is_ours(set))
		return real(epoll_wait)(set, events, max, timeout);
	p.call.deadline_ns = timeout ? wait_until_ms(timeout) : 0;
	return epoll_in_place(&p);
}

exported int epoll_pwait(int set, struct epoll_event *events, int max, int timeout,
			 const sigset_t *mask)
{
	struct epoll_call p = {
		.call = {.ask = epoll_ask, .wait = epoll_wait_for},
		.set = set,
		.events = events,
		.max = max,
		.way = EPOLL_PWAIT,
	};
	sigset_t room;

	p.mask = mask = signal_wait_mask(mask, &room);
	if (!epoll_is_ours(set))
		return real(epoll_pwait)(set, events, max, timeout, mask);
	p.call.deadline_ns = timeout ? wait_until_ms(timeout) : 0;
	return epoll_in_place(&p);
}

exported int epoll_pwait2(int set, struct epoll_event *events, int max,
			  const struct timespec *timeout, const sigset_t *mask)
{
	struct epoll_call p = {
		.call = {.ask = epoll_ask, .wait = epoll_wait_for},
		.set = set,
		.events = events,
		.max = max,
		.way = EPOLL_PWAIT2,
	};
	struct timespec time;
	sigset_t room;

	p.mask = mask = signal_wait_mask(mask, &room);
	if (!epoll_is_ours(set) || (timeout && !program_read(&time, timeout, sizeof(time))) ||
	    !wait_until(timeout ? &time : NULL, &p.call.deadline_ns))
		return real(epoll_pwait2)(set, events, max, timeout, mask);
	if (timeout && !time.tv_sec && !time.tv_nsec)
		p.call.deadline_ns = 0;
	return epoll_in_place(&p);
}

exported int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	int ret = real(epoll_ctl)(set, op, fd, event);

	if (!ret && op == EPOLL_CTL_ADD && cdev_any_channel() && wait_leads_to_channel(fd))
		wait_set_leads_to_channel(set);
	return ret;
}

/* ---- cancellation ---- */

/* A thread that sleeps in the place of libc's read (driver/runtime/drive.h) has to hear of it. */

exported int pthread_cancel(pthread_t thread)
{
	int err = real(pthread_cancel)(thread);

	if (!err)
		cdev_cancelled();
	return err;
}
