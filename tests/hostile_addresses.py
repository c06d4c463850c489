"""Addresses that no manifest may name, grouped by what they try."""


def hostile_addresses(root_url: str, good: str) -> list[str]:
    """`good` is the address of a file that its owner has really staged beneath `root_url`."""
    path = good.removeprefix("file://")
    key = good.removeprefix(f"{root_url}/")
    upload = key.rpartition("/")[2]
    return [
        *_foreign_schemes(path, key),
        *_traversals(root_url, good, key),
        *_disguises(root_url, good, key, upload),
        *_elsewhere(root_url, key, upload),
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
    path = root_url.removeprefix("file://")
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
        key,
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
