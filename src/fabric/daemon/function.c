// SPDX-License-Identifier: BSD-2-Clause
/*
 * The PCI functions that cards emulate: an Ethernet device of a card with a DPA has one.  Its
 * memory outlives the processes that use it, as a function stays on its bus when a driver goes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory_file.h"
#include "fabric/daemon/fabric.h"
#include "prm/model.h"
#include "registry/emulation.h"

struct function_file {
	struct function_file *next;
	uint32_t host, device;
	int fd;
};

bool function_is_there(const struct fabric *f, uint32_t host, uint32_t device)
{
	const struct topology_host *h = &f->topology.hosts[host];
	const struct subnet_node *node;

	if (device >= h->nhcas || !models[f->model].dpa)
		return false;
	node = &f->subnet.nodes[f->hosts[host].first_node + device];
	return f->subnet.ports[node->first_port].ethernet;
}

static int function_file_create(void)
{
	int fd = memfd_create("softhca-function", MFD_CLOEXEC | MFD_ALLOW_SEALING), ret;
	uint8_t silent[EMULATION_BAR_BYTES];

	if (fd < 0)
		return -errno;
	memset(silent, 0xff, sizeof(silent));
	ret = memory_file_resize(fd, sizeof(struct emulation));
	if (ret == 0 && pwrite(fd, silent, sizeof(silent), 0) != (ssize_t)sizeof(silent))
		ret = -ENOMEM;
	if (ret < 0) {
		close(fd);
		return ret;
	}
	fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	return fd;
}

int function_memory(struct fabric *f, uint32_t host, uint32_t device)
{
	struct function_file *file;

	if (!function_is_there(f, host, device))
		return -ENODEV;
	for (file = f->functions; file; file = file->next)
		if (file->host == host && file->device == device)
			return file->fd;
	file = malloc(sizeof(*file));
	if (!file)
		return -ENOMEM;
	*file = (struct function_file){f->functions, host, device, function_file_create()};
	if (file->fd < 0) {
		int ret = file->fd;

		free(file);
		return ret;
	}
	f->functions = file;
	return file->fd;
}

void functions_free(struct fabric *f)
{
	while (f->functions) {
		struct function_file *file = f->functions;

		f->functions = file->next;
		close(file->fd);
		free(file);
	}
}
