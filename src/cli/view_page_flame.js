/* SPDX-License-Identifier: MIT
 * view_page_flame.js - draws the stacks on a canvas and answers what lies under a point.
 * The canvas is as large as its window; only the rows in view are drawn, and of a row only boxes wider than half a pixel:
 * what is narrower is drawn as one pale box, so the cost follows the screen and not the profile. */

const ROW_PX = 21;
const GAP_PX = 1;
const NARROW_PX = 0.8;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

/* A name, then the same without parameters and template arguments, then its last part alone: what a narrower box can hold.
 */
function shorterNames(name) {
  const nameless = /^0x[0-9a-f]+ (.*)(\+0x[0-9a-f]+)$/.exec(name);
  if (nameless) return [name, nameless[1] + nameless[2], nameless[2]];
  let bare = "", depth = 0;
  for (const c of name.replace(/operator(<<=?|>>=?|<=>|<=?|>=?|->\*?|\(\))/g, "operator")) {
    if (c === "<" || c === "(") {
      if (depth === 0 && bare === "") bare += c;
      else depth++;
    } else if ((c === ">" || c === ")") && depth > 0) depth--;
    else if (depth === 0) bare += c;
  }
  bare = bare.trim();
  const last = bare.slice(bare.lastIndexOf("::") + 1).replace(/^:/, "");
  return [name, bare, last].filter((text, k, all) => text && (k === 0 || text.length < all[k - 1].length));
}

function hashText(text) {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h ^= h >>> 15;
  h = Math.imul(h, 0x2c1b3c6d);
  h ^= h >>> 12;
  return h >>> 0;
}

/* A hue for each module, by its name. Two that come too near each other are moved apart, the more used one stays; the first
 * six keep two steps of distance. */
function chooseHues(m) {
  const used = new Map();
  for (let i = 1; i < m.nodeCount; i++) used.set(m.module[m.frame[i]], (used.get(m.module[m.frame[i]]) || 0) + 1);
  const steps = 16, taken = [];
  const hues = new Map();
  for (const [module] of [...used].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))) {
    if (!module) {
      hues.set(module, -1);
      continue;
    }
    const apart = taken.length < 6 ? 2 : 1;
    const isFree = (slot) => taken.every((t) => Math.min((slot - t + steps) % steps, (t - slot + steps) % steps) >= apart);
    let slot = hashText(module.replace(/[-.0-9]+$/, "")) % steps;
    for (let tries = 0; !isFree(slot) && tries < steps; tries++) slot = (slot + 5) % steps;
    taken.push(slot);
    hues.set(module, (slot * 360) / steps + 20);
  }
  return hues;
}

class Flame {
  constructor(canvas, scroll, spacer) {
    this.canvas = canvas;
    this.scroll = scroll;
    this.spacer = spacer;
    this.ctx = canvas.getContext("2d");
    this.rootAtTop = true;
    this.zoomed = 0;
    this.picked = 0;
    this.hovered = -1;
    this.dark = false;
    this.from = 0;
    this.to = 1;
    this.moving = 0;
    this.widths = null;
    scroll.addEventListener("scroll", () => this.drawSoon());
    new ResizeObserver(() => this.resize()).observe(scroll);
  }

  setModel(m) {
    this.m = m;
    this.hues = chooseHues(m);
    this.colours = new Map();
    this.labels = [];
  }
  setTheme(dark) {
    this.dark = dark;
    if (this.colours) this.colours.clear();
  }

  /* New sums; the zoom stays where its node still has weight. */
  setSums(s) {
    this.s = s;
    layOut(this.m, s);
    while (this.zoomed > 0 && !(s.weight[this.zoomed] > 0)) this.zoomed = this.m.parent[this.zoomed];
    if (!(s.weight[this.picked] > 0)) this.picked = this.zoomed;
    this.from = s.x[this.zoomed];
    this.to = this.from + s.weight[this.zoomed];
    this.resize();
  }

