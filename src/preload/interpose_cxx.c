/* SPDX-License-Identifier: MIT
 * interpose_cxx.c - every replaceable operator new and delete.
 *
 * The next one may end in the next malloc (libstdc++, libc++), which is ours again and samples there: then this one only
 * forwards. Or it may be the allocator's own (jemalloc, tcmalloc, mimalloc): then it is sampled here. Which of the two is
 * found out by trying, at the first call of each: does a call of the next one come back into our C functions? A runtime that
 * was opened by dlopen with RTLD_LOCAL is not behind RTLD_NEXT; it is looked up in the scope of the caller, when that calls. (The exported
 * ones have no header: nobody calls them.) */
#include "interpose_cxx.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include "hot.h"
#include "interpose_by_name.h"
#include "loader_calls.h"
#include "next_malloc.h"
#include "sampled_path.h"
#include "sampler.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the compiler's own names */

/* Before the answer is known / it ends in malloc / it is the allocator's own. */
enum route { ROUTE_UNKNOWN, ROUTE_FORWARD, ROUTE_SAMPLE };

/* ---- finding the next one ---- */

/* In the object that called us, or what it depends on. The reference is kept: the runtime must not go while we point into
 * it. */
static void *find_in_scope_of(const char *name, void *caller) {
  Dl_info info;
  if (hp_loader.dladdr(caller, &info) == 0 || info.dli_fname == NULL) return NULL;
  void *handle = hp_loader.dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) return NULL;
  void *found = hp_loader.dlsym(handle, name);
  Dl_info found_info;
  if (found != NULL && hp_loader.dladdr(found, &found_info) != 0)
    hp_loader.dlopen(found_info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  hp_next.dlclose(handle);
  return found;
}

static bool is_ours(const void *function) {
  Dl_info theirs, mine;
  return hp_loader.dladdr(function, &theirs) != 0 && hp_loader.dladdr(&hp_hot, &mine) != 0 &&
         theirs.dli_fbase == mine.dli_fbase;
}

static void *find_operator(const char *name, void *caller) {
  void *found = hp_next_find(name);
  if (found == NULL) {
    found = find_in_scope_of(name, caller);
    hp_loader.dlerror();
  }
  return found != NULL && !is_ours(found) ? found : NULL;
}

/* No C++ runtime at all: malloc's answer, and what an uncaught bad_alloc would end in. */
static HP_COLD void *new_without_runtime(size_t size, size_t alignment, bool may_fail) {
  void *ptr = alignment > 16 ? hp_next.memalign(alignment, size) : hp_hot.real_malloc(size == 0 ? 1 : size);
  if (ptr == NULL && !may_fail) abort();
  return ptr;
}

/* ---- trying whether it ends in malloc ---- */

/* Countdown bytes spent, or a draw made: something of ours was called. The gap is put back: a probe is no allocation of the
 * program. */
enum { PROBE_SIZE = 64, PROBE_ALIGNMENT = 64, PROBE_LEFT = 1 << 20 };
struct gap {
  uint64_t left, epoch;
};

static struct gap begin_probe(void) {
  struct gap kept = {hp_thread.bytes_left, hp_thread.rate_epoch};
  hp_thread.bytes_left = PROBE_LEFT;
  hp_thread.rate_epoch = hp_load_relaxed(&hp_hot.rate_epoch);
  return kept;
}

static enum route end_probe(struct gap kept) {
  bool ends_in_malloc = hp_thread.bytes_left != PROBE_LEFT;
  hp_thread.bytes_left = kept.left;
  hp_thread.rate_epoch = kept.epoch;
  return ends_in_malloc ? ROUTE_FORWARD : ROUTE_SAMPLE;
}

/* Does the program's plain new come to us? If it has one of its own, which no malloc stands behind, the runtime's other forms end
 * there too: memory that is not of malloc's family, and may go by a delete that is not ours either. Found out by calling it, if ours
 * was never called. Whoever asks in the meantime gets yes. */
