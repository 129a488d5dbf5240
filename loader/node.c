// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Opening, closing and detaching nodes of either role.
 *
 * A directory of pins is taken over if its meta map is sound and any of its links is still
 * attached. A directory without attached links is what a killed start left behind, or belonged to a
 * network namespace that is gone and whose inode number was reused. It is removed, and the node is
 * made anew.
 */
#include "loader/node.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/netns.h"
#include "base/timens.h"
#include "core/clock_core.h"
#include "loader/admission/admission.h"
#include "loader/admission/bl0.h"
#include "loader/admission/fastpass.h"
#include "loader/admission/pacer.h"
#include "loader/admission/top_learn.h"
#include "loader/auth.h"
#include "loader/busy.h"
#include "loader/config.h"
#include "loader/control.h"
#include "loader/defaults.h"
#include "loader/hook_watch.h"
#include "loader/host.h"
#include "loader/link_watch.h"
#include "loader/load/attach.h"
#include "loader/load/avoid.h"
#include "loader/load/chain.h"
#include "loader/load/dispatcher.h"
#include "loader/load/maps.h"
#include "loader/load/pin.h"
#include "loader/load/tx_cpu.h"
#include "loader/loop.h"
#include "loader/nic.h"
#include "loader/node_agent.h"
#include "loader/node_events.h"
#include "loader/node_priv.h"
#include "loader/pulse.h"
#include "loader/spare.h"
#include "loader/order/beacon.h"
#include "loader/order/clock.h"
#include "loader/order/drain.h"
#include "loader/order/endpoint_again.h"
#include "loader/order/endpoint_attach.h"
#include "loader/order/fence.h"
#include "loader/order/keep.h"
#include "loader/order/limits.h"
#include "loader/order/link_check.h"
#include "loader/order/void.h"
#include "loader/run_files.h"
#include "loader/running.h"
#include "loader/switch.h"
#include "loader/switch_source.h"
#include "proto/fastpass_file.h"
#include "proto/ident.h"

/* How long a start waits for the present holder of the lock, which may be about to end. */
#define LOCK_WAIT_MS 3000

/* The id of a node with a certificate is the certificate's: a controller accepts no other. */
static int take_certified_id(struct bl_node *n, struct bl_err *err)
{
	struct bl_ident who;
	int rc;

	if (n->cfg.node_id || !*n->cfg.ctl.cert)
		return 0;
	rc = bl_ident_of_file(&who, n->cfg.ctl.cert, err);
	if (!rc && who.role == BL_IDENT_NODE)
		n->cfg.node_id = who.node;
	return rc;
}

