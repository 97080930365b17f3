import hashlib
import hmac
import re
import time

TOLERANCE_SECONDS = 300


def is_genuine(body: bytes, signature: str | None, secret: str) -> bool:
    """`body` is what came in, before anything parses it; without the header, `signature` is None."""
    parts = [part.strip().partition("=") for part in (signature or "").split(",")]
    stamp = next((value for name, _, value in parts if name == "t"), "")
    if not re.fullmatch("[0-9]{1,15}", stamp):
        return False
    if abs(time.time() - int(stamp)) > TOLERANCE_SECONDS:
        return False
    signed = stamp.encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
    given = [value.encode() for name, _, value in parts if name == "v1"]
    return any(hmac.compare_digest(value, expected) for value in given)
