// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca trace: writes what the devices of programs do as a file of trace events (trace_events.h),
 * of all programs of a fabric until Ctrl-C, or while one program runs that it starts.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "tool/capture_reader.h"
#include "tool/trace_events.h"

/* A record of our own: the process has ended. */
#define RECORD_ENDED 255u
/* As softhca run says that a signal has ended the program, like shells. */
#define STATUS_OF_SIGNAL 128

struct tracing {
	struct reader reader;
	const struct session *s;
	FILE *out;
	const char *path;
	struct trace_events *events;
	uint64_t dropped;
	pid_t program; /* 0: none was started, or it has ended */
	int status;    /* the program's */
	bool told;     /* of a signal */
	bool no_memory;
};

static struct tracing *tracing_of(struct reader *r)
{
	return container_of(r, struct tracing, reader);
}

/* ---- records ---- */

static bool record_take(struct reader *r, void *source, const struct capture_head *head,
			uint32_t bytes)
{
	uint64_t room[TRACE_EVENT_BYTES / sizeof(uint64_t)];
	struct tracing *t = tracing_of(r);
	uint32_t n;

	if (head->kind == RECORD_ENDED)
		return false;
	n = trace_events_take(t->events, head, bytes, room);
	return n && source && reader_add(r, source, head, room, n, n);
}

static void record_write(struct reader *r, const struct waiting *w)
{
	struct tracing *t = tracing_of(r);

	if (w->head.kind == RECORD_ENDED)
		trace_events_ended(t->events, w->source, w->head.ns);
	else
		trace_events_write(t->events, w->source, &w->head, w->bytes, w->captured);
}

static void records_written(struct reader *r)
{
	(void)fflush(tracing_of(r)->out);
}

static void *program_begun(struct reader *r, const struct msg_capture_ring *ring)
{
	struct tracing *t = tracing_of(r);
	struct traced_program *p = trace_events_program(t->events, ring);

	t->no_memory |= !p;
	return p;
}

/* Its last records wait for their turn, and so does this. */
static void program_ended(struct reader *r, void *source)
{
	const struct capture_head head = {.ns = clock_realtime_ns(), .kind = RECORD_ENDED};

	if (source && !reader_add(r, source, &head, "", 0, 0))
		tracing_of(r)->no_memory = true;
}

static void records_dropped(struct reader *r, uint32_t row, uint64_t n)
{
	(void)row;
	tracing_of(r)->dropped += n;
}

static bool trace_full(struct reader *r)
{
	return ferror(tracing_of(r)->out) || tracing_of(r)->no_memory;
}

static const struct reader_ops trace_ops = {
	.record = record_take,
	.write = record_write,
	.written = records_written,
	.begun = program_begun,
	.ended = program_ended,
	.dropped = records_dropped,
	.full = trace_full,
};

/* ---- the arguments ---- */

static const struct {
	const char *name;
	uint32_t event;
} event_names[] = {
	{"wqe", CAPTURE_EVENT_WQE},	  {"doorbell", CAPTURE_EVENT_DOORBELL},
	{"packet", CAPTURE_EVENT_PACKET}, {"mad", CAPTURE_EVENT_MAD},
	{"dpa", CAPTURE_EVENT_DPA},	  {"decision", CAPTURE_EVENT_DECISION},
	{"all", CAPTURE_EVENT_ALL},
};

/* The name has n bytes.  0: no events are called so. */
static uint32_t events_named(const char *name, size_t n)
{
	for (size_t i = 0; i < array_size(event_names); i++)
		if (strlen(event_names[i].name) == n && !strncmp(event_names[i].name, name, n))
			return event_names[i].event;
	return 0;
}

static bool events_read(const struct session *s, const char *list, uint32_t *events)
{
	*events = 0;
	for (;; list++) {
		size_t n = strcspn(list, ",");
		uint32_t more = events_named(list, n);

		if (!more) {
			tool_error(
				s->command,
				"-e: no events are called '%.*s'; there are wqe, doorbell, packet, "
				"mad, dpa, decision and all",
				(int)n, list);
			return false;
		}
		*events |= more;
		list += n;
		if (!*list)
			return true;
	}
}

static bool options_take(struct tracing *t, const struct capture_options *o)
{
	struct capture_want *want = &t->reader.want.want;
	uint32_t mib = CAPTURE_RING_BYTES >> 20;

	if (!reader_number_option(t->s, "-B", o->buffer, CAPTURE_RING_BYTES_MAX >> 20, &mib) ||
	    !events_read(t->s, o->events ? o->events : "all", &want->events))
		return false;
	want->ring_bytes = reader_ring_bytes(mib);
	/* Of packets only the headers are shown. */
	want->snaplen = 1;
	return true;
}

