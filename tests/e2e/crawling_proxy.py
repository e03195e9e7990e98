"""A proxy that passes its callers' bytes on slowly, one byte a second."""

import asyncio
import threading


class CrawlingProxy:
    """A context manager. Forwards connections to `address` to the server. On each connection the caller's first `fast`
    bytes pass at once. After them each byte takes a second, until `hurry`. The server's bytes are not held up."""

    def __init__(self, server_address, fast):
        self._server = server_address.split(":")
        self._fast = fast
        self._hurries = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self):
        self._thread.start()
        self._listener = self._run(asyncio.start_server(self._forward, "127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_):
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def hurry(self):
        self._hurries = True  # Seen by each connection within the second.

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _end(self):
        self._listener.close()
        forwards = asyncio.all_tasks() - {asyncio.current_task()}
        for task in forwards:
            task.cancel()
        await asyncio.gather(*forwards, return_exceptions=True)

    async def _forward(self, reader, writer):
        server_reader, server_writer = await asyncio.open_connection(*self._server)
        ways = [asyncio.create_task(self._copy(server_reader, writer)),
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

    async def _copy(self, reader, writer):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()

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
