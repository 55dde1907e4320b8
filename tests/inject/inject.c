/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fault injector; see inject.h.
 *
 * It stands in front of the device's own preload library.  Whose call it is says the address that
 * it returns to.  While a counted call runs, what that thread calls below is part of it: the
 * library's own mmap ends in a system call that is not a second one.
 *
 * Here: whose call it is and whether it fails.  The calls themselves are in inject_calls.c,
 * those that allocate in inject_memory.c.
 */
#include "injector.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inject.h"

static struct inject_report own_report;
static struct inject_report *report = &own_report;
static uint64_t first, last;
static const char *only;
static uintptr_t text_start, text_end, base;
__thread bool injector_inside __attribute__((tls_model("initial-exec")));

static int object_find(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *wanted = arg;
	char program[256] = "";
	const char *name = info->dlpi_name;

	(void)size;
	if (!name || !*name) {
		ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

		program[n > 0 ? n : 0] = '\0';
		name = program;
	}
	name = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	if (!strstr(name, wanted))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		base = info->dlpi_addr;
		text_start = info->dlpi_addr + segment->p_vaddr;
		text_end = text_start + segment->p_memsz;
	}
	return 1;
}

static uint64_t number_of(const char *variable)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 10) : 0;
}

static void report_map(void)
{
	const char *path = getenv("INJECT_REPORT");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		report = at;
}

static __attribute__((constructor)) void inject_start(void)
{
	char *into = getenv("INJECT_INTO");

	if (!into)
		return;
	first = number_of("INJECT_FIRST");
	last = number_of("INJECT_LAST");
	only = getenv("INJECT_ONLY");
	report_map();
	dl_iterate_phdr(object_find, into);
}

exported void inject_hold(bool on)
{
	atomic_store(&report->hold, on);
}

bool injector_is_on(void)
{
	return text_end;
}

uintptr_t injector_base(void)
{
	return base;
}

bool injector_is_theirs(const void *caller)
{
	return (uintptr_t)caller >= text_start && (uintptr_t)caller < text_end;
}

bool injector_fails(const void *caller, const char *name)
{
	uint64_t number;

	if (!injector_is_theirs(caller) || injector_inside || atomic_load(&report->hold) ||
	    (only && strcmp(only, name) != 0))
		return false;
	number = atomic_fetch_add(&report->calls, 1) + 1;
	if (!first || number < first || (last && number > last))
		return false;
	if (atomic_fetch_add(&report->failed, 1) == 0) {
		report->offset = (uintptr_t)caller - base;
		strncpy(report->name, name, sizeof(report->name) - 1);
	}
	return true;
}
