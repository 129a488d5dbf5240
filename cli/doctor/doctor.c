/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline doctor: checks the requirements of barline on this machine, most of them by doing what
 * barline does (doctor_try.c, in a child process with namespaces of its own; not with --quick), and
 * the nodes of this network namespace.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "base/timens.h"
#include "cli/cmd.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "core/clock_core.h"
#include "loader/admission/admission.h"
#include "maps/auth_abi.h"
#include "maps/fastpass_abi.h"
#include "maps/hold_abi.h"
#include "maps/host_abi.h"

#define TRY_TIMEOUT_S 30

/** struct sheet - The report: all findings so far. */
struct sheet {
	json_t *rows; /* one object per finding */
	int warnings, failed;
};

static void add_finding(void *ctx, const struct finding *f)
{
	struct sheet *s = ctx;

	s->warnings += f->level == FOUND_WARN;
	s->failed += f->level == FOUND_FAIL;
	json_array_append_new(s->rows, json_pack("{s:s, s:s, s:s, s:s}", "level",
						 finding_level_name(f->level), "what", f->what,
						 "cause", f->cause, "cure", f->cure));
	if (cli.json)
		return;
	printf("%-5s %-22s %s\n", finding_level_name(f->level), f->what, f->cause);
	if (f->cure[0])
		printf("%-5s %-22s -> %s\n", "", "", f->cure);
	fflush(stdout);
}

static void check_kernel(const struct finder *to)
{
	struct utsname u;
	unsigned int major = 0, minor = 0;

	uname(&u);
	sscanf(u.release, "%u.%u", &major, &minor);
	if (major < 6 || (major == 6 && minor < 1))
		found(to, FOUND_FAIL, "kernel", "run Linux 6.1 or later", "%s", u.release);
	else
		found(to, FOUND_OK, "kernel", "", "%s", u.release);
}

static void check_caps(const struct finder *to)
{
	static const struct {
		int cap;
		const char *name, *cure;
		enum finding_level level;
	} want[] = {
		{ CAP_NET_ADMIN, "CAP_NET_ADMIN",
		  "run as root, or give it to the service (AmbientCapabilities=)", FOUND_FAIL },
		{ CAP_BPF, "CAP_BPF",
		  "run as root, or give it to the service (AmbientCapabilities=)", FOUND_FAIL },
		{ CAP_NET_RAW, "CAP_NET_RAW",
		  "run as root: the host daemon sends beacons through a packet socket",
		  FOUND_WARN },
		{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN",
		  "run as root for labs, for -n, and to mount bpffs; a daemon does not need it",
		  FOUND_WARN },
	};
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { 0 };
	size_t i;

	if (syscall(SYS_capget, &h, d)) {
		found(to, FOUND_WARN, "capabilities", "run as root", "cannot be read: %s",
		      strerror(errno));
		return;
	}
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		if (d[want[i].cap / 32].effective & 1u << want[i].cap % 32)
			found(to, FOUND_OK, want[i].name, "", "held");
		else
			found(to, want[i].level, want[i].name, want[i].cure, "not held");
}

/*
 * Whether the kernel translates a program that is loaded. 1: yes; 0: no; -errno: none can be
 * loaded. The sysctl says it, too, but is there only in the initial network namespace.
 */
static int is_translated(void)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "bl_doctor", "Dual BSD/GPL", code, 2, NULL), rc;

	if (fd < 0)
		return -errno;
	rc = bpf_obj_get_info_by_fd(fd, &info, &len) ? -errno : info.jited_prog_len > 0;
	close(fd);
	return rc;
}

static void check_jit(const struct finder *to)
{
	int rc = is_translated();

	if (rc > 0)
		found(to, FOUND_OK, "BPF JIT", "", "on");
	else if (!rc)
		found(to, FOUND_FAIL, "BPF JIT",
		      "`sysctl -w net.core.bpf_jit_enable=1` in the initial network namespace",
		      "off: programs are interpreted, ten times slower");
	else
		found(to, FOUND_WARN, "BPF JIT", "run as root", "not known: %s", strerror(-rc));
}

