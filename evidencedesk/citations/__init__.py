"""Citations: which sentence of an answer cites what, where that leads, and whether it says what the sentence says.

How a claim becomes a verdict:

1. Its text is split into sentences (`split_claims`). Each has all citations of the claim: those that the model lists
   and the marks in the text (`references` reads one), save a mark that a passage holds word for word.
2. Each citation is followed: `retrieved` (a passage that the model was given, still in force and unchanged), `outside`
   (in force, but not given), `superseded` (in the file, but not in force), `invented` (nowhere), `malformed`.
3. A `SupportChecker` holds each sentence against each retrieved chunk alone, never several glued together:
   `supported`, `contradicted`, `unsupported` or `unchecked`. `RuleChecker` is built in (`check_support` for one text).
4. Over several chunks: `contradicted` if one contradicts; else `supported` if one supports; else `unsupported` if one
   was checked; else `unchecked`. A sentence that cites nothing, or nothing that was given, is `unsupported`.
5. The `worst` claim decides the answer: a citation that is not `retrieved`, else a sentence that is not `supported`.

Nothing here reads or writes a database, or calls a model unless the checker does.
"""

from evidencedesk.citations.handed_in import HandedIn, claims_of_text, read_answer
from evidencedesk.citations.markers import MarkedClaim, Reference, references, split_claims
from evidencedesk.citations.resolving import Found, Lookup, Objection, check_citations, check_claims, worst
from evidencedesk.citations.support import RuleChecker, SupportChecker, check_support

__all__ = [
    "Found",
    "HandedIn",
    "Lookup",
    "MarkedClaim",
    "Objection",
    "Reference",
    "RuleChecker",
    "SupportChecker",
    "check_citations",
    "check_claims",
    "check_support",
    "claims_of_text",
    "read_answer",
    "references",
    "split_claims",
    "worst",
]
