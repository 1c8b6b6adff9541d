"""SMB 2.1 to 3.1.1 as bytes (MS-SMB2 §2.2, MS-FSCC §2): what a server reads and what it writes, and nothing else.

A request is decoded from its *message*: everything from its 64-byte header up to the next message of the chain, since
the offsets inside a body count from there. A response is encoded as a *body*, which follows a header of its own. Large
data is passed on as views of the message, and a response that carries such data is a list of buffers, so that no
payload is copied on the way.

A decoder returns a value or raises ``kyanite.wire.malformed.Malformed``, whose code is the name of the status that
answers the request (``status.Status``). What is malformed in a frame, a transform header, a header or a chain has no
answer: the connection is closed.
"""
