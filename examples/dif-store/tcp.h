/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP connection through which client and target find each other.  It stays open: its end tells
 * each that the other has gone, however that came about.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* These complain and return -1 if they fail. */
int tcp_listen(unsigned port);
int tcp_connect(const char *host, unsigned port);
/* All bytes within a few seconds, or false with errno; ECONNRESET when the other has closed. */
bool tcp_send(int fd, const void *bytes, size_t n);
bool tcp_receive(int fd, void *bytes, size_t n);
