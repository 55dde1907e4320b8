/* SPDX-License-Identifier: BSD-2-Clause */
/* 32-bit words that header modification reads and writes (enum ste_word): parts of headers, and
 * registers. */
#pragma once

#include "adapter/ste/tag.h"

/* Reads a word; one that the frame does not have reads zero.  False: there is no such word. */
bool ste_word_get(const struct ste_frame *f, uint32_t word, uint32_t *value) must_check;
/* Writes the bits of mask.  The frame's bytes must lie in its room. */
void ste_word_put(struct ste_frame *f, uint32_t word, uint32_t value, uint32_t mask);
/* True if the word is a part of the frame and not a register. */
bool ste_word_in_frame(uint32_t word) must_check;
