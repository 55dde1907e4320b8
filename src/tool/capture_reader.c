// SPDX-License-Identifier: BSD-2-Clause
/* See capture_reader.h. */
#include "tool/capture_reader.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "fabric/client/link.h"
#include "wire/roce.h"
#include "wire/tap.h"

/* Records wait for earlier ones of other processes, but not longer for a thread that was stopped while
 * it sent a packet. */
#define WAIT_NS 2000000000u
/* How much memory they may take; then the earliest does not wait any more. */
#define WAIT_BYTES ((size_t)256 << 20)
#define POLL_MS	   4
#define JOIN_NS	   1000000000u
#define TURN_MOST  4096u /* records of a ring before others have their turn */

/* Records have room for so many octets, so that few of them take memory that they do not need. */
static const uint32_t rooms[READER_ROOMS] = {512, ROCE_FRAME_MAX};

/* A ring with its writer. */
struct source {
	struct source *next;
	struct record_ring ring;
	uint32_t slot, first_row;
	int32_t pid;
	uint64_t known_ns; /* what is older has come out of the ring */
	bool ended;	   /* the writer has ended */
	bool broken;
	void *user; /* as ops->begun gave it */
};

/* How many signals have come; the last of them; whether the terminal has sent it, which sends it to the
 * program, too. */
static volatile sig_atomic_t stops, stop_signal, stop_by_terminal;
static unsigned stops_wanted;

static void reader_stop(int sig, siginfo_t *info, void *context)
{
	(void)context;
	stop_signal = sig;
	stop_by_terminal = info->si_code == SI_KERNEL;
	if ((unsigned)++stops >= stops_wanted)
		(void)signal(sig, SIG_DFL);
}

bool reader_stopped(void)
{
	return (unsigned)stops >= stops_wanted;
}

int reader_stop_signal(void)
{
	return stops && !stop_by_terminal ? stop_signal : 0;
}

/* ---- the order of time ---- */

static bool waiting_before(const struct waiting *a, const struct waiting *b)
{
	return a->head.ns != b->head.ns ? a->head.ns < b->head.ns : a->number < b->number;
}

static void heap_swap(struct reader *r, uint32_t i, uint32_t j)
{
	struct waiting *w = r->heap[i];

	r->heap[i] = r->heap[j];
	r->heap[j] = w;
}

static bool heap_push(struct reader *r, struct waiting *w)
{
	if (r->nheap == r->room) {
		uint32_t room = r->room ? 2 * r->room : 1024;
		struct waiting **grown = realloc(r->heap, room * sizeof(struct waiting *));

		if (!grown)
			return false;
		r->heap = grown;
		r->room = room;
	}
	w->number = r->came++;
	r->heap_bytes += w->room;
	r->heap[r->nheap] = w;
	for (uint32_t i = r->nheap++; i && waiting_before(r->heap[i], r->heap[(i - 1) / 2]);
	     i = (i - 1) / 2)
		heap_swap(r, i, (i - 1) / 2);
	return true;
}

static struct waiting *heap_pop(struct reader *r)
{
	struct waiting *first = r->heap[0];

	r->heap_bytes -= first->room;
	r->heap[0] = r->heap[--r->nheap];
	for (uint32_t i = 0, child; (child = 2 * i + 1) < r->nheap; i = child) {
		if (child + 1 < r->nheap && waiting_before(r->heap[child + 1], r->heap[child]))
			child++;
		if (!waiting_before(r->heap[child], r->heap[i]))
			break;
		heap_swap(r, i, child);
	}
	return first;
}

/* Spare ones are used again, the last first, because its memory is in the cache. */
static struct waiting *waiting_get(struct reader *r, uint32_t room)
{
	struct waiting *w;
	size_t i = 0;

	while (i < array_size(rooms) && rooms[i] < room)
		i++;
	if (i < array_size(rooms)) {
		room = rooms[i];
		w = r->spare[i];
		if (w) {
			r->spare[i] = w->next;
			return w;
		}
	}
	w = malloc(sizeof(*w) + room);
	if (w)
		w->room = room;
	return w;
}

static void waiting_put(struct reader *r, struct waiting *w)
{
	for (size_t i = 0; i < array_size(rooms); i++) {
		if (w->room != rooms[i])
			continue;
		w->next = r->spare[i];
		r->spare[i] = w;
		return;
	}
	free(w);
}

/* Writes what is older than that. */
static void waiting_write_until(struct reader *r, uint64_t ns)
{
	bool some = false;

	while (r->nheap && (r->heap[0]->head.ns < ns || r->heap_bytes > WAIT_BYTES) &&
	       !r->ops->full(r)) {
		struct waiting *w = heap_pop(r);

		r->ops->write(r, w);
		waiting_put(r, w);
		some = true;
	}
	if (some)
		r->ops->written(r);
}

bool reader_add(struct reader *r, void *source, const struct capture_head *head, const void *bytes,
		uint32_t captured, uint32_t whole)
{
	struct waiting *w = waiting_get(r, captured);

	if (!w)
		return false;
	w->head = *head;
	w->source = source;
	w->captured = captured;
	w->whole = whole;
	memcpy(w->bytes, bytes, captured);
	if (heap_push(r, w))
		return true;
	waiting_put(r, w);
	return false;
}

