// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * YAML files, read strictly: libcyaml checks the shape and tells the line in its log; what it cannot check its callers check, and the line is found again in the text.
 *
 * Example: "beacon_us: 2000000" has the right shape. The caller says bl_yaml_bad(path, "beacon_us", 0, ...), and the message begins with "tor1.yaml:7: ".
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "node_priv.h"
#include "yaml.h"

/* What libcyaml said: its first error, and the first line number of its backtrace, which is the innermost. */
struct heard {
	char text[256];
	int line;
};

static void hear(cyaml_log_t level, void *ctx, const char *fmt, va_list ap)
{
	struct heard *h = ctx;
	char msg[256], *p;

	if (level < CYAML_LOG_ERROR)
		return;
	vsnprintf(msg, sizeof(msg), fmt, ap);
	msg[strcspn(msg, "\n")] = 0;
	p = strstr(msg, "line: ");
	if (p && !h->line)
		h->line = atoi(p + 6);
	if (!*h->text && !strstr(msg, "Backtrace"))
		snprintf(h->text, sizeof(h->text), "%s", strncmp(msg, "Load: ", 6) ? msg : msg + 6);
}

int bl_yaml_line(const char *path, const char *key, unsigned int nth)
{
	char line[1024], *p, *c;
	int no = 0, found = 0;
	size_t len = strlen(key);
	FILE *f = fopen(path, "re");

	while (f && !found && fgets(line, sizeof(line), f)) {
		no++;
		c = strchr(line, '#');
		if (c)
			*c = 0;
		for (p = line; (p = strstr(p, key)); p += len) {
			if ((p == line || strchr(" \t{,-\"'", p[-1])) && p[len + strspn(p + len, "\"' \t")] == ':' && !nth--) {
				found = no;
				break;
			}
		}
	}
	if (f)
		fclose(f);
	return found;
}

/* libcyaml tells where it was before an unknown key: look from there on. */
static int line_of_unknown(const char *path, const struct heard *h)
{
	static const char is[] = "Unexpected key: ";
	unsigned int nth;
	int line;

	if (strncmp(h->text, is, sizeof(is) - 1))
		return h->line;
	for (nth = 0; (line = bl_yaml_line(path, h->text + sizeof(is) - 1, nth)); nth++)
		if (line >= h->line)
			return line;
	return h->line;
}

int bl_yaml_bad(const char *path, const char *key, unsigned int nth, struct bl_err *err, const char *fmt, ...)
{
	char msg[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return bl_fail(err, EINVAL, "%s:%d: %s", path, bl_yaml_line(path, key, nth), msg);
}

bool bl_mac_parse(const char *s, uint8_t mac[6])
{
	unsigned int v[6];
	char end;
	int k;

	if (sscanf(s, "%2x:%2x:%2x:%2x:%2x:%2x%c", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &end) != 6)
		return false;
	for (k = 0; k < 6; k++)
		mac[k] = (uint8_t)v[k];
	return true;
}

int bl_yaml_load(const char *path, const cyaml_schema_value_t *top, void **out, struct bl_err *err)
{
	struct heard said = {};
	const cyaml_config_t how = { .log_fn = hear, .log_ctx = &said, .mem_fn = cyaml_mem, .log_level = CYAML_LOG_ERROR };
	FILE *probe;
	cyaml_err_t e;

	*out = NULL;
	probe = fopen(path, "re");
	if (!probe)
		return bl_fail(err, errno, "cannot read %s: %s", path, strerror(errno));
	fclose(probe);
	e = cyaml_load_file(path, &how, top, (cyaml_data_t **)out, NULL);
	if (e != CYAML_OK) {
		int line = line_of_unknown(path, &said);

		return bl_fail(err, EINVAL, "%s:%d: %s", path, line ? line : 1, *said.text ? said.text : cyaml_strerror(e));
	}
	return *out ? 0 : bl_fail(err, EINVAL, "%s:1: the file is empty", path);
}

void bl_yaml_free(const cyaml_schema_value_t *top, void *data)
{
	const cyaml_config_t how = { .mem_fn = cyaml_mem };

	cyaml_free(&how, top, data, 0);
}
