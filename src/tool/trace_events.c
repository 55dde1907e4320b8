// SPDX-License-Identifier: BSD-2-Clause
/* See trace_events.h. */
#include "tool/trace_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "base/text.h"
#include "tool/capture.h"
#include "wire/capture.h"

#define NSEC_PER_USEC 1000u
/* A hostile program cannot make us keep more than that of each. */
#define TRACKS_MOST   65536u
#define OPEN_MOST     65536u
#define UNPOLLED_MOST 4096u
#define FLOW_SETS     16384u
#define FLOW_WAYS     8u
/* Numbers of tracks begin behind all process IDs. */
#define TRACK_FIRST 10000000u

/* ---- what is known of the programs ---- */

enum track_kind { TRACK_EVENTS, TRACK_QP, TRACK_SRQ, TRACK_CQ, TRACK_DPA, TRACK_PORT };

/* A thread of the trace. */
struct track {
	uint64_t key; /* kind and number */
	uint32_t tid;
	uint64_t entered_ns, function; /* DPA: since when device code runs; 0: none does */
	UT_hash_handle hh;
};

/* A work request from its post to its completion. */
struct request {
	struct request *next; /* in a list of its queue */
	uint32_t wqe;	      /* the index of its first block; of a receive: its number */
	uint64_t begun_ns, taken_ns, ended_ns;
	uint64_t wr_id, bytes;
	bool has_wr_id;
	char opcode[24], status[24];
	uint32_t cqn;
	UT_hash_handle hh;
};

struct request_list {
	struct request *first, *last;
	uint32_t n;
};

/* A queue pair, or a shared receive queue. */
struct queue {
	uint64_t key; /* kind of track and number */
	uint32_t number;
	struct track *track;
	bool whole;	   /* we have seen it from its first state on, so posts can be told apart */
	bool built;	   /* requests are posted that no post.send tells of */
	uint64_t built_ns; /* when the program last posted such ones; 0: never */
	struct request_list posted; /* sends that the device has not taken */
	/* A table by wqe: sends that the device has; of an SRQ receives that no queue pair has taken, by
	 * their count. */
	struct request *open;
	struct request_list unpolled; /* sends that have ended, and whose wr_id the poll tells */
	struct request_list receives; /* that are posted */
	UT_hash_handle hh;
};

struct traced_program {
	struct traced_program *next;
	int32_t pid;
	struct track *tracks;
	struct queue *queues;
	uint32_t ntracks, nqueues;
};

/* A packet on its way, for the arrow from its sender to its receiver. */
struct flow {
	uint64_t key;
	uint64_t ns;
	int32_t pid;
	uint32_t tid;
};

struct trace_events {
	struct json json;
	struct view *view;
	uint64_t begun_ns, last_ns;
	uint32_t next_tid;
	uint64_t next_id;
	struct trace_counts counts;
	struct traced_program *programs;
	struct flow flows[FLOW_SETS][FLOW_WAYS];
};

/* ---- events ---- */

/* Microseconds since the beginning; nothing lies before that. */
static void put_time(struct trace_events *e, const char *key, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 ".%03u", ns / NSEC_PER_USEC,
		 (unsigned)(ns % NSEC_PER_USEC));
	json_raw(&e->json, key, text);
}

static void put_hex(struct trace_events *e, const char *key, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	json_string(&e->json, key, text);
}

static void event_open(struct trace_events *e, const char *phase, const char *category,
		       const char *name, int32_t pid, uint32_t tid)
{
	json_line(&e->json);
	json_open(&e->json, NULL, '{');
	json_string(&e->json, "ph", phase);
	if (category)
		json_string(&e->json, "cat", category);
	json_string(&e->json, "name", name);
	json_number(&e->json, "pid", (uint64_t)(pid < 0 ? 0 : pid));
	if (tid)
		json_number(&e->json, "tid", tid);
}

static void event_at(struct trace_events *e, uint64_t ns)
{
	put_time(e, "ts", ns > e->begun_ns ? ns - e->begun_ns : 0);
}

static void event_close(struct trace_events *e)
{
	json_close(&e->json, '}');
	e->counts.events++;
}

