// SPDX-License-Identifier: BSD-2-Clause
/* The list of all families, and the way from the number of a request to the row of its family. */
#include "driver/devx/devx.h"
#include "driver/uverbs/objects/families.h"
#include "driver/uverbs/uverbs.h"

const struct uverbs_family *const uverbs_families[] = {
	&ucontext_family,     &udevice_family,	&uadvise_family,     &uah_family,
	&ucounters_family,    &ucq_family,	&udm_family,	     &uflow_family,
	&uflow_action_family, &umatcher_family, &umcast_family,	     &umr_family,
	&umw_family,	      &upd_family,	&uqp_family,	     &uqp_object_family,
	&uqp_attr_family,     &usrq_family,	&uuar_family,	     &uwq_family,
	&uxrcd_family,	      &udevx_family,	&udevx_channel_family,
	&uumem_family,
};

const size_t uverbs_families_count = array_size(uverbs_families);

static const struct method_spec *family_method(const struct uverbs_family *f, uint16_t object,
					       uint16_t method)
{
	for (size_t i = 0; i < f->nmethods; i++)
		if (f->methods[i].object == object && f->methods[i].method == method)
			return &f->methods[i];
	return NULL;
}

const struct method_spec *uverbs_method(uint16_t object, uint16_t method)
{
	for (size_t i = 0; i < uverbs_families_count; i++) {
		const struct method_spec *m = family_method(uverbs_families[i], object, method);

		if (m)
			return m;
	}
	return NULL;
}

static const struct command_spec *family_command(const struct uverbs_family *f, uint32_t number)
{
	for (size_t i = 0; i < f->ncommands; i++)
		if (f->commands[i].number == number)
			return &f->commands[i];
	return NULL;
}

const struct command_spec *uverbs_command(uint32_t number)
{
	for (size_t i = 0; i < uverbs_families_count; i++) {
		const struct command_spec *c = family_command(uverbs_families[i], number);

		if (c)
			return c;
	}
	return NULL;
}
