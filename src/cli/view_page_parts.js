/* SPDX-License-Identifier: MIT
 * view_page_parts.js - what the page shows around flame graph and table: resident set, total, legend, crumbs, tooltip, the
 * panel of a function, help. Page (view_page.js) says when; every text of the profile is set by textContent.
 */

const $ = (id) => document.getElementById(id);

const HELP_KEYS = [
  ["/", "search"], ["← ↑ → ↓", "move through boxes or rows"],
  ["Enter", "zoom to the box; in the table, show it in the flame graph"], ["Esc", "one step back: query, panel, zoom"],
  ["t", "next view: flame graph, table, trend"], ["y", "next sample type"], ["i", "root at the top or at the bottom"],
  ["r", "regular expression on or off"], ["o", "only stacks with a match"], ["d", "dark or light"], ["?", "this help"]
];

const HELP_READING = [
  "A box is a function; what it called lies beyond it, away from the root. Its width is the memory of all stacks through " +
      "it; colour tells the library.",
  "Flat: allocated by the function itself. Cum: by it and all it called, each stack once. The figure after ± is the " +
      "standard error of sampling; the truth is nearly always within twice that.",
];

class PageParts {
  /* The resident set as one bar; parts that the profile does not state are left out. */
  drawRss(r) {
    if (!r) return;
    const live = r.inuse_bytes, anon = r.rss_anon_bytes;
    if (!(live >= 0) || !(anon > 0)) return;
    const profiler = r.profiler_bytes > 0 ? r.profiler_bytes : 0;
    const held =
        r.allocator_inuse_bytes >= 0 ? Math.max(0, r.allocator_inuse_bytes + (r.allocator_free_bytes || 0) - live) : -1;
    const room = Math.max(0, anon - live - profiler);
    const over = held >= 0 ? Math.min(held, room) : 0;
    const parts = [
      ["live", "live blocks", live, r.inuse_se], ["over", "allocator overhead and free lists", over],
      ["prof", "profiler", profiler], ["out", held >= 0 ? "outside malloc" : "overhead and outside malloc", room - over],
      ["file", "files mapped", r.rss_file_bytes || 0]
    ].filter((p) => p[2] > 0);
    const track = make("div", "track");
    const keys = parts.map(([id, text, value, se]) => {
      const bar = make("i", "rss-" + id);
      bar.style.flex = `${value} 1 0`;
      bar.dataset.value = value;
      bar.title = text + ": " + formatValue(value, "bytes");
      track.append(bar);
      const key = make("span", "key");
      key.append(
          make("i", "rss-" + id), make("b", "", formatValue(value, "bytes")),
          (se > 0 ? " ± " + formatValue(se, "bytes") : "") + " " + text);
      return key;
    });
    const sum = make("span", "key");
    sum.append("resident ", make("b", "", formatValue(anon + (r.rss_file_bytes || 0), "bytes")));
    sum.title = "What the kernel counts as the process's memory, and where it is" +
        (r.allocator ? "; allocator: " + r.allocator : "");
    const age = r.allocator_figures_age_seconds;
    if (held >= 0 && age > 0) keys.push(make("span", "key age", `allocator's figures ${formatValue(age, "seconds")} s older`));
    $("rss").replaceChildren(sum, track, ...keys);
    $("rss").hidden = false;
  }

  drawTotal() {
    const {s} = this, total = $("total");
    const parts = [make("b", "", formatValue(s.total, this.unit))];
    parts.push(make("span", "pm", s.totalSe > 0 ? "± " + formatValue(s.totalSe, this.unit) : ""));
    if (this.m.isDiff)
      parts.push(make("span", s.total >= s.totalBase ? "grow" : "shrink", formatChange(s.total - s.totalBase, this.unit)));
    total.replaceChildren(...parts);
    total.title = this.m.types[this.type].type + ": estimate ± its standard error";
    total.dataset.value = s.total;
  }

