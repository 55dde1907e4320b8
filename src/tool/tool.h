/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The softhca command: a front to the daemon and the preload library.  Each subcommand is a
 * function that gets its own argument vector and returns the exit status.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fabric/protocol.h"
#include "fabric/rundir.h"

/* Exit statuses of env(1) and nohup(1), which wrap programs too. */
enum tool_exit {
	EXIT_NOTHING = 1, /* what the user asked for is not there */
	EXIT_USAGE = 2,
	EXIT_OURS = 125,       /* softhca itself failed */
	EXIT_CANNOT_RUN = 126, /* the program exists but cannot run, or not under softhca */
	EXIT_NO_PROGRAM = 127,
};

#define TOOL_PATH_BYTES 4096

/* The options of softhca capture and softhca trace, as the user wrote them; NULL: not given. */
struct capture_options {
	const char *file, *count, *snaplen, *expression, *buffer;
	const char *events; /* of softhca trace */
	/* What Wireshark says to programs in its folder extcap. */
	bool interfaces, dlts, config, capture;
	const char *interface, *fifo, *filter;
};

/* Those of softhca top. */
struct top_options {
	bool batch;
	const char *count, *seconds;
};

/* Options common to the subcommands, and where things are. */
struct session {
	const char *command; /* "softhca run", for messages */
	const char *help;    /* the command whose --help says more */
	const char *fabric;
	const char *host;  /* NULL: none was given */
	bool fabric_given; /* --fabric gave it */
	bool json;
	bool all;	      /* all fabrics */
	bool unset;	      /* undo what env has set */
	bool gdb;	      /* run the program in a debugger */
	bool mount;	      /* the program sees the devices in a mount namespace */
	const char *view;     /* how the program sees the devices, or NULL */
	const char *reports;  /* style of reports of signature errors, or NULL */
	const char *timing;   /* of retries, or NULL */
	const char *memory;   /* the way to the program's memory, or NULL */
	const char *trace;    /* patterns of trace points, or NULL */
	bool explain;	      /* say why requests fail */
	const char *faults;   /* the file of faults that happen meanwhile, or NULL */
	const char *hosts;    /* how many hosts the fabric is to have, or NULL */
	uint32_t nhosts;      /* the same as a number */
	const char *topology; /* the file to make the fabric from, or NULL */
	const char *links;    /* types of a host's devices, or NULL */
	const char *names;    /* of a host's devices, or NULL */
	const char *netdevs;  /* interfaces for Ethernet devices, or NULL */
	const char *sm;	      /* who manages its subnet, or NULL */
	const char *listen;   /* address, or auto, that its port is to be tied to, or NULL */
	const char *peers;    /* from whom that port takes packets, or NULL */
	const char *model;    /* model that the fabric's devices say they are, or NULL */
	struct capture_options capture;
	const char *html; /* file for the page of softhca fabric show, or NULL */
	bool watch;	  /* write it anew each second */
	struct top_options top;
	char dir[RUNDIR_BYTES];
	char daemon[TOOL_PATH_BYTES];
	char preload[TOOL_PATH_BYTES];
	char view_server[TOOL_PATH_BYTES];
};

/* Prints one line on standard error, "softhca run: ...". */
void tool_error(const char *command, const char *fmt, ...) printf_like(2, 3);

/* session.c */
enum session_option {
	OPT_FABRIC = 1,
	OPT_HOST = 2,
	OPT_JSON = 4,
	OPT_REPORTS = 8,
	OPT_MODEL = 16,
	OPT_TRACE = 32,
	OPT_HOSTS = 64,
	OPT_MEMORY = 128,
	OPT_GDB = 256,
	OPT_EXPLAIN = 512,
	OPT_UNSET = 1024,
	OPT_ALL = 2048,
	OPT_TOPOLOGY = 4096,
	OPT_SM = 8192,
	OPT_LINKS = 16384,
	OPT_NETDEV = 32768,
	OPT_TIMING = 65536,
	OPT_VIEW = 131072,
	OPT_NAMES = 262144,
	OPT_CAPTURE = 524288, /* those of softhca capture */
	OPT_RECORD = 1048576, /* those of softhca trace */
	OPT_HTML = 2097152,
	OPT_WATCH = 4194304,
	OPT_TOP = 8388608,	/* those of softhca top */
	OPT_FAULTS = 268435456, /* above those of enum capture_option */
	OPT_LISTEN = 536870912,
	OPT_PEERS = 1073741824,
};

struct command {
	const char *name; /* "fabric status" */
	const char *synopsis;
	const char *help;
	unsigned options; /* mask of enum session_option */
	int (*run)(struct session *s, int argc, char **argv);
};

/*
 * Parses the command's options (up to the first other argument) and finds directory, daemon and
 * preload library.  Returns -1 to go on with argv[*first], else the exit status.
 */
int session_open(struct session *s, const struct command *c, int argc, char **argv, int *first);
/* Says that a part of softhca is not where it should be, or cannot be looked for. */
void session_missing_part(const struct session *s, const char *name);
/* Says why link_open failed. */
void session_link_error(const struct session *s, int error);
/* Says which nodes have this for their description. */
void session_called_twice(const struct session *s, const char *name);
/* Connects and makes a first request.  Returns the descriptor, or -1 after an error line. */
int session_link(const struct session *s, bool start, struct msg *m, enum msg_type type,
		 int fds[MSG_MAX_FDS]);
/* Asks the daemon for the session's host, or the first.  False after an error line: unknown. */
bool session_host(const struct session *s, int sock, struct msg_host_reply *host);

/* json.c: a writer that knows where commas go. */
struct json {
	FILE *out;
	bool first;
};

/* Returns how many bytes the character at s has, or 0 if that is not UTF-8 (RFC 3629). */
unsigned utf8_bytes(const unsigned char *s);

void json_open(struct json *j, const char *key, char bracket);
void json_close(struct json *j, char bracket);
void json_string(struct json *j, const char *key, const char *value);
void json_number(struct json *j, const char *key, uint64_t value);
/* A value that is JSON already. */
void json_raw(struct json *j, const char *key, const char *value);
/* The next member of an array begins on a line of its own. */
void json_line(struct json *j);
void json_bool(struct json *j, const char *key, bool value);

/* Prints the tool's version and those of the libraries that programs use. */
void version_print(void);

/* The subcommands. */
int command_run(struct session *s, int argc, char **argv);
int command_env(struct session *s, int argc, char **argv);
int command_fabric_up(struct session *s, int argc, char **argv);
int command_fabric_list(struct session *s, int argc, char **argv);
int command_fabric_down(struct session *s, int argc, char **argv);
int command_fabric_status(struct session *s, int argc, char **argv);
int command_fabric_link(struct session *s, int argc, char **argv);
int command_fabric_node(struct session *s, int argc, char **argv);
int command_inject(struct session *s, int argc, char **argv);
int command_fabric_impair(struct session *s, int argc, char **argv);
int command_fabric_faults(struct session *s, int argc, char **argv);
int command_fabric_show(struct session *s, int argc, char **argv);
int command_fabric_tie(struct session *s, int argc, char **argv);
int command_fabric_untie(struct session *s, int argc, char **argv);
int command_fabric_port(struct session *s, int argc, char **argv);
int command_explain(struct session *s, int argc, char **argv);
int command_capture(struct session *s, int argc, char **argv);
int command_top(struct session *s, int argc, char **argv);
int command_trace(struct session *s, int argc, char **argv);
int command_status(struct session *s, int argc, char **argv);
int command_devices(struct session *s, int argc, char **argv);
