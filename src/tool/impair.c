// SPDX-License-Identifier: BSD-2-Clause
/* softhca fabric impair: faults of links, drawn from a seed so that they can be repeated. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "tool/view.h"

#define PORTS_MAX   254u
#define DELAY_MAX   10000000u /* us */
#define PPM_PERCENT 10000

enum fault_unit { FAULT_PERCENT, FAULT_MICROSECONDS, FAULT_NUMBER };

static bool fault_value(const char *text, enum fault_unit unit, uint32_t *out)
{
	char *end;
	double percent;

	if (unit != FAULT_PERCENT)
		return strcmp(text, "0") == 0 ? (*out = 0, true)
					      : text_number(text, DELAY_MAX, out);
	if (*text < '0' || *text > '9')
		return false;
	percent = strtod(text, &end);
	if (*end || percent > 100)
		return false;
	*out = (uint32_t)(percent * PPM_PERCENT + 0.5);
	return true;
}

/* Tells whether it is FAULT=VALUE with a good value, and stores it. */
static bool fault_read(struct msg_impair *m, const char *text)
{
	const struct {
		const char *name;
		enum fault_unit unit;
		uint32_t *value;
	} faults[] = {
		{"loss=", FAULT_PERCENT, &m->loss_ppm},
		{"duplicate=", FAULT_PERCENT, &m->duplicate_ppm},
		{"delay=", FAULT_MICROSECONDS, &m->delay_us},
		{"jitter=", FAULT_MICROSECONDS, &m->jitter_us},
		{"seed=", FAULT_NUMBER, &m->seed},
	};

	for (size_t i = 0; i < array_size(faults); i++) {
		size_t n = strlen(faults[i].name);

		if (strncmp(text, faults[i].name, n) == 0)
			return fault_value(text + n, faults[i].unit, faults[i].value);
	}
	return false;
}

static void impair_error(const struct session *s, int error, const struct msg_impair *m)
{
	if (error == -ENOENT)
		tool_error(s->command, "no node '%s' is in the subnet; see softhca fabric show",
			   m->node);
	else if (error == -ENXIO || error == -ENOLINK)
		tool_error(s->command, "'%s' has no cable at a port %u", m->node, m->port);
	else
		session_link_error(s, error);
}

/* Reads the arguments; false: it has said what is wrong with them. */
static bool impair_read(const struct session *s, struct msg_impair *m, int argc, char **argv)
{
	int nfaults = 0;

	for (; nfaults < argc && strchr(argv[nfaults], '='); nfaults++) {
		if (fault_read(m, argv[nfaults]))
			continue;
		tool_error(s->command, "'%s' is no fault of a link; see %s --help", argv[nfaults],
			   s->command);
		return false;
	}
	if (nfaults && argc == nfaults)
		return true;
	if (!nfaults || argc != nfaults + 2 ||
	    !text_copy(m->node, sizeof(m->node), argv[nfaults]) ||
	    !text_number(argv[nfaults + 1], PORTS_MAX, &m->port)) {
		tool_error(s->command,
			   "it takes faults, then a node and a port or neither; see %s --help",
			   s->command);
		return false;
	}
	return true;
}

int command_fabric_impair(struct session *s, int argc, char **argv)
{
	struct msg m = {0};
	struct msg_impair asked;
	int fds[MSG_MAX_FDS];
	struct view v;
	int ret;

	if (!impair_read(s, &m.impair, argc, argv))
		return EXIT_USAGE;
	if (!view_open(s, false, &v))
		return EXIT_OURS;
	asked = m.impair;
	ret = link_call(v.sock, &m, MSG_IMPAIR, fds);
	view_close(&v);
	if (ret) {
		impair_error(s, ret, &asked);
		return EXIT_OURS;
	}
	return 0;
}
