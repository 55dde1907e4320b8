// SPDX-License-Identifier: BSD-2-Clause
/*
 * libflexio-libc: strings against the host's on random ones, and the standard files, which are messages.
 * Flex IO statements: 293.
 */
#include <string.h>

#include <libflexio-dev/flexio_dev.h>

#include "check.h"
#include "device_image.h"

#define ROUNDS 100000

static struct rng rng = {.state = 88172645463325252ull};

/* Few letters, so that strings have parts in common. */
static void random_string(char *text, size_t most)
{
	size_t length = rng_below(&rng, most);

	for (size_t i = 0; i < length; i++)
		text[i] = "ab\xff"[rng_below(&rng, 3)];
	text[length] = '\0';
}

static int sign(int n)
{
	return (n > 0) - (n < 0);
}

static void searches_are_the_same(const char *a, const char *b)
{
	int c = (unsigned char)"ab\xff\0z"[rng_below(&rng, 5)];
	size_t n = rng_below(&rng, 12);

	CHECK(dev_strlen(a) == strlen(a));
	CHECK(dev_strchr(a, c) == strchr(a, c) && dev_strrchr(a, c) == strrchr(a, c));
	CHECK(dev_memchr(a, c, strlen(a)) == memchr(a, c, strlen(a)));
	CHECK(dev_strstr(a, b) == strstr(a, b));
	CHECK(dev_strspn(a, b) == strspn(a, b) && dev_strcspn(a, b) == strcspn(a, b));
	CHECK(dev_strpbrk(a, b) == strpbrk(a, b));
	CHECK(sign(dev_strcmp(a, b)) == sign(strcmp(a, b)));
	CHECK(sign(dev_strncmp(a, b, n)) == sign(strncmp(a, b, n)));
}

typedef char *copy_function(char *dest, const char *src);
typedef char *counted_copy_function(char *dest, const char *src, size_t size);

/* Both begin with the same string, in memory that is the same behind it. */
static void begin_with(char got[64], char expected[64], const char *text)
{
	memset(got, 'g', 64);
	memcpy(got, text, strlen(text) + 1);
	memcpy(expected, got, 64);
}

static void copies_are_the_same(const char *a, const char *b)
{
	static copy_function *const device[] = {dev_strcpy, dev_strcat};
	static copy_function *const host[] = {strcpy, strcat};
	static counted_copy_function *const device_counted[] = {dev_strncpy, dev_strncat};
	static counted_copy_function *const host_counted[] = {strncpy, strncat};
	char got[64], expected[64];
	size_t n = rng_below(&rng, 24);

	for (int i = 0; i < 2; i++) {
		begin_with(got, expected, b);
		CHECK(device[i](got, a) == got);
		(void)host[i](expected, a);
		CHECK(!memcmp(got, expected, sizeof(got)));
		begin_with(got, expected, b);
		CHECK(device_counted[i](got, a, n) == got);
		(void)host_counted[i](expected, a, n);
		CHECK(!memcmp(got, expected, sizeof(got)));
	}
	begin_with(got, expected, b);
	CHECK(dev_strxfrm(got, a, n) == strlen(a));
	CHECK(!strncmp(got, a, n) && !memcmp(got + n, expected + n, sizeof(got) - n));
}

/* Flex IO statements: P293 */
static void strings(void)
{
	char a[24], b[8];

	for (int i = 0; i < ROUNDS; i++) {
		random_string(a, sizeof(a));
		random_string(b, sizeof(b));
		searches_are_the_same(a, b);
		copies_are_the_same(a, b);
	}
}

static void expect_message(uint32_t level, const char *text)
{
	static uint32_t messages;

	CHECK_SAY(device_messages == ++messages, "%u messages, not %u", device_messages, messages);
	CHECK(device_message_stream == 0 && device_message_level == level);
	CHECK_SAY(!strcmp(device_message, text), "\"%s\", not \"%s\"", device_message, text);
}

/* Each call is one message to the default stream. */
static void standard_files(void)
{
	CHECK(dev_printf("%d and %s", 1, "two") == 9);
	expect_message(FLEXIO_MSG_DEV_INFO, "1 and two");
	CHECK(dev_fprintf(dev_stdout, "%x", 255) == 2);
	expect_message(FLEXIO_MSG_DEV_INFO, "ff");
	CHECK(dev_fprintf(dev_stderr, "%x", 255) == 2);
	expect_message(FLEXIO_MSG_DEV_ERROR, "ff");
	CHECK(dev_puts("a line of 100%") >= 0);
	expect_message(FLEXIO_MSG_DEV_INFO, "a line of 100%\n");
	CHECK(dev_fputs("no line", dev_stderr) >= 0);
	expect_message(FLEXIO_MSG_DEV_ERROR, "no line");
	CHECK(dev_putchar('c') == 'c');
	expect_message(FLEXIO_MSG_DEV_INFO, "c");
	CHECK(!dev_fflush(dev_stdout) && !dev_fflush(NULL) && !dev_ferror(dev_stdout));
}

/* As the device's header declares it; that header's names are the host's, too. */
struct __file {
	int (*put)(char c, struct __file *file);
	int (*get)(struct __file *file);
	int (*flush)(struct __file *file);
	uint8_t flags;
	uint8_t unget;
};

static char taken[16];
static size_t taken_bytes;

static int take(char c, struct __file *file)
{
	(void)file;
	if (taken_bytes == sizeof(taken) - 1)
		return EOF;
	taken[taken_bytes++] = c;
	return 0;
}

static void own_files(void)
{
	struct __file file = {.put = take, .flags = 2};

	CHECK(dev_fprintf(&file, "%s=%d", "value", 12) == 8 && !strcmp(taken, "value=12"));
	CHECK(!dev_fflush(&file) && !dev_ferror(&file));
	CHECK(dev_fputs(" and more than fits", &file) == EOF && dev_ferror(&file));
	CHECK(!strcmp(taken, "value=12 and mo"));
}

static void texts(void)
{
	char text[8];

	CHECK(dev_snprintf(text, sizeof(text), "%s", "longer than that") == 16 &&
	      !strcmp(text, "longer "));
	CHECK(dev_sprintf(text, "%d", -123456) == 7 && !strcmp(text, "-123456"));
}

int main(void)
{
	device_image_init();
	device_image_opens();
	strings();
	standard_files();
	own_files();
	texts();
	return 0;
}
