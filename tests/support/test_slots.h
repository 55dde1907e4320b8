/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All slots of a registry, of which a test uses a few; its children share them.  They are 50 MB: as
 * pages that nobody touches they cost nothing, where clearing them took most of a test's time.
 */
#pragma once

#include <sys/mman.h>

#include "check.h"
#include "registry/registry.h"

#define TEST_SLOTS_BYTES (sizeof(struct slot) * REGISTRY_SLOTS)

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer notes a write to each byte of new memory, unless it is told to pass over writes. */
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#define TEST_SLOTS_QUIETLY(begin_or_end) AnnotateIgnoreWrites##begin_or_end(__FILE__, __LINE__)
#else
#define TEST_SLOTS_QUIETLY(begin_or_end) ((void)0)
#endif

static inline struct slot *test_slots_map(void)
{
	void *slots;

	TEST_SLOTS_QUIETLY(Begin);
	slots = mmap(NULL, TEST_SLOTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	TEST_SLOTS_QUIETLY(End);
	CHECK(slots != MAP_FAILED);
	return slots;
}

static inline void test_slots_unmap(struct slot *slots)
{
	CHECK(!munmap(slots, TEST_SLOTS_BYTES));
}
