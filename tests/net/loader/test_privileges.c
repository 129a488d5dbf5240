// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barlined as a user of its own (loader/prepare.c): it has five capabilities and nothing else, its
 * whole life works with them, and root and the user take nodes over from each other. A filter of
 * system calls is in force for every thread, caretakers included (base/sandbox.c).
 */
#include "tests/net/loader/restart_talk.h"

#include <dirent.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/syscall.h>

#include "loader/load/pin.h"
#include "loader/prepare.h"

#define USER "nobody" /* every system has it */

/** struct creds - what /proc/PID/status says of a thread. */
struct creds {
	char name[32];
	unsigned int uid, seccomp, no_new_privs;
	uint64_t effective, permitted, inheritable, ambient, bounding;
};

static bool read_creds(const char *path, struct creds *v)
{
	FILE *f = fopen(path, "re");
	char line[256];

	memset(v, 0, sizeof(*v));
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "Name: %31s", v->name);
		sscanf(line, "Uid: %*u %u", &v->uid);
		sscanf(line, "Seccomp: %u", &v->seccomp);
		sscanf(line, "NoNewPrivs: %u", &v->no_new_privs);
		sscanf(line, "CapEff: %" SCNx64, &v->effective);
		sscanf(line, "CapPrm: %" SCNx64, &v->permitted);
		sscanf(line, "CapInh: %" SCNx64, &v->inheritable);
		sscanf(line, "CapAmb: %" SCNx64, &v->ambient);
		sscanf(line, "CapBnd: %" SCNx64, &v->bounding);
	}
	fclose(f);
	return true;
}

static uid_t user_id(void)
{
	const struct passwd *p = getpwnam(USER);

	CHECK(p, "there is no user " USER);
	return p->pw_uid;
}

/*
 * Checks every thread of a process that became another user. @bounded: the bounding set is empty,
 * too. Returns the number of threads.
 */
static unsigned int has_five_capabilities(pid_t pid, bool bounded)
{
	const uint64_t five = BL_CAP(CAP_BPF) | BL_CAP(CAP_NET_ADMIN) | BL_CAP(CAP_NET_RAW) |
			      BL_CAP(CAP_PERFMON) | BL_CAP(CAP_SYS_NICE);
	unsigned int n = 0;
	char path[300];
	struct dirent *e;
	struct creds v;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	CHECK(d, "%s: %s", path, strerror(errno));
	while ((e = readdir(d))) {
		uint64_t want = five;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, e->d_name);
		/* a thread may end meanwhile */
		if (e->d_name[0] == '.' || !read_creds(path, &v))
			continue;
		/* it only makes sockets */
		if (!strcmp(v.name, "barline-home"))
			want = 0;
		n++;
		CHECK(v.uid == user_id(), "%s of process %d has uid %u", v.name, pid, v.uid);
		CHECK(v.effective == want && v.permitted == want && v.inheritable == want &&
			      v.ambient == want,
		      "%s of process %d has %" PRIx64 ", permitted %" PRIx64 ", inheritable "
		      "%" PRIx64 ", ambient "
		      "%" PRIx64,
		      v.name, pid, v.effective, v.permitted, v.inheritable, v.ambient);
		/* helpers have no_new_privs, which makes their bounding sets meaningless */
		CHECK(!bounded || !v.bounding || !strncmp(v.name, "barline-home", 12) ||
			      !strncmp(v.name, "barline-empty", 13),
		      "%s of process %d has the bounding set %" PRIx64, v.name, pid, v.bounding);
		CHECK(v.no_new_privs, "%s of process %d may gain privileges", v.name, pid);
		CHECK(v.seccomp == 2, "%s of process %d has no filter of system calls", v.name,
		      pid);
	}
	closedir(d);
	return n;
}

static bool has_filter(pid_t pid)
{
	char path[64];
	struct creds v;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	CHECK(read_creds(path, &v) && v.uid == user_id(), "process %d is of user %u", pid, v.uid);
	return v.seccomp;
}

