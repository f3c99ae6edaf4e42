"""Rules at an elected controller: what a request meets on its way."""

from minicontroller.admin.policy.runner import PolicyRunner
from minicontroller.policies import TopicManagementPolicy
from minicontroller.policies.judging import Verdicts
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_topics import CreateTopicsRequest
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.handlers.ruling import PATIENT_MS, Ruling, ruling, wanted
from tests.rules.reading import rules


def in_force(cluster: Ruling) -> PolicyRunner:
    assert cluster.node.policy is not None
    return cluster.node.policy


async def test_a_rule_refuses_one_topic_and_not_the_others() -> None:
    """K201-6: only the refused topic is answered POLICY_VIOLATION, with the rule's message."""
    async with ruling(policy=TopicManagementPolicy()) as cluster:
        in_force(cluster).use(rules("[[partitions]]\nmax = 2"))
        request = CreateTopicsRequest(topics=[wanted("a", 2, 1), wanted("b", 3, 1)], timeout_ms=PATIENT_MS)
        first, second = (await cluster.ask(request, 7)).topics
    assert first.error_code == 0
    assert (second.error_code, second.error_message) == (ErrorCode.POLICY_VIOLATION, "3 partitions are more than 2.")


async def test_no_quota_is_passed_by_batching() -> None:
    """K201-3: each topic of a batch counts for those after it."""
    async with ruling(policy=TopicManagementPolicy()) as cluster:
        in_force(cluster).use(rules("[[quota]]\nowned = 'a.*'\nmax_topics = 2"))
        topics = [wanted(f"a.{number}", 1, 1) for number in range(4)]
        answer = await cluster.ask(CreateTopicsRequest(topics=topics, timeout_ms=PATIENT_MS), 7)
    assert [row.error_code for row in answer.topics] == [0, 0, *[ErrorCode.POLICY_VIOLATION] * 2]


async def test_the_age_of_a_topic_is_the_stores() -> None:
    """A topic that has just been made is younger than an hour, by the clock of what stores it."""
    async with ruling(policy=TopicManagementPolicy()) as cluster:
        await cluster.make(wanted("a", 1, 1))
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=PATIENT_MS)
        in_force(cluster).use(rules("[[deletion_age]]\nmin = '1h'"))
        [young] = (await cluster.ask(request, 6)).responses
        in_force(cluster).use(rules("[[deletion_age]]\nmax = '1h'"))
        [old] = (await cluster.ask(request, 6)).responses
    assert young.error_code == ErrorCode.POLICY_VIOLATION
    assert young.error_message is not None and young.error_message.startswith("a is too young to be deleted: ")
    assert old.error_code == 0


def test_the_hash_that_a_check_prints_stands_in_verdicts() -> None:
    """Where rules alone judge, a verdict's hash is that of their files, which `policy check`
    prints.
    """
    found = rules("[[partitions]]\nmax = 3")
    assert Verdicts(rules=found).policy_hash == found.hash
