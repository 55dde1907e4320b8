// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca fabric show --html: a page with all that a monitor sees, in one file without anything from
 * outside.  All texts come from programs and users, so each goes through xml_text.  The file is
 * replaced as a whole, so a browser that reads it meanwhile has the old page or the new one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "tool/monitor.h"

#define WATCH_NS 1000000000L
/* Between the two looks of a page that is written once. */
#define ONCE_NS 250000000L
/* Rows of a table; more are counted. */
#define ROWS_MOST   256u
#define NODES_DRAWN 512u

static const char style[] =
	":root{color-scheme:light dark;--back:#fff;--text:#1c2127;--dim:#5c6670;--line:#d5dae0;"
	"--good:#1f7a33;--bad:#b3261e;--head:#f3f5f8}\n"
	"@media(prefers-color-scheme:dark){:root{--back:#15181c;--text:#e4e7eb;--dim:#9aa4af;"
	"--line:#333a42;--good:#5fc27a;--bad:#ff8a80;--head:#1f242a}}\n"
	"body{margin:1.5rem auto;max-width:90rem;padding:0 1rem;background:var(--back);"
	"color:var(--text);font:14px/1.45 system-ui,sans-serif}\n"
	"h1{font-size:1.4rem;margin:0}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}"
	"p{margin:.2rem 0}.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}\n"
	".drawn{display:flex;flex-wrap:wrap;gap:1rem 3rem;align-items:center}"
	"svg{max-width:100%;height:auto}.wide{overflow-x:auto}\n"
	"table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
	"th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line);"
	"white-space:nowrap}th{background:var(--head);font-weight:600}"
	"td.n,th.n{text-align:right}td.why{white-space:normal}"
	"code{font-family:ui-monospace,monospace}\n";

/* ---- parts of a page ---- */

static void cell_text(FILE *out, const char *class, const char *text)
{
	fprintf(out, "<td%s%s%s>", class ? " class=\"" : "", class ? class : "", class ? "\"" : "");
	xml_text(out, text);
	fputs("</td>", out);
}

static void cell_amount(FILE *out, double value, const char *unit)
{
	char text[MONITOR_AMOUNT];

	cell_text(out, "n", monitor_amount(value, unit, text));
}

static void cell_figure(FILE *out, struct figure f)
{
	char text[32];

	snprintf(text, sizeof(text), f.known ? "%llu" : "-", (unsigned long long)f.value);
	cell_text(out, "n", text);
}

static void heading_write(FILE *out, const char *name)
{
	fprintf(out, "<h2>%s</h2>\n", name);
}

/* Column names that begin with '>' are of numbers. */
static void table_open(FILE *out, const char *const *columns, size_t n)
{
	fputs("<div class=\"wide\"><table><thead><tr>", out);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "<th%s>%s</th>", columns[i][0] == '>' ? " class=\"n\"" : "",
			columns[i] + (columns[i][0] == '>'));
	fputs("</tr></thead><tbody>\n", out);
}

static void table_close(FILE *out, uint32_t rows, const char *what)
{
	fputs("</tbody></table></div>\n", out);
	if (rows > ROWS_MOST)
		fprintf(out, "<p class=\"dim\">and %u more %s</p>\n", rows - ROWS_MOST, what);
}

/* ---- the drawing of Ethernet ports: a segment that all of them share ---- */

#define PORT_WIDTH 130u
#define DRAWN_MOST 24u