static enum route route_new;
static bool is_plain_new_ours(void) {
  enum { NOT_ASKED, OURS, NOT_OURS };
  static uint32_t answer; /* atomic */
  uint32_t known = NOT_ASKED;
  if (!__atomic_compare_exchange_n(&answer, &known, OURS, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return known == OURS;
  if (hp_load_acquire(&route_new) != ROUTE_UNKNOWN) return true;
  struct gap kept = begin_probe();
  void *block = hp_by_name_new(PROBE_SIZE);
  end_probe(kept);
  bool is_ours = hp_load_acquire(&route_new) != ROUTE_UNKNOWN;
  hp_by_name_delete(block);
  if (!is_ours) hp_store_relaxed(&answer, NOT_OURS);
  return is_ours;
}

/* Some form of new is sampled here: what it made may go by a delete that does not end in free. Elsewhere no delete says that a block has
 * gone: the runtime's end in the program's own delete, where there is one, and that may keep it. Atomic. */
static bool is_new_sampled;

/* The extent of the runtime's function: of its unwind data, or, where those are not found for nothing, of the loader's symbol. */
static void note_forwarder(const void *function) {
  Dl_info info;
  const ElfW(Sym) *symbol = NULL;
  uintptr_t start = (uintptr_t)function, end;
  if (hp_unwind_find_function(start, &start, &end)) {
    hp_sampled_add_forwarder(start, end);
  } else if (hp_loader.dladdr1 != NULL /* musl has none */ &&
             hp_loader.dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol != NULL) {
    hp_sampled_add_forwarder(start, start + symbol->st_size);
  }
}

/* ---- the eight forms of new ----
 * id        names the pointer and the functions of this form
 * symbol    its linker name
 * params    after the size, args the same as arguments, align its alignment, nothrow whether it may return NULL
 * give_back the call that returns the probe's block. Only when the route is known: a delete may call new (tcmalloc's debugging
 *           one does, under a lock of its own) */
#define NOTHING
#define DEFINE_NEW(id, symbol, params, args, probe_args, align, may_fail, give_back)                    \
  static void *(*next_##id)(size_t params);                                                             \
  static enum route route_##id;                                                                         \
  static HP_COLD enum route resolve_##id(void *caller) {                                                \
    hp_next_resolve_all();                                                                              \
    void *(*found)(size_t params) = hp_load_acquire(&next_##id);                                        \
    if (found == NULL) found = (void *(*)(size_t params))find_operator(#symbol, caller);                \
    if (found == NULL) return ROUTE_UNKNOWN;                                                            \
    hp_store_release(&next_##id, found);                                                                \
    struct gap kept = begin_probe();                                                                    \
    void *block = found(PROBE_SIZE probe_args);                                                         \
    enum route route = end_probe(kept);                                                                 \
    if (route == ROUTE_SAMPLE && !is_plain_new_ours()) route = ROUTE_FORWARD;                           \
    if (route == ROUTE_FORWARD) note_forwarder((const void *)found);                                    \
    if (route == ROUTE_SAMPLE) hp_store_relaxed(&is_new_sampled, true);                                 \
    hp_store_release(&route_##id, route);                                                               \
    give_back;                                                                                          \
    return route;                                                                                       \
  }                                                                                                     \
  static HP_NOINLINE void *sampled_##id(size_t size params) {                                           \
    struct hp_frame_start start = HP_FRAME_START();                                                     \
    float weight = hp_sampled_decide(size);                                                             \
    void *ptr = next_##id(size args);                                                                   \
    if (weight != 0) hp_sampled_record(ptr, size, weight, &start);                                      \
    return ptr;                                                                                         \
  }                                                                                                     \
  static HP_COLD void *first_##id(size_t size params, void *caller) {                                   \
    enum route route = resolve_##id(caller);                                                            \
    if (route == ROUTE_UNKNOWN) return new_without_runtime(size, align, may_fail);                      \
    hp_thread.new_size = size;                                                                          \
    if (route == ROUTE_FORWARD || hp_sampler_passes(size)) return next_##id(size args);                 \
    return sampled_##id(size args);                                                                     \
  }                                                                                                     \
  HP_EXPORT HP_HOT_CODE void *symbol(size_t size params) {                                              \
    enum route route = hp_load_acquire(&route_##id);                                                    \
    if (HP_LIKELY(route == ROUTE_FORWARD)) {                                                            \
      hp_thread.new_size = size;                                                                        \
      return next_##id(size args);                                                                      \
    }                                                                                                   \
    if (HP_UNLIKELY(route == ROUTE_UNKNOWN)) return first_##id(size args, __builtin_return_address(0)); \
    if (HP_LIKELY(hp_sampler_passes(size))) return next_##id(size args);                                \
    return sampled_##id(size args);                                                                     \
  }

/* std::nothrow is an empty object passed by reference; any address does. */
static const char nothrow_tag;
#define COMMA_TAG , const void *tag
#define COMMA_TAG_ARG , tag
#define COMMA_TAG_PROBE , &nothrow_tag
#define COMMA_ALIGN , size_t alignment
#define COMMA_ALIGN_ARG , alignment
#define COMMA_ALIGN_PROBE , PROBE_ALIGNMENT
#define COMMA_BOTH , size_t alignment, const void *tag
#define COMMA_BOTH_ARG , alignment, tag
#define COMMA_BOTH_PROBE , PROBE_ALIGNMENT, &nothrow_tag

DEFINE_NEW(new, _Znwm, NOTHING, NOTHING, NOTHING, 0, false, hp_by_name_delete(block))
DEFINE_NEW(new_array, _Znam, NOTHING, NOTHING, NOTHING, 0, false, hp_by_name_delete_array(block))
DEFINE_NEW(new_nothrow, _ZnwmRKSt9nothrow_t, COMMA_TAG, COMMA_TAG_ARG, COMMA_TAG_PROBE, 0, true, hp_by_name_delete(block))
DEFINE_NEW(new_array_nothrow, _ZnamRKSt9nothrow_t, COMMA_TAG, COMMA_TAG_ARG, COMMA_TAG_PROBE, 0, true,
           hp_by_name_delete_array(block))
DEFINE_NEW(new_aligned, _ZnwmSt11align_val_t, COMMA_ALIGN, COMMA_ALIGN_ARG, COMMA_ALIGN_PROBE, alignment, false,
           hp_by_name_delete_aligned(block, PROBE_ALIGNMENT))
DEFINE_NEW(new_array_aligned, _ZnamSt11align_val_t, COMMA_ALIGN, COMMA_ALIGN_ARG, COMMA_ALIGN_PROBE, alignment, false,
           hp_by_name_delete_array_aligned(block, PROBE_ALIGNMENT))
DEFINE_NEW(new_aligned_nothrow, _ZnwmSt11align_val_tRKSt9nothrow_t, COMMA_BOTH, COMMA_BOTH_ARG, COMMA_BOTH_PROBE, alignment,
           true, hp_by_name_delete_aligned(block, PROBE_ALIGNMENT))
DEFINE_NEW(new_array_aligned_nothrow, _ZnamSt11align_val_tRKSt9nothrow_t, COMMA_BOTH, COMMA_BOTH_ARG, COMMA_BOTH_PROBE,
           alignment, true, hp_by_name_delete_array_aligned(block, PROBE_ALIGNMENT))

/* ---- the twelve forms of delete: take the record out, unless free does, then the next one ---- */
#define DEFINE_DELETE(id, symbol, params, args)                                              \
  static void (*next_##id)(void *params);                                                    \
  static HP_COLD void first_##id(void *ptr params, void *caller) {                           \
    hp_next_resolve_all();                                                                   \
    void (*found)(void *params) = (void (*)(void *params))find_operator(#symbol, caller);    \
    if (found == NULL) {                                                                     \
      if (hp_filter_may_hold(ptr)) hp_sampled_forget(ptr);                                   \
      hp_hot.real_free(ptr);                                                                 \
      return;                                                                                \
    }                                                                                        \
    hp_store_release(&next_##id, found);                                                     \
    found(ptr args);                                                                         \
  }                                                                                          \
  HP_EXPORT HP_HOT_CODE void symbol(void *ptr params) {                                      \
    if (hp_filter_may_hold(ptr) && hp_load_relaxed(&is_new_sampled)) hp_sampled_forget(ptr); \
    void (*next)(void *params) = hp_load_acquire(&next_##id);                                \
    if (HP_LIKELY(next != NULL)) {                                                           \
      next(ptr args);                                                                        \
      return;                                                                                \
    }                                                                                        \
    first_##id(ptr args, __builtin_return_address(0));                                       \
  }

#define COMMA_SIZE , size_t size
#define COMMA_SIZE_ARG , size
#define COMMA_SIZE_ALIGN , size_t size, size_t alignment
#define COMMA_SIZE_ALIGN_ARG , size, alignment

DEFINE_DELETE(delete, _ZdlPv, NOTHING, NOTHING)
DEFINE_DELETE(delete_array, _ZdaPv, NOTHING, NOTHING)
DEFINE_DELETE(delete_sized, _ZdlPvm, COMMA_SIZE, COMMA_SIZE_ARG)
DEFINE_DELETE(delete_array_sized, _ZdaPvm, COMMA_SIZE, COMMA_SIZE_ARG)
DEFINE_DELETE(delete_nothrow, _ZdlPvRKSt9nothrow_t, COMMA_TAG, COMMA_TAG_ARG)
DEFINE_DELETE(delete_array_nothrow, _ZdaPvRKSt9nothrow_t, COMMA_TAG, COMMA_TAG_ARG)
DEFINE_DELETE(delete_aligned, _ZdlPvSt11align_val_t, COMMA_ALIGN, COMMA_ALIGN_ARG)
DEFINE_DELETE(delete_array_aligned, _ZdaPvSt11align_val_t, COMMA_ALIGN, COMMA_ALIGN_ARG)
DEFINE_DELETE(delete_sized_aligned, _ZdlPvmSt11align_val_t, COMMA_SIZE_ALIGN, COMMA_SIZE_ALIGN_ARG)
DEFINE_DELETE(delete_array_sized_aligned, _ZdaPvmSt11align_val_t, COMMA_SIZE_ALIGN, COMMA_SIZE_ALIGN_ARG)
DEFINE_DELETE(delete_aligned_nothrow, _ZdlPvSt11align_val_tRKSt9nothrow_t, COMMA_BOTH, COMMA_BOTH_ARG)
DEFINE_DELETE(delete_array_aligned_nothrow, _ZdaPvSt11align_val_tRKSt9nothrow_t, COMMA_BOTH, COMMA_BOTH_ARG)

/* ---- at start ---- */

/* The C++ runtime's mark; the loader binds it to whoever has it when the program starts. */
extern char __cxa_throw __attribute__((weak));

void hp_cxx_find_runtime(void) {
  if (&__cxa_throw == NULL) return;
#define FIND(id, symbol) hp_store_release(&next_##id, (__typeof__(next_##id))hp_next_find(#symbol))
  FIND(new, _Znwm);
  FIND(new_array, _Znam);
  FIND(new_nothrow, _ZnwmRKSt9nothrow_t);
  FIND(new_array_nothrow, _ZnamRKSt9nothrow_t);
  FIND(new_aligned, _ZnwmSt11align_val_t);
  FIND(new_array_aligned, _ZnamSt11align_val_t);
  FIND(new_aligned_nothrow, _ZnwmSt11align_val_tRKSt9nothrow_t);
  FIND(new_array_aligned_nothrow, _ZnamSt11align_val_tRKSt9nothrow_t);
  FIND(delete, _ZdlPv);
  FIND(delete_array, _ZdaPv);
  FIND(delete_sized, _ZdlPvm);
  FIND(delete_array_sized, _ZdaPvm);
  FIND(delete_nothrow, _ZdlPvRKSt9nothrow_t);
  FIND(delete_array_nothrow, _ZdaPvRKSt9nothrow_t);
  FIND(delete_aligned, _ZdlPvSt11align_val_t);
  FIND(delete_array_aligned, _ZdaPvSt11align_val_t);
  FIND(delete_sized_aligned, _ZdlPvmSt11align_val_t);
  FIND(delete_array_sized_aligned, _ZdaPvmSt11align_val_t);
  FIND(delete_aligned_nothrow, _ZdlPvSt11align_val_tRKSt9nothrow_t);
  FIND(delete_array_aligned_nothrow, _ZdaPvSt11align_val_tRKSt9nothrow_t);
#undef FIND
}
