// SPDX-License-Identifier: BSD-2-Clause
/* softhca: picks the subcommand from a table; the same table prints the help. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "tool/tool.h"

static const struct command commands[] = {
	{"run",
	 "[--fabric NAME] [--host NAME] [--model NAME] [--link-types TYPE[,TYPE...]] "
	 "[--device-names NAME[,NAME...]] [--signature-reports manual|hardware] [--timing "
	 "nominal|hardware] "
	 "[--memory auto|kernel|packets] [--trace PATTERN[,PATTERN...]] [--explain] "
	 "[--faults FILE] [--view preload|mount] [--gdb] [--] PROGRAM [ARG...]",
	 "Runs PROGRAM with the devices of a host, starting the fabric if need be.\n"
	 "--fabric: one of your fabrics, each a network of its own with its own hosts;\n"
	 "programs see only those of the same fabric. The default is 'default'.\n"
	 "--host: the machine of the fabric that the program runs on, as 'softhca devices'\n"
	 "lists them; the default is the first, host1. Two programs on different hosts\n"
	 "have different devices and addresses.\n"
	 "--model: the card that the devices are to be taken for; see softhca(1).\n"
	 "--link-types: what mlx5_0, mlx5_1, ... of each host are, ib or eth; 'ib,eth' if it is\n"
	 "not given.  'eth,eth' for programs that want Ethernet at the first device.\n"
	 "--device-names: what the devices of each host are called instead of mlx5_0, mlx5_1, "
	 "...,\n"
	 "for programs that name one: 'mlx5_bond_0'.\n"
	 "--signature-reports: signature errors as the manual pages of libmlx5 describe\n"
	 "them (the default), or as devices are seen to report them.\n"
	 "--timing: retries after the timeouts that the queue pair names (the default), or as\n"
	 "late as on cards; see softhca(1).\n"
	 "--memory: how other processes' RDMA reaches the program's memory; see softhca(1).\n"
	 "--trace: prints what the device decides, where the log goes; 'help' lists\n"
	 "the points, 'qp.*,rnr.*' selects some.\n"
	 "--explain: says in words why a request failed, was refused, repeated or dropped.\n"
	 "--faults: plays a file of faults (as softhca fabric faults) while PROGRAM runs.\n"
	 "--view: 'mount' mounts the devices' files over /sys and /dev of PROGRAM, for Go and\n"
	 "static programs, which do not see those of the preload library.\n"
	 "--gdb: starts PROGRAM in gdb, which does not stop at faults that belong to the\n"
	 "device; the same as 'softhca run -- gdb --args PROGRAM [ARG...]'.",
	 OPT_FABRIC | OPT_HOST | OPT_MODEL | OPT_LINKS | OPT_NAMES | OPT_REPORTS | OPT_TIMING |
		 OPT_MEMORY | OPT_TRACE | OPT_EXPLAIN | OPT_FAULTS | OPT_VIEW | OPT_GDB,
	 command_run},
	{"env",
	 "[--fabric NAME] [--host NAME] [--model NAME] [--link-types TYPE[,TYPE...]] "
	 "[--device-names NAME[,NAME...]] [--signature-reports manual|hardware] [--timing "
	 "nominal|hardware] "
	 "[--memory auto|kernel|packets] [--trace PATTERN[,PATTERN...]] [--explain] | "
	 "--unset",
	 "Prints shell commands that put what is started afterwards on a host:\n"
	 "eval \"$(softhca env)\"\n"
	 "--unset: prints what undoes that: eval \"$(softhca env --unset)\"",
	 OPT_FABRIC | OPT_HOST | OPT_MODEL | OPT_LINKS | OPT_NAMES | OPT_REPORTS | OPT_TIMING |
		 OPT_MEMORY | OPT_TRACE | OPT_EXPLAIN | OPT_UNSET,
	 command_env},
	{"status", "[--fabric NAME] [--json] [PID|QP]",
	 "Shows the queue pairs, completion queues and keys of running programs: of all, of\n"
	 "the process PID, or the queue pair with the number QP (decimal, or 0x...).",
	 OPT_FABRIC | OPT_JSON, command_status},
	{"top", "[--fabric NAME] [-b] [-n N] [-d SECONDS]",
	 "Shows ports, programs, queue pairs and faults with what goes over them, and again each\n"
	 "second, the busiest first; 'q' ends it.\n"
	 "-b: prints one look after the other, as it does into a pipe.  -n: ends after N looks.\n"
	 "-d: looks so often.",
	 OPT_FABRIC | OPT_TOP, command_top},
	{"devices", "[--fabric NAME] [--host NAME] [--json]", "Lists the devices of the hosts.",
	 OPT_FABRIC | OPT_HOST | OPT_JSON, command_devices},
	{"capture",
	 "[--fabric NAME] [--host NAME] [[HOST/]HCA[:PORT]...] -w FILE|- [-c N] [-s SNAPLEN] "
	 "[-f EXPRESSION] [-B MIB]",
	 "Writes what ports send and receive into a pcapng file for Wireshark, until Ctrl-C: of\n"
	 "the ports that are named, or of all.  '-' is standard output.\n"
	 "-c: ends after N packets.  -s: keeps SNAPLEN octets of each.\n"
	 "-f: only packets with 'FIELD=VALUE...' (or !=): qpn, sqpn, dqpn, lid, slid, dlid, gid,\n"
	 "sgid, dgid, pkey, opcode, transport; 'qpn=0x401 opcode=write'.\n"
	 "-B: size of the buffer of each program; 16 MiB if it is not given.\n"
	 "In Wireshark's folder for extcap it gives Wireshark the ports; see softhca(1).",
	 OPT_FABRIC | OPT_HOST | OPT_CAPTURE, command_capture},
	{"trace",
	 "[--fabric NAME] [--host NAME] -w FILE|- [-e EVENT[,EVENT...]] [-B MIB] [[--] PROGRAM "
	 "[ARG...]]",
	 "Writes what the devices do with work requests as trace events (JSON) for\n"
	 "ui.perfetto.dev or chrome://tracing: while PROGRAM runs, which it starts as softhca run\n"
	 "does and whose exit status it returns, or of all programs of the fabric until Ctrl-C.\n"
	 "-e: only these: wqe (posts, requests, completions), doorbell, packet, mad, dpa "
	 "(threads),\n"
	 "decision (the other points of softhca run --trace help).  Without packet, requests go "
	 "as\n"
	 "fast as without a trace.\n"
	 "-B: size of the buffer of each program; 16 MiB if it is not given.",
	 OPT_FABRIC | OPT_HOST | OPT_MODEL | OPT_LINKS | OPT_NAMES | OPT_REPORTS | OPT_TIMING |
		 OPT_MEMORY | OPT_EXPLAIN | OPT_RECORD,
	 command_trace},
	{"fabric up",
	 "[--fabric NAME] [--model NAME] [[--hosts N] [--link-types TYPE[,TYPE...]] "
	 "[--device-names NAME[,NAME...]] [--netdev HOST/DEVICE=IF[,...]] | --topology FILE] "
	 "[--sm builtin|external|PRIORITY] [--listen ADDRESS|auto [--peers CIDR,...]]",
	 "Starts a fabric that stays until it is taken down.\n"
	 "--hosts: with hosts host1 to hostN, all alike; 2 if it is not given.\n"
	 "--link-types: what mlx5_0, mlx5_1, ... of each host are, ib or eth; 'ib,eth' if it is\n"
	 "not given.\n"
	 "--device-names: what they are called instead.\n"
	 "--netdev: which interfaces of the machine Ethernet devices stand for.\n"
	 "--topology: as a network file of ibsim's or output of ibnetdiscover describes it.\n"
	 "--sm: whether there is a subnet manager, or ports wait for one that is started.\n"
	 "A priority from 1 to 15: it does not stand back, but finds out who is the master.\n"
	 "--listen: ties the first host's last Ethernet port to an address of this machine, or\n"
	 "to the first one, as softhca fabric tie PORT udp does; --peers as peers= there.",
	 OPT_FABRIC | OPT_MODEL | OPT_HOSTS | OPT_LINKS | OPT_NAMES | OPT_NETDEV | OPT_TOPOLOGY |
		 OPT_SM | OPT_LISTEN | OPT_PEERS,
	 command_fabric_up},
	{"fabric down", "[--fabric NAME | --all]",
	 "Takes a fabric down, also under programs that use it.\n"
	 "--all: all fabrics of this user that 'softhca fabric list' shows.",
	 OPT_FABRIC | OPT_ALL, command_fabric_down},
	{"fabric list", "[--json]",
	 "Lists your fabrics with hosts, programs, daemon and directory, and what is broken.",
	 OPT_JSON, command_fabric_list},
	{"fabric status", "[--fabric NAME] [--json]",
	 "Shows hosts, ports, counters and the processes that use them.", OPT_FABRIC | OPT_JSON,
	 command_fabric_status},
	{"fabric show", "[--fabric NAME] [--json | text|dot|svg | --html FILE [--watch]]",
	 "Shows the subnet: switches, adapters and the links between them with their states and\n"
	 "what went over them, for people, for programs, for graphviz, or drawn.\n"
	 "--html: writes a page for a browser, also with ports, programs, queue pairs and faults.\n"
	 "--watch: writes it anew each second, until Ctrl-C; the browser follows.",
	 OPT_FABRIC | OPT_JSON | OPT_HTML | OPT_WATCH, command_fabric_show},
	{"fabric port", "[--fabric NAME] [HOST/]HCA[:PORT] down|up",
	 "Takes a port down, or up again; programs get the event, traffic the consequences.",
	 OPT_FABRIC, command_fabric_port},
	{"fabric tie",
	 "[--fabric NAME] [HOST/]HCA[:PORT] udp[=ADDRESS] [peers=CIDR,...] [gso=off] | "
	 "tap=INTERFACE | "
	 "port=[HOST/]HCA[:PORT] | [in=FILE] [out=FILE] [pace=original|top|RATE] [loop=N]",
	 "Ties an Ethernet port to something else than the segment that all ports share:\n"
	 "udp: other machines, by RoCE v2 over UDP port 4791 of an address of this machine (the\n"
	 "first one, unless it is named), which is the port's GID meanwhile; needs no privilege.\n"
	 "peers: whose packets are taken; the network of the address, unless it is said.\n"
	 "gso: off sends each packet by itself, for those who look at the interface.\n"
	 "tap: a TAP interface of this machine; made if there is none.\n"
	 "port: another port, as by a cable.\n"
	 "in, out: pcap files, for the frames that come in and for those that programs send.\n"
	 "pace: frames come in with the times of the file, as soon as there is room, or RATE\n"
	 "frames a second; the first waits until a program listens.\n"
	 "loop: so often; 'forever' is without an end.",
	 OPT_FABRIC, command_fabric_tie},
	{"fabric untie", "[--fabric NAME] [HOST/]HCA[:PORT]",
	 "Puts a port back to the segment that all ports share.", OPT_FABRIC, command_fabric_untie},
	{"fabric link", "[--fabric NAME] down|up NODE PORT",
	 "Pulls the cable of a port of the subnet, or puts it back; NODE is a host or a switch,\n"
	 "by its name, its id in the topology file, or its description.",
	 OPT_FABRIC, command_fabric_link},
	{"fabric node", "[--fabric NAME] remove|add NODE",
	 "Takes a host or a switch out of the subnet with all its cables, or puts it back.",
	 OPT_FABRIC, command_fabric_node},
	{"fabric impair", "[--fabric NAME] [--json] [FAULT=VALUE... [WHICH=VALUE...] [NODE PORT]]",
	 "Loses, delays, doubles or damages packets on the link of a port, or on all links.\n"
	 "FAULTs: loss, corrupt, duplicate and reorder in percent; delay and jitter in "
	 "microseconds;\n"
	 "rate in Mb/s; seed, a number that makes chance repeat.\n"
	 "WHICH: what=mads|data|all, from=HOST[/HCA[:PORT]], to=HOST[/HCA[:PORT]], qp=NUMBER,\n"
	 "opcode=NAME,... (send, write, read_request, read_resp, atomic, ack, or as in softhca "
	 "run\n"
	 "--trace), packet=N[-M] (the N-th of these packets at each port).\n"
	 "'loss=0' alone ends all.  Without arguments: lists the faults and what they have done.",
	 OPT_FABRIC | OPT_JSON, command_fabric_impair},
	{"fabric faults", "[--fabric NAME] FILE",
	 "Plays a file of faults until Ctrl-C, then takes away what it has set.  The file is TOML, "
	 "with\n"
	 "a [[fault]] for each: impair, inject or port with the words of that command; at and "
	 "until in\n"
	 "seconds from the start on; why.  Says when each begins, has first happened and ends, and "
	 "at\n"
	 "last which have met nothing.",
	 OPT_FABRIC, command_fabric_faults},
	{"inject",
	 "[--fabric NAME] [--json] [none | status=NAME | receive=NAME | call=NAME error=NAME | "
	 "event=NAME | state=error] [WHICH=VALUE...]",
	 "Lets requests, receives or calls of programs fail, the next one if nothing else is said, "
	 "or\n"
	 "makes something happen now to what programs have.\n"
	 "status: a send request completes with it (IBV_WC_RETRY_EXC_ERR or 12; "
	 "vendor_err=NUMBER),\n"
	 "and is not sent; a frame, too, but no request without a packet (bind, local "
	 "invalidate).\n"
	 "receive: a receive completes with IBV_WC_LOC_LEN_ERR or IBV_WC_LOC_PROT_ERR.\n"
	 "call: a verb that reaches the driver, as reg_mr, create_qp, modify_qp, create_cq; "
	 "error:\n"
	 "ENOMEM, EAGAIN, ...\n"
	 "event: QP_FATAL, QP_REQ_ERR, QP_ACCESS_ERR (with the error state), COMM_EST; CQ_ERR "
	 "(with\n"
	 "the overrun); SRQ_ERR, SRQ_LIMIT_REACHED; PORT_ERR, PORT_ACTIVE, GID_CHANGE, "
	 "LID_CHANGE,\n"
	 "PKEY_CHANGE, SM_CHANGE, CLIENT_REREGISTER; DEVICE_FATAL (all queue pairs fail).\n"
	 "state: queue pairs are in the error state, without an event.\n"
	 "WHICH: number=N[-M] or percent=P (with seed=NUMBER) of those in each process, and "
	 "device\n"
	 "for requests; from=HOST[/HCA[:PORT]], where requests come from and objects are; of\n"
	 "requests and receives also to=HOST[/HCA[:PORT]] and opcode=NAME,... as in softhca "
	 "fabric\n"
	 "impair; qp=NUMBER; of CQ_ERR cq=NUMBER, of SRQ_ERR and\n"
	 "SRQ_LIMIT_REACHED srq=NUMBER.\n"
	 "'none' ends all.  Without arguments: lists them and what they have done.",
	 OPT_FABRIC | OPT_JSON, command_inject},
	{"explain", "[CODE]",
	 "Says what a code means, its usual causes and what to look at.\n"
	 "CODE: status of a completion (10, IBV_WC_REM_ACCESS_ERR, remote access error),\n"
	 "vendor_err (0x88), asynchronous event (IBV_EVENT_PORT_ERR), error number of a call\n"
	 "(EINVAL ibv_modify_qp), reason in a trace line (no-receive).  Without it: lists all.",
	 0, command_explain},
};

static void help_all(FILE *out)
{
	fprintf(out, "softhca: a software ConnectX/BlueField adapter\n\n");
	for (size_t i = 0; i < array_size(commands); i++)
		fprintf(out, "  softhca %s %s\n", commands[i].name, commands[i].synopsis);
	fprintf(out, "  softhca --version | --help | COMMAND --help\n\nSee softhca(1).\n");
}

/* Returns how many arguments the command's name takes; 0 if they are not this command. */
static int name_match(const char *name, int argc, char **argv)
{
	size_t n = strcspn(name, " ");

	if (argc < 1 || strlen(argv[0]) != n || strncmp(argv[0], name, n) != 0)
		return 0;
	if (!name[n])
		return 1;
	return argc > 1 && !strcmp(argv[1], name + n + 1) ? 2 : 0;
}

