/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader of a capture: asks the daemon for the rings of all processes that take part, empties
 * them, and puts their records in the order of time (docs/design/capture.md).  What the records
 * mean is for softhca capture and softhca trace.  One thread.
 */
#pragma once

#include "base/record_ring.h"
#include "registry/capture.h"
#include "tool/view.h"

/* A record that waits for its turn; bytes is what reader_add was given. */
struct waiting {
	struct waiting *next; /* while it is spare */
	uint64_t number;      /* the order in which they came */
	uint32_t room;
	struct capture_head head;
	void *source;		  /* as reader_ops.begun gave it */
	uint32_t captured, whole; /* bytes */
	uint8_t bytes[];
};

struct reader;

struct reader_ops {
	/* Looks at a record, of which bytes are there.  True: it has called reader_add, or it does not
	 * want the record; false: the record is not readable. */
	bool (*record)(struct reader *r, void *source, const struct capture_head *head,
		       uint32_t bytes);
	/* The turn of a record has come. */
	void (*write)(struct reader *r, const struct waiting *w);
	/* Records that came together are written. */
	void (*written)(struct reader *r);
	/* A process takes part: returns what its records are given with.  NULL: no such function. */
	void *(*begun)(struct reader *r, const struct msg_capture_ring *ring);
	/* The process has ended, or the capture has: its last record was looked at, and may wait. */
	void (*ended)(struct reader *r, void *source);
	/* So many records of a port were dropped for lack of room. */
	void (*dropped)(struct reader *r, uint32_t row, uint64_t n);
	/* True: no more records are wanted. */
	bool (*full)(struct reader *r);
};

#define READER_ROOMS 2u

/* A head, the header of a packet, and as much of a payload as there may be. */
#define READER_RECORD_MOST (sizeof(struct capture_head) + 512 + CAPTURE_SNAPLEN)

struct reader {
	const struct session *s;
	struct view view;
	struct view_segments segments;
	struct msg_capture want;
	const struct reader_ops *ops;
	bool all_known; /* the programs that ran at the beginning have rings */
	bool gone;	/* the daemon */
	bool idle;	/* the last turn found nothing */
	struct source *sources;
	struct waiting *spare[READER_ROOMS]; /* for the next records */
	struct waiting **heap;		     /* the earliest first */
	uint32_t nheap, room;
	size_t heap_bytes;
	uint64_t came;
	uint32_t nbroken, nabsent;
	/* The record that is looked at: its writer may go on to change the one in the ring. */
	_Alignas(RECORD_RING_ALIGN) uint8_t record[READER_RECORD_MOST];
};

/* The command stops at the so manieth SIGINT, SIGTERM or SIGHUP; the next one ends it even if nobody
 * reads what it writes. */
void reader_signals_take(unsigned wanted);
bool reader_stopped(void);
/* The last of them, if a program has sent it and not the terminal; else 0. */
int reader_stop_signal(void);

/* Takes "-s"-like numbers: text, which may be NULL, from 1 to max.  False after an error line. */
bool reader_number_option(const struct session *s, const char *option, const char *text,
			  uint32_t max, uint32_t *out) must_check;
/* Opens what a command writes, '-' for standard output, which must be no terminal; what: the word for it.
 * NULL after an error line. */
FILE *reader_output_open(const struct session *s, const char *path, const char *what) must_check;
/* The size of a ring for so many MiB: the next power of 2. */
uint32_t reader_ring_bytes(uint32_t mib);

/* Opens the view; start: and the fabric, if it does not run.  False after an error line. */
bool reader_open(struct reader *r, bool start) must_check;
/* Asks for the rings, and waits until all programs that run take part, but not long for one that is
 * stopped.  False after an error line. */
bool reader_join(struct reader *r) must_check;
/* Takes what is there, and waits for a few milliseconds if that was nothing the last time. */
void reader_turn(struct reader *r);
/* True: stopped, full or the daemon has gone. */
bool reader_over(struct reader *r);
/* Takes all that was written before now, and lets go of the rings. */
void reader_finish(struct reader *r);
/* Error lines for what has gone wrong. */
void reader_report(const struct reader *r);
void reader_close(struct reader *r);

/* Gives a record its place in the order of time.  False: no memory. */
bool reader_add(struct reader *r, void *source, const struct capture_head *head, const void *bytes,
		uint32_t captured, uint32_t whole) must_check;
