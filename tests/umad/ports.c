// SPDX-License-Identifier: BSD-2-Clause
/* What a port says of itself in sysfs, and the words with which a test ends that fails. */
#include "checklist.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned failed_statement;

void failed(const char *file, int line, const char *format, ...)
{
	va_list arguments;
	const char *base = strrchr(file, '/');

	if (failed_statement)
		printf("%u: ", failed_statement);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf(" (%s:%d)\n", base ? base + 1 : file, line);
	fflush(stdout);
	_exit(1);
}

const char *text_of(const char *format, ...)
{
	static char text[256];
	char path[256];
	va_list arguments;
	ssize_t n;
	int fd;

	va_start(arguments, format);
	vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	text[0] = 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return text;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	text[strcspn(text, "\n")] = 0;
	return text;
}

#define PORT_FILE "/sys/class/infiniband/mlx5_0/ports/%u/"

uint16_t lid_of(unsigned port)
{
	return (uint16_t)strtoul(text_of(PORT_FILE "lid", port), NULL, 0);
}

void gid_of(unsigned port, uint8_t gid[16])
{
	const char *text = text_of(PORT_FILE "gids/0", port);

	for (unsigned i = 0; i < 8; i++) {
		unsigned long v = strtoul(text + (size_t)5 * i, NULL, 16);

		gid[2 * i] = (uint8_t)(v >> 8);
		gid[2 * i + 1] = (uint8_t)v;
	}
}

bool issm_bit_of(unsigned port)
{
	return strtoul(text_of(PORT_FILE "cap_mask", port), NULL, 0) & ISSM_BIT;
}
