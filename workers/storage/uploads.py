"""Signed addresses for participants without access to the store."""

from bus_schema.uploads import ClaimAddress, ClaimUpload, OpenClaim, RequestClaim, RequestUpload, Upload
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from storage_service.service import StorageService
from workers.storage.principal import principal_of


class UploadHandlers:
    """Handlers of signed addresses, which go to the requester alone and are never logged."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    async def request_upload(self, query: RequestUpload, context: MessageContext) -> Upload:
        principal = principal_of(context)
        return await self._storage.uploads.request(query, principal)

    @on_command
    async def request_claim(self, query: RequestClaim) -> ClaimUpload:
        return await self._storage.uploads.request_claim(query)

    @on_command
    async def open_claim(self, query: OpenClaim) -> ClaimAddress:
        return await self._storage.uploads.open_claim(query.key)
