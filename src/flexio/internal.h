/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of libflexio: what its files share.  The library keeps books (applications, functions, which object
 * belongs to which process), checks arguments, and sends commands to the device by public calls of libmlx5; what
 * a command looks like is in devx.c alone.
 */
#pragma once

#include <libflexio/flexio.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "prm/cmd_dpa.h"

/* ---- log ---- */

void flx_log(enum flexio_log_lvl level, const char *fmt, ...) printf_like(2, 3);
/* Logs "function: ..." as an error; FLEXIO_STATUS_FAILED. */
flexio_status flx_fail(const char *function, const char *fmt, ...) printf_like(2, 3);

/* ---- objects ---- */

/* What a program holds pointers to; 0 is none. */
enum flx_kind {
	FLX_APP = 1,
	FLX_PROCESS,
	FLX_STREAM,
	FLX_CMDQ,
	FLX_WINDOW,
	FLX_OUTBOX,
	FLX_UAR,
	FLX_EVENT_HANDLER,
	FLX_THREAD,
	FLX_MKEY,
	FLX_CQ,
	FLX_KINDS,
};

/*
 * At the start of each object.  A list of all that are there tells a pointer to one from any other: a program
 * may pass what it has destroyed.
 */
struct flx_object {
	enum flx_kind kind;
	struct flexio_process *process; /* NULL: of none */
	struct flx_object *next, *prev;
	/* What is left of it when its process goes; may be missing. */
	void (*destroy)(struct flx_object *object);
};

void flx_object_add(struct flx_object *object, enum flx_kind kind, struct flexio_process *process);
void flx_object_remove(struct flx_object *object);
/*
 * Is this a pointer to an object of that kind?  If not, logs that the function has got something else for that
 * argument.
 */
bool flx_check(const void *object, enum flx_kind kind, const char *function, const char *argument);
/* The same without a word. */
bool flx_is(const void *object, enum flx_kind kind);
/* An argument that must not be NULL. */
bool flx_given(const void *pointer, const char *function, const char *argument);
/* Destroys all objects of the process, the youngest first. */
void flx_objects_drop(struct flexio_process *process);
/* The youngest object of that kind, before 'before' if that is not NULL; the lock below is held. */
struct flx_object *flx_object_next(enum flx_kind kind, const struct flx_object *before);
void flx_objects_lock(void);
void flx_objects_unlock(void);

/* ---- applications and their functions ---- */

struct flx_function {
	struct flx_function *next;
	flexio_func_t *stub;
	char *name, *unpack_name;
	size_t argbuf_bytes;
	flexio_func_arg_pack_fn_t *pack; /* NULL: registered without */
};

struct flexio_app {
	struct flx_object object;
	char *name;
	void *elf;
	size_t elf_bytes;
	struct flx_function *functions; /* under flx_objects_lock */
};

/* The addresses of a function in a process, as looked up once. */
struct flx_address {
	struct flx_address *next;
	const struct flx_function *function;
	uint64_t addr, unpack;
};

/* ---- processes ---- */

struct flexio_process {
	struct flx_object object;
	struct ibv_context *ctx;
	struct flexio_app *app;
	struct ibv_pd *pd, *own_pd;
	struct mlx5dv_devx_obj *devx;
	uint32_t number;
	pthread_mutex_t lock; /* of what follows */
	struct flx_address *addresses;
	struct mlx5dv_devx_event_channel *errors;
	struct flexio_uar *uar;
	struct flexio_outbox *outbox;
};

/* The function behind a stub, and where it is in the process; false: not registered, or not there; logs. */
bool flx_function_find(struct flexio_process *process, flexio_func_t *stub, const char *caller,
		       struct flx_address *out);

/* ---- the device; each logs what it was refused ---- */

/* FLEXIO_STATUS_FAILED: the device has no DPA. */
flexio_status flx_devx_has_dpa(struct ibv_context *ctx, const char *function);
struct mlx5dv_devx_obj *flx_devx_process(struct ibv_context *ctx, const void *elf, size_t bytes,
					 uint32_t *number);
/* A general object of that type with a body of so many bytes behind the header. */
struct mlx5dv_devx_obj *flx_devx_create(struct ibv_context *ctx, void *in, size_t in_bytes,
					uint32_t *number);

/* For a context that is not the process's: stands there for the process, or for a thread of it (its number; 0: none). */
struct mlx5dv_devx_obj *flx_devx_alias(struct ibv_context *ctx,
				       const struct flexio_process *process, uint32_t thread);

/* An operation on a process.  in and out have at least the fixed parts; 0 or an errno, not logged. */
int flx_devx_op(const struct flexio_process *process, enum dpa_op op, void *in, size_t in_bytes,
		void *out, size_t out_bytes);
/* FATAL_ERR if the process has failed, else FAILED; logs. */
flexio_status flx_refused(const struct flexio_process *process, const char *function, int err);
