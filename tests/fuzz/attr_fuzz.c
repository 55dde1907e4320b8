// SPDX-License-Identifier: BSD-2-Clause
/*
 * Paths of live attributes.  attr_parse sees them with their NUL at the very end of a heap block,
 * so that the sanitizer notices one byte read too far.
 */
#include <string.h>

#include "fabric/daemon/fabric.h"
#include "fuzz.h"

static struct fabric fabric;

void target_init(void)
{
	MUST(!topology_generate(&fabric.topology, TOPOLOGY_DEFAULT_HOSTS, &link_types_default,
				NULL));
	MUST(!fabric_create(&fabric));
}

void target_seeds(struct seed *s)
{
	static const char *const paths[] = {
		"sys/class/infiniband/mlx5_0/ports/1/state",
		"sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data",
		"sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_buffer",
		"sys/class/infiniband/mlx5_1/ports/1/gids/31",
		"sys/class/infiniband/mlx5_1/ports/1/pkeys/0",
		"sys/devices/pci0000:00/infiniband/x/infiniband/mlx5_0/ports/1/lid_mask_count",
		"sys/class/infiniband/mlx5_1/ports/254/state",
		"/infiniband/",
	};
	char name[16];

	for (size_t i = 0; i < array_size(paths); i++) {
		put_bytes(s, paths[i], strlen(paths[i]));
		snprintf(name, sizeof(name), "path%zu", i);
		put_end(s, name);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *path = malloc(size + 1);
	char text[FABRIC_TEXT_BYTES];
	struct attr attr;
	int n;

	MUST(path);
	memcpy(path, data, size);
	path[size] = '\0';
	if (attr_parse(path, &attr))
		MUST(memchr(attr.hca, '\0', sizeof(attr.hca)) && attr.port <= 254);
	n = attr_text_by_path(&fabric, "", path, text, sizeof(text));
	MUST(n < (int)sizeof(text));
	if (n > 0)
		MUST(text[n - 1] == '\n' && strlen(text) == (size_t)n);
	free(path);
	return 0;
}
