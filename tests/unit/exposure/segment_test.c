// SPDX-License-Identifier: BSD-2-Clause
/*
 * Files that one process lays open and another maps.  Here both are one process: the peer's side
 * finds its own descriptors through /proc.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "test_fault.h"
#include "usermem/usermem.h"
#include "exposure/segment.h"

#define CHUNK (1ull << SEGMENT_CHUNK_SHIFT)
#define BYTES (3 * CHUNK + 8192)

static struct segment_row rows[SEGMENTS];
static struct segment_table table;
static struct segment_view view;

static int file_new(uint64_t bytes)
{
	int fd = memfd_create("segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	return fd;
}

/* The table keeps a descriptor of its own. */
static struct segment_ref row_new(int fd, uint64_t bytes)
{
	struct segment_ref ref;

	CHECK(!segment_table_add(&table, hidden_keep(dup(fd)), bytes, &ref));
	return ref;
}

static void both_open(void)
{
	memset(rows, 0, sizeof(rows));
	segment_table_open(&table, rows);
	segment_view_open(&view, rows, getpid());
}

static void both_close(void)
{
	segment_view_close(&view);
	segment_table_close(&table);
}

static uint8_t *mapped_at(struct segment_ref ref, uint64_t offset, uint64_t len)
{
	uint8_t *at = segment_at(&view, ref, offset, len);

	if (at)
		return at;
	(void)!segment_view_map(&view, ref, offset);
	return segment_at(&view, ref, offset, len);
}

/* The sum of a field of smaps over the mappings of such files, KiB; of those with a flag if it is
 * given. */
static unsigned long mapped_kib(const char *field, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long sum = 0, kib = 0;
	char line[512];
	bool ours = false;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx", &start, &end) == 2)
			ours = strstr(line, "/memfd:segment");
		if (ours && !strncmp(line, field, strlen(field)))
			kib = strtoul(line + strlen(field), NULL, 10);
		if (ours && !strncmp(line, "VmFlags:", 8))
			sum += !flag || strstr(line, flag) ? kib : 0;
	}
	fclose(f);
	return sum;
}

/* Chunks are mapped when they are asked for, and no others; any reach lies in one piece. */
static void test_chunks(void)
{
	int fd = file_new(BYTES);
	struct segment_ref ref;
	uint8_t byte, *at;

	both_open();
	ref = row_new(fd, BYTES);
	CHECK(!segment_at(&view, ref, 0, 1));
	CHECK(!mapped_kib("Size:", NULL));
	CHECK(segment_view_map(&view, ref, 0));
	CHECK(mapped_kib("Size:", NULL) == (CHUNK + SEGMENT_REACH) / 1024);
	CHECK(segment_at(&view, ref, 0, 1));
	/* from one chunk into the next */
	at = segment_at(&view, ref, CHUNK - 1, SEGMENT_REACH);
	CHECK(at && usermem_copy(at, "ab", 2));
	CHECK(!segment_at(&view, ref, CHUNK - 1, SEGMENT_REACH + 1));
	CHECK(!segment_at(&view, ref, CHUNK, 1) && segment_view_map(&view, ref, CHUNK));
	CHECK(segment_at(&view, ref, CHUNK, 1));
	CHECK(pread(fd, &byte, 1, (off_t)CHUNK) == 1 && byte == 'b');
	/* the last, a short one */
	at = mapped_at(ref, BYTES - 1, 1);
	CHECK(at);
	*at = 'z';
	CHECK(pread(fd, &byte, 1, (off_t)BYTES - 1) == 1 && byte == 'z');
	CHECK(mapped_kib("Size:", NULL) == (2 * (CHUNK + SEGMENT_REACH) + 8192) / 1024);
	CHECK(!mapped_at(ref, BYTES - 1, 2) && !mapped_at(ref, UINT64_MAX, 2));
	CHECK(segment_at(&view, ref, BYTES, 0));
	CHECK(!segment_at(&view, (struct segment_ref){SEGMENTS, 1}, 0, 1));
	both_close();
	CHECK(!mapped_kib("Size:", NULL));
	close(fd);
}

