// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca capture: reads the rings of all processes that take part, puts their packets in the order
 * of time, and writes them as frames of the link that they were on (docs/design/capture.md).
 */
#include "tool/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/record_ring.h"
#include "base/text.h"
#include "fabric/client/link.h"
#include "tool/pcapng.h"
#include "wire/capture.h"
#include "wire/roce.h"
#include "wire/tap.h"

#define ERROR_BYTES 256u
/* Packets wait for earlier ones of other processes, but not longer for a thread that was stopped while
 * it sent one. */
#define WAIT_NS 2000000000u
/* How much memory they may take; then the earliest does not wait any more. */
#define WAIT_BYTES ((size_t)256 << 20)
#define POLL_MS	   4
#define JOIN_NS	   1000000000u
#define TURN_MOST  4096u /* records of a ring before others have their turn */

/* Frames have room for so many octets, so that few of them take memory that they do not need. */
static const uint32_t rooms[] = {512, ROCE_FRAME_MAX};

/* A frame that waits for its turn. */
struct waiting {
	struct waiting *next; /* while it is spare */
	uint64_t ns, number;  /* number: the order in which they came */
	uint32_t room;
	uint32_t row;
	uint32_t captured, whole;
	bool received;
	uint8_t bytes[];
};

/* A ring with its writer. */
struct source {
	struct source *next;
	struct record_ring ring;
	uint32_t slot, first_row;
	int32_t pid;
	uint64_t known_ns; /* what is older has come out of the ring */
	bool ended;	   /* the writer has ended */
	bool broken;
};

/* A head, the header of a packet, and as much of a payload as there may be. */
#define RECORD_MOST (sizeof(struct capture_head) + 512 + CAPTURE_SNAPLEN)

struct capturing {
	const struct session *s;
	struct view view;
	struct view_segments segments;
	struct msg_capture want;
	FILE *out;
	const char *path;
	uint64_t begun_ns;
	uint32_t *interface; /* by row of the port; SUBNET_NONE: it is not captured */
	struct pcapng_counts *counts;
	uint32_t ninterfaces;
	bool quiet;    /* Wireshark takes each line for an error */
	uint64_t most; /* packets; 0: no limit */
	uint64_t written, dropped, came;
	bool all_known; /* the programs that ran at the beginning have rings */
	struct source *sources;
	struct waiting *spare[array_size(rooms)]; /* for the next frames */
	struct waiting **heap;			  /* the earliest first */
	uint32_t nheap, room;
	size_t heap_bytes;
	bool gone; /* the daemon */
	/* The record that is looked at: its writer may go on to change the one in the ring. */
	_Alignas(RECORD_RING_ALIGN) uint8_t record[RECORD_MOST];
	uint32_t nbroken, nabsent;
};

static volatile sig_atomic_t stopped;

static void capture_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static bool capture_over(const struct capturing *c)
{
	return stopped || c->gone || ferror(c->out) || (c->most && c->written >= c->most);
}

/* ---- the order of time ---- */

static bool waiting_before(const struct waiting *a, const struct waiting *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->number < b->number;
}

static void heap_swap(struct capturing *c, uint32_t i, uint32_t j)
{
	struct waiting *w = c->heap[i];

	c->heap[i] = c->heap[j];
	c->heap[j] = w;
}

static bool heap_push(struct capturing *c, struct waiting *w)
{
	if (c->nheap == c->room) {
		uint32_t room = c->room ? 2 * c->room : 1024;
		struct waiting **grown = realloc(c->heap, room * sizeof(struct waiting *));

		if (!grown)
			return false;
		c->heap = grown;
		c->room = room;
	}
	w->number = c->came++;
	c->heap_bytes += w->room;
	c->heap[c->nheap] = w;
	for (uint32_t i = c->nheap++; i && waiting_before(c->heap[i], c->heap[(i - 1) / 2]);
	     i = (i - 1) / 2)
		heap_swap(c, i, (i - 1) / 2);
	return true;
}

static struct waiting *heap_pop(struct capturing *c)
{
	struct waiting *first = c->heap[0];

