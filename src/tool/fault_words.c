// SPDX-License-Identifier: BSD-2-Clause
/* Faults on demand in words; see fault.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "prm/cqe.h"
#include "tool/fault.h"
#include "tool/topic.h"
#include "wire/bth.h"

#define PORTS_MAX  254u
#define VALUE_MAX  10000000u
#define PACKET_MAX (1u << 28)

const struct fault_name fault_names[FAULT_NAMES] = {
	{"loss", FAULT_UNIT_PERCENT, offsetof(struct fault_rule, loss_ppm), true, "%"},
	{"corrupt", FAULT_UNIT_PERCENT, offsetof(struct fault_rule, corrupt_ppm), false, "%"},
	{"duplicate", FAULT_UNIT_PERCENT, offsetof(struct fault_rule, duplicate_ppm), true, "%"},
	{"reorder", FAULT_UNIT_PERCENT, offsetof(struct fault_rule, reorder_ppm), false, "%"},
	{"delay", FAULT_UNIT_NUMBER, offsetof(struct fault_rule, delay_us), true, " us"},
	{"jitter", FAULT_UNIT_NUMBER, offsetof(struct fault_rule, jitter_us), true, " us"},
	{"rate", FAULT_UNIT_NUMBER, offsetof(struct fault_rule, rate_mbps), false, " Mb/s"},
	{"seed", FAULT_UNIT_NUMBER, offsetof(struct fault_rule, seed), true, ""},
};

#define ALLOWED_PERCENT "0 to 100"
#define ALLOWED_NUMBER	"0 to 10000000"
#define ALLOWED_PACKETS "N or N-M, from 1 on"
#define ALLOWED_OPCODES \
	"send, write, read_request, read_resp, atomic, ack, or beginnings of names of packets"
#define ALLOWED_QPN "1 to 0xffffff"

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
	*ppm = (uint32_t)(percent * FAULT_PPM_PERCENT + 0.5);
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
uint32_t fault_ops_called(const char *name, size_t n)
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
		uint32_t these = n ? fault_ops_called(text, n) : 0;

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

static bool read_fault(struct fault_words *w, const char *word, bool *good)
{
	for (size_t i = 0; i < array_size(fault_names); i++) {
		const char *value = value_of(word, fault_names[i].name);
		uint32_t *field = fault_field(&w->m.rule, &fault_names[i]);

		if (!value)
			continue;
		if (fault_names[i].unit == FAULT_UNIT_PERCENT)
			*good = read_percent(value, field);
		else
			*good = read_count(value, field);
		w->allowed = fault_names[i].unit == FAULT_UNIT_PERCENT ? ALLOWED_PERCENT
								       : ALLOWED_NUMBER;
		w->data_only |= !fault_names[i].mads;
		return true;
	}
	return false;
}

/* Notes what the word may be, for an error line. */
static bool value_allow(struct fault_words *w, const char *allowed, bool good)
{
	w->allowed = allowed;
	return good;
}

static bool read_selector(struct fault_words *w, const char *word, bool *good)
{
	struct fault_rule *r = &w->m.rule;
	const char *value;

	*good = true;
	if ((value = value_of(word, "from")))
		w->from = value;
	else if ((value = value_of(word, "to")))
		w->to = value;
	else if ((value = value_of(word, "qp")))
		*good = value_allow(w, ALLOWED_QPN, read_code(value, IB_QPN_MASK, &r->qpn));
	else if ((value = value_of(word, "opcode")))
		*good = value_allow(w, ALLOWED_OPCODES, read_ops(value, &r->ops));
	else if ((value = value_of(word, "packet")))
		*good = value_allow(w, ALLOWED_PACKETS, read_packets(value, r));
	else
		return false;
	w->data_only = w->selects = true;
	return true;
}

static bool value_error(const struct session *s, const struct fault_words *w, const char *word)
{
	tool_error(s->command, "'%s' has no value that is allowed: %s; see %s --help", word,
		   w->allowed ? w->allowed : "another one", s->help);
	return false;
}

static bool impair_word(const struct session *s, struct fault_words *w, const char *word)
{
	const char *value = value_of(word, "what");
	bool good = false;

	if (value)
		good = value_allow(w, "mads, data or all", read_what(value, &w->m.what));
	else if (!read_fault(w, word, &good) && !read_selector(w, word, &good)) {
		tool_error(
			s->command,
			"'%s' is no fault of a link: there are loss, corrupt, duplicate, reorder, "
			"delay, jitter, rate and seed, and for packets from, to, qp, opcode, "
			"packet "
			"and what; see %s --help",
			word, s->help);
		return false;
	}
	return good || value_error(s, w, word);
}

