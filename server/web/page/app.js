// The frame of the page: what is above and below the views, which view the address names, and the polls.

import {recolorCharts} from "./charts.js";
import {element, saveSetting, setText, setting} from "./dom.js";
import {clock, count, duration} from "./format.js";
import {JobView} from "./job.js";
import {ModelView} from "./model.js";
import {OverviewView} from "./overview.js";
import {POLL_MS, Store} from "./store.js";

const RESTART_SHOWN_MS = 30000;
const $ = (id) => document.getElementById(id);

const frame = {
  seconds: 120
};  // settings that all views read
let view = null;
let lastAnswer = 0;  // when the server last answered, by this machine's clock
let restartedAt = 0;

// #/ is the overview, #/models/NAME/VERSION a model, #/jobs/ID a job.
function viewOf(hash) {
  const [kind, name, version] = hash.replace(/^#\/?/, "").split("/").map(decode);
  if (kind === "models" && name) return new ModelView(store, frame, name, version || "");
  if (kind === "jobs" && name) return new JobView(store, frame, name);
  return new OverviewView(store, frame);
}
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function showView(movesFocus) {
  if (view) view.close();
  view = viewOf(location.hash);
  $("main").replaceChildren(view.element);
  document.title = view.title ? `${view.title} · tensord` : "tensord";
  view.update();
  if (movesFocus) $("main").focus({preventScroll: true});
  window.scrollTo(0, 0);
}

function showServer({server, models}) {
  const ready = models.filter((model) => model.state === "READY").length;
  $("ready").hidden = false;
  $("ready").className = `pill ${server.ready ? "good" : "bad"}`;
  setText($("ready"), server.ready ? "ready" : "not ready");
  setText(
      $("facts"),
      `${server.version} · ${count(ready)} of ${count(models.length)} models ready · up ${
          duration(server.uptime_seconds)}`);
}

const notices = {
  offline: () =>
      `The server does not answer${lastAnswer ? ` since ${clock(lastAnswer)}; what is shown is from then` : ""}. ` +
      `Trying again every ${POLL_MS / 1000} s.`,
  restarted: (event) => `The server was restarted at ${clock(restartedAt)}: its counters began anew.` +
      (event === "new" ? " It has another version: reload this page." : ""),
  refused: (event) => `The server refused this page: ${event}. Load it again to give another token.`,
};
function showNotice(kind, value) {
  const notice = $("notice");
  notice.hidden = !kind;
  if (!kind) return;
  notice.className = `notice ${kind === "restarted" ? "warn" : "bad"}`;
  notice.dataset.kind = kind;
  if (notice.firstChild?.nodeValue === notices[kind](value)) return;
  notice.replaceChildren(notices[kind](value));
  if (kind === "refused")
    notice.append(" ", element("button", {type: "button", onclick: () => location.reload()}, "Load again"));
}

function changed(event) {
  if (event.offline !== undefined || event.refused !== undefined) {
    showNotice(event.offline !== undefined ? "offline" : "refused", event.refused);
    return;
  }
  lastAnswer = Date.now();
  if (event.restarted) {
    restartedAt = lastAnswer;
    showNotice("restarted", event.restarted);
  } else if ($("notice").dataset.kind !== "restarted" || lastAnswer - restartedAt > RESTART_SHOWN_MS) {
    showNotice(null);
  }
  showServer(store.status);
  if (event.restarted && view.restarted) view.restarted();
  if (view)
    view.update();
  else
    showView(false);
  document.body.dataset.polls = Number(document.body.dataset.polls || 0) + 1;
}

const store = new Store(changed);
async function poll() {
  let isRefused = false;
  try {
    isRefused = (await store.poll()).refused !== undefined;
  } finally {
    setTimeout(poll, isRefused ? 5 * POLL_MS : POLL_MS);
  }
}

const THEMES = ["system", "light", "dark"];
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  setText($("theme"), theme === "system" ? "Auto" : theme === "light" ? "Light" : "Dark");
  $("theme").setAttribute("aria-label", `Colors: ${theme}`);
  saveSetting("theme", theme);
  recolorCharts();
}
$("theme").addEventListener("click", () => {
  setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolorCharts);

$("window").addEventListener("change", (event) => {
  frame.seconds = Number(event.target.value);
  saveSetting("window", event.target.value);
  if (view) view.update();
});

addEventListener("hashchange", () => {
  if (store.status) showView(true);
});
addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const filter = document.querySelector("input[type=search]");
  if (!filter) return;
  event.preventDefault();
  filter.focus();
  filter.select();
});

// Wrong settings of an older page are as none.
const theme = setting("theme", "system"), seconds = setting("window", "120");
setTheme(THEMES.includes(theme) ? theme : "system");
if ([...$("window").options].some((option) => option.value === seconds)) $("window").value = seconds;
frame.seconds = Number($("window").value);
poll();
