// SPDX-License-Identifier: BSD-2-Clause
/* See base/vma.h. */
#include "base/vma.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GROW 65536u

/* Makes system calls directly: the functions of this process are interposed. */
char *vma_list(void)
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

/* Parses a copy of the line: sscanf would measure the whole rest of the list each time. */
static bool vma_parse(const char *line, size_t len, struct vma *v)
{
	char text[256];

	len = len < sizeof(text) - 1 ? len : sizeof(text) - 1;
	memcpy(text, line, len);
	text[len] = '\0';
	*v = (struct vma){0};
	return sscanf(text, "%lx-%lx %4s %lx %x:%x %lu%*[ ]%63[^ ]", &v->start, &v->end, v->perms,
		      &v->offset, &v->major, &v->minor, &v->inode, v->name) >= 7;
}

bool vma_next(const char **at, struct vma *v)
{
	const char *end;

	while ((end = strchr(*at, '\n')) != NULL) {
		const char *line = *at;

		*at = end + 1;
		if (vma_parse(line, (size_t)(end - line), v))
			return true;
	}
	return false;
}
