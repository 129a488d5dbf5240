// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Compares docs/protocol.md, docs/barline.lua and tests/fuzz/barline.dict with maps/wire_abi.h,
 * maps/reasons_abi.h and the headers of FCP and TOP. The test runs in the root of the repository.
 *
 * Tables of the page are found by their heading: rows are `| a | b | c | ...`, and the first row
 * names the columns. Bodies are blocks of `name bytes text` lines in the section that has the
 * name of the opcode; the text of a field may continue on indented lines.
 */
#include "tests/unit/unit.h"

#include "lib/internal.h"
#include "maps/reasons_abi.h"
#include "maps/fcp_abi.h"
#include "maps/top_abi.h"
#include "maps/top_host_abi.h"
#include "maps/wire_abi.h"

#define ROWS 160
#define COLS 6

struct table {
	char cell[ROWS][COLS][256];
	int rows;
};

static char *page, *lua, *dict;

/* Returns the contents of @path, to be freed by the caller, or NULL. */
static char *load_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text;
	long n;

	if (!f) {
		print_error("cannot read %s; run the tests in the root of the repository\n", path);
		return NULL;
	}
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	text = calloc(1, (size_t)n + 1);
	if (text && fread(text, 1, (size_t)n, f) != (size_t)n)
		text[0] = 0;
	fclose(f);
	return text;
}

static int load_files(void **state)
{
	(void)state;
	page = load_file("docs/protocol.md");
	lua = load_file("docs/barline.lua");
	dict = load_file("tests/fuzz/barline.dict");
	return page && lua && dict ? 0 : -1;
}

static int free_files(void **state)
{
	(void)state;
	free(page);
	free(lua);
	free(dict);
	return 0;
}

/* Copies the text between the heading @title and the next heading to @out. */
static void copy_section(const char *title, char *out, size_t size)
{
	const char *p = page;

	out[0] = 0;
	while (p && *p) {
		const char *end = strchr(p, '\n');
		size_t n = end ? (size_t)(end - p) : strlen(p);

		if (*p == '#') {
			const char *t = p + strspn(p, "# ");

			if (n - (size_t)(t - p) == strlen(title) &&
			    !strncmp(t, title, strlen(title))) {
				const char *next = strstr(p + n, "\n#");
				size_t len = next ? (size_t)(next - (p + n)) : strlen(p + n);

				assert_true(len < size);
				memcpy(out, p + n, len);
				out[len] = 0;
				return;
			}
		}
		p = end ? end + 1 : NULL;
	}
	fail_msg("docs/protocol.md has no section \"%s\"", title);
}

/* Reads the first table below the heading @title, without its first two rows, into @t. */
static void read_table(const char *title, struct table *t)
{
	static char text[1 << 16];
	char *line, *save = NULL;
	int n = 0;

	copy_section(title, text, sizeof(text));
	memset(t, 0, sizeof(*t));
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *p = line + 1;
		int col;

		if (*line != '|')
			continue;
		if (n++ < 2)
			continue; /* the names of the columns, and the line below them */
		assert_true(t->rows < ROWS);
		for (col = 0; col < COLS && *p; col++) {
			char *end = strchr(p, '|'), *cell = t->cell[t->rows][col];
			size_t len;

			if (!end)
				break;
			while (*p == ' ')
				p++;
			len = (size_t)(end - p);
			while (len && p[len - 1] == ' ')
				len--;
			assert_true(len < sizeof(t->cell[0][0]));
			memcpy(cell, p, len);
			p = end + 1;
		}
		t->rows++;
	}
	if (!t->rows)
		fail_msg("docs/protocol.md has no table under \"%s\"", title);
}

static struct table t;

static void protocol__header_offsets(void **state)
{
	static const struct {
		const char *name;
		size_t off, size;
	} want[] = {
/* clang-format off */
#define FIELD(f) { #f, offsetof(struct bl_hdr, f), sizeof(((struct bl_hdr *)0)->f) }
		/* clang-format on */
		FIELD(ts),     FIELD(barrier),
		FIELD(commit), { "psn", offsetof(struct bl_hdr, psn_hi), 4 },
		FIELD(opcode), FIELD(flags),
#undef FIELD
	};
	size_t i, sum = 0;

	(void)state;
	read_table("Header", &t);
	assert_int_equal(t.rows, ARRAY_SIZE(want));
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(atoi(t.cell[i][0]), want[i].off);
		assert_int_equal(atoi(t.cell[i][1]), want[i].size);
		assert_string_equal(t.cell[i][2], want[i].name);
		sum += want[i].size;
	}
	assert_int_equal(sum, sizeof(struct bl_hdr));
}

