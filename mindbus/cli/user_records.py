"""The commands `users`: who people are, in which zone and language, with which role and projects; their facts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from bus_schema.facts import ListFacts
from bus_schema.processing import FactKind
from bus_schema.replies import Code
from bus_schema.users import GetUser, ListUsers, PutUser, User, UserRecord
from mindbus.accounts import AccessRole
from mindbus.cli.console import errors, say, say_data, show_json, show_result, show_table
from mindbus.cli.errors import CommandError, UsageError, valid_options
from mindbus.cli.language import translate
from mindbus.cli.options import LOCAL_USER, As, Json, UserArgument
from mindbus.cli.session import answer_to, items_of
from mindbus.cli.user_access import ReadOnly, RoleOption, access_role, grant, logins, renew, revoke, show_grant
from mindbus.errors import ReplyError

app = typer.Typer(no_args_is_help=True, help="Add, list, show and change users; list their facts.")

_PAGE = 200
_NEW = 0
_CLEAR = ""

Zone = Annotated[
    str | None, typer.Option("--tz", metavar="ZONE", help="Their time zone, such as Europe/Moscow; '' for the default.")
]
LanguageOption = Annotated[str | None, typer.Option("--lang", metavar="LANG", help="en or ru; '' for either.")]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Their name, in any script.")]
Spellings = Annotated[
    list[str] | None, typer.Option("--also", metavar="NAME", help="Another spelling of the name; may be repeated.")
]
Job = Annotated[str | None, typer.Option("--job", metavar="JOB", help="What they do, such as designer.")]
FormerJob = Annotated[str | None, typer.Option("--role", hidden=True)]
Projects = Annotated[
    list[str] | None, typer.Option("--project", metavar="PROJECT", help="A project of theirs; may be repeated.")
]


@app.command()
def add(
    user: UserArgument,
    zone: Zone = None,
    language: LanguageOption = None,
    name: Name = None,
    also: Spellings = None,
    job: Job = None,
    project: Projects = None,
    role: RoleOption = None,
    read_only: ReadOnly = False,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Add a user: agents call them by their name, know their clock and language, and notify them.

    With --role they may sign in: it shows a token for the web app and HTTP, an address of RabbitMQ for programs.

    [bold]Examples[/bold]

    mindbus users add anna --name Анна --also Anna --tz Europe/Moscow --lang ru --job дизайнер --project Сайт

    mindbus users add wei --name "Wei Zhang" --tz Asia/Shanghai --lang en --role user

    mindbus users add scout --role agent --json
    """
    granted, job = _role_or_job(role, job)
    options = {"zone": zone, "language": language, "name": name, "names": also, "role": job, "projects": project}
    if granted is None and read_only:
        raise UsageError("--read-only limits who may sign in: give --role as well")
    if granted is AccessRole.AGENT and any(value is not None for value in options.values()):
        raise UsageError("an agent has no profile: leave out all options but --role and --read-only")
    if granted is not AccessRole.AGENT:
        with _explain_error(Code.CONFLICT, f"{user!r} is a user already; change them with: mindbus users set {user}"):
            record = _put_new(user, options, acting, is_account=granted is not None)
        if granted is None and record is not None:
            show_result(record, _show, as_json=as_json)
    if granted is not None:
        show_result(grant(user, granted, can_write=not read_only), show_grant, as_json=as_json)


@app.command("set")
def change(
    user: UserArgument,
    zone: Zone = None,
    language: LanguageOption = None,
    name: Name = None,
    also: Spellings = None,
    job: Job = None,
    project: Projects = None,
    role: FormerJob = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """Change a user; what is not named stays. Spellings and projects replace the former ones.

    [bold]Examples[/bold]

    mindbus users set anna --tz Asia/Tbilisi

    mindbus users set anna --name "Анна Петрова" --project Сайт --project Приложение
    """
    granted, job = _role_or_job(role, job)
    if granted is not None:
        raise UsageError(f"a role is given with an account: users revoke {user}, then users add {user} --role {role}")
    options = {"zone": zone, "language": language, "name": name, "names": also, "role": job, "projects": project}
    if all(value is None for value in options.values()):
        raise UsageError("say what to change: --tz, --lang, --name, --also, --job or --project")
    before = _record(user, acting)
    changed = _updated_user(before, options)
    record = answer_to(lambda: PutUser(user=changed, expected_version=before.version), acting)
    show_result(record, _show, as_json=as_json)


@app.command("facts")
def list_facts(
    user: UserArgument,
    kind: Annotated[FactKind | None, typer.Option("--kind", help="Facts of this kind.")] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="Those that no longer hold, too.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=200, help="How many on a page.")] = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", help="`next` of the previous page.")] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """List the facts that a user has stated, the newest first.

    [bold]Example[/bold]

    mindbus users facts anna --limit 200 --json
    """
    query = ListFacts(user_id=user, kind=kind, superseded=superseded, cursor=cursor, limit=limit)
    page = answer_to(lambda: query, acting)
    if as_json:
        show_json({"items": [fact.model_dump(mode="json") for fact in page.items], "next": page.next_cursor})
        return
    show_table(
        ("id", "at", "kind", "shared with", "text"),
        (
            (each.fact_id, f"{each.said_at:%Y-%m-%d %H:%M}", each.kind.value, each.shared_with or "—", each.text)
            for each in page.items
        ),
    )
    if page.next_cursor:
        say(f"more: --cursor '{page.next_cursor}'")


