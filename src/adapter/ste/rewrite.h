/* SPDX-License-Identifier: BSD-2-Clause */
/* What entries do with a frame that they match. */
#pragma once

#include "adapter/ste/tag.h"
#include "adapter/ste/walk.h"

/* 32-bit words that header modification reads and writes (enum ste_word): parts of headers, and
 * registers. */

/* Inserts and removes bytes of a frame.  It does not look at the frame's headers again. */

/* Actions that put frames into tunnels and take them out. */

/* Performs the actions of an entry.  *tag_valid becomes false if tags may have changed. */
enum ste_verdict ste_perform(struct ste_walk *w, const uint8_t *entry, bool *tag_valid);

/* Performs actions that stand one after the other, as in a list in device memory. */
enum ste_verdict ste_perform_list(struct ste_walk *w, const uint8_t (*actions)[STE_LIST_BYTES],
				  uint32_t n) must_check;
