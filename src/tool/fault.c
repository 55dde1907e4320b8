// SPDX-License-Identifier: BSD-2-Clause
/* Faults on demand: softhca fabric impair for links, softhca inject for requests and calls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "prm/cqe.h"
#include "tool/topic.h"
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

/* Reads a number from 1 to max, decimal or 0x... */
static bool read_code(const char *text, uint32_t max, uint32_t *out)
{
	char *end;
	unsigned long n;

	if (*text < '0' || *text > '9')
		return false;
	n = strtoul(text, &end, 0);
	*out = (uint32_t)n;
	return !*end && n > 0 && n <= max;
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
		*good = read_code(value, IB_QPN_MASK, &w->m.rule.qpn);
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

static void print_percent(FILE *out, uint32_t ppm)
{
	fprintf(out, "%g%%", (double)ppm / PPM_PERCENT);
}

/* The host's name, until the next call. */
static const char *host_name(struct view *v, uint32_t index)
{
	static struct msg_host_reply host;

	return view_host(v, index, &host) ? host.name : "?";
}

static void print_end(FILE *out, struct view *v, const char *word, uint32_t host_plus_1,
		      uint32_t row_plus_1)
{
	char text[SUBNET_PORT_TEXT];

	if (row_plus_1)
		fprintf(out, " %s=%s", word, subnet_port_text(&v->subnet, row_plus_1 - 1, text));
	else if (host_plus_1)
		fprintf(out, " %s=%s", word, host_name(v, host_plus_1 - 1));
}

static void print_ops(FILE *out, uint32_t ops)
{
	static const char *const groups[] = {"send", "write", "read_request", "read_resp",
					     "atomic"};
	const char *before = " opcode=";

	for (size_t i = 0; i < array_size(groups); i++) {
		uint32_t these = ops_called(groups[i], strlen(groups[i]));

		if ((ops & these) != these)
			continue;
		fprintf(out, "%s%s", before, groups[i]);
		before = ",";
		ops &= ~these;
	}
	for (uint32_t op = 0; op < BTH_OP_COUNT; op++)
		if (ops >> op & 1) {
			fprintf(out, "%s%s", before, bth_op_name((uint8_t)op));
			before = ",";
		}
}

static const char *error_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "?";
}

/* What an injection does. */
static void print_injection(FILE *out, const struct fault_rule *r)
{
	if (r->kind == FAULT_CALLS)
		fprintf(out, "call %.31s fails with %s", r->call, error_name(r->error));
	else
		fprintf(out, "request completes with %s", status_name((uint8_t)r->syndrome));
	if (r->vendor_err)
		fprintf(out, " vendor_err 0x%02x", r->vendor_err);
	if (r->some_ppm) {
		fprintf(out, " percent=");
		print_percent(out, r->some_ppm);
	}
	if (r->seed)
		fprintf(out, " seed=%u", r->seed);
}

void fault_rule_print(FILE *out, struct view *v, struct msg_fault_reply *f)
{
	struct fault_rule *r = &f->rule;
	const char *number = r->kind == FAULT_PACKETS ? "packet" : "number";
	const char *before = "";

	if (r->kind != FAULT_PACKETS)
		print_injection(out, r);
	for (size_t i = 0; i < array_size(faults); i++) {
		uint32_t value = *fault_field(r, &faults[i]);

		if (!value || r->kind != FAULT_PACKETS)
			continue;
		fprintf(out, "%s%s ", before, faults[i].name);
		if (faults[i].unit == UNIT_PERCENT)
			print_percent(out, value);
		else
			fprintf(out, "%u%s", value, faults[i].print);
		before = ", ";
	}
	if (r->link_row_plus_1 && r->link_row_plus_1 <= v->subnet.nports) {
		const struct subnet_port *p = &v->subnet.ports[r->link_row_plus_1 - 1];

		fprintf(out, " link=%.63s:%u", v->subnet.nodes[p->node].id, p->number);
	}
	print_end(out, v, "from", r->from_host_plus_1, r->from_row_plus_1);
	print_end(out, v, "to", r->to_host_plus_1, r->to_row_plus_1);
	if (r->qpn)
		fprintf(out, " qp=0x%x", r->qpn);
	if (r->ops)
		print_ops(out, r->ops);
	if (r->count > 1)
		fprintf(out, " %s=%u-%u", number, r->first, r->first + r->count - 1);
	else if (r->count)
		fprintf(out, " %s=%u", number, r->first);
	fprintf(out, ": %llu of %llu %s\n", (unsigned long long)f->done,
		(unsigned long long)f->seen,
		r->kind == FAULT_PACKETS    ? "packets"
		: r->kind == FAULT_REQUESTS ? "requests"
					    : "calls");
}

