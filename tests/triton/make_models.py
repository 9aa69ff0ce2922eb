"""Models of the suites that Triton's generators do not make: make_models.py DIR"""

import sys

import kit
from kit import add_sub, configure, fresh, identity_source, model, save, scripted, tensors


def own(root):
    repository = fresh(root / "own")
    for name, batch, dims in (("custom_zero_1_float32", 8, "-1"), ("custom_nobatch_zero_1_float32", 0, "-1, -1")):
        model(repository, name, identity_source(["FP32"], 2), f"max_batch_size: {batch}\n" +
              tensors("input", ("INPUT0", "FP32", dims)) + tensors("output", ("OUTPUT0", "FP32", dims)))


def control(name, kind, more="int32_false_true: [ 0, 1 ]"):
    return f'    {{ name: "{name}" control [ {{ kind: CONTROL_SEQUENCE_{kind} {more} }} ] }}'


def sequences(controls, strategy="", states="", idle=5000000):
    return (f"sequence_batching {{\n  max_sequence_idle_microseconds: {idle}\n{strategy}  control_input [\n" + ",\n".join(controls) +
            f"\n  ]\n{states}}}\n")


IN_OUT = tensors("input", ("INPUT", "INT32", 1)) + tensors("output", ("OUTPUT", "INT32", 1))
OLDEST = "  oldest { max_candidate_sequences: 1024 }\n"


def examples(root):
    """The eight models of Triton's docs/examples/model_repository, and those of the other examples."""
    repository = fresh(root / "examples")
    numbers = "max_batch_size: 8\n" + tensors("input", ("INPUT0", "{t}", 16), ("INPUT1", "{t}", 16)) + tensors(
        "output", ("OUTPUT0", "{t}", 16), ("OUTPUT1", "{t}", 16))
    for name, types in (("simple", ("INT32",) * 3), ("simple_int8", ("INT8",) * 3), ("simple_string", ("STRING",) * 3)):
        save(repository, name, scripted(kit.add_sub_source(types, 2, False)))
        configure(repository, name, numbers.replace("{t}", types[0]))
    model(repository, "simple_identity", identity_source(["STRING"], 2), "max_batch_size: 8\n" +
          tensors("input", ("INPUT0", "STRING", -1)) + tensors("output", ("OUTPUT0", "STRING", -1)))
    model(repository, "simple_sequence", "def forward(self, INPUT, START, READY):\n    return (INPUT + START) * READY\n",
          "max_batch_size: 8\n" + sequences([control("START", "START"), control("READY", "READY")]) + IN_OUT)
    corrid = control("CORRID", "CORRID", "data_type: TYPE_UINT64")
    flags = [control("START", "START"), control("END", "END"), control("READY", "READY")]
    model(repository, "simple_dyna_sequence", "def forward(self, INPUT, START, END, READY, CORRID):\n"
          "    return ((INPUT + START + END * CORRID) * READY).to(torch.int32)\n",
          "max_batch_size: 8\n" + sequences(flags + [corrid], OLDEST) + IN_OUT)
    model(repository, "simple_string_dyna_sequence",
          "def forward(self, INPUT, START, END, READY, CORRID: List[List[str]], SUM):\n"
          "    total = SUM * (1 - START) + INPUT\n"
          "    ids = torch.zeros_like(INPUT)\n"
          "    for i in range(INPUT.size(0)):\n"
          "        if int(END[i, 0]) != 0:\n"
          "            ids[i, 0] = int(CORRID[i][0])\n"
          "    return (total + ids) * READY, total\n",
          "max_batch_size: 8\n" + sequences(flags + [control("CORRID", "CORRID", "data_type: TYPE_STRING")], OLDEST, """  state [ {
    input_name: "SUM" output_name: "OUTPUT__1" data_type: TYPE_INT32 dims: [ 1 ]
    initial_state: { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } ]
""") + IN_OUT)
    # densenet_onnx of the quick start: the network returns [1, 1000, 1, 1], its configuration reshapes that to [1000].
    model(repository, "densenet_onnx",
          "def forward(self, data_0):\n"
          "    out = torch.zeros([1, 1000, 1, 1])\n"
          "    out[0, 23, 0, 0] = 1.0 + data_0.mean() * 0.0\n"
          "    return out\n",
          "max_batch_size: 0\n" + tensors("input", ("data_0", "FP32", "3, 224, 224",
                                                    "format: FORMAT_NCHW reshape { shape: [ 1, 3, 224, 224 ] }")) +
          tensors("output", ("fc6_1", "FP32", 1000, 'reshape { shape: [ 1, 1000, 1, 1 ] } label_filename: "densenet_labels.txt"')))
    labels = [f"CLASS {n}" for n in range(1000)]
    labels[23] = "VULTURE"
    (repository / "densenet_onnx" / "densenet_labels.txt").write_text("\n".join(labels) + "\n")


