/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The doctor's trial: two veth pairs in a private network namespace, on which everything is tried
 * that barline needs.
 *
 *	a1 --veth-- a0 [XDP: redirect to all]  ->  b0 [devmap program] --veth-- b1
 *
 * A frame that is sent into a1 must arrive at b1. Then a switch runs on a0 and b0 and a host on
 * a1, and the switch must receive the host's beacons. Last, both run with admission, and a frame
 * that is sent into the host's bl0 must arrive at b1 through hold queue, pacer and metered port.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nl.h"
#include "base/time.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/finding.h"
#include "cli/util/out.h"
#include "cli/util/read.h"
#include "lab/pass.h"
#include "loader/admission/bl0.h"
#include "maps/host_abi.h"

#define ATTACH_TCX_EGRESS 47 /* enum bpf_attach_type, Linux 6.6 */

#define INSN(c, d, s, o, i)                                                         \
	{                                                                           \
		.code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) \
	}
#define MOV_IMM(d, i) INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define MOV_REG(d, s) INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define ADD_IMM(d, i) INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define ST_ZERO(off)  INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, off, 0)
#define CALL(f)       INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define EXIT()        INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define LD_MAP(d, fd) \
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)

#define TRY_MAC_A1                  \
	{                           \
		2, 0x77, 9, 0, 0, 2 \
	}
#define TRY_MAC_B1                  \
	{                           \
		2, 0x77, 9, 0, 0, 4 \
	}
static const uint8_t try_mac_a1[6] = TRY_MAC_A1;

struct trial {
	const struct finder *to;
	char a0[16], a1[16], b0[16], b1[16]; /* names of the interfaces */
	unsigned int ia0, ia1, ib0, ib1;     /* their indices */
};

static int load_program(enum bpf_prog_type type, const struct bpf_insn *code, size_t n,
			enum bpf_attach_type attach)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach);
	int fd = bpf_prog_load(type, "bl_doctor", "Dual BSD/GPL", code, n, &opts);

	return fd < 0 ? -errno : fd;
}
#define LOAD(type, code, attach) load_program(type, code, sizeof(code) / sizeof((code)[0]), attach)

static bool try_namespaces(struct trial *t)
{
	struct nl nl;
	struct nl_end a0 = { .name = t->a0, .mac = { 2, 0x77, 9, 0, 0, 1 } },
		      a1 = { .name = t->a1, .mac = TRY_MAC_A1 };
	struct nl_end b0 = { .name = t->b0, .mac = { 2, 0x77, 9, 0, 0, 3 } },
		      b1 = { .name = t->b1, .mac = TRY_MAC_B1 };
	unsigned int *index[] = { &t->ia0, &t->ia1, &t->ib0, &t->ib1 };
	const char *names[] = { t->a0, t->a1, t->b0, t->b1 };
	unsigned int pid = (unsigned int)getpid();
	int i, err;

	snprintf(t->a0, sizeof(t->a0), "bd%xa0", pid);
	snprintf(t->a1, sizeof(t->a1), "bd%xa1", pid);
	snprintf(t->b0, sizeof(t->b0), "bd%xb0", pid);
	snprintf(t->b1, sizeof(t->b1), "bd%xb1", pid);
	mkdir(BL_RUN_DIR, 0755);
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", BL_RUN_DIR, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")) {
		found(t->to, FOUND_FAIL, "private namespaces",
		      "run as root; the other checks could not be tried", "%s", strerror(errno));
		return false;
	}
	err = nl_open(&nl);
	if (!err)
		err = nl_veth(&nl, &a0, &a1, -1, 1500);
	if (!err)
		err = nl_veth(&nl, &b0, &b1, -1, 1500);
	for (i = 0; !err && i < 4; i++) {
		*index[i] = if_nametoindex(names[i]);
		err = nl_up(&nl, *index[i]);
	}
	nl_close(&nl);
	if (err) {
		found(t->to, FOUND_FAIL, "veth",
		      "load the kernel module veth; the other checks could not be tried", "%s",
		      strerror(-err));
		return false;
	}
	found(t->to, FOUND_OK, "private namespaces", "", "made, with two veth pairs");
	return true;
}

