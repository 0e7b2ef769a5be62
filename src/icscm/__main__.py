"""`python -m icscm`, for where the command is not on the path."""

from icscm.cli import main

if __name__ == "__main__":
    main()