def more_examples(root):
    more = fresh(root / "more_examples")
    model(more, "repeat_int32",
          "def forward(self, IN, DELAY, WAIT) -> List[Tuple[Tensor, Tensor]]:\n"
          "    answers: List[Tuple[Tensor, Tensor]] = []\n"
          "    for i in range(IN.size(0)):\n"
          "        answers.append((IN[i:i + 1], torch.tensor([i], dtype=torch.int32)))\n"
          "    return answers\n",
          "max_batch_size: 0\nmodel_transaction_policy { decoupled: True }\n" +
          tensors("input", ("IN", "INT32", -1), ("DELAY", "UINT32", -1), ("WAIT", "UINT32", 1)) +
          tensors("output", ("OUT", "INT32", 1), ("IDX", "INT32", 1)))
    model(more, "custom_identity_int32", identity_source(["INT32"], 2), "max_batch_size: 8\n" +
          tensors("input", ("INPUT0", "INT32", -1)) + tensors("output", ("OUTPUT0", "INT32", -1)))
    # The image ensemble: bytes of a file are the input, a class is the output.
    model(more, "preprocess", "def forward(self, INPUT: List[List[str]]):\n"
          "    return torch.tensor([[float(len(text)) for text in row] for row in INPUT])\n", "max_batch_size: 8\n" +
          tensors("input", ("INPUT", "STRING", 1)) + tensors("output", ("OUTPUT", "FP32", 1)))
    model(more, "classify", "def forward(self, INPUT):\n"
          "    out = torch.zeros([INPUT.size(0), 3])\n    out[:, 1] = 1.0 + INPUT[:, 0] * 0.0\n    return out\n", "max_batch_size: 8\n" +
          tensors("input", ("INPUT", "FP32", 1)) + tensors("output", ("OUTPUT", "FP32", 3, 'label_filename: "labels.txt"')))
    (more / "classify" / "labels.txt").write_text("SPORTS CAR\nVULTURE\nCOFFEE MUG\n")
    configure(more, "preprocess_inception_ensemble", "max_batch_size: 8\n" + tensors("input", ("INPUT", "STRING", 1)) +
              tensors("output", ("OUTPUT", "FP32", 3)) + """ensemble_scheduling { step [
      { model_name: "preprocess" model_version: -1 input_map { key: "INPUT" value: "INPUT" } output_map { key: "OUTPUT" value: "x" } },
      { model_name: "classify" model_version: -1 input_map { key: "INPUT" value: "x" } output_map { key: "OUTPUT" value: "OUTPUT" } } ] }
""", platform="ensemble")
    save(more, "preprocess_inception_ensemble", None)


def slow(root):
    repository = fresh(root / "slow")
    save(repository, "simple", kit.waiting("def forward(self, INPUT0, INPUT1):\n    zero = WAIT(INPUT0)\n"
                                           "    return INPUT0 + INPUT1 + zero.to(torch.int32), INPUT0 - INPUT1\n", 5000))
    configure(repository, "simple", "max_batch_size: 8\n" + tensors("input", ("INPUT0", "INT32", 16), ("INPUT1", "INT32", 16)) +
              tensors("output", ("OUTPUT0", "INT32", 16), ("OUTPUT1", "INT32", 16)))


