/* SPDX-License-Identifier: BSD-2-Clause */
/* softhca capture: its expressions, and what Wireshark asks of it. */
#pragma once

#include "registry/capture.h"
#include "tool/view.h"

/*
 * Adds the terms of an expression, "qpn=0x401 opcode=write", to what is wanted.  False: error says
 * what is wrong with it, in one line.
 */
bool capture_expression_read(const char *text, struct capture_want *want, char *error,
			     size_t size) must_check;

/* The name of a port: HOST/HCA, with :PORT if the HCA has several. */
#define CAPTURE_PORT_TEXT (2 * FABRIC_NAME_BYTES + 16)
void capture_port_text(struct view *v, uint32_t row, char text[CAPTURE_PORT_TEXT]);

/* Answers what Wireshark asks before it captures; the exit status. */
int capture_extcap(const struct session *s, const struct capture_options *o);
/* Finds the port, or all, that an interface of Wireshark's stands for: 0, or the exit status. */
int capture_extcap_port(const struct session *s, struct view *v, const char *interface,
			struct msg_capture *want);
