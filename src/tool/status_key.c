// SPDX-License-Identifier: BSD-2-Clause
/* The keys of a program: what each covers, for whom, and how peers reach it. */
#include <inttypes.h>
#include <string.h>

#include "tool/status_object.h"

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
	return p->process->mem && !p->only_qp && reach_key_at(p->process, i, k);
}

void status_keys_print(const struct status_program *p)
{
	struct key_block k;
	char text[160];
	bool any = false;

	for (uint32_t i = 0; i < REACH_KEYS; i++) {
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

void status_keys_json(const struct status_program *p, struct json *j)
{
	struct key_block k;

	json_open(j, "keys", '[');
	for (uint32_t i = 0; i < REACH_KEYS; i++) {
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
