// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Does one step, by netlink, below /proc/sys, or on a file. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/setup/setup.h"

/** struct prefix - an address or network with its length. */
struct prefix {
	int family;
	uint8_t ip[16];
	uint8_t len;
};

static struct prefix parse(const char *text)
{
	struct prefix p = { .family = strchr(text, ':') ? AF_INET6 : AF_INET };
	char ip[SETUP_TEXT];
	const char *slash = strchr(text, '/');

	snprintf(ip, sizeof(ip), "%.*s", (int)strcspn(text, "/"), text);
	inet_pton(p.family, ip, p.ip);
	p.len = slash ? (uint8_t)atoi(slash + 1) : p.family == AF_INET ? 32 : 128;
	return p;
}

static int do_link(struct nl *nl, const struct setup_step *s, const char *to)
{
	unsigned int ifindex = if_nametoindex(s->dev);

	if (s->kind == SETUP_BRIDGE && to)
		return nl_bridge(nl, s->dev);
	if (!ifindex)
		return -ENODEV;
	if (s->kind == SETUP_BRIDGE)
		return nl_del(nl, ifindex);
	if (s->kind == SETUP_MTU)
		return nl_mtu(nl, ifindex, to ? (uint32_t)atoi(to) : 0);
	if (s->kind == SETUP_UP)
		return to && !strcmp(to, "up") ? nl_up(nl, ifindex) : nl_down(nl, ifindex);
	if (to && !if_nametoindex(to))
		return -ENODEV;
	return nl_master(nl, ifindex, to ? if_nametoindex(to) : 0);
}

static int do_address(struct nl *nl, const struct setup_step *s, const char *to)
{
	unsigned int ifindex = if_nametoindex(s->dev);
	struct prefix p = parse(s->arg);

	if (!ifindex)
		return -ENODEV;
	return to ? nl_addr(nl, ifindex, p.family, p.ip, p.len)
		  : nl_addr_del(nl, ifindex, p.family, p.ip, p.len);
}

static int do_neighbour(struct nl *nl, const struct setup_step *s, const char *to)
{
	unsigned int ifindex = if_nametoindex(s->dev), v[6], k;
	struct prefix p = parse(s->arg);
	uint8_t mac[6];

	if (!ifindex)
		return -ENODEV;
	if (!to)
		return nl_neigh_del(nl, ifindex, p.family, p.ip);
	if (sscanf(to, "%2x:%2x:%2x:%2x:%2x:%2x", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5]) != 6)
		return -EINVAL;
	for (k = 0; k < 6; k++)
		mac[k] = (uint8_t)v[k];
	return nl_neigh(nl, ifindex, p.family, p.ip, mac);
}

static int do_route(struct nl *nl, const struct setup_step *s, bool add)
{
	char via[INET6_ADDRSTRLEN], dev[IFNAMSIZ];
	struct prefix p = parse(s->arg), router;
	struct nl_hop hop = { .via = router.ip };
	const char *way = add ? s->after : s->before;

	if (!way)
		way = s->after ? s->after : s->before;
	if (sscanf(way, "via %45s dev %15s", via, dev) != 2)
		return -EINVAL;
	router = parse(via);
	hop.ifindex = if_nametoindex(dev);
	if (!hop.ifindex)
		return -ENODEV;
	return nl_route_via(nl, add, p.family, p.ip, p.len, &hop);
}

static int write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			left -= (size_t)n;
		}
	}
	return 0;
}

static int do_sysctl(const struct setup_step *s, const char *to)
{
	char path[SETUP_ARG + 16];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/sys/%s", s->arg);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = write_all(fd, to ? to : "");
	close(fd);
	return rc;
}

/*
 * Writes the file as a whole: whoever reads it sees the old one or the new one. Owner and mode of a
 * file that is replaced stay, and so does a symbolic link to it.
 */
static int do_file(const struct setup_step *s, const char *to)
{
	char target[PATH_MAX], path[PATH_MAX + 8];
	struct stat old;
	bool was;
	int fd, rc;

	if (!to)
		return unlink(s->arg) ? -errno : 0;
	was = realpath(s->arg, target) && !stat(target, &old);
	if (!was)
		snprintf(target, sizeof(target), "%s", s->arg);
	snprintf(path, sizeof(path), "%s.XXXXXX", target);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = write_all(fd, to);
	if (!rc && was && fchown(fd, old.st_uid, old.st_gid))
		rc = -errno;
	if (!rc &&
	    (fchmod(fd, was ? old.st_mode & 07777 : 0644) || fsync(fd) || rename(path, target)))
		rc = -errno;
	if (rc)
		unlink(path);
	close(fd);
	return rc;
}

static int do_step(struct nl *nl, const struct setup_step *s, bool back)
{
	const char *to = back ? s->before : s->after;

	switch (s->kind) {
	case SETUP_UP:
	case SETUP_MTU:
	case SETUP_BRIDGE:
	case SETUP_MASTER:
		return do_link(nl, s, to);
	case SETUP_ADDRESS:
		return do_address(nl, s, to);
	case SETUP_NEIGHBOUR:
		return do_neighbour(nl, s, to);
	case SETUP_ROUTE:
		return do_route(nl, s, to);
	case SETUP_SYSCTL:
		return do_sysctl(s, to);
	case SETUP_DIR:
		return (to ? mkdir(s->arg, 0755) : rmdir(s->arg)) ? -errno : 0;
	case SETUP_FILE:
		return do_file(s, to);
	default:
		return -EINVAL;
	}
}

int setup_do(struct nl *nl, const struct setup_step *s, bool back, struct bl_err *err)
{
	int rc = do_step(nl, s, back);
	char command[SETUP_ARG + 64];

	if (!rc)
		return 0;
	return bl_fail(err, -rc, "`%s`: %s%s", setup_command(s, back, command, sizeof(command)),
		       strerror(-rc), rc == -EPERM || rc == -EACCES ? "; run this as root" : "");
}
