// SPDX-License-Identifier: BSD-2-Clause
/*
 * stdio.h for device code: formatting into memory, and output to the host's default stream. Each
 * call to a standard file is a message of its own, so that its text stays together. A program's own
 * file (FDEV_SETUP_STREAM) takes characters one by one.
 */
#include "dpa/device/image.h"

#include <libflexio-dev/flexio_dev.h>
#include <libflexio-libc/stdio.h>

/* The most that is formatted for a program's own file, as in a message. */
#define FILE_TEXT_BYTES (DPA_MESSAGE_BYTES + 1)

/* The standard files differ by the level of their messages.  They have no functions, which tells
 * them from others. */
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

int fputc(int c, FILE *stream)
{
	if (file_is_standard(stream))
		return message_print(file_level(stream), "%c", c) == 1 ? (unsigned char)c : EOF;
	dpa_check_write(stream, sizeof(*stream));
	if (stream->put && stream->put((char)c, stream) >= 0)
		return (unsigned char)c;
	stream->flags |= __FDEV_ERR;
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

int vfprintf(FILE *restrict stream, const char *restrict format, va_list ap)
{
	char text[FILE_TEXT_BYTES];
	int length;

	if (file_is_standard(stream))
		return message_format(FLEXIO_MSG_DEV_DEFAULT_STREAM_ID, file_level(stream), format,
				      ap);
	length = dpa_format(text, sizeof(text), format, ap);
	return file_text(stream, text) == EOF ? EOF : length;
}

int fprintf(FILE *restrict stream, const char *restrict format, ...)
{
	va_list ap;
	int length;

	va_start(ap, format);
	length = vfprintf(stream, format, ap);
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

int vsnprintf(char *restrict str, size_t size, const char *restrict format, va_list ap)
{
	return dpa_format(str, size, format, ap);
}

int snprintf(char *restrict str, size_t size, const char *restrict format, ...)
{
	va_list ap;
	int length;

	va_start(ap, format);
	length = dpa_format(str, size, format, ap);
	va_end(ap);
	return length;
}

int vsprintf(char *restrict str, const char *restrict format, va_list ap)
{
	return dpa_format(str, (size_t)-1, format, ap);
}

int sprintf(char *restrict str, const char *restrict format, ...)
{
	va_list ap;
	int length;

	va_start(ap, format);
	length = vsprintf(str, format, ap);
	va_end(ap);
	return length;
}

int putc(int c, FILE *stream)
{
	return fputc(c, stream);
}

int putchar(int c)
{
	return fputc(c, stdout);
}

int fputs(const char *restrict str, FILE *restrict stream)
{
	if (file_is_standard(stream))
		return message_print(file_level(stream), "%s", str) < 0 ? EOF : 0;
	return file_text(stream, str) == EOF ? EOF : 0;
}

int puts(const char *str)
{
	return message_print(FLEXIO_MSG_DEV_INFO, "%s\n", str) < 0 ? EOF : 0;
}

int fflush(FILE *stream)
{
	/* the standard files hold nothing back */
	if (!stream || file_is_standard(stream))
		return 0;
	dpa_check_read(stream, sizeof(*stream));
	return stream->flush ? stream->flush(stream) : 0;
}

static int file_flag(const FILE *file, uint8_t flag)
{
	dpa_check_read(file, sizeof(*file));
	return !!(file->flags & flag);
}

int feof(FILE *stream)
{
	return file_flag(stream, __FDEV_EOF);
}

int ferror(FILE *stream)
{
	return file_flag(stream, __FDEV_ERR);
}

void clearerr(FILE *stream)
{
	dpa_check_write(stream, sizeof(*stream));
	stream->flags &= (uint8_t) ~(__FDEV_ERR | __FDEV_EOF);
}

/* There is no errno to name. */
void perror(const char *str)
{
	message_print(FLEXIO_MSG_DEV_ERROR, "%s\n", str ? str : "");
}