static void protocol__flags(void **state)
{
	(void)state;
	read_table("Flags", &t);
	assert_int_equal(t.rows, 3);
	assert_int_equal(strtol(t.cell[0][1], NULL, 0), BL_F_HOP);
	assert_int_equal(strtol(t.cell[1][1], NULL, 0), BL_F_LANES(BL_LANES_MAX));
	assert_int_equal(strtol(t.cell[2][1], NULL, 0), BL_LANES_MAX - 1);
	assert_string_equal(t.cell[0][2], "hop");
}

static void protocol__opcodes(void **state)
{
	static const struct {
		int num;
		const char *name, *where;
	} want[] = {
#define OP(sym, num, name, where) { num, name, #where },
		BL_OPCODES(OP)
#undef OP
	};
	size_t i;

	(void)state;
	read_table("Opcodes", &t);
	assert_int_equal(t.rows, ARRAY_SIZE(want));
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(atoi(t.cell[i][0]), want[i].num);
		assert_string_equal(t.cell[i][1], want[i].name);
		assert_string_equal(t.cell[i][2], want[i].where);
	}
}

static void protocol__nak_numbers(void **state)
{
	static const struct {
		int num;
		const char *name;
	} want[] = {
#define NAK(sym, num, name) { num, name },
		BL_NAKS(NAK)
#undef NAK
	};
	size_t i;

	(void)state;
	read_table("NAK", &t);
	assert_int_equal(t.rows, ARRAY_SIZE(want));
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(atoi(t.cell[i][0]), want[i].num);
		assert_string_equal(t.cell[i][1], want[i].name);
	}
}

static void protocol__nak_numbers_are_the_librarys(void **state)
{
	(void)state;
	assert_int_equal(BL_FAIL_LATE, BL_NAK_LATE);
	assert_int_equal(BL_FAIL_LOST, BL_NAK_LOST);
	assert_int_equal(BL_FAIL_INCOMPLETE, BL_NAK_INCOMPLETE);
	assert_int_equal(BL_FAIL_NO_MEMORY, BL_NAK_NO_MEMORY);
	assert_int_equal(BL_FAIL_UNREACHABLE, BL_NAK_UNREACHABLE);
	assert_int_equal(BL_FAIL_MALFORMED, BL_NAK_MALFORMED);
	assert_int_equal(BL_FAIL_FAILED, BL_NAK_FAILED);
	assert_int_equal(BL_FAIL_UNKNOWN, BL_NAK_UNKNOWN);
	assert_int_equal(BL_FAIL_LEFT, BL_NAK_LEFT);
	assert_int_equal(BL_MESSAGE_MAX, BL_MSG_MAX);
}

static void protocol__reasons(void **state)
{
	static const struct {
		const char *name, *kind, *text;
	} want[] = {
#define REASON(sym, name, kind, text) [BL_R_##sym] = { name, #kind, text },
		BL_REASONS(REASON)
#undef REASON
	};
	size_t i, k;

	(void)state;
	read_table("Reasons", &t);
	for (i = 0; i < ARRAY_SIZE(want) && i < (size_t)t.rows; i++) {
		assert_string_equal(t.cell[i][0], want[i].name);
		assert_string_equal(t.cell[i][1], want[i].kind);
		assert_string_equal(t.cell[i][2], want[i].text);
	}
	assert_int_equal(t.rows, BL_R_COUNT);
	/* No two reasons have the same name. */
	for (i = 0; i < ARRAY_SIZE(want); i++)
		for (k = 0; k < i; k++)
			assert_string_not_equal(want[i].name, want[k].name);
}

/* ---- bodies ---- */

struct field {
	const char *name;
	size_t size;
};

