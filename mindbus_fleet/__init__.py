"""The MindBus fleet: supervision, a private RabbitMQ node, the product's commands.

In a wheel the packages of the workers lie in the folder `packages` here, not beside other people's packages, of which
some are called `agents` or `memory` as well (openai-agents is). Importing this package puts that folder first on the
path; in a checkout there is none.
"""

import sys
from pathlib import Path

from bus_schema.codes import Code
from mindbus.errors import MindBusError

_PACKAGES = Path(__file__).parent / "packages"


class NameTaken(MindBusError, code=Code.CONFLICT):
    """Another package of that name is imported in this process already."""


def _add_packages() -> None:
    for folder in _PACKAGES.iterdir():
        module = sys.modules.get(folder.name)
        # Of a namespace package the file is None.
        if module is not None and Path(getattr(module, "__file__", None) or "/").parent != folder:
            raise NameTaken(
                f"the fleet's `{folder.name}` cannot be imported beside another package's `{folder.name}` in one "
                "process: run the fleet from a virtual environment of its own (pip install mindbus-fleet); a worker "
                "or program of one's own needs only `pip install mindbus`"
            )
    sys.path.insert(0, str(_PACKAGES))


if _PACKAGES.is_dir() and str(_PACKAGES) not in sys.path:
    _add_packages()
