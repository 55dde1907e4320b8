// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loads a library in an unusual way, and says how many devices it finds.
 *
 *	loader deepbind|namespace LIBRARY
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *load(const char *way, const char *library)
{
	if (!strcmp(way, "deepbind"))
		return dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (!strcmp(way, "namespace"))
		return dlmopen(LM_ID_NEWLM, library, RTLD_NOW);
	return NULL;
}

int main(int argc, char **argv)
{
	void *(*list)(int *n);
	void *handle;
	int n = 0;

	if (argc != 3)
		return 2;
	handle = load(argv[1], argv[2]);
	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	list = (void *(*)(int *))dlsym(handle, "ibv_get_device_list");
	if (list)
		list(&n);
	printf("%d\n", n);
	return 0;
}