/* Fails unless the block of the section begins with the @n fields @want, @total bytes long. */
static void assert_body(const char *title, const struct field *want, size_t n, size_t total)
{
	static char text[1 << 16];
	char *line, *save = NULL, *p;
	size_t at = 0, sum = 0;

	copy_section(title, text, sizeof(text));
	p = strstr(text, "```");
	if (!p)
		fail_msg("section \"%s\" has no block", title);
	p = strchr(p, '\n') + 1;
	for (line = strtok_r(p, "\n", &save); line && at < n && strncmp(line, "```", 3);
	     line = strtok_r(NULL, "\n", &save)) {
		size_t len = strcspn(line, " ");

		if (!len)
			continue; /* The line continues the text of the field above. */
		assert_int_equal(strlen(want[at].name), len);
		assert_memory_equal(line, want[at].name, len);
		assert_int_equal(atoi(line + len), want[at].size);
		sum += want[at++].size;
	}
	assert_int_equal(at, n);
	assert_int_equal(sum, total);
}

/* clang-format off */
#define SIZE(s, f) { #f, sizeof(((struct s *)0)->f) }
/* clang-format on */

static void protocol__bodies(void **state)
{
	static const struct field beacon[] = { SIZE(bl_beacon, tai_offset_s),
					       SIZE(bl_beacon, policy), SIZE(bl_beacon, port),
					       SIZE(bl_beacon, node_id) };
	static const struct field link[] = {
		SIZE(bl_link_body, magic),   SIZE(bl_link_body, run),
		SIZE(bl_link_body, racing),  SIZE(bl_link_body, frames),
		SIZE(bl_link_body, echo),    SIZE(bl_link_body, sent),
		SIZE(bl_link_body, version), SIZE(bl_link_body, reserved),
		SIZE(bl_link_body, bound),   SIZE(bl_link_body, overtaken),
		SIZE(bl_link_body, tag)
	};
	static const struct field data[] = { SIZE(bl_data, incarnation), SIZE(bl_data, count) };
	static const struct field frag[] = { SIZE(bl_data, incarnation), SIZE(bl_data, count),
					     SIZE(bl_frag, msg_id), SIZE(bl_frag, offset),
					     SIZE(bl_frag, length) };
	static const struct field credit[] = { SIZE(bl_credit, psn), SIZE(bl_credit, incarnation),
					       SIZE(bl_credit, window) };
	static const struct field nak[] = { SIZE(bl_nak, psn), SIZE(bl_nak, count),
					    SIZE(bl_nak, incarnation), SIZE(bl_nak, why),
					    SIZE(bl_nak, item) };

	(void)state;
	/* The structs have no padding and the order of the fields in the page. */
	assert_true(offsetof(struct bl_beacon, node_id) == 4 &&
		    offsetof(struct bl_data, count) == 2 && offsetof(struct bl_frag, length) == 8);
	assert_true(offsetof(struct bl_credit, window) == 6 && offsetof(struct bl_nak, why) == 10 &&
		    offsetof(struct bl_nak, item) == 11);
	assert_body("Beacon", beacon, ARRAY_SIZE(beacon), sizeof(struct bl_beacon));
	assert_true(offsetof(struct bl_link_body, frames) == 8 &&
		    offsetof(struct bl_link_body, sent) == 16 &&
		    offsetof(struct bl_link_body, bound) == 24 &&
		    offsetof(struct bl_link_body, tag) == BL_LINK_TAGGED);
	assert_body("Link body", link, ARRAY_SIZE(link), sizeof(struct bl_link_body));
	assert_body("DATA", data, ARRAY_SIZE(data), sizeof(struct bl_data));
	assert_body("FRAG", frag, ARRAY_SIZE(frag),
		    sizeof(struct bl_data) + sizeof(struct bl_frag));
	assert_body("CREDIT", credit, ARRAY_SIZE(credit), sizeof(struct bl_credit));
	assert_body("NAK", nak, ARRAY_SIZE(nak), sizeof(struct bl_nak));
	assert_body("PROBE", data, ARRAY_SIZE(data), sizeof(struct bl_data));
}

