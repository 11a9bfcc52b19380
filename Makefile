# SPDX-License-Identifier: GPL-2.0-or-later
# mmrace: see `make help`.  The targets that need a package install it when
# they run as root, and name it otherwise (tests/deps.sh).

CC ?= gcc
CLANG ?= clang
AR ?= ar
PREFIX ?= /usr/local
DESTDIR ?=
VARIANT ?= release
B := build/$(VARIANT)

# Seconds: of `make soak`, and of each target of `make fuzz`.
TIME ?= 60
FUZZ_TIME ?= 300

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1)
endif

# make V=1 prints the commands.
ifneq ($(V),1)
Q := @
say = @echo '  $1 $@'
endif

CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Wshadow -Wundef -Wvla -Wformat=2 -Wwrite-strings \
	-Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual \
	-Wimplicit-fallthrough -Wnull-dereference
ifdef CI
WARN += -Werror
endif
# clang looks into the macros of liburcu, which cast const away.
CLANG_WARN := -Wno-cast-qual
ifneq (,$(findstring clang,$(CC)))
WARN += $(CLANG_WARN)
endif
STD := -std=gnu17 -D_GNU_SOURCE
BASE := $(STD) $(WARN) -MMD -MP -I$(B)
LIBS := -lurcu-memb -lurcu-cds -lurcu-common -lunwind-ptrace -lunwind-generic \
	-lunwind -ljansson -lm -lpthread
# mmrace-child: no libc, no stack protector, no thread-local storage; unwind
# tables stay, for the stacks that the watcher takes.
CHILD_FLAGS := -O2 -g -ffreestanding -fno-stack-protector -fno-pic -fno-pie \
	-fasynchronous-unwind-tables -U_FORTIFY_SOURCE \
	-fno-omit-frame-pointer -DMMR_CHILD
ifneq (,$(findstring aarch64,$(shell $(CC) -dumpmachine 2>/dev/null)))
CHILD_FLAGS += -mno-outline-atomics
else
CHILD_FLAGS += -fcf-protection=none
endif

