"""The setting ``DOORKEEP``: one mapping, read once, and again when a test overrides it.

* ``rules``: the rules to use. A list of names of presets and of rules, or a mapping of names as in
  `Limiter.from_config`, each with ``by``. Default: ``login_ip``, ``login_account_ip`` and ``login_account``.
* ``login``: the names of the rules that a log-in counts. Default: all of ``rules``.
* ``redis``: the URL of the store; with ``prefix``, ``timeout`` and ``on_error``. Default: this process's memory.
* ``capacity``: how many windows and strike keys this process keeps.
* ``trusted_proxies``: the networks of your own proxies, and ``header``, the header into which they write the client's
  address.
* ``account``: how spellings of an account become one string: ``"username"`` (the default), ``"email"``, a callable that
  takes a string, or its dotted path.
* ``credential``: the names of the credentials that name an account; each of them is counted. Default: ``username``, the
  ``USERNAME_FIELD`` of the user model, ``email``.
* ``find_users``: a callable, or its path, that takes the name and the value of a credential and returns the users that
  your backends may find with it. Default: by the manager's natural key, or by the field of that name.
* ``forgive``: rules whose keys a right password forgets. Default: those keyed by account and address together.
* ``forgive_address``: rules keyed by an address whose keys a right password forgets. Default: none.
* ``give_back``: rules on which a right password costs nothing. Default: all other rules of ``login``.
* ``give_back_on``: exception classes, or their paths, that give an attempt back: failures of the application that are
  unrelated to the guess, such as a database that is down. Default: none; an attempt stays counted unless it is settled.
* ``paths``: rules on addresses by path or by view: ``{"POST /forgot/": ["reset_ip"], "POST accounts:login": [...]}``. A
  path is a prefix, also after a language as in ``/de/forgot/``; a name is that of a URL pattern. Without a method every
  request is counted; ``GET`` includes HEAD, which Django answers with the same view.
* ``throttles``: rules by scope, for `doorkeep.drf.DoorkeepThrottle`.
* ``round_up``: a duration; the waits of denials by rules that are not keyed by the address alone are rounded up to it.
* ``rate_limit``: whether answers have ``RateLimit`` fields. They show any client how many guesses others have made.
* ``clock``: a callable that returns seconds, for tests.

Knows no request. Invariant: an unknown name is refused, so that a misspelt limit is not a missing limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.utils.module_loading import import_string
from django.utils.translation import get_language_from_path

from doorkeep import (
    ClientIp,
    ConfigError,
    Limiter,
    Rule,
    StrikeRule,
    canonical_email,
    canonical_username,
    http,
    presets,
)
from doorkeep.django.masking import masked

__all__ = ["Configuration", "current"]

_LIMITER = {"redis", "prefix", "timeout", "on_error", "capacity"}
_LOGIN = {"login", "account", "credential", "find_users", "forgive", "forgive_address", "give_back"}
_REST = {"rules", "trusted_proxies", "header", "give_back_on", "paths", "throttles", "round_up", "rate_limit", "clock"}
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


@dataclass(frozen=True)
class Path:
    """Rules on the addresses that request a prefix of paths, or a view by its name."""

    method: str | None
    place: str
    rules: tuple[Rule | StrikeRule, ...]

    @property
    def is_name(self) -> bool:
        return not self.place.startswith("/")

    def covers(self, method: str | None, path: str) -> bool:
        """Return whether this is a prefix of `path`. The path of a view is not known before it is resolved."""
        return not self.is_name and self._is_meant(method) and any(way.startswith(self.place) for way in _ways(path))

    def names(self, method: str | None, view: str) -> bool:
        """Return whether this names `view`."""
        return view == self.place and self._is_meant(method)

    def _is_meant(self, method: str | None) -> bool:
        return self.method in (None, method) or (self.method, method) == ("GET", "HEAD")


@dataclass(frozen=True)
class Configuration:
    """The setting, parsed and validated."""

    limiter: Limiter
    rules: Mapping[str, Rule | StrikeRule]
    login: tuple[Rule | StrikeRule, ...]
    forgive: frozenset[str]
    forgive_address: frozenset[str]
    give_back: frozenset[str]
    client_ip: ClientIp
    account: Callable[[str], str]
    credential: tuple[str, ...]
    find_users: Callable[[str, str], Iterable[Any]] | None
    give_back_on: tuple[type[Exception], ...]
    paths: tuple[Path, ...]
    throttles: Mapping[str, tuple[Rule | StrikeRule, ...]]
    round_up: Any
    rate_limit: bool

    def rule(self, name: str) -> Rule | StrikeRule:
        """Return a rule by its name, or by the name of its preset."""
        return _named(self.rules, name, "a rule")

    def throttle(self, scope: str) -> tuple[Rule | StrikeRule, ...]:
        """Return the rules of a scope of `doorkeep.drf`."""
        if scope not in self.throttles:
            raise ConfigError(f"a scope must be among the throttles of DOORKEEP, scope=`{scope}`")
        return self.throttles[scope]


def current() -> Configuration:
    """Return the configuration of this process. It is read at first use and shared by all threads.

    Raises
    ------
    ConfigError
        The setting is invalid; ``manage.py check`` reports the same error.
    """
    global _current
    configuration = _current
    if configuration is None:
        with _making:
            configuration = _current
            if configuration is None:
                mask()
                configuration = _current = read(getattr(settings, "DOORKEEP", {}))
    return configuration


def read(given: Any) -> Configuration:
    """Parse and validate a mapping like the setting."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"DOORKEEP must be a mapping, DOORKEEP=`{type(given).__name__}`")
    for name in given:
        if name not in _LIMITER | _LOGIN | _REST:
            raise ConfigError(f"unknown name in DOORKEEP, name=`{name}`")
    limiter_options = {name: given[name] for name in _LIMITER & given.keys()}
    listed = given.get("rules", ("login_ip", "login_account_ip", "login_account"))
    if isinstance(listed, Mapping):
        limiter_options["rules"] = listed
    limiter = Limiter.from_config(limiter_options, clock=given.get("clock"))
    rules = dict(limiter.rules) if isinstance(listed, Mapping) else _listed(listed)
    login = tuple(_named(rules, name, "login") for name in _words(given.get("login", list(rules)), "login"))
    if not login:
        # A log-in that no rule counts would be admitted or refused without a visible reason.
        raise ConfigError("login must name at least one rule")
    _check_login(login)
    forgive_address = _names(given.get("forgive_address", ()), login, "forgive_address")
    defaults = {rule.name for rule in login if {"account", "address"} <= set(rule.by)} - forgive_address
    forgive = _names(given.get("forgive", defaults), login, "forgive")
    rest = {rule.name for rule in login} - forgive - forgive_address
    http.check_round_up(given.get("round_up"))
    return Configuration(
        limiter=limiter,
        rules=rules,
        login=login,
        forgive=forgive,
        forgive_address=forgive_address,
        give_back=_names(given.get("give_back", rest), login, "give_back"),
        client_ip=_client_ip(given),
        account=_account(given.get("account", "username")),
        credential=tuple(_words(given.get("credential", _credentials()), "credential")),
        find_users=_find_users(given.get("find_users")),
        give_back_on=classes(given.get("give_back_on", ())),
        paths=tuple(_path(rules, text, names) for text, names in _pairs(given, "paths")),
        throttles={
            scope: _all_named(rules, names, "throttles", f"scope=`{scope}`")
            for scope, names in _pairs(given, "throttles")
        },
        round_up=given.get("round_up"),
        rate_limit=_flag(given, "rate_limit"),
    )


