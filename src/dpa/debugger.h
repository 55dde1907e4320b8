/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a debugger learns of images.  gdb and lldb know the interface for compilers that make code
 * at run time: a list of ELF files in memory, with addresses as they are in the process, and a
 * function with a name that they know, at which they stop to look at the list.
 *
 * Both names are symbols of the library alone, and the library does not export them.  A debugger
 * looks at the symbols of each file, and a program with its own compiler (LLVM) has the same two,
 * which must not become ours, nor ours its.  A library that was stripped of its symbols shows
 * nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dpa_shown;

/* Shows a copy of the file of an image that lies at base.  NULL: there is no memory, or no part of
 * the file is understood. */
struct dpa_shown *dpa_debugger_show(const void *elf, size_t bytes, uint64_t base);
/* shown may be NULL. */
void dpa_debugger_forget(struct dpa_shown *shown);
/* The caller calls these around fork(2). */
void dpa_debugger_fork_lock(void);
void dpa_debugger_fork_unlock(void);

/*
 * Does nothing; it is for a breakpoint.  The runtime calls it on the stack of device code that has
 * just failed in a way that no signal tells: a refused access, or an error that the program
 * reports.
 */
void dpa_debugger_stop(void);

/*
 * Moves a file that was linked to 0 to base: headers, symbols, debug information.  False: its
 * headers make no sense.
 */
bool dpa_debugger_move(uint8_t *elf, size_t bytes, uint64_t base);
