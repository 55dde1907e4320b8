// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds mappings of register pages that nobody told us of.  A program (or its memory hooks: UCX has
 * some) may map by the bare system call, past the preload library; the kernel's list of mappings
 * has them nevertheless.
 */
#include <stdlib.h>

#include "base/vma.h"
#include "driver/doorbell/page.h"

static bool same_file(const struct vma *a, const struct vma *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

void doorbell_find(const uint8_t *regs, doorbell_found *found)
{
	char *text = vma_list();
	const char *at = text;
	struct vma ours = {0}, v;
	uint64_t page;

	if (!text)
		return;
	while (vma_next(&at, &v))
		if ((uintptr_t)regs >= v.start && (uintptr_t)regs < v.end)
			ours = v;
	page = ours.offset + ((uintptr_t)regs - ours.start);
	at = text;
	while (ours.end && vma_next(&at, &v))
		if (v.perms[3] == 's' && same_file(&v, &ours) && v.start != ours.start &&
		    page >= v.offset && page - v.offset < v.end - v.start)
			found(regs, v.start + (page - v.offset));
	free(text);
}
