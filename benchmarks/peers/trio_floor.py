"""A bare trio server that answers frames with as many zero bytes as the frame asks for: what the
socket alone costs.

It speaks no Kafka. Behind the size prefix a request carries the size of the answer as four bytes;
so the same driver can ask it for answers as long as the real ones. Answers to the requests of one
read leave in one send.
"""

import struct

import trio

HEADER = struct.Struct(">ii")


async def serve(stream: trio.SocketStream) -> None:
    answers: dict[int, bytes] = {}
    pending = bytearray()
    async for data in stream:
        pending += data
        batch = []
        while len(pending) >= HEADER.size:
            size, wanted = HEADER.unpack_from(pending)
            if len(pending) < size + 4:
                break
            del pending[: size + 4]
            if wanted not in answers:
                answers[wanted] = struct.pack(">i", wanted) + bytes(wanted)
            batch.append(answers[wanted])
        if batch:
            await stream.send_all(b"".join(batch))


async def main() -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    print(f"ready: bootstrap.servers=127.0.0.1:{port}", flush=True)
    await trio.serve_listeners(serve, listeners)


if __name__ == "__main__":
    trio.run(main)
