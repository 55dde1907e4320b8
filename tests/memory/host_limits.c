// SPDX-License-Identifier: BSD-2-Clause
/* Limits that a program sets itself, locks on all of its memory, and core files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

enum { OLD = 0x11, NEW = 0x22, PEER = 0x33 };

#define MIB 1048576ul

/* What a device may add to a program that locks or dumps all of its memory. */
#define LOCKED_LIMIT (512 * MIB)
#define CORE_CAP     (512 * MIB)
#define CORE_LIMIT   (128 * MIB)

static struct rlimit set_limit(__rlimit_resource_t what, rlim_t value)
{
	struct rlimit old, new;

	if (getrlimit(what, &old))
		device_die("getrlimit: %m");
	new = (struct rlimit){value, old.rlim_max};
	if (setrlimit(what, &new))
		device_die("setrlimit: %m");
	return old;
}

static void want_limit(__rlimit_resource_t what, rlim_t value)
{
	struct rlimit now;

	host_want(!getrlimit(what, &now) && now.rlim_cur == value, "the limit is now %lu, not %lu",
		  (unsigned long)now.rlim_cur, (unsigned long)value);
}

/* Everything that needs the device: registration, data both ways, another connection. */
static void all_descriptors(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_messages(h, at, mr);
	host_exchange(h, at, mr, HOST_BYTES, NEW);
	host_dereg(mr);
	host_want_all(at, HOST_BYTES, NEW, "deregistered memory");
	if (munmap(at, HOST_BYTES))
		device_die("munmap: %m");
}

static void under_limit(struct host *h, __rlimit_resource_t what, rlim_t value)
{
	struct rlimit old;

	all_descriptors(h);
	old = set_limit(what, value);
	all_descriptors(h);
	peer_connect(&h->peer);
	all_descriptors(h);
	want_limit(what, value);
	if (setrlimit(what, &old))
		device_die("setrlimit: %m");
	all_descriptors(h);
}

/* ---- descriptors ---- */

static void no_descriptors(struct host *h)
{
	int lowest = dup(0);

	close(lowest);
	under_limit(h, RLIMIT_NOFILE, (rlim_t)lowest);
}

static void few_descriptors(struct host *h)
{
	(void)h;
	set_limit(RLIMIT_NOFILE, 64);
}

static void with_few_descriptors(struct host *h)
{
	all_descriptors(h);
	want_limit(RLIMIT_NOFILE, 64);
}

/* ---- threads ---- */

static void no_threads(struct host *h)
{
	if (!geteuid())
		host_skip("the limit does not hold for root");
	under_limit(h, RLIMIT_NPROC, 1);
}

/* ---- memory ---- */

static void no_locks(struct host *h)
{
	void *page = host_map(HOST_PAGE, OLD);
	struct rlimit none = {0, 0};
	struct ibv_mr *mr;

	all_descriptors(h);
	if (setrlimit(RLIMIT_MEMLOCK, &none))
		device_die("setrlimit: %m");
	if (!mlock(page, HOST_PAGE))
		host_skip("the limit does not hold for this user");
	/* A device that pins may refuse; one that does not, may not. */
	mr = ibv_reg_mr(h->side.pd, page, HOST_PAGE, SIDE_ACCESS);
	host_want(mr || errno == ENOMEM, "ibv_reg_mr: %m");
	if (mr) {
		host_exchange(h, page, mr, HOST_PAGE, PEER);
		host_dereg(mr);
	}
}

static void two_gib(struct host *h)
{
	(void)h;
	set_limit(RLIMIT_AS, 2048 * MIB);
}

/* The device takes no more of the address space than a program can spare. */
static void with_two_gib(struct host *h)
{
	void *half;

	all_descriptors(h);
	half = mmap(NULL, 1024 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	host_want(half != MAP_FAILED, "half of the address space is not to be had: %m");
	all_descriptors(h);
	munmap(half, 1024 * MIB);
	want_limit(RLIMIT_AS, 2048 * MIB);
}

/* Not a page more; only what is there already goes on. */
static void no_space(struct host *h, __rlimit_resource_t what)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);
	struct rlimit old;

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	old = set_limit(what, HOST_PAGE);
	host_want(mmap(NULL, HOST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0) == MAP_FAILED,
		  "the limit does not hold");
	host_exchange(h, at, mr, HOST_BYTES, NEW);
	host_messages(h, at, mr);
	host_exchange(h, at, mr, HOST_BYTES, OLD);
	want_limit(what, HOST_PAGE);
	if (setrlimit(what, &old))
		device_die("setrlimit: %m");
	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_dereg(mr);
	all_descriptors(h);
}

static void no_addresses(struct host *h)
{
	no_space(h, RLIMIT_AS);
}

static void no_data(struct host *h)
{
	no_space(h, RLIMIT_DATA);
}

/* ---- sizes of files: files without names count too ---- */

static void short_files(struct host *h)
{
	(void)h;
	set_limit(RLIMIT_FSIZE, 65536);
}

static void with_short_files(struct host *h)
{
	all_descriptors(h);
	want_limit(RLIMIT_FSIZE, 65536);
}

static void short_files_later(struct host *h)
{
	under_limit(h, RLIMIT_FSIZE, 65536);
}

