// A version of a model: its load over time, what it takes and gives, a form to ask it.

import {AskForm} from "./ask.js";
import {LineChart} from "./charts.js";
import {element, jobLink, loadHint, modelLink, setPill, setText, show} from "./dom.js";
import {ago, bytes, count, duration, plural, shape} from "./format.js";
import {fetchJson, keyOf} from "./store.js";

export class ModelView {
  #described = "";  // the version and state that the description is of
  #form = null;

  // `version` empty: the newest one that is served, or else the newest one.
  constructor(store, frame, name, version) {
    Object.assign(this, {store, frame, name, wanted: version, title: name});
    this.pill = element("span");
    this.versions = element("nav", {class: "versions", "aria-label": "Versions"});
    this.facts = element("span");
    this.trainer = element("span", {hidden: true});
    this.error = element("p", {class: "bad-text note", hidden: true});
    this.warnings = element("div");
    const make = (title, lines, format, fields, isLog = false) => {
      const chart = new LineChart({title, lines, format, isLog, empty: "no requests yet"});
      return {chart, fields, card: element("div", {class: "card", "data-chart": title}, chart.figure)};
    };
    this.charts = [
      make(
          "Requests/s", [{label: "answered", color: "blue"}, {label: "failed", color: "red"}], count,
          ["rate", "failureRate"]),
      make(
          "Latency", [{label: "median", color: "teal"}, {label: "p99", color: "violet"}], duration, ["p50", "p99"],
          true),
      make(
          "Queue", [{label: "median", color: "teal"}, {label: "p99", color: "violet"}], duration,
          ["queue50", "queue99"], true),
    ];
    this.details = element("div", {class: "thirds"});
    this.element = element(
        "div", {class: "model"},
        element(
            "div", {class: "title"}, element("a", {href: "#/"}, "Models"), " / ", element("h1", {}, name), this.pill,
            this.versions),
        element("p", {class: "facts soft"}, this.facts, this.trainer), this.error, this.warnings,
        element("section", {class: "charts three", "aria-label": "Load"}, ...this.charts.map(({card}) => card)),
        this.details);
  }

