// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * `barline switch setup` and `barline host setup` beside what others do: what they configured and
 * use stays, what the kernel has learnt from them is taken over, and printed files do not replace
 * theirs.
 */
#include "tests/net/setup/setup_machines.h"

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

/* Devices on top of what setup made: they vanish with a bridge, and go down with a NIC. */
RACK_TEST(others__devices_on_top)
{
	plug();
	on(SW, "ip link add vx1 type vxlan id 1 dev eth1 dstport 4789"); /* down, as eth1 is */
	good(SW, "switch", L2);
	on(SW, "ip link add link br0 name mine type macvlan && ip link set mine up && ip address "
	       "add 10.9.9.1/24 dev mine");
	on(SW, "ip link add vx0 type vxlan id 2 dev eth0 dstport 4789 && ip link set vx0 up");
	good(SW, "switch", "--undo");
	/* left: the bridge, and that it and eth0 are up */
	CHECK(number("left") == 3, "%d steps are left", number("left"));
	on(SW, "ip address show mine | grep -q 10.9.9.1 && ip link show br0 | grep -q ',UP'");
	on(SW, "ip link show eth0 | grep -q ',UP' && ! ip link show eth1 | grep -q ',UP'");
	/* The other end of a veth is not on top of it. */
	on(SW, "ip link del br0; ip link add v0 type veth peer name v1 && ip link set v1 up");
	good(SW, "switch", "v0");
	good(SW, "switch", "--undo");
	CHECK(number("left") == 0, "%d steps are left", number("left"));
}

/* Owner and mode of a configuration outlive its replacement, and so does a link to it. */
RACK_TEST(others__mode_of_a_file)
{
	plug();
	on(SW, "mkdir -p " CONFIG " && echo 'role: switch' >" CONFIG "/real && chmod 640 " CONFIG
	       "/real && chown 7:8 " CONFIG "/real && ln -s real " CONFIG "/sw.yaml");
	good(SW, "switch", L2 " --overwrite");
	on(SW, "grep -q fdb " CONFIG "/real && [ -L " CONFIG "/sw.yaml ]");
	on(SW, "[ \"$(stat -c '%%a %%u %%g' " CONFIG "/real)\" = '640 7 8' ]");
	good(SW, "switch", "--undo");
	on(SW, "[ \"$(cat " CONFIG "/real)\" = 'role: switch' ] && [ -L " CONFIG "/sw.yaml ]");
	on(SW, "[ \"$(stat -c '%%a %%u %%g' " CONFIG "/real)\" = '640 7 8' ]");
	good(SW, "switch", L2 " --file new");
	on(SW, "[ $(stat -c %%a " CONFIG "/new.yaml) = 644 ]");
}

/* What is no configuration at all is neither taken for absent nor replaced. */
RACK_TEST(others__files_that_are_none)
{
	plug();
	on(SW, "mkdir -p " CONFIG " && printf 'role: switch\\0' >" CONFIG "/sw.yaml");
	bad("sw.yaml is no configuration: it has a zero byte", SW, "switch", L2 " --overwrite");
	on(SW, "rm " CONFIG "/sw.yaml && mkdir " CONFIG "/sw.yaml");
	bad("sw.yaml is no configuration: ", SW, "switch", L2 " --overwrite");
	on(SW, "rmdir " CONFIG "/sw.yaml && head -c 4194305 /dev/zero | tr '\\0' '#' >" CONFIG "/sw"
	       ".ya"
	       "m"
	       "l");
	bad("it is longer than 4 MiB", SW, "switch", L2 " --overwrite");
	on(SW, "rm " CONFIG "/sw.yaml");
	good(SW, "switch", L2);
	on(SW, "head -c 4194305 /dev/zero >>" CONFIG "/sw.yaml");
	good(SW, "switch", "--undo");
	CHECK(number("left") == 1, "%d steps are left", number("left"));
}

/* ---- devices that are no links ---- */

