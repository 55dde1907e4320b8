/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a program's verbs call to the device's object: the way the hooks take after libmlx5 has
 * written a ring.  Named by command descriptor and handle, which both come from structs of the
 * program; an unknown one is ignored, and nothing can fail that the caller would hear of.  No
 * locks: two array look-ups.  Any thread of the program, several at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A request that the library did not take. */
struct refused_post {
	int err;
	uint32_t pieces;
	uint64_t bytes; /* of inline data */
	bool is_inline;
	bool is_built; /* by ibv_wr_*, which do not tell what it was */
};

/* Say in words (base/explain.h) why the library has refused a send request, or a receive of a queue
 * pair or of a shared receive queue. */
void uverbs_qp_explain_post(int cmd_fd, uint32_t handle, const struct refused_post *post);
void uverbs_qp_explain_recv(int cmd_fd, uint32_t handle, const struct refused_post *post);
void uverbs_srq_explain_recv(int cmd_fd, uint32_t handle, const struct refused_post *post);

/* Executes what was posted, in the calling thread, unless another thread does so already.  The
 * memory of requests is touched, so a page may be waited for; nothing else is. */
void uverbs_qp_doorbell(int cmd_fd, uint32_t handle);
/* The receives are taken by whoever delivers; returns at once. */
void uverbs_qp_recv_posted(int cmd_fd, uint32_t handle);
void uverbs_wq_recv_posted(int cmd_fd, uint32_t handle);
/* The arm record may have changed: an event that is due is raised here.  True: the program will wait for
 * another where a reader does (runtime/reader.h), as far as is known. */
bool uverbs_cq_doorbell(int cmd_fd, uint32_t handle);
/* The entry points of the context have hooks, so that doorbells are announced. */
void uverbs_hooked(int cmd_fd);
/* The program has asked for the inside of the queue: its doorbells may come by bare stores. */
void uverbs_qp_taken_over(int cmd_fd, uint32_t handle);
void uverbs_cq_taken_over(int cmd_fd, uint32_t handle);
/* The program is about to read the device's clock. */
void uverbs_clock_wanted(int cmd_fd);