static void check_bpffs(const struct finder *to)
{
	struct statfs fs;

	if (!statfs(BL_RUN_DIR "/bpf", &fs) && (unsigned long)fs.f_type == BPF_FS_MAGIC)
		found(to, FOUND_OK, "bpffs", "", "mounted on %s/bpf", BL_RUN_DIR);
	else
		found(to, FOUND_OK, "bpffs", "",
		      "not mounted on %s/bpf yet; the first node mounts it", BL_RUN_DIR);
}

/*
 * What to do if frames were counted for a reason. Reasons that are not listed are normal, or their
 * text is enough.
 */
static const char *const cures[BL_R_COUNT] = {
	[BL_R_PROMISE_BROKEN] = "if excluded and joined rise too, a host's daemon did not run for "
				"longer than dead_after, and the order was kept; else find out "
				"what reorders frames before this port: several transmit or "
				"receive queues, RPS, a bond",
	[BL_R_WRONG_CPU] = "each costs a hop, or, with --generic, may break the order: steer this "
			   "port's receive interrupts to its home CPU, or use threaded NAPI "
			   "(veth); in native XDP turn RPS off, with --generic set rps_cpus "
			   "to that CPU (docs/nics.md)",
	[BL_R_HOME_FULL] = "steer this port's receive interrupts to its home CPU, or use threaded "
			   "NAPI (veth); turn RPS off",
	[BL_R_BYPASSED] = "a port of this machine's bridge or routes has no program of barline: "
			  "make it a port of the switch, or remove it; a few are normal when a "
			  "link goes down",
	[BL_R_UNSWITCHED] = "a switch on the path forwards without barline's program: start its "
			    "daemon (`barline switch up`); a few are normal after a link or a "
			    "switch came up; or a neighbour runs an older version",
	[BL_R_CLOCK_VOID] = "start the daemon again; see `barline show clock`",
	[BL_R_TAI_MISMATCH] = "give all machines the same TAI offset",
	[BL_R_BARRIER_AHEAD] = "a neighbour's clock is ahead by more than the bound, or only this "
			       "node runs with --no-ahead: compare `barline show clock` on both "
			       "sides",
	[BL_R_TS_AHEAD] = "a sender's clock is ahead by more than the bound, or only this node "
			  "runs with --no-ahead: compare `barline show clock` on all hosts",
	[BL_R_RING_FULL] = "let the process call bl_recv() more often, or give it a larger ring "
			   "(bl_options.ring_bytes)",
	[BL_R_NO_ENDPOINT] = "senders use the address of a process that has ended; `barline show "
			     "endpoints` lists the processes that run",
	[BL_R_NOT_ENDPOINT] = "a program here uses a UDP port of barline's range: change its port, "
			      "or the range",
	[BL_R_FOREIGN_SOURCE] = "a program here uses the port of an endpoint at another address "
				"(`ss -uanp` lists them), or a host of the rack sends in this "
				"host's name",
	[BL_R_SEND_VOID] = "a process here was stopped in the middle of a send (a debugger, "
			   "SIGSTOP, "
			   "a lack of memory); the log says which. send_limit_ms is how long its "
			   "host waits",
	[BL_R_SEND_LATE] = "the kernel did not know the address of a neighbour: use permanent "
			   "neighbour entries on a rack (`ip neigh`), or ping each host after boot",
	[BL_R_PROMISE_ABSURD] = "something on this host has written into the pages of its "
				"programs: "
				"`barline show endpoints` lists who may",
	[BL_R_FORGED_BEACON] = "find the program that sends frames of ethertype 0x88B5",
	[BL_R_NO_ROUTE] = "add the route, or the --fdb entry",
	[BL_R_TO_KERNEL] = "normal in the first moments; if it grows, addresses of neighbours "
			   "cannot be resolved: use static neighbour entries on a rack",
	[BL_R_TOO_BIG] = "use one MTU on all links of the rack",
	[BL_R_FRAGMENT] = "use one MTU on all links of the rack",
	[BL_R_REDIRECT_FAILED] = "check that every port is up, and that peers of veth have an XDP "
				 "program",
	[BL_R_UNKNOWN_PORT] = "start the switch with all its ports",
	[BL_R_TTL] = "look for a routing loop",
	[BL_R_LOOPED] = "look for a bridge or a cable that returns frames",
	[BL_R_EXCLUDED] = "a neighbour was silent: it was stopped, or its beacon thread does not "
			  "get a CPU; `barline watch` shows beacons per second",
	[BL_R_LAGGING] = "the barrier of this port's host stands still or lags: its clock is off, "
			 "its daemon is broken, or the host is hostile; `barline show barriers` "
			 "shows its lag",
	[BL_R_SPOOFED] = "the host behind this port uses an address that belongs to another port: "
			 "compare `barline show sources`; list its addresses under ports, or find "
			 "the program that forges them",
	[BL_R_LANES_REFUSED] = "the neighbour is a switch with several datapath CPUs on a port of "
			       "role host, or is hostile: correct role or lanes of the port",
	[BL_R_CONTROL_FLOOD] = "the host behind this port sends more control frames than "
			       "control_rate allows: find the program, or raise the rate",
	[BL_R_BAD_VERSION] = "a neighbour runs another version of barline: upgrade it",
	[BL_R_BAD_OPCODE] = "a neighbour runs another version of barline, or sends garbage into "
			    "the port range",
	[BL_R_BAD_FLAGS] = "a neighbour runs another version of barline, or sends garbage into the "
			   "port range",
	[BL_R_BAD_LENGTH] = "something sends malformed frames: capture them with the dissector in "
			    "docs",
	[BL_R_SHORT] = "something sends malformed frames: capture them with the dissector in docs",
	[BL_R_BAD_IHL] = "something sends malformed frames: capture them with the dissector in "
			 "docs",
	[BL_R_IP_OPTIONS] = "ordered frames must have no IP options: find the hop or host that "
			    "adds them",
	[BL_R_DOUBLE_TAG] = "use one VLAN tag at most on ordered links",
	[BL_R_HOLD_FULL] = "normal for UDP that offers more than the policy admits; for bursts "
			   "raise hold_frames; `barline show holds` names the destination",
	[BL_R_NO_SLOT] = "raise slots: all queues of the node together need room for more frames",
	[BL_R_HOLD_DESTS] = "bl0 has frames for more than 254 stations at once: see `barline show "
			    "holds`",
	[BL_R_FRAME_SIZE] = "use an MTU of at most 1500 where admission is on, and no jumbo frames",
	[BL_R_QUEUE_FULL] = "normal with policy none under overload; with pl2 check that every "
			    "host reserves, and that the pacer gets its CPU (`barline show pacer`)",
	[BL_R_RSV_OFF] = "`barline admission set pl2` on the switch, or none on its hosts",
	[BL_R_RSV_BAD] = "check that k on the hosts fits the switch, and that the address of every "
			 "bl0 is in the switch's table (fdb)",
	[BL_R_GRT_OFF] = "`barline admission set pl2` on the switch, or another policy here; until "
			 "then frames leave as with policy none",
	[BL_R_POLICY_APART] = "`barline admission set pl2` on that host, or another policy here; "
			      "until then its frames leave as with policy none",
	[BL_R_GRT_BAD] = "a few are late answers: raise retry_us; if there are many, something "
			 "else on the link answers reservations",
	[BL_R_RELEASE_BAD] = "a few are late; if there are many, raise coming_us on the receiver, "
			     "because bursts arrive later than it expects",
	[BL_R_UNRESERVED] = "while reservations are on, traffic that does not use bl0 needs a port "
			    "with outside: true; else raise lapse_us, because bursts arrive after "
			    "their reservation has lapsed",
	[BL_R_AUTH_MISSING] = "give the node at the other end auth: { mode: links } and its key "
			      "file (`barline auth issue`), or exempt this port by auth: off",
	[BL_R_AUTH_BAD] = "issue the key files of both ends from the same file of the rack, with "
			  "the right node ids; if they are, somebody forges frames on this cable",
	[BL_R_AUTH_REPLAYED] = "compare `barline show clock` on both sides: clocks that are "
			       "more than a second apart count here; if they agree, somebody "
			       "repeats frames on "
			       "this cable",
	[BL_R_AUTH_FLOOD] = "somebody forges frames on this cable: find out who can send on it",
	[BL_R_AUTH_EPOCH] = "issue a new key file to the node that was left out of the last "
			    "rotation, and send its daemon SIGHUP (`barline show auth` on both "
			    "sides shows the epochs)",
	[BL_R_NONE] = "report it: a program ended without a reason",
};

