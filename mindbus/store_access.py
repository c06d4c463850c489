"""Whether this process reads and writes the file store itself."""

from mindbus.settings import Settings


def has_direct_access(settings: Settings) -> bool:
    """As the settings say; else by whether there is a folder, or a key to the object store.

    The role of a machine is not looked for, since to ask for it is to wait for the network on every other machine.
    """
    if settings.artifacts_access != "auto":
        return settings.artifacts_access == "direct"
    return not settings.files_url.startswith("s3:") or settings.s3_access_key is not None or _finds_a_key()


def _finds_a_key() -> bool:
    # Imported here: only who keeps files in an object store pays for it.
    from botocore.session import get_session

    providers = get_session().get_component("credential_provider")
    for of_a_machine in ("container-role", "iam-role"):
        providers.remove(of_a_machine)
    return providers.load_credentials() is not None
