// One inference request: as bytes over HTTP, and as curl and Python to copy.

import {address} from "./store.js";
import {decode} from "./tensors.js";

const LENGTH_HEADER = "Inference-Header-Content-Length";
const MAX_SHOWN = 512;  // elements of each output
const MAX_TYPED = 64;   // elements that code shows; others come from a file
const ANSWER_TIMEOUT_MS = 120000;

// encodeURIComponent leaves a few characters that shells and URLs disagree about.
const encodePart = (text) =>
    encodeURIComponent(text).replace(/['()*!]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
export const inferPath = (name, version) =>
    `v2/models/${encodePart(name)}${version ? `/versions/${encodePart(version)}` : ""}/infer`;

// `tensors`: { name, datatype, shape, data } for each input.
export function makeBody(tensors) {
  const head = new TextEncoder().encode(JSON.stringify({
    inputs: tensors.map(
        ({name, datatype, shape, data}) => ({name, datatype, shape, parameters: {binary_data_size: data.length}})),
    parameters: {binary_data_output: true},
  }));
  return {blob: new Blob([head, ...tensors.map((tensor) => tensor.data)]), headLength: head.length};
}

// The outputs as { name, datatype, shape, values, count }. Throws Error with the server's message.
export async function send(name, version, tensors) {
  const {blob, headLength} = makeBody(tensors), began = performance.now();
  const answer = await fetch(address(inferPath(name, version)), {
    method: "POST",
    body: blob,
    headers: {"Content-Type": "application/octet-stream", [LENGTH_HEADER]: String(headLength)},
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS)
  });
  const bytes = new Uint8Array(await answer.arrayBuffer()), seconds = (performance.now() - began) / 1000;
  const jsonLength = Number(answer.headers.get(LENGTH_HEADER) || bytes.length);
  const text = new TextDecoder().decode(bytes.subarray(0, jsonLength));
  if (!answer.ok) throw new Error(messageOf(text) || `${answer.status} ${answer.statusText}`);
  let at = jsonLength;
  const outputs = JSON.parse(text).outputs.map((output) => {
    const size = output.parameters ? output.parameters.binary_data_size : 0, data = bytes.subarray(at, at + size);
    at += size;
    return {
      name: output.name,
      datatype: output.datatype,
      shape: output.shape,
      count: output.shape.reduce((a, b) => a * b, 1),
      values: decode(data, output.datatype, MAX_SHOWN)
    };
  });
  return {outputs, seconds};
}

function messageOf(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return text.trim();
  }
}

const quote = (text) => `'${text.replace(/'/g, `'\\''`)}'`;
const isTyped = (tensor) => tensor.values && tensor.values.length <= MAX_TYPED;

// JSON with integers of any size; FP16 and BF16 have no JSON form.
function jsonOf(tensors) {
  if (!tensors.every((tensor) => isTyped(tensor) && !/^B?FP?16$/.test(tensor.datatype))) return null;
  const element = (value, datatype) => (datatype === "BYTES" ? JSON.stringify(value) : value);
  const inputs = tensors.map(
      ({name, datatype, shape, values}) => `{"name": ${JSON.stringify(name)}, "datatype": "${datatype}", "shape": ${
          JSON.stringify(shape)}, "data": [${values.map((value) => element(value, datatype)).join(", ")}]}`);
  return `{"inputs": [${inputs.join(",\n ")}]}`;
}

// The same call for a shell. Where the inputs are not typed, its body is the file that the page offers.
export function curl({url, tensors, hasTokens, fileName}) {
  const token = hasTokens ? ` \\\n  -H "Authorization: Bearer $TOKEN"` : "";
  if (tensors.length === 1 && tensors[0].isRawFile) {
    return `curl ${quote(url)}${token} \\\n  -H '${LENGTH_HEADER}: 0' \\\n  --data-binary ${quote(`@${fileName}`)}`;
  }
  const json = jsonOf(tensors);
  if (json) return `curl ${quote(url)}${token} \\\n  -d ${quote(json)}`;
  const {headLength} = makeBody(tensors);
  return `curl ${quote(url)}${token} \\\n  -H '${LENGTH_HEADER}: ${
      headLength}' \\\n  --data-binary @request.bin --output answer.bin`;
}