static void try_pin(struct trial *t)
{
	struct bl_err err;
	int fd = bl_bpffs_mount(&err)
			 ? -1
			 : bpf_map_create(BPF_MAP_TYPE_ARRAY, "bl_doctor", 4, 8, 1, NULL);

	if (fd < 0)
		found(t->to, FOUND_FAIL, "bpffs",
		      "run as root, or mount a bpffs on " BL_RUN_DIR "/bpf in /etc/fstab",
		      "cannot be mounted: %s", err.text);
	else if (bpf_obj_pin(fd, BL_RUN_DIR "/bpf/doctor"))
		found(t->to, FOUND_FAIL, "bpffs", "", "cannot pin a map: %s", strerror(errno));
	else
		found(t->to, FOUND_OK, "bpffs", "", "a map was pinned");
	unlink(BL_RUN_DIR "/bpf/doctor");
	if (fd >= 0)
		close(fd);
}

static void try_maps(struct trial *t)
{
	LIBBPF_OPTS(bpf_map_create_opts, mm, .map_flags = BPF_F_MMAPABLE);
	long page = sysconf(_SC_PAGESIZE);
	int ring = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "bl_doctor", 0, 0, BL_RING_BYTES_MIN, NULL);
	int array = bpf_map_create(BPF_MAP_TYPE_ARRAY, "bl_doctor", 4, 64, 64, &mm);
	void *p = ring < 0 ? MAP_FAILED
			   : mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
	void *q = array < 0 ? MAP_FAILED
			    : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, array, 0);

	if (p != MAP_FAILED)
		found(t->to, FOUND_OK, "BPF ring buffer", "", "made and mapped");
	else
		found(t->to, FOUND_FAIL, "BPF ring buffer", "raise RLIMIT_MEMLOCK; grant CAP_BPF",
		      "%s: %s", ring < 0 ? "not made" : "not mapped", strerror(errno));
	if (q != MAP_FAILED)
		found(t->to, FOUND_OK, "mapped BPF array", "", "made and mapped");
	else
		found(t->to, FOUND_FAIL, "mapped BPF array", "raise RLIMIT_MEMLOCK; grant CAP_BPF",
		      "%s: %s", array < 0 ? "not made" : "not mapped", strerror(errno));
	if (p != MAP_FAILED)
		munmap(p, (size_t)page);
	if (q != MAP_FAILED)
		munmap(q, 4096);
	close(ring);
	close(array);
}

static bool try_xdp(struct trial *t)
{
	int err = pass_attach(t->ib1);

	if (err)
		found(t->to, FOUND_FAIL, "native XDP on veth",
		      "run Linux 6.1 or later with CONFIG_BPF_SYSCALL and CONFIG_VETH", "%s",
		      strerror(-err));
	else
		found(t->to, FOUND_OK, "native XDP on veth", "", "attached");
	return !err;
}