static void protocol__fcp_bodies(void **state)
{
	static const struct field hdr[] = { SIZE(bl_fcp_hdr, magic),    SIZE(bl_fcp_hdr, opcode),
					    SIZE(bl_fcp_hdr, flags),    SIZE(bl_fcp_hdr, challenge),
					    SIZE(bl_fcp_hdr, seq),      SIZE(bl_fcp_hdr, ack),
					    SIZE(bl_fcp_hdr, ack_bits), SIZE(bl_fcp_hdr, check) };
	static const struct field req[] = { SIZE(bl_fcp_req, count), SIZE(bl_fcp_req, reserved) };
	static const struct field alloc[] = { SIZE(bl_fcp_alloc, base), SIZE(bl_fcp_alloc, totals),
					      SIZE(bl_fcp_alloc, runs) };
	static const struct field reset[] = {
		SIZE(bl_fcp_reset, nonce),      SIZE(bl_fcp_reset, term),
		SIZE(bl_fcp_reset, table),      SIZE(bl_fcp_reset, slot_ns),
		SIZE(bl_fcp_reset, slot_bytes), SIZE(bl_fcp_reset, index),
		SIZE(bl_fcp_reset, endpoints),  SIZE(bl_fcp_reset, reserved)
	};
	static const struct field watchdog[] = {
		SIZE(bl_fcp_watchdog, term),  SIZE(bl_fcp_watchdog, rank),
		SIZE(bl_fcp_watchdog, state), SIZE(bl_fcp_watchdog, reserved),
		SIZE(bl_fcp_watchdog, table), SIZE(bl_fcp_watchdog, reserved2)
	};
	static const struct field report[] = {
		SIZE(bl_fcp_report, boot),  SIZE(bl_fcp_report, at),    SIZE(bl_fcp_report, table),
		SIZE(bl_fcp_report, index), SIZE(bl_fcp_report, first), SIZE(bl_fcp_report, last),
		SIZE(bl_fcp_report, count), SIZE(bl_fcp_report, took)
	};
	static const struct field faults[] = {
		SIZE(bl_fcp_faults, boot),     SIZE(bl_fcp_faults, version),
		SIZE(bl_fcp_faults, table),    SIZE(bl_fcp_faults, count),
		SIZE(bl_fcp_faults, reserved), SIZE(bl_fcp_faults, reserved2)
	};
	static const struct field heard[] = { SIZE(bl_fcp_heard, boot), SIZE(bl_fcp_heard, version),
					      SIZE(bl_fcp_heard, table) };

	(void)state;
	assert_body("FCP", hdr, ARRAY_SIZE(hdr), sizeof(struct bl_fcp_hdr));
	assert_body("FCP REQ", req, ARRAY_SIZE(req), sizeof(struct bl_fcp_req));
	assert_body("FCP ALLOC", alloc, ARRAY_SIZE(alloc), sizeof(struct bl_fcp_alloc));
	assert_body("FCP RESET", reset, ARRAY_SIZE(reset), sizeof(struct bl_fcp_reset));
	assert_body("FCP REPORT", report, ARRAY_SIZE(report), sizeof(struct bl_fcp_report));
	assert_body("FCP FAULTS", faults, ARRAY_SIZE(faults), sizeof(struct bl_fcp_faults));
	assert_body("FCP HEARD", heard, ARRAY_SIZE(heard), sizeof(struct bl_fcp_heard));
	assert_body("FCP WATCHDOG", watchdog, ARRAY_SIZE(watchdog), sizeof(struct bl_fcp_watchdog));
}

static void assert_says(const char *title, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Fails unless the section contains the formatted text, on one line or wrapped. */
static void assert_says(const char *title, const char *fmt, ...)
{
	static char text[1 << 16];
	char want[128], *to = text;
	const char *from = text;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want, sizeof(want), fmt, ap);
	va_end(ap);
	copy_section(title, text, sizeof(text));
	while (*from) { /* a line break and the indentation after it become one space */
		*to++ = *from == '\n' ? ' ' : *from;
		if (*from++ == '\n')
			from += strspn(from, " ");
	}
	*to = '\0';
	if (!strstr(text, want))
		fail_msg("section \"%s\" of docs/protocol.md does not say \"%s\"", title, want);
}

