// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See etcd_msg.h. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library/gnutls.h"
#include "controller/store/etcd_msg.h"

/* ---- base64 ---- */

char *etcd_b64(const void *data, size_t len)
{
	const gnutls_datum_t in = { (void *)(uintptr_t)data, (unsigned int)len };
	gnutls_datum_t out;
	char *text;

	if (gnutls_base64_encode2(&in, &out))
		return NULL;
	text = strndup((char *)out.data, out.size);
	gnutls_free(out.data);
	return text;
}

uint8_t *etcd_unb64(const char *text, size_t *len)
{
	const gnutls_datum_t in = { (void *)(uintptr_t)text, (unsigned int)strlen(text) };
	gnutls_datum_t out;
	uint8_t *bytes;

	if (gnutls_base64_decode2(&in, &out))
		return NULL;
	bytes = malloc((size_t)out.size + 1);
	if (bytes) {
		memcpy(bytes, out.data, out.size);
		bytes[out.size] = 0;
		*len = out.size;
	}
	gnutls_free(out.data);
	return bytes;
}

/* ---- requests ---- */

static json_t *make_b64(const void *data, size_t len)
{
	char *t = etcd_b64(data, len);
	json_t *j = t ? json_string(t) : NULL;

	free(t);
	return j;
}

static json_t *make_number(uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	return json_string(text);
}

static void set_key(json_t *o, const char *key)
{
	json_object_set_new(o, "key", make_b64(key, strlen(key)));
}

/*
 * Sets the end of the range: the first key after all those that begin with @prefix, which is
 * @prefix with its last byte incremented. No key of ours ends in 0xff.
 */
static void set_range_end(json_t *o, const char *prefix)
{
	size_t n = strlen(prefix);
	char *end = strdup(prefix);

	if (end && n) {
		end[n - 1]++;
		json_object_set_new(o, "range_end", make_b64(end, n));
	}
	free(end);
}

static json_t *make_compare(const char *key, const char *target, const char *field, uint64_t v)
{
	json_t *o = json_object();

	set_key(o, key);
	json_object_set_new(o, "target", json_string(target));
	json_object_set_new(o, "result", json_string("EQUAL"));
	json_object_set_new(o, field, make_number(v));
	return o;
}

static char *dump_json(json_t *o)
{
	char *t = json_dumps(o, JSON_COMPACT);

	json_decref(o);
	return t;
}

static json_t *make_range(const char *key, bool prefix)
{
	json_t *o = json_object();

	set_key(o, key);
	if (prefix)
		set_range_end(o, key);
	return o;
}

char *etcd_msg_put(const struct etcd_put *p)
{
	json_t *o = json_object(), *cmp = json_array(), *ok = json_array(), *no = json_array(),
	       *op = json_object();

	if (p->fence_rev)
		json_array_append_new(cmp, make_compare(p->fence, "CREATE", "create_revision",
							p->fence_rev));
	if (p->create)
		json_array_append_new(cmp, make_compare(p->key, "CREATE", "create_revision", 0));
	else if (p->rev != BL_STORE_ANY)
		json_array_append_new(cmp, make_compare(p->key, "MOD", "mod_revision", p->rev));
	set_key(op, p->key);
	if (p->value) {
		json_object_set_new(op, "value", make_b64(p->value, p->len));
		if (p->lease)
			json_object_set_new(op, "lease", make_number(p->lease));
	}
	json_array_append_new(ok, json_pack("{s:o}",
					    p->value ? "request_put" : "request_delete_range", op));
	/* A refused transaction returns the fence and the key as they are, which shows why. */
	if (p->fence_rev)
		json_array_append_new(no, json_pack("{s:o}", "request_range",
						    make_range(p->fence, false)));
	json_array_append_new(no, json_pack("{s:o}", "request_range", make_range(p->key, false)));
	json_object_set_new(o, "compare", cmp);
	json_object_set_new(o, "success", ok);
	json_object_set_new(o, "failure", no);
	return dump_json(o);
}

char *etcd_msg_range(const char *key, bool prefix)
{
	return dump_json(make_range(key, prefix));
}

char *etcd_msg_watch(const char *key, bool prefix, uint64_t from_rev)
{
	json_t *o = make_range(key, prefix);

	json_object_set_new(o, "start_revision", make_number(from_rev));
	json_object_set_new(o, "progress_notify", json_true());
	return dump_json(json_pack("{s:o}", "create_request", o));
}

char *etcd_msg_grant(uint64_t ttl_s)
{
	return dump_json(json_pack("{s:o}", "TTL", make_number(ttl_s)));
}

