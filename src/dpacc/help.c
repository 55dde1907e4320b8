// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>

#include "dpacc/help.h"

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
	      "  -I DIRECTORY, -D MACRO, -U MACRO, -O LEVEL, -g, -W..., -f..., -std=...\n"
	      "                              for the device's compiler\n"
	      "  --common-include-path DIRECTORY\n"
	      "                              the same as -I\n"
	      "  --flto, -l NAME, --disable-asm-checks, --dpa-proc-attr FILE\n"
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
