"""The login example of Express, attacked over real HTTP."""

from login_attacks import LoginAttacks


class TestExpressLogin(LoginAttacks):
    folder = "express_login"