  drawLegend() {
    const {m, s} = this;
    if (m.isDiff || s.signed) {
      const ramp = make("span", "ramp"), canvas = make("canvas");
      canvas.width = 140;
      canvas.height = 8;
      const c = canvas.getContext("2d");
      for (let x = 0; x < 140; x++) {
        c.fillStyle = changeFill((x - 70) / 70, this.dark, false).fill;
        c.fillRect(x, 0, 1, 8);
      }
      ramp.append(
          "gone", canvas, "new",
          make(
              "span", "",
              "grey: unchanged, or within two standard errors; a box is as wide as the larger of before and after"));
      $("legend").replaceChildren(ramp);
      return;
    }
    const share = new Map();
    for (let f = 0; f < m.frameCount; f++)
      if (s.fn.flat[f] && m.module[f]) share.set(m.module[f], (share.get(m.module[f]) || 0) + s.fn.flat[f]);
    $("legend").replaceChildren(...[...share].sort((a, b) => b[1] - a[1]).slice(0, 7).map(([module, flat]) => {
      const key = make("span", "key"), dot = make("i");
      dot.style.background = this.dotOfModule(module);
      key.append(dot, module + " " + formatShare(flat, s.total));
      key.title = "allocated directly by functions of " + module;
      return key;
    }));
  }

  dotOfModule(module) {
    const hue = this.flame.hues.get(module);
    return hue === undefined || hue < 0 ? (this.dark ? "#6d7682" : "#b3b8bf") : colourHex(this.dark ? 0.62 : 0.7, 0.12, hue);
  }
  dotOf(f) { return this.dotOfModule(this.m.module[f]); }

  drawCrumbs() {
    const {m} = this, path = [];
    for (let i = this.flame.zoomed; i >= 0; i = m.parent[i]) path.unshift(i);
    const text = (i) => (i === 0 ? "all" : m.name[m.frame[i]]);
    let shown = path;
    if (path.length > 6) shown = [path[0], -1, ...path.slice(-4)];
    const parts = [];
    shown.forEach((i, k) => {
      if (k > 0) parts.push(make("span", "sep", "›"));
      if (i < 0) {
        parts.push(make("span", "sep", "…"));
        return;
      }
      if (k === shown.length - 1) {
        parts.push(make("span", "here", text(i)));
        return;
      }
      const b = make("button", "", text(i));
      b.type = "button";
      b.title = text(i);
      b.addEventListener("click", () => this.zoom(i));
      parts.push(b);
    });
    $("crumbs").replaceChildren(...parts);
  }

  fillTip(tip, node) {
    const {m, s} = this, f = m.frame[node];
    tip.dataset.node = node;
    tip.dataset.type = this.type;
    tip.replaceChildren(make("b", "", node === 0 ? "all stacks" : m.name[f]));
    const where = node === 0 ? "" : [m.module[f], m.place[f]].filter(Boolean).join(" · ");
    if (where) tip.append(make("div", "where", where));
    const list = make("dl");
    const line = (label, value, se, share) => list.append(
        make("dt", "", label), make("dd", "", value), make("dd", "pm", se > 0 ? "± " + formatValue(se, this.unit) : ""),
        make("dd", "", share));
    if (m.isDiff) {
      line("before", formatValue(s.cumBase[node], this.unit), 0, "");
      line("after", formatValue(s.cum[node], this.unit), 0, "");
      line(
          "change", formatChange(s.cum[node] - s.cumBase[node], this.unit), s.se[node],
          s.cumBase[node] ? formatChange(100 * (s.cum[node] / s.cumBase[node] - 1), "").replace(/\..*/, "") + "%" : "new");
    } else {
      line("here and below", formatValue(s.cum[node], this.unit), s.se[node], formatShare(s.cum[node], s.total));
      line("here itself", formatValue(s.self[node], this.unit), 0, formatShare(s.self[node], s.total));
    }
    tip.append(list);
  }

