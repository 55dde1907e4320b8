/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of 32 bits that header modification reads and writes (enum ste_word): parts of headers, and
 * registers. */
#pragma once

#include "adapter/ste/tag.h"

/* A word that the frame has not got reads zero.  False: no such word. */
bool ste_word_get(const struct ste_frame *f, uint32_t word, uint32_t *value) must_check;
/* Writes the bits of mask.  The frame's bytes have to lie in its room. */
void ste_word_put(struct ste_frame *f, uint32_t word, uint32_t value, uint32_t mask);
/* Is it a part of the frame, not a register? */
bool ste_word_in_frame(uint32_t word) must_check;
