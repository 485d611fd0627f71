"""``python -m asrcli``: the same as ``asr``."""

from asrcli.cli import main

if __name__ == "__main__":
    main()
