// SPDX-License-Identifier: BSD-2-Clause
/*
 * Long messages lie in a file in memory, which their reader gets.  Making the pages of such a file
 * and giving them back takes longer than filling and reading them, so we keep one file and fill it
 * again.
 *
 * We fill it again when nobody has it any more, which the kernel knows: we give away a second open
 * of the file, for reading, and as long as that is open anywhere (in flight in a socket, mapped, in
 * a process that is stopped) the kernel refuses a lease for writing (fcntl(2), F_SETLEASE).  Where
 * we cannot find out, each message gets its own file.
 *
 * The message lies at the end of the file.  Earlier messages of this process have left what is in
 * front.
 *
 * We map a file that we fill again, because filling pages that are there takes a third of the time
 * so.  Only the kernel makes new pages, because it can say that there is no memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
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

/*
 * A child of a fork that finds it busy, because a thread of its parent had it, makes a file for
 * each message.
 */
static struct {
	atomic_flag busy;
	struct hidden file;
	uint64_t bytes;
	uint64_t there; /* how many bytes at the end have pages */
	uint8_t *map;	/* of the whole file, or NULL */
	bool populated;
} spare = {.busy = ATOMIC_FLAG_INIT, .file = {-1, 0, -1}};

/*
 * Makes the file.  The kernel does not know that the first descriptor of a memfd can write, which a
 * lease asks for, so this opens it once more.
 */
static int file_make(uint64_t bytes)
{
	int first = memfd_create(FILE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING), fd = -1;

	if (first < 0)
		return -1;
	if (!memory_file_resize(first, bytes) &&
	    !syscall(SYS_fcntl, first, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		fd = descriptor_reopen(0, first, O_RDWR);
	syscall(SYS_close, first);
	/* If somebody opens the file while we have the lease, for a moment, the kernel sends us a
	 * signal; this chooses one that programs do not mind. */
	if (fd >= 0)
		syscall(SYS_fcntl, fd, F_SETSIG, SIGURG);
	return fd;
}

/* Maps the whole file; without a mapping the kernel fills it always. */
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

/* Makes the pages for the second message: only then it pays.  Otherwise each page is a fault. */
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

/* Makes sure that there is a file with room that nobody has. */
static bool spare_ready(size_t n)
{
	uint64_t bytes = SPARE_LEAST;

	if (n <= spare.bytes && hidden_ours(&spare.file))
		return spare_is_free();
	while (bytes < n)
		bytes *= 2;
	return spare_make(bytes);
}

/* Opens the file for the message's reader. */
static int spare_open(void)
{
	int fd = descriptor_reopen(0, spare.file.fd, O_RDONLY);

	if (fd < 0 || hidden_id(fd) == spare.file.id)
		return fd;
	syscall(SYS_close, fd);
	return -1;
}

/* Returns false if the kernel has to copy, or to say why it cannot. */
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
