/* SPDX-License-Identifier: MIT
 * rule.h - the packed form of a row of call frame information: 29 bits that fit beside the pc in one word of the cache.
 *
 *   63           48 47       39 38    35 34                     0
 *   [ CFA words 16 ][ fp words 9][ kind 4][ upper bits of the pc  ]     (widths of x86-64)
 *
 * CFA words: distance of the CFA from its register in words. fp words: the caller's frame register is saved that many words
 * below the CFA; 0: it was not touched. Rows that do not fit are HP_RULE_SLOW.
 * Pure. */
#ifndef HP_RULE_H
#define HP_RULE_H

#include "arch.h"
#include "cfi.h"
#include "compiler.h"

enum hp_rule_kind {
  HP_RULE_SP = 0,        /* CFA = sp + words */
  HP_RULE_FP = 1,        /* CFA = fp + words */
  HP_RULE_SP_OWN = 2,    /* the same in heapprof's own text: the frame is not reported */
  HP_RULE_FP_OWN = 3,
  HP_RULE_FP_MEMORY = 4, /* CFA = *(fp - words), saved fp at *fp: gcc's realigned frames */
  HP_RULE_SP_MEMORY = 5, /* CFA = *(sp + words) + 8, fp untouched: OpenSSL's realigned frames */
  HP_RULE_SIGNAL = 6,    /* the kernel's signal frame */
  HP_RULE_END = 7,       /* outermost: the return address is undefined */
  HP_RULE_NO_DATA = 8,   /* an object, but no entry for the pc */
  HP_RULE_SLOW = 9,      /* needs other registers or a general expression: slow_step.h */
};

enum {
  HP_RULE_TAG_SHIFT = 12, /* the pc's lower bits are the index */
  HP_RULE_TAG_BITS = HP_PC_BITS - HP_PC_SHIFT - HP_RULE_TAG_SHIFT,
  HP_RULE_KIND_SHIFT = HP_RULE_TAG_BITS,
  HP_RULE_FP_SHIFT = HP_RULE_KIND_SHIFT + 4,
  HP_RULE_CFA_SHIFT = HP_RULE_FP_SHIFT + (64 - HP_RULE_FP_SHIFT - 16 > 12 ? 12 : 64 - HP_RULE_FP_SHIFT - 16),
};
#define HP_RULE_TAG_MASK (((uint64_t)1 << HP_RULE_TAG_BITS) - 1)
#define HP_RULE_CFA_WORDS_MAX (((uintptr_t)1 << (64 - HP_RULE_CFA_SHIFT)) - 1)
#define HP_RULE_FP_WORDS_MAX (((uintptr_t)1 << (HP_RULE_CFA_SHIFT - HP_RULE_FP_SHIFT)) - 1)

static inline unsigned hp_rule_kind(uint64_t rule) { return (unsigned)(rule >> HP_RULE_KIND_SHIFT) & 15; }
static inline uintptr_t hp_rule_cfa_words(uint64_t rule) { return rule >> HP_RULE_CFA_SHIFT; }
static inline uintptr_t hp_rule_fp_words(uint64_t rule) { return (rule >> HP_RULE_FP_SHIFT) & HP_RULE_FP_WORDS_MAX; }

static inline uint64_t hp_rule_make(enum hp_rule_kind kind, uintptr_t cfa_words, uintptr_t fp_words) {
  return (uint64_t)cfa_words << HP_RULE_CFA_SHIFT | (uint64_t)fp_words << HP_RULE_FP_SHIFT |
         (uint64_t)kind << HP_RULE_KIND_SHIFT;
}

/* The rule (tag bits 0) of a row found in `tables` for a frame at pc; HP_RULE_SLOW when it does not fit. */
uint64_t hp_rule_from_row(const struct hp_cfi_tables *tables, const struct hp_cfi_row *row, uintptr_t pc);

#endif
