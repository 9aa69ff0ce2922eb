"""Many small folders of qa/: validation, types, names, parameters, ensembles, decoupled responses, status, large
payloads."""

import os
import re
import shutil

import kit_paths as paths
from harness import (MODELS, QA, Server, check, clean_shared_memory, copy_models, edit, folder, methods, prepared, run_methods, run_script,
                     skip, PYTHON)
from suite_infer import TWINS

F = "_float32_float32_float32"


def ensembles(source, target, *names):
    """Ensembles of a test's own folder; each gets its version folder."""
    for name in names:
        shutil.copytree(QA / source / name, target / name, dirs_exist_ok=True)
        config = (target / name / "config.pbtxt")
        if "name:" not in config.read_text().split("{")[0]:
            config.write_text(f'name: "{name}"\n' + config.read_text())
        (target / name / "1").mkdir(exist_ok=True)


def validation():
    test = prepared("L0_input_validation/input_validation_test.py", folder("validation_test"))
    (folder("validation") / "models").mkdir()
    models = copy_models(MODELS / "small", folder("validation") / "models", "input_all_required", "input_optional",
                         "input_all_optional", "pt_identity")
    copy_models(MODELS / "qa_model", models, "onnx_object_int32_int32")
    names = methods(test)
    with Server(models, flags=["--allow-client-shm", "true"], name="validation"):
        run_methods("L0_input_validation", test, [n for n in names if n.startswith(("InputValTest", "InputShapeTest"))],
                    leave_out={"InputShapeTest.test_wrong_input_shape_tensor_size": "shape tensors are TensorRT's"})
    empty = folder("validation_empty") / "models"
    empty.mkdir()
    with Server(empty, flags=["--model-control-mode", "explicit"], name="validation_names"):
        run_methods("L0_input_validation", test, [n for n in names if n.startswith("ModelName")])

    test = prepared("L0_optional_input/optional_input_test.py", folder("optional_test"))
    models = copy_models(MODELS / "optional", folder("optional") / "models", "identity_2_float32", "optional_identity")
    ensembles("L0_optional_input/models", models, "ensemble_identity_2_float32", "pipeline_identity_2_float32", "optional_connecting_tensor")
    for name in methods(test):
        with Server(models, name="optional"):
            run_methods("L0_optional_input", test, [name])


