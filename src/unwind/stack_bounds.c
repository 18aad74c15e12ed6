/* SPDX-License-Identifier: MIT
 * stack_bounds.c - see stack_bounds.h. */
#include "stack_bounds.h"

#include "sys.h"

enum {
  HP_STACK_PAGE = 4096,                  /* larger pages are probed more often than needed */
  HP_STACK_MAIN_LEARN_MAX = 8 << 20,     /* bytes probed at most to know a sp as the main thread's own */
  HP_STACK_REFUSALS_A_LOOK = 1024,       /* pages may have come since */
  HP_STACK_DESCRIPTOR_GAP_MAX = 1 << 16, /* the descriptor ends this close to the end of its stack */
};

__thread struct hp_stack_own hp_stack_own_tls HP_TLS;

/* The end of the main thread's stack; the loader's. Weak: other loaders have none, then every stack is a foreign one. */
extern void *__libc_stack_end __attribute__((weak));

/* 0: not tried; 1: the system call tells readable from unreadable; 2: it does not (an emulator that checks in another
 * order): then nothing but the thread's own stack is read. */
static uint32_t probe_state;

/* Where in the descriptor the stack's address lies, as distance from the thread pointer; 0: not known yet. */
static int32_t descriptor_offset;

static bool probe_once(uintptr_t address) {
  enum { NONSENSE_HOW = 0x48505246, INVALID_ARGUMENT = -22 };
  return hp_sys_sigprocmask(NONSENSE_HOW, (const uint64_t *)address, NULL) == INVALID_ARGUMENT;
}

bool hp_stack_probe(uintptr_t address) {
  uint32_t state = hp_load_relaxed(&probe_state);
  if (HP_UNLIKELY(state == 0)) {
    const uint64_t readable = 0;
    state = probe_once((uintptr_t)&readable) && !probe_once(sizeof(uintptr_t)) ? 1 : 2;
    hp_store_relaxed(&probe_state, state);
  }
  return state == 1 && address != 0 && probe_once(address);
}

static uintptr_t page_of(uintptr_t address) { return address & ~(uintptr_t)(HP_STACK_PAGE - 1); }

bool hp_stack_probe_range(uintptr_t start, size_t bytes) {
  uintptr_t at = start & ~(sizeof(uintptr_t) - 1), end = start + bytes;
  if (end < at) return false;
  for (; at < end; at = page_of(at) + HP_STACK_PAGE) {
    if (!hp_stack_probe(at)) return false;
  }
  return true;
}

bool hp_stack_cover(struct hp_stack_range *range, uintptr_t address) {
  if (address % sizeof(uintptr_t) != 0) return false;
  if (hp_stack_covers(range, address)) return true;
  uintptr_t page = page_of(address);
  if (!hp_stack_probe(address)) return false;
  if (page == range->hi) {
    range->hi = page + HP_STACK_PAGE;
  } else if (page + HP_STACK_PAGE == range->lo) {
    range->lo = page;
  } else {
    *range = (struct hp_stack_range){.lo = page, .hi = page + HP_STACK_PAGE};
  }
  return true;
}

/* Do the words at `at` describe a stack block (address, size) that holds the thread pointer near its end? */
static bool is_stack_block(const uintptr_t *at, uintptr_t tp) {
  uintptr_t block = at[0];
  uintptr_t size = at[1];
  return block != 0 && block % 16 == 0 && block < tp && size < (uintptr_t)1 << 46 && block + size >= tp &&
         block + size - tp <= HP_STACK_DESCRIPTOR_GAP_MAX;
}

enum descriptor_answer { DESCRIPTOR_HAS_NONE, DESCRIPTOR_HAS_ANOTHER, DESCRIPTOR_HAS_STACK };

/* The stack block of a pthread, from glibc's thread descriptor: it is found by its content, because its place differs from
 * version to version; the main thread's descriptor has address 0 there. Other words may look like one by chance (a pointer
 * just below the descriptor and a small number), in the main thread's too: it must hold sp. The descriptor is the thread's own
 * memory. */
