// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The real Prometheus scrapes a switch, loads the alert rules, and answers each expression of rules
 * and dashboard. What the exporter says is therefore what Prometheus understands.
 */
#include "tests/net/metrics/exporter.h"
#include "tests/net/until.h"

#include <sys/stat.h>

#define PORT      9490 /* of Prometheus */
#define STORE     BL_RUN_DIR "/prometheus"
#define DASHBOARD "monitoring/grafana-dashboard.json"

static pid_t prometheus;

static void write_config(void)
{
	char here[256];
	FILE *f = fopen(BL_RUN_DIR "/prometheus.yml", "w");

	CHECK(f && getcwd(here, sizeof(here)), "%s", strerror(errno));
	fprintf(f,
		"global: { scrape_interval: 1s, evaluation_interval: 1s }\n"
		"rule_files: [%s/monitoring/barline.rules.yml]\n"
		"scrape_configs:\n"
		"- job_name: barline\n"
		"  static_configs: [{ targets: ['127.0.0.1:%d'] }]\n",
		here, EXPORTER_PORT);
	fclose(f);
}

static void start_prometheus(unsigned int node)
{
	int home = rack_away(node);

	write_config();
	fflush(NULL);
	prometheus = fork();
	CHECK(prometheus >= 0, "%s", strerror(errno));
	if (!prometheus) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("prometheus", "prometheus", "--config.file=" BL_RUN_DIR "/prometheus.yml",
		       "--storage.tsdb.path=" STORE, "--web.listen-address=127.0.0.1:9490",
		       "--log.level=error", NULL);
		fprintf(stderr, "prometheus: %s; make deps-test installs it\n", strerror(errno));
		_exit(127);
	}
	rack_back(home);
}

/* Returns what Prometheus says to a request, or NULL. */
static json_t *ask_prometheus(const char *path)
{
	json_t *v;

	CHECK(waitpid(prometheus, NULL, WNOHANG) == 0, "prometheus has ended");
	if (http_get_from(PORT, path, NULL) != 200)
		return NULL;
	/* the answer may be in chunks: the object is what lies between the outer braces */
	char *from = strchr(http_said, '{');

	v = from ? json_loads(from, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
	return v;
}

/* Asks an expression. Returns the number of its results, or -1 if it is refused. */
static int query(const char *expr)
{
	static char path[8192];
	size_t n = (size_t)snprintf(path, sizeof(path), "/api/v1/query?query=");
	const char *c;
	json_t *v;
	int results = -1;

	for (c = expr; *c && n < sizeof(path) - 4; c++)
		n += (size_t)snprintf(path + n, sizeof(path) - n, "%%%02x", (unsigned char)*c);
	v = ask_prometheus(path);
	if (v && !strcmp(json_string_value(json_object_get(v, "status")), "success"))
		results = (int)json_array_size(json_object_get(json_object_get(v, "data"), "resul"
											   "t"));
	json_decref(v);
	return results;
}

/* Whether each rule was evaluated without an error. */
static bool rules_are_well(void)
{
	json_t *v = ask_prometheus("/api/v1/rules"), *groups, *rules, *r;
	unsigned int n = 0, ok = 0;
	size_t i;

	groups = json_object_get(json_object_get(v, "data"), "groups");
	rules = json_object_get(json_array_get(groups, 0), "rules");
	json_array_foreach(rules, i, r)
	{
		const char *health = json_string_value(json_object_get(r, "health"));

		n++;
		ok += health && !strcmp(health, "ok");
		CHECK(!health || strcmp(health, "err"), "%s: %s",
		      json_string_value(json_object_get(r, "name")),
		      json_string_value(json_object_get(r, "lastError")));
	}
	json_decref(v);
	return n > 20 && ok == n;
}

/* Replaces @what by @with in @text, which has room for it. */
static void replace(char *text, const char *what, const char *with)
{
	char *at;

	while ((at = strstr(text, what))) {
		memmove(at + strlen(with), at + strlen(what), strlen(at + strlen(what)) + 1);
		memcpy(at, with, strlen(with));
	}
}

static unsigned int ask_dashboard(void)
{
	json_t *d = json_load_file(DASHBOARD, 0, NULL), *p, *t;
	unsigned int n = 0;
	char expr[2048];
	size_t i, k;

	CHECK(d, DASHBOARD);
	json_array_foreach(json_object_get(d, "panels"), i, p)
		json_array_foreach(json_object_get(p, "targets"), k, t)
	{
		snprintf(expr, sizeof(expr), "%s", json_string_value(json_object_get(t, "expr")));
		replace(expr, "$node", ".*");
		replace(expr, "$__rate_interval", "1m");
		CHECK(query(expr) >= 0, "refused: %s", expr);
		n++;
	}
	json_decref(d);
	return n;
}

RACK_TEST(prometheus__understands_everything)
{
	static const char *const have[] = {
		"up{job=\"barline\"} == 1",
		"barline_daemon_up == 1",
		"barline_clock_valid == 1",
		"barline_output_lag_seconds{output=\"delivered\",stream=\"order\"}",
		"barline_frames_total{verdict=\"ok\",reason=\"beacon\"} > 0",
		"barline_input_state{state=\"live\"} == 1",
		"barline_interface_bytes_total > 0",
		"histogram_quantile(0.5, barline_barrier_lag_seconds_bucket) > 0",
		"barline_scrape_error == 0",
	};
	size_t k;

	CHECK(!mkdir(STORE, 0700), "%s", strerror(errno));
	rack.lab.spec.hosts = 1;
	rack_open();
	rack_settle();
	exporter_start((int)rack_host(0), NULL);
	start_prometheus(rack_host(0));
	UNTIL("waits for Prometheus", query("up == 1") == 1);
	for (k = 0; k < sizeof(have) / sizeof(have[0]); k++)
		UNTIL(have[k], query(have[k]) > 0);
	UNTIL("waits for the rules", rules_are_well());
	CHECK(query("ALERTS{alertstate=\"firing\",alertname!~\"BarlineBarrierLag|"
		    "BarlineInputExcluded\"}") == 0,
	      "an alert fires: %s", http_said);
	CHECK(ask_dashboard() > 30, "the dashboard has few expressions");
	CHECK(!kill(prometheus, SIGKILL) && waitpid(prometheus, NULL, 0) == prometheus, "%s",
	      strerror(errno));
	exporter_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prometheus__understands_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
