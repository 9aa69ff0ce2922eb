"""Titles of commits: `area: do one thing`, at most 72 characters, with a verb in the imperative first."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The first commit that these rules are for. Verbs are looked at in commits that came after this file.
FIRST = "5a62ad5d8d62"
# Titles from before there was this test.
OLD = {"3a734548", "92d789a4", "d1b899c3", "f22c8410"}
AREA = re.compile(r"[a-z][a-z0-9_.+-]*(?:/[a-z0-9_.+-]+)*(?:, [a-z][a-z0-9_./+-]*)*: (?P<rest>\S.*\S)")
# A verb that is missing here is added here.
VERBS = set("""
    accept add adjust align allocate allow answer apply ask assign attach avoid balance bind bisect block bound break bring broadcast build bump cache
    call cancel cap catch change charge check choose clamp clean clear close collect combine compare compile complete compress compute configure connect
    convert copy correct count cover create cut declare decode decouple deduplicate default defer define delay delete deny deprecate derive describe
    detect disable dissolve document download draw drop emit enable encode end enforce escape evaluate exclude exit expand explain export expose
    extend extract fail fall fetch fill filter find finish fix flush fold follow forbid force format forward free fuse gather generate give grow
    guard halve handle hash hide hint hold honor ignore implement import improve include increase infer initialize inline insert inspect install join keep
    label launch lay leave lend let limit link list listen load lock log look lower make map mark match measure mend merge migrate mirror move name
    note number omit open optimize order pack pad parse pass pause permit pick pin place plan prefer prefetch prepare preserve prevent print probe
    prove provide publish pull push put queue quote raise read rebuild recognize record redo reduce refuse register reject release reload
    remove rename render reorder repair replace report request require reserve reset resolve respect restore restrict resume retry return reuse revert
    rewrite roll round run save say schedule search send separate serve set share ship shorten show shrink shut simplify skip sort specialize split
    start state stop store stream strip support suppress switch sync synchronize take tell test throttle throw tidy time trace track train translate
    trim truncate try tune turn undo unify unload unpack unroll update upgrade use validate vectorize verify wait wake warm warn wire wrap write
    zero
""".split())


def fault(title: str, has_verb: bool) -> str:
    """Why a title is not taken; empty: it is."""
    if len(title) > 72:
        return f"{len(title)} characters, of 72"
    match = AREA.fullmatch(title)
    if not match:
        return "not `area: imperative`"
    verb = match["rest"].split()[0].rstrip(",")
    return "" if not has_verb or verb in VERBS else f"'{verb}' is no verb of VERBS in tests/commit_titles_test.py"


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
        added = git("log", "--diff-filter=A", "--format=%H", "--", "tests/commit_titles_test.py").split()
        with_verb = {commit for commit, _ in commits(added[0])} if added else set()
        for commit, title in commits(FIRST):
            if commit not in OLD:
                with self.subTest(commit=commit, title=title):
                    self.assertEqual(fault(title, commit in with_verb), "")

    def test_rules(self):
        for title in ("conv: check pixel bounds of quantized inputs", "clients/python: drop a copy", "kernels, ops: move views", "onnx: take Resize as written"):
            self.assertEqual(fault(title, True), "", title)
        for title in ("format", "Conv: check bounds", "conv check bounds", "conv:check bounds", "conv: what is no number is none", "conv: checks bounds",
                      "conv: the bounds are checked", "conv: add " + "x" * 70):
            self.assertNotEqual(fault(title, True), "", title)


if __name__ == "__main__":
    unittest.main()
