// SPDX-License-Identifier: BSD-2-Clause
/* See status_object.h. */
#include "tool/status_object.h"

#include <inttypes.h>
#include <string.h>

#include "adapter/qp/qp_state.h"
#include "prm/wqe.h"
#include "tool/program_state.h"

/* The object that a row has, whatever its kind. */
struct shown {
	const struct object_about *about;
	const struct look_object *seen;
	const char *device;
	uint32_t failures;
	char why[OBJECT_WHY_BYTES];
};

/* A figure that may be unknown. */
struct figure {
	bool known;
	uint64_t value;
};

static bool shown_at(const struct status_program *p, uint32_t row, enum object_kind kind,
		     struct shown *out)
{
	const struct look *l = p->process->look;
	const struct object_about *a = look_about(l, row);

	if (!a || a->kind != kind || (p->only_qp && (kind != OBJECT_QP || a->number != p->only_qp)))
		return false;
	*out = (struct shown){
		.about = a,
		.seen = &l->objects[row],
		.device = a->port < p->view->subnet.nports
				  ? subnet_node_of(&p->view->subnet, a->port)->name
				  : "?",
		.failures = l->mem.objects[row].failures,
	};
	memcpy(out->why, l->mem.objects[row].why, sizeof(out->why));
	text_printable(out->why, sizeof(out->why));
	return true;
}

static struct figure figure_of(const struct shown *s, enum object_figure f)
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

/* Counts requests that have begun and have not ended. */
static struct figure qp_outstanding(const struct shown *s)
{
	const uint64_t *f = s->seen->figures;

	return figure_between(s, f[FIGURE_RETIRED], f[FIGURE_SENT], 32, f[FIGURE_SEND_ENTRIES]);
}

/* Counts receives that the program has posted and nobody has taken. */
static struct figure receives_posted(const struct shown *s)
{
	const uint64_t *f = s->seen->figures;
	struct figure n = figure_between(s, f[FIGURE_TAKEN], s->seen->record[DBREC_RECV], 16,
					 f[FIGURE_ENTRIES]);

	n.known = n.known && s->seen->record_known;
	return n;
}

static struct figure cq_fill(const struct shown *s)
{
	const uint64_t *f = s->seen->figures;
	struct figure n = figure_between(s, s->seen->record[DBREC_CQ_CI], f[FIGURE_PRODUCED], 24,
					 f[FIGURE_ENTRIES]);

	n.known = n.known && s->seen->record_known;
	return n;
}

static struct figure qp_expected(const struct status_program *p, const struct shown *s)
{
	struct figure f = figure_of(s, FIGURE_PSN_EXPECTED);
	uint32_t psn;

	/* While the peer counts it as well, the queue pair's own figure is out of date. */
	if (reach_expected_psn(p->process, s->about->number, &psn))
		f = (struct figure){true, psn};
	return f;
}

/* The other end of a connection. */
struct peer_end {
	uint32_t qpn; /* 0: there is none */
	const char *host, *device;
	int32_t pid; /* 0: it is not known */
};

static struct peer_end peer_end_of(const struct status_program *p, const struct reach_qp *way,
				   struct msg_host_reply *host)
{
	const struct reach_process *owner = reach_owner(p->reach, way->peer_qpn);
	struct peer_end e = {.qpn = way->peer_qpn};
	uint32_t row;

	if (!e.qpn)
		return e;
	if (owner)
		e.pid = p->reach->slots[owner->slot].pid;
	if (reach_peer_port(p->process, way->qpn, &row) && row < p->view->subnet.nports) {
		const struct subnet_node *node = subnet_node_of(&p->view->subnet, row);

		e.host = view_host(p->view, node->host, host) ? host->name : NULL;
		e.device = node->name;
	}
	return e;
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
	struct peer_end peer = peer_end_of(p, &way, &host);

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
		if (!shown_at(p, row, OBJECT_QP, &s))
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
		if (!shown_at(p, row, OBJECT_CQ, &s))
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
		if (!shown_at(p, row, OBJECT_SRQ, &s))
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

void status_objects_print(const struct status_program *p)
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
	struct peer_end peer = peer_end_of(p, &way, &host);

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

void status_objects_json(const struct status_program *p, struct json *j)
{
	static const struct {
		const char *key;
		void (*show)(const struct status_program *p, const struct shown *s, struct json *j);
	} kinds[OBJECT_KINDS] = {
		[OBJECT_QP] = {"queue_pairs", qp_json},
		[OBJECT_CQ] = {"completion_queues", cq_json},
		[OBJECT_SRQ] = {"shared_receive_queues", srq_json},
	};
	struct shown s;

	for (unsigned kind = 0; kind < OBJECT_KINDS; kind++) {
		json_open(j, kinds[kind].key, '[');
		for (uint32_t row = 0; row < OBJECT_ROWS; row++) {
			if (!shown_at(p, row, (enum object_kind)kind, &s))
				continue;
			json_open(j, NULL, '{');
			kinds[kind].show(p, &s, j);
			json_close(j, '}');
		}
		json_close(j, ']');
	}
	status_keys_json(p, j);
}
