/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * seeds DIR - writes the seed corpora DIR/NAME/, of the fuzzers that need some, and the dictionary
 * DIR/barline.dict from maps/wire_abi.h. The start of the fuzzers thus follows the wire format.
 * tests/fuzz/run.sh compares the dictionary with tests/fuzz/barline.dict. The inputs in
 * tests/fuzz/corpus/ are those that a campaign has found.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/ptp_core.h"
#include "core/wire_core.h"
#include "maps/clockbound_abi.h"
#include "maps/top_abi.h"

struct buf {
	__u8 p[4096];
	size_t n;
};

static const char *dir;

static FILE *create(const char *sub, const char *name)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, sub);
	if (name) {
		mkdir(path, 0755);
		snprintf(path, sizeof(path), "%s/%s/%s", dir, sub, name);
	}
	f = fopen(path, "wb");
	if (!f) {
		fprintf(stderr, "seeds: cannot write %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return f;
}

static void save(const char *sub, const char *name, const void *p, size_t n)
{
	FILE *f = create(sub, name);

	if (fwrite(p, 1, n, f) != n || fclose(f)) {
		fprintf(stderr, "seeds: cannot write %s/%s/%s: %s\n", dir, sub, name,
			strerror(errno));
		exit(1);
	}
}

static void add(struct buf *b, const void *p, size_t n)
{
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
}

static void add16(struct buf *b, __u16 v)
{
	__be16 w = BL_BE16(v);

	add(b, &w, sizeof(w));
}

static void add32(struct buf *b, __u32 v)
{
	__be32 w = BL_BE32(v);

	add(b, &w, sizeof(w));
}

static void add_eth(struct buf *b, int vlans, __u16 proto)
{
	static const __u8 macs[12] = BL_BEACON_MAC;

	b->n = 0;
	add(b, macs, sizeof(macs));
	while (vlans--) {
		add16(b, vlans ? BL_ETH_8021AD : BL_ETH_8021Q);
		add16(b, 7);
	}
	add16(b, proto);
}

static void add_hdr(struct buf *b, __u8 op, __u8 flags)
{
	struct bl_hdr h = { .opcode = BL_OPCODE_BYTE(op), .flags = flags };

	bl_put48(h.ts, 0x0123456789abULL);
	bl_put48(h.barrier, 0x0123456789aaULL);
	bl_put48(h.commit, 0x0123456789a9ULL);
	bl_hdr_set_psn(&h, 7);
	add(b, &h, sizeof(h));
}

/* Writes the bodies of struct bl_data and the others in maps/wire_abi.h. */
static size_t body(__u8 op, int many, struct buf *b)
{
	b->n = 0;
	switch (op) {
	case BL_OP_DATA:
		add16(b, 1);
		add16(b, many ? 3 : 1);
		add16(b, 5);
		add(b, "hello", 5);
		if (many) {
			add16(b, 0);
			add16(b, BL_ITEM_REF);
			add32(b, 9);
			add32(b, 4096);
			add(b, "\0\0\0", 3); /* padding */
		}
		break;
	case BL_OP_FRAG:
		add16(b, 1);
		add16(b, 0);
		add32(b, 9);
		add32(b, many ? 1400 : 0);
		add32(b, 4096);
		add(b, "0123456789abcdef", 16);
		break;
	case BL_OP_CREDIT:
		add32(b, 7);
		add16(b, 1);
		add16(b, many ? 0 : 64);
		break;
	case BL_OP_NAK:
		add32(b, 7);
		add32(b, many ? 100 : 1);
		add16(b, 1);
		add(b, (const __u8[]){ many ? BL_NAK_LOST : BL_NAK_LATE, 0 }, 2);
		break;
	default: /* PROBE */
		add16(b, 1);
		add16(b, 0);
		break;
	}
	return b->n;
}

static void udp_frame(const char *name, __u8 op, int v6, int vlans, int many)
{
	struct buf b, load;
	__u16 len = (__u16)(sizeof(struct udphdr) + sizeof(struct bl_hdr) + body(op, many, &load));

	add_eth(&b, vlans, v6 ? BL_ETH_IP6 : BL_ETH_IP);
	if (v6) {
		struct ipv6hdr ip = { .version = 6,
				      .payload_len = BL_BE16(len),
				      .nexthdr = BL_UDP,
				      .hop_limit = 64 };

		add(&b, &ip, sizeof(ip));
	} else {
		struct iphdr ip = { .version = 4,
				    .ihl = 5,
				    .tot_len = BL_BE16(len + sizeof(ip)),
				    .ttl = 64,
				    .protocol = BL_UDP };

		add(&b, &ip, sizeof(ip));
	}
	add16(&b, BL_PORT_BASE + 1);
	add16(&b, BL_PORT_BASE + (many ? BL_PORT_COUNT - 1 : 0));
	add16(&b, len);
	add16(&b, many ? 0xbeef : 0);
	add_hdr(&b, op,
		many ? BL_HOP_LEAF | BL_F_LANES(BL_LANES_MAX) | (BL_LANES_MAX - 1) : BL_HOP_LEAF);
	add(&b, load.p, load.n);
	save("parse", name, b.p, b.n);
	save("hold", name, b.p, b.n);

	/* for the body fuzzer: the opcode, then the body */
	memmove(load.p + 1, load.p, load.n);
	load.p[0] = op;
	save("body", name, load.p, load.n + 1);
}

static void beacon(const char *name, int vlans, bool says)
{
	struct bl_beacon bc = { .tai_offset_s = BL_BE16(37), .port = 3, .node_id = BL_BE32(99) };
	struct bl_link_body link = { .magic = BL_BE32(BL_LINK_MAGIC),
				     .run = BL_BE16(7),
				     .frames = BL_BE32(1000),
				     .echo = BL_BE32(12000),
				     .sent = { 1, 2, 3, 4, 5, 6 },
				     .version = BL_LINK_VERSION,
				     .bound = BL_BE32(50000) };
	struct bl_relay scratch = { 0 };
	struct buf b;

	add_eth(&b, vlans, BL_ETHERTYPE);
	add_hdr(&b, BL_OP_BEACON, 0);
	add(&b, &bc, sizeof(bc));
	if (says)
		memcpy((char *)&scratch + BL_LINK_AT, &link, sizeof(link));
	add(&b, &scratch, sizeof(scratch));
	save("parse", name, b.p, b.n);
}

/* Writes RSV, GRT and RELEASE. */
static void reservation(const char *name, __u8 op)
{
	struct bl_rsv_body body = { .mac = { 2, 0, 0, 0, 0, 3 },
				    .flags = op == BL_OP_RSV   ? BL_RSV_EARLY
					     : op == BL_OP_GRT ? BL_GRT_PASSED
							       : 0,
				    .cookie = BL_BE16(0x0103) };
	struct buf b;

	BL_HALVES_SET((&body), bytes, 6056);
	add_eth(&b, 0, BL_ETHERTYPE);
	add_hdr(&b, op, 0);
	add(&b, &body, sizeof(body));
	save("parse", name, b.p, b.n);
}

/* Writes frames that applications send: TCP with ECN, ARP, neighbour discovery. */
static void plain_frames(void)
{
	struct iphdr ip = { .version = 4,
			    .ihl = 5,
			    .tos = 46 << 2 | 2,
			    .tot_len = BL_BE16(40),
			    .ttl = 64,
			    .protocol = 6 };
	struct ipv6hdr ip6 = { .version = 6,
			       .priority = 2,
			       .flow_lbl = { 0x20 },
			       .payload_len = BL_BE16(20),
			       .nexthdr = 6,
			       .hop_limit = 64 };
	static const __u8 tcp[20] = { 0x14, 0x51, 0xc0, 1 }, nd[24] = { 135 },
			  arp[28] = { 0, 1, 8, 0, 6, 4, 0, 1 };
	struct buf b;
	int vlans;

	for (vlans = 0; vlans < 2; vlans++) {
		add_eth(&b, vlans, BL_ETH_IP);
		add(&b, &ip, sizeof(ip));
		add(&b, tcp, sizeof(tcp));
		save("hold", vlans ? "tcp4vlan" : "tcp4", b.p, b.n);
		add_eth(&b, vlans, BL_ETH_IP6);
		add(&b, &ip6, sizeof(ip6));
		add(&b, tcp, sizeof(tcp));
		save("hold", vlans ? "tcp6vlan" : "tcp6", b.p, b.n);
	}
	ip6.nexthdr = 58;
	add_eth(&b, 0, BL_ETH_IP6);
	add(&b, &ip6, sizeof(ip6));
	add(&b, nd, sizeof(nd));
	save("hold", "nd", b.p, b.n);
	add_eth(&b, 0, 0x0806);
	add(&b, arp, sizeof(arp));
	save("hold", "arp", b.p, b.n);
}

/* Writes frames of TOP: a token and a SYNC. */
static void top_frames(void)
{
	struct iphdr ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = BL_UDP };
	struct ipv6hdr ip6 = { .version = 6, .nexthdr = BL_UDP, .hop_limit = 64 };
	static const __u8 sync[28] = { 0, 0, 0, 0, 0, 1, 0, 0 };
	struct buf b;
	int v6, op;

	for (v6 = 0; v6 < 2; v6++)
		for (op = BL_TOP_TOKEN; op <= BL_TOP_SYNC; op++) {
			struct bl_top_hdr h = { .opcode = BL_TOP_OPCODE_BYTE(op),
						.cls = op == BL_TOP_TOKEN ? 5 : 0,
						.flow = BL_BE16(3) };
			__u16 len = (__u16)(sizeof(struct udphdr) + sizeof(h) +
					    (op == BL_TOP_SYNC ? sizeof(sync) : 0));

			ip.tot_len = BL_BE16(len + sizeof(ip));
			ip6.payload_len = BL_BE16(len);
			add_eth(&b, v6, v6 ? BL_ETH_IP6 : BL_ETH_IP);
			if (v6)
				add(&b, &ip6, sizeof(ip6));
			else
				add(&b, &ip, sizeof(ip));
			add16(&b, BL_TOP_SPORT_BASE);
			add16(&b, BL_TOP_PORT);
			add16(&b, len);
			add16(&b, 0);
			add(&b, &h, sizeof(h));
			if (op == BL_TOP_SYNC)
				add(&b, sync, sizeof(sync));
			save("hold",
			     op == BL_TOP_TOKEN ? v6 ? "token6" : "token4"
			     : v6               ? "sync6"
						: "sync4",
			     b.p, b.n);
		}
}

