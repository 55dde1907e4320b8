// SPDX-License-Identifier: BSD-2-Clause
/* softhca explain: says in words what a code means. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "prm/cqe.h"
#include "prm/vendor_err.h"
#include "tool/tool.h"
#include "tool/topic.h"

#define QUERY_BYTES 256

static const struct topic_kind *const kinds[] = {&topics_status, &topics_event, &topics_errno,
						 &topics_reason};

/* ---- showing ---- */

static void topic_show(const struct topic *t)
{
	printf("%s", t->name);
	if (t->number)
		printf(" (%s)", t->number);
	if (t->text)
		printf(": %s", t->text);
	printf("\n  %s\n", t->means);
	if (t->causes[0])
		printf("  Causes, the likeliest first:\n");
	for (size_t i = 0; i < TOPIC_CAUSES && t->causes[i]; i++)
		printf("    - %s\n", t->causes[i]);
	if (t->look)
		printf("  Look at: %s\n", t->look);
}

/* Maps statuses of completions to the CQE's syndromes, which have other numbers. */
static const struct {
	uint8_t syndrome;
	uint8_t status;
} status_of[] = {
	{CQE_SYN_LOCAL_LENGTH, 1}, {CQE_SYN_LOCAL_QP_OP, 2},   {CQE_SYN_LOCAL_PROT, 4},
	{CQE_SYN_WR_FLUSH, 5},	   {CQE_SYN_MW_BIND, 6},       {CQE_SYN_BAD_RESP, 7},
	{CQE_SYN_LOCAL_ACCESS, 8}, {CQE_SYN_REM_INVAL_REQ, 9}, {CQE_SYN_REM_ACCESS, 10},
	{CQE_SYN_REM_OP, 11},	   {CQE_SYN_RETRY_EXC, 12},    {CQE_SYN_RNR_RETRY_EXC, 13},
	{CQE_SYN_REM_ABORTED, 16},
};

#define STATUS_PREFIX "IBV_WC_"

bool status_read(const char *text, uint8_t *syndrome)
{
	for (size_t i = 0; i < array_size(status_of); i++) {
		const struct topic *t = &topics_status.topics[status_of[i].status];

		if (strcasecmp(text, t->name) != 0 &&
		    strcasecmp(text, t->name + strlen(STATUS_PREFIX)) != 0 &&
		    strcmp(text, t->number) != 0)
			continue;
		*syndrome = status_of[i].syndrome;
		return true;
	}
	return false;
}

static const struct topic *status_topic(uint8_t syndrome)
{
	for (size_t i = 0; i < array_size(status_of); i++)
		if (status_of[i].syndrome == syndrome)
			return &topics_status.topics[status_of[i].status];
	return NULL;
}

const char *status_name(uint8_t syndrome)
{
	const struct topic *t = status_topic(syndrome);

	return t ? t->name : "?";
}

static void vendor_err_show(const struct vendor_err *v)
{
	const struct topic *t = status_topic(v->syndrome);

	printf("vendor_err 0x%02x (%u): %s\n  Seen in: %s\n", v->value, v->value, v->text,
	       v->source);
	if (t) {
		printf("  It comes with:\n");
		topic_show(t);
	}
}

static int explain_list(void)
{
	for (size_t k = 0; k < array_size(kinds); k++) {
		printf("%s\n", kinds[k]->heading);
		for (size_t i = 0; i < kinds[k]->count; i++) {
			const struct topic *t = &kinds[k]->topics[i];

			printf("  %-2s %-30s %s\n", t->number ? t->number : "", t->name, t->means);
		}
		putchar('\n');
	}
	printf("Vendor error syndromes (ibv_wc.vendor_err)\n");
	for (size_t i = 0; i < vendor_errs_count; i++)
		printf("  0x%02x  %s\n", vendor_errs[i].value, vendor_errs[i].text);
	return 0;
}

/* ---- finding ---- */

