"""Checks the pages of docs/: links lead somewhere (in all other pages too), blocks have a language, the site's menu has
every page, every page with commands has a test, blocks that `run_page` skips are run by the named file, and diagrams
match their sources."""

import hashlib
import itertools
import re
import shlex
import unittest

import yaml

from tests.docs import not_run
from tests.docs.pages import ROOT, anchors, blocks, documents, links, pages, prose, runs_here

RUN = {"bash", "python"}
SHOWN = {"toml", "text", "output", "json", "yaml", "cpp", "cmake", "protobuf", "promql"}
SLOW_PAGES = {"benchmarks_full.md"}  # minutes for each command
COLUMNS = 80  # of a block, so that it needs no scrolling
# What the program prints, and lines of files with 120 columns (test_code_is_that_of_the_examples).
WIDE_PAGES, WIDE_LANGUAGES = {"commands.md"}, {"cpp"}
DOCS = ROOT / "docs"


def menu(entries):
    for entry in entries:
        for value in entry.values():
            yield from menu(value) if isinstance(value, list) else [value]


def commands(block_source):
    joined = block_source.replace("\\\n", " ")
    split = (shlex.split(line, comments=True) for line in joined.splitlines())
    return [" ".join(words) for words in split if words]


def names_missing_after(word, following, source):
    """Of `word` with the words after it."""
    yield from (flag for flag in following if flag.startswith("--") and flag not in source)
    if word == "scripts/setup":
        yield from (group for group in following if f"\n{group}=(" not in source)
    if word == "scripts/build" and following:
        preset, *targets = following
        yield from [preset] if f'"name": "{preset}"' not in (ROOT / "CMakePresets.json").read_text() else []
        lists = "".join(path.read_text() for path in [*ROOT.glob("*/CMakeLists.txt"), *ROOT.glob("cmake/*.cmake")])
        yield from (target for target in targets if not re.search(rf"\b{target}\b", lists))


def missing_names(command):
    """The names in a command that the repository does not have: scripts, modules, presets and targets of builds, groups of packages, flags."""
    words = shlex.split(command.replace("[", "").replace("]", ""), comments=True)
    for i, word in enumerate(words):
        following = list(itertools.takewhile(lambda after: after != "&&", words[i + 1:]))
        if word == "-m":
            word = following.pop(0)
            path = ROOT / (word.replace(".", "/") + ".py")
        elif word.startswith("scripts/") or word.endswith(".py"):
            path = ROOT / word
        else:
            continue
        yield from names_missing_after(word, following, path.read_text()) if path.is_file() else [word]


class PagesTest(unittest.TestCase):
    def test_links_lead_to_files_and_headings(self):
        for page in documents():
            for link in links(page):
                if re.match(r"https?://", link):
                    continue
                name, _, anchor = link.partition("#")
                target = (page.parent / name).resolve() if name else page
                with self.subTest(page=str(page), link=link):
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target))

    def test_blocks_are_run_or_only_shown(self):
        for page in pages():
            for block in blocks(page):
                with self.subTest(page=page.name, line=block.line):
                    self.assertIn(block.language, RUN | SHOWN)
                    self.assertTrue(not block.by_hand or page.name in SLOW_PAGES, "too slow for CI, on this page?")

    def test_commands_stand_in_fenced_blocks(self):
        for page in pages():
            with self.subTest(page=page.name):
                self.assertEqual(re.findall(r"(?:^|\n)\n    \S.*", prose(page)), [])

    def test_blocks_are_not_wide(self):
        for page in [ROOT / "README.md", *pages()]:
            for block in blocks(page):
                if page.name in WIDE_PAGES or block.language in WIDE_LANGUAGES:
                    continue
                wide = [line for line in block.code.splitlines() if len(line) > COLUMNS]
                with self.subTest(page=page.name, line=block.line):
                    self.assertEqual(wide, [])

    def test_what_others_run_is_what_they_run(self):
        for page in pages():
            for block in blocks(page):
                if not block.run_by:
                    continue
                source = (ROOT / block.run_by).read_text()
                if "from tests.docs.pages import" in source:  # it reads the commands from the page
                    continue
                script = " ".join(commands(source))
                for command in commands(block.code):
                    with self.subTest(page=page.name, command=command):
                        self.assertTrue(command.split()[0] == block.run_by or command in script)

    def test_commands_that_nothing_runs_name_what_is_there(self):
        for page, line, command in not_run.every_command():
            with self.subTest(f"{page}:{line}"):
                self.assertEqual(list(missing_names(command)), [])
        planted = "scripts/setup tests && scripts/build devel no_target && python3 -m tests.mutants.walk && scripts/chaos --hours 1"
        self.assertEqual(list(missing_names(planted)), ["tests", "devel", "no_target", "tests.mutants.walk", "--hours"])

    def test_diagrams_are_drawn_from_their_sources(self):
        for source in sorted((DOCS / "diagrams").glob("*.dot")):
            digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
            with self.subTest(source=source.name):
                self.assertIn(f"from {source.name} {digest} ", source.with_suffix(".svg").read_text(), "run scripts/diagrams")

    def test_code_is_that_of_the_examples(self):
        # The files that tests build and run.
        files = sorted((ROOT / "examples/cpp").iterdir())
        lines = {line.strip() for file in files for line in file.read_text().splitlines()}
        for page in pages():
            for block in blocks(page):
                if block.language in ("cpp", "cmake"):
                    with self.subTest(page=page.name, line=block.line):
                        self.assertEqual([line for line in block.code.splitlines() if line.strip() not in lines], [])

    def test_every_page_with_commands_is_run(self):
        with_commands = {page.stem for page in DOCS.glob("*.md") if any(map(runs_here, blocks(page)))}
        listed = re.search(r"set\(pages_with_commands ([^)]*)\)", (ROOT / "tests/CMakeLists.txt").read_text())[1]
        self.assertEqual(sorted(with_commands), sorted(listed.split()))
        for page in set(pages()) - set(DOCS.glob("*.md")):
            self.assertFalse(any(map(runs_here, blocks(page))), page)

    def test_the_menu_has_every_page(self):
        listed = list(menu(yaml.load((ROOT / "mkdocs.yml").read_text(), Loader=yaml.BaseLoader)["nav"]))
        self.assertEqual(sorted(listed), sorted(set(listed)))
        runbooks = {f"runbooks/{link}" for link in links(DOCS / "runbooks/README.md") if "/" not in link}
        self.assertEqual(set(listed) | runbooks, {str(page.relative_to(DOCS)) for page in pages()})


if __name__ == "__main__":
    unittest.main()
