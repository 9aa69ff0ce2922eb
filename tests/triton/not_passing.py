"""Which of Triton's tests tensord does not pass, and why. `python3 -m tests.triton.not_passing --write` puts the list into docs/triton.md;
`--check` says whether it is there as it is here. `--write-skipped RESULTS.jsonl …`, of a run of all suites, writes the list of what
is not run, which the tests themselves say."""

import json
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "triton.md"

LEFT_OUT_WHOLE = "left out whole"

# (suite, pattern of the test's name, what it expects, why it fails)
NOT_PASSING = (
    ("L0_libtorch_io_types", r"libtorch_invalid_input_type", "TYPE_UINT32 refused for an input of a TorchScript model",
     "unsigned inputs reach the script in the next larger signed type"),
    ("L0_model_config", r"autofill_noplatform/pytorch/too_few_(inputs|outputs)", "a configuration without inputs or outputs refused",
     "what it leaves out is completed from the script"),
    ("L0_input_validation", r"test_input_string_shape_validation", "the second of two wrong inputs named", "the first one is named"),
    ("L0_server_status", r"ServerMetadataTest\.test_basic", "`cuda_shared_memory` among the extensions", "it is, where a GPU is"),
    ("L0_lifecycle", r"test_parse_error_modelfail", "no version served where one of several is broken",
     "what can be served is; readiness, index and log say what is not"),
    ("L0_lifecycle", r"test_parse_error_no_model_config$", "a model whose configuration is refused left out: unknown, and the server ready",
     "readiness and requests say why it is not served"),
    ("L0_lifecycle", r"test_multiple_model_repository_polling", "a model unloaded when it appears in a second repository",
     "what serves goes on serving, so that a model can move from one repository to another without a gap"),
    ("L0_lifecycle", r"test_concurrent_model_load_unload$", "an unload that waits for a load under way",
     "it gives the load up, which may be one that never ends"),
    ("L0_http", r"HttpTest\.test_load_oversized_file_parameter", "500 for a file name of 256 characters",
     "400, as the test's own TODO has it"),
    ("L0_http", r"HttpTest\.test_content_encoding_chunked_manually", "a body with both a length and chunks taken",
     "two readers could understand it differently, which smuggles requests"),
    ("L0_grpc", r"test_register_system_shared_memory", "INTERNAL for a shared memory object that is not there", "NOT_FOUND is what it is"),
    ("L0_socket", r"--http-port -47, but off", "a port that is none taken where its protocol is off", "a flag that is wrong is said"),
    ("client examples", r"simple_grpc_model_control\.py$", "INTERNAL for a file name of 256 characters",
     "INVALID_ARGUMENT, as the script's own TODO has it"),
    ("L0_model_queue", r"test_policy_reject$", "a request of an ensemble that fails in a step counted as two failures of the ensemble",
     "it is one"),
    ("L0_metrics", r"test_inf_counters_exist \[without --metrics-compat\]", "Triton's names of metrics by default",
     "with `--metrics-compat triton`"),
    ("L0_batcher", r"TestMaxQueueDelayTimeout\.test_default_queue_policy_timeout_prompt_response$",
     "UNAVAILABLE for a request that waited too long", "DEADLINE_EXCEEDED is what happened"),
)


def reason_of(suite, name):
    """The reason for an expected failure; None: not expected."""
    for of, pattern, _, why in NOT_PASSING:
        if of == suite and re.search(pattern, name):
            return why
    return None


def marks(part):
    return f"<!-- {part}: begin -->\n", f"<!-- {part}: end -->\n"


def in_page(part):
    """The list as docs/triton.md has it."""
    begin, end = marks(part)
    return PAGE.read_text().split(begin)[1].split(end)[0]


def write_to_page(part, rows):
    markdown, (begin, end) = PAGE.read_text(), marks(part)
    PAGE.write_text(markdown[:markdown.index(begin) + len(begin)] + rows + markdown[markdown.index(end):])


def row(*cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def table():
    rows = row("suite", "test", "it wants", "why not") + "|---|---|---|---|\n"
    for suite, pattern, wanted, why in NOT_PASSING:
        rows += row(suite, "`" + re.sub(r"\\(.)", r"\1", pattern).strip("^$") + "`", wanted, why)
    return rows


def skip_row(suite, why, names):
    if suite == LEFT_OUT_WHOLE:
        return row(names[0], "all", why)
    tests = ", ".join(f"`{name}`" for name in names) if len(names) < 3 else f"`{names[0]}` and {len(names) - 1} more"
    return row(suite, tests, why)


def skipped(results):
    """The skipped tests, by suite and reason."""
    found = {}
    for one in results:
        if one["outcome"] == "skip":
            found.setdefault((one["suite"], one["text"]), []).append(one["name"])
    return found


def skipped_table(results):
    rows = row("suite", "test", "why not") + "|---|---|---|\n"
    return rows + "".join(skip_row(suite, why, names) for (suite, why), names in skipped(results).items())


def main():
    if sys.argv[1:2] == ["--write-skipped"]:
        results = [json.loads(line) for path in sys.argv[2:] for line in open(path)]
        write_to_page("not run", skipped_table(results))
    elif sys.argv[1:] == ["--write"]:
        write_to_page("not passing", table())
    elif in_page("not passing") != table():
        sys.exit(f"{PAGE}: not up to date: python3 -m tests.triton.not_passing --write")


if __name__ == "__main__":
    main()