/* Writes a round of answers of ptp4l, whose heads the fuzzer completes; see fuzz_ptp.c. */
static void ptp_round(const char *name, int state, int gm_present, int ingress)
{
	static const __u8 size[BL_PTP_QUESTIONS] = {
		sizeof(struct bl_ptp_status),     sizeof(struct bl_ptp_current),
		sizeof(struct bl_ptp_properties), sizeof(struct bl_ptp_default),
		sizeof(struct bl_ptp_port) + 4,
	};
	struct buf b = { .n = 0 };
	int q, round;

	for (round = 0; round < 3; round++)
		for (q = 0; q < BL_PTP_QUESTIONS; q++) {
			__u8 data[64] = { 0 };

			data[7] = 100;
			if (q == BL_PTP_Q_STATUS) {
				data[15] = (__u8)(ingress * round);
				data[41] = (__u8)gm_present;
				data[49] = 1;
			} else if (q == BL_PTP_Q_CURRENT || q == BL_PTP_Q_PROPERTIES) {
				data[1] = 37;
				data[2] = BL_PTP_TIMESCALE | BL_PTP_UTC_VALID;
			} else if (q == BL_PTP_Q_DEFAULT) {
				data[3] = 1;
				data[17] = gm_present ? 2 : 1;
			} else {
				data[9] = 1;
				data[10] = (__u8)state;
				data[12] = 4;
			}
			add(&b, (const __u8[]){ (__u8)(0x80 | q), size[q] }, 2);
			add(&b, data, size[q]);
		}
	save("ptp", name, b.p, b.n);
}

