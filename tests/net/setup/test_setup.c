// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline switch setup` and `barline host setup`, on three machines (namespaces) that nobody has
 * set up: a switch with eth0 and eth1, and two hosts with eth0. What the machine looks like is the
 * text of iproute2 and of /proc/sys, and the files; undoing has to bring back every byte of it.
 */
#include <sys/file.h>

#include "tests/net/barline_run.h"
#include "tests/net/rack.h"

#define CONFIG BL_RUN_DIR "/etc"
#define STATE  BL_RUN_DIR "/state"

enum { SW, H1, H2, MACHINES };

static int netns[MACHINES], home = -1;
static char barline[512];
static json_t *said; /* what the last command said */

/* ---- machines ---- */

static void enter(int machine)
{
	CHECK(!setns(netns[machine], CLONE_NEWNET), "%s", strerror(errno));
}

static void leave(void)
{
	CHECK(!setns(home, CLONE_NEWNET), "%s", strerror(errno));
}

/* Runs a command of the shell on a machine. Returns whether it succeeded. */
__attribute__((format(printf, 2, 3))) static bool try(int machine, const char *fmt, ...)
{
	char command[1024];
	va_list ap;
	int rc;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	enter(machine);
	rc = system(command);
	leave();
	return !rc;
}

#define on(machine, ...)                              \
	do {                                          \
		bool ok_ = try(machine, __VA_ARGS__); \
		CHECK(ok_, "it fails: " __VA_ARGS__); \
	} while (0)

static void new_machine(int k)
{
	CHECK(!unshare(CLONE_NEWNET), "%s", strerror(errno));
	netns[k] = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	CHECK(netns[k] >= 0, "%s", strerror(errno));
	/* Without it, addresses change their state a while after they were added. */
	CHECK(!system("sysctl -q -w net.ipv6.conf.default.accept_dad=0 "
		      "net.ipv6.conf.all.accept_dad=0 && ip link set lo up"),
	      "sysctl");
	leave();
}

static void cable(int host, const char *port, unsigned int number)
{
	const struct nl_end a = { port, { 2, 0, 0, 0, 1, (uint8_t)number } };
	const struct nl_end b = { "eth0", { 2, 0, 0, 0, 0, (uint8_t)number } };
	struct nl nl;

	enter(SW);
	CHECK(!nl_open(&nl) && !nl_veth(&nl, &a, &b, netns[host], 1500), "veth");
	nl_close(&nl);
	CHECK(!nl_plain(port), "offloads of %s", port);
	leave();
	enter(host);
	CHECK(!nl_plain("eth0"), "offloads");
	leave();
}

static void plug(void)
{
	int k;

	home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	CHECK(home >= 0 && barline_path(barline, sizeof(barline)), "where am I?");
	for (k = 0; k < MACHINES; k++)
		new_machine(k);
	cable(H1, "eth0", 1);
	cable(H2, "eth1", 2);
	/* The kernel gives an interface its queueing discipline when it is up for the first time.
	 */
	on(SW, "for i in eth0 eth1; do ip link set $i up; ip link set $i down; done");
	on(H1, "ip link set eth0 up; ip link set eth0 down");
	on(H2, "ip link set eth0 up; ip link set eth0 down");
}

/* All that setup may change. The caller frees it. */
static char *look(int machine)
{
	static const char command[] = "(ip -d link; ip -d addr) | sed -E 's/[a-z_]+_timer "
				      "+[0-9.]+//g'; ip -4 route show table all; ip -6 "
				      "route show table all; "
				      "ip neigh show nud permanent;"
				      "bridge fdb | grep -v '^33:33\\|^01:00:5e'; "
				      "for f in /proc/sys/net/ipv*/conf/*/forwarding; do echo $f "
				      "$(cat $f); done; "
				      "find " CONFIG " " STATE " -type f -exec grep -H . {} + "
				      "2>/dev/null; "
				      "ls -d " CONFIG " 2>/dev/null";
	char *text = malloc(1 << 18);
	size_t n;
	FILE *p;

	enter(machine);
	p = popen(command, "r");
	CHECK(p && text, "popen");
	n = fread(text, 1, (1 << 18) - 1, p);
	text[n] = '\0';
	pclose(p);
	leave();
	CHECK(n > 500, "nothing is to be seen");
	return text;
}

