// SPDX-License-Identifier: BSD-2-Clause
/*
 * steps [-d DAEMON] [-n SUCCESSORS] [-r REVOKE] DEVICE CALL through|stop|kill into|over [POINT...]
 *
 * Takes a process through CALL instruction by instruction.  At each POINT (of a process each) it is
 * killed, or left standing, while its peer's objects must do all that is asked of them and its
 * peer's memory, once taken back, must stay as it is; also when the process that stood goes on.
 *
 *   through  to the end of the call, which must succeed; prints how many points there are
 *   -d       the daemon, which is killed first
 *   -n       so many processes come after those that are killed, one of which gets their places
 *   -r       how the first peer takes its memory back; the next ones take turns
 */
#include "steps.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <dirent.h>
#include <unistd.h>

#include "walk.h"

#define THIRD UINT32_MAX /* the witness's link to it */
#define STAY  12	 /* successors that are there to the end */

enum fate { THROUGH, STOP, KILL };

struct process {
	const char *name;
	pid_t pid;
	int sock;
	bool stands; /* traced, in the call */
	bool stopped_whole;
	struct walk walk;
};

static const char *const what_names[WHATS] = {
	[WRITE_8] = "write8", [WRITE_64K] = "write64k", [READ_64K] = "read64k",
	[LIST_16] = "list16", [SEND] = "send",		[FETCH_ADD] = "fetchadd",
	[DEREG] = "dereg",    [REREG] = "rereg",	[TO_ERROR] = "error",
	[TO_RESET] = "reset", [DESTROY] = "destroy",	[QUERY] = "query",
	[POLL] = "poll",
};
static const char *const revoke_names[REVOKES] = {
	[BY_NOTHING] = "nothing", [BY_DEREG] = "dereg", [BY_REREG] = "rereg",
	[BY_ERROR] = "error",	  [BY_RESET] = "reset", [BY_DESTROY] = "destroy",
};

static const char *const order_names[] = {
	[MAKE] = "make",     [CONNECT] = "connect", [WARM_UP] = "warm-up",   [QUIT] = "quit",
	[STEP] = "step",     [FINISH] = "finish",   [EPILOGUE] = "epilogue", [CHECK] = "check",
	[FILL] = "fill",     [LOOK] = "look",	    [REAP] = "reap",	     [REVOKE] = "revoke",
	[VERIFY] = "verify", [PROBE] = "probe",	    [TRAFFIC] = "traffic",   [SETTLE] = "settle",
	[DROP] = "drop",     [RECEIVE] = "receive", [TALK] = "talk",
};

static struct {
	const char *device;
	enum what what;
	enum fate fate;
	enum walk_style style;
	pid_t daemon;
	unsigned successors;
	unsigned first_revoke;
	unsigned points;
	uint64_t at[STEPS_MOST];
} run;

static struct process walkers[STEPS_MOST], the_witness, the_third;
static char story[512]; /* what is being done, for a failure */

__attribute__((format(printf, 1, 2))) _Noreturn static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n  %s\n", story);
	exit(1);
}

/* ---- processes and orders ---- */

static void spawn(struct process *p, const char *name, void (*body)(int sock))
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		device_die("socketpair: %m");
	fflush(stdout);
	*p = (struct process){.name = name, .sock = pair[0], .pid = fork()};
	if (p->pid < 0)
		device_die("fork: %m");
	if (!p->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body(pair[1]);
		_exit(0);
	}
	close(pair[1]);
}

static void walker_body(int sock)
{
	walker(sock, run.device, run.what);
}

static void witness_body(int sock)
{
	witness(sock, run.device, run.what);
}

static void third_body(int sock)
{
	third(sock, run.device);
}

static void order(struct process *p, const struct order *o)
{
	if (send(p->sock, o, sizeof(*o), MSG_NOSIGNAL) != sizeof(*o))
		fail("the %s has gone before it is told to %s", p->name, order_names[o->code]);
}