static void check_counts(const struct finder *to, const struct bl_node_ref *ref)
{
	struct count_row *rows;
	int n = node_count_rows(ref, &rows), i, bad = 0;
	unsigned int r;
	char what[60];

	for (i = 0; i < n; i++)
		for (r = 0; r < BL_R_COUNT; r++) {
			uint64_t c = rows[i].n.n[r];

			if (!c || !cures[r] || r == BL_R_TO_KERNEL)
				continue;
			bad++;
			snprintf(what, sizeof(what), "%s %s", ref->meta.name, rows[i].name);
			found(to,
			      r == BL_R_PROMISE_BROKEN || r == BL_R_NONE ? FOUND_FAIL : FOUND_WARN,
			      what, cures[r], "%s %llu times: %s", reason_name(r),
			      (unsigned long long)c, reason_text(r));
		}
	free(rows);
	if (n >= 0 && !bad)
		found(to, FOUND_OK, ref->meta.name, "", "no suspicious counter");
}

/* Warns if a host of Fastpass sends without timeslots because no arbiter answers. */
static void check_fastpass(const struct finder *to, const struct bl_node_ref *ref)
{
	struct bl_hold_cfg c;
	struct bl_fp_page p;

	if (node_value(ref, BL_MAP_HOLD_CFG, 0, &c, sizeof(c)) || !c.on ||
	    !bl_policy_by_arbiter(c.policy) || node_value(ref, BL_MAP_FP_PAGE, 0, &p, sizeof(p)))
		return;
	if (p.fallback)
		found(to, FOUND_WARN, ref->meta.name,
		      "check that an arbiter of the Fastpass file runs and can be reached "
		      "(`barline arbiter show` on its machine), that it has the same file as this "
		      "host, and that the clock is valid",
		      "no arbiter answers: frames leave without timeslots until one does");
	else if (!p.session)
		found(to, FOUND_OK, ref->meta.name, "", "no session with an arbiter yet");
}

