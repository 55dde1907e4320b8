// SPDX-License-Identifier: BSD-2-Clause
/* softhca fabric show: nodes and links of a subnet as text, JSON, for graphviz or drawn. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/client/link.h"
#include "prm/smp.h"
#include "tool/view.h"

struct show_node {
	const struct subnet_node *node;
	char name[SUBNET_NAME_BYTES + 1]; /* its description, as infiniband-diags print it */
	uint32_t place;			  /* when drawn: from the left, in its layer */
	uint32_t layer; /* 0: adapters and routers; switches by their distance to those */
};

struct show_link {
	uint32_t a, b;		  /* rows of its ports */
	uint32_t from, to;	  /* indices of their nodes in show.nodes */
	uint64_t bytes[2];	  /* bytes that a and b have sent */
	enum ib_port_state state; /* the lower state of the two ends */
	char rate[32];		  /* "4X NDR" */
};

struct show {
	struct view *view;
	const char *fabric;
	struct show_node *nodes;
	struct show_link *links;
	uint32_t nnodes, nlinks;
	uint32_t switches;
	uint64_t busiest; /* bytes of the busiest link */
};

static inline uint64_t show_bytes(const struct show_link *l)
{
	return l->bytes[0] + l->bytes[1];
}

/* ---- for graphviz: softhca fabric show dot | dot -Tpdf ---- */

static const char *dot_link_color(enum ib_port_state state)
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

static bool show_is_switch(const struct show_node *n);

static const char *show_state_name(enum ib_port_state state);

static uint32_t show_lid(const struct show *s, const struct show_node *n);

/* Writes it for graphviz. */
static void show_dot(struct show *s, FILE *out)
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
			dot_link_color(l->state),
			1 + (s->busiest ? 4.0 * (double)show_bytes(l) / (double)s->busiest : 0),
			show_state_name(l->state), l->rate, show_bytes(l));
	}
	fprintf(out, "}\n");
}

/* ---- drawn ---- */

/*
 * Draws a subnet: adapters and routers below, switches in layers above by how far they are from
 * them.  Each layer's nodes stand in the order of what they are cabled to below, so a tree has few
 * crossings.
 */

#define LAYER_HEIGHT 140u
#define MARGIN	     60u
#define NO_LAYER     0xffffffffu
#define NAMED_HOSTS  64u /* names of more hosts would lie on each other */

static const char *svg_link_color(enum ib_port_state state)
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
	bool in_page; /* which has colours of its own */
};

static double node_x(const struct picture *p, const struct show_node *n)
{
	return MARGIN + (p->width - 2.0 * MARGIN) * (n->place + 0.5) / p->layout->width[n->layer];
}

static double node_y(const struct picture *p, const struct show_node *n)
{
	return p->height - MARGIN - (double)LAYER_HEIGHT * n->layer;
}

void xml_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned n = utf8_bytes((const unsigned char *)text);

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
		case '\'':
			fputs("&#39;", out);
			break;
		default:
			/* XML must not contain control characters. */
			if (!n)
				fputs("&#xfffd;", out);
			else if (n > 1)
				fwrite(text, 1, n, out), text += n - 1;
			else
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
		x1, y1, (x1 + x2) / 2, (y1 + y2) / 2 - bend, x2, y2, svg_link_color(l->state),
		wide);
	xml_text(p->out, a->name);
	fprintf(p->out, " port %u - ", s->view->subnet.ports[l->a].number);
	xml_text(p->out, b->name);
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
		fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"%s\"><title>", x,
			y, named ? "6" : "2", p->in_page ? "currentColor" : "#555");
	xml_text(p->out, n->name);
	fprintf(p->out, ", lid %u</title></%s>\n", show_lid(p->show, n),
		show_is_switch(n) ? "rect" : "circle");
	if (!named)
		return;
	fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\">", x, show_is_switch(n) ? y - 12 : y + 20);
	xml_text(p->out, n->name);
	fputs("</text>\n", p->out);
}

