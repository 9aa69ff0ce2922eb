// The first view: the server's load, the models that need a look before all others, training jobs, memory.

import {LineChart} from "./charts.js";
import {element, jobLink, loadHint, modelLink, saveSetting, setPill, setText, setting, show} from "./dom.js";
import {ago, bytes, count, duration, number, percent, steps} from "./format.js";
import {keyOf} from "./store.js";

const MAX_ROWS = 200, MAX_OWNERS = 6, MAX_JOBS = 6;

// What a model needs of who looks: the order of the table.
const GROUPS = ["failing", "training", "active", "idle"];

function groupOf(model, store, recent) {
  const isDown = model.state === "UNAVAILABLE" && model.reason !== "unloaded";
  if (isDown || store.lastFailure(model)) return "failing";
  if (store.jobsOf(model.name).length) return "training";
  const isBusy = model.counts && (model.counts.in_flight > 0 || (recent && recent.requests > 0));
  return isBusy || model.state === "LOADING" || model.state === "UNLOADING" ? "active" : "idle";
}

const COLUMNS = [
  {id: "name", title: "Model", value: (row) => row.model.name, isText: true},
  {id: "state", title: "State"},
  {id: "rate", title: "Requests/s", value: (row) => row.recent?.rate ?? 0, show: (row) => count(row.recent?.rate)},
  {id: "p50", title: "Median", value: (row) => row.recent?.p50 || 0, show: (row) => duration(row.recent?.p50)},
  {id: "p99", title: "p99", value: (row) => row.recent?.p99 || 0, show: (row) => duration(row.recent?.p99)},
  {
    id: "queue",
    title: "Queue p99",
    value: (row) => row.recent?.queue99 || 0,
    show: (row) => duration(row.recent?.queue99)
  },
  {
    id: "failed",
    title: "Failed",
    value: (row) => row.recent?.failures ?? 0,
    show: (row) => count(row.recent?.failures)
  },
  {id: "flight", title: "In flight", value: (row) => row.counts.in_flight, show: (row) => count(row.counts.in_flight)},
  {id: "memory", title: "Memory", value: (row) => row.model.memory_bytes, show: (row) => bytes(row.model.memory_bytes)},
  {id: "last", title: "Last request", value: (row) => row.counts.last_request_ms, show: (row) => row.last},
];
const NO_COUNTS = {
  in_flight: 0,
  last_request_ms: 0,
  requests: 0
};

// A row of the table, kept while its model is there, so that focus and selections stay.
class ModelRow {
  constructor(model) {
    this.link = element("a", {href: modelLink(model.name, model.version)}, model.name);
    this.state = element("span");
    this.cells = COLUMNS.slice(2).map((column) => element("td", {class: `number ${column.id}`}));
    this.note = element("div", {class: "note"});
    this.noteRow = element("tr", {hidden: true}, element("td", {colspan: COLUMNS.length}, this.note));
    this.element = element(
        "tbody", {"data-model": keyOf(model)},
        element(
            "tr", {},
            element(
                "th", {scope: "row"}, this.link,
                element("span", {class: "soft version"}, model.version && ` v${model.version}`)),
            element("td", {}, this.state), ...this.cells),
        this.noteRow);
  }

  update(row, store) {
    this.element.className = row.group;
    setPill(this.state, row.model.state);
    COLUMNS.slice(2).forEach((column, i) => setText(this.cells[i], column.show(row)));
    this.cells[4].classList.toggle("bad-text", row.recent?.failures > 0);
    this.#showNote(row, store);
  }

  #showNote({model, group, failure}, store) {
    const job = store.jobsOf(model.name)[0];
    const error = model.reason && model.state !== "READY" ? model.reason : failure ? failure.error : "";
    const warning = model.state === "READY" ? model.reason : "";
    const training = job ? `${job.state.toLowerCase()} ${job.name || job.id}, ${steps(job)}` : "";
    const text = group === "failing" ? error || "a request failed without a message" : training || warning;
    this.noteRow.hidden = !text;
    this.note.className = `note ${group === "failing" ? "bad-text" : group === "training" ? "soft" : "warn-text"}`;
    setText(this.note, text);
    this.note.title = text;
  }
}

