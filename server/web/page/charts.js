// Line charts by Chart.js, in the colors of the style sheet.

/* global Chart */
import {element, setText} from "./dom.js";
import {clock, number} from "./format.js";

const live = new Set();
const probe = element("span", {hidden: true});

// A color as the style sheet has it now: light or dark.
export function color(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
const faint = (text) => text.replace(/^rgb\((.*)\)$/, "rgba($1, 0.16)");

export function recolorCharts() {
  for (const chart of live) chart.recolor();
}

const axis = (format, maxTicks) => ({
  grid: {drawTicks: false},
  border: {display: false},
  ticks: {maxTicksLimit: maxTicks, padding: 5, font: {size: 11}, maxRotation: 0, autoSkipPadding: 18, callback: format},
});

const TIME_STEPS_S = [10, 30, 60, 120, 300, 600, 1800];
const PIXELS_OF_TICK = 88;

// Ticks at round times of the clock.
function timeTicks({min, max, chart}) {
  const seconds = (max - min) / 1000, most = Math.min(4, chart.width / PIXELS_OF_TICK), ticks = [];
  const step = (TIME_STEPS_S.find((s) => seconds / s <= most) || 3600) * 1000;
  for (let value = Math.ceil(min / step) * step; value <= max; value += step) ticks.push({value});
  return ticks;
}

// A canvas in a figure, with a legend that also shows the latest values.
//     title, lines: [{ label, color, dash, fill, faint, hidesKey }], format: of values, isTime: x is a time in
//     milliseconds, isLog and startsAtZero: of y, empty: said while there are no points
export class LineChart {
  constructor({
    title,
    lines = [],
    format = number,
    isTime = true,
    isLog = false,
    startsAtZero = isTime,
    height = "",
    showsValues = true,
    empty = ""
  }) {
    Object.assign(this, {format, isLog});
    this.showsValues = showsValues;
    this.empty = element("p", {class: "no-points soft"}, empty);
    this.legend = element("span", {class: "legend"});
    this.heading = element("span", {}, title);
    this.canvas = element("canvas", {role: "img"});
    this.title = title;
    this.figure = element(
        "figure", {}, element("figcaption", {}, this.heading, this.legend),
        element("div", {class: `plot ${height}`}, this.canvas, this.empty));
    const x = axis((value) => (isTime ? clock(value) : number(value)), 8);
    if (isTime)
      x.afterBuildTicks = (scale) => {
        scale.ticks = timeTicks(scale);
      };
    this.chart = new Chart(this.canvas, {
      type: "line",
      data: {datasets: []},
      options: {
        animation: false,
        parsing: false,
        normalized: true,
        maintainAspectRatio: false,
        elements: {point: {radius: 0, hitRadius: 6, hoverRadius: 3}, line: {borderWidth: 1.7}},
        interaction: {mode: isTime ? "index" : "nearest", axis: "x", intersect: false},
        scales: {
          x: {type: "linear", ...x},
          y: {beginAtZero: startsAtZero, ...axis((value) => (this.isRound(value) ? format(value) : null), 5)}
        },
        plugins: {
          legend: {display: false},
          tooltip: {
            displayColors: true,
            boxPadding: 3,
            callbacks: {
              title: (items) =>
                  (items.length ? (isTime ? clock(items[0].parsed.x) : `step ${number(items[0].parsed.x)}`) : ""),
              label: (item) => `${item.dataset.label}: ${format(item.parsed.y)}`,
            }
          },
        },
      },
    });
    live.add(this);
    this.setLines(lines);
  }

  setLines(lines) {
    this.lines = lines;
    const dataset = ({label, dash, fill, faint}) => (
        {label, data: [], borderDash: dash ? [5, 4] : [], fill: fill ? "origin" : false, borderWidth: faint ? 1 : 1.7});
    this.chart.data.datasets = lines.map(dataset);
    this.values = lines.map((line) => {
      const value = element("b");
      return {
        value,
        item: element(
            "span", {class: "key"}, element("i", {class: `swatch ${line.color}`}), line.label, this.showsValues && " ",
            this.showsValues && value)
      };
    });
    this.legend.replaceChildren(...this.values.filter((_, i) => !lines[i].hidesKey).map(({item}) => item));
    this.recolor(false);
  }

  recolor(draws = true) {
    const text = color("soft"), line = color("line");
    for (const name of ["x", "y"]) {
      const scale = this.chart.options.scales[name];
      scale.ticks.color = text;
      scale.grid.color = name === "y" ? line : "transparent";
      scale.grid.borderColor = "transparent";  // Chart.js 3; `border` is that of later ones
    }
    this.chart.data.datasets.forEach((dataset, i) => {
      const own = color(this.lines[i].color);
      Object.assign(dataset, {
        borderColor: this.lines[i].faint ? faint(own).replace("0.16", "0.35") : own,
        backgroundColor: this.lines[i].fill ? faint(own) : own
      });
    });
    if (draws) this.chart.update("none");
  }

  // One list of { x, y } for each line; y is NaN where the line is broken. The legend shows the last values.
  update(points, {min, max, isLog = this.isLog} = {}) {
    points.forEach((list, i) => {
      this.chart.data.datasets[i].data = list;
      const last = list.length ? list[list.length - 1].y : NaN;
      setText(this.values[i].value, isNaN(last) ? "–" : this.format(last));
    });
    this.empty.hidden = points.some((list) => list.some((point) => !isNaN(point.y)));
    const {x, y} = this.chart.options.scales;
    x.min = min;
    x.max = max;
    y.type = isLog ? "logarithmic" : "linear";
    this.hasLogScale = isLog;
    this.canvas.setAttribute(
        "aria-label",
        `${this.title}: ${
            this.lines.map((line, i) => `${line.label} ${this.values[i].value.textContent}`).join(", ")}`);
    this.chart.update("none");
  }

  // Points of a Series of the store, by the names of their fields, in the last `seconds`.
  updateSeries(points, fields, nowMs, seconds) {
    const min = nowMs - seconds * 1000, shown = points.filter((point) => point.ms >= min - 5000);
    this.update(
        fields.map((field) => shown.map((point) => ({x: point.ms, y: point.gap ? NaN : point[field]}))),
        {min, max: nowMs});
  }

  // A logarithmic axis has labels at 1, 10, 100 only.
  isRound(value) {
    const power = Math.log10(value);
    return !this.hasLogScale || Math.abs(power - Math.round(power)) < 1e-9;
  }

  close() {
    live.delete(this);
    this.chart.destroy();
  }
}
