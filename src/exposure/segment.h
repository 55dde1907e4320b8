/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of shared memory that a process lays open to its peers, because its program has registered
 * memory in them.  The owner keeps a table of them in its exposure (exposure/expose.h); a key names
 * a file there and an offset in it.  A peer opens the file through /proc and maps it in chunks: at
 * connect the chunks that have pages then, and each other chunk when a request first needs it.
 *
 *   owner   segment_table_*   rows come and go with the keys that need them
 *   peer    segment_view_*    which chunks are mapped; segment_at is the data path
 *
 * Neither side believes the other.  A peer may write what it likes into the table, because the
 * owner reads nothing back from it.  An owner may truncate a file, unless it is sealed, or say what
 * is not true: a peer maps only regular files of tmpfs and hugetlbfs, whose pages no third party
 * supplies, and touches them only in ways that survive a fault (usermem/usermem.h).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/descriptor.h"

#define SEGMENTS	    256u
#define SEGMENT_MAX_BYTES   (1ull << 40) /* longer files are not laid open */
#define SEGMENT_CHUNK_SHIFT 26u
/* Each chunk is mapped this far beyond its end, so that this many bytes from any offset on are
 * mapped in one piece. */
#define SEGMENT_REACH (4u << 20)
/* The most chunks that segment_view_begin maps of a file, and of all files together. */
#define SEGMENT_BEGIN_CHUNKS 4u
#define SEGMENT_BEGIN_MAX    16u

/* Names a file in the table.  Each generation is used once, and 0 never. */
struct segment_ref {
	uint32_t row, generation;
};

/* In shared memory. */
struct segment_row {
	_Atomic(uint32_t) generation; /* 0: the row is free */
	_Atomic(int32_t) fd;	      /* of the owner's process */
	_Atomic(uint64_t) id;	      /* the file's (base/descriptor.h) */
	_Atomic(uint64_t) bytes;      /* bytes that the file had when its owner laid it open */
};

/* ---- the owner ---- */

struct segment_table {
	struct segment_row *rows; /* SEGMENTS rows in shared memory, which the owner never reads */
	uint32_t last;		  /* the last generation used */
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
/* Takes the file over, even if it fails: -ENOSPC if there is no row, -EFBIG, -EBADF. */
int segment_table_add(struct segment_table *s, struct hidden file, uint64_t bytes,
		      struct segment_ref *out) must_check;
/* Adds a user to a file that is in the table with at least this many bytes; false: it is not. */
bool segment_table_hold(struct segment_table *s, uint64_t id, uint64_t bytes,
			struct segment_ref *out) must_check;
/* Drops a user.  True: it was the last one, and the row is free. */
bool segment_table_drop(struct segment_table *s, struct segment_ref ref);

/* ---- the peer ---- */

/* A file of which some chunks are mapped here. */
struct segment_map {
	uint32_t generation;
	uint32_t shift; /* log2 of a chunk's bytes */
	uint32_t overlap;
	uint64_t bytes;
	struct segment_map *next; /* the next of the maps that nobody finds any more */
	_Atomic(uint8_t *) chunks[];
};

struct segment_view {
	const struct segment_row *rows; /* the peer's */
	int32_t pid;
	_Atomic(struct segment_map *) maps[SEGMENTS];
	_Atomic(uint64_t) let_go; /* counts up when remembered maps become invalid */
	/* Nobody asks again for a row that could not be mapped before this time (ns). */
	_Atomic(uint64_t) refused_until[SEGMENTS];
	pthread_mutex_t mapping;  /* held by the one thread that maps */
	struct segment_map *dead; /* under 'mapping' */
	uint32_t ndead;
};

void segment_view_open(struct segment_view *v, const struct segment_row *rows, int32_t pid);
/* Called when nobody looks any more. */
void segment_view_close(struct segment_view *v);
/*
 * Maps the chunk at an offset; true: segment_at may find it now.  Rarely called: it makes system
 * calls, and waits for another thread that maps, but for MAPPING_WAIT_NS at most.  It allocates
 * nothing from the heap and is no cancellation point.  For 100 ms it does not try again to map a
 * file that it could not map.
 *
 * It also lets go of files that the peer has taken back.  Readers may still be in them; they get a
 * fault.
 */
bool segment_view_map(struct segment_view *v, struct segment_ref ref, uint64_t offset) must_check;
/* Lets go now of files that the peer has taken back.  Makes system calls, and waits as above. */
void segment_view_let_go(struct segment_view *v);
/* Maps the chunks that have pages now, up to the limits above, before a request needs them. */
void segment_view_begin(struct segment_view *v);
/* Takes out the maps that were let go.  When all readers have left that are there now,
 * segment_maps_free gives their addresses back. */
struct segment_map *segment_view_dead(struct segment_view *v);
void segment_maps_free(struct segment_map *m);

/*
 * Where [offset, offset + len) of the file is mapped.  NULL: the file has no such range, it is too
 * long, or it is not mapped yet (segment_view_map).  The caller is a reader.
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

/* How many bytes around a place are mapped in one piece. */
struct segment_extent {
	uint64_t before, after;
};

/* The extent of a place that segment_at has found after the caller looked at let_go; zeros if the
 * place is no longer mapped. */
struct segment_extent segment_extent(const struct segment_view *v, struct segment_ref ref,
				     uint64_t offset);

/* ---- both ---- */

/* True if the file is a regular one of tmpfs or hugetlbfs and has at least this many bytes. */
bool segment_file_fits(int fd, uint64_t bytes) must_check;
/*
 * Opens a file of a process through its descriptor, if it is the file meant and harmless to map,
 * which means regular and of tmpfs or hugetlbfs.  It checks that before it opens the file, because
 * opening a device or a pipe has effects.  We open with our rights, so only if the process has as
 * many.  Returns the descriptor or negative errno.
 */
int segment_file_open(int32_t pid, int32_t fd, uint64_t id) must_check;
/*
 * Maps a part of the file so that no core file and no child gets it, and so that it does not become
 * resident even if the program has locked its memory.  If we may not write the file, maps it for
 * reading only, unless 'writes' says that this is not enough.  NULL: see errno.
 */
void *segment_file_map(int fd, uint64_t offset, uint64_t bytes, bool writes) must_check;