export const needsFile = (tensors) => !(tensors.length === 1 && tensors[0].isRawFile) && jsonOf(tensors) === null;

const NUMPY = {
  BOOL: "np.bool_",
  FP16: "np.float16",
  FP32: "np.float32",
  FP64: "np.float64"
};
const numpyType = (datatype) => NUMPY[datatype] || `np.${datatype.toLowerCase()}`;
const pythonText = (text) =>
    JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

function nested(values, shape) {
  if (shape.length === 0) return values[0];
  if (shape.length === 1) return `[${values.join(", ")}]`;
  const step = values.length / shape[0], rows = [];
  for (let i = 0; i < shape[0]; ++i) rows.push(nested(values.slice(i * step, (i + 1) * step), shape.slice(1)));
  return `[${rows.join(", ")}]`;
}

const PYTHON_NUMBERS = {
  true: "True",
  false: "False",
  NaN: "np.nan",
  Infinity: "np.inf",
  "-Infinity": "-np.inf"
};

function pythonInput(tensor, offset, fileName) {
  const {datatype, shape, values, made, isRawFile} = tensor;
  if (isRawFile)
    return `np.array([open(${pythonText(fileName)}, "rb").read()], dtype=object).reshape(${JSON.stringify(shape)})`;
  if (datatype === "BYTES") return nested(values.map(pythonText), shape);
  const isHalf = datatype === "BF16",
        texts = isTyped(tensor) ? values.map((value) => PYTHON_NUMBERS[value] || value) : [];
  let code = made ? pythonMade(tensor) :
                    `np.array(${nested(texts, shape)}, dtype=${isHalf ? "np.float32" : numpyType(datatype)})`;
  if (!made && !isTyped(tensor)) {
    code = `np.fromfile("request.bin", dtype=${isHalf ? "np.uint16" : numpyType(datatype)}, offset=${offset}, count=${
        shape.reduce((a, b) => a * b, 1)})`;
    if (isHalf) code = `(${code}.astype(np.uint32) << 16).view(np.float32)`;
    code += `.reshape(${JSON.stringify(shape)})`;
  }
  return isHalf ? `bfloat16(${code})` : code;
}

function pythonMade({datatype, shape, made}) {
  const dims = shape.join(", "), type = datatype === "BF16" ? "np.float32" : numpyType(datatype);
  if (made === "zeros") return `np.zeros([${dims}], dtype=${type})`;
  return /F/.test(datatype) ? `np.random.rand(${dims}).astype(${type})` :
                              `np.random.randint(0, 2, [${dims}]).astype(${type})`;
}

// The same call with the Python client.
export function python({grpc, model, version, tensors, hasTokens, hasTls, fileName}) {
  let offset = makeBody(tensors).headLength;
  const inputs = tensors.map((tensor) => {
    const code = pythonInput(tensor, offset, fileName);
    offset += tensor.data.length;
    return `    ${pythonText(tensor.name)}: ${code},`;
  });
  const options = `${hasTls ? ", tls=True" : ""}${hasTokens ? ', token=os.environ["TOKEN"]' : ""}`;
  const usesBf16 = tensors.some(({datatype}) => datatype === "BF16");
  return [
    ...(hasTokens ? ["import os"] : []), "import numpy as np",
    `from tensord import Client${usesBf16 ? ", bfloat16" : ""}`, "", `client = Client(${pythonText(grpc)}${options})`,
    `result = client.infer(${pythonText(model)}, {`, ...inputs,
    `}${version ? `, version=${pythonText(version)}` : ""})`,
    "for name, value in result.items():", "    print(name, value)"
  ].join("\n");
}
