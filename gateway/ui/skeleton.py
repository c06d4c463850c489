"""Where a list will be, once it is known."""

from nicegui.element import Element

from gateway.ui.parts import attributes, box


def skeleton() -> Element:
    """As long as there is nothing else to show."""
    with attributes(box("mb-skel"), aria_hidden="true") as made:
        for width in (38, 30, 44, 26, 34):
            with box():
                box("", "i")
                box("", "i").style(f"width: {width}%")
                box("", "i").style(f"width: {width + 16}%")
    return made
