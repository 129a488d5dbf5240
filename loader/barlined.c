// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barlined: the daemon of one switch or one host.
 *
 * 	barlined switch -c tor1.yaml
 * 	barlined host -i eth1
 * 	barlined -c h1.yaml		the file says which
 *
 * It loads or takes over the datapath, then keeps the clock, sends beacons and serves endpoints.
 * When it stops, the datapath stays.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/log.h"
#include "base/netns_keep.h"
#include "base/privileges.h"
#include "base/sandbox.h"
#include "loader/admission/admission.h"
#include "loader/admission/admission_argp.h"
#include "loader/busy.h"
#include "loader/caretaker.h"
#include "loader/config.h"
#include "loader/config_clock.h"
#include "loader/load/attach.h"
#include "loader/load/chain.h"
#include "loader/load/pin.h"
#include "loader/load/prio.h"
#include "loader/load/sysfs.h"
#include "loader/loop.h"
#include "loader/node.h"
#include "loader/node_cfg.h"
#include "loader/node_priv.h"
#include "loader/order/beacon.h"
#include "loader/prepare.h"
#include "proto/session.h"

const char *argp_program_version = "barlined " BL_BUILD;

enum {
	OPT_REPLACE = 256,
	OPT_CHAIN,
	OPT_XDP,
	OPT_GENERIC,
	OPT_DETACH,
	OPT_L2,
	OPT_ROLE_HOST,
	OPT_ROLE_UP,
	OPT_ROLE_DOWN,
	OPT_CPUS,
	OPT_THREAD,
	OPT_BEACON,
	OPT_DEAD,
	OPT_LAG,
	OPT_BOUND,
	OPT_SOURCE,
	OPT_MAX_BOUND,
	OPT_NODE_ID,
	OPT_SKEW,
	OPT_BASE,
	OPT_ONE_LANE,
	OPT_NO_BEACONS,
	OPT_NO_AHEAD,
	OPT_REALTIME,
	OPT_CONTROLLER,
	OPT_INSECURE,
	OPT_CARETAKER,
	OPT_LIMIT,
	OPT_SEND_LIMIT,
	OPT_USER,
	OPT_PREPARE,
	OPT_NO_SANDBOX,
	OPT_ACCEPT,
	OPT_ONE_QUEUE
};