/* Draws it without help.  False: no memory. */
static must_check bool show_svg(struct show *s, FILE *out, bool in_page)
{
	struct layout o = {0};
	struct picture p = {.out = out, .show = s, .layout = &o, .in_page = in_page};
	uint32_t widest = 1;

	if (!layout_open(s, &o)) {
		layout_close(&o);
		return false;
	}
	for (uint32_t i = 0; i < o.layers; i++)
		widest = o.width[i] > widest ? o.width[i] : widest;
	p.width = 2 * MARGIN + (in_page ? 110u : 70u) * min_u32(widest, NAMED_HOSTS);
	p.height = 2 * MARGIN + LAYER_HEIGHT * (o.layers - 1);
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %u\" "
		"font-family=\"sans-serif\" font-size=\"11\" text-anchor=\"middle\"",
		p.width, p.height);
	if (in_page)
		fprintf(out, " width=\"%u\" fill=\"currentColor\">\n<title>Subnet</title>\n",
			p.width);
	else
		fputs(">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n", out);
	for (uint32_t i = 0; i < s->nlinks; i++)
		link_draw(&p, &s->links[i]);
	for (uint32_t i = 0; i < s->nnodes; i++)
		node_draw(&p, &s->nodes[i]);
	fputs("</svg>\n", out);
	layout_close(&o);
	return true;
}

/* ---- the subnet, as text and JSON ---- */

static const char *const state_names[] = {
	[IB_PORT_DOWN] = "Down",
	[IB_PORT_INIT] = "Init",
	[IB_PORT_ARMED] = "Armed",
	[IB_PORT_ACTIVE] = "Active",
};

static const char *show_state_name(enum ib_port_state state)
{
	return state >= IB_PORT_DOWN && state <= IB_PORT_ACTIVE ? state_names[state] : "?";
}

static bool show_is_switch(const struct show_node *n)
{
	return n->node->kind == SUBNET_SWITCH;
}

static const char *node_type_name(const struct show_node *n)
{
	switch (n->node->type) {
	case SMP_NODE_SWITCH:
		return "switch";
	case SMP_NODE_ROUTER:
		return "router";
	default:
		return "adapter";
	}
}

/* Returns the number of external ports; a switch's port 0 is its own. */
static uint32_t node_ports(const struct show_node *n)
{
	return n->node->nports - (show_is_switch(n) ? 1 : 0);
}

static uint32_t show_lid(const struct show *s, const struct show_node *n)
{
	const struct subnet_port *p = &s->view->subnet.ports[n->node->first_port];

	return atomic_load_explicit(&p->lid, memory_order_relaxed);
}

/* ---- what the subnet has ---- */

/* Returns bytes by row, as far as the daemon tells.  NULL: no memory. */
static uint64_t *rows_sent(const struct view *v)
{
	uint64_t *sent = calloc(v->subnet.nports + FABRIC_SENT_ROWS, sizeof(*sent));
	int fds[MSG_MAX_FDS];

	for (uint32_t row = 0; sent && row < v->subnet.nports; row += FABRIC_SENT_ROWS) {
		struct msg m = {.index.index = row};

		if (link_call(v->sock, &m, MSG_SENT, fds))
			break;
		memcpy(sent + row, m.sent_reply.bytes, sizeof(m.sent_reply.bytes));
	}
	return sent;
}

/* Takes what is in parentheses of "10 Gb/sec (4X SDR)". */
static void link_rate(const struct show *s, struct show_link *l)
{
	char text[64], *begin;

	view_attr(s->view, l->a, ATTR_RATE, text, sizeof(text));
	begin = strchr(text, '(');
	snprintf(l->rate, sizeof(l->rate), "%.31s", begin ? begin + 1 : text);
	l->rate[strcspn(l->rate, ")")] = '\0';
}

/* Returns the row at the other end of a link that is up, or SUBNET_NONE. */
static uint32_t row_peer(const struct subnet *subnet, uint32_t row)
{
	uint32_t peer = atomic_load_explicit(&subnet->ports[row].peer_plus_1, memory_order_acquire);

	return peer && peer <= subnet->nports ? peer - 1 : SUBNET_NONE;
}

static uint32_t row_state(const struct subnet *subnet, uint32_t row)
{
	return atomic_load_explicit(&subnet->ports[row].state, memory_order_acquire);
}

