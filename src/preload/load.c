// SPDX-License-Identifier: BSD-2-Clause
/*
 * Libraries that a program loads so that they do not find our functions.
 *
 * With RTLD_DEEPBIND a library looks for functions in itself and in what it needs, and so in the C
 * library, before it looks in ours.  We leave the flag out, as is usual for libraries that are
 * preloaded.  dlmopen loads a library with a C library of its own, in which ours has no part.  There
 * the devices cannot be had, and if the library is one that looks for them, a warning says so.
 *
 * Where the dynamic linker looks for a library may depend on who calls it, by the caller's run path.
 * So these functions jump to the next definition wherever that matters.
 */
#include "preload/libc.h"

#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "preload/program_memory.h"
#include "preload/tree.h"

exported JUMPS void *dlopen(const char *file, int mode)
{
	if ((mode & RTLD_DEEPBIND) && tree_active()) {
		log_init();
		log_info("dlopen of %s: RTLD_DEEPBIND is left out", file ? file : "the program");
		mode &= ~RTLD_DEEPBIND;
	}
	return real(dlopen)(file, mode);
}

/* ---- namespaces ---- */

/* Tells whether it is one of the libraries that look for devices. */
static bool looks_for_devices(const char *path)
{
	static const char *const names[] = {"libibverbs.so", "libibumad.so", "librdmacm.so",
					    "libmlx5.so"};

	for (size_t i = 0; i < array_size(names); i++)
		if (!strncmp(text_file_name(path), names[i], strlen(names[i])))
			return true;
	return false;
}

static __attribute__((noinline)) void warn_if_it_looks_for_devices(const char *path)
{
	static _Atomic(bool) said;

	if (!looks_for_devices(path) || atomic_exchange(&said, true))
		return;
	log_init();
	log_warn("no devices: %s is in a namespace of its own (dlmopen), where softhca cannot "
		 "reach it",
		 text_file_name(path));
}

/* Not inlined, as no function can jump that has a variable to which others may have pointers. */
static __attribute__((noinline)) void warn_of_namespace(void *handle)
{
	struct link_map *map;

	if (dlinfo(handle, RTLD_DI_LINKMAP, &map))
		return;
	while (map->l_prev)
		map = map->l_prev;
	for (; map; map = map->l_next)
		warn_if_it_looks_for_devices(map->l_name);
}

static bool depends_on_caller(const char *file)
{
	return !strchr(file, '/') || strchr(file, '$');
}

exported JUMPS void *dlmopen(Lmid_t namespace, const char *file, int mode)
{
	void *handle;

	if (!tree_active() || !file || !program_path_is_valid(file))
		return real(dlmopen)(namespace, file, mode);
	if (namespace == LM_ID_BASE)
		return real(dlmopen)(namespace, file, mode & ~RTLD_DEEPBIND);
	if (depends_on_caller(file)) {
		warn_if_it_looks_for_devices(file);
		return real(dlmopen)(namespace, file, mode);
	}
	handle = real(dlmopen)(namespace, file, mode);
	if (handle)
		warn_of_namespace(handle);
	return handle;
}