static const struct argp_option options[] = {
	{ "config", 'c', "FILE", 0, "YAML file of the node; flags after it win over it", 0 },
	{ "netns", 'n', "NETNS", 0, "network namespace: a name of ip-netns(8) or a path", 0 },
	{ "interface", 'i', "IFNAME", 0, "host: the NIC", 0 },
	{ "name", 'N', "NAME", 0, "what people call the node", 0 },
	{ "replace", OPT_REPLACE, NULL, 0, "displace another XDP program", 0 },
	{ "xdp", OPT_XDP, "HOW", 0,
	  "dispatcher: join the dispatcher of libxdp on the interface, beside other XDP "
	  "programs; alone (default)",
	  0 },
	{ "chain", OPT_CHAIN, "PROGRAM", 0,
	  "XDP program for frames that are not barline's: path of its pin, id, or attached: the "
	  "one on the interface, which is put back on detach",
	  0 },
	{ "accept", OPT_ACCEPT, "WHAT", 0,
	  "reordering: start although the NIC is no FIFO for ordered frames", 0 },
	{ "one-queue", OPT_ONE_QUEUE, NULL, 0,
	  "set a NIC to one channel if its driver cannot bring ordered frames to one queue", 0 },
	{ "generic", OPT_GENERIC, NULL, 0, "generic XDP, for drivers without native XDP; slower",
	  0 },
	{ "detach-on-exit", OPT_DETACH, NULL, 0, "remove programs and pins when stopped", 0 },
	{ "user", OPT_USER, "NAME", 0,
	  "become this user and keep five capabilities (key user of the file)", 0 },
	{ "prepare", OPT_PREPARE, NULL, 0,
	  "do only what root has to do for --user before the daemon starts, and exit", 0 },
	{ "no-sandbox", OPT_NO_SANDBOX, NULL, 0,
	  "no filter of system calls, for strace(1) and debuggers", 0 },
	{ "json", 'j', NULL, 0, "print one JSON object when ready, and errors as JSON", 0 },
	{ "beacon-us", OPT_BEACON, "US", 0, "beacon interval (100)", 0 },
	{ "dead-after-us", OPT_DEAD, "US", 0,
	  "a silent input is excluded after that long (10 beacon intervals)", 0 },
	{ "lag-max-us", OPT_LAG, "US", 0,
	  "switch: an input that lags more is excluded (10 times --dead-after-us, at least "
	  "50000)",
	  0 },
	{ "no-ahead", OPT_NO_AHEAD, NULL, 0,
	  "silent hosts do not promise ahead of their clocks; the same in the whole rack", 0 },
	{ "caretaker-ms", OPT_CARETAKER, "MS", 0,
	  "how long a caretaker stands in for a stopped daemon (10000); 0: not at all", 0 },
	{ "realtime", OPT_REALTIME, "WHEN", 0,
	  "the datapath's threads are SCHED_FIFO: auto (on isolated CPUs only, and elsewhere have "
	  "short slices; the default), always, never",
	  0 },
	{ "clock-source", OPT_SOURCE, "SOURCE", 0,
	  "where the bound of the clock comes from: kernel (adjtimex, the default), ptp4l (its "
	  "management socket), clockbound (its file), trust (believe --clock-bound-us)",
	  0 },
	{ "clock-bound-us", OPT_BOUND, "US", 0,
	  "trust: greatest error of the system clock; others: the least bound (50)", 0 },
	{ "clock-max-bound-us", OPT_MAX_BOUND, "US", 0,
	  "kernel: nothing ordered is sent while the bound is greater (25000)", 0 },
	{ "node-id", OPT_NODE_ID, "N", 0,
	  "number of the node in beacons (that of its certificate, else random)", 0 },
	{ "controller", OPT_CONTROLLER, "ADDR:PORT", 0,
	  "a failure controller of reliable 1Pipe; may be repeated. On other machines it needs "
	  "TLS, by the key tls of the file, or --insecure",
	  0 },
	{ "insecure", OPT_INSECURE, NULL, 0,
	  "allow sessions without TLS with controllers on other machines: whoever can intercept "
	  "them can pass for the node or the controller",
	  0 },
	{ "process-limit-ms", OPT_LIMIT, "MS", 0,
	  "host: a process that delays others for this time is expelled (2000)", 0 },
	{ "send-limit-ms", OPT_SEND_LIMIT, "MS", 0,
	  "host: stop waiting for a process that has stopped in the middle of a send for this time "
	  "(20); 0: no limit",
	  0 },
	{ NULL, 0, NULL, 0, "Switch:", 1 },
	{ "host-port", OPT_ROLE_HOST, "IFNAME", 0, "a port with a host behind it; may be repeated",
	  1 },
	{ "up-port", OPT_ROLE_UP, "IFNAME", 0, "a port with a higher switch behind it", 1 },
	{ "down-port", OPT_ROLE_DOWN, "IFNAME", 0, "a port with a lower switch behind it", 1 },
	{ "cpus", OPT_CPUS, "LIST", 0, "datapath CPUs, such as 0,1 (0)", 1 },
	{ "thread-napi", OPT_THREAD, NULL, 0, "threaded NAPI, kept on the home CPU (for veth)", 1 },
	{ "l2", OPT_L2, NULL, 0, "forward by the static table of the file, not by Linux's routes",
	  1 },
	{ NULL, 0, NULL, 0, "For tests:", 2 },
	{ "skew-ns", OPT_SKEW, "NS", 0, "put this node's clock off by that much", 2 },
	{ "clock-base-ns", OPT_BASE, "NS", 0, "start bus time here", 2 },
	{ "one-lane", OPT_ONE_LANE, NULL, 0, "let all CPUs share a lane, which breaks the order",
	  2 },
	{ "no-beacons", OPT_NO_BEACONS, NULL, 0, "host: send no beacons", 2 },
	{ 0 },
};

struct args {
	struct bl_node_cfg cfg;
	bool json, detach, prepare;
};

static uint64_t parse_number(struct argp_state *st, const char *arg, const char *what, int64_t min,
			     int64_t max)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(arg, &end, 0);
	if (errno || end == arg || *end || v < min || v > max)
		argp_error(st, "%s \"%s\": a number from %lld to %lld", what, arg, (long long)min,
			   (long long)max);
	return (uint64_t)v;
}

