// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca run and softhca env.  run becomes the program itself, so process, terminal, signals and
 * exit status are the program's own; with --faults it is the program's parent instead.  Of run only an open connection to the daemon stays: the
 * program and its children inherit it, and it holds the fabric until the last of them has ended.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "tool/fault.h"
#include "tool/mount_view.h"
#include "tool/tool.h"

/* ---- the program ---- */

/*
 * Finds the program that execvp(3) would run, and says beforehand if the dynamic linker would not
 * load the preload library into it.  Otherwise the program would see no devices and its user would
 * not know why.
 */

#define MAX_PHDRS	 512u
#define MAX_INTERPRETERS 4 /* the kernel's limit for nested scripts (execve(2)) */
#define SHEBANG_BYTES	 256
#define REFUSAL_BYTES	 256

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#endif

/* Returns 0, or the errno that execve would give. */
static int program_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) ? errno : 0;
}

static int program_search(const char *name, char *path, size_t size)
{
	const char *dirs = getenv("PATH");
	int error = ENOENT;

	if (!*name)
		return ENOENT;
	if (strchr(name, '/'))
		return text_copy(path, size, name) ? program_executable(path) : ENAMETOOLONG;
	if (!dirs)
		dirs = "/bin:/usr/bin";
	for (const char *p = dirs;; p++) {
		size_t n = strcspn(p, ":");
		int ret;

		/* An empty element is the working directory. */
		if (snprintf(path, size, "%.*s/%s", n ? (int)n : 1, n ? p : ".", name) <
		    (int)size) {
			ret = program_executable(path);
			if (!ret)
				return 0;
			if (ret == EACCES)
				error = EACCES;
		}
		p += n;
		if (!*p)
			return error;
	}
}

/* Would the kernel give it other rights than ours?  Then ld.so ignores LD_PRELOAD (ld.so(8)). */
static bool changes_rights(int fd)
{
	struct statvfs fs;
	struct stat st;

	if (fstat(fd, &st) || (!fstatvfs(fd, &fs) && (fs.f_flag & ST_NOSUID)))
		return false;
	if ((st.st_mode & S_ISUID) && st.st_uid != geteuid())
		return true;
	if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getegid())
		return true;
	return geteuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

/* Does a note say that Go's linker made the program? */
static bool notes_name_go(int fd, const Elf64_Phdr *ph)
{
	struct {
		Elf64_Nhdr head;
		char name[4];
	} note;
	Elf64_Off at = ph->p_offset, end = ph->p_offset + ph->p_filesz;

	while (at < end && pread(fd, &note, sizeof(note), (off_t)at) == sizeof(note)) {
		if (note.head.n_namesz == sizeof(note.name) && !memcmp(note.name, "Go", 3))
			return true;
		at += sizeof(note.head) + ((note.head.n_namesz + 3ull) & ~3ull) +
		      ((note.head.n_descsz + 3ull) & ~3ull);
	}
	return false;
}

/* Why the dynamic linker would not load our library into a program, and what its user can do. */
struct refusal {
	char why[REFUSAL_BYTES];
	const char *remedy; /* NULL: it would */
	bool foreign;	    /* the program's dynamic linker cannot load it either way */
};

#define OR_FILES_ALONE ", or with --view=mount if it only reads the devices' files"

static void printf_like(3, 4) refuse(struct refusal *r, const char *remedy, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
	r->remedy = remedy;
}

static const char *machine_name(uint16_t machine)
{
	static const struct {
		uint16_t machine;
		const char *name;
	} machines[] = {
		{EM_X86_64, "x86-64"}, {EM_386, "x86"},	    {EM_AARCH64, "aarch64"},
		{EM_ARM, "arm"},       {EM_RISCV, "riscv"}, {EM_PPC64, "ppc64"},
		{EM_S390, "s390x"},    {EM_MIPS, "mips"},   {EM_LOONGARCH, "loongarch"},
	};

	for (size_t i = 0; i < array_size(machines); i++)
		if (machines[i].machine == machine)
			return machines[i].name;
	return "another machine";
}