/* Prints where two looks differ. */
static void differ(const char *was, const char *is)
{
	while (*was && *was == *is) {
		was++;
		is++;
	}
	fprintf(stderr, "it was ...%.300s\nand is ...%.300s\n", was, is);
}

/*
 * Waits until the machine looks like @was: the kernel reports a carrier, and adds and removes the
 * addresses that follow from it, a while after a link is set up or down.
 */
static void await(int machine, const char *was)
{
	unsigned int n = 0;

	for (;;) {
		char *is = look(machine);
		bool same = !strcmp(is, was);

		if (!same && n++ > 100) {
			differ(was, is);
			FAIL("the machine is not as before");
		}
		free(is);
		if (same)
			return;
		usleep(50000);
	}
}

/* Looks until two looks with a tenth of a second between them are the same. */
static char *settled(int machine)
{
	char *a = look(machine), *b;

	for (;;) {
		usleep(1100000); /* the kernel collects changes of carrier for up to a second */
		b = look(machine);
		if (!strcmp(a, b)) {
			free(b);
			return a;
		}
		free(a);
		a = b;
	}
}

/* ---- the command ---- */

/*
 * Runs `barline -j ROLE setup --name NAME WORDS`, with the folders of the test. Returns the exit
 * status; 128 + the signal that ended it.
 */
__attribute__((format(printf, 3, 4))) static int setup(int machine, const char *role,
						       const char *fmt, ...)
{
	char words[1024], command[2048], *save = NULL, *argv[64];
	int out = memfd_create("out", MFD_CLOEXEC), n = 0, st;
	va_list ap;
	pid_t pid;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	snprintf(command, sizeof(command),
		 "%s -j %s setup --name %s --config-dir " CONFIG " --state-dir " STATE " %s",
		 barline, role,
		 machine == SW   ? "sw"
		 : machine == H1 ? "h1"
				 : "h2",
		 words);
	for (argv[n] = strtok_r(command, " ", &save); argv[n] && n < 62;)
		argv[++n] = strtok_r(NULL, " ", &save);
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0 && out >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		enter(machine);
		dup2(out, STDOUT_FILENO);
		close(STDIN_FILENO);
		open("/dev/null", O_RDONLY);
		execv(argv[0], argv);
		_exit(127);
	}
	CHECK(waitpid(pid, &st, 0) == pid, "%s", strerror(errno));
	json_decref(said);
	lseek(out, 0, SEEK_SET);
	said = json_loadfd(out, 0, NULL);
	close(out);
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}

static const char *error_text(void)
{
	const char *text = json_string_value(json_object_get(said, "error"));

	return text ? text : "";
}

static int number(const char *key)
{
	json_t *v = json_object_get(said, key);

	return json_is_integer(v) ? (int)json_integer_value(v) : -1;
}

#define good(...)                                                \
	do {                                                     \
		int rc_ = setup(__VA_ARGS__);                    \
		CHECK(!rc_, "status %d: %s", rc_, error_text()); \
	} while (0)
#define bad(part, ...)                                                                         \
	do {                                                                                   \
		int rc_ = setup(__VA_ARGS__);                                                  \
		CHECK(rc_ == 1 && strstr(error_text(), part), "status %d: \"%s\", not \"%s\"", \
		      rc_, error_text(), part);                                                \
	} while (0)

#define L2                                                                                \
	"eth0 eth1 --node-id 1001 --host eth0=02:00:00:00:00:01,10.0.0.1,fd00::1 --host " \
	"eth1=02:00:00:00:00:02,10.0.0.2"
