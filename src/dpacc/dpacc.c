// SPDX-License-Identifier: BSD-2-Clause
/* dpacc: compiles code for the DPA into an archive for host programs. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "dpacc/interface.h"
#include "dpacc/look.h"
#include "dpacc/options.h"
#include "dpacc/passes.h"
#include "dpacc/steps.h"
#include "dpacc/stubs.h"
#include "dpacc/words.h"

/* The section of a host object in which the device's object lies until a program is linked. */
#define SECTION_OBJECT ".dpa_obj"

enum object_kind {
	OBJECT_OTHER,  /* archives, scripts of the linker, and files that cannot be read */
	OBJECT_DEVICE, /* made by dpa-clang */
	OBJECT_HOST,   /* made by dpacc --compile, with the device's object inside */
};

/* ---- objects ---- */

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

static enum object_kind object_kind(const char *path)
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

/* Writes the device's object out of a host object.  Ends the program with a message if that
 * fails. */
static void object_extract(const char *path, const char *to)
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

/* ---- the host's part ---- */

/* Writes a file's bytes as the elements of an array. */
static void embed_write(FILE *file, const char *path)
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

/* Ends the program with a message if the loader would refuse the image. */
static void embed_check(const char *path)
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

/* ---- the stages ---- */

/* Makes for each source a device object, its interface, device stubs and host stubs; objects on the
 * command line come in at the second or the last of these.  Then it links the image and puts it
 * into the host's part.  Names of intermediate files are those of NVIDIA's dpacc, because a build
 * script compiles some of them again. */

struct stages {
	const struct options *options;
	struct steps steps;
	struct home home;
	struct words stems;	     /* stems of the sources' names, no two alike */
	struct words device_objects; /* and stubs */
	struct words host_objects;
	struct words own;    /* annotated functions of the sources and objects */
	struct words inputs; /* other files for the device's linker */
};

/* Returns the source's name without directory and ending, numbered if another source has it too. */
static char *stage_stem(struct stages *stages, const char *source)
{
	char *name = text_of("%s", text_file_name(source)), *stem;

	if (strrchr(name, '.'))
		*strrchr(name, '.') = 0;
	if (text_ends(name, ".dpa"))
		*strrchr(name, '.') = 0;
	stem = name;
	for (int i = 1; words_have(&stages->stems, stem); i++)
		stem = text_of("%s.%d", name, i);
	words_add(&stages->stems, stem);
	return stem;
}

static bool option_with(const struct words *options, const char *start)
{
	for (size_t i = 0; i < options->count; i++)
		if (text_begins(options->words[i], start))
			return true;
	return false;
}

/* Returns what the run leaves of a source: its object, or the file that all objects go into. */
static const char *stage_output(const struct options *options, const char *stem)
{
	return options->output ? options->output : text_of("%s.dpa.o", stem);
}

/* If the file of dependencies has no name, it lies beside the archive. */
static void stage_dependencies(const struct options *options, struct words *command,
			       const char *stem)
{
	const char *output = stage_output(options, stem), *slash = strrchr(output, '/');
	int length = slash ? (int)(slash + 1 - output) : 0;

	if (!option_with(&options->device, "-MD") && !option_with(&options->device, "-MMD"))
		return;
	if (!option_with(&options->device, "-MF"))
		words_addf(command, "-MF%.*s%s.d", length, output, stem);
	if (!option_with(&options->device, "-MT") && !option_with(&options->device, "-MQ"))
		words_addf(command, "-MT%s", output);
}

static void stage_compile(struct stages *stages, const char *source, const char *stem,
			  const char *object)
{
	const struct options *options = stages->options;
	struct words dependencies = {0};

	stage_dependencies(options, &dependencies, stem);
	passes_run(&(struct passes){.look = &options->look,
				    .home = &stages->home,
				    .options = &options->device,
				    .dependencies = &dependencies,
				    .source = source,
				    .module = steps_path(&stages->steps, "%s.device.ll", stem),
				    .object = object,
				    .kind = "-c"},
		   &stages->steps);
}