static struct answer answer(struct process *p, uint32_t code)
{
	struct pollfd fd = {.fd = p->sock, .events = POLLIN};
	struct answer a = {0};

	if (poll(&fd, 1, STEPS_LIMIT_MS) != 1) {
		char place[512];

		walk_place_of(p->pid, place, sizeof(place));
		fail("the %s does not %s within %d s; it is at %s", p->name, order_names[code],
		     STEPS_LIMIT_MS / 1000, place);
	}
	if (recv(p->sock, &a, sizeof(a), 0) != sizeof(a))
		fail("the %s ends when it is told to %s", p->name, order_names[code]);
	if (a.complaint[0])
		fail("the %s, told to %s: %s", p->name, order_names[code], a.complaint);
	return a;
}

static struct answer ask(struct process *p, uint32_t code, uint32_t link, uint32_t arg)
{
	struct order o = {.code = code, .link = link, .arg = arg};

	order(p, &o);
	return answer(p, code);
}

static void connect_to(struct process *p, uint32_t link, const struct place *place)
{
	struct order o = {.code = CONNECT, .link = link, .place = *place};

	order(p, &o);
	answer(p, CONNECT);
}

/* ---- stopping and ending ---- */

static bool all_stopped(pid_t pid)
{
	char path[300], stat[512];
	struct dirent *task;
	bool all = true;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	while (tasks && all && (task = readdir(tasks))) {
		const char *end;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", (int)pid, task->d_name);
		f = isdigit((unsigned char)task->d_name[0]) ? fopen(path, "re") : NULL;
		if (!f)
			continue;
		end = fgets(stat, sizeof(stat), f) ? strrchr(stat, ')') : NULL;
		fclose(f);
		all = end && strchr("TtZX", end[2]);
	}
	if (tasks)
		closedir(tasks);
	return all;
}

static void stand(struct process *p, bool whole)
{
	uint64_t end = device_now_ns() + STEPS_LIMIT_MS * 1000000ull;

	p->stopped_whole = whole;
	if (!whole)
		return;
	kill(p->pid, SIGSTOP);
	while (!all_stopped(p->pid)) {
		if (device_now_ns() > end)
			fail("the walker cannot be stopped");
		usleep(200);
	}
}

static void go_on(struct process *p)
{
	if (p->stopped_whole)
		kill(p->pid, SIGCONT);
	walk_finish(&p->walk);
	p->stands = false;
}

static void end_process(struct process *p, bool by_force)
{
	struct order quit = {.code = QUIT};
	int status;

	if (by_force)
		kill(p->pid, SIGKILL);
	else
		order(p, &quit);
	if (waitpid(p->pid, &status, __WALL) != p->pid)
		device_die("waitpid: %m");
	if (!by_force && status)
		fail("the %s ends with %#x", p->name, (unsigned)status);
	close(p->sock);
	p->stands = false;
}

/* Processes that open the device: new owners of slots that became free. */
static void successors(void)
{
	for (unsigned i = 0; i < run.successors; i++) {
		struct device_port port;
		int status;
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			device_port_open(&port, run.device, -1);
			if (i + STAY >= run.successors)
				pause();
			_exit(0);
		}
		if (i + STAY < run.successors && (waitpid(pid, &status, 0) != pid || status))
			fail("successor %u cannot open the device", i);
	}
}

/* ---- rounds ---- */

static void other_business(unsigned i)
{
	ask(&the_third, RECEIVE, 0, 0);
	ask(&the_witness, LOOK, i, 0);
	ask(&the_third, TALK, 0, 0);
	ask(&the_witness, REAP, i, 0);
}

static enum revoke how_of(unsigned i)
{
	return (enum revoke)((run.first_revoke + i) % REVOKES);
}

static void tell_story(unsigned i)
{
	const struct walk *w = &walkers[i].walk;
	char place[128];

	walk_place(w, place, sizeof(place));
	snprintf(story, sizeof(story), "point %llu%s, revoked by %s%s, at %s",
		 (unsigned long long)w->points, w->in_call ? " (in a system call)" : "",
		 revoke_names[how_of(i)], i & 1 ? ", all of it stopped, shared CQ" : "", place);
}

