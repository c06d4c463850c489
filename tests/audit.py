"""`make audit`: pip-audit over the lock; says so where no database of advisories can be reached."""

import json
import subprocess
import sys
from typing import Any

# It names all that is run, built and developed with.
_LOCK = "requirements-dev.txt"


def main() -> int:
    """1 if something of the lock is known to be vulnerable; 0 also where nobody could be asked, which is said."""
    options = ["--requirement", _LOCK, "--disable-pip", "--require-hashes", "--format", "json", "--progress-spinner"]
    command = [sys.executable, "-m", "pip_audit", *options, "off"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = _found(done.stdout)
    audited = [each for each in found if "skip_reason" not in each]
    for each in (each for each in audited if each["vulns"]):
        told = ", ".join(f"{vuln['id']} (mended in {', '.join(vuln['fix_versions']) or '?'})" for vuln in each["vulns"])
        print(f"{each['name']} {each['version']}: {told}")
    if not audited:
        print("audit: no database of advisories can be reached from here: LEFT OUT", file=sys.stderr)
        return 0
    print(f"audit: {len(audited)} of {len(found)} packages looked up")
    return int(any(each["vulns"] for each in audited))


def _found(output: str) -> list[dict[str, Any]]:
    try:
        dependencies: list[dict[str, Any]] = json.loads(output)["dependencies"]
    except (ValueError, KeyError):
        return []
    return dependencies


if __name__ == "__main__":
    sys.exit(main())
