/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Program memory for the device under test: areas of pages with wide zones of no access around
 * each, so that whatever runs past an area's end faults.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_PAGE 4096u
/* More than the largest ring and than any length of 16 bits. */
#define MEMORY_GAP (32u << 20)

/* Whole pages, zero. Never given back. */
uint8_t *memory_area(size_t bytes);
/* Is it in a zone of no access?  An area that was closed is none: there a fault is expected. */
bool memory_is_gap(const void *addr);
/* Inside the reservation, area or zone? */
bool memory_is_known(const void *addr);

/* Takes an area (as returned) away from the program's address space, or gives it back. */
void memory_close(uint8_t *area, bool closed);
