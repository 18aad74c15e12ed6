/* SPDX-License-Identifier: MIT
 * path_clean.h - the shortest way to write a path.
 */
#ifndef HP_PATH_CLEAN_H
#define HP_PATH_CLEAN_H

/* Takes "./", "//" and "folder/.." out of a path, as pprof does, so that names compare. In place; the file system is not asked. */
void hp_path_clean(char *path);

#endif