static void ethernet_draw(FILE *out, const struct monitor_look *l)
{
	uint32_t n = 0, i = 0, width;

	for (uint32_t k = 0; k < l->nports; k++)
		n += l->ports[k].ethernet;
	if (!n)
		return;
	if (n > DRAWN_MOST) {
		fprintf(out, "<p class=\"dim\">%u Ethernet ports on one segment</p>\n", n);
		return;
	}
	width = n * PORT_WIDTH + 40;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u 130\" "
		"width=\"%u\" "
		"font-family=\"sans-serif\" font-size=\"11\" text-anchor=\"middle\" "
		"fill=\"currentColor\">\n<title>Ethernet ports</title>\n"
		"<line x1=\"20\" y1=\"30\" x2=\"%u\" y2=\"30\" stroke=\"currentColor\" "
		"stroke-width=\"3\"/>\n<text x=\"%u\" y=\"18\">Ethernet</text>\n",
		width, width, width - 20, width / 2);
	for (uint32_t k = 0; k < l->nports; k++) {
		const struct monitor_port *p = &l->ports[k];
		uint32_t x = 20 + PORT_WIDTH / 2 + i * PORT_WIDTH;

		if (!p->ethernet)
			continue;
		i++;
		fprintf(out,
			"<line x1=\"%u\" y1=\"30\" x2=\"%u\" y2=\"85\" stroke=\"%s\" "
			"stroke-width=\"%s\"/><circle cx=\"%u\" cy=\"90\" r=\"6\"/>"
			"<text x=\"%u\" y=\"112\">",
			x, x, p->active ? "#2a8c3c" : "#8a8f98",
			p->sent + p->received > 0 ? "4" : "1.5", x, x);
		xml_text(out, p->host);
		fputc('/', out);
		xml_text(out, p->device);
		fputs("</text>\n", out);
	}
	fputs("</svg>\n", out);
}

/* ---- tables ---- */

/* Of few rows the order stays; of many, those come first that do something. */
static bool rows_are_few(uint32_t n)
{
	return n <= ROWS_MOST;
}

static bool port_is_idle(const struct monitor_port *p)
{
	return p->packets < 1 && !p->new_errors;
}

static bool qp_is_idle(const struct monitor_qp *q)
{
	return q->sends + q->takes < 1;
}

static void port_row(FILE *out, const struct monitor_port *p)
{
	char name[2 * FABRIC_NAME_BYTES + 16];

	snprintf(name, sizeof(name), "%s/%s:%u", p->host, p->device, p->number);
	fputs("<tr>", out);
	cell_text(out, NULL, name);
	cell_text(out, NULL, p->ethernet ? "Ethernet" : "InfiniBand");
	cell_text(out, p->active ? "good" : "bad", p->state);
	cell_text(out, NULL, p->speed);
	cell_amount(out, p->sent, "B/s");
	cell_amount(out, p->received, "B/s");
	cell_amount(out, p->packets, "/s");
	cell_amount(out, (double)p->bytes_sent, "B");
	cell_amount(out, (double)p->bytes_received, "B");
	cell_text(out, p->new_errors ? "why bad" : "why", p->errors ? p->why : "none");
	fputs("</tr>\n", out);
}

static void ports_table(FILE *out, const struct monitor_look *l)
{
	static const char *const columns[] = {"port",	      "link layer",  "state",
					      "speed",	      ">sent",	     ">received",
					      ">packets",     ">total sent", ">total received",
					      "errors so far"};
	uint32_t shown = 0;

	heading_write(out, "Ports");
	table_open(out, columns, array_size(columns));
	for (unsigned idle = 0; idle < 2; idle++)
		for (uint32_t i = 0; i < l->nports && shown < ROWS_MOST; i++)
			if (rows_are_few(l->nports) ? !idle : port_is_idle(&l->ports[i]) == idle) {
				port_row(out, &l->ports[i]);
				shown++;
			}
	table_close(out, l->nports, "ports");
}

static void programs_table(FILE *out, const struct monitor_look *l)
{
	static const char *const columns[] = {"program",      "host",	      ">pid",	  "state",
					      ">queue pairs", ">send blocks", ">receives"};

	heading_write(out, "Programs");
	if (!l->nprograms) {
		fputs("<p class=\"dim\">none has a device open</p>\n", out);
		return;
	}
	table_open(out, columns, array_size(columns));
	for (uint32_t i = 0; i < l->nprograms && i < ROWS_MOST; i++) {
		const struct monitor_program *p = &l->programs[i];

		fputs("<tr>", out);
		cell_text(out, NULL, p->command);
		cell_text(out, NULL, p->host);
		cell_figure(out, (struct figure){true, (uint64_t)p->pid});
		cell_text(out, strcmp(p->state, "running") != 0 ? "bad" : NULL, p->state);
		cell_figure(out, (struct figure){true, p->nqps});
		cell_amount(out, p->sends, "/s");
		cell_amount(out, p->takes, "/s");
		fputs("</tr>\n", out);
	}
	table_close(out, l->nprograms, "programs");
}

