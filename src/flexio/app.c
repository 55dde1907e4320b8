// SPDX-License-Identifier: BSD-2-Clause
/* Applications: device code under a name, mostly made before main by dpacc's constructor. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flexio/image.h"
#include "flexio/internal.h"

/* Returns the name's length if it is a good name, else 0; logs. */
static size_t name_length(const char *name, const char *function, const char *argument)
{
	size_t n = strnlen(name, FLEXIO_MAX_NAME_LEN + 1);

	if (!n || n > FLEXIO_MAX_NAME_LEN) {
		flx_fail(function, "%s: a name has 1 to %d bytes", argument, FLEXIO_MAX_NAME_LEN);
		return 0;
	}
	return n;
}

static bool app_attr_check(const struct flexio_app_attr *attr, const char *function)
{
	const unsigned char *elf = attr->app_ptr;

	if (!flx_given(attr->app_name, function, "app_name") ||
	    !name_length(attr->app_name, function, "app_name") ||
	    !flx_given(elf, function, "app_ptr"))
		return false;
	if (attr->app_bsize < sizeof(Elf64_Ehdr) || memcmp(elf, ELFMAG, SELFMAG) != 0) {
		flx_fail(function, "app_ptr: these app_bsize: %zu bytes are no ELF file",
			 attr->app_bsize);
		return false;
	}
	return true;
}

static void app_free(struct flexio_app *app)
{
	while (app->functions) {
		struct flx_function *f = app->functions;

		app->functions = f->next;
		free(f->name);
		free(f->unpack_name);
		free(f);
	}
	free(app->name);
	free(app->elf);
	free(app);
}

flexio_status flexio_app_create(struct flexio_app_attr *fattr, struct flexio_app **app)
{
	struct flexio_app *a;

	if (!flx_given(app, __func__, "app"))
		return FLEXIO_STATUS_FAILED;
	*app = NULL;
	if (!flx_given(fattr, __func__, "fattr") || !app_attr_check(fattr, __func__))
		return FLEXIO_STATUS_FAILED;
	a = calloc(1, sizeof(*a));
	if (!a)
		return flx_fail(__func__, "no memory");
	a->name = strdup(fattr->app_name);
	a->elf = malloc(fattr->app_bsize);
	if (!a->name || !a->elf) {
		app_free(a);
		return flx_fail(__func__, "no memory");
	}
	memcpy(a->elf, fattr->app_ptr, fattr->app_bsize);
	a->elf_bytes = fattr->app_bsize;
	a->references = 1;
	flx_object_add(&a->object, FLX_APP, NULL);
	*app = a;
	return FLEXIO_STATUS_SUCCESS;
}

void flx_app_hold(struct flexio_app *app)
{
	flx_objects_lock();
	app->references++;
	flx_objects_unlock();
}

void flx_app_put(struct flexio_app *app)
{
	bool last;

	flx_objects_lock();
	last = !--app->references;
	flx_objects_unlock();
	if (last)
		app_free(app);
}

