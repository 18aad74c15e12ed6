/* SPDX-License-Identifier: MIT
 * view_page_model.js - the numbers of the page: unpacks what `heapprof view` wrote (view_data.c), sums values over stacks.
 * Knows no DOM. A node is a stack prefix (node 0: the empty one), a frame is a function; parents have smaller numbers than
 * their children. All sums are over nodes in number order, so recursion in the profile needs none here.
 * Errors  as `heapprof top` has them (sampling_error.c): each stack comes with its variance; variances of
 *         stacks add up, and each sum carries the largest variance that one more sample would have brought.
 */
"use strict";

/* The text of the data element -> the object that view_data.c packed (base64 of gzip of JSON). */
async function unpackData(text) {
  if (typeof DecompressionStream === "undefined")
    throw new Error("this browser is too old for the page (2023 or later is needed)");
  const raw = atob(text.trim());
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function standardError(m, variance, one) { return Math.sqrt(variance + m.data.one_sample_weight * one); }

/* Control characters, line separators and overrides of the writing direction as text: a name cannot disguise itself. */
function visible(text) {
  return (text || "").replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, (c) => {
    const code = c.charCodeAt(0);
    return code < 256 ? "\\x" + code.toString(16).padStart(2, "0") : "\\u" + code.toString(16);
  });
}

/* Everything that does not depend on the sample type. */
function buildModel(data) {
  const m = {data, types: data.types, files: data.files, isDiff: !!data.base, name: [], module: [], place: []};
  const str = data.strings;
  const frames = data.frames;
  m.frameCount = frames.name.length;
  for (let f = 0; f < m.frameCount; f++) {
    m.name.push(visible(str[frames.name[f]]) || "?");
    m.module.push(visible(str[frames.module[f]]));
    const file = visible(str[frames.file[f]]);
    m.place.push(file && frames.line[f] > 0 ? file + ":" + frames.line[f] : file);
  }
  const n = data.nodes.frame.length + 1;
  m.nodeCount = n;
  m.frame = new Int32Array(n).fill(-1);
  m.parent = new Int32Array(n).fill(-1);
  m.depth = new Int32Array(n);
  for (let i = 1; i < n; i++) {
    m.frame[i] = data.nodes.frame[i - 1];
    m.parent[i] = i - data.nodes.up[i - 1];
    m.depth[i] = m.depth[m.parent[i]] + 1;
  }
  m.isFirst = firstOnPath(m);
  m.rows = unpackRows(data.rows);
  m.baseRows = data.base ? unpackRows(data.base) : null;
  m.sums = new Map();
  const lists = new Int32Array(n + 1);
  for (let i = 1; i < n; i++) lists[m.parent[i] + 1]++;
  for (let i = 0; i < n; i++) lists[i + 1] += lists[i];
  m.childStart = lists;
  const fill = lists.slice();
  m.childInOrder = new Int32Array(n - 1);
  for (let i = 1; i < n; i++) m.childInOrder[fill[m.parent[i]]++] = i;
  const byName = Array.from(m.name.keys()).sort((a, b) => (m.name[a] < m.name[b] ? -1 : m.name[a] > m.name[b] ? 1 : 0));
  m.nameRank = new Int32Array(m.frameCount);
  byName.forEach((f, rank) => {
    m.nameRank[f] = rank;
  });
  m.byName = new Map();
  for (let f = 0; f < m.frameCount; f++)
    if (!m.byName.has(m.name[f])) m.byName.set(m.name[f], f);
  return m;
}

/* What one file holds: for each of its samples the node, the values and their variances. */
function unpackRows(rows) {
  const node = new Int32Array(rows.node.length);
  for (let r = 0, at = 0; r < node.length; r++) node[r] = (at += rows.node[r]);
  return {node, values: rows.values, variances: rows.variances};
}

/* 1 where the node's function does not occur nearer to the root of its stack: cumulative sums count a stack once. Nodes come
 * in preorder, so the path to a node is a prefix of the path of the one before it, plus itself. */
function firstOnPath(m) {
  const first = new Uint8Array(m.nodeCount);
  const open = new Int32Array(m.frameCount);
  const path = [0];
  for (let i = 1; i < m.nodeCount; i++) {
    while (path[path.length - 1] !== m.parent[i]) open[m.frame[path.pop()]]--;
    first[i] = open[m.frame[i]]++ === 0 ? 1 : 0;
    path.push(i);
  }
  return first;
}

