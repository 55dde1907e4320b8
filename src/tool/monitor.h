/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a fabric is doing: looks at ports, programs, queue pairs and faults, again and again, and says
 * what went over them between two looks.  For softhca top and the page of softhca fabric show.
 * Nobody who is looked at is asked or waited for.
 */
#pragma once

#include "tool/programs.h"

struct monitor_port {
	uint32_t row;
	char host[FABRIC_NAME_BYTES], device[FABRIC_NAME_BYTES];
	uint32_t number;
	bool ethernet, active;
	char state[32], speed[64]; /* "ACTIVE", "400 Gb/sec (4X NDR)" */
	uint64_t bytes_sent, bytes_received, packets_sent, packets_received, errors;
	char why[160]; /* the counters of errors that are not 0 */
	/* Per second since the look before; 0 at the first one. */
	double sent, received, packets;
	bool new_errors; /* since the look before */
};

struct monitor_qp {
	uint32_t program; /* its index */
	uint32_t qpn;
	const char *transport, *state; /* state "-": it is not known */
	char device[FABRIC_NAME_BYTES];
	char peer[2 * FABRIC_NAME_BYTES + 16]; /* "host2/mlx5_0 0x401" or "-" */
	struct figure outstanding, receives;   /* posted */
	uint64_t blocks, taken;		       /* of the send ring fetched; receives taken */
	uint32_t failures;
	char why[OBJECT_WHY_BYTES]; /* of the last failure */
	/* Per second since the look before: blocks of the send queue (most requests have one), and
	 * receives. */
	double sends, takes;
};

struct monitor_program {
	int32_t pid;
	char host[FABRIC_NAME_BYTES];
	char command[PROGRAM_COMMAND_BYTES];
	const char *state;
	uint32_t nqps;
	double sends, takes; /* of its queue pairs */
};

/* One look. */
struct monitor_look {
	uint64_t ns; /* CLOCK_MONOTONIC */
	struct monitor_port *ports;
	struct monitor_qp *qps;
	struct monitor_program *programs;
	char **faults; /* as softhca fabric impair and softhca inject list them */
	uint32_t nports, nqps, nprograms, nfaults;
	uint32_t nhosts;
};

struct monitor {
	const struct session *s;
	struct view view;
	struct monitor_look now, before;
};

/* Looks once.  False after an error line. */
bool monitor_open(struct monitor *m, const struct session *s) must_check;
/* Looks again; m->now is the new look.  0 or -errno, of which monitor_error makes a line: the fabric has
 * gone, or memory is short. */
int monitor_next(struct monitor *m) must_check;
void monitor_error(const struct monitor *m, int error);
void monitor_close(struct monitor *m);

/* "12.3 GB", "0 B": with the unit in front of which the number has at most four digits. */
#define MONITOR_AMOUNT 24u
const char *monitor_amount(double value, const char *unit, char text[MONITOR_AMOUNT]);
