// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The one table of a node's settings: see settings.h. */
#include "loader/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "loader/node_cfg.h"
#include "maps/clock_abi.h"
#include "maps/host_abi.h"

static const char *const role_names[] = { "switch", "host" };
static const uint32_t roles[] = { BL_ROLE_SWITCH, BL_ROLE_HOST };
static const char *const mode_names[] = {
	[BL_XDP_NATIVE] = "native", [BL_XDP_GENERIC] = "generic"
};
static const char *const xdp_names[] = { "alone", "dispatcher" };
static const char *const forward_names[] = { [BL_FWD_L3] = "l3", [BL_FWD_L2] = "l2" };
static const char *const realtime_names[] = {
	[BL_RT_AUTO] = "auto", [BL_RT_ALWAYS] = "always", [BL_RT_NEVER] = "never"
};
static const char *const auth_names[] = { [BL_AUTH_OFF] = "off",
					  [BL_AUTH_OFFER] = "offer",
					  [BL_AUTH_LINKS] = "links",
					  [BL_AUTH_STRICT] = "strict" };
static const char *const source_names[] = { "kernel", "ptp4l", "clockbound", "trust" };
static const uint32_t sources[] = { BL_CLOCK_KERNEL, BL_CLOCK_PTP4L, BL_CLOCK_CLOCKBOUND,
				    BL_CLOCK_TRUST };

#define BOTH (BL_SETTING_HOSTS | BL_SETTING_SWITCHES)
#define MEMBER(m) \
	.at = offsetof(struct bl_node_cfg, m), .size = sizeof(((struct bl_node_cfg *)NULL)->m)
#define NAMES(v) .kind = BL_SETTING_NAME, .names = (v), .count = sizeof(v) / sizeof((v)[0])
#define LIVE     .change = BL_CHANGE_LIVE
#define RESTART  .change = BL_CHANGE_RESTART
#define DETACH   .change = BL_CHANGE_DETACH
#define WHOLE_RACK \
	"all nodes of a rack must agree on it, so it is for a restart of one node after the other"
#define PROGRAMS "the programs are loaded with it"

