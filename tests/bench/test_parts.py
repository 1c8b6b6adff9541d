from bench.parts import OTHERS, part_of, shares

_REPORT = """
# Overhead;Shared Object
 30.00%;[kernel.kallsyms]
  2.50%;[vdso]
 40.00%;python3.11
 20.00%;kyanite__mypyc.cpython-311-x86_64-linux-gnu.so
  5.00%;loop.cpython-311-x86_64-linux-gnu.so
  2.00%;libc.so.6
  0.50%;libz.so.1
"""


def test_shares_of_a_report_are_those_of_parts() -> None:
    assert shares(_REPORT) == {
        "kernel": 32.5,
        "interpreter": 40.0,
        "compiled Kyanite": 20.0,
        "event loop": 5.0,
        "C library": 2.0,
        OTHERS: 0.5,
    }


def test_sqlite_is_in_the_library_of_its_binding() -> None:
    assert part_of("__init__.cpython-311-x86_64-linux-gnu.so") == "SQLite"
