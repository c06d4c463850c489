"""What opens the gateway, and for whom."""

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.access_tokens import OWNER, SESSION_FOR, TICKET_FOR, AccessKeys, Throttle, new_ticket
from mindbus.accounts import AccessRole, Account, AccountExists, Accounts

TOKEN = "a token that nobody guesses"


class Clock:
    """Time as a test has it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 14, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(tmp_path: Path) -> Accounts:
    return Accounts(tmp_path / "accounts.db")


@pytest.fixture
def keys(clock: Clock, accounts: Accounts) -> AccessKeys:
    return AccessKeys(TOKEN, clock, accounts)


def named(account: Account | None) -> tuple[str, AccessRole] | None:
    return None if account is None else (account.identity, account.role)


def test_without_a_token_it_is_open_yet_nothing_passes_for_a_key(clock: Clock, accounts: Accounts) -> None:
    keys = AccessKeys(None, clock, accounts)
    token = accounts.add("anna", AccessRole.USER)

    assert keys.is_open
    assert not any(map(keys.of_token, ("", token)))
    assert not keys.of_session(keys.open_session(OWNER))


def test_the_token_is_the_owners_key_and_nothing_else_is(keys: AccessKeys) -> None:
    assert not keys.is_open
    assert keys.of_token(TOKEN) == OWNER
    assert not any(keys.of_token(wrong) for wrong in ("", TOKEN[:-1], f"{TOKEN} ", TOKEN.upper(), "токен", "\udcff"))


@pytest.mark.parametrize(
    ("role", "identity"),
    [(AccessRole.USER, "user.anna"), (AccessRole.OPERATOR, "user.anna"), (AccessRole.AGENT, "agent.anna")],
)
def test_the_token_of_an_account_is_that_account_s_until_it_is_revoked(
    keys: AccessKeys, accounts: Accounts, role: AccessRole, identity: str
) -> None:
    token = accounts.add("anna", role)
    session = keys.open_session(Account("anna", role))

    assert named(keys.of_token(token)) == named(keys.of_session(session)) == (identity, role)
    assert accounts.revoke(identity)
    assert not keys.of_token(token)
    assert not keys.of_session(session)
    assert not accounts.revoke(identity)
    again = accounts.add("anna", role)
    assert not keys.of_session(session)
    assert named(keys.of_token(again)) == (identity, role)


def test_an_account_that_is_renewed_has_another_token_alone(keys: AccessKeys, accounts: Accounts) -> None:
    former, other = accounts.add("anna", AccessRole.USER, can_write=False), accounts.add("anna", AccessRole.AGENT)
    accounts.spend("user.anna", "2026-11-24", 700)
    before, session = accounts.of_token(former), keys.open_session(Account("anna", AccessRole.USER))

    token = accounts.renew("user.anna")

    after = keys.of_token(token)
    assert named(after) == ("user.anna", AccessRole.USER)
    assert after is not None
    # Open streams and pages compare it, so that they end.
    assert (after.can_write, after == before) == (False, False)
    assert keys.of_token(former) is keys.of_session(session) is None
    assert named(keys.of_token(other)) == ("agent.anna", AccessRole.AGENT)
    assert accounts.spent("user.anna", "2026-11-24") == 700


def test_a_person_has_one_account_and_an_agent_of_the_name_another(accounts: Accounts) -> None:
    accounts.add("anna", AccessRole.USER)
    accounts.add("anna", AccessRole.AGENT)

    with pytest.raises(AccountExists, match="mindbus users renew"):
        accounts.add("anna", AccessRole.OPERATOR)
    assert [each.identity for each in accounts.all()] == ["agent.anna", "user.anna"]


def test_no_token_and_no_session_lies_on_the_disk(keys: AccessKeys, accounts: Accounts, tmp_path: Path) -> None:
    secrets = [accounts.add("anna", AccessRole.USER), keys.open_session(OWNER)]
    accounts.revoke("user.anna")

    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not any(secret.encode() in content for secret in secrets)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    with sqlite3.connect(tmp_path / "accounts.db") as database:
        assert database.execute("SELECT count(*) FROM accounts").fetchone() == (0,)
    database.close()


def test_a_session_lasts_its_time(keys: AccessKeys, clock: Clock) -> None:
    session = keys.open_session(OWNER)

    clock.now += SESSION_FOR - timedelta(seconds=1)
    assert keys.of_session(session)
    clock.now += timedelta(seconds=1)
    assert not keys.of_session(session)


def test_a_session_cannot_be_made_up_nor_used_once_it_is_closed_or_the_owner_has_another_token(
    keys: AccessKeys, clock: Clock, accounts: Accounts
) -> None:
    session = keys.open_session(OWNER)

    assert not AccessKeys("another token altogether", clock, accounts).of_session(session)
    assert not any(keys.of_session(wrong) for wrong in (None, "", ".", session[:-1], f"{session}0", "\udcff", TOKEN))
    keys.close_session(session)
    keys.close_session(None)
    assert not keys.of_session(session)


def test_a_ticket_is_worth_one_session_within_ten_minutes(keys: AccessKeys, clock: Clock, accounts: Accounts) -> None:
    ticket, late = new_ticket(TOKEN, clock.now), new_ticket(TOKEN, clock.now)
    expires, nonce, _signature = ticket.split(".")
    make: Callable[[str], str] = lambda token: new_ticket(token, clock.now)  # noqa: E731

    assert ticket != late
    assert not keys.of_session(ticket)
    assert not keys.take_ticket(f"{int(expires) + 1}.{nonce}.{_signature}")
    assert not keys.take_ticket(make("another token altogether"))
    assert not any(map(keys.take_ticket, ("", "..", f"{expires}.{nonce}.", "²³.x.y", "x")))
    assert keys.take_ticket(ticket)
    assert not keys.take_ticket(ticket)
    clock.now += TICKET_FOR
    assert not keys.take_ticket(late)
    assert not any(AccessKeys(None, clock, accounts).take_ticket(each) for each in ("", "..", make("")))


def test_who_guesses_too_often_has_to_wait_and_then_may_again(clock: Clock) -> None:
    guesses = Throttle(clock, limit=3, within=timedelta(minutes=1))
    for _ in range(3):
        assert guesses.wait_s("10.0.0.1") == 0
        guesses.count("10.0.0.1")
        clock.now += timedelta(seconds=10)

    assert 30 <= guesses.wait_s("10.0.0.1") <= 31
    assert guesses.wait_s("10.0.0.2") == 0
    clock.now += timedelta(seconds=31)
    assert guesses.wait_s("10.0.0.1") == 0


def test_model_tokens_are_counted_by_person_and_day(accounts: Accounts) -> None:
    accounts.spend("user.anna", "2026-03-14", 300)
    accounts.spend("user.anna", "2026-03-14", 20)
    accounts.spend("user.boris", "2026-03-14", 5)

    assert accounts.spent("user.anna", "2026-03-14") == 320
    assert accounts.spent("user.anna", "2026-03-15") == 0
    accounts.spend("user.boris", "2026-03-15", 5)
    assert accounts.spent("user.anna", "2026-03-14") == 0
    accounts.revoke("user.boris")
    assert accounts.spent("user.boris", "2026-03-15") == 0