/* node_of[row of a node]: its index here plus one; 0: the node is not shown. */
static void links_add(struct show *s, const uint32_t *node_of, const uint64_t *sent, uint32_t row)
{
	const struct subnet *subnet = &s->view->subnet;
	uint32_t peer = row_peer(subnet, row), one, other;
	struct show_link *l = &s->links[s->nlinks];

	/* Adds a link only from the end whose row comes first. */
	if (peer == SUBNET_NONE || peer < row || !node_of[subnet->ports[peer].node])
		return;
	one = row_state(subnet, row);
	other = row_state(subnet, peer);
	*l = (struct show_link){
		.a = row,
		.b = peer,
		.from = node_of[subnet->ports[row].node] - 1,
		.to = node_of[subnet->ports[peer].node] - 1,
		.bytes = {sent[row], sent[peer]},
		.state = (enum ib_port_state)(one < other ? one : other),
	};
	link_rate(s, l);
	if (show_bytes(l) > s->busiest)
		s->busiest = show_bytes(l);
	s->nlinks++;
}

/*
 * Programs write descriptions too, of any bytes, perhaps with a newline at the end; one may fill
 * its room.
 */
static void name_print(char *name, const char *description)
{
	size_t bytes = strnlen(description, SUBNET_NAME_BYTES);

	for (size_t i = 0; i < bytes; i++)
		name[i] = description[i] >= ' ' && description[i] <= '~' ? description[i] : ' ';
	while (bytes && name[bytes - 1] == ' ')
		bytes--;
	name[bytes] = '\0';
}

/* Ethernet devices are not part of the subnet, so they are left out. */
static void nodes_add(struct show *s, uint32_t *node_of)
{
	const struct subnet *subnet = &s->view->subnet;

	for (uint32_t i = 0; i < subnet->nnodes; i++) {
		const struct subnet_node *node = &subnet->nodes[i];
		struct show_node *n = &s->nodes[s->nnodes];

		if (!node->nports || subnet->ports[node->first_port].ethernet)
			continue;
		*n = (struct show_node){
			.node = node,
		};
		name_print(n->name, node->description[0] ? node->description : node->id);
		s->switches += show_is_switch(n);
		node_of[i] = ++s->nnodes;
	}
}

static bool show_open(struct show *s, struct view *v, const char *fabric)
{
	uint32_t *node_of = calloc(v->subnet.nnodes + 1, sizeof(*node_of));
	uint64_t *sent = rows_sent(v);

	*s = (struct show){.view = v, .fabric = fabric};
	s->nodes = calloc(v->subnet.nnodes + 1, sizeof(*s->nodes));
	s->links = calloc(v->subnet.nports / 2 + 1, sizeof(*s->links));
	if (!s->nodes || !s->links || !node_of || !sent) {
		free(node_of);
		free(sent);
		return false;
	}
	nodes_add(s, node_of);
	/* A cable that moves meanwhile may appear twice, so this checks the room. */
	for (uint32_t row = 0; row < v->subnet.nports && s->nlinks <= v->subnet.nports / 2; row++)
		if (node_of[v->subnet.ports[row].node])
			links_add(s, node_of, sent, row);
	free(node_of);
	free(sent);
	return true;
}

static void show_close(struct show *s)
{
	free(s->nodes);
	free(s->links);
}

/* ---- text ---- */

static void link_print(const struct show *s, const struct show_link *l, uint32_t node)
{
	const struct subnet_port *ports = s->view->subnet.ports;
	bool first = l->from == node;
	uint32_t mine = first ? l->a : l->b, other = first ? l->b : l->a;
	const struct show_node *there = &s->nodes[first ? l->to : l->from];

	printf("  %3u  %-7s %-7s %s port %u", ports[mine].number, show_state_name(l->state),
	       l->rate, there->name, ports[other].number);
	if (show_bytes(l))
		printf(", %" PRIu64 " bytes out, %" PRIu64 " in", l->bytes[!first],
		       l->bytes[first]);
	putchar('\n');
}

/* Links lie in the order of rows of their first ends only.  A pass over all links for each node
 * would be too slow in a large subnet, so this first sorts them into lists. */
struct ends {
	uint32_t *next[2]; /* by link: next of its first and of its second end */
	uint32_t *first;   /* by node: link * 2 + end, plus one */
};

static bool ends_open(struct ends *e, const struct show *s)
{
	e->next[0] = calloc(s->nlinks + 1, sizeof(**e->next));
	e->next[1] = calloc(s->nlinks + 1, sizeof(**e->next));
	e->first = calloc(s->nnodes + 1, sizeof(*e->first));
	if (!e->next[0] || !e->next[1] || !e->first)
		return false;
	for (uint32_t i = s->nlinks; i-- > 0;) {
		for (uint32_t end = 2; end-- > 0;) {
			uint32_t node = end ? s->links[i].to : s->links[i].from;

			e->next[end][i] = e->first[node];
			e->first[node] = 2 * i + end + 1;
		}
	}
	return true;
}