CHILD_SRC := $(wildcard ops/child_*.c) $(wildcard ops/op_*.c)
OPS_SRC := $(filter-out ops/child_%,$(wildcard ops/*.c))
TRIAGE_SRC := $(wildcard triage/*.c)
FUZZ_SRC := $(filter-out fuzz/main.c %_fuzzer.c,$(wildcard fuzz/*.c))
UNIT_SRC := $(wildcard tests/unit/*.c)
TOOL_SRC := $(wildcard tests/tools/*.c)
BENCH_SRC := $(wildcard tests/bench/*.c)

CHILD_OBJ := $(CHILD_SRC:%.c=$(B)/child/%.o)
LIB_SRC := $(OPS_SRC) $(TRIAGE_SRC) $(FUZZ_SRC)
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(B)/unit/%)
TOOL_BIN := $(TOOL_SRC:tests/tools/%.c=$(B)/tools/%)
BENCH_BIN := $(BENCH_SRC:tests/bench/%.c=$(B)/bench/%)

# Not the first rule below, which is that of a file that make reads.
.DEFAULT_GOAL := build

# The compiler and the libraries, once for each build folder: make reads this
# file first, makes it when it is not there, and starts over.
ifneq (,$(filter-out clean help format check-style uninstall, \
	$(or $(MAKECMDGOALS),build)))
include $(B)/deps.mk
endif
$(B)/deps.mk: tests/deps.sh
	@CC='$(CC)' CFLAGS='$(CFLAGS)' tests/deps.sh build
	@mkdir -p $(@D)
	@echo '# All that the build needs was there.' > $@

# What the test scripts know of the build.
TEST_ENV := MMR_BUILD='$(B)' MMR_CC='$(CC)' MMR_CLANG='$(CLANG)' \
	MMR_FLAGS='$(STD) $(WARN)' MMR_MAKE='$(MAKE)'

.PHONY: build
build: $(B)/mmrace $(B)/mmrace-child ## build ./mmrace (the default)
	@ln -sfn $(B)/mmrace mmrace

$(B)/mmrace: $(B)/fuzz/main.o $(B)/libmmr.a
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/libmmr.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,AR  )
	$(Q)$(AR) rcs $@ $^

$(B)/mmrace-child: $(CHILD_OBJ)
	$(call say,LINK)
	$(Q)$(CC) -nostdlib -static -Wl,--build-id=sha1 -Wl,--eh-frame-hdr -o $@ $^

$(B)/child/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(BASE) $(CHILD_FLAGS) -c -o $@ $<

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(BASE) $(CFLAGS) -c -o $@ $<

# The same programs, static, for guests (--guest): found beside mmrace.
GUEST_LIBS := $(LIBS) -llzma
GUEST_ARM_CC ?= aarch64-linux-gnu-gcc
.PHONY: guest
guest: build ## static programs for --guest, and QEMU
	@tests/deps.sh guest
	$(Q)$(MAKE) --no-print-directory VARIANT=guest LDFLAGS=-static \
		LIBS='$(GUEST_LIBS)' build/guest/mmrace build/guest/mmrace-child
	@mkdir -p $(B)/guest-x86_64
	@cp build/guest/mmrace build/guest/mmrace-child $(B)/guest-x86_64/

# The bench of overlaps for a guest with two nodes (tests/bench/timing.sh).
.PHONY: guest-bench
guest-bench: guest $(B)/tools/guest_exec ## the bench of overlaps for guests
	$(Q)$(MAKE) --no-print-directory VARIANT=guest LDFLAGS=-static \
		LIBS='$(GUEST_LIBS)' build/guest/bench/overlap

ARM_ROOT := build/arm64/root
ARM_INC := $(ARM_ROOT)/usr/include
.PHONY: guest-arm64
guest-arm64: build ## the same for arm64 guests (cross compiler, QEMU)
	@tests/deps.sh guest-arm64
	$(Q)tests/lab/arm64-sysroot.sh build/arm64
	$(Q)$(MAKE) --no-print-directory VARIANT=guest-arm \
		CC=$(GUEST_ARM_CC) LIBS='$(GUEST_LIBS)' \
		CFLAGS='-O2 -g -isystem $(ARM_INC) -isystem $(ARM_INC)/aarch64-linux-gnu' \
		LDFLAGS='-static -L$(ARM_ROOT)/usr/lib/aarch64-linux-gnu' \
		build/guest-arm/mmrace build/guest-arm/mmrace-child
	@mkdir -p $(B)/guest-aarch64
	@cp build/guest-arm/mmrace build/guest-arm/mmrace-child $(B)/guest-aarch64/

# Profiles are text that anyone can read; the generator has them built in.
$(B)/%.inc: fuzz/%
	@mkdir -p $(@D)
	$(Q)sed -e 's/[\\"]/\\&/g' -e 's/^/"/' -e 's/$$/\\n"/' $< > $@.tmp
	@mv $@.tmp $@
$(B)/fuzz/profile.o: $(B)/profiles.inc
$(B)/fuzz/recipe.o: $(B)/recipes.inc

# A test may build its text from a table of formats.
$(B)/unit/%: tests/unit/%.c $(B)/libmmr.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(BASE) -Wno-format-nonliteral $(CFLAGS) $(LDFLAGS) -o $@ $< $(B)/libmmr.a -lcmocka $(LIBS)

$(B)/tools/%: tests/tools/%.c $(B)/libmmr.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(BASE) $(CFLAGS) $(LDFLAGS) -o $@ $< $(B)/libmmr.a $(LIBS)

$(B)/bench/%: tests/bench/%.c $(B)/libmmr.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(BASE) $(CFLAGS) $(LDFLAGS) -o $@ $< $(B)/libmmr.a $(LIBS)

# Freestanding, as mmrace-child is.
$(B)/bench/s1_hand: $(B)/child/tests/bench/s1_hand.o
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -nostdlib -static -o $@ $(filter %.o,$^)

# Other flags than last time: build anew.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(BASE) $(CFLAGS) / $(CHILD_FLAGS)' | cmp -s - $@ || \
		echo '$(CC) $(BASE) $(CFLAGS) / $(CHILD_FLAGS)' > $@
.PHONY: FORCE
FORCE:

# text_fuzzer, import_fuzzer and klog_fuzzer run nothing: what they link is
# instrumented.
# race_fuzzer is guided by what can be seen from outside: nothing is.
TEXT_FLAGS := -O1 -g -fno-omit-frame-pointer \
	-fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=undefined
TEXT_OBJ := $(LIB_SRC:%.c=$(B)/text/%.o) $(B)/text/fuzz/text_fuzzer.o

$(B)/text/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CLANG) $(BASE) $(CLANG_WARN) $(TEXT_FLAGS) -c -o $@ $<
$(B)/text/fuzz/profile.o: $(B)/profiles.inc
$(B)/text/fuzz/recipe.o: $(B)/recipes.inc

$(B)/text_fuzzer: $(TEXT_OBJ)
	$(call say,LINK)
	$(Q)$(CLANG) -g -fsanitize=fuzzer,address,undefined -o $@ $^ $(LIBS)

IMPORT_OBJ := $(LIB_SRC:%.c=$(B)/text/%.o) $(B)/text/fuzz/import_fuzzer.o

$(B)/import_fuzzer: $(IMPORT_OBJ)
	$(call say,LINK)
	$(Q)$(CLANG) -g -fsanitize=fuzzer,address,undefined -o $@ $^ $(LIBS)

KLOG_OBJ := $(LIB_SRC:%.c=$(B)/text/%.o) $(B)/text/fuzz/klog_fuzzer.o

$(B)/klog_fuzzer: $(KLOG_OBJ)
	$(call say,LINK)
	$(Q)$(CLANG) -g -fsanitize=fuzzer,address,undefined -o $@ $^ $(LIBS)

$(B)/race_fuzzer: $(B)/fuzz/race_fuzzer.o $(B)/libmmr.a
	$(call say,LINK)
	$(Q)$(CLANG) -g -fsanitize=fuzzer -o $@ $^ $(LIBS)

.PHONY: fuzzers
fuzzers: $(B)/text_fuzzer $(B)/import_fuzzer $(B)/klog_fuzzer $(B)/race_fuzzer \
	$(B)/mmrace-child

# The two commands of README.md.
.PHONY: soak check
soak: ## stress the running kernel for TIME=60 seconds, then report
	@$(MAKE) --no-print-directory build
	./$(B)/mmrace soak --time $(TIME)

check: ## all tests; as root also those that need root
	@tests/deps.sh check
	@$(MAKE) --no-print-directory check-build
	@$(TEST_ENV) tests/run.sh all

.PHONY: check-build check-unit check-cli check-style check-root check-long
check-build: build $(UNIT_BIN) $(TOOL_BIN) $(BENCH_BIN)
	@if tests/deps.sh have clang; then \
		$(MAKE) --no-print-directory fuzzers && \
		$(MAKE) --no-print-directory VARIANT=$(VARIANT)-clang \
			CC='$(CLANG)' build && \
		ln -sfn $(B)/mmrace mmrace; \
	fi
	@if tests/deps.sh have guest; then \
		$(MAKE) --no-print-directory guest; fi

check-unit: build $(UNIT_BIN) ## unit tests alone
	@$(TEST_ENV) tests/run.sh unit

check-cli: check-build ## command-line tests alone
	@$(TEST_ENV) tests/run.sh cli

check-style: ## rules on the sources alone
	@$(TEST_ENV) tests/run.sh style

.PHONY: check-report
check-report: ## the HTML page, also in headless Chromium (installed as root)
	@tests/deps.sh report
	@$(MAKE) --no-print-directory build $(TOOL_BIN)
	@$(TEST_ENV) MMR_LONG=1 tests/run.sh report

check-root: ## the tests that need root, alone
	@tests/deps.sh check
	@$(MAKE) --no-print-directory check-build
	@test "$$(id -u)" = 0 || { echo 'check-root: needs root' >&2; exit 1; }
	@$(TEST_ENV) tests/run.sh root

check-long: ## what takes long: 10,000 seeds, 10 minutes under load
	@tests/deps.sh check
	@$(MAKE) --no-print-directory check-build
	@$(TEST_ENV) MMR_LONG=1 tests/run.sh cli long

.PHONY: lab check-lab
LAB_KERNEL := build/lab/bzImage-6.1
lab: $(LAB_KERNEL) ## guest kernel with planted faults (20 minutes, root)

$(LAB_KERNEL):
	tests/lab/build-kernel.sh

check-lab: ## find the planted faults blind, follow each up (tests/lab)
	@$(MAKE) --no-print-directory check-build
	@$(MAKE) --no-print-directory guest
	@$(TEST_ENV) tests/lab/check-lab.sh $(FAULTS)

.PHONY: check-asan check-tsan
SAN_ENV := MMR_SLACK_MS=4000 ASAN_OPTIONS=detect_stack_use_after_return=1 \
	UBSAN_OPTIONS=print_stacktrace=1 \
	TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp,history_size=4
ASAN_FLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined
TSAN_FLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=thread
check-asan: ## units, canaries, soak with address and undefined sanitizers
	@tests/deps.sh check
	@$(MAKE) --no-print-directory VARIANT=$(VARIANT)-asan \
		CFLAGS='$(ASAN_FLAGS)' check-san

check-tsan: ## the same with the thread sanitizer
	@tests/deps.sh check
	@$(MAKE) --no-print-directory VARIANT=$(VARIANT)-tsan \
		CFLAGS='$(TSAN_FLAGS)' check-san

.PHONY: check-san
check-san: build $(UNIT_BIN) $(TOOL_BIN)
	@$(SAN_ENV) $(TEST_ENV) tests/run.sh san

.PHONY: bench fuzz fuzz-text fuzz-race
bench: ## interpreter, monitor, throughput, timing (docs/timing.md)
	@tests/deps.sh bench
	@$(MAKE) --no-print-directory build $(BENCH_BIN) $(TOOL_BIN)
	@$(TEST_ENV) tests/bench/bench.sh

fuzz: ## the fuzz targets, FUZZ_TIME=300 seconds each
	@tests/deps.sh fuzz
	@$(MAKE) --no-print-directory fuzzers
	@$(TEST_ENV) tests/fuzz.sh text $(FUZZ_TIME)
	@$(TEST_ENV) tests/fuzz.sh import $(FUZZ_TIME)
	@$(TEST_ENV) tests/fuzz.sh klog $(FUZZ_TIME)
	@$(TEST_ENV) tests/fuzz.sh race $(FUZZ_TIME)

.PHONY: man install uninstall
man: $(B)/mmrace-ops.7 ## write docs/mmrace-ops.7 from the descriptors
	-@cp $< docs/mmrace-ops.7

$(B)/mmrace-ops.7: $(B)/mmrace docs/ops-page.sh
	docs/ops-page.sh $(B)/mmrace > $@.tmp
	mv $@.tmp $@

install: build man ## install to $(DESTDIR)$(PREFIX)
	install -D -m 755 $(B)/mmrace '$(DESTDIR)$(PREFIX)/bin/mmrace'
	install -D -m 755 $(B)/mmrace-child \
		'$(DESTDIR)$(PREFIX)/libexec/mmrace/mmrace-child'
	install -D -m 644 -t '$(DESTDIR)$(PREFIX)/share/man/man1' \
		docs/mmrace.1
	install -D -m 644 -t '$(DESTDIR)$(PREFIX)/share/man/man5' \
		docs/mmrace-case.5
	install -D -m 644 -t '$(DESTDIR)$(PREFIX)/share/man/man7' \
		$(B)/mmrace-ops.7
	install -D -m 644 -t '$(DESTDIR)$(PREFIX)/share/mmrace/seeds' \
		$(wildcard corpus/seeds/*.case)

uninstall: ## remove what install put there
	rm -f '$(DESTDIR)$(PREFIX)/bin/mmrace' \
		'$(DESTDIR)$(PREFIX)/share/man/man1/mmrace.1' \
		'$(DESTDIR)$(PREFIX)/share/man/man5/mmrace-case.5' \
		'$(DESTDIR)$(PREFIX)/share/man/man7/mmrace-ops.7'
	rm -rf '$(DESTDIR)$(PREFIX)/libexec/mmrace' \
		'$(DESTDIR)$(PREFIX)/share/mmrace'

.PHONY: format tidy clean help
C_FILES = $(wildcard ops/*.[ch] triage/*.[ch] fuzz/*.[ch] tests/*/*.[ch])
TIDY := -*,bugprone-*,clang-analyzer-*, \
	-bugprone-easily-swappable-parameters, \
	-bugprone-narrowing-conversions, \
	-bugprone-reserved-identifier, \
	-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling
format: ## clang-format in place
	@tests/deps.sh format
	clang-format -i $(C_FILES)

tidy: ## clang-tidy on the engine's sources
	@tests/deps.sh tidy
	@$(MAKE) --no-print-directory $(B)/profiles.inc $(B)/recipes.inc
	clang-tidy --quiet --checks='$(subst $() ,,$(TIDY))' $(LIB_SRC) fuzz/main.c -- $(STD) -I$(B)

clean: ## remove all that was built
	rm -rf build mmrace

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | \
		while IFS="$$(printf '\t')" read -r t h; do \
			printf '  make %-12s %s\n' "$$t" "$$h"; done
	@echo 'Variables: CC CLANG CFLAGS LDFLAGS PREFIX DESTDIR VARIANT CI' \
		'TIME FUZZ_TIME'

-include $(shell find $(B) -name '*.d' 2>/dev/null)
