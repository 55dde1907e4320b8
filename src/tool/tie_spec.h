/* SPDX-License-Identifier: BSD-2-Clause */
/* What a port is to be tied to, as the arguments say it. */
#pragma once

#include "tie/end_pcap.h"
#include "tool/tool.h"

struct tie_spec {
	const char *tap; /* each of these may be NULL */
	const char *port;
	const char *in, *out;
	const char *pace_text, *loop_text;
	enum pcap_pace pace;
	uint32_t rate;
	uint32_t loops;
};

/* Reads the arguments; false after an error line. */
bool tie_spec_read(const struct session *s, int argc, char **argv, struct tie_spec *out);
/* Writes it in words, for status. */
void tie_spec_text(const struct tie_spec *t, char text[FABRIC_TIE_BYTES]);
