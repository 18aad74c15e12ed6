/* SPDX-License-Identifier: MIT
 * The other half, in C, in a shared library: statics, recursion, inlined chains, tail positions (see alpha.cc). */
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
static void *volatile kept;
static volatile int one = 1;

static KEEP void beta_static(void) { kept = malloc(2001); } /* @ beta_static 2001 */
KEEP void beta_calloc(void) { kept = calloc(1, 2002); }     /* @ beta_calloc 2002 */
KEEP void beta_realloc(void) { kept = realloc(NULL, 2003); } /* @ beta_realloc 2003 */
KEEP void beta_aligned(void) { kept = aligned_alloc(64, 2048); } /* @ beta_aligned 2048 */

KEEP void beta_recursive(int depth) {
  if (depth > 0)
    beta_recursive(depth - 1);
  else
    kept = malloc(2005); /* @ beta_recursive 2005 */
  one = 1;
}

INLINE void beta_inline_3(int n) {
  kept = malloc(n); /* @ beta_inline_3 2006 */
  one = 1;
}
INLINE void beta_inline_2(int n) { beta_inline_3(n + 1); }
INLINE void beta_inline_1(int n) { beta_inline_2(n + 1); }
KEEP void beta_chain(void) { beta_inline_1(2004); }

KEEP void beta_two_lines(void) {
  kept = malloc(2007); /* @ beta_two_lines 2007 */
  kept = malloc(2008); /* @ beta_two_lines 2008 */
}

KEEP void beta_in_loop(void) {
  for (int i = 0; i < 3; i++) kept = malloc(700); /* @ beta_in_loop 2100 */
}

KEEP void beta_in_block(int n) {
  if (n > 0) {
    int size = n * 2009;
    {
      int copy = size;
      kept = malloc(copy); /* @ beta_in_block 2009 */
    }
  }
}

typedef void callback(void *context);
static KEEP void beta_callback(void *context) { *(void **)context = malloc(2010); } /* @ beta_callback 2010 */
static KEEP void beta_caller(callback *f) {
  void *p;
  f(&p);
  kept = p;
}

#define IN_MACRO(n) kept = malloc(n)
KEEP void beta_macro(void) { IN_MACRO(2011); } /* @ beta_macro 2011 */

KEEP void beta_a(void) { kept = malloc(2012); one = 1; } /* @ beta_a 2012 */
KEEP void beta_b(void) { beta_a(); kept = malloc(2013); one = 1; } /* @ beta_b 2013 */
KEEP void beta_c(void) { beta_b(); kept = malloc(2014); one = 1; } /* @ beta_c 2014 */
KEEP void beta_d(void) { beta_c(); kept = malloc(2015); one = 1; } /* @ beta_d 2015 */
KEEP void beta_e(void) { beta_d(); kept = malloc(2016); one = 1; } /* @ beta_e 2016 */

__attribute__((section(".text.unlikely"), cold)) KEEP void beta_cold(void) { kept = malloc(2017); } /* @ beta_cold 2017 */

KEEP void beta_all(void) {
  beta_static();
  beta_calloc();
  beta_realloc();
  beta_aligned();
  beta_recursive(5);
  beta_chain();
  beta_two_lines();
  beta_in_loop();
  beta_in_block(one);
  beta_caller(beta_callback);
  beta_macro();
  beta_e();
  beta_cold();
  one = 1;
}