/* ---- mlockall ---- */

static unsigned long locked_bytes(pid_t pid)
{
	char path[64], line[256];
	unsigned long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmLck: %lu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024;
}

/* Ends the host before it has used up the machine. */
static void watch_core(void)
{
	pid_t host = getpid();

	if (fork())
		return;
	for (int i = 0; i < 60000 && !kill(host, 0) && getppid() == host; i++) {
		if (locked_bytes(host) > 4 * LOCKED_LIMIT)
			kill(host, SIGKILL);
		usleep(2000);
	}
	_exit(0);
}

static void lock_all(struct host *h)
{
	(void)h;
	watch_core();
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		host_skip("mlockall: %s", strerror(errno));
}

/* How much more than before; the peer may have gone, and taken what was its own. */
static uint64_t shared_since(uint64_t before)
{
	uint64_t now = host_shared_bytes();

	return now > before ? now - before : 0;
}

/* All works, and little has become resident since so much was shared. */
static void all_with_locks(struct host *h, uint64_t shared)
{
	all_descriptors(h);
	peer_connect(&h->peer);
	all_descriptors(h);
	host_want(locked_bytes(getpid()) <= LOCKED_LIMIT, "%lu MiB are locked",
		  locked_bytes(getpid()) / MIB);
	shared = shared_since(shared);
	host_want(shared <= 64 * MIB, "%lu MiB more are shared", (unsigned long)(shared / MIB));
}

static void with_all_locked(struct host *h)
{
	all_with_locks(h, host_shared_bytes());
}

static void *map_untouched(void)
{
	void *at =
		mmap(NULL, HOST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	host_want(at != MAP_FAILED, "mmap: %m");
	return at;
}

static void want_resident(void *at, const char *what)
{
	static unsigned char there[HOST_BYTES / HOST_PAGE];

	host_want(!mincore(at, HOST_BYTES, there), "mincore: %m");
	for (size_t i = 0; i < sizeof(there); i++)
		host_want(there[i] & 1, "page %zu of what was mapped %s is not there", i, what);
}

/* What is the program's own is filled, before and after. */
static void locks_all(struct host *h)
{
	void *before = map_untouched();
	uint64_t shared;

	all_descriptors(h);
	shared = host_shared_bytes();
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		host_skip("mlockall: %s", strerror(errno));
	want_resident(before, "before");
	want_resident(map_untouched(), "after");
	host_want(locked_bytes(getpid()) >= 2 * HOST_BYTES, "little is locked");
	all_with_locks(h, shared);
}

/* Less than the device maps. */
static void lock_little(struct host *h)
{
	(void)h;
	set_limit(RLIMIT_MEMLOCK, 6 * MIB);
	if (mlockall(MCL_FUTURE))
		host_skip("mlockall: %s", strerror(errno));
}

static void with_little_locked(struct host *h)
{
	if (!geteuid())
		host_skip("the limit does not hold for root");
	all_descriptors(h);
	peer_connect(&h->peer);
	all_descriptors(h);
}

/* ---- core files ---- */

static off_t take_core(const char *directory)
{
	DIR *d = opendir(directory);
	struct dirent *entry;
	off_t size = -1;
	char path[512];
	struct stat st;

	while (d && (entry = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (entry->d_name[0] != '.' && !stat(path, &st)) {
			size = st.st_size;
			unlink(path);
		}
	}
	if (d)
		closedir(d);
	rmdir(directory);
	return size;
}

static void core_dumped(struct host *h)
{
	char directory[] = "/tmp/softhca-core.XXXXXX";
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);
	struct rlimit allowed;
	uint64_t shared;
	off_t size;

	if (getrlimit(RLIMIT_CORE, &allowed) || (allowed.rlim_max < CORE_CAP && geteuid()))
		host_skip("core files are not allowed");
	if (!mkdtemp(directory))
		device_die("mkdtemp: %m");
	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_messages(h, at, mr);
	shared = host_shared_bytes();
	peer_dump(&h->peer, directory, CORE_CAP);
	size = take_core(directory);
	if (size < 0)
		host_skip("core files go elsewhere");
	host_want(size <= (off_t)CORE_LIMIT, "the core file has %lu MiB%s",
		  (unsigned long)size / MIB, size >= (off_t)CORE_CAP ? " at least" : "");
	shared = shared_since(shared);
	host_want(shared <= 64 * MIB, "dumping the peer took %lu MiB of this process's memory",
		  (unsigned long)(shared / MIB));
	host_dereg(mr);
}

const struct host_case limit_cases[] = {
	{"no more descriptors", no_descriptors, NULL},
	{"few descriptors before opening", with_few_descriptors, few_descriptors},
	{"no more threads", no_threads, NULL},
	{"no locked memory", no_locks, NULL},
	{"2 GiB of address space", with_two_gib, two_gib},
	{"no more address space", no_addresses, NULL},
	{"no more data", no_data, NULL},
	{"short files", with_short_files, short_files},
	{"short files after opening", short_files_later, NULL},
	{"mlockall", with_all_locked, lock_all},
	{"mlockall after connecting", locks_all, NULL},
	{"mlockall under a limit", with_little_locked, lock_little},
	{"core file", core_dumped, NULL},
	{NULL, NULL, NULL},
};
