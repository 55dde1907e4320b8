// SPDX-License-Identifier: BSD-2-Clause
/* softhca fabric impair: faults of links, drawn from a seed so that they can be repeated. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "tool/view.h"
#include "wire/bth.h"

#define PORTS_MAX   254u
#define VALUE_MAX   10000000u
#define PACKET_MAX  (1u << 28)
#define PPM_PERCENT 10000u

enum unit { UNIT_PERCENT, UNIT_NUMBER };

struct fault_name {
	const char *name;
	enum unit unit;
	size_t at; /* in struct fault_rule */
	bool mads; /* MADs can have it */
	const char *print;
};

static const struct fault_name faults[] = {
	{"loss", UNIT_PERCENT, offsetof(struct fault_rule, loss_ppm), true, "%"},
	{"corrupt", UNIT_PERCENT, offsetof(struct fault_rule, corrupt_ppm), false, "%"},
	{"duplicate", UNIT_PERCENT, offsetof(struct fault_rule, duplicate_ppm), true, "%"},
	{"reorder", UNIT_PERCENT, offsetof(struct fault_rule, reorder_ppm), false, "%"},
	{"delay", UNIT_NUMBER, offsetof(struct fault_rule, delay_us), true, " us"},
	{"jitter", UNIT_NUMBER, offsetof(struct fault_rule, jitter_us), true, " us"},
	{"rate", UNIT_NUMBER, offsetof(struct fault_rule, rate_mbps), false, " Mb/s"},
	{"seed", UNIT_NUMBER, offsetof(struct fault_rule, seed), true, ""},
};

/* What the command line says. */
struct impair_words {
	struct msg_impair m;
	const char *from, *to; /* NULL: any */
	bool data_only;	       /* a word that MADs know nothing of was given */
	bool selects;	       /* a word that selects packets was given */
};

static uint32_t *fault_field(struct fault_rule *r, const struct fault_name *f)
{
	return (uint32_t *)((char *)r + f->at);
}

/* ---- words ---- */

static bool read_percent(const char *text, uint32_t *ppm)
{
	char *end;
	double percent;

	if (*text < '0' || *text > '9')
		return false;
	percent = strtod(text, &end);
	if (*end || !(percent <= 100))
		return false;
	*ppm = (uint32_t)(percent * PPM_PERCENT + 0.5);
	return true;
}

static bool read_count(const char *text, uint32_t *n)
{
	if (strcmp(text, "0") != 0)
		return text_number(text, VALUE_MAX, n);
	*n = 0;
	return true;
}

static bool read_what(const char *text, uint32_t *what)
{
	static const struct {
		const char *name;
		uint32_t what;
	} names[] = {
		{"mads", IMPAIR_MADS}, {"data", IMPAIR_DATA}, {"all", IMPAIR_MADS | IMPAIR_DATA}};

	for (size_t i = 0; i < array_size(names); i++)
		if (!strcmp(text, names[i].name)) {
			*what = names[i].what;
			return true;
		}
	return false;
}

static bool read_qpn(const char *text, uint32_t *qpn)
{
	char *end;
	unsigned long n;

	if (*text < '0' || *text > '9')
		return false;
	n = strtoul(text, &end, 0);
	*qpn = (uint32_t)n;
	return !*end && n > 0 && n <= IB_QPN_MASK;
}

/* The operations whose names begin so. */
static uint32_t ops_called(const char *name, size_t n)
{
	uint32_t ops = 0;

	for (uint32_t op = 0; op < BTH_OP_COUNT; op++) {
		const struct bth_props *p = bth_props_of((uint8_t)op);

		if (p->atomic && n == strlen("atomic") && !strncasecmp(name, "atomic", n))
			ops |= 1u << op;
		if ((p->request || p->response) && !strncasecmp(bth_op_name((uint8_t)op), name, n))
			ops |= 1u << op;
	}
	return ops;
}

