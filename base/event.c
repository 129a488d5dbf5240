// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See event.h. */
#include "base/event.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define FILES_MAX 512 /* nodes in one process; a lab has one process for all its nodes */
#define TEXT_MAX  1024

/*
 * A file of events. @fd keeps its number for ever: a rotation puts the new file there by dup3(), so
 * a thread that writes meanwhile writes into one of the two.
 */
struct event_file {
	atomic_bool used;
	int fd;
	char node[32], role[16], path[160];
	atomic_uint_fast64_t seq;   /* of the last line */
	atomic_uint_fast64_t bytes; /* in the file */
	atomic_flag rotating;
};

static struct event_file files[FILES_MAX];
static char process_role[16] = "daemon";

const char *bl_event_name(enum bl_event_kind kind)
{
#define NAME(sym, name, fields, when) [BL_EVENT_##sym] = name,
	static const char *const names[] = { BL_EVENTS(NAME) };
#undef NAME

	return kind < BL_EVENTS_NUMBER ? names[kind] : "unknown";
}

/* ---- the line ---- */

/** struct line - a line that is put together; what does not fit before @end is left out. */
struct line {
	char *at, *end;
};

static void put(struct line *l, const char *s)
{
	size_t n = strlen(s);

	if (n > (size_t)(l->end - l->at))
		return;
	memcpy(l->at, s, n);
	l->at += n;
}

/* Puts "@s" as a JSON string; of what is too long, the beginning. Names may have any bytes. */
static void put_string(struct line *l, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	char one[8];

	if (l->end - l->at < 2)
		return;
	*l->at++ = '"';
	l->end--; /* for the last quote */
	while (*p) {
		size_t n = bl_utf8_len((const char *)p);

		if (*p == '"' || *p == '\\')
			snprintf(one, sizeof(one), "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			snprintf(one, sizeof(one), "\\u%04x", *p);
		else
			snprintf(one, sizeof(one), "%.*s", n ? (int)n : 1,
				 n ? (const char *)p : "?");
		if (strlen(one) > (size_t)(l->end - l->at))
			break;
		put(l, one);
		p += n ? n : 1;
	}
	l->end++;
	*l->at++ = '"';
}

static void put_text(struct line *l, const char *key, const char *value)
{
	char *begin = l->at;

	if (!value || !*value)
		return;
	if (strlen(key) + 8 > (size_t)(l->end - l->at))
		return;
	put(l, ",\"");
	put(l, key);
	put(l, "\":");
	put_string(l, value);
	if (l->at[-1] != '"')
		l->at = begin;
}

static void put_number(struct line *l, const char *key, uint64_t v)
{
	char text[64];

	if (!v)
		return;
	snprintf(text, sizeof(text), ",\"%s\":%" PRIu64, key, v);
	put(l, text);
}

size_t bl_event_line(char buf[EVENT_LINE_MAX], const struct bl_event *e, const char *role,
		     uint64_t seq, uint64_t unix_ns, const char *text)
{
	struct line l = { .at = buf, .end = buf + EVENT_LINE_MAX - 2 }; /* "}\n" */
	time_t s = (time_t)(unix_ns / 1000000000);
	char head[160], date[32];
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(head, sizeof(head),
		 "{\"schema\":%d,\"seq\":%" PRIu64 ",\"time\":\"%s.%06uZ\",\"unix_ns\":%" PRIu64,
		 EVENT_SCHEMA, seq, date, (unsigned int)(unix_ns % 1000000000 / 1000), unix_ns);
	put(&l, head);
	put_text(&l, "event", bl_event_name(e->kind));
	put_text(&l, "level",
		 e->level <= BL_LOG_ERR    ? "error"
		 : e->level == BL_LOG_WARN ? "warning"
					   : "info");
	put_text(&l, "role", role);
	put_text(&l, "node", e->node);
#define PUT(member, json, journal) put_number(&l, json, e->member);
	BL_EVENT_NUMBERS(PUT)
#undef PUT
	/* The texts have no more than a quarter each, so that the sentence has its place, too. */
#define PUT(member, json, journal)                                            \
	do {                                                                  \
		char cut[EVENT_LINE_MAX / 8];                                 \
		snprintf(cut, sizeof(cut), "%s", e->member ? e->member : ""); \
		put_text(&l, json, cut);                                      \
	} while (0);
	BL_EVENT_TEXTS(PUT)
#undef PUT
	put_text(&l, "text", text);
	*l.at++ = '}';
	*l.at++ = '\n';
	return (size_t)(l.at - buf);
}

/* ---- files ---- */

static struct event_file *find_file(const char *node)
{
	unsigned int k;

	for (k = 0; node && k < FILES_MAX; k++)
		if (atomic_load_explicit(&files[k].used, memory_order_acquire) &&
		    !strcmp(files[k].node, node))
			return &files[k];
	return NULL;
}

static int open_file(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
		    0644);
}