RACK_TEST(ports__devices_that_are_no_links)
{
	plug();
	on(SW, "ip link add link eth1 name mv0 type macvlan; ip link add ifb7 type ifb; ip link "
	       "add vx0 type vxlan id 7 dev eth1 dstport 4789");
	bad("mv0 is a macvlan device and sends by way of eth1", SW, "switch", "eth0 mv0");
	bad("ifb7 is a device of the kind ifb", SW, "switch", "eth0 ifb7");
	bad("vx0 is a tunnel", SW, "switch", "eth0 vx0");
	bad("ifb7 is a device of the kind ifb", SW, "host", "ifb7");
	/* A host's daemon takes it if its operator accepts that frames are reordered. */
	good(SW, "host", "mv0 --dry-run");
	CHECK(!strcmp(json_string_value(json_object_get(
			      json_array_get(json_object_get(said, "notes"), 0), "what")),
		      "mv0"),
	      "no note on mv0");
}

/* ---- learning ---- */

/* As docs/deploy.md says: the switch has no address, and the hosts talk to each other. */
RACK_TEST(learn__hosts_that_talk_to_each_other)
{
	static const char *const bridge[] = { "br0", "lan0" };
	int k;

	plug();
	on(H1, "ip link set eth0 up; ip address add 10.0.0.1/24 dev eth0");
	on(H2, "ip link set eth0 up; ip address add 10.0.0.2/24 dev eth0");
	for (k = 0; k < 2; k++) {
		if (k) /* the ports are in a bridge of another name already */
			on(SW, "ip link add lan0 type bridge; ip link set lan0 up; ip link set "
			       "eth0 master lan0; ip link set eth1 master lan0");
		good(SW, "switch", "eth0 eth1");
		on(H1, "ip neigh flush all");
		talk(H1, "10.0.0.2");
		good(SW, "switch", "eth0 eth1 --learn --yes");
		on(SW, "grep -q 'mac: 02:00:00:00:00:01, port: eth0' " CONFIG "/sw.yaml && grep "
		       "-q 'mac: 02:00:00:00:00:02, port: eth1' " CONFIG "/sw.yaml");
		on(SW, "grep -q 'eth0, role: host, addresses: \\[learn\\]' " CONFIG "/sw.yaml");
		/* With an address, the switch learns those of the hosts. */
		on(SW, "ip address add 10.0.0.254/24 dev %s", bridge[k]);
		talk(SW, "10.0.0.1");
		good(SW, "switch", "eth0 eth1 --learn --yes");
		on(SW, "grep -q 'eth0, role: host, addresses: \\[02:00:00:00:00:01, "
		       "10.0.0.1\\]' " CONFIG "/sw.yaml && grep -q 'eth1, role: host, addresses: "
		       "\\[learn\\]' " CONFIG "/sw.yaml");
		on(SW, "ip address del 10.0.0.254/24 dev %s", bridge[k]);
		good(SW, "switch", "--undo");
		CHECK(number("left") == 0, "%d steps are left", number("left"));
	}
}