/* All that is mapped is in no core file and in no child. */
static void test_flags(void)
{
	int fd = file_new(BYTES), status;
	struct segment_ref ref;
	uint8_t *at;
	pid_t child;

	both_open();
	ref = row_new(fd, BYTES);
	at = mapped_at(ref, CHUNK, 1);
	CHECK(at && mapped_kib("Size:", " dd") == mapped_kib("Size:", NULL));
	child = fork();
	CHECK(child >= 0);
	if (!child)
		_exit(mapped_kib("Size:", NULL) != 0);
	CHECK(waitpid(child, &status, 0) == child && !status);
	both_close();
	close(fd);
}

/* A program that locks all its memory does not fill its peer's file with pages. */
static void locked_child(void)
{
	int fd = file_new(BYTES);
	struct segment_ref ref;

	both_open();
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		_exit(77);
	ref = row_new(fd, BYTES);
	if (!mapped_at(ref, 0, 1))
		_exit(2);
	_exit(mapped_kib("Rss:", NULL) > 64 || mapped_kib("Size:", " lo"));
}

static void test_locked(void)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child)
		locked_child();
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		fprintf(stderr, "mlockall is not allowed here: not looked at\n");
	else
		CHECK(!status);
}

/* A row is found by the file behind it and goes with its last user. */
static void test_users(void)
{
	int fd = file_new(BYTES);
	uint64_t id = hidden_id(fd);
	struct segment_ref one, two, three;

	both_open();
	one = row_new(fd, 8192);
	CHECK(segment_table_hold(&table, id, 8192, &two));
	CHECK(two.row == one.row && two.generation == one.generation);
	/* longer than it was */
	CHECK(!segment_table_hold(&table, id, 8193, &three));
	CHECK(!segment_table_hold(&table, id + 1, 1, &three));
	CHECK(!segment_table_drop(&table, one));
	CHECK(mapped_at(two, 0, 1));
	CHECK(segment_table_drop(&table, two));
	CHECK(!segment_table_hold(&table, id, 1, &three));
	both_close();
	close(fd);
}

/* Peers can write the rows: what the owner lays open does not follow from what stands there. */
static void test_scribbled(void)
{
	int fd = file_new(8192);
	uint64_t id = hidden_id(fd);
	struct segment_ref one, two;
	struct segment_row *r;

	both_open();
	one = row_new(fd, 8192);
	r = &rows[one.row];
	atomic_store(&r->bytes, UINT64_MAX);
	atomic_store(&r->generation, one.generation + 1);
	CHECK(!segment_table_hold(&table, id, 8193, &two));
	CHECK(segment_table_hold(&table, id, 8192, &two) && two.generation == one.generation);
	atomic_store(&r->bytes, 0);
	atomic_store(&r->generation, 0);
	CHECK(segment_table_hold(&table, id, 8192, &two) && two.generation == one.generation);
	both_close();
	close(fd);
}

/* The next file in a row is not taken for the last one, and that one is let go. */
static void test_next_file(void)
{
	int first = file_new(BYTES), second = file_new(BYTES);
	struct segment_ref was, is;
	uint8_t *old, *at, byte;

	both_open();
	was = row_new(first, BYTES);
	old = mapped_at(was, 0, 1);
	CHECK(old);
	segment_table_drop(&table, was);
	is = row_new(second, BYTES);
	CHECK(is.row == was.row && is.generation != was.generation);
	CHECK(!segment_at(&view, is, 0, 1));
	/* between the two, what was found before is still there */
	CHECK(segment_at(&view, was, 0, 1) == old);
	at = mapped_at(is, 0, 1);
	CHECK(at && at != old && !segment_at(&view, was, 0, 1));
	/* who comes with the old name is no reason to leave the new one alone */
	CHECK(!segment_view_map(&view, was, CHUNK));
	CHECK(!atomic_load(&view.refused_until[is.row]));
	*at = 's';
	CHECK(pread(second, &byte, 1, 0) == 1 && byte == 's');
	CHECK(pread(first, &byte, 1, 0) == 1 && !byte);
	/* a late access finds no memory, neither this file's nor another's */
	CHECK(!usermem_copy(old, "x", 1));
	CHECK(pread(first, &byte, 1, 0) == 1 && !byte);
	segment_maps_free(segment_view_dead(&view));
	both_close();
	close(first);
	close(second);
}

