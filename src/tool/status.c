// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca status: the objects of running programs.  It asks nothing of a program: reach.h says how
 * it reads the figures.  It checks what a program has written, or makes it printable, before it
 * shows it.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/qp/qp_state.h"
#include "base/compiler.h"
#include "fabric/client/link.h"
#include "fabric/client/view.h"
#include "prm/wqe.h"
#include "tool/programs.h"

struct status_program {
	struct view *view;
	const struct reach *reach;
	const struct reach_process *process; /* or NULL */
	int32_t pid;
	bool has_device; /* it has one open */
	const char *host;
	const char *state;
	char command[PROGRAM_COMMAND_BYTES];
	uint32_t only_qp;		      /* shows only this one; 0: shows all */
	const struct msg_cm_id_reply *cm_ids; /* of all programs */
	uint32_t ncm_ids;
};

/* ---- keys: what each covers, for whom, and how peers reach it ---- */

static const struct {
	uint32_t bit;
	const char *name;
} rights[] = {
	{IB_ACCESS_LOCAL_WRITE, "local-write"}, {IB_ACCESS_REMOTE_WRITE, "remote-write"},
	{IB_ACCESS_REMOTE_READ, "remote-read"}, {IB_ACCESS_REMOTE_ATOMIC, "remote-atomic"},
	{IB_ACCESS_MW_BIND, "bind-windows"},	{IB_ACCESS_ZERO_BASED, "zero-based"},
	{IB_ACCESS_ON_DEMAND, "on-demand"},
};

static void rights_text(uint32_t access, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < array_size(rights); i++)
		if (access & rights[i].bit && n < size)
			n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? "," : "",
					      rights[i].name);
}

/* Does a range mean anything?  Work requests say what windows and lists cover. */
static bool has_range(const struct key_block *k)
{
	return k->place.why != KEY_WHY_WINDOW && k->place.why != KEY_WHY_LIST;
}

static bool key_shown(const struct status_program *p, uint32_t i, struct key_block *k)
{
	return p->process->mem && !p->only_qp && look_key(p->process->mem, i, k);
}

/* Prints its keys. */
static void status_keys_print(const struct status_program *p)
{
	struct key_block k;
	char text[160];
	bool any = false;

	for (uint32_t i = 0; i < LOOK_KEYS; i++) {
		if (!key_shown(p, i, &k))
			continue;
		if (!any)
			printf("  %-10s  %-4s  %-18s  %-12s  %-7s  %s\n", "key", "PD", "address",
			       "bytes", "way", "rights and reason");
		any = true;
		printf("  0x%08x  %-4u", k.key, k.pdn);
		if (has_range(&k))
			printf("  0x%-16" PRIx64 "  %-12" PRIu64, k.iova, k.length);
		else
			printf("  %-18s  %-12s", "-", "-");
		rights_text(k.access, text, sizeof(text));
		printf("  %-7s  %s%s%s\n", key_way_name(k.place.way), text, text[0] ? "; " : "",
		       key_why_name(k.place.why));
	}
}

