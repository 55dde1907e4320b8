// SPDX-License-Identifier: BSD-2-Clause
/* What a program does with its process: children of all kinds, another program, filters, who may
 * look. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

enum { OLD = 0x11, NEW = 0x22, PEER = 0x33, CHILD = 0x44 };

#define SPAWNS	    10
#define EXEC_ROUNDS 8
#define IMAGE_PLACE ((void *)0x200000000000) /* where both programs have memory */

static int status_of(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		device_die("waitpid: %m");
	return status;
}

/* ---- children ---- */

static pid_t by_fork(void)
{
	return fork();
}

static pid_t by_fork_alone(void)
{
	return _Fork();
}

static pid_t by_clone(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static _Noreturn void child_life(int wake, uint8_t *at)
{
	char byte;
	bool same = read(wake, &byte, 1) == 1 && !side_not(at, HOST_BYTES, PEER);

	for (size_t i = 0; i < HOST_BYTES; i++)
		at[i] = CHILD;
	_exit(same ? 0 : 1);
}

/* Parent and child see nothing of what the other, or the other's peer, writes after the fork. */
static void child_apart(struct host *h, pid_t (*make)(void), bool registered)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);
	int wake[2];
	pid_t child;

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	if (!registered)
		host_dereg(mr);
	if (pipe(wake))
		device_die("pipe: %m");
	child = make();
	if (!child)
		child_life(wake[0], at);
	host_want(child > 0, "no child: %m");
	if (registered)
		host_exchange(h, at, mr, HOST_BYTES, NEW);
	else
		for (size_t i = 0; i < HOST_BYTES; i++)
			at[i] = NEW;
	host_want(write(wake[1], "", 1) == 1, "write: %m");
	host_want(!status_of(child), "the child's memory has changed");
	host_want_all(at, HOST_BYTES, NEW, "the parent's memory, which the child wrote to");
	if (!registered)
		return;
	host_exchange(h, at, mr, HOST_BYTES, OLD);
	host_dereg(mr);
}

static void apart_fork(struct host *h)
{
	child_apart(h, by_fork, true);
}

static void apart_fork_alone(struct host *h)
{
	child_apart(h, by_fork_alone, true);
}

static void apart_clone(struct host *h)
{
	child_apart(h, by_clone, true);
}

static void apart_fork_later(struct host *h)
{
	child_apart(h, by_fork, false);
}

static void apart_clone_later(struct host *h)
{
	child_apart(h, by_clone, false);
}

static void spawns_program(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);
	char name[] = "true", *const argv[] = {name, NULL};
	struct peer_answer answer;

	peer_hammer(&h->peer, at, mr->rkey, HOST_BYTES, PEER_HITS_WRITE | PEER_HITS_READ);
	for (int i = 0; i < SPAWNS; i++) {
		pid_t child;

		host_want(!posix_spawnp(&child, "true", NULL, NULL, argv, environ), "spawn: %m");
		host_want(!status_of(child), "the program fails");
	}
	answer = peer_rest(&h->peer);
	host_want(!answer.status, "the peer's requests: %s",
		  ibv_wc_status_str((enum ibv_wc_status)answer.status));
	host_exchange(h, at, mr, HOST_BYTES, NEW);
	host_dereg(mr);
}

/* ---- another program in this process ---- */