/* Checks that everything in the run directory that daemons made belongs to @uid. */
static void belongs_to(uid_t uid, unsigned int i)
{
	static const char *const subs[] = { "", "/maps", "/links" };
	char path[600];
	struct dirent *e;
	struct stat st;
	unsigned int k;
	DIR *d;

	for (k = 0; k < sizeof(subs) / sizeof(subs[0]); k++) {
		snprintf(path, sizeof(path), "%s%s", rack.dir[i], subs[k]);
		d = opendir(path);
		CHECK(d, "%s: %s", path, strerror(errno));
		while ((e = readdir(d))) {
			if (!strcmp(e->d_name, ".."))
				continue;
			CHECK(!fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW), "%s/%s",
			      path, e->d_name);
			CHECK(st.st_uid == uid, "%s/%s belongs to %u", path, e->d_name, st.st_uid);
		}
		closedir(d);
	}
}

/* Traffic goes on through stops, kills, and changes between the user and root, of every node. */
RACK_TEST(user__whole_life)
{
	unsigned int i, threads = 0;
	pid_t pid;

	rack_last_words = say_workers;
	dead_us = 8000000;
	dm_user = USER;
	open_rack(HOSTS);
	talk();
	goes_on("begins to talk");
	for (i = 0; i < rack.lab.nnodes; i++) {
		threads = has_five_capabilities(dm[i].pid, true);
		CHECK(threads >= 3, "%s has %u threads", rack.lab.nodes[i].name, threads);
		belongs_to(user_id(), i);
		daemon_stop(i, SIGTERM);
		pid = caretaker(i);
		CHECK(pid, "%s has no caretaker", rack.lab.nodes[i].name);
		has_five_capabilities(pid, true);
		goes_on("goes on with a caretaker");
		daemon_start(i);
		UNTIL("waits for the caretaker's end", !caretaker(i));
		/* not waited for, as in test_restart.c */
		CHECK(!kill(dm[i].pid, SIGKILL), "%s", strerror(errno));
		close(dm[i].out);
		daemon_start(i);
		goes_on("goes on after kill -9");
		/* root takes over from the user's caretaker, and the user from root's */
		daemon_stop(i, SIGTERM);
		dm_user = NULL;
		daemon_start(i);
		belongs_to(user_id(), i);
		goes_on("goes on with root's daemon");
		daemon_stop(i, SIGTERM);
		CHECK(caretaker(i), "%s: root's daemon left no caretaker", rack.lab.nodes[i].name);
		dm_user = USER;
		daemon_start(i);
		UNTIL("waits for the end of root's caretaker", !caretaker(i));
		goes_on("goes on with the user's daemon");
	}
	judge();
	daemons_end();
}

/* ---- one daemon, and what it says ---- */

/** struct start - how a daemon of a node is started by hand. */
struct start {
	uint64_t without; /* capabilities that it cannot have */
	const char *user; /* its --user; NULL: none */
	bool ambient;     /* it is started as the user, with the capabilities as ambient ones */
	bool prepare;     /* it runs with --prepare */
	bool no_sandbox;  /* it runs with --no-sandbox */
};

static void drop_bounds(uint64_t caps)
{
	unsigned int k;

	for (k = 0; k < 64; k++)
		if (caps & BL_CAP(k) && prctl(PR_CAPBSET_DROP, k, 0, 0, 0))
			_exit(126);
}

/* Makes this process what systemd would make of it: User=, AmbientCapabilities=. */
static void become_service(uint64_t caps)
{
	const struct passwd *p = getpwnam(USER);
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct v[2] = {
		{ .effective = (uint32_t)caps,
		  .permitted = (uint32_t)caps,
		  .inheritable = (uint32_t)caps },
		{ .effective = (uint32_t)(caps >> 32),
		  .permitted = (uint32_t)(caps >> 32),
		  .inheritable = (uint32_t)(caps >> 32) },
	};
	unsigned int k;

	drop_bounds(~caps & ((BL_CAP(CAP_LAST_CAP) << 1) - 1));
	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
	if (!p || setresgid(p->pw_gid, p->pw_gid, p->pw_gid) ||
	    setresuid(p->pw_uid, p->pw_uid, p->pw_uid) || syscall(SYS_capset, &h, v))
		_exit(126);
	for (k = 0; k < 64; k++)
		if (caps & BL_CAP(k) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, k, 0, 0))
			_exit(126);
}