def names():
    source = MODELS / "qa_model" / ("libtorch" + F)
    models = folder("io_names") / "models"
    for name, edits in (
            ("libtorch_output_index", ()), ("libtorch_io_index", (("INPUT0", "INPUT__0"), ("INPUT1", "INPUT__1"))),
            ("libtorch_no_output_index", (("OUTPUT__0", "OUTPUT0"), ("OUTPUT__1", "OUTPUT1"))),
            ("libtorch_no_arguments_output_index", (("INPUT0", "INPUTA"), ("INPUT1", "INPUTB"), ("OUTPUT__0", "OUTPUTA"),
                                                    ("OUTPUT__1", "OUTPUTB"))),
            ("libtorch_mix_index", (("INPUT0", "INPUTA"), ("INPUT1", "INPUT__1"), ("OUTPUT__0", "OUTPUTA"))),
            ("libtorch_mix_arguments", (("INPUT1", "INPUTB"), ("OUTPUT__0", "OUTPUTA"))),
            ("libtorch_mix_arguments_index", (("INPUT1", "INPUT__1"), ("OUTPUT__0", "OUTPUT0"))),
            ("libtorch_unordered_index", (("INPUT0", "INPUT_TMP1"), ("INPUT1", "INPUT0"), ("INPUT_TMP1", "INPUT1"),
                                          ("OUTPUT__0", "OUT__1"), ("OUTPUT__1", "OUT__0")))):
        paths.renamed(models, source, name, edits)
    test = prepared("L0_libtorch_io_names/io_names_client.py", folder("io_names_test"))
    with Server(models, name="io_names"):
        run_methods("L0_libtorch_io_names", test)

    for name, base, edits, text in (
            ("libtorch_invalid_input_type", "libtorch_int32_int8_int8", [("TYPE_INT32", "TYPE_UINT32")],
             "unsupported datatype TYPE_UINT32 for input 'INPUT0'"),
            ("libtorch_invalid_output_type", "libtorch_int32_int8_int8", [("TYPE_INT8", "TYPE_UINT64")],
             "unsupported datatype TYPE_UINT64 for output 'OUTPUT__0'")):
        models = folder("io_types") / "models"
        paths.renamed(models, MODELS / "qa_model" / base, name, edits)
        with Server(models, name="io_types", wait=15) as server:
            check("L0_libtorch_io_types", f"{name}: the model is refused", "cannot be served" in server.log or not server.up,
                  "it is served: unsigned types reach the script as the next larger signed one", kind="qa")

    models = copy_models(MODELS / "small", folder("output_validation") / "models", "libtorch_datatype_1_float32",
                         "libtorch_index_1_float32")
    with Server(models, name="output_validation", wait=15) as server:
        run_script("L0_output_validation", "OutputValidationTest.test_datatype: an output of another type than configured is an error",
                   [PYTHON, "-c", "import numpy as np, tritonclient.grpc as g\nc = g.InferenceServerClient('localhost:8001')\n"
                    "i = g.InferInput('INPUT__0', [1, 1], 'FP32'); i.set_data_from_numpy(np.ones((1, 1), np.float32))\n"
                    "try:\n    r = c.infer('libtorch_datatype_1_float32', [i]); print(r.get_response())\n"
                    "except Exception as e:\n    print('refused', e)\n"], want="refused", kind="qa")
        check("L0_output_validation", "OutputValidationTest.test_index: an output index that is not there is said",
              "OUTPUT__1" in server.log and "cannot be served" in server.log, server.log[-600:], kind="qa")

    test = prepared("L0_output_name/output_name_test.py", folder("output_name_test"))
    models = copy_models(MODELS / "qa_identity", folder("output_name") / "models", "libtorch_nobatch_zero_1_float32",
                         "onnx_nobatch_zero_1_float32")
    paths.renamed(models, "onnx_nobatch_zero_1_float32", "plan_nobatch_zero_1_float32")
    with Server(models, name="output_name"):
        run_methods("L0_output_name", test)

    test = prepared("L0_libtorch_instance_group_kind_model/client.py", folder("kind_test"))
    models = copy_models(MODELS / "qa_model", folder("kind") / "models", "libtorch" + F)
    config = models / ("libtorch" + F) / "config.pbtxt"
    config.write_text(re.sub(r"(?m)^version_policy.*", "version_policy: { specific { versions: [1] }}", config.read_text()) +
                      "\ninstance_group [ { kind: KIND_MODEL } ]\n")
    with Server(models, name="kind"):
        run_methods("L0_libtorch_instance_group_kind_model", test, env={"MODEL_NAME": "libtorch" + F})


