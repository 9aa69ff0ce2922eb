// The form that asks a model, its answer, and the same call as code.

import {element, setText} from "./dom.js";
import {count, duration, number, shape} from "./format.js";
import {curl, inferPath, makeBody, needsFile, python, send} from "./request.js";
import {address} from "./store.js";
import {DATATYPES, parseFile, parseText} from "./tensors.js";

const MAX_FILE_BYTES = 64 << 20;
const MAX_TOP = 5;  // of the largest values, where an output is one row of scores

// One input: what is typed, or a file.
class Field {
  constructor(spec, rows, changed) {
    this.spec = {name: spec.name, datatype: spec.datatype, shape: spec.shape || null};
    this.bytes = null;
    const isText = spec.datatype === "BYTES", id = `input-${spec.name}`;
    this.text = element("textarea", {
      id,
      rows,
      spellcheck: "false",
      placeholder: isText ? "text, one element a line" : "[[1, 2], [3, 4]], or random:1,3",
      oninput: changed,
      onkeydown: (event) => {
        // Enter sends, as in every other field; Shift+Enter is a new line.
        if (event.key !== "Enter" || event.shiftKey) return;
        event.preventDefault();
        event.target.form.requestSubmit();
      }
    });
    this.text.value = isText ? "Hello" : "random";
    this.file =
        element("input", {type: "file", "aria-label": `A file for ${spec.name}`, onchange: () => this.#read(changed)});
    const types = DATATYPES.map((name) => element("option", {selected: name === "FP32"}, name));
    const ofType = {"aria-label": `Data type of ${spec.name}`, onchange: changed};
    this.type = spec.datatype ? null : element("select", ofType, ...types);
    this.problem = element("p", {class: "bad-text problem", hidden: true});
    const kind = `${spec.datatype || "any type"} ${spec.shape ? shape(spec.shape) : ""}`;
    const label =
        element("label", {"for": id}, element("b", {}, spec.name), " ", element("span", {class: "soft"}, kind));
    this.element = element(
        "div", {class: "field"}, element("div", {class: "bar"}, label, this.type, this.file), this.text, this.problem);
  }

  async #read(changed) {
    const file = this.file.files[0];
    this.bytes = null;
    this.fileName = file ? file.name : "";
    if (file && file.size > MAX_FILE_BYTES)
      this.show(`${file.name} is larger than 64 MB`);
    else if (file)
      this.bytes = new Uint8Array(await file.arrayBuffer());
    this.text.disabled = Boolean(this.bytes);
    changed();
  }

  show(problem) {
    this.problem.hidden = !problem;
    setText(this.problem, problem ? `${this.spec.name}: ${problem}` : "");
  }

  // { name, datatype, shape, data, … }; throws Error.
  tensor() {
    const spec = {...this.spec, datatype: this.spec.datatype || this.type.value};
    return {
      name: spec.name,
      datatype: spec.datatype,
      ...(this.bytes ? parseFile(this.bytes, spec) : parseText(this.text.value, spec))
    };
  }
}

export class AskForm {
  #code = "curl";

