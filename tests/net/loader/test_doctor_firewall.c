// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the doctor says of the firewall of a host: rule sets, made by nft(8), and the finding on
 * each. Looked at with `barline show network`, which has the same findings.
 *
 * In a rule set, @ stands for the host's NIC, and MANY for a chain of 4100 rules.
 */
#include "tests/net/barline_run.h"
#include "tests/net/rack.h"

#define OUT  "type filter hook output priority 0; policy accept; "
#define OUTD "type filter hook output priority 0; policy drop; "
#define IN   "type filter hook input priority 0; policy accept; "
#define IND  "type filter hook input priority 0; policy drop; "
#define POST "type filter hook postrouting priority 0; policy accept; "
#define EGR  "type filter hook egress device \"@\" priority 0; policy accept; "
#define MANY 4100
#define LONG "a123456789b123456789c123456789d123456789e123456789f123456789g123456789h123456789"

/*
 * @level of the finding of the firewall, and a part of it; NULL: there is none. @may_lack: the
 * kernel may be one without this kind of rule.
 */
static const struct {
	const char *rules, *level, *part;
	bool may_lack;
} sets[] = {
	{ "table inet f { chain o { " OUT "}; }", NULL, NULL },
	{ "table inet f { chain o { " OUTD "}; }", "FAIL",
	  "drops what is sent to UDP ports 61696 "
	  "to 61951 (nftables chain inet f o)" },
	{ "table ip f { chain o { " OUTD "}; }", "FAIL", "chain ip f o" },
	{ "table ip6 f { chain o { " OUTD "}; }", "FAIL", "chain ip6 f o" },
	{ "table inet f { chain i { " IND "}; }", "warn", "received on UDP ports" },
	/* what the rules accept */
	{ "table inet f { chain o { " OUTD "udp dport 61696-61951 accept; }; }", NULL, NULL },
	{ "table inet f { chain o { " OUTD "udp dport 61697-61951 accept; }; }", "warn",
	  "may drop what is sent" },
	{ "table inet f { chain o { " OUTD "udp dport 61696-61950 accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "udp dport 61952-62000 accept; }; }", "FAIL", "drops" },
	{ "table inet f { chain o { " OUTD "udp dport 61000-61695 accept; }; }", "FAIL", "drops" },
	{ "table inet f { chain o { " OUTD "udp dport >= 61696 accept; }; }", NULL, NULL },
	{ "table inet f { chain o { " OUTD "udp dport > 61696 accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "udp dport >= 61951 accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "udp dport >= 61952 accept; }; }", "FAIL", "drops" },
	{ "table inet f { chain o { " OUTD "udp dport > 61950 accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "udp dport > 61951 accept; }; }", "FAIL", "drops" },
	{ "table inet f { chain o { " OUTD "udp dport <= 61696 accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "udp dport <= 61951 accept; }; }", NULL, NULL },
	{ "table inet f { chain o { " OUTD "udp dport <= 61950 accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "udp dport < 61696 accept; }; }", "FAIL", "drops" },
	{ "table inet f { chain o { " OUTD "udp dport < 61697 accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "udp dport < 61952 accept; }; }", NULL, NULL },
	{ "table inet f { chain o { " OUTD "udp dport != 53 accept; }; }", NULL, NULL },
	{ "table inet f { chain o { " OUTD "udp dport != 61700 accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "udp dport 61700 accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "tcp dport 61696-61951 accept; }; }", "FAIL", "drops" },
	{ "table inet f { chain o { " OUTD "udp dport != 61696-61951 accept; }; }", "FAIL",
	  "drops" },
	{ "table inet f { chain o { " OUTD "udp dport != 61696-61950 accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "udp dport != 61000-61695 accept; }; }", NULL, NULL },
	{ "table inet f { chain o { " OUTD "meta l4proto udp accept; }; }", NULL, NULL },
	{ "table ip f { chain o { " OUTD "ip protocol udp accept; }; }", NULL, NULL },
	{ "table ip f { chain o { " OUTD "ip protocol tcp accept; }; }", "FAIL", "drops" },
	{ "table inet f { chain o { " OUTD "ct state established accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "ip daddr 10.0.0.0/8 accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "oifname \"lo\" accept; }; }", "warn", "may" },
	{ "table inet f { chain o { " OUTD "udp dport { 53, 61696-61951 } accept; }; }", "warn",
	  "may" },
	{ "table inet f { chain o { " OUTD "accept; }; }", NULL, NULL },
	/* at the input, a doubt is not worth a word */
	{ "table inet f { chain i { " IND "ct state established accept; }; }", NULL, NULL },
	{ "table inet f { chain i { " IN "tcp dport 22 accept; counter reject; }; }", "warn",
	  "received" },
	/* what they drop */
	{ "table inet f { chain o { " OUT "counter drop; }; }", "FAIL", "drops" },
	{ "table inet f { chain o { " OUT "reject; }; }", "FAIL", "drops" },
	{ "table inet f { chain o { " OUT "udp dport 61696-61951 drop; }; }", "FAIL", "drops" },
	{ "table inet f { chain o { " OUT "ct state invalid drop; }; }", NULL, NULL },
	{ "table inet f { chain o { " OUT "tcp dport 25 drop; }; }", NULL, NULL },
	{ "table inet f { chain o { " OUT "accept; drop; }; }", NULL, NULL },
	/* through other chains */
	{ "table inet f { chain x { udp dport 61696-61951 accept; }; chain o { " OUTD "jump x; }; "
	  "}",
	  NULL, NULL },
	{ "table inet f { chain x { drop; }; chain o { " OUT "meta l4proto udp jump x; }; }",
	  "FAIL", "drops" },
	{ "table inet f { chain x { tcp dport 1 drop; }; chain o { " OUT "jump x; }; }", NULL,
	  NULL },
	{ "table inet f { chain x { accept; }; chain o { " OUTD "ip daddr 10.0.0.1 jump x; }; }",
	  "warn", "may" },
	{ "table inet f { chain x { udp dport 61696-61951 return; accept; }; chain o { " OUTD "jump"
	  " x; "
	  "}; "
	  "}",
	  "FAIL", "drops" },
	{ "table inet f { chain x { udp dport 61696-61951 return; drop; }; chain o { " OUT "jump "
	  "x; }; "
	  "}",
	  NULL, NULL },
	{ "table inet f { chain x { ip daddr 10.9.9.9 return; drop; }; chain o { " OUT "jump x; }; "
	  "}",
	  "warn", "may" },
	{ "table inet f { chain x { ip daddr 10.9.9.9 return; accept; }; chain o { " OUTD "jump x; "
	  "}; }",
	  "warn", "may" },
	{ "table inet f { chain o { " OUTD "meta l4proto udp return; accept; }; }", "FAIL",
	  "drops" },
	{ "table inet f { chain o { " OUT "meta l4proto udp return; drop; }; }", NULL, NULL },
	{ "table inet f { chain x { counter; }; chain o { " OUT "goto x; drop; }; }", NULL, NULL },
	{ "table inet f { chain x { counter; }; chain o { " OUTD "goto x; accept; }; }", "FAIL",
	  "drops" },
	{ "table inet f { chain x { counter; }; chain y { goto x; drop; }; chain o { " OUT "jump "
	  "y; }; "
	  "}",
	  NULL, NULL },
	{ "table inet f { chain x { drop; }; chain o { " OUT "goto x; }; }", "FAIL", "drops" },
	{ "table inet f { chain x { counter; }; chain o { " OUT "ip daddr 10.9.9.9 goto x; drop; "
	  "}; }",
	  "warn", "may" },
	/* a verdict by a map, and by a process */
	{ "table inet f { chain o { " OUTD "udp dport vmap { 61696-61951 : accept }; }; }", "warn",
	  "may" },
	{ "table inet f { chain o { " OUTD "queue num 0; }; }", "warn", "may", true },
	/* a table that is switched off */
	{ "table inet f { flags dormant; chain o { " OUTD "}; }", NULL, NULL },
	{ "table ip f { flags dormant; chain o { " OUTD "}; }; table inet f { chain o { " OUTD "}; "
	  "}",
	  "FAIL", "chain inet f o" },
	/* one version of IP */
	{ "table inet f { chain o { " OUT "ip protocol udp drop; }; }", "FAIL",
	  "61951 over IPv4 (nftables chain inet f o)" },
	{ "table inet f { chain o { " OUT "ip6 nexthdr udp drop; }; }", "FAIL", "over IPv6" },
	{ "table inet f { chain o { " OUT "meta nfproto ipv6 drop; }; }", "FAIL", "over IPv6" },
	{ "table inet f { chain o { " OUT "meta protocol ip drop; }; }", "FAIL", "over IPv4" },
	{ "table inet f { chain o { " OUTD "meta nfproto ipv4 accept; ct state new accept; }; }",
	  "warn", "over IPv6: no rule" },
	{ "table inet f { chain o { " OUTD "meta nfproto { ipv4, ipv6 } accept; }; }", "warn",
	  "61951: no rule" },
	{ "table inet f { chain o { " OUTD "ip protocol udp accept; ip6 nexthdr udp accept; }; }",
	  NULL, NULL },
	/* behind the output */
	{ "table inet f { chain o { " POST "meta l4proto udp drop; }; }", "FAIL", "is sent to" },
	{ "table inet f { chain o { " POST "meta l4proto tcp drop; }; }", NULL, NULL },
	{ "table netdev f { chain o { " EGR "meta l4proto udp drop; }; }", "FAIL",
	  "chain netdev f o" },
	{ "table netdev f { chain o { " EGR "meta protocol ip meta l4proto udp drop; }; }", "FAIL",
	  "over IPv4" },
	{ "table netdev f { chain o { " EGR "meta protocol ip6 drop; }; }", "FAIL", "over IPv6" },
	{ "table netdev f { chain o { " EGR "meta protocol arp drop; }; }", NULL, NULL },
	{ "table netdev f { chain o { type filter hook egress devices = { lo, \"@\" } "
	  "priority 0; policy drop; }; }",
	  "FAIL", "is sent to" },
	{ "table netdev f { chain o { type filter hook egress device lo priority 0; policy drop; "
	  "}; }",
	  NULL, NULL },
	{ "table netdev f { chain o { type filter hook ingress device \"@\" priority 0; policy "
	  "drop; }; }",
	  NULL, NULL },
	/* behind very many rules */
	{ "table inet a { MANY; }; table inet f { chain o { " OUT "meta l4proto udp drop; }; }",
	  "FAIL", "drops" },
	{ "table inet a { MANY; }; table inet f { chain o { " OUTD "meta l4proto udp accept; }; }",
	  NULL, NULL },
	{ "table inet f { MANY; chain o { " OUT "jump many; }; }", "FAIL", "drops" },
	/* names of the longest kind */
	{ "table inet f { chain " LONG "y { drop; }; chain " LONG "z { counter; }; chain o { " OUT
	  "jump " LONG "z; }; }",
	  NULL, NULL },
	/* not at a hook of the host, or of no hook */
	{ "table inet f { chain o { type filter hook forward priority 0; policy drop; }; }", NULL,
	  NULL },
	{ "table inet f { chain o { drop; }; }", NULL, NULL },
	{ "table arp f { chain o { type filter hook output priority 0; policy drop; }; }", NULL,
	  NULL },
};