@app.command("ls")
def list_(
    project: Annotated[str | None, typer.Option("--project", metavar="PROJECT", help="Only its members.")] = None,
    acting: As = LOCAL_USER,
    as_json: Json = False,
) -> None:
    """List users, and who has access: people and agents with a role.

    [bold]Examples[/bold]

    mindbus users ls

    mindbus users ls --project Сайт --json
    """
    users = items_of(lambda: ListUsers(project=project, limit=_PAGE), acting)
    accounts = logins()
    roles = {each.name: each.role.value for each in accounts if each.user_id}
    columns = ("user", "name", "access", "job", "zone", "language", "projects")
    rows: list[tuple[object, ...]] = [
        (u.user_id, u.name, roles.get(u.user_id), u.role, u.zone, u.language, ", ".join(u.projects)) for u in users
    ]
    known = {u.user_id for u in users}
    if project is None:
        apart = (each for each in accounts if each.user_id not in known)
        rows += [(each.name, "", each.role.value, "", "", "", "") for each in apart]
    access = [
        {"name": each.name, "role": each.role.value, "read_only": not each.can_write, "created_at": each.created_at}
        for each in accounts
    ]
    listed = {"items": users, "access": access}
    show_result(listed, lambda _listed: show_table(columns, rows), as_json=as_json)


@app.command()
def show(user: UserArgument, acting: As = LOCAL_USER, as_json: Json = False) -> None:
    """Show a user.

    [bold]Example[/bold]

    mindbus users show anna --json
    """
    show_result(_record(user, acting), _show, as_json=as_json)


app.command("renew")(renew)
app.command("revoke")(revoke)


def _role_or_job(role: str | None, job: str | None) -> tuple[AccessRole | None, str | None]:
    """Role of access that `--role` names; what it named before, a job, is still understood."""
    if role is None or (granted := access_role(role)) is not None:
        return (None if role is None else granted), job
    note = "--role is for access: user, operator, agent. What somebody does is called --job now"
    errors().print(note, style="yellow", soft_wrap=True)
    return None, job or role


def _put_new(
    user_id: str, options: dict[str, str | list[str] | None], acting: str, *, is_account: bool
) -> UserRecord | None:
    """Store a user who is new, or has only spoken so far; None where an account is all that is added."""
    known, bare = _known(user_id, acting), User(user_id=user_id, name=user_id)
    added = _updated_user(bare, options)
    if known is None:
        return answer_to(lambda: PutUser(user=added, expected_version=_NEW), acting)
    if is_account and added == bare:
        return None
    has_spoken = User.model_validate(known.model_dump(include=set(User.model_fields))) == bare
    version = known.version if has_spoken and added != bare else _NEW
    return answer_to(lambda: PutUser(user=added, expected_version=version), acting)


def _known(user_id: str, identity: str) -> UserRecord | None:
    try:
        return answer_to(lambda: GetUser(user_id=user_id), identity)
    except ReplyError as error:
        if error.code is not Code.NOT_FOUND:
            raise
        return None


def _show(user: UserRecord) -> None:
    others = f" ({translate('also')} {', '.join(user.names)})" if user.names else ""
    say_data(f"{user.user_id}: {user.name}{others}")
    say(f"  job {user.role or '—'}, zone {user.zone or 'default'}, language {user.language or 'either'}")
    say(f"  projects {', '.join(user.projects) or '—'}")


def _updated_user(user: User, options: dict[str, str | list[str] | None]) -> User:
    """The user with these options; an empty zone or language clears it. Raises UsageError."""
    fields = {
        field: None if value == _CLEAR and field in ("zone", "language") else value
        for field, value in options.items()
        if value is not None
    }
    with valid_options():
        return User.model_validate(user.model_dump(include=set(User.model_fields)) | fields)


def _record(user_id: str, identity: str) -> UserRecord:
    with _explain_error(Code.NOT_FOUND, f"there is no user {user_id!r}; add them with: mindbus users add {user_id}"):
        return answer_to(lambda: GetUser(user_id=user_id), identity)


@contextmanager
def _explain_error(code: Code, message: str) -> Iterator[None]:
    """Say what to do about an error reply of this code."""
    try:
        yield
    except ReplyError as error:
        if error.code is not code:
            raise
        raise CommandError(message, code) from error