/* Says what a process or one of its threads is called. */
static void name_event(struct trace_events *e, const char *what, const char *name, int32_t pid,
		       uint32_t tid)
{
	event_open(e, "M", NULL, what, pid, tid);
	json_open(&e->json, "args", '{');
	json_string(&e->json, "name", name);
	json_close(&e->json, '}');
	event_close(e);
}

static void order_event(struct trace_events *e, int32_t pid, uint32_t tid, uint64_t order)
{
	event_open(e, "M", NULL, "thread_sort_index", pid, tid);
	json_open(&e->json, "args", '{');
	json_number(&e->json, "sort_index", order);
	json_close(&e->json, '}');
	event_close(e);
}

/* An arrow from a slice to another; each is the innermost one of its thread at that time. */
static void arrow_write(struct trace_events *e, const char *category, const struct flow *from,
			const struct flow *to)
{
	const uint64_t id = ++e->next_id;

	event_open(e, "s", category, category, from->pid, from->tid);
	event_at(e, from->ns);
	put_hex(e, "id", id);
	event_close(e);
	event_open(e, "f", category, category, to->pid, to->tid);
	event_at(e, to->ns);
	put_hex(e, "id", id);
	json_string(&e->json, "bp", "e");
	event_close(e);
}

/* A slice without a length begins; the caller adds arguments and calls slice_end. */
static void slice_begin(struct trace_events *e, const char *category, const char *name, uint64_t ns,
			int32_t pid, const struct track *t)
{
	event_open(e, "X", category, name, pid, t->tid);
	event_at(e, ns);
	json_number(&e->json, "dur", 0);
	json_open(&e->json, "args", '{');
}

static void slice_end(struct trace_events *e)
{
	json_close(&e->json, '}');
	event_close(e);
}

/* ---- tracks ---- */

static void track_name(struct trace_events *e, enum track_kind kind, uint32_t number, char *text,
		       size_t size)
{
	switch (kind) {
	case TRACK_EVENTS:
		snprintf(text, size, "device");
		break;
	case TRACK_QP:
		snprintf(text, size, "QP 0x%x", number);
		break;
	case TRACK_SRQ:
		snprintf(text, size, "SRQ 0x%x", number);
		break;
	case TRACK_CQ:
		snprintf(text, size, "CQ 0x%x", number);
		break;
	case TRACK_DPA:
		snprintf(text, size, "DPA thread %u", number);
		break;
	case TRACK_PORT:
		capture_port_text(e->view, number, text);
		break;
	}
}

/* NULL: no memory, or too many. */
static struct track *track_of(struct trace_events *e, struct traced_program *p,
			      enum track_kind kind, uint32_t number)
{
	const uint64_t key = (uint64_t)kind << 32 | number;
	char name[CAPTURE_PORT_TEXT];
	struct track *t;

	HASH_FIND(hh, p->tracks, &key, sizeof(key), t);
	if (t || p->ntracks == TRACKS_MOST)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->key = key;
	t->tid = e->next_tid++;
	HASH_ADD(hh, p->tracks, key, sizeof(t->key), t);
	p->ntracks++;
	track_name(e, kind, number, name, sizeof(name));
	name_event(e, "thread_name", name, p->pid, t->tid);
	order_event(e, p->pid, t->tid, kind);
	return t;
}

/* ---- work requests ---- */

static void list_add(struct request_list *l, struct request *r)
{
	r->next = NULL;
	if (l->last)
		l->last->next = r;
	else
		l->first = r;
	l->last = r;
	l->n++;
}

static struct request *list_take(struct request_list *l)
{
	struct request *r = l->first;

	if (!r)
		return NULL;
	l->first = r->next;
	if (!l->first)
		l->last = NULL;
	l->n--;
	return r;
}

/* Takes the last n away. */
static void list_shorten(struct request_list *l, uint64_t n)
{
	struct request_list kept = {0};

	while (l->n > n)
		list_add(&kept, list_take(l));
	while (l->first)
		free(list_take(l));
	*l = kept;
}

static struct request *request_new(uint64_t ns)
{
	struct request *r = calloc(1, sizeof(*r));

	if (r)
		r->begun_ns = r->taken_ns = ns;
	return r;
}

static bool queue_is_srq(const struct queue *q)
{
	return q->key >> 32 == TRACK_SRQ;
}