static int open_packet_socket(unsigned int ifindex)
{
	struct sockaddr_ll ll = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = (int)ifindex };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));

	if (fd >= 0 && bind(fd, (struct sockaddr *)&ll, sizeof(ll))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Returns whether @frame is received on @sock within @ms, among other frames. */
static bool receives_frame(int sock, const uint8_t *frame, size_t len, unsigned int ms)
{
	uint64_t end = bl_mono_ns() + ms * 1000000ull;
	struct pollfd p = { .fd = sock, .events = POLLIN };
	uint8_t got[128];

	while (bl_mono_ns() < end && poll(&p, 1, (int)ms) == 1)
		if (recv(sock, got, sizeof(got), MSG_DONTWAIT) == (ssize_t)len &&
		    !memcmp(got, frame, len))
			return true;
	return false;
}

static bool redirect_frame(struct trial *t)
{
	static const uint8_t frame[60] = { 2, 0x77, 9,    0,    0,   4,   2,   0x77, 9,   0,
					   0, 2,    0x88, 0xb6, 'd', 'o', 'c', 't',  'o', 'r' };
	int in = open_packet_socket(t->ia1), out = open_packet_socket(t->ib1), tries;
	bool ok = false;

	for (tries = 0; !ok && tries < 10 && in >= 0 && out >= 0; tries++) {
		if (send(in, frame, sizeof(frame), 0) < 0)
			break;
		ok = receives_frame(out, frame, sizeof(frame), 100);
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return ok;
}

static void try_devmap(struct trial *t)
{
	const struct bpf_insn pass[] = { MOV_IMM(BPF_REG_0, XDP_PASS), EXIT() };
	uint32_t keys[] = { 0, 1 };
	struct bpf_devmap_val v = { .ifindex = t->ib0 };
	int map = bpf_map_create(BPF_MAP_TYPE_DEVMAP, "bl_doctor", 4, sizeof(v), 4, NULL), prog,
	    redirect = -1, err = 0;

	prog = LOAD(BPF_PROG_TYPE_XDP, pass, BPF_XDP_DEVMAP);
	v.bpf_prog.fd = prog;
	if (map < 0 || prog < 0 || bpf_map_update_elem(map, &keys[0], &v, 0))
		err = errno;
	v.ifindex = t->ia0;
	if (!err && bpf_map_update_elem(map, &keys[1], &v, 0))
		err = errno;
	if (err) {
		found(t->to, FOUND_FAIL, "devmap with program", "run Linux 6.1 or later", "%s",
		      strerror(err));
	} else {
		const struct bpf_insn all[] = { LD_MAP(BPF_REG_1, map), MOV_IMM(BPF_REG_2, 0),
						MOV_IMM(BPF_REG_3,
							BPF_F_BROADCAST | BPF_F_EXCLUDE_INGRESS),
						CALL(BPF_FUNC_redirect_map), EXIT() };

		found(t->to, FOUND_OK, "devmap with program", "", "made");
		redirect = LOAD(BPF_PROG_TYPE_XDP, all, 0);
		if (redirect < 0 || bpf_xdp_attach((int)t->ia0, redirect, XDP_FLAGS_DRV_MODE, NULL))
			found(t->to, FOUND_FAIL, "XDP broadcast", "run Linux 6.1 or later", "%s",
			      strerror(redirect < 0 ? -redirect : errno));
		else if (!redirect_frame(t))
			found(t->to, FOUND_FAIL, "XDP broadcast",
			      "check that both ends of each veth pair have an XDP program",
			      "none of 10 redirected frames arrived");
		else
			found(t->to, FOUND_OK, "XDP broadcast", "",
			      "a frame was redirected to all ports and arrived");
		bpf_xdp_detach((int)t->ia0, XDP_FLAGS_DRV_MODE, NULL);
	}
	close(map);
	close(prog);
	close(redirect);
}

static void try_egress(struct trial *t)
{
	const struct bpf_insn ok[] = { MOV_IMM(BPF_REG_0, 0), EXIT() };
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)t->ia1, .attach_point = BPF_TC_EGRESS);
	int prog = LOAD(BPF_PROG_TYPE_SCHED_CLS, ok, 0), link, err;

	link = prog < 0 ? -1
			: bpf_link_create(prog, (int)t->ia1,
					  (enum bpf_attach_type)ATTACH_TCX_EGRESS, NULL);
	if (link >= 0) {
		found(t->to, FOUND_OK, "egress hook", "", "tcx");
		close(link);
	} else {
		LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = prog);

		err = prog < 0 ? prog : bpf_tc_hook_create(&hook);
		if (!err)
			err = bpf_tc_attach(&hook, &opts);
		if (err)
			found(t->to, FOUND_FAIL, "egress hook",
			      "load the kernel modules sch_ingress and cls_bpf",
			      "neither tcx nor clsact: %s", strerror(-err));
		else
			found(t->to, FOUND_OK, "egress hook", "",
			      "clsact (this kernel has no tcx)");
		hook.attach_point = BPF_TC_INGRESS | BPF_TC_EGRESS;
		bpf_tc_hook_destroy(&hook);
	}
	if (prog >= 0)
		close(prog);
}

