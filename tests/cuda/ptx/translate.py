"""PTX of nvcc as C++ for the emulated devices: python3 -m tests.cuda.ptx.translate FILE.ptx OUT.cpp

A kernel becomes a function that gets its parameters as bytes, and a line in the table of instructions.h. Registers are words
without a type, as in PTX; what an instruction means is in instructions.h. What is not known is an error."""

import pathlib
import re
import sys

SIZES = {kind + bits: int(bits) // 8 for kind in "bus" for bits in ("8", "16", "32", "64")} | {"f32": 4, "f64": 8, "pred": 1}
SPECIAL = {"%tid": "current->index", "%ntid": "block_.block", "%ctaid": "block_.index", "%nctaid": "block_.grid"}
SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
ROUNDED = {"rni": "std::nearbyint", "rzi": "std::trunc", "rmi": "std::floor", "rpi": "std::ceil"}
DIRECTIONS = {"rm": "FE_DOWNWARD", "rp": "FE_UPWARD", "rz": "FE_TOWARDZERO"}
FUNCTIONS = {"sqrt": "std::sqrt", "ex2": "std::exp2", "lg2": "std::log2", "sin": "std::sin", "cos": "std::cos", "tanh": "std::tanh"}
WIDE = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}
SPACES = ("global", "shared", "local", "param", "const")


def ident(name):
    return "v_" + re.sub(r"\W", "_", name)


