"""Judges a run: verdict.py RESULTS.jsonl; exit status 1 if a test failed that is not in not_passing.py, or was skipped
for a reason that docs/triton.md does not give."""

import collections
import json
import sys

import not_passing


def main():
    with open(sys.argv[1]) as lines:
        results = [json.loads(line) for line in lines]
    failed = [one for one in results if one["outcome"] == "fail"]
    unexpected = [one for one in failed if not_passing.reason_of(one["suite"], one["name"]) is None]
    for one in unexpected:
        print(f"not expected: {one['suite']} {one['name']}")
    passed = [one for one in results if one["outcome"] == "pass" and not_passing.reason_of(one["suite"], one["name"])]
    for one in passed:
        print(f"passes now, but is named in not_passing.py: {one['suite']} {one['name']}")
    unknown = [(suite, why) for suite, why in not_passing.skipped(results) if f"| {why} |" not in not_passing.in_page("not run")]
    for suite, why in unknown:
        print(f"skipped, but not in docs/triton.md: {suite}: {why}")
    count = collections.Counter(one["outcome"] for one in results)
    print(f"{count['pass']} passed, {count['fail']} failed ({len(failed) - len(unexpected)} of them expected), {count['skip']} skipped")
    sys.exit(1 if unexpected or unknown else 0)


if __name__ == "__main__":
    main()