  // `description`: what the server said of this version; `server`: of itself. `needsVersion`: others are served too.
  constructor(description, server, needsVersion) {
    this.name = description.name;
    this.version = needsVersion ? description.version : "";
    this.server = server;
    const {inputs} = description.metadata, rows = inputs.length > 2 ? 1 : 2;
    this.fields = inputs.map((spec) => new Field(spec, rows, () => this.#showCode()));
    this.button = element("button", {type: "submit", class: "main"}, "Ask");
    this.busy = element("span", {class: "soft", role: "status"});
    this.answer = element(
        "div", {class: "answer", role: "region", "aria-label": "Answer", "aria-live": "polite"},
        element("p", {class: "empty"}, "The answer comes here."));
    this.form = element(
        "form", {onsubmit: (event) => this.#submit(event)}, ...this.fields.map((field) => field.element),
        element("div", {class: "bar"}, this.button, this.busy));
    this.code = element("pre", {tabindex: 0, "aria-label": "The same call as code"});
    this.tabs = ["curl", "Python"].map(
        (name) => element(
            "button", {type: "button", "aria-pressed": String(name === "curl"), onclick: () => this.#choose(name)},
            name));
    this.copy = element("button", {type: "button", onclick: () => this.#copy()}, "Copy");
    this.save = element("a", {download: "request.bin", hidden: true}, "request.bin");
    this.asking = element(
        "section", {class: "card ask", "aria-label": "Ask the model"}, element("h2", {}, "Ask it"), ...this.#body());
    this.coding = element(
        "section", {class: "card code", "aria-label": "The same as code"},
        element("div", {class: "bar"}, element("h2", {class: "grow"}, "The same call"), ...this.tabs, this.copy),
        this.code, this.save);
    this.#showCode();
  }

  // The metrics port takes no requests, and browsers do not let its pages call the HTTP port. Any other port is the
  // HTTP port, perhaps behind a proxy.
  #body() {
    const {http_port: port, metrics_port: other} = this.server;
    if (port && String(other) !== location.port) return [this.form, this.answer];
    if (!port) {
      return [element(
          "p", {class: "empty"}, "Requests over HTTP are off. Start the server with ",
          element("code", {}, "--allow-http true"), " to ask from this page.")];
    }
    const there = new URL(location.href);
    there.port = port;
    return [element(
        "p", {class: "empty"}, "This port only shows numbers. ",
        element("a", {href: there.href}, `Ask on port ${port}`), ".")];
  }

  #url() {
    const url = address(inferPath(this.name, this.version));
    if (this.server.http_port && String(this.server.metrics_port) === location.port) url.port = this.server.http_port;
    return url.href;
  }

  #grpc() {
    const {grpc} = this.server;
    if (grpc.startsWith("unix:")) return grpc;
    return `${location.hostname}:${grpc.slice(grpc.lastIndexOf(":") + 1)}`;
  }

  #tensors() {
    let isWhole = true;
    const tensors = this.fields.map((field) => {
      try {
        field.show("");
        return field.tensor();
      } catch (error) {
        field.show(error.message);
        isWhole = false;
        return null;
      }
    });
    return isWhole ? tensors : null;
  }

  #choose(name) {
    this.#code = name;
    for (const tab of this.tabs) tab.setAttribute("aria-pressed", String(tab.textContent === name));
    this.#showCode();
  }

  #showCode() {
    const tensors = this.#tensors();
    this.save.hidden = true;
    if (!tensors) return setText(this.code, "The inputs are not complete.");
    const fileName = this.fields.find((field) => field.fileName)?.fileName || "file";
    const call = {
      url: this.#url(),
      grpc: this.#grpc(),
      model: this.name,
      version: this.version,
      tensors,
      fileName,
      hasTokens: this.server.has_tokens,
      hasTls: this.server.has_tls
    };
    const text = this.#code === "curl" ? curl(call) : python(call);
    setText(this.code, text);
    if (!text.includes("request.bin") || !needsFile(tensors)) return;
    URL.revokeObjectURL(this.save.href);
    this.save.href = URL.createObjectURL(makeBody(tensors).blob);
    this.save.hidden = false;
    setText(this.save, "Save request.bin, the body of this call");
  }

  async #copy() {
    const text = this.code.textContent;
    try {
      await navigator.clipboard.writeText(text);
      setText(this.copy, "Copied");
    } catch {
      // Without HTTPS there is no clipboard: the text is selected, to be copied by hand.
      getSelection().selectAllChildren(this.code);
      setText(this.copy, "Selected");
    }
    setTimeout(() => setText(this.copy, "Copy"), 2000);
  }

  async #submit(event) {
    event.preventDefault();
    const tensors = this.#tensors();
    if (!tensors || this.button.disabled) return;
    this.button.disabled = true;
    setText(this.busy, "waiting …");
    try {
      this.#show(await send(this.name, this.version, tensors));
    } catch (error) {
      this.answer.replaceChildren(element("p", {class: "bad-text"}, error.message));
    }
    setText(this.busy, "");
    this.button.disabled = false;
  }

  #show({outputs, seconds}) {
    this.answer.replaceChildren(
        element("p", {class: "soft"}, `answered in ${duration(seconds)}, as this page saw it`),
        ...outputs.map(outputElement));
  }

  close() { URL.revokeObjectURL(this.save.href); }
}

function outputElement(output) {
  const {values, count: all} = output, isReal = values.some((value) => typeof value === "number");
  const row = output.shape.at(-1), isScores = isReal && all === row && row > 1 && all === values.length;
  return element(
      "div", {class: "output"},
      element(
          "p", {}, element("b", {}, output.name), " ",
          element("span", {class: "soft"}, `${output.datatype} ${shape(output.shape)}`)),
      isScores && top(values),
      element("pre", {}, rows(values, row), all > values.length ? `\n… ${count(all - values.length)} more` : ""));
}

// The largest values, which is what one wants of scores.
function top(values) {
  const order = values.map((_, i) => i).sort((a, b) => values[b] - values[a]).slice(0, MAX_TOP);
  return element("p", {}, "largest: ", order.map((i) => `[${i}] ${number(values[i])}`).join(", "));
}

function rows(values, length) {
  const texts = values.map((value) => (typeof value === "string" ? JSON.stringify(value) : number(value)));
  const lines = [];
  for (let i = 0; i < texts.length; i += length || 1) lines.push(texts.slice(i, i + (length || 1)).join(", "));
  return lines.join("\n");
}
