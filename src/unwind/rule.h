/* SPDX-License-Identifier: MIT
 * rule.h - the packed form of a row of call frame information: 29 bits that fit beside the pc in one word of the cache.
 *
 *   63            45 44     38 37  35 34                     0
 *   [ CFA bytes 19 ][ fp words 7][ kind 3][ upper bits of the pc ]     (widths of x86-64)
 *
 * CFA bytes: distance of the CFA from its register, a multiple of 8; on top so that one shift gives it. fp words: the caller's
 * frame register is saved that many words below the CFA; 0: it was not touched. On aarch64 they have the lowest three bits of the
 * CFA bytes too, which are 0. Rows that do not fit are HP_RULE_SLOW.
 * The word 0 is no rule: as one it would say CFA = sp, which no frame has.
 * Pure. */
#ifndef HP_RULE_H
#define HP_RULE_H

#include "arch.h"
#include "cfi.h"
#include "compiler.h"

enum hp_rule_kind {
  HP_RULE_SP = 0,     /* CFA = sp + bytes */
  HP_RULE_FP = 1,     /* CFA = fp + bytes */
  HP_RULE_SP_OWN = 2, /* the same in heapprof's own text: the frame is not reported */
  HP_RULE_FP_OWN = 3,
  HP_RULE_FP_MEMORY = 4, /* CFA = *(fp - bytes), saved fp at *fp: gcc's realigned frames */
  HP_RULE_SP_MEMORY = 5, /* CFA = *(sp + bytes) + 8: OpenSSL's realigned frames */
  HP_RULE_SIGNAL = 6,    /* the kernel's signal frame */
  HP_RULE_OTHER = 7,     /* CFA bytes are one of hp_rule_other */
};

enum hp_rule_other {
  HP_RULE_END = 8,        /* outermost: the return address is undefined */
  HP_RULE_NO_DATA = 16,   /* an object, but no entry for the pc */
  HP_RULE_NO_OBJECT = 24, /* not in any object: generated code, or no code at all. Never cached */
  HP_RULE_ENTRY = 40,     /* no entry covers the pc, but a function begins right behind: see walk_rule.c */
  HP_RULE_SLOW = 32,      /* needs other registers or a general expression: slow_step.h */
};

enum {
  HP_RULE_INDEX_BITS = 12, /* of the pc: known from the place of the entry */
  HP_RULE_KIND_SHIFT = HP_PC_BITS - HP_PC_SHIFT - HP_RULE_INDEX_BITS,
  HP_RULE_FP_SHIFT = HP_RULE_KIND_SHIFT + 3,
  HP_RULE_CFA_SHIFT = 64 - HP_RULE_CFA_BITS,
  HP_RULE_FP_BITS = HP_RULE_CFA_SHIFT + HP_RULE_CFA_SHARED_BITS - HP_RULE_FP_SHIFT,
};
#define HP_RULE_TAG_MASK (((uint64_t)1 << HP_RULE_KIND_SHIFT) - 1)
#define HP_RULE_CFA_BYTES_MAX ((int64_t)1 << HP_RULE_CFA_BITS)
#define HP_RULE_FP_WORDS_MAX (((uint64_t)1 << HP_RULE_FP_BITS) - 1)

static inline unsigned hp_rule_kind(uint64_t rule) { return (unsigned)(rule >> HP_RULE_KIND_SHIFT) & 7; }
static inline uintptr_t hp_rule_cfa_bytes(uint64_t rule) {
  return rule >> HP_RULE_CFA_SHIFT & ~(((uintptr_t)1 << HP_RULE_CFA_SHARED_BITS) - 1);
}
static inline uintptr_t hp_rule_fp_words(uint64_t rule) { return (rule >> HP_RULE_FP_SHIFT) & HP_RULE_FP_WORDS_MAX; }

static inline uint64_t hp_rule_make(enum hp_rule_kind kind, uintptr_t cfa_bytes, uintptr_t fp_words) {
  return (uint64_t)cfa_bytes << HP_RULE_CFA_SHIFT | (uint64_t)fp_words << HP_RULE_FP_SHIFT |
         (uint64_t)kind << HP_RULE_KIND_SHIFT;
}
static inline uint64_t hp_rule_make_other(enum hp_rule_other other) { return hp_rule_make(HP_RULE_OTHER, other, 0); }

/* The rule (tag bits 0) of a row found in `tables` for a frame at pc; HP_RULE_SLOW when it does not fit. */
uint64_t hp_rule_from_row(const struct hp_cfi_tables *tables, const struct hp_cfi_row *row, uintptr_t pc);

#endif
