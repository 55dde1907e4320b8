// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/share.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/trace.h"
#include "driver/runtime/mapping.h"
#include "driver/runtime/process.h"
#include "driver/runtime/shared_file.h"
#include "exposure/expose.h"
#include "usermem/usermem.h"

#define PAGE 4096u

/* Moving costs two copies; a program that registers and deregisters all the time shall not pay for
 * it. */
#define SHARE_MAX_BYTES (64u << 20)
#define SHARE_MAX_MOVES 256u
/* Finding out that memory must not be moved is not for nothing either. */
#define SHARE_MAX_REFUSALS 256u

struct share {
	struct share *next;
	uint64_t addr; /* page-aligned */
	uint64_t bytes;
	uint64_t offset; /* in the arena */
	ino_t inode;	 /* of the arena */
	uint32_t users;
	bool in_place; /* when last looked at, before a fork */
	/* A file of the program, whose pages did not move; none of the above but users. */
	bool is_file;
	uint64_t id;
	struct segment_ref segment;
	pid_t owner; /* the process that laid it open */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct share *shares, *files;
static uint32_t moves, refusals, file_refusals;

static void share_forget(struct share **list, struct share *s)
{
	while (*list != s)
		list = &(*list)->next;
	*list = s->next;
	free(s);
}

/* ---- what lies where ---- */

static bool is_shared_page(const struct vma *v, const void *arg)
{
	const struct share *s = arg;
	uint64_t first = v->start > s->addr ? v->start : s->addr;

	return v->inode == s->inode &&
	       v->offset + (first - v->start) == s->offset + (first - s->addr);
}

/* Only threads of ours besides the caller? */
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

/* ---- moving ---- */

/* KEY_WHY_MOVED: the memory is such that it can be moved. */
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
 * A handler of the program that ran between the copy and its taking the place would write into
 * pages that go.  Faults are not blocked, because the copy may meet one.
 */
static void signals_hold(uint64_t *old)
{
	const uint64_t faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) |
				1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1) | 1ull << (SIGTRAP - 1);
	const uint64_t all = ~faults;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, old, sizeof(all));
}

static void signals_release(const uint64_t *old)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, old, NULL, sizeof(*old));
}

/* Not by the program's mremap: it takes locks that a forked child finds taken. */
static bool pages_put(void *copy, uint64_t bytes, void *at)
{
	return syscall(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != -1;
}

/*
 * While pages of the process move nobody writes there: neither our threads, which may be placing
 * data for another key, and use the heap, nor peers, by a key that was registered before and that
 * they reach by its address.
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

/* Copies the pages and puts the copy in their place.  fd < 0: private memory. */
static bool pages_replace(uint64_t addr, uint64_t bytes, int fd, uint64_t offset)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *at = (void *)(uintptr_t)addr;
	void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);
	uint64_t signals;
	bool replaced;

	if (copy == MAP_FAILED)
		return false;
	signals_hold(&signals);
	/* Not memcpy: a program under AddressSanitizer has bytes in its pages that it must not
	 * read. */
	replaced = usermem_copy(copy, at, bytes) && pages_put(copy, bytes, at);
	signals_release(&signals);
	if (!replaced)
		munmap(copy, bytes);
	return replaced;
}

static struct share *share_find(uint64_t addr, uint64_t bytes)
{
	for (struct share *s = shares; s; s = s->next)
		if (range_inside(addr - s->addr, bytes, s->bytes) &&
		    mappings_all(s->addr, s->addr + s->bytes, is_shared_page, s))
			return s;
	return NULL;
}

/* KEY_WHY_MOVED: nothing stands against that; or what does. */
static enum key_why look_before_move(const struct expose *e, uint64_t bytes, uint64_t first,
				     uint64_t end)
{
	if (!e->mem || !hidden_ours(expose_arena_file(e)))
		return KEY_WHY_NO_MOVE;
	if (bytes > SHARE_MAX_BYTES)
		return KEY_WHY_LARGE;
	if (moves >= SHARE_MAX_MOVES)
		return KEY_WHY_OFTEN;
	if (!threads_alone())
		return KEY_WHY_THREADS;
	return look_at_pages(first, end);
}

static struct share *share_refuse(uint64_t addr, uint64_t bytes, enum key_why why)
{
	trace(share, refused, addr, bytes, key_why_name(why));
	return NULL;
}

