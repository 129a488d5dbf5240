// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See service.h. */
#include "cli/util/service.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/privileges.h"
#include "cli/util/out.h"
#include "loader/prepare.h"
#include "maps/meta_abi.h"

enum { KEY_USER = 0x5000, KEY_NO_SANDBOX, KEY_CHECK };

static const struct argp_option options[] = {
	{ "user", KEY_USER, "NAME", 0, "become this user and give up all capabilities", 0 },
	{ "no-sandbox", KEY_NO_SANDBOX, NULL, 0,
	  "no filter of system calls, for strace(1) and debuggers", 0 },
	{ "check", KEY_CHECK, NULL, 0,
	  "only read and validate the file; needs no privileges and touches nothing", 0 },
	{ 0 }
};

static error_t parse_service(int key, char *arg, struct argp_state *state)
{
	struct service_args *a = state->input;

	switch (key) {
	case KEY_USER:
		a->user = arg;
		return 0;
	case KEY_NO_SANDBOX:
		a->no_sandbox = true;
		return 0;
	case KEY_CHECK:
		a->check = true;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp service_argp = { .options = options, .parser = parse_service };

int service_checked(const char *path)
{
	if (cli.json)
		cli_json(json_pack("{s:s, s:s}", "file", path, "check", "right"));
	else
		printf("%s: right\n", path);
	return 0;
}

/* The status socket is in the run directory, so that has to be the user's. */
static int own_run_dir(const struct bl_user *u, struct bl_err *err)
{
	struct stat st;

	if (mkdir(BL_RUN_DIR, 0755) && errno != EEXIST)
		return bl_fail(err, errno, "cannot make %s: %s", BL_RUN_DIR, strerror(errno));
	if (stat(BL_RUN_DIR, &st))
		return bl_fail(err, errno, "cannot look at %s: %s", BL_RUN_DIR, strerror(errno));
	if (!st.st_uid)
		return bl_give_run_dir(u->uid, u->gid, err);
	if (st.st_uid != u->uid)
		return bl_fail(err, EACCES,
			       "%s belongs to user %u, not to %s; barline's services of one "
			       "machine "
			       "run as one user",
			       BL_RUN_DIR, st.st_uid, u->name);
	return 0;
}

int service_drop(const struct service_args *a, struct bl_err *err)
{
	struct bl_user u;
	int rc;

	if (!a->user)
		return geteuid() ? bl_privileges_drop(NULL, a->keep, err) : 0;
	rc = bl_user_find(a->user, &u, err);
	if (!rc && geteuid() && geteuid() != u.uid)
		rc = bl_fail(err, EPERM, "only root can become user %s", a->user);
	if (!rc && !geteuid())
		rc = own_run_dir(&u, err);
	return rc ? rc : bl_privileges_drop(&u, a->keep, err);
}

int service_sandbox(const struct service_args *a, enum bl_service who, struct bl_err *err)
{
	return a->no_sandbox ? 0 : bl_sandbox(who, err);
}
