/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells in the shape of generation 24.10 and later, which take no thread's context and return
 * nothing; flexio_dev_zcqe_gen(), which has the shape of the program's own generation; and the names
 * that work requests have from 26.1 on, for all.  flexio_dev_queue_access.h includes this header, and
 * says what each call does and takes.
 */
#ifndef _FLEXIO_DEV_QUEUE_2410_H_
#define _FLEXIO_DEV_QUEUE_2410_H_

#ifndef _FLEXIO_DEV_QUEUE_ACCESS_H_
#error "include <libflexio-dev/flexio_dev_queue_access.h>"
#endif

/* Kinds of work requests, and when one makes a completion. */
#define FLEXIO_CTRL_SEG_TYPE_SEND_EN		     FLEXIO_CTRL_SEG_SEND_EN
#define FLEXIO_CTRL_SEG_TYPE_SEND_RC		     FLEXIO_CTRL_SEG_SEND_RC
#define FLEXIO_CTRL_SEG_TYPE_SEND_UC		     FLEXIO_CTRL_SEG_SEND_UC
#define FLEXIO_CTRL_SEG_TYPE_SEND_UD		     FLEXIO_CTRL_SEG_SEND_UD
#define FLEXIO_CTRL_SEG_TYPE_LDMA		     FLEXIO_CTRL_SEG_LDMA
#define FLEXIO_CTRL_SEG_TYPE_RDMA_WRITE		     FLEXIO_CTRL_SEG_RDMA_WRITE
#define FLEXIO_CTRL_SEG_TYPE_RDMA_READ		     FLEXIO_CTRL_SEG_RDMA_READ
#define FLEXIO_CTRL_SEG_TYPE_LSO		     FLEXIO_CTRL_SEG_LSO
#define FLEXIO_CTRL_SEG_TYPE_NOP		     FLEXIO_CTRL_SEG_NOP
#define FLEXIO_CTRL_SEG_TYPE_RDMA_WRITE_IMM	     FLEXIO_CTRL_SEG_RDMA_WRITE_IMM
#define FLEXIO_CTRL_SEG_TYPE_TRANSPOSE		     FLEXIO_CTRL_SEG_TRANSPOSE
#define FLEXIO_CTRL_SEG_TYPE_WAIT_ON_DATA	     FLEXIO_CTRL_SEG_WAIT_ON_DATA
#define FLEXIO_CTRL_SEG_TYPE_ATOMIC_COMPARE_AND_SWAP FLEXIO_CTRL_SEG_ATOMIC_COMPARE_AND_SWAP
#define FLEXIO_CTRL_SEG_TYPE_ATOMIC_FETCH_AND_ADD    FLEXIO_CTRL_SEG_ATOMIC_FETCH_AND_ADD

#define FLEXIO_CTRL_SEG_CE_CQE_ON_CQE_ERROR	  MLX5_CTRL_SEG_CE_CQE_ON_CQE_ERROR
#define FLEXIO_CTRL_SEG_CE_CQE_ON_FIRST_CQE_ERROR MLX5_CTRL_SEG_CE_CQE_ON_FIRST_CQE_ERROR
#define FLEXIO_CTRL_SEG_CE_CQE_ALWAYS		  MLX5_CTRL_SEG_CE_CQE_ALWAYS
#define FLEXIO_CTRL_SEG_CE_CQE_AND_EQE		  MLX5_CTRL_SEG_CE_CQE_AND_EQE