/* Writes the slice of a request that has ended, and frees it. */
static void request_write(struct trace_events *e, const struct traced_program *p,
			  const struct queue *q, struct request *r, bool receive)
{
	const uint64_t id = ++e->next_id;
	const char *category = receive ? "receive" : "send";
	char name[64];

	snprintf(name, sizeof(name), "%s 0x%x %s", queue_is_srq(q) ? "SRQ" : "QP", q->number,
		 r->opcode);
	event_open(e, "b", category, name, p->pid, q->track->tid);
	event_at(e, r->begun_ns);
	put_hex(e, "id", id);
	json_open(&e->json, "args", '{');
	put_hex(e, queue_is_srq(q) ? "srqn" : "qpn", q->number);
	json_string(&e->json, "opcode", r->opcode);
	json_string(&e->json, "status", r->status);
	if (r->has_wr_id)
		put_hex(e, "wr_id", r->wr_id);
	json_number(&e->json, "wqe", r->wqe);
	if (!receive)
		json_number(&e->json, "bytes", r->bytes);
	if (r->cqn)
		put_hex(e, "cqn", r->cqn);
	json_close(&e->json, '}');
	event_close(e);
	event_open(e, "e", category, name, p->pid, q->track->tid);
	event_at(e, r->ended_ns > r->begun_ns ? r->ended_ns : r->begun_ns);
	put_hex(e, "id", id);
	event_close(e);
	if (receive)
		e->counts.receives++;
	else
		e->counts.sends++;
	free(r);
}

static void request_end(struct request *r, uint64_t ns, const char *status)
{
	r->ended_ns = ns;
	(void)text_copy(r->status, sizeof(r->status), status);
}

/* A send has ended: it is written now, or when the program polls it, which tells its wr_id. */
static void send_ended(struct trace_events *e, struct traced_program *p, struct queue *q,
		       struct request *r, bool polled)
{
	HASH_DEL(q->open, r);
	if (r->has_wr_id || !polled || !q->whole) {
		request_write(e, p, q, r, queue_is_srq(q));
		return;
	}
	list_add(&q->unpolled, r);
	if (q->unpolled.n > UNPOLLED_MOST)
		request_write(e, p, q, list_take(&q->unpolled), false);
}

/* Ends all that the queue pair has: it was reset, or its program has ended. */
static void queue_end(struct trace_events *e, struct traced_program *p, struct queue *q,
		      uint64_t ns, const char *status)
{
	struct request *r, *next;

	while ((r = list_take(&q->unpolled)))
		request_write(e, p, q, r, false);
	HASH_ITER(hh, q->open, r, next)
	{
		request_end(r, ns, status);
		send_ended(e, p, q, r, false);
	}
	while ((r = list_take(&q->posted))) {
		(void)text_copy(r->opcode, sizeof(r->opcode), "not taken");
		request_end(r, ns, status);
		request_write(e, p, q, r, false);
	}
	while ((r = list_take(&q->receives))) {
		request_end(r, ns, status);
		request_write(e, p, q, r, true);
	}
	q->built = false;
	q->built_ns = 0;
}

/* ---- the text of a trace point ---- */

#define PAIRS_MOST 8u

struct event {
	const char *name;
	struct {
		const char *key, *value;
	} pair[PAIRS_MOST];
	unsigned npairs;
};

#define LETTERS "abcdefghijklmnopqrstuvwxyz_"

static bool text_has_only(const char *s, const char *letters)
{
	return *s && !s[strspn(s, letters)];
}

/* Takes the text apart, in place.  False: it is none of trace.c's. */
static bool event_read(char *text, struct event *ev)
{
	char *at = strchr(text, ' ');

	ev->name = text;
	ev->npairs = 0;
	while (at) {
		char *equals, quote;

		*at++ = '\0';
		equals = strchr(at, '=');
		if (!equals || ev->npairs == PAIRS_MOST)
			return false;
		*equals = '\0';
		if (!text_has_only(at, LETTERS))
			return false;
		ev->pair[ev->npairs].key = at;
		quote = equals[1] == '"' ? '"' : ' ';
		at = equals + 1 + (quote == '"');
		ev->pair[ev->npairs++].value = at;
		at = strchr(at, quote);
		if (quote == '"' && at) {
			*at++ = '\0';
			if (*at && *at != ' ')
				return false;
			at = *at ? at : NULL;
		} else if (quote == '"') {
			return false;
		}
	}
	return text_has_only(ev->name, LETTERS ".");
}

