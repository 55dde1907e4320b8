// SPDX-License-Identifier: BSD-2-Clause
/* See programs.h. */
#include "tool/programs.h"

#include <stdio.h>
#include <string.h>

#include "prm/wqe.h"

/* ---- a process as the system describes it; reading that waits for nobody ---- */

void text_printable(char *text, size_t size)
{
	for (size_t i = 0; i < size && text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	text[size - 1] = '\0';
}

static const char *state_of(char letter)
{
	switch (letter) {
	case 'T':
		return "stopped";
	case 't':
		return "stopped by a debugger";
	case 'Z':
	case 'X':
		return "ended";
	default:
		return "running";
	}
}

/*
 * Reads /proc/PID/stat, "pid (command) state ...", which has neither the arguments nor the
 * program's memory: the program could hold up reads of those.  The command may have brackets, too.
 */
const char *program_state(int32_t pid, char *command, size_t size)
{
	char path[64], line[256];
	const char *begin, *end;
	size_t n;
	FILE *f;

	snprintf(command, size, "?");
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return "ended, or of another PID namespace";
	n = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	line[n] = '\0';
	begin = strchr(line, '(');
	end = strrchr(line, ')');
	if (!begin || !end || end < begin || !end[1])
		return "unknown";
	snprintf(command, size, "%.*s", (int)(end - begin - 1), begin + 1);
	text_printable(command, size);
	return state_of(end[2]);
}

/* ---- objects ---- */

bool shown_at(const struct view *v, const struct reach_process *p, uint32_t row,
	      enum object_kind kind, struct shown *out)
{
	const struct look *l = p->look;
	const struct object_about *a = look_about(l, row);

	if (!a || a->kind != kind)
		return false;
	*out = (struct shown){
		.about = a,
		.seen = &l->objects[row],
		.device = a->port < v->subnet.nports ? subnet_node_of(&v->subnet, a->port)->name
						     : "?",
		.failures = l->mem.objects[row].failures,
	};
	memcpy(out->why, l->mem.objects[row].why, sizeof(out->why));
	text_printable(out->why, sizeof(out->why));
	return true;
}

struct figure figure_of(const struct shown *s, enum object_figure f)
{
	return (struct figure){s->seen->known, s->seen->figures[f]};
}

/* Returns how many lie between two counts; unknown if that is more than there can be. */
static struct figure figure_between(const struct shown *s, uint64_t from, uint64_t to,
				    unsigned bits, uint64_t capacity)
{
	struct figure f = {s->seen->known, (to - from) & ((1ull << bits) - 1)};

	f.known = f.known && f.value <= capacity;
	return f;
}

struct figure qp_outstanding(const struct shown *s)
{
	const uint64_t *f = s->seen->figures;

	return figure_between(s, f[FIGURE_RETIRED], f[FIGURE_SENT], 32, f[FIGURE_SEND_ENTRIES]);
}

struct figure receives_posted(const struct shown *s)
{
	const uint64_t *f = s->seen->figures;
	struct figure n = figure_between(s, f[FIGURE_TAKEN], s->seen->record[DBREC_RECV], 16,
					 f[FIGURE_ENTRIES]);

	n.known = n.known && s->seen->record_known;
	return n;
}

struct figure cq_fill(const struct shown *s)
{
	const uint64_t *f = s->seen->figures;
	struct figure n = figure_between(s, s->seen->record[DBREC_CQ_CI], f[FIGURE_PRODUCED], 24,
					 f[FIGURE_ENTRIES]);

	n.known = n.known && s->seen->record_known;
	return n;
}

struct peer_end peer_end_of(struct view *v, const struct reach *r, const struct reach_process *p,
			    const struct reach_qp *way, struct msg_host_reply *host)
{
	const struct reach_process *owner = reach_owner(r, way->peer_qpn);
	struct peer_end e = {.qpn = way->peer_qpn};
	uint32_t row;

	if (!e.qpn)
		return e;
	if (owner)
		e.pid = r->segments.slots[owner->slot].pid;
	if (reach_peer_port(p, way->qpn, &row) && row < v->subnet.nports) {
		const struct subnet_node *node = subnet_node_of(&v->subnet, row);

		e.host = view_host(v, node->host, host) ? host->name : NULL;
		e.device = node->name;
	}
	return e;
}
