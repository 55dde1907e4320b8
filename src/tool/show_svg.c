// SPDX-License-Identifier: BSD-2-Clause
/*
 * Draws a subnet: adapters and routers below, switches in layers above by how far they are from
 * them.  Each layer's nodes stand in the order of what they are cabled to below, so a tree has few
 * crossings.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/show.h"

#define LAYER_HEIGHT 140u
#define MARGIN	     60u
#define NO_LAYER     0xffffffffu
#define NAMED_HOSTS  64u /* names of more hosts would lie on each other */

static const char *link_color(enum ib_port_state state)
{
	switch (state) {
	case IB_PORT_ACTIVE:
		return "#2a8c3c";
	case IB_PORT_ARMED:
		return "#e08a00";
	default:
		return "#8a8f98";
	}
}

/* ---- the places of nodes ---- */

/* A switch's layer is one above its lowest neighbour's; this goes on until nothing changes. */
static uint32_t layers_find(struct show *s)
{
	uint32_t layers = 1;
	bool changed = true;

	for (uint32_t i = 0; i < s->nnodes; i++)
		s->nodes[i].layer = show_is_switch(&s->nodes[i]) ? NO_LAYER : 0;
	for (uint32_t layer = 0; changed; layer++) {
		changed = false;
		for (uint32_t i = 0; i < s->nlinks; i++) {
			struct show_node *a = &s->nodes[s->links[i].from];
			struct show_node *b = &s->nodes[s->links[i].to];

			if (a->layer == layer && b->layer == NO_LAYER)
				b->layer = layer + 1, changed = true;
			else if (b->layer == layer && a->layer == NO_LAYER)
				a->layer = layer + 1, changed = true;
		}
		if (changed)
			layers = layer + 2;
	}
	/* No adapter is cabled to these switches. */
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (s->nodes[i].layer == NO_LAYER)
			s->nodes[i].layer = layers > 1 ? layers - 1 : (layers = 2, 1);
	return layers;
}

struct spot {
	uint32_t node;
	double weight; /* mean place of its neighbours */
};

static int spot_compare(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return x->node < y->node ? -1 : 1;
}

struct layout {
	struct spot *spots; /* those of the layer that is being sorted */
	double *sum;	    /* by node: sum of its neighbours' places in the layer beside */
	uint32_t *degree;
	uint32_t *width; /* number of nodes in each layer */
	uint32_t layers;
};

static void weights_find(struct show *s, struct layout *o, uint32_t layer, uint32_t beside)
{
	memset(o->sum, 0, s->nnodes * sizeof(*o->sum));
	memset(o->degree, 0, s->nnodes * sizeof(*o->degree));
	for (uint32_t i = 0; i < s->nlinks; i++) {
		const uint32_t ends[2] = {s->links[i].from, s->links[i].to};

		for (unsigned e = 0; e < 2; e++) {
			const struct show_node *mine = &s->nodes[ends[e]];
			const struct show_node *other = &s->nodes[ends[!e]];

			if (mine->layer != layer || other->layer != beside)
				continue;
			o->sum[ends[e]] += (other->place + 0.5) / o->width[beside];
			o->degree[ends[e]]++;
		}
	}
}

static void layer_order(struct show *s, struct layout *o, uint32_t layer, uint32_t beside)
{
	uint32_t n = 0;

	weights_find(s, o, layer, beside);
	for (uint32_t i = 0; i < s->nnodes; i++) {
		if (s->nodes[i].layer != layer)
			continue;
		o->spots[n].node = i;
		o->spots[n].weight = o->degree[i] ? o->sum[i] / o->degree[i]
						  : (s->nodes[i].place + 0.5) / o->width[layer];
		n++;
	}
	qsort(o->spots, n, sizeof(*o->spots), spot_compare);
	for (uint32_t i = 0; i < n; i++)
		s->nodes[o->spots[i].node].place = i;
}

static void layout_close(struct layout *o)
{
	free(o->spots);
	free(o->sum);
	free(o->degree);
	free(o->width);
}

static bool layout_open(struct show *s, struct layout *o)
{
	o->layers = layers_find(s);
	o->spots = calloc(s->nnodes + 1, sizeof(*o->spots));
	o->sum = calloc(s->nnodes + 1, sizeof(*o->sum));
	o->degree = calloc(s->nnodes + 1, sizeof(*o->degree));
	o->width = calloc(o->layers, sizeof(*o->width));
	if (!o->spots || !o->sum || !o->degree || !o->width)
		return false;
	for (uint32_t i = 0; i < s->nnodes; i++)
		s->nodes[i].place = o->width[s->nodes[i].layer]++;
	for (uint32_t layer = 1; layer < o->layers; layer++)
		layer_order(s, o, layer, layer - 1);
	if (o->layers > 1)
		layer_order(s, o, 0, 1);
	return true;
}