/* Looks at the program's own dynamic linker, whose name tells which C library it belongs to. */
static void interpreter_look(int fd, const Elf64_Phdr *ph, struct refusal *r)
{
	static const struct {
		const char *linker, *library;
	} libraries[] = {
		{"ld-musl-", "musl"},
		{"ld-uClibc", "uClibc"},
		{"ld64-uClibc", "uClibc"},
		{"linker64", "Bionic"},
	};
	char path[REFUSAL_BYTES / 2] = "";
	size_t size = ph->p_filesz < sizeof(path) ? ph->p_filesz : sizeof(path) - 1;

	if (pread(fd, path, size, (off_t)ph->p_offset) != (ssize_t)size)
		return;
	path[size] = '\0';
	for (size_t i = 0; i < array_size(libraries); i++) {
		if (strncmp(text_file_name(path), libraries[i].linker,
			    strlen(libraries[i].linker)) != 0)
			continue;
		refuse(r, "start a build of it for the GNU C library" OR_FILES_ALONE,
		       "it is of another C library, %s (its dynamic linker is %s)",
		       libraries[i].library, path);
		r->foreign = true;
	}
}

/* Tells whether the ELF file is of this machine. */
static bool elf_is_ours(const Elf64_Ehdr *eh, struct refusal *r)
{
	static const char remedy[] = "start a build of it for this machine";

	if (eh->e_ident[EI_CLASS] != ELFCLASS64)
		refuse(r, remedy, "it is not a 64-bit program");
#ifdef OUR_MACHINE
	else if (eh->e_ident[EI_DATA] != ELFDATA2LSB || eh->e_machine != OUR_MACHINE)
		refuse(r, remedy, "it is for another kind of machine (%s, and this is %s)",
		       eh->e_ident[EI_DATA] == ELFDATA2LSB ? machine_name(eh->e_machine)
							   : "big-endian",
		       machine_name(OUR_MACHINE));
#endif
	return !r->remedy;
}

/* Looks whether the dynamic linker would load our library into this ELF file, and sets *go if it is
 * a Go program. */
static void elf_look(int fd, struct refusal *r, bool *go)
{
	static const char damaged[] = "the file is damaged";
	bool interpreted = false;
	Elf64_Ehdr eh;

	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh)) {
		refuse(r, damaged, "its ELF header is cut short");
		return;
	}
	if (!elf_is_ours(&eh, r))
		return;
	if (eh.e_phentsize != sizeof(Elf64_Phdr) || eh.e_phnum > MAX_PHDRS) {
		refuse(r, damaged, "its program headers make no sense");
		return;
	}
	for (uint32_t i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph;

		if (pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) !=
		    sizeof(ph)) {
			refuse(r, damaged, "its program headers are cut short");
			return;
		}
		if (ph.p_type == PT_INTERP)
			interpreter_look(fd, &ph, r);
		interpreted |= ph.p_type == PT_INTERP;
		*go |= ph.p_type == PT_NOTE && notes_name_go(fd, &ph);
	}
	if (!interpreted)
		refuse(r, "link it with shared libraries" OR_FILES_ALONE,
		       "it is statically linked");
}

/* Gives the interpreter of a #! line; false if there is none. */
static bool program_interpreter(int fd, char *path, size_t size)
{
	char line[SHEBANG_BYTES];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	char *start;

	if (n < 2)
		return false;
	line[n] = '\0';
	start = line + 2 + strspn(line + 2, " \t");
	start[strcspn(start, " \t\r\n")] = '\0';
	return *start && text_copy(path, size, start);
}

/* Looks whether the dynamic linker would load our library into what runs the program. */
static void program_look(const char *program, struct refusal *r, bool *go)
{
	char path[TOOL_PATH_BYTES];
	bool script = true;

	if (!text_copy(path, sizeof(path), program))
		return;
	for (int depth = 0; script && depth <= MAX_INTERPRETERS; depth++) {
		char magic[SELFMAG] = {0};
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		/* The file is executable but not readable, so we cannot tell and let it try. */
		if (fd < 0)
			return;
		script = false;
		if (pread(fd, magic, sizeof(magic), 0) < 2) {
			/* execvp hands it to the shell */
		} else if (!memcmp(magic, "#!", 2)) {
			script = program_interpreter(fd, path, sizeof(path));
		} else if (!memcmp(magic, ELFMAG, SELFMAG)) {
			elf_look(fd, r, go);
			if (!r->remedy && changes_rights(fd))
				refuse(r,
				       "start a copy of it, which has no rights of its "
				       "own" OR_FILES_ALONE,
				       "it is setuid, setgid or has capabilities");
		}
		close(fd);
	}
}

