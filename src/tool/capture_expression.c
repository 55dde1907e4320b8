// SPDX-License-Identifier: BSD-2-Clause
/* Which packets a capture is to have: "FIELD=VALUE..." in words. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tool/capture.h"
#include "wire/bth.h"

static const struct {
	const char *name;
	enum capture_field field;
	uint64_t max; /* of a number; 0: it is no number */
} fields[] = {
	{"qpn", CAPTURE_QPN, IB_QPN_MASK},
	{"sqpn", CAPTURE_SQPN, IB_QPN_MASK},
	{"dqpn", CAPTURE_DQPN, IB_QPN_MASK},
	{"lid", CAPTURE_LID, UINT16_MAX},
	{"slid", CAPTURE_SLID, UINT16_MAX},
	{"dlid", CAPTURE_DLID, UINT16_MAX},
	{"gid", CAPTURE_GID, 0},
	{"sgid", CAPTURE_SGID, 0},
	{"dgid", CAPTURE_DGID, 0},
	{"pkey", CAPTURE_PKEY, UINT16_MAX},
	{"opcode", CAPTURE_OPCODES, 0},
	{"transport", CAPTURE_OPCODES, 0},
};

#define FIELDS_TEXT    "qpn, sqpn, dqpn, lid, slid, dlid, gid, sgid, dgid, pkey, opcode, transport"
#define ALL_OPERATIONS UINT64_C(0xffffffff)
#define ALL_TRANSPORTS (UINT64_C(0xff) << 32)
/* Those with a BTH. */
#define TRANSPORTS_TEXT "rc, uc, ud, xrc, dc, raw"
#define OPCODES_TEXT                                                                \
	"send, write, read, atomic, ack, one of the specification (SEND_ONLY), or " \
	"its number (0x04)"

static uint64_t transport_bit(enum bth_transport t)
{
	return UINT64_C(1) << (32 + (t >> 5));
}

static bool transport_read(const char *text, uint64_t *value)
{
	static const struct {
		const char *name;
		enum bth_transport transport;
	} transports[] = {{"rc", BTH_RC},   {"uc", BTH_UC}, {"ud", BTH_UD},
			  {"xrc", BTH_XRC}, {"dc", BTH_DC}, {"raw", BTH_RAW}};

	for (size_t i = 0; i < array_size(transports); i++)
		if (!strcasecmp(text, transports[i].name)) {
			*value = ALL_OPERATIONS | transport_bit(transports[i].transport);
			return true;
		}
	return false;
}

static bool number_read(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && *value <= max;
}

/* True if the word is a name of a kind of operations, and this one is of the kind. */
static bool operation_is(const char *text, uint8_t op)
{
	const struct bth_props *p = bth_props_of(op);

	if (!p->request && !p->response)
		return false;
	if (!strcasecmp(text, "send"))
		return p->send;
	if (!strcasecmp(text, "write"))
		return p->write;
	if (!strcasecmp(text, "read"))
		return p->read;
	if (!strcasecmp(text, "atomic"))
		return p->atomic;
	if (!strcasecmp(text, "ack"))
		return op == BTH_ACK;
	return !strcasecmp(text, bth_op_name(op));
}

static bool opcode_read(const char *text, uint64_t *value)
{
	uint64_t number, operations = 0;

	if (number_read(text, UINT8_MAX, &number)) {
		*value = UINT64_C(1) << (number & BTH_OP_MASK) |
			 transport_bit(number & BTH_TRANSPORT_MASK);
		return true;
	}
	for (unsigned op = 0; op < BTH_OP_COUNT; op++)
		if (operation_is(text, (uint8_t)op))
			operations |= UINT64_C(1) << op;
	*value = operations | (ALL_TRANSPORTS & ~transport_bit(BTH_RAW));
	return operations;
}

/* An IPv6 address, or an IPv4 address as RoCE maps it. */
static bool gid_read(const char *text, union ib_gid *gid)
{
	*gid = (union ib_gid){.raw = {[10] = 0xff, [11] = 0xff}};
	return inet_pton(AF_INET6, text, gid->raw) == 1 ||
	       inet_pton(AF_INET, text, gid->raw + 12) == 1;
}

/* What the value has to be; NULL: it is that. */
static const char *value_read(size_t field, const char *text, struct capture_term *t)
{
	static char range[48];

	t->field = fields[field].field;
	if (t->field == CAPTURE_OPCODES && !strcmp(fields[field].name, "transport"))
		return transport_read(text, &t->value) ? NULL : TRANSPORTS_TEXT;
	if (t->field == CAPTURE_OPCODES)
		return opcode_read(text, &t->value) ? NULL : OPCODES_TEXT;
	if (!fields[field].max)
		return gid_read(text, &t->gid) ? NULL : "an IPv6 or IPv4 address";
	snprintf(range, sizeof(range), "a number up to 0x%llx",
		 (unsigned long long)fields[field].max);
	return number_read(text, fields[field].max, &t->value) ? NULL : range;
}

/* Reads FIELD=VALUE or FIELD!=VALUE, which it takes apart. */
static bool term_read(char *text, struct capture_term *t, char *error, size_t size)
{
	char *equals = strchr(text, '='), *end = equals;
	const char *wanted;

	if (!equals) {
		snprintf(error, size, "'%s' is not FIELD=VALUE or FIELD!=VALUE", text);
		return false;
	}
	if (end > text && end[-1] == '!')
		end--;
	t->differs = end != equals;
	*end = '\0';
	for (size_t i = 0; i < array_size(fields); i++) {
		if (strcasecmp(text, fields[i].name) != 0)
			continue;
		wanted = value_read(i, equals + 1, t);
		if (wanted)
			snprintf(error, size, "%s is %s, not '%s'", fields[i].name, wanted,
				 equals + 1);
		return !wanted;
	}
	snprintf(error, size, "packets have no '%s'; they have " FIELDS_TEXT, text);
	return false;
}

bool capture_expression_read(const char *text, struct capture_want *want, char *error, size_t size)
{
	char *copy = strdup(text), *rest = copy, *word;
	bool ok = copy;

	if (!copy)
		snprintf(error, size, "out of memory");
	while (ok && (word = strsep(&rest, " \t"))) {
		struct capture_term t = {0};

		if (!*word || !strcasecmp(word, "and"))
			continue;
		ok = term_read(word, &t, error, size);
		if (ok && want->nterms == CAPTURE_TERMS) {
			snprintf(error, size, "it has more than %u terms", CAPTURE_TERMS);
			ok = false;
		}
		if (ok)
			want->term[want->nterms++] = t;
	}
	free(copy);
	return ok;
}
