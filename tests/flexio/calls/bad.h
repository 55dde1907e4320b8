/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bad input: good arguments for every function of the interface, of which a row spoils one; and what a row is
 * judged by.  The rows are written by bad_input.py from the public headers.
 */
#pragma once

#include <infiniband/mlx5dv.h>
#include <string.h>

#include "host.h"

/* Good values, by the name of their type. */
struct good {
	struct ibv_context *ctx, *other_ctx;
	struct ibv_pd *pd, *other_pd;
	struct flexio_app *app;
	struct flexio_process *process;
	struct flexio_cmdq *cmdq;
	struct flexio_window *window;
	struct flexio_mkey *mkey;
	struct flexio_outbox *outbox;
	struct flexio_uar *uar;
	struct flexio_event_handler *event_handler;
	struct flexio_thread *thread;
	struct flexio_cq *cq;
	struct flexio_msg_stream *msg_stream;
	struct flexio_qp *qp;
	/* Queues for frames are of a device that has an Ethernet port. */
	struct flexio_process *net;
	struct flexio_rq *rq;
	struct flexio_sq *sq;
	struct flexio_rmp *rmp;
	struct flexio_cq *net_cq;
	uint32_t net_cqn;
	uint32_t doorbell; /* of the emulated function: each set has its own */
	struct flexio_emu_db_to_cq_ctx *emu_db_to_cq_ctx;
	flexio_uintptr_t buffer; /* of BUFFER_BYTES */
	struct flexio_process_attr process_attr;
	struct flexio_app_attr app_attr;
	struct flexio_cmdq_attr cmdq_attr;
	struct flexio_event_handler_attr event_handler_attr;
	struct flexio_cq_attr cq_attr;
	struct flexio_mkey_attr mkey_attr;
	struct flexio_outbox_attr outbox_attr;
	flexio_msg_stream_attr_t stream_attr;
	struct flexio_wq_attr wq_attr; /* of all three */
	struct flexio_qp_attr qp_attr;
	struct flexio_qp_attr_opt_param_mask qp_mask;
	/* Of objects that have been destroyed. */
	struct {
		void *app, *process, *cmdq, *window, *mkey, *outbox, *uar, *event_handler, *thread,
			*cq, *emu_db_to_cq_ctx, *msg_stream, *rq, *sq, *rmp, *qp;
	} freed;
	/* Processes that have failed, and that have finished. */
	struct flexio_process *failed, *finished;
	struct flexio_cmdq *failed_cmdq;
};

#define BUFFER_BYTES 4096u
/* The PCI function that mlx5_1 emulates. */
#define EMULATED_VHCA 0x101u

extern struct good good;
extern char bad_name[];	 /* one byte too long */
extern char bad_text[];	 /* no ELF file, of 64 bytes */
void bad_function(void); /* registered nowhere */
void bad_pack(void *argbuf, va_list ap);

/* A row: what is printed to the log between the two must name the function and these words. */
void row_begin(const char *function);
void row_end(const char *function, const char *words, const char *how, bool as_expected);
/* A result that must not be touched. */
#define POISON 0xa5
bool is_poison(const void *result, size_t bytes);

/* The rows. */
void rows_run(void);
