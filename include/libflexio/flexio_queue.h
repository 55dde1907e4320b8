/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues, doorbells that lead to them, receive and send queues, receive memory pools,
 * queue pairs.  Included by flexio.h, which says what holds for every function.
 *
 * The program allocates the rings and doorbell records, usually on the heap of the process, and
 * keeps them until the queue is destroyed.  Device code fills and empties them
 * (libflexio-dev/flexio_dev_queue_access.h).  A function that makes a queue takes a device, which
 * may be another one than that of the process, or NULL for that of the process.
 */
#ifndef _FLEXIO_QUEUE_H_
#define _FLEXIO_QUEUE_H_

#ifndef _FLEXIO_SDK_H_
#error "include <libflexio/flexio.h>"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * flexio_cq_create() - make a completion queue.
 * @process: the process
 * @ibv_ctx: the context that owns the CQ, or NULL for that of the process.  A CQ of another context
 *	needs a UAR of flexio_uar_extend(); its ring, record and thread still belong to the process
 * @fattr: attributes
 * @cq: receives the CQ
 */
flexio_status flexio_cq_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
			       const struct flexio_cq_attr *fattr, struct flexio_cq **cq);

/**
 * flexio_cq_destroy() - destroy a completion queue.
 * @cq: the CQ; no queue may complete on it
 */
flexio_status flexio_cq_destroy(struct flexio_cq *cq);

/**
 * flexio_cq_get_cq_num() - the number of a completion queue, 24 bits.
 * @cq: the CQ
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_cq_get_cq_num(struct flexio_cq *cq);

/**
 * flexio_cq_modify_moderation() - set when completions make an event.
 * @cq: the CQ
 * @max_count: after so many completions
 * @period: or after so many microseconds, at most 4095
 * @mode: from when on the period counts, enum flexio_cq_period_mode
 */
flexio_status flexio_cq_modify_moderation(struct flexio_cq *cq, uint16_t max_count, uint16_t period,
					  uint16_t mode);

/**
 * flexio_cq_query_moderation() - read what flexio_cq_modify_moderation() or the creation set.
 * @cq: the CQ
 * @max_count: receives the number of completions
 * @period: receives the microseconds
 * @mode: receives the mode
 */
flexio_status flexio_cq_query_moderation(struct flexio_cq *cq, uint16_t *max_count,
					 uint16_t *period, uint16_t *mode);

/**
 * flexio_emu_db_to_cq_map() - let a doorbell of an emulated PCI function lead to a completion
 * queue.
 * @ibv_ctx: a context of the device that the function belongs to, the CQ's
 * @vhca_id: the number of the function
 * @queue_id: the queue whose doorbell it is, from 0
 * @cq: the CQ, usually one that activates a handler; it stays as long as the doorbell leads to it
 * @db_to_cq_ctx: receives the context of the doorbell, which is not armed
 *
 * The manual names flexio_emu_db_to_cq_ctx_get_id() alone.  This function and the next have the
 * shape in which public programs call them.
 */
flexio_status flexio_emu_db_to_cq_map(struct ibv_context *ibv_ctx, uint32_t vhca_id,
				      uint32_t queue_id, struct flexio_cq *cq,
				      struct flexio_emu_db_to_cq_ctx **db_to_cq_ctx);

/**
 * flexio_emu_db_to_cq_unmap() - let a doorbell lead nowhere again.
 * @db_to_cq_ctx: its context
 */
flexio_status flexio_emu_db_to_cq_unmap(struct flexio_emu_db_to_cq_ctx *db_to_cq_ctx);

/**
 * flexio_emu_db_to_cq_ctx_get_id() - the number for flexio_dev_db_ctx_arm() and
 * flexio_dev_db_ctx_force_trigger().
 * @db_to_cq_ctx: the context of a doorbell
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_emu_db_to_cq_ctx_get_id(struct flexio_emu_db_to_cq_ctx *db_to_cq_ctx);

/**
 * flexio_rq_create() - make a receive queue and the TIR that leads to it.
 * @process: the process
 * @ibv_ctx: the device, or NULL
 * @cq_num: number of its CQ
 * @fattr: attributes
 * @flexio_rq_ptr: receives the queue
 */
flexio_status flexio_rq_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
			       uint32_t cq_num, const struct flexio_wq_attr *fattr,
			       struct flexio_rq **flexio_rq_ptr);

