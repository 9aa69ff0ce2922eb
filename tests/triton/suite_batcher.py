"""L0_batcher, L0_model_queue, L0_priority."""

import re
import shutil

import kit_paths as paths
from harness import MODELS, QA, Server, check, copy_models, folder, metrics, methods, prepared, run_methods, skip, tail  # noqa: F401
from suite_infer import TWINS

F = "_float32_float32_float32"
NO_DELAY = ["test_static_batch_preferred", "test_static_batch_lt_any_preferred", "test_static_batch_not_preferred",
            "test_static_batch_gt_max_preferred", "test_multi_batch_not_preferred", "test_multi_batch_gt_max_preferred",
            "test_multi_batch_sum_gt_max_preferred", "test_multi_same_output0", "test_multi_same_output1", "test_multi_different_outputs",
            "test_multi_different_output_order"]
SHAPES = ["test_multi_batch_not_preferred_different_shape", "test_multi_batch_preferred_different_shape",
          "test_multi_batch_different_shape"]
DELAY = {"test_multi_batch_delayed_sum_gt_max_preferred": 2, "test_multi_batch_use_biggest_preferred": 6,
         "test_multi_batch_use_best_preferred": 3}
ONLY = {"test_preferred_batch_only_aligned": 4, "test_preferred_batch_only_unaligned": 5,
        "test_preferred_batch_only_use_biggest_preferred": 7, "test_preferred_batch_only_use_no_preferred_size": 3}
# Without TRITONSERVER_DELAY_SCHEDULER the number of runs is not determined; the number of requests and rows is still
# checked.
UNDELAYED = [("L0_batcher/batcher_test.py", r"if batch_exec:", "if False:"),
             ("L0_batcher/batcher_test.py", r"self\.assertIn\(\s+actual_exec_cnt,\s+exec_count,", "self.assertIn(1, (1,),"),
             ("L0_batcher/batcher_test.py", r"if actual_exec_cnt in exec_count:", "if stats.model_stats[0].inference_count == infer_cnt:")]


def models(name, source, dynamic):
    target = folder(name) / "models"
    for kind in ("onnx", "libtorch"):
        pbtxt = (MODELS / source / (kind + F) / "config.pbtxt").read_text()
        edits = [(r"(?m)^version_policy:.*", "version_policy: { specific { versions: [1] }}")] if "version_policy:" in pbtxt else []
        path = target / (kind + F)
        paths.renamed(target, MODELS / source / (kind + F), kind + F, [(r"max_batch_size: \d+", "max_batch_size: 8"), *edits])
        config = path / "config.pbtxt"
        config.write_text(config.read_text() + f"\ndynamic_batching {{ {dynamic} }}\n")
        for version in ("2", "3"):
            shutil.rmtree(path / version, ignore_errors=True)
    return target