/* Makes the stubs of the device, which touch only the buffer of arguments, the runtime's. */
static void stage_device_stubs(struct stages *stages, const struct interface *interface,
			       const char *stem, const char *object)
{
	const struct look look = {.target = stages->options->look.target};
	char *source = steps_path(&stages->steps, "%s.dpa.device.c", stem);
	FILE *file = steps_open(&stages->steps, source);
	struct words command = {0};

	if (file) {
		stubs_device(file, interface);
		steps_close(file, source);
	}
	look_begin(&command, &look, &stages->home);
	words_add(&command, "-O2");
	look_end(&command, &look, &(const struct words){0});
	words_split(&command, "-x c -c");
	words_add(&command, source);
	words_add(&command, "-o");
	words_add(&command, object);
	steps_run(&stages->steps, &command);
}

/* Compiles generated code so that it fits any program, also a shared object. */
static void stage_host_compile(struct stages *stages, const char *source, const char *define,
			       const char *object)
{
	const struct options *options = stages->options;
	struct words command = {0};

	words_add(&command, options->host_compiler);
	words_add_all(&command, &options->host);
	words_add(&command, "-fPIC");
	words_add(&command, "-fno-lto");
	words_add(&command, "-Wno-psabi"); /* no notes about calls in older versions of gcc */
	if (define) {
		words_add(&command, define);
		words_addf(&command, "-I%s", stages->steps.directory);
		words_addf(&command, "-isystem%s", stages->home.include);
	}
	words_split(&command, "-x c -c");
	words_add(&command, source);
	words_add(&command, "-o");
	words_add(&command, object);
	steps_run(&stages->steps, &command);
}

static void stage_host_stubs(struct stages *stages, const struct interface *interface,
			     const char *stem)
{
	char *source = steps_path(&stages->steps, "%s.dpa.host.c", stem);
	char *object = steps_path(&stages->steps, "%s.dpa.o", stem);
	FILE *file = steps_open(&stages->steps, source);

	if (file) {
		stubs_host(file, interface);
		steps_close(file, source);
	}
	stage_host_compile(stages, source,
			   stages->options->compile
				   ? text_of("-D__DPA_OBJ_STUB_FILE__=\"%s.stub.inc\"", stem)
				   : NULL,
			   object);
	words_add(&stages->host_objects, object);
}

static void stage_include(struct stages *stages, const char *from, const char *to)
{
	FILE *file = steps_open(&stages->steps, to);

	if (!file)
		return;
	embed_write(file, from);
	steps_close(file, to);
}

/* Runs ld -r. */
static void stage_join(struct stages *stages, const struct words *objects, const char *joined)
{
	struct words command = {0};

	words_split(&command, "ld -r -o");
	words_add(&command, joined);
	words_add_all(&command, objects);
	steps_run(&stages->steps, &command);
}

/* Reads the interface of a device object, and collects the names that the host can call. */
static void stage_interface(struct stages *stages, const char *object, struct interface *interface)
{
	const struct options *options = stages->options;

	steps_say(&stages->steps, "reads the interface of %s", object);
	if (!stages->steps.dry)
		interface_read(interface, object);
	for (size_t i = 0; i < interface->count; i++)
		words_add(&stages->own, interface->functions[i].name);
	if (words_have(&stages->own, options->app) && !options->libraries && !options->compile)
		give_up("--app-name=%s: a function that the host calls has this name too",
			options->app);
	report_check();
}

/* Makes the stubs of both sides for a device object, each joined with the objects of its side. */
static void stage_object(struct stages *stages, const char *object, const char *stem)
{
	char *stubs = steps_path(&stages->steps, "%s.device.stub.o", stem);
	char *joined = steps_path(&stages->steps, "%s.dpa.obj", stem);
	char *include = steps_path(&stages->steps, "%s.stub.inc", stem);
	struct words both = {0};
	struct interface interface = {0};

	stage_interface(stages, object, &interface);
	stage_device_stubs(stages, &interface, stem, stubs);
	words_add(&both, object);
	words_add(&both, stubs);
	stage_join(stages, &both, joined);
	words_add(&stages->device_objects, joined);
	if (stages->options->keep || stages->options->compile)
		stage_include(stages, joined, include);
	stage_host_stubs(stages, &interface, stem);
}