  zoom(node) {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.zoomed = node;
    this.picked = node;
    const goal = [this.s.x[node], this.s.x[node] + this.s.weight[node]];
    this.resize();
    const start = performance.now(), was = [this.from, this.to], run = ++this.moving;
    const step = (now) => {
      if (run !== this.moving) return;
      const t = still ? 1 : Math.min(1, (now - start) / 160);
      const k = 1 - (1 - t) * (1 - t) * (1 - t);
      this.from = was[0] + (goal[0] - was[0]) * k;
      this.to = was[1] + (goal[1] - was[1]) * k;
      this.draw();
      if (t < 1) requestAnimationFrame(step);
    };
    if (still) step(start + 1000);
    else requestAnimationFrame(step);
  }

  resize() {
    if (!this.s) return;
    const w = this.scroll.clientWidth, h = this.scroll.clientHeight, ratio = window.devicePixelRatio || 1;
    if (w === 0 || h === 0) return;
    this.rows = this.m.depth[this.zoomed] + this.s.below[this.zoomed] + 1;
    const full = Math.max(h, this.rows * ROW_PX);
    this.spacer.style.height = Math.max(0, full - h) + "px";
    this.height = full;
    this.canvas.style.width = w + "px";
    this.canvas.style.height = h + "px";
    this.canvas.width = Math.round(w * ratio);
    this.canvas.height = Math.round(h * ratio);
    this.ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.w = w;
    this.h = h;
    this.draw();
  }

