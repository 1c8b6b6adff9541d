"""The accounts of the server that the tests of the official clients share, beside the development account."""

import base64

SECOND_KEY = base64.b64encode(b"the second key of the account").decode()
OTHER_ACCOUNT = "otheraccount"
OTHER_KEY = base64.b64encode(b"the key of the other account").decode()
