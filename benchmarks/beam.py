"""`python -m benchmarks.beam` asks long-term memory the questions of BEAM, chats of people with an assistant.

Everything is packed away when it is asked. A turn counts where 60 words of it are returned, or all of a shorter one,
or 60 % of it; the same holds for BM25 and for dense indexes of all turns and of the user's turns, which get the same
budget and return whole turns.
"""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

from benchmarks.evidence import as_text, measure
from benchmarks.locomo_data import DatasetMissing
from benchmarks.recall import chats_of
from mindbus.logs import configure_logs

BUDGETS = (1200, 2400)
DEFAULT_DATA = "../shared/data/beam_dev_100k.json.gz"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.beam", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MINDBUS_BEAM", DEFAULT_DATA)))
    parser.add_argument("--chats", type=int, help="only so many of them")
    parser.add_argument("--budget-words", type=int, action="append", help="may be given several times")
    parser.add_argument("--whole", action="store_true", help="only uncut turns count")
    parser.add_argument("--json", action="store_true", help="numbers for programs")
    options = parser.parse_args()
    configure_logs("ERROR", "console")
    try:
        chats, _ = chats_of(options.data, ())
    except DatasetMissing as error:
        sys.exit(str(error))
    report = asyncio.run(measure(chats[: options.chats], options.budget_words or BUDGETS, {}))
    print(json.dumps(report.as_json(whole=options.whole)) if options.json else as_text(report))


if __name__ == "__main__":
    main()
