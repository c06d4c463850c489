// The timeline's chart: marks in lanes, an overview to zoom with, the chain of what is selected.
"use strict";

const MB_TOPICS = ["raw", "processed", "notification", "artifact", "process", "dialogue", "fleet", "sim", "kem", "episode", "subagent"];
const MB_TOP = 84, MB_PLOT = 40, MB_MOST = 2000, MB_KEPT = 6000;
const MB_ASK = 1, MB_WORK = 2, MB_FAIL = 3;

class MbTimeline {
  constructor(id, words) {
    this.id = id;
    this.words = words;
    this.marks = [];
    this.extra = [];
    this.counts = this.detail = null;
    this.covered = [];
    this.lanes = [];
    this.hidden = new Set();
    this.chain = new Map();
    this.links = [];
    this.selected = null;
    this.colours = {};
    this.zoom = [0, 100];
    this.follows = true;
    this.lane = 84;
    this.theme = () => { this.colours = {}; this.draw(); };
    window.addEventListener("mb-theme", this.theme);
  }

  get chart() {
    const element = getElement(this.id);
    return element && element.chart;
  }
  colour(name) {
    return (this.colours[name] ||= mbColour(name));
  }
  get font() {
    return (this.face ||= getComputedStyle(document.body).fontFamily);
  }
  topic(mark) {
    return this.colour(MB_TOPICS[mark.topic] || "fleet");
  }

  // A mark: id, t (ms), end (ms), lane, shape, topic, name, label. Counts: start (ms), width (ms), slots, and rows of
  // slot, lane, topic, number.
  set(lanes, height, hidden, marks, counts, from, to) {
    this.lanes = lanes;
    this.lane = height;
    this.hidden = new Set(hidden);
    this.marks = marks;
    this.counts = new MbCounts(counts);
    this.range = [from, to];
    this.asked = false;
  }
  // What is known of the window: its marks, or its counts in finer slots; spans of which every event is a mark.
  look(marks, detail, covered) {
    this.extra = marks;
    this.detail = detail && new MbCounts(detail);
    this.covered = covered;
    if (!this.zoomed) this.begin();
    this.draw();
    if (!this.asked && !this.isCovered()) this.tell();
  }
  // At first all that there is fills the view, and goes on filling it until somebody zooms.
  begin() {
    this.zoomed = true;
    const [start, end] = this.words.zoom || [];
    this.fitted = !(end > start);
    if (!this.fitted) this.zoom = [start, end];
  }
  fit() {
    const [from, to] = this.range, { start, width, rows } = this.counts;
    let first = to - 30000, last = from;
    for (const [slot] of rows.values()) [first, last] = [Math.min(first, start + slot * width), Math.max(last, start + (slot + 1) * width)];
    if (this.covered.some(([start, end]) => start <= from && end === null)) {
      // To the event, where each of the range is known.
      const shown = this.marks.filter((mark) => mark.end >= from);
      first = Math.min(to - 30000, ...shown.map((mark) => mark.t));
      last = Math.max(from, ...shown.map((mark) => mark.end));
    }
    const room = Math.max(15000, (last - first) * 0.04), percent = 100 / (to - from);
    this.zoom = [Math.max(0, (first - room - from) * percent), last > from ? Math.min(100, (last + room * 3 - from) * percent) : 100];
  }
  centre(first, last) {
    const [from, to] = this.range, percent = 100 / (to - from);
    const half = Math.max((last - first) * 0.65, Math.min(30000, (to - from) / 4)), middle = (first + last) / 2;
    this.fitted = false;
    this.zoom = [Math.max(0, (middle - half - from) * percent), Math.min(100, (middle + half - from) * percent)];
    this.draw();
    this.tell();
  }
  add(marks, to) {
    const known = new Set(this.marks.map((mark) => mark.id));
    for (const mark of marks.filter((each) => !known.has(each.id))) {
      this.marks.push(mark);
      this.counts?.add(mark);
      this.detail?.add(mark);
    }
    if (!this.range) return;
    if (to) this.move(to);
    else this.draw();
  }
  move(to) {
    if (!this.range) return;
    const [from, end] = this.range;
    this.range = [from + (to - end), to];
    const oldest = this.range[0] - 60000;
    this.marks = this.marks.filter((mark) => mark.end >= oldest);
    if (this.marks.length > MB_KEPT) {
      this.marks = this.marks.sort((a, b) => a.end - b.end).slice(-MB_KEPT);
      this.covered[0][0] = Math.max(this.covered[0][0], this.marks[0].end);
    }
    this.draw();
  }
  select(id, chain, links) {
    this.selected = id;
    this.chain = new Map(chain.map((each) => [each, true]));
    this.links = links;
    this.draw();
  }
  step(factor, at) {
    const [start, end] = this.zoom;
    const middle = at ?? (start + end) / 2;
    const half = factor ? Math.max(0.5, ((end - start) / 2) * factor) : 50;
    const chosen = factor ? [Math.max(0, middle - half), Math.min(100, middle + half)] : [0, 100];
    this.isFitting = !factor;
    this.chart?.dispatchAction({ type: "dataZoom", start: chosen[0], end: chosen[1] });
  }
  window() {
    const [from, to] = this.range, span = to - from;
    return [from + (span * this.zoom[0]) / 100, from + (span * this.zoom[1]) / 100];
  }
  shown() {
    const known = new Set(this.marks.map((mark) => mark.id));
    const marks = this.marks.concat(this.extra.filter((mark) => !known.has(mark.id)));
    return marks.filter((mark) => !this.hidden.has(MB_TOPICS[mark.topic]));
  }
  // Every event of the window is a mark.
  isCovered() {
    const [from, to] = this.window();
    // To the millisecond: the gateway counts in microseconds, a zoom in percent.
    const reaches = (start) => this.covered.some(([first, last]) => first <= start + 1 && (last === null || last >= to - 1
      || (last > start + 1 && reaches(last))));
    return reaches(from);
  }

