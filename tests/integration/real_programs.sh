#!/bin/bash
# SPDX-License-Identifier: MIT
# real_programs.sh - programs that nobody here wrote, alone and under the library: the same status, output and error output, and
# every profile left is valid. At rate 1 and at 64k, with a dump each second. A program that is not installed is left out.
#   LIB=libheapprof.so [CHECK="command that checks one profile"] [RATES="1 64k"] real_programs.sh [NAME...]
# Prints one row of the table in README.md a program and rate; status 1 if any differed.
set -u
check=${CHECK:-gzip -t}
rates=${RATES:-1 64k}
work=$(mktemp -d) || exit 1
chmod 1777 "$work"
trap 'rm -rf "$work"' EXIT
failed=0 rate=

# run_plain COMMAND..., run_with COMMAND...: in a folder of its own, output in out and err
run_in() {
  local name=$1
  shift
  rm -rf "$work/$name.dir"
  mkdir -m 1777 "$work/$name.dir"
  (cd "$work/$name.dir" && exec timeout -k 5 "${LIMIT:-240}" "$@") >"$work/$name.out" 2>"$work/$name.err" </dev/null
  echo "status $?" >>"$work/$name.out"
}
with() {
  run_in with env LD_PRELOAD="$LIB" HEAPPROF_SAMPLE_RATE="$rate" HEAPPROF_PERIOD=1 HEAPPROF_KEEP=0 ${SETTINGS:-} \
    HEAPPROF_OUT="$work/profiles/%e.%p.%n.pb.gz" "$@"
}

# Words that differ from run to run by themselves are taken out by the filter.
compare() {
  local filter=${FILTER:-cat} part
  if grep -qE '^status (124|137)$' "$work/plain.out" "$work/with.out"; then
    echo "| $1 | $rate | not done within ${LIMIT:-240} s |"
    failed=1
    return
  fi
  for part in out err; do
    if ! cmp -s <($filter <"$work/plain.$part") <($filter <"$work/with.$part"); then
      echo "| $1 | $rate | differs: $(diff <($filter <"$work/plain.$part") <($filter <"$work/with.$part") | head -6 | tr '\n' ' ' | cut -c1-300) |"
      failed=1
      return
    fi
  done
  local count=0 file
  for file in $(find "$work/profiles" -name '*.pb.gz' | sort -R --random-source=/dev/zero | head -${CHECKED_MAX:-40}); do
    $check "$file" >/dev/null 2>&1 || { echo "| $1 | $rate | not valid: $(basename "$file") |"; failed=1; return; }
  done
  count=$(find "$work/profiles" -name '*.pb.gz' | wc -l)
  [ "$count" -gt 0 ] || { echo "| $1 | $rate | no profile |"; failed=1; return; }
  [ -z "$(find "$work/profiles" -name '.heapprof.*')" ] || { echo "| $1 | $rate | an unfinished file |"; failed=1; return; }
  echo "| $1 | $rate | same, $count profiles |"
}

# try NAME COMMAND...: the same command both times
try() {
  local name=$1
  shift
  [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " == *" $name "* ]] || return 0
  command -v "$1" >/dev/null || { echo "| $name | | not installed |"; return 0; }
  run_in plain "$@"
  for rate in $rates; do
    rm -rf "$work/profiles"
    mkdir -m 1777 "$work/profiles"
    with "$@"
    compare "$name"
  done
}
wanted=("$@")
export LC_ALL=C TZ=UTC PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0

cat >"$work/script.sql" <<'SQL'
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000) insert into t select i, printf('%064d', i * 7919 % 10007), i / 3.0 from n;
create index tb on t(b);
select count(*), sum(length(b)), round(sum(c), 3) from t where b > printf('%064d', 5000);
select b, count(*) from t group by b order by 2 desc, 1 limit 5;
update t set b = b || 'x' where a % 3 = 0;
delete from t where a % 5 = 0;
select count(*), max(b) from t;
vacuum;
pragma integrity_check;
SQL
cat >"$work/numbers.js" <<'JS'
const zlib = require('zlib'), crypto = require('crypto');
let all = [];
for (let i = 0; i < 60000; i++) all.push({ i, s: 'x'.repeat(i % 50), a: [i, i * 2] });
const text = JSON.stringify(all);
console.log(crypto.createHash('sha256').update(text).digest('hex'), zlib.gzipSync(text).length > 0);
Promise.all([1, 2, 3, 4].map((n) => new Promise((r) => zlib.deflate(Buffer.alloc(1 << 20, n), (e, b) => r(b.length))))).then((l) => console.log(l.length));
JS
cat >"$work/words.pl" <<'PL'
my %h; for my $i (1 .. 150000) { my $k = ($i * 7919) % 10007; push @{$h{$k}}, "w$i"; }
my $n = 0; $n += scalar @{$h{$_}} for keys %h; my $s = join ',', map { "$_=" . join('', @{$h{$_}}) } sort { $a <=> $b } keys %h;
$s =~ s/(w\d)(\d+)/$2$1/g; print $n, ' ', length($s), "\n"; open(my $p, '-|', 'echo from a child') or die; print <$p>;
PL
cat >"$work/pool.py" <<'PY'
import hashlib, json, multiprocessing, re, threading, zlib
def work(n):
    data = [{'k': i, 'v': 'x' * (i % 97)} for i in range(n)]
    return hashlib.sha256(zlib.compress(json.dumps(data).encode())).hexdigest()