static void try_fib(struct trial *t)
{
	const struct bpf_insn code[] = { ST_ZERO(-64),
					 ST_ZERO(-56),
					 ST_ZERO(-48),
					 ST_ZERO(-40),
					 ST_ZERO(-32),
					 ST_ZERO(-24),
					 ST_ZERO(-16),
					 ST_ZERO(-8),
					 MOV_REG(BPF_REG_2, BPF_REG_10),
					 ADD_IMM(BPF_REG_2, -64),
					 MOV_IMM(BPF_REG_3, 64),
					 MOV_IMM(BPF_REG_4, 0),
					 CALL(BPF_FUNC_fib_lookup),
					 MOV_IMM(BPF_REG_0, XDP_PASS),
					 EXIT() };
	int prog = LOAD(BPF_PROG_TYPE_XDP, code, 0);

	if (prog < 0)
		found(t->to, FOUND_FAIL, "bpf_fib_lookup",
		      "run Linux 6.1 or later with CONFIG_INET", "%s", strerror(-prog));
	else
		found(t->to, FOUND_OK, "bpf_fib_lookup", "", "accepted");
	if (prog >= 0)
		close(prog);
}

/* Finds the threads napi/IFNAME-* and checks that they are pinned to @cpu (loader/load/napi.c). */
static void check_napi(struct trial *t, int cpu)
{
	char want[32], path[300], comm[64];
	int threads = 0, pinned = 0;
	struct dirent *e;
	DIR *d = opendir("/proc");

	snprintf(want, sizeof(want), "napi/%s-", t->a0);
	while (d && (e = readdir(d))) {
		cpu_set_t set;
		FILE *f;

		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		f = fopen(path, "re");
		if (f && fgets(comm, sizeof(comm), f) && !strncmp(comm, want, strlen(want)) &&
		    !sched_getaffinity(atoi(e->d_name), sizeof(set), &set)) {
			threads++;
			pinned += CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set);
		}
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	if (threads && pinned == threads)
		found(t->to, FOUND_OK, "threaded NAPI", "", "runs and is pinned to CPU %d", cpu);
	else
		found(t->to, FOUND_WARN, "threaded NAPI",
		      "needed on veth only; run in the machine's first pid namespace, as root",
		      threads ? "its thread cannot be pinned to a CPU"
			      : "its thread is not visible");
}

static void try_nodes(struct trial *t)
{
	struct bl_port_cfg ports[2] = { { .role = BL_PORT_HOST, .home_cpu = -1 },
					{ .role = BL_PORT_HOST, .home_cpu = -1 } };
	struct bl_node_cfg sw = { .role = BL_ROLE_SWITCH,
				  .name = "doctor-s",
				  .port_base = BL_PORT_BASE,
				  .port_count = BL_PORT_COUNT,
				  .ports = ports,
				  .ports_count = 2,
				  .thread_napi = true,
				  .forward = BL_FWD_L3 };
	struct bl_node_cfg host = { .role = BL_ROLE_HOST,
				    .name = "doctor-h",
				    .port_base = BL_PORT_BASE,
				    .port_count = BL_PORT_COUNT };
	struct bl_server *server;
	struct bl_node *node;
	struct bl_node_ref *refs = NULL;
	struct bl_err err;
	uint64_t beacons = 0;
	int i, j, n;

	strcpy(ports[0].ifname, t->a0);
	strcpy(ports[1].ifname, t->b0);
	strcpy(host.ifname, t->a1);
	if (bl_server_new(&server, &err)) {
		found(t->to, FOUND_FAIL, "event loop", "", "%s", err.text);
		return;
	}
	if (bl_node_open(&node, server, &sw, &err)) {
		found(t->to, FOUND_FAIL, "switch programs",
		      "report it with the output of `barline doctor`", "%s", err.text);
		return;
	}
	found(t->to, FOUND_OK, "switch programs", "", "verified, attached, pinned");
	check_napi(t, 0);
	if (bl_node_open(&node, server, &host, &err)) {
		found(t->to, FOUND_FAIL, "host programs",
		      "report it with the output of `barline doctor`", "%s", err.text);
		return;
	}
	found(t->to, FOUND_OK, "host programs", "", "verified, attached, pinned");
	for (i = 0; i < 50; i++) {
		usleep(10000);
		bl_server_step(server, &err);
	}
	n = bl_nodes_find(&refs, 0, &err);
	for (i = 0; i < n; i++) {
		struct count_row *rows = NULL;
		int k = refs[i].role == BL_ROLE_SWITCH ? node_count_rows(&refs[i], &rows) : 0;

		for (j = 0; j < k; j++)
			beacons += rows[j].n.n[BL_R_BEACON] + rows[j].n.n[BL_R_RELAYED];
		free(rows);
	}
	free(refs);
	if (beacons)
		found(t->to, FOUND_OK, "beacons", "",
		      "the switch received %llu of the host in half a second",
		      (unsigned long long)beacons);
	else
		found(t->to, FOUND_FAIL, "beacons", "report it with the output of `barline doctor`",
		      "the switch received none of the host in half a second");
	bl_server_free(server);
}

