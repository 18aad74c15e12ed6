/* SPDX-License-Identifier: MIT
 * interpose_cxx.h - the operators of the C++ runtime that the program was started with are looked up at start: each look-up takes the loader's
 * lock, which a dlopen holds while the library's constructors run, and those may wait for a thread whose first new it is; and it empties
 * what dlerror() has to say. Of a runtime that comes later they are looked up at the first call. */
#ifndef HP_INTERPOSE_CXX_H
#define HP_INTERPOSE_CXX_H

/* For hp_next_resolve_all(). */
void hp_cxx_find_runtime(void);

#endif
