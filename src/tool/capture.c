// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca capture: writes the packets of all processes that take part as frames of the link that they
 * were on (docs/design/capture.md).
 */
#include "tool/capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tool/capture_reader.h"
#include "tool/pcapng.h"
#include "wire/capture.h"
#include "wire/roce.h"

#define ERROR_BYTES 256u

struct capturing {
	struct reader reader;
	const struct session *s;
	FILE *out;
	const char *path;
	uint64_t begun_ns;
	uint32_t *interface; /* by row of the port; SUBNET_NONE: it is not captured */
	struct pcapng_counts *counts;
	uint32_t ninterfaces;
	bool quiet;    /* Wireshark takes each line for an error */
	uint64_t most; /* packets; 0: no limit */
	uint64_t written, dropped;
};

static struct capturing *capturing_of(struct reader *r)
{
	return container_of(r, struct capturing, reader);
}

/* ---- records ---- */

static void packet_write(struct reader *r, const struct waiting *w)
{
	struct capturing *c = capturing_of(r);
	const struct pcapng_packet p = {
		.interface = c->interface[w->head.row],
		.received = w->head.received,
		.ns = w->head.ns,
		.bytes = w->bytes,
		.captured = w->captured,
		.whole = w->whole,
	};

	if (r->view.subnet.ports[w->head.row].ethernet)
		pcapng_ethernet(c->out, &p);
	else
		pcapng_infiniband(c->out, &p);
	c->counts[p.interface].received++;
	c->written++;
}

static void packets_written(struct reader *r)
{
	(void)fflush(capturing_of(r)->out);
}

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

static bool record_take(struct reader *r, void *source, const struct capture_head *head,
			uint32_t bytes)
{
	struct capturing *c = capturing_of(r);
	uint8_t frame[ROCE_FRAME_MAX];
	struct captured captured;
	const struct pkt *p = &captured.packet.pkt;
	uint32_t n, missing;

	if (bytes < sizeof(*head) || head->row >= r->view.subnet.nports ||
	    c->interface[head->row] == SUBNET_NONE || !capture_unpack(head, bytes, &captured))
		return false;
	if (head->kind == CAPTURE_FRAME)
		return reader_add(r, source, head, captured.frame, captured.bytes,
				  (uint32_t)head->whole);
	if (head->kind == CAPTURE_MAD && !capture_matches(&r->want.want, p))
		return true;
	n = frame_make(&r->view.subnet, head, p, frame, sizeof(frame));
	if (!n)
		return false;
	/* Nothing from the first byte on that was not copied. */
	missing = p->payload_len - captured.bytes;
	missing = missing ? (uint32_t)align_up(missing + ICRC_OCTETS, 4) : 0;
	return missing <= n &&
	       reader_add(r, source, head, frame, min_u32(r->want.want.snaplen, n - missing), n);
}

static void packets_dropped(struct reader *r, uint32_t row, uint64_t n)
{
	struct capturing *c = capturing_of(r);

	c->dropped += n;
	if (row < r->view.subnet.nports && c->interface[row] != SUBNET_NONE)
		c->counts[c->interface[row]].dropped += n;
}

static bool capture_full(struct reader *r)
{
	const struct capturing *c = capturing_of(r);

	return ferror(c->out) || (c->most && c->written >= c->most);
}

static const struct reader_ops capture_ops = {
	.record = record_take,
	.write = packet_write,
	.written = packets_written,
	.dropped = packets_dropped,
	.full = capture_full,
};

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
	capture_port_text(&c->reader.view, row, name);
	pcapng_interface(c->out,
			 c->reader.view.subnet.ports[row].ethernet ? LINKTYPE_ETHERNET
								   : LINKTYPE_ERF,
			 c->reader.want.want.snaplen +
				 (c->reader.view.subnet.ports[row].ethernet ? 0 : ERF_OCTETS),
			 name);
	c->interface[row] = c->ninterfaces++;
}

static bool file_begin(struct capturing *c)
{
	const struct subnet *s = &c->reader.view.subnet;

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
	for (uint32_t i = 0; i < c->reader.want.nrows; i++)
		interface_add(c, c->reader.want.rows[i]);
	for (uint32_t row = 0; !c->reader.want.nrows && row < s->nports; row++)
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

/* ---- the arguments ---- */

#define COUNT_MOST 268435456u

static bool options_take(struct capturing *c, const struct capture_options *o)
{
	struct capture_want *want = &c->reader.want.want;
	uint32_t count = 0, mib = CAPTURE_RING_BYTES >> 20;
	const char *expression = o->expression ? o->expression : o->filter;
	char error[ERROR_BYTES];

	want->snaplen = CAPTURE_SNAPLEN;
	want->events = CAPTURE_EVENT_PACKET | CAPTURE_EVENT_MAD;
	if (!reader_number_option(c->s, "-c", o->count, COUNT_MOST, &count) ||
	    !reader_number_option(c->s, "-s", o->snaplen, CAPTURE_SNAPLEN, &want->snaplen) ||
	    !reader_number_option(c->s, "-B", o->buffer, CAPTURE_RING_BYTES_MAX >> 20, &mib))
		return false;
	c->most = count;
	want->ring_bytes = reader_ring_bytes(mib);
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

		if (c->reader.want.nrows == FABRIC_CAPTURE_PORTS) {
			tool_error(c->s->command, "at most %u ports can be named",
				   FABRIC_CAPTURE_PORTS);
			return EXIT_USAGE;
		}
		if (!port_name_read(c->s, argv[i], &name))
			return EXIT_USAGE;
		if (!port_name_find(c->s, &c->reader.view, &name, &host,
				    &c->reader.want.rows[c->reader.want.nrows]))
			return EXIT_OURS;
		c->reader.want.nrows++;
	}
	return 0;
}

/* ---- the command ---- */

static int capture_report(const struct capturing *c)
{
	bool error = ferror(c->out) && errno != EPIPE;

	if (error)
		tool_error(c->s->command, "%s: %s", c->path, strerror(errno));
	reader_report(&c->reader);
	if (!c->quiet || c->dropped)
		fprintf(stderr, "%" PRIu64 " packets captured\n%" PRIu64 " packets dropped%s\n",
			c->written, c->dropped,
			c->dropped ? ": the buffers were full (-B, -s or -f help)" : "");
	return error ? EXIT_OURS : 0;
}

static void capture_close(struct capturing *c)
{
	free(c->interface);
	free(c->counts);
	if (c->out)
		fclose(c->out);
	reader_close(&c->reader);
}

static int capture_to(struct capturing *c, const char *path)
{
	c->path = path;
	c->out = reader_output_open(c->s, path, "capture");
	if (!c->out)
		return EXIT_OURS;
	reader_signals_take(1);
	if (!file_begin(c) || !reader_join(&c->reader))
		return ferror(c->out) ? capture_report(c) : EXIT_OURS;
	if (!c->quiet)
		fprintf(stderr, "capturing %u ports; end it with Ctrl-C\n", c->ninterfaces);
	while (!reader_over(&c->reader))
		reader_turn(&c->reader);
	reader_finish(&c->reader);
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
	c.reader.s = s;
	c.reader.ops = &capture_ops;
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
	if (!reader_open(&c.reader, !o->capture))
		return EXIT_OURS;
	if (o->interface)
		status = capture_extcap_port(s, &c.reader.view, o->interface, &c.reader.want);
	else
		status = ports_take(&c, argc, argv);
	if (!status)
		status = capture_to(&c, path);
	capture_close(&c);
	return status;
}