/* Writes four files of ClockBound, 250 ms apart; see fuzz_clockbound.c. */
static void clockbound_files(const char *name, int version)
{
	struct buf b = { .n = 0 };
	int k;

	for (k = 1; k <= 4; k++) {
		struct bl_clockbound f = { .generation = (__u16)(2 * k),
					   .as_of = { 100, k * 250000000 - 1000000 },
					   .void_after = { 1100, 0 },
					   .bound_ns = 300000 };

		f.v2.drift_ppb = 1000; /* version 1 has its status here */
		f.v2.status = BL_CB_SYNCHRONIZED;
		if (version == 1)
			f.v1.status = BL_CB_SYNCHRONIZED;
		add(&b, (const __u8[]){ 25, version == 1 ? 3 : 7 }, 2);
		add(&b, &f, sizeof(f));
	}
	save("clockbound", name, b.p, b.n);
}

static void write_token(FILE *f, const char *name, __u64 value, int bytes)
{
	fprintf(f, "%s=\"", name);
	while (bytes--)
		fprintf(f, "\\x%02x", (unsigned int)(value >> 8 * bytes & 0xff));
	fprintf(f, "\"\n");
}

static void dictionary(void)
{
	FILE *f = create("barline.dict", NULL);

	fprintf(f, "# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause\n");
	fprintf(f, "# The wire's constants, for libFuzzer. tests/fuzz/seeds.c writes them from "
		   "maps/wire_abi.h.\n");
	write_token(f, "ethertype", BL_ETHERTYPE, 2);
	write_token(f, "ethertype_ip", BL_ETH_IP, 2);
	write_token(f, "ethertype_ip6", BL_ETH_IP6, 2);
	write_token(f, "ethertype_arp", 0x0806, 2);
	write_token(f, "ethertype_vlan", BL_ETH_8021Q, 2);
	write_token(f, "ethertype_qinq", BL_ETH_8021AD, 2);
	write_token(f, "ip_version_ihl", 0x45, 1);
	write_token(f, "ip_udp", BL_UDP, 1);
	write_token(f, "ip_tcp", 6, 1);
	write_token(f, "ip6_icmp", 58, 1);
	write_token(f, "nd_first", 133, 1);
	write_token(f, "nd_last", 137, 1);
	write_token(f, "tos_expedited", 40 << 2, 1);
	write_token(f, "ip6_fragment", 44, 1);
	write_token(f, "port_first", BL_PORT_BASE, 2);
	write_token(f, "port_last", BL_PORT_BASE + BL_PORT_COUNT - 1, 2);
#define TOKEN(sym, num, name, where) write_token(f, "opcode_" name, BL_OPCODE_BYTE(num), 1);
	BL_OPCODES(TOKEN)
#undef TOKEN
#define TOKEN(sym, num, name, where) write_token(f, "body_" name, num, 1);
	BL_OPCODES(TOKEN)
#undef TOKEN
#define TOKEN(sym, num, name) write_token(f, "nak_" name, num, 1);
	BL_NAKS(TOKEN)
#undef TOKEN
	write_token(f, "hop_leaf", BL_HOP_LEAF, 1);
	write_token(f, "hop_leaf_up", BL_HOP_LEAF_UP, 1);
	write_token(f, "lanes_all_last", BL_F_LANES(BL_LANES_MAX) | (BL_LANES_MAX - 1), 1);
	write_token(f, "rsv_early", BL_RSV_EARLY, 1);
	write_token(f, "grt_passed", BL_GRT_PASSED, 1);
	write_token(f, "grt_refused", BL_GRT_REFUSED, 1);
	write_token(f, "grt_copy", BL_GRT_COPY, 1);
	write_token(f, "item_ref", BL_ITEM_REF, 2);
	write_token(f, "items_max", BL_ITEMS_MAX, 2);
	write_token(f, "items_max_1", BL_ITEMS_MAX + 1, 2);
	write_token(f, "msg_max", BL_MSG_MAX, 4);
	write_token(f, "msg_max_1", BL_MSG_MAX + 1, 4);
	write_token(f, "ts_max", BL_TS_MASK, 6);
	write_token(f, "top_port", BL_TOP_PORT, 2);
#define TOKEN(sym, num, name) write_token(f, "top_" name, BL_TOP_OPCODE_BYTE(num), 1);
	BL_TOP_OPCODES(TOKEN)
#undef TOKEN
	write_token(f, "top_class_last", BL_TOP_CLASSES - 1, 1);
	write_token(f, "top_class_none", BL_TOP_CLASSES, 1);
	write_token(f, "top_echo", BL_TOP_ECHO_MAGIC, 2);
	if (fclose(f)) {
		fprintf(stderr, "seeds: cannot write the dictionary: %s\n", strerror(errno));
		exit(1);
	}
}

