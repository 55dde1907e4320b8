// SPDX-License-Identifier: BSD-2-Clause
/* See peer.h: how the host gives orders.  What the peer does is in peer_main.c. */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer_orders.h"

void peer_start(struct peer *p, struct memory_side *side, const char *device)
{
	int pair[2];

	*p = (struct peer){.side = side, .patient = true};
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		device_die("socketpair: %m");
	p->pid = fork();
	if (p->pid < 0)
		device_die("fork: %m");
	side->sock = pair[0];
	if (p->pid) {
		close(pair[1]);
		return;
	}
	close(pair[0]);
	peer_main(pair[1], device);
}

#define PROGRAM	  "--peer"
#define ARGUMENTS 32

static void peer_execute(const char *const *program, const char *device, int sock)
{
	char *argv[ARGUMENTS + 5], self[PATH_MAX], number[16];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	unsigned n = 0;

	if (length < 0)
		return;
	self[length] = 0;
	snprintf(number, sizeof(number), "%d", dup(sock));
	while (*program && n < ARGUMENTS)
		argv[n++] = strdup(*program++);
	argv[n++] = self;
	argv[n++] = strdup(PROGRAM);
	argv[n++] = number;
	argv[n++] = strdup(device);
	argv[n] = NULL;
	execvp(argv[0], argv);
}

void peer_start_under(struct peer *p, struct memory_side *side, const char *device,
		      const char *const *program)
{
	int pair[2];

	*p = (struct peer){.side = side, .patient = true};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		device_die("socketpair: %m");
	p->pid = fork();
	if (p->pid < 0)
		device_die("fork: %m");
	side->sock = pair[0];
	if (!p->pid) {
		peer_execute(program, device, pair[1]);
		_exit(127);
	}
	close(pair[1]);
}

void peer_start_anew(struct peer *p, struct memory_side *side, const char *device)
{
	peer_start_under(p, side, device, (const char *const[]){NULL});
}

void peer_program(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], PROGRAM))
		peer_main(atoi(argv[2]), argv[3]);
}

static void send_order(const struct peer *p, const struct peer_order *o)
{
	side_tell(p->side, o, sizeof(*o));
}

struct peer_answer peer_wait(const struct peer *p)
{
	struct peer_answer answer;

	side_hear(p->side, &answer, sizeof(answer));
	return answer;
}

static struct peer_answer ask_peer(const struct peer *p, struct peer_order o)
{
	send_order(p, &o);
	return peer_wait(p);
}

void peer_connect(struct peer *p)
{
	const struct device_connection *how =
		p->patient ? &device_default_connection : &side_impatient;
	struct peer_order o = {.what = ORDER_CONNECT, .patient = p->patient};
	struct peer_answer answer;

	o.address = side_renew(p->side, how);
	answer = ask_peer(p, o);
	side_connect(p->side, how, &answer.address);
	p->addr = answer.addr;
	p->rkey = answer.rkey;
}

void peer_end(struct peer *p)
{
	int status;

	if (!p->pid)
		return;
	send_order(p, &(struct peer_order){.what = ORDER_END});
	if (waitpid(p->pid, &status, 0) != p->pid || !WIFEXITED(status) || WEXITSTATUS(status))
		device_die("the peer ends with 0x%x", (unsigned)status);
	close(p->side->sock);
}

void peer_kill(struct peer *p)
{
	int status;

	if (kill(p->pid, SIGKILL) || waitpid(p->pid, &status, 0) != p->pid || !WIFSIGNALED(status))
		device_die("the peer cannot be killed");
	close(p->side->sock);
}

static struct peer_order order_of(enum order_kind what, const void *at, uint32_t rkey, size_t bytes,
				  int value)
{
	return (struct peer_order){
		.what = what,
		.addr = (uintptr_t)at,
		.rkey = rkey,
		.bytes = bytes,
		.value = (uint32_t)value,
	};
}

enum ibv_wc_status peer_write(const struct peer *p, const void *at, uint32_t rkey, size_t bytes,
			      int value)
{
	return (enum ibv_wc_status)ask_peer(p, order_of(ORDER_WRITE, at, rkey, bytes, value))
		.status;
}

struct peer_answer peer_read(const struct peer *p, const void *at, uint32_t rkey, size_t bytes,
			     int value)
{
	return ask_peer(p, order_of(ORDER_READ, at, rkey, bytes, value));
}

enum ibv_wc_status peer_send(const struct peer *p, size_t bytes, int value)
{
	return (enum ibv_wc_status)ask_peer(p, order_of(ORDER_SEND, NULL, 0, bytes, value)).status;
}

void peer_hammer(const struct peer *p, const void *at, uint32_t rkey, size_t bytes, unsigned what)
{
	struct peer_order o = order_of(ORDER_HAMMER, at, rkey, bytes, 0);

	o.hits = what;
	send_order(p, &o);
}

void peer_count(const struct peer *p, const void *at, uint32_t rkey)
{
	struct peer_order o = order_of(ORDER_COUNT, at, rkey, sizeof(uint64_t), 0);

	send_order(p, &o);
}

struct peer_answer peer_rest(const struct peer *p)
{
	return ask_peer(p, (struct peer_order){.what = ORDER_REST});
}

void peer_receive(const struct peer *p, unsigned receives, size_t bytes)
{
	struct peer_order o = order_of(ORDER_RECEIVE, NULL, 0, bytes, 0);

	o.hits = receives;
	ask_peer(p, o);
}

void peer_collect(const struct peer *p)
{
	struct peer_answer a = ask_peer(p, (struct peer_order){.what = ORDER_COLLECT});

	if (a.status)
		device_die("the peer's receive: %s",
			   ibv_wc_status_str((enum ibv_wc_status)a.status));
}

uint64_t peer_look(const struct peer *p, int value)
{
	return ask_peer(p, order_of(ORDER_LOOK, NULL, 0, 0, value)).wrong;
}

void peer_refuse(const struct peer *p, int err)
{
	ask_peer(p, order_of(ORDER_REFUSE, NULL, 0, 0, err));
}

void peer_tick(const struct peer *p, unsigned us)
{
	ask_peer(p, order_of(ORDER_TICK, NULL, 0, us, 0));
}

void peer_dump(struct peer *p, const char *directory, uint64_t limit)
{
	struct peer_order o = order_of(ORDER_DUMP, NULL, 0, limit, 0);
	int status;

	snprintf(o.path, sizeof(o.path), "%s", directory);
	send_order(p, &o);
	if (waitpid(p->pid, &status, 0) != p->pid || !WIFSIGNALED(status))
		device_die("the peer does not abort: 0x%x", (unsigned)status);
	p->pid = 0;
}

void peer_stop(const struct peer *p)
{
	int status;

	if (kill(p->pid, SIGSTOP) || waitpid(p->pid, &status, WUNTRACED) != p->pid ||
	    !WIFSTOPPED(status))
		device_die("the peer cannot be stopped");
}

void peer_go_on(const struct peer *p)
{
	if (kill(p->pid, SIGCONT))
		device_die("SIGCONT: %m");
}
