"""Agent cards: the public one for everybody, the extended one for an account, with what that may start."""

from collections.abc import Iterator, Sequence

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.constants import PROTOCOL_VERSION_1_0, TransportProtocol

from bus_schema.cards import CardHead, ListCards
from config.shipped import shipped_names, subagent_names
from gateway.access_control import A2A
from gateway.backend import Backend
from mindbus.errors import BusUnavailable, ReplyError
from mindbus.version import __version__

REST = f"{A2A}/v1"
DIALOGUE = "dialogue"
_BEARER = "token"
_TEXTS = ("text/plain", "text/markdown")
_ABOUT = "A team of AI agents behind a durable queue: what it has been asked to do survives every restart."
_CARDS_WITHIN_S = 5.0


async def public_card(backend: Backend, url: str) -> AgentCard:
    """The card without a token: the dialogue and the process cards that are marked as public."""
    cards = [card for card in await _cards(backend) if card.public]
    return _card(url, [_dialogue(), *map(_of_card, cards)])


async def extended_card(backend: Backend, url: str) -> AgentCard:
    """The card with a token: all that its account may start."""
    cards = [card for card in await _cards(backend) if not card.problem]
    talk = [_dialogue()] if backend.account.user_id else []
    helpers = _subagents() if backend.account.user_id else ()
    return _card(url, [*talk, *map(_of_card, cards), *_roles(), *helpers])


async def _cards(backend: Backend) -> Sequence[CardHead]:
    """Process cards; none while nobody answers."""
    try:
        return (await backend.bus.request(ListCards(), timeout_s=_CARDS_WITHIN_S)).items
    except (ReplyError, BusUnavailable):
        return ()


def _card(url: str, skills: Sequence[AgentSkill]) -> AgentCard:
    bearer = HTTPAuthSecurityScheme(scheme="Bearer", description="The token of an account of this gateway.")
    return AgentCard(
        name="MindBus",
        description=_ABOUT,
        version=__version__,
        supported_interfaces=[
            _interface(f"{url}{A2A}", TransportProtocol.JSONRPC),
            _interface(f"{url}{REST}", TransportProtocol.HTTP_JSON),
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
        security_schemes={_BEARER: SecurityScheme(http_auth_security_scheme=bearer)},
        security_requirements=[SecurityRequirement(schemes={_BEARER: StringList()})],
        default_input_modes=_TEXTS,
        default_output_modes=_TEXTS,
        skills=skills,
    )


def _interface(url: str, binding: TransportProtocol) -> AgentInterface:
    return AgentInterface(url=url, protocol_binding=binding, protocol_version=PROTOCOL_VERSION_1_0)


def _dialogue() -> AgentSkill:
    about = "An assistant with a memory, tasks and sub-agents. It remembers what you have said before."
    return AgentSkill(id=DIALOGUE, name="Assistant", description=about, tags=["chat"])


def _of_card(card: CardHead) -> AgentSkill:
    asked = [f"`{name}`: {each.description or each.type}" for name, each in card.parameters.items()]
    about = "\n".join([card.description or card.name, *asked])
    return AgentSkill(id=f"card/{card.name}", name=card.name, description=about, tags=["process"])


def _roles() -> Iterator[AgentSkill]:
    for name in shipped_names("roles"):
        yield AgentSkill(id=f"role/{name}", name=name, description=f"The role {name} alone.", tags=["role"])


def _subagents() -> Iterator[AgentSkill]:
    for name in sorted(subagent_names()):
        about = f"The sub-agent {name}, who answers at once."
        yield AgentSkill(id=f"subagent/{name}", name=name, description=about, tags=["subagent"])