/* Decides what the faults concern, if nobody has said it. */
static bool decide_what(const struct session *s, struct fault_words *w)
{
	if (!w->m.what)
		w->m.what = w->data_only ? IMPAIR_DATA : IMPAIR_MADS | IMPAIR_DATA;
	if (!(w->m.what & IMPAIR_MADS) || !w->data_only)
		return true;
	tool_error(s->command,
		   "MADs have loss, duplicate, delay and jitter by link alone; say what=data");
	return false;
}

bool impair_words_read(const struct session *s, struct fault_words *w, int argc, char **argv)
{
	int n = 0;

	for (; n < argc && strchr(argv[n], '='); n++)
		if (!impair_word(s, w, argv[n]))
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
			   s->help);
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

/* ---- setting a rule ---- */

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

/* Refuses an event that this kind of port does not have. */
static bool port_raises(const struct session *s, const struct view *v, const struct fault_rule *r)
{
	enum ib_event event = (enum ib_event)(r->event_plus_1 - 1);

	if (r->kind != FAULT_OBJECTS || r->object != FAULT_PORT || !r->from_row_plus_1 ||
	    fault_port_raises(v->subnet.ports[r->from_row_plus_1 - 1].ethernet, event))
		return true;
	tool_error(s->command,
		   "an Ethernet port of a card raises no IBV_EVENT_%s: only IBV_EVENT_"
		   "PORT_ACTIVE, PORT_ERR and GID_CHANGE",
		   ib_event_name(event));
	return false;
}

int fault_words_send(const struct session *s, struct view *v, struct fault_words *w,
		     struct msg_impair_reply *where)
{
	struct fault_rule *r = &w->m.rule;
	struct msg m = {0};
	int fds[MSG_MAX_FDS], ret;

	if (!end_find(s, v, w->from, &r->from_host_plus_1, &r->from_row_plus_1) ||
	    !end_find(s, v, w->to, &r->to_host_plus_1, &r->to_row_plus_1) || !port_raises(s, v, r))
		return EXIT_USAGE;
	m.impair = w->m;
	ret = link_call(v->sock, &m, MSG_IMPAIR, fds);
	if (ret) {
		rule_error(s, ret, &w->m);
		return EXIT_OURS;
	}
	*where = m.impair_reply;
	return 0;
}

