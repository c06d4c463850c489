"""Addresses that no manifest may name, names that nothing may have; grouped by what they try."""

from urllib.parse import urlsplit


def hostile_addresses(root_url: str, good: str) -> list[str]:
    """`good` is the address of a file that its owner has really staged beneath `root_url`, be it a folder or S3."""
    path = urlsplit(good).path
    key = good.removeprefix(f"{root_url}/")
    upload = key.rpartition("/")[2]
    return [
        *_foreign_schemes(path, key),
        *_other_machines(path, key),
        *_devices(key),
        *_traversals(root_url, good, key),
        *_disguises(root_url, good, key, upload),
        *_lookalikes(root_url, good, key),
        *_foreign_buckets(root_url, key),
        *_elsewhere(root_url, key, upload),
    ]


def hostile_names() -> list[str]:
    """What an id, a type, an owner, a trace, an upload may not be called."""
    return [
        *(
            "",
            " ",
            ".",
            "..",
            "/",
            "\\",
            "~",
            "-",
            "*",
            "?",
            "%",
            "\0",
            "\n",
            "art_",
            "art_ ",
            "art_.",
            "art_..",
            "art_~",
        ),
        *(
            "../../etc/passwd",
            "art_/../../etc/passwd",
            "art_..%2f..%2fetc%2fpasswd",
            "art_%2e%2e",
            "art_..\\..\\secret",
        ),
        *(
            "art_a/b",
            "art_a\\b",
            "/art_a",
            "art_a/",
            "art_a\0",
            "art_a\0.md",
            "art_a\n",
            "art_a\r\nSet-Cookie: x=1",
            "art_a\t",
        ),
        *(
            'art_a"; filename="evil.exe',
            "art_a';--",
            "art_a;b",
            "art_a&b",
            "art_a?versionId=1",
            "art_a#b",
            "art_a b",
            "art_a:b",
        ),
        *(
            "art_${HOME}",
            "art_$(id)",
            "art_`id`",
            "art_{{7*7}}",
            "art_%s%n",
            "art_*",
            "art_[a]",
            "art_a,art_b",
            "art_a@b",
        ),
        *(
            "art_а",
            "аrt_a",
            "art_é",
            "art_ａ",
            "art_\u202egpj",
            "art_\u200b",
            "art_\ufeff",
            "art_a\u2028",
            "art_a\x7f",
            "art_\x1b[2J",
        ),
        *(
            "CON",
            "art_CON.md",
            "art_a.",
            "art_a.md",
            "file:///etc/passwd",
            "http://127.0.0.1/",
            "s3://bucket/key",
            "//host/share",
        ),
        "art_" + "a" * 65,
        "art_" + "a" * 100_000,
    ]


def _foreign_schemes(path: str, key: str) -> list[str]:
    return [
        "github://torvalds:linux@master/README",
        "ftp://127.0.0.1/etc/passwd",
        "sftp://127.0.0.1/etc/passwd",
        "ssh://127.0.0.1/etc/passwd",
        "smb://127.0.0.1/share/file",
        "http://127.0.0.1:80/latest/meta-data",
        "https://127.0.0.1/" + key,
        "HTTP://127.0.0.1/" + key,
        "s3://bucket/" + key,
        "s3a://bucket/" + key,
        "gs://bucket/" + key,
        "abfs://container@account/" + key,
        "hdfs://127.0.0.1:8020/" + key,
        "webhdfs://127.0.0.1:50070/" + key,
        "dbfs://127.0.0.1/" + key,
        "git://:master@" + path,
        "jupyter://127.0.0.1:8888/" + key,
        "hf://datasets/somebody/something/" + key,
        "data:text/plain;base64,cHduZWQ=",
        "memory://" + path,
        "local://" + path,
        "reference://" + path,
        f"zip://member.txt::http://127.0.0.1{path}",
        f"zip://member.txt::file://{path}",
        f"simplecache::http://127.0.0.1{path}",
        f"filecache::file://{path}",
        f"blockcache::s3://bucket/{key}",
        f"tar://inner::file://{path}",
        f"file://{path}::http://127.0.0.1/",
        f"dir::file://{path}",
        "javascript:alert(1)",
        "//127.0.0.1/share/" + key,
    ]