/* ---- records ---- */

/* The earliest time of a packet that the writer has sent, and for which it has no record yet. */
static uint64_t source_sending(const struct reader *r, const struct source *src)
{
	const struct slot *s = r->segments.slots;

	if (src->slot >= REGISTRY_SLOTS || s[src->slot].pid != src->pid ||
	    !atomic_load(&s[src->slot].alive))
		return UINT64_MAX;
	return sending_earliest(&s[src->slot]);
}

/* True if there was something.  now: a time before the call, or 0. */
static bool source_read(struct reader *r, struct source *src, uint64_t now)
{
	uint64_t sending = source_sending(r, src);
	const void *record;
	uint32_t bytes;

	for (uint32_t n = 0; n < TURN_MOST; n++) {
		enum record_ring_next next =
			src->broken ? RECORD_RING_EMPTY
				    : record_ring_look(&src->ring, &record, &bytes);

		if (next == RECORD_RING_BROKEN)
			src->broken = true;
		if (next == RECORD_RING_EMPTY)
			src->known_ns = min_u64(now, sending);
		if (next != RECORD_RING_RECORD)
			return n;
		if (bytes <= sizeof(r->record))
			memcpy(r->record, record, bytes);
		if (bytes > sizeof(r->record) || bytes < sizeof(struct capture_head) ||
		    !r->ops->record(r, src->user, (const struct capture_head *)r->record, bytes))
			r->nbroken++;
		record_ring_take(&src->ring, record, bytes);
	}
	return true;
}

/* Reads all rings, and writes what nobody can have an earlier record than. */
static bool sources_read(struct reader *r, uint64_t now)
{
	uint64_t known = now;
	bool some = false;

	for (struct source *src = r->sources; src; src = src->next) {
		some |= source_read(r, src, now);
		if (!src->broken)
			known = min_u64(known, src->known_ns);
	}
	waiting_write_until(r, max_u64(known, now - WAIT_NS));
	return some;
}

/* Adds up what the writer has dropped. */
static void source_count(struct reader *r, const struct source *src)
{
	for (uint32_t i = 0; i < src->ring.nsources; i++) {
		uint64_t n = atomic_load(&src->ring.head->dropped[i]);

		if (n)
			r->ops->dropped(r, src->first_row + i, n);
	}
	if (src->broken)
		r->nbroken++;
	if (!src->ended && !atomic_load(&src->ring.head->joined))
		r->nabsent++;
}

static void source_free(struct source *src)
{
	record_ring_unmap(&src->ring);
	free(src);
}

/* Reads what is in the ring now, but not what comes meanwhile. */
static void source_finish(struct reader *r, struct source *src)
{
	uint64_t come = atomic_load(&src->ring.head->reserved) - src->ring.at;
	uint64_t end = src->ring.at + min_u64(come, src->ring.bytes);

	while (src->ring.at < end && !r->ops->full(r) && source_read(r, src, 0))
		waiting_write_until(r, 0);
	/* A thread was killed while it wrote a record; what others wrote behind it is lost. */
	if (src->ended && src->ring.at < end && !src->broken)
		r->nbroken++;
}

/* Lets go of rings whose writers have ended, with what is in them. */
static void sources_settle(struct reader *r)
{
	for (struct source **at = &r->sources; *at;) {
		struct source *src = *at;

		if (!src->ended) {
			at = &src->next;
			continue;
		}
		source_finish(r, src);
		*at = src->next;
		source_count(r, src);
		if (r->ops->ended)
			r->ops->ended(r, src->user);
		source_free(src);
	}
}

/* ---- what the daemon says ---- */

static void ring_take(struct reader *r, const struct msg_capture_ring *ring, int fd)
{
	struct source *src = calloc(1, sizeof(*src));

	if (!src || record_ring_map(&src->ring, fd, ring->want.ring_bytes, ring->nsources)) {
		tool_error(r->s->command, "process %d is not captured: %s", (int)ring->pid,
			   strerror(errno));
		free(src);
		return;
	}
	src->slot = ring->slot;
	src->first_row = ring->first_row;
	src->pid = ring->pid;
	src->user = r->ops->begun ? r->ops->begun(r, ring) : NULL;
	src->next = r->sources;
	r->sources = src;
}

static void message_take(struct reader *r, const struct msg *m, int fds[MSG_MAX_FDS])
{
	if (msg_kind(m) == MSG_REPLY) {
		r->all_known = true;
	} else if (m->head.type == MSG_CAPTURE) {
		ring_take(r, &m->capture_ring, fds[0]);
	} else if (m->head.type == MSG_CAPTURE_END) {
		for (struct source *src = r->sources; src; src = src->next)
			src->ended |= src->slot == m->capture_end.slot;
		sources_settle(r);
	}
	msg_close_fds(fds);
}

