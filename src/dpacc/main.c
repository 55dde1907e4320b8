// SPDX-License-Identifier: BSD-2-Clause
/* dpacc: compiles code for the DPA into an archive for host programs. */
#include "dpacc/options.h"
#include "dpacc/stages.h"

int main(int argc, char **argv)
{
	struct options options;

	options_read(&options, argc, argv);
	stages_run(&options);
	return 0;
}
