// SPDX-License-Identifier: BSD-2-Clause
/* printf's formatting for device code. */
#include "dpa/device/image.h"

#include <limits.h>
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

/* ---- floating-point numbers ---- */

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

/* Tells whether the number is finite; the sign of infinity or of no number is in its first bit. */
static bool float_is_finite(double value)
{
	return exponent_of(bits_of(value)) != EXPONENT_MAX;
}

static bool float_is_nan(double value)
{
	return !float_is_finite(value) && mantissa_of(bits_of(value));
}

static bool float_is_negative(double value)
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

/*
 * Makes the text of a finite number without its sign.  `conversion` is one of a e f g and their
 * capitals, `precision` is -1 if none is given, `alternate` is printf's flag.
 */
static void float_format(struct float_text *text, double value, char conversion, int precision,
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

/* ---- printf ---- */

enum format_flag {
	FORMAT_LEFT = 1,      /* - */
	FORMAT_PLUS = 2,      /* + */
	FORMAT_SPACE = 4,     /* a space where a plus could stand */
	FORMAT_ALTERNATE = 8, /* # */
	FORMAT_ZERO = 16,     /* 0 */
};

/* The parts between a percent sign and its conversion. */
struct format_spec {
	unsigned int flags;
	int width;
	int precision;	    /* -1: none was given */
	unsigned int bytes; /* of an argument that is a number */
	char conversion;
};

/* Where the text goes.  It counts on when there is no more room. */
struct format_out {
	char *text;
	size_t room;
	size_t total;
};

/* A va_list that functions can pass on and advance, whatever type it has on this processor. */
struct format_args {
	va_list ap;
};

static char char_read(const char *p)
{
	dpa_check_read(p, 1);
	return *p;
}

static void out_char(struct format_out *out, char c)
{
	if (out->total + 1 < out->room) {
		dpa_check_write(out->text + out->total, 1);
		out->text[out->total] = c;
	}
	out->total++;
}

static void out_repeat(struct format_out *out, char c, int times)
{
	for (; times > 0; times--)
		out_char(out, c);
}

static void out_text(struct format_out *out, const char *text, int length)
{
	for (int i = 0; i < length; i++)
		out_char(out, char_read(text + i));
}

/* Writes a string of `length` characters in a field of the spec's width. */
static void out_field(struct format_out *out, const struct format_spec *spec, const char *text,
		      int length)
{
	int pad = spec->width - length;

	if (!(spec->flags & FORMAT_LEFT))
		out_repeat(out, ' ', pad);
	out_text(out, text, length);
	if (spec->flags & FORMAT_LEFT)
		out_repeat(out, ' ', pad);
}

static unsigned int flag_of(char c)
{
	switch (c) {
	case '-':
		return FORMAT_LEFT;
	case '+':
		return FORMAT_PLUS;
	case ' ':
		return FORMAT_SPACE;
	case '#':
		return FORMAT_ALTERNATE;
	case '0':
		return FORMAT_ZERO;
	default:
		return 0;
	}
}

/*
 * Reads a decimal number or a star; a missing number is 0.  Numbers that do not fit an int stay at
 * INT_MAX.
 */
static const char *number_parse(const char *p, int *value, struct format_args *args)
{
	int64_t n = 0;

	if (char_read(p) == '*') {
		*value = va_arg(args->ap, int);
		return p + 1;
	}
	for (; char_read(p) >= '0' && *p <= '9'; p++)
		if (n < INT_MAX)
			n = n * 10 + (*p - '0');
	*value = n < INT_MAX ? (int)n : INT_MAX;
	return p;
}

static const char *size_parse(const char *p, unsigned int *bytes)
{
	*bytes = sizeof(int);
	switch (char_read(p)) {
	case 'h':
		*bytes = char_read(p + 1) == 'h' ? sizeof(char) : sizeof(short);
		return p + (*bytes == sizeof(char) ? 2 : 1);
	case 'l':
		*bytes = sizeof(long);
		return p + (char_read(p + 1) == 'l' ? 2 : 1);
	case 'L':
		*bytes = sizeof(long double);
		return p + 1;
	case 'j':
	case 'z':
	case 't':
		*bytes = sizeof(long);
		return p + 1;
	default:
		return p;
	}
}

/* Reads everything after the percent sign, up to and with the conversion. */
static const char *spec_parse(const char *p, struct format_spec *spec, struct format_args *args)
{
	unsigned int flag;

	spec->flags = 0;
	for (; (flag = flag_of(char_read(p))); p++)
		spec->flags |= flag;
	p = number_parse(p, &spec->width, args);
	if (spec->width < 0) {
		spec->flags |= FORMAT_LEFT;
		spec->width = spec->width == INT_MIN ? INT_MAX : -spec->width;
	}
	spec->precision = -1;
	if (char_read(p) == '.') {
		p = number_parse(p + 1, &spec->precision, args);
		if (spec->precision < 0)
			spec->precision = -1;
	}
	p = size_parse(p, &spec->bytes);
	spec->conversion = char_read(p);
	return spec->conversion ? p + 1 : p;
}

static uint64_t unsigned_argument(const struct format_spec *spec, struct format_args *args)
{
	switch (spec->bytes) {
	case 1:
		return (unsigned char)va_arg(args->ap, unsigned int);
	case 2:
		return (unsigned short)va_arg(args->ap, unsigned int);
	case 4:
		return va_arg(args->ap, unsigned int);
	default:
		return va_arg(args->ap, unsigned long);
	}
}

static int64_t signed_argument(const struct format_spec *spec, struct format_args *args)
{
	switch (spec->bytes) {
	case 1:
		return (signed char)va_arg(args->ap, int);
	case 2:
		return (short)va_arg(args->ap, int);
	case 4:
		return va_arg(args->ap, int);
	default:
		return va_arg(args->ap, long);
	}
}

/* Writes a number in its field: padding, sign or 0x, zeros, digits. */
static void out_number(struct format_out *out, const struct format_spec *spec, const char *prefix,
		       uint64_t value, unsigned int base)
{
	const char *alphabet = spec->conversion == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
	char digits[24]; /* octal has the most: 22 */
	int length = 0;
	int prefixes = 0;
	int zeros;
	int pad;

	for (uint64_t rest = value; rest; rest /= base)
		digits[length++] = alphabet[rest % base];
	while (prefix[prefixes])
		prefixes++;
	zeros = (spec->precision < 0 ? 1 : spec->precision) - length;
	if (base == 8 && (spec->flags & FORMAT_ALTERNATE) && zeros <= 0)
		zeros = 1;
	if (zeros < 0)
		zeros = 0;
	pad = spec->width - prefixes - length;
	pad = pad > zeros ? pad - zeros : 0;
	if ((spec->flags & FORMAT_ZERO) && !(spec->flags & FORMAT_LEFT) && spec->precision < 0) {
		zeros += pad;
		pad = 0;
	}
	if (!(spec->flags & FORMAT_LEFT))
		out_repeat(out, ' ', pad);
	for (int i = 0; i < prefixes; i++)
		out_char(out, prefix[i]);
	out_repeat(out, '0', zeros);
	while (length)
		out_char(out, digits[--length]);
	if (spec->flags & FORMAT_LEFT)
		out_repeat(out, ' ', pad);
}

static void out_signed(struct format_out *out, const struct format_spec *spec, int64_t value)
{
	const char *sign = "";

	if (value < 0)
		sign = "-";
	else if (spec->flags & FORMAT_PLUS)
		sign = "+";
	else if (spec->flags & FORMAT_SPACE)
		sign = " ";
	out_number(out, spec, sign, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10);
}

static void out_hexadecimal(struct format_out *out, const struct format_spec *spec, uint64_t value)
{
	const char *prefix = spec->conversion == 'X' ? "0X" : "0x";

	if (!(spec->flags & FORMAT_ALTERNATE) || !value)
		prefix = "";
	out_number(out, spec, prefix, value, 16);
}

static void out_string(struct format_out *out, const struct format_spec *spec, const char *text)
{
	int limit = spec->precision < 0 ? INT_MAX : spec->precision;
	int length = 0;

	if (!text)
		text = "(null)";
	/* a string that the precision ends needs no terminator */
	while (length < limit && char_read(text + length))
		length++;
	out_field(out, spec, text, length);
}

static const char *sign_of(const struct format_spec *spec, double value)
{
	if (float_is_negative(value))
		return "-";
	if (spec->flags & FORMAT_PLUS)
		return "+";
	return spec->flags & FORMAT_SPACE ? " " : "";
}

/* Infinity and not-a-number have a sign and no zeros in front. */
static void out_infinite(struct format_out *out, const struct format_spec *spec, double value)
{
	bool capital = spec->conversion < 'a';
	const char *name =
		float_is_nan(value) ? (capital ? "NAN" : "nan") : (capital ? "INF" : "inf");
	char text[4];
	int length = 0;

	for (const char *p = sign_of(spec, value); *p; p++)
		text[length++] = *p;
	while (*name)
		text[length++] = *name++;
	out_field(out, spec, text, length);
}

static void out_finite(struct format_out *out, const struct format_spec *spec, double value)
{
	const char *sign = sign_of(spec, value), *prefix = "";
	struct float_text text;
	int64_t pad;

	if (spec->conversion == 'a' || spec->conversion == 'A')
		prefix = spec->conversion == 'a' ? "0x" : "0X";
	float_format(&text, value, spec->conversion, spec->precision,
		     spec->flags & FORMAT_ALTERNATE);
	pad = (int64_t)spec->width - text.length - text.zeros - text.tail_length;
	pad -= (*sign ? 1 : 0) + (*prefix ? 2 : 0);
	if (pad < 0)
		pad = 0;
	if (!(spec->flags & (FORMAT_LEFT | FORMAT_ZERO)))
		out_repeat(out, ' ', (int)pad);
	if (*sign)
		out_char(out, *sign);
	for (; *prefix; prefix++)
		out_char(out, *prefix);
	if ((spec->flags & FORMAT_ZERO) && !(spec->flags & FORMAT_LEFT))
		out_repeat(out, '0', (int)pad);
	for (int i = 0; i < text.length; i++)
		out_char(out, text.body[i]);
	out_repeat(out, '0', text.zeros);
	for (int i = 0; i < text.tail_length; i++)
		out_char(out, text.tail[i]);
	if (spec->flags & FORMAT_LEFT)
		out_repeat(out, ' ', (int)pad);
}

static void out_float(struct format_out *out, const struct format_spec *spec,
		      struct format_args *args)
{
	double value = spec->bytes == sizeof(long double) ? (double)va_arg(args->ap, long double)
							  : va_arg(args->ap, double);

	if (float_is_finite(value))
		out_finite(out, spec, value);
	else
		out_infinite(out, spec, value);
}

/* Returns 0 if it does not know the conversion. */
static int out_conversion(struct format_out *out, struct format_spec *spec,
			  struct format_args *args)
{
	char c;

	switch (spec->conversion) {
	case 'd':
	case 'i':
		out_signed(out, spec, signed_argument(spec, args));
		return 1;
	case 'u':
		out_number(out, spec, "", unsigned_argument(spec, args), 10);
		return 1;
	case 'o':
		out_number(out, spec, "", unsigned_argument(spec, args), 8);
		return 1;
	case 'x':
	case 'X':
		out_hexadecimal(out, spec, unsigned_argument(spec, args));
		return 1;
	case 'p':
		out_number(out, spec, "0x", (uintptr_t)va_arg(args->ap, void *), 16);
		return 1;
	case 'c':
		c = (char)va_arg(args->ap, int);
		out_field(out, spec, &c, 1);
		return 1;
	case 's':
		out_string(out, spec, va_arg(args->ap, const char *));
		return 1;
	case 'n':
		(void)va_arg(args->ap, void *);
		return 1;
	case '%':
		out_char(out, '%');
		return 1;
	case 'a':
	case 'A':
	case 'e':
	case 'E':
	case 'f':
	case 'F':
	case 'g':
	case 'G':
		out_float(out, spec, args);
		return 1;
	default:
		return 0;
	}
}

int dpa_format(char *text, size_t room, const char *format, va_list ap)
{
	struct format_out out = {.text = text, .room = room};
	struct format_args args;
	struct format_spec spec;
	const char *next;
	char c;

	va_copy(args.ap, ap);
	for (const char *p = format; (c = char_read(p)); p = next) {
		next = p + 1;
		if (c != '%') {
			out_char(&out, c);
			continue;
		}
		next = spec_parse(next, &spec, &args);
		if (!out_conversion(&out, &spec, &args))
			out_text(&out, p, (int)(next - p));
	}
	va_end(args.ap);
	if (room) {
		char *end = text + (out.total < room ? out.total : room - 1);

		dpa_check_write(end, 1);
		*end = '\0';
	}
	return out.total > INT_MAX ? -1 : (int)out.total;
}