/* clang-format off */
static const struct bl_setting table[] = {
	[BL_S_ROLE] = {
		.key = "role", NAMES(role_names), .values = roles, .roles = BOTH, MEMBER(role),
		.always = true, DETACH, .why = "it is another node",
		.text = "what the node is" },
	[BL_S_NAME] = {
		.key = "name", .flag = "name", .letter = 'N', .kind = BL_SETTING_TEXT,
		.roles = BOTH, MEMBER(name), .unit = "name", .dflt_text = "role and node id",
		LIVE, .why = "controllers see it from the next session on",
		.text = "name of the node in output" },
	[BL_S_INTERFACE] = {
		.key = "interface", .flag = "interface", .letter = 'i', .kind = BL_SETTING_TEXT,
		.roles = BL_SETTING_HOSTS, MEMBER(ifname), .unit = "interface", .always = true,
		DETACH, .why = "endpoints are bound to the addresses of the NIC",
		.text = "the NIC" },
	[BL_S_NETNS] = {
		.flag = "netns", .letter = 'n', .kind = BL_SETTING_TEXT, .roles = BOTH,
		MEMBER(netns), .unit = "netns", .dflt_text = "the current one",
		.daemon = true, DETACH, .why = "it is another node",
		.text = "network namespace: a name of ip-netns(8) or a path" },
	[BL_S_NODE_ID] = {
		.key = "node_id", .flag = "node-id", .kind = BL_SETTING_NUMBER, .roles = BOTH,
		MEMBER(node_id), .unit = "n", .least = 0, .greatest = UINT32_MAX,
		.dflt_text = "that of the certificate, else random",
		RESTART, .why = "neighbours and controllers know the node by it",
		.text = "number of the node in beacons" },
	[BL_S_MODE] = {
		.key = "mode", .flag = "generic", .bare = true, .flag_value = BL_XDP_GENERIC,
		NAMES(mode_names), .roles = BOTH, MEMBER(mode), .unit = "mode",
		RESTART, .why = "the programs are attached with it",
		.text = "generic XDP is for drivers without native XDP, and slower" },
	[BL_S_XDP] = {
		.key = "xdp", .flag = "xdp", NAMES(xdp_names), .roles = BOTH, MEMBER(dispatcher),
		.unit = "how", DETACH, .why = "a program cannot move into a dispatcher while it "
			"runs",
		.text = "dispatcher: join the dispatcher of libxdp on the interface, beside other "
			"XDP programs; alone: be the only one" },
	[BL_S_CHAIN] = {
		.key = "chain", .flag = "chain", .kind = BL_SETTING_TEXT, .roles = BOTH,
		MEMBER(chain), .unit = "program", .dflt_text = "none", RESTART, .why = PROGRAMS,
		.text = "XDP program for frames that are not barline's: path of its pin, id, or "
			"attached: the one on the interface, which is put back on detach" },
	[BL_S_REPLACE] = {
		.key = "replace", .flag = "replace", .bare = true, .flag_value = 1,
		.kind = BL_SETTING_TRUTH, .roles = BOTH, MEMBER(replace), LIVE,
		.why = "an interface that is made anew gets it",
		.text = "displace another XDP program" },
	[BL_S_ACCEPT] = {
		.key = "accept", .flag = "accept", .kind = BL_SETTING_BLOCK, .roles = BOTH,
		MEMBER(accept_reordering), .unit = "what", RESTART,
		.why = "the NIC is judged at the start",
		.text = "reordering: start although the NIC is no FIFO for ordered frames" },
	[BL_S_ONE_QUEUE] = {
		.key = "one_queue", .flag = "one-queue", .bare = true, .flag_value = 1,
		.kind = BL_SETTING_TRUTH, .roles = BOTH, MEMBER(one_queue), RESTART,
		.why = "the NIC is configured at the start",
		.text = "set a NIC to one channel if its driver cannot bring ordered frames to "
			"one queue" },
	[BL_S_PORT_BASE] = {
		.key = "port_base", .flag = "port-base", .kind = BL_SETTING_NUMBER, .roles = BOTH,
		MEMBER(port_base), .unit = "port", .least = 1, .greatest = 65535,
		.dflt = BL_PORT_BASE, DETACH,
		.why = "endpoints of the host have ports of the old range",
		.text = "first UDP port of ordered traffic; the same in the whole rack" },
	[BL_S_PORT_COUNT] = {
		.key = "port_count", .flag = "port-count", .kind = BL_SETTING_NUMBER,
		.roles = BOTH, MEMBER(port_count), .unit = "n", .least = 1,
		.greatest = BL_PORT_COUNT, .dflt = BL_PORT_COUNT, RESTART, .why = WHOLE_RACK,
		.text = "number of UDP ports of ordered traffic; the same in the whole rack" },
	[BL_S_BEACON] = {
		.key = "beacon_us", .flag = "beacon-us", .kind = BL_SETTING_NUMBER, .roles = BOTH,
		MEMBER(beacon_us), .unit = "us", .least = 1, .greatest = 1000000,
		.dflt = BL_BEACON_US, RESTART, .why = WHOLE_RACK,
		.text = "beacon interval; the same in the whole rack" },
	[BL_S_DEAD_AFTER] = {
		.key = "dead_after_us", .flag = "dead-after-us", .kind = BL_SETTING_NUMBER,
		.roles = BOTH, MEMBER(dead_after_us), .unit = "us", .least = 1,
		.greatest = 100000000, .dflt_text = "10 beacon intervals", LIVE,
		.why = "each frame is judged by the old value or by the new one",
		.text = "a silent input is excluded after that long; at least two beacon "
			"intervals" },
	[BL_S_LAG_MAX] = {
		.key = "lag_max_us", .flag = "lag-max-us", .kind = BL_SETTING_NUMBER,
		.roles = BL_SETTING_SWITCHES, MEMBER(lag_max_us), .unit = "us", .least = 1,
		.greatest = 1000000000,
		.dflt_text = "10 times dead_after_us, at least 50000", LIVE,
		.why = "each frame is judged by the old value or by the new one",
		.text = "an input that talks and lags more is excluded; at least dead_after_us" },
	[BL_S_COMMIT_LAG_MAX] = {
		.key = "commit_lag_max_ms", .flag = "commit-lag-max-ms",
		.kind = BL_SETTING_NUMBER, .roles = BL_SETTING_SWITCHES,
		MEMBER(commit_lag_max_ms), .unit = "ms", .least = BL_LAG_MAX_US / 1000,
		.greatest = UINT32_MAX, .dflt = BL_COMMIT_LAG_MAX_MS, LIVE,
		.why = "each frame is judged by the old value or by the new one",
		.text = "the same for the commit barrier, where there are controllers" },
	[BL_S_CONTROL_RATE] = {
		.key = "control_rate", .flag = "control-rate", .kind = BL_SETTING_NUMBER,
		.roles = BL_SETTING_SWITCHES, MEMBER(control_rate), .unit = "n", .least = 1,
		.greatest = 1000000000, .dflt = BL_CONTROL_RATE, LIVE,
		.why = "each frame is judged by the old value or by the new one",
		.text = "control frames per second that a port with a host behind it may send" },
	[BL_S_NO_AHEAD] = {
		.key = "no_ahead", .flag = "no-ahead", .bare = true, .flag_value = 1,
		.kind = BL_SETTING_TRUTH, .roles = BOTH, MEMBER(no_ahead), RESTART,
		.why = WHOLE_RACK,
		.text = "silent hosts do not promise ahead of their clocks; the same in the whole "
			"rack" },
	[BL_S_REALTIME] = {
		.key = "realtime", .flag = "realtime", NAMES(realtime_names), .roles = BOTH,
		MEMBER(realtime), .unit = "when", RESTART,
		.why = "threads get their priority when they start",
		.text = "the datapath's threads are SCHED_FIFO: auto (on isolated CPUs only, and "
			"elsewhere have short slices), always, never" },
	[BL_S_CPUS] = {
		.key = "cpus", .flag = "cpus", .kind = BL_SETTING_BLOCK, .roles = BOTH,
		MEMBER(ncpus), .unit = "list", .dflt_text = "switches 0, hosts any", RESTART,
		.why = "ports are regrouped",
		.text = "datapath CPUs, as in 0,2-3; each is a lane. A host sends its beacons "
			"from the first" },
	[BL_S_CLOCK_SOURCE] = {
		.section = "clock", .key = "source", .flag = "clock-source", NAMES(source_names),
		.values = sources, .roles = BOTH, MEMBER(clock_source), .unit = "source",
		.dflt = BL_CLOCK_KERNEL, RESTART, .why = "the clock is adopted at the start",
		.text = "where the bound of the clock comes from: kernel (adjtimex), ptp4l (its "
			"management socket), clockbound (its file), trust (believe bound_us)" },
	[BL_S_CLOCK_BOUND] = {
		.section = "clock", .key = "bound_us", .flag = "clock-bound-us",
		.kind = BL_SETTING_NUMBER, .roles = BOTH, MEMBER(clock_bound_us), .unit = "us",
		.least = 1, .greatest = BL_CLOCK_MAX_BOUND_LIMIT_US, .dflt = BL_CLOCK_BOUND_US,
		LIVE, .why = "the next update of the clock record, within 250 ms, has it",
		.text = "trust: greatest error of the system clock; others: the least bound" },
	[BL_S_CLOCK_MAX_BOUND] = {
		.section = "clock", .key = "max_bound_us", .flag = "clock-max-bound-us",
		.kind = BL_SETTING_NUMBER, .roles = BOTH, MEMBER(clock_max_bound_us),
		.unit = "us", .least = 1, .greatest = BL_CLOCK_MAX_BOUND_LIMIT_US,
		.dflt = BL_CLOCK_MAX_BOUND_US, LIVE,
		.why = "the next update of the clock record, within 250 ms, has it",
		.text = "nothing ordered is sent while the measured bound is greater" },
	[BL_S_CLOCK_SOCKET] = {
		.section = "clock", .key = "socket", .kind = BL_SETTING_TEXT, .roles = BOTH,
		MEMBER(clock_socket), .unit = "path", .dflt_text = "linuxptp's", RESTART,
		.why = "the clock is adopted at the start",
		.text = "ptp4l: path of its management socket" },
	[BL_S_CLOCK_PHC] = {
		.section = "clock", .key = "phc", .kind = BL_SETTING_TEXT, .roles = BOTH,
		MEMBER(clock_phc), .unit = "device", .dflt_text = "that of ptp4l's interface",
		RESTART, .why = "the clock is adopted at the start",
		.text = "ptp4l: a hardware clock such as /dev/ptp0, or none" },
	[BL_S_CLOCK_DOMAIN] = {
		.section = "clock", .key = "domain", .kind = BL_SETTING_NUMBER, .roles = BOTH,
		MEMBER(clock_domain), .unit = "n", .greatest = 255, RESTART,
		.why = "the clock is adopted at the start", .text = "ptp4l: its domain" },
	[BL_S_CLOCK_TRANSPORT] = {
		.section = "clock", .key = "transport_specific", .kind = BL_SETTING_NUMBER,
		.roles = BOTH, MEMBER(clock_transport_specific), .unit = "n", .greatest = 15,
		RESTART, .why = "the clock is adopted at the start",
		.text = "ptp4l: its transport_specific" },
	[BL_S_CLOCK_GRANDMASTER] = {
		.section = "clock", .key = "grandmaster", .kind = BL_SETTING_TRUTH, .roles = BOTH,
		MEMBER(clock_grandmaster), RESTART, .why = "the clock is adopted at the start",
		.text = "ptp4l: this machine may be the grandmaster" },
	[BL_S_CLOCK_FILE] = { /* shares a member with socket */
		.section = "clock", .key = "file", .kind = BL_SETTING_TEXT, .roles = BOTH,
		MEMBER(clock_socket), .unit = "path", .dflt_text = "ClockBound's", RESTART,
		.why = "the clock is adopted at the start",
		.text = "clockbound: path of its file" },
	[BL_S_CLOCK_VOID] = {
		.key = "clock_void_after_ms", .flag = "clock-void-after-ms",
		.kind = BL_SETTING_NUMBER, .roles = BOTH, MEMBER(clock_void_after_ms),
		.unit = "ms", .least = 1000, .greatest = 3600000, .dflt = BL_CLOCK_VOID_MS, LIVE,
		.why = "the next update of the clock record, within 250 ms, has it",
		.text = "how long the clock remains valid without the daemon" },
	[BL_S_CARETAKER] = {
		.key = "caretaker_ms", .flag = "caretaker-ms", .kind = BL_SETTING_NUMBER,
		.roles = BOTH, MEMBER(caretaker_ms), .unit = "ms", .zero = "never", .least = 1,
		.greatest = BL_CARETAKER_MAX_MS, .dflt = BL_CARETAKER_MS, LIVE,
		.why = "a new spare caretaker has it",
		.text = "how long a caretaker replaces a daemon that has ended" },
	[BL_S_PROCESS_LIMIT] = {
		.key = "process_limit_ms", .flag = "process-limit-ms", .kind = BL_SETTING_NUMBER,
		.roles = BL_SETTING_HOSTS, MEMBER(process_limit_ms), .unit = "ms",
		.least = BL_PROCESS_LIMIT_MIN_MS, .greatest = 3600000,
		.dflt = BL_PROCESS_LIMIT_MS, LIVE,
		.why = "what a process has delayed so far counts on",
		.text = "a process that delays others for this time is expelled" },
	[BL_S_SEND_LIMIT] = {
		.key = "send_limit_ms", .flag = "send-limit-ms", .kind = BL_SETTING_NUMBER,
		.roles = BL_SETTING_HOSTS, MEMBER(send_limit_ms), .unit = "ms", .zero = "no limit",
		.least = BL_SEND_LIMIT_MIN_MS, .greatest = BL_SEND_LIMIT_MAX_MS,
		.dflt = BL_SEND_LIMIT_MS, LIVE,
		.why = "a process that is stopped in a send at that moment gets the time anew",
		.text = "a send that makes no progress for this time is void" },
	[BL_S_USER_ENDPOINTS] = {
		.key = "user_endpoints", .flag = "user-endpoints", .kind = BL_SETTING_NUMBER,
		.roles = BL_SETTING_HOSTS, MEMBER(user_endpoints), .unit = "n",
		.zero = "no limit", .least = 1, .greatest = BL_EPS_MAX,
		.dflt = BL_USER_ENDPOINTS, LIVE, .why = "endpoints that are there stay",
		.text = "endpoints that one user other than root may have" },
	[BL_S_USER_RING] = {
		.key = "user_ring_mib", .flag = "user-ring-mib", .kind = BL_SETTING_NUMBER,
		.roles = BL_SETTING_HOSTS, MEMBER(user_ring_mib), .unit = "mib",
		.zero = "no limit", .least = 1,
		.greatest = BL_EPS_MAX * (BL_RING_BYTES_MAX >> 20), .dflt = BL_USER_RING_MIB,
		LIVE,
		.why = "endpoints that are there stay",
		.text = "MiB of rings that one user other than root may have" },
	[BL_S_USER] = {
		.key = "user", .flag = "user", .kind = BL_SETTING_TEXT, .roles = BOTH,
		MEMBER(user), .daemon = true, .unit = "name", .dflt_text = "the user stays",
		RESTART,
		.why = "a process without privileges cannot change its user",
		.text = "barlined becomes this user and keeps five capabilities" },
	[BL_S_SANDBOX] = {
		.key = "sandbox", .flag = "no-sandbox", .bare = true, .flag_value = 0,
		.kind = BL_SETTING_TRUTH, .inverse = true, .roles = BOTH, MEMBER(no_sandbox),
		.daemon = true, RESTART, .why = "a filter of system calls cannot be removed",
		.text = "barlined has a filter of system calls; without it strace(1) and "
			"debuggers work" },
	[BL_S_CONTROLLERS] = {
		.key = "controllers", .flag = "controller", .kind = BL_SETTING_BLOCK,
		.roles = BOTH, MEMBER(ctl.n), .unit = "addr:port", .dflt_text = "none", LIVE,
		.why = "the session ends, and another one begins; the first controller, and the "
		       "end of all, take a restart",
		.text = "failure controllers of reliable 1Pipe; the flag may be repeated. On "
			"other machines they need tls or insecure" },
	[BL_S_INSECURE] = {
		.key = "insecure", .flag = "insecure", .bare = true, .flag_value = 1,
		.kind = BL_SETTING_TRUTH, .roles = BOTH, MEMBER(ctl.insecure), LIVE,
		.why = "the session ends, and another one begins",
		.text = "allow sessions without TLS with controllers on other machines: whoever "
			"can intercept them can pass for the node or the controller" },
	[BL_S_TLS_CA] = {
		.section = "tls", .key = "ca", .kind = BL_SETTING_TEXT, .roles = BOTH,
		MEMBER(ctl.ca), .unit = "file", .dflt_text = "none", LIVE,
		.why = "the session ends, and another one begins",
		.text = "certificate of the rack's authority, in PEM" },
	[BL_S_TLS_CERT] = {
		.section = "tls", .key = "cert", .kind = BL_SETTING_TEXT, .roles = BOTH,
		MEMBER(ctl.cert), .unit = "file", .dflt_text = "none", LIVE,
		.why = "the session ends, and another one begins",
		.text = "certificate of the node, in PEM" },
	[BL_S_TLS_KEY] = {
		.section = "tls", .key = "key", .kind = BL_SETTING_TEXT, .roles = BOTH,
		MEMBER(ctl.key), .unit = "file", .dflt_text = "none", LIVE,
		.why = "the session ends, and another one begins",
		.text = "private key of the node, in PEM" },
	[BL_S_TLS_UNNAMED] = {
		.section = "tls", .key = "unnamed", .kind = BL_SETTING_TRUTH, .roles = BOTH,
		MEMBER(ctl.unnamed), LIVE, .why = "the session ends, and another one begins",
		.text = "accept certificates without an identity" },
	[BL_S_AUTH_MODE] = {
		.section = "auth", .key = "mode", NAMES(auth_names), .roles = BOTH,
		MEMBER(auth.mode), .unit = "mode", RESTART, .why = PROGRAMS,
		.text = "authentication of links" },
	[BL_S_AUTH_KEYS] = {
		.section = "auth", .key = "keys", .kind = BL_SETTING_TEXT, .roles = BOTH,
		MEMBER(auth.keys), .unit = "file", .dflt_text = "none", LIVE,
		.why = "epochs that are in both files stay, so no frame is refused; the file is "
		       "read at every reload",
		.text = "the node's key file" },
	[BL_S_FORWARD] = {
		.key = "forward", .flag = "l2", .bare = true, .flag_value = BL_FWD_L2,
		NAMES(forward_names), .roles = BL_SETTING_SWITCHES, MEMBER(forward),
		.unit = "how", RESTART, .why = "paths are planned with it",
		.text = "forward by Linux's routes (l3), or by the static table fdb (l2)" },
	[BL_S_THREAD_NAPI] = {
		.key = "thread_napi", .flag = "thread-napi", .bare = true, .flag_value = 1,
		.kind = BL_SETTING_TRUTH, .roles = BOTH, MEMBER(thread_napi), RESTART,
		.why = "threads are made at the start",
		.text = "threaded NAPI, kept on the home CPU (for veth)" },
	[BL_S_PORTS] = {
		.key = "ports", .kind = BL_SETTING_BLOCK, .roles = BL_SETTING_SWITCHES,
		MEMBER(ports_count), .always = true, LIVE,
		.why = "ports come and go; what a port is, and all of it with admission, auth or "
		       "chain, takes a restart",
		.text = "the interfaces of a switch" },
	[BL_S_FDB] = {
		.key = "fdb", .flag = "fdb", .kind = BL_SETTING_BLOCK,
		.roles = BL_SETTING_SWITCHES, MEMBER(fdb_count), .unit = "mac=ifname",
		.dflt_text = "empty", LIVE,
		.why = "entries change one after the other; those that stay do not move",
		.text = "static table of forward: l2; the flag may be repeated" },
	[BL_S_ADMISSION] = {
		.key = "admission", .kind = BL_SETTING_BLOCK, .roles = BOTH,
		MEMBER(admission.on), .dflt_text = "none", RESTART, .why = PROGRAMS,
		.text = "admission of applications' traffic; what `barline admission set` can "
			"change, a reload changes, too" },
	[BL_S_SKEW] = {
		.flag = "skew-ns", .kind = BL_SETTING_NUMBER, .roles = BOTH, MEMBER(skew_ns),
		.unit = "ns", .least = INT64_MIN, .greatest = INT64_MAX, .test = true, RESTART,
		.why = "the clock is adopted at the start",
		.text = "put this node's clock off by that much" },
	[BL_S_CLOCK_BASE] = {
		.flag = "clock-base-ns", .kind = BL_SETTING_NUMBER, .roles = BOTH,
		MEMBER(clock_base_ns), .unit = "ns", .least = 1, .greatest = INT64_MAX,
		.test = true, RESTART, .why = "the clock is adopted at the start",
		.text = "start bus time here" },
	[BL_S_ONE_LANE] = {
		.flag = "one-lane", .bare = true, .flag_value = 1, .kind = BL_SETTING_TRUTH,
		.roles = BL_SETTING_SWITCHES, MEMBER(one_lane), .test = true, RESTART,
		.why = "ports are regrouped",
		.text = "let all CPUs share a lane, which breaks the order" },
	[BL_S_NO_BEACONS] = {
		.flag = "no-beacons", .bare = true, .flag_value = 1, .kind = BL_SETTING_TRUTH,
		.roles = BL_SETTING_HOSTS, MEMBER(no_beacons), .test = true, RESTART,
		.why = "beacons begin at the start",
		.text = "send no beacons" },
};
/* clang-format on */
_Static_assert(sizeof(table) / sizeof(table[0]) == BL_S_COUNT, "an entry for each setting");

