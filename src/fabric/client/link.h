/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a connection to softhcad: connects, starts the daemon on demand, and asks. */
#pragma once

#include "fabric/protocol.h"
#include "fabric/rundir.h"

/* Connects to the daemon of 'dir', of whatever version.  The descriptor, or a negative errno:
 * -ECONNREFUSED no daemon lives, -ETIMEDOUT one does not take the connection. */
int link_connect(const char *dir) must_check;
/*
 * Connects to the daemon of 'dir' and makes a first request, whose reply replaces it in *m.  If
 * 'daemon' is given, starts a missing daemon.  Waits for one that is just coming up or leaving.
 * Returns the connected descriptor, or negative errno: -ECONNREFUSED no daemon lives, -ETIMEDOUT
 * one does and has not answered in time, -EPROTO another version, which is then m->head.version,
 * -EPERM not ours, or the status of the reply.
 */
int link_open(const char *dir, const char *daemon, struct msg *m, enum msg_type type,
	      int fds[MSG_MAX_FDS]) must_check;
/* Makes one more request on a connection that nobody else reads from.  0 or a negative errno. */
int link_call(int sock, struct msg *m, enum msg_type type, int fds[MSG_MAX_FDS]) must_check;
/* Moves a descriptor that children inherit out of the way of programs that count on low numbers. */
int link_raise(int fd);

/*
 * Keeps SOFTHCA_DIR, SOFTHCA_HOST and SOFTHCA_DAEMON as they were when the program started:
 * programs change and clear their environment, and getenv is not safe while they do.
 */

struct fabric_environment {
	char dir[RUNDIR_BYTES];
	char host[FABRIC_NAME_BYTES]; /* may be empty: the first host */
	char daemon[4096];	      /* may be empty: not started on demand */
};

/* NULL if this process is on no fabric. */
const struct fabric_environment *fabric_environment(void);
/* Reads the variables again, for a launcher that has set them.  No other thread may be in a function of
 * this library. */
void fabric_environment_renew(void);