/*
 * Finds what execvp(3) would run, and whether we can serve it; *foreign: not with the library.  0 or an exit status.
 */
static int program_find(const struct session *s, const char *name, char *path, size_t size,
			bool *foreign)
{
	int error = program_search(name, path, size);
	struct refusal r = {0};
	bool go = false;

	if (error == ENOENT || error == ENOTDIR) {
		tool_error(s->command, "%s: no such program", name);
		return EXIT_NO_PROGRAM;
	}
	if (error) {
		tool_error(s->command, "%s: %s", name, strerror(error));
		return EXIT_CANNOT_RUN;
	}
	program_look(path, &r, &go);
	*foreign = r.foreign;
	/* What is mounted everybody sees. */
	if (s->mount)
		return 0;
	if (r.remedy) {
		tool_error(s->command, "%s cannot be given devices: %s; %s", path, r.why, r.remedy);
		return EXIT_CANNOT_RUN;
	}
	if (go)
		tool_error(
			s->command,
			"note: %s is a Go program, which sees the files of the devices in /sys and "
			"/dev only with --view=mount",
			path);
	return 0;
}

/* ---- gdb as the program ---- */

/*
 * gdb as the program of softhca run.  A file beside the preload library tells gdb which faults
 * softhca's own handler answers, and gdb loads it with the library if it may: of a directory that
 * it does not know, gdb only says that it is not safe.
 */

static bool is_gdb(const char *path)
{
	return !strcmp(text_file_name(path), "gdb");
}

/* The library's name has no blanks (preload_value). */
static char *safe_path_command(const char *preload)
{
	int n = (int)(strrchr(preload, '/') - preload);
	char *text;

	return asprintf(&text, "add-auto-load-safe-path %.*s", n, preload) < 0 ? NULL : text;
}

/*
 * Returns the arguments with which run executes path: argv itself, or if path is gdb,
 * arguments by which gdb finds what lies beside the preload library.  NULL: no memory.
 */
static char **debugger_arguments(const struct session *s, const char *path, int argc, char **argv)
{
	static char gdb[] = "gdb", early[] = "-iex", args[] = "--args";
	char **all, **end, *safe;

	if (!is_gdb(path))
		return argv;
	all = calloc((size_t)argc + 5, sizeof(*all));
	safe = safe_path_command(s->preload);
	if (!all || !safe) {
		free(all);
		free(safe);
		return NULL;
	}
	end = all;
	*end++ = s->gdb ? gdb : *argv++;
	*end++ = early;
	*end++ = safe;
	if (s->gdb)
		*end++ = args;
	while (*argv)
		*end++ = *argv++;
	return all;
}

/* ---- how softhca env is undone ---- */

/*
 * It exports SOFTHCA_BEFORE: the variables that it may set and that were set already, as lines
 * NAME=VALUE.  `softhca env --unset` restores them and unsets the others.  A second `softhca env`
 * keeps the first one's record, so that both are undone at once.
 */

#define BEFORE	"SOFTHCA_BEFORE"
#define PRELOAD "LD_PRELOAD"

/* All variables that softhca env may set. */
static const char *const names[] = {
	"SOFTHCA_DIR",
	"SOFTHCA_HOST",
	"SOFTHCA_DAEMON",
	"SOFTHCA_MODEL",
	"SOFTHCA_LINK_TYPES",
	"SOFTHCA_DEVICE_NAMES",
	"SOFTHCA_SIGNATURE_REPORTS",
	"SOFTHCA_TIMING",
	"SOFTHCA_MEMORY",
	"SOFTHCA_TRACE",
	"SOFTHCA_EXPLAIN",
	"VALGRIND_OPTS",
	PRELOAD,
};

