// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernels that lack what an operation needs, played by a seccomp filter: a
 * case that uses it is refused with a sentence that says since when Linux has
 * it.
 *
 * Red when: a descriptor does not say what it needs, or a probe takes a
 * refusal for consent.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../ops/needs.h"

/* From now on this process's call nr, with args[which] of that value (-1:
 * whatever), fails with err. */
static void refuse(int nr, int which, uint32_t value, int err)
{
	size_t arg = offsetof(struct seccomp_data, args) +
		     (size_t)(which < 0 ? 0 : which) * 8;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)arg),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0,
			 which < 0 ? 0 : 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		_exit(77);
}

/* Whether a case with this statement is refused there, with these words in
 * the sentence; runs in a process of its own. */
static int lacking(const char *stmt, const char *accept, int nr, int which,
		   uint32_t value, int err, const char *words)
{
	char text[400], why[300] = "nothing";
	struct mmr_diag diag;
	struct mmr_case *c;
	int rc, status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		snprintf(
			text, sizeof(text),
			"mmrace-case 1\n\nprocess main\n  thread A\n    %s%s\n",
			stmt, accept);
		refuse(nr, which, value, err);
		if (mmr_case_parse(text, strlen(text), &c, &diag, NULL, NULL))
			_exit(3);
		rc = mmr_needs_check(c, false, why, sizeof(why));
		if (!words)
			_exit(rc == 0 ? 0 : 4);
		if (rc == -ENOTSUP && strstr(why, words))
			_exit(0);
		fprintf(stderr, "# %s: %s\n", stmt, why);
		_exit(5);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_lacking(void **state)
{
	static const struct {
		const char *stmt;
		int nr;
		const char *words;
	} calls[] = {
		{"mseal m", 462, "from 6.10 on"},
		{"mlock2 m", __NR_mlock2, "from 4.4 on"},
		{"process_madvise p m cold", 440, "from 5.10 on"},
		{"process_vm_readv p m m", __NR_process_vm_readv, "from 3.2"},
		{"process_vm_writev p m m", __NR_process_vm_writev, "3.2"},
		{"membarrier query", __NR_membarrier, "from 4.3 on"},
		{"mbind m mode=local", __NR_mbind, "from 2.6.7 on"},
		{"set_mempolicy mode=local", __NR_set_mempolicy, "2.6.7"},
		{"move_pages m", __NR_move_pages, "from 2.6.18 on"},
		{"set_mempolicy_home_node m node=0", 450, "from 5.17 on"},
		{"remap_file_pages m pgoff=0", __NR_remap_file_pages, "2.5"},
		{"memfd_create", __NR_memfd_create, "from 3.17 on"},
		{"u = userfaultfd", __NR_userfaultfd, "from 4.3 on"},
		{"uffd_read u", __NR_userfaultfd, "from 4.3 on"},
		{"uffd_copy u m from=m", __NR_userfaultfd, "from 4.3 on"},
		{"uffd_zeropage u m", __NR_userfaultfd, "from 4.3 on"},
		{"uffd_continue u m", __NR_userfaultfd, "from 4.3 on"},
		{"uffd_move u m from=m", __NR_userfaultfd, "from 4.3 on"},
		{"uffd_poison u m", __NR_userfaultfd, "from 4.3 on"},
		{"uffd_wake u m", __NR_userfaultfd, "from 4.3 on"},
		{"uffd_writeprotect u m", __NR_userfaultfd, "from 4.3 on"},
		{"uffd_unregister u m", __NR_userfaultfd, "from 4.3 on"},
		{"io_uring_setup", 425, "from 5.1 on"},
		{"io_uring_register f m", 425, "from 5.1 on"},
		{"io_uring_unregister f", 425, "from 5.1 on"},
		{"robust_own m w", __NR_process_vm_writev, "from 3.2 on"},
	};
	size_t i;
	int rc;

	(void)state;
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		rc = lacking(calls[i].stmt, "", calls[i].nr, -1, 0, ENOSYS,
			     calls[i].words);
		if (rc == 77)
			skip();
		if (rc)
			fail_msg("%s: %d", calls[i].stmt, rc);
	}
}

static void test_lacking_features(void **state)
{
	static const struct {
		const char *stmt;
		int nr, which;
		uint32_t value;
		const char *words;
	} names[] = {
		{"madvise m collapse", __NR_madvise, 2, 25,
		 "madvise collapse needs madv_collapse"},
		{"madvise m guard_remove", __NR_madvise, 2, 102, "from 6.13"},
		{"madvise m pageout", __NR_madvise, 2, 21, "from 5.4 on"},
		{"process_madvise p m cold", __NR_madvise, 2, 20, "from 5.4"},
		{"memfd_create flags=exec", __NR_memfd_create, 1, 1 | 0x10,
		 "from 6.3 on"},
		{"mremap m flags=maymove|dontunmap", __NR_mremap, 3, 1 | 4,
		 "from 5.7 on"},
		{"mbind m mode=preferred_many nodes=n0", __NR_mbind, 2, 5,
		 "from 5.15 on"},
	};
	size_t i;
	int rc;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		rc = lacking(names[i].stmt, "", names[i].nr, names[i].which,
			     names[i].value, EINVAL, names[i].words);
		if (rc == 77)
			skip();
		if (rc)
			fail_msg("%s: %d", names[i].stmt, rc);
		/* A case that counts with a refusal runs. */
		rc = lacking(names[i].stmt, " -> 0|EINVAL", names[i].nr,
			     names[i].which, names[i].value, EINVAL, NULL);
		if (rc)
			fail_msg("%s -> 0|EINVAL: %d", names[i].stmt, rc);
	}
	/* What one flag makes needless is asked for without it only. */
	assert_int_equal(lacking("u = userfaultfd", "", __NR_userfaultfd, 0,
				 O_CLOEXEC, EPERM,
				 "userfaultfd without user_mode_only needs"),
			 0);
	assert_int_equal(lacking("u = userfaultfd flags=user_mode_only", "",
				 __NR_userfaultfd, 0, O_CLOEXEC, EPERM, NULL),
			 0);
	/* Never without leave, whatever the kernel can. */
	assert_int_equal(lacking("madvise m soft_offline", "", -1, -1, 0,
				 EINVAL, "give --allow-settings"),
			 0);
	assert_int_equal(lacking("madvise m hwpoison", " -> 0|EINVAL", -1, -1,
				 0, EINVAL, "takes pages from the machine"),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lacking),
		cmocka_unit_test(test_lacking_features),
	};

	return cmocka_run_group_tests_name("ops_lack", tests, NULL, NULL);
}
