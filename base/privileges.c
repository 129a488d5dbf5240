// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See privileges.h. */
#include "base/privileges.h"

#include <cap-ng.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CAPS_MAX 64

int bl_user_find(const char *name, struct bl_user *u, struct bl_err *err)
{
	const struct passwd *p;

	memset(u, 0, sizeof(*u));
	errno = 0;
	p = getpwnam(name);
	if (!p)
		return bl_fail(err, errno ? errno : ENOENT,
			       "there is no user \"%s\"; `systemd-sysusers` makes the one of "
			       "barline.conf, and `useradd -r %s` another",
			       name, name);
	if (strlen(name) >= sizeof(u->name))
		return bl_fail(err, EINVAL, "user \"%s\": at most %zu characters", name,
			       sizeof(u->name) - 1);
	strcpy(u->name, name);
	u->uid = p->pw_uid;
	u->gid = p->pw_gid;
	return 0;
}

/* libcap-ng keeps the set that it works on by thread, so these functions may run side by side. */
static uint64_t read_caps(capng_type_t type)
{
	uint64_t v = 0;
	unsigned int k;

	capng_clear(CAPNG_SELECT_ALL);
	if (capng_get_caps_process())
		return 0;
	for (k = 0; k < CAPS_MAX && k <= CAP_LAST_CAP; k++)
		if (capng_have_capability(type, k))
			v |= BL_CAP(k);
	return v;
}

uint64_t bl_caps_effective(void)
{
	return read_caps(CAPNG_EFFECTIVE);
}

char *bl_caps_text(uint64_t caps, char *buf, size_t size)
{
	size_t at = 0;
	unsigned int k;

	*buf = 0;
	for (k = 0; k < CAPS_MAX && at < size; k++) {
		const char *name = caps & BL_CAP(k) ? capng_capability_to_name(k) : NULL;
		char text[32];
		char *p;

		if (!name)
			continue;
		snprintf(text, sizeof(text), "CAP_%s", name);
		for (p = text; *p; p++)
			*p = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
		at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "", text);
	}
	return buf;
}

int bl_caps_need(const char *what, uint64_t need, struct bl_err *err)
{
	uint64_t have = bl_caps_effective(), missing;
	char all[256], less[256];

	/* what the newer two were split from */
	if (have & BL_CAP(CAP_SYS_ADMIN))
		have |= BL_CAP(CAP_BPF) | BL_CAP(CAP_PERFMON);
	missing = need & ~have;
	if (!missing)
		return 0;
	return bl_fail(err, EPERM,
		       "%s lacks %s; it needs %s: run it as root with --user, or give it "
		       "AmbientCapabilities= in its systemd unit",
		       what, bl_caps_text(missing, less, sizeof(less)),
		       bl_caps_text(need, all, sizeof(all)));
}

/* Fills libcap-ng's set with @keep, as far as the thread has it. */
static void choose_caps(uint64_t keep)
{
	const capng_type_t all = CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_INHERITABLE |
				 CAPNG_AMBIENT;
	uint64_t have = read_caps(CAPNG_PERMITTED);
	unsigned int k;

	capng_clear(CAPNG_SELECT_CAPS | CAPNG_SELECT_AMBIENT);
	for (k = 0; k < CAPS_MAX && k <= CAP_LAST_CAP; k++)
		if (keep & have & BL_CAP(k))
			capng_update(CAPNG_ADD, all, k);
}

void bl_thread_keep_caps(void)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
}

int bl_thread_drop(uint64_t keep)
{
	int rc = 0;

	/* A service manager may refuse capset(2) to a thread that has no capability anyway. */
	if (read_caps(CAPNG_PERMITTED) | read_caps(CAPNG_INHERITABLE)) {
		choose_caps(keep);
		rc = capng_apply(CAPNG_SELECT_CAPS) || capng_apply(CAPNG_SELECT_AMBIENT) ? -EPERM
											 : 0;
	}
	prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	return rc;
}

int bl_privileges_drop(const struct bl_user *u, uint64_t keep, struct bl_err *err)
{
	bool bounds = bl_caps_effective() & BL_CAP(CAP_SETPCAP);
	int rc;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return bl_fail(err, errno, "cannot set no_new_privs: %s", strerror(errno));
	choose_caps(keep);
	if (!u || u->uid == geteuid()) {
		if (bounds)
			capng_clear(CAPNG_SELECT_BOUNDS);
		if (bounds && capng_apply(CAPNG_SELECT_BOUNDS))
			return bl_fail(err, EPERM, "cannot empty the bounding set");
		rc = bl_thread_drop(keep);
		return rc ? bl_fail(err, -rc, "cannot give up capabilities: %s", strerror(-rc)) : 0;
	}
	/*
	 * capng_change_id() keeps the permitted set over the change of the user, and leaves the
	 * chosen one. The numbers that it returns have a table in capng_change_id(3).
	 */
	rc = capng_change_id((int)u->uid, (int)u->gid,
			     CAPNG_INIT_SUPP_GRP | (bounds ? CAPNG_CLEAR_BOUNDING : 0));
	if (rc)
		return bl_fail(err, EPERM,
			       "cannot become user %s (step %d of capng_change_id): %s; it takes "
			       "CAP_SETUID and CAP_SETGID",
			       u->name, -rc, strerror(errno));
	rc = bl_thread_drop(keep);
	return rc ? bl_fail(err, -rc, "cannot keep the capabilities of user %s: %s", u->name,
			    strerror(-rc))
		  : 0;
}
