/* SPDX-License-Identifier: MIT
 * view_page_trend.js - one small chart for each stack whose memory was followed over several dumps (`heapprof view
 * --trend`). */

const SVG = "http://www.w3.org/2000/svg";

function drawTrend(m, place, onPick) {
  const t = m.data.trend;
  const suspects = t.series.filter((x) => x.suspect).length;
  const lead = make("p", "lead");
  lead.append(make(
      "b", "",
      suspects === 0     ? "No leak suspect." :
          suspects === 1 ? "1 leak suspect." :
                           suspects + " leak suspects."));
  lead.append(
      ` ${t.times_ms.length} dumps over ${formatSpan(t.times_ms[t.times_ms.length - 1] - t.times_ms[0])}; ${
          t.tested} stacks tested. ` +
      "A suspect grows at 99.9 % confidence after correction for the number of stacks, and still grows in the last part. " +
      "The band is one standard error of sampling.");
  place.replaceChildren(lead, ...t.series.map((x) => seriesBlock(m, t, x, onPick)));
}

function formatSpan(ms) {
  const s = Math.round(ms / 1000);
  if (s < 120) return s + " s";
  if (s < 7200) return Math.round(s / 60) + " min";
  return s < 172800 ? (s / 3600).toFixed(1) + " h" : (s / 86400).toFixed(1) + " days";
}

function seriesBlock(m, t, x, onPick) {
  const block = make("article", "series" + (x.suspect ? " suspect" : ""));
  const figures = make("div");
  const rate = make("p", "rate", formatChange(x.slope, "bytes") + "/h ");
  rate.append(make("small", "", "± " + formatValue(x.slope_se, "bytes")));
  figures.append(rate);
  if (x.suspect) figures.append(make("span", "badge", "leak suspect"));
  figures.append(
      make("p", "note", formatValue(x.values[0], "bytes") + " → " + formatValue(x.values[x.values.length - 1], "bytes")));
  if (x.levels_off) figures.append(make("p", "note", "levels off"));
  if (x.age) figures.append(make("p", "note", "oldest block lives " + x.age));
  const list = make("ol");
  const fill = (count) => {
    list.replaceChildren(...x.stack.slice(0, count).map((f) => {
      const li = make("li", "", m.name[f]);
      li.title = m.name[f];
      return li;
    }));
    if (count < x.stack.length) {
      const more = make("button", "more", `${x.stack.length - count} more callers`);
      more.type = "button";
      more.addEventListener("click", (e) => {
        e.stopPropagation();
        fill(x.stack.length);
      });
      list.append(more);
    }
  };
  fill(x.stack.length > 4 ? 3 : 4);
  list.addEventListener("dblclick", () => onPick(x.stack[0]));
  block.append(chart(t.times_ms, x), figures, list);
  return block;
}

function svg(tag, attributes) {
  const e = document.createElementNS(SVG, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}

function chart(times, x) {
  const W = 220, H = 56, left = 2, right = 6, top = 6, bottom = 6;
  const from = times[0], span = times[times.length - 1] - from || 1;
  const high = Math.max(...x.values.map((v, i) => v + x.errors[i]), 1);
  const px = (i) => left + ((times[i] - from) / span) * (W - left - right);
  const py = (v) => H - bottom - (Math.max(v, 0) / high) * (H - top - bottom);
  const point = (i, v) => px(i).toFixed(1) + " " + py(v).toFixed(1);
  const up = x.values.map((v, i) => point(i, v + x.errors[i]));
  const down = x.values.map((v, i) => point(i, v - x.errors[i])).reverse();
  const out = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "bytes in use over time"});
  out.append(
      svg("path", {class: "band", d: "M" + up.concat(down).join("L") + "Z"}),
      svg("path", {class: "curve", d: "M" + x.values.map((v, i) => point(i, v)).join("L")}),
      svg("circle", {class: "dot", r: 4, cx: px(times.length - 1), cy: py(x.values[x.values.length - 1])}));
  const title = svg("title", {});
  title.textContent =
      x.values.map((v, i) => new Date(times[i]).toISOString().slice(11, 19) + "  " + formatValue(v, "bytes")).join("\n");
  out.append(title);
  return out;
}