static void stage_source(struct stages *stages, const char *source)
{
	const char *stem = stage_stem(stages, source);
	char *object = steps_path(&stages->steps, "%s.device.o", stem);

	stage_compile(stages, source, stem, object);
	stage_object(stages, object, stem);
}

/* Takes an object of --compile apart, because it has all stubs. */
static void stage_compiled(struct stages *stages, const char *path, const char *stem)
{
	char *device = steps_path(&stages->steps, "%s.dpa.obj", stem);
	char *host = steps_path(&stages->steps, "%s.host.o", stem);
	struct words command = {0};

	steps_say(&stages->steps, "writes %s from %s", device, path);
	if (!stages->steps.dry) {
		object_extract(path, device);
		interface_names(&stages->own, device);
	}
	words_split(&command, "objcopy --remove-section=" SECTION_OBJECT);
	words_add(&command, path);
	words_add(&command, host);
	steps_run(&stages->steps, &command);
	words_add(&stages->device_objects, device);
	words_add(&stages->host_objects, host);
}

static void stage_input(struct stages *stages, const char *path)
{
	switch (object_kind(path)) {
	case OBJECT_HOST:
		stage_compiled(stages, path, stage_stem(stages, path));
		break;
	case OBJECT_DEVICE:
		stage_object(stages, path, stage_stem(stages, path));
		break;
	default:
		words_add(&stages->inputs, path);
	}
}

/* Returns the file that -lNAME means, or NULL. */
static char *library_path(const struct words *options, const char *name)
{
	for (size_t i = 0; i < options->count; i++) {
		const char *word = options->words[i], *directory = word + 2;
		char *path;

		if (!text_begins(word, "-L"))
			continue;
		if (!*directory && i + 1 < options->count)
			directory = options->words[i + 1];
		path = text_of("%s/lib%s.a", directory, name);
		if (!access(path, R_OK))
			return path;
	}
	return NULL;
}

/* Collects functions of device libraries that only the host names, because a linker would not take
 * those libraries for them. */
static void stage_library_functions(const struct words *options, struct words *names)
{
	for (size_t i = 0; i < options->count; i++) {
		const char *word = options->words[i];
		char *path = NULL;

		if (!strcmp(word, "-l") && i + 1 < options->count)
			path = library_path(options, options->words[i + 1]);
		else if (text_begins(word, "-l"))
			path = library_path(options, word + 2);
		else if (text_ends(word, ".a") && !access(word, R_OK))
			path = text_of("%s", word);
		if (path)
			interface_names(names, path);
	}
}

/* Scripts name the device's own libraries although they are always linked; here they lie in no
 * directory that -L names. */
static int stage_own_library(const struct words *options, const char *word)
{
	return (!strcmp(word, "-lflexio_dev") || !strcmp(word, "-lflexio-libc")) &&
	       !library_path(options, word + 2);
}

/* Takes options for a compiler that leads its linker: it unwraps those for the linker and drops the
 * others. */
static void stage_link_options(struct words *command, const struct words *options)
{
	for (size_t i = 0; i < options->count; i++) {
		const char *word = options->words[i];

		if (text_begins(word, "-Wl,"))
			words_split(command, word + strlen("-Wl,"));
		else if (!text_begins(word, "-f") && strcmp(word, "-nostdlib") != 0 &&
			 !stage_own_library(options, word))
			words_add(command, word);
	}
}

/* What the compiler calls where the processor has no instruction: division of 128 bits and the like. */
static void stage_compiler_runtime(struct words *command)
{
	const char *library = look_compiler_answer("-print-libgcc-file-name");

	if (!access(library, R_OK))
		words_add(command, library);
}