static struct share *move_in(struct process *p, uint64_t addr, uint64_t bytes, enum key_why *why)
{
	struct expose *e = wire_expose(p->hcas[0].wire);
	uint64_t first = addr & ~(uint64_t)(PAGE - 1);
	uint64_t end = align_up(addr + bytes, PAGE);
	struct share *s;
	struct stat st;
	int64_t offset;
	bool moved;
	int arena;

	*why = look_before_move(e, bytes, first, end);
	if (*why != KEY_WHY_MOVED)
		return share_refuse(addr, bytes, *why);
	*why = KEY_WHY_NO_MOVE;
	arena = expose_arena_file(e)->fd;
	offset = fstat(arena, &st) < 0 ? -errno : expose_arena_take(e, end - first);
	s = offset < 0 ? NULL : calloc(1, sizeof(*s));
	if (!s)
		return share_refuse(addr, bytes, *why);
	*s = (struct share){
		.addr = first,
		.bytes = end - first,
		.offset = (uint64_t)offset,
		.inode = st.st_ino,
		.next = shares,
	};
	writers_hold(p);
	moved = pages_replace(first, end - first, arena, s->offset);
	writers_go_on(p);
	if (!moved) {
		free(s);
		return share_refuse(addr, bytes, *why);
	}
	*why = KEY_WHY_MOVED;
	trace(share, moved, addr, bytes);
	moves++;
	shares = s;
	return s;
}

/* ---- files of the program ---- */

static struct share *file_find(struct expose *e, const struct shared_range *r, uint64_t bytes)
{
	for (struct share *s = files; s; s = s->next) {
		struct segment_ref same;

		if (s->id != r->id || s->owner != getpid() ||
		    !segment_table_hold(&e->segments, r->id, r->offset + bytes, &same))
			continue;
		segment_table_drop(&e->segments, same);
		if (same.generation == s->segment.generation)
			return s;
	}
	return NULL;
}

static struct share *file_add(struct expose *e, const struct shared_range *r, uint64_t bytes)
{
	struct share *s;
	uint64_t size;
	struct hidden file;

	if (file_refusals >= SHARE_MAX_REFUSALS)
		return NULL;
	file = shared_file_open(r, &size);
	s = file.fd < 0 || r->offset + bytes > size ? NULL : calloc(1, sizeof(*s));
	if (!s) {
		hidden_close(&file);
		file_refusals++;
		return NULL;
	}
	*s = (struct share){.is_file = true, .id = r->id, .owner = getpid(), .next = files};
	if (segment_table_add(&e->segments, file, size, &s->segment) < 0) {
		free(s);
		file_refusals++;
		return NULL;
	}
	files = s;
	return s;
}

static struct share *file_begin(struct expose *e, const struct shared_range *r, uint64_t bytes)
{
	struct share *s = file_find(e, r, bytes);

	return s ? s : file_add(e, r, bytes);
}

static void file_end(struct share *s)
{
	struct process *p = process_current();

	if (p && p->nhcas && s->owner == getpid())
		segment_table_drop(&wire_expose(p->hcas[0].wire)->segments, s->segment);
	share_forget(&files, s);
}

/* ---- all of them ---- */

static bool share_begin_locked(struct process *p, uint64_t addr, uint64_t bytes,
			       struct shared_at *out)
{
	struct shared_range r = {0};
	struct expose *e = wire_expose(p->hcas[0].wire);
	struct share *s = share_find(addr, bytes);
	bool is_file = !s && e->mem && shared_file_find(addr, bytes, &r);

	/* What was moved for others is in the arena, and leaves it with them. */
	if (is_file && r.id != expose_arena_file(e)->id) {
		s = file_begin(e, &r, bytes);
		*out = (struct shared_at){s ? s->segment : e->arena, r.offset, s,
					  s ? KEY_WHY_SHARED : KEY_WHY_CLOSED};
		if (!s)
			(void)share_refuse(addr, bytes, out->why);
	} else {
		enum key_why why = s ? KEY_WHY_MOVED : KEY_WHY_PRIVATE;

		if (!s && !is_file && e->mem && r.first.perms[3] == 's')
			why = KEY_WHY_CLOSED;
		else if (!s && p->memory == MEMORY_MAPPED)
			s = move_in(p, addr, bytes, &why);
		*out = (struct shared_at){e->arena, s ? s->offset + (addr - s->addr) : 0, s, why};
	}
	if (s)
		s->users++;
	return s;
}

