"""The connection to a cluster: bounded waits, another node when one is away, and errors that say what to do."""

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from opensearchpy import OpenSearch, exceptions
from opensearchpy.helpers import streaming_bulk

from bedstone.errors import Unavailable
from bedstone.search.index import IndexDamaged

if TYPE_CHECKING:
    from bedstone.settings.sections import OpenSearchSettings

logging.getLogger("opensearch").setLevel(logging.ERROR)  # it repeats each failure, with a traceback

Body = Mapping[str, Any]
REVIVE_SECONDS = 5.0  # before a node that was away is asked again
ASK_AGAIN_SECONDS = (0.2, 0.8)  # longer than a copy takes to be promoted on a quiet cluster
BULK_BYTES = 4_000_000
BULK_ACTIONS = 1_000
BULK_SECONDS = 60  # also for refreshes and deletions, which no search waits for
# A node may die right after the first document was written. The cluster waits half a minute for a copy at most.
CREATE_OPTIONS = {"request_timeout": BULK_SECONDS, "wait_for_active_shards": "all"}
FIRST_WAIT_SECONDS = 1
MAX_WAIT_SECONDS = 8
CREDENTIALS = re.compile(r"//[^/\s@]*@")
# Of an answer, what is used: the rest takes longer to read than to compute.
PARTS = ("hits.hits._score", "hits.hits.fields", "hits.total.value", "aggregations", "suggest", "status", "error")
ANSWERS = ",".join(f"responses.{part}" for part in PARTS)


class ClusterUnavailable(Unavailable):
    """The search cluster does not answer, or not completely; the message says why."""

    code = "cluster_unavailable"


class ClusterConflict(Unavailable):
    """Another process wrote to the cluster what only one may write."""

    code = "cluster_conflict"


class Connection:
    """Sends requests to any of the nodes; a part of an answer is never taken for all of it."""

    def __init__(self, settings: "OpenSearchSettings") -> None:
        password, token = (value.get_secret_value() if value else None for value in (settings.password, settings.token))
        options: dict[str, Any] = {}
        if settings.user is not None:
            options["http_auth"] = (settings.user, password or "")
        if token is not None:
            options["headers"] = {"Authorization": f"Bearer {token}"}
        if settings.ca_file is not None:
            options["ca_certs"] = str(settings.ca_file)
        if any(host.startswith("https:") for host in settings.hosts):
            options |= {"verify_certs": settings.verify, "ssl_assert_hostname": settings.verify, "ssl_show_warn": False}
        self._client = OpenSearch(
            [host.rstrip("/") for host in settings.hosts],
            timeout=settings.timeout_seconds,
            max_retries=max(1, len(settings.hosts) - 1),
            retry_on_timeout=True,
            retry_on_status=(502, 503, 504),
            pool_maxsize=16,
            dead_timeout=REVIVE_SECONDS,
            **options,
        )

    def search(self, index: str, body: Body, options: Body) -> Any:
        """Return the answer of all shards."""
        return self.search_all([({"index": index, **options}, body)])[0]

    def search_all(self, requests: Sequence[tuple[Body, Body]]) -> list[Any]:
        """Return the answers to several searches, each a header and a body."""
        lines = [line for request in requests for line in request]
        return self._ask(lambda: self._client.msearch(body=lines, params={"filter_path": ANSWERS})["responses"])

    def term_vectors(self, documents: Sequence[Body]) -> list[Any]:
        """Return how many documents have the terms of made-up documents, each on one shard."""
        path = {"filter_path": "docs.term_vectors,docs.error"}
        return self._ask(lambda: self._client.mtermvectors(body={"docs": documents}, params=path)["docs"])

    def _ask(self, ask: Callable[[], Any]) -> list[Any]:
        """Ask again if a node dies between the phases of a search, which it alone can go on with."""
        for wait in (*ASK_AGAIN_SECONDS, None):
            with translate_errors():
                answers: list[Any] = ask()
            failed = next((answer for answer in answers if answer.get("error")), None)
            if failed is None:
                return answers
            reason = (failed["error"].get("root_cause") or [failed["error"]])[0]
            if "index_not_found_exception" in (failed["error"].get("type"), reason.get("type")):
                raise IndexDamaged(f"The search cluster has lost an index: {reason.get('reason')}")
            if wait is None or failed.get("status", HTTPStatus.SERVICE_UNAVAILABLE) < HTTPStatus.TOO_MANY_REQUESTS:
                break
            time.sleep(wait)
        raise ClusterUnavailable(f"The search cluster cannot answer: {reason.get('reason')}")

    def get(self, index: str, name: str) -> Any:
        """Return a document with its version; None if it does not exist."""
        with translate_errors():
            try:
                return self._client.get(index=index, id=name)
            except exceptions.NotFoundError:
                return None

    def put(self, index: str, name: str, body: Body, options: Body) -> Any:
        """Write a document and return its version, on the conditions in the options."""
        with translate_errors():
            return self._client.index(
                index=alias_of(index), id=name, body=body, params={**options, "require_alias": "true"}
            )

    def create(self, index: str, body: Body) -> None:
        """Create an index with all its copies, as far as there are nodes for them; leave one that exists.

        Everything is written by its alias: without the index that is an error, where the cluster would create another.
        """
        body = {**body, "aliases": {alias_of(index): {}}}
        with translate_errors():
            try:
                self._client.indices.create(index=index, body=body, params=CREATE_OPTIONS)
            except exceptions.RequestError as error:
                if error.error != "resource_already_exists_exception":
                    raise

    def delete_index(self, index: str) -> None:
        """Delete an index, if it exists."""
        with translate_errors():
            self._client.indices.delete(index=index, params={"ignore_unavailable": "true"})

    def write(self, index: str, actions: Iterator[Body]) -> None:
        """Write documents, each in place of the one with its id; all are on the disks of the nodes afterwards."""
        with translate_errors():
            results = streaming_bulk(
                self._client,
                actions,
                chunk_size=BULK_ACTIONS,
                max_chunk_bytes=BULK_BYTES,
                max_retries=3,  # while the cluster has too much to do
                initial_backoff=FIRST_WAIT_SECONDS,
                max_backoff=MAX_WAIT_SECONDS,
                index=alias_of(index),
                require_alias="true",
                raise_on_error=False,
                request_timeout=BULK_SECONDS,
            )
            for succeeded, outcome in results:
                if not succeeded:
                    raise _rejection(outcome)

    def delete_matching(self, index: str, query: Body) -> int:
        """Delete the searchable documents that match, and return their number."""
        with translate_errors():
            answer = self._client.delete_by_query(
                index=index, body={"query": query}, params={"conflicts": "proceed", "request_timeout": BULK_SECONDS}
            )
        if answer.get("failures") or answer.get("timed_out"):
            raise ClusterUnavailable("The search cluster could not delete everything that is gone.")
        return int(answer["deleted"])

    def refresh(self, index: str) -> None:
        """Make everything written so far searchable, on all copies."""
        with translate_errors():
            answer = self._client.indices.refresh(index=index, params={"request_timeout": BULK_SECONDS})
        if answer["_shards"]["failed"]:
            raise ClusterUnavailable("The search cluster could not make all changes searchable.")

    def find_shard(self, index: str, routing: str) -> int:
        """Return the number of the shard that a routing leads to."""
        with translate_errors():
            return int(self._client.search_shards(index=index, params={"routing": routing})["shards"][0][0]["shard"])

    def close(self) -> None:
        """Close the connections to the nodes."""
        self._client.close()