  draw() {
    const chart = this.chart;
    if (!chart || !this.range) {
      if (this.range) setTimeout(() => this.draw(), 10);
      return;
    }
    if (!this.listening) this.listen(chart);
    if (this.fitted) this.fit();
    chart.setOption(this.option(), { replaceMerge: ["series"], lazyUpdate: true });
  }
  listen(chart) {
    this.listening = true;
    chart.on("datazoom", () => {
      const zoom = chart.getOption().dataZoom[0];
      this.zoom = [zoom.start, zoom.end];
      this.fitted = zoom.start < 0.01 && zoom.end > 99.99 && this.isFitting;
      this.isFitting = false;
      clearTimeout(this.telling);
      this.telling = setTimeout(() => {
        this.tell();
        this.draw();
      }, 120);
    });
    chart.on("click", (event) => {
      if (event.seriesId === "marks") emitEvent("mb_mark", { id: this.drawn[event.dataIndex].id });
      if (event.seriesId === "cells") {
        const [from, to] = this.range;
        this.step(0.25, ((event.value[0] + this.grid().width / 2 - from) / (to - from)) * 100);
      }
    });
    chart.on("rendered", () => this.ticks(chart));
    chart.getZr().on("click", (event) => { if (!event.target) emitEvent("mb_mark", { id: null }); });
  }
  // The scale stands still below the lanes, whichever of them are scrolled to.
  ticks(chart) {
    const place = getHtmlElement(Number(this.words.axis.slice(1)));
    const axis = chart.getModel().getComponent("xAxis", 1)?.axis;
    if (!place || !axis) return;
    const [from, to] = this.window(), times = axis.scale.getTicks().map((tick) => tick.value).filter((at) => at >= from && at <= to);
    const step = times.length > 2 ? times[2] - times[1] : to - from;
    const look = step >= 86400000 ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit", hour12: false };
    if (step < 60000) look.second = "2-digit";
    if (to - from > 86400000 && step < 86400000) Object.assign(look, { day: "numeric", month: "short" });
    const form = new Intl.DateTimeFormat(this.words.language, look), room = to - from > 86400000 ? 110 : 64;
    let taken = -room;
    const marks = times.map((at) => [axis.toGlobalCoord(axis.dataToCoord(at)), form.format(at)]).filter(([x]) => x - taken >= room && (taken = x, true));
    place.replaceChildren(...marks.map(([x, text]) => {
      const tick = Object.assign(document.createElement("span"), { textContent: text });
      tick.style.left = `${x}px`;
      return tick;
    }));
  }
  tell() {
    const [from, to] = this.window();
    this.asked = true;
    emitEvent("mb_zoom", { start: this.zoom[0], end: this.zoom[1], from, to, fitted: Boolean(this.fitted) });
  }
  isCrowded(marks) {
    if (this.words.traces) return false;
    if (!this.isCovered()) return true;
    const [from, to] = this.window();
    let seen = 0;
    for (const mark of marks) if (mark.end >= from && mark.t <= to) seen += 1;
    return seen > MB_MOST;
  }

