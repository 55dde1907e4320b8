// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/share.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/trace.h"
#include "driver/runtime/file_share.h"
#include "driver/runtime/moved.h"
#include "driver/runtime/process.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void share_note_refusal(uint64_t addr, uint64_t bytes, enum key_why why)
{
	trace(share, refused, addr, bytes, key_why_name(why));
}

static struct share *share_move(struct process *p, uint64_t addr, uint64_t bytes, enum key_why *why)
{
	struct share *s = moved_begin(p, addr, bytes, why);

	if (!s)
		share_note_refusal(addr, bytes, *why);
	return s;
}

static bool share_begin_locked(struct process *p, uint64_t addr, uint64_t bytes,
			       struct shared_at *out)
{
	struct shared_range r = {0};
	struct expose *e = wire_expose(p->hcas[0].wire);
	struct share *s = moved_find(addr, bytes);
	bool is_file = !s && e->mem && shared_file_find(addr, bytes, &r);

	/* A file that is the arena itself holds memory that was moved for other registrations, and
	 * leaves it with them. */
	if (is_file && r.id != expose_arena_file(e)->id) {
		s = file_share_begin(e, &r, bytes);
		*out = (struct shared_at){s ? file_share_segment(s) : e->arena, r.offset, s,
					  s ? KEY_WHY_SHARED : KEY_WHY_CLOSED};
		if (!s)
			share_note_refusal(addr, bytes, out->why);
	} else {
		enum key_why why = s ? KEY_WHY_MOVED : KEY_WHY_PRIVATE;

		if (!s && !is_file && e->mem && r.first.perms[3] == 's')
			why = KEY_WHY_CLOSED;
		else if (!s && p->memory == MEMORY_MAPPED)
			s = share_move(p, addr, bytes, &why);
		*out = (struct shared_at){e->arena, s ? moved_offset(s, addr) : 0, s, why};
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

void share_end(struct share *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&lock);
	if (!--s->users) {
		if (s->is_file)
			file_share_end(s);
		else
			moved_end(s);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- fork ---- */

/* A pipe that is open between prepare and the end of the child's moves, if there is anything to
 * move. */
static int moving[2] = {-1, -1};

void share_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
	if (moved_fork_prepare() && pipe2(moving, O_CLOEXEC) < 0)
		moving[0] = moving[1] = -1;
}

/* The heap may be among the pages, so neither process may use it before the child has its own.  The
 * parent waits here. */
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
	/* The records stay, because objects of the parent's device that the child inherited refer
	 * to them. */
	moved_fork_child();
	if (moving[0] >= 0) {
		close(moving[0]);
		close(moving[1]);
		moving[0] = moving[1] = -1;
	}
	pthread_mutex_unlock(&lock);
}
