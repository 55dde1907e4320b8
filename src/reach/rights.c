// SPDX-License-Identifier: BSD-2-Clause
#include "reach/rights.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "reach/proc_file.h"

/* The capabilities stand behind the list of groups in the file.  If a process has hundreds of
 * groups, the text ends before them and we know nothing. */
#define STATUS_BYTES 4096u

struct rights {
	unsigned uid[3], gid[3]; /* real, effective, saved */
	uint64_t capabilities;	 /* those that it may take */
};

static bool rights_line(const char *status, const char *key, unsigned id[3])
{
	const char *at = strstr(status, key);

	return at && sscanf(at + strlen(key), "%u %u %u", &id[0], &id[1], &id[2]) == 3;
}

/* The program's name stands first, and no line can begin inside it (proc(5)). */
static bool rights_read(const char *name, struct rights *r)
{
	static const char caps[] = "\nCapPrm:";
	char status[STATUS_BYTES];
	const char *at;
	unsigned long long set;

	if (proc_file_read(name, status, sizeof(status)) <= 0)
		return false;
	at = strstr(status, caps);
	if (!at || sscanf(at + strlen(caps), "%llx", &set) != 1)
		return false;
	r->capabilities = set;
	return rights_line(status, "\nUid:", r->uid) && rights_line(status, "\nGid:", r->gid);
}

/* Capabilities belong to a user namespace: a process that makes a namespace for itself has them all
 * there.  A system without such namespaces says 0 for both. */
static bool rights_alike(pid_t pid)
{
	struct stat ours = {0}, theirs = {0};
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return stat("/proc/thread-self/ns/user", &ours) == stat(path, &theirs) &&
	       ours.st_ino == theirs.st_ino;
}

bool rights_cover_ours(pid_t pid)
{
	struct rights ours, theirs;
	char name[32];

	snprintf(name, sizeof(name), "%d/status", (int)pid);
	if (!rights_alike(pid) || !rights_read("self/status", &ours) || !rights_read(name, &theirs))
		return false;
	for (unsigned i = 0; i < 3; i++)
		if (theirs.uid[0] != ours.uid[i] || theirs.gid[0] != ours.gid[i])
			return false;
	return !(ours.capabilities & ~theirs.capabilities);
}
