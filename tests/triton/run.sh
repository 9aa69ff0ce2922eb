#!/bin/bash
# Triton's own tests and client examples against tensord:
#   run.sh BIN SERVER_SOURCES CLIENT_SOURCES [SUITE ...]
# The sources are checkouts of triton-inference-server/server and /client (of 2026), or repositories to clone; nothing is written there. Models come from Triton's
# generators, as TorchScript: COMPAT_PYTHON (python3) needs PyTorch. All else is made in COMPAT_WORK (/tmp/compat): venv, models, logs,
# run/ with the tests as they ran, results.jsonl. See README.md.
set -eu
export COMPAT_WORK=${COMPAT_WORK:-/tmp/compat}
W=$COMPAT_WORK; mkdir -p "$W/src" "$W/models" "$W/logs"
here=$(dirname "$(realpath "$0")")
if [ -z "${COMPAT_INSIDE:-}" ]; then
  for part in "server $2" "client $3"; do
    read -r name from <<<"$part"
    [ -e "$W/src/$name" ] && continue
    if [ -d "$from/src" ]; then ln -s "$(realpath "$from")" "$W/src/$name"; else git clone -q "$from" "$W/src/$name"; fi
  done
  if [ ! -e "$W/venv/ok" ]; then
    torch=${COMPAT_PYTHON:-python3}
    "$torch" -m venv "$W/venv"
    "$torch" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' \
      > "$("$W/venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/torch.pth"
    "$W/venv/bin/pip" install -q 'tritonclient[all]' grpcio protobuf ml_dtypes pillow psutil requests prettytable sseclient-py boofuzz attrdict
    touch "$W/venv/ok"
  fi
  # A /dev/shm of its own (the tests clean it up) and a loopback of its own (they want Triton's ports).
  COMPAT_INSIDE=1 exec unshare --mount --net bash -c 'mount -t tmpfs tmpfs /dev/shm && ip link set lo up && exec "$0" "$@"' \
    "$(realpath "$0")" "$@"
fi
bin=$(realpath "$1"); export COMPAT_BIN=$bin
shift 3
py=$W/venv/bin/python
cd "$here"
if [ ! -e "$W/models/ok" ]; then
  for one in "models --libtorch qa_model" "models --onnx qa_model" "models --libtorch|--variable qa_variable" \
             "models --onnx|--variable qa_variable" "models --ensemble qa_ensemble" "models --ensemble|--variable qa_ensemble_variable" \
             "identity_models --libtorch qa_identity" "identity_models --onnx qa_identity" \
             "identity_models --ensemble qa_ensemble_identity" "reshape_models --libtorch|--variable qa_reshape" \
             "reshape_models --onnx|--variable qa_reshape" "reshape_models --ensemble qa_ensemble_reshape" \
             "sequence_models --libtorch qa_sequence" "sequence_models --libtorch|--variable qa_variable_sequence" \
             "sequence_models --ensemble qa_ensemble_sequence" "implicit_models --libtorch qa_sequence_implicit" \
             "dyna_sequence_models --libtorch qa_dyna_sequence"; do
    read -r generator flags target <<<"$one"
    IFS='|' read -ra flags <<<"$flags"
    "$py" gen_twins.py "$W/src/server/qa/common/gen_qa_$generator.py" "${flags[@]}" --models_dir="$W/models/$target" \
      >"$W/logs/gen_${generator}_$target.log" 2>&1 || { echo "the generator failed: $one, see $W/logs"; exit 1; }
  done
  "$py" make_models.py "$W/models"
  # Some generators write GPU's kind; without GPUs Triton's test.sh does the same.
  find "$W/models" -name config.pbtxt -exec sed -i 's/KIND_GPU/KIND_CPU/' {} +
  touch "$W/models/ok"
fi
: >"$W/results.jsonl"
"$py" run.py "$@" | tee "$W/run.log"
"$py" verdict.py "$W/results.jsonl"
