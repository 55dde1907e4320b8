// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the compilers share: where the headers and libraries are, how device code is compiled, the
 * help text.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "dpacc/look.h"
#include "dpacc/words.h"

/* ---- home ---- */

/* A header that lies in each place that is the right one. */
#define WITNESS "libflexio-dev/flexio_dev.h"

static char *own_directory(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length < 0)
		give_up("/proc/self/exe: cannot be read");
	path[length] = 0;
	*strrchr(path, '/') = 0;
	return text_of("%s", path);
}

/* Reads the lines of a build tree's file: "include=DIRECTORY" and "library=DIRECTORY". */
static bool home_read(struct home *home, const char *path)
{
	FILE *file = fopen(path, "re");
	char line[PATH_MAX + 16];

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (text_begins(line, "include="))
			home->include = text_of("%s", strchr(line, '=') + 1);
		else if (text_begins(line, "library="))
			home->library = text_of("%s", strchr(line, '=') + 1);
	}
	fclose(file);
	return home->include;
}

static bool home_try(struct home *home, char *include, char *library)
{
	char *witness = text_of("%s/" WITNESS, include);
	bool there = !access(witness, R_OK);

	free(witness);
	home->include = include;
	home->library = library;
	return there;
}

void home_find(struct home *home)
{
	char *own = own_directory();

	*home = (struct home){0};
	if (home_read(home, text_of("%s/dpacc.dirs", own)) ||
	    home_try(home, text_of("%s/../../flexio/include", own),
		     text_of("%s/../../flexio/lib", own)) ||
	    home_try(home, text_of("%s/../lib/softhca/dpa/include", own),
		     text_of("%s/../lib/softhca/dpa", own)))
		return;
	give_up("no %s in %s/../lib/softhca/dpa/include: the headers of the device are not "
		"installed with this tool",
		WITNESS, own);
}

char *home_library(const struct home *home, bool checked, const char *name)
{
	const char *mode = checked ? "checked" : "unchecked";
	char *path = text_of("%s/%s/%s", home->library ? home->library : "", mode, name);

	if (access(path, R_OK))
		give_up("%s is not there: the device library is not installed with this tool",
			path);
	return path;
}

/* ---- look ---- */

/* Device code is compiled for this machine, because it runs on it, but to programs it looks as if
 * it were the DPA's RISC-V: they test for its macros, rely on char without a sign, and include
 * nothing of the host.  Its arithmetic, atomics and floating point are this machine's. */

/* In the order in which programs compare them. */
static const struct {
	const char *cpu, *name;
} targets[] = {
	{"nv-dpa-cx7", "__NV_DPA_CX7"},
	{"nv-dpa-bf3", "__NV_DPA_BF3"},
	{"nv-dpa-cx8", "__NV_DPA_CX8"},
	{"nv-dpa-cx9", "__NV_DPA_CX9"},
};

static const char *const host_macros[] = {
	"__x86_64__",
	"__x86_64",
	"__amd64__",
	"__amd64",
	"__k8",
	"__k8__",
	"__code_model_small__",
	"__MMX__",
	"__SSE__",
	"__SSE2__",
	"__SSE_MATH__",
	"__SSE2_MATH__",
	"__FXSR__",
	"__SEG_FS",
	"__SEG_GS",
	"__seg_fs",
	"__seg_gs",
	"__aarch64__",
	"__ARM_64BIT_STATE",
	"__ARM_NEON",
	"__ARM_ARCH",
	"__linux__",
	"__linux",
	"linux",
	"__gnu_linux__",
	"__unix__",
	"__unix",
	"unix",
};

/* rv64imac with the extensions of BlueField-3 and ConnectX-7, as the DPA's compiler defines them;
 * those of NVIDIA's own begin with x.  Extensions for floating-point numbers and vectors are not
 * there. */
static const char *const device_macros[] = {
	"__DPA__=1",
	"__riscv=1",
	"__riscv_xlen=64",
	"__riscv_arch_test=1",
	"__riscv_i=2001000",
	"__riscv_m=2000000",
	"__riscv_a=2001000",
	"__riscv_c=2000000",
	"__riscv_zicsr=2000000",
	"__riscv_zifencei=2000000",
	"__riscv_zbb=1000000",
	"__riscv_zbp=93000",
	"__riscv_zbr=93000",
	"__riscv_zbs=1000000",
	"__riscv_xfenceheap=1000000",
	"__riscv_xnvcc=1000000",
	"__riscv_xrpfxp=1000000",
	"__riscv_atomic=1",
	"__riscv_mul=1",
	"__riscv_div=1",
	"__riscv_muldiv=1",
	"__riscv_float_abi_soft=1",
	"__riscv_cmodel_medany=1",
	"__riscv_compressed=1",
};

/* What ConnectX-8 has besides. */
static const char *const cx8_macros[] = {
	"__riscv_zba=1000000",	"__riscv_zihintpause=2000000", "__riscv_xblkop=1000000",
	"__riscv_xcas=1000000", "__riscv_xflush=1000000",
};

/* Options of the real compiler that say how it makes RISC-V code, and options that are for dpacc
 * only. */
