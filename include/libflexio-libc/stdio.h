/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C library of device code: formatted output.
 *
 * There are no files.  stdout is the default message stream at level FLEXIO_MSG_DEV_INFO, stderr
 * the same at level FLEXIO_MSG_DEV_ERROR, stdin has no input; a program makes a stream of its own
 * with FDEV_SETUP_STREAM.  What one call prints to stdout or stderr is one message: it stays
 * together.  Any number of threads may call the functions at a time, but a program's own stream
 * serves one thread at a time.
 *
 * The functions are those of the C standard, with its results, unless something else stands here.
 */
#ifndef _FLEXIO_LIBC_STDIO_H_
#define _FLEXIO_LIBC_STDIO_H_

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A stream. */
struct __file {
	/** Takes one character.  Returns 0, or EOF if it cannot. */
	int (*put)(char c, struct __file *stream);
	/** Gives one character, or EOF. */
	int (*get)(struct __file *stream);
	/** Sends on what was put.  Returns 0 or EOF. */
	int (*flush)(struct __file *stream);
	/** _FDEV_SETUP_..., and __FDEV_ERR and __FDEV_EOF of the past. */
	uint8_t flags;
	uint8_t unget;
};

typedef struct __file FILE;

#define EOF (-1)

/* Directions of a stream. */
#define _FDEV_SETUP_READ  (0x01)
#define _FDEV_SETUP_WRITE (0x02)
#define _FDEV_SETUP_RW	  (_FDEV_SETUP_READ | _FDEV_SETUP_WRITE)
#define __FDEV_ERR	  (0x10)
#define __FDEV_EOF	  (0x20)

/** Initialiser of a stream of the program's own. */
#define FDEV_SETUP_STREAM(put_function, get_function, flush_function, directions) \
	{                                                                         \
		(put_function), (get_function), (flush_function), (directions), 0 \
	}

extern FILE *const stdin;
extern FILE *const stdout;
extern FILE *const stderr;

int fputc(int c, FILE *stream);
int putc(int c, FILE *stream);
int putchar(int c);
int fputs(const char *str, FILE *stream);
int puts(const char *str);

__attribute__((__format__(__printf__, 1, 2))) int printf(const char *format, ...);
__attribute__((__format__(__printf__, 2, 3))) int fprintf(FILE *stream, const char *format, ...);
__attribute__((__format__(__printf__, 2, 3))) int sprintf(char *str, const char *format, ...);
__attribute__((__format__(__printf__, 3, 4))) int snprintf(char *str, size_t size,
							   const char *format, ...);
__attribute__((__format__(__printf__, 1, 0))) int vprintf(const char *format, va_list ap);
__attribute__((__format__(__printf__, 2, 0))) int vfprintf(FILE *stream, const char *format,
							   va_list ap);
__attribute__((__format__(__printf__, 2, 0))) int vsprintf(char *str, const char *format,
							   va_list ap);
__attribute__((__format__(__printf__, 3, 0))) int vsnprintf(char *str, size_t size,
							    const char *format, va_list ap);

void clearerr(FILE *stream);
int feof(FILE *stream);
int ferror(FILE *stream);
int fflush(FILE *stream);
/** perror() - prints @str and a newline, because device code has no errno. */
void perror(const char *str);

#ifdef __cplusplus
}
#endif

#endif