static void protocol__constants(void **state)
{
	static const uint8_t mac[6] = BL_BEACON_MAC;

	(void)state;
	assert_says("The barline protocol", "Version %d.", BL_VERSION);
	assert_says("Frames", "0x%04X", BL_ETHERTYPE);
	assert_says("Frames", "%d to %d by default (%d ports", BL_PORT_BASE,
		    BL_PORT_BASE + BL_PORT_COUNT - 1, BL_PORT_COUNT);
	assert_says("Frames", "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
		    mac[4], mac[5]);
	assert_says("Frames", "%zu without a VLAN tag", BL_BEACON_LEN);
	assert_says("Header", "%zu bytes", sizeof(struct bl_hdr));
	assert_says("Opcodes", "0x%02X to 0x%02X", BL_OPCODE_BYTE(1),
		    BL_OPCODE_BYTE(BL_OP_LIMIT - 1));
	assert_says("Opcodes", "above %d", BL_OP_LIMIT - 1);
	assert_says("Beacon", "%zu  %d times", sizeof(struct bl_relay), BL_SETS_MAX);
	assert_says("Link body", "Bytes %d to %zu", BL_LINK_AT,
		    BL_LINK_AT + sizeof(struct bl_link_body) - 1);
	assert_says("Link body", "0x%08X (", BL_LINK_MAGIC);
	assert_says("Link body", "version   1   %d;", BL_LINK_VERSION);
	assert_says("Link body", "0x%08X: none", (unsigned int)BL_ECHO_NONE);
	assert_says("DATA", "items that follow, 1 to %d", BL_ITEMS_MAX);
	assert_says("DATA", "0x%X", BL_ITEM_REF);
	assert_says("DATA", "1 to %u", BL_MSG_MAX);
	assert_says("FRAG", "1 to %u", BL_MSG_MAX);
	assert_says("FRAG", "%u MiB", BL_BIG_MAX >> 20);
	assert_says("NAK", "0x%X: all of the frame", BL_NAK_WHOLE);
}

static const char *const fcp_opcodes[] = {
#define OP(sym, num, name) [num] = name,
	BL_FCP_OPCODES(OP)
#undef OP
};
static const char *const fcp_states[] = {
#define STATE(sym, num, name) [num] = name,
	BL_FCP_STATES(STATE)
#undef STATE
};

static void protocol__fcp_numbers(void **state)
{
	static const char *const reasons[][2] = {
#define REASON(sym, name, text) [BL_FCP_R_##sym] = { name, text },
		BL_FCP_REASONS(REASON)
#undef REASON
	};
	size_t i;

	(void)state;
	read_table("FCP opcodes", &t);
	assert_int_equal(t.rows, ARRAY_SIZE(fcp_opcodes) - 1);
	for (i = 1; i < ARRAY_SIZE(fcp_opcodes); i++) {
		assert_int_equal(atoi(t.cell[i - 1][0]), i);
		assert_string_equal(t.cell[i - 1][1], fcp_opcodes[i]);
	}
	read_table("FCP WATCHDOG", &t);
	assert_int_equal(t.rows, ARRAY_SIZE(fcp_states) - 1);
	for (i = 1; i < ARRAY_SIZE(fcp_states); i++) {
		assert_int_equal(atoi(t.cell[i - 1][0]), i);
		assert_string_equal(t.cell[i - 1][1], fcp_states[i]);
	}
	read_table("FCP reasons", &t);
	assert_int_equal(t.rows, BL_FCP_R_COUNT);
	for (i = 0; i < BL_FCP_R_COUNT; i++) {
		assert_string_equal(t.cell[i][0], reasons[i][0]);
		assert_string_equal(t.cell[i][1], reasons[i][1]);
	}
	assert_says("FCP",
		    "port %d; watchdogs among arbiters on port %d; fault isolation on port %d",
		    BL_FCP_PORT, BL_FCP_WATCHDOG_PORT, BL_FCP_FAULTS_PORT);
	assert_says("FCP REPORT", "counts that follow, at most %d", BL_FCP_COUNTS_MAX);
	assert_says("FCP REPORT", "peer 2, path 1, reserved 1, sent %zu, came %zu",
		    sizeof(((struct bl_fcp_count *)0)->sent),
		    sizeof(((struct bl_fcp_count *)0)->came));
	assert_says("FCP FAULTS", "links that follow, at most %d", BL_FCP_LINKS_MAX);
	assert_says("FCP", "0x%X", BL_FCP_MAGIC);
	assert_says("FCP", "at most %zu bytes long", BL_FCP_PACKET_MAX);
	assert_says("FCP", "at most %d)", BL_FCP_ENDPOINTS_MAX);
	assert_says("FCP opcodes", "0x%02X to 0x%02X", BL_FCP_OPCODE_BYTE(1),
		    BL_FCP_OPCODE_BYTE(BL_FCP_OPCODE_LIMIT - 1));
	assert_says("FCP REQ", "at most %d; 0", BL_FCP_TOTALS_MAX);
	assert_says("FCP ALLOC", "follow, at most %d", BL_FCP_TOTALS_MAX);
	assert_says("FCP ALLOC", "them, at most %d", BL_FCP_RUNS_MAX);
	assert_says("FCP ALLOC", "(%d: the flow's own)", BL_FCP_PATH_ANY);
	/* FCP's ports lie below barline's own range. */
	assert_true(BL_FCP_PORT < BL_PORT_BASE && BL_FCP_WATCHDOG_PORT < BL_PORT_BASE &&
		    BL_FCP_FAULTS_PORT < BL_PORT_BASE);
}

