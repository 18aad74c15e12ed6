# SPDX-License-Identifier: MIT
"""profile_maker.py - writes pprof profiles for the tests of the page, of trend and of serve; only Python's standard library.

A profile is a list of (stack, values, labels): a stack is root first, a frame (function, module) or (function, module, file, line)."""
import gzip
import random
import zlib


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n) if n else b""


def chunk(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field, numbers):
    return chunk(field, b"".join(varint(n) for n in numbers))


FOUR = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]


class Maker:
    def __init__(self, types=FOUR, period=524288, time_nanos=1_790_000_000_000_000_000, duration_nanos=0, comments=(), default=None):
        self.types, self.period, self.time_nanos, self.duration_nanos = types, period, time_nanos, duration_nanos
        self.comments, self.default = comments, default or types[-1][0]
        self.strings, self.functions, self.modules, self.locations = {"": 0}, {}, {}, {}
        self.samples = bytearray()
        self.totals = [0] * len(types)

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def location(self, frame):
        name, module, file, line = (tuple(frame) + ("", 0))[:4] if len(frame) < 4 else frame
        mapping = self.modules.setdefault(module, len(self.modules) + 1)
        function = self.functions.setdefault((name, file), len(self.functions) + 1)
        return self.locations.setdefault((function, mapping, line), len(self.locations) + 1)

    def add(self, stack, values, labels=()):
        ids = [self.location(frame) for frame in reversed(stack)]
        self.totals = [a + b for a, b in zip(self.totals, values)]
        text = b"".join(chunk(3, number(1, self.string(k)) + number(2, self.string(v))) for k, v in labels)
        self.samples += chunk(2, packed(1, ids) + packed(2, values) + text)

    def function_key(self, function):
        return list(self.functions)[function - 1] if len(self.functions) < 5000 else function

    def bytes(self):
        out = bytearray()
        for kind, unit in self.types:
            out += chunk(1, number(1, self.string(kind)) + number(2, self.string(unit)))
        out += self.samples
        for module, i in self.modules.items():
            base = 0x400000 + i * 0x10000000
            out += chunk(3, number(1, i) + number(2, base) + number(3, base + 0x8000000) + number(5, self.string(module))
                         + number(6, self.string("%040x" % (i * 7919))))
        for (function, mapping, line), i in self.locations.items():
            line_message = chunk(4, number(1, function) + number(2, line)) if function else b""
            place = zlib.crc32(f"{self.function_key(function)} {line}".encode()) & 0x7FFFFF0  # the same in every profile
            out += chunk(4, number(1, i) + number(2, mapping) + number(3, 0x400000 + mapping * 0x10000000 + place) + line_message)
        for (name, file), i in self.functions.items():
            out += chunk(5, number(1, i) + number(2, self.string(name)) + number(4, self.string(file)))
        out += number(9, self.time_nanos) + number(10, self.duration_nanos)
        out += chunk(11, number(1, self.string("space")) + number(2, self.string("bytes"))) + number(12, self.period)
        if self.comments:
            out += packed(13, [self.string(c) for c in self.comments])
        out += number(14, self.string(self.default))
        for text in self.strings:
            out += chunk(6, text.encode("utf-8", "surrogateescape"))
        return bytes(out)

    def write(self, path):
        with open(path, "wb") as f:
            f.write(gzip.compress(self.bytes(), 6))


HOSTILE = ["</script><script>alert(1)</script>", "\"quoted\" 'name' & <b>bold</b>", "line\u2028separator\u2029", "tab\tnew\nline",
           "${x}`backtick`", "<!-- comment -->", "]]>", "@DATA@", "__proto__", "constructor", "名前::関数"]

MODULES = ["/usr/bin/shopd", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
           "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0.8.6", "/opt/shop/libcatalog.so", "/opt/shop/libsearch.so.2",
           "/usr/lib/x86_64-linux-gnu/libz.so.1.2.13", "/usr/lib/x86_64-linux-gnu/libc.so.6"]
