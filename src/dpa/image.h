/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The image of a DPA program: an ELF file as dpacc makes it (a static position-independent
 * executable of this machine), checked, put into memory and asked for its symbols.
 *
 * The file comes from the program and may be anything: each offset, size and index is compared with
 * what is there before it is used, and nothing that the file says is believed twice.  Of
 * relocations there is one kind, the base added to a number.  Constructors do not run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define DPA_IMAGE_SEGMENTS   16u
#define DPA_IMAGE_SPAN_MAX   (256u << 20) /* addresses from the first to the last byte */
#define DPA_IMAGE_NAME_BYTES 512u	  /* of a symbol that is asked for */

/* Addresses count from the base of the image. */
struct dpa_segment {
	uint64_t addr, bytes;
	uint64_t offset, file_bytes;
	int prot;
};

/* Where symbols stand in the file; none: count is 0. */
struct dpa_symbols {
	uint64_t offset, count;
	uint64_t names, names_bytes;
};

struct dpa_image {
	const uint8_t *file;
	size_t file_bytes;
	struct dpa_segment segment[DPA_IMAGE_SEGMENTS];
	unsigned nsegments;
	uint64_t span; /* pages from the base to behind the last segment */
	uint64_t relro, relro_bytes;
	uint64_t rela, rela_bytes; /* in the file */
	struct dpa_symbols dynamic, all;
};

/*
 * Looks at the whole file; it must stay as it is and where it is while the image is used.  NULL, or
 * the words for what is wrong with it.
 */
const char *dpa_image_open(struct dpa_image *image, const void *file, size_t bytes) must_check;
/*
 * Puts it there, page aligned, where image->span bytes of private memory without access are, which
 * become the image's.  -ENOMEM.
 */
int dpa_image_load(const struct dpa_image *image, void *at) must_check;

/* The address of a function, in executable memory; false: there is none. */
bool dpa_image_function(const struct dpa_image *image, const char *name, uint64_t *addr) must_check;
/* The address of a variable with at least so many bytes, aligned to 8, in writable memory. */
bool dpa_image_variable(const struct dpa_image *image, const char *name, uint64_t bytes,
			uint64_t *addr) must_check;
/* Does the address lie in a segment with all of these rights (PROT_*)? */
bool dpa_image_has(const struct dpa_image *image, uint64_t addr, uint64_t bytes, int prot);
/* The function that the address lies in, and how far; NULL: none. */
const char *dpa_image_where(const struct dpa_image *image, uint64_t addr, uint64_t *offset);
