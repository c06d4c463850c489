"""Control of a run on its screen: pause, go on, retry, run again, cancel, edit an output."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from bus_schema.messages import Command
from bus_schema.process import CancelProcess
from bus_schema.run_control import ApproveStep, PauseProcess, RejectStep, ResumeProcess, RetryProcess
from bus_schema.runs import Run, RunStatus, Step, StepStatus
from gateway.api.runs import RerunRequest, start_again
from gateway.ui.components import VALUE, attributes, box, button, icon_button, popup, text
from gateway.ui.dialogs import confirm
from gateway.ui.page_session import PageSession
from gateway.ui.runs.steps import OVER
from gateway.ui.sections import EXPECTED_ERRORS, error_text
from mindbus.sdk.steps import replace_output

_LONGEST_BYTES = 1024 * 1024
Submit = Callable[[], Awaitable[None]]
_SMALL = "mb-small mb-quiet"


class RunControls:
    """Buttons of the head and of the steps, for those who may steer the run."""

    def __init__(self, session: PageSession, run_id: str) -> None:
        self.session, self.run_id = session, run_id

    def may_steer(self, run: Run) -> bool:
        return self.session.backend.account.can_write and self.may_look(run)

    def may_look(self, run: Run) -> bool:
        """Whether the calls of its models are for the account: of its starter, and operators."""
        account = self.session.backend.account
        return account.is_operator or account.identity == run.started_by

    def head(self, run: Run) -> None:
        """Buttons for what can be done with the run as it is."""
        i18n = self.session.i18n
        if not self.may_steer(run):
            return
        if run.status is RunStatus.RUNNING:
            button(i18n("run.pause"), lambda: self._send(PauseProcess(run_id=self.run_id)), _SMALL, "pause")
        if run.status is RunStatus.PAUSED:
            button(
                i18n("run.resume"), lambda: self._send(ResumeProcess(run_id=self.run_id)), "mb-small mb-primary", "play"
            )
        if run.status in (RunStatus.FAILED, RunStatus.CANCELLED):
            button(
                i18n("run.retry"), lambda: self._send(RetryProcess(run_id=self.run_id)), "mb-small mb-primary", "replay"
            )
        if run.status in OVER:
            button(i18n("run.rerun"), lambda: self._rerun(run), _SMALL, "play")
        else:
            button(i18n("run.cancel"), self._cancel, f"{_SMALL} mb-err", "stop")

    def of_step(self, run: Run, step: Step) -> None:
        """Buttons of a step that has an output, or that asks."""
        i18n = self.session.i18n
        if not self.may_steer(run):
            return
        if step.status is StepStatus.WAITING and step.due_at is None:
            yes = ApproveStep(run_id=self.run_id, step_id=step.step_id)
            button(i18n("step.approve"), lambda: self._send(yes), "mb-small mb-primary", "check")
            button(i18n("step.reject"), lambda: self._reject(step), f"{_SMALL} mb-err", "close")
        if step.artifact is None or step.of is not None:
            return
        icon_button("edit", i18n("run.edit"), lambda: self._edit(step))
        icon_button("replay", i18n("run.remake"), lambda: self._remake(step))

    async def _send(self, command: Command[Run]) -> None:
        await self.session.attempt(self.session.backend.bus.request(command, trace=self.run_id))

    async def _cancel(self) -> None:
        i18n = self.session.i18n
        if await confirm(i18n, i18n("run.cancel_title"), i18n("run.cancel_text"), i18n("run.cancel"), 1):
            cancelling = self.session.backend.bus.request(CancelProcess(run_id=self.run_id), trace=self.run_id)
            await self.session.attempt(cancelling, i18n("run.cancelled"))

    async def _remake(self, step: Step) -> None:
        i18n = self.session.i18n
        title = i18n("run.remake_title", step=step.step_id)
        if await confirm(i18n, title, i18n("run.remake_text"), i18n("run.remake"), 1):
            await self._send(RetryProcess(run_id=self.run_id, from_step=step.step_id))

    def _reject(self, step: Step) -> None:
        i18n, form = self.session.i18n, {"text": ""}

        async def go() -> None:
            no = RejectStep(run_id=self.run_id, step_id=step.step_id, note=form["text"])
            await self.session.backend.bus.request(no, trace=self.run_id)

        self._ask(i18n("step.reject"), i18n("step.reject_text"), form, 4, go, i18n("step.reject"))

    def _rerun(self, run: Run) -> None:
        i18n = self.session.i18n
        form = {"text": "\n".join(f"{name}={value}" for name, value in run.params.items())}

        async def go() -> None:
            lines = [line.partition("=") for line in form["text"].splitlines() if line.strip()]
            params = {name.strip(): value.strip() for name, _, value in lines}
            started = await start_again(self.session.backend, self.run_id, RerunRequest(params=params))
            ui.navigate.to(f"/runs/{started.run_id}")

        self._ask(i18n("run.rerun"), i18n("run.rerun_text"), form, 4, go, i18n("run.rerun"))

    async def _edit(self, step: Step) -> None:
        i18n, backend = self.session.i18n, self.session.backend
        form = {"text": ""}

        async def load() -> None:
            if step.artifact is not None:
                about = step.artifact.artifact_id
                content = await backend.artifacts.get(about, max_bytes=_LONGEST_BYTES, trace=self.run_id)
                form["text"] = content.decode(errors="replace")

        async def save() -> None:
            async with backend.own_artifacts() as artifacts:
                await replace_output(backend.bus, artifacts, self.run_id, step.step_id, form["text"])

        if await self.session.attempt(load()):
            title = i18n("run.edit_title", step=step.step_id)
            self._ask(title, i18n("run.edit_text"), form, 16, save, i18n("run.edit_save"))

    def _ask(self, title: str, explanation: str, form: dict[str, str], rows: int, submit: Submit, action: str) -> None:
        """A dialog with a text area; it stays open with what is wrong."""
        i18n = self.session.i18n

        async def go() -> None:
            try:
                await submit()
            except EXPECTED_ERRORS as error:
                problem.set_text(error_text(i18n, error))
                return
            dialog.close()

        with popup(title, "mb-dialog mb-new-run") as dialog:
            text(title, "", "h2")
            text(explanation, "", "p")
            area = attributes(box("mb-input mb-area", "textarea"), rows=rows, aria_label=title)
            area.props["^value"] = form["text"]
            area.on("input", lambda event: form.update(text=str(event.args)), js_handler=VALUE)
            problem = text("", "mb-err mb-meta")
            attributes(problem, role="alert")
            with box("mb-actions"):
                button(i18n("cancel"), dialog.close, "mb-quiet")
                button(action, go, "mb-primary")
