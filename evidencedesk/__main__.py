"""`python -m evidencedesk` is the command `evidencedesk`."""

from evidencedesk.cli import main

if __name__ == "__main__":
    main()