/* ---- the program ---- */

static bool program_start(struct tracing *t, struct session *s, int argc, char **argv)
{
	(void)fflush(NULL);
	t->program = fork();
	if (t->program < 0) {
		tool_error(s->command, "%s", strerror(errno));
		t->program = 0;
		return false;
	}
	if (!t->program) {
		(void)signal(SIGINT, SIG_DFL);
		(void)signal(SIGTERM, SIG_DFL);
		(void)signal(SIGHUP, SIG_DFL);
		(void)signal(SIGPIPE, SIG_DFL);
		_exit(command_run(s, argc, argv));
	}
	return true;
}

/* True if the program has ended. */
static bool program_over(struct tracing *t)
{
	int status;

	if (waitpid(t->program, &status, WNOHANG) != t->program)
		return false;
	t->program = 0;
	t->status = WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_OF_SIGNAL + WTERMSIG(status);
	return true;
}

/* Passes the first signal on to the program, with whose end the trace ends. */
static void program_tell(struct tracing *t)
{
	int sig = reader_stop_signal();

	if (!sig || t->told)
		return;
	t->told = true;
	(void)kill(t->program, sig);
}

static void trace_program(struct tracing *t)
{
	while (!reader_over(&t->reader) && !program_over(t)) {
		program_tell(t);
		reader_turn(&t->reader);
	}
}

/* ---- the command ---- */

static int trace_report(struct tracing *t)
{
	struct trace_counts c = trace_events_counts(t->events);
	bool error = ferror(t->out) && errno != EPIPE;

	if (error)
		tool_error(t->s->command, "%s: %s", t->path, strerror(errno));
	if (t->no_memory)
		tool_error(t->s->command, "%s", strerror(ENOMEM));
	reader_report(&t->reader);
	/* That the program cannot run is all that there is to say. */
	if ((t->status == EXIT_NO_PROGRAM || t->status == EXIT_CANNOT_RUN) && !c.sends &&
	    !c.receives && !t->dropped)
		return error || t->no_memory ? EXIT_OURS : 0;
	fprintf(stderr,
		"%" PRIu64 " send requests, %" PRIu64 " receives, %" PRIu64 " events written\n"
		"%" PRIu64 " records dropped%s\n",
		c.sends, c.receives, c.events, t->dropped,
		t->dropped ? ": the buffers were full (-B or -e help)" : "");
	return error || t->no_memory ? EXIT_OURS : 0;
}

static int trace_to(struct tracing *t, struct session *s, int argc, char **argv)
{
	int status;

	t->path = s->capture.file;
	t->out = reader_output_open(s, t->path, "trace");
	if (!t->out)
		return EXIT_OURS;
	t->events = trace_events_open(t->out, &t->reader.view, clock_realtime_ns());
	if (!t->events) {
		tool_error(s->command, "%s", strerror(ENOMEM));
		return EXIT_OURS;
	}
	/* The first signal ends the program, and that the trace. */
	reader_signals_take(argc ? 2 : 1);
	if (!reader_join(&t->reader))
		return EXIT_OURS;
	if (!argc) {
		fprintf(stderr, "tracing fabric '%s'; end it with Ctrl-C\n", s->fabric);
		while (!reader_over(&t->reader))
			reader_turn(&t->reader);
	} else {
		if (!program_start(t, s, argc, argv))
			return EXIT_OURS;
		trace_program(t);
	}
	reader_finish(&t->reader);
	trace_events_end(t->events);
	(void)fflush(t->out);
	status = trace_report(t);
	return status ? status : t->status;
}

static void trace_close(struct tracing *t)
{
	trace_events_free(t->events);
	if (t->out)
		fclose(t->out);
	reader_close(&t->reader);
}

int command_trace(struct session *s, int argc, char **argv)
{
	const struct capture_options *o = &s->capture;
	static struct tracing t;
	int status;

	t.s = s;
	t.reader.s = s;
	t.reader.ops = &trace_ops;
	if (!o->file) {
		tool_error(s->command, "-w FILE is missing ('-' is standard output); see %s --help",
			   s->command);
		return EXIT_USAGE;
	}
	if (argc && !strcmp(o->file, "-")) {
		tool_error(s->command,
			   "standard output is the program's; give -w another file than '-'");
		return EXIT_USAGE;
	}
	if (!options_take(&t, o))
		return EXIT_USAGE;
	if (!reader_open(&t.reader, true))
		return EXIT_OURS;
	status = trace_to(&t, s, argc, argv);
	trace_close(&t);
	return status;
}
