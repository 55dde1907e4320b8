// SPDX-License-Identifier: BSD-2-Clause
/*
 * Trace points: which patterns switch on, what a line looks like, what an argument costs when its
 * point is off, what the environment does.  Standard error goes to a file that the test reads.
 */
#include "base/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "captured.h"
#include "check.h"

static unsigned evaluated;

static const char *costly_text(void)
{
	evaluated++;
	return "RTS";
}

static void off_evaluates_nothing(void)
{
	const char *out;

	trace_select("");
	capture_begin();
	trace(qp, state, 1, costly_text(), costly_text(), "modify");
	CHECK(!trace_is_on(qp, state));
	out = capture_end();
	CHECK(!*out && !evaluated);

	trace_select("qp.state");
	capture_begin();
	trace(qp, state, 1, costly_text(), costly_text(), "modify");
	CHECK(trace_is_on(qp, state));
	out = capture_end();
	CHECK(evaluated == 2 && captured_count(out, "\n") == 1);
}

/* Head, name and arguments, each as the header says. */
static void line_has_its_form(void)
{
	unsigned seconds, nanoseconds, digits;
	int pid, tid, from, to, end;
	const char *out;

	trace_select("qp.*,cq.overrun,access.remote,engine.*");
	capture_begin();
	trace(qp, state, 0xabc123, "INIT", "RTR", "modify");
	out = capture_end();
	CHECK(sscanf(out, "softhca[%d/%d]: %u.%n%u%n %n", &pid, &tid, &seconds, &from, &nanoseconds,
		     &to, &end) == 4);
	digits = (unsigned)(to - from);
	CHECK(pid == getpid() && tid == (int)syscall(SYS_gettid));
	CHECK(digits == 9 && nanoseconds < 1000000000u);
	CHECK(!strcmp(out + end, "qp.state qpn=0xabc123 from=INIT to=RTR why=modify\n"));

	capture_begin();
	trace(cq, overrun, 0, UINT64_MAX);
	trace(engine, wake, "another process");
	trace(engine, wake, NULL);
	trace(access, remote, 1, 0xffffffff, UINT64_MAX, 0, "REMOTE_READ", "");
	out = capture_end();
	CHECK(strstr(out, " cq.overrun cqn=0x0 entries=18446744073709551615\n"));
	CHECK(strstr(out, " engine.wake from=\"another process\"\n"));
	CHECK(strstr(out, " engine.wake from=?\n"));
	CHECK(strstr(out, " access.remote qpn=0x1 rkey=0xffffffff va=0xffffffffffffffff bytes=0 "
			  "right=REMOTE_READ verdict=\"\"\n"));
	CHECK(captured_count(out, "\n") == 4);
}

/* Cut, but a line still. */
static void long_line_ends(void)
{
	static char word[4096];
	const char *out;

	memset(word, 'x', sizeof(word) - 1);
	trace_select("engine.wake");
	capture_begin();
	trace(engine, wake, word);
	trace(engine, wake, "short");
	out = capture_end();
	CHECK(captured_count(out, "\n") == 2);
	CHECK(strchr(out, '\n') - out == 511);
	CHECK(strstr(out, "engine.wake from=short\n"));
}

static void patterns_select(void)
{
	const char *out;

	trace_select("rnr.*,,cq.overrun");
	CHECK(trace_is_on(rnr, sent) && trace_is_on(rnr, received) && trace_is_on(cq, overrun));
	CHECK(!trace_is_on(qp, state) && !trace_is_on(nak, sent));
	trace_select("nak.sen[st]");
	CHECK(trace_is_on(nak, sent) && !trace_is_on(nak, received) && !trace_is_on(rnr, sent));
	trace_select("*");
	CHECK(trace_is_on(qp, state) && trace_is_on(share, refused) && trace_is_on(nak, received));
	trace_select("*,qp.*");
	trace_select("");
	CHECK(!trace_is_on(qp, state) && !trace_is_on(share, refused));

	capture_begin();
	trace_select("qp.sate,rnr.sent,nothing*");
	out = capture_end();
	CHECK(trace_is_on(rnr, sent) && !trace_is_on(qp, state));
	CHECK(captured_count(out, "\n") == 2 && strstr(out, "warn: ") && strstr(out, "'qp.sate'") &&
	      strstr(out, "'nothing*'") && !strstr(out, "'rnr.sent'"));

	capture_begin();
	trace_select(
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,"
		"qp.state");
	out = capture_end();
	CHECK(captured_count(out, "\n") == 1 && strstr(out, "'aaaa") && trace_is_on(qp, state));
}

/* A tracer counts in the same word, and neither of the two switches the other off. */
static void tracer_listens_too(void)
{
	const char *out;

	trace_select("");
	softhca_qp__state_semaphore++;
	CHECK(trace_is_on(qp, state));
	capture_begin();
	trace(qp, state, 1, "RTS", "ERR", "modify");
	out = capture_end();
	CHECK(!*out);
	trace_select("*");
	trace_select("");
	CHECK(trace_is_on(qp, state));
	softhca_qp__state_semaphore--;
	CHECK(!trace_is_on(qp, state));
}