static void status_keys_json(const struct status_program *p, struct json *j)
{
	struct key_block k;

	json_open(j, "keys", '[');
	for (uint32_t i = 0; i < LOOK_KEYS; i++) {
		if (!key_shown(p, i, &k))
			continue;
		json_open(j, NULL, '{');
		json_number(j, "key", k.key);
		json_number(j, "pd", k.pdn);
		if (has_range(&k)) {
			json_number(j, "iova", k.iova);
			json_number(j, "length", k.length);
		}
		json_open(j, "rights", '[');
		for (size_t r = 0; r < array_size(rights); r++)
			if (k.access & rights[r].bit)
				json_string(j, NULL, rights[r].name);
		json_close(j, ']');
		json_string(j, "way", key_way_name(k.place.way));
		json_string(j, "why", key_why_name(k.place.why));
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* ---- objects ---- */

/* The same of the objects that the user has asked for. */
static bool wanted_at(const struct status_program *p, uint32_t row, enum object_kind kind,
		      struct shown *out)
{
	return shown_at(p->view, p->process, row, kind, out) &&
	       (!p->only_qp || (kind == OBJECT_QP && out->about->number == p->only_qp));
}

static struct figure qp_expected(const struct status_program *p, const struct shown *s)
{
	struct figure f = figure_of(s, FIGURE_PSN_EXPECTED);
	uint32_t psn;

	/* While the peer counts it as well, the queue pair's own figure is out of date. */
	if (p->process->mem && look_expected_psn(p->process->mem, s->about->number, &psn))
		f = (struct figure){true, psn};
	return f;
}

/* ---- for people ---- */

static const char *figure_text(struct figure f, const char *format, char *buf, size_t size)
{
	if (f.known)
		snprintf(buf, size, format, f.value);
	else
		snprintf(buf, size, "-");
	return buf;
}

#define DECIMAL "%" PRIu64
#define PSN	"0x%06" PRIx64

static void figure_print(struct figure f, const char *format, int width)
{
	char buf[32];

	printf("  %-*s", width, figure_text(f, format, buf, sizeof(buf)));
}

static void peer_print(const struct peer_end *e)
{
	char text[160] = "-";

	if (e->qpn && e->host)
		snprintf(text, sizeof(text), "%s/%s 0x%06x", e->host, e->device, e->qpn);
	else if (e->qpn)
		snprintf(text, sizeof(text), "0x%06x", e->qpn);
	printf("  %-22s", text);
}

static void qp_print(const struct status_program *p, const struct shown *s)
{
	struct figure state = figure_of(s, FIGURE_STATE);
	struct msg_host_reply host;
	struct reach_qp way = {.why = "not known"};
	bool listed = reach_qp_find(p->reach, p->process, s->about->number, &way);
	struct peer_end peer = peer_end_of(p->view, p->reach, p->process, &way, &host);

	printf("  0x%06x  %-11s  %-5s  %-6s", s->about->number,
	       transport_name((enum ib_qp_type)s->about->type),
	       state.known ? qp_state_name((enum ib_qp_state)state.value) : "-", s->device);
	peer_print(&peer);
	figure_print(figure_of(s, FIGURE_PSN_NEXT), PSN, 8);
	figure_print(figure_of(s, FIGURE_PSN_ACKED), PSN, 8);
	figure_print(qp_expected(p, s), PSN, 8);
	figure_print(qp_outstanding(s), DECIMAL, 11);
	figure_print(receives_posted(s), DECIMAL, 1);
	printf("\n");
	if (listed)
		printf("    %s: %s\n", way.one_sided ? "one-sided" : "packets", way.why);
	if (s->failures)
		printf("    failed %u times, last: %s\n", s->failures, s->why);
}

static void qps_print(const struct status_program *p)
{
	struct shown s;
	bool any = false;

	for (uint32_t row = 0; row < OBJECT_ROWS; row++) {
		if (!wanted_at(p, row, OBJECT_QP, &s))
			continue;
		if (!any)
			printf("  %-8s  %-11s  %-5s  %-6s  %-22s  %-8s  %-8s  %-8s  %-11s  %s\n",
			       "QP", "type", "state", "device", "peer", "next PSN", "acked",
			       "expected", "outstanding", "receives");
		any = true;
		qp_print(p, &s);
	}
}

static void cqs_print(const struct status_program *p)
{
	struct shown s;
	bool any = false;

	for (uint32_t row = 0; row < OBJECT_ROWS; row++) {
		if (!wanted_at(p, row, OBJECT_CQ, &s))
			continue;
		if (!any)
			printf("  %-8s  %-6s  %-7s  %s\n", "CQ", "device", "entries", "capacity");
		any = true;
		printf("  0x%06x  %-6s", s.about->number, s.device);
		figure_print(cq_fill(&s), DECIMAL, 7);
		figure_print(figure_of(&s, FIGURE_ENTRIES), DECIMAL, 1);
		printf("%s\n", s.seen->known && s.seen->figures[FIGURE_OVERRUN] ? "  overrun" : "");
	}
}

static void srqs_print(const struct status_program *p)
{
	struct shown s;
	bool any = false;

	for (uint32_t row = 0; row < OBJECT_ROWS; row++) {
		if (!wanted_at(p, row, OBJECT_SRQ, &s))
			continue;
		if (!any)
			printf("  %-8s  %-6s  %-8s  %s\n", "SRQ", "device", "receives", "capacity");
		any = true;
		printf("  0x%06x  %-6s", s.about->number, s.device);
		figure_print(receives_posted(&s), DECIMAL, 8);
		figure_print(figure_of(&s, FIGURE_ENTRIES), DECIMAL, 1);
		printf("\n");
	}
}

static void status_objects_print(const struct status_program *p)
{
	qps_print(p);
	cqs_print(p);
	srqs_print(p);
	status_keys_print(p);
}

/* ---- for programs ---- */

static void figure_json(struct json *j, const char *key, struct figure f)
{
	if (f.known)
		json_number(j, key, f.value);
}

static void number_json(struct json *j, const char *key, uint32_t number)
{
	if (number != OBJECT_NO_NUMBER)
		json_number(j, key, number);
}

static void peer_json(struct json *j, const struct peer_end *e)
{
	if (!e->qpn)
		return;
	json_open(j, "peer", '{');
	json_number(j, "qpn", e->qpn);
	if (e->host) {
		json_string(j, "host", e->host);
		json_string(j, "device", e->device);
	}
	if (e->pid > 0)
		json_number(j, "pid", (uint64_t)e->pid);
	json_close(j, '}');
}

static void qp_json(const struct status_program *p, const struct shown *s, struct json *j)
{
	struct figure state = figure_of(s, FIGURE_STATE);
	struct msg_host_reply host;
	struct reach_qp way = {0};
	bool listed = reach_qp_find(p->reach, p->process, s->about->number, &way);
	struct peer_end peer = peer_end_of(p->view, p->reach, p->process, &way, &host);

	json_number(j, "qpn", s->about->number);
	json_string(j, "transport", transport_name((enum ib_qp_type)s->about->type));
	json_string(j, "device", s->device);
	if (state.known)
		json_string(j, "state", qp_state_name((enum ib_qp_state)state.value));
	json_number(j, "pd", s->about->pdn);
	number_json(j, "send_cq", s->about->send_cqn);
	number_json(j, "receive_cq", s->about->recv_cqn);
	number_json(j, "srq", s->about->srqn);
	peer_json(j, &peer);
	figure_json(j, "psn_next", figure_of(s, FIGURE_PSN_NEXT));
	figure_json(j, "psn_acknowledged", figure_of(s, FIGURE_PSN_ACKED));
	figure_json(j, "psn_expected", qp_expected(p, s));
	figure_json(j, "outstanding", qp_outstanding(s));
	figure_json(j, "receives", receives_posted(s));
	json_number(j, "failures", s->failures);
	if (s->failures)
		json_string(j, "last_error", s->why);
	if (listed) {
		json_string(j, "way", way.one_sided ? "one-sided" : "packets");
		json_string(j, "why", way.why);
	}
}

static void cq_json(const struct status_program *p, const struct shown *s, struct json *j)
{
	(void)p;
	json_number(j, "cqn", s->about->number);
	json_string(j, "device", s->device);
	figure_json(j, "entries", cq_fill(s));
	figure_json(j, "capacity", figure_of(s, FIGURE_ENTRIES));
	if (s->seen->known)
		json_bool(j, "overrun", s->seen->figures[FIGURE_OVERRUN]);
}

static void srq_json(const struct status_program *p, const struct shown *s, struct json *j)
{
	(void)p;
	json_number(j, "srqn", s->about->number);
	json_string(j, "device", s->device);
	json_number(j, "pd", s->about->pdn);
	number_json(j, "cq", s->about->recv_cqn);
	figure_json(j, "receives", receives_posted(s));
	figure_json(j, "capacity", figure_of(s, FIGURE_ENTRIES));
}

/* Writes members of an object. */
static void status_objects_json(const struct status_program *p, struct json *j)
{
	static const struct {
		const char *key;
		void (*show)(const struct status_program *p, const struct shown *s, struct json *j);
	} kinds[] = {
		[OBJECT_QP] = {"queue_pairs", qp_json},
		[OBJECT_CQ] = {"completion_queues", cq_json},
		[OBJECT_SRQ] = {"shared_receive_queues", srq_json},
	};
	struct shown s;

	for (unsigned kind = 0; kind < array_size(kinds); kind++) {
		json_open(j, kinds[kind].key, '[');
		for (uint32_t row = 0; row < OBJECT_ROWS; row++) {
			if (!wanted_at(p, row, (enum object_kind)kind, &s))
				continue;
			json_open(j, NULL, '{');
			kinds[kind].show(p, &s, j);
			json_close(j, '}');
		}
		json_close(j, ']');
	}
	status_keys_json(p, j);
}

/* ---- ids of the communication manager ---- */

static const char *cm_state_name(uint8_t state)
{
	/* As rdma(8) names them. */
	static const char *const names[] = {
		"IDLE",	   "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY", "ROUTE_RESOLVED",
		"CONNECT", "DISCONNECT", "ADDR_BOUND",	  "LISTEN",	 "DEVICE_REMOVAL",
	};

	return state < array_size(names) ? names[state] : "UNKNOWN";
}

static const char *cm_space_name(uint16_t space)
{
	switch (space) {
	case 0x106:
		return "TCP";
	case 0x111:
		return "UDP";
	case 0x13f:
		return "IB";
	case 0x2:
		return "IPoIB";
	default:
		return "UNKNOWN";
	}
}

/* The address as text; "-": there is none. */
static const char *cm_address_text(const uint8_t address[128], char *buf, size_t size)
{
	char host[INET6_ADDRSTRLEN];
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	memcpy(&in, address, sizeof(in));
	memcpy(&in6, address, sizeof(in6));
	if (in.sin_family == AF_INET)
		snprintf(buf, size, "%s:%u", inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host)),
			 ntohs(in.sin_port));
	else if (in.sin_family == AF_INET6)
		snprintf(buf, size, "[%s]:%u",
			 inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof(host)),
			 ntohs(in6.sin6_port));
	else if (in.sin_family)
		snprintf(buf, size, "GID %s", inet_ntop(AF_INET6, address + 8, host, sizeof(host)));
	else
		snprintf(buf, size, "-");
	return buf;
}

