// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca --version: besides its own version that of rdma-core's libraries, as a program would find them, because what
 * devices can do depends on these.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tool/tool.h"

/* The file that the dynamic linker takes for the name; NULL: none, and dlerror() says why. */
static char *library_file(const char *name, const char *function)
{
	void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	void *symbol = library ? dlsym(library, function) : NULL;
	Dl_info info;

	/* It stays loaded: the process ends soon, and libraries of devices are not made for dlclose(). */
	return symbol && dladdr(symbol, &info) ? realpath(info.dli_fname, NULL) : NULL;
}

/* The release of rdma-core is the last number in the name of its files: libibverbs.so.1.14.44.0 is of release 44. */
static bool file_release(const char *path, unsigned *release)
{
	const char *numbers = strstr(text_file_name(path), ".so.");
	unsigned abi, minor;

	return numbers && sscanf(numbers, ".so.%u.%u.%u", &abi, &minor, release) == 3;
}

static void library_print(const char *name, const char *function, const char *package)
{
	char *path = library_file(name, function);
	unsigned release;

	if (!path)
		printf("%s: not found; programs have no devices without it (Debian: package %s)\n",
		       name, package);
	else if (file_release(path, &release))
		printf("%s: of rdma-core %u, %s\n", name, release, path);
	else
		printf("%s: %s\n", name, path);
	free(path);
}

void version_print(void)
{
	printf("softhca %s\n", SOFTHCA_VERSION);
	library_print("libibverbs.so.1", "ibv_get_device_list", "libibverbs1");
	library_print("libmlx5.so.1", "mlx5dv_is_supported", "ibverbs-providers");
}