static void ends_close(struct ends *e)
{
	free(e->next[0]);
	free(e->next[1]);
	free(e->first);
}

static bool show_text(struct show *s)
{
	struct ends e = {0};

	if (!ends_open(&e, s)) {
		ends_close(&e);
		return false;
	}
	printf("fabric %s: %u switches, %u other nodes, %u links\n", s->fabric, s->switches,
	       s->nnodes - s->switches, s->nlinks);
	for (uint32_t n = 0; n < s->nnodes; n++) {
		const struct show_node *node = &s->nodes[n];

		printf("%s: %s, %u ports, lid %u, guid 0x%016" PRIx64 "\n", node->name,
		       node_type_name(node), node_ports(node), show_lid(s, node), node->node->guid);
		for (uint32_t at = e.first[n]; at; at = e.next[(at - 1) % 2][(at - 1) / 2])
			link_print(s, &s->links[(at - 1) / 2], n);
	}
	ends_close(&e);
	return true;
}

/* ---- JSON ---- */

static void node_json(const struct show *s, struct json *j, const struct show_node *n)
{
	char guid[32];

	view_guid(n->node->guid, guid, sizeof(guid));
	json_open(j, NULL, '{');
	json_string(j, "name", n->name);
	json_string(j, "id", n->node->id);
	json_string(j, "type", node_type_name(n));
	json_string(j, "guid", guid);
	json_number(j, "ports", node_ports(n));
	json_number(j, "lid", show_lid(s, n));
	json_close(j, '}');
}

static void end_json(const struct show *s, struct json *j, const char *key, uint32_t node,
		     uint32_t row, uint64_t bytes)
{
	json_open(j, key, '{');
	json_string(j, "node", s->nodes[node].name);
	json_number(j, "port", s->view->subnet.ports[row].number);
	json_number(j, "bytes_sent", bytes);
	json_close(j, '}');
}

static void show_json(const struct show *s)
{
	struct json j = {stdout, true};

	json_open(&j, NULL, '{');
	json_string(&j, "fabric", s->fabric);
	json_open(&j, "nodes", '[');
	for (uint32_t i = 0; i < s->nnodes; i++)
		node_json(s, &j, &s->nodes[i]);
	json_close(&j, ']');
	json_open(&j, "links", '[');
	for (uint32_t i = 0; i < s->nlinks; i++) {
		const struct show_link *l = &s->links[i];

		json_open(&j, NULL, '{');
		json_string(&j, "state", show_state_name(l->state));
		json_string(&j, "rate", l->rate);
		end_json(s, &j, "a", l->from, l->a, l->bytes[0]);
		end_json(s, &j, "b", l->to, l->b, l->bytes[1]);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	putchar('\n');
}

static bool show_as(struct show *s, const char *form, bool json)
{
	if (json) {
		show_json(s);
		return true;
	}
	if (!strcmp(form, "svg"))
		return show_svg(s, stdout, false);
	if (!strcmp(form, "dot")) {
		show_dot(s, stdout);
		return true;
	}
	return show_text(s);
}

bool subnet_draw(FILE *out, struct view *v, const char *fabric)
{
	struct show s;
	bool drawn = show_open(&s, v, fabric) && show_svg(&s, out, true);

	show_close(&s);
	return drawn;
}

static bool form_is_known(const char *form)
{
	return strcmp(form, "text") == 0 || strcmp(form, "dot") == 0 || strcmp(form, "svg") == 0;
}

int subnet_show(const struct session *s, int argc, char **argv)
{
	const char *form = argc ? argv[0] : "text";
	struct show show;
	struct view v;
	bool shown;

	if (argc > 1 || !form_is_known(form)) {
		tool_error(s->command, "it takes text, dot or svg, not '%s'",
			   argv[argc > 1 ? 1 : 0]);
		return EXIT_USAGE;
	}
	if (!view_open(s, false, &v))
		return EXIT_OURS;
	shown = show_open(&show, &v, s->fabric) && show_as(&show, form, s->json);
	if (!shown)
		tool_error(s->command, "no memory for a picture of fabric '%s'", s->fabric);
	show_close(&show);
	view_close(&v);
	return shown ? 0 : EXIT_OURS;
}