/* Their values before this process set any for the daemon. */
static char *values[array_size(names)];

/* Prints in single quotes, in which only the quote itself is special. */
static void quoted_print(const char *value, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (value[i] == '\'')
			fputs("'\\''", stdout);
		else
			putchar(value[i]);
	}
}

static void export_n(const char *name, const char *value, size_t n)
{
	printf("export %s='", name);
	quoted_print(value, n);
	puts("'");
}

/* Prints for any POSIX shell: export NAME='VALUE' */
static void undo_export(const char *name, const char *value)
{
	export_n(name, value, strlen(value));
}

/* Keeps the environment as it is, before this process changes it. */
static void undo_remember(void)
{
	for (size_t i = 0; i < array_size(names); i++) {
		const char *value = getenv(names[i]);

		values[i] = value ? strdup(value) : NULL;
	}
}

/* Exports what was kept, unless the environment has it already. */
static void undo_record(void)
{
	if (getenv(BEFORE))
		return;
	printf("export " BEFORE "='");
	for (size_t i = 0; i < array_size(names); i++) {
		const char *value = values[i];

		if (!value)
			continue;
		printf("%s=", names[i]);
		quoted_print(value, strlen(value));
		putchar('\n');
	}
	puts("'");
}

/* Returns the value in a line of the record; NULL: there was none. */
static const char *value_before(const char *record, const char *name, size_t *n)
{
	size_t len = strlen(name);

	while (*record) {
		size_t line = strcspn(record, "\n");

		if (line > len && !strncmp(record, name, len) && record[len] == '=') {
			*n = line - len - 1;
			return record + len + 1;
		}
		record += line + (record[line] == '\n');
	}
	return NULL;
}

/* Tells whether the list begins with our library. */
static bool preload_begins(const struct session *s, const char *list, size_t n)
{
	size_t ours = strlen(s->preload);

	return n >= ours && !strncmp(list, s->preload, ours) &&
	       (n == ours || list[ours] == ':' || list[ours] == ' ');
}

/* Tells whether the list is still what softhca env made of the one before. */
static bool preload_stands(const struct session *s, const char *now, const char *before, size_t n)
{
	size_t ours = strlen(s->preload);

	if (!n)
		return !strcmp(now, s->preload);
	if (preload_begins(s, before, n))
		return strlen(now) == n && !strncmp(now, before, n);
	return preload_begins(s, now, strlen(now)) && now[ours] == ':' &&
	       strlen(now + ours + 1) == n && !strncmp(now + ours + 1, before, n);
}

/* The user has changed the list: this keeps what they have added, and removes only our library. */
static void preload_remove(const struct session *s, const char *now)
{
	const char *separator = "";
	size_t n;

	printf("export " PRELOAD "='");
	for (const char *p = now; *p; p += n + (p[n] != '\0')) {
		n = strcspn(p, " :");
		if (!n || (n == strlen(s->preload) && !strncmp(p, s->preload, n)))
			continue;
		fputs(separator, stdout);
		quoted_print(p, n);
		separator = ":";
	}
	puts("'");
}

/* Prints what undoes softhca env; returns an exit status. */
static int undo_print(const struct session *s)
{
	const char *record = getenv(BEFORE), *value;
	size_t n = 0;

	if (!record) {
		tool_error(s->command, "nothing to undo: no 'softhca env' was evaluated here");
		return EXIT_NOTHING;
	}
	for (size_t i = 0; i < array_size(names); i++) {
		const char *now = getenv(names[i]);

		n = 0;
		value = value_before(record, names[i], &n);
		if (!strcmp(names[i], PRELOAD) && now && !preload_stands(s, now, value, n))
			preload_remove(s, now);
		else if (value)
			export_n(names[i], value, n);
		else
			printf("unset %s\n", names[i]);
	}
	puts("unset " BEFORE);
	return fflush(stdout) ? EXIT_OURS : 0;
}

/* ---- the commands ---- */

#define PRELOAD	      "LD_PRELOAD"
#define VALGRIND      "VALGRIND_OPTS"
#define VALGRIND_FAIR "--fair-sched=try"

