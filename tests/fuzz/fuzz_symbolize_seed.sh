#!/bin/sh
# SPDX-License-Identifier: MIT
# fuzz_symbolize_seed.sh OUT-DIRECTORY - seeds for fuzz_symbolize: one small library, in the shapes debug information comes in.
set -eu
out=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
cat >"$work/a.cc" <<'CODE'
namespace space {
template <class T> struct box { T value; __attribute__((always_inline)) T twice() const { return value + value; } };
static inline __attribute__((always_inline)) int inner(int n) { return box<int>{n}.twice() * 3; }
__attribute__((noinline)) int outer(int n) { return inner(n) + inner(n + 1); }
}
extern "C" int entry(int n) { struct local { static int f(int k) { return space::outer(k) + 1; } }; return local::f(n) + space::outer(n + 2); }
CODE

# seed NAME FILE: the places asked for, then the file.
seed() {
  { printf '\000\000\020\020\020\040\020\060\020\100\020\120\020\140\020\377\377'; cat "$2"; } >"$out/$1"
}

# build NAME COMPILER OPTION...
build() {
  name=$1
  shift
  (cd "$work" && "$@" -O1 -shared -fPIC -nostdlib -Wl,--build-id -Wl,-z,max-page-size=4096 a.cc -o "$name.so")
  seed "$name" "$work/$name.so"
}

build dwarf5 g++ -g -gdwarf-5
build dwarf4 g++ -g -gdwarf-4
build types g++ -g -gdwarf-4 -fdebug-types-section
build compressed g++ -g -gz
build macros g++ -g3
build gold g++ -g -fuse-ld=gold -Wl,--rosegment
build bare g++
if command -v clang++ >/dev/null; then build clang clang++ -g; fi
objcopy --only-keep-debug "$work/dwarf5.so" "$work/debug"
seed debug "$work/debug"
strip -o "$work/stripped" "$work/dwarf5.so"
seed stripped "$work/stripped"
(cd "$work" && g++ -g -O1 -c -fPIC a.cc -o object.o)
seed object "$work/object.o"
