// SPDX-License-Identifier: BSD-2-Clause
/* See look.h. */
#include "tool/look.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/endian.h"
#include "tool/guarded.h"

struct look_task {
	const struct slot *slot;
	struct look *look;
};

static bool place_ok(const struct object_place *p)
{
	return (p->bytes == 1 || p->bytes == 2 || p->bytes == 4 || p->bytes == 8) &&
	       p->offset + p->bytes <= OBJECT_MAX_BYTES;
}

/* Returns how many bytes of an object hold its figures. */
static size_t form_bytes(const struct object_form *form)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < FIGURES; i++) {
		const struct object_place *p = &form->figures[i];

		if (place_ok(p) && (size_t)p->offset + p->bytes > bytes)
			bytes = (size_t)p->offset + p->bytes;
	}
	return bytes;
}

/* Returns 0 or an errno. */
static int memory_read(int32_t pid, uint64_t at, void *to, size_t bytes)
{
	struct iovec local = {to, bytes};
	struct iovec remote = {(void *)(uintptr_t)at, bytes};
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return errno;
	return (size_t)n == bytes ? 0 : EFAULT;
}

static void figures_take(const struct object_form *form, const uint8_t *object,
			 struct look_object *out)
{
	for (unsigned i = 0; i < FIGURES; i++) {
		const struct object_place *p = &form->figures[i];

		/* x86-64 has the low bytes first */
		if (place_ok(p))
			memcpy(&out->figures[i], object + p->offset, p->bytes);
	}
}

/* Returns 0, or an errno if no other object could be read either. */
static int object_read(struct look *l, int fd, int32_t pid, uint32_t row)
{
	const struct object_row *r = &l->mem.objects[row];
	const struct object_form *form = &l->mem.forms[r->about.kind];
	uint8_t object[OBJECT_MAX_BYTES];
	struct look_object seen = {0};
	int ret = memory_read(pid, r->about.at, object, form_bytes(form));
	be32 record[2];

	if (ret)
		return ret == EFAULT ? 0 : ret;
	figures_take(form, object, &seen);
	if (seen.figures[FIGURE_RECORD] &&
	    !memory_read(pid, seen.figures[FIGURE_RECORD], record, sizeof(record))) {
		seen.record[0] = be32_get(record[0]);
		seen.record[1] = be32_get(record[1]);
		seen.record_known = true;
	}
	seen.known = seen.figures[FIGURE_NUMBER] == r->about.number &&
		     expose_object_stands(fd, row, r->serial);
	l->objects[row] = seen;
	return 0;
}

static void objects_read(struct look *l, int fd, int32_t pid)
{
	for (uint32_t row = 0; row < OBJECT_ROWS && !l->error; row++)
		if (look_about(l, row))
			l->error = object_read(l, fd, pid, row);
}

/* Runs in the child. */
static void look_work(void *arg)
{
	const struct look_task *t = arg;
	struct look *l = t->look;
	int fd = expose_snapshot_open(t->slot);

	l->copied = fd >= 0 && expose_snapshot(fd, &l->mem);
	if (l->copied)
		objects_read(l, fd, t->slot->pid);
	l->end = l->copied ? LOOK_DONE : LOOK_CLOSED;
}

struct look *look_at(const struct slot *s, int milliseconds)
{
	struct look *l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct look_task t = {s, l};

	if (l == MAP_FAILED)
		return NULL;
	if (!guarded_run(look_work, &t, milliseconds))
		l->end = LOOK_HELD_UP;
	return l;
}

void look_free(struct look *l)
{
	if (l)
		munmap(l, sizeof(*l));
}

const struct object_about *look_about(const struct look *l, uint32_t row)
{
	const struct object_row *r = &l->mem.objects[row];
	uint64_t serial = atomic_load_explicit(&r->serial, memory_order_relaxed);

	/* UINT64_MAX: the process is filling it */
	return serial && serial != UINT64_MAX && r->about.kind < OBJECT_KINDS ? &r->about : NULL;
}