#define L3                                                                                      \
	"--forward l3 eth0 eth1 --node-id 1001 --address eth0=10.0.1.254/24 --address "         \
	"eth1=10.0.2.254/24 --address eth1=fd02::fe/64 --host eth0=02:00:00:00:00:01,10.0.1.1 " \
	"--host eth1=02:00:00:00:00:02,10.0.2.1,fd02::1 --route 10.9.0.0/16=10.0.1.1"

/* Has machine @from say something to @ip, until it knows the Ethernet address of that. */
static void talk(int from, const char *ip)
{
	while (!try(from, "bash -c 'echo >/dev/udp/%s/9' && ip neigh show %s | grep -q lladdr", ip,
		    ip))
		usleep(50000);
}

/* ---- nodes and a message ---- */

static pid_t nodes[MACHINES];

static pid_t start(int machine, int out, char *const *argv)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		enter(machine);
		if (out >= 0)
			dup2(out, STDOUT_FILENO);
		execv(argv[0], argv);
		_exit(127);
	}
	return pid;
}

static void open_node(int machine, const char *role, const char *name)
{
	char file[128];
	char *const argv[] = { barline,
			       (char *)(uintptr_t)role,
			       "up",
			       "--config",
			       file,
			       "--clock-source",
			       "trust",
			       "--detach-on-exit",
			       "--caretaker-ms",
			       "0",
			       machine == SW ? "--thread-napi" : "--no-ahead",
			       NULL };

	snprintf(file, sizeof(file), CONFIG "/%s.yaml", name);
	nodes[machine] = start(machine, -1, argv);
}

static void close_nodes(void)
{
	int k, st;

	for (k = MACHINES - 1; k >= 0; k--) {
		CHECK(!kill(nodes[k], SIGTERM) && waitpid(nodes[k], &st, 0) == nodes[k], "kill");
		CHECK(WIFEXITED(st) && !WEXITSTATUS(st), "node %d ends with %#x", k, st);
	}
}

/* Sends messages from h1 to h2 until one is printed there. */
static void message_passes(const char *to)
{
	int out = memfd_create("out", MFD_CLOEXEC), st;
	char *const recv[] = { barline, "recv", "-p", "61700", "-c", "1", NULL };
	char address[64];
	char *const send[] = { barline, "send", "-w", "100", address, "in order", NULL };
	char text[256] = "";
	pid_t receiver;

	snprintf(address, sizeof(address), "%s:61700", to);
	do { /* the host's daemon may not be up yet */
		receiver = start(H2, out, recv);
		do {
			pid_t sender = start(H1, -1, send);

			CHECK(waitpid(sender, &st, 0) == sender, "send");
			usleep(20000);
		} while (!waitpid(receiver, &st, WNOHANG));
	} while (st);
	CHECK(pread(out, text, sizeof(text) - 1, 0) > 0 && strstr(text, "in order"), "\"%s\"",
	      text);
	close(out);
}

/* How many findings on the network of a machine's node failed, and whether one is of it at all. */
static int network_fails(int machine)
{
	const char *const argv[] = { barline, "-j", "show", "network", NULL };
	json_t *report, *row;
	int n = 0;
	size_t k;

	enter(machine);
	CHECK(!barline_run(&report, argv), "show network fails");
	leave();
	CHECK(json_array_size(json_object_get(report, "network")) > 1, "nothing is shown");
	json_array_foreach(json_object_get(report, "network"), k, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "level")), "FAIL") != 0)
			continue;
		fprintf(stderr, "%s: %s\n", json_string_value(json_object_get(row, "what")),
			json_string_value(json_object_get(row, "finding")));
		n++;
	}
	json_decref(report);
	return n;
}