/* Warns if the neighbour at port @port authenticates its beacons and this node does not check. */
static void check_auth_port(const struct finder *to, const struct bl_node_ref *ref, uint32_t port,
			    const char *name, const struct bl_life *life)
{
	struct bl_auth_link l;
	char what[60];

	if (!life->auth || node_value(ref, BL_MAP_AUTH_LINKS, port, &l, sizeof(l)) ||
	    (l.how != BL_AUTH_EXEMPT && (l.at[0].epoch || l.at[1].epoch)))
		return;
	snprintf(what, sizeof(what), "%s %s", ref->meta.name, name);
	found(to, FOUND_WARN, what,
	      "give this node auth: { mode: links } and its key file too (`barline auth issue`), "
	      "or "
	      "exempt the port at the other end by auth: off",
	      "node %u at the other end authenticates this link (epoch %u), and this node does "
	      "not: it may refuse this node's beacons",
	      life->neighbour, life->auth);
}

static void check_auth(const struct finder *to, const struct bl_node_ref *ref)
{
	struct bl_host_page page;
	struct bl_sw_port port;
	struct bl_life life;
	char nic[16];
	uint32_t p;

	if (ref->role == BL_ROLE_HOST) {
		node_nic(ref, nic, sizeof(nic));
		if (!node_value(ref, BL_MAP_HOST_PAGE, 0, &page, sizeof(page)))
			check_auth_port(to, ref, 0, nic, &page.life);
		return;
	}
	for (p = 0; p < BL_SW_PORTS_MAX; p++)
		if (!node_value(ref, BL_MAP_SW_PORTS, p, &port, sizeof(port)) && port.ifindex &&
		    !node_value(ref, BL_MAP_SW_LIVES, p, &life, sizeof(life)))
			check_auth_port(to, ref, p, port.name, &life);
}