def grpc(root):
    repository = fresh(root / "grpc")
    model(repository, "string_identity", identity_source(["STRING"], 1), "max_batch_size: 0\n" +
          tensors("input", ("INPUT0", "STRING", -1)) + tensors("output", ("OUTPUT0", "STRING", -1)))
    save(repository, "custom_identity_int32", kit.waiting("def forward(self, INPUT0):\n    zero = WAIT(INPUT0)\n"
                                                          "    return INPUT0 + zero.to(torch.int32)\n", 3000))
    configure(repository, "custom_identity_int32", "max_batch_size: 1024\n" + tensors("input", ("INPUT0", "INT32", -1)) +
              tensors("output", ("OUTPUT0", "INT32", -1)))


def lifecycle(root):
    """Models of L0_lifecycle that are slow to load (a warm-up of 7,777 numbers takes long) or to run."""
    repository = fresh(root / "lifecycle")
    warm = lambda datatype: (f'model_warmup [ {{ name: "slow" inputs {{ key: "INPUT0" value: {{ data_type: TYPE_{datatype} '
                             'dims: [ 7777 ] zero_data: true } } } ]\n')
    source = ("def forward(self, INPUT0):\n    out = INPUT0\n    if INPUT0.size(-1) == 7777:\n        zero = WAIT(INPUT0)\n"
              "        out = INPUT0 + zero.to(INPUT0.dtype)\n    return out\n")
    for name, datatype, milliseconds in (("identity_zero_1_int32", "INT32", 8000), ("identity_fp32", "FP32", 6000)):
        save(repository, name, kit.waiting(source, milliseconds))
        configure(repository, name, "max_batch_size: 0\n" + tensors("input", ("INPUT0", datatype, -1)) +
                  tensors("output", ("OUTPUT0", datatype, -1)) + warm(datatype))
    save(repository, "custom_zero_1_float32", kit.waiting("def forward(self, INPUT0):\n    zero = WAIT(INPUT0)\n"
                                                          "    return INPUT0 + zero.to(torch.float32)\n", 2500))
    configure(repository, "custom_zero_1_float32", "max_batch_size: 1\n" + tensors("input", ("INPUT0", "FP32", 1)) +
              tensors("output", ("OUTPUT0", "FP32", 1)) + "dynamic_batching {}\n")
    configure(repository, "ensemble_zero_1_float32", "max_batch_size: 1\n" + tensors("input", ("INPUT0", "FP32", 1)) +
              tensors("output", ("OUTPUT0", "FP32", 1)) + """ensemble_scheduling { step [ { model_name: "custom_zero_1_float32"
      model_version: -1 input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }
""", platform="ensemble")
    save(repository, "ensemble_zero_1_float32", None)
    model(repository, "custom_sequence_int32", "def forward(self, INPUT, START, READY):\n    return INPUT\n", "max_batch_size: 8\n" +
          sequences([control("START", "START"), control("READY", "READY")]) + tensors("input", ("INPUT", "INT32", -1)) +
          tensors("output", ("OUTPUT", "INT32", -1)))
    named = "onnx_float32_float32_float32"
    for version, swap in ((1, False), (2, True), (3, True)):
        save(repository, named, scripted(kit.add_sub_source(("FP32",) * 3, 2, swap, named=True)), (version,))
    configure(repository, named, "max_batch_size: 8\nversion_policy: { specific { versions: [ 1, 3 ] }}\n" +
              tensors("input", ("INPUT0", "FP32", 16), ("INPUT1", "FP32", 16)) +
              tensors("output", ("OUTPUT0", "FP32", 16, 'label_filename: "output0_labels.txt"'), ("OUTPUT1", "FP32", 16)))
    (repository / named / "output0_labels.txt").write_text("".join(f"label{n}\n" for n in range(16)))
    model(repository, "add_sub", kit.add_sub_source(("FP32",) * 3, 1, False), "max_batch_size: 0\n" +
          tensors("input", ("INPUT0", "FP32", 16), ("INPUT1", "FP32", 16)) +
          tensors("output", ("OUTPUT0", "FP32", 16), ("OUTPUT1", "FP32", 16)))


