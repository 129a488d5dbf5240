// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The journal: what setup has changed, so that --undo can take it back. It is a file of lines in
 * JSON, to which lines are only appended:
 *
 *	{"barline_setup": 1, "name": "sw", "role": "switch", "boot": "ID", "netns": 4026531840}
 *	{"kind": "up", "dev": "eth0", "arg": "", "before": "down", "after": "up"}
 *	{"kind": "bridge", "dev": "br0", "arg": "", "before": null, "after": "bridge"}
 *	{"made": "br0", "ifindex": 7}
 *
 * Each run begins with a line of the first kind. The line of a step reaches the disk before the
 * step is done. If the process is killed between the two, undoing finds that nothing has changed.
 * A line without its end was being written when the process was killed, so its step was not begun.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/netns.h"
#include "cli/setup/setup.h"

#define VERSION     1
#define JOURNAL_MAX (1u << 30) /* some thousand setups of a switch with 4096 hosts */
#define BOOT_ID     "/proc/sys/kernel/random/boot_id"

static void read_boot(char *to, size_t size)
{
	FILE *f = fopen(BOOT_ID, "re");

	*to = '\0';
	if (f && fgets(to, (int)size, f))
		to[strcspn(to, "\n")] = '\0';
	if (f)
		fclose(f);
}

static const char *role_of(const struct setup_want *w)
{
	return w->role == BL_ROLE_SWITCH ? "switch" : "host";
}

/** struct run - the run that the lines being read belong to. */
struct run {
	bool begun, this_boot;
	char boot[64];
};

static int damaged(const struct setup_journal *j, unsigned int line, struct bl_err *err)
{
	return bl_fail(err, EBADMSG,
		       "%s:%u is not a line that setup writes; mend it, or remove the file, after "
		       "which --undo knows nothing of what was set up",
		       j->path, line);
}

static int read_head(const struct setup_journal *j, const struct setup_want *w, json_t *o,
		     struct run *run, struct bl_err *err)
{
	const char *role = json_string_value(json_object_get(o, "role"));
	const char *boot = json_string_value(json_object_get(o, "boot"));
	json_int_t version = json_integer_value(json_object_get(o, "barline_setup"));
	json_int_t netns = json_integer_value(json_object_get(o, "netns"));

	if (version != VERSION)
		return bl_fail(err, EPROTO,
			       "%s is of version %lld, and this barline knows %d; use the barline "
			       "that wrote it",
			       j->path, (long long)version, VERSION);
	if (!role || !boot)
		return -EBADMSG;
	if (strcmp(role, role_of(w)) != 0)
		return bl_fail(err, EXDEV, "%s was set up as a %s; use `barline %s setup`", w->file,
			       role, role);
	run->begun = true;
	run->this_boot = !strcmp(boot, run->boot);
	if (run->this_boot && netns != (json_int_t)bl_netns_ino())
		return bl_fail(err, EXDEV,
			       "%s was set up in another network namespace; enter it (-n), or give "
			       "another --file",
			       w->file);
	return 0;
}

/* Returns 0, or -EBADMSG. */
static int read_step(struct setup_journal *j, json_t *o, const struct run *run)
{
	const char *name = json_string_value(json_object_get(o, "kind"));
	const char *dev = json_string_value(json_object_get(o, "dev"));
	const char *arg = json_string_value(json_object_get(o, "arg"));
	json_t *before = json_object_get(o, "before"), *after = json_object_get(o, "after");
	enum setup_kind kind = name ? setup_kind_of(name) : SETUP_KINDS;

	if (!run->begun || kind < SETUP_UP || kind == SETUP_KINDS || !dev || !arg || !before ||
	    !after || strlen(dev) >= IFNAMSIZ || strlen(arg) >= SETUP_ARG)
		return -EBADMSG;
	/* Settings of the kernel are gone since the boot, and what is there now is not setup's. */
	setup_push(run->this_boot || kind == SETUP_DIR || kind == SETUP_FILE ? &j->steps
									     : &j->earlier,
		   kind, dev, arg, json_string_value(before), json_string_value(after));
	return 0;
}

static void read_made(struct setup_journal *j, json_t *o)
{
	const char *dev = json_string_value(json_object_get(o, "made"));
	size_t k = j->steps.n;

	while (dev && k--)
		if (j->steps.v[k].kind == SETUP_BRIDGE && !strcmp(j->steps.v[k].dev, dev)) {
			j->steps.v[k].ifindex =
				(unsigned int)json_integer_value(json_object_get(o, "ifindex"));
			return;
		}
}

static int read_line(struct setup_journal *j, const struct setup_want *w, const char *line,
		     size_t size, struct run *run, struct bl_err *err)
{
	json_t *o = json_loadb(line, size, 0, NULL);
	int rc = -EBADMSG;

	err->text[0] = '\0';
	if (json_object_get(o, "barline_setup")) {
		rc = read_head(j, w, o, run, err);
	} else if (json_object_get(o, "made") && run->begun) {
		read_made(j, o);
		rc = 0;
	} else if (json_is_object(o)) {
		rc = read_step(j, o, run);
	}
	json_decref(o);
	return rc;
}

/* Reads all whole lines of @text, of @size bytes. */
static int read_lines(struct setup_journal *j, const struct setup_want *w, const char *text,
		      size_t size, struct bl_err *err)
{
	const char *past = text + size;
	struct run run = { 0 };
	const char *line, *end;
	unsigned int n = 1;
	int rc;

	read_boot(run.boot, sizeof(run.boot));
	for (line = text; (end = memchr(line, '\n', (size_t)(past - line))); line = end + 1, n++) {
		rc = read_line(j, w, line, (size_t)(end - line), &run, err);
		if (rc)
			return *err->text ? rc : damaged(j, n, err);
	}
	j->begin = (long)(line - text);
	j->first = j->steps.n;
	return j->steps.failed || j->earlier.failed
		       ? bl_fail(err, ENOMEM, "no memory for %s", j->path)
		       : 0;
}

