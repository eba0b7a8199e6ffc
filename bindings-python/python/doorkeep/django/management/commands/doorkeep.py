"""``manage.py doorkeep status|reset|check``: the tasks of an operator at a terminal.

Runs in its own process. Without a store it cannot reach the counters of the workers, and reports that.
"""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import ERROR
from django.core.management.base import BaseCommand, CommandError, CommandParser

from doorkeep import ConfigError, InvalidKeyError, Limiter
from doorkeep.django import checks, conf
from doorkeep.django.operating import key_for, policy

__all__ = ["Command"]

_IN_MEMORY = "state is in the memory of each worker, where this command cannot reach it"


class Command(BaseCommand):
    """Show the rules and the store, forget a key, or check the settings."""

    help = "Shows doorkeep's rules and store, forgets a key, or judges the settings."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the three actions."""
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("status", help="the rules, and whether the store answers")
        reset = actions.add_parser("reset", help="forget one key: unlock an account or an address")
        reset.add_argument("rule", help="the name of a rule")
        reset.add_argument("value", nargs="+", help="a text for each word that the rule is keyed by, in its order")
        actions.add_parser("check", help="judge the settings, with the advice that doorkeep has on the rules")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run an action."""
        action = options["action"]
        if action == "check":
            self._check()
            return
        try:
            configuration = conf.current()
        except (ConfigError, TypeError) as error:
            raise CommandError(f"DOORKEEP is not acceptable: {error}") from error
        if action == "status":
            self._status(configuration)
        else:
            self._reset(configuration, options["rule"], options["value"])

    def _status(self, configuration: conf.Configuration) -> None:
        for rule in configuration.rules.values():
            use = "log-in" if rule in configuration.login else ""
            self.stdout.write(f"{rule.name:32} {policy(rule):32} by {', '.join(rule.by):20} {use}".rstrip())
        if configuration.limiter.store is None:
            self.stdout.write(f"store: none; {_IN_MEMORY}")
            return
        host = settings.DOORKEEP["redis"].rpartition("@")[2].rpartition("://")[2]
        place = urlsplit(f"//{host}")
        answers = _store_answers(configuration.limiter, configuration)
        state = self.style.SUCCESS("answers") if answers else self.style.ERROR("does not answer")
        self.stdout.write(f"store: {place.hostname}:{place.port or 6379} {state}")
        if not answers:
            raise CommandError("on_error decides until the store answers")

    def _reset(self, configuration: conf.Configuration, name: str, values: list[str]) -> None:
        try:
            rule = configuration.rule(name)
            if len(values) != len(rule.by):
                raise CommandError(f"rule `{rule.name}` is keyed by {', '.join(rule.by)}: give as many values")
            key = key_for(rule, dict(zip(rule.by, values, strict=True)))
        except (ConfigError, InvalidKeyError) as error:
            raise CommandError(str(error)) from error
        if configuration.limiter.store is None:
            raise CommandError(f"{_IN_MEMORY}: use the admin, once for each worker, or a store")
        if not configuration.limiter.reset(key):
            raise CommandError("the store was not reached, nothing was forgotten there")
        self.stdout.write(self.style.SUCCESS(f"forgotten, rule=`{rule.name}`"))

    def _check(self) -> None:
        messages = [*checks.check_settings(), *checks.check_deployment()]
        for message in messages:
            self.stdout.write(str(message))
        if any(message.level >= ERROR for message in messages):
            raise CommandError("the settings are not acceptable")
        self.stdout.write(f"{len(messages)} remarks" if messages else self.style.SUCCESS("nothing to remark"))


def _store_answers(limiter: Limiter, configuration: conf.Configuration) -> bool:
    # An unused key: peeking counts nothing, and shows whether the store or this process answered.
    rule = next(iter(configuration.rules.values()))
    decision = limiter.peek(rule.key(secrets.token_hex(16)))
    return not decision.degraded and decision.reason != "unavailable"
