// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/share.h"

#include <pthread.h>

#include "base/trace.h"
#include "driver/runtime/file_share.h"
#include "driver/runtime/process.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void share_note_refusal(uint64_t addr, uint64_t bytes, enum key_why why)
{
	trace(share, refused, addr, bytes, key_why_name(why));
}

static bool share_begin_locked(struct process *p, uint64_t addr, uint64_t bytes,
			       struct shared_at *out)
{
	struct expose *e = wire_expose(p->hcas[0].wire);
	struct shared_range r = {0};
	struct share *s;

	if (!e->mem || !shared_file_find(addr, bytes, &r)) {
		if (r.first.perms[3] == 's')
			out->why = KEY_WHY_CLOSED;
		return false;
	}
	s = file_share_begin(e, &r, bytes);
	if (!s) {
		out->why = KEY_WHY_CLOSED;
		share_note_refusal(addr, bytes, out->why);
		return false;
	}
	s->users++;
	*out = (struct shared_at){file_share_segment(s), r.offset, s, KEY_WHY_SHARED};
	return true;
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
	if (!--s->users)
		file_share_end(s);
	pthread_mutex_unlock(&lock);
}

/* ---- fork ---- */

void share_fork_lock(void)
{
	pthread_mutex_lock(&lock);
}

void share_fork_unlock(void)
{
	pthread_mutex_unlock(&lock);
}
