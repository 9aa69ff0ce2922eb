// Polls the server, and keeps what the charts show for as long as the page is open.

import {quantile} from "./format.js";

export const POLL_MS = 2000;
const TIMEOUT_MS = 5000;
const MAX_POINTS = 3600000 / POLL_MS;  // of each series: an hour
const MAX_MODELS = 200;                // with series of their own: those that had requests
const RECENT_MS = 60000;               // what the table calls "the last minute"

export const keyOf = (model) => `${model.name}/${model.version}`;

// A page that was opened with a token in its address must not hand it on: fetch refuses such addresses.
export const address = (path) => new URL(path, location.origin + location.pathname);

export async function fetchJson(path) {
  const answer = await fetch(address(path), {signal: AbortSignal.timeout(TIMEOUT_MS)});
  const text = await answer.text();
  let body = null;
  try {
    body = JSON.parse(text);
  } catch {
    body = {error: text.trim()};
  }
  if (answer.ok) return body;
  throw Object.assign(new Error(body.error || answer.statusText), {status: answer.status});
}

// What one histogram counted since another. A version that was loaded again began anew.
function since(now, before) {
  if (!now) return null;
  if (!before || now.count < before.count) return now;
  return {count: now.count - before.count, buckets: now.buckets.map((value, i) => value - before.buckets[i])};
}

function sum(histograms) {
  const total = {count: 0, buckets: []};
  for (const histogram of histograms) {
    if (!histogram) continue;
    total.count += histogram.count;
    histogram.buckets.forEach((value, i) => {
      total.buckets[i] = (total.buckets[i] || 0) + value;
    });
  }
  return total;
}

const failuresOf = (counts) => counts.failed - counts.cancelled;

// Rates and latencies of a version between two answers of the server.
function between(now, before, seconds, limits) {
  const isAnew = before && now.requests < before.requests;
  const old = before && !isAnew ? before : {requests: 0, failed: 0, cancelled: 0};
  const request = since(now.request, old.request), queue = since(now.queue, old.queue);
  return {
    requests: now.requests - old.requests,
    rate: (now.requests - old.requests) / seconds,
    failures: Math.max(0, failuresOf(now) - failuresOf(old)),
    failureRate: Math.max(0, failuresOf(now) - failuresOf(old)) / seconds,
    p50: quantile(request, limits, 0.5),
    p99: quantile(request, limits, 0.99),
    queue50: quantile(queue, limits, 0.5),
    queue99: quantile(queue, limits, 0.99),
    request,
  };
}

class Series {
  points = [];
  push(point) {
    this.points.push(point);
    if (this.points.length > MAX_POINTS) this.points.shift();
  }
}

export class Store {
  status = null;
  server = new Series();  // of the whole server
  models = new Map();     // keyOf(model) → Series
  #recent = [];           // answers of the last minute, for rates
  #changed;

  constructor(changed) { this.#changed = changed; }

  // `event`: { offline }, { refused } or { restarted }; empty if all is well.
  async poll() {
    let event = {};
    try {
      const status = await fetchJson("status.json");
      event = this.#take(status);
    } catch (error) {
      event = error.status === 401 || error.status === 403 ? {refused: error.message} : {offline: error.message};
    }
    this.#changed(event);
    return event;
  }

  #take(status) {
    const before = this.status;
    this.status = status;
    const isRestarted = before !== null && before.server.started_ms !== status.server.started_ms;
    const gapMs = before ? status.server.now_ms - before.server.now_ms : 0;
    if (isRestarted || gapMs > 5 * POLL_MS) this.#breakLines(status.server.now_ms);
    if (isRestarted)
      this.#recent = [];
    else if (before && gapMs > 0)
      this.#sample(status, before, gapMs / 1000);
    status.byKey = new Map(status.models.map((model) => [keyOf(model), model]));
    this.#recent.push(status);
    while (status.server.now_ms - this.#recent[0].server.now_ms > RECENT_MS + POLL_MS) this.#recent.shift();
    return isRestarted ? {restarted: before.server.version !== status.server.version ? "new" : "same"} : {};
  }

  // No line is drawn over a time without answers.
  #breakLines(ms) {
    this.server.push({ms, gap: true});
    for (const series of this.models.values()) series.push({ms, gap: true});
  }

  #sample(status, before, seconds) {
    const limits = status.bucket_limits, ms = status.server.now_ms, all = [];
    for (const model of status.models) {
      const old = before.byKey.get(keyOf(model));
      if (!model.counts) continue;
      const point = between(model.counts, old && old.counts, seconds, limits);
      all.push(point);
      this.#seriesOf(keyOf(model), model.counts.requests > 0)?.push({ms, ...point, request: undefined});
    }
    const request = sum(all.map((point) => point.request)), process = status.process;
    this.server.push({
      ms,
      rate: all.reduce((total, point) => total + point.rate, 0),
      failureRate: all.reduce((total, point) => total + point.failureRate, 0),
      p50: quantile(request, limits, 0.5),
      p99: quantile(request, limits, 0.99),
      cores: Math.max(0, process.cpu_seconds - before.process.cpu_seconds) / seconds,
      resident: process.resident_bytes,
      files: process.file_bytes,
      models: process.model_bytes,
    });
  }

  #seriesOf(key, hasRequests) {
    if (!this.models.has(key) && hasRequests && this.models.size < MAX_MODELS) this.models.set(key, new Series());
    return this.models.get(key);
  }

  // What a version did in the last minute, or since the page was opened. Null before the second answer.
  lastMinute(key) {
    const model = this.status.byKey.get(key), oldest = this.#recent[0];
    if (!model || !model.counts || oldest === this.status) return null;
    const old = oldest.byKey.get(key), seconds = (this.status.server.now_ms - oldest.server.now_ms) / 1000;
    return between(model.counts, old && old.counts, seconds, this.status.bucket_limits);
  }

  // The latest failure, if it was within the last minute.
  lastFailure(model) {
    const failure = model.counts && model.counts.last_failure;
    return failure && failure.ms > this.status.server.now_ms - RECENT_MS ? failure : null;
  }

  jobsOf(name) {
    return this.status.jobs.filter((job) => job.model === name && ["RUNNING", "QUEUED", "PAUSED"].includes(job.state));
  }
}