static bool read_ops(const char *text, uint32_t *ops)
{
	*ops = 0;
	for (;;) {
		size_t n = strcspn(text, ",");
		uint32_t these = n ? ops_called(text, n) : 0;

		if (!these)
			return false;
		*ops |= these;
		if (!text[n])
			return true;
		text += n + 1;
	}
}

/* N or N-M. */
static bool read_packets(const char *text, struct fault_rule *r)
{
	char first[16];
	const char *dash = strchr(text, '-');
	size_t n = dash ? (size_t)(dash - text) : strlen(text);
	uint32_t last;

	if (n >= sizeof(first))
		return false;
	memcpy(first, text, n);
	first[n] = '\0';
	if (!text_number(first, PACKET_MAX, &r->first))
		return false;
	last = r->first;
	if (dash && (!text_number(dash + 1, PACKET_MAX, &last) || last < r->first))
		return false;
	r->count = last - r->first + 1;
	return true;
}

/* The value behind "NAME="; NULL: the word has another name. */
static const char *value_of(const char *word, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(word, name, n) && word[n] == '=' ? word + n + 1 : NULL;
}

static bool read_fault(struct impair_words *w, const char *word, bool *good)
{
	for (size_t i = 0; i < array_size(faults); i++) {
		const char *value = value_of(word, faults[i].name);
		uint32_t *field = fault_field(&w->m.rule, &faults[i]);

		if (!value)
			continue;
		*good = faults[i].unit == UNIT_PERCENT ? read_percent(value, field)
						       : read_count(value, field);
		w->data_only |= !faults[i].mads;
		return true;
	}
	return false;
}

static bool read_selector(struct impair_words *w, const char *word, bool *good)
{
	const char *value;

	*good = true;
	if ((value = value_of(word, "from")))
		w->from = value;
	else if ((value = value_of(word, "to")))
		w->to = value;
	else if ((value = value_of(word, "qp")))
		*good = read_qpn(value, &w->m.rule.qpn);
	else if ((value = value_of(word, "opcode")))
		*good = read_ops(value, &w->m.rule.ops);
	else if ((value = value_of(word, "packet")))
		*good = read_packets(value, &w->m.rule);
	else
		return false;
	w->data_only = w->selects = true;
	return true;
}

static bool word_is_good(const struct session *s, struct impair_words *w, const char *word)
{
	const char *value = value_of(word, "what");
	bool good = false;

	if (value)
		good = read_what(value, &w->m.what);
	else if (!read_fault(w, word, &good) && !read_selector(w, word, &good)) {
		tool_error(s->command, "'%s' is no fault of a link; see %s --help", word,
			   s->command);
		return false;
	}
	if (!good)
		tool_error(s->command, "'%s' has no value that is allowed; see %s --help", word,
			   s->command);
	return good;
}

/* Decides what the faults concern, if nobody has said it. */
static bool decide_what(const struct session *s, struct impair_words *w)
{
	if (!w->m.what)
		w->m.what = w->data_only ? IMPAIR_DATA : IMPAIR_MADS | IMPAIR_DATA;
	if (!(w->m.what & IMPAIR_MADS) || !w->data_only)
		return true;
	tool_error(s->command,
		   "MADs have loss, duplicate, delay and jitter by link alone; say what=data");
	return false;
}

/* Reads the arguments; false: it has said what is wrong with them. */
static bool read_words(const struct session *s, struct impair_words *w, int argc, char **argv)
{
	int n = 0;

	for (; n < argc && strchr(argv[n], '='); n++)
		if (!word_is_good(s, w, argv[n]))
			return false;
	if (!decide_what(s, w))
		return false;
	if (n && argc == n) {
		/* "loss=0" ends all, and rules that select packets as well. */
		if (!w->selects && argc == 1 && !strcmp(argv[0], "loss=0"))
			w->m.what |= IMPAIR_CLEAR;
		return true;
	}
	if (!n || argc != n + 2 || !text_copy(w->m.node, sizeof(w->m.node), argv[n]) ||
	    !text_number(argv[n + 1], PORTS_MAX, &w->m.port)) {
		tool_error(s->command,
			   "it takes faults, then a node and a port or neither; see %s --help",
			   s->command);
		return false;
	}
	return true;
}

