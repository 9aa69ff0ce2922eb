"""A hook of mkdocs: turns links from a page to other files of the repository into links to the repository, if its
address is known (TENSORD_REPOSITORY_URL); else only their label stays."""

import posixpath
import re

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown, page, config, **_):
    def replaced(match):
        label, target = match.groups()
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), target))
        if path.startswith("docs/"):
            return match[0]
        return f"[{label}]({config.repo_url}/blob/main/{path})" if config.repo_url else label

    return LINK.sub(replaced, markdown)
