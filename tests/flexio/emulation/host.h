/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the host program of tests/flexio/emulation share. */
#pragma once

#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>
#include <stdbool.h>
#include <stddef.h>

#include "check.h"
#include "emulation.h"
#include "prm/cmd_cq_eq.h"
#include "prm/cmd_emulation.h"
#include "prm/cmd.h"
#include "prm/hca_cap.h"

extern struct flexio_app *emulation_app;
extern flexio_func_t peek, poke, arm_context, trigger_context, doorbell_value, interrupt, serve;

#define OK(call)    CHECK((call) == FLEXIO_STATUS_SUCCESS)
#define FAILS(call) CHECK((call) == FLEXIO_STATUS_FAILED)
#define VHCA	    0x101u
#define UIO	    "/dev/uio1"
#define DOORBELLS   2u
#define BAR_BYTES   4096u

/* ---- host.c: the device behind the function ---- */

struct ibv_context *device_open(const char *name);
uint64_t call(struct flexio_process *p, flexio_func_t *f, uint64_t a, uint64_t b);

/* A general object; NULL with errno.  What the mailbox says of a failure is left in status. */
struct mlx5dv_devx_obj *object_create(struct ibv_context *ctx, uint32_t type, uint8_t *in,
				      size_t bytes, uint32_t *number);
extern uint32_t object_status;
void object_query(struct mlx5dv_devx_obj *obj, uint32_t type, uint32_t number, uint8_t *out,
		  size_t bytes);
struct mlx5dv_devx_obj *context_create(struct ibv_context *ctx, uint32_t device, uint32_t queue,
				       uint32_t cqn, uint32_t *handle);
struct mlx5dv_devx_obj *eq_create(struct ibv_context *ctx, uint32_t device, uint32_t vector,
				  uint32_t *eqn);

/* A doorbell of the function with a handler of its own. */
struct doorbell {
	struct flexio_event_handler *eh;
	struct flexio_cq *cq;
	struct mlx5dv_devx_obj *context; /* or, by the library: */
	struct flexio_emu_db_to_cq_ctx *mapped;
	uint32_t cqn, handle;
	uint64_t at; /* address of its struct bell */
};

struct bench {
	struct ibv_context *ctx;
	struct flexio_process *p;
	struct mlx5dv_devx_obj *function, *eq;
	struct flexio_cq *answers;
	uint32_t eqn;
	struct doorbell bell[DOORBELLS];
};

/* rearms: handlers arm their contexts again; answers: they send an interrupt for each doorbell. */
void bench_up(struct bench *b, bool rearms, bool answers);
void bench_down(struct bench *b);
void cq_make(struct bench *b, struct flexio_cq_attr *attr, struct bell *bell,
	     struct flexio_cq **cq);

#define bell_get(b, n, field) call((b)->p, &peek, (b)->bell[n].at + offsetof(struct bell, field), 0)
/* Waits until it has taken so many; then it must not be more, as far as a moment tells. */
void bell_takes(struct bench *b, unsigned n, uint64_t taken);
void bell_arm(struct bench *b, unsigned n);

/* ---- host_driver.c: a driver of the function ---- */

struct driver {
	int fd;
	volatile uint32_t *bar;
};

void driver_open(struct driver *d, int flags);
void driver_close(struct driver *d);
void driver_ring(struct driver *d, unsigned queue, uint32_t value);
/* Waits for more interrupts than those; how many there are. */
uint32_t driver_wait(struct driver *d, uint32_t seen);

struct emulation_case {
	const char *name;
	void (*run)(void);
};
extern const struct emulation_case device_cases[], driver_cases[];
