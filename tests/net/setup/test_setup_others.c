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
		cmocka_unit_test(others__stay),
		cmocka_unit_test(others__connections_are_not_cut),
		cmocka_unit_test(learn__hosts_that_talk),
		cmocka_unit_test(learn__neighbours_of_a_router),
		cmocka_unit_test(print__files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