/* Sets up the hosts, runs all nodes, passes a message, and takes everything back. */
static void rack_works(const char *sw, const char *h1, const char *h2, const char *to,
		       bool h1_router)
{
	char *was[MACHINES];
	int k;

	for (k = 0; k < MACHINES; k++)
		was[k] = settled(k);
	good(SW, "switch", "%s", sw);
	good(H1, "host", "%s", h1);
	good(H2, "host", "%s", h2);
	open_node(SW, "switch", "sw");
	open_node(H1, "host", "h1");
	open_node(H2, "host", "h2");
	message_passes(to);
	talk(H1, h1_router ? "10.0.1.254" : to); /* what is not ordered passes, too */
	for (k = 0; k < MACHINES; k++)
		CHECK(!network_fails(k), "something is wrong with machine %d", k);
	/* A second run finds nothing to do, and undo waits for the node to be gone. */
	good(SW, "switch", "%s", sw);
	CHECK(number("done") == 0, "%d steps", number("done"));
	good(H1, "host", "%s", h1);
	CHECK(number("done") == 0, "%d steps", number("done"));
	bad("is attached here", SW, "switch", "--undo");
	close_nodes();
	good(H1, "host", "--undo");
	good(H2, "host", "--undo");
	good(SW, "switch", "--undo");
	CHECK(number("left") == 0, "%d steps are left", number("left"));
	for (k = 0; k < MACHINES; k++) {
		await(k, was[k]);
		free(was[k]);
	}
}

RACK_TEST(rack__l2)
{
	plug();
	rack_works(L2, "eth0 --node-id 1 --address 10.0.0.1/24 --address fd00::1/64",
		   "eth0 --node-id 2 --address 10.0.0.2/24", "10.0.0.2", false);
}

RACK_TEST(rack__l3)
{
	plug();
	rack_works(L3, "eth0 --node-id 1 --address 10.0.1.1/24 --route 10.0.0.0/16=10.0.1.254",
		   "eth0 --node-id 2 --address 10.0.2.1/24 --route 10.0.0.0/16=10.0.2.254",
		   "10.0.2.1", true);
}

/* ---- dry runs ---- */

RACK_TEST(dry_run__changes_no_byte)
{
	char *was, *is;

	plug();
	was = settled(SW);
	good(SW, "switch", L2 " --dry-run");
	CHECK(number("done") == 8, "%d steps", number("done"));
	good(SW, "switch", L3 " --mtu 3000 --dry-run");
	CHECK(number("done") == 16, "%d steps", number("done"));
	CHECK(!try(SW, "ls " STATE " 2>/dev/null"), "a dry run made %s", STATE);
	is = look(SW);
	CHECK(!strcmp(was, is), "a dry run changed something");
	free(is);
	free(was);
	good(SW, "switch", L2);
	was = settled(SW);
	good(SW, "switch", "--undo --dry-run");
	CHECK(number("done") == 8, "%d steps", number("done"));
	is = look(SW);
	CHECK(!strcmp(was, is), "a dry undo changed something");
	free(is);
	free(was);
}

/* ---- kill -9 ---- */

/* Kills a setup before and after each of its steps, and takes back what it did until then. */
static void killed(const char *words)
{
	char *was = settled(SW);
	int at, status;

	for (at = 1;; at++) {
		status = setup(SW, "switch", "%s --kill-at %d", words, at);
		if (!status)
			break;
		CHECK(status == 128 + SIGKILL, "status %d at %d: %s", status, at, error_text());
		good(SW, "switch", "--undo");
		CHECK(number("left") == 0, "%d steps are left", number("left"));
		await(SW, was);
	}
	CHECK(at > 10, "it was killed %d times only", at - 1);
	good(SW, "switch", "--undo");
	await(SW, was);
	free(was);
}

RACK_TEST(kill__at_each_step_l2)
{
	plug();
	killed(L2);
}

RACK_TEST(kill__at_each_step_l3)
{
	plug();
	on(SW, "ip link set eth0 up; ip link set eth1 up");
	on(H1, "ip link set eth0 up");
	on(H2, "ip link set eth0 up");
	on(SW, "sysctl -q -w net.ipv6.conf.eth0.forwarding=1");
	killed(L3 " --mtu 3000");
}