static const char *const dropped[] = {
	"-mno-relax",	 "-mrelax",  "-mstrict-align", "-nostdlib", "-nostdinc", "-nodefaultlibs",
	"-nostartfiles", "-static",  "-static-pie",    "-shared",   "-pie",	 "-no-pie",
	"-fno-pie",	 "-fno-PIE", "-fno-pic",       "-fno-PIC",  "-c",	 "-s",
	"-flto",	 "-fno-lto",
};
static const char *const dropped_starts[] = {
	"-mabi=",    "-mcmodel=", "-march=", "-mcpu=", "-mtune=", "-flto=",
	"-fuse-ld=", "--target=", "-l",	     "-L",     "-Wl,",	  "-fsanitize=",
};

const char *look_target(const char *cpus)
{
	size_t length = strcspn(cpus, ", ");

	for (size_t i = 0; i < array_size(targets); i++)
		if (strlen(targets[i].cpu) == length && !strncmp(targets[i].cpu, cpus, length))
			return targets[i].name;
	return NULL;
}

static const char *look_compiler(void)
{
	const char *named = getenv("DPACC_CLANG");

	return named && *named ? named : "clang";
}

char *look_compiler_answer(const char *option)
{
	char line[4096] = "";
	FILE *pipe = popen(text_of("exec \"${DPACC_CLANG:-clang}\" %s", option), "re");

	if (!pipe || !fgets(line, sizeof(line), pipe))
		line[0] = 0;
	if (pipe)
		pclose(pipe);
	line[strcspn(line, "\n")] = 0;
	return text_of("%s", line);
}

/* What is annotated and is no function (a type, a variable) stays as it is, as with NVIDIA's
 * compiler.  So the annotation is one that everything can have, and rewrite_module() puts functions
 * into the section.  A static one is refused with its line, so it must not go away before that. */
static void look_annotation(struct words *command, const char *name, const char *section)
{
	words_addf(command, "-D%s=__attribute__((annotate(\"%s\"),used))", name, section);
}

static void look_macros(struct words *command, const struct look *look)
{
	for (size_t i = 0; i < array_size(host_macros); i++)
		words_addf(command, "-U%s", host_macros[i]);
	for (size_t i = 0; i < array_size(device_macros); i++)
		words_addf(command, "-D%s", device_macros[i]);
	if (!strcmp(look->target, "__NV_DPA_CX8") || !strcmp(look->target, "__NV_DPA_CX9"))
		for (size_t i = 0; i < array_size(cx8_macros); i++)
			words_addf(command, "-D%s", cx8_macros[i]);
	for (size_t i = 0; i < array_size(targets); i++)
		words_addf(command, "-D%s=%zu", targets[i].name, i + 1);
	words_addf(command, "-D__NV_DPA=%s", look->target);
	look_annotation(command, "__dpa_rpc__", SECTION_RPC);
	look_annotation(command, "__dpa_global__", SECTION_GLOBAL);
}

void look_compiler_begin(struct words *command)
{
	words_add(command, look_compiler());
	words_add(command, "-Qunused-arguments");
}

void look_begin(struct words *command, const struct look *look, const struct home *home)
{
	look_compiler_begin(command);
	words_add(command, "-nostdlibinc");
	words_add(command, "-ffreestanding");
	words_add(command, "-funsigned-char");
	look_macros(command, look);
	/* Comes behind the user's directories and before the compiler's own. */
	words_addf(command, "-isystem%s/libflexio-libc", home->include);
	words_addf(command, "-isystem%s", home->include);
}

/* An option of users that means the same here: the code tells the runtime of its accesses. */
#define LOOK_RACES "-fsanitize=thread"

static bool look_drops(const char *option)
{
	for (size_t i = 0; i < array_size(dropped); i++)
		if (!strcmp(option, dropped[i]))
			return true;
	for (size_t i = 0; i < array_size(dropped_starts); i++)
		if (text_begins(option, dropped_starts[i]))
			return true;
	return false;
}

bool look_has_value(const char *option)
{
	static const char *const names[] = {
		"-mllvm",   "-Xclang",	  "-Xpreprocessor",
		"-include", "-imacros",	  "-isystem",
		"-iquote",  "-idirafter", "-I",
		"-D",	    "-U",	  "-MF",
		"-MT",	    "-MQ",
	};

	for (size_t i = 0; i < array_size(names); i++)
		if (!strcmp(option, names[i]))
			return true;
	return false;
}

static void look_options(struct words *command, const struct words *options,
			 bool (*drops)(const char *option))
{
	for (size_t i = 0; i < options->count; i++) {
		const char *option = options->words[i];
		bool has_value = look_has_value(option) && i + 1 < options->count;

		if (!drops(option)) {
			words_add(command, option);
			if (has_value)
				words_add(command, options->words[i + 1]);
		}
		i += has_value;
	}
}

void look_user(struct words *command, const struct words *options)
{
	look_options(command, options, look_drops);
}

/* -M... say where dependencies go; -m... are others. */
static bool look_drops_code(const char *option)
{
	return text_begins(option, "-M") || look_drops(option);
}

