/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of mappings: what was mapped is found as it was mapped. */
#include "base/vma.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* The mapping that addr lies in. */
static bool vma_of(const void *addr, struct vma *out)
{
	char *list = vma_list();
	const char *at = list;
	uint64_t last = 0;
	bool found = false;
	struct vma v;

	CHECK(list);
	while (vma_next(&at, &v)) {
		CHECK(v.start >= last && v.end > v.start);
		last = v.end;
		if ((uintptr_t)addr >= v.start && (uintptr_t)addr < v.end) {
			*out = v;
			found = true;
		}
	}
	free(list);
	return found;
}

/* Read piece by piece, the list is the same as in one piece, whatever lies where pieces meet. */
static void reader_agrees(void)
{
	struct vma_reader r;
	struct vma a, b;
	char *list;
	const char *at;
	uint8_t *many[200];

	for (int i = 0; i < 200; i++) {
		many[i] = mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(many[i] != MAP_FAILED);
	}
	list = vma_list();
	CHECK(list);
	at = list;
	vma_reader_open(&r);
	while (vma_next(&at, &a))
		CHECK(vma_reader_next(&r, &b) && a.start == b.start && a.end == b.end &&
		      a.inode == b.inode && !strcmp(a.name, b.name));
	CHECK(!vma_reader_next(&r, &b));
	vma_reader_close(&r);
	free(list);
	for (int i = 0; i < 200; i++)
		CHECK(!munmap(many[i], 4096));
}

/* Asked for one address, the answer is the same as that of the list. */
static void one_agrees(void)
{
	int fd = memfd_create("one", MFD_CLOEXEC);
	struct vma at, of;
	uint8_t *p;

	CHECK(fd >= 0 && !ftruncate(fd, 16384));
	CHECK(vma_at((uintptr_t)&at, &of)); /* which maps a page of its own, not in the gap below */
	p = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED && !mprotect(p, 4096, PROT_READ) && !munmap(p + 8192, 4096));
	for (int i = 0; i < 4; i++) {
		bool is = vma_at((uintptr_t)p + (unsigned)i * 4096 + 17, &at);

		CHECK(is == (i != 2) && is == vma_of(p + i * 4096, &of));
		if (is)
			CHECK(at.start == of.start && at.end == of.end && at.inode == of.inode &&
			      at.offset == of.offset && at.major == of.major &&
			      at.minor == of.minor && !strcmp(at.perms, of.perms) &&
			      !strncmp(at.name, of.name, 10));
	}
	CHECK(vma_at((uintptr_t)&at, &of) && of.perms[3] == 'p' && !vma_at(0, &at));
	munmap(p, 16384);
	close(fd);
}

static unsigned count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* In a child that no handler of the library knows of. */
static void child_sees_its_own(const uint8_t *gone, const uint8_t *here)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	struct vma v;
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		CHECK(!munmap((void *)(uintptr_t)gone, 4096));
		CHECK(!vma_at((uintptr_t)gone, &v) && vma_at((uintptr_t)here, &v));
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHECK(vma_at((uintptr_t)gone, &v) && vma_at((uintptr_t)here, &v));
}

/* It may be closed behind our back, and its number may name something else. */
static void survives_a_close(const uint8_t *at)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct vma v;

	CHECK(zero >= 0);
	for (int fd = zero + 1; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			CHECK(dup2(zero, fd) == fd);
	CHECK(vma_at((uintptr_t)at, &v) && v.start <= (uintptr_t)at && (uintptr_t)at < v.end);
	for (int fd = zero; fd < 4096; fd++)
		(void)syscall(SYS_close, fd);
	CHECK(vma_at((uintptr_t)at, &v) && v.start <= (uintptr_t)at && (uintptr_t)at < v.end);
}

static void list_is_kept(void)
{
	uint8_t *gone = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *here = gone + 2 * 4096;
	unsigned before;
	struct vma v;

	CHECK(gone != MAP_FAILED && !munmap(gone + 4096, 4096));
	CHECK(vma_at((uintptr_t)here, &v));
	before = count_descriptors();
	for (int i = 0; i < 1000; i++)
		CHECK(vma_at((uintptr_t)here, &v));
	CHECK(count_descriptors() == before);
	child_sees_its_own(gone, here);
	survives_a_close(here);
	CHECK(!munmap(gone, 4096) && !vma_at((uintptr_t)gone, &v) && vma_at((uintptr_t)here, &v));
	munmap(here, 4096);
}

int main(void)
{
	const size_t page = 4096;
	int fd = memfd_create("with a blank", MFD_CLOEXEC);
	struct stat st;
	struct vma v;
	uint8_t *shared, *plain;

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)(4 * page)) && !fstat(fd, &st));
	shared = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, fd, (off_t)page);
	plain = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED && plain != MAP_FAILED);
	CHECK(vma_of(shared + page, &v));
	CHECK(v.start == (uintptr_t)shared && v.end == v.start + 2 * page && v.offset == page);
	CHECK(v.inode == st.st_ino && !strcmp(v.perms, "r--s") && !strcmp(v.name, "/memfd:with"));
	CHECK(vma_of(plain, &v) && !v.inode && !strcmp(v.perms, "rw-p") && !v.name[0]);
	CHECK(vma_of(&v, &v) && !strcmp(v.name, "[stack]"));
	CHECK(!munmap(plain, page) && !munmap(shared, 2 * page));
	close(fd);
	reader_agrees();
	one_agrees();
	list_is_kept();
	return 0;
}