/* "?": it has no such argument. */
static const char *event_text(const struct event *ev, const char *key)
{
	for (unsigned i = 0; i < ev->npairs; i++)
		if (!strcmp(ev->pair[i].key, key))
			return ev->pair[i].value;
	return "?";
}

static bool event_has(const struct event *ev, const char *key)
{
	return strcmp(event_text(ev, key), "?") != 0;
}

static uint64_t event_number(const struct event *ev, const char *key)
{
	return strtoull(event_text(ev, key), NULL, 0);
}

static bool is_decimal(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n && n <= 15 && !s[n] && (n == 1 || s[0] != '0');
}

static void put_arguments(struct trace_events *e, const struct event *ev)
{
	for (unsigned i = 0; i < ev->npairs; i++)
		if (is_decimal(ev->pair[i].value))
			json_raw(&e->json, ev->pair[i].key, ev->pair[i].value);
		else
			json_string(&e->json, ev->pair[i].key, ev->pair[i].value);
}

/* ---- what trace points mean ---- */

static struct queue *queue_of(struct trace_events *e, struct traced_program *p,
			      enum track_kind kind, uint32_t number)
{
	const uint64_t key = (uint64_t)kind << 32 | number;
	struct queue *q;

	HASH_FIND(hh, p->queues, &key, sizeof(key), q);
	if (q || p->nqueues == TRACKS_MOST)
		return q;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	q->key = key;
	q->number = number;
	q->track = track_of(e, p, kind, number);
	if (!q->track) {
		free(q);
		return NULL;
	}
	HASH_ADD(hh, p->queues, key, sizeof(q->key), q);
	p->nqueues++;
	return q;
}

/* What a trace point is told with. */
struct told {
	struct trace_events *e;
	struct traced_program *p;
	const struct event *ev;
	struct queue *q; /* NULL: it is of no queue pair */
	uint64_t ns;
};

/* A slice without a length in a track, with all arguments. */
static void told_slice(const struct told *t, const struct track *track, const char *category,
		       const char *name)
{
	if (!track)
		return;
	slice_begin(t->e, category, name, t->ns, t->p->pid, track);
	put_arguments(t->e, t->ev);
	slice_end(t->e);
}

static void told_post(const struct told *t, struct request_list *l)
{
	struct request *r = t->q->whole && l->n < OPEN_MOST ? request_new(t->ns) : NULL;

	if (!r)
		return;
	r->wr_id = event_number(t->ev, "wr_id");
	r->has_wr_id = true;
	list_add(l, r);
}

static void told_post_send(const struct told *t)
{
	if (!t->q->built)
		told_post(t, &t->q->posted);
	told_slice(t, t->q->track, "post", "post send");
}

static struct request *srq_find(const struct told *t, struct queue *srq)
{
	uint32_t count = (uint32_t)event_number(t->ev, "count");
	struct request *r;

	HASH_FIND(hh, srq->open, &count, sizeof(count), r);
	if (r)
		HASH_DEL(srq->open, r);
	return r;
}

static void receive_name(struct request *r)
{
	(void)text_copy(r->opcode, sizeof(r->opcode), "RECV");
}

static void told_post_recv(const struct told *t)
{
	told_post(t, &t->q->receives);
	if (t->q->receives.last && t->q->receives.last->begun_ns == t->ns)
		receive_name(t->q->receives.last);
	told_slice(t, t->q->track, "post", "post receive");
}

/* If the library refuses a receive, the next one gets its count. */
static void told_srq_posted(const struct told *t)
{
	struct request *r;

	free(srq_find(t, t->q));
	r = HASH_COUNT(t->q->open) < OPEN_MOST ? request_new(t->ns) : NULL;
	if (r) {
		r->wqe = (uint32_t)event_number(t->ev, "count");
		r->wr_id = event_number(t->ev, "wr_id");
		r->has_wr_id = true;
		receive_name(r);
		HASH_ADD(hh, t->q->open, wqe, sizeof(r->wqe), r);
	}
	told_slice(t, t->q->track, "post", "post receive");
}