static void stage_link(struct stages *stages, const char *image)
{
	const struct options *options = stages->options;
	struct words command = {0}, wanted = {0};

	words_split(&command, "ld -static -pie --no-dynamic-linker -z noexecstack -z separate-code"
			      " -z norelro -z text --build-id -Bsymbolic --export-dynamic"
			      " --gc-keep-exported --no-undefined -e 0");
	if (options->strip)
		words_add(&command, "-S");
	stage_library_functions(&options->device_link, &wanted);
	stage_library_functions(&stages->inputs, &wanted);
	for (size_t i = 0; i < wanted.count; i++) {
		words_addf(&command, "-u%s", wanted.words[i]);
		words_addf(&command, "-u%s", interface_unpack(wanted.words[i]));
	}
	words_add(&command, "-u__dpa_image_info");
	words_add_all(&command, &stages->device_objects);
	words_add_all(&command, &stages->inputs);
	words_add(&command, "--start-group");
	stage_link_options(&command, &options->device_link);
	words_add(&command, home_library(&stages->home, options->look.checked, "libflexio_dev.a"));
	words_add(&command, home_library(&stages->home, options->look.checked, "libflexio-libc.a"));
	words_add(&command, "--end-group");
	stage_compiler_runtime(&command);
	words_add(&command, "-o");
	words_add(&command, image);
	steps_run(&stages->steps, &command);
	if (!stages->steps.dry)
		embed_check(image);
}

static void stage_app(struct stages *stages, const char *image)
{
	const char *app = stages->options->app;
	char *source = steps_path(&stages->steps, "%.200s.meta.c", app);
	char *object = steps_path(&stages->steps, "%.200s.meta.o", app);
	FILE *file = steps_open(&stages->steps, source);
	struct words functions = {0};

	if (file) {
		interface_names(&functions, image);
		stubs_app(file, app, &functions, &stages->own);
		steps_close(file, source);
	}
	stage_host_compile(stages, source, "-D__DPA_EXEC_STUB_FILE__=\"device_exec.stub.inc\"",
			   object);
	words_add(&stages->host_objects, object);
}

/* --shared: makes the host's part as a library that programs load.  These programs bring the
 * functions of libflexio that it calls. */
static void stage_shared(struct stages *stages, const char *joined)
{
	const struct options *options = stages->options;
	char *library = steps_path(&stages->steps, "hostStubs.so");
	struct words command = {0};

	words_add(&command, options->host_compiler);
	words_split(&command, "-shared -fPIC");
	words_add(&command, joined);
	words_add(&command, "-o");
	words_add(&command, library);
	steps_run(&stages->steps, &command);
	steps_copy(&stages->steps, library, options->output);
}

static void stages_program(struct stages *stages)
{
	char *image = steps_path(&stages->steps, "device_exec");
	char *joined = steps_path(&stages->steps, "hostStubs.o");
	struct words member = {0};

	stage_link(stages, image);
	stage_include(stages, image, steps_path(&stages->steps, "device_exec.stub.inc"));
	stage_app(stages, image);
	/* A program gets all of it, whichever part it names, because it is one member. */
	stage_join(stages, &stages->host_objects, joined);
	words_add(&member, joined);
	if (stages->options->shared)
		stage_shared(stages, joined);
	else
		steps_archive(&stages->steps, stages->options->output, &member);
}

static void stages_libraries(struct stages *stages)
{
	const char *stem = stages->options->output;

	words_add_all(&stages->device_objects, &stages->inputs);
	steps_archive(&stages->steps, text_of("%s_device.a", stem), &stages->device_objects);
	steps_archive(&stages->steps, text_of("%s_host.a", stem), &stages->host_objects);
}

/* Leaves the output of --compile: the host objects, with the device's objects inside. */
static void stages_objects(struct stages *stages)
{
	const struct options *options = stages->options;

	for (size_t i = 0; i < stages->host_objects.count; i++)
		steps_copy(&stages->steps, stages->host_objects.words[i],
			   stage_output(options, stages->stems.words[i]));
}

/* Makes a program's archive, or the two of a library. */
static void stages_run(const struct options *options)
{
	struct stages stages = {.options = options};

	home_find(&stages.home);
	steps_begin(&stages.steps, options->keep, options->verbose, options->dry);
	for (size_t i = 0; i < options->sources.count; i++)
		stage_source(&stages, options->sources.words[i]);
	if (options->compile) {
		stages_objects(&stages);
		return;
	}
	for (size_t i = 0; i < options->inputs.count; i++)
		stage_input(&stages, options->inputs.words[i]);
	if (options->libraries)
		stages_libraries(&stages);
	else
		stages_program(&stages);
}

int main(int argc, char **argv)
{
	struct options options;

	options_read(&options, argc, argv);
	stages_run(&options);
	return 0;
}