/*
 * Whoever can write the journal decides what --undo writes where, as root. So the folder must not
 * be that of a service.
 */
static int check_owner(const char *dir, struct bl_err *err)
{
	struct stat st;

	if (stat(dir, &st) || (st.st_uid == geteuid() && !(st.st_mode & 022)))
		return 0;
	return bl_fail(err, EPERM,
		       "%s can be written by others than user %u, who could forge what --undo "
		       "does; "
		       "make it your own (`chmod 755`, `chown`), or give another --state-dir",
		       dir, geteuid());
}

/* Locks the folder. Returns 0 (also if there is none) or -errno. */
static int lock_dir(struct setup_journal *j, const char *dir, struct bl_err *err)
{
	j->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j->dir < 0)
		return errno == ENOENT ? 0 : bl_fail(err, errno, "%s: %s", dir, strerror(errno));
	if (!flock(j->dir, LOCK_EX | LOCK_NB))
		return 0;
	return bl_fail(err, errno,
		       "another setup is running (it holds the lock of %s); wait for it", dir);
}

int setup_journal_read(struct setup_journal *j, const struct setup_want *w, const char *dir,
		       enum setup_access what, struct bl_err *err)
{
	size_t size;
	char *text;
	int rc;

	*j = (struct setup_journal){ .dir = -1, .fd = -1 };
	snprintf(j->path, sizeof(j->path), "%s/setup-%s.jsonl", dir, w->file);
	if (what == SETUP_CHANGE && mkdir(dir, 0700) && errno != EEXIST)
		return bl_fail(err, errno, "mkdir %s: %s%s", dir, strerror(errno),
			       errno == EACCES || errno == EROFS ? "; run this as root" : "");
	rc = check_owner(dir, err);
	if (!rc && what != SETUP_LOOK)
		rc = lock_dir(j, dir, err);
	if (rc)
		return rc;
	text = setup_file_text(j->path, JOURNAL_MAX, &size);
	if (!text)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : bl_fail(err, errno, "%s: %s", j->path, strerror(errno));
	rc = read_lines(j, w, text, size, err);
	free(text);
	return rc;
}

/* Appends one line and waits until it is on the disk. Steals the reference to @o. */
static int put_line(struct setup_journal *j, json_t *o, struct bl_err *err)
{
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	int rc = text ? 0 : o ? -ENOMEM : -EILSEQ; /* no object: a text that is not UTF-8 */

	if (text && (dprintf(j->fd, "%s\n", text) < 0 || fdatasync(j->fd)))
		rc = -errno;
	free(text);
	json_decref(o);
	return rc ? bl_fail(err, -rc, "%s: %s; nothing is changed that is not written down",
			    j->path, strerror(-rc))
		  : 0;
}

int setup_journal_begin(struct setup_journal *j, const struct setup_want *w, const char *dir,
			struct bl_err *err)
{
	char boot[64];
	int rc;

	j->fd = open(j->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (j->fd < 0 || ftruncate(j->fd, j->begin))
		return bl_fail(err, errno, "%s: %s", j->path, strerror(errno));
	read_boot(boot, sizeof(boot));
	rc = put_line(j,
		      json_pack("{s:i, s:s, s:s, s:s, s:I}", "barline_setup", VERSION, "name",
				w->file, "role", role_of(w), "boot", boot, "netns",
				(json_int_t)bl_netns_ino()),
		      err);
	if (!rc && fsync(j->dir)) /* so that the file itself is there after a crash */
		rc = bl_fail(err, errno, "%s: %s", dir, strerror(errno));
	return rc;
}

int setup_journal_add(struct setup_journal *j, const struct setup_step *s, struct bl_err *err)
{
	if (setup_is_kept(s) && setup_find(&j->steps, s->kind, s->dev, s->arg))
		return 0;
	setup_push(&j->steps, s->kind, s->dev, s->arg, s->before, s->after);
	if (j->steps.failed)
		return bl_fail(err, ENOMEM, "no memory for %s", j->path);
	return put_line(j,
			json_pack("{s:s, s:s, s:s, s:s?, s:s?}", "kind", setup_kind_name(s->kind),
				  "dev", s->dev, "arg", s->arg, "before", s->before, "after",
				  s->after),
			err);
}

int setup_journal_made(struct setup_journal *j, const char *dev, unsigned int ifindex,
		       struct bl_err *err)
{
	j->steps.v[j->steps.n - 1].ifindex = ifindex;
	return put_line(j, json_pack("{s:s, s:i}", "made", dev, "ifindex", (int)ifindex), err);
}

void setup_journal_forget(struct setup_journal *j)
{
	if (!j->begin)
		setup_journal_remove(j);
	else if (j->fd >= 0 && ftruncate(j->fd, j->begin))
		fprintf(stderr, "barline: %s: %s\n", j->path, strerror(errno));
}

void setup_journal_remove(struct setup_journal *j)
{
	if (unlink(j->path) && errno != ENOENT)
		fprintf(stderr, "barline: %s: %s\n", j->path, strerror(errno));
}

void setup_journal_close(struct setup_journal *j)
{
	setup_steps_free(&j->steps);
	setup_steps_free(&j->earlier);
	if (j->fd >= 0)
		close(j->fd);
	if (j->dir >= 0)
		close(j->dir);
}