/* A queue pair takes the receive: from here on it is one of its own. */
static void told_srq_taken(const struct told *t)
{
	struct queue *srq = queue_of(t->e, t->p, TRACK_SRQ, (uint32_t)event_number(t->ev, "srqn"));
	struct request *r = srq ? srq_find(t, srq) : NULL;

	if (!r && t->q->receives.n < OPEN_MOST)
		r = request_new(t->ns);
	if (!r)
		return;
	r->taken_ns = t->ns;
	receive_name(r);
	list_add(&t->q->receives, r);
	told_slice(t, t->q->track, "wqe", "RECV");
}

static void told_post_built(const struct told *t)
{
	struct request *r;

	/* From now on nobody tells which of two kinds of posts a request came by. */
	while (!t->q->built && (r = list_take(&t->q->posted)))
		free(r);
	t->q->built = true;
	t->q->built_ns = t->ns;
	told_slice(t, t->q->track, "post", "post send");
}

static void told_post_refused(const struct told *t)
{
	bool receives = !strcmp(event_text(t->ev, "queue"), "RQ");

	list_shorten(receives ? &t->q->receives : &t->q->posted, event_number(t->ev, "requests"));
	told_slice(t, t->q->track, "post", "post refused");
}

static void told_taken(const struct told *t)
{
	uint32_t wqe = (uint32_t)event_number(t->ev, "wqe");
	struct queue *q = t->q;
	struct request *r;

	HASH_FIND(hh, q->open, &wqe, sizeof(wqe), r);
	if (r) {
		request_end(r, t->ns, "unknown");
		send_ended(t->e, t->p, q, r, false);
	}
	r = list_take(&q->posted);
	if (!r)
		r = request_new(q->built_ns ? q->built_ns : t->ns);
	if (!r)
		return;
	r->taken_ns = t->ns;
	r->wqe = wqe;
	r->bytes = event_number(t->ev, "bytes");
	(void)text_copy(r->opcode, sizeof(r->opcode), event_text(t->ev, "opcode"));
	if (HASH_COUNT(q->open) < OPEN_MOST)
		HASH_ADD(hh, q->open, wqe, sizeof(r->wqe), r);
	else
		free(r);
	told_slice(t, q->track, "wqe", event_text(t->ev, "opcode"));
}

static struct request *send_find(const struct told *t)
{
	uint32_t wqe = (uint32_t)event_number(t->ev, "wqe");
	struct request *r;

	HASH_FIND(hh, t->q->open, &wqe, sizeof(wqe), r);
	if (r)
		request_end(r, t->ns, event_text(t->ev, "status"));
	return r;
}

static void told_done(const struct told *t)
{
	struct request *r = send_find(t);

	if (r)
		send_ended(t->e, t->p, t->q, r, false);
}

/* The arrow from the request to the completion, which is the last slice of its track. */
static void completion_arrow(const struct told *t, const struct request *r, const struct track *cq)
{
	const struct flow from = {.ns = r->taken_ns, .pid = t->p->pid, .tid = t->q->track->tid};
	const struct flow to = {.ns = t->ns, .pid = t->p->pid, .tid = cq->tid};

	arrow_write(t->e, "completion", &from, &to);
}

static void told_written(const struct told *t)
{
	uint32_t cqn = (uint32_t)event_number(t->ev, "cqn");
	struct track *cq = track_of(t->e, t->p, TRACK_CQ, cqn);
	bool receive = !strcmp(event_text(t->ev, "queue"), "RQ");
	struct request *r = receive ? list_take(&t->q->receives) : send_find(t);
	char name[64];

	snprintf(name, sizeof(name), "%s %s", event_text(t->ev, "opcode"),
		 event_text(t->ev, "status"));
	told_slice(t, cq, "cqe", name);
	if (!r)
		return;
	r->cqn = cqn;
	if (receive) {
		r->wqe = (uint32_t)event_number(t->ev, "wqe");
		(void)text_copy(r->opcode, sizeof(r->opcode), event_text(t->ev, "opcode"));
		request_end(r, t->ns, event_text(t->ev, "status"));
		if (cq)
			completion_arrow(t, r, cq);
		request_write(t->e, t->p, t->q, r, true);
		return;
	}
	if (cq)
		completion_arrow(t, r, cq);
	send_ended(t->e, t->p, t->q, r, true);
}

