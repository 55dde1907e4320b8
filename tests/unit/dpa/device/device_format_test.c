// SPDX-License-Identifier: BSD-2-Clause
/*
 * printf of the device library prints what the host's prints: random conversions with random flags, widths,
 * precisions, sizes and values, in buffers of random sizes.  Flex IO statements: 254.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "device_image.h"
#include "dpa/device/image.h"

/* The formats are made up, and some are wrong on purpose. */
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-overflow"
#pragma GCC diagnostic ignored "-Wformat-truncation"
#pragma GCC diagnostic ignored "-Wformat-security"

#define ROUNDS 200000
#define TEXT   700
#define GUARD  0x5a

static struct rng rng = {.state = 88172645463325252ull};

/* Formats by the library, and sees that it stayed within the room. */
static __attribute__((format(printf, 3, 4))) int format_device(char text[TEXT], size_t room,
							       const char *format, ...)
{
	va_list ap;
	int length;

	memset(text, GUARD, TEXT);
	va_start(ap, format);
	length = dpa_format(text, room, format, ap);
	va_end(ap);
	for (size_t i = room; i < TEXT; i++)
		CHECK_SAY(text[i] == GUARD, "byte %zu of %zu, format \"%s\"", i, room, format);
	return length;
}

/* Of the lengths that matter: none, one, around the length of usual texts, plenty. */
static size_t random_room(void)
{
	return rng_below(&rng, 4) ? rng_below(&rng, 40) : TEXT - 1;
}

static char *add_flags(char *p, const char *flags)
{
	for (; *flags; flags++)
		if (!rng_below(&rng, 3))
			*p++ = *flags;
	return p;
}

/* Values with few and with many digits, and the ends of the ranges. */
static uint64_t random_value(void)
{
	switch (rng_below(&rng, 8)) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return (uint64_t)INT64_MIN;
	case 3:
		return (uint32_t)INT_MIN;
	default:
		return rng_next(&rng) >> rng_below(&rng, 64);
	}
}

/* Width and precision: none, in the format, or by a star (then *stars counts them). */
static char *add_number(char *p, int value, unsigned int *stars)
{
	switch (rng_below(&rng, 3)) {
	case 0:
		return p;
	case 1:
		(*stars)++;
		*p++ = '*';
		return p;
	default:
		return p + sprintf(p, "%d", value < 0 ? -value : value);
	}
}

struct conversion {
	char format[64];
	bool width_star, precision_star;
	int width, precision;
};

static void random_conversion(struct conversion *c, const char *flags, const char *size,
			      char conversion)
{
	unsigned int width_stars = 0, precision_stars = 0;
	char *p = c->format + sprintf(c->format, "<%%");

	c->width = (int)rng_below(&rng, 60) - 20;
	c->precision = (int)rng_below(&rng, 40) - 5;
	p = add_flags(p, flags);
	p = add_number(p, c->width, &width_stars);
	if (rng_below(&rng, 2)) {
		*p++ = '.';
		p = add_number(p, c->precision, &precision_stars);
	}
	sprintf(p, "%s%c>", size, conversion);
	c->width_star = width_stars;
	c->precision_star = precision_stars;
}

static void compare(const struct conversion *c, size_t room, const char *got, int got_length,
		    const char *expected, int expected_length)
{
	CHECK_SAY(got_length == expected_length,
		  "%d, not %d: \"%s\" (%d, %d) gives \"%s\", not \"%s\"", got_length,
		  expected_length, c->format, c->width, c->precision, got, expected);
	CHECK_SAY(!room || !strcmp(got, expected), "\"%s\" (%d, %d) gives \"%s\", not \"%s\"",
		  c->format, c->width, c->precision, got, expected);
}

