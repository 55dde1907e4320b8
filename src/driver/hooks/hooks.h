/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hooks into the entry points of an open verbs context: the program's own thread drives the device
 * when it posts, polls or arms, right after libmlx5 has done its part.  They are an optimisation
 * only: the engine serves a program that goes around them.
 *
 * The functions of libibverbs and libmlx5 that library.c defines (ibv_open_device, ...) are
 * exported by the preload library and pass on to the real ones.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* Hooks the entry points of a context, if it is one of our devices'.  Idempotent. */
void hooks_context(struct ibv_context *context);
/* Hooks the completion queue's start_poll; the context is one of ours. */
void hooks_cq_ex(struct ibv_cq_ex *cq);
/* Hooks the work queue's post_recv; the context is one of ours. */
void hooks_wq(struct ibv_wq *wq);
/* Hooks wr_complete, which the library sets anew when a QP reaches RTS. */
void hooks_qp_ex(struct ibv_qp_ex *qp);

/* The preload calls these around fork(2), in parent and child. */
void hooks_fork_prepare(void);
void hooks_fork_done(void);

/* ---- to the device's object ---- */

/*
 * From a program's verbs call to the device's object: the way that the hooks take after libmlx5 has
 * written a ring.  A command descriptor and a handle name the object.  Both come from structs of
 * the program, so an unknown one is ignored, and no function can fail in a way that the caller
 * would hear of.  The way takes no locks, only two array look-ups.  Several threads of the program
 * may take it at a time.
 */

/* A request that the library did not take. */
struct refused_post {
	int err;
	uint32_t pieces;
	uint64_t bytes; /* of inline data */
	bool is_inline;
	bool is_built; /* ibv_wr_* built it, which do not tell what it was */
};

/* Say in words (base/explain.h) why the library has refused a send request, or a receive of a queue
 * pair or of a shared receive queue. */
void uverbs_qp_explain_post(int cmd_fd, uint32_t handle, const struct refused_post *post);
void uverbs_qp_explain_recv(int cmd_fd, uint32_t handle, const struct refused_post *post);
/* Tells of the receives that the program is about to post (trace point srq.posted). */
void uverbs_srq_tell_recv(int cmd_fd, uint32_t handle, const struct ibv_recv_wr *wr);
void uverbs_srq_explain_recv(int cmd_fd, uint32_t handle, const struct refused_post *post);

/* Executes what was posted, in the calling thread, unless another thread already does.  It touches
 * the memory of requests, so it may wait for a page; it waits for nothing else. */
void uverbs_qp_doorbell(int cmd_fd, uint32_t handle);
/* Whoever delivers takes the receives, so this returns at once. */
void uverbs_qp_recv_posted(int cmd_fd, uint32_t handle);
void uverbs_wq_recv_posted(int cmd_fd, uint32_t handle);
/* The arm record may have changed: raises an event that is due.  True: as far as we know, the
 * program will wait for another event by a read (runtime/drive.h). */
bool uverbs_cq_doorbell(int cmd_fd, uint32_t handle);
/* The entry points of the context have hooks, which announce its doorbells. */
void uverbs_hooked(int cmd_fd);
/* The program has asked for the inside of the queue: its doorbells may come by bare stores. */
void uverbs_qp_taken_over(int cmd_fd, uint32_t handle);
void uverbs_cq_taken_over(int cmd_fd, uint32_t handle);
/* The program is about to read the device's clock. */
void uverbs_clock_wanted(int cmd_fd);