/* A send that the program built itself gets its wr_id from the poll.  Of an error the queue is not
 * known, so only those are meant that have failed. */
static void told_polled(const struct told *t)
{
	const char *queue = event_text(t->ev, "queue");
	struct request *r = t->q->unpolled.first;
	bool failed = !strcmp(queue, "unknown");

	told_slice(t, t->q->track, "poll", "poll");
	if (!r || (!failed && strcmp(queue, "SQ") != 0) ||
	    (failed && !strcmp(r->status, "SUCCESS")))
		return;
	r = list_take(&t->q->unpolled);
	r->wr_id = event_number(t->ev, "wr_id");
	r->has_wr_id = true;
	request_write(t->e, t->p, t->q, r, false);
}

static void told_state(const struct told *t)
{
	if (!strcmp(event_text(t->ev, "to"), "RESET"))
		queue_end(t->e, t->p, t->q, t->ns, "reset");
	if (!strcmp(event_text(t->ev, "from"), "RESET")) {
		queue_end(t->e, t->p, t->q, t->ns, "reset");
		t->q->whole = true;
	}
	told_slice(t, t->q->track, "qp", event_text(t->ev, "to"));
}

static void dpa_slice(struct trace_events *e, const struct traced_program *p, struct track *track,
		      uint64_t ns, const char *outcome)
{
	char name[32];

	snprintf(name, sizeof(name), "0x%" PRIx64, track->function);
	event_open(e, "X", "dpa", name, p->pid, track->tid);
	event_at(e, track->entered_ns);
	put_time(e, "dur", ns > track->entered_ns ? ns - track->entered_ns : 0);
	json_open(&e->json, "args", '{');
	json_string(&e->json, "function", name);
	json_string(&e->json, "outcome", outcome);
	slice_end(e);
	track->entered_ns = 0;
}

static void told_dpa(const struct told *t, bool enter)
{
	struct track *track =
		track_of(t->e, t->p, TRACK_DPA, (uint32_t)event_number(t->ev, "thread"));

	if (!track)
		return;
	if (track->entered_ns)
		dpa_slice(t->e, t->p, track, t->ns, event_text(t->ev, "outcome"));
	if (enter) {
		track->entered_ns = t->ns;
		track->function = event_number(t->ev, "function");
	}
}

/* Decisions and doorbells. */
static void told_other(const struct told *t)
{
	struct track *track = t->q ? t->q->track : NULL;

	if (!strncmp(t->ev->name, "doorbell.", 9) && !strcmp(event_text(t->ev, "queue"), "SQ"))
		track = track_of(t->e, t->p, TRACK_QP, (uint32_t)event_number(t->ev, "number"));
	if (!track)
		track = track_of(t->e, t->p, TRACK_EVENTS, 0);
	told_slice(t, track, strncmp(t->ev->name, "doorbell.", 9) ? "decision" : "doorbell",
		   t->ev->name);
}

static const struct {
	const char *name;
	void (*told)(const struct told *t); /* with a queue pair */
} meanings[] = {
	{"post.send", told_post_send},	 {"post.recv", told_post_recv},
	{"post.built", told_post_built}, {"post.refused", told_post_refused},
	{"wqe.taken", told_taken},	 {"wqe.done", told_done},
	{"srq.posted", told_srq_posted}, {"srq.taken", told_srq_taken},
	{"cqe.written", told_written},	 {"cq.polled", told_polled},
	{"qp.state", told_state},
};

static void event_tell(struct told *t)
{
	if (!strcmp(t->ev->name, "dpa.enter") || !strcmp(t->ev->name, "dpa.leave")) {
		told_dpa(t, !strcmp(t->ev->name, "dpa.enter"));
		return;
	}
	if (event_has(t->ev, "qpn"))
		t->q = queue_of(t->e, t->p, TRACK_QP, (uint32_t)event_number(t->ev, "qpn"));
	else if (event_has(t->ev, "srqn"))
		t->q = queue_of(t->e, t->p, TRACK_SRQ, (uint32_t)event_number(t->ev, "srqn"));
	for (size_t i = 0; t->q && i < array_size(meanings); i++)
		if (!strcmp(t->ev->name, meanings[i].name)) {
			meanings[i].told(t);
			return;
		}
	told_other(t);
}