static const char *const top_opcodes[] = {
#define OP(sym, num, name) [num] = name,
	BL_TOP_OPCODES(OP)
#undef OP
};

/* clang-format off */
#define HALVES(s, f) { #f, sizeof(((struct s *)0)->f##_hi) + sizeof(((struct s *)0)->f##_lo) }
/* clang-format on */

static void protocol__top(void **state)
{
	static const struct field hdr[] = { SIZE(bl_top_hdr, opcode), SIZE(bl_top_hdr, cls),
					    SIZE(bl_top_hdr, flow),   HALVES(bl_top_hdr, seq),
					    SIZE(bl_top_hdr, ts),     HALVES(bl_top_hdr, tag) };
	static const struct field sync[] = {
		SIZE(bl_top_sync, zero),     SIZE(bl_top_sync, bytes),
		HALVES(bl_top_sync, frames), HALVES(bl_top_sync, deadline),
		HALVES(bl_top_sync, coflow), SIZE(bl_top_sync, unscheduled),
		SIZE(bl_top_sync, reserved), HALVES(bl_top_sync, data)
	};
	static const struct field fin[] = { SIZE(bl_top_fin, zero), SIZE(bl_top_fin, bytes),
					    HALVES(bl_top_fin, data) },
				  stop[] = { HALVES(bl_top_stop, data) };
	static const struct field loss[] = { HALVES(bl_top_loss, data),
					     { "missing", 2 * sizeof(__u32) },
					     HALVES(bl_top_loss, rtt) };
	static const struct field echo[] = { SIZE(bl_top_echo, magic), SIZE(bl_top_echo, flow),
					     HALVES(bl_top_echo, seq), HALVES(bl_top_echo, data) };
	size_t i;

	(void)state;
	assert_body("TOP", hdr, ARRAY_SIZE(hdr), sizeof(struct bl_top_hdr));
	assert_body("TOP SYNC", sync, ARRAY_SIZE(sync), sizeof(struct bl_top_sync));
	assert_body("TOP FIN", fin, ARRAY_SIZE(fin), sizeof(struct bl_top_fin));
	assert_body("TOP LOSS", loss, ARRAY_SIZE(loss), sizeof(struct bl_top_loss));
	assert_body("TOP STOP", stop, ARRAY_SIZE(stop), sizeof(struct bl_top_stop));
	assert_body("TOP echo", echo, ARRAY_SIZE(echo), sizeof(struct bl_top_echo));
	read_table("TOP opcodes", &t);
	assert_int_equal(t.rows, ARRAY_SIZE(top_opcodes) - 1);
	for (i = 1; i < ARRAY_SIZE(top_opcodes); i++) {
		assert_int_equal(atoi(t.cell[i - 1][0]), i);
		assert_string_equal(t.cell[i - 1][1], top_opcodes[i]);
	}
	assert_says("TOP", "destination port %d", BL_TOP_PORT);
	assert_says("TOP", "is %d bytes of frame, 84 on the wire", BL_TOP_TOKEN_LEN);
	assert_says("TOP", "begins with %zu bytes", sizeof(struct bl_top_hdr));
	assert_says("TOP", "0 (best) to %d,", BL_TOP_CLASSES - 1);
	assert_says("TOP", "%d + 13 bits", BL_TOP_SPORT_BASE);
	assert_int_equal(BL_TOP_SPORT_COUNT, 1 << 13);
	assert_says("TOP opcodes", "0x%02X to 0x%02X", BL_TOP_OPCODE_BYTE(1),
		    BL_TOP_OPCODE_BYTE(BL_TOP_OPCODE_LIMIT - 1));
	assert_says("TOP echo", "0x%X", BL_TOP_ECHO_MAGIC);
	assert_says("TOP echo", "has %zu bytes behind", sizeof(struct bl_top_echo));
	assert_says("TOP LOSS", "these %d bits", BL_TOP_KEEP);
	assert_says("TOP at hosts", "once %d later ones have come", BL_TOP_LATER);
	assert_says("TOP at hosts", "each %d frames", BL_TOP_ACK_EACH);
	assert_says("TOP at hosts", "keeps its last %d", BL_TOP_KEEP);
	/*
	 * TOP's port is below FCP's ports and barline's own range, and above its source ports, so
	 * that no source port is mistaken for the destination port.
	 */
	assert_true(BL_TOP_PORT < BL_FCP_WATCHDOG_PORT &&
		    BL_TOP_SPORT_BASE + BL_TOP_SPORT_COUNT <= BL_TOP_PORT);
}

