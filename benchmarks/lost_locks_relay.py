"""Pass connections on to a port of this machine until standard input ends; prints the port it listens on.

Killed, it is a server that is gone; suspended, it is a server that takes requests and does not answer.
"""

import asyncio
import sys
from asyncio import StreamReader, StreamWriter

HOST = "127.0.0.1"


async def _serve(port: int) -> None:
    async def passed_on(here: StreamReader, back: StreamWriter) -> None:
        try:
            answers, there = await asyncio.open_connection(HOST, port)
        except OSError:
            back.close()
            return
        await asyncio.gather(_pump(here, there), _pump(answers, back))

    server = await asyncio.start_server(passed_on, HOST, 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


async def _pump(source: StreamReader, sink: StreamWriter) -> None:
    try:
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
    except OSError:
        pass  # one side closed; so will the other
    finally:
        sink.close()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
