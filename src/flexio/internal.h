/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of libflexio: what its files share.  The library keeps books (applications, functions,
 * which object belongs to which process), checks arguments, and sends commands to the device by
 * public calls of libmlx5; what a command looks like is in devx.c alone.
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
	FLX_EMULATED_DB,
	FLX_RQ,
	FLX_SQ,
	FLX_RMP,
	FLX_QP,
	FLX_KINDS,
};

/*
 * At the start of each object.  A list of all that are there tells a pointer to one from any other:
 * a program may pass what it has destroyed.
 */
struct flx_object {
	enum flx_kind kind;
	struct flexio_process *process; /* NULL: of none */
	struct flx_object *next, *prev;
	uint32_t
		users; /* functions that have it; those that have an object have its process, too */
	uint32_t calls; /* of a process: those that may last as long as device code does */
	bool leaving;	/* a process: nothing of it is found any more */
	/* Frees what is left of it when its process goes: it is in no list any more; may be
	 * missing. */
	void (*destroy)(struct flx_object *object);
};

void flx_object_add(struct flx_object *object, enum flx_kind kind, struct flexio_process *process);
/* Out of the list, and waits for those who have it. */
void flx_object_remove(struct flx_object *object);

/*
 * What a function of the interface has while it runs.  Another thread may destroy it meanwhile:
 * that thread waits until nobody has it.
 */
#define FLX_HOLDS 4u
struct flx_hold {
	struct flx_object *object[FLX_HOLDS];
	uint32_t n;
	bool calls; /* the first is counted as a call */
};

void flx_hold_end(struct flx_hold *hold);
/* In the function's first line; what it checks it has up to its end. */
#define FLX_HOLD(name) struct flx_hold name __attribute__((cleanup(flx_hold_end))) = {0}

/*
 * Is this a pointer to an object of that kind?  If so the function has it from now on; if not, logs
 * that the function has got something else for that argument.
 */
bool flx_check(struct flx_hold *hold, const void *object, enum flx_kind kind, const char *function,
	       const char *argument);
/* The same for who destroys it: nobody else has it, or finds it.  It may be added again. */
bool flx_claim(struct flx_hold *hold, void *object, enum flx_kind kind, const char *function,
	       const char *argument);
/* For an object that was found in the list, whose lock is held. */
void flx_hold_add(struct flx_hold *hold, struct flx_object *object);
/* The process, which is the first that it has, may go from under what the function waits for
 * now. */
void flx_hold_call(struct flx_hold *hold);
/* Waits until no call is under way in it; the device has ended them. */
void flx_calls_await(struct flexio_process *process);
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
	/* under flx_objects_lock */
	struct flx_function *functions;
	uint32_t references; /* of the program, and of each process */
	bool destroyed;	     /* by the program: its functions are not found any more */
};

/* Takes another reference to one that the caller has, or gives one back. */
void flx_app_hold(struct flexio_app *app);
void flx_app_put(struct flexio_app *app);

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
	bool en_pcc;
	pthread_mutex_t lock; /* of what follows */
	struct flx_address *addresses;
	struct mlx5dv_devx_event_channel *errors;
	struct flexio_uar *uar;
	struct flexio_outbox *outbox;
};

/* The function behind a stub, and where it is in the process; false: not registered, or not there;
 * logs. */
bool flx_function_find(struct flexio_process *process, flexio_func_t *stub, const char *caller,
		       const char *argument, struct flx_address *out);

/* ---- the device; each logs what it was refused ---- */

/* FLEXIO_STATUS_FAILED: the device has no DPA. */
flexio_status flx_devx_has_dpa(struct ibv_context *ctx, const char *function);
struct mlx5dv_devx_obj *flx_devx_process(struct ibv_context *ctx, const void *elf, size_t bytes,
					 bool en_pcc, uint32_t *number);
/* A general object of that type with a body of so many bytes behind the header. */
struct mlx5dv_devx_obj *flx_devx_create(struct ibv_context *ctx, void *in, size_t in_bytes,
					uint32_t *number);

/*
 * For a context that is not the process's: stands there for the process, or for a thread of it (its
 * number; 0: none), so that objects there may name it.  NULL with errno: the device cannot reach
 * the process.
 */
struct flx_alias;

struct flx_alias *flx_alias_get(struct ibv_context *ctx, const struct flexio_process *process,
				uint32_t thread);
/* When the object that names it has gone; NULL is allowed. */
void flx_alias_put(struct flx_alias *alias);

/* The number of a domain, for commands.  False: it is none; logs. */
bool flx_pd_number(struct ibv_pd *pd, const char *function, const char *argument, uint32_t *pdn);

/* An operation on a process.  in and out have at least the fixed parts; 0 or an errno, not
 * logged. */
int flx_devx_op(const struct flexio_process *process, enum dpa_op op, void *in, size_t in_bytes,
		void *out, size_t out_bytes);
/* FATAL_ERR if the process has failed, else FAILED; logs. */
flexio_status flx_refused(const struct flexio_process *process, const char *function, int err);