function sumUp(m, perNode) {
  const cum = perNode.slice();
  for (let i = m.nodeCount - 1; i > 0; i--) cum[m.parent[i]] += cum[i];
  return cum;
}

function largestBelow(m, perNode) {
  const most = perNode.slice();
  for (let i = m.nodeCount - 1; i > 0; i--)
    if (most[m.parent[i]] < most[i]) most[m.parent[i]] = most[i];
  return most;
}

/* Adds the rows of one file up by node. */
function addRows(m, s, rows, onlyHits, self, variance, one) {
  const values = rows.values[s.type], [variances, ones] = rows.variances[s.type] || [null, null];
  const all = {total: 0, flatHits: 0, cumHits: 0, variance: 0, one: 0};
  for (let r = 0; r < values.length; r++) {
    const i = rows.node[r], v = values[r], q = variances ? variances[r] : 0, o = ones ? ones[r] : 0;
    if (v < 0) s.signed = true;
    all.total += v;
    all.variance += q;
    if (o > all.one) all.one = o;
    if (s.hits && s.pathHit[i]) {
      all.cumHits += v;
      if (s.hits[m.frame[i]]) all.flatHits += v;
    }
    if (onlyHits && s.hits && !s.pathHit[i]) continue;
    self[i] += v;
    variance[i] += q;
    if (o > one[i]) one[i] = o;
  }
  return all;
}

/* All sums for one sample type. `hits`: null, or for each frame whether it matches; with `onlyHits` stacks without a match
 * do not count. Flat and cum by node and by frame: value, base (0 without one), error; weight: what a box is wide by. */
function sumType(m, t, hits, onlyHits) {
  const n = m.nodeCount, column = () => new Float64Array(n);
  const s = {type: t, hits, pathHit: null, matchedFrames: 0, signed: false};
  if (hits) {
    s.pathHit = new Uint8Array(n);
    for (let i = 1; i < n; i++) s.pathHit[i] = s.pathHit[m.parent[i]] | hits[m.frame[i]];
    for (let f = 0; f < m.frameCount; f++) s.matchedFrames += hits[f];
  }
  const variance = column(), one = column(), weight = column();
  s.self = column();
  s.base = column();
  const now = addRows(m, s, m.rows, onlyHits, s.self, variance, one);
  const old = m.baseRows ? addRows(m, s, m.baseRows, onlyHits, s.base, variance, one) : null;
  for (let i = 0; i < n; i++) weight[i] = m.baseRows ? Math.max(s.self[i], s.base[i], 0) : Math.abs(s.self[i]);
  s.matchedFlat = now.flatHits;
  s.matchedCum = now.cumHits;
  s.total = now.total;
  s.totalBase = old ? old.total : 0;
  s.totalSe = standardError(m, now.variance + (old ? old.variance : 0), Math.max(now.one, old ? old.one : 0));
  s.cum = sumUp(m, s.self);
  s.cumBase = sumUp(m, s.base);
  s.weight = sumUp(m, weight);
  s.fn = sumFrames(m, s, variance, one);
  return s;
}

/* The same, remembered until the query changes. */
function sumsOf(m, t, hits, onlyHits) {
  if (m.sumsHits !== hits || m.sumsOnly !== onlyHits) {
    m.sums.clear();
    m.sumsHits = hits;
    m.sumsOnly = onlyHits;
  }
  if (!m.sums.has(t)) m.sums.set(t, sumType(m, t, hits, onlyHits));
  return m.sums.get(t);
}

/* The figures of each function, and the error of each box (s.se). */
function sumFrames(m, s, variance, one) {
  const count = m.frameCount, column = () => new Float64Array(count);
  const fn = {flat: column(), cum: column(), flatBase: column(), cumBase: column(), flatSe: column(), cumSe: column()};
  const flatOne = column(), cumOne = column();
  const below = sumUp(m, variance), most = largestBelow(m, one);
  for (let i = 1; i < m.nodeCount; i++) {
    const f = m.frame[i];
    fn.flat[f] += s.self[i];
    fn.flatBase[f] += s.base[i];
    fn.flatSe[f] += variance[i];
    flatOne[f] = Math.max(flatOne[f], one[i]);
    if (!m.isFirst[i]) continue;
    fn.cum[f] += s.cum[i];
    fn.cumBase[f] += s.cumBase[i];
    fn.cumSe[f] += below[i];
    cumOne[f] = Math.max(cumOne[f], most[i]);
  }
  for (let f = 0; f < count; f++) {
    fn.flatSe[f] = standardError(m, fn.flatSe[f], flatOne[f]);
    fn.cumSe[f] = standardError(m, fn.cumSe[f], cumOne[f]);
  }
  s.se = below.map((v, i) => standardError(m, v, most[i]));
  return fn;
}

