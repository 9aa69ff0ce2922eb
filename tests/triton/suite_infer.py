"""Inference: L0_infer, its shared-memory variant, L0_infer_zero, L0_infer_reshape, L0_infer_variable, L0_io names, L0_large_payload."""

import shutil

import kit_paths as paths
from harness import MODELS, QA, Server, clean_shared_memory, copy_models, folder, prepared, run_methods

# infer_util expects "OUTPUT__0" from every model of the platform pytorch_libtorch; the equivalents of ONNX models have
# "OUTPUT0".
TWINS = [("common/infer_util.py", r'platform = metadata\["platform"\]',
          'platform = metadata["platform"] if "onnx" not in model_name and "plan" not in model_name else "onnxruntime_onnx"'),
         ("common/infer_util.py", r"platform = metadata\.platform",
          'platform = metadata.platform if "onnx" not in model_name and "plan" not in model_name else "onnxruntime_onnx"')]


OF_THREE = "needs a model with strings of three dimensions, which TorchScript models have in neither server"
NO_STRINGS_OF_THREE = {"L0_infer_zero": {f"InferZeroTest.test_oo3_{what}": OF_THREE for what in (0, 1, 2, 3, 4, "sanity")},
                       "L0_infer_variable": {"InferVariableTest.test_raw_oio": OF_THREE}}


def merged(name, *sources):
    repository = folder(name) / "models"
    for source in sources:
        shutil.copytree(MODELS / source, repository, dirs_exist_ok=True)
    return repository


def infer():
    repository = merged("infer", "qa_model", "qa_ensemble")
    for path in (QA / "ensemble_models").iterdir():
        shutil.copytree(path, repository / path.name)
        (repository / path.name / "1").mkdir()
    copy_models(MODELS / "own", repository, "custom_zero_1_float32", "custom_nobatch_zero_1_float32")
    for path in list(repository.iterdir()):  # ensembles of models that are not there
        pbtxt = (path / "config.pbtxt").read_text()
        wanted = paths.step_models(pbtxt)
        if any(not (repository / step).exists() for step in wanted):
            shutil.rmtree(path)
    test = prepared("L0_infer/infer_test.py", folder("infer_test"), TWINS)
    with Server(repository, flags=["--allow-client-shm", "true"], name="infer", wait=180):
        run_methods("L0_infer", test, env={"BACKENDS": "onnx libtorch", "ENSEMBLES": "0"}, label=" [no ensembles]")
        run_methods("L0_infer", test, env={"BACKENDS": "onnx libtorch"})
        run_methods("L0_infer", test, env={"BACKENDS": "onnx libtorch", "TEST_SYSTEM_SHARED_MEMORY": "1"}, label=" [shm]",
                    between=clean_shared_memory)


def zero():
    for suite, test_file, sources, env in (
            ("L0_infer_zero", "L0_infer_zero/infer_zero_test.py", ("qa_identity", "qa_ensemble_identity"), {}),
            ("L0_infer_reshape", "L0_infer_reshape/infer_reshape_test.py", ("qa_reshape", "qa_ensemble_reshape"), {}),
            ("L0_infer_variable", "L0_infer_variable/infer_variable_test.py", ("qa_variable", "qa_ensemble_variable"), {})):
        repository = merged(suite, *sources)
        if "reshape" in suite:
            paths.custom_reshape(repository)
        if "variable" in suite:
            for path in list(repository.glob("onnx_*")):
                paths.renamed(repository, path.name, path.name.replace("onnx", "plan", 1))
        for path in list(repository.iterdir()):
            if any(not (repository / step).exists() for step in paths.step_models((path / "config.pbtxt").read_text())):
                shutil.rmtree(path)
        # The part that only calls TensorRT models is left out.
        tensorrt = [(test_file, r"(def _trt_reshape\([^)]*\):)", r"\1\n        return")] if "reshape" in suite else []
        test = prepared(test_file, folder(suite + "_test"), TWINS + tensorrt)
        with Server(repository, flags=["--allow-client-shm", "true"], name=suite, wait=120):
            run_methods(suite, test, env={"BACKENDS": "onnx libtorch", **env}, leave_out=NO_STRINGS_OF_THREE.get(suite, {}))


SUITES = {"infer": infer, "infer_zero": zero}