def _other_machines(path: str, key: str) -> list[str]:
    return [
        "http://[::1]/" + key,
        "http://[::ffff:127.0.0.1]/" + key,
        "http://2130706433/" + key,
        "http://0x7f000001/" + key,
        "http://0177.0.0.1/" + key,
        "http://localhost./" + key,
        "http://169.254.169.254/latest/meta-data/iam/security-credentials/",
        "file://[::1]" + path,
        "file://127.0.0.1:80" + path,
        "file://example.org" + path,
        "\\\\127.0.0.1\\share\\" + key,
        "file://///127.0.0.1/share/" + key,
        "gopher://127.0.0.1/_GET%20/",
        "dict://127.0.0.1/info",
        "ldap://127.0.0.1/o=x",
        "tftp://127.0.0.1/" + key,
        "ws://127.0.0.1/" + key,
        "s3://127.0.0.1/" + key,
        "s3://[::1]/" + key,
        "s3://key:secret@127.0.0.1/" + key,
        "oci://bucket@namespace/" + key,
        "github://somebody:something@main/" + key,
        "cached::http://127.0.0.1/" + key,
        f"zip://{key}::https://127.0.0.1/archive.zip",
    ]


def _devices(key: str) -> list[str]:
    return [
        "/dev/zero",
        "file:///dev/zero",
        "file:///dev/random",
        "file:///dev/stdin",
        "file:///dev/fd/0",
        "file:///proc/self/environ",
        "file:///proc/self/mem",
        "file:///proc/self/root" + "/" + key,
        "file:///sys/kernel/notes",
        "\\\\.\\PhysicalDrive0",
        "\\\\?\\C:\\" + key,
        "C:\\" + key,
        "c:/" + key,
        "php://filter/resource=" + key,
        "jar:file:///a.jar!/" + key,
        "-",
        "|cat /etc/passwd",
    ]


def _traversals(root_url: str, good: str, key: str) -> list[str]:
    day = "/".join(key.split("/")[:4])
    owner, upload = key.split("/")[4:]
    return [
        "file://../../etc/passwd",
        "file:///../../etc/passwd",
        "file:///etc/passwd",
        f"{root_url}/../../../../etc/passwd",
        f"{root_url}/staging/../../storage.db",
        f"{root_url}/{day}/{owner}/../{owner}/{upload}",
        f"{root_url}/{day}/../../../../{key}",
        f"{root_url}/./{key}",
        f"{root_url}/{day}/./{owner}/{upload}",
        f"{root_url}//{key}",
        f"{root_url}/{day}//{owner}/{upload}",
        f"{root_url}/%2e%2e/%2e%2e/etc/passwd",
        f"{root_url}/{day}/{owner}/%2e%2e/{owner}/{upload}",
        f"{root_url}/{day}/%2e%2e%2f{owner}/{upload}",
        f"{root_url}/{day}/{owner}%2f{upload}",
        f"{root_url}/{day}/{owner}/..%00{upload}",
        f"{root_url}/{day}/{owner}/..\\{upload}",
        f"{root_url}\\{key}",
        good.replace("/staging/", "\\staging\\"),
        f"{good}/..",
        f"{good}/.",
        f"{good}/",
    ]


def _disguises(root_url: str, good: str, key: str, upload: str) -> list[str]:
    path = urlsplit(root_url).path
    return [
        f"{good}\0",
        f"{good}\0.txt",
        f"{root_url}/\0/{key}",
        f"{good}\n",
        f"{good}\r\n",
        f"\n{good}",
        f" {good}",
        f"{good} ",
        f"\ufeff{good}",
        f"{good}?versionId=1",
        f"{good}#fragment",
        f"{good};type=a",
        f"FILE://{path}/{key}",
        f"File://{path}/{key}",
        f"file:{path}/{key}",
        f"file:/{path}/{key}",
        f"file:////{path.lstrip('/')}/{key}",
        f"file://localhost{path}/{key}",
        f"file://127.0.0.1{path}/{key}",
        f"file://user:secret@localhost{path}/{key}",
        f"file://user@{path}/{key}",
        path + "/" + key,
        f"/{key}",
        f"./{key}",
        f"{key}\n",
        f"~root/{key}",
        f"file://~root/.ssh/{upload}",
        f"file://~/{key}",
        f"${{HOME}}/{key}",
        f"{root_url}/{key.replace('/', '∕')}",
        f"{root_url}/{key.replace('_', '.')}",
        f"{root_url}/{key[: -len(upload)]}{upload.upper()}A",
        f"{root_url}/{key[: -len(upload)]}{'０' * 32}",
        f"{root_url}/{key.replace('2026', '２０２６')}",
    ]


