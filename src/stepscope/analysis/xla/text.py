"""An instruction as XLA's own text form writes it."""

from __future__ import annotations

from stepscope.analysis.hlo.module import Module

_LONGEST = 2000  # characters of a text; a tuple of a thousand results is cut
_MOST_OPERANDS = 64


def instruction_text(module: Module, row: int) -> str:
    """Result, opcode, operands, and what it calls: `%dot.1 = f32[2,4]{1,0} dot(f32[2,3]{1,0} %a, ...)`."""
    opcode = module.opcode_of(row)
    operands = module.operands.linked(row)
    shown = [
        f"{module.shapes.text(each, layout=True)} %{module.instruction_name(each)}"
        for each in operands[:_MOST_OPERANDS]
    ]
    inside = ", ".join(shown) if operands else (str(int(module.parameter_number[row])) if opcode == "parameter" else "")
    more = ", ..." if len(operands) > _MOST_OPERANDS else ""
    text = f"%{module.instruction_name(row)} = {module.shapes.text(row, layout=True)} {opcode}({inside}{more})"
    text += _attributes(module, row, opcode)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _attributes(module: Module, row: int, opcode: str) -> str:
    parts = []
    if opcode == "fusion":
        parts.append(f"kind={module.fusion_kind_of(row)}")
    if opcode == "get-tuple-element":
        parts.append(f"index={int(module.tuple_index[row])}")
    if opcode == "custom-call":
        parts.append(f'custom_call_target="{module.target_of(row)}"')
    called = [f"%{module.computation_names[each]}" for each in module.callees.linked(row)]
    if called:
        parts.append(f"calls={', '.join(called)}" if opcode == "fusion" else f"to_apply={', '.join(called)}")
    return "".join(f", {part}" for part in parts)
