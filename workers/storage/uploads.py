"""Answers for those who have no access to the store themselves: addresses, signed for a while."""

from bus_schema.uploads import ClaimAddress, ClaimUpload, OpenClaim, RequestClaim, RequestUpload, Upload
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from storage_service.service import StorageService
from workers.storage.answering import answering


class UploadDesk:
    """The part of storage that lets bytes in and out; what it signs is told to the asker alone, never written down."""

    storage: StorageService

    @on_command
    async def request_upload(self, query: RequestUpload, context: MessageContext) -> Upload:
        with answering(context) as principal:
            return await self.storage.uploads.request(query, principal)

    @on_command
    async def request_claim(self, query: RequestClaim, context: MessageContext) -> ClaimUpload:
        with answering(context):
            return await self.storage.uploads.request_claim(query)

    @on_command
    async def open_claim(self, query: OpenClaim, context: MessageContext) -> ClaimAddress:
        with answering(context):
            return await self.storage.uploads.open_claim(query.key)
