// SPDX-License-Identifier: BSD-2-Clause
/*
 * steps [-d DAEMON] [-n SUCCESSORS] [-r REVOKE] DEVICE CALL through|stop|kill into|over [POINT...]
 *
 * CALL: write8, read64k, dereg, ...; xrc-write8, dc-write8: of a pair that is connected by XRC or DC.
 * Takes a process through it instruction by instruction.  At each POINT (of a process each) it is
 * killed, or left standing, while its peer's objects must do all that is asked of them and its
 * peer's memory, once taken back, must stay as it is; also when the process that stood goes on.
 *
 *   through  to the end of the call, which must succeed; prints how many points there are
 *   -d       the daemon, which is killed first
 *   -n       so many processes come after those that are killed, one of which gets their places
 *   over     restartable sequences at full speed; status 77 where debug registers stop nobody
 *   -r       how the first peer takes its memory back; the next ones take turns
 */
#include "steps.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <dirent.h>
#include <unistd.h>

#include "crew.h"
#include "walk.h"

#define THIRD		UINT32_MAX /* the witness's link to it */
#define CANNOT_BE_TRIED 77
#define STAY		12 /* successors that are there to the end */

enum fate { THROUGH, STOP, KILL };

struct walker {
	struct process process;
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
static const char *const transport_names[TRANSPORTS] = {
	[OVER_RC] = "",
	[OVER_XRC] = "xrc-",
	[OVER_DC] = "dc-",
};
static const char *const revoke_names[REVOKES] = {
	[BY_NOTHING] = "nothing", [BY_DEREG] = "dereg", [BY_REREG] = "rereg",
	[BY_ERROR] = "error",	  [BY_RESET] = "reset", [BY_DESTROY] = "destroy",
};

static struct {
	const char *device;
	enum transport transport;
	enum what what;
	enum fate fate;
	enum walk_style style;
	pid_t daemon;
	unsigned successors;
	unsigned first_revoke;
	unsigned points;
	uint64_t at[STEPS_MOST];
} run;

static struct walker walkers[STEPS_MOST];
static struct process the_witness, the_third;

/* ---- processes and orders ---- */

static void walker_body(int sock)
{
	walker(sock, run.device, run.what, run.transport);
}

static void witness_body(int sock)
{
	witness(sock, run.device, run.what, run.transport);
}

static void third_body(int sock)
{
	third(sock, run.device);
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

static void stand_still(struct walker *p, bool whole)
{
	uint64_t end = device_now_ns() + STEPS_LIMIT_MS * 1000000ull;

	p->stopped_whole = whole;
	if (!whole)
		return;
	kill(p->walk.pid, SIGSTOP);
	while (!all_stopped(p->walk.pid)) {
		if (device_now_ns() > end)
			fail("the walker cannot be stopped");
		usleep(200);
	}
}

static void go_on(struct walker *p)
{
	if (p->stopped_whole)
		kill(p->walk.pid, SIGCONT);
	walk_finish(&p->walk);
}

/* Processes that open the device: new owners of slots that became free. */
static void start_successors(void)
{
	for (unsigned i = 0; i < run.successors; i++) {
		struct device_port port;
		int status;
		pid_t pid = fork();

		if (pid < 0)
			device_die("fork: %m");
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			device_port_open(&port, run.device, -1);
			if (i + STAY >= run.successors)
				pause();
			_exit(0);
		}
		if (i + STAY >= run.successors)
			continue;
		if (!walk_wait(pid, &status))
			fail("successor %u does not end", i);
		if (status)
			fail("successor %u cannot open the device", i);
	}
}

/* ---- rounds ---- */

static void other_business(unsigned i)
{
	process_ask(&the_third, RECEIVE, 0, 0);
	process_ask(&the_witness, LOOK, i, 0);
	process_ask(&the_third, TALK, 0, 0);
	process_ask(&the_witness, REAP, i, 0);
}

static enum revoke how_of(unsigned i)
{
	enum revoke how = (enum revoke)((run.first_revoke + i) % REVOKES);