/* Chunks with pages are mapped ahead, a few; the others not. */
static void test_begin(void)
{
	int some = file_new(BYTES), empty = file_new(BYTES), full = file_new(8 * CHUNK);
	struct segment_ref ref[3];

	both_open();
	CHECK(pwrite(some, "s", 1, (off_t)CHUNK) == 1);
	for (off_t i = 0; i < 8; i++)
		CHECK(pwrite(full, "f", 1, i * (off_t)CHUNK) == 1);
	ref[0] = row_new(some, BYTES);
	ref[1] = row_new(empty, BYTES);
	ref[2] = row_new(full, 8 * CHUNK);
	segment_view_begin(&view);
	CHECK(!segment_at(&view, ref[0], 0, 1) && segment_at(&view, ref[0], CHUNK, 1));
	CHECK(!segment_at(&view, ref[0], 2 * CHUNK, 1) && !segment_at(&view, ref[1], 0, 1));
	for (unsigned i = 0; i < 8; i++)
		CHECK(!segment_at(&view, ref[2], i * CHUNK, 1) == (i >= SEGMENT_BEGIN_CHUNKS));
	CHECK(mapped_kib("Size:", NULL) ==
	      (1 + SEGMENT_BEGIN_CHUNKS) * (CHUNK + SEGMENT_REACH) / 1024);
	/* again: what a peer has added, no more of what is there */
	CHECK(pwrite(some, "s", 1, 0) == 1 && pwrite(empty, "e", 1, 0) == 1);
	segment_view_begin(&view);
	CHECK(!segment_at(&view, ref[0], 0, 1) && segment_at(&view, ref[1], 0, 1));
	both_close();
	close(some);
	close(empty);
	close(full);
}

/* While another thread maps, and for long, nobody waits for ever, nor again and again. */
static void test_mapping_stands(void)
{
	int fd = file_new(BYTES);
	struct segment_ref ref;

	both_open();
	ref = row_new(fd, BYTES);
	CHECK(!pthread_mutex_lock(&view.mapping));
	CHECK(!segment_view_map(&view, ref, 0) && atomic_load(&view.refused_until[ref.row]));
	CHECK(!pthread_mutex_unlock(&view.mapping));
	atomic_store(&view.refused_until[ref.row], 0);
	CHECK(segment_view_map(&view, ref, 0));
	both_close();
	close(fd);
}

/* A refusal is not asked again at once, by however many accesses. */
static void test_stranger(void)
{
	int fd = file_new(BYTES), other = file_new(BYTES);
	struct segment_ref ref;

	both_open();
	ref = row_new(fd, BYTES);
	/* the owner's program has closed it and has a file of its own there */
	CHECK(dup2(other, table.own[ref.row].file.fd) >= 0);
	CHECK(!mapped_at(ref, 0, 1) && atomic_load(&view.refused_until[ref.row]));
	/* the right file again, and nobody looks */
	atomic_store(&view.refused_until[ref.row], UINT64_MAX);
	CHECK(dup2(fd, table.own[ref.row].file.fd) >= 0 && !mapped_at(ref, 0, 1));
	segment_view_begin(&view);
	CHECK(!segment_at(&view, ref, 0, 1));
	atomic_store(&view.refused_until[ref.row], 0);
	CHECK(mapped_at(ref, 0, 1));
	CHECK(dup2(other, table.own[ref.row].file.fd) >= 0);
	CHECK(!segment_table_hold(&table, hidden_id(fd), 1, &ref));
	both_close();
	CHECK(fcntl(other, F_GETFD) >= 0);
	close(fd);
	close(other);
}

/* What is not memory is not opened, not even to look. */
static void test_not_memory(void)
{
	int pipes[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	CHECK(!pipe2(pipes, O_CLOEXEC) && null >= 0);
	CHECK(segment_file_open(getpid(), pipes[0], hidden_id(pipes[0])) < 0);
	CHECK(segment_file_open(getpid(), null, hidden_id(null)) < 0);
	CHECK(segment_file_open(getpid(), -1, 0) < 0);
	close(pipes[0]);
	close(pipes[1]);
	close(null);
}

/* A file that ends before what its owner says is not mapped; one that is cut off later gives a
 * fault, which the access survives. */
static void test_truncated(void)
{
	int fd = file_new(BYTES);
	struct segment_ref ref;
	uint8_t *at;

	both_open();
	ref = row_new(fd, BYTES + 1);
	CHECK(!mapped_at(ref, 0, 1));
	segment_table_drop(&table, ref);
	atomic_store(&view.refused_until[ref.row], 0);
	ref = row_new(fd, BYTES);
	at = mapped_at(ref, 8192, 16);
	CHECK(at && usermem_copy(at, "before", 6));
	CHECK(!ftruncate(fd, 4096));
	CHECK(!usermem_copy(at, "after", 5));
	both_close();
	close(fd);
}

/* Sealed against writing: peers read. */
static void test_read_only(void)
{
	int fd = file_new(8192);
	struct segment_ref ref;
	uint8_t *at, byte = 0;

	CHECK(pwrite(fd, "r", 1, 0) == 1);
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE)) {
		fprintf(stderr, "F_SEAL_FUTURE_WRITE: %s: not looked at\n", strerror(errno));
		close(fd);
		return;
	}
	both_open();
	ref = row_new(fd, 8192);
	at = mapped_at(ref, 0, 1);
	CHECK(!at || (usermem_copy(&byte, at, 1) && byte == 'r'));
	CHECK(!at || !usermem_copy(at, "w", 1));
	both_close();
	close(fd);
}