/* Starts a daemon in the namespace of host @host; its standard output can be read from dm[].out. */
static void start_by_hand(unsigned int host, const struct start *s)
{
	unsigned int i = rack_host(host);
	char user[64], file[128];
	const char *argv[] = { "barlined",
			       "host",
			       "-c",
			       file,
			       "-j",
			       s->user ? user : "--name=x",
			       s->prepare      ? "--prepare"
			       : s->no_sandbox ? "--no-sandbox"
					       : NULL,
			       NULL };
	const char *program = dm_program();
	int out[2];

	snprintf(file, sizeof(file), BL_RUN_DIR "/%s.yaml", rack.lab.nodes[i].name);
	dm_file(i, file);
	CHECK(!chmod(file, 0644), "%s", strerror(errno));
	snprintf(user, sizeof(user), "--user=%s", s->user ? s->user : "");
	CHECK(!pipe2(out, O_CLOEXEC | O_NONBLOCK), "%s", strerror(errno));
	fflush(NULL);
	dm[i].pid = fork();
	CHECK(dm[i].pid >= 0, "%s", strerror(errno));
	if (!dm[i].pid) {
		rack_enter(i);
		dup2(out[1], STDOUT_FILENO);
		if (s->ambient)
			become_service(BL_CAPS_DAEMON & ~s->without);
		else
			drop_bounds(s->without);
		execv(program, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(out[1]);
	dm[i].out = out[0];
	dm_guard(dm[i].pid);
}

/* Waits for the end of the daemon of host @host. Returns its exit status; *@said: what it said. */
static int ends_with(unsigned int host, const char **said)
{
	static char text[8192];
	unsigned int i = rack_host(host);
	size_t len = 0;
	int status;
	ssize_t n;

	UNTIL("waits for the daemon's end", waitpid(dm[i].pid, &status, WNOHANG) == dm[i].pid);
	dm[i].pid = 0;
	while ((n = read(dm[i].out, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	close(dm[i].out);
	*said = text;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Another daemon of the host is refused, and the one that serves it stays. */
static void second_is_refused(unsigned int host, const struct start *s)
{
	unsigned int i = rack_host(host);
	struct daemon first = dm[i];
	char want[64];
	const char *said;

	start_by_hand(host, s);
	CHECK(ends_with(host, &said) == 1, "%s", said);
	snprintf(want, sizeof(want), "process %d serves the host", first.pid);
	CHECK(strstr(said, want), "%s", said);
	dm[i] = first;
	CHECK(runs(first.pid), "the first daemon has ended");
}

static void open_without_daemons(unsigned int hosts)
{
	rack.lab.spec.hosts = hosts;
	rack.closed = ~0ULL;
	rack_open();
}

/* Each capability that the programs and beacons need is named when it is missing, and only it. */
RACK_TEST(missing_capability__is_named)
{
	static const struct {
		unsigned int cap;
		const char *name;
	} v[] = { { CAP_BPF, "CAP_BPF" },
		  { CAP_NET_ADMIN, "CAP_NET_ADMIN" },
		  { CAP_NET_RAW, "CAP_NET_RAW" },
		  { CAP_PERFMON, "CAP_PERFMON" } };
	struct bl_err err;
	char want[64];
	const char *said;
	unsigned int k;

	open_without_daemons(1);
	/* root's daemon is left without CAP_SYS_ADMIN, which includes two of them */
	CHECK(!bl_bpffs_mount(&err), "%s", err.text);
	for (k = 0; k < 2 * sizeof(v) / sizeof(v[0]); k++) {
		const struct start s = { .without = BL_CAP(v[k / 2].cap) |
						    (k & 1 ? 0 : BL_CAP(CAP_SYS_ADMIN)),
					 .user = k & 1 ? USER : NULL };

		start_by_hand(0, &s);
		CHECK(ends_with(0, &said) == 1, "without %s: %s", v[k / 2].name, said);
		snprintf(want, sizeof(want), "lacks %s; it needs", v[k / 2].name);
		CHECK(strstr(said, want) && !strstr(said, "Linux 6.1"), "without %s: %s",
		      v[k / 2].name, said);
	}
}

/* What cannot be done is refused before anything is. */
RACK_TEST(arguments__refused)
{
	static const struct {
		struct start start;
		const char *says;
	} v[] = {
		{ { .user = "nobody-of-this-name" }, "there is no user " },
		{ { .user = "root", .ambient = true }, "only root can become user root" },
		{ { .prepare = true }, "--prepare: run it as root, with --user" },
		{ { .prepare = true, .user = USER, .ambient = true },
		  "--prepare: run it as root, with --user" },
	};
	struct bl_err err;
	const char *said;
	char netns[256];
	unsigned int k;
	struct stat st;

	open_without_daemons(1);
	for (k = 0; k < sizeof(v) / sizeof(v[0]); k++) {
		start_by_hand(0, &v[k].start);
		CHECK(ends_with(0, &said) == 1 && strstr(said, v[k].says), "%u: %s", k, said);
	}
	CHECK(!stat(BL_RUN_DIR, &st) && !st.st_uid, "the run directory has another owner");
	/* --no-sandbox: the five capabilities, and no filter */
	start_by_hand(0, &(struct start){ .user = USER, .no_sandbox = true });
	CHECK(daemon_ready(rack_host(0), &(int){ 0 }), "the daemon does not start");
	CHECK(!has_filter(dm[rack_host(0)].pid), "there is a filter of system calls");
	daemon_stop(rack_host(0), SIGKILL); /* it may just be starting its spare */
	snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", rack.lab.nodes[rack_host(0)].name);
	CHECK(!bl_node_detach(BL_ROLE_HOST, netns, &err), "%s", err.text);
}

/* A service manager starts it as the user with ambient capabilities, after root has prepared. */
RACK_TEST(ambient__after_prepare)
{
	const struct start prepare = { .user = USER, .prepare = true };
	const struct start ambient = { .ambient = true };
	struct bl_err err;
	char netns[256];
	unsigned int i;
	const char *said;
	int status = 0;

	open_without_daemons(1);
	i = rack_host(0);
	start_by_hand(0, &ambient);
	CHECK(ends_with(0, &said) == 1 && strstr(said, "--prepare"), "%s", said);
	start_by_hand(0, &prepare);
	CHECK(!ends_with(0, &said), "%s", said);
	start_by_hand(0, &ambient);
	CHECK(daemon_ready(i, &status), "status %#x", status);
	has_five_capabilities(dm[i].pid, false);
	belongs_to(user_id(), i);
	/* kill -9, and a start at once */
	CHECK(!kill(dm[i].pid, SIGKILL), "%s", strerror(errno));
	close(dm[i].out);
	start_by_hand(0, &ambient);
	CHECK(daemon_ready(i, &status), "status %#x", status);
	/* a second daemon of the same user, and one of root */
	second_is_refused(0, &ambient);
	second_is_refused(0, &(struct start){ 0 });
	daemon_stop(i, SIGTERM);
	has_five_capabilities(caretaker(i), false);
	start_by_hand(0, &ambient);
	CHECK(daemon_ready(i, &status), "status %#x", status);
	CHECK(!caretaker(i), "the caretaker stays");
	daemon_stop(i, SIGKILL);
	/* a node that root has made anew, and root's caretaker */
	snprintf(netns, sizeof(netns), LAB_NETNS_DIR "/%s", rack.lab.nodes[i].name);
	CHECK(!bl_node_detach(BL_ROLE_HOST, netns, &err), "%s", err.text);
	start_by_hand(0, &(struct start){ 0 });
	CHECK(daemon_ready(i, &status), "status %#x", status);
	daemon_stop(i, SIGTERM);
	CHECK(caretaker(i), "root's daemon left no caretaker");
	start_by_hand(0, &ambient);
	CHECK(daemon_ready(i, &status), "status %#x", status);
	belongs_to(user_id(), i);
	CHECK(!caretaker(i), "root's caretaker stays");
	daemon_stop(i, SIGKILL);
	CHECK(!bl_node_detach(BL_ROLE_HOST, netns, &err), "%s", err.text);
	CHECK(!caretaker(i) && !spare(i), "a caretaker outlives its node");
}

/* Runs a command in the namespace of host @host. */
static void in_host(unsigned int host, const char *command)
{
	int home = rack_away(rack_host(host));

	CHECK(!system(command), "%s", command);
	rack_back(home);
}

/* Whether process @pid waits for signals. */
static bool waits_for_signals(pid_t pid)
{
	char path[64];
	int call = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	f = fopen(path, "r");
	CHECK(f, "process %d has ended", pid);
	if (fscanf(f, "%d", &call) != 1)
		call = -1;
	fclose(f);
	return call == SYS_rt_sigtimedwait;
}

/* At boot a unit is started before its NIC is found. */
RACK_TEST(prepare__waits_for_its_nic)
{
	const struct start prepare = { .user = USER, .prepare = true };
	const char *said;
	unsigned int i;

	open_without_daemons(1);
	i = rack_host(0);
	in_host(0, "ip link set eth0 down && ip link set eth0 name later");
	start_by_hand(0, &prepare);
	UNTIL("waits for its NIC", waits_for_signals(dm[i].pid));
	CHECK(!kill(dm[i].pid, SIGHUP), "%s", strerror(errno)); /* ends no daemon */
	in_host(0, "ip link set later name eth0 && ip link set eth0 up");
	CHECK(!ends_with(0, &said), "%s", said);
	/* and can be stopped */
	in_host(0, "ip link set eth0 down && ip link set eth0 name later");
	start_by_hand(0, &prepare);
	UNTIL("waits for its NIC", waits_for_signals(dm[i].pid));
	CHECK(!kill(dm[i].pid, SIGTERM), "%s", strerror(errno));
	CHECK(ends_with(0, &said) == 1 && strstr(said, "stopped while"), "%s", said);
}

/* ---- a process that does not read ---- */

/** struct reader - of the case below, in shared memory. */
struct reader {
	_Atomic int ready;
	struct bl_addr addr;
};

static void tweak_limit(struct bl_node_cfg *cfg, const struct lab_node *n)
{
	tweak(cfg, n);
	cfg->process_limit_ms = 500;
}

/*
 * A ring that is not read is seen by a daemon that took the endpoint over: it opens the ring by its
 * pin, because it may not open it by its id.
 */
RACK_TEST(user__sees_rings)
{
	struct reader *r =
		mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct bl_endpoint *ep;
	pid_t pid[2];
	unsigned int k;

	CHECK(r != MAP_FAILED, "%s", strerror(errno));
	rack_last_words = say_all;
	dm_user = USER;
	rack.lab.spec.hosts = 2;
	rack.tweak = tweak_limit;
	ctl_start(answer_ms);
	daemons_open();
	UNTIL("waits for all nodes", all_ok());
	for (k = 0; k < 2; k++) {
		fflush(NULL);
		pid[k] = fork();
		CHECK(pid[k] >= 0, "%s", strerror(errno));
		if (pid[k])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rack_enter(rack_host(k));
		if (bl_init(&ep, NULL))
			_exit(1);
		if (!k) {
			r->addr = *bl_self(ep);
			r->ready = 1;
			for (;;)
				pause();
		}
		for (;; usleep(2000)) {
			struct bl_msg m = { .dst = r->addr, .data = "x", .len = 1 };

			if (r->ready > 1)
				bl_send(ep, &m, 1, 0);
			bl_recv(ep, &(struct bl_delivery){ 0 }, 1, 0);
		}
	}
	UNTIL("waits for the reader", r->ready);
	daemon_stop(rack_host(0), SIGTERM);
	daemon_start(rack_host(0));
	r->ready = 2;
	UNTIL("waits until the process that does not read is expelled", strstr(ask(), "\"why\":"
										      "\"ring\""));
	for (k = 0; k < 2; k++) {
		kill(pid[k], SIGKILL);
		waitpid(pid[k], NULL, 0);
	}
	daemons_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user__whole_life),
		cmocka_unit_test(missing_capability__is_named),
		cmocka_unit_test(arguments__refused),
		cmocka_unit_test(ambient__after_prepare),
		cmocka_unit_test(prepare__waits_for_its_nic),
		cmocka_unit_test(user__sees_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
