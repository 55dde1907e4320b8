// SPDX-License-Identifier: BSD-2-Clause
#include "reach/way_copies.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* From this length on the routine uses the string instruction if it is fast for long copies. */
#define STRING_BYTES 64u

struct way_copies way_copies_of(const struct way_machine *m)
{
	/* arm64's routine stores pairs of words at any alignment. */
	if (!m->x86)
		return (struct way_copies){0};
	/* Since Linux 6.4 the routine is the instruction, whatever the length. */
	if (m->fsrm && (m->major > 6 || (m->major == 6 && m->minor >= 4)))
		return (struct way_copies){.any = true};
	/*
	 * The routine copies words of 8 bytes by plain moves, and the rest byte by byte.  It makes
	 * long copies by plain moves, too, or by an instruction, which was hammered on some
	 * processors and not on others.
	 */
	if (m->erms && !m->fsrm)
		return (struct way_copies){.most = STRING_BYTES - 1};
	return (struct way_copies){.most = UINT64_MAX};
}

#if defined(__x86_64__)
static void processor_find(struct way_machine *m)
{
	unsigned a, b, c, d;
	char vendor[12];

	if (!__get_cpuid(0, &a, &b, &c, &d))
		return;
	memcpy(vendor, &b, 4);
	memcpy(vendor + 4, &d, 4);
	memcpy(vendor + 8, &c, 4);
	m->x86 = !memcmp(vendor, "GenuineIntel", 12) || !memcmp(vendor, "AuthenticAMD", 12);
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return;
	m->erms = b & 1u << 9;
	m->fsrm = d & 1u << 4;
}
#else
static void processor_find(struct way_machine *m)
{
	(void)m;
}
#endif

struct way_machine way_machine_here(void)
{
	struct way_machine m = {0};
	struct utsname name;

	processor_find(&m);
	if (uname(&name) || sscanf(name.release, "%u.%u", &m.major, &m.minor) != 2)
		m.major = m.minor = 0;
	return m;
}
