// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca top: what a monitor sees, in a terminal, again and again.  Without a library: it writes whole
 * lines on the terminal's other screen, and gives the terminal back as it was, however it ends (but by
 * SIGKILL).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "tool/monitor.h"

#define SECONDS_LEAST 0.1
#define SECONDS_MOST  3600.0
#define COUNT_MOST    268435456u
/* Between the first two looks. */
#define FIRST_SECONDS 0.25

#define SCREEN_OTHER "\033[?1049h\033[?25l"
#define SCREEN_BACK  "\033[?25h\033[?1049l"
#define SCREEN_HOME  "\033[H"
#define LINE_REST    "\033[K"
#define SCREEN_REST  "\033[J"
#define BOLD	     "\033[1m"
#define PLAIN	     "\033[0m"

struct top {
	struct monitor m;
	bool batch;
	double seconds;
	uint32_t left; /* looks; 0: no limit */
	/* of the terminal; 0: whatever it takes */
	uint32_t width, height, line;
};

/* ---- the terminal ---- */

static struct termios terminal_before;
static volatile sig_atomic_t terminal_ours, stopped, resized;

/* In signal handlers, too. */
static void terminal_write(const char *text)
{
	size_t n = strlen(text);

	while (n) {
		ssize_t written = write(STDOUT_FILENO, text, n);

		if (written < 0 && errno != EINTR)
			return;
		if (written > 0) {
			text += written;
			n -= (size_t)written;
		}
	}
}

static void terminal_back(void)
{
	if (!terminal_ours)
		return;
	terminal_ours = 0;
	terminal_write(SCREEN_BACK);
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal_before);
}

static void terminal_take(void)
{
	struct termios t;

	if (tcgetattr(STDIN_FILENO, &terminal_before))
		return;
	t = terminal_before;
	/* Keys come at once and are not shown; those for signals stay. */
	t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	t.c_cc[VMIN] = 0;
	t.c_cc[VTIME] = 0;
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &t);
	terminal_ours = 1;
	terminal_write(SCREEN_OTHER);
}

static void signal_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

/* Ctrl-Z: the shell gets its terminal, and we get ours again when we go on. */
static void signal_suspend(int sig)
{
	int saved_errno = errno;
	bool ours = terminal_ours;

	(void)sig;
	terminal_back();
	(void)raise(SIGSTOP);
	if (ours)
		terminal_take();
	resized = 1;
	errno = saved_errno;
}

static void signal_resize(int sig)
{
	(void)sig;
	resized = 1;
}

static void signals_take(void)
{
	const struct sigaction stop = {.sa_handler = signal_stop};
	const struct sigaction suspend = {.sa_handler = signal_suspend};
	const struct sigaction resize = {.sa_handler = signal_resize};

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	sigaction(SIGTSTP, &suspend, NULL);
	sigaction(SIGWINCH, &resize, NULL);
}

static void size_find(struct top *t)
{
	struct winsize w = {0};

	t->width = t->height = 0;
	if (t->batch || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w))
		return;
	t->width = w.ws_col;
	t->height = w.ws_row;
}

/* ---- lines ---- */

/* Prints a line, cut to the terminal's width; what does not fit below is left out. */
static void printf_like(3, 4) line_print(struct top *t, bool bold, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (t->height && t->line + 1 >= t->height)
		return;
	t->line++;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (t->width && t->width < sizeof(text))
		text[t->width] = '\0';
	if (t->batch)
		printf("%s\n", text);
	else
		printf("%s%s%s" LINE_REST "\n", bold ? BOLD : "", text, bold ? PLAIN : "");
}

/* ---- tables, the busiest first ---- */

