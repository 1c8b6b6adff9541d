"""How thorough random tests are: the short profile of ``make test``, or the long one of ``make test-long``.

A test that sets its own number of examples takes it from ``examples``, so that the long profile multiplies it.
"""

from hypothesis import HealthCheck, settings

SHORT_EXAMPLES = 100
LONG_FACTOR = 20


def register() -> None:
    """Make both known to Hypothesis (``--hypothesis-profile``) and load the short one."""
    for name, count in (("short", SHORT_EXAMPLES), ("long", SHORT_EXAMPLES * LONG_FACTOR)):
        # How long an example takes depends on how busy the machine is, and says nothing about the code.
        settings.register_profile(
            name, max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        )
    settings.load_profile("short")


def examples(short: int) -> int:
    """The number of examples, rounds or seeds in the profile in force, given that of the short profile."""
    return short * settings().max_examples // SHORT_EXAMPLES
