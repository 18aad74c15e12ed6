/* SPDX-License-Identifier: MIT
 * unit_test.h - CMocka, after the headers it wants before itself. */
#ifndef HP_UNIT_TEST_H
#define HP_UNIT_TEST_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#endif