static void walk(unsigned i)
{
	struct order step = {.code = STEP, .link = i};
	struct process *p = &walkers[i];

	order(p, &step);
	walk_start(&p->walk, p->pid, run.style);
	p->stands = true;
	walk_to(&p->walk, run.at[i]);
	tell_story(i);
	if (run.fate == KILL)
		end_process(p, true);
	else
		stand(p, i & 1 && run.fate == STOP);
}

/* The request of a walker that goes on ends in a success only if it has reached the memory in time.
 */
static void request_ends(unsigned i, enum revoke how, uint64_t arrived)
{
	struct process *p = &walkers[i];
	struct answer a;

	go_on(p);
	answer(p, STEP);
	a = ask(p, FINISH, 0, revoke_ends_qp(how));
	if (a.value[0] & ~arrived)
		fail("requests %#llx succeed, of which only %#llx had arrived",
		     (unsigned long long)a.value[0], (unsigned long long)arrived);
	if (how == BY_NOTHING) {
		uint64_t all = run.what == LIST_16 ? (1ull << STEPS_PARTS) - 1 : 1;

		if (a.value[0] != all || a.value[1])
			fail("requests %#llx succeed, first error: %s",
			     (unsigned long long)a.value[0],
			     ibv_wc_status_str((enum ibv_wc_status)a.value[1]));
		ask(&the_witness, VERIFY, i, 0);
		ask(p, EPILOGUE, 0, 0);
	}
	end_process(p, false);
}

static void after_initiator(unsigned i)
{
	enum revoke how = run.fate == THROUGH ? BY_NOTHING : how_of(i);
	uint64_t arrived = ~0ull;

	other_business(i);
	if (how != BY_NOTHING) {
		arrived = ask(&the_witness, REVOKE, i, how).value[0];
		ask(&the_witness, CHECK, i, 0);
	}
	if (run.fate != KILL)
		request_ends(i, how, arrived);
	other_business(i);
	if (how != BY_NOTHING)
		ask(&the_witness, CHECK, i, 0);
	ask(&the_witness, DROP, i, 0);
}

static void call_returns(unsigned i, bool dropped)
{
	bool ends_qp = run.what >= TO_ERROR && run.what <= DESTROY;
	struct process *p = &walkers[i];
	uint64_t old, there;
	struct answer a;

	memset(&old, BYTE_OLD, sizeof(old));
	go_on(p);
	there = answer(p, STEP).value[0];
	if (!dropped) {
		ask(&the_witness, PROBE, i, 0);
		ask(&the_witness, PROBE, i, 0);
		a = ask(&the_witness, SETTLE, i, ends_qp);
		if (a.value[0] && !what_revokes(run.what))
			fail("%llu requests fail", (unsigned long long)a.value[0]);
		if (what_revokes(run.what) && a.value[1] && (there == old || a.value[1] > there))
			fail("WRITE %llu succeeds, but when the call returned %llu was there",
			     (unsigned long long)a.value[1], (unsigned long long)there);
	}
	if (what_revokes(run.what))
		ask(p, CHECK, 0, 0);
	end_process(p, false);
}

/* What the witness asked of a process that was killed ends by itself; it takes a while. */
static bool settles_alone(unsigned i)
{
	return run.fate == KILL && !what_initiates(run.what) && i % 4 == 1;
}

static void after_target(unsigned i)
{
	bool drop_first = run.fate != THROUGH && i % 4 >= 2;

	ask(&the_witness, PROBE, i, 0);
	other_business(i);
	ask(&the_witness, PROBE, i, 0);
	if (drop_first)
		ask(&the_witness, DROP, i, 0);
	if (run.fate != KILL)
		call_returns(i, drop_first);
	other_business(i);
	if (!drop_first && !settles_alone(i))
		ask(&the_witness, DROP, i, 0);
}

