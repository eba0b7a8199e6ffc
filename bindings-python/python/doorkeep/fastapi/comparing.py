"""Compares what the keys of a guard read of a request with what its endpoint reads.

FastAPI makes two bodies of two parameters with different names. Keys that are made from one and an endpoint that reads
the other would let a client count under one account and guess at another. Invariant: a route is compared before its
first request is counted.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, get_args
from weakref import WeakSet, WeakValueDictionary

from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import get_dependant
from pydantic import BaseModel
from starlette.requests import HTTPConnection
from starlette.types import Scope

from doorkeep import ConfigError

__all__ = ["Comparison", "counting_dependencies"]

# The dependencies of guards. They are skipped when a route is read: what one guard reads proves nothing about another.
counting_dependencies: WeakSet[Callable[..., Any]] = WeakSet()


class Comparison:
    """A dependency that refuses keys made from another body or another query than the endpoint reads."""

    def __init__(self, keys: Callable[..., Any]) -> None:
        self._keys = keys
        # By id, since a route is not hashable.
        self._compared: WeakValueDictionary[int, Any] = WeakValueDictionary()

    async def __call__(self, connection: HTTPConnection) -> None:
        """Compare the route of this request, once.

        Raises
        ------
        ConfigError
            The endpoint does not read a parameter of the body or the query that the keys are made from.
        """
        route = _route_of(connection.scope)
        dependant: Dependant | None = getattr(route, "dependant", None)
        if dependant is None or self._compared.get(id(route)) is route:
            return
        of_keys = _parameters(get_dependant(path=dependant.path or "/", call=self._keys))
        of_rest = _parameters(dependant)
        for (_, name), kinds in of_keys.items() if of_rest else ():
            others = of_rest.get((_, name), [])
            if not any(_is_part(kind, other) for kind in kinds for other in others):
                raise ConfigError(
                    "the keys of a guard must be made from what the endpoint reads: "
                    f"give the parameter the same name and type in both, parameter=`{name}`"
                )
        self._compared[id(route)] = route


def _route_of(scope: Scope) -> Any:
    """Return the route of the request as FastAPI prepared it, with all its dependencies."""
    route = scope.get("route")
    # Newer releases prepare it once for each router that includes the route, and keep it here.
    included = scope.get("fastapi", {}).get("effective_route_context")
    return included if getattr(included, "original_route", None) is route else route


def _parameters(dependant: Dependant) -> dict[tuple[str, str], list[Any]]:
    """Return the parameters read from the body and the query outside guards: types by place and name."""
    found: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)

    def visit(one: Dependant) -> None:
        for field in one.body_params:
            found["body", field.alias].append(field.field_info.annotation)
        for field in one.query_params:
            names = _names(field.field_info.annotation)
            for name in names.values() if names else [field.alias]:
                found["query", str(name)].append(str)
        for dependency in one.dependencies:
            if dependency.call not in counting_dependencies:
                visit(dependency)

    visit(dependant)
    return found


def _is_part(kind: Any, whole: Any) -> bool:
    """Return whether `whole` also reads, under the same names, every field that `kind` reads from JSON."""
    return kind in (whole, *get_args(whole)) or _names(kind).items() <= _names(whole).items()


def _names(kind: Any) -> dict[str, Any]:
    """Return the name of each field of a model in JSON; empty for other types."""
    fields = kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}
    return {name: field.validation_alias or name for name, field in fields.items()}
