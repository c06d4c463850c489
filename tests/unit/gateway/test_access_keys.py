"""What opens the gateway."""

from datetime import UTC, datetime, timedelta

from gateway.access_tokens import SESSION_FOR, TICKET_FOR, AccessKeys, LoginThrottle

TOKEN = "a token that nobody guesses"


class Clock:
    """Time as a test has it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 14, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_without_a_token_it_is_open_yet_nothing_passes_for_a_key() -> None:
    keys = AccessKeys(None, Clock())

    assert keys.is_open
    assert not keys.is_token("")
    assert not keys.is_session(keys.session())


def test_the_token_is_a_key_and_nothing_else_is() -> None:
    keys = AccessKeys(TOKEN, Clock())

    assert not keys.is_open
    assert keys.is_token(TOKEN)
    assert not any(keys.is_token(wrong) for wrong in ("", TOKEN[:-1], f"{TOKEN} ", TOKEN.upper(), "токен", "\udcff"))


def test_a_session_lasts_its_time() -> None:
    clock = Clock()
    keys = AccessKeys(TOKEN, clock)
    session = keys.session()

    clock.now += SESSION_FOR - timedelta(seconds=1)
    assert keys.is_session(session)
    clock.now += timedelta(seconds=1)
    assert not keys.is_session(session)


def test_a_session_cannot_be_prolonged_made_up_or_taken_to_another_token() -> None:
    clock = Clock()
    keys = AccessKeys(TOKEN, clock)
    expires, seal = keys.session().split(".")

    assert not keys.is_session(f"{int(expires) + 1}.{seal}")
    assert not keys.is_session(AccessKeys("another token altogether", clock).session())
    assert not any(
        keys.is_session(wrong) for wrong in (None, "", ".", expires, f"{expires}.", f"x.{seal}", f"²³.{seal}")
    )


def test_a_ticket_is_worth_one_session_within_ten_minutes() -> None:
    clock = Clock()
    keys = AccessKeys(TOKEN, clock)
    ticket, late = keys.ticket(), keys.ticket()
    expires, nonce, _signature = ticket.split(".")

    assert ticket != late
    assert not keys.take_ticket(keys.session())
    assert not keys.is_session(ticket)
    assert not keys.take_ticket(f"{expires}.{nonce}.{keys.session().split('.')[1]}")
    assert not keys.take_ticket(AccessKeys("another token altogether", clock).ticket())
    assert keys.take_ticket(ticket)
    assert not keys.take_ticket(ticket)
    clock.now += TICKET_FOR
    assert not keys.take_ticket(late)
    assert not any(AccessKeys(None, clock).take_ticket(each) for each in ("", "..", ticket))


def test_who_guesses_too_often_has_to_wait_and_then_may_again() -> None:
    clock = Clock()
    guesses = LoginThrottle(clock, limit=3, within=timedelta(minutes=1))
    for _ in range(3):
        assert guesses.wait_s("10.0.0.1") == 0
        guesses.count("10.0.0.1")
        clock.now += timedelta(seconds=10)

    assert 30 <= guesses.wait_s("10.0.0.1") <= 31
    assert guesses.wait_s("10.0.0.2") == 0
    clock.now += timedelta(seconds=31)
    assert guesses.wait_s("10.0.0.1") == 0
