"""A copy of the working tree with its own build folders, in which all mutants are made."""

import os
import pathlib
import shutil
import subprocess


def files_of(root: pathlib.Path) -> list[str]:
    """The user's files, committed or not, without those that git ignores."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True)
    if listed.returncode == 0:
        return [name for name in os.fsdecode(listed.stdout).split("\0") if name]
    return [str(f.relative_to(root)) for f in root.rglob("*") if f.is_file() and "build" not in f.relative_to(root).parts]


def copy_file(source: pathlib.Path, target: pathlib.Path) -> None:
    """Writes only differing files, so that timestamps cause no rebuilds."""
    if source.is_symlink():
        if not target.is_symlink() or os.readlink(target) != os.readlink(source):
            target.unlink(missing_ok=True)
            target.symlink_to(os.readlink(source))
        return
    if not target.is_file() or target.is_symlink() or source.read_bytes() != target.read_bytes():
        target.unlink(missing_ok=True)
        shutil.copy(source, target)


class Tree:
    def __init__(self, root: pathlib.Path, folder: pathlib.Path):
        self.root = root  # the user's
        self.copy = folder / "tree"
        self.sources: dict[str, str] = {}  # original contents of the files that were changed in the copy

    def sync(self) -> None:
        """Updates the copy to the user's current tree."""
        names = [name for name in files_of(self.root) if os.path.lexists(self.root / name)]
        names = [name for name in sorted(names) if (self.root / name).is_symlink() or (self.root / name).is_file()]
        for name in names:
            (self.copy / name).parent.mkdir(parents=True, exist_ok=True)
            copy_file(self.root / name, self.copy / name)
        self.remove_others(set(names))
        self.link_tools()

    def remove_others(self, kept: set[str]) -> None:
        for folder, folders, files in os.walk(self.copy):
            here = pathlib.Path(folder)
            if here == self.copy:
                folders[:] = [f for f in folders if f != "build"]
            for name in files:
                if str((here / name).relative_to(self.copy)) not in kept and not name.endswith(".pyc"):
                    (here / name).unlink()

    def link_tools(self) -> None:
        """Links what setup scripts have put beside the user's build folders, such as Python packages."""
        build = self.root / "build"
        (self.copy / "build").mkdir(exist_ok=True)
        for tool in build.iterdir() if build.is_dir() else []:
            target = self.copy / "build" / tool.name
            is_built = (tool / "CMakeCache.txt").exists() or tool.resolve() == self.copy.parent.resolve()
            if tool.is_dir() and not is_built and not target.exists():
                target.symlink_to(tool.resolve())

    def source(self, path: str) -> str:
        """A file as it was when the copy was made: the user may edit it meanwhile."""
        return self.sources.get(path) or (self.copy / path).read_text()

    def write(self, path: str, source: str) -> None:
        self.sources.setdefault(path, (self.copy / path).read_text())
        (self.copy / path).write_text(source)

    def restore(self, path: str) -> None:
        (self.copy / path).write_text(self.source(path))
