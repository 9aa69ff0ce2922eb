"""A hook of mkdocs: links from a page to files of the repository that are not pages lead to the repository if the site
knows its address (TENSORD_REPOSITORY_URL); otherwise their text stays without the link."""

import posixpath
import re

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((\.\./[^)\s]+)\)")


def on_page_markdown(markdown, page, config, **_):
    def replaced(match):
        text, target = match.groups()
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), target))
        if path.startswith("docs/"):
            return match[0]
        return f"[{text}]({config.repo_url}/blob/main/{path})" if config.repo_url else text

    return LINK.sub(replaced, markdown)