/* Our library goes before what the user preloads, so that its view of paths is the outermost. */
static char *preload_value(const struct session *s)
{
	const char *old = getenv(PRELOAD);
	size_t n = strlen(s->preload);
	char *value;

	if (!n) {
		session_missing_part(s, "libsofthca-preload.so");
		return NULL;
	}
	/* ld.so(8): separated by spaces or colons, and there is no escaping. */
	if (strpbrk(s->preload, " :")) {
		tool_error(s->command, "the dynamic linker cannot preload '%s': blank or colon",
			   s->preload);
		return NULL;
	}
	if (!old || !*old)
		return strdup(s->preload);
	if (!strncmp(old, s->preload, n) && (!old[n] || old[n] == ':' || old[n] == ' '))
		return strdup(old);
	if (asprintf(&value, "%s:%s", s->preload, old) < 0)
		return NULL;
	return value;
}

/*
 * Valgrind runs one thread at a time.  By default luck decides which: a program that polls keeps
 * the device's thread waiting for seconds.  What the user has chosen comes later and so wins.
 * NULL: no memory.
 */
static char *valgrind_value(void)
{
	const char *old = getenv(VALGRIND);
	char *value;

	if (!old || !*old)
		return strdup(VALGRIND_FAIR);
	if (!strncmp(old, VALGRIND_FAIR, strlen(VALGRIND_FAIR)))
		return strdup(old);
	if (asprintf(&value, VALGRIND_FAIR " %s", old) < 0)
		return NULL;
	return value;
}

/* Sets what the environment tells the program. */
static bool environment_set(const struct session *s, const char *host, const char *preload)
{
	char *valgrind = valgrind_value();
	bool set = valgrind && !setenv(VALGRIND, valgrind, 1) && !setenv(PRELOAD, preload, 1) &&
		   !setenv("SOFTHCA_DIR", s->dir, 1) && !setenv("SOFTHCA_HOST", host, 1) &&
		   !setenv("SOFTHCA_DAEMON", s->daemon, 1) &&
		   (!s->reports || !setenv("SOFTHCA_SIGNATURE_REPORTS", s->reports, 1)) &&
		   (!s->timing || !setenv("SOFTHCA_TIMING", s->timing, 1)) &&
		   (!s->memory || !setenv("SOFTHCA_MEMORY", s->memory, 1)) &&
		   (!s->trace || !setenv("SOFTHCA_TRACE", s->trace, 1)) &&
		   (!s->explain || !setenv("SOFTHCA_EXPLAIN", "1", 1));

	free(valgrind);
	return set;
}

/* As execvp, which hands to the shell what the kernel cannot run, also a program for another machine. */
static void program_execute(const char *path, char **argv)
{
	char magic[SELFMAG] = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!pread(fd, magic, sizeof(magic), 0);
		close(fd);
	}
	if (!memcmp(magic, ELFMAG, SELFMAG))
		execv(path, argv);
	else
		execvp(path, argv);
}

/* Becomes the program; returns an exit status only if it cannot. */
static int program_become(const struct session *s, int *sock, const char *host, const char *path,
			  char **argv, bool foreign)
{
	int status;

	*sock = link_raise(*sock);
	status = s->mount ? mount_view_enter(s, host) : 0;
	if (status)
		return status;
	/* The library is of the GNU C library; perhaps an outer softhca run has set the variable. */
	if (foreign)
		unsetenv(PRELOAD);
	program_execute(path, argv);
	status = errno == ENOENT ? EXIT_NO_PROGRAM : EXIT_CANNOT_RUN;
	tool_error(s->command, "%s: %s", path, strerror(errno));
	return status;
}

