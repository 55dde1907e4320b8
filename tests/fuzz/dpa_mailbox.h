/* SPDX-License-Identifier: BSD-2-Clause */
/* What the dpa target's mailboxes name: numbers and addresses that were given out, and some that were not. */
#pragma once

#include "dpa_input.h"
#include "small_image.h"

#define DPA_NUMBERS 16u

extern struct dpa_known {
	uint32_t numbers[KIND_COUNT][DPA_NUMBERS];
	uint32_t count[KIND_COUNT];
	uint64_t code[DPA_NUMBERS];   /* of each process: its first function */
	uint64_t memory[DPA_NUMBERS]; /* blocks */
	uint32_t blocks;
	uint8_t image[SMALL_IMAGE_BYTES]; /* of all inputs */
} dpa_known;

/* But for the image. */
void dpa_known_forget(void);
void dpa_number_note(enum dpa_kind kind, uint32_t number);
/* By a byte of the input each. */
uint32_t dpa_number(enum dpa_kind kind, uint8_t choice);
uint64_t dpa_place(uint8_t choice); /* that is no memory */
uint64_t dpa_function(uint8_t choice);
uint64_t dpa_memory(uint8_t choice);
/* The mailbox that makes an object of those two; its length. */
size_t dpa_object_fill(uint8_t *box, enum dpa_kind kind, uint8_t first, uint8_t second);
