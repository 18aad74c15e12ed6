/* SPDX-License-Identifier: MIT
 * interpose_by_name.h - operators new and delete as the program would call them: whoever defines the name first, which may be the
 * program itself. A runtime's new[] and new(nothrow) end in the program's own operator new if it has one, and their blocks go back to its
 * delete. Own thread; not to be called in a section. */
#ifndef HP_INTERPOSE_BY_NAME_H
#define HP_INTERPOSE_BY_NAME_H

#include <stddef.h>

void *hp_by_name_new(size_t size);
void hp_by_name_delete(void *ptr);
void hp_by_name_delete_array(void *ptr);
void hp_by_name_delete_aligned(void *ptr, size_t alignment);
void hp_by_name_delete_array_aligned(void *ptr, size_t alignment);

#endif