  option() {
    const [from, to] = this.range;
    const marks = this.shown();
    this.crowded = this.isCrowded(marks);
    const height = MB_TOP + this.lanes.length * this.lane;
    const days = to - from > 86400000 * 1.5;
    const look = days ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit", hour12: false };
    const form = new Intl.DateTimeFormat(this.words.language, look);
    const label = { color: this.colour("t3"), fontSize: 11, fontFamily: this.font, hideOverlap: true, formatter: (at) => form.format(at) };
    const time = { type: "time", min: from, max: to, axisTick: { show: false }, axisLine: { show: false }, position: "top" };
    // The overview's hours stand inside it, those above the lanes are the lanes' own.
    const scale = this.scale();
    this.drawn = this.crowded ? marks.filter((mark) => mark.shape === MB_FAIL || this.chain.has(mark.id)) : marks;
    this.room = this.roomOfLabels();
    return {
      animation: false,
      textStyle: { fontFamily: label.fontFamily },
      grid: [{ left: 0, right: 12, top: 10, height: MB_PLOT }, { left: 0, right: 12, top: MB_TOP, height: height - MB_TOP }],
      xAxis: [
        { ...time, gridIndex: 0, axisLabel: { ...label, inside: true, margin: 2 }, splitLine: { show: false } },
        { ...time, gridIndex: 1, axisLabel: { ...label, color: this.colour("t2"), formatter: (at) => scale.format(at) }, splitLine: { show: true, lineStyle: { color: this.colour("line"), opacity: 0.7 } } },
      ],
      yAxis: [
        { type: "value", gridIndex: 0, show: false },
        { type: "value", gridIndex: 1, min: 0, max: Math.max(1, this.lanes.length), interval: 1, inverse: true, axisLabel: { show: false },
          axisLine: { show: false }, axisTick: { show: false }, splitLine: { show: true, lineStyle: { color: this.colour("line") } } },
      ],
      tooltip: this.tooltip(),
      dataZoom: [
        { type: "slider", xAxisIndex: [1], top: 10, height: MB_PLOT, left: 0, right: 12, start: this.zoom[0], end: this.zoom[1], filterMode: "none",
          brushSelect: true, showDataShadow: false, showDetail: false, borderColor: "transparent", backgroundColor: "transparent",
          fillerColor: this.zoom[1] - this.zoom[0] > 99 ? "transparent" : this.tint("acc", 0.14), moveHandleSize: 0, minSpan: 0.2,
          handleSize: this.zoom[1] - this.zoom[0] > 99 ? "0%" : "80%", handleIcon: "path://M0,0 h10 v32 h-10 z",
          handleStyle: { color: this.colour("bg1"), borderColor: this.colour("acc"), borderWidth: 1.5 },
          brushStyle: { color: this.tint("acc", 0.2) }, labelFormatter: "" },
        { type: "inside", xAxisIndex: [1], start: this.zoom[0], end: this.zoom[1], filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true, moveOnMouseWheel: "shift",
          preventDefaultMouseMove: false, minSpan: 0.2 },
      ],
      series: [...this.overview(), ...(this.crowded ? [this.cells()] : []), this.chainSeries(), this.markSeries()],
    };
  }
  // Times of the window, as fine as it is.
  scale() {
    const [from, to] = this.window(), span = to - from;
    const day = { day: "numeric", month: "short" }, hour = { hour: "2-digit", minute: "2-digit", hour12: false };
    const look = span > 86400000 * 4 ? day : span > 86400000 ? { ...day, ...hour } : span > 600000 ? hour : { ...hour, second: "2-digit" };
    return new Intl.DateTimeFormat(this.words.language, look);
  }
  // Until when the label of each piece of work has room: the next one in its lane may begin before it ends.
  roomOfLabels() {
    const room = new Map(), next = new Map();
    const works = this.drawn.filter((mark) => mark.shape === MB_WORK).sort((one, other) => other.t - one.t);
    for (const mark of works) {
      room.set(mark.id, Math.min(mark.end, next.get(mark.lane) ?? mark.end));
      next.set(mark.lane, mark.t);
    }
    return room;
  }
  tint(name, alpha) {
    const hex = this.colour(name).replace("#", "");
    const part = (at) => parseInt(hex.slice(at, at + 2), 16);
    return `rgba(${part(0)},${part(2)},${part(4)},${alpha})`;
  }

