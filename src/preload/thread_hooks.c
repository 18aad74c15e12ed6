/* SPDX-License-Identifier: MIT
 * thread_hooks.c - the program starts its first thread, or its main thread leaves by pthread_exit or is cancelled: control
 * wants to know (control/helper.h). Each is a look at a pointer and a tail call. (No header: nobody calls these; hooks:
 * thread_hooks.h.) */
#include "thread_hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <threads.h>

#include "next_malloc.h"

void (*hp_hook_before_thread)(void);
void (*hp_hook_main_leaves)(void);
void (*hp_hook_cancel)(pthread_t thread);
bool (*hp_hook_no_room)(void);

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static create_function *next_pthread_create;

static create_function *find_pthread_create(void) {
  create_function *next = hp_load_acquire(&next_pthread_create);
  if (next == NULL) {
    next = (create_function *)hp_next_find("pthread_create");
    hp_store_release(&next_pthread_create, next);
  }
  return next;
}

int hp_next_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  create_function *next = find_pthread_create();
  return next == NULL ? EAGAIN : next(thread, attributes, start, argument);
}

/* The kernel gives up a thread's place a little after the thread has been joined. */
enum { ROOM_TRIES = 20 };
static bool has_made_room(void) { return hp_hook_no_room != NULL && hp_hook_no_room(); }
static void wait_for_room(void) {
  const struct timespec pause = {0, 1000000};
  nanosleep(&pause, NULL);
}

HP_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  if (hp_hook_before_thread != NULL) hp_hook_before_thread();
  create_function *next = find_pthread_create();
  int result = next == NULL ? EAGAIN : next(thread, attributes, start, argument);
  if (HP_LIKELY(result != EAGAIN) || !has_made_room()) return result;
  for (int i = 0; i < ROOM_TRIES && result == EAGAIN; i++) {
    wait_for_room();
    result = next(thread, attributes, start, argument);
  }
  return result;
}

HP_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument) {
  static int (*next)(thrd_t *, thrd_start_t, void *);
  if (hp_hook_before_thread != NULL) hp_hook_before_thread();
  if (next == NULL) next = (int (*)(thrd_t *, thrd_start_t, void *))hp_next_find("thrd_create");
  int result = next == NULL ? thrd_error : next(thread, start, argument);
  if (HP_LIKELY(result == thrd_success) || !has_made_room()) return result;
  for (int i = 0; i < ROOM_TRIES && result != thrd_success; i++) {
    wait_for_room();
    result = next(thread, start, argument);
  }
  return result;
}

HP_EXPORT int pthread_cancel(pthread_t thread) {
  static int (*next)(pthread_t);
  if (hp_hook_cancel != NULL) hp_hook_cancel(thread);
  if (next == NULL) next = (int (*)(pthread_t))hp_next_find("pthread_cancel");
  return next == NULL ? ESRCH : next(thread);
}

HP_EXPORT void pthread_exit(void *result) {
  static void (*next)(void *) __attribute__((noreturn));
  if (hp_hook_main_leaves != NULL) hp_hook_main_leaves();
  if (next == NULL) next = (__typeof__(next))hp_next_find("pthread_exit");
  next(result);
}

HP_EXPORT void thrd_exit(int result) {
  static void (*next)(int) __attribute__((noreturn));
  if (hp_hook_main_leaves != NULL) hp_hook_main_leaves();
  if (next == NULL) next = (__typeof__(next))hp_next_find("thrd_exit");
  next(result);
}
