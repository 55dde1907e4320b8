/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to the person who runs the programs, and numbers from the command line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A line on stderr with the program's name in front; %m works. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A decimal or 0x number from lowest to highest; complains with the option's name otherwise. */
bool parse_number(const char *option, const char *text, uint64_t lowest, uint64_t highest,
		  uint64_t *out) __attribute__((warn_unused_result));
