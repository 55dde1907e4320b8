/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The image of a DPA program: an ELF file as dpacc makes it (a static position-independent
 * executable of this machine).  This code checks it, loads it and finds its symbols.
 *
 * The file comes from the program and may be anything: the code compares each offset, size and
 * index with what is there before it uses it, and believes nothing that the file says twice.  It
 * knows one kind of relocation, which adds the base to a number.  Constructors do not run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define DPA_IMAGE_SEGMENTS   16u
#define DPA_IMAGE_SPAN_MAX   (256u << 20) /* addresses from the first to the last byte */
#define DPA_IMAGE_NAME_BYTES 512u	  /* bytes of a symbol that somebody asks for */

/* Addresses count from the base of the image. */
struct dpa_segment {
	uint64_t addr, bytes;
	uint64_t offset, file_bytes;
	int prot;
};

/* Where the symbols lie in the file; without symbols count is 0. */
struct dpa_symbols {
	uint64_t offset, count;
	uint64_t names, names_bytes;
};

struct dpa_image {
	const uint8_t *file;
	size_t file_bytes;
	struct dpa_segment segment[DPA_IMAGE_SEGMENTS];
	unsigned nsegments;
	uint64_t span; /* from the base to behind the last segment, in whole pages */
	uint64_t relro, relro_bytes;
	uint64_t rela, rela_bytes; /* their place in the file */
	struct dpa_symbols dynamic, all;
};

/*
 * Checks the whole file, which must stay unchanged and at its place while the image is used.  NULL,
 * or words that say what is wrong with it.
 */
const char *dpa_image_open(struct dpa_image *image, const void *file, size_t bytes) must_check;
/*
 * Loads the image at 'at', page aligned, where image->span bytes of private memory without access
 * lie, which become the image's.  -ENOMEM.
 */
int dpa_image_load(const struct dpa_image *image, void *at) must_check;

/* Gives the address of a function, in executable memory; false: there is none. */
bool dpa_image_function(const struct dpa_image *image, const char *name, uint64_t *addr) must_check;
/* Gives the address of a variable of at least that many bytes, aligned to 8, in writable memory. */
bool dpa_image_variable(const struct dpa_image *image, const char *name, uint64_t bytes,
			uint64_t *addr) must_check;
/* Tells whether the address lies in a segment with all of these rights (PROT_*). */
bool dpa_image_has(const struct dpa_image *image, uint64_t addr, uint64_t bytes, int prot);
/* Returns the function in which the address lies, and how far inside; NULL: none. */
const char *dpa_image_where(const struct dpa_image *image, uint64_t addr, uint64_t *offset);
