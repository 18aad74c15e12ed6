/* SPDX-License-Identifier: MIT
 * fake_modules.h - modules.h for the tests of the export folder: a list the test fills. */
#ifndef HP_FAKE_MODULES_H
#define HP_FAKE_MODULES_H

#include "modules.h"

/* Forget all modules. */
void fake_modules_reset(void);
/* One more module; what is not given is derived: index, map_* from text_*. Returns the copy that counts. */
struct hp_module *fake_modules_add(struct hp_module module);
/* Registers the object the loader has at pc, as the real one would. */
struct hp_module *fake_modules_add_loaded(uintptr_t pc);
/* All of them, also of those to come; one of them alone. */
const struct hp_module_set *fake_modules_loaded(void);
const struct hp_module_set *fake_modules_set(const struct hp_module *module);
/* From now on nothing can be registered (as without memory), until the reset. */
void fake_modules_refuse(void);
/* Calls of hp_modules_note since the reset. */
unsigned fake_modules_notes(void);

#endif
