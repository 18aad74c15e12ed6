/* SPDX-License-Identifier: MIT
 * view_page.js - wires the page of `heapprof view`: what is chosen (sample type, view, query, function), keys, side panel.
 * Comes last of the view_page_*.js files, which are joined into one script at build time. Every text of the profile reaches
 * the page by textContent or the canvas: nothing in it is ever markup. window.heapprof is for scripts and tests. */

class Page extends PageParts {
  constructor(data) {
    super();
    this.m = buildModel(data);
    this.type = data.default_type;
    this.query = "";
    this.isRegex = false;
    this.only = false;
    this.chosen = -1;
    this.flame = new Flame($("flame-canvas"), $("flame-scroll"), $("flame-height"));
    this.table = new Table($("table-head"), $("table-scroll"), $("table-rows"), (f, isFinal) => this.choose(f, isFinal));
    this.flame.setModel(this.m);
    this.table.setModel(this.m, (f) => this.dotOf(f));
    this.setTheme(storedTheme());
    this.buildHead();
    this.bind();
    if (data.trend)
      drawTrend(this.m, $("trend"), (f) => {
        this.setTab("flame");
        this.choose(f, true);
      });
    this.setTab("flame");
    this.refresh();
  }

  get unit() { return this.m.types[this.type].unit; }

