/* SPDX-License-Identifier: MIT
 * view_page.js - wires the page of `heapprof view`: what is chosen (sample type, view, query, function), keys, side panel.
 * Comes last of the view_page_*.js files, which are joined into one script at build time. Every text of the profile reaches the
 * page by textContent or the canvas: nothing in it is ever markup. window.heapprof is for scripts and tests. */

const $ = (id) => document.getElementById(id);

const HELP_KEYS = [["/", "search"], ["← ↑ → ↓", "move through boxes or rows"], ["Enter", "zoom to the box; in the table, show it in the flame graph"],
  ["Esc", "one step back: query, panel, zoom"], ["t", "next view: flame graph, table, trend"], ["y", "next sample type"],
  ["i", "root at the top or at the bottom"], ["r", "regular expression on or off"], ["o", "only stacks with a match"], ["d", "dark or light"], ["?", "this help"]];

class Page {
  constructor(data) {
    this.m = buildModel(data);
    this.type = data.default_type;
    this.query = ""; this.isRegex = false; this.only = false; this.chosen = -1;
    this.flame = new Flame($("flame-canvas"), $("flame-scroll"), $("flame-height"));
    this.table = new Table($("table-head"), $("table-scroll"), $("table-rows"), (f, isFinal) => this.choose(f, isFinal));
    this.flame.setModel(this.m);
    this.table.setModel(this.m, (f) => this.dotOf(f));
    this.setTheme(storedTheme());
    this.buildHead();
    this.bind();
    if (data.trend) drawTrend(this.m, $("trend"), (f) => { this.setTab("flame"); this.choose(f, true); });
    this.setTab("flame");
    this.refresh();
  }

  get unit() { return this.m.types[this.type].unit; }

  buildHead() {
    const { files, data, isDiff } = { ...this.m, data: this.m.data };
    const last = files[files.length - 1];
    $("title").textContent = isDiff && !data.trend ? `${files[0].name} → ${last.name}` : data.program || last.name;
    const parts = [];
    if (last.time_ms) parts.push(new Date(last.time_ms).toISOString().slice(0, 19).replace("T", " ") + " UTC");
    if (last.duration_ms) parts.push("covers " + formatSpan(last.duration_ms));
    if (last.period > 1) parts.push("1 sample per " + formatValue(last.period, "bytes"));
    else if (last.period === 1) parts.push("every allocation");
    $("when").textContent = parts.join(" · ");
    $("when").title = last.comments.join("\n");
    const tab = (id, text) => {
      const b = make("button", "", text);
      b.type = "button"; b.id = "tab-" + id;
      b.setAttribute("role", "tab"); b.setAttribute("aria-controls", id);
      b.addEventListener("click", () => this.setTab(id));
      return b;
    };
    this.tabs = data.trend ? ["flame", "table", "trend"] : ["flame", "table"];
    $("tabs").replaceChildren(tab("flame", "Flame graph"), tab("table", "Table"), ...(data.trend ? [tab("trend", "Trend")] : []));
    $("types").replaceChildren(...this.m.types.map((t, i) => {
      const b = make("button", "", t.type);
      b.type = "button"; b.dataset.type = t.type;
      b.setAttribute("role", "radio");
      b.addEventListener("click", () => this.setType(i));
      return b;
    }));
    this.drawRss(data.reconcile);
  }

