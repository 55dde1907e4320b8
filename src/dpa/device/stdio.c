// SPDX-License-Identifier: BSD-2-Clause
/*
 * stdio.h for device code: formatting into memory, and output to the host's default stream. Each call to a
 * standard file is a message of its own, so that its text stays together. A program's own file
 * (FDEV_SETUP_STREAM) takes characters one by one.
 */
#include "dpa/device/format.h"
#include "dpa/device/image.h"
#include "dpa/device/message.h"

#include <libflexio-dev/flexio_dev.h>
#include <libflexio-libc/stdio.h>

/* What is formatted for a program's own file at most, as in a message. */
#define FILE_TEXT_BYTES (DPA_MESSAGE_BYTES + 1)

/* The standard files differ by the level of their messages. They have no functions, which marks them. */
static FILE file_in;
static FILE file_out;
static FILE file_err;

FILE *const stdin = &file_in;
FILE *const stdout = &file_out;
FILE *const stderr = &file_err;

static int file_is_standard(const FILE *file)
{
	return file == &file_out || file == &file_err;
}

static uint32_t file_level(const FILE *file)
{
	return file == &file_err ? FLEXIO_MSG_DEV_ERROR : FLEXIO_MSG_DEV_INFO;
}

static int message_print(uint32_t level, const char *format, ...)
{
	va_list ap;
	int length;

	va_start(ap, format);
	length = message_format(FLEXIO_MSG_DEV_DEFAULT_STREAM_ID, level, format, ap);
	va_end(ap);
	return length;
}

int fputc(int c, FILE *file)
{
	if (file_is_standard(file))
		return message_print(file_level(file), "%c", c) == 1 ? (unsigned char)c : EOF;
	dpa_check_write(file, sizeof(*file));
	if (file->put && file->put((char)c, file) >= 0)
		return (unsigned char)c;
	file->flags |= __FDEV_ERR;
	return EOF;
}

static int file_text(FILE *file, const char *text)
{
	int n = 0;

	for (; text[n]; n++)
		if (fputc(text[n], file) == EOF)
			return EOF;
	return n;
}

int vfprintf(FILE *restrict file, const char *restrict format, va_list ap)
{
	char text[FILE_TEXT_BYTES];
	int length;

	if (file_is_standard(file))
		return message_format(FLEXIO_MSG_DEV_DEFAULT_STREAM_ID, file_level(file), format,
				      ap);
	length = dpa_format(text, sizeof(text), format, ap);
	return file_text(file, text) == EOF ? EOF : length;
}

int fprintf(FILE *restrict file, const char *restrict format, ...)
{
	va_list ap;
	int length;

	va_start(ap, format);
	length = vfprintf(file, format, ap);
	va_end(ap);
	return length;
}

int vprintf(const char *restrict format, va_list ap)
{
	return message_format(FLEXIO_MSG_DEV_DEFAULT_STREAM_ID, FLEXIO_MSG_DEV_INFO, format, ap);
}

int printf(const char *restrict format, ...)
{
	va_list ap;
	int length;

	va_start(ap, format);
	length = vprintf(format, ap);
	va_end(ap);
	return length;
}

int vsnprintf(char *restrict text, size_t room, const char *restrict format, va_list ap)
{
	return dpa_format(text, room, format, ap);
}

int snprintf(char *restrict text, size_t room, const char *restrict format, ...)
{
	va_list ap;
	int length;

	va_start(ap, format);
	length = dpa_format(text, room, format, ap);
	va_end(ap);
	return length;
}

int vsprintf(char *restrict text, const char *restrict format, va_list ap)
{
	return dpa_format(text, (size_t)-1, format, ap);
}

int sprintf(char *restrict text, const char *restrict format, ...)
{
	va_list ap;
	int length;

	va_start(ap, format);
	length = vsprintf(text, format, ap);
	va_end(ap);
	return length;
}

int putc(int c, FILE *file)
{
	return fputc(c, file);
}

int putchar(int c)
{
	return fputc(c, stdout);
}

int fputs(const char *restrict text, FILE *restrict file)
{
	if (file_is_standard(file))
		return message_print(file_level(file), "%s", text) < 0 ? EOF : 0;
	return file_text(file, text) == EOF ? EOF : 0;
}

int puts(const char *text)
{
	return message_print(FLEXIO_MSG_DEV_INFO, "%s\n", text) < 0 ? EOF : 0;
}

int fflush(FILE *file)
{
	/* nothing is kept back of the standard files */
	if (!file || file_is_standard(file))
		return 0;
	dpa_check_read(file, sizeof(*file));
	return file->flush ? file->flush(file) : 0;
}

static int file_flag(const FILE *file, uint8_t flag)
{
	dpa_check_read(file, sizeof(*file));
	return !!(file->flags & flag);
}

int feof(FILE *file)
{
	return file_flag(file, __FDEV_EOF);
}

int ferror(FILE *file)
{
	return file_flag(file, __FDEV_ERR);
}

void clearerr(FILE *file)
{
	dpa_check_write(file, sizeof(*file));
	file->flags &= (uint8_t) ~(__FDEV_ERR | __FDEV_EOF);
}

/* There is no errno to be named. */
void perror(const char *text)
{
	message_print(FLEXIO_MSG_DEV_ERROR, "%s\n", text ? text : "");
}