/* Processes of the application go on, but nobody finds its functions any more. */
flexio_status flexio_app_destroy(struct flexio_app *app)
{
	FLX_HOLD(hold);

	if (!flx_claim(&hold, app, FLX_APP, __func__, "app"))
		return FLEXIO_STATUS_FAILED;
	flx_objects_lock();
	app->destroyed = true;
	flx_objects_unlock();
	flx_app_put(app);
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_app_get_list(struct flexio_app ***app_list, uint32_t *num_apps)
{
	struct flexio_app **list = NULL;
	uint32_t n = 0;

	if (app_list)
		*app_list = NULL;
	if (num_apps)
		*num_apps = 0;
	if (!app_list || !num_apps) {
		(void)(flx_given(app_list, __func__, "app_list") &&
		       flx_given(num_apps, __func__, "num_apps"));
		return FLEXIO_STATUS_FAILED;
	}
	flx_objects_lock();
	for (struct flx_object *o = flx_object_next(FLX_APP, NULL); o;
	     o = flx_object_next(FLX_APP, o))
		n++;
	/* The list is never NULL, even if there are no applications. */
	list = calloc(n + 1, sizeof(struct flexio_app *));
	if (list) {
		uint32_t at = n;

		for (struct flx_object *o = flx_object_next(FLX_APP, NULL); o;
		     o = flx_object_next(FLX_APP, o))
			list[--at] = (struct flexio_app *)o;
	}
	flx_objects_unlock();
	if (!list)
		return flx_fail(__func__, "no memory");
	*app_list = list;
	*num_apps = n;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_app_list_free(struct flexio_app **apps_list)
{
	if (!flx_given(apps_list, __func__, "apps_list"))
		return FLEXIO_STATUS_FAILED;
	free(apps_list);
	return FLEXIO_STATUS_SUCCESS;
}

const char *flexio_app_get_name(struct flexio_app *app)
{
	FLX_HOLD(hold);

	return flx_check(&hold, app, FLX_APP, __func__, "app") ? app->name : NULL;
}

size_t flexio_app_get_elf_size(struct flexio_app *app)
{
	FLX_HOLD(hold);

	return flx_check(&hold, app, FLX_APP, __func__, "app") ? app->elf_bytes : 0;
}

flexio_status flexio_app_get_elf(struct flexio_app *app, uint64_t *bin_buff, size_t bin_size)
{
	FLX_HOLD(hold);

	if (!flx_check(&hold, app, FLX_APP, __func__, "app") ||
	    !flx_given(bin_buff, __func__, "bin_buff"))
		return FLEXIO_STATUS_FAILED;
	if (bin_size < app->elf_bytes)
		return flx_fail(__func__, "bin_size: the ELF file has %zu bytes, not %zu",
				app->elf_bytes, bin_size);
	memcpy(bin_buff, app->elf, app->elf_bytes);
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_app_extract_symbol(struct flexio_app *app, const char *symbol_name,
					void *symbol_data, size_t *sym_data_size)
{
	FLX_HOLD(hold);
	size_t room, bytes;
	const void *data;

	if (!flx_given(sym_data_size, __func__, "sym_data_size"))
		return FLEXIO_STATUS_FAILED;
	room = *sym_data_size;
	*sym_data_size = 0;
	if (!flx_check(&hold, app, FLX_APP, __func__, "app") ||
	    !flx_given(symbol_name, __func__, "symbol_name") ||
	    !flx_given(symbol_data, __func__, "symbol_data"))
		return FLEXIO_STATUS_FAILED;
	if (!flx_symbol_data(app->elf, app->elf_bytes, symbol_name, &data, &bytes))
		return FLEXIO_STATUS_SUCCESS;
	if (bytes > room)
		return flx_fail(__func__, "sym_data_size: %s has %zu bytes, not %zu", symbol_name,
				bytes, room);
	if (data)
		memcpy(symbol_data, data, bytes);
	else
		memset(symbol_data, 0, bytes);
	*sym_data_size = bytes;
	return FLEXIO_STATUS_SUCCESS;
}

/* ---- functions ---- */

static struct flx_function *function_find(const struct flexio_app *app, flexio_func_t *stub)
{
	struct flx_function *f = app->functions;

	while (f && f->stub != stub)
		f = f->next;
	return f;
}

/* The file is at hand, so a wrong name is told where it stands, not where it is used first. */
static bool function_there(const struct flexio_app *app, const char *name, const char *function,
			   const char *argument)
{
	if (!flx_given(name, function, argument) || !name_length(name, function, argument))
		return false;
	if (flx_symbol_is_function(app->elf, app->elf_bytes, name))
		return true;
	flx_fail(function, "%s: application %s has no function %s", argument, app->name, name);
	return false;
}

static struct flx_function *function_make(const char *name, const char *unpack_name)
{
	struct flx_function *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->name = strdup(name);
	f->unpack_name = unpack_name ? strdup(unpack_name) : NULL;
	if (f->name && (!unpack_name || f->unpack_name))
		return f;
	free(f->name);
	free(f->unpack_name);
	free(f);
	return NULL;
}

static flexio_status function_add(struct flexio_app *app, struct flx_function *f,
				  const char *function)
{
	bool is_there;

	flx_objects_lock();
	is_there = function_find(app, f->stub) != NULL;
	if (!is_there) {
		f->next = app->functions;
		app->functions = f;
	}
	flx_objects_unlock();
	if (!is_there)
		return FLEXIO_STATUS_SUCCESS;
	flx_fail(function, "host_stub_func_addr: %s is registered under it already", f->name);
	free(f->name);
	free(f->unpack_name);
	free(f);
	return FLEXIO_STATUS_FAILED;
}

flexio_status flexio_func_pup_register(struct flexio_app *app, const char *dev_func_name,
				       const char *dev_unpack_func_name,
				       flexio_func_t *host_stub_func_addr, size_t argbuf_size,
				       flexio_func_arg_pack_fn_t *host_pack_func)
{
	FLX_HOLD(hold);
	struct flx_function *f;

	if (!flx_check(&hold, app, FLX_APP, __func__, "app") ||
	    !function_there(app, dev_func_name, __func__, "dev_func_name") ||
	    !function_there(app, dev_unpack_func_name, __func__, "dev_unpack_func_name") ||
	    !flx_given((const void *)(uintptr_t)host_stub_func_addr, __func__,
		       "host_stub_func_addr") ||
	    !flx_given((const void *)(uintptr_t)host_pack_func, __func__, "host_pack_func"))
		return FLEXIO_STATUS_FAILED;
	if (argbuf_size > DPA_CALL_BYTES)
		return flx_fail(__func__, "argbuf_size: %zu, at most %u", argbuf_size,
				DPA_CALL_BYTES);
	f = function_make(dev_func_name, dev_unpack_func_name);
	if (!f)
		return flx_fail(__func__, "no memory");
	f->stub = host_stub_func_addr;
	f->argbuf_bytes = argbuf_size;
	f->pack = host_pack_func;
	return function_add(app, f, __func__);
}

flexio_status flexio_func_register(struct flexio_app *app, const char *dev_func_name,
				   flexio_func_t **out_func)
{
	FLX_HOLD(hold);
	struct flx_function *f;

	if (!flx_given(out_func, __func__, "out_func"))
		return FLEXIO_STATUS_FAILED;
	*out_func = NULL;
	if (!flx_check(&hold, app, FLX_APP, __func__, "app") ||
	    !function_there(app, dev_func_name, __func__, "dev_func_name"))
		return FLEXIO_STATUS_FAILED;
	f = function_make(dev_func_name, NULL);
	if (!f)
		return flx_fail(__func__, "no memory");
	/* The library only compares the address and never calls it: the record's is as unique as a
	 * function's. */
	f->stub = (flexio_func_t *)(uintptr_t)f;
	f->argbuf_bytes = sizeof(uint64_t);
	if (function_add(app, f, __func__) != FLEXIO_STATUS_SUCCESS)
		return FLEXIO_STATUS_FAILED;
	*out_func = f->stub;
	return FLEXIO_STATUS_SUCCESS;
}

/* ---- the addresses of a function in a process ---- */

static int symbol_ask(const struct flexio_process *p, const char *name, uint64_t *addr)
{
	uint8_t in[DPA_IN_FIXED + FLEXIO_MAX_NAME_LEN + 1] = {0}, out[DPA_OUT_BYTES] = {0};
	size_t bytes = strlen(name) + 1;
	int err;

	prm_set(in, DPA_IN_BYTES, bytes);
	memcpy(in + DPA_IN_TAIL, name, bytes);
	err = flx_devx_op(p, DPA_OP_SYMBOL, in, sizeof(in), out, sizeof(out));
	*addr = prm_get(out, DPA_OUT_ADDR);
	return err;
}

static struct flx_address *address_make(struct flexio_process *p, const struct flx_function *f,
					const char *caller)
{
	struct flx_address *a = calloc(1, sizeof(*a));
	const char *asked = f->name;
	int err;

	if (!a) {
		flx_fail(caller, "no memory");
		return NULL;
	}
	a->function = f;
	err = symbol_ask(p, f->name, &a->addr);
	if (!err && f->unpack_name) {
		asked = f->unpack_name;
		err = symbol_ask(p, asked, &a->unpack);
	}
	if (err) {
		if (err == ENOENT && p->pid == getpid())
			flx_fail(caller, "the device code has no function %s", asked);
		else
			(void)flx_refused(p, caller, err);
		free(a);
		return NULL;
	}
	a->next = p->addresses;
	p->addresses = a;
	return a;
}

bool flx_function_find(struct flexio_process *p, flexio_func_t *stub, const char *caller,
		       const char *argument, struct flx_address *out)
{
	const struct flx_function *f = NULL;
	struct flx_address *a;

	flx_objects_lock();
	if (!p->app->destroyed)
		f = function_find(p->app, stub);
	flx_objects_unlock();
	if (!f) {
		flx_fail(caller, "%s: no function of the application is registered under it",
			 argument);
		return false;
	}
	pthread_mutex_lock(&p->lock);
	for (a = p->addresses; a && a->function != f; a = a->next)
		;
	if (!a)
		a = address_make(p, f, caller);
	pthread_mutex_unlock(&p->lock);
	if (a)
		*out = *a;
	return a != NULL;
}

/* ---- what the library knows of a registered function ---- */

static bool register_names(const struct flx_function *f, char *name, char *unpack, size_t room,
			   const char *caller)
{
	if (strlen(f->name) >= room || (f->unpack_name && strlen(f->unpack_name) >= room)) {
		flx_fail(caller, "func_name_size: %zu bytes are too few", room);
		return false;
	}
	snprintf(name, room, "%s", f->name);
	if (f->unpack_name)
		snprintf(unpack, room, "%s", f->unpack_name);
	return true;
}

/* Finds the addresses in any process of the application; without a process, they are zero. */
static void register_addresses(struct flexio_app *app, const struct flx_function *f,
			       struct flx_address *out)
{
	struct flexio_process *p = NULL;
	FLX_HOLD(hold);

	flx_objects_lock();
	for (struct flx_object *o = flx_object_next(FLX_PROCESS, NULL); o && !p;
	     o = flx_object_next(FLX_PROCESS, o))
		if (container_of(o, struct flexio_process, object)->app == app)
			p = container_of(o, struct flexio_process, object);
	if (p)
		flx_hold_add(&hold, &p->object);
	flx_objects_unlock();
	if (p && !flx_function_find(p, f->stub, "flexio_func_get_register_info",
				    "host_stub_func_addr", out))
		*out = (struct flx_address){0};
}

flexio_status flexio_func_get_register_info(struct flexio_app *app,
					    flexio_func_t *host_stub_func_addr, uint32_t *pup,
					    char *dev_func_name, char *dev_unpack_func_name,
					    size_t func_name_size, size_t *argbuf_size,
					    flexio_func_arg_pack_fn_t **host_pack_func,
					    flexio_uintptr_t *dev_func_addr,
					    flexio_uintptr_t *dev_unpack_func_addr)
{
	FLX_HOLD(hold);
	struct flx_address at = {0};
	struct flx_function *f;

	if (!flx_check(&hold, app, FLX_APP, __func__, "app") || !flx_given(pup, __func__, "pup") ||
	    !flx_given(dev_func_name, __func__, "dev_func_name") ||
	    !flx_given(dev_func_addr, __func__, "dev_func_addr"))
		return FLEXIO_STATUS_FAILED;
	flx_objects_lock();
	f = function_find(app, host_stub_func_addr);
	flx_objects_unlock();
	if (!f)
		return flx_fail(__func__,
				"host_stub_func_addr: no function is registered under it");
	/* A function without a pack function has nothing of this to tell. */
	if (f->pack && (!flx_given(dev_unpack_func_name, __func__, "dev_unpack_func_name") ||
			!flx_given(argbuf_size, __func__, "argbuf_size") ||
			!flx_given(host_pack_func, __func__, "host_pack_func") ||
			!flx_given(dev_unpack_func_addr, __func__, "dev_unpack_func_addr")))
		return FLEXIO_STATUS_FAILED;
	if (!register_names(f, dev_func_name, dev_unpack_func_name, func_name_size, __func__))
		return FLEXIO_STATUS_FAILED;
	register_addresses(app, f, &at);
	*pup = f->pack != NULL;
	*dev_func_addr = at.addr;
	if (f->pack) {
		*argbuf_size = f->argbuf_bytes;
		*host_pack_func = f->pack;
		*dev_unpack_func_addr = at.unpack;
	}
	return FLEXIO_STATUS_SUCCESS;
}
