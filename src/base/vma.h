/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of this process, as the kernel lists them (proc(5), /proc/pid/maps). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct vma {
	uint64_t start, end, offset;
	unsigned long inode;
	unsigned major, minor;
	char perms[5]; /* "rw-p" */
	char name[64]; /* its beginning; empty for anonymous memory */
};

/* The list, which the caller frees; NULL if it cannot be read. */
char *vma_list(void);
/* Takes the next mapping from *at, which begins at the list; false at its end. */
bool vma_next(const char **at, struct vma *v);

/*
 * Reads the list piece by piece, for a caller that looks for few addresses.  Most mappings of
 * interest stand at the beginning, and the kernel writes only as much of the list as we read.
 * Allocates nothing.
 */
struct vma_reader {
	int fd; /* negative: there is no list */
	size_t at, len;
	char text[8192]; /* holds more than a line, whose path has up to 4096 bytes */
};

void vma_reader_open(struct vma_reader *r);
/* Takes the next mapping; false at the end. */
bool vma_reader_next(struct vma_reader *r, struct vma *v) must_check;
void vma_reader_close(struct vma_reader *r);

/* The mapping that addr lies in; false: there is none.  Makes one system call if the kernel can
 * look up one mapping (Linux 6.11), otherwise reads through the list. */
bool vma_at(uint64_t addr, struct vma *v) must_check;
