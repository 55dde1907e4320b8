// SPDX-License-Identifier: BSD-2-Clause
/* See device_tree.h. */
#include "fabric/device_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/text.h"

#define SYSFS_PAGE 4096 /* the size of all attributes but binary ones */

const char *device_tree_own(const char *path)
{
	static const char *const own[] = {
		"/sys/class/infiniband",     "/sys/class/infiniband_verbs",
		"/sys/class/infiniband_mad", "/sys/class/infiniband_cm",
		"/sys/class/misc/rdma_cm",   "/dev/infiniband",
		"/proc/sys/net/rdma_ucm",
	};

	for (size_t i = 0; i < array_size(own); i++) {
		const char *rest = path + strlen(own[i]);

		if (!strncmp(path, own[i], strlen(own[i])) && (!*rest || *rest == '/'))
			return rest;
	}
	return NULL;
}

bool device_tree_is_complete(const char *path)
{
	return !strcmp(path, "/sys/bus/pci/devices") ||
	       !strcmp(path, "/sys/bus/pci/drivers/mlx5_core");
}

const char *device_tree_node(const char *below)
{
	static const char rdma[] = "dev/infiniband/", uio[] = "dev/uio";
	const char *name = NULL;

	if (!strncmp(below, rdma, strlen(rdma)))
		name = below + strlen(rdma);
	else if (!strncmp(below, uio, strlen(uio)))
		name = below + strlen("dev/");
	return name && *name && !strchr(name, '/') ? name : NULL;
}

bool device_tree_is_written(const char *below)
{
	return !strcmp(text_file_name(below), "node_desc");
}

/* Reads the number of a device file from the attribute "dev" of its class directory. */
static bool node_number(const char *root, const char *name, dev_t *out)
{
	static const char *const classes[] = {"infiniband_verbs", "infiniband_mad", "infiniband_cm",
					      "misc", "uio"};

	for (size_t i = 0; i < array_size(classes); i++) {
		char text[PATH_MAX];
		unsigned major_no, minor_no;
		ssize_t n;
		int fd;

		if (snprintf(text, sizeof(text), "%s/sys/class/%s/%s/dev", root, classes[i],
			     name) >= (int)sizeof(text))
			return false;
		fd = open(text, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[n > 0 ? n : 0] = '\0';
		if (sscanf(text, "%u:%u", &major_no, &minor_no) == 2) {
			*out = makedev(major_no, minor_no);
			return true;
		}
	}
	return false;
}

void device_tree_describe(const char *root, const char *below, struct stat *st)
{
	const char *node = device_tree_node(below);
	int saved_errno = errno;

	if (node && node_number(root, node, &st->st_rdev)) {
		st->st_mode = (st->st_mode & ~(mode_t)S_IFMT) | S_IFCHR;
		st->st_size = 0;
	} else if (!strncmp(below, "proc/", strlen("proc/"))) {
		st->st_size = 0;
		st->st_blocks = 0;
	} else if (S_ISREG(st->st_mode)) {
		/* Attributes of one text are one file in the tree. */
		st->st_nlink = 1;
		if (strcmp(text_file_name(below), "config") != 0)
			st->st_size = SYSFS_PAGE;
		/* With 0 as in sysfs, cp would ask for holes, which end where the text ends, and
		 * fill the copy up to the size. */
		st->st_blocks = SYSFS_PAGE / 512;
	}
	errno = saved_errno;
}
