"""What the command line asks of a cluster: the one module of it that talks to an API server."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import urllib3
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import (
    KUBE_CONFIG_DEFAULT_LOCATION,
    KubeConfigLoader,
    KubeConfigMerger,
)

from laptime.api import GROUP, KIND, PLURAL, SCENARIO_KIND, SCENARIO_PLURAL, VERSION
from laptime.api.experiment import EXPLAINS_LABEL
from laptime.api.profile import Profile
from laptime.api.status import State
from laptime.cli.documents import Documents, path_of
from laptime.cli.mistakes import (
    Mistake,
    NewerVersion,
    NotAccepted,
    NotAllowed,
    Unreachable,
    explain_refusal,
    is_missing,
    is_outage,
)
from laptime.cli.runs import Run, parse_run
from laptime.manifests.archive import ARCHIVE_LABEL, archive_parts
from laptime.manifests.objects import COMPONENT_LABEL, TRIAL_LABEL, UID_LABEL, Component
from laptime.manifests.result import PAYLOAD_KEY, read_answers, read_profile

if TYPE_CHECKING:
    from laptime.api.answers import CheckedAnswer
    from laptime.cli.manifest_file import Manifest
    from laptime.report.archive import Archive

FIELD_MANAGER = "laptime-cli"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_CONTENT = ("data", "binaryData", "immutable")
"""Of a ConfigMap."""
_HOME_FILE = "~/.kube/config"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_NAMES_PAGE = 1000
_GENERATED = 5
"""Letters that an API server puts behind a name that it is to make."""
_WRITTEN = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
_NODES = ("api", "v1", "nodes")
_UNTOLD = (ApiException, urllib3.exceptions.HTTPError, OSError, NotAllowed)
"""Who is asked says nothing: it cannot, may not, or is no API server."""
_PAGE = 100
"""Objects per answer of a list: payloads of trials are large."""
_OF_OPENSSL = re.compile(r"^\[SSL[^]]*\] | \(_ssl[.]c:\d+\)$")
"""What stands around the words of OpenSSL, and tells nobody anything."""


class Cluster:
    """A connection to one cluster."""

    chosen = ""
    """The options that chose it: a command that is to be typed goes to another one without them."""

    def __init__(
        self,
        api: client.ApiClient,
        namespace: str,
        source: tuple[Path | None, str | None] = (None, None),
    ) -> None:
        """Take a client; `source`: the kubeconfig and the context that it was made from."""
        self.namespace = namespace
        self._source = source
        self.server = str(api.configuration.host)
        self._documents = Documents(api)
        self._stored: dict[str, Archive] = {}

    @classmethod
    def connect(cls, kubeconfig: Path | None = None, context: str | None = None) -> Cluster:
        """Return a connection by a kubeconfig (default: `KUBECONFIG`, `~/.kube/config`, the pod).

        The pod only where no kubeconfig names a context, as for kubectl: one that is there and is
        broken means another cluster.

        Raises:
            Mistake: there is no such file or context, or it cannot be read.
        """
        configuration = client.Configuration()
        # The follower repeats a request on its own, and says so; hidden retries only add delay.
        configuration.retries = False
        path = None if kubeconfig is None else str(kubeconfig)
        pinned, of_pod = context, False
        acts_as: dict[str, str] = {}
        if path and not kubeconfig_exists(path):
            raise Mistake(f"Cannot read the kubeconfig {path}: no such file")
        try:
            # The variable may be there and empty, which is none for kubectl.
            files = KubeConfigMerger(
                _without_empty(path or KUBE_CONFIG_DEFAULT_LOCATION or _HOME_FILE)
            )
            # Also when another context is the current one by the time that it is read anew.
            pinned = context or _current_context(files)
            of_pod = path is None and pinned is None
            if files.config is None:
                raise ConfigException("there is no kubeconfig, or nothing in it")
            if pinned is None:
                raise ConfigException("no kubeconfig names a current context")
            # Loaded here, since what the client has for it says of no context but the current one
            # which namespace it has, and a context that is chosen needs no current one.
            loader = KubeConfigLoader(
                files.config, pinned, config_base_path=None, config_persister=files.save_changes
            )
            loader.load_and_set(configuration)
            chosen = loader.current_context["context"]
            namespace = str(chosen.get("namespace") or "default")
            acts_as = _impersonation(files.config["users"], chosen.get("user"))
        except (yaml.YAMLError, ValueError, OSError) as error:
            # A value that is base64, and was not filled in, is a ValueError.
            raise Mistake(f"Cannot read the kubeconfig: {error}") from error
        except (TypeError, AttributeError) as error:
            # It is YAML, but a list or a word stands where the client looks for fields.
            raise Mistake("Cannot read the kubeconfig: it is none (kind: Config)") from error
        except ConfigException as error:
            namespace = cls._connect_in_pod(configuration, error, of_pod=of_pod)
        api = client.ApiClient(configuration)
        for header, value in acts_as.items():
            api.set_default_header(header, value)
        return cls(api, namespace, (kubeconfig, pinned))

    def _renew(self) -> bool:
        """Take the credentials that there are by now, and return whether there are any.

        A token or a certificate may be renewed outside, and holds for less than a run may take.

        Raises:
            Unreachable: the plugin has failed, of which the client says nothing but in its log.
        """
        try:
            anew = Cluster.connect(*self._source)
        except Mistake:
            return False
        if anew.server != self.server:
            return False
        if self._says_who_asks and not anew._says_who_asks:
            raise Unreachable("The plugin of the kubeconfig gives no credentials")
        self._documents = anew._documents
        return True

    @property
    def _says_who_asks(self) -> bool:
        configuration = self._documents.configuration
        return bool(configuration.api_key or configuration.cert_file)

    @staticmethod
    def _connect_in_pod(
        configuration: client.Configuration, error: ConfigException, *, of_pod: bool
    ) -> str:
        if not of_pod or "KUBERNETES_SERVICE_HOST" not in os.environ:
            raise Mistake(
                f"No cluster to talk to: {error}\n"
                "Set KUBECONFIG (or give --kubeconfig), or start the embedded cluster: make cluster"
            ) from error
        folder = Path("/var/run/secrets/kubernetes.io/serviceaccount")
        try:
            config.load_incluster_config(client_configuration=configuration)
            return (folder / "namespace").read_text(encoding="utf-8").strip()
        except (ConfigException, OSError) as missing:
            raise Mistake(
                f"No cluster to talk to: {missing}\n"
                "Give the pod the token of its ServiceAccount (automountServiceAccountToken), or "
                "set KUBECONFIG"
            ) from missing

    def run(self, namespace: str, name: str) -> Run | None:
        """Return the run, or None when there is none of that name.

        Raises:
            Mistake: it cannot be had, or a newer version wrote it.
        """
        if not name.strip("."):
            # Of an empty one the API server sends the list, and `..` is the namespace.
            raise Mistake(
                f'Could not read {KIND}: the name of the run is "{name}". Is a variable not set?'
            )
        try:
            return self._run_if_any(namespace, name)
        except NotAccepted:
            if not self._renew():
                raise
            return self._run_if_any(namespace, name)

    def _run_if_any(self, namespace: str, name: str) -> Run | None:
        with _readable(f"read {KIND} {name}"):
            try:
                found = self._documents.ask("GET", _ours(namespace, PLURAL, name))
            except ApiException as error:
                if error.status == 404 and is_missing(error.body, name):
                    return None
                raise
        return parse_run(self._answer(found))

    def _answer(self, found: Any) -> Any:
        """Return what the API server has sent; NotAllowed: it is a page, which a proxy sends."""
        if isinstance(found, str):
            raise NotAllowed(
                f"What answers at {self.server} is no API server: it sends {found.strip()[:60]}\n"
                "Is it a proxy where one has to sign in?"
            )
        return found

    def turns_before(self, run: Run) -> int | None:
        """Return how many runs of the cluster have their turn before one that is queued.

        None when that cannot be known, such as by somebody who may not list runs everywhere.
        """
        from laptime.reconcile.queue import card_of, turns_before

        over = [state for state in State if state.terminal]
        try:
            found: Any = self._documents.ask(
                "GET",
                path_of("apis", GROUP, VERSION, PLURAL),
                query={"fieldSelector": ",".join(f"status.state!={state}" for state in over)},
            )
        except (ApiException, urllib3.exceptions.HTTPError, OSError):
            return None
        cards = {card.uid: card for card in map(card_of, self._answer(found)["items"])}
        mine = cards.get(run.uid)
        return turns_before(mine, cards.values()) if mine is not None and mine.waits else None

    def experiments_on(self, run: Run) -> list[Run]:
        """Return the runs that try what limits the servers of a run, in the order of their names.

        No run where that cannot be known, such as by somebody who may read a run and list none.
        """
        try:
            found: Any = self._documents.ask(
                "GET",
                _ours(run.namespace, PLURAL),
                query={"labelSelector": f"{EXPLAINS_LABEL}={run.uid}"},
            )
        except (ApiException, urllib3.exceptions.HTTPError, OSError):
            return []
        runs = []
        for one in self._answer(found)["items"]:
            # Of another version of Laptime there may be some that this one cannot read.
            with contextlib.suppress(NewerVersion):
                runs.append(parse_run(one))
        return sorted(runs, key=lambda one: one.name)

    def run_names(self, namespace: str, timeout_seconds: float) -> list[str]:
        """Return the names of all runs of a namespace."""
        with _readable(f"list {KIND}s"):
            found: Any = self._documents.ask(
                "GET", _ours(namespace, PLURAL), timeout=timeout_seconds
            )
        return [str(item["metadata"]["name"]) for item in self._answer(found)["items"]]

    def newest_runs(self, namespace: str, most: int) -> list[str]:
        """Return the names of the runs of a namespace that were applied last, the newest first."""
        runs: list[tuple[str, str]] = []
        following: str | None = None
        with _readable(f"list {KIND}s"):
            while True:
                # Without their specs and statuses: there may be thousands.
                found: Any = self._documents.ask(
                    "GET",
                    _ours(namespace, PLURAL),
                    query={"limit": _NAMES_PAGE, "continue": following},
                    accept=_METADATA_LIST,
                )
                for item in self._answer(found)["items"]:
                    metadata = item["metadata"]
                    runs.append((metadata.get("creationTimestamp", ""), metadata["name"]))
                following = found["metadata"].get("continue")
                if not following:
                    return [name for _, name in sorted(runs, reverse=True)[:most]]

    def check_run(self, namespace: str, run: dict[str, Any], *, anew: bool = False) -> None:
        """Let the API server judge a run as if it were applied; nothing is stored.

        `anew`: as if the one of its name that is there were gone.

        Raises:
            Mistake: the API server refuses it; the message lists each reason.
        """
        if not anew:
            self._patch_run(namespace, run, "check", dryRun="All")
            return
        metadata = dict(run["metadata"])
        name = str(metadata.pop("name"))
        # The API server puts five letters behind it: the name is as long as it was.
        metadata["generateName"] = name[:-_GENERATED] or name
        with _readable(f"check {KIND} {name}"):
            try:
                self._documents.ask(
                    "POST",
                    _ours(namespace, PLURAL),
                    query={"dryRun": "All", "fieldValidation": "Strict"},
                    body={**run, "metadata": metadata},
                )
            except ApiException as error:
                # The room that one more has not got is that of the one that goes.
                if "exceeded quota" not in str(error.body):
                    raise

    def apply_scenario(
        self, namespace: str, manifest: dict[str, Any], what: str = "apply", **options: Any
    ) -> None:
        """Create the scenario or bring its spec to the manifest's, if this program made it.

        Raises:
            Mistake: somebody else's has the name, and another spec; or the API server refused it.
        """
        from laptime.cli.changed_work import same_scenario

        name = str(manifest["metadata"]["name"])
        there = self.scenario(namespace, name)
        if there is not None:
            if same_scenario(there, manifest):
                return
            _refuse_what_is_not_ours(there, SCENARIO_KIND, ("spec",), self.chosen)
            # Of its only manager an apply leaves nothing that is not in the file, which it would
            # of another one: so it is that of the version that was read, or none at all.
            version = {"resourceVersion": there["metadata"].get("resourceVersion")}
            manifest = {**manifest, "metadata": {**manifest["metadata"], **version}}
        self._patch_run(namespace, manifest, what, SCENARIO_KIND, SCENARIO_PLURAL, **options)

    def scenario(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Return the scenario that a namespace has of its own by a name, or None.

        Raises:
            Mistake: it cannot be read.
        """
        with _readable(f"read {SCENARIO_KIND} {name}"):
            return self._scenario_if_any(namespace, name)

    def _scenario_if_any(self, namespace: str, name: str) -> dict[str, Any] | None:
        try:
            found: Any = self._documents.ask("GET", _ours(namespace, SCENARIO_PLURAL, name))
        except ApiException as error:
            if error.status == 404:
                return None
            raise
        return dict(self._answer(found))

    def check_file(
        self, namespace: str, manifest: Manifest, run: dict[str, Any], *, anew: bool = False
    ) -> None:
        """Let the API server judge what `apply_file` would apply; nothing is stored.

        `anew`: as if the run of that name that is there were gone.

        Raises:
            Mistake: the API server refuses one of them.
        """
        self.check_run(namespace, run, anew=anew)
        for config_map in manifest.config_maps:
            self.apply_config_map(namespace, config_map, dryRun="All")
        for scenario in manifest.scenarios:
            self.apply_scenario(namespace, scenario, "check", dryRun="All")

    def apply_file(self, namespace: str, manifest: Manifest, run: dict[str, Any]) -> Run:
        """Apply what is beside a run in its file, then the run, as the file or the caller has it.

        All of them or, where one is refused, none.

        Raises:
            Mistake: the API server refused one of them.
        """
        self.check_file(namespace, manifest, run)
        for config_map in manifest.config_maps:
            self.apply_config_map(namespace, config_map)
        for scenario in manifest.scenarios:
            self.apply_scenario(namespace, scenario)
        return self.apply_run(namespace, run)

    def apply_run(self, namespace: str, manifest: dict[str, Any]) -> Run:
        """Create the run or bring it to the manifest by server-side apply; unknown fields refused.

        Raises:
            Mistake: the API server refused it; the message lists each reason.
        """
        return parse_run(self._patch_run(namespace, manifest, "apply"))

    def _patch_run(
        self,
        namespace: str,
        manifest: dict[str, Any],
        what: str,
        kind: str = KIND,
        plural: str = PLURAL,
        **options: Any,
    ) -> Any:
        name = str(manifest["metadata"]["name"])
        with _readable(f"{what} {kind} {name}"):
            answer = self._documents.ask(
                "PATCH",
                _ours(namespace, plural, name),
                query={**_WRITTEN, "force": "true", **options},
                body=manifest,
                content_type=_APPLY,
            )
            return self._answer(answer)

    def change_run(self, run: Run, fields: dict[str, Any]) -> None:
        """Change fields of a run's spec, of this very run and of no other one of its name.

        Raises:
            Mistake: the API server refused it.
        """
        with _readable(f"change {KIND} {run.name}"):
            self._documents.ask(
                "PATCH",
                _ours(run.namespace, PLURAL, run.name),
                query=_WRITTEN,
                body={"metadata": {"uid": run.uid}, "spec": fields},
                content_type=_MERGE,
            )

    def apply_config_map(self, namespace: str, manifest: dict[str, Any], **more: Any) -> None:
        """Create the ConfigMap or bring its content to the manifest's, if this program made it.

        Raises:
            Mistake: somebody else's has the name, and other content; or the API server refused it.
        """
        name = str(manifest["metadata"]["name"])
        options = {**_WRITTEN, **more}
        with _readable(f"apply ConfigMap {name}"):
            there = self._config_map_if_any(namespace, name)
            if there is None:
                there = self._created(namespace, manifest, options)
            if not _same_content(there, manifest):
                _refuse_what_is_not_ours(there, "ConfigMap", _CONTENT, self.chosen)
                # With the version that was read: what was changed meanwhile is left as it is.
                del there["metadata"]["managedFields"]
                body = {**there, **{key: manifest.get(key) for key in _CONTENT}}
                place = _config_maps(namespace, name)
                self._documents.ask("PUT", place, query=options, body=body)

    def _created(
        self, namespace: str, manifest: dict[str, Any], options: dict[str, Any]
    ) -> dict[str, Any]:
        """Create a ConfigMap, and return it, or that which somebody has made in this moment."""
        try:
            self._documents.ask("POST", _config_maps(namespace), query=options, body=manifest)
        except ApiException as error:
            if error.status != 409:
                raise
            return self._config_map(namespace, str(manifest["metadata"]["name"]))
        return manifest

    def config_map_texts(self, namespace: str, name: str) -> dict[str, str | None]:
        """Return what a ConfigMap holds, by key; None for what is no text (`binaryData`).

        Raises:
            Mistake: there is none of that name, or it cannot be read.
        """
        with _readable(f"read ConfigMap {name}"):
            found = self._config_map_if_any(namespace, name)
        if found is None:
            raise Mistake(f"there is no ConfigMap {name} in namespace {namespace}")
        return {**(found.get("data") or {}), **dict.fromkeys(found.get("binaryData") or ())}

    def _config_map_if_any(self, namespace: str, name: str) -> dict[str, Any] | None:
        try:
            return dict(self._answer(self._documents.ask("GET", _config_maps(namespace, name))))
        except ApiException as error:
            if error.status == 404:
                return None
            raise

    def delete_run(
        self,
        run: Run,
        timeout_seconds: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Delete the run and wait until it and its results are gone.

        Raises:
            Mistake: refused, or still there after `timeout_seconds`.
        """
        with _readable(f"delete {KIND} {run.name}"):
            try:
                self._documents.ask(
                    "DELETE",
                    _ours(run.namespace, PLURAL, run.name),
                    # Foreground: while not even the run is gone, whoever comes next sees that.
                    body={"propagationPolicy": "Foreground", "preconditions": {"uid": run.uid}},
                )
            except ApiException as error:
                if error.status != 404:
                    raise
        deadline = time.monotonic() + timeout_seconds
        while self._is_left(run):
            if time.monotonic() > deadline:
                raise Mistake(
                    f"{KIND} {run.name}, or a result of it, is still being deleted: try again in a "
                    "while"
                )
            sleep(0.25)

    def _is_left(self, run: Run) -> bool:
        left = self.run(run.namespace, run.name)
        if left is not None and left.uid == run.uid:
            return True
        # Whatever a deletion asks for, the garbage collector takes what blocks no deletion after
        # its owner; and the next run of this name must not meet results of this one.
        with _readable(f"see whether the results of {run.name} are gone"):
            for label in (UID_LABEL, ARCHIVE_LABEL):
                try:
                    found: Any = self._documents.ask(
                        "GET",
                        _config_maps(run.namespace),
                        query={"labelSelector": f"{label}={run.uid}", "limit": 1},
                    )
                except ApiException as error:
                    # Who may not look cannot wait.
                    if error.status != 403:
                        raise
                else:
                    if self._answer(found)["items"]:
                        return True
        return False

    def stored(self, run: Run) -> Archive:
        """Return all that a run has stored, wherever that is; read once.

        Raises:
            Mistake: there is an archive that cannot be read.
        """
        from laptime.report.archive import stored_in

        if run.uid not in self._stored:
            # In this order: what is deleted meanwhile is in the archive by then.
            config_maps = self._config_maps_of(run)
            name = run.status.results_config_map
            try:
                if name is not None:
                    head = self._config_map(run.namespace, name)
                    parts = [self._config_map(run.namespace, part) for part in archive_parts(head)]
                    config_maps += [head, *parts]
                self._stored[run.uid] = stored_in(config_maps)
            except ValueError as error:
                raise Mistake(f"Cannot read the results of {run.name}: {error}") from error
        return self._stored[run.uid]

    def _config_maps_of(self, run: Run) -> list[dict[str, Any]]:
        config_maps: list[dict[str, Any]] = []
        following: str | None = None
        with _readable(f"read the results of {run.name}"):
            while True:
                found: Any = self._documents.ask(
                    "GET",
                    _config_maps(run.namespace),
                    query={
                        "labelSelector": f"{UID_LABEL}={run.uid}",
                        "limit": _PAGE,
                        "continue": following,
                    },
                )
                config_maps += self._answer(found)["items"]
                following = found["metadata"].get("continue")
                if not following:
                    return config_maps

    def _config_map(self, namespace: str, name: str) -> dict[str, Any]:
        with _readable(f"read ConfigMap {name}"):
            return dict(self._answer(self._documents.ask("GET", _config_maps(namespace, name))))

    def trial_payloads(self, run: Run) -> dict[str, str]:
        """Return what the generators of a run said, by trial; trials without it are left out."""
        return {
            one["metadata"]["labels"][TRIAL_LABEL]: one["data"][PAYLOAD_KEY]
            for one in self.stored(run).objects
            # Whoever may write ConfigMaps may have made one without the label.
            if PAYLOAD_KEY in (one.get("data") or {}) and TRIAL_LABEL in one["metadata"]["labels"]
        }

    def profiles(self, run: Run) -> list[Profile]:
        """Return the profiles of a run, those that could not be taken too, by server."""
        read = (
            read_profile(one["metadata"], one.get("data") or {})
            for one in self.stored(run).objects
            if one["metadata"]["labels"].get(COMPONENT_LABEL) == Component.PROFILE
        )
        return sorted(read, key=lambda profile: profile.server)

    def answers(self, run: Run) -> dict[str, list[CheckedAnswer]]:
        """Return what the servers of a run that only verifies have answered, by server."""
        return dict(
            read_answers(one)
            for one in self.stored(run).objects
            if one["metadata"]["labels"].get(COMPONENT_LABEL) == Component.ANSWERS
        )

    def resizes_pods(self) -> bool | None:
        """Return whether the CPU of a pod can be changed while it runs; None where nobody says."""
        try:
            found: Any = self._answer(self._documents.ask("GET", "/api/v1/"))
        except _UNTOLD:
            return None
        listed = found.get("resources") if isinstance(found, dict) else None
        return any(one["name"] == "pods/resize" for one in listed) if listed else None

    def facts(self, nodes: list[str]) -> dict[str, str]:
        """Return what the cluster says of itself and of these nodes; what is refused is left out.

        Without names of nodes the only node of a cluster of one is meant.
        """
        facts: dict[str, str] = {}
        with contextlib.suppress(*_UNTOLD):
            version: Any = self._answer(self._documents.ask("GET", "/version"))
            facts["Kubernetes"] = version["gitVersion"]
        for node in self._nodes(nodes):
            info, capacity = node["status"]["nodeInfo"], node["status"]["capacity"]
            facts[f"Node {node['metadata']['name']}"] = (
                f"{capacity['cpu']} CPUs ({info['architecture']}), {capacity['memory']} of "
                f"memory, kernel {info['kernelVersion']}, {info['osImage']}, "
                f"{info['containerRuntimeVersion']}"
            )
        return facts

    def _nodes(self, names: list[str]) -> Iterator[Any]:
        for name in names:
            with contextlib.suppress(*_UNTOLD):
                yield self._answer(self._documents.ask("GET", path_of(*_NODES, name)))
        if not names:
            with contextlib.suppress(*_UNTOLD):
                # Two tell that it is not the only one.
                found: Any = self._documents.ask("GET", path_of(*_NODES), query={"limit": 2})
                items = self._answer(found)["items"]
                yield from items if len(items) == 1 else []


def _ours(namespace: str, plural: str, *name: str) -> str:
    return path_of("apis", GROUP, VERSION, "namespaces", namespace, plural, *name)


def _config_maps(namespace: str, *name: str) -> str:
    return path_of("api", "v1", "namespaces", namespace, "configmaps", *name)


def kubeconfig_exists(paths: str) -> bool:
    """Tell whether one of the paths of a KUBECONFIG-like list is a file."""
    return any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep) if path)


def _without_empty(paths: str) -> str:
    """Return the files of a list without those that say nothing, which are none for kubectl.

    Raises:
        OSError: one cannot be read.
        yaml.YAMLError: one is no YAML.
    """
    said = []
    for one in filter(None, paths.split(os.pathsep)):
        file = Path(one).expanduser()
        # What is no file, such as the pipe of a shell, can be read only once.
        if not file.is_file() or yaml.safe_load(file.read_text(encoding="utf-8")) is not None:
            said.append(one)
    return os.pathsep.join(said)


def _current_context(files: KubeConfigMerger) -> str | None:
    """Return the context that kubectl takes: of several files that of the first that names one."""
    named = (one.get("current-context") for one in files.config_files.values())
    return next(filter(None, named), None)


def _impersonation(users: Any, name: str | None) -> dict[str, str]:
    """Return the headers by which a user of a kubeconfig acts as somebody else.

    The client leaves it out, and so would act with all that the user may do.

    Raises:
        Mistake: the client cannot send it, which has one value for each header.
    """
    found = users.get_with_name(name, safe=True)
    user = (found.value.get("user") if found is not None else None) or {}
    groups = user.get("as-groups") or [None]
    headers = {
        "Impersonate-User": user.get("as"),
        "Impersonate-Uid": user.get("as-uid"),
        "Impersonate-Group": groups[0],
    }
    said = {header: str(one) for header, one in headers.items() if one}
    if len(groups) > 1 or user.get("as-user-extra") or (said and not user.get("as")):
        raise Mistake(
            f"User {name} of the kubeconfig acts as somebody else in a way that cannot be sent "
            "from here: as, as-uid and one of as-groups can be. Choose another context"
        )
    return said


def _same_content(there: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all((there.get(key) or None) == (wanted.get(key) or None) for key in _CONTENT)


def _refuse_what_is_not_ours(
    there: dict[str, Any], kind: str, content: Iterable[str], chosen: str
) -> None:
    """Raise Mistake where anybody but this program has written any of an object's content.

    Also what this program made and a person edited is a person's: it has nobody's file but theirs.
    """
    metadata = there["metadata"]
    fields = {f"f:{key}" for key in content}
    writers = {
        str(one.get("manager"))
        for one in metadata.get("managedFields") or []
        if fields & set(one.get("fieldsV1") or {})
    }
    if writers == {FIELD_MANAGER}:
        return
    others = ", ".join(sorted(writers - {FIELD_MANAGER}))
    raise Mistake(
        f"{kind} {metadata['name']} is in namespace {metadata['namespace']} already, with other "
        f"content, and {FIELD_MANAGER} did not write all of it"
        f"{f' (but {others})' if others else ''}, so it is left as it is: rename the one of your "
        "file, or bring it up to date yourself: "
        f"kubectl apply -f FILE -n {metadata['namespace']}{chosen}"
    )


@contextmanager
def _readable(what: str) -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        if not error.status:
            # So the client says that TLS failed: nothing was answered, so nothing was refused.
            reason = _OF_OPENSSL.sub("", str(error.reason).splitlines()[-1])
            raise _out_of_reach(what, reason) from error
        if is_outage(error.status, error.body):
            raise Unreachable(f"Could not {what}: the API server answers {error.status}") from error
        raise explain_refusal(error.status, error.body, what) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        reason = str(error.__cause__ or error).rsplit(": ", 1)[-1]
        raise _out_of_reach(what, reason) from error


def _out_of_reach(what: str, reason: str) -> Unreachable:
    return Unreachable(f"Could not {what}: the cluster cannot be reached ({reason})")