static void add_port_flag(struct argp_state *st, struct bl_node_cfg *c, const char *ifname,
			  uint8_t role)
{
	struct bl_port_cfg *v = realloc(c->ports, (c->ports_count + 1) * sizeof(*v));

	if (!v)
		argp_failure(st, 1, ENOMEM, "ports");
	if (strlen(ifname) >= IFNAMSIZ)
		argp_error(st, "\"%s\" is no interface name", ifname);
	c->ports = v;
	v += c->ports_count++;
	memset(v, 0, sizeof(*v));
	snprintf(v->ifname, sizeof(v->ifname), "%s", ifname);
	v->role = role;
	v->home_cpu = -1;
}

static void add_controller(struct argp_state *st, struct bl_ctl_peers *c, const char *arg)
{
	struct sockaddr_storage sa;
	socklen_t len;

	if (bl_session_addr(arg, &sa, &len))
		argp_error(st, "--controller \"%s\": an address, as 10.0.0.1:%d or [fd00::1]:%d",
			   arg, BL_SESSION_PORT, BL_SESSION_PORT);
	if (c->n == BL_CTL_PEERS_MAX)
		argp_error(st, "--controller: at most %d", BL_CTL_PEERS_MAX);
	snprintf(c->addr[c->n++], sizeof(c->addr[0]), "%s", arg);
}

static void parse_cpus(struct argp_state *st, struct bl_node_cfg *c, char *list)
{
	char *save, *p;

	c->ncpus = 0;
	for (p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		if (c->ncpus == BL_LANES_MAX)
			argp_error(st, "--cpus: at most %d", BL_LANES_MAX);
		c->cpus[c->ncpus++] = (int)parse_number(st, p, "--cpus", 0, BL_SW_CPUS_MAX - 1);
	}
}

static void copy_text(struct argp_state *st, char *to, size_t size, const char *arg,
		      const char *what)
{
	if (!*arg || strlen(arg) >= size)
		argp_error(st, "%s \"%s\": 1 to %zu characters", what, arg, size - 1);
	strcpy(to, arg);
}

