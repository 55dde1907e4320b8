// SPDX-License-Identifier: BSD-2-Clause
/* See base/vma.h. */
#include "base/vma.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/spin.h"

#define GROW 65536u
/* How much we read at a time: the kernel writes as much of the list as we ask for, which costs more
 * than a call. */
#define STEP 1024u

/* Makes system calls directly, because the process's functions are interposed. */
static int vma_list_open(void)
{
	return (int)syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
}

char *vma_list(void)
{
	int fd = vma_list_open();
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

void vma_reader_open(struct vma_reader *r)
{
	r->fd = vma_list_open();
	r->at = r->len = 0;
}

/* Moves the line that has begun to the front and reads behind it. */
static bool vma_reader_fill(struct vma_reader *r)
{
	size_t room;
	long n;

	r->len -= r->at;
	memmove(r->text, r->text + r->at, r->len);
	r->at = 0;
	room = sizeof(r->text) - r->len;
	if (r->fd < 0 || !room)
		return false;
	n = syscall(SYS_read, r->fd, r->text + r->len, room < STEP ? room : STEP);
	r->len += n > 0 ? (size_t)n : 0;
	return n > 0;
}

bool vma_reader_next(struct vma_reader *r, struct vma *v)
{
	do {
		const char *line = r->text + r->at, *end;

		while ((end = memchr(line, '\n', r->len - r->at)) != NULL) {
			r->at = (size_t)(end + 1 - r->text);
			if (vma_parse(line, (size_t)(end - line), v))
				return true;
			line = end + 1;
		}
	} while (vma_reader_fill(r));
	return false;
}

void vma_reader_close(struct vma_reader *r)
{
	if (r->fd >= 0)
		syscall(SYS_close, r->fd);
}

/* ---- one mapping ---- */

/* PROCMAP_QUERY of linux/fs.h, which older headers lack. */
struct vma_query {
	uint64_t size, flags, addr;
	uint64_t start, end, vm_flags, page_bytes, offset, inode;
	uint32_t major, minor, name_bytes, build_id_bytes;
	uint64_t name, build_id;
};

#define VMA_QUERY  _IOWR('f', 17, struct vma_query)
#define VMA_READ   1u
#define VMA_WRITE  2u
#define VMA_EXEC   4u
#define VMA_SHARED 8u

static bool vma_search(uint64_t addr, struct vma *v)
{
	struct vma_reader list;
	bool found = false;

	vma_reader_open(&list);
	while (!found && vma_reader_next(&list, v) && v->start <= addr)
		found = addr < v->end;
	vma_reader_close(&list);
	return found;
}

/*
 * Keeps the list open, because opening it costs more than asking.  A descriptor names the list of
 * the process that opened it, so it lies in memory that a child does not inherit, however the child
 * was made.
 */
struct vma_kept {
	struct spin busy; /* nobody waits for it */
	struct hidden list;
};

static struct vma_kept *vma_kept_new(void)
{
	struct vma_kept *k =
		mmap(NULL, sizeof(*k), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (k == MAP_FAILED)
		return NULL;
	if (madvise(k, sizeof(*k), MADV_WIPEONFORK)) {
		munmap(k, sizeof(*k));
		return NULL;
	}
	return k;
}

static struct vma_kept *vma_kept(void)
{
	static _Atomic(struct vma_kept *) kept;
	struct vma_kept *k = atomic_load_explicit(&kept, memory_order_acquire), *fresh;

	if (k)
		return k;
	fresh = vma_kept_new();
	if (fresh && !atomic_compare_exchange_strong(&kept, &k, fresh)) {
		munmap(fresh, sizeof(*fresh));
		return k;
	}
	return fresh;
}

/* The list's descriptor.  Negative: it cannot be kept, or another thread is at it. */
static int vma_list_kept(void)
{
	struct vma_kept *k = vma_kept();
	int fd;

	if (!k || !spin_try(&k->busy))
		return -1;
	if (!hidden_ours(&k->list)) {
		if (k->list.id) /* the structure is all zero at first */
			hidden_close(&k->list);
		k->list = hidden_keep(vma_list_open());
	}
	fd = k->list.fd;
	spin_unlock(&k->busy);
	return fd;
}

/* Returns 0 or a positive errno. */
static int vma_query(uint64_t addr, struct vma_query *q, struct vma *v)
{
	int kept = vma_list_kept(), fd = kept < 0 ? vma_list_open() : kept, ret;

	if (fd < 0)
		return errno;
	*q = (struct vma_query){
		.size = sizeof(*q),
		.addr = addr,
		.name = (uintptr_t)v->name,
		.name_bytes = sizeof(v->name),
	};
	ret = syscall(SYS_ioctl, fd, VMA_QUERY, q) < 0 ? errno : 0;
	if (kept < 0)
		syscall(SYS_close, fd);
	return ret;
}

bool vma_at(uint64_t addr, struct vma *v)
{
	static _Atomic(bool) unknown;
	struct vma_query q = {0};
	int ret = ENOTTY;

	*v = (struct vma){0};
	if (!atomic_load_explicit(&unknown, memory_order_relaxed))
		ret = vma_query(addr, &q, v);
	if (ret == ENOENT)
		return false;
	if (ret) {
		/* An error may also mean that the name is longer than our room; then search the
		 * list. */
		if (ret == ENOTTY)
			atomic_store_explicit(&unknown, true, memory_order_relaxed);
		return vma_search(addr, v);
	}
	v->start = q.start;
	v->end = q.end;
	v->offset = q.offset;
	v->inode = q.inode;
	v->major = q.major;
	v->minor = q.minor;
	v->perms[0] = q.vm_flags & VMA_READ ? 'r' : '-';
	v->perms[1] = q.vm_flags & VMA_WRITE ? 'w' : '-';
	v->perms[2] = q.vm_flags & VMA_EXEC ? 'x' : '-';
	v->perms[3] = q.vm_flags & VMA_SHARED ? 's' : 'p';
	return true;
}