def split(text):
    """At the commas outside of brackets."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "{[(") - (c in "}])")
        if c == "," and depth == 0:
            parts.append(text[last:i].strip())
            last = i + 1
    return parts + ([text[last:].strip()] if text[last:].strip() else [])


def is_float(kind):
    return kind in ("f32", "f64")


class Function:
    def __init__(self, is_entry, result, name, parameters, symbols):
        self.is_entry, self.name, self.symbols = is_entry, name, dict(symbols)
        self.registers, self.lines, self.shared = {}, [], 0
        self.result = [p[2] for p in declared(result or "")]
        self.parameters = [p[2] for p in declared(parameters)]
        offset = 0
        for size, align, parameter in declared(parameters):
            offset = -(-offset // align) * align
            self.symbols[parameter] = f"(u64(parameters) + {offset})" if is_entry else f"u64({ident(parameter)})"
            offset += size
        for parameter in self.result:
            self.symbols[parameter] = f"u64({ident(parameter)})"

    # --- operands

    def value(self, operand):
        base, _, part = operand.partition(".")
        if base in SPECIAL:
            return f"{SPECIAL[base]}.{part}"
        if operand.startswith("%"):
            return ident(operand)
        if re.fullmatch(r"0[fFdD][0-9a-fA-F]+", operand):
            return f"u{4 * len(operand[2:])}(0x{operand[2:]}ull)"
        if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)U?", operand):
            number = int(operand.rstrip("U"), 0)
            return f"s64({number}ll)" if -(2**63) < number < 2**63 else f"u64({number % 2**64}ull)"
        return self.symbols[operand]

    def read(self, operand, kind):
        return f"in<{kind}>({self.value(operand)})"

    def write(self, operand, expression):
        return ";" if operand == "_" else f"{ident(operand)} = out<decltype({ident(operand)})>({expression});"

    def address(self, operand, space):
        base, _, offset = operand[1:-1].partition("+")
        at = f"({self.value(base)} + s64({offset or 0}))"
        in_shared = f"(shared + u32({at}))"
        known = base in self.symbols
        if space == "shared":
            return in_shared
        return at if known or space in ("local", "param", "const") else f"global({at})"

    # --- statements

    def statement(self, text):
        if text.startswith((".reg", ".shared", ".local", ".param")):
            return self.declare(text)
        if text.startswith("."):
            return None
        guard = re.match(r"@(!?)(%\w+) (.*)", text)
        code = self.instruction(guard[3] if guard else text)
        self.lines.append(f"if ({guard[1]}{ident(guard[2])}) {{ {code} }}" if guard else code)

    def declare(self, text):
        space, rest = text.split(" ", 1)
        if space == ".reg":
            kind, names = rest.split(" ", 1)
            word = "bool" if kind == ".pred" else f"u{max(2, SIZES[kind[1:]]) * 8}"
            for name in split(names):
                many = re.fullmatch(r"(%?\w+)<(\d+)>", name)
                self.registers.update({f"{many[1]}{i}": word for i in range(int(many[2]))} if many else {name: word})
            return
        size, align, name = declared(text)[0]
        if space == ".shared":
            self.shared = -(-self.shared // align) * align
            self.symbols[name] = f"u64({self.shared})"
            self.shared += size
        else:
            self.lines.append(f"alignas({max(align, 8)}) u8 {ident(name)}[{max(size, 8)}];")
            self.symbols[name] = f"u64({ident(name)})"

    def instruction(self, text):
        name, _, rest = text.partition(" ")
        parts = name.split(".")
        kind = parts[-1]
        operands = split(rest)
        method = getattr(self, "op_" + parts[0], None)
        code = method(parts, kind, operands) if method else self.plain(parts, kind, operands)
        if code is None:
            raise NotImplementedError(text)
        return code

    def plain(self, parts, kind, o):
        """Instructions whose result is an expression of their operands."""
        name = parts[0]
        x = [self.read(operand, kind) for operand in o[1:]] if kind in SIZES and kind != "pred" else []
        word = f"u{SIZES.get(kind, 0) * 8}"
        if kind == "pred":
            x = [self.read(operand, "bool") for operand in o[1:]]
        expression = None
        if name in ARITHMETIC and "cc" not in parts:
            expression = self.arithmetic(parts, kind, x, word)
        elif name in ("mad", "fma") and "cc" not in parts:
            expression = self.multiply_add(parts, kind, x, word)
        elif name in FUNCTIONS:
            expression = f"{kind}({FUNCTIONS[name]}({x[0]}))"
        elif name in ("min", "max"):
            expression = f"{name}_of<{kind}>({x[0]}, {x[1]})"
        elif name in ("div", "rem"):
            expression = f"{name}_of<{kind}>({x[0]}, {x[1]})"
        elif name in ("shl", "shr"):
            expression = f"{name}_of<{kind}>({x[0]}, {self.read(o[2], 'u32')})"
        elif name == "selp":
            expression = f"({self.read(o[3], 'bool')} ? {self.read(o[1], word)} : {self.read(o[2], word)})"
        elif name == "not":
            expression = f"!{x[0]}" if kind == "pred" else f"{word}(~{x[0]})"
        elif name == "neg":
            expression = f"{kind}(-{x[0]})" if is_float(kind) else f"{word}(0 - {self.read(o[1], word)})"
        elif name == "abs":
            expression = f"std::abs({x[0]})" if is_float(kind) else f"({x[0]} < 0 ? {word}(0 - {self.read(o[1], word)}) : {word}({x[0]}))"
        elif name == "rcp":
            expression = f"{kind}(1 / {x[0]})"
        elif name == "rsqrt":
            expression = f"{kind}(1 / std::sqrt({x[0]}))"
        elif name == "copysign":
            expression = f"std::copysign({x[1]}, {x[0]})"
        elif name == "clz":
            expression = f"u32(std::countl_zero({self.read(o[1], word)}))"
        elif name == "popc":
            expression = f"u32(std::popcount({self.read(o[1], word)}))"
        elif name == "bfi":
            expression = f"insert_bits<{word}>({x[0]}, {x[1]}, {self.read(o[3], 'u32')}, {self.read(o[4], 'u32')})"
        elif name == "mov" and not (o[0] + o[1]).count("{"):
            expression = x[0] if kind == "pred" else self.read(o[1], word)
        return expression and self.write(o[0], expression)

    def arithmetic(self, parts, kind, x, word):
        sign = ARITHMETIC[parts[0]]
        if kind == "pred":
            return f"bool({x[0]} {sign} {x[1]})"
        if is_float(kind):
            direction = next((DIRECTIONS[p] for p in parts if p in DIRECTIONS), None)
            whole = f"rounded({direction}, []({kind} a, {kind} b) {{ return a {sign} b; }}, {x[0]}, {x[1]})"
            return whole if direction else f"{kind}({x[0]} {sign} {x[1]})"
        if "wide" in parts:
            return f"{WIDE[kind]}({WIDE[kind]}({x[0]}) * {WIDE[kind]}({x[1]}))"
        if "hi" in parts:
            return f"high_product<{kind}>({x[0]}, {x[1]})"
        return f"{word}(u64({x[0]}) {sign} u64({x[1]}))"

    def multiply_add(self, parts, kind, x, word):
        if is_float(kind):
            direction = next((DIRECTIONS[p] for p in parts if p in DIRECTIONS), None)
            whole = f"rounded({direction}, []({kind} a, {kind} b, {kind} c) {{ return std::fma(a, b, c); }}, {x[0]}, {x[1]}, {x[2]})"
            return whole if direction else f"std::fma({x[0]}, {x[1]}, {x[2]})"
        if "wide" in parts:
            return None
        return f"{word}(u64({x[0]}) * u64({x[1]}) + u64({x[2]}))" if "lo" in parts else None

    # --- instructions of their own kind

    def op_ret(self, parts, kind, o):
        return "return;"

    op_exit = op_ret

    def op_bra(self, parts, kind, o):
        return f"goto {ident(o[0])};"

    def op_bar(self, parts, kind, o):
        if parts[1] == "warp":
            return f"warp_together({self.read(o[0], 'u32')}, kSyncWarp, nullptr);"
        # Two barriers of one number are one on a chip.
        return f"sync_threads({self.value(o[0])});" if len(o) == 1 else None

    op_barrier = op_bar

    def op_membar(self, parts, kind, o):
        return ";"

    op_fence = op_membar

    def op_trap(self, parts, kind, o):
        return 'fault("trap");'

    def op_mov(self, parts, kind, o):
        if not (o[0] + o[1]).count("{"):
            return self.plain(parts, kind, o)
        bits = SIZES[kind] * 8
        if o[0].startswith("{"):
            names = split(o[0][1:-1])
            step = bits // len(names)
            return f"{{ const u64 all = {self.read(o[1], f'u{bits}')}; " + " ".join(
                self.write(name, f"u{step}(all >> {i * step})") for i, name in enumerate(names)) + " }"
        names = split(o[1][1:-1])
        step = bits // len(names)
        return self.write(o[0], f"u{bits}(" + " | ".join(f"u64({self.read(name, f'u{step}')}) << {i * step}" for i, name in enumerate(names)) + ")")

    def op_mad(self, parts, kind, o):
        if "wide" in parts:
            wide = WIDE[kind]
            return self.write(o[0], f"u64({wide}({wide}({self.read(o[1], kind)}) * {wide}({self.read(o[2], kind)})) + u64({self.read(o[3], wide)}))")
        return self.with_carry(parts, kind, o) if "cc" in parts else self.plain(parts, kind, o)

    def with_carry(self, parts, kind, o):
        """add, sub, mad and those that take a carry in: addc, subc, madc."""
        name, takes = parts[0].rstrip("c"), parts[0].endswith("c")
        x = [self.read(operand, "u32") for operand in o[1:]]
        if kind != "u32" and kind != "s32":
            return None
        if name == "mad":
            product = f"(u64({x[0]}) * u64({x[1]}))"
            x = [f"u32({product} >> 32)" if "hi" in parts else f"u32({product})", x[2]]
        sign = "-" if name == "sub" else "+"
        keep = "carry = sum >> 32 & 1; " if "cc" in parts else ""
        return f"{{ const u64 sum = u64({x[0]}) {sign} u64({x[1]}){f' {sign} carry' if takes else ''}; {keep}{self.write(o[0], 'u32(sum)')} }}"

    op_addc = op_subc = op_madc = with_carry

    def op_add(self, parts, kind, o):
        return self.with_carry(parts, kind, o) if "cc" in parts else self.plain(parts, kind, o)

    op_sub = op_add

    def op_cvta(self, parts, kind, o):
        value = f"u64({self.value(o[1])})"
        if "shared" in parts:
            value = f"({value} - shared)" if "to" in parts else f"(shared + {value})"
        return self.write(o[0], value)

    def op_ld(self, parts, kind, o):
        space = next((p for p in parts if p in SPACES), "generic")
        count = 4 if "v4" in parts else 2 if "v2" in parts else 1
        names = split(o[0][1:-1]) if count > 1 else [o[0]]
        return f"{{ const u64 at = aligned({self.address(o[1], space)}, {count * SIZES[kind]}); " + " ".join(
            self.write(name, f"load<{kind}>(at + {i * SIZES[kind]})") for i, name in enumerate(names)) + " }"

    def op_st(self, parts, kind, o):
        space = next((p for p in parts if p in SPACES), "generic")
        count = 4 if "v4" in parts else 2 if "v2" in parts else 1
        names = split(o[1][1:-1]) if count > 1 else [o[1]]
        return f"{{ const u64 at = aligned({self.address(o[0], space)}, {count * SIZES[kind]}); " + " ".join(
            f"store<{kind}>(at + {i * SIZES[kind]}, {self.read(name, kind)});" for i, name in enumerate(names)) + " }"

    def op_setp(self, parts, kind, o):
        x, y, compare = self.read(o[1], kind), self.read(o[2], kind), parts[1]
        unordered = f"(std::isnan({x}) || std::isnan({y}))"
        if compare == "num":
            expression = "!" + unordered
        elif compare == "nan":
            expression = unordered
        elif compare in SIGNS:
            expression = f"({x} {SIGNS[compare]} {y})"
            if compare == "ne" and is_float(kind):
                expression = f"(!{unordered} && {x} != {y})"
        else:
            expression = f"({unordered} || {x} {SIGNS[compare[:-1]]} {y})"
        if len(o) > 3:
            expression = f"({expression} {dict(zip(('and', 'or', 'xor'), ('&&', '||', '!=')))[parts[2]]} {self.read(o[3], 'bool')})"
        first, _, second = o[0].partition("|")
        return self.write(first, f"bool({expression})") + (self.write(second, f"!({expression})") if second else "")

    def op_cvt(self, parts, kind, o):
        to, source = [p for p in parts if p in SIZES][-2:]
        value = self.read(o[1], source)
        step = next((ROUNDED[p] for p in parts if p in ROUNDED), "")
        if is_float(source) and not is_float(to):
            return self.write(o[0], f"to_integer<{to}>({step or 'std::trunc'}({value}))")
        if is_float(source) and "sat" in parts:
            return self.write(o[0], f"saturated<{to}>({value})")
        if is_float(source) and is_float(to):
            return self.write(o[0], f"{to}({step}({value}))")
        # An integer keeps its sign in a wider register.
        return self.write(o[0], f"{to}({value})")

    def op_shfl(self, parts, kind, o):
        first, _, second = o[0].partition("|")
        x = [self.read(operand, "u32") for operand in o[1:]]
        return f"{{ bool is_inside = false; {self.write(first, f'shuffled({chr(39)}{parts[2][0]}{chr(39)}, {x[0]}, {x[1]}, {x[2]}, {x[3]}, is_inside)')}" + (
            f" {ident(second)} = is_inside;" if second else "") + " }"

    def op_vote(self, parts, kind, o):
        vote = f"__ballot_sync({self.read(o[2], 'u32')}, {self.read(o[1], 'bool')})"
        return self.write(o[0], vote) if parts[2] == "ballot" else None

    def op_atom(self, parts, kind, o):
        space = next((p for p in parts if p in SPACES), "generic")
        what = next((p for p in parts if p in ("add", "cas", "exch")), None)
        if what is None:
            return None
        value = kind if what == "add" else f"u{SIZES[kind] * 8}"
        arguments = [f"reinterpret_cast<{value}*>({self.address(o[1], space)})"] + [self.read(operand, value) for operand in o[2:]]
        name = {"add": "atomicAdd", "cas": "atomicCAS", "exch": "atomicExch"}[what]
        return self.write(o[0], f"{name}<{value}>({', '.join(arguments)})")

    def op_red(self, parts, kind, o):
        return self.op_atom(parts, kind, ["_"] + o)

    def op_call(self, parts, kind, o):
        results = split(o[0][1:-1]) if o[0].startswith("(") else []
        name, *arguments = o[1:] if results else o
        given = split(arguments[0][1:-1]) if arguments else []
        return f"{ident(name)}({', '.join(ident(x) for x in results + given)});"

    # --- the result

    def head(self):
        if self.is_entry:
            return f"static void {ident(self.name)}(const void* parameters)"
        return f"static void {ident(self.name)}({', '.join(f'u8* {ident(p)}' for p in self.result + self.parameters)})"

    def text(self):
        body = "\n".join(self.lines)
        used = set(re.findall(r"v_\w+", body))
        words = {}
        for name, word in self.registers.items():
            if ident(name) in used:
                words.setdefault(word, []).append(ident(name))
        out = [self.head() + " {", "[[maybe_unused]] u64 carry = 0;"]
        if self.is_entry:
            shared = f"u64(shared_memory(&tag, {self.shared}))" if self.shared else "u64(block_.dynamic_shared)"
            out += ["static const char tag = 0;" if self.shared else "", f"[[maybe_unused]] const u64 shared = {shared};"]
        out += [f"[[maybe_unused]] {word} {', '.join(names)};" for word, names in words.items()]
        return "\n".join(out + [body, "}"])


def declared(text):
    """(size, alignment, name) of each variable: .param .align 8 .b8 name[16]"""
    out = []
    for align, kind, name, count in re.findall(r"\.\w+\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?", text):
        size = SIZES[kind] * int(count or 1)
        out.append((size, int(align or SIZES[kind]), name))
    return out


GLOBAL = re.compile(r"^\.(?:visible |weak )?\.?(global|const)\s+(?:\.align (\d+) )?\.(\w+) ([\w$]+)(?:\[(\d+)\])?(?: = (\{[^}]*\}))?;", re.M)
HEAD = re.compile(r"(?:\.(?:visible|weak|extern)\s+)*\.(entry|func)\s*(\([^)]*\)\s*)?([\w$]+)\s*\(([^)]*)\)([^{;]*)([{;])")
PIECE = re.compile(r"\s*(?:([{}])|([$\w]+):|([^;{}]+|[^;{}]*\{[^;}]*\}[^;]*);)")


def translate(ptx):
    text = re.sub(r"//[^\n]*", "", ptx)
    symbols, out = {}, []
    for _, align, kind, name, count, numbers in GLOBAL.findall(text):
        word = f"u{SIZES[kind] * 8}"
        out.append(f"alignas({align or SIZES[kind]}) static const {word} {ident(name)}[{count or 1}] = {numbers or '{}'};")
        symbols[name] = f"u64({ident(name)})"
    functions, at = [], 0
    while match := HEAD.search(text, at):
        at = match.end()
        if match[6] == ";":
            continue
        function = Function(match[1] == "entry", match[2], match[3], match[4], symbols)
        depth = 1
        while depth:
            piece = PIECE.match(text, at)
            at = piece.end()
            if piece[1]:
                depth += 1 if piece[1] == "{" else -1
                function.lines += [piece[1]] if depth else []
            elif piece[2]:
                function.lines.append(f"{ident(piece[2])}:;")
            else:
                function.statement(" ".join(piece[3].split()))
        functions.append(function)
    out += [function.head() + ";" for function in functions] + [function.text() for function in functions]
    entries = [f for f in functions if f.is_entry]
    table = "\n".join(f'[[maybe_unused]] static const bool known_{i} = add_ptx("{f.name}", {ident(f.name)});' for i, f in enumerate(entries))
    lead = '#include "tests/cuda/ptx/instructions.h"\nnamespace tensord::cuda::emulated::ptx {\nnamespace {'
    return "\n".join([lead, *out, table, "}", "}"]) + "\n"


def main():
    pathlib.Path(sys.argv[2]).write_text(translate(pathlib.Path(sys.argv[1]).read_text()))


if __name__ == "__main__":
    main()
