"""A delegation, drawn: one line while it is folded, all that happened once it is opened."""

from urllib.parse import quote

from nicegui.element import Element

from bus_schema.dialogue import conversation_trace
from bus_schema.subagent import SubagentToolResult
from gateway.ui.chat.delegations import Story
from gateway.ui.icons import icon
from gateway.ui.markdown import markdown
from gateway.ui.parts import anchor, attributes, box, show_if, text
from gateway.ui.words import Words

_SHOWN_CHARS = 600


class DelegationEntry:
    """Drawn anew whenever something is told of it; open stays open."""

    def __init__(self, words: Words, story: Story) -> None:
        self.words, self._story = words, story
        with box("mb-delegation", "section") as self.element:
            attributes(
                self.element,
                aria_label=words("chat.delegation", name=story.subagent),
                data_delegation=story.delegation_id,
            )
            self._head = attributes(box("mb-delegation-head", "button"), type="button", aria_expanded="false")
            self._head.on("click", self._toggle)
            self._body = box("mb-delegation-body mb-hidden")
        self.show(story)

    def show(self, story: Story) -> None:
        """Where it stands now."""
        self._story = story
        self._head.clear()
        with self._head:
            self._line(story)
        if "mb-hidden" not in self._body.classes:
            self._tell()

    def _line(self, story: Story) -> None:
        words, end = self.words, story.completion
        icon("link", "mb-i14")
        text(story.subagent, "mb-medium")
        text(story.task, "mb-ell mb-delegation-task")
        box("mb-grow")
        if end is None:
            text(story.status or words("chat.delegation_at_work"), "mb-acc mb-ell mb-delegation-state")
        elif end.is_error:
            text(words("chat.delegation_failed"), "mb-err mb-delegation-state")
        else:
            tools = len(story.results)
            said = words.count("chat.delegation_tools", tools) if tools else words("chat.delegation_done")
            text(said, "mb-meta mb-delegation-state")
        icon("down", "mb-i14 mb-delegation-fold")

    def _toggle(self) -> None:
        is_open = "mb-hidden" in self._body.classes
        show_if(self._body, is_open)
        attributes(self._head, aria_expanded=str(is_open).lower()).update()
        if is_open:
            self._tell()

    def _tell(self) -> None:
        words, story = self.words, self._story
        self._body.clear()
        with self._body:
            _part(words("chat.delegation_task"), story.task)
            for result in story.results:
                self._tool(result)
            if (end := story.completion) is not None:
                text(words("chat.delegation_answer"), "mb-label")
                if end.is_error:
                    text(end.response, "mb-err mb-delegation-text", "p")
                else:
                    markdown(end.response)

    def _tool(self, result: SubagentToolResult) -> None:
        with box("mb-line-x"):
            icon("alert" if result.is_error else "check", "mb-i14")
            text(result.name, "mb-medium")
            text(self._story.arguments_of(result.tool_call_id), "mb-meta mb-ell mb-mono")
        shown = result.content
        text(shown if len(shown) <= _SHOWN_CHARS else f"{shown[:_SHOWN_CHARS]}…", "mb-delegation-text", "p")
        if result.ref is not None:
            trace = quote(conversation_trace(self._story.told[0].chat_id))
            anchor(
                f"/artifacts/{quote(result.ref.artifact_id)}?trace={trace}",
                self.words("chat.as_artifact", size=self.words.bytes(result.ref.size_bytes)),
            )


def _part(name: str, content: str) -> Element:
    with box() as made:
        text(name, "mb-label")
        text(content, "mb-delegation-text", "p")
    return made