static void settle_alone(void)
{
	for (unsigned i = 0; i < run.points; i++) {
		if (!settles_alone(i))
			continue;
		tell_story(i);
		ask(&the_witness, SETTLE, i, 0);
		ask(&the_witness, DROP, i, 0);
	}
}

static void before(unsigned i)
{
	if (what_initiates(run.what))
		ask(&the_witness, FILL, i, 0);
	else
		ask(&the_witness, i & 1 ? TRAFFIC : PROBE, i, 0);
}

static void after(unsigned i)
{
	tell_story(i);
	if (what_initiates(run.what))
		after_initiator(i);
	else
		after_target(i);
}

static void go(void)
{
	/* Nobody can be a successor of one that has not gone. */
	bool together = run.fate == KILL && run.successors;

	for (unsigned i = 0; i < run.points; i++) {
		before(i);
		walk(i);
		if (!together)
			after(i);
	}
	if (together) {
		successors();
		for (unsigned i = 0; i < run.points; i++)
			after(i);
	}
	settle_alone();
}

/* ---- setting up ---- */

static void meet(unsigned i)
{
	struct place there = answer(&walkers[i], MAKE).place;
	struct place here = ask(&the_witness, MAKE, i, i & 1).place;

	connect_to(&the_witness, i, &there);
	connect_to(&walkers[i], 0, &here);
	ask(what_initiates(run.what) ? &walkers[i] : &the_witness, WARM_UP, i, 0);
}

static void set_up(void)
{
	struct place here, there;

	spawn(&the_witness, "witness", witness_body);
	spawn(&the_third, "third", third_body);
	for (unsigned i = 0; i < run.points; i++)
		spawn(&walkers[i], "walker", walker_body);
	here = ask(&the_witness, MAKE, THIRD, 1).place;
	there = ask(&the_third, MAKE, 0, 0).place;
	connect_to(&the_witness, THIRD, &there);
	connect_to(&the_third, 0, &here);
	for (unsigned i = 0; i < run.points; i++)
		meet(i);
	other_business(THIRD); /* also opens what only the daemon can open */
	if (run.daemon && kill(run.daemon, SIGKILL))
		device_die("the daemon cannot be killed: %m");
}

static unsigned one_of(const char *name, const char *const *names, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return i;
	device_die("'%s' is not known", name);
}

static void read_arguments(int argc, char **argv)
{
	static const char *const fates[] = {"through", "stop", "kill"}, *const styles[] = {"into",
											   "over"};
	int c;

	while ((c = getopt(argc, argv, "d:n:r:")) != -1) {
		if (c == 'd')
			run.daemon = (pid_t)strtol(optarg, NULL, 10);
		else if (c == 'n')
			run.successors = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'r')
			run.first_revoke = (unsigned)strtoul(optarg, NULL, 10);
		else
			exit(2);
	}
	if (argc - optind < 4)
		device_die("usage: steps [-d DAEMON] [-n SUCCESSORS] [-r REVOKE] DEVICE CALL "
			   "through|stop|kill into|over [POINT...]");
	run.device = argv[optind];
	run.what = (enum what)one_of(argv[optind + 1], what_names, WHATS);
	run.fate = (enum fate)one_of(argv[optind + 2], fates, 3);
	run.style = (enum walk_style)one_of(argv[optind + 3], styles, 2);
	for (int i = optind + 4; i < argc && run.points < STEPS_MOST; i++)
		run.at[run.points++] = strtoull(argv[i], NULL, 10);
	if (run.fate == THROUGH) {
		run.points = 1;
		run.at[0] = UINT64_MAX;
	}
}

int main(int argc, char **argv)
{
	const struct walk *w = &walkers[0].walk;

	read_arguments(argc, argv);
	set_up();
	go();
	end_process(&the_witness, false);
	end_process(&the_third, false);
	if (run.fate == THROUGH)
		printf("points %llu sequences %u calls %u\n", (unsigned long long)w->points,
		       w->sequences, w->calls);
	else
		printf("%u points\n", run.points);
	return 0;
}