if __name__ == '__main__':
    with multiprocessing.Pool(3) as pool:
        print(pool.map(work, [1000, 2000, 3000, 4000] * 3))
    results = [None] * 4
    def run(i): results[i] = len(re.sub(r'(\d+)', r'<\1>', ' '.join(map(str, range(5000 + i)))))
    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print(results)
PY
cat >"$work/page.html" <<'HTML'
<!DOCTYPE html><html><head><title>page</title></head><body><h1>A page</h1><ul id="l"></ul><canvas id="c" width="300" height="200"></canvas><script>
for (let i = 0; i < 2000; i++) { const e = document.createElement('li'); e.textContent = 'row ' + (i * 7919 % 10007); document.getElementById('l').append(e); }
const g = document.getElementById('c').getContext('2d'); for (let i = 0; i < 500; i++) { g.fillStyle = `rgb(${i % 256},9,9)`; g.fillRect(i % 300, i % 200, 9, 9); }
document.title = 'done ' + document.querySelectorAll('li').length;
</script></body></html>
HTML
cat >"$work/units.cpp" <<'CPP'
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
int main() { std::map<std::string, std::vector<int>> m; std::regex r("a+b"); m["x"].push_back(std::regex_search("aab", r)); std::cout << m["x"][0] << "\n"; }
CPP