/**
 * flexio_rq_destroy() - destroy a receive queue.
 * @flexio_rq: the queue; no steering rule may lead to its TIR, and no table of receive queues may
 *	list it.  If only a table lists it, the call fails but has already destroyed the TIR
 */
flexio_status flexio_rq_destroy(struct flexio_rq *flexio_rq);

/**
 * flexio_rq_get_tir() - the TIR of a receive queue, as a destination of steering rules.
 * @rq: the queue, to which the TIR belongs
 *
 * Returns NULL on error.
 */
struct mlx5dv_devx_obj *flexio_rq_get_tir(struct flexio_rq *rq);

/**
 * flexio_rq_get_wq_num() - the number of a receive queue, 24 bits.
 * @rq: the queue
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_rq_get_wq_num(struct flexio_rq *rq);

/**
 * flexio_rq_set_err_state() - move a receive queue to its error state, in which it receives
 * nothing.
 * @rq: the queue
 */
flexio_status flexio_rq_set_err_state(struct flexio_rq *rq);

/**
 * flexio_sq_create() - make a send queue for raw Ethernet packets.
 * @process: the process
 * @ibv_ctx: the device, or NULL
 * @cq_num: number of its CQ, one of flexio_cq_create() or one of the host
 * @fattr: attributes
 * @flexio_sq_ptr: receives the queue
 */
flexio_status flexio_sq_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
			       uint32_t cq_num, const struct flexio_wq_attr *fattr,
			       struct flexio_sq **flexio_sq_ptr);

/**
 * flexio_sq_destroy() - destroy a send queue.
 * @flexio_sq: the queue
 */
flexio_status flexio_sq_destroy(struct flexio_sq *flexio_sq);

/**
 * flexio_sq_get_wq_num() - the number of a send queue, 24 bits.
 * @sq: the queue
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_sq_get_wq_num(struct flexio_sq *sq);

/**
 * flexio_rmp_create() - make a receive memory pool, from which queue pairs receive.
 * @process: the process
 * @ibv_ctx: the device, or NULL
 * @fattr: attributes; rq.wq_type is FLEXIO_WQ_TYPE_LINKED_LIST
 * @flexio_rmp_ptr: receives the pool
 */
flexio_status flexio_rmp_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
				const struct flexio_wq_attr *fattr,
				struct flexio_rmp **flexio_rmp_ptr);

/**
 * flexio_rmp_destroy() - destroy a receive memory pool.
 * @flexio_rmp: the pool; no queue pair may use it
 */
flexio_status flexio_rmp_destroy(struct flexio_rmp *flexio_rmp);

/**
 * flexio_rmp_get_wq_num() - the number of a receive memory pool, for flexio_qp_attr.rmpqn.
 * @rmp: the pool
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_rmp_get_wq_num(struct flexio_rmp *rmp);

/**
 * flexio_qp_create() - make a queue pair.
 * @process: the process
 * @ibv_ctx: the device, or NULL
 * @qp_fattr: attributes; those behind next_state are ignored
 * @qp_ptr: receives the QP
 */
flexio_status flexio_qp_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
			       struct flexio_qp_attr *qp_fattr, struct flexio_qp **qp_ptr);

/**
 * flexio_qp_destroy() - destroy a queue pair, in any state.
 * @qp: the QP
 */
flexio_status flexio_qp_destroy(struct flexio_qp *qp);

/**
 * flexio_qp_get_qp_num() - the number of a queue pair, 24 bits.
 * @qp: the QP
 *
 * Returns UINT32_MAX on error.
 */
uint32_t flexio_qp_get_qp_num(struct flexio_qp *qp);

/**
 * flexio_qp_modify() - move a queue pair to another state.
 * @qp: the QP
 * @fattr: next_state and what the transition needs
 * @mask: which of the optional fields are set
 *
 * A transition that the state machine does not have fails and leaves the state.
 */
flexio_status flexio_qp_modify(struct flexio_qp *qp, struct flexio_qp_attr *fattr,
			       struct flexio_qp_attr_opt_param_mask *mask);

/**
 * flexio_qp_state_get() - the state of a queue pair, as the device has it.
 * @qp: the QP
 *
 * Returns FLEXIO_QP_STATE_ERR on error.
 */
enum flexio_qp_state flexio_qp_state_get(struct flexio_qp *qp);

#ifdef __cplusplus
}
#endif

#endif
