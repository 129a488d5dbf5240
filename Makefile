# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
#   make run           install what is missing, build, raise a rack of 8 hosts, show it at work
#   make test          install what is missing, build, run every test
#   make               build the command, the daemon and the library
#   make tests         build the tests, too
#   make examples      build the programs of examples/
#   make install       install into PREFIX (/usr/local), below DESTDIR
#   make uninstall     remove what `make install` has installed
#   make deb           Debian packages, in build/deb
#   make clean         remove the build folder
#   make format        write every C file as .clang-format has it
#
#   make bench         measure, beside the peers; PARTS="rack group ..." selects (bench/run.sh)
#   make bench-instructions  what a switch costs per frame, counted in a guest
#   make fuzz          the fuzzers, ten seconds each
#   make fuzz-campaign ten minutes each, on all CPUs; FUZZERS="ctl agent", FUZZ_SECONDS=600, KEEP=24
#   make model         the promises of reliable scatterings, searched by spin
#   make mutants       does a test fail when the code is wrong? LISTS=cores,lib LEAST=90
#   make soak          random racks and accidents, SOAK_SECONDS=600
#   make soak-fair     fair slots of GRAPHS=1000 random networks against an exact solver
#   make soak-kills    random failures for SECONDS=1800, or RUNS=2000; DRAWS=, SEED=, ASAN=1
#   make soak-restart  every daemon restarted, upgraded, reloaded, killed; ROUNDS=50, ARGS=
#   make test-kernels  program tests and net tests on Debian's kernels, in qemu
#   make test-machines racks of qemu machines, each with its own kernel and clock; CASES="small"
#   make test-deb      the Debian packages: built twice, lintian, installed, upgraded, purged
#   make test-nics     one FIFO on virtio-net with one and with two queues; ROUNDS=100
#   make deps-build    install what a build needs; also deps-run, -test, -bench, -vm, -deb
#
# Targets that use network namespaces or BPF run as root. Variables: B=build, CC, CLANG, PREFIX,
# LIBDIR, UNITDIR, ZSHDIR, CPPFLAGS, CFLAGS, LDFLAGS, BPF_LINES.

SHELL	   := /bin/bash
CC	   ?= gcc
CLANG	   ?= clang-16
FUZZ_CLANG ?= clang-14
BPFTOOL	   ?= bpftool
B	   := build
# the version that debian/changelog begins with, of programs, library and packages
VERSION	   := $(or $(shell sed -n '1s/^barline (\(.*\)) .*/\1/p' debian/changelog),\
	      $(error debian/changelog does not begin with a version))
PREFIX	   ?= /usr/local
LIBDIR	   ?= $(PREFIX)/lib
UNITDIR	   ?= $(PREFIX)/lib/systemd/system
ZSHDIR	   ?= $(PREFIX)/share/zsh/site-functions
SOMAJOR	   := 0

# what a fresh Debian 12 lacks, by what it is needed for
PKGS_BUILD := gcc make pkg-config clang-16 libbpf-dev libxdp-dev bpftool linux-libc-dev libelf-dev \
	      zlib1g-dev libyaml-dev libsystemd-dev libjansson-dev libck-dev libcurl4-gnutls-dev \
	      libgnutls28-dev libsqlite3-dev libprotobuf-c-dev protobuf-c-compiler \
	      libcap-ng-dev libseccomp-dev libmicrohttpd-dev
PKGS_RUN   := iproute2 ethtool procps gnuplot-nox
PKGS_APPS  := iperf3 memcached
PKGS_TEST  := etcd-server spin nftables libcmocka-dev clang-14 libclang-rt-14-dev clang-format-14 \
	      libasan8 libubsan1 libtsan2 linuxptp groff-base tshark prometheus python3 g++ rustc \
	      systemd zsh $(PKGS_APPS)
PKGS_BENCH := corosync libcpg-dev jq bsdextrautils $(PKGS_APPS)
PKGS_DEB   := dpkg-dev debhelper libcmocka-dev lintian diffoscope-minimal devscripts mmdebstrap \
	      systemd-container bpftool dh-python
PKGS_VM	   := qemu-system-x86 busybox-static dash cpio kmod xz-utils ethtool iproute2

WARN	:= -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow -Wno-unused-parameter \
	   -Wno-missing-field-initializers
CFLAGS	?= -O2 -g
ALL_CFLAGS := -std=gnu11 $(WARN) $(CFLAGS) -fno-strict-aliasing -D_GNU_SOURCE \
	      -DBARLINE_VERSION='"$(VERSION)"' -I. -I$(B)
# In tests, variables that nobody has set hold a pattern that no check takes for a good value.
PATTERN := -ftrivial-auto-var-init=pattern
# BL_LIBRARIES_LINKED: nothing is loaded later, so that tests can replace functions of libraries.
# -O1 and -g1 halve the time of the compiler, and reports of the sanitizers have their lines all the
# same. SAN_DEBUG=-g is for a debugger that is to show variables.
SAN_DEBUG ?= -g1
SAN	:= $(PATTERN) -O1 $(SAN_DEBUG) -fsanitize=address,undefined \
	   -fno-sanitize-recover=undefined -fno-omit-frame-pointer -DBL_LIBRARIES_LINKED
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)
# Without the lines of inlined functions a kernel has a sixth of the line information to check and
# to keep. "make BPF_LINES=" puts them in: the verifier's messages name them then.
BPF_LINES ?= -gno-inline-line-tables
# BTF names the sources: relative to the tree, so that all builds of a tree are the same
BPF_CFLAGS := -O2 -g $(BPF_LINES) -Wall -Wextra -Wno-unused-parameter -target bpf -mcpu=v3 -I. \
	      -I/usr/include/$(MULTIARCH) -ffile-prefix-map=$(CURDIR)=.