try sqlite3 sh -c "sqlite3 a.db <'$work/script.sql'"
try python3 python3 "$work/pool.py"
try perl perl "$work/words.pl"
try node node "$work/numbers.js"
try luajit luajit -e 'local t = {} for i = 1, 300000 do t[i] = ("x"):rep(i % 40) .. i end print(#table.concat(t))'
try ruby ruby -e 'a = (1..120000).map { |i| "w#{i * 7919 % 10007}" }; h = a.group_by { |w| w[-1] }; puts h.map { |k, v| [k, v.size] }.sort.inspect; puts [1, 2, 3].map { |i| Thread.new { (i.to_s * 10000).size } }.map(&:value).sum; puts `echo child`'
try g++ sh -c "g++ -O1 -c '$work/units.cpp' -o u.o && size u.o | tail -1 | cut -f1-3"
try git sh -c 'git init -q r && cd r && git config user.email a@b && git config user.name n && for i in 1 2 3 4 5; do seq $((i * 400)) >f$i; git add . && GIT_AUTHOR_DATE=2020-01-0${i}T00:00:00Z GIT_COMMITTER_DATE=2020-01-0${i}T00:00:00Z git commit -q -m c$i; done && git log --stat --format=%H && git gc -q && git fsck && git clone -q . ../s && git -C ../s log --format=%T && git grep -c 7 | head'
try openssl sh -c 'openssl genrsa -out k 2048 2>/dev/null && openssl req -x509 -key k -subj /CN=x -days 9 -out c && openssl verify -CAfile c c && head -c 3000000 /dev/zero | openssl enc -aes-256-cbc -k p -pbkdf2 -nosalt | openssl dgst -sha256 && openssl speed -seconds 1 -evp sha256 >/dev/null 2>&1; echo $?'
try jq sh -c "seq 40000 | jq -c '{a: ., b: (. * 2 | tostring), c: [., .]}' | jq -s 'map(.c[0]) | add'"
try xz sh -c 'seq 400000 | xz -T2 -3 | xz -dc | md5sum; tar cf - /usr/include/linux 2>/dev/null | gzip -9n | zcat | md5sum'
try gdb sh -c 'gdb -nx -batch -ex "break exit" -ex run -ex "print 6*7" --args /bin/echo hello 2>&1 | grep -E "hello|= 42"'
try bash bash -c 'declare -A m; for i in {1..6000}; do m[k$((i % 997))]+=x$i; done; t=0; for k in "${!m[@]}"; do t=$((t + ${#m[$k]})); done; echo $t; for i in {1..30}; do (echo sub $i); done | sort | md5sum; echo $(seq 100 | while read l; do echo $l; done | wc -l)'
try gawk gawk 'BEGIN { for (i = 0; i < 200000; i++) { k = (i * 7919) % 10007; a[k] = a[k] i; } n = asorti(a, b); s = 0; for (k in a) s += length(a[k]); print n, s }'
try java sh -c "printf 'import java.util.*; public class X { public static void main(String[] a) throws Exception { Map<Integer, List<String>> m = new TreeMap<>(); for (int i = 0; i < 200000; i++) m.computeIfAbsent(i %% 997, k -> new ArrayList<>()).add(\"w\" + i); Thread[] t = new Thread[4]; for (int j = 0; j < 4; j++) { t[j] = new Thread(() -> { new StringBuilder(\"x\".repeat(100000)).reverse(); }); t[j].start(); } for (Thread x : t) x.join(); System.out.println(m.size() + \" \" + m.get(5).size()); } }' >X.java && java -Xshare:auto X.java"
FILTER="sed -E s/[0-9.]+(s|sec|secs)?//g" try stress-ng stress-ng --quiet --timeout 60 --verify --malloc 1 --malloc-ops 3000 --malloc-bytes 32M --fork 1 --fork-ops 100 --clone 1 --clone-ops 100 --mmap 1 --mmap-ops 20 --mmap-bytes 16M --sigsegv 1 --sigsegv-ops 300 --dynlib 1 --dynlib-ops 200 --sigq 1 --sigq-ops 1000 --sigabrt 1 --sigabrt-ops 50 --pthread 1 --pthread-ops 100 --vfork 1 --vfork-ops 100 --stack 1 --stack-ops 30 --exec 1 --exec-ops 50 --daemon 1 --daemon-ops 50 --sigrt 1 --sigrt-ops 500 --mremap 1 --mremap-ops 50 --mremap-bytes 16M
try imagemagick /usr/bin/convert -size 600x400 -seed 5 plasma:red-blue -blur 3x2 -resize 300x200 -format '%wx%h %#' info:
try ffmpeg sh -c 'ffmpeg -nostdin -v error -f lavfi -i testsrc=d=1:s=320x240 -threads 2 -f framemd5 - | md5sum'
[ -z "$(ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null)" ] || FILTER="sed -E s/[0-9.]+//g" try postgresql setpriv --reuid postgres --regid postgres --clear-groups sh -c '
  PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -1):$PATH; initdb -D "$PWD/d" -A trust >/dev/null && echo "unix_socket_directories = '"'"'$PWD'"'"'
listen_addresses = '"''"'" >>d/postgresql.conf && pg_ctl -D "$PWD/d" -l log -w start >/dev/null &&
  pgbench -h "$PWD" -i -s 2 -q postgres >/dev/null 2>&1 && pgbench -h "$PWD" -n -c 4 -j 2 -t 200 postgres 2>&1 | grep -E "processed|failed" ; psql -h "$PWD" -Atc "select count(*), sum(length(filler)) from pgbench_accounts" postgres; pg_ctl -D "$PWD/d" -w stop >/dev/null; echo $?; grep -cE "PANIC|FATAL|signal" log'
[ -z "$(command -v redis-server)" ] || SETTINGS="" try redis sh -c '
  redis-server --port 0 --unixsocket "$PWD/s" --save "" --daemonize no >log 2>&1 & i=0; while [ ! -S s ] && [ $i -lt 3000 ]; do sleep .1; i=$((i + 1)); done
  redis-benchmark -s "$PWD/s" -n 20000 -c 20 -q -t set,get,lpush,lrange_100 >/dev/null; redis-cli -s s debug populate 20000 k 100; redis-cli -s s bgsave; sleep 2; redis-cli -s s dbsize; redis-cli -s s shutdown nosave; wait; echo $?; grep -cE "crash|ASSERT" log'
