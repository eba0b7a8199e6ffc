"""A shop whose login, forgotten password, one-time code and admin are guarded."""
