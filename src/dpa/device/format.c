// SPDX-License-Identifier: BSD-2-Clause
#include "dpa/device/format.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "dpa/device/float.h"
#include "dpa/device/image.h"

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
