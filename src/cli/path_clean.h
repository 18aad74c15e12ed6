/* SPDX-License-Identifier: MIT
 * path_clean.h - the shortest ways to write a path.
 */
#ifndef HP_PATH_CLEAN_H
#define HP_PATH_CLEAN_H

/* Takes "./", "//" and "folder/.." out of a path, as pprof does, so that names compare. In place; the file system is not asked. */
void hp_path_clean(char *path);

/* What follows the last slash; the whole path if there is none or nothing follows it. Points into path. */
const char *hp_path_base_name(const char *path);

#endif
