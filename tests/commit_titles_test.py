"""Titles of commits: `area: do one thing`, at most 72 characters, with a verb in the imperative first."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The first commits that these rules are for: the form of a title, and its verb.
FIRST, FIRST_WITH_VERB = "5a62ad5d8d62", "51055071086a"
# Titles from before there was this test, and one that was merged before the test ran.
OLD = set("3a734548 92d789a4 d1b899c3 f22c8410 75cbe5ee 024f6117 58f0d4a3 e8bddd1e 4bb493a7 837c8473 dc5d3a00".split())
AREA = re.compile(r"[a-z][a-z0-9_.+-]*(?:/[a-z0-9_.+-]+)*(?:, [a-z][a-z0-9_./+-]*)*: (?P<rest>\S.*\S)")
# What no imperative begins with.
NO_VERBS = set("a an the this that these what which who where when how no not one two some all each in on of for with without from and or it its is are".split())


def fault(title: str, has_verb: bool) -> str:
    """Why a title is not taken; empty: it is."""
    if len(title) > 72:
        return f"{len(title)} characters, of 72"
    match = AREA.fullmatch(title)
    if not match:
        return "not `area: imperative`"
    verb = match["rest"].split()[0].rstrip(",")
    is_imperative = verb not in NO_VERBS and not re.search(r"[^ei]ed$|(?<!\bbr)ing$|[^s]s$", verb)
    return "" if not has_verb or is_imperative else f"'{verb}' is no verb in the imperative"


def git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def commits(since: str) -> list[tuple[str, str]]:
    """(hash, title) of the commits since that one, it not among them; of all where a shallow clone does not have it."""
    revisions = f"{since}..HEAD" if since and git("rev-parse", "--verify", "--quiet", since + "^{commit}") else "HEAD"
    return [(line[:8], line[41:]) for line in git("log", "--no-merges", "--format=%H %s", revisions).splitlines()]


class CommitTitles(unittest.TestCase):
    def test_history(self):
        if not git("rev-parse", "HEAD"):
            self.skipTest("no git history")
        with_verb = {commit for commit, _ in commits(FIRST_WITH_VERB)}
        for commit, title in commits(FIRST):
            if commit not in OLD:
                with self.subTest(commit=commit, title=title):
                    self.assertEqual(fault(title, commit in with_verb), "")

    def test_rules(self):
        for title in ("conv: check pixel bounds of quantized inputs", "clients/python: drop a copy", "kernels, ops: move views", "onnx: take Resize as written", "packages: bring Gloo"):
            self.assertEqual(fault(title, True), "", title)
        for title in ("format", "Conv: check bounds", "conv check bounds", "conv:check bounds", "conv: what is no number is none", "conv: checks bounds", "conv: checking bounds",
                      "conv: the bounds are checked", "conv: add " + "x" * 70):
            self.assertNotEqual(fault(title, True), "", title)


if __name__ == "__main__":
    unittest.main()
