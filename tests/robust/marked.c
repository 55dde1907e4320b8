// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a program has asked of its memory (locks, advice, policies, protection keys) holds on after
 * the memory was registered, and after that.
 *
 *	marked DEVICE
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_device.h"

#define BYTES 65536u

#define POLICY_BIND	  2   /* MPOL_BIND */
#define POLICY_OF_ADDRESS 2ul /* MPOL_F_ADDR */

/* What the kernel tells of a mapping. */
struct marks {
	char flags[128];
	int key;
	int policy;
};

static struct marks marks_of(const void *at)
{
	struct marks m = {.policy = -1};
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long start, end;
	bool here = false;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start <= (uintptr_t)at && (uintptr_t)at < end;
		if (here && !strncmp(line, "VmFlags:", 8))
			snprintf(m.flags, sizeof(m.flags), "%.120s", line);
		if (here && !strncmp(line, "ProtectionKey:", 14))
			m.key = atoi(line + 14);
	}
	if (!f)
		device_die("smaps: %m");
	fclose(f);
	syscall(SYS_get_mempolicy, &m.policy, NULL, 0, at, POLICY_OF_ADDRESS);
	return m;
}

/* Each returns whether the system has it. */
static bool is_locked(void *at)
{
	return !mlock(at, BYTES);
}

static bool not_forked(void *at)
{
	return !madvise(at, BYTES, MADV_DONTFORK);
}

static bool not_dumped(void *at)
{
	return !madvise(at, BYTES, MADV_DONTDUMP);
}

static bool is_wiped(void *at)
{
	return !madvise(at, BYTES, MADV_WIPEONFORK);
}

static bool read_ahead(void *at)
{
	return !madvise(at, BYTES, MADV_SEQUENTIAL);
}

static bool small_pages(void *at)
{
	return !madvise(at, BYTES, MADV_NOHUGEPAGE);
}

static bool is_bound(void *at)
{
	unsigned long nodes = 1;

	return !syscall(SYS_mbind, at, BYTES, POLICY_BIND, &nodes, 8 * sizeof(nodes), 0);
}

static bool is_keyed(void *at)
{
	int key = pkey_alloc(0, 0);

	return key > 0 && !pkey_mprotect(at, BYTES, PROT_READ | PROT_WRITE, key);
}

static const struct {
	const char *name;
	bool (*set)(void *at);
} kinds[] = {
	{"mlock", is_locked},
	{"MADV_DONTFORK", not_forked},
	{"MADV_DONTDUMP", not_dumped},
	{"MADV_WIPEONFORK", is_wiped},
	{"MADV_SEQUENTIAL", read_ahead},
	{"MADV_NOHUGEPAGE", small_pages},
	{"mbind", is_bound},
	{"a protection key", is_keyed},
};

static void expect_same(const char *name, const char *when, const void *at, const struct marks *old)
{
	struct marks now = marks_of(at);

	if (strcmp(now.flags, old->flags) != 0 || now.key != old->key || now.policy != old->policy)
		device_die("%s: %s %sinstead of %s(key %d, was %d; policy %d, was %d)", name, when,
			   now.flags, old->flags, now.key, old->key, now.policy, old->policy);
}

static bool check_kind(struct ibv_pd *pd, size_t kind)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	/* Room on both sides, so that no neighbour has the same marks and becomes part of it. */
	uint8_t *room = mmap(NULL, 3 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *at = room + BYTES;
	struct marks old;
	struct ibv_mr *mr;

	if (room == MAP_FAILED || mprotect(at, BYTES, PROT_READ | PROT_WRITE))
		device_die("memory: %m");
	memset(at, 1, BYTES);
	if (!kinds[kind].set(at)) {
		munmap(room, 3 * BYTES);
		return false;
	}
	old = marks_of(at);
	mr = ibv_reg_mr(pd, at, BYTES, access);
	if (!mr)
		device_die("%s: ibv_reg_mr: %m", kinds[kind].name);
	expect_same(kinds[kind].name, "registered,", at, &old);
	if (ibv_dereg_mr(mr))
		device_die("%s: ibv_dereg_mr: %m", kinds[kind].name);
	expect_same(kinds[kind].name, "deregistered,", at, &old);
	munmap(room, 3 * BYTES);
	return true;
}

int main(int argc, char **argv)
{
	struct device_port port;
	struct ibv_pd *pd;
	int checked = 0;

	device_port_open(&port, argc > 1 ? argv[1] : NULL, -1);
	pd = ibv_alloc_pd(port.ctx);
	if (!pd)
		device_die("ibv_alloc_pd: %m");
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		checked += check_kind(pd, kind);
	if (!checked || ibv_dealloc_pd(pd))
		device_die("%d kinds of marks checked: %m", checked);
	device_port_close(&port);
	printf("%d kinds of marks stay\n", checked);
	return 0;
}
