# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# How the three forms are compiled and what their exit codes mean.  Sourced by
# the tests of the exporter, after lib.sh or with TOP and CC set.
#
# A test for a suite needs that suite's headers: the real ones when MMR_LTP
# names a built LTP, MMR_LINUX a kernel source, or Debian's linux-source is
# installed; else the public interface files beside this, which were written
# for these tests.

FORM_FLAGS='-O2 -Wall -Wextra -Werror -pthread'

# suites_prepare DIR: finds the headers once; DIR may take files.
suites_prepare() {
	local tar
	LTP_FLAGS="-I $TOP/tests/export/ltp" LTP_LIBS=
	if [ -f "${MMR_LTP:-/nonexistent}/lib/libltp.a" ]; then
		LTP_FLAGS="-isystem $MMR_LTP/include"
		LTP_LIBS=$MMR_LTP/lib/libltp.a
	fi
	# "../kselftest.h" is searched from this folder.
	mkdir -p "$1/selftests/mm"
	cp "$TOP/tests/export/selftests/kselftest.h" "$1/selftests/"
	KSFT_FLAGS="-I $1/selftests/mm"
	tar=$(ls /usr/src/linux-source-*.tar.* 2>/dev/null | tail -n 1)
	if [ -z "${MMR_LINUX:-}" ] && [ -n "$tar" ]; then
		mkdir -p "$1/linux" && tar -xf "$tar" -C "$1/linux" \
			--strip-components=1 --wildcards \
			'*/tools/testing/selftests/kselftest.h' &&
			MMR_LINUX=$1/linux
	fi
	if [ -n "${MMR_LINUX:-}" ]; then
		mkdir -p "$1/selftests/mm"
		cp "$MMR_LINUX/tools/testing/selftests/kselftest.h" \
			"$1/selftests/" && KSFT_FLAGS="-I $1/selftests/mm"
	fi
	export LTP_FLAGS LTP_LIBS KSFT_FLAGS
}

# suites_compile COMPILER FORM PROGRAM FILE.c
suites_compile() {
	# shellcheck disable=SC2086 # lists of words
	case $2 in
	c) "$1" $FORM_FLAGS -o "$3" "$4" ;;
	ltp) "$1" $FORM_FLAGS $LTP_FLAGS -o "$3" "$4" $LTP_LIBS ;;
	kselftest) "$1" $FORM_FLAGS $KSFT_FLAGS -o "$3" "$4" ;;
	esac
}

# suites_check COMPILER FORM FILE.c: warnings only.
suites_check() {
	# shellcheck disable=SC2086 # lists of words
	case $2 in
	c) "$1" $FORM_FLAGS -fsyntax-only "$3" ;;
	ltp) "$1" $FORM_FLAGS $LTP_FLAGS -fsyntax-only "$3" ;;
	kselftest) "$1" $FORM_FLAGS $KSFT_FLAGS -fsyntax-only "$3" ;;
	esac
}

# suites_exit FORM CODE: what the form's exit code is in mmrace's terms.
suites_exit() {
	if [ "$1" != ltp ]; then
		echo "$2"
		return
	fi
	case $2 in
	32) echo 4 ;; # TCONF
	2) echo 3 ;;  # TBROK
	*) echo "$2" ;;
	esac
}