  /* Draws before the next frame, once however often it is asked. */
  drawSoon() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.draw();
    });
  }

  rowTop(depth) { return (this.rootAtTop ? depth * ROW_PX : this.height - (depth + 1) * ROW_PX) - this.scroll.scrollTop; }

  draw() {
    if (!this.s || !this.w) return;
    const {ctx, m, s} = this;
    ctx.clearRect(0, 0, this.w, this.h);
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    if (!(s.weight[0] > 0)) {
      ctx.fillStyle = this.dark ? "#a9b0ba" : "#555b65";
      ctx.fillText("Nothing to show for this sample type.", 8, 24);
      return;
    }
    this.scale = this.w / (this.to - this.from);
    const path = [];
    for (let i = this.zoomed; i >= 0; i = m.parent[i]) path.push(i);
    for (const i of path.slice(1)) this.box(i, true);
    const stack = [this.zoomed];
    while (stack.length) {
      const i = stack.pop();
      const top = this.box(i, false);
      if (this.rootAtTop ? top > this.h : top < -ROW_PX) continue;
      for (let c = m.childStart[i]; c < m.childStart[i + 1]; c++) {
        const k = s.child[c], wide = s.weight[k] * this.scale, left = (s.x[k] - this.from) * this.scale;
        if (left > this.w) break;
        if (wide < NARROW_PX) {
          this.rest(i, left, (s.x[i] + this.weightOfChildren(i) - this.from) * this.scale);
          break;
        }
        if (left + wide >= 0) stack.push(k);
      }
    }
    if (this.picked > 0) this.outline(this.picked, this.dark ? "#ffffff" : "#111318", 2);
    if (this.hovered >= 0 && this.hovered !== this.picked)
      this.outline(this.hovered, this.dark ? "#ffffffb0" : "#111318a0", 1);
  }

  weightOfChildren(i) {
    const last = this.s.child[this.m.childStart[i + 1] - 1];
    return this.s.x[last] + this.s.weight[last] - this.s.x[i];
  }

  /* The children from `left` to `right` are too narrow to draw: one pale box for all. */
  rest(i, left, right) {
    right = Math.min(right, this.w);
    if (right - left < NARROW_PX) return;
    const top = this.rowTop(this.m.depth[i] + 1);
    this.ctx.fillStyle = this.dark ? "#ffffff14" : "#0000000f";
    this.ctx.fillRect(left, top, right - left, ROW_PX - GAP_PX);
  }

  box(i, isAbove) {
    const {ctx, m, s} = this;
    const top = this.rowTop(m.depth[i]);
    if (top < -ROW_PX || top > this.h) return top;
    const a = Math.max(0, (s.x[i] - this.from) * this.scale),
          b = Math.min(this.w, (s.x[i] + s.weight[i] - this.from) * this.scale);
    const wide = Math.max(b - a - (b - a > 3 ? GAP_PX : 0), 0.5);
    const colour = this.colourOf(i);
    ctx.globalAlpha = isAbove ? 0.55 : 1;
    ctx.fillStyle = colour.fill;
    ctx.fillRect(a, top, wide, ROW_PX - GAP_PX);
    if (wide > 26) {
      ctx.fillStyle = colour.text;
      ctx.fillText(this.fit(this.labelsOf(i), wide - 10), a + 5, top + (ROW_PX - GAP_PX) / 2 + 0.5);
    }
    ctx.globalAlpha = 1;
    return top;
  }

  outline(i, colour, width) {
    const {m, s, ctx} = this;
    const a = Math.max(0, (s.x[i] - this.from) * this.scale),
          b = Math.min(this.w, (s.x[i] + s.weight[i] - this.from) * this.scale);
    if (b <= a) return;
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.strokeRect(
        a + width / 2, this.rowTop(m.depth[i]) + width / 2, Math.max(b - a - GAP_PX - width, 1), ROW_PX - GAP_PX - width);
  }

  labelsOf(i) {
    if (i === 0) return ["all"];
    const f = this.m.frame[i];
    return this.labels[f] || (this.labels[f] = shorterNames(this.m.name[f]));
  }

  /* The longest of the texts that fits into `room` pixels, else the shortest, cut; by the widths of the ASCII characters. */
  fit(texts, room) {
    if (!this.widths) {
      this.widths = new Float32Array(128).fill(6);
      for (let c = 32; c < 127; c++) this.widths[c] = this.ctx.measureText(String.fromCharCode(c)).width;
    }
    const dots = 11;
    let shown = "";
    for (const text of texts) {
      let used = 0, cut = 0, k = 0;
      for (; k < text.length && used <= room; k++) {
        const c = text.charCodeAt(k);
        used += c < 128 ? this.widths[c] : 12;
        if (used <= room - dots) cut = k + 1;
      }
      if (used <= room) return text;
      shown = cut < 2 ? "" : text.slice(0, cut) + "…";
    }
    return shown;
  }

  colourOf(i) {
    const {m, s} = this;
    const dim = s.hits ? (i === 0 || !s.hits[m.frame[i]]) : false;
    if (m.isDiff || s.signed) return this.changeColour(i, dim);
    const key = (i === 0 ? -1 : m.frame[i]) * 4 + (dim ? 1 : s.hits ? 2 : 0);
    let colour = this.colours.get(key);
    if (!colour) this.colours.set(key, (colour = this.moduleColour(i, dim, !!s.hits && !dim)));
    return colour;
  }

  moduleColour(i, dim, isHit) {
    const hue = i === 0 ? -1 : this.hues.get(this.m.module[this.m.frame[i]]);
    const shade = i === 0 ? 0 : ((hashText(this.m.name[this.m.frame[i]]) % 100) / 100 - 0.5) * 0.07;
    let chroma = hue < 0 ? 0.006 : isHit ? 0.17 : 0.075;
    let light = (this.dark ? (isHit ? 0.55 : 0.43) : (isHit ? 0.74 : 0.855)) + shade;
    if (dim) {
      chroma = hue < 0 ? 0.002 : 0.008;
      light = (this.dark ? 0.28 : 0.925) + shade / 3;
    }
    const text = this.dark ? (dim ? "#a2a8b1" : "#f2f4f7") : dim ? "#6a7079" : "#1c1e22";
    return {fill: colourHex(light, chroma, Math.max(hue, 0)), text};
  }

  /* Red grew, blue shrank, the deeper the larger the part that changed; grey when the sampling error explains the change. */
  changeColour(i, dim) {
    const {m, s} = this;
    const change = s.cum[i] - (m.isDiff ? s.cumBase[i] : 0);
    const most = Math.max(Math.abs(s.cum[i]), Math.abs(s.cumBase[i]));
    let part = most > 0 ? Math.abs(change) / most : 0;
    if (Math.abs(change) < 2 * s.se[i]) part = 0;
    return {...changeFill(Math.sign(change) * Math.sqrt(part), this.dark, dim)};
  }

  /* The node under a point of the window, or -1. */
  nodeAt(clientX, clientY) {
    const at = this.canvas.getBoundingClientRect();
    const x = clientX - at.left, y = clientY - at.top;
    if (!this.s || !this.scale || x < 0 || y < 0 || x >= this.w || y >= this.h) return -1;
    const inAll = y + this.scroll.scrollTop;
    const depth = Math.floor((this.rootAtTop ? inAll : this.height - inAll) / ROW_PX);
    const {m, s} = this;
    const zoomDepth = m.depth[this.zoomed];
    let i = this.zoomed;
    if (depth <= zoomDepth) {
      while (m.depth[i] > depth) i = m.parent[i];
      return i;
    }
    const want = this.from + x / this.scale;
    while (m.depth[i] < depth) {
      let low = m.childStart[i], high = m.childStart[i + 1];
      if (low === high) return -1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (s.x[s.child[middle]] <= want) low = middle;
        else high = middle;
      }
      i = s.child[low];
      if (!(want < s.x[i] + s.weight[i])) return -1;
    }
    return i;
  }

  /* Where the node is drawn, in window coordinates; null when it is not in view. */
  boxOf(node) {
    const {m, s} = this, at = this.canvas.getBoundingClientRect(), top = this.rowTop(m.depth[node]);
    const a = Math.max(0, (s.x[node] - this.from) * this.scale),
          b = Math.min(this.w, (s.x[node] + s.weight[node] - this.from) * this.scale);
    return b - a < NARROW_PX || top < -ROW_PX || top > this.h ?
        null :
        {x: at.left + a, y: at.top + top, w: b - a, h: ROW_PX - GAP_PX};
  }

  /* Moves the picked box: "up" to the caller, "down" to the heaviest callee, "left" and "right" to its neighbours. */
  step(way) {
    const {m, s} = this;
    let i = this.picked;
    if (way === "up") i = Math.max(m.parent[i], 0);
    else if (way === "down") {
      const k = m.childStart[i] < m.childStart[i + 1] ? s.child[m.childStart[i]] : -1;
      if (k >= 0 && s.weight[k] > 0) i = k;
    } else if (i > 0 && i !== this.zoomed) {
      const up = m.parent[i], from = m.childStart[up], to = m.childStart[up + 1];
      const at = s.child.subarray(from, to).indexOf(i) + (way === "left" ? -1 : 1);
      if (at >= 0 && at < to - from && s.weight[s.child[from + at]] > 0) i = s.child[from + at];
    }
    this.picked = i;
    const top = this.rowTop(m.depth[i]);
    if (top < 0) this.scroll.scrollTop += top;
    else if (top + ROW_PX > this.h) this.scroll.scrollTop += top + ROW_PX - this.h;
    this.draw();
    return i;
  }
}

/* A colour given by lightness, chroma and hue (degrees) of Oklab, as "#rrggbb": the canvas reads that faster than oklch().
 */
function colourHex(light, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180), b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (light - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s
  ];
  return "#" +
      linear
          .map((v) => {
            const c = v <= 0.0031308 ? 12.92 * v : 1.055 * Math.pow(v, 1 / 2.4) - 0.055;
            return Math.round(255 * Math.min(1, Math.max(0, c))).toString(16).padStart(2, "0");
          })
          .join("");
}

/* -1 (gone) ... 0 (as it was) ... 1 (new). */
function changeFill(strength, dark, dim) {
  const k = Math.abs(strength), hue = strength > 0 ? 27 : 258;
  const chroma = (dim ? 0.03 : 0.15) * k;
  const light = dark ? (dim ? 0.28 : 0.33 + 0.2 * k) : dim ? 0.93 : 0.925 - 0.23 * k;
  return {fill: colourHex(light, chroma, hue), text: dark ? (dim ? "#a2a8b1" : "#f2f4f7") : dim ? "#6a7079" : "#1c1e22"};
}
