// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * loader/load/tx_cpu.c on trees that look like sysfs and /proc: which CPUs serve a transmit queue,
 * according to XPS and to interrupts.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "loader/load/tx_cpu.h"

static char root[64];

static void write_file(const char *path, const char *text)
{
	char full[512], *p;
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(full, 0700);
		*p = '/';
	}
	if (!text) {
		assert_int_equal(mkdir(full, 0700), 0);
		return;
	}
	f = fopen(full, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int make_tree(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/test-tx-cpu-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_tree(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", root);
	return system(cmd);
}

/* Returns the result as a mask of CPUs 0 to 63; 0: none. */
static uint64_t find_tx_cpus(unsigned int queue)
{
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	uint64_t word = 0;
	cpu_set_t set;
	bool known = bl_tx_cpus_at(fd, fd, "eth0", queue, &set);

	close(fd);
	for (unsigned int k = 0; k < 64; k++)
		if (CPU_ISSET(k, &set))
			word |= 1ull << k;
	assert_int_equal(known, CPU_COUNT(&set) > 0);
	return word;
}

static void write_xps(const char *mask)
{
	write_file("class/net/eth0/queues/tx-0/xps_cpus", mask);
}

static void write_irq(const char *msi, const char *number, const char *action,
		      const char *effective)
{
	char path[256];

	snprintf(path, sizeof(path), "class/net/eth0/%s/%s", msi, number);
	write_file(path, "msix\n");
	snprintf(path, sizeof(path), "irq/%s/%s", number, action);
	write_file(path, NULL);
	snprintf(path, sizeof(path), "irq/%s/smp_affinity_list", number);
	write_file(path, "0-1023\n");
	if (!effective)
		return;
	snprintf(path, sizeof(path), "irq/%s/effective_affinity_list", number);
	write_file(path, effective);
}

static void nothing__no_answer(void **state)
{
	(void)state;
	assert_int_equal(find_tx_cpus(0), 0);
	write_xps("0\n"); /* as a veth reports */
	assert_int_equal(find_tx_cpus(0), 0);
}

static void xps__table(void **state)
{
	static const struct {
		const char *text;
		uint64_t cpus;
	} v[] = {
		{ "1\n", 1 },
		{ "8\n", 8 },
		{ "00000001\n", 1 },
		{ "00000001,00000000\n", 1ull << 32 },
		{ "a\n", 0 /* two or more CPUs */ },
		{ "0,0\n", 0 },
		{ "\n", 0 },
		{ "1g\n", 0 },
		{ "80000000,00000000\n", 1ull << 63 },
	};

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(v); k++) {
		uint64_t want = v[k].cpus;

		if (!strcmp(v[k].text, "a\n") && sysconf(_SC_NPROCESSORS_CONF) > 2)
			want = 10;
		write_xps(v[k].text);
		if (find_tx_cpus(0) != want)
			fail_msg("\"%s\": %llx", v[k].text, (unsigned long long)find_tx_cpus(0));
	}
	write_xps("1\n");
	assert_int_equal(find_tx_cpus(1), 0); /* XPS of another queue */
}

static void irq__the_queues_own(void **state)
{
	(void)state;
	write_irq("device/msi_irqs", "40", "eth0", "7\n");
	write_irq("device/msi_irqs", "41", "eth0-TxRx-0", "5\n");
	write_irq("device/msi_irqs", "42", "eth0-TxRx-1", "6\n");
	write_irq("device/msi_irqs", "43", "eth0-TxRx-10", "9\n");
	assert_int_equal(find_tx_cpus(0), 1 << 5);
	assert_int_equal(find_tx_cpus(1), 1 << 6);
	assert_int_equal(find_tx_cpus(10), 1 << 9);
	assert_int_equal(find_tx_cpus(2), 0);
	write_xps("4\n"); /* XPS has precedence. */
	assert_int_equal(find_tx_cpus(0), 4);
}

static void irq__names_of_drivers(void **state)
{
	(void)state;
	write_irq("device/msi_irqs", "50", "eth0-rx-0", "1\n");
	write_irq("device/msi_irqs", "51", "eth0-tx-0", "2\n");
	write_irq("device/msi_irqs", "52", "mlx5_comp3@pci:0000:03:00.0", "3\n");
	write_irq("device/msi_irqs", "53", "mlx5_async3@pci:0000:03:00.0", "4\n");
	assert_int_equal(find_tx_cpus(0), 1 << 2);
	assert_int_equal(find_tx_cpus(3), 1 << 3);
}

static void irq__virtio(void **state)
{
	(void)state;
	write_file("class/net/eth0/device/driver", "");
	write_irq("msi_irqs", "60", "virtio3-config", "1\n");
	write_irq("msi_irqs", "61", "virtio3-input.0", "2\n");
	write_irq("msi_irqs", "62", "virtio3-output.0", "4\n");
	assert_int_equal(find_tx_cpus(0), 1 << 4);
}

/*
 * Before Linux 4.14, or without CONFIG_GENERIC_IRQ_EFFECTIVE_AFF_MASK: the requested mask is used.
 * It says nothing if it contains every CPU.
 */
static void irq__no_effective_list(void **state)
{
	(void)state;
	write_irq("device/msi_irqs", "41", "eth0-0", NULL);
	assert_int_equal(find_tx_cpus(0), 0);
	write_file("irq/41/smp_affinity_list", "12\n");
	assert_int_equal(find_tx_cpus(0), 1 << 12);
	write_file("irq/41/smp_affinity_list", "1-0\n");
	assert_int_equal(find_tx_cpus(0), 0);
	write_file("irq/41/smp_affinity_list", "x\n");
	assert_int_equal(find_tx_cpus(0), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing__no_answer),    TEST(xps__table),  TEST(irq__the_queues_own),
		TEST(irq__names_of_drivers), TEST(irq__virtio), TEST(irq__no_effective_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
