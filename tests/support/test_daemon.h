/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run-time directory with a daemon of the test's own, clients of it by the client library, and
 * strangers, who speak to it by hand.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "fabric/client/client.h"
#include "fabric/client/link.h"

#define TEST_DAEMON_WAIT_MS 30000

/* Makes the directory's place; the argument of the program is the path of softhcad. */
void test_daemon_begin(int argc, char **argv);
void test_daemon_end(void);
/* The run-time directory, and the one that it lies in. */
const char *test_daemon_dir(void);
const char *test_daemon_base(void);
bool test_daemon_has_dir(void);
/* Waits until the directory has gone with the daemon. */
void test_daemon_await_end(void);
pid_t test_daemon_pid(void);
int test_daemon_set_port(uint32_t row, uint32_t state);

/* What a client was told. */
struct client_told {
	atomic_int channels, gone, lost;
	atomic_int peer, side, fd;
	atomic_int downs, ups, row;
};

/* Tells 'user', which is a struct client_told. */
struct fabric_client_ops test_client_ops(void *user);
struct fabric_client *test_client_open(struct client_told *t);
void test_client_await(atomic_int *value, int want);

int stranger_connect(void);
/* As a process of that host; tells its slot. */
int stranger_hello(const char *host, uint16_t *slot);
int stranger_call(int sock, struct msg *m, enum msg_type type);
int stranger_channel(int sock, uint16_t peer);
/* The daemon has closed on it, within the time allowed. */
void stranger_is_cut(int sock);

/* A process may have so many descriptors from now on; tells how many it might before. */
void test_limit_descriptors(pid_t pid, rlim_t n, struct rlimit *saved);
