// SPDX-License-Identifier: BSD-2-Clause
/* A subnet for graphviz: softhca fabric show dot | dot -Tpdf. */
#include <inttypes.h>

#include "tool/show.h"

static const char *link_color(enum ib_port_state state)
{
	switch (state) {
	case IB_PORT_ACTIVE:
		return "forestgreen";
	case IB_PORT_ARMED:
		return "darkorange";
	default:
		return "gray50";
	}
}

/* A name is any text that the topology's author wrote, so this escapes it. */
static void dot_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

void show_dot(struct show *s, FILE *out)
{
	fprintf(out, "graph subnet {\n  rankdir=BT;\n  node [fontname=sans];\n");
	for (uint32_t i = 0; i < s->nnodes; i++) {
		fprintf(out, "  n%u [shape=%s, label=", i,
			show_is_switch(&s->nodes[i]) ? "box" : "ellipse");
		dot_text(out, s->nodes[i].name);
		fprintf(out, ", tooltip=\"lid %u\"];\n", show_lid(s, &s->nodes[i]));
	}
	for (uint32_t i = 0; i < s->nlinks; i++) {
		const struct show_link *l = &s->links[i];
		const struct subnet_port *ports = s->view->subnet.ports;

		fprintf(out,
			"  n%u -- n%u [taillabel=%u, headlabel=%u, color=%s, penwidth=%.1f, "
			"tooltip=\"%s, %s, %" PRIu64 " bytes\"];\n",
			l->from, l->to, ports[l->a].number, ports[l->b].number,
			link_color(l->state),
			1 + (s->busiest ? 4.0 * (double)show_bytes(l) / (double)s->busiest : 0),
			show_state_name(l->state), l->rate, show_bytes(l));
	}
	fprintf(out, "}\n");
}