static uint8_t *map_at_place(int value)
{
	uint8_t *at = mmap(IMAGE_PLACE, HOST_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (at != IMAGE_PLACE)
		device_die("the place is taken: %m");
	for (size_t i = 0; i < HOST_BYTES; i++)
		at[i] = (uint8_t)value;
	return at;
}

static _Noreturn void become_image(const struct host *h, bool stopped)
{
	char name[] = "host", image[] = "--image", sock[16], pid[16];
	char *argv[] = {name, image, sock, pid, NULL};

	snprintf(sock, sizeof(sock), "%d", h->side.sock);
	snprintf(pid, sizeof(pid), "%d", h->peer.pid);
	if (stopped)
		peer_stop(&h->peer);
	execv("/proc/self/exe", argv);
	device_die("execv: %m");
}

int host_image(int sock, pid_t pid)
{
	struct host h = {.side.sock = sock};
	uint8_t *at = map_at_place(PEER_POISON);
	struct peer_answer answer;

	h.peer = (struct peer){.side = &h.side, .pid = pid};
	peer_go_on(&h.peer);
	answer = peer_wait(&h.peer);
	host_want(answer.status, "the peer's requests to a program that is gone end well");
	host_want(!answer.wrong, "the peer has read %lu bytes of the new program",
		  (unsigned long)answer.wrong);
	host_want_all(at, HOST_BYTES, PEER_POISON, "the new program's memory");
	peer_end(&h.peer);
	return 0;
}

static _Noreturn void exec_round(const char *device, int round)
{
	struct host h = {.device = device};
	uint8_t *at;

	alarm(60);
	peer_start(&h.peer, &h.side, device);
	h.peer.patient = false;
	side_open(&h.side, device);
	peer_connect(&h.peer);
	at = map_at_place(OLD);
	peer_hammer(&h.peer, at, host_reg(&h, at, HOST_BYTES)->rkey, HOST_BYTES,
		    PEER_HITS_WRITE | PEER_HITS_READ | PEER_HITS_ADD);
	usleep((useconds_t)(random() % 20000));
	if (round & 1)
		unsetenv("LD_PRELOAD");
	become_image(&h, round & 2);
}

static void execs_program(struct host *h)
{
	for (int i = 0; i < EXEC_ROUNDS; i++) {
		pid_t child;

		fflush(NULL);
		(void)random();
		child = fork();
		if (!child)
			exec_round(h->device, i);
		host_want(child > 0 && !status_of(child), "round %d of exec", i);
	}
}

static void plain_fork(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_messages(h, at, mr);
	host_dereg(mr);
}

/* ---- filters of system calls ---- */

static void calls_filtered(struct host *h, int err)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_messages(h, at, mr);
	peer_refuse(&h->peer, err);
	host_exchange(h, at, mr, HOST_BYTES, NEW);
	host_messages(h, at, mr);
	self_refuse_process_vm(err);
	host_exchange(h, at, mr, HOST_BYTES, OLD);
	host_messages(h, at, mr);
	peer_connect(&h->peer);
	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_messages(h, at, mr);
	host_dereg(mr);
}

static void filtered_eperm(struct host *h)
{
	calls_filtered(h, EPERM);
}

static void filtered_enosys(struct host *h)
{
	calls_filtered(h, ENOSYS);
}

/* ---- who may look into this process ---- */

static void hide_process(struct host *h)
{
	(void)h;
	if (!geteuid())
		host_skip("root may look into every process");
	host_want(!prctl(PR_SET_DUMPABLE, 0), "PR_SET_DUMPABLE: %m");
}

static void process_hidden(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	hide_process(h);
	host_exchange(h, at, mr, HOST_BYTES, NEW);
	host_messages(h, at, mr);
	peer_connect(&h->peer);
	host_exchange(h, at, mr, HOST_BYTES, OLD);
	host_messages(h, at, mr);
	host_want(prctl(PR_GET_DUMPABLE) == 0, "the process can be dumped again");
	host_want(!prctl(PR_SET_DUMPABLE, 1), "PR_SET_DUMPABLE: %m");
	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_messages(h, at, mr);
	host_dereg(mr);
}

static void hidden_early(struct host *h)
{
	plain_fork(h);
	host_want(prctl(PR_GET_DUMPABLE) == 0, "the process can be dumped again");
}

/* Where Yama asks, the program says who may trace it; the device must not ask for more. */
static void traced_by_nobody(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	if (prctl(PR_SET_PTRACER, getpid()))
		host_skip("the kernel has no Yama: %s", strerror(errno));
	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_want(!prctl(PR_SET_PTRACER, 0), "PR_SET_PTRACER: %m");
	host_exchange(h, at, mr, HOST_BYTES, NEW);
	host_messages(h, at, mr);
	host_dereg(mr);
}

const struct host_case process_cases[] = {
	{"fork", apart_fork, NULL},
	{"_Fork", apart_fork_alone, NULL},
	{"clone", apart_clone, NULL},
	{"fork after deregistration", apart_fork_later, NULL},
	{"clone after deregistration", apart_clone_later, NULL},
	{"posix_spawn", spawns_program, NULL},
	{"exec", plain_fork, execs_program},
	{"seccomp EPERM", filtered_eperm, NULL},
	{"seccomp ENOSYS", filtered_enosys, NULL},
	{"PR_SET_DUMPABLE", process_hidden, NULL},
	{"PR_SET_DUMPABLE before opening", hidden_early, hide_process},
	{"PR_SET_PTRACER", traced_by_nobody, NULL},
	{NULL, NULL, NULL},
};
