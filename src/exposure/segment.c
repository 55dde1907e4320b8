// SPDX-License-Identifier: BSD-2-Clause
#include "exposure/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/memory_file.h"
#include "base/checkers.h"
#include "reach/proc.h"

/* How long nobody tries again to map a file that could not be mapped. */
#define REFUSED_NS 100000000u
/* The longest time that a thread waits for another one that maps. */
#define MAPPING_WAIT_NS 20000000u

/* ---- the owner ---- */

void segment_table_open(struct segment_table *s, struct segment_row *rows)
{
	*s = (struct segment_table){.rows = rows};
	for (uint32_t i = 0; i < SEGMENTS; i++)
		s->own[i].file = HIDDEN_NONE;
}

static void segment_table_free_row(struct segment_table *s, uint32_t row)
{
	atomic_store(&s->rows[row].generation, 0);
	hidden_close(&s->own[row].file);
	s->own[row].users = 0;
}

void segment_table_close(struct segment_table *s)
{
	for (uint32_t i = 0; s->rows && i < SEGMENTS; i++)
		segment_table_free_row(s, i);
	s->rows = NULL;
}

static int64_t segment_table_row_unused(const struct segment_table *s)
{
	for (uint32_t i = 0; s->rows && i < SEGMENTS; i++)
		if (!s->own[i].users)
			return i;
	return -ENOSPC;
}

int segment_table_add(struct segment_table *s, struct hidden file, uint64_t bytes,
		      struct segment_ref *out)
{
	int64_t row = segment_table_row_unused(s);
	struct segment_row *r;

	if (file.fd < 0)
		row = -EBADF;
	else if (bytes > SEGMENT_MAX_BYTES)
		row = -EFBIG;
	if (row < 0) {
		hidden_close(&file);
		return (int)row;
	}
	s->last += s->last == UINT32_MAX ? 2 : 1;
	s->own[row].file = file;
	s->own[row].bytes = bytes;
	s->own[row].generation = s->last;
	s->own[row].users = 1;
	r = &s->rows[row];
	atomic_store(&r->fd, file.fd);
	atomic_store(&r->id, file.id);
	atomic_store(&r->bytes, bytes);
	atomic_store(&r->generation, s->last);
	*out = (struct segment_ref){(uint32_t)row, s->last};
	return 0;
}

bool segment_table_hold(struct segment_table *s, uint64_t id, uint64_t bytes,
			struct segment_ref *out)
{
	for (uint32_t i = 0; s->rows && i < SEGMENTS; i++) {
		/* The peer finds the file by our descriptor's number, so the number must still be
		 * ours. */
		if (!s->own[i].users || s->own[i].file.id != id || s->own[i].bytes < bytes ||
		    !hidden_ours(&s->own[i].file))
			continue;
		s->own[i].users++;
		*out = (struct segment_ref){i, s->own[i].generation};
		return true;
	}
	return false;
}

bool segment_table_drop(struct segment_table *s, struct segment_ref ref)
{
	if (--s->own[ref.row].users)
		return false;
	segment_table_free_row(s, ref.row);
	return true;
}

/* ---- both ---- */

