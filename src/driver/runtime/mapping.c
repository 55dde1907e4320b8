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

/* What every mapping may have: permissions, accounting, not written since a checkpoint. */
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

/* Where it cannot be asked for it cannot be set either. */
static bool policy_is_plain(const struct vma *v)
{
	int mode;

	return syscall(SYS_get_mempolicy, &mode, NULL, 0, v->start, POLICY_OF_ADDRESS) < 0 ||
	       mode == POLICY_DEFAULT;
}

/* The rest of a mapping in smaps, up to its flags, which are the last. */
static bool details_are_plain(FILE *f)
{
	static const char key[] = "ProtectionKey:", flags[] = "VmFlags:";
	char line[LINE_BYTES];

	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, sizeof(key) - 1) && atoi(line + sizeof(key) - 1))
			return false;
		if (!strncmp(line, flags, sizeof(flags) - 1))
			return flags_are_plain(line + sizeof(flags) - 1);
	}
	return false;
}

bool mappings_plain(uint64_t addr, uint64_t end)
{
	uint64_t at = addr;
	char line[LINE_BYTES];
	struct vma v;
	FILE *f;

	/* A look into maps costs little, and refuses most. */
	if (!mappings_all(addr, end, is_private, NULL))
		return false;
	f = fopen("/proc/self/smaps", "re");
	while (f && at < end && fgets(line, sizeof(line), f)) {
		const char *head = line;

		if (!vma_next(&head, &v) || v.end <= at)
			continue;
		if (v.start > at || !is_private(&v, NULL) || !details_are_plain(f) ||
		    !policy_is_plain(&v))
			break;
		at = v.end;
	}
	if (f)
		fclose(f);
	return at >= end;
}

/* The rest of a mapping in smaps: missing pages, or stores to pages, wait for the program. */
static bool details_are_served(FILE *f)
{
	static const char flags[] = "VmFlags:";
	char line[LINE_BYTES];

	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, flags, sizeof(flags) - 1))
			return strstr(line, " um") || strstr(line, " uw") || strstr(line, " ui");
	return true;
}

bool mappings_served(uint64_t addr, uint64_t end)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	bool served = !f;
	char line[LINE_BYTES];
	struct vma v;

	while (!served && fgets(line, sizeof(line), f)) {
		const char *head = line;

		if (!vma_next(&head, &v) || v.end <= addr)
			continue;
		if (v.start >= end)
			break;
		served = details_are_served(f);
	}
	if (f)
		fclose(f);
	return served;
}
