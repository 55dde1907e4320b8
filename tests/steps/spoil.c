// SPDX-License-Identifier: BSD-2-Clause
/* See spoil.h. */
#include "spoil.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs_device.h"

#define PAGE	   4096u
#define PAGES_MOST 4096u
#define FILES_MOST 64u
#define AREA_MOST  (256ul << 20) /* of one mapping, that is looked through */
#define WORDS	   (PAGE / sizeof(uint64_t))
#define RESCAN	   500u /* words between looks for pages that came since */

static struct {
	uint64_t random;
	bool restore;
	struct spoil_lures lures;
	uint64_t own_files[FILES_MOST];
	unsigned files;
	_Atomic(uint64_t) *pages[PAGES_MOST];
	unsigned count;
	_Atomic(uint64_t) words;
} spoil;

static uint64_t draw_below(uint64_t below)
{
	spoil.random ^= spoil.random >> 12;
	spoil.random ^= spoil.random << 25;
	spoil.random ^= spoil.random >> 27;
	return spoil.random * 0x2545f4914f6cdd1dull % below;
}

/* Calls fn with each of softhca's files that a process has open. */
static void each_file(pid_t pid, void (*fn)(uint64_t file))
{
	char path[32];
	DIR *dir;
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		char name[64];
		struct stat st;
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, name, sizeof(name) - 1);

		if (n <= 0)
			continue;
		name[n] = 0;
		if (!strncmp(name, "/memfd:softhca-", 15) &&
		    !fstatat(dirfd(dir), entry->d_name, &st, 0))
			fn(st.st_ino);
	}
	if (dir)
		closedir(dir);
}

static void file_add(uint64_t file)
{
	if (spoil.files < FILES_MOST)
		spoil.own_files[spoil.files++] = file;
}

static void file_drop(uint64_t file)
{
	for (unsigned i = 0; i < spoil.files; i++)
		if (spoil.own_files[i] == file)
			spoil.own_files[i] = 0;
}

/*
 * The files that this process lays open; what it maps of peers is theirs.  It may have a peer's
 * file open just now, in order to map it, but the peer has it open too.
 */
static void find_files(void)
{
	spoil.files = 0;
	each_file(getpid(), file_add);
	for (unsigned i = 0; i < 2; i++)
		each_file((pid_t)spoil.lures.pids[i], file_drop);
}

static bool is_ours(const char *name, uint64_t file)
{
	if (!strncmp(name, "/memfd:softhca-channel", 22))
		return true;
	if (strncmp(name, "/memfd:softhca-", 15) != 0)
		return false;
	for (unsigned i = 0; i < spoil.files; i++)
		if (spoil.own_files[i] == file)
			return true;
	return false;
}

/* The pages of a mapping that exist. */
static void add_pages(uint64_t from, uint64_t to)
{
	static unsigned char there[AREA_MOST / PAGE];
	uint64_t bytes = to - from < AREA_MOST ? to - from : AREA_MOST;

	if (mincore((void *)(uintptr_t)from, bytes, there))
		return;
	for (uint64_t at = 0; at < bytes && spoil.count < PAGES_MOST; at += PAGE)
		if (there[at / PAGE] & 1)
			spoil.pages[spoil.count++] = (void *)(uintptr_t)(from + at);
}

static void find_pages(void)
{
	char line[512], access[8];
	uint64_t from, to, file;
	FILE *maps = fopen("/proc/self/maps", "re");

	spoil.count = 0;
	while (maps && fgets(line, sizeof(line), maps)) {
		int name = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %" SCNu64 " %n", &from, &to,
			   access, &file, &name) == 4 &&
		    name && !strcmp(access, "rw-s") && is_ours(line + name, file))
			add_pages(from, to);
	}
	if (maps)
		fclose(maps);
}

/* A word that is in use, or any if the page seems to have none. */
static _Atomic(uint64_t) *choose(void)
{
	_Atomic(uint64_t) *page = spoil.pages[draw_below(spoil.count)];
	size_t at = draw_below(WORDS);

	for (size_t i = 0; i < WORDS; i++)
		if (atomic_load_explicit(&page[(at + i) % WORDS], memory_order_relaxed))
			return &page[(at + i) % WORDS];
	return &page[at];
}

static uint32_t half_spoilt(uint32_t old)
{
	static const uint32_t bad[] = {0,	   1,	       UINT32_MAX, INT32_MAX,
				       0x80000000, 0x40000000, 0xffff,	   0xffffff};

	switch (draw_below(5)) {
	case 0:
		return bad[draw_below(sizeof(bad) / sizeof(*bad))];
	case 1:
		return old ^ 1u << draw_below(32);
	case 2:
		return old + (uint32_t)draw_below(17) - 8;
	case 3:
		return (uint32_t)spoil.lures.pids[draw_below(3)];
	default:
		return (uint32_t)draw_below(UINT32_MAX);
	}
}

static uint64_t whole_spoilt(uint64_t old)
{
	static const uint64_t bad[] = {0,	   UINT64_MAX, INT64_MAX,	  1ull << 63,
				       1ull << 47, 1ull << 32, UINT64_MAX - 4095, 4095};

	switch (draw_below(6)) {
	case 0:
		return bad[draw_below(sizeof(bad) / sizeof(*bad))];
	case 1:
		return old ^ 1ull << draw_below(64);
	case 2:
		return spoil.lures.addresses[draw_below(3)];
	case 3: /* as another place has it */
		return atomic_load_explicit(choose(), memory_order_relaxed);
	case 4:
		return old + draw_below(8193) - 4096;
	default:
		return draw_below(UINT64_MAX);
	}
}

static void spoil_word(void)
{
	_Atomic(uint64_t) *word = choose();
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed), with;

	switch (draw_below(3)) {
	case 0:
		with = (old & ~0xffffffffull) | half_spoilt((uint32_t)old);
		break;
	case 1:
		with = (old & 0xffffffffull) | (uint64_t)half_spoilt((uint32_t)(old >> 32)) << 32;
		break;
	default:
		with = whole_spoilt(old);
		break;
	}
	atomic_store_explicit(word, with, memory_order_relaxed);
	atomic_fetch_add_explicit(&spoil.words, 1, memory_order_relaxed);
	if (!draw_below(4))
		usleep((useconds_t)draw_below(200));
	if (spoil.restore)
		atomic_compare_exchange_strong(word, &with, old);
}

static void *spoil_main(void *none)
{
	(void)none;
	for (uint64_t n = 0;; n++) {
		if (n % RESCAN == 0) {
			find_files();
			find_pages();
			if (!spoil.count)
				device_die("nothing is laid open");
		}
		spoil_word();
	}
	return NULL;
}

void spoil_start(uint64_t seed, bool restore, const struct spoil_lures *lures)
{
	pthread_t thread;

	spoil.random = seed * 0x9e3779b97f4a7c15ull + 1;
	spoil.restore = restore;
	spoil.lures = *lures;
	if (pthread_create(&thread, NULL, spoil_main, NULL))
		device_die("no thread: %m");
}

uint64_t spoil_words(void)
{
	return atomic_load_explicit(&spoil.words, memory_order_relaxed);
}
