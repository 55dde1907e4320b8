// SPDX-License-Identifier: BSD-2-Clause
/* Faults on demand: softhca fabric impair for links, softhca inject for programs, softhca
 * fabric faults for files of both. */
#include <string.h>

#include "fabric/client/link.h"
#include "tool/fault.h"
#include "tool/topic.h"
#include "wire/bth.h"

/* ---- the list ---- */

static void print_percent(FILE *out, uint32_t ppm)
{
	fprintf(out, "%g%%", (double)ppm / FAULT_PPM_PERCENT);
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
		uint32_t these = fault_ops_called(groups[i], strlen(groups[i]));

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

static void print_action(FILE *out, const struct fault_rule *r)
{
	switch (r->kind) {
	case FAULT_CALLS:
		fprintf(out, "call %.31s fails with %s", r->call, error_name(r->error));
		break;
	case FAULT_RECEIVES:
		fprintf(out, "receive completes with %s", status_name((uint8_t)r->syndrome));
		break;
	case FAULT_OBJECTS:
		if (r->error_state)
			fprintf(out, "queue pairs in the error state");
		else
			fprintf(out, "event IBV_EVENT_%s",
				ib_event_name((enum ib_event)(r->event_plus_1 - 1)));
		break;
	default:
		fprintf(out, "request completes with %s", status_name((uint8_t)r->syndrome));
		break;
	}
}

/* What an injection does. */
static void print_injection(FILE *out, const struct fault_rule *r)
{
	print_action(out, r);
	if (r->vendor_err)
		fprintf(out, " vendor_err 0x%02x", r->vendor_err);
	if (r->some_ppm) {
		fprintf(out, " percent=");
		print_percent(out, r->some_ppm);
	}
	if (r->seed)
		fprintf(out, " seed=%u", r->seed);
}

/* What a rule's number names. */
static const char *number_name(const struct fault_rule *r)
{
	static const char *const names[FAULT_OBJECT_TYPES] = {
		[FAULT_QUEUE_PAIR] = "qp",
		[FAULT_COMPLETION_QUEUE] = "cq",
		[FAULT_SHARED_RECEIVE_QUEUE] = "srq",
	};

	return r->kind == FAULT_OBJECTS && r->object < FAULT_OBJECT_TYPES && names[r->object]
		       ? names[r->object]
		       : "qp";
}

static const uint32_t *fault_field(const struct fault_rule *r, const struct fault_name *f)
{
	return (const uint32_t *)((const char *)r + f->at);
}

void fault_rule_print(FILE *out, struct view *v, struct msg_fault_reply *f)
{
	struct fault_rule *r = &f->rule;
	const char *number = r->kind == FAULT_PACKETS ? "packet" : "number";
	const char *before = "";

	if (r->kind != FAULT_PACKETS)
		print_injection(out, r);
	for (size_t i = 0; i < array_size(fault_names); i++) {
		uint32_t value = *fault_field(r, &fault_names[i]);

		if (!value || r->kind != FAULT_PACKETS)
			continue;
		fprintf(out, "%s%s ", before, fault_names[i].name);
		if (fault_names[i].unit == FAULT_UNIT_PERCENT)
			print_percent(out, value);
		else
			fprintf(out, "%u%s", value, fault_names[i].print);
		before = ", ";
	}
	if (r->link_row_plus_1 && r->link_row_plus_1 <= v->subnet.nports) {
		const struct subnet_port *p = &v->subnet.ports[r->link_row_plus_1 - 1];

		fprintf(out, " link=%.63s:%u", v->subnet.nodes[p->node].id, p->number);
	}
	print_end(out, v, "from", r->from_host_plus_1, r->from_row_plus_1);
	print_end(out, v, "to", r->to_host_plus_1, r->to_row_plus_1);
	if (r->qpn)
		fprintf(out, " %s=0x%x", number_name(r), r->qpn);
	if (r->ops)
		print_ops(out, r->ops);
	if (r->count > 1)
		fprintf(out, " %s=%u-%u", number, r->first, r->first + r->count - 1);
	else if (r->count)
		fprintf(out, " %s=%u", number, r->first);
	fprintf(out, ": %llu of %llu %s\n", (unsigned long long)f->done,
		(unsigned long long)f->seen, fault_things(r->kind));
}

static void json_injection(struct json *j, const struct fault_rule *r)
{
	switch (r->kind) {
	case FAULT_CALLS:
		json_string(j, "call", r->call);
		json_string(j, "error", error_name(r->error));
		break;
	case FAULT_OBJECTS:
		if (r->error_state)
			json_string(j, "state", "error");
		else
			json_string(j, "event",
				    ib_event_name((enum ib_event)(r->event_plus_1 - 1)));
		break;
	default:
		json_string(j, r->kind == FAULT_RECEIVES ? "receive" : "status",
			    status_name((uint8_t)r->syndrome));
		break;
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
	for (size_t i = 0; i < array_size(fault_names); i++) {
		uint32_t value = *fault_field(r, &fault_names[i]);
		char key[32];

		if (!value || r->kind != FAULT_PACKETS)
			continue;
		(void)snprintf(key, sizeof(key), "%s%s", fault_names[i].name,
			       fault_names[i].unit == FAULT_UNIT_PERCENT ? "_ppm" : "");
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
		json_number(j, number_name(r), r->qpn);
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

/* ---- the commands ---- */

static int rule_send(const struct session *s, struct fault_words *w)
{
	struct msg_impair_reply where;
	struct view v;
	int ret;

	if (!view_open(s, false, &v))
		return EXIT_OURS;
	ret = fault_words_send(s, &v, w, &where);
	view_close(&v);
	return ret;
}

int command_fabric_impair(struct session *s, int argc, char **argv)
{
	struct fault_words w = {0};

	if (!argc)
		return list_rules(s, true);
	return impair_words_read(s, &w, argc, argv) ? rule_send(s, &w) : EXIT_USAGE;
}

int command_inject(struct session *s, int argc, char **argv)
{
	struct fault_words w = {0};

	if (!argc)
		return list_rules(s, false);
	return inject_words_read(s, &w, argc, argv) ? rule_send(s, &w) : EXIT_USAGE;
}

int command_fabric_faults(struct session *s, int argc, char **argv)
{
	struct fault_player *p;
	int status;

	if (argc != 1) {
		tool_error(s->command, "it takes a file of faults; see %s --help", s->help);
		return EXIT_USAGE;
	}
	p = fault_player_open(s, argv[0], &status);
	if (!p)
		return status;
	status = fault_player_begin(p);
	if (!status)
		status = fault_player_play(p, 0);
	fault_player_close(p);
	return status;
}
