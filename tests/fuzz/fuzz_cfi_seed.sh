#!/bin/sh
# fuzz_cfi_seed.sh OUT-DIRECTORY OBJECT... - seeds for fuzz_cfi: the tables of real objects, looked up at some of their functions,
# and their headers. Objects whose tables exceed 60 KB are left out.
set -eu
out=$1
shift
mkdir -p "$out"
for object in "$@"; do
  python3 - "$object" "$out" <<'PYTHON'
import os, struct, sys
path, out = sys.argv[1:]
data = open(path, "rb").read()
name = os.path.basename(path)
phoff, = struct.unpack_from("<Q", data, 32)
phentsize, phnum = struct.unpack_from("<HH", data, 54)
headers = [struct.unpack_from("<IIQQQQQQ", data, phoff + i * phentsize) for i in range(phnum)]
eh = next((h for h in headers if h[0] == 0x6474E550), None)
if eh is None or len(data) > 2_000_000:
    sys.exit()
load = next(h for h in headers if h[0] == 1 and h[2] <= eh[2] < h[2] + h[5])
segment = data[eh[2]: load[2] + load[5]]
if len(segment) < 60000:
    count, = struct.unpack_from("<I", segment, 8)
    for at in range(0, count, max(1, count // 6)):
        start, = struct.unpack_from("<i", segment, 12 + 8 * at)
        body = struct.pack("<BiH", 0, start + 9, 0) + segment
        open(f"{out}/{name}.{at}", "wb").write(body)
open(f"{out}/{name}.headers", "wb").write(struct.pack("<BiH", 1, 0, eh[2] % 60000) + data[:8192])
PYTHON
done