	/* A target of DC is ready until it goes. */
	if (run.transport == OVER_DC && (how == BY_ERROR || how == BY_RESET))
		return BY_DESTROY;
	return how;
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

static void walk_one(unsigned i)
{
	struct order step = {.code = STEP, .link = i};
	struct walker *p = &walkers[i];

	process_order(&p->process, &step);
	walk_start(&p->walk, p->process.pid, run.style);
	walk_to(&p->walk, run.at[i]);
	tell_story(i);
	if (run.fate == KILL)
		process_end(&p->process, true);
	else
		stand_still(p, i & 1 && run.fate == STOP);
}

/* The request of a walker that goes on ends in a success only if it has reached the memory in
 * time. */
static void request_ends(unsigned i, enum revoke how, uint64_t arrived)
{
	struct process *p = &walkers[i].process;
	struct answer a;

	go_on(&walkers[i]);
	process_answer(p, STEP);
	a = process_ask(p, FINISH, 0, revoke_ends_qp(how));
	if (a.value[0] & ~arrived)
		fail("requests %#llx succeed, of which only %#llx had arrived",
		     (unsigned long long)a.value[0], (unsigned long long)arrived);
	if (how == BY_NOTHING) {
		uint64_t all = run.what == LIST_16 ? (1ull << STEPS_PARTS) - 1 : 1;

		if (a.value[0] != all || a.value[1])
			fail("requests %#llx succeed, first error: %s",
			     (unsigned long long)a.value[0],
			     ibv_wc_status_str((enum ibv_wc_status)a.value[1]));
		process_ask(&the_witness, VERIFY, i, 0);
		process_ask(p, EPILOGUE, 0, 0);
	}
	process_end(p, false);
}

static void after_initiator(unsigned i)
{
	enum revoke how = run.fate == THROUGH ? BY_NOTHING : how_of(i);
	uint64_t arrived = ~0ull;

	other_business(i);
	if (how != BY_NOTHING) {
		arrived = process_ask(&the_witness, REVOKE, i, how).value[0];
		process_ask(&the_witness, CHECK, i, 0);
	}
	if (run.fate != KILL)
		request_ends(i, how, arrived);
	other_business(i);
	if (how != BY_NOTHING)
		process_ask(&the_witness, CHECK, i, 0);
	process_ask(&the_witness, DROP, i, 0);
}

static void call_returns(unsigned i, bool dropped)
{
	bool ends_qp = run.what >= TO_ERROR && run.what <= DESTROY;
	struct process *p = &walkers[i].process;
	uint64_t old, there;
	struct answer a;

	memset(&old, BYTE_OLD, sizeof(old));
	go_on(&walkers[i]);
	there = process_answer(p, STEP).value[0];
	if (!dropped) {
		process_ask(&the_witness, PROBE, i, 0);
		process_ask(&the_witness, PROBE, i, 0);
		a = process_ask(&the_witness, SETTLE, i, ends_qp);
		if (a.value[0] && !what_revokes(run.what))
			fail("%llu requests fail", (unsigned long long)a.value[0]);
		if (what_revokes(run.what) && a.value[1] && (there == old || a.value[1] > there))
			fail("WRITE %llu succeeds, but when the call returned %llu was there",
			     (unsigned long long)a.value[1], (unsigned long long)there);
	}
	if (what_revokes(run.what))
		process_ask(p, CHECK, 0, 0);
	process_end(p, false);
}

/* What the witness asked of a process that was killed ends by itself; it takes a while. */
static bool settles_alone(unsigned i)
{
	return run.fate == KILL && !what_initiates(run.what) && i % 4 == 1;
}

static void after_target(unsigned i)
{
	bool drop_first = run.fate != THROUGH && i % 4 >= 2;

	process_ask(&the_witness, PROBE, i, 0);
	other_business(i);
	process_ask(&the_witness, PROBE, i, 0);
	if (drop_first)
		process_ask(&the_witness, DROP, i, 0);
	if (run.fate != KILL)
		call_returns(i, drop_first);
	other_business(i);
	if (!drop_first && !settles_alone(i))
		process_ask(&the_witness, DROP, i, 0);
}

static void settle_alone(void)
{
	for (unsigned i = 0; i < run.points; i++) {
		if (!settles_alone(i))
			continue;
		tell_story(i);
		process_ask(&the_witness, SETTLE, i, 0);
		process_ask(&the_witness, DROP, i, 0);
	}
}

static void before_stop(unsigned i)
{
	if (what_initiates(run.what))
		process_ask(&the_witness, FILL, i, 0);
	else
		process_ask(&the_witness, i & 1 ? TRAFFIC : PROBE, i, 0);
}

static void after_stop(unsigned i)
{
	tell_story(i);
	if (what_initiates(run.what))
		after_initiator(i);
	else
		after_target(i);
}

static void go_walkers(void)
{
	/* Nobody can be a successor of one that has not gone. */
	bool together = run.fate == KILL && run.successors;

	for (unsigned i = 0; i < run.points; i++) {
		before_stop(i);
		walk_one(i);
		if (!together)
			after_stop(i);
	}
	if (together) {
		start_successors();
		for (unsigned i = 0; i < run.points; i++)
			after_stop(i);
	}
	settle_alone();
}

/* ---- setting up ---- */

static void meet_witness(unsigned i)
{
	struct place there = process_answer(&walkers[i].process, MAKE).place;
	struct place here = process_ask(&the_witness, MAKE, i, i & 1).place;

	process_connect(&the_witness, i, &there);
	process_connect(&walkers[i].process, 0, &here);
	process_ask(what_initiates(run.what) ? &walkers[i].process : &the_witness, WARM_UP, i, 0);
}

static void set_up(void)
{
	struct place here, there;

	process_spawn(&the_witness, "witness", witness_body);
	process_spawn(&the_third, "third", third_body);
	for (unsigned i = 0; i < run.points; i++)
		process_spawn(&walkers[i].process, "walker", walker_body);
	here = process_ask(&the_witness, MAKE, THIRD, 1).place;
	there = process_ask(&the_third, MAKE, 0, 0).place;
	process_connect(&the_witness, THIRD, &there);
	process_connect(&the_third, 0, &here);
	for (unsigned i = 0; i < run.points; i++)
		meet_witness(i);
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

static void read_call(const char *name)
{
	for (unsigned t = OVER_RC; t < TRANSPORTS; t++)
		if (!strncmp(name, transport_names[t], strlen(transport_names[t])))
			run.transport = (enum transport)t;
	name += strlen(transport_names[run.transport]);
	run.what = (enum what)one_of(name, what_names, WHATS);
	if (run.transport == OVER_DC && (run.what == TO_ERROR || run.what == TO_RESET))
		device_die("a target of DC is ready until it goes");
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
	read_call(argv[optind + 1]);
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
	bool can_break;

	read_arguments(argc, argv);
	walk_ticks();
	/* The answer is found before any walk, whose processors the question would change. */
	can_break = walk_can_break();
	if (run.style == WALK_OVER && !can_break) {
		printf("the machine's debug registers stop nobody\n");
		return CANNOT_BE_TRIED;
	}
	set_up();
	go_walkers();
	process_end(&the_witness, false);
	process_end(&the_third, false);
	if (run.fate == THROUGH)
		printf("points %llu sequences %u calls %u\n", (unsigned long long)w->points,
		       w->sequences, w->calls);
	else
		printf("%u points\n", run.points);
	return 0;
}
