/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of shared memory that a process lays open to its peers: its arena, and memory that its
 * program shares already.  The owner keeps a table of them in its exposure (exposure/expose.h); a
 * key names a file there and an offset in it.  A peer opens the file through /proc and maps it in
 * chunks: at connect what has pages then, the rest when it is used first.
 *
 *   owner   segment_table_*       rows come and go with the keys that need them
 *   peer    segment_view_*   which chunks are mapped; segment_at is the data path
 *
 * Neither believes the other.  A peer may write what it likes into the table, of which the owner
 * reads nothing back.  An owner may truncate a file, unless it is sealed, or say what is
 * not true: a peer maps only regular files of tmpfs and hugetlbfs, whose pages no third party
 * supplies, and touches them only in ways that survive a fault (usermem/usermem.h).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hidden.h"

#define SEGMENTS	    256u
#define SEGMENT_MAX_BYTES   (1ull << 40) /* longer files are not laid open */
#define SEGMENT_CHUNK_SHIFT 26u
/* Each chunk is mapped this much longer than to its end, so that so many bytes from any offset on
 * are mapped in one piece. */
#define SEGMENT_REACH (4u << 20)
/* The most chunks of a file, and of all files, that segment_view_begin maps. */
#define SEGMENT_BEGIN_CHUNKS 4u
#define SEGMENT_BEGIN_MAX    16u

/* Names a file in the table.  Generations are used once, 0 never. */
struct segment_ref {
	uint32_t row, generation;
};

/* Shared. */
struct segment_row {
	_Atomic(uint32_t) generation; /* 0: the row is free */
	_Atomic(int32_t) fd;	      /* of the owner's process */
	_Atomic(uint64_t) id;	      /* of the file (base/hidden.h) */
	_Atomic(uint64_t) bytes;      /* that the file had when it was laid open */
};

/* ---- the owner ---- */

struct segment_table {
	struct segment_row *rows; /* SEGMENTS of them, in shared memory; never read */
	uint32_t last;		  /* generation */
	struct {
		struct hidden file;
		uint64_t bytes;
		uint32_t generation;
		uint32_t users;
	} own[SEGMENTS];
};

/* The caller serializes all of these. */
void segment_table_open(struct segment_table *s, struct segment_row *rows);
void segment_table_close(struct segment_table *s);
/* Takes the file over, also in failure: -ENOSPC if there is no row, -EFBIG, -EBADF. */
int segment_table_add(struct segment_table *s, struct hidden file, uint64_t bytes,
		      struct segment_ref *out) must_check;
/* One more user of a file that is there with at least so many bytes; false: it is not. */
bool segment_table_hold(struct segment_table *s, uint64_t id, uint64_t bytes,
			struct segment_ref *out) must_check;
/* The last user frees the row. */
void segment_table_drop(struct segment_table *s, struct segment_ref ref);

/* ---- the peer ---- */

/* A file as mapped here, as far as it is. */
struct segment_map {
	uint32_t generation;
	uint32_t shift; /* of a chunk */
	uint32_t overlap;
	uint64_t bytes;
	struct segment_map *next; /* of those that nobody finds any more */
	_Atomic(uint8_t *) chunks[];
};

struct segment_view {
	const struct segment_row *rows; /* the peer's */
	int32_t pid;
	_Atomic(struct segment_map *) maps[SEGMENTS];
	_Atomic(uint64_t) let_go; /* counts: what is remembered of maps is not true any more */
	/* Rows that could not be mapped are not asked for again before this time (ns). */
	_Atomic(uint64_t) refused_until[SEGMENTS];
	pthread_mutex_t mapping;  /* one thread maps */
	struct segment_map *dead; /* under mapping */
	uint32_t ndead;
};

void segment_view_open(struct segment_view *v, const struct segment_row *rows, int32_t pid);
/* Nobody looks any more. */
void segment_view_close(struct segment_view *v);
/*
 * Maps the chunk at an offset; true: segment_at may find it now.  Rare: it makes system calls, and
 * waits for another thread that maps, but for MAPPING_WAIT_NS at most; it allocates nothing from
 * the heap and is no cancellation point.  A file that could not be mapped is left alone for 100 ms.
 *
 * Lets go of files that the peer has taken back, too.  Readers may still be there; they get a
 * fault.
 */
bool segment_view_map(struct segment_view *v, struct segment_ref ref, uint64_t offset) must_check;
/* Lets go of files that the peer has taken back, now.  System calls, and waits as above. */
void segment_view_let_go(struct segment_view *v);
/* Maps ahead what has pages now, up to the limits above. */
void segment_view_begin(struct segment_view *v);
/* What was let go; segment_maps_free gives its addresses back, a grace period later. */
struct segment_map *segment_view_dead(struct segment_view *v);
void segment_maps_free(struct segment_map *m);

/*
 * Where [offset, offset + len) of the file is mapped.  NULL: not there, too long, or not mapped yet
 * (segment_view_map).  Under RCU.
 */
static inline uint8_t *segment_at(const struct segment_view *v, struct segment_ref ref,
				  uint64_t offset, uint64_t len)
{
	const struct segment_map *m;
	uint8_t *chunk;

	if (unlikely(ref.row >= SEGMENTS || len > SEGMENT_REACH))
		return NULL;
	m = atomic_load_explicit(&v->maps[ref.row], memory_order_acquire);
	if (unlikely(!m || m->generation != ref.generation || !range_inside(offset, len, m->bytes)))
		return NULL;
	chunk = atomic_load_explicit(&m->chunks[offset >> m->shift], memory_order_acquire);
	return likely(chunk) ? chunk + (offset & ((1ull << m->shift) - 1)) : NULL;
}

/* What is mapped in one piece around a place. */
struct segment_extent {
	uint64_t before, after;
};

/* Of a place that segment_at has found since let_go was looked at; zeros if that is not so any
 * more. */
struct segment_extent segment_extent(const struct segment_view *v, struct segment_ref ref,
				     uint64_t offset);

/* ---- both ---- */

/* A regular file of tmpfs or hugetlbfs, of at least so many bytes. */
bool segment_file_fits(int fd, uint64_t bytes) must_check;
/*
 * Opens a file of a process through its descriptor if it is the one meant and, for the peer's sake,
 * harmless to map: regular, of tmpfs or hugetlbfs.  Nothing is opened before that is known, as to
 * open a device or a pipe has effects.  We open it with our rights, so only if the process has as
 * many.  Negative errno.
 */
int segment_file_open(int32_t pid, int32_t fd, uint64_t id) must_check;
/*
 * Maps a part of it so that it is in no core file and no child, and does not become resident even
 * if the program has locked its memory.  What may not be written can be read, unless 'writes' says
 * that this is not enough.  NULL: errno.
 */
void *segment_file_map(int fd, uint64_t offset, uint64_t bytes, bool writes) must_check;
