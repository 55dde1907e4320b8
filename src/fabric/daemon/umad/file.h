/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside daemon/umad: one open umad file.  Its socket brings what the program writes and takes what
 * the program reads; its page shows the program what it must know to refuse a write at once.
 */
#pragma once

#include <rdma/ib_user_mad.h>
#include <sys/epoll.h>

#include "fabric/daemon/mad/agent.h"
#include "fabric/daemon/umad/umad.h"

struct umad_agent {
	struct mad_agent mad;
	struct umad_file *file;
	uint32_t id;
	bool manages; /* the agent may be a subnet manager's, and the built-in SM knows */
};

/* A message for the program, in the order of its stream. */
struct umad_post {
	struct umad_post *next;
	uint32_t length; /* of bytes */
	bool received;	 /* it is a MAD, not a report of a timeout */
	uint8_t bytes[];
};

#define STREAM_ROOM (1 << 20) /* room that we ask for in a socket; the system may grant less */

/* How many messages for the program go with one system call. */
#define UMAD_BATCH 16u

struct umad_batch {
	struct umad_file *next; /* list of files that have a batch */
	bool listed;
	uint32_t n;
	struct umad_outgoing {
		uint32_t length;
		bool received; /* as umad_post */
		uint8_t bytes[UMAD_MESSAGE_BYTES];
	} messages[UMAD_BATCH];
};

/* A message that is too long for the stream, where a marker has its id. */
struct umad_long {
	struct umad_long *next;
	uint32_t id;
	uint32_t length; /* with its header */
	uint32_t header_bytes;
	uint8_t header[UMAD_HEADER_NEW];
	uint8_t *mad; /* malloc'd */
};

struct umad_file {
	struct source sock;
	struct loop_grave grave;
	struct umad *umad;
	struct umad_file *next, **prev;
	uint64_t token;
	uint32_t row;
	struct umad_page *page;
	int page_fd;	/* for a process that gets the file by execve */
	uint64_t inode; /* inode of the program's end of the socket */
	struct umad_agent *agents[UMAD_AGENTS];
	struct mad_scope scope; /* its sends, among which duplicates are refused */
	uint32_t sends;		/* how many are under way */
	bool used;		/* an agent has been registered, so the layout stays */
	uint32_t first_agent;	/* number of that agent, plus 1 */
	uint32_t first_header;	/* the layout before that */
	uint32_t header_bytes;
	bool ended;
	bool told; /* the log has said that MADs are dropped */
	uint32_t next_long;
	uint32_t received;		      /* MADs in the queue */
	uint32_t reports;		      /* reports of timeouts in the queue */
	uint64_t waiting;		      /* bytes, here and in 'longs' */
	struct umad_post *queue, **queue_end; /* goes before the batch */
	struct umad_batch batch;
	struct umad_long *longs;
	uint32_t nlongs;
};

/* ---- file.c ---- */

/* Ends the file: agents, queues, socket.  Its memory is freed when no event can name it. */
void umad_file_end(struct umad_file *f);

/* Watches the socket, also for room if something waits for it.  It watches edges: once we have
 * taken all, we need not look again before we sleep; to ask again (EPOLL_CTL_MOD) reports what is
 * there already.  False: not possible. */
static inline bool umad_file_watch(struct umad_file *f)
{
	return loop_rewatch(f->umad->fabric->loop, &f->sock,
			    EPOLLIN | EPOLLET | (f->queue ? EPOLLOUT : 0));
}

/* Counts bytes that wait for the program. */
static inline void umad_waiting_add(struct umad_file *f, int64_t bytes)
{
	f->waiting += (uint64_t)bytes;
	f->umad->waiting += (uint64_t)bytes;
}

/* ---- file.c: what the program sees without a request ---- */

/* The program counted a send before it wrote it; the send is over now, or there never was one. */
void umad_page_uncount(struct umad_page *page, uint32_t tid_low, uint8_t class);
/* Counts a report that waits in the daemon; the second one uncounts it. */
void umad_page_count_report(struct umad_page *page);
void umad_page_uncount_report(struct umad_page *page);

/* ---- file_read.c: from the socket to the agents ---- */

/*
 * Takes at most 'most' messages that the program has written.  False: there may be more, of which
 * no event tells.
 */
bool umad_file_take(struct umad_file *f, uint32_t most);
/*
 * Takes all that is there, for a request that comes after it, but not what a program goes on
 * adding.
 */
void umad_file_drain(struct umad_file *f);
void umad_file_ready(struct loop *l, struct source *src, uint32_t events);

/* ---- file_write.c: from the agents to the socket ---- */

void umad_file_receive(struct umad_file *f, uint32_t agent, struct mad_message *m);
/* A send has timed out: 'note' is the program's header, 'header' the MAD's. */
void umad_file_report(struct umad_file *f, uint32_t agent, const uint8_t note[64],
		      const uint8_t *header);
/* Posts a whole message with its header, which the program gives back. */
void umad_file_post(struct umad_file *f, const uint8_t *bytes, uint32_t length);
void umad_file_flush(struct umad_file *f);
/* Sends the batches of all files. */
void umad_batches_send(struct loop *l, struct loop_work *w);
/* Drops all that waits for the program. */
void umad_file_forget(struct umad_file *f);

/* ---- file_write.c: what is too long for the stream ---- */

void umad_long_forget(struct umad_file *f);