/*
 * Writes a frame of each of 40 senders, the latest first: the heap grows, and every push goes to
 * its top; then all are delivered.
 */
static void reorder_seeds(void)
{
	static const __u8 rising[] = { 0, 0, 1, 40, 0, 12, 12, 0, 2, 41, 0, 5, 20, 5, 40 };
	struct buf b = { .n = 0 };
	__u8 i;

	save("reorder", "rising", rising, sizeof(rising));
	add(&b, (const __u8[]){ 1 }, 1);
	for (i = 0; i < 40; i++)
		add(&b, (const __u8[]){ 0, i, (__u8)(200 - i), i }, 4);
	add(&b, (const __u8[]){ 5, 170, 7, 39, 6, 5, 255 }, 7);
	save("reorder", "many", b.p, b.n);
}

/*
 * Writes operations of fuzz_rx.c: parts of more large messages, of a megabyte each, than a sender
 * may have ahead, for either stream.
 */
static void rx_seeds(void)
{
	static const __u8 ops[] = { BL_OP_FRAG, BL_OP_PREP };
	unsigned int k, i;

	for (k = 0; k < 2; k++) {
		struct buf b = { .n = 1 }; /* 0: without challenges */

		for (i = 0; i < 120; i++) {
			/*
			 * opcode; number in a byte; number; life; PREP: a part, slot; message;
			 * offset; length; bytes
			 */
			const __u8 op[] = { ops[k],  1, (__u8)i, 0,    0,    0,
					    (__u8)i, 0, 0,       0xff, 0xff, 10 };

			memcpy(b.p + b.n, op, 4);
			b.n += 4;
			memcpy(b.p + b.n, op + (k ? 4 : 6), k ? 8 : 6);
			b.n += k ? 8 : 6;
			if (i % 32 == 31)
				b.p[b.n++] = 6 << 5; /* bl_process() */
		}
		b.p[b.n++] = 6 << 5;
		save("rx", k ? "parts" : "frags", b.p, b.n);
	}
}

