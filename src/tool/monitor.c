// SPDX-License-Identifier: BSD-2-Clause
/* See monitor.h. */
#include "tool/monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/qp/qp_state.h"
#include "base/clock.h"
#include "base/text.h"
#include "fabric/client/link.h"

#define NSEC 1000000000.0
#define WORD 4u /* bytes that port_xmit_data counts as one */

/* ---- ports ---- */

/* Does a counter among those of hw_counters count what is no error? */
static bool counter_is_of_traffic(const char *name)
{
	static const char *const prefixes[] = {"rx_atomic", "rx_read", "rx_write", "np_", "rp_"};

	for (size_t i = 0; i < array_size(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static void errors_add(struct monitor_port *p, const struct counter_attr *table, uint32_t n,
		       const struct msg_counters_reply *c)
{
	size_t at = strlen(p->why);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t count = table[i].counter < 0 ? 0 : c->total[table[i].counter];

		if (!count || counter_is_of_traffic(table[i].name))
			continue;
		p->errors += count;
		if (at < sizeof(p->why))
			at += (size_t)snprintf(p->why + at, sizeof(p->why) - at, "%s%s %llu",
					       at ? ", " : "", table[i].name,
					       (unsigned long long)count);
	}
}

/* Those of counter_attrs that count errors. */
static void port_errors(struct monitor_port *p, const struct msg_counters_reply *c)
{
	static const struct counter_attr lost[] = {
		{"port_xmit_discards", PORT_XMIT_DISCARDS, 0},
		{"port_rcv_errors", PORT_RCV_ERRORS, 0},
		{"link_downed", PORT_LINK_DOWNED, 0},
	};

	errors_add(p, lost, array_size(lost), c);
	errors_add(p, violation_attrs, nviolation_attrs, c);
	errors_add(p, hw_counter_attrs, nhw_counter_attrs, c);
}

static void port_look(struct view *v, uint32_t row, const char *host, struct monitor_port *p)
{
	const struct subnet_port *port = &v->subnet.ports[row];
	const struct msg_counters_reply *c = &v->counters[row];
	const char *colon;

	*p = (struct monitor_port){
		.row = row,
		.number = port->number,
		.ethernet = port->ethernet,
		.active = atomic_load(&port->state) == IB_PORT_ACTIVE,
		.bytes_sent = c->total[PORT_XMIT_DATA] * WORD,
		.bytes_received = c->total[PORT_RCV_DATA] * WORD,
		.packets_sent = c->total[PORT_XMIT_PACKETS],
		.packets_received = c->total[PORT_RCV_PACKETS],
	};
	(void)text_copy(p->host, sizeof(p->host), host);
	snprintf(p->device, sizeof(p->device), "%.*s", (int)sizeof(p->device) - 1,
		 subnet_node_of(&v->subnet, row)->name);
	view_attr(v, row, ATTR_STATE, p->state, sizeof(p->state));
	/* "4: ACTIVE" */
	colon = strstr(p->state, ": ");
	if (colon)
		memmove(p->state, colon + 2, strlen(colon + 2) + 1);
	view_attr(v, row, ATTR_RATE, p->speed, sizeof(p->speed));
	port_errors(p, c);
}

static bool ports_look(struct monitor *m, struct monitor_look *l)
{
	struct msg_host_reply host;

	l->nhosts = m->view.info.nhosts;
	l->ports = calloc(m->view.subnet.nports + 1, sizeof(*l->ports));
	for (uint32_t i = 0; l->ports && view_host(&m->view, i, &host); i++)
		for (uint32_t k = 0; k < host.nports && l->nports < m->view.subnet.nports; k++)
			port_look(&m->view, host.rows[k], host.name, &l->ports[l->nports++]);
	return l->ports;
}

/* ---- programs and queue pairs ---- */

static void qp_peer(struct monitor *m, const struct reach *r, const struct reach_process *p,
		    struct monitor_qp *q)
{
	struct reach_qp way = {.why = "not known"};
	struct msg_host_reply host;
	struct peer_end peer;

	(void)reach_qp_find(r, p, q->qpn, &way);
	peer = peer_end_of(&m->view, r, p, &way, &host);
	if (peer.qpn && peer.host)
		snprintf(q->peer, sizeof(q->peer), "%s/%s 0x%06x", peer.host, peer.device,
			 peer.qpn);
	else if (peer.qpn)
		snprintf(q->peer, sizeof(q->peer), "0x%06x", peer.qpn);
	else
		(void)text_copy(q->peer, sizeof(q->peer), "-");
}

static void qp_look(struct monitor *m, const struct reach *r, const struct reach_process *p,
		    const struct shown *s, struct monitor_qp *q)
{
	struct figure state = figure_of(s, FIGURE_STATE);

	*q = (struct monitor_qp){
		.qpn = s->about->number,
		.transport = transport_name((enum ib_qp_type)s->about->type),
		.state = state.known ? qp_state_name((enum ib_qp_state)state.value) : "-",
		.outstanding = qp_outstanding(s),
		.receives = receives_posted(s),
		.blocks = figure_of(s, FIGURE_FETCHED).value,
		.taken = figure_of(s, FIGURE_TAKEN).value,
		.failures = s->failures,
	};
	snprintf(q->device, sizeof(q->device), "%.*s", (int)sizeof(q->device) - 1, s->device);
	memcpy(q->why, s->why, sizeof(q->why));
	qp_peer(m, r, p, q);
}

/* Gives the array room for one more.  False: no memory. */
static bool array_grow(void *array, uint32_t n, size_t bytes)
{
	void **at = array;
	void *grown = n & (n - 1) ? *at : reallocarray(*at, n ? 2 * (size_t)n : 1, bytes);

	if (grown)
		*at = grown;
	return grown;
}

static bool program_qps(struct monitor *m, struct monitor_look *l, const struct reach *r,
			uint32_t slot, uint32_t program)
{
	const struct reach_process *p = reach_find(r, slot);
	struct shown s;

	for (uint32_t row = 0; p && row < OBJECT_ROWS; row++) {
		if (!shown_at(&m->view, p, row, OBJECT_QP, &s))
			continue;
		if (!array_grow(&l->qps, l->nqps, sizeof(*l->qps)))
			return false;
		qp_look(m, r, p, &s, &l->qps[l->nqps]);
		l->qps[l->nqps++].program = program;
		l->programs[program].nqps++;
	}
	return true;
}

static bool program_look(struct monitor *m, struct monitor_look *l, const struct reach *r,
			 uint32_t slot, const struct msg_slot_reply *reply)
{
	struct monitor_program *p;
	struct msg_host_reply host;

	if (!view_host(&m->view, reply->host, &host))
		return true;
	if (!array_grow(&l->programs, l->nprograms, sizeof(*l->programs)))
		return false;
	p = &l->programs[l->nprograms++];
	*p = (struct monitor_program){.pid = reply->pid};
	(void)text_copy(p->host, sizeof(p->host), host.name);
	p->state = program_state(p->pid, p->command, sizeof(p->command));
	return program_qps(m, l, r, slot, l->nprograms - 1);
}

static bool programs_look(struct monitor *m, struct monitor_look *l)
{
	struct reach *r = malloc(sizeof(*r));
	bool known = r && reach_open(&m->view, r), good = r;
	int fds[MSG_MAX_FDS];

	for (uint32_t slot = 0; good && known && slot < REGISTRY_SLOTS; slot++) {
		struct msg ask = {.index.index = slot};

		if (!(atomic_load(&r->segments.registry->slots_used[slot / 64]) >> slot % 64 & 1))
			continue;
		if (!link_call(m->view.sock, &ask, MSG_SLOT, fds) && ask.slot_reply.used)
			good = program_look(m, l, r, slot, &ask.slot_reply);
	}
	if (known)
		reach_close(r);
	free(r);
	return good;
}

/* ---- faults ---- */

static bool fault_look(struct monitor *m, struct monitor_look *l, struct msg_fault_reply *f)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return false;
	fprintf(out, "%s ", f->rule.kind == FAULT_PACKETS ? "impair:" : "inject:");
	fault_rule_print(out, &m->view, f);
	if (fclose(out) || !array_grow(&l->faults, l->nfaults, sizeof(*l->faults))) {
		free(text);
		return false;
	}
	text[strcspn(text, "\n")] = '\0';
	l->faults[l->nfaults++] = text;
	return true;
}

/* 0 or -errno. */
static int faults_look(struct monitor *m, struct monitor_look *l)
{
	int fds[MSG_MAX_FDS], ret = 0;

	for (uint32_t row = 0; !ret && row < FAULT_RULES; row++) {
		struct msg ask = {.index.index = row};

		ret = link_call(m->view.sock, &ask, MSG_FAULT, fds);
		if (!ret && ask.fault_reply.rule.set && !fault_look(m, l, &ask.fault_reply))
			ret = -ENOMEM;
	}
	return ret;
}

/* ---- looks ---- */

static void monitor_look_free(struct monitor_look *l)
{
	for (uint32_t i = 0; i < l->nfaults; i++)
		free(l->faults[i]);
	free(l->faults);
	free(l->ports);
	free(l->qps);
	free(l->programs);
	*l = (struct monitor_look){0};
}

static int look_take(struct monitor *m, struct monitor_look *l)
{
	int ret;

	free(m->view.hosts);
	free(m->view.counters);
	m->view.hosts = NULL;
	m->view.counters = NULL;
	ret = view_read(&m->view);
	if (ret)
		return ret;
	l->ns = clock_ns();
	return ports_look(m, l) && programs_look(m, l) ? faults_look(m, l) : -ENOMEM;
}

void monitor_error(const struct monitor *m, int error)
{
	if (error == -ENOMEM)
		tool_error(m->s->command, "%s", strerror(ENOMEM));
	else if (error == -ECONNRESET || error == -EPIPE)
		tool_error(m->s->command, "fabric '%s' has gone", m->s->fabric);
	else
		session_link_error(m->s, error);
}

/* A count that has gone back is that of somebody else. */
static double rate_of(uint64_t now, uint64_t before, uint64_t ns)
{
	return now > before && ns ? (double)(now - before) * NSEC / (double)ns : 0;
}

static void port_rates(struct monitor_port *p, const struct monitor_port *b, uint64_t ns)
{
	p->sent = rate_of(p->bytes_sent, b->bytes_sent, ns);
	p->received = rate_of(p->bytes_received, b->bytes_received, ns);
	p->packets = rate_of(p->packets_sent, b->packets_sent, ns) +
		     rate_of(p->packets_received, b->packets_received, ns);
	p->new_errors = p->errors > b->errors;
}

/* The same queue pair of the same process at the look before; NULL: there was none. */
static const struct monitor_qp *qp_before(const struct monitor *m, const struct monitor_qp *q,
					  uint32_t guess)
{
	const struct monitor_look *b = &m->before;
	int32_t pid = m->now.programs[q->program].pid;

	for (uint32_t i = 0; i < b->nqps; i++) {
		const struct monitor_qp *old = &b->qps[(guess + i) % b->nqps];

		if (old->qpn == q->qpn && b->programs[old->program].pid == pid)
			return old;
	}
	return NULL;
}

/* Counts have 32 bits, and begin anew when the queue pair is reset. */
static double rate_of_32(uint64_t now, uint64_t before, uint64_t ns)
{
	uint32_t more = (uint32_t)(now - before);

	return more >> 31 ? 0 : rate_of(more, 0, ns);
}

static void qp_rates(struct monitor *m, struct monitor_qp *q, uint32_t guess, uint64_t ns)
{
	const struct monitor_qp *old = qp_before(m, q, guess);
	struct monitor_program *p = &m->now.programs[q->program];

	if (!old)
		return;
	q->sends = rate_of_32(q->blocks, old->blocks, ns);
	q->takes = rate_of_32(q->taken, old->taken, ns);
	p->sends += q->sends;
	p->takes += q->takes;
}

static void rates_find(struct monitor *m)
{
	uint64_t ns = m->now.ns - m->before.ns;

	for (uint32_t i = 0; i < m->now.nports && i < m->before.nports; i++)
		if (m->now.ports[i].row == m->before.ports[i].row)
			port_rates(&m->now.ports[i], &m->before.ports[i], ns);
	for (uint32_t i = 0; i < m->now.nqps; i++)
		qp_rates(m, &m->now.qps[i], i, ns);
}

bool monitor_open(struct monitor *m, const struct session *s)
{
	int ret;

	*m = (struct monitor){.s = s};
	if (!view_open(s, false, &m->view))
		return false;
	ret = look_take(m, &m->now);
	if (!ret)
		return true;
	monitor_error(m, ret);
	monitor_close(m);
	return false;
}

int monitor_next(struct monitor *m)
{
	int ret;

	monitor_look_free(&m->before);
	m->before = m->now;
	m->now = (struct monitor_look){0};
	ret = look_take(m, &m->now);
	if (!ret)
		rates_find(m);
	return ret;
}

void monitor_close(struct monitor *m)
{
	monitor_look_free(&m->now);
	monitor_look_free(&m->before);
	view_close(&m->view);
}

const char *monitor_amount(double value, const char *unit, char text[MONITOR_AMOUNT])
{
	static const char prefixes[] = " kMGTPE";
	unsigned i = 0;

	while (value >= 999.5 && prefixes[i + 1]) {
		value /= 1000;
		i++;
	}
	if (!i)
		snprintf(text, MONITOR_AMOUNT, "%.0f %s", value, unit);
	else
		snprintf(text, MONITOR_AMOUNT, "%.*f %c%s",
			 value < 9.995	 ? 2
			 : value < 99.95 ? 1
					 : 0,
			 value, prefixes[i], unit);
	return text;
}
