// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dpacc/object.h"
#include "dpacc/report.h"

static Elf *object_open(const char *path, int *fd)
{
	elf_version(EV_CURRENT);
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? NULL : elf_begin(*fd, ELF_C_READ_MMAP, NULL);
}

static void object_close(Elf *elf, int fd)
{
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

/* Returns the section with the device's object, or NULL. */
static Elf_Scn *object_section(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, strings, header.sh_name)
					   : NULL;

		if (name && !strcmp(name, SECTION_OBJECT))
			return section;
	}
	return NULL;
}

enum object_kind object_kind(const char *path)
{
	enum object_kind kind = OBJECT_OTHER;
	GElf_Ehdr header;
	int fd;
	Elf *elf = object_open(path, &fd);

	if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) &&
	    header.e_type == ET_REL)
		kind = object_section(elf) ? OBJECT_HOST : OBJECT_DEVICE;
	object_close(elf, fd);
	return kind;
}

void object_extract(const char *path, const char *to)
{
	int fd;
	Elf *elf = object_open(path, &fd);
	Elf_Scn *section = elf ? object_section(elf) : NULL;
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	FILE *file = fopen(to, "we");

	if (!data || !data->d_buf)
		give_up("%s: nothing in " SECTION_OBJECT, path);
	if (!file || fwrite(data->d_buf, 1, data->d_size, file) != data->d_size || fclose(file))
		give_up("%s: %s", to, strerror(errno));
	object_close(elf, fd);
}
