"""Writes the source of the function that encodes one message in one version.

The function is straight-line code, with a loop for each array of structs. It appends pieces to a
list and joins them once. Adjacent fields of fixed size are packed by one `Struct.pack`, together
with the length or the empty tag byte after them. Short lengths come from a table. An element of an
array of structs may be `bytes`: it was encoded before, and is copied.
"""

from contextlib import nullcontext

from .schema import UUID, Array, Blob, Field, Fixed, Layout, Nested, Text, layout_of
from .source import Source, identifier, literal
from .wire import SHORT_ARRAY


def encoder_source(layout: Layout, version: int, *, errors: str) -> str:
    """Return the source of `encode(message) -> bytes`. `errors` says how text that has no UTF-8
    form is treated, "strict" or "replace".
    """
    return _Encoder(layout, version, errors).write(layout)


class _Encoder:
    def __init__(self, layout: Layout, version: int, errors: str) -> None:
        self.version = version
        self.compact = layout.is_flexible(version)
        self.encode = ".encode()" if errors == "strict" else f'.encode("utf-8", "{errors}")'
        self.out = Source()
        self.pending: list[tuple[str, str]] = []  # fixed-size values that are packed together: code and expression

    def write(self, layout: Layout) -> str:
        name = f"{layout.cls.__name__} v{self.version}"
        out = self.out
        with out.block("def encode(m)"):
            out.line("out = []")
            out.line("w = out.append")
            with out.block("try"):
                self.struct(layout, "m", 1)
                out.line('return b"".join(out)')
            with out.block("except UnicodeEncodeError"):
                out.line("return lenient(m)")
            with out.block("except UnencodableMessage as error"):
                out.line(f'raise UnencodableMessage(f"{name}: {{error}}") from None')
            with out.block("except (struct_error, AttributeError, TypeError) as error"):
                out.line(f'raise UnencodableMessage(f"{name}: {{error}}") from error')
        return out.text()

    def struct(self, layout: Layout, var: str, depth: int) -> None:
        for field in layout.missing(self.version):
            with self.out.block(f"if {var}.{field.name} != {literal(field.default)}"):
                self.out.line(f'raise not_in_version("{layout.cls.__name__}", "{field.name}")')
        for field in layout.on_wire(self.version):
            self.field(field, f"{var}.{field.name}", depth)
        if layout.is_flexible(self.version):
            self.tags(layout, var, depth)
        self.flush()

    def field(self, field: Field, value: str, depth: int) -> None:
        nullable = field.nullable(self.version)
        compact = self.compact and not field.classic
        match field.kind:
            case Fixed() as kind:
                self.fixed(kind, value)
            case Text():
                self.sized(value, "h", self.encode, compact=compact, nullable=nullable)
            case Blob():
                self.sized(value, "i", "", compact=compact, nullable=nullable)
            case Array(element=element):
                self.array(element, value, depth, nullable=nullable)
            case Nested(cls=cls):
                self.nested(layout_of(cls), value, depth, nullable=nullable)

    def fixed(self, kind: Fixed, value: str) -> None:
        if kind == UUID:
            self.out.line(f"u{len(self.pending)} = {value}")
            value = f"u{len(self.pending)}"
            with self.out.block(f"if len({value}) != 16"):
                self.out.line(f"check_uuid({value})")
        self.pending.append((kind.code, value))

    def sized(self, value: str, code: str, encode: str, *, compact: bool, nullable: bool) -> None:
        """Write the encoding of a text or of bytes after their length."""
        out = self.out
        long = "text_uvarint" if encode else "uvarint"
        if not compact:
            if nullable:
                out.line(f"v = {value}")
                out.line(f'b = b"" if v is None else v{encode}')
                self.pending.append((code, "-1 if v is None else len(b)"))
            else:
                out.line(f"b = {value}{encode}")
                self.pending.append((code, "len(b)"))
            self.flush()
            out.line("w(b)")
            return
        if nullable:
            self.flush()
            out.line(f"v = {value}")
            with out.block("if v is None"):
                out.line(r'w(b"\0")')
            with out.block("else"):
                self.compact_bytes(f"v{encode}", long)
        else:
            self.compact_bytes(f"{value}{encode}", long)

    def compact_bytes(self, value: str, long: str) -> None:
        self.out.line(f"b = {value}")
        self.out.line("n = len(b) + 1")
        self.compact_length(long)
        self.out.line("w(b)")

    def compact_length(self, long: str = "uvarint") -> None:
        """Write the encoding of the varint `n`, together with the fixed-size values before it.
        `long` names the function for one that is not short.
        """
        if not self.pending:
            self.out.line(f"w(SHORT_UVARINTS[n] if n < 4096 else {long}(n))")
            return
        short = self.out.packer("".join(code for code, _ in self.pending) + "B")
        plain = self.out.packer("".join(code for code, _ in self.pending))
        values = ", ".join(value for _, value in self.pending)
        self.pending.clear()
        self.out.line(f"w({short}({values}, n) if n < 128 else {plain}({values}) + {long}(n))")

    def array(self, element: Fixed | Text | Blob | Nested, value: str, depth: int, *, nullable: bool) -> None:
        out = self.out
        out.line(f"a{depth} = {value}")
        if not nullable:
            self.elements(element, f"a{depth}", depth)
            return
        self.flush()
        with out.block(f"if a{depth} is None"):
            out.line(r'w(b"\0")' if self.compact else r'w(b"\xff\xff\xff\xff")')
        with out.block("else"):
            self.elements(element, f"a{depth}", depth)

    def elements(self, element: Fixed | Text | Blob | Nested, array: str, depth: int) -> None:
        if isinstance(element, Fixed) and element != UUID:
            self.numbers(element, array)
            return
        if self.compact:
            self.out.line(f"n = len({array}) + 1")
            self.compact_length()
        else:
            self.pending.append(("i", f"len({array})"))
            self.flush()
        with self.out.block(f"for m{depth} in {array}"):
            match element:
                case Nested(cls=cls):
                    with self.out.block(f"if m{depth}.__class__ is bytes"):
                        self.out.line(f"w(m{depth})")
                        self.out.line("continue")
                    self.struct(layout_of(cls), f"m{depth}", depth + 1)
                case Text():
                    self.sized(f"m{depth}", "h", self.encode, compact=self.compact, nullable=False)
                case Fixed():
                    self.out.line(f"w(check_uuid(m{depth}))")
                case Blob():
                    self.sized(f"m{depth}", "i", "", compact=self.compact, nullable=False)

    def numbers(self, kind: Fixed, array: str) -> None:
        """Write the encoding of an array of numbers. A short one is packed with its count."""
        self.flush()
        out = self.out
        count, prefix = ("n + 1", "B") if self.compact else ("n", "i")
        many = out.constant(f"pack_{prefix}_{identifier(kind.code)}s", f'packers("{kind.code}", "{prefix}")')
        long = "uvarint(n + 1)" if self.compact else f"{out.packer('i')}(n)"
        out.line(f"n = len({array})")
        out.line(
            f'w({many}[n]({count}, *{array}) if n < {SHORT_ARRAY} else {long} + pack(f">{{n}}{kind.code}", *{array}))'
        )

    def nested(self, layout: Layout, value: str, depth: int, *, nullable: bool) -> None:
        out = self.out
        out.line(f"m{depth} = {value}")
        if not nullable:
            self.struct(layout, f"m{depth}", depth + 1)
            return
        self.flush()
        with out.block(f"if m{depth} is None"):
            out.line(r'w(b"\xff")')
        with out.block("else"):
            self.pending.append(("b", "1"))
            self.struct(layout, f"m{depth}", depth + 1)

    def tags(self, layout: Layout, var: str, depth: int) -> None:
        """Write the encoding of the tagged fields that differ from their defaults, merged with the
        unknown ones.
        """
        section = layout.tag_section(self.version)
        if section is not None:
            self.tag_section(section, var, depth)
            return
        known = layout.tagged(self.version)
        none = " and ".join(
            [f"{var}.unknown_tags is None", *(f"{var}.{field.name} == {literal(field.default)}" for field in known)]
        )
        self.empty_or_tags(none, var, known, depth)

    def tag_section(self, section: Field, var: str, depth: int) -> None:
        """Write the encoding of tagged fields that stand in a struct of their own, or None."""
        assert isinstance(section.kind, Nested)
        known = layout_of(section.kind.cls).tagged(self.version)
        self.out.line(f"m{depth} = {var}.{section.name}")
        self.empty_or_tags(f"m{depth} is None and {var}.unknown_tags is None", var, known, depth, f"m{depth}")

    def empty_or_tags(self, none: str, var: str, known: list[Field], depth: int, section: str = "") -> None:
        out = self.out
        pending = self.pending[:]
        with out.block(f"if {none}"):
            self.pending.append(("x", ""))
            self.flush()
        self.pending = pending
        with out.block("else"):
            self.flush()
            out.line(f"tags{depth} = dict({var}.unknown_tags or ())")
            with out.block(f"if {section} is not None") if section else nullcontext():
                for field in known:
                    with out.block(f"if {section or var}.{field.name} != {literal(field.default)}"):
                        self.tagged_value(field, f"{section or var}.{field.name}", depth)
            out.line(f"w(write_tags(tags{depth}))")

    def tagged_value(self, field: Field, value: str, depth: int) -> None:
        """Write the encoding of a tagged value to its own list, because its size precedes it."""
        out = self.out
        out.line(f"out{depth}, w{depth} = [], w")
        out.line(f"w = out{depth}.append")
        self.field(field, value, depth + 1)
        self.flush()
        out.line(f"w = w{depth}")
        out.line(f'tags{depth}[{field.tag}] = b"".join(out{depth})')

    def flush(self) -> None:
        if not self.pending:
            return
        codes = "".join(code for code, _ in self.pending)
        values = ", ".join(value for _, value in self.pending if value)
        self.pending.clear()
        if codes == "x":
            self.out.line(r'w(b"\0")')
        else:
            self.out.line(f"w({self.out.packer(codes)}({values}))")
