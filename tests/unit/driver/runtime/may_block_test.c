// SPDX-License-Identifier: BSD-2-Clause
/* Which memory keeps whoever touches it waiting for another program. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "driver/runtime/may_block.h"
#include "driver/runtime/userfault.h"

#define PAGE  4096u
#define BYTES (8 * PAGE)

static uint8_t data[4] = {1, 2, 3, 4};

static uint8_t *map_memory(int flags, int fd)
{
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static bool may_block(const void *p, uint64_t bytes)
{
	return memory_may_block((uintptr_t)p, bytes);
}

static void test_memory(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	uint8_t *private = map_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1),
		*shared = map_memory(MAP_SHARED | MAP_ANONYMOUS, -1), *file;

	CHECK(fd >= 0 && !ftruncate(fd, BYTES));
	file = map_memory(MAP_SHARED, fd);
	CHECK(!may_block(private, BYTES) && !may_block(shared, BYTES) && !may_block(file, BYTES));
	CHECK(!may_block(&fd, sizeof(fd)));
	/* what is not there, also in part */
	CHECK(!munmap(private + PAGE, PAGE));
	CHECK(may_block(private, BYTES) && !may_block(private, PAGE));
	CHECK(memory_may_block(UINT64_MAX - 10, 100));
	munmap(private, BYTES);
	munmap(shared, BYTES);
	munmap(file, BYTES);
	close(fd);
}

static void test_file_systems(void)
{
	CHECK(!file_system_may_block("ext4", true) && !file_system_may_block("xfs", true));
	CHECK(file_system_may_block("fuseblk", true) && file_system_may_block("fuse", false));
	CHECK(file_system_may_block("fuse.sshfs", false) && file_system_may_block("nfs4", false));
	CHECK(file_system_may_block("9p", false) && file_system_may_block("ceph", false));
	CHECK(file_system_may_block("cifs", false) && file_system_may_block("overlay", false));
	CHECK(!file_system_may_block("tmpfs", false) && !file_system_may_block("btrfs", false));
}

/* ---- a file of FUSE ---- */

/* Answers what opening and mapping ask; the content of a page is never asked for. */
static void *fuse_serve(void *arg)
{
	static char request[1u << 17];
	int fd = *(int *)arg;

	while (read(fd, request, sizeof(request)) > 0) {
		const struct fuse_in_header *in = (const void *)request;
		struct {
			struct fuse_out_header head;
			union {
				struct fuse_init_out init;
				struct fuse_attr_out attr;
				struct fuse_open_out open;
			};
		} out = {.head = {.len = sizeof(out.head), .unique = in->unique}};

		if (in->opcode == FUSE_INIT) {
			out.init = (struct fuse_init_out){.major = 7, .minor = 31};
			out.init.max_write = PAGE;
			out.head.len += sizeof(out.init);
		} else if (in->opcode == FUSE_GETATTR) {
			out.attr.attr = (struct fuse_attr){
				.ino = 1, .size = BYTES, .mode = S_IFREG | 0600, .nlink = 1};
			out.head.len += sizeof(out.attr);
		} else if (in->opcode == FUSE_OPEN) {
			out.head.len += sizeof(out.open);
		} else if (in->opcode == FUSE_FORGET) {
			continue;
		}
		/* Once nothing is mounted any more, nobody waits for what was asked last. */
		CHECK(write(fd, &out, out.head.len) == (ssize_t)out.head.len || errno == ENOENT ||
		      errno == ENODEV);
	}
	return NULL;
}

static void test_fuse(void)
{
	char path[] = "/tmp/may_block.XXXXXX", options[100];
	int at = mkstemp(path), fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC), fd;
	pthread_t thread;
	uint8_t *p;

	CHECK(at >= 0);
	close(at);
	snprintf(options, sizeof(options), "fd=%d,rootmode=100600,user_id=%d,group_id=%d", fuse,
		 (int)getuid(), (int)getgid());
	if (fuse < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("test", path, "fuse", MS_NOSUID | MS_NODEV, options)) {
		printf("files of FUSE are not tried: %s\n", strerror(errno));
		unlink(path);
		return;
	}
	CHECK(!pthread_create(&thread, NULL, fuse_serve, &fuse));
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	p = map_memory(MAP_PRIVATE, fd);
	CHECK(may_block(p, BYTES) && may_block(p + PAGE, 1));
	/* and when the mount has no name any more */
	CHECK(!umount2(path, MNT_DETACH) && may_block(p, BYTES));
	munmap(p, BYTES);
	close(fd);
	pthread_join(thread, NULL);
	close(fuse);
	unlink(path);
}

/* ---- memory that the program serves ---- */

static int serving_open(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void serve_faults(int fd, const uint8_t *p, uint64_t bytes)
{
	struct uffdio_register r = {
		.range = {(uintptr_t)p, bytes},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	userfault_note((uintptr_t)p, bytes);
	CHECK(!ioctl(fd, UFFDIO_REGISTER, &r));
}

static void test_served(void)
{
	int fd = serving_open();
	uint8_t *p = map_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1), *moved;
	struct uffdio_range range = {(uintptr_t)p + 2 * PAGE, 2 * PAGE};

	if (fd < 0) {
		printf("userfaultfd is not tried: %s\n", strerror(errno));
		return;
	}
	serve_faults(fd, p + 2 * PAGE, 2 * PAGE);
	CHECK(may_block(p, BYTES) && may_block(p + 3 * PAGE, 1) && may_block(p, 2 * PAGE + 1));
	CHECK(!may_block(p, 2 * PAGE) && !may_block(p + 4 * PAGE, PAGE));
	/* taken back, and again */
	CHECK(!ioctl(fd, UFFDIO_UNREGISTER, &range) && !may_block(p, BYTES));
	serve_faults(fd, p + 2 * PAGE, 2 * PAGE);
	CHECK(may_block(p, BYTES));
	/* of many, each is known */
	for (unsigned i = 0; i < 100; i++) {
		uint8_t *other = map_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1);

		serve_faults(fd, other + PAGE, PAGE);
		CHECK(may_block(other, BYTES) && !may_block(other, PAGE));
		CHECK(may_block(p, BYTES));
	}
	moved = mremap(p + 2 * PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		       map_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1));
	CHECK(moved != MAP_FAILED);
	userfault_moved((uintptr_t)p + 2 * PAGE, 2 * PAGE, (uintptr_t)moved);
	/* the kernel ends it there, as nobody asked to hear of moves */
	CHECK(!may_block(moved, 2 * PAGE));
	serve_faults(fd, moved, 2 * PAGE);
	CHECK(may_block(moved, 2 * PAGE));
	close(fd);
	CHECK(!may_block(moved, 2 * PAGE));
}

int main(void)
{
	test_memory();
	test_file_systems();
	test_served();
	printf("static data: %s\n", may_block(data, sizeof(data)) ? "may block" : "prompt");
	test_fuse();
	return 0;
}