export class OverviewView {
  title = "";
  #rows = new Map();
  #sort = {id: "", isUp: false};  // id empty: by group

  constructor(store, frame) {
    this.store = store;
    this.frame = frame;
    this.#readSort();
    this.#makeCharts();
    this.#makeTable();
    this.jobs = element("div", {class: "list"});
    this.memory = element("div", {class: "list"});
    this.jobsPanel = element(
        "section", {class: "card", "aria-label": "Training jobs"}, element("h2", {}, "Training jobs"), this.jobs);
    this.element = element(
        "div", {class: "overview"},
        element("section", {class: "charts four", "aria-label": "Load"}, ...this.charts.map((chart) => chart.card)),
        this.table,
        element(
            "aside", {}, this.jobsPanel,
            element(
                "section", {class: "card", "aria-label": "Memory"}, element("h2", {}, "Memory of tensors"),
                this.memory)));
  }

  #makeCharts() {
    const make = (title, lines, format, fields, isLog = false) => {
      const chart = new LineChart({title, lines, format, isLog, showsValues: false});
      const value = element("strong"), note = element("span", {class: "soft"});
      chart.figure.querySelector("figcaption").after(element("p", {class: "headline"}, value, " ", note));
      return {chart, value, note, fields, card: element("div", {class: "card", "data-chart": title}, chart.figure)};
    };
    this.charts = [
      make(
          "Requests/s", [{label: "answered", color: "blue"}, {label: "failed", color: "red"}], count,
          ["rate", "failureRate"]),
      make(
          "Latency", [{label: "median", color: "teal"}, {label: "p99", color: "violet"}], duration, ["p50", "p99"],
          true),
      make("CPU", [{label: "cores", color: "blue", fill: true}], number, ["cores"]),
      make(
          "Memory",
          [
            {label: "process", color: "teal"}, {label: "files", color: "blue"},
            {label: "models", color: "violet", fill: true}
          ],
          bytes, ["resident", "files", "models"]),
    ];
  }

  #makeTable() {
    this.filter = element("input", {
      type: "search",
      placeholder: "Filter models",
      "aria-label": "Filter models by name, state or error",
      "aria-keyshortcuts": "/",
      autocomplete: "off",
      oninput: () => this.#updateTable(),
      onkeydown: (event) => {
        if (event.key !== "Escape") return;
        this.filter.value = "";
        this.#updateTable();
      }
    });
    this.summary = element("span", {class: "soft grow summary", role: "status"});
    this.heads = COLUMNS.map(
        (column, i) => element(
            "th", {scope: "col", class: i > 1 ? `number ${column.id}` : column.id},
            column.value ?
                element("button", {type: "button", class: "sort", onclick: () => this.#sortBy(column)}, column.title) :
                column.title));
    this.more = element("p", {class: "soft more", hidden: true});
    this.empty = element("div", {class: "empty", hidden: true});
    this.head = element("thead", {}, element("tr", {}, ...this.heads));
    this.grid = element("table", {}, this.head);
    this.table = element(
        "section", {class: "card models", "aria-label": "Models"},
        element("div", {class: "bar"}, element("h2", {}, "Models"), this.summary, this.filter), this.grid, this.empty,
        this.more);
  }

  #readSort() {
    const [id, direction] = setting("sort", "").split(" ");
    if (COLUMNS.some((column) => column.id === id && column.value)) this.#sort = {id, isUp: direction === "up"};
  }

  // A column sorts first as one looks for it (names up, numbers down), then the other way, then not at all.
  #sortBy(column) {
    const first = Boolean(column.isText), {id, isUp} = this.#sort;
    if (id !== column.id)
      this.#sort = {id: column.id, isUp: first};
    else if (isUp === first)
      this.#sort.isUp = !first;
    else
      this.#sort = {id: "", isUp: false};
    saveSetting("sort", this.#sort.id ? `${this.#sort.id} ${this.#sort.isUp ? "up" : "down"}` : "");
    this.#updateTable();
  }

  update() {
    this.#updateCharts();
    this.#updateTable();
    this.#updateJobs();
    this.#updateMemory();
  }

  #updateCharts() {
    const {points} = this.store.server, {process, server, models} = this.store.status;
    for (const {chart, fields} of this.charts) chart.updateSeries(points, fields, server.now_ms, this.frame.seconds);
    const last = points.length && !points[points.length - 1].gap ? points[points.length - 1] : {};
    const head = (i, value, note) => {
      setText(this.charts[i].value, value);
      setText(this.charts[i].note, note);
    };
    const inFlight = models.reduce((total, model) => total + (model.counts ? model.counts.in_flight : 0), 0);
    head(
        0, count(last.rate),
        `${count(inFlight)} in flight${last.failureRate > 0 ? ` · ${count(last.failureRate)} failed/s` : ""}`);
    this.charts[0].note.classList.toggle("bad-text", last.failureRate > 0);
    head(1, duration(last.p99), "p99 of the last 2 s");
    head(
        2, count(last.cores),
        `of ${count(process.cores)} cores · ${process.threads} threads · ${process.instruction_set}`);
    head(
        3, bytes(process.resident_bytes),
        `models ${percent(process.model_bytes, process.resident_bytes)} · files ${
            percent(process.file_bytes, process.resident_bytes)}`);
    this.charts[3].card.title =
        `Models: packed weights, constants and plans, ${bytes(process.model_bytes)}. Files: weights that are ` +
        `used in place, and the program, mapped, ${bytes(process.file_bytes)}. The process may have ${
            bytes(process.limit_bytes)}.`;
  }

  #rowsNow() {
    const {models, server} = this.store.status, wanted = this.filter.value.trim().toLowerCase();
    const rows = models.map((model) => {
      const recent = this.store.lastMinute(keyOf(model)), counts = model.counts || NO_COUNTS;
      return {
        model,
        recent,
        counts,
        group: groupOf(model, this.store, recent),
        failure: this.store.lastFailure(model),
        last: ago(counts.last_request_ms, server.now_ms)
      };
    });
    const shown = rows.filter(({model, group, failure}) => !wanted || [
      model.name, model.state, model.reason, group, failure?.error || ""
    ].some((text) => text.toLowerCase().includes(wanted)));
    const column = COLUMNS.find(({id}) => id === this.#sort.id), sign = this.#sort.isUp ? 1 : -1;
    const byName = (a, b) =>
        a.model.name.localeCompare(b.model.name) || Number(b.model.version) - Number(a.model.version);
    const byColumn = (a, b) =>
        (column.isText ? sign * column.value(a).localeCompare(column.value(b)) :
                         sign * (column.value(a) - column.value(b)));
    shown.sort((a, b) => (column ? byColumn(a, b) : GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group)) || byName(a, b));
    return {rows, shown};
  }

  #updateTable() {
    const {rows, shown} = this.#rowsNow();
    const visible = shown.slice(0, MAX_ROWS), keys = new Set(visible.map(({model}) => keyOf(model)));
    for (const key of this.#rows.keys())
      if (!keys.has(key)) this.#rows.delete(key);
    const elements = visible.map((row) => {
      const key = keyOf(row.model);
      if (!this.#rows.has(key)) this.#rows.set(key, new ModelRow(row.model));
      this.#rows.get(key).update(row, this.store);
      return this.#rows.get(key).element;
    });
    // Elements that move lose the focus, so they stay where they are if nothing changed.
    const old = [...this.grid.children].slice(1);
    if (old.length !== elements.length || old.some((child, i) => child !== elements[i])) {
      const focused = document.activeElement;
      this.grid.replaceChildren(this.head, ...elements);
      if (focused !== document.activeElement && focused.isConnected) focused.focus({preventScroll: true});
    }
    this.#showSorting();
    const number = (group) => rows.filter((row) => row.group === group).length;
    setText(this.summary, [
      ...GROUPS.filter(number).map((group) => `${number(group)} ${group}`), "numbers of the last minute"
    ].join(" · "));
    this.summary.hidden = this.filter.hidden = !rows.length;
    this.more.hidden = shown.length <= MAX_ROWS;
    setText(this.more, `${shown.length - MAX_ROWS} more: filter to see them.`);
    this.#showEmpty(rows.length, shown.length);
  }

  #showSorting() {
    COLUMNS.forEach((column, i) => {
      const isSorted = column.id === this.#sort.id;
      if (isSorted)
        this.heads[i].setAttribute("aria-sort", this.#sort.isUp ? "ascending" : "descending");
      else
        this.heads[i].removeAttribute("aria-sort");
    });
  }

  #showEmpty(all, shown) {
    this.grid.hidden = shown === 0;
    this.empty.hidden = shown > 0;
    const kind = all ? "filtered" : "none";
    if (shown > 0 || (this.empty.dataset.kind === kind && this.empty.dataset.filter === this.filter.value)) return;
    Object.assign(this.empty.dataset, {kind, filter: this.filter.value});
    if (all) return this.empty.replaceChildren(element("p", {}, `No model matches “${this.filter.value}”.`));
    this.empty.replaceChildren(
        element("p", {}, "No models yet. Put one into the model repository:"),
        element(
            "pre", {}, "models/\n  my_model/\n    1/\n      model.pt    of torch.jit.save; model.pt2 or model.onnx"),
        element("p", {}, ...loadHint(this.store.status.server.control_mode, "my_model")));
  }

  #updateJobs() {
    const {jobs, server} = this.store.status;
    this.jobsPanel.hidden = !server.trains && !jobs.length;
    const isDone = (job) => !["RUNNING", "QUEUED", "PAUSED", "FAILED"].includes(job.state);
    const shown = [...jobs].sort((a, b) => isDone(a) - isDone(b)).slice(0, MAX_JOBS);
    const texts = JSON.stringify([shown.map(({id, state, step, loss}) => [id, state, step, loss]), jobs.length]);
    const none = () => element("p", {class: "empty"}, "No jobs yet: ", element("code", {}, "tensord train --help"));
    const more = () => element("p", {class: "soft"}, `${jobs.length - shown.length} more on a job's page.`);
    show(this.jobs, texts, () => {
      if (!shown.length) return [none()];
      return [...shown.map(jobItem), ...(jobs.length > shown.length ? [more()] : [])];
    });
  }

  #updateMemory() {
    const owners = [...this.store.status.memory].sort((a, b) => b.bytes - a.bytes), pool = this.store.status.pool;
    const most = Math.max(1, ...owners.map((owner) => owner.bytes));
    const rows =
        owners.slice(0, MAX_OWNERS)
            .map(
                (owner) => element(
                    "div", {class: "owner"}, element("span", {title: owner.owner}, owner.owner),
                    element("b", {}, bytes(owner.bytes)),
                    element(
                        "progress",
                        {max: most, value: owner.bytes, "aria-label": `${owner.owner}: ${bytes(owner.bytes)}`})));
    if (!rows.length)
      rows.push(element("p", {class: "empty"}, "No tensors are alive: weights are read from the models' files."));
    if (owners.length > MAX_OWNERS)
      rows.push(element("p", {class: "soft"}, `and ${owners.length - MAX_OWNERS} smaller ones`));
    rows.push(
        element("p", {class: "soft"}, `${bytes(pool.live_bytes)} in use, ${bytes(pool.cached_bytes)} kept for reuse`));
    this.memory.replaceChildren(...rows);
  }

  close() {
    for (const {chart} of this.charts) chart.close();
  }
}

function jobItem(job) {
  const state = element("span"), isFailed = job.state === "FAILED";
  setPill(state, job.state);
  const done = {max: job.total_steps, value: Math.min(job.step, job.total_steps), "aria-label": "Progress"};
  const left = job.state === "RUNNING" && job.seconds_left >= 0 ? ` · ${duration(job.seconds_left)} left` : "";
  const text = isFailed ? job.message : `${steps(job)} · loss ${number(job.loss)}${left}`;
  return element(
      "div", {class: "job", "data-job": job.id}, element("a", {href: jobLink(job.id)}, job.name || job.id), state,
      job.total_steps > 0 && element("progress", done),
      element("span", {class: isFailed ? "bad-text note" : "soft"}, text));
}
