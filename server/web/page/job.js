// Training jobs: the curves of one, with those of others over them.

import {LineChart} from "./charts.js";
import {element, jobLink, modelLink, saveSetting, setPill, setText, setting, show} from "./dom.js";
import {bytes, count, dateTime, duration, number, steps} from "./format.js";
import {fetchJson} from "./store.js";

const COLORS = ["run1", "run2", "run3", "run4", "run5", "run6", "run7", "run8"];
const MAX_RUNS = COLORS.length;

// Exponential smoothing that is not pulled to its start: the weights of what was averaged add up to 1.
export function smooth(values, weight) {
  let total = 0, weights = 0;
  return values.map((value) => {
    if (value === null || !isFinite(value)) return NaN;
    total = total * weight + value * (1 - weight);
    weights = weights * weight + (1 - weight);
    return total / weights;
  });
}

export class JobView {
  #curves = new Map();  // id → { revision, train, metrics }
  #asking = new Set();
  #shown = "";          // which lines the charts have
  #colors = new Map();  // id → color, as long as the run is shown

  constructor(store, frame, id) {
    Object.assign(this, {store, frame, id, title: `Job ${id}`});
    this.selected = new Set([id]);
    this.heading = element("h1", {}, id);
    this.pill = element("span");
    this.facts = element("span");
    this.base = element("span", {hidden: true});
    this.message = element("p", {class: "note", hidden: true});
    this.progress = element("progress", {max: 1, value: 0, "aria-label": "Progress"});
    this.runs = element("div", {class: "list runs"});
    this.smoothing = element("input", {
      type: "range",
      id: "smoothing",
      min: 0,
      max: 0.99,
      step: 0.01,
      value: setting("smoothing", "0"),
      oninput: () => this.#changed()
    });
    this.smoothed = element("output", {"for": "smoothing"});
    this.log = element("input", {type: "checkbox", id: "log", onchange: () => this.#changed()});
    this.log.checked = setting("log", "") === "yes";
    this.metric = element("select", {id: "metric", onchange: () => this.#draw()});
    this.charts = {
      loss: new LineChart({title: "Loss", isTime: false, height: "tall", empty: "no steps yet"}),
      metric: new LineChart(
          {title: "Metric", isTime: false, empty: "nothing was evaluated: tensord train --eval-fraction 0.1"}),
      rate: new LineChart({title: "Learning rate", isTime: false, startsAtZero: true, empty: "no steps yet"})
    };
    const label = element("label", {"for": "metric"}, "Metric ");
    this.charts.metric.heading.replaceChildren(label, this.metric);
    this.element = this.#layout();
  }

  #layout() {
    const {loss, metric, rate} = this.charts;
    const controls = element(
        "div", {class: "bar controls"}, element("label", {"for": "smoothing"}, "Smoothing "), this.smoothing,
        this.smoothed, element("label", {}, this.log, " Log scale of the loss"));
    return element(
        "div", {class: "jobs"},
        element(
            "div", {class: "title"}, element("a", {href: "#/"}, "Jobs"), " / ", this.heading, this.pill, this.progress),
        element("p", {class: "facts soft"}, this.facts, this.base), this.message,
        element(
            "div", {class: "split"},
            element(
                "aside", {class: "card"}, element("h2", {}, "Runs"),
                element("p", {class: "soft"}, `Choose up to ${MAX_RUNS} to compare.`), this.runs),
            element(
                "section", {class: "curves", "aria-label": "Curves"}, controls,
                element("div", {class: "card", "data-chart": "Loss"}, loss.figure),
                element(
                    "div", {class: "charts two"},
                    element("div", {class: "card", "data-chart": "Metric"}, metric.figure),
                    element("div", {class: "card", "data-chart": "Learning rate"}, rate.figure)))));
  }

  #changed() {
    saveSetting("smoothing", this.smoothing.value);
    saveSetting("log", this.log.checked ? "yes" : "");
    this.#draw();
  }

  update() {
    const {jobs} = this.store.status, job = jobs.find(({id}) => id === this.id);
    this.#showRuns(jobs);
    if (!job) {
      setText(this.heading, this.id);
      this.message.hidden = false;
      this.message.className = "note bad-text";
      setText(this.message, "There is no such job among the newest ones.");
    } else {
      this.#showJob(job);
    }
    for (const id of this.selected) {
      const known = this.#curves.get(id), now = jobs.find((one) => one.id === id);
      if (now && (!known || known.revision !== now.revision)) this.#fetch(id);
    }
  }

  #showJob(job) {
    this.title = job.name || job.id;
    setText(this.heading, job.name || job.id);
    setPill(this.pill, job.state);
    this.progress.hidden = !job.total_steps;
    this.progress.value = job.total_steps ? Math.min(1, job.step / job.total_steps) : 0;
    const metrics = Object.entries(job.metrics).map(([name, value]) => `${name} ${number(value)}`);
    const parts = [
      steps(job), `epoch ${number(job.epoch)}`, `loss ${number(job.loss)}`,
      metrics.length ? `evaluated: ${metrics.join(", ")}` : "", `${job.optimizer}, rate ${number(job.learning_rate)}`,
      `batches of ${count(job.batch_size)}`, `${count(job.samples_per_second)} samples/s`,
      job.state === "RUNNING" && job.seconds_left >= 0 ? `${duration(job.seconds_left)} left` : "",
      bytes(job.memory_bytes), `began ${dateTime(job.created_ms)}`,
      job.published_version ? `published version ${job.published_version}` : "",
      ...Object.entries(job.tags).map(([name, value]) => `${name}=${value}`)
    ];
    setText(this.facts, parts.filter(Boolean).join(" · "));
    show(this.base, job.model, () => [" · trains ", element("a", {href: modelLink(job.model)}, job.model)]);
    this.base.hidden = !job.model;
    this.message.hidden = !job.message;
    this.message.className = `note ${job.state === "FAILED" ? "bad-text" : "soft"}`;
    setText(this.message, job.message);
  }

  #showRuns(jobs) {
    const texts = JSON.stringify([jobs.map(({id, state, loss}) => [id, state, loss]), [...this.selected]]);
    show(this.runs, texts, () => jobs.map((job) => this.#run(job)));
  }

  #run(job) {
    const isOn = this.selected.has(job.id), onchange = (event) => this.#select(job.id, event.target.checked);
    const box = element("input", {type: "checkbox", id: `run-${job.id}`, checked: isOn, onchange});
    const state = element("span");
    setPill(state, job.state);
    return element(
        "div", {class: "run", "data-job": job.id},
        element(
            "label", {}, box, element("i", {class: `swatch ${isOn ? this.#colorOf(job.id) : "off"}`}),
            ` ${job.name || job.id}`),
        state,
        element(
            "a", {class: "soft", href: jobLink(job.id), "aria-current": job.id === this.id ? "page" : false},
            `loss ${number(job.loss)}`));
  }

  #colorOf(id) {
    if (!this.#colors.has(id))
      this.#colors.set(id, COLORS.find((one) => ![...this.#colors.values()].includes(one)) || COLORS[0]);
    return this.#colors.get(id);
  }

  #select(id, isOn) {
    if (isOn && this.selected.size >= MAX_RUNS) isOn = false;
    if (isOn)
      this.selected.add(id);
    else
      this.selected.delete(id);
    if (!isOn) this.#colors.delete(id);
    this.update();
    this.#draw();
  }