static int port_compare(const void *a, const void *b)
{
	const struct monitor_port *x = a, *y = b;
	double mine = x->sent + x->received, other = y->sent + y->received;

	if (mine != other)
		return mine < other ? 1 : -1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static int qp_compare(const void *a, const void *b)
{
	const struct monitor_qp *x = a, *y = b;
	double mine = x->sends + x->takes, other = y->sends + y->takes;

	if (mine != other)
		return mine < other ? 1 : -1;
	return x->qpn < y->qpn ? -1 : x->qpn > y->qpn;
}

/* Ports that have done nothing yet are left out of large fabrics. */
#define IDLE_PORTS_MOST 8u

static void *rows_sorted(const void *rows, uint32_t n, size_t bytes,
			 int (*compare)(const void *a, const void *b))
{
	void *copy = malloc(n * bytes + 1);

	if (copy) {
		memcpy(copy, rows, n * bytes);
		qsort(copy, n, bytes, compare);
	}
	return copy;
}

static void ports_print(struct top *t)
{
	const struct monitor_look *l = &t->m.now;
	struct monitor_port *ports =
		l->nports ? rows_sorted(l->ports, l->nports, sizeof(*ports), port_compare) : NULL;
	char sent[MONITOR_AMOUNT], received[MONITOR_AMOUNT], packets[MONITOR_AMOUNT];
	uint32_t idle = 0;

	line_print(t, true, "%-24s %-10s %12s %12s %12s %8s  %s", "PORT", "STATE", "SENT",
		   "RECEIVED", "PACKETS", "ERRORS", "");
	for (uint32_t i = 0; ports && i < l->nports; i++) {
		const struct monitor_port *p = &ports[i];
		char name[2 * FABRIC_NAME_BYTES + 16];

		if (!p->bytes_sent && !p->bytes_received && !p->errors && idle++ >= IDLE_PORTS_MOST)
			continue;
		snprintf(name, sizeof(name), "%s/%s:%u", p->host, p->device, p->number);
		line_print(t, false, "%-24s %-10s %12s %12s %12s %8llu  %s", name, p->state,
			   monitor_amount(p->sent, "B/s", sent),
			   monitor_amount(p->received, "B/s", received),
			   monitor_amount(p->packets, "/s", packets), (unsigned long long)p->errors,
			   p->new_errors ? p->why : "");
	}
	if (idle > IDLE_PORTS_MOST)
		line_print(t, false, "and %u more ports that have carried nothing",
			   idle - IDLE_PORTS_MOST);
	free(ports);
}

static void figure_text(struct figure f, char *text, size_t size)
{
	snprintf(text, size, f.known ? "%llu" : "-", (unsigned long long)f.value);
}

static void qp_print(struct top *t, const struct monitor_qp *q)
{
	const struct monitor_program *p = &t->m.now.programs[q->program];
	char sends[MONITOR_AMOUNT], takes[MONITOR_AMOUNT], outstanding[32], where[64];

	figure_text(q->outstanding, outstanding, sizeof(outstanding));
	snprintf(where, sizeof(where), "%.30s/%.30s", p->host, q->device);
	line_print(t, false, "0x%06x %-7d %-16s %-16s %-4s %-5s %11s %11s %6s  %-24s %s", q->qpn,
		   (int)p->pid, p->command, where, q->transport, q->state,
		   monitor_amount(q->sends, "/s", sends), monitor_amount(q->takes, "/s", takes),
		   outstanding, q->peer, q->failures ? q->why : "");
}

static void qps_print(struct top *t)
{
	const struct monitor_look *l = &t->m.now;
	struct monitor_qp *qps =
		l->nqps ? rows_sorted(l->qps, l->nqps, sizeof(*qps), qp_compare) : NULL;

	line_print(t, true, "%-8s %-7s %-16s %-16s %-4s %-5s %11s %11s %6s  %-24s %s", "QP", "PID",
		   "PROGRAM", "DEVICE", "TYPE", "STATE", "SEND BLOCKS", "RECEIVES", "OUT", "PEER",
		   "FAILURE");
	for (uint32_t i = 0; qps && i < l->nqps; i++)
		qp_print(t, &qps[i]);
	free(qps);
}

static void look_print(struct top *t)
{
	const struct monitor_look *l = &t->m.now;
	char clock[32] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		(void)strftime(clock, sizeof(clock), "%T", &tm);
	t->line = 0;
	if (!t->batch)
		fputs(SCREEN_HOME, stdout);
	line_print(t, false,
		   "softhca top - %s  fabric %s: %u hosts, %u programs, %u queue pairs, %u faults",
		   clock, t->m.s->fabric, l->nhosts, l->nprograms, l->nqps, l->nfaults);
	for (uint32_t i = 0; i < l->nfaults; i++)
		line_print(t, false, "  %s", l->faults[i]);
	line_print(t, false, "%s", "");
	ports_print(t);
	line_print(t, false, "%s", "");
	qps_print(t);
	fputs(t->batch ? "\n" : SCREEN_REST, stdout);
	(void)fflush(stdout);
}

/* ---- the command ---- */

/* Waits until the next look is due; false: it is time to end. */
static bool top_wait(struct top *t, double seconds)
{
	uint64_t until = clock_ns() + (uint64_t)(seconds * 1e9);
	struct pollfd key = {.fd = terminal_ours ? STDIN_FILENO : -1, .events = POLLIN};

	for (;;) {
		uint64_t now = clock_ns();
		char c;

		if (stopped || now >= until)
			return !stopped;
		if (resized) {
			resized = 0;
			size_find(t);
			look_print(t);
		}
		if (poll(&key, 1, (int)((until - now) / 1000000) + 1) <= 0)
			continue;
		if (read(STDIN_FILENO, &c, 1) != 1)
			key.fd = -1; /* nobody is there any more */
		else if (c == 'q' || c == 'Q')
			return false;
	}
}

static bool top_options_read(struct top *t, const struct session *s)
{
	const struct top_options *o = &s->top;
	char *end = NULL;

	t->seconds = 1;
	if (o->count && !text_number(o->count, COUNT_MOST, &t->left)) {
		tool_error(s->command, "-n takes a number from 1 to %u, not '%s'", COUNT_MOST,
			   o->count);
		return false;
	}
	if (!o->seconds)
		return true;
	t->seconds = strtod(o->seconds, &end);
	if (end != o->seconds && !*end && t->seconds >= SECONDS_LEAST && t->seconds <= SECONDS_MOST)
		return true;
	tool_error(s->command, "-d takes seconds from %g to %g, not '%s'", SECONDS_LEAST,
		   SECONDS_MOST, o->seconds);
	return false;
}

/* 0, or -errno: the fabric has gone, or nobody reads. */
static int top_run(struct top *t)
{
	int ret = 0;
	double seconds = t->seconds < FIRST_SECONDS ? t->seconds : FIRST_SECONDS;
	bool limited = t->left;

	while (top_wait(t, seconds)) {
		ret = monitor_next(&t->m);
		if (ret)
			break;
		size_find(t);
		look_print(t);
		if (ferror(stdout) || (limited && !--t->left))
			break;
		seconds = t->seconds;
	}
	return ret;
}

int command_top(struct session *s, int argc, char **argv)
{
	static struct top t;
	int ret;

	if (argc) {
		tool_error(s->command, "unexpected argument: %s", argv[0]);
		return EXIT_USAGE;
	}
	if (!top_options_read(&t, s))
		return EXIT_USAGE;
	t.batch = s->top.batch || !isatty(STDOUT_FILENO);
	if (!monitor_open(&t.m, s))
		return EXIT_OURS;
	if (!t.batch) {
		signals_take();
		terminal_take();
	}
	/* What goes wrong is said on the screen that stays. */
	ret = top_run(&t);
	terminal_back();
	if (ret)
		monitor_error(&t.m, ret);
	monitor_close(&t.m);
	return ret ? EXIT_OURS : 0;
}
