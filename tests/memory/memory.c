// SPDX-License-Identifier: BSD-2-Clause
/* See host.h. */
#include "host.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILES 64

enum { MESSAGE = 0x66, ANSWER = 0x77 };

void host_skip(const char *why, ...)
{
	va_list args;

	va_start(args, why);
	vprintf(why, args);
	va_end(args);
	putchar('\n');
	exit(STATUS_SKIP);
}

uint8_t *host_map(size_t bytes, int value)
{
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		device_die("mmap: %m");
	memset(at, value, bytes);
	return at;
}

struct ibv_mr *host_reg(struct host *h, void *at, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(h->side.pd, at, bytes, SIDE_ACCESS);

	if (!mr)
		device_die("ibv_reg_mr: %m");
	return mr;
}

void host_dereg(struct ibv_mr *mr)
{
	if (ibv_dereg_mr(mr))
		device_die("ibv_dereg_mr: %m");
}

void host_want_all(const void *at, size_t bytes, int value, const char *what)
{
	const uint8_t *byte = at;

	for (size_t i = 0; i < bytes; i++)
		if (byte[i] != (uint8_t)value)
			device_die("%s: byte 0x%zx is 0x%02x where 0x%02x should be (%zu of %zu)",
				   what, i, byte[i], (uint8_t)value, side_not(at, bytes, value),
				   bytes);
}

void host_want_private(const void *at, size_t bytes, const char *what)
{
	uintptr_t from = (uintptr_t)at, covered = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long start, end, inode;
		char rights[8];

		if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &start, &end, rights, &inode) != 4 ||
		    end <= from || start >= from + bytes)
			continue;
		host_want(rights[3] == 'p' && !inode, "%s is not private any more: %s", what, line);
		covered +=
			(end < from + bytes ? end : from + bytes) - (start > from ? start : from);
	}
	if (!f)
		device_die("maps: %m");
	fclose(f);
	host_want(covered == bytes, "%s: %zu of %zu bytes are mapped", what, covered, bytes);
}

void host_exchange(struct host *h, void *at, const struct ibv_mr *mr, size_t bytes, int value)
{
	enum ibv_wc_status status = peer_write(&h->peer, at, mr->rkey, bytes, value);
	struct peer_answer answer;

	host_want(status == IBV_WC_SUCCESS, "the peer's WRITE: %s", ibv_wc_status_str(status));
	host_want_all(at, bytes, value, "what the peer wrote");
	answer = peer_read(&h->peer, at, mr->rkey, bytes, value);
	host_want(answer.status == IBV_WC_SUCCESS, "the peer's READ: %s",
		  ibv_wc_status_str((enum ibv_wc_status)answer.status));
	host_want(!answer.wrong, "the peer reads %lu wrong bytes", (unsigned long)answer.wrong);
}

void host_messages_in(struct host *h, void *at, const struct ibv_mr *mr, size_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)at, (uint32_t)bytes, mr->lkey};
	enum ibv_wc_status status;
	struct ibv_wc wc;

	side_post_recv(&h->side, at, (uint32_t)bytes, mr->lkey);
	status = peer_send(&h->peer, bytes, MESSAGE);
	host_want(status == IBV_WC_SUCCESS, "the peer's SEND: %s", ibv_wc_status_str(status));
	wc = side_next_wc(&h->side);
	host_want(wc.status == IBV_WC_SUCCESS && wc.byte_len == bytes, "the receive: %s, %u bytes",
		  ibv_wc_status_str(wc.status), wc.byte_len);
	host_want_all(at, bytes, MESSAGE, "what the peer sent");
	memset(at, ANSWER, bytes);
	peer_receive(&h->peer, 1, bytes);
	status = side_do(&h->side, IBV_WR_SEND, sge, 0, 0);
	host_want(status == IBV_WC_SUCCESS, "the SEND: %s", ibv_wc_status_str(status));
	peer_collect(&h->peer);
	host_want(peer_look(&h->peer, ANSWER) >= bytes, "the peer has got other bytes");
	status = side_do(&h->side, IBV_WR_RDMA_WRITE, sge, h->peer.addr, h->peer.rkey);
	host_want(status == IBV_WC_SUCCESS, "the WRITE: %s", ibv_wc_status_str(status));
	status = side_do(&h->side, IBV_WR_RDMA_READ, sge, h->peer.addr, h->peer.rkey);
	host_want(status == IBV_WC_SUCCESS, "the READ: %s", ibv_wc_status_str(status));
	host_want_all(at, bytes, ANSWER, "what the peer has");
}

void host_messages(struct host *h, void *at, const struct ibv_mr *mr)
{
	host_messages_in(h, at, mr, HOST_BYTES);
}

/* ---- shared memory of this process ---- */

struct files {
	ino_t seen[MAX_FILES];
	unsigned n;
	uint64_t bytes;
};

static void count_file(struct files *files, const char *path)
{
	char target[256];
	struct stat st;
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n < 0 || strncmp(target, "/memfd:", 7) != 0 || stat(path, &st))
		return;
	for (unsigned i = 0; i < files->n; i++)
		if (files->seen[i] == st.st_ino)
			return;
	if (files->n == MAX_FILES)
		device_die("more than %u files without a name", MAX_FILES);
	files->seen[files->n++] = st.st_ino;
	files->bytes += (uint64_t)st.st_blocks * 512;
}

uint64_t host_shared_bytes(void)
{
	static const char *const places[] = {"/proc/self/fd", "/proc/self/map_files"};
	struct files files = {0};

	for (int i = 0; i < 2; i++) {
		DIR *d = opendir(places[i]);
		struct dirent *entry;
		char path[600];

		while (d && (entry = readdir(d))) {
			snprintf(path, sizeof(path), "%s/%s", places[i], entry->d_name);
			count_file(&files, path);
		}
		if (d)
			closedir(d);
	}
	return files.bytes;
}
