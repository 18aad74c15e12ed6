#!/bin/bash
# SPDX-License-Identifier: MIT
# real_programs.sh LIB CHECKER BUILD_DIR
# Ten real programs, each run plain and under the library, with dumps on the signal while the long ones run and at the end:
# same result, nothing on stderr, and every file accepted by the project's checker, by `go tool pprof -raw` and `-top`, and by
# npm's pprof-format.
set -u
lib=$1 checker=$2 build=$3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
mkdir "$work/profiles" "$work/data"
chmod 755 "$work"
chmod 1777 "$work/profiles"
pids=()
cleanup() {
  local p
  for p in ${pids[@]+"${pids[@]}"}; do kill -9 "$p" 2>/dev/null; done
  rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "FAIL: $*"; exit 1; }
say() { echo "$*"; }

profiled=(env "LD_PRELOAD=$lib" "HEAPPROF_OUT=$work/profiles/%e.%p.%n.pb.gz" HEAPPROF_SAMPLE_RATE=16k HEAPPROF_SIGNAL=SIGPROF
  HEAPPROF_PERIOD=0)

# same NAME COMMAND...: output, error output and status with and without the library
same() {
  local name=$1
  shift
  (cd "$work/data" && "$@") >"$work/out0" 2>"$work/err0" </dev/null
  local rc0=$?
  (cd "$work/data" && "${profiled[@]}" "$@") >"$work/out1" 2>"$work/err1" </dev/null
  local rc1=$?
  [ $rc0 = $rc1 ] || fail "$name: status $rc1, plain $rc0: $(head -2 "$work/err1")"
  cmp -s "$work/out0" "$work/out1" || fail "$name: other output: $(diff "$work/out0" "$work/out1" | head -3)"
  cmp -s "$work/err0" "$work/err1" || fail "$name: other error output: $(diff "$work/err0" "$work/err1" | head -3)"
  say "same result: $name"
}
wait_for() { # SECONDS COMMAND...
  local n=$(($1 * 20)) i
  shift
  for ((i = 0; i < n; i++)); do
    "$@" >/dev/null 2>&1 && return 0
    sleep .05
  done
  return 1
}
count() { find "$work/profiles" -name "$1" | wc -l; }
count_is() { [ "$(count "$1")" -ge "$2" ]; }

same sqlite3 sqlite3 :memory: "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<60000)
  insert into t select i, 'text '||i from n; create index x on t(b); select count(*), sum(a) from t where b like '%7%';"
same python3 /usr/bin/python3 -c 'import json, hashlib
d = {str(i): [i] * 20 for i in range(20000)}
print(hashlib.sha1(json.dumps(d).encode()).hexdigest())'
same perl perl -e '%h = map { $_ => "x" x ($_ % 90) } 1..40000; $n += length $h{$_} for keys %h; print "$n\n"'
same git bash -c 'rm -rf r; git init -q -b main r && cd r && for i in $(seq 60); do seq $i $((i+200)) >f$i; done && git add . &&
  GIT_AUTHOR_DATE=2001-01-01T00:00:00Z GIT_COMMITTER_DATE=2001-01-01T00:00:00Z git -c user.name=a -c user.email=a@b commit -qm one &&
  git gc -q && git log --format=%H && git grep -c 77 | wc -l'
same node node -e 'const a=[];for(let i=0;i<200;i++)a.push(Buffer.alloc(20000,i));const z=require("zlib");
  console.log(a.length, z.gzipSync(Buffer.concat(a)).length)'
cat >"$work/data/c.c" <<'C'
#include <stdio.h>
#define F(n) static int f##n(int x) { int a[8] = {x}; for (int i = 1; i < 8; i++) a[i] = a[i - 1] * n + i; return a[7]; }
F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
int main(void) { printf("%d\n", f1(1)+f2(2)+f3(3)+f4(4)+f5(5)+f6(6)+f7(7)+f8(8)+f9(9)+f10(10)+f11(11)+f12(12)); return 0; }
C
same gcc bash -c 'gcc -O2 -o c c.c && ./c'
same bash bash -c 's=0; for i in $(seq 200); do s=$((s + $(echo $i))); done; echo $s'

# redis, memcached, nginx: servers under load, dumped while they work
"${profiled[@]}" redis-server --port 0 --unixsocket "$work/redis.sock" --save '' --dir "$work/data" >"$work/redis.log" 2>"$work/redis.err" &
pid=$!
pids+=("$pid")
wait_for 600 test -S "$work/redis.sock" || fail "redis did not start: $(tail -2 "$work/redis.err")"
redis-benchmark -s "$work/redis.sock" -q -n 20000 -c 10 -t set,get,lpush >/dev/null 2>&1 || fail "redis-benchmark"
kill -PROF $pid
wait_for 600 count_is "redis*.$pid.*.pb.gz" 1 || fail "redis: no dump"
[ "$(redis-cli -s "$work/redis.sock" eval "return redis.call('set', KEYS[1], 'v')" 1 k)" = OK ] || fail "redis answers wrongly"
redis-cli -s "$work/redis.sock" shutdown nosave >/dev/null 2>&1
wait $pid || fail "redis ended with $?"
[ -s "$work/redis.err" ] && fail "redis: $(head -1 "$work/redis.err")"
say "same result: redis-server under redis-benchmark"