def queue(root):
    """custom_zero_1_float32 of L0_batcher and L0_model_queue: an identity that is fast, takes 100 ms, or 3 seconds."""
    repository = fresh(root / "queue")
    source = "def forward(self, INPUT0):\n    zero = WAIT(INPUT0)\n    return INPUT0 + zero.to(torch.float32)\n"
    for name, milliseconds in (("custom_zero", None), ("custom_zero_100ms", 150), ("custom_zero_slow", 3000), ("custom_zero_very_slow", 7000)):
        module = kit.waiting(source, milliseconds) if milliseconds else scripted("def forward(self, INPUT0):\n    return INPUT0\n")
        save(repository, name, module)
        configure(repository, name, "max_batch_size: 32\n" + tensors("input", ("INPUT0", "FP32", -1)) +
                  tensors("output", ("OUTPUT0", "FP32", -1)) + "instance_group [ { kind: KIND_CPU count: 1 } ]\n")
    configure(repository, "ensemble_zero_1_float32", "max_batch_size: 32\n" + tensors("input", ("INPUT0", "FP32", -1)) +
              tensors("output", ("OUTPUT0", "FP32", -1)) + """ensemble_scheduling { step [ { model_name: "custom_zero_1_float32"
      model_version: -1 input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }
""", platform="ensemble")
    save(repository, "ensemble_zero_1_float32", None)


STEP = """ensemble_scheduling {{ step [ {{ model_name: "{model}" model_version: -1
  input_map {{ key: "{i}" value: "{a}" }} output_map {{ key: "{o}" value: "{b}" }} }} ] }}
"""


def decoupled(root):
    """repeat_int32 and square_int32 of L0_decoupled; the ensembles above them come from the test's own folder."""
    repository = fresh(root / "decoupled")
    source = ("def forward(self, IN, DELAY, WAIT) -> List[Tuple[Tensor, Tensor]]:\n"
              "    if IN.size(0) != DELAY.size(0):\n"
              "        raise Exception('expected IN and DELAY shape to match, got [' + str(IN.size(0)) + '] and [' + str(DELAY.size(0)) + ']')\n"
              "    answers: List[Tuple[Tensor, Tensor]] = []\n"
              "    for i in range(IN.size(0)):\n"
              "        answers.append((IN[i:i + 1], torch.tensor([i], dtype=torch.int32)))\n"
              "    return answers\n")
    inputs = tensors("input", ("IN", "INT32", -1), ("DELAY", "UINT32", -1), ("WAIT", "UINT32", 1))
    outputs = tensors("output", ("OUT", "INT32", 1), ("IDX", "INT32", 1))
    model(repository, "repeat_int32", source, "max_batch_size: 0\nmodel_transaction_policy { decoupled: True }\n" + inputs + outputs)
    model(repository, "square_int32", "def forward(self, IN) -> List[Tensor]:\n    answers: List[Tensor] = []\n"
          "    for _ in range(int(IN[0])):\n        answers.append(IN)\n    return answers\n",
          "max_batch_size: 0\nmodel_transaction_policy { decoupled: True }\n" + tensors("input", ("IN", "INT32", 1)) +
          tensors("output", ("OUT", "INT32", 1)))
    model(repository, "identity_int32", identity_source(["INT32"], 1), "max_batch_size: 0\n" +
          tensors("input", ("INPUT0", "INT32", -1)) + tensors("output", ("OUTPUT0", "INT32", -1)))
    model(repository, "libtorch_nobatch_int32_int32_int32", kit.add_sub_source(("INT32",) * 3, 1, True), "max_batch_size: 0\n" +
          tensors("input", ("INPUT0", "INT32", 1), ("INPUT1", "INT32", 1)) +
          tensors("output", ("OUTPUT__0", "INT32", 1), ("OUTPUT__1", "INT32", 1)))
    plain = fresh(root / "not_decoupled")
    save(plain, "repeat_int32", kit.waiting(
        "def forward(self, IN, DELAY, WAIT) -> Tuple[Tensor, Tensor]:\n    zero = torch.zeros([1], dtype=torch.int64)\n"
        "    if int(DELAY.sum()) > 0:\n        zero = zero + WAIT(IN)\n    return IN, zero.to(torch.int32)\n", 2500))
    configure(plain, "repeat_int32", "max_batch_size: 0\n" + inputs + outputs)


