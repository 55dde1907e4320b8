// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/may_block.h"

#include <stdio.h>
#include <string.h>

#include "base/vma.h"
#include "driver/runtime/userfault.h"

/* A line of mountinfo has two paths and options, which may be long; we need its beginning and its
 * end. */
#define LINE_BYTES 8192u

/* FUSE may have a block device, too; every other file system that has one waits for the device
 * alone. */
bool file_system_may_block(const char *type, bool has_device)
{
	static const char *const memory[] = {"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"},
				 *const disk[] = {"btrfs", "zfs", "bcachefs"};

	if (has_device)
		return strncmp(type, "fuse", 4) == 0;
	for (size_t i = 0; i < array_size(memory); i++)
		if (!strcmp(type, memory[i]))
			return false;
	for (size_t i = 0; i < array_size(disk); i++)
		if (!strcmp(type, disk[i]))
			return false;
	return true;
}

/* Does the file lie on a mount of the kernel itself, which no list names? */
static bool is_kernel_file(const struct vma *v)
{
	static const char *const kernel[] = {"/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage"};

	for (size_t i = 0; !v->major && i < array_size(kernel); i++)
		if (!strncmp(v->name, kernel[i], strlen(kernel[i])))
			return true;
	return false;
}

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue" (proc(5)) */
static bool mount_is_of(const char *line, const struct vma *v, char type[32])
{
	const char *end = strstr(line, " - ");
	unsigned major, minor;

	return end && sscanf(line, "%*u %*u %u:%u", &major, &minor) == 2 && major == v->major &&
	       minor == v->minor && sscanf(end, " - %31s", type) == 1;
}

static bool file_may_block(const struct vma *v)
{
	char line[LINE_BYTES], type[32] = "";
	bool found = false;
	FILE *f;

	if (!v->inode && !v->major && !v->minor)
		return false;
	if (is_kernel_file(v))
		return false;
	f = fopen("/proc/thread-self/mountinfo", "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = mount_is_of(line, v, type);
	if (f)
		fclose(f);
	return !found || file_system_may_block(type, v->major);
}

bool memory_may_block(uint64_t addr, uint64_t bytes)
{
	uint64_t end = addr + bytes;
	struct vma v;

	if (end < addr || userfault_serves(addr, bytes))
		return true;
	for (uint64_t at = addr; at < end; at = v.end)
		if (!vma_at(at, &v) || file_may_block(&v))
			return true;
	return false;
}
