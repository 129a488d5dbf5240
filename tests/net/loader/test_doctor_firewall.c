// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the doctor says of the firewall of a host: rule sets, made by nft(8), and the finding on
 * each. Looked at with `barline show network`, which has the same findings.
 */
#include "tests/net/barline_run.h"
#include "tests/net/rack.h"

#define OUT  "type filter hook output priority 0; policy accept; "
#define OUTD "type filter hook output priority 0; policy drop; "
#define IN   "type filter hook input priority 0; policy accept; "
#define IND  "type filter hook input priority 0; policy drop; "

/* @level of the finding of the firewall, and a part of it; NULL: there is none. */
static const struct {
	const char *rules, *level, *part;
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

static void check_set(unsigned int i, const char *barline)
{
	const char *const argv[] = { barline, "-j", "show", "network", NULL };
	const char *level, *text;
	json_t *report, *row;
	FILE *p;

	CHECK(!system("nft flush ruleset"), "nft");
	p = popen("nft -f -", "w");
	CHECK(p, "nft");
	fprintf(p, "%s\n", sets[i].rules);
	CHECK(!pclose(p), "nft refuses %s", sets[i].rules);
	CHECK(!barline_run(&report, argv), "show network fails");
	row = finding(report);
	level = row ? json_string_value(json_object_get(row, "level")) : "none";
	text = row ? json_string_value(json_object_get(row, "finding")) : "";
	CHECK(!strcmp(level, sets[i].level ? sets[i].level : "none"), "%s: %s (%s)", sets[i].rules,
	      level, text);
	CHECK(!sets[i].part || strstr(text, sets[i].part), "%s: \"%s\"", sets[i].rules, text);
	json_decref(report);
}

RACK_TEST(firewall__rule_sets)
{
	char barline[512];
	unsigned int i;
	int home;

	rack.lab.spec.hosts = 1;
	rack_open();
	CHECK(barline_path(barline, sizeof(barline)), "no command");
	home = rack_away(rack_host(0));
	for (i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		check_set(i, barline);
	rack_back(home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(firewall__rule_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