/* More addresses than a host may have, and an Ethernet address that two ports have seen. */
RACK_TEST(learn__too_much)
{
	plug();
	on(SW, "ip link set eth0 up; ip link set eth1 up; for i in $(seq 11); do ip neigh add "
	       "10.0.1.$i lladdr 02:00:00:00:00:01 nud reachable dev eth0; done");
	on(SW,
	   "%s switch setup --config-dir " CONFIG " --state-dir " STATE " --forward l3 eth0 "
	   "--learn --dry-run 2>&1 | "
	   "grep -q '01 has 3 more IP "
	   "addresses'",
	   barline);
	on(SW, "ip neigh flush dev eth0; ip neigh add 10.0.1.1 lladdr 02:00:00:00:00:01 nud "
	       "reachable dev eth0; ip neigh add 10.0.2.1 lladdr 02:00:00:00:00:01 nud reachable "
	       "dev eth1");
	bad("02:00:00:00:00:01 is an address of two hosts, behind eth0 and behind eth1", SW,
	    "switch", "--forward l3 eth0 eth1 --learn --yes");
	/* The line of the configuration that cannot be is quoted. */
	bad("at \"{ interface: eth0, role: host, addresses: [02:00:00:00:00:01, 10.0.0.1, "
	    "02:00:00:00:00:02",
	    SW, "switch",
	    "eth0 eth1 --host eth0=02:00:00:00:00:01,10.0.0.1 --host "
	    "eth0=02:00:00:00:00:02,10.0.0.2 --host eth0=02:00:00:00:00:03,10.0.0.3 --host "
	    "eth0=02:00:00:00:00:04,10.0.0.4 --host eth0=02:00:00:00:00:05,10.0.0.5");
	/* A host without an IP address has its port learn it. */
	good(SW, "switch", "eth0 eth1 --host eth0=02:00:00:00:00:01");
	on(SW, "grep -q 'eth0, role: host, addresses: \\[learn\\]' " CONFIG "/sw.yaml");
}

/* Starts a setup that asks on a terminal, and waits for its question. Returns the terminal. */
static int ask(pid_t *pid)
{
	char said_so[4096] = "";
	size_t n = 0;
	int tty = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	CHECK(tty >= 0 && !grantpt(tty) && !unlockpt(tty), "%s", strerror(errno));
	fflush(NULL);
	*pid = fork();
	CHECK(*pid >= 0, "fork");
	if (!*pid) {
		int end = open(ptsname(tty), O_RDWR | O_NOCTTY | O_CLOEXEC);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		enter(SW);
		dup2(end, STDIN_FILENO);
		dup2(end, STDERR_FILENO);
		execl(barline, barline, "switch", "setup", "--name", "sw", "--config-dir", CONFIG,
		      "--state-dir", STATE, "--forward", "l3", "eth0", "--learn", NULL);
		_exit(127);
	}
	while (!strstr(said_so, "(y/n)")) {
		ssize_t got = read(tty, said_so + n, sizeof(said_so) - 1 - n);

		CHECK(got > 0, "no question after \"%s\"", said_so);
		n += (size_t)got;
	}
	return tty;
}

/* While a setup asks, another one must not write a journal that the first one would cut. */
RACK_TEST(learn__keeps_others_out)
{
	pid_t pid;
	int tty, st;

	plug();
	on(SW, "ip link set eth0 up; ip neigh add 10.0.1.1 lladdr 02:00:00:00:00:01 nud reachable "
	       "dev eth0");
	tty = ask(&pid);
	bad("another setup is running", SW, "switch", "eth0 eth1 --mtu 1400");
	CHECK(write(tty, "y\n", 2) == 2 && waitpid(pid, &st, 0) == pid, "%s", strerror(errno));
	CHECK(!st, "the first setup ends with %#x", st);
	good(SW, "switch", "--undo");
	CHECK(number("left") == 0, "%d steps are left", number("left"));
}

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