def alias_of(index: str) -> str:
    """Return the name that an index is written by."""
    return f"{index}-write"


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise errors of the client as ours; their messages have no user and no password."""
    try:
        yield
    except exceptions.NotFoundError as error:
        raise IndexDamaged(f"The search cluster has lost an index: {_explain(error)}") from None
    except exceptions.ConflictError:
        raise ClusterConflict("Another process writes this index in the search cluster.") from None
    except (exceptions.AuthenticationException, exceptions.AuthorizationException) as error:
        raise ClusterUnavailable(
            f"The search cluster refuses this user. Check opensearch.user and its permissions: {_explain(error)}"
        ) from None
    except exceptions.SSLError as error:
        raise ClusterUnavailable(
            f"The certificate of the search cluster is not trusted. Set opensearch.ca_file: {_explain(error)}"
        ) from None
    except exceptions.ConnectionTimeout:
        raise ClusterUnavailable("The search cluster does not answer in time.") from None
    except exceptions.ConnectionError as error:
        raise ClusterUnavailable(f"The search cluster cannot be reached: {_explain(error)}") from None
    except exceptions.OpenSearchException as error:
        raise ClusterUnavailable(f"The search cluster cannot answer: {_explain(error)}") from None


def _explain(error: Any) -> str:
    """Return the reason the cluster gives, without an address that has a password."""
    info = getattr(error, "info", None)
    cause = info.get("error") if isinstance(info, dict) else None
    if isinstance(cause, dict):
        reason = str((cause.get("root_cause") or [cause])[0].get("reason") or cause.get("reason"))
    else:
        reason = str(getattr(error, "error", None) or error)
    return CREDENTIALS.sub("//", reason)[:300]


def _rejection(result: Any) -> Unavailable:
    """Return why a document was not written."""
    (outcome,) = result.values()
    cause = outcome.get("error")
    reason = cause.get("reason") if isinstance(cause, dict) else cause
    if outcome.get("status") == HTTPStatus.NOT_FOUND:
        return IndexDamaged(f"The search cluster has lost an index: {reason}")
    return ClusterUnavailable(f"The search cluster rejects a change: document {outcome.get('_id')}: {reason}"[:300])
