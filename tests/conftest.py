"""What holds for every test."""

from hypothesis import settings

# How long an example takes says nothing on a machine that has other things to do.
settings.register_profile("no time limits", deadline=None)
settings.load_profile("no time limits")
