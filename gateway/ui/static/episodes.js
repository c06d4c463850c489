// Long-term memory: its layers over time; a packed line lights the turns that it is from.
"use strict";

const mbLayerCharts = new Map();

function mbLayers(id, told) {
  mbLayerCharts.set(id, told);
  mbDrawLayers(id);
}
function mbDrawLayers(id, tries = 50) {
  const told = mbLayerCharts.get(id), element = getElement(id), chart = element && element.chart;
  if (!chart) {
    if (tries) setTimeout(() => mbDrawLayers(id, tries - 1), 100);
    return;
  }
  const quiet = mbColour("t3"), span = told.points.length ? told.points.at(-1)[0] - told.points[0][0] : 0, day = 86400e3;
  const format = span > 500 * day ? { month: "short", year: "2-digit" } : span > 200 * day ? { month: "short" }
    : span > 2 * day ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit" };
  const written = new Intl.DateTimeFormat(told.language, format);
  const whole = new Intl.DateTimeFormat(told.language, { dateStyle: "medium" });
  const brief = new Intl.NumberFormat(told.language, { notation: "compact" });
  const number = (value) => Math.round(value).toLocaleString(told.language);
  const label = { color: quiet, fontSize: 11, hideOverlap: true };
  chart.setOption({
    animation: false,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
    grid: { left: 56, right: 14, top: 8, bottom: 24 },
    tooltip: {
      trigger: "axis", confine: true, backgroundColor: mbColour("bg3"), borderColor: mbColour("line2"), padding: [6, 10],
      textStyle: { color: mbColour("t1"), fontSize: 12 }, valueFormatter: number,
      axisPointer: { lineStyle: { color: mbColour("line2") }, label: { formatter: (at) => whole.format(at.value) } },
    },
    xAxis: {
      type: "time", axisLine: { lineStyle: { color: mbColour("line") } }, axisTick: { show: false }, splitLine: { show: false },
      splitNumber: 6, axisLabel: { ...label, formatter: (at) => written.format(at) },
    },
    yAxis: {
      type: "value", splitNumber: 3, minInterval: 1, splitLine: { lineStyle: { color: mbColour("line") } },
      axisLabel: { ...label, formatter: (value) => (value >= 1e4 ? brief.format(value) : number(value)) },
    },
    series: ["cold", "warm", "hot"].map((layer, at) => {
      const color = mbColour(layer);
      return { name: told.names[layer], type: "line", stack: "kept", symbol: "none", lineStyle: { width: 1.5, color },
        itemStyle: { color }, areaStyle: { color, opacity: 0.25 }, data: told.points.map((point) => [point[0], point[at + 1]]) };
    }),
  }, { replaceMerge: ["series"] });
  chart.resize();
  element.$el.dataset.points = told.points.length;
}
window.addEventListener("mb-theme", () => { for (const id of mbLayerCharts.keys()) mbDrawLayers(id, 0); });

function mbLight(event) {
  const line = event.target.closest && event.target.closest("[data-sources]");
  if (!line && !document.querySelector(".mb-lit")) return;
  const wanted = new Set(line ? line.dataset.sources.split(" ") : []);
  let first = null;
  for (const turn of document.querySelectorAll("[data-raw]")) {
    const isLit = wanted.has(turn.dataset.raw);
    turn.classList.toggle("mb-lit", isLit);
    if (isLit) first ||= turn;
  }
  if (first && !mbIsPhone()) first.scrollIntoView({ block: "nearest" });
}
document.addEventListener("mouseover", mbLight);
document.addEventListener("focusin", mbLight);