char *etcd_msg_lease(uint64_t lease)
{
	return dump_json(json_pack("{s:o}", "ID", make_number(lease)));
}

/* ---- answers ---- */

static uint64_t read_number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (json_is_integer(v))
		return json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : 0;
	/* The time to live of an expired lease is "-1". */
	return json_is_string(v) && *json_string_value(v) != '-'
		       ? strtoull(json_string_value(v), NULL, 10)
		       : 0;
}

static void read_error(const json_t *root, struct etcd_answer *a)
{
	const json_t *e = json_object_get(root, "error");
	const char *text = NULL;

	if (json_is_object(e)) {
		text = json_string_value(json_object_get(e, "message"));
		a->grpc_code = (int)read_number(e, "grpc_code");
	} else if (json_is_string(e)) {
		text = json_string_value(e);
		a->grpc_code = (int)read_number(root, "code");
	} else if (!e || json_is_null(e)) {
		return;
	}
	a->error = strdup(text && *text ? text : "an error without words");
}

static void read_kv(const json_t *kv, bool gone, const char *strip, struct etcd_answer *a)
{
	const char *key = json_string_value(json_object_get(kv, "key")),
		   *value = json_string_value(json_object_get(kv, "value"));
	size_t klen = 0, vlen = 0, skip = strlen(strip);
	struct etcd_kv *v;
	uint8_t *k, *bytes;

	k = key ? etcd_unb64(key, &klen) : NULL;
	bytes = etcd_unb64(value ? value : "", &vlen);
	v = realloc(a->kv, (a->n + 1) * sizeof(*v));
	if (v)
		a->kv = v;
	/* Keys of ours contain no 0 byte. */
	if (!k || !bytes || !v || strlen((char *)k) != klen || klen < skip ||
	    memcmp(k, strip, skip)) {
		free(k);
		free(bytes);
		return;
	}
	memmove(k, k + skip, klen - skip + 1);
	if (gone) {
		free(bytes);
		bytes = NULL;
		vlen = 0;
	}
	v[a->n++] = (struct etcd_kv){ .kv = { .key = (char *)k,
					      .value = bytes,
					      .len = vlen,
					      .rev = read_number(kv, "mod_revision") },
				      .create_rev = read_number(kv, "create_revision"),
				      .lease = read_number(kv, "lease"),
				      .gone = gone };
}

static void read_kvs(const json_t *o, const char *strip, struct etcd_answer *a)
{
	json_t *kv;
	size_t i;

	json_array_foreach(json_object_get(o, "kvs"), i, kv) read_kv(kv, false, strip, a);
}

void etcd_msg_read(const char *text, size_t len, const char *strip, bool watch,
		   struct etcd_answer *a)
{
	json_t *root = json_loadb(text, len, 0, NULL), *in, *o;
	size_t i;

	*a = (struct etcd_answer){ 0 };
	if (!json_is_object(root)) {
		json_decref(root);
		return;
	}
	a->sound = true;
	read_error(root, a);
	/* Streams wrap each answer into "result". */
	in = json_object_get(root, "result");
	if (!json_is_object(in))
		in = root;
	a->rev = read_number(json_object_get(in, "header"), "revision");
	a->succeeded = json_is_true(json_object_get(in, "succeeded"));
	a->created = json_is_true(json_object_get(in, "created"));
	a->canceled = json_is_true(json_object_get(in, "canceled"));
	a->compacted = read_number(in, "compact_revision");
	a->ttl = read_number(in, "TTL");
	a->lease = read_number(in, "ID");
	if (a->canceled && json_is_string(json_object_get(in, "cancel_reason")))
		a->cancel_reason = strdup(json_string_value(json_object_get(in, "cancel_reason")));
	read_kvs(in, strip, a);
	json_array_foreach(json_object_get(in, "responses"), i, o)
		read_kvs(json_object_get(o, "response_range"), strip, a);
	json_array_foreach(watch ? json_object_get(in, "events") : NULL, i, o)
	{
		const char *type = json_string_value(json_object_get(o, "type"));

		read_kv(json_object_get(o, "kv"), type && !strcmp(type, "DELETE"), strip, a);
	}
	if (!a->error && json_is_null(json_object_get(root, "result")))
		a->sound = false;
	json_decref(root);
}

void etcd_answer_free(struct etcd_answer *a)
{
	size_t i;

	for (i = 0; i < a->n; i++) {
		free((void *)(uintptr_t)a->kv[i].kv.key);
		free((void *)(uintptr_t)a->kv[i].kv.value);
	}
	free(a->kv);
	free(a->error);
	free(a->cancel_reason);
	*a = (struct etcd_answer){ 0 };
}
