"""Writes the source of the function that decodes one message in one version.

The function is straight-line code, with a loop for each array of structs. It moves an offset `o`
through the bytes `d`. Adjacent fields of fixed size are read by one `Struct.unpack_from`, together
with the length or the tag count after them. Bytes that end too early are always noticed: an index
or an unpack raises, and a short slice leaves `o` beyond the end, which the next read or the final
check finds. The count of an array is compared with the number of bytes that are left before the
array is made. In a large request it also counts against a maximum of elements, because an element
takes much more memory than its bytes on the wire.
"""

from collections.abc import Callable

from .schema import BOOL, UUID, Array, Blob, Field, Fixed, Layout, Nested, Text, layout_of, min_size
from .source import Source, identifier, literal
from .wire import MAX_ELEMENTS, NUMBERS_AN_ELEMENT, SHORT_ARRAY

Deliver = Callable[[str], str]  # returns the statement that stores an expression
BYTES = "{}"  # the expression for a field of bytes, where that of a text decodes it


def decoder_source(layout: Layout, version: int, *, errors: str, counts: bool = False) -> str:
    """Return the source of `decode(data, offset) -> (message, end)`. `errors` says how text that is
    not UTF-8 is treated, "strict" or "replace". With `counts`, more than MAX_ELEMENTS elements are
    refused.
    """
    return _Decoder(layout, version, errors, counts=counts).write(layout)


