// SPDX-License-Identifier: BSD-2-Clause
/* Life of a uverbs file: open, the look of a character device, and the last close. */
#include "driver/uverbs/uverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "driver/devx/devx.h"
#include "driver/uverbs/core/event.h"
#include "driver/uverbs/core/inject.h"
#include "driver/uverbs/objects/objects.h"
#include "exposure/object.h"
#include "wire/wire.h"

static struct hca *file_find_hca(struct process *p, const char *name)
{
	char *end;
	unsigned long index = strtoul(name + strlen("uverbs"), &end, 10);

	if (*end || end == name + strlen("uverbs"))
		return NULL;
	for (uint32_t i = 0; i < p->nhcas; i++)
		if (p->hcas[i].index == index)
			return &p->hcas[i];
	return NULL;
}

static int file_map_pages(struct ufile *f, int fd)
{
	int ret = memory_file_resize(fd, UVERBS_FILE_BYTES);

	if (ret)
		return ret;
	/* We map the file once, as a whole: the program could close a descriptor that we kept for
	 * later, and its number would then name somebody else's file. */
	f->pages = sparse_map(UVERBS_FILE_BYTES, PROT_READ | PROT_WRITE, fd, 0);
	if (!f->pages)
		return -errno;
	/* A child would only keep memory of a device that is not its own. */
	(void)madvise(f->pages, UVERBS_FILE_BYTES, MADV_DONTFORK);
	return dm_pool_open(&f->dm, fd, UVERBS_DM_OFFSET);
}

int uverbs_file_open(const char *name, int flags)
{
	struct process *process;
	struct ufile *f;
	struct hca *hca;
	int fd, ret;

	ret = process_get(&process);
	if (ret < 0)
		return ret;
	process_on_port_event(uverbs_event_port);
	process_on_fault(inject_objects);

	ret = -ENOENT;
	hca = file_find_hca(process, name);
	if (!hca)
		goto put_process;

	ret = -ENOMEM;
	f = calloc(1, sizeof(*f));
	if (!f)
		goto warn;
	cdev_file_init(&f->cdev, &uverbs_file_ops);
	pthread_mutex_init(&f->lock, NULL);
	f->process = process;
	f->hca = hca;

	fd = memfd_create(name, flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	ret = -errno;
	if (fd < 0)
		goto free_file;
	ret = file_map_pages(f, fd);
	if (ret == 0)
		ret = cdev_install(fd, &f->cdev);
	if (ret < 0)
		goto close_fd;
	return fd;

close_fd:
	if (f->pages)
		munmap(f->pages, UVERBS_FILE_BYTES);
	close(fd);
free_file:
	pthread_mutex_destroy(&f->lock);
	free(f);
warn:
	process_warn("its file", ret);
put_process:
	process_put(process);
	return ret;
}

static int file_ioctl(struct cdev_file *cdev, unsigned long request, void *arg)
{
	return uverbs_ioctl(container_of(cdev, struct ufile, cdev), request, arg);
}

static int file_ioctl_inherited(struct cdev_file *cdev, unsigned long request, void *arg)
{
	return uverbs_ioctl_inherited(container_of(cdev, struct ufile, cdev), request, arg);
}

static ssize_t file_write(struct cdev_file *cdev, int fd, const void *buf, size_t count)
{
	(void)fd;
	return uverbs_write(container_of(cdev, struct ufile, cdev), buf, count);
}

/* libibverbs compares this number with the one in sysfs. */
static void file_fstat(struct cdev_file *cdev, struct stat *st)
{
	struct ufile *f = container_of(cdev, struct ufile, cdev);

	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = makedev(UVERBS_MAJOR, UVERBS_MINOR + f->hca->index);
	st->st_size = 0;
	st->st_blocks = 0;
}

/* Users come before what they use, so that nothing is busy. */
static const enum uobj_type teardown_order[] = {
	UOBJ_FLOW, UOBJ_FLOW_ACTION, UOBJ_MATCHER, UOBJ_AH,   UOBJ_QP, UOBJ_IND_TABLE,
	UOBJ_WQ,   UOBJ_SRQ,	     UOBJ_CQ,	   UOBJ_MW,   UOBJ_MR, UOBJ_ICM,
	UOBJ_UMEM, UOBJ_COUNTERS,    UOBJ_UAR,	   UOBJ_XRCD, UOBJ_PD,
};

static void file_destroy_type(struct ufile *f, enum uobj_type type)
{
	for (uint32_t handle = 0; handle < f->objects.limit; handle++) {
		int err;
		struct uobj *obj = uobj_find(f, type, handle, &err);

		if (obj && uobj_destroy(obj, NULL) < 0)
			log_error("uverbs: an object of type %d survived its file", type);
	}
}

/*
 * Objects of DEVX use each other and those of verbs, never the other way round.  So this destroys
 * those that can go and tries the rest again, as long as any went.
 */
static void file_destroy_devx(struct ufile *f)
{
	bool some = true;

	while (some) {
		some = false;
		for (uint32_t handle = 0; handle < f->objects.limit; handle++) {
			struct uobj *obj = uobj_any(f, handle);

			if (obj && obj->type == UOBJ_DEVX)
				some |= uobj_destroy(obj, NULL) == 0;
		}
	}
	devx_file_events_drop(f);
}

static void file_last_close(struct cdev_file *cdev)
{
	struct ufile *f = container_of(cdev, struct ufile, cdev);

	pthread_mutex_lock(&f->lock);
	file_destroy_devx(f);
	for (size_t i = 0; i < array_size(teardown_order); i++)
		file_destroy_type(f, teardown_order[i]);
	uuar_release(f);
	if (f->async)
		cdev_put(uchannel_cdev(f->async));
	f->async = NULL;
	f->context = false;
	expose_object_end(wire_expose(f->hca->wire), f->context_row);
	f->context_row = NULL;
	pthread_mutex_unlock(&f->lock);
}

static void file_release(struct cdev_file *cdev)
{
	struct ufile *f = container_of(cdev, struct ufile, cdev);

	uuar_forget(f);
	munmap(f->pages, UVERBS_FILE_BYTES);
	dm_pool_close(&f->dm);
	uobj_table_release(&f->objects);
	pthread_mutex_destroy(&f->lock);
	process_put(f->process);
	free(f);
}

static void file_mapped(struct cdev_file *cdev, uintptr_t addr, size_t len, off_t offset)
{
	uuar_mapped(container_of(cdev, struct ufile, cdev), addr, len, offset);
}

const struct cdev_ops uverbs_file_ops = {
	.ioctl = file_ioctl,
	.ioctl_inherited = file_ioctl_inherited,
	.write = file_write,
	.fstat = file_fstat,
	.mapped = file_mapped,
	.last_close = file_last_close,
	.release = file_release,
};
