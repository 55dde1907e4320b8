// SPDX-License-Identifier: BSD-2-Clause
/* dpacc-extract: takes the image for the device out of an archive of dpacc, or out of a file that
 * was linked with such an archive. */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dpacc/look.h"
#include "dpacc/stubs.h"
#include "dpacc/words.h"

static const char usage[] =
	"Usage: dpacc-extract FILE -o IMAGE [--app-name NAME]\n"
	"Writes the image that dpacc has put into FILE: its archive, or a program, library or\n"
	"object that was linked with it.  The name says which one if there are several.\n";

struct extraction {
	const char *file, *output, *app;
	const char *target; /* an image fits one target, whichever it is */
	struct words found; /* names of applications */
	const Elf_Data *image;
};

/* Returns where the value of an option goes, or NULL: there is no such option. */
static const char **extraction_option(struct extraction *e, const char *word)
{
	const char *name = word + 1 + (word[1] == '-');
	size_t length = strcspn(name, "=");

	if ((length == 1 && text_begins(name, "o")) ||
	    (length == 11 && text_begins(name, "output-file")))
		return &e->output;
	if (length == 8 && text_begins(name, "app-name"))
		return &e->app;
	return length == 4 && text_begins(name, "mcpu") ? &e->target : NULL;
}

/* Takes an option and its value, behind '=' or the next word; returns the last argument read. */
static int extraction_take(struct extraction *e, int argc, char **argv, int at)
{
	const char **slot = extraction_option(e, argv[at]), *equals = strchr(argv[at], '=');

	if (!slot)
		give_up("%s: no such option; see dpacc-extract --help", argv[at]);
	if (equals) {
		*slot = equals + 1;
		return at;
	}
	if (at + 1 >= argc)
		give_up("%s: its value is missing; see dpacc-extract --help", argv[at]);
	*slot = argv[at + 1];
	return at + 1;
}

static void extraction_read(struct extraction *e, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			fputs(usage, stdout);
			exit(0);
		}
		if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
			help_version("dpacc-extract");
			exit(0);
		}
		if (word[0] == '-') {
			i = extraction_take(e, argc, argv, i);
		} else if (e->file) {
			give_up("%s: one file is enough", word);
		} else {
			e->file = word;
		}
	}
	if (!e->file || !e->output)
		give_up("a file and -o are needed; see dpacc-extract --help");
}

/* Looks into an ELF file, which stays open because the image's bytes are in it. */
static void extraction_look(struct extraction *e, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings))
		return;
	while ((section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, strings, header.sh_name)
					   : NULL;

		if (!name || !text_begins(name, SECTION_IMAGE) || header.sh_type != SHT_PROGBITS)
			continue;
		name += strlen(SECTION_IMAGE);
		if (e->app && strcmp(e->app, name) != 0)
			continue;
		words_add(&e->found, name);
		e->image = elf_rawdata(section, NULL);
	}
}

static void extraction_check(const struct extraction *e)
{
	char *names = text_of("%s", "");

	if (e->found.count == 1)
		return;
	for (size_t i = 0; i < e->found.count; i++)
		names = text_of("%s %s", names, e->found.words[i]);
	if (e->found.count > 1)
		give_up("%s has several applications, --app-name says which:%s", e->file, names);
	if (e->app)
		give_up("%s: no application %s of dpacc in it", e->file, e->app);
	give_up("%s: no application of dpacc in it", e->file);
}

static void extraction_write(const struct extraction *e)
{
	FILE *file;

	if (!e->image || !e->image->d_buf)
		give_up("%s: the image is empty", e->file);
	file = fopen(e->output, "we");
	if (!file || fwrite(e->image->d_buf, 1, e->image->d_size, file) != e->image->d_size ||
	    fclose(file))
		give_up("%s: %s", e->output, strerror(errno));
}

int main(int argc, char **argv)
{
	Elf_Cmd command = ELF_C_READ_MMAP;
	struct extraction e = {0};
	Elf *whole, *elf;
	int fd;

	report_name = "dpacc-extract";
	extraction_read(&e, argc, argv);
	elf_version(EV_CURRENT);
	fd = open(e.file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		give_up("%s: %s", e.file, strerror(errno));
	whole = elf_begin(fd, command, NULL);
	/* A file that is no archive is its own first and only member. */
	while (whole && (elf = elf_begin(fd, command, whole))) {
		if (elf_kind(elf) == ELF_K_ELF)
			extraction_look(&e, elf);
		command = elf_next(elf);
	}
	extraction_check(&e);
	extraction_write(&e);
	return 0;
}