/* The finding on the firewall; NULL: there is none. */
static json_t *finding(json_t *report)
{
	json_t *row;
	size_t k;

	json_array_foreach(json_object_get(report, "network"), k, row)
	{
		const char *text = json_string_value(json_object_get(row, "finding"));

		if (strstr(text, "firewall"))
			return row;
	}
	return NULL;
}

static void put_many(FILE *to)
{
	unsigned int k;

	fprintf(to, "chain many {\n");
	for (k = 0; k < MANY; k++)
		fprintf(to, "tcp dport %u accept\n", k);
	fprintf(to, "meta l4proto udp drop\n}\n");
}

/* Has nft load @rules, with what @ and MANY stand for. Returns whether it did. */
static bool load(const char *rules, const char *nic)
{
	const char *at;
	FILE *p;

	CHECK(!system("nft flush ruleset"), "nft");
	p = popen("nft -f -", "w");
	CHECK(p, "nft");
	for (at = rules; *at; at++)
		if (!strncmp(at, "MANY", 4)) {
			put_many(p);
			at += 3;
		} else if (*at == '@') {
			fputs(nic, p);
		} else {
			fputc(*at, p);
		}
	fputc('\n', p);
	return !pclose(p);
}

/* Returns whether the finding on the present rules, which are @rules, is as expected. */
static bool judge(const char *barline, const char *rules, const char *want, const char *part)
{
	const char *const argv[] = { barline, "-j", "show", "network", NULL };
	const char *level, *text;
	json_t *report, *row;
	bool good;

	CHECK(!barline_run(&report, argv), "show network fails");
	row = finding(report);
	level = row ? json_string_value(json_object_get(row, "level")) : "none";
	text = row ? json_string_value(json_object_get(row, "finding")) : "";
	good = !strcmp(level, want) && (!part || strstr(text, part));
	if (!good)
		print_error("%s: %s, not %s (%s)\n", rules, level, want, text);
	json_decref(report);
	return good;
}