#ifdef __cplusplus
extern "C" {
#endif

/** flexio_dev_qp_sq_ring_db() of the calling thread. */
static inline void __flexio_dev_qp_sq_ring_db(uint16_t pi, uint32_t qnum)
{
	(void)flexio_dev_qp_sq_ring_db(NULL, pi, qnum);
}

/** flexio_dev_cq_arm() of the calling thread. */
static inline void __flexio_dev_cq_arm(uint32_t ci, uint32_t qnum)
{
	(void)flexio_dev_cq_arm(NULL, ci, qnum);
}

/** flexio_dev_eq_update_ci() of the calling thread. */
static inline void __flexio_dev_eq_update_ci(uint32_t ci, uint32_t qnum)
{
	(void)flexio_dev_eq_update_ci(NULL, ci, qnum);
}

/** flexio_dev_msix_send() of the calling thread. */
static inline void __flexio_dev_msix_send(uint32_t cqn)
{
	(void)flexio_dev_msix_send(NULL, cqn);
}

#if FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)
/** flexio_dev_zcqe_gen() - flexio_dev_msix_send() of the calling thread, by its later name. */
static inline void flexio_dev_zcqe_gen(uint32_t cqn)
{
	__flexio_dev_msix_send(cqn);
}
#else
/** flexio_dev_zcqe_gen() - flexio_dev_msix_send() by its later name. */
static inline flexio_dev_status_t flexio_dev_zcqe_gen(struct flexio_dev_thread_ctx *dtctx,
						      uint32_t cqn)
{
	return flexio_dev_msix_send(dtctx, cqn);
}
#endif

/** flexio_dev_db_ctx_arm() of the calling thread. */
static inline void __flexio_dev_db_ctx_arm(uint32_t qnum, uint32_t emu_ctx_id)
{
	(void)flexio_dev_db_ctx_arm(NULL, qnum, emu_ctx_id);
}

/** flexio_dev_db_ctx_force_trigger() of the calling thread. */
static inline void __flexio_dev_db_ctx_force_trigger(uint32_t cqn, uint32_t emu_ctx_id)
{
	(void)flexio_dev_db_ctx_force_trigger(NULL, cqn, emu_ctx_id);
}

/** flexio_dev_cc_ring_db() of the calling thread. */
static inline void __flexio_dev_cc_ring_db(uint16_t ccq_id, uint32_t rate, uint32_t rtt_req,
					   flexio_dev_cc_db_next_act_t next_act)
{
	(void)flexio_dev_cc_ring_db(NULL, ccq_id, rate, rtt_req, next_act);
}

#ifdef __FLEXIO_DEV_EITHER

__FLEXIO_DEV_OVERLOAD void flexio_dev_qp_sq_ring_db(uint16_t pi, uint32_t qnum)
{
	__flexio_dev_qp_sq_ring_db(pi, qnum);
}

__FLEXIO_DEV_OVERLOAD void flexio_dev_cq_arm(uint32_t ci, uint32_t qnum)
{
	__flexio_dev_cq_arm(ci, qnum);
}

__FLEXIO_DEV_OVERLOAD void flexio_dev_eq_update_ci(uint32_t ci, uint32_t qnum)
{
	__flexio_dev_eq_update_ci(ci, qnum);
}

__FLEXIO_DEV_OVERLOAD void flexio_dev_msix_send(uint32_t cqn)
{
	__flexio_dev_msix_send(cqn);
}

__FLEXIO_DEV_OVERLOAD void flexio_dev_zcqe_gen(uint32_t cqn)
{
	__flexio_dev_msix_send(cqn);
}

__FLEXIO_DEV_OVERLOAD void flexio_dev_db_ctx_arm(uint32_t qnum, uint32_t emu_ctx_id)
{
	__flexio_dev_db_ctx_arm(qnum, emu_ctx_id);
}

__FLEXIO_DEV_OVERLOAD void flexio_dev_db_ctx_force_trigger(uint32_t cqn, uint32_t emu_ctx_id)
{
	__flexio_dev_db_ctx_force_trigger(cqn, emu_ctx_id);
}

__FLEXIO_DEV_OVERLOAD void flexio_dev_cc_ring_db(uint16_t ccq_id, uint32_t rate, uint32_t rtt_req,
						 flexio_dev_cc_db_next_act_t next_act)
{
	__flexio_dev_cc_ring_db(ccq_id, rate, rtt_req, next_act);
}

#elif FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)

#define flexio_dev_qp_sq_ring_db	__flexio_dev_qp_sq_ring_db
#define flexio_dev_cq_arm		__flexio_dev_cq_arm
#define flexio_dev_eq_update_ci		__flexio_dev_eq_update_ci
#define flexio_dev_msix_send		__flexio_dev_msix_send
#define flexio_dev_db_ctx_arm		__flexio_dev_db_ctx_arm
#define flexio_dev_db_ctx_force_trigger __flexio_dev_db_ctx_force_trigger
#define flexio_dev_cc_ring_db		__flexio_dev_cc_ring_db

#endif

#ifdef __cplusplus
}
#endif

#endif