  overview() {
    const { width, start, rows } = this.counts, [from, to] = this.range;
    const first = Math.ceil((from - start) / width - 0.5), last = Math.floor((to - start) / width);
    // Stacks are by place: every topic has all slots.
    const columns = MB_TOPICS.map(() => new Array(Math.max(0, last - first + 1)).fill(0));
    for (const [slot, , topic, number] of rows.values()) if (slot >= first && slot <= last) columns[topic][slot - first] += number;
    // The last slot is not over yet.
    const middle = (at) => Math.min(start + (first + at + 0.5) * width, to - width / 4);
    return MB_TOPICS.map((name, topic) => ({
      id: "overview-" + name, type: "bar", stack: "overview", xAxisIndex: 0, yAxisIndex: 0, silent: true, barWidth: 4, itemStyle: { color: this.colour(name), opacity: 0.8 },
      data: columns[topic].map((number, at) => [middle(at), number]),
    })).filter((_series, topic) => !this.hidden.has(MB_TOPICS[topic]) && columns[topic].some(Boolean));
  }
  // The window's own counts, once they are there.
  grid() {
    const [from, to] = this.window(), fine = this.detail;
    const shared = fine ? Math.min(to, fine.end) - Math.max(from, fine.start) : 0;
    return fine && shared > (to - from) * 0.7 && fine.width < this.counts.width ? fine : this.counts;
  }
  cells() {
    const [from, to] = this.window(), { width, start, rows } = this.grid();
    const found = new Map();
    for (const [slot, lane, topic, number] of rows.values()) {
      const at = start + slot * width;
      if (lane < 0 || at + width < from || at > to || this.hidden.has(MB_TOPICS[topic])) continue;
      const key = slot * 1000 + lane;
      const cell = found.get(key) || [at, lane, 0, topic, 0];
      cell[2] += number;
      if (number > cell[4]) [cell[3], cell[4]] = [topic, number];
      found.set(key, cell);
    }
    const cells = [...found.values()], most = Math.max(1, ...cells.map((cell) => cell[2]));
    return {
      id: "cells", type: "custom", xAxisIndex: 1, yAxisIndex: 1, data: cells, clip: true, progressive: 0, encode: { x: 0, y: 1 },
      renderItem: (_params, api) => {
        const start = api.coord([api.value(0), api.value(1)]), end = api.coord([api.value(0) + width, api.value(1) + 1]);
        return { type: "rect", shape: { x: start[0], y: start[1] + this.lane * 0.26, width: Math.max(1, end[0] - start[0] - 1), height: this.lane * 0.48 },
          style: { fill: this.colour(MB_TOPICS[api.value(3)]), opacity: 0.15 + 0.8 * Math.sqrt(api.value(2) / most) } };
      },
    };
  }

