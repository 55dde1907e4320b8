/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fuzz targets share.  A target is a function of bytes: it reads them through a cursor,
 * which gives zeros past the end, so that every input means something.  Inputs are little programs
 * of one-byte operations; what an operation takes stands behind it.
 *
 * Called with --seeds DIRECTORY, the target's program writes its seed corpus there and ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"

/* A property that must hold whatever the input; libFuzzer keeps the input of an abort. */
#define MUST(cond)                                                                                \
	do {                                                                                      \
		if (!(cond)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                                  \
		}                                                                                 \
	} while (0)

/* ---- reading the input ---- */

struct input {
	const uint8_t *at;
	size_t left;
};

void in_bytes(struct input *in, void *dst, size_t n);

static inline uint8_t in_u8(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static inline uint16_t in_u16(struct input *in)
{
	uint16_t low = in_u8(in);

	return (uint16_t)(low | in_u8(in) << 8);
}

static inline uint32_t in_u32(struct input *in)
{
	uint32_t low = in_u16(in);

	return low | (uint32_t)in_u16(in) << 16;
}

static inline uint64_t in_u64(struct input *in)
{
	uint64_t low = in_u32(in);

	return low | (uint64_t)in_u32(in) << 32;
}

/* ---- writing seeds: the same in the other direction ---- */

struct seed {
	const char *dir;
	uint8_t bytes[4096];
	size_t n;
};

void put_bytes(struct seed *s, const void *src, size_t n);
void put_u8(struct seed *s, uint32_t v);
void put_u16(struct seed *s, uint32_t v);
void put_u32(struct seed *s, uint32_t v);
void put_u64(struct seed *s, uint64_t v);
/* Writes the seed to its file and begins the next. */
void put_end(struct seed *s, const char *name);

/* ---- what a target defines, besides LLVMFuzzerTestOneInput ---- */

void target_init(void);
void target_seeds(struct seed *s);

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- of fabric_fake.c ---- */

/* What the host shares of the function that its Ethernet device emulates; the first call opens a descriptor. */
struct emulation *fuzz_function(void);

/* ---- damage that a sanitizer does not see ---- */

/*
 * Faults of the device's own touches of program memory are survived, as in a real process, except
 * those that "forbidden" (may be NULL) names; any other fault is a crash.
 */
void fuzz_catch_faults(bool (*forbidden)(const void *addr));
/* The descriptor that the next open would give. */
int fuzz_lowest_fd(void);
/* None is open from that one on. */
void fuzz_no_fds_from(int first);