WORDS = ["parse", "index", "Catalog", "Session", "cache", "render", "Query", "Buffer", "Router", "encode", "Image", "Cart", "price",
         "token", "Store", "Json", "Row", "merge", "plan", "Page", "lookup", "insert", "flush", "Snapshot", "resize", "Header"]


def function_name(rng):
    kind = rng.random()
    a, b, c = rng.choice(WORDS), rng.choice(WORDS), rng.choice(WORDS)
    if kind < 0.4:
        return f"shop::{a}{b}::{c.lower()}(std::string_view, unsigned long)"
    if kind < 0.6:
        return f"std::vector<shop::{a}{b}, std::allocator<shop::{a}{b}>>::_M_realloc_insert<shop::{a}{b} const&>"
    if kind < 0.8:
        return f"{a.lower()}_{b.lower()}_{c.lower()}"
    return f"<{a.lower()}::{b} as core::iter::Iterator>::{c.lower()}"


def random_profile(seed, stacks=600, functions=220, depth=18, scale=1.0, **options):
    """A profile like a server's: a few hot paths, a long tail, hostile names among the functions, recursion."""
    rng = random.Random(seed)
    made = [(function_name(rng), MODULES[min(int(rng.expovariate(0.7)), len(MODULES) - 1)], f"src/{rng.choice(WORDS).lower()}.cc", rng.randrange(1, 900))
            for _ in range(functions)]
    for i, name in enumerate(HOSTILE):
        made[20 + i] = (name, made[20 + i][1], "src/hostile.cc", i + 1)
    maker = Maker(**options)
    maker.modules[MODULES[0]] = 1
    start = [("_start", MODULES[0]), ("__libc_start_main", MODULES[7]), ("main", MODULES[0], "src/main.cc", 42)]
    paths = []
    for _ in range(stacks):
        stack = list(rng.choice(paths)) if paths and rng.random() < 0.85 else list(start)
        keep = rng.randrange(3, max(4, len(stack))) if len(stack) > 3 else 3
        stack = stack[:keep]
        while len(stack) < depth and rng.random() < 0.86:
            stack.append(made[min(int(rng.expovariate(3.0 / functions * 2)), functions - 1)])
        paths.append(stack)
        size = int(2 ** rng.uniform(4, 21))
        count = max(1, int(min(rng.paretovariate(0.8), 50) * 6 * scale * 65536 / (size + 4096)))
        live = int(count * rng.random() ** 2)
        period = maker.period
        if period > 1:
            import math
            weight = 1 / -math.expm1(-size / period)
            count, live = sampled(rng, count, weight), sampled(rng, live, weight)
            live = min(live, count)
            values = [round(count * weight), round(count * weight * size), round(live * weight), round(live * weight * size)]
        else:
            values = [count, count * size, live, live * size]
        if values[0]:
            maker.add(stack, values)
    return maker


def sampled(rng, count, weight):
    mean = count / weight
    if mean > 50:
        return max(0, round(rng.gauss(mean, mean ** 0.5)))
    n, left = 0, rng.expovariate(1)
    while left < mean:
        n += 1
        left += rng.expovariate(1)
    return n


def reconcile(live):
    """The comment line the library writes, for a process with these bytes live."""
    return (f"heapprof.reconcile inuse_bytes={live} inuse_se={live // 90} allocator=glibc allocator_inuse_bytes={live * 112 // 100} "
            f"allocator_free_bytes={live // 9} allocator_mmap_bytes={live // 20} rss_anon_bytes={live * 151 // 100} "
            f"rss_file_bytes=18500000 profiler_bytes=6100000 allocator_figures_age_seconds=42")


def wide_profile(rows):
    """One function a row: for the table at 100 000 rows."""
    rng = random.Random(5)
    maker = Maker()
    for i in range(rows):
        name = f"ns{i % 97}::Widget{i}::allocate_part_{rng.randrange(10 ** 6)}(int)"
        maker.add([("main", MODULES[0]), (f"dispatch_{i % 500}", MODULES[4]), (name, MODULES[i % 8])], [i % 50 + 1, (i % 50 + 1) * 600000, i % 7, (i % 7) * 600000])
    return maker
