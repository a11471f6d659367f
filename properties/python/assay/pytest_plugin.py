# SPDX-License-Identifier: Apache-2.0
"""A test function marked with @assay.kernel becomes one test per property that says something about it.

One run of the program checks all selected properties of a kernel; each test shows its part of it.
"""
import inspect

import pytest

from . import checking, program, pytest_judge
from .pytest_judge import assay_judge  # noqa: F401  (a fixture)
from .result import FindingsError, UnprovenError


def pytest_addoption(parser):
    group = parser.getgroup("assay", "attention kernels marked with @assay.kernel")
    group.addoption("--assay-cases", metavar="N", type=int, help="decided cases per property, over the kernel's own")
    group.addoption("--assay-budget", metavar="60s", help="time per kernel instead of a number of cases")
    group.addoption("--assay-report", metavar="FILE", help="what assay_judge says of each call (.json or text), and no test fails by it")
    group.addoption("--assay-seed", metavar="N", type=int, default=1, help="of everything drawn (1)")


def pytest_terminal_summary(terminalreporter, config):
    pytest_judge.finish(config, terminalreporter)


#: Decided cases per property, where neither the kernel nor the command line says.
CASES = 10


def says_something(declared, spec):
    """Whether a property of `assay list properties --json` may apply to a kernel."""
    family = spec.family.removesuffix("_v1").removesuffix("_v2")
    needs = {
        "exact numbers": False,
        "splits": spec.declaration.max_splits > 1,
        "declared determinism": spec.determinism != "none",
        "declared NaN": spec.nan_contract != "none",
        "exact weights": spec.declaration.exponential == "base2",
        "a declared order": False,
    }
    return family in declared["families"] and all(needs.get(word, True) for word in declared["needs"])


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector, name, obj):
    spec = getattr(obj, "__assay__", None)
    if spec is None or not inspect.isfunction(obj) or not collector.funcnamefilter(name):
        return None
    run = KernelRun(obj, spec)
    found = [p["name"] for p in program.list_properties() if says_something(p, spec)]
    return [
        PropertyItem.from_parent(collector, name=f"{name}[{prop}]", run=run, prop=prop)
        for prop in found
    ]


class KernelRun:
    """The checks of one kernel in this session."""

    def __init__(self, function, spec):
        self.function, self.spec, self.result, self.error = function, spec, None, None

    def finish(self, session):
        """Runs once; later calls give the same result, or raise the same error."""
        if self.result is None and self.error is None:
            try:
                self.result = checking.check(self.function, **self._arguments(session))
            except Exception as error:  # each test of the kernel says so
                self.error = error
        if self.error is not None:
            raise self.error
        return self.result

    def _arguments(self, session):
        option = session.config.getoption
        cases, budget = option("assay_cases"), option("assay_budget")
        if cases is None and budget is None:
            cases, budget = self.spec.cases, self.spec.budget
        selected = [item.prop for item in session.items if isinstance(item, PropertyItem) and item.run is self]
        return {
            "cases": None if budget else cases or CASES,
            "budget": budget,
            "seed": option("assay_seed"),
            "property": selected[0] if len(selected) == 1 else None,
            "out": str(session.config.cache.mkdir("assay")) if hasattr(session.config, "cache") else None,
        }


class PropertyItem(pytest.Item):
    """One property of one kernel."""

    def __init__(self, *, run, prop, **kwargs):
        super().__init__(**kwargs)
        self.run, self.prop = run, prop
        self.add_marker("assay")

    def runtest(self):
        result = self.run.finish(self.session)
        findings = [f for f in result.findings if f.property == self.prop]
        if findings:
            raise FindingsError("\n\n".join(map(str, findings)))
        of_run = [r for r in result.report["runs"] if r["property"] == self.prop]
        if not of_run:
            pytest.skip(f"{self.prop} says nothing about this kernel as it is declared")
        unproven = why_unproven(of_run[0])
        if unproven:
            raise UnprovenError(f"{self.prop}: {unproven}")
        if of_run[0]["cases"] == 0:
            pytest.skip(f"no case of {self.prop} that the kernel takes: {of_run[0]['last_discard']}")
        # What no property has for itself: a declaration that leaves too much without a claim.
        if result.exit_code == 4 and not any(why_unproven(r) for r in result.report["runs"]):
            raise UnprovenError(result.text)

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, (FindingsError, UnprovenError, program.ProgramError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        code = self.run.function.__code__
        return code.co_filename, code.co_firstlineno - 1, self.name


def why_unproven(run):
    """In words, of an entry of `runs`; empty when the property was proven on what it met."""
    if run["error"]:
        return run["error"]
    if run["hollow"]:
        return f"no case was decided ({run['discarded']} discarded; {run['last_discard']})"
    if run["undecided"]:
        return f"{run['undecided']} cases are undecided"
    return f"fewer than two cases of class {', '.join(run['missing'])}" if run["missing"] else ""


def pytest_configure(config):
    config.addinivalue_line("markers", "assay: a property of a kernel marked with @assay.kernel")
    pytest_judge.configure(config)