def mask() -> None:
    """Hide passwords in the setting from error reports, which print all settings."""
    if isinstance(given := getattr(settings, "DOORKEEP", None), Mapping):
        settings.DOORKEEP = masked(given)


def classes(given: Any) -> tuple[type[Exception], ...]:
    """Return the classes that ``give_back_on`` lists: exception classes, or their paths."""
    listed = [given] if isinstance(given, str | type) or not isinstance(given, Iterable) else given
    named = tuple(_imported(item, "give_back_on") for item in listed)
    if not all(isinstance(item, type) and issubclass(item, Exception) for item in named):
        raise ConfigError("give_back_on must list exception classes")
    return named


def forget() -> None:
    """Read the setting again at the next use, after a test has changed it."""
    global _current
    with _making:
        _current = None


_current: Configuration | None = None
_making = threading.Lock()


def _listed(listed: Any) -> dict[str, Rule | StrikeRule]:
    rules: dict[str, Rule | StrikeRule] = {}
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise ConfigError(f"rules must be a list or a mapping, rules=`{type(listed).__name__}`")
    for item in listed:
        rule = getattr(presets, item, None) if isinstance(item, str) else item
        if not isinstance(rule, Rule | StrikeRule):
            raise ConfigError(f"rules must be rules or names of presets, rule=`{item}`")
        if rule.name in rules:
            raise ConfigError(f"rules must have names of their own, rule=`{rule.name}`")
        rules[rule.name] = rule
    return rules


