// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * YAML files, read strictly: libcyaml checks the shape and tells the line in its log; what it
 * cannot check its callers check, and the line is found again in the text.
 *
 * Example: "beacon_us: 2000000" has the right shape. The caller says bl_yaml_bad(path, "beacon_us",
 * 0, ...), and the message begins with "tor1.yaml:7: ".
 *
 * "[fd00::1]:61693" without quotes is a list to YAML: the message says how it is written.
 *
 * libcyaml takes "100ms" for the number 100 and "maybe" for true. So numbers and truth values are
 * looked at once more in the text, where one key has them and nothing else.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "yaml.h"

/*
 * What libcyaml said: its first error, and the first line number of its backtrace, which is the
 * innermost.
 */
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
			if ((p == line || strchr(" \t{,-\"'", p[-1])) &&
			    p[len + strspn(p + len, "\"' \t")] == ':' && !nth--) {
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

int bl_yaml_bad(const char *path, const char *key, unsigned int nth, struct bl_err *err,
		const char *fmt, ...)
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

	if (sscanf(s, "%2x:%2x:%2x:%2x:%2x:%2x%c", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
		   &end) != 6)
		return false;
	for (k = 0; k < 6; k++)
		mac[k] = (uint8_t)v[k];
	return true;
}

/* ---- scalars, as they stand in the file ---- */

/*
 * The first list of words of this key in the schema, and which types it has anywhere (bits of enum
 * cyaml_type).
 */
static const cyaml_schema_field_t *field_of(const cyaml_schema_value_t *v, const char *key,
					    unsigned int *types)
{
	const cyaml_schema_field_t *found = NULL, *deeper, *f;

	if (v->type == CYAML_SEQUENCE)
		return field_of(v->sequence.entry, key, types);
	if (v->type != CYAML_MAPPING)
		return NULL;
	for (f = v->mapping.fields; f->key; f++) {
		if (!strcmp(f->key, key)) {
			*types |= 1u << f->value.type;
			found = !found && f->value.type == CYAML_ENUM ? f : found;
		}
		deeper = field_of(&f->value, key, types);
		found = found ? found : deeper;
	}
	return found;
}

/* The next "key: value" of @line from *@p on, in place. NULL: there is none. */
static char *next_pair(const char *line, char **p, char **value)
{
	char *key = *p, *end;
	size_t n;

	for (; *key; key += n ? n : 1) {
		n = strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_");
		end = key + n;
		end += strspn(end, "\"' \t");
		if (!n || *end != ':' || (end[1] && !strchr(" \t\r\n", end[1])) ||
		    (key != line && !strchr(" \t{,-\"'", key[-1])))
			continue;
		*value = end + 1 + strspn(end + 1, "\"' \t");
		*p = *value + strcspn(*value, ",}]\r\n");
		if (**p)
			*(*p)++ = 0;
		for (end = *value + strlen(*value); end > *value && strchr("\"' \t", end[-1]);
		     end--)
			end[-1] = 0;
		key[n] = 0;
		return key;
	}
	return NULL;
}

static bool is_number(const char *v)
{
	char *end;

	errno = 0;
	strtoll(v, &end, 0);
	return !errno && end != v && !*end;
}

static bool is_truth(const char *v)
{
	static const char *const words[] = { "true", "false", "yes", "no", "on", "off" };
	size_t k;

	for (k = 0; k < sizeof(words) / sizeof(words[0]); k++)
		if (!strcasecmp(v, words[k]))
			return true;
	return false;
}

static int bad_scalar(const char *path, int line, const char *key, const char *value,
		      unsigned int types, struct bl_err *err)
{
	const unsigned int number = 1u << CYAML_INT | 1u << CYAML_UINT;

	if (*value && strchr("[{&*|>", *value))
		return 0;
	if (types && !(types & ~number) && !is_number(value))
		return bl_fail(err, EINVAL, "%s:%d: %s \"%s\" is no number", path, line, key,
			       value);
	if (types == 1u << CYAML_BOOL && !is_truth(value))
		return bl_fail(err, EINVAL, "%s:%d: %s \"%s\": true or false", path, line, key,
			       value);
	return 0;
}