def strings():
    test = prepared("L0_string_io/string_client_test.py", folder("string_test"))
    models = copy_models(MODELS / "small", folder("string") / "models", "string_identity")
    with Server(models, name="string"):
        run_methods("L0_string_io", test)
    models = folder("nullchar") / "models"
    copy_models(MODELS / "qa_identity", models, "libtorch_nobatch_zero_1_object", "onnx_nobatch_zero_1_object")
    with Server(models, name="nullchar"):
        for name in ("libtorch_nobatch_zero_1_object", "onnx_nobatch_zero_1_object"):
            for protocol, port in (("grpc", 8001), ("http", 8000)):
                run_script("L0_nullchar_string", f"nullchar_string_client.py -m {name} -i {protocol}",
                           [PYTHON, QA / "L0_nullchar_string" / "nullchar_string_client.py", "-m", name, "-i", protocol, "-u",
                            f"localhost:{port}"], kind="qa")
    test = prepared("L0_scalar_io/scalar_test.py", folder("scalar_test"))
    models = copy_models(MODELS / "small", folder("scalar") / "models", "onnx_scalar_1dim", "onnx_scalar_2dim", "nan_inf_output")
    with Server(models, name="scalar"):
        run_methods("L0_scalar_io", test)
        nan = prepared("L0_nan_inf/nan_inf_test.py", folder("nan_test"))
        edit(nan, (r"np\.NINF", "-np.inf"))
        run_methods("L0_nan_inf", nan)
    if os.environ.get("COMPAT_LARGE", "1") == "1":
        test = prepared("L0_large_payload/large_payload_test.py", folder("large_test"))
        # 2.1 GB also exceed the limit of any body, and fit a small machine's memory, with the client's copies.
        edit(test, (r"3 \* \(1024 \* 1024", "2.1 * (1024 * 1024"), (r"1\.9 \*", "0.9 *"),
             (r"np\.random\.random\((\w*large_tensor_shape)\)\.astype\(\s*self\._data_type\s*\)", r"np.ones(\1, self._data_type)"))
        models = copy_models(MODELS / "qa_identity", folder("large") / "models", "libtorch_nobatch_zero_1_float32",
                             "onnx_nobatch_zero_1_float32")
        with Server(models, name="large"):
            for name in ("LargePayLoadTest.test_onnx", "LargePayLoadTest.test_libtorch"):
                run_methods("L0_large_payload", test, [name], timeout=400)
        for name in ("python", "plan", "custom"):
            skip("L0_large_payload", f"LargePayLoadTest.test_{name}", "another backend with the same code as test_onnx")


def parameters():
    test = prepared("L0_parameters/parameters_test.py", folder("parameters_test"))
    for name in ("test_params", "test_params_reserved_rejected", "test_headers", "test_grpc_header_forward_pattern_case_sensitive",
                 "test_headers_reserved_rejected"):
        skip("L0_parameters", f"InferenceParametersTest.{name}", "needs a model that reads the request's parameters (Python backend)")
    models = copy_models(MODELS / "small", folder("class_count") / "models", "identity_fp32", "identity_bytes")
    with Server(models, name="class_count"):
        for client in ("grpc", "http"):
            run_methods("L0_parameters", test.parent / "class_count_test.py", env={"CLIENT_TYPE": client}, label=f" [{client}]")


def decoupled():
    test = prepared("L0_decoupled/decoupled_test.py", folder("decoupled_test"))
    models = copy_models(MODELS / "decoupled", folder("decoupled") / "models", "repeat_int32", "square_int32", "identity_int32",
                         "libtorch_nobatch_int32_int32_int32")
    ensembles("L0_decoupled/models", models, "fan_repeat", "nested_square", "repeat_square", "sequence_repeat", "simple_repeat")
    for config in models.glob("*/config.pbtxt"):  # a script has no unsigned output
        config.write_text(re.sub(r'name: "IDX"\s+data_type: TYPE_UINT32', 'name: "IDX" data_type: TYPE_INT32', config.read_text()))
    left_out = {"DecoupledTest.test_response_order": "needs answers with pauses between them, which a script cannot make"}
    with Server(models, name="decoupled"):
        run_methods("L0_decoupled", test, [n for n in methods(test) if n.startswith("Decoupled") and "multi_many" not in n],
                    leave_out=left_out)
        run_methods("L0_decoupled", test, ["DecoupledTest.test_one_to_many", "DecoupledTest.test_wrong_shape"],
                    env={"TRITONSERVER_GRPC_STATUS_FLAG": "1"}, label=" [triton_grpc_error]")
        run_methods("L0_decoupled", test, ["DecoupledTest.test_one_to_multi_many"], env={"TRITONSERVER_DELAY_GRPC_RESPONSE": "2000"},
                    label=" [not delayed]", timeout=200)
    # Triton detects that an ensemble with a decoupled model is decoupled too.
    for name in ("fan_repeat", "nested_square", "repeat_square", "sequence_repeat", "simple_repeat"):
        config = models / name / "config.pbtxt"
        config.write_text(config.read_text() + "model_transaction_policy { decoupled: True }\n")
    with Server(models, name="decoupled"):
        for name in ("test_one_to_none", "test_one_to_one", "test_one_to_many"):
            run_methods("L0_decoupled", test, ["DecoupledTest." + name], label=" [ensembles say that they are decoupled]")
        run_methods("L0_decoupled", test, ["DecoupledTest.test_one_to_multi_many"], timeout=200,
                    env={"TRITONSERVER_DELAY_GRPC_RESPONSE": "2000"}, label=" [ensembles say that they are decoupled, not delayed]")
    with Server(MODELS / "not_decoupled", name="not_decoupled"):
        run_methods("L0_decoupled", test, [n for n in methods(test) if n.startswith("NonDecoupled")])