class _Decoder:
    def __init__(self, layout: Layout, version: int, errors: str, *, counts: bool) -> None:
        self.version = version
        self.compact = layout.is_flexible(version)
        self.text = "{}.decode()" if errors == "strict" else "lenient_text({})"
        self.counts = counts
        self.out = Source()
        self.pending: list[tuple[str, int, str]] = []  # fixed-size values that are read together: code, size, target
        self.tagged: dict[str, Field] = {}  # the functions that decode a tagged field, by name

    def write(self, layout: Layout) -> str:
        out = self.out
        name = f"{layout.cls.__name__} v{self.version}"
        with out.block("def decode(d, o)"):
            out.line("start, end = o, len(d)")
            self.may_have()
            with out.block("try"):
                self.struct(layout, "m = {}".format, 1)
                with out.block("if o <= end"):
                    out.line("return m, o")
            with out.block("except (IndexError, struct_error)"):
                out.line("pass")
            with out.block("except UnicodeDecodeError"):
                out.line("return lenient(d, start)")
            with out.block("except MalformedMessage as error"):
                out.line(f'raise MalformedMessage(f"{name}: {{error}}") from None')
            out.line(f'raise MalformedMessage("{name}: the bytes end too early")')
        written = 0
        while written < len(self.tagged):  # decoding a tagged field may need further functions
            for function, field in list(self.tagged.items())[written:]:
                self.tagged_value(function, field)
                written += 1
        return out.text()

    def struct(self, layout: Layout, deliver: Deliver, depth: int) -> None:
        present = layout.on_wire(self.version)
        for field in present:
            self.field(field, f"{field.name}_{depth}", depth)
        section = layout.tag_section(self.version)
        known = layout.tagged(self.version) if section is None else []
        filled = {field.name: f"{field.name}_{depth}" for field in [*present, *known, *([section] if section else [])]}
        arguments = [filled.get(field.name, literal(field.default)) for field in layout.fields]
        while arguments and layout.fields[len(arguments) - 1].name not in filled:
            arguments.pop()  # msgspec fills in a default faster than an argument is passed
        cls = layout.cls.__name__
        if not layout.is_flexible(self.version):
            self.flush()
            self.out.line(deliver(f"{cls}({', '.join(arguments)})"))
            return
        self.peek("t")
        with self.out.block("if t"):
            self.out.line("tags, o = read_tags(d, o)")
            self.take("len(tags)")
            for field in known:
                self.known_tag(field, f"{field.name}_{depth}", cls)
            if section is not None:
                self.tag_section(section, f"{section.name}_{depth}")
            self.out.line(deliver(f"{cls}({', '.join([*arguments, 'unknown_tags=tags or None'])})"))
        with self.out.block("else"):
            self.out.line("o += 1")
            for field in known:
                self.out.line(f"{field.name}_{depth} = {literal(field.default)}")
            if section is not None:
                self.out.line(f"{section.name}_{depth} = None")
            self.out.line(deliver(f"{cls}({', '.join(arguments)})"))

    def tag_section(self, section: Field, target: str) -> None:
        """Write the decoding of the tagged fields into a struct of their own, None without any."""
        assert isinstance(section.kind, Nested)
        layout = layout_of(section.kind.cls)
        known = layout.tagged(self.version)
        with self.out.block(f"if tags.keys().isdisjoint({tuple(field.tag for field in known)})"):
            self.out.line(f"{target} = None")
        with self.out.block("else"):
            for field in known:
                self.known_tag(field, f"{target}_{field.name}", layout.cls.__name__)
            arguments = ", ".join(f"{field.name}={target}_{field.name}" for field in known)
            self.out.line(f"{target} = {layout.cls.__name__}({arguments})")

    def known_tag(self, field: Field, target: str, cls: str) -> None:
        function = f"decode_{cls}_{field.name}"
        self.tagged[function] = field
        self.out.line(
            f"{target} = {function}(tags.pop({field.tag})) if {field.tag} in tags else {literal(field.default)}"
        )

    def tagged_value(self, name: str, field: Field) -> None:
        out = self.out
        out.line("")
        with out.block(f"def {name}(d)"):
            out.line("o, end = 0, len(d)")
            self.may_have()
            self.field(field, "value", 1)
            self.flush()
            with out.block("if o != end"):
                out.line(f"raise tag_not_used_up({field.tag})")
            out.line("return value")

    def field(self, field: Field, target: str, depth: int) -> None:
        nullable = field.nullable(self.version)
        compact = self.compact and not field.classic
        match field.kind:
            case Fixed(code=code, size=size):
                self.pending.append((code, size, target))
            case Text():
                self.sized(target, "h", 2, self.text, compact=compact, nullable=nullable)
            case Blob():
                self.sized(target, "i", 4, BYTES, compact=compact, nullable=nullable)
            case Array(element=element):
                self.array(element, target, depth, nullable=nullable)
            case Nested(cls=cls):
                self.nested(layout_of(cls), target, depth, nullable=nullable)

    def sized(self, target: str, code: str, size: int, form: str, *, compact: bool, nullable: bool) -> None:
        """Write the decoding of a text or of bytes after their length. `form` is the expression
        made of the slice.
        """
        out = self.out
        if compact:
            self.compact_length("length" if form == BYTES else "text_length", nullable=nullable)
            read = [f"{target} = {form.format('d[o + 1 : e]')}"]
        else:
            self.pending.append((code, size, "n"))
            self.flush()
            if not nullable:
                self.refuse_null()
            read = [f"{target} = {form.format('d[o:e]')}"]
        read = ["e = o + n", *read, "o = e"]
        if not nullable:
            for text in read:
                out.line(text)
            return
        with out.block("if n" if compact else "if n >= 0"):
            for text in read:
                out.line(text)
        with out.block("else"):
            out.line(f"{target} = None")
            if compact:
                out.line("o += 1")

    def compact_length(self, reader: str, *, nullable: bool) -> None:
        """Write the decoding of the length plus one into `n`. `o` stays on the last byte of the
        varint.
        """
        self.peek("n")
        if nullable:
            with self.out.block("if n > 127"):
                self.out.line(f"n, o = read_nullable_{reader}(d, o)")
        else:
            with self.out.block("if n > 127 or not n"):
                self.out.line(f"n, o = read_{reader}(d, o)")

    def refuse_null(self) -> None:
        with self.out.block("if n < 0"):
            self.out.line("raise null_array()")

    def array(self, element: Fixed | Text | Blob | Nested, target: str, depth: int, *, nullable: bool) -> None:
        out = self.out
        if self.compact:
            self.compact_length("length", nullable=nullable)
            out.line("n -= 1")
            out.line("o += 1")
        else:
            self.pending.append(("i", 4, "n"))
            self.flush()
            if not nullable:
                self.refuse_null()
        if not nullable:
            self.elements(element, target, depth)
            return
        with out.block("if n < 0"):
            out.line(f"{target} = None")
        with out.block("else"):
            self.elements(element, target, depth)

    def elements(self, element: Fixed | Text | Blob | Nested, target: str, depth: int) -> None:
        out = self.out
        size = min_size(element, self.version, compact=self.compact)
        with out.block(f"if n * {size} > end - o"):
            out.line("raise too_many(n, end - o)")
        self.take(f"n // {NUMBERS_AN_ELEMENT}" if isinstance(element, Fixed) else "n")
        if element == UUID:
            out.line(f"{target} = [d[i : i + 16] for i in range(o, o + n * 16, 16)]")
            out.line("o += n * 16")
            return
        if isinstance(element, Fixed):
            few = out.constant(f"unpack_{identifier(element.code)}s", f'unpackers("{element.code}")')
            many = f'unpack_from(f">{{n}}{element.code}", d, o)'
            out.line(f"{target} = list({few}[n](d, o) if n < {SHORT_ARRAY} else {many})")
            out.line(f"o += n * {size}" if size > 1 else "o += n")
            return
        out.line(f"{target} = []")
        with out.block("for _ in range(n)"):
            match element:
                case Nested(cls=cls):
                    self.struct(layout_of(cls), (target + ".append({})").format, depth + 1)
                case Text():
                    self.sized("x", "h", 2, self.text, compact=self.compact, nullable=False)
                    out.line(f"{target}.append(x)")
                case Blob():
                    self.sized("x", "i", 4, BYTES, compact=self.compact, nullable=False)
                    out.line(f"{target}.append(x)")

    def may_have(self) -> None:
        if self.counts:
            self.out.line(f"left = {MAX_ELEMENTS}")

    def take(self, count: str) -> None:
        """Write the counting of elements against the maximum of a request."""
        if self.counts:
            self.out.line(f"left -= {count}")
            with self.out.block("if left < 0"):
                self.out.line("raise too_many_elements()")

    def nested(self, layout: Layout, target: str, depth: int, *, nullable: bool) -> None:
        if not nullable:
            self.struct(layout, (target + " = {}").format, depth + 1)
            return
        self.pending.append(("b", 1, "n"))
        self.flush()
        with self.out.block("if n < 0"):
            self.out.line(f"{target} = None")
        with self.out.block("else"):
            self.struct(layout, (target + " = {}").format, depth + 1)

    def peek(self, target: str) -> None:
        """Write the decoding of the next byte into `target`, together with the fixed-size values
        before it. `o` stays on the byte.
        """
        if not self.pending:
            self.out.line(f"{target} = d[o]")
            return
        size = sum(size for _, size, _ in self.pending)
        self.pending.append(("B", 1, target))
        self.unpack()
        self.out.line(f"o += {size}")

    def flush(self) -> None:
        if not self.pending:
            return
        code, size, target = self.pending[0]
        if len(self.pending) == 1 and code == BOOL.code:
            self.out.line(f"{target} = d[o] != 0")
            self.pending.clear()
        else:
            size = sum(size for _, size, _ in self.pending)
            self.unpack()
        self.out.line(f"o += {size}")

    def unpack(self) -> None:
        codes = "".join(code for code, _, _ in self.pending)
        targets = ", ".join(target for _, _, target in self.pending) + ("," if len(self.pending) == 1 else "")
        self.pending.clear()
        self.out.line(f"{targets} = {self.out.unpacker(codes)}(d, o)")
