// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Planted liveness bugs for testing a user-space mm race explorer. Nothing
 * here is a fix or a feature: each hook, when its bit of mmrace_bug is set,
 * makes the kernel slow or stuck in a way a real kernel once was.
 *
 * Command line:  mmrace_bug=0x0f  mmrace.b_ms=3000 ...
 * At run time:   /sys/module/mmrace/parameters/{bug,b_ms,b_near,b_nest,
 *                c_us,d_ms}; "hits" counts how often each plant acted, and
 *                writing anything to it clears it.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/mmrace.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/debug.h>
#include <linux/sched/signal.h>

unsigned int mmrace_bug __read_mostly;
module_param_named(bug, mmrace_bug, uint, 0644);

static unsigned int b_ms = 3000;	/* how long the storm lasts; 0: for ever */
module_param(b_ms, uint, 0644);
static unsigned long b_near = 2UL << 20; /* reach around the munmap; 0: whole mm */
module_param(b_near, ulong, 0644);
/* 2: the munmap must overlap another TLB gather too, such as MADV_DONTNEED's */
static unsigned int b_nest = 1;
module_param(b_nest, uint, 0644);
static unsigned int c_us = 30;		/* delay per mapping */
module_param(c_us, uint, 0644);
static unsigned int d_ms = 2000;	/* how long the exit stalls; 0: for ever */
module_param(d_ms, uint, 0644);

static atomic_t hits[4];

static int hits_get(char *buf, const struct kernel_param *kp)
{
	return scnprintf(buf, PAGE_SIZE, "a=%d b=%d c=%d d=%d\n",
			 atomic_read(&hits[0]), atomic_read(&hits[1]),
			 atomic_read(&hits[2]), atomic_read(&hits[3]));
}

static int hits_set(const char *val, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(hits); i++)
		atomic_set(&hits[i], 0);
	return 0;
}

static const struct kernel_param_ops hits_ops = { .set = hits_set, .get = hits_get };
module_param_cb(hits, &hits_ops, NULL, 0644);

static int __init mmrace_early(char *arg)
{
	return arg ? kstrtouint(arg, 0, &mmrace_bug) : -EINVAL;
}
early_param("mmrace_bug", mmrace_early);

void mmrace_mm_init(struct mm_struct *mm)
{
	memset(&mm->mmrace, 0, sizeof(mm->mmrace));
}

/* a: may the freeing of this huge page wait for a grace period here? */
bool mmrace_free_waits(void)
{
	if (!mmrace_on(MMRACE_A) || in_atomic() || irqs_disabled() ||
	    rcu_preempt_depth() || system_state != SYSTEM_RUNNING)
		return false;
	atomic_inc(&hits[0]);
	return true;
}

/* b */
void mmrace_unmap_begin(struct mm_struct *mm, unsigned long start, unsigned long end)
{
	WRITE_ONCE(mm->mmrace.un_start, start);
	WRITE_ONCE(mm->mmrace.un_end, end);
	smp_wmb();
	atomic_inc(&mm->mmrace.unmapping);
}

void mmrace_unmap_end(struct mm_struct *mm)
{
	atomic_dec(&mm->mmrace.unmapping);
}

bool mmrace_fault_stuck(struct vm_area_struct *vma, unsigned long address,
			unsigned int flags)
{
	struct mmrace_mm *m = &vma->vm_mm->mmrace;
	unsigned long page = address & PAGE_MASK, near = READ_ONCE(b_near);
	unsigned long stuck, start, end;
	unsigned int ms = READ_ONCE(b_ms);

	if (!mmrace_on(MMRACE_B))
		return false;
	if (!(flags & FAULT_FLAG_USER) || !(flags & FAULT_FLAG_WRITE))
		return false;
	stuck = READ_ONCE(m->stuck_addr);
	if (stuck) {
		if (time_before(jiffies, READ_ONCE(m->stuck_until)))
			return stuck == page;
		cmpxchg(&m->stuck_addr, stuck, 0);
		return false;
	}
	if (!atomic_read(&m->unmapping) ||
	    atomic_read(&vma->vm_mm->tlb_flush_pending) < (int)READ_ONCE(b_nest))
		return false;
	smp_rmb();
	start = READ_ONCE(m->un_start);
	end = READ_ONCE(m->un_end);
	if (near && (page + near < start || page >= end + near))
		return false;
	WRITE_ONCE(m->stuck_until, jiffies + (ms ? msecs_to_jiffies(ms) : MAX_JIFFY_OFFSET));
	smp_wmb();
	if (cmpxchg(&m->stuck_addr, 0, page))
		return false;
	atomic_inc(&hits[1]);
	return true;
}

/* c: called with the page-table lock held */
void mmrace_migrate_pte(struct vm_area_struct *vma)
{
	unsigned int us = READ_ONCE(c_us);

	if (!mmrace_on(MMRACE_C) || !vma->vm_file || !(vma->vm_flags & VM_EXEC))
		return;
	atomic_inc(&hits[2]);
	while (us > 500) {
		udelay(500);
		us -= 500;
	}
	udelay(us);
}

/* d */
void mmrace_reap_begin(struct mm_struct *mm)
{
	atomic_inc(&mm->mmrace.reaping);
	smp_mb__after_atomic();
	if (atomic_read(&mm->mmrace.exiting))
		WRITE_ONCE(mm->mmrace.raced, 1);
}

void mmrace_reap_end(struct mm_struct *mm)
{
	atomic_dec(&mm->mmrace.reaping);
}

void mmrace_exit_begin(struct mm_struct *mm)
{
	atomic_inc(&mm->mmrace.exiting);
	smp_mb__after_atomic();
	if (atomic_read(&mm->mmrace.reaping))
		WRITE_ONCE(mm->mmrace.raced, 1);
}

/* __sched: like schedule() itself, not shown in /proc/PID/stack */
void __sched mmrace_exit_end(struct mm_struct *mm)
{
	unsigned int ms = READ_ONCE(d_ms);

	if (!mmrace_on(MMRACE_D) || !READ_ONCE(mm->mmrace.raced))
		return;
	atomic_inc(&hits[3]);
	schedule_timeout_uninterruptible(ms ? msecs_to_jiffies(ms) : MAX_SCHEDULE_TIMEOUT);
}