/* ---- drawing ---- */

struct picture {
	FILE *out;
	const struct show *show;
	const struct layout *layout;
	uint32_t width, height;
};

static double node_x(const struct picture *p, const struct show_node *n)
{
	return MARGIN + (p->width - 2.0 * MARGIN) * (n->place + 0.5) / p->layout->width[n->layer];
}

static double node_y(const struct picture *p, const struct show_node *n)
{
	return p->height - MARGIN - (double)LAYER_HEIGHT * n->layer;
}

static void svg_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			/* XML must not contain control characters. */
			fputc((unsigned char)*text < 0x20 ? ' ' : *text, out);
		}
	}
}

/* Links within a layer bend, because they would go through the nodes in between. */
static void link_draw(const struct picture *p, const struct show_link *l)
{
	const struct show *s = p->show;
	const struct show_node *a = &s->nodes[l->from], *b = &s->nodes[l->to];
	double x1 = node_x(p, a), y1 = node_y(p, a), x2 = node_x(p, b), y2 = node_y(p, b);
	double wide = 1 + (s->busiest ? 5.0 * (double)show_bytes(l) / (double)s->busiest : 0);
	double bend = a->layer == b->layer ? LAYER_HEIGHT / 2.0 : 0;

	fprintf(p->out,
		"<path d=\"M%.1f %.1f Q%.1f %.1f %.1f %.1f\" stroke=\"%s\" stroke-width=\"%.1f\" "
		"fill=\"none\"><title>",
		x1, y1, (x1 + x2) / 2, (y1 + y2) / 2 - bend, x2, y2, link_color(l->state), wide);
	svg_text(p->out, a->name);
	fprintf(p->out, " port %u - ", s->view->subnet.ports[l->a].number);
	svg_text(p->out, b->name);
	fprintf(p->out, " port %u: %s, %s, %" PRIu64 " bytes</title></path>\n",
		s->view->subnet.ports[l->b].number, show_state_name(l->state), l->rate,
		show_bytes(l));
}

static void node_draw(const struct picture *p, const struct show_node *n)
{
	bool named = show_is_switch(n) ? p->layout->width[n->layer] <= NAMED_HOSTS
				       : p->layout->width[0] <= NAMED_HOSTS;
	double x = node_x(p, n), y = node_y(p, n);

	if (show_is_switch(n))
		fprintf(p->out,
			"<rect x=\"%.1f\" y=\"%.1f\" width=\"18\" height=\"14\" rx=\"2\" "
			"fill=\"#23527c\">"
			"<title>",
			x - 9, y - 7);
	else
		fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"#555\"><title>", x,
			y, named ? "6" : "2");
	svg_text(p->out, n->name);
	fprintf(p->out, ", lid %u</title></%s>\n", show_lid(p->show, n),
		show_is_switch(n) ? "rect" : "circle");
	if (!named)
		return;
	fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\">", x, show_is_switch(n) ? y - 12 : y + 20);
	svg_text(p->out, n->name);
	fputs("</text>\n", p->out);
}

bool show_svg(struct show *s, FILE *out)
{
	struct layout o = {0};
	struct picture p = {.out = out, .show = s, .layout = &o};
	uint32_t widest = 1;

	if (!layout_open(s, &o)) {
		layout_close(&o);
		return false;
	}
	for (uint32_t i = 0; i < o.layers; i++)
		widest = o.width[i] > widest ? o.width[i] : widest;
	p.width = 2 * MARGIN + (widest <= NAMED_HOSTS ? widest * 70 : NAMED_HOSTS * 70);
	p.height = 2 * MARGIN + LAYER_HEIGHT * (o.layers - 1);
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %u\" "
		"font-family=\"sans-serif\" "
		"font-size=\"11\" text-anchor=\"middle\">\n<rect width=\"100%%\" height=\"100%%\" "
		"fill=\"white\"/>\n",
		p.width, p.height);
	for (uint32_t i = 0; i < s->nlinks; i++)
		link_draw(&p, &s->links[i]);
	for (uint32_t i = 0; i < s->nnodes; i++)
		node_draw(&p, &s->nodes[i]);
	fputs("</svg>\n", out);
	layout_close(&o);
	return true;
}
