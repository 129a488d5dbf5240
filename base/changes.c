// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See changes.h. */
#include "base/changes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/event.h"
#include "base/library/systemd.h"
#include "base/text.h"
#include "base/time.h"

#define LOG_LINES 32 /* of one reload; a list of nodes may have thousands of changes */

const char *bl_change_name(enum bl_change change)
{
	return change == BL_CHANGE_LIVE      ? "live"
	       : change == BL_CHANGE_RESTART ? "restart"
					     : "detach";
}

int bl_change_refuse(const char *path, bool more, enum bl_change change, const char *why,
		     struct bl_err *err)
{
	return bl_fail(err, EPERM, "%s%s takes a %s (%s); nothing was changed", path,
		       more ? ", and other settings," : "",
		       change == BL_CHANGE_RESTART ? "restart" : "detach and a new start", why);
}

/* Names that were cut may end within a character, which JSON refuses. */
static char *plain_copy(const char *text)
{
	char *copy = strdup(text);

	if (copy)
		bl_text_plain(copy);
	return copy;
}

void bl_changes_compare(struct bl_changes *c, enum bl_change change, const char *why,
			const char *was, const char *now, const char *path, ...)
{
	struct bl_changed *v, one = { .why = why, .change = change };
	va_list ap;

	if (!strcmp(was, now))
		return;
	va_start(ap, path);
	if (vasprintf(&one.path, path, ap) < 0)
		one.path = NULL;
	va_end(ap);
	one.was = plain_copy(was);
	one.now = plain_copy(now);
	v = realloc(c->v, (c->n + 1) * sizeof(*v));
	if (v)
		c->v = v;
	if (v && one.path && one.was && one.now) {
		v[c->n++] = one;
		return;
	}
	c->short_of_memory = true;
	free(one.path);
	free(one.was);
	free(one.now);
}

int bl_changes_judge(const struct bl_changes *c, struct bl_err *err)
{
	const struct bl_changed *first = NULL;
	unsigned int k;
	bool more = false;

	if (c->short_of_memory)
		return bl_fail(err, ENOMEM, "out of memory");
	for (k = 0; k < c->n; k++) {
		if (c->v[k].change == BL_CHANGE_LIVE)
			continue;
		more |= first != NULL;
		first = first ? first : &c->v[k];
	}
	return first ? bl_change_refuse(first->path, more, first->change, first->why, err) : 0;
}

void bl_changes_free(struct bl_changes *c)
{
	unsigned int k;

	for (k = 0; k < c->n; k++) {
		free(c->v[k].path);
		free(c->v[k].was);
		free(c->v[k].now);
	}
	free(c->v);
	*c = (struct bl_changes){ 0 };
}

/* ---- the reload itself ---- */

int bl_reload_file(const char *path, struct bl_err *err)
{
	struct stat st;

	if (stat(path, &st))
		return bl_fail(err, errno, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return bl_fail(err, EINVAL,
			       "%s is not a regular file, so it cannot be read again; restart the "
			       "process",
			       path);
	return 0;
}

void bl_reload_begins(void)
{
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, bl_mono_ns() / 1000);
}

void bl_reload_ends(const char *who, const char *node, int rc, unsigned int n,
		    const struct bl_err *err)
{
	if (rc)
		bl_event(BL_EVENT(RELOAD_REFUSED, ERR, node, .reason = err->text),
			 "%s: not reloaded: %s", who, err->text);
	else
		bl_event(BL_EVENT(RELOADED, INFO, node, .reason = "configuration"),
			 "%s: reloaded, %u settings changed", who, n);
	sd_notifyf(0, "READY=1\nSTATUS=%s: %s%s", who, rc ? "not reloaded: " : "reloaded",
		   rc ? err->text : "");
}

void bl_changes_log(const struct bl_changes *c, const char *who)
{
	unsigned int k;

	for (k = 0; k < c->n && k < LOG_LINES; k++)
		bl_log(BL_LOG_INFO, "%s: reloaded: %s is %s now, was %s", who, c->v[k].path,
		       *c->v[k].now ? c->v[k].now : "nothing",
		       *c->v[k].was ? c->v[k].was : "nothing");
	if (c->n > LOG_LINES)
		bl_log(BL_LOG_INFO, "%s: reloaded: %u more settings", who, c->n - LOG_LINES);
}
