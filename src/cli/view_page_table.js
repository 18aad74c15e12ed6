/* SPDX-License-Identifier: MIT
 * view_page_table.js - the functions as a table. Rows exist only where they are in view, so 100 000 cost as much as 40. */

const LINE_PX = 26;

function make(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

class Table {
  /* onPick(frame, isFinal): a row was chosen; isFinal: by Enter or a double click, "show me". */
  constructor(head, scroll, rows, onPick) {
    this.head = head;
    this.scroll = scroll;
    this.rows = rows;
    this.onPick = onPick;
    this.sortBy = "";
    this.falling = true;
    this.picked = -1;
    this.order = new Int32Array(0);
    scroll.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(scroll);
    rows.addEventListener("click", (e) => this.clicked(e, false));
    rows.addEventListener("dblclick", (e) => this.clicked(e, true));
  }

  clicked(e, isFinal) {
    const row = e.target.closest(".row");
    if (!row) return;
    this.picked = Number(row.dataset.frame);
    this.draw();
    this.onPick(this.picked, isFinal);
  }

  setModel(m, dotOf) {
    this.m = m;
    this.dotOf = dotOf;
  }

  setSums(s) {
    this.s = s;
    const unit = this.m.types[s.type].unit, fn = s.fn, whole = s.total || s.totalBase;
    const value = (v) => formatValue(v, unit), share = (v) => formatShare(v, whole),
          error = (v) => (v > 0 ? "±\u00a0" + formatValue(v, unit) : "");
    const change = (v) => formatChange(v, unit);
    this.columns = [];
    if (this.m.isDiff) {
      const growth = (a, b) => a.map((v, i) => v - b[i]);
      this.column("change", "Change", growth(fn.flat, fn.flatBase), change, "86px", "", fn.flatSe);
      this.column("flatSe", "Error", fn.flatSe, error, "82px", "pm");
      this.column("flatBase", "Before", fn.flatBase, value, "82px");
      this.column("flat", "Flat", fn.flat, value, "82px");
      this.column("cumChange", "Cum change", growth(fn.cum, fn.cumBase), change, "92px", "", fn.cumSe);
      this.column("cumSe", "Error", fn.cumSe, error, "82px", "pm");
      this.column("cum", "Cum", fn.cum, value, "82px");
    } else {
      this.column("flat", "Flat", fn.flat, value, "82px");
      this.column("flatSe", "Error", fn.flatSe, error, "82px", "pm");
      this.column("flatShare", "Flat %", fn.flat, share, "58px", "pc");
      this.column("cum", "Cum", fn.cum, value, "82px");
      this.column("cumSe", "Error", fn.cumSe, error, "82px", "pm");
      this.column("cumShare", "Cum %", fn.cum, share, "58px", "pc");
    }
    if (!this.columns.some((c) => c.id === this.sortBy) && this.sortBy !== "name") this.sortBy = this.columns[0].id;
    document.documentElement.style.setProperty("--columns", this.columns.map((c) => c.width).join(" ") + " minmax(0, 1fr)");
    this.drawHead();
    this.sort();
  }

  /* `error`: of a change; beyond twice that it is coloured. */
  column(id, title, values, show, width, className, error) {
    this.columns.push({id, title, values, show, width, className: className || "", error: error || null});
  }

  drawHead() {
    this.head.replaceChildren(...[...this.columns, {id: "name", title: "Function"}].map((c) => {
      const b = make("button", c.id === "name" ? "text" : "", c.title);
      b.type = "button";
      b.dataset.column = c.id;
      b.setAttribute("role", "columnheader");
      b.setAttribute("aria-sort", this.sortBy !== c.id ? "none" : this.falling ? "descending" : "ascending");
      b.addEventListener("click", () => {
        if (this.sortBy === c.id) this.falling = !this.falling;
        else {
          this.sortBy = c.id;
          this.falling = c.id !== "name";
        }
        this.drawHead();
        this.sort();
      });
      return b;
    }));
  }

  /* Rows of zero in every column are left out, and with a query those that do not match. Ties: cum, then name, as `top` has
   * it. */
  sort() {
    const {m, s} = this, fn = s.fn, list = [];
    for (let f = 0; f < m.frameCount; f++) {
      if (s.hits && !s.hits[f]) continue;
      if (fn.cum[f] !== 0 || fn.flat[f] !== 0 || fn.cumBase[f] !== 0 || fn.flatBase[f] !== 0) list.push(f);
    }
    const byName = (a, b) => m.nameRank[a] - m.nameRank[b];
    const column = this.columns.find((c) => c.id === this.sortBy);
    const way = this.falling ? 1 : -1;
    const isChange = this.sortBy === "change" || this.sortBy === "cumChange";
    const key = column && (isChange || s.signed) ? column.values.map(Math.abs) : column && column.values;
    if (!column) list.sort((a, b) => -way * byName(a, b));
    else list.sort((a, b) => way * (key[b] - key[a]) || fn.cum[b] - fn.cum[a] || byName(a, b));
    this.order = Int32Array.from(list);
    this.rows.style.height = Math.max(this.order.length * LINE_PX, 1) + "px";
    this.scroll.setAttribute("aria-rowcount", this.order.length);
    this.draw();
  }

  draw() {
    if (!this.s || this.scroll.clientHeight === 0) return;
    if (this.order.length === 0) {
      this.rows.style.height = "auto";
      this.rows.replaceChildren(
          make("p", "empty", this.s.hits ? "No function matches." : "Nothing to show for this sample type."));
      return;
    }
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / LINE_PX) - 4);
    const last = Math.min(this.order.length, Math.ceil((this.scroll.scrollTop + this.scroll.clientHeight) / LINE_PX) + 4);
    const shown = [];
    for (let k = first; k < last; k++) shown.push(this.row(k));
    this.rows.replaceChildren(...shown);
  }

  row(k) {
    const {m} = this, f = this.order[k];
    const row = make("div", "row");
    row.style.top = k * LINE_PX + "px";
    row.style.setProperty("--dot", this.dotOf(f));
    row.dataset.frame = f;
    row.setAttribute("role", "row");
    row.setAttribute("aria-rowindex", k + 1);
    row.setAttribute("aria-selected", f === this.picked);
    for (const c of this.columns) {
      const cell = make("span", c.className, c.show(c.values[f]));
      cell.dataset.column = c.id;
      cell.dataset.value = c.values[f];
      if (c.error && Math.abs(c.values[f]) > 2 * c.error[f]) cell.classList.add(c.values[f] > 0 ? "grow" : "shrink");
      row.append(cell);
    }
    const name = make("span", "name", m.name[f]);
    name.title = m.name[f] + (m.place[f] ? "\n" + m.place[f] : "");
    if (m.module[f]) name.append(make("span", "module", m.module[f]));
    row.append(name);
    return row;
  }

  /* Makes the frame the picked row and brings it into view. */
  show(f) {
    this.picked = f;
    const k = this.order.indexOf(f);
    if (k >= 0) {
      const top = k * LINE_PX, h = this.scroll.clientHeight;
      if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
      else if (top + LINE_PX > this.scroll.scrollTop + h) this.scroll.scrollTop = top + LINE_PX - h;
    }
    this.draw();
  }

  step(by) {
    if (this.order.length === 0) return -1;
    const at = this.order.indexOf(this.picked);
    const to = at < 0 && Math.abs(by) < this.order.length ? 0 : at + by;
    this.show(this.order[Math.max(0, Math.min(this.order.length - 1, to))]);
    return this.picked;
  }
}
