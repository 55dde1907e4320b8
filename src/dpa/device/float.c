// SPDX-License-Identifier: BSD-2-Clause
#include "dpa/device/float.h"

#define LIMB	       1000000000u /* holds nine digits */
#define LIMB_DIGITS    9
#define INTEGER_LIMBS  35  /* 309 digits, and room for a carry */
#define FRACTION_LIMBS 120 /* 1074 digits */
#define LIMBS	       (INTEGER_LIMBS + FRACTION_LIMBS)
#define DIGITS	       (LIMBS * LIMB_DIGITS)
#define POINT	       (INTEGER_LIMBS * LIMB_DIGITS)

#define MANTISSA_BITS	52
#define MANTISSA_DIGITS 13 /* hexadecimal */
#define EXPONENT_MAX	0x7ff
#define EXPONENT_BIAS	1023

/* A number that is not negative, as all its decimal digits; the point lies in front of [POINT]. */
struct decimal {
	char digits[DIGITS];
	int first; /* first that is not 0; for 0 the last of the integer part */
};

static uint64_t bits_of(double value)
{
	uint64_t bits;

	__builtin_memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static int exponent_of(uint64_t bits)
{
	return (int)(bits >> MANTISSA_BITS) & EXPONENT_MAX;
}

static uint64_t mantissa_of(uint64_t bits)
{
	return bits & ((1ull << MANTISSA_BITS) - 1);
}

bool float_is_finite(double value)
{
	return exponent_of(bits_of(value)) != EXPONENT_MAX;
}

bool float_is_nan(double value)
{
	return !float_is_finite(value) && mantissa_of(bits_of(value));
}

bool float_is_negative(double value)
{
	return bits_of(value) >> 63;
}

/* ---- all digits ---- */

static void limbs_double(uint32_t *limbs, int times)
{
	while (times > 0) {
		int bits = times < 29 ? times : 29;
		uint64_t carry = 0;

		for (int i = INTEGER_LIMBS - 1; i >= 0; i--) {
			carry += (uint64_t)limbs[i] << bits;
			limbs[i] = (uint32_t)(carry % LIMB);
			carry /= LIMB;
		}
		times -= bits;
	}
}

/* LIMB is a multiple of 2^9, so that what falls out of one is a whole number in the next. */
static void limbs_halve(uint32_t *limbs, int times)
{
	while (times > 0) {
		int bits = times < LIMB_DIGITS ? times : LIMB_DIGITS;
		uint32_t rest = 0;

		for (int i = 0; i < LIMBS; i++) {
			uint32_t out = limbs[i] & ((1u << bits) - 1);

			limbs[i] = (limbs[i] >> bits) + rest;
			rest = (LIMB >> bits) * out;
		}
		times -= bits;
	}
}

static void decimal_find_first(struct decimal *d)
{
	d->first = 0;
	while (d->first < DIGITS && d->digits[d->first] == '0')
		d->first++;
	if (d->first == DIGITS)
		d->first = POINT - 1;
}

static void decimal_make(struct decimal *d, double value)
{
	uint32_t limbs[LIMBS] = {0};
	int exponent = exponent_of(bits_of(value));
	uint64_t mantissa = mantissa_of(bits_of(value));

	if (exponent)
		mantissa |= 1ull << MANTISSA_BITS;
	else
		exponent = 1;
	exponent -= EXPONENT_BIAS + MANTISSA_BITS;
	limbs[INTEGER_LIMBS - 1] = (uint32_t)(mantissa % LIMB);
	limbs[INTEGER_LIMBS - 2] = (uint32_t)(mantissa / LIMB);
	if (exponent > 0)
		limbs_double(limbs, exponent);
	else
		limbs_halve(limbs, -exponent);
	for (int i = 0; i < LIMBS; i++) {
		uint32_t limb = limbs[i];

		for (int j = LIMB_DIGITS - 1; j >= 0; j--, limb /= 10)
			d->digits[i * LIMB_DIGITS + j] = (char)('0' + limb % 10);
	}
	decimal_find_first(d);
}

static bool decimal_rounds_up(const struct decimal *d, int end)
{
	if (d->digits[end] != '5')
		return d->digits[end] > '5';
	for (int i = end + 1; i < DIGITS; i++)
		if (d->digits[i] != '0')
			return true;
	/* In the middle it rounds to the even digit. */
	return (d->digits[end - 1] - '0') % 2;
}

/* Rounds to the digits in front of `end`; nobody looks at those behind it any more. */
static void decimal_round(struct decimal *d, int end)
{
	int i = end - 1;

	if (end >= DIGITS || !decimal_rounds_up(d, end))
		return;
	while (d->digits[i] == '9')
		d->digits[i--] = '0';
	d->digits[i]++;
	if (i < d->first)
		d->first = i;
}

/* ---- texts ---- */

static void body_add(struct float_text *text, char c)
{
	text->body[text->length++] = c;
}

static void tail_make(struct float_text *text, char letter, int exponent, int least)
{
	unsigned int rest = (unsigned int)(exponent < 0 ? -exponent : exponent);
	char digits[8];
	int count = 0;

	for (; rest || count < least; rest /= 10)
		digits[count++] = (char)('0' + rest % 10);
	text->tail[0] = letter;
	text->tail[1] = exponent < 0 ? '-' : '+';
	text->tail_length = 2;
	while (count)
		text->tail[text->tail_length++] = digits[--count];
}

/* Makes the digits from `start` to `end`, with the point in front of the digit at `point`. */
static void body_make(struct float_text *text, const struct decimal *d, int start, int point,
		      int end, bool shows_point)
{
	for (int i = start; i < end; i++) {
		if (i == point)
			body_add(text, '.');
		body_add(text, d->digits[i]);
	}
	if (end <= point && shows_point)
		body_add(text, '.');
}

/* Returns the end of the last digit behind the point that is not 0. */
static int decimal_trim(const struct decimal *d, int point, int end)
{
	while (end > point && d->digits[end - 1] == '0')
		end--;
	return end;
}

static int digits_fewer(int a, int b)
{
	return a < b ? a : b;
}

static void text_fixed(struct float_text *text, struct decimal *d, int precision, bool alternate)
{
	int end = POINT + digits_fewer(precision, DIGITS - POINT);

	decimal_round(d, end);
	text->zeros = precision - (end - POINT);
	body_make(text, d, digits_fewer(d->first, POINT - 1), POINT, end, alternate);
}

static void text_scientific(struct float_text *text, struct decimal *d, char letter, int precision,
			    bool alternate)
{
	int end = d->first + 1 + digits_fewer(precision, DIGITS - d->first - 1), first = d->first;

	decimal_round(d, end);
	end -= first - d->first;
	text->zeros = precision - (end - d->first - 1);
	body_make(text, d, d->first, d->first + 1, end, alternate);
	tail_make(text, letter, POINT - 1 - d->first, 2);
}

/* Makes the shorter of both forms, with `precision` digits in all. */
static void text_general(struct float_text *text, struct decimal *d, char letter, int precision,
			 bool alternate)
{
	int digits = precision ? precision : 1, end, exponent, point, start;
	int first = d->first;

	end = first + digits_fewer(digits, DIGITS - first);
	decimal_round(d, end);
	end -= first - d->first;
	exponent = POINT - 1 - d->first;
	text->zeros = digits - (end - d->first);
	start = d->first;
	point = start + 1;
	if (exponent >= -4 && exponent < digits) {
		start = digits_fewer(start, POINT - 1);
		point = POINT;
	} else {
		tail_make(text, letter, exponent, 2);
	}
	if (!alternate) {
		text->zeros = 0;
		end = decimal_trim(d, point, end);
	}
	body_make(text, d, start, point, end, alternate);
}

static void text_hexadecimal(struct float_text *text, double value, char conversion, int precision,
			     bool alternate)
{
	const char *alphabet = conversion == 'A' ? "0123456789ABCDEF" : "0123456789abcdef";
	uint64_t mantissa = mantissa_of(bits_of(value));
	int exponent = exponent_of(bits_of(value)), digits = MANTISSA_DIGITS;

	if (exponent)
		mantissa |= 1ull << MANTISSA_BITS;
	else if (mantissa)
		exponent = 1;
	if (precision >= 0 && precision < digits) {
		int shift = 4 * (digits - precision);
		uint64_t half = 1ull << (shift - 1), rest = mantissa & (2 * half - 1);

		mantissa >>= shift;
		mantissa += rest > half || (rest == half && mantissa % 2);
		mantissa <<= shift;
		digits = precision;
	} else if (precision < 0) {
		while (digits && !(mantissa >> (4 * (MANTISSA_DIGITS - digits)) & 0xf))
			digits--;
	}
	text->zeros = precision > digits ? precision - digits : 0;
	body_add(text, alphabet[mantissa >> MANTISSA_BITS]);
	if (digits || alternate || text->zeros)
		body_add(text, '.');
	for (int i = 1; i <= digits; i++)
		body_add(text, alphabet[mantissa >> (MANTISSA_BITS - 4 * i) & 0xf]);
	tail_make(text, conversion == 'A' ? 'P' : 'p', exponent ? exponent - EXPONENT_BIAS : 0, 1);
}

void float_format(struct float_text *text, double value, char conversion, int precision,
		  bool alternate)
{
	int digits = precision < 0 ? 6 : precision;
	struct decimal d;

	text->length = 0;
	text->zeros = 0;
	text->tail_length = 0;
	if (conversion == 'a' || conversion == 'A') {
		text_hexadecimal(text, value, conversion, precision, alternate);
		return;
	}
	decimal_make(&d, value);
	if (conversion == 'f' || conversion == 'F')
		text_fixed(text, &d, digits, alternate);
	else if (conversion == 'e' || conversion == 'E')
		text_scientific(text, &d, conversion, digits, alternate);
	else
		text_general(text, &d, conversion == 'G' ? 'E' : 'e', digits, alternate);
}
