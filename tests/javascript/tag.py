import asyncio

await asyncio.sleep(0)  # noqa: F704
print("total", x.sum().item())  # noqa: F821
raise ValueError("the last line")
