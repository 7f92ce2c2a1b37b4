"""What an installation of the chart says at its end."""

from __future__ import annotations

from conftest import CHART, OPERATOR_NAMESPACE, RELEASE, ROOT, Tool


def test_the_notes_say_from_where_pods_of_runs_are_scraped(helm: Tool) -> None:
    said = "metrics be read from: laptime-system, monitoring."
    url = "prometheus.url=http://prometheus.monitoring:9090"
    assert said in _notes(helm, url)
    assert "metrics be read from" not in _notes(helm, url, "networkPolicy.runs.enabled=false")
    assert "metrics be read from" not in _notes(helm)


def test_the_notes_say_in_which_namespaces_pods_are_watched(helm: Tool) -> None:
    assert "are watched in: default. Where" in _notes(helm)
    assert "are watched in: default, bench. Where" in _notes(helm, "watching.namespaces={bench}")
    everywhere = ["watching.namespaces={*}"], ["runNamespaces={*}"]
    nobody = ["agent.enabled=false", "prometheus.enabled=false"]
    for values in (*everywhere, nobody):
        assert "are watched in" not in _notes(helm, *values)


def test_the_notes_say_that_runs_that_go_on_are_ended_before_the_chart_goes(helm: Tool) -> None:
    for value in ("crds.enabled=true", "crds.enabled=false"):
        assert '--type=merge -p \'{"spec":{"cancel":true}}\'' in _notes(helm, value)


def test_the_notes_have_a_first_run_only_where_one_may_be(helm: Tool) -> None:
    apply = "kubectl apply -n {} -f -"
    assert apply.format("default") in _notes(helm, "runNamespaces={*}")
    assert apply.format("bench") in _notes(helm, "runNamespaces={bench,team}")
    nowhere = _notes(helm, "runNamespaces=[]", flag="--set-json")
    assert "Runs are allowed in: no namespace yet" in nowhere
    assert "kubectl apply" not in nowhere


def test_the_notes_say_how_to_see_whether_agents_were_let_in(helm: Tool) -> None:
    """A namespace that enforces a level refuses their pods, and Helm waits for none of them."""
    look = f"kubectl get daemonset -n {OPERATOR_NAMESPACE} laptime-agent"
    # A namespace that has a level already keeps it without --overwrite.
    level = "pod-security.kubernetes.io/enforce=privileged --overwrite"
    allow = f"kubectl label namespace {OPERATOR_NAMESPACE} {level}\n"
    for said in (look, allow):
        assert said in _notes(helm)
        assert said not in _notes(helm, "agent.enabled=false")
    assert allow in (ROOT / "docs" / "first-run.md").read_text()


def _notes(helm: Tool, *values: str, flag: str = "--set") -> str:
    """Return what an installation with these values would say at its end."""
    flags = [word for value in values for word in (flag, value)]
    text = helm(
        *("install", RELEASE, str(CHART), "-n", OPERATOR_NAMESPACE, "--dry-run=client"), *flags
    )
    return text.partition("\nNOTES:\n")[2]


def test_the_notes_tell_the_next_step(helm: Tool, kubectl: Tool, release: str) -> None:
    notes = helm("get", "notes", release, "-n", OPERATOR_NAMESPACE)
    assert f"helm test {release} -n {OPERATOR_NAMESPACE}" in notes
    assert "--clusterrole=laptime-runs" in notes
    run = notes[notes.index("<<'EOF'\n") + len("<<'EOF'\n") : notes.index("  EOF\n")]
    kubectl("create", "--dry-run=server", "-f", "-", stdin=run)
