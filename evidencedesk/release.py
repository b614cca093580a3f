"""Which release this is; recorded answers name it."""

VERSION = "0.1.0"
