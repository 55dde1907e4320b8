// SPDX-License-Identifier: BSD-2-Clause
/* Rules behind the root: a table of level 1 of any domain, to which the root leads. */
#include <string.h>

#include "host.h"

#define OUTER 1u

void tables_up(struct tables *t, struct ibv_context *ctx, enum mlx5dv_dr_domain_type type,
	       const struct fields *mask, const struct fields *root_mask,
	       const struct fields *root_value)
{
	struct fields all = {.bytes = sizeof(all.at)};

	*t = (struct tables){.domain = mlx5dv_dr_domain_create(ctx, type)};
	CHECK(t->domain);
	t->root = mlx5dv_dr_table_create(t->domain, 0);
	t->table = mlx5dv_dr_table_create(t->domain, 1);
	CHECK(t->root && t->table);
	t->root_matcher = mlx5dv_dr_matcher_create(t->root, 0, OUTER,
						   fields_of(root_mask ? root_mask : &all));
	t->matcher = mlx5dv_dr_matcher_create(t->table, 0, OUTER, fields_of(mask));
	t->to_table = mlx5dv_dr_action_create_dest_table(t->table);
	CHECK(t->root_matcher && t->matcher && t->to_table);
	t->root_rule = mlx5dv_dr_rule_create(
		t->root_matcher, fields_of(root_value ? root_value : &all), 1, &t->to_table);
	CHECK(t->root_rule);
}

void tables_rule(struct tables *t, const struct fields *value, struct mlx5dv_dr_action *action)
{
	CHECK(action && t->rules < TABLE_RULES);
	t->action[t->rules] = action;
	t->rule[t->rules] = mlx5dv_dr_rule_create(t->matcher, fields_of(value), 1, &action);
	CHECK(t->rule[t->rules]);
	t->rules++;
}

void tables_down(struct tables *t)
{
	for (unsigned i = 0; i < t->rules; i++)
		CHECK(!mlx5dv_dr_rule_destroy(t->rule[i]) &&
		      !mlx5dv_dr_action_destroy(t->action[i]));
	CHECK(!mlx5dv_dr_rule_destroy(t->root_rule) && !mlx5dv_dr_action_destroy(t->to_table));
	CHECK(!mlx5dv_dr_matcher_destroy(t->root_matcher) &&
	      !mlx5dv_dr_matcher_destroy(t->matcher));
	CHECK(!mlx5dv_dr_table_destroy(t->table) && !mlx5dv_dr_table_destroy(t->root));
	CHECK(!mlx5dv_dr_domain_destroy(t->domain));
}

void tables_abandon(struct tables *t)
{
	for (unsigned i = 0; i < t->rules; i++)
		(void)mlx5dv_dr_action_destroy(t->action[i]);
	(void)mlx5dv_dr_action_destroy(t->to_table);
	for (unsigned i = 0; i < t->rules; i++)
		(void)mlx5dv_dr_rule_destroy(t->rule[i]);
	(void)mlx5dv_dr_rule_destroy(t->root_rule);
	(void)mlx5dv_dr_table_destroy(t->root);
	(void)mlx5dv_dr_table_destroy(t->table);
	(void)mlx5dv_dr_matcher_destroy(t->root_matcher);
	(void)mlx5dv_dr_matcher_destroy(t->matcher);
	(void)mlx5dv_dr_domain_destroy(t->domain);
}
