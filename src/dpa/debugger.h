/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a debugger learns of images.  gdb and lldb know the interface for compilers that make code
 * at run time: a list of ELF files in memory, with addresses as they are in the process, and a
 * function with a name that they know, at which they stop to look at the list.
 *
 * Both names are symbols of the library alone and not exported: a debugger looks at the symbols of
 * each file by itself, and a program with a compiler of its own (LLVM) has the same two, which must
 * not become ours nor ours its.  A library that was stripped of its symbols shows nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct dpa_shown;

/* Shows the file of an image that lies at base, a copy of it; NULL: no memory, or no part of it is
 * understood. */
struct dpa_shown *dpa_debugger_show(const void *elf, size_t bytes, uint64_t base);
/* NULL is allowed. */
void dpa_debugger_forget(struct dpa_shown *shown);
/* Around fork(2). */
void dpa_debugger_fork_lock(void);
void dpa_debugger_fork_unlock(void);

/*
 * Does nothing; called on the stack of device code that has just failed by what the runtime saw and
 * no signal tells: a refused access, an error of the program's.  For a breakpoint.
 */
void dpa_debugger_stop(void);

/* ---- debugger_image.c ---- */

/*
 * Moves a file that was linked to 0 there: headers, symbols, debug information.  False: its headers
 * make no sense.
 */
bool dpa_debugger_move(uint8_t *elf, size_t bytes, uint64_t base);

/* ---- debugger_dwarf.c ---- */

/* Sections of a file, parts of it; one that there is not is empty. */
struct dpa_dwarf {
	uint8_t *elf;
	uint64_t base;
	struct bytes info, abbrev, line, addr, frame, ranges, loc;
};

/* Adds base to each address in them. */
void dpa_debugger_dwarf(const struct dpa_dwarf *dwarf);