/* Tells whether these n bytes are one of the names that '|' separates. */
static bool names_have(const char *names, const char *word, size_t n)
{
	while (names) {
		size_t len = strcspn(names, "|");

		if (len == n && !strncasecmp(names, word, n))
			return true;
		names = names[len] ? names + len + 1 : NULL;
	}
	return false;
}

/* Tells whether the word is one of the name's words, which blanks separate. */
static bool name_has(const char *name, const char *word, size_t n)
{
	while (*name) {
		size_t len = strcspn(name, " ");

		if (len == n && !strncasecmp(name, word, n))
			return true;
		name += len;
		name += strspn(name, " ");
	}
	return false;
}

/* Tells whether every word of the query is in the name: "EINVAL of ibv_modify_qp". */
static bool words_match(const char *name, const char *query)
{
	bool any = false;

	for (;;) {
		size_t n;

		query += strspn(query, " ,:()");
		n = strcspn(query, " ,:()");
		if (!n)
			return any;
		if (!names_have("of|from|by|in", query, n)) {
			if (!name_has(name, query, n))
				return false;
			any = true;
		}
		query += n;
	}
}

/* Users may leave out the beginning of enumerations' names: REM_ACCESS_ERR, PORT_ERR. */
static bool short_name(const char *name, const char *query)
{
	static const char *const prefixes[] = {"IBV_WC_", "IBV_EVENT_"};

	for (size_t i = 0; i < array_size(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], n) && !strcasecmp(name + n, query))
			return true;
	}
	return false;
}

static bool topic_matches(const struct topic *t, const char *query)
{
	return words_match(t->name, query) || short_name(t->name, query) ||
	       (t->number && !strcmp(t->number, query)) ||
	       names_have(t->text, query, strlen(query));
}

/* Shows the topics that fit, and returns how many. */
static unsigned topics_find(const char *query)
{
	unsigned found = 0;

	for (size_t k = 0; k < array_size(kinds); k++) {
		for (size_t i = 0; i < kinds[k]->count; i++) {
			if (!topic_matches(&kinds[k]->topics[i], query))
				continue;
			if (found++)
				putchar('\n');
			topic_show(&kinds[k]->topics[i]);
		}
	}
	return found;
}

/* Explains a number that is no status, because some programs print vendor_err in decimal. */
static unsigned vendor_err_find(const char *query)
{
	unsigned long value;
	unsigned found = 0;
	char *end;

	if (!isdigit((unsigned char)query[0]))
		return 0;
	value = strtoul(query, &end, 0);
	if (*end)
		return 0;
	for (size_t i = 0; i < vendor_errs_count; i++) {
		if (vendor_errs[i].value != value)
			continue;
		vendor_err_show(&vendor_errs[i]);
		found++;
	}
	return found;
}

static bool query_join(char *query, size_t size, int argc, char **argv)
{
	size_t n = 0;

	for (int i = 0; i < argc; i++) {
		int ret = snprintf(query + n, size - n, "%s%s", i ? " " : "", argv[i]);

		if (ret < 0 || (size_t)ret >= size - n)
			return false;
		n += (size_t)ret;
	}
	return true;
}

int command_explain(struct session *s, int argc, char **argv)
{
	char query[QUERY_BYTES] = "";

	if (!argc)
		return explain_list();
	if (query_join(query, sizeof(query), argc, argv) &&
	    (topics_find(query) || vendor_err_find(query)))
		return 0;
	tool_error(s->command,
		   "nothing is known of '%s'; it takes a completion status (10, "
		   "IBV_WC_REM_ACCESS_ERR, remote access error), a vendor_err (0x88), an event "
		   "(IBV_EVENT_PORT_ERR), an error number with or without its call (EINVAL "
		   "ibv_modify_qp) or a reason of a trace line (no-receive); without any, softhca "
		   "explain lists all",
		   argv[0]);
	return EXIT_USAGE;
}
