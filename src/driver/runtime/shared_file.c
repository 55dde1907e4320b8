// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/shared_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static uint64_t vma_file_id(const struct vma *v)
{
	return hidden_file_id(makedev(v->major, v->minor), v->inode);
}

bool shared_file_find(uint64_t addr, uint64_t bytes, struct shared_range *out)
{
	uint64_t end = addr + bytes, at;
	struct vma v;

	*out = (struct shared_range){0};
	if (end < addr || !vma_at(addr, &v))
		return false;
	*out = (struct shared_range){
		.id = vma_file_id(&v), .offset = v.offset + (addr - v.start), .first = v};
	out->end = out->offset + bytes;
	/* System V segments have numbers of their own beside those of memfds on the same device. */
	if (v.perms[3] != 's' || !v.inode || !strncmp(v.name, "/SYSV", 5))
		return false;
	for (at = v.end; at < end; at = v.end)
		if (!vma_at(at, &v) || v.perms[3] != 's' || vma_file_id(&v) != out->id ||
		    v.offset + (at - v.start) != out->offset + (at - addr))
			return false;
	return true;
}

/* Opens the path without access (O_PATH), if it is this file.  Peers open the file by themselves,
 * with their own rights; and if the path means something else, nothing happens to that. */
static int open_if(const char *path, uint64_t id)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd >= 0 && hidden_id(fd) != id) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Looks for the file among the program's own descriptors. */
static int open_among_descriptors(uint64_t id)
{
	DIR *fds = opendir("/proc/thread-self/fd");
	const struct dirent *e;
	int found = -1;

	while (fds && found < 0 && (e = readdir(fds))) {
		char path[300];

		if (e->d_name[0] == '.' || hidden_id(atoi(e->d_name)) != id)
			continue;
		snprintf(path, sizeof(path), "/proc/thread-self/fd/%s", e->d_name);
		found = open_if(path, id);
	}
	if (fds)
		closedir(fds);
	return found;
}

struct hidden shared_file_open(const struct shared_range *r, uint64_t *bytes)
{
	char path[64];
	struct stat st;
	int fd;

	/* This needs a privilege, but also finds a file that the program has closed and that has no
	 * name. */
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", r->first.start, r->first.end);
	fd = open_if(path, r->id);
	if (fd < 0 && r->first.name[0] == '/')
		fd = open_if(r->first.name, r->id);
	if (fd < 0)
		fd = open_among_descriptors(r->id);
	if (fd < 0)
		return HIDDEN_NONE;
	if (fstat(fd, &st) || !segment_file_fits(fd, r->end)) {
		close(fd);
		return HIDDEN_NONE;
	}
	*bytes = (uint64_t)st.st_size;
	return hidden_keep(fd);
}
