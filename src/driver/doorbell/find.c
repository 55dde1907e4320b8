// SPDX-License-Identifier: BSD-2-Clause
/*
 * Mappings of register pages that nobody told us of.  A program (or its memory hooks: UCX has some)
 * may map by the bare system call, past the preload library; the kernel's list of mappings knows
 * them nevertheless (proc(5), /proc/pid/maps).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/doorbell/page.h"
#include "prm/uar.h"

#define GROW 65536u

struct vma {
	unsigned long start, end, offset, inode;
	unsigned major, minor;
	char share; /* 's' or 'p' */
};

/* The whole list as a string, to be freed; NULL.  By system calls: those of this process are
 * interposed. */
static char *read_maps(void)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t len = 0, room = 0;
	char *text = NULL, *grown;
	ssize_t n = 1;

	if (fd < 0)
		return NULL;
	while (n > 0) {
		if (room - len < GROW / 2) {
			grown = realloc(text, room + GROW);
			if (!grown)
				break;
			text = grown;
			room += GROW;
		}
		n = syscall(SYS_read, fd, text + len, room - len - 1);
		len += n > 0 ? (size_t)n : 0;
	}
	syscall(SYS_close, fd);
	if (text)
		text[len] = '\0';
	return text;
}

/* False at the end. */
static bool next_vma(const char **at, struct vma *v)
{
	const char *line = *at, *end = strchr(line, '\n');

	if (!end)
		return false;
	*at = end + 1;
	if (sscanf(line, "%lx-%lx %*c%*c%*c%c %lx %x:%x %lu", &v->start, &v->end, &v->share,
		   &v->offset, &v->major, &v->minor, &v->inode) != 7)
		v->start = v->end = 0;
	return true;
}

static bool same_file(const struct vma *a, const struct vma *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

void doorbell_find(const uint8_t *regs)
{
	char *text = read_maps();
	const char *at = text;
	struct vma ours = {0}, v;
	unsigned long page;

	if (!text)
		return;
	while (next_vma(&at, &v))
		if ((uintptr_t)regs >= v.start && (uintptr_t)regs < v.end)
			ours = v;
	page = ours.offset + ((uintptr_t)regs - ours.start);
	at = text;
	while (ours.end && next_vma(&at, &v))
		if (v.share == 's' && same_file(&v, &ours) && v.start != ours.start &&
		    page >= v.offset && page - v.offset < v.end - v.start)
			doorbell_mapped(regs, v.start + (page - v.offset));
	free(text);
}