	c->heap_bytes -= first->room;
	c->heap[0] = c->heap[--c->nheap];
	for (uint32_t i = 0, child; (child = 2 * i + 1) < c->nheap; i = child) {
		if (child + 1 < c->nheap && waiting_before(c->heap[child + 1], c->heap[child]))
			child++;
		if (!waiting_before(c->heap[child], c->heap[i]))
			break;
		heap_swap(c, i, child);
	}
	return first;
}

/* Spare ones are used again, the last first, because its memory is in the cache. */
static struct waiting *waiting_get(struct capturing *c, uint32_t room)
{
	struct waiting *w;
	size_t i = 0;

	while (i < array_size(rooms) && rooms[i] < room)
		i++;
	if (i < array_size(rooms)) {
		room = rooms[i];
		w = c->spare[i];
		if (w) {
			c->spare[i] = w->next;
			return w;
		}
	}
	w = malloc(sizeof(*w) + room);
	if (w)
		w->room = room;
	return w;
}

static void waiting_put(struct capturing *c, struct waiting *w)
{
	for (size_t i = 0; i < array_size(rooms); i++) {
		if (w->room != rooms[i])
			continue;
		w->next = c->spare[i];
		c->spare[i] = w;
		return;
	}
	free(w);
}

static void waiting_write(struct capturing *c, const struct waiting *w)
{
	const struct pcapng_packet p = {
		.interface = c->interface[w->row],
		.received = w->received,
		.ns = w->ns,
		.bytes = w->bytes,
		.captured = w->captured,
		.whole = w->whole,
	};

	if (c->view.subnet.ports[w->row].ethernet)
		pcapng_ethernet(c->out, &p);
	else
		pcapng_infiniband(c->out, &p);
	c->counts[p.interface].received++;
	c->written++;
}

/* Writes what is older than that. */
static void waiting_write_until(struct capturing *c, uint64_t ns)
{
	bool some = false;

	while (c->nheap && (c->heap[0]->ns < ns || c->heap_bytes > WAIT_BYTES) &&
	       !(c->most && c->written >= c->most)) {
		struct waiting *w = heap_pop(c);

		waiting_write(c, w);
		waiting_put(c, w);
		some = true;
	}
	if (some)
		(void)fflush(c->out);
}

/* ---- records ---- */

/* The port that the packet names, or the one that has its address. */
static const uint8_t *station_of(const struct subnet *s, uint32_t row, const union ib_gid *gid)
{
	static const uint8_t nobody[6];

	if (row >= s->nports)
		row = subnet_port_by_gid(s, gid);
	return row < s->nports ? s->ports[row].mac : nobody;
}

static uint32_t frame_make(const struct subnet *s, const struct capture_head *head,
			   const struct pkt *p, uint8_t *frame, uint32_t room)
{
	static const uint8_t unknown[6];
	const struct path *path = p->path;
	const uint8_t *to = path->dmac;

	if (!s->ports[head->row].ethernet)
		return infiniband_encode(p, frame, room);
	if (!memcmp(to, unknown, sizeof(unknown)))
		to = station_of(s, path->dst_port, &path->dgid);
	return roce_encode_any(p, station_of(s, path->src_port, &path->sgid), to, frame, room);
}

static bool waiting_add(struct capturing *c, const struct capture_head *head, const void *frame,
			uint32_t captured, uint32_t whole)
{
	struct waiting *w = waiting_get(c, captured);

	if (!w)
		return false;
	w->ns = head->ns;
	w->row = head->row;
	w->received = head->received;
	w->captured = captured;
	w->whole = whole;
	memcpy(w->bytes, frame, captured);
	if (heap_push(c, w))
		return true;
	waiting_put(c, w);
	return false;
}