  say(node) {
    const {m, s} = this;
    $("say").textContent = (node === 0 ? "all" : m.name[m.frame[node]]) + ", " + formatValue(s.cum[node], this.unit) + ", " +
        formatShare(s.cum[node], s.total);
  }

  drawDetail() {
    const f = this.chosen, panel = $("detail"), {m} = this;
    const wasHidden = panel.hidden;
    panel.hidden = f < 0;
    if (wasHidden !== panel.hidden) {
      this.flame.resize();
      this.table.draw();
    }
    if (f < 0) return;
    const close = make("button", "close", "×");
    close.type = "button";
    close.title = "Close (Esc)";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => {
      this.chosen = -1;
      this.drawDetail();
      this.focusView();
    });
    panel.replaceChildren(close, make("h2", "", m.name[f]));
    const where = [m.module[f], m.place[f]].filter(Boolean).join(" · ");
    if (where) panel.append(make("p", "where", where));
    panel.append(this.detailFigures(f));
    const near = neighbours(m, this.s, f);
    panel.append(
        make("h3", "", "Callers"), ...this.edges(near.callers, f), make("h3", "", "Callees"),
        ...this.edges(near.callees, f));
  }

  detailFigures(f) {
    const {m} = this, table = make("table"), head = make("tr");
    head.append(
        make("th", "", ""), make("th", "", m.isDiff ? "Flat change" : "Flat"),
        make("th", "", m.isDiff ? "Cum change" : "Cum"));
    table.append(head);
    m.types.forEach((t, i) => {
      const s = sumsOf(m, i, this.hits || null, this.only), fn = s.fn;
      const row = make("tr", i === this.type ? "now" : "");
      const cell = (value, se) => {
        const td = make("td", "", value);
        if (se > 0) td.append(make("small", "", "± " + formatValue(se, t.unit)));
        return td;
      };
      row.append(make("td", "", t.type));
      if (m.isDiff)
        row.append(
            cell(formatChange(fn.flat[f] - fn.flatBase[f], t.unit), fn.flatSe[f]),
            cell(formatChange(fn.cum[f] - fn.cumBase[f], t.unit), fn.cumSe[f]));
      else
        row.append(cell(formatValue(fn.flat[f], t.unit), fn.flatSe[f]), cell(formatValue(fn.cum[f], t.unit), fn.cumSe[f]));
      table.append(row);
    });
    return table;
  }

  edges(list, f) {
    if (list.length === 0) return [make("p", "none", "none")];
    const whole = Math.max(...list.map((e) => Math.abs(e.value)), Math.abs(this.s.fn.cum[f]), 1);
    return list.slice(0, 40).map((e) => {
      const b = make("button", "edge"), top = make("span", "top"), line = make("span", "line");
      b.type = "button";
      top.append(
          make("span", "n", e.frame < 0 ? "program start" : this.m.name[e.frame]),
          make("span", "v", formatValue(e.value, this.unit)));
      line.style.width = (100 * Math.abs(e.value)) / whole + "%";
      b.append(top, line);
      b.title = e.frame < 0 ? "" : this.m.name[e.frame];
      b.dataset.value = e.value;
      if (e.frame >= 0)
        b.addEventListener("click", () => {
          if (this.tab === "table") {
            this.chosen = e.frame;
            this.table.show(e.frame);
            this.drawDetail();
          } else this.choose(e.frame, true);
        });
      return b;
    });
  }

  help() {
    const box = $("help"), list = make("dl");
    for (const [keys, text] of HELP_KEYS) {
      const dt = make("dt");
      for (const k of keys.split(" ")) dt.append(make("kbd", "", k), " ");
      list.append(dt, make("dd", "", text));
    }
    box.replaceChildren(
        make("h2", "", "Keys"), list, make("h2", "", "Reading"),
        ...HELP_READING.map((text) => make("p", "", text)));
    box.onclick = (e) => {
      if (e.target === box) box.close();
    };
    box.showModal();
  }
}
