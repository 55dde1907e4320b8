/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the host program of tests/flexio/remote share. */
#pragma once

#include <infiniband/verbs.h>
#include <libflexio/flexio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "check.h"
#include "remote.h"

extern struct flexio_app *remote_app;
extern flexio_func_t peek, poke, fill, same, post, take, receive, stream, flood, unpack, woken;

#define OK(call)    CHECK((call) == FLEXIO_STATUS_SUCCESS)
#define FAILS(call) CHECK((call) == FLEXIO_STATUS_FAILED)

#define USER_INDEX 0x1234u
#define DATA_BYTES (1u << 18)
#define RIGHTS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* Kinds of completions, and syndromes of those in error. */
enum {
	DONE_REQUEST = 0,
	DONE_WRITE_IMM = 1,
	DONE_SEND = 2,
	DONE_SEND_IMM = 3,
	DONE_REQUEST_ERROR = 13,
	DONE_RECEIVE_ERROR = 14,
};
enum {
	SYNDROME_LENGTH = 0x01,
	SYNDROME_QP_OPERATION = 0x02,
	SYNDROME_PROTECTION = 0x04,
	SYNDROME_FLUSHED = 0x05,
	SYNDROME_REMOTE_INVALID = 0x12,
	SYNDROME_REMOTE_ACCESS = 0x13,
	SYNDROME_RETRIES = 0x15,
	SYNDROME_RNR_RETRIES = 0x16,
};

/* The other program, with a pipe each way. */
struct peer {
	pid_t pid;
	FILE *to, *from;
	uint32_t qpn, lid, rkey;
	uint64_t memory;
	union ibv_gid gid;
};

/* host: where it runs, NULL: beside this program. */
void peer_up(struct peer *p, bool ethernet, const char *type, const char *host);
/* Says a line, and hears "ok". */
__attribute__((format(printf, 2, 3))) void peer_do(struct peer *p, const char *format, ...);
/* Says a line, and hears a number. */
__attribute__((format(printf, 2, 3))) uint64_t peer_ask(struct peer *p, const char *format, ...);
/* Says a line, and does not listen. */
__attribute__((format(printf, 2, 3))) void peer_say(struct peer *p, const char *format, ...);
/* Its next completion. */
struct heard {
	int status, opcode;
	uint32_t bytes, imm, qpn;
	int grh;
};
struct heard peer_wait(struct peer *p);
/* The answer to a line that was only said. */
void peer_obeyed(struct peer *p);
/* So many bytes of its memory. */
void peer_bytes(struct peer *p, uint64_t offset, uint32_t bytes, uint8_t *out);
void peer_down(struct peer *p);
/* Of 32 digits. */
void gid_read(const char *hex, union ibv_gid *gid);
/* It has been killed. */
void peer_gone(struct peer *p);

/* A completion queue, whose reader lies on the heap. */
struct line {
	struct flexio_cq *cq;
	uint64_t reader, ring;
};

/* A queue pair of the DPA with its queues and memory. */
struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct flexio_process *p;
	bool ethernet;
	uint16_t lid;
	union ibv_gid gid;
	struct line sent, received;
	enum flexio_cqe_comp_type compression; /* of queues made from now on */
	bool looped; /* its packets come back to the own port, and the address is nobody's */
	struct flexio_qp *qp;
	struct flexio_qp_attr made;
	uint32_t qpn;
	uint64_t rings, record, data;
	struct flexio_mkey *mkey;
	uint32_t key;
	struct post post;   /* what goes into the next one */
	struct posts posts; /* likewise for receives */
	uint64_t post_at, posts_at;
	struct reader last; /* the last completion that was taken */
};

/* Process, queues, memory; the queue pair, which is in RST, is as e->made says, where a case may change
 * things in between. */
void end_open(struct end *e, bool ethernet, uint32_t transport);
void end_make(struct end *e);
/* The attributes of its connection with that peer, and the steps to a state by them. */
struct flexio_qp_attr end_attr(const struct end *e, const struct peer *p);
void end_move(struct end *e, struct flexio_qp_attr *attr, enum flexio_qp_state from,
	      enum flexio_qp_state to);
/* Both to RTS. */
void end_meet(struct end *e, struct peer *p);
void peer_meet(struct peer *p, const struct end *e, const struct flexio_qp_attr *attr,
	       unsigned reads);
/* The address of the peer's datagrams by those attributes, which posts take with them. */
void end_address(struct end *e, const struct peer *p, const struct flexio_qp_attr *attr);
void end_close(struct end *e);

uint64_t end_call(struct end *e, flexio_func_t *f, uint64_t a, uint64_t b, uint64_t c);
/* Posts e->post with this kind, or receives of e->posts. */
void end_post(struct end *e, enum post_kind kind);
void end_receive(struct end *e, unsigned count, uint64_t data, uint32_t bytes);
/* The next completion of that queue, in e->last; the opcode. */
uint64_t end_take(struct end *e, const struct line *line);
/* Whether there is none. */
bool end_quiet(struct end *e, const struct line *line);
/* Posts, and the completion must say success; or this syndrome. */
void end_done(struct end *e, enum post_kind kind);
void end_fails(struct end *e, enum post_kind kind, unsigned syndrome);
uint64_t end_heap(struct end *e, size_t bytes, int value);
void line_up(struct end *e, struct line *line);
/* One that tells somebody; the element is that of the attributes. */
void line_up_as(struct end *e, struct line *line, struct flexio_cq_attr attr);
/* A queue pair that is its own peer, in RTS; the same with process and memory. */
void own_join(struct end *e);
void own_up(struct end *e);

/* A send queue in place of the queue pair, whose posts it takes; many: also requests of many frames. */
struct flexio_sq *frames_open(struct end *e, struct line *line, bool many);

/* The object of the last creation by DEVX: the library's calls come by the program. */
extern struct mlx5dv_devx_obj *created;
/* That of the last command of this kind. */
struct mlx5dv_devx_obj *created_by(unsigned opcode);
/* Not NULL: changes the commands of such calls. */
extern void (*creation_change)(uint8_t *in);

struct host_case {
	const char *name;
	void (*run)(void);
};

/* Each ends with an entry without a name. */
extern const struct host_case kind_cases[], local_cases[], field_cases[], frame_cases[],
	pool_cases[], death_cases[], depth_cases[], script_cases[], part_cases[], event_cases[];
