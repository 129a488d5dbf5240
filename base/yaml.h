/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Strict reading of YAML files.
 *
 * libyaml parses the file once into a document. A reader then asks for the values that it knows,
 * key by key; every value has the line at which it stands. The first error is kept in struct
 * bl_yaml, and every later call returns "not given", so a reader asks for all of its values and
 * checks @rc once, at the end.
 *
 * Example, for the file "beacon_us: 2000000":
 *
 *	static const char *const keys[] = { "beacon_us", NULL };
 *
 *	bl_yaml_open(&y, "tor1.yaml", err);
 *	bl_yaml_keys(&y, y.root, keys);
 *	us = bl_yaml_u32(&y, y.root, "beacon_us");
 *	if (us > 1000000)
 *		bl_yaml_refuse(&y, y.root, "beacon_us", "beacon_us %u: at most 1000000", us);
 *	return bl_yaml_close(&y);
 *
 * bl_yaml_close() returns -EINVAL, and @err is "tor1.yaml:1: beacon_us 2000000: at most 1000000".
 */
#ifndef BARLINE_YAML_H
#define BARLINE_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#include "base/log.h"

/** struct bl_yaml - a file that is being read. One thread. */
struct bl_yaml {
	const char *path;    /* the caller's; it has to stay until bl_yaml_close() */
	char *text;          /* the file's content, NUL-terminated */
	yaml_document_t doc; /* owns all nodes and their texts, until bl_yaml_close() */
	bool has_doc;
	yaml_node_t *root;  /* a mapping */
	struct bl_err *err; /* the caller's; gets the first error */
	int rc;             /* 0, or the first error's -errno */
};

/**
 * bl_yaml_open - reads and parses the file @path, whose root has to be a mapping.
 *
 * Returns 0 or -errno; then @err begins with file and line if the file could be read. To be
 * followed by bl_yaml_close() in either case.
 */
int bl_yaml_open(struct bl_yaml *y, const char *path, struct bl_err *err);
/** bl_yaml_close - frees the document. Returns 0, or the -errno of the first error. */
int bl_yaml_close(struct bl_yaml *y);

/**
 * bl_yaml_keys - refuses @map unless it is a mapping all of whose keys are in @keys
 * (NULL-terminated).
 */
void bl_yaml_keys(struct bl_yaml *y, yaml_node_t *map, const char *const *keys);
/** bl_yaml_get - the value of @key in @map, or NULL: not given, or an error occurred before. */
yaml_node_t *bl_yaml_get(struct bl_yaml *y, yaml_node_t *map, const char *key);
/** bl_yaml_need - as bl_yaml_get(); a key that is not given is an error. */
yaml_node_t *bl_yaml_need(struct bl_yaml *y, yaml_node_t *map, const char *key);

/**
 * bl_yaml_text - the text of @key, from 1 to @most bytes, or NULL: not given. It stays valid until
 * bl_yaml_close().
 */
const char *bl_yaml_text(struct bl_yaml *y, yaml_node_t *map, const char *key, size_t most);

/** bl_yaml_copy - the text of @key, from 1 to @size - 1 bytes, into @to, if it is given. */
void bl_yaml_copy(struct bl_yaml *y, yaml_node_t *map, const char *key, char *to, size_t size);

/** bl_yaml_number - the number of @key from @least to @most into *@to. False: not given. */
bool bl_yaml_number(struct bl_yaml *y, yaml_node_t *map, const char *key, int64_t least,
		    int64_t most, int64_t *to);
/** bl_yaml_u16, bl_yaml_u32 - the number of @key; 0: not given. */
uint16_t bl_yaml_u16(struct bl_yaml *y, yaml_node_t *map, const char *key);
uint32_t bl_yaml_u32(struct bl_yaml *y, yaml_node_t *map, const char *key);
/** bl_yaml_truth - true, yes, on, or false, no, off. Returns false if @key is not given. */
bool bl_yaml_truth(struct bl_yaml *y, yaml_node_t *map, const char *key);
/** bl_yaml_name - index of the name of @key among the @n names @names, or -1: not given. */
int bl_yaml_name(struct bl_yaml *y, yaml_node_t *map, const char *key, const char *const *names,
		 size_t n);

/**
 * bl_yaml_list - the length, from 1 to @most, of the list of @key, and the list in *@list. Returns
 * 0 and sets *@list to NULL if @key is not given.
 */
unsigned int bl_yaml_list(struct bl_yaml *y, yaml_node_t *map, const char *key, unsigned int most,
			  yaml_node_t **list);
/** bl_yaml_item - item @i of a list, or NULL after an error. */
yaml_node_t *bl_yaml_item(struct bl_yaml *y, yaml_node_t *list, unsigned int i);
/** bl_yaml_item_text - text of a list's item, as bl_yaml_text(). @name: of the list. */
const char *bl_yaml_item_text(struct bl_yaml *y, yaml_node_t *item, const char *name, size_t most);
/** bl_yaml_item_number - number of a list's item, as bl_yaml_number(). */
bool bl_yaml_item_number(struct bl_yaml *y, yaml_node_t *item, const char *name, int64_t least,
			 int64_t most, int64_t *to);

/** bl_yaml_line - line, from 1, of @key in @map; of @map itself if @key is NULL or not given. */
int bl_yaml_line(struct bl_yaml *y, yaml_node_t *map, const char *key);
/**
 * bl_yaml_refuse - keeps the error "file:line: message", unless there is one already. The line is
 * bl_yaml_line()'s; @map NULL: line 1. Returns -EINVAL.
 */
int bl_yaml_refuse(struct bl_yaml *y, yaml_node_t *map, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/** bl_mac_parse - six pairs of hex digits, with colons. Returns whether @s is such a text. */
bool bl_mac_parse(const char *s, uint8_t mac[6]);

#endif
