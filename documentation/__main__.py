"""``python -m documentation``: write the generated parts of all pages again."""

from documentation.generated import PARTS
from documentation.pages import pages, with_parts


def main() -> None:
    for page in pages():
        text = page.read_text()
        written = with_parts(text, PARTS)
        if written != text:
            page.write_text(written)
            print(f"written: {page.name}")


if __name__ == "__main__":
    main()
