/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of floating-point numbers, exact to the last digit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Most digits that a double has: 309 before the point, 1074 behind it. */
#define FLOAT_DIGITS 1400

/* The parts follow each other: body, zeros, tail.  The caller adds the sign, and 0x in front. */
struct float_text {
	char body[FLOAT_DIGITS];
	int length; /* bytes of body */
	int zeros;  /* more digits than the number has */
	char tail[8];
	int tail_length;
};

/* Tells whether the number is finite; the sign of infinity or of no number is in its first bit. */
bool float_is_finite(double value);
bool float_is_nan(double value);
bool float_is_negative(double value);

/*
 * Makes the text of a finite number without its sign.  `conversion` is one of a e f g and their
 * capitals, `precision` is -1 if none is given, `alternate` is printf's flag.
 */
void float_format(struct float_text *text, double value, char conversion, int precision,
		  bool alternate);