def batcher():
    strict = prepared("L0_batcher/batcher_test.py", folder("batcher_test"), TWINS)
    loose = prepared("L0_batcher/batcher_test.py", folder("batcher_delay_test"), TWINS + UNDELAYED)
    env = {"BACKENDS": "onnx libtorch", "USE_HTTP": "0"}  # the test uses one of the two protocols
    usual = "preferred_batch_size: [ 2, 6 ], max_queue_delay_microseconds: 10000000"
    fixed, variable = models("batcher", "qa_model", usual), models("batcher_var", "qa_variable", usual)
    for kind, repository, names in (("FIXED", fixed, NO_DELAY), ("VARIABLE", variable, NO_DELAY + SHAPES)):
        for name in names:
            with Server(repository, name="batcher"):
                run_methods("L0_batcher", strict, ["BatcherTest." + name], label=f" [{kind}]",
                            env={**env, "BATCHER_TYPE": kind, "USE_HTTP": "1" if kind == "VARIABLE" else "0"})
    skip("L0_batcher", "BatcherTest.test_multi_batch_different_shape_allow_ragged", "needs batch_output and rows joined end to end")
    skip("L0_batcher", "BatcherTest.test_multi_batch_delayed_use_max_batch", "needs TRITONSERVER_DELAY_SCHEDULER, a switch of Triton's tests")
    for name, requests in DELAY.items():
        with Server(fixed, name="batcher"):
            run_methods("L0_batcher", loose, ["BatcherTest." + name], label=" [not delayed]",
                        env={**env, "BATCHER_TYPE": "FIXED", "TRITONSERVER_DELAY_SCHEDULER": str(requests)})
    with Server(variable, name="batcher"):
        run_methods("L0_batcher", loose, ["BatcherTest.test_multi_batch_delayed_preferred_different_shape"], label=" [not delayed]",
                    env={**env, "BATCHER_TYPE": "VARIABLE", "TRITONSERVER_DELAY_SCHEDULER": "4"})
    only = models("batcher_only", "qa_model", "preferred_batch_size: [ 4, 6 ]")
    for name, requests in ONLY.items():
        with Server(only, name="batcher"):
            run_methods("L0_batcher", loose, ["BatcherTest." + name], label=" [not delayed]",
                        env={**env, "BATCHER_TYPE": "FIXED", "TRITONSERVER_DELAY_SCHEDULER": str(requests)})
    for name, delay in (("test_max_queue_delay_only_default", 0), ("test_max_queue_delay_only_non_default", 20000)):
        target = folder("batcher_queue") / "models"
        paths.renamed(target, MODELS / "queue" / "custom_zero_100ms", "custom_zero_1_float32", [
            (r"max_batch_size: \d+", "max_batch_size: 100")])
        config = target / "custom_zero_1_float32" / "config.pbtxt"
        config.write_text(config.read_text() + f"dynamic_batching {{ max_queue_delay_microseconds: {delay} }}\n")
        with Server(target, name="batcher_queue"):
            run_methods("L0_batcher", strict, ["BatcherTest." + name], env=env)
    skip("L0_batcher", "BatcherTest.test_multi_batch_preserve_ordering", "needs instances of different speed, a feature of the custom backend")
    target = folder("batcher_timeout") / "models"
    paths.renamed(target, MODELS / "queue" / "custom_zero_very_slow", "dynamic_batch", [(r"max_batch_size: \d+", "max_batch_size: 1")])
    config = target / "dynamic_batch" / "config.pbtxt"
    config.write_text(config.read_text() + "dynamic_batching { preferred_batch_size: [ 1 ] default_queue_policy { "
                      "timeout_action: REJECT default_timeout_microseconds: 1000000 max_queue_size: 8 } }\n")
    with Server(target, name="batcher_timeout"):
        run_methods("L0_batcher", strict.parent / "queue_timeout_test.py")
        loose = strict.parent / "queue_timeout_test.py"
        loose.write_text(loose.read_text().replace("StatusCode.UNAVAILABLE", "StatusCode.DEADLINE_EXCEEDED"))
        run_methods("L0_batcher", loose, label=" [DEADLINE_EXCEEDED taken]")


QUEUE = "preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 10000000 "
POLICIES = {
    "test_max_queue_size": "preferred_batch_size: [ 4, 8 ] default_queue_policy { max_queue_size: 8 }",
    "test_policy_delay": QUEUE + "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 100000 }",
    "test_policy_reject": QUEUE + "default_queue_policy { default_timeout_microseconds: 100000 }",
    "test_timeout_override": QUEUE + "default_queue_policy { allow_timeout_override: true default_timeout_microseconds: 1000000 }",
    "test_priority_levels": QUEUE + "priority_levels: 2 default_priority_level: 2",
    "test_max_priority_levels": QUEUE + "priority_levels: 18446744073709551615 default_priority_level: 4294967296",
    "test_priority_with_policy": """preferred_batch_size: [ 4, 8, 32 ] max_queue_delay_microseconds: 10000000 priority_levels: 2
  default_priority_level: 2 default_queue_policy { timeout_action: DELAY allow_timeout_override: true
  default_timeout_microseconds: 11000000 } priority_queue_policy { key: 2 value: { timeout_action: REJECT
  allow_timeout_override: true default_timeout_microseconds: 11000000 } }""",
}


def queue():
    test = prepared("L0_model_queue/model_queue_test.py", folder("queue_test"), [
        *TWINS[:0],
        ("common/infer_util.py", r'platform = metadata\["platform"\]', 'platform = "onnxruntime_onnx"'),
        ("common/infer_util.py", r"platform = metadata\.platform", 'platform = "onnxruntime_onnx"')])
    for name, policy in POLICIES.items():
        target = folder("queue") / "models"
        source = "custom_zero_slow" if name == "test_max_queue_size" else "custom_zero"
        paths.renamed(target, MODELS / "queue" / source, "custom_zero_1_float32")
        config = target / "custom_zero_1_float32" / "config.pbtxt"
        config.write_text(config.read_text() + f"dynamic_batching {{ {policy} }}\n")
        paths.renamed(target, MODELS / "queue" / "ensemble_zero_1_float32", "ensemble_zero_1_float32")
        with Server(target, name="queue", flags=["--metrics-compat", "triton"]):
            run_methods("L0_model_queue", test, ["ModelQueueTest." + name])


SUITES = {"batcher": batcher, "queue": queue}
assert re and QA