  /* The resident set as one bar; parts that the profile does not state are left out. */
  drawRss(r) {
    if (!r) return;
    const live = r.inuse_bytes, anon = r.rss_anon_bytes;
    if (!(live >= 0) || !(anon > 0)) return;
    const profiler = r.profiler_bytes > 0 ? r.profiler_bytes : 0;
    const held = r.allocator_inuse_bytes >= 0 ? Math.max(0, r.allocator_inuse_bytes + (r.allocator_free_bytes || 0) - live) : -1;
    const room = Math.max(0, anon - live - profiler);
    const over = held >= 0 ? Math.min(held, room) : 0;
    const parts = [["live", "live blocks", live, r.inuse_se], ["over", "allocator overhead and free lists", over], ["prof", "profiler", profiler],
      ["out", held >= 0 ? "outside malloc" : "overhead and outside malloc", room - over], ["file", "files mapped", r.rss_file_bytes || 0]].filter((p) => p[2] > 0);
    const track = make("div", "track");
    const keys = parts.map(([id, text, value, se]) => {
      const bar = make("i", "rss-" + id);
      bar.style.flex = `${value} 1 0`;
      bar.dataset.value = value;
      bar.title = text + ": " + formatValue(value, "bytes");
      track.append(bar);
      const key = make("span", "key");
      key.append(make("i", "rss-" + id), make("b", "", formatValue(value, "bytes")), (se > 0 ? " ± " + formatValue(se, "bytes") : "") + " " + text);
      return key;
    });
    const sum = make("span", "key");
    sum.append("resident ", make("b", "", formatValue(anon + (r.rss_file_bytes || 0), "bytes")));
    sum.title = "What the kernel counts as the process's memory, and where it is" + (r.allocator ? "; allocator: " + r.allocator : "");
    $("rss").replaceChildren(sum, track, ...keys);
    $("rss").hidden = false;
  }