NODE_LIBS := -lxdp -lbpf -lelf -lz -lyaml -lprotobuf-c -lcap-ng -lseccomp \
	     -lpthread -lm
CTL_LIBS  := -lprotobuf-c -ljansson -lcap-ng -lseccomp
CLI_LIBS  := $(CTL_LIBS) $(NODE_LIBS)
# Programs load these themselves, when they are first used (base/library/library.h); some tests
# call them directly. TLS by GnuTLS, in libcurl, too: its LGPL is compatible with both of our
# licences, whereas the Apache-2.0 of OpenSSL is not compatible with GPL-2.0-only.
LOADED_LIBS := -Wl,--as-needed -lcurl -lsqlite3 -lgnutls -lmicrohttpd -lsystemd \
	       -Wl,--no-as-needed

# The compiler writes down which headers a target depends on. Generated headers must exist before it
# runs for the first time.
DEPS	 = -MMD -MP -MF $@.d -MT $@
SKELS	 := $(addprefix $(B)/,$(addsuffix .skel.h,switch switch_plain host host_plain note pacer \
	    pass loss entry))
PROTO_H	 := $(B)/proto/ctl.pb-c.h
# the sources in these folders and in their subfolders
sources	 = $(sort $(wildcard $(foreach d,$(1),$(d)/*.c $(d)/*/*.c)))
BASE_SRC := $(call sources,base)
LIB_SRC	 := $(call sources,lib)
NODE_SRC := $(BASE_SRC) $(call sources,proto) $(filter-out loader/barlined.c,$(call sources,loader))
ARB_SRC	 := $(call sources,arbiter)
CTL_SRC	 := $(call sources,controller)
LAB_SRC	 := $(call sources,lab)
# the other sources in bench/ itself are programs of their own
BENCH_SRC := $(addprefix bench/,run.c util.c counter_span.c) $(wildcard bench/*/*.c)
UTIL_SRC := $(wildcard cli/util/*.c)
CLI_SRC	 := $(filter-out $(UTIL_SRC),$(call sources,cli))
# tests lie in folders as what they test does; their binaries lie side by side, by kind
test_src  = $(sort $(shell find tests/$(1) -name 'test_*.c'))
test_bin  = $(addprefix $(B)/tests/$(1)/,$(basename $(notdir $(call test_src,$(1)))))
UNIT_BIN := $(call test_bin,unit)
PROG_BIN := $(call test_bin,prog)
NET_BIN	 := $(call test_bin,net)
# each binary has its source as a prerequisite, and the rules below say how it is made
source_of = $(eval $(B)/tests/$(1)/$(basename $(notdir $(2))): $(2))
$(foreach k,unit prog net,$(foreach s,$(call test_src,$(k)),$(call source_of,$(k),$(s))))

# not the first rule above, which is that of a test
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY: $(SKELS) $(SKELS:.skel.h=.bpf.o) $(PROTO_H) $(PROTO_H:.h=.c)
.PHONY: all help examples tests run test model mutants bench bench-instructions soak soak-fair \
	soak-kills soak-restart fuzz fuzz-campaign test-kernels test-machines test-nics test-quick \
	test-deb install uninstall deb clean format deps-build deps-run deps-test deps-bench \
	deps-vm deps-deb root

UNITS	 := $(patsubst systemd/%.in,$(B)/systemd/%,$(wildcard systemd/*.service.in))

# pages of section 3, from the comments of barline.h
MAN3	 := $(patsubst %,$(B)/man/%.3,$(shell bash docs/man3/man3.sh --list))

COMPLETIONS := $(addprefix $(B)/completion/,barline.bash barlined.bash _barline _barlined)

all: $(B)/barline $(B)/barlined $(B)/libbarline.a $(B)/libbarline.so $(B)/barline.pc $(UNITS) \
	$(COMPLETIONS) $(B)/man/.made

# the list at the top of this file
help:
	@sed -n '2,/^$$/s/^# \{0,3\}//p' Makefile

bpf_object = $(CLANG) $(BPF_CFLAGS) $(DEPS) -c $< -o $@
$(B)/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(bpf_object)

# twice: for all nodes, and for those without admission and authentication (bpf/bpf_util.h)
$(B)/%_plain.bpf.o: BPF_CFLAGS += -DBL_PLAIN
$(B)/switch.bpf.o $(B)/switch_plain.bpf.o: bpf/switch/switch.bpf.c
	@mkdir -p $(@D)
	$(bpf_object)

$(B)/host.bpf.o $(B)/host_plain.bpf.o: bpf/host/host.bpf.c
	@mkdir -p $(@D)
	$(bpf_object)

$(B)/%.skel.h: $(B)/%.bpf.o
	$(BPFTOOL) gen skeleton $< name bl_$* > $@

# the messages of agents and controllers; generated, never committed
$(PROTO_H:.h=.c): proto/ctl.proto
	@mkdir -p $(@D)
	protoc-c --proto_path=proto --c_out=$(@D) $<

$(PROTO_H): $(PROTO_H:.h=.c) ;

$(B)/proto/ctl.pb-c.o: $(PROTO_H:.h=.c)
	$(CC) -std=gnu11 $(CPPFLAGS) $(CFLAGS) -fPIC -I$(B)/proto -c $< -o $@

# these are compiled again when the version changes
$(patsubst %.c,$(B)/%.o,$(shell grep -rlE 'BARLINE_VERSION|BL_BUILD' --include='*.c' cli loader)): \
	$(B)/version

$(B)/%.o: %.c | $(SKELS) $(PROTO_H)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(DEPS) -fPIC \
		$(if $(filter lib/%,$<),-fvisibility=hidden) -c $< -o $@

$(B)/libbarline.a: $(LIB_SRC:%.c=$(B)/%.o)
	@rm -f $@
	ar rcs $@ $^

$(B)/libbarline.so: $(LIB_SRC:%.c=$(B)/%.o) lib/libbarline.map
	$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libbarline.so.$(SOMAJOR) \
		-Wl,--version-script=lib/libbarline.map -o $@ $(filter %.o,$^)
	ln -sf libbarline.so $(B)/libbarline.so.$(SOMAJOR)

$(B)/libbarline-node.a: $(NODE_SRC:%.c=$(B)/%.o) $(B)/proto/ctl.pb-c.o
	@rm -f $@
	ar rcs $@ $^

$(B)/libbarline-arbiter.a: $(ARB_SRC:%.c=$(B)/%.o)
	@rm -f $@
	ar rcs $@ $^

$(B)/libbarline-controller.a: $(CTL_SRC:%.c=$(B)/%.o)
	@rm -f $@
	ar rcs $@ $^

# what commands share; a rack of namespaces; workloads: each uses the ones before it
$(B)/libbarline-util.a: $(UTIL_SRC:%.c=$(B)/%.o)
	@rm -f $@
	ar rcs $@ $^

$(B)/libbarline-lab.a: $(LAB_SRC:%.c=$(B)/%.o)
	@rm -f $@
	ar rcs $@ $^

$(B)/libbarline-bench.a: $(BENCH_SRC:%.c=$(B)/%.o)
	@rm -f $@
	ar rcs $@ $^

# highest layer first, as the linker wants them
DAEMON_LIBS := $(addprefix $(B)/libbarline,-controller.a -arbiter.a -node.a .a)
LAB_LIBS    := $(addprefix $(B)/libbarline,-bench.a -lab.a -util.a) $(DAEMON_LIBS)

$(B)/barlined: $(B)/loader/barlined.o $(B)/libbarline-node.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -ljansson $(NODE_LIBS)

$(B)/barline: $(CLI_SRC:%.c=$(B)/%.o) $(LAB_LIBS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(CLI_LIBS)

$(B)/man/.made: lib/barline.h $(wildcard docs/man3/*) $(B)/version
	bash docs/man3/man3.sh $(@D) $(VERSION)
	@touch $@

$(MAN3): $(B)/man/.made ;

# The version, and the paths that installed files name. Each file is newer than what is made of it
# if it says something else than last time.
$(B)/version: SAYS = $(VERSION)
$(B)/paths: SAYS = $(PREFIX) $(LIBDIR) $(VERSION)
$(B)/version $(B)/paths: FORCE
	@mkdir -p $(@D)
	@echo '$(SAYS)' | cmp -s - $@ || echo '$(SAYS)' > $@
FORCE:

$(B)/barline.pc: lib/barline.pc.in $(B)/paths
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' \
		-e 's|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|' $< > $@

$(B)/systemd/%: systemd/%.in $(B)/paths
	@mkdir -p $(@D)
	sed -e 's|@SBIN@|$(PREFIX)/sbin|; s|@BIN@|$(PREFIX)/bin|' $< > $@

# A shell loads these files by the name of the command.
$(B)/completion/%.bash: $(B)/barline
	@mkdir -p $(@D)
	$(B)/barline completion bash $(if $(filter %d,$*),--daemon) > $@

$(B)/completion/_%: $(B)/barline
	@mkdir -p $(@D)
	$(B)/barline completion zsh $(if $(filter %d,$*),--daemon) > $@

# ---- tests: found by pattern; a core is compiled natively with sanitizers ----

# library, arbiter and controller with sanitizers, once for all unit tests
$(B)/san/%.o: %.c | $(PROTO_H)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) $(SAN) -c $< -o $@

$(B)/san/lib.a: $(LIB_SRC:%.c=$(B)/san/%.o)
	@rm -f $@
	ar rcs $@ $^

$(B)/san/arbiter.a: $(ARB_SRC:%.c=$(B)/san/%.o)
	@rm -f $@
	ar rcs $@ $^

$(B)/san/controller.a: $(CTL_SRC:%.c=$(B)/san/%.o)
	@rm -f $@
	ar rcs $@ $^

# of the loader, the lab and the workloads, what unit tests link by itself
PART_SRC := $(BASE_SRC) $(call sources,proto) \
	loader/config.c loader/config_admission.c loader/config_clock.c loader/settings.c \
	$(addprefix loader/clock/,clockbound.c kernel.c phc.c ptp4l.c source.c) \
	$(addprefix loader/admission/,options.c admission_argp.c) \
	$(addprefix loader/order/,agent.c agent_watch.c clock.c) \
	$(addprefix loader/load/,lower.c nic_drivers.c nic_left.c nic_rx.c nic_tx.c prio.c \
		sysfs.c tx_cpu.c avoid.c) \
	$(addprefix bench/fct/,fct_sizes.c fct_trace.c fct_coflow.c fct_fluid.c) \
	bench/kill/kill_flow.c bench/rack/bench_check.c \
	$(addprefix cli/setup/,command.c parse.c plan.c state.c yaml.c) \
	$(addprefix cli/capture/,follow.c pcapng.c) \
	$(addprefix cli/health/,event_log.c judge.c) \
	$(addprefix cli/,doctor/finding.c metrics/text.c show/columns.c show/view.c \
		sysdump/redact.c) \
	$(addprefix cli/live/,holder.c rows.c screen.c tty.c) \
	$(addprefix cli/util/,ask.c message.c names.c nic_text.c out.c status.c)
$(B)/san/parts.a: $(PART_SRC:%.c=$(B)/san/%.o) $(B)/proto/ctl.pb-c.o
	@rm -f $@
	ar rcs $@ $^

SAN_LIBS := $(addprefix $(B)/san/,controller.a arbiter.a lib.a parts.a)
# functions of other files that a unit test has its own of: the test defines __wrap_NAME()
wraps	  = $(WRAP_$(@F):%=-Wl,--wrap=%)
# WRAP_test_x := function ...
WRAP_test_arb_comm := arb_peer_grant arb_peer_send
WRAP_test_admit := ctl_admission ctl_peer_ready ctl_send ctl_leading
WRAP_test_ctl_forward := bl_session_waiting bl_session_send
WRAP_test_agent_fences := sd_event_now bl_session_connect bl_session_send bl_session_waiting \
	bl_session_close
WRAP_test_nic_tx := nl_open nl_close nl_qdisc_list nl_qdisc_add nl_qdisc_pfifo nl_qdisc_two_bands \
	nl_qdisc_del nl_filter_queue nl_filter_del nl_filter_count nl_clsact_make nl_clsact_del \
	et_tx_queues bl_sysfs_open
WRAP_test_nic_rx := et_rx_queues et_channels et_channels_set et_feature et_feature_set et_rule_add \
	et_rule_place et_rule_list et_rule_get et_rule_del et_rules et_table et_table_set
WRAP_test_clock := adjtimex bl_log clock_gettime
WRAP_test_clock_measured := $(WRAP_test_clock)
WRAP_test_bus_clock := clock_gettime
WRAP_test_ptp4l := adjtimex clock_gettime bl_log bl_phc_path bl_phc_open bl_phc_read bl_phc_close
WRAP_test_clockbound := adjtimex
WRAP_test_phc := ioctl et_stamps
WRAP_test_status_ask := cli_fail bl_netns_ino
WRAP_test_bench_check := cli_fail reason_name
WRAP_test_options := bl_admission_defaults bl_admission_check bl_role_name bl_chain_check
WRAP_test_config_clock := $(WRAP_test_options)
WRAP_test_store_etcd := etcd_gateway_open etcd_gateway_close etcd_ask
WRAP_fuzz_agent := sd_event_now sd_event_add_time_relative bl_session_connect bl_session_send \
	bl_session_waiting bl_session_close
WRAP_fuzz_arb := arb_udp_open arb_group_join arb_receive sendmmsg sendto getrandom \
	if_nametoindex clock_gettime bl_log
WRAP_fuzz_attach := bpf_map_update_elem bpf_map_lookup_elem bpf_map_delete_elem bpf_map_create \
	bpf_obj_get bl_iface_get bl_iface_addr bind listen chmod chown unlink accept4 \
	sd_event_add_io sd_event_add_time_relative sd_event_source_set_enabled \
	sd_event_source_disable_unref bl_log mmap munmap bpf_map_get_fd_by_id \
	bpf_obj_get_info_by_fd bl_pin_over bl_note
WRAP_fuzz_ctl := ctl_leading bl_store_waits bl_session_send bl_session_waiting bl_session_end \
	bl_session_close bl_log clock_gettime
WRAP_fuzz_etcd := etcd_gateway_open etcd_gateway_close etcd_gateway_leave etcd_ask etcd_ask_now \
	etcd_req_free bl_store_once sd_event_add_time sd_event_source_disable_unref

# these run the command
$(addprefix $(B)/tests/unit/,test_batch test_completion test_options test_help \
	test_library): | $(B)/barline
$(addprefix $(B)/tests/unit/,test_completion test_help test_library): | $(B)/barlined
$(B)/tests/unit/test_batch: $(B)/version
# and this one looks at all that is installed
$(B)/tests/unit/test_packages: | all $(B)/next/barlined

$(filter-out %/test_lib_helper_tsan,$(UNIT_BIN)): $(SAN_LIBS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) $(SAN) $(wraps) -o $@ $(filter tests/%.c,$^) \
		-Wl,--start-group $(SAN_LIBS) -Wl,--end-group -lcmocka $(CTL_LIBS) $(LOADED_LIBS) \
		-lyaml -lm

# test_lib_helper.c and the library once more, under the thread sanitizer, which excludes the
# address sanitizer: two threads share one endpoint. -Wno-tsan: the sanitizer does not support the
# fence in lib/failures.c, whose reader discards what was overwritten meanwhile.
$(B)/tsan/%.o: %.c | $(PROTO_H)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) -Wno-tsan -O1 -fsanitize=thread -c $< -o $@

$(B)/tests/unit/test_lib_helper_tsan: $(LIB_SRC:%.c=$(B)/tsan/%.o) \
		$(addprefix $(B)/tsan/tests/unit/lib/,test_lib_helper_tsan.o test_lib_helper.o)
	@mkdir -p $(@D)
	$(CC) -fsanitize=thread -o $@ $(filter %.o,$^) -lcmocka

# -O0: these tests run programs and libraries that are optimised. gcc takes a quarter of the time.
$(PROG_BIN): $(B)/libbarline-node.a | $(SKELS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) $(PATTERN) -O0 -o $@ $(filter tests/%.c %.o,$^) \
		$(B)/libbarline-node.a -lcmocka $(NODE_LIBS)

# tests that run once more, with the objects for plain nodes
$(B)/tests/prog/test_plain_xdp: tests/prog/host/test_host_xdp.c
$(B)/tests/prog/test_plain_tc: tests/prog/host/test_host_tc.c
$(B)/tests/prog/test_plain_commit: tests/prog/host/test_commit.c
$(B)/tests/prog/test_plain_switch: tests/prog/switch/test_switch.c
$(B)/tests/prog/test_plain_regs: tests/prog/switch/test_switch_regs.c
$(B)/tests/prog/test_plain_devmap: tests/prog/switch/test_devmap.c

# the programs once more, compiled natively, and with the sanitizers for the fuzzers
$(B)/native/%.o: tests/native/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -w -O1 -g -fno-strict-aliasing -I. -Itests/native $(DEPS) -c $< -o $@

$(B)/tests/prog/test_switch_native: $(addprefix $(B)/native/,native.o native_switch.bpf.o)
$(B)/tests/prog/test_host_native: $(addprefix $(B)/native/,native.o native_host.bpf.o)

# as WRAP_test_x, of net tests: a unit test may have the same name
NET_WRAP_test_tai := adjtimex
NET_WRAP_test_void := clock_gettime

# the racks of the tests are the lab's, and so are the workers of test_kills
$(NET_BIN): $(LAB_LIBS) | $(SKELS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) $(PATTERN) -O0 $(NET_WRAP_$(@F):%=-Wl,--wrap=%) -o $@ \
		$(filter tests/%.c,$^) $(LAB_LIBS) -lcmocka $(CLI_LIBS) $(LOADED_LIBS)

FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(FUZZ_SRC:%.c=$(B)/%)
FUZZ_CC	 := $(FUZZ_CLANG) -std=gnu11 -O1 -g -fno-strict-aliasing -D_GNU_SOURCE \
	    -DBARLINE_VERSION='"$(VERSION)"' -I. -I$(B) -fsanitize=address,undefined \
	    -fno-sanitize-recover=undefined -DBL_LIBRARIES_LINKED
$(B)/fuzz/%.o: %.c | $(SKELS) $(PROTO_H)
	@mkdir -p $(@D)
	$(FUZZ_CC) $(DEPS) -fsanitize=fuzzer-no-link -c $< -o $@

$(B)/fuzz/lib.a: $(LIB_SRC:%.c=$(B)/fuzz/%.o)
	@rm -f $@
	ar rcs $@ $^

# the parsers of daemons and commands, and what they call
FUZZ_PARTS := $(NODE_SRC) $(CTL_SRC) $(wildcard arbiter/*.c) \
	$(addprefix bench/fct/,fct_sizes.c fct_trace.c fct_coflow.c)
$(B)/fuzz/parts.a: $(FUZZ_PARTS:%.c=$(B)/fuzz/%.o) $(B)/proto/ctl.pb-c.o
	@rm -f $@
	ar rcs $@ $^

$(B)/fuzz/native/%.o: tests/native/%.c
	@mkdir -p $(@D)
	$(FUZZ_CC) -w -Itests/native $(DEPS) -fsanitize=fuzzer-no-link -c $< -o $@

$(B)/tests/fuzz/fuzz_switch: $(addprefix $(B)/fuzz/native/,native.o native_switch.bpf.o)
$(B)/tests/fuzz/fuzz_host: $(addprefix $(B)/fuzz/native/,native.o native_host.bpf.o)

$(B)/tests/fuzz/%: tests/fuzz/%.c $(B)/fuzz/lib.a $(B)/fuzz/parts.a
	@mkdir -p $(@D)
	$(FUZZ_CC) $(DEPS) -fsanitize=fuzzer $(wraps) -o $@ $< $(filter %.o,$^) \
		-Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(CLI_LIBS) $(LOADED_LIBS)

# programs of users, which need the library and nothing else
EXAMPLES := $(patsubst %.c,$(B)/%,$(wildcard examples/*.c))
$(EXAMPLES): $(B)/examples/%: examples/%.c lib/barline.h $(B)/libbarline.a
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) $(WARN) -Ilib -o $@ $< $(B)/libbarline.a -pthread

examples: $(EXAMPLES)

$(B)/tests/net/test_examples: $(EXAMPLES)

# the programs of test_bindings
CXX	 ?= g++
$(B)/bindings/cpp: tests/net/apps/bindings.cpp bindings/cpp/barline.hpp lib/barline.h \
		$(B)/libbarline.a
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O1 -g -Wall -Wextra -pedantic -Werror -I. -Ilib -o $@ $< \
		$(B)/libbarline.a -pthread

RUSTC	 ?= rustc
$(B)/bindings/rust: tests/net/apps/bindings.rs $(wildcard bindings/rust/src/*.rs) \
		$(B)/libbarline.a
	@mkdir -p $(@D)
	MAKEFLAGS= $(RUSTC) --edition 2021 -O --crate-type rlib --crate-name barline \
		-o $(@D)/libbarline.rlib bindings/rust/src/lib.rs
	MAKEFLAGS= $(RUSTC) --edition 2021 -O --extern barline=$(@D)/libbarline.rlib \
		-C link-arg=$(B)/libbarline.a -C link-arg=-pthread -o $@ $<

$(B)/tests/net/test_bindings: $(B)/libbarline.so $(addprefix $(B)/bindings/,cpp rust)

# The benches are not run by the tests, but they must not stop compiling either.
tests: all $(EXAMPLES) $(UNIT_BIN) $(PROG_BIN) $(NET_BIN) \
	$(addprefix $(B)/bench/,switch_cost host_cost)

# ---- the commands ----

root:
	@[ "$$(id -u)" = 0 ] || \
		{ echo "barline: namespaces and BPF need root; run this as root" >&2; exit 1; }

define install_missing
	@missing=$$(for p in $(1); do \
		dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || \
			echo $$p; \
	done); \
	if [ -n "$$missing" ]; then \
		echo "installing:" $$missing; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
			--no-install-recommends $$missing > $(B)-apt.log 2>&1 || \
			{ cat $(B)-apt.log; exit 1; }; \
		rm -f $(B)-apt.log; \
	fi
endef
deps-build: root
	$(call install_missing,$(PKGS_BUILD))
deps-run: root
	$(call install_missing,$(PKGS_BUILD) $(PKGS_RUN))
deps-test: root
	$(call install_missing,$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_TEST))
deps-bench: root
	$(call install_missing,$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_BENCH))
deps-deb: root
	$(call install_missing,$(PKGS_BUILD) $(PKGS_DEB))
deps-vm: root
	$(call install_missing,$(PKGS_BUILD) $(PKGS_RUN) $(PKGS_TEST) $(PKGS_VM))

run: deps-run
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	$(B)/barline lab run rack --hosts 8 --out $(B)/run

test: deps-test
	@$(MAKE) --no-print-directory -s -j$$(nproc) tests $(FUZZ_BIN)
	bash tests/run.sh $(B)

fuzz: $(FUZZ_BIN)
	bash tests/fuzz/run.sh $(B)

fuzz-campaign: deps-test
	@$(MAKE) --no-print-directory -s $(FUZZ_BIN) \
		$(addprefix $(B)/tests/prog/,test_switch_native test_host_native)
	bash tests/fuzz/run.sh --campaign $(B)

# Debian's kernels in qemu: program tests on all, net tests in virtual time on 6.1 and 6.12;
# tests/vm/run.sh has the settings.
test-kernels: deps-vm
	@$(MAKE) --no-print-directory -s -j$$(nproc) tests
	bash tests/vm/run.sh

# what runs in and beside the machines of a rack
MACHINE_BIN := $(patsubst %.c,$(B)/%,$(filter-out %.bpf.c,$(wildcard tests/machines/*.c)))
MACHINE_BPF := $(patsubst %.c,$(B)/%.o,$(wildcard tests/machines/*.bpf.c))
$(MACHINE_BIN): $(B)/tests/machines/%: tests/machines/%.c $(B)/libbarline-node.a $(B)/libbarline.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) -o $@ $< $(filter %.a,$^) $(NODE_LIBS)

$(MACHINE_BPF): $(B)/tests/machines/%.bpf.o: tests/machines/%.bpf.c
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) $(DEPS) -c $< -o $@

# racks of qemu machines; tests/machines/run.sh has the settings
test-machines: deps-vm
	@$(MAKE) --no-print-directory -s -j$$(nproc) all $(MACHINE_BIN) $(MACHINE_BPF)
	bash tests/machines/run.sh $(CASES)

# a host on NICs of Debian's kernels in qemu: one FIFO, and everything put back
test-nics: deps-vm
	@$(MAKE) --no-print-directory -s -j$$(nproc) all
	bash tests/vm/nics.sh

# what switch_cost measures, in instructions per frame, in a guest in virtual time
bench-instructions: deps-vm
	@$(MAKE) --no-print-directory -s -j$$(nproc) all $(B)/bench/switch_cost
	bash bench/instructions.sh

bench: deps-bench
	@$(MAKE) --no-print-directory -s -j$$(nproc) all tests \
		$(addprefix $(B)/bench/,corosync_cpg switch_cost host_cost)
	bash bench/run.sh $(B)

$(B)/bench/corosync_cpg: bench/corosync_cpg.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) -o $@ $< -lcpg

$(B)/bench/%.bpf.o: bench/%.bpf.c
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) $(DEPS) -c $< -o $@

$(B)/bench/%.skel.h: $(B)/bench/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $* > $@

$(B)/bench/switch_cost: bench/switch_cost.c $(B)/bench/bench_switch.skel.h
	$(CC) $(ALL_CFLAGS) $(DEPS) -I$(B)/bench -o $@ $< $(NODE_LIBS)

$(B)/bench/host_cost: bench/host_cost.c $(B)/bench/bench_host.skel.h
	$(CC) $(ALL_CFLAGS) $(DEPS) -I$(B)/bench -o $@ $< $(NODE_LIBS)

# the promises of reliable 1Pipe, searched by spin; the quick cases are part of the unit tests
model: deps-test
	bash controller/model/run.sh all

# does a test fail when the code is wrong? tests/mutants/run.sh has the format of the lists.
# make mutants LISTS=cores,lib LEAST=90
mutants: deps-test
	bash tests/mutants/run.sh $(B) $(if $(LISTS),--list $(LISTS)) --least $(or $(LEAST),95)

soak: deps-test
	@$(MAKE) --no-print-directory -s all $(B)/tests/net/test_soak
	bash tests/net/soak.sh $(B)

# fair and weighted slots of so many random networks against an exact solver
GRAPHS ?= 1000
soak-fair: deps-test
	@$(MAKE) --no-print-directory -s $(B)/tests/unit/test_arb_maxmin
	BL_MAXMIN_GRAPHS=$(GRAPHS) $(if $(SEED),BL_SEED=$(SEED)) $(B)/tests/unit/test_arb_maxmin

# For hours: make soak-kills SECONDS=7200; or a number of runs on each network: RUNS=2000.
# DRAWS=base,leave: what is drawn (default: everything). SEED=0x...: repeats the choices of a run.
# ASAN=1: the library, the judge and the workers run under the address sanitizer. The last line has
# the number of runs, by network and by what was drawn.
SECONDS ?= 1800
KILLS = $(B)/tests/net$(if $(ASAN),-san)/test_kills
soak-kills: deps-test
	@$(MAKE) --no-print-directory -s all $(KILLS)
	ASAN_OPTIONS=detect_leaks=0:exitcode=99 $(KILLS) \
		$(if $(RUNS),--runs $(RUNS),--seconds $(SECONDS)) \
		$(if $(DRAWS),--draw $(DRAWS)) $(if $(SEED),--seed $(SEED))

# The workers and their judge are in the library, too; the objects with the sanitizer come first.
KILLS_SAN  := $(addprefix $(B)/san/bench/kill/,kill_work.o kill_judge.o)
KILLS_LIBS := $(filter-out $(B)/libbarline.a,$(LAB_LIBS)) $(B)/san/lib.a $(B)/libbarline.a
$(B)/tests/net-san/test_kills: tests/net/reliable/test_kills.c $(KILLS_SAN) $(KILLS_LIBS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(DEPS) $(SAN) -o $@ $< $(KILLS_SAN) $(KILLS_LIBS) -lcmocka \
		$(CLI_LIBS)

# 8 hosts on one switch and three controllers; some 60 s for each round. ARGS: --leaf-spine,
# --hosts 4, --only restart, --dead-after-us 100000, --trace (when each gap was)
ROUNDS ?= 50
soak-restart: deps-test
	@$(MAKE) --no-print-directory -s $(B)/tests/net/test_soak_restart
	$(B)/tests/net/test_soak_restart --rounds $(ROUNDS) $(ARGS)

# What a daemon or a controller is upgraded to in tests: the same, with another version.
NEXT := $(addprefix $(B)/next/,loader/node.o loader/barlined.o)
$(NEXT): $(B)/next/%.o: %.c $(B)/version | $(SKELS) $(PROTO_H)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -UBARLINE_VERSION -DBARLINE_VERSION='"$(VERSION)-next"' $(DEPS) -fPIC \
		-c $< -o $@

$(B)/next/barlined: $(NEXT) $(B)/libbarline-node.a
	$(CC) $(CFLAGS) -o $@ $^ -ljansson $(NODE_LIBS)

$(B)/next/barline: $(B)/next/loader/node.o $(CLI_SRC:%.c=$(B)/%.o) $(LAB_LIBS)
	$(CC) $(CFLAGS) -o $@ $^ $(CLI_LIBS)

$(B)/tests/net/test_soak_restart: | $(B)/barline $(B)/barlined $(B)/next/barline $(B)/next/barlined

# Every installed file, as TARGET:SOURCE:MODE; `make install` and `make uninstall` share the list.
SHARE	 := $(PREFIX)/share
DOC	 := $(SHARE)/doc/barline
CRATE	 := Cargo.toml build.rs src/lib.rs src/sys.rs
# where Debian's Python looks: /usr has one folder for all versions, /usr/local has one for each
PYTHON3	 := $(shell /usr/bin/python3 -c 'import sys; print("python3.%d" % sys.version_info[1])' \
	    2>/dev/null)
PYTHON3	 := $(if $(filter-out /usr,$(PREFIX)),$(or $(PYTHON3),python3),python3)
PYTHON	 := $(PREFIX)/lib/$(PYTHON3)/dist-packages
man_file  = $(SHARE)/man/man$(subst .,,$(suffix $(1)))/$(notdir $(1))
MAN_PAGES := $(wildcard docs/*.[138] docs/man3/*.3)
# with the folders that they have in the tree, because they refer to each other by these
DOCS	 := $(wildcard *.md LICENSES/*.txt docs/*.md docs/*.yaml docs/*.lua docs/img/*.svg \
	    examples/*)
INSTALL	 := $(PREFIX)/bin/barline:$(B)/barline:755 \
	    $(PREFIX)/sbin/barlined:$(B)/barlined:755 \
	    $(PREFIX)/include/barline.h:lib/barline.h:644 \
	    $(LIBDIR)/libbarline.a:$(B)/libbarline.a:644 \
	    $(LIBDIR)/libbarline.so.$(SOMAJOR):$(B)/libbarline.so:755 \
	    $(LIBDIR)/pkgconfig/barline.pc:$(B)/barline.pc:644 \
	    $(foreach u,$(UNITS),$(UNITDIR)/$(notdir $(u)):$(u):644) \
	    $(UNITDIR)/run-barline-bpf.mount:systemd/run-barline-bpf.mount:644 \
	    $(foreach d,sysusers tmpfiles,$(PREFIX)/lib/$(d).d/barline.conf:systemd/$(d).conf:644) \
	    $(foreach g,latency queue memcached fct,$(SHARE)/barline/$(g).gp:bench/$(g).gp:644) \
	    $(SHARE)/barline/barline.lua:docs/barline.lua:644 \
	    $(foreach p,barline barlined,\
		$(SHARE)/bash-completion/completions/$(p):$(B)/completion/$(p).bash:644 \
		$(ZSHDIR)/_$(p):$(B)/completion/_$(p):644) \
	    $(foreach m,$(MAN_PAGES) $(MAN3),$(call man_file,$(m)):$(m):644) \
	    $(foreach d,$(DOCS),$(DOC)/$(d):$(d):644) \
	    $(PREFIX)/include/barline.hpp:bindings/cpp/barline.hpp:644 \
	    $(foreach r,$(CRATE),$(SHARE)/barline/rust/$(r):bindings/rust/$(r):644) \
	    $(PYTHON)/barline.py:bindings/python/barline.py:644 \
	    $(foreach m,$(wildcard monitoring/*),$(SHARE)/barline/$(m):$(m):644)

# below no DESTDIR, programs find the library as soon as the linker's cache has it
install: all
	@set -e; for f in $(INSTALL); do \
		IFS=: read -r to from mode <<<"$$f"; \
		install -D -m "$$mode" "$$from" "$(DESTDIR)$$to"; \
	done
	ln -sf libbarline.so.$(SOMAJOR) $(DESTDIR)$(LIBDIR)/libbarline.so
	@[ -n "$(DESTDIR)" ] || ldconfig || \
		echo "barline: run ldconfig as root, so that programs find libbarline.so" >&2

# Programs and maps that are pinned in the kernel stay: `barline clean --all` removes them, before
# this. Versions before 0.3.0 had the command in sbin.
uninstall:
	@for f in $(INSTALL); do rm -f "$(DESTDIR)$${f%%:*}"; done
	rm -f $(DESTDIR)$(LIBDIR)/libbarline.so $(DESTDIR)$(PREFIX)/sbin/barline
	@for d in $(SHARE)/barline $(DOC); do \
		[ ! -d "$(DESTDIR)$$d" ] || find "$(DESTDIR)$$d" -depth -type d -empty -delete; \
	done

# The packages of the tree as it is, committed or not. `make deps-deb` installs what this needs,
# which need not be done by the same user. DEB_BUILD_OPTIONS=nocheck: without the tests.
# DEB_KEEP=1: the tree in which they were built stays, for tests/deb/run.sh.
DEB_TREE := $(B)/deb/barline
deb:
	@rm -rf $(B)/deb
	@mkdir -p $(DEB_TREE)
	@if git rev-parse --git-dir >/dev/null 2>&1; then git ls-files -z; \
		else find . -path ./$(B) -prune -o -type f -print0; fi | \
		tar -c --null -T - | tar -x -C $(DEB_TREE)
	cd $(DEB_TREE) && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS \
		dpkg-buildpackage --no-sign -b $(DEB_FLAGS)
	@[ -n "$(DEB_KEEP)" ] || rm -rf $(DEB_TREE)
	@ls $(B)/deb/*.deb

# of the unit tests, those that a build of packages runs (debian/rules); no root, a few seconds
QUICK	:= $(addprefix test_,wire_core seq_core parts_core barrier_core order_core clock_core \
	   auth_core number reorder window lib_tx lib_rx lib_rel lib_edges setup_parse)
QUICK	:= $(filter $(addprefix %/,$(QUICK) test_lib_window),$(UNIT_BIN))
test-quick: $(QUICK)
	@for t in $(notdir $(QUICK)); do \
		bash tests/run.sh $(B) --one unit $$t || exit 1; \
	done

# tests/deb/run.sh has the steps, and the settings
test-deb: deps-deb
	bash tests/deb/run.sh $(B)

FORMAT_IN := arbiter base bench bpf cli controller core examples lab lib loader maps proto tests
format:
	find $(FORMAT_IN) -name '*.[ch]' -print0 | xargs -0 -n 40 -P "$$(nproc)" clang-format-14 -i

clean:
	rm -rf $(B) $(B)-apt.log

-include $(shell find $(B) -name '*.d' 2>/dev/null)
