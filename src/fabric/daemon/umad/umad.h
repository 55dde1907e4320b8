/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's end of programs' umad and issm files: a socket and up to 32 agents each. */
#pragma once

#include "fabric/daemon/mad/agent.h"
#include "fabric/daemon/sm/sm.h"
#include "fabric/umad.h"

struct umad_file;
struct issm_file;
struct issm_waiter;

#define UMAD_TOKENS 1024u

struct umad {
	struct mad_fabric *fabric;
	struct sm *sm;			      /* hears of programs that are subnet managers */
	struct umad_file *files[UMAD_TOKENS]; /* hash by token */
	struct umad_file *batches;     /* files with messages for their programs, each once */
	struct loop_work batches_work; /* sends these batches */
	struct issm_file *holders;
	uint32_t nfiles;  /* open files of both kinds, which keep the daemon alive */
	uint64_t waiting; /* bytes that wait */
	uint64_t next_token;
	struct issm_waiter *waiters;
};

void umad_open(struct umad *u, struct mad_fabric *f, struct sm *sm);
void umad_close(struct umad *u);

/* The caller closes the descriptors in fds after it has sent them.  -ENOENT: no such port; -ENOMEM;
 * -EMFILE. */
int umad_file_open(struct umad *u, uint32_t row, uint64_t *token, int fds[2]) must_check;
struct umad_file *umad_file_find(struct umad *u, uint64_t token);
/* Finds the file by the inode of the program's end, and what a further program needs to know of it;
 * the caller closes *page. */
struct umad_file *umad_file_find_inode(struct umad *u, uint64_t inode);
int umad_file_adopt(const struct umad_file *f, uint64_t *token, uint32_t *row,
		    int *page) must_check;
/* Each first takes what the program has written before. */
int umad_file_register(struct umad_file *f, const struct msg_umad_register *r,
		       uint32_t *id) must_check;
/* undo: the program never learned the id. */
int umad_file_unregister(struct umad_file *f, uint32_t id, bool undo) must_check;
int umad_file_pkey(struct umad_file *f) must_check;
/* Gives the message in *fd, which the caller closes. */
int umad_file_fetch(struct umad_file *f, const struct msg_umad_fetch *r,
		    struct msg_umad_fetch_reply *reply, int *fd) must_check;
int umad_file_in_flight(struct umad_file *f, const struct msg_umad_in_flight *r) must_check;

/*
 * issm.c: one holder for each port.  -EAGAIN: somebody has it; then issm_wait calls back once, in
 * the order in which waiters came.
 */
int issm_open(struct umad *u, uint32_t row, int *fd) must_check;
struct issm_waiter {
	struct issm_waiter *next, **prev;
	uint32_t row;
	/* Gives a descriptor, which the callee then owns, or says why there is none. */
	void (*granted)(struct issm_waiter *w, int fd);
};
void issm_wait(struct umad *u, struct issm_waiter *w);
void issm_wait_end(struct issm_waiter *w);
/* Takes the token from all holders; the caller keeps the waiters. */
void issm_close(struct umad *u);
