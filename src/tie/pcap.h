/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of captured Ethernet frames, as libpcap writes them (pcap-savefile(5)): of either byte
 * order, with times in microseconds or nanoseconds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"
#include "tie/carrier.h"

/* ---- the files ---- */

#define PCAP_ERROR_BYTES 256u
/* More than any frame: tcpdump's largest snapshot. */
#define PCAP_RECORD_MAX 262144u

struct pcap_reader {
	FILE *file;
	bool swapped;
	bool nanoseconds;
	uint64_t frames; /* in the whole file */
};

struct pcap_frame {
	uint64_t ns;	/* when it was captured */
	uint32_t bytes; /* bytes that the file has of it */
	uint32_t whole; /* bytes that it had on the wire */
};

/*
 * Opens the file and checks all of it, so that errors show before anything is sent.  False: 'error'
 * says what is wrong.
 */
bool pcap_open(struct pcap_reader *r, const char *path, char error[PCAP_ERROR_BYTES]) must_check;
void pcap_close(struct pcap_reader *r);
/*
 * Gives the next frame, with as many of its bytes as there is room for.  False at the end, or if
 * the file has changed and makes no sense any more.
 */
bool pcap_next(struct pcap_reader *r, struct pcap_frame *frame, void *buf,
	       uint32_t room) must_check;
/* Goes back, so that the first frame comes next. */
void pcap_rewind(struct pcap_reader *r);

/* Begins a file at *file.  0 or negative errno. */
int pcap_begin(FILE *file) must_check;
/* Appends a frame; false: the file does not take it. */
bool pcap_append(FILE *file, uint64_t ns, const void *frame, uint32_t bytes) must_check;

/* ---- the end of a tie ---- */

/* The cable ends at files: frames come in from one, and go out to another. */

/* When the next frame comes in. */
enum pcap_pace {
	PACE_ORIGINAL, /* with the times of the file */
	PACE_TOP,      /* as soon as there is room for it */
	PACE_RATE,     /* so many frames per second */
};

struct end_pcap {
	struct tie_end end;
	struct pcap_reader in; /* file is NULL: there is none */
	FILE *out;	       /* or NULL */
	enum pcap_pace pace;
	uint32_t rate;
	uint32_t loops; /* how often it goes through the file; 0: without end */
	bool full;	/* the file takes nothing more, and the log has said so */
};

/* The caller sets in, out, pace, rate and loops. */
void end_pcap_init(struct end_pcap *e);
