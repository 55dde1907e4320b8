/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection to softhcad as its users make it: connect, start on demand, ask, be answered. */
#pragma once

#include "fabric/protocol.h"

/*
 * Connects to the daemon of 'dir' and makes a first request, whose reply replaces it in *m.  With
 * 'daemon' a missing daemon is started; one that leaves at this very moment is waited for.  The
 * connected descriptor, or negative errno: -ECONNREFUSED nothing answers, -ETIMEDOUT not in time,
 * -EPROTO another version, -EPERM not ours, or the status of the reply.
 */
int link_open(const char *dir, const char *daemon, struct msg *m, enum msg_type type,
	      int fds[MSG_MAX_FDS]) must_check;
/* One more request on a connection that nobody else reads from.  0 or negative errno. */
int link_call(int sock, struct msg *m, enum msg_type type, int fds[MSG_MAX_FDS]) must_check;
/* Moves a descriptor out of the way of programs that count on low numbers, to be inherited. */
int link_raise(int fd);
