// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The text of a step: the command of iproute2 or sysctl that it is equal to, and differences. */
#include <stdlib.h>
#include <string.h>

#include "cli/setup/setup.h"

static const char *family(const char *text)
{
	return strchr(text, ':') ? "ip -6" : "ip";
}

static unsigned int count_lines(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* The dots of an interface's name are slashes in sysctl's notation, so slashes stay then. */
static void put_sysctl(const char *path, const char *value, char *to, size_t size)
{
	bool dots = strchr(path, '.');
	char *c;

	snprintf(to, size, "sysctl -w %s=%s", path, value);
	for (c = to + strlen("sysctl -w "); !dots && *c && *c != '='; c++)
		if (*c == '/')
			*c = '.';
}

static void put_file(const char *path, const char *text, char *to, size_t size)
{
	if (text)
		snprintf(to, size, "write %s (%u lines)", path, count_lines(text));
	else
		snprintf(to, size, "rm %s", path);
}

char *setup_command(const struct setup_step *s, bool back, char *to, size_t size)
{
	const char *now = back ? s->before : s->after;
	const char *was = back ? s->after : s->before;

	switch (s->kind) {
	case SETUP_UP:
		snprintf(to, size, "ip link set %s %s", s->dev, now ? now : "down");
		break;
	case SETUP_MTU:
		snprintf(to, size, "ip link set %s mtu %s", s->dev, now ? now : "");
		break;
	case SETUP_BRIDGE:
		if (now)
			snprintf(to, size,
				 "ip link add %s type bridge stp_state 0 mcast_snooping 0", s->dev);
		else
			snprintf(to, size, "ip link del %s", s->dev);
		break;
	case SETUP_MASTER:
		snprintf(to, size, now ? "ip link set %s master %s" : "ip link set %s nomaster",
			 s->dev, now);
		break;
	case SETUP_ADDRESS:
		snprintf(to, size, "ip address %s %s dev %s%s", now ? "add" : "del", s->arg, s->dev,
			 now && strchr(s->arg, ':') ? " nodad" : "");
		break;
	case SETUP_ROUTE:
		snprintf(to, size, "%s route %s %s %s%s", family(s->arg), now ? "add" : "del",
			 s->arg,
			 now   ? now
			 : was ? was
			       : "",
			 now ? " proto static" : "");
		break;
	case SETUP_NEIGHBOUR:
		if (now)
			snprintf(to, size, "ip neigh replace %s lladdr %s nud permanent dev %s",
				 s->arg, now, s->dev);
		else
			snprintf(to, size, "ip neigh del %s dev %s", s->arg, s->dev);
		break;
	case SETUP_SYSCTL:
		put_sysctl(s->arg, now ? now : "", to, size);
		break;
	case SETUP_DIR:
		snprintf(to, size, "%s %s", now ? "mkdir" : "rmdir", s->arg);
		break;
	case SETUP_FILE:
		put_file(s->arg, now, to, size);
		break;
	default:
		*to = '\0';
	}
	return to;
}

/* ---- differences ---- */

/** struct lines - a text, line by line. */
struct lines {
	const char **v; /* where each begins */
	unsigned int n;
};

static struct lines split(const char *text)
{
	struct lines l = { .v = calloc(count_lines(text) + 2, sizeof(*l.v)) };

	while (l.v && *text) {
		l.v[l.n++] = text;
		text = strchrnul(text, '\n');
		text += *text == '\n';
	}
	return l;
}

static int line_length(const char *line)
{
	return (int)strcspn(line, "\n");
}

static bool same_line(const char *a, const char *b)
{
	return line_length(a) == line_length(b) && !strncmp(a, b, (size_t)line_length(a));
}

/* Whether the line is among the @n at @v. */
static bool is_among(const char *line, const char **v, unsigned int n)
{
	while (n--)
		if (same_line(line, *v++))
			return true;
	return false;
}

/*
 * Lines that both texts begin or end with are left out. Of the rest, a line of the one that is not
 * in the other is printed; lines in another order are not, unless nothing else differs.
 */
void setup_diff(const char *before, const char *after, FILE *to)
{
	struct lines a = split(before), b = split(after);
	unsigned int head = 0, i, n = 0;

	if (!a.v || !b.v)
		a.n = b.n = 0;
	while (head < a.n && head < b.n && same_line(a.v[head], b.v[head]))
		head++;
	while (a.n > head && b.n > head && same_line(a.v[a.n - 1], b.v[b.n - 1])) {
		a.n--;
		b.n--;
	}
	for (i = head; i < a.n; i++)
		if (!is_among(a.v[i], b.v + head, b.n - head))
			n += fprintf(to, "- %.*s\n", line_length(a.v[i]), a.v[i]) > 0;
	for (i = head; i < b.n; i++)
		if (!is_among(b.v[i], a.v + head, a.n - head))
			n += fprintf(to, "+ %.*s\n", line_length(b.v[i]), b.v[i]) > 0;
	if (!n && (a.n > head || b.n > head))
		fputs("(the order of the lines, or how often one is there)\n", to);
	free(a.v);
	free(b.v);
}
