#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Put the planted liveness bugs into an unpacked kernel tree (6.1 or 6.12).

usage: apply.py TREE [--check]

Every edit names a file, a function (or None for the whole file), a text that
must occur there exactly once, and what replaces it. An edit already made is
left alone, so the script can run again. It stops at the first anchor that is
missing, before it has written anything.
"""
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INC = "#include <linux/mmrace.h>\n"


def version(tree):
    text = open(os.path.join(tree, "Makefile")).read()
    return tuple(int(re.search(r"^%s = (\d+)" % k, text, re.M).group(1))
                 for k in ("VERSION", "PATCHLEVEL"))


def edits(ver):
    new = ver >= (6, 7)          # batched hugetlb restore, mm/vma.c later
    e = []

    def add(path, func, old, text):
        e.append((path, func, old, text))

    def include(path, after):
        add(path, None, after, after + INC)

    # --- state in mm_struct
    add("include/linux/mm_types.h", None,
        "#define _LINUX_MM_TYPES_H\n",
        "#define _LINUX_MM_TYPES_H\n\n#include <linux/mmrace_types.h>\n")
    add("include/linux/mm_types.h", None,
        "\t} __randomize_layout;\n\n\t/*\n\t * The mm_cpumask needs",
        "\t\tstruct mmrace_mm mmrace;\n"
        "\t} __randomize_layout;\n\n\t/*\n\t * The mm_cpumask needs")
    include("kernel/fork.c", "#include <linux/mm.h>\n")
    add("kernel/fork.c", "mm_init",
        "\tmm_init_uprobes_state(mm);\n",
        "\tmm_init_uprobes_state(mm);\n\tmmrace_mm_init(mm);\n")
    add("mm/Makefile", None, "obj-y += init-mm.o\n", "obj-y += init-mm.o\nobj-y += mmrace.o\n")

    # --- a: a grace period per freed huge page, HVO or not
    include("mm/hugetlb_vmemmap.c", "#include <linux/pgtable.h>\n")
    if new:
        add("mm/hugetlb_vmemmap.c", "hugetlb_vmemmap_restore_folios",
            "\t\tif (folio_test_hugetlb_vmemmap_optimized(folio)) {\n",
            "\t\tif (mmrace_free_waits())\n\t\t\tsynchronize_rcu();\n"
            "\t\tif (folio_test_hugetlb_vmemmap_optimized(folio)) {\n")
    else:
        add("mm/hugetlb_vmemmap.c", "hugetlb_vmemmap_restore",
            "\tif (!HPageVmemmapOptimized(head))\n",
            "\tif (mmrace_free_waits())\n\t\tsynchronize_rcu();\n"
            "\tif (!HPageVmemmapOptimized(head))\n")

    # --- b: munmap under the downgraded lock; the fault that meets it
    include("mm/memory.c", "#include <linux/mm.h>\n")
    add("mm/memory.c", "handle_mm_fault",
        "\tif (unlikely(is_vm_hugetlb_page(vma)))\n",
        "\tif (unlikely(mmrace_fault_stuck(vma, address, flags)))\n\t\tret = 0;\n"
        "\telse if (unlikely(is_vm_hugetlb_page(vma)))\n")
    if new:
        include("mm/vma.c", '#include "vma_internal.h"\n')
        add("mm/vma.c", "vms_complete_munmap_vmas",
            "\tvms_clear_ptes(vms, mas_detach, !vms->unlock);\n",
            "\tif (vms->unlock)\n\t\tmmrace_unmap_begin(mm, vms->start, vms->end);\n"
            "\tvms_clear_ptes(vms, mas_detach, !vms->unlock);\n"
            "\tif (vms->unlock)\n\t\tmmrace_unmap_end(mm);\n")
    else:
        add("mm/mmap.c", "do_mas_align_munmap",
            "\tunmap_region(mm, &mt_detach, vma, prev, next, start, end);\n",
            "\tif (downgrade)\n\t\tmmrace_unmap_begin(mm, start, end);\n"
            "\tunmap_region(mm, &mt_detach, vma, prev, next, start, end);\n"
            "\tif (downgrade)\n\t\tmmrace_unmap_end(mm);\n")

    # --- c: a delay for each executable file mapping put back
    include("mm/migrate.c", "#include <linux/migrate.h>\n")
    add("mm/migrate.c", "remove_migration_pte",
        "\t\tif (vma->vm_flags & VM_LOCKED)\n",
        "\t\tmmrace_migrate_pte(vma);\n\t\tif (vma->vm_flags & VM_LOCKED)\n")

    # --- d: process_mrelease() and exit_mmap() at once
    include("mm/oom_kill.c", "#include <linux/oom.h>\n")
    add("mm/oom_kill.c", "process_mrelease",
        "\tif (!test_bit(MMF_OOM_SKIP, &mm->flags) && !__oom_reap_task_mm(mm))\n"
        "\t\tret = -EAGAIN;\n",
        "\tmmrace_reap_begin(mm);\n"
        "\tif (!test_bit(MMF_OOM_SKIP, &mm->flags) && !__oom_reap_task_mm(mm))\n"
        "\t\tret = -EAGAIN;\n"
        "\tmmrace_reap_end(mm);\n")
    include("mm/mmap.c", "#include <linux/mm.h>\n")
    add("mm/mmap.c", "exit_mmap",
        "\tlru_add_drain();\n",
        "\tmmrace_exit_begin(mm);\n\tlru_add_drain();\n")
    add("mm/mmap.c", "exit_mmap",
        "\tset_bit(MMF_OOM_SKIP, &mm->flags);\n",
        "\tset_bit(MMF_OOM_SKIP, &mm->flags);\n\tmmrace_exit_end(mm);\n")
    return e


def span(text, func):
    """Start and end of the body of the function whose definition names func."""
    if func is None:
        return 0, len(text)
    for m in re.finditer(r"^(?=\S)[^;{}#/]*\b%s\b[^;{}]*\)\n?[^;{}]*\{" % re.escape(func),
                         text, re.M):
        end = text.find("\n}", m.end())
        return m.start(), end + 2
    raise SystemExit("apply: no function %s" % func)


def main():
    args = [a for a in sys.argv[1:] if a != "--check"]
    if len(args) != 1:
        raise SystemExit(__doc__)
    tree, files, made = args[0], {}, 0
    ver = version(tree)
    for path, func, old, new in edits(ver):
        text = files.get(path)
        if text is None:
            text = open(os.path.join(tree, path)).read()
        # syscalls are defined by a macro, not by a plain function header
        if func == "process_mrelease":
            lo = text.index("SYSCALL_DEFINE2(process_mrelease")
            hi = text.index("\n}", lo) + 2
        else:
            lo, hi = span(text, func)
        body = text[lo:hi]
        if new in body:
            files[path] = text
            continue
        n = body.count(old)
        if n != 1:
            raise SystemExit("apply: %s: %s: anchor found %d times:\n%s" % (path, func, n, old))
        files[path] = text[:lo] + body.replace(old, new) + text[hi:]
        made += 1
    if "--check" in sys.argv:
        print("apply: %d.%d: all anchors found, %d edits to make" % (ver + (made,)))
        return
    for path, text in files.items():
        full = os.path.join(tree, path)
        if open(full).read() != text:
            open(full, "w").write(text)
    for src, dst in (("mmrace.c", "mm/mmrace.c"),
                     ("mmrace.h", "include/linux/mmrace.h"),
                     ("mmrace_types.h", "include/linux/mmrace_types.h")):
        full = os.path.join(tree, dst)
        want = open(os.path.join(HERE, src)).read()
        if not os.path.exists(full) or open(full).read() != want:
            shutil.copyfile(os.path.join(HERE, src), full)
    print("apply: %d.%d: %d edits made" % (ver + (made,)))


main()