/* After a kill, the next setup goes on, and one undo takes both back. */
RACK_TEST(kill__then_again)
{
	char *was;

	plug();
	was = settled(SW);
	CHECK(setup(SW, "switch", L2 " --kill-at 7") == 128 + SIGKILL, "it was not killed");
	good(SW, "switch", L2);
	CHECK(number("done") == 5, "%d steps", number("done"));
	/* the line of a step that was being written is no line */
	on(SW, "printf '{\"kind\": \"up\", \"dev' >>" STATE "/setup-sw.jsonl");
	good(SW, "switch", L2);
	good(SW, "switch", "--undo");
	await(SW, was);
	free(was);
	/* The file and the journal may have another name than the node. */
	good(SW, "switch", L2 " --file rack");
	on(SW, "grep -q '^name: sw$' " CONFIG "/rack.yaml && ! [ -e " CONFIG "/sw.yaml ]");
	bad("under the name sw", SW, "switch", "--undo");
	good(SW, "switch", "--file rack --undo");
}

/* ---- failures ---- */

RACK_TEST(failure__rolls_back)
{
	char *was;

	plug();
	/* A device on a bridge cannot be a port of it. */
	on(SW, "ip link add br0 address 02:00:00:00:02:00 type bridge; ip link add link br0 name "
	       "mv0 type macvlan");
	on(SW, "ip link set mv0 up; ip link set mv0 down");
	was = settled(SW);
	bad("`ip link set mv0 master br0`: ", SW, "switch", "mv0 eth0");
	await(SW, was);
	/* What was set up before stays. */
	good(SW, "switch", "eth0 --node-id 7");
	free(was);
	was = settled(SW);
	bad("`ip link set mv0 master br0`: ", SW, "switch", "eth0 mv0 --node-id 8");
	await(SW, was);
	good(SW, "switch", "--undo");
	CHECK(number("done") == 5, "%d steps", number("done"));
	free(was);
}

RACK_TEST(failure__journal)
{
	int fd;

	plug();
	good(SW, "switch", L2);
	fd = open(STATE, O_RDONLY | O_CLOEXEC);
	CHECK(!flock(fd, LOCK_EX), "%s", strerror(errno));
	bad("another setup is running", SW, "switch", L2);
	bad("another setup is running", SW, "switch", "--undo");
	close(fd);
	on(SW, "chmod 775 " STATE);
	bad("can be written by others", SW, "switch", L2);
	bad("can be written by others", SW, "switch", "--undo --dry-run");
	on(SW, "chmod 755 " STATE "; chown 1 " STATE);
	bad("can be written by others", SW, "switch", "--undo");
	on(SW, "chown 0 " STATE);
	bad("was set up as a switch", SW, "host", "eth0 --name sw");
	bad("in another network namespace", H1, "switch", L2 " --name sw");
	on(SW, "cp " STATE "/setup-sw.jsonl " STATE "/keep; sed -i '3s/.*/{\"kind\": "
	       "\"up\"}/' " STATE "/setup-sw.jsonl");
	bad("setup-sw.jsonl:3 is not a line", SW, "switch", "--undo");
	on(SW, "sed -i '1s/\"barline_setup\":1/\"barline_setup\":2/' " STATE "/setup-sw.jsonl");
	bad("of version 2", SW, "switch", "--undo");
	/* Settings of an earlier boot are gone; what is there now was made by somebody else. */
	on(SW, "sed 's/\"boot\":\"[^\"]*\"/\"boot\":\"another\"/' " STATE "/keep >" STATE
	       "/setup-sw.jsonl; rm " STATE "/keep");
	good(SW, "switch", "--undo");
	CHECK(number("done") == 2, "%d steps", number("done"));
	on(SW, "ip link show br0 >/dev/null");
	bad("nothing was set up under the name sw", SW, "switch", "--undo");
}

/* ---- what others did ---- */

