"""Calls of models, kept as private artifacts of whom they were made for."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from bus_schema.artifacts import AIContext, Manifest
from bus_schema.identities import Principal
from bus_schema.model_calls import MODEL_CALL, ModelCall, RecordModelCall
from mindbus.files.keys import new_staging_key
from mindbus.files.store import FileStore
from storage_service.errors import QuotaSpent
from storage_service.registration import ArtifactRegistrar


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """Keeps calls; rights, retention and erasure are those of artifacts."""

    files: FileStore
    registrar: ArtifactRegistrar
    clock: Callable[[], datetime]

    async def keep(self, command: RecordModelCall, call: ModelCall, principal: Principal, step_id: str | None) -> bool:
        """Register a call as an artifact of the principal, in whose trace it was made; False beyond the quota."""
        content, now = call.model_dump_json(exclude_defaults=True).encode(), self.clock()
        key = new_staging_key(principal.owner, now)
        await asyncio.to_thread(self.files.put, key, content)
        cost = command.cost
        context = AIContext(
            model_name=cost.model_name,
            execution_time_ms=cost.took_ms,
            model_calls=1,
            prompt_tokens=cost.prompt_tokens,
            completion_tokens=cost.completion_tokens,
            price=cost.price,
        )
        manifest = Manifest(
            id=command.call_id,
            trace_id=principal.trace_id or MODEL_CALL,
            step_id=step_id,
            created_by=principal.identity,
            created_at=call.called_at,
            owner=principal.owner,
            visibility="private",
            artifact_type=MODEL_CALL,
            content_type="application/json",
            uri=self.files.uri(key),
            size_bytes=len(content),
            checksum=f"sha256:{hashlib.sha256(content).hexdigest()}",
            retention=f"{command.kept_days}d",
            context=context,
        )
        try:
            await self.registrar.register(manifest, principal)
        except QuotaSpent:
            # The call was made all the same, and its tokens count.
            await asyncio.to_thread(self.files.delete, key)
            return False
        return True
