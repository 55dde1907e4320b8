/* SPDX-License-Identifier: BSD-2-Clause */
/* A view of a running fabric: what the daemon says, and what the subnet shows. */
#pragma once

#include "fabric/attr.h"
#include "tool/tool.h"

struct view {
	int sock;
	struct msg_info_reply info;
	struct subnet subnet;
	void *memory; /* holds the subnet */
	/* After view_load, else NULL. */
	struct msg_host_reply *hosts;
	struct msg_counters_reply *counters; /* by row */
};

/* What the processes of the fabric share, to be read. */
struct view_segments {
	const struct slot *slots;
	const struct registry *registry;
	size_t slots_bytes;
};

/* Opens the view.  False after it has printed the error. */
bool view_open(const struct session *s, bool start, struct view *v);
/* The same with a connection and its answer to MSG_INFO.  Takes them over in any case. */
bool view_take(const struct session *s, int sock, const struct msg *m, int fds[MSG_MAX_FDS],
	       struct view *v);
void view_close(struct view *v);
/* Gets all hosts and counters, faster than one by one.  False after it has printed the error. */
bool view_load(const struct session *s, struct view *v);
/* The same without printing: 0 or -errno. */
int view_read(struct view *v) must_check;
/* False: there is no memory, or the daemon does not hand them out. */
bool view_segments_map(struct view *v, struct view_segments *out);
void view_segments_unmap(struct view_segments *segments);
/* Gives a row of the host table; false behind the last row. */
bool view_host(struct view *v, uint32_t index, struct msg_host_reply *host);
/* Writes a port attribute as text, without a newline. */
void view_attr(const struct view *v, uint32_t row, enum port_attr attr, char *buf, size_t size);
void view_guid(uint64_t guid, char *buf, size_t size);
void view_gid(const union ib_gid *gid, char *buf, size_t size);
const char *view_gid_type(const struct subnet_port *p, enum gid_type type);

/* ---- a port as users name it: [HOST/]HCA[:PORT] ---- */

struct port_name {
	char host[FABRIC_NAME_BYTES]; /* empty: the session's host */
	char hca[FABRIC_NAME_BYTES];
	uint32_t number;
};

/* Reads a name.  False after an error line: it is no name of a port. */
bool port_name_read(const struct session *s, const char *text, struct port_name *out);
/* Gives its row, and the name of its host.  False after an error line: there is no such port. */
bool port_name_find(const struct session *s, struct view *v, const struct port_name *name,
		    struct msg_host_reply *host, uint32_t *row);

/* ---- fabric up --listen; in tie.c ---- */

/* Opens what the session's port is to be tied to, before there is a fabric.  False after an error
 * line: nothing has changed. */
bool listen_prepare(const struct session *s);
/* Ties the last Ethernet port of the first host to it.  0, or an exit status after an error line. */
int listen_tie(const struct session *s);

/* ---- a port that goes down or comes up; in link.c ---- */

struct port_change {
	struct port_name name;
	enum ib_port_state state;
};

/* Reads the words of softhca fabric port.  False after an error line. */
bool port_change_read(const struct session *s, int argc, char **argv, struct port_change *out);
/* Makes the change.  0, or an exit status after an error line. */
int port_change_make(const struct session *s, struct view *v, const struct port_change *c);

/* ---- what a port is tied to; in tie.c ---- */

/* Prints a line behind that of the port, if the port is tied. */
void tied_print(struct view *v, uint32_t row);
/* Says in one line what the port is tied to, what has passed there, and what has gone wrong; false: it is
 * not tied. */
#define TIED_LINE_BYTES 1024u
bool tied_line(struct view *v, uint32_t row, char text[TIED_LINE_BYTES]) must_check;
/* Writes the member "tie" of a port's object, if the port is tied. */
void tied_json(struct view *v, struct json *j, uint32_t row);

/* ---- faults that act; in fault.c ---- */

/* Prints a rule that is set, and what it has done, in one line.  It may change texts in f so that
 * they end. */
void fault_rule_print(FILE *out, struct view *v, struct msg_fault_reply *f);

/* ---- a subnet, shown as text or drawn; in show.c ---- */

/* softhca fabric show without a page; the exit status. */
int subnet_show(const struct session *s, int argc, char **argv);

/* Draws the nodes and links of the InfiniBand subnet as SVG, for a page of its own colours.  False: no
 * memory. */
bool subnet_draw(FILE *out, struct view *v, const char *fabric) must_check;
/* Writes text for XML or HTML: no byte of it is markup, and what is no UTF-8 becomes U+FFFD. */
void xml_text(FILE *out, const char *text);