static void qp_row(FILE *out, const struct monitor_look *l, const struct monitor_qp *q)
{
	const struct monitor_program *p = &l->programs[q->program];
	char text[64];

	snprintf(text, sizeof(text), "0x%06x", q->qpn);
	fputs("<tr>", out);
	cell_text(out, NULL, text);
	snprintf(text, sizeof(text), "%s (%d)", p->command, (int)p->pid);
	cell_text(out, NULL, text);
	snprintf(text, sizeof(text), "%.30s/%.30s", p->host, q->device);
	cell_text(out, NULL, text);
	cell_text(out, NULL, q->transport);
	cell_text(out, strcmp(q->state, "ERR") != 0 && strcmp(q->state, "SQE") != 0 ? NULL : "bad",
		  q->state);
	cell_text(out, NULL, q->peer);
	cell_amount(out, q->sends, "/s");
	cell_amount(out, q->takes, "/s");
	cell_figure(out, q->outstanding);
	cell_figure(out, q->receives);
	if (q->failures)
		snprintf(text, sizeof(text), "%u times: %.40s", q->failures, q->why);
	cell_text(out, q->failures ? "why bad" : "why", q->failures ? text : "none");
	fputs("</tr>\n", out);
}

static void qps_table(FILE *out, const struct monitor_look *l)
{
	static const char *const columns[] = {
		"QP",	   "program",	   "device",	"type",		"state",
		"peer",	   ">send blocks", ">receives", ">outstanding", ">posted receives",
		"failures"};

	uint32_t shown = 0;

	heading_write(out, "Queue pairs");
	if (!l->nqps) {
		fputs("<p class=\"dim\">none</p>\n", out);
		return;
	}
	table_open(out, columns, array_size(columns));
	for (unsigned idle = 0; idle < 2; idle++)
		for (uint32_t i = 0; i < l->nqps && shown < ROWS_MOST; i++)
			if (rows_are_few(l->nqps) ? !idle : qp_is_idle(&l->qps[i]) == idle) {
				qp_row(out, l, &l->qps[i]);
				shown++;
			}
	table_close(out, l->nqps, "queue pairs");
}

static void faults_list(FILE *out, const struct monitor_look *l)
{
	heading_write(out, "Faults that act");
	if (!l->nfaults)
		fputs("<p class=\"dim\">none</p>\n", out);
	for (uint32_t i = 0; i < l->nfaults; i++) {
		fputs("<p><code>", out);
		xml_text(out, l->faults[i]);
		fputs("</code></p>\n", out);
	}
}

/* Cables of Ethernet ports that lead elsewhere: to other machines, or from one port to another. */
static void ties_list(FILE *out, struct monitor *m)
{
	char line[TIED_LINE_BYTES];
	bool any = false;

	for (uint32_t i = 0; i < m->now.nports; i++) {
		const struct monitor_port *p = &m->now.ports[i];

		if (!tied_line(&m->view, p->row, line))
			continue;
		if (!any)
			heading_write(out, "Ties");
		any = true;
		fputs("<p>", out);
		xml_text(out, p->host);
		fputs("/", out);
		xml_text(out, p->device);
		fputs(" ", out);
		xml_text(out, line);
		fputs("</p>\n", out);
	}
}

/* ---- the page ---- */

static void page_head(FILE *out, struct monitor *m, bool live)
{
	char when[64] = "?";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		(void)strftime(when, sizeof(when), "%F %T", &tm);
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n"
	      /* Nothing of the page may load or run anything. */
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'\">\n",
	      out);
	if (live)
		fputs("<meta http-equiv=\"refresh\" content=\"1\">\n", out);
	fputs("<title>softhca fabric ", out);
	xml_text(out, m->s->fabric);
	fprintf(out, "</title>\n<style>\n%s</style></head>\n<body>\n<h1>Fabric ", style);
	xml_text(out, m->s->fabric);
	fprintf(out,
		"</h1>\n<p class=\"dim\">%u hosts, %u ports, %u programs, %u queue pairs; model ",
		m->now.nhosts, m->now.nports, m->now.nprograms, m->now.nqps);
	xml_text(out, m->view.info.model);
	fprintf(out, "; %s %s</p>\n", when, live ? "(each second)" : "");
}

