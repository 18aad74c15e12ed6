# SPDX-License-Identifier: MIT
"""test_view.py - the page of `heapprof view` in headless Chromium: clicks, searches, switches the sample type, and compares every
number with `heapprof top --json`. Arguments: the heapprof binary, and optionally a folder that keeps the screenshots."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser as web
from profile_maker import FOUR, HOSTILE, Maker, MODULES, random_profile, reconcile, wide_profile

HEAPPROF = "heapprof"
SHOTS = None

READ_TABLE = """
  const out = new Map(), scroll = document.getElementById('table-scroll');
  for (let top = 0; ; top += 200) {
    scroll.scrollTop = top; window.heapprof.table.draw();
    for (const row of document.querySelectorAll('#table-rows .row')) {
      const line = {};
      out.set(window.heapprof.m.name[row.dataset.frame], line);
      for (const cell of row.querySelectorAll('span[data-column]')) line[cell.dataset.column] = Number(cell.dataset.value);
    }
    if (top > scroll.scrollHeight) return [...out];
  }"""


def heapprof(*arguments):
    return subprocess.run([HEAPPROF, *map(str, arguments)], check=True, capture_output=True).stdout


def top(*arguments):
    return json.loads(heapprof("top", "--json", "-n", "0", *arguments))


def visible(name):
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]",
                  lambda m: "\\x%02x" % ord(m[0]) if ord(m[0]) < 256 else "\\u%x" % ord(m[0]), name)


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.dir = pathlib.Path(cls.folder.name)
        maker = random_profile(1)
        maker.comments = ["heapprof 0.1.0", reconcile(maker.totals[3])]
        maker.write(cls.dir / "new.pb.gz")
        random_profile(1, scale=0.7).write(cls.dir / "old.pb.gz")
        heapprof("view", "-o", cls.dir / "one.html", cls.dir / "new.pb.gz")
        heapprof("view", "-o", cls.dir / "two.html", cls.dir / "old.pb.gz", cls.dir / "new.pb.gz")
        cls.b = web.Browser(1440, 900)

    @classmethod
    def tearDownClass(cls):
        cls.b.close()
        cls.folder.cleanup()

    def setUp(self):
        self.b.log("browser")
        self.b.open(self.dir / "one.html")

    def tearDown(self):
        if SHOTS:
            self.b.screenshot(os.path.join(SHOTS, self.id().split(".")[-1] + ".png"))
        self.assertEqual([], [entry["message"] for entry in self.b.log("browser")], "the console is not empty")

    def table(self):
        if self.b.run("return window.heapprof.tab") != "table":
            self.b.click("#tab-table")
        return dict(self.b.run(READ_TABLE))

    def compare(self, shown, report):
        self.assertEqual({visible(r["function"]) for r in report["rows"] if r["cum"] or r["flat"]}, set(shown))
        for row in report["rows"]:
            if not (row["cum"] or row["flat"]):
                continue
            line = shown[visible(row["function"])]
            self.assertEqual(row["flat"], line["flat"])
            self.assertEqual(row["cum"], line["cum"])
            for page, said in (("flatSe", "flat_error"), ("cumSe", "cum_error")):
                self.assertAlmostEqual(row[said], line[page], delta=1e-4 * row[said] + 1e-9)

    def test_each_sample_type_shows_the_numbers_of_top(self):
        for kind, _ in FOUR:
            self.b.click(f"#types button[data-type={kind}]")
            report = top("--type", kind, self.dir / "new.pb.gz")
            self.compare(self.table(), report)
            self.assertEqual(str(report["total"]), self.b.run("return document.getElementById('total').dataset.value"))

    def test_lines_show_the_numbers_of_top_lines(self):
        heapprof("view", "--lines", "-o", self.dir / "lines.html", self.dir / "new.pb.gz")
        self.b.open(self.dir / "lines.html")
        report = top("--lines", self.dir / "new.pb.gz")
        flats = self.b.run("return [...window.heapprof.s.fn.flat].filter((v) => v)")
        self.assertEqual(sorted(r["flat"] for r in report["rows"] if r["flat"]), sorted(flats))

    def test_click_zooms_and_escape_goes_back(self):
        name = self.b.run("const p = window.heapprof; return p.m.name[p.m.frame[p.s.child[p.m.childStart[3]]]]")
        box = self.b.run("const p = window.heapprof; return p.flame.boxOf(p.s.child[p.m.childStart[3]])")
        self.b.pointer(box["x"] + box["w"] / 2, box["y"] + 8)
        self.b.wait("return window.heapprof.flame.to - window.heapprof.flame.from === window.heapprof.s.weight[window.heapprof.flame.zoomed]")
        self.assertEqual(name, self.b.run("return document.querySelector('#crumbs .here').textContent"))
        self.assertEqual(name, self.b.run("return document.querySelector('#detail h2').textContent"))
        width = self.b.run("const p = window.heapprof; return [p.flame.boxOf(p.flame.zoomed).w, p.flame.w]")
        self.assertLess(abs(width[0] - width[1]), 2)
        self.b.keys(web.KEYS["escape"])
        self.assertTrue(self.b.run("return document.getElementById('detail').hidden"))
        self.b.keys(web.KEYS["escape"])
        self.assertEqual("main", self.b.run("return document.querySelector('#crumbs .here').textContent"))
        self.b.click("#crumbs button")
        self.assertEqual(0, self.b.run("return window.heapprof.flame.zoomed"))

    def test_callers_and_callees_are_those_of_top_tree(self):
        report = top("--tree", self.dir / "new.pb.gz")
        self.b.click("#tab-table")
        for row in report["rows"][:12]:
            shown = self.b.run("""
              const p = window.heapprof, f = p.m.byName.get(arguments[0]); p.choose(f, false);
              const n = neighbours(p.m, p.s, f), words = (list) => list.filter((e) => e.frame >= 0 && e.value).map((e) => [p.m.name[e.frame], e.value]);
              return [words(n.callers), words(n.callees), document.querySelectorAll('#detail .edge').length]""", visible(row["function"]))
            for said, page in (("callers", shown[0]), ("callees", shown[1])):
                expected = sorted((visible(e["function"]), e["value"]) for e in row[said] if e["value"])
                self.assertEqual(expected, sorted((n, v) for n, v in page))
            self.assertGreater(shown[2], 0)

    def test_search_counts_the_stacks_that_match(self):
        for query, focus in (("catalog", "[cC][aA][tT][aA][lL][oO][gG]"), ("quoted", "quoted")):
            report = json.loads(heapprof("top", "--json", "--focus", focus, self.dir / "new.pb.gz"))
            # focus also looks at file and library names, the page at functions: leave those out here
            rows = top("--focus", focus, self.dir / "new.pb.gz")["rows"]
            self.b.keys("/")
            self.b.keys(query)
            self.b.wait("return document.getElementById('matched').textContent && window.heapprof.query === arguments[0]", query)
            shown = self.b.run("return {...document.getElementById('matched').dataset}")
            self.assertLessEqual(int(shown["cum"]), report["shown_total"])
            flat = sum(r["flat"] for r in top(self.dir / "new.pb.gz")["rows"] if query in r["function"].lower())
            self.assertEqual(flat, int(shown["flat"]))
            self.assertEqual(sum(query in r["function"].lower() for r in self.all_names()), int(shown["functions"]))
            self.assertGreater(len(rows), 0)
            self.b.keys(web.KEYS["escape"])
            self.assertEqual("", self.b.run("return window.heapprof.query"))

    def all_names(self):
        return [{"function": name} for name in self.b.run("return window.heapprof.m.name")]

    def test_search_totals_equal_focus_for_a_function_name(self):
        name = "__proto__"
        report = top("--focus", "^__proto__$", self.dir / "new.pb.gz")
        self.b.keys("/")
        self.b.keys("^__proto__$")
        self.b.click("#regex")
        self.b.wait("return window.heapprof.query === '^__proto__$' && window.heapprof.isRegex")
        self.assertEqual(str(report["shown_total"]), self.b.run("return document.getElementById('matched').dataset.cum"))
        self.b.click("#only")
        self.assertEqual(report["shown_total"], self.b.run("return window.heapprof.s.cum[0]"))
        self.assertEqual([name], list(self.table()))

    def test_a_bad_expression_is_said_and_harms_nothing(self):
        self.b.keys("/")
        self.b.keys("(")
        self.b.click("#regex")
        self.b.wait("return document.getElementById('matched').textContent === 'not an expression'")
        self.assertEqual(self.b.run("return window.heapprof.s.total"), self.b.run("return window.heapprof.s.cum[0]"))

    def test_hostile_names_are_text(self):
        shown = self.table()
        for name in HOSTILE:
            self.assertTrue(visible(name) in shown, name)
        self.assertEqual(2, self.b.run("return document.scripts.length"))
        text = (self.dir / "one.html").read_text()
        self.assertNotIn("alert(1)", text)
        self.assertEqual(2, text.count("</script>"))

    def test_a_hostile_file_name_is_escaped(self):
        path = self.dir / "<img src=x onerror=alert(1)>.pb.gz"
        Maker().write(path)
        heapprof("view", "-o", self.dir / "name.html", path)
        self.assertNotIn("<img", (self.dir / "name.html").read_text())
        self.b.open(self.dir / "name.html")
        self.assertIn("<img", self.b.run("return document.title"))

    def test_nothing_is_loaded_and_nothing_may_be(self):
        self.b.log("performance")
        self.b.open(self.dir / "one.html")
        urls = [json.loads(e["message"])["message"] for e in self.b.log("performance")]
        urls = [u["params"]["request"]["url"] for u in urls if u["method"] == "Network.requestWillBeSent"]
        self.assertTrue(all(u.startswith(("file:", "data:", "blob:")) for u in urls), urls)
        blocked = self.b.run("""
          const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);
          return window.ran === undefined""")
        self.assertTrue(blocked)
        self.assertTrue(any("Content Security Policy" in e["message"] for e in self.b.log("browser")))

    def test_two_files_are_compared(self):
        self.b.open(self.dir / "two.html")
        shown = self.table()
        old = {r["function"]: r for r in top(self.dir / "old.pb.gz")["rows"]}
        new = {r["function"]: r for r in top(self.dir / "new.pb.gz")["rows"]}
        for name in set(old) | set(new):
            before, after = old.get(name, {"flat": 0, "cum": 0}), new.get(name, {"flat": 0, "cum": 0})
            if not any((before["flat"], before["cum"], after["flat"], after["cum"])):
                continue
            line = shown[visible(name)]
            self.assertEqual(after["flat"] - before["flat"], line["change"])
            self.assertEqual(after["cum"] - before["cum"], line["cumChange"])
        changes = self.b.run("return [...document.querySelectorAll('#table-rows .row span[data-column=change]')].map((e) => Math.abs(e.dataset.value))")
        self.assertEqual(sorted(changes, reverse=True), changes)

    def test_a_profile_against_itself_has_no_colour(self):
        heapprof("view", "-o", self.dir / "same.html", self.dir / "new.pb.gz", self.dir / "new.pb.gz")
        self.b.open(self.dir / "same.html")
        self.assertEqual(1, self.b.run("const p = window.heapprof; return new Set([...p.m.frame.keys()].map((i) => p.flame.colourOf(i).fill)).size"))
        self.assertEqual([], [name for name, line in self.table().items() if line["change"] or line["cumChange"]])

    def test_keys(self):
        page = lambda what: self.b.run("return window.heapprof." + what)
        self.b.keys(web.KEYS["down"] * 4)
        self.assertEqual(4, self.b.run("const p = window.heapprof; return p.m.depth[p.flame.picked]"))
        self.b.keys(web.KEYS["right"])
        self.assertEqual(4, self.b.run("const p = window.heapprof; return p.m.depth[p.flame.picked]"))
        self.b.keys(web.KEYS["enter"])
        self.assertEqual(page("flame.picked"), page("flame.zoomed"))
        self.assertNotEqual(0, page("flame.zoomed"))
        self.b.keys("t")
        self.assertEqual("table", page("tab"))
        self.b.keys(web.KEYS["down"] * 2)
        self.assertEqual("true", self.b.run("return document.querySelectorAll('#table-rows .row')[1].getAttribute('aria-selected')"))
        self.b.keys("t")
        before = page("type")
        self.b.keys("y")
        self.assertEqual((before + 1) % 4, page("type"))
        self.b.keys("i")
        self.assertFalse(page("flame.rootAtTop"))
        self.b.keys("?")
        self.assertTrue(self.b.run("return document.getElementById('help').open"))
        self.b.keys(web.KEYS["escape"])
        self.assertFalse(self.b.run("return document.getElementById('help').open"))

    def test_the_root_goes_to_the_bottom_and_points_still_hit(self):
        self.b.keys("i")
        hit = self.b.run("""
          const p = window.heapprof, out = [];
          for (let i = 0; i < p.m.nodeCount; i++) {
            const box = p.flame.boxOf(i);
            if (box && box.w > 4) out.push(p.flame.nodeAt(box.x + box.w / 2, box.y + 10) === i);
          }
          return [out.length > 20, out.every((x) => x)]""")
        self.assertEqual([True, True], hit)

    def test_dark_and_light(self):
        background = "return getComputedStyle(document.body).backgroundColor"
        self.b.run("localStorage.clear()")
        light = self.b.run(background)
        self.b.keys("d")
        dark = self.b.run(background)
        self.assertNotEqual(light, dark)
        self.b.open(self.dir / "one.html")
        self.assertEqual(dark, self.b.run(background), "the choice is kept")
        self.b.keys("d")
        self.assertEqual(light, self.b.run(background))
        self.b.run("localStorage.clear()")

    def test_the_resident_set_is_split_into_its_parts(self):
        keys = self.b.run("return [...document.querySelectorAll('#rss .track i')].map((i) => Number(i.dataset.value))")
        live = top(self.dir / "new.pb.gz")["total"]
        self.assertEqual(live, keys[0])
        self.assertEqual(live * 151 // 100 + 18500000, sum(keys))
        self.assertEqual("allocator's figures 42 s older", self.b.run("return document.querySelector('#rss .age').textContent"))

    def test_hover_tells_the_numbers_of_the_box(self):
        box = self.b.run("return window.heapprof.flame.boxOf(3)")
        self.b.pointer(box["x"] + 40, box["y"] + 8, click=False)
        self.b.wait("return !document.getElementById('tip').hidden")
        self.assertEqual("main", self.b.run("return document.querySelector('#tip b').textContent"))

    def test_a_hundred_thousand_rows(self):
        wide_profile(100000).write(self.dir / "wide.pb.gz")
        heapprof("view", "-o", self.dir / "wide.html", self.dir / "wide.pb.gz")
        self.assertLess((self.dir / "wide.html").stat().st_size, 4 << 20)
        self.b.open(self.dir / "wide.html")
        self.b.click("#tab-table")
        rows = self.b.run("return window.heapprof.table.order.length")
        self.assertGreater(rows, 80000)
        self.b.keys("\ue010")  # End
        self.assertEqual(str(rows), self.b.run("return [...document.querySelectorAll('#table-rows .row')].pop().getAttribute('aria-rowindex')"))
        self.assertLess(self.b.run("return document.querySelectorAll('#table-rows .row').length"), 100)
        self.b.keys("/")
        self.b.keys("widget12345:")
        self.b.wait("return window.heapprof.query === 'widget12345:'")
        self.assertEqual(1, self.b.run("return window.heapprof.table.order.length"))

    def test_profiles_of_any_shape_open(self):
        empty = Maker()
        empty.write(self.dir / "empty.pb.gz")
        odd = Maker(types=[("samples", "count")], period=0)
        odd.add([("a", MODULES[0])], [5])
        odd.add([], [3])
        odd.add([("deep", MODULES[0])] * 5000, [2])
        odd.write(self.dir / "odd.pb.gz")
        negative = Maker()
        negative.add([("a", MODULES[0]), ("b", MODULES[0])], [0, 0, -3, -300])
        negative.add([("a", MODULES[0])], [0, 0, 9, 9 << 40])
        negative.write(self.dir / "negative.pb.gz")
        for name, total in (("empty", 0), ("odd", 10), ("negative", (9 << 40) - 300)):
            heapprof("view", "-o", self.dir / "shape.html", self.dir / f"{name}.pb.gz")
            self.b.open(self.dir / "shape.html")
            self.assertEqual(total, self.b.run("return window.heapprof.s.total"), name)
            self.b.click("#tab-table")
        self.assertEqual([], [e["message"] for e in self.b.log("browser")])

    def test_trend_charts_name_the_leak(self):
        paths = leak_series(self.dir)
        report = json.loads(heapprof("trend", "--json", *paths))
        self.assertEqual(1, report["suspects"])
        self.assertEqual("remember", report["rows"][0]["stack"][0]["function"])
        heapprof("view", "--trend", "-o", self.dir / "trend.html", *paths)
        self.b.open(self.dir / "trend.html")
        self.b.click("#tab-trend")
        first = self.b.run("""const x = document.querySelector('#trend .series');
          return [x.classList.contains('suspect'), x.querySelector('li').textContent, document.querySelectorAll('#trend .suspect').length]""")
        self.assertEqual([True, "remember", 1], first)


def leak_series(folder):
    """20 dumps, exact: one stack that grows by about 60 blocks a dump, one that fills up, one that stays."""
    paths = []
    for k in range(20):
        maker = Maker(period=1, time_nanos=1_790_000_000_000_000_000 + k * 60 * 10 ** 9)
        for name, blocks in (("remember", 60 * k + k * k % 7), ("fill", round(5000 * (1 - 2.0 ** -k))), ("keep", 3000 + k * k * 31 % 97)):
            maker.add([("main", MODULES[0]), (name, MODULES[4])], [blocks, blocks * 1000, blocks, blocks * 1000])
        path = folder / f"series{k:02}.pb.gz"
        maker.write(path)
        paths.append(path)
    return paths


if __name__ == "__main__":
    if not web.available():
        print("chromium and chromedriver are not installed: skipped")
        sys.exit(77)
    HEAPPROF = sys.argv[1]
    SHOTS = sys.argv[2] if len(sys.argv) > 2 and os.path.isdir(sys.argv[2]) else None
    unittest.main(argv=[sys.argv[0], *[a for a in sys.argv[2:] if not os.path.isdir(a)]])