static const char *cm_device(const struct status_program *p, const struct msg_cm_id_reply *id)
{
	return id->row < p->view->subnet.nports ? subnet_node_of(&p->view->subnet, id->row)->name
						: "-";
}

static void status_cm_ids_print(const struct status_program *p)
{
	char src[80], dst[80];
	bool any = false;

	for (uint32_t i = 0; i < p->ncm_ids && !p->only_qp; i++) {
		const struct msg_cm_id_reply *id = &p->cm_ids[i];

		if (id->pid != p->pid)
			continue;
		if (!any)
			printf("  %-6s  %-5s  %-14s  %-6s  %-22s  %-22s  %s\n", "id", "space",
			       "state", "device", "source", "destination", "QP");
		any = true;
		printf("  %-6u  %-5s  %-14s  %-6s  %-22s  %-22s  ", id->number,
		       cm_space_name(id->space), cm_state_name(id->state), cm_device(p, id),
		       cm_address_text(id->src, src, sizeof(src)),
		       cm_address_text(id->dst, dst, sizeof(dst)));
		if (id->qpn)
			printf("0x%06x\n", id->qpn);
		else
			printf("-\n");
	}
}

static void status_cm_ids_json(const struct status_program *p, struct json *j)
{
	char text[80];

	json_open(j, "connections", '[');
	for (uint32_t i = 0; i < p->ncm_ids && !p->only_qp; i++) {
		const struct msg_cm_id_reply *id = &p->cm_ids[i];

		if (id->pid != p->pid)
			continue;
		json_open(j, NULL, '{');
		json_number(j, "id", id->number);
		json_string(j, "space", cm_space_name(id->space));
		json_string(j, "state", cm_state_name(id->state));
		if (id->row < p->view->subnet.nports)
			json_string(j, "device", cm_device(p, id));
		json_string(j, "source", cm_address_text(id->src, text, sizeof(text)));
		json_string(j, "destination", cm_address_text(id->dst, text, sizeof(text)));
		if (id->qpn)
			json_number(j, "qpn", id->qpn);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* ---- the command ---- */

/* What the user asked for. */
struct wanted {
	bool all;
	uint64_t number; /* number of a process or queue pair */
	bool found;
};

static bool wanted_read(const struct session *s, int argc, char **argv, struct wanted *w)
{
	char *end = NULL;

	*w = (struct wanted){.all = !argc};
	if (argc > 1)
		tool_error(s->command, "unexpected argument: %s", argv[1]);
	if (argc != 1)
		return !argc;
	errno = 0;
	w->number = isdigit((unsigned char)argv[0][0]) ? strtoull(argv[0], &end, 0) : 0;
	if (w->number && !*end && !errno)
		return true;
	tool_error(s->command,
		   "'%s' is no number of a process or queue pair, such as 4711 or 0x400", argv[0]);
	return false;
}

static bool has_qp(const struct reach_process *p, uint64_t number)
{
	for (uint32_t row = 0; p && row < OBJECT_ROWS; row++) {
		const struct object_about *a = look_about(p->look, row);

		if (a && a->kind == OBJECT_QP && a->number == number)
			return true;
	}
	return false;
}

/* Selects what to show of a program; false: nothing. */
static bool wanted_select(struct wanted *w, struct status_program *p)
{
	bool shown = w->all || w->number == (uint64_t)p->pid;

	p->only_qp = !shown && has_qp(p->process, w->number) ? (uint32_t)w->number : 0;
	w->found |= shown || p->only_qp;
	return shown || p->only_qp;
}

/* Returns what is wrong with the program itself; NULL: nothing. */
static const char *program_trouble(const struct status_program *p)
{
	if (!p->has_device)
		return NULL;
	if (!p->process)
		return "the daemon knows the process, and nothing more is known of it";
	if (p->process->look->end == LOOK_HELD_UP)
		return "it holds up who reads its memory: what is shown may not be all";
	if (p->process->look->error)
		return "its memory may not be read: the figures of its objects are not known";
	return NULL;
}

static void program_print(const struct status_program *p)
{
	const char *trouble = program_trouble(p);

	printf("pid %d %s, %s, %s\n", p->pid, p->command, p->host, p->state);
	if (trouble)
		printf("  %s\n", trouble);
	if (p->process)
		status_objects_print(p);
	status_cm_ids_print(p);
}

static void program_json(const struct status_program *p, struct json *j)
{
	const char *trouble = program_trouble(p);

	json_open(j, NULL, '{');
	json_number(j, "pid", (uint64_t)p->pid);
	json_string(j, "command", p->command);
	json_string(j, "host", p->host);
	json_string(j, "state", p->state);
	if (trouble)
		json_string(j, "trouble", trouble);
	if (p->process)
		status_objects_json(p, j);
	status_cm_ids_json(p, j);
	json_close(j, '}');
}

/* What is shown, and how. */
struct listing {
	struct view *view;
	const struct reach *reach;
	struct wanted *wanted;
	struct json *json; /* NULL: text */
	struct msg_cm_id_reply *ids;
	bool *ids_shown;
	uint32_t nids;
};

static void program_show(struct listing *l, struct status_program p, uint32_t host)
{
	struct msg_host_reply reply;

	p.view = l->view;
	p.reach = l->reach;
	p.cm_ids = l->ids;
	p.ncm_ids = l->nids;

	for (uint32_t i = 0; i < l->nids; i++)
		l->ids_shown[i] |= l->ids[i].pid == p.pid;
	if (!view_host(l->view, host, &reply))
		return;
	p.host = reply.name;
	p.state = program_state(p.pid, p.command, sizeof(p.command));
	if (!wanted_select(l->wanted, &p))
		return;
	if (l->json)
		program_json(&p, l->json);
	else
		program_print(&p);
}

static void programs_show(struct listing *l)
{
	int fds[MSG_MAX_FDS];

	for (uint32_t i = 0; i < REGISTRY_SLOTS; i++) {
		struct msg m = {.index.index = i};

		if (!link_call(l->view->sock, &m, MSG_SLOT, fds) && m.slot_reply.used)
			program_show(l,
				     (struct status_program){.process = reach_find(l->reach, i),
							     .pid = m.slot_reply.pid,
							     .has_device = true},
				     m.slot_reply.host);
	}
	/* A program that listens at any address need not have opened a device yet. */
	for (uint32_t i = 0; i < l->nids; i++)
		if (!l->ids_shown[i])
			program_show(l, (struct status_program){.pid = l->ids[i].pid},
				     l->ids[i].host);
}

static int status_show(const struct session *s, struct view *v, struct wanted *w)
{
	struct reach *r = malloc(sizeof(*r));
	struct json json = {stdout, true}, *j = s->json ? &json : NULL;
	struct listing l = {.view = v, .reach = r, .wanted = w, .json = j};

	if (!r || !reach_open(v, r)) {
		tool_error(s->command, "the programs of fabric '%s' cannot be looked at",
			   s->fabric);
		free(r);
		return EXIT_OURS;
	}
	/* Without the daemon there are none; it has just answered. */
	if (fabric_cm_ids(s->dir, &l.ids, &l.nids))
		l.nids = 0;
	l.ids_shown = calloc(l.nids + 1, sizeof(*l.ids_shown));
	if (!l.ids_shown)
		l.nids = 0;
	if (j) {
		json_open(j, NULL, '{');
		json_string(j, "fabric", s->fabric);
		json_open(j, "programs", '[');
	}
	programs_show(&l);
	if (j) {
		json_close(j, ']');
		json_close(j, '}');
		putchar('\n');
	}
	free(l.ids_shown);
	free(l.ids);
	reach_close(r);
	free(r);
	if (w->found)
		return 0;
	if (!w->all) {
		tool_error(s->command,
			   "fabric '%s' has no process or queue pair %" PRIu64 " (0x%" PRIx64
			   "); 'softhca status' lists them",
			   s->fabric, w->number, w->number);
		return EXIT_NOTHING;
	}
	if (!j)
		printf("no program has a device of fabric %s open\n", s->fabric);
	return 0;
}

int command_status(struct session *s, int argc, char **argv)
{
	struct wanted w;
	struct view v;
	int status;

	if (!wanted_read(s, argc, argv, &w))
		return EXIT_USAGE;
	if (!view_open(s, false, &v))
		return EXIT_OURS;
	status = status_show(s, &v, &w);
	view_close(&v);
	return status;
}