static enum descriptor_answer find_descriptor_stack(uintptr_t sp, struct hp_stack_range *out) {
  uintptr_t tp = hp_arch_thread_pointer();
  int32_t known = hp_load_relaxed(&descriptor_offset);
  const uintptr_t *first = (const uintptr_t *)(tp - HP_DESCRIPTOR_BEFORE_BYTES);
  const uintptr_t *end = (const uintptr_t *)(tp + HP_DESCRIPTOR_AFTER_BYTES) - 2;
  if (known != 0) {
    first = (const uintptr_t *)(tp + (uintptr_t)(intptr_t)known);
    end = first + 1;
  }
  enum descriptor_answer answer = DESCRIPTOR_HAS_NONE;
  for (const uintptr_t *at = first; at < end; at++) {
    if ((uintptr_t)at == tp || !is_stack_block(at, tp)) continue;
    answer = DESCRIPTOR_HAS_ANOTHER;
    if (sp < at[0] || sp >= tp) continue;
    hp_store_relaxed(&descriptor_offset, (int32_t)((uintptr_t)at - tp));
    /* Up to the descriptor: frames of the thread lie below it. */
    *out = (struct hp_stack_range){.lo = at[0], .hi = tp - HP_DESCRIPTOR_BEFORE_BYTES};
    return DESCRIPTOR_HAS_STACK;
  }
  return answer;
}

/* Is sp on the main thread's stack? Then every page from sp's up to what is known, or to the end, can be read: the kernel
 * keeps a gap between that stack and any other mapping. */
static bool learn_main_stack(uintptr_t sp, struct hp_stack_own *own) {
  if (&__libc_stack_end == NULL || __libc_stack_end == NULL) return false;
  uintptr_t top = page_of((uintptr_t)__libc_stack_end) + HP_STACK_PAGE;
  uintptr_t known = own->range.hi != 0 ? own->range.lo : top;
  uintptr_t page = page_of(sp);
  if (page >= known || (sp < own->foreign_below && ++own->refusals % HP_STACK_REFUSALS_A_LOOK != 0)) return false;
  if (known - page > HP_STACK_MAIN_LEARN_MAX) {
    own->foreign_below = known - HP_STACK_MAIN_LEARN_MAX;
    return false;
  }
  for (uintptr_t at = page; at < known; at += HP_STACK_PAGE) {
    if (!hp_stack_probe(at)) {
      own->foreign_below = at;
      return false;
    }
  }
  own->range = (struct hp_stack_range){.lo = page, .hi = top};
  return true;
}

static bool is_inside(const struct hp_stack_own *own, uintptr_t sp) {
  return sp - own->range.lo < own->range.hi - own->range.lo;
}

/* A thread whose first walks begin on a stack made elsewhere is asked again. */
static void learn_kind(uintptr_t sp, struct hp_stack_own *own) {
  enum descriptor_answer answer = find_descriptor_stack(sp, &own->range);
  if (answer == DESCRIPTOR_HAS_STACK) {
    own->kind = HP_STACK_PTHREAD;
  } else if (answer == DESCRIPTOR_HAS_NONE || learn_main_stack(sp, own)) {
    own->kind = HP_STACK_MAIN;
  }
}

/* Is this place, where a frame of the thread is or is said to be, on its own stack? */
static bool is_own(uintptr_t sp, struct hp_stack_own *own) {
  if (own->kind == HP_STACK_UNKNOWN) learn_kind(sp, own);
  return is_inside(own, sp) || (own->kind == HP_STACK_MAIN && learn_main_stack(sp, own));
}

void hp_stack_enter_slow(uintptr_t sp, struct hp_stack_range *out) {
  struct hp_stack_own *own = &hp_stack_own_tls;
  *out = (struct hp_stack_range){.lo = sp, .hi = is_own(sp, own) ? own->range.hi : sp};
}

void hp_stack_enter_jump(uintptr_t sp, struct hp_stack_range *out) {
  struct hp_stack_own *own = &hp_stack_own_tls;
  bool is_trusted = is_own(sp, own) && hp_stack_probe(sp & ~(sizeof(uintptr_t) - 1));
  *out = (struct hp_stack_range){.lo = sp, .hi = is_trusted ? own->range.hi : sp};
}

bool hp_stack_is_way_home(uintptr_t sp, uintptr_t target) {
  struct hp_stack_own *own = &hp_stack_own_tls;
  return !is_inside(own, sp) && is_own(target, own);
}