void look_user_code(struct words *command, const struct words *options)
{
	look_options(command, options, look_drops_code);
}

void look_end(struct words *command, const struct look *look, const struct words *options)
{
	/* dpacc reads the interface of the functions from the debug information, and a crash report
	 * takes the line that it names from there. */
	words_split(command, "-g -fPIE -fno-lto -fno-stack-protector -fno-omit-frame-pointer"
			     " -fno-exceptions -fno-common");
	/* Whoever needs more stack than there is meets the guard behind it, however large the frame. */
	words_add(command, "-fstack-clash-protection");
#ifdef __x86_64__
	words_split(command, "-fcf-protection=none -mno-red-zone");
#elif defined(__aarch64__)
	words_split(command, "-mno-outline-atomics");
#endif
	/* An annotation in front of a type says nothing; see look_annotation(). */
	words_add(command, "-Wno-ignored-attributes");
	if (words_have(options, LOOK_RACES)) {
		words_add(command, LOOK_RACES);
		/* A call at the end of a function keeps its place, which reports name. */
		words_add(command, "-fno-optimize-sibling-calls");
		/* Otherwise a load in front of a store to the same place is left out. */
		words_split(command, "-mllvm -tsan-instrument-read-before-write");
		words_split(command, "-mllvm -tsan-distinguish-volatile"
				     " -mllvm -tsan-instrument-func-entry-exit=0");
	}
	if (!look->checked)
		return;
	/* With the option above, the runtime checks what it hears of. */
	if (!words_have(options, LOOK_RACES)) {
		words_add(command, "-fsanitize=kernel-address");
		words_split(command, "-mllvm -asan-instrumentation-with-call-threshold=0");
		words_split(command, "-mllvm -asan-stack=0 -mllvm -asan-globals=0");
	}
#ifdef __x86_64__
	/* Calls and jumps through pointers go by way of a function of the device library. */
	words_split(command, "-mretpoline -mretpoline-external-thunk");
#endif
}

/* ---- help ---- */

/* The version that the command line is compatible with.  Scripts read the words behind "version ",
 * so there is one. */
#define COMPATIBLE "1.12.0"

void help_version(const char *name)
{
	printf("%s of softhca " SOFTHCA_VERSION ": compiles for the DPA in software\n", name);
	printf("%s version " COMPATIBLE "\n", name);
}

void help_dpacc(void)
{
	fputs("Usage: dpacc SOURCE.c|OBJECT.o... -o ARCHIVE.a -hostcc=gcc --app-name=NAME "
	      "[OPTION...]\n"
	      "Compiles code for the DPA and puts it, with a stub for each annotated function, "
	      "into an\n"
	      "archive for host programs.  Options take one or two dashes, and their value after "
	      "'=' or\n"
	      "as the next word.\n\n"
	      "  -o, --output-file FILE      the archive; with --gen-libs FILE_device.a and "
	      "FILE_host.a\n"
	      "  --app-name NAME             name of the 'struct flexio_app *' (__dpa_a_out)\n"
	      "  --hostcc COMPILER           compiler of the host's part (gcc)\n"
	      "  --hostcc-options LIST       its options\n"
	      "  --devicecc-options LIST     options of the device's compiler, which is clang\n"
	      "  --devicelink-options LIST   options of the device's linker\n"
	      "  --device-libs LIST          device libraries: -LDIRECTORY, -lNAME, archives\n"
	      "  -c, --compile               makes SOURCE.dpa.o of each source, for a later run\n"
	      "  --gen-libs                  makes libraries for --device-libs, no program\n"
	      "  --shared                    makes a shared object in the place of the archive\n"
	      "  -mcpu=TARGET[,TARGET...]    nv-dpa-bf3, nv-dpa-cx7, nv-dpa-cx8, nv-dpa-cx9; code "
	      "runs\n"
	      "                              here whichever, and is compiled for the first\n"
	      "  --unchecked                 leaves out the check of each load and store\n"
	      "  -fsanitize=thread           finds data races of device code while it runs\n"
	      "  -I DIRECTORY, -D MACRO, -U MACRO, -O LEVEL, -g, -W..., -f..., -std=...\n"
	      "                              for the device's compiler\n"
	      "  --common-include-path DIRECTORY\n"
	      "                              the same as -I\n"
	      "  --dpa-proc-attr FILE        attributes of the process, of "
	      "dpa-app-attributes2blob; "
	      "looked at\n"
	      "                              only, because every process may do everything here\n"
	      "  --flto, -l NAME, --disable-asm-checks\n"
	      "                              accepted; nothing depends on them here\n"
	      "  --keep, --keep-dir DIRECTORY\n"
	      "                              leaves the intermediate files\n"
	      "  --options-file, -optf FILE  more options, as a shell would read them\n"
	      "  --dryrun                    prints the commands and executes none\n"
	      "  -v, --verbose               prints the commands\n"
	      "  -V, --version; -h, --help\n\n"
	      "The environment's DPACC_CLANG names another clang.  See dpacc(1).\n",
	      stdout);
}