/* ---- ends of a packet's way ---- */

/* Finds HOST, or [HOST/]HCA[:PORT].  False after an error line. */
static bool end_find(const struct session *s, struct view *v, const char *text,
		     uint32_t *host_plus_1, uint32_t *row_plus_1)
{
	struct msg m = {0};
	struct msg_host_reply host;
	struct port_name name;
	int fds[MSG_MAX_FDS];
	uint32_t row;

	if (!text)
		return true;
	if (!strchr(text, '/') && text_copy(m.host.name, sizeof(m.host.name), text) && *text &&
	    !link_call(v->sock, &m, MSG_HOST, fds)) {
		*host_plus_1 = m.host_reply.index + 1;
		return true;
	}
	if (!port_name_read(s, text, &name) || !port_name_find(s, v, &name, &host, &row))
		return false;
	*row_plus_1 = row + 1;
	return true;
}

/* ---- the list ---- */

static void print_percent(uint32_t ppm)
{
	printf("%g%%", (double)ppm / PPM_PERCENT);
}

/* The host's name, until the next call. */
static const char *host_name(struct view *v, uint32_t index)
{
	static struct msg_host_reply host;

	return view_host(v, index, &host) ? host.name : "?";
}

static void print_end(struct view *v, const char *word, uint32_t host_plus_1, uint32_t row_plus_1)
{
	char text[SUBNET_PORT_TEXT];

	if (row_plus_1)
		printf(" %s=%s", word, subnet_port_text(&v->subnet, row_plus_1 - 1, text));
	else if (host_plus_1)
		printf(" %s=%s", word, host_name(v, host_plus_1 - 1));
}

static void print_ops(uint32_t ops)
{
	static const char *const groups[] = {"send", "write", "read_request", "read_resp",
					     "atomic"};
	const char *before = " opcode=";

	for (size_t i = 0; i < array_size(groups); i++) {
		uint32_t these = ops_called(groups[i], strlen(groups[i]));

		if ((ops & these) != these)
			continue;
		printf("%s%s", before, groups[i]);
		before = ",";
		ops &= ~these;
	}
	for (uint32_t op = 0; op < BTH_OP_COUNT; op++)
		if (ops >> op & 1) {
			printf("%s%s", before, bth_op_name((uint8_t)op));
			before = ",";
		}
}

static void print_rule(struct view *v, struct msg_fault_reply *f)
{
	struct fault_rule *r = &f->rule;
	const char *before = "";

	for (size_t i = 0; i < array_size(faults); i++) {
		uint32_t value = *fault_field(r, &faults[i]);

		if (!value)
			continue;
		printf("%s%s ", before, faults[i].name);
		if (faults[i].unit == UNIT_PERCENT)
			print_percent(value);
		else
			printf("%u%s", value, faults[i].print);
		before = ", ";
	}
	if (r->link_row_plus_1 && r->link_row_plus_1 <= v->subnet.nports) {
		const struct subnet_port *p = &v->subnet.ports[r->link_row_plus_1 - 1];

		printf(" link=%.63s:%u", v->subnet.nodes[p->node].id, p->number);
	}
	print_end(v, "from", r->from_host_plus_1, r->from_row_plus_1);
	print_end(v, "to", r->to_host_plus_1, r->to_row_plus_1);
	if (r->qpn)
		printf(" qp=0x%x", r->qpn);
	if (r->ops)
		print_ops(r->ops);
	if (r->count)
		printf(r->count > 1 ? " packet=%u-%u" : " packet=%u", r->first,
		       r->first + r->count - 1);
	printf(": %llu of %llu packets\n", (unsigned long long)f->done,
	       (unsigned long long)f->seen);
}

