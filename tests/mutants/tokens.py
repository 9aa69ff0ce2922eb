"""Tokenizes C++ as far as rules need it: comments, string literals and preprocessor lines are not code."""

import re
from dataclasses import dataclass

TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<comment>//(?:[^\n\\]|\\.)*|/\*.*?\*/)
  | (?P<directive>\#(?:[^\n\\]|\\.)*)
  | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
  | (?P<text>(?:u8|[uUL])?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'))
  | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<sign><=>|\.\.\.|->\*|<<=|>>=|->|\+\+|--|::|<<|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.VERBOSE | re.DOTALL)
CODE = ("text", "raw", "number", "word", "sign")
# Ends of the operand of `&&` or `||`, and of the condition of `?`.
OPERAND_ENDS = (";", ",", "?", ":", "&&", "||", "=", "<<", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=")
CONDITION_ENDS = tuple(sign for sign in OPERAND_ENDS if sign not in ("&&", "||"))
OPENING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int
    is_spaced: bool  # white space on both sides: in formatted code `<` is then a comparison, and `&&` is not a reference


class Code:
    """The tokens of one source, and for each bracket the index of its partner."""

    def __init__(self, source: str):
        self.source = source
        self.tokens = []
        for match in TOKEN.finditer(source):
            if match.lastgroup == "mark" or match.lastgroup in CODE:
                spaced = source[match.start() - 1:match.start()].isspace() and source[match.end():match.end() + 1].isspace()
                kind = "raw" if match["raw"] else match.lastgroup
                self.tokens.append(Token(kind, match[0], match.start(), match.end(), spaced))
        self.partner = {}
        open_ones = []
        for i, token in enumerate(self.tokens):
            if token.kind != "sign":
                continue
            if token.text in OPENING:
                open_ones.append(i)
            elif open_ones and token.text == OPENING[self.tokens[open_ones[-1]].text]:
                self.partner[i] = open_ones.pop()
                self.partner[self.partner[i]] = i

    def text(self, first: int, last: int) -> str:
        """The source from token `first` to token `last`, inclusive."""
        return self.source[self.tokens[first].start:self.tokens[last].end] if first <= last else ""

    def is_sign(self, i: int, *signs: str) -> bool:
        return 0 <= i < len(self.tokens) and self.tokens[i].kind == "sign" and self.tokens[i].text in signs

    def is_word(self, i: int, *words: str) -> bool:
        return 0 <= i < len(self.tokens) and self.tokens[i].kind == "word" and self.tokens[i].text in words

    def begins_statement(self, i: int) -> bool:
        """Whether a statement may begin at token `i`; `)` ends the head of an `if`, `for` or `while`."""
        before = i - 1
        if self.is_sign(before, ")"):
            head = self.partner.get(before, 0) - 1
            return self.is_word(head, "if", "for", "while", "switch") or self.is_word(head, "constexpr")
        return before < 0 or self.is_sign(before, ";", "{", "}", ":") or self.is_word(before, "else", "do")

    def operand(self, operator: int, step: int, ends=OPERAND_ENDS) -> tuple[int, int]:
        """First and last token of the operand on the left (step -1) or right (step 1) of an operator."""
        opening, i = ("([{" if step > 0 else ")]}"), operator + step
        while 0 <= i < len(self.tokens):
            token = self.tokens[i]
            ends_block = step < 0 and token.text == "}" and self.tokens[i + 1].kind != "sign"
            if token.kind == "sign" and token.text in opening and i in self.partner and not ends_block:
                i = self.partner[i] + step
                continue
            if token.kind == "sign" and (token.text in "()[]{};," or (token.text in ends and token.is_spaced)):
                break
            if self.is_word(i, "return", "case", "throw", "else", "do"):
                break
            i += step
        return (operator + 1, i - 1) if step > 0 else (i + 1, operator - 1)

    def arguments(self, opening: int) -> list[tuple[int, int]]:
        """First and last token of each comma-separated part of a group."""
        pieces, first, i = [], opening + 1, opening + 1
        while i < self.partner.get(opening, 0):
            if self.is_sign(i, ","):
                pieces.append((first, i - 1))
                first = i + 1
            i = self.partner[i] + 1 if i in self.partner else i + 1
        return [*pieces, (first, i - 1)] if first < i else pieces
