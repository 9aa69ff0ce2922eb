// Numbers as people read them.

const compact = new Intl.NumberFormat("en", {notation: "compact", maximumFractionDigits: 1});
const plain = new Intl.NumberFormat("en", {maximumFractionDigits: 1});
const fine = new Intl.NumberFormat("en", {maximumFractionDigits: 2});

export function count(value) {
  if (value === null || value === undefined || !isFinite(value)) return "–";
  if (value < 10) return fine.format(value);
  return value < 10000 ? plain.format(value) : compact.format(value);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !isFinite(seconds)) return "–";
  if (seconds === 0) return "0";
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
  if (seconds < 120) return `${Number(seconds.toPrecision(3))} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

export function bytes(value) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    ++unit;
  }
  return `${unit ? Number(value.toPrecision(3)) : value} ${units[unit]}`;
}

export const ago = (ms, nowMs) => (ms ? `${duration(Math.max(1, Math.round((nowMs - ms) / 1000)))} ago` : "never");
export const plural = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
export const percent = (part, whole) => (whole > 0 ? `${Math.round((part / whole) * 100)} %` : "–");
export const steps = (job) => `step ${count(job.step)}` + (job.total_steps ? ` of ${count(job.total_steps)}` : "");
export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");
export const dateTime = (ms) => new Date(ms).toLocaleString("en-GB");
export const shape = (dims) => `[${dims.join(", ")}]`;

// A number of a curve or a tensor.
export function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number" || !isFinite(value)) return String(value);
  return Number.isInteger(value) && Math.abs(value) < 1e15 ? String(value) : String(Number(value.toPrecision(5)));
}

// The duration that this share of all was below, between the limits of its bucket. NaN without any.
export function quantile(histogram, limits, share) {
  if (!histogram || !histogram.count) return NaN;
  const wanted = histogram.count * share;
  let below = 0;
  for (let i = 0; i < histogram.buckets.length; ++i) {
    const here = histogram.buckets[i];
    if (here > 0 && below + here >= wanted) {
      if (i >= limits.length) return limits[limits.length - 1];
      const low = i ? limits[i - 1] : 0;
      return low + ((limits[i] - low) * (wanted - below)) / here;
    }
    below += here;
  }
  return NaN;
}
