/* SPDX-License-Identifier: BSD-2-Clause */
/* The mappings of this process, as the kernel lists them (proc(5), /proc/pid/maps). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct vma {
	uint64_t start, end, offset;
	unsigned long inode;
	unsigned major, minor;
	char perms[5]; /* "rw-p" */
	char name[64]; /* its beginning; empty of anonymous memory */
};

/* The list, which the caller frees; NULL if it cannot be read. */
char *vma_list(void);
/* Takes the next mapping from *at, which begins at the list; false at its end. */
bool vma_next(const char **at, struct vma *v);