memcached_user=()
[ "$(id -u)" = 0 ] && memcached_user=(-u nobody)
"${profiled[@]}" memcached ${memcached_user[@]+"${memcached_user[@]}"} -s "$work/profiles/mc.sock" -a 777 -t 2 2>"$work/mc.err" &
pid=$!
pids+=("$pid")
wait_for 600 test -S "$work/profiles/mc.sock" || fail "memcached did not start: $(head -1 "$work/mc.err")"
/usr/bin/python3 - "$work/profiles/mc.sock" <<'P' || fail "memcached answers wrongly"
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); f = s.makefile('rwb')
for i in range(3000):
    f.write(b'set k%d 0 0 1000\r\n%s\r\n' % (i, b'v' * 1000)); f.flush()
    assert f.readline() == b'STORED\r\n'
f.write(b'get k77\r\n'); f.flush()
assert f.readline().startswith(b'VALUE k77') and len(f.readline()) == 1002
P
kill -PROF $pid
wait_for 600 count_is "memcached.$pid.*.pb.gz" 1 || fail "memcached: no dump"
kill -INT $pid
wait $pid
[ -s "$work/mc.err" ] && grep -q heapprof "$work/mc.err" && fail "memcached: $(head -1 "$work/mc.err")"
rm -f "$work/profiles/mc.sock"
say "same result: memcached"

mkdir -p "$work/www" "$work/nginx"
head -c 200000 /dev/zero | tr '\0' n >"$work/www/f.txt"
cat >"$work/nginx.conf" <<C
daemon off; worker_processes 2; pid $work/nginx/pid; error_log $work/nginx/err.log;
events { worker_connections 64; }
http { access_log off; client_body_temp_path $work/nginx/b; proxy_temp_path $work/nginx/p; fastcgi_temp_path $work/nginx/f;
  uwsgi_temp_path $work/nginx/u; scgi_temp_path $work/nginx/s; gzip on; gzip_types text/plain; types { text/plain txt; }
  server { listen unix:$work/nginx/sock; root $work/www; } }
C
"${profiled[@]}" nginx -p "$work/nginx" -c "$work/nginx.conf" 2>"$work/nginx.err" &
pid=$!
pids+=("$pid")
wait_for 600 curl -sf --unix-socket "$work/nginx/sock" -o /dev/null http://localhost/f.txt || fail "nginx did not start: $(head -1 "$work/nginx.err")"
want=$(md5sum <"$work/www/f.txt")
for _ in $(seq 30); do
  [ "$(curl -sf --compressed --unix-socket "$work/nginx/sock" http://localhost/f.txt | md5sum)" = "$want" ] || fail "nginx: wrong content"
done
kill -PROF $pid
wait_for 600 count_is "nginx.$pid.*.pb.gz" 1 || fail "nginx: no dump"
kill -QUIT $pid
wait $pid || fail "nginx ended with $?"
[ -s "$work/nginx.err" ] && fail "nginx: $(head -1 "$work/nginx.err")"
say "same result: nginx"

# ---- the readers ----
mapfile -t files < <(find "$work/profiles" -name '*.pb.gz' | sort)
[ ${#files[@]} -ge 230 ] || fail "${#files[@]} profiles only"
[ -z "$(find "$work/profiles" -type f ! -name '*.pb.gz')" ] || fail "left over: $(find "$work/profiles" -type f ! -name '*.pb.gz' | head -2)"
"$checker" "${files[@]}" || fail "the project's own checker"
say "own checker: ${#files[@]} files"

mkdir -p "$build/pprof-format"
cp "$here/package.json" "$build/pprof-format/"
[ -d "$build/pprof-format/node_modules/pprof-format" ] ||
  npm install --silent --no-audit --no-fund --prefix "$build/pprof-format" >"$work/npm.log" 2>&1 ||
  fail "npm install pprof-format: $(tail -2 "$work/npm.log")"
NODE_PATH="$build/pprof-format/node_modules" node "$here/read_with_pprof_format.js" "${files[@]}" || fail "pprof-format"
say "pprof-format: ${#files[@]} files"

# go tool pprof starts a process a file: the largest of each program and a few of the small ones
mapfile -t chosen < <(for p in $(find "$work/profiles" -name '*.pb.gz' -printf '%f\n' | sed 's/\.[0-9]*\.[0-9]*\.pb\.gz$//' | sort -u); do
  find "$work/profiles" -name "$p.*.pb.gz" -printf '%s %p\n' | sort -rn | head -3 | cut -d' ' -f2; done)
export PPROF_TMPDIR="$work" HOME="$work" GOFLAGS=-mod=mod GOTOOLCHAIN=local
for f in "${chosen[@]}"; do
  for report in -raw -top; do
    go tool pprof $report "$f" >"$work/go.out" 2>"$work/go.err" || fail "go tool pprof $report $(basename "$f"): $(tail -1 "$work/go.err")"
    grep -v -e '^Main binary filename' -e '^$' -e 'File: ' "$work/go.err" | grep -q . && fail "go tool pprof $report $(basename "$f") complains: $(head -2 "$work/go.err")"
  done
done
say "go tool pprof -raw and -top: ${#chosen[@]} files"
echo "ok: 10 programs, ${#files[@]} profiles"
