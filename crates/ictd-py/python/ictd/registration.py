"""The library's random tasks as environments that Gymnasium knows.

How ``gymnasium.make("ictd/BoyanChain-v0")`` finds them depends on Gymnasium. Version 0.29 calls the entry points of installed packages, so
that nothing else is needed. Versions from 1.0 on have no entry points: ``import ictd`` comes first, or
``gymnasium.make("ictd:ictd/BoyanChain-v0")``, which imports it.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any, cast

__all__ = ["register", "register_when_imported"]

_TASKS = ("BoyanChain", "Loop", "Dense")


def register() -> None:
    """Registers ``ictd/BoyanChain-v0``, ``ictd/Loop-v0`` and ``ictd/Dense-v0`` with Gymnasium, where they are not yet.

    ``import ictd`` does it, now or as soon as Gymnasium is imported; there is no need to call this.
    """
    registration = importlib.import_module("gymnasium.envs.registration")
    for name in _TASKS:
        if f"ictd/{name}-v0" not in registration.registry:
            registration.register(id=f"ictd/{name}-v0", entry_point=f"ictd.environments:{name}")


class _WhenImported:
    """Registers the tasks when Gymnasium is imported: it finds no module itself, but adds to what is done after that of Gymnasium."""

    module = "gymnasium.envs"

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.module:
            return None
        found = (finder.find_spec(name, path, target) for finder in list(sys.meta_path) if finder is not self and hasattr(finder, "find_spec"))
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            self._add(spec.loader)
        return spec

    def _add(self, loader: Any) -> None:
        execute = loader.exec_module

        def then_register(module: Any) -> None:
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            cast(dict[str, Any], vars(loader)).pop("exec_module", None)
            execute(module)
            try:
                register()
            except Exception as error:  # Whatever happens, it is no reason for which Gymnasium could not be imported.
                warnings.warn(f"the tasks of ictd are not known to Gymnasium: {error!r}", RuntimeWarning, stacklevel=2)

        # Of this module's loader alone: the loader stays what it is to everybody else.
        loader.exec_module = then_register


def register_when_imported() -> None:
    """Registers now where Gymnasium is imported, and otherwise as soon as it is."""
    if _WhenImported.module in sys.modules:
        register()
    elif not any(isinstance(finder, _WhenImported) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WhenImported())
