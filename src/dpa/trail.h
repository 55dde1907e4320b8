/* SPDX-License-Identifier: BSD-2-Clause */
/* Where device code called the runtime, as reports name it: function, file and line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/spin.h"

struct dpa_process;

/* Return addresses, the innermost first; the first ones may lie in the device library. */
#define DPA_TRAIL 4u

struct dpa_trail {
	uint64_t pc[DPA_TRAIL]; /* 0: there are no more */
};

#define DPA_TRAIL_TEXT 512u

/* Says "in FUNCTION at FILE:LINE", and who called a function of the device library. */
const char *dpa_trail_text(const struct dpa_process *p, const struct dpa_trail *trail,
			   char text[DPA_TRAIL_TEXT]);
/* Returns the place of device code itself; 0: nobody knows. */
uint64_t dpa_trail_place(const struct dpa_process *p, const struct dpa_trail *trail);

/* Places that a process has reports about, so that each is reported once. */
#define DPA_SAID 128u

struct dpa_said {
	struct spin lock;
	uint32_t count;
	uint64_t place[DPA_SAID];
};

/* Tells whether there is a report about that place already, or too many of others; else notes it. */
bool dpa_said(struct dpa_said *said, uint64_t place);