bool fault_words_undo(struct fault_words *w)
{
	struct fault_rule *r = &w->m.rule;

	if (r->kind == FAULT_OBJECTS)
		return false;
	for (size_t i = 0; i < array_size(fault_names); i++)
		*fault_field(r, &fault_names[i]) = 0;
	r->syndrome = 0;
	r->error = 0;
	w->m.what &= ~(uint32_t)IMPAIR_CLEAR;
	return true;
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

/* What a receive of a card can complete with when a message comes, whatever the message is. */
static const uint8_t receivable[] = {CQE_SYN_LOCAL_LENGTH, CQE_SYN_LOCAL_PROT};

static bool is_injectable(struct fault_rule *r)
{
	for (size_t i = 0; i < array_size(injectable); i++)
		if (injectable[i].syndrome == r->syndrome) {
			r->reliable_only = injectable[i].reliable_only;
			return true;
		}
	return false;
}

static bool is_receivable(const struct fault_rule *r)
{
	for (size_t i = 0; i < array_size(receivable); i++)
		if (receivable[i] == r->syndrome)
			return true;
	return false;
}

/* False after an error line. */
static bool read_status(const struct session *s, const char *text, enum fault_kind kind,
			struct fault_rule *r)
{
	uint8_t syndrome;

	if (!status_read(text, &syndrome)) {
		tool_error(s->command, "'%s' is no status of a completion; see softhca explain",
			   text);
		return false;
	}
	r->kind = kind;
	r->syndrome = syndrome;
	if (kind == FAULT_REQUESTS && !is_injectable(r))
		tool_error(s->command,
			   "a card completes no send request with %s by itself: only with "
			   "IBV_WC_LOC_LEN_ERR, LOC_QP_OP_ERR, LOC_PROT_ERR, BAD_RESP_ERR, "
			   "REM_INV_REQ_ERR, REM_ACCESS_ERR, REM_OP_ERR, RETRY_EXC_ERR, "
			   "RNR_RETRY_EXC_ERR and REM_ABORT_ERR",
			   status_name(syndrome));
	else if (kind == FAULT_RECEIVES && !is_receivable(r))
		tool_error(s->command,
			   "a receive that takes any message does not complete with %s: only with "
			   "IBV_WC_LOC_LEN_ERR and IBV_WC_LOC_PROT_ERR",
			   status_name(syndrome));
	else
		return true;
	return false;
}

#define EVENT_PREFIX "IBV_EVENT_"

/* The events that come without a cause in the program, and whose they are. */
static const struct {
	enum ib_event event;
	enum fault_object object;
} events[] = {
	{IB_EVENT_QP_FATAL, FAULT_QUEUE_PAIR},
	{IB_EVENT_QP_REQ_ERR, FAULT_QUEUE_PAIR},
	{IB_EVENT_QP_ACCESS_ERR, FAULT_QUEUE_PAIR},
	{IB_EVENT_COMM_EST, FAULT_QUEUE_PAIR},
	{IB_EVENT_CQ_ERR, FAULT_COMPLETION_QUEUE},
	{IB_EVENT_SRQ_ERR, FAULT_SHARED_RECEIVE_QUEUE},
	{IB_EVENT_SRQ_LIMIT_REACHED, FAULT_SHARED_RECEIVE_QUEUE},
	{IB_EVENT_PORT_ACTIVE, FAULT_PORT},
	{IB_EVENT_PORT_ERR, FAULT_PORT},
	{IB_EVENT_LID_CHANGE, FAULT_PORT},
	{IB_EVENT_PKEY_CHANGE, FAULT_PORT},
	{IB_EVENT_SM_CHANGE, FAULT_PORT},
	{IB_EVENT_CLIENT_REREGISTER, FAULT_PORT},
	{IB_EVENT_GID_CHANGE, FAULT_PORT},
	{IB_EVENT_DEVICE_FATAL, FAULT_DEVICE},
};

/* Says which events there are. */
static bool event_error(const struct session *s, const char *text)
{
	char list[512];
	size_t n = 0;

	for (size_t i = 0; i < array_size(events) && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "",
				      ib_event_name(events[i].event));
	tool_error(s->command,
		   "'%s' is no event that can be injected: there are %s; others follow from what a "
		   "program or its peer does",
		   text, list);
	return false;
}

/* False after an error line. */
static bool read_event(const struct session *s, const char *text, struct fault_rule *r)
{
	size_t prefix = strlen(EVENT_PREFIX);
	const char *name = strncasecmp(text, EVENT_PREFIX, prefix) ? text : text + prefix;

	for (size_t i = 0; i < array_size(events); i++)
		if (!strcasecmp(name, ib_event_name(events[i].event))) {
			r->kind = FAULT_OBJECTS;
			r->object = events[i].object;
			r->event_plus_1 = events[i].event + 1;
			return true;
		}
	return event_error(s, text);
}

/* Queue pairs have a state that can be injected. */
static bool read_state(const char *text, struct fault_rule *r)
{
	r->kind = FAULT_OBJECTS;
	r->object = FAULT_QUEUE_PAIR;
	r->error_state = 1;
	return !strcasecmp(text, "error");
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

/* The words that say what is to happen.  False: it is none of them. */
static bool inject_action(const struct session *s, struct fault_words *w, const char *word,
			  bool *good)
{
	struct fault_rule *r = &w->m.rule;
	const char *value;

	w->actions++;
	if ((value = value_of(word, "status")))
		w->told = !(*good = read_status(s, value, FAULT_REQUESTS, r));
	else if ((value = value_of(word, "receive")))
		w->told = !(*good = read_status(s, value, FAULT_RECEIVES, r));
	else if ((value = value_of(word, "event")))
		w->told = !(*good = read_event(s, value, r));
	else if ((value = value_of(word, "state")))
		*good = value_allow(w, "error", read_state(value, r));
	else if ((value = value_of(word, "call")))
		*good = value_allow(w, "a verb as reg_mr, create_qp", read_call(value, r));
	else {
		w->actions--;
		return false;
	}
	return true;
}

/* The words that say more of it, or to which things it is to happen.  False: it is none of them. */
static bool inject_detail(struct fault_words *w, const char *word, bool *good)
{
	struct fault_rule *r = &w->m.rule;
	const char *value;

	if ((value = value_of(word, "error")))
		*good = value_allow(w, "a name as ENOMEM", read_errno(value, &r->error));
	else if ((value = value_of(word, "vendor_err")))
		*good = value_allow(w, "1 to 255", read_code(value, UINT8_MAX, &r->vendor_err));
	else if ((value = value_of(word, "number")))
		*good = value_allow(w, ALLOWED_PACKETS, read_packets(value, r));
	else if ((value = value_of(word, "percent")))
		*good = value_allow(w, "more than 0, to 100",
				    read_percent(value, &r->some_ppm) && r->some_ppm);
	else if ((value = value_of(word, "seed")))
		*good = value_allow(w, ALLOWED_NUMBER, read_count(value, &r->seed));
	else if ((value = value_of(word, "cq")))
		*good = value_allow(w, ALLOWED_QPN, read_code(value, IB_QPN_MASK, &w->cqn));
	else if ((value = value_of(word, "srq")))
		*good = value_allow(w, ALLOWED_QPN, read_code(value, IB_QPN_MASK, &w->srqn));
	else
		return !value_of(word, "packet") && read_selector(w, word, good);
	return true;
}

/* False after an error line. */
static bool inject_word(const struct session *s, struct fault_words *w, const char *word)
{
	bool good = true;

	if (!inject_action(s, w, word, &good) && !inject_detail(w, word, &good)) {
		tool_error(s->command,
			   "'%s' is nothing that can be injected: there are status, receive, call, "
			   "event and state, and for each of them others; see %s --help",
			   word, s->help);
		return false;
	}
	return good || (!w->told && value_error(s, w, word));
}

/* What does not go together with a rule of that kind; NULL: all does. */
static const char *inject_misfit(const struct fault_words *w)
{
	const struct fault_rule *r = &w->m.rule;
	uint32_t object = r->kind == FAULT_OBJECTS ? r->object : FAULT_OBJECT_TYPES;

	if (!r->call[0] != !r->error)
		return "a call= and an error= go together";
	if (r->vendor_err && r->kind != FAULT_REQUESTS)
		return "only a status= has a vendor_err";
	if (r->kind == FAULT_CALLS && (r->ops || r->qpn || w->to))
		return "a call has no opcode, queue pair or destination";
	if (r->kind == FAULT_OBJECTS && (r->ops || w->to))
		return "an event or state has no opcode or destination";
	if (r->qpn && r->kind == FAULT_OBJECTS && object != FAULT_QUEUE_PAIR)
		return "this event is not one of a queue pair";
	if (w->cqn && object != FAULT_COMPLETION_QUEUE)
		return "cq= goes with event=CQ_ERR";
	if (w->srqn && object != FAULT_SHARED_RECEIVE_QUEUE)
		return "srq= goes with event=SRQ_ERR and event=SRQ_LIMIT_REACHED";
	return NULL;
}

/* False: it has said what does not go together. */
static bool inject_is_whole(const struct session *s, const struct fault_words *w)
{
	const char *misfit = inject_misfit(w);

	if (w->actions != 1)
		misfit = "it takes one of status=, receive=, call=, event= and state=";
	if (misfit)
		tool_error(s->command, "%s; see %s --help", misfit, s->help);
	return !misfit;
}

bool inject_words_read(const struct session *s, struct fault_words *w, int argc, char **argv)
{
	struct fault_rule *r = &w->m.rule;

	w->m.what = IMPAIR_DATA;
	if (argc == 1 && !strcmp(argv[0], "none")) {
		r->kind = FAULT_REQUESTS;
		w->m.what |= IMPAIR_CLEAR;
		return true;
	}
	for (int i = 0; i < argc; i++)
		if (!inject_word(s, w, argv[i]))
			return false;
	if (!inject_is_whole(s, w))
		return false;
	r->qpn |= w->cqn | w->srqn;
	/* The next one, if nothing else is asked for. */
	if (r->kind != FAULT_OBJECTS && !r->count && !r->some_ppm)
		r->first = r->count = 1;
	return true;
}

const char *fault_things(uint32_t kind)
{
	static const char *const names[FAULT_KINDS] = {
		[FAULT_PACKETS] = "packets", [FAULT_REQUESTS] = "requests",
		[FAULT_CALLS] = "calls",     [FAULT_RECEIVES] = "receives",
		[FAULT_OBJECTS] = "objects",
	};

	return kind < FAULT_KINDS ? names[kind] : "?";
}