  async #fetch(id) {
    if (this.#asking.has(id)) return;
    this.#asking.add(id);
    try {
      this.#curves.set(id, await fetchJson(`status/jobs/${encodeURIComponent(id)}`));
      if (this.element.isConnected) this.#draw();
    } catch {
      // The next poll asks again, and says so if the server is gone.
    } finally {
      this.#asking.delete(id);
    }
  }

  // One line for each run; the loss also has that of evaluations, dashed.
  #draw() {
    const weight = Number(this.smoothing.value), runs = [...this.selected].filter((id) => this.#curves.has(id));
    setText(this.smoothed, weight ? weight.toFixed(2) : "off");
    this.#showMetrics(runs);
    const metric = this.metric.value;
    this.#setLines(runs, metric);
    const raw = [], averaged = [], evaluated = [], measured = [], rates = [];
    for (const id of runs) {
      const {train, metrics} = this.#curves.get(id);
      const line = (steps, values) => steps.map((step, i) => ({x: step, y: values[i] ?? NaN}));
      raw.push(weight ? line(train.step, train.loss) : []);
      averaged.push(line(train.step, weight ? smooth(train.loss, weight) : train.loss));
      evaluated.push(metrics.loss ? line(metrics.loss.step, metrics.loss.value) : []);
      measured.push(metrics[metric] ? line(metrics[metric].step, metrics[metric].value) : []);
      rates.push(line(train.step, train.learning_rate));
    }
    const isLog = this.log.checked;
    this.charts.loss.update([...averaged, ...evaluated, ...raw], {isLog});
    this.charts.metric.update(measured);
    this.charts.rate.update(rates);
  }

  #showMetrics(runs) {
    const names = [...new Set(runs.flatMap((id) => Object.keys(this.#curves.get(id).metrics)))].sort();
    // The loss of evaluations is in the first chart already.
    names.sort((a, b) => (a === "loss") - (b === "loss"));
    if (JSON.stringify(names) === this.metric.dataset.names) return;
    this.metric.dataset.names = JSON.stringify(names);
    const chosen = this.metric.value;
    this.metric.replaceChildren(...names.map((name) => element("option", {selected: name === chosen}, name)));
    if (!names.length) this.metric.append(element("option", {value: ""}, "none"));
  }

  #setLines(runs, metric) {
    const jobs = new Map(this.store.status.jobs.map((job) => [job.id, job]));
    const shown = JSON.stringify([runs, metric]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const line = (id, more = {}) => ({label: jobs.get(id)?.name || id, color: this.#colorOf(id), ...more});
    this.charts.loss.setLines([
      ...runs.map((id) => line(id)),
      ...runs.map((id) => line(id, {dash: true, hidesKey: true, label: `${line(id).label}, evaluated`})),
      ...runs.map((id) => line(id, {faint: true, hidesKey: true, label: `${line(id).label}, raw`}))
    ]);
    this.charts.metric.setLines(runs.map((id) => line(id)));
    this.charts.rate.setLines(runs.map((id) => line(id)));
  }

  close() {
    for (const chart of Object.values(this.charts)) chart.close();
  }
}