def small(root):
    """The small models of many tests."""
    repository = fresh(root / "small")
    three = lambda optional: tensors("input", *[(f"INPUT{n}", "FP32", -1, "optional: true" if optional else "") for n in range(3)])
    model(repository, "input_all_required", "def forward(self, INPUT0, INPUT1, INPUT2):\n    return INPUT0\n", "max_batch_size: 0\n" +
          three(False) + tensors("output", ("OUTPUT0", "FP32", -1)))
    model(repository, "input_optional", "def forward(self, INPUT0, INPUT1, INPUT2, INPUT3: Optional[Tensor] = None):\n    return INPUT0\n",
          "max_batch_size: 0\n" + tensors("input", *[(f"INPUT{n}", "FP32", -1) for n in range(3)], ("INPUT3", "FP32", -1, "optional: true")) +
          tensors("output", ("OUTPUT0", "FP32", -1)))
    model(repository, "input_all_optional", "def forward(self, INPUT0: Optional[Tensor] = None, INPUT1: Optional[Tensor] = None, "
          "INPUT2: Optional[Tensor] = None):\n    return torch.ones([1])\n", "max_batch_size: 0\n" + three(True) +
          tensors("output", ("OUTPUT0", "FP32", -1)))
    model(repository, "pt_identity", "def forward(self, input):\n    return input\n", "max_batch_size: 8\n" +
          tensors("input", ("INPUT0", "FP32", 8)) + tensors("output", ("OUTPUT0", "FP32", 8)) +
          "dynamic_batching { max_queue_delay_microseconds: 1000000 }\n")
    optional = ("def forward(self, INPUT0: Optional[Tensor] = None, INPUT1: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:\n"
                "    if INPUT0 is not None:\n        zeros = torch.zeros_like(INPUT0)\n"
                "    elif INPUT1 is not None:\n        zeros = torch.zeros_like(INPUT1)\n"
                "    else:\n        zeros = torch.zeros([1, 1])\n"
                "    return INPUT0 if INPUT0 is not None else zeros, INPUT1 if INPUT1 is not None else zeros\n")
    two = tensors("input", ("INPUT0", "FP32", 1, "optional: true"), ("INPUT1", "FP32", 1, "optional: true")) + tensors(
        "output", ("OUTPUT0", "FP32", 1), ("OUTPUT1", "FP32", 1))
    option = fresh(root / "optional")
    model(option, "identity_2_float32", optional, "max_batch_size: 4\n" + two +
          "dynamic_batching { preferred_batch_size: [ 4 ], max_queue_delay_microseconds: 5000000 }\n")
    model(option, "optional_identity", optional, "max_batch_size: 4\n" + two)
    model(repository, "identity_fp32", identity_source(["FP32"], 2), "max_batch_size: 8\n" + tensors("input", ("INPUT0", "FP32", -1)) +
          tensors("output", ("OUTPUT0", "FP32", -1)))
    model(repository, "identity_bytes", identity_source(["STRING"], 2), "max_batch_size: 8\n" + tensors("input", ("INPUT0", "STRING", -1)) +
          tensors("output", ("OUTPUT0", "STRING", -1)))
    model(repository, "string_identity", identity_source(["STRING"], 1), "max_batch_size: 0\n" + tensors("input", ("INPUT0", "STRING", 8)) +
          tensors("output", ("OUTPUT0", "STRING", 8)))
    model(repository, "simple_identity_int64", identity_source(["INT64"], 2), "max_batch_size: 8\n" +
          tensors("input", ("INPUT0", "INT64", -1)) + tensors("output", ("OUTPUT0", "INT64", -1)))
    model(repository, "nan_inf_output", "def forward(self, INPUT0):\n    return torch.tensor([float('nan'), float('inf'), -float('inf'), "
          "1.0, 2.0, 3.0]), INPUT0\n", "max_batch_size: 0\n" + tensors("input", ("INPUT0", "FP32", 1)) +
          tensors("output", ("OUTPUT0", "FP32", 6), ("OUTPUT1", "FP32", 1)))
    for name, dims in (("onnx_scalar_1dim", "1"), ("onnx_scalar_2dim", "1, 1")):
        model(repository, name, "def forward(self, INPUT):\n    return INPUT\n", "max_batch_size: 0\n" + tensors("input", ("INPUT", "FP32", dims)) +
              tensors("output", ("OUTPUT", "FP32", dims)))
    model(repository, "libtorch_datatype_1_float32", "def forward(self, INPUT__0):\n    return INPUT__0\n", "max_batch_size: 0\n" +
          tensors("input", ("INPUT__0", "FP32", "1, 1")) + tensors("output", ("OUTPUT__0", "INT32", "1, 1")))
    model(repository, "libtorch_index_1_float32", "def forward(self, INPUT__0):\n    return INPUT__0\n", "max_batch_size: 0\n" +
          tensors("input", ("INPUT__0", "FP32", "1, 1")) + tensors("output", ("OUTPUT__1", "FP32", "1, 1")))