static void json_rule(struct json *j, struct view *v, struct msg_fault_reply *f)
{
	struct fault_rule *r = &f->rule;
	char text[SUBNET_PORT_TEXT];

	json_open(j, NULL, '{');
	for (size_t i = 0; i < array_size(faults); i++) {
		uint32_t value = *fault_field(r, &faults[i]);
		char key[32];

		if (!value)
			continue;
		(void)snprintf(key, sizeof(key), "%s%s", faults[i].name,
			       faults[i].unit == UNIT_PERCENT ? "_ppm" : "");
		json_number(j, key, value);
	}
	if (r->link_row_plus_1)
		json_string(j, "link", subnet_port_text(&v->subnet, r->link_row_plus_1 - 1, text));
	if (r->from_row_plus_1)
		json_string(j, "from", subnet_port_text(&v->subnet, r->from_row_plus_1 - 1, text));
	if (r->from_host_plus_1)
		json_string(j, "from", host_name(v, r->from_host_plus_1 - 1));
	if (r->to_row_plus_1)
		json_string(j, "to", subnet_port_text(&v->subnet, r->to_row_plus_1 - 1, text));
	if (r->to_host_plus_1)
		json_string(j, "to", host_name(v, r->to_host_plus_1 - 1));
	if (r->qpn)
		json_number(j, "qp", r->qpn);
	if (r->ops)
		json_number(j, "opcodes", r->ops);
	if (r->count) {
		json_number(j, "first", r->first);
		json_number(j, "count", r->count);
	}
	json_number(j, "packets", f->seen);
	json_number(j, "impaired", f->done);
	json_close(j, '}');
}

static int list_rules(const struct session *s)
{
	struct json j = {stdout, true};
	int fds[MSG_MAX_FDS], ret = 0;
	struct view v;

	if (!view_open(s, false, &v))
		return EXIT_OURS;
	if (s->json)
		json_open(&j, NULL, '[');
	for (uint32_t row = 0; !ret && row < FAULT_RULES; row++) {
		struct msg m = {.index.index = row};

		ret = link_call(v.sock, &m, MSG_FAULT, fds);
		if (ret || !m.fault_reply.rule.set)
			continue;
		if (s->json)
			json_rule(&j, &v, &m.fault_reply);
		else
			print_rule(&v, &m.fault_reply);
	}
	if (s->json) {
		json_close(&j, ']');
		printf("\n");
	}
	view_close(&v);
	if (ret)
		session_link_error(s, ret);
	return ret ? EXIT_OURS : 0;
}

/* ---- the command ---- */

static void impair_error(const struct session *s, int error, const struct msg_impair *m)
{
	if (error == -ENOENT)
		tool_error(s->command, "no node '%s' is in the subnet; see softhca fabric show",
			   m->node);
	else if (error == -ENXIO || error == -ENOLINK)
		tool_error(s->command, "'%s' has no cable at a port %u", m->node, m->port);
	else if (error == -ENOSPC)
		tool_error(s->command,
			   "there are %u rules already, which is the most; 'loss=0' ends all",
			   FAULT_RULES);
	else
		session_link_error(s, error);
}

int command_fabric_impair(struct session *s, int argc, char **argv)
{
	struct impair_words w = {0};
	struct msg m = {0};
	int fds[MSG_MAX_FDS];
	struct view v;
	int ret;

	if (!argc)
		return list_rules(s);
	if (!read_words(s, &w, argc, argv))
		return EXIT_USAGE;
	if (!view_open(s, false, &v))
		return EXIT_OURS;
	if (!end_find(s, &v, w.from, &w.m.rule.from_host_plus_1, &w.m.rule.from_row_plus_1) ||
	    !end_find(s, &v, w.to, &w.m.rule.to_host_plus_1, &w.m.rule.to_row_plus_1)) {
		view_close(&v);
		return EXIT_USAGE;
	}
	m.impair = w.m;
	ret = link_call(v.sock, &m, MSG_IMPAIR, fds);
	view_close(&v);
	if (ret) {
		impair_error(s, ret, &w.m);
		return EXIT_OURS;
	}
	return 0;
}
