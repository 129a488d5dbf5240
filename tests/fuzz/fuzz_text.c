/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fuzzes the readers of single words: Ethernet and IP addresses, addresses with a port, rates, and
 * numbers (base/, proto/). They read words of configuration files, of command lines and of the
 * controller's messages. The input is the word.
 *
 * Each reader is compared with the writer that is its inverse, or with a second reader that is so
 * simple that it can be checked by eye.
 */
#include "fuzz.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>

#include "base/number.h"
#include "base/rate.h"
#include "base/yaml.h"
#include "proto/fastpass_file.h"
#include "proto/session.h"

/* "02:c4:00:01:00:00": two hex digits, six times. */
static void mac(const char *s)
{
	uint8_t got[6] = { 0 };
	bool want = strlen(s) == 17;
	int i;

	for (i = 0; want && i < 17; i++)
		want = i % 3 == 2 ? s[i] == ':' : isxdigit((unsigned char)s[i]) != 0;
	FUZZ_CHECK(bl_mac_parse(s, got) == want);
	for (i = 0; want && i < 6; i++) {
		char two[3] = { s[3 * i], s[3 * i + 1], 0 };

		FUZZ_CHECK(got[i] == strtoul(two, NULL, 16));
	}
}

static void ip(const char *s)
{
	uint8_t addr[16], again[16];
	char text[INET6_ADDRSTRLEN];

	if (!bl_fp_addr_parse(s, addr))
		return;
	FUZZ_CHECK(bl_fp_addr_parse(bl_fp_addr_text(addr, text), again));
	FUZZ_CHECK(!memcmp(addr, again, sizeof(addr)));
}

static void ip_and_port(const char *s)
{
	struct sockaddr_storage sa, again;
	char host[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 16];
	const struct sockaddr_in *v4 = (const void *)&sa;
	const struct sockaddr_in6 *v6 = (const void *)&sa;
	socklen_t len = 0, len_again = 0;

	if (bl_session_addr(s, &sa, &len))
		return;
	FUZZ_CHECK(sa.ss_family == AF_INET || sa.ss_family == AF_INET6);
	if (sa.ss_family == AF_INET) {
		FUZZ_CHECK(len == sizeof(*v4) && v4->sin_port);
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		snprintf(text, sizeof(text), "%s:%u", host, ntohs(v4->sin_port));
	} else {
		FUZZ_CHECK(len == sizeof(*v6) && v6->sin6_port);
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		snprintf(text, sizeof(text), "[%s]:%u", host, ntohs(v6->sin6_port));
	}
	FUZZ_CHECK(!bl_session_addr(text, &again, &len_again) && len == len_again);
	FUZZ_CHECK(!memcmp(&sa, &again, sizeof(sa)));
}

static void rate(const char *s)
{
	uint64_t bps = 0, again = 0;
	char text[64];

	if (!bl_rate_parse(s, &bps))
		return;
	FUZZ_CHECK(bps >= BL_RATE_MIN && bps <= BL_RATE_MAX);
	FUZZ_CHECK(bl_rate_parse(bl_rate_text(bps, text, sizeof(text)), &again) && again == bps);
	FUZZ_CHECK(bl_rate_ns_q20(bps) && bl_rate_of_q20(bl_rate_ns_q20(bps)));
}

struct numbers {
	uint16_t u16;
	uint32_t u32, power;
	uint64_t u64, rate, scaled;
	int s32;
	long s64;
	double real;
};

static void number(const char *s)
{
	static const struct bl_number rows[] = {
		BL_NUMBER(1, "u16", NULL, 1, 65535, struct numbers, u16),
		BL_NUMBER(2, "u32", "s", 0, UINT32_MAX, struct numbers, u32),
		BL_NUMBER(3, "u64", NULL, 0, (long double)INT64_MAX, struct numbers, u64),
		BL_NUMBER(4, "s32", NULL, INT32_MIN, INT32_MAX, struct numbers, s32),
		BL_NUMBER(5, "s64", NULL, (long double)INT64_MIN, (long double)INT64_MAX,
			  struct numbers, s64),
		BL_NUMBER(6, "real", NULL, -1e9, 1e9, struct numbers, real),
		BL_NUMBER_SCALED(7, "scaled", "ms", 0, 1000000, struct numbers, scaled, 1000000),
		BL_NUMBER_POWER_OF_TWO(8, "power", NULL, 1, 1 << 30, struct numbers, power),
		BL_NUMBER_RATE_OF(9, "rate", struct numbers, rate),
	};
	struct numbers n, was;
	char why[200];
	long long v;
	double d;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(&n, 0x5a, sizeof(n));
		was = n;
		*why = 0;
		if (bl_number_read(&rows[i], s, &n, why, sizeof(why)))
			FUZZ_CHECK(*why && !memcmp(&n, &was, sizeof(n)));
		else if (rows[i].key == 1)
			FUZZ_CHECK(n.u16 >= 1);
		else if (rows[i].key == 7)
			FUZZ_CHECK(n.scaled <= 1000000000000ULL && n.scaled % 1000000 == 0);
		else if (rows[i].key == 8)
			FUZZ_CHECK(n.power && !(n.power & (n.power - 1)));
	}
	if (bl_read_integer(s, -5, 5, &v))
		FUZZ_CHECK(v >= -5 && v <= 5);
	if (bl_read_real(s, -5, 5, &d))
		FUZZ_CHECK(d >= -5 && d <= 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *s = malloc(size + 1);

	FUZZ_CHECK(s);
	memcpy(s, data, size);
	s[size] = 0;
	mac(s);
	ip(s);
	ip_and_port(s);
	rate(s);
	number(s);
	free(s);
	return 0;
}
