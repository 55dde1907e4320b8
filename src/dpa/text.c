// SPDX-License-Identifier: BSD-2-Clause
/*
 * Text that device code prints, on its way to whoever reads it: whole messages in the order in which they come.
 * A message waits until there is room for it.
 */
#include <string.h>

#include "dpa/process.h"
#include "usermem/usermem.h"

void dpa_message(struct dpa_thread *t, uint32_t stream, uint32_t level, const char *text,
		 uint32_t bytes)
{
	struct dpa_text *x = &t->process->text;
	char copy[DPA_MESSAGE_BYTES];

	(void)stream;
	(void)level;
	/* The text is the program's, and so may the address be. */
	if (!atomic_load(&x->open) || bytes > sizeof(copy) || !usermem_copy(copy, text, bytes))
		return;
	while (!atomic_load(&t->stop) && atomic_load(&x->open)) {
		uint32_t taken;

		spin_lock(&x->lock);
		taken = atomic_load(&x->taken);
		if (x->used + bytes <= sizeof(x->bytes)) {
			memcpy(x->bytes + x->used, copy, bytes);
			x->used += bytes;
			spin_unlock(&x->lock);
			atomic_fetch_add(&x->given, 1);
			dpa_futex_wake(&x->given);
			return;
		}
		spin_unlock(&x->lock);
		dpa_futex_wait(&x->taken, taken, UINT64_MAX);
	}
}

uint32_t dpa_text_read(struct dpa_process *p, char *out, uint32_t room)
{
	struct dpa_text *x = &p->text;
	uint32_t given, n;

	atomic_store(&x->open, !atomic_load(&x->stopped));
	for (;;) {
		given = atomic_load(&x->given);
		spin_lock(&x->lock);
		n = min_u32(room, x->used);
		memcpy(out, x->bytes, n);
		x->used -= n;
		memmove(x->bytes, x->bytes + n, x->used);
		spin_unlock(&x->lock);
		if (n) {
			atomic_fetch_add(&x->taken, 1);
			dpa_futex_wake(&x->taken);
			return n;
		}
		if (!atomic_load(&x->open))
			return 0;
		dpa_futex_wait(&x->given, given, UINT64_MAX);
	}
}

void dpa_text_stop(struct dpa_process *p)
{
	struct dpa_text *x = &p->text;

	atomic_store(&x->stopped, true);
	atomic_store(&x->open, false);
	atomic_fetch_add(&x->given, 1);
	dpa_futex_wake(&x->given);
	atomic_fetch_add(&x->taken, 1);
	dpa_futex_wake(&x->taken);
}
