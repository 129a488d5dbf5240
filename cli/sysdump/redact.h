/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Leaves secrets out of a text that goes to somebody else.
 *
 * Barline's configuration names files of secrets and has none itself; but a person may have pasted
 * one into it. Left out are: everything from "-----BEGIN" to "-----END", the values of keys whose
 * name contains secret, password, passwd, psk or token (not of secret_file, a path), and words of
 * 32 or more hexadecimal digits or base64 characters.
 *
 * Example: "psk: 00112233" becomes "psk: (left out)".
 */
#ifndef BARLINE_CLI_SYSDUMP_REDACT_H
#define BARLINE_CLI_SYSDUMP_REDACT_H

#include <stdbool.h>

/** struct redact - where in a text the lines are. Zero at first. */
struct redact {
	bool in_pem;
};

/** redact_line - leaves secrets out of a line, with or without its end, in place or shorter. */
void redact_line(struct redact *r, char *line);

#endif