def _named(rules: Mapping[str, Rule | StrikeRule], name: str, where: str) -> Rule | StrikeRule:
    # A preset is called login_ip in Python and its rule login-ip; both are accepted.
    rule = rules.get(name) or rules.get(name.replace("_", "-"))
    if rule is None:
        raise ConfigError(f"{where} must be among the rules of DOORKEEP, rule=`{name}`")
    return rule


def _all_named(
    rules: Mapping[str, Rule | StrikeRule], names: Any, where: str, entry: str
) -> tuple[Rule | StrikeRule, ...]:
    if not (words := _words(names, where)):
        raise ConfigError(f"{where} must name at least one rule, {entry}")
    return tuple(_named(rules, name, where) for name in words)


def _names(names: Any, login: Iterable[Rule | StrikeRule], where: str) -> frozenset[str]:
    counted = {rule.name: rule for rule in login}
    return frozenset(_named(counted, name, where).name for name in _words(names, where))


def _check_login(login: tuple[Rule | StrikeRule, ...]) -> None:
    for rule in login:
        if not rule.by:
            raise ConfigError(f"a login rule must say what it is keyed by, rule=`{rule.name}`")
        if unknown := set(rule.by) - {"account", "address"}:
            word = min(unknown)
            raise ConfigError(f"a login rule must be keyed by account or address, rule=`{rule.name}`, by=`{word}`")


def _client_ip(given: Mapping[str, Any]) -> ClientIp:
    if not isinstance(proxies := given.get("trusted_proxies", ()), Iterable):
        raise ConfigError(f"trusted_proxies must be addresses and networks, trusted_proxies=`{proxies}`")
    return ClientIp(**{name: given[name] for name in ("trusted_proxies", "header") if name in given})


def _account(given: Any) -> Callable[[str], str]:
    if given == "username":
        return canonical_username
    if given == "email":
        return canonical_email
    made = _imported(given, "account")
    if not callable(made):
        raise ConfigError(f"account must be `username`, `email` or a callable, account=`{given}`")
    return made  # type: ignore[no-any-return]


def _find_users(given: Any) -> Callable[[str, str], Iterable[Any]] | None:
    made = _imported(given, "find_users")
    if made is not None and not callable(made):
        raise ConfigError(f"find_users must be a callable, find_users=`{given}`")
    return made  # type: ignore[no-any-return]


def _credentials() -> list[str]:
    return list(dict.fromkeys(["username", str(get_user_model().USERNAME_FIELD), "email"]))


def _path(rules: Mapping[str, Rule | StrikeRule], text: str, names: Any) -> Path:
    method, _, place = text.rpartition(" ")
    is_place = place.startswith("/") or (place and "/" not in place)
    if not is_place or (method and method not in _METHODS):
        raise ConfigError(f"paths must be `/prefix` or the name of a view, `METHOD` before it, path=`{text}`")
    covered = _all_named(rules, names, "paths", f"path=`{text}`")
    for rule in covered:
        if tuple(rule.by) != ("address",):
            raise ConfigError(f"rules of paths must be keyed by the address alone, rule=`{rule.name}`")
    return Path(method or None, place, covered)


def _ways(path: str) -> tuple[str, ...]:
    # A language in front, as with i18n_patterns, leads to the same view.
    if not settings.USE_I18N or get_language_from_path(path) is None:
        return (path,)
    _, _, rest = path.lstrip("/").partition("/")
    return (path, f"/{rest}")


def _pairs(given: Mapping[str, Any], name: str) -> Iterable[tuple[str, Any]]:
    pairs = given.get(name, {})
    if not isinstance(pairs, Mapping):
        raise ConfigError(f"{name} must be a mapping, {name}=`{type(pairs).__name__}`")
    return pairs.items()


def _words(given: Any, where: str) -> list[str]:
    words = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{where} must be names, {where}=`{given}`")
    return words


def _flag(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name, False)
    # A string of the environment, such as "false", would be true.
    if not isinstance(value, bool):
        raise ConfigError(f"{name} must be True or False, {name}=`{value}`")
    return value


def _imported(given: Any, where: str) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return import_string(given)
    except ImportError as error:
        raise ConfigError(f"{where} cannot be imported, path=`{given}`") from error
