// SPDX-License-Identifier: BSD-2-Clause
/* See uverbs_file.h. */
#include "uverbs_file.h"

#include <rdma/ib_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "driver/uverbs/uverbs.h"

void uverbs_file_up(struct uverbs_file *u)
{
	static const struct registry registry; /* the default model */
	static struct slot slot;

	memset(u, 0, sizeof(*u));
	u->process.registry = &registry;
	u->process.slot = &slot;
	u->node.nports = 1;
	u->subnet = (struct subnet){.nodes = &u->node, .nnodes = 1, .ports = &u->port, .nports = 1};
	u->process.subnet = &u->subnet;
	u->hca.node = &u->node;
	u->hca.port = &u->port;
	u->file.process = &u->process;
	u->file.hca = &u->hca;
	u->file.context = true;
	u->file.devx = true;
	pthread_mutex_init(&u->file.lock, NULL);
	u->file.pages = mmap(NULL, UVERBS_FILE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(u->file.pages != MAP_FAILED);
}

void uverbs_file_down(struct uverbs_file *u)
{
	munmap(u->file.pages, UVERBS_FILE_BYTES);
	uobj_table_release(&u->file.objects);
	pthread_mutex_destroy(&u->file.lock);
}

int uverbs_file_ioctl(struct uverbs_file *u, uint16_t object, uint16_t method,
		      struct ib_uverbs_attr *attrs, uint16_t n)
{
	size_t bytes = sizeof(struct ib_uverbs_ioctl_hdr) + n * sizeof(*attrs);
	struct ib_uverbs_ioctl_hdr *hdr = calloc(1, bytes);
	int ret;

	CHECK(hdr);
	hdr->length = (uint16_t)bytes;
	hdr->object_id = object;
	hdr->method_id = method;
	hdr->num_attrs = n;
	hdr->driver_id = RDMA_DRIVER_MLX5;
	memcpy(hdr->attrs, attrs, n * sizeof(*attrs));
	ret = uverbs_ioctl(&u->file, RDMA_VERBS_IOCTL, hdr);
	memcpy(attrs, hdr->attrs, n * sizeof(*attrs));
	free(hdr);
	return ret;
}

struct ib_uverbs_attr attr_in(uint16_t id, const void *bytes, uint16_t len)
{
	struct ib_uverbs_attr a = {.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY};

	if (len <= sizeof(a.data))
		memcpy(&a.data, bytes, len);
	else
		a.data = (uintptr_t)bytes;
	return a;
}

struct ib_uverbs_attr attr_out(uint16_t id, void *bytes, uint16_t len)
{
	return (struct ib_uverbs_attr){.attr_id = id,
				       .len = len,
				       .flags = UVERBS_ATTR_F_MANDATORY,
				       .data = (uintptr_t)bytes};
}

struct ib_uverbs_attr attr_handle(uint16_t id, uint64_t handle)
{
	return (struct ib_uverbs_attr){
		.attr_id = id, .flags = UVERBS_ATTR_F_MANDATORY, .data = handle};
}
