// SPDX-License-Identifier: BSD-2-Clause
/*
 * The rest of string.h. Plain loops: in the checked variant the compiler's callbacks check each byte, since
 * nobody knows beforehand how long a string is.
 */
#include <stddef.h>

#include <libflexio-libc/string.h>

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

void *memchr(const void *s, int c, size_t n)
{
	const unsigned char *p = s;

	for (; n; n--, p++)
		if (*p == (unsigned char)c)
			return (void *)p;
	return NULL;
}

char *strcpy(char *restrict to, const char *restrict from)
{
	size_t i = 0;

	while ((to[i] = from[i]))
		i++;
	return to;
}

char *strncpy(char *restrict to, const char *restrict from, size_t n)
{
	size_t i = 0;

	for (; i < n && from[i]; i++)
		to[i] = from[i];
	for (; i < n; i++)
		to[i] = '\0';
	return to;
}

char *strcat(char *restrict to, const char *restrict from)
{
	strcpy(to + strlen(to), from);
	return to;
}

char *strncat(char *restrict to, const char *restrict from, size_t n)
{
	char *end = to + strlen(to);

	for (; n && *from; n--)
		*end++ = *from++;
	*end = '\0';
	return to;
}

int strncmp(const char *a, const char *b, size_t n)
{
	for (; n; n--, a++, b++) {
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

/* There is one locale, "C". */
int strcoll(const char *a, const char *b)
{
	return strcmp(a, b);
}

size_t strxfrm(char *restrict to, const char *restrict from, size_t n)
{
	size_t length = strlen(from);

	for (size_t i = 0; i < n && i <= length; i++)
		to[i] = from[i];
	return length;
}

char *strchr(const char *s, int c)
{
	for (;; s++) {
		if (*s == (char)c)
			return (char *)s;
		if (!*s)
			return NULL;
	}
}

char *strrchr(const char *s, int c)
{
	const char *found = NULL;

	for (;; s++) {
		if (*s == (char)c)
			found = s;
		if (!*s)
			return (char *)found;
	}
}

/* How many characters at the start of s are among those of `set` (in = 1), or are not (in = 0). */
static size_t string_span(const char *s, const char *set, int in)
{
	size_t n = 0;

	while (s[n] && !!strchr(set, s[n]) == in)
		n++;
	return n;
}

size_t strspn(const char *s, const char *accept)
{
	return string_span(s, accept, 1);
}

size_t strcspn(const char *s, const char *reject)
{
	return string_span(s, reject, 0);
}

char *strpbrk(const char *s, const char *accept)
{
	s += strcspn(s, accept);
	return *s ? (char *)s : NULL;
}

char *strstr(const char *s, const char *part)
{
	size_t length = strlen(part);

	for (;; s++) {
		if (!strncmp(s, part, length))
			return (char *)s;
		if (!*s)
			return NULL;
	}
}

/* There is no errno, so there are no numbers to be named. */
char *strerror(int number)
{
	return number ? (char *)"error" : (char *)"no error";
}