static void check_nodes(const struct finder *to)
{
	struct bl_node_ref *refs = NULL;
	struct bl_err err;
	int n, i;

	if (bl_timens_shifts("monotonic") || bl_timens_shifts("boottime")) {
		found(to, FOUND_FAIL, "time namespace",
		      "run barline without one (unshare -T, timeOffsets of a container)",
		      "CLOCK_MONOTONIC or CLOCK_BOOTTIME is shifted: barlined does not start here, "
		      "and its nodes' times cannot be judged");
		return;
	}
	n = bl_nodes_find(&refs, bl_netns_ino(), &err);
	if (n < 0)
		found(to, FOUND_FAIL, "nodes", "", "%s", err.text);
	if (n == 0)
		found(to, FOUND_OK, "nodes", "", "none in this network namespace");
	for (i = 0; i < n; i++) {
		doctor_daemon(to, &refs[i]);
		doctor_ports(to, &refs[i]);
		doctor_neighbours(to, &refs[i]);
		doctor_clock(to, &refs[i]);
		doctor_nics(to, &refs[i]);
		doctor_net(to, &refs[i]);
		doctor_hooks(to, &refs[i]);
		check_counts(to, &refs[i]);
		check_auth(to, &refs[i]);
		check_links(to, &refs[i]);
		if (refs[i].role == BL_ROLE_HOST)
			check_fastpass(to, &refs[i]);
	}
	free(refs);
}

static void send_finding(void *ctx, const struct finding *f)
{
	if (write(*(int *)ctx, f, sizeof(*f)) != sizeof(*f))
		_exit(1);
}

/*
 * Runs doctor_try() in a child, whose mounts and namespaces the kernel removes when it ends, and
 * passes its findings on to @to.
 */
static void run_trial(const struct finder *to)
{
	struct finding f;
	struct rusage use = { 0 };
	int fds[2], st = 0;
	pid_t pid;

	if (pipe(fds) || (fflush(NULL), pid = fork()) < 0) {
		found(to, FOUND_FAIL, "trial", "", "cannot fork: %s", strerror(errno));
		return;
	}
	if (pid == 0) {
		struct finder up = { .fn = send_finding, .ctx = &fds[1] };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		alarm(TRY_TIMEOUT_S);
		doctor_try(&up);
		_exit(0);
	}
	close(fds[1]);
	while (read(fds[0], &f, sizeof(f)) == sizeof(f))
		to->fn(to->ctx, &f);
	close(fds[0]);
	if (wait4(pid, &st, 0, &use) != pid || !WIFSIGNALED(st))
		return;
	if (WTERMSIG(st) == SIGALRM)
		found(to, FOUND_WARN, "trial",
		      "run the doctor again when the machine has less to do; if it got much CPU "
		      "time, report it with the lines above",
		      "not done within %d s, in which it got %.1f s of CPU time: not all was tried",
		      TRY_TIMEOUT_S,
		      (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
			      (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6);
	else
		found(to, FOUND_FAIL, "trial", "report it with the lines above",
		      "died of signal %d (%s)", WTERMSIG(st), strsignal(WTERMSIG(st)));
}

static error_t parse_doctor(int key, char *arg, struct argp_state *state)
{
	bool *quick = state->input;

	if (key != 'q')
		return ARGP_ERR_UNKNOWN;
	*quick = true;
	return 0;
}

int cmd_doctor(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "quick", 'q', NULL, 0, "only look, and try nothing, which takes seconds", 0 },
		{ 0 },
	};
	static const struct argp argp = { .options = options,
					  .parser = parse_doctor,
					  .children = cmd_globals,
					  .doc = "barline doctor - check this machine, by doing "
						 "what barline does in a new network namespace, "
						 "and the nodes of this namespace\v"
						 "Exit status 1 if a check failed; warnings do not "
						 "count." };
	struct sheet s = { .rows = json_array() };
	struct finder to = { .fn = add_finding, .ctx = &s };
	bool quick = false;

	cmd_parse(&argp, argc, argv, &quick);
	check_kernel(&to);
	check_caps(&to);
	check_jit(&to);
	check_bpffs(&to);
	if (!quick)
		run_trial(&to);
	doctor_time(&to);
	check_nodes(&to);
	if (cli.json)
		cli_json(json_pack("{s:O, s:i, s:i}", "findings", s.rows, "failed", s.failed,
				   "warnings", s.warnings));
	else
		printf("\n%d failed, %d warning%s\n", s.failed, s.warnings,
		       s.warnings == 1 ? "" : "s");
	json_decref(s.rows);
	return s.failed != 0;
}