/*
 * Returns whether a frame to @to that is sent into bl0 arrives at b1. On the way the pacer sends it
 * twice: out of the host's hold queue, and out of the queue of the switch's port.
 */
static bool pass_frame_through_bl0(struct trial *t, const struct bl_node_cfg *host,
				   struct bl_server *server, const uint8_t to[6])
{
	uint8_t frame[60] = { 0 };
	int in = open_packet_socket(if_nametoindex(host->admission.bl0)),
	    out = open_packet_socket(t->ib1), tries;
	struct bl_err err;
	bool ok = false;

	memcpy(frame, to, 6);
	bl_bl0_mac(try_mac_a1, frame + 6);
	memcpy(frame + 12,
	       "\x88\xb6"
	       "doctor",
	       8);
	for (tries = 0; !ok && tries < 20 && in >= 0 && out >= 0; tries++) {
		if (send(in, frame, sizeof(frame), 0) < 0)
			break;
		bl_server_step(server, &err);
		ok = receives_frame(out, frame, sizeof(frame), 50);
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return ok;
}

static void try_admission(struct trial *t)
{
	struct bl_port_cfg ports[2] = { { .role = BL_PORT_HOST, .home_cpu = -1 },
					{ .role = BL_PORT_HOST, .home_cpu = -1 } };
	struct bl_fdb_cfg fdb = { .mac = TRY_MAC_B1 };
	struct bl_node_cfg sw = { .role = BL_ROLE_SWITCH,
				  .name = "doctor-s",
				  .port_base = BL_PORT_BASE,
				  .port_count = BL_PORT_COUNT,
				  .ports = ports,
				  .ports_count = 2,
				  .thread_napi = true,
				  .forward = BL_FWD_L2,
				  .fdb = &fdb,
				  .fdb_count = 1,
				  .admission = { .on = true, .rate_bps = 1000000000 } };
	struct bl_node_cfg host = {
		.role = BL_ROLE_HOST,
		.name = "doctor-h",
		.port_base = BL_PORT_BASE,
		.port_count = BL_PORT_COUNT,
		.admission = { .on = true, .rate_bps = 1000000000, .bl0 = "bl0", .bl0d = "bl0d" }
	};
	struct bl_server *server;
	struct bl_node *node;
	struct bl_err err;

	strcpy(ports[0].ifname, t->a0);
	strcpy(ports[1].ifname, t->b0);
	strcpy(fdb.ifname, t->b0);
	strcpy(host.ifname, t->a1);
	if (bl_server_new(&server, &err)) {
		found(t->to, FOUND_FAIL, "event loop", "", "%s", err.text);
		return;
	}
	if (bl_node_open(&node, server, &sw, &err) || bl_node_open(&node, server, &host, &err))
		found(t->to, FOUND_FAIL, "admission",
		      "everything else works without it; report it with the output of `barline "
		      "doctor`",
		      "%s", err.text);
	else if (!pass_frame_through_bl0(t, &host, server, fdb.mac))
		found(t->to, FOUND_FAIL, "admission",
		      "the pacer needs bpf_prog_test_run with live frames: run Linux 6.1 or later; "
		      "give its CPU time",
		      "no frame from bl0 passed hold queue, pacer and metered port");
	else
		found(t->to, FOUND_OK, "admission", "",
		      "a frame from bl0 passed hold queue, pacer and metered port");
	bl_server_free(server);
}

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return cli.verbose > 1 ? vfprintf(stderr, fmt, ap) : 0;
}

void doctor_try(const struct finder *to)
{
	struct trial t = { .to = to };

	libbpf_set_print(print_libbpf);
	bl_log_level = cli.verbose ? 6 : 3;
	if (!try_namespaces(&t))
		return;
	try_pin(&t);
	try_maps(&t);
	if (try_xdp(&t))
		try_devmap(&t);
	try_egress(&t);
	try_fib(&t);
	try_nodes(&t);
	try_admission(&t);
}
