/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data checker: random operations in both directions over RC, UC or UD, within one process (two
 * threads with a context each) or between two, compared byte for byte with a plain model.  A
 * program of libibverbs alone: it runs on hardware as well.
 */
#include "side.h"

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
	"Usage: verify [OPTION...]\n"
	"  --device NAME      default: the first\n"
	"  --gid-index N      address by this GID (default: none on InfiniBand, 0 on Ethernet)\n"
	"  --transport T      rc, uc or ud (default rc)\n"
	"  --mtu N            path MTU in bytes (default 1024)\n"
	"  --seed N           of all random choices (default 1)\n"
	"  --ops N            operations per connection and direction, about (default 1000)\n"
	"  --qps N            connections (default 1)\n"
	"  --max-size N       longest message (default 1048576)\n"
	"  --processes N      1: two threads, 2: two processes (default 1)\n"
	"  --side N           only this side, 0 or 1, as a program of its own, and\n"
	"  --control FD       the stream socket that leads to the other\n"
	"  --events           sleep on completion events instead of polling\n"
	"  --extended-cq      poll by ibv_start_poll\n"
	"  --srq              receive through a shared receive queue (one connection)\n"
	"  --spoil            change a byte by ourselves: a test of the test, must end with 1\n"
	"  --verbose          say what was done\n"
	"Status: 0 all as expected, 1 a mismatch, 2 the set-up failed\n";

static uint64_t number_of(const char *text, uint64_t max)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	if (!*text || *end || n > max)
		device_die("verify: '%s' is not a number up to %lu", text, max);
	return n;
}

static enum ibv_qp_type transport_of(const char *name)
{
	if (!strcmp(name, "rc"))
		return IBV_QPT_RC;
	if (!strcmp(name, "uc"))
		return IBV_QPT_UC;
	if (!strcmp(name, "ud"))
		return IBV_QPT_UD;
	device_die("verify: no transport is called '%s'", name);
}

static enum ibv_mtu mtu_of(uint64_t bytes)
{
	for (unsigned mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
		if (128u << mtu == bytes)
			return (enum ibv_mtu)mtu;
	}
	device_die("verify: no MTU of %lu bytes", bytes);
}

static void parse_options(int argc, char **argv, struct options *o)
{
	enum {
		DEVICE = 1,
		GID,
		TRANSPORT,
		MTU,
		SEED,
		OPS,
		QPS,
		SIZE,
		PROCESSES,
		SIDE,
		CONTROL,
		EVENTS,
		EX,
		SRQ,
		SPOIL
	};
	static const struct option longs[] = {
		{"device", required_argument, NULL, DEVICE},
		{"gid-index", required_argument, NULL, GID},
		{"transport", required_argument, NULL, TRANSPORT},
		{"mtu", required_argument, NULL, MTU},
		{"seed", required_argument, NULL, SEED},
		{"ops", required_argument, NULL, OPS},
		{"qps", required_argument, NULL, QPS},
		{"max-size", required_argument, NULL, SIZE},
		{"processes", required_argument, NULL, PROCESSES},
		{"side", required_argument, NULL, SIDE},
		{"control", required_argument, NULL, CONTROL},
		{"events", no_argument, NULL, EVENTS},
		{"extended-cq", no_argument, NULL, EX},
		{"srq", no_argument, NULL, SRQ},
		{"spoil", no_argument, NULL, SPOIL},
		{"verbose", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "vh", longs, NULL)) != -1) {
		switch (c) {
		case DEVICE:
			o->device = optarg;
			break;
		case GID:
			o->gid_index = strcmp(optarg, "-1") ? (int)number_of(optarg, 255) : -1;
			break;
		case TRANSPORT:
			o->type = transport_of(optarg);
			break;
		case MTU:
			o->mtu = mtu_of(number_of(optarg, 4096));
			break;
		case SEED:
			o->seed = number_of(optarg, UINT64_MAX);
			break;
		case OPS:
			o->ops = number_of(optarg, UINT32_MAX);
			break;
		case QPS:
			o->qps = (uint32_t)number_of(optarg, SIDE_MAX_QPS);
			break;
		case SIZE:
			o->max_size = (uint32_t)number_of(optarg, PLAN_AREA / 2);
			break;
		case PROCESSES:
			o->processes = (int)number_of(optarg, 2);
			break;
		case SIDE:
			o->side = (int)number_of(optarg, 1);
			break;
		case CONTROL:
			o->control = (int)number_of(optarg, INT32_MAX);
			break;
		case EVENTS:
			o->events = true;
			break;
		case EX:
			o->extended_cq = true;
			break;
		case SRQ:
			o->srq = true;
			break;
		case SPOIL:
			o->spoil = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			exit(2);
		}
	}
	if (optind < argc)
		device_die("verify: what is '%s'?", argv[optind]);
	/* With several connections on one SRQ no plan can say which message takes which receive. */
	if (!o->qps || !o->processes || !o->max_size || (o->srq && o->qps != 1) ||
	    (o->side < 0) != (o->control < 0))
		device_die("verify: these options do not go together; see --help");
}

struct thread_arguments {
	const struct options *options;
	int control;
	bool good;
};

static void *second_side(void *data)
{
	struct thread_arguments *a = data;

	a->good = side_run(a->options, 1, a->control);
	/* Wakes the other side, should it wait for us. */
	shutdown(a->control, SHUT_RDWR);
	return NULL;
}

static bool run_threads(const struct options *o, const int control[2])
{
	struct thread_arguments second = {.options = o, .control = control[1]};
	pthread_t thread;
	bool good;

	if (pthread_create(&thread, NULL, second_side, &second))
		device_die("pthread_create failed");
	good = side_run(o, 0, control[0]);
	shutdown(control[0], SHUT_RDWR);
	pthread_join(thread, NULL);
	return good && second.good;
}

/* Forked before any device is open, as two programs would be. */
static bool run_processes(const struct options *o, const int control[2])
{
	pid_t child;
	int status;
	bool good;

	fflush(NULL);
	child = fork();
	if (child < 0)
		device_die("fork: %m");
	close(control[child ? 1 : 0]);
	if (!child) {
		good = side_run(o, 1, control[1]);
		fflush(NULL);
		_exit(good ? 0 : 1);
	}
	good = side_run(o, 0, control[0]);
	close(control[0]);
	if (waitpid(child, &status, 0) != child)
		device_die("waitpid: %m");
	if (status)
		fprintf(stderr, "verify: the second process ended with wait status %#x\n",
			(unsigned)status);
	return good && !status;
}

static _Noreturn void end_with(bool good)
{
	if (good)
		exit(0);
	/* Nothing was taken down after a mismatch: leak checkers need not say so. */
	fflush(NULL);
	_exit(1);
}

int main(int argc, char **argv)
{
	struct options o = {
		.gid_index = -1,
		.type = IBV_QPT_RC,
		.mtu = IBV_MTU_1024,
		.seed = 1,
		.ops = 1000,
		.qps = 1,
		.max_size = 1u << 20,
		.processes = 1,
		.side = -1,
		.control = -1,
	};
	int control[2];

	parse_options(argc, argv, &o);
	if (o.side >= 0)
		end_with(side_run(&o, o.side, o.control));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control))
		device_die("socketpair: %m");
	end_with(o.processes == 1 ? run_threads(&o, control) : run_processes(&o, control));
}
