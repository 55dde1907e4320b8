/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C library of device code: memory and strings.
 *
 * The functions are those of the C standard, in its "C" locale, and any number of threads may call
 * them at a time.  strerror() knows no errors: it returns "no error" for 0, otherwise "error".
 */
#ifndef _FLEXIO_LIBC_STRING_H_
#define _FLEXIO_LIBC_STRING_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *memchr(const void *mem, int c, size_t size);
int memcmp(const void *a, const void *b, size_t size);
void *memcpy(void *__restrict dest, const void *__restrict src, size_t size);
void *memmove(void *dest, const void *src, size_t size);
void *memset(void *mem, int c, size_t size);

size_t strlen(const char *str);
char *strcpy(char *__restrict dest, const char *__restrict src);
char *strncpy(char *__restrict dest, const char *__restrict src, size_t size);
char *strcat(char *__restrict dest, const char *__restrict src);
char *strncat(char *__restrict dest, const char *__restrict src, size_t size);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t size);
int strcoll(const char *a, const char *b);
size_t strxfrm(char *__restrict dest, const char *__restrict src, size_t size);

char *strchr(const char *str, int c);
char *strrchr(const char *str, int c);
char *strstr(const char *str, const char *part);
char *strpbrk(const char *str, const char *set);
size_t strspn(const char *str, const char *set);
size_t strcspn(const char *str, const char *set);

char *strerror(int error);

#ifdef __cplusplus
}
#endif

#endif
