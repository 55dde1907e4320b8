/* SPDX-License-Identifier: BSD-2-Clause */
/* What the dpa target's mailboxes name: numbers and addresses that were given out, and some that were not. */
#pragma once

#include "dpa_input.h"
#include "small_image.h"

#define DPA_NUMBERS 16u

extern struct dpa_known {
	uint32_t numbers[KIND_COUNT][DPA_NUMBERS];
	uint32_t handles[KIND_COUNT][DPA_NUMBERS]; /* of the objects with these numbers */
	uint32_t count[KIND_COUNT];
	uint64_t code[DPA_NUMBERS]; /* of each process: its first function */
	uint64_t heap[DPA_NUMBERS]; /* of each process; all have the same size */
	uint64_t heap_bytes;
	uint64_t memory[DPA_NUMBERS]; /* blocks */
	uint32_t blocks;
	uint8_t image[SMALL_IMAGE_BYTES]; /* of all inputs */
} dpa_known;

/* But for the image. */
void dpa_known_forget(void);
void dpa_number_note(enum dpa_kind kind, uint32_t number, uint32_t handle);
/* By a byte of the input each. */
uint32_t dpa_number(enum dpa_kind kind, uint8_t choice);
uint32_t dpa_handle(enum dpa_kind kind, uint8_t choice); /* of the object that dpa_number names */
uint64_t dpa_place(uint8_t choice);			 /* that is no memory */
uint64_t dpa_function(uint8_t choice);
uint64_t dpa_memory(uint8_t choice);
/* Whatever words the input has put there: code that is run is one of the functions, so that what happens is
 * what they do. */
uint64_t dpa_address_tame(uint64_t addr);
/* In the room around a heap, where neither the device nor this target's code has business. */
bool dpa_is_heap_guard(const void *addr);
/* The mailbox that makes an object of those two; its length. */
size_t dpa_object_fill(uint8_t *box, enum dpa_kind kind, uint8_t first, uint8_t second);
/* The same for queues (dpa_queue.c). */
size_t dpa_queue_fill(uint8_t *box, enum dpa_kind kind, uint8_t first, uint8_t second);
/* The mailbox that changes a queue; its length, and which kind it is of. */
size_t dpa_change_fill(uint8_t *box, enum dpa_change change, uint8_t choice, enum dpa_kind *kind);
/* A work request for a queue; its bytes. */
#define DPA_WQE_BYTES 64u
void dpa_wqe_fill(uint8_t wqe[DPA_WQE_BYTES], struct input *in);
