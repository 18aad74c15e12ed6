/* SPDX-License-Identifier: MIT
 * view_tree.c - see view_tree.h.
 */
#include "view_tree.h"

#include <stdlib.h>
#include <string.h>

#include "cli_memory.h"

void hp_view_tree_init(struct hp_view_tree *tree) {
  memset(tree, 0, sizeof *tree);
  hp_array_reserve(&tree->nodes, &tree->capacity, 1, sizeof *tree->nodes);
  memset(&tree->nodes[0], 0, sizeof tree->nodes[0]);
  tree->count = 1;
}

void hp_view_tree_free(struct hp_view_tree *tree) {
  free(tree->nodes);
  hp_id_map_free(&tree->children);
  memset(tree, 0, sizeof *tree);
}

uint32_t hp_view_tree_child(struct hp_view_tree *tree, uint32_t parent, uint32_t frame) {
  uint64_t id = (uint64_t)parent << 32 | frame;
  uint32_t node = hp_id_map_find(&tree->children, id);
  if (node != UINT32_MAX) return node;
  node = (uint32_t)tree->count;
  hp_array_reserve(&tree->nodes, &tree->capacity, tree->count + 1, sizeof *tree->nodes);
  tree->nodes[node] = (struct hp_view_node){.parent = parent, .frame = frame, .previous = tree->nodes[parent].last_child};
  tree->nodes[parent].last_child = node;
  tree->count++;
  hp_id_map_add(&tree->children, id, node);
  return node;
}

/* Depth first: a node takes its number when it leaves the pile, then its children go on it. */
void hp_view_tree_number(const struct hp_view_tree *tree, uint32_t **number_of, uint32_t **node_of) {
  *number_of = hp_alloc_zeroed(tree->count, sizeof **number_of);
  *node_of = hp_alloc_zeroed(tree->count, sizeof **node_of);
  uint32_t *pile = hp_alloc_zeroed(tree->count, sizeof *pile);
  size_t piled = 1;
  uint32_t next = 0;
  while (piled > 0) {
    uint32_t node = pile[--piled];
    (*node_of)[next] = node;
    (*number_of)[node] = next++;
    for (uint32_t child = tree->nodes[node].last_child; child != 0; child = tree->nodes[child].previous)
      pile[piled++] = child;
  }
  free(pile);
}
