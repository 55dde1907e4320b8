/* SPDX-License-Identifier: BSD-2-Clause */
/* The cable ends at files: frames come in from one, and go out to another. */
#pragma once

#include "tie/carrier.h"
#include "tie/pcap.h"

/* When the next frame comes in. */
enum pcap_pace {
	PACE_ORIGINAL, /* with the times of the file */
	PACE_TOP,      /* as soon as there is room for it */
	PACE_RATE,     /* so many a second */
};

struct end_pcap {
	struct tie_end end;
	struct pcap_reader in; /* file is NULL: none */
	FILE *out;	       /* or NULL */
	enum pcap_pace pace;
	uint32_t rate;
	uint32_t loops; /* so often; 0: without an end */
	bool full;	/* the file takes nothing more, which was said */
};

/* The members in, out, pace, rate and loops are the caller's. */
void end_pcap_init(struct end_pcap *e);