  #model() {
    const all = this.store.status.models.filter((model) => model.name === this.name);
    const newest = [...all].sort(
        (a, b) => (b.state === "READY") - (a.state === "READY") || Number(b.version) - Number(a.version))[0];
    return {all, model: all.find((model) => model.version === this.wanted) || newest};
  }

  update() {
    const {all, model} = this.#model();
    if (!model) {
      this.error.hidden = false;
      setText(this.error, `There is no model ${this.name}${this.wanted ? `, version ${this.wanted}` : ""}.`);
      this.details.replaceChildren();
      return;
    }
    setPill(this.pill, model.state);
    this.#showVersions(all, model);
    this.#showFacts(model);
    const points = this.store.models.get(keyOf(model))?.points || [];
    for (const {chart, fields} of this.charts)
      chart.updateSeries(points, fields, this.store.status.server.now_ms, this.frame.seconds);
    const described = `${keyOf(model)} ${model.state}`;
    if (described !== this.#described) this.#describe(model, described);
  }

  // After a restart the model may be another one under the same name.
  restarted() { this.#described = ""; }

  #showVersions(all, model) {
    const link = ({name, version, state}) => element(
        "a", {
          href: modelLink(name, version),
          title: state.toLowerCase(),
          "aria-current": version === model.version ? "page" : false
        },
        version ? `v${version}` : "no version");
    const shown = JSON.stringify([all.map(({version, state}) => [version, state]), model.version]);
    show(this.versions, shown, () => all.map(link));
  }

  #showFacts(model) {
    const {server} = this.store.status, counts = model.counts;
    const failure = this.store.lastFailure(model), job = this.store.jobsOf(this.name)[0];
    const parts = counts ? factsOf(model, server.now_ms) : ["not loaded: no counters"];
    if (this.workers) parts.push(plural(this.workers, "worker"));
    setText(this.facts, parts.filter(Boolean).join(" · "));
    this.trainer.hidden = !job;
    if (job)
      show(this.trainer, job.id, () => [" · trained by ", element("a", {href: jobLink(job.id)}, job.name || job.id)]);
    const kept = counts?.last_failure, error = kept?.error || "without a message";
    const last = kept?.ms ? `Last failure, ${ago(kept.ms, server.now_ms)}: ${error}` : "";
    const text = model.state !== "READY" && model.reason ? model.reason : last;
    this.error.hidden = !text;
    this.error.className = `note ${failure || model.state !== "READY" ? "bad-text" : "soft"}`;
    setText(this.error, text);
  }

  async #describe(model, described) {
    this.#described = described;
    if (model.state !== "READY") return this.#showNothing(model);
    let description;
    try {
      description = await fetchJson(
          `status/models/${encodeURIComponent(model.name)}/versions/${encodeURIComponent(model.version)}`);
    } catch (error) {
      if (this.#described !== described) return;
      this.#described = error.status ? described : "";  // without an answer it asks again
      return this.details.replaceChildren(element(
          "section", {class: "card"},
          element("p", {class: "bad-text"}, `Signature and configuration: ${error.message}`)));
    }
    if (this.#described !== described || !this.element.isConnected) return;
    this.workers = description.workers;
    if (this.#form) this.#form.close();
    this.#form = new AskForm(
        description, this.store.status.server, this.#model().all.filter(({state}) => state === "READY").length > 1);
    this.warnings.replaceChildren(...description.warnings.map((text) => element("p", {class: "warn-text note"}, text)));
    this.details.replaceChildren(
        this.#form.asking, this.#form.coding,
        element(
            "section", {class: "card signature", "aria-label": "Signature and configuration"},
            element("h2", {}, "Signature"), signature(description.metadata), element("h2", {}, "Configuration"),
            element(
                "pre", {tabindex: 0, "aria-label": "Configuration"},
                JSON.stringify(withoutDefaults(description.config), null, 2))));
  }

  #showNothing(model) {
    if (this.#form) this.#form.close();
    this.#form = null;
    this.warnings.replaceChildren();
    const isDown = model.state === "UNAVAILABLE" || !model.state;
    const hint = isDown ? ["It is not served. ", ...loadHint(this.store.status.server.control_mode, model.name)] :
                          ["It is not served yet."];
    this.details.replaceChildren(element("section", {class: "card"}, element("p", {class: "empty"}, ...hint)));
  }

  close() {
    for (const {chart} of this.charts) chart.close();
    if (this.#form) this.#form.close();
  }
}

function factsOf({counts, memory_bytes: memory}, nowMs) {
  return [
    `${plural(counts.requests, "request")}, ${count(counts.failed)} of them failed`,
    `last one ${ago(counts.last_request_ms, nowMs)}`,
    `${count(counts.in_flight)} in flight, ${count(counts.pending)} waiting`,
    counts.executions ? `${plural(counts.inferences / counts.executions, "row")} a run` : "",
    `loaded in ${duration(counts.load_seconds)}`,
    `${bytes(memory)} of tensors`,
    counts.precision ? `${counts.precision}, chosen by measuring` : "",
  ];
}

function signature({inputs, outputs, platform}) {
  const row = (kind) => (tensor) => element(
      "tr", {}, element("td", {class: "soft"}, kind), element("th", {scope: "row"}, tensor.name),
      element("td", {}, tensor.datatype || "any type"), element("td", {}, tensor.shape ? shape(tensor.shape) : ""));
  return element(
      "table", {class: "plain"}, element("caption", {class: "soft"}, platform),
      element("tbody", {}, ...inputs.map(row("in")), ...outputs.map(row("out"))));
}

// What the configuration says, without fields that are empty or off.
function withoutDefaults(value) {
  if (Array.isArray(value)) return value.map(withoutDefaults);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value)
                   .map(([name, inner]) => [name, withoutDefaults(inner)])
                   .filter(
                       ([, inner]) => inner !== "" && inner !== false && inner !== 0 &&
                           !(inner !== null && typeof inner === "object" && Object.keys(inner).length === 0));
  return Object.fromEntries(kept);
}
