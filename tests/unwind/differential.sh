#!/bin/bash
# differential.sh LIBRARY [SECONDS]: runs real programs, as far as they are installed, with differential_preload.so (LIBRARY)
# preloaded, again and again for SECONDS (default 60), and prints for each what was compared. Exit 1 when anything differed.
library=$1 limit=${2:-60}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export DIFFERENTIAL_OUT=$work/counts PYTHONMALLOC=malloc HOME=$work
have() { command -v "$1" >/dev/null; }
run() { env LD_PRELOAD="$library" timeout 120 "$@" >"$work/out" 2>"$work/err" </dev/null || echo "exit $?: $*"; }
python=/usr/bin/python3
cat >"$work/a.py" <<'PY'
import json, re, collections, threading, ast
def work():
    data = json.loads(json.dumps([{"k%d" % i: [i, str(i) * 3]} for i in range(8000)]))
    collections.Counter(re.findall(r"\d+", json.dumps(data)))
    ast.parse("\n".join("def f%d(a, b=%d): return [x + a for x in range(b) if x %% 2]" % (i, i) for i in range(400)))
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
work()
for t in threads: t.join()
PY
cat >"$work/a.sql" <<'SQL'
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000) insert into t select i, 'row ' || i, i * 1.5 from n;
create index ib on t(b);
select count(*), sum(length(b)) from t where b like '%7%' group by a % 17 order by 2;
delete from t where a % 3 = 0; vacuum;
SQL
cat >"$work/a.cc" <<'CC'
#include <map>
#include <regex>
#include <string>
#include <stdexcept>
int main() { std::map<std::string, int> m; for (int i = 0; i < 100; i++) try { m[std::to_string(i)]++; if (i % 3 == 0) throw std::runtime_error("x"); } catch (std::exception &) {} return std::regex_match("abc", std::regex("a.*")) ? 0 : 1; }
CC
end=$((SECONDS + limit))
while [ $SECONDS -lt $end ]; do
  have $python && run $python "$work/a.py"
  have sqlite3 && run sqlite3 "$work/a.db" ".read $work/a.sql" && rm -f "$work/a.db"
  have g++ && run g++ -O2 "$work/a.cc" -o "$work/a.out" && run "$work/a.out"
  have perl && run perl -e 'my %h; for my $i (1..60000) { $h{"k$i"} = [1..($i % 7)]; delete $h{"k".($i/2)} if $i % 2 == 0 } print scalar keys %h; my $s = "ab" x 50000; $s =~ s/a(b)/$1x/g;'
  have node && run node -e 'let a=[];for(let i=0;i<200000;i++)a.push({k:"v"+i,b:Buffer.alloc(20)});JSON.parse(JSON.stringify(a.slice(0,20000)));require("zlib").gzipSync(Buffer.alloc(300000,"abc"))'
  have ruby && run ruby -e 'h={}; 60000.times{|i| h["k#{i}"]=[i]*5}; puts h.map{|k,v| k.sub("k","z")}.size; require "json"; JSON.parse(h.to_json)'
  have jq && run jq -n '[range(60000)|{a:.,b:(tostring)}]|group_by(.a%10)|map(length)'
  have git && run git init -q "$work/repo" && (cd "$work/repo" && seq 20000 >f && run git add f && run git -c user.name=a -c user.email=b commit -qm x && run git log --stat && run git gc -q) && rm -rf "$work/repo"
  have gdb && run gdb -batch -ex 'info functions main' "$work/a.out"
  have openssl && run openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/k" -out "$work/c" -subj /CN=a
done
awk '{w[$1]+=$3; d[$1]+=$5; r[$1]+=$7; m[$1]+=$9; s[$1]+=$11; i[$1]+=$13; e[$1]=$14; l[$1]+=$16; x[$1]+=$18}
END {printf "%-18s %12s %6s %12s %9s %9s %10s %9s %6s  last incomplete\n", "program", "walks", "differ", "with record", "misses", "slow", "incomplete", "libunwind", "differ"
  for (p in w) {printf "%-18s %12d %6d %12d %9d %9d %10d %9d %6d  %s\n", p, w[p], d[p], r[p], m[p], s[p], i[p], l[p], x[p], e[p]; W+=w[p]; D+=d[p]; L+=l[p]; X+=x[p]}
  printf "%-18s %12d %6d %52s %9d %6d\n", "all", W, D, "", L, X; exit D > 0}' "$DIFFERENTIAL_OUT"
