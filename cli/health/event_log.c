// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See event_log.h. */
#include "cli/health/event_log.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/event.h"

#define SUFFIX "-events.jsonl"

void event_log_open(struct event_log *l, const char *dir)
{
	*l = (struct event_log){ .lines = json_array() };
	snprintf(l->dir, sizeof(l->dir), "%s", dir);
}

void event_log_close(struct event_log *l)
{
	json_decref(l->lines);
	free(l->file);
}

uint64_t event_time(const json_t *event)
{
	return (uint64_t)json_integer_value(json_object_get(event, "unix_ns"));
}

static bool is_trusted(int dir, const struct stat *st)
{
	struct stat d;

	return S_ISREG(st->st_mode) && !fstat(dir, &d) &&
	       (!st->st_uid || st->st_uid == d.st_uid || st->st_uid == geteuid());
}

/* The place of a file by its identity, so that one that was renamed goes on where it was. */
static struct event_reader *find_reader(struct event_log *l, const struct stat *st)
{
	struct event_reader *v;
	unsigned int k;

	for (k = 0; k < l->files; k++)
		if (l->file[k].dev == st->st_dev && l->file[k].ino == st->st_ino)
			return &l->file[k];
	/* Forgotten files leave a place; a rack has few nodes on a machine. */
	if (l->files == EVENT_FILES_MAX)
		return NULL;
	v = reallocarray(l->file, l->files + 1, sizeof(*v));
	if (!v)
		return NULL;
	l->file = v;
	v += l->files++;
	*v = (struct event_reader){ .dev = st->st_dev, .ino = st->st_ino };
	return v;
}

static void take_line(struct event_log *l, const char *line, size_t n)
{
	json_t *o;

	if (!n)
		return;
	o = n < EVENT_LINE_MAX ? json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (!json_is_object(o) || json_integer_value(json_object_get(o, "schema")) < 1 ||
	    !json_is_string(json_object_get(o, "event")) ||
	    !json_is_integer(json_object_get(o, "unix_ns"))) {
		l->refused++;
		json_decref(o);
		return;
	}
	json_array_append_new(l->lines, o);
}

/* Whether the file begins as before. If not, it is another one. */
static bool is_same(int fd, struct event_reader *r)
{
	char head[sizeof(r->head)];
	ssize_t n = pread(fd, head, sizeof(head), 0);
	bool same = n >= (ssize_t)r->nhead && !memcmp(head, r->head, r->nhead);

	if (n > 0) {
		memcpy(r->head, head, (size_t)n);
		r->nhead = (size_t)n;
	}
	return same;
}

/* Reads the whole lines of @fd from @r->at on. */
static void read_lines(struct event_log *l, int fd, struct event_reader *r, off_t size)
{
	/* A writer rotates long before; more than that is not one of ours. */
	size_t most = 2 * EVENT_FILE_BYTES, n;
	char *text, *p, *end;
	ssize_t got;

	if (!is_same(fd, r) || size < r->at)
		r->at = 0;
	n = (size_t)(size - r->at) < most ? (size_t)(size - r->at) : most;
	text = n ? malloc(n) : NULL;
	if (!text)
		return;
	got = pread(fd, text, n, r->at);
	for (p = text; got > 0 && (end = memchr(p, '\n', (size_t)(text + got - p))); p = end + 1)
		take_line(l, p, (size_t)(end - p));
	r->at += p - text;
	/* A line that does not end is passed over, lest it be read again and again. */
	if (got > 0 && p == text && (size_t)got >= EVENT_LINE_MAX) {
		r->at += got;
		l->refused++;
	}
	free(text);
}

static void read_file(struct event_log *l, int dir, const char *name)
{
	/* O_NONBLOCK: it may be a FIFO, whose open would wait for a writer. */
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct event_reader *r;
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) || !is_trusted(dir, &st)) {
		l->refused++;
	} else {
		r = find_reader(l, &st);
		if (r) {
			snprintf(r->path, sizeof(r->path), "%s", name);
			read_lines(l, fd, r, st.st_size);
		}
	}
	close(fd);
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && !strcmp(name + n - m, suffix);
}

static int by_time(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	uint64_t s = event_time(x), t = event_time(y);
	json_int_t i = json_integer_value(json_object_get(x, "seq"));
	json_int_t j = json_integer_value(json_object_get(y, "seq"));

	return s < t ? -1 : s > t ? 1 : i < j ? -1 : i > j;
}

static void sort_lines(struct event_log *l)
{
	size_t n = json_array_size(l->lines), k;
	json_t **v = n ? calloc(n, sizeof(*v)) : NULL;

	if (!v)
		return;
	for (k = 0; k < n; k++)
		v[k] = json_incref(json_array_get(l->lines, k));
	qsort(v, n, sizeof(*v), by_time);
	json_array_clear(l->lines);
	for (k = 0; k < n; k++)
		json_array_append_new(l->lines, v[k]);
	free(v);
}

static bool is_at(int dir, const char *path, const struct event_reader *r)
{
	struct stat st;

	return !fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) && st.st_ino == r->ino &&
	       st.st_dev == r->dev;
}

/*
 * Drops the places of files that are gone, so that a machine with many labs does not fill up. A
 * file that was renamed since it was read is not gone: the next call goes on with it.
 */
static void forget_gone(struct event_log *l, int dir)
{
	char old[sizeof(l->file->path) + 2];
	unsigned int k, left = 0;

	for (k = 0; k < l->files; k++) {
		snprintf(old, sizeof(old), "%s.1", l->file[k].path);
		if (is_at(dir, l->file[k].path, &l->file[k]) || is_at(dir, old, &l->file[k]))
			l->file[left++] = l->file[k];
	}
	l->files = left;
}

void event_log_read(struct event_log *l)
{
	DIR *d = opendir(l->dir);
	struct dirent *e;
	int old;

	if (!d)
		return;
	for (old = 1; old >= 0; old--) {
		rewinddir(d);
		while ((e = readdir(d)))
			if (ends_with(e->d_name, old ? SUFFIX ".1" : SUFFIX))
				read_file(l, dirfd(d), e->d_name);
	}
	forget_gone(l, dirfd(d));
	closedir(d);
	sort_lines(l);
}