/* The same call of both, with as many stars as the format has. */
#define COMPARE(c, value)                                                                     \
	do {                                                                                  \
		size_t room = random_room();                                                  \
		char got[TEXT], expected[TEXT];                                               \
		int n, m;                                                                     \
                                                                                              \
		if ((c)->width_star && (c)->precision_star) {                                 \
			n = format_device(got, room, (c)->format, (c)->width, (c)->precision, \
					  value);                                             \
			m = snprintf(expected, room, (c)->format, (c)->width, (c)->precision, \
				     value);                                                  \
		} else if ((c)->width_star || (c)->precision_star) {                          \
			int star = (c)->width_star ? (c)->width : (c)->precision;             \
                                                                                              \
			n = format_device(got, room, (c)->format, star, value);               \
			m = snprintf(expected, room, (c)->format, star, value);               \
		} else {                                                                      \
			n = format_device(got, room, (c)->format, value);                     \
			m = snprintf(expected, room, (c)->format, value);                     \
		}                                                                             \
		compare(c, room, got, n, expected, m);                                        \
	} while (0)

static void integers_are_the_same(void)
{
	static const char *const sizes[] = {"", "h", "hh", "l", "ll", "j", "z", "t"};
	struct conversion c;

	for (int i = 0; i < ROUNDS; i++) {
		const char *size = sizes[rng_below(&rng, 8)];
		uint64_t value = random_value();

		random_conversion(&c, "-+ #0", size, "diuoxX"[rng_below(&rng, 6)]);
		if (*size == '\0' || *size == 'h')
			COMPARE(&c, (int)value);
		else
			COMPARE(&c, (long)value);
	}
}

/* What the standard leaves open (zeros before a string) is left out. */
static void texts_are_the_same(void)
{
	char text[50];
	struct conversion c;
	int one;

	for (int i = 0; i < ROUNDS / 4; i++) {
		size_t length = rng_below(&rng, sizeof(text));

		for (size_t k = 0; k < length; k++)
			text[k] = (char)(1 + rng_below(&rng, 255));
		text[length] = '\0';
		random_conversion(&c, "-", "", 's');
		COMPARE(&c, text);
		random_conversion(&c, "-", "", 'c');
		one = (int)rng_below(&rng, 256);
		COMPARE(&c, one);
	}
}

static void pointers_are_the_same(void)
{
	struct conversion c;

	for (int i = 0; i < ROUNDS / 8; i++) {
		uint64_t value = random_value();

		random_conversion(&c, "-", "", 'p');
		/* a precision of pointers, and what NULL looks like, is up to the library */
		if (!strchr(c.format, '.') && value)
			COMPARE(&c, (void *)(uintptr_t)value);
	}
}

/* Flex IO statements: N253 N254 */
static void several_arguments(void)
{
	char got[TEXT], expected[TEXT];

#define BOTH(...)                                                                              \
	CHECK(format_device(got, TEXT, __VA_ARGS__) == snprintf(expected, TEXT, __VA_ARGS__)); \
	CHECK_SAY(!strcmp(got, expected), "\"%s\", not \"%s\"", got, expected)

	BOTH("Calculate: %lu + %lu = %lu\n", 2ul, 3ul, 5ul);
	BOTH("%d %u %ld %lu %lx %x %c %s %p %%", -1, 2u, -3l, 4ul, 0x5ul, 0x6u, '7', "eight",
	     (void *)got);
	BOTH("%s", "");
	BOTH("no conversion at all");
	BOTH("%5%|%d", 7);
	BOTH("%*.*s|%-*d|%s", 9, 2, "abcdef", 6, 42,
	     "the last of many arguments, which comes from the stack");
#undef BOTH
}