def generate(root):
    """mock_llm of L0_http; the request parameters that it reads are inputs here."""
    repository = fresh(root / "generate")
    optional = lambda name, datatype, dims: (name, datatype, dims, "optional: true")
    model(repository, "mock_llm",
          "def forward(self, PROMPT: List[List[str]], STREAM, input_ids: Optional[Tensor] = None, REPETITION: Optional[Tensor] = None, "
          "OUTPUT_0_DIM: Optional[Tensor] = None) -> List[List[List[str]]]:\n"
          "    text = PROMPT\n"
          "    if OUTPUT_0_DIM is not None and bool(OUTPUT_0_DIM):\n"
          "        none: List[str] = []\n        text = [none]\n"
          "    count = 1\n"
          "    if bool(STREAM) and REPETITION is not None:\n        count = int(REPETITION)\n"
          "    answers: List[List[List[str]]] = []\n"
          "    for _ in range(count):\n        answers.append(text)\n"
          "    return answers\n",
          "max_batch_size: 0\nmodel_transaction_policy { decoupled: True }\n" +
          tensors("input", ("PROMPT", "STRING", "1, 1"), ("STREAM", "BOOL", "1, 1"), optional("input_ids", "INT32", "1, -1"),
                  optional("REPETITION", "INT32", 1), optional("OUTPUT_0_DIM", "BOOL", 1)) +
          tensors("output", ("TEXT", "STRING", "1, -1")))


def limits(root):
    """Rate limits, cancellation, the pending-request metric: identity models that take a while."""
    repository = fresh(root / "limits")
    source = "def forward(self, INPUT0):\n    zero = WAIT(INPUT0)\n    return INPUT0 + zero.to(torch.float32)\n"
    io = tensors("input", ("INPUT0", "FP32", -1)) + tensors("output", ("OUTPUT0", "FP32", -1))
    for name, milliseconds in (("delay_100", 100), ("delay_1000", 1000), ("delay_2000", 2000), ("delay_5000", 5000)):
        save(repository, name, kit.waiting(source, milliseconds))
        configure(repository, name, "max_batch_size: 4\n" + io)


ZERO_STATE = """  state [ { input_name: "SUM" output_name: "OUTPUT__1" data_type: TYPE_INT32 dims: [ 1 ]
    initial_state: { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } ]
"""


