/* SPDX-License-Identifier: BSD-2-Clause */
/* The cable ends at files: frames come in from one, and go out to another. */
#pragma once

#include "tie/carrier.h"
#include "tie/pcap.h"

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
