// SPDX-License-Identifier: BSD-2-Clause
/* Windows of the DPA: a window has the protection domain of the keys by which device code reaches
 * memory of the host. */
#include "driver/devx/dpa_window.h"

#include <errno.h>

#include "adapter/memory/mkey.h"
#include "base/hazard.h"
#include "driver/devx/dpa_alias.h"
#include "prm/cmd_dpa.h"
#include "usermem/usermem.h"

#define COPY_BYTES_MAX (1ull << 32)

static uint32_t window_access(bool write)
{
	return write ? IB_ACCESS_LOCAL_WRITE : 0;
}

static struct mkey_use window_use(uint32_t key, uint32_t pdn, bool write)
{
	return (struct mkey_use){
		.key = key, .pdn = pdn, .qpn = MKEY_ANY_QPN, .access = window_access(write)};
}

/* The memory of a region lies in one piece. */
static bool window_find(void *device, uint32_t key, uint32_t pdn, bool *linear, uint64_t *base)
{
	const struct mkey_use u = window_use(key, pdn, false);
	struct adapter *a = device;
	const struct mkey_meaning *m;
	struct runs none;
	bool found;

	runs_begin(&none);
	hazard_enter();
	m = number_find(&a->mkeys, key >> 8);
	*linear = m && m->region_key == key;
	if (*linear)
		*base = (uintptr_t)m->addr - m->iova;
	found = *linear ? m->pdn == pdn : mkey_resolve(a, &u, 0, 0, &none) == MKEY_OK;
	hazard_leave();
	return found;
}

static bool window_allows(void *device, uint32_t key, uint32_t pdn, uint64_t haddr, uint64_t bytes,
			  bool write)
{
	bool allows;

	hazard_enter();
	allows = mkey_region_at(device, key, pdn, window_access(write), haddr, bytes) != NULL;
	hazard_leave();
	return allows;
}

static bool run_copy(const struct run *run, uint8_t *mine, bool write)
{
	if (run->addr == RUN_DISCARD)
		return true;
	return write ? usermem_copy(run->addr, mine, run->len)
		     : usermem_copy(mine, run->addr, run->len);
}

/* Copies, or only checks whether the key allows the copy. */
static bool window_walk(struct adapter *a, const struct mkey_use *u, uint64_t haddr, uint8_t *mine,
			uint64_t bytes, bool copy)
{
	bool write = u->access;
	struct runs runs;

	do {
		enum mkey_verdict v;

		runs_begin(&runs);
		v = mkey_resolve(a, u, haddr, bytes, &runs);
		if (v != MKEY_OK && (v != MKEY_TOO_MANY_RUNS || !runs.n))
			return false;
		for (uint32_t i = 0; i < runs.n; i++) {
			if (copy && !run_copy(&runs.run[i], mine, write))
				return false;
			mine += runs.run[i].len;
			haddr += runs.run[i].len;
			bytes -= runs.run[i].len;
		}
	} while (bytes);
	return true;
}

/* Copies all of it or nothing, as far as the key decides. */
static bool window_copy(void *device, uint32_t key, uint32_t pdn, uint64_t haddr, void *mine,
			uint64_t bytes, bool write)
{
	const struct mkey_use u = window_use(key, pdn, write);
	bool done;

	if (bytes > COPY_BYTES_MAX)
		return false;
	hazard_enter();
	done = window_walk(device, &u, haddr, mine, bytes, false) &&
	       window_walk(device, &u, haddr, mine, bytes, true);
	hazard_leave();
	return done;
}

static const struct dpa_keys window_keys = {
	.find = window_find,
	.allows = window_allows,
	.copy = window_copy,
};

static void dpa_window_free(struct devx_obj *obj)
{
	dpa_window_remove(container_of(obj, struct devx_dpa_window, obj)->process, obj->number);
}

/* The number is one of the process, so the process gives it back. */
static const struct devx_class devx_dpa_window_class = {.free = dpa_window_free};

int devx_create_dpa_window(struct devx_call *c, struct devx_obj *obj)
{
	struct devx_dpa_window *w = container_of(obj, struct devx_dpa_window, obj);
	uint32_t pdn = prm_get32(c->in, DPA_WINDOW_PD);
	struct uobj *process, *pd = NULL;
	int ret;

	w->process = devx_dpa_alias_find(c, prm_get32(c->in, DPA_WINDOW_PROCESS), &process);
	ret = w->process ? devx_pd(c->file, pdn, &pd) : -ENOENT;
	if (ret < 0)
		return ret;
	ret = dpa_window_add(w->process, &window_keys, c->file->hca->adapter, pdn);
	if (ret < 0)
		return ret;
	devx_obj_init(obj, &devx_dpa_window_class, (uint32_t)ret);
	devx_obj_uses(obj, process);
	devx_obj_uses(obj, pd);
	return 0;
}
