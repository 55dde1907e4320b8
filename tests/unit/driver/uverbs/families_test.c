/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of what requests reach the families: no number twice, no row that cannot work. */
#include <rdma/ib_user_ioctl_cmds.h>

#include "check.h"
#include "driver/uverbs/uverbs.h"

static void method_check(const struct method_spec *m)
{
	CHECK(m->run && m->name && m->nattrs <= UREQ_ATTRS);
	/* another row with its numbers would be found in its place, or it in another's */
	CHECK(uverbs_method(m->object, m->method) == m);
	for (unsigned i = 0; i < m->nattrs; i++) {
		const struct attr_spec *a = &m->attrs[i];

		CHECK(a->min <= a->max && (a->type != ATTR_IDR || a->object < UOBJ_TYPES));
		CHECK(!m->uhw || (a->id != UVERBS_ATTR_UHW_IN && a->id != UVERBS_ATTR_UHW_OUT));
		for (unsigned k = 0; k < i; k++)
			CHECK(a->id != m->attrs[k].id);
	}
}

static void command_check(const struct command_spec *c)
{
	CHECK(c->run && c->name && uverbs_command(c->number) == c);
	if (c->number & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		CHECK(!c->has_response && !c->uhw);
	else
		CHECK(c->has_response == (c->out != 0));
}

int main(void)
{
	size_t methods = 0, commands = 0;

	for (size_t i = 0; i < uverbs_families_count; i++) {
		const struct uverbs_family *f = uverbs_families[i];

		for (size_t k = 0; k < i; k++)
			CHECK(uverbs_families[k] != f);
		for (size_t k = 0; k < f->nmethods; k++)
			method_check(&f->methods[k]);
		for (size_t k = 0; k < f->ncommands; k++)
			command_check(&f->commands[k]);
		methods += f->nmethods;
		commands += f->ncommands;
	}
	CHECK(methods > 40 && commands > 40);
	CHECK(!uverbs_method(uverbs_invoke_write.object, uverbs_invoke_write.method));
	CHECK(!uverbs_method(UVERBS_OBJECT_PD, 0xfff) && !uverbs_method(0xffff, 0));
	CHECK(!uverbs_command(IB_USER_VERBS_CMD_POST_SEND) && !uverbs_command(UINT32_MAX));
	return 0;
}