/* ---- packets and MADs ---- */

struct packet_event {
	uint64_t key; /* of its flow */
	uint32_t sqpn, dqpn, psn, bytes;
	uint8_t opcode;
	uint8_t mad; /* its class, method, attribute and transaction follow */
	uint8_t mad_class, mad_method;
	uint16_t mad_attribute;
	uint64_t mad_transaction;
};

static uint64_t flow_key(uint64_t a, uint64_t b)
{
	uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) ^ b * UINT64_C(0xc2b2ae3d27d4eb4f);

	return (x ^ x >> 29) | 1;
}

/* What the sender's and the receiver's record of a packet have in common. */
static void packet_event_of(const struct trace_events *e, const struct captured *c,
			    struct packet_event *out)
{
	const struct pkt *p = &c->packet.pkt;
	const uint8_t *mad = p->runs[0].addr;

	(void)e;
	*out = (struct packet_event){
		.sqpn = p->sqpn,
		.dqpn = p->dqpn,
		.psn = p->psn,
		.bytes = p->payload_len,
		.opcode = p->opcode,
	};
	out->key = flow_key((uint64_t)p->sqpn << 32 | p->dqpn, (uint64_t)p->opcode << 32 | p->psn);
	if (!c->frame && p->payload_len == MAD_BYTES && p->runs[0].len == MAD_BYTES &&
	    p->dqpn <= 1 && p->sqpn <= 1) {
		memcpy(&out->mad_transaction, mad + 8, sizeof(out->mad_transaction));
		out->mad = 1;
		out->mad_class = mad[1];
		out->mad_method = mad[3];
		out->mad_attribute = (uint16_t)(mad[16] << 8 | mad[17]);
		out->mad_transaction = be64toh(out->mad_transaction);
		out->key = 0;
	}
}

/* The place of a packet: the one that it has, or that of the packet that was sent the longest ago. */
static struct flow *flow_find(struct trace_events *e, uint64_t key)
{
	struct flow *set = e->flows[(key >> 1) % FLOW_SETS], *found = set;

	for (unsigned i = 0; i < FLOW_WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
		if (set[i].ns < found->ns)
			found = &set[i];
	}
	return found;
}

static void packet_flow(struct trace_events *e, const struct traced_program *p,
			const struct track *track, const struct capture_head *head,
			const struct packet_event *pe)
{
	struct flow *f = flow_find(e, pe->key);
	const struct flow here = {pe->key, head->ns, p->pid, track->tid};

	if (!pe->key)
		return;
	/* What was sent stays: a fault on demand may double it. */
	if (!head->received)
		*f = here;
	else if (f->key == pe->key)
		arrow_write(e, "packet", f, &here);
}

static void packet_write(struct trace_events *e, struct traced_program *p,
			 const struct capture_head *head, const struct packet_event *pe)
{
	struct track *track = track_of(e, p, TRACK_PORT, head->row);
	char name[64];

	if (!track)
		return;
	if (pe->mad)
		snprintf(name, sizeof(name), "%s MAD class 0x%x method 0x%x attribute 0x%x",
			 head->received ? "receive" : "send", pe->mad_class, pe->mad_method,
			 pe->mad_attribute);
	else
		snprintf(name, sizeof(name), "%s %s", head->received ? "receive" : "send",
			 head->kind == CAPTURE_FRAME ? "frame" : bth_op_name(pe->opcode));
	slice_begin(e, pe->mad ? "mad" : "packet", name, head->ns, p->pid, track);
	if (head->kind != CAPTURE_FRAME) {
		put_hex(e, "sqpn", pe->sqpn);
		put_hex(e, "dqpn", pe->dqpn);
	}
	if (pe->mad) {
		put_hex(e, "transaction", pe->mad_transaction);
	} else {
		if (head->kind != CAPTURE_FRAME)
			put_hex(e, "psn", pe->psn);
		json_number(&e->json, "bytes", pe->bytes);
	}
	slice_end(e);
	packet_flow(e, p, track, head, pe);
}

/* ---- for the reader ---- */