static void text(const char *sub, const char *name, const char *what)
{
	save(sub, name, what, strlen(what));
}

/* Writes files of nodes and of arbiters that have most of the keys that there are. */
static void file_seeds(void)
{
	text("config", "switch",
	     "role: switch\nname: tor1\nforward: l2\ncpus: [0]\nnode_id: 7\nbeacon_us: 100\n"
	     "dead_after_us: 1000\nclock_void_after_ms: 2000\nports:\n"
	     "  - { interface: swp1, role: host, rate: 10gbit }\n"
	     "  - { interface: swp2, role: up, home_cpu: 0, outside: true }\nfdb:\n"
	     "  - { mac: 02:00:00:00:00:01, port: swp1 }\n"
	     "admission: { policy: pl2, rate: 10gbit, limits: [ { class: data, frames: 64 } ] }\n"
	     "controllers: [10.0.0.1:61693, \"[fd00::1]:61693\"]\n"
	     "tls: { ca: ca.pem, cert: node.pem, key: node.key }\n");
	text("config", "host",
	     "role: host\ninterface: eth1\nport_base: 61696\nport_count: 64\nno_ahead: yes\n"
	     "caretaker_ms: 0\nprocess_limit_ms: 500\nrealtime: never\nmode: generic\n"
	     "admission:\n  policy: top\n  rate: 1gbit\n  bl0: bl0\n  top:\n    rules:\n"
	     "      - { port: 80, protocol: tcp, bytes: 1000, deadline_us: 5, coflow: 1,"
	     " resend: true }\n");
	text("config", "fastpass",
	     "role: host\ninterface: eth1\nadmission: { policy: fastpass, rate: 250mbit,"
	     " fastpass: fp.yaml }\n");
	text("config", "anchors", "role: &r host\nname: *r\n? interface\n: !!str eth1\n");
	text("arbfile", "rack",
	     "rate: 10gbit\narbiters: [10.0.0.250, 10.0.0.251]\ngroup: 239.7.7.7\n"
	     "policy: weighted\nsecret: 00112233445566778899aabbccddeeff\nfaults: 10.0.0.9\n"
	     "fallback_ms: 0\nendpoints:\n"
	     "  - { name: h1, addr: 10.0.0.1, mac: 02:c4:00:01:00:00, rack: 0, weight: 2 }\n"
	     "  - { name: h2, addr: fd00::2, mac: 02:c4:00:02:00:00, rack: 1, cap: 2 }\n"
	     "pairs:\n  - { from: h1, to: h2, weight: 4 }\n");
	text("arbfile", "pods",
	     "slot_ns: 1255\nslot_bytes: 1514\narbiters: [10.0.0.250]\npaths: 2\ncores: 2\n"
	     "rack_up: 2\nrouted: true\npath_selection: euler\npath_field: udp\nudp_ports: 50000\n"
	     "path_names: [a, b, c, d]\npods: [0, 1]\nendpoints:\n"
	     "  - { addr: 10.0.0.1, apps: [10.1.0.1, fd01::1] }\n"
	     "  - { addr: 10.0.0.2, rack: 1, apps: [10.1.0.2] }\n");
	text("text", "mac", "02:c4:00:01:00:fF");
	text("text", "port", "10.0.0.1:61693");
	text("text", "port6", "[fd00::1]:61693");
	text("text", "rate", "1.5gbit");
	text("text", "number", "-0x7f");
	text("trace", "flows",
	     "A# id src dst start_ns bytes\n1 3 7 1204885 14600\n2 1 2 1204885 1 9 1\n");
	text("trace", "coflows", "A150 526\n1 0 2 22 7 1 65:1.0\n2 5 1 1 2 3:0.5 4:2\n");
	text("trace", "sizes", "A10000 0.15\n20000 0.20\n30000 1\n");
	text("trace", "packets", "A1 1 0.5\n20 1 1\n");
}