const struct bl_setting *bl_setting(unsigned int id)
{
	return id < BL_S_COUNT ? &table[id] : NULL;
}

const char *bl_setting_path(const struct bl_setting *s, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s", s->section ? s->section : "", s->section ? "." : "",
		 s->key ? s->key : s->flag);
	return buf;
}

/* ---- members ---- */

static int64_t load(const struct bl_setting *s, const struct bl_node_cfg *c)
{
	const void *from = (const char *)c + s->at;

	/* those of four bytes with a value below 0 have one that means "no limit" */
	return s->size == 1   ? *(const uint8_t *)from
	       : s->size == 2 ? *(const uint16_t *)from
	       : s->size == 8 ? *(const int64_t *)from
	       : s->zero      ? (int64_t) * (const int32_t *)from
			      : (int64_t) * (const uint32_t *)from;
}

static void store(const struct bl_setting *s, struct bl_node_cfg *c, int64_t v)
{
	void *to = (char *)c + s->at;

	if (s->size == 1)
		*(uint8_t *)to = (uint8_t)v;
	else if (s->size == 2)
		*(uint16_t *)to = (uint16_t)v;
	else if (s->size == 4)
		*(uint32_t *)to = (uint32_t)v;
	else
		*(int64_t *)to = v;
}

bool bl_setting_given(const struct bl_setting *s, const struct bl_node_cfg *c)
{
	return s->kind == BL_SETTING_TEXT ? *((const char *)c + s->at) != 0 : load(s, c) != 0;
}