def ensemble():
    test = prepared("L0_simple_ensemble/ensemble_test.py", folder("ensemble_test"))
    models = folder("ensemble") / "models"
    shutil.copytree(QA / "L0_simple_ensemble" / "models" / "simple", models / "simple")
    for version in ("1", "2"):
        shutil.copytree(MODELS / "qa_model" / "onnx_int32_int32_int32" / "1", models / "simple" / version, dirs_exist_ok=True)
    edit(models / "simple" / "config.pbtxt", (r'(platform|backend):.*', 'platform: "pytorch_libtorch"'))
    ensembles("L0_simple_ensemble/models", models, "ensemble_add_sub_int32_int32_int32")
    edit(test, (r"import tritonhttpclient", "import tritonclient.http as tritonhttpclient"))
    for name in ("test_ensemble_add_sub", "test_ensemble_add_sub_one_output", "test_ensemble_sequence_flags"):
        with Server(models, name="ensemble") as server:
            run_methods("L0_simple_ensemble", test, ["EnsembleTest." + name], env={"SERVER_LOG": str(server.log_path)})
    skip("L0_simple_ensemble", "EnsembleTest.test_ensemble_partial_add_sub", "needs a model that leaves out an output (Python backend)")
    for name in methods(test.parent / "ensemble_backpressure_test.py"):
        skip("L0_simple_ensemble", name, "needs a decoupled model that sends without end and a slow one that sleeps (Python backend)")


def status():
    test = prepared("L0_server_status/server_status_test.py", folder("status_test"), TWINS)
    models = folder("status") / "models"
    shutil.copytree(MODELS / "qa_model", models)
    for name in ("onnx" + F, "onnx_int32_int32_int32", "onnx_float16_float32_float32"):
        paths.renamed(models, name, name.replace("onnx", "plan"))
    # The equivalents are TorchScript, so their platform is too.
    edit(test, (r'"tensorrt_plan"', '"pytorch_libtorch"'), (r'"onnxruntime_onnx"', '"pytorch_libtorch"'))
    count = sum(1 for _ in models.glob("*/config.pbtxt"))
    with Server(models, flags=["--model-control-mode", "poll", "--repository-poll-secs", "1", "--allow-client-shm", "true"],
                name="status", wait=90):
        version = run_version()
        env = {"TRITON_SERVER_VERSION": version}
        run_methods("L0_server_status", test, [n for n in methods(test, env) if n.startswith("ServerMetadata")], env=env)
        for kind in ("libtorch", "onnx"):
            for number in ("2", "3"):
                shutil.rmtree(models / f"{kind}_int32_int32_int32" / number)
        shutil.copytree(models / "plan_float16_float32_float32" / "1", models / "plan_float16_float32_float32" / "7")
        import time
        time.sleep(4)
        run_methods("L0_server_status", test, [n for n in methods(test, env) if n.startswith("ModelMetadata")], env=env,
                    leave_out={"ModelMetadataTest.test_infer_stats_no_model": f"counts Triton's own models (144; here {count})"})


def run_version():
    import subprocess
    run = subprocess.run([PYTHON, "-c", "import tritonclient.grpc as g; print(g.InferenceServerClient('127.0.0.1:8001')"
                          ".get_server_metadata().version)"], capture_output=True, text=True)
    return run.stdout.strip()


SUITES = {"validation": validation, "names": names, "strings": strings, "parameters": parameters, "decoupled": decoupled,
          "ensemble": ensemble, "status": status}
assert clean_shared_memory