/* Waits so long for messages. */
static void messages_wait(const struct reader *r, int ms)
{
	struct pollfd p = {.fd = r->view.sock, .events = POLLIN};

	(void)poll(&p, 1, ms);
}

/* Takes the messages that there are. */
static void messages_take(struct reader *r)
{
	int fds[MSG_MAX_FDS], ret = 0;
	struct msg m;

	while (!ret) {
		ret = msg_recv(r->view.sock, &m, fds, 1u << MSG_REPLY | 1u << MSG_NOTE,
			       MSG_DONTWAIT);
		if (!ret)
			message_take(r, &m, fds);
	}
	if (ret != -EAGAIN && ret != -EMFILE && ret != -ENOMEM)
		r->gone = true;
}

static bool sources_joined(const struct reader *r)
{
	for (const struct source *src = r->sources; src; src = src->next)
		if (!atomic_load(&src->ring.head->joined))
			return false;
	return r->all_known;
}

bool reader_open(struct reader *r, bool start)
{
	if (!view_open(r->s, start, &r->view))
		return false;
	if (view_segments_map(&r->view, &r->segments))
		return true;
	tool_error(r->s->command, "the programs of fabric '%s' cannot be seen", r->s->fabric);
	view_close(&r->view);
	return false;
}

bool reader_join(struct reader *r)
{
	uint64_t until = clock_ns() + JOIN_NS;
	int fds[MSG_MAX_FDS];
	struct msg m = {.capture = r->want};
	int ret = link_call(r->view.sock, &m, MSG_CAPTURE, fds);

	if (ret) {
		session_link_error(r->s, ret);
		return false;
	}
	/* The answer comes behind the rings of all programs that run. */
	m = (struct msg){0};
	msg_prepare(&m, MSG_INFO, MSG_REQUEST, 1, 0);
	if (msg_send(r->view.sock, &m, NULL, 0, 0))
		r->gone = true;
	while (!sources_joined(r) && clock_ns() < until && !reader_over(r)) {
		messages_wait(r, 1);
		messages_take(r);
	}
	return true;
}

/* ---- the parts of a command ---- */

bool reader_number_option(const struct session *s, const char *option, const char *text,
			  uint32_t max, uint32_t *out)
{
	if (!text || text_number(text, max, out))
		return true;
	tool_error(s->command, "%s takes a number from 1 to %u, not '%s'", option, max, text);
	return false;
}

FILE *reader_output_open(const struct session *s, const char *path, const char *what)
{
	FILE *out = strcmp(path, "-") ? fopen(path, "we") : stdout;

	if (out && out == stdout && isatty(STDOUT_FILENO)) {
		tool_error(s->command, "a %s is not for a terminal; give a file or a pipe", what);
		return NULL;
	}
	if (!out)
		tool_error(s->command, "%s: %s", path, strerror(errno));
	else
		(void)setvbuf(out, NULL, _IOFBF, 1u << 20);
	return out;
}

uint32_t reader_ring_bytes(uint32_t mib)
{
	uint32_t bytes = CAPTURE_RING_BYTES_MIN;

	while (bytes >> 20 < mib)
		bytes *= 2;
	return bytes;
}

void reader_signals_take(unsigned wanted)
{
	const struct sigaction stop = {.sa_sigaction = reader_stop,
				       .sa_flags = SA_RESTART | SA_SIGINFO};

	stops_wanted = wanted;
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

bool reader_over(struct reader *r)
{
	return reader_stopped() || r->gone || r->ops->full(r);
}

void reader_turn(struct reader *r)
{
	uint64_t now;

	if (r->idle)
		messages_wait(r, POLL_MS);
	/* A program sends nothing before we have the message with its ring. */
	now = clock_realtime_ns();
	messages_take(r);
	r->idle = !sources_read(r, now);
}

void reader_finish(struct reader *r)
{
	for (struct source *src = r->sources; src; src = src->next)
		source_finish(r, src);
	while (r->sources) {
		struct source *src = r->sources;

		r->sources = src->next;
		source_count(r, src);
		if (r->ops->ended)
			r->ops->ended(r, src->user);
		source_free(src);
	}
	waiting_write_until(r, UINT64_MAX);
}

void reader_report(const struct reader *r)
{
	if (r->gone)
		tool_error(r->s->command, "fabric '%s' has gone", r->s->fabric);
	if (r->nabsent)
		tool_error(r->s->command,
			   "%u programs took no part: they are stopped, or lack a "
			   "descriptor or memory for it",
			   r->nabsent);
	if (r->nbroken)
		tool_error(r->s->command, "%u records were not readable", r->nbroken);
}

void reader_close(struct reader *r)
{
	while (r->nheap)
		waiting_put(r, heap_pop(r));
	for (size_t i = 0; i < array_size(rooms); i++)
		while (r->spare[i]) {
			struct waiting *w = r->spare[i];

			r->spare[i] = w->next;
			free(w);
		}
	free(r->heap);
	while (r->sources) {
		struct source *src = r->sources;

		r->sources = src->next;
		source_free(src);
	}
	view_segments_unmap(&r->segments);
	view_close(&r->view);
}