/* True if the record holds something that is not wanted, or that was put into the heap. */
static bool record_take(struct capturing *c, const struct capture_head *head, uint32_t bytes)
{
	uint8_t frame[ROCE_FRAME_MAX];
	struct captured captured;
	const struct pkt *p = &captured.packet.pkt;
	uint32_t n, missing;

	if (bytes < sizeof(*head) || head->row >= c->view.subnet.nports ||
	    c->interface[head->row] == SUBNET_NONE || !capture_unpack(head, bytes, &captured))
		return false;
	if (head->kind == CAPTURE_FRAME)
		return waiting_add(c, head, captured.frame, captured.bytes, (uint32_t)head->whole);
	if (head->kind == CAPTURE_MAD && !capture_matches(&c->want.want, p))
		return true;
	n = frame_make(&c->view.subnet, head, p, frame, sizeof(frame));
	if (!n)
		return false;
	/* Nothing from the first byte on that was not copied. */
	missing = p->payload_len - captured.bytes;
	missing = missing ? (uint32_t)align_up(missing + ICRC_OCTETS, 4) : 0;
	return missing <= n &&
	       waiting_add(c, head, frame, min_u32(c->want.want.snaplen, n - missing), n);
}

/* The earliest time of a packet that the writer has sent, and for which it has no record yet. */
static uint64_t source_sending(const struct capturing *c, const struct source *src)
{
	const struct slot *s = c->segments.slots;

	if (src->slot >= REGISTRY_SLOTS || s[src->slot].pid != src->pid ||
	    !atomic_load(&s[src->slot].alive))
		return UINT64_MAX;
	return sending_earliest(&s[src->slot]);
}

/* True if there was something.  now: a time before the call, or 0. */
static bool source_read(struct capturing *c, struct source *src, uint64_t now)
{
	uint64_t sending = source_sending(c, src);
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
		if (bytes <= sizeof(c->record))
			memcpy(c->record, record, bytes);
		if (bytes > sizeof(c->record) ||
		    !record_take(c, (const struct capture_head *)c->record, bytes))
			c->nbroken++;
		record_ring_take(&src->ring, record, bytes);
	}
	return true;
}

/* Reads all rings, and writes what nobody can have an earlier packet than. */
static bool sources_read(struct capturing *c, uint64_t now)
{
	uint64_t known = now;
	bool some = false;

	for (struct source *src = c->sources; src; src = src->next) {
		some |= source_read(c, src, now);
		if (!src->broken)
			known = min_u64(known, src->known_ns);
	}
	waiting_write_until(c, max_u64(known, now - WAIT_NS));
	return some;
}

/* Adds up what the writer has dropped. */
static void source_count(struct capturing *c, const struct source *src)
{
	for (uint32_t i = 0; i < src->ring.nsources; i++) {
		uint64_t n = atomic_load(&src->ring.head->dropped[i]);
		uint32_t row = src->first_row + i;

		c->dropped += n;
		if (n && row < c->view.subnet.nports && c->interface[row] != SUBNET_NONE)
			c->counts[c->interface[row]].dropped += n;
	}
	if (src->broken)
		c->nbroken++;
	if (!src->ended && !atomic_load(&src->ring.head->joined))
		c->nabsent++;
}

static void source_free(struct source *src)
{
	record_ring_unmap(&src->ring);
	free(src);
}

/* Reads what is in the ring now, but not what comes meanwhile. */
static void source_finish(struct capturing *c, struct source *src)
{
	uint64_t come = atomic_load(&src->ring.head->reserved) - src->ring.at;
	uint64_t end = src->ring.at + min_u64(come, src->ring.bytes);

	while (src->ring.at < end && !ferror(c->out) && !(c->most && c->written >= c->most) &&
	       source_read(c, src, 0))
		waiting_write_until(c, 0);
	/* A thread was killed while it wrote a record; what others wrote behind it is lost. */
	if (src->ended && src->ring.at < end && !src->broken)
		c->nbroken++;
}

/* Lets go of rings whose writers have ended, with what is in them. */
static void sources_settle(struct capturing *c)
{
	for (struct source **at = &c->sources; *at;) {
		struct source *src = *at;

		if (!src->ended) {
			at = &src->next;
			continue;
		}
		source_finish(c, src);
		*at = src->next;
		source_count(c, src);
		source_free(src);
	}
}

/* ---- what the daemon says ---- */

