/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of floating-point numbers, exact to the last digit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Most digits that a double has: 309 before the point, 1074 behind it. */
#define FLOAT_DIGITS 1400

/* In this order: body, zeros, tail. The sign, and 0x in front, are the caller's. */
struct float_text {
	char body[FLOAT_DIGITS];
	int length; /* of the body */
	int zeros;  /* more digits than the number has */
	char tail[8];
	int tail_length;
};

/* Whether the number is infinite or none at all; its sign is in its first bit. */
bool float_is_finite(double value);
bool float_is_nan(double value);
bool float_is_negative(double value);

/*
 * The text of a finite number without its sign.  `conversion` is one of a e f g and their capitals,
 * `precision` is -1 if none is given, `alternate` is printf's flag.
 */
void float_format(struct float_text *text, double value, char conversion, int precision,
		  bool alternate);
