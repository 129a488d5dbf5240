/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The name of a message: SOURCE@TIMESTAMP, the endpoint that sent it and its timestamp in full, as
 * in 10.0.0.1:61696@1764000000000000000. `barline send -v` prints it, `barline recv` prints both
 * parts, struct bl_delivery has them, and `barline trace` takes it. A scattering has one name: its
 * messages differ by their receivers only. @TIMESTAMP alone is a message of any sender.
 */
#ifndef BARLINE_CLI_UTIL_MESSAGE_H
#define BARLINE_CLI_UTIL_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/barline.h"

/** struct message_name - a message, or those of a scattering. */
struct message_name {
	struct bl_addr src; /* a port of 0: any */
	uint64_t ts;
};

/** message_parse - reads a name. Returns 0, or -EINVAL. */
int message_parse(struct message_name *m, const char *text);

/** message_format - writes a name; 96 bytes always suffice. Returns @buf. */
char *message_format(const struct message_name *m, char *buf, size_t size);

#endif