/* ---- the dissector ---- */

/* Fails unless the dissector has the line `local @name = @want`. */
static void assert_lua_number(const char *name, long want)
{
	char decl[64];
	const char *p;

	snprintf(decl, sizeof(decl), "\nlocal %s = ", name);
	p = strstr(lua, decl);
	if (!p)
		fail_msg("docs/barline.lua has no \"local %s\"", name);
	else if (strtol(p + strlen(decl), NULL, 0) != want)
		fail_msg("docs/barline.lua: %s is %ld, want %ld", name,
			 strtol(p + strlen(decl), NULL, 0), want);
}

/* Fails unless the dissector has `local @name = { [1] = "a", ... }` with exactly these rows. */
static void assert_lua_table(const char *name, const char *const *want, int n)
{
	char decl[64];
	const char *p, *end;
	int rows = 0;

	snprintf(decl, sizeof(decl), "\nlocal %s = {", name);
	p = strstr(lua, decl);
	if (!p)
		fail_msg("docs/barline.lua has no table \"%s\"", name);
	end = strchr(p, '}');
	assert_non_null(end);
	while ((p = strchr(p, '[')) && p < end) {
		const char *q = strchr(p, '"');
		long num = strtol(p + 1, NULL, 0);
		size_t len;

		assert_in_range(num, 1, n);
		assert_non_null(q);
		len = strcspn(q + 1, "\"");
		assert_int_equal(len, strlen(want[num]));
		assert_memory_equal(q + 1, want[num], len);
		rows++;
		p = q;
	}
	assert_int_equal(rows, n);
}

static void dissector__constants(void **state)
{
	char ports[64];

	(void)state;
	assert_lua_number("VERSION", BL_VERSION);
	assert_lua_number("ETHERTYPE", BL_ETHERTYPE);
	assert_lua_number("HEADER_LEN", sizeof(struct bl_hdr));
	assert_lua_number("BEACON_LEN", sizeof(struct bl_beacon));
	assert_lua_number("RSV_BODY_LEN", sizeof(struct bl_rsv_body));
	assert_lua_number("SETS_MAX", BL_SETS_MAX);
	assert_lua_number("LINK_AT", BL_LINK_AT);
	assert_lua_number("LINK_MAGIC", BL_LINK_MAGIC);
	assert_lua_number("LINK_VERSION", BL_LINK_VERSION);
	assert_lua_number("ITEMS_MAX", BL_ITEMS_MAX);
	assert_lua_number("ITEM_REF", BL_ITEM_REF);
	assert_lua_number("MSG_MAX", BL_MSG_MAX);
	assert_lua_number("NAK_WHOLE", BL_NAK_WHOLE);
	assert_lua_number("FCP_PORT", BL_FCP_PORT);
	assert_lua_number("FCP_WATCHDOG_PORT", BL_FCP_WATCHDOG_PORT);
	assert_lua_number("FCP_FAULTS_PORT", BL_FCP_FAULTS_PORT);
	assert_lua_number("FCP_COUNTS_MAX", BL_FCP_COUNTS_MAX);
	assert_lua_number("FCP_LINKS_MAX", BL_FCP_LINKS_MAX);
	assert_lua_number("FCP_MAGIC", BL_FCP_MAGIC);
	assert_lua_number("FCP_VERSION", BL_FCP_VERSION);
	assert_lua_number("FCP_HEADER_LEN", sizeof(struct bl_fcp_hdr));
	assert_lua_number("FCP_TOTALS_MAX", BL_FCP_TOTALS_MAX);
	assert_lua_number("FCP_RUNS_MAX", BL_FCP_RUNS_MAX);
	assert_lua_number("TOP_PORT", BL_TOP_PORT);
	assert_lua_number("TOP_VERSION", BL_TOP_VERSION);
	assert_lua_number("TOP_HEADER_LEN", sizeof(struct bl_top_hdr));
	assert_lua_number("TOP_CLASSES", BL_TOP_CLASSES);
	snprintf(ports, sizeof(ports), "\nlocal PORTS = \"%d-%d\"\n", BL_PORT_BASE,
		 BL_PORT_BASE + BL_PORT_COUNT - 1);
	assert_non_null(strstr(lua, ports));
}