/* ---- texts ---- */

static uint32_t name_value(const struct bl_setting *s, unsigned int k)
{
	return s->values ? s->values[k] : k;
}

const char *bl_setting_value(const struct bl_setting *s, const struct bl_node_cfg *c, char *buf,
			     size_t size)
{
	int64_t v;
	unsigned int k;

	*buf = 0;
	if (s->kind == BL_SETTING_TEXT) {
		snprintf(buf, size, "%s", (const char *)c + s->at);
		return buf;
	}
	v = load(s, c);
	if (s->kind == BL_SETTING_TRUTH)
		snprintf(buf, size, "%s", !v == s->inverse ? "true" : "false");
	else if (s->kind == BL_SETTING_NUMBER)
		snprintf(buf, size, "%" PRId64, s->zero && v < 0 ? 0 : v);
	for (k = 0; s->kind == BL_SETTING_NAME && k < s->count; k++)
		if (name_value(s, k) == (uint32_t)v)
			snprintf(buf, size, "%s", s->names[k]);
	return buf;
}

/* "auto, always, never" */
static void list_names(const struct bl_setting *s, char *buf, size_t size)
{
	size_t at = 0;
	unsigned int k;

	for (k = 0; k < s->count && at < size; k++)
		at += (size_t)snprintf(buf + at, size - at, "%s%s", k ? ", " : "", s->names[k]);
}