  bind() {
    const input = $("query");
    let waiting = 0;
    input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => this.search(input.value), 120); });
    input.addEventListener("keydown", (e) => {
      if (e.key === "Enter") { clearTimeout(waiting); this.search(input.value); this.focusView(); }
      if (e.key === "Escape") { e.stopPropagation(); input.value = ""; this.search(""); this.focusView(); }
    });
    $("regex").addEventListener("click", () => { this.isRegex = !this.isRegex; this.search(this.query); });
    $("only").addEventListener("click", () => { this.only = !this.only; this.search(this.query); });
    $("theme").addEventListener("click", () => this.setTheme(this.dark ? "light" : "dark", true));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!storedTheme(true)) this.setTheme(storedTheme()); });
    $("flip").addEventListener("click", () => this.flip());
    $("help-open").addEventListener("click", () => this.help());
    const scroll = $("flame-scroll");
    scroll.addEventListener("mousemove", (e) => this.hover(e));
    scroll.addEventListener("mouseleave", () => this.hover(null));
    scroll.addEventListener("click", (e) => this.clickBox(e));
    document.addEventListener("keydown", (e) => this.key(e));
  }

  clickBox(e) {
    const node = this.flame.nodeAt(e.clientX, e.clientY);
    if (node < 0) return;
    this.hover(null);
    this.zoom(node);
    this.chosen = node > 0 ? this.m.frame[node] : -1;
    this.drawDetail();
  }

  zoom(node) { this.flame.zoom(node); this.drawCrumbs(); this.say(node); }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
    if (e.target.tagName === "INPUT") return;
    const onButton = e.target.tagName === "BUTTON" && (e.key === "Enter" || e.key === " ");
    if (onButton) return;
    const arrow = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" }[e.key];
    const act = {
      "/": () => { $("query").focus(); $("query").select(); }, "?": () => this.help(), d: () => $("theme").click(), i: () => this.flip(),
      t: () => this.setTab(this.tabs[(this.tabs.indexOf(this.tab) + 1) % this.tabs.length]), y: () => this.setType((this.type + 1) % this.m.types.length),
      r: () => $("regex").click(), o: () => $("only").click(), Escape: () => this.back(), Enter: () => this.enter(),
      PageDown: () => this.moveRow(20), PageUp: () => this.moveRow(-20), Home: () => this.moveRow(-1e9), End: () => this.moveRow(1e9),
    }[e.key] || (arrow && (() => this.move(arrow)));
    if (!act) return;
    e.preventDefault();
    act();
  }

  move(arrow) {
    if (this.tab === "flame") {
      const way = this.flame.rootAtTop ? arrow : { up: "down", down: "up" }[arrow] || arrow;
      this.say(this.flame.step(way));
    } else if (arrow === "up" || arrow === "down") this.moveRow(arrow === "up" ? -1 : 1);
  }

  moveRow(by) { if (this.tab === "table") { const f = this.table.step(by); if (f >= 0) this.choose(f, false); } }

  enter() {
    if (this.tab === "flame") { this.zoom(this.flame.picked); this.chosen = this.m.frame[this.flame.picked]; this.drawDetail(); }
    else if (this.tab === "table" && this.table.picked >= 0) this.choose(this.table.picked, true);
  }

  back() {
    if (this.query) { $("query").value = ""; this.search(""); }
    else if (this.chosen >= 0) { this.chosen = -1; this.drawDetail(); }
    else if (this.flame.zoomed > 0) this.zoom(this.m.parent[this.flame.zoomed]);
  }

  setTab(id) {
    this.tab = id;
    for (const t of ["flame", "table", "trend"]) $(t).hidden = t !== id;
    for (const t of this.tabs) $("tab-" + t).setAttribute("aria-selected", t === id);
    $("flip").hidden = id !== "flame";
    this.hover(null);
    this.flame.resize();
    this.table.draw();
    this.focusView();
  }

  focusView() { ({ flame: $("flame-scroll"), table: $("table-scroll"), trend: $("trend") })[this.tab].focus({ preventScroll: true }); }

  setType(i) { this.type = i; this.refresh(); }

  search(text) {
    this.query = text;
    $("regex").setAttribute("aria-pressed", this.isRegex);
    $("only").setAttribute("aria-pressed", this.only);
    let hits = null, bad = false;
    try { hits = findFrames(this.m, text, this.isRegex); } catch (e) { bad = true; }
    document.querySelector(".search").classList.toggle("bad", bad);
    this.hits = hits;
    this.refresh();
    if (bad) $("matched").textContent = "not an expression";
  }

  refresh() {
    const s = (this.s = sumsOf(this.m, this.type, this.hits || null, this.only));
    for (const b of $("types").children) b.setAttribute("aria-checked", b.dataset.type === this.m.types[this.type].type);
    this.flame.setSums(s);
    this.table.setSums(s);
    const shown = $("matched");
    shown.textContent = s.hits ? `${s.matchedFrames} ${s.matchedFrames === 1 ? "function" : "functions"} · ${formatValue(s.matchedCum, this.unit)} · ${formatShare(s.matchedCum, s.total)}` : "";
    shown.title = s.hits ? `${s.matchedFrames} functions match. Stacks through them: ${formatValue(s.matchedCum, this.unit)}; in them directly: ${formatValue(s.matchedFlat, this.unit)}` : "";
    shown.dataset.cum = s.matchedCum; shown.dataset.flat = s.matchedFlat; shown.dataset.functions = s.matchedFrames;
    this.drawTotal();
    this.drawLegend();
    this.drawCrumbs();
    this.drawDetail();
    $("flip").textContent = this.flame.rootAtTop ? "Root at top" : "Root at bottom";
  }

  drawTotal() {
    const { s } = this, total = $("total");
    const parts = [make("b", "", formatValue(s.total, this.unit))];
    parts.push(make("span", "pm", s.totalSe > 0 ? "± " + formatValue(s.totalSe, this.unit) : ""));
    if (this.m.isDiff) parts.push(make("span", s.total >= s.totalBase ? "grow" : "shrink", formatChange(s.total - s.totalBase, this.unit)));
    total.replaceChildren(...parts);
    total.title = this.m.types[this.type].type + ": estimate ± its standard error";
    total.dataset.value = s.total;
  }

  drawLegend() {
    const { m, s } = this;
    if (m.isDiff || s.signed) {
      const ramp = make("span", "ramp"), canvas = make("canvas");
      canvas.width = 140; canvas.height = 8;
      const c = canvas.getContext("2d");
      for (let x = 0; x < 140; x++) { c.fillStyle = changeFill((x - 70) / 70, this.dark, false).fill; c.fillRect(x, 0, 1, 8); }
      ramp.append("gone", canvas, "new", make("span", "", "grey: unchanged, or within two standard errors; a box is as wide as the larger of before and after"));
      $("legend").replaceChildren(ramp);
      return;
    }
    const share = new Map();
    for (let f = 0; f < m.frameCount; f++) if (s.fn.flat[f] && m.module[f]) share.set(m.module[f], (share.get(m.module[f]) || 0) + s.fn.flat[f]);
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
    const { m } = this, path = [];
    for (let i = this.flame.zoomed; i >= 0; i = m.parent[i]) path.unshift(i);
    const text = (i) => (i === 0 ? "all" : m.name[m.frame[i]]);
    let shown = path;
    if (path.length > 6) shown = [path[0], -1, ...path.slice(-4)];
    const parts = [];
    shown.forEach((i, k) => {
      if (k > 0) parts.push(make("span", "sep", "›"));
      if (i < 0) { parts.push(make("span", "sep", "…")); return; }
      if (k === shown.length - 1) { parts.push(make("span", "here", text(i))); return; }
      const b = make("button", "", text(i));
      b.type = "button";
      b.title = text(i);
      b.addEventListener("click", () => this.zoom(i));
      parts.push(b);
    });
    $("crumbs").replaceChildren(...parts);
  }

  flip() {
    this.flame.rootAtTop = !this.flame.rootAtTop;
    $("flip").textContent = this.flame.rootAtTop ? "Root at top" : "Root at bottom";
    this.flame.resize();
    $("flame-scroll").scrollTop = this.flame.rootAtTop ? 0 : 1e9;
    this.flame.draw();
  }

  hover(e) {
    const tip = $("tip");
    const node = e && this.tab === "flame" ? this.flame.nodeAt(e.clientX, e.clientY) : -1;
    if (node !== this.flame.hovered) { this.flame.hovered = node; this.flame.drawSoon(); }
    $("flame-canvas").style.cursor = node >= 0 ? "pointer" : "default";
    if (node < 0) { tip.hidden = true; return; }
    if (tip.dataset.node !== String(node) || tip.dataset.type !== String(this.type)) this.fillTip(tip, node);
    tip.hidden = false;
    const w = tip.offsetWidth, h = tip.offsetHeight;
    const x = e.clientX + 14 + w > innerWidth - 8 ? e.clientX - 14 - w : e.clientX + 14;
    const y = e.clientY + 18 + h > innerHeight - 8 ? e.clientY - 12 - h : e.clientY + 18;
    tip.style.left = Math.max(8, x) + "px"; tip.style.top = Math.max(8, y) + "px";
  }

  fillTip(tip, node) {
    const { m, s } = this, f = m.frame[node];
    tip.dataset.node = node; tip.dataset.type = this.type;
    tip.replaceChildren(make("b", "", node === 0 ? "all stacks" : m.name[f]));
    const where = node === 0 ? "" : [m.module[f], m.place[f]].filter(Boolean).join(" · ");
    if (where) tip.append(make("div", "where", where));
    const list = make("dl");
    const line = (label, value, se, share) => list.append(make("dt", "", label), make("dd", "", value), make("dd", "pm", se > 0 ? "± " + formatValue(se, this.unit) : ""), make("dd", "", share));
    if (m.isDiff) {
      line("before", formatValue(s.cumBase[node], this.unit), 0, "");
      line("after", formatValue(s.cum[node], this.unit), 0, "");
      line("change", formatChange(s.cum[node] - s.cumBase[node], this.unit), s.se[node], s.cumBase[node] ? formatChange(100 * (s.cum[node] / s.cumBase[node] - 1), "").replace(/\..*/, "") + "%" : "new");
    } else {
      line("here and below", formatValue(s.cum[node], this.unit), s.se[node], formatShare(s.cum[node], s.total));
      line("here itself", formatValue(s.self[node], this.unit), 0, formatShare(s.self[node], s.total));
    }
    tip.append(list);
  }

  say(node) {
    const { m, s } = this;
    $("say").textContent = (node === 0 ? "all" : m.name[m.frame[node]]) + ", " + formatValue(s.cum[node], this.unit) + ", " + formatShare(s.cum[node], s.total);
  }

  /* A function was chosen; isFinal: show where it weighs most in the flame graph. */
  choose(f, isFinal) {
    this.chosen = f;
    this.drawDetail();
    if (this.tab === "table" && !isFinal) return;
    this.setTab("flame");
    let best = 0;
    for (let i = 1; i < this.m.nodeCount; i++) if (this.m.frame[i] === f && (best === 0 || this.s.weight[i] > this.s.weight[best])) best = i;
    if (best > 0 && this.s.weight[best] > 0) this.zoom(best);
  }

  drawDetail() {
    const f = this.chosen, panel = $("detail"), { m } = this;
    const wasHidden = panel.hidden;
    panel.hidden = f < 0;
    if (wasHidden !== panel.hidden) { this.flame.resize(); this.table.draw(); }
    if (f < 0) return;
    const close = make("button", "close", "×");
    close.type = "button"; close.title = "Close (Esc)"; close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => { this.chosen = -1; this.drawDetail(); this.focusView(); });
    panel.replaceChildren(close, make("h2", "", m.name[f]));
    const where = [m.module[f], m.place[f]].filter(Boolean).join(" · ");
    if (where) panel.append(make("p", "where", where));
    panel.append(this.detailFigures(f));
    const near = neighbours(m, this.s, f);
    panel.append(make("h3", "", "Callers"), ...this.edges(near.callers, f), make("h3", "", "Callees"), ...this.edges(near.callees, f));
  }

  detailFigures(f) {
    const { m } = this, table = make("table"), head = make("tr");
    head.append(make("th", "", ""), make("th", "", m.isDiff ? "Flat change" : "Flat"), make("th", "", m.isDiff ? "Cum change" : "Cum"));
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
      if (m.isDiff) row.append(cell(formatChange(fn.flat[f] - fn.flatBase[f], t.unit), fn.flatSe[f]), cell(formatChange(fn.cum[f] - fn.cumBase[f], t.unit), fn.cumSe[f]));
      else row.append(cell(formatValue(fn.flat[f], t.unit), fn.flatSe[f]), cell(formatValue(fn.cum[f], t.unit), fn.cumSe[f]));
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
      top.append(make("span", "n", e.frame < 0 ? "program start" : this.m.name[e.frame]), make("span", "v", formatValue(e.value, this.unit)));
      line.style.width = (100 * Math.abs(e.value)) / whole + "%";
      b.append(top, line);
      b.title = e.frame < 0 ? "" : this.m.name[e.frame];
      b.dataset.value = e.value;
      if (e.frame >= 0) b.addEventListener("click", () => { if (this.tab === "table") { this.chosen = e.frame; this.table.show(e.frame); this.drawDetail(); } else this.choose(e.frame, true); });
      return b;
    });
  }

  setTheme(theme, keep) {
    this.dark = theme === "dark";
    document.documentElement.dataset.theme = theme;
    if (keep) try { localStorage.setItem("heapprof-theme", theme); } catch (e) { /* not kept, then: file:// may forbid it */ }
    this.flame.setTheme(this.dark);
    if (this.s) { this.flame.draw(); this.table.draw(); this.drawLegend(); }
  }

  help() {
    const box = $("help"), list = make("dl");
    for (const [keys, text] of HELP_KEYS) {
      const dt = make("dt");
      for (const k of keys.split(" ")) dt.append(make("kbd", "", k), " ");
      list.append(dt, make("dd", "", text));
    }
    box.replaceChildren(make("h2", "", "Keys"), list, make("h2", "", "Reading"),
      make("p", "", "A box is a function; what it called lies beyond it, away from the root. Its width is the memory of all stacks through it; colour tells the library."),
      make("p", "", "Flat: allocated by the function itself. Cum: by it and all it called, each stack once. The figure after ± is the standard error of sampling; the truth is within twice of it nearly always."));
    box.addEventListener("click", (e) => { if (e.target === box) box.close(); });
    box.showModal();
  }
}

/* The theme to use: what was chosen before (onlyChosen: null if nothing was), else the system's. */
function storedTheme(onlyChosen) {
  let kept = null;
  try { kept = localStorage.getItem("heapprof-theme"); } catch (e) { kept = null; }
  if (kept === "dark" || kept === "light") return kept;
  return onlyChosen ? null : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

unpackData($("data").textContent).then((data) => { window.heapprof = new Page(data); }).catch((error) => {
  document.body.replaceChildren(make("p", "fatal", "The profile in this page cannot be shown: " + error.message));
});
