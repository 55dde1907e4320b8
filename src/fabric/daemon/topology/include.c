// SPDX-License-Identifier: BSD-2-Clause
/* Reads network files from the disk, with the files that they include; see plan.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/daemon/topology/netfile.h"

#define INCLUDE_DEPTH	9u
#define FILE_BYTES_MAX	(256u << 20)
#define FILE_NAME_BYTES 4096u

static int file_fill(int fd, char *text, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = read(fd, text + at, bytes - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		at += (size_t)n;
	}
	return 0;
}

/* Reads the file's bytes, into memory with room for one more. */
static int file_read(const char *path, char **text, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	*text = NULL;
	if (fstat(fd, &st))
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	else if (st.st_size > (off_t)FILE_BYTES_MAX)
		ret = -EFBIG;
	if (!ret) {
		*bytes = (size_t)st.st_size;
		*text = malloc(*bytes + 1);
		ret = *text ? file_fill(fd, *text, *bytes) : -ENOMEM;
	}
	close(fd);
	if (ret)
		free(*text);
	return ret;
}

/* A name without '/' in front lies beside the file that names it. */
static bool path_beside(const char *of, const char *name, char path[FILE_NAME_BYTES])
{
	const char *slash = strrchr(of, '/');
	int dir = name[0] == '/' || !slash ? 0 : (int)(slash + 1 - of);
	int n = snprintf(path, FILE_NAME_BYTES, "%.*s%s", dir, of, name);

	return n >= 0 && (unsigned)n < FILE_NAME_BYTES;
}

static int file_include(struct netfile *n, const char *name)
{
	char path[FILE_NAME_BYTES], *text = NULL;
	size_t bytes = 0;
	int ret;

	if (n->depth == INCLUDE_DEPTH)
		return plan_error(n->plan, n->file, n->line, n->error,
				  "files include each other more than %u deep", INCLUDE_DEPTH);
	ret = path_beside(n->plan->files[n->file], name, path) ? file_read(path, &text, &bytes)
							       : -ENAMETOOLONG;
	if (ret) {
		(void)plan_error(n->plan, n->file, n->line, n->error, "%.200s: %s", name,
				 strerror(-ret));
		return ret;
	}
	n->depth++;
	ret = netfile_lines(n, path, text, bytes);
	n->depth--;
	free(text);
	return ret;
}

static int netfile_whole(struct netfile *n, const char *name, char *text, size_t bytes)
{
	int ret = netfile_lines(n, name, text, bytes);

	if (!ret)
		ret = netfile_connect(n);
	netfile_close(n);
	return ret;
}

int plan_read(struct plan *p, const char *path, char error[PLAN_ERROR_BYTES])
{
	struct netfile n;
	char *text = NULL;
	size_t bytes = 0;
	int ret;

	netfile_open(&n, p, error);
	n.include = file_include;
	ret = file_read(path, &text, &bytes);
	if (ret) {
		(void)snprintf(error, PLAN_ERROR_BYTES, "%.255s: %s", path, strerror(-ret));
		return ret;
	}
	ret = netfile_whole(&n, path, text, bytes);
	free(text);
	return ret;
}

int plan_parse(struct plan *p, const char *name, const char *text, size_t bytes,
	       char error[PLAN_ERROR_BYTES])
{
	char *copy = malloc(bytes + 1);
	struct netfile n;
	int ret;

	netfile_open(&n, p, error);
	if (!copy) {
		(void)snprintf(error, PLAN_ERROR_BYTES, "%.255s: not enough memory", name);
		return -ENOMEM;
	}
	memcpy(copy, text, bytes);
	ret = netfile_whole(&n, name, copy, bytes);
	free(copy);
	return ret;
}
