#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# deps.sh TARGET: makes sure that what TARGET needs is there.  What is missing
# is installed by apt when this runs as root on a Debian, else named.
#   build    compiler and libraries        check    and cmocka; clang if it can
#   fuzz     and clang with libFuzzer      report   and a browser
#   format, tidy
# deps.sh have clang: exit 0 when clang can link a fuzz target.
#
# It looks for the thing itself (a command, a header), not for a package, so
# it is right on machines that have them from somewhere else.
set -u
CC=${CC:-gcc}
CLANG=${CLANG:-clang}
missing=

have_cmd() { command -v "${1%% *}" >/dev/null 2>&1; }

# shellcheck disable=SC2086 # CFLAGS are words
have_header() {
	have_cmd "$CC" &&
		printf '#include <stdio.h>\n#include <%s>\n' "$1" |
		$CC ${CFLAGS:-} -E -x c - >/dev/null 2>&1
}

# clang and its runtime for fuzz targets, under either of its two names.
have_clang() {
	have_cmd "$CLANG" || return 1
	rt=$($CLANG -print-file-name="libclang_rt.fuzzer-$(uname -m).a")
	case $rt in
	/*) [ -e "$rt" ] ;;
	*) [ -e "$($CLANG -print-runtime-dir 2>/dev/null)/libclang_rt.fuzzer.a" ] ;;
	esac
}

# need PACKAGE TEST...: PACKAGE is missing when TEST fails.
need() {
	package=$1
	shift
	"$@" || missing="$missing $package"
}

needs_build() {
	missing=
	case $CC in
	clang*) need clang have_cmd "$CC" ;;
	*) need gcc have_cmd "$CC" ;;
	esac
	need libc6-dev have_header pthread.h
	need make have_cmd make
	need liburcu-dev have_header urcu.h
	need libunwind-dev have_header libunwind-ptrace.h
	need libjansson-dev have_header jansson.h
}

# cmocka.h does not include what it needs.
have_cmocka() {
	have_cmd "$CC" && printf '%s\n' '#include <stdarg.h>' \
		'#include <stddef.h>' '#include <stdint.h>' \
		'#include <setjmp.h>' '#include <cmocka.h>' |
		$CC -E -x c - >/dev/null 2>&1
}

can_install() {
	[ "$(id -u)" = 0 ] && have_cmd apt-get
}

install_them() {
	echo "deps: installing $*" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get install -y --no-install-recommends "$@" \
		</dev/null >&2 2>/dev/null && return 0
	# Package lists that are old or were never there.
	apt-get update </dev/null >&2 || return 1
	apt-get install -y --no-install-recommends "$@" </dev/null >&2
}

# provide TARGET PACKAGE...: installs, or says what to install and fails.
provide() {
	target=$1
	shift
	[ $# = 0 ] && return 0
	if can_install; then
		install_them "$@" && return 0
		echo "deps: could not install: $*" >&2
		return 1
	fi
	echo "deps: '$target' needs packages that are not there; as root:" >&2
	echo "  apt-get install $*" >&2
	return 1
}

case ${1:-} in
have)
	case ${2:-} in
	clang) have_clang ;;
	guest) have_cmd qemu-system-x86_64 && have_header lzma.h ;;
	*) false ;;
	esac
	exit
	;;
build)
	needs_build
	# shellcheck disable=SC2086 # a list of words
	provide build $missing
	;;
check)
	needs_build
	need libcmocka-dev have_cmocka
	# shellcheck disable=SC2086
	provide check $missing || exit
	# Without clang its tests are skipped: no reason to fail.
	if ! have_clang && can_install; then
		install_them clang libclang-rt-14-dev ||
			echo 'deps: no clang: its tests are skipped' >&2
	fi
	# The same for xmllint, which checks a JUnit file.
	if ! have_cmd xmllint && can_install; then
		install_them libxml2-utils ||
			echo 'deps: no xmllint: its test is skipped' >&2
	fi
	# And strace, which compares a case with its C.
	if ! have_cmd strace && can_install; then
		install_them strace ||
			echo 'deps: no strace: its test is skipped' >&2
	fi
	exit 0
	;;
bench)
	needs_build
	# shellcheck disable=SC2086
	provide bench $missing || exit
	# The draws of arm64: without these two that part is skipped.
	missing=
	need gcc-aarch64-linux-gnu have_cmd aarch64-linux-gnu-gcc
	[ -e /usr/aarch64-linux-gnu/lib/libc.a ] ||
		missing="$missing libc6-dev-arm64-cross"
	need qemu-user have_cmd qemu-aarch64
	if [ -n "$missing" ] && can_install; then
		# shellcheck disable=SC2086
		install_them $missing ||
			echo 'deps: no arm64: its draws are skipped' >&2
	fi
	exit 0
	;;
fuzz)
	needs_build
	have_clang || missing="$missing clang libclang-rt-14-dev"
	# shellcheck disable=SC2086
	provide fuzz $missing
	;;
guest)
	needs_build
	need liblzma-dev have_header lzma.h
	need qemu-system-x86 have_cmd qemu-system-x86_64
	# shellcheck disable=SC2086
	provide guest $missing
	;;
guest-arm64)
	missing=
	need gcc-aarch64-linux-gnu have_cmd aarch64-linux-gnu-gcc
	[ -e /usr/aarch64-linux-gnu/lib/libc.a ] ||
		missing="$missing libc6-dev-arm64-cross"
	need qemu-system-arm have_cmd qemu-system-aarch64
	# shellcheck disable=SC2086
	provide guest-arm64 $missing
	;;
report)
	needs_build
	have_cmd chromium || have_cmd chromium-browser ||
		have_cmd google-chrome || missing="$missing chromium"
	# shellcheck disable=SC2086
	provide report $missing
	;;
format)
	missing=
	need clang-format have_cmd clang-format
	# shellcheck disable=SC2086
	provide format $missing
	;;
tidy)
	needs_build
	need clang-tidy have_cmd clang-tidy
	# shellcheck disable=SC2086
	provide tidy $missing
	;;
*)
	echo 'usage: deps.sh build|check|bench|fuzz|report|guest|guest-arm64|format|tidy' >&2
	exit 2
	;;
esac