[ -z "$(command -v nginx)" ] || SETTINGS="HEAPPROF_SIGNAL=RTMIN+5" try nginx sh -c '
  mkdir -p html logs; seq 2000 >html/f; printf "daemon off; worker_processes 2; pid n.pid; error_log logs/e; events {} http { access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; server { listen unix:%s/n.sock; gzip on; gzip_types *; root html; } }" "$PWD" >n.conf
  nginx -p "$PWD" -c n.conf 2>/dev/null & n=$!; i=0; while [ ! -S n.sock ] && [ $i -lt 3000 ]; do sleep .1; i=$((i + 1)); done
  for i in 1 2 3 4 5 6; do seq 50 | xargs -n 10 -P 4 sh -c "for x; do curl -s --compressed --unix-socket n.sock http://x/f | md5sum; done" sh; [ $i = 3 ] && kill -HUP $n; done | sort | uniq -c; kill -QUIT $n; wait $n; echo $?'
try python3-test sh -c 'python3 -m test -q test_json test_re test_zlib test_struct test_dict test_list test_set test_heapq test_bisect test_itertools test_functools test_collections test_string test_bytes test_unicode test_int test_float test_decimal test_fractions test_hashlib test_base64 test_binascii test_csv test_array test_deque test_copy test_pickle test_ordered_dict test_queue test_threading test_thread test_signal test_fork1 test_wait4 test_exceptions test_generators test_with test_weakref test_gc test_ctypes 2>&1 | grep -E "^(Result|.* tests? (OK|failed))"'
# Writer and Calc, each a process of its own with some twenty threads.
try libreoffice sh -c "seq 3000 | sed 's|.*|<p>line & of <b>many</b></p>|' >t.html; seq 2000 | sed 's/.*/&,=A&*2,word&/' >t.csv; for x in 'txt:Text t.html' 'odt t.html' 'ods t.csv' 'xlsx t.csv'; do
  set -- \$x; soffice -env:UserInstallation=file://\$PWD/u --headless --norestore --convert-to \$1 \$2 >/dev/null 2>&1; echo \$?; done
  md5sum <t.txt; unzip -p t.odt content.xml | wc -c; unzip -p t.ods content.xml | md5sum; unzip -p t.xlsx xl/worksheets/sheet1.xml | md5sum"
# It brings an allocator of its own: each of its processes says once that it is not profiled.
FILTER="sed -E /^\[[0-9]|^heapprof.*is.not.profiled$|^$/d" LIMIT=120 try chromium sh -c "chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=\$PWD/u --virtual-time-budget=3000 --dump-dom 'file://$work/page.html' | md5sum
  chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=\$PWD/u --screenshot=\$PWD/s.png 'file://$work/page.html' >/dev/null 2>&1; echo \$?; file -b s.png"
# Over TCP, which wrk wants: at a port that is free.
if [ -n "$(command -v nginx)" ]; then
  SETTINGS="HEAPPROF_SIGNAL=RTMIN+5" try wrk sh -c 'command -v wrk >/dev/null || exit 0
  p=$(python3 -c "import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); print(s.getsockname()[1])")
  mkdir -p html logs; seq 2000 >html/f; printf "daemon off; worker_processes 2; pid n.pid; error_log logs/e; events {} http { access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; server { listen 127.0.0.1:%s; gzip on; gzip_types *; root html; } }" "$p" >n.conf
  nginx -p "$PWD" -c n.conf 2>/dev/null & n=$!; i=0; while ! curl -s -o x "http://127.0.0.1:$p/f" && [ $i -lt 3000 ]; do sleep .1; i=$((i + 1)); done; md5sum <x
  wrk -t 2 -c 20 -d 4 -H "Accept-Encoding: gzip" "http://127.0.0.1:$p/f" >w; grep -cE "requests in" w; grep -E "Non-2xx|Socket errors" w; kill -QUIT $n; wait $n; echo $?; grep -cE "alert|emerg" logs/e'
fi
# Redis's own tests, which no package carries: REDIS_SOURCE, an unpacked source with the programs at src/redis-*.
if [ -d "${REDIS_SOURCE:-}/tests" ]; then
  port=$(python3 -c 'import random; print(random.randrange(20000, 30000))')
  LIMIT=900 try redis-tcl sh -c "cd '$REDIS_SOURCE' && ./runtest --baseport $port --portcount 500 --clients 2 --tags -slow --single unit/type/list --single unit/type/hash --single unit/type/set --single unit/type/zset --single unit/type/string --single unit/dump --single unit/scan --single unit/sort --single unit/multi --single unit/keyspace --single unit/bitops --single unit/pubsub --single unit/acl --single unit/auth --single unit/protocol --single unit/shutdown 2>&1 | sed 's/\x1b\[[0-9;]*m//g' | grep -oE '^\[(ok|err|exception|timeout)\]: .*|All tests passed.*' | sed 's/ ([0-9]* ms)//' | sort"
fi
exit $failed
