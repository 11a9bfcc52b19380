/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hooks of the planted liveness bugs (see mm/mmrace.c). */
#ifndef _LINUX_MMRACE_H
#define _LINUX_MMRACE_H
#include <linux/types.h>
#include <linux/compiler.h>

struct mm_struct;
struct vm_area_struct;
struct pt_regs;

#define MMRACE_A 0x01	/* hugetlb: synchronize_rcu() per freed page */
#define MMRACE_B 0x02	/* write fault meets a munmap: fault storm */
#define MMRACE_C 0x04	/* migration: delay per executable file mapping */
#define MMRACE_D 0x08	/* process_mrelease meets exit_mmap: exit stalls */

extern unsigned int mmrace_bug;
static inline bool mmrace_on(unsigned int bit)
{
	return unlikely(READ_ONCE(mmrace_bug) & bit);
}

void mmrace_mm_init(struct mm_struct *mm);
bool mmrace_free_waits(void);
void mmrace_unmap_begin(struct mm_struct *mm, unsigned long start, unsigned long end);
void mmrace_unmap_end(struct mm_struct *mm);
bool mmrace_fault_stuck(struct vm_area_struct *vma, unsigned long address,
			unsigned int flags);
void mmrace_migrate_pte(struct vm_area_struct *vma);
void mmrace_reap_begin(struct mm_struct *mm);
void mmrace_reap_end(struct mm_struct *mm);
void mmrace_exit_begin(struct mm_struct *mm);
void mmrace_exit_end(struct mm_struct *mm);
#endif
