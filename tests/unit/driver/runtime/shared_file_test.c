// SPDX-License-Identifier: BSD-2-Clause
/* Which memory of a program lies in a file that a peer may open as well, and that it is found. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "driver/runtime/shared_file.h"

#define PAGE  4096u
#define BYTES (8 * PAGE)

static uint8_t *map_memory(int fd, int flags, uint64_t offset)
{
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);

	CHECK(p != MAP_FAILED);
	return p;
}

static bool find_shared(const void *p, uint64_t bytes, struct shared_range *r)
{
	return shared_file_find((uintptr_t)p, bytes, r);
}

static void is_file(const struct shared_range *r, int fd, uint64_t bytes)
{
	uint64_t size = 0;
	struct hidden h = shared_file_open(r, &size);

	CHECK(h.fd >= 0 && h.id == hidden_id(fd) && h.id == r->id && size == bytes);
	CHECK(fcntl(h.fd, F_GETFL) & O_PATH);
	hidden_close(&h);
}

static void test_memfd(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC), fds;
	struct shared_range r;
	uint8_t *p;

	CHECK(fd >= 0 && !ftruncate(fd, 2 * BYTES));
	p = map_memory(fd, MAP_SHARED, PAGE);
	CHECK(find_shared(p + 100, 50, &r) && r.offset == PAGE + 100);
	is_file(&r, fd, 2 * BYTES);
	/* two mappings that go on where the file does */
	CHECK(!mprotect(p + PAGE, PAGE, PROT_READ));
	CHECK(find_shared(p, BYTES, &r) && r.offset == PAGE);
	is_file(&r, fd, 2 * BYTES);
	CHECK(!find_shared(p, BYTES + 16 * PAGE, &r) && !find_shared(p, UINT64_MAX, &r));
	/* the same file, in another order */
	CHECK(mmap(p + 2 * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	CHECK(!find_shared(p, BYTES, &r) && find_shared(p, 2 * PAGE, &r));
	/* a gap */
	munmap(p + 4 * PAGE, PAGE);
	CHECK(!find_shared(p + 3 * PAGE, 3 * PAGE, &r));
	/* nothing stays open */
	fds = dup(fd);
	close(fds);
	CHECK(find_shared(p, PAGE, &r));
	is_file(&r, fd, 2 * BYTES);
	CHECK(dup(fd) == fds);
	close(fds);
	munmap(p, BYTES);
	close(fd);
}

/* The program may map more than the file has: peers get no range that ends behind the file. */
static void test_short_file(void)
{
	int fd = memfd_create("short", MFD_CLOEXEC);
	uint64_t size;
	struct shared_range r;
	uint8_t *p;

	CHECK(fd >= 0 && !ftruncate(fd, 4 * PAGE));
	p = map_memory(fd, MAP_SHARED, 0);
	CHECK(find_shared(p + PAGE, 3 * PAGE, &r) && r.offset == PAGE && r.end == 4 * PAGE);
	is_file(&r, fd, 4 * PAGE);
	CHECK(find_shared(p + PAGE, 3 * PAGE + 1, &r));
	CHECK(shared_file_open(&r, &size).fd < 0);
	munmap(p, BYTES);
	close(fd);
}

/* A name, as shm_open gives, and no descriptor any more. */
static void test_named(void)
{
	char path[] = "/dev/shm/softhca-test-XXXXXX";
	int fd = mkstemp(path);
	struct shared_range r;
	uint64_t size, id;
	struct hidden h;
	uint8_t *p;

	if (fd < 0) {
		fprintf(stderr, "/dev/shm: %m: not looked at\n");
		return;
	}
	CHECK(!ftruncate(fd, BYTES));
	p = map_memory(fd, MAP_SHARED, 0);
	id = hidden_id(fd);
	close(fd);
	CHECK(find_shared(p, BYTES, &r) && r.id == id);
	h = shared_file_open(&r, &size);
	CHECK(h.fd >= 0 && h.id == id && size == BYTES);
	hidden_close(&h);
	/* another file of that name is not taken for it */
	CHECK(!unlink(path));
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	h = shared_file_open(&r, &size);
	CHECK(h.fd < 0 || h.id == id);
	hidden_close(&h);
	unlink(path);
	close(fd);
	munmap(p, BYTES);
}

static void test_others(void)
{
	int fd = memfd_create("file", MFD_CLOEXEC), null = open("/proc/self/exe", O_RDONLY);
	struct shared_range r;
	struct hidden h;
	uint64_t size;
	uint8_t *p;

	CHECK(fd >= 0 && null >= 0 && !ftruncate(fd, BYTES));
	p = map_memory(-1, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	CHECK(!find_shared(p, BYTES, &r) && !find_shared(NULL, 1, &r));
	munmap(p, BYTES);
	p = map_memory(fd, MAP_PRIVATE, 0);
	CHECK(!find_shared(p, BYTES, &r));
	munmap(p, BYTES);
	/* of a file system that may do what it likes when a page is touched */
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, null, 0);
	CHECK(p != MAP_FAILED && find_shared(p, PAGE, &r));
	h = shared_file_open(&r, &size);
	CHECK(h.fd < 0 || segment_file_fits(h.fd, 0));
	hidden_close(&h);
	munmap(p, PAGE);
	close(null);
	close(fd);
}

/* Its number may be that of a memfd of the same device, so it is not looked for by that. */
static void test_system_v(void)
{
	int id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
	struct shared_range r;
	void *p;

	if (id < 0) {
		fprintf(stderr, "shmget: %m: not looked at\n");
		return;
	}
	p = shmat(id, NULL, 0);
	CHECK(!shmctl(id, IPC_RMID, NULL) && p != MAP_FAILED);
	CHECK(!find_shared(p, BYTES, &r) && !find_shared(p, 1, &r));
	CHECK(!shmdt(p));
}

int main(void)
{
	test_memfd();
	test_short_file();
	test_named();
	test_others();
	test_system_v();
	return 0;
}
