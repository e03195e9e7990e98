"""What proxies of TCP connections have in common: a listener, and a thread with a loop for its connections."""

import asyncio
import threading


class Proxy:
    """A context manager. Each connection to `address` is handed to forward(reader, writer), which subclasses have."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        self._listener = self._run(asyncio.start_server(self.forward, "127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_):
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _end(self):
        self._listener.close()
        forwards = asyncio.all_tasks() - {asyncio.current_task()}
        for task in forwards:
            task.cancel()
        await asyncio.gather(*forwards, return_exceptions=True)


async def pass_on(reader, writer):
    """Passes the bytes on as they come, to their end."""
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