/* Returns whether the finding on set @i is as expected. */
static bool check_set(unsigned int i, const char *barline, const char *nic)
{
	if (!load(sets[i].rules, nic)) {
		CHECK(sets[i].may_lack, "nft refuses %s", sets[i].rules);
		return true;
	}
	return judge(barline, sets[i].rules, sets[i].level ? sets[i].level : "none", sets[i].part);
}

/* A firewall may drop the version of IP that the host does not use. */
static unsigned int check_versions(const char *barline, const char *nic)
{
	static const char v6[] = "table ip6 f { chain o { " OUTD "}; }",
			  both[] = "table inet f { chain o { " OUT "meta nfproto ipv6 drop; }; }",
			  v4[] = "table ip f { chain o { " OUTD "}; }";
	char command[100];
	unsigned int wrong = 0;

	snprintf(command, sizeof(command), "ip -6 address flush dev %s scope global", nic);
	CHECK(!system(command), "%s", command);
	CHECK(load(v6, nic), "nft");
	wrong += !judge(barline, v6, "none", NULL);
	CHECK(load(both, nic), "nft");
	wrong += !judge(barline, both, "none", NULL);
	CHECK(load(v4, nic), "nft");
	wrong += !judge(barline, v4, "FAIL", "chain ip f o");
	return wrong;
}

RACK_TEST(firewall__rule_sets)
{
	char barline[512];
	unsigned int i, wrong = 0;
	const char *nic;
	int home;

	rack.lab.spec.hosts = 1;
	rack_open();
	CHECK(barline_path(barline, sizeof(barline)), "no command");
	nic = rack.lab.nodes[rack_host(0)].ports[0].ifname;
	home = rack_away(rack_host(0));
	for (i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		wrong += !check_set(i, barline, nic);
	wrong += check_versions(barline, nic);
	CHECK(!wrong, "%u rule sets are judged wrongly", wrong);
	rack_back(home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(firewall__rule_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