/* In a child, which may name the file but not open it: it has given up the rights for that. */
static void lesser_child(int fd, int ready, int over)
{
	char path[64], byte;
	int name;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	name = open(path, O_PATH | O_CLOEXEC);
	CHECK(name >= 0 && dup2(name, fd) == fd);
	CHECK(!setgroups(0, NULL) && !setresgid(65534, 65534, 65534) &&
	      !setresuid(65534, 65534, 65534));
	CHECK(open(path, O_RDWR | O_CLOEXEC) < 0 && open(path, O_RDONLY | O_CLOEXEC) < 0);
	CHECK(write(ready, "r", 1) == 1 && read(over, &byte, 1) == 0);
	_exit(0);
}

/* We do not open with our rights what a peer names that has fewer. */
static void test_lesser(void)
{
	int fd = file_new(8192), ready[2], over[2], status;
	pid_t child;
	char byte;

	if (geteuid()) {
		fprintf(stderr, "not root: peers with fewer rights are not looked at\n");
		close(fd);
		return;
	}
	CHECK(!fchmod(fd, 0600) && !pipe2(ready, O_CLOEXEC) && !pipe2(over, O_CLOEXEC));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		close(over[1]);
		lesser_child(fd, ready[1], over[0]);
	}
	close(ready[1]);
	CHECK(read(ready[0], &byte, 1) == 1);
	CHECK(segment_file_open(child, fd, hidden_id(fd)) == -EPERM);
	close(ready[0]);
	close(over[0]);
	close(over[1]);
	CHECK(waitpid(child, &status, 0) == child && !status);
	close(fd);
}

/* Who opens a file that somebody has a lease on waits for that one, for 45 s if nobody answers, and
 * gets it then. */
static void test_lease(void)
{
	int fd = file_new(8192);
	struct segment_ref ref;

	both_open();
	ref = row_new(fd, 8192);
	CHECK(signal(SIGIO, SIG_IGN) != SIG_ERR);
	if (fcntl(fd, F_SETLEASE, F_RDLCK))
		fprintf(stderr, "F_SETLEASE: %s: not looked at\n", strerror(errno));
	else
		CHECK(!segment_view_map(&view, ref, 0));
	CHECK(!fcntl(fd, F_SETLEASE, F_UNLCK) || errno == EAGAIN || errno == EINVAL);
	atomic_store(&view.refused_until[ref.row], 0);
	CHECK(segment_view_map(&view, ref, 0));
	both_close();
	close(fd);
}

static void test_full(void)
{
	int fd = file_new(8192);
	struct segment_ref ref;

	both_open();
	for (unsigned i = 0; i < SEGMENTS; i++)
		(void)row_new(fd, 8192);
	CHECK(segment_table_add(&table, hidden_keep(dup(fd)), 8192, &ref) == -ENOSPC);
	CHECK(segment_table_add(&table, HIDDEN_NONE, 8192, &ref) == -EBADF);
	segment_table_drop(&table, (struct segment_ref){7, 0});
	CHECK(!segment_table_add(&table, hidden_keep(dup(fd)), 8192, &ref) && ref.row == 7);
	both_close();
	CHECK(segment_table_add(&table, hidden_keep(dup(fd)), 8192, &ref) == -ENOSPC);
	close(fd);
}

int main(void)
{
	test_fault_catch();
	test_chunks();
	test_flags();
	test_locked();
	test_users();
	test_scribbled();
	test_begin();
	test_mapping_stands();
	test_next_file();
	test_stranger();
	test_not_memory();
	test_truncated();
	test_read_only();
	test_lesser();
	test_lease();
	test_full();
	return 0;
}
