"""Keeps a mistake from becoming a loss: a restored database, a retention mistyped."""

from typing import Any

from mindbus.errors import Rejected
from storage_service.care.piles import Survey
from storage_service.care.rules import CareRules
from storage_service.refusals import DatabaseBehindStore, TooMuchGarbage


def refusal_of(survey: Survey, rules: CareRules, max_objects: int | None) -> Rejected | None:
    """Why a run must not take all this; None where it may. Who names a number of objects has seen the survey."""
    objects = survey.unused.count + survey.unknown.count
    taken = max(objects, survey.due.count) + survey.unregistered.count
    numbers: dict[str, Any] = {
        "taken": taken,
        "expired": survey.due.count,
        "artifacts": survey.holdings.artifacts,
        "orphaned": objects,
        "objects": survey.objects,
        "unregistered": survey.unregistered.count,
    }
    if max_objects is not None:
        return TooMuchGarbage(**numbers, max_objects=max_objects) if taken > max_objects else None
    if survey.forgotten:
        return DatabaseBehindStore(**numbers, forgotten=survey.forgotten)
    share = max(
        _percent(objects, survey.objects, rules.few),
        _percent(survey.due.count, survey.holdings.artifacts, rules.few),
    )
    if taken > rules.max_objects or share > rules.max_percent:
        return TooMuchGarbage(
            **numbers, percent=round(share, 1), max_objects=rules.max_objects, max_percent=rules.max_percent
        )
    return None


def _percent(part: int, whole: int, few: int) -> float:
    return 100 * part / max(whole, part) if part > few else 0.0
