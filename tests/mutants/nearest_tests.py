"""Orders the tests to run for a source, the nearest first."""

import fnmatch
import pathlib

# For sources below a folder (the longest match): tests by their place in tests/, nearest first. Tests with a daemon
# come last. A mutant that only a test outside its row would detect counts as undetected.
ROWS = {
    "core/base": ["base/*", "tensor/*", "server/scheduler/*", "server/training/training_checkpoint*", "jit/save*", "server/*"],
    "core/tensor": ["tensor/*", "ops/*", "kernels/*", "autograd/*", "jit/*", "op_db/*", "python/*"],
    "core/ops": ["ops/*", "autograd/*", "kernels/*", "jit/*", "op_db/*", "python/*"],
    "core/autograd": ["autograd/*", "kernels/*gradient*", "ops/op_gradients*", "nn/*", "jit/training*", "api/*", "device/*", "op_db/*",
                      "server/training/*", "python/*", "jit/*"],
    "core/nn": ["nn/*", "jit/training*", "server/training/*", "python/*"],
    "core/jit/ir": ["jit/ir*", "jit/passes*", "jit/*", "script/*", "programs/*", "formats/*", "pt2/*", "onnx/*", "server/training/*"],
    "core/jit/passes": ["jit/passes*", "jit/fuse*", "jit/*", "random_calls/*", "script/*", "programs/*", "pt2/*", "onnx/*",
                        "server/training/*"],
    "core/jit/archive": ["jit/archive*", "jit/zip*", "jit/save*", "jit/*", "formats/*", "quantized/*", "ops/op_cases_test*",
                         "server/training/data_file*", "server/training/training_ch*"],
    "core/jit/importers/pt2": ["pt2/*", "formats/*", "jit/*", "e2e/models/convert*"],
    "core/jit/importers/onnx": ["onnx/*", "formats/*", "jit/*", "e2e/models/convert*"],
    "core/jit/exporters/onnx": ["formats/export*", "onnx/*", "e2e/models/convert*"],
    "core/jit/exporters": ["formats/*", "pt2/*", "onnx/*", "api/*", "python/*", "e2e/models/convert*"],
    "core/jit/tracing": ["formats/*", "pt2/*", "onnx/*", "e2e/models/convert*"],
    "core/jit/importers": ["formats/*", "pt2/*", "onnx/*", "jit/source*", "server/training/data_file*", "e2e/models/weights_file*", "e2e/models/convert*"],
    "core/distributed": ["distributed/*", "nn/ddp*", "e2e/training/launch*", "e2e/training/train_ranks*"],
    "core/jit": ["jit/*", "script/*", "ops/op_cases_test*", "api/*", "programs/*", "server/repository/repository_test*",
                 "server/executor/batch_strategy*", "formats/*", "pt2/*", "onnx/*", "server/training/*", "python/*",
                 "e2e/models/run_command*"],
    "kernels/quantized": ["quantized/*", "ops/*", "random_calls/*", "op_db/*", "e2e/models/quantized*"],
    "kernels/sparse": ["sparse/*", "ops/*", "kernels/*", "op_db/*", "python/*", "e2e/models/sparse*"],
    "kernels": ["ops/*", "kernels/*", "random_calls/*", "op_db/*", "jit/*", "script/*", "autograd/*", "nn/*", "device/*", "programs/*",
                "onnx/*", "server/training/*", "python/*", "e2e/models/models*"],
    "server/scheduler": ["server/scheduler/*", "server/*", "e2e/batching*", "e2e/seq*", "e2e/generation*", "e2e/[!t]*"],
    "server/executor": ["server/executor/*", "server/*", "e2e/batching*", "e2e/sequence_t*", "e2e/infer*", "e2e/ensemble*",
                        "e2e/warmup*", "e2e/observability*", "e2e/repository*", "e2e/[!t]*"],
    "server/repository": ["server/repository/*", "server/*", "e2e/repository*", "e2e/serve_test*", "e2e/warmup*", "e2e/mistakes*",
                          "e2e/observability*", "e2e/status_page*", "e2e/[!t]*"],
    "server/training/hosts": ["server/training/training_hosts*", "server/*", "e2e/training/host_protocol*", "e2e/training/train_hosts*"],
    "server/training/ranks": ["server/training/*", "server/*", "e2e/training/train_ranks*", "e2e/training/host_protocol*", "e2e/training/train_hosts*",
                              "e2e/training/train*"],
    "server/training": ["server/training/*", "server/*", "e2e/training/train*", "e2e/training/curves*", "e2e/training/digits*"],
    "server/transport/hosts": ["server/training/training_hosts*", "server/*", "e2e/training/host_protocol*", "e2e/training/train_hosts*"],
    "server/transport": ["server/transport/*", "server/*", "e2e/serve_test*", "e2e/infer*", "e2e/network*", "e2e/service*", "e2e/cpp_client*",
                         "e2e/access*", "e2e/repository*", "e2e/observability*", "e2e/shared*", "e2e/rest*", "e2e/training/train_test*",
                         "e2e/training/train_errors*", "e2e/training/curves*", "e2e/sequence_t*", "e2e/generation*", "e2e/[!t]*"],
    "server/commands": ["e2e/*command*", "e2e/client_*", "e2e/serve_test*"],
    "server": ["server/*", "e2e/*"],
    "clients/cpp": ["e2e/cpp_client*", "e2e/client_*"],
}
PLAIN_WORDS = {"test", "cpu", "inl", "model", "path", "server"}


def words_of(name: str) -> set[str]:
    return set(name.split("_")) - PLAIN_WORDS


def likeness(path: str, place: str) -> float:
    """The overlap of the names of a source (with its folders) and a test, 0 to 1."""
    source = pathlib.PurePath(path)
    ours, theirs = words_of(source.stem) | words_of(source.parent.name), words_of(pathlib.PurePath(place).stem)
    return len(ours & theirs) / max(1, len(ours | theirs))


def patterns_for(path: str) -> list[str]:
    """Sources in folders without a row are tried with every test that links them."""
    fitting = [folder for folder in ROWS if path.startswith(folder + "/")]
    return ROWS[max(fitting, key=len)] if fitting else ["*"]


def nearest_first(path: str, places: dict[str, str], noticed: dict[str, int], seconds: dict[str, float]) -> list[str]:
    """The tests to try, by place: those that detected mutants of this source before, then by name and row."""
    patterns, keys = patterns_for(path), {}
    seen = {places.get(name.split("[")[0]) for name in places if "[" in name}  # whole tests come after their parts
    for name, place in sorted(places.items(), key=lambda item: (len(item[0]), item[0])):
        rank = next((i for i, pattern in enumerate(patterns) if fnmatch.fnmatch(place, pattern)), None)
        if rank is not None:
            by_name = 0 if place.startswith("e2e/") else round(likeness(path, place), 1)
            last = 2 * place.startswith("e2e/") + (place in seen)  # the same program on another instruction set, say
            seen.add(place)
            keys[name] = (last, -noticed.get(name, 0), -by_name, rank, seconds.get(name, 5), name)
    return sorted(keys, key=keys.get)
