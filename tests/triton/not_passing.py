"""Which of Triton's tests tensord does not pass, and why. `python3 -m tests.triton.not_passing --write` puts the list into docs/triton.md;
`--check` says whether it is there as it is here."""

import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "triton.md"
BEGIN, END = "<!-- not passing: begin -->\n", "<!-- not passing: end -->\n"

# (suite, pattern of the test's name, what it wants, why it does not get it)
NOT_PASSING = (
    ("L0_libtorch_io_types", r"libtorch_invalid_input_type", "TYPE_UINT32 refused for an input of a TorchScript model",
     "unsigned inputs reach the script in the next larger signed type"),
    ("L0_model_config", r"noautofill_platform/missing_datatype", "an input without `data_type` refused", "the script tells it"),
    ("L0_model_config", r"autofill_noplatform/pytorch/too_few_(inputs|outputs)", "a configuration without inputs or outputs refused",
     "what it leaves out is completed from the script"),
    ("L0_input_validation", r"test_input_string_shape_validation", "the second of two wrong inputs named", "the first one is named"),
    ("L0_server_status", r"ServerMetadataTest\.test_basic", "`cuda_shared_memory` among the extensions", "it is, where a GPU is"),
    ("L0_lifecycle", r"test_parse_error_modelfail", "no version served where one of several is broken",
     "what can be served is; readiness, index and log say what is not"),
    ("L0_lifecycle", r"test_multiple_model_repository_polling", "a model unloaded when it appears in a second repository",
     "what serves goes on serving, so that a model can move from one repository to another without a gap"),
    ("L0_lifecycle", r"test_concurrent_model_load_unload$", "an unload that waits for a load under way",
     "it gives the load up, which may be one that never ends"),
    ("L0_http", r"HttpTest\.test_load_oversized_file_parameter", "500 for a file name of 256 characters",
     "400, as the test's own TODO has it"),
    ("L0_http", r"HttpTest\.test_content_encoding_chunked_manually", "a body with both a length and chunks taken",
     "two readers could understand it differently, which smuggles requests"),
    ("L0_http", r"curl: too (few|many) elements, and the other input missing", "the elements counted though an input is missing",
     "what is missing is said first"),
    ("L0_grpc", r"test_register_system_shared_memory", "INTERNAL for a shared memory object that is not there", "NOT_FOUND is what it is"),
    ("L0_socket", r"--http-port -47, but off", "a port that is none taken where its protocol is off", "a flag that is wrong is said"),
    ("client examples", r"simple_grpc_model_control\.py$", "INTERNAL for a file name of 256 characters",
     "INVALID_ARGUMENT, as the script's own TODO has it"),
    ("L0_metrics", r"test_inf_counters_exist \[without --metrics-compat\]", "Triton's names of metrics by default",
     "with `--metrics-compat triton`"),
    ("L0_batcher", r"^TestMaxQueueDelayTimeout\.", "UNAVAILABLE for a request that waited too long", "DEADLINE_EXCEEDED is what happened"),
)


def reason_of(suite, name):
    """Why this one is expected to fail; None: it is not."""
    for of, pattern, _, why in NOT_PASSING:
        if of == suite and re.search(pattern, name):
            return why
    return None


def table():
    rows = ["| suite | test | it wants | why not |", "|---|---|---|---|"]
    for suite, pattern, wanted, why in NOT_PASSING:
        name = re.sub(r"\\(.)", r"\1", pattern).replace("|", "\\|").strip("^$")
        rows.append(f"| {suite} | `{name}` | {wanted} | {why} |")
    return "\n".join(rows) + "\n"


def main():
    text = PAGE.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(text[:begin] + table() + text[end:])
    elif text[begin:end] != table():
        sys.exit(f"{PAGE}: not up to date: python3 -m tests.triton.not_passing --write")


if __name__ == "__main__":
    main()