/* Numbers that people write, and all others: each has as many digits as is asked for. */
static double random_double(void)
{
	static const double some[] = {0.0,	-0.0,	       1.0,
				      0.5,	9.5,	       99999.95,
				      0.0001,	1e15,	       9.9999995,
				      1e-5,	123456789.125, 1e22,
				      4.9e-324, 2.2e-308,      1.7976931348623157e308};
	uint64_t bits = rng_next(&rng);
	double value;

	switch (rng_below(&rng, 4)) {
	case 0:
		return some[rng_below(&rng, sizeof(some) / sizeof(some[0]))];
	case 1:
		return (double)(int64_t)rng_below(&rng, 1000000) /
		       (double)(1 + rng_below(&rng, 1000));
	case 2:
		/* halves, which round to the even digit */
		return ((double)rng_below(&rng, 2000) + 0.5) / (double)(1u << rng_below(&rng, 8));
	default:
		memcpy(&value, &bits, sizeof(value));
		return value;
	}
}

/* The host's %#g forgets its zeros where rounding makes a number longer (1.e+06): that is left out. */
static void floats_are_the_same(void)
{
	struct conversion c;

	for (int i = 0; i < ROUNDS / 20; i++) {
		double value = random_double();

		random_conversion(&c, "-+ #0", "", "aAeEfF"[rng_below(&rng, 6)]);
		COMPARE(&c, value);
		random_conversion(&c, "-+ 0", "", "gG"[rng_below(&rng, 2)]);
		COMPARE(&c, value);
		random_conversion(&c, "-+ 0", "L", "eEfFgG"[rng_below(&rng, 6)]);
		COMPARE(&c, (long double)value);
	}
}

static int format_long(char *text, size_t room, const char *format, ...)
{
	va_list ap;
	int length;

	va_start(ap, format);
	length = dpa_format(text, room, format, ap);
	va_end(ap);
	return length;
}

/* More digits than a number has, and all that it has. */
static void all_digits(void)
{
	static const char *const formats[] = {"%.1200f", "%.1200e",	 "%.1200g",   "%#.1200g",
					      "%1500f",	 "%-1500.700e|", "%01500.3g", "%.100a"};
	static const double values[] = {4.9406564584124654e-324,
					1.7976931348623157e308,
					0.1,
					1e300,
					2.2250738585072009e-308,
					-1.0 / 3};
	char got[4096], expected[4096];

	for (unsigned int f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
		for (unsigned int v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
			int n = format_long(got, sizeof(got), formats[f], values[v]);

			CHECK(n == snprintf(expected, sizeof(expected), formats[f], values[v]));
			CHECK_SAY(!strcmp(got, expected), "%s: \"%s\", not \"%s\"", formats[f], got,
				  expected);
		}
}

/* What this library does in its own way. */
static void own_ways(void)
{
	char text[TEXT];

	CHECK(format_device(text, TEXT, "%p|%8p", (void *)0, (void *)0) == 12);
	CHECK(!strcmp(text, "0x0|     0x0"));
	CHECK(format_device(text, TEXT, "%s|%.3s", (char *)NULL, (char *)NULL) == 10);
	CHECK(!strcmp(text, "(null)|(nu"));
	/* the argument is taken, so the next one is the right one */
	/* a long double is the double next to it, also where that is infinite */
	CHECK(format_device(text, TEXT, "%Lg|%d|%Lf", 1e4000L, 1, 0.1L) == 14);
	CHECK(!strcmp(text, "inf|1|0.100000"));
	CHECK(format_device(text, TEXT, "%#g|%#.3g|%#.0f", 999999.5, 1.0, 2.0) == 19);
	CHECK(!strcmp(text, "1.00000e+06|1.00|2."));
	CHECK(format_device(text, TEXT, "%s", "") == 0 && !text[0]);
	CHECK(dpa_format(NULL, 0, "twelve bytes", (va_list){0}) == 12);
	CHECK(dpa_format(text, TEXT, "100%! %y and %", (va_list){0}) == 14);
	CHECK(!strcmp(text, "100%! %y and %"));
}

int main(void)
{
	device_image_init();
	device_image_opens();
	integers_are_the_same();
	texts_are_the_same();
	pointers_are_the_same();
	several_arguments();
	floats_are_the_same();
	all_digits();
	own_ways();
	return 0;
}
