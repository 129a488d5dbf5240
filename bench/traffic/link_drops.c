// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See link_drops.h. A child enters each namespace in turn and writes the counters into a pipe, so
 * that this process stays in its namespace.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/traffic/link_drops.h"
#include "cli/util/out.h"

/* One counter. It is written to the pipe in one piece, because it is shorter than PIPE_BUF. */
struct counter {
	char node[64], ifname[IFNAMSIZ], name[ETH_GSTRING_LEN + 1];
	uint64_t n;
};

struct link_drops {
	const char *netns_dir;
	struct counter *v;
	size_t n;
};

static int ethtool_ioctl(int fd, const char *ifname, void *what)
{
	struct ifreq ifr = { .ifr_data = what };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	return ioctl(fd, SIOCETHTOOL, &ifr);
}

/* writes the counters of an interface to the pipe @to; some interfaces, as lo, have none */
static void write_interface(int fd, const char *node, const char *ifname, int to)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ethtool_gstrings *names;
	struct ethtool_stats *stats;
	uint32_t i, n;

	if (ethtool_ioctl(fd, ifname, &info) || !info.n_stats)
		return;
	n = info.n_stats;
	names = calloc(1, sizeof(*names) + (size_t)n * ETH_GSTRING_LEN);
	stats = calloc(1, sizeof(*stats) + n * sizeof(uint64_t));
	if (!names || !stats)
		_exit(1);
	*names = (struct ethtool_gstrings){ .cmd = ETHTOOL_GSTRINGS,
					    .string_set = ETH_SS_STATS,
					    .len = n };
	*stats = (struct ethtool_stats){ .cmd = ETHTOOL_GSTATS, .n_stats = n };
	if (!ethtool_ioctl(fd, ifname, names) && !ethtool_ioctl(fd, ifname, stats))
		for (i = 0; i < n && i < names->len && i < stats->n_stats; i++) {
			struct counter c = { .n = stats->data[i] };

			snprintf(c.node, sizeof(c.node), "%s", node);
			snprintf(c.ifname, sizeof(c.ifname), "%s", ifname);
			memcpy(c.name, names->data + i * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
			/*
			 * "rx_queue_0_xdp_drops" counts verdicts of our XDP programs, which are
			 * counted by reason.
			 */
			if ((strstr(c.name, "drop") || strstr(c.name, "err")) &&
			    !strstr(c.name, "_xdp_drops") && write(to, &c, sizeof(c)) != sizeof(c))
				_exit(1);
		}
	free(names);
	free(stats);
}

/*
 * Writes tx_dropped to the pipe @to. Only it counts the frames that a veth could not pass on
 * because the ring of its other end was full.
 */
static void write_tx_dropped(const struct rtnl_link_stats *s, const char *node, const char *ifname,
			     int to)
{
	struct counter c = { .name = "tx_dropped", .n = s->tx_dropped };

	snprintf(c.node, sizeof(c.node), "%s", node);
	snprintf(c.ifname, sizeof(c.ifname), "%s", ifname);
	if (write(to, &c, sizeof(c)) != sizeof(c))
		_exit(1);
}

/*
 * Writes all counters of this namespace to the pipe @to. getifaddrs(3) lists each interface once
 * with an address of AF_PACKET and the link's counters.
 */
static void write_namespace(const char *node, int to)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifaddrs *all, *a;

	if (fd < 0 || getifaddrs(&all))
		_exit(1);
	for (a = all; a; a = a->ifa_next) {
		if (!a->ifa_addr || a->ifa_addr->sa_family != AF_PACKET)
			continue;
		write_interface(fd, node, a->ifa_name, to);
		if (a->ifa_data)
			write_tx_dropped(a->ifa_data, node, a->ifa_name, to);
	}
	freeifaddrs(all);
	close(fd);
}

static void write_namespaces(const char *netns_dir, int to)
{
	DIR *dir = netns_dir ? opendir(netns_dir) : NULL;
	struct dirent *e;

	if (!netns_dir) {
		write_namespace("", to);
		return;
	}
	if (!dir)
		_exit(1);
	while ((e = readdir(dir))) {
		int fd = e->d_name[0] == '.' ? -1
					     : openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (setns(fd, CLONE_NEWNET))
			_exit(1);
		close(fd);
		write_namespace(e->d_name, to);
	}
	closedir(dir);
}

/* reads all counters into @d; returns 0, or 1 after a message */
static int read_counters(struct link_drops *d)
{
	int fds[2], st, bad = 0;
	struct counter c;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return cli_fail("pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0) {
		close(fds[0]);
		close(fds[1]);
		return cli_fail("fork: %s", strerror(errno));
	}
	if (!pid) {
		close(fds[0]);
		write_namespaces(d->netns_dir, fds[1]);
		_exit(0);
	}
	close(fds[1]);
	while (!bad && read(fds[0], &c, sizeof(c)) == sizeof(c)) {
		struct counter *v = reallocarray(d->v, d->n + 1, sizeof(*v));

		bad = !v;
		if (v) {
			d->v = v;
			d->v[d->n++] = c;
		}
	}
	close(fds[0]);
	if (waitpid(pid, &st, 0) != pid || st || bad)
		return cli_fail("cannot read what the links dropped%s%s",
				d->netns_dir ? " in " : "", d->netns_dir ? d->netns_dir : "");
	return 0;
}

static void free_drops(struct link_drops *d)
{
	free(d->v);
	free(d);
}

struct link_drops *link_drops_begin(const char *netns_dir)
{
	struct link_drops *d = calloc(1, sizeof(*d));

	if (!d) {
		cli_fail("out of memory");
		return NULL;
	}
	d->netns_dir = netns_dir;
	if (read_counters(d)) {
		free_drops(d);
		return NULL;
	}
	return d;
}

static uint64_t value_before(const struct link_drops *d, const struct counter *c)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (!strcmp(d->v[i].node, c->node) && !strcmp(d->v[i].ifname, c->ifname) &&
		    !strcmp(d->v[i].name, c->name))
			return d->v[i].n;
	return 0;
}

void link_drops_end(struct link_drops *d, json_t *rows)
{
	struct link_drops now = { 0 };
	size_t i;

	if (!d)
		return;
	now.netns_dir = d->netns_dir;
	if (!read_counters(&now))
		for (i = 0; i < now.n; i++) {
			/* tx_dropped has 32 bits, and does not wrap during a measurement */
			uint64_t n = now.v[i].n - value_before(d, &now.v[i]);
			char what[sizeof(now.v[i].ifname) + sizeof(now.v[i].name) + 1];

			if (!n)
				continue;
			snprintf(what, sizeof(what), "%s %s", now.v[i].ifname, now.v[i].name);
			json_array_append_new(rows,
					      json_pack("{s:s, s:s, s:s, s:I, s:s}", "node",
							now.v[i].node[0] ? now.v[i].node : "here",
							"kind", "link", "reason", what, "count",
							(json_int_t)n, "text",
							"the interface dropped it: its ring was "
							"full, or it is down"));
		}
	free(now.v);
	free_drops(d);
}