  buildHead() {
    const {files, data, isDiff} = {...this.m, data: this.m.data};
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
      b.type = "button";
      b.id = "tab-" + id;
      b.setAttribute("role", "tab");
      b.setAttribute("aria-controls", id);
      b.addEventListener("click", () => this.setTab(id));
      return b;
    };
    this.tabs = data.trend ? ["flame", "table", "trend"] : ["flame", "table"];
    $("tabs").replaceChildren(
        tab("flame", "Flame graph"), tab("table", "Table"), ...(data.trend ? [tab("trend", "Trend")] : []));
    $("types").replaceChildren(...this.m.types.map((t, i) => {
      const b = make("button", "", t.type);
      b.type = "button";
      b.dataset.type = t.type;
      b.setAttribute("role", "radio");
      b.addEventListener("click", () => this.setType(i));
      return b;
    }));
    this.drawRss(data.reconcile);
  }

  bind() {
    const input = $("query");
    let waiting = 0;
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.search(input.value), 120);
    });
    input.addEventListener("keydown", (e) => {
      if (e.key === "Enter") {
        clearTimeout(waiting);
        this.search(input.value);
        this.focusView();
      }
      if (e.key === "Escape") {
        e.stopPropagation();
        input.value = "";
        this.search("");
        this.focusView();
      }
    });
    $("regex").addEventListener("click", () => {
      this.isRegex = !this.isRegex;
      this.search(this.query);
    });
    $("only").addEventListener("click", () => {
      this.only = !this.only;
      this.search(this.query);
    });
    $("theme").addEventListener("click", () => this.setTheme(this.dark ? "light" : "dark", true));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      if (!storedTheme(true)) this.setTheme(storedTheme());
    });
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

  zoom(node) {
    this.flame.zoom(node);
    this.drawCrumbs();
    this.say(node);
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
    if (e.target.tagName === "INPUT") return;
    const onButton = e.target.tagName === "BUTTON" && (e.key === "Enter" || e.key === " ");
    if (onButton) return;
    const arrow = {ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right"}[e.key];
    const act = {
      "/": () => {
        $("query").focus();
        $("query").select();
      },
      "?": () => this.help(),
      d: () => $("theme").click(),
      i: () => this.flip(),
      t: () => this.setTab(this.tabs[(this.tabs.indexOf(this.tab) + 1) % this.tabs.length]),
      y: () => this.setType((this.type + 1) % this.m.types.length),
      r: () => $("regex").click(),
      o: () => $("only").click(),
      Escape: () => this.back(),
      Enter: () => this.enter(),
      PageDown: () => this.moveRow(20),
      PageUp: () => this.moveRow(-20),
      Home: () => this.moveRow(-1e9),
      End: () => this.moveRow(1e9),
    }[e.key] ||
        (arrow && (() => this.move(arrow)));
    if (!act) return;
    e.preventDefault();
    act();
  }

  move(arrow) {
    if (this.tab === "flame") {
      const way = this.flame.rootAtTop ? arrow : {up: "down", down: "up"}[arrow] || arrow;
      this.say(this.flame.step(way));
    } else if (arrow === "up" || arrow === "down") this.moveRow(arrow === "up" ? -1 : 1);
  }

  moveRow(by) {
    if (this.tab === "table") {
      const f = this.table.step(by);
      if (f >= 0) this.choose(f, false);
    }
  }

  enter() {
    if (this.tab === "flame") {
      this.zoom(this.flame.picked);
      this.chosen = this.m.frame[this.flame.picked];
      this.drawDetail();
    } else if (this.tab === "table" && this.table.picked >= 0) this.choose(this.table.picked, true);
  }

  back() {
    if (this.query) {
      $("query").value = "";
      this.search("");
    } else if (this.chosen >= 0) {
      this.chosen = -1;
      this.drawDetail();
    } else if (this.flame.zoomed > 0) this.zoom(this.m.parent[this.flame.zoomed]);
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

  focusView() {
    ({flame: $("flame-scroll"), table: $("table-scroll"), trend: $("trend")})[this.tab].focus({preventScroll: true});
  }

  setType(i) {
    this.type = i;
    this.refresh();
  }

  search(text) {
    this.query = text;
    $("regex").setAttribute("aria-pressed", this.isRegex);
    $("only").setAttribute("aria-pressed", this.only);
    let hits = null, bad = false;
    try {
      hits = findFrames(this.m, text, this.isRegex);
    } catch (e) { bad = true; }
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
    shown.textContent = s.hits ? `${s.matchedFrames} ${s.matchedFrames === 1 ? "function" : "functions"} · ${
                                     formatValue(s.matchedCum, this.unit)} · ${formatShare(s.matchedCum, s.total)}` :
                                 "";
    shown.title = s.hits ?
        `${s.matchedFrames} functions match. Stacks through them: ${
            formatValue(s.matchedCum, this.unit)}; in them directly: ${formatValue(s.matchedFlat, this.unit)}` :
        "";
    shown.dataset.cum = s.matchedCum;
    shown.dataset.flat = s.matchedFlat;
    shown.dataset.functions = s.matchedFrames;
    this.drawTotal();
    this.drawLegend();
    this.drawCrumbs();
    this.drawDetail();
    $("flip").textContent = this.flame.rootAtTop ? "Root at top" : "Root at bottom";
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
    if (node !== this.flame.hovered) {
      this.flame.hovered = node;
      this.flame.drawSoon();
    }
    $("flame-canvas").style.cursor = node >= 0 ? "pointer" : "default";
    if (node < 0) {
      tip.hidden = true;
      return;
    }
    if (tip.dataset.node !== String(node) || tip.dataset.type !== String(this.type)) this.fillTip(tip, node);
    tip.hidden = false;
    const w = tip.offsetWidth, h = tip.offsetHeight;
    const x = e.clientX + 14 + w > innerWidth - 8 ? e.clientX - 14 - w : e.clientX + 14;
    const y = e.clientY + 18 + h > innerHeight - 8 ? e.clientY - 12 - h : e.clientY + 18;
    tip.style.left = Math.max(8, x) + "px";
    tip.style.top = Math.max(8, y) + "px";
  }

  /* A function was chosen; isFinal: show where it weighs most in the flame graph. */
  choose(f, isFinal) {
    this.chosen = f;
    this.drawDetail();
    if (this.tab === "table" && !isFinal) return;
    this.setTab("flame");
    let best = 0;
    for (let i = 1; i < this.m.nodeCount; i++)
      if (this.m.frame[i] === f && (best === 0 || this.s.weight[i] > this.s.weight[best])) best = i;
    if (best > 0 && this.s.weight[best] > 0) this.zoom(best);
  }

  setTheme(theme, keep) {
    this.dark = theme === "dark";
    document.documentElement.dataset.theme = theme;
    if (keep) try {
        localStorage.setItem("heapprof-theme", theme);
      } catch (e) { /* not kept, then: file:// may forbid it */
      }
    this.flame.setTheme(this.dark);
    if (this.s) {
      this.flame.draw();
      this.table.draw();
      this.drawLegend();
    }
  }
}

/* The theme to use: what was chosen before (onlyChosen: null if nothing was), else the system's. */
function storedTheme(onlyChosen) {
  let kept = null;
  try {
    kept = localStorage.getItem("heapprof-theme");
  } catch (e) { kept = null; }
  if (kept === "dark" || kept === "light") return kept;
  return onlyChosen ? null : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

unpackData($("data").textContent)
    .then((data) => {
      window.heapprof = new Page(data);
    })
    .catch((error) => {
      document.body.replaceChildren(make("p", "fatal", "The profile in this page cannot be shown: " + error.message));
    });
