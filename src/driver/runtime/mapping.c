// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE_BYTES 512

#define POLICY_OF_ADDRESS 2ul /* MPOL_F_ADDR */
#define POLICY_DEFAULT	  0   /* MPOL_DEFAULT */

bool mappings_all(uint64_t addr, uint64_t end, bool (*ok)(const struct vma *v, const void *arg),
		  const void *arg)
{
	struct vma_reader list;
	uint64_t at = addr;
	struct vma v;

	vma_reader_open(&list);
	while (at < end && vma_reader_next(&list, &v)) {
		if (v.end <= at)
			continue;
		if (v.start > at || !ok(&v, arg))
			break;
		at = v.end;
	}
	vma_reader_close(&list);
	return at >= end;
}

static bool is_private(const struct vma *v, const void *arg)
{
	(void)arg;
	return strcmp(v->perms, "rw-p") == 0 && !v->inode &&
	       (!v->name[0] || strcmp(v->name, "[heap]") == 0 ||
		strncmp(v->name, "[anon:", 6) == 0);
}

/* Does the mapping have only flags that every mapping may have: permissions, accounting, and that
 * it was not written since a checkpoint? */
static bool flags_are_plain(char *flags)
{
	static const char *const plain[] = {"rd", "wr", "mr", "mw", "me", "ac", "nr", "sd"};
	char *rest;

	for (char *flag = strtok_r(flags, " \n", &rest); flag;
	     flag = strtok_r(NULL, " \n", &rest)) {
		size_t i = 0;

		while (i < array_size(plain) && strcmp(flag, plain[i]) != 0)
			i++;
		if (i == array_size(plain))
			return false;
	}
	return true;
}

/* If the system cannot tell the policy, nobody can have set one. */
static bool policy_is_plain(const struct vma *v)
{
	int mode;

	return syscall(SYS_get_mempolicy, &mode, NULL, 0, v->start, POLICY_OF_ADDRESS) < 0 ||
	       mode == POLICY_DEFAULT;
}

/* A mapping as smaps describes it. */
struct smaps_entry {
	struct vma v;
	bool described; /* we could read the fields below */
	int protection_key;
	char flags[LINE_BYTES];
};

/* Reads the rest of a mapping, up to its flags, which come last. */
static void smaps_describe(FILE *f, struct smaps_entry *e)
{
	static const char key[] = "ProtectionKey:", flags[] = "VmFlags:";
	char line[LINE_BYTES];

	e->described = false;
	e->protection_key = 0;
	while (!e->described && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, sizeof(key) - 1))
			e->protection_key = atoi(line + sizeof(key) - 1);
		e->described = !strncmp(line, flags, sizeof(flags) - 1);
	}
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

/* Extends the plain part by this mapping, if that is plain, too.  *arg: where the part ends so
 * far. */
static bool plain_goes_on(struct smaps_entry *e, void *arg)
{
	uint64_t *at = arg;

	if (e->v.start > *at || !is_private(&e->v, NULL) || !e->described || e->protection_key ||
	    !flags_are_plain(e->flags) || !policy_is_plain(&e->v))
		return false;
	*at = e->v.end;
	return true;
}

bool mappings_plain(uint64_t addr, uint64_t end)
{
	uint64_t at = addr;

	/* Looking into maps first costs little, and refuses most ranges. */
	return mappings_all(addr, end, is_private, NULL) &&
	       smaps_walk(addr, end, plain_goes_on, &at) && at >= end;
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