static void ring_take(struct capturing *c, const struct msg_capture_ring *ring, int fd)
{
	struct source *src = calloc(1, sizeof(*src));

	if (!src || record_ring_map(&src->ring, fd, ring->want.ring_bytes, ring->nsources)) {
		tool_error(c->s->command, "process %d is not captured: %s", (int)ring->pid,
			   strerror(errno));
		free(src);
		return;
	}
	src->slot = ring->slot;
	src->first_row = ring->first_row;
	src->pid = ring->pid;
	src->next = c->sources;
	c->sources = src;
}

static void message_take(struct capturing *c, const struct msg *m, int fds[MSG_MAX_FDS])
{
	if (msg_kind(m) == MSG_REPLY) {
		c->all_known = true;
	} else if (m->head.type == MSG_CAPTURE) {
		ring_take(c, &m->capture_ring, fds[0]);
	} else if (m->head.type == MSG_CAPTURE_END) {
		for (struct source *src = c->sources; src; src = src->next)
			src->ended |= src->slot == m->capture_end.slot;
		sources_settle(c);
	}
	msg_close_fds(fds);
}

/* Waits so long for messages. */
static void messages_wait(const struct capturing *c, int ms)
{
	struct pollfd p = {.fd = c->view.sock, .events = POLLIN};

	(void)poll(&p, 1, ms);
}

/* Takes the messages that there are. */
static void messages_take(struct capturing *c)
{
	int fds[MSG_MAX_FDS], ret = 0;
	struct msg m;

	while (!ret) {
		ret = msg_recv(c->view.sock, &m, fds, 1u << MSG_REPLY | 1u << MSG_NOTE,
			       MSG_DONTWAIT);
		if (!ret)
			message_take(c, &m, fds);
	}
	if (ret != -EAGAIN && ret != -EMFILE && ret != -ENOMEM)
		c->gone = true;
}

static bool sources_joined(const struct capturing *c)
{
	for (const struct source *src = c->sources; src; src = src->next)
		if (!atomic_load(&src->ring.head->joined))
			return false;
	return c->all_known;
}

/* Waits until all programs that run take part, but not long for one that is stopped. */
static bool capture_join(struct capturing *c)
{
	uint64_t until = clock_ns() + JOIN_NS;
	int fds[MSG_MAX_FDS];
	struct msg m = {.capture = c->want};
	int ret = link_call(c->view.sock, &m, MSG_CAPTURE, fds);

	if (ret) {
		session_link_error(c->s, ret);
		return false;
	}
	/* The answer comes behind the rings of all programs that run. */
	m = (struct msg){0};
	msg_prepare(&m, MSG_INFO, MSG_REQUEST, 1, 0);
	if (msg_send(c->view.sock, &m, NULL, 0, 0))
		c->gone = true;
	while (!sources_joined(c) && clock_ns() < until && !capture_over(c)) {
		messages_wait(c, 1);
		messages_take(c);
	}
	return true;
}

/* ---- the file ---- */

void capture_port_text(struct view *v, uint32_t row, char text[CAPTURE_PORT_TEXT])
{
	const struct subnet_node *node = subnet_node_of(&v->subnet, row);
	struct msg_host_reply host;
	char number[16] = "";

	if (!view_host(v, node->host, &host))
		host.name[0] = '\0';
	if (node->nports > 1)
		snprintf(number, sizeof(number), ":%u", v->subnet.ports[row].number);
	snprintf(text, CAPTURE_PORT_TEXT, "%s/%.*s%s", host.name, (int)sizeof(node->name),
		 node->name, number);
}

/* Gives the port an interface of the file. */
static void interface_add(struct capturing *c, uint32_t row)
{
	char name[CAPTURE_PORT_TEXT];

	if (c->interface[row] != SUBNET_NONE)
		return;
	capture_port_text(&c->view, row, name);
	pcapng_interface(
		c->out, c->view.subnet.ports[row].ethernet ? LINKTYPE_ETHERNET : LINKTYPE_ERF,
		c->want.want.snaplen + (c->view.subnet.ports[row].ethernet ? 0 : ERF_OCTETS), name);
	c->interface[row] = c->ninterfaces++;
}