/* Writes answers of etcd: a range, a refused transaction, a lease, an event, and errors. */
static void etcd_seeds(void)
{
	/* operations: answer the reading of "leader", and "node/"; grant a lease; lead; an event */
	static const __u8 lead[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 2, 0, 0,
				     0, 0, 0, 0, 9, 5, 0, 0, 1, 0, 0, 0, 0, 0, 7 };

	text("etcd", "range",
	     "{\"header\":{\"revision\":\"12\"},\"kvs\":[{\"key\":\"L2JhcmxpbmUvbGVhZGVy\","
	     "\"create_revision\":\"3\",\"mod_revision\":\"9\",\"value\":\"bWU=\",\"lease\":\"5\"}]"
	     "}");
	text("etcd", "refused",
	     "{\"header\":{},\"responses\":[{\"response_range\":{\"kvs\":[{\"key\":\"L2I=\"}]}}]}");
	text("etcd", "event",
	     "{\"result\":{\"header\":{\"revision\":\"14\"},\"events\":[{\"type\":\"DELETE\","
	     "\"kv\":"
	     "{\"key\":\"L2JhcmxpbmUvbGVhZGVy\",\"mod_revision\":\"14\"}}]}}");
	text("etcd", "canceled",
	     "{\"result\":{\"canceled\":true,\"compact_revision\":\"18\",\"cancel_reason\":\"x\"}"
	     "}");
	text("etcd", "error", "{\"error\":\"etcdserver: no leader\",\"code\":14}");
	text("etcd", "error2", "{\"error\":{\"grpc_code\":14,\"message\":\"no leader\"}}");
	text("etcd", "lease", "{\"ID\":\"5\",\"TTL\":\"-1\"}");
	save("etcd", "lead", lead, sizeof(lead));
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: seeds DIR\n");
		return 2;
	}
	dir = argv[1];
	mkdir(dir, 0755);
#define SEED_UDP(num, name)                    \
	udp_frame(name "4", num, 0, 0, 0);     \
	udp_frame(name "6", num, 1, 0, 1);     \
	udp_frame(name "4vlan", num, 0, 1, 1); \
	udp_frame(name "4qinq", num, 0, 2, 0);
#define SEED_LINK(num, name)     \
	if (num != BL_OP_BEACON) \
		reservation(name, num);
#define SEED(sym, num, name, where) SEED_##where(num, name)
	BL_OPCODES(SEED)
#undef SEED
	beacon("beacon", 0, false);
	beacon("beacon_vlan", 1, false);
	beacon("beacon_link", 0, true);
	plain_frames();
	ptp_round("slave", BL_PTP_SLAVE, 1, 1);
	ptp_round("grandmaster", BL_PTP_MASTER, 0, 0);
	ptp_round("uncalibrated", BL_PTP_UNCALIBRATED, 1, 1);
	clockbound_files("version1", 1);
	clockbound_files("version2", 2);
	top_frames();
	rx_seeds();
	reorder_seeds();
	file_seeds();
	etcd_seeds();
	dictionary();
	return 0;
}
