// SPDX-License-Identifier: BSD-2-Clause
/*
 * Switches for fabrics that nobody has described: one, or a fat tree that blocks nothing.
 *
 * A port of a host goes to a leaf; the leaves of a pod have a cable to each spine of the pod; spine
 * n of each pod has its cables to the cores of group n.
 */
#include <errno.h>
#include <stdio.h>

#include "fabric/daemon/topology/plan.h"
#include "subnet/subnet.h"

/* OUI, 0x0300, then numbers that no host's card reaches (daemon/address.c). */
#define SWITCH_GUIDS 0x0c42a10300800000ull

#define SMALL_RADIX 36u
#define LARGE_RADIX 64u

struct tree {
	struct plan *plan;
	uint32_t hosts; /* how many ports hosts have */
	uint32_t radix;
	uint32_t leaves, pods, group; /* group: how many cores spine n of the pods share */
	uint32_t first_leaf, first_spine, first_core;
	uint32_t made;
};

/* Adds a switch; returns its index among the nodes, or -ENOMEM. */
static int64_t switch_add(struct tree *t, const char *kind, uint32_t number)
{
	struct plan_node node = {
		.type = SMP_NODE_SWITCH,
		.nports = (uint8_t)t->radix,
		.guid = SWITCH_GUIDS + t->made,
		.system_guid = SWITCH_GUIDS + t->made,
	};

	(void)snprintf(node.id, sizeof(node.id), "%s%u", kind, number + 1);
	(void)snprintf(node.description, sizeof(node.description), "%s%u", kind, number + 1);
	t->made++;
	return plan_add_node(t->plan, &node);
}

static int switches_add(struct tree *t, const char *kind, uint32_t count, uint32_t *first)
{
	*first = t->plan->nnodes;
	for (uint32_t i = 0; i < count; i++) {
		int64_t at = switch_add(t, kind, i);

		if (at < 0)
			return (int)at;
	}
	return 0;
}

static void plan_cable(struct plan *p, uint32_t a, uint32_t b)
{
	p->ports[a].cable = b;
	p->ports[b].cable = a;
}

static uint32_t switch_port(const struct tree *t, uint32_t node, uint32_t number)
{
	return plan_port_index(&t->plan->nodes[node], number);
}

static void hosts_connect(struct tree *t, uint32_t per_leaf)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < t->first_leaf; i++) {
		const struct plan_node *node = &t->plan->nodes[i];

		for (uint32_t number = 1; number <= node->nports; number++, at++)
			plan_cable(t->plan, plan_port_index(node, number),
				   switch_port(t, t->first_leaf + at / per_leaf,
					       at % per_leaf + 1));
	}
}

/* Leaf l has its cable to spine s of its pod at port half + s + 1; the spine at port l + 1. */
static void leaves_connect(struct tree *t, uint32_t half, uint32_t per_pod)
{
	for (uint32_t l = 0; l < t->leaves; l++)
		for (uint32_t s = 0; s < half; s++)
			plan_cable(t->plan, switch_port(t, t->first_leaf + l, half + s + 1),
				   switch_port(t, t->first_spine + l / per_pod * half + s,
					       l % per_pod + 1));
}

static void spines_connect(struct tree *t, uint32_t half)
{
	for (uint32_t p = 0; p < t->pods; p++)
		for (uint32_t s = 0; s < half; s++)
			for (uint32_t up = 0; up < half; up++) {
				uint32_t at = p * half + up, core = s * t->group + at % t->group;

				plan_cable(t->plan,
					   switch_port(t, t->first_spine + p * half + s,
						       half + up + 1),
					   switch_port(t, t->first_core + core, at / t->group + 1));
			}
}

/*
 * Returns the number of cores of a group.  A spine has as many cables to one core as to another, so
 * that OpenSM's ftree takes it for a fat tree.  That takes more cores than the cables need, and
 * where there are no LIDs for them, only the needed ones exist.
 */
static uint32_t tree_group(const struct tree *t, uint32_t half)
{
	uint32_t group = 1;

	while (t->pods * (half / group) > t->radix && group < half)
		group *= 2;
	if (t->hosts + t->leaves + (t->pods + group) * half >= SUBNET_LIDS)
		group = (t->pods + 1) / 2;
	return group;
}

static int one_switch(struct tree *t)
{
	int ret;

	t->radix = SMALL_RADIX;
	t->leaves = 1;
	ret = switches_add(t, "switch", 1, &t->first_leaf);
	if (!ret)
		hosts_connect(t, SMALL_RADIX);
	return ret;
}

static int fat_tree(struct tree *t, uint32_t radix, uint32_t per_pod)
{
	uint32_t half = radix / 2;
	int ret;

	t->radix = radix;
	t->leaves = (t->hosts + half - 1) / half;
	t->pods = (t->leaves + per_pod - 1) / per_pod;
	t->group = t->pods > 1 ? tree_group(t, half) : 0;
	ret = switches_add(t, "leaf", t->leaves, &t->first_leaf);
	if (!ret)
		ret = switches_add(t, "spine", t->pods * half, &t->first_spine);
	if (!ret)
		ret = switches_add(t, "core", t->group * half, &t->first_core);
	if (ret)
		return ret;
	hosts_connect(t, half);
	leaves_connect(t, half, per_pod);
	if (t->group)
		spines_connect(t, half);
	return 0;
}

int plan_add_switches(struct plan *p)
{
	struct tree t = {.plan = p, .hosts = p->nports};

	if (t.hosts <= SMALL_RADIX)
		return t.hosts ? one_switch(&t) : 0;
	/* With a single pod, all ports of a spine go down. */
	if (t.hosts <= SMALL_RADIX * SMALL_RADIX / 2)
		return fat_tree(&t, SMALL_RADIX, SMALL_RADIX);
	return fat_tree(&t, LARGE_RADIX, LARGE_RADIX / 2);
}