static void json_injection(struct json *j, const struct fault_rule *r)
{
	if (r->kind == FAULT_CALLS) {
		json_string(j, "call", r->call);
		json_string(j, "error", error_name(r->error));
	} else {
		json_string(j, "status", status_name((uint8_t)r->syndrome));
	}
	if (r->vendor_err)
		json_number(j, "vendor_err", r->vendor_err);
	if (r->some_ppm)
		json_number(j, "percent_ppm", r->some_ppm);
	if (r->seed)
		json_number(j, "seed", r->seed);
}

static void json_rule(struct json *j, struct view *v, struct msg_fault_reply *f)
{
	struct fault_rule *r = &f->rule;
	char text[SUBNET_PORT_TEXT];

	json_open(j, NULL, '{');
	for (size_t i = 0; i < array_size(faults); i++) {
		uint32_t value = *fault_field(r, &faults[i]);
		char key[32];

		if (!value || r->kind != FAULT_PACKETS)
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
	if (r->kind == FAULT_PACKETS) {
		json_number(j, "packets", f->seen);
		json_number(j, "impaired", f->done);
	} else {
		json_injection(j, r);
		json_number(j, "met", f->seen);
		json_number(j, "injected", f->done);
	}
	json_close(j, '}');
}

/* Prints the rules for packets, or the others. */
static int list_rules(const struct session *s, bool packets)
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
		if (ret || !m.fault_reply.rule.set ||
		    (m.fault_reply.rule.kind == FAULT_PACKETS) != packets)
			continue;
		if (s->json)
			json_rule(&j, &v, &m.fault_reply);
		else
			fault_rule_print(stdout, &v, &m.fault_reply);
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

static void rule_error(const struct session *s, int error, const struct msg_impair *m)
{
	if (error == -ENOENT)
		tool_error(s->command, "no node '%s' is in the subnet; see softhca fabric show",
			   m->node);
	else if (error == -ENXIO || error == -ENOLINK)
		tool_error(s->command, "'%s' has no cable at a port %u", m->node, m->port);
	else if (error == -ENOSPC)
		tool_error(s->command, "there are %u rules already, which is the most",
			   FAULT_RULES);
	else
		session_link_error(s, error);
}

/* Finds the ends that the words name, and sets the rule. */
static int rule_send(const struct session *s, struct impair_words *w)
{
	struct fault_rule *r = &w->m.rule;
	struct msg m = {0};
	int fds[MSG_MAX_FDS];
	struct view v;
	int ret;

	if (!view_open(s, false, &v))
		return EXIT_OURS;
	if (!end_find(s, &v, w->from, &r->from_host_plus_1, &r->from_row_plus_1) ||
	    !end_find(s, &v, w->to, &r->to_host_plus_1, &r->to_row_plus_1)) {
		view_close(&v);
		return EXIT_USAGE;
	}
	m.impair = w->m;
	ret = link_call(v.sock, &m, MSG_IMPAIR, fds);
	view_close(&v);
	if (ret) {
		rule_error(s, ret, &w->m);
		return EXIT_OURS;
	}
	return 0;
}

int command_fabric_impair(struct session *s, int argc, char **argv)
{
	struct impair_words w = {0};

	if (!argc)
		return list_rules(s, true);
	return read_words(s, &w, argc, argv) ? rule_send(s, &w) : EXIT_USAGE;
}

/* ---- softhca inject ---- */

/* What a send request of a card can complete with by itself. */
static const struct {
	uint8_t syndrome;
	bool reliable_only;
} injectable[] = {
	{CQE_SYN_LOCAL_LENGTH, false}, {CQE_SYN_LOCAL_QP_OP, false},  {CQE_SYN_LOCAL_PROT, false},
	{CQE_SYN_BAD_RESP, true},      {CQE_SYN_REM_INVAL_REQ, true}, {CQE_SYN_REM_ACCESS, true},
	{CQE_SYN_REM_OP, true},	       {CQE_SYN_RETRY_EXC, true},     {CQE_SYN_RNR_RETRY_EXC, true},
	{CQE_SYN_REM_ABORTED, true},
};

static bool read_status(const struct session *s, const char *text, struct fault_rule *r)
{
	uint8_t syndrome;

	if (!status_read(text, &syndrome)) {
		tool_error(s->command, "'%s' is no status of a completion; see softhca explain",
			   text);
		return false;
	}
	for (size_t i = 0; i < array_size(injectable); i++)
		if (injectable[i].syndrome == syndrome) {
			r->kind = FAULT_REQUESTS;
			r->syndrome = syndrome;
			r->reliable_only = injectable[i].reliable_only;
			return true;
		}
	tool_error(s->command, "a card completes no send request with %s by itself",
		   status_name(syndrome));
	return false;
}

static bool read_errno(const char *text, int32_t *error)
{
	for (int n = 1; n < 200; n++) {
		const char *name = strerrorname_np(n);

		if (name && !strcasecmp(name, text)) {
			*error = n;
			return true;
		}
	}
	return false;
}

static bool read_call(const char *text, struct fault_rule *r)
{
	/* All calls are two words at least, as create_qp. */
	r->kind = FAULT_CALLS;
	return text[strspn(text,
			   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] ==
		       '\0' &&
	       strchr(text, '_') && text_copy(r->call, sizeof(r->call), text);
}

/* False: it has said what is wrong with the word. */
static bool inject_word(const struct session *s, struct impair_words *w, const char *word)
{
	struct fault_rule *r = &w->m.rule;
	const char *value;
	bool good = true;

	if ((value = value_of(word, "status")))
		return read_status(s, value, r);
	if ((value = value_of(word, "call")))
		good = read_call(value, r);
	else if ((value = value_of(word, "error")))
		good = read_errno(value, &r->error);
	else if ((value = value_of(word, "vendor_err")))
		good = read_code(value, UINT8_MAX, &r->vendor_err);
	else if ((value = value_of(word, "number")))
		good = read_packets(value, r);
	else if ((value = value_of(word, "percent")))
		good = read_percent(value, &r->some_ppm) && r->some_ppm;
	else if ((value = value_of(word, "seed")))
		good = read_count(value, &r->seed);
	else if (value_of(word, "packet") || !read_selector(w, word, &good)) {
		tool_error(s->command, "'%s' is nothing that can be injected; see %s --help", word,
			   s->command);
		return false;
	}
	if (!good)
		tool_error(s->command, "'%s' has no value that is allowed; see %s --help", word,
			   s->command);
	return good;
}

/* False: it has said what does not go together. */
static bool inject_is_whole(const struct session *s, const struct fault_rule *r)
{
	if (!!r->syndrome + !!r->call[0] != 1)
		tool_error(s->command, "it takes a status= or a call=; see %s --help", s->command);
	else if (!r->call[0] != !r->error)
		tool_error(s->command, "a call= and an error= go together; see %s --help",
			   s->command);
	else if (r->call[0] && (r->ops || r->qpn || r->to_row_plus_1 || r->vendor_err))
		tool_error(s->command,
			   "a call has no opcode, queue pair, destination or vendor_err");
	else
		return true;
	return false;
}

int command_inject(struct session *s, int argc, char **argv)
{
	struct impair_words w = {.m.what = IMPAIR_DATA};
	struct fault_rule *r = &w.m.rule;

	if (!argc)
		return list_rules(s, false);
	if (argc == 1 && !strcmp(argv[0], "none")) {
		r->kind = FAULT_REQUESTS;
		w.m.what |= IMPAIR_CLEAR;
		return rule_send(s, &w);
	}
	for (int i = 0; i < argc; i++)
		if (!inject_word(s, &w, argv[i]))
			return EXIT_USAGE;
	if (!inject_is_whole(s, r))
		return EXIT_USAGE;
	/* The next one, if nothing else is asked for. */
	if (!r->count && !r->some_ppm)
		r->first = r->count = 1;
	return rule_send(s, &w);
}
