/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * See read.h. Pinned maps are opened by loader/load/pin.c.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/time.h"
#include "base/timens.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "core/clock_core.h"
#include "maps/host_abi.h"

int nodes_here(struct bl_node_ref **out, bool all)
{
	struct bl_err err;
	int n;

	if (bl_timens_shifts("monotonic")) {
		cli_fail(BL_TIMENS_SENTENCE, "CLOCK_MONOTONIC");
		return -1;
	}
	n = bl_nodes_find(out, all ? 0 : bl_netns_ino(), &err);
	if (n < 0) {
		cli_fail("%s", err.text);
		return -1;
	}
	if (!n) {
		cli_fail("no barline node in this network namespace; start one with `barline host "
			 "up` or `barline switch up`, or name another namespace with -n");
		return -1;
	}
	return n;
}

int node_value(const struct bl_node_ref *ref, const char *map, uint32_t key, void *value,
	       uint32_t size)
{
	struct bl_err err;
	int fd = bl_map_open(ref, map, size, false, &err), e;

	if (fd < 0) {
		cli_fail("%s", err.text);
		return fd;
	}
	e = bpf_map_lookup_elem(fd, &key, value) ? -errno : 0;
	if (e)
		cli_fail("%s/maps/%s: %s", ref->dir, map, strerror(-e));
	close(fd);
	return e;
}

uint64_t node_now(const struct bl_node_ref *ref, struct bl_clock *clock)
{
	uint64_t mono;

	memset(clock, 0, sizeof(*clock));
	if (node_value(ref, BL_MAP_CLOCK, 0, clock, sizeof(*clock)))
		return 0;
	mono = bl_mono_ns();
	return bl_clock_usable(clock, mono) ? bl_clock_at(clock, mono) : 0;
}

void node_nic(const struct bl_node_ref *ref, char *name, size_t size)
{
	char dir[320], nic[IFNAMSIZ];
	struct dirent *e;
	DIR *d;

	if (bl_node_nic(ref, nic)) {
		snprintf(name, size, "%s", nic);
		return;
	}
	snprintf(name, size, "nic");
	snprintf(dir, sizeof(dir), "%s/links", ref->dir);
	d = opendir(dir);
	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, "xdp-", 4)) {
			char *c;

			snprintf(name, size, "%.15s", e->d_name + 4);
			for (c = name; (c = strchr(c, ':'));)
				*c = '.'; /* bpffs does not allow dots, see maps/meta_abi.h */
			break;
		}
	if (d)
		closedir(d);
}

void node_ports_each(const struct bl_node_ref *ref,
		     void (*fn)(const struct bl_node_ref *ref, uint32_t port, const char *name,
				void *ctx),
		     void *ctx)
{
	struct bl_sw_port p[BL_SW_PORTS_MAX];
	struct bl_err err;
	char nic[16];
	uint32_t k;

	if (ref->role == BL_ROLE_HOST) {
		node_nic(ref, nic, sizeof(nic));
		fn(ref, 0, nic, ctx);
		return;
	}
	/* at once, since a map is opened by three system calls */
	if (bl_map_read_all(ref, BL_MAP_SW_PORTS, sizeof(p[0]), BL_SW_PORTS_MAX, p, &err)) {
		cli_fail("%s", err.text);
		return;
	}
	for (k = 0; k < BL_SW_PORTS_MAX; k++)
		if (p[k].ifindex) {
			p[k].name[sizeof(p[k].name) - 1] = '\0';
			fn(ref, k, p[k].name, ctx);
		}
}

bool node_alive(const struct bl_node_ref *ref)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	/* connect() would wait for a daemon that is stopped and has a full queue */
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool ok;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/host-%" PRIu64 ".sock", BL_RUN_DIR,
		 ref->netns_ino);
	ok = fd >= 0 && !connect(fd, (struct sockaddr *)&sa, sizeof(sa));
	if (fd >= 0)
		close(fd);
	return ok;
}

static int switch_rows(const struct bl_node_ref *ref, const struct bl_counts *counts,
		       struct count_row *out)
{
	struct bl_sw_port ports[BL_SW_PORTS_MAX];
	struct bl_sw_cfg cfg;
	struct bl_err err;
	uint32_t i, n = 0;

	if (node_value(ref, BL_MAP_SW_CFG, 0, &cfg, sizeof(cfg)))
		return -1;
	if (bl_map_read_all(ref, BL_MAP_SW_PORTS, sizeof(ports[0]), BL_SW_PORTS_MAX, ports, &err)) {
		cli_fail("%s", err.text);
		return -1;
	}
	for (i = 0; i <= BL_COUNTS_UNKNOWN; i++) {
		static const struct bl_sw_port none;
		const struct bl_sw_port *p = i < BL_SW_PORTS_MAX ? &ports[i] : &none;
		struct count_row *r = &out[n];

		if (i >= cfg.nports && i != BL_COUNTS_UNKNOWN)
			continue;
		r->key = i;
		r->role = port_role_name(p->role);
		snprintf(r->name, sizeof(r->name), "%.15s", p->ifindex ? p->name : "(no port)");
		r->n = counts[i];
		if (p->ifindex || counts_frames(&r->n))
			n++;
	}
	return (int)n;
}

static int host_rows(const struct bl_node_ref *ref, const struct bl_counts *counts,
		     struct count_row *out)
{
	static const char *const dirs[BL_HC_COUNT] = {
		[BL_HC_INGRESS] = "ingress", [BL_HC_EGRESS] = "egress", [BL_HC_LOCAL] = "local",
		[BL_HC_HOLD] = "hold",       [BL_HC_PACE] = "pace",     [BL_HC_CLONE] = "clone",
		[BL_HC_LIFT] = "lift"
	};
	char nic[16];
	uint32_t i;

	node_nic(ref, nic, sizeof(nic));
	for (i = 0; i < BL_HC_COUNT; i++) {
		out[i].key = i;
		out[i].role = dirs[i];
		snprintf(out[i].name, sizeof(out[i].name), "%s",
			 i == BL_HC_LOCAL  ? "lo"
			 : i == BL_HC_HOLD ? "bl0d"
					   : nic);
		out[i].n = counts[i];
	}
	return BL_HC_COUNT;
}

int node_count_rows(const struct bl_node_ref *ref, struct count_row **out)
{
	bool is_switch = ref->role == BL_ROLE_SWITCH;
	uint32_t keys = is_switch ? BL_COUNTS_UNKNOWN + 1 : BL_HC_COUNT;
	struct bl_counts *counts = calloc(keys, sizeof(*counts));
	struct bl_err err;
	int fd = bl_map_open(ref, BL_MAP_COUNTS,
			     is_switch ? sizeof(struct bl_sw_counts)
				       : sizeof(struct bl_host_counts),
			     false, &err),
	    n = -1, rc;

	*out = calloc(keys, sizeof(**out));
	if (fd < 0) {
		cli_fail("%s", err.text);
	} else {
		rc = counts && *out ? bl_counts_read(fd, counts, keys) : -ENOMEM;
		if (rc)
			cli_fail("%s/maps/%s: %s", ref->dir, BL_MAP_COUNTS, strerror(-rc));
		else
			n = is_switch ? switch_rows(ref, counts, *out)
				      : host_rows(ref, counts, *out);
		close(fd);
	}
	free(counts);
	return n;
}