static error_t parse_opt(int key, char *arg, struct argp_state *st)
{
	struct args *a = st->input;
	struct bl_node_cfg *c = &a->cfg;
	struct bl_err err;
	enum bl_role role;
	int xdp;

	switch (key) {
	case ARGP_KEY_INIT:
		st->child_inputs[0] = &c->admission;
		break;
	case 'c':
		if (bl_config_load(c, arg, &err))
			argp_failure(st, 2, 0, "%s", err.text);
		break;
	case 'n':
		copy_text(st, c->netns, sizeof(c->netns), arg, "--netns");
		break;
	case 'i':
		copy_text(st, c->ifname, sizeof(c->ifname), arg, "--interface");
		break;
	case 'N':
		copy_text(st, c->name, sizeof(c->name), arg, "--name");
		break;
	case 'j':
		a->json = true;
		break;
	case OPT_REPLACE:
		c->replace = true;
		break;
	case OPT_XDP:
		xdp = bl_config_xdp(arg);
		if (xdp < 0)
			argp_error(st, "--xdp %s: alone or dispatcher", arg);
		c->dispatcher = xdp == 1;
		break;
	case OPT_CHAIN:
		copy_text(st, c->chain, sizeof(c->chain), arg, "--chain");
		if (bl_chain_check(c->chain, &err))
			argp_error(st, "--%s", err.text);
		break;
	case OPT_ACCEPT:
		if (strcmp(arg, "reordering"))
			argp_error(st, "--accept %s: only reordering can be accepted", arg);
		c->accept_reordering = true;
		break;
	case OPT_ONE_QUEUE:
		c->one_queue = true;
		break;
	case OPT_GENERIC:
		c->mode = BL_XDP_GENERIC;
		break;
	case OPT_USER:
		copy_text(st, c->user, sizeof(c->user), arg, "--user");
		break;
	case OPT_PREPARE:
		a->prepare = true;
		break;
	case OPT_NO_SANDBOX:
		c->no_sandbox = true;
		break;
	case OPT_DETACH:
		a->detach = true;
		break;
	case OPT_BEACON:
		c->beacon_us = (uint32_t)parse_number(st, arg, "--beacon-us", 1, 1000000);
		break;
	case OPT_DEAD:
		c->dead_after_us = (uint32_t)parse_number(st, arg, "--dead-after-us", 1, 100000000);
		break;
	case OPT_LAG:
		c->lag_max_us = (uint32_t)parse_number(st, arg, "--lag-max-us", 1, 1000000000);
		break;
	case OPT_NO_AHEAD:
		c->no_ahead = true;
		break;
	case OPT_BOUND:
		c->clock_bound_us =
			(uint32_t)parse_number(st, arg, "--clock-bound-us", 1, 1000000000);
		break;
	case OPT_SOURCE:
		c->clock_source = bl_clock_source_parse(arg);
		if (!c->clock_source)
			argp_error(st,
				   "--clock-source: \"%s\" is not kernel, ptp4l, clockbound or "
				   "trust",
				   arg);
		break;
	case OPT_MAX_BOUND:
		c->clock_max_bound_us = (uint32_t)parse_number(st, arg, "--clock-max-bound-us", 1,
							       BL_CLOCK_MAX_BOUND_LIMIT_US);
		break;
	case OPT_CARETAKER:
		c->caretaker_ms =
			(int32_t)parse_number(st, arg, "--caretaker-ms", 0, BL_CARETAKER_MAX_MS);
		c->caretaker_ms = c->caretaker_ms ? c->caretaker_ms : -1;
		break;
	case OPT_LIMIT:
		c->process_limit_ms = (uint32_t)parse_number(st, arg, "--process-limit-ms",
							     BL_PROCESS_LIMIT_MIN_MS, 3600000);
		break;
	case OPT_SEND_LIMIT:
		c->send_limit_ms =
			(int32_t)parse_number(st, arg, "--send-limit-ms", 0, BL_SEND_LIMIT_MAX_MS);
		c->send_limit_ms = c->send_limit_ms ? c->send_limit_ms : -1;
		break;
	case OPT_NODE_ID:
		c->node_id = (uint32_t)parse_number(st, arg, "--node-id", 1, UINT32_MAX);
		break;
	case OPT_ROLE_HOST:
		add_port_flag(st, c, arg, BL_PORT_HOST);
		break;
	case OPT_ROLE_UP:
		add_port_flag(st, c, arg, BL_PORT_UP);
		break;
	case OPT_ROLE_DOWN:
		add_port_flag(st, c, arg, BL_PORT_DOWN);
		break;
	case OPT_CPUS:
		parse_cpus(st, c, arg);
		break;
	case OPT_REALTIME:
		if (bl_realtime_parse(arg) < 0)
			argp_error(st, "--realtime %s: give auto, always or never", arg);
		c->realtime = (enum bl_realtime)bl_realtime_parse(arg);
		break;
	case OPT_THREAD:
		c->thread_napi = true;
		break;
	case OPT_INSECURE:
		c->ctl.insecure = true;
		break;
	case OPT_CONTROLLER:
		add_controller(st, &c->ctl, arg);
		break;
	case OPT_L2:
		c->forward = BL_FWD_L2;
		break;
	case OPT_SKEW:
		c->skew_ns = (int64_t)parse_number(st, arg, "--skew-ns", INT64_MIN, INT64_MAX);
		break;
	case OPT_BASE:
		c->clock_base_ns = parse_number(st, arg, "--clock-base-ns", 1, INT64_MAX);
		break;
	case OPT_ONE_LANE:
		c->one_lane = true;
		break;
	case OPT_NO_BEACONS:
		c->no_beacons = true;
		break;
	case ARGP_KEY_ARG:
		role = !strcmp(arg, "switch") ? BL_ROLE_SWITCH
		       : !strcmp(arg, "host") ? BL_ROLE_HOST
					      : BL_ROLE_NONE;
		if (role == BL_ROLE_NONE)
			argp_error(st, "\"%s\" is no role: switch or host", arg);
		if (c->role != BL_ROLE_NONE && c->role != role)
			argp_error(st, "only one role can be given; \"%s\" is a second one", arg);
		c->role = role;
		break;
	case ARGP_KEY_END:
		if (c->role == BL_ROLE_NONE)
			argp_error(st, "say what to be: switch or host, here or in the file");
		if (c->role == BL_ROLE_HOST && !*c->ifname)
			argp_error(st, "a host needs its NIC: -i IFNAME, or interface in the file");
		if (c->role == BL_ROLE_HOST && c->ports_count)
			argp_error(st, "a host has no ports; -i IFNAME names its NIC");
		if (*c->ctl.ca && !c->ctl.n)
			argp_error(st, "tls in the file is for sessions with controllers, and "
				       "there are none: neither controllers in the file nor "
				       "--controller");
		if (c->role == BL_ROLE_SWITCH && !c->ports_count)
			argp_error(st, "a switch needs ports: --host-port, --up-port, --down-port, "
				       "or ports in the file");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void json_text(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			printf("\\u%04x", (unsigned char)*s);
		else
			putchar(*s);
	}
	putchar('"');
}

static int json_pin(const char *path, const char *name, int link_fd, uint32_t ifindex, void *ctx)
{
	bool *more = ctx;

	(void)name, (void)link_fd, (void)ifindex;
	printf(*more ? "," : "");
	json_text(path);
	*more = true;
	return 0;
}

static void print_ready(const struct bl_node *n)
{
	static const char *const roles[] = { "unused", "host", "up", "down" };
	bool more = false;
	unsigned int k;

	printf("{\"schema\":1,\"node\":{\"name\":");
	json_text(n->meta.name);
	printf(",\"id\":%u,\"role\":\"%s\",\"netns\":%" PRIu64 ",\"taken_over\":%s},\"interfaces\":"
	       "[",
	       n->meta.node_id, bl_role_name(n->cfg.role), n->netns_ino,
	       n->fresh ? "false" : "true");
	for (k = 0; k < n->natt; k++) {
		const struct bl_attached *a = &n->att[k];

		printf("%s{\"name\":", k ? "," : "");
		json_text(a->iface.name);
		printf(",\"ifindex\":%d", a->iface.ifindex);
		if (a->port >= 0)
			printf(",\"port\":%d,\"role\":\"%s\"", a->port, roles[a->role & 3]);
		if (a->port >= 0 || k == 0)
			printf(",\"xdp\":\"%s\"", a->mode == BL_XDP_GENERIC ? "generic" : "native");
		if (a->egress)
			printf(",\"egress\":\"%s\"", a->egress);
		if (a->home_cpu >= 0)
			printf(",\"napi_cpu\":%d", a->home_cpu);
		printf("}");
	}
	printf("],\"dir\":");
	json_text(n->dir);
	printf(",\"pins\":[");
	bl_links_each(n->dir, json_pin, &more);
	printf("]");
	if (*n->sock_path) {
		printf(",\"socket\":");
		json_text(n->sock_path);
	}
	printf("}\n");
	fflush(stdout);
}

/** struct become - argument of become_user(). */
struct become {
	const struct bl_user *user; /* NULL: the user stays */
	struct bl_err *err;
};

static int report_error(const struct args *a, const struct bl_err *err)
{
	if (a->json) {
		printf("{\"schema\":1,\"error\":");
		json_text(err->text);
		printf("}\n");
		fflush(stdout);
	} else {
		bl_log(BL_LOG_ERR, "%s", err->text);
	}
	sd_notifyf(0, "STATUS=%s", err->text);
	return 1;
}

/*
 * How long --prepare waits for NICs. A start that fails after this is counted less than once in the
 * StartLimitIntervalSec= of the unit, which hence goes on to try.
 */
#define PREPARE_WAIT_MS 30000

static int become_user(void *ctx)
{
	struct become *b = ctx;

	return bl_privileges_drop(b->user, BL_CAPS_DAEMON, b->err);
}

/*
 * Everything that takes more than the daemon's capabilities. A daemon that was started as another
 * user than root has these capabilities from its service manager, and everything is prepared.
 */
static int give_up_privileges(struct args *a, struct bl_err *err)
{
	struct bl_node_cfg *c = &a->cfg;
	struct bl_user user = {};
	struct become b = { .user = &user, .err = err };
	bool root = !geteuid(), becomes = root && *c->user;
	int rc = *c->user ? bl_user_find(c->user, &user, err) : 0;

	if (!rc && *c->user && !root && user.uid != geteuid())
		rc = bl_fail(err, EPERM, "only root can become user %s", c->user);
	if (!rc && a->prepare && !becomes)
		rc = bl_fail(err, EINVAL, "--prepare: run it as root, with --user");
	if (!rc)
		rc = bl_netns_settle(c->netns, becomes && !a->prepare && bl_admission_paced(c),
				     err);
	/* The node's own namespace from here on. */
	*c->netns = 0;
	if (!rc && a->prepare)
		rc = bl_prepare_wait(c, PREPARE_WAIT_MS, err);
	if (!rc && root)
		rc = bl_prepare(c, becomes ? &user : NULL, err);
	if (rc || a->prepare)
		return rc;
	if (root)
		bl_sysfs_keep();
	if (becomes)
		rc = bl_netns_helpers_drop(BL_CAPS_DAEMON, become_user, &b, err);
	else if (!root)
		rc = become_user(&(struct become){ .err = err });
	if (!rc && geteuid())
		rc = bl_prepared_check(err);
	if (!rc)
		rc = bl_caps_need("barlined",
				  BL_CAPS_LOAD | (bl_beacons_here(c) ? BL_CAP(CAP_NET_RAW) : 0),
				  err);
	if (!rc && !(bl_caps_effective() & BL_CAP(CAP_SYS_NICE)))
		bl_log(BL_LOG_WARN, "without CAP_SYS_NICE beacons are late on a busy machine");
	return rc;
}

/*
 * Another user's daemon may have to take the node over from this one: what root has made belongs to
 * the owner of the run directory.
 */
static void give_back(void)
{
	struct bl_err why;
	struct stat st;

	if (!geteuid() && !stat(BL_RUN_DIR, &st) && st.st_uid &&
	    bl_give_run_dir(st.st_uid, st.st_gid, &why))
		bl_log(BL_LOG_WARN, "%s", why.text);
}

int main(int argc, char **argv)
{
	static const struct argp_child children[] = { { &bl_admission_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = { options,
					  parse_opt,
					  "[switch|host]",
					  "barlined runs one switch or one host of a barline rack.",
					  children,
					  NULL,
					  NULL };
	struct args a = {};
	struct bl_err err = {};
	enum bl_role role;
	struct bl_server *s;
	struct bl_node *n;
	char dir[256];
	int rc;

	bl_server_block_signals();
	if (argc == 3 && !strcmp(argv[1], "--caretaker"))
		return bl_caretaker_main(argv[2]);
	argp_err_exit_status = 2;
	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a))
		return 2;
	role = a.cfg.role;
	bl_clock_default_source(&a.cfg);
	if (give_up_privileges(&a, &err) || (!a.prepare && bl_server_new(&s, &err))) {
		bl_config_free(&a.cfg);
		return report_error(&a, &err);
	}
	if (a.prepare) {
		bl_config_free(&a.cfg);
		return 0;
	}
	if (bl_node_open(&n, s, &a.cfg, &err)) {
		bl_server_free(s);
		bl_config_free(&a.cfg);
		return report_error(&a, &err);
	}
	give_back();
	if (!a.cfg.no_sandbox && bl_sandbox(BL_SERVICE_DAEMON, &err)) {
		bl_server_free(s);
		bl_config_free(&a.cfg);
		return report_error(&a, &err);
	}
	bl_config_free(&a.cfg);
	if (a.json)
		print_ready(n);
	sd_notifyf(0, "READY=1\nSTATUS=%s %s: %u interfaces, %s XDP, pins in %s",
		   bl_role_name(role), n->meta.name, n->natt,
		   bl_node_mode(n) == BL_XDP_GENERIC ? "generic" : "native", n->dir);
	bl_log(BL_LOG_INFO, "%s %s %s: %s XDP, pins in %s", bl_role_name(role), n->meta.name,
	       n->fresh ? "started" : "taken over",
	       bl_node_mode(n) == BL_XDP_GENERIC ? "generic" : "native", n->dir);
	rc = bl_server_run(s, &err);
	sd_notify(0, "STOPPING=1");
	snprintf(dir, sizeof(dir), "%s", n->dir);
	if (!rc && !a.detach && bl_node_hand_over(n, &err))
		bl_log(BL_LOG_WARN, "no caretaker stands in for the daemon: %s", err.text);
	bl_server_free(s);
	if (rc)
		return report_error(&a, &err);
	if (!a.detach) {
		bl_log(BL_LOG_INFO,
		       "stopped; the datapath of the %s stays in the kernel (pins in %s); start "
		       "again to go on, or remove it with `barline %s detach`",
		       bl_role_name(role), dir, bl_role_name(role));
		return 0;
	}
	if (bl_node_busy(role, NULL, &err) || bl_node_detach(role, NULL, &err))
		return report_error(&a, &err);
	bl_log(BL_LOG_INFO, "stopped and detached");
	return 0;
}