RACK_TEST(others__stay)
{
	plug();
	on(SW, "mkdir -p " CONFIG "; echo 'role: switch' >" CONFIG "/sw.yaml");
	bad("is not as setup wrote it", SW, "switch", L2);
	good(SW, "switch", L2 " --overwrite --mtu 3000");
	on(SW, "ip link set eth0 mtu 2000");                           /* another MTU */
	on(SW, "ip link add x0 type veth; ip link set x0 master br0"); /* another port */
	on(SW, "ip link set eth1 nomaster; ip address add 10.5.5.5/24 dev eth1");
	on(SW, "echo '# mine' >>" CONFIG "/sw.yaml");
	bad("is not as setup wrote it", SW, "switch", "eth0 eth1 --force --mtu 2000");
	good(SW, "switch", "--undo");
	/* left: the file, the bridge, eth1 up, the MTU of eth0; back: eth0, eth1's MTU, br0 down */
	CHECK(number("left") == 4, "%d steps are left", number("left"));
	on(SW, "grep -q mine " CONFIG "/sw.yaml && ip link show br0 | grep -q 'state DOWN'");
	on(SW, "ip link show eth1 | grep -q ',UP' && ip link show eth1 | grep -q 'mtu 1500'");
	on(SW, "ip link show eth0 | grep -q 'mtu 2000' && ! ip link show eth0 | grep -q ',UP'");
	/* A file that was overwritten comes back. */
	on(SW, "ip link del br0; ip address flush dev eth1; ip link set eth0 mtu 1500");
	on(SW, "echo 'role: switch' >" CONFIG "/sw.yaml");
	good(SW, "switch", L2 " --overwrite");
	good(SW, "switch", L2 " --beacon-us 200"); /* its own file it may replace */
	good(SW, "switch", "--undo");
	on(SW, "[ \"$(cat " CONFIG "/sw.yaml)\" = 'role: switch' ]");
	/* A bridge that somebody made anew under the name of setup's is not removed. */
	good(SW, "switch", L2 " --overwrite");
	on(SW, "ip link del br0; ip link add br0 type bridge");
	good(SW, "switch", "--undo");
	CHECK(number("left") == 1, "%d steps are left", number("left"));
	on(SW, "ip link show br0 >/dev/null");
}

RACK_TEST(others__connections_are_not_cut)
{
	char *was;

	plug();
	on(SW, "ip address add 10.4.4.4/24 dev eth1");
	was = settled(SW);
	bad("eth1 has the address 10.4.4.4/24", SW, "switch", L2);
	await(SW, was);
	setenv("SSH_CONNECTION", "10.4.4.1 4711 10.4.4.4 22", 1);
	bad("10.4.4.4, by which you are logged in", SW, "switch", L2);
	unsetenv("SSH_CONNECTION");
	good(SW, "switch", L2 " --force");
	good(SW, "switch", "--undo");
	CHECK(number("left") == 0, "%d steps are left", number("left"));
	await(SW, was);
	free(was);
}

/* ---- learning ---- */

RACK_TEST(learn__hosts_that_talk)
{
	plug();
	good(SW, "switch", "eth0 eth1");
	on(SW, "ip address add 10.0.0.254/24 dev br0");
	bad("no host is known", SW, "switch", "eth0 eth1 --learn --yes");
	on(H1, "ip link set eth0 up; ip address add 10.0.0.1/24 dev eth0");
	on(H2, "ip link set eth0 up; ip address add 10.0.0.2/24 dev eth0");
	talk(SW, "10.0.0.1");
	talk(SW, "10.0.0.2");
	bad("give --yes", SW, "switch", "eth0 eth1 --learn");
	good(SW, "switch", "eth0 eth1 --learn --yes");
	on(SW, "grep -q 'eth0, role: host, addresses: \\[02:00:00:00:00:01, 10.0.0.1\\]' " CONFIG
	       "/sw.yaml");
	on(SW, "grep -q 'mac: 02:00:00:00:00:02, port: eth1' " CONFIG "/sw.yaml");
	/* One that is given stays as it is. */
	good(SW, "switch", "eth0 eth1 --learn --yes --host eth0=02:00:00:00:00:01,10.0.0.7");
	on(SW, "grep -q '02:00:00:00:00:01, 10.0.0.7' " CONFIG "/sw.yaml");
	good(SW, "switch", "--undo");
	/* The address of br0 is somebody's, so br0 stays. */
	CHECK(number("left") == 2, "%d steps are left", number("left"));
}