uint32_t trace_events_take(struct trace_events *e, const struct capture_head *head, uint32_t bytes,
			   void *room)
{
	struct packet_event *pe = room;
	struct captured c = {0};

	static_assert(sizeof(*pe) <= TRACE_EVENT_BYTES, "it fits");
	if (head->kind == CAPTURE_TRACE) {
		uint32_t n = head->bytes;

		if (!n || n > bytes - sizeof(*head) || n >= TRACE_EVENT_BYTES)
			return 0;
		memcpy(room, head + 1, n);
		((char *)room)[n] = '\0';
		return n + 1;
	}
	if (head->row >= e->view->subnet.nports || !capture_unpack(head, bytes, &c))
		return 0;
	if (head->kind == CAPTURE_FRAME)
		*pe = (struct packet_event){.bytes = (uint32_t)min_u64(head->whole, UINT32_MAX)};
	else
		packet_event_of(e, &c, pe);
	return sizeof(*pe);
}

void trace_events_write(struct trace_events *e, struct traced_program *p,
			const struct capture_head *head, const void *bytes, uint32_t n)
{
	char text[TRACE_EVENT_BYTES];
	struct event ev;
	struct told told = {.e = e, .p = p, .ev = &ev, .ns = head->ns};

	if (head->ns > e->last_ns)
		e->last_ns = head->ns;
	if (head->kind != CAPTURE_TRACE) {
		struct packet_event pe;

		memcpy(&pe, bytes, sizeof(pe));
		packet_write(e, p, head, &pe);
		return;
	}
	memcpy(text, bytes, n);
	text[n - 1] = '\0';
	if (event_read(text, &ev))
		event_tell(&told);
}

/* ---- beginning and end ---- */

struct trace_events *trace_events_open(FILE *out, struct view *v, uint64_t begun_ns)
{
	struct trace_events *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->json = (struct json){.out = out, .first = true};
	e->view = v;
	e->begun_ns = e->last_ns = begun_ns;
	e->next_tid = TRACK_FIRST;
	json_open(&e->json, NULL, '[');
	return e;
}

static void program_name(const struct traced_program *p, bool daemon, char *text, size_t size)
{
	char path[64], name[64] = "?";
	FILE *comm;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)p->pid);
	comm = daemon ? NULL : fopen(path, "re");
	if (comm) {
		if (fgets(name, sizeof(name), comm))
			name[strcspn(name, "\n")] = '\0';
		fclose(comm);
	}
	snprintf(text, size, "%s (%d)", daemon ? "softhcad" : name, (int)p->pid);
}

struct traced_program *trace_events_program(struct trace_events *e,
					    const struct msg_capture_ring *ring)
{
	struct traced_program *p = calloc(1, sizeof(*p));
	char name[96];

	if (!p)
		return NULL;
	p->pid = ring->pid;
	p->next = e->programs;
	e->programs = p;
	program_name(p, ring->slot == CAPTURE_DAEMON, name, sizeof(name));
	name_event(e, "process_name", name, p->pid, 0);
	return p;
}

void trace_events_ended(struct trace_events *e, struct traced_program *p, uint64_t ns)
{
	struct queue *q, *next_queue;
	struct track *t, *next_track;

	HASH_ITER(hh, p->queues, q, next_queue)
	{
		queue_end(e, p, q, ns, "outstanding");
		HASH_DEL(p->queues, q);
		free(q);
	}
	HASH_ITER(hh, p->tracks, t, next_track)
	{
		if (t->entered_ns)
			dpa_slice(e, p, t, ns, "runs");
		HASH_DEL(p->tracks, t);
		free(t);
	}
	p->ntracks = p->nqueues = 0;
}

void trace_events_end(struct trace_events *e)
{
	for (struct traced_program *p = e->programs; p; p = p->next)
		trace_events_ended(e, p, e->last_ns);
	fputs("\n", e->json.out);
	json_close(&e->json, ']');
	fputs("\n", e->json.out);
}

void trace_events_free(struct trace_events *e)
{
	while (e && e->programs) {
		struct traced_program *p = e->programs;

		trace_events_ended(e, p, e->last_ns);
		e->programs = p->next;
		free(p);
	}
	free(e);
}

struct trace_counts trace_events_counts(const struct trace_events *e)
{
	return e->counts;
}
