// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/mapping.h"

#include <stdio.h>
#include <string.h>

#define LINE_BYTES 512

/* A mapping as smaps describes it. */
struct smaps_entry {
	struct vma v;
	bool described; /* we could read its flags */
	char flags[LINE_BYTES];
};

/* Reads the rest of a mapping, up to its flags, which come last. */
static void smaps_describe(FILE *f, struct smaps_entry *e)
{
	static const char flags[] = "VmFlags:";
	char line[LINE_BYTES];

	e->described = false;
	while (!e->described && fgets(line, sizeof(line), f))
		e->described = !strncmp(line, flags, sizeof(flags) - 1);
	snprintf(e->flags, sizeof(e->flags), "%s", e->described ? line + sizeof(flags) - 1 : "");
}

/* Calls look for each mapping that overlaps [addr, end), until look returns false.  False: there is
 * no smaps. */
static bool smaps_walk(uint64_t addr, uint64_t end, bool (*look)(struct smaps_entry *e, void *arg),
		       void *arg)
{
	FILE *f = fopen("/proc/thread-self/smaps", "re");
	struct smaps_entry e;
	char line[LINE_BYTES];
	bool on = f;

	while (on && fgets(line, sizeof(line), f)) {
		const char *head = line;

		if (!vma_next(&head, &e.v) || e.v.end <= addr)
			continue;
		if (e.v.start >= end)
			break;
		smaps_describe(f, &e);
		on = look(&e, arg);
	}
	if (f)
		fclose(f);
	return f;
}

/* Notes whether missing pages, or stores to pages, wait for the program. */
static bool note_served(struct smaps_entry *e, void *arg)
{
	bool *served = arg;

	*served = !e->described || strstr(e->flags, " um") || strstr(e->flags, " uw") ||
		  strstr(e->flags, " ui");
	return !*served;
}

bool mappings_served(uint64_t addr, uint64_t end)
{
	bool served = false;

	return !smaps_walk(addr, end, note_served, &served) || served;
}

struct each {
	bool (*look)(const struct vma *v, const char *flags, void *arg);
	void *arg;
};

static bool look_at_each(struct smaps_entry *e, void *arg)
{
	const struct each *each = arg;

	return each->look(&e->v, e->flags, each->arg);
}

bool mappings_each(bool (*look)(const struct vma *v, const char *flags, void *arg), void *arg)
{
	struct each each = {look, arg};

	return smaps_walk(0, UINT64_MAX, look_at_each, &each);
}
