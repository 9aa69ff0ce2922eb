// Tensors of requests and answers: what people type, as bytes and back.

const TYPES = {
  BOOL: 1,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  FP16: 2,
  BF16: 2,
  FP32: 4,
  FP64: 8
};
export const DATATYPES = [...Object.keys(TYPES), "BYTES"];
const MAX_ELEMENTS = 1 << 24;  // of an input that is made up
const SIZE_OF_UNKNOWN = 32;    // of made-up dimensions that the model leaves open, besides the first

const product = (dims) => dims.reduce((a, b) => a * b, 1);

// "FP16" and "BF16" are the upper bits of numbers that DataView knows.
const scratch = new DataView(new ArrayBuffer(4));
function toBf16(value) {
  scratch.setFloat32(0, value);
  const bits = scratch.getUint32(0);
  if (isNaN(value)) return 0x7fc0;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;  // to the nearest, ties to even
}
function fromBf16(bits) {
  scratch.setUint32(0, bits << 16);
  return scratch.getFloat32(0);
}
export function fromFp16(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}
// The nearest half, ties to even.
export function toFp16(value) {
  if (isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0, size = Math.abs(value);
  if (size >= 65520) return sign | 0x7c00;
  const exponent = Math.max(-14, Math.floor(Math.log2(size || 1e-30)));
  const units = size / 2 ** (exponent - 10), down = Math.floor(units), rest = units - down;
  const rounded = rest > 0.5 || (rest === 0.5 && down % 2 === 1) ? down + 1 : down;
  return sign | (rounded < 1024 ? rounded : ((exponent + 15) << 10) + (rounded - 1024));
}

function checkedInteger(text, datatype) {
  let value;
  try {
    value = BigInt(text);
  } catch {
    throw new Error(`${text} is no integer, which ${datatype} needs`);
  }
  const bits = BigInt(TYPES[datatype] * 8), isSigned = datatype.startsWith("I");
  const low = isSigned ? -(1n << (bits - 1n)) : 0n, high = isSigned ? (1n << (bits - 1n)) - 1n : (1n << bits) - 1n;
  if (value < low || value > high) throw new Error(`${text} is out of the range of ${datatype}`);
  return value;
}

const REALS = {
  NaN: NaN,
  nan: NaN,
  Infinity: Infinity,
  inf: Infinity,
  "-Infinity": -Infinity,
  "-inf": -Infinity
};
function checkedReal(text) {
  const value = text in REALS ? REALS[text] : Number(text);
  if (isNaN(value) && !(text in REALS)) throw new Error(`${text} is no number`);
  return value;
}

function writeElement(view, at, text, datatype) {
  const little = true;
  switch (datatype) {
    case "BOOL":
      if (!["true", "false", "1", "0"].includes(text)) throw new Error(`${text} is neither true nor false`);
      return view.setUint8(at, text === "true" || text === "1" ? 1 : 0);
    case "FP64": return view.setFloat64(at, checkedReal(text), little);
    case "FP32": return view.setFloat32(at, checkedReal(text), little);
    case "FP16": return view.setUint16(at, toFp16(checkedReal(text)), little);
    case "BF16": return view.setUint16(at, toBf16(checkedReal(text)), little);
    default: {
      const value = checkedInteger(text, datatype), size = TYPES[datatype];
      for (let i = 0; i < size; ++i) view.setUint8(at + i, Number((value >> BigInt(8 * i)) & 255n));
    }
  }
}

function readElement(view, at, datatype) {
  const little = true;
  switch (datatype) {
    case "BOOL": return view.getUint8(at) !== 0;
    case "INT8": return view.getInt8(at);
    case "INT16": return view.getInt16(at, little);
    case "INT32": return view.getInt32(at, little);
    case "INT64": return view.getBigInt64(at, little);
    case "UINT8": return view.getUint8(at);
    case "UINT16": return view.getUint16(at, little);
    case "UINT32": return view.getUint32(at, little);
    case "UINT64": return view.getBigUint64(at, little);
    case "FP16": return fromFp16(view.getUint16(at, little));
    case "BF16": return fromBf16(view.getUint16(at, little));
    case "FP32": return view.getFloat32(at, little);
    default: return view.getFloat64(at, little);
  }
}

// The shape of so many elements, where the model leaves dimensions open: the first open one takes what is left.
export function shapeOf(count, dims) {
  if (!dims || !dims.length) return dims && count === 1 ? [] : [count];
  const known = product(dims.filter((size) => size >= 0)), isOpen = dims.some((size) => size < 0);
  if (isOpen ? known === 0 || count % known !== 0 : count !== known) {
    throw new Error(`${count} values do not fill the shape [${dims.join(", ")}]`);
  }
  let rest = count / known;
  return dims.map((size) => {
    if (size >= 0) return size;
    const here = rest;
    rest = 1;
    return here;
  });
}

// "[[1, 2], [3, 4]]" or "1 2 3": texts of the elements, and the shape that brackets give. Numbers stay texts here,
// because JavaScript's own would round large integers.
export function parseNested(text) {
  const tokens = text.match(/\[|\]|"(?:[^"\\]|\\.)*"|[^\s,[\]]+/g) || [], values = [], shape = [], counts = [];
  let depth = 0;
  const close = (level, size) => {
    if (shape[level] === undefined)
      shape[level] = size;
    else if (shape[level] !== size)
      throw new Error("lists of different lengths");
  };
  for (const token of tokens) {
    if (token === "[") {
      if (depth) ++counts[depth - 1];
      counts[depth++] = 0;
    } else if (token === "]") {
      if (!depth) throw new Error("a ] without its [");
      --depth;
      close(depth, counts[depth]);
    } else {
      if (depth) ++counts[depth - 1];
      values.push(token.startsWith('"') ? JSON.parse(token) : token);
    }
  }
  if (depth) throw new Error("a [ without its ]");
  const isNested = tokens[0] === "[";
  if (isNested && product(shape) !== values.length) throw new Error("lists of different depths");
  return {values, shape: isNested ? shape : null};
}

