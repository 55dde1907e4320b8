// SPDX-License-Identifier: BSD-2-Clause
/* Windows of the DPA: by what keys of a protection domain device code reaches memory of the host. */
#include "driver/devx/dpa_window.h"

#include "adapter/memory/mkey.h"
#include "base/rcu.h"
#include "driver/devx/dpa.h"
#include "prm/cmd_dpa.h"
#include "usermem/usermem.h"

#define COPY_BYTES_MAX (1ull << 32)

static uint32_t window_access(bool write)
{
	return write ? IB_ACCESS_LOCAL_WRITE : 0;
}

/* Of regions: their memory lies in one piece. */
static bool window_base(void *device, uint32_t key, uint32_t pdn, uint64_t *base)
{
	struct adapter *a = device;
	const struct mkey_meaning *m;
	bool is_region;

	rcu_enter();
	m = number_find(&a->mkeys, key >> 8);
	is_region = m && m->region_key == key && m->pdn == pdn;
	if (is_region)
		*base = (uintptr_t)m->addr - m->iova;
	rcu_leave();
	return is_region;
}

static bool window_allows(void *device, uint32_t key, uint32_t pdn, uint64_t haddr, uint64_t bytes,
			  bool write)
{
	bool allows;

	rcu_enter();
	allows = mkey_region_at(device, key, pdn, window_access(write), haddr, bytes) != NULL;
	rcu_leave();
	return allows;
}

static bool window_copy(void *device, uint32_t key, uint32_t pdn, uint64_t haddr, void *mine,
			uint64_t bytes, bool write)
{
	uint8_t *host;
	bool done = false;

	if (bytes > COPY_BYTES_MAX)
		return false;
	rcu_enter();
	host = mkey_region_at(device, key, pdn, window_access(write), haddr, bytes);
	if (host)
		done = write ? usermem_copy(host, mine, bytes) : usermem_copy(mine, host, bytes);
	rcu_leave();
	return done;
}

static const struct dpa_keys window_keys = {
	.base = window_base,
	.allows = window_allows,
	.copy = window_copy,
};

static void dpa_window_free(struct devx_obj *obj)
{
	dpa_window_remove(container_of(obj, struct devx_dpa_window, obj)->process, obj->number);
}

/* The number is one of its process. */
static const struct devx_class devx_dpa_window_class = {.free = dpa_window_free};

int devx_create_dpa_window(struct devx_call *c, struct devx_obj *obj)
{
	struct devx_dpa_window *w = container_of(obj, struct devx_dpa_window, obj);
	uint32_t pdn = prm_get32(c->in, DPA_WINDOW_PD);
	struct devx_dpa_process *process;
	struct uobj *pd = NULL;
	int ret = devx_dpa_process_find(c, prm_get32(c->in, DPA_WINDOW_PROCESS), &process);

	if (ret == 0)
		ret = devx_pd(c->file, pdn, &pd);
	if (ret < 0)
		return ret;
	w->process = process->process;
	ret = dpa_window_add(w->process, &window_keys, c->file->hca->adapter, pdn);
	if (ret < 0)
		return ret;
	devx_obj_init(obj, &devx_dpa_window_class, (uint32_t)ret);
	devx_obj_uses(obj, &process->obj.uobj);
	devx_obj_uses(obj, pd);
	return 0;
}
