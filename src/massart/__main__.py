"""The ``massart`` command, also as ``python -m massart``."""

import sys


def main() -> None:
    """Run the command line and exit with its status; 2 when what it needs is not installed."""
    try:
        from massart.cli import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write(f"massart: the command line needs {error.name}: pip install 'massart[cli]'\n")
        sys.exit(2)
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
