// SPDX-License-Identifier: BSD-2-Clause
/*
 * Long messages lie in a file in memory, which their reader gets.  To make the pages of such a file and to give
 * them back takes longer than to fill and to read them, so one file is kept and filled again.
 *
 * It is filled when nobody has it any more, and the kernel knows that: what is given away is the file
 * opened once more, for reading, and as long as that is open anywhere (in flight in a socket, mapped, in
 * a process that is stopped) the kernel refuses a lease for writing (fcntl(2), F_SETLEASE).
 * Where there is no way to know, each message gets a file of its own.
 *
 * The message lies at the end of the file.  In front of it is what earlier messages of this process have left.
 *
 * A file that is filled again is mapped: pages that are there are filled in a third of the time so.  Only the kernel makes
 * new ones, because it can say that there is no memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hidden.h"
#include "base/memory_file.h"
#include "driver/umad/device.h"
#include "usermem/usermem.h"

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

#define FILE_NAME   "softhca-umad"
#define SPARE_LEAST (128ull << 10)
#define SPARE_MOST  (16ull << 20) /* longer messages have files of their own */

/* A child of fork that finds it busy, as a thread of its parent had it, has files of its own for each message. */
static struct {
	atomic_flag busy;
	struct hidden file;
	uint64_t bytes;
	uint64_t there; /* so many at the end have pages */
	uint8_t *map;	/* of all, or NULL */
	bool populated;
} spare = {.busy = ATOMIC_FLAG_INIT, .file = {-1, 0, -1}};

/* The file behind a descriptor, opened once more. */
static int file_open_again(int fd, int access)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	return (int)syscall(SYS_openat, AT_FDCWD, path, access | O_CLOEXEC);
}

/* Of the first descriptor of a memfd the kernel does not know that it can write, which a lease asks for. */
static int file_make(uint64_t bytes)
{
	int first = memfd_create(FILE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING), fd = -1;

	if (first < 0)
		return -1;
	if (!memory_file_resize(first, bytes) &&
	    !syscall(SYS_fcntl, first, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		fd = file_open_again(first, O_RDWR);
	syscall(SYS_close, first);
	/* Who opened the file while we have the lease, for a moment, would make the kernel send us a
	 * signal: one that programs do not mind. */
	if (fd >= 0)
		syscall(SYS_fcntl, fd, F_SETSIG, SIGURG);
	return fd;
}

/* Of all of it; without one the kernel fills it always. */
static void spare_map(void)
{
	void *map = mmap(NULL, spare.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, spare.file.fd, 0);

	spare.map = map == MAP_FAILED ? NULL : map;
	if (spare.map)
		(void)madvise(map, spare.bytes, MADV_DONTDUMP);
}

static bool spare_make(uint64_t bytes)
{
	int fd = file_make(bytes);

	if (fd < 0)
		return false;
	hidden_close(&spare.file);
	if (spare.map)
		munmap(spare.map, spare.bytes);
	spare.file = hidden_keep(fd);
	spare.bytes = bytes;
	spare.there = 0;
	spare.populated = false;
	spare_map();
	return true;
}

/* For the second message: then it is worth the while.  Else each page is a fault of its own. */
static void spare_populate(void)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t first = (spare.bytes - spare.there) & ~(page - 1);

	if (!spare.map || !spare.there || spare.populated)
		return;
	spare.populated = true;
	(void)madvise(spare.map + first, spare.bytes - first, MADV_POPULATE_WRITE);
}

static bool spare_is_free(void)
{
	if (syscall(SYS_fcntl, spare.file.fd, F_SETLEASE, F_WRLCK))
		return false;
	syscall(SYS_fcntl, spare.file.fd, F_SETLEASE, F_UNLCK);
	return true;
}

/* A file with room, which nobody has. */
static bool spare_ready(size_t n)
{
	uint64_t bytes = SPARE_LEAST;

	if (n <= spare.bytes && hidden_ours(&spare.file))
		return spare_is_free();
	while (bytes < n)
		bytes *= 2;
	return spare_make(bytes);
}

/* For its reader. */
static int spare_open(void)
{
	int fd = file_open_again(spare.file.fd, O_RDONLY);

	if (fd < 0 || hidden_id(fd) == spare.file.id)
		return fd;
	syscall(SYS_close, fd);
	return -1;
}

/* False: it is for the kernel to do, or to say why not. */
static bool spare_copy(const void *bytes, size_t n)
{
	return spare.map && n <= spare.there && user_is_guarded() &&
	       usermem_copy(spare.map + spare.bytes - n, bytes, n);
}

static int spare_fill(const void *bytes, size_t n)
{
	int ret;

	if (!spare_ready(n))
		return -EBUSY;
	spare_populate();
	if (spare_copy(bytes, n))
		return spare_open();
	ret = memory_file_fill(spare.file.fd, spare.bytes - n, bytes, n);
	if (ret)
		return ret;
	if (spare.there < n)
		spare.there = n;
	return spare_open();
}

int umad_message_file(const void *bytes, size_t n)
{
	int file = -EBUSY;

	if (n <= SPARE_MOST &&
	    !atomic_flag_test_and_set_explicit(&spare.busy, memory_order_acquire)) {
		file = spare_fill(bytes, n);
		atomic_flag_clear_explicit(&spare.busy, memory_order_release);
	}
	return file >= 0 || file == -EFAULT ? file : memory_file_message(FILE_NAME, bytes, n);
}
