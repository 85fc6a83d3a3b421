"""A pytest plugin: a run that skips every proof of a requirement fails."""

import pytest

PROVES = "proves"


class Proofs:
    """Collects which requirements the tests of a run proved and which they skipped."""

    def __init__(self) -> None:
        self._proved: set[str] = set()
        self._skipped: set[str] = set()

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        requirements = {str(value) for name, value in report.user_properties if name == PROVES}
        if report.skipped:
            self._skipped |= requirements
        elif report.when == "call":
            self._proved |= requirements

    @pytest.hookimpl
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unproved and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.unproved:
            terminalreporter.section("requirements whose only proofs were skipped", red=True)
            for requirement in self.unproved:
                terminalreporter.line(requirement)

    @property
    def unproved(self) -> list[str]:
        """Return the requirements that tests skipped and no test proved."""
        return sorted(self._skipped - self._proved)


def register(config: pytest.Config) -> None:
    """Install the plugin; under pytest-xdist only where the reports of all processes arrive."""
    config.addinivalue_line("markers", f"{PROVES}(*requirements): the requirements of a contract that a test proves")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Proofs(), "proofs")


def record(items: list[pytest.Item]) -> None:
    """Attach to each test what it proves, so that its reports carry it across processes."""
    for item in items:
        for mark in item.iter_markers(PROVES):
            item.user_properties += [(PROVES, requirement) for requirement in mark.args]
