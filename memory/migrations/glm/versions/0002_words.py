"""Words of units in their stems, vectors of a model that is to come."""

import sqlalchemy as sa
from alembic import op

from language.words import stems

revision = "0002"
down_revision = "0001"

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
BATCH = 500


def upgrade() -> None:
    op.create_table(
        "kem_texts",
        sa.Column("seq", NUMBER, autoincrement=True, primary_key=True),
        sa.Column("kem_id", sa.String(128), sa.ForeignKey("kems.id", ondelete="CASCADE"), nullable=False),
        sa.Column("stems", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_kem_texts_kem_id", "kem_texts", ["kem_id"], unique=True)
    if op.get_bind().dialect.name == "sqlite":
        _index_on_sqlite()
    else:
        _index_on_postgresql()
    op.create_table(
        "kem_next_vectors",
        sa.Column("kem_id", sa.String(128), sa.ForeignKey("kems.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("model", sa.String(128), nullable=False),
        sa.Column("vector", sa.LargeBinary),
    )
    op.create_table(
        "spaces",
        sa.Column("number", sa.Integer, autoincrement=False, primary_key=True),
        sa.Column("model", sa.String(128), nullable=False),
        sa.Column("dim", sa.Integer, nullable=False),
    )
    _fill()


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TABLE kem_words")
    for table in ("spaces", "kem_next_vectors", "kem_texts"):
        op.drop_table(table)


def _index_on_sqlite() -> None:
    # Stems are letters, digits: the tokenizer has nothing to do but to part them.
    op.execute(
        "CREATE VIRTUAL TABLE kem_words USING fts5("
        "stems, content='kem_texts', content_rowid='seq', tokenize='unicode61 remove_diacritics 0')"
    )
    op.execute(
        "CREATE TRIGGER kem_texts_come AFTER INSERT ON kem_texts BEGIN"
        " INSERT INTO kem_words (rowid, stems) VALUES (new.seq, new.stems); END"
    )
    op.execute(
        "CREATE TRIGGER kem_texts_go AFTER DELETE ON kem_texts BEGIN"
        " INSERT INTO kem_words (kem_words, rowid, stems) VALUES ('delete', old.seq, old.stems); END"
    )


def _index_on_postgresql() -> None:
    # Not a parser of the database's own: what is a word, the stems say.
    vector = "array_to_tsvector(string_to_array(stems, ' '))"
    op.execute(f"ALTER TABLE kem_texts ADD COLUMN words tsvector GENERATED ALWAYS AS ({vector}) STORED")
    op.execute("CREATE INDEX ix_kem_texts_words ON kem_texts USING gin (words)")


def _fill() -> None:
    """Units that were there before are found by their words, too."""
    connection = op.get_bind()
    kems = sa.table("kems", sa.column("id", sa.String), sa.column("content", sa.LargeBinary))
    texts = sa.table("kem_texts", sa.column("kem_id", sa.String), sa.column("stems", sa.Text))
    last = ""
    while True:
        query = sa.select(kems).where(kems.c.id > last, kems.c.content.is_not(None)).order_by(kems.c.id).limit(BATCH)
        rows = connection.execute(query).all()
        if not rows:
            return
        texts_of = ((row.id, " ".join(stems(bytes(row.content).decode()))) for row in rows)
        if found := [{"kem_id": kem_id, "stems": text} for kem_id, text in texts_of if text]:
            connection.execute(sa.insert(texts), found)
        last = rows[-1].id