static void dissector__tables(void **state)
{
	static const char *const opcodes[] = {
#define OP(sym, num, name, where) [num] = name,
		BL_OPCODES(OP)
#undef OP
	};
	static const char *const naks[] = {
#define NAK(sym, num, name) [num] = name,
		BL_NAKS(NAK)
#undef NAK
	};

	(void)state;
	assert_lua_table("opcodes", opcodes, (int)ARRAY_SIZE(opcodes) - 1);
	assert_lua_table("naks", naks, (int)ARRAY_SIZE(naks) - 1);
	assert_lua_table("fcp_opcodes", fcp_opcodes, (int)ARRAY_SIZE(fcp_opcodes) - 1);
	assert_lua_table("top_opcodes", top_opcodes, (int)ARRAY_SIZE(top_opcodes) - 1);
	assert_lua_table("fcp_states", fcp_states, (int)ARRAY_SIZE(fcp_states) - 1);
}

/* ---- the fuzzer's dictionary ---- */

static void dictionary__opcodes_and_naks(void **state)
{
	char want[96];

	(void)state;
#define OP(sym, num, name, where)                                                             \
	snprintf(want, sizeof(want), "\nopcode_%s=\"\\x%02x\"\n", name, BL_OPCODE_BYTE(num)); \
	assert_non_null(strstr(dict, want));
	BL_OPCODES(OP)
#undef OP
#define NAK(sym, num, name)                                                \
	snprintf(want, sizeof(want), "\nnak_%s=\"\\x%02x\"\n", name, num); \
	assert_non_null(strstr(dict, want));
	BL_NAKS(NAK)
#undef NAK
#define OP(sym, num, name)                                                                     \
	snprintf(want, sizeof(want), "\ntop_%s=\"\\x%02x\"\n", name, BL_TOP_OPCODE_BYTE(num)); \
	assert_non_null(strstr(dict, want));
	BL_TOP_OPCODES(OP)
#undef OP
	snprintf(want, sizeof(want), "\nethertype=\"\\x%02x\\x%02x\"\n", BL_ETHERTYPE >> 8,
		 BL_ETHERTYPE & 0xff);
	assert_non_null(strstr(dict, want));
	snprintf(want, sizeof(want), "\nport_first=\"\\x%02x\\x%02x\"\n", BL_PORT_BASE >> 8,
		 BL_PORT_BASE & 0xff);
	assert_non_null(strstr(dict, want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(protocol__header_offsets),
		cmocka_unit_test(protocol__flags),
		cmocka_unit_test(protocol__opcodes),
		cmocka_unit_test(protocol__nak_numbers),
		cmocka_unit_test(protocol__nak_numbers_are_the_librarys),
		cmocka_unit_test(protocol__reasons),
		cmocka_unit_test(protocol__bodies),
		cmocka_unit_test(protocol__fcp_bodies),
		cmocka_unit_test(protocol__fcp_numbers),
		cmocka_unit_test(protocol__constants),
		cmocka_unit_test(protocol__top),
		cmocka_unit_test(dissector__constants),
		cmocka_unit_test(dissector__tables),
		cmocka_unit_test(dictionary__opcodes_and_naks),
	};

	return cmocka_run_group_tests(tests, load_files, free_files);
}
