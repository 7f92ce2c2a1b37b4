"""Reasons why a server's answers are not right."""

from __future__ import annotations

from laptime.api.reasons.reason import Reason, Section

ANSWERS = Section(
    "Answers that are not right",
    "The server is out, since its figures would be about other work; where no answer came, "
    "after a second check had none either. The message has the request, what was expected and "
    "what came: [what a right answer is](scenarios.md#what-a-right-answer-is). "
    "`kubectl laptime verify FILE` shows all answers beside what was expected.",
    (
        Reason(
            "NotReachable",
            "no connection to the server",
            "listen on `0.0.0.0` (of IPv6 `::`) at `PORT`, not on `127.0.0.1`; look for a "
            "NetworkPolicy in the namespace; a name that is not found: `networkPolicy.runs.dns` "
            "has to name the cluster's DNS",
        ),
        Reason(
            "TimedOut",
            "no whole answer in time",
            "look for a wait for a connection to the database, and whether the answer's length is "
            "right",
        ),
        Reason(
            "ConnectionLost",
            "the connection broke under the answer",
            "look for a crash in the server's log",
        ),
        Reason(
            "WrongProtocol",
            "the server answers over HTTP/1.1, and not over HTTP/2 as a load of the run asks",
            "have it speak HTTP/2: by ALPN with TLS, with prior knowledge (h2c) without; or write "
            "`protocol: http1`",
        ),
        Reason(
            "WrongStatus",
            "another status code than expected",
            "the message quotes the body: often the server's own error; where a check before "
            "has made the same row, `data.postgres.reset` takes it back",
        ),
        Reason(
            "WrongContentType",
            "JSON without `content-type: application/json`",
            "set the header",
        ),
        Reason(
            "NotJson",
            "the body is not JSON",
            "answer JSON; the message quotes the body",
        ),
        Reason(
            "WrongAnswer",
            "a field, a value, the order or the length is different",
            "correct what the message names, such as `$.hello`",
        ),
        Reason(
            "AnswerNotStable",
            "the same question got two different answers",
            "order what the statement selects; look for state that a worker keeps",
        ),
        Reason(
            "AnswerNeverChanges",
            "a random choice is always the same one",
            "choose for each request, do not remember",
        ),
        Reason(
            "AnsweredTooSoon",
            "an endpoint that waits did not wait",
            "wait as long as the request says",
        ),
        Reason(
            "WrongHeader",
            "a header field of the answer is missing or different",
            "send what `expectHeaders` of the check says",
        ),
        Reason(
            "CaptureMissing",
            "the answer has not what a check keeps of it for later ones, or what it has cannot "
            "stand where a later one needs it",
            "answer what the check's `captures` names; or write another place, a `regex` or an "
            "encoding, such as `{{token | url}}`",
        ),
        Reason(
            "WrongRows",
            "the answer was right, and the database does not have afterwards what the "
            "check asks for",
            "do what the request asks for before it is answered",
        ),
        Reason(
            "QueryFailed",
            "the query of a check's `afterwards` fails: that is the scenario, not the server",
            "write one query that only reads",
        ),
        Reason(
            "SchemaNotCheckable",
            "the `jsonSchema` of a check does not come to an end on the answer: that is the "
            "scenario, not the server",
            "write patterns without repetitions within repetitions, such as `(a+)+`, and no "
            "references that lead back to themselves",
        ),
        Reason(
            "StatementMissing",
            "the answer is right and the database was asked less often than it should be",
            "send the statements for each request; do not cache",
        ),
        Reason(
            "StatementsNotCounted",
            "the check was answered by the run's Postgres, but not with a number of statements",
            "look at the log of Postgres",
        ),
        Reason(
            "NoUpstream",
            "the check could not compare with the upstream: the run has none, or it does not "
            "answer",
            "add `upstream: {}` to the topology; look at the pod of the upstream",
        ),
        Reason(
            "CertificatesUnreadable",
            "the ConfigMap that `service.tls` names has nothing that can be read as certificates",
            "put the certificate of the authority there as PEM (`-----BEGIN CERTIFICATE-----`)",
        ),
        Reason(
            "VerifierFailed",
            "the check itself did not come to an end; its words are in the message",
            "the image of the operator must be pullable from the namespace of the run, and its pod "
            "needs room; the Secret of `service.credentials` must have the key "
            "`laptime-authorization`",
        ),
        Reason(
            "TaskUnreadable",
            "in the words of a check that failed: operator and its image are of different versions",
            "set `images.operator` and `images.tag` to one release",
        ),
        Reason(
            "Failed",
            "a server is out, and an older operator left no reason",
            "delete the run and apply it again",
        ),
    ),
)
