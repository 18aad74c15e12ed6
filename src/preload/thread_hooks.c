/* SPDX-License-Identifier: MIT
 * thread_hooks.c - the program starts its first thread, or its main thread leaves by pthread_exit or is cancelled: control
 * wants to know (control/helper.h). Each is a look at a pointer and a tail call. (No header: nobody calls these; hooks:
 * thread_hooks.h.) */
#include "thread_hooks.h"

#include <errno.h>
#include <pthread.h>
#include <threads.h>

#include "heap.h"
#include "next_malloc.h"
#include "sys.h"

void (*hp_hook_before_thread)(void);
void (*hp_hook_main_leaves)(void);
void (*hp_hook_cancel)(pthread_t thread);
bool (*hp_hook_no_room)(void);

/* Before glibc 2.34 they are in libpthread, which may have come by a dlopen with RTLD_LOCAL: then it is not behind us. */
static void *find(const char *name) {
  void *found = hp_next_find(name);
  return found != NULL ? found : hp_next_find_in("libpthread.so.0", name);
}

static int create_without_threads(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                                  void *argument) {
  (void)thread;
  (void)attributes;
  (void)start;
  (void)argument;
  return EAGAIN;
}

struct hp_next_thread hp_next_thread;

/* While the program has one thread, or several that find the same. */
static HP_COLD void find_thread_functions(void) {
  void *create = find("pthread_create");
  hp_next_thread.pthread_join = (__typeof__(hp_next_thread.pthread_join))find("pthread_join");
  hp_next_thread.pthread_attr_setstacksize =
      (__typeof__(hp_next_thread.pthread_attr_setstacksize))find("pthread_attr_setstacksize");
  if (!hp_heap_has_thread_ends()) {
    hp_heap_set_thread_ends((hp_heap_key_create *)find("pthread_key_create"),
                            (hp_heap_set_specific *)find("pthread_setspecific"));
  }
  hp_store_release(&hp_next_thread.pthread_create,
                   create == NULL ? create_without_threads : (__typeof__(hp_next_thread.pthread_create))create);
}

static void before_thread(void) {
  if (hp_load_acquire(&hp_next_thread.pthread_create) == NULL) find_thread_functions();
  if (hp_hook_before_thread != NULL) hp_hook_before_thread();
}

/* The kernel gives up a thread's place a little after the thread has been joined. */
enum { ROOM_TRIES = 20 };
static bool has_made_room(void) { return hp_hook_no_room != NULL && hp_hook_no_room(); }

HP_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  before_thread();
  int result = hp_next_thread.pthread_create(thread, attributes, start, argument);
  if (HP_LIKELY(result != EAGAIN) || !has_made_room()) return result;
  for (int i = 0; i < ROOM_TRIES && result == EAGAIN; i++) {
    hp_sys_sleep_ms(1);
    result = hp_next_thread.pthread_create(thread, attributes, start, argument);
  }
  return result;
}

HP_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument) {
  static int (*next)(thrd_t *, thrd_start_t, void *);
  before_thread();
  if (next == NULL) next = (int (*)(thrd_t *, thrd_start_t, void *))find("thrd_create");
  int result = next == NULL ? thrd_error : next(thread, start, argument);
  if (HP_LIKELY(result == thrd_success) || !has_made_room()) return result;
  for (int i = 0; i < ROOM_TRIES && result != thrd_success; i++) {
    hp_sys_sleep_ms(1);
    result = next(thread, start, argument);
  }
  return result;
}

HP_EXPORT int pthread_cancel(pthread_t thread) {
  static int (*next)(pthread_t);
  if (hp_hook_cancel != NULL) hp_hook_cancel(thread);
  if (next == NULL) next = (int (*)(pthread_t))find("pthread_cancel");
  return next == NULL ? ESRCH : next(thread);
}

HP_EXPORT void pthread_exit(void *result) {
  static void (*next)(void *) __attribute__((noreturn));
  if (hp_hook_main_leaves != NULL) hp_hook_main_leaves();
  if (next == NULL) next = (__typeof__(next))find("pthread_exit");
  next(result);
}

HP_EXPORT void thrd_exit(int result) {
  static void (*next)(int) __attribute__((noreturn));
  if (hp_hook_main_leaves != NULL) hp_hook_main_leaves();
  if (next == NULL) next = (__typeof__(next))find("thrd_exit");
  next(result);
}
