// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <unistd.h>

#include "dpacc/embed.h"
#include "dpacc/report.h"

void embed_write(FILE *file, const char *path)
{
	FILE *from = fopen(path, "re");
	unsigned int column = 0;
	int byte;

	if (!from)
		give_up("%s: cannot be read", path);
	while ((byte = getc(from)) != EOF)
		fprintf(file, "%d,%s", byte, ++column % 32 ? "" : "\n");
	fputc('\n', file);
	fclose(from);
}

static bool relocation_is_relative(unsigned int machine, unsigned long type)
{
	return (machine == EM_X86_64 && type == R_X86_64_RELATIVE) ||
	       (machine == EM_AARCH64 && type == R_AARCH64_RELATIVE);
}

static void embed_relocations(const char *path, Elf *elf, unsigned int machine)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Rela rela;

	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA ||
		    !(header.sh_flags & SHF_ALLOC))
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getrela(data, i, &rela); i++)
			if (!relocation_is_relative(machine, GELF_R_TYPE(rela.r_info)))
				give_up("%s: relocation of type %lu: device code cannot ask for a "
					"symbol "
					"when it is loaded",
					path, (unsigned long)GELF_R_TYPE(rela.r_info));
	}
}

void embed_check(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	GElf_Ehdr header;
	GElf_Phdr segment;
	size_t segments;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf || !gelf_getehdr(elf, &header) || elf_getphdrnum(elf, &segments))
		give_up("%s: not an image", path);
	for (size_t i = 0; i < segments; i++)
		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_TLS)
			give_up("device code has thread-local variables (_Thread_local, __thread), "
				"which "
				"the DPA has not; see flexio_dev_get_thread_local_storage");
	embed_relocations(path, elf, header.e_machine);
	elf_end(elf);
	close(fd);
}
