// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/moved.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/trace.h"
#include "driver/runtime/mapping.h"
#include "driver/runtime/pages.h"
#include "driver/runtime/process.h"

#define PAGE 4096u

/* Moving costs two copies, so we bound its size and number: a program that registers and
 * deregisters all the time must not pay for it. */
#define MOVED_MAX_BYTES (64u << 20)
#define MOVED_MAX_MOVES 256u

struct moved {
	struct share share;
	struct moved *next;
	uint64_t addr; /* page-aligned */
	uint64_t bytes;
	uint64_t offset; /* in the arena */
	ino_t inode;	 /* of the arena */
	bool in_place;	 /* what moved_fork_prepare found last */
};

static struct moved *all_moved;
static uint32_t moves, refusals;

/* ---- what lies where ---- */

static bool is_moved_page(const struct vma *v, const void *arg)
{
	const struct moved *m = arg;
	uint64_t first = v->start > m->addr ? v->start : m->addr;

	return v->inode == m->inode &&
	       v->offset + (first - v->start) == m->offset + (first - m->addr);
}

static bool moved_is_in_place(const struct moved *m)
{
	return mappings_all(m->addr, m->addr + m->bytes, is_moved_page, m);
}

static void moved_forget(struct moved *m)
{
	struct moved **at = &all_moved;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	free(m);
}

/* Are there only threads of ours besides the caller? */
static bool threads_alone(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *e;
	unsigned others = 0;

	if (!tasks)
		return false;
	while ((e = readdir(tasks))) {
		char path[300], name[32] = "";
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "re");
		if (f && !fgets(name, sizeof(name), f))
			name[0] = '\0';
		if (f)
			fclose(f);
		name[strcspn(name, "\n")] = '\0';
		others += !own_thread_is(name);
	}
	closedir(tasks);
	return others <= 1;
}

/* ---- in ---- */

/* Returns KEY_WHY_MOVED if the memory is such that it can be moved, or why it is not. */
static enum key_why look_at_pages(uint64_t addr, uint64_t end)
{
	if (refusals >= SHARE_MAX_REFUSALS)
		return KEY_WHY_OFTEN;
	if (mappings_plain(addr, end))
		return KEY_WHY_MOVED;
	refusals++;
	return KEY_WHY_NOT_PLAIN;
}

/*
 * While pages of the process move nobody may write there.  Our threads could write, because they
 * may be placing data for another key, and use the heap; peers could, by a key that was registered
 * before and that they reach by its address.
 */
static void writers_hold(struct process *p)
{
	process_pause(p);
	expose_hold(wire_process_expose(p->wire_process));
}

static void writers_go_on(struct process *p)
{
	expose_go_on(wire_process_expose(p->wire_process));
	process_resume(p);
}

struct share *moved_find(uint64_t addr, uint64_t bytes)
{
	for (struct moved *m = all_moved; m; m = m->next)
		if (range_inside(addr - m->addr, bytes, m->bytes) && moved_is_in_place(m))
			return &m->share;
	return NULL;
}

uint64_t moved_offset(struct share *s, uint64_t addr)
{
	const struct moved *m = container_of(s, struct moved, share);

	return m->offset + (addr - m->addr);
}

/* Returns KEY_WHY_MOVED if nothing prevents the move, or what does. */
static enum key_why look_before_move(const struct expose *e, uint64_t bytes, uint64_t first,
				     uint64_t end)
{
	if (!e->mem || !hidden_ours(expose_arena_file(e)))
		return KEY_WHY_NO_MOVE;
	if (bytes > MOVED_MAX_BYTES)
		return KEY_WHY_LARGE;
	if (moves >= MOVED_MAX_MOVES)
		return KEY_WHY_OFTEN;
	if (!threads_alone())
		return KEY_WHY_THREADS;
	return look_at_pages(first, end);
}

struct share *moved_begin(struct process *p, uint64_t addr, uint64_t bytes, enum key_why *why)
{
	struct expose *e = wire_expose(p->hcas[0].wire);
	uint64_t first = addr & ~(uint64_t)(PAGE - 1);
	uint64_t end = align_up(addr + bytes, PAGE);
	struct moved *m;
	struct stat st;
	int64_t offset;
	bool replaced;
	int arena;

	*why = look_before_move(e, bytes, first, end);
	if (*why != KEY_WHY_MOVED)
		return NULL;
	*why = KEY_WHY_NO_MOVE;
	arena = expose_arena_file(e)->fd;
	offset = fstat(arena, &st) < 0 ? -errno : expose_arena_take(e, end - first);
	m = offset < 0 ? NULL : calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	*m = (struct moved){
		.addr = first,
		.bytes = end - first,
		.offset = (uint64_t)offset,
		.inode = st.st_ino,
		.next = all_moved,
	};
	writers_hold(p);
	replaced = pages_replace(first, end - first, arena, m->offset);
	writers_go_on(p);
	if (!replaced) {
		free(m);
		return NULL;
	}
	*why = KEY_WHY_MOVED;
	trace(share, moved, addr, bytes);
	moves++;
	all_moved = m;
	return &m->share;
}

/* ---- out ---- */

/* Moves the pages back.  If the program has unmapped the memory, or put something else there, it
 * stays as it is. */
static void move_back(const struct moved *m)
{
	struct process *p = process_current();
	bool running = p && p->engine;

	if (!moved_is_in_place(m))
		return;
	if (running)
		writers_hold(p);
	if (!pages_replace(m->addr, m->bytes, -1, 0))
		log_warn("memory at 0x%lx stays shared: %m", (unsigned long)m->addr);
	if (running)
		writers_go_on(p);
}

static bool arena_range_mapped(const struct moved *m)
{
	struct vma_reader list;
	bool mapped = false;
	struct vma v;

	vma_reader_open(&list);
	while (!mapped && vma_reader_next(&list, &v))
		mapped = v.inode == m->inode && v.offset < m->offset + m->bytes &&
			 m->offset < v.offset + (v.end - v.start);
	mapped |= list.fd < 0;
	vma_reader_close(&list);
	return mapped;
}

/* Frees the pages, if the program no longer has them anywhere.  Nobody uses this range of the arena
 * again, so a peer that is late writes to a page that nobody reads. */
static void arena_give_back(const struct moved *m)
{
	struct process *p = process_current();
	const struct hidden *arena =
		p && p->nhcas ? expose_arena_file(wire_expose(p->hcas[0].wire)) : NULL;
	struct stat st;

	/* We leave an older arena, which goes by itself, and that of the parent of a fork, which is
	 * not ours. */
	if (arena && hidden_ours(arena) && !fstat(arena->fd, &st) && st.st_ino == m->inode &&
	    !arena_range_mapped(m))
		(void)fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)m->offset, (off_t)m->bytes);
}

void moved_end(struct share *s)
{
	struct moved *m = container_of(s, struct moved, share);

	if (!threads_alone())
		return;
	move_back(m);
	arena_give_back(m);
	moved_forget(m);
}

/* ---- fork ---- */

bool moved_fork_prepare(void)
{
	for (struct moved *m = all_moved, *next; m; m = next) {
		next = m->next;
		m->in_place = moved_is_in_place(m);
		if (!m->share.users && !m->in_place) {
			arena_give_back(m);
			moved_forget(m);
		}
	}
	return all_moved;
}

/* Uses no stdio, which would use the heap that is still shared. */
void moved_fork_child(void)
{
	for (const struct moved *m = all_moved; m; m = m->next)
		if (m->in_place && !pages_replace(m->addr, m->bytes, -1, 0))
			log_warn("memory at 0x%lx stays shared: %m", (unsigned long)m->addr);
}
