"""The login example of Fastify, attacked over real HTTP."""

from login_attacks import LoginAttacks


class TestFastifyLogin(LoginAttacks):
    folder = "fastify_login"