/* One thread renames the file and begins a new one; others go on to write meanwhile. */
static void rotate(struct event_file *f)
{
	char old[sizeof(f->path) + 2];
	int fd;

	if (atomic_flag_test_and_set(&f->rotating))
		return;
	if (atomic_load(&f->bytes) >= EVENT_FILE_BYTES) {
		snprintf(old, sizeof(old), "%s.1", f->path);
		fd = rename(f->path, old) ? -1 : open_file(f->path);
		if (fd >= 0) {
			dup3(fd, f->fd, O_CLOEXEC);
			close(fd);
		}
		/* If it cannot be renamed, it is tried again after as many bytes more. */
		atomic_store(&f->bytes, 0);
	}
	atomic_flag_clear(&f->rotating);
}

static uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void append(struct event_file *f, const struct bl_event *e, const char *text)
{
	char line[EVENT_LINE_MAX];
	size_t n = bl_event_line(line, e, f->role, atomic_fetch_add(&f->seq, 1) + 1, realtime_ns(),
				 text);

	/* What cannot be written (no memory) is a gap in the numbers. */
	if (write(f->fd, line, n) == (ssize_t)n &&
	    atomic_fetch_add(&f->bytes, n) + n >= EVENT_FILE_BYTES)
		rotate(f);
}

/*
 * Continues the numbers of the file @fd. A last line that was torn, by a process that was killed or
 * for lack of memory, is ended, so that the next one is whole.
 */
static uint64_t last_seq(const char *path)
{
	char tail[2 * EVENT_LINE_MAX + 1], *p, *at = NULL;
	uint64_t seq = 0;
	struct stat st;
	ssize_t n;
	int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return 0;
	}
	n = pread(fd, tail, sizeof(tail) - 1,
		  st.st_size < (off_t)sizeof(tail) - 1 ? 0 : st.st_size - (off_t)sizeof(tail) + 1);
	tail[n > 0 ? n : 0] = '\0';
	for (p = tail; (p = strstr(p, "{\"schema\":1,\"seq\":")); p++)
		at = p;
	if (at)
		sscanf(at, "{\"schema\":1,\"seq\":%" SCNu64, &seq);
	if (n > 0 && tail[n - 1] != '\n' && write(fd, "\n", 1) != 1)
		seq++;
	close(fd);
	return seq;
}

int bl_event_file_open(const char *node, const char *role, const char *path)
{
	struct event_file *f = files;
	struct stat st;

	while (f < files + FILES_MAX && atomic_load(&f->used))
		f++;
	if (f == files + FILES_MAX)
		return -EMFILE;
	atomic_store(&f->seq, last_seq(path));
	f->fd = open_file(path);
	if (f->fd < 0)
		return -errno;
	if (fstat(f->fd, &st) || !S_ISREG(st.st_mode)) {
		close(f->fd);
		return -EEXIST;
	}
	atomic_store(&f->bytes, (uint64_t)st.st_size);
	snprintf(f->node, sizeof(f->node), "%s", node);
	snprintf(f->role, sizeof(f->role), "%s", role);
	snprintf(f->path, sizeof(f->path), "%s", path);
	atomic_flag_clear(&f->rotating);
	atomic_store_explicit(&f->used, true, memory_order_release);
	return 0;
}

void bl_event_file_close(const char *node, const char *role)
{
	unsigned int k;

	for (k = 0; k < FILES_MAX; k++)
		if (atomic_load(&files[k].used) && !strcmp(files[k].node, node) &&
		    !strcmp(files[k].role, role)) {
			atomic_store(&files[k].used, false);
			close(files[k].fd);
			return;
		}
}

/* ---- events ---- */

void bl_event_role(const char *role)
{
	snprintf(process_role, sizeof(process_role), "%s", role);
}

void bl_event(const struct bl_event *e, const char *fmt, ...)
{
	struct event_file *f = find_file(e->node);
	struct bl_log_field v[20];
	unsigned int n = 0;
	char text[TEXT_MAX], numbers[8][24];
	unsigned int k = 0;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	v[n++] = (struct bl_log_field){ "BARLINE_EVENT", bl_event_name(e->kind) };
	v[n++] = (struct bl_log_field){ "BARLINE_ROLE", f ? f->role : process_role };
	v[n++] = (struct bl_log_field){ "BARLINE_NODE", e->node };
#define ADD(member, json, journal) v[n++] = (struct bl_log_field){ journal, e->member };
	BL_EVENT_TEXTS(ADD)
#undef ADD
#define ADD(member, json, journal)                                               \
	if (e->member) {                                                         \
		snprintf(numbers[k], sizeof(numbers[k]), "%" PRIu64, e->member); \
		v[n++] = (struct bl_log_field){ journal, numbers[k++] };         \
	}
	BL_EVENT_NUMBERS(ADD)
#undef ADD
	if (!bl_log_fields(e->level, v, n, text))
		bl_log(e->level, "%s", text);
	if (f)
		append(f, e, text);
}
