// SPDX-License-Identifier: BSD-2-Clause
/* What a process lays open, for people to see: names, and a copy. */
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "exposure/expose.h"

static const char *name_of(const char *const *names, size_t n, unsigned value)
{
	return value < n ? names[value] : "unknown";
}

const char *key_way_name(enum key_way way)
{
	static const char *const names[] = {"packets", "kernel", "mapped"};

	return name_of(names, array_size(names), way);
}

const char *key_why_name(enum key_why why)
{
	static const char *const names[KEY_WHYS] = {
		[KEY_WHY_UNSAID] = "",
		[KEY_WHY_ASKED] = "--memory asks for it",
		[KEY_WHY_PRIVATE] = "private memory",
		[KEY_WHY_CLOSED] = "shared memory that peers cannot map",
		[KEY_WHY_SHARED] = "memory that is shared already",
		[KEY_WHY_ON_DEMAND] = "on-demand paging",
		[KEY_WHY_MAY_WAIT] = "faults may wait for another program",
		[KEY_WHY_UNMAPPED] = "unmapped since",
		[KEY_WHY_LOCAL] = "no right for peers to read or write",
		[KEY_WHY_WINDOW] = "a memory window",
		[KEY_WHY_LIST] = "a list of pieces of other keys, or with signatures",
		[KEY_WHY_DEVX] = "made by a DEVX command",
	};

	return name_of(names, KEY_WHYS, why);
}

const char *peer_found_name(enum peer_found found)
{
	static const char *const names[PEER_FOUNDS] = {
		[PEER_NOT_TRIED] = "not connected yet",
		[PEER_NOT_MAPPED] =
			"the peer exposes nothing, may not be mapped, or lives in other namespaces",
		[PEER_MAPPED] = "each request goes the way of its key",
		[PEER_NO_KERNEL] = "the system forbids process_vm_readv and writev",
		[PEER_NO_RSEQ] = "the process has no restartable sequences",
	};

	return name_of(names, PEER_FOUNDS, found);
}

const char *transport_name(enum ib_qp_type type)
{
	static const char *const names[] = {
		[IB_QPT_RC] = "RC",	  [IB_QPT_UC] = "UC",
		[IB_QPT_UD] = "UD",	  [IB_QPT_RAW_PACKET] = "raw packets",
		[IB_QPT_XRC_INI] = "XRC", [IB_QPT_XRC_TGT] = "XRC",
		[IB_QPT_DCI] = "DC",	  [IB_QPT_DCT] = "DC",
	};
	const char *name = name_of(names, array_size(names), type);

	return name ? name : "unknown";
}

/* Copies the pages that the file has into memory of zeros; the rest stays zero. */
static bool copy_pages(int fd, char *to, off_t bytes)
{
	off_t at = 0, end;

	while (at < bytes && (at = lseek(fd, at, SEEK_DATA)) >= 0) {
		end = lseek(fd, at, SEEK_HOLE);
		if (end < 0)
			return false;
		end = end < bytes ? end : bytes;
		while (at < end) {
			ssize_t n = pread(fd, to + at, (size_t)(end - at), at);

			if (n <= 0)
				return false;
			at += n;
		}
	}
	/* ENXIO: no data follows the last place. */
	return at >= 0 || errno == ENXIO;
}

int expose_snapshot_open(const struct slot *s)
{
	return segment_file_open(s->pid, atomic_load(&s->expose_fd_plus_1) - 1,
				 atomic_load(&s->expose_id));
}

bool expose_snapshot(int fd, struct expose_mem *to)
{
	return lseek(fd, 0, SEEK_END) == (off_t)sizeof(*to) &&
	       copy_pages(fd, (char *)to, (off_t)sizeof(*to));
}

bool expose_object_stands(int fd, uint32_t row, uint64_t serial)
{
	off_t at = (off_t)(offsetof(struct expose_mem, objects) + row * sizeof(struct object_row) +
			   offsetof(struct object_row, serial));
	uint64_t now;

	return pread(fd, &now, sizeof(now), at) == sizeof(now) && now == serial;
}