/* Starts the program, plays the file of faults while it runs, and returns its exit status. */
static int program_run_beside_faults(const struct session *s, int *sock, const char *host,
				     const char *path, char **argv, bool foreign)
{
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	struct fault_player *player;
	struct sigaction children;
	sigset_t before, ours;
	int status;
	pid_t pid;

	player = fault_player_open(s, s->faults, &status);
	if (!player)
		return status;
	/* Before the program can end. */
	sigemptyset(&ours);
	for (size_t i = 0; i < array_size(fault_player_signals); i++)
		sigaddset(&ours, fault_player_signals[i]);
	(void)sigprocmask(SIG_BLOCK, &ours, &before);
	status = fault_player_begin(player);
	if (status)
		goto close_player;
	/* Who ignores this signal gets no status. */
	(void)sigaction(SIGCHLD, &usual, &children);
	pid = fork();
	if (!pid) {
		(void)sigaction(SIGCHLD, &children, NULL);
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
		_exit(program_become(s, sock, host, path, argv, foreign));
	}
	status = EXIT_OURS;
	if (pid < 0)
		tool_error(s->command, "%s", strerror(errno));
	else
		status = fault_player_play(player, pid);
close_player:
	fault_player_close(player);
	return status;
}

int command_run(struct session *s, int argc, char **argv)
{
	char path[TOOL_PATH_BYTES];
	struct msg_host_reply host;
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	bool foreign = false;
	int sock, status;
	char *preload;

	if (!argc) {
		tool_error(s->command, "run what? See softhca run --help");
		return EXIT_USAGE;
	}
	status = program_find(s, argv[0], path, sizeof(path), &foreign);
	if (!status && s->gdb)
		status = program_find(s, "gdb", path, sizeof(path), &foreign);
	if (status)
		return status;
	preload = preload_value(s);
	if (!preload)
		return EXIT_OURS;
	argv = debugger_arguments(s, path, argc, argv);
	if (!argv) {
		tool_error(s->command, "%s", strerror(ENOMEM));
		free(preload);
		return EXIT_OURS;
	}
	status = EXIT_OURS;
	sock = session_link(s, true, &m, MSG_LEASE, fds);
	if (sock < 0)
		goto free_preload;
	if (!session_host(s, sock, &host))
		goto close_sock;
	if (!environment_set(s, host.name, preload)) {
		tool_error(s->command, "%s", strerror(errno));
		goto close_sock;
	}
	if (s->faults)
		status = program_run_beside_faults(s, &sock, host.name, path, argv, foreign);
	else
		status = program_become(s, &sock, host.name, path, argv, foreign);
close_sock:
	close(sock);
free_preload:
	free(preload);
	return status;
}

int command_env(struct session *s, int argc, char **argv)
{
	struct msg_host_reply host;
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int sock, status = EXIT_OURS;
	char *preload, *valgrind;

	if (argc) {
		tool_error(s->command, "unexpected argument: %s", argv[0]);
		return EXIT_USAGE;
	}
	if (s->unset)
		return undo_print(s);
	undo_remember();
	preload = preload_value(s);
	if (!preload)
		return EXIT_OURS;
	valgrind = valgrind_value();
	if (!valgrind) {
		tool_error(s->command, "%s", strerror(ENOMEM));
		goto free_preload;
	}
	/* Finds a missing host now, before each program finds it later. */
	sock = session_link(s, true, &m, MSG_LEASE, fds);
	if (sock < 0)
		goto free_valgrind;
	if (!session_host(s, sock, &host))
		goto close_sock;
	undo_record();
	undo_export("SOFTHCA_DIR", s->dir);
	undo_export("SOFTHCA_HOST", host.name);
	undo_export("SOFTHCA_DAEMON", s->daemon);
	if (s->model)
		undo_export("SOFTHCA_MODEL", s->model);
	if (s->links)
		undo_export("SOFTHCA_LINK_TYPES", s->links);
	if (s->names)
		undo_export("SOFTHCA_DEVICE_NAMES", s->names);
	if (s->reports)
		undo_export("SOFTHCA_SIGNATURE_REPORTS", s->reports);
	if (s->timing)
		undo_export("SOFTHCA_TIMING", s->timing);
	if (s->memory)
		undo_export("SOFTHCA_MEMORY", s->memory);
	if (s->trace)
		undo_export("SOFTHCA_TRACE", s->trace);
	if (s->explain)
		undo_export("SOFTHCA_EXPLAIN", "1");
	undo_export(VALGRIND, valgrind);
	undo_export(PRELOAD, preload);
	if (!fflush(stdout))
		status = 0;
close_sock:
	close(sock);
free_valgrind:
	free(valgrind);
free_preload:
	free(preload);
	return status;
}
