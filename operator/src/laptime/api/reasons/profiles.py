"""Reasons why a profile is missing, or something was left over at the end."""

from __future__ import annotations

from laptime.api.reasons.reason import Reason, Section

PROFILES = Section(
    "A profile that is missing",
    "It fails no run and is not tried again: [profiles](servers.md#profiles). A server that"
    " does not come up for its profile has the reasons of any other pod.",
    (
        Reason(
            "ProfilesMissing",
            "at least one profile was not taken; the message says why, server by server",
            "its reason below; the figures stand as they are",
        ),
        Reason(
            "ProfileNotOffered",
            "nothing listens on `PROFILE_PORT`, or `/profile` is not known there",
            "let your image offer profiles, or leave `profile` out",
        ),
        Reason(
            "ProfileFailed",
            "the server could not take it, or gave no answer; its words are in the message",
            "for the Python servers: does the seccomp profile of the nodes forbid "
            "`process_vm_readv`, or is Yama's `ptrace_scope` above 1?",
        ),
        Reason(
            "ProfileEmpty",
            "the server used no CPU while it was sampled",
            "look whether it answers at all under this load; a script must last for 30 seconds at "
            "least",
        ),
        Reason(
            "ProfileNotUnderstood",
            "the answer is no text of folded stacks; the message quotes it",
            "a line for each stack, as in the contract",
        ),
        Reason(
            "ProfileTooLarge",
            "the answer has more than 64 MiB",
            "add equal stacks up; leave line numbers out",
        ),
        Reason(
            "ProfileMissing",
            "the container that asks for it ended without a word of it",
            "the image of the operator must be of the operator's release",
        ),
        Reason(
            "ProfileGarbled",
            "what the container printed is cut off",
            "look whether the node rotates logs below 1 MB",
        ),
        Reason(
            "ProfilerLost",
            "the pod that makes the load was deleted, killed or lost",
            "look at the node",
        ),
    ),
)
