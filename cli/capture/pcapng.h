/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A writer of pcapng files (draft-ietf-opsawg-pcapng) with comments, which libpcap cannot write:
 * a section header, interfaces, packets, statistics. In this machine's byte order; times in ns.
 *
 * Example: a packet of 60 bytes with a comment of 10 is an enhanced packet block of 32 + 60 bytes,
 * flags 8, comment 4 + 12, end of options 4: 120 bytes.
 *
 * Every function returns 0 or -errno; after an error nothing more is written.
 */
#ifndef BARLINE_CLI_CAPTURE_PCAPNG_H
#define BARLINE_CLI_CAPTURE_PCAPNG_H

#include <stdint.h>
#include <stdio.h>

/** struct pcapng - a file that is being written. Zero but for @f at first. */
struct pcapng {
	FILE *f;
	uint32_t interfaces; /* number of interfaces so far; the next one's number */
	int err;             /* 0, or -errno of the first failure */
	/* the block that is being made */
	uint8_t *block;
	size_t len, room;
};

enum pcapng_dir { PCAPNG_UNKNOWN, PCAPNG_INBOUND, PCAPNG_OUTBOUND };

/** pcapng_section - writes the header of the file. @os, @app: what to write about them */
int pcapng_section(struct pcapng *p, const char *os, const char *app);

/** pcapng_interface - adds an Ethernet interface. Its number is p->interfaces before the call. */
int pcapng_interface(struct pcapng *p, const char *name, const char *description, uint32_t snap);

/** struct pcapng_packet - one packet. */
struct pcapng_packet {
	uint32_t interface;
	uint64_t real_ns;
	uint32_t len, caplen; /* of the packet; of @data */
	const void *data;
	enum pcapng_dir dir;
	const char *comment;
};

int pcapng_packet(struct pcapng *p, const struct pcapng_packet *k);

/**
 * pcapng_statistics - writes what one interface had up to now.
 * @received: packets; @lost: packets that were not captured, of all interfaces
 */
int pcapng_statistics(struct pcapng *p, uint32_t interface, uint64_t real_ns, uint64_t received,
		      uint64_t lost, const char *comment);

/** pcapng_free - frees what the writer holds; the file stays open. */
void pcapng_free(struct pcapng *p);

#endif