/* Files for an interface that somebody else configures would replace his. */
RACK_TEST(print__what_others_configure)
{
	plug();
	on(H1, "ip link set eth0 up; ip address add 10.0.1.1/24 dev eth0; ip link add e1 type "
	       "veth; ip link set e1 up; ip address add 10.0.2.1/24 dev e1");
	/* Nothing to set: no file, so that another one goes on. */
	CHECK(!setup(H1, "host", "eth0 --print networkd --print-to " BL_RUN_DIR "/p"), "print");
	on(H1, "! ls " BL_RUN_DIR "/p | grep -q .");
	bad("eth0 has the address 10.0.1.1/24", H1, "host", "eth0 --mtu 1400 --print networkd");
	bad("eth0 has the address 10.0.1.1/24", H1, "host",
	    "eth0 --address 10.0.3.1/24 --print networkd");
	on(H1, "ip route add default via 10.0.1.254");
	bad("a route to 0.0.0.0/0 by eth0", H1, "host",
	    "eth0 --address 10.0.1.1/24 --print networkd");
	CHECK(!setup(H1, "host",
		     "eth0 --mtu 1400 --address 10.0.1.1/24 --route default=10.0.1.254 --print "
		     "networkd --print-to " BL_RUN_DIR "/p"),
	      "print");
	on(H1, "cd " BL_RUN_DIR "/p && grep -q '^Address=10.0.1.1/24' *eth0.network && grep -q "
	       "'^Gateway=10.0.1.254' *eth0.network && grep -q '^MTUBytes=1400' *eth0.network");
	/* A route leaves by the interface that the step names, of which setup has no file. */
	bad("10.9.0.0/16 leaves by e1", H1, "host",
	    "eth0 --route 10.9.0.0/16=10.0.2.254 --print networkd");
	bad("10.9.0.0/16 leaves by e1", H1, "host",
	    "eth0 --route 10.9.0.0/16=10.0.2.254 --print ifupdown");
	CHECK(!setup(H1, "host",
		     "eth0 --route 10.9.0.0/16=10.0.1.7 --print ifupdown --print-to " BL_RUN_DIR
		     "/q"),
	      "print");
	on(H1, "grep -q 'replace 10.9.0.0/16 via 10.0.1.7 dev eth0' " BL_RUN_DIR "/q/barline-h1");
}

/* A bridge that setup did not make keeps its settings; one that setup made is printed again. */
RACK_TEST(print__bridges)
{
	plug();
	on(SW, "ip link add lan0 type bridge stp_state 1; ip link set lan0 up; ip link set eth0 "
	       "up; ip link set eth0 master lan0");
	CHECK(!setup(SW, "switch", "eth0 eth1 --print networkd --print-to " BL_RUN_DIR "/p"), "prin"
											      "t");
	on(SW, "cd " BL_RUN_DIR "/p && [ \"$(echo *)\" = 50-barline-eth1.network ] && grep -q "
	       "'^Bridge=lan0' *");
	CHECK(!setup(SW, "switch", "eth0 eth1 --print ifupdown --print-to " BL_RUN_DIR "/p"), "prin"
											      "t");
	on(SW, "cd " BL_RUN_DIR "/p && ! grep -q 'type bridge\\|iface eth0' barline-sw && grep -q "
	       "'eth1 master lan0' barline-sw");
	on(SW, "ip link del lan0; ip link set eth0 down");
	good(SW, "switch", "eth0 eth1");
	/* At the next boot, the printed files have made it. */
	on(SW, "sed -i 's/\"boot\":\"[^\"]*\"/\"boot\":\"another\"/' " STATE "/setup-sw.jsonl");
	CHECK(!setup(SW, "switch", "eth0 eth1 --print networkd --print-to " BL_RUN_DIR "/r"), "prin"
											      "t");
	on(SW, "cd " BL_RUN_DIR "/r && grep -q '^Kind=bridge' *br0.netdev && grep -q "
	       "'^Bridge=br0' *eth0.network && [ $(ls | wc -l) = 4 ]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others__stay),
		cmocka_unit_test(others__connections_are_not_cut),
		cmocka_unit_test(others__devices_on_top),
		cmocka_unit_test(others__mode_of_a_file),
		cmocka_unit_test(others__files_that_are_none),
		cmocka_unit_test(ports__devices_that_are_no_links),
		cmocka_unit_test(learn__hosts_that_talk_to_each_other),
		cmocka_unit_test(learn__too_much),
		cmocka_unit_test(learn__keeps_others_out),
		cmocka_unit_test(learn__hosts_that_talk),
		cmocka_unit_test(learn__neighbours_of_a_router),
		cmocka_unit_test(print__files),
		cmocka_unit_test(print__what_others_configure),
		cmocka_unit_test(print__bridges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