static bool page_print(FILE *out, struct monitor *m, bool live)
{
	bool drawn = true;

	page_head(out, m, live);
	heading_write(out, "Subnet");
	fputs("<div class=\"drawn\">\n", out);
	if (m->view.subnet.nnodes > NODES_DRAWN)
		fprintf(out,
			"<p class=\"dim\">%u nodes; softhca fabric show svg draws so many</p>\n",
			m->view.subnet.nnodes);
	else
		drawn = subnet_draw(out, &m->view, m->s->fabric);
	ethernet_draw(out, &m->now);
	fputs("</div>\n", out);
	ties_list(out, m);
	faults_list(out, &m->now);
	ports_table(out, &m->now);
	programs_table(out, &m->now);
	qps_table(out, &m->now);
	fputs("</body></html>\n", out);
	if (!drawn)
		tool_error(m->s->command, "no memory for a picture of fabric '%s'", m->s->fabric);
	return drawn;
}

/* ---- the file ---- */

/* Puts the page in the place of the file, with the rights that a new file has.  False after an error
 * line. */
static bool page_replace(struct monitor *m, bool live)
{
	const char *path = m->s->html;
	mode_t mask = umask(0);
	char *beside = NULL;
	bool good = false;
	FILE *out;
	int fd;

	(void)umask(mask);
	if (asprintf(&beside, "%s.XXXXXX", path) < 0) {
		tool_error(m->s->command, "%s", strerror(ENOMEM));
		return false;
	}
	fd = mkostemp(beside, O_CLOEXEC);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		tool_error(m->s->command, "%s: %s", path, strerror(errno));
		free(beside);
		return false;
	}
	if (page_print(out, m, live)) {
		(void)fchmod(fd, 0666 & ~mask);
		good = !ferror(out);
		good = !fclose(out) && good && !rename(beside, path);
		if (!good)
			tool_error(m->s->command, "%s: %s", path, strerror(errno));
	} else {
		fclose(out);
	}
	if (!good)
		(void)unlink(beside);
	free(beside);
	return good;
}

static volatile sig_atomic_t stopped;

static void page_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static void page_pause(long ns)
{
	const struct timespec pause = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	if (!stopped)
		(void)nanosleep(&pause, NULL);
}

static bool page_look(struct monitor *m)
{
	int ret = monitor_next(m);

	if (ret)
		monitor_error(m, ret);
	return !ret;
}

/* The last page does not look for another one. */
static bool page_watch(struct monitor *m)
{
	const struct sigaction stop = {.sa_handler = page_stop, .sa_flags = SA_RESETHAND};

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	fprintf(stderr, "%s is written each second; end it with Ctrl-C\n", m->s->html);
	while (!stopped) {
		if (!page_replace(m, true))
			return false;
		page_pause(WATCH_NS);
		if (!page_look(m))
			return false;
	}
	return page_replace(m, false);
}

/* argc: of arguments that do not belong there. */
static int page_write(const struct session *s, int argc)
{
	struct monitor m;
	struct stat st;
	bool good;

	if (!s->html || argc || s->json) {
		tool_error(s->command, s->html ? "--html goes without --json and without a form"
					       : "--watch goes with --html FILE");
		return EXIT_USAGE;
	}
	/* A device or a pipe would become a file. */
	if (!stat(s->html, &st) && !S_ISREG(st.st_mode)) {
		tool_error(s->command, "%s: it is not a file", s->html);
		return EXIT_OURS;
	}
	if (!monitor_open(&m, s))
		return EXIT_OURS;
	page_pause(ONCE_NS);
	good = page_look(&m) && (s->watch ? page_watch(&m) : page_replace(&m, false));
	monitor_close(&m);
	return good ? 0 : EXIT_OURS;
}

int command_fabric_show(struct session *s, int argc, char **argv)
{
	return s->html || s->watch ? page_write(s, argc) : subnet_show(s, argc, argv);
}
