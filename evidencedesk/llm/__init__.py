"""What answers a request: a language model, replies recorded from one, or quotation without one.

All are an `LLMClient`. `complete` gives the reply as it came; whether it can be used is judged elsewhere, in the same
way for each of them. The package openai is imported when a client first needs it.
"""

from evidencedesk.llm.endpoint import OpenAIClient
from evidencedesk.llm.protocol import LLMClient
from evidencedesk.llm.quoting import QuotingAnswerer
from evidencedesk.llm.replies import RecordedReplies

__all__ = ["LLMClient", "OpenAIClient", "QuotingAnswerer", "RecordedReplies"]
