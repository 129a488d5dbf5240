// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See pcapng.h. */
#include "cli/capture/pcapng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SECTION    0x0a0d0d0aU
#define BLOCK_INTERFACE  1U
#define BLOCK_STATISTICS 5U
#define BLOCK_PACKET     6U
#define BYTE_ORDER_MAGIC 0x1a2b3c4dU
#define LINK_ETHERNET    1

#define OPT_END          0
#define OPT_COMMENT      1
#define OPT_SHB_OS       3
#define OPT_SHB_APP      4
#define OPT_IF_NAME      2
#define OPT_IF_DESC      3
#define OPT_IF_TSRESOL   9
#define OPT_EPB_FLAGS    2
#define OPT_ISB_IFRECV   4
#define OPT_ISB_OSDROP   7
#define OPTION_MAX       0xffffU /* the length of an option has 16 bits */

/* Appends @len bytes, and zero bytes up to a multiple of four. */
static void put(struct pcapng *p, const void *data, size_t len)
{
	size_t whole = (len + 3) & ~(size_t)3;

	if (p->err)
		return;
	if (p->len + whole > p->room) {
		size_t room = 2 * (p->len + whole);
		uint8_t *more = realloc(p->block, room);

		if (!more) {
			p->err = -ENOMEM;
			return;
		}
		p->block = more;
		p->room = room;
	}
	memset(p->block + p->len, 0, whole);
	if (len)
		memcpy(p->block + p->len, data, len);
	p->len += whole;
}

static void put16(struct pcapng *p, uint16_t a, uint16_t b)
{
	uint16_t both[2] = { a, b };

	put(p, both, sizeof(both));
}

static void put32(struct pcapng *p, uint32_t v)
{
	put(p, &v, sizeof(v));
}

/* Times are two words, the upper one first, whatever the byte order. */
static void put_time(struct pcapng *p, uint64_t v)
{
	put32(p, (uint32_t)(v >> 32));
	put32(p, (uint32_t)v);
}

static void option(struct pcapng *p, uint16_t code, const void *data, size_t len)
{
	if (len > OPTION_MAX)
		len = OPTION_MAX;
	put16(p, code, (uint16_t)len);
	put(p, data, len);
}

static void text(struct pcapng *p, uint16_t code, const char *s)
{
	if (s && *s)
		option(p, code, s, strlen(s));
}

static void begin(struct pcapng *p, uint32_t type)
{
	p->len = 0;
	put32(p, type);
	put32(p, 0); /* the length, known in the end */
}

static int end(struct pcapng *p)
{
	uint32_t len;

	put16(p, OPT_END, 0);
	len = (uint32_t)p->len + 4;
	put32(p, len);
	if (p->err)
		return p->err;
	memcpy(p->block + 4, &len, sizeof(len));
	if (fwrite(p->block, 1, p->len, p->f) != p->len)
		p->err = errno ? -errno : -EIO;
	return p->err;
}

int pcapng_section(struct pcapng *p, const char *os, const char *app)
{
	begin(p, BLOCK_SECTION);
	put32(p, BYTE_ORDER_MAGIC);
	put16(p, 1, 0);          /* version 1.0 */
	put_time(p, UINT64_MAX); /* length of the section: not known */
	text(p, OPT_SHB_OS, os);
	text(p, OPT_SHB_APP, app);
	return end(p);
}

int pcapng_interface(struct pcapng *p, const char *name, const char *description, uint32_t snap)
{
	static const uint8_t ns = 9; /* 10^-9 s */

	begin(p, BLOCK_INTERFACE);
	put16(p, LINK_ETHERNET, 0);
	put32(p, snap);
	text(p, OPT_IF_NAME, name);
	text(p, OPT_IF_DESC, description);
	option(p, OPT_IF_TSRESOL, &ns, sizeof(ns));
	p->interfaces++;
	return end(p);
}

int pcapng_packet(struct pcapng *p, const struct pcapng_packet *k)
{
	uint32_t flags = (uint32_t)k->dir;

	begin(p, BLOCK_PACKET);
	put32(p, k->interface);
	put_time(p, k->real_ns);
	put32(p, k->caplen);
	put32(p, k->len);
	put(p, k->data, k->caplen);
	text(p, OPT_COMMENT, k->comment);
	option(p, OPT_EPB_FLAGS, &flags, sizeof(flags));
	return end(p);
}

int pcapng_statistics(struct pcapng *p, uint32_t interface, uint64_t real_ns, uint64_t received,
		      uint64_t lost, const char *comment)
{
	begin(p, BLOCK_STATISTICS);
	put32(p, interface);
	put_time(p, real_ns);
	text(p, OPT_COMMENT, comment);
	option(p, OPT_ISB_IFRECV, &received, sizeof(received));
	option(p, OPT_ISB_OSDROP, &lost, sizeof(lost));
	return end(p);
}

void pcapng_free(struct pcapng *p)
{
	free(p->block);
	p->block = NULL;
	p->len = p->room = 0;
}