static int open_directory(struct bl_node *n, struct bl_err *err)
{
	const char *role = bl_role_name(n->cfg.role);
	struct timespec now;
	int rc, links;

	rc = bl_meta_read(n->dir, &n->meta);
	links = bl_links_alive(n->dir);
	if (links && rc)
		return bl_fail(err, EPROTO,
			       "%s has attached programs but no valid meta map; `barline %s "
			       "detach` removes them, then start again",
			       n->dir, role);
	if (links && n->meta.abi_version != BL_ABI_VERSION)
		return bl_fail(err, EPROTO,
			       "%s was made with ABI version %u, this build speaks %u; `barline %s "
			       "detach` removes it, then start again",
			       n->dir, n->meta.abi_version, BL_ABI_VERSION, role);
	if (links && (n->meta.role != (uint32_t)n->cfg.role || n->meta.netns_ino != n->netns_ino))
		return bl_fail(err, EPROTO,
			       "the meta map in %s belongs to another node; `barline %s detach` "
			       "removes it, then start again",
			       n->dir, role);
	if (!links) {
		bl_nic_say_left(n->dir);
		bl_detach_links(n->dir, NULL, NULL);
		bl_nic_restore(n->dir, n->cfg.role, 0);
		rc = bl_dir_remove(n->dir);
		if (rc)
			return bl_fail(err, -rc, "cannot remove the stale %s: %s", n->dir,
				       strerror(-rc));
		rc = bl_dir_make(n->dir, err);
		if (rc)
			return rc;
		n->fresh = true;
		clock_gettime(CLOCK_REALTIME, &now);
		n->meta = (struct bl_meta){
			.magic = BL_META_MAGIC,
			.abi_version = BL_ABI_VERSION,
			.role = n->cfg.role,
			.size = sizeof(n->meta),
			.netns_ino = n->netns_ino,
			.created_ns = (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec,
		};
	}
	rc = take_certified_id(n, err);
	if (rc)
		return rc;
	if (n->cfg.node_id)
		n->meta.node_id = n->cfg.node_id;
	while (!n->meta.node_id)
		if (getrandom(&n->meta.node_id, sizeof(n->meta.node_id), 0) < 0)
			return bl_fail(err, errno, "getrandom: %s", strerror(errno));
	if (*n->cfg.name)
		snprintf(n->meta.name, sizeof(n->meta.name), "%s", n->cfg.name);
	else if (!*n->meta.name)
		snprintf(n->meta.name, sizeof(n->meta.name), "%s-%08x", role, n->meta.node_id);
	snprintf(n->meta.build, sizeof(n->meta.build), "%s", BL_BUILD);
	return 0;
}

static void undo_fresh_start(struct bl_node *n)
{
	if (!n->fresh)
		return;
	bl_bl0_remove(n->dir, NULL);
	bl_nic_unthread(n->dir, 0);
	bl_detach_links(n->dir, NULL, NULL);
	bl_nic_restore(n->dir, n->cfg.role, 0);
	bl_dir_remove(n->dir);
}

static int open_in_netns(struct bl_node *n, const struct bl_node_cfg *cfg, struct bl_err *err)
{
	int rc;

	n->netns_ino = bl_netns_ino();
	n->netns_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (!n->netns_ino || n->netns_fd < 0)
		return bl_fail(err, ENOENT,
			       "cannot determine the network namespace; is /proc mounted?");
	bl_keep_configure(n); /* it makes a path of the namespace's number */
	rc = bl_bpffs_mount(err);
	if (rc)
		return rc;
	snprintf(n->dir, sizeof(n->dir), "%s/%s-%" PRIu64, BL_BPFFS, bl_role_name(n->cfg.role),
		 n->netns_ino);
	n->lock_fd = bl_node_lock(n->cfg.role, n->netns_ino, LOCK_WAIT_MS, err);
	if (n->lock_fd < 0)
		return n->lock_fd;
	rc = open_directory(n, err);
	if (!rc)
		bl_node_events_open(n);
	if (!rc && !n->fresh)
		rc = bl_dispatcher_check(n->dir, cfg->dispatcher, err);
	if (!rc)
		rc = bl_nic_open(n, err);
	if (!rc)
		rc = bl_hook_watch_open(n, err);
	if (!rc)
		rc = bl_keep_early(n, err);
	if (!rc)
		rc = n->cfg.role == BL_ROLE_SWITCH ? bl_switch_open(n, cfg, err)
						   : bl_host_open(n, cfg, err);
	/*
	 * From here on the node's functions may be called in any network namespace; they enter the
	 * node's through its descriptor.
	 */
	if (!rc && *n->cfg.netns)
		snprintf(n->cfg.netns, sizeof(n->cfg.netns), "/proc/self/fd/%d", n->netns_fd);
	if (!rc && n->cfg.role == BL_ROLE_HOST)
		rc = bl_endpoints_open(n, err);
	if (!rc)
		rc = bl_node_agent_open(n, err);
	if (!rc && n->cfg.role == BL_ROLE_HOST)
		bl_endpoints_adopted(n);
	if (!rc && n->cfg.role == BL_ROLE_HOST)
		rc = bl_limits_open(n, err);
	if (!rc && n->cfg.role == BL_ROLE_HOST)
		rc = bl_voids_open(n, err);
	if (!rc)
		rc = bl_top_learn_open(n, err);
	if (!rc)
		rc = bl_control_open(n, err);
	if (!rc && n->cfg.role == BL_ROLE_HOST)
		rc = bl_drain_open(n, err);
	/*
	 * The last step. A caretaker continues as long as anything before can fail, such as a
	 * certificate that cannot be read.
	 */
	if (!rc)
		rc = bl_keep_take_over(n, err);
	if (!rc)
		bl_pulse_open(n, 0);
	if (rc)
		undo_fresh_start(n);
	return rc;
}

static int read_fastpass_file(struct bl_node *n, struct bl_err *err)
{
	struct bl_admission_cfg *a = &n->cfg.admission;
	int rc;

	if (!a->on || a->fp || !*a->fp_path || n->cfg.role != BL_ROLE_HOST)
		return 0;
	n->fp_file = calloc(1, sizeof(*n->fp_file));
	if (!n->fp_file)
		return bl_fail(err, ENOMEM, "out of memory");
	rc = bl_fp_load(n->fp_file, a->fp_path, err);
	if (!rc)
		a->fp = n->fp_file;
	return rc;
}

/*
 * Finds the CPUs of the datapath of @n, in whose network namespace this thread is.
 * @cfg: with its ports.
 */
static void find_datapath_cpus(struct bl_node *n, const struct bl_node_cfg *cfg)
{
	struct bl_iface nic;
	struct bl_err why;
	cpu_set_t queue;

	bl_node_cpus(cfg, &n->datapath_cpus);
	if (cfg->role == BL_ROLE_HOST && !cfg->ncpus && !bl_iface_get(&nic, cfg->ifname, &why)) {
		bl_tx_cpus(&nic, n->host_cfg.queue, &queue);
		CPU_OR(&n->datapath_cpus, &n->datapath_cpus, &queue);
	}
}

void bl_node_withdraw(const struct bl_node *n)
{
	cpu_set_t before;

	bl_cpus_avoid(&n->datapath_cpus, &before);
}

int bl_node_open(struct bl_node **out, struct bl_server *s, const struct bl_node_cfg *cfg,
		 struct bl_err *err)
{
	struct bl_node *n;
	struct bl_err why;
	cpu_set_t before;
	bool avoids;
	int old, rc;

	*out = NULL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return bl_fail(err, ENOMEM, "out of memory");
	n->netns_fd = n->lock_fd = n->clock.fd = n->beacon_sock = n->listen_fd = n->links_fd =
		n->keep_fd = n->auth_fd = n->nic_fd = n->hook_watch_fd = -1;
	n->xdp_prog = n->tc_prog = n->devmap_prog = n->clone_prog = -1;
	memset(n->bl0_prog, -1, sizeof(n->bl0_prog));
	n->host_cfg_fd = n->pages_fd = n->hints_fd = n->eps_fd = n->rings_fd = n->page_fd =
		n->failures_fd = n->relayed_fd = n->note_fd = n->queue_prog = n->local_prog = -1;
	bl_fence_none(&n->fence);
	n->srv = s;
	n->cfg = *cfg;
	n->cfg.ports = NULL;
	n->cfg.fdb = NULL;
	n->cfg.ports_count = n->cfg.fdb_count = 0;
	bl_node_defaults(&n->cfg);
	n->fence.role = cfg->role;
	bl_libbpf_listen();
	n->next = s->nodes;
	s->nodes = n;
	rc = bl_config_copy(&n->given, cfg, err);
	if (!rc)
		rc = bl_node_cfg_check(&n->cfg, err);
	if (!rc && (bl_timens_shifts("monotonic") || bl_timens_shifts("boottime")))
		rc = bl_fail(err, ENOTSUP, BL_TIMENS_SENTENCE, "CLOCK_MONOTONIC or CLOCK_BOOTTIME");
	if (!rc)
		rc = bl_node_xdp_check(cfg, err);
	if (!rc)
		rc = read_fastpass_file(n, err);
	if (!rc) {
		struct bl_node_cfg whole = n->cfg;

		whole.ports = cfg->ports;
		whole.ports_count = cfg->ports_count;
		rc = bl_admission_check(&whole, err);
	}
	if (!rc)
		rc = bl_beacon_start(s, err);
	if (!rc && bl_admission_paced(cfg))
		rc = bl_pacer_start(s, bl_admission_cpu(&n->cfg), err);
	if (!rc && n->cfg.admission.on && n->cfg.admission.fp)
		rc = bl_fastpass_start(s, err);
	if (!rc)
		rc = bl_netns_enter(cfg->netns, &old, err);
	if (!rc) {
		/* Threads of the datapath have been started above. */
		find_datapath_cpus(n, cfg);
		avoids = bl_cpus_avoid(&n->datapath_cpus, &before);
		rc = open_in_netns(n, cfg, err);
		if (avoids)
			bl_cpus_return(&before);
		bl_netns_leave(old);
	}
	if (!rc && bl_running_write(n, &why))
		bl_log(BL_LOG_WARN, "%s: `barline config` will not know the configuration: %s",
		       n->meta.name, why.text);
	if (rc)
		bl_node_close(n);
	else
		*out = n;
	return rc;
}

enum bl_xdp_mode bl_node_mode(const struct bl_node *n)
{
	return n->natt ? n->att[0].mode : n->cfg.mode;
}

const char *bl_node_name(const struct bl_node *n)
{
	return n->meta.name;
}

const char *bl_node_dir(const struct bl_node *n)
{
	return n->dir;
}

const struct bl_attached *bl_node_iface(const struct bl_node *n, unsigned int k)
{
	return k < n->natt ? &n->att[k] : NULL;
}

uint64_t bl_node_bus_time(const struct bl_node *n)
{
	return bl_clock_at(n->clock.shared, bl_mono_ns());
}

struct bl_fence *bl_node_fence(struct bl_node *n)
{
	return &n->fence;
}

void bl_node_close(struct bl_node *n)
{
	int *fds[] = { &n->host_cfg_fd, &n->pages_fd,    &n->hints_fd,    &n->eps_fd,
		       &n->rings_fd,    &n->page_fd,     &n->failures_fd, &n->relayed_fd,
		       &n->note_fd,     &n->netns_fd,    &n->xdp_prog,    &n->tc_prog,
		       &n->queue_prog,  &n->devmap_prog, &n->clone_prog,  &n->local_prog };
	struct bl_node **at;
	unsigned int k;

	bl_control_close(n);
	bl_spare_close(n);
	bl_pulse_close(n, false);
	bl_drain_close(n);
	bl_node_agent_close(n);
	bl_fastpass_remove(n);
	bl_pacer_remove(&n->pace);
	bl_beacon_remove(n);
	bl_top_learn_close(n);
	bl_limits_close(n);
	bl_voids_close(n);
	bl_endpoints_close(n);
	bl_links_unwatch(n);
	bl_nic_close(n);
	bl_hook_watch_close(n);
	bl_sources_close(n);
	bl_link_check_close(n);
	bl_fence_close(&n->fence);
	bl_auth_close(n);
	bl_clock_close(&n->clock);
	bl_keep_close(n);
	bl_node_events_close(n);
	for (at = &n->srv->nodes; *at; at = &(*at)->next) {
		if (*at == n) {
			*at = n->next;
			break;
		}
	}
	for (k = 0; k < sizeof(fds) / sizeof(fds[0]); k++)
		if (*fds[k] >= 0)
			close(*fds[k]);
	for (k = 0; k < BL_BL0_PROGS; k++)
		if (n->bl0_prog[k] >= 0)
			close(n->bl0_prog[k]);
	if (n->lock_fd >= 0 && access(n->dir, F_OK)) {
		bl_run_files_forget(n->cfg.role, n->netns_ino);
	}
	bl_node_unlock(n->cfg.role, n->netns_ino, n->lock_fd, access(n->dir, F_OK) != 0);
	if (n->fp_file)
		bl_fp_free(n->fp_file);
	free(n->fp_file);
	bl_config_free(&n->given);
	free(n->att);
	free(n);
}

void bl_server_free(struct bl_server *s)
{
	if (!s)
		return;
	while (s->nodes)
		bl_node_close(s->nodes);
	bl_fastpass_stop(s);
	bl_beacon_stop(s);
	bl_pacer_stop(s);
	bl_server_destroy(s);
}

struct names {
	char (*v)[IFNAMSIZ];
	unsigned int n;
};

/*
 * Collects the names of the interfaces with an XDP pin: a host's NIC, a switch's ports. A clsact
 * filter has no pin of its own. bl_nic_restore() finds all of them, but not those of a node whose
 * map of records has the layout of another build; these names do.
 */
static int collect_xdp_name(const char *path, const char *name, int link_fd, uint32_t ifindex,
			    void *ctx)
{
	struct names *to = ctx;
	char(*v)[IFNAMSIZ], *p;

	(void)path, (void)link_fd, (void)ifindex;
	if (strncmp(name, "xdp-", 4))
		return 0;
	v = realloc(to->v, (to->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	to->v = v;
	snprintf(v[to->n], sizeof(*v), "%s", name + 4);
	for (p = v[to->n++]; *p; p++)
		if (*p == ':')
			*p = '.';
	return 0;
}

static int detach_in_netns(enum bl_role role, struct bl_err *err)
{
	uint64_t ino = bl_netns_ino();
	struct names names = {};
	char dir[256], sock[128];
	bool had_endpoints = false;
	int lock, rc;

	snprintf(dir, sizeof(dir), "%s/%s-%" PRIu64, BL_BPFFS, bl_role_name(role), ino);
	if (access(dir, F_OK))
		return bl_fail(err, ENOENT,
			       "no %s runs in this network namespace; `barline show nodes` lists "
			       "them",
			       bl_role_name(role));
	lock = bl_node_lock(role, ino, 0, err);
	if (lock < 0)
		return lock;
	rc = bl_keep_end(role, ino, err);
	if (!rc && role == BL_ROLE_HOST) {
		had_endpoints = bl_host_put_all_out(dir);
		rc = bl_bl0_remove(dir, err);
		bl_detach_clsact("lo", BL_ROLE_HOST);
	}
	/* The lock is held meanwhile, so a process that starts the host again waits, too. */
	if (!rc && had_endpoints)
		bl_host_wait_unheard(dir);
	bl_links_each(dir, collect_xdp_name, &names);
	if (!rc) {
		bl_nic_say_left(dir);
		bl_nic_unthread(dir, 0);
	}
	if (!rc)
		rc = bl_detach_links(dir, NULL, err);
	while (names.n)
		bl_detach_clsact(names.v[--names.n], role);
	free(names.v);
	if (!rc) {
		bl_nic_restore(dir, role, 0);
		rc = bl_dir_remove(dir);
		if (rc)
			rc = bl_fail(err, -rc, "cannot remove %s: %s", dir, strerror(-rc));
		snprintf(sock, sizeof(sock), "%s/host-%" PRIu64 ".sock", BL_RUN_DIR, ino);
		if (role == BL_ROLE_HOST)
			unlink(sock);
		bl_run_files_forget(role, ino);
	}
	bl_node_unlock(role, ino, lock, !rc);
	return rc;
}

int bl_node_detach(enum bl_role role, const char *netns, struct bl_err *err)
{
	int old, rc;

	bl_libbpf_listen();
	rc = bl_netns_enter(netns, &old, err);
	if (rc)
		return rc;
	rc = detach_in_netns(role, err);
	bl_netns_leave(old);
	return rc;
}