/* Where each box begins, in units of weight (s.x), how deep it goes below (s.below), children heaviest first (s.child). Made
 * when a sample type is first drawn. */
function layOut(m, s) {
  if (s.x) return;
  const w = s.weight;
  s.child = m.childInOrder.slice();
  s.x = new Float64Array(m.nodeCount);
  s.below = new Int32Array(m.nodeCount);
  for (let i = m.nodeCount - 1; i > 0; i--) {
    if (w[i] > 0 && s.below[m.parent[i]] < s.below[i] + 1) s.below[m.parent[i]] = s.below[i] + 1;
  }
  for (let i = 0; i < m.nodeCount; i++) {
    const from = m.childStart[i], to = m.childStart[i + 1];
    if (to - from > 1) s.child.subarray(from, to).sort((a, b) => w[b] - w[a] || a - b);
    let at = s.x[i];
    for (let c = from; c < to; c++) {
      s.x[s.child[c]] = at;
      at += w[s.child[c]];
    }
  }
}

/* The neighbours of a function: for each caller (or callee) the cumulative value of the stacks that hold the edge, once
 * each: an edge counts where it does not occur nearer to the root already (openCaller, openCallee: occurrences on the path).
 * Calls of itself are not edges. */
function neighbours(m, s, frame) {
  const callers = new Map(), callees = new Map();
  const openCaller = new Int32Array(m.frameCount + 1), openCallee = new Int32Array(m.frameCount + 1);
  const path = [0];
  const add = (map, f, i) => {
    if (s.weight[i] !== 0) map.set(f, (map.get(f) || 0) + s.cum[i]);
  };
  const close = (i) => {
    const up = m.frame[m.parent[i]];
    if (up === frame && m.frame[i] === frame) return;
    if (m.frame[i] === frame) openCaller[up + 1]--;
    if (up === frame) openCallee[m.frame[i]]--;
  };
  for (let i = 1; i < m.nodeCount; i++) {
    while (path[path.length - 1] !== m.parent[i]) close(path.pop());
    const up = m.frame[m.parent[i]];
    if (up === frame && m.frame[i] === frame) {
      path.push(i);
      continue;
    }
    if (m.frame[i] === frame && openCaller[up + 1]++ === 0) add(callers, up, i);
    if (up === frame && openCallee[m.frame[i]]++ === 0) add(callees, m.frame[i], i);
    path.push(i);
  }
  const sorted =
      (map) => [...map].map(([f, value]) => ({frame: f, value})).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  return {callers: sorted(callers), callees: sorted(callees)};
}

/* A query -> one byte a frame, or null for the empty query. Throws SyntaxError for a bad expression. */
function findFrames(m, query, isRegex) {
  if (!query) return null;
  const hits = new Uint8Array(m.frameCount);
  const lower = query.toLowerCase();
  const re = isRegex ? new RegExp(query, "i") : null;
  for (let f = 0; f < m.frameCount; f++)
    hits[f] = (re ? re.test(m.name[f]) : m.name[f].toLowerCase().includes(lower)) ? 1 : 0;
  return hits;
}

/* 12345678, "bytes" -> "11.8 MiB"; counts in groups of three. */
function formatValue(value, unit) {
  const sign = value < 0 ? "−" : "";
  let v = Math.abs(value);
  if (unit !== "bytes")
    return sign +
        (v >= 100 || Number.isInteger(v) ? Math.round(v).toLocaleString("en-US").replace(/,/g, "\u2009") : v.toPrecision(2));
  const names = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let k = 0;
  while (v >= 1023.95 && k < names.length - 1) {
    v /= 1024;
    k++;
  }
  return sign + (k === 0 ? v.toFixed(0) : v >= 100 ? v.toFixed(1) : v.toFixed(2)) + "\u00a0" + names[k];
}

function formatChange(value, unit) { return value > 0 ? "+" + formatValue(value, unit) : formatValue(value, unit); }

function formatShare(value, total) {
  if (!total) return "–";
  const share = Math.abs((100 * value) / total);
  return (value < 0 ? "−" : "") + share.toFixed(share >= 9.995 ? 1 : 2) + "%";
}
