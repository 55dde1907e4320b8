// SPDX-License-Identifier: BSD-2-Clause
/* See dpa/debugger.h. */
#include "dpa/debugger.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/compiler.h"

/* ---- names and layouts that debuggers define ---- */

enum { JIT_NOACTION, JIT_REGISTER, JIT_UNREGISTER };

struct jit_code_entry {
	struct jit_code_entry *next_entry, *prev_entry;
	const char *symfile_addr;
	uint64_t symfile_size;
};

struct jit_descriptor {
	uint32_t version;
	uint32_t action_flag;
	struct jit_code_entry *relevant_entry, *first_entry;
};

void __jit_debug_register_code(void);
extern struct jit_descriptor __jit_debug_descriptor;

/* A debugger stops here.  The empty statement keeps the compiler from dropping calls. */
__attribute__((noinline, used)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((used)) struct jit_descriptor __jit_debug_descriptor = {.version = 1};

/* ---- the list ---- */

struct dpa_shown {
	struct jit_code_entry entry;
	uint8_t elf[];
};

static pthread_mutex_t jit_lock = PTHREAD_MUTEX_INITIALIZER;

static void jit_tell(struct dpa_shown *shown, uint32_t action)
{
	__jit_debug_descriptor.action_flag = action;
	__jit_debug_descriptor.relevant_entry = &shown->entry;
	__jit_debug_register_code();
	__jit_debug_descriptor.action_flag = JIT_NOACTION;
	__jit_debug_descriptor.relevant_entry = NULL;
}

struct dpa_shown *dpa_debugger_show(const void *elf, size_t bytes, uint64_t base)
{
	struct dpa_shown *shown = malloc(sizeof(*shown) + bytes);

	if (!shown)
		return NULL;
	memcpy(shown->elf, elf, bytes);
	if (!dpa_debugger_move(shown->elf, bytes, base)) {
		free(shown);
		return NULL;
	}
	pthread_mutex_lock(&jit_lock);
	shown->entry = (struct jit_code_entry){
		.next_entry = __jit_debug_descriptor.first_entry,
		.symfile_addr = (const char *)shown->elf,
		.symfile_size = bytes,
	};
	if (shown->entry.next_entry)
		shown->entry.next_entry->prev_entry = &shown->entry;
	__jit_debug_descriptor.first_entry = &shown->entry;
	jit_tell(shown, JIT_REGISTER);
	pthread_mutex_unlock(&jit_lock);
	return shown;
}

void dpa_debugger_forget(struct dpa_shown *shown)
{
	struct jit_code_entry *next, *prev;

	if (!shown)
		return;
	pthread_mutex_lock(&jit_lock);
	next = shown->entry.next_entry;
	prev = shown->entry.prev_entry;
	if (next)
		next->prev_entry = prev;
	if (prev)
		prev->next_entry = next;
	else
		__jit_debug_descriptor.first_entry = next;
	jit_tell(shown, JIT_UNREGISTER);
	pthread_mutex_unlock(&jit_lock);
	free(shown);
}

void dpa_debugger_fork_lock(void)
{
	pthread_mutex_lock(&jit_lock);
}

void dpa_debugger_fork_unlock(void)
{
	pthread_mutex_unlock(&jit_lock);
}

__attribute__((noinline)) void dpa_debugger_stop(void)
{
	__asm__ volatile("" ::: "memory");
}