def sequence(root):
    """custom_sequence_int32, custom_dyna_sequence_int32 …: sums, kept as implicit state."""
    repository = fresh(root / "sequence")
    start_ready = [control("START", "START"), control("READY", "READY")]
    save(repository, "custom_sequence_int32", scripted(
        "def forward(self, INPUT, START, READY, SUM):\n    total = SUM * (1 - START) + INPUT\n    return total * READY, total\n"))
    configure(repository, "custom_sequence_int32", "max_batch_size: 8\n" + sequences(start_ready, "", ZERO_STATE) + IN_OUT +
              "instance_group [ { kind: KIND_CPU } ]\n")
    flags = [control("START", "START"), control("END", "END"), control("READY", "READY")]
    oldest = "  oldest { max_candidate_sequences: 6 preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 0 }\n"
    for name, corrid, source in (
            ("custom_dyna_sequence_int32", control("CORRID", "CORRID", "data_type: TYPE_UINT64"), "CORRID"),
            ("custom_string_dyna_sequence_int32", control("CORRID", "CORRID", "data_type: TYPE_STRING"),
             "torch.tensor([[int(row[0]) if row[0] != '' else 0] for row in CORRID])")):
        kind = "List[List[str]]" if "string" in name else "Tensor"
        save(repository, name, scripted(
            f"def forward(self, INPUT, START, END, READY, CORRID: {kind}, SUM):\n    ids = {source}\n"
            "    total = SUM * (1 - START) + INPUT.sum(1, keepdim=True).to(torch.int32)\n"
            "    return ((total + ids * END) * READY).to(torch.int32) + torch.zeros_like(INPUT), total\n"))
        configure(repository, name, "max_batch_size: 8\n" + sequences(flags + [corrid], oldest, ZERO_STATE) +
                  tensors("input", ("INPUT", "INT32", -1)) + tensors("output", ("OUTPUT", "INT32", -1)) +
                  "instance_group [ { kind: KIND_CPU } ]\n")
    model(repository, "onnx_dyna_sequence_int32", "def forward(self, INPUT, START, END, READY, CORRID):\n"
          "    return ((INPUT + START + END * CORRID) * READY).to(torch.int32)\n", "max_batch_size: 8\n" +
          sequences(flags + [control("CORRID", "CORRID", "data_type: TYPE_INT32")], oldest) + IN_OUT +
          "instance_group [ { kind: KIND_CPU } ]\n")
    save(repository, "custom_sequence_int32_timeout", kit.waiting(
        "def forward(self, INPUT0):\n    zero = WAIT(INPUT0)\n    return INPUT0 + zero.to(torch.int32)\n", 4000))
    configure(repository, "custom_sequence_int32_timeout", "max_batch_size: 1\n" + tensors("input", ("INPUT0", "INT32", 1)) +
              tensors("output", ("OUTPUT0", "INT32", 1)) + "sequence_batching { max_sequence_idle_microseconds: 50000000 }\n")
    count = scripted("def forward(self, INPUT0, SUM):\n    total = SUM + INPUT0\n    return total, total\n")
    for name, ordered in (("seqpy_preserve_ordering_nondecoupled", "True"), ("seqpy_no_preserve_ordering_nondecoupled", "False")):
        save(repository, name, count)
        configure(repository, name, "max_batch_size: 4\n" + tensors("input", ("INPUT0", "INT32", 1)) +
                  tensors("output", ("OUTPUT0", "INT32", 1)) + "sequence_batching {\n  max_sequence_idle_microseconds: 10000000\n"
                  "  oldest { max_candidate_sequences: 4 max_queue_delay_microseconds: 1000000 preserve_ordering: " + ordered +
                  " }\n" + ZERO_STATE + "}\n")
    for datatype in ("STRING", "UINT32", "INT32", "UINT64", "INT64"):
        kind = "List[str]" if datatype == "STRING" else "Tensor"
        folder = fresh(root / f"corrid_{datatype}")
        model(folder, "add_sub", f"def forward(self, INPUT0, INPUT1, CORRID: {kind}):\n    return INPUT0 + INPUT1, INPUT0 - INPUT1\n",
              "max_batch_size: 0\n" + tensors("input", ("INPUT0", "FP32", 16), ("INPUT1", "FP32", 16)) +
              tensors("output", ("OUTPUT0", "FP32", 16), ("OUTPUT1", "FP32", 16)) + "sequence_batching { control_input [ { name: "
              f'"CORRID" control [ {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_{datatype} }} ] }} ] }}\n')
    model(repository, "single_state_buffer", "def forward(self, INPUT, TEST_CASE, START, READY, END, INPUT_STATE):\n"
          "    total = INPUT + INPUT_STATE\n    return total, total\n", "max_batch_size: 0\n" +
          sequences([control(n, n, "fp32_false_true: [ 0, 1 ]") for n in ("START", "READY", "END")], "", """  state [ {
    input_name: "INPUT_STATE" output_name: "OUTPUT__1" data_type: TYPE_INT32 dims: 1 use_same_buffer_for_input_output: true } ]
""") + tensors("input", ("INPUT", "INT32", 1), ("TEST_CASE", "INT32", 1)) + tensors("output", ("OUTPUT", "INT32", 1)))


def main():
    import pathlib
    root = pathlib.Path(sys.argv[1])
    for make in (own, examples, more_examples, slow, grpc, lifecycle, sequence, queue, decoupled, small, generate, limits):
        make(root)


if __name__ == "__main__":
    main()
