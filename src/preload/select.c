// SPDX-License-Identifier: BSD-2-Clause
/*
 * Interposes select and pselect, for a completion channel among other descriptors (preload/wait.h).
 *
 * The kernel writes its answer into the sets that the program asks with, so we copy these first.
 * The kernel makes the copy, because only it can say whether the sets are there.
 */
#include "preload/libc.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <unistd.h>

#include "driver/cdev.h"
#include "preload/signal_mask.h"
#include "preload/wait.h"

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