static bool wants_help(const char *arg)
{
	return !strcmp(arg, "--help") || !strcmp(arg, "-h") || !strcmp(arg, "help");
}

int main(int argc, char **argv)
{
	static struct session session;

	log_init();
	argc--;
	argv++;
	if (!argc) {
		help_all(stderr);
		return EXIT_USAGE;
	}
	if (wants_help(argv[0])) {
		help_all(stdout);
		return 0;
	}
	if (!strcmp(argv[0], "--version")) {
		version_print();
		return 0;
	}
	for (size_t i = 0; i < array_size(commands); i++) {
		int words = name_match(commands[i].name, argc, argv);
		int first, status;

		if (!words)
			continue;
		/* The last word of the name takes the place of a program's name. */
		argv += words - 1;
		argc -= words - 1;
		status = session_open(&session, &commands[i], argc, argv, &first);
		if (status < 0)
			status = commands[i].run(&session, argc - first, argv + first);
		/* A shell takes the status of eval, and not that of what eval has evaluated. */
		if (status && commands[i].run == command_env)
			puts("false");
		return status;
	}
	if (!strcmp(argv[0], "fabric")) {
		if (argc > 1 && wants_help(argv[1])) {
			printf("usage: softhca fabric "
			       "up|down|list|status|show|port|tie|untie|link|node|impair|"
			       "faults "
			       "[OPTION...]\n");
			return 0;
		}
		if (argc > 1)
			tool_error("softhca fabric", "no command '%s'; see softhca fabric --help",
				   argv[1]);
		else
			tool_error("softhca fabric",
				   "up, down, list, status, show, port, tie, untie, link, node, "
				   "impair or faults?  See softhca fabric --help");
		return EXIT_USAGE;
	}
	tool_error("softhca", "no command '%s'; see softhca --help", argv[0]);
	return EXIT_USAGE;
}
