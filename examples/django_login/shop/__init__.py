"""A shop whose log-in, forgotten password, one-time code and admin are guarded."""