RACK_TEST(learn__neighbours_of_a_router)
{
	plug();
	good(SW, "switch", "--forward l3 eth0 eth1 --address eth0=10.0.1.254/24");
	on(H1, "ip link set eth0 up; ip address add 10.0.1.1/24 dev eth0");
	talk(SW, "10.0.1.1");
	good(SW, "switch", "--forward l3 eth0 eth1 --address eth0=10.0.1.254/24 --learn --yes");
	on(SW, "ip neigh show dev eth0 | grep -q '10.0.1.1 lladdr 02:00:00:00:00:01 PERMANENT'");
	good(SW, "switch", "--undo");
	on(SW, "! ip neigh show nud permanent | grep -q 10.0.1.1");
}

/* ---- files for every boot ---- */

RACK_TEST(print__files)
{
	plug();
	enter(SW);
	CHECK(!system("true"), "no shell");
	leave();
	CHECK(!setup(SW, "switch", L2 " --print networkd --print-to " BL_RUN_DIR "/l2"), "print");
	on(SW, "cd " BL_RUN_DIR "/l2 && [ \"$(echo *)\" = '50-barline-br0.netdev "
	       "50-barline-br0.network 50-barline-eth0.network 50-barline-eth1.network' ]");
	on(SW, "grep -q '^Bridge=br0' " BL_RUN_DIR "/l2/50-barline-eth1.network");
	CHECK(!setup(SW, "switch", L3 " --print networkd --print-to " BL_RUN_DIR "/l3"), "print");
	on(SW, "cd " BL_RUN_DIR "/l3 && grep -q '^Address=10.0.2.254/24' 50-barline-eth1.network "
	       "&& "
	       "grep -q '^Gateway=10.0.1.1' 50-barline-eth0.network && "
	       "grep -q '^LinkLayerAddress=02:00:00:00:00:01' 50-barline-eth0.network");
	/* sysctl reads the file, and makes of the machine what the steps make of it */
	on(SW, "sysctl -q -p " BL_RUN_DIR "/l3/50-barline-sw.conf && "
	       "[ $(cat /proc/sys/net/ipv4/conf/eth0/forwarding) = 1 ] && "
	       "[ $(cat /proc/sys/net/ipv6/conf/all/forwarding) = 1 ]");
	CHECK(!setup(H1, "host",
		     "eth0 --mtu 3000 --address 10.0.1.1/24 --print ifupdown "
		     "--print-to " BL_RUN_DIR "/if"),
	      "print");
	on(H1, "grep -q 'up ip address replace 10.0.1.1/24 dev eth0' " BL_RUN_DIR "/if/barline-h1");
	CHECK(!try(SW, "ls " CONFIG " " STATE " 2>/dev/null | grep -q ."), "it set up something");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rack__l2),
		cmocka_unit_test(rack__l3),
		cmocka_unit_test(dry_run__changes_no_byte),
		cmocka_unit_test(kill__at_each_step_l2),
		cmocka_unit_test(kill__at_each_step_l3),
		cmocka_unit_test(kill__then_again),
		cmocka_unit_test(failure__rolls_back),
		cmocka_unit_test(failure__journal),
		cmocka_unit_test(others__stay),
		cmocka_unit_test(others__connections_are_not_cut),
		cmocka_unit_test(learn__hosts_that_talk),
		cmocka_unit_test(learn__neighbours_of_a_router),
		cmocka_unit_test(print__files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
