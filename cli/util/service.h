/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What commands that run a service in the foreground share: its user, and its sandbox. */
#ifndef BARLINE_CLI_SERVICE_H
#define BARLINE_CLI_SERVICE_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/sandbox.h"

/** struct service_args - options of such a command. */
struct service_args {
	const char *user; /* NULL: the user stays */
	bool no_sandbox;
	bool check;    /* --check: only read and validate the file */
	uint64_t keep; /* capabilities that stay, BL_CAP() of each. Set by the command. */
};

/**
 * service_argp - the options --user, --no-sandbox and --check; its input is a struct service_args.
 */
extern const struct argp service_argp;

/**
 * service_checked - with --check: says that the file @path, which was read, is right. Returns the
 * exit status.
 */
int service_checked(const char *path);

/**
 * service_drop - gives up all capabilities but @keep of @a, and becomes the user of --user. To be
 * called when everything that needs privileges is done, and before the first thread starts. A
 * service that runs as root without --user keeps its privileges. Returns 0 or -errno.
 */
int service_drop(const struct service_args *a, struct bl_err *err);

/** service_sandbox - installs the filter of system calls, unless --no-sandbox. 0 or -errno. */
int service_sandbox(const struct service_args *a, enum bl_service who, struct bl_err *err);

#endif
