// SPDX-License-Identifier: BSD-2-Clause
/*
 * An object of another context that stands there for a process, or for a thread of it.  The device
 * finds it by number alone, so all objects of a context share one, and it goes with the last of
 * them.
 */
#include <errno.h>
#include <stdlib.h>

#include "flexio/internal.h"
#include "prm/cmd.h"

struct flx_alias {
	struct flx_alias *next;
	struct ibv_context *ctx;
	const struct flexio_process *process;
	uint32_t thread, users;
	struct mlx5dv_devx_obj *devx;
};

/* Held while the device makes and destroys aliases, so that nobody finds one that goes. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct flx_alias *aliases;

static struct flx_alias *alias_find(struct ibv_context *ctx, const struct flexio_process *process,
				    uint32_t thread)
{
	struct flx_alias *a = aliases;

	while (a && (a->ctx != ctx || a->process != process || a->thread != thread))
		a = a->next;
	return a;
}

static struct flx_alias *alias_make(struct ibv_context *ctx, const struct flexio_process *process,
				    uint32_t thread)
{
	uint8_t in[DPA_ALIAS_IN_BYTES] = {0};
	struct flx_alias *a = calloc(1, sizeof(*a));
	uint32_t number;
	int err;

	if (!a)
		return NULL;
	*a = (struct flx_alias){.ctx = ctx, .process = process, .thread = thread, .next = aliases};
	prm_set(in, GENERAL_IN_TYPE, GENERAL_DPA_ALIAS);
	prm_set(in, DPA_ALIAS_NUMBER, thread ? thread : process->number);
	prm_set(in, DPA_ALIAS_THREAD, thread != 0);
	a->devx = flx_devx_create(ctx, in, sizeof(in), &number);
	if (!a->devx) {
		err = errno;
		free(a);
		errno = err;
		return NULL;
	}
	aliases = a;
	return a;
}

struct flx_alias *flx_alias_get(struct ibv_context *ctx, const struct flexio_process *process,
				uint32_t thread)
{
	struct flx_alias *a;

	pthread_mutex_lock(&lock);
	a = alias_find(ctx, process, thread);
	if (!a)
		a = alias_make(ctx, process, thread);
	if (a)
		a->users++;
	pthread_mutex_unlock(&lock);
	return a;
}

void flx_alias_put(struct flx_alias *alias)
{
	struct flx_alias **at = &aliases;

	if (!alias)
		return;
	pthread_mutex_lock(&lock);
	if (!--alias->users) {
		while (*at != alias)
			at = &(*at)->next;
		*at = alias->next;
		/* This fails if something that the program itself made still names it. */
		(void)mlx5dv_devx_obj_destroy(alias->devx);
		free(alias);
	}
	pthread_mutex_unlock(&lock);
}