static bool file_begin(struct capturing *c)
{
	const struct subnet *s = &c->view.subnet;

	c->interface = malloc(s->nports * sizeof(*c->interface));
	c->counts = calloc(s->nports, sizeof(*c->counts));
	if (!c->interface || !c->counts) {
		tool_error(c->s->command, "%s", strerror(ENOMEM));
		return false;
	}
	for (uint32_t row = 0; row < s->nports; row++)
		c->interface[row] = SUBNET_NONE;
	c->begun_ns = clock_realtime_ns();
	pcapng_begin(c->out, "softhca " SOFTHCA_VERSION);
	for (uint32_t i = 0; i < c->want.nrows; i++)
		interface_add(c, c->want.rows[i]);
	for (uint32_t row = 0; !c->want.nrows && row < s->nports; row++)
		if (subnet_node_of(s, row)->kind == SUBNET_HCA)
			interface_add(c, row);
	return !fflush(c->out);
}

static void file_end(struct capturing *c)
{
	for (uint32_t i = 0; i < c->ninterfaces; i++) {
		c->counts[i].begun_ns = c->begun_ns;
		c->counts[i].ended_ns = clock_realtime_ns();
		pcapng_statistics(c->out, i, &c->counts[i]);
	}
	(void)fflush(c->out);
}

static bool file_open(struct capturing *c, const char *path)
{
	c->path = path;
	c->out = strcmp(path, "-") ? fopen(path, "we") : stdout;
	if (c->out && c->out == stdout && isatty(STDOUT_FILENO)) {
		tool_error(c->s->command, "a capture is not for a terminal; give a file or a pipe");
		return false;
	}
	if (!c->out)
		tool_error(c->s->command, "%s: %s", path, strerror(errno));
	else
		(void)setvbuf(c->out, NULL, _IOFBF, 1u << 20);
	return c->out;
}

/* ---- the arguments ---- */

#define COUNT_MOST 268435456u

static bool number_option(const struct session *s, const char *option, const char *text,
			  uint32_t max, uint32_t *out)
{
	if (!text || text_number(text, max, out))
		return true;
	tool_error(s->command, "%s takes a number from 1 to %u, not '%s'", option, max, text);
	return false;
}

static bool options_take(struct capturing *c, const struct capture_options *o)
{
	struct capture_want *want = &c->want.want;
	uint32_t count = 0, mib = CAPTURE_RING_BYTES >> 20;
	const char *expression = o->expression ? o->expression : o->filter;
	char error[ERROR_BYTES];

	want->snaplen = CAPTURE_SNAPLEN;
	if (!number_option(c->s, "-c", o->count, COUNT_MOST, &count) ||
	    !number_option(c->s, "-s", o->snaplen, CAPTURE_SNAPLEN, &want->snaplen) ||
	    !number_option(c->s, "-B", o->buffer, CAPTURE_RING_BYTES_MAX >> 20, &mib))
		return false;
	c->most = count;
	/* The next power of 2. */
	want->ring_bytes = CAPTURE_RING_BYTES_MIN;
	while (want->ring_bytes >> 20 < mib)
		want->ring_bytes *= 2;
	if (!expression || capture_expression_read(expression, want, error, sizeof(error)))
		return true;
	tool_error(c->s->command, "-f: %s", error);
	return false;
}

/* Finds the ports that the arguments name. */
static int ports_take(struct capturing *c, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		struct msg_host_reply host;
		struct port_name name;

		if (c->want.nrows == FABRIC_CAPTURE_PORTS) {
			tool_error(c->s->command, "at most %u ports can be named",
				   FABRIC_CAPTURE_PORTS);
			return EXIT_USAGE;
		}
		if (!port_name_read(c->s, argv[i], &name))
			return EXIT_USAGE;
		if (!port_name_find(c->s, &c->view, &name, &host, &c->want.rows[c->want.nrows]))
			return EXIT_OURS;
		c->want.nrows++;
	}
	return 0;
}

