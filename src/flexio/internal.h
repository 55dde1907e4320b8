/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of libflexio: what its files share.  The library keeps books (applications, functions,
 * which object belongs to which process), checks arguments, and sends commands to the device by
 * public calls of libmlx5; devx.c alone knows what a command looks like.
 */
#pragma once

#include <libflexio/flexio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "base/compiler.h"
#include "prm/cmd_dpa.h"

/* ---- log ---- */

void flx_log(enum flexio_log_lvl level, const char *fmt, ...) printf_like(2, 3);
/* Logs "function: ..." as an error, and returns FLEXIO_STATUS_FAILED. */
flexio_status flx_fail(const char *function, const char *fmt, ...) printf_like(2, 3);

/* ---- objects ---- */

/* Kinds of objects that a program holds pointers to; 0 is none. */
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
 * Each object begins with this.  A list of all objects tells a pointer to one from any other,
 * because a program may pass an object that it has destroyed.
 */
struct flx_object {
	enum flx_kind kind;
	struct flexio_process *process; /* NULL: it belongs to none */
	struct flx_object *next, *prev;
	void *self; /* its key in the table of addresses */
	UT_hash_handle hh;
	uint32_t
		users; /* functions that have it; those that have an object have its process, too */
	uint32_t calls; /* of a process: calls that may last as long as device code does */
	bool leaving;	/* of a process: nobody finds its objects any more */
	/* Frees the rest of the object when its process goes; the object is in no list any more.
	 * May be missing. */
	void (*destroy)(struct flx_object *object);
};

void flx_object_add(struct flx_object *object, enum flx_kind kind, struct flexio_process *process);
/* Takes the object off the list, and waits for those who hold it. */
void flx_object_remove(struct flx_object *object);

/*
 * The objects that a function of the interface holds while it runs.  Another thread may destroy one
 * meanwhile: that thread waits until nobody holds it.
 */
#define FLX_HOLDS 4u
struct flx_hold {
	struct flx_object *object[FLX_HOLDS];
	uint32_t n;
	bool calls; /* the first object's hold counts as a call */
};

void flx_hold_end(struct flx_hold *hold);
/* The first line of a function; the function holds what it checks up to its end. */
#define FLX_HOLD(name) struct flx_hold name __attribute__((cleanup(flx_hold_end))) = {0}

/*
 * Tells whether this is a pointer to an object of that kind.  If so, the function holds it from now
 * on; if not, it logs that the function got something else for that argument.
 */
bool flx_check(struct flx_hold *hold, const void *object, enum flx_kind kind, const char *function,
	       const char *argument);
/*
 * The same for a function that destroys the object: nobody else holds it, or finds it.  It may be
 * added again.
 */
bool flx_claim(struct flx_hold *hold, void *object, enum flx_kind kind, const char *function,
	       const char *argument);
/* Holds an object that was found in the list, whose lock is held. */
void flx_hold_add(struct flx_hold *hold, struct flx_object *object);
/* The function is about to wait for device code: the process, which is the first object that it
 * holds, may go meanwhile. */
void flx_hold_call(struct flx_hold *hold);
/* Tells whether another thread destroys the process. */
bool flx_leaving(const struct flexio_process *process);
/* Waits until no call is under way in the process; the device has ended them. */
void flx_calls_await(struct flexio_process *process);
/* Checks an argument that must not be NULL. */
bool flx_given(const void *pointer, const char *function, const char *argument);
/* Destroys all objects of the process, the youngest first. */
void flx_objects_drop(struct flexio_process *process);
/*
 * Returns the youngest object of that kind, or the next older one than 'before' if that is not
 * NULL; the lock below is held.
 */
struct flx_object *flx_object_next(enum flx_kind kind, const struct flx_object *before);
void flx_objects_lock(void);
void flx_objects_unlock(void);

/* ---- applications and their functions ---- */

struct flx_function {
	struct flx_function *next;
	flexio_func_t *stub;
	char *name, *unpack_name;
	size_t argbuf_bytes;
	flexio_func_arg_pack_fn_t *pack; /* NULL: the function was registered without */
};

struct flexio_app {
	struct flx_object object;
	char *name;
	void *elf;
	size_t elf_bytes;
	/* under flx_objects_lock */
	struct flx_function *functions;
	uint32_t references; /* of the program, and of each process */
	bool destroyed;	     /* the program has destroyed it: nobody finds its functions */
};

/* Takes another reference to an application that the caller holds, or gives one back. */
void flx_app_hold(struct flexio_app *app);
void flx_app_put(struct flexio_app *app);

/* The addresses of a function in a process, which are looked up once. */
struct flx_address {
	struct flx_address *next;
	const struct flx_function *function;
	uint64_t addr, unpack;
};

/* ---- processes ---- */

struct flexio_process {
	struct flx_object object;
	pid_t pid; /* who made it: a forked child has the memory, and none of the device's objects */
	struct ibv_context *ctx;
	struct flexio_app *app;
	struct ibv_pd *pd, *own_pd;
	struct mlx5dv_devx_obj *devx;
	uint32_t number;
	bool en_pcc;
	_Atomic(bool) told;   /* the log has the fault that ended it */
	pthread_mutex_t lock; /* guards the fields below */
	struct flx_address *addresses;
	struct mlx5dv_devx_event_channel *errors;
	struct flexio_uar *uar;
	struct flexio_outbox *outbox;
};