bool share_begin(struct process *p, uint64_t addr, uint64_t bytes, struct shared_at *out)
{
	bool begun;

	*out = (struct shared_at){.why = KEY_WHY_PRIVATE};
	if (!p->nhcas)
		return false;
	pthread_mutex_lock(&lock);
	begun = share_begin_locked(p, addr, bytes, out);
	pthread_mutex_unlock(&lock);
	return begun;
}

/* The program may have unmapped the memory, or put something else there: then it stays as it is. */
static void move_back(const struct share *s)
{
	struct process *p = process_current();
	bool running = p && p->engine;

	if (!mappings_all(s->addr, s->addr + s->bytes, is_shared_page, s))
		return;
	if (running)
		writers_hold(p);
	if (!pages_replace(s->addr, s->bytes, -1, 0))
		log_warn("memory at 0x%lx stays shared: %m", (unsigned long)s->addr);
	if (running)
		writers_go_on(p);
}

static bool arena_range_mapped(const struct share *s)
{
	struct vma_reader list;
	bool mapped = false;
	struct vma v;

	vma_reader_open(&list);
	while (!mapped && vma_reader_next(&list, &v))
		mapped = v.inode == s->inode && v.offset < s->offset + s->bytes &&
			 s->offset < v.offset + (v.end - v.start);
	mapped |= list.fd < 0;
	vma_reader_close(&list);
	return mapped;
}

/*
 * Frees the pages, if the program has them nowhere any more.  This range of the arena is never used
 * again, so a peer that is late writes to a page that nobody reads.
 */
static void arena_give_back(const struct share *s)
{
	struct process *p = process_current();
	const struct hidden *arena =
		p && p->nhcas ? expose_arena_file(wire_expose(p->hcas[0].wire)) : NULL;
	struct stat st;

	/* An older arena goes by itself, and that of the parent of a fork is not ours. */
	if (arena && hidden_ours(arena) && !fstat(arena->fd, &st) && st.st_ino == s->inode &&
	    !arena_range_mapped(s))
		(void)fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)s->offset, (off_t)s->bytes);
}

/*
 * The pages hold more than was registered.  A program that has started threads since may be writing
 * there: then they stay shared without users, until another registration takes them up, and a
 * forked child gets its copy as ever.
 */
void share_end(struct share *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&lock);
	s->users--;
	if (!s->users && s->is_file) {
		file_end(s);
	} else if (!s->users && threads_alone()) {
		move_back(s);
		arena_give_back(s);
		share_forget(&shares, s);
	}
	pthread_mutex_unlock(&lock);
}

/* What lies no longer where it was must not be put there in a child: the program may have unmapped
 * it, registered as it is, and have something else there. */
static void look_at_all(void)
{
	for (struct share *s = shares, *next; s; s = next) {
		next = s->next;
		s->in_place = mappings_all(s->addr, s->addr + s->bytes, is_shared_page, s);
		if (!s->users && !s->in_place) {
			arena_give_back(s);
			share_forget(&shares, s);
		}
	}
}

/* Open between prepare and the end of the child's moves, if there is anything to move. */
static int moving[2] = {-1, -1};

void share_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
	look_at_all();
	if (shares && pipe2(moving, O_CLOEXEC) < 0)
		moving[0] = moving[1] = -1;
}

/* The heap may be among the pages: neither may use it before the child has its own. */
void share_fork_parent(void)
{
	char done;

	if (moving[0] >= 0) {
		close(moving[1]);
		while (read(moving[0], &done, 1) < 0 && errno == EINTR)
			;
		close(moving[0]);
		moving[0] = moving[1] = -1;
	}
	pthread_mutex_unlock(&lock);
}

void share_fork_child(void)
{
	/* The list stays: objects of the parent's device that the child inherited refer to it.
	 * No stdio here: it would use the heap that is still shared. */
	for (const struct share *s = shares; s; s = s->next)
		if (s->in_place && !pages_replace(s->addr, s->bytes, -1, 0))
			log_warn("memory at 0x%lx stays shared: %m", (unsigned long)s->addr);
	if (moving[0] >= 0) {
		close(moving[0]);
		close(moving[1]);
		moving[0] = moving[1] = -1;
	}
	pthread_mutex_unlock(&lock);
}