/* ---- the command ---- */

static void signals_take(void)
{
	/* A second signal ends the program, even if nobody reads what it writes. */
	const struct sigaction stop = {.sa_handler = capture_stop,
				       .sa_flags = SA_RESTART | SA_RESETHAND};

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

static void capture_run(struct capturing *c)
{
	bool some = true;

	while (!capture_over(c)) {
		uint64_t now;

		if (!some)
			messages_wait(c, POLL_MS);
		/* A program sends nothing before we have the message with its ring. */
		now = clock_realtime_ns();
		messages_take(c);
		some = sources_read(c, now);
	}
	for (struct source *src = c->sources; src; src = src->next)
		source_finish(c, src);
	waiting_write_until(c, UINT64_MAX);
	for (struct source *src = c->sources; src; src = src->next)
		source_count(c, src);
}

static int capture_report(const struct capturing *c)
{
	bool error = ferror(c->out) && errno != EPIPE;

	if (error)
		tool_error(c->s->command, "%s: %s", c->path, strerror(errno));
	if (c->gone)
		tool_error(c->s->command, "fabric '%s' has gone", c->s->fabric);
	if (c->nabsent)
		tool_error(c->s->command,
			   "%u programs took no part: they are stopped, or lack a "
			   "descriptor or memory for it",
			   c->nabsent);
	if (c->nbroken)
		tool_error(c->s->command, "%u records were not readable", c->nbroken);
	if (!c->quiet || c->dropped)
		fprintf(stderr, "%" PRIu64 " packets captured\n%" PRIu64 " packets dropped%s\n",
			c->written, c->dropped,
			c->dropped ? ": the buffers were full (-B, -s or -f help)" : "");
	return error ? EXIT_OURS : 0;
}

static void capture_close(struct capturing *c)
{
	while (c->nheap)
		waiting_put(c, heap_pop(c));
	for (size_t i = 0; i < array_size(rooms); i++)
		while (c->spare[i]) {
			struct waiting *w = c->spare[i];

			c->spare[i] = w->next;
			free(w);
		}
	free(c->heap);
	while (c->sources) {
		struct source *src = c->sources;

		c->sources = src->next;
		source_free(src);
	}
	free(c->interface);
	free(c->counts);
	if (c->out)
		fclose(c->out);
	view_segments_unmap(&c->segments);
	view_close(&c->view);
}

static int capture_to(struct capturing *c, const char *path)
{

	if (!file_open(c, path))
		return EXIT_OURS;
	signals_take();
	if (!file_begin(c) || !capture_join(c))
		return ferror(c->out) ? capture_report(c) : EXIT_OURS;
	if (!c->quiet)
		fprintf(stderr, "capturing %u ports; end it with Ctrl-C\n", c->ninterfaces);
	capture_run(c);
	if (!ferror(c->out))
		file_end(c);
	return capture_report(c);
}

int command_capture(struct session *s, int argc, char **argv)
{
	const struct capture_options *o = &s->capture;
	static struct capturing c;
	const char *path = o->fifo ? o->fifo : o->file;
	int status;

	c.s = s;
	c.quiet = o->capture;
	if (o->interfaces || o->dlts || o->config || (o->filter && !o->capture))
		return capture_extcap(s, o);
	if (!path) {
		tool_error(s->command, "-w FILE is missing ('-' is standard output); see %s --help",
			   s->command);
		return EXIT_USAGE;
	}
	if (!options_take(&c, o))
		return EXIT_USAGE;
	if (!view_open(s, !o->capture, &c.view))
		return EXIT_OURS;
	if (!view_segments_map(&c.view, &c.segments)) {
		tool_error(s->command, "the programs of fabric '%s' cannot be seen", s->fabric);
		view_close(&c.view);
		return EXIT_OURS;
	}
	if (o->interface)
		status = capture_extcap_port(s, &c.view, o->interface, &c.want);
	else
		status = ports_take(&c, argc, argv);
	if (!status)
		status = capture_to(&c, path);
	capture_close(&c);
	return status;
}
