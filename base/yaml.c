// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Strict reading of YAML files with libyaml: see yaml.h. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/yaml.h"

bool bl_mac_parse(const char *s, uint8_t mac[6])
{
	uint8_t v[6];
	int k;

	/* sscanf() would also take signs, blanks, and a single digit for a pair. */
	for (k = 0; k < 6; k++, s += 2) {
		if (k && *s++ != ':')
			return false;
		if (!isxdigit((unsigned char)s[0]) || !isxdigit((unsigned char)s[1]))
			return false;
		v[k] = (uint8_t)strtoul((const char[]){ s[0], s[1], 0 }, NULL, 16);
	}
	if (*s)
		return false;
	memcpy(mac, v, sizeof(v));
	return true;
}

/* ---- errors ---- */

/* Keeps the first error. */
static int refuse_line(struct bl_yaml *y, int line, const char *fmt, va_list ap)
{
	char msg[256];

	if (y->rc)
		return -EINVAL;
	vsnprintf(msg, sizeof(msg), fmt, ap);
	y->rc = bl_fail(y->err, EINVAL, "%s:%d: %s", y->path, line, msg);
	return -EINVAL;
}

static int node_line(const yaml_node_t *node)
{
	return (int)node->start_mark.line + 1;
}

__attribute__((format(printf, 3, 4))) static int refuse_node(struct bl_yaml *y,
							     const yaml_node_t *node,
							     const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	refuse_line(y, node_line(node), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int bl_yaml_refuse(struct bl_yaml *y, yaml_node_t *map, const char *key, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	refuse_line(y, bl_yaml_line(y, map, key), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Line @no of the text, from 1, without its comment, in @buf. */
static void copy_line(const char *text, int no, char *buf, size_t size)
{
	const char *end;
	char *c;

	while (text && --no > 0) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	end = text ? text + strcspn(text, "\n") : NULL;
	snprintf(buf, size, "%.*s", text ? (int)(end - text) : 0, text ? text : "");
	/* a comment begins at a # at the start of the line or after a blank */
	for (c = buf; (c = strchr(c, '#')); c++)
		if (c == buf || isspace((unsigned char)c[-1])) {
			*c = 0;
			return;
		}
}

/*
 * "[fd00::1]:61693" without quotes is a list to YAML, which libyaml or a reader refuses. If line
 * @no has such an address, the error says how it is written. Returns whether it has.
 */
static bool refuse_unquoted(struct bl_yaml *y, int no)
{
	char line[1024], host[INET6_ADDRSTRLEN], *p;
	struct in6_addr addr;
	size_t n, port;

	copy_line(y->text, no, line, sizeof(line));
	for (p = strchr(line, '['); p; p = strchr(p + 1, '[')) {
		n = strcspn(p + 1, "]");
		if (p[n + 1] != ']' || n >= sizeof(host) || (p > line && strchr("\"'", p[-1])))
			continue;
		memcpy(host, p + 1, n);
		host[n] = 0;
		if (inet_pton(AF_INET6, host, &addr) != 1)
			continue;
		port = p[n + 2] == ':' ? 1 + strspn(p + n + 3, "0123456789") : 0;
		y->rc = bl_fail(y->err, EINVAL,
				"%s:%d: an IPv6 address in brackets is a list to YAML: put it in "
				"quotes, \"%.*s\"",
				y->path, no, (int)(n + 2 + port), p);
		return true;
	}
	return false;
}

/* @node is not of the kind that a reader expects under this name. */
static void refuse_kind(struct bl_yaml *y, const yaml_node_t *node, const char *name,
			const char *expected)
{
	static const char *const kinds[] = { [YAML_NO_NODE] = "nothing",
					     [YAML_SCALAR_NODE] = "a single value",
					     [YAML_SEQUENCE_NODE] = "a list",
					     [YAML_MAPPING_NODE] = "a mapping" };

	if (!y->rc && !refuse_unquoted(y, node_line(node)))
		refuse_node(y, node, "%s: expected %s, not %s", name, expected, kinds[node->type]);
}

/* ---- the document ---- */

/* The line at the end of a text, from 1. */
static int last_line(const char *text)
{
	int line = 1;

	while ((text = strchr(text, '\n'))) {
		text++;
		line++;
	}
	return line;
}

/*
 * Reads the whole file into y->text. A zero byte is refused, since it would end the text: a file of
 * which a crash has left zeros would be read as a shorter one.
 */
static int read_text(struct bl_yaml *y)
{
	FILE *f = fopen(y->path, "re");
	size_t room = 0;
	ssize_t n;
	int rc = 0;

	if (!f)
		return bl_fail(y->err, errno, "cannot read %s: %s", y->path, strerror(errno));
	n = getdelim(&y->text, &room, '\0', f);
	if (n > 0 && !y->text[n - 1]) {
		rc = bl_fail(y->err, EINVAL, "%s:%d: a zero byte: this is no text", y->path,
			     last_line(y->text));
	} else if (n < 0) {
		if (ferror(f))
			rc = bl_fail(y->err, errno, "cannot read %s: %s", y->path, strerror(errno));
		/* nothing was read, and nothing terminates the buffer */
		free(y->text);
		y->text = NULL;
	}
	fclose(f);
	return rc;
}

static int parse_text(struct bl_yaml *y)
{
	yaml_parser_t parser;
	int line;

	if (!yaml_parser_initialize(&parser))
		return bl_fail(y->err, ENOMEM, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *)(y->text ? y->text : ""),
				     y->text ? strlen(y->text) : 0);
	y->has_doc = yaml_parser_load(&parser, &y->doc);
	if (!y->has_doc) {
		line = (int)parser.problem_mark.line + 1;
		if (!refuse_unquoted(y, line) &&
		    !refuse_unquoted(y, (int)parser.context_mark.line + 1))
			y->rc = bl_fail(y->err, EINVAL, "%s:%d: %s", y->path, line,
					parser.problem ? parser.problem : "this is no YAML");
	}
	yaml_parser_delete(&parser);
	return y->rc;
}

int bl_yaml_open(struct bl_yaml *y, const char *path, struct bl_err *err)
{
	*y = (struct bl_yaml){ .path = path, .err = err };
	y->rc = read_text(y);
	if (!y->rc)
		y->rc = parse_text(y);
	if (y->rc)
		return y->rc;
	y->root = yaml_document_get_root_node(&y->doc);
	if (!y->root)
		return bl_yaml_refuse(y, NULL, NULL, "the file is empty");
	if (y->root->type != YAML_MAPPING_NODE)
		refuse_kind(y, y->root, "the file", "a mapping");
	return y->rc;
}

int bl_yaml_close(struct bl_yaml *y)
{
	if (y->has_doc)
		yaml_document_delete(&y->doc);
	free(y->text);
	y->has_doc = false;
	y->text = NULL;
	y->root = NULL;
	return y->rc;
}

/* ---- keys ---- */

static const char *scalar_text(const yaml_node_t *node)
{
	return (const char *)node->data.scalar.value;
}

/* A zero byte, which "\0" makes, would hide what is behind it from every reader. */
static bool has_zero(const yaml_node_t *node)
{
	return strlen(scalar_text(node)) != node->data.scalar.length;
}

/* The pair of @key; the last one, if the file has the key twice. NULL: not given. */
static yaml_node_pair_t *find_pair(struct bl_yaml *y, yaml_node_t *map, const char *key)
{
	yaml_node_pair_t *p;

	if (!map || !key || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (p = map->data.mapping.pairs.top; p-- > map->data.mapping.pairs.start;) {
		const yaml_node_t *k = yaml_document_get_node(&y->doc, p->key);

		if (k->type == YAML_SCALAR_NODE && !strcmp(scalar_text(k), key))
			return p;
	}
	return NULL;
}

int bl_yaml_line(struct bl_yaml *y, yaml_node_t *map, const char *key)
{
	const yaml_node_pair_t *p = find_pair(y, map, key);

	if (p)
		return node_line(yaml_document_get_node(&y->doc, p->key));
	return map ? node_line(map) : 1;
}

void bl_yaml_keys(struct bl_yaml *y, yaml_node_t *map, const char *const *keys)
{
	yaml_node_pair_t *p;
	unsigned int i;

	if (y->rc || !map)
		return;
	if (map->type != YAML_MAPPING_NODE) {
		refuse_kind(y, map, "this entry", "a mapping");
		return;
	}
	for (p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
		const yaml_node_t *k = yaml_document_get_node(&y->doc, p->key);

		if (k->type != YAML_SCALAR_NODE) {
			refuse_kind(y, k, "this key", "a single value");
			return;
		}
		if (has_zero(k)) {
			refuse_node(y, k, "this key has a zero byte in it");
			return;
		}
		for (i = 0; keys[i] && strcmp(keys[i], scalar_text(k)); i++)
			;
		if (!keys[i]) {
			refuse_node(y, k, "Unexpected key: %s", scalar_text(k));
			return;
		}
	}
}

yaml_node_t *bl_yaml_get(struct bl_yaml *y, yaml_node_t *map, const char *key)
{
	const yaml_node_pair_t *p = y->rc ? NULL : find_pair(y, map, key);

	return p ? yaml_document_get_node(&y->doc, p->value) : NULL;
}

yaml_node_t *bl_yaml_need(struct bl_yaml *y, yaml_node_t *map, const char *key)
{
	yaml_node_t *value = bl_yaml_get(y, map, key);

	if (!value && !y->rc && map)
		bl_yaml_refuse(y, map, NULL, "the key %s is missing", key);
	return value;
}

/* ---- single values ---- */

/* Text of a scalar, or NULL after an error or without a node. @expected: for the message. */
static const char *text_of(struct bl_yaml *y, const yaml_node_t *node, const char *name,
			   const char *expected)
{
	if (y->rc || !node)
		return NULL;
	if (node->type != YAML_SCALAR_NODE) {
		refuse_kind(y, node, name, expected);
	} else if (has_zero(node)) {
		refuse_node(y, node, "%s: a zero byte in the text", name);
	} else {
		return scalar_text(node);
	}
	return NULL;
}

const char *bl_yaml_item_text(struct bl_yaml *y, yaml_node_t *item, const char *name, size_t most)
{
	const char *text = text_of(y, item, name, "a text");

	if (!text)
		return NULL;
	if (*text && strlen(text) <= most)
		return text;
	refuse_node(y, item, "%s \"%s\": from 1 to %zu characters", name, text, most);
	return NULL;
}

bool bl_yaml_item_number(struct bl_yaml *y, yaml_node_t *item, const char *name, int64_t least,
			 int64_t most, int64_t *to)
{
	const char *text = text_of(y, item, name, "a number");
	char *end;
	int64_t v;

	if (!text)
		return false;
	errno = 0;
	v = strtoll(text, &end, 0);
	if (errno || end == text || *end)
		refuse_node(y, item, "%s \"%s\" is no number", name, text);
	else if (v < least || v > most)
		refuse_node(y, item, "%s %s: from %lld to %lld", name, text, (long long)least,
			    (long long)most);
	else
		*to = v;
	return !y->rc;
}

const char *bl_yaml_text(struct bl_yaml *y, yaml_node_t *map, const char *key, size_t most)
{
	return bl_yaml_item_text(y, bl_yaml_get(y, map, key), key, most);
}

void bl_yaml_copy(struct bl_yaml *y, yaml_node_t *map, const char *key, char *to, size_t size)
{
	const char *text = bl_yaml_text(y, map, key, size - 1);

	if (text)
		snprintf(to, size, "%s", text);
}

bool bl_yaml_number(struct bl_yaml *y, yaml_node_t *map, const char *key, int64_t least,
		    int64_t most, int64_t *to)
{
	return bl_yaml_item_number(y, bl_yaml_get(y, map, key), key, least, most, to);
}

uint16_t bl_yaml_u16(struct bl_yaml *y, yaml_node_t *map, const char *key)
{
	int64_t v = 0;

	bl_yaml_number(y, map, key, 0, UINT16_MAX, &v);
	return (uint16_t)v;
}

uint32_t bl_yaml_u32(struct bl_yaml *y, yaml_node_t *map, const char *key)
{
	int64_t v = 0;

	bl_yaml_number(y, map, key, 0, UINT32_MAX, &v);
	return (uint32_t)v;
}

bool bl_yaml_truth(struct bl_yaml *y, yaml_node_t *map, const char *key)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };
	yaml_node_t *node = bl_yaml_get(y, map, key);
	const char *text = text_of(y, node, key, "true or false");
	size_t k;

	if (!text)
		return false;
	for (k = 0; k < sizeof(words) / sizeof(words[0]); k++)
		if (!strcasecmp(text, words[k]))
			return k & 1;
	refuse_node(y, node, "%s \"%s\": true or false", key, text);
	return false;
}

int bl_yaml_name(struct bl_yaml *y, yaml_node_t *map, const char *key, const char *const *names,
		 size_t n)
{
	yaml_node_t *node = bl_yaml_get(y, map, key);
	const char *text = text_of(y, node, key, "a name");
	char list[192] = "";
	size_t k, at = 0;

	if (!text)
		return -1;
	for (k = 0; k < n; k++) {
		if (!strcmp(names[k], text))
			return (int)k;
		if (at < sizeof(list))
			at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", k ? ", " : "",
					       names[k]);
	}
	refuse_node(y, node, "%s \"%s\": there is %s", key, text, list);
	return -1;
}

/* ---- lists ---- */

unsigned int bl_yaml_list(struct bl_yaml *y, yaml_node_t *map, const char *key, unsigned int most,
			  yaml_node_t **list)
{
	yaml_node_t *node = bl_yaml_get(y, map, key);
	size_t n;

	*list = NULL;
	if (!node)
		return 0;
	if (node->type != YAML_SEQUENCE_NODE) {
		refuse_kind(y, node, key, "a list");
		return 0;
	}
	n = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
	if (!n || n > most) {
		refuse_node(y, node, "%s: a list of %zu; from 1 to %u entries", key, n, most);
		return 0;
	}
	*list = node;
	return (unsigned int)n;
}

yaml_node_t *bl_yaml_item(struct bl_yaml *y, yaml_node_t *list, unsigned int i)
{
	return y->rc || !list ? NULL
			      : yaml_document_get_node(&y->doc, list->data.sequence.items.start[i]);
}
