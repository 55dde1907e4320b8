// SPDX-License-Identifier: BSD-2-Clause
/*
 * The rest of string.h.  These are plain loops: in the checked variant the compiler's callbacks
 * check each byte, because nobody knows beforehand how long a string is.
 */
#include <stddef.h>

#include <libflexio-libc/string.h>

size_t strlen(const char *str)
{
	size_t n = 0;

	while (str[n])
		n++;
	return n;
}

void *memchr(const void *mem, int c, size_t size)
{
	const unsigned char *p = mem;

	for (; size; size--, p++)
		if (*p == (unsigned char)c)
			return (void *)p;
	return NULL;
}

char *strcpy(char *restrict dest, const char *restrict src)
{
	size_t i = 0;

	while ((dest[i] = src[i]))
		i++;
	return dest;
}

char *strncpy(char *restrict dest, const char *restrict src, size_t size)
{
	size_t i = 0;

	for (; i < size && src[i]; i++)
		dest[i] = src[i];
	for (; i < size; i++)
		dest[i] = '\0';
	return dest;
}

char *strcat(char *restrict dest, const char *restrict src)
{
	strcpy(dest + strlen(dest), src);
	return dest;
}

char *strncat(char *restrict dest, const char *restrict src, size_t size)
{
	char *end = dest + strlen(dest);

	for (; size && *src; size--)
		*end++ = *src++;
	*end = '\0';
	return dest;
}

int strncmp(const char *a, const char *b, size_t size)
{
	for (; size; size--, a++, b++) {
		if (*a != *b)
			return (unsigned char)*a - (unsigned char)*b;
		if (!*a)
			break;
	}
	return 0;
}

int strcmp(const char *a, const char *b)
{
	return strncmp(a, b, (size_t)-1);
}

/* "C" is the only locale. */
int strcoll(const char *a, const char *b)
{
	return strcmp(a, b);
}

size_t strxfrm(char *restrict dest, const char *restrict src, size_t size)
{
	size_t length = strlen(src);

	for (size_t i = 0; i < size && i <= length; i++)
		dest[i] = src[i];
	return length;
}

char *strchr(const char *str, int c)
{
	for (;; str++) {
		if (*str == (char)c)
			return (char *)str;
		if (!*str)
			return NULL;
	}
}

char *strrchr(const char *str, int c)
{
	const char *found = NULL;

	for (;; str++) {
		if (*str == (char)c)
			found = str;
		if (!*str)
			return (char *)found;
	}
}

/*
 * Counts characters at the start of s that are among those of `set` (in = 1), or are not (in = 0).
 */
static size_t string_span(const char *s, const char *set, int in)
{
	size_t n = 0;

	while (s[n] && !!strchr(set, s[n]) == in)
		n++;
	return n;
}

size_t strspn(const char *str, const char *set)
{
	return string_span(str, set, 1);
}

size_t strcspn(const char *str, const char *set)
{
	return string_span(str, set, 0);
}

char *strpbrk(const char *str, const char *set)
{
	str += strcspn(str, set);
	return *str ? (char *)str : NULL;
}

char *strstr(const char *str, const char *part)
{
	size_t length = strlen(part);

	for (;; str++) {
		if (!strncmp(str, part, length))
			return (char *)str;
		if (!*str)
			return NULL;
	}
}

/* There is no errno, so there are no numbers to name. */
char *strerror(int error)
{
	return error ? (char *)"error" : (char *)"no error";
}