/* Finds the function behind a stub, and where it is in the process; false: it is not registered, or
 * not there; logs. */
bool flx_function_find(struct flexio_process *process, flexio_func_t *stub, const char *caller,
		       const char *argument, struct flx_address *out);

/* ---- the device; each function logs what the device refused ---- */

/* Checks that the device has a DPA; FLEXIO_STATUS_FAILED: it has none. */
flexio_status flx_devx_has_dpa(struct ibv_context *ctx, const char *function);
struct mlx5dv_devx_obj *flx_devx_process(struct ibv_context *ctx, const void *elf, size_t bytes,
					 bool en_pcc, uint32_t *number);
/* Makes a general object of that type with a body of that many bytes behind the header. */
struct mlx5dv_devx_obj *flx_devx_create(struct ibv_context *ctx, void *in, size_t in_bytes,
					uint32_t *number);

/*
 * For a context other than the process's: stands there for the process, or for a thread of it (by
 * its number, 0: none), so that objects there may name it.  NULL with errno: the device cannot
 * reach the process.
 */
struct flx_alias;

struct flx_alias *flx_alias_get(struct ibv_context *ctx, const struct flexio_process *process,
				uint32_t thread);
/* Called when the object that names the alias has gone; alias may be NULL. */
void flx_alias_put(struct flx_alias *alias);

/* Gives the number of a domain, for commands.  False: pd is no domain; logs. */
bool flx_pd_number(struct ibv_pd *pd, const char *function, const char *argument, uint32_t *pdn);

/* Says where a piece of memory lies, for a log line. */
struct flx_qmem_text {
	char bytes[48];
};

struct flx_qmem_text flx_qmem_text(const struct flexio_qmem *qmem);

/*
 * Logs a piece of the heap that is not all in one buffer of flexio_buf_dev_alloc; what: what lies
 * there, and who uses it.  That is no failure, because a card does not know the buffers either.
 */
struct flx_piece {
	const char *what, *user;
	uint32_t number; /* of the object that uses it */
	uint64_t daddr, bytes;
};

void flx_piece_check(struct flexio_process *process, const char *function, const char *argument,
		     const struct flx_piece *piece);
/* The same for the ring of a queue, if it lies in the heap. */
void flx_ring_check(struct flexio_process *process, const char *function, const char *argument,
		    const struct flexio_qmem *ring, uint32_t number, uint64_t bytes);

/*
 * Logs what a queue is made with and a card would not take as this device does: a ring that is no
 * multiple of 64 (the unit of page_offset), a doorbell record that is no multiple of 8.
 */
void flx_place_check(const char *function, const char *argument, const struct flexio_qmem *qmem,
		     uint32_t number, uint32_t unit);
#define FLX_RING_UNIT	64u
#define FLX_RECORD_UNIT 8u

/* Logs a UAR of another process. */
void flx_uar_check(const struct flexio_process *process, const char *function, const char *argument,
		   uint32_t uar, uint32_t number);

/* Logs, once for a process that has failed, what its fault was and where. */
void flx_crash_log(struct flexio_process *process, const char *function);
/* Logs that a call was stopped because it took too long, and where; number: DPA_OUT_LATE. */
void flx_late_log(const struct flexio_process *process, const char *function, uint32_t number);

/* Does an operation on a process.  in and out have at least the fixed parts; returns 0 or an errno,
 * and does not log. */
int flx_devx_op(const struct flexio_process *process, enum dpa_op op, void *in, size_t in_bytes,
		void *out, size_t out_bytes);
/* Returns the errno of a command that libmlx5 could not send, or of the status in its output: libmlx5
 * reports every refusal of the device as EREMOTEIO. */
int flx_devx_errno(int err, const void *out);
/* Returns FATAL_ERR if the process has failed, else FAILED; logs. */
flexio_status flx_refused(const struct flexio_process *process, const char *function, int err);
/* The same where a thread of the process was to be made. */
flexio_status flx_thread_refused(const struct flexio_process *process, const char *function,
				 int err);

/* ---- queues ---- */

/* What queues, and the objects that use them, know of each other. */

/* Numbers of objects, indexes of users and sequence numbers have 24 bits. */
#define FLX_NUMBER_MAX 0xffffffu

struct flexio_uar {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	uint32_t number;
	bool extended;
};

struct flexio_outbox {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	uint32_t number;
};

struct flexio_cq {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	const struct flexio_thread *thread; /* thread that it activates; NULL: none */
	/* Of process and thread, if the CQ's context is not theirs. */
	struct flx_alias *alias[2];
	uint32_t number;
};

/* The part of an event handler that CQs name. */
struct flexio_thread {
	struct flx_object object;
	uint32_t number;
};

/* Tells whether a CQ activates this thread.  The device knows this only for CQs of the process's
 * own context. */
bool flx_cq_names(const struct flexio_thread *thread);
/* Tells whether this is the number of one of the program's UARs, which have no pages. */
bool flx_uar_numbers(uint32_t number);
/* Both return NULL with errno on failure. */
struct flexio_uar *flx_uar_make(struct flexio_process *process, struct ibv_context *ctx);
/* Makes an outbox on the UAR of the process.  initial: threads begin with it. */
struct flexio_outbox *flx_outbox_make(struct flexio_process *process, bool initial, bool en_pcc);