bool segment_file_fits(int fd, uint64_t bytes)
{
	struct statfs fs;
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size >= bytes &&
	       !fstatfs(fd, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

/* Opens read-only if we may not write the file.  Does not wait for a lease that somebody has on
 * it. */
static int segment_reopen(int fd)
{
	int ret = descriptor_reopen(0, fd, O_RDWR | O_NOCTTY | O_NONBLOCK);

	if (ret < 0 && (errno == EACCES || errno == EPERM || errno == EROFS))
		ret = descriptor_reopen(0, fd, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	return ret < 0 ? -errno : ret;
}

int segment_file_open(int32_t pid, int32_t fd, uint64_t id)
{
	int at, ret = -ESTALE;

	if (fd < 0)
		return -EBADF;
	if (!rights_cover_ours(pid))
		return -EPERM;
	at = descriptor_reopen(pid, fd, O_PATH);
	if (at < 0)
		return -errno;
	/*
	 * The peer may have closed its descriptor and opened something else under that number.  Or
	 * the peer has ended and another process has its PID, or the PID names another process in
	 * our PID namespace.
	 */
	if (hidden_id(at) == id && segment_file_fits(at, 0))
		ret = segment_reopen(at);
	close(at);
	return ret;
}

void *segment_file_map(int fd, uint64_t offset, uint64_t bytes, bool writes)
{
	void *p = sparse_map(bytes, PROT_NONE, fd, offset);

	if (!p)
		return NULL;
	(void)madvise(p, bytes, MADV_DONTFORK);
	if (!mprotect(p, bytes, PROT_READ | PROT_WRITE) ||
	    (!writes && !mprotect(p, bytes, PROT_READ)))
		return p;
	munmap(p, bytes);
	return NULL;
}

/* ---- the peer ---- */

void segment_view_open(struct segment_view *v, const struct segment_row *rows, int32_t pid)
{
	*v = (struct segment_view){.rows = rows, .pid = pid};
	pthread_mutex_init(&v->mapping, NULL);
}

static uint64_t chunk_bytes(const struct segment_map *m, uint64_t chunk)
{
	return min_u64(m->bytes - (chunk << m->shift), (1ull << m->shift) + m->overlap);
}

static uint64_t chunk_count(const struct segment_map *m)
{
	return ((m->bytes - 1) >> m->shift) + 1;
}

static size_t segment_map_size(const struct segment_map *m)
{
	return sizeof(*m) + chunk_count(m) * sizeof(m->chunks[0]);
}

void segment_maps_free(struct segment_map *m)
{
	while (m) {
		struct segment_map *next = m->next;

		for (uint64_t i = 0; i < chunk_count(m); i++)
			if (m->chunks[i])
				munmap(m->chunks[i], chunk_bytes(m, i));
		munmap(m, segment_map_size(m));
		m = next;
	}
}

struct segment_map *segment_view_dead(struct segment_view *v)
{
	struct segment_map *dead;

	pthread_mutex_lock(&v->mapping);
	dead = v->dead;
	v->dead = NULL;
	v->ndead = 0;
	pthread_mutex_unlock(&v->mapping);
	return dead;
}

void segment_view_close(struct segment_view *v)
{
	segment_maps_free(v->dead);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		segment_maps_free(atomic_load(&v->maps[i]));
	pthread_mutex_destroy(&v->mapping);
}

/*
 * Unmaps the pages at once, because we must not keep what the peer wants to be rid of.  The
 * addresses stay reserved until nobody can be at them any more.
 */
static void segment_let_go(struct segment_view *v, uint32_t row)
{
	struct segment_map *m;

	/* The addresses are given back only after waiting for every reader that does not see
	 * this. */
	atomic_fetch_add(&v->let_go, 1);
	m = atomic_exchange(&v->maps[row], NULL);
	for (uint64_t i = 0; i < chunk_count(m); i++)
		if (m->chunks[i])
			(void)mmap(m->chunks[i], chunk_bytes(m, i), PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	m->next = v->dead;
	v->dead = m;
	v->ndead++;
}

static bool segment_is_current(const struct segment_view *v, uint32_t row, uint32_t generation)
{
	return atomic_load_explicit(&v->rows[row].generation, memory_order_acquire) == generation;
}

static struct segment_map *segment_map_new(int fd, uint64_t bytes, uint32_t generation)
{
	struct segment_map shape = {
		.generation = generation,
		.shift = SEGMENT_CHUNK_SHIFT,
		.overlap = SEGMENT_REACH,
		.bytes = bytes,
	};
	struct segment_map *m;
	struct statfs fs;
	struct stat st;

	if (!bytes || bytes > SEGMENT_MAX_BYTES || fstat(fd, &st) || fstatfs(fd, &fs) ||
	    (uint64_t)st.st_size < bytes)
		return NULL;
	/* Chunks begin and end at pages, however large these are. */
	while (fs.f_type == HUGETLBFS_MAGIC && 1ull << shape.shift < (uint64_t)st.st_blksize)
		shape.shift++;
	if (fs.f_type == HUGETLBFS_MAGIC && (uint64_t)st.st_blksize > shape.overlap)
		shape.overlap = 1u << shape.shift;
	/* Not from the heap: the thread may be interrupted in there, and post from a signal
	 * handler. */
	m = mmap(NULL, segment_map_size(&shape), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return NULL;
	m->generation = shape.generation;
	m->shift = shape.shift;
	m->overlap = shape.overlap;
	m->bytes = shape.bytes;
	return m;
}

/* Where a chunk of the file is mapped, or maps it now; NULL: it could not. */
static uint8_t *segment_map_chunk(const struct segment_map *m, int fd, uint64_t chunk)
{
	if (chunk >= chunk_count(m))
		return NULL;
	if (m->chunks[chunk])
		return m->chunks[chunk];
	return segment_file_map(fd, chunk << m->shift, chunk_bytes(m, chunk), false);
}

/*
 * Maps a chunk of the row's file, which is open.  If the row is still the same at the end, then
 * what was read of it belongs together, and to what this publishes.
 */
static bool segment_map_row(struct segment_view *v, uint32_t row, uint32_t generation, int fd,
			    uint64_t offset)
{
	struct segment_map *m = atomic_load(&v->maps[row]), *fresh = NULL;
	uint64_t chunk;
	uint8_t *at;

	if (!m)
		m = fresh = segment_map_new(fd, atomic_load(&v->rows[row].bytes), generation);
	if (!m || m->generation != generation)
		return false;
	chunk = offset >> m->shift;
	at = segment_map_chunk(m, fd, chunk);
	if (!at || !segment_is_current(v, row, generation)) {
		if (at && at != m->chunks[chunk])
			munmap(at, chunk_bytes(m, chunk));
		if (fresh)
			munmap(fresh, segment_map_size(fresh));
		return false;
	}
	atomic_store_explicit(&m->chunks[chunk], at, memory_order_release);
	if (fresh)
		atomic_store_explicit(&v->maps[row], fresh, memory_order_release);
	return true;
}

struct segment_extent segment_extent(const struct segment_view *v, struct segment_ref ref,
				     uint64_t offset)
{
	const struct segment_map *m = atomic_load_explicit(&v->maps[ref.row], memory_order_acquire);
	struct segment_extent e = {0};

	if (!m || m->generation != ref.generation)
		return e;
	e.before = offset & ((1ull << m->shift) - 1);
	e.after = chunk_bytes(m, offset >> m->shift) - e.before;
	return e;
}

/* False: another thread is mapping, and may be stopped in the middle. */
static bool segment_mapping_begin(struct segment_view *v)
{
	uint64_t until = clock_ns() + MAPPING_WAIT_NS;
	const struct timespec t = {.tv_sec = (time_t)(until / 1000000000u),
				   .tv_nsec = (long)(until % 1000000000u)};

	if (pthread_mutex_clocklock(&v->mapping, CLOCK_MONOTONIC, &t))
		return false;
	tsan_locked(&v->mapping);
	return true;
}

static bool segment_is_refused(const struct segment_view *v, uint32_t row)
{
	uint64_t until = atomic_load_explicit(&v->refused_until[row], memory_order_relaxed);

	return until && clock_ns() < until;
}

static void segment_refuse(struct segment_view *v, uint32_t row)
{
	atomic_store(&v->refused_until[row], clock_ns() + REFUSED_NS);
}

static int segment_row_open(const struct segment_view *v, uint32_t row)
{
	return segment_file_open(v->pid, atomic_load(&v->rows[row].fd),
				 atomic_load(&v->rows[row].id));
}

static void segment_let_go_stale(struct segment_view *v)
{
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		const struct segment_map *m = atomic_load(&v->maps[i]);

		if (m && !segment_is_current(v, i, m->generation))
			segment_let_go(v, i);
	}
}

void segment_view_let_go(struct segment_view *v)
{
	no_cancellation();

	if (!segment_mapping_begin(v))
		return;
	segment_let_go_stale(v);
	pthread_mutex_unlock(&v->mapping);
}

/* True if segment_at would find the chunk. */
static bool segment_is_mapped(const struct segment_view *v, struct segment_ref ref, uint64_t offset)
{
	const struct segment_map *m = atomic_load(&v->maps[ref.row]);

	return m && m->generation == ref.generation && offset < m->bytes &&
	       atomic_load(&m->chunks[offset >> m->shift]);
}

static bool segment_map_now(struct segment_view *v, struct segment_ref ref, uint64_t offset)
{
	bool mapped = false;
	int fd;

	segment_let_go_stale(v);
	if (segment_is_mapped(v, ref, offset))
		return true;
	/* If the owner has taken the file back since the caller looked, that does not refuse the
	 * next file in the row. */
	if (v->ndead >= SEGMENTS || !segment_is_current(v, ref.row, ref.generation))
		return false;
	fd = segment_row_open(v, ref.row);
	if (fd >= 0) {
		mapped = segment_map_row(v, ref.row, ref.generation, fd, offset);
		close(fd);
	}
	if (!mapped && segment_is_current(v, ref.row, ref.generation))
		segment_refuse(v, ref.row);
	return mapped;
}

bool segment_view_map(struct segment_view *v, struct segment_ref ref, uint64_t offset)
{
	no_cancellation();
	int error = errno; /* may be the program's */
	bool mapped;

	if (ref.row >= SEGMENTS || segment_is_refused(v, ref.row))
		return false;
	if (segment_mapping_begin(v)) {
		mapped = segment_map_now(v, ref, offset);
		pthread_mutex_unlock(&v->mapping);
	} else {
		mapped = false;
		segment_refuse(v, ref.row);
	}
	errno = error;
	return mapped;
}

/* Maps up to 'limit' chunks that have pages; returns how many it has mapped. */
static uint32_t segment_begin_row(struct segment_view *v, struct segment_ref ref, uint32_t limit)
{
	int fd = segment_row_open(v, ref.row);
	off_t at = 0;
	uint32_t n = 0;

	if (fd < 0)
		return 0;
	while (n < limit && (at = lseek(fd, at, SEEK_DATA)) >= 0 &&
	       segment_map_row(v, ref.row, ref.generation, fd, (uint64_t)at)) {
		const struct segment_map *m = atomic_load(&v->maps[ref.row]);

		at = (off_t)((((uint64_t)at >> m->shift) + 1) << m->shift);
		n++;
	}
	close(fd);
	return n;
}

void segment_view_begin(struct segment_view *v)
{
	no_cancellation();
	uint32_t left = SEGMENT_BEGIN_MAX;

	if (!segment_mapping_begin(v))
		return;
	segment_let_go_stale(v);
	for (uint32_t i = 0; i < SEGMENTS && left; i++) {
		const struct segment_ref ref = {i, atomic_load(&v->rows[i].generation)};

		/* Chunks of a file that is mapped in part follow as requests use them. */
		if (ref.generation && !atomic_load(&v->maps[i]) && !segment_is_refused(v, i))
			left -= segment_begin_row(v, ref, min_u32(left, SEGMENT_BEGIN_CHUNKS));
	}
	pthread_mutex_unlock(&v->mapping);
}