  markSeries() {
    return {
      id: "marks", type: "custom", z: 4, xAxisIndex: 1, yAxisIndex: 1, clip: true, progressive: 0, encode: { x: [0, 1], y: 2 },
      data: this.drawn.map((mark) => [mark.t, mark.end, mark.lane]),
      renderItem: (params, api) => this.shape(this.drawn[params.dataIndex], api),
    };
  }
  shape(mark, api) {
    if (!mark) return null;
    const colour = this.topic(mark);
    const dim = this.selected && !this.chain.has(mark.id) ? 0.42 : 1;
    const at = api.coord([mark.t, mark.lane]), x = at[0], y = at[1] + this.lane * 0.29;
    const cursor = "pointer";
    if (mark.shape === MB_WORK) return this.bar(mark, api, colour, dim);
    if (mark.shape === MB_FAIL) {
      const err = this.colour("err");
      return { type: "group", children: [
        { type: "circle", shape: { cx: x, cy: y, r: 8 }, style: { fill: err, opacity: 0.22 * dim } },
        { type: "path", shape: { pathData: "M-3.5,-3.5L3.5,3.5M3.5,-3.5L-3.5,3.5", x: -3.5, y: -3.5, width: 7, height: 7 }, x, y, style: { stroke: err, lineWidth: 2, fill: "none", opacity: dim } },
      ], cursor };
    }
    const ring = mark.id === this.selected ? [{ type: "circle", shape: { cx: x, cy: y, r: 9 }, style: { fill: this.tint("acc", 0.2), stroke: this.colour("acc"), lineWidth: 2 } }] : [];
    const body = mark.shape === MB_ASK
      ? { type: "polygon", shape: { points: [[x, y - 6.5], [x + 6.5, y], [x, y + 6.5], [x - 6.5, y]] }, style: { fill: this.colour("bg0"), stroke: colour, lineWidth: 1.6, opacity: dim } }
      : { type: "circle", shape: { cx: x, cy: y, r: 5.5 }, style: { fill: colour, opacity: dim } };
    return { type: "group", children: [...ring, body], cursor };
  }
  bar(mark, api, colour, dim) {
    const start = api.coord([mark.t, mark.lane]), end = api.coord([mark.end, mark.lane]);
    const left = start[0], width = Math.max(5, end[0] - left), free = Math.min(width, api.coord([this.room.get(mark.id) ?? mark.end, mark.lane])[0] - left), y = start[1] + this.lane * 0.57;
    const took = (mark.end - mark.t) / 1000;
    const children = [
      { type: "rect", shape: { x: left, y, width, height: 18, r: 3 }, style: { fill: colour, opacity: 0.24 * dim } },
      { type: "rect", shape: { x: left, y, width: 3, height: 18, r: [3, 0, 0, 3] }, style: { fill: colour, opacity: dim } },
    ];
    const text = { fontSize: 11, fontFamily: this.font, opacity: dim, verticalAlign: "middle" };
    if (free > 40) children.push({ type: "text", style: { ...text, text: mark.label, x: left + 9, y: y + 9, fill: this.colour("t1"), width: free - 14, overflow: "truncate" } });
    if (free > 110 && free === width && took >= 0.05) children.push({ type: "text", style: { ...text, text: took.toFixed(1) + " " + this.words.s, x: left + width - 6, y: y + 9, align: "right", fill: this.colour("t2") } });
    if (mark.id === this.selected) children.push({ type: "rect", shape: { x: left - 1, y: y - 1, width: width + 2, height: 20, r: 4 }, style: { fill: "none", stroke: this.colour("acc"), lineWidth: 2 } });
    return { type: "group", children, cursor: "pointer" };
  }
  chainSeries() {
    return {
      id: "chain", type: "custom", xAxisIndex: 1, yAxisIndex: 1, silent: true, clip: true, encode: { x: [0, 2], y: [1, 3] }, data: this.links,
      renderItem: (_params, api) => {
        const from = api.coord([api.value(0), api.value(1)]), to = api.coord([api.value(2), api.value(3)]);
        const y1 = from[1] + this.lane * 0.29, y2 = to[1] + this.lane * 0.29, x1 = from[0], x2 = to[0];
        const bend = Math.min(6, Math.abs(y2 - y1) / 2, Math.max(0, x2 - x1));
        const down = y2 > y1 ? 1 : -1;
        const path = y1 === y2 ? `M${x1},${y1}L${x2},${y2}` : `M${x1},${y1}V${y2 - down * bend}Q${x1},${y2} ${x1 + bend},${y2}H${x2}`;
        return { type: "path", shape: { pathData: path, layout: "none" }, style: { stroke: this.colour("acc"), lineWidth: 1.5, fill: "none", opacity: 0.85 } };
      },
    };
  }
  tooltip() {
    return {
      trigger: "item", confine: true, appendTo: "body", borderWidth: 1, padding: [8, 12], backgroundColor: this.colour("bg1"), borderColor: this.colour("line2"),
      textStyle: { color: this.colour("t2"), fontSize: 12, fontFamily: this.font },
      extraCssText: "border-radius:8px;max-width:300px;white-space:normal;box-shadow:var(--shadow)",
      formatter: (params) => {
        if (params.seriesId === "cells") return this.words.cell.replace("{n}", params.value[2]);
        const mark = params.seriesId === "marks" ? this.drawn[params.dataIndex] : null;
        if (!mark) return "";
        const place = document.createElement("div");
        place.innerHTML = '<div style="display:flex;gap:8px;align-items:center"><i class="mb-dot"></i><b class="mb-mono"></b><span class="mb-num" style="margin-left:auto;padding-left:12px"></span></div><div class="mb-clamp"></div>';
        place.querySelector("i").style.color = mark.shape === MB_FAIL ? this.colour("err") : this.topic(mark);
        place.querySelector("b").textContent = mark.name;
        place.querySelector("span").textContent = mark.clock;
        place.querySelector(".mb-clamp").textContent = mark.about;
        return place;
      },
    };
  }
}
// Numbers of events by slot, lane and topic, to which live events are added.
class MbCounts {
  constructor({ start, width, slots, rows }) {
    this.start = start;
    this.width = width;
    this.end = start + slots * width;
    this.rows = new Map(rows.map((row) => [row.slice(0, 3).join(), row]));
  }
  add(mark) {
    const key = [Math.floor((mark.end - this.start) / this.width), mark.lane, mark.topic];
    const row = this.rows.get(key.join());
    if (row) row[3] += 1;
    else this.rows.set(key.join(), [...key, 1]);
  }
}
const mbTimelines = new Map();
function mbTimeline(id, words) {
  if (!mbTimelines.has(id)) {
    mbTimelines.set(id, new MbTimeline(id, { s: "s", cell: "{n}", axis: "c0", ...words }));
    window.mbTimelineOfPage = mbTimelines.get(id);
  }
  return mbTimelines.get(id);
}
