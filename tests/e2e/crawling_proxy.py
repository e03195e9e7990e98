"""A proxy that passes its callers' bytes on slowly, one byte a second."""

import asyncio

from proxy import Proxy, pass_on


class CrawlingProxy(Proxy):
    """A context manager. Forwards connections to `address` to the server. On each connection the caller's first `fast`
    bytes pass at once. After them each byte takes a second, until `hurry`. The server's bytes are not held up."""

    def __init__(self, server_address, fast):
        super().__init__()
        self._server = server_address.split(":")
        self._fast = fast
        self._hurries = False

    def hurry(self):
        self._hurries = True  # Seen by each connection within the second.

    async def forward(self, reader, writer):
        server_reader, server_writer = await asyncio.open_connection(*self._server)
        ways = [asyncio.create_task(pass_on(server_reader, writer)),
                asyncio.create_task(self._crawl(reader, server_writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pass  # The proxy ends.
        for way in ways:
            way.cancel()
        for end in (writer, server_writer):
            end.close()
        await asyncio.gather(*ways, writer.wait_closed(), server_writer.wait_closed(), return_exceptions=True)

    async def _crawl(self, reader, writer):
        sent = 0
        while True:
            size = 1 << 16
            if sent < self._fast:
                size = self._fast - sent
            elif not self._hurries:
                await asyncio.sleep(1)  # The crawling itself.
                size = 1
            data = await reader.read(size)
            if not data:
                return
            writer.write(data)
            await writer.drain()
            sent += len(data)