/* Only libcyaml's own complaint about a value that is none of a list's: the list. */
static void name_choices(const char *path, const cyaml_schema_value_t *top, struct heard *h)
{
	static const char is[] = "Invalid ENUM value: ";
	char text[1024], given[64], *p = text, *key, *value;
	const cyaml_schema_field_t *f;
	FILE *file;
	uint32_t k;
	int no;

	if (strncmp(h->text, is, sizeof(is) - 1))
		return;
	snprintf(given, sizeof(given), "%s", h->text + sizeof(is) - 1);
	file = fopen(path, "re");
	for (no = 0; file && no < h->line && fgets(text, sizeof(text), file); no++)
		;
	while (file && no == h->line && (key = next_pair(text, &p, &value))) {
		unsigned int types = 0;
		size_t at;

		f = field_of(top, key, &types);
		if (!f || strcmp(value, given))
			continue;
		at = (size_t)snprintf(h->text, sizeof(h->text), "%s \"%s\": there is ", key, given);
		for (k = 0; k < f->value.enumeration.count && at < sizeof(h->text); k++)
			at += (size_t)snprintf(h->text + at, sizeof(h->text) - at, "%s%s",
					       k ? ", " : "", f->value.enumeration.strings[k].str);
		break;
	}
	if (file)
		fclose(file);
}

/* The line ends where its comment begins: at a # that begins it or follows a blank. */
static void cut_comment(char *line)
{
	char *c;

	for (c = line; (c = strchr(c, '#')); c++)
		if (c == line || isspace((unsigned char)c[-1])) {
			*c = 0;
			return;
		}
}

/* An IPv6 address in brackets and not in quotes, in the line that libcyaml complains of. */
static void name_unquoted(const char *path, struct heard *h)
{
	char text[1024] = "", host[INET6_ADDRSTRLEN], *p;
	struct in6_addr addr;
	FILE *f = fopen(path, "re");
	size_t n, port;
	int no;

	for (no = 0; f && no < h->line && fgets(text, sizeof(text), f); no++)
		;
	cut_comment(text);
	for (p = f && no == h->line ? strchr(text, '[') : NULL; p; p = strchr(p + 1, '[')) {
		n = strcspn(p + 1, "]");
		if (p[n + 1] != ']' || n >= sizeof(host) || (p > text && strchr("\"'", p[-1])))
			continue;
		memcpy(host, p + 1, n);
		host[n] = 0;
		if (inet_pton(AF_INET6, host, &addr) != 1)
			continue;
		port = p[n + 2] == ':' ? 1 + strspn(p + n + 3, "0123456789") : 0;
		snprintf(h->text, sizeof(h->text),
			 "an IPv6 address in brackets is a list to YAML: put it in quotes, "
			 "\"%.*s\"",
			 (int)(n + 2 + port), p);
		break;
	}
	if (f)
		fclose(f);
}

static int check_scalars(const char *path, const cyaml_schema_value_t *top, struct bl_err *err)
{
	FILE *f = fopen(path, "re");
	char text[1024], *p, *key, *value;
	int no = 0, rc = 0;

	while (f && !rc && fgets(text, sizeof(text), f)) {
		no++;
		cut_comment(text);
		for (p = text; !rc && (key = next_pair(text, &p, &value));) {
			unsigned int types = 0;

			field_of(top, key, &types);
			rc = bad_scalar(path, no, key, value, types, err);
		}
	}
	if (f)
		fclose(f);
	return rc;
}

int bl_yaml_load(const char *path, const cyaml_schema_value_t *top, void **out, struct bl_err *err)
{
	struct heard said = {};
	const cyaml_config_t how = {
		.log_fn = hear, .log_ctx = &said, .mem_fn = cyaml_mem, .log_level = CYAML_LOG_ERROR
	};
	FILE *probe;
	cyaml_err_t e;

	*out = NULL;
	probe = fopen(path, "re");
	if (!probe)
		return bl_fail(err, errno, "cannot read %s: %s", path, strerror(errno));
	fclose(probe);
	e = cyaml_load_file(path, &how, top, (cyaml_data_t **)out, NULL);
	name_choices(path, top, &said);
	if (e != CYAML_OK) {
		int line = line_of_unknown(path, &said);

		name_unquoted(path, &said);
		return bl_fail(err, EINVAL, "%s:%d: %s", path, line ? line : 1,
			       *said.text ? said.text : cyaml_strerror(e));
	}
	if (!*out)
		return bl_fail(err, EINVAL, "%s:1: the file is empty", path);
	if (!check_scalars(path, top, err))
		return 0;
	bl_yaml_free(top, *out);
	*out = NULL;
	return -EINVAL;
}

void bl_yaml_free(const cyaml_schema_value_t *top, void *data)
{
	const cyaml_config_t how = { .mem_fn = cyaml_mem };

	cyaml_free(&how, top, data, 0);
}