static void errno_stays(void)
{
	trace_select("*");
	capture_begin();
	errno = EXDEV;
	trace(qp, state, 1, "RTS", "ERR", "modify");
	CHECK(errno == EXDEV);
	capture_end();
	CHECK(!strcmp(trace_errno(-ENOENT), "ENOENT") && !strcmp(trace_errno(EINVAL), "EINVAL"));
}

static const char *text; /* what the last child printed */

static void in_child(const char *value, void (*child)(void))
{
	pid_t pid;
	int status;

	trace_select("");
	capture_begin();
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		setenv("SOFTHCA_TRACE", value, 1);
		trace_init();
		child();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	text = capture_end();
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void selects_qp(void)
{
	CHECK(trace_is_on(qp, state) && !trace_is_on(rnr, sent));
	/* Once per process, whatever the environment says later. */
	setenv("SOFTHCA_TRACE", "rnr.*", 1);
	trace_init();
	CHECK(trace_is_on(qp, state) && !trace_is_on(rnr, sent));
}

static void selects_none(void)
{
	trace_init();
	CHECK(!trace_is_on(qp, state));
}

static void environment_decides(void)
{
	in_child("qp.*", selects_qp);
	in_child("help", selects_none);
	CHECK(captured_count(text, "trace point qp.state qpn from to why: ") == 1);
	CHECK(captured_count(text, "trace point share.refused addr bytes why: ") == 1);
	CHECK(captured_count(text, "\n") > 20);
	in_child("", selects_none);
	CHECK(!*text);
}

/* ---- listeners ---- */

struct listener {
	struct trace_listener l;
	char heard[256];
	unsigned n;
};

static void hear(struct trace_listener *l, const char *line, size_t n)
{
	struct listener *me = (struct listener *)l;

	CHECK(n < sizeof(me->heard));
	memcpy(me->heard, line, n);
	me->heard[n] = '\0';
	me->n++;
	errno = ENOTTY;
}

/* Each hears what it wants, beside what is printed, until it listens no more; a child of fork tells it
 * nothing. */
static void listeners_hear(void)
{
	static struct listener a = {.l = {.event = hear}}, b = {.l = {.event = hear}};
	int status;
	pid_t child;

	trace_select("");
	trace_listen(&a.l, "qp.*,rnr.sent", "qp.event");
	trace_listen(&b.l, "*", "rnr.*");
	errno = 0;
	trace(qp, state, 7, "RTS", "ERR", "because of it");
	CHECK(!errno && a.n == 1 && b.n == 1);
	CHECK(!strcmp(a.heard, "qp.state qpn=0x7 from=RTS to=ERR why=\"because of it\""));
	trace(qp, event, 7, "x");
	trace(rnr, sent, 7, 8, 9, 10);
	CHECK(a.n == 2 && !strcmp(a.heard, "rnr.sent qpn=0x7 peer=0x8 psn=0x9 delay_us=10"));
	CHECK(b.n == 2);
	capture_begin();
	trace_select("qp.state");
	trace(qp, state, 7, "RTS", "ERR", "x");
	trace_select("");
	CHECK(captured_count(capture_end(), "qp.state") == 1 && a.n == 3);
	child = fork();
	if (!child) {
		trace(qp, state, 7, "RTS", "ERR", "x");
		CHECK(a.n == 3);
		trace_fork_child();
		CHECK(!trace_is_on(qp, state) && !trace_is_on(share, refused));
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	trace_unlisten(&a.l);
	trace_unlisten_wait();
	CHECK(!trace_is_on(rnr, sent) && trace_is_on(qp, state));
	trace(qp, state, 7, "RTS", "ERR", "x");
	CHECK(a.n == 3 && b.n == 4);
	trace_unlisten(&b.l);
	trace_unlisten(&b.l);
	CHECK(!trace_is_on(qp, state));
}

/* As for the log's own lines. */
static void file_takes_the_lines(void)
{
	char path[] = "/tmp/softhca-trace-XXXXXX";
	int fd = mkstemp(path);
	char lines[1024];
	ssize_t n;

	CHECK(fd >= 0);
	setenv("SOFTHCA_LOG_FILE", path, 1);
	log_init();
	unsetenv("SOFTHCA_LOG_FILE");
	trace_select("qp.state");
	capture_begin();
	trace(qp, state, 7, "RTS", "ERR", "modify");
	log_warn("after it");
	CHECK(!*capture_end());
	n = read(fd, lines, sizeof(lines) - 1);
	CHECK(n > 0);
	lines[n] = '\0';
	close(fd);
	unlink(path);
	CHECK(captured_count(lines, "\n") == 2 && strstr(lines, "qp.state qpn=0x7 ") &&
	      strstr(lines, "warn: after it\n"));
}

int main(void)
{
	unsetenv("SOFTHCA_TRACE");
	unsetenv("SOFTHCA_LOG");
	unsetenv("SOFTHCA_LOG_FILE");
	off_evaluates_nothing();
	line_has_its_form();
	long_line_ends();
	patterns_select();
	tracer_listens_too();
	errno_stays();
	environment_decides();
	listeners_hear();
	file_takes_the_lines();
	return 0;
}