function made(text, spec) {
  const match = text.match(/^(random|zeros)(?::([\d\s,x×]+))?$/i);
  if (!match || spec.datatype === "BYTES") return null;
  const [, kind, given] = match;
  if (!given && !spec.shape) throw new Error(`give a shape: ${kind}:1,3`);
  const ofModel = (size, i) => size < 0 ? (i ? SIZE_OF_UNKNOWN : 1) : size;
  const shape = given ? given.split(/[^\d]+/).filter(Boolean).map(Number) : spec.shape.map(ofModel);
  const count = product(shape);
  if (!(count <= MAX_ELEMENTS)) throw new Error(`${count} values are more than this page makes`);
  const view = new DataView(new ArrayBuffer(count * TYPES[spec.datatype])), isReal = /F/.test(spec.datatype);
  for (let i = 0; kind.toLowerCase() === "random" && i < count; ++i) {
    const value = isReal ? String(Math.random()) : String(Math.round(Math.random()));  // 0 or 1 is within every range
    writeElement(view, i * TYPES[spec.datatype], value, spec.datatype);
  }
  return {shape, data: new Uint8Array(view.buffer), made: kind.toLowerCase()};
}

// Elements as the protocol's bytes: each of BYTES behind its length.
export function encode(values, datatype) {
  if (datatype !== "BYTES") {
    const view = new DataView(new ArrayBuffer(values.length * TYPES[datatype]));
    values.forEach((value, i) => writeElement(view, i * TYPES[datatype], String(value), datatype));
    return new Uint8Array(view.buffer);
  }
  const parts = values.map((value) => (typeof value === "string" ? new TextEncoder().encode(value) : value));
  const all = new Uint8Array(parts.reduce((total, part) => total + 4 + part.length, 0)),
        view = new DataView(all.buffer);
  let at = 0;
  for (const part of parts) {
    view.setUint32(at, part.length, true);
    all.set(part, at + 4);
    at += 4 + part.length;
  }
  return all;
}