def _lookalikes(root_url: str, good: str, key: str) -> list[str]:
    return [
        good.replace("staging", "stаging"),
        good.replace("staging", "ѕtaging"),
        good.replace("/staging/", "／staging／"),
        good.replace("/staging/", "⁄staging⁄"),
        f"{root_url}/staging/․․/{key}",
        f"{root_url}/staging/‥/{key}",
        f"{root_url}/staging/。。/{key}",
        f"{root_url}/staging/..;/{key}",
        f"{root_url}/staging/%252e%252e/{key}",
        f"{root_url}/staging/%c0%ae%c0%ae/{key}",
        f"{root_url}/staging/%uff0e%uff0e/{key}",
        good.replace("staging", "stag\u00ading"),
        good.replace("staging", "stag\u200bing"),
        good.replace("staging", "\u202egnigats"),
        good.replace("staging", "STAGING"),
        f"{good}\x7f",
        f"{good}\x1b[2J",
        f"{good}\t",
        f"{good}\x85",
        f"{good}\u2028",
        f"{good}\u0301",
        good.replace("://", "：//"),
        good.replace("://", ":\\\\"),
        good.replace("://", ":"),
        good + "/" + "a" * 900,
    ]


def _foreign_buckets(root_url: str, key: str) -> list[str]:
    bucket = urlsplit(root_url).netloc or "mindbus"
    return [
        f"s3://{bucket}-of-another/{key}",
        f"s3://another/{key}",
        f"s3://{bucket}@another/{key}",
        f"s3://key:secret@{bucket}/{key}",
        f"s3://{bucket}:80/{key}",
        f"s3://{bucket}.example.org/{key}",
        f"s3://{bucket}%2f{key}",
        f"s3:///{bucket}/{key}",
        f"s3:{bucket}/{key}",
        f"s3://{bucket}\\{key}",
        f"s3://{bucket}/../another/{key}",
        f"s3://{bucket}/{key}?versionId=null",
        f"S3://{bucket}/{key}",
        f"s3a://{bucket}/{key}",
        f"s3n://{bucket}/{key}",
        f"arn:aws:s3:::{bucket}/{key}",
        f"https://{bucket}.s3.amazonaws.com/{key}?X-Amz-Signature=0",
        f"simplecache::s3://{bucket}/{key}",
    ]


def _elsewhere(root_url: str, key: str, upload: str) -> list[str]:
    day = "/".join(key.split("/")[1:4])
    return [
        root_url,
        f"{root_url}/",
        f"{root_url}/staging",
        f"{root_url}/staging/{day}",
        f"{root_url}/staging/{day}/agent_researcher",
        f"{root_url}/staging/{day}/agent_critic/{upload}",
        f"{root_url}/staging/{day}/svc_storage/{upload}",
        f"{root_url}/staging/{day}/agent_researcher_1/{upload}",
        f"{root_url}/staging/{day}/agent.researcher/{upload}",
        f"{root_url}/staging/{day}/agent_researcher/{upload[:-1]}",
        f"{root_url}/staging/{day}/agent_researcher/{upload}0",
        f"{root_url}/staging/{day}/agent_researcher/{upload}.part",
        f"{root_url}/staging/{day}/agent_researcher/{upload[:-1]}g",
        f"{root_url}/staging/2026/02/30/agent_researcher/{upload}",
        f"{root_url}/staging/2026/3/14/agent_researcher/{upload}",
        f"{root_url}/staging/0000/00/00/agent_researcher/{upload}",
        f"{root_url}/objects/sha256/aa/bb/{'a' * 64}/1",
        f"{root_url}/objects/.tmp/{upload}",
        f"{root_url}/claims/{day}/{'a' * 64}",
        f"{root_url}-of-another/{key}",
        f"{root_url}/quarantine/{day}/{upload}",
    ]
