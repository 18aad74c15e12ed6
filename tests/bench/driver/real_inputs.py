# SPDX-License-Identifier: MIT
"""Inputs for the real programs, generated: the same bytes on every machine."""
import json
import os
import random

PYTHON_SCRIPT = """
import json, re
words = {}
for i in range(%d):
    row = {"id": i, "name": "item %%d" %% i, "tags": ["t%%d" %% (i %% k) for k in (3, 5, 7)], "text": "x" * (600 + i %% 900)}
    text = json.dumps(row)
    back = json.loads(text)
    for word in re.findall(r"[a-z0-9]+", back["name"]):
        words[word] = words.get(word, 0) + len(text)
print(len(words), sum(words.values()))
"""

NODE_SCRIPT = """
const rows = [];
let total = 0;
for (let i = 0; i < %d; i++) {
  const text = JSON.stringify({id: i, name: 'item ' + i, tags: [i %% 3, i %% 5, i %% 7], text: 'x'.repeat(i %% 500)});
  const buffer = Buffer.alloc(4096 + (i %% 9000), text);
  total += JSON.parse(buffer.toString('utf8', 0, text.length)).tags.length + buffer.length;
  if (i %% 10 === 0) rows.push(buffer);
}
console.log(total, rows.length);
"""


def sql_script(rows):
    lines = ["create table item(id integer primary key, name text, price real, tags text);", "begin;"]
    chosen = random.Random(7)
    for i in range(rows):
        lines.append("insert into item values(%d,'item %d %s',%.2f,'t%d t%d');" % (
            i, i, "x" * chosen.randrange(200), chosen.random() * 100, i % 7, i % 31))
    lines += ["commit;", "create index by_name on item(name);", "create index by_price on item(price, tags);",
              "select tags, count(*), avg(price) from item group by tags order by 2 desc limit 5;",
              "select count(*) from item a join item b on a.id = b.id + 1 where a.price < b.price;",
              "select group_concat(substr(name, 1, 20)) from (select name from item order by name desc limit 2000);",
              "update item set tags = tags || ' more' where id % 3 = 0;", "delete from item where price < 20;", "vacuum;"]
    return "\n".join(lines) + "\n"


def c_file(functions):
    """Preprocessed C, so that cc1 alone can compile it."""
    lines = ["typedef unsigned long u64;", "struct node { struct node *next; u64 key; int values[8]; };",
             "extern void sink(u64, const char *);"]
    for i in range(functions):
        lines.append("""static u64 work_%d(struct node *list, u64 seed) {
  u64 sum = seed + %du;
  for (struct node *at = list; at; at = at->next) {
    switch ((at->key ^ sum) %% %d) {
      case 0: sum += (u64)at->values[sum & 7]; break;
      case 1: sum ^= at->key << %d; break;
      case 2: for (int k = 0; k < 8; k++) sum = sum * 31 + (u64)at->values[k] / (u64)(k + %d); break;
      default: if (sum > at->key) { sum -= at->key; sink(sum, "work %d"); } else sum += %d;
    }
  }
  return sum;
}""" % (i, i, 4 + i % 5, 1 + i % 7, 1 + i % 3, i, i * 17 + 1))
    lines.append("u64 all(struct node *list, u64 seed) {")
    lines += ["  seed += work_%d(list, seed);" % i for i in range(functions)]
    return "\n".join(lines + ["  return seed;", "}"]) + "\n"


def json_rows(rows):
    chosen = random.Random(11)
    return json.dumps([{"id": i, "name": "item %d" % i, "price": round(chosen.random() * 100, 2),
                        "tags": ["t%d" % chosen.randrange(50) for _ in range(4)], "text": "y" * chosen.randrange(120)}
                       for i in range(rows)])


def write_inputs(folder, is_quick):
    """All inputs in `folder`; returns {name: path}."""
    scale = 1 if is_quick else 2
    texts = {"script.sql": sql_script(12000 * scale), "script.py": PYTHON_SCRIPT % (18000 * scale),
             "script.js": NODE_SCRIPT % (20000 * scale), "input.i": c_file(45 * scale),
             "input.json": json_rows(9000 * scale)}
    paths = {}
    for name, text in texts.items():
        paths[name] = os.path.join(folder, name)
        with open(paths[name], "w", encoding="utf-8") as out:
            out.write(text)
    return paths