// The one spelling that JSON and the page's code have for an element.
function canonical(text, datatype) {
  if (datatype === "BYTES") return text;
  if (datatype === "BOOL") return text === "1" || text === "true" ? "true" : "false";
  if (!/F/.test(datatype)) return String(BigInt(text));
  return String(checkedReal(text));
}

// An input as typed: { shape, data, values? }. `spec`: { name, datatype, shape }, shape null if the rank is open.
export function parseText(text, spec) {
  if (spec.datatype === "BYTES") {
    const values = text.startsWith("[") ? parseNested(text) : {values: text.split("\n"), shape: null};
    return {
      shape: values.shape || shapeOf(values.values.length, spec.shape),
      data: encode(values.values, "BYTES"),
      values: values.values
    };
  }
  const trimmed = text.trim();
  if (!trimmed) throw new Error("is empty");
  const generated = made(trimmed, spec);
  if (generated) return generated;
  const {values, shape} = parseNested(trimmed);
  const data = encode(values, spec.datatype);
  return {
    shape: shape || shapeOf(values.length, spec.shape),
    data,
    values: values.map((value) => canonical(value, spec.datatype))
  };
}

const NPY = {
  "|b1": "BOOL",
  "|i1": "INT8",
  "|u1": "UINT8",
  "<i2": "INT16",
  "<i4": "INT32",
  "<i8": "INT64",
  "<u2": "UINT16",
  "<u4": "UINT32",
  "<u8": "UINT64",
  "<f2": "FP16",
  "<f4": "FP32",
  "<f8": "FP64"
};

function parseNpy(bytes, spec) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), isFirst = bytes[6] === 1;
  const start = isFirst ? 10 : 12, length = isFirst ? view.getUint16(8, true) : view.getUint32(8, true);
  const head = new TextDecoder().decode(bytes.subarray(start, start + length));
  const type = (head.match(/'descr': '([^']+)'/) || [])[1], dims = (head.match(/'shape': \(([^)]*)\)/) || [])[1];
  if (/'fortran_order': True/.test(head))
    throw new Error("the array is in Fortran's order: save np.ascontiguousarray of it");
  if (!NPY[type] || dims === undefined) throw new Error(`arrays of ${type || "this kind"} are not read`);
  if (NPY[type] !== spec.datatype) throw new Error(`the file has ${NPY[type]}, the model takes ${spec.datatype}`);
  const shape = dims.split(",").map((size) => size.trim()).filter(Boolean).map(Number),
        data = bytes.subarray(start + length);
  if (data.length !== product(shape) * TYPES[spec.datatype]) throw new Error("the file ends early");
  return {shape, data};
}

// A file as an input: one element of BYTES, a .npy, or raw little-endian numbers.
export function parseFile(bytes, spec) {
  if (spec.datatype === "BYTES")
    return {shape: shapeOf(1, spec.shape), data: encode([bytes], "BYTES"), isRawFile: true};
  const isNpy = bytes[0] === 0x93 && String.fromCharCode(...bytes.subarray(1, 6)) === "NUMPY";
  if (isNpy) return parseNpy(bytes, spec);
  const count = bytes.length / TYPES[spec.datatype];
  if (!Number.isInteger(count)) throw new Error(`${bytes.length} bytes are no whole number of ${spec.datatype}`);
  return {shape: shapeOf(count, spec.shape), data: bytes};
}

// The first elements of an answer's tensor.
export function decode(bytes, datatype, count) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), out = [];
  for (let at = 0; out.length < count && at < bytes.length;) {
    if (datatype === "BYTES") {
      const length = view.getUint32(at, true);
      out.push(new TextDecoder().decode(bytes.subarray(at + 4, at + 4 + length)));
      at += 4 + length;
    } else {
      out.push(readElement(view, at, datatype));
      at += TYPES[datatype];
    }
  }
  return out;
}