static int parse_number(const struct bl_setting *s, const char *what, const char *text,
			struct bl_node_cfg *c, struct bl_err *err)
{
	long long v;

	if (!bl_read_integer(text, INT64_MIN, INT64_MAX, &v))
		return bl_fail(err, EINVAL, "%s \"%s\" is no number", what, text);
	if (s->zero && !v) {
		store(s, c, -1);
		return 0;
	}
	if (v >= s->least && v <= s->greatest) {
		store(s, c, v);
		return 0;
	}
	if (s->zero)
		return bl_fail(err, EINVAL, "%s %s: 0 (%s), or %lld to %lld", what, text, s->zero,
			       (long long)s->least, (long long)s->greatest);
	return bl_fail(err, EINVAL, "%s %s: a number from %lld to %lld", what, text,
		       (long long)s->least, (long long)s->greatest);
}

static int parse_name(const struct bl_setting *s, const char *what, const char *text,
		      struct bl_node_cfg *c, struct bl_err *err)
{
	char list[160];
	unsigned int k;

	for (k = 0; k < s->count; k++)
		if (!strcmp(s->names[k], text)) {
			store(s, c, name_value(s, k));
			return 0;
		}
	list_names(s, list, sizeof(list));
	return bl_fail(err, EINVAL, "%s \"%s\": there is %s", what, text, list);
}

int bl_setting_parse(const struct bl_setting *s, const char *what, const char *text,
		     struct bl_node_cfg *c, struct bl_err *err)
{
	switch (s->kind) {
	case BL_SETTING_NUMBER:
		return parse_number(s, what, text, c, err);
	case BL_SETTING_NAME:
		return parse_name(s, what, text, c, err);
	case BL_SETTING_TEXT:
		if (!*text || strlen(text) >= s->size)
			return bl_fail(err, EINVAL, "%s \"%s\": from 1 to %zu characters", what,
				       text, s->size - 1);
		strcpy((char *)c + s->at, text);
		return 0;
	case BL_SETTING_TRUTH:
	case BL_SETTING_BLOCK:
		break;
	}
	return bl_fail(err, EINVAL, "%s has no value", what);
}

void bl_setting_truth(const struct bl_setting *s, struct bl_node_cfg *c, bool value)
{
	store(s, c, value != s->inverse);
}

void bl_setting_flag(const struct bl_setting *s, struct bl_node_cfg *c)
{
	store(s, c, s->inverse ? !s->flag_value : (int64_t)s->flag_value);
}
