// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the program that execvp(3) would run, and says beforehand if the dynamic linker would not
 * load the preload library into it.  Otherwise the program would see no devices and its user would
 * not know why.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/text.h"
#include "tool/tool.h"

#define MAX_PHDRS	 512u
#define MAX_INTERPRETERS 4 /* the kernel's limit for nested scripts (execve(2)) */
#define SHEBANG_BYTES	 256

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

/* Returns why the dynamic linker would not load our library into this ELF file, or NULL, and sets *go
 * if it is a Go program. */
static const char *elf_refusal(int fd, bool *go)
{
	bool interpreted = false;
	Elf64_Ehdr eh;

	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh))
		return "its ELF header is cut short";
	if (eh.e_ident[EI_CLASS] != ELFCLASS64)
		return "it is not a 64-bit program";
#ifdef OUR_MACHINE
	if (eh.e_machine != OUR_MACHINE)
		return "it is for another kind of machine";
#endif
	if (eh.e_phentsize != sizeof(Elf64_Phdr) || eh.e_phnum > MAX_PHDRS)
		return "its program headers make no sense";
	for (uint32_t i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph;

		if (pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) != sizeof(ph))
			return "its program headers are cut short";
		interpreted |= ph.p_type == PT_INTERP;
		*go |= ph.p_type == PT_NOTE && notes_name_go(fd, &ph);
	}
	return interpreted ? NULL : "it is statically linked";
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

static const char *program_refusal(const char *program, bool *go)
{
	char path[TOOL_PATH_BYTES];
	const char *why = NULL;
	bool script;

	if (!text_copy(path, sizeof(path), program))
		return NULL;
	for (int depth = 0; depth <= MAX_INTERPRETERS; depth++) {
		char magic[SELFMAG] = {0};
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		/* The file is executable but not readable, so we cannot tell and let it try. */
		if (fd < 0)
			return NULL;
		script = false;
		if (pread(fd, magic, sizeof(magic), 0) < 2) {
			why = NULL; /* execvp hands it to the shell */
		} else if (!memcmp(magic, "#!", 2)) {
			script = program_interpreter(fd, path, sizeof(path));
		} else if (!memcmp(magic, ELFMAG, SELFMAG)) {
			why = changes_rights(fd) ? "it is setuid, setgid or has capabilities"
						 : elf_refusal(fd, go);
		}
		close(fd);
		if (!script)
			return why;
	}
	return NULL;
}

int program_find(const struct session *s, const char *name, char *path, size_t size)
{
	bool go = false;
	const char *why;
	int error = program_search(name, path, size);

	if (error == ENOENT || error == ENOTDIR) {
		tool_error(s->command, "%s: no such program", name);
		return EXIT_NO_PROGRAM;
	}
	if (error) {
		tool_error(s->command, "%s: %s", name, strerror(error));
		return EXIT_CANNOT_RUN;
	}
	/* What is mounted everybody sees. */
	if (s->mount)
		return 0;
	why = program_refusal(path, &go);
	if (why) {
		tool_error(s->command,
			   "%s cannot be given devices: %s; --view=mount shows it their files in "
			   "/sys and /dev",
			   path, why);
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
