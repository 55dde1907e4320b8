/* SPDX-License-Identifier: BSD-2-Clause */
/* What a test writes to standard error, as text. */
#pragma once

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

static int captured_file, captured_terminal;

static inline void capture_begin(void)
{
	captured_file = memfd_create("captured", 0);
	captured_terminal = dup(STDERR_FILENO);
	CHECK(captured_file >= 0 && captured_terminal >= 0);
	/* The kernel keeps no two writers of such a file from taking the same place, but for appenders. */
	CHECK(!fcntl(captured_file, F_SETFL, O_APPEND));
	CHECK(dup2(captured_file, STDERR_FILENO) >= 0);
}

/* All since capture_begin; valid until the next one ends. */
static inline const char *capture_end(void)
{
	static char text[65536];
	ssize_t n = pread(captured_file, text, sizeof(text) - 1, 0);

	dup2(captured_terminal, STDERR_FILENO);
	close(captured_terminal);
	close(captured_file);
	CHECK(n >= 0);
	text[n] = '\0';
	return text;
}

/* How often a text occurs in another. */
static inline unsigned captured_count(const char *in, const char *what)
{
	unsigned n = 0;

	while ((in = strstr(in, what))) {
		in += strlen(what);
		n++;
	}
	return n;
}
