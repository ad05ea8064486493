"""What a browser would see of a page."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest


class Page(HTMLParser):
    """Collects what a browser would run, fetch, and show."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.tags, self.shown, self.urls, self.ids = [], [], [], [], []
        self._open = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        values = dict(attrs)
        self.urls += [values[name] for name in ('src', 'href') if name in values]
        self.ids += [values['id']] if 'id' in values else []
        if tag in ('script', 'style'):
            self._open.append(tag)
            self.scripts.append([tag, ''])

    def handle_endtag(self, tag):
        if self._open and tag == self._open[-1]:
            self._open.pop()

    def handle_data(self, data):
        if self._open:
            self.scripts[-1][1] += data
        else:
            self.shown.append(data)

    @property
    def text(self):
        return ' '.join(' '.join(self.shown).split())

    @property
    def figures(self):
        texts = [text for tag, text in self.scripts if tag == 'script']
        return json.loads(texts[0], parse_constant=pytest.fail)


def all_texts(value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from all_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from all_texts(item)
    elif isinstance(value, str):
        yield value
